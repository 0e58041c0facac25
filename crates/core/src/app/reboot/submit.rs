//! The prompts that the supervisor gives: which is given how, and what follows from the end of one. The way of a prompt is
//! [`Submission`](crate::app::model::submission::Submission).

use std::time::Duration;

use pitstop_agent::{bridge::BridgeOrder, claude};
use pitstop_base::clean;
use pitstop_handoff as handoff;

use crate::app::{
    facts::typing_refusal,
    model::{
        Model,
        orders::Purpose,
        submission::{SubmissionEnd, SubmissionEvent},
    },
};

/// The time that the client's side may take over a prompt: it waits for what came between in the client, such as a turn.
pub(in crate::app) const GIVEN_WITHIN: Duration = Duration::from_secs(20);

/// The largest number of UTF-16 units of a prompt box that the bridge reports.
const REPORTED: usize = 65_536;

/// What is done with a text once the prompt box holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It is submitted.
    Submit,
    /// It is left there for the human. Where the client's own side can place it, the cursor is at this position, in UTF-16 units, and
    /// otherwise behind the text.
    Leave(Option<usize>),
}

/// Gives a prompt; the error is what keeps it from being given now.
pub fn give(model: &mut Model, given: &str, then: Then) -> Result<(), &'static str> {
    if let Some(why) = typing_refusal(model) {
        return Err(why);
    }
    let epoch = model.next_epoch();
    let submits = then == Then::Submit;
    let text = handoff::sendable(given);
    model.draft.seen_signals.expect_echo(&text);
    if submits {
        model.session.agent.activity.elsewhere.submitted();
    }
    let bridge = model.session.agent.bridge.of(model.session.id);
    let order = bridge.and_then(|_| match then {
        Then::Submit => {
            let fills =
                !text.starts_with(['/', '!', '#']) && text.encode_utf16().count() < REPORTED;
            fills.then(|| fill_order(&claude::boxed(text.clone()), None))
        }
        // Only what is typed makes the box one for the shell.
        Then::Leave(cursor) => (!text.starts_with('!')).then(|| fill_order(given, cursor)),
    });
    let order = order.map(|order| model.order(Purpose::Prompt, order, GIVEN_WITHIN));
    let generic = model.is_generic();
    let (submission, facts) = model.session.prompt(generic, model.now);
    let effects = &mut model.scratch.effects;
    submission.begin((epoch, text, submits), order, &facts, effects);
    Ok(())
}

/// Returns the order that puts a text into the prompt box, with the blanks at its end too.
fn fill_order(text: &str, cursor: Option<usize>) -> BridgeOrder {
    let text = clean::typed(text);
    let end = text.encode_utf16().count();
    let cursor = cursor.map_or(end, |cursor| cursor.min(end));
    BridgeOrder::FillDraft { text, cursor }
}

/// Moves the prompt that is on its way on by an event, and acts on its end.
pub(in crate::app) fn on(model: &mut Model, event: SubmissionEvent) {
    let generic = model.is_generic();
    let (submission, facts) = model.session.prompt(generic, model.now);
    match submission.on(event, &facts, &mut model.scratch.effects) {
        None | Some(SubmissionEnd::Over) => {}
        Some(SubmissionEnd::Failed(why)) => model.error(why),
        Some(SubmissionEnd::Filled(text)) => {
            model.session.agent.prompt_filled();
            if model.reboot.box_filled(&text) {
                model.info("your unsent prompt stands in the prompt box again, still unsent");
            }
        }
        Some(SubmissionEnd::NotFilled) => {
            if model.reboot.box_not_filled() {
                model.error(
                    "your unsent prompt could not be put back: it is kept, and the next session tries again",
                );
            }
        }
    }
}
