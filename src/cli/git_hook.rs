//! `pitstop git-hook install|remove`: reports the commits that people make to a supervisor, by a post-commit hook.
//!
//! ```text
//!   git commit ─► post-commit (sh) ─► post-commit.before-pitstop, if there was a hook: its exit code counts
//!                      └─ in the background, if any supervisor runs: pitstop git-hook post-commit SHA
//!                               └─► POST /hooks/git-commit
//! ```
//!
//! The hook itself only asks git for the commit's id, so that a commit made right after it is not taken for this one, and
//! leaves everything else to a process of its own. With no supervisor on the machine it starts nothing at all.
//!
//! The supervisors of all directories are notified from the one in which `git commit` was called up to the top of the work
//! tree. All others are sent the work tree, too: the one whose agent has gone to work there counts the commit. In the middle of a
//! rebase none is notified: that is not a moment to stop.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use super::{
    hook, observer,
    out::{self, Failure, Outcome},
};
use pitstop_base::{clean, private_file::read_at_most};
use pitstop_core::api::wire::{self, CommitBody};

/// The hook's name, as git defines it.
const NAME: &str = "post-commit";

/// The name under which an earlier hook is kept, beside pitstop's.
const EARLIER: &str = "post-commit.before-pitstop";

/// The script that is installed.
const SCRIPT: &str = include_str!("../../assets/post-commit.sh");

/// The mark by which a hook of pitstop is recognised.
const MARK: &str = "# pitstop git-hook:";

/// The time that git may take to answer one question, in the background.
const GIT_LIMIT: Duration = Duration::from_secs(10);

/// The most bytes of an answer of git that are read: the names of some hundred thousand files.
const ANSWER_LIMIT: u64 = 32 * 1024 * 1024;

/// The most bytes of a commit's message that are reported: far above what is kept of it.
const MESSAGE_LIMIT: usize = 64 * 1024;

/// The most bytes of a hook that are read to find out whether it is pitstop's.
const HOOK_LIMIT: u64 = 64 * 1024;

/// Report commits made by hand to the supervisor of this directory.
///
/// The hook is put where git looks for it (`core.hooksPath` counts), runs a hook that was there before, prints nothing, and
/// neither fails nor holds up a commit. It may be installed again at any time.
#[derive(Args, Clone, Debug)]
pub struct GitHookArgs {
    /// What to do
    #[command(subcommand)]
    pub action: Action,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Action {
    /// Install the post-commit hook, or bring it up to date
    Install,
    /// Remove it, and put back the hook that was there before
    Remove,
}

/// The result of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
enum Done {
    Installed,
    Updated,
    Removed,
    Absent,
}

/// Runs the command; 0, or 1 if nothing could be done.
pub fn run(args: &GitHookArgs) -> Outcome {
    let change = match &args.action {
        Action::Install => install_hook,
        Action::Remove => remove_hook,
    };
    let dir = hooks_dir()?;
    let done = change(&dir)?;
    Ok(out::print(&describe_done(&dir, done, args.json)))
}

fn describe_done(dir: &Path, done: Done, json: bool) -> String {
    let path = dir.join(NAME);
    let word: &str = done.into();
    let earlier = Some(dir.join(EARLIER)).filter(|earlier| is_there(earlier));
    if json {
        let report = json!({
            "status": word, "path": path.to_string_lossy(),
            "earlier": earlier.map(|path| path.to_string_lossy().into_owned()),
        });
        return format!("{report}\n");
    }
    let shown = clean::name(path.as_os_str().as_bytes());
    let mut text = match done {
        Done::Absent => format!("pitstop's hook is not installed: {shown}\n"),
        _ => format!("{word}: {shown}\n"),
    };
    if let Some(earlier) = earlier {
        let earlier = clean::name(earlier.as_os_str().as_bytes());
        text.push_str(&format!(
            "the hook that was there before runs too: {earlier}\n"
        ));
    }
    text
}

/// Returns the directory in which git looks for hooks, by this directory's repository and its config.
fn hooks_dir() -> Result<PathBuf, Failure> {
    let output = Command::new("git")
        .args(["rev-parse", "--git-path", "hooks"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| {
            let hint = "install git, or put it on the PATH";
            out::failed(format!("cannot run git: {error}"), hint)
        })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said.lines().next().unwrap_or("nothing");
        return Err(out::failed(
            format!("this is not a git repository; git says: {first}"),
            "go to the repository whose commits are meant",
        ));
    }
    let path = PathBuf::from(OsString::from_vec(strip_line_feed(output.stdout)));
    std::path::absolute(&path).map_err(out::cannot("find", &path))
}

/// Returns the output of git without its final line feed.
fn strip_line_feed(mut printed: Vec<u8>) -> Vec<u8> {
    if printed.last() == Some(&b'\n') {
        printed.pop();
    }
    printed
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Reports whether pitstop wrote the hook; a link is not pitstop's, whatever it leads to.
fn is_ours(path: &Path) -> Result<bool, Failure> {
    let meta = fs::symlink_metadata(path).map_err(out::cannot("examine", path))?;
    if !meta.is_file() {
        return Ok(false);
    }
    let file = fs::File::open(path).map_err(out::cannot("read", path))?;
    let text = read_at_most(HOOK_LIMIT, file).map_err(out::cannot("read", path))?;
    Ok(text
        .split(|byte| *byte == b'\n')
        .any(|line| line.starts_with(MARK.as_bytes())))
}

/// Reports whether two hooks are the same: the tool that an earlier hook belongs to has written it again over pitstop's.
fn has_same_text(one: &Path, other: &Path) -> bool {
    let text = |path| read_at_most(HOOK_LIMIT, fs::File::open(path)?);
    matches!((text(one), text(other)), (Ok(one), Ok(other)) if one == other)
}

fn install_hook(dir: &Path) -> Result<Done, Failure> {
    fs::create_dir_all(dir).map_err(out::cannot("make", dir))?;
    let (path, earlier) = (dir.join(NAME), dir.join(EARLIER));
    let exe = env::current_exe().map_err(out::cannot("find", Path::new("pitstop")))?;
    let mut done = Done::Installed;
    if is_there(&path) {
        if is_ours(&path)? {
            done = Done::Updated;
        } else if is_there(&earlier) && !has_same_text(&path, &earlier) {
            let dir = dir.display();
            return Err(out::failed(
                format!("{dir} has both {NAME} and {EARLIER}, and neither is pitstop's"),
                "remove the one that is not wanted, then install again",
            ));
        } else {
            fs::rename(&path, &earlier).map_err(out::cannot("put aside", &path))?;
        }
    }
    let act = "write";
    let mut file = tempfile::Builder::new()
        .prefix(".post-commit-")
        .permissions(Permissions::from_mode(0o755))
        .tempfile_in(dir)
        .map_err(out::cannot(act, &path))?;
    file.write_all(&hook_script(exe.as_os_str()))
        .map_err(out::cannot(act, &path))?;
    // The process's umask may have removed the execute permission.
    let mode = Permissions::from_mode(0o755);
    let file = file.into_temp_path();
    fs::set_permissions(&file, mode).map_err(out::cannot(act, &path))?;
    file.persist(&path)
        .map_err(|error| out::cannot(act, &path)(error.error))?;
    Ok(done)
}

fn remove_hook(dir: &Path) -> Result<Done, Failure> {
    let (path, earlier) = (dir.join(NAME), dir.join(EARLIER));
    if !is_there(&path) && !is_there(&earlier) {
        return Ok(Done::Absent);
    }
    if is_there(&path) && !has_same_text(&path, &earlier) && !is_ours(&path)? {
        let path = path.display();
        return Err(out::failed(
            format!("the hook {path} is not pitstop's: nothing was changed"),
            "if it calls pitstop's hook, remove that line by hand",
        ));
    }
    if is_there(&earlier) {
        fs::rename(&earlier, &path).map_err(out::cannot("put back", &earlier))?;
    } else {
        fs::remove_file(&path).map_err(out::cannot("remove", &path))?;
    }
    Ok(Done::Removed)
}

/// Returns the hook, with the path of this program in it.
fn hook_script(exe: &OsStr) -> Vec<u8> {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let text = SCRIPT.replace("@UID@", &uid).replace("@EARLIER@", EARLIER);
    let (before, after) = text
        .split_once("@PITSTOP@")
        .expect("the template has a place for the path");
    // The path is quoted as one word of the shell, whatever bytes it has.
    let mut script = before.as_bytes().to_vec();
    script.push(b'\'');
    for byte in exe.as_bytes() {
        match byte {
            b'\'' => script.extend_from_slice(br"'\''"),
            byte => script.push(*byte),
        }
    }
    script.push(b'\'');
    script.extend_from_slice(after.as_bytes());
    script
}

/// Reports the commit of this id, as the hook asks for; the exit code is always 0.
pub fn report(args: &[OsString]) -> i32 {
    let sha = args.first().and_then(|sha| sha.to_str());
    hook::run_quietly(|| sha.map(post_commit));
    out::OK
}

/// Reports a commit to the supervisors. Git runs hooks at the top of the work tree.
fn post_commit(sha: &str) {
    let Ok(top) = env::current_dir() else { return };
    let below = env::var_os("GIT_PREFIX").unwrap_or_default();
    let doors = observer::find_doors(&top.join(below), Some(&top));
    let others = observer::other_doors(&doors);
    if doors.len() + others.len() == 0 || !wire::is_sha(sha) {
        return;
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&strip_line_feed(bytes)).into_owned();
    let message = [
        "log",
        "-1",
        "--format=%B",
        "--encoding=UTF-8",
        "--no-show-signature",
        sha,
    ];
    let message = ask_git(&message).map(|mut bytes| {
        bytes.truncate(MESSAGE_LIMIT);
        String::from_utf8_lossy(&bytes).trim_end().to_owned()
    });
    let mut body = CommitBody {
        environment: None,
        commit_sha: sha.to_owned(),
        commit_message: message,
        branch: ask_git(&["symbolic-ref", "--quiet", "--short", "HEAD"]).map(text),
        files_changed: files_changed(sha),
        work_tree: None,
    };
    for door in doors {
        observer::post_report(&door, "/hooks/git-commit", &body);
    }
    body.work_tree = Some(top);
    for door in others {
        observer::post_report(&door, "/hooks/git-commit", &body);
    }
}

/// Returns the number of files that a commit changed, against its first parent.
fn files_changed(sha: &str) -> Option<u64> {
    const NAMES: [&str; 4] = ["diff-tree", "-r", "--name-only", "-z"];
    let parent = format!("{sha}^1");
    let names = ask_git(&[&NAMES[..], &[&parent, sha]].concat())
        .or_else(|| ask_git(&[&NAMES[..], &["--root", "--no-commit-id", sha]].concat()))?;
    Some(memchr::memchr_iter(0, &names).count() as u64)
}

/// Asks git a question, within the limits of time and size. The repository is the one whose commit was just made, with
/// its owner's git and in its owner's environment: what its config may start has been started already.
fn ask_git(args: &[&str]) -> Option<Vec<u8>> {
    let mut child = Command::new("git")
        .args(["--no-pager", "--no-optional-locks"])
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let stdout = child.stdout.take()?;
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut printed = Vec::new();
        let read = stdout.take(ANSWER_LIMIT).read_to_end(&mut printed);
        sender.send(read.map(|_| printed)).ok();
    });
    let printed = receiver.recv_timeout(GIT_LIMIT);
    if !matches!(printed, Ok(Ok(_))) {
        child.kill().ok();
    }
    let status = child.wait().ok()?;
    printed.ok()?.ok().filter(|_| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_any_bytes_is_one_word_of_the_script() {
        let exe = OsStr::from_bytes(b"/a b/it's \xff$(x)`y`");
        let text = hook_script(exe);
        let word = b"\npitstop='/a b/it'\\''s \xff$(x)`y`'\n";
        assert!(text.windows(word.len()).any(|part| part == word));
        assert!(text.starts_with(b"#!/bin/sh\n# pitstop git-hook:"));
    }

    #[test]
    fn two_foreign_hooks_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(NAME), "one").unwrap();
        fs::write(dir.path().join(EARLIER), "other").unwrap();
        let refused = install_hook(dir.path()).unwrap_err().error;
        assert!(refused.ends_with("and neither is pitstop's"));
        assert_eq!(fs::read_to_string(dir.path().join(NAME)).unwrap(), "one");
    }

    #[test]
    fn a_link_is_foreign_and_survives() {
        let dir = tempfile::tempdir().unwrap();
        let hook = dir.path().join(NAME);
        fs::write(dir.path().join("shared"), format!("#!/bin/sh\n{MARK}\n")).unwrap();
        std::os::unix::fs::symlink("shared", &hook).unwrap();
        let refused = remove_hook(dir.path()).unwrap_err().error;
        assert!(refused.ends_with("is not pitstop's: nothing was changed"));
        assert_eq!(install_hook(dir.path()).unwrap(), Done::Installed);
        assert_eq!(remove_hook(dir.path()).unwrap(), Done::Removed);
        assert_eq!(fs::read_link(&hook).unwrap(), Path::new("shared"));
    }

    #[test]
    fn an_earlier_hook_is_put_back_also_where_ours_was_deleted_by_hand() {
        let dir = tempfile::tempdir().unwrap();
        let hook = dir.path().join(NAME);
        fs::write(&hook, "theirs").unwrap();
        assert_eq!(install_hook(dir.path()).unwrap(), Done::Installed);
        fs::remove_file(&hook).unwrap();
        assert_eq!(remove_hook(dir.path()).unwrap(), Done::Removed);
        assert_eq!(fs::read_to_string(&hook).unwrap(), "theirs");
        assert!(remove_hook(dir.path()).is_err(), "theirs is left alone");
    }

    #[test]
    fn a_hook_that_has_written_itself_again_over_ours_is_left_with_no_copy_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let hook = dir.path().join(NAME);
        fs::write(&hook, "theirs").unwrap();
        assert_eq!(install_hook(dir.path()).unwrap(), Done::Installed);
        fs::remove_file(&hook).unwrap();
        fs::write(&hook, "theirs").unwrap();
        assert_eq!(remove_hook(dir.path()).unwrap(), Done::Removed);
        assert_eq!(fs::read_to_string(&hook).unwrap(), "theirs");
        assert!(!is_there(&dir.path().join(EARLIER)));
    }
}
