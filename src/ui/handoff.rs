//! The handoff panel: the message as it would be sent now.

use ratatui::{buffer::Buffer, layout::Rect, text::Line};

use pitstop_base::keymap::Action;
use pitstop_core::app::{
    Model,
    model::{Focus, Overlay},
    reading::{Reading, glance},
};
use pitstop_handoff::Handoff;

use super::{frame, markdown::Marks, reading, review, scratchpad, text, theme::Theme};

/// Draws the handoff panel.
pub(super) fn draw(buf: &mut Buffer, area: Rect, model: &Model, theme: &Theme) {
    let focused = model.view.focus == Focus::Handoff && model.view.overlay.is_none();
    let handoff = model.draft.handoff.current();
    // The review has the editor while it is open.
    let editor = model
        .draft
        .handoff
        .editor
        .as_ref()
        .filter(|_| model.view.overlay != Some(Overlay::Review));
    let name = if editor.is_some() {
        "Handoff · editing".to_owned()
    } else {
        // A glance is for the next step; without one, the size of the message is shown.
        match review::next_step(&handoff.text) {
            Some(next) => format!("Handoff · next: {}", text::safe(&next)),
            None => format!("Handoff · {}", size_label(model, handoff)),
        }
    };
    let key = model.keys().hint(Action::Handoff);
    let key = key.filter(|_| !focused && editor.is_none());
    let corner = frame::corner_label(key, theme);
    let title = frame::title(&name, focused, theme);
    let inner = frame::draw_border_with_corner(buf, area, title, &corner, focused, theme);
    if let Some(editor) = editor {
        scratchpad::draw_editor(buf, inner, editor, theme);
        let mark = scratchpad::cursor_place(inner, editor);
        frame::foot(buf, area, scratchpad::editor_hints(editor), &mark, theme);
        return;
    }
    // The message itself keeps at least half of the panel.
    let mut remarks = remark_lines(handoff, usize::from(inner.width), theme);
    remarks.extend(missing_lines(
        model,
        focused,
        usize::from(inner.width),
        theme,
    ));
    remarks.truncate(usize::from(inner.height / 2));
    let above = remarks.len() as u16;
    frame::rows(buf, inner, &remarks);
    let body = frame::below(inner, above);
    // The marker line and the words to the model come first in every message: the review shows them too.
    let shown = listed_missing(model).unwrap_or_else(|| glance(handoff.body()));
    let reader = &model.draft.handoff.reading;
    let (rows, mark) = reading::lay_out(&shown, reader, body, Marks::Rendered, theme);
    frame::rows(buf, body, &rows);
    let searching = reading::search_keys(reader).filter(|_| focused);
    let typed = searching.is_some();
    let mut hints = searching.unwrap_or_default();
    if focused && !typed {
        hints.push("e edit".to_owned());
        if model.draft.handoff.edited.is_some() {
            hints.push("x drop edit".to_owned());
        }
        let keys = [
            fold_key(reader, &shown),
            "y copy",
            "p to prompt",
            "/ find",
            "Tab next section",
            "o fold or open",
            "Esc back",
        ];
        hints.extend(keys.map(str::to_owned));
    }
    frame::foot(buf, area, &hints, &mark, theme);
}

/// Returns the hint of the key for all sections.
pub(super) fn fold_key(reading: &Reading, text: &str) -> &'static str {
    if reading.is_all_open(text) {
        "z fold all"
    } else {
        "z open all"
    }
}

/// Returns `3.1k tokens · 12.4 KB`, and whether a person has rewritten it.
pub(super) fn size_label(model: &Model, handoff: &Handoff) -> String {
    let edited = if model.draft.handoff.edited.is_some() {
        " · edited"
    } else {
        ""
    };
    let (tokens, bytes) = (text::tokens(handoff.tokens()), text::bytes(handoff.bytes()));
    format!("{tokens} tokens · {bytes}{edited}")
}

/// Returns the remarks for a reader before sending it: warnings, and the parts that were left out.
pub(super) fn remark_lines(handoff: &Handoff, cells: usize, theme: &Theme) -> Vec<Line<'static>> {
    let lead = text::Lead::hanging("! ", theme.accent);
    let mut lines = Vec::new();
    for warning in &handoff.warnings {
        let warning = text::safe(warning).into_owned();
        lines.extend(text::wrap(&[(warning, theme.accent)], &lead, cells));
    }
    if !handoff.left_out.is_empty() {
        let list = format!("left out: {}", text::safe(&handoff.left_out.join(", ")));
        lines.extend(text::wrap(&[(list, theme.dim)], &lead, cells));
    }
    lines
}

/// Returns the amount of the session that is not in the message, if any; and the keys for that, where Pitstop has them.
pub(super) fn missing_lines(
    model: &Model,
    with_keys: bool,
    cells: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let check = &model.draft.handoff.check;
    if check.is_complete() {
        return Vec::new();
    }
    let keys = match (with_keys, model.draft.handoff.lists_missing) {
        (false, _) => "",
        (true, false) => " (m lists, + adds)",
        (true, true) => " (m message, + adds)",
    };
    let lead = text::Lead::hanging("! ", theme.accent);
    text::wrap(&[(format!("{check}{keys}"), theme.accent)], &lead, cells)
}

/// Returns the list of the parts that the message misses, while that is shown in place of it.
pub(super) fn listed_missing(model: &Model) -> Option<String> {
    let panel = &model.draft.handoff;
    panel.lists_missing.then(|| panel.check.to_document())
}
