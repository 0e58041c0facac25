//! A document in `$EDITOR`: the editor has the host terminal, and everything else goes on.
//!
//! The session, its hooks, the endpoints and the timers do not wait for it, so the text that it was opened with is kept here: the
//! text that comes back is compared with that and not with what the document has become meanwhile. No one sees a countdown or
//! presses a key, so nothing that asks for a look at the screen is taken for granted: `auto` waits.

use crate::app::{
    effect::Effect,
    event::Document,
    model::{Focus, Model, Overlay, external::External},
};

/// Returns the document that has the focus, or the message under review, to be lent to the editor, and the order to open it.
pub(in crate::app) fn lend(model: &Model) -> (External, Effect) {
    let reviewing = model.view.overlay == Some(Overlay::Review);
    let (document, text) = if reviewing || model.view.focus == Focus::Handoff {
        let text = model.draft.handoff.current().body().to_owned();
        (Document::Handoff, text)
    } else {
        (Document::Scratchpad, model.draft.notes.text().to_owned())
    };
    let lent = External {
        document,
        base: text.clone(),
        iteration: model.session.iteration(),
    };
    (lent, Effect::OpenEditor { document, text })
}

/// Takes in the text that the editor was left with, or its failure.
pub fn closed(model: &mut Model, document: Document, text: Option<String>) {
    let now = model.now;
    // Notices that came meanwhile could not be seen.
    for notice in &mut model.view.notices {
        notice.at = now;
    }
    let Some(lent) = model.view.external.take() else {
        tracing::warn!("an editor was left of which nothing is known");
        return;
    };
    match (document, text) {
        (_, None) => model.error("the editor failed: nothing was changed"),
        // Editors add a newline to a last line that had none.
        (_, Some(text)) if text.trim_end() == lent.base.trim_end() => {}
        (Document::Scratchpad, Some(text)) => {
            let follows = model.draft.notes.write_over(&lent.base, &text, now);
            follows.carry_out(model);
        }
        (Document::Handoff, Some(text)) if lent.iteration != model.session.iteration() => {
            model
                .draft
                .take_late_edit(&lent.base, &text, model.now)
                .carry_out(model);
        }
        (Document::Handoff, Some(text)) => {
            model.draft.take_edit(&lent.base, &text).carry_out(model);
        }
    }
}
