//! The check for parts of a session that its handoff lacks: prompts of the human, and recent facts of the work.
//!
//! Text is compared with text, without a model: a prompt is in the message if all its words are, in their order; a file, an
//! identifier, a reference or a command if it is there unchanged. This shows what was lost in a handoff that was edited, cut
//! for size, or made by a template of the user's own. Text in other words counts as missing.

use std::{collections::HashSet, fmt};

use memchr::memmem;

use super::{
    PreservedState,
    sections::one_line,
    summary::make_harmless,
    work::{ALSO_NAMED, REFERENCES, failure_text, file_line, prompt_line, tried_line, why_start},
};
use pitstop_transcript::{
    human::{PROMPTS_HEADING, Said, listed_in},
    prose::LEFT_OUT,
    steps::Step,
    words::{on_one_line, plain_key},
    work::{
        BRANCH, COMMANDS_HEADING, FAILURE_HEADING, Failure, FileAtHand, TRIED_HEADING,
        WORK_HEADING, WorkAtHand,
    },
};

/// The heading before which sections are added.
pub(super) const CLOSING_HEADING: &str = "## Carry on";

/// A kind of fact.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "lowercase")]
pub enum Class {
    /// A file that was read or changed.
    File,
    /// An identifier.
    #[strum(serialize = "identifier")]
    Name,
    /// An issue, a commit, a branch or an address.
    Reference,
    /// A shell command.
    Command,
    /// A call that failed and has not worked since.
    Failure,
}

impl Class {
    /// All kinds, in the order in which they are listed.
    pub const ALL: &[Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Returns the word for one of it, for scripts.
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// Returns the heading of a list of it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::File => "Files",
            Self::Name => "Identifiers",
            Self::Reference => "References",
            Self::Command => "Commands",
            Self::Failure => "Failures",
        }
    }
}

/// A recent fact of the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkFact {
    /// A file, without its identifiers.
    File(FileAtHand),
    /// An identifier, with the path of its file if it belongs to one.
    Name(String, Option<String>),
    /// A reference.
    Reference(String),
    /// A command.
    Command(String),
    /// The last failure.
    LastFailure(Failure),
    /// An earlier failure.
    Tried(Failure),
}

impl WorkFact {
    /// Returns the kind of the fact.
    pub const fn class(&self) -> Class {
        match self {
            Self::File(_) => Class::File,
            Self::Name(..) => Class::Name,
            Self::Reference(_) => Class::Reference,
            Self::Command(_) => Class::Command,
            Self::LastFailure(_) | Self::Tried(_) => Class::Failure,
        }
    }

    /// Returns the facts of the work at hand, each file before its identifiers.
    fn all_of(work: &WorkAtHand) -> impl Iterator<Item = Self> {
        let of_file = |file: &FileAtHand| {
            let path = file.path.clone();
            let itself = Self::File(FileAtHand {
                names: Vec::new(),
                ..file.clone()
            });
            let names = file.names.clone().into_iter();
            std::iter::once(itself)
                .chain(names.map(move |name| Self::Name(name, Some(path.clone()))))
        };
        let names = work.names.iter().cloned();
        work.files
            .iter()
            .flat_map(of_file)
            .chain(names.map(|name| Self::Name(name, None)))
            .chain(work.references.iter().cloned().map(Self::Reference))
            .chain(work.commands.iter().cloned().map(Self::Command))
            .chain(work.last_failure.iter().cloned().map(Self::LastFailure))
            .chain(work.tried.iter().cloned().map(Self::Tried))
    }

    /// Reports whether it is in the message, given as `text` with each run of blanks reduced to one, or in one of its steps.
    fn is_in(&self, text: &str, has_branch: bool, steps: &[Step]) -> bool {
        let is_step = |call: &str, wrong: bool| {
            let mut steps = steps.iter().filter(|step| !wrong || step.went_wrong());
            steps.any(|step| step.shows(call))
        };
        match self {
            Self::File(file) => is_in_text(text, &file.path),
            // Git's own section has the current branch; the transcript's may be an earlier one.
            Self::Reference(branch) if branch.starts_with(BRANCH) && has_branch => true,
            Self::Name(text_of, _) | Self::Reference(text_of) => is_in_text(text, text_of),
            Self::Command(command) => is_in_text(text, command) || is_step(command, false),
            Self::LastFailure(failure) | Self::Tried(failure) => {
                let line = failure.lines.first();
                let is_listed = is_in_text(text, &failure.call)
                    && line.is_none_or(|line| is_in_text(text, line));
                is_listed || is_step(&failure.call, true) && text.contains(&why_start(failure))
            }
        }
    }
}

/// Formats it as one line of a list: `name (src/a.rs)`.
impl fmt::Display for WorkFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::File(file) => file_line(file).trim_start_matches("- ").to_owned(),
            Self::Name(name, Some(file)) => format!("{name} ({file})"),
            Self::Name(text, None) | Self::Reference(text) | Self::Command(text) => text.clone(),
            Self::LastFailure(failure) | Self::Tried(failure) => {
                tried_line(failure).trim_start_matches("- ").to_owned()
            }
        };
        f.write_str(&make_harmless(&text))
    }
}

/// The result of the check of a handoff; see the top of this file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// The number of prompts of the human.
    pub prompts: usize,
    /// The prompts that the handoff lacks, in full, oldest first.
    pub missing_prompts: Vec<Said>,
    /// The number of recent facts of the work.
    pub facts: usize,
    /// The facts that the handoff lacks.
    pub missing_facts: Vec<WorkFact>,
}

impl Check {
    /// Reports whether nothing is missing.
    pub const fn is_complete(&self) -> bool {
        self.missing_prompts.is_empty() && self.missing_facts.is_empty()
    }

    /// Returns the missing facts of a class.
    pub fn missing_of(&self, class: Class) -> impl Iterator<Item = &WorkFact> {
        let facts = self.missing_facts.iter();
        facts.filter(move |fact| fact.class() == class)
    }

    /// Returns everything that is missing, as a document with a section for each class.
    pub fn to_document(&self) -> String {
        let prompts: Vec<String> = self
            .missing_prompts
            .iter()
            .map(Self::shown_prompt)
            .collect();
        let facts = Class::ALL.iter().map(|class| {
            let facts = self.missing_of(*class).map(ToString::to_string);
            (class.title(), facts.collect())
        });
        let sections = std::iter::once(("Prompts of yours", prompts)).chain(facts);
        let sections = sections.filter(|(_, items)| !items.is_empty());
        let section = |(title, items): (&str, Vec<String>)| {
            let add = |text: String, item: &String| text + "\n- " + item;
            let items = items.iter().fold(String::new(), add);
            format!("## {title}\n{items}")
        };
        sections.map(section).collect::<Vec<_>>().join("\n\n")
    }

    /// Returns a missing prompt as it is shown, with its date.
    pub fn shown_prompt(prompt: &Said) -> String {
        make_harmless(prompt_line(prompt, false).trim_start_matches("- "))
    }
}

/// Formats the result as one line: `2 prompts of yours and 3 of 41 recent facts are not in it`.
impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let (prompts, facts) = (self.missing_prompts.len(), self.missing_facts.len());
        let mut parts = Vec::new();
        if self.is_complete() {
            let (prompts, facts) = (self.prompts, self.facts);
            let (a, b) = (plural(prompts), plural(facts));
            return write!(
                f,
                "nothing is missing: {prompts} prompt{a} of yours and {facts} recent fact{b} were looked for"
            );
        }
        if prompts > 0 {
            parts.push(format!("{prompts} prompt{} of yours", plural(prompts)));
        }
        if facts > 0 {
            let of = self.facts;
            parts.push(format!("{facts} of {of} recent fact{}", plural(of)));
        }
        let verb = if prompts + facts == 1 { "is" } else { "are" };
        write!(f, "{} {verb} not in it", parts.join(" and "))
    }
}

/// Compares a handoff with the state and the work of the session.
pub fn check(text: &str, state: &PreservedState, work: &WorkAtHand) -> Check {
    let own: Vec<&Said> = state.prompts().map(|one| &one.said).collect();
    let keys = |said: Vec<Said>| said.into_iter().map(|said| plain_key(&said.text));
    let listed: HashSet<String> = keys(listed_in(text)).collect();
    // Most prompts are found in the list: the rest of the text is searched only for the others.
    let mut words = None;
    let mut is_said = |prompt: &Said| {
        listed.contains(&plain_key(&prompt.text))
            || has_in_order(words.get_or_insert_with(|| words_of(text)), &prompt.text)
    };
    let facts: Vec<WorkFact> = WorkFact::all_of(work).collect();
    // Among the steps a command may have several lines.
    let (line, has_branch) = (on_one_line(text), names_a_branch(text));
    let steps = Step::read_all(text);
    let missing = facts
        .iter()
        .filter(|fact| !fact.is_in(&line, has_branch, &steps));
    let missing_facts = missing.cloned().collect();
    Check {
        prompts: own.len(),
        missing_prompts: own
            .into_iter()
            .filter(|prompt| !is_said(prompt))
            .cloned()
            .collect(),
        facts: facts.len(),
        missing_facts,
    }
}

/// Returns the words of a message between blanks, without the marks of the lines that it quotes.
fn words_of(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.strip_prefix('>').unwrap_or(line));
    format!(" {} ", plain_key(&lines.collect::<Vec<_>>().join("\n")))
}

/// Reports whether the parts of a listed prompt are in a message, in their order: a section of its own has also what the list
/// leaves out between them, perhaps from the middle of a word on.
fn has_in_order(mut words: &str, prompt: &str) -> bool {
    let parts = prompt.split(LEFT_OUT).map(plain_key);
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    let parts = format!(" {} ", parts.join(LEFT_OUT));
    parts.split(LEFT_OUT).all(|part| {
        let found = words.split_once(part);
        found.is_some_and(|(_, rest)| {
            words = rest;
            true
        })
    })
}

/// Returns the body of a handoff with everything that the check found missing added, each in its section. Existing text stays.
pub fn with_missing(body: &str, check: &Check) -> String {
    let mut lines: Vec<String> = body.lines().map(str::to_owned).collect();
    let prompts = check.missing_prompts.iter();
    add_lines(
        &mut lines,
        PROMPTS_HEADING,
        prompts.map(|said| prompt_line(said, false)),
    );
    for fact in &check.missing_facts {
        match fact {
            WorkFact::File(file) => add_lines(&mut lines, WORK_HEADING, [file_line(file)]),
            WorkFact::Name(name, file) => {
                let head = file.as_deref().unwrap_or(ALSO_NAMED);
                add_to_line(&mut lines, head, name);
            }
            WorkFact::Reference(reference) => add_to_line(&mut lines, REFERENCES, reference),
            WorkFact::Command(command) => {
                let line = format!("- `{}`", one_line(command));
                add_lines(&mut lines, COMMANDS_HEADING, [line]);
            }
            WorkFact::LastFailure(failure) => {
                let text = make_harmless(&failure_text(failure));
                add_lines(&mut lines, FAILURE_HEADING, text.lines().map(str::to_owned));
            }
            WorkFact::Tried(failure) => add_lines(&mut lines, TRIED_HEADING, [tried_line(failure)]),
        }
    }
    lines.join("\n")
}

/// Returns the range of the lines below a heading: the first line, and the line after the last one that is not blank.
fn find_section(lines: &[String], heading: &str) -> Option<(usize, usize)> {
    let start = lines.iter().position(|line| line.trim_end() == heading)? + 1;
    let length = lines[start..]
        .iter()
        .take_while(|line| !line.starts_with("## "))
        .count();
    let body = &lines[start..start + length];
    let said = body.iter().rposition(|line| !line.trim().is_empty());
    Some((start, start + said.map_or(0, |last| last + 1)))
}

/// Adds lines at the end of a section, their secrets masked; a missing section is created before the closing words.
fn add_lines(lines: &mut Vec<String>, heading: &str, new: impl IntoIterator<Item = String>) {
    let mut new = new.into_iter().map(|line| make_harmless(&line)).peekable();
    if new.peek().is_none() {
        return;
    }
    if let Some((start, end)) = find_section(lines, heading) {
        let blank = (start == end).then(String::new);
        lines.splice(end..end, blank.into_iter().chain(new));
        return;
    }
    let closing = lines.iter().rposition(|line| line == CLOSING_HEADING);
    let at = closing.unwrap_or(lines.len());
    let before = [String::new(), heading.to_owned(), String::new()];
    let skip = usize::from(at == 0 || lines[at - 1].trim().is_empty());
    let whole = before.into_iter().skip(skip).chain(new);
    lines.splice(at..at, whole.chain(closing.map(|_| String::new())));
}

/// Adds a word to the line of the work at hand that begins with `head`; a missing line is created.
fn add_to_line(lines: &mut Vec<String>, head: &str, word: &str) {
    let (head, word) = (one_line(head), make_harmless(&one_line(word)));
    let is_it = |line: &String| {
        let rest = line
            .strip_prefix("- ")
            .and_then(|line| line.strip_prefix(&*head));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', ' ']))
    };
    let found = find_section(lines, WORK_HEADING).and_then(|(start, end)| {
        let at = lines[start..end].iter().position(is_it)?;
        Some(start + at)
    });
    match found {
        Some(at) => {
            let link = if lines[at].contains(": ") { ", " } else { ": " };
            lines[at].push_str(&format!("{link}{word}"));
        }
        None => add_lines(lines, WORK_HEADING, [format!("- {head}: {word}")]),
    }
}

/// Reports whether git's section has a branch.
fn names_a_branch(text: &str) -> bool {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("- "));
    lines.any(|line| line.starts_with(BRANCH))
}

/// Reports whether `what` is in a text unchanged and not as a part of a longer word. A hyphen separates words only for an identifier.
pub(super) fn is_whole_in(text: &str, what: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let hyphens_join = !what.bytes().all(is_name);
    let is_of_word = |byte: &u8| is_name(*byte) || *byte == b'-' && hyphens_join;
    let bytes = text.as_bytes();
    !what.is_empty()
        && memmem::find_iter(bytes, what).any(|at| {
            let before = at.checked_sub(1).and_then(|before| bytes.get(before));
            let after = bytes.get(at + what.len());
            !before.is_some_and(is_of_word) && !after.is_some_and(is_of_word)
        })
}

/// Reports the same for a text whose secrets are masked.
fn is_in_text(text: &str, what: &str) -> bool {
    let what = on_one_line(what);
    is_whole_in(text, &what) || {
        let masked = make_harmless(&what);
        masked != what && is_whole_in(text, &masked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Generator, Handoff, Marker, Sources,
        preserved::Origin,
        tests::{marker, said},
    };
    use pitstop_transcript::{human::as_listed, prose::without_long_pastes};

    fn state() -> PreservedState {
        let mut state = PreservedState::default();
        state.set_objective("Build it", Origin::Human);
        for rule in ["Never touch main: it is live.", "Only use `tabs`."] {
            let said = Said {
                text: rule.to_owned(),
                at: "2026-11-20T08:00:00Z".parse().ok(),
            };
            state.add_constraint(said, Origin::Human);
        }
        state.add_constraint(said("The agent's own."), Origin::Signal);
        state
    }

    fn work() -> WorkAtHand {
        let strings = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
        let failure = |call: &str, line: &str| Failure {
            call: call.to_owned(),
            lines: strings(&[line]),
            worked_later: false,
        };
        WorkAtHand {
            files: vec![FileAtHand {
                path: "src/a_b.rs".to_owned(),
                changed: true,
                line: Some(12),
                names: strings(&["first_name", "secondName"]),
            }],
            names: strings(&["free_name"]),
            references: strings(&["branch topic", "owner/name#12"]),
            commands: strings(&[
                "cargo test",
                concat!("curl --password ", "hunter2secret example.org"),
            ]),
            last_failure: Some(failure("make all", "no rule for all")),
            tried: vec![failure("make old", "no rule for old")],
            ..WorkAtHand::default()
        }
    }

    fn handoff(max: usize) -> Handoff {
        let (state, work) = (state(), work());
        let marker = marker();
        let sources = Sources {
            work: Some(&work),
            ..Sources::new(&marker, &state)
        };
        Generator::default().generate(&sources, max).unwrap()
    }

    fn missing(check: &Check) -> Vec<String> {
        check
            .missing_facts
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_handoff_as_it_is_made_misses_nothing() {
        let check = check(&handoff(50_000).text, &state(), &work());
        assert_eq!(missing(&check), [""; 0]);
        assert!(check.is_complete(), "{:?}", check.missing_prompts);
        assert_eq!((check.prompts, check.facts), (2, 10));
    }

    #[test]
    fn what_was_edited_away_is_named_by_class_and_comes_back_into_its_section() {
        let made = handoff(50_000);
        let edited = made
            .body()
            .replace("- 2026-11-20: Never touch main: it is live.\n", "")
            .replace(": first_name, secondName", "")
            .replace("branch topic, ", "")
            .replace("- `cargo test`\n", "")
            .replace("## Last failure", "## X")
            .replace("no rule for all", "it failed");
        let edited = made.with_body(&edited);
        let found = check(&edited.text, &state(), &work());
        assert_eq!(
            found.to_string(),
            "1 prompt of yours and 5 of 10 recent facts are not in it"
        );
        assert_eq!(
            found.missing_prompts[0].text,
            "Never touch main: it is live."
        );
        assert_eq!(
            missing(&found),
            [
                "first_name (src/a_b.rs)",
                "secondName (src/a_b.rs)",
                "branch topic",
                "cargo test",
                "`make all`: no rule for all"
            ]
        );
        assert!(found.to_document().starts_with(
            "## Prompts of yours\n\n- 2026-11-20: Never touch main: it is live.\n\n## Identifiers\n\n- first_name (src/a_b.rs)\n"
        ));
        let mended = made.with_body(&with_missing(edited.body(), &found));
        assert!(
            check(&mended.text, &state(), &work()).is_complete(),
            "{}",
            mended.text
        );
        for part in [
            "## What the human said\n\n- 2026-11-20: Only use `tabs`.\n\
             - 2026-11-20: Never touch main: it is live.\n\n",
            "\n- src/a_b.rs:12 (changed): first_name, secondName\n",
            "\n- References: owner/name#12, branch topic\n",
            "it failed",
            "\n\n## Last failure\n\n`make all`\n\n```\n  no rule for all\n```\n\n## Carry on\n\n",
        ] {
            assert!(
                mended.text.contains(part),
                "{part} is not in {}",
                mended.text
            );
        }
    }

    #[test]
    fn a_message_of_a_person_s_own_gets_the_sections_it_lacks() {
        let made = handoff(50_000);
        let edited = made.with_body("\nJust go on.");
        let found = check(&edited.text, &state(), &work());
        assert_eq!(
            found.to_string(),
            "2 prompts of yours and 10 of 10 recent facts are not in it"
        );
        let mended = made.with_body(&with_missing(edited.body(), &found));
        assert!(
            check(&mended.text, &state(), &work()).is_complete(),
            "{}",
            mended.text
        );
        assert!(
            mended
                .text
                .contains("\nJust go on.\n\n## What the human said\n\n- 2026")
        );
        assert!(
            mended
                .text
                .contains("\n\n## Work at hand\n\n- src/a_b.rs:12 (changed): first_name,")
        );
        assert!(!mended.text.contains("hunter2secret"));
        // Nothing is added twice.
        let again = check(&mended.text, &state(), &work());
        assert_eq!(with_missing(mended.body(), &again), mended.body());
    }

    #[test]
    fn a_rule_in_other_signs_and_a_fact_in_a_longer_word_are_distinguished() {
        let text =
            "you said: \"never touch MAIN, it is live\"; src/a_b.rs2 first_name2 x_free_name";
        let found = check(text, &state(), &work());
        assert_eq!(found.missing_prompts.len(), 1);
        assert_eq!(found.missing_of(Class::File).count(), 1);
        assert_eq!(found.missing_of(Class::Name).count(), 3);
    }

    #[test]
    fn a_prompt_with_a_section_of_its_own_is_there_with_its_lines_and_what_was_pasted_into_it() {
        let pasted = "error[E0308]: mismatched types\n --> src/a.rs:3:5\n  |\n3 |     1\n";
        let long = "the tide is taken from a table, ".repeat(120);
        for request in [
            "Rename the parser.\nKeep the old name.",
            "First the list:\n\n- the parser\n- a lexer\n\n> they said so\n\nThen stop.",
            &format!("Fix this:\n\n{pasted}\nand leave the lexer alone."),
            &format!("Fix this:\n\n{}\nand leave the lexer.", pasted.repeat(40)),
            &format!("Never guess.\n{long}\nKeep all figures."),
            "if x > 1\nthen the limit is < 2",
        ] {
            let mut state = PreservedState::default();
            state.add_constraint(said(&one_line(&as_listed(request))), Origin::Human);
            let marker = Marker::default();
            let given = &*without_long_pastes(request);
            for (first_request, latest_request) in [(given, "Go."), ("Begin.", given)] {
                let sources = Sources {
                    first_request,
                    latest_request,
                    ..Sources::new(&marker, &state)
                };
                let made = Generator::default().generate(&sources, 50_000).unwrap();
                let is_there =
                    |text: &str| check(text, &state, &WorkAtHand::default()).is_complete();
                assert!(is_there(&made.text), "{}", made.text);
                assert!(!is_there(&made.text.replace("the", "one")), "{request}");
            }
        }
    }

    #[test]
    fn the_branch_of_git_s_section_stands_for_the_transcript_s() {
        let missing = |text| {
            check(text, &state(), &work())
                .missing_of(Class::Reference)
                .count()
        };
        assert_eq!(missing("see owner/name#12"), 1);
        assert_eq!(missing("## Git\n\n- branch other\n\nsee owner/name#12"), 0);
    }

    #[test]
    fn what_was_cut_for_size_is_missing() {
        let made = handoff(850);
        assert!(!made.left_out.is_empty());
        let found = check(&made.text, &state(), &work());
        assert!(
            found.missing_prompts.is_empty(),
            "prompts are never left out"
        );
        assert!(!found.missing_facts.is_empty());
    }

    #[test]
    fn it_says_how_many_in_plain_words() {
        let prompt = Said::default();
        let fact = WorkFact::Command("x".to_owned());
        for (prompts, facts, line) in [
            (
                0,
                0,
                "nothing is missing: 3 prompts of yours and 1 recent fact were looked for",
            ),
            (1, 0, "1 prompt of yours is not in it"),
            (0, 1, "1 of 1 recent fact is not in it"),
            (
                2,
                1,
                "2 prompts of yours and 1 of 1 recent fact are not in it",
            ),
        ] {
            let check = Check {
                prompts: 3,
                missing_prompts: vec![prompt.clone(); prompts],
                facts: 1,
                missing_facts: vec![fact.clone(); facts],
            };
            assert_eq!(check.to_string(), line);
        }
    }

    #[test]
    fn what_a_person_wrote_stays_as_it_is_where_something_is_added() {
        let made = handoff(50_000);
        for own in [
            concat!("A_PASSWORD=", "orange7tree"),
            concat!("curl --password ", "orange7tree example.org"),
            concat!("postgres://app:", "orange7tree@db/x"),
        ] {
            let edited = made.with_body(&format!("\nUse {own}"));
            let found = check(&edited.text, &state(), &work());
            let body = with_missing(edited.body(), &found);
            assert!(body.starts_with(&format!("\nUse {own}\n")), "{body}");
            assert!(!body.contains("hunter2secret"), "{body}");
        }
    }
}
