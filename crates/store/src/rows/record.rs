//! Rows, read back as records; what cannot be read is `None`.

use std::str::FromStr;

use chrono::{DateTime, Utc};

use super::write::SavedState;
use crate::{
    AgentRecord, RunRecord, Saved,
    db::{Cell, Cells},
};
use pitstop_core::lineage::{
    Iteration, IterationId, ProcessStamp, Project, RunId, TokenTotals,
    checkpoint::Checkpoint,
    journal::JournalEntry,
    metrics::{Metric, Total},
};
use pitstop_transcript::Tokens;

pub(crate) fn run_in(row: &Cells) -> Option<RunRecord> {
    let mut row = Reader::new(row);
    Some(RunRecord {
        run: row.next_word()?,
        project: Project {
            hash: row.next_text()?,
            path: row.next_text()?,
            host: row.next_text()?,
        },
        process: row.next_process()?,
        agent: row.next_text()?,
        version: row.next_text()?,
        task: row.next_text(),
        started_at: row.next_word()?,
        ended_at: row.next_word(),
        end_reason: row.next_word(),
    })
}

pub(crate) fn saved_in(row: &Cells) -> Option<Saved> {
    let mut row = Reader::new(row);
    Some(Saved {
        id: row.next_word()?,
        environment: row.next_text()?,
        project: row.next_text()?,
        created_at: row.next_word()?,
    })
}

/// Reads a row that begins with the run.
pub(crate) fn iteration_of_run(row: &Cells) -> Option<(RunId, Iteration)> {
    let mut row = Reader::new(row);
    Some((row.next_word()?, read_iteration_from(row)?))
}

pub(crate) fn iteration_in(row: &Cells) -> Option<Iteration> {
    read_iteration_from(Reader::new(row))
}

fn read_iteration_from(mut row: Reader<'_>) -> Option<Iteration> {
    Some(Iteration {
        iteration: IterationId::new(row.next_number()?)?,
        session_id: row.next_word(),
        started_at: row.next_word()?,
        ended_at: row.next_word(),
        end_reason: row.next_word(),
        tokens: TokenTotals {
            input: Tokens(row.next_number()?),
            output: Tokens(row.next_number()?),
        },
        summary: row.next_text(),
        parent: row.next_number().and_then(IterationId::new),
        tokens_at_birth: row.next_number().map(Tokens),
        tokens_at_end: row.next_number().map(Tokens),
        cost_usd: row.next_real(),
        cause: row.next_word(),
        reboot: row.next_json(),
        compactions: row
            .next_number()
            .and_then(|count| u32::try_from(count).ok())
            .unwrap_or(0),
        summary_made: row.next_json(),
        turns: row
            .next_number()
            .and_then(|count| u32::try_from(count).ok()),
        signal: row.next_text(),
        in_turn: row.next_number() == Some(1),
        duration_ms: row.next_number(),
    })
}

pub(crate) fn place_in(row: &Cells) -> Option<(RunId, IterationId)> {
    let mut row = Reader::new(row);
    Some((row.next_word()?, IterationId::new(row.next_number()?)?))
}

pub(crate) fn carried_in(row: &Cells) -> Option<serde_json::Value> {
    serde_json::from_str(&Reader::new(row).next_text()?).ok()
}

pub(crate) fn carried_at_in(row: &Cells) -> Option<DateTime<Utc>> {
    Reader::new(row).next_word()
}

pub(crate) fn journal_entry_in(row: &Cells) -> Option<JournalEntry> {
    Reader::new(row).next_json()
}

pub(crate) fn checkpoint_in(row: &Cells) -> Option<Checkpoint> {
    let mut row = Reader::new(row);
    let format = row.next_number()?;
    let (id, environment) = (row.next_word()?, row.next_text()?);
    let (task, context) = (row.next_text()?, row.next_text()?);
    let (next_steps, tags) = (row.next_json()?, row.next_json()?);
    let saved = if format < 2 {
        SavedState {
            state: row.next_json()?,
            scratchpad: None,
        }
    } else {
        row.next_json()?
    };
    Some(Checkpoint {
        id,
        environment,
        task,
        context,
        next_steps,
        tags,
        state: saved.state,
        scratchpad: saved.scratchpad,
        created_at: row.next_word()?,
        run: row.next_word(),
        iteration: row.next_number().and_then(IterationId::new),
        session: row.next_word(),
    })
}

pub(crate) fn agent_in(row: &Cells) -> Option<AgentRecord> {
    let mut row = Reader::new(row);
    Some(AgentRecord {
        run: row.next_word()?,
        iteration: IterationId::new(row.next_number()?)?,
        process: row.next_process()?,
    })
}

pub(crate) fn metric_in(row: &Cells) -> Option<Metric> {
    let mut row = Reader::new(row);
    Some(Metric {
        iteration: IterationId::new(row.next_number()?),
        name: row.next_text()?,
        at: row.next_word()?,
        value: row.next_real()?,
    })
}

pub(crate) fn total_in(row: &Cells) -> Option<Total> {
    let mut row = Reader::new(row);
    Some(Total {
        name: row.next_text()?,
        count: row.next_number()?,
        sum: row.next_real()?,
        max: row.next_real()?,
    })
}

/// A reader of a row's cells in the order of its columns; a cell that does not fit its kind reads as `None`.
struct Reader<'a>(std::slice::Iter<'a, Cell>);

impl<'a> Reader<'a> {
    fn new(row: &'a Cells) -> Self {
        Self(row.iter())
    }

    fn next_text(&mut self) -> Option<String> {
        match self.0.next()? {
            Cell::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    fn next_word<T: FromStr>(&mut self) -> Option<T> {
        self.next_text()?.parse().ok()
    }

    fn next_json<T: serde::de::DeserializeOwned>(&mut self) -> Option<T> {
        serde_json::from_str(&self.next_text()?).ok()
    }

    fn next_process(&mut self) -> Option<ProcessStamp> {
        Some(ProcessStamp {
            pid: self.next_number()?.try_into().ok()?,
            start_time: self.next_text()?,
        })
    }

    fn next_number(&mut self) -> Option<u64> {
        match self.0.next()? {
            Cell::Int(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    fn next_real(&mut self) -> Option<f64> {
        match self.0.next()? {
            Cell::Real(number) => Some(*number),
            Cell::Int(number) => Some(*number as f64),
            _ => None,
        }
    }
}
