//! A document in `$EDITOR`: the editor has the host terminal, and everything else goes on.
//!
//! The session, its hooks, the endpoints and the timers do not wait for it, so the text that it was opened with is kept here: the
//! text that comes back is compared with that and not with what the document has become meanwhile. No one sees a countdown or
//! presses a key, so nothing that asks for a look at the screen is taken for granted: `auto` waits.

use crate::{
    app::{
        consequences::Consequences,
        effect::Effect,
        event::Document,
        model::{Focus, Model, Overlay, draft::HandoffDraft, external::External, view::View},
    },
    lineage::IterationId,
};
use pitstop_base::clock::At;

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
    (lent, Effect::OpenEditor(text))
}

impl View {
    /// Takes in that the editor was left, and returns what it had. Notices that came meanwhile could not be seen.
    pub(in crate::app) fn editor_left(&mut self, now: At) -> Option<External> {
        for notice in &mut self.notices {
            notice.at = now;
        }
        self.external.take()
    }
}

impl HandoffDraft {
    /// Takes in the text that the editor was left with in this iteration, or its failure.
    pub(in crate::app) fn editor_closed(
        &mut self,
        lent: Option<External>,
        text: Option<String>,
        iteration: IterationId,
        now: At,
    ) -> Consequences {
        let mut done = Consequences::default();
        match (lent, text) {
            (None, _) => tracing::warn!("an editor was left of which nothing is known"),
            (_, None) => done.error("the editor failed: nothing was changed"),
            // Editors add a newline to a last line that had none.
            (Some(lent), Some(text)) if text.trim_end() == lent.base.trim_end() => {}
            (Some(lent), Some(text)) => match lent.document {
                Document::Scratchpad => return self.notes.write_over(&lent.base, &text, now),
                Document::Handoff if lent.iteration != iteration => {
                    return self.take_late_edit(&lent.base, &text, now);
                }
                Document::Handoff => return self.take_edit(&lent.base, &text),
            },
        }
        done
    }
}
