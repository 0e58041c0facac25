//! The recovery after a dead supervisor: agents that still live, and a reboot that is half done.

use std::{collections::BTreeMap, error::Error, path::PathBuf};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::runtime::{agent::AgentPlan, recovery, trim, wall};
use pitstop_base::{clean::chain, process};
use pitstop_core::{
    app::{
        self, Effect, Model,
        reboot::{self, RebootAction},
    },
    lineage::{
        Cause, ProcessStamp, Project, RebootRecord, RunId, Way,
        journal::{self, Evidence, JournalEntry, Recovery, Step},
    },
};
use pitstop_handoff::{Handoff, Marker};
use pitstop_store::{Opened, PrivateDir, Store, agent_registry};
use pitstop_transcript::{SessionId, Tokens, tail::find_prompt};

/// The message where the database was away at the start.
const NOT_LOOKED_FOR: &str =
    "what the last run left is not known while the database is away: the next start looks for it";

/// The store, and the records that the last supervisor left in it.
pub(super) struct Found {
    pub store: Store,
    /// The warnings that the human must be shown.
    pub warnings: Vec<String>,
    /// A reboot that waits to be finished or rolled back.
    pub unfinished: Option<JournalEntry>,
    /// An autonomous run that ended without notice and goes on now, and its last session, if that has something to resume.
    pub resumed: Option<(RunId, Option<SessionId>)>,
    /// The message about how to go on with a run that ended without notice.
    pub died: Option<String>,
}

/// Cleans up after supervisors that died, in the opened store, for a run that begins at this time. A reboot that one left is closed
/// with the outcome `instead`, if there is one. The newest of their runs goes on if it had the `task` that this one has.
pub(super) async fn clean_up(
    Opened { store, warnings }: Opened,
    project: &Project,
    files: &PrivateDir,
    at: DateTime<Utc>,
    instead: Option<&str>,
    task: Option<&str>,
    plan: &AgentPlan,
) -> Found {
    let mut warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    sweep(&store, project, &mut warnings).await;
    let unfinished = or_warn(store.journal_open(project).await, &mut warnings);
    let mut unfinished = unfinished.filter(|entry| !entry.step.is_final());
    if let Some(outcome) = instead
        && let Some(entry) = unfinished.take()
    {
        let closed = store.journal_close(entry.reboot_id, at, outcome).await;
        or_warn(closed.map(drop), &mut warnings);
    }
    let resumed = match (&unfinished, task) {
        (None, Some(task)) => {
            let dead = recovery::dead_run(&store, project, task).await;
            let resumes = |session: &SessionId| plan.can_resume(*session);
            dead.map(|(run, session)| (run, session.filter(resumes)))
        }
        _ => None,
    };
    let kept = unfinished.as_ref().map(|entry| &entry.run);
    let kept = kept.or(resumed.as_ref().map(|(run, _)| run));
    let died = recovery::close_dead_runs(&store, project, kept, files, plan, at).await;
    let died = died.or_else(|| store.error().map(|_| NOT_LOOKED_FOR.to_owned()));
    Found {
        store,
        warnings,
        unfinished,
        resumed,
        died,
    }
}

/// Ends registered agents that still live, including those that the database does not know.
pub(super) async fn end_registered(state: &PrivateDir, warnings: &mut Vec<String>) {
    let registered = or_warn(agent_registry::read(state), warnings);
    for agent in registered.into_iter().filter(process::alive) {
        end(agent, warnings).await;
    }
}

/// Begins the registry of this run's agents; if there is no room for one, they are only in the database.
pub(super) fn begin_registry(state: &PrivateDir, warnings: &mut Vec<String>) -> PathBuf {
    or_warn(agent_registry::begin(state), warnings)
}

/// Returns what was found or done; what prevented it becomes a warning, and then nothing was.
pub(super) fn or_warn<T: Default, E: Error>(result: Result<T, E>, warnings: &mut Vec<String>) -> T {
    result.unwrap_or_else(|error| {
        warnings.push(chain(&error));
        T::default()
    })
}

/// Ends an agent with its group.
async fn end(agent: ProcessStamp, warnings: &mut Vec<String>) {
    let pid = agent.pid;
    let ended =
        tokio::task::spawn_blocking(move || process::end_group(&agent, &process::LEFTOVER_STEPS))
            .await;
    warnings.push(format!(
        "an agent of a run that died was still alive and was ended: pid {pid} ({ended:?})"
    ));
}

/// Ends agents that a dead supervisor left behind: never two live processes on one session.
async fn sweep(store: &Store, project: &Project, warnings: &mut Vec<String>) {
    for agent in or_warn(store.last_agents(project).await, warnings) {
        if process::alive(&agent.process) {
            end(agent.process.clone(), warnings).await;
        }
        let gone = store.agent_gone(&agent.run, &agent.process).await;
        or_warn(gone.map(drop), warnings);
    }
}

/// Finishes or rolls back the reboot that a dead supervisor left unfinished.
pub(super) fn recover(model: &mut Model, plan: &AgentPlan, entry: &JournalEntry) -> Vec<Effect> {
    let marker = marker_in_transcript(plan, entry);
    let evidence = Evidence {
        old_resumable: entry.old_session.is_some_and(|old| plan.can_resume(old)),
        marker,
    };
    let decided = journal::recover(entry, evidence);
    tracing::warn!(step = %entry.step, ?marker, plan = decided.sentence, "recovering a reboot");
    model.info(decided.sentence.clone());
    let closed = |step, outcome: &str| {
        Effect::Journal(Box::new(JournalEntry {
            step,
            at: wall(),
            outcome: Some(outcome.to_owned()),
            ..entry.clone()
        }))
    };
    if let (Way::Trim, Some(new)) = (entry.way, entry.new_session)
        && let Some(old) = entry.old_session.and_then(|old| plan.transcript_of(old))
    {
        trim::sweep(&old, new);
    }
    let mut effects = Vec::new();
    match decided.recovery {
        Recovery::Nothing => app::iteration::begin(model, false, None, None),
        Recovery::RollBack { resume } => {
            if let Some(session) = resume {
                model.session.id = session;
            }
            if let Some((_, body)) = entry.handoff.split_once('\n') {
                app::handoff::draft(model);
                model.draft.restore_body(body);
            }
            effects.push(closed(Step::Failed, "rolled back at the next start"));
            app::iteration::begin(model, resume.is_some(), Some(Cause::Recovery), None);
        }
        Recovery::FinishResume { session } => {
            model.session.id = session;
            let outcome = match entry.way {
                Way::Fresh if marker == journal::Marker::PassedOver => {
                    "the session had gone on without the handoff: resumed at the next start"
                }
                Way::Fresh => "the handoff had arrived: resumed at the next start",
                Way::InPlace | Way::OnTheFly => {
                    "the conversation had been replaced: resumed at the next start"
                }
                Way::Trim => "the trimmed copy was whole: resumed at the next start",
            };
            effects.push(closed(Step::Done, outcome));
            app::iteration::begin(model, true, Some(Cause::Recovery), None);
            // It was a reboot after all, and can be undone as one.
            if let Some(current) = model.lineage.current_mut() {
                let record = current.reboot.insert(reboot_record(entry, marker));
                if record.way != Way::Trim {
                    effects.push(Effect::SaveHandoff {
                        iteration: current.iteration,
                        text: entry.handoff.clone(),
                    });
                }
            }
        }
        Recovery::FinishDeliver { session } => {
            let handoff = handoff_of(entry);
            let session = session.unwrap_or_else(|| SessionId::new(Uuid::new_v4()));
            effects.push(Effect::ReadGit);
            let entry = Box::new(entry.clone());
            let _ = reboot::act(model, RebootAction::TakeUp(entry, handoff, session));
        }
    }
    effects.extend(model.take_effects());
    effects
}

/// Returns the message of a reboot, as its journal has it.
fn handoff_of(entry: &JournalEntry) -> Handoff {
    // The journal's iteration may be the new one already: the text knows which one wrote it.
    let marker = Marker::read(&entry.handoff).unwrap_or_else(|| Marker {
        run: entry.run.to_string(),
        iteration: entry.iteration.get(),
        nonce: entry.nonce.clone(),
    });
    Handoff {
        marker,
        text: entry.handoff.clone(),
        left_out: Vec::new(),
        warnings: Vec::new(),
    }
}

/// Returns the record of a reboot that came about without a supervisor.
fn reboot_record(entry: &JournalEntry, marker: journal::Marker) -> RebootRecord {
    let given = (entry.way != Way::Trim).then(|| handoff_of(entry));
    RebootRecord {
        old_session: entry.old_session,
        new_session: entry.new_session,
        way: entry.way,
        nonce: matches!(entry.way, Way::InPlace | Way::OnTheFly).then(|| entry.nonce.clone()),
        trim: entry.trim,
        cause: entry.cause,
        transition_time_ms: BTreeMap::new(),
        handoff_bytes: given.as_ref().map_or(0, |given| given.bytes() as u64),
        handoff_tokens: given.map_or(Tokens(0), |given| given.tokens()),
        verified: marker == journal::Marker::Seen,
        warmed_up: false,
        approved_from: None,
        preserved_state: None,
    }
}

/// Reports whether the handoff is in the new session's transcript.
fn marker_in_transcript(plan: &AgentPlan, entry: &JournalEntry) -> journal::Marker {
    let new = entry.new_session;
    let Some((session, path)) = new.and_then(|new| Some((new, plan.transcript_of(new)?))) else {
        return journal::Marker::NoTranscript;
    };
    match find_prompt(&path, &entry.nonce) {
        Ok(true) => journal::Marker::Seen,
        // A copy and a conversation that is replaced hold the prompts of before.
        Ok(false) if entry.way == Way::Fresh && plan.can_resume(session) => {
            journal::Marker::PassedOver
        }
        Ok(false) => journal::Marker::Absent,
        Err(error) => {
            tracing::warn!(
                error = chain(&error),
                "the new session's transcript cannot be read"
            );
            journal::Marker::Unknown
        }
    }
}
