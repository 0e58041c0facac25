//! `pitstop doctor`: checks everything that pitstop needs, and names the fix for each fault.

mod agent;
mod keeping;
mod terminal;

use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use serde_json::json;
use tokio::runtime::Runtime;

use super::{
    here::Here,
    login,
    out::{self, Outcome, chain, columns},
    template,
};
use pitstop_base::clean::one_line;
use pitstop_core::{
    api::wire::StatusReport,
    config::{OnHangup, load::Flags},
};
use pitstop_server::client::ClientError;

/// The time that a supervisor may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// Check everything that pitstop needs and say how to fix what is wrong.
///
/// Exits with 0 if nothing is broken, 1 if something is, 2 if the configuration is at fault.
#[derive(Args, Clone, Debug)]
pub struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The state of a checked thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
enum State {
    /// It is as it should be.
    Ok,
    /// It is usable, but the person should know something about it.
    Warning,
    /// It does not work.
    #[strum(serialize = "BROKEN")]
    Broken,
    /// Its state is not known now.
    Unknown,
}

/// A checked thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Check {
    name: &'static str,
    #[serde(flatten)]
    finding: Finding,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    state: State,
    found: String,
    /// The instruction to fix it; empty when there is nothing to do.
    remedy: String,
}

impl Finding {
    fn new(state: State, found: impl Into<String>) -> Self {
        Self {
            state,
            found: found.into(),
            remedy: String::new(),
        }
    }

    fn ok(found: impl Into<String>) -> Self {
        Self::new(State::Ok, found)
    }

    fn warning(found: impl Into<String>) -> Self {
        Self::new(State::Warning, found)
    }

    fn broken(found: impl Into<String>) -> Self {
        Self::new(State::Broken, found)
    }

    fn unknown(found: impl Into<String>) -> Self {
        Self::new(State::Unknown, found)
    }

    /// Makes the result for a thing that only a supervisor could report.
    fn unasked() -> Self {
        Self::unknown("no supervisor runs here")
            .remedy("start `pitstop` here and run `pitstop doctor` from another terminal")
    }

    fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }
}

/// Runs the command.
pub fn run(args: &DoctorArgs, flags: &Flags) -> Outcome {
    let here = Here::find(flags)?;
    let checks = examine_all(&here, &out::runtime()?);
    let code = if here.faulty {
        out::USAGE
    } else if checks
        .iter()
        .any(|check| check.finding.state == State::Broken)
    {
        out::FAILED
    } else {
        out::OK
    };
    let json = || json!({"ok": code == out::OK, "checks": checks});
    let text = out::render(args.json, json, || as_text(&checks));
    Ok(match out::print(&text) {
        out::OK => code,
        failed => failed,
    })
}

fn examine_all(here: &Here, runtime: &Runtime) -> Vec<Check> {
    let status = ask_status();
    let report = status.as_ref().ok().and_then(Option::as_ref);
    let (client, flags) = agent::client(here, runtime);
    let kept = runtime.block_on(keeping::look_into_store(here));
    let (size, answers) = terminal::examine();
    let findings = [
        ("configuration", Some(check_configuration(here))),
        ("client", Some(client)),
        ("client's flags", flags),
        ("supervisor", Some(check_supervisor(here, &status))),
        ("logout", Some(check_logout(here, runtime))),
        ("session id", Some(agent::session_id(here, report, &kept))),
        ("hooks", Some(agent::hooks(here, report))),
        ("bridge", Some(agent::bridge(here, report))),
        ("agent's tools", Some(agent::tools(here, report))),
        ("to-do list", Some(agent::todo_list(here, report))),
        ("context window", Some(agent::window(here, report))),
        ("client's limit", Some(agent::client_limit(here, report))),
        ("terminal", Some(terminal::names())),
        ("terminal's size", size),
        ("terminal's answers", answers),
        (
            "terminal's own keys",
            Some(terminal::keys(&here.config.keys)),
        ),
        ("leftovers", Some(keeping::left_behind(here, &kept))),
        ("store", Some(keeping::store(here, &kept, report))),
        ("state directory", Some(keeping::state(here))),
        ("project files", Some(keeping::files(here))),
        ("git", Some(check_git(here, runtime))),
    ];
    let checks = findings.into_iter().filter_map(|(name, finding)| {
        let finding = finding?;
        Some(Check { name, finding })
    });
    checks.collect()
}

/// Says what becomes of a session at a logout.
fn check_logout(here: &Here, runtime: &Runtime) -> Finding {
    if here.config.session.on_hangup == OnHangup::End {
        return Finding::ok("ends the session with its terminal, as you have set it");
    }
    if !login::has_manager() {
        return Finding::ok("the session goes on: no systemd ends processes here");
    }
    if login::user_lingers() {
        return Finding::ok("the session goes on: you linger");
    }
    match runtime.block_on(login::kills_user_processes()) {
        Some(false) => Finding::ok("the session goes on: KillUserProcesses is off"),
        Some(true) => Finding::warning("ends the session: KillUserProcesses is on")
            .remedy("`loginctl enable-linger` lets it go on, from its next start"),
        None => Finding::unknown("the login manager does not answer"),
    }
}

fn check_configuration(here: &Here) -> Finding {
    if here.faulty {
        return Finding::broken("has errors")
            .remedy("run `pitstop check`: it shows each with its line and column");
    }
    if let Err(error) = template::generator(&here.paths) {
        return Finding::broken(error).remedy("mend or remove the handoff's template");
    }
    Finding::ok("no errors")
}

/// Asks the supervisor of this directory for its status, if there is one; `Err` if it does not answer.
fn ask_status() -> Result<Option<StatusReport>, String> {
    let deadline = Instant::now() + ANSWER_LIMIT;
    match out::here().and_then(|door| door.get("/status", deadline)) {
        Ok(answer) => serde_json::from_slice(&answer.body)
            .map(Some)
            .map_err(|_| "its answer is not one that this version understands".to_owned()),
        Err(ClientError::NoSupervisor { .. }) => Ok(None),
        Err(error) => Err(chain(&error)),
    }
}

fn check_supervisor(here: &Here, status: &Result<Option<StatusReport>, String>) -> Finding {
    match status {
        Ok(Some(report)) => Finding::ok(format!(
            "pitstop {} runs here (pid {}), its agent: {}",
            report.version,
            report.pid,
            report.agent.state.phrase()
        )),
        Err(error) => Finding::broken(format!("it does not answer: {error}"))
            .remedy("look at its terminal; if it hangs, end its process and start `pitstop` again"),
        Ok(None) => match here.find_holder() {
            Some(holder) => Finding::broken(format!(
                "process {} holds the project's lock, but no process answers on its socket",
                holder.process.pid
            ))
            .remedy(
                "are XDG_STATE_HOME and HOME the same there as here? If they are, end that process",
            ),
            None => Finding::ok("none runs here"),
        },
    }
}

fn check_git(here: &Here, runtime: &Runtime) -> Finding {
    use pitstop_handoff::breakpoint::git::{GitState, facts};
    match runtime.block_on(facts(&here.directory, 1, None)) {
        GitState::Facts(facts) => {
            let branch = facts.branch.unwrap_or_else(|| "no branch".to_owned());
            Finding::ok(format!("a repository on {branch}"))
        }
        GitState::NoRepository => Finding::ok("no repository here: handoffs name no commits"),
        other => Finding::warning(format!("{other:?}"))
            .remedy("handoffs name no branch, commits and changed files until git can be asked"),
    }
}

fn as_text(checks: &[Check]) -> String {
    let row = |Check { name, finding }: &Check| {
        let fields = [finding.state.into(), *name, &finding.found];
        fields.map(str::to_owned).to_vec()
    };
    let table = columns(&checks.iter().map(row).collect::<Vec<_>>());
    let mut text = String::new();
    for (line, check) in table.lines().zip(checks) {
        text.push_str(line);
        text.push('\n');
        let remedy = &check.finding.remedy;
        if !remedy.is_empty() {
            text.push_str(&format!("         → {}\n", one_line(remedy)));
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
            ("client", Finding::ok("2.1 at /x")),
            ("store", Finding::broken("lo\u{1b}cked").remedy("wait")),
        ]
        .map(|(name, finding)| Check { name, finding });
        assert_eq!(
            as_text(&checks),
            "ok      client  2.1 at /x\nBROKEN  store   lo\\u{1b}cked\n         → wait\n"
        );
        assert_eq!(
            json!(checks)[1],
            json!({"name": "store", "state": "broken", "found": "lo\u{1b}cked", "remedy": "wait"})
        );
    }
}
