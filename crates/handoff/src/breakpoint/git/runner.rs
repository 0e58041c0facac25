//! Runs git, with every entry point closed that a repository may open, and bounded in time and output.

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

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, Command},
    time::{Instant, timeout_at},
};

use super::{
    Changes, GitFacts, GitState, RunStart,
    directory::{logged_mails, logged_notes, operation_in, other_trees, work_tree_of},
    parse::{
        filters_in, parse_diff, parse_id, parse_log, parse_others, parse_status, parse_submodules,
    },
};
use pitstop_base::clean;

/// The time that git may take for all queries together; a cold cache on a large repository needs a second or two.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// The most output that git may print for one query, in bytes.
const OUTPUT_CAP: usize = 4 * 1024 * 1024;

/// The most of git's error output that is kept, in bytes.
const COMPLAINT_CAP: usize = 16 * 1024;

/// The most filters that are switched off one by one; a repository with more is not queried.
const FILTERS_CAP: usize = 200;

/// The most submodules that are queried; each takes some milliseconds.
const SUBMODULES_CAP: usize = 32;

/// The most commits since the run began whose authors are looked at; each takes a fraction of a millisecond.
const AUTHORS_CAP: usize = 1_000;

/// The id of the empty tree, which git knows in every repository.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// Queries git for the state of `dir`, its last `commits` commits and the changes since the run began.
pub async fn facts(dir: &Path, commits: usize, start: Option<&RunStart>) -> GitState {
    let Some(program) = find_git() else {
        return GitState::NoGit;
    };
    let mut runner = Runner {
        program: &program,
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
    program: &'a Path,
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
        let mut facts = self.query_status().await?;
        let places = self
            .run_git("rev-parse --show-cdup --absolute-git-dir")
            .await?;
        let places = places.stdout.trim_ascii_end();
        let up = places.iter().position(|&byte| byte == b'\n').unwrap_or(0);
        let (up, directory) = (&places[..up], places[up..].trim_ascii_start());
        let directory = Path::new(OsStr::from_bytes(directory));
        self.add_submodules(&self.dir.join(OsStr::from_bytes(up)), &mut facts)
            .await;
        facts.operation = operation_in(directory);
        facts.work_tree = work_tree_of(directory);
        facts.other_trees = other_trees(directory);
        facts.head_log = directory.join("logs/HEAD");
        facts.notes = logged_notes(directory, facts.detached);
        if facts.head.is_none() {
            facts.notes.push("no commit yet".to_owned());
        }
        if let Some(head) = facts.head.as_deref().filter(|_| commits > 0) {
            let log = format!(
                "log -z --max-count={commits} --format=%H%x00%ct%x00%s --encoding=UTF-8 --no-color --no-decorate \
                 --no-notes --no-mailmap --no-show-signature {head} --"
            );
            let log = self.run_git(&log).await?;
            facts.commits = parse_log(&log.stdout);
        }
        if let Some(start) = start {
            facts.since_start = self.changes_since(start).await?;
            if let (Some(changes), Some(from), Some(to)) =
                (&mut facts.since_start, &start.head, &facts.head)
                && from != to
            {
                let since = start.since.map_or(i64::MIN, |since| since.timestamp());
                changes.leave_out(&self.files_of_others(directory, from, to, since).await);
            }
        }
        Ok(facts)
    }

    /// Queries the state of the work tree, after the filters of its config are switched off.
    async fn query_status(&mut self) -> Result<GitFacts, GitError> {
        let config = self.run_git("config --list --name-only -z").await?;
        self.filters = filters_in(&config.stdout);
        if config.truncated || self.filters.len() > FILTERS_CAP {
            return Err(GitError::Untamable);
        }
        let status = self
            .run_git(
                "status --porcelain=v2 --branch -z --untracked-files=all --ignore-submodules=dirty --no-ahead-behind",
            )
            .await?;
        let mut facts = parse_status(&status.stdout);
        facts.truncated |= status.truncated;
        Ok(facts)
    }

    /// Adds the uncommitted changes within submodules, of which each is queried by itself and as carefully as the repository.
    async fn add_submodules(&self, top: &Path, facts: &mut GitFacts) {
        let Ok(real) = top.canonicalize() else { return };
        let mut left = vec![PathBuf::new()];
        let mut count = 0;
        while let Some(place) = left.pop() {
            let dir = top.join(&place);
            // A link may lead elsewhere.
            if !dir.canonicalize().is_ok_and(|dir| dir.starts_with(&real)) {
                continue;
            }
            let mut inner = Runner {
                dir: &dir,
                filters: Vec::new(),
                ..*self
            };
            if !place.as_os_str().is_empty() {
                count += 1;
                if count > SUBMODULES_CAP {
                    facts.truncated = true;
                    return;
                }
                match inner.query_status().await {
                    Ok(inside) => {
                        facts.add_inside(&clean::name(place.as_os_str().as_bytes()), inside);
                    }
                    Err(error) => tracing::warn!(%error, "a submodule gave no facts"),
                }
            }
            if !dir.join(".gitmodules").is_file() {
                continue;
            }
            let listed = r"config -z --file .gitmodules --get-regexp ^submodule\..*\.path$";
            if let Ok(listed) = inner.run_git(listed).await {
                let inside = parse_submodules(&listed.stdout).map(|path| place.join(path));
                // One that is not checked out has no changes.
                left.extend(inside.filter(|path| top.join(path).join(".git").exists()));
            }
        }
    }

    /// Returns the changes since the run began. Git refuses if that commit is not known: in another repository, or after pruning.
    async fn changes_since(&self, start: &RunStart) -> Result<Option<Changes>, GitError> {
        let head = start.head.as_deref().unwrap_or(EMPTY_TREE);
        let Some(head) = parse_id(head.as_bytes()) else {
            return Ok(None);
        };
        let diff =
            format!("diff --name-status -z --find-renames --no-ext-diff --no-textconv {head} --");
        match self.run_git(&diff).await {
            Ok(diff) => Ok(Some(parse_diff(&diff.stdout))),
            Err(GitError::Refused(_)) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Returns the files that only other people, or commits from before this second, have changed between two commits: a pull, a merge
    /// and a change of the branch bring these. If that is not known, there are none.
    async fn files_of_others(
        &self,
        directory: &Path,
        from: &str,
        to: &str,
        since: i64,
    ) -> HashSet<String> {
        let mails = logged_mails(directory);
        let log = format!(
            "log -z --max-count={AUTHORS_CAP} --format=%x01%ct%x00%ae%x00%ce --name-only --no-renames --no-ext-diff \
             --no-textconv --no-color --no-decorate --no-notes --no-mailmap --no-show-signature {from}...{to} --"
        );
        match self.run_git(&log).await {
            Ok(log) => {
                let commits = log.stdout.split(|&byte| byte == 1).skip(1).count();
                let is_all = !log.truncated && commits < AUTHORS_CAP && !mails.is_empty();
                let others = is_all.then(|| parse_others(&log.stdout, &mails, since));
                others.unwrap_or_default()
            }
            Err(error) => {
                tracing::warn!(%error, "the authors of the commits are not known");
                HashSet::new()
            }
        }
    }

    /// Runs git with these arguments, none of which has a blank in it.
    async fn run_git(&self, args: &str) -> Result<Printed, GitError> {
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

    fn git_command(&self, args: &str) -> Command {
        const SETTINGS: &str = "core.fsmonitor= core.hooksPath=/dev/null core.pager=cat core.sshCommand=false core.askPass=false \
            diff.external= diff.ignoreSubmodules=dirty log.showSignature=false protocol.allow=never \
            safe.bareRepository=explicit status.submoduleSummary=false";
        let mut command = Command::new(self.program);
        command.args(["--no-pager", "--no-optional-locks"]);
        for setting in SETTINGS.split(' ') {
            command.args(["-c", setting]);
        }
        command.arg("-C").arg(self.dir).args(args.split(' '));
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
            for key in ["clean", "smudge", "process", "required"] {
                let value = if key == "required" { "false" } else { "" };
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
