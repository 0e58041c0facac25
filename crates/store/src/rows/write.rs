//! The statements that write.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::bind::{bind_count, bind_maybe, bind_number, bind_text, bind_time, masked_json};
use crate::{
    AgentRecord, RunRecord,
    db::{Bind, Statement},
};
use pitstop_core::lineage::{
    EndReason, Iteration, IterationId, ProcessStamp, Project, RunId,
    checkpoint::{Checkpoint, FORMAT, SavedScratchpad},
    journal::JournalEntry,
    metrics::Metric,
    moment,
};
use pitstop_transcript::SessionId;

/// A change to the database. Each is an upsert or an idempotent update, so that one which may or
/// may not have been done (the answer was lost) can be done again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Write {
    Run(Box<RunRecord>),
    RunEnd {
        run: RunId,
        at: DateTime<Utc>,
        reason: EndReason,
    },
    Iteration {
        run: RunId,
        iteration: Box<Iteration>,
    },
    Journal(Box<JournalEntry>),
    JournalClose {
        reboot_id: Uuid,
        at: DateTime<Utc>,
        outcome: String,
    },
    Checkpoint {
        project: Project,
        checkpoint: Box<Checkpoint>,
    },
    Agent(AgentRecord),
    AgentGone {
        run: RunId,
        process: ProcessStamp,
    },
    Metric {
        run: RunId,
        metric: Metric,
    },
    ForgetRun(RunId),
    ForgetCheckpoint(Uuid),
    Carried {
        run: RunId,
        session: SessionId,
        at: DateTime<Utc>,
        state: Box<serde_json::Value>,
    },
}

impl Write {
    /// Returns the statement that does it.
    pub(crate) fn statement(&self) -> Statement {
        match self {
            Self::Run(run) => write_run(run),
            Self::RunEnd { run, at, reason } => Statement {
                sql: "UPDATE runs SET ended_at = $2, end_reason = $3 WHERE run_id = $1",
                binds: vec![bind_text(run), bind_time(*at), bind_text(reason)],
            },
            Self::Iteration { run, iteration } => write_iteration(run, iteration),
            Self::Journal(entry) => write_journal(entry),
            Self::JournalClose {
                reboot_id,
                at,
                outcome,
            } => Statement {
                sql: "UPDATE journal SET closed_at = $2, outcome = $3 \
                      WHERE reboot_id = $1 AND closed_at IS NULL",
                binds: vec![bind_text(reboot_id), bind_time(*at), bind_text(outcome)],
            },
            Self::Checkpoint {
                project,
                checkpoint,
            } => write_checkpoint(project, checkpoint),
            Self::Agent(agent) => Statement {
                sql: "INSERT INTO agents (run_id, iteration, pid, pid_started, gone) \
                      VALUES ($1, $2, $3, $4, 0) \
                      ON CONFLICT (run_id, pid, pid_started) DO UPDATE SET iteration = excluded.iteration",
                binds: vec![
                    bind_text(&agent.run),
                    bind_number(agent.iteration.get()),
                    bind_number(agent.process.pid),
                    bind_text(&agent.process.start_time),
                ],
            },
            Self::AgentGone { run, process } => Statement {
                sql: "UPDATE agents SET gone = 1 WHERE run_id = $1 AND pid = $2 AND pid_started = $3",
                binds: vec![
                    bind_text(run),
                    bind_number(process.pid),
                    bind_text(&process.start_time),
                ],
            },
            Self::ForgetRun(run) => Statement {
                sql: "DELETE FROM runs WHERE run_id = $1",
                binds: vec![bind_text(run)],
            },
            Self::ForgetCheckpoint(id) => Statement {
                sql: "DELETE FROM checkpoints WHERE id = $1",
                binds: vec![bind_text(id)],
            },
            Self::Carried {
                run,
                session,
                at,
                state,
            } => Statement {
                sql: "INSERT INTO carried (session_id, run_id, written_at, state) VALUES ($1, $2, $3, $4) \
                      ON CONFLICT (session_id) DO UPDATE SET run_id = excluded.run_id, \
                      written_at = excluded.written_at, state = excluded.state \
                      WHERE carried.written_at <= excluded.written_at",
                binds: vec![
                    bind_text(session),
                    bind_text(run),
                    bind_time(*at),
                    Bind::Text(Some(masked_json(state))),
                ],
            },
            Self::Metric { run, metric } => Statement {
                sql: "INSERT INTO metrics (run_id, iteration, name, measured_at, value) \
                      VALUES ($1, $2, $3, $4, $5) \
                      ON CONFLICT (run_id, iteration, name, measured_at) DO UPDATE SET value = excluded.value",
                binds: vec![
                    bind_text(run),
                    bind_number(metric.iteration.map_or(0, IterationId::get)),
                    bind_text(&metric.name),
                    bind_time(metric.at),
                    Bind::Real(Some(metric.value)),
                ],
            },
        }
    }
}

fn write_run(run: &RunRecord) -> Statement {
    Statement {
        sql: "INSERT INTO runs (run_id, project_hash, project_path, host, pid, pid_started, agent, \
              version, task, started_at, ended_at, end_reason) \
              VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
              ON CONFLICT (run_id) DO UPDATE SET pid = excluded.pid, pid_started = excluded.pid_started, \
              agent = excluded.agent, version = excluded.version, \
              task = excluded.task, ended_at = excluded.ended_at, end_reason = excluded.end_reason",
        binds: vec![
            bind_text(&run.run),
            bind_text(&run.project.hash),
            bind_text(&run.project.path),
            bind_text(&run.project.host),
            bind_number(run.process.pid),
            bind_text(&run.process.start_time),
            bind_text(&run.agent),
            bind_text(&run.version),
            bind_maybe(run.task.as_ref()),
            bind_time(run.started_at),
            Bind::Text(run.ended_at.map(moment::text)),
            bind_maybe(run.end_reason),
        ],
    }
}

fn write_iteration(run: &RunId, iteration: &Iteration) -> Statement {
    Statement {
        sql: "INSERT INTO iterations (run_id, iteration, session_id, started_at, ended_at, end_reason, \
              tokens_input, tokens_output, summary, parent, tokens_at_birth, tokens_at_end, cost_usd, \
              cause, reboot, compactions, summary_made, turns, signal, in_turn, duration_ms) \
              VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21) \
              ON CONFLICT (run_id, iteration) DO UPDATE SET session_id = excluded.session_id, \
              started_at = excluded.started_at, ended_at = excluded.ended_at, \
              end_reason = excluded.end_reason, tokens_input = excluded.tokens_input, \
              tokens_output = excluded.tokens_output, summary = excluded.summary, \
              parent = excluded.parent, tokens_at_birth = excluded.tokens_at_birth, \
              tokens_at_end = excluded.tokens_at_end, cost_usd = excluded.cost_usd, \
              cause = excluded.cause, reboot = excluded.reboot, \
              compactions = excluded.compactions, summary_made = excluded.summary_made, \
              turns = excluded.turns, signal = excluded.signal, in_turn = excluded.in_turn, \
              duration_ms = excluded.duration_ms",
        binds: vec![
            bind_text(run),
            bind_number(iteration.iteration.get()),
            bind_maybe(iteration.session_id),
            bind_time(iteration.started_at),
            Bind::Text(iteration.ended_at.map(moment::text)),
            bind_maybe(iteration.end_reason),
            bind_number(iteration.tokens.input.0),
            bind_number(iteration.tokens.output.0),
            bind_maybe(iteration.summary.as_ref()),
            bind_count(iteration.parent.map(IterationId::get)),
            bind_count(iteration.tokens_at_birth.map(|tokens| tokens.0)),
            bind_count(iteration.tokens_at_end.map(|tokens| tokens.0)),
            Bind::Real(iteration.cost_usd),
            bind_maybe(iteration.cause),
            Bind::Text(iteration.reboot.as_ref().map(masked_json)),
            bind_number(iteration.compactions),
            Bind::Text(iteration.summary_made.as_ref().map(masked_json)),
            bind_count(iteration.turns.map(u64::from)),
            Bind::Text(iteration.signal.clone()),
            bind_count(iteration.in_turn.then_some(1)),
            bind_count(iteration.duration_ms),
        ],
    }
}

fn write_journal(entry: &JournalEntry) -> Statement {
    Statement {
        // A late write must not open a reboot again that is over.
        sql: "INSERT INTO journal (reboot_id, run_id, iteration, step, entry, written_at, closed_at, outcome) \
              VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
              ON CONFLICT (reboot_id) DO UPDATE SET step = excluded.step, entry = excluded.entry, \
              written_at = excluded.written_at, closed_at = excluded.closed_at, outcome = excluded.outcome \
              WHERE journal.closed_at IS NULL",
        binds: vec![
            bind_text(&entry.reboot_id),
            bind_text(&entry.run),
            bind_number(entry.iteration.get()),
            bind_text(&entry.step),
            Bind::Text(Some(masked_json(entry))),
            bind_time(entry.at),
            Bind::Text(entry.step.is_final().then(|| moment::text(entry.at))),
            bind_maybe(entry.outcome.as_ref()),
        ],
    }
}

/// The column `state` of a checkpoint from format 2 on; format 1 has only the preserved state there.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct SavedState {
    #[serde(default)]
    pub(super) state: serde_json::Value,
    pub(super) scratchpad: Option<SavedScratchpad>,
}

fn write_checkpoint(project: &Project, checkpoint: &Checkpoint) -> Statement {
    Statement {
        sql: "INSERT INTO checkpoints (id, environment, task, context, next_steps, tags, state, format, \
              created_at, project_hash, project_path, host, run_id, iteration, session_id) \
              VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) \
              ON CONFLICT (id) DO UPDATE SET environment = excluded.environment, task = excluded.task, \
              context = excluded.context, next_steps = excluded.next_steps, tags = excluded.tags, \
              state = excluded.state, format = excluded.format, created_at = excluded.created_at, \
              run_id = excluded.run_id, iteration = excluded.iteration, session_id = excluded.session_id \
              WHERE checkpoints.created_at <= excluded.created_at",
        binds: vec![
            bind_text(&checkpoint.id),
            bind_text(&checkpoint.environment),
            bind_text(&checkpoint.task),
            bind_text(&checkpoint.context),
            Bind::Text(Some(masked_json(&checkpoint.next_steps))),
            Bind::Text(Some(masked_json(&checkpoint.tags))),
            Bind::Text(Some(masked_json(&SavedState {
                state: checkpoint.state.clone(),
                scratchpad: checkpoint.scratchpad.clone(),
            }))),
            bind_number(FORMAT),
            bind_time(checkpoint.created_at),
            bind_text(&project.hash),
            bind_text(&project.path),
            bind_text(&project.host),
            bind_maybe(checkpoint.run.as_ref()),
            bind_count(checkpoint.iteration.map(IterationId::get)),
            bind_maybe(checkpoint.session),
        ],
    }
}
