//! What a terminal shows, cell by cell, as text that can be read and compared.
//!
//! ```text
//! 40x12 cursor 3,1
//!  ^|$ ls
//!  0|src  工具
//!   ~ 0-2 bold fg4, 5-8 wide
//!  1|$
//! ```
//!
//! The first line has the size and the cursor's column and row, with `hidden` behind if it is not shown. Lines of the
//! scrollback have a `^` and only their text. A row that has
//! anything has its number and its text, blanks at the end left out; below it stand the columns that do not look plain,
//! and how: `bold dim italic inverse hidden strike`, `underline double curly dotted dashed`, `fg bg ul` with a number of
//! the palette or `#rrggbb`, and `wide` for characters of two cells. Lines that begin with `#` are notes.

// Shared by the test and the example that makes the recordings, and each uses a part of it.
#![allow(dead_code)]

use std::fmt::{self, Write as _};

use pitstop_terminal::screen::{CellView, Colour, Screen, Scroll, Underline};
use unicode_segmentation::UnicodeSegmentation;

/// How many differences are reported.
const MOST: usize = 12;

/// A character on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The column of its first cell.
    pub column: usize,
    /// How many cells it takes, 1 or 2.
    pub width: usize,
    /// The character with its marks; a space if nothing is there.
    pub text: String,
    /// How it looks, in the words of the format; empty if plain.
    pub style: String,
}

/// A screen's cells and cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// The width in cells.
    pub columns: usize,
    /// The height in cells.
    pub rows: usize,
    /// The column and row of the cursor.
    pub cursor: (usize, usize),
    /// Whether the cursor is shown.
    pub cursor_shown: bool,
    /// The text of the lines above the screen, oldest first.
    pub above: Vec<String>,
    /// Each row's characters from left to right.
    pub lines: Vec<Vec<Unit>>,
    /// What is to be known about them.
    pub notes: Vec<String>,
}

impl Grid {
    /// What a screen of ours shows, without the lines above it.
    pub fn of(screen: &Screen) -> Self {
        let (size, cursor) = (screen.size(), screen.cursor());
        let mut lines = vec![Vec::new(); size.rows().into()];
        screen.for_each_cell(|cell| {
            lines[usize::from(cell.row)].push(Unit {
                column: cell.column.into(),
                width: cell.width.into(),
                text: cell.text.to_owned(),
                style: style(&cell),
            });
        });
        Self {
            columns: size.columns().into(),
            rows: size.rows().into(),
            cursor: (cursor.column.into(), cursor.row.into()),
            cursor_shown: cursor.visible,
            lines,
            ..Self::default()
        }
    }

    /// What a screen of ours shows, and what it keeps above.
    pub fn with_above(screen: &mut Screen) -> Self {
        let mut grid = Self::of(screen);
        for up in (1..=screen.history_len()).rev().step_by(grid.rows) {
            screen.scroll(Scroll::Lines(i32::try_from(up).expect("not so many lines")));
            let lines = Self::of(screen).lines;
            grid.above
                .extend(lines[..up.min(grid.rows)].iter().map(|line| text(line)));
            screen.scroll(Scroll::Bottom);
        }
        grid
    }

    /// Reads what [`fmt::Display`] wrote; the error says in which line it fails.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut grid = Self::default();
        let mut rows: Vec<(String, Vec<String>)> = Vec::new();
        let mut at = None;
        for (number, line) in text.lines().enumerate() {
            let fault = || format!("line {}: {line:?}", number + 1);
            if let Some(note) = line.strip_prefix("# ") {
                grid.notes.push(note.to_owned());
            } else if grid.columns == 0 {
                grid.head(line).ok_or_else(fault)?;
                rows = vec![(String::new(), vec![String::new(); grid.columns]); grid.rows];
            } else if let Some(text) = line.strip_prefix(" ^|") {
                grid.above.push(text.to_owned());
            } else if let Some(runs) = line.strip_prefix("  ~ ") {
                let row: usize = at.ok_or_else(fault)?;
                runs_into(runs, &mut rows[row].1).ok_or_else(fault)?;
            } else {
                let (row, text) = line.split_once('|').ok_or_else(fault)?;
                let row: usize = row.trim().parse().map_err(|_| fault())?;
                text.clone_into(&mut rows.get_mut(row).ok_or_else(fault)?.0);
                at = Some(row);
            }
        }
        grid.lines = rows
            .iter()
            .map(|(text, styles)| units(text, styles))
            .collect();
        Ok(grid)
    }

    fn head(&mut self, line: &str) -> Option<()> {
        let mut words = line.split(' ');
        (self.columns, self.rows) = pair(words.next()?, 'x')?;
        self.cursor = words.nth(1).and_then(|point| pair(point, ','))?;
        self.cursor_shown = words.next().is_none();
        Some(())
    }

    /// Where another grid is not as this one, in words; at most the first few places.
    pub fn differences(&self, found: &Self) -> Vec<String> {
        let mut reported = Vec::new();
        let size = |grid: &Self| (grid.columns, grid.rows);
        if size(self) != size(found) {
            reported.push(format!(
                "size: expected {:?}, found {:?}",
                size(self),
                size(found)
            ));
            return reported;
        }
        let cursor = |grid: &Self| (grid.cursor, grid.cursor_shown);
        if cursor(self) != cursor(found) {
            let (expected, found) = (cursor(self), cursor(found));
            reported.push(format!(
                "cursor, shown: expected {expected:?}, found {found:?}"
            ));
        }
        if self.above.len() != found.above.len() {
            let (expected, found) = (self.above.len(), found.above.len());
            reported.push(format!(
                "lines above the screen: expected {expected}, found {found}"
            ));
        }
        for (row, (expected, found)) in self.above.iter().zip(&found.above).enumerate() {
            if expected != found && reported.len() < MOST {
                reported.push(format!(
                    "line {row} above the screen: expected {expected:?}, found {found:?}"
                ));
            }
        }
        let rows = self.lines.iter().zip(&found.lines).enumerate();
        for (row, (expected, found)) in rows.filter(|(_, (expected, found))| expected != found) {
            for column in 0..self.columns {
                let (expected, found) = (unit_at(expected, column), unit_at(found, column));
                if expected != found && reported.len() < MOST {
                    let (expected, found) = (told_unit(expected), told_unit(found));
                    reported.push(format!(
                        "row {row}, column {column}: expected {expected}, found {found}"
                    ));
                }
            }
        }
        reported
    }
}

/// The text of a row, without blanks at its end.
pub fn text(line: &[Unit]) -> String {
    let text: String = line.iter().map(|unit| unit.text.as_str()).collect();
    text.trim_end_matches(' ').to_owned()
}

fn unit_at(line: &[Unit], column: usize) -> Option<&Unit> {
    line.iter().find(|unit| unit.column == column)
}

fn told_unit(unit: Option<&Unit>) -> String {
    unit.map_or_else(
        || "the second half of a wide one".to_owned(),
        |unit| {
            let wide = if unit.width == 2 { " wide" } else { "" };
            format!("{:?}{wide} [{}]", unit.text, unit.style)
        },
    )
}

fn pair(text: &str, between: char) -> Option<(usize, usize)> {
    let (first, second) = text.split_once(between)?;
    Some((first.parse().ok()?, second.parse().ok()?))
}

/// Notes for each column how it looks.
fn runs_into(runs: &str, styles: &mut [String]) -> Option<()> {
    for run in runs.split(", ") {
        let (columns, style) = run.split_once(' ')?;
        let (first, last) = pair(columns, '-')?;
        for at in styles.get_mut(first..=last)? {
            style.clone_into(at);
        }
    }
    Some(())
}

fn units(text: &str, styles: &[String]) -> Vec<Unit> {
    let mut characters = text.graphemes(true);
    let mut units = Vec::new();
    let mut column = 0;
    while column < styles.len() {
        let (width, style) = match styles[column].strip_prefix("wide") {
            Some(style) => (2, style.trim_start()),
            None => (1, styles[column].as_str()),
        };
        units.push(Unit {
            column,
            width,
            text: characters.next().unwrap_or(" ").to_owned(),
            style: style.to_owned(),
        });
        column += width;
    }
    units
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for note in &self.notes {
            writeln!(f, "# {note}")?;
        }
        let hidden = if self.cursor_shown { "" } else { " hidden" };
        let (column, row) = self.cursor;
        writeln!(
            f,
            "{}x{} cursor {column},{row}{hidden}",
            self.columns, self.rows
        )?;
        for line in &self.above {
            writeln!(f, " ^|{line}")?;
        }
        for (row, line) in self.lines.iter().enumerate() {
            let (text, runs) = (text(line), runs_of(line));
            if !text.is_empty() || !runs.is_empty() {
                writeln!(f, "{row:2}|{text}")?;
            }
            if !runs.is_empty() {
                writeln!(f, "  ~ {runs}")?;
            }
        }
        Ok(())
    }
}

/// The columns that do not look plain.
fn runs_of(line: &[Unit]) -> String {
    let mut runs: Vec<(usize, usize, String)> = Vec::new();
    for unit in line {
        let wide = if unit.width == 2 { "wide " } else { "" };
        let style = format!("{wide}{}", unit.style).trim_end().to_owned();
        let end = unit.column + unit.width;
        match runs.last_mut() {
            Some((_, last, same)) if *last == unit.column && *same == style => *last = end,
            _ if style.is_empty() => {}
            _ => runs.push((unit.column, end, style)),
        }
    }
    let reported = runs
        .iter()
        .map(|(first, end, style)| format!("{first}-{} {style}", end - 1));
    reported.collect::<Vec<_>>().join(", ")
}

fn style(cell: &CellView<'_>) -> String {
    let shown = cell.attributes;
    let words = [
        (shown.bold, "bold"),
        (shown.dim, "dim"),
        (shown.italic, "italic"),
        (shown.inverse, "inverse"),
        (shown.hidden, "hidden"),
        (shown.strike, "strike"),
    ];
    let words = words.iter().filter(|(on, _)| *on).map(|(_, word)| *word);
    let mut look = Look {
        words: words.collect(),
        ..Look::default()
    };
    look.words.extend(match shown.underline {
        Underline::None => None,
        Underline::Single => Some("underline"),
        Underline::Double => Some("double"),
        Underline::Curly => Some("curly"),
        Underline::Dotted => Some("dotted"),
        Underline::Dashed => Some("dashed"),
    });
    look.foreground = colour(cell.foreground);
    look.background = colour(cell.background);
    look.underline = cell.underline_colour.and_then(colour);
    look.to_string()
}

fn colour(colour: Colour) -> Option<String> {
    match colour {
        Colour::Default => None,
        Colour::Indexed(index) => Some(index.to_string()),
        Colour::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
    }
}

/// How a cell looks; written in the words of the format.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Attributes, in the order of the format.
    pub words: Vec<&'static str>,
    /// The text's colour.
    pub foreground: Option<String>,
    /// The background.
    pub background: Option<String>,
    /// The underline's own colour.
    pub underline: Option<String>,
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.words.join(" ");
        let colours = [
            ("fg", &self.foreground),
            ("bg", &self.background),
            ("ul", &self.underline),
        ];
        for (word, colour) in colours {
            if let Some(colour) = colour {
                write!(text, " {word}{colour}")?;
            }
        }
        f.write_str(text.trim_start())
    }
}
