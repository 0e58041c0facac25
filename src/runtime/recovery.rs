//! What a supervisor that died without notice left behind: its record is closed, and the human is told how
//! to go on.

use chrono::{DateTime, Utc};

use crate::{
    lineage::{
        EndReason, Lineage, Project, RunEnd, RunId,
        files::{PrivateDir, RunDir},
        store::{HistoryOf, RunHistory, Store},
    },
    transcript::SessionId,
};

use super::keeper::told;

/// How many runs back one that was left open is looked for: each start closes those before it.
const RUNS_BACK: u32 = 16;

/// Closes the runs of the project that were left open, but for `kept` (its reboot goes on); says so of the
/// last, with the command that resumes its session if it has anything to resume.
pub async fn close_dead_runs(
    store: &Store,
    project: &Project,
    kept: Option<&RunId>,
    files: &PrivateDir,
    can_resume: impl Fn(SessionId) -> bool,
    at: DateTime<Utc>,
) -> Option<String> {
    let runs = history(store, &HistoryOf::Project(project.clone()), RUNS_BACK).await;
    let mut open: Vec<_> = runs
        .into_iter()
        .filter(|one| one.run.ended_at.is_none() && kept != Some(&one.run.run))
        .collect();
    // Their names tell the second only.
    open.sort_by_key(|one| one.run.started_at);
    let mut last = None;
    for RunHistory { run, iterations } in open {
        let lineage = close_iterations(store, run.run.clone(), iterations, at).await;
        let meta = lineage.meta(run.task.as_deref(), Some((at, RunEnd::crashed())));
        let meta = RunDir::open(files, &run.run).and_then(|directory| directory.write_meta(&meta));
        if let Err(error) = meta {
            tracing::warn!(
                error = told(&error),
                "the record of the dead run stays open"
            );
        }
        if let Err(error) = store.end_run(&run.run, at, EndReason::Crash).await {
            tracing::warn!(error = told(&error), "the dead run stays open");
        }
        let session = lineage.iterations().last().and_then(|one| one.session_id);
        last = Some((run.agent, session));
    }
    let (agent, session) = last?;
    let command = if agent == "pitstop demo" {
        "pitstop demo --here"
    } else {
        "pitstop"
    };
    let hint = match session {
        Some(session) if can_resume(session) => format!("{command} -- --resume {session}"),
        _ => "nothing had been said in it".to_owned(),
    };
    Some(format!("the last run ended without notice: {hint}"))
}

/// The chain of a run whose supervisor is gone, as the store has it, with what was left open closed.
pub async fn recorded(store: &Store, run: &RunId, at: DateTime<Utc>) -> Lineage {
    let found = history(store, &HistoryOf::Run(run.clone()), 1).await;
    let iterations = found.into_iter().next().map(|one| one.iterations);
    close_iterations(store, run.clone(), iterations.unwrap_or_default(), at).await
}

async fn history(store: &Store, of: &HistoryOf, limit: u32) -> Vec<RunHistory> {
    store
        .history(of, limit)
        .await
        .inspect_err(|error| tracing::warn!(error = told(error), "the last runs are not known"))
        .unwrap_or_default()
}

async fn close_iterations(
    store: &Store,
    run: RunId,
    iterations: Vec<crate::lineage::Iteration>,
    at: DateTime<Utc>,
) -> Lineage {
    let open: Vec<_> = iterations
        .iter()
        .filter(|one| one.is_open())
        .map(|one| one.iteration)
        .collect();
    let lineage = Lineage::recorded(run, iterations, at);
    let closed = lineage
        .iterations()
        .iter()
        .filter(|one| open.contains(&one.iteration));
    for iteration in closed {
        if let Err(error) = store.put_iteration(lineage.run(), iteration).await {
            tracing::warn!(error = told(&error), "an iteration's end is not recorded");
        }
    }
    lineage
}
