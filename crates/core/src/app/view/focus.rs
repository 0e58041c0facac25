//! The focus: what has the keys.

use crate::app::{
    effect::Effect,
    model::{Focus, Model},
    view::{copy, layout},
};

/// Moves the focus; whatever was being edited is kept.
pub fn set_focus(model: &mut Model, focus: Focus) {
    if model.view.focus == focus {
        return;
    }
    leave_editors(model);
    let had_pane = model.view.focus == Focus::Pane;
    model.view.focus = focus;
    copy::drop_mode(model);
    if had_pane != (focus == Focus::Pane) {
        model.emit(Effect::FocusPane(focus == Focus::Pane));
    }
    // Panels that come into sight may take room from the pane.
    model.emit(Effect::ResizePane(layout::layout(model).pane_size()));
}

/// Keeps what is being edited, and leaves the editors.
pub(in crate::app) fn leave_editors(model: &mut Model) {
    model.draft.finish_edit().carry_out(model);
    model.draft.notes.finish_edit(model.now).carry_out(model);
}
