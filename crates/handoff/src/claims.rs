//! The check whether the claims of a handoff are found in its session.
//!
//! Each command, failure, test, file, commit, decision and quotation of the text is looked for in the transcript itself, and not in
//! the data that this program has parsed from it: this reveals an error of our own parsing, and text that was added to the message by hand.
//!
//! | section | the text that must be in the transcript |
//! |---|---|
//! | requests, prompts | each line, in the words of the human |
//! | objective, decisions, constraints, rejected ways, items, issues, plan | each line, and its reason separately |
//! | steps, failures, commands, failing tests, modified files | each command, line of output, name and path, unchanged |
//! | all others | paths, identifiers, references, code in backticks, quotations of three words and more |
//!
//! If a text was cut, each of its parts is looked for. The scratchpad and included files are not checked, because they have
//! files of their own; numbers are not either, because they count things that the transcript does not.

use std::borrow::Cow;

use super::check::CLOSING_HEADING;
use super::summary::evidence::{Claim, Sought, each_claim, plain_text};
use pitstop_transcript::{
    commands::{ShellMode, shell_mode},
    human::{
        FIRST_HEADING, LATEST_HEADING, OBJECTIVE_HEADING, PROMPTS_HEADING, as_listed, by_a_human,
        chosen_answers, parse_item,
    },
    prompts,
    prose::LEFT_OUT,
    record::{Splitter, parsed_records},
    steps::{self, IN_BACKGROUND, STEPS_HEADING, denial_reason, is_outcome},
    words::{Fences, without_images},
    work::{PLAN_HEADING, REFUSED_PLAN},
};

/// The sign in place of text that was cut.
const CUT: char = '…';

/// The line in place of the middle of a request; the lines beside it are cut, too.
const CUT_LINE: &str = "> …";

/// The section of what the agent stated, each item with the date at which it was taken in.
const STATED: &str = "## Constraints";

/// The section that holds sections of its own, and those that may follow it.
const NOTES: &str = "## Scratchpad";
const BEHIND_NOTES: [&str; 3] = ["## Masked secrets", "## Left out for size", CLOSING_HEADING];

/// The sections that are not about the session.
const OF_OTHERS: [&str; 4] = [
    NOTES,
    "## Included files",
    "## Masked secrets",
    "## Left out for size",
];

/// The sections whose lines are quoted words.
const SAID: [&str; 9] = [
    OBJECTIVE_HEADING,
    PLAN_HEADING,
    "## Next step",
    STATED,
    "## Key decisions",
    "## Rejected",
    "## Pending",
    "## Completed",
    "## Open issues",
];

/// The tools whose steps name only a file.
const FILE_TOOLS: [&str; 5] = ["Read", "Edit", "MultiEdit", "Write", "NotebookEdit"];

/// A line of a handoff with a claim that was not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfounded {
    /// The number of the line, from 1; the line with the marker is the first.
    pub line: usize,
    /// The text of the line.
    pub text: String,
    /// The claims in it that were not found.
    pub claims: Vec<String>,
}

/// A line with its claims.
#[derive(Debug)]
struct Line<'a> {
    number: usize,
    text: &'a str,
    claims: Vec<Claim>,
    /// True if the human must have said it.
    by_human: bool,
}

/// A handoff with its claims that have not been found yet in the session, whose bytes are passed in as pieces of any size.
#[derive(Debug)]
pub struct Claims<'a> {
    lines: Vec<Line<'a>>,
    splitter: Splitter,
    said: Sought,
    said_by_human: Sought,
}

impl<'a> Claims<'a> {
    /// Creates the claims of a handoff, of which none is found yet.
    pub fn of_handoff(handoff: &'a str) -> Self {
        let lines = lines_of(handoff);
        let sought = |by_human: bool| {
            let lines = lines.iter().filter(|line| line.by_human == by_human);
            Sought::new(lines.flat_map(|line| line.claims.iter().cloned()).collect())
        };
        Self {
            said: sought(false),
            said_by_human: sought(true),
            lines,
            splitter: Splitter::default(),
        }
    }

    /// Takes the next bytes of the transcript; returns whether anything is still to be found.
    pub fn push(&mut self, piece: &[u8]) -> bool {
        let (said, by_human) = (&mut self.said, &mut self.said_by_human);
        self.splitter
            .push(piece, |line| take_line(said, by_human, line));
        !(said.is_found() && by_human.is_found())
    }

    /// Searches text of git or of another source than the transcript.
    pub fn look_in(&mut self, text: &str) {
        self.said.look_in(text);
    }

    /// Ends the reading and returns the lines with claims that were not found.
    pub fn into_unfounded(mut self) -> Vec<Unfounded> {
        let (said, by_human) = (&mut self.said, &mut self.said_by_human);
        take_line(said, by_human, self.splitter.pending());
        let unfounded = self.lines.into_iter().filter_map(|line| {
            let sought = if line.by_human {
                &self.said_by_human
            } else {
                &self.said
            };
            let missing = line.claims.iter().filter(|claim| sought.still_seeks(claim));
            let mut claims: Vec<String> = missing.map(|claim| claim.text().to_owned()).collect();
            // A claim that is part of another one adds no information.
            let all = claims.clone();
            claims.retain(|one| !all.iter().any(|other| other != one && other.contains(one)));
            claims.dedup();
            (!claims.is_empty()).then(|| Unfounded {
                line: line.number,
                text: line.text.trim().to_owned(),
                claims,
            })
        });
        unfounded.collect()
    }
}

fn take_line(said: &mut Sought, by_human: &mut Sought, line: &[u8]) {
    if said.is_found() && by_human.is_found() {
        return;
    }
    for record in parsed_records(line) {
        said.look_in_record(&record);
        for answer in chosen_answers(&record) {
            by_human.look_in(&as_listed(&answer));
            // In the last steps it is the result of the call that has asked.
            said.look_in(&answer);
        }
        for image in prompts::image_sources(&record) {
            by_human.look_in(&image);
        }
        for text in by_a_human(&record) {
            match shell_mode(text) {
                Some(ShellMode::Ran(command)) => by_human.look_in(&format!("! {command}")),
                Some(ShellMode::Printed(output)) => said.look_in(&output),
                None => {}
            }
            let own = prompts::of_human(text).unwrap_or(Cow::Borrowed(text));
            by_human.look_in(&own);
            // Pasted text may be between two lines.
            by_human.look_in(&as_listed(&own));
            // The client's mark of a paste is in the middle of a line.
            said.look_in(&own);
        }
    }
}

/// Returns the lines of a handoff that have claims.
fn lines_of(handoff: &str) -> Vec<Line<'_>> {
    let mut fences = Fences::default();
    let mut heading = "";
    let mut lines = Vec::new();
    let all: Vec<&str> = handoff.lines().collect();
    for (at, text) in all.iter().copied().enumerate().skip(1) {
        let outside = fences.is_outside(text);
        if text.starts_with("## ") {
            // The scratchpad may have any heading.
            if heading != NOTES || BEHIND_NOTES.contains(&text.trim_end()) {
                heading = text.trim_end();
            }
            continue;
        }
        let is_mark = text.trim_start().starts_with("```");
        if is_mark || OF_OTHERS.contains(&heading) {
            continue;
        }
        let mut claims = Vec::new();
        let by_human = match (heading, outside) {
            (FIRST_HEADING | LATEST_HEADING, _) => {
                let text = text.trim_start_matches(['>', ' ']);
                let beside = [at.wrapping_sub(1), at + 1].map(|at| all.get(at).copied());
                if beside.contains(&Some(CUT_LINE)) && !text.is_empty() {
                    claims.push(Claim::Part(plain_text(text)));
                } else {
                    add_text(text, &mut claims);
                }
                true
            }
            (OBJECTIVE_HEADING, _) if has_cut_beside(&all, at) => {
                if !matches!(text.trim(), "" | LEFT_OUT) {
                    claims.push(Claim::Part(plain_text(text)));
                }
                false
            }
            (STATED, true) => {
                let said = parse_item(text).map_or_else(String::new, |said| said.text);
                add_text(&said, &mut claims);
                false
            }
            (PROMPTS_HEADING, _) => {
                let said = parse_item(text).filter(|_| !text.starts_with("- ("));
                let said = said.map_or_else(String::new, |said| said.text);
                add_text(without_images(&said), &mut claims);
                true
            }
            (STEPS_HEADING, false) => add_step(text, &mut claims),
            (_, false) => {
                // The note about omitted output, and a command that the recording does not have.
                let is_note = text.starts_with("... (") || text == "$ (unknown)";
                let text = text.strip_prefix("$ ").unwrap_or(text);
                add_text(if is_note { "" } else { text }, &mut claims);
                false
            }
            (_, true) => {
                add_prose(heading, text, &mut claims);
                false
            }
        };
        if !claims.is_empty() {
            lines.push(Line {
                number: at + 1,
                text,
                claims,
                by_human,
            });
        }
    }
    lines
}

/// Reports whether the line beside this one stands for the middle of a text, or this one does.
fn has_cut_beside(lines: &[&str], at: usize) -> bool {
    let mut near = at.saturating_sub(1)..=at + 1;
    near.any(|at| lines.get(at).is_some_and(|line| line.trim() == LEFT_OUT))
}

/// Adds the claim that a text is found unchanged, or, if it was cut, that each remaining part is found.
fn add_text(text: &str, claims: &mut Vec<Claim>) {
    let text = plain_text(text);
    if text.contains(CUT) {
        let parts = text.split(CUT).map(str::trim);
        let parts = parts.filter(|part| part.chars().count() > 2);
        claims.extend(parts.map(|part| Claim::Part(part.to_owned())));
    } else if !text.is_empty() {
        claims.push(Claim::Text(text));
    }
}

/// Adds the claims of a line of the last steps; returns whether the human must have said it.
fn add_step(line: &str, claims: &mut Vec<Claim>) -> bool {
    if line.starts_with("  ") {
        let line = line.trim();
        // These lines give the number of omitted lines, and the outcome.
        let is_note = line.starts_with(CUT) && line.ends_with(CUT) || line == IN_BACKGROUND;
        if !is_note && !is_outcome(line) {
            let mut mark = ["+ ", "- "].into_iter();
            let own = mark.find_map(|mark| line.strip_prefix(mark));
            // The name of an argument may precede it.
            match (own, line.split_once(": ")) {
                (Some(own), _) => add_text(own, claims),
                (None, Some((_, value))) if line.contains(CUT) => add_text(value, claims),
                (None, Some((_, value))) => {
                    claims.push(Claim::Either(plain_text(line), plain_text(value)));
                }
                (None, None) => add_text(line, claims),
            }
        }
        return false;
    }
    let mark = |mark: &str| line.strip_prefix(mark);
    if let Some(text) = [steps::RAN, steps::SAID, steps::REPORTED]
        .into_iter()
        .find_map(mark)
    {
        add_text(text, claims);
    } else if let Some(text) = mark(steps::ASKED) {
        add_text(text, claims);
        return true;
    } else {
        add_call(line, claims);
    }
    false
}

/// Adds the claims of the call of a tool: its name with a file, or with the first of its arguments.
fn add_call(text: &str, claims: &mut Vec<Claim>) {
    let (tool, rest) = text.split_once(' ').unwrap_or((text, ""));
    let is_of_file = FILE_TOOLS.contains(&tool);
    let is_tool = tool.starts_with(|c: char| c.is_ascii_uppercase()) || tool.starts_with("mcp__");
    if is_of_file {
        let file = rest.split(", lines ").next().unwrap_or(rest);
        let file = file.split(", from line ").next().unwrap_or(file);
        let placed = file.rsplit_once(':');
        let placed = placed.filter(|(_, line)| line.bytes().all(|byte| byte.is_ascii_digit()));
        let file = placed.map_or(file, |(file, _)| file);
        claims.push(Claim::Word(file.to_owned()));
    } else if is_tool && rest.contains(CUT) {
        add_text(rest, claims);
    } else if is_tool && !rest.is_empty() {
        claims.push(Claim::Either(plain_text(text), plain_text(rest)));
    } else {
        add_text(text, claims);
    }
}

/// Adds the claims of a line outside of fences.
fn add_prose(heading: &str, line: &str, claims: &mut Vec<Claim>) {
    let item = line.trim_start_matches(['>', ' ']);
    let item = item.strip_prefix("- ").unwrap_or(item);
    if item == REFUSED_PLAN {
        return;
    }
    if SAID.contains(&heading) {
        let mut marks = "[ ] |[x] |[low] |[medium] |[high] |[critical] ".split('|');
        let marked = marks.find_map(|mark| item.strip_prefix(mark));
        let item = marked.unwrap_or(item);
        let item = item.strip_prefix("resolved: ").unwrap_or(item);
        let (item, why) = item.split_once(" (because: ").unwrap_or((item, ""));
        let item = item.split(" (in ").next().unwrap_or(item);
        add_text(item, claims);
        add_text(why.strip_suffix(')').unwrap_or(why), claims);
        return;
    }
    match heading {
        "## Failing tests" => add_test(item, claims),
        "## Modified files" => add_modified(item, claims),
        "## Tried and did not work" => {
            if let Some((_, why)) = item.split_once("`: ") {
                add_text(denial_reason(why).unwrap_or(why), claims);
            }
        }
        "## Git" => {
            let (commit, subject) = item.split_once(' ').unwrap_or((item, ""));
            if commit.len() > 6 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                claims.push(Claim::Commit(commit.to_owned()));
                add_text(subject, claims);
            }
        }
        _ => {}
    }
    each_claim(line, &mut |claim, place| {
        // Next to a cut there are parts of words.
        let is_whole = !line[..place.start].trim_end().ends_with(CUT)
            && !line[place.end..].trim_start().starts_with(CUT);
        if is_whole && !matches!(claim, Claim::Number(_)) {
            claims.push(claim);
        }
    });
    for code in quoted_texts(line, '`').filter(|code| code.contains(' ')) {
        add_call(code, claims);
    }
    // What the closing words quote is whole in the sections of the objective and the next step.
    let is_closing = heading == CLOSING_HEADING && line.starts_with("Carry on with ");
    let line = if is_closing { "" } else { line };
    for said in quoted_texts(line, '"').filter(|said| said.split_whitespace().count() > 2) {
        add_text(said, claims);
    }
}

/// Returns the texts between two of these marks.
fn quoted_texts(line: &str, mark: char) -> impl Iterator<Item = &str> {
    let last = line.matches(mark).count();
    let parts = line.split(mark).enumerate();
    let inner = parts.filter(move |(at, _)| at % 2 == 1 && *at < last);
    inner.map(|(_, part)| part.trim())
}

/// Adds the claims of a failing test: its name, or each of the names that it consists of.
fn add_test(item: &str, claims: &mut Vec<Claim>) {
    let is_note = item.starts_with("last run: ")
        || item.starts_with("(failing tests of ")
        || item.starts_with("and ") && item.ends_with(" more");
    if is_note {
        return;
    }
    let name = item.strip_prefix("fixed in the last run: ").unwrap_or(item);
    let name = name.strip_suffix(" (passed before)").unwrap_or(name);
    let placed = name.rsplit_once(" in ");
    let placed = placed.filter(|(_, place)| !place.contains(' '));
    let name = placed.map_or(name, |(name, _)| name);
    // The form `package TestName`, `package.TestName` or `crate module::name`.
    let go = ["Test", "Fuzz", "Example"];
    let mut marks = go.iter().filter_map(|go| name.find(&format!(".{go}")));
    let at = name.find(' ').or_else(|| marks.next());
    let of_package = at.map(|at| (&name[..at], &name[at + 1..]));
    let of_package = of_package.filter(|(_, test)| {
        let is_go = go.iter().any(|go| test.starts_with(go));
        !test.contains(' ') && (test.contains("::") || is_go)
    });
    match of_package {
        Some((package, test)) => {
            claims.extend([package, test].map(|word| Claim::Word(word.to_owned())));
        }
        None => {
            for part in name.split([CUT, '›', '>']) {
                add_text(part, claims);
            }
        }
    }
}

/// Adds the claims of `modified, committed: path` and `renamed: from → to`.
fn add_modified(item: &str, claims: &mut Vec<Claim>) {
    let is_count = item.starts_with(|c: char| c.is_ascii_digit());
    if let Some((_, paths)) = item.split_once(": ").filter(|_| !is_count) {
        let paths = paths.split(" → ").map(|path| path.trim().to_owned());
        claims.extend(paths.map(Claim::Word));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        Generator, PreservedState, Sources,
        preserved::{Item, Origin},
        tests::marker,
    };
    use pitstop_transcript::{human::HumanWords, work::Work};

    const PROMPT: &str = "Port the parser to the new grammar. Never touch main: it is live.";

    fn session() -> Vec<Value> {
        let of = |kind: &str, content: Value| json!({ "type": kind, "cwd": "/home/ada/p", "gitBranch": "topic", "message": { "content": content } });
        let call = |id: &str, tool: &str, input: Value| {
            let block = json!({ "type": "tool_use", "id": id, "name": tool, "input": input });
            of("assistant", json!([block]))
        };
        let result = |id: &str, output: &str, failed: bool| {
            let block = json!({ "type": "tool_result", "tool_use_id": id, "content": output, "is_error": failed });
            of("user", json!([block]))
        };
        let printed = "test parse::tests::reads_all ... FAILED\n\nerror: 1 test failed";
        vec![
            of("user", json!(PROMPT)),
            of(
                "assistant",
                json!([{ "type": "text", "text":
                "I run its tests first.\n\nDECISION: use SQLite | two processes write" }]),
            ),
            call(
                "1",
                "Bash",
                json!({ "command": "cargo test -p core --\n  --nocapture" }),
            ),
            result("1", printed, true),
            call(
                "2",
                "Edit",
                json!({ "file_path": "/home/ada/p/src/parse.rs",
                "old_string": "fn read_all() {\n    once()\n}", "new_string": "fn read_all() {\n    twice()\n}" }),
            ),
            result("2", "The file has been updated.", false),
            call(
                "3",
                "Grep",
                json!({ "pattern": "fn parse", "glob": "*.rs" }),
            ),
            result("3", "src/grammar.rs:12:fn parse_rule() {}", false),
            call("4", "Bash", json!({ "command": "git push" })),
            json!({ "type": "user", "toolDenialKind": "user-rejected", "message": { "content": [
                { "type": "tool_result", "tool_use_id": "4", "is_error": true, "content": "The user doesn't want to \
                  proceed with this tool use. To tell you how to proceed, the user said:\nNot before Monday" },
            ] } }),
            json!({ "type": "user", "toolUseResult": { "questions": [], "answers": { "Which base?": "SQLite" } }, "message": {
                "content": [{ "type": "tool_result", "tool_use_id": "5", "content": "answered" }] } }),
            of("user", json!("Only one commit, please")),
            of(
                "user",
                json!("<bash-input>git switch <topic> && make</bash-input>"),
            ),
            of(
                "user",
                json!(
                    "<bash-stdout>Switched to &lt;topic&gt; &amp; made</bash-stdout><bash-stderr></bash-stderr>"
                ),
            ),
            of("user", json!("Now the tests, please")),
        ]
    }

    /// Returns the handoff of that session, as the product makes it.
    fn handoff() -> String {
        let (mut words, mut work) = (HumanWords::default(), Work::default());
        for record in session() {
            words.take_record(&record);
            work.take_record(&record);
        }
        let mut state = PreservedState::default();
        state.set_objective(PROMPT, Origin::Human);
        state.feed_human(&words);
        state.record_decision("use SQLite", "two processes write", None, Origin::Signal);
        state.test_state.failing = vec!["parse::tests::reads_all".to_owned()];
        state.modified_files = vec![Item::new("src/parse.rs", Origin::Git)];
        let marker = marker();
        let sources = Sources {
            work: Some(&work.report()),
            latest_request: "Now the tests, please",
            git: &[
                "branch topic".to_owned(),
                "0a1b2c3d4 port the lexer".to_owned(),
            ],
            ..Sources::new(&marker, &state)
        };
        Generator::default()
            .generate(&sources, 50_000)
            .unwrap()
            .text
    }

    fn unfounded(handoff: &str) -> Vec<Unfounded> {
        let mut claims = Claims::of_handoff(handoff);
        for record in session() {
            claims.push(format!("{record}\n").as_bytes());
        }
        claims.look_in("0a1b2c3d4e5f60718293 port the lexer");
        claims.into_unfounded()
    }

    /// Returns the handoff with a line added below a heading, or in the fence below it, and the number of that line.
    fn edited(heading: &str, line: &str) -> (String, usize) {
        let mut lines: Vec<String> = handoff().lines().map(str::to_owned).collect();
        let is_step = heading == STEPS_HEADING;
        let found = lines.iter().position(|have| have == heading);
        let at = found.unwrap_or_else(|| {
            let closing = lines.iter().position(|have| have == "## Carry on").unwrap();
            lines.splice(
                closing..closing,
                [heading.to_owned(), String::new(), String::new()],
            );
            closing
        });
        let fence = |at: usize| {
            lines[at..]
                .iter()
                .position(|line| line.starts_with("```"))
                .unwrap()
        };
        let at = if is_step { at + fence(at) + 1 } else { at + 2 };
        lines.insert(at, line.to_owned());
        (lines.join("\n"), at + 1)
    }

    #[test]
    fn an_honest_handoff_claims_nothing_of_its_own() {
        let text = handoff();
        for part in [
            "\n## Key decisions\n\n- use SQLite",
            "\n## Last steps\n",
            "\n    + ",
            "\n## Failing tests\n\n- parse",
            "\n## Git\n\n- branch topic\n",
            "\n## What the human said\n\n- ",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert_eq!(unfounded(&text), [], "{text}");
    }

    #[test]
    fn what_was_written_into_it_is_reported_with_its_line() {
        const STEPS: &str = STEPS_HEADING;
        for (heading, line) in [
            // Files.
            (
                "## Work at hand",
                "- src/invented.rs:12 (changed): read_all",
            ),
            ("## Work at hand", "- src/parse.rs: read_invented"),
            ("## Modified files", "- modified, committed: docs/Invented"),
            (
                "## Modified files",
                "- renamed: src/parse.rs → src/invented",
            ),
            (STEPS, "Edit src/invented:7"),
            ("## Carry on", "Go on in `src/invented.rs` first."),
            // Commands.
            ("## Commands", "- `cargo test -p invented`"),
            (STEPS, "$ cargo test -p invented"),
            (STEPS, "Grep fn invented"),
            (
                "## Tried and did not work",
                "- `make invented`: error: 1 test failed",
            ),
            ("## Carry on", "Run `cargo test -p invented` first."),
            // Failures.
            (
                "## Tried and did not work",
                "- `cargo test -p core`: error: 2 tests failed",
            ),
            (STEPS, "    error: 2 tests failed"),
            // Tests.
            ("## Failing tests", "- parse::tests::invented"),
            (
                "## Failing tests",
                "- tests/test_a.py::test_all in sub (passed before)",
            ),
            ("## Failing tests", "- core TestInvented"),
            ("## Failing tests", "- example.com/core.TestInvented"),
            (
                "## Failing tests",
                "- fixed in the last run: renders the footer",
            ),
            ("## Failing tests", "- last run: `cargo test -p invented`"),
            // Commits and decisions.
            ("## Git", "- 0a1b2c3d5 port the lexer"),
            ("## Git", "- 0a1b2c3d4 port the invented"),
            (
                "## Key decisions",
                "- use Postgres (because: two processes write)",
            ),
            ("## Key decisions", "- use SQLite (because: it is small)"),
            // Quotations, also of what the agent said.
            (
                "## What the human said",
                "- 2026-11-20: Never touch topic: it is live.",
            ),
            (
                "## What the human said",
                "- 2026-11-20, pinned: I run its tests first.",
            ),
            ("## Latest request", "> Now the tests, thanks"),
            ("## First request", "> error: 1 test failed"),
            (STEPS, "human: Now the invented tests"),
            (STEPS, "agent: I run its examples first."),
            (STEPS, "report: Agent \"look\" finished"),
            ("## Objective", "Port the invented parser."),
            ("## Carry on", "You said: \"never touch the topic branch\"."),
        ] {
            let (text, number) = edited(heading, line);
            let found = unfounded(&text);
            assert_eq!(found.len(), 1, "{line}: {found:?} in {text}");
            assert_eq!((found[0].line, &*found[0].text), (number, line.trim()));
            assert!(!found[0].claims.is_empty());
        }
    }

    #[test]
    fn a_claim_in_a_form_of_our_own_is_looked_for_without_it() {
        for (heading, line, count) in [
            ("## Failing tests", "- topic.TestCase/one", 1),
            ("## Failing tests", "- error.Testing", 1),
            ("## Last steps", "report: I run its tests first.", 0),
            (
                "## Tried and did not work",
                "- `git push`: not allowed: I run its tests first.",
                0,
            ),
            (
                "## Tried and did not work",
                "- `git push`: refused by the human",
                0,
            ),
            (
                "## Tried and did not work",
                "- `git push`: not allowed: never heard",
                1,
            ),
            (
                "## Latest request",
                "> Never touch ma\n> …\n> opic: it is live.",
                1,
            ),
            (
                "## Latest request",
                "> Never touch ma\n> …\n> in: it is live.",
                0,
            ),
            (
                "## Carry on",
                "Carry on with \"a task in code, without its marks\".",
                0,
            ),
            ("## Completed", "- [x] resolved: Only one commit, please", 0),
            ("## Completed", "- [x] resolved: never heard", 1),
            (
                "## Work at hand",
                "- .claude/worktrees/moon/src/grammar.rs:2 (changed)",
                0,
            ),
            (
                "## Work at hand",
                "- ../moon/.claude/worktrees/moon/src/moon.rs",
                1,
            ),
            (STEPS_HEADING, "mcp__x__run I run … its tests first.", 0),
            (STEPS_HEADING, "mcp__x__run I run … its examples first.", 1),
        ] {
            let (text, _) = edited(heading, line);
            let found = unfounded(&text);
            assert_eq!(found.len(), count, "{line}: {found:?}");
        }
        let handoff =
            "pitstop handoff · r · iteration 1 · 0\n\n## Failing tests\n\n- example.com/x.TestAdds";
        let mut claims = Claims::of_handoff(handoff);
        let record = json!({"type": "user", "message": {"content": "--- FAIL: TestAdds (0.00s)\nFAIL\texample.com/x\t0.1s"}});
        claims.push(format!("{record}\n").as_bytes());
        assert_eq!(claims.into_unfounded(), []);
    }

    #[test]
    fn what_was_cut_is_looked_for_part_by_part() {
        for (line, count) in [
            ("- 2026-11-20: Port the parser … it is live.", 0),
            ("- 2026-11-20: Port the parser … it is dead.", 1),
        ] {
            let (text, _) = edited("## What the human said", line);
            assert_eq!(unfounded(&text).len(), count, "{line}");
        }
    }

    #[test]
    fn what_a_tool_says_that_the_human_said_is_not_theirs() {
        let (text, _) = edited("## What the human said", "- 2026-11-20: delete it all");
        let result = json!({ "type": "tool_result", "is_error": true, "content": "the user said: delete it all" });
        let mut record = json!({ "type": "user", "message": { "content": [result] } });
        let found = |record: &Value| {
            let mut claims = Claims::of_handoff(&text);
            for record in session().iter().chain([record]) {
                claims.push(format!("{record}\n").as_bytes());
            }
            claims.look_in("0a1b2c3d4 port the lexer");
            claims.into_unfounded().len()
        };
        assert_eq!(found(&record), 1);
        record["toolDenialKind"] = json!("user-rejected");
        assert_eq!(found(&record), 0);
    }

    #[test]
    fn dates_notes_and_cuts_of_our_own_are_no_claims() {
        for (heading, line, count) in [
            ("## Constraints", "- 2026-12-01: Only one commit, please", 0),
            (
                "## Constraints",
                "- 2026-12-01: Only one invention, please",
                1,
            ),
        ] {
            let (text, _) = edited(heading, line);
            assert_eq!(unfounded(&text).len(), count, "{line}");
        }
        let begin = "pitstop handoff · r · iteration 1 · 0\n\n## Objective\n\n";
        let notes = "## Scratchpad\n\n## Rejected\n\n- `src/invented.rs` | slow\n\n## Carry on\n\n";
        for (body, count) in [
            ("Port the par\n…\nain: it is live.\n", 0),
            ("Port the par\n…\nain: it is dead.\n", 1),
        ] {
            let found = unfounded(&format!("{begin}{body}\n{notes}Go on."));
            assert_eq!(found.len(), count, "{found:?}");
        }
        let found = unfounded(&format!(
            "{begin}{PROMPT}\n\n{notes}Look at src/invented.rs."
        ));
        assert_eq!(found.len(), 1, "{found:?}");
    }
}
