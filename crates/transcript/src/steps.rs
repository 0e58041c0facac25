//! The last steps of a session: the human's prompts and their own commands, the agent's words, each call of a tool with its whole arguments and its outcome,
//! and what tasks in the background reported. A session that was cut in the middle of a turn is continued behind the last of them.
//!
//! ```text
//! human: Port the parser.
//! human: ! git switch main
//!   printed:
//!     Switched to branch 'main'
//! agent: I run its tests first.
//! $ cargo test --lib -- parser 2>&1 | tail -20
//!   failed:
//!     error[E0308]: mismatched types
//! Edit src/parser.rs
//!     - old
//!     + new
//! Read src/parser.rs, lines 120 to 180
//!   no result yet
//! report: Agent "look" finished
//!     The lock is in src/lock.rs.
//! ```
//!
//! Only the first line of a step is not indented, so no text of a tool can look like a step or like a heading. Texts come in
//! here with their secrets masked: a part cut from a secret could not be recognised as one any more.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

use super::{
    denial::Denial,
    human::section_lines,
    todo::is_todo_tool,
    words::{clipped, on_one_line, split_ends, without_number, without_signals},
    work::COMMAND_CAP,
};

/// The heading of the handoff's section that holds the steps.
pub const STEPS_HEADING: &str = "## Last steps";

/// The start of the first line of a prompt.
pub const ASKED: &str = "human: ";

/// The start of the first line of a command that the human ran in the client's shell mode.
const RAN_BY_HUMAN: &str = "human: ! ";

/// The start of the first line of the agent's words.
pub const SAID: &str = "agent: ";

/// The start of the first line of what a task in the background reported.
pub const REPORTED: &str = "report: ";

/// The start of the first line of a shell command.
pub const RAN: &str = "$ ";

/// The indents of the further lines of a step, and of the line with its outcome.
const BELOW: &str = "    ";
const MARK: &str = "  ";

/// The words for the outcome of a call; one that worked and printed nothing worth showing has none.
const OUTCOMES: [(Outcome, &str); 8] = [
    (Outcome::Worked, "printed"),
    (Outcome::Failed, "failed"),
    (Outcome::Open, "no result yet"),
    (Outcome::Cut, "no result: the session ended first"),
    (Outcome::Refused, "refused by the human"),
    (Outcome::Blocked, "not allowed"),
    (Outcome::Stopped, "stopped by the human"),
    (Outcome::Skipped, "not run"),
];
/// The line below a command or an agent that runs in the background.
pub const IN_BACKGROUND: &str = "(in the background)";

/// The most that is remembered of all steps together, in bytes: twice what a handoff has room for.
const REMEMBERED: usize = 32 * 1024;

/// The most of one step's arguments and of its output that is remembered, in bytes.
const INPUT_CAP: usize = 4 * 1024;
const OUTPUT_CAP: usize = 2 * 1024;

/// The length in bytes of the longest line that is remembered; a longer one is cut in its middle.
const LINE_CAP: usize = 1_000;

/// The most of a prompt that a step shows, and of a command that a later step has, too, in bytes: enough to know it by.
const ASKED_CAP: usize = 40;
const AGAIN_CAP: usize = 32;

/// The largest share of the shown arguments or output that one line takes, in percent: two lines, the first and the last, fit.
const LINE_SHARE: usize = 40;

/// The words of a search in place of a line that is too long: they say nothing of it.
const LEFT_OUT: &str = "[Omitted long matching line]";

/// The text in place of lines that the handoff has elsewhere, and the least length of such a line in bytes.
pub const SAID_BELOW: &str = "…";
const REPEATED: usize = 12;

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Outcome {
    /// The human, the agent or a task in the background said something.
    Said,
    /// A call that has no result yet.
    Open,
    /// A call whose session ended before its result came.
    Cut,
    /// A call that has worked.
    Worked,
    /// A call that has failed.
    Failed,
    /// A call that the human refused.
    Refused,
    /// A call that a rule or a hook did not allow.
    Blocked,
    /// A call that the human stopped.
    Stopped,
    /// A call that the client did not run.
    Skipped,
}

impl Outcome {
    /// Returns the outcome of a call that did not run, or not to its end.
    const fn of_denial(denial: Denial<'_>) -> Self {
        match denial {
            Denial::Refused(_) => Self::Refused,
            Denial::Blocked(_) => Self::Blocked,
            Denial::Stopped => Self::Stopped,
            Denial::Skipped => Self::Skipped,
            Denial::Cut => Self::Cut,
        }
    }

    /// Returns the words for it; none for what was said.
    fn words(self) -> &'static str {
        let found = OUTCOMES.iter().find(|(outcome, _)| *outcome == self);
        found.map_or("", |(_, words)| words)
    }

    /// Returns the words for it with the first line of a reason, if there is one.
    fn line_with(self, why: &str) -> String {
        match why.lines().next().unwrap_or_default().trim() {
            "" => self.words().to_owned(),
            why => format!("{}: {why}", self.words()),
        }
    }

    /// Reads the words for an outcome.
    fn read(words: &str) -> Option<Self> {
        let words = words.strip_suffix(':').unwrap_or(words);
        let found = OUTCOMES.iter().find(|(_, known)| *known == words);
        found.map(|(outcome, _)| *outcome)
    }
}

/// Returns the line by which a call is known that was refused or not allowed, for this reason; none for any other denial.
pub(crate) fn denied_line(denial: Denial<'_>, why: &str) -> Option<String> {
    matches!(denial, Denial::Refused(_) | Denial::Blocked(_))
        .then(|| Outcome::of_denial(denial).line_with(why))
}

/// Returns the reason in the line of a call that was refused or not allowed; none in any other line.
pub fn denial_reason(line: &str) -> Option<&str> {
    let mut words = [Outcome::Refused, Outcome::Blocked]
        .map(Outcome::words)
        .into_iter();
    let rest = words.find_map(|words| line.strip_prefix(words))?;
    (rest.is_empty() || rest.starts_with(": ")).then(|| rest.trim_start_matches(": "))
}

/// Reports whether a line of a step, without its indent, is the one with the outcome.
pub fn is_outcome(line: &str) -> bool {
    Outcome::read(line).is_some()
}

/// The most bytes that are shown of each part of a step.
#[derive(Clone, Copy, Debug)]
pub struct Detail {
    /// The most bytes of what was said or asked for.
    pub input: usize,
    /// The most bytes of the output of a call that has succeeded.
    pub printed: usize,
    /// The most bytes of the output of a call that has failed.
    pub failed: usize,
}

impl Detail {
    /// Creates it from the most bytes of input, of output, and of the output of a failure.
    pub const fn new(input: usize, printed: usize, failed: usize) -> Self {
        Self {
            input,
            printed,
            failed,
        }
    }
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// Its first line.
    head: String,
    /// The further lines of what was said or asked for.
    input: Vec<String>,
    outcome: Outcome,
    /// The lines of its output that are worth showing.
    output: Vec<String>,
}

impl Step {
    /// Reports whether it is what the human asked for.
    pub fn is_prompt(&self) -> bool {
        self.head.starts_with(ASKED)
    }

    /// Reports whether it is a call that has no result yet.
    pub fn is_open(&self) -> bool {
        self.outcome == Outcome::Open
    }

    /// Reports whether it is the call of a shell.
    pub(crate) fn is_command(&self) -> bool {
        self.head.starts_with(RAN)
    }

    /// Returns the file of an edit that worked.
    fn edited_file(&self) -> Option<&str> {
        let file = self.head.strip_prefix("Edit ")?;
        let placed = file.rsplit_once(':');
        let placed = placed.filter(|(_, line)| line.bytes().all(|byte| byte.is_ascii_digit()));
        (self.outcome == Outcome::Worked).then(|| placed.map_or(file, |(file, _)| file))
    }

    /// Reports whether it is a call that has worked and asked for the same as the other one.
    pub fn is_repeated_by(&self, other: &Self) -> bool {
        let lines = bare_line(&self.head).zip(bare_line(&other.head));
        let alike = lines.is_some_and(|((place, line), (later, same))| {
            line == same && (place == later || place.is_none() || later.is_none())
        });
        let same = self.head == other.head || alike;
        self.outcome == Outcome::Worked && same && self.input == other.input
    }

    /// Returns the shell command that it ran, in one line; where it was cut, with its start and its end.
    fn command(&self) -> Option<String> {
        let first = self.head.strip_prefix(RAN)?;
        let lines = self.input.iter().map(|line| line.trim());
        let lines = lines.filter(|line| *line != IN_BACKGROUND);
        let lines: Vec<&str> = std::iter::once(first).chain(lines).collect();
        Some(on_one_line(&lines.join(" ")))
    }

    /// Reports whether it is the call that the lists of commands and failures have by this name.
    pub fn is_call(&self, name: &str) -> bool {
        let call = self.command().unwrap_or_else(|| self.head.clone());
        let rest = self.head.strip_prefix(name);
        cut_in_the_middle(&call, COMMAND_CAP) == name
            || rest.is_some_and(|rest| !self.is_command() && rest.starts_with([':', ',']))
    }

    /// Reports whether a handoff that shows it shows the call of this name, of which it may have cut any part but the start.
    pub fn shows(&self, name: &str) -> bool {
        let call = self.command().unwrap_or_else(|| self.head.clone());
        let start = |text: &str| {
            text.split('…')
                .next()
                .unwrap_or_default()
                .trim_end()
                .to_owned()
        };
        let (own, other) = (start(&call), start(name));
        let is_cut = own.len() < call.len() || other.len() < name.len();
        let is_start = own.starts_with(&other) || other.starts_with(&own);
        self.is_call(name) || is_cut && is_start && !own.is_empty() && !other.is_empty()
    }

    /// Reports whether it is a call that went wrong or was not allowed.
    pub const fn went_wrong(&self) -> bool {
        matches!(
            self.outcome,
            Outcome::Failed | Outcome::Refused | Outcome::Blocked
        )
    }

    /// Returns the shell command that it ran, or another call that went wrong, in one line, whether it went wrong, and what its
    /// output said.
    pub(crate) fn ended_call(&self) -> Option<(String, bool, String)> {
        let output = match self.outcome {
            Outcome::Worked | Outcome::Failed => self.output.join("\n"),
            Outcome::Refused | Outcome::Blocked => {
                let why = self.output.first().map_or("", String::as_str);
                self.outcome.line_with(why)
            }
            _ => return None,
        };
        let went_wrong = self.went_wrong();
        match self.command() {
            Some(command) => Some((command, went_wrong, output)),
            None => went_wrong.then(|| (self.head.clone(), true, output)),
        }
    }

    /// Returns the step as lines of the handoff, with [`SAID_BELOW`] in place of lines in `said`; its own lines are added there.
    pub fn show(&self, detail: &Detail, said: &mut HashSet<String>) -> String {
        // A later step has the command whole. A path is none without its middle.
        let is_new = !self.is_command() || said.insert(self.head.clone());
        let cap = if is_new {
            detail.input
        } else {
            detail.input.min(AGAIN_CAP)
        };
        let mut head = cut_in_the_middle(&self.head, cap);
        let what = self.head.split_once(' ').map_or("", |(_, what)| what);
        let own = self.head.starts_with(SAID).then(|| bare_words(what));
        if own.is_some_and(|words| words.len() >= REPEATED && said.contains(words)) {
            head = format!("{SAID}{SAID_BELOW}");
        } else if head == self.head {
            // A file is known by its path alone.
            let words = own.or_else(|| what.split([':', ',']).next());
            said.extend(words.map(str::to_owned));
        }
        let mut text = format!("{head}\n");
        let mut below = |text: &mut String, lines: &[String], cap: usize| {
            let mut own = HashSet::new();
            let mut lines: Vec<String> = lines
                .iter()
                .map(|line| cut_in_the_middle(line, cap * LINE_SHARE / 100))
                .map(|line| {
                    let words = bare_words(&line);
                    let is_new = words.len() < REPEATED
                        || !said.contains(words) && own.insert(line.trim().to_owned());
                    if is_new { line } else { SAID_BELOW.to_owned() }
                })
                .collect();
            lines.dedup_by(|a, b| a == b && a == SAID_BELOW);
            for line in both_ends(&lines, cap) {
                text.push_str(&format!("{BELOW}{line}\n"));
                said.insert(bare_words(&line).to_owned());
            }
        };
        let input = detail.input.saturating_sub(self.head.len());
        below(&mut text, &self.input, input);
        let cap = match self.outcome {
            Outcome::Worked => detail.printed,
            _ => detail.failed,
        };
        let is_shown = cap > 0 && !self.output.is_empty();
        if matches!(self.outcome, Outcome::Said | Outcome::Worked) && !is_shown {
            return text;
        }
        let colon = if is_shown { ":" } else { "" };
        text.push_str(&format!("{MARK}{}{colon}\n", self.outcome.words()));
        below(&mut text, &self.output, cap);
        text
    }

    /// Reads the steps of a handoff back.
    pub fn read_all(handoff: &str) -> Vec<Self> {
        let mut steps: Vec<Self> = Vec::new();
        // True once the line with the outcome of the step has been read.
        let mut is_output = false;
        let lines = section_lines(handoff, STEPS_HEADING).into_iter();
        let fenced = lines.skip_while(|line| !line.starts_with("```")).skip(1);
        for line in fenced.take_while(|line| !line.starts_with("```")) {
            let said = [ASKED, SAID, REPORTED]
                .iter()
                .any(|mark| line.starts_with(mark));
            let Some(step) = steps.last_mut().filter(|_| line.starts_with(' ')) else {
                is_output = false;
                steps.push(Self {
                    head: line.to_owned(),
                    input: Vec::new(),
                    outcome: if said { Outcome::Said } else { Outcome::Worked },
                    output: Vec::new(),
                });
                continue;
            };
            match (line.strip_prefix(BELOW), line.trim_start()) {
                (Some(line), _) if is_output => step.output.push(line.to_owned()),
                (Some(line), _) => step.input.push(line.to_owned()),
                (None, word) => {
                    is_output = true;
                    step.outcome = Outcome::read(word).unwrap_or(Outcome::Worked);
                }
            }
        }
        // A command that a later step has, too, is shown by its ends.
        for at in 1..steps.len() {
            let (before, later) = steps.split_at_mut(at);
            let whole = &later[0];
            let again = cut_in_the_middle(&whole.head, AGAIN_CAP);
            let is_again = |step: &&mut Self| whole.is_command() && step.head == again;
            for step in before.iter_mut().filter(is_again) {
                step.head.clone_from(&whole.head);
            }
        }
        steps
    }

    fn bytes(&self) -> usize {
        let lines = self.input.iter().chain(&self.output);
        self.head.len() + lines.map(String::len).sum::<usize>()
    }
}

/// The last steps of a session; see the top of this file.
#[derive(Debug, Default)]
pub struct Steps {
    /// The steps, the oldest first, each with the id by which its result names it.
    steps: VecDeque<(String, Step)>,
    bytes: usize,
}

/// The start of the names of the tools that pitstop gives the agent.
const OWN_TOOLS: &str = "mcp__pitstop__";

impl Steps {
    /// Notes where the human asked for something, by the start of its first line. The whole prompt has a section of its own.
    pub fn note_prompt(&mut self, text: &str) {
        let line = text.lines().next().unwrap_or_default();
        self.push("", words_step(ASKED, &clipped(line, ASKED_CAP)));
    }

    /// Notes a command that the human ran in the client's shell mode.
    pub fn note_own_command(&mut self, command: &str) {
        self.push("", words_step(RAN_BY_HUMAN, command));
    }

    /// Notes what the human's last command printed.
    pub fn end_own_command(&mut self, output: &str) {
        let last = self.steps.back_mut().map(|(_, step)| step);
        let open =
            |step: &&mut Step| step.outcome == Outcome::Said && step.head.starts_with(RAN_BY_HUMAN);
        let Some(step) = last.filter(open) else {
            return;
        };
        step.outcome = Outcome::Worked;
        step.output = both_ends(&lines_of(output).collect::<Vec<_>>(), OUTPUT_CAP);
        self.bytes += step.output.iter().map(String::len).sum::<usize>();
        self.forget_oldest();
    }

    /// Notes the words of the agent.
    pub fn note_words(&mut self, text: &str) {
        let text = without_signals(text);
        if !text.is_empty() {
            self.push("", words_step(SAID, &text));
        }
    }

    /// Notes what a task in the background reported at its end.
    pub fn note_report(&mut self, text: &str) {
        self.push("", words_step(REPORTED, text));
    }

    /// Notes that a tool was called, and returns the first line of its step; `file` is the file that it is about, as the handoff
    /// names it.
    pub fn begin_call(
        &mut self,
        id: &str,
        tool: &str,
        input: &Value,
        file: Option<&str>,
    ) -> Option<String> {
        // The to-do list, the plan and the notes of pitstop's own tools have sections of their own.
        let is_kept = is_todo_tool(tool) || tool == "ExitPlanMode" || tool.starts_with(OWN_TOOLS);
        if tool.is_empty() || is_kept {
            return None;
        }
        let mut lines = describe_call(tool, input, file).into_iter();
        let step = Step {
            head: cut_in_the_middle(&lines.next().unwrap_or_default(), LINE_CAP),
            input: both_ends(&lines.collect::<Vec<_>>(), INPUT_CAP),
            outcome: Outcome::Open,
            output: Vec::new(),
        };
        let head = step.head.clone();
        self.push(id, step);
        Some(head)
    }

    /// Notes the outcome of a call, and the line of its file at which it ended. The output of one that worked is shown only if
    /// it did not read or change a file: a file that was read can be read again.
    pub fn end_call(&mut self, id: &str, failed: bool, line: Option<u64>, output: &str) {
        let Some(step) = find_open(&mut self.steps, id) else {
            return;
        };
        let is_file = ["Read ", "Edit ", "MultiEdit ", "Write ", "NotebookEdit "];
        let shown = failed || !is_file.iter().any(|tool| step.head.starts_with(tool));
        step.outcome = if failed {
            Outcome::Failed
        } else {
            Outcome::Worked
        };
        if let Some(line) = line {
            let place = format!(":{line}");
            self.bytes += place.len();
            step.head.push_str(&place);
        }
        if shown {
            let lines: Vec<String> = lines_of(output).collect();
            step.output = both_ends(&lines, OUTPUT_CAP);
            self.bytes += step.output.iter().map(String::len).sum::<usize>();
        }
        self.forget_oldest();
    }

    /// Notes that what was called goes on in the background: its end comes as a report.
    pub fn put_in_background(&mut self, id: &str) {
        let step = find_open(&mut self.steps, id);
        // A command may have been called so.
        if let Some(step) =
            step.filter(|step| step.input.last().is_none_or(|line| line != IN_BACKGROUND))
        {
            step.input.push(IN_BACKGROUND.to_owned());
            self.bytes += IN_BACKGROUND.len();
        }
    }

    /// Notes that a call did not run, or not to its end; `why` is what is worth showing of the reason.
    pub fn deny_call(&mut self, id: &str, denial: Denial<'_>, why: &str) {
        let Some(step) = find_open(&mut self.steps, id) else {
            return;
        };
        step.outcome = Outcome::of_denial(denial);
        step.output = both_ends(&lines_of(why).collect::<Vec<_>>(), OUTPUT_CAP);
        self.bytes += step.output.iter().map(String::len).sum::<usize>();
        self.forget_oldest();
    }

    /// Takes over the steps of the session before and gives them back; none, if this one has steps already.
    pub fn carry_over(&mut self, handoff: &str) -> Vec<Step> {
        if !self.steps.is_empty() {
            return Vec::new();
        }
        let steps = Step::read_all(handoff);
        for step in &steps {
            self.push("", step.clone());
        }
        steps
    }

    /// Returns the steps, the oldest first. Edits of one file that follow each other are one step, with the place of the last.
    pub fn list(&self) -> Vec<Step> {
        let mut all: Vec<Step> = Vec::new();
        for (_, step) in &self.steps {
            let file = step.edited_file();
            match all
                .last_mut()
                .filter(|last| file.is_some() && last.edited_file() == file)
            {
                Some(last) => {
                    last.head.clone_from(&step.head);
                    last.input.extend_from_slice(&step.input);
                }
                None => all.push(step.clone()),
            }
        }
        all
    }

    fn push(&mut self, id: &str, step: Step) {
        self.bytes += step.bytes();
        self.steps.push_back((id.to_owned(), step));
        self.forget_oldest();
    }

    /// Forgets the oldest steps until the rest is within its bound.
    fn forget_oldest(&mut self) {
        while self.bytes > REMEMBERED
            && let Some((_, oldest)) = self.steps.pop_front()
        {
            self.bytes -= oldest.bytes();
        }
    }
}

/// Returns the call of this id that has no result yet.
fn find_open<'a>(steps: &'a mut VecDeque<(String, Step)>, id: &str) -> Option<&'a mut Step> {
    let mut latest = steps.iter_mut().rev();
    let open = latest.find(|(of, step)| of == id && step.is_open());
    open.map(|(_, step)| step)
}

/// Returns the words by which a line is known that is said again: without the signs of a change and the mark or number of a list item.
pub fn bare_words(line: &str) -> &str {
    without_number(line.trim().trim_start_matches(['+', '-', '*', ' ']))
}

/// Returns the directory that a shell command goes to first, and the command without that and without the end of a pipe that only cuts
/// what it prints.
fn bare_line(head: &str) -> Option<(Option<&str>, &str)> {
    let line = head.strip_prefix(RAN)?;
    let placed = line.strip_prefix("cd ");
    let placed = placed.and_then(|rest| rest.split_once(" && "));
    let (place, line) = placed.map_or((None, line), |(place, rest)| (Some(place), rest));
    let cut = line.rsplit_once(" | ");
    let cut = cut.filter(|(_, last)| last.starts_with("head") || last.starts_with("tail"));
    let line = cut.map_or(line, |(before, _)| before);
    Some((place, line.strip_suffix(" 2>&1").unwrap_or(line)))
}

fn words_step(mark: &str, text: &str) -> Step {
    let mut lines = lines_of(text);
    Step {
        head: format!("{mark}{}", lines.next().unwrap_or_default()),
        input: both_ends(&lines.collect::<Vec<_>>(), INPUT_CAP),
        outcome: Outcome::Said,
        output: Vec::new(),
    }
}

/// Returns a call as lines: the action first, then the rest of its arguments.
fn describe_call(tool: &str, input: &Value, file: Option<&str>) -> Vec<String> {
    let text = |key: &str| input[key].as_str().unwrap_or_default();
    let name = tool.replace(
        |c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c)),
        "_",
    );
    match (tool, file) {
        ("Bash" | "PowerShell", _) => {
            let mut lines: Vec<String> = lines_of(text("command")).collect();
            if let Some(first) = lines.first_mut() {
                first.insert_str(0, RAN);
            }
            if input["run_in_background"] == true {
                lines.push(IN_BACKGROUND.to_owned());
            }
            lines
        }
        ("Read", Some(file)) => vec![format!("{name} {file}{}", range_text(input))],
        (_, Some(file)) => {
            let mut lines = vec![format!("{name} {file}")];
            let edits = input["edits"].as_array().into_iter().flatten();
            for edit in std::iter::once(input).chain(edits) {
                lines.extend(changed_lines(edit));
            }
            for key in ["content", "new_source"] {
                lines.extend(lines_of(text(key)));
            }
            lines
        }
        _ => {
            let mut texts = Vec::new();
            add_fields(input, "", &mut texts);
            let first = texts.first().cloned().unwrap_or_default();
            let head = format!("{name} {first}").trim_end().to_owned();
            std::iter::once(head)
                .chain(texts.into_iter().skip(1))
                .collect()
        }
    }
}

/// Returns the part of a file that is read: `, lines 120 to 180`.
fn range_text(input: &Value) -> String {
    let first = input["offset"].as_u64();
    let count = input["limit"].as_u64();
    match (first, count) {
        (None, None) => String::new(),
        (first, Some(count)) => {
            let first = first.unwrap_or(1);
            format!(
                ", lines {first} to {}",
                first.saturating_add(count).saturating_sub(1)
            )
        }
        (Some(first), None) => format!(", from line {first}"),
    }
}

/// Returns the changes of an edit: the removed and the added lines, without as many as both have. All of them where only their
/// order has changed.
fn changed_lines(edit: &Value) -> Vec<String> {
    let lines = |key: &str| lines_of(edit[key].as_str().unwrap_or_default()).collect();
    let (old, new): (Vec<String>, Vec<String>) = (lines("old_string"), lines("new_string"));
    let marked = |lines: &[String], others: &[String], mark: &str| -> Vec<String> {
        let mut both: HashMap<&str, usize> = HashMap::new();
        for line in others {
            *both.entry(line.trim()).or_default() += 1;
        }
        let only = lines.iter().filter(|line| match both.get_mut(line.trim()) {
            Some(left) if *left > 0 => {
                *left -= 1;
                false
            }
            _ => true,
        });
        only.map(|line| format!("{mark}{line}")).collect()
    };
    let changed = [marked(&old, &new, "- "), marked(&new, &old, "+ ")].concat();
    if changed.is_empty() && old != new {
        return [marked(&old, &[], "- "), marked(&new, &[], "+ ")].concat();
    }
    changed
}

/// Adds every text of a call's arguments to `lines`; the first one goes without its name.
fn add_fields(value: &Value, key: &str, lines: &mut Vec<String>) {
    let mut put = |text: &str| {
        for (at, line) in lines_of(text).enumerate() {
            let named = at == 0 && !lines.is_empty() && !key.is_empty();
            lines.push(if named {
                format!("{key}: {line}")
            } else {
                line
            });
        }
    };
    match value {
        Value::String(text) => put(text),
        Value::Number(number) => put(&number.to_string()),
        Value::Array(values) => values
            .iter()
            .for_each(|value| add_fields(value, key, lines)),
        Value::Object(all) => {
            // Neither the output mode of a search nor a time limit says what was asked for.
            let all = all
                .iter()
                .filter(|(key, _)| !matches!(key.as_str(), "output_mode" | "timeout"));
            all.for_each(|(key, value)| add_fields(value, key, lines));
        }
        Value::Bool(_) | Value::Null => {}
    }
}

/// Returns the lines of a text that say something.
fn lines_of(text: &str) -> impl Iterator<Item = String> {
    let lines = text.lines().map(str::trim_end);
    let lines = lines.filter(|line| !line.is_empty() && !line.ends_with(LEFT_OUT));
    lines.map(|line| cut_in_the_middle(line, LINE_CAP))
}

/// Returns a line cut to about `cap` bytes, with its start and its end.
pub fn cut_in_the_middle(line: &str, cap: usize) -> String {
    split_ends(line, cap).map_or_else(
        || line.to_owned(),
        |(head, tail)| format!("{} … {}", head.trim_end(), tail.trim_start()),
    )
}

/// Returns the first and the last of these lines in at most `cap` bytes, with the number of lines left out between them.
fn both_ends(lines: &[String], cap: usize) -> Vec<String> {
    let size = |lines: &[String]| lines.iter().map(|line| line.len() + 1).sum::<usize>();
    if size(lines) <= cap {
        return lines.to_vec();
    }
    let fitting = |lines: &mut dyn Iterator<Item = &String>| {
        let mut left = cap / 2;
        let fits = |line: &&String| {
            let fits = left > line.len();
            left = left.saturating_sub(line.len() + 1);
            fits
        };
        lines.take_while(fits).count()
    };
    let head = fitting(&mut lines.iter());
    let tail = fitting(&mut lines[head..].iter().rev());
    let left_out = lines.len() - head - tail;
    let plural = if left_out == 1 { "" } else { "s" };
    let note = format!("… {left_out} line{plural} …");
    let mut kept = lines[..head].to_vec();
    kept.push(note);
    kept.extend_from_slice(&lines[lines.len() - tail..]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const fn up_to(input: usize, output: usize) -> Detail {
        Detail {
            input,
            printed: output,
            failed: output,
        }
    }

    fn shown(steps: &Steps) -> String {
        let steps = steps.list();
        let mut said = HashSet::new();
        let shown = steps
            .iter()
            .map(|step| step.show(&up_to(1_000, 1_000), &mut said));
        shown.collect()
    }

    fn ran(steps: &mut Steps, id: &str, command: &str) {
        steps.begin_call(id, "Bash", &json!({ "command": command }), None);
    }

    #[test]
    fn an_edit_shows_what_it_changes_and_no_line_more() {
        let shows = |old: &str, new: &str| {
            changed_lines(&json!({ "old_string": old, "new_string": new })).join("\n")
        };
        assert_eq!(shows("a\nold\nz", "a\nnew\nz"), "- old\n+ new");
        assert_eq!(shows("f() {\n}", "f() {\n}\ng() {\n}"), "+ g() {\n+ }");
        assert_eq!(shows("x += 1;\nx += 1;", "x += 1;"), "- x += 1;");
        assert_eq!(shows("a\nb", "b\na"), "- a\n- b\n+ b\n+ a");
        assert_eq!(shows("", "new"), "+ new");
    }

    #[test]
    fn a_step_has_its_whole_arguments_and_its_outcome() {
        let mut steps = Steps::default();
        steps.note_prompt("Port the parser.\nAnd its tests.");
        steps.note_words("I run its tests first.\n\nDONE: nothing\nThen I port it.");
        ran(&mut steps, "1", "sleep 1; echo mark 3");
        steps.end_call("1", false, None, "mark 3\n\n");
        ran(&mut steps, "2", "cd sub &&\n  cargo test --lib -- parser");
        steps.end_call(
            "2",
            true,
            None,
            "Exit code 101\nerror[E0308]: mismatched types",
        );
        let edit = json!({ "old_string": "a\nold\nz", "new_string": "a\nnew\nmore\nz" });
        steps.begin_call("3", "Edit", &edit, Some("src/parser.rs"));
        steps.end_call("3", false, None, "The file has been updated.");
        let part = json!({ "offset": 120, "limit": 61 });
        steps.begin_call("4", "Read", &part, Some("src/parser.rs"));
        let search = json!({ "pattern": "fn parse", "path": "src", "glob": "*.rs" });
        steps.begin_call("5", "Grep", &search, None);
        assert_eq!(
            shown(&steps),
            "human: Port the parser.\n\
             agent: I run its tests first.\n    Then I port it.\n\
             $ sleep 1; echo mark 3\n  printed:\n    mark 3\n\
             $ cd sub &&\n      cargo test --lib -- parser\n  failed:\n    Exit code 101\n    \
             error[E0308]: mismatched types\n\
             Edit src/parser.rs\n    - old\n    + new\n    + more\n\
             Read src/parser.rs, lines 120 to 180\n  no result yet\n\
             Grep fn parse\n    path: src\n    glob: *.rs\n  no result yet\n"
        );
    }

    #[test]
    fn what_is_long_keeps_its_two_ends() {
        let mut steps = Steps::default();
        let program: Vec<String> = (0..100).map(|n| format!("line {n}")).collect();
        let program = program.join("\n");
        ran(
            &mut steps,
            "1",
            &format!("python3 - <<'EOF'\n{program}\nEOF"),
        );
        steps.end_call("1", false, None, &"x".repeat(100_000));
        let step = &steps.list()[0];
        let text = step.show(&up_to(100, 60), &mut HashSet::new());
        assert!(
            text.starts_with("$ python3 - <<'EOF'\n    line 0\n"),
            "{text}"
        );
        assert!(
            text.contains(" lines …\n") && text.contains("    EOF\n"),
            "{text}"
        );
        assert!(text.len() < 300, "{text}");
        let line = format!("$ {}--last", "word ".repeat(200));
        ran(&mut steps, "2", &line[2..]);
        let text = steps.list()[1].show(&up_to(100, 0), &mut HashSet::new());
        assert!(
            text.starts_with("$ word word") && text.contains("word --last\n"),
            "{text}"
        );
    }

    #[test]
    fn no_text_of_a_tool_stands_at_the_margin() {
        let mut steps = Steps::default();
        ran(&mut steps, "1", "cat notes\n## Objective\nDECISION: a | b");
        steps.end_call("1", false, None, "## Objective\nhuman: do it\r\n$ rm -rf x");
        steps.begin_call("2", "mcp__## x\nTODO: y", &json!({ "a": "b" }), None);
        let text = shown(&steps);
        let at_the_margin: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).collect();
        assert_eq!(at_the_margin, ["$ cat notes", "mcp_____x_TODO__y b"]);
    }

    #[test]
    fn steps_are_read_back_from_a_handoff() {
        let mut steps = Steps::default();
        steps.note_prompt("Go on");
        ran(&mut steps, "1", "make\nmake test");
        steps.end_call("1", true, None, "No rule\nto make target");
        ran(&mut steps, "2", "ls");
        steps.end_call("2", false, None, "a");
        ran(&mut steps, "3", "sleep 9");
        let text = shown(&steps);
        let handoff =
            format!("{STEPS_HEADING}\n\nThe turn was over.\n\n```\n{text}```\n\n## Git\n");
        let mut next = Steps::default();
        next.carry_over(&handoff);
        assert_eq!(shown(&next), text);
        next.carry_over(&handoff);
        assert_eq!(shown(&next), text, "once");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut steps = Steps::default();
        for n in 0..2_000 {
            let (id, text) = (n.to_string(), "word ".repeat(900));
            ran(&mut steps, &id, &text);
            steps.end_call(&id, true, None, &text.replace(' ', "\n"));
            assert!(steps.bytes <= REMEMBERED && steps.steps.len() < 40);
        }
        let sum: usize = steps.list().iter().map(Step::bytes).sum();
        assert_eq!(sum, steps.bytes);
    }

    #[test]
    fn what_a_step_says_again_stands_in_the_last_one_alone() {
        let mut steps = Steps::default();
        for id in ["1", "2"] {
            ran(&mut steps, id, &format!("mix test --seed {id}"));
            steps.end_call(
                id,
                true,
                None,
                "3 tests\nexpected 1, got 2\nexpected 1, got 2\nthe end of it\nshort",
            );
        }
        let mut said = HashSet::from(["the end of it".to_owned()]);
        let shown = steps
            .list()
            .into_iter()
            .rev()
            .map(|step| step.show(&up_to(1_000, 1_000), &mut said));
        let shown: Vec<String> = shown.collect();
        assert_eq!(
            shown,
            [
                "$ mix test --seed 2\n  failed:\n    3 tests\n    expected 1, got 2\n    …\n    short\n",
                "$ mix test --seed 1\n  failed:\n    3 tests\n    …\n    short\n",
            ]
        );
    }

    #[test]
    fn a_line_is_said_again_with_another_number_or_the_other_sign() {
        for (first, second) in [
            ("4. Visit the page", "5. Visit the page"),
            ("+ def handle_event(a) do", "- def handle_event(a) do"),
            ("+    - `docs/README.md`", "* `docs/README.md`"),
        ] {
            assert_eq!(bare_words(first), bare_words(second));
        }
        let counts = ["397 tests, 0 failures", "410 tests, 0 failures"];
        assert_ne!(bare_words(counts[0]), bare_words(counts[1]));
    }

    #[test]
    fn an_edit_says_where_it_was_and_only_what_has_changed() {
        let mut steps = Steps::default();
        let edit = json!({ "old_string": "a\n  b\nc", "new_string": "if a {\n    b\n}\nc" });
        steps.begin_call("1", "Edit", &edit, Some("src/parser.rs"));
        steps.end_call("1", false, Some(120), "");
        assert_eq!(
            shown(&steps),
            "Edit src/parser.rs:120\n    - a\n    + if a {\n    + }\n"
        );
    }

    #[test]
    fn a_command_with_another_front_or_a_cut_output_is_done_again() {
        let repeats = |one: &str, later: &str| {
            let mut steps = Steps::default();
            for (id, line) in [("1", one), ("2", later)] {
                ran(&mut steps, id, line);
                steps.end_call(id, false, None, "");
            }
            steps.list()[0].is_repeated_by(&steps.list()[1])
        };
        for one in ["cd x && make", "make 2>&1 | tail -5", "make | head", "make"] {
            assert!(repeats(one, "make") && repeats("make", one), "{one}");
        }
        assert!(!repeats("cd x && make", "cd y && make"));
        assert!(!repeats("make | grep a", "make | grep b"));
    }

    #[test]
    fn a_prompt_is_known_by_its_start() {
        let mut steps = Steps::default();
        steps.note_prompt(&"größe ".repeat(90));
        let text = shown(&steps);
        assert!(text.len() < 100 && text.ends_with(" …\n"), "{text}");
    }

    #[test]
    fn edits_of_one_file_that_follow_each_other_are_one_step() {
        let mut steps = Steps::default();
        for (id, file, failed) in [
            ("1", "a.rs", false),
            ("2", "a.rs", false),
            ("3", "a.rs", true),
            ("4", "b.rs", false),
        ] {
            let edit = json!({ "old_string": "", "new_string": format!("line {id}") });
            steps.begin_call(id, "Edit", &edit, Some(file));
            steps.end_call(id, failed, (!failed).then_some(7), "");
        }
        assert_eq!(
            shown(&steps),
            "Edit a.rs:7\n    + line 1\n    + line 2\nEdit a.rs\n    + line 3\n  failed\nEdit b.rs:7\n    + line 4\n"
        );
    }

    #[test]
    fn a_call_that_a_later_step_has_is_known_by_its_ends() {
        let mut steps = Steps::default();
        for (id, output) in [("1", "2 failed"), ("2", "1 failed")] {
            ran(
                &mut steps,
                id,
                "mix test test/web/live/review_live_test.exs",
            );
            steps.end_call(id, true, None, output);
        }
        let list = steps.list();
        let (detail, mut said) = (Detail::new(400, 400, 400), HashSet::new());
        let later = list[1].show(&detail, &mut said);
        assert!(
            later.starts_with("$ mix test test/web/live/review_live_test.exs\n"),
            "{later}"
        );
        let before = list[0].show(&detail, &mut said);
        assert!(before.starts_with("$ mix test test/ … "), "{before}");
        assert!(before.contains("2 failed"), "{before}");
    }

    #[test]
    fn a_plan_and_a_file_that_is_read_later_stand_in_one_place_alone() {
        let mut steps = Steps::default();
        steps.note_words("I rewrite the renderer:\n- its rows\n- its tests");
        let search = json!({ "pattern": "lib/**/render*" });
        steps.begin_call("1", "Glob", &search, None);
        steps.end_call("1", false, None, "lib/renderer.ex");
        steps.begin_call(
            "2",
            "Read",
            &json!({ "offset": 7 }),
            Some("lib/renderer.ex"),
        );
        steps.end_call("2", false, None, "");
        let mut said = HashSet::from(["I rewrite the renderer:".to_owned()]);
        let list = steps.list().into_iter().rev();
        let shown: Vec<String> = list
            .map(|step| step.show(&up_to(1_000, 1_000), &mut said))
            .collect();
        assert_eq!(
            shown,
            [
                "Read lib/renderer.ex, from line 7\n",
                "Glob lib/**/render*\n  printed:\n    …\n",
                "agent: …\n    - its rows\n    - its tests\n",
            ]
        );
    }

    #[test]
    fn a_poll_with_another_time_limit_asks_for_the_same() {
        let mut steps = Steps::default();
        for (id, limit) in [("1", 30_000), ("2", 60_000)] {
            let poll = json!({ "task_id": "bd0afab", "block": true, "timeout": limit });
            steps.begin_call(id, "TaskOutput", &poll, None);
            steps.end_call(id, false, None, "");
        }
        let list = steps.list();
        assert!(list[0].is_repeated_by(&list[1]));
    }
}
