//! The handoff panel, and the editor that the scratchpad panel has too.

use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_textarea::{CursorMove, Input, TextArea, WrapMode};

use pitstop_handoff::{
    Check, Handoff, Marker,
    edits::Edits,
    scratchpad::lines::{heading, list_item},
};

use super::reading::Reading;

/// An editor for a whole document, with undo, selection and search.
#[derive(Clone)]
pub struct Editor {
    /// The text area.
    pub area: TextArea<'static>,
    /// The text as it was when editing began, or as last merged.
    pub base: String,
    /// The search pattern being typed, if one is.
    pub search: Option<String>,
    /// True if something of this edit was saved.
    pub saved: bool,
    /// True if the text was replaced: among the steps of undo there is then one without any text.
    pub(in crate::app) replaced: bool,
    /// The row at whose start a note is typed above the existing text, and whether a line was opened for that note.
    pub(in crate::app) top: (usize, bool),
}

impl Editor {
    /// Opens an editor on a text.
    pub fn new(text: &str) -> Self {
        let mut area = TextArea::new(text.split('\n').map(str::to_owned).collect());
        area.set_wrap_mode(WrapMode::WordOrGlyph);
        area.set_hard_tab_indent(true);
        area.set_max_histories(10_000);
        Self {
            area,
            base: text.to_owned(),
            search: None,
            saved: false,
            replaced: false,
            top: (0, false),
        }
    }

    /// Moves the cursor to the beginning of a line, a few rows below the upper edge.
    pub fn begin_at(&mut self, row: usize) {
        let above = i16::try_from(row.saturating_sub(2)).unwrap_or(i16::MAX);
        self.area.scroll((above, 0));
        self.go_to(row, 0);
        self.top = (row, false);
    }

    /// Returns the text in its present state.
    pub fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    /// Opens a line for a text that begins with `first` and is typed at the very top: it must not become a part of a heading or of a
    /// list item. No line is opened for a `#` at a heading, since that makes the heading a deeper one.
    pub fn make_room_above(&mut self, first: char) {
        let row = self.top.0;
        let line = self.area.lines().get(row).map_or("", String::as_str);
        let deepens = first.is_whitespace() || (first == '#' && heading(line).is_some());
        let joins = heading(line).is_some() || list_item(line).is_some();
        if self.cursor() == (row, 0) && !self.area.is_selecting() && joins && !deepens {
            self.area.insert_newline();
            self.go_to(row, 0);
            self.top.1 = true;
        }
    }

    /// Inserts a text that was pasted.
    pub(super) fn paste(&mut self, text: &str) {
        if let Some(first) = text.chars().next().filter(|_| !text.ends_with('\n')) {
            self.make_room_above(first);
        }
        self.area.insert_str(text);
    }

    /// Ends a note at the top without adding a line, since the line after it was opened before. Returns false if there is no such note.
    pub fn end_note_above(&mut self) -> bool {
        let (row, opened) = self.top;
        let end = self
            .area
            .lines()
            .get(row)
            .map_or(0, |line| line.chars().count());
        let ends = opened && self.cursor() == (row, end);
        if ends {
            self.go_to(row + 1, 0);
            self.top = (row + 1, false);
        }
        ends
    }

    /// Handles the editor's keys: those of the text area, and the ones that users of other editors expect.
    pub(super) fn key(&mut self, key: KeyEvent) -> Edited {
        let ctrl = key.modifiers == KeyModifiers::CONTROL;
        if let Some(pattern) = &mut self.search {
            match key.code {
                KeyCode::Char(c) if !ctrl => pattern.push(c),
                KeyCode::Backspace => {
                    pattern.pop();
                }
                KeyCode::Char('g') => {
                    self.area.search_forward(false);
                    return Edited::Moved;
                }
                KeyCode::Enter | KeyCode::Esc => {
                    self.search = None;
                    return Edited::Moved;
                }
                _ => return Edited::Moved,
            }
            // A pattern that is being typed may not be valid yet: then the last valid one stays.
            if self.area.set_search_pattern(pattern.as_str()).is_ok() {
                self.area.search_forward(true);
            }
            return Edited::Moved;
        }
        if let KeyCode::Char(c) = key.code
            && !key
                .modifiers
                .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
        {
            self.make_room_above(c);
        }
        match (key.code, ctrl) {
            (KeyCode::Esc, _) => Edited::Done,
            (KeyCode::Enter, _) if self.end_note_above() => Edited::Moved,
            (KeyCode::Char('s'), true) => Edited::Save,
            // The second key of each is the text area's own.
            (KeyCode::Char('z' | 'u'), true) => changed(self.step(TextArea::undo)),
            (KeyCode::Char('y' | 'r'), true) => changed(self.step(TextArea::redo)),
            (KeyCode::Char('f'), true) => {
                self.search = Some(String::new());
                Edited::Moved
            }
            (KeyCode::Char('g'), true) => {
                self.area.search_forward(false);
                Edited::Moved
            }
            (KeyCode::Char('a'), true) => self.select_all(),
            (KeyCode::Char('c' | 'x'), true) if self.has_selection() => {
                self.area.input(Input::from(key));
                Edited::Copied(self.area.yank_text())
            }
            // The text area's own key for this is the one of redo.
            (KeyCode::Char('v'), true) => {
                let text = self.area.yank_text();
                self.paste(&text);
                changed(!text.is_empty())
            }
            (KeyCode::Home, true) => self.move_cursor([CursorMove::Top, CursorMove::Head]),
            (KeyCode::End, true) => self.move_cursor([CursorMove::Bottom, CursorMove::End]),
            _ => changed(self.area.input(Input::from(key))),
        }
    }

    /// Moves the cursor by so many rows, as the arrow keys do: the view follows it.
    pub(in crate::app) fn scroll(&mut self, rows: i32) {
        let to = if rows < 0 {
            CursorMove::Up
        } else {
            CursorMove::Down
        };
        for _ in 0..rows.unsigned_abs() {
            self.area.move_cursor(to);
        }
    }

    fn move_cursor(&mut self, moves: [CursorMove; 2]) -> Edited {
        for to in moves {
            self.area.move_cursor(to);
        }
        Edited::Moved
    }

    /// Selects the whole text; that of the text area ends at the column 65,535 of a line.
    fn select_all(&mut self) -> Edited {
        self.area.cancel_selection();
        self.move_cursor([CursorMove::Top, CursorMove::Head]);
        self.area.start_selection();
        self.move_cursor([CursorMove::Bottom, CursorMove::End])
    }

    fn has_selection(&self) -> bool {
        let range = self.area.selection_range();
        range.is_some_and(|(from, to)| from != to)
    }

    /// Goes a step back or forward. Where the text was replaced, the step without any text is passed over.
    fn step(&mut self, step: fn(&mut TextArea<'static>) -> bool) -> bool {
        let has_changed = step(&mut self.area);
        if has_changed && self.replaced && self.area.is_empty() {
            step(&mut self.area);
        }
        has_changed
    }

    fn go_to(&mut self, row: usize, column: usize) {
        let bounded = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
        let to = CursorMove::Jump(bounded(row), bounded(column));
        self.area.move_cursor(to);
    }

    fn cursor(&self) -> (usize, usize) {
        let cursor = self.area.cursor();
        (cursor.0, cursor.1)
    }

    /// Replaces the text, as one undo step, and keeps the cursor on its line.
    pub fn replace(&mut self, text: &str) {
        let (row, column) = self.cursor();
        let line = self.area.lines().get(row).cloned().unwrap_or_default();
        let alike = text
            .split('\n')
            .enumerate()
            .filter(|(_, one)| **one == line);
        let row = alike
            .map(|(at, _)| at)
            .min_by_key(|at| at.abs_diff(row))
            .unwrap_or(row);
        let yank = self.area.yank_text();
        self.select_all();
        self.area.cut();
        self.area.insert_str(text);
        self.replaced = true;
        self.area.set_yank_text(yank);
        self.go_to(row, column);
        text.clone_into(&mut self.base);
    }
}

/// The result of a key in an editor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::app) enum Edited {
    /// The editor is to be left.
    Done,
    /// The text is to be saved.
    Save,
    /// The text has changed.
    Changed,
    /// This part of the text was copied, and may have been cut out.
    Copied(String),
    /// Only the cursor, the selection or the search has.
    Moved,
}

fn changed(yes: bool) -> Edited {
    if yes { Edited::Changed } else { Edited::Moved }
}

impl fmt::Debug for Editor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Editor")
            .field("cursor", &self.area.cursor())
            .finish_non_exhaustive()
    }
}

/// The handoff panel.
#[derive(Clone, Debug, Default)]
pub struct HandoffPanel {
    /// The message as generated from what is known.
    pub generated: Handoff,
    /// The message in the human's own words, once edited.
    pub edited: Option<Handoff>,
    /// The changes by which the human made it their own.
    pub(in crate::app) edits: Edits,
    /// The editor, while the human edits in place.
    pub editor: Option<Editor>,
    /// The position of the message's reader.
    pub reading: Reading,
    /// The check of the message for missing facts of the session.
    pub check: Check,
    /// True if the missing facts are listed in place of the message.
    pub lists_missing: bool,
}

impl HandoffPanel {
    /// Creates a panel of a message that contains only its marker.
    pub(super) fn empty(marker: Marker) -> Self {
        Self {
            generated: Handoff {
                text: marker.to_string(),
                marker,
                ..Handoff::default()
            },
            reading: Reading::folded(),
            ..Self::default()
        }
    }

    /// Shows the message, and not the list of what it misses.
    pub(in crate::app) const fn show_message(&mut self) {
        self.lists_missing = false;
    }

    /// Has the editor take in a key, if one is open.
    pub(in crate::app) fn edit_key(&mut self, key: KeyEvent) -> Option<Edited> {
        self.editor.as_mut().map(|editor| editor.key(key))
    }

    /// Scrolls what is read by so many rows, or moves the cursor of the editor.
    pub(in crate::app) fn scroll(&mut self, rows: i32) {
        match &mut self.editor {
            Some(editor) => editor.scroll(rows),
            None => self.reading.scroll(rows),
        }
    }

    /// Pastes a text into the editor, if one is open.
    pub(in crate::app) fn paste(&mut self, text: &str) {
        if let Some(editor) = &mut self.editor {
            editor.paste(text);
        }
    }

    /// Reports whether a person edits the message, lists its missing facts, or has folded or unfolded a part of it.
    pub fn is_worked_in(&self) -> bool {
        self.editor.is_some() || self.lists_missing || !self.reading.toggled.is_empty()
    }

    /// Returns the changes by which the human has made the message their own, with those in an open editor.
    pub(in crate::app) fn edits_so_far(&self) -> Edits {
        let mut edits = self.edits.clone();
        if let Some(editor) = &self.editor {
            edits.take_in(&editor.base, &editor.text());
        }
        edits
    }

    /// Returns the message as it would be sent now.
    pub fn current(&self) -> &Handoff {
        self.edited.as_ref().unwrap_or(&self.generated)
    }
}
