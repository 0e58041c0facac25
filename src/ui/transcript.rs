//! A session as it is read back: its prompts, words, calls and outputs in rows of styled text, written as a program would print them,
//! so that copy mode reads them as it reads the pane.

use crossterm::{
    queue,
    style::{Attribute, ContentStyle, Print, ResetColor, SetAttribute, SetStyle},
};
use ratatui::{backend::IntoCrossterm as _, style::Style, text::Line};

use pitstop_base::clock::Zone;
use pitstop_transcript::talk::{Said, Talk};

use super::{
    frame,
    markdown::{self, Marks},
    text::{self, Lead},
    theme::Theme,
};

/// The most rows that are written: the newest of them.
const ROWS: usize = 20_000;

/// The rows of a talk, as bytes for an emulator of this width, and their number.
pub fn write_talk(talk: &Talk, width: u16, zone: Zone, theme: &Theme) -> (Vec<u8>, usize) {
    let mut rows: Vec<Line<'static>> = Vec::new();
    if talk.is_cut {
        rows.push(frame::row(
            "… the beginning is left out: it is too long",
            theme.dim,
        ));
    }
    for part in &talk.parts {
        rows.extend(rows_of(part, width, zone, theme));
    }
    if rows.is_empty() {
        rows.push(frame::row(
            "nothing has been said in this session yet",
            theme.dim,
        ));
    }
    let over = rows.len().saturating_sub(ROWS);
    rows.drain(..over);
    let mut bytes = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        if number > 0 {
            bytes.extend(b"\r\n");
        }
        write_row(&mut bytes, row);
    }
    (bytes, rows.len())
}

fn rows_of(part: &Said, width: u16, zone: Zone, theme: &Theme) -> Vec<Line<'static>> {
    let cells = usize::from(width);
    let document = |text: &str| -> Vec<Line<'static>> {
        markdown::rows(text, width, Marks::Rendered, theme)
            .map(|(_, row)| row)
            .collect()
    };
    match part {
        Said::Prompt { text, at } => {
            let time = at.map(|at| {
                at.with_timezone(&zone(at))
                    .format(" · %a %H:%M")
                    .to_string()
            });
            let head = format!("▌ you{}", time.unwrap_or_default());
            let mut rows = vec![Line::default(), frame::row(head, theme.heading)];
            rows.extend(text.lines().flat_map(|line| {
                text::wrapped(text::safe_line(line).into_owned(), theme.heading, cells)
            }));
            rows.push(Line::default());
            rows
        }
        Said::Given(text) => {
            let mut rows = vec![frame::row("▌ given", theme.dim)];
            rows.extend(document(text));
            rows.push(Line::default());
            rows
        }
        Said::Words(text) => {
            let mut rows = document(text);
            rows.push(Line::default());
            rows
        }
        Said::Call { tool, with } => {
            lines_with(&format!("● {tool} "), with, theme.accent, theme.code, cells)
        }
        Said::Output { text, failed } => {
            let style = if *failed { theme.bad } else { theme.dim };
            let mut rows = lines_with("  ", text, style, style, cells);
            rows.push(Line::default());
            rows
        }
        Said::Compacted => vec![
            frame::row("── the conversation was compacted here ──", theme.dim),
            Line::default(),
        ],
    }
}

/// Returns the rows of lines that stand behind a name, each further one below the first.
fn lines_with(
    name: &str,
    lines: &str,
    named: Style,
    style: Style,
    cells: usize,
) -> Vec<Line<'static>> {
    let name = text::safe(name).into_owned();
    let indent = " ".repeat(text::width(&name).min(4));
    let mut rows = Vec::new();
    for (number, line) in lines.lines().enumerate() {
        let first = if number == 0 {
            name.clone()
        } else {
            indent.clone()
        };
        let lead = Lead {
            first: vec![(first, named)],
            rest: vec![(indent.clone(), style)],
        };
        rows.extend(text::wrap(
            &[(text::safe_line(line).into_owned(), style)],
            &lead,
            cells,
        ));
    }
    if rows.is_empty() {
        rows.push(frame::row(name, named));
    }
    rows
}

/// Writes a row with its styles. No control character reaches the emulator: what was said is not what we wrote.
fn write_row(bytes: &mut Vec<u8>, row: &Line<'static>) {
    for span in &row.spans {
        let style: ContentStyle = row.style.patch(span.style).into_crossterm();
        let said: String = span.content.chars().filter(|c| !c.is_control()).collect();
        // A vector takes everything.
        let _ = queue!(
            bytes,
            SetStyle(style),
            Print(said),
            ResetColor,
            SetAttribute(Attribute::Reset)
        );
    }
}

#[cfg(test)]
mod tests {
    use chrono::{Offset as _, Utc};

    use super::*;
    use pitstop_terminal::{PaneSize, screen::Screen};

    #[test]
    fn a_talk_is_drawn_by_an_emulator_and_none_of_its_bytes_is_a_sequence_of_its_own() {
        let part = |text: &str| Said::Output {
            text: text.to_owned(),
            failed: false,
        };
        let talk = Talk {
            parts: vec![
                Said::Prompt {
                    text: "Port the **parser**".to_owned(),
                    at: None,
                },
                Said::Words("I read `src/parser.rs` first.\n\n- one\n- two".to_owned()),
                Said::Call {
                    tool: "Bash".to_owned(),
                    with: "cargo test\necho \u{1b}]0;owned\u{7}".to_owned(),
                },
                part("\u{1b}[2Jgone \u{9b}31m"),
                Said::Compacted,
            ],
            is_cut: true,
        };
        let (bytes, rows) = write_talk(&talk, 60, |_| Utc.fix(), &Theme::default());
        let mut screen = Screen::new(PaneSize::new(60, 40), rows);
        screen.feed_at_once(&bytes);
        let text = screen.text();
        for said in [
            "left out",
            "▌ you",
            "Port the **parser**",
            "src/parser.rs",
            "• one",
            "● Bash cargo test",
            "gone",
            "compacted",
        ] {
            assert!(text.contains(said), "{said} in\n{text}");
        }
        assert_eq!(screen.title(), "");
        assert!(screen.take_facts().is_empty());
        let (_, rows) = write_talk(&Talk::default(), 60, |_| Utc.fix(), &Theme::default());
        assert_eq!(rows, 1);
    }
}
