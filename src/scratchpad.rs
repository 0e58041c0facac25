//! The notes as text: sections, checklist, and the merge of two edits.
//!
//! The scratchpad is a plain Markdown file that the human and the agent both write. This room knows
//! its shape and nothing else: where the file lies and who changed it is the shell's business.

pub mod lines;
mod merge;
mod parsed;
pub mod versions;

pub use merge::{HumanLines, merge};
pub use parsed::{Blocker, Decision, Fact, Item, NO_NOTES, Parsed, split_reason};

/// What a new project's scratchpad says: the five sections of the contract, empty.
pub const TEMPLATE: &str = "\
## Current Understanding

## Current Plan

## Key Decisions

## Blockers

## Last Action
";

/// The largest scratchpad that is read, in bytes: far above what a handoff can carry.
pub const MAX_BYTES: usize = 1024 * 1024;

/// The items of a Markdown checklist, in the order in which they stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checklist {
    /// The text of the ticked items (`- [x] …`).
    pub completed: Vec<String>,
    /// The text of the open items (`- [ ] …`).
    pub pending: Vec<String>,
}

/// Whether nothing has been noted: no line but the template's own.
#[must_use]
pub fn is_blank(text: &str) -> bool {
    text.lines()
        .map(str::trim)
        .all(|line| line.is_empty() || TEMPLATE.lines().any(|heading| heading == line))
}

/// The body of the section with this heading, without surrounding blank lines; `None` if there is no such
/// section or nothing stands in it. Headings are compared without case; any level of `#` counts.
#[must_use]
pub fn section(text: &str, heading: &str) -> Option<String> {
    let mut body: Option<Vec<&str>> = None;
    let mut level = 0;
    for (line, fenced) in lines_with_fences(text) {
        let found = if fenced { None } else { heading_of(line) };
        match (&mut body, found) {
            (Some(_), Some((depth, _))) if depth <= level => break,
            (Some(lines), _) => lines.push(line),
            (None, Some((depth, title))) if title.eq_ignore_ascii_case(heading) => {
                level = depth;
                body = Some(Vec::new());
            }
            (None, _) => {}
        }
    }
    let joined = body?.join("\n");
    let trimmed = joined.trim_matches('\n').trim_end();
    (!trimmed.trim().is_empty()).then(|| trimmed.to_owned())
}

/// Every checklist item of the notes, wherever it stands; what is inside code fences does not count.
#[must_use]
pub fn checklist(text: &str) -> Checklist {
    let mut list = Checklist::default();
    for (line, fenced) in lines_with_fences(text) {
        if fenced {
            continue;
        }
        let item = bullet(line).and_then(ticked);
        match item {
            Some((_, "")) | None => {}
            Some((true, item)) => list.completed.push(item.to_owned()),
            Some((false, item)) => list.pending.push(item.to_owned()),
        }
    }
    list
}

/// The plain list items of one section, without their bullets and without checklist marks.
#[must_use]
pub fn items(text: &str, heading: &str) -> Vec<String> {
    section(text, heading).map_or_else(Vec::new, |body| {
        body.lines()
            .filter_map(bullet)
            .filter(|item| !item.starts_with('['))
            .map(|item| item.trim().to_owned())
            .filter(|item| !item.is_empty())
            .collect()
    })
}

/// The lines of a Markdown text, each with whether it belongs to a code fence.
fn lines_with_fences(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut open: Option<(char, usize)> = None;
    text.lines().map(move |line| {
        let stripped = line.trim_start();
        let mark = stripped.chars().next().filter(|c| matches!(c, '`' | '~'));
        let run = mark.map_or(0, |m| stripped.chars().take_while(|c| *c == m).count());
        match (open, mark) {
            (None, Some(m)) if run >= 3 => {
                open = Some((m, run));
                (line, true)
            }
            (Some((m, n)), Some(found)) if found == m && run >= n => {
                open = None;
                (line, true)
            }
            (state, _) => (line, state.is_some()),
        }
    })
}

fn heading_of(line: &str) -> Option<(usize, &str)> {
    let depth = line.bytes().take_while(|b| *b == b'#').count();
    let rest = line.get(depth..)?;
    ((1..=6).contains(&depth) && rest.starts_with([' ', '\t']))
        .then(|| (depth, rest.trim().trim_end_matches('#').trim_end()))
}

/// A list item without its bullet or number.
fn bullet(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = match digits {
        0 => line.strip_prefix(['-', '*', '+']),
        1..=9 => line[digits..].strip_prefix(['.', ')']),
        _ => None,
    }?;
    let item = rest.trim_start();
    (item.len() < rest.len() || rest.is_empty()).then_some(item)
}

/// A checklist item's tick and its text.
fn ticked(item: &str) -> Option<(bool, &str)> {
    let (mark, text) = item.strip_prefix('[')?.split_once(']')?;
    let text = text.trim();
    match mark {
        "x" | "X" => Some((true, text)),
        " " | "" => Some((false, text)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTES: &str = "# Notes\n## Current Plan\n- [x] one\n* [ ] two\n  - [X] three\n```\n- [ ] fenced\n## Not a heading\n```\n### Deeper\n- loose\n## Blockers\n\n";

    #[test]
    fn a_section_ends_at_the_next_heading_of_its_level() {
        let plan = section(NOTES, "current plan").unwrap();
        assert!(
            plan.starts_with("- [x] one") && plan.ends_with("- loose"),
            "{plan}"
        );
        assert_eq!(section(NOTES, "Blockers"), None);
        assert_eq!(section(NOTES, "Objective"), None);
    }

    #[test]
    fn checklist_items_are_found_outside_fences_only() {
        let list = checklist(NOTES);
        assert_eq!(list.completed, ["one", "three"]);
        assert_eq!(list.pending, ["two"]);
    }

    #[test]
    fn plain_items_leave_checklist_items_out() {
        assert_eq!(items(NOTES, "Current Plan"), ["loose"]);
    }

    #[test]
    fn any_list_can_be_a_checklist() {
        let list = checklist(
            "1. [x] one\n2) [ ] two\n   * [ ] three\n+ [X] four\n- [?] none\n1.[ ] none\n12345678901. [ ] none\n-[ ] none",
        );
        assert_eq!(list.completed, ["one", "four"]);
        assert_eq!(list.pending, ["two", "three"]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "[-#*`~ \\[\\]xX\n\u{e9}a-c]{0,200}") {
            let _ = section(&text, "a");
            let _ = checklist(&text);
            let _ = items(&text, "a");
        }
    }
}
