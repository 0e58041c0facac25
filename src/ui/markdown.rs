//! Markdown to rows of styled text, one line of the document after the other.
//!
//! It reads only the parts of notes and handoffs: headings, lists, checklists, quotes, fences, rules, emphasis and code.
//! Each line is read by itself but for fences, so rows can be made lazily: a document of a megabyte costs no more than the
//! rows that are looked at.

use std::collections::VecDeque;

use pulldown_cmark::{Event, Options, Parser, TagEnd};
use ratatui::{
    style::{Modifier, Style},
    text::Line,
};

use pitstop_handoff::scratchpad::lines::{Fences, LineKind, ListItem, heading, is_rule, list_item};

use super::{
    text::{Lead, safe_line, wrap, wrapped},
    theme::Theme,
};

/// The treatment of the document's own marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marks {
    /// Marks become signs: bullets and boxes.
    Rendered,
    /// Every character stays: a text that is approved must be seen as it is sent.
    Kept,
}

/// The longest piece of a line that is wrapped at once, in bytes: it bounds the work for one row.
const PIECE: usize = 2_048;

/// The rows of a document, each with the number of the line it belongs to, from 0.
pub(super) struct Rows<'a> {
    lines: std::iter::Enumerate<std::str::Split<'a, char>>,
    /// The rest of a line longer than [`PIECE`], with the line's number.
    piece: Option<(usize, &'a str)>,
    ready: VecDeque<(usize, Line<'static>)>,
    fences: Fences,
    kind: LineKind,
    cells: usize,
    marks: Marks,
    theme: &'a Theme,
}

/// Lays a document out in rows of this many cells.
pub(super) fn rows<'a>(text: &'a str, cells: u16, marks: Marks, theme: &'a Theme) -> Rows<'a> {
    Rows {
        lines: text.split('\n').enumerate(),
        piece: None,
        ready: VecDeque::new(),
        fences: Fences::default(),
        kind: LineKind::Text,
        cells: usize::from(cells.max(1)),
        marks,
        theme,
    }
}

impl Iterator for Rows<'_> {
    type Item = (usize, Line<'static>);

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() {
            let whole = self.piece.is_none();
            let (number, rest) = self.piece.take().or_else(|| self.lines.next())?;
            let cut = rest.floor_char_boundary(PIECE);
            let (now, later) = rest.split_at(cut);
            if !later.is_empty() {
                self.piece = Some((number, later));
            }
            let rows = self.line_rows(&safe_line(now.trim_end_matches('\r')), whole);
            self.ready.extend(rows.into_iter().map(|row| (number, row)));
        }
        self.ready.pop_front()
    }
}

impl Rows<'_> {
    fn line_rows(&mut self, line: &str, begins: bool) -> Vec<Line<'static>> {
        let theme = self.theme;
        let stripped = line.trim_start();
        if begins {
            self.kind = self.fences.kind(stripped);
        }
        match self.kind {
            LineKind::Text => {}
            // A fence's own line is shown faintly.
            LineKind::Fence => return wrapped(line, theme.dim, self.cells),
            LineKind::Code => return wrapped(line, theme.code, self.cells),
        }
        if stripped.is_empty() || !begins {
            return wrapped(line.trim_end(), theme.text, self.cells);
        }
        let indent = line.len() - stripped.len();
        if let Some((depth, title)) = heading(stripped) {
            return self.heading_rows(depth, title, stripped);
        }
        if self.marks == Marks::Rendered && is_rule(stripped) {
            return vec![Line::styled("─".repeat(self.cells), theme.border)];
        }
        if let Some(quoted) = stripped.strip_prefix('>') {
            let style = theme.dim.add_modifier(Modifier::ITALIC);
            return match self.marks {
                Marks::Kept => wrapped(line, style, self.cells),
                Marks::Rendered => {
                    let bar = vec![("▎ ".to_owned(), theme.accent)];
                    let lead = Lead {
                        first: bar.clone(),
                        rest: bar,
                    };
                    self.wrap(&self.inline(quoted.trim_start(), style), &lead)
                }
            };
        }
        if let Some(item) = list_item(stripped) {
            return self.item_rows(indent, &item);
        }
        let lead = Lead {
            first: blank_run(indent),
            rest: blank_run(indent),
        };
        self.wrap(&self.inline(stripped, theme.text), &lead)
    }

    fn heading_rows(&self, depth: usize, title: &str, whole: &str) -> Vec<Line<'static>> {
        let style = if depth == 1 {
            self.theme.heading.add_modifier(Modifier::UNDERLINED)
        } else {
            self.theme.heading
        };
        let text = match self.marks {
            Marks::Kept => whole,
            Marks::Rendered => title,
        };
        self.wrap(&self.inline(text, style), &Lead::default())
    }

    fn item_rows(&self, indent: usize, item: &ListItem<'_>) -> Vec<Line<'static>> {
        let theme = self.theme;
        let (sign, sign_style, style) = match (item.mark, item.done) {
            (_, Some(true)) => ("☑ ", theme.good, theme.dim),
            (_, Some(false)) => ("☐ ", theme.accent, theme.text),
            ("-" | "*" | "+", None) => ("• ", theme.accent, theme.text),
            _ => ("", theme.accent, theme.text),
        };
        let sign = match self.marks {
            Marks::Rendered if !sign.is_empty() => sign.to_owned(),
            _ => {
                let tick = item.done.map(|_| format!("{} ", item.tick));
                format!("{} {}", item.mark, tick.unwrap_or_default())
            }
        };
        let rest = blank_run(indent + super::text::width(&sign));
        let mut first = blank_run(indent);
        first.push((sign, sign_style));
        self.wrap(&self.inline(item.text, style), &Lead { first, rest })
    }

    fn wrap(&self, runs: &[(String, Style)], lead: &Lead) -> Vec<Line<'static>> {
        wrap(runs, lead, self.cells)
    }

    fn inline(&self, text: &str, base: Style) -> Vec<(String, Style)> {
        inline(text, base, self.theme.code, self.marks)
    }
}

fn blank_run(count: usize) -> Vec<(String, Style)> {
    let blanks = (count > 0).then(|| (" ".repeat(count), Style::new()));
    blanks.into_iter().collect()
}

/// Returns the emphasis and the code within a line; everything else stays as it is written.
fn inline(text: &str, base: Style, code: Style, marks: Marks) -> Vec<(String, Style)> {
    let mut runs: Vec<(String, Style)> = Vec::new();
    let mut push = |text: &str, style: Style| match runs.last_mut() {
        Some((last, before)) if *before == style => last.push_str(text),
        _ if text.is_empty() => {}
        _ => runs.push((text.to_owned(), style)),
    };
    // The text between the parser's texts is a mark, or something that is no matter of style.
    let between = |text: &str| match marks {
        Marks::Rendered => text.trim_matches(['*', '_', '~', '\\']).to_owned(),
        Marks::Kept => text.to_owned(),
    };
    let mut styles = vec![base];
    let mut done = 0;
    for (event, range) in Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH).into_offset_iter() {
        let style = styles.last().copied().unwrap_or(base);
        let reached = match event {
            Event::End(_) => range.end,
            _ => range.start,
        };
        push(&between(text.get(done..reached).unwrap_or_default()), style);
        done = done.max(reached);
        match event {
            Event::Start(tag) => {
                let on = emphasis_attribute(tag.to_end());
                styles.push(on.map_or(style, |on| style.add_modifier(on)));
            }
            Event::End(_) => {
                styles.pop();
            }
            event => {
                done = range.end;
                match event {
                    Event::Code(inside) if marks == Marks::Rendered => push(&inside, code),
                    Event::Code(_) => push(&text[range], code),
                    _ => push(&text[range], style),
                }
            }
        }
    }
    push(text.get(done..).unwrap_or_default(), base);
    runs
}

/// Returns the attribute of a kind of emphasis.
fn emphasis_attribute(tag: TagEnd) -> Option<Modifier> {
    match tag {
        TagEnd::Strong => Some(Modifier::BOLD),
        TagEnd::Emphasis => Some(Modifier::ITALIC),
        TagEnd::Strikethrough => Some(Modifier::CROSSED_OUT),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str, cells: u16, marks: Marks) -> Vec<String> {
        let theme = Theme::default();
        rows(text, cells, marks, &theme)
            .map(|(_, row)| row.to_string().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn notes_become_headings_boxes_and_bullets() {
        let text = "# Plan\n- [x] done **well**\n- [ ] to do\n  * `code` here\n1. first\n> said\n---\n```rust\nlet a = *b;\n```\nmax_state_size";
        assert_eq!(
            shown(text, 20, Marks::Rendered),
            [
                "Plan",
                "☑ done well",
                "☐ to do",
                "  • code here",
                "1. first",
                "▎ said",
                "────────────────────",
                "```rust",
                "let a = *b;",
                "```",
                "max_state_size"
            ]
        );
    }

    #[test]
    fn what_is_sent_is_shown_as_it_is() {
        let text = "# Plan\n- [x] done **well** and `so`\n> said\n---\n1. a\\*b *c* ~~d~~";
        assert_eq!(
            shown(text, 60, Marks::Kept),
            text.lines().collect::<Vec<_>>()
        );
    }

    #[test]
    fn emphasis_has_its_attribute() {
        let theme = Theme::default();
        let (_, row) = rows("a **b** *c* ~~d~~", 40, Marks::Rendered, &theme)
            .next()
            .expect("a row");
        let find = |text: &str| {
            row.spans
                .iter()
                .find(|span| span.content == text)
                .expect("a span")
                .style
        };
        assert!(find("b").add_modifier.contains(Modifier::BOLD));
        assert!(find("c").add_modifier.contains(Modifier::ITALIC));
        assert!(find("d").add_modifier.contains(Modifier::CROSSED_OUT));
    }

    #[test]
    fn long_items_hang_under_their_text() {
        assert_eq!(
            shown("- [ ] one two three", 10, Marks::Rendered),
            ["☐ one two", "  three"]
        );
    }

    #[test]
    fn rows_know_their_line() {
        let theme = Theme::default();
        let lines: Vec<usize> = rows("aa bb\ncc", 3, Marks::Rendered, &theme)
            .map(|(line, _)| line)
            .collect();
        assert_eq!(lines, [0, 0, 1]);
    }

    proptest! {
        #[test]
        fn any_text_at_any_width_is_laid_out(text in any::<String>(), cells in 0_u16..40) {
            let _ = shown(&text, cells, Marks::Rendered);
        }

        #[test]
        fn kept_marks_keep_every_character(text in "[-#*_`~>\\[\\]x1. ab\\\\]{0,60}") {
            let squeeze = |text: &str| text.replace([' ', '\n'], "");
            prop_assert_eq!(squeeze(&shown(&text, 30, Marks::Kept).concat()), squeeze(&text));
        }

        #[test]
        fn a_line_of_a_megabyte_is_begun_at_once(head in "[a-z ]{1,9}") {
            let text = head.repeat(100_000);
            let theme = Theme::default();
            let shown = super::super::text::window(rows(&text, 30, Marks::Rendered, &theme), 0, 5);
            prop_assert_eq!(shown.rows.len(), 5);
        }
    }
}
