//! What may stand in the scratchpad's file, and in a message of signals.

use pitstop_base::clean;
use pitstop_handoff::{
    scratchpad::{HumanLines, Parsed, merge},
    signal,
};

use super::{Item, item, outcomes};

#[test]
fn whatever_stands_in_the_scratchpad_is_read_and_no_line_of_a_person_s_is_lost() {
    let reported = outcomes(&items(), |input| {
        let text = clean::typed(&String::from_utf8_lossy(input));
        let notes = Parsed::read(&text);
        assert_eq!(
            notes,
            Parsed::read(&text.replace('\n', "\r\n").replace("\r\r\n", "\r\n")),
            "with CRLF"
        );
        // Someone adds a line at the end and the agent one at the start.
        let mine = format!("{text}\n- [ ] mine.\n");
        let theirs = format!("- [ ] theirs.\n{text}");
        let mut human = HumanLines::default();
        human.record_edit(&text, &mine);
        let merged = human.restore_lost(&mine, &merge(&text, &mine, &theirs));
        for line in ["- [ ] mine.", "- [ ] theirs."] {
            assert!(merged.lines().any(|one| one == line), "{line} is lost");
        }
        let signals = signal::parse_signals(&text).len();
        let empty = if notes.is_blank() { ", blank" } else { "" };
        format!(
            "{} items, {} decisions, {} blockers, {signals} signals{empty}{}{}",
            notes.items.len(),
            notes.decisions.len(),
            notes.blockers.len(),
            if notes.objective.is_some() {
                ", an objective"
            } else {
                ""
            },
            if notes.next.is_some() {
                ", a next step"
            } else {
                ""
            },
        )
    });
    insta::assert_snapshot!("bad_notes", reported);
}

pub(super) fn items() -> Vec<Item> {
    const GOOD: &str = "# Objective\nport it\n\n# Tasks\n- [x] one\n- [ ] two\n\n# Key Decisions\n- a | because b\n\n# Blockers\n- c\n";
    let mut all = Vec::new();
    for (name, text) in [
        ("empty", String::new()),
        ("white space", " \t\n \n\t".to_owned()),
        ("line feeds", "\n".repeat(50_000)),
        ("carriage returns", "\r".repeat(1_000)),
        ("CRLF", GOOD.replace('\n', "\r\n")),
        ("CR alone", GOOD.replace('\n', "\r")),
        ("mixed ends", "- [ ] a\r\n- [ ] b\n- [ ] c\r- [ ] d".to_owned()),
        ("no last line feed", GOOD.trim_end().to_owned()),
        ("a mark of byte order", format!("\u{feff}{GOOD}")),
        ("NULs", GOOD.replace(' ', "\0")),
        ("escapes", GOOD.replace("port", "\x1b[2J\x1b]0;evil\x07port")),
        ("C1", GOOD.replace("port", "\u{9b}2Jport")),
        ("a paste's end", GOOD.replace("port", "\x1b[201~port")),
        ("from right to left", GOOD.replace("port", "\u{202e}port")),
        ("separators of lines", GOOD.replace('\n', "\u{2028}")),
        ("form feeds", GOOD.replace('\n', "\u{c}\n")),
        ("a line of 100 KB", format!("{GOOD}- [ ] {}", "x".repeat(100_000))),
        ("a word of marks", format!("- [ ] e{}", "\u{301}".repeat(5_000))),
        ("5 000 items", "- [ ] again\n".repeat(5_000)),
        ("500 levels of lists", (0..500).map(|n| format!("{}- [ ] {n}\n", "  ".repeat(n))).collect()),
        ("500 levels of quotes", format!("{} - [ ] a", ">".repeat(500))),
        ("500 levels of headings", format!("{} Objective\nx", "#".repeat(500))),
        ("a fence that is never closed", format!("```\n{GOOD}")),
        ("a fence of another length", format!("````\n```\n{GOOD}")),
        ("a fence of tildes", format!("~~~ rust\n{GOOD}~~~\n- [ ] out")),
        ("a fence in a list", "- [ ] a\n  ```\n  - [ ] b\n  ```\n- [ ] c".to_owned()),
        ("1 000 fences", "```\n".repeat(1_001)),
        ("a comment that is never closed", format!("<!-- {GOOD}")),
        ("HTML", "<ul><li>[ ] a</li></ul><script>x</script>".to_owned()),
        ("indented code", GOOD.lines().map(|line| format!("    {line}\n")).collect()),
        ("tabs", GOOD.lines().map(|line| format!("\t{line}\n")).collect()),
        ("a box without a space", "- []a\n-[ ] b\n- [ ]c\n- [ ]".to_owned()),
        ("a box of another letter", "- [X] a\n- [*] b\n- [-] c\n- [✓] d\n- [  ] e\n- [xx] f".to_owned()),
        ("numbers", "1. [ ] a\n2) [x] b\n99999999999999999999. [ ] c\n-1. [ ] d".to_owned()),
        ("stars and pluses", "* [ ] a\n+ [x] b\n*[ ] c\n** [ ] d".to_owned()),
        ("rules", "---\n***\n___\n- - -\n===".to_owned()),
        ("headings without a text", "#\n##\n### \n#Objective\n# Objective #\nx".to_owned()),
        ("headings by underlines", "Objective\n=========\nx\n\nTasks\n-----\n- [ ] a".to_owned()),
        ("a heading twice", format!("{GOOD}{GOOD}")),
        ("headings in other case", GOOD.to_uppercase()),
        ("headings with colons", GOOD.replace("# Tasks", "**Tasks:**").replace("# Objective\n", "Objective: ")),
        ("a conflict of git", "<<<<<<< ours\n- [ ] a\n=======\n- [ ] b\n>>>>>>> theirs".to_owned()),
        ("a conflict's marks of our length", format!("{} a\n- [ ] x\n{}\n{} b", "<".repeat(53), "=".repeat(53), ">".repeat(53))),
        ("a patch", "--- a\n+++ b\n@@ -1 +1 @@\n-[ ] a\n+[ ] b".to_owned()),
        ("JSON", r#"{"objective": "x", "items": ["- [ ] a"]}"#.to_owned()),
        ("YAML in front", format!("---\ntitle: x\n---\n{GOOD}")),
        ("a table", "| Objective | x |\n|---|---|\n| - [ ] a | b |".to_owned()),
        ("template's braces", GOOD.replace("port it", "{{ objective }}{% raw %}")),
        ("our own marker", "pitstop handoff · run x · iteration 2 · nonce 00000002\n- [ ] a".to_owned()),
        ("signals", "SCRATCHPAD:\n- [ ] a\nSIGNAL: done\nOBJECTIVE: x\nDECISION: a | b\nISSUE[high]: y\nDONE: z\nTODO: q".to_owned()),
        ("signals in a fence", "```\nOBJECTIVE: x\n```".to_owned()),
        ("signals of nothing", "OBJECTIVE:\nDECISION:\nDECISION: |\nISSUE[]:\nISSUE[huge]: x\nSTATE =\nSTATE x=".to_owned()),
        ("10 000 signals", "TODO: again\n".repeat(10_000)),
        ("a scratchpad in a scratchpad", "SCRATCHPAD:\nSCRATCHPAD:\nSCRATCHPAD:\n- [ ] a".to_owned()),
        ("boxes in a sentence", "see - [ ] a and [x] b\ntext - [ ] c".to_owned()),
        ("links", "- [x](https://a) b\n- [ ](c) d\n- [ ][e]".to_owned()),
        ("the person's own line", "- [ ] mine.\n".to_owned()),
        ("both lines", "- [ ] theirs.\n- [ ] mine.\n".to_owned()),
    ] {
        all.push(item(name, text));
    }
    for (name, bytes) in [
        ("bad UTF-8", &b"- [ ] a\xff\xfe\n- [x] \xc3\x28"[..]),
        ("Latin 1", b"# T\xe2ches\n- [ ] caf\xe9"),
        ("UTF-16", b"\xff\xfe-\0 \0[\0 \0]\0 \0a\0"),
        ("a program", b"\x7fELF\x02\x01\x01\0\0\0\0\0\xff\n- [ ] a"),
        (
            "compressed",
            b"\x1f\x8b\x08\0\0\0\0\0\0\x03KLJ\x06\0\xc2A$5",
        ),
        ("half a character at the end", b"- [ ] a\xf0\x9f\x98"),
    ] {
        all.push(item(name, bytes));
    }
    all
}
