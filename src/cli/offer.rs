//! The question that `pitstop` asks at its start in a project with earlier work: resume the newest session, restore the newest
//! checkpoint, or start fresh.
//!
//! It is asked on the terminal before anything is started, in plain lines. It is not asked without a terminal, with arguments
//! for the agent, with `--new`, with `ui.offer_past = false`, beside a supervisor that runs, or when there is a reboot to
//! finish.

use std::io::{self, BufRead as _, Write as _};

use chrono::{DateTime, Utc};

use super::{here::Here, restore::is_of_the_demo, sessions};
use crate::supervisor::program::DEMO;
use pitstop_base::{clean::one_line, format, redact::redact};
use pitstop_core::lineage::{Iteration, checkpoint::Checkpoint};
use pitstop_store::{Checkpoints, HistoryOf, Store, StoreError};
use pitstop_transcript::{SessionId, tail::holds_conversation};

/// The number of newest runs that are searched for a session that can be resumed.
const RUNS: u32 = 8;

/// The number of newest checkpoints that are searched for one of real work.
const CHECKPOINTS: u32 = 20;

/// The number of times that the question is asked.
const TRIES: usize = 3;

/// The numbers of characters of a task and of an id that are shown.
const TASK: usize = 50;
const SHORT_ID: usize = 8;

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
    /// Starts nothing.
    Quit,
}

/// The earlier work that can be continued.
#[derive(Clone, Debug, Default)]
struct Past {
    session: Option<(SessionId, Iteration, Option<String>)>,
    checkpoint: Option<Checkpoint>,
}

/// Asks the question, if there is earlier work to offer.
pub(super) fn ask(here: &Here) -> Choice {
    if !here.config.ui.offer_past || here.faulty || !here.has_store() {
        return Choice::New;
    }
    let places = sessions::places(Some(&here.paths));
    let read = here.with_store(async |store| look(store, here, &places).await);
    // A fault of the store has been reported; the supervisor can do without it.
    let past = read.unwrap_or_default();
    let lines = past.lines(Utc::now());
    if lines.is_empty() {
        return Choice::New;
    }
    let mut out = io::stdout().lock();
    let mut said = String::from("This project has earlier work:\n");
    for (number, line) in (1..).zip(&lines) {
        said.push_str(&format!("  {number}  {}\n", redact(&one_line(line))));
    }
    said.push_str(&format!(
        "  {}  start a fresh session\n(`pitstop --new` or `ui.offer_past = false` starts one without asking)\n",
        lines.len() + 1
    ));
    let _ = out.write_all(said.as_bytes());
    for _ in 0..TRIES {
        let _ = write!(out, "Your choice, or q to quit [1]: ");
        let _ = out.flush();
        let mut answer = String::new();
        match io::stdin().lock().read_line(&mut answer) {
            Ok(0) | Err(_) => return Choice::Quit,
            Ok(_) => {}
        }
        if let Some(choice) = past.chosen(&answer) {
            return choice;
        }
    }
    Choice::Quit
}

async fn look(
    store: &Store,
    here: &Here,
    places: &[std::path::PathBuf],
) -> Result<Past, StoreError> {
    if store.journal_open(&here.project).await?.is_some() {
        // The reboot is finished or rolled back at the start, so no other session can be chosen.
        return Ok(Past::default());
    }
    let of = HistoryOf::Project(here.project.clone());
    let mut runs = store.history(&of, RUNS).await?;
    runs.retain(|run| run.run.agent != DEMO);
    runs.sort_by_key(|run| std::cmp::Reverse(run.run.started_at));
    let session = runs.into_iter().find_map(|history| {
        let task = history.run.task;
        let mut newest_first = history.iterations.into_iter().rev();
        newest_first.find_map(|iteration| {
            let id = iteration.session_id?;
            let transcript = sessions::transcript_of(places, id)?;
            // The client refuses to resume a session without a prompt. One that cannot be read is taken to have one.
            let resumes = holds_conversation(transcript).unwrap_or(true);
            resumes.then(|| (id, iteration, task.clone()))
        })
    });
    let environment = here.environment();
    let which = Checkpoints {
        project: (!environment.chosen).then(|| here.project.clone()),
        environment: Some(environment.name),
        limit: CHECKPOINTS,
        ..Checkpoints::default()
    };
    let mut checkpoint = None;
    for one in store.checkpoints(&which).await? {
        // Real work does not go on with what the scripted agent has made up.
        if !is_of_the_demo(store, &one).await? {
            checkpoint = Some(one);
            break;
        }
    }
    Ok(Past {
        session,
        checkpoint,
    })
}

impl Past {
    /// Returns the lines of the offers, in their order.
    fn lines(&self, now: DateTime<Utc>) -> Vec<String> {
        let ago = |at: DateTime<Utc>| {
            let age = now.signed_duration_since(at).to_std().unwrap_or_default();
            format::ago(age)
        };
        let start = |text: &str| -> String {
            let line = text.trim().lines().next().unwrap_or_default();
            line.chars().take(TASK).collect()
        };
        let short = |id: String| -> String { id.chars().take(SHORT_ID).collect() };
        let mut lines = Vec::new();
        if let Some((id, iteration, task)) = &self.session {
            let at = iteration.ended_at.unwrap_or(iteration.started_at);
            let mut parts = vec![
                format!("resume the newest session, {}", short(id.to_string())),
                ago(at),
            ];
            let used = iteration.tokens_at_end;
            parts.extend(used.map(|used| format!("{} tokens", format::tokens(used.0))));
            parts.extend(task.as_deref().map(start));
            let of_it = |one: &&Checkpoint| one.session == Some(*id);
            let of_it = self.checkpoint.as_ref().filter(of_it);
            parts.extend(of_it.and_then(Checkpoint::progress));
            lines.push(parts.join(" · "));
        }
        if let Some(one) = &self.checkpoint {
            let mut parts = vec![
                format!(
                    "restore the newest checkpoint, {}",
                    short(one.id.to_string())
                ),
                ago(one.created_at),
            ];
            let task = start(&one.task);
            parts.extend((!task.is_empty()).then_some(task));
            parts.extend(one.progress());
            lines.push(parts.join(" · "));
        }
        lines
    }

    /// Returns the meaning of an answer; none if it is not one of the answers.
    fn chosen(&self, answer: &str) -> Option<Choice> {
        let session = self.session.as_ref().map(|(id, ..)| Choice::Resume(*id));
        let checkpoint = self.checkpoint.clone();
        let checkpoint = checkpoint.map(|one| Choice::Restore(Box::new(one)));
        let choices = [session, checkpoint, Some(Choice::New)];
        let mut choices = choices.into_iter().flatten();
        match answer.trim() {
            "" => choices.next(),
            "q" | "Q" => Some(Choice::Quit),
            "n" | "new" => Some(Choice::New),
            number => {
                let number: usize = number.parse().ok()?;
                choices.nth(number.checked_sub(1)?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pitstop_transcript::Tokens;

    #[test]
    fn what_there_is_is_offered_by_number_and_nothing_else_is_taken() {
        let started = DateTime::from_timestamp(1_795_000_000, 0).unwrap();
        let id: SessionId = "5e551011-0000-4000-8000-000000000002".parse().unwrap();
        let mut lineage = pitstop_core::lineage::Lineage::new(pitstop_core::lineage::RunId::new(
            started,
            [1, 2, 3],
        ));
        lineage.open(Some(id), None, started).unwrap();
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
        let past = Past {
            session: Some((id, iteration, Some("port it\nnow".to_owned()))),
            checkpoint: Some(checkpoint.clone()),
        };
        assert_eq!(
            past.lines(started + chrono::TimeDelta::hours(3)),
            [
                "resume the newest session, 5e551011 · 3 h ago · 128k tokens · port it",
                "restore the newest checkpoint, 0a1b2c3d · 3 h ago · port the importer",
            ]
        );
        let restore = Choice::Restore(Box::new(checkpoint));
        for (answer, choice) in [
            ("\n", Some(Choice::Resume(id))),
            ("1\n", Some(Choice::Resume(id))),
            (" 2 \n", Some(restore)),
            ("3\n", Some(Choice::New)),
            ("new\n", Some(Choice::New)),
            ("q\n", Some(Choice::Quit)),
            ("4\n", None),
            ("0\n", None),
            ("what\n", None),
        ] {
            assert_eq!(past.chosen(answer), choice, "{answer:?}");
        }
        // If there is no session, the checkpoint is the first offer.
        let past = Past {
            session: None,
            ..past
        };
        assert!(matches!(past.chosen("\n"), Some(Choice::Restore(_))));
        assert_eq!(Past::default().lines(started), Vec::<String>::new());
    }
}
