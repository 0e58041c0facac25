//! Follows the transcript on a thread that may block, and tells what it says.

use std::{path::PathBuf, sync::mpsc as std_mpsc, thread};

use tokio::sync::mpsc;

use crate::{
    app::{
        Event,
        event::{ReadEvent, TranscriptFacts},
    },
    lineage::TokenTotals,
    transcript::{
        SessionId, Tokens,
        tail::{Figure, Tail},
    },
};

/// Bytes read before the figures are told: a large transcript shows its progress.
const BUDGET: u64 = 64 * 1024 * 1024;

/// What the follower is told.
#[derive(Debug)]
pub enum Poke {
    /// Follow this file from now on.
    Follow(SessionId, PathBuf),
    /// It may have grown.
    Grown,
}

/// Starts the follower; it ends when the sender is dropped.
pub fn start(events: mpsc::Sender<Event>) -> std::io::Result<std_mpsc::Sender<Poke>> {
    let (sender, pokes) = std_mpsc::channel();
    thread::Builder::new()
        .name("transcript".to_owned())
        .spawn(move || follow(&pokes, &events))?;
    Ok(sender)
}

fn follow(pokes: &std_mpsc::Receiver<Poke>, events: &mpsc::Sender<Event>) {
    let mut following: Option<(SessionId, PathBuf, Tail)> = None;
    let mut skipped = 0;
    let mut seen = false;
    while let Ok(first) = pokes.recv() {
        // Many pokes at once are one.
        for poke in std::iter::once(first).chain(pokes.try_iter()) {
            let Poke::Follow(session, path) = poke else {
                continue;
            };
            if following
                .as_ref()
                .is_some_and(|(one, at, _)| *one == session && *at == path)
            {
                continue;
            }
            skipped = 0;
            seen = false;
            following = match Tail::open(path.clone()) {
                Ok(tail) => Some((session, path, tail)),
                Err(error) => {
                    lost(events, session, &error);
                    None
                }
            };
        }
        let Some((session, _, tail)) = &mut following else {
            continue;
        };
        loop {
            let report = match tail.read_new(BUDGET) {
                Ok(report) => report,
                Err(error) => {
                    lost(events, *session, &error);
                    break;
                }
            };
            if report.vanished && !seen {
                // The agent names its transcript before it writes it.
                break;
            }
            if report.vanished {
                seen = false;
                let why = "it is not there".to_owned();
                send(
                    events,
                    ReadEvent::TranscriptLost {
                        session: *session,
                        why,
                    },
                );
                break;
            }
            seen = true;
            let changed = report.records > 0 || report.figure != Figure::Same || report.reset;
            let facts = facts(tail);
            if facts.skipped > skipped {
                let path = tail.path().display().to_string();
                tracing::warn!(
                    path,
                    lines = facts.skipped,
                    "lines of the transcript were skipped"
                );
                skipped = facts.skipped;
            }
            if changed {
                let facts = Box::new(facts);
                send(
                    events,
                    ReadEvent::Transcript {
                        session: *session,
                        facts,
                    },
                );
            }
            if !report.more {
                break;
            }
        }
    }
}

fn facts(tail: &Tail) -> TranscriptFacts {
    let scan = tail.scan();
    let totals = scan.totals();
    TranscriptFacts {
        used: tail.latest().map(crate::transcript::usage::Usage::context),
        model: scan.model().map(str::to_owned),
        totals: TokenTotals {
            input: totals.prompt(),
            output: Tokens(totals.output.0),
        },
        turns: scan.turns(),
        compactions: scan.compactions(),
        whole: tail.caught_up(),
        first_prompt: scan.first_prompt().map(str::to_owned),
        last_prompt: scan.last_prompt().map(str::to_owned),
        skipped: tail.faults().skipped(),
    }
}

fn lost(events: &mpsc::Sender<Event>, session: SessionId, error: &dyn std::error::Error) {
    send(
        events,
        ReadEvent::TranscriptLost {
            session,
            why: super::keeper::told(error),
        },
    );
}

fn send(events: &mpsc::Sender<Event>, event: ReadEvent) {
    // The loop is gone: so shall we be.
    let _ = events.blocking_send(Event::Read(event));
}
