//! A prompt that we type for somebody: the text, its Enter, and the proof that it was taken.
//!
//! ```text
//! paste ─120 ms─► Enter ─0.8 s─► Enter again ─3 s─► carriage return ─6 s─► the human is told
//!                   └──────────────┴───────────────────┴─► a hook tells of the prompt: done
//! ```
//!
//! An Enter may get lost in a client that is busy, and another one submits what is in its prompt box. That is safe as long
//! as the proof is missing: the hook of the prompt runs before anything is asked of the service, so no turn has begun, and
//! no dialog of a turn's can be open. The text itself is never sent twice.

use std::time::Duration;

use crate::{agent::claude, api::wire::AgentState, clock::At, handoff};

use super::{
    effect::Effect,
    event::TimerId,
    model::{AgentView, Model},
};

/// How long after the text its Enter is sent, so that the two come in separate reads: one millisecond was enough for an
/// idle client.
pub const ENTER_AFTER: Duration = Duration::from_millis(120);

/// How long after each Enter it is looked whether the prompt was taken.
const LOOKS: [Duration; 3] = [
    Duration::from_millis(800),
    Duration::from_secs(3),
    Duration::from_secs(6),
];

/// The Enters in the client's own form; the last one is for a client that does not know it any more.
const OWN_FORM: usize = LOOKS.len() - 1;

/// A prompt on its way.
#[derive(Clone, Copy, Debug)]
pub struct Saying {
    epoch: u64,
    since: At,
    /// Enters sent so far.
    enters: usize,
    /// Whether a hook will tell of it.
    proves: bool,
}

/// Types a prompt for somebody.
pub fn say(model: &mut Model, text: &str) -> Vec<Effect> {
    let epoch = model.next_epoch();
    let text = handoff::sendable(text);
    // Of commands and of lines for the shell no hook tells.
    let command = text.starts_with(['/', '!']);
    model.saying = Some(Saying {
        epoch,
        since: model.now,
        enters: 0,
        proves: model.agent.hooked && !command,
    });
    model.heard.expect_echo(&text);
    vec![
        paste(model, text),
        Effect::SetTimer(TimerId::Enter(epoch), ENTER_AFTER),
    ]
}

/// Puts a text into the agent's prompt, so that an Enter submits it.
#[must_use]
pub fn paste(model: &Model, text: String) -> Effect {
    Effect::Paste(if is_generic(model) {
        text
    } else {
        claude::boxed(text)
    })
}

/// The Enter behind a text, when so many were sent before.
#[must_use]
pub fn enter(model: &Model, before: usize) -> Effect {
    let own = !is_generic(model) && before < OWN_FORM;
    let form = if own { claude::ENTER } else { b"\r" };
    Effect::Type(form.to_vec())
}

fn is_generic(model: &Model) -> bool {
    model.identity.agent_kind == "generic"
}

/// A prompt was taken: ours, if its Enter was sent.
pub fn prompted(model: &mut Model) {
    if model.saying.is_some_and(|saying| saying.enters > 0) {
        model.saying = None;
    }
}

/// Whether this epoch is of a prompt on its way.
#[must_use]
pub fn is_about(model: &Model, epoch: u64) -> bool {
    model.saying.is_some_and(|saying| saying.epoch == epoch)
}

/// An Enter is due, or the proof is late.
pub fn timer(model: &mut Model, epoch: u64) -> Vec<Effect> {
    let Some(saying) = model.saying.filter(|saying| saying.epoch == epoch) else {
        return Vec::new();
    };
    if saying.enters > 0 && !waits(&model.agent, saying) {
        model.saying = None;
        return Vec::new();
    }
    let Some(look) = LOOKS.get(saying.enters) else {
        model.saying = None;
        model.trouble("what was said is not confirmed: look at the agent's prompt");
        return Vec::new();
    };
    let enter = enter(model, saying.enters);
    if !saying.proves {
        model.saying = None;
        return vec![enter];
    }
    model.saying = Some(Saying {
        enters: saying.enters + 1,
        ..saying
    });
    vec![enter, Effect::SetTimer(TimerId::Enter(epoch), *look)]
}

/// Whether nothing but an Enter can be missing. Whoever types meanwhile sees the prompt, and it is theirs.
fn waits(agent: &AgentView, saying: Saying) -> bool {
    let idle = matches!(agent.state, AgentState::Idle | AgentState::Limit);
    let typed = |typed: At| typed.since_start >= saying.since.since_start;
    idle && !agent.typed_at.is_some_and(typed)
}
