//! The generation of a handoff: preserved state, rendered by the template and cut to size.
//!
//! The template (`assets/handoff.md`, or the user's own) only places finished sections; values are data to
//! it and never parsed. The largest sections lose their ends first, then whole sections go in order of importance, then lines of
//! the rest; the objective, the items to do and the closing words are never left out.

use std::collections::{BTreeMap, HashSet};

use minijinja::{Environment, UndefinedBehavior, syntax::SyntaxConfig};

use super::{
    Handoff, Marker, PreservedState, TurnStanding, quality, sections,
    sections::CONTINUATION,
    sendable,
    strategy::{ContextStrategy, LastSteps, RecentCommands},
    summary::make_harmless,
    work,
};
use crate::scratchpad::{NO_NOTES, Parsed};
use pitstop_base::redact;
use pitstop_transcript::{
    human::{FIRST_HEADING, LATEST_HEADING, PROMPTS_HEADING, section_lines},
    words::Fences,
    work::WorkAtHand,
};

/// The template that is compiled in.
pub const DEFAULT_TEMPLATE: &str = include_str!("../../../assets/handoff.md");

/// The most that is shown of one included file, in bytes.
pub const FILE_CAP: usize = 8 * 1024;

/// The size, in bytes, up to which the account of what was done last fills a message: the client's own summaries have a mean of
/// 14 kB. Figures are in BENCHMARKS.md.
const FILLED: usize = 14_000;

/// The size that this account may take in any case, in bytes; below, the divisor of the message's limit that gives its maximum.
const ACTIVITY_LEAST: usize = 4 * 1024;
const ACTIVITY_SHARE: usize = 4;

/// A template that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("handoff template, line {line}: {message}")]
pub struct TemplateError {
    /// The line, from 1; 0 if the engine does not report it.
    pub line: usize,
    /// The description of the error.
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

/// A file that the user wants the next session to have before it asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IncludedFile {
    /// The path of the file in the project.
    pub name: String,
    /// The part of it that is shown.
    pub text: String,
    /// True if that is less than all of it.
    pub cut: bool,
}

impl IncludedFile {
    /// Creates an entry with the start of a file: whole lines, in at most [`FILE_CAP`] bytes.
    pub fn new(name: &str, text: &str) -> Self {
        let kept = cut_lines(text, FILE_CAP);
        Self {
            name: name.to_owned(),
            cut: kept.len() < text.trim_end().len(),
            text: kept,
        }
    }
}

/// The sources of a handoff.
#[derive(Clone, Debug)]
pub struct Sources<'a> {
    /// The marker line.
    pub marker: &'a Marker,
    /// The preserved facts.
    pub state: &'a PreservedState,
    /// The parsed notes of the scratchpad.
    pub scratchpad: &'a Parsed,
    /// The branch and recent commits, one per line, already safe to show.
    pub git: &'a [String],
    /// The summary of the session, if there is one.
    pub summary: Option<&'a str>,
    /// The last shell commands with their output, as [`super::strategy`] shows them.
    pub recent_commands: &'a [String],
    /// True if they show what was done last; otherwise the last steps do, if there are any.
    pub commands_first: bool,
    /// The first request of the human, if it is not the objective.
    pub first_request: &'a str,
    /// The latest request of the human.
    pub latest_request: &'a str,
    /// The work at hand, if a transcript shows it.
    pub work: Option<&'a WorkAtHand>,
    /// The state of the turn from which the next session continues.
    pub turn: TurnStanding,
    /// The files that the user wants in it.
    pub included_files: &'a [IncludedFile],
    /// True if the tests are shown.
    pub include_tests: bool,
    /// The text after the closing instruction; it is never cut.
    pub closing: &'a str,
    /// The facts that the checks compare with.
    pub comparison: quality::Comparison<'a>,
}

impl<'a> Sources<'a> {
    /// Creates sources with the two that every handoff has; the others are empty.
    pub fn new(marker: &'a Marker, state: &'a PreservedState) -> Self {
        Self {
            marker,
            state,
            scratchpad: &NO_NOTES,
            git: &[],
            summary: None,
            recent_commands: &[],
            commands_first: false,
            first_request: "",
            latest_request: "",
            work: None,
            turn: TurnStanding::Over,
            included_files: &[],
            include_tests: true,
            closing: "",
            comparison: quality::Comparison::default(),
        }
    }
}

/// The sections of the message that may be cut, least important first: the first one is cut first.
const CUT_ORDER: [(&str, &str); 21] = [
    ("included_files", "included files"),
    ("recent_commands", "recent commands"),
    ("commands", "commands"),
    ("state", "state"),
    ("git", "git branch and commits"),
    ("files", "modified files"),
    ("completed", "completed items"),
    ("tried", "what was tried"),
    ("summary", "summary"),
    ("failing_tests", "failing tests"),
    ("failure", "last failure"),
    ("first_request", "first request"),
    ("issues", "open issues"),
    ("rejected", "rejected ways"),
    ("decisions", "key decisions"),
    ("constraints", "constraints"),
    ("plan", "latest plan"),
    ("steps", "last steps"),
    ("work", "work at hand"),
    ("latest_request", "latest request"),
    ("scratchpad", "scratchpad"),
];

/// The sections that are never left out: they may only lose lines, the last lines first.
const KEPT: [&str; 4] = ["objective", "prompts", "next_step", "pending"];

/// A generator that turns preserved state into handoffs with one template.
#[derive(Debug)]
pub struct Generator {
    engine: Environment<'static>,
    /// The sections that the template has a place for; a user's own may be older than some sections.
    places: HashSet<String>,
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
        let named = engine.get_template("handoff")?.undeclared_variables(false);
        let generator = Self {
            engine,
            places: named,
        };
        // An error inside a section appears only when the section has content.
        let full = CUT_ORDER.iter().map(|(key, _)| *key).chain(KEPT);
        let full = full.chain([MASKED]).map(|key| (key, "-".to_owned()));
        let left_out = ["-".to_owned()];
        generator.render_values(&template_values(&full.collect(), "marker", &left_out))?;
        let empty = generator.render_values(&template_values(&BTreeMap::new(), "marker", &[]))?;
        if !empty.trim_start().starts_with("marker") {
            let message = "expected `{{ marker }}` as the first line".to_owned();
            return Err(TemplateError { line: 1, message });
        }
        Ok(generator)
    }

    fn render_values(&self, values: &BTreeMap<&str, String>) -> Result<String, minijinja::Error> {
        self.engine.get_template("handoff")?.render(values)
    }

    /// Generates the message, with its secrets masked, cut to at most `max` bytes.
    pub fn generate(&self, sources: &Sources<'_>, max: usize) -> Result<Handoff, TemplateError> {
        let marker = sources.marker.to_string();
        let mut sections = sections::make_sections(sources, &|name| self.places.contains(name));
        for (_, body) in sections
            .iter_mut()
            .filter(|(key, _)| **key != "continuation")
        {
            *body = fit_section(body, max);
        }
        self.fill_with_activity(&mut sections, sources, max);
        let all: String = sections.values().map(String::as_str).collect();
        sections.insert(MASKED, masked_note(&all));
        let mut left_out = Vec::new();
        let render = |sections: &BTreeMap<&'static str, String>, left_out: &[String]| {
            let text = self.render_values(&template_values(sections, &marker, left_out))?;
            let prompts = sections.get("prompts").map_or("", String::as_str);
            let text = with_prompts(text.trim(), prompts);
            let note = &sections[MASKED];
            // A template of the user's own may not have a place for it.
            Ok(if text.contains(note.as_str()) {
                text
            } else {
                format!("{text}\n\n{note}")
            })
        };
        let whole = render(&sections, &left_out)?;
        if whole.len() > max {
            keep_heads(&mut sections, &mut left_out, whole.len() - max, max / 2);
        }
        let mut size: usize = sections.values().map(String::len).sum();
        let mut text = None;
        for (key, name) in CUT_ORDER {
            // If the sections alone are too large, the message need not be rendered.
            if size <= max {
                let whole = render(&sections, &left_out)?;
                if whole.len() <= max {
                    text = Some(whole);
                    break;
                }
            }
            // The notes are the human's own words: they may lose lines but are not left out.
            if key == "scratchpad" {
                continue;
            }
            let body = sections.insert(key, String::new()).unwrap_or_default();
            if !body.is_empty() {
                size -= body.len();
                left_out.retain(|left_out| *left_out != the_end_of(name));
                left_out.push(name.to_owned());
            }
        }
        let text = if let Some(text) = text {
            text
        } else {
            shorten_kept(&mut sections, &mut left_out, max, &render)?;
            render(&sections, &left_out)?
        };
        // Masks in the omitted parts are gone with them: the note can only get shorter.
        let note = masked_note(&text);
        let text = if note == sections[MASKED] {
            text
        } else {
            sections.insert(MASKED, note);
            render(&sections, &left_out)?
        };
        // Everything in it is sendable already, but the template may be the user's.
        let text = sendable(&text);
        let warnings = quality::check_message(sources, &text, max);
        Ok(Handoff {
            marker: sources.marker.clone(),
            text,
            left_out,
            warnings,
        })
    }

    /// Fills the message up with what was done last, shown by the strategy that is set, or by the other one if that has
    /// no content or no place.
    fn fill_with_activity(
        &self,
        sections: &mut BTreeMap<&'static str, String>,
        sources: &Sources<'_>,
        max: usize,
    ) {
        let nothing = WorkAtHand::default();
        let at_hand = sources.work.unwrap_or(&nothing);
        let steps = LastSteps(at_hand, sources.turn);
        let commands = RecentCommands(sources.recent_commands);
        let mut strategies: [&dyn ContextStrategy; 2] = [&steps, &commands];
        if sources.commands_first {
            strategies.reverse();
        }
        let mut strategies = strategies.into_iter();
        let Some(strategy) = strategies.find(|one| {
            self.places.contains(one.section_name())
                && !one.show_context(max / ACTIVITY_SHARE).is_empty()
        }) else {
            return;
        };
        let section = strategy.section_name();
        // Items removed from the lists make room for more.
        for _ in 0..2 {
            let others = sections.iter().filter(|(key, _)| **key != section);
            let taken: usize = others.map(|(_, body)| body.len()).sum();
            let room = FILLED.saturating_sub(taken).max(ACTIVITY_LEAST);
            let told = strategy.show_context(room.min(max / ACTIVITY_SHARE));
            // The next session reads the commands and failures back from the steps, else from the lists.
            let unsaid = match section {
                "steps" => work::unsaid_by(&told, at_hand),
                _ => at_hand.clone(),
            };
            for (key, body) in [
                ("commands", work::command_lines(&unsaid)),
                ("failure", work::failure_section(&unsaid)),
                ("tried", work::tried_lines(&unsaid)),
                (section, told),
            ] {
                sections.insert(key, fit_section(&body, max));
            }
        }
    }
}

/// The section that lists the kinds of masked secrets.
const MASKED: &str = "masked";

/// Returns the note about the secrets that are masked in a text; empty if there are none.
fn masked_note(text: &str) -> String {
    redact::masks(text).map_or_else(String::new, |masks| {
        format!("{masks}. Ask the user for one that you need.")
    })
}

/// Returns the message with the human's prompts under the heading by which the next session finds them again: a template of
/// the user's own may have no place for them, or another heading.
fn with_prompts(text: &str, prompts: &str) -> String {
    let known: HashSet<&str> = section_lines(text, PROMPTS_HEADING).into_iter().collect();
    if prompts.lines().all(|line| known.contains(line)) {
        return text.to_owned();
    }
    match text.split_once(prompts) {
        Some((above, below)) => format!("{above}{PROMPTS_HEADING}\n\n{prompts}{below}"),
        None => format!("{text}\n\n{PROMPTS_HEADING}\n\n{prompts}"),
    }
}

/// Returns a section's body as it may be sent: no longer than could ever be shown, without controls, secrets masked, and with no line
/// that is a heading of the human's words. This happens before sizes are compared, so that the text in the preview is the text that is
/// counted and sent.
fn fit_section(body: &str, max: usize) -> String {
    let end = body.floor_char_boundary(max.saturating_add(1));
    without_headings(make_harmless(&body[..end]).trim_end())
}

/// Returns a body with a blank in front of each line that is a heading of the human's words: notes, files and the output of commands
/// may hold one, and the next session would take what is below it for theirs.
fn without_headings(body: &str) -> String {
    const SPOKEN: [&str; 3] = [FIRST_HEADING, LATEST_HEADING, PROMPTS_HEADING];
    let is_ours = |line: &str| SPOKEN.contains(&line.trim_end());
    if !body.lines().any(is_ours) {
        return body.to_owned();
    }
    let lines = body.lines().map(|line| {
        let blank = if is_ours(line) { " " } else { "" };
        format!("{blank}{line}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Removes lines from the parts that may not be left out. Objective and pending items keep a fifth of the message each, the next
/// step a tenth, the human's prompts the rest.
fn shorten_kept(
    sections: &mut BTreeMap<&'static str, String>,
    left_out: &mut Vec<String>,
    max: usize,
    render: &impl Fn(&BTreeMap<&'static str, String>, &[String]) -> Result<String, minijinja::Error>,
) -> Result<(), TemplateError> {
    for (key, name, least) in [
        ("scratchpad", "scratchpad", 0),
        ("objective", "objective", max / 5),
        ("pending", "pending items", max / 5),
        ("next_step", "next step", max / 10),
        ("prompts", "prompts", max / 3),
    ] {
        let whole = render(sections, left_out)?;
        if whole.len() <= max {
            break;
        }
        let body = sections.get(key).cloned().unwrap_or_default();
        if body.is_empty() {
            continue;
        }
        let note = the_end_of(name);
        let is_known = left_out.contains(&note);
        if !is_known {
            left_out.push(note);
        }
        let fixed = render(sections, left_out)?.len().saturating_sub(body.len());
        let kept = cut_lines(&body, max.saturating_sub(fixed).max(least));
        if kept.len() == body.len() && !is_known {
            left_out.pop();
        }
        sections.insert(key, kept);
    }
    // The task and the next step that it names are also in sections above.
    if render(sections, left_out)?.len() > max
        && let Some(closing) = sections.get_mut("continuation")
    {
        let behind = closing.split_once("\n\n").map(|(_, behind)| behind);
        *closing = behind.map_or_else(
            || CONTINUATION.to_owned(),
            |behind| format!("{CONTINUATION}\n\n{behind}"),
        );
    }
    Ok(())
}

/// Returns the entry for a section that has lost lines.
fn the_end_of(name: &str) -> String {
    format!("the end of the {name}")
}

/// The minimum that is kept of a section while others lose their ends, in bytes.
const HEAD: usize = 1_024;

/// Cuts the ends of the largest sections, down to one common size, so that `over` bytes go; if that is not
/// enough, down to [`HEAD`], and the open items down to `pending`. The last steps are exempt: they have a size of their own, and their
/// end is the important part.
fn keep_heads(
    sections: &mut BTreeMap<&'static str, String>,
    left_out: &mut Vec<String>,
    over: usize,
    pending: usize,
) {
    // The entry that names a cut section takes room, too, and whole lines are cut.
    const NAMED: usize = 64;
    let may_lose = CUT_ORDER.iter().filter(|(key, _)| *key != "steps");
    let may_lose = may_lose.chain([&("pending", "pending items")]);
    let least_of = |key: &str| if key == "pending" { pending } else { HEAD };
    let sizes: Vec<(usize, usize)> = may_lose
        .clone()
        .filter_map(|(key, _)| Some((sections.get(key)?.len(), least_of(key))))
        .collect();
    let lost = |most: usize| -> usize {
        let over = sizes
            .iter()
            .map(|(size, least)| size.saturating_sub(most.max(*least)));
        over.map(|over| over.saturating_sub(NAMED)).sum()
    };
    let largest = sizes.iter().map(|(size, _)| *size).max().unwrap_or(HEAD);
    let (mut low, mut high) = (HEAD, largest.max(HEAD));
    while low < high {
        let middle = (low + high).div_ceil(2);
        if lost(middle) >= over {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    for (key, name) in may_lose {
        let low = low.max(least_of(key));
        let Some(body) = sections.get_mut(key).filter(|body| body.len() > low) else {
            continue;
        };
        *body = cut_lines(body, low);
        let mut fences = Fences::default();
        for line in body.lines() {
            fences.is_outside(line);
        }
        if let Some(closing) = fences.closing() {
            body.push('\n');
            body.push_str(&closing);
        }
        left_out.push(the_end_of(name));
    }
}

/// Returns the head of a text in at most `budget` bytes: whole lines, or whole characters of the first line.
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

fn template_values(
    sections: &BTreeMap<&'static str, String>,
    marker: &str,
    left_out: &[String],
) -> BTreeMap<&'static str, String> {
    let mut values: BTreeMap<&'static str, String> = CUT_ORDER
        .iter()
        .map(|(key, _)| (*key, String::new()))
        .collect();
    values.extend(KEPT.map(|key| (key, String::new())));
    values.insert(MASKED, String::new());
    values.extend(sections.iter().map(|(key, body)| (*key, body.clone())));
    values.insert("marker", marker.to_owned());
    let items: Vec<String> = left_out.iter().map(|one| format!("- {one}")).collect();
    values.insert("left_out", items.join("\n"));
    values
        .entry("continuation")
        .or_insert_with(|| CONTINUATION.to_owned());
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preserved::{Item, Origin};
    use crate::tests::{marker, said};
    use pitstop_transcript::human::HumanWords;

    fn generate(state: &PreservedState, notes: &str, git: &[String], max: usize) -> Handoff {
        let marker = marker();
        let notes = Parsed::read(notes);
        let sources = Sources {
            scratchpad: &notes,
            git,
            ..Sources::new(&marker, state)
        };
        Generator::default().generate(&sources, max).unwrap()
    }

    fn filled(items: usize) -> PreservedState {
        let mut state = PreservedState::default();
        state.set_objective("Build the parser", Origin::Human);
        for n in 0..items {
            state.mark_completed(&format!("done {n} 漢字"), Origin::Human);
            state.add_pending(&format!("todo {n} 🚀"), Origin::Human);
            state
                .modified_files
                .push(Item::new(&format!("src/file {n}.rs"), Origin::Human));
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
        let notes = crate::scratchpad::TEMPLATE;
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
            "\n\n## Next step\n\n- [ ] todo 0 🚀\n\n",
            "\n\n## Completed\n\n- [x] done 0 漢字\n\n",
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
        assert_eq!(
            handoff.left_out,
            ["the end of the completed items", "modified files"]
        );
        let named = "## Left out for size\n\n- the end of the completed items\n- modified files\n";
        assert!(handoff.text.contains(named), "{}", handoff.text);
        assert!(handoff.text.contains("my notes") && handoff.text.contains("todo 99"));
    }

    #[test]
    fn what_is_far_too_large_loses_its_end_and_drives_nothing_else_out() {
        let git = ["branch main".to_owned(), "abc1234 a commit".to_owned()];
        let mut state = filled(3);
        state.record_decision("use SQLite", "two writers", None, Origin::Signal);
        let line = |number| format!("note {number} of a very long scratchpad\n");
        let notes: String = (0..8_000).map(line).collect();
        let handoff = generate(&state, &notes, &git, 50_000);
        assert_eq!(handoff.left_out, ["the end of the scratchpad"]);
        let large = handoff.text.len() > 45_000 && handoff.text.len() <= 50_000;
        assert!(large, "{}", handoff.text.len());
        for part in [
            "use SQLite",
            "branch main",
            "abc1234",
            "todo 2",
            "note 0 of",
        ] {
            assert!(handoff.text.contains(part), "{part}");
        }
        // A file with a fence of its own is closed.
        let file = IncludedFile::new("a.md", &"```\ncode\n".repeat(500));
        let (marker, notes) = (marker(), Parsed::read(""));
        let sources = Sources {
            scratchpad: &notes,
            included_files: std::slice::from_ref(&file),
            ..Sources::new(&marker, &state)
        };
        let handoff = Generator::default().generate(&sources, 4_000).unwrap();
        assert_eq!(handoff.left_out, ["the end of the included files"]);
        assert!(handoff.text.contains("\n````\n"), "{}", handoff.text);
    }

    #[test]
    fn template_values_are_data() {
        let handoff = generate(&filled(1), "{{ objective }} {% if %}", &[], 50_000);
        assert!(handoff.text.contains("{{ objective }} {% if %}"));
    }

    #[test]
    fn a_broken_template_is_reported_with_its_line() {
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

    #[test]
    fn a_template_that_knows_no_prompts_carries_them_all_the_same() {
        let mut state = filled(1);
        for rule in ["Never touch main.", "Only use tabs."] {
            state.add_constraint(said(rule), Origin::Human);
        }
        for template in [
            "{{ marker }}\n\nGo on: {{ continuation }}",
            "{{ marker }}\n\n## Rules\n\n{{ prompts }}\n\n## Go on\n\n{{ continuation }}",
            DEFAULT_TEMPLATE,
        ] {
            let (generator, marker) = (Generator::new(template).unwrap(), marker());
            let sources = Sources::new(&marker, &state);
            let text = generator.generate(&sources, 50_000).unwrap().text;
            assert_eq!(text.matches("Never touch main.").count(), 1, "{text}");
            let mut words = HumanWords::default();
            words.take_prompt(&text, None);
            let prompts: Vec<_> = words.prompts.iter().map(|one| one.text.as_str()).collect();
            assert_eq!(prompts, ["Never touch main.", "Only use tabs."], "{text}");
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
            assert_eq!(items > 0, handoff.text.contains("## Next step"));
            assert_eq!(items > 1, handoff.text.contains("## Pending"));
        }
    }

    #[test]
    fn a_long_list_of_open_items_leaves_room_for_the_rest() {
        let mut state = PreservedState::default();
        state.set_objective("Port all modules", Origin::Human);
        for n in 0..1_000 {
            let item = format!("port src/modules/module_{n}.rs and its tests to the new interface");
            state.add_pending(&item, Origin::Human);
        }
        state.record_decision("keep the old names", "others use them", None, Origin::Human);
        let marker = marker();
        let sources = Sources {
            git: &["branch topic".to_owned()],
            latest_request: "Never push.",
            ..Sources::new(&marker, &state)
        };
        let handoff = Generator::default().generate(&sources, 50_000).unwrap();
        for part in [
            "> Never push.",
            "- branch topic",
            "keep the old names",
            "module_100.rs",
        ] {
            assert!(
                handoff.text.contains(part),
                "{part}: {:?}",
                handoff.left_out
            );
        }
        assert_eq!(handoff.left_out, ["the end of the pending items"]);
        assert!(handoff.text.len() <= 50_000 && handoff.text.len() > 45_000);
    }
}
