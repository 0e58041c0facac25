//! What a dead supervisor left behind: agents that still live, and a reboot that is half done.

use chrono::Utc;
use uuid::Uuid;

use crate::{
    app::{self, Effect, Model, reboot},
    cli::out::chain,
    handoff::{Handoff, Marker},
    lineage::{
        Cause, Project,
        journal::{self, Evidence, JournalEntry, Recovery, Step},
        process,
        store::Store,
    },
    runtime::agent::AgentPlan,
    transcript::{SessionId, tail::find_prompt},
};

/// Ends agents that a dead supervisor left behind: never two live processes on one session.
pub(super) async fn sweep(store: &Store, project: &Project, warnings: &mut Vec<String>) {
    let left = match store.last_agents(project).await {
        Ok(left) => left,
        Err(error) => {
            warnings.push(chain(&error));
            return;
        }
    };
    for agent in left {
        if process::alive(&agent.process) {
            let pid = agent.process.pid;
            let stamp = agent.process.clone();
            let ended = tokio::task::spawn_blocking(move || {
                process::end_group(&stamp, &process::LEFTOVER_LADDER)
            })
            .await;
            warnings.push(format!(
                "an agent of a run that died was still alive and was ended: pid {pid} ({ended:?})"
            ));
        }
        if let Err(error) = store.agent_gone(&agent.run, &agent.process).await {
            warnings.push(chain(&error));
        }
    }
}

/// Finishes or rolls back the reboot that a dead supervisor left unfinished.
pub(super) fn recover(model: &mut Model, plan: &AgentPlan, entry: &JournalEntry) -> Vec<Effect> {
    let marker = marker_in_transcript(plan, entry);
    let evidence = Evidence {
        old_agent_alive: false,
        new_agent_alive: false,
        old_resumable: entry.old_session.is_some_and(|old| plan.can_resume(old)),
        marker,
    };
    let decided = journal::recover(entry, evidence);
    tracing::warn!(step = %entry.step, ?marker, plan = decided.sentence, "recovering a reboot");
    model.notice(decided.sentence.clone());
    let closed = |step, outcome: &str| {
        Effect::Journal(Box::new(JournalEntry {
            step,
            at: Utc::now(),
            outcome: Some(outcome.to_owned()),
            ..entry.clone()
        }))
    };
    let mut effects = Vec::new();
    match decided.recovery {
        Recovery::Nothing => effects.extend(app::agent::begin(model, false, None, None)),
        Recovery::RollBack { resume } => {
            if let Some(session) = resume {
                model.session = session;
            }
            if let Some((_, body)) = entry.handoff.split_once('\n') {
                app::handoff::keep(model, body);
            }
            effects.push(closed(Step::Failed, "rolled back at the next start"));
            effects.extend(app::agent::begin(
                model,
                resume.is_some(),
                Some(Cause::Recovery),
                None,
            ));
        }
        Recovery::FinishResume { session } => {
            model.session = session;
            effects.push(closed(
                Step::Done,
                "the handoff had arrived: resumed at the next start",
            ));
            effects.extend(app::agent::begin(model, true, Some(Cause::Recovery), None));
        }
        Recovery::FinishDeliver { session } => {
            // The journal's iteration may be the new one already: the text knows which one wrote it.
            let marker = Marker::read(&entry.handoff).unwrap_or_else(|| Marker {
                run: entry.run.to_string(),
                iteration: entry.iteration.get(),
                nonce: entry.nonce.clone(),
            });
            let handoff = Handoff {
                marker,
                text: entry.handoff.clone(),
                left_out: Vec::new(),
                warnings: Vec::new(),
            };
            let session = session.unwrap_or_else(|| SessionId::new(Uuid::new_v4()));
            effects.push(Effect::ReadGit);
            effects.extend(reboot::take_up(model, entry, handoff, session));
        }
    }
    effects
}

/// Whether the handoff is in the new session's transcript.
fn marker_in_transcript(plan: &AgentPlan, entry: &JournalEntry) -> journal::Marker {
    let Some(path) = entry
        .new_session
        .and_then(|session| plan.transcript_of(session))
    else {
        return journal::Marker::NoTranscript;
    };
    match find_prompt(&path, &entry.nonce) {
        Ok(true) => journal::Marker::Seen,
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
