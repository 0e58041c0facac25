//! Runs of plain text, written into a row at once.
//!
//! A child prints mostly letters, and the parser hands them to the engine one by one, each with its own check of
//! the width, the mode and the wrap. Here a run is written as the engine would write it, but with one check for all.
//! The engine itself handles the other cases: a wrap, half of a wide character that is overwritten, marks that join.

use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Column;
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::Flags;
use vte::ansi::{CharsetIndex, Handler, StandardCharset};

use super::Engine;

/// The shortest run that is worth writing at once, in bytes.
pub(crate) const RUN: usize = 4;

const WIDE: Flags = Flags::WIDE_CHAR.union(Flags::WIDE_CHAR_SPACER);

impl Engine {
    /// Writes the text at the start of these bytes except its last character, which the parser must see because the
    /// child may ask for its repetition; returns the number of bytes written. The parser must be between sequences.
    pub(in crate::screen) fn write(&mut self, bytes: &[u8]) -> usize {
        let end = bytes.iter().position(|byte| !is_text(*byte));
        let run = &bytes[..end.unwrap_or(bytes.len())];
        if run.len() < RUN || !self.takes_text() {
            return 0;
        }
        let text = match std::str::from_utf8(run) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&run[..error.valid_up_to()]).unwrap_or_default(),
        };
        let Some((last, _)) = text.char_indices().next_back() else {
            return 0;
        };
        let mut rest = text[..last].chars();
        while !rest.as_str().is_empty() {
            self.write_in_row(&mut rest);
            // The character that it stopped at: a wrap comes before it, or it is not plain.
            if let Some(c) = rest.next() {
                self.input(c);
            }
        }
        last
    }

    /// Reports whether each character is simply written as it comes: no insert mode and no other character set.
    fn takes_text(&self) -> bool {
        let charsets = &self.term.grid().cursor.charsets;
        let plain = |index| charsets[index] == StandardCharset::Ascii;
        !self.term.mode().contains(TermMode::INSERT)
            && plain(CharsetIndex::G0)
            && plain(CharsetIndex::G1)
            && plain(CharsetIndex::G2)
            && plain(CharsetIndex::G3)
    }

    /// Writes plain characters up to the end of the cursor's row.
    fn write_in_row(&mut self, rest: &mut std::str::Chars<'_>) {
        let grid = self.term.grid_mut();
        if grid.cursor.input_needs_wrap {
            return;
        }
        let columns = grid.columns();
        let (point, template) = (grid.cursor.point, grid.cursor.template.clone());
        let row = &mut grid[point.line];
        let mut column = point.column.0;
        loop {
            let room = &rest.as_str().as_bytes()[..rest.as_str().len().min(columns - column)];
            let ascii = room.iter().take_while(|byte| byte.is_ascii()).count();
            let cells = &mut row[Column(column)..Column(column + ascii)];
            let mut done = 0;
            for (cell, byte) in cells.iter_mut().zip(room) {
                if cell.flags.intersects(WIDE) {
                    break;
                }
                cell.clone_from(&template);
                cell.c = char::from(*byte);
                done += 1;
            }
            column += done;
            *rest = rest.as_str()[done..].chars();
            let Some(c) = rest.clone().next() else { break };
            let width = plain_width(c);
            let free = |at: usize| !row[Column(at)].flags.intersects(WIDE);
            if width == 0 || column + width > columns || !(column..column + width).all(free) {
                break;
            }
            rest.next();
            let cell = &mut row[Column(column)];
            cell.clone_from(&template);
            cell.c = c;
            if width == 2 {
                cell.flags.insert(Flags::WIDE_CHAR);
                let spacer = &mut row[Column(column + 1)];
                spacer.clone_from(&template);
                spacer.c = ' ';
                spacer.flags.insert(Flags::WIDE_CHAR_SPACER);
            }
            column += width;
        }
        grid.cursor.input_needs_wrap = column == columns && columns > 0;
        grid.cursor.point.column = Column(column.min(columns.saturating_sub(1)));
    }
}

/// Reports whether a byte is part of a text and not a control.
pub(crate) const fn is_text(byte: u8) -> bool {
    byte >= b' ' && byte != 0x7f
}

/// Returns the cells of a character that neither joins the one before it nor waits for the next; 0 for one that may.
/// The blocks are those of letters in everyday use whose widths do not differ within the block.
const fn plain_width(c: char) -> usize {
    match c {
        ' '..='~'
        | '\u{a1}'..='\u{ac}'
        | '\u{ae}'..='\u{17f}'
        | '\u{400}'..='\u{482}'
        | '\u{48a}'..='\u{52f}'
        | '\u{2500}'..='\u{259f}' => 1,
        '\u{3041}'..='\u{3096}'
        | '\u{30a1}'..='\u{30fa}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthChar;

    use super::*;

    #[test]
    fn plain_characters_have_the_width_that_the_engine_gives_them() {
        for c in ('\0'..=char::MAX).filter(|c| plain_width(*c) > 0) {
            assert_eq!(c.width(), Some(plain_width(c)), "{c:?}");
        }
    }
}
