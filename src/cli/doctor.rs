//! `pitstop doctor`: looks at everything pitstop needs, and says what to do about what is amiss.

mod terminal;

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::{Duration, SystemTime},
};

use clap::Args;
use serde::Serialize;
use serde_json::json;
use tokio::runtime::Runtime;

use super::{
    here::Here,
    host::who::{claude_config_dir, find_program},
    leftovers,
    out::{self, chain, columns, complain, tokens},
};
use crate::{
    api::{client::Door, wire::StatusReport},
    clean::one_line,
    config::load::{Flags, paths::secrets_file_here},
    lineage::{
        files::PrivateDir,
        lock, process,
        store::{Health, HistoryOf, Store, StoreOptions, StoreTarget},
    },
};

/// The flags of the client that everything rests on.
const NEEDED_FLAGS: [&str; 4] = [
    "--session-id",
    "--resume",
    "--settings",
    "--append-system-prompt",
];

/// How long the client may take to tell about itself: it starts a runtime of its own each time.
const CLIENT_LIMIT: Duration = Duration::from_secs(20);

/// How long a supervisor may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// How many of the newest runs are looked through for one with a session.
const RUNS: u32 = 8;

/// Looks at everything that pitstop needs and says what to do about what is amiss.
///
/// Exits with 0 if nothing is broken, 1 if something is, 2 if the configuration is at fault.
#[derive(Args, Clone, Debug)]
pub struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// As it should be.
    Ok,
    /// Usable, but something is worth knowing.
    Warning,
    /// It does not work.
    Broken,
    /// It cannot be told now.
    Unknown,
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Broken => "BROKEN",
            Self::Unknown => "unknown",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Check {
    name: &'static str,
    state: State,
    found: String,
    /// What to do about it; empty when there is nothing to do.
    remedy: String,
}

impl Check {
    fn new(name: &'static str, state: State, found: impl Into<String>) -> Self {
        Self {
            name,
            state,
            found: found.into(),
            remedy: String::new(),
        }
    }

    fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }
}

/// Runs the command.
#[must_use]
pub fn run(args: &DoctorArgs, flags: &Flags) -> i32 {
    let here = match Here::find(flags) {
        Ok(here) => here,
        Err(code) => return code,
    };
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&error.to_string(), "");
            return out::FAILED;
        }
    };
    let checks = examine(&here, &runtime);
    let code = if here.faulty {
        2
    } else if checks.iter().any(|check| check.state == State::Broken) {
        out::FAILED
    } else {
        out::OK
    };
    let text = if args.json {
        let ok = code == out::OK;
        format!("{}\n", json!({"ok": ok, "checks": checks}))
    } else {
        as_text(&checks)
    };
    match out::print(&text) {
        out::OK => code,
        failed => failed,
    }
}

fn examine(here: &Here, runtime: &Runtime) -> Vec<Check> {
    let status = ask_status();
    let report = status.as_ref().ok().and_then(Option::as_ref);
    let mut checks = vec![configuration(here)];
    checks.extend(client(here, runtime));
    let kept = runtime.block_on(look_into_store(here));
    checks.push(supervisor(here, &status));
    checks.push(session_id(here, report, &kept));
    checks.push(hooks(report));
    checks.push(window(here, report));
    checks.extend(terminal::checks());
    checks.push(left_behind(here, &kept));
    checks.push(store(here, &kept));
    checks.push(files(here));
    checks.push(git(here, runtime));
    checks
}

fn configuration(here: &Here) -> Check {
    if here.faulty {
        return Check::new("configuration", State::Broken, "it has faults")
            .remedy("`pitstop check` tells all of them with line and column");
    }
    Check::new("configuration", State::Ok, "it can be used")
}

/// The client: whether it is there, which version, and whether it knows the flags that all rests on.
fn client(here: &Here, runtime: &Runtime) -> Vec<Check> {
    let command = &here.config.agent.command;
    let Some(program) = find_program(OsStr::new(command)) else {
        return vec![
            Check::new(
                "client",
                State::Broken,
                format!("no program `{command}` in the PATH"),
            )
            .remedy(
                "install Claude Code (npm install -g @anthropic-ai/claude-code), or set [agent] command",
            ),
        ];
    };
    let shown = program.display();
    let version = runtime.block_on(ask_program(&program, &["--version"]));
    let Some(version) = version else {
        return vec![
            Check::new(
                "client",
                State::Broken,
                format!("{shown} does not tell its version"),
            )
            .remedy(format!(
                "run `{command} --version` and see what it says; reinstall it if it cannot start"
            )),
        ];
    };
    let first = version.lines().next().unwrap_or_default();
    let mut checks = vec![Check::new(
        "client",
        State::Ok,
        format!("{first} at {shown}"),
    )];
    let help = runtime
        .block_on(ask_program(&program, &["--help"]))
        .unwrap_or_default();
    let missing: Vec<_> = NEEDED_FLAGS
        .into_iter()
        .filter(|flag| !help.contains(flag))
        .collect();
    checks.push(if missing.is_empty() {
        Check::new(
            "client's flags",
            State::Ok,
            format!("it knows {}", NEEDED_FLAGS.join(", ")),
        )
    } else {
        Check::new(
            "client's flags",
            State::Warning,
            format!("its help does not name {}", missing.join(", ")),
        )
        .remedy("update the client; without them a reboot cannot be proven")
    });
    checks
}

/// What a program prints when asked about itself; `None` if it fails or takes too long.
async fn ask_program(program: &Path, args: &[&str]) -> Option<String> {
    let run = tokio::process::Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output: Output = tokio::time::timeout(CLIENT_LIMIT, run).await.ok()?.ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success() && !text.trim().is_empty()).then_some(text)
}

/// The supervisor of this directory, if one answers; `Err` if there is one that does not.
fn ask_status() -> Result<Option<StatusReport>, String> {
    use crate::api::client::ClientError;
    let deadline = std::time::Instant::now() + ANSWER_LIMIT;
    let file = secrets_file_here("control").map_err(|error| error.to_string())?;
    let answer = Door::from_control_file(&file).and_then(|door| door.get("/status", deadline));
    match answer {
        Ok(answer) => serde_json::from_slice(&answer.body)
            .map(Some)
            .map_err(|_| "its answer is not in the form that this version knows".to_owned()),
        Err(ClientError::NobodyThere { .. }) => Ok(None),
        Err(error) => Err(chain(&error)),
    }
}

fn supervisor(here: &Here, status: &Result<Option<StatusReport>, String>) -> Check {
    let name = "supervisor";
    match status {
        Ok(Some(report)) => Check::new(
            name,
            State::Ok,
            format!(
                "pitstop {} runs here (pid {}), the agent is {}",
                report.version,
                report.pid,
                report.agent.state.word()
            ),
        ),
        Err(error) => Check::new(name, State::Broken, format!("it does not answer: {error}"))
            .remedy("look at its terminal; if it hangs, end its process and start `pitstop` again"),
        Ok(None) => {
            let files = here.files().ok().flatten();
            let holder = files.and_then(|files| lock::holder(&files).ok().flatten());
            match holder {
                Some(holder) => Check::new(
                    name,
                    State::Broken,
                    format!(
                        "process {} holds the project's lock, but nobody answers on its socket",
                        holder.process.pid
                    ),
                )
                .remedy("is XDG_RUNTIME_DIR the same there as here? else end that process"),
                None => Check::new(name, State::Ok, "none runs here"),
            }
        }
    }
}

/// What the store tells.
struct Kept {
    health: Result<Health, String>,
    /// The newest session of this project that is on record, and its agent.
    last: Option<(String, String)>,
    /// Agents of dead supervisors that are alive.
    strays: Vec<u32>,
    exists: bool,
}

async fn look_into_store(here: &Here) -> Kept {
    let mut kept = Kept {
        health: Err(String::new()),
        last: None,
        strays: Vec::new(),
        exists: here.has_store(),
    };
    if !kept.exists {
        return kept;
    }
    let options = StoreOptions {
        patience: ANSWER_LIMIT,
        ..StoreOptions::new(here.target.clone())
    };
    let store: Store = match Store::open(options).await {
        Ok(opened) => opened.store,
        Err(error) => {
            kept.health = Err(chain(&error));
            return kept;
        }
    };
    kept.health = Ok(store.health().await);
    let of = HistoryOf::Project(here.project.clone());
    let runs = store.history(&of, RUNS).await.unwrap_or_default();
    kept.last = runs.iter().find_map(|one| {
        let last = one.iterations.last()?;
        Some((last.session_id?.to_string(), one.run.agent.clone()))
    });
    let agents = store.last_agents(&here.project).await.unwrap_or_default();
    for agent in agents {
        let run = runs.iter().find(|one| one.run.run == agent.run);
        let supervised = run.is_some_and(|one| process::alive(&one.run.process));
        if !supervised && process::alive(&agent.process) {
            kept.strays.push(agent.process.pid);
        }
    }
    store.close().await;
    kept
}

/// Whether the client took the session id it was given: then its transcript bears that name.
fn session_id(here: &Here, report: Option<&StatusReport>, kept: &Kept) -> Check {
    let name = "session id";
    let live =
        report.and_then(|report| Some((report.session_id.clone()?, report.agent.kind.clone())));
    let Some((session, agent)) = live.or_else(|| kept.last.clone()) else {
        return Check::new(
            name,
            State::Unknown,
            "no session of this project is on record",
        )
        .remedy("start `pitstop` here, say something to the agent, and look again");
    };
    let is_demo = agent.contains("demo");
    let place = if is_demo {
        Some(super::host::who::demo_dir(&here.paths))
    } else {
        claude_config_dir()
    };
    let short: String = session.chars().take(8).collect();
    match place.and_then(|place| transcript(&place, &session)) {
        Some(_) => Check::new(
            name,
            State::Ok,
            format!("honoured: session {short} has a transcript of its name"),
        ),
        None => Check::new(
            name,
            State::Unknown,
            format!("session {short} has no transcript yet"),
        )
        .remedy("say something to the agent and look again; is CLAUDE_CONFIG_DIR the same there as here?"),
    }
}

fn transcript(config_dir: &Path, session: &str) -> Option<PathBuf> {
    let name = format!("{session}.jsonl");
    let projects = std::fs::read_dir(config_dir.join("projects")).ok()?;
    projects
        .flatten()
        .map(|project| project.path().join(&name))
        .find(|path| path.is_file())
}

/// Whether hooks arrive, or what would keep them away.
fn hooks(report: Option<&StatusReport>) -> Check {
    let name = "hooks";
    let off = claude_config_dir()
        .map(|place| place.join("settings.json"))
        .filter(|file| switches_hooks_off(file));
    match (report, off) {
        (Some(report), _) if report.agent.hooked => Check::new(name, State::Ok, "they arrive"),
        (_, Some(file)) => Check::new(
            name,
            State::Broken,
            format!("{} sets disableAllHooks", file.display()),
        )
        .remedy("take it out: without hooks the delivery of a handoff is proven late or not at all"),
        (Some(report), None) if report.agent.kind == "generic" => {
            Check::new(name, State::Unknown, "this agent has none")
        }
        (Some(_), None) => Check::new(name, State::Warning, "none has arrived in this iteration")
            .remedy(
                "say something to the agent and look again; --bare, --safe-mode and managed settings switch them off",
            ),
        (None, None) => Check::new(name, State::Unknown, "no supervisor runs here")
            .remedy("start `pitstop` here and look again from another terminal"),
    }
}

fn switches_hooks_off(file: &Path) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    serde_json::from_str::<serde_json::Value>(&text)
        .is_ok_and(|settings| settings["disableAllHooks"] == true)
}

/// Where the size of the context window is from.
fn window(here: &Here, report: Option<&StatusReport>) -> Check {
    let name = "context window";
    if let Some(window) = here.config.context.window {
        let found = format!("{} tokens, as [context] window says", tokens(window));
        return Check::new(name, State::Ok, found);
    }
    let Some(report) = report else {
        return Check::new(name, State::Unknown, "no supervisor runs here")
            .remedy("start `pitstop` here and look again from another terminal");
    };
    let context = &report.context;
    let (Some(window), Some(source)) = (context.window, &context.source) else {
        return Check::new(name, State::Unknown, "no figure yet")
            .remedy("say something to the agent and look again");
    };
    let source = source.replace('_', " ");
    let found = format!("{} tokens, by the {source}", tokens(window));
    match source.as_str() {
        "status line" => Check::new(name, State::Ok, found),
        _ => Check::new(name, State::Warning, found).remedy(
            "the status line is the best witness and has not spoken yet; set [context] window if this is wrong",
        ),
    }
}

fn left_behind(here: &Here, kept: &Kept) -> Check {
    let name = "leftovers";
    if let Some(pid) = kept.strays.first() {
        return Check::new(
            name,
            State::Warning,
            format!("an agent of a dead supervisor is alive: pid {pid}"),
        )
        .remedy("the next `pitstop` in this directory ends it");
    }
    let dead = leftovers::find(here.paths.runtime_dir(), SystemTime::now()).len();
    if dead > 0 {
        let plural = if dead == 1 { "" } else { "s" };
        return Check::new(
            name,
            State::Warning,
            format!("the socket files of {dead} dead supervisor{plural}"),
        )
        .remedy("`pitstop prune` removes them");
    }
    Check::new(name, State::Ok, "no dead sockets, no stray agents")
}

fn store(here: &Here, kept: &Kept) -> Check {
    let name = "store";
    let place = here.target.place();
    if !kept.exists {
        return Check::new(name, State::Ok, format!("none yet; it will be {place}"));
    }
    match &kept.health {
        Err(error) => Check::new(name, State::Broken, error.clone()).remedy(
            "upgrade pitstop, or name another database in [store] url; history is not kept until then",
        ),
        Ok(Health {
            trouble: Some(trouble),
            ..
        }) => Check::new(name, State::Broken, format!("{place}: {trouble}")).remedy(
            match here.target {
                StoreTarget::Sqlite(_) => {
                    "is the disk full or read-only, or another program at the file? what runs keeps its history in memory and writes it later"
                }
                StoreTarget::Postgres(_) => {
                    "is the server up, and the password right? what runs keeps its history in memory and writes it later"
                }
            },
        ),
        Ok(health) => {
            let schema = health.schema.unwrap_or_default();
            let size = match &here.target {
                StoreTarget::Sqlite(file) => std::fs::metadata(file)
                    .map(|metadata| format!(", {:.1} MiB", metadata.len() as f64 / 1_048_576.0))
                    .unwrap_or_default(),
                StoreTarget::Postgres(_) => String::new(),
            };
            Check::new(name, State::Ok, format!("{place}, schema {schema}{size}"))
        }
    }
}

/// Whether the project's own files can be written.
fn files(here: &Here) -> Check {
    let name = "project files";
    match PrivateDir::find_project(&here.directory) {
        Ok(Some(dir)) => Check::new(name, State::Ok, dir.path().display().to_string()),
        Ok(None) => Check::new(name, State::Ok, "no .pitstop here yet"),
        Err(error) if error.is_unwritable() => Check::new(name, State::Warning, chain(&error))
            .remedy("notes and runs are kept in the state directory instead"),
        Err(error) => Check::new(name, State::Broken, chain(&error))
            .remedy("pitstop follows no links there: move it away"),
    }
}

fn git(here: &Here, runtime: &Runtime) -> Check {
    use crate::breakpoint::git::{GitState, facts};
    let name = "git";
    match runtime.block_on(facts(&here.directory, 1)) {
        GitState::Facts(facts) => {
            let branch = facts.branch.unwrap_or_else(|| "no branch".to_owned());
            Check::new(name, State::Ok, format!("a repository on {branch}"))
        }
        GitState::NoRepository => Check::new(
            name,
            State::Ok,
            "no repository here: handoffs name no commits",
        ),
        other => Check::new(name, State::Warning, format!("{other:?}"))
            .remedy("handoffs name no branch, commits and changed files until git can be asked"),
    }
}

fn as_text(checks: &[Check]) -> String {
    let rows: Vec<Vec<String>> = checks
        .iter()
        .map(|check| {
            vec![
                check.state.word().to_owned(),
                check.name.to_owned(),
                check.found.clone(),
            ]
        })
        .collect();
    let table = columns(&rows);
    let mut text = String::new();
    for (line, check) in table.lines().zip(checks) {
        text.push_str(line);
        text.push('\n');
        if !check.remedy.is_empty() {
            text.push_str(&format!("         → {}\n", one_line(&check.remedy)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_amiss_comes_with_its_remedy() {
        let checks = [
            Check::new("client", State::Ok, "2.1 at /x"),
            Check::new("store", State::Broken, "lo\u{1b}cked").remedy("wait"),
        ];
        assert_eq!(
            as_text(&checks),
            "ok      client  2.1 at /x\nBROKEN  store   lo\\u{1b}cked\n         → wait\n"
        );
        assert_eq!(
            json!(checks)[1],
            json!({"name": "store", "state": "broken", "found": "lo\u{1b}cked", "remedy": "wait"})
        );
    }

    #[test]
    fn hooks_that_the_user_switched_off_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        assert!(!switches_hooks_off(&file));
        for (text, off) in [
            ("{\"disableAllHooks\": true}", true),
            ("{\"disableAllHooks\": false}", false),
            ("{", false),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(switches_hooks_off(&file), off, "{text}");
        }
    }
}
