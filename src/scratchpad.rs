//! The notes as text: sections, checklist, and the merge of two edits.
//!
//! The scratchpad is a plain Markdown file that the human and the agent both write. This room knows
//! its shape and nothing else: where the file lies and who changed it is the shell's business.

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
        let Some(rest) = bullet(line) else { continue };
        let Some((mark, item)) = rest.strip_prefix('[').and_then(|r| r.split_once(']')) else {
            continue;
        };
        let item = item.trim();
        if item.is_empty() {
            continue;
        }
        match mark {
            "x" | "X" => list.completed.push(item.to_owned()),
            " " | "" => list.pending.push(item.to_owned()),
            _ => {}
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

/// Two edits of the same notes, brought together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Both edits are in this text.
    Clean(String),
    /// The edits touch the same lines, so a person has to choose; the text marks both versions.
    Conflict(String),
}

/// Brings together what the human wrote (`mine`) and what the agent wrote (`theirs`) since both read `base`.
#[must_use]
pub fn merge(base: &str, mine: &str, theirs: &str) -> Merge {
    if mine == theirs || theirs == base {
        return Merge::Clean(mine.to_owned());
    }
    if mine == base {
        return Merge::Clean(theirs.to_owned());
    }
    match diffy::merge(base, mine, theirs) {
        Ok(text) => Merge::Clean(text),
        Err(text) => Merge::Conflict(text),
    }
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

fn bullet(line: &str) -> Option<&str> {
    let line = line.trim_start();
    ["- ", "* ", "+ "]
        .iter()
        .find_map(|mark| line.strip_prefix(mark))
        .map(str::trim_start)
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
    fn edits_of_different_lines_merge() {
        let base = "a\nb\nc\nd\ne\n";
        let merged = merge(base, "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n");
        assert_eq!(merged, Merge::Clean("A\nb\nc\nd\nE\n".to_owned()));
    }

    #[test]
    fn edits_of_the_same_line_are_a_conflict_that_holds_both() {
        let Merge::Conflict(text) = merge("a\n", "mine\n", "theirs\n") else {
            panic!("expected a conflict");
        };
        assert!(text.contains("mine") && text.contains("theirs"), "{text}");
    }

    #[test]
    fn an_edit_on_one_side_only_wins() {
        assert_eq!(merge("a", "a", "b"), Merge::Clean("b".to_owned()));
        assert_eq!(merge("a", "b", "a"), Merge::Clean("b".to_owned()));
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
