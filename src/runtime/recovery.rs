//! The recovery after a supervisor that died without notice: its record is closed, and the human is shown how
//! to go on.

use chrono::{DateTime, Utc};

use pitstop_base::{clean::chain, redact::redact};
use pitstop_core::lineage::{
    EndReason, Iteration, Lineage, Meta, ProcessStamp, Project, RunEnd, RunId,
};
use pitstop_store::{
    HistoryOf, PrivateDir, RunHistory, RunRecord, Store,
    run_dir::{META, RunDir, list_runs},
};
use pitstop_transcript::SessionId;

use super::agent::AgentPlan;

/// The number of past runs among which one left open is looked for: each start closes those before it.
const RUNS_BACK: u32 = 16;

/// The number of runs that are read back from their records.
const RUNS_READ: usize = 1000;

/// The largest record of a run that is read, in bytes.
const META_LIMIT: usize = 8 << 20;

/// The agent and the version of a run of which only its `meta.json` is left.
const NOT_KNOWN: &str = "not known";

/// Returns the project's history as the runs' `meta.json` have it, oldest run first: for a database that was removed. One that
/// cannot be read is left out.
pub fn from_records(files: &PrivateDir, project: &Project) -> Vec<RunHistory> {
    let mut found = list_runs(files).unwrap_or_default();
    found.drain(..found.len().saturating_sub(RUNS_READ));
    let read = |run: &RunId| -> Option<RunHistory> {
        let bytes = RunDir::find(files, run)
            .ok()??
            .read(META, META_LIMIT)
            .ok()??;
        let meta: Meta = serde_json::from_slice(&bytes).ok()?;
        let iterations: Vec<Iteration> = meta.iterations.into_iter().map(Iteration::from).collect();
        let last = iterations.last();
        Some(RunHistory {
            run: RunRecord {
                run: run.clone(),
                project: project.clone(),
                process: ProcessStamp {
                    pid: 0,
                    start_time: String::new(),
                },
                agent: NOT_KNOWN.to_owned(),
                version: NOT_KNOWN.to_owned(),
                task: meta.task,
                started_at: meta
                    .started_at
                    .or(iterations.first().map(|one| one.started_at))
                    .unwrap_or_else(|| run.started()),
                // No supervisor goes on with it.
                ended_at: last
                    .map(|one| one.ended_at.unwrap_or(one.started_at))
                    .or(Some(run.started())),
                end_reason: last
                    .and_then(|one| one.end_reason)
                    .or(Some(EndReason::Crash)),
            },
            iterations,
        })
    };
    found.iter().filter_map(read).collect()
}

/// Closes the runs of the project that were left open, except `kept` (its reboot goes on); returns a message about the
/// last, with the command that resumes its session if it has anything to resume.
pub async fn close_dead_runs(
    store: &Store,
    project: &Project,
    kept: Option<&RunId>,
    files: &PrivateDir,
    plan: &AgentPlan,
    at: DateTime<Utc>,
) -> Option<String> {
    let runs = history(store, &HistoryOf::Project(project.clone()), RUNS_BACK).await;
    let mut open: Vec<_> = runs
        .into_iter()
        .filter(|one| one.run.ended_at.is_none() && kept != Some(&one.run.run))
        .collect();
    // Their names have the time only to the second.
    open.sort_by_key(|one| one.run.started_at);
    let mut last = None;
    for RunHistory { run, iterations } in open {
        let lineage = close_iterations(store, run.run.clone(), iterations, plan, at).await;
        let meta = lineage.meta(run.task.as_deref(), Some((at, RunEnd::crashed())));
        let meta = RunDir::open(files, &run.run).and_then(|directory| directory.write_meta(&meta));
        if let Err(error) = meta {
            tracing::warn!(
                error = chain(&error),
                "the record of the dead run stays open"
            );
        }
        if let Err(error) = store.end_run(&run.run, at, EndReason::Crash).await {
            tracing::warn!(error = chain(&error), "the dead run stays open");
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
        Some(session) if plan.can_resume(session) => format!("{command} -- --resume {session}"),
        _ => "nothing had been said in it".to_owned(),
    };
    Some(format!("the last run ended without notice: {hint}"))
}

/// Returns the newest run of the project with its last session, if it was left open and had this task.
pub async fn dead_run(
    store: &Store,
    project: &Project,
    task: &str,
) -> Option<(RunId, Option<SessionId>)> {
    let runs = history(store, &HistoryOf::Project(project.clone()), RUNS_BACK).await;
    // Their names have the time only to the second.
    let RunHistory { run, iterations } = runs.into_iter().max_by_key(|one| one.run.started_at)?;
    // The store has it without its secrets.
    let known = run.task.as_deref().map(redact);
    let same = run.ended_at.is_none() && known == Some(redact(task));
    let session = iterations.last().and_then(|one| one.session_id);
    same.then_some((run.run, session))
}

/// Returns the chain of a run whose supervisor is gone, as the store has it, and closes the iterations that were left open.
pub async fn recorded(store: &Store, run: &RunId, plan: &AgentPlan, at: DateTime<Utc>) -> Lineage {
    let found = history(store, &HistoryOf::Run(run.clone()), 1).await;
    let iterations = found.into_iter().next().map(|one| one.iterations);
    close_iterations(store, run.clone(), iterations.unwrap_or_default(), plan, at).await
}

/// Returns the time at which an iteration whose supervisor has died was last seen to live: that of the last word in its session's
/// transcript, which may go on in another program later, else that of its start.
fn last_sign(one: &Iteration, plan: &AgentPlan) -> DateTime<Utc> {
    let transcript = one
        .session_id
        .and_then(|session| plan.transcript_of(session));
    let modified = transcript.and_then(|file| file.metadata().ok()?.modified().ok());
    modified.map_or(one.started_at, DateTime::from)
}

async fn history(store: &Store, of: &HistoryOf, limit: u32) -> Vec<RunHistory> {
    store
        .history(of, limit)
        .await
        .inspect_err(|error| tracing::warn!(error = chain(error), "the last runs are not known"))
        .unwrap_or_default()
}

async fn close_iterations(
    store: &Store,
    run: RunId,
    iterations: Vec<Iteration>,
    plan: &AgentPlan,
    at: DateTime<Utc>,
) -> Lineage {
    let open: Vec<_> = iterations
        .iter()
        .filter(|one| one.is_open())
        .map(|one| one.iteration)
        .collect();
    let lineage = Lineage::recorded(run, iterations, |one| last_sign(one, plan).min(at));
    let closed = lineage
        .iterations()
        .iter()
        .filter(|one| open.contains(&one.iteration));
    for iteration in closed {
        if let Err(error) = store.put_iteration(lineage.run(), iteration).await {
            tracing::warn!(error = chain(&error), "an iteration's end is not recorded");
        }
    }
    lineage
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pitstop_store::{StoreOptions, StoreTarget};

    use super::*;

    #[test]
    fn a_run_is_found_again_by_a_task_that_holds_a_secret() {
        let state = tempfile::tempdir().unwrap();
        let project = Project::new(Path::new("/p"), "here");
        let task = concat!("A_PASSWORD=", "hunter2 is in the way");
        assert_ne!(redact(task), task);
        let at = DateTime::UNIX_EPOCH;
        let record = RunRecord {
            run: RunId::new(at, [1, 2, 3]),
            project: project.clone(),
            process: ProcessStamp {
                pid: 1,
                start_time: "x".to_owned(),
            },
            agent: "claude".to_owned(),
            version: "0".to_owned(),
            task: Some(task.to_owned()),
            started_at: at,
            ended_at: None,
            end_reason: None,
        };
        let open = || {
            let target = StoreTarget::new(None, state.path()).unwrap();
            Store::open(StoreOptions::new(target))
        };
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let found = runtime.block_on(async {
            let first = open().await.unwrap().store;
            let _written = first.begin_run(&record).await.unwrap();
            first.close().await;
            let next = open().await.unwrap().store;
            let found = dead_run(&next, &project, task).await;
            assert_eq!(dead_run(&next, &project, "another").await, None);
            next.close().await;
            found
        });
        assert_eq!(found, Some((record.run, None)));
    }
}
