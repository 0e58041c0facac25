//! Draws in line, as Claude Code's classic renderer does: what was said scrolls away for good, and a live part below it is
//! erased and drawn again by relative moves.

use std::io::{self, Write as _};

use rustix::termios::tcgetwinsize;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use pitstop_base::clean::without_escapes;

/// The renderer with what it has on the terminal.
#[derive(Debug, Default)]
pub struct Canvas {
    /// The width of the terminal, in cells.
    pub columns: usize,
    rows: usize,
    /// The widths of the live lines now on the terminal, in cells, and the row of the caret among them.
    drawn: Vec<usize>,
    caret_row: usize,
    title: String,
}

impl Canvas {
    /// Takes the terminal's size; the next frame is drawn for it.
    pub fn resize(&mut self) {
        // A PTY without a size says zero.
        let size = tcgetwinsize(io::stdout()).ok();
        let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
        (self.columns, self.rows) =
            size.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()));
    }

    /// Writes one frame: `above` scrolls away for good, `live` stays, with the caret in this row and column of it.
    pub fn frame(
        &mut self,
        title: String,
        above: &[String],
        live: &[String],
        caret: (usize, usize),
    ) -> io::Result<()> {
        let mut out = String::new();
        if title != self.title {
            out += &format!("\x1b]0;{title}\x07");
            self.title = title;
        }
        out += &format!("\x1b[?2026h{}", self.erased());
        for line in above {
            out += &format!("{line}\x1b[0m\r\n");
        }
        // The live part must fit, else relative moves miss their rows.
        let surplus = live.len().saturating_sub(self.rows.max(2) - 1);
        let live = &live[surplus..];
        self.caret_row = caret.0.saturating_sub(surplus);
        let up = moved(live.len() - 1 - self.caret_row, 'A');
        let right = moved(caret.1, 'C');
        out += &format!(
            "{}\x1b[0m{up}\r{right}\x1b[?2026l",
            live.join("\x1b[0m\r\n")
        );
        self.drawn = live
            .iter()
            .map(|line| without_escapes(line).width())
            .collect();
        write_all(&out)
    }

    /// Returns the sequence that takes the live part away and leaves the cursor where it was.
    pub fn erased(&self) -> String {
        // Lines that a narrower terminal has wrapped take more rows now.
        let rows = |width: &usize| width.div_ceil(self.columns).max(1);
        let above = self.drawn.iter().take(self.caret_row).map(rows).sum();
        format!("\r{}\x1b[J", moved(above, 'A'))
    }
}

/// Returns the sequence of a move by so many cells.
fn moved(cells: usize, direction: char) -> String {
    if cells == 0 {
        return String::new();
    }
    format!("\x1b[{cells}{direction}")
}

/// Returns the first line of plain text that is broken into lines of at most `width` cells.
pub fn first_line(text: &str, width: usize) -> String {
    wrap(text, width).swap_remove(0)
}

/// Breaks plain text into lines of at most `width` cells, at blanks where there are some.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    for paragraph in text.replace('\t', "    ").split('\n') {
        let (mut line, mut used) = (String::new(), 0);
        for word in paragraph.split_inclusive(' ') {
            if !line.is_empty() && used + word.trim_end().width() > width {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
                used = 0;
            }
            for c in word.chars().filter(|c| !c.is_control()) {
                let wide = c.width().unwrap_or(0);
                if used + wide > width {
                    lines.push(std::mem::take(&mut line));
                    used = 0;
                }
                line.push(c);
                used += wide;
            }
        }
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// Writes to the terminal in one piece.
pub fn write_all(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
