//! `pitstop handoff [--check] [--json]`: the message that the next session would be given now, or the facts that it omits, and
//! the claims in it that its session does not support.
//!
//! The check needs no supervisor: without one it compares the newest session of this project that gave a handoff, or saved
//! a checkpoint, with its transcript.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::{
    here::Here,
    out::{self, Failure, Outcome},
    sessions,
};
use crate::runtime::store_writer::find_carried;
use pitstop_agent::claude::projects::directory_of;
use pitstop_base::clean;
use pitstop_core::{
    api::wire::{HandoffCheck, HandoffReport, MissingFact, UnfoundedLine},
    app::report::{handoff_check, past_handoff},
    config::load::Flags,
    lineage::past::{MessageKind, PastSession},
};
use pitstop_handoff::{
    PreservedState,
    breakpoint::git::{self, GitState},
    check,
    check::Class,
    claims::Claims,
};
use pitstop_store::{HistoryOf, RunHistory, Store, StoreError};
use pitstop_transcript::{
    SessionId,
    digest::Digest,
    human::HumanWords,
    tail::{Tail, TailError, read_pieces},
    work::WorkAtHand,
};

/// The number of newest runs that are searched for a handoff.
const RUNS: u32 = 16;

/// Print the handoff as it would be sent now.
#[derive(Args, Clone, Debug)]
pub struct HandoffArgs {
    /// Print what the handoff does not say of the session (prompts of yours, recent facts of the work), and its lines that claim what
    /// does not stand in the transcript; exit code 1 if anything
    #[arg(long)]
    pub check: bool,
    /// Print one JSON object, with the parts it was made of
    #[arg(long)]
    pub json: bool,
}

/// Runs the command; returns 0, or 3 if no supervisor runs here, or 1. A check returns 0 if nothing is missing, 1 if something
/// is, or if it failed, 3 if no supervisor runs here and none ever did.
pub fn run(args: &HandoffArgs, flags: &Flags) -> Outcome {
    if args.check {
        return run_check(args, flags);
    }
    let (report, json) = out::get::<HandoffReport>(PRESENT)?;
    let text = out::render(args.json, || json, || describe_handoff(&report));
    Ok(out::print(&text))
}

/// The path of the present session's handoff in the API.
const PRESENT: &str = "/api/sessions/current/handoff";

fn run_check(args: &HandoffArgs, flags: &Flags) -> Outcome {
    let here = Here::find(flags)?;
    let (mut found, report) = match out::get_if_any::<HandoffReport>(PRESENT)? {
        Some((mut report, _)) => match report.check.take() {
            Some(check) => (check, report),
            None => {
                return Err(out::failed(
                    "there is no handoff to check",
                    "`[handoff] generate_handoff` is off",
                ));
            }
        },
        None => last_check(&here)?,
    };
    let session = report.session_id.as_deref();
    let session = session.and_then(|session| session.parse().ok());
    // There is no transcript before the first prompt.
    if let Some((session, transcript)) =
        session.and_then(|session| Some((session, transcript_of(&here, session)?)))
    {
        let mut transcripts: Vec<_> = left_sessions(&here, session)
            .into_iter()
            .filter_map(|left| transcript_of(&here, left))
            .collect();
        transcripts.push(transcript);
        found.unfounded = Some(unfounded_lines(&here, &report, &transcripts)?);
    }
    let text = out::render(args.json, || json!(found), || describe_check(&found));
    let printed = out::print(&text);
    let is_founded = found.unfounded.as_ref().is_none_or(Vec::is_empty);
    Ok(if printed == out::OK && !(found.complete && is_founded) {
        out::FAILED
    } else {
        printed
    })
}

fn transcript_of(here: &Here, session: SessionId) -> Option<PathBuf> {
    let places = sessions::places(Some(&here.paths), &here.config);
    sessions::transcript_of(&places, session)
}

/// Returns the sessions that were left without a handoff and from which this one carries on; none where the store cannot be read.
fn left_sessions(here: &Here, session: SessionId) -> Vec<SessionId> {
    let read = async |store: &Store| Ok(find_carried(store, session).await);
    let found = here.read_store(read).ok().and_then(Result::ok).flatten();
    found.map_or_else(Vec::new, |carried| carried.left_sessions)
}

/// The number of commits that are searched for those that a handoff names.
const COMMITS: usize = 1_000;

/// Returns the lines of a handoff whose claims are neither in the transcripts, of which the last is the session's own, nor in git,
/// nor in the scratchpad.
fn unfounded_lines(
    here: &Here,
    report: &HandoffReport,
    transcripts: &[PathBuf],
) -> Result<Vec<UnfoundedLine>, Failure> {
    let mut claims = Claims::of_handoff(&report.text);
    for transcript in transcripts {
        read_pieces(transcript, u64::MAX, 0, |piece| claims.push(piece))?;
    }
    // In a work tree it has made commits that no other branch has.
    let place = transcripts
        .last()
        .and_then(|transcript| directory_of(transcript));
    let place = place.filter(|place| place.is_dir());
    let facts = git::facts(place.as_ref().unwrap_or(&here.directory), COMMITS, None);
    if let GitState::Facts(repository) = out::runtime()?.block_on(facts) {
        for commit in &repository.commits {
            claims.look_in(&format!("{} {}", commit.sha, commit.subject));
        }
        repository
            .notes
            .iter()
            .for_each(|note| claims.look_in(note));
    }
    let beside = report.sources.iter();
    for item in beside.filter(|item| matches!(item.source.as_str(), "git" | "scratchpad")) {
        claims.look_in(&item.text);
    }
    for decision in &report.key_decisions {
        let of_notes = report.sources.iter();
        let mut of_notes = of_notes.filter(|item| item.source == "scratchpad");
        if of_notes.any(|item| item.text == decision.text) {
            claims.look_in(decision.reason.as_deref().unwrap_or_default());
        }
    }
    let lines = claims
        .into_unfounded()
        .into_iter()
        .map(|one| UnfoundedLine {
            line: one.line as u64,
            text: one.text,
            claims: one.claims,
        });
    Ok(lines.collect())
}

/// Returns the check of the newest session here of which a handoff is kept, and that handoff.
fn last_check(here: &Here) -> Result<(HandoffCheck, HandoffReport), Failure> {
    here.require_config()?;
    if !here.has_store() {
        return Err(out::none_recorded());
    }
    let of = HistoryOf::Project(here.project.clone());
    let found = here.read_store(async |store| {
        let runs = store.history(&of, RUNS).await?;
        // Other projects have records there, too.
        if runs.is_empty() {
            return Ok(None);
        }
        last_handoff(store, runs).await.map(Some)
    })?;
    let Some(past) = found.ok_or_else(out::none_recorded)? else {
        return Err(out::failed(
            "no session of this project has made a handoff",
            "start `pitstop` here; `pitstop save` keeps a checkpoint",
        ));
    };
    let report = past_handoff(&past);
    let session = report.session_id.as_deref();
    let session = session.and_then(|session| session.parse().ok());
    let transcript = session.and_then(|session| transcript_of(here, session));
    let Some(transcript) = transcript else {
        let id = report.session_id.as_deref().unwrap_or("without an id");
        return Err(out::failed(
            format!("the transcript of the session {id} is not there"),
            "without it there is nothing to compare the handoff with; the client deletes old transcripts",
        ));
    };
    let (work, words) = read_transcript(&transcript)?;
    let message = past.message();
    let state = message.and_then(|message| message.state).cloned();
    let state = state.and_then(|state| serde_json::from_value::<PreservedState>(state).ok());
    let mut state = state.unwrap_or_default();
    state.feed_human(&words);
    let found = handoff_check(&check(&report.text, &state, &work));
    Ok((found, report))
}

/// Returns the newest session of these runs of which a handoff is kept.
async fn last_handoff(
    store: &Store,
    mut runs: Vec<RunHistory>,
) -> Result<Option<PastSession>, StoreError> {
    runs.sort_by_key(|one| std::cmp::Reverse(one.run.started_at));
    for run in runs {
        for iteration in run.iterations.iter().rev() {
            let past = store.past(&run.run.run, iteration.iteration).await?;
            let message = past.as_ref().and_then(PastSession::message);
            let kind = message.map(|one| one.kind);
            if matches!(kind, Some(MessageKind::Given | MessageKind::Saved)) {
                return Ok(past);
            }
        }
    }
    Ok(None)
}

/// Reads the work at hand and the human's words from a transcript.
fn read_transcript(path: &Path) -> Result<(WorkAtHand, HumanWords), TailError> {
    let mut tail = Tail::open(path)?;
    let mut digest = Digest::new(1);
    // The whole file is history: signals and commands are not needed here.
    let mut history = u64::MAX;
    while tail.read_into(u64::MAX, &mut digest, &mut history)?.more {}
    let work = digest.take_work().unwrap_or_default();
    Ok((work, digest.take_human().unwrap_or_default()))
}

/// Returns the check for people: the finding, and a list for each kind.
fn describe_check(check: &HandoffCheck) -> String {
    let mut text = format!("{}\n", clean::one_line(&check.finding));
    let mut list = |title: &str, items: &mut dyn Iterator<Item = &String>| {
        let mut items = items.peekable();
        if items.peek().is_some() {
            text.push_str(&format!("\n{title}:\n"));
        }
        for item in items {
            text.push_str(&format!("- {}\n", clean::one_line(item)));
        }
    };
    list("prompts of yours", &mut check.missing_prompts.iter());
    for &class in Class::ALL {
        let of_class = |fact: &&MissingFact| fact.class == class.word();
        let facts = check.missing_facts.iter().filter(of_class);
        let title = class.title().to_lowercase();
        list(&title, &mut facts.map(|fact| &fact.text));
    }
    let unfounded = check.unfounded.iter().flatten();
    let lines: Vec<String> = unfounded
        .map(|one| {
            format!(
                "line {}: {} (not found: {})",
                one.line,
                one.text,
                one.claims.join(" · ")
            )
        })
        .collect();
    list(
        "lines that claim what the session's transcript does not have",
        &mut lines.iter(),
    );
    text
}

/// Returns the message as text that ends its last line; escape sequences that it quotes cannot control the terminal.
fn describe_handoff(report: &HandoffReport) -> String {
    let mut text = clean::text(&report.text).into_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_keeps_its_lines_and_tabs_and_loses_its_teeth() {
        let report = HandoffReport {
            text: "# Plan\n\tdo\u{1b}]0;x\u{7}\r\n\nend".into(),
            ..HandoffReport::default()
        };
        assert_eq!(
            describe_handoff(&report),
            "# Plan\n\tdo\\u{1b}]0;x\\u{7}\n\nend\n"
        );
    }

    #[test]
    fn what_is_missing_is_listed_by_its_kind() {
        let fact = |class: &str, text: &str| MissingFact {
            class: class.to_owned(),
            text: text.to_owned(),
        };
        let check = HandoffCheck {
            finding: "1 prompt of yours and 2 of 9 recent facts are not in it".to_owned(),
            missing_prompts: vec!["Never \u{1b}x.".to_owned()],
            missing_facts: vec![fact("command", "cargo test"), fact("file", "src/a.rs")],
            unfounded: Some(vec![UnfoundedLine {
                line: 34,
                text: "- `make it` in src/b.rs".to_owned(),
                claims: vec!["src/b.rs".to_owned(), "make it".to_owned()],
            }]),
            ..HandoffCheck::default()
        };
        assert_eq!(
            describe_check(&check),
            "1 prompt of yours and 2 of 9 recent facts are not in it\n\nprompts of yours:\n- Never \\u{1b}x.\n\n\
             files:\n- src/a.rs\n\ncommands:\n- cargo test\n\n\
             lines that claim what the session's transcript does not have:\n\
             - line 34: - `make it` in src/b.rs (not found: src/b.rs · make it)\n"
        );
    }
}
