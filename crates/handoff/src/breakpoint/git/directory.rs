//! Reads what git keeps in its own directory: the operation in progress, the work trees, the logs of their heads.

use std::{
    collections::HashSet,
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use chrono::DateTime;

use super::{Commit, OtherTree, parse::parse_id};
use pitstop_base::{
    clean, format,
    private_file::{open_to_read, read_at_most},
};

/// The number of bytes at the end of a head's log that are read.
const LOG_END: u64 = 8 * 1024;

/// The same for the stashes, which are counted: enough for five thousand.
const ALL_STASHES: u64 = 1024 * 1024;

/// Returns the operation that is in progress, according to the files that git keeps for it in its directory.
pub(super) fn operation_in(directory: &Path) -> Option<String> {
    const LONGEST: u64 = 256;
    const SEQUENCE: &str = "sequencer/todo";
    let has = |name: &str| directory.join(name).exists();
    let line = |name: &str| {
        let text = read_start(&directory.join(name), LONGEST)?;
        let line = clean::name(text.split(|&byte| byte == b'\n').next()?);
        Some(line).filter(|line| !line.is_empty())
    };
    let rebase = |place: &str, step: &str, last: &str| {
        let of = line(&format!("{place}/head-name"));
        let of = of.map_or_else(String::new, |name| {
            format!(" of {}", name.strip_prefix("refs/heads/").unwrap_or(&name))
        });
        let step = line(&format!("{place}/{step}")).zip(line(&format!("{place}/{last}")));
        let step = step.map_or_else(String::new, |(now, last)| format!(", step {now} of {last}"));
        format!("{of}{step}")
    };
    if has("rebase-merge") {
        return Some(format!("rebase{}", rebase("rebase-merge", "msgnum", "end")));
    }
    if has("rebase-apply") {
        let applies = has("rebase-apply/applying");
        let what = if applies {
            "applying of patches"
        } else {
            "rebase"
        };
        return Some(format!("{what}{}", rebase("rebase-apply", "next", "last")));
    }
    // Of several commits, those that are left; the mark below is missing between two of them.
    let left = read_start(&directory.join(SEQUENCE), LONGEST * 64).unwrap_or_default();
    let left = left.split(|&byte| byte == b'\n');
    let left: Vec<&[u8]> = left.filter(|line| !line.is_empty()).collect();
    let is_revert = left.first().is_some_and(|line| line.starts_with(b"revert"));
    let marks = [
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        (SEQUENCE, if is_revert { "revert" } else { "cherry-pick" }),
        ("BISECT_LOG", "bisection"),
    ];
    let (mark, what) = marks.into_iter().find(|(mark, _)| has(mark))?;
    // Without a mark of its own the first one is done.
    Some(
        match left.len() - usize::from(mark == SEQUENCE && !left.is_empty()) {
            1 if mark != SEQUENCE => what.to_owned(),
            0 => what.to_owned(),
            count => format!("{what} of several commits, {count} of them not done"),
        },
    )
}

/// Returns the name by which a detached head was checked out, if it has not moved since, and the stashes, from git's logs.
pub(super) fn logged_notes(directory: &Path, is_detached: bool) -> Vec<String> {
    let last = read_end(&directory.join("logs/HEAD"), LOG_END).unwrap_or_default();
    let last = last.trim_ascii_end().rsplit(|&byte| byte == b'\n').next();
    let name = last.and_then(|line| {
        let (_, moved) = str::from_utf8(line)
            .ok()?
            .split_once("\tcheckout: moving from ")?;
        let (_, name) = moved.rsplit_once(" to ")?;
        let is_id = name.bytes().all(|byte| byte.is_ascii_hexdigit()) || name.contains('~');
        (is_detached && !is_id).then(|| format!("checked out as {name}"))
    });
    let stashes = common_directory(directory).join("logs/refs/stash");
    let stashes = read_end(&stashes, ALL_STASHES).unwrap_or_default();
    let stashes = String::from_utf8_lossy(&stashes);
    let stash = stashes
        .lines()
        .last()
        .and_then(|line| line.split_once('\t'));
    let stash = stash.map(|(_, what)| {
        let count = format::count(stashes.lines().count(), "stash");
        format!("{count}, the last one: {what}")
    });
    let notes = name.into_iter().chain(stash);
    notes.map(|note| clean::name(note.as_bytes())).collect()
}

/// Returns the git directory of the repository's main work tree.
fn common_directory(directory: &Path) -> &Path {
    let trees = directory
        .parent()
        .filter(|trees| trees.ends_with("worktrees"));
    trees.and_then(Path::parent).unwrap_or(directory)
}

/// Returns the top of the linked work tree that this git directory belongs to, as git records it there.
pub(super) fn work_tree_of(directory: &Path) -> Option<String> {
    const LONGEST: u64 = 4096;
    let trees = directory.parent()?.file_name()?;
    let text = read_start(&directory.join("gitdir"), LONGEST)?;
    let top = text.trim_ascii_end().strip_suffix(b"/.git")?;
    if trees != "worktrees" {
        return None;
    }
    if top.starts_with(b"/") {
        return Some(clean::name(top));
    }
    // Git can record the place relative to this directory.
    let top = directory.join(OsStr::from_bytes(top));
    let top = top.canonicalize().ok()?;
    Some(clean::name(top.as_os_str().as_bytes()))
}

/// Returns the work trees of the repository beside the one that this git directory belongs to.
pub(super) fn other_trees(directory: &Path) -> Vec<OtherTree> {
    const MOST: usize = 64;
    let main = common_directory(directory);
    let listed = std::fs::read_dir(main.join("worktrees"));
    let main = Some(main).filter(|main| *main != directory);
    let linked = listed.into_iter().flatten().flatten().map(|one| one.path());
    let linked = linked.filter(|one| one != directory).take(MOST);
    let linked = linked.filter_map(|one| Some((work_tree_of(&one)?, one)));
    // A bare repository has no work tree of its own.
    let top = main
        .filter(|main| main.ends_with(".git"))
        .and_then(Path::parent);
    let top = top.map(|top| clean::name(top.as_os_str().as_bytes()));
    let main = top.zip(main.map(Path::to_owned));
    let mut trees: Vec<OtherTree> = main.into_iter().chain(linked).map(other_tree).collect();
    trees.sort_by(|a, b| a.top.cmp(&b.top));
    trees
}

/// Reads the head of a work tree from the files in its git directory.
fn other_tree((top, directory): (String, PathBuf)) -> OtherTree {
    const LONGEST: u64 = 1024;
    let head = read_start(&directory.join("HEAD"), LONGEST).unwrap_or_default();
    let branch = head.trim_ascii_end().strip_prefix(b"ref: refs/heads/");
    // Where git keeps the branches in tables, this file names none.
    let branch = branch.map(clean::name).filter(|name| name != ".invalid");
    let commits = read_end(&directory.join("logs/HEAD"), LOG_END).unwrap_or_default();
    OtherTree {
        top,
        branch,
        commits: logged_commits(&commits),
    }
}

/// Parses the end of git's log of a head; returns the commits that were made there, newest first.
///
/// ```text
///   <old id> <new id> name <mail> <seconds> <zone> TAB commit: subject
/// ```
pub(super) fn logged_commits(log: &[u8]) -> Vec<Commit> {
    const MOST: usize = 5;
    let commit = |line: &[u8]| {
        let tab = line.iter().position(|&byte| byte == b'\t')?;
        let mut fields = line[..tab].split(|&byte| byte == b' ');
        let sha = parse_id(fields.nth(1)?)?;
        let seconds = str::from_utf8(fields.nth_back(1)?).ok()?.parse().ok()?;
        let said = clean::name(&line[tab + 1..]);
        let (what, subject) = said.split_once(": ")?;
        let made = ["commit", "cherry-pick", "revert"];
        made.iter()
            .any(|made| what.starts_with(made))
            .then_some(())?;
        Some(Commit {
            sha,
            subject: subject.chars().take(500).collect(),
            at: DateTime::from_timestamp(seconds, 0)?,
        })
    };
    let newest_first = log.rsplit(|&byte| byte == b'\n');
    newest_first.filter_map(commit).take(MOST).collect()
}

/// Returns the mail addresses of those who have moved the head of this work tree: who works here commits under one of them.
pub(super) fn logged_mails(directory: &Path) -> HashSet<Vec<u8>> {
    let log = read_end(&directory.join("logs/HEAD"), LOG_END).unwrap_or_default();
    let mail = |line: &[u8]| {
        let begin = line.iter().position(|&byte| byte == b'<')? + 1;
        let length = line[begin..].iter().position(|&byte| byte == b'>')?;
        Some(line[begin..begin + length].to_vec())
    };
    log.split(|&byte| byte == b'\n').filter_map(mail).collect()
}

/// Reads the first bytes of a file, at most so many. A pipe without another end would be waited for, so only a file is opened.
fn read_start(path: &Path, most: u64) -> Option<Vec<u8>> {
    read_at_most(most, open_to_read(path).ok()?).ok()
}

/// Reads at most this many bytes of the end of a file.
fn read_end(path: &Path, most: u64) -> Option<Vec<u8>> {
    let mut file = open_to_read(path).ok()?;
    let from = file.metadata().ok()?.len().saturating_sub(most);
    io::Seek::seek(&mut file, io::SeekFrom::Start(from)).ok()?;
    read_at_most(most, file).ok()
}
