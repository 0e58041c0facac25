//! `pitstop status --line`: the session on one line for a status bar, such as `! permission · 89 % compact · $4.12`.
//!
//! A status bar may take some characters of a line for commands (`#` in tmux). So the line holds numbers and words of our own
//! only: no name, no path and no text of the agent.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use pitstop_base::format::{dollars, percent};
use pitstop_core::api::wire::{AgentState, StatusReport};
use pitstop_server::{
    CLIENT_LIMIT,
    client::{ClientError, Events},
};

use super::{
    label,
    out::{self, Failure, Outcome},
};

/// The time for which events are gathered before the status is asked for: a turn sends many at once.
const GATHER: Duration = Duration::from_millis(200);

/// Prints the line, with `watch` whenever it changes; 0, or 3 with an empty line if no supervisor runs here, or 1.
pub(super) fn run(watch: bool) -> Outcome {
    if !watch {
        return Ok(line()?.map_or_else(end, |line| print(&line)));
    }
    let mut events = match open() {
        Ok(events) => events,
        Err(ClientError::NoSupervisor { .. }) => return Ok(end()),
        Err(error) => return Err(error.into()),
    };
    let mut printed = None;
    loop {
        match line() {
            Ok(Some(line)) if printed.as_ref() == Some(&line) => {}
            Ok(Some(line)) => {
                let code = print(&line);
                if code != out::OK {
                    return Ok(code);
                }
                printed = Some(line);
            }
            Ok(None) => return Ok(end()),
            // A supervisor that ends or is busy may refuse the question; the stream says whether it has ended.
            Err(_) if printed.is_some() => {}
            Err(failure) => return Err(failure),
        }
        match events.wait(&io::stdout()) {
            Ok(true) => thread::sleep(GATHER),
            Ok(false) => return Ok(end()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn open() -> Result<Events, ClientError> {
    out::here()?.events(Instant::now() + CLIENT_LIMIT)
}

/// Returns the line; `None` if no supervisor runs here. An error is shown to the person; only the exit code is returned.
fn line() -> Result<Option<String>, Failure> {
    let report = out::get_if_any::<StatusReport>("/status")?;
    Ok(report.map(|(report, _)| describe(&report)))
}

fn print(line: &str) -> i32 {
    out::print(&format!("{line}\n"))
}

/// Empties the bar: there is nothing to show.
fn end() -> i32 {
    let code = print("");
    if code == out::OK {
        out::NONE_RUNS
    } else {
        code
    }
}

/// Returns the line of a session.
fn describe(report: &StatusReport) -> String {
    let mut parts = Vec::new();
    let need = report.needs.first();
    parts.extend(need.map(|need| {
        let mark = if need.kind.is_urgent() { "! " } else { "" };
        format!("{mark}{}", need.kind.word().replace('_', " "))
    }));
    let context = &report.context;
    parts.extend(context.percent.map(|share| {
        let level = context.level.as_deref().and_then(label);
        let level = level.map_or_else(String::new, |level| format!(" {level}"));
        format!("{} %{level}", percent(share))
    }));
    let state = report.agent.state;
    // A need says these in its own words.
    let said = matches!(
        state,
        AgentState::Dialog | AgentState::Limit | AgentState::Exited
    );
    if need.is_none() || !said {
        parts.push(state.phrase().to_owned());
    }
    parts.extend(report.cost_usd.map(dollars));
    parts.join(" · ")
}

#[cfg(test)]
pub(in crate::cli) mod tests {
    use chrono::DateTime;
    use pitstop_core::api::wire::{NeedKind, NeedReport};

    use super::*;

    pub(in crate::cli) fn need(kind: NeedKind) -> NeedReport {
        NeedReport {
            id: 1,
            kind,
            what: "#[fg=red]#(rm)".to_owned(),
            why: "\u{1b}[31m".to_owned(),
            since: DateTime::UNIX_EPOCH,
            until: None,
            tool: Some("#S".to_owned()),
            answerable: true,
        }
    }

    #[test]
    fn what_waits_for_a_person_comes_first_and_no_foreign_text_is_in_it() {
        let mut report = super::super::tests::report();
        assert_eq!(describe(&report), "71 % warn · idle · $4.12");
        report.agent.state = AgentState::Dialog;
        report.needs = vec![need(NeedKind::Permission), need(NeedKind::Review)];
        assert_eq!(describe(&report), "! permission · 71 % warn · $4.12");
        report.agent.state = AgentState::Busy;
        report.needs = vec![need(NeedKind::RebootAsked)];
        report.context.level = Some("#(rm)".to_owned());
        assert_eq!(describe(&report), "! reboot asked · 71 % · working · $4.12");
        report.agent.state = AgentState::Limit;
        report.needs = vec![need(NeedKind::Limit)];
        report.context.percent = None;
        report.cost_usd = None;
        assert_eq!(describe(&report), "limit");
    }
}
