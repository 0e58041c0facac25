//! The statements that read: each has a bound on its rows.

use chrono::{DateTime, Utc};

use super::bind::{
    bind_count, bind_maybe, bind_number, bind_text, bind_time, like_pattern, masked_json,
};
use crate::{
    Checkpoints, HistoryOf,
    db::{Bind, Statement},
};
use pitstop_core::lineage::{Iteration, IterationId, Project, RunId, checkpoint::FORMAT, moment};
use pitstop_transcript::SessionId;

/// Reads the runs asked for, newest first.
pub(crate) fn read_runs(of: &HistoryOf, limit: u32) -> Statement {
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
pub(crate) fn read_open_elsewhere(host: &str, limit: u32) -> Statement {
    Statement {
        sql: "SELECT run_id, project_hash, project_path, host, pid, pid_started, agent, version, task, \
              started_at, ended_at, end_reason FROM runs \
              WHERE host <> $1 AND ended_at IS NULL ORDER BY run_id DESC LIMIT $2",
        binds: vec![bind_text(&host), bind_number(limit)],
    }
}

/// Reads the runs of a machine that began before a moment, oldest first.
pub(crate) fn read_runs_before(
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
pub(crate) fn read_saved(host: &str, project: Option<&Project>) -> Statement {
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

/// Reads the iterations of a run, oldest first.
pub(crate) fn read_iterations(run: &RunId) -> Statement {
    Statement {
        sql: "SELECT iteration, session_id, started_at, ended_at, end_reason, tokens_input, \
              tokens_output, summary, parent, tokens_at_birth, tokens_at_end, cost_usd, cause, reboot, \
              compactions, summary_made, turns, signal, in_turn, duration_ms FROM iterations WHERE run_id = $1 ORDER BY iteration LIMIT 10000",
        binds: vec![bind_text(run)],
    }
}

/// Reads the iterations of a run, oldest first: what a list of them shows.
pub(crate) fn read_outline(run: &RunId) -> Statement {
    Statement {
        sql: "SELECT iteration, session_id, started_at, ended_at, end_reason, tokens_input, \
              tokens_output, CAST(NULL AS TEXT), parent, tokens_at_birth, tokens_at_end, cost_usd, cause, \
              CAST(NULL AS TEXT), compactions, summary_made, turns, signal, in_turn, duration_ms \
              FROM iterations WHERE run_id = $1 ORDER BY iteration LIMIT 10000",
        binds: vec![bind_text(run)],
    }
}

/// Reads one iteration of a run.
pub(crate) fn read_iteration(run: &RunId, iteration: IterationId) -> Statement {
    Statement {
        sql: "SELECT iteration, session_id, started_at, ended_at, end_reason, tokens_input, \
              tokens_output, summary, parent, tokens_at_birth, tokens_at_end, cost_usd, cause, reboot, \
              compactions, summary_made, turns, signal, in_turn, duration_ms FROM iterations WHERE run_id = $1 AND iteration = $2",
        binds: vec![bind_text(run), bind_number(iteration.get())],
    }
}

/// Reads the iterations that began with a reboot in which this session ended, newest first.
pub(crate) fn read_iterations_after(run: &RunId, session: SessionId) -> Statement {
    Statement {
        sql: "SELECT iteration, session_id, started_at, ended_at, end_reason, tokens_input, \
              tokens_output, summary, parent, tokens_at_birth, tokens_at_end, cost_usd, cause, reboot, \
              compactions, summary_made, turns, signal, in_turn, duration_ms FROM iterations WHERE run_id = $1 AND reboot LIKE $2 \
              ORDER BY iteration DESC LIMIT 4",
        binds: vec![bind_text(run), as_written("old_session", session)],
    }
}

/// Reads the iterations of a project's runs except one, newest first. It is by the name in the runs that they are in order: their
/// index has it, and no more rows are read than are wanted.
pub(crate) fn read_earlier(project: &Project, but: &RunId, limit: u32) -> Statement {
    Statement {
        sql: "SELECT iterations.run_id, iterations.iteration, iterations.session_id, \
              iterations.started_at, iterations.ended_at, iterations.end_reason, \
              iterations.tokens_input, iterations.tokens_output, CAST(NULL AS TEXT), iterations.parent, \
              iterations.tokens_at_birth, iterations.tokens_at_end, iterations.cost_usd, \
              iterations.cause, CAST(NULL AS TEXT), iterations.compactions, iterations.summary_made, \
              iterations.turns, iterations.signal, iterations.in_turn, iterations.duration_ms \
              FROM iterations JOIN runs ON runs.run_id = iterations.run_id \
              WHERE runs.project_hash = $1 AND runs.host = $2 AND runs.run_id <> $3 \
              ORDER BY runs.run_id DESC, iterations.iteration DESC LIMIT $4",
        binds: vec![
            bind_text(&project.hash),
            bind_text(&project.host),
            bind_text(but),
            bind_number(limit),
        ],
    }
}

/// Searches for the iterations in which a text occurs, newest first, from after one of them on. A handoff is kept in its reboot's
/// entry, as JSON: those with the text are found once, and not for each iteration of their run.
///
/// `LOWER` of `SQLite` knows only ASCII letters: for others that have a case the pattern takes any, and the caller checks the hits.
pub(crate) fn search(
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
              AND journal.reboot_id IN (SELECT hits.reboot_id FROM journal AS hits \
              JOIN runs AS own ON own.run_id = hits.run_id \
              WHERE own.project_hash = $1 AND own.host = $2 \
              AND LOWER(hits.entry) LIKE $4 ESCAPE '!') \
              AND (journal.entry LIKE '%_session\":\"' || iterations.session_id || '\"%'))) \
              AND ($5 IS NULL OR iterations.run_id < $5 \
              OR (iterations.run_id = $5 AND iterations.iteration < $6)) \
              ORDER BY runs.run_id DESC, iterations.iteration DESC LIMIT $7",
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

/// Reads the place of a session: the newest run and iteration that it is of.
pub(crate) fn read_session(session: SessionId) -> Statement {
    Statement {
        sql: "SELECT run_id, iteration FROM iterations WHERE session_id = $1 \
              ORDER BY run_id DESC, iteration DESC LIMIT 1",
        binds: vec![bind_text(&session)],
    }
}

/// Reads the reboots of a run that a session began with or ended with, newest first.
pub(crate) fn read_reboots(run: &RunId, session: SessionId) -> Statement {
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
pub(crate) fn read_checkpoint_of(
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
pub(crate) fn read_carried(session: SessionId) -> Statement {
    Statement {
        sql: "SELECT state FROM carried WHERE session_id = $1",
        binds: vec![bind_text(&session)],
    }
}

/// Reads the time of the state that a session carries.
pub(crate) fn read_carried_at(session: SessionId) -> Statement {
    Statement {
        sql: "SELECT written_at FROM carried WHERE session_id = $1",
        binds: vec![bind_text(&session)],
    }
}

/// Reads the latest reboot of the project that is not over, unless a later run went on without it: that happens where this
/// record could not be read when the run began.
pub(crate) fn read_journal(project: &Project) -> Statement {
    Statement {
        sql: "SELECT journal.entry FROM journal JOIN runs ON runs.run_id = journal.run_id \
              WHERE runs.project_hash = $1 AND runs.host = $2 AND journal.closed_at IS NULL \
              AND NOT EXISTS (SELECT 1 FROM runs AS later WHERE later.project_hash = $1 AND later.host = $2 \
              AND later.run_id <> journal.run_id AND later.started_at > journal.written_at) \
              ORDER BY journal.run_id DESC, journal.iteration DESC, journal.written_at DESC LIMIT 1",
        binds: vec![bind_text(&project.hash), bind_text(&project.host)],
    }
}

/// Reads the checkpoints asked for, newest first. A condition that may be missing uses no index, and a row that is looked at holds
/// whole messages: each choice has a statement of its own.
pub(crate) fn read_checkpoints(which: &Checkpoints) -> Statement {
    macro_rules! checkpoints {
        ($chosen:literal) => {
            concat!(
                "SELECT format, id, environment, task, context, next_steps, tags, state, created_at, \
                 run_id, iteration, session_id FROM checkpoints WHERE ",
                $chosen,
                " AND ($5 IS NULL OR tags LIKE $5 ESCAPE '!') \
                 AND ($6 IS NULL OR id LIKE $6 ESCAPE '!') \
                 AND format <= $4 ORDER BY created_at DESC, id DESC LIMIT $7"
            )
        };
    }
    let tag = which.tag.as_ref();
    Statement {
        sql: match (&which.project, &which.environment) {
            (Some(_), _) => {
                checkpoints!("project_hash = $2 AND host = $3 AND ($1 IS NULL OR environment = $1)")
            }
            (None, Some(_)) => checkpoints!("environment = $1 AND ($2 IS NULL OR host = $3)"),
            (None, None) => checkpoints!("$1 IS NULL AND $2 IS NULL AND $3 IS NULL"),
        },
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

/// Reads the agents of the project's runs that are not known to have ended, newest run first.
pub(crate) fn read_agents(project: &Project) -> Statement {
    Statement {
        sql: "SELECT agents.run_id, agents.iteration, agents.pid, agents.pid_started \
              FROM agents JOIN runs ON runs.run_id = agents.run_id \
              WHERE runs.project_hash = $1 AND runs.host = $2 AND agents.gone = 0 \
              ORDER BY agents.run_id DESC, agents.iteration DESC LIMIT 64",
        binds: vec![bind_text(&project.hash), bind_text(&project.host)],
    }
}

/// Reads the newest figures of a run, newest first.
pub(crate) fn read_metrics(run: &RunId) -> Statement {
    Statement {
        sql: "SELECT iteration, name, measured_at, value FROM metrics WHERE run_id = $1 \
              ORDER BY measured_at DESC, iteration DESC, name DESC LIMIT 10000",
        binds: vec![bind_text(run)],
    }
}

/// Reads the figures of runs by name: their number, their sum, the largest.
pub(crate) fn read_totals(of: &HistoryOf) -> Statement {
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
