//! The part of a prompt that the human wrote themselves: without code fences and quotations, without the code, the logs and
//! the tables that were pasted between the words. A long paste is named by its size.

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

use regex::RegexSet;

use super::{
    facts::is_file,
    words::{Fences, is_quotation, item_number},
};
use pitstop_base::format::{bytes, count};

/// The text in place of a few pasted lines, or of the middle of a long prompt.
pub const LEFT_OUT: &str = "…";

/// The size of a paste, in bytes, above which it is named by its size, and of all pastes that may stay in one prompt.
pub(super) const LONG_PASTE: usize = 1_000;

/// The least number of lines of one form that are taken for pasted.
const ALIKE: usize = 8;

/// The number of equal lines in a paragraph that no person writes.
const REPEATED: usize = 3;

/// The number of blanks by which a line below pasted code is indented if it belongs to it.
const INDENT: usize = 4;

/// Returns the lines of a prompt that a person wrote, with a mark where something was pasted; empty if all of it was.
pub fn own_text(prompt: &str) -> String {
    replace_pastes(prompt, false)
}

/// Returns a prompt as it was given, with a mark in place of each long paste; empty if all of it was pasted.
pub fn without_long_pastes(prompt: &str) -> String {
    replace_pastes(prompt, true)
}

fn replace_pastes(prompt: &str, as_given: bool) -> String {
    let lines = classify_lines(prompt);
    if lines.iter().all(|one| one.0 != Kind::Prose) {
        return String::new();
    }
    let mut is_pasted = false;
    // An empty line belongs to the lines before it.
    let lines = lines.into_iter().map(|(kind, line)| {
        is_pasted = matches!(kind, Kind::Pasted | Kind::Shown) || kind == Kind::Blank && is_pasted;
        (is_pasted, line)
    });
    let lines: Vec<(bool, &str)> = lines.collect();
    let pasted = lines.iter().filter(|one| one.0).map(|one| one.1.len() + 1);
    let keeps_short = as_given && pasted.sum::<usize>() <= LONG_PASTE;
    let mut own = Vec::new();
    for stretch in lines.chunk_by(|a, b| a.0 == b.0) {
        let text = stretch.iter().map(|one| one.1).collect::<Vec<_>>();
        let (is_pasted, text) = (stretch[0].0, text.join("\n"));
        if is_pasted && text.len() > LONG_PASTE {
            own.push(name_paste(&text));
        } else if is_pasted && !keeps_short {
            own.push(LEFT_OUT.to_owned());
        } else if as_given {
            own.push(text);
        } else {
            let said = text.lines().map(str::trim).filter(|line| !line.is_empty());
            own.extend(said.map(str::to_owned));
        }
    }
    own.join("\n").trim().to_owned()
}

/// Returns the mark in place of a long paste: `[pasted: 120 lines, 8.1 KB]`.
fn name_paste(text: &str) -> String {
    let lines = count(text.trim().lines().count(), "line");
    format!("[pasted: {lines}, {}]", bytes(text.len() as u64))
}

/// Returns the mark for a text that the client gives as pasted, if it is long and more than a third of it is from a program.
pub(super) fn name_long_paste(text: &str) -> Option<String> {
    let lines = classify_lines(text);
    let count = |kind| lines.iter().filter(|one| one.0 == kind).count();
    let is_output = count(Kind::Prose) < count(Kind::Pasted) * 2;
    (text.len() > LONG_PASTE && is_output).then(|| name_paste(text))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Blank,
    Prose,
    Pasted,
    /// The line is in a code fence, or is a quotation.
    Shown,
}

impl Kind {
    fn is_text(self) -> bool {
        matches!(self, Self::Prose | Self::Pasted)
    }
}

/// Returns the lines of a prompt with their kinds.
fn classify_lines(prompt: &str) -> Vec<(Kind, &str)> {
    let (mut in_diff, mut fences) = (false, Fences::default());
    // Some clients and editors leave a lone carriage return at a line's end.
    let all = prompt.lines();
    let all = all.flat_map(|line| line.trim_end_matches('\r').split('\r'));
    let mut lines: Vec<(Kind, &str)> = all
        .map(|line| {
            if !fences.is_outside(line) || is_quotation(line) {
                return (Kind::Shown, line);
            }
            if line.trim().is_empty() {
                in_diff = false;
                return (Kind::Blank, "");
            }
            let begins_diff = ["diff --git ", "@@ -", "--- a/", "+++ b/"];
            in_diff = begins_diff.iter().any(|start| line.starts_with(start))
                || in_diff && line.starts_with(['+', '-', ' ', '\\', '@']);
            let pasted = in_diff || looks_printed(line.trim());
            (if pasted { Kind::Pasted } else { Kind::Prose }, line)
        })
        .collect();
    // A line by itself is a person's, however many numbers and signs are in it: `PORT=8081, not 8080!`
    let mut text = lines.iter_mut().filter(|one| one.0 != Kind::Blank);
    if let (Some(only), None) = (text.next(), text.next())
        && only.0 == Kind::Pasted
        && !has_printed_form(only.1.trim())
    {
        only.0 = Kind::Prose;
    }
    let margin = common_indent(&lines);
    // In each paragraph, a line between pasted lines, or indented below one, is pasted with them.
    let (mut start, mut behind_paste) = (0, false);
    while start < lines.len() {
        let length = lines[start..].iter().take_while(|one| one.0.is_text());
        let end = start + length.count();
        mark_pasted(&mut lines[start..end], margin, behind_paste);
        if let Some(last) = lines[start..end].last() {
            behind_paste = last.0 == Kind::Pasted;
        }
        start = end + 1;
    }
    lines
}

fn indent_of(line: &str) -> usize {
    let blanks = line.chars().take_while(|c| c.is_whitespace());
    blanks.map(|c| if c == '\t' { INDENT } else { 1 }).sum()
}

/// Returns the indent that every line but the first has at least: a prompt may come out of an indented text.
fn common_indent(lines: &[(Kind, &str)]) -> usize {
    let others = lines.iter().skip(1).filter(|one| one.0.is_text());
    others.map(|(_, line)| indent_of(line)).min().unwrap_or(0)
}

/// Marks the pasted lines of a paragraph; `behind_paste` is true if the paragraph before ended in pasted lines.
fn mark_pasted(paragraph: &mut [(Kind, &str)], margin: usize, behind_paste: bool) {
    // Several lines of `key: value` are a file of settings.
    let settings = paragraph.iter().filter(|(_, line)| is_setting(line));
    if settings.count() >= 2 {
        for one in paragraph.iter_mut().filter(|(_, line)| is_setting(line)) {
            one.0 = Kind::Pasted;
        }
    }
    mark_alike(paragraph, ALIKE, form_of);
    // What a program says of many things, and what it says again, in words alone.
    mark_alike(paragraph, 2 * ALIKE, template_of);
    mark_alike(paragraph, REPEATED, |line| Some(line.trim().to_owned()));
    // The paragraph may belong to a text of several paragraphs within code.
    let within = |line: &str| indent_of(line) >= margin + INDENT && !is_said_item(line);
    for one in paragraph.iter_mut().take_while(|one| within(one.1)) {
        if behind_paste {
            one.0 = Kind::Pasted;
        }
    }
    let is_pasted = |one: &(Kind, &str)| one.0 == Kind::Pasted;
    let first = paragraph.iter().position(is_pasted);
    let last = paragraph.iter().rposition(is_pasted);
    if let (Some(first), Some(last)) = (first, last) {
        // The human writes items of a list between examples, too.
        for one in &mut paragraph[first..=last] {
            if !is_said_item(one.1) {
                one.0 = Kind::Pasted;
            }
        }
        for one in &mut paragraph[last + 1..] {
            if indent_of(one.1) < margin + 2 || is_said_item(one.1) {
                break;
            }
            one.0 = Kind::Pasted;
        }
        // A comment above code: `# never call this`, `-- only for tests`.
        for at in (0..first).rev() {
            let line = paragraph[at].1.trim_start();
            if !["#", "--", ";"].iter().any(|mark| line.starts_with(mark)) {
                break;
            }
            paragraph[at].0 = Kind::Pasted;
        }
    }
}

/// Marks the lines that have their form in common with so many others: the rows of a table, and the lines of a program that says the
/// same of many things.
fn mark_alike(paragraph: &mut [(Kind, &str)], least: usize, form_of: fn(&str) -> Option<String>) {
    let mut forms: HashMap<String, usize> = HashMap::new();
    for form in paragraph.iter().filter_map(|one| form_of(one.1)) {
        *forms.entry(form).or_default() += 1;
    }
    forms.retain(|_, lines| *lines >= least);
    for one in paragraph.iter_mut().filter(|_| !forms.is_empty()) {
        if form_of(one.1).is_some_and(|form| forms.contains_key(&form)) {
            one.0 = Kind::Pasted;
        }
    }
}

/// Returns the form of a line: the number of its cells, or how its first word looks. A word of letters alone is a form only where
/// the line names a number or a path. A list has none.
fn form_of(line: &str) -> Option<String> {
    let cells = line.matches([',', ';', '\t', '|']).count();
    if cells >= 2 && !line.contains(", ") && !line.contains("; ") {
        return Some(cells.to_string());
    }
    let word = line.split_whitespace().next()?;
    if !word.contains(char::is_alphanumeric) || item_number(word).is_some() {
        return None;
    }
    if word
        .chars()
        .all(|c| c.is_alphabetic() || !c.is_ascii() || ",.:!?'".contains(c))
    {
        let names = line.contains(|c: char| c.is_ascii_digit() || matches!(c, '/' | '_'));
        return names.then(|| word.to_owned());
    }
    let kinds = word.chars().map(|c| match c {
        c if c.is_ascii_digit() => '0',
        c if c.is_alphabetic() => 'a',
        c => c,
    });
    let mut kinds: Vec<char> = kinds.collect();
    kinds.dedup();
    Some(kinds.into_iter().collect())
}

/// Returns the first word, the last one and the number of words of a line that has more than these two.
fn template_of(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [first, _, .., last] = words[..] else {
        return None;
    };
    Some(format!("{first} {last} {}", words.len()))
}

/// Reports whether a line is `key: value` of one word each.
fn is_setting(line: &str) -> bool {
    let line = line.trim().trim_start_matches("- ");
    let Some((key, value)) = line.split_once(':') else {
        return false;
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    key.chars().all(plain)
        && key.starts_with(|c: char| c.is_ascii_lowercase())
        && value.split_whitespace().count() <= 1
}

/// Reports whether a line is an item of a list, or a heading.
fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with(['-', '*', '+', '•', '–', '#'])
        || matches!(item_number(line), Some((1..=3, _)))
}

/// Reports whether a line is an item of a list and not a comment of code: `*` and `#` begin those, too.
fn is_said_item(line: &str) -> bool {
    is_item(line) && !line.trim_start().starts_with(['*', '#'])
}

/// The lines that programs print: what they begin with, levels of logs, exceptions, frames of a stack; what the runners of tests
/// print around a failure and at their end; and what git, make and the builders of images and packages say.
#[rustfmt::skip]
const PRINTED: [&str; 16] = [
    r"^(?i)(?:[●✓✔✕✖✗✘×❯⎯|]|error[:\[]|\[(?:error\]|warn|info\]|debug\])|(?:warning|info|debug|fatal|panic|caused by|= note|= help):)",
    r#"^(?i)(?:thread '|traceback|goroutine |npm (?:err!|warn)|file "|e   |(?:-->|==>|\$|>|@@|diff --git) |[+]{3}|---|===|/[/*]|\*/|"""|'''|<!--|</|#(?:!|include|\[)|import \{)"#,
    r"^at .*(?:\(.*:|:.*\()",
    r"^[\[\]:()|]*(?:INFO|DEBUG|WARN|ERROR|TRACE|FATAL)[\[\]:()|]*(?:\s|$)",
    // A row of a table.
    r"\S {3,}\S+(?: \S+)* {3,}\S",
    // `ValueError: must be positive`
    r"^(?:[!-~]+Error(?: \[\w+\])?|[!-~]*Exception):(?:\s|$)",
    // `FAIL src/a.test.ts`, `FAILED (failures=1)`, `Failed a.B [3 ms]`
    r"^(?:PASS|FAIL|FAILED|FAILURES!?)(?:$|: \S+ \(|\s+\S*[/.:(])|^(?:Passed|Failed) \S+ \[.*s\]$",
    // `Tests:  1 failed, 3 total`, `Tests run: 3, Failures: 1`, `3 tests, 1 failure`
    r"^(?:Tests|Test Suites|Test Files|Snapshots)(?: run)?:?\s+\d+(?:, [A-Z]| (?:failed|passed|skipped|todo|total))",
    r"^\d+ (?:passed|failed|examples?|tests?|runs?)(?:, \d+ (?:passed|failed|failures?|errors?|skipped|warnings?))+(?: in |,|$)",
    r"^(?:Ran (?:\d+ tests?|all test suites)|Finished in [\d.]+ s|(?:Time:|Duration) {2,}\d|exit status \d+$|test result: |failures:$|Failed examples:$|note: run with )",
    // `not ok 2 - adds`, `[ RUN      ] A.b`, `tests/test_a.py F [100%]`
    r"^(?:not )?ok \d+ - |^# (?:tests|pass|fail) +\d+$|^\[[ A-Z=-]{10}\]|\[ *\d+%\]$",
    r"^There (?:was|were) \d+ (?:failure|error)s?:$|^Failed asserting |^\d+\) (?:\S+::\S+$|.* › )|^\d+:\d+ +(?:error|warning) | at 0x[0-9a-f]+>$",
    // The head of a comparison, and a line of its data.
    r#"^(?:[-+] (?:Expected|Received|expected)(?:$| +[-+] )|[-+] +["'{].*[,{}]$)"#,
    r#"^(?:On branch \S+$|Your branch is (?:up to date|ahead|behind) |Changes (?:not staged|to be committed)|\(use "git |(?:modified|new file|deleted|renamed): {2,}|no changes added )"#,
    r"^(?:To \S+:\S+$|! \[|hint: |(?:g?make(?:\[\d+\])?|\w+: error|\w+: fatal error): |Plan: \d+ to add)",
    r"^Step \d+/\d+ :|returned a non-zero code: \d+$",
];

/// The lines of code or data, mostly by their ends: a sentence of a person does not end in a brace.
#[rustfmt::skip]
const CODE: [&str; 9] = [
    r#"(?:[\[(]|=>|\],|\];|[(){}=<>\["*\]].*;)$"#,
    r#"^["'{].*["']:"#,
    r#"^(?:def|func|fn|pub|elif|class)\s.*(?:[(){}=<>\["*\]]|:$)"#,
    r"^from(?:\s.*)? import ",
    r#"^import(?:\s+\S+)?$|^import\s.*["']"#,
    r"^(?:const|let|var|type|export|private|public|static|return|raise|throw|assert|if|for|while)(?: = |\s.*(?: = |=>|\(\)|\{$))",
    // A comment behind code, `x = 1; // must stay`, and a compiler's message behind a place.
    r"[;)}] //|; #|\)  #|\): (?:error|warning)",
    r"^<[A-Za-z].*>$",
    // `user@host:~/project$ command`
    r"^\S*(?:@\S*:|:\S*@)\S*[$#%](?:\s|$)",
];

/// Reports whether a line was printed by a program or is from a file of code, rather than written by the human.
pub fn looks_printed(line: &str) -> bool {
    has_printed_form(line) || !is_mostly_letters(&without_code(line))
}

/// Reports whether a line has a form that only programs and files of code have.
fn has_printed_form(line: &str) -> bool {
    static SETS: LazyLock<[RegexSet; 2]> = LazyLock::new(|| {
        [&PRINTED[..], &CODE].map(|all| RegexSet::new(all).expect("valid patterns"))
    });
    let plain = &*without_code(line);
    let is_open = plain.matches('{').count() != plain.matches('}').count();
    SETS[0].is_match(line)
        || is_placed(line)
        || SETS[1].is_match(plain)
        || is_open && plain.ends_with(['{', '}', ',', ';', ')'])
}

/// Reports whether a line begins with a time of day, at the most behind a date, or with a place in a file: `src/a.rs:12:5: error`,
/// or is one: `src/a.rs:12`.
fn is_placed(line: &str) -> bool {
    let is_time = |word: &str| {
        let digits = word.matches(|c: char| c.is_ascii_digit()).count();
        word.matches(':').count() >= 2 && digits >= 5
    };
    let mut words = line.split_whitespace().take(3);
    let mut parts = words.clone().next().unwrap_or_default().split(':');
    let (path, number) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_all = parts.next().is_some() || !line.trim().contains(' ');
    words.any(is_time) || is_file(path) && is_number && is_all
}

/// Reports whether a line is mostly letters and blanks, as prose is and a line of a log is not.
fn is_mostly_letters(line: &str) -> bool {
    let letters = line
        .chars()
        .filter(|c| c.is_alphabetic() || c.is_whitespace());
    letters.count() * 10 >= line.chars().count() * 6
}

/// Returns a line without the parts in backticks: a sentence with code in it is still a sentence.
fn without_code(line: &str) -> Cow<'_, str> {
    if line.matches('`').count() < 2 {
        return Cow::Borrowed(line);
    }
    line.split('`').step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_wrapped_lines_are_a_person_s() {
        let prompt = "Please port the importer and never touch the\nold one. Thanks\n- use tabs\n\n2. only the\n   importer";
        assert_eq!(
            own_text(prompt),
            "Please port the importer and never touch the\nold one. Thanks\n- use tabs\n2. only the\nimporter"
        );
    }

    #[test]
    fn pasted_code_and_logs_are_left_out() {
        for pasted in [
            "def run(self):\n    \"\"\"Always returns the same.\"\"\"\n    # never call this twice\n    return self._must",
            "// Never call this directly\nfunc (s *Server) must() error {\n\treturn nil // only here\n}",
            "2026-11-22 10:00:00 ERROR you must not do that\nYou should run the migrations first\n2026-11-22 10:00:01 INFO retry only once",
            "Traceback (most recent call last):\n  File \"a.py\", line 3, in must\n    raise ValueError(\"must be positive\")",
            "src/a.ts(3,4): error TS2322: must not be null;\nsrc/a.ts:12:5: error: cannot use it",
            "{\n  \"required\": true,\n  \"only\": [\"never\"]\n}",
            "restart: always\nuse: never",
            "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-never this\n+always that",
            "-- never drop this\nCREATE TABLE only (\n  id INT, -- must be unique\n  name TEXT\n);",
            "web:\n  restart: always\n  command: [\"never\", \"only\"]\n  image: nginx",
            "class A:\n    \"\"\"Stores rows.\n\n    Callers must never keep one.\n    \"\"\"",
            "  ● adds › must never be null\n\n    > 11 |   only(1);\nnpm ERR! you must not",
            "me@box:~/p$ make only\n<div class=\"never\">must</div>",
            "const only = require('never');\nexport default function must() {",
        ] {
            let prompt = format!("Have a look:\n\n{pasted}\n\nIt is broken.");
            let own = own_text(&prompt);
            assert_eq!(own, "Have a look:\n…\nIt is broken.", "{pasted}");
        }
    }

    #[test]
    fn what_programs_say_of_failures_is_left_out_directly_below_a_typed_line() {
        for pasted in [
            " FAIL  src/sum.test.ts\n  ● Sum › adds\n\n    expect(received).toBe(expected) // Object.is equality\n\n    Expected: 3\n    Received: 4\n\n    \
             > 11 |     expect(add(1)).toBe(3);\n         |                    ^\n\nTest Suites: 1 failed, 1 total\nTests:       1 failed, 1 total\n\
             Snapshots:   0 total\nTime:        1.2 s\nRan all test suites.",
            " FAIL  src/a.test.ts > adds\nAssertionError: expected 4 to be 3\n\n- Expected\n+ Received\n\n- 3\n+ 4\n\n ❯ src/a.test.ts:5:17\n\n Test Files  1 failed (1)",
            "==== FAILURES ====\n____ test_add ____\n\n    def test_add():\n        # never change this\n>       assert add(1) == 4\nE       assert 3 == 4\n\n\
             tests/test_a.py:5: AssertionError\n==== short test summary info ====\nFAILED tests/test_a.py::test_add - assert 3 == 4\n1 failed, 3 passed in 0.12s",
            "=== RUN   TestAdd\n--- FAIL: TestAdd (0.00s)\n    add_test.go:10: must never be zero\nFAIL\nexit status 1\nFAIL\texample.com/pkg\t0.003s",
            "failures:\n\n---- tests::adds stdout ----\nthread 'tests::adds' panicked at src/lib.rs:9:9:\nassertion `left == right` failed: must never differ\n  left: 3\n \
             right: 4\n\n\nfailures:\n    tests::adds\n\ntest result: FAILED. 2 passed; 1 failed",
            "There was 1 failure:\n\n1) Tests\\CartTest::testAdd\nFailed asserting that 4 matches expected 3.\n\n/app/tests/CartTest.php:12\n\nFAILURES!\n\
             Tests: 3, Assertions: 5, Failures: 1.",
            "[ RUN      ] CartTest.Adds\ncart_test.cc:12: Failure\nmust never differ\n[  FAILED  ] CartTest.Adds (0 ms)",
            "  Failed CartTests.Adds [12 ms]\n  Error Message:\n   must never differ\n  Stack Trace:\n     at CartTests.Adds() in /p/CartTests.cs:line 9",
            "not ok 2 - only adds\n  ---\n  expected: 3\n  ...\n1..2\n# tests 2\n# fail  1",
            "On branch main\nYour branch is up to date with 'origin/main'.\n\nChanges not staged for commit:\n  (use \"git add <file>...\" to update)\n\
             \tmodified:   src/a.rs\n\nno changes added to commit (use \"git add\")",
            "To example.org:a/b.git\n ! [rejected]        main -> main\nerror: failed to push some refs\nhint: You must integrate the remote changes first.",
            "make: *** No rule to make target 'never'.  Stop.\nmake[1]: Leaving directory '/p'\ncollect2: error: ld returned 1 exit status",
            &"connecting to the database\nyou must never run this as root\nworker started\ngiving up\n".repeat(20),
            &["Ada", "Bo", "Cy", "Di"].map(|one| format!("Fetching package {one} from the registry\n")).concat().repeat(4),
        ] {
            for (above, below) in [("\n", "\n"), ("\n\n", "\n\n")] {
                let prompt = format!("Fix it, and never push.{above}{}{below}Then test it, please.", pasted.trim_end());
                let own = own_text(&prompt);
                let left: Vec<&str> = own.lines().filter(|line| !line.starts_with(['…', '['])).collect();
                assert_eq!(left, ["Fix it, and never push.", "Then test it, please."], "{pasted}");
            }
        }
    }

    #[test]
    fn short_lines_of_a_person_are_no_paste_in_any_script() {
        for prompt in [
            "修复这个问题。\n不要动数据库。\n先写测试。\n然后更新文档。\n不要推送。\n完成后告诉我。\n保持简单。\n使用制表符。\n不要新依赖。",
            "バグを直して。\nテストを先に。\n簡単に。\nプッシュしないで。\n文書も。\n一つずつ。\n質問して。\n終わったら教えて。",
            "“Ask” comes first.\n“Never” stays.\n“Only” goes.\n“Must” stays.\n“Can” goes.\n“May” goes.\n“Will” stays.\n“Shall” goes.",
            "«Да» — первое.\n«Нет» — второе.\n«Может» — третье.\n«Всё» — потом.\n«Так» — нет.\n«Тут» — да.\n«Там» — нет.\n«Уже» — да.",
            "FAILED is printed twice, and never should be.\nTests fail on main: never skip them.\n3 tests fail.\nok 2 more things.\nYour branch is wrong.",
            "PORT=8081, not 8080!",
            "TTL=300, RETRIES=5 (max. 7): 2x!",
            "30 % → 40 %?",
            "👍👍 #3",
            "¿3 + 4 = 8? ¡No!",
            "Time: 5 minutes at most.\nFinished in a week, please.\n1) use std::env in a.rs\n2) never Foo::bar\nTests: 3 at least.",
        ] {
            assert_eq!(own_text(prompt), prompt);
        }
        let rules = "Users Orders Invoices Payments Carts Coupons Refunds Reviews Stores Taxes";
        let rules = rules
            .split(' ')
            .map(|one| format!("{one} should never be changed by the importer."));
        let rules = rules.collect::<Vec<_>>().join("\n");
        assert_eq!(own_text(&rules), rules);
    }

    #[test]
    fn what_is_said_around_a_paste_stands() {
        let prompt = "Never change the API, but fix this:\nTraceback (most recent call last):\n  File \"a.py\", line 3\n\
                      ValueError: no\nOnly touch a.py, please.";
        assert_eq!(
            own_text(prompt),
            "Never change the API, but fix this:\n…\nOnly touch a.py, please."
        );
    }

    #[test]
    fn an_indented_prompt_is_prose_and_line_ends_do_not_matter() {
        let prompt = "Build it.\r\n    Never push.\r\n    Only use tabs.\r";
        assert_eq!(own_text(prompt), "Build it.\nNever push.\nOnly use tabs.");
        assert_eq!(own_text("Never a.\rOnly b."), "Never a.\nOnly b.");
    }

    #[test]
    fn names_of_code_in_backticks_make_no_sentence_code() {
        let prompt = "Use `x_y(1)`, not `z[2]`.\nNever call `a::<T>(b, c)` or `d(e)`;";
        assert_eq!(own_text(prompt), prompt);
        assert!(!looks_printed("The limit = 5 MB"));
        assert!(!looks_printed("src/a.rs must never change"));
    }

    proptest::proptest! {
        #[test]
        fn of_any_prompt_own_words_are_left(text in "([a-zA-Z`.!?:;#*+ \n\r\t-]|never|e\\.g\\.|é|漢|\\{|\\}|```|@@ -|10:00:00){0,60}") {
            for word in own_text(&text).split_whitespace() {
                proptest::prop_assert!(word == LEFT_OUT || text.contains(word));
            }
        }
    }
}
