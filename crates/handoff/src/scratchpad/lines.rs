//! Single lines of Markdown as people and agents write them: headings, list items, code fences.
//!
//! The notes are read and drawn line by line, both with this module: a line that the panel shows as a box counts as an
//! item. A parser of whole documents reads some lines differently from the panel, such as an item that is indented by four
//! blanks, or everything below a line that begins with a tag.

pub use pitstop_transcript::words::{Fences, LineKind};

/// Returns the level of a heading and its text.
pub fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let rest = line.get(level..)?;
    ((1..=6).contains(&level) && rest.starts_with([' ', '\t']))
        .then(|| (level, rest.trim().trim_end_matches('#').trim_end()))
}

/// A list item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListItem<'a> {
    /// The mark of the item: `-`, `*`, `+`, `12.` or `12)`.
    pub mark: &'a str,
    /// Its box as it is written: `[x]`, `[ ]`; empty if it has none.
    pub tick: &'a str,
    /// True if the box is ticked; `None` if it has none.
    pub done: Option<bool>,
    /// The text behind them.
    pub text: &'a str,
}

/// Reads a list item from a line without its indentation.
pub fn list_item(line: &str) -> Option<ListItem<'_>> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let length = match digits {
        0 if line.starts_with(['-', '*', '+']) => 1,
        1..=9 if line[digits..].starts_with(['.', ')']) => digits + 1,
        _ => return None,
    };
    let (mark, rest) = line.split_at(length);
    if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
        return None;
    }
    let rest = rest.trim();
    let (done, tick) = ["[x]", "[X]", "[ ]", "[]"]
        .into_iter()
        .find(|tick| rest.starts_with(tick))
        // A box that a bracket follows is a link.
        .filter(|tick| !rest[tick.len()..].starts_with(['(', '[', ':']))
        .map_or((None, ""), |tick| {
            (Some(matches!(tick, "[x]" | "[X]")), &rest[..tick.len()])
        });
    Some(ListItem {
        mark,
        tick,
        done,
        text: rest[tick.len()..].trim_start(),
    })
}

/// Reports whether a line is a rule between two parts: three or more of one mark.
pub fn is_rule(line: &str) -> bool {
    let mut marks = line.chars().filter(|c| !c.is_whitespace());
    let Some(first) = marks.next().filter(|c| matches!(c, '-' | '*' | '_')) else {
        return false;
    };
    let rest = marks.try_fold(1, |count, c| (c == first).then_some(count + 1));
    rest.is_some_and(|count: usize| count >= 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_list_can_have_boxes() {
        for (line, done, text) in [
            ("1. [x] one", Some(true), "one"),
            ("2) [ ] two", Some(false), "two"),
            ("+ [X] four", Some(true), "four"),
            ("* [] five", Some(false), "five"),
            ("- [ ]", Some(false), ""),
            ("- [?] six", None, "[?] six"),
            (
                "- [x](https://example.org)",
                None,
                "[x](https://example.org)",
            ),
            ("- [x][1]", None, "[x][1]"),
            ("- plain", None, "plain"),
            ("-\tplain", None, "plain"),
            ("-", None, ""),
        ] {
            let item = list_item(line).expect(line);
            assert_eq!((item.done, item.text), (done, text), "{line}");
        }
        for line in [
            "1.[ ] none",
            "12345678901. [ ] none",
            "-[ ] none",
            "--",
            "a",
            "",
        ] {
            assert_eq!(list_item(line), None, "{line}");
        }
    }

    #[test]
    fn a_fence_is_closed_by_its_own_mark_alone() {
        let mut fences = Fences::default();
        let text = "a\n~~~~\n```\n~~~\n~~~~\nb\n```x``` c\n```rust\nd\n```rust\n```\ne";
        let outside: Vec<&str> = text
            .lines()
            .filter(|line| fences.kind(line) == LineKind::Text)
            .collect();
        assert_eq!(outside, ["a", "b", "```x``` c", "e"]);
    }

    #[test]
    fn a_heading_has_a_blank_behind_its_marks() {
        assert_eq!(heading("## Plan ##"), Some((2, "Plan")));
        assert_eq!(heading("#"), None);
        assert_eq!(heading("#214 is open"), None);
        assert_eq!(heading("####### seven"), None);
    }
}
