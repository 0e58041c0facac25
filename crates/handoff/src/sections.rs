//! The sections of a handoff: one function for each, and every item in only one of them.
//!
//! An item that several sources name appears in the first section that has a place for it:
//!
//! ```text
//! objective ► requests, prompts ► constraints ► next step ► pending, completed ► key decisions ► open issues ► scratchpad ► summary
//! ```
//!
//! The scratchpad's section and the summary contain only items that no earlier section has.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
};

use super::{
    IncludedFile, PreservedState, Sources,
    preserved::{Decision, Issue, Item, Origin, Severity, is_same_item, item_key},
    signal, work,
};
use crate::scratchpad::{Fact, Parsed, lines::list_item, next_in};
use pitstop_base::{
    clean,
    redact::{MASK, redact},
};
use pitstop_transcript::{
    facts::{Fact as Name, each_fact},
    human::as_listed,
    words::plain_key,
    work::WorkAtHand,
};

/// The number of decisions, tests and resolved issues that are named; the latest ones are.
const MAX_NAMES: usize = 50;

/// The most of the objective and of the next step that the closing instruction names, in bytes.
const NAMED: usize = 100;

/// Returns the next step: the one that the scratchpad names, unless it is done; else the first item to do. An item that only
/// repeats the objective does not count.
pub fn next_step(state: &PreservedState, notes: &Parsed) -> Option<String> {
    let is_done = |text: &str| {
        state
            .completed_items
            .iter()
            .any(|item| is_same_item(&item.text, text))
    };
    let is_objective = |text: &str| {
        let objective = state.current_objective.as_ref();
        objective.is_some_and(|objective| is_same_item(&objective.text, text))
    };
    let hint = notes.next.as_deref().filter(|step| !is_done(step));
    let open = state.pending_items.iter().map(Item::as_str);
    let mut steps = hint.into_iter().chain(open);
    let next = steps.find(|step| !is_objective(step))?;
    Some(one_line(next).into_owned())
}

/// Returns the closing instruction, which names the task and the next step.
pub fn continuation(state: &PreservedState, notes: &Parsed) -> String {
    let named = |text: &str| {
        let line = one_line(text);
        let line = redact(&clean::typed(&line)).replace('`', "");
        let end = line.floor_char_boundary(NAMED);
        let is_cut = end < line.len();
        // A word that is cut would be taken for another one; a script without blanks has no word to cut at.
        let word = line[..end]
            .rfind(' ')
            .filter(|_| is_cut && !line[end..].starts_with(' '));
        let end = word.filter(|at| at * 2 > end).unwrap_or(end);
        let cut = if is_cut { " …" } else { "" };
        format!("\"{}{cut}\"", line[..end].trim_end())
    };
    let task = state.current_objective.as_ref();
    let task = task.map(|task| named(task.text.lines().next().unwrap_or_default()));
    let next = next_step(state, notes).map(|next| named(&next));
    let begin = match (task, next) {
        (Some(task), Some(next)) => format!("Carry on with {task}; the next step is {next}."),
        (Some(task), None) => format!("Carry on with {task}."),
        (None, Some(next)) => format!("Carry on with the next step: {next}."),
        (None, None) => return CONTINUATION.to_owned(),
    };
    format!("{begin} {RULES}")
}

/// The closing instruction if neither a task nor a next step is known, or there is no room for them.
pub(super) const CONTINUATION: &str = "Carry on with what is not done yet. Do not repeat completed work. \
Check the state of the files before you change them. Keep the scratchpad up to date as you go, so that the next handoff is \
as good as this one.";

/// The part of the closing instruction that is always there.
const RULES: &str = "Do not repeat completed work. Check the state of the files before you change them. Keep the scratchpad \
up to date as you go, so that the next handoff is as good as this one.";

/// Returns all sections of a handoff, by their names in the template; `has_place` reports whether the template has a place for
/// one. An item without a section of its own is in a list: the next step among the items to do, a request among the prompts. What
/// no list has stays in the scratchpad and in the summary.
pub(super) fn make_sections(
    sources: &Sources<'_>,
    has_place: &dyn Fn(&str) -> bool,
) -> BTreeMap<&'static str, String> {
    let state = sources.state;
    let notes = Notes::from_parsed(sources.scratchpad);
    let mut said = Said::default();
    let objective = placed(has_place("objective"), &mut said, |said| {
        objective_section(state, said)
    });
    let prompts = prompts_section(sources, has_place, &mut said);
    let constraints = placed(has_place("constraints"), &mut said, |said| {
        constraints_section(state, said)
    });
    let next = next_step(state, sources.scratchpad).filter(|_| has_place("next_step"));
    let next = next.map_or_else(String::new, |next| {
        next_step_section(&next, &notes, &mut said)
    });
    let pending = placed(has_place("pending"), &mut said, |said| {
        pending_section(state, &notes, said)
    });
    let completed = placed(has_place("completed"), &mut said, |said| {
        completed_section(state, &notes, said)
    });
    let decisions = placed(has_place("decisions"), &mut said, |said| {
        decisions_section(state, said)
    });
    let issues = placed(has_place("issues"), &mut said, |said| {
        issues_section(state, said)
    });
    let scratchpad = placed(has_place("scratchpad"), &mut said, |said| {
        scratchpad_section(sources.scratchpad, said)
    });
    let nothing = WorkAtHand::default();
    let at_hand = sources.work.unwrap_or(&nothing);
    let summary = sources.summary.map_or_else(String::new, |text| {
        summary_section(text, &Known::gather(state, at_hand), &mut said)
    });
    let plan = at_hand.plan.as_deref().unwrap_or_default();
    let git = sources.git.iter();
    let git = git.map(|line| format!("- {}", one_line(line)));
    let mut sections = BTreeMap::from([
        ("prompts", prompts),
        ("constraints", constraints),
        ("rejected", work::rejected_lines(state)),
        ("first_request", work::quote_lines(sources.first_request)),
        ("latest_request", work::quote_lines(sources.latest_request)),
        ("plan", work::quote_lines(plan)),
        (
            "work",
            work::file_lines(at_hand, !sources.git.is_empty(), state),
        ),
        ("failure", work::failure_section(at_hand)),
        ("tried", work::tried_lines(at_hand)),
        ("commands", work::command_lines(at_hand)),
        ("objective", objective),
        ("next_step", next),
        ("pending", pending),
        ("completed", completed),
        ("decisions", decisions),
        ("issues", issues),
        ("scratchpad", scratchpad),
        ("summary", summary),
        ("files", files_section(state, at_hand)),
        ("failing_tests", failing_tests_section(sources)),
        ("included_files", included_section(sources.included_files)),
        ("git", join_lines(git)),
        ("state", custom_section(state)),
        ("continuation", closing_section(sources)),
    ]);
    // What is not shown takes no room from the rest; the prompts are added to any message.
    sections.retain(|name, _| *name == "prompts" || has_place(name));
    sections
}

/// Makes a section that has a place in the template; the items of another one are listed nowhere.
fn placed(has_place: bool, said: &mut Said, make: impl FnOnce(&mut Said) -> String) -> String {
    if has_place { make(said) } else { String::new() }
}

/// The items that the sections have listed so far, by the key that all wordings of an item have in common.
#[derive(Debug, Default)]
struct Said {
    /// The keys of the items, each with the reasons that were given for it.
    items: HashMap<String, Vec<String>>,
}

impl Said {
    /// Records an item as listed; returns true if it was not listed before.
    fn add(&mut self, text: &str) -> bool {
        self.add_with(text, "")
    }

    fn add_with(&mut self, text: &str, reason: &str) -> bool {
        let mut is_new = false;
        let reasons = self
            .items
            .entry(item_key(&one_line(text)))
            .or_insert_with(|| {
                is_new = true;
                Vec::new()
            });
        if !reason.is_empty() {
            reasons.push(item_key(&one_line(reason)));
        }
        is_new
    }

    fn has(&self, text: &str) -> bool {
        self.items.contains_key(&item_key(&one_line(text)))
    }

    /// Reports whether a decision is listed with this reason.
    fn has_with(&self, text: &str, reason: &str) -> bool {
        let reasons = self.items.get(&item_key(&one_line(text)));
        let reason = item_key(&one_line(reason));
        reasons.is_some_and(|reasons| reason.is_empty() || reasons.contains(&reason))
    }

    fn covers_fact(&self, fact: Fact<'_>) -> bool {
        match fact {
            Fact::Objective(text) | Fact::Next(text) => self.has(text),
            Fact::Item(item) => self.has(&item.text),
            Fact::Decision(one) => self.has_with(&one.text, &one.reason),
            Fact::Blocker(one) => self.has(Severity::of_blocker(&one.text).1),
            Fact::Line(line) => {
                let line = line.trim();
                let text = list_item(line).map_or(line, |item| item.text);
                let is_next = text.trim_start_matches('*').get(..4);
                let is_next = is_next.is_some_and(|word| word.eq_ignore_ascii_case("next"));
                let next = next_in(text).filter(|_| is_next);
                self.has(text) || next.is_some_and(|next| self.has(&next))
            }
        }
    }
}

/// The lines that the scratchpad has below each of its items.
struct Notes<'a>(HashMap<String, Vec<&'a str>>);

impl<'a> Notes<'a> {
    fn from_parsed(notes: &'a Parsed) -> Self {
        let mut below: HashMap<String, Vec<&'a str>> = HashMap::new();
        for item in notes.items.iter().filter(|item| !item.notes.is_empty()) {
            let lines = below.entry(item_key(&item.text)).or_default();
            lines.extend(item.notes.iter().map(String::as_str));
        }
        Self(below)
    }

    /// Returns an item with the lines below it.
    fn item_lines(&self, mark: &str, text: &str) -> Vec<String> {
        let text = one_line(text);
        let below = self.0.get(&item_key(&text)).into_iter().flatten();
        std::iter::once(format!("- {mark} {text}"))
            .chain(below.map(|line| (*line).to_owned()))
            .collect()
    }
}

fn objective_section(state: &PreservedState, said: &mut Said) -> String {
    let Some(objective) = &state.current_objective else {
        return String::new();
    };
    said.add(&objective.text);
    objective.text.clone()
}

fn next_step_section(next: &str, notes: &Notes<'_>, said: &mut Said) -> String {
    said.add(next);
    join_lines(notes.item_lines("[ ]", next))
}

fn pending_section(state: &PreservedState, notes: &Notes<'_>, said: &mut Said) -> String {
    let open = state
        .pending_items
        .iter()
        .filter(|item| said.add(&item.text));
    join_lines(open.flat_map(|item| notes.item_lines("[ ]", &item.text)))
}

/// Returns the completed items and the resolved issues.
fn completed_section(state: &PreservedState, notes: &Notes<'_>, said: &mut Said) -> String {
    let mut lines = Vec::new();
    for item in &state.completed_items {
        // An item equal to the objective is listed too: that the objective is reached is new.
        said.add(&item.text);
        lines.extend(notes.item_lines("[x]", &item.text));
    }
    let resolved: Vec<_> = state
        .known_issues
        .iter()
        .filter(|issue| issue.addressed && said.add(&issue.description))
        .map(|issue| format!("- [x] resolved: {}", one_line(&issue.description)))
        .collect();
    let first = resolved.len().saturating_sub(MAX_NAMES);
    join_lines(lines.into_iter().chain(resolved[first..].iter().cloned()))
}

fn decisions_section(state: &PreservedState, said: &mut Said) -> String {
    let first = state.decisions.len().saturating_sub(MAX_NAMES);
    let mut lines = Vec::new();
    for one in &state.decisions[first..] {
        let is_new = said.add_with(&one.description, &one.rationale);
        if is_new || !one_line(&one.rationale).is_empty() {
            lines.push(format!("- {}", decision_text(one)));
        }
    }
    join_lines(lines)
}

/// Returns a decision in one line, with its reason.
pub fn decision_text(one: &Decision) -> String {
    text_with_reason(&one.description, &one.rationale)
}

/// Returns a text in one line, with the reason for it if there is one.
pub(super) fn text_with_reason(what: &str, why: &str) -> String {
    match (one_line(what), one_line(why)) {
        (what, why) if why.is_empty() => what.into_owned(),
        (what, why) => format!("{what} (because: {why})"),
    }
}

/// Returns an issue in one line, with its severity and those of its files that its text does not name.
pub fn issue_text(issue: &Issue) -> String {
    let text = one_line(&issue.description);
    let files = issue.files.iter().filter(|file| !text.contains(*file));
    let files: Vec<_> = files.map(|file| one_line(file)).collect();
    let files = match files.join(", ") {
        none if none.is_empty() => none,
        files => format!(" (in {files})"),
    };
    format!("[{}] {text}{files}", issue.severity.word())
}

fn issues_section(state: &PreservedState, said: &mut Said) -> String {
    let open = state.known_issues.iter().filter(|issue| !issue.addressed);
    let new = open.filter(|issue| said.add(&issue.description));
    join_lines(new.map(|issue| format!("- {}", issue_text(issue))))
}

/// Returns the parts of the scratchpad that no section above has.
fn scratchpad_section(notes: &Parsed, said: &mut Said) -> String {
    let text = notes.without(|fact| said.covers_fact(fact));
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        said.add(list_item(line).map_or(line, |item| item.text));
    }
    text
}

/// The content that a model may repeat in its own words: the human's sentences, and the names of the work at hand.
struct Known<'a> {
    /// The words of each sentence.
    sentences: Vec<BTreeSet<String>>,
    facts: BTreeSet<&'a str>,
}

/// The most prompts that a summary's items are compared with, the latest ones.
const COMPARED: usize = 200;

impl<'a> Known<'a> {
    fn gather(state: &PreservedState, work: &'a WorkAtHand) -> Self {
        let latest = state.constraints.iter().rev().take(COMPARED);
        let sentences = latest.flat_map(|one| one.said.text.split(['.', '!', '?', '\n', '。']));
        let files = work.files.iter();
        let facts = files
            .flat_map(|file| std::iter::once(&file.path).chain(&file.names))
            .chain(&work.names)
            .chain(&work.references);
        Self {
            sentences: sentences.map(word_set).collect(),
            facts: facts.map(String::as_str).collect(),
        }
    }

    /// Reports whether an item has four fifths of its words in common with a sentence, or is a list of names given above.
    fn repeats_known(&self, item: &str) -> bool {
        let words = word_set(item);
        let alike = |sentence: &BTreeSet<String>| {
            let common = sentence.intersection(&words).count();
            common > 2 && common * 5 >= sentence.len().max(words.len()) * 4
        };
        self.sentences.iter().any(alike) || self.has_names(item)
    }

    fn has_names(&self, item: &str) -> bool {
        let (mut known, mut rest) = (true, item.to_owned());
        each_fact(item, &mut |fact| {
            let (Name::File(name) | Name::Name(name) | Name::Reference(name)) = fact;
            known &= self.facts.contains(name);
            rest = rest.replacen(name, "", 1);
        });
        let marks = ["(changed)", "(read)"];
        let rest = marks.iter().fold(rest, |rest, mark| rest.replace(mark, ""));
        known && rest.len() < item.len() && !rest.contains(char::is_alphabetic)
    }
}

fn word_set(text: &str) -> BTreeSet<String> {
    let key = plain_key(text);
    key.split(' ').map(str::to_owned).collect()
}

/// Returns the parts of the summary that no section above has. Its secrets are masked already, so listed items are also
/// compared in their masked form.
fn summary_section(text: &str, known: &Known<'_>, said: &mut Said) -> String {
    if text.contains(MASK) {
        let masked: Vec<_> = said
            .items
            .keys()
            .filter_map(|said| match redact(said) {
                Cow::Owned(masked) => Some(masked),
                Cow::Borrowed(_) => None,
            })
            .collect();
        for text in masked {
            said.add(&text);
        }
    }
    Parsed::read(text).without(|fact| {
        let Fact::Line(line) = fact else {
            return said.covers_fact(fact);
        };
        let text = list_item(line.trim()).map_or(line.trim(), |item| item.text);
        let mut is_said = said.covers_fact(fact);
        if list_item(line.trim()).is_some() {
            is_said |= known.repeats_known(text);
            // A model may itself repeat an item.
            said.add(text);
        }
        is_said
    })
}

/// The number of files that are listed one by one; the others are counted by their directories.
const LISTED_FILES: usize = 40;

/// Returns the files that the run has changed, and the other uncommitted ones, without those of the work at hand.
fn files_section(state: &PreservedState, work: &WorkAtHand) -> String {
    let at_hand = work.files.iter().filter(|one| one.changed);
    let mut said: HashSet<&str> = at_hand.map(|one| one.path.as_str()).collect();
    let uncommitted: HashSet<&str> = state.uncommitted_files.iter().map(Item::as_str).collect();
    let mut lines = Vec::new();
    for one in &state.renamed_files {
        said.extend([one.from.as_str(), one.to.as_str()]);
        let is_committed = !uncommitted.contains(one.to.as_str());
        let committed = if is_committed { ", committed" } else { "" };
        let (from, to) = (one_line(&one.from), one_line(&one.to));
        lines.push((
            format!("- renamed{committed}: {from} → {to}"),
            one.to.as_str(),
        ));
    }
    let lists = [
        ("modified", &state.modified_files),
        ("created", &state.created_files),
        ("deleted", &state.deleted_files),
        ("changed before this run", &state.uncommitted_files),
    ];
    for (word, files) in lists {
        for file in files {
            let is_committed = file.origin == Origin::Git && !uncommitted.contains(file.as_str());
            let committed = if is_committed { ", committed" } else { "" };
            if said.insert(file.as_str()) {
                let line = format!("- {word}{committed}: {}", one_line(&file.text));
                lines.push((line, file.as_str()));
            }
        }
    }
    let others = lines.split_off(lines.len().min(LISTED_FILES));
    let counted = count_by_directory(others.iter().map(|(_, path)| *path));
    join_lines(lines.into_iter().map(|(line, _)| line).chain(counted))
}

/// Returns the number of files for each directory, the largest first: `- 312 more: 200 in src/gen, 112 in docs`.
fn count_by_directory<'a>(paths: impl ExactSizeIterator<Item = &'a str>) -> Option<String> {
    const DIRECTORIES: usize = 8;
    let count = paths.len();
    let mut by_directory: BTreeMap<String, usize> = BTreeMap::new();
    for path in paths {
        let mut parts: Vec<&str> = path.split('/').take(3).collect();
        // The last part is the file.
        parts.pop();
        let directory = match parts.as_slice() {
            [] => "the top directory".to_owned(),
            parts => parts.join("/"),
        };
        *by_directory.entry(directory).or_default() += 1;
    }
    let mut by_size: Vec<_> = by_directory.into_iter().collect();
    by_size.sort_by_key(|(_, files)| std::cmp::Reverse(*files));
    let named = by_size.iter().take(DIRECTORIES);
    let mut named: Vec<String> = named
        .map(|(name, files)| format!("{files} in {name}"))
        .collect();
    let rest: usize = by_size
        .iter()
        .skip(DIRECTORIES)
        .map(|(_, files)| files)
        .sum();
    if rest > 0 {
        named.push(format!("{rest} elsewhere"));
    }
    (count > 0).then(|| format!("- {count} more: {}", named.join(", ")))
}

/// The room for the list of prompts, in bytes; pinned prompts are always in it.
const PROMPTS_ROOM: usize = 8 * 1024;

/// The size, in bytes, up to which a prompt takes precedence over any longer one.
const SHORT: usize = 500;

/// Returns the human's prompts, oldest first, without those that have a section of their own. If there are too many, the pinned
/// ones are kept first, then the short ones, then the long ones, each group newest first.
fn prompts_section(
    sources: &Sources<'_>,
    has_place: &dyn Fn(&str) -> bool,
    said: &mut Said,
) -> String {
    let objective = sources.state.current_objective.as_ref();
    let objective = objective.map_or("", |objective| objective.text.as_str());
    let sections = [
        ("objective", objective),
        ("first_request", sources.first_request),
        ("latest_request", sources.latest_request),
    ];
    let shown = sections.into_iter().filter(|(name, _)| has_place(name));
    let shown: HashSet<String> = shown.map(|(_, text)| plain_key(&as_listed(text))).collect();
    let all: Vec<_> = sources
        .state
        .prompts()
        .filter(|one| !shown.contains(&plain_key(&one.said.text)))
        .collect();
    let lines: Vec<String> = all
        .iter()
        .map(|one| work::prompt_line(&one.said, one.pinned))
        .collect();
    let rank = |at: &usize| (!all[*at].pinned, lines[*at].len() > SHORT);
    let mut by_worth: Vec<usize> = (0..all.len()).rev().collect();
    by_worth.sort_by_key(rank);
    let mut room = PROMPTS_ROOM;
    let mut kept = BTreeSet::new();
    for at in by_worth {
        let size = lines[at].len() + 1;
        if all[at].pinned || size <= room {
            room = room.saturating_sub(size);
            kept.insert(at);
        }
    }
    for at in &kept {
        said.add(&all[*at].said.text);
    }
    let left_out = all.len() - kept.len();
    let note = match left_out {
        0 => None,
        1 => Some("(1 more prompt is left out for size.)".to_owned()),
        more => Some(format!("({more} more prompts are left out for size.)")),
    };
    join_lines(kept.iter().map(|at| lines[*at].clone()).chain(note))
}

/// Returns the constraints that the agent stated.
fn constraints_section(state: &PreservedState, said: &mut Said) -> String {
    let stated = state.constraints.iter();
    let stated = stated.filter(|one| one.origin != Origin::Human && said.add(&one.said.text));
    join_lines(stated.map(|one| work::prompt_line(&one.said, false)))
}

/// Returns the failing tests by name, which of them passed before, and the tests that the last run has fixed.
fn failing_tests_section(sources: &Sources<'_>) -> String {
    let state = &sources.state.test_state;
    if !sources.include_tests || state.failing.is_empty() {
        return String::new();
    }
    let mut lines: Vec<String> = state
        .failures()
        .take(MAX_NAMES)
        .map(|(name, regressed, directory)| {
            let place = directory.map_or_else(String::new, |place| format!(" in {place}"));
            let word = if regressed { " (passed before)" } else { "" };
            format!("- {}{word}", one_line(&format!("{name}{place}")))
        })
        .collect();
    if state.failing.len() > MAX_NAMES {
        lines.push(format!("- and {} more", state.failing.len() - MAX_NAMES));
    }
    if let Some(command) = &state.command {
        lines.push(format!("- last run: `{}`", one_line(command)));
    }
    for name in state.fixed.iter().take(MAX_NAMES) {
        lines.push(format!("- fixed in the last run: {}", one_line(name)));
    }
    join_lines(lines)
}

/// Returns the files, each in a fence below its name.
fn included_section(files: &[IncludedFile]) -> String {
    files
        .iter()
        .map(|file| {
            let cut = if file.cut { " (its start)" } else { "" };
            let name = one_line(&file.name);
            let quote = if signal::is_signal(&name) { "`" } else { "" };
            format!("### {quote}{name}{quote}{cut}\n\n{}", in_fence(&file.text))
        })
        .collect::<Vec<_>>()
        .join("\n\n")
}

fn custom_section(state: &PreservedState) -> String {
    let custom = state.custom.iter();
    join_lines(custom.map(|(k, v)| format!("- {} = {}", one_line(k), one_line(v.as_str()))))
}

fn closing_section(sources: &Sources<'_>) -> String {
    let continuation = continuation(sources.state, sources.scratchpad);
    match sources.closing {
        "" => continuation,
        more => format!("{continuation}\n\n{more}"),
    }
}

/// All characters that some reader takes as the end of a line.
const LINE_ENDS: [char; 7] = [
    '\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}',
];

/// Joins the lines of an item into one, so that a commit subject or a file name cannot add headings of its own.
pub(super) fn one_line(text: &str) -> Cow<'_, str> {
    // Nearly every item is ASCII, in which the line ends are one range of bytes.
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

/// Joins the lines of a list. A line that looks like a signal is put in back quotes, so that it is no signal if an assistant
/// repeats it.
pub(super) fn join_lines(lines: impl IntoIterator<Item = String>) -> String {
    let mut text = String::new();
    for line in lines {
        if !text.is_empty() {
            text.push('\n');
        }
        if !signal::is_signal(&line) {
            text.push_str(&line);
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let (indent, words) = line.split_at(indent);
        let mark = ["- [ ] ", "- [x] ", "- "]
            .into_iter()
            .find(|mark| words.starts_with(mark))
            .unwrap_or_default();
        text.extend([indent, mark, "`", &words[mark.len()..], "`"]);
    }
    text
}

/// Returns a text in a code fence that is longer than any in it, so that no part of it can end the fence; a signal in
/// it does not count either.
pub(super) fn in_fence(text: &str) -> String {
    // Characters that are removed before sending may separate two runs, which then become one.
    let text = super::sendable(text);
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end())
}

#[cfg(test)]
mod tests;
