//! The focus: what has the keys.

use std::sync::Arc;

use crate::app::{
    effect::Effect,
    model::{Focus, Model},
    view::layout,
};
use crate::lineage::IterationId;
use pitstop_transcript::talk::Talk;

/// Moves the focus; whatever was being edited is kept.
pub fn set_focus(model: &mut Model, focus: Focus) {
    if model.view.focus == focus {
        return;
    }
    model.draft.leave_editors(model.now).carry_out(model);
    let had_pane = model.view.focus == Focus::Pane;
    model.view.focus = focus;
    let left = model.view.copy.drop_mode();
    model.emit_all(left);
    if had_pane != (focus == Focus::Pane) {
        model.emit(Effect::FocusPane(focus == Focus::Pane));
    }
    // Panels that come into sight may take room from the pane.
    model.emit(Effect::ResizePane(layout::layout(model).pane_size()));
}

/// Shows the transcript of an iteration, which was read. Where there is none, copy mode reads what is on the screen.
pub(in crate::app) fn show_transcript(
    model: &mut Model,
    iteration: IterationId,
    talk: Result<Arc<Talk>, String>,
) {
    // Something else may lie over the pane by now.
    if model.view.overlay.is_some() {
        return;
    }
    match talk {
        Ok(talk) => {
            set_focus(model, Focus::Pane);
            let shown = model.view.copy.show(iteration, talk);
            model.emit_all(shown);
        }
        Err(why) => {
            model.error(format!(
                "the transcript of iteration {iteration} cannot be read: {why}"
            ));
            if model.view.focus == Focus::Pane && !model.view.copy.is_on() {
                let begun = model.view.copy.begin(false);
                model.emit(begun);
            }
        }
    }
}
