//! Turns records into statements, and rows back into records: pure, and the only place that knows columns.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{
    AgentRecord, Checkpoints, HistoryOf, RunRecord, Saved,
    db::{Bind, Cell, Cells, Statement},
};
use pitstop_base::redact;
use pitstop_core::lineage::{
    self, EndReason, Iteration, IterationId, ProcessStamp, Project, RunId, TokenTotals,
    checkpoint::{Checkpoint, FORMAT, SavedScratchpad},
    journal::JournalEntry,
    metrics::{Metric, Total},
    moment,
};
use pitstop_transcript::{SessionId, Tokens};

/// A change to the database. Each is an upsert or an idempotent update, so that one which may or
/// may not have been done (the answer was lost) can be done again.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Write {
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
    pub(super) fn statement(&self) -> Statement {
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
              cause, reboot, compactions, summary_made, turns, signal, in_turn) \
              VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20) \
              ON CONFLICT (run_id, iteration) DO UPDATE SET session_id = excluded.session_id, \
              started_at = excluded.started_at, ended_at = excluded.ended_at, \
              end_reason = excluded.end_reason, tokens_input = excluded.tokens_input, \
              tokens_output = excluded.tokens_output, summary = excluded.summary, \
              parent = excluded.parent, tokens_at_birth = excluded.tokens_at_birth, \
              tokens_at_end = excluded.tokens_at_end, cost_usd = excluded.cost_usd, \
              cause = excluded.cause, reboot = excluded.reboot, \
              compactions = excluded.compactions, summary_made = excluded.summary_made, \
              turns = excluded.turns, signal = excluded.signal, in_turn = excluded.in_turn",
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
struct SavedState {
    #[serde(default)]
    state: serde_json::Value,
    #[serde(default)]
    scratchpad: Option<SavedScratchpad>,
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

/// Reads the runs asked for, newest first.
pub(super) fn read_runs(of: &HistoryOf, limit: u32) -> Statement {
    match of {
        HistoryOf::Run(run) => Statement {
            sql: "SELECT run_id, project_hash, project_path, host, pid, pid_started, agent, version, task, \
                  started_at, ended_at, end_reason FROM runs WHERE run_id = $1 LIMIT $2",
            binds: vec![bind_text(run), bind_number(limit)],
        },
        HistoryOf::Project(project) => Statement {
            sql: "SELECT run_id, project_hash, project_path, host, pid, pid_started, agent, version, task, \
                  started_at, ended_at, end_reason FROM runs \
                  WHERE project_hash = $1 AND host = $2 ORDER BY run_id DESC LIMIT $3",
            binds: vec![
                bind_text(&project.hash),
                bind_text(&project.host),
                bind_number(limit),
            ],
        },
    }
}

/// Reads the runs that were left open on other machines than this one, newest first.
pub(super) fn read_open_elsewhere(host: &str, limit: u32) -> Statement {
    Statement {
        sql: "SELECT run_id, project_hash, project_path, host, pid, pid_started, agent, version, task, \
              started_at, ended_at, end_reason FROM runs \
              WHERE host <> $1 AND ended_at IS NULL ORDER BY run_id DESC LIMIT $2",
        binds: vec![bind_text(&host), bind_number(limit)],
    }
}

pub(super) fn run_in(row: &Cells) -> Option<RunRecord> {
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

/// Reads the runs of a machine that began before a moment, oldest first.
pub(super) fn read_runs_before(
    host: &str,
    project: Option<&Project>,
    before: DateTime<Utc>,
) -> Statement {
    Statement {
        sql: "SELECT run_id, project_hash, project_path, host, pid, pid_started, agent, version, task, \
              started_at, ended_at, end_reason FROM runs \
              WHERE host = $1 AND ($2 IS NULL OR project_hash = $2) AND started_at < $3 \
              ORDER BY run_id LIMIT 100000",
        binds: vec![
            bind_text(&host),
            bind_maybe(project.map(|project| &project.hash)),
            bind_time(before),
        ],
    }
}

/// Reads the checkpoints of a machine without their contents, newest first.
pub(super) fn read_saved(host: &str, project: Option<&Project>) -> Statement {
    Statement {
        sql: "SELECT id, environment, project_hash, created_at FROM checkpoints \
              WHERE host = $1 AND ($2 IS NULL OR project_hash = $2) \
              ORDER BY created_at DESC, id DESC LIMIT 1000000",
        binds: vec![
            bind_text(&host),
            bind_maybe(project.map(|project| &project.hash)),
        ],
    }
}

pub(super) fn saved_in(row: &Cells) -> Option<Saved> {
    let mut row = Reader::new(row);
    Some(Saved {
        id: row.next_word()?,
        environment: row.next_text()?,
        project: row.next_text()?,
        created_at: row.next_word()?,
    })
}

/// Reads the iterations of a run, oldest first.
pub(super) fn read_iterations(run: &RunId) -> Statement {
    Statement {
        sql: "SELECT iteration, session_id, started_at, ended_at, end_reason, tokens_input, \
              tokens_output, summary, parent, tokens_at_birth, tokens_at_end, cost_usd, cause, reboot, \
              compactions, summary_made, turns, signal, in_turn FROM iterations WHERE run_id = $1 ORDER BY iteration LIMIT 10000",
        binds: vec![bind_text(run)],
    }
}

/// Reads one iteration of a run.
pub(super) fn read_iteration(run: &RunId, iteration: IterationId) -> Statement {
    Statement {
        sql: "SELECT iteration, session_id, started_at, ended_at, end_reason, tokens_input, \
              tokens_output, summary, parent, tokens_at_birth, tokens_at_end, cost_usd, cause, reboot, \
              compactions, summary_made, turns, signal, in_turn FROM iterations WHERE run_id = $1 AND iteration = $2",
        binds: vec![bind_text(run), bind_number(iteration.get())],
    }
}

/// Reads the iterations that began with a reboot in which this session ended, newest first.
pub(super) fn read_iterations_after(run: &RunId, session: SessionId) -> Statement {
    Statement {
        sql: "SELECT iteration, session_id, started_at, ended_at, end_reason, tokens_input, \
              tokens_output, summary, parent, tokens_at_birth, tokens_at_end, cost_usd, cause, reboot, \
              compactions, summary_made, turns, signal, in_turn FROM iterations WHERE run_id = $1 AND reboot LIKE $2 \
              ORDER BY iteration DESC LIMIT 4",
        binds: vec![bind_text(run), as_written("old_session", session)],
    }
}

/// Reads the iterations of a project's runs except one, newest first.
pub(super) fn read_earlier(project: &Project, but: &RunId, limit: u32) -> Statement {
    Statement {
        sql: "SELECT iterations.run_id, iterations.iteration, iterations.session_id, \
              iterations.started_at, iterations.ended_at, iterations.end_reason, \
              iterations.tokens_input, iterations.tokens_output, CAST(NULL AS TEXT), iterations.parent, \
              iterations.tokens_at_birth, iterations.tokens_at_end, iterations.cost_usd, \
              iterations.cause, CAST(NULL AS TEXT), iterations.compactions, CAST(NULL AS TEXT), \
              iterations.turns, iterations.signal, iterations.in_turn \
              FROM iterations JOIN runs ON runs.run_id = iterations.run_id \
              WHERE runs.project_hash = $1 AND runs.host = $2 AND runs.run_id <> $3 \
              ORDER BY iterations.run_id DESC, iterations.iteration DESC LIMIT $4",
        binds: vec![
            bind_text(&project.hash),
            bind_text(&project.host),
            bind_text(but),
            bind_number(limit),
        ],
    }
}

/// Searches for the iterations in which a text occurs, newest first, from after one of them on. A handoff is kept in its reboot's
/// entry, as JSON.
///
/// `LOWER` of `SQLite` knows only ASCII letters: for others that have a case the pattern takes any, and the caller checks the hits.
pub(super) fn search(
    project: &Project,
    wanted: &str,
    behind: Option<&(RunId, IterationId)>,
    limit: u32,
) -> Statement {
    let wanted = wanted.to_ascii_lowercase();
    let quoted = masked_json(&wanted);
    let within = |text: &str| Bind::Text(Some(format!("%{}%", like_pattern(text))));
    Statement {
        sql: "SELECT iterations.run_id, iterations.iteration \
              FROM iterations JOIN runs ON runs.run_id = iterations.run_id \
              WHERE runs.project_hash = $1 AND runs.host = $2 AND ( \
              LOWER(runs.task) LIKE $3 ESCAPE '!' OR LOWER(iterations.summary) LIKE $3 ESCAPE '!' \
              OR iterations.session_id LIKE $3 ESCAPE '!' OR iterations.run_id LIKE $3 ESCAPE '!' \
              OR iterations.end_reason LIKE $3 ESCAPE '!' OR iterations.cause LIKE $3 ESCAPE '!' \
              OR EXISTS (SELECT 1 FROM journal WHERE journal.run_id = iterations.run_id \
              AND (journal.entry LIKE '%_session\":\"' || iterations.session_id || '\"%') \
              AND LOWER(journal.entry) LIKE $4 ESCAPE '!')) \
              AND ($5 IS NULL OR iterations.run_id < $5 \
              OR (iterations.run_id = $5 AND iterations.iteration < $6)) \
              ORDER BY iterations.run_id DESC, iterations.iteration DESC LIMIT $7",
        binds: vec![
            bind_text(&project.hash),
            bind_text(&project.host),
            within(&wanted),
            within(quoted.trim_matches('"')),
            bind_maybe(behind.map(|(run, _)| run)),
            bind_count(behind.map(|(_, iteration)| iteration.get())),
            bind_number(limit),
        ],
    }
}

/// Reads a row that begins with the run.
pub(super) fn iteration_of_run(row: &Cells) -> Option<(RunId, Iteration)> {
    let mut row = Reader::new(row);
    Some((row.next_word()?, read_iteration_from(row)?))
}

pub(super) fn iteration_in(row: &Cells) -> Option<Iteration> {
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
    })
}

/// Reads the place of a session: the newest run and iteration that it is of.
pub(super) fn read_session(session: SessionId) -> Statement {
    Statement {
        sql: "SELECT run_id, iteration FROM iterations WHERE session_id = $1 \
              ORDER BY run_id DESC, iteration DESC LIMIT 1",
        binds: vec![bind_text(&session)],
    }
}

pub(super) fn place_in(row: &Cells) -> Option<(RunId, IterationId)> {
    let mut row = Reader::new(row);
    Some((row.next_word()?, IterationId::new(row.next_number()?)?))
}

/// Reads the reboots of a run that a session began with or ended with, newest first.
pub(super) fn read_reboots(run: &RunId, session: SessionId) -> Statement {
    Statement {
        sql: "SELECT entry FROM journal WHERE run_id = $1 AND (entry LIKE $2 OR entry LIKE $3) \
              ORDER BY written_at DESC, iteration DESC LIMIT 64",
        binds: vec![
            bind_text(run),
            as_written("old_session", session),
            as_written("new_session", session),
        ],
    }
}

/// Returns a pattern for a field of a record that is kept as JSON.
fn as_written(field: &str, session: SessionId) -> Bind {
    Bind::Text(Some(format!("%\"{field}\":\"{session}\"%")))
}

/// Reads the last checkpoint that was saved in a session. It is searched for between the iteration's beginning and its end,
/// because the index is by time, and each row that is looked at holds whole messages.
pub(super) fn read_checkpoint_of(
    project: &Project,
    iteration: &Iteration,
    session: SessionId,
) -> Statement {
    Statement {
        sql: "SELECT format, id, environment, task, context, next_steps, tags, state, created_at, \
              run_id, iteration, session_id FROM checkpoints \
              WHERE project_hash = $1 AND host = $2 AND created_at >= $3 \
              AND ($4 IS NULL OR created_at <= $4) AND session_id = $5 AND format <= $6 \
              ORDER BY created_at DESC, id DESC LIMIT 1",
        binds: vec![
            bind_text(&project.hash),
            bind_text(&project.host),
            bind_time(iteration.started_at),
            Bind::Text(iteration.ended_at.map(moment::text)),
            bind_text(&session),
            bind_number(FORMAT),
        ],
    }
}

/// Reads the state that a session carries.
pub(super) fn read_carried(session: SessionId) -> Statement {
    Statement {
        sql: "SELECT state FROM carried WHERE session_id = $1",
        binds: vec![bind_text(&session)],
    }
}

pub(super) fn carried_in(row: &Cells) -> Option<serde_json::Value> {
    serde_json::from_str(&Reader::new(row).next_text()?).ok()
}

/// Reads the latest reboot of the project that is not over, unless a later run went on without it: that happens where this
/// record could not be read when the run began.
pub(super) fn read_journal(project: &Project) -> Statement {
    Statement {
        sql: "SELECT journal.entry FROM journal JOIN runs ON runs.run_id = journal.run_id \
              WHERE runs.project_hash = $1 AND runs.host = $2 AND journal.closed_at IS NULL \
              AND NOT EXISTS (SELECT 1 FROM runs AS later WHERE later.project_hash = $1 AND later.host = $2 \
              AND later.run_id <> journal.run_id AND later.started_at > journal.written_at) \
              ORDER BY journal.run_id DESC, journal.iteration DESC, journal.written_at DESC LIMIT 1",
        binds: vec![bind_text(&project.hash), bind_text(&project.host)],
    }
}

pub(super) fn journal_entry_in(row: &Cells) -> Option<JournalEntry> {
    Reader::new(row).next_json()
}

/// Reads the checkpoints asked for, newest first.
pub(super) fn read_checkpoints(which: &Checkpoints) -> Statement {
    let tag = which.tag.as_ref();
    Statement {
        sql: "SELECT format, id, environment, task, context, next_steps, tags, state, created_at, \
              run_id, iteration, session_id FROM checkpoints \
              WHERE ($1 IS NULL OR environment = $1) \
              AND ($2 IS NULL OR (project_hash = $2 AND host = $3)) \
              AND ($5 IS NULL OR tags LIKE $5 ESCAPE '!') \
              AND ($6 IS NULL OR id LIKE $6 ESCAPE '!') \
              AND format <= $4 ORDER BY created_at DESC, id DESC LIMIT $7",
        binds: vec![
            bind_maybe(which.environment.as_ref()),
            bind_maybe(which.project.as_ref().map(|project| &project.hash)),
            bind_maybe(which.project.as_ref().map(|project| &project.host)),
            bind_number(FORMAT),
            bind_maybe(tag.map(|tag| format!("%{}%", like_pattern(&masked_json(tag))))),
            bind_maybe(which.id.as_ref().map(|id| format!("{}%", like_pattern(id)))),
            bind_number(which.limit),
        ],
    }
}

pub(super) fn checkpoint_in(row: &Cells) -> Option<Checkpoint> {
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

/// Reads the agents of the project's runs that are not known to have ended, newest run first.
pub(super) fn read_agents(project: &Project) -> Statement {
    Statement {
        sql: "SELECT agents.run_id, agents.iteration, agents.pid, agents.pid_started \
              FROM agents JOIN runs ON runs.run_id = agents.run_id \
              WHERE runs.project_hash = $1 AND runs.host = $2 AND agents.gone = 0 \
              ORDER BY agents.run_id DESC, agents.iteration DESC LIMIT 64",
        binds: vec![bind_text(&project.hash), bind_text(&project.host)],
    }
}

pub(super) fn agent_in(row: &Cells) -> Option<AgentRecord> {
    let mut row = Reader::new(row);
    Some(AgentRecord {
        run: row.next_word()?,
        iteration: IterationId::new(row.next_number()?)?,
        process: row.next_process()?,
    })
}

/// Reads the newest figures of a run, newest first.
pub(super) fn read_metrics(run: &RunId) -> Statement {
    Statement {
        sql: "SELECT iteration, name, measured_at, value FROM metrics WHERE run_id = $1 \
              ORDER BY measured_at DESC, iteration DESC, name DESC LIMIT 10000",
        binds: vec![bind_text(run)],
    }
}

pub(super) fn metric_in(row: &Cells) -> Option<Metric> {
    let mut row = Reader::new(row);
    Some(Metric {
        iteration: IterationId::new(row.next_number()?),
        name: row.next_text()?,
        at: row.next_word()?,
        value: row.next_real()?,
    })
}

/// Reads the figures of runs by name: their number, their sum, the largest.
pub(super) fn read_totals(of: &HistoryOf) -> Statement {
    match of {
        HistoryOf::Run(run) => Statement {
            sql: "SELECT name, COUNT(*), SUM(value), MAX(value) FROM metrics WHERE run_id = $1 \
                  GROUP BY name ORDER BY name LIMIT 10000",
            binds: vec![bind_text(run)],
        },
        HistoryOf::Project(project) => Statement {
            sql: "SELECT metrics.name, COUNT(*), SUM(metrics.value), MAX(metrics.value) FROM metrics \
                  JOIN runs ON runs.run_id = metrics.run_id \
                  WHERE runs.project_hash = $1 AND runs.host = $2 \
                  GROUP BY metrics.name ORDER BY metrics.name LIMIT 10000",
            binds: vec![bind_text(&project.hash), bind_text(&project.host)],
        },
    }
}

pub(super) fn total_in(row: &Cells) -> Option<Total> {
    let mut row = Reader::new(row);
    Some(Total {
        name: row.next_text()?,
        count: row.next_number()?,
        sum: row.next_real()?,
        max: row.next_real()?,
    })
}

/// Returns a text in the form for a pattern of `LIKE … ESCAPE '!'`.
fn like_pattern(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        let has_case = || c.to_lowercase().ne([c]) || c.to_uppercase().ne([c]);
        if !c.is_ascii() && has_case() {
            pattern.push('_');
            continue;
        }
        if matches!(c, '!' | '%' | '_') {
            pattern.push('!');
        }
        pattern.push(c);
    }
    pattern
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

/// Binds a text without its secrets. Every text that comes from elsewhere gets into the database by `text`, `maybe_text` or
/// `json`, which mask secrets; a text that is searched for passes them too.
fn bind_text(value: &impl ToString) -> Bind {
    bind_maybe(Some(value.to_string()))
}

fn bind_maybe(value: Option<impl ToString>) -> Bind {
    Bind::Text(value.map(|value| redact::redact(&value.to_string()).into_owned()))
}

fn bind_time(at: DateTime<Utc>) -> Bind {
    Bind::Text(Some(moment::text(at)))
}

fn bind_number(value: impl Into<u64>) -> Bind {
    bind_count(Some(value.into()))
}

/// Binds a count. One beyond 63 bits is nonsense from outside: it is kept as the largest that fits.
fn bind_count(value: Option<u64>) -> Bind {
    Bind::Int(value.map(|value| i64::try_from(value).unwrap_or(i64::MAX)))
}

fn masked_json(value: &impl serde::Serialize) -> String {
    redact::json(&lineage::json(value).to_string()).into_owned()
}
