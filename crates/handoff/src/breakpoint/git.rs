//! Queries git: a thin runner and pure parsing functions.
//!
//! The repository is not trusted. Its config can name programs for nearly everything git does, so the runner closes
//! each of these entry points for its own queries (`status`, `log` and `diff`):
//!
//! | entry point | closed by |
//! |---|---|
//! | hooks, file system monitor, external diff, pager | settings on the command line |
//! | clean filters, which `status` runs to compare content | each filter found in the config is set to nothing |
//! | signature checks of `log` (`gpg.program`) | `log.showSignature` off |
//! | fetching of missing objects (`core.sshCommand`, transports) | no lazy fetch, no protocol allowed |
//! | submodules, whose own config applies inside | not entered |
//! | `GIT_*` variables, a relative `PATH` | environment built from nothing, `git` found in absolute directories only |
//!
//! A file under a filter such as git-lfs may be listed as modified when only its time stamp changed; that is the cost.
//! Every answer is bounded in time and size. A missing repository, a missing git and a lack of commits are answers, not errors.

use std::{
    collections::HashSet,
    env,
    ffi::{OsStr, OsString},
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, Command},
    time::{Instant, timeout_at},
};

use pitstop_base::clean;

/// The time that git may take for all queries together; a cold cache on a large repository needs a second or two.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// The most output that git may print for one query, in bytes.
const OUTPUT_CAP: usize = 4 * 1024 * 1024;

/// The most of git's error output that is kept, in bytes.
const COMPLAINT_CAP: usize = 16 * 1024;

/// The most files that each list holds; a longer list does not help a reader.
const FILES_CAP: usize = 2_000;

/// The most filters that are switched off one by one; a repository with more is not queried.
const FILTERS_CAP: usize = 200;

/// The answer of git about a directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GitState {
    /// The directory is in a repository.
    Facts(Box<GitFacts>),
    /// The directory is not in a repository.
    NoRepository,
    /// The `git` program was not found.
    NoGit,
    /// Git was queried and did not answer; the reason is safe to show.
    Unreadable(String),
}

/// The facts about a repository. All names are made safe to show, so a name that had unsafe characters is no longer a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GitFacts {
    /// The branch; `None` when the head is detached.
    pub branch: Option<String>,
    /// The full id of the head commit; none before the first commit.
    pub head: Option<String>,
    /// True if the head is not on a branch.
    pub detached: bool,
    /// The top of the work tree, if it is a linked one and not the repository's main one.
    pub work_tree: Option<String>,
    /// The other work trees of the repository.
    pub other_trees: Vec<OtherTree>,
    /// The file to which git appends a line whenever the head of this work tree moves.
    pub head_log: PathBuf,
    /// The last commits, newest first.
    pub commits: Vec<Commit>,
    /// The changed files, relative to the top of the repository like all other files here; conflicts are included.
    pub modified: Vec<String>,
    /// The new files, tracked or not.
    pub created: Vec<String>,
    /// The files that are gone.
    pub deleted: Vec<String>,
    /// The files that moved.
    pub renamed: Vec<Renamed>,
    /// The files with unresolved conflicts, which are also listed as changed.
    pub conflicts: Vec<String>,
    /// The operation that is in progress: `rebase of topic, step 2 of 5`, `merge`.
    pub operation: Option<String>,
    /// True if there were more files than the lists hold, or than git may print.
    pub truncated: bool,
    /// The changes since the run began, committed or not; `None` if they are not known, as in another repository.
    pub since_start: Option<Changes>,
}

impl GitFacts {
    /// Returns the files that git reports as having uncommitted changes, including those that are gone.
    pub fn uncommitted_files(&self) -> impl Iterator<Item = &String> {
        let renamed = self.renamed.iter().map(|one| &one.to);
        let lists = [&self.modified, &self.created, &self.deleted];
        lists.into_iter().flatten().chain(renamed)
    }

    /// Returns the other work trees that a shell command, or the path of a file, names. One work tree may be inside another, whose path
    /// does not name that.
    #[must_use]
    pub fn trees_named_in(&self, text: &str) -> Vec<&OtherTree> {
        let mut tops: Vec<&String> = self.other_trees.iter().map(|tree| &tree.top).collect();
        tops.extend(&self.work_tree);
        tops.sort_by_key(|top| std::cmp::Reverse(top.len()));
        let mut rest = text.to_owned();
        let mut named = HashSet::new();
        for top in tops {
            let is_whole = |(at, _): (usize, &str)| ends_a_name(&rest[at + top.len()..]);
            if !top.is_empty() && rest.match_indices(top.as_str()).any(is_whole) {
                rest = rest.replace(top, "");
                named.insert(top);
            }
        }
        let trees = self.other_trees.iter();
        let is_named = |tree: &&OtherTree| named.contains(&tree.top) || tree.is_named_in(&rest);
        trees.filter(is_named).collect()
    }
}

/// Another work tree of the same repository.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OtherTree {
    /// Its top directory.
    pub top: String,
    /// The branch; `None` when the head is detached.
    pub branch: Option<String>,
    /// The last commits that were made in it, newest first, as git logs them there.
    pub commits: Vec<Commit>,
}

impl OtherTree {
    /// Reports whether a shell command, or the path of a file, names the directory relative to another one.
    fn is_named_in(&self, text: &str) -> bool {
        let name = self.top.rsplit('/').next().unwrap_or_default();
        let is_whole = |(at, _): (usize, &str)| {
            let before = &text[..at];
            let is_path = before.ends_with('/')
                || ["cd ", "-C ", "add "]
                    .iter()
                    .any(|word| before.ends_with(word));
            is_path && ends_a_name(&text[at + name.len()..])
        };
        !name.is_empty() && text.match_indices(name).any(is_whole)
    }
}

/// Reports whether a name that this text follows ends there.
fn ends_a_name(rest: &str) -> bool {
    let next = rest.chars().next();
    next.is_none_or(|next| !next.is_alphanumeric() && !"-_.".contains(next))
}

/// The tracked files that differ between two states, relative to the top of the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Changes {
    /// The files that are in both states.
    pub modified: Vec<String>,
    /// The files that are in the later state only.
    pub created: Vec<String>,
    /// The files that are in the earlier state only.
    pub deleted: Vec<String>,
    /// The files that have another name in the later state.
    pub renamed: Vec<Renamed>,
}

/// The state of the repository when a run began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunStart {
    /// The full id of the head commit; none before the first commit.
    pub head: Option<String>,
    /// The files with uncommitted changes then.
    pub uncommitted: Vec<String>,
}

impl From<&GitFacts> for RunStart {
    fn from(facts: &GitFacts) -> Self {
        Self {
            head: facts.head.clone(),
            uncommitted: facts.uncommitted_files().cloned().collect(),
        }
    }
}

/// The id of the empty tree, which git knows in every repository.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Commit {
    /// The commit's full id.
    pub sha: String,
    /// The first line of its message.
    pub subject: String,
    /// The time at which it was committed.
    pub at: DateTime<Utc>,
}

/// A file that moved.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Renamed {
    /// The former path.
    pub from: String,
    /// The current path.
    pub to: String,
}

/// Queries git for the state of `dir`, its last `commits` commits and the changes since the run began.
pub async fn facts(dir: &Path, commits: usize, start: Option<&RunStart>) -> GitState {
    let Some(program) = find_git() else {
        return GitState::NoGit;
    };
    let mut runner = Runner {
        program,
        dir,
        deadline: Instant::now() + TIME_LIMIT,
        filters: Vec::new(),
    };
    match runner.query_facts(commits, start).await {
        Ok(facts) => GitState::Facts(Box::new(facts)),
        Err(GitError::NoRepository) => GitState::NoRepository,
        Err(fault) => {
            tracing::warn!(%fault, "git gave no facts");
            GitState::Unreadable(fault.to_string())
        }
    }
}

/// The reason why git gave no answer.
#[derive(Debug, thiserror::Error)]
enum GitError {
    #[error("not in a git repository")]
    NoRepository,
    #[error("git took longer than {} s", TIME_LIMIT.as_secs())]
    TimedOut,
    #[error("git could not be run: {0}")]
    Io(#[from] io::Error),
    #[error("git refused: {0}")]
    Refused(String),
    #[error("the repository's config is too large to be made safe")]
    Untamable,
}

/// The reason why reading git's output ended early.
enum Stopped {
    Full,
    Io(io::Error),
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The output of a run of git.
struct Printed {
    stdout: Vec<u8>,
    truncated: bool,
}

struct Runner<'a> {
    program: PathBuf,
    dir: &'a Path,
    deadline: Instant,
    /// The names of the filters that the config defines.
    filters: Vec<OsString>,
}

impl Runner<'_> {
    async fn query_facts(
        &mut self,
        commits: usize,
        start: Option<&RunStart>,
    ) -> Result<GitFacts, GitError> {
        let config = self
            .run_git(&["config", "--list", "--name-only", "-z"])
            .await?;
        self.filters = filters_in(&config.stdout);
        if config.truncated || self.filters.len() > FILTERS_CAP {
            return Err(GitError::Untamable);
        }
        let status = self
            .run_git(&[
                "status",
                "--porcelain=v2",
                "--branch",
                "-z",
                "--untracked-files=all",
                "--ignore-submodules=dirty",
                "--no-ahead-behind",
            ])
            .await?;
        let mut facts = parse_status(&status.stdout);
        facts.truncated |= status.truncated;
        let directory = self.run_git(&["rev-parse", "--absolute-git-dir"]).await?;
        let directory = directory.stdout.trim_ascii_end();
        let directory = Path::new(OsStr::from_bytes(directory));
        facts.operation = operation_in(directory);
        facts.work_tree = work_tree_of(directory);
        facts.other_trees = other_trees(directory);
        facts.head_log = directory.join("logs/HEAD");
        if let Some(head) = facts.head.as_deref().filter(|_| commits > 0) {
            let count = format!("--max-count={commits}");
            let log = self
                .run_git(&[
                    "log",
                    "-z",
                    &count,
                    "--format=%H%x00%ct%x00%s",
                    "--encoding=UTF-8",
                    "--no-color",
                    "--no-decorate",
                    "--no-notes",
                    "--no-mailmap",
                    "--no-show-signature",
                    head,
                    "--",
                ])
                .await?;
            facts.commits = parse_log(&log.stdout);
        }
        if let Some(start) = start {
            facts.since_start = self.changes_since(start).await?;
        }
        Ok(facts)
    }

    /// Returns the changes since the run began. Git refuses if that commit is not known: in another repository, or after pruning.
    async fn changes_since(&self, start: &RunStart) -> Result<Option<Changes>, GitError> {
        let head = start.head.as_deref().unwrap_or(EMPTY_TREE);
        let Some(head) = parse_id(head.as_bytes()) else {
            return Ok(None);
        };
        let args = [
            "diff",
            "--name-status",
            "-z",
            "--find-renames",
            "--no-ext-diff",
            "--no-textconv",
            &head,
            "--",
        ];
        match self.run_git(&args).await {
            Ok(diff) => Ok(Some(parse_diff(&diff.stdout))),
            Err(GitError::Refused(_)) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    async fn run_git(&self, args: &[&str]) -> Result<Printed, GitError> {
        let mut child = self.git_command(args).spawn()?;
        let mut printed = Printed {
            stdout: Vec::new(),
            truncated: false,
        };
        let mut complaint = Vec::new();
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(io::Error::other("no pipes").into());
        };
        // Read both at once, else a full pipe of one blocks git while we wait for the other; and stop when stdout
        // reaches its cap, because then git waits for us.
        let reading = async {
            tokio::try_join!(
                async {
                    if read_capped(stdout, &mut printed.stdout, OUTPUT_CAP).await? {
                        return Err(Stopped::Full);
                    }
                    Ok(())
                },
                async { Ok(read_all(stderr, &mut complaint, COMPLAINT_CAP).await?) },
            )
        };
        let read = timeout_at(self.deadline, reading).await;
        if !matches!(read, Ok(Ok(_))) {
            kill_group(&mut child).await;
        }
        match read {
            Ok(Ok(_)) => {}
            Ok(Err(Stopped::Full)) => {
                printed.truncated = true;
                return Ok(printed);
            }
            Ok(Err(Stopped::Io(error))) => return Err(error.into()),
            Err(_) => return Err(GitError::TimedOut),
        }
        let Ok(status) = timeout_at(self.deadline, child.wait()).await else {
            kill_group(&mut child).await;
            return Err(GitError::TimedOut);
        };
        if status?.success() {
            return Ok(printed);
        }
        let complaint = String::from_utf8_lossy(&complaint);
        if complaint.contains("not a git repository") {
            return Err(GitError::NoRepository);
        }
        let first = complaint.lines().next().unwrap_or("no reason given");
        Err(GitError::Refused(
            clean::one_line(first).chars().take(300).collect(),
        ))
    }

    fn git_command(&self, args: &[&str]) -> Command {
        const SETTINGS: [&str; 11] = [
            "core.fsmonitor=",
            "core.hooksPath=/dev/null",
            "core.pager=cat",
            "core.sshCommand=false",
            "core.askPass=false",
            "diff.external=",
            "diff.ignoreSubmodules=dirty",
            "log.showSignature=false",
            "protocol.allow=never",
            "safe.bareRepository=explicit",
            "status.submoduleSummary=false",
        ];
        let mut command = Command::new(&self.program);
        command.args(["--no-pager", "--no-optional-locks"]);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.arg("-C").arg(self.dir).args(args);
        command.env_clear();
        for kept in ["HOME", "XDG_CONFIG_HOME"] {
            if let Some(value) = env::var_os(kept) {
                command.env(kept, value);
            }
        }
        command
            .env("PATH", absolute_path())
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            // A variable that is set but empty allows no protocol at all, whatever the config allows.
            .env("GIT_ALLOW_PROTOCOL", "");
        // Pass these by variables and not by `-c`, which cannot name a filter with an equals sign in it.
        let mut count = 0;
        for filter in &self.filters {
            for (key, value) in [
                ("clean", ""),
                ("smudge", ""),
                ("process", ""),
                ("required", "false"),
            ] {
                let mut name = OsString::from("filter.");
                name.push(filter);
                name.push(".");
                name.push(key);
                command.env(format!("GIT_CONFIG_KEY_{count}"), name);
                command.env(format!("GIT_CONFIG_VALUE_{count}"), value);
                count += 1;
            }
        }
        command
            .env("GIT_CONFIG_COUNT", count.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Give it a process group of its own, so that all processes that it starts end with it.
            .process_group(0)
            .kill_on_drop(true);
        command
    }
}

/// Reads until the end or the cap, in bytes; returns whether there is more than the cap.
async fn read_capped(
    from: impl AsyncRead + Unpin,
    into: &mut Vec<u8>,
    cap: usize,
) -> io::Result<bool> {
    from.take(cap as u64 + 1).read_to_end(into).await?;
    let full = into.len() > cap;
    into.truncate(cap);
    Ok(full)
}

/// Reads to the end, and keeps the bytes below the cap.
pub async fn read_all(
    mut from: impl AsyncRead + Unpin,
    into: &mut Vec<u8>,
    cap: usize,
) -> io::Result<()> {
    read_capped(&mut from, into, cap).await?;
    tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
    Ok(())
}

async fn kill_group(child: &mut Child) {
    let group = child
        .id()
        .and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
    if let Some(group) = group
        && let Err(error) =
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL)
    {
        tracing::warn!(%error, "cannot kill git's process group");
    }
    if let Err(error) = child.kill().await {
        tracing::warn!(%error, "cannot reap git");
    }
}

/// Returns the search path without relative entries: a relative one would let the repository supply its own `git`.
fn absolute_path() -> OsString {
    let path = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let absolute = env::split_paths(&path).filter(|entry| entry.is_absolute());
    env::join_paths(absolute).unwrap_or_default()
}

fn find_git() -> Option<PathBuf> {
    env::split_paths(&absolute_path())
        .map(|entry| entry.join("git"))
        .find(|program| {
            program.is_file()
                && rustix::fs::access(program.as_path(), rustix::fs::Access::EXEC_OK).is_ok()
        })
}

/// Returns the operation that is in progress, according to the files that git keeps for it in its directory.
fn operation_in(directory: &Path) -> Option<String> {
    const LONGEST: u64 = 256;
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
    let marks = [
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("BISECT_LOG", "bisection"),
    ];
    let found = marks.into_iter().find(|(mark, _)| has(mark));
    found.map(|(_, what)| what.to_owned())
}

/// Returns the top of the linked work tree that this git directory belongs to, as git records it there.
fn work_tree_of(directory: &Path) -> Option<String> {
    const LONGEST: u64 = 4096;
    let trees = directory.parent()?.file_name()?;
    let text = read_start(&directory.join("gitdir"), LONGEST)?;
    let top = text.trim_ascii_end().strip_suffix(b"/.git")?;
    (trees == "worktrees" && top.starts_with(b"/")).then(|| clean::name(top))
}

/// Returns the work trees of the repository beside the one that this git directory belongs to.
fn other_trees(directory: &Path) -> Vec<OtherTree> {
    const MOST: usize = 64;
    let main = directory
        .parent()
        .filter(|trees| trees.ends_with("worktrees"));
    let main = main.and_then(Path::parent);
    let listed = std::fs::read_dir(main.unwrap_or(directory).join("worktrees"));
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
    let commits = read_end(&directory.join("logs/HEAD")).unwrap_or_default();
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
fn logged_commits(log: &[u8]) -> Vec<Commit> {
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

/// Reads the first bytes of a file, at most so many.
fn read_start(path: &Path, most: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    io::Read::read_to_end(&mut io::Read::take(file, most), &mut bytes).ok()?;
    Some(bytes)
}

/// Reads the last 8 KiB of a file.
fn read_end(path: &Path) -> Option<Vec<u8>> {
    const MOST: u64 = 8 * 1024;
    let mut bytes = Vec::new();
    let mut file = std::fs::File::open(path).ok()?;
    let from = file.metadata().ok()?.len().saturating_sub(MOST);
    io::Seek::seek(&mut file, io::SeekFrom::Start(from)).ok()?;
    io::Read::read_to_end(&mut io::Read::take(file, MOST), &mut bytes).ok()?;
    Some(bytes)
}

/// Returns the names of all filters in a list of config keys that are each ended by NUL.
fn filters_in(keys: &[u8]) -> Vec<OsString> {
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
#[must_use]
fn parse_status(printed: &[u8]) -> GitFacts {
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
    facts
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
fn parse_diff(printed: &[u8]) -> Changes {
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
fn parse_log(printed: &[u8]) -> Vec<Commit> {
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

/// Returns the text if it is an object id: 40 hexadecimal digits, or 64 in newer repositories.
fn parse_id(text: &[u8]) -> Option<String> {
    let plausible = matches!(text.len(), 40 | 64) && text.iter().all(u8::is_ascii_hexdigit);
    plausible.then(|| String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEAD: &str = "0123456789abcdef0123456789abcdef01234567";

    fn status(entries: &[&str]) -> GitFacts {
        parse_status(format!("{}\0", entries.join("\0")).as_bytes())
    }

    #[test]
    fn the_head_may_be_on_a_branch_detached_or_not_yet_there() {
        let on = status(&[
            &format!("# branch.oid {HEAD}"),
            "# branch.head fix/two words",
        ]);
        assert_eq!(
            (on.head.as_deref(), on.branch.as_deref(), on.detached),
            (Some(HEAD), Some("fix/two words"), false)
        );
        let off = status(&[&format!("# branch.oid {HEAD}"), "# branch.head (detached)"]);
        assert_eq!((off.branch, off.detached), (None, true));
        let empty = status(&["# branch.oid (initial)", "# branch.head main"]);
        assert_eq!((empty.head, empty.branch.as_deref()), (None, Some("main")));
    }

    #[test]
    fn every_kind_of_change_has_its_list() {
        let ids = format!("100644 100644 100644 {HEAD} {HEAD}");
        let facts = status(&[
            &format!("1 .M N... {ids} src/a b.rs"),
            &format!("1 A. N... {ids} added.rs"),
            &format!("1 AD N... {ids} came-and-went.rs"),
            &format!("1 .D N... {ids} gone.rs"),
            &format!("1 MM N... {ids} both.rs"),
            &format!("2 R. N... {ids} R100 new name.rs"),
            "old name.rs",
            &format!("2 C. N... {ids} C75 copy.rs"),
            "original.rs",
            &format!("u UU N... 100644 100644 100644 100644 {HEAD} {HEAD} {HEAD} conflict.rs"),
            "? un tracked.txt",
            "? another/repository/",
            "! ignored.txt",
            "9 from the future",
        ]);
        assert_eq!(facts.modified, ["src/a b.rs", "both.rs", "conflict.rs"]);
        assert_eq!(facts.created, ["added.rs", "copy.rs", "un tracked.txt"]);
        assert_eq!(facts.deleted, ["gone.rs"]);
        assert_eq!(
            facts.renamed,
            [Renamed {
                from: "old name.rs".to_owned(),
                to: "new name.rs".to_owned()
            }]
        );
        assert!(!facts.truncated);
    }

    #[test]
    fn hostile_names_are_made_safe() {
        let facts = parse_status(b"? a\x1b[2J\nb\0? \xff\xfe.txt\0? \xe2\x80\xaegnp.exe\0");
        assert_eq!(
            facts.created,
            ["a\\u{1b}[2J\\nb", "\\xff\\xfe.txt", "\\u{202e}gnp.exe"]
        );
    }

    #[test]
    fn lists_are_bounded_and_a_cut_entry_is_left_out() {
        let many = "? name\0".repeat(FILES_CAP + 5);
        let facts = parse_status(many.as_bytes());
        assert_eq!((facts.created.len(), facts.truncated), (FILES_CAP, true));
        assert_eq!(parse_status(b"? whole\0? cu").created, ["whole"]);
    }

    #[test]
    fn a_work_tree_is_named_by_its_path_and_not_by_a_word() {
        let named = |own: Option<&str>, tops: &[&str], text: &str| {
            let tree = |top: &&str| OtherTree {
                top: (*top).to_owned(),
                branch: None,
                commits: Vec::new(),
            };
            let facts = GitFacts {
                work_tree: own.map(str::to_owned),
                other_trees: tops.iter().map(tree).collect(),
                ..GitFacts::default()
            };
            let named = facts.trees_named_in(text).into_iter();
            named.map(|tree| tree.top.clone()).collect::<Vec<_>>()
        };
        for (top, text, is_named) in [
            ("/w/fix", "cd ../fix && cargo test", true),
            ("/w/fix", "git -C fix log", true),
            ("/w/fix", "git worktree add ../fix -b x", true),
            ("/w/fix", "cat \"/w/fix/src/a.rs\"", true),
            ("/w/fix", "npm run fix", false),
            ("/w/fix", "cd ../fix-2; cd ../fix.old; ls /w/fixes", false),
            ("/w/été 1", "cd '/w/été 1' && ls", true),
            ("/w/仕事", "cd ../仕事", true),
            ("", "cd /", false),
        ] {
            let expected = if is_named { vec![top] } else { vec![] };
            assert_eq!(named(None, &[top], text), expected, "{text}");
        }
        // Inside of another one.
        let (main, moon) = ("/w/p", "/w/p/.claude/worktrees/moon");
        let file = "/w/p/.claude/worktrees/moon/src/p.rs";
        assert_eq!(named(Some(moon), &[main], file), [""; 0]);
        assert_eq!(named(Some(moon), &[main], "cd /w/p && git log"), [main]);
        assert_eq!(named(None, &[moon], file), [moon]);
        assert_eq!(named(Some("/w/q"), &[main, moon], file), [moon]);
    }

    #[test]
    fn the_log_of_a_head_names_the_commits_that_were_made_there() {
        let line = |what: &str| {
            format!(
                "{} {HEAD} A B <a@b> 1700000000 +0100\t{what}\n",
                "0".repeat(40)
            )
        };
        let made = [
            "commit (initial): one",
            "commit: two: 2",
            "commit (amend): three",
            "cherry-pick: four",
        ];
        let other = [
            "checkout: moving from a to b",
            "reset: moving to HEAD",
            "",
            "rebase (finish): returning",
        ];
        let log = made
            .iter()
            .chain(&other)
            .map(|what| line(what))
            .collect::<String>();
        let commits = logged_commits(format!("half a line\tcommit: no\n{log}").as_bytes());
        let subjects: Vec<&str> = commits.iter().map(|one| one.subject.as_str()).collect();
        assert_eq!(subjects, ["four", "three", "two: 2", "one"]);
        assert_eq!(
            (&*commits[0].sha, commits[0].at.timestamp()),
            (HEAD, 1_700_000_000)
        );
    }

    #[test]
    fn commits_are_read_and_bad_ones_left_out() {
        let log = format!(
            "{HEAD}\x001700000000\x00subject: with\ttab\0nonsense\x001\x00x\0{HEAD}\x00soon\x00x\0"
        );
        let commits = parse_log(log.as_bytes());
        assert_eq!(commits.len(), 1);
        assert_eq!(commits[0].subject, "subject: with\\ttab");
        assert_eq!(commits[0].at.timestamp(), 1_700_000_000);
    }

    #[test]
    fn filters_are_found_whatever_they_are_called() {
        let keys =
            b"user.name\0filter.lfs.clean\0filter.lfs.process\0filter.a.b=c.d.clean\0filter.bare\0";
        assert_eq!(filters_in(keys), ["a.b=c.d", "lfs"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(
            prop_oneof![Just(0u8), Just(b' '), Just(b'1'), Just(b'2'), Just(b'R'), any::<u8>()], 0..200)) {
            let facts = parse_status(&bytes);
            let names = facts.modified.iter().chain(&facts.created).chain(&facts.deleted);
            prop_assert!(names.clone().all(|name| !name.chars().any(char::is_control)));
            parse_log(&bytes);
            parse_diff(&bytes);
        }
    }
}
