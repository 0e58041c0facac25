//! The handoff panel: the message as it would be sent now.

use ratatui::{buffer::Buffer, layout::Rect, text::Line};

use crate::{
    app::{
        Model,
        model::{Focus, Overlay},
        reading::sections,
    },
    handoff::Handoff,
    keymap::Action,
};

use super::{
    frame,
    markdown::{self, Marks},
    review, scratchpad, text,
    theme::Theme,
};

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
        // What comes next is what a glance is for; where nothing does, how large the message is.
        match review::next_step(&handoff.text) {
            Some(next) => format!("Handoff · next: {}", text::safe(&next)),
            None => format!("Handoff · {}", size(model, handoff)),
        }
    };
    let inner = frame::border(
        buf,
        area,
        frame::title(&name, focused, theme),
        focused,
        theme,
    );
    if let Some(editor) = editor {
        scratchpad::editor(buf, inner, editor, theme);
        frame::foot(buf, area, &scratchpad::editor_hints(editor), "", theme);
        return;
    }
    if !focused && let Some(key) = model.keys().hint(Action::Handoff) {
        frame::corner(buf, area, &frame::row(format!(" {key} "), theme.dim));
    }
    // The message itself keeps at least half of the panel.
    let mut remarks = remarks(handoff, usize::from(inner.width), theme);
    remarks.extend(missing(model, focused, usize::from(inner.width), theme));
    remarks.truncate(usize::from(inner.height / 2));
    let above = remarks.len() as u16;
    frame::rows(buf, inner, &remarks);
    let body = Rect {
        y: inner.y + above,
        height: inner.height - above,
        ..inner
    };
    // The marker line and the words to the model come first in every message: the review shows them too.
    let list = listed(model);
    let shown = list
        .as_deref()
        .unwrap_or_else(|| from_first_section(handoff.body().trim_start_matches('\n')));
    let rows = markdown::rows(shown, body.width, Marks::Kept, theme);
    let window = text::window(rows, model.draft.handoff.scroll, body.height);
    frame::rows(buf, body, &window.rows);
    let mut hints = Vec::new();
    if focused {
        hints.push("e edit".to_owned());
        if model.draft.handoff.edited.is_some() {
            hints.push("x drop edit".to_owned());
        }
        hints.extend(["y copy", "p paste", "Esc back"].map(str::to_owned));
    }
    frame::foot(buf, area, &hints, &frame::position(&window, shown), theme);
}

/// The message without the sentences before its first section.
fn from_first_section(body: &str) -> &str {
    let sections = sections(body);
    let lines = sections.first().map_or(0, |first| first.line);
    let skipped: usize = body.split_inclusive('\n').take(lines).map(str::len).sum();
    body.get(skipped..).unwrap_or(body)
}

/// `3.1k tokens · 12.4 KB`, and whether a human has rewritten it.
pub(super) fn size(model: &Model, handoff: &Handoff) -> String {
    let edited = if model.draft.handoff.edited.is_some() {
        " · edited"
    } else {
        ""
    };
    let (tokens, bytes) = (text::tokens(handoff.tokens()), text::bytes(handoff.bytes()));
    format!("{tokens} tokens · {bytes}{edited}")
}

/// What a reader should know before sending it: warnings, and what was left out.
pub(super) fn remarks(handoff: &Handoff, cells: usize, theme: &Theme) -> Vec<Line<'static>> {
    let lead = text::Lead {
        first: vec![("! ".to_owned(), theme.bad)],
        rest: vec![("  ".to_owned(), theme.bad)],
    };
    let mut lines = Vec::new();
    for warning in &handoff.warnings {
        let warning = text::safe(warning).into_owned();
        lines.extend(text::wrap(&[(warning, theme.bad)], &lead, cells));
    }
    if !handoff.left_out.is_empty() {
        let list = format!("left out: {}", text::safe(&handoff.left_out.join(", ")));
        lines.extend(text::wrap(&[(list, theme.dim)], &lead, cells));
    }
    lines
}

/// How much of the session is not in the message, if anything; and the keys for that, where they are ours.
pub(super) fn missing(
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
    let lead = text::Lead {
        first: vec![("! ".to_owned(), theme.bad)],
        rest: vec![("  ".to_owned(), theme.bad)],
    };
    text::wrap(&[(format!("{check}{keys}"), theme.bad)], &lead, cells)
}

/// What the message misses, while that is shown in place of it.
pub(super) fn listed(model: &Model) -> Option<String> {
    let panel = &model.draft.handoff;
    panel.lists_missing.then(|| panel.check.list())
}
