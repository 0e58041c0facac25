//! A session that another process continues, such as a second `claude --resume` of it in another terminal.
//!
//! That process has none of our hooks; it shows in the transcript alone, to which both append: a prompt that no hook has reported,
//! and an answer to it, while the agent in the pane rests. The agent in the pane does not read what was added, so from then on the
//! two differ. The state lasts until a turn begins here.

use crate::api::wire::AgentState;

use crate::app::{
    autopilot::{self, RunInput},
    event::TranscriptFacts,
    facts::is_hookless,
    model::{
        Model,
        activity::{Elsewhere, TitleState},
    },
    session::activity::set_state,
};

/// The largest number of prompts that are awaited: one that the client refuses never comes, and must not hide others for ever.
const AWAITED_CAP: u64 = 2;

/// Notes a prompt that a hook has reported: a turn begins here.
pub(in crate::app) fn prompted(model: &mut Model) {
    let seen = &mut model.session.agent.activity.elsewhere;
    let shown = u64::from(seen.hook_late);
    *seen = Elsewhere {
        awaited: (seen.awaited + 1 - shown).min(AWAITED_CAP),
        ..Elsewhere::default()
    };
}

/// Notes that hooks were lost: one of a prompt here may be among them, whether the transcript has it by now or not.
pub(in crate::app) fn hooks_lost(model: &mut Model) {
    let seen = &mut model.session.agent.activity.elsewhere;
    let shown = u64::from(std::mem::take(&mut seen.hook_late));
    seen.unreported = None;
    seen.awaited = (seen.awaited + 1 - shown).min(AWAITED_CAP);
}

/// Compares a transcript that has grown with the facts before.
pub(in crate::app) fn transcript_read(model: &mut Model, before: &TranscriptFacts) {
    let agent = &mut model.session.agent;
    let now = &model.session.transcript;
    let new = now.turns.saturating_sub(before.turns);
    let seen = &mut agent.activity.elsewhere;
    let mut unreported = new.saturating_sub(seen.awaited);
    seen.awaited = seen.awaited.saturating_sub(new);
    if unreported > 0 && std::mem::take(&mut seen.submitted) {
        unreported -= 1;
        seen.hook_late = true;
    }
    // A file that is read for the first time holds earlier turns, and a fork has a file of its own.
    let known = before.whole && now.whole && agent.daemon.sessions.is_empty();
    let rests = agent.state == AgentState::Idle && agent.activity.title != Some(TitleState::Spins);
    if !known || !rests {
        return;
    }
    if unreported > 0 {
        seen.unreported.get_or_insert(before.totals.output);
    }
    let answered = seen.unreported.is_some_and(|said| now.totals.output > said);
    if !answered || is_hookless(model) {
        return;
    }
    model.session.agent.activity.elsewhere.known = true;
    set_state(model, AgentState::Elsewhere);
    autopilot::on(model, RunInput::ResumedElsewhere);
}
