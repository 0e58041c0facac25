//! The faults of settings: the message, the place and the advice.
//!
//! ```text
//! error: expected a whole number from 1 to 99, found the text "70"
//!   --> /home/ada/.config/pitstop/config.toml:3:8
//!   |
//! 3 | warn = "70"
//!   |        ^^^^
//!   = help: leave the quotation marks out
//! ```
//!
//! Excerpts may come from a cloned repository, so no part of them reaches a terminal or a log without [`one_line`].

use std::{fmt, fmt::Write as _, ops::Range};

use unicode_width::UnicodeWidthChar;

use pitstop_base::{clean::one_line, format::count};

/// The characters of a line that an excerpt shows; longer lines are cut around the fault.
const EXCERPT_CHARS: usize = 100;

/// The characters of a found text that a message quotes.
const QUOTE_CHARS: usize = 60;

/// The number of faults that are kept from one file; more are only counted: no user reads on, and a hostile file could hold
/// a hundred thousand.
pub const MAX_FAULTS: usize = 50;

/// A place in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, or the flag, as the user would name it.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The text of the line, made printable and cut to a readable length.
    excerpt: String,
    /// The range that the caret underlines, in cells of the excerpt.
    caret: Range<usize>,
}

/// A setting that is wrong, or was ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The place of the fault; `None` when it is the whole file. Boxed, so that results stay small.
    pub place: Option<Box<Place>>,
    /// The message, with the expected and the found value: lower case, no full stop.
    pub message: String,
    /// The advice on what to do.
    pub help: Option<String>,
}

impl Fault {
    /// Creates a fault that has no place in a text.
    pub fn general(message: impl Into<String>, help: Option<String>) -> Self {
        Self {
            place: None,
            message: message.into(),
            help,
        }
    }

    /// Returns the fault in one line: `FILE:LINE:COLUMN: message (help)`.
    pub fn line(&self) -> String {
        let mut line = String::new();
        if let Some(place) = &self.place {
            line = format!(
                "{}:{}:{}: ",
                one_line(&place.file),
                place.line,
                place.column
            );
        }
        line.push_str(&one_line(&self.message));
        if let Some(help) = &self.help {
            // Writing to a string cannot fail.
            let _ = write!(line, " ({})", one_line(help));
        }
        line
    }

    /// Returns the fault over several lines with the excerpt and its caret, ending with a line end.
    pub fn render(&self, severity: Severity, style: Style) -> String {
        let mut out = String::new();
        let (word, colour) = match severity {
            Severity::Error => ("error", RED),
            Severity::Warning => ("warning", YELLOW),
        };
        let message = one_line(&self.message);
        let word = style.paint(colour, word);
        let _ = writeln!(out, "{word}: {}", style.paint(BOLD, &message));
        let mut margin = 1;
        if let Some(place) = &self.place {
            let number = place.line.to_string();
            margin = number.len();
            let bar = style.paint(BLUE, "|");
            let _ = writeln!(
                out,
                "{:margin$}{} {}:{}:{}",
                "",
                style.paint(BLUE, "-->"),
                one_line(&place.file),
                place.line,
                place.column,
            );
            let _ = writeln!(out, "{:margin$} {bar}", "");
            let number = style.paint(BLUE, &number);
            let excerpt = format!("{number} {bar} {}", place.excerpt);
            let _ = writeln!(out, "{}", excerpt.trim_end());
            let caret = "^".repeat(place.caret.len().max(1));
            let indent = place.caret.start;
            let caret = style.paint(colour, &caret);
            let _ = writeln!(out, "{:margin$} {bar} {:indent$}{caret}", "", "");
        }
        if let Some(help) = &self.help {
            let sign = style.paint(BLUE, "=");
            let _ = writeln!(out, "{:margin$} {sign} help: {}", "", one_line(help));
        }
        out
    }
}

/// The severity of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The fault keeps Pitstop from starting.
    Error,
    /// The setting was ignored.
    Warning,
}

/// The use of colours where a fault is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Uses no escape sequences at all.
    #[default]
    Plain,
    /// Uses the sixteen basic colours.
    Colour,
}

const RED: &str = "1;31";
const YELLOW: &str = "1;33";
const BLUE: &str = "1;34";
const BOLD: &str = "1";

impl Style {
    fn paint(self, colour: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Colour => format!("\u{1b}[{colour}m{text}\u{1b}[0m"),
        }
    }
}

/// All that is wrong with a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigErrors {
    /// The faults, file by file in the order in which they occur there.
    pub faults: Vec<Fault>,
    /// The number of further faults that were only counted.
    pub more: usize,
}

impl ConfigErrors {
    /// Returns all faults with their excerpts, and their number.
    pub fn render(&self, style: Style) -> String {
        let mut out = String::new();
        for fault in &self.faults {
            out.push_str(&fault.render(Severity::Error, style));
            out.push('\n');
        }
        let shown = self.faults.len();
        out.push_str(&count(shown + self.more, "error"));
        out.push_str(" in the configuration");
        if self.more > 0 {
            let _ = write!(out, ", {shown} of them shown");
        }
        out.push('\n');
        out
    }
}

impl From<Fault> for ConfigErrors {
    fn from(fault: Fault) -> Self {
        Self {
            faults: vec![fault],
            more: 0,
        }
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration cannot be used")?;
        for fault in &self.faults {
            write!(f, "\n{}", fault.line())?;
        }
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// A text with its line starts, so that a span becomes a place in logarithmic time.
#[derive(Clone, Debug)]
pub(super) struct SourceText {
    name: String,
    text: String,
    line_starts: Vec<usize>,
}

impl SourceText {
    pub(super) fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let ends = text.match_indices('\n').map(|(end, _)| end + 1);
        Self {
            name: name.into(),
            line_starts: std::iter::once(0).chain(ends).collect(),
            text,
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the place of a span of bytes; a span that ends on a later line is cut at its line's end.
    pub(super) fn place(&self, span: &Range<usize>) -> Place {
        let start = self.text.floor_char_boundary(span.start);
        let end = self.text.floor_char_boundary(span.end).max(start);
        let index = self.line_starts.partition_point(|at| *at <= start) - 1;
        let mut line_start = self.line_starts[index];
        let line_end = self.text[line_start..]
            .find('\n')
            .map_or(self.text.len(), |length| line_start + length);
        if index == 0 && self.text.starts_with('\u{feff}') {
            line_start = '\u{feff}'.len_utf8();
        }
        let line = self.text[line_start..line_end].trim_end_matches('\r');
        let from = start.clamp(line_start, line_start + line.len()) - line_start;
        let to = end.clamp(line_start + from, line_start + line.len()) - line_start;
        let column = line[..from].chars().count();
        let length = line[from..to].chars().count();
        let (excerpt, caret) = excerpt(line, column, length);
        Place {
            file: self.name.clone(),
            line: index + 1,
            column: column + 1,
            excerpt,
            caret,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn line_count(&self) -> usize {
        self.line_starts.len()
    }

    /// Reports whether a line, counted from 0, opens a table.
    pub(super) fn is_header(&self, line: usize) -> bool {
        let start = self.line_starts.get(line).copied();
        let opens = |start: usize| {
            self.text[start..]
                .trim_start_matches([' ', '\t'])
                .starts_with('[')
        };
        start.is_some_and(opens)
    }

    /// Returns the number of the line that holds a byte, counted from 0.
    pub(super) fn line_index(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at) - 1
    }
}

/// Cuts a line around a fault and returns the cells of it that the caret underlines.
fn excerpt(line: &str, column: usize, length: usize) -> (String, Range<usize>) {
    // Keep a third of the width for the text before the fault.
    let skip = match column.checked_sub(EXCERPT_CHARS / 3) {
        Some(skip) if line.chars().nth(EXCERPT_CHARS).is_some() => skip,
        _ => 0,
    };
    let mut out = String::new();
    let mut cells = 0;
    let mut caret = 0..0;
    let mut put = |text: &str, cells: &mut usize| {
        out.push_str(text);
        *cells += text.chars().map(|c| c.width().unwrap_or(0)).sum::<usize>();
    };
    if skip > 0 {
        put("…", &mut cells);
    }
    let mut shown = 0;
    for (index, c) in line.chars().enumerate().skip(skip).take(EXCERPT_CHARS) {
        if index == column {
            caret.start = cells;
        }
        let mut buffer = [0; 4];
        match c {
            '\t' => put(" ", &mut cells),
            c => put(&one_line(c.encode_utf8(&mut buffer)), &mut cells),
        }
        if index >= column && index < column + length {
            caret.end = cells;
        }
        shown = index + 1;
    }
    if shown <= column {
        caret.start = cells;
    }
    if line.chars().nth(skip + EXCERPT_CHARS).is_some() {
        put("…", &mut cells);
    }
    caret.end = caret.end.max(caret.start);
    (out, caret)
}

/// Returns a found text as a message quotes it: printable and of a readable length.
pub(super) fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(QUOTE_CHARS).collect();
    let dots = if cut.len() < text.len() { "…" } else { "" };
    format!("{}{dots}", one_line(&cut))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str, span: Range<usize>) -> Place {
        SourceText::new("c.toml", text).place(&span)
    }

    #[test]
    fn columns_count_characters_and_carets_count_cells() {
        let text = "a = 1\n日本 = \"ü\"\n";
        let at = text.find('"').expect("a quote");
        let place = place(text, at..at + 4);
        assert_eq!((place.line, place.column), (2, 6));
        assert_eq!(place.caret, 7..10);
    }

    #[test]
    fn a_byte_order_mark_and_carriage_returns_do_not_count() {
        let place = place("\u{feff}ab = 1\r\n", 3..5);
        assert_eq!((place.line, place.column), (1, 1));
        assert_eq!(place.excerpt, "ab = 1");
        assert_eq!(place.caret, 0..2);
    }

    #[test]
    fn a_span_beyond_the_text_stands_at_its_end() {
        let place = place("a", 7..9);
        assert_eq!((place.line, place.column), (1, 2));
        assert_eq!(place.caret, 1..1);
    }

    #[test]
    fn a_long_line_is_cut_around_the_fault() {
        let text = format!("{}X{}", "a".repeat(500), "b".repeat(500));
        let place = place(&text, 500..501);
        assert_eq!(place.column, 501);
        assert!(place.excerpt.starts_with('…') && place.excerpt.ends_with('…'));
        assert_eq!(place.excerpt.chars().nth(place.caret.start), Some('X'));
        assert_eq!(place.excerpt.chars().count(), EXCERPT_CHARS + 2);
    }

    #[test]
    fn a_caret_stands_below_what_it_means_even_after_an_escape() {
        let text = "\t\u{1b}key = 1";
        let place = place(text, 2..5);
        assert_eq!(place.excerpt, " \\u{1b}key = 1");
        assert_eq!(place.caret, 7..10);
    }

    #[test]
    fn colours_are_used_only_when_allowed() {
        let fault = Fault {
            place: Some(Box::new(place("a = 1", 0..1))),
            message: "expected b, found `a`".to_owned(),
            help: Some("write b".to_owned()),
        };
        let plain = fault.render(Severity::Error, Style::Plain);
        assert!(!plain.contains('\u{1b}'));
        assert_eq!(
            plain,
            "error: expected b, found `a`\n --> c.toml:1:1\n  |\n1 | a = 1\n  | ^\n  = help: write b\n"
        );
        let colour = fault.render(Severity::Warning, Style::Colour);
        assert!(colour.starts_with("\u{1b}[1;33mwarning\u{1b}[0m: "));
        assert_eq!(fault.line(), "c.toml:1:1: expected b, found `a` (write b)");
    }

    #[test]
    fn faults_that_were_only_counted_are_reported() {
        let errors = ConfigErrors {
            faults: vec![Fault::general("one", None)],
            more: 2,
        };
        let text = errors.render(Style::Plain);
        assert_eq!(
            text,
            "error: one\n\n3 errors in the configuration, 1 of them shown\n"
        );
        assert!(errors.to_string().ends_with("and 2 more"));
    }
}
