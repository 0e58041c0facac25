//! The focus: what has the keys.

use std::sync::Arc;

use crate::app::{
    consequences::Consequences,
    effect::Effect,
    model::{CarryOut, Focus, Model, view::View},
    view::layout,
};
use crate::lineage::IterationId;
use pitstop_transcript::talk::Talk;

/// Gives a part of the screen the keys, and takes away what lies over everything: the keys would seem dead behind it. Whatever was being
/// edited is kept.
pub fn set_focus(model: &mut Model, focus: Focus) {
    let is_covered = model.view.overlay.take().is_some();
    let moves = model.view.focus != focus;
    if is_covered || moves {
        model.draft.leave_editors(model.now).carry_out(model);
    }
    if !moves {
        return;
    }
    let had_pane = model.view.focus == Focus::Pane;
    model.view.focus = focus;
    model.view.copy.drop_mode().carry_out(model);
    if had_pane != (focus == Focus::Pane) {
        model.emit(Effect::FocusPane(focus == Focus::Pane));
    }
    // Panels that come into sight may take room from the pane.
    model.emit(Effect::ResizePane(layout::layout(model).pane_size()));
}

impl View {
    /// Shows the transcript of an iteration, which was read, unless something else lies over the pane by now. Where there is none, copy
    /// mode reads what is on the screen.
    pub(in crate::app) fn talk_read(
        &mut self,
        iteration: IterationId,
        talk: Result<Arc<Talk>, String>,
    ) -> Consequences {
        let mut done = Consequences::default();
        match talk {
            _ if self.overlay.is_some() => {}
            Ok(talk) => return self.copy.show(iteration, talk).into(),
            Err(why) => {
                done.error(format!(
                    "the transcript of iteration {iteration} cannot be read: {why}"
                ));
                if self.focus == Focus::Pane && !self.copy.is_on() {
                    done.emit(self.copy.begin(false));
                }
            }
        }
        done
    }
}
