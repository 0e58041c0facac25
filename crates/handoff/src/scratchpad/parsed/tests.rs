use proptest::prelude::*;

use super::{titles::section_labelled, *};
use crate::scratchpad::lines::heading;

const NOTES: &str = "\
# Scratchpad

## Objective
Ship the parser

## Current Understanding
Feeds are RSS or Atom.

## Current Plan
- [x] lexer
  - it takes 3 ms
1. [ ] grammar
   - [ ] numbers
```
- [ ] fenced
```

## Key Decisions
- one entry type | both feeds have the same fields
- **SQLite**: one file

## Blockers
- [high]: CI has no `heaptrack`
- ~~the disk is full~~

## Last Action
Wrote the lexer. Next: the grammar
";

fn open(notes: &Parsed) -> Vec<&str> {
    notes.pending().map(|item| item.text.as_str()).collect()
}

fn decided(notes: &str) -> Vec<(String, String)> {
    let parsed = Parsed::read(&format!("## Key Decisions\n{notes}"));
    let decisions = parsed.decisions.into_iter();
    decisions.map(|one| (one.text, one.reason)).collect()
}

fn one_decision(notes: &str) -> (String, String) {
    let mut decisions = decided(notes);
    assert_eq!(decisions.len(), 1, "{notes}: {decisions:?}");
    decisions.remove(0)
}

fn blocked(notes: &str) -> Vec<Blocker> {
    Parsed::read(&format!("## Blockers\n{notes}")).blockers
}

#[test]
fn every_section_reaches_its_field() {
    let notes = Parsed::read(NOTES);
    assert_eq!(notes.objective.as_deref(), Some("Ship the parser"));
    assert_eq!(notes.next.as_deref(), Some("the grammar"));
    assert_eq!(open(&notes), ["grammar", "numbers"]);
    let done: Vec<&Item> = notes.completed().collect();
    assert_eq!(done.len(), 1);
    assert_eq!(done[0].text, "lexer");
    assert_eq!(done[0].notes, ["  - it takes 3 ms"]);
    let decisions: Vec<_> = notes
        .decisions
        .iter()
        .map(|one| one.text.as_str())
        .collect();
    assert_eq!(decisions, ["one entry type", "SQLite"]);
    let resolved: Vec<_> = notes.blockers.iter().map(|one| one.resolved).collect();
    assert_eq!(resolved, [false, true]);
    assert_eq!(notes.blockers[1].text, "the disk is full");
}

#[test]
fn a_mark_of_the_byte_order_hides_no_section() {
    let notes = "# Objective\nport it\n";
    let marked = Parsed::read(&format!("\u{feff}{notes}"));
    assert_eq!(marked.objective.as_deref(), Some("port it"));
    assert_eq!(marked, Parsed::read(notes));
}

#[test]
fn a_section_is_known_by_its_words() {
    for notes in [
        "## Objective\nShip it",
        "# objective:\n\nShip it\n",
        "### 🎯 Objective\n- Ship it",
        "## 1. Goal (of the week)\nShip it",
        "## Objective: Ship it",
        "**Objective:** Ship it",
        "**Objective**: Ship it\n\nOther words.",
        "**Objective**\nShip it",
        "Objective: Ship it\n\nOther words.",
    ] {
        let objective = Parsed::read(notes).objective;
        assert_eq!(objective.as_deref(), Some("Ship it"), "{notes}");
    }
    for notes in [
        "## The objective of all this\nShip it",
        "Objective:Ship it",
        "The **objective** is to ship",
        "> ## Objective\n> Ship it",
        "```\n## Objective\nShip it\n```",
    ] {
        assert_eq!(Parsed::read(notes).objective, None, "{notes}");
    }
}

#[test]
fn a_section_ends_at_the_next_heading_of_its_level() {
    let notes = Parsed::read(
        "## Objective\nShip it\n### In short\nsoon\n## Other\nwords\n## Objective\nanother\n",
    );
    assert_eq!(
        notes.objective.as_deref(),
        Some("Ship it\n### In short\nsoon")
    );
}

#[test]
#[allow(
    clippy::too_many_lines,
    reason = "a test is one sequence from beginning to end"
)]
fn what_a_list_of_decisions_reasonably_says() {
    for (line, text, reason) in [
        ("- use sqlite | one file", "use sqlite", "one file"),
        ("- use sqlite — one file", "use sqlite", "one file"),
        ("- use sqlite – one file", "use sqlite", "one file"),
        ("* use sqlite -- one file", "use sqlite", "one file"),
        ("+ use sqlite - one file", "use sqlite", "one file"),
        (
            "1. use sqlite because it is one file",
            "use sqlite",
            "it is one file",
        ),
        (
            "2) use sqlite, because it is one file",
            "use sqlite",
            "it is one file",
        ),
        ("- use sqlite (because: one file)", "use sqlite", "one file"),
        ("- use sqlite (why: one file)", "use sqlite", "one file"),
        ("- use sqlite. Reason: one file", "use sqlite.", "one file"),
        ("- use sqlite because of the size", "use sqlite", "the size"),
        ("- **use sqlite**: one file", "use sqlite", "one file"),
        (
            "- **use sqlite:** because it is one file",
            "use sqlite",
            "it is one file",
        ),
        ("- **use sqlite** — one file", "use sqlite", "one file"),
        (
            "- **Database**: sqlite | one file",
            "Database: sqlite",
            "one file",
        ),
        ("- **use sqlite**", "use sqlite", ""),
        ("- use sqlite", "use sqlite", ""),
        ("- use `a | b` only", "use `a | b` only", ""),
        ("- Database: sqlite", "Database: sqlite", ""),
        ("- | why", "| why", ""),
        (
            "use sqlite, because it is one file",
            "use sqlite",
            "it is one file",
        ),
        (
            "- use sqlite\n  because it is one file",
            "use sqlite",
            "it is one file",
        ),
        (
            "- use sqlite\nbecause it is one file",
            "use sqlite",
            "it is one file",
        ),
        (
            "- use sqlite\n  - Why: one file\n  - no server",
            "use sqlite",
            "one file; no server",
        ),
        (
            "### Use sqlite\nIt is one file.",
            "Use sqlite",
            "It is one file.",
        ),
        (
            "### Use sqlite\n\nIt is\none file.",
            "Use sqlite",
            "It is one file.",
        ),
        (
            "### Use sqlite\nIt is one file.\n- no server",
            "Use sqlite",
            "It is one file.; no server",
        ),
        (
            "### Accepted\n- use sqlite | one file",
            "use sqlite",
            "one file",
        ),
        (
            "| Decision | Why |\n|---|:--|\n| use sqlite | one file |",
            "use sqlite",
            "one file",
        ),
        (
            "These are made:\n- use sqlite | one file",
            "use sqlite",
            "one file",
        ),
    ] {
        let expected = (text.to_owned(), reason.to_owned());
        assert_eq!(one_decision(line), expected, "{line}");
    }
    assert_eq!(decided("### Rejected\n- postgres | slow"), []);
}

#[test]
fn a_date_before_a_decision_is_its_time() {
    for (line, at) in [
        ("- 2026-01-02: use sqlite", Some("2026-01-02T00:00:00Z")),
        (
            "- [2026-01-02 14:05] use sqlite",
            Some("2026-01-02T14:05:00Z"),
        ),
        (
            "- 2026-01-02T14:05:09Z — use sqlite",
            Some("2026-01-02T14:05:09Z"),
        ),
        ("- **2026-01-02**: use sqlite", Some("2026-01-02T00:00:00Z")),
        ("- use sqlite", None),
    ] {
        let notes = Parsed::read(&format!("## Key Decisions\n{line}"));
        let one = &notes.decisions[0];
        assert_eq!(one.text, "use sqlite", "{line}");
        let at = at.map(|at| at.parse::<DateTime<Utc>>().unwrap());
        assert_eq!(one.at, at, "{line}");
    }
}

#[test]
fn blockers_are_lines_lists_and_rows() {
    let found = blocked("- CI is red\n  since Monday\n- ISSUE\n\nThe disk\nis full.\n");
    let texts: Vec<_> = found.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(
        texts,
        ["CI is red since Monday", "ISSUE", "The disk is full."]
    );
    for line in ["- ~~x~~", "- x (resolved)", "- Fixed: x"] {
        assert_eq!(
            blocked(line),
            [Blocker {
                text: "x".to_owned(),
                resolved: true
            }],
            "{line}"
        );
    }
}

#[test]
fn what_holds_a_place_is_no_item() {
    for word in [
        "none",
        "None.",
        "- none",
        "_none yet_",
        "(none)",
        "-",
        "- ",
        "—",
        "…",
        "...",
        "TBD",
        "* n/a",
        "No blockers",
        "<describe it>",
        "{{ blockers }}",
        "<!-- what blocks -->",
        "- [ ]",
        "- [ ] TBD",
        "1.",
        "---",
        "?",
    ] {
        for heading in [
            "Objective",
            "Key Decisions",
            "Blockers",
            "Next",
            "Current Plan",
        ] {
            let notes = Parsed::read(&format!("## {heading}\n{word}\n"));
            let expected = Parsed {
                lines: notes.lines.clone(),
                ..Parsed::default()
            };
            assert_eq!(notes, expected, "{heading}: {word}");
            assert_eq!(notes.without(|_| false), "", "{heading}: {word}");
        }
    }
    for word in ["- nonempty", "- ✅", "- 42", "- <Foo> wraps <Bar>", "- 無"] {
        assert_eq!(blocked(word).len(), 1, "{word}");
    }
}

#[test]
fn what_comes_next_is_open() {
    for (notes, next, pending) in [
        ("## Next\n- a\n- b", Some("a"), &["a", "b"][..]),
        ("## Next steps\n1. [x] a\n2. [ ] b", Some("b"), &["b"]),
        (
            "**Next:** the parser\nand its tests\n\nother",
            Some("the parser and its tests"),
            &[],
        ),
        ("## Next\n- a\n  - how", Some("a"), &["a"]),
        (
            "## Last Action\n- Wrote it.\n- **Next:** run it",
            Some("run it"),
            &[],
        ),
        (
            "## Last Action\nWrote it. Next step: run it\nsoon",
            Some("run it"),
            &[],
        ),
        ("## Last Action\nWhat was context: gone", None, &[]),
        ("## Last Action\nNext: none", None, &[]),
    ] {
        let parsed = Parsed::read(notes);
        assert_eq!(parsed.next.as_deref(), next, "{notes}");
        assert_eq!(open(&parsed), pending, "{notes}");
    }
}

#[test]
fn an_open_fence_hides_what_follows_it_as_on_the_screen() {
    let notes = Parsed::read("- [ ] a\n```\n- [ ] b\n## Blockers\n- c\n");
    assert_eq!(open(&notes), ["a"]);
    assert!(notes.blockers.is_empty());
}

#[test]
fn what_is_said_elsewhere_is_left_out_with_its_empty_sections() {
    let notes = Parsed::read(NOTES);
    assert_eq!(
        notes.without(|fact| !matches!(fact, Fact::Line(_))),
        "## Current Understanding\nFeeds are RSS or Atom.\n\n## Current Plan\n```\n- [ ] fenced\n```\n\n\
         ## Last Action\nWrote the lexer. Next: the grammar"
    );
    let left = notes.without(|fact| !matches!(fact, Fact::Item(item) if item.text == "lexer"));
    assert!(
        left.contains("## Current Plan\n- [x] lexer\n  - it takes 3 ms\n```"),
        "{left}"
    );
    let notes = Parsed::read("## Phase 1\n- [x] a\n## Plan\n### Phase 2\n- [x] b\n");
    assert_eq!(notes.without(|_| true), "## Phase 1\n## Plan\n### Phase 2");
}

#[test]
fn words_before_a_list_go_with_it() {
    let notes = Parsed::read("## Current State\nStill open:\n- a\n- b\n\nAnd: more\n");
    let without = |gone: &[&str]| {
        notes.without(|fact| matches!(fact, Fact::Line(line) if gone.contains(&line)))
    };
    assert_eq!(without(&["- a", "- b"]), "## Current State\n\nAnd: more");
    assert_eq!(
        without(&["- a"]),
        "## Current State\nStill open:\n- b\n\nAnd: more"
    );
}

#[test]
fn the_template_says_nothing() {
    let notes = Parsed::read(super::super::TEMPLATE);
    assert!(notes.is_blank());
    assert!(!Parsed::read("## Blockers\nnone\n").is_blank());
    assert_eq!(notes.without(|_| false), "");
    assert_eq!(notes.objective.or(notes.next), None);
}

/// Tests that the time grows with the length: with its square, one of these would take minutes.
#[test]
fn what_is_huge_is_read_at_once() {
    for piece in [
        "## Key Decisions\n- `a",
        " | a",
        " because",
        "a:\n",
        "- [ ] a\n  b\n",
        "```\na\n",
        "|a\n",
    ] {
        for start in [
            "",
            "## Key Decisions\n- `a",
            "## Last Action\n",
            "## Objective\n",
        ] {
            let text = format!("{start}{}", piece.repeat(250_000 / piece.len()));
            let notes = Parsed::read(&text);
            let _ = notes.without(|fact| matches!(fact, Fact::Line(_)));
        }
    }
}

#[test]
fn only_the_line_below_the_head_of_a_table_takes_it_back() {
    let blockers = |text: &str| Parsed::read(text).blockers.len();
    assert_eq!(blockers("## Blockers\n| What |\n|------|\n| a |\n"), 1);
    assert_eq!(blockers("## Blockers\n| a |\n|\n| b |\n"), 2);
}

/// Pieces of notes, so that most texts have sections, lists and fences.
fn notes() -> impl Strategy<Value = String> {
    let pieces = "(## Key Decisions\n|### x\n|## Blockers\n|## Next\n|## Objective\n|\\*\\*Next:\\*\\* |- |  - |1\\. |\\[ \\] |\\[x\\] |\\||---\n|```\n|é|漢字|a b| because |: |2026-01-02|\n|\n\n){0,40}";
    pieces.prop_map(|text: String| text)
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in "[-#*`~|<> \\[\\]xX:\n\u{a0}\u{3000}\u{e9}a-c]{0,200}") {
        let _ = Parsed::read(&text).without(|_| true);
    }

    /// Tests that facts given nowhere else stay: every word of the notes is left, but for words that hold a place.
    #[test]
    fn nothing_is_lost_that_is_not_said_elsewhere(text in notes()) {
        let parsed = Parsed::read(&text);
        let left = parsed.without(|_| false);
        let mut rest = left.as_str();
        for (at, line) in text.lines().enumerate() {
            let words = line.contains(['é', '漢', 'a']);
            // The head of a table holds no fact.
            let below = text.lines().nth(at + 1).unwrap_or_default().trim();
            let is_rule = below.starts_with('|')
                && below.contains('-')
                && below.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '));
            let head = is_rule && line.trim().starts_with('|');
            if words && !head && heading(line).is_none() && section_labelled(line.trim()).is_none() {
                let at = rest.find(line.trim());
                prop_assert!(at.is_some(), "{:?} is not in {:?}", line, left);
                rest = &rest[at.unwrap_or_default() + line.trim().len()..];
            }
        }
    }

    /// Tests that the lines left out are those read: with everything left out, the notes that remain hold no fact.
    #[test]
    fn what_is_left_holds_no_fact(text in notes()) {
        let left = Parsed::read(&text).without(|_| true);
        let again = Parsed::read(&left);
        prop_assert_eq!(again.items, [], "{}", left);
    }

    #[test]
    fn a_reason_and_what_it_is_for_are_parts_of_the_text(text in "[ a-z|:*()`—-]{0,40}") {
        let (what, why) = split_reason(&text);
        prop_assert!(why.is_empty() || text.contains(&why), "{:?} {:?}", text, why);
        prop_assert!(what.len() + why.len() <= text.len());
    }
}

#[test]
fn lines_below_an_item_may_be_indented_by_wide_blanks() {
    for (text, below) in [
        ("- [ ] a\n  - [ ] b\n\u{3000}c\n", "\u{3000}c"),
        ("- [ ] a\n  - [ ] b\n \u{a0}\u{a0}c\n", "\u{a0}\u{a0}c"),
        (" - [ ] b\n\u{a0}- c\n", "\u{a0}- c"),
        (
            "  - [ ] b\n\u{3000}```\n\u{3000}c\n\u{3000}```\n",
            "\u{3000}```",
        ),
    ] {
        let notes = Parsed::read(text);
        let last = notes.items.last().expect(text);
        assert_eq!((last.text.as_str(), last.notes[0].as_str()), ("b", below));
    }
}
