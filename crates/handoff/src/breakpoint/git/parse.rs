//! Parses what git prints.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Component, Path},
};

use chrono::DateTime;

use super::{Changes, Commit, GitFacts, Renamed};
use pitstop_base::clean;

/// The most files that each list holds; a longer list does not help a reader.
pub(super) const FILES_CAP: usize = 2_000;

/// Returns the names of all filters in a list of config keys that are each ended by NUL.
pub(super) fn filters_in(keys: &[u8]) -> Vec<OsString> {
    let mut names: Vec<OsString> = keys
        .split(|&byte| byte == 0)
        .filter_map(|key| key.strip_prefix(b"filter."))
        .filter_map(|key| {
            key.iter()
                .rposition(|&byte| byte == b'.')
                .map(|dot| &key[..dot])
        })
        .map(|name| OsStr::from_bytes(name).to_owned())
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Parses the output of `git status --porcelain=v2 --branch -z`.
///
/// ```text
///   # branch.oid <id>|(initial)          # branch.head <name>|(detached)
///   1 XY sub mH mI mW hH hI path         2 XY sub mH mI mW hH hI Xscore path NUL from
///   u XY sub m1 m2 m3 mW h1 h2 h3 path   ? path
/// ```
pub(super) fn parse_status(printed: &[u8]) -> GitFacts {
    let mut facts = GitFacts::default();
    // The entry after the last NUL was cut off by the cap.
    let Some(end) = printed.iter().rposition(|&byte| byte == 0) else {
        return facts;
    };
    let mut entries = printed[..end].split(|&byte| byte == 0);
    while let Some(entry) = entries.next() {
        let (kind, rest) = entry.split_at(entry.len().min(2));
        match kind {
            b"# " => take_header(rest, &mut facts),
            b"1 " => take_changed(rest, &mut facts),
            b"2 " => take_moved(rest, entries.next().unwrap_or_default(), &mut facts),
            b"u " => {
                if let Some(path) = skip_words(rest, 9) {
                    note_path(&mut facts.modified, path, &mut facts.truncated);
                    note_path(&mut facts.conflicts, path, &mut facts.truncated);
                }
            }
            // Another repository or work tree is not a file of this one.
            b"? " if rest.ends_with(b"/") => {}
            b"? " => note_path(&mut facts.created, rest, &mut facts.truncated),
            _ => {}
        }
    }
    // A file that is no longer tracked is still there.
    let created: HashSet<&String> = facts.created.iter().collect();
    facts.deleted.retain(|path| !created.contains(path));
    facts
}

/// Returns the places of submodules in a list of `key LF value NUL`, of which none may lead out of the work tree.
pub(super) fn parse_submodules(printed: &[u8]) -> impl Iterator<Item = &Path> {
    let entries = printed.split(|&byte| byte == 0);
    let paths = entries.filter_map(|entry| {
        let at = entry.iter().position(|&byte| byte == b'\n')?;
        Some(Path::new(OsStr::from_bytes(&entry[at + 1..])))
    });
    let is_inside = |path: &&Path| {
        let is_plain = |part| matches!(part, Component::Normal(_));
        !path.as_os_str().is_empty() && path.components().all(is_plain)
    };
    paths.filter(is_inside)
}

impl GitFacts {
    /// Adds the uncommitted changes within a submodule at this place.
    pub(super) fn add_inside(&mut self, place: &str, inside: Self) {
        let within = |path: String| format!("{place}/{path}");
        let lists = [
            (&mut self.modified, inside.modified),
            (&mut self.created, inside.created),
            (&mut self.deleted, inside.deleted),
            (&mut self.conflicts, inside.conflicts),
        ];
        self.truncated |= inside.truncated;
        for (list, more) in lists {
            let room = FILES_CAP.saturating_sub(list.len());
            self.truncated |= more.len() > room;
            list.extend(more.into_iter().take(room).map(within));
        }
        let moved = inside.renamed.into_iter().map(|one| Renamed {
            from: within(one.from),
            to: within(one.to),
        });
        self.renamed.extend(moved);
        self.renamed.truncate(FILES_CAP);
    }
}

fn take_header(rest: &[u8], facts: &mut GitFacts) {
    if let Some(oid) = rest.strip_prefix(b"branch.oid ") {
        facts.head = parse_id(oid);
    } else if let Some(name) = rest.strip_prefix(b"branch.head ") {
        // This is never taken for a branch: names may have parentheses, but git itself prints this name when there is no branch.
        facts.detached = name == b"(detached)";
        facts.branch = (!facts.detached).then(|| clean::name(name));
    }
}

fn take_changed(rest: &[u8], facts: &mut GitFacts) {
    let (Some(&[index, tree]), Some(path)) = (rest.first_chunk(), skip_words(rest, 7)) else {
        return;
    };
    let list = match (index, tree) {
        // The file was added and then deleted: nothing is left of it.
        (b'A', b'D') => return,
        (b'A', _) | (_, b'A') => &mut facts.created,
        (b'D', _) | (_, b'D') => &mut facts.deleted,
        _ => &mut facts.modified,
    };
    note_path(list, path, &mut facts.truncated);
}

fn take_moved(rest: &[u8], from: &[u8], facts: &mut GitFacts) {
    let Some(path) = skip_words(rest, 8) else {
        return;
    };
    let score = skip_words(rest, 7).unwrap_or_default();
    if score.first() == Some(&b'C') {
        note_path(&mut facts.created, path, &mut facts.truncated);
    } else if facts.renamed.len() >= FILES_CAP {
        facts.truncated = true;
    } else {
        facts.renamed.push(Renamed {
            from: clean::name(from),
            to: clean::name(path),
        });
    }
}

/// Returns the rest after the first `skipped` words; it may itself contain spaces.
fn skip_words(rest: &[u8], skipped: usize) -> Option<&[u8]> {
    rest.splitn(skipped + 1, |&byte| byte == b' ').nth(skipped)
}

fn note_path(list: &mut Vec<String>, path: &[u8], truncated: &mut bool) {
    if list.len() >= FILES_CAP {
        *truncated = true;
    } else {
        list.push(clean::name(path));
    }
}

/// Parses the output of `git diff --name-status -z --find-renames`: a letter and a path in turn, and two paths for a rename.
pub(super) fn parse_diff(printed: &[u8]) -> Changes {
    let mut changes = Changes::default();
    let Some(end) = printed.iter().rposition(|&byte| byte == 0) else {
        return changes;
    };
    let mut fields = printed[..end].split(|&byte| byte == 0);
    while let (Some(kind), Some(path)) = (fields.next(), fields.next()) {
        let list = match kind {
            b"A" => &mut changes.created,
            b"D" => &mut changes.deleted,
            [b'R', ..] => {
                let to = fields.next().unwrap_or_default();
                if changes.renamed.len() < FILES_CAP {
                    changes.renamed.push(Renamed {
                        from: clean::name(path),
                        to: clean::name(to),
                    });
                }
                continue;
            }
            _ => &mut changes.modified,
        };
        note_path(list, path, &mut false);
    }
    changes
}

/// Parses the output of `git log -z --format=%H%x00%ct%x00%s`.
pub(super) fn parse_log(printed: &[u8]) -> Vec<Commit> {
    let fields: Vec<&[u8]> = printed.split(|&byte| byte == 0).collect();
    let commit = |fields: &[&[u8]]| {
        let seconds: i64 = str::from_utf8(fields[1]).ok()?.parse().ok()?;
        let subject: String = clean::name(fields[2]).chars().take(500).collect();
        Some(Commit {
            sha: parse_id(fields[0])?,
            subject,
            at: DateTime::from_timestamp(seconds, 0)?,
        })
    };
    fields.chunks_exact(3).filter_map(commit).collect()
}

/// Parses the output of `git log -z --format=%x01%ct%x00%ae%x00%ce --name-only`; returns the files of which no commit from this second
/// on has an author or a committer with one of these mail addresses.
pub(super) fn parse_others(
    printed: &[u8],
    mails: &HashSet<Vec<u8>>,
    since: i64,
) -> HashSet<String> {
    let (mut own, mut others) = (HashSet::new(), HashSet::new());
    let mut is_own = false;
    let mut fields = printed.split(|&byte| byte == 0);
    while let Some(field) = fields.next() {
        if let Some(time) = field.strip_prefix(b"\x01") {
            let author = fields.next().unwrap_or_default();
            let committer = fields.next().unwrap_or_default();
            let time: Option<i64> = str::from_utf8(time).ok().and_then(|time| time.parse().ok());
            is_own = time.is_none_or(|time| time >= since)
                && (mails.contains(author) || mails.contains(committer));
        } else if !field.is_empty() {
            // The first name is on a line of its own.
            let file = clean::name(field.strip_prefix(b"\n").unwrap_or(field));
            let files = if is_own { &mut own } else { &mut others };
            files.insert(file);
        }
    }
    others.retain(|file| !own.contains(file));
    others
}

/// Returns the text if it is an object id: 40 hexadecimal digits, or 64 in newer repositories.
pub(super) fn parse_id(text: &[u8]) -> Option<String> {
    let plausible = matches!(text.len(), 40 | 64) && text.iter().all(u8::is_ascii_hexdigit);
    plausible.then(|| String::from_utf8_lossy(text).into_owned())
}
