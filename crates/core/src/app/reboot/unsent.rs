//! The unsent prompt: what a person has typed into the agent's prompt box and not submitted goes over into the next session's
//! box, unsent.
//!
//! ```text
//! old session: prompt box read ─► kept on disk ─► prompt box read again, and alike ─► the agent ends
//! new session: prompt box empty ─► typed, without an Enter ─► the box shows it
//! ```
//!
//! It is kept on disk from then on until it is submitted or removed, so that it is in the next session's box even if pitstop itself
//! ends meanwhile. What the person types before it is put back is kept behind it.

use crate::api::wire::AgentState;
use pitstop_agent::bridge::Link;
use pitstop_transcript::prompts::without_marks;

use crate::app::{
    consequences::Consequences,
    facts::{in_box, not_begun, typing_refusal},
    model::{
        Model,
        reboot::Reboot,
        unsent::{OnDisk, Waiting},
    },
    reboot::{
        next::{Act, AgentAct, Next},
        submit::Then,
    },
};
pub use crate::app::{facts::unsent, model::unsent::Unsent};

/// Takes over what the old session was given and has not begun, before that ends.
pub(super) fn take(model: &Model, on_disk: &OnDisk) -> Next {
    let lost = (unsent(model) == Unsent::Unreadable)
        .then(|| "your unsent prompt could not be read, and goes with the session".to_owned());
    // A prompt that is waiting to be put back already is carried over to the session after.
    let taken = match not_begun(model) {
        None => model.reboot.forget_draft(on_disk).map(Act::Emit),
        Some(text) => {
            let draft = model.session.agent.bridge.draft(model.session.id);
            let cursor = draft.filter(|draft| draft.text == text);
            Some(Act::KeepUnsent(Some(Waiting {
                cursor: cursor.map(|draft| draft.cursor),
                ..Waiting::new(text)
            })))
        }
    };
    let acts = lost.map(Act::Error).into_iter().chain(taken);
    Next::All(acts.map(Next::Do).collect())
}

impl Reboot {
    /// Takes over an unsent prompt that was kept when its agent ended, and reports what of it is lost: the client does not show what
    /// an image or a long paste contains.
    pub(in crate::app) fn kept_found(&mut self, kept: &str) -> Consequences {
        let mut done = Consequences::default();
        let words = without_marks(kept);
        if words != kept {
            done.error("an image or a long paste in your unsent prompt is lost: paste it again");
        }
        if !words.trim().is_empty() {
            self.unsent_found(words);
        }
        done
    }
}

/// Puts the unsent prompt into the prompt box as soon as that is empty and nothing of ours is still to be typed there.
pub(super) fn put_back(model: &Model) -> Option<Next> {
    let ready = matches!(
        model.session.agent.state,
        AgentState::Idle | AgentState::Busy
    );
    let waiting = model.reboot.unsent.as_ref()?;
    if model.reboot.attempt.is_some() || !ready {
        return None;
    }
    // The session before had a bridge; this one's says hello in a moment, and puts the cursor where it was.
    let awaits_bridge =
        waiting.cursor.is_some() && model.session.agent.bridge.link == Link::Awaited;
    if matches!(in_box(model), Unsent::Text(text) if text.contains(&waiting.text)) {
        // It did get there, or the person has written it again.
        Some(Next::Do(Act::KeepUnsent(None)))
    } else if waiting.failed || typing_refusal(model).is_some() || awaits_bridge {
        None
    } else {
        let then = Then::Leave(waiting.cursor);
        Some(Next::Agent(AgentAct::Give(waiting.text.clone(), then)))
    }
}
