//! Reports the session to herdr, a workspace manager for coding agents, in whose panes it is shown.
//!
//! ```text
//!   loop ── the newest report ──► a task for each terminal in herdr ──► `herdr pane report-agent …`, one at a time
//! ```
//!
//! A terminal in herdr has the pane's variables in its environment, and its client passes them on. herdr's own integration guide
//! has the commands. The loop never waits for one; of many changes only the newest is reported.

use std::{collections::BTreeMap, process::Stdio, time::Duration};

use tokio::{
    process::Command,
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};

use pitstop_base::{clean, format::percent};
use pitstop_core::{
    api::wire::AgentState,
    app::{Model, facts::deciding_figure},
};

use super::{Shell, host::TerminalId};

/// The variables that herdr sets in its panes, as far as they are needed here.
pub const HERDR_VARIABLES: [&str; 4] = [
    "HERDR_ENV",
    "HERDR_PANE_ID",
    "HERDR_BIN_PATH",
    "HERDR_SOCKET_PATH",
];

/// The name under which herdr keeps our reports apart from those of others.
const SOURCE: &str = "custom:pitstop";

/// The agent's name in herdr. It is not that of the client: herdr resumes a client that it knows by itself, without pitstop and
/// beside the supervisor, which outlives herdr.
const AGENT_NAME: &str = "pitstop";

/// The shortest time between two reports of a pane.
const GAP: Duration = Duration::from_millis(500);

/// The time after which a report that herdr has not taken is given again; it doubles with each time in a row.
const AGAIN: Duration = Duration::from_secs(5);

/// The number of times that it doubles: herdr may be started again.
const DOUBLINGS: u32 = 6;

/// The time that a command may take.
const LIMIT: Duration = Duration::from_secs(3);

/// The number of characters of a command's last words that are logged.
const SHOWN: usize = 200;

/// The state of the session as herdr knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Report {
    /// The word of herdr's for what the agent does.
    state: &'static str,
    /// A sentence on what a person is needed for.
    message: Option<String>,
    session: String,
    /// The used share of the context window.
    context: Option<String>,
}

impl Report {
    fn of(model: &Model) -> Self {
        let needs = &model.outside.needs();
        let urgent = needs.iter().find(|need| need.kind.is_urgent());
        let state = match model.session.agent.state {
            AgentState::Dialog => "blocked",
            AgentState::Busy => "working",
            AgentState::Starting | AgentState::Unknown => "unknown",
            AgentState::Idle | AgentState::Elsewhere | AgentState::Limit | AgentState::Exited => {
                "idle"
            }
        };
        let figure = deciding_figure(model);
        Self {
            state: urgent.map_or(state, |_| "blocked"),
            message: urgent.map(|need| clean::one_line(&need.what).into_owned()),
            session: model.session.id.to_string(),
            context: figure.map(|figure| format!("{}%", percent(figure.percent))),
        }
    }
}

/// The panes of herdr in which the session is shown.
#[derive(Default)]
pub(super) struct Herdr {
    panes: Vec<(TerminalId, watch::Sender<Report>)>,
    tasks: JoinSet<()>,
}

impl Herdr {
    /// Has the session reported for a terminal, if that is in a pane of herdr.
    fn enter(&mut self, id: TerminalId, environment: &BTreeMap<String, String>, model: &Model) {
        let Some(pane) = Pane::of(environment) else {
            return;
        };
        while self.tasks.try_join_next().is_some() {}
        let (sender, reports) = watch::channel(Report::of(model));
        self.panes.push((id, sender));
        self.tasks.spawn(pane.serve(reports));
    }

    /// Has a terminal's pane released.
    pub fn leave(&mut self, id: TerminalId) {
        self.panes.retain(|(pane, _)| *pane != id);
    }

    /// Has all panes released, and waits until that is done or takes too long.
    pub async fn finish(self) {
        let Self { panes, mut tasks } = self;
        drop(panes);
        let all = async { while tasks.join_next().await.is_some() {} };
        let _ = timeout(LIMIT, all).await;
    }
}

impl Shell {
    /// Has the session reported for a terminal that was attached with this environment.
    pub(super) fn enter_herdr(&mut self, id: TerminalId, environment: &BTreeMap<String, String>) {
        let model = self.core.view();
        self.services.herdr.enter(id, environment, model);
    }

    /// Reports what is new in the model to herdr.
    pub(super) fn report_to_herdr(&self) {
        let panes = &self.services.herdr.panes;
        if panes.is_empty() {
            return;
        }
        let report = Report::of(self.core.view());
        for (_, pane) in panes {
            pane.send_if_modified(|known| {
                let is_new = *known != report;
                if is_new {
                    known.clone_from(&report);
                }
                is_new
            });
        }
    }
}

/// A pane of herdr, and how to report to it.
struct Pane {
    /// The variables of the pane, for the command.
    environment: BTreeMap<String, String>,
    program: String,
    id: String,
    /// True if the last command has failed, which is logged once until one succeeds.
    failed: bool,
}

impl Pane {
    /// Returns the pane that has this environment; `None` if it is none of herdr's.
    fn of(environment: &BTreeMap<String, String>) -> Option<Self> {
        let get = |name: &str| environment.get(name).filter(|value| !value.is_empty());
        if get("HERDR_ENV").map(String::as_str) != Some("1") {
            return None;
        }
        let known = |name: &&str| Some(((*name).to_owned(), get(name)?.clone()));
        Some(Self {
            id: get("HERDR_PANE_ID")?.clone(),
            program: get("HERDR_BIN_PATH")
                .map_or("herdr", |path| path)
                .to_owned(),
            environment: HERDR_VARIABLES.iter().filter_map(known).collect(),
            failed: false,
        })
    }

    /// Reports each change until the terminal is detached, and releases the pane then.
    async fn serve(mut self, mut reports: watch::Receiver<Report>) {
        let mut last = Report::default();
        let mut takes_tokens = true;
        let mut refusals = 0_u32;
        loop {
            let report = reports.borrow_and_update().clone();
            let has_news = Report {
                context: last.context.clone(),
                ..report.clone()
            } != last;
            let is_taken = !has_news || self.report(&report).await;
            if takes_tokens && report.context != last.context {
                // Releases before 0.8 have no tokens, so they are not tried again.
                takes_tokens = self.show_context(report.context.as_deref()).await;
            }
            last = report;
            refusals = if is_taken { 0 } else { refusals + 1 };
            if !is_taken {
                // No session has this name: the next look finds news.
                last.session.clear();
            }
            let end = closed(reports.clone());
            let next = async {
                sleep(GAP).await;
                let news = reports.changed();
                if is_taken {
                    return news.await;
                }
                let again = timeout(again_after(refusals), news);
                again.await.unwrap_or(Ok(()))
            };
            tokio::select! {
                changed = next => {
                    if changed.is_err() {
                        break;
                    }
                }
                // It does not wait for the gap, and what is new by then is not reported.
                () = end => break,
            }
        }
        if takes_tokens && last.context.is_some() {
            self.show_context(None).await;
        }
        self.run("release-agent", &["--agent", AGENT_NAME]).await;
    }

    /// Reports the state and the session; returns false if herdr has not taken it.
    async fn report(&mut self, report: &Report) -> bool {
        let mut args = vec!["--agent", AGENT_NAME, "--state", report.state];
        args.extend(["--agent-session-id", &report.session]);
        if let Some(message) = &report.message {
            args.extend(["--message", message]);
        }
        self.run("report-agent", &args).await
    }

    /// Shows the used share of the context window beside the pane, or takes it back; returns false if herdr refuses.
    async fn show_context(&mut self, context: Option<&str>) -> bool {
        match context {
            Some(share) => {
                let token = format!("context={share}");
                self.run("report-metadata", &["--token", &token]).await
            }
            None => {
                self.run("report-metadata", &["--clear-token", "context"])
                    .await
            }
        }
    }

    /// Runs a command of herdr's for the pane; returns false if it fails.
    async fn run(&mut self, command: &str, args: &[&str]) -> bool {
        let output = Command::new(&self.program)
            .args(["pane", command, &self.id, "--source", SOURCE])
            .args(args)
            .envs(&self.environment)
            .kill_on_drop(true)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .output();
        let why = match timeout(LIMIT, output).await {
            Ok(Ok(output)) if output.status.success() => None,
            Ok(Ok(output)) => {
                let said = String::from_utf8_lossy(&output.stderr);
                let said: String = said.trim().chars().take(SHOWN).collect();
                Some(format!("{}: {}", output.status, clean::one_line(&said)))
            }
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("it has taken longer than {} s", LIMIT.as_secs())),
        };
        let before = std::mem::replace(&mut self.failed, why.is_some());
        if let Some(why) = &why
            && !before
        {
            tracing::warn!(command, why, "herdr did not take a report");
        }
        why.is_none()
    }
}

/// Returns the time after which a report is given again that herdr has not taken so many times in a row.
fn again_after(refusals: u32) -> Duration {
    AGAIN * (1 << refusals.saturating_sub(1).min(DOUBLINGS))
}

/// Waits until no more reports can come.
async fn closed(mut reports: watch::Receiver<Report>) {
    while reports.changed().await.is_ok() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_pane_of_herdr_with_an_id_is_reported_to() {
        let pane = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            Pane::of(
                &pairs
                    .map(|(name, value)| ((*name).into(), (*value).into()))
                    .collect(),
            )
        };
        assert!(pane(&[("HERDR_PANE_ID", "w1:p1")]).is_none());
        assert!(pane(&[("HERDR_ENV", "1"), ("HERDR_PANE_ID", "")]).is_none());
        assert!(pane(&[("HERDR_ENV", "0"), ("HERDR_PANE_ID", "w1:p1")]).is_none());
        let found = pane(&[("HERDR_ENV", "1"), ("HERDR_PANE_ID", "w1:p1")]).expect("a pane");
        assert_eq!((&*found.program, &*found.id), ("herdr", "w1:p1"));
        let found = pane(&[
            ("HERDR_ENV", "1"),
            ("HERDR_PANE_ID", "w1:p1"),
            ("HERDR_BIN_PATH", "/opt/herdr"),
            ("TERM", "xterm"),
        ]);
        let found = found.expect("a pane");
        assert_eq!(found.program, "/opt/herdr");
        assert!(!found.environment.contains_key("TERM"));
    }

    #[test]
    fn a_herdr_that_is_gone_is_asked_less_and_less() {
        let first = [1, 2, 3, 4].map(again_after);
        assert_eq!(first, [5, 10, 20, 40].map(Duration::from_secs));
        let day: Duration = (1..300).map(again_after).sum();
        assert!(day > Duration::from_hours(24), "{day:?}");
        assert_eq!(again_after(u32::MAX), Duration::from_secs(320));
    }
}
