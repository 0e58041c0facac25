//! `pitstop ls`: the sessions of this user on this machine, those first that need a person.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use clap::Args;
use serde_json::{Value, json};

use super::out::{self, columns, tokens};
use crate::{
    runtime::wall,
    ui::picker::{PickerRow, Tone},
};
use pitstop_base::{
    clean::one_line,
    format::{self, dollars},
    redact::redact,
};
use pitstop_core::{
    api::wire::{AgentState, RunPhase, StatusReport},
    config::load::paths::Paths,
};
use pitstop_server::client::{ApiClient, ClientError};

/// The time that a supervisor may take to answer. All are asked at once.
const ANSWER_LIMIT: Duration = Duration::from_millis(500);

/// The number of characters of an objective that are shown.
const OBJECTIVE: usize = 60;

/// List the sessions that run on this machine, those first that need you.
#[derive(Args, Clone, Debug)]
pub struct LsArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Prints the list: 0 also if there is none.
#[must_use]
pub(super) fn print(args: &LsArgs) -> i32 {
    let sessions = match sessions() {
        Ok(sessions) => sessions,
        Err(code) => return code,
    };
    if args.json {
        let all: Vec<&Value> = sessions.iter().map(|one| &one.json).collect();
        return out::print(&format!("{}\n", json!({ "sessions": all })));
    }
    if sessions.is_empty() {
        return out::print("no session runs here\n");
    }
    out::print(&table(&sessions, wall()))
}

/// A session that runs.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// Its status; `None` if its supervisor does not answer.
    report: Option<StatusReport>,
    /// The same as it came, or what is known instead.
    json: Value,
}

impl Session {
    /// Returns its project, if its supervisor answers.
    pub fn project(&self) -> Option<PathBuf> {
        Some(PathBuf::from(&self.report.as_ref()?.project))
    }

    /// Returns its row in the list of which a person chooses.
    pub fn row(&self, now: DateTime<Utc>) -> PickerRow {
        let Some(report) = &self.report else {
            let error = self.json["error"].as_str().unwrap_or_default();
            return PickerRow {
                fields: vec!["?".to_owned(), error.to_owned(), String::new()],
                tone: Tone::Old,
                ..PickerRow::default()
            };
        };
        let [
            project,
            state,
            context,
            growth,
            age,
            cost,
            rebooted,
            objective,
        ] = fields(report, now);
        let reason = report.agent.reason.clone();
        let used = report.context.used.map(tokens);
        let known = [
            ("objective", Some(objective.clone())),
            ("waits for", reason),
            (
                "context",
                used.map(|used| format!("{used} tokens, {context}, {growth}")),
            ),
            ("last reboot", Some(rebooted)),
            ("runs since", Some(format!("{age}, {cost}"))),
        ];
        let known = known
            .into_iter()
            .filter_map(|(name, said)| Some((name, said?)));
        let details = known.filter(|(_, said)| !matches!(said.as_str(), "" | NONE));
        PickerRow {
            fields: vec![project, state, context, objective],
            details: details
                .map(|(name, said)| (name, redact(&one_line(&said)).into_owned()))
                .collect(),
            enter: "attach",
            tone: if need(report).is_some() {
                Tone::Needed
            } else {
                Tone::Plain
            },
        }
    }
}

/// Finds the sessions that run on this machine. An error is shown to the person; only the exit code is returned.
pub(super) fn sessions() -> Result<Vec<Session>, i32> {
    let paths = Paths::of_process(Path::new("/")).map_err(|error| out::failed_by(&error))?;
    let files: Vec<PathBuf> = paths.runtime_dirs().flat_map(control_files).collect();
    let mut found: Vec<Session> = thread::scope(|scope| {
        let asked: Vec<_> = files.iter().map(|file| scope.spawn(|| ask(file))).collect();
        let answers = asked
            .into_iter()
            .filter_map(|one| one.join().ok().flatten());
        answers.collect()
    });
    found.sort_by_cached_key(|one| {
        let report = one.report.as_ref();
        let project = report.map(|report| report.project.clone());
        (report.map(rank), project)
    });
    Ok(found)
}

fn control_files(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "control"))
        .collect()
}

/// Asks a supervisor for its status; `None` if none runs.
fn ask(file: &Path) -> Option<Session> {
    let client = ApiClient::from_file(file).ok()?;
    match client.get("/status", Instant::now() + ANSWER_LIMIT) {
        Ok(answer) => {
            let json: Value = serde_json::from_slice(&answer.body).ok()?;
            let report = serde_json::from_value(json.clone()).ok();
            Some(Session { report, json })
        }
        Err(ClientError::Late) => Some(Session {
            report: None,
            json: json!({ "socket": client.socket(), "error": "it does not answer" }),
        }),
        Err(_) => None,
    }
}

/// Returns what a person is needed for, if they are.
fn need(report: &StatusReport) -> Option<&'static str> {
    match (report.agent.state, report.run.as_ref().map(|run| run.phase)) {
        (AgentState::Dialog, _) => Some("asks you"),
        (AgentState::Exited, _) => Some("the agent has ended"),
        (_, Some(RunPhase::Tripped)) => Some("a breaker has stopped the run"),
        _ if report.reboot.phase == "review" => Some("a reboot waits for your review"),
        _ => None,
    }
}

/// Returns the place of a session in the list: those that need a person, those that work, all others.
fn rank(report: &StatusReport) -> u8 {
    match report.agent.state {
        _ if need(report).is_some() => 0,
        AgentState::Busy => 1,
        _ => 2,
    }
}

fn table(sessions: &[Session], now: DateTime<Utc>) -> String {
    let head = [
        "PROJECT",
        "STATE",
        "CONTEXT",
        "GROWTH",
        "AGE",
        "COST",
        "LAST REBOOT",
        "OBJECTIVE",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(sessions.iter().map(|one| match &one.report {
        Some(report) => fields(report, now).to_vec(),
        None => vec!["?".to_owned(), "does not answer".to_owned()],
    }));
    columns(&rows)
}

/// The word for what is not known.
const NONE: &str = "-";

/// Returns the fields of a session in the order of the table's columns.
fn fields(report: &StatusReport, now: DateTime<Utc>) -> [String; 8] {
    let age = |at: DateTime<Utc>| now.signed_duration_since(at).to_std().unwrap_or_default();
    let none = || NONE.to_owned();
    let context = &report.context;
    let growth = context
        .forecast
        .and_then(|forecast| forecast.growth_per_minute);
    let rebooted = report.last_reboot.as_ref().map(|last| {
        let sizes = [last.tokens_before, last.tokens_after].map(|size| size.map(tokens));
        let [before, after] = sizes.map(|size| size.unwrap_or_else(|| "?".to_owned()));
        format!("{} ({before} → {after})", format::ago(age(last.at)))
    });
    let objective = report.objective.as_deref().unwrap_or_default();
    [
        out::path(Path::new(&report.project)),
        need(report)
            .unwrap_or_else(|| report.agent.state.phrase())
            .to_owned(),
        context
            .percent
            .map_or_else(none, |percent| format!("{percent:.0} %")),
        growth.map_or_else(none, |growth| format!("+{}/min", tokens(growth))),
        report
            .started_at
            .map_or_else(none, |at| format::ago(age(at)).replace(" ago", "")),
        report.cost_usd.map_or_else(none, dollars),
        rebooted.unwrap_or_else(none),
        objective.chars().take(OBJECTIVE).collect(),
    ]
}

/// Finds the project of a running session by a name: its directory, the end of its path, or the beginning of its last part. An error is
/// shown to the person; only the exit code is returned.
pub(super) fn find(name: &str) -> Result<PathBuf, i32> {
    let sessions = sessions()?;
    let projects = sessions
        .iter()
        .filter_map(|one| Some(Path::new(&one.report.as_ref()?.project)));
    let fits = |project: &&Path| {
        let last = project.file_name().unwrap_or_default().to_string_lossy();
        project.ends_with(name) || last.starts_with(name)
    };
    let mut found: Vec<&Path> = projects.filter(fits).collect();
    let exact: Vec<&Path> = found
        .iter()
        .copied()
        .filter(|project| project.ends_with(name))
        .collect();
    if exact.len() == 1 {
        found = exact;
    }
    match found[..] {
        [project] => Ok(project.to_owned()),
        [] => Err(out::failed(
            &format!("no session runs in a project named {name:?}"),
            "`pitstop ls` lists those that run",
        )),
        _ => Err(out::misused(
            &format!("{name:?} fits {} sessions", found.len()),
            "give more of the path; `pitstop ls` lists them",
        )),
    }
}
