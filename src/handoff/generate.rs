//! Preserved state through the template, cut to size.
//!
//! The template (`assets/handoff.md`, or the user's own) only places finished sections; values are data to
//! it and never parsed. Cutting drops whole sections in order of worth, then lines of what is left, and
//! never the objective, the items to do or the closing words (DESIGN 5).

use std::{borrow::Cow, collections::BTreeMap};

use minijinja::{Environment, UndefinedBehavior, syntax::SyntaxConfig};

use super::{Handoff, Marker, PreservedState, quality, redact::redact, sendable, signal};
use crate::{clean, scratchpad};

/// The template that is compiled in.
pub const DEFAULT_TEMPLATE: &str = include_str!("../../assets/handoff.md");

/// The closing instruction.
pub const CONTINUATION: &str = "Carry on with the first pending item that is not done. Do not repeat completed work. \
Check the state of the files before you change them. Keep the scratchpad up to date as you go, so that the next handoff is \
as good as this one.";

/// How many decisions are told, the latest ones (DESIGN 5).
const MAX_DECISIONS: usize = 5;

/// How many tests are told by name, and how many lines of what must not be redone.
const MAX_NAMES: usize = 50;

/// The most that is told of one included file, in bytes.
pub const FILE_CAP: usize = 8 * 1024;

/// A template that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("handoff template, line {line}: {message}")]
pub struct TemplateError {
    /// The line, from 1; 0 where the engine does not tell.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}

impl From<minijinja::Error> for TemplateError {
    fn from(error: minijinja::Error) -> Self {
        Self {
            line: error.line().unwrap_or(0),
            message: error.to_string(),
        }
    }
}

/// How large a handoff may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The whole message, in bytes.
    pub max_state_size: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_state_size: 50_000,
        }
    }
}

/// A file that the user wants the next session to have before it asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncludedFile {
    /// Its path in the project.
    pub name: String,
    /// What is told of it.
    pub text: String,
    /// Whether that is less than all of it.
    pub cut: bool,
}

impl IncludedFile {
    /// Takes the start of a file: whole lines, in at most [`FILE_CAP`] bytes.
    #[must_use]
    pub fn new(name: &str, text: &str) -> Self {
        let kept = cut_lines(text, FILE_CAP);
        Self {
            name: name.to_owned(),
            cut: kept.len() < text.trim_end().len(),
            text: kept,
        }
    }
}

/// Everything a handoff is made of.
#[derive(Clone, Debug)]
pub struct Sources<'a> {
    /// The marker line.
    pub marker: &'a Marker,
    /// The preserved facts.
    pub state: &'a PreservedState,
    /// The notes as they stand.
    pub scratchpad: &'a str,
    /// Branch and recent commits, one per line, already fit for display.
    pub git: &'a [String],
    /// The summary of the session, if there is one.
    pub summary: Option<&'a str>,
    /// The last shell commands with their output, as a strategy told them.
    pub recent_commands: &'a str,
    /// Files that the user wants to be told.
    pub included_files: &'a [IncludedFile],
    /// Whether the tests are told.
    pub include_tests: bool,
    /// What is said behind the closing instruction; never cut.
    pub closing: &'a str,
    /// What the checks compare with.
    pub ground: quality::Ground<'a>,
}

impl<'a> Sources<'a> {
    /// The two that every handoff has; the others are empty.
    #[must_use]
    pub const fn new(marker: &'a Marker, state: &'a PreservedState) -> Self {
        Self {
            marker,
            state,
            scratchpad: "",
            git: &[],
            summary: None,
            recent_commands: "",
            included_files: &[],
            include_tests: true,
            closing: "",
            ground: quality::Ground {
                missing: &[],
                head: None,
            },
        }
    }
}

/// A section of the message that may be cut. The order is the order of worth: the first goes first.
const CUT_ORDER: [(&str, &str); 12] = [
    ("included_files", "included files"),
    ("recent_commands", "recent commands"),
    ("state", "state"),
    ("git", "git branch and commits"),
    ("files", "modified files"),
    ("completed", "completed items"),
    ("do_not_redo", "do-not-redo list"),
    ("summary", "summary"),
    ("failing_tests", "failing tests"),
    ("issues", "open issues"),
    ("decisions", "key decisions"),
    ("scratchpad", "scratchpad"),
];

/// Turns preserved state into handoffs with one template.
#[derive(Debug)]
pub struct Generator {
    engine: Environment<'static>,
}

impl Default for Generator {
    fn default() -> Self {
        Self::new(DEFAULT_TEMPLATE).expect("the compiled-in template is checked by a test")
    }
}

impl Generator {
    /// Compiles a template; an unknown variable or a broken tag is an error with its line.
    pub fn new(template: &str) -> Result<Self, TemplateError> {
        let mut engine = Environment::new();
        engine.set_undefined_behavior(UndefinedBehavior::Strict);
        engine.set_syntax(SyntaxConfig::builder().trim_blocks(true).build()?);
        engine.add_template_owned("handoff", template.to_owned())?;
        let generator = Self { engine };
        // A fault inside a section shows only when there is something to tell in it.
        let full = CUT_ORDER.iter().map(|(key, _)| *key);
        let full = full
            .chain(["objective", "pending"])
            .map(|key| (key, "-".to_owned()));
        generator.render(&values(&full.collect(), "marker", &["-".to_owned()]))?;
        let empty = generator.render(&values(&BTreeMap::new(), "marker", &[]))?;
        if !empty.trim_start().starts_with("marker") {
            let message = "expected `{{ marker }}` as the first line".to_owned();
            return Err(TemplateError { line: 1, message });
        }
        Ok(generator)
    }

    fn render(&self, values: &BTreeMap<&str, String>) -> Result<String, minijinja::Error> {
        self.engine.get_template("handoff")?.render(values)
    }

    /// Makes the message, its secrets masked, cut to the limit.
    pub fn generate(
        &self,
        sources: &Sources<'_>,
        limits: Limits,
    ) -> Result<Handoff, TemplateError> {
        let max = limits.max_state_size;
        let marker = sources.marker.to_string();
        let mut sections = sections(sources);
        let most_worth = CUT_ORDER.iter().rev().map(|(key, _)| *key);
        let mut kept = 0;
        for key in ["objective", "pending", "scratchpad"]
            .into_iter()
            .chain(most_worth.skip(1))
        {
            let Some(body) = sections.get_mut(key).filter(|body| !body.is_empty()) else {
                continue;
            };
            // What is worth more is too large by itself: this is left out in any case, and only has to be named.
            let lost = kept > max && !matches!(key, "objective" | "pending" | "scratchpad");
            *body = if lost { "-".to_owned() } else { fit(body, max) };
            kept += body.len();
        }
        let mut left_out = Vec::new();
        let render = |sections: &BTreeMap<&'static str, String>, left_out: &[String]| {
            self.render(&values(sections, &marker, left_out))
                .map(|text| text.trim().to_owned())
        };
        let mut size: usize = sections.values().map(String::len).sum();
        let mut text = None;
        for (key, name) in CUT_ORDER {
            // What is larger by its sections alone need not be put together.
            if size <= max {
                let whole = render(&sections, &left_out)?;
                if whole.len() <= max {
                    text = Some(whole);
                    break;
                }
            }
            // The notes are the human's own words: they lose lines, not their place.
            if key == "scratchpad" {
                continue;
            }
            let body = sections.insert(key, String::new()).unwrap_or_default();
            if !body.is_empty() {
                size -= body.len();
                left_out.push(format!("- {name}"));
            }
        }
        let text = if let Some(text) = text {
            text
        } else {
            shorten(&mut sections, &mut left_out, max, &render)?;
            render(&sections, &left_out)?
        };
        // Everything in it is sendable already, but the template may be the user's.
        let text = sendable(&text);
        let warnings = quality::check(sources, &text, limits);
        Ok(Handoff {
            marker: sources.marker.clone(),
            text,
            left_out,
            warnings,
        })
    }
}

/// A section's body as it may be sent: no more than could ever be told of it, without controls, secrets masked. It
/// happens before sizes are compared, so that what the preview shows is what is counted and sent.
fn fit(body: &str, max: usize) -> String {
    let end = body.floor_char_boundary(max.saturating_add(1));
    redact(&clean::typed(&body[..end])).trim_end().to_owned()
}

/// Takes lines off the parts that may not be left out. Objective and pending items keep a quarter of the message each.
fn shorten(
    sections: &mut BTreeMap<&'static str, String>,
    left_out: &mut Vec<String>,
    max: usize,
    render: &impl Fn(&BTreeMap<&'static str, String>, &[String]) -> Result<String, minijinja::Error>,
) -> Result<(), TemplateError> {
    for (key, name, least) in [
        ("scratchpad", "scratchpad", 0),
        ("objective", "objective", max / 4),
        ("pending", "pending items", max / 4),
    ] {
        let whole = render(sections, left_out)?;
        if whole.len() <= max {
            break;
        }
        let body = sections.get(key).cloned().unwrap_or_default();
        if body.is_empty() {
            continue;
        }
        let note = format!("- the end of the {name}");
        left_out.push(note);
        let fixed = render(sections, left_out)?.len().saturating_sub(body.len());
        let kept = cut_lines(&body, max.saturating_sub(fixed).max(least));
        if kept.len() == body.len() {
            left_out.pop();
        }
        sections.insert(key, kept);
    }
    Ok(())
}

/// The head of a text in at most `budget` bytes: whole lines, or of the first line whole characters.
fn cut_lines(text: &str, budget: usize) -> String {
    if text.len() <= budget {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(budget);
    let head = &text[..end];
    head.rfind('\n')
        .map_or(head, |line| &head[..line])
        .trim_end()
        .to_owned()
}

fn values(
    sections: &BTreeMap<&'static str, String>,
    marker: &str,
    left_out: &[String],
) -> BTreeMap<&'static str, String> {
    let mut values: BTreeMap<&'static str, String> = CUT_ORDER
        .iter()
        .map(|(key, _)| (*key, String::new()))
        .collect();
    values.extend([("objective", String::new()), ("pending", String::new())]);
    values.extend(sections.iter().map(|(key, body)| (*key, body.clone())));
    values.insert("marker", marker.to_owned());
    values.insert("left_out", left_out.join("\n"));
    values
        .entry("continuation")
        .or_insert_with(|| CONTINUATION.to_owned());
    values
}

fn sections(sources: &Sources<'_>) -> BTreeMap<&'static str, String> {
    let state = sources.state;
    let files = list("modified: ", &state.modified_files)
        .into_iter()
        .chain(list("created: ", &state.created_files));
    let first = state.decisions.len().saturating_sub(MAX_DECISIONS);
    let decisions = state.decisions[first..]
        .iter()
        .map(|d| match d.rationale.as_str() {
            "" => format!("- {}", one_line(&d.description)),
            why => format!(
                "- {} (because: {})",
                one_line(&d.description),
                one_line(why)
            ),
        });
    let issues = state
        .known_issues
        .iter()
        .filter(|issue| !issue.addressed)
        .map(|issue| {
            format!(
                "- [{}] {}",
                issue.severity.word(),
                one_line(&issue.description)
            )
        });
    let custom = state
        .custom
        .iter()
        .map(|(k, v)| format!("- {} = {}", one_line(k), one_line(v.as_str())));
    let mut sections = BTreeMap::from([
        (
            "objective",
            state
                .current_objective
                .as_ref()
                .map_or_else(String::new, |item| item.text.clone()),
        ),
        ("completed", joined(list("[x] ", &state.completed_items))),
        ("pending", joined(list("[ ] ", &state.pending_items))),
        ("files", joined(files)),
        ("decisions", joined(decisions)),
        ("issues", joined(issues)),
        ("failing_tests", joined(tests(sources))),
        ("do_not_redo", joined(do_not_redo(state))),
        ("included_files", included(sources.included_files)),
        (
            "recent_commands",
            match sources.recent_commands.trim_end() {
                "" => String::new(),
                text => fenced("", text),
            },
        ),
        ("git", joined(list("", sources.git))),
        ("state", joined(custom)),
        (
            "summary",
            sources.summary.unwrap_or_default().trim().to_owned(),
        ),
        (
            "scratchpad",
            // Headings with nothing below them tell nobody anything.
            match sources.scratchpad.trim() {
                notes if scratchpad::is_blank(notes) => String::new(),
                notes => notes.to_owned(),
            },
        ),
    ]);
    if !sources.closing.is_empty() {
        let closing = format!("{CONTINUATION}\n\n{}", sources.closing);
        sections.insert("continuation", closing);
    }
    sections
}

fn list(prefix: &str, items: &[impl AsRef<str>]) -> Vec<String> {
    items
        .iter()
        .map(|item| format!("- {prefix}{}", one_line(item.as_ref())))
        .collect()
}

/// Everything that some reader takes for the end of a line.
const LINE_ENDS: [char; 7] = [
    '\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}',
];

/// An item is one line, so that a commit subject or a file name cannot add headings of its own.
fn one_line(text: &str) -> Cow<'_, str> {
    // Nearly every item is ASCII, where they are one range of bytes.
    let ends_a_line = if text.is_ascii() {
        text.bytes().any(|byte| matches!(byte, b'\n'..=b'\r'))
    } else {
        text.contains(LINE_ENDS)
    };
    if !ends_a_line {
        return Cow::Borrowed(text.trim());
    }
    let parts = text.split(LINE_ENDS).map(str::trim);
    let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
    Cow::Owned(parts.join(" "))
}

/// The lines of a list. One that reads like a signal stands in quotes, so that an assistant who repeats it says nothing.
fn joined(lines: impl IntoIterator<Item = String>) -> String {
    let mut text = String::new();
    for line in lines {
        if !text.is_empty() {
            text.push('\n');
        }
        let mark = ["- [ ] ", "- [x] ", "- "]
            .into_iter()
            .find(|mark| line.starts_with(mark));
        match mark.filter(|_| signal::is_signal(&line)) {
            Some(mark) => text.extend([mark, "`", &line[mark.len()..], "`"]),
            None => text.push_str(&line),
        }
    }
    text
}

/// The failing tests by name, which of them passed before, and what the last run has fixed.
fn tests(sources: &Sources<'_>) -> Vec<String> {
    let state = &sources.state.test_state;
    if !sources.include_tests {
        return Vec::new();
    }
    let mut lines: Vec<String> = state
        .failing
        .iter()
        .take(MAX_NAMES)
        .map(|name| {
            let regressed = state.regressed.contains(name);
            let word = if regressed { " (passed before)" } else { "" };
            format!("- {}{word}", one_line(name))
        })
        .collect();
    if state.failing.len() > MAX_NAMES {
        lines.push(format!("- and {} more", state.failing.len() - MAX_NAMES));
    }
    if state.failing.is_empty() && !state.passing.is_empty() {
        lines.push(format!("- none of {} known tests", state.passing.len()));
    }
    for name in state.fixed.iter().take(MAX_NAMES) {
        lines.push(format!("- fixed in the last run: {}", one_line(name)));
    }
    lines
}

/// What is done and must not be done again: the latest completed items, and issues that were dealt with.
fn do_not_redo(state: &PreservedState) -> Vec<String> {
    let first = state.completed_items.len().saturating_sub(MAX_NAMES);
    let done = state.completed_items[first..]
        .iter()
        .map(|item| format!("- {}: done", one_line(item.as_str())));
    let resolved: Vec<_> = state
        .known_issues
        .iter()
        .filter(|issue| issue.addressed)
        .map(|issue| format!("- {}: resolved", one_line(&issue.description)))
        .collect();
    let first = resolved.len().saturating_sub(MAX_NAMES);
    done.chain(resolved[first..].iter().cloned()).collect()
}

/// The files, each under its name in a fence.
fn included(files: &[IncludedFile]) -> String {
    files
        .iter()
        .map(|file| {
            let cut = if file.cut { " (its start)" } else { "" };
            let name = one_line(&file.name);
            let quote = if signal::is_signal(&name) { "`" } else { "" };
            format!(
                "### {quote}{name}{quote}{cut}\n\n{}",
                fenced("", &file.text)
            )
        })
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// A text in a code fence that is longer than any in it, so that nothing of it can end the fence; nor does a signal in
/// it count.
fn fenced(word: &str, text: &str) -> String {
    // What is taken out before it is sent may stand between two runs that are one then.
    let text = super::sendable(text);
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{word}\n{}\n{fence}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_what_its_text_becomes() {
        assert_eq!(fenced("", "``\u{85}`"), "````\n```\n````");
    }

    fn marker() -> Marker {
        Marker {
            run: "r1".to_owned(),
            iteration: 1,
            nonce: "0a1b2c3d".to_owned(),
        }
    }

    fn generate(state: &PreservedState, notes: &str, git: &[String], max: usize) -> Handoff {
        let marker = marker();
        let sources = Sources {
            scratchpad: notes,
            git,
            ..Sources::new(&marker, state)
        };
        Generator::default()
            .generate(
                &sources,
                Limits {
                    max_state_size: max,
                },
            )
            .unwrap()
    }

    fn filled(items: usize) -> PreservedState {
        let mut state = PreservedState::default();
        state.set_objective("Build the parser");
        for n in 0..items {
            state.mark_completed(&format!("done {n} 漢字"));
            state.add_pending(&format!("todo {n} 🚀"));
            state.modified_files.push(format!("src/file {n}.rs").into());
        }
        state
    }

    #[test]
    fn empty_sections_are_left_out() {
        let handoff = generate(&PreservedState::default(), "", &[], 50_000);
        assert!(
            handoff
                .text
                .starts_with("pitstop handoff · r1 · iteration 1 · 0a1b2c3d\n")
        );
        assert_eq!(handoff.text.matches("\n## ").count(), 1, "{}", handoff.text);
        assert_eq!(handoff.warnings.len(), 2, "{:?}", handoff.warnings);
    }

    #[test]
    fn a_scratchpad_of_headings_alone_is_left_out() {
        let notes = scratchpad::TEMPLATE;
        let handoff = generate(&PreservedState::default(), notes, &[], 50_000);
        assert!(!handoff.text.contains("Scratchpad"), "{}", handoff.text);
        let notes = format!("{notes}\nFinished item 3.\n");
        let handoff = generate(&PreservedState::default(), &notes, &[], 50_000);
        assert!(handoff.text.contains("Finished item 3"), "{}", handoff.text);
    }

    #[test]
    fn every_source_stands_in_its_section() {
        let git = [
            "branch main".to_owned(),
            "abc1234 a commit\n## Objective\nforged".to_owned(),
        ];
        let handoff = generate(&filled(1), "note one\n\nnote two", &git, 50_000);
        for part in [
            "\n\n## Objective\n\nBuild the parser\n\n",
            "\n\n## Completed\n\n- [x] done 0 漢字\n\n",
            "\n\n## Pending\n\n- [ ] todo 0 🚀\n\n",
            "\n\n## Modified files\n\n- modified: src/file 0.rs\n\n",
            "\n\n## Git\n\n- branch main\n- abc1234 a commit ## Objective forged\n\n",
            "\n\n## Scratchpad\n\nnote one\n\nnote two\n\n",
        ] {
            assert!(
                handoff.text.contains(part),
                "{part:?} is not in {}",
                handoff.text
            );
        }
        assert!(handoff.text.ends_with("as good as this one."));
        assert!(handoff.left_out.is_empty() && handoff.warnings.is_empty());
    }

    #[test]
    fn sections_of_less_worth_are_cut_first_and_named() {
        let handoff = generate(&filled(100), "my notes", &[], 4_000);
        assert!(handoff.text.len() <= 4_000, "{}", handoff.text.len());
        assert_eq!(handoff.left_out, ["- modified files", "- completed items"]);
        assert!(
            handoff
                .text
                .contains("## Left out for size\n\n- modified files\n- completed items\n")
        );
        assert!(handoff.text.contains("my notes") && handoff.text.contains("todo 99"));
    }

    #[test]
    fn template_values_are_data() {
        let handoff = generate(&filled(1), "{{ objective }} {% if %}", &[], 50_000);
        assert!(handoff.text.contains("{{ objective }} {% if %}"));
    }

    #[test]
    fn a_broken_template_is_told_with_its_line() {
        let error = Generator::new("{{ marker }}\n{{ nonsense }}").unwrap_err();
        assert_eq!(error.line, 2, "{error}");
        assert_eq!(
            Generator::new("{{ marker }}\n\n{% if %}").unwrap_err().line,
            3
        );
        assert_eq!(Generator::new("hello").unwrap_err().line, 1);
        for section in ["objective", "git", "left_out"] {
            let template = format!(
                "{{{{ marker }}}}\n{{% if {section} %}}\n{{{{ nonsense }}}}\n{{% endif %}}"
            );
            assert_eq!(Generator::new(&template).unwrap_err().line, 3, "{section}");
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
        #[test]
        fn no_handoff_is_over_its_size(items in 0usize..60, notes in "\\PC{0,3000}", max in 1500usize..6000) {
            let handoff = generate(&filled(items), &notes, &[], max);
            assert!(handoff.text.len() <= max, "{} > {max}", handoff.text.len());
            assert!(handoff.text.contains("Build the parser"));
            assert!(handoff.text.ends_with("as good as this one."));
            assert_eq!(items > 0, handoff.text.contains("## Pending"));
        }
    }
}
