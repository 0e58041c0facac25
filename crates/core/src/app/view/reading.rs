//! The reading of a long Markdown document: by sections that fold, with a search. Views lay it out; this module knows lines and no
//! widths.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_width::UnicodeWidthStr as _;

use pitstop_handoff::scratchpad::lines::{Fences, LineKind, heading};

pub use crate::app::model::reading::{Bounds, Reading};

/// The largest number of lines of a section that is open at first, where not only the first one is.
const SHORT: usize = 8;

/// The number of rows above a line that is shown, for the eye to see where it is.
const ABOVE: i32 = 3;

/// A heading with the lines below it, up to the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// The words of the heading.
    pub title: &'a str,
    /// The number of its line, from 0.
    pub line: usize,
    /// The number of the line after its last one.
    pub end: usize,
    /// The number of lines below the heading that are not blank.
    pub lines: usize,
}

/// Returns the sections of a document: headings of the first two levels, outside of fences.
pub fn sections(text: &str) -> Vec<Section<'_>> {
    let mut fences = Fences::default();
    let mut sections: Vec<Section<'_>> = Vec::new();
    let mut count = 0;
    for (line, content) in text.split('\n').enumerate() {
        count = line + 1;
        let content = content.trim_end();
        let is_text = fences.kind(content.trim_start()) == LineKind::Text;
        if let Some((1..=2, title)) = heading(content).filter(|_| is_text) {
            if let Some(last) = sections.last_mut() {
                last.end = line;
            }
            sections.push(Section {
                title,
                line,
                end: usize::MAX,
                lines: 0,
            });
        } else if let Some(last) = sections.last_mut().filter(|_| !content.is_empty()) {
            last.lines += 1;
        }
    }
    if let Some(last) = sections.last_mut() {
        last.end = count;
    }
    sections
}

/// Returns a message without the sentences before its first section, which are the same in every message.
pub fn from_first_section(body: &str) -> &str {
    let body = body.trim_start_matches('\n');
    let sections = sections(body);
    let lines = sections.first().map_or(0, |first| first.line);
    let skipped: usize = body.split_inclusive('\n').take(lines).map(str::len).sum();
    body.get(skipped..).unwrap_or(body)
}

/// Returns a message for a glance at it: the next step first, and without the sentences before the first section.
pub fn glance(body: &str) -> String {
    let body = from_first_section(body);
    let sections = sections(body);
    let step = sections.iter().find(|one| one.is_next_step());
    let Some(step) = step.filter(|step| step.line > 0) else {
        return body.to_owned();
    };
    let lines: Vec<&str> = body.split('\n').collect();
    let (before, rest) = lines.split_at(step.line);
    let (first, behind) = rest.split_at(step.end - step.line);
    let mut lines = [first, before, behind].concat();
    // The last section has no blank line behind it.
    if first.last().is_some_and(|line| !line.trim().is_empty()) {
        lines.insert(first.len(), "");
    }
    lines.join("\n")
}

/// Returns the line in one text that corresponds to a line of another one with the same sections: it is as far below its heading.
pub fn same_line(from: &str, line: usize, to: &str) -> Option<usize> {
    let (of, there) = (sections(from), sections(to));
    let at = of.partition_point(|section| section.line <= line);
    let section = &of[at.checked_sub(1)?];
    let there = there.into_iter().find(|one| one.title == section.title)?;
    Some((there.line + line - section.line).min(there.end - 1))
}

impl Section<'_> {
    /// Reports whether it is the section about the next step.
    pub const fn is_next_step(&self) -> bool {
        self.title.eq_ignore_ascii_case("next step")
    }
}

impl Reading {
    /// Returns a reader at the beginning, with no section open but the first.
    pub fn folded() -> Self {
        Self {
            folded: true,
            ..Self::default()
        }
    }

    /// Returns a reader at the first section: what comes before it is above.
    pub fn at_first_section(text: &str) -> Self {
        let line = sections(text).first().map_or(0, |first| first.line);
        Self {
            anchor: line,
            ..Self::default()
        }
    }

    /// Reports whether a section is open.
    pub fn is_open(&self, at: usize, section: &Section<'_>) -> bool {
        self.is_open_at_first(at, section) != self.toggled.contains(&at)
    }

    const fn is_open_at_first(&self, at: usize, section: &Section<'_>) -> bool {
        if self.folded {
            at == 0
        } else {
            section.lines <= SHORT
        }
    }

    /// Reports whether every section is open.
    pub fn is_all_open(&self, text: &str) -> bool {
        let mut sections = sections(text).into_iter().enumerate();
        sections.all(|(at, section)| self.is_open(at, &section))
    }

    /// Reports whether a line is in a section that is folded. Headings themselves are not.
    pub fn is_hidden(&self, sections: &[Section<'_>], line: usize) -> bool {
        let at = sections.partition_point(|section| section.line < line);
        let Some(at) = at.checked_sub(1) else {
            return false;
        };
        line < sections[at].end && !self.is_open(at, &sections[at])
    }

    /// Moves by rows.
    pub fn scroll(&mut self, rows: i32) {
        self.offset = self.bounds.nearest(self.offset).saturating_add(rows);
    }

    /// Takes a key that reads, with this line in view.
    pub fn key(&mut self, key: KeyEvent, text: &str, line: usize) {
        if self.typing.is_some() {
            return self.type_key(key, text);
        }
        self.missed = false;
        match key.code {
            KeyCode::Down | KeyCode::Char('j') => self.scroll(1),
            KeyCode::Up | KeyCode::Char('k') => self.scroll(-1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll(15),
            KeyCode::PageUp => self.scroll(-15),
            KeyCode::Home | KeyCode::Char('g') => self.go(0),
            KeyCode::End | KeyCode::Char('G') => self.go(text.split('\n').count()),
            KeyCode::Tab => self.step(text, line, 1),
            KeyCode::BackTab => self.step(text, line, -1),
            KeyCode::Char('o') | KeyCode::Right | KeyCode::Left => self.toggle(text, line),
            KeyCode::Char('z') => self.toggle_all(text),
            KeyCode::Char('/') => self.typing = Some(String::new()),
            KeyCode::Char('n') => self.find(text, true),
            KeyCode::Char('N') => self.find(text, false),
            _ => {}
        }
    }

    /// Returns the line at the top of a view of so many cells, as near as that is known without laying the text out. The rows
    /// above a section, a match or an edit only show where it is.
    pub fn line_in_view(&self, text: &str, cells: usize) -> usize {
        let sections = sections(text);
        let lines: Vec<&str> = text.split('\n').collect();
        let mut line = self.anchor.min(lines.len() - 1);
        if (-ABOVE..=0).contains(&self.offset) {
            return line;
        }
        let is_heading = |line: usize| sections.iter().any(|section| section.line == line);
        let rows_of = |line: usize| {
            let is_gap = lines[line].trim().is_empty() && line > 0 && is_heading(line - 1);
            if is_gap || self.is_hidden(&sections, line) {
                0
            } else {
                lines[line].width().div_ceil(cells.max(1)).max(1)
            }
        };
        let mut rows = usize::try_from(self.offset.unsigned_abs()).unwrap_or(usize::MAX);
        if self.offset > 0 {
            while rows > 0 && line + 1 < lines.len() {
                rows = rows.saturating_sub(rows_of(line));
                line += 1;
            }
        } else {
            while rows > 0 && line > 0 {
                line -= 1;
                rows = rows.saturating_sub(rows_of(line));
            }
        }
        line
    }

    /// Moves to a line, with a few of those above it; the section that it is in opens.
    pub(in crate::app) fn show(&mut self, text: &str, line: usize) {
        let sections = sections(text);
        if self.is_hidden(&sections, line) {
            let at = sections.partition_point(|section| section.line < line) - 1;
            if !self.toggled.remove(&at) {
                self.toggled.insert(at);
            }
        }
        self.go(line);
        self.offset = -ABOVE;
    }

    fn go(&mut self, line: usize) {
        self.anchor = line;
        self.offset = 0;
        self.bounds = Bounds::default();
    }

    fn type_key(&mut self, key: KeyEvent, text: &str) {
        let Some(typing) = &mut self.typing else {
            return;
        };
        match key.code {
            KeyCode::Esc => self.typing = None,
            KeyCode::Enter => {
                self.pattern = std::mem::take(typing);
                self.typing = None;
                self.missed = false;
                if !self.pattern.is_empty() {
                    self.find(text, true);
                }
            }
            KeyCode::Backspace => {
                typing.pop();
            }
            KeyCode::Char(c)
                if !key.modifiers.contains(KeyModifiers::CONTROL)
                    && typing.chars().count() < 200 =>
            {
                typing.push(c);
            }
            _ => {}
        }
    }

    /// Moves to the next section, or the one before; where none is selected, to the one in view.
    fn step(&mut self, text: &str, line: usize, by: isize) {
        let sections = sections(text);
        if sections.is_empty() {
            return;
        }
        let last = sections.len() - 1;
        let at = match self.section {
            None => {
                let above = sections.partition_point(|section| section.line <= line);
                above.saturating_sub(1)
            }
            Some(at) => at.saturating_add_signed(by).min(last),
        };
        self.section = Some(at);
        self.go(sections[at].line);
        // The lines above the section stay in sight.
        self.offset = -2;
    }

    fn toggle(&mut self, text: &str, line: usize) {
        if self.section.is_none() {
            self.step(text, line, 1);
        }
        if let Some(at) = self.section
            && !self.toggled.remove(&at)
        {
            self.toggled.insert(at);
        }
    }

    /// Opens every section, or folds every one if all are open.
    fn toggle_all(&mut self, text: &str) {
        let all_open = self.is_all_open(text);
        let sections = sections(text);
        let differs = |at, section: &Section<'_>| self.is_open_at_first(at, section) == all_open;
        self.toggled = sections
            .iter()
            .enumerate()
            .filter(|(at, section)| differs(*at, section))
            .map(|(at, _)| at)
            .collect();
    }

    /// Moves to the next line with the pattern, or the one before; the section that it is in opens. Behind the last line it begins
    /// at the first one again.
    fn find(&mut self, text: &str, forward: bool) {
        let wanted = self.pattern.to_lowercase();
        if wanted.is_empty() {
            return;
        }
        let found: Vec<usize> = text
            .split('\n')
            .enumerate()
            .filter(|(_, line)| line.to_lowercase().contains(&wanted))
            .map(|(at, _)| at)
            .collect();
        let here = self.found_at(&found);
        let next = if forward {
            let behind = found.iter().find(|line| Some(**line) > here);
            behind.or(found.first())
        } else {
            let before = found.iter().rev().find(|line| Some(**line) < here);
            before.or(found.last())
        };
        self.missed = next.is_none();
        let Some(line) = next.copied() else {
            return;
        };
        self.show(text, line);
    }

    /// Returns the line found last, if the reader is still at one.
    fn found_at(&self, found: &[usize]) -> Option<usize> {
        found.contains(&self.anchor).then_some(self.anchor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "marker\n\n## One\n\nalpha\n\n```\n## not one\n```\n\n## Two\n1\n2\n3\n4\n5\n6\n7\n8\nbeta\nAlpha again";

    fn press(reading: &mut Reading, code: KeyCode) {
        let line = reading.line_in_view(TEXT, 40);
        reading.key(KeyEvent::from(code), TEXT, line);
    }

    #[test]
    fn a_document_has_its_headings_as_sections_and_fences_have_none() {
        let all = sections(TEXT);
        let titles: Vec<&str> = all.iter().map(|one| one.title).collect();
        assert_eq!(titles, ["One", "Two"]);
        assert_eq!((all[0].line, all[0].end, all[1].end), (2, 10, 21));
        assert!(sections("").is_empty());
    }

    #[test]
    fn a_glance_begins_with_the_next_step_and_the_rest_is_folded() {
        let body = "\nYou take over.\n\n## Objective\n\nstream\n\n## Next step\n\n- [ ] test\n\n## Done\n\n- read";
        let expected = "## Next step\n\n- [ ] test\n\n## Objective\n\nstream\n\n## Done\n\n- read";
        assert_eq!(glance(body), expected);
        let last = "## Objective\nstream\n## Next step\ntest";
        assert_eq!(glance(last), "## Next step\ntest\n\n## Objective\nstream");
        assert_eq!(glance("## Done\nread"), "## Done\nread");
        let mut reading = Reading::folded();
        let all = sections(expected);
        let open = |reading: &Reading| [0, 1, 2].map(|at| reading.is_open(at, &all[at]));
        assert_eq!(open(&reading), [true, false, false]);
        reading.key(KeyEvent::from(KeyCode::Char('z')), expected, 0);
        assert_eq!(open(&reading), [true; 3]);
    }

    #[test]
    fn long_sections_are_folded_at_first_and_a_key_opens_one_or_all() {
        let mut reading = Reading::default();
        let all = sections(TEXT);
        assert!(!reading.is_hidden(&all, 0) && !reading.is_hidden(&all, 4));
        assert!(!reading.is_hidden(&all, 10) && reading.is_hidden(&all, 11));
        press(&mut reading, KeyCode::Tab);
        press(&mut reading, KeyCode::Tab);
        press(&mut reading, KeyCode::Char('o'));
        assert!(!reading.is_hidden(&all, 11));
        press(&mut reading, KeyCode::Char('z'));
        assert!(reading.is_hidden(&all, 4) && reading.is_hidden(&all, 11));
        press(&mut reading, KeyCode::Char('z'));
        assert!(!reading.is_hidden(&all, 4) && !reading.is_hidden(&all, 11));
    }

    #[test]
    fn a_search_opens_the_section_it_ends_in_and_goes_round() {
        let mut reading = Reading::default();
        let all = sections(TEXT);
        press(&mut reading, KeyCode::Char('/'));
        for c in "alpha".chars() {
            press(&mut reading, KeyCode::Char(c));
        }
        press(&mut reading, KeyCode::Enter);
        assert_eq!(reading.anchor, 4);
        press(&mut reading, KeyCode::Char('n'));
        assert_eq!(reading.anchor, 20);
        assert!(!reading.is_hidden(&all, 20));
        press(&mut reading, KeyCode::Char('n'));
        assert_eq!(reading.anchor, 4);
        press(&mut reading, KeyCode::Char('N'));
        assert_eq!(reading.anchor, 20);
        press(&mut reading, KeyCode::Char('/'));
        press(&mut reading, KeyCode::Char('q'));
        press(&mut reading, KeyCode::Enter);
        assert!(reading.missed);
        for code in [KeyCode::Down, KeyCode::Tab, KeyCode::Char('/')] {
            press(&mut reading, KeyCode::Char('n'));
            assert!(reading.missed, "{code:?}");
            press(&mut reading, code);
            assert!(!reading.missed, "{code:?}");
        }
    }

    #[test]
    fn the_line_in_view_follows_what_was_scrolled() {
        let mut reading = Reading::default();
        let line = |reading: &Reading| reading.line_in_view(TEXT, 40);
        assert_eq!(line(&reading), 0);
        press(&mut reading, KeyCode::Tab);
        assert_eq!(
            line(&reading),
            2,
            "the rows above are no more than a look back"
        );
        for _ in 0..4 {
            press(&mut reading, KeyCode::Down);
        }
        // From two rows above the heading: the blank line below it is not shown.
        assert_eq!(line(&reading), 5);
        press(&mut reading, KeyCode::Char('g'));
        assert_eq!(line(&reading), 0);
        press(&mut reading, KeyCode::Char('G'));
        assert_eq!(line(&reading), TEXT.split('\n').count() - 1);
        // A line that is wrapped takes several rows.
        let long = format!("{}\nlast", "word ".repeat(20));
        let mut reading = Reading::default();
        reading.scroll(2);
        assert_eq!(reading.line_in_view(&long, 40), 1);
        assert_eq!(reading.line_in_view(&long, 200), 1);
        reading.offset = 1;
        assert_eq!(reading.line_in_view(&long, 40), 1);
    }

    #[test]
    fn a_line_is_found_again_in_a_text_with_other_sections_in_between() {
        let to = "## Two\n1\n2\n\n## One\n\nalpha\n";
        let same = |line| same_line(TEXT, line, to);
        let from: Vec<&str> = TEXT.split('\n').collect();
        assert_eq!((from[4], same(4)), ("alpha", Some(6)));
        assert_eq!((from[12], same(12)), ("2", Some(2)));
        assert_eq!(same(0), None, "before the first section");
        assert_eq!(
            (from[18], same(18)),
            ("8", Some(3)),
            "the end of a shorter section"
        );
        assert_eq!(same_line("## Three\n", 0, to), None);
    }

    #[test]
    fn a_line_that_is_shown_opens_its_section() {
        let mut reading = Reading::folded();
        reading.show(TEXT, 19);
        assert!(!reading.is_hidden(&sections(TEXT), 19));
        assert_eq!(reading.line_in_view(TEXT, 40), 19);
    }

    #[test]
    fn without_a_selected_section_the_keys_begin_at_the_one_in_view() {
        for (code, rows, section) in [
            (KeyCode::Tab, 0, 0),
            (KeyCode::Tab, 3, 0),
            (KeyCode::Tab, 40, 1),
            (KeyCode::BackTab, 40, 1),
            (KeyCode::Char('o'), 40, 1),
            (KeyCode::Char('o'), 0, 0),
        ] {
            let mut reading = Reading::default();
            reading.scroll(rows);
            press(&mut reading, code);
            assert_eq!(reading.section, Some(section), "{code:?} {rows}");
            assert_eq!(reading.anchor, sections(TEXT)[section].line);
            let opened = reading.toggled.contains(&section);
            assert_eq!(opened, code == KeyCode::Char('o'));
        }
    }
}
