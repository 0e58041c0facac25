//! A long document as it is read in the handoff panel and in the review: its sections folded or open, and the matches of a
//! search standing out.

use ratatui::{
    layout::Rect,
    text::{Line, Span},
};

use pitstop_core::app::reading::{Reading, Section, sections};

use super::{
    frame,
    markdown::{self, Marks},
    text,
    theme::Theme,
};

/// Returns the keys while a search is typed.
pub(super) fn search_keys(reading: &Reading) -> Option<Vec<String>> {
    let pattern = reading.typing.as_ref()?;
    Some(vec![
        format!("/{} ", text::safe(pattern)),
        "Enter finds".to_owned(),
        "Esc back".to_owned(),
    ])
}

/// Lays the document out from the reader's place, no further than the eye can see; returns the mark of that place too.
pub(super) fn lay_out(
    document: &str,
    reading: &Reading,
    area: Rect,
    marks: Marks,
    theme: &Theme,
) -> (Vec<Line<'static>>, String) {
    // The line break at the end of the last line begins no line of its own.
    let document = document.trim_end_matches('\n');
    let sections = sections(document);
    let height = usize::from(area.height);
    let offset = isize::try_from(reading.offset).unwrap_or(0);
    let pattern = reading.pattern.to_lowercase();
    // Each row with its line, as the lines that are not folded are counted.
    let mut rows: Vec<(usize, Line<'static>)> = Vec::new();
    let mut anchored = None;
    let mut below = None;
    let mut headed = None;
    // The folded lines are not laid out: layout takes most of the time of a frame.
    let (unfolded, lines) = unfold_document(document, reading, &sections);
    for (shown, row) in markdown::rows(&unfolded, area.width, marks, theme) {
        let line = lines.get(shown).copied().unwrap_or(shown);
        if anchored.is_none() && line >= reading.anchor {
            anchored = Some(rows.len());
        }
        let wanted = anchored.map(|at| at.saturating_add_signed(offset) + height);
        if wanted.is_some_and(|wanted| rows.len() >= wanted.max(height)) {
            below = Some(shown);
            break;
        }
        let Some(at) = sections.iter().position(|one| one.line == line) else {
            rows.push((shown, mark_matches(row, &pattern, theme)));
            continue;
        };
        // A heading that is wrapped is shown once.
        if headed != Some(line) {
            headed = Some(line);
            let heading = heading_line(&sections[at], at, reading, usize::from(area.width), theme);
            rows.push((shown, mark_matches(heading, &pattern, theme)));
        }
    }
    let (anchor, last) = (
        anchored.unwrap_or(rows.len()),
        rows.len().saturating_sub(height),
    );
    let from_anchor = |row: usize| {
        let count = |rows: usize| i32::try_from(rows).unwrap_or(i32::MAX);
        count(row) - count(anchor)
    };
    let furthest = below.is_none().then(|| from_anchor(last));
    reading.bounds.set_range(from_anchor(0), furthest);
    let mut first = anchor.saturating_add_signed(offset).min(last);
    // A document whose end is in sight does not begin with the gap above its first section.
    let is_blank = |(_, row): &(usize, Line<'_>)| row.width() == 0;
    if reading.offset == 0 && first > 0 && rows.get(first).is_some_and(is_blank) {
        first += 1;
    }
    let shown = &rows[first..(first + height).min(rows.len())];
    // A line whose end is not seen is not the last one that was read.
    let last_line = match shown.last() {
        Some((line, _)) if below == Some(*line) => *line,
        Some((line, _)) => line + 1,
        None => 0,
    };
    let mark = if reading.missed {
        let pattern = text::safe(&reading.pattern);
        format!("not found: {}", text::fit(&pattern, 24))
    } else {
        text::mark(first > 0, below.is_some(), last_line, lines.len())
    };
    let rows = shown.iter().map(|(_, row)| row.clone());
    (rows.collect(), mark)
}

/// Returns the document without its folded lines and without the blank lines below its headings, which would cost a panel
/// half of its rows; and the number of each of its lines in the document.
fn unfold_document(
    document: &str,
    reading: &Reading,
    sections: &[Section<'_>],
) -> (String, Vec<usize>) {
    let mut text = String::with_capacity(document.len());
    let mut lines = Vec::new();
    for (line, content) in document.split('\n').enumerate() {
        let is_heading = |at: usize| sections.iter().any(|section| section.line == at);
        let below_heading = content.trim().is_empty() && line > 0 && is_heading(line - 1);
        if below_heading || reading.is_hidden(sections, line) {
            continue;
        }
        if !lines.is_empty() {
            text.push('\n');
        }
        text.push_str(content);
        lines.push(line);
    }
    (text, lines)
}

/// Returns `▾ Next step`, or `▸ Completed · 14 lines` where it is folded.
fn heading_line(
    section: &Section<'_>,
    at: usize,
    reading: &Reading,
    cells: usize,
    theme: &Theme,
) -> Line<'static> {
    let open = reading.is_open(at, section);
    let title = text::safe(section.title);
    let said = if open {
        format!("▾ {title}")
    } else {
        format!("▸ {title} · {}", text::count(section.lines, "line"))
    };
    let style = if reading.section == Some(at) {
        theme.heading.patch(theme.selection)
    } else {
        theme.heading
    };
    frame::row(text::fit(&said, cells), style)
}

/// Returns a row with the matches of a search standing out.
pub(super) fn mark_matches(row: Line<'static>, pattern: &str, theme: &Theme) -> Line<'static> {
    let is_there = |span: &Span<'_>| span.content.to_lowercase().contains(pattern);
    if pattern.is_empty() || !row.spans.iter().any(is_there) {
        return row;
    }
    let mut spans = Vec::new();
    for span in row.spans {
        let lower = span.content.to_lowercase();
        // Letters whose lower case is longer would move the places.
        if lower.len() != span.content.len() {
            spans.push(Span::styled(span.content, span.style.patch(theme.found)));
            continue;
        }
        let mut behind = 0;
        for (at, found) in lower.match_indices(pattern) {
            let end = at + found.len();
            let whole = span.content.get(behind..at).zip(span.content.get(at..end));
            let Some((before, found)) = whole else {
                continue;
            };
            let style = span.style.patch(theme.found);
            spans.push(Span::styled(before.to_owned(), span.style));
            spans.push(Span::styled(found.to_owned(), style));
            behind = end;
        }
        let rest = span.content.get(behind..).unwrap_or_default();
        spans.push(Span::styled(rest.to_owned(), span.style));
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyEvent};

    use super::*;

    #[test]
    fn an_end_of_the_text_is_left_by_the_first_key() {
        let lines: Vec<String> = (0..40).map(|line| format!("line {line}")).collect();
        let text = lines.join("\n");
        let first = |reading: &Reading| {
            let area = Rect::new(0, 0, 20, 10);
            let (rows, _) = lay_out(&text, reading, area, Marks::Kept, &Theme::default());
            rows[0].to_string()
        };
        let mut reading = Reading::default();
        reading.key(KeyEvent::from(KeyCode::Char('G')), &text, 0);
        assert_eq!(first(&reading), "line 30");
        reading.scroll(-1);
        assert_eq!(first(&reading), "line 29");
        for (rows, wanted) in [(15, "line 29"), (-15, "line 1")] {
            for _ in 0..9 {
                reading.scroll(rows);
                first(&reading);
            }
            reading.scroll(-i32::signum(rows));
            assert_eq!(first(&reading), wanted);
        }
    }
}
