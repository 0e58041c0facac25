//! Draws in line, as Claude Code's classic renderer does: what was said scrolls away for good, and a
//! live part below it is erased and drawn again by relative moves.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
};

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The frames of the spinner in the live part.
const SPINNER: [char; 6] = ['·', '✢', '✳', '✶', '✻', '✽'];

/// The frames of the spinner in the title.
const TITLE_SPINNER: [char; 2] = ['⠂', '⠐'];

/// What the live part shows.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// What the agent is busy with, and for how many tenths of a second.
    pub busy: Option<(String, u64)>,
    /// What the user has typed.
    pub draft: String,
    /// The status line command's output, without escapes.
    pub status: Vec<String>,
    /// The last line: a hint or a warning.
    pub hint: String,
}

/// The renderer with what it has on the terminal.
#[derive(Debug)]
pub struct Canvas {
    columns: usize,
    rows: usize,
    /// Widths of the live lines now on the terminal, and the row of the caret among them.
    drawn: Vec<usize>,
    caret_row: usize,
    title: String,
}

impl Canvas {
    /// A canvas for a terminal of that size.
    pub fn new(columns: u16, rows: u16) -> Self {
        let mut canvas = Self {
            columns: 80,
            rows: 24,
            drawn: Vec::new(),
            caret_row: 0,
            title: String::new(),
        };
        canvas.resize(columns, rows);
        canvas
    }

    /// Takes the new size; the next frame is drawn for it.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        // A PTY without a size says zero.
        if columns > 0 && rows > 0 {
            (self.columns, self.rows) = (columns.into(), rows.into());
        }
    }

    /// The width of the terminal, cells.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Writes one frame: `above` scrolls away for good, `live` stays.
    pub fn frame(&mut self, above: &[String], live: &Live) -> io::Result<()> {
        let mut out = String::new();
        self.set_title(&mut out, live);
        out.push_str("\x1b[?2026h");
        self.erase(&mut out);
        for line in above {
            let _ = write!(out, "{line}\x1b[0m\r\n"); // writing to a String cannot fail
        }
        self.draw(&mut out, live);
        out.push_str("\x1b[?2026l");
        write_all(&out)
    }

    /// Takes the live part away and leaves the cursor where it was.
    pub fn clear(&mut self) -> io::Result<()> {
        let mut out = String::new();
        self.erase(&mut out);
        write_all(&out)
    }

    fn set_title(&mut self, out: &mut String, live: &Live) {
        let mark = match &live.busy {
            Some((_, tenths)) => TITLE_SPINNER[(tenths / 10) as usize % TITLE_SPINNER.len()],
            None => '✳',
        };
        let title = format!("{mark} pitstop demo");
        if title != self.title {
            let _ = write!(out, "\x1b]0;{title}\x07"); // writing to a String cannot fail
            self.title = title;
        }
    }

    /// Goes to the first live row and erases downwards, row by row.
    fn erase(&mut self, out: &mut String) {
        if self.drawn.is_empty() {
            return;
        }
        // Lines that a narrower terminal has wrapped take more rows now.
        let rows = |width: &usize| width.div_ceil(self.columns).max(1);
        let above: usize = self.drawn[..self.caret_row].iter().map(rows).sum();
        let all: usize = self.drawn.iter().map(rows).sum();
        out.push('\r');
        if above > 0 {
            let _ = write!(out, "\x1b[{above}A"); // writing to a String cannot fail
        }
        for row in 0..all {
            out.push_str(if row == 0 {
                "\x1b[2K"
            } else {
                "\x1b[1B\x1b[2K"
            });
        }
        if all > 1 {
            let _ = write!(out, "\x1b[{}A", all - 1); // writing to a String cannot fail
        }
        out.push_str("\x1b[G");
        self.drawn.clear();
    }

    fn draw(&mut self, out: &mut String, live: &Live) {
        let (mut lines, caret) = self.lines(live);
        // The live part must fit, else relative moves miss their rows.
        let surplus = lines
            .len()
            .saturating_sub(self.rows.saturating_sub(1).max(1));
        lines.drain(..surplus);
        self.caret_row = caret.0.saturating_sub(surplus).min(lines.len() - 1);
        for (row, line) in lines.iter().enumerate() {
            if row > 0 {
                out.push_str("\r\n");
            }
            let _ = write!(out, "{line}\x1b[0m"); // writing to a String cannot fail
        }
        let up = lines.len() - 1 - self.caret_row;
        if up > 0 {
            let _ = write!(out, "\x1b[{up}A"); // writing to a String cannot fail
        }
        out.push('\r');
        if caret.1 > 0 {
            let _ = write!(out, "\x1b[{}C", caret.1); // writing to a String cannot fail
        }
        self.drawn = lines.iter().map(|line| plain(line).width()).collect();
    }

    /// The live lines and the caret's row and column among them.
    fn lines(&self, live: &Live) -> (Vec<String>, (usize, usize)) {
        // The last column stays empty: a full row would wrap, and the moves would miss.
        let room = self.columns.saturating_sub(1).max(1);
        let dim = |text: &str| format!("\x1b[2m{}", cut(text, room));
        let mut lines = Vec::new();
        if let Some((what, tenths)) = &live.busy {
            let mark = SPINNER[*tenths as usize % SPINNER.len()];
            let text = format!("{mark} {what}… ({}s · esc to interrupt)", tenths / 10);
            lines.extend([String::new(), format!("\x1b[38;5;174m{}", cut(&text, room))]);
        }
        lines.push(String::new());
        lines.push(dim(&"─".repeat(room)));
        let draft = shown_draft(&live.draft, room.saturating_sub(3));
        let column = 2 + draft.last().map_or(0, |line| line.width());
        for (row, line) in draft.iter().enumerate() {
            // The mark of the client's prompt has a no-break space behind it.
            let mark = if row == 0 { "❯\u{a0}" } else { "  " };
            let caret = if row + 1 == draft.len() {
                "\x1b[7m \x1b[27m"
            } else {
                ""
            };
            let text = cut(&format!("{mark}{line}"), room.saturating_sub(1));
            lines.push(format!("{text}{caret}"));
        }
        let caret = (lines.len() - 1, column.min(room.saturating_sub(1)));
        lines.push(dim(&"─".repeat(room)));
        lines.extend(
            live.status
                .iter()
                .map(|line| format!("  {}", cut(line, room.saturating_sub(2)))),
        );
        lines.push(dim(&format!("  {}", live.hint)));
        (lines, caret)
    }
}

/// The rows of a draft, each of at most `width` cells.
fn shown_draft(draft: &str, width: usize) -> Vec<String> {
    wrap(&draft.replace('\t', "    "), width)
}

/// Cuts plain text to a width in cells.
fn cut(text: &str, width: usize) -> String {
    let mut used = 0;
    text.chars()
        .filter(|c| !c.is_control())
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= width
        })
        .collect()
}

/// Breaks plain text into lines of at most `width` cells, at blanks where there are some.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        for word in paragraph.split_inclusive(' ') {
            if !line.is_empty() && line.width() + word.trim_end().width() > width {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
            }
            for c in word.chars().filter(|c| !c.is_control()) {
                if line.width() + c.width().unwrap_or(0) > width {
                    lines.push(std::mem::take(&mut line));
                }
                line.push(c);
            }
        }
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// Text without CSI and OSC sequences and other control characters.
pub fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => match chars.next() {
                Some('[') => drop(chars.by_ref().find(|c| ('@'..='~').contains(c))),
                Some(']') => drop(chars.by_ref().find(|c| matches!(c, '\x07' | '\\'))),
                _ => {}
            },
            c if c.is_control() => {}
            c => plain.push(c),
        }
    }
    plain
}

/// Writes to the terminal in one piece.
pub fn write_all(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_keeps_to_the_width_and_loses_no_word() {
        let text = "one two  three\nlooooooooong 日本語";
        let lines = wrap(text, 6);
        assert!(lines.iter().all(|line| line.width() <= 6), "{lines:?}");
        let joined: String = lines.concat();
        let letters = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(letters(&joined), letters(text));
    }

    #[test]
    fn plain_text_has_no_sequences() {
        assert_eq!(plain("\x1b[1;31mred\x1b]0;t\x07\x08 x"), "red x");
    }

    #[test]
    fn the_live_part_fits_any_terminal() {
        let live = Live {
            busy: Some(("Working".into(), 12)),
            draft: "a\nb\nc".into(),
            status: vec!["s".repeat(300)],
            hint: "h".repeat(300),
        };
        for (columns, rows) in [(1, 1), (2, 3), (80, 24), (500, 200)] {
            let mut canvas = Canvas::new(columns, rows);
            let mut out = String::new();
            canvas.draw(&mut out, &live);
            assert!(canvas.drawn.len() <= usize::from(rows).saturating_sub(1).max(1));
            assert!(
                canvas
                    .drawn
                    .iter()
                    .all(|width| *width <= usize::from(columns).max(3))
            );
        }
    }
}
