//! The picker: a list of what can be gone back to, with what is known of the chosen row below it.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

use super::{frame, text, theme::Theme};

/// The most rows that the details take.
const DETAILS: u16 = 9;

/// The least cells of a column that a longer one is cut to, so that the last one has room.
const COLUMN: usize = 24;

/// A row of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PickerRow {
    /// Its fields, of which the last one takes the room that is left.
    pub fields: Vec<String>,
    /// What is known of it, each with its name.
    pub details: Vec<(&'static str, String)>,
    /// What Enter does with it, as a word.
    pub enter: &'static str,
    /// The way in which it is shown.
    pub tone: Tone,
}

impl PickerRow {
    /// Reports whether a text, in small letters, is in it.
    pub fn contains_text(&self, text: &str) -> bool {
        let details = self.details.iter().map(|(_, said)| said);
        let mut all = self.fields.iter().chain(details);
        all.any(|one| one.to_lowercase().contains(text))
    }
}

/// The way in which a row is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Nothing is special about it.
    #[default]
    Plain,
    /// It needs a person.
    Needed,
    /// What is said of it may have changed since.
    Old,
}

/// The state of the picker on the screen.
#[derive(Clone, Debug, Default)]
pub struct PickerView {
    /// Its title.
    pub title: String,
    /// All rows.
    pub rows: Vec<PickerRow>,
    /// The number of the chosen row among those that are shown.
    pub chosen: usize,
    /// The number of the first row that is seen among those that are shown; set by drawing.
    pub first: usize,
    /// The number of rows for which the list has room; set by drawing.
    pub room: Option<usize>,
    /// The text that the rows must have; `None` if there is no filter.
    pub filter: Option<String>,
    /// True while the filter is typed.
    pub typing: bool,
}

impl PickerView {
    /// Returns the numbers of the rows that pass the filter.
    pub fn shown_rows(&self) -> Vec<usize> {
        let filter = self.filter.as_deref().unwrap_or_default().to_lowercase();
        let passes = |number: &usize| self.rows[*number].contains_text(&filter);
        (0..self.rows.len()).filter(passes).collect()
    }

    /// Draws it over a whole screen.
    pub fn draw(&mut self, buf: &mut Buffer, theme: &Theme) {
        let whole = buf.area;
        let shown = self.shown_rows();
        let chosen = shown.get(self.chosen).map(|number| &self.rows[*number]);
        let enter = chosen.map(|row| format!("Enter {}", row.enter));
        let cells = usize::from(whole.width.saturating_sub(4));
        let mut details: Vec<Line<'static>> = chosen
            .into_iter()
            .flat_map(|row| &row.details)
            .flat_map(|(name, said)| said_of(name, said, cells, theme))
            .collect();
        details.truncate(usize::from(DETAILS.min(whole.height / 3)));
        let below = if details.is_empty() {
            0
        } else {
            details.len() as u16 + 1
        };
        let inner = frame::draw_border(
            buf,
            whole,
            frame::title(&self.title, true, theme),
            true,
            theme,
        );
        let list = Rect {
            height: inner.height.saturating_sub(below),
            ..inner
        };
        self.draw_list(buf, list, &shown, theme);
        if below > 0 && inner.height > below {
            let line = "─".repeat(usize::from(inner.width));
            let ruled = frame::below(inner, list.height);
            frame::rows(buf, ruled, &[frame::row(line, theme.border)]);
            let area = frame::below(ruled, 1);
            frame::rows(buf, area, &details);
        }
        let way_out = if self.filter.is_some() {
            "Esc all"
        } else {
            "Esc quit"
        };
        let hints: Vec<&str> = if self.typing {
            vec!["typing filters", "Enter keeps", "Esc all"]
        } else {
            let others = ["↑↓ choose", "/ filter", "n new session", way_out];
            enter.as_deref().into_iter().chain(others).collect()
        };
        let room = self.room.unwrap_or(usize::MAX);
        let below = shown.len().saturating_sub(self.first) > room;
        let mark = text::mark(self.first > 0, below, self.chosen + 1, shown.len());
        frame::foot(buf, whole, &hints, &mark, theme);
    }

    fn draw_list(&mut self, buf: &mut Buffer, area: Rect, shown: &[usize], theme: &Theme) {
        let mut area = area;
        if let Some(filter) = &self.filter {
            let cursor = if self.typing { "▏" } else { "" };
            let line = Line::from(vec![
                Span::styled(" / ", theme.accent),
                Span::styled(format!("{}{cursor}", text::safe(filter)), theme.text),
            ]);
            frame::rows(buf, area, &[line]);
            area = frame::below(area, 1);
        }
        if shown.is_empty() {
            self.first = 0;
            let said = match self.filter {
                Some(_) => " nothing has this text",
                None => " all of them have ended",
            };
            return frame::rows(buf, area, &[frame::row(said, theme.dim)]);
        }
        let height = usize::from(area.height).max(1);
        self.room = Some(height);
        self.first = (self.chosen + 1).saturating_sub(height);
        let first = self.first;
        let rows: Vec<&PickerRow> = shown.iter().map(|number| &self.rows[*number]).collect();
        let widths = column_widths(&rows);
        for (at, row) in rows.iter().enumerate().skip(first).take(height) {
            let line = frame::below(area, (at - first) as u16);
            let is_chosen = at == self.chosen;
            let mut spans = vec![Span::styled(
                if is_chosen { " ▸ " } else { "   " },
                theme.accent,
            )];
            spans.extend(field_spans(row, &widths, style_of(row.tone, theme)));
            let cells = usize::from(area.width);
            frame::rows(buf, line, &[frame::cut(Line::from(spans), cells)]);
            if is_chosen {
                let row = Rect {
                    height: 1.min(line.height),
                    ..line
                };
                buf.set_style(row, theme.selection);
            }
        }
    }
}

fn style_of(tone: Tone, theme: &Theme) -> Style {
    match tone {
        Tone::Plain => theme.text,
        Tone::Needed => theme.bad,
        Tone::Old => theme.dim,
    }
}

/// Returns the widths of all columns but the last.
fn column_widths(rows: &[&PickerRow]) -> Vec<usize> {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        let aligned = row.fields.len().saturating_sub(1);
        widths.resize(widths.len().max(aligned), 0);
        for (width, field) in widths.iter_mut().zip(&row.fields[..aligned]) {
            *width = (*width).max(text::width(&text::safe(field))).min(COLUMN);
        }
    }
    widths
}

fn field_spans(row: &PickerRow, widths: &[usize], style: Style) -> Vec<Span<'static>> {
    let last = row.fields.len().saturating_sub(1);
    let padded = row.fields.iter().enumerate().map(|(at, field)| {
        let safe = text::safe(field);
        let width = widths.get(at).copied().filter(|_| at < last);
        let said = match width {
            Some(width) => {
                let cut = text::fit(&safe, width);
                format!(
                    "{cut}{}  ",
                    " ".repeat(width - text::width(&cut).min(width))
                )
            }
            None => safe.into_owned(),
        };
        Span::styled(said, style)
    });
    padded.collect()
}

fn said_of(name: &str, said: &str, cells: usize, theme: &Theme) -> Vec<Line<'static>> {
    let said = (text::safe(said).into_owned(), theme.text);
    let mut lines = frame::named_rows(format!(" {name:<13}"), said, cells, theme);
    // The first lines are what a person knows it by.
    lines.truncate(3);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> PickerView {
        let row = |project: &str, state: &str, objective: &str, tone| PickerRow {
            fields: vec![project.to_owned(), state.to_owned(), objective.to_owned()],
            details: vec![
                ("objective", objective.to_owned()),
                ("ended", "pitstop was asked to end".to_owned()),
            ],
            enter: "attach",
            tone,
        };
        PickerView {
            title: "pitstop".to_owned(),
            rows: vec![
                row(
                    "~/one",
                    "asks you",
                    "Port the parser \u{1b}[31m to Rust",
                    Tone::Needed,
                ),
                row("~/漢字", "busy", "Write the docs", Tone::Plain),
                row("box:~/three", "idle", "Rename", Tone::Old),
            ],
            ..PickerView::default()
        }
    }

    fn lines(view: &mut PickerView, width: u16, height: u16) -> Vec<String> {
        let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
        view.draw(&mut buf, &Theme::default());
        let text = |y| (0..width).map(|x| buf[(x, y)].symbol()).collect::<String>();
        (0..height).map(text).collect()
    }

    #[test]
    fn rows_are_aligned_filtered_and_scrolled_and_nothing_reaches_the_terminal_as_a_sequence() {
        let mut view = view();
        let all = lines(&mut view, 70, 16).join("\n");
        assert!(!all.contains('\u{1b}'));
        for text in [
            "▸ ~/one",
            "asks you",
            "Rename",
            "objective",
            "Enter attach",
            "/ filter",
        ] {
            assert!(all.contains(text), "{text} in\n{all}");
        }
        view.filter = Some("DOCS".to_owned());
        assert_eq!(view.shown_rows(), [1]);
        view.filter = Some("no such".to_owned());
        assert!(
            lines(&mut view, 70, 16)
                .join("\n")
                .contains("nothing has this text")
        );
        view.filter = None;
        view.rows = std::iter::repeat_n(view.rows[1].clone(), 50).collect();
        view.rows[49].fields[2] = "the last one".to_owned();
        view.chosen = 49;
        assert!(lines(&mut view, 70, 12).join("\n").contains("the last one"));
        assert!(lines(&mut view, 70, 12).join("\n").contains("↑ 50/50"));
        view.chosen = 0;
        assert!(lines(&mut view, 70, 12).join("\n").contains("↓ 1/50"));
        view.filter = Some("no such".to_owned());
        assert!(!lines(&mut view, 70, 12).join("\n").contains("/50"));
        view.filter = None;
        view.rows.truncate(2);
        assert!(!lines(&mut view, 70, 12).join("\n").contains("1/2"));
        for (width, height) in [(1, 1), (3, 2), (20, 5), (300, 4)] {
            lines(&mut view, width, height);
        }
    }

    #[test]
    fn a_list_that_has_emptied_by_itself_does_not_speak_of_a_text() {
        let mut view = view();
        view.rows.clear();
        let all = lines(&mut view, 70, 16).join("\n");
        assert!(all.contains("all of them have ended"), "{all}");
        assert!(!all.contains("nothing has this text"), "{all}");
    }
}
