//! Text in cells: figures for people, fitting, wrapping, and windows on long documents.

use std::{borrow::Cow, collections::VecDeque};

use ratatui::{
    style::Style,
    text::{Line, Span},
};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use pitstop_base::{clean, format};
use pitstop_core::app::reading::Bounds;
use pitstop_transcript::Tokens;

pub(super) use pitstop_base::format::{
    ago, capitalize, count, dollars, percent, seconds, short, span,
};

/// Returns the width of a text in cells.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// Formats a number of tokens for people.
pub(super) fn tokens(Tokens(count): Tokens) -> String {
    format::tokens(count)
}

/// Formats a number of tokens where a glance is enough.
pub(super) fn rough(Tokens(count): Tokens) -> String {
    format::rough_tokens(count)
}

/// Formats a number of bytes for people.
pub(super) fn bytes(count: usize) -> String {
    format::bytes(count as u64)
}

/// Returns how often the client compacted its context; none if it never did.
pub(super) fn compaction_count(number: u32) -> Option<String> {
    (number > 0).then(|| count(number as usize, "compaction"))
}

/// Returns as much of a text as fits, with `…` where it was cut.
pub(super) fn fit(text: &str, cells: usize) -> Cow<'_, str> {
    if width(text) <= cells {
        return Cow::Borrowed(text);
    }
    if cells == 0 {
        return Cow::Borrowed("");
    }
    let mut kept = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        used += width(grapheme);
        if used > cells - 1 {
            break;
        }
        kept.push_str(grapheme);
    }
    kept.push('…');
    Cow::Owned(kept)
}

/// Returns the end of a text that is too long for its place: where one types.
pub(super) fn tail(text: &str, cells: usize) -> &str {
    let mut kept = text.chars();
    while width(kept.as_str()) > cells {
        kept.next();
    }
    kept.as_str()
}

/// Returns the longest list of parts, joined by ` · `, that fits; parts are dropped from the end.
pub(super) fn join(parts: &[String], cells: usize) -> String {
    let mut joined = String::new();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let gap = if joined.is_empty() { "" } else { " · " };
        if width(&joined) + width(gap) + width(part) > cells {
            if joined.is_empty() {
                return fit(part, cells).into_owned();
            }
            break;
        }
        joined.push_str(gap);
        joined.push_str(part);
    }
    joined
}

/// Returns text from outside on one line, safe to show.
pub(super) fn safe(text: &str) -> Cow<'_, str> {
    let text = clean::one_line(text);
    // A letter that joins nothing has no cell of its own, and would be added to the second half of a wide one before it.
    let unseen = |text: &str| text.graphemes(true).any(|one| width(one) == 0);
    if text.is_ascii() || !unseen(&text) {
        return text;
    }
    text.graphemes(true).filter(|one| width(one) > 0).collect()
}

/// Returns a line of a document with its tabs as blanks and everything unsafe as escapes.
pub(super) fn safe_line(line: &str) -> Cow<'_, str> {
    if !line.contains('\t') {
        return safe(line);
    }
    let mut out = String::with_capacity(line.len() + 8);
    let mut column = 0;
    for (at, piece) in line.split('\t').enumerate() {
        if at > 0 {
            let blanks = 4 - column % 4;
            out.extend(std::iter::repeat_n(' ', blanks));
            column += blanks;
        }
        let piece = safe(piece);
        column += width(&piece);
        out.push_str(&piece);
    }
    Cow::Owned(out)
}

/// The text that a paragraph begins with: on its first row, and as an indent on the others.
#[derive(Clone, Debug, Default)]
pub(super) struct Lead {
    /// The beginning of the first row.
    pub first: Vec<(String, Style)>,
    /// The beginning of rows after it.
    pub rest: Vec<(String, Style)>,
}

impl Lead {
    /// Creates a beginning, with blanks of its width below it.
    pub fn hanging(first: impl Into<String>, style: Style) -> Self {
        let first = first.into();
        Self {
            rest: vec![(" ".repeat(width(&first)), style)],
            first: vec![(first, style)],
        }
    }
}

/// A blank at which no row ends; it is shown as any other.
pub(super) const NO_BREAK: &str = "\u{a0}";

/// Wraps styled text at blanks, and within words that are longer than a row.
pub(super) fn wrap(runs: &[(String, Style)], lead: &Lead, cells: usize) -> Vec<Line<'static>> {
    let lead_width =
        |parts: &[(String, Style)]| parts.iter().map(|(text, _)| width(text)).sum::<usize>();
    // A lead that leaves no room for text is dropped.
    let (first, rest) = (lead_width(&lead.first), lead_width(&lead.rest));
    let (first, rest) = (
        if first + 4 > cells { 0 } else { first },
        if rest + 4 > cells { 0 } else { rest },
    );
    let mut rows: Vec<Vec<(&str, Style)>> = vec![Vec::new()];
    let mut used = first;
    // The place where the row could be broken: after this many pieces.
    let mut blank: Option<usize> = None;
    for (text, style) in runs {
        for grapheme in text.graphemes(true) {
            let wide = width(grapheme);
            let mut dropped = false;
            while used + wide > cells && rows.last().is_some_and(|row| !row.is_empty()) {
                let row = rows.last_mut().expect("there is always a row");
                dropped = grapheme == " ";
                let carried = match blank.take() {
                    Some(at) if !dropped => row.split_off(at),
                    _ => Vec::new(),
                };
                used = rest + carried.iter().map(|(piece, _)| width(piece)).sum::<usize>();
                rows.push(carried);
            }
            // A blank at the end of the row is replaced by the break.
            if dropped {
                continue;
            }
            let row = rows.last_mut().expect("there is always a row");
            let shown = if grapheme == NO_BREAK { " " } else { grapheme };
            row.push((shown, *style));
            used += wide;
            if grapheme == " " {
                blank = Some(row.len());
            }
        }
    }
    let mut lines = Vec::with_capacity(rows.len());
    for (at, row) in rows.into_iter().enumerate() {
        let (lead, wide) = if at == 0 {
            (&lead.first, first)
        } else {
            (&lead.rest, rest)
        };
        let lead = if wide == 0 { &[][..] } else { lead };
        let mut spans: Vec<Span<'static>> = Vec::new();
        for (piece, style) in row {
            match spans.last_mut().filter(|last| last.style == style) {
                Some(last) => last.content.to_mut().push_str(piece),
                None => spans.push(Span::styled(piece.to_owned(), style)),
            }
        }
        let lead = lead
            .iter()
            .map(|(text, style)| Span::styled(text.clone(), *style));
        lines.push(lead.chain(spans).collect());
    }
    lines
}

/// Wraps as [`wrap`] does, for a text in one style with no lead.
pub(super) fn wrapped(text: impl Into<String>, style: Style, cells: usize) -> Vec<Line<'static>> {
    wrap(&[(text.into(), style)], &Lead::default(), cells)
}

/// The part of a long document that is on the screen.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// The rows of the part.
    pub rows: Vec<Line<'static>>,
    /// The number of rows above it.
    first: usize,
    /// True if there is more above.
    pub above: bool,
    /// True if there is more below.
    pub below: bool,
    /// The number of the document's line in the last row, from 1.
    pub last_line: usize,
}

impl Window {
    /// Returns its place among so many lines, as [`mark`] does.
    pub fn mark(&self, lines: usize) -> String {
        mark(self.above, self.below, self.last_line, lines)
    }

    /// Records how far the text can be scrolled, as far as that is seen.
    pub fn record(&self, bounds: &Bounds) {
        let first = i32::try_from(self.first).unwrap_or(i32::MAX);
        bounds.set_range(0, (!self.below).then_some(first));
    }

    /// Reports whether there is more than is seen.
    pub const fn scrolls(&self) -> bool {
        self.above || self.below
    }
}

/// Returns the place of a view in a list that is longer than it: `↑↓ 40/340`, or an empty text if all of it is seen.
pub(super) fn mark(above: bool, below: bool, at: usize, all: usize) -> String {
    let arrows = match (above, below) {
        (false, false) => return String::new(),
        (true, true) => "↑↓",
        (true, false) => "↑",
        (false, true) => "↓",
    };
    format!("{arrows} {at}/{all}")
}

/// Takes the rows from `scroll` on, or the last ones if there are fewer: no further than the eye can see, so that the cost
/// depends on the rows that are read and not on those there are.
pub(super) fn window(
    rows: impl Iterator<Item = (usize, Line<'static>)>,
    scroll: u16,
    height: u16,
) -> Window {
    let height = usize::from(height);
    let wanted = usize::from(scroll) + height;
    let mut kept: VecDeque<(usize, Line<'static>)> = VecDeque::with_capacity(height + 1);
    let mut seen = 0;
    let mut rows = rows;
    while seen < wanted {
        let Some(row) = rows.next() else { break };
        seen += 1;
        kept.push_back(row);
        if kept.len() > height {
            kept.pop_front();
        }
    }
    Window {
        first: seen - kept.len(),
        above: seen > kept.len(),
        below: rows.next().is_some(),
        last_line: kept.back().map_or(0, |(line, _)| line + 1),
        rows: kept.into_iter().map(|(_, row)| row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain(lines: &[Line<'_>]) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    fn wrapped(text: &str, cells: usize) -> Vec<String> {
        plain(&super::wrapped(text, Style::new(), cells))
    }

    #[test]
    fn a_text_that_does_not_fit_is_cut_at_a_character() {
        assert_eq!(fit("abc", 3), "abc");
        assert_eq!(fit("abcd", 3), "ab…");
        assert_eq!(fit("日本語", 5), "日本…");
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(fit("abc", 0), "");
    }

    #[test]
    fn parts_are_dropped_from_the_end() {
        let parts = ["one".to_owned(), "two".to_owned(), "three".to_owned()];
        assert_eq!(join(&parts, 40), "one · two · three");
        assert_eq!(join(&parts, 16), "one · two");
        assert_eq!(join(&parts, 2), "o…");
    }

    #[test]
    fn words_wrap_at_blanks_and_long_ones_within() {
        assert_eq!(
            wrapped("the quick brown fox", 10),
            ["the quick ", "brown fox"]
        );
        assert_eq!(wrapped("abcdefghij kl", 4), ["abcd", "efgh", "ij ", "kl"]);
        assert_eq!(wrapped("日本語です", 5), ["日本", "語で", "す"]);
        assert_eq!(wrapped("", 5), [""]);
    }

    #[test]
    fn rows_after_the_first_hang_under_the_text() {
        let style = Style::new();
        let lead = Lead::hanging("• ", style);
        let rows = wrap(&[("one two three".to_owned(), style)], &lead, 9);
        assert_eq!(plain(&rows), ["• one two", "  three"]);
    }

    #[test]
    fn a_window_past_the_end_shows_the_end() {
        let rows = || (0..10).map(|n| (n, Line::from(n.to_string())));
        let shown = window(rows(), u16::MAX, 3);
        assert_eq!(plain(&shown.rows), ["7", "8", "9"]);
        assert!(shown.above && !shown.below && shown.last_line == 10);
        let shown = window(rows(), 2, 3);
        assert_eq!(plain(&shown.rows), ["2", "3", "4"]);
        assert!(shown.above && shown.below);
    }

    #[test]
    fn what_takes_no_cell_is_left_out() {
        assert_eq!(safe("日\u{d7cb}x\u{301}"), "日x\u{301}");
        assert_eq!(safe_line("日\u{11a8}\t\u{301}y"), "日  y");
    }

    #[test]
    fn tabs_reach_the_next_stop() {
        assert_eq!(safe_line("a\tb\tcd"), "a   b   cd");
        assert_eq!(safe_line("a\x1bb"), "a\\u{1b}b");
    }

    proptest! {
        #[test]
        fn no_row_is_wider_than_it_may_be(text in "[ab日é ]{0,80}", cells in 2_usize..20) {
            for row in wrapped(&text, cells) {
                prop_assert!(width(row.trim_end()) <= cells, "{row:?}");
            }
        }

        #[test]
        fn wrapping_loses_nothing_but_blanks(text in "[ab日é ]{0,80}", cells in 2_usize..20) {
            let squeeze = |text: &str| text.replace(' ', "");
            prop_assert_eq!(squeeze(&wrapped(&text, cells).concat()), squeeze(&text));
        }

        #[test]
        fn what_is_fitted_fits(text in any::<String>(), cells in 0_usize..30) {
            prop_assert!(width(&fit(&text, cells)) <= cells);
        }
    }
}
