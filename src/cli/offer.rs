//! What `pitstop` shows at its start in a project with earlier work: the sessions that can be resumed, the newest checkpoint, and a
//! fresh session.
//!
//! It is shown before anything is started. It is not shown without a terminal, with arguments that choose a session, with `--new`, with
//! `ui.offer_past = false`, beside a supervisor that runs, or when there is a reboot to finish.

use std::{collections::HashSet, path::PathBuf};

use chrono::{DateTime, Utc};

use super::{
    here::Here,
    out::{self, ago},
    picker::{Picked, Picker},
    sessions::{self, is_of_the_demo},
};
use crate::{
    supervisor::program::DEMO,
    ui::picker::{PickerRow, Tone},
};
use pitstop_base::{format, redact::redact};
use pitstop_core::{
    app::model::carried::Carried,
    lineage::{Iteration, checkpoint::Checkpoint},
};
use pitstop_store::{Checkpoints, HistoryOf, Store, StoreError};
use pitstop_transcript::{SessionId, ending::Ending, tail::holds_conversation};

/// The number of newest runs that are searched for sessions that can be resumed.
const RUNS: u32 = 30;

/// The number of newest sessions that are offered.
const SESSIONS: usize = 30;

/// The number of newest checkpoints that are searched for one of real work.
const CHECKPOINTS: u32 = 20;

/// The choice of what to start.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Choice {
    /// Resumes this session.
    Resume(SessionId),
    /// Starts a fresh session with this checkpoint.
    Restore(Box<Checkpoint>),
    /// Starts a fresh session.
    New,
    /// Shows the session that runs here.
    Attach,
    /// Starts nothing, and ends with this code.
    Quit(i32),
}

/// A session that can be resumed.
#[derive(Clone, Debug)]
struct PastSession {
    id: SessionId,
    iteration: Iteration,
    /// What it was to achieve: the run's task, the objective that was preserved, or the first prompt.
    objective: Option<String>,
    ending: Ending,
}

/// The earlier work that can be continued.
#[derive(Clone, Debug, Default)]
struct Past {
    sessions: Vec<PastSession>,
    checkpoint: Option<Checkpoint>,
}

/// Has a person choose, if there is earlier work to offer.
pub(super) fn ask_for_work(here: &Here) -> Choice {
    if !here.config.ui.offer_past || here.faulty {
        return Choice::New;
    }
    let mut rows = rows(here, Utc::now());
    if rows.is_empty() {
        return Choice::New;
    }
    rows.push((fresh(), Choice::New));
    let title = format!("pitstop · {}", out::path(&here.directory));
    match Picker::new(title, rows).run(here.config.ui.theme, None) {
        Ok(Picked::Row(choice)) => choice,
        Ok(Picked::New) => Choice::New,
        Ok(Picked::Quit) => Choice::Quit(0),
        Ok(Picked::Ended(code)) => Choice::Quit(code),
        Err(error) => {
            let hint = "`pitstop --new` starts a fresh session without asking";
            Choice::Quit(out::failed(format!("the terminal cannot be used: {error}"), hint).show())
        }
    }
}

/// Returns the rows of the earlier work in a project, the newest first.
pub(super) fn rows(here: &Here, now: DateTime<Utc>) -> Vec<(PickerRow, Choice)> {
    if !here.has_store() {
        return Vec::new();
    }
    let places = sessions::places(Some(&here.paths), &here.config);
    let read = here.read_store(async |store| look(store, here, &places).await);
    // The supervisor can do without the store.
    let read = read.inspect_err(|failure| _ = failure.show());
    read.unwrap_or_default().rows(now)
}

fn fresh() -> PickerRow {
    PickerRow {
        fields: ["new", "", "", "Start a fresh session"]
            .map(str::to_owned)
            .to_vec(),
        enter: "start",
        ..PickerRow::default()
    }
}

async fn look(store: &Store, here: &Here, places: &[PathBuf]) -> Result<Past, StoreError> {
    if store.journal_open(&here.project).await?.is_some() {
        // The reboot is finished or rolled back at the start, so no other session can be chosen.
        return Ok(Past::default());
    }
    let of = HistoryOf::Project(here.project.clone());
    let mut runs = store.outline(&of, RUNS).await?;
    runs.retain(|run| run.run.agent != DEMO);
    runs.sort_by_key(|run| std::cmp::Reverse(run.run.started_at));
    let mut past = Past::default();
    let mut seen = HashSet::new();
    for history in runs {
        for iteration in history.iterations.into_iter().rev() {
            let Some(id) = iteration.session_id.filter(|id| seen.insert(*id)) else {
                continue;
            };
            let Some(transcript) = sessions::transcript_of(places, id) else {
                continue;
            };
            // The client refuses to resume a session without a prompt. One that cannot be read is taken to have one.
            if past.sessions.len() == SESSIONS || !holds_conversation(&transcript).unwrap_or(true) {
                continue;
            }
            let ending = Ending::read(&transcript).unwrap_or_default();
            let task = history.run.task.clone();
            let objective = match task.filter(|task| !task.trim().is_empty()) {
                Some(task) => Some(task),
                None => objective_of(store, id).await?,
            };
            past.sessions.push(PastSession {
                id,
                iteration,
                objective: objective.or_else(|| ending.first_prompt.clone()),
                ending,
            });
        }
    }
    let environment = here.environment();
    let which = Checkpoints {
        project: (!environment.chosen).then(|| here.project.clone()),
        environment: Some(environment.name),
        limit: CHECKPOINTS,
        ..Checkpoints::default()
    };
    for one in store.checkpoints(&which).await? {
        // Real work does not go on with what the scripted agent has made up.
        if !is_of_the_demo(store, &one).await? {
            past.checkpoint = Some(one);
            break;
        }
    }
    Ok(past)
}

/// Returns the objective that a session carried.
async fn objective_of(store: &Store, session: SessionId) -> Result<Option<String>, StoreError> {
    let carried = store.carried(session).await?;
    let carried: Option<Carried> = carried.and_then(|one| serde_json::from_value(one).ok());
    Ok(carried.and_then(|carried| carried.objective().map(ToOwned::to_owned)))
}

impl Past {
    /// Returns the rows of the offers, in their order.
    fn rows(&self, now: DateTime<Utc>) -> Vec<(PickerRow, Choice)> {
        let sessions = self.sessions.iter().map(|one| {
            let row = one.row(now, self.progress_of(one.id));
            (row, Choice::Resume(one.id))
        });
        let mut rows: Vec<(PickerRow, Choice)> = sessions.collect();
        if let Some(one) = &self.checkpoint {
            // The newest session is the usual choice.
            let at = rows.len().min(1);
            let row = checkpoint_row(one, now);
            rows.insert(at, (row, Choice::Restore(Box::new(one.clone()))));
        }
        rows
    }

    /// Returns the progress of a session by the newest checkpoint, if that was saved in it.
    fn progress_of(&self, session: SessionId) -> Option<String> {
        let checkpoint = self.checkpoint.as_ref();
        checkpoint
            .filter(|one| one.session == Some(session))
            .and_then(Checkpoint::progress)
    }
}

impl PastSession {
    fn row(&self, now: DateTime<Utc>, progress: Option<String>) -> PickerRow {
        let Ending {
            last_prompt,
            last_words,
            is_in_turn,
            ..
        } = &self.ending;
        let at = self.iteration.ended_at.unwrap_or(self.iteration.started_at);
        let tokens = self.iteration.tokens_at_end;
        let tokens = tokens.map(|used| format::tokens(used.0));
        let details = [
            ("objective", self.objective.clone()),
            ("you said", last_prompt.clone()),
            ("it said", last_words.clone()),
            ("ended", Some(how_it_ended(&self.iteration, *is_in_turn))),
            ("progress", progress),
            ("session", Some(self.id.to_string())),
        ];
        PickerRow {
            fields: vec![
                "resume".to_owned(),
                ago(at, now),
                tokens.unwrap_or_default(),
                one_line(
                    self.objective
                        .as_deref()
                        .unwrap_or("nothing is known of it"),
                ),
            ],
            details: said(details),
            enter: "resume",
            tone: Tone::Plain,
        }
    }
}

fn checkpoint_row(one: &Checkpoint, now: DateTime<Utc>) -> PickerRow {
    let short = format::short_id(one.id);
    let details = [
        (
            "checkpoint",
            Some(format!("{short}: a fresh session with its handoff")),
        ),
        (
            "task",
            Some(one.task.clone()).filter(|task| !task.is_empty()),
        ),
        ("next", one.next_steps.first().cloned()),
        ("progress", one.progress()),
    ];
    PickerRow {
        fields: vec![
            "restore".to_owned(),
            ago(one.created_at, now),
            String::new(),
            one_line(&one.task),
        ],
        details: said(details),
        enter: "restore",
        tone: Tone::Plain,
    }
}

/// Returns how a session ended, in words.
fn how_it_ended(iteration: &Iteration, is_in_turn: bool) -> String {
    let why = iteration.ending();
    let why = why.unwrap_or("pitstop or the machine went away");
    // A client that was ended in a turn may have closed that turn in its record.
    let when = if is_in_turn || iteration.in_turn {
        " in the middle of a turn"
    } else {
        ""
    };
    format!("{why}{when}")
}

/// Returns the details that are known, without secrets and each on one line.
fn said<const N: usize>(
    details: [(&'static str, Option<String>); N],
) -> Vec<(&'static str, String)> {
    let known = details
        .into_iter()
        .filter_map(|(name, said)| Some((name, said?)));
    known.map(|(name, said)| (name, one_line(&said))).collect()
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    redact(&words.join(" ")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pitstop_core::lineage::{EndReason, Lineage, RunId};
    use pitstop_transcript::Tokens;

    #[test]
    fn what_there_is_is_offered_with_what_it_was_about_and_how_it_ended() {
        let started = DateTime::from_timestamp(1_795_000_000, 0).unwrap();
        let id: SessionId = "5e551011-0000-4000-8000-000000000002".parse().unwrap();
        let mut lineage = Lineage::new(RunId::new(started, [1, 2, 3]));
        lineage.open(Some(id), None, started).unwrap();
        lineage.current_mut().unwrap().signal = Some("SIGHUP".to_owned());
        lineage.close(started, EndReason::Shutdown).unwrap();
        let mut iteration = lineage.iterations()[0].clone();
        iteration.tokens_at_end = Some(Tokens(128_000));
        let checkpoint = Checkpoint {
            id: uuid::Uuid::from_u128(0x0a1b_2c3d << 96),
            environment: "p".to_owned(),
            task: "port the importer".to_owned(),
            context: String::new(),
            next_steps: Vec::new(),
            tags: Vec::new(),
            state: serde_json::Value::Null,
            scratchpad: None,
            created_at: started,
            run: None,
            iteration: None,
            session: None,
        };
        let session = PastSession {
            id,
            iteration,
            objective: Some("port it\nnow".to_owned()),
            ending: Ending {
                last_words: Some("I read the parser.".to_owned()),
                is_in_turn: true,
                ..Ending::default()
            },
        };
        let past = Past {
            sessions: vec![session.clone(), session],
            checkpoint: Some(checkpoint.clone()),
        };
        let rows = past.rows(started + chrono::TimeDelta::hours(3));
        let fields: Vec<String> = rows.iter().map(|(row, _)| row.fields.join(" · ")).collect();
        assert_eq!(
            fields,
            [
                "resume · 3 h ago · 128k · port it now",
                "restore · 3 h ago ·  · port the importer",
                "resume · 3 h ago · 128k · port it now",
            ]
        );
        assert_eq!(rows[0].1, Choice::Resume(id));
        assert_eq!(rows[1].1, Choice::Restore(Box::new(checkpoint)));
        let details = &rows[0].0.details;
        let ended = "its terminal was closed in the middle of a turn".to_owned();
        assert!(details.contains(&("ended", ended)), "{details:?}");
        assert!(details.contains(&("it said", "I read the parser.".to_owned())));
        assert!(Past::default().rows(started).is_empty());
    }
}
