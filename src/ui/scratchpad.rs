//! The scratchpad panel, and the editor that the handoff shares with it.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier},
    text::{Line, Span},
    widgets::Widget,
};

use pitstop_base::{clean, keymap::Action};
use pitstop_core::app::{
    Model,
    model::{Editor, Focus},
};
use pitstop_handoff::scratchpad::{
    versions::{Author, Version},
    without_title,
};

use super::{
    frame,
    markdown::{self, Marks},
    text,
    theme::Theme,
};

/// The colour that the text area gives to selected text. Pitstop restyles it, because a text area can be styled only by its
/// owner.
const SELECTED: Color = Color::LightBlue;

/// The colour that the text area gives to the matches of a search.
const FOUND: Color = Color::Blue;

/// Draws the scratchpad panel.
pub(super) fn draw(buf: &mut Buffer, area: Rect, model: &Model, theme: &Theme) {
    let focused = model.view.focus == Focus::Scratchpad && model.view.overlay.is_none();
    let notes = &model.draft.notes;
    let title = frame::title(&panel_name(model), focused, theme);
    let key = model.keys().hint(Action::Scratchpad);
    let key = key.filter(|_| !focused && notes.looked_at().is_none());
    let corner = frame::corner_label(key, theme);
    let inner = frame::draw_border_with_corner(buf, area, title, &corner, focused, theme);
    if let Some(editor) = notes.editor() {
        self::draw_editor(buf, inner, editor, theme);
        let mark = cursor_place(inner, editor);
        frame::foot(buf, area, editor_hints(editor), &mark, theme);
        return;
    }
    if let Some(version) = notes.looked_at() {
        draw_version(buf, area, inner, model, version, theme);
        return;
    }
    let mark = if notes.parsed().is_blank() {
        frame::rows(buf, inner, &invitation_lines(model, inner, theme));
        String::new()
    } else {
        let shown = without_title(notes.text());
        let rows = markdown::rows(shown, inner.width, Marks::Rendered, theme);
        let window = text::window(rows, notes.first_line(), inner.height);
        window.record(notes.bounds());
        frame::rows(buf, inner, &window.rows);
        frame::window_mark(&window, shown)
    };
    let mut hints = Vec::new();
    if focused {
        hints.extend(["e edit", "v versions"]);
        hints.extend((!mark.is_empty()).then_some("↑↓ read"));
        hints.push("Esc back");
    }
    frame::foot(buf, area, &hints, &mark, theme);
}

/// Returns the panel's name, and the state of its text that a person has to know.
fn panel_name(model: &Model) -> String {
    let notes = &model.draft.notes;
    let state = match (notes.editor(), notes.unsaved()) {
        (_, Some(why)) => format!(" · not saved: {}", clean::one_line(why)),
        (Some(editor), None) if is_changed(editor, notes.text()) => {
            " · editing · not saved".to_owned()
        }
        (Some(_), None) => " · editing".to_owned(),
        (None, None) => String::new(),
    };
    format!("Scratchpad{state}")
}

/// Shows an earlier version of the notes.
fn draw_version(
    buf: &mut Buffer,
    area: Rect,
    inner: Rect,
    model: &Model,
    version: &Version,
    theme: &Theme,
) {
    let by = match version.by {
        Author::Human => "written by a person",
        Author::Agent => "written by the agent",
    };
    let age = (model.now.wall - version.at).to_std().unwrap_or_default();
    let said = format!("version {} · {by} {}", version.number, text::ago(age));
    let said = text::fit(&said, usize::from(inner.width));
    let mut rows = vec![frame::row(said, theme.accent)];
    let shown = without_title(&version.text);
    let body = markdown::rows(shown, inner.width, Marks::Rendered, theme);
    let height = inner.height.saturating_sub(1);
    let window = text::window(body, model.draft.notes.first_line(), height);
    window.record(model.draft.notes.bounds());
    rows.extend(window.rows.iter().cloned());
    frame::rows(buf, inner, &rows);
    let hints = ["←→ other", "Enter restore", "Esc back"];
    frame::foot(
        buf,
        area,
        &hints,
        &frame::window_mark(&window, shown),
        theme,
    );
}

/// Reports whether the edited text differs from the one on disk; compared in place, because it may be large.
fn is_changed(editor: &Editor, saved: &str) -> bool {
    !editor
        .area
        .lines()
        .iter()
        .map(String::as_str)
        .eq(saved.split('\n'))
}

/// Returns the text of an empty scratchpad.
fn invitation_lines(model: &Model, inner: Rect, theme: &Theme) -> Vec<Line<'static>> {
    let key = model.keys().hint(Action::Scratchpad).unwrap_or_default();
    let has_keys = model.view.focus == Focus::Scratchpad && model.view.overlay.is_none();
    let key = if has_keys {
        "Press e".to_owned()
    } else {
        format!("{key} then e")
    };
    let how = format!(
        "Nothing noted yet. {key} to write what the next session must know; the agent writes here too."
    );
    text::wrapped(how, theme.dim, usize::from(inner.width))
}

/// Returns the hints of the editor's keys, or those of a pattern that is being searched.
pub(super) const fn editor_hints(editor: &Editor) -> &'static [&'static str] {
    match editor.search {
        Some(_) => &["Enter done", "Ctrl-G next"],
        None => &[
            "Esc save and leave",
            "Ctrl-F find",
            "Ctrl-Z undo",
            "Ctrl-S save",
        ],
    }
}

/// Returns the place of the cursor in a text that is longer than its rectangle: `line 3/40`. Call it once the text was
/// drawn.
pub(super) fn cursor_place(area: Rect, editor: &Editor) -> String {
    let (body, _) = editor_parts(area, editor);
    let (top, _) = editor.area.scroll_offset();
    // A row behind the last one is taken for the last one.
    let begins = |row: usize| editor.area.screen_to_data(row, 0);
    let behind = usize::from(top) + usize::from(body.height);
    let below = behind > 0 && begins(behind) != begins(behind - 1);
    if top == 0 && !below {
        return String::new();
    }
    let (row, count) = (editor.area.cursor().0, editor.area.lines().len());
    format!("line {}/{count}", row + 1)
}

/// Returns the rectangles of the editor's text, and of the line below it that asks for a pattern.
fn editor_parts(area: Rect, editor: &Editor) -> (Rect, Rect) {
    let below = u16::from(editor.search.is_some()).min(area.height.saturating_sub(1));
    let text = Rect {
        height: area.height - below,
        ..area
    };
    let rest = Rect {
        y: text.bottom(),
        height: below,
        ..area
    };
    (text, rest)
}

/// Draws an editor.
pub(super) fn draw_editor(buf: &mut Buffer, area: Rect, editor: &Editor, theme: &Theme) {
    let area = area.intersection(buf.area);
    if area.is_empty() {
        return;
    }
    let (body, below) = editor_parts(area, editor);
    (&editor.area).render(body, buf);
    restyle_cells(buf, body, theme);
    if let Some(cell) = cursor_position(body, editor).and_then(|at| buf.cell_mut(at)) {
        // The host's own cursor is here; two would cancel each other out.
        cell.modifier.remove(Modifier::REVERSED);
    }
    if let Some(pattern) = &editor.search {
        let line = Line::from(vec![
            Span::styled("find: ", theme.accent),
            Span::styled(search_tail(pattern, area.width), theme.text),
        ]);
        frame::rows(buf, below, &[line]);
    }
}

/// Returns the end of the pattern, where the typing happens.
fn search_tail(pattern: &str, cells: u16) -> String {
    text::tail(&text::safe(pattern), usize::from(cells).saturating_sub(8)).to_owned()
}

/// Gives the text area's cells the theme's colours, and takes out characters that are not safe to show.
fn restyle_cells(buf: &mut Buffer, area: Rect, theme: &Theme) {
    for position in area.positions() {
        let Some(cell) = buf.cell_mut(position) else {
            continue;
        };
        let (selected, found) = (cell.bg == SELECTED, cell.bg == FOUND);
        cell.modifier.remove(Modifier::UNDERLINED);
        cell.fg = Color::Reset;
        cell.bg = Color::Reset;
        if selected {
            cell.set_style(theme.selection);
        } else if found {
            cell.set_style(theme.found);
        }
        if !cell.symbol().is_ascii() && clean::one_line(cell.symbol()) != cell.symbol() {
            let wide = text::width(cell.symbol());
            cell.set_char(if wide > 1 { ' ' } else { '\u{fffd}' });
        }
    }
}

/// Returns the place of the text cursor of an editor that is drawn into this rectangle.
pub(super) fn editor_cursor(area: Rect, editor: &Editor) -> Option<(u16, u16)> {
    let (body, below) = editor_parts(area, editor);
    if let Some(pattern) = &editor.search {
        let typed = text::width(&search_tail(pattern, area.width)) as u16;
        let x = (area.x + 6 + typed).min(area.right().saturating_sub(1));
        return (below.height > 0).then(|| (x, below.bottom() - 1));
    }
    cursor_position(body, editor)
}

fn cursor_position(body: Rect, editor: &Editor) -> Option<(u16, u16)> {
    let at = editor.area.screen_cursor();
    let (top, left) = editor.area.scroll_offset();
    let row = u16::try_from(at.row).ok()?.checked_sub(top)?;
    let column = u16::try_from(at.col).ok()?.checked_sub(left)?;
    let inside = row < body.height && body.width > 0;
    // At the end of a full row the cursor rests on its last cell.
    inside.then(|| (body.x + column.min(body.width - 1), body.y + row))
}
