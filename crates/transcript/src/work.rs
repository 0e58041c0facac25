//! The work at hand, gathered line by line from a transcript: the facts that a session needs first when it continues.
//!
//! What is used next is mostly what was used last, and what was used again and again. So each file, identifier and
//! reference has a worth: each mention adds to it by its place (in an edit more than in a tool's output), and half of
//! the worth is lost with every 24 blocks of the conversation. An identifier belongs to the files that it was
//! mentioned in.
//!
//! Secrets are masked in each text before anything is derived from it: a secret in a name or in half a command could not be
//! recognised any more. Memory is bounded whatever the transcript holds. The same lines give the same report.

mod carried;
mod deed;
mod excerpt;
mod places;
mod report;
mod worth;

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap, VecDeque},
};

use serde_json::Value;

use super::{
    commands::{ShellMode, shell_mode},
    content::{Block, each_block, tool_output},
    denial::{Denial, own_words, read_denial, without_wrapper},
    facts::{self, Fact, each_fact},
    human::{by_a_human, chosen_answers, is_a_persons, says_nothing},
    prompts,
    steps::{Step, Steps, cut_in_the_middle, denied_line},
    waiting::Waiting,
    words::{clipped, is_among, on_one_line, without_signals},
};
use deed::Deed;
use excerpt::{is_list, lines_that_matter, searched_part, stopped_at};
use pitstop_base::redact;
use places::Places;
pub use places::below_work_tree;
use worth::{KEPT, Worth, prune_entries};

/// The most files that an identifier is remembered with, those with the strongest mentions.
const HOMES: usize = 4;

/// The most calls that wait for their result.
const CALLS: usize = 256;

/// The most commands, failures and texts of the assistant that are remembered, the latest ones.
const COMMANDS: usize = 64;
const FAILURES: usize = 32;
const TEXTS: usize = 6;

/// The most of a command, of a line of output and of the assistant's last words that is reported, in bytes.
pub(crate) const COMMAND_CAP: usize = 240;
const LINE_CAP: usize = 240;
const WORDS_CAP: usize = 1_600;

/// The most of a plan that is kept, in bytes.
const PLAN_CAP: usize = 3_000;

/// The heading of the work at hand.
pub const WORK_HEADING: &str = "## Work at hand";
/// The beginning of the line with the files of which only the paths are known.
pub const OTHER_FILES: &str = "Other files";
/// The heading of the commands.
pub const COMMANDS_HEADING: &str = "## Commands";
/// The heading of the latest plan.
pub const PLAN_HEADING: &str = "## Latest plan";
/// The heading of the last failure.
pub const FAILURE_HEADING: &str = "## Last failure";
/// The heading of the earlier failures.
pub const TRIED_HEADING: &str = "## Tried and did not work";
/// The text in front of the name of a branch.
pub const BRANCH: &str = "branch ";
/// The mark behind the path of a file that was changed.
pub const CHANGED_MARK: &str = " (changed)";
/// The mark behind the path of a file whose changes are not committed.
pub const UNCOMMITTED_MARK: &str = " (changed, not committed)";
/// The heading of the git state.
pub const GIT_HEADING: &str = "## Git";
/// The text between the name of a branch and the work tree that it is in.
pub const IN_WORK_TREE: &str = ", in the work tree ";

/// The model name in a message that the client itself wrote in the agent's place.
const SYNTHETIC: &str = "<synthetic>";

/// The starts of the client's errors for a path at which there is no file.
const NO_FILE: [&str; 3] = ["File does not exist", "Path does not exist", "EISDIR"];

/// The arguments with the client's own ids of background work, and with words of its own.
const OWN_ARGUMENTS: &str = "task_id|bash_id|shell_id|resume|status|output_mode|subagent_type";

/// The tools whose calls cannot be named by what they were called with: ids, or questions to the human.
const UNNAMED_TOOLS: &str = "AskUserQuestion|BashOutput|KillBash|KillShell|TaskOutput|TaskStop";

/// The directory of the client's files with the output of background work, and their ending.
const OUTPUTS: [&str; 2] = ["/tasks/", ".output"];

/// The line above a plan that the human refused.
pub const REFUSED_PLAN: &str = "(The human refused this plan.)";

/// A file that the work is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileAtHand {
    /// Its path, relative to the session's directory where it is below it.
    pub path: String,
    /// True if it was changed; else it was read or named.
    pub changed: bool,
    /// The line of the last change or of the last part that was read, from 1.
    pub line: Option<u64>,
    /// The identifiers mentioned in it, those of the most worth first.
    pub names: Vec<String>,
}

/// A call that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Failure {
    /// The command, or the tool with its file.
    pub call: String,
    /// The lines of its output that show the failure.
    pub lines: Vec<String>,
    /// True if the same call has worked since.
    pub worked_later: bool,
}

/// The report of the work at hand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct WorkAtHand {
    /// The files, those of the most worth first.
    pub files: Vec<FileAtHand>,
    /// The identifiers that belong to none of these files.
    pub names: Vec<String>,
    /// The issues, commits, branches and addresses, those of the most worth first.
    pub references: Vec<String>,
    /// The commands, each once, the latest first.
    pub commands: Vec<String>,
    /// The last failure, if the call has not worked since.
    pub last_failure: Option<Failure>,
    /// The earlier failures and the calls that were not allowed, the latest first; the last failure is not among them.
    pub tried: Vec<Failure>,
    /// The plan of the work for the latest request, in the assistant's own words: what it put to the human, or listed before it went on.
    pub plan: Option<String>,
    /// The assistant's last paragraphs, oldest first.
    pub last_words: Vec<String>,
    /// The last steps, the oldest first.
    pub steps: Vec<Step>,
    /// True if the agent was prompted or has called a tool, and has said nothing since.
    pub is_in_turn: bool,
}

impl WorkAtHand {
    /// Reports whether there is nothing to report.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Debug, Default)]
struct Name {
    worth: Worth,
    homes: Vec<(String, f64)>,
}

#[derive(Debug, Default)]
struct File {
    worth: Worth,
    /// True if a tool has used it by this path.
    is_used: bool,
    /// True if a tool has used it or words have named it, and not only an output.
    is_at_hand: bool,
    changed: bool,
    line: Option<u64>,
}

/// A call that waits for its result.
#[derive(Debug, Default)]
struct Call {
    /// What it did, by which a later call is recognised as the same.
    deed: Deed,
    /// Its name in the report.
    name: String,
    file: Option<String>,
    is_search: bool,
    changes: bool,
    /// True if its file, or its shell command, was not known before.
    is_new: bool,
    /// The names in its change that were not known before.
    new_names: Vec<String>,
    /// Its plan.
    plan: Option<String>,
    /// True if its tool is of an MCP server.
    is_foreign: bool,
}

/// The work of one session; see the top of this file.
#[derive(Debug, Default)]
pub struct Work {
    /// The number of blocks that have been seen.
    blocks: u64,
    places: Places,
    branch: String,
    names: HashMap<String, Name>,
    files: HashMap<String, File>,
    /// The last path that was seen with a file name.
    paths: HashMap<String, String>,
    references: HashMap<String, Worth>,
    /// The commands as they are shown, the latest last.
    commands: VecDeque<String>,
    /// The failures, each with what its call did.
    failures: VecDeque<(Deed, Failure)>,
    texts: VecDeque<String>,
    plan: Option<String>,
    /// True if the plan was put to the human, so that no list takes its place.
    is_put: bool,
    /// The latest text with a list that no call has followed yet: it may be a plan or a report.
    listed: Option<String>,
    steps: Steps,
    calls: Waiting<Call, CALLS>,
    is_in_turn: bool,
}

impl Work {
    /// Takes one record of the transcript; a subagent's, the client's own and unknown ones change nothing.
    pub fn take_record(&mut self, record: &Value) {
        for image in prompts::image_sources(record) {
            let file = image.strip_prefix(prompts::IMAGE_SOURCE);
            let file = file
                .and_then(|file| file.strip_suffix(']'))
                .unwrap_or_default();
            self.use_file(&self.places.relative_path(file), worth::ASKED);
            self.steps.note_prompt(&image);
        }
        if record["isSidechain"] == true
            || record["isMeta"] == true
            || record["isCompactSummary"] == true
            || record["isApiErrorMessage"] == true
            || record["message"]["model"] == SYNTHETIC
        {
            return;
        }
        if let Some(report) = prompts::task_report(record) {
            let report = redact::redact(&report);
            self.blocks += 1;
            self.note_mentions(&report, worth::PRINTED, None);
            self.steps
                .note_report(&self.places.without_directory(&report));
            return;
        }
        let by_the_model = match record["type"].as_str() {
            Some("assistant") => true,
            Some("user") => false,
            // A prompt that waited comes in an attachment, where the agent reads it.
            Some("attachment") => {
                for text in by_a_human(record) {
                    self.take_text(text, false);
                }
                return;
            }
            _ => return,
        };
        if let Some(directory) = record["cwd"].as_str().filter(|text| text.starts_with('/')) {
            self.places.works_in(directory.trim_end_matches('/'));
        }
        if let Some(branch) = record["gitBranch"].as_str() {
            branch.clone_into(&mut self.branch);
        }
        for block in each_block(&record["message"]["content"]) {
            match block {
                // A tag in a record that names another origin is the client's, whatever its name.
                Block::Text(text)
                    if !by_the_model
                        && text.trim_start().starts_with('<')
                        && !is_a_persons(record) => {}
                Block::Text(text) => self.take_text(text, by_the_model),
                Block::Call(block) if by_the_model => {
                    // A list that work follows is its plan.
                    let listed = self.listed.take().filter(|_| !self.is_put);
                    self.plan = listed.or(self.plan.take());
                    self.begin_call(block);
                }
                Block::Result(block) => self.end_call(block, record),
                Block::Call(_) | Block::Image => {}
            }
        }
        self.forget_least();
    }

    fn take_text(&mut self, text: &str, by_the_model: bool) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        let is_command = text.starts_with("<command-") && !prompts::begins_turn(text);
        if !by_the_model && prompts::is_handoff(text) {
            self.carry_over(text);
            return;
        }
        if let Some(line) = shell_mode(text).filter(|_| !by_the_model) {
            self.take_shell_mode(&line);
            return;
        }
        let own = if by_the_model {
            Some(Cow::Borrowed(text))
        } else {
            prompts::of_human(text).filter(|own| !own.starts_with("[Request interrupted"))
        };
        let Some(own) = own else {
            return;
        };
        let text = &*redact::redact(&own);
        self.blocks += 1;
        let by = if by_the_model {
            worth::SAID
        } else {
            worth::ASKED
        };
        self.note_mentions(text, by, None);
        // A command with words may be one that the client carries out by itself.
        let was_in_turn = std::mem::replace(&mut self.is_in_turn, !by_the_model && !is_command);
        if by_the_model {
            // The signals have sections of their own.
            let text = without_signals(text);
            if text.is_empty() {
                return;
            }
            if is_list(&text) {
                self.listed = Some(clipped(&text, PLAN_CAP));
            }
            self.steps.note_words(&text);
            self.texts.push_back(clipped(&text, WORDS_CAP));
            if self.texts.len() > TEXTS {
                self.texts.pop_front();
            }
        } else {
            // A plan for a request that was answered is old once another one comes.
            if !was_in_turn && !is_command && !says_nothing(text) {
                (self.plan, self.is_put, self.listed) = (None, false, None);
            }
            self.steps.note_prompt(text);
        }
    }

    /// Takes a command that the human ran beside the agent, or what it printed.
    fn take_shell_mode(&mut self, line: &ShellMode<'_>) {
        self.blocks += 1;
        match line {
            ShellMode::Ran(command) => {
                let command = redact::redact(command);
                self.note_mentions(&command, worth::ASKED, None);
                self.steps.note_own_command(&command);
            }
            ShellMode::Printed(output) => {
                let output = redact::redact(output);
                self.note_mentions(&output, worth::PRINTED, None);
                let output = self.places.without_directory(&output);
                self.steps.end_own_command(&output);
            }
        }
    }

    fn begin_call(&mut self, block: &Value) {
        self.blocks += 1;
        let mut input = redact::value(&block["input"]);
        let tool = block["name"].as_str().unwrap_or_default();
        if matches!(tool, "Grep" | "Glob") {
            self.places.shorten_search(&mut input);
        }
        let input = &input;
        let text = |key: &str| input[key].as_str().unwrap_or_default();
        let file = file_of_call(tool, input).map(|path| self.places.relative_path(path));
        let command = on_one_line(text("command"));
        let id = block["id"].as_str();
        let shown = file.as_deref().map(|path| self.places.shown_path(path));
        let step = self
            .steps
            .begin_call(id.unwrap_or_default(), tool, input, shown.as_deref());
        self.is_in_turn |= !tool.is_empty();
        let mut call = match &file {
            Some(path) => Call {
                deed: Deed::of_call(format!("{tool} {path}")),
                name: format!("{tool} {}", shown.unwrap_or_default()),
                ..Call::default()
            },
            None => Call {
                deed: Deed::of_line(text("command"), self.places.current()),
                name: cut_in_the_middle(&command, COMMAND_CAP),
                ..Call::default()
            },
        };
        call.is_foreign = tool.starts_with("mcp__");
        match (tool, file) {
            ("Edit" | "MultiEdit" | "Write" | "NotebookEdit", Some(path)) => {
                call.is_new = self.use_file(&path, worth::CHANGED);
                call.new_names = self.note_change(input, &path);
                call.changes = true;
                call.file = Some(path);
            }
            (_, Some(path)) => {
                call.is_new = self.use_file(&path, worth::NEARBY);
                if call.is_foreign {
                    self.mention_all(input, Some(&path));
                }
                call.file = Some(path);
            }
            ("Bash" | "PowerShell", None) => {
                let mut rest = text("command").to_owned();
                for (place, file) in facts::shell_files(text("command")).into_iter().rev() {
                    self.mention_path(&file, worth::RUN);
                    rest.replace_range(place, " ");
                }
                self.note_mentions(&rest, worth::RUN, None);
                call.is_new = !command.is_empty() && self.note_command(&call.name);
            }
            ("Grep" | "Glob", None) => {
                self.note_mentions(text("pattern"), worth::SOUGHT, None);
                self.note_mentions(text("path"), worth::NEARBY, None);
                call.is_search = true;
                // Lines from one file alone come without its name.
                let path = self.places.relative_path(text("path"));
                call.file = self.files.contains_key(&path).then_some(path);
            }
            ("ExitPlanMode", None) => {
                if !text("plan").trim().is_empty() {
                    self.plan = Some(clipped(text("plan"), PLAN_CAP));
                    call.plan.clone_from(&self.plan);
                    self.is_put = true;
                }
                self.mention_all(input, None);
            }
            _ => {
                if let Some(step) = step.filter(|_| !is_among(UNNAMED_TOOLS, tool)) {
                    call.deed = Deed::of_call(format!("{tool} {input}"));
                    call.name = cut_in_the_middle(&step, COMMAND_CAP);
                }
                self.mention_all(input, None);
            }
        }
        if let Some(id) = id {
            self.calls.insert(id, call);
        }
    }

    /// Makes a command the latest; returns whether it is new.
    fn note_command(&mut self, command: &str) -> bool {
        let known = self.commands.len();
        self.commands.retain(|have| have != command);
        let is_new = self.commands.len() == known;
        self.commands.push_back(command.to_owned());
        if self.commands.len() > COMMANDS {
            self.commands.pop_front();
        }
        is_new
    }

    /// Counts the identifiers of a change: those that are new in it count for more than those around them. Returns those that were
    /// not known.
    fn note_change(&mut self, input: &Value, path: &str) -> Vec<String> {
        let mut unknown = Vec::new();
        let mut note = |name: &str, by: f64| {
            if self.note_name(name, by, Some(path)) {
                unknown.push(name.to_owned());
            }
        };
        let edits = input["edits"].as_array().into_iter().flatten();
        for edit in std::iter::once(input).chain(edits) {
            let part = |key: &str| edit[key].as_str().unwrap_or_default();
            let (old, new) = (
                searched_part(part("old_string")),
                searched_part(part("new_string")),
            );
            let before = facts::names_in(&old);
            for name in facts::names_in(&new) {
                let is_new = !before.contains(name);
                let by = if is_new {
                    worth::CHANGED
                } else {
                    worth::NEARBY
                };
                note(name, by);
            }
        }
        for key in ["content", "new_source"] {
            let text = searched_part(input[key].as_str().unwrap_or_default());
            for name in facts::names_in(&text) {
                note(name, worth::WRITTEN);
            }
        }
        unknown
    }

    fn end_call(&mut self, block: &Value, record: &Value) {
        self.blocks += 1;
        let outcome = &record["toolUseResult"];
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        let mut call = self.calls.take(id);
        let is_foreign = call.as_ref().is_none_or(|call| call.is_foreign);
        if let Some(denial) = read_denial(record, block, is_foreign) {
            self.deny_call(id, denial, call);
            return;
        }
        let output = tool_output(block);
        // Colour sequences come before names without a blank.
        let output = pitstop_base::clean::without_escapes(&output);
        let output = redact::redact(&output);
        // The client's own errors name its tools and their parameters.
        let error = without_wrapper(&output);
        let mentions = if error.is_some() { "" } else { &*output };
        let answers = chosen_answers(record).join("\n");
        let answers = redact::redact(&answers);
        let output = if answers.is_empty() {
            error.unwrap_or(&output)
        } else {
            &answers
        };
        let failed = block["is_error"] == true;
        let is_background = outcome["isAsync"] == true || outcome["backgroundTaskId"].is_string();
        let worked = match &mut call {
            _ if is_background && !failed => None,
            Some(call) => call.deed.outcome(failed, output),
            None => Some(!failed),
        };
        let failed = worked == Some(false);
        let changed = call.as_ref().is_some_and(|call| call.changes && !failed);
        let line = stopped_at(outcome, true).filter(|_| changed);
        if is_background {
            self.steps.put_in_background(id);
        }
        self.steps
            .end_call(id, failed, line, &self.places.without_directory(output));
        let Some(call) = call else {
            self.note_mentions(mentions, worth::PRINTED, None);
            return;
        };
        if let Some(plan) = outcome["plan"].as_str().filter(|_| call.plan.is_some()) {
            // The human may have edited it.
            self.plan = Some(clipped(&redact::redact(plan), PLAN_CAP));
        }
        if !is_background || failed {
            self.record_outcome(&call, worked, output);
        }
        match &call.file {
            Some(path) if !failed => {
                if let Some(file) = self.files.get_mut(path) {
                    file.changed |= call.changes;
                    file.line = stopped_at(outcome, call.changes).or(file.line);
                }
                // The answer to an edit is the file again.
                if !call.changes {
                    for name in facts::names_in(&searched_part(mentions)) {
                        self.note_name(name, worth::READ, Some(path));
                    }
                }
            }
            Some(_) if NO_FILE.iter().any(|start| output.starts_with(start)) => {
                self.take_back(&call);
            }
            _ if call.is_search => self.note_hits(mentions),
            _ => self.note_mentions(mentions, worth::PRINTED, None),
        }
    }

    /// Notes that a call did not run, or not to its end: that is no failure, and its result is the client's text.
    fn deny_call(&mut self, id: &str, denial: Denial<'_>, call: Option<Call>) {
        let why = match denial {
            // The whole words are among the human's.
            Denial::Refused(words) => own_words(words).next().unwrap_or_default().lines().next(),
            Denial::Blocked(why) => Some(why),
            _ => None,
        };
        let why = redact::redact(why.unwrap_or_default());
        let why = self.places.without_directory(&why).into_owned();
        self.steps.deny_call(id, denial, &why);
        let Some(call) = call else {
            return;
        };
        match denial {
            Denial::Stopped | Denial::Cut => return,
            Denial::Refused(_) if call.plan.is_some() && call.plan == self.plan => {
                self.plan = call
                    .plan
                    .as_ref()
                    .map(|plan| format!("{REFUSED_PLAN}\n\n{plan}"));
            }
            _ => {}
        }
        self.take_back(&call);
        if let Some(line) = denied_line(denial, &why) {
            self.record_outcome(&call, Some(false), &line);
        }
    }

    /// Forgets what only a call that did not run has brought in.
    fn take_back(&mut self, call: &Call) {
        for name in &call.new_names {
            self.names.remove(name);
        }
        match &call.file {
            Some(path) if call.is_new => drop(self.files.remove(path)),
            None if call.is_new => self.commands.retain(|have| *have != call.name),
            _ => {}
        }
    }

    /// Remembers a failure, and that a call which failed before has worked. Where nothing shows whether a call has worked, it is at
    /// least not what it was when it failed.
    fn record_outcome(&mut self, call: &Call, worked: Option<bool>, output: &str) {
        if call.deed.is_empty() {
            return;
        }
        if worked == Some(false) {
            self.failures.retain(|(deed, _)| !deed.is_same(&call.deed));
            let failure = Failure {
                call: call.name.clone(),
                lines: lines_that_matter(output),
                worked_later: false,
            };
            self.failures.push_back((call.deed.clone(), failure));
            if self.failures.len() > FAILURES {
                self.failures.pop_front();
            }
            return;
        }
        for (deed, failure) in &mut self.failures {
            failure.worked_later |= match worked {
                None => deed.is_same_line(&call.deed),
                _ => deed.is_done_by(&call.deed),
            };
        }
    }

    /// Notes the lines that a search found: `path:12:text`.
    fn note_hits(&mut self, output: &str) {
        for line in searched_part(output).lines() {
            let parts = line.split_once([':']).and_then(|(path, rest)| {
                let number = rest.find([':', '-'])?;
                let digits = rest[..number].bytes().all(|byte| byte.is_ascii_digit());
                (number > 0 && digits).then(|| (path, &rest[number + 1..]))
            });
            match parts {
                Some((path, text)) => {
                    let path = self.places.relative_path(path);
                    self.mention_file(&path, worth::PRINTED, true);
                    for name in facts::names_in(text) {
                        self.note_name(name, worth::PRINTED, Some(&path));
                    }
                }
                // A line is a whole path, unless it has a blank in front of its first directory.
                None if facts::is_file(line)
                    && line
                        .split_once('/')
                        .is_some_and(|(first, _)| !first.contains(' ')) =>
                {
                    let path = self.places.relative_path(line);
                    self.mention_file(&path, worth::PRINTED, true);
                }
                None => self.note_mentions(line, worth::PRINTED, None),
            }
        }
    }

    /// Notes the mentions in every text of a call's input.
    fn mention_all(&mut self, value: &Value, home: Option<&str>) {
        match value {
            Value::String(text) => self.note_mentions(text, worth::RUN, home),
            Value::Array(values) => {
                for value in values {
                    self.mention_all(value, home);
                }
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    if !is_among(OWN_ARGUMENTS, key) {
                        self.mention_all(value, home);
                    }
                }
            }
            _ => {}
        }
    }

    fn note_mentions(&mut self, text: &str, by: f64, home: Option<&str>) {
        // A name counts once in one text, else one long output would outweigh a session.
        let text = searched_part(text);
        let mut all = BTreeSet::new();
        each_fact(&text, &mut |fact| {
            all.insert(fact);
        });
        for fact in all {
            match fact {
                Fact::Name(name) => drop(self.note_name(name, by, home)),
                Fact::File(path) => self.mention_path(path, by),
                Fact::Reference(reference) => {
                    let worth = self.references.entry(reference.to_owned()).or_default();
                    worth.gain(self.blocks, by);
                }
            }
        }
    }

    /// Counts a mention of the file at a path as a text has it.
    fn mention_path(&mut self, path: &str, by: f64) {
        let path = self.places.relative_path(path);
        // The work is seldom about a file outside of the project.
        let is_outside = path.starts_with('/') || path.starts_with("../");
        let share = if is_outside { 8.0 } else { 2.0 };
        self.mention_file(&path, by / share, by <= worth::PRINTED);
    }

    /// Counts a mention of an identifier; returns whether it was not known.
    fn note_name(&mut self, name: &str, by: f64, home: Option<&str>) -> bool {
        let is_new = !self.names.contains_key(name);
        if is_new {
            self.names.insert(name.to_owned(), Name::default());
        }
        let Some(entry) = self.names.get_mut(name) else {
            return is_new;
        };
        entry.worth.gain(self.blocks, by);
        let Some(home) = home else { return is_new };
        match entry.homes.iter_mut().find(|(path, _)| path == home) {
            Some((_, weight)) => *weight += by,
            None => entry.homes.push((home.to_owned(), by)),
        }
        if entry.homes.len() > HOMES {
            entry.homes.sort_by(|a, b| b.1.total_cmp(&a.1));
            entry.homes.truncate(HOMES);
        }
        is_new
    }

    /// Counts a mention of a file in a text: a bare name, or the end of a path with a blank, is short for the file that was met last
    /// by it.
    fn mention_file(&mut self, path: &str, by: f64, is_printed: bool) {
        let is_used = self.files.get(path).is_some_and(|file| file.is_used);
        let known = self.paths.get(path).filter(|_| !is_used).cloned();
        let path = known.as_deref().unwrap_or(path);
        self.touch_file(path, by);
        if let Some(file) = self.files.get_mut(path) {
            file.is_at_hand |= !is_printed;
        }
    }

    /// Counts the use of a file by a tool; returns whether it was not known.
    fn use_file(&mut self, path: &str, by: f64) -> bool {
        let is_new = self.touch_file(path, by);
        if let Some(file) = self.files.get_mut(path) {
            (file.is_used, file.is_at_hand) = (true, true);
        }
        is_new
    }

    /// Counts the file at a path; returns whether it was not known.
    fn touch_file(&mut self, path: &str, by: f64) -> bool {
        if path.is_empty() || path.contains(OUTPUTS[0]) && path.ends_with(OUTPUTS[1]) {
            return false;
        }
        let tail = path.rsplit(' ').next().unwrap_or_default();
        let name = tail.rsplit('/').next().unwrap_or_default();
        for short in [tail, name] {
            if short != path {
                self.paths.insert(short.to_owned(), path.to_owned());
            }
        }
        let is_new = !self.files.contains_key(path);
        let file = self.files.entry(path.to_owned()).or_default();
        file.worth.gain(self.blocks, by);
        is_new
    }

    /// Keeps what is remembered within its bound.
    fn forget_least(&mut self) {
        let now = self.blocks;
        prune_entries(&mut self.names, now, |name| name.worth);
        prune_entries(&mut self.files, now, |file| file.worth);
        prune_entries(&mut self.references, now, |worth| *worth);
        if self.paths.len() > KEPT {
            let files = &self.files;
            self.paths.retain(|_, path| files.contains_key(path));
        }
    }
}

#[cfg(test)]
mod tests;

/// Returns the path of the file that a call is about; tools of MCP servers name theirs in other ways.
fn file_of_call<'a>(tool: &str, input: &'a Value) -> Option<&'a str> {
    let mut own = ["file_path", "notebook_path"].iter();
    let others = ["path", "relative_path", "filePath"].iter();
    let mut others = others.filter_map(|key| input[*key].as_str());
    let is_file = |path: &&str| tool.starts_with("mcp__") && facts::is_file(path);
    own.find_map(|key| input[*key].as_str())
        .or_else(|| others.find(is_file))
}
