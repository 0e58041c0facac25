//! What a supervisor that died without notice left behind: its record is closed, and the human is told how
//! to go on.

use chrono::{DateTime, Utc};

use crate::lineage::{
    EndReason, Lineage, Project, RunId,
    files::{PrivateDir, RunDir},
    store::{HistoryOf, RunHistory, Store},
};

use super::{agent::AgentPlan, keeper::told};

/// Closes the newest run of the project if it was left open and is not `kept` (its reboot goes on); says so,
/// with the command that resumes its session if it has anything to resume.
pub async fn close_dead_run(
    store: &Store,
    project: &Project,
    kept: Option<&RunId>,
    files: &PrivateDir,
    plan: &AgentPlan,
    at: DateTime<Utc>,
) -> Option<String> {
    let RunHistory { run, iterations } =
        newest(store, &HistoryOf::Project(project.clone())).await?;
    if run.ended_at.is_some() || kept == Some(&run.run) {
        return None;
    }
    let lineage = close_iterations(store, run.run.clone(), iterations, at).await;
    let meta =
        RunDir::open(files, &run.run).and_then(|directory| directory.write_meta(&lineage.meta()));
    if let Err(error) = meta {
        tracing::warn!(
            error = told(&error),
            "the record of the dead run stays open"
        );
    }
    if let Err(error) = store.end_run(&run.run, at, EndReason::Crash).await {
        tracing::warn!(error = told(&error), "the dead run stays open");
    }
    let session = lineage.iterations().last().and_then(|last| last.session_id);
    let command = if run.agent == "pitstop demo" {
        "pitstop demo"
    } else {
        "pitstop"
    };
    let hint = match session {
        Some(session) if plan.can_resume(session) => {
            format!("{command} -- --resume {session}")
        }
        _ => "nothing had been said in it".to_owned(),
    };
    Some(format!("the last run ended without notice: {hint}"))
}

/// The chain of a run whose supervisor is gone, as the store has it, with what was left open closed.
pub async fn recorded(store: &Store, run: &RunId, at: DateTime<Utc>) -> Lineage {
    let iterations = newest(store, &HistoryOf::Run(run.clone()))
        .await
        .map(|found| found.iterations)
        .unwrap_or_default();
    close_iterations(store, run.clone(), iterations, at).await
}

async fn newest(store: &Store, of: &HistoryOf) -> Option<RunHistory> {
    store
        .history(of, 1)
        .await
        .inspect_err(|error| tracing::warn!(error = told(error), "the last run is not known"))
        .ok()?
        .into_iter()
        .next()
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
