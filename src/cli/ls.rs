//! `pitstop ls`: the sessions of this user on this machine, those first that need a person.

use std::{
    collections::HashSet,
    io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use super::{
    fleet::{Fleet, HostAnswer, NOT_YET},
    observer,
    out::{self, Failure, Outcome, ago, columns, tokens},
};
use crate::{
    runtime::wall,
    ui::picker::{PickerRow, Tone},
};
use pitstop_base::{clean::one_line, format::dollars, redact::redact};
use pitstop_core::{
    api::wire::{AgentState, NeedKind, RunPhase, StatusReport},
    config::{
        is_host,
        load::paths::{Paths, project_of},
    },
};
use pitstop_server::{
    CLIENT_LIMIT,
    client::{ApiClient, ClientError},
};

/// The time that a supervisor may take to answer for the list. All are asked at once.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// The time between two looks while the list is watched.
const WATCH: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// The number of characters of an objective that are shown.
const OBJECTIVE: usize = 60;

/// List the sessions that run on this machine and on those of `[fleet] hosts`, first those that need you.
///
/// On a terminal it is a list of which you choose one to attach to. What another machine has said last is shown with its age.
#[derive(Args, Clone, Debug, Default)]
pub struct LsArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Print the list again whenever it changes, until you interrupt it
    #[arg(long)]
    pub watch: bool,
    /// Leave the other machines out
    #[arg(long)]
    pub local: bool,
    /// Ask this host and keep its answer
    #[arg(long, value_name = "HOST", hide = true)]
    pub ask_host: Option<String>,
}

/// Prints the list: 0 also if there is none.
pub(super) fn print_list(args: &LsArgs, fleet: &Fleet) -> Outcome {
    let mut printed = String::new();
    loop {
        let sessions = find_sessions(fleet)?;
        let text = if args.json {
            format!("{}\n", as_json(&sessions))
        } else if sessions.is_empty() {
            "no session runs here\n".to_owned()
        } else {
            sessions_table(&sessions, wall())
        };
        if text != printed {
            let apart = if printed.is_empty() || args.json {
                ""
            } else {
                "\n"
            };
            let code = out::print(&format!("{apart}{text}"));
            if code != 0 {
                return Ok(code);
            }
            printed = text;
        }
        if !args.watch {
            return Ok(out::OK);
        }
        let stdout = io::stdout();
        // A hang-up is reported without being asked for: a reader that has gone wants no more.
        let mut reader = [PollFd::new(&stdout, PollFlags::empty())];
        if matches!(poll(&mut reader, Some(&WATCH)), Ok(1..)) {
            return Ok(out::OK);
        }
    }
}

/// A session that runs, or a host that says nothing.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// The machine, if it is another one.
    host: Option<HostAnswer>,
    /// Its status; `None` if its supervisor does not answer, or is of a version whose status this one cannot read.
    report: Option<StatusReport>,
    /// The same as it came, or what is known instead.
    json: Value,
}

/// The place of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It runs in this project here.
    Here(PathBuf),
    /// It runs on this host, in this project.
    On(String, String),
    /// Nothing answers.
    Nowhere,
}

impl Session {
    /// Returns its place.
    pub fn place(&self) -> Place {
        match (self.project(), &self.host) {
            (Some(project), None) => Place::Here(PathBuf::from(project)),
            (Some(project), Some(host)) if is_host(&host.host) => {
                Place::On(host.host.clone(), project.to_owned())
            }
            _ => Place::Nowhere,
        }
    }

    /// Returns the path of its project, which is in the status of every version.
    fn project(&self) -> Option<&str> {
        self.json["project"].as_str()
    }

    fn project_name(&self) -> String {
        let project = self.project();
        match (&self.host, project) {
            (None, project) => {
                project.map_or_else(|| "?".to_owned(), |path| out::path(Path::new(path)))
            }
            (Some(host), Some(project)) => format!("{}:{project}", host.host),
            (Some(host), None) => host.host.clone(),
        }
    }

    /// Returns its state in words, with the age of what another machine has said.
    fn state_in_words(&self, now: DateTime<Utc>) -> String {
        let Some(report) = &self.report else {
            let error = self.host.as_ref().and_then(|host| host.error.as_deref());
            return match error {
                Some(NOT_YET) => "is asked".to_owned(),
                Some(error) => format!("does not answer: {error}"),
                None => match self.json["version"].as_str() {
                    Some(version) => format!("runs, by pitstop {}", one_line(version)),
                    None => "does not answer".to_owned(),
                },
            };
        };
        let state = need_in_words(report).unwrap_or_else(|| report.agent.state.phrase());
        let old = self.host.as_ref().filter(|host| host.is_old(now));
        match old.and_then(|host| host.answered_at) {
            Some(at) => format!("{state} ({})", ago(at, now)),
            None => state.to_owned(),
        }
    }

    fn state_tone(&self, now: DateTime<Utc>) -> Tone {
        let is_old = self.host.as_ref().is_some_and(|host| host.is_old(now));
        match &self.report {
            Some(report) if !is_old && need_in_words(report).is_some() => Tone::Needed,
            Some(_) if !is_old => Tone::Plain,
            _ => Tone::Old,
        }
    }

    /// Returns its fields in the order of the table's columns.
    fn table_fields(&self, now: DateTime<Utc>) -> [String; 8] {
        let mut fields = self
            .report
            .as_ref()
            .map_or_else(Default::default, |report| figures_of(report, now));
        fields[0] = self.project_name();
        fields[1] = self.state_in_words(now);
        fields
    }

    /// Returns its row in the list of which a person chooses.
    pub fn picker_row(&self, now: DateTime<Utc>) -> PickerRow {
        let [
            project,
            state,
            context,
            growth,
            age,
            cost,
            rebooted,
            objective,
        ] = self.table_fields(now);
        let (report, host) = (self.report.as_ref(), self.host.as_ref());
        let agent = report.map(|report| &report.agent);
        let used = report.and_then(|report| report.context.used);
        let context_size = used.map(|used| format!("{} tokens, {context}, {growth}", tokens(used)));
        let answered_at = host.and_then(|host| host.answered_at);
        let known = [
            ("objective", Some(objective.clone())),
            ("it said", agent.and_then(|agent| agent.last_words.clone())),
            ("waits for", agent.and_then(|agent| agent.reason.clone())),
            ("context", context_size),
            ("last reboot", Some(rebooted)),
            ("runs since", report.map(|_| format!("{age}, {cost}"))),
            ("answered", answered_at.map(|at| ago(at, now))),
            ("error", host.and_then(|host| host.error.clone())),
            ("error", self.json["error"].as_str().map(str::to_owned)),
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
            tone: self.state_tone(now),
        }
    }
}

/// Finds the sessions that run on this machine, and those that the other machines have last reported. An error is shown to the person; only the
/// exit code is returned.
pub(super) fn find_sessions(fleet: &Fleet) -> Result<Vec<Session>, Failure> {
    let answers = fleet.ask_hosts();
    let mut found = on_this_machine(ANSWER_LIMIT)?;
    found.extend(answers.into_iter().flat_map(on_host));
    // The shared store, which comes last, also has a record of those that have answered themselves.
    let mut runs = HashSet::new();
    found.retain(|one| {
        let run = one.report.as_ref().and_then(|report| report.run_id.clone());
        run.is_none_or(|run| runs.insert(run))
    });
    let now = wall();
    found.sort_by_cached_key(|one| {
        let silent = one.report.is_none();
        let old = one.state_tone(now) == Tone::Old;
        (
            silent,
            old,
            one.report.as_ref().map(list_rank),
            one.project_name(),
        )
    });
    Ok(found)
}

/// Returns the sessions of a host by what it has said last, or the host itself if it has said nothing.
fn on_host(host: HostAnswer) -> Vec<Session> {
    let mut found: Vec<Session> = Vec::new();
    for (report, json) in host.read_reports() {
        let mut json = json.clone();
        let name = host.host_of(&json);
        json["host"] = name.clone().into();
        json["answered_at"] = json!(host.answered_at);
        found.push(Session {
            host: Some(HostAnswer {
                host: name,
                sessions: Vec::new(),
                ..host.clone()
            }),
            report,
            json,
        });
    }
    if host.error.is_some() && found.is_empty() {
        found.push(Session {
            json: host.host_json(),
            host: Some(host),
            report: None,
        });
    }
    found
}

/// Finds the sessions that run on this machine; each supervisor has so much time to answer.
fn on_this_machine(limit: Duration) -> Result<Vec<Session>, Failure> {
    let paths = Paths::of_process(Path::new("/"))?;
    let files: Vec<PathBuf> = paths
        .run_dirs()
        .flat_map(|dir| observer::secrets_files(dir, "control"))
        .collect();
    Ok(thread::scope(|scope| {
        let asked: Vec<_> = files
            .iter()
            .map(|file| scope.spawn(move || ask_supervisor(file, limit)))
            .collect();
        let answers = asked
            .into_iter()
            .filter_map(|one| one.join().ok().flatten());
        answers.collect()
    }))
}

/// Asks a supervisor for its status; `None` if none runs.
fn ask_supervisor(file: &Path, limit: Duration) -> Option<Session> {
    let client = ApiClient::from_file(file).ok()?;
    let (report, json) = match client.get("/status", Instant::now() + limit) {
        Ok(answer) => {
            let json: Value = serde_json::from_slice(&answer.body).ok()?;
            (serde_json::from_value(json.clone()).ok(), json)
        }
        Err(ClientError::Late) => {
            let json = json!({ "socket": client.socket(), "error": "it does not answer" });
            (None, json)
        }
        Err(_) => return None,
    };
    Some(Session {
        host: None,
        report,
        json,
    })
}

/// Returns what a person is needed for, if they are.
fn need_in_words(report: &StatusReport) -> Option<&'static str> {
    let waits = |kind| report.needs.iter().any(|need| need.kind == kind);
    match (report.agent.state, report.run.as_ref().map(|run| run.phase)) {
        (AgentState::Dialog, _) => Some("asks you"),
        (AgentState::Exited, _) => Some("the agent has ended"),
        (_, Some(RunPhase::Tripped)) => Some("a breaker has stopped the run"),
        _ if report.counts_down() => Some("a reboot counts down"),
        _ if report.reboot.phase == "review" => Some("a reboot waits for your review"),
        _ if waits(NeedKind::TurnFailed) => Some("its turn has failed"),
        _ => None,
    }
}

/// Returns the place of a session in the list: those that need a person, those that work, all others.
fn list_rank(report: &StatusReport) -> u8 {
    match report.agent.state {
        _ if need_in_words(report).is_some() => 0,
        AgentState::Busy => 1,
        _ => 2,
    }
}

fn as_json(sessions: &[Session]) -> Value {
    let (running, silent): (Vec<_>, Vec<_>) = sessions
        .iter()
        .partition(|one| one.host.is_none() || one.report.is_some());
    let of = |all: Vec<&Session>| all.iter().map(|one| one.json.clone()).collect::<Vec<_>>();
    json!({ "sessions": of(running), "silent_hosts": of(silent) })
}

fn sessions_table(sessions: &[Session], now: DateTime<Utc>) -> String {
    let head = "PROJECT|STATE|CONTEXT|GROWTH|AGE|COST|LAST REBOOT|OBJECTIVE";
    let mut rows = vec![out::heads(head)];
    rows.extend(sessions.iter().map(|one| one.table_fields(now).to_vec()));
    columns(&rows)
}

/// The word for what is not known.
const NONE: &str = "-";

/// Returns the figures of a session in the order of the table's columns, of which the first two are left empty.
fn figures_of(report: &StatusReport, now: DateTime<Utc>) -> [String; 8] {
    let none = || NONE.to_owned();
    let context = &report.context;
    let growth = context
        .forecast
        .and_then(|forecast| forecast.growth_per_minute);
    let rebooted = report.last_reboot.as_ref().map(|last| {
        let sizes = [last.tokens_before, last.tokens_after].map(|size| size.map(tokens));
        let [before, after] = sizes.map(|size| size.unwrap_or_else(|| "?".to_owned()));
        format!("{} ({before} → {after})", ago(last.at, now))
    });
    let objective = report.objective.as_deref().unwrap_or_default();
    [
        String::new(),
        String::new(),
        context
            .percent
            .map_or_else(none, |percent| format!("{percent:.0} %")),
        growth.map_or_else(none, |growth| format!("+{}/min", tokens(growth))),
        report
            .started_at
            .map_or_else(none, |at| ago(at, now).replace(" ago", "")),
        report.cost_usd.map_or_else(none, dollars),
        rebooted.unwrap_or_else(none),
        objective.chars().take(OBJECTIVE).collect(),
    ]
}

/// Finds the project of a running session by a name: its directory, the end of its path, or the beginning of its last part. An error is
/// shown to the person; only the exit code is returned.
pub(super) fn find_project(name: &str) -> Result<PathBuf, Failure> {
    if name.is_empty() {
        return Err(out::misused(
            "expected the name of a session's project, found nothing",
            "`pitstop ls` lists those that run",
        ));
    }
    // A path from here, or of a directory below.
    let home = std::env::home_dir();
    let directory = project_of(Path::new(name), home.as_deref()).ok();
    let sessions = on_this_machine(CLIENT_LIMIT)?;
    let projects = sessions
        .iter()
        .filter_map(|one| one.project().map(Path::new));
    let fits = |project: &&Path| {
        let last = project.file_name().unwrap_or_default().to_string_lossy();
        Some(*project) == directory.as_deref() || project.ends_with(name) || last.starts_with(name)
    };
    let mut found: Vec<&Path> = projects.filter(fits).collect();
    let exact: Vec<&Path> = found
        .iter()
        .copied()
        .filter(|project| Some(*project) == directory.as_deref() || project.ends_with(name))
        .collect();
    if exact.len() == 1 {
        found = exact;
    }
    match found[..] {
        [project] => Ok(project.to_owned()),
        [] if sessions.iter().any(|one| one.project().is_none()) => Err(out::failed(
            format!("no session that answers runs in a project named {name:?}"),
            "one does not answer: it may be busy; try again",
        )),
        [] => Err(out::failed(
            format!("no session runs in a project named {name:?}"),
            "`pitstop ls` lists those that run",
        )),
        _ => Err(out::misused(
            format!("{name:?} fits {} sessions", found.len()),
            "give more of the path; `pitstop ls` lists them",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::status;

    #[test]
    fn a_session_whose_turn_has_failed_is_among_those_that_need_a_person() {
        let mut report = status::tests::report();
        assert_eq!(need_in_words(&report), None);
        let failed = status::line::tests::need(NeedKind::TurnFailed);
        report.needs = vec![failed];
        assert_eq!(need_in_words(&report), Some("its turn has failed"));
        assert_eq!(list_rank(&report), 0);
    }
}
