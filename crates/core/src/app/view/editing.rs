//! The place of an edit in the handoff: the editor opens where the reader is, and what was written is in sight afterwards.

use crate::app::{
    model::{Focus, Model, Overlay, reading::Reading},
    view::{
        layout,
        reading::{glance, same_line},
    },
};

/// Returns the line of the editable text that is in view: the editor opens there.
pub(in crate::app) fn first_line(model: &Model) -> usize {
    let (shown, line) = (shown_text(model), line_in_view(model));
    same_line(&shown, line, model.draft.handoff.editable()).unwrap_or(0)
}

/// Returns the line at the top of what is read of the handoff.
pub(in crate::app) fn line_in_view(model: &Model) -> usize {
    let (reading, cells) = reader(model);
    reading.line_in_view(&shown_text(model), cells)
}

fn is_review(model: &Model) -> bool {
    model.view.overlay == Some(Overlay::Review)
}

/// Returns the text that is read: the message in the review, a glance at it in the panel, or the list of what it misses.
pub(in crate::app) fn shown_text(model: &Model) -> String {
    let panel = &model.draft.handoff;
    if panel.lists_missing {
        panel.check.to_document()
    } else if is_review(model) {
        panel.current().text.clone()
    } else {
        glance(panel.current().body())
    }
}

/// Returns the place in that text, and the number of cells that a row of it has.
fn reader(model: &Model) -> (&Reading, usize) {
    let layout = layout::layout(model);
    if is_review(model) {
        let (_, cells) = layout::review_columns(layout.whole.width);
        return (&model.view.reading, usize::from(cells));
    }
    let mut panels = layout.panels.iter();
    let panel = panels.find(|(panel, _)| *panel == Focus::Handoff);
    let cells = panel.map_or(layout.whole.width, |(_, area)| area.width);
    let cells = usize::from(cells.saturating_sub(2));
    (&model.draft.handoff.reading, cells)
}
