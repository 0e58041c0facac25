//! The work at hand, gathered line by line from a transcript: the facts that a session needs first when it continues.
//!
//! What is used next is mostly what was used last, and what was used again and again. So each file, identifier and
//! reference has a worth: each mention adds to it by its place (in an edit more than in a tool's output), and half of
//! the worth is lost with every 24 blocks of the conversation. An identifier belongs to the files that it was
//! mentioned in.
//!
//! Secrets are masked in each text before anything is derived from it: a secret in a name or in half a command could not be
//! recognised any more. Memory is bounded whatever the transcript holds. The same lines give the same report.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap, VecDeque},
};

use serde_json::Value;

use super::{
    content::{Block, each_block, joined_text},
    facts::{self, AND, Fact, each_fact, plain_command},
    human::section_lines,
    prompts,
    steps::{Step, Steps, cut_in_the_middle},
    waiting::Waiting,
    words::{clipped, on_one_line, own_lines, split_ends, without_signals},
};
use pitstop_base::redact;

/// The number of blocks (texts, calls, results) after which half of a worth is gone.
const HALF_LIFE: f64 = 24.0;

/// The most identifiers, files and references that are remembered; those of the least worth are forgotten first.
const KEPT: usize = 8_192;

/// The most of a text that is searched for names, in bytes: half at its start and half at its end.
const SEARCHED: usize = 256 * 1024;

/// The most files that an identifier is remembered with, those with the strongest mentions.
const HOMES: usize = 4;

/// The most directories above the session's own from which a file below them is still named by a relative path, and the least
/// depth of such a directory: a package of a repository has others beside it.
const UPWARDS: usize = 2;
const DEEP: usize = 4;

/// The most calls that wait for their result.
const CALLS: usize = 256;

/// The most commands, failures and texts of the assistant that are remembered, the latest ones.
const COMMANDS: usize = 64;
const FAILURES: usize = 32;
const TEXTS: usize = 6;

/// The most entries of a report: files, identifiers (of one file, of all, without a file), references, commands, failures.
/// They name 5 to 15 points more of the identifiers used next than bounds of two thirds, for 1 kB more (handoff bench).
const FILES: usize = 24;
const NAMES_OF_A_FILE: usize = 16;
const NAMES: usize = 130;
const FREE_NAMES: usize = 20;
const REFERENCES: usize = 6;
const SHOWN_COMMANDS: usize = 10;
const SHOWN_FAILURES: usize = 6;

/// The most of a command, of a line of output and of the assistant's last words that is reported, in bytes.
const COMMAND_CAP: usize = 240;
const LINE_CAP: usize = 240;
const WORDS_CAP: usize = 1_600;

/// The most of a plan that is kept, in bytes.
const PLAN_CAP: usize = 3_000;

/// The most lines of the last failure that are reported, and the most paragraphs of the assistant.
const FAILURE_LINES: usize = 12;
const PARAGRAPHS: usize = 4;

/// The headings of the handoff's sections that hold the work, and the mark of a file that was changed.
pub const WORK_HEADING: &str = "## Work at hand";
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

/// The part in front of the name in the path of a work tree that the client has made.
const WORK_TREES: &str = "/.claude/worktrees/";

/// The model name in a message that the client itself wrote in the agent's place.
const SYNTHETIC: &str = "<synthetic>";

/// The start of the client's own note for a call whose session ended before its result came.
const CUT_CALL: &str = "[Tool call interrupted:";

/// The worth of a mention by its place.
mod worth {
    /// The worth of an identifier that is new in an edit, and of a file that was edited or written.
    pub const CHANGED: f64 = 4.0;
    /// The worth of an identifier in an edit that was there before, and of a file that a call names.
    pub const NEARBY: f64 = 2.0;
    /// The worth of an identifier in a whole file that was written.
    pub const WRITTEN: f64 = 2.0;
    /// The worth of a mention in a search pattern.
    pub const SOUGHT: f64 = 4.0;
    /// The worth of a mention in a shell command, or in another input of a tool.
    pub const RUN: f64 = 2.0;
    /// The worth of a mention by the assistant, and of one by the human.
    pub const SAID: f64 = 2.0;
    pub const ASKED: f64 = 4.0;
    /// The worth of a mention in a file that was read, and in any other output.
    pub const READ: f64 = 0.5;
    pub const PRINTED: f64 = 0.4;
}

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
    /// The earlier failures, the latest first; the last failure is not among them.
    pub tried: Vec<Failure>,
    /// The latest plan: the list of what the assistant wanted to do, in its own words.
    pub plan: Option<String>,
    /// The assistant's last paragraphs, oldest first.
    pub last_words: Vec<String>,
    /// The last steps, the oldest first.
    pub steps: Vec<Step>,
    /// True if the agent has called a tool and said nothing since.
    pub is_in_turn: bool,
}

impl WorkAtHand {
    /// Reports whether there is nothing to report.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A worth that fades.
#[derive(Clone, Copy, Debug, Default)]
struct Worth {
    sum: f64,
    /// The block of the last gain.
    at: u64,
    mentions: u32,
}

impl Worth {
    fn gain(&mut self, at: u64, by: f64) {
        self.sum = self.faded_sum(at) + by;
        self.at = at;
        self.mentions = self.mentions.saturating_add(1);
    }

    /// Returns the part of the sum that is left at a block.
    fn faded_sum(self, at: u64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "blocks of one session")]
        let age = at.saturating_sub(self.at) as f64;
        self.sum * (-age / HALF_LIFE).exp2()
    }

    /// Returns the value for the ranking: repeated mentions count for more than a single one.
    fn rank(self, at: u64) -> f64 {
        self.faded_sum(at) * (1.0 + 0.5 * f64::from(self.mentions).ln())
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
    changed: bool,
    line: Option<u64>,
}

/// A call that waits for its result.
#[derive(Debug, Default)]
struct Call {
    /// The key by which a later call is recognised as the same.
    key: String,
    /// Its name in the report.
    name: String,
    file: Option<String>,
    is_search: bool,
    changes: bool,
}

/// The work of one session; see the top of this file.
#[derive(Debug, Default)]
pub struct Work {
    /// The number of blocks that have been seen.
    blocks: u64,
    /// The directory where the session began: files are stored by their paths from here.
    directory: String,
    /// The client's work tree in which the agent is now, if it began elsewhere: its files are named by their paths from there.
    tree: Option<String>,
    branch: String,
    names: HashMap<String, Name>,
    files: HashMap<String, File>,
    /// The last path that was seen with a file name.
    paths: HashMap<String, String>,
    references: HashMap<String, Worth>,
    /// The commands as they are shown, the latest last.
    commands: VecDeque<String>,
    /// The failures, each with the key of its call.
    failures: VecDeque<(String, Failure)>,
    texts: VecDeque<String>,
    plan: Option<String>,
    steps: Steps,
    calls: Waiting<Call, CALLS>,
    is_in_turn: bool,
}

impl Work {
    /// Takes one record of the transcript; a subagent's, the client's own and unknown ones change nothing.
    pub fn take_record(&mut self, record: &Value) {
        if record["isSidechain"] == true
            || record["isMeta"] == true
            || record["isCompactSummary"] == true
            || record["isApiErrorMessage"] == true
            || record["message"]["model"] == SYNTHETIC
        {
            return;
        }
        let by_the_model = match record["type"].as_str() {
            Some("assistant") => true,
            Some("user") => false,
            _ => return,
        };
        if let Some(directory) = record["cwd"].as_str().filter(|text| text.starts_with('/')) {
            self.works_in(directory.trim_end_matches('/'));
        }
        if let Some(branch) = record["gitBranch"].as_str() {
            branch.clone_into(&mut self.branch);
        }
        for block in each_block(&record["message"]["content"]) {
            match block {
                Block::Text(text) => self.take_text(text, by_the_model),
                Block::Call(block) if by_the_model => self.begin_call(block),
                Block::Result(block) => self.end_call(block, &record["toolUseResult"]),
                Block::Call(_) | Block::Image => {}
            }
        }
        self.forget_least();
    }

    fn works_in(&mut self, directory: &str) {
        // Only the first directory counts: a shell's `cd` changes it, and paths must stay comparable.
        if self.directory.is_empty() {
            directory.clone_into(&mut self.directory);
        }
        let tree = work_tree_of(directory);
        self.tree = tree
            .filter(|tree| *tree != self.directory)
            .map(str::to_owned);
    }

    fn take_text(&mut self, text: &str, by_the_model: bool) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        if !by_the_model && prompts::is_handoff(text) {
            self.carry_over(text);
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
        self.is_in_turn = false;
        if by_the_model {
            // The signals have sections of their own.
            let text = without_signals(text);
            if text.is_empty() {
                return;
            }
            if is_plan(&text) {
                self.plan = Some(clipped(&text, PLAN_CAP));
            } else {
                self.steps.note_words(&text);
            }
            self.texts.push_back(clipped(&text, WORDS_CAP));
            if self.texts.len() > TEXTS {
                self.texts.pop_front();
            }
        } else {
            self.steps.note_prompt(text);
        }
    }

    /// Takes over the work of the session before: else a reboot soon after a reboot would lose it.
    fn carry_over(&mut self, handoff: &str) {
        self.blocks += 1;
        for line in section_lines(handoff, COMMANDS_HEADING) {
            let command = line
                .strip_prefix("- `")
                .and_then(|rest| rest.strip_suffix('`'));
            if let Some(command) = command {
                self.commands.push_front(clipped(command, COMMAND_CAP));
            }
        }
        self.commands.truncate(COMMANDS);
        self.carry_failures(handoff);
        // A command among the steps is not in the list of commands.
        for step in self.steps.carry_over(handoff) {
            if let Some((line, failed, output)) = step.shell_command() {
                let call = Call {
                    key: plain_command(&line),
                    name: cut_in_the_middle(&line, COMMAND_CAP),
                    ..Call::default()
                };
                self.note_command(&call.name);
                self.record_outcome(&call, failed, &output.join("\n"));
            }
        }
        if self.plan.is_none() {
            let lines = section_lines(handoff, PLAN_HEADING).into_iter();
            let lines: Vec<&str> = lines
                .filter_map(|line| line.strip_prefix('>'))
                .map(|line| line.strip_prefix(' ').unwrap_or(line))
                .collect();
            self.plan = Some(lines.join("\n")).filter(|plan| !plan.is_empty());
        }
        // Ranks are kept: the first file and its first names are worth the most.
        let mut by = worth::ASKED;
        let git = section_lines(handoff, GIT_HEADING);
        let mut place = git.iter().filter_map(|line| line.split_once(IN_WORK_TREE));
        let place = place.next().map(|(_, place)| place);
        for line in section_lines(handoff, WORK_HEADING) {
            let Some(item) = line.strip_prefix("- ") else {
                continue;
            };
            by *= 0.97;
            let (head, names) = item.split_once(": ").unwrap_or((item, ""));
            let marks = [CHANGED_MARK, UNCOMMITTED_MARK];
            let changed = marks.iter().find_map(|mark| head.strip_suffix(mark));
            let (head, changed) = (changed.unwrap_or(head), changed.is_some());
            let (path, line) = match head.rsplit_once(':') {
                Some((path, number)) => (path, number.parse().ok()),
                None => (head, None),
            };
            let path = match place {
                Some(place) if !path.starts_with('/') => {
                    self.relative_path(&join_path(place, path))
                }
                _ => self.relative_path(path),
            };
            let is_file = facts::is_file(&path);
            if is_file {
                self.touch_file(&path, by);
                if let Some(file) = self.files.get_mut(&path) {
                    file.changed |= changed;
                    file.line = file.line.or(line);
                }
            }
            let home = is_file.then_some(path.as_str());
            for name in names.split(", ").filter(|name| facts::is_name(name)) {
                self.note_name(name, by, home);
            }
            if !is_file {
                self.note_mentions(names, by, None);
            }
        }
    }

    /// Takes over the failures of calls that have not worked since, as older than the failures of this session.
    fn carry_failures(&mut self, handoff: &str) {
        let mut last = section_lines(handoff, FAILURE_HEADING).into_iter();
        let call = last.by_ref().find(|line| line.starts_with('`'));
        let fenced = last.skip_while(|line| !line.starts_with("```")).skip(1);
        let lines = fenced.take_while(|line| !line.starts_with("```"));
        let call = call.and_then(|line| line.strip_prefix('`')?.strip_suffix('`'));
        let lines = lines.map(|line| line.strip_prefix("  ").unwrap_or(line).to_owned());
        let last = call.map(|call| (call, lines.collect()));
        let tried = section_lines(handoff, TRIED_HEADING).into_iter();
        let tried = tried.filter_map(|line| {
            let item = line.strip_prefix("- `")?;
            let (call, why) = item.split_once("`: ").unwrap_or((item, ""));
            let call = call.strip_suffix('`').unwrap_or(call);
            let why = Some(why.to_owned()).filter(|why| !why.is_empty());
            Some((call, why.into_iter().collect()))
        });
        for (call, lines) in last.into_iter().chain(tried) {
            let key = plain_command(call);
            if self.failures.len() < FAILURES && self.failures.iter().all(|(have, _)| *have != key)
            {
                let failure = Failure {
                    call: call.to_owned(),
                    lines,
                    worked_later: false,
                };
                self.failures.push_front((key, failure));
            }
        }
    }

    fn begin_call(&mut self, block: &Value) {
        self.blocks += 1;
        let input = &redact::value(&block["input"]);
        let tool = block["name"].as_str().unwrap_or_default();
        let text = |key: &str| input[key].as_str().unwrap_or_default();
        let named = ["file_path", "notebook_path"]
            .into_iter()
            .find_map(|key| input[key].as_str());
        // Tools of MCP servers name their file in other ways.
        let others = ["path", "relative_path", "filePath"].into_iter();
        let of_others = || {
            let mut paths = others.filter_map(|key| input[key].as_str());
            paths.find(|path| tool.starts_with("mcp__") && facts::is_file(path))
        };
        let file = named
            .or_else(of_others)
            .map(|path| self.relative_path(path));
        let command = on_one_line(text("command"));
        let id = block["id"].as_str();
        let shown = file.as_deref().map(|path| self.shown_path(path));
        self.steps
            .begin_call(id.unwrap_or_default(), tool, input, shown.as_deref());
        self.is_in_turn |= !tool.is_empty();
        let mut call = match &file {
            Some(path) => Call {
                key: format!("{tool} {path}"),
                name: format!("{tool} {}", shown.unwrap_or_default()),
                ..Call::default()
            },
            None => Call {
                key: plain_command(text("command")),
                name: cut_in_the_middle(&command, COMMAND_CAP),
                ..Call::default()
            },
        };
        match (tool, file) {
            ("Edit" | "MultiEdit" | "Write" | "NotebookEdit", Some(path)) => {
                self.touch_file(&path, worth::CHANGED);
                self.note_change(input, &path);
                call.changes = true;
                call.file = Some(path);
            }
            (_, Some(path)) => {
                self.touch_file(&path, worth::NEARBY);
                if tool.starts_with("mcp__") {
                    self.mention_all(input, Some(&path));
                }
                call.file = Some(path);
            }
            ("Bash" | "PowerShell", None) => {
                self.note_mentions(text("command"), worth::RUN, None);
                if !command.is_empty() {
                    self.note_command(&call.name);
                }
            }
            ("Grep" | "Glob", None) => {
                self.note_mentions(text("pattern"), worth::SOUGHT, None);
                self.note_mentions(text("path"), worth::NEARBY, None);
                call.is_search = true;
                // Lines from one file alone come without its name.
                let path = self.relative_path(text("path"));
                call.file = self.files.contains_key(&path).then_some(path);
            }
            ("ExitPlanMode", None) => {
                if !text("plan").trim().is_empty() {
                    self.plan = Some(clipped(text("plan"), PLAN_CAP));
                }
                self.mention_all(input, None);
            }
            _ => self.mention_all(input, None),
        }
        if let Some(id) = id {
            self.calls.insert(id, call);
        }
    }

    fn note_command(&mut self, command: &str) {
        self.commands.retain(|have| have != command);
        self.commands.push_back(command.to_owned());
        if self.commands.len() > COMMANDS {
            self.commands.pop_front();
        }
    }

    /// Counts the identifiers of a change: those that are new in it count for more than those around them.
    fn note_change(&mut self, input: &Value, path: &str) {
        let mut change = |edit: &Value| {
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
                self.note_name(name, by, Some(path));
            }
        };
        change(input);
        for edit in input["edits"].as_array().into_iter().flatten() {
            change(edit);
        }
        for key in ["content", "new_source"] {
            let text = searched_part(input[key].as_str().unwrap_or_default());
            for name in facts::names_in(&text) {
                self.note_name(name, worth::WRITTEN, Some(path));
            }
        }
    }

    fn end_call(&mut self, block: &Value, outcome: &Value) {
        self.blocks += 1;
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        let call = self.calls.take(id);
        let output = joined_text(&block["content"]);
        // Colour sequences come before names without a blank.
        let output = pitstop_base::clean::without_escapes(&output);
        let output = redact::redact(&output);
        if output.starts_with(CUT_CALL) {
            self.steps.cut_call(id);
            return;
        }
        let failed = block["is_error"] == true;
        let changed = call.as_ref().is_some_and(|call| call.changes && !failed);
        let line = stopped_at(outcome, true).filter(|_| changed);
        self.steps
            .end_call(id, failed, line, &self.without_directory(&output));
        let Some(call) = call else {
            self.note_mentions(&output, worth::PRINTED, None);
            return;
        };
        if !call.key.is_empty() {
            self.record_outcome(&call, failed, &output);
        }
        match &call.file {
            Some(path) if !failed => {
                if let Some(file) = self.files.get_mut(path) {
                    file.changed |= call.changes;
                    file.line = stopped_at(outcome, call.changes).or(file.line);
                }
                // The answer to an edit is the file again.
                if !call.changes {
                    for name in facts::names_in(&searched_part(&output)) {
                        self.note_name(name, worth::READ, Some(path));
                    }
                }
            }
            _ if call.is_search => self.note_hits(&output),
            _ => self.note_mentions(&output, worth::PRINTED, None),
        }
    }

    /// Remembers a failure, and that a call which failed before has worked.
    fn record_outcome(&mut self, call: &Call, failed: bool, output: &str) {
        if failed {
            self.failures.retain(|(key, _)| *key != call.key);
            let failure = Failure {
                call: call.name.clone(),
                lines: lines_that_matter(output),
                worked_later: false,
            };
            self.failures.push_back((call.key.clone(), failure));
            if self.failures.len() > FAILURES {
                self.failures.pop_front();
            }
            return;
        }
        // A command that failed alone may work as a part of a longer line.
        let parts: Vec<&str> = call.key.split(AND).collect();
        for (key, failure) in &mut self.failures {
            failure.worked_later |= key.split(AND).all(|part| parts.contains(&part));
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
                    let path = self.relative_path(path);
                    self.touch_file(&path, worth::PRINTED);
                    for name in facts::names_in(text) {
                        self.note_name(name, worth::PRINTED, Some(&path));
                    }
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
                for value in fields.values() {
                    self.mention_all(value, home);
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
                Fact::Name(name) => self.note_name(name, by, home),
                Fact::File(path) => {
                    let path = self.relative_path(path);
                    // The work is seldom about a file outside of the project.
                    let by = if path.starts_with('/') || path.starts_with("../") {
                        by / 8.0
                    } else {
                        by / 2.0
                    };
                    self.touch_file(&path, by);
                }
                Fact::Reference(reference) => {
                    let worth = self.references.entry(reference.to_owned()).or_default();
                    worth.gain(self.blocks, by);
                }
            }
        }
    }

    fn note_name(&mut self, name: &str, by: f64, home: Option<&str>) {
        if !self.names.contains_key(name) {
            self.names.insert(name.to_owned(), Name::default());
        }
        let Some(entry) = self.names.get_mut(name) else {
            return;
        };
        entry.worth.gain(self.blocks, by);
        let Some(home) = home else { return };
        match entry.homes.iter_mut().find(|(path, _)| path == home) {
            Some((_, weight)) => *weight += by,
            None => entry.homes.push((home.to_owned(), by)),
        }
        if entry.homes.len() > HOMES {
            entry.homes.sort_by(|a, b| b.1.total_cmp(&a.1));
            entry.homes.truncate(HOMES);
        }
    }

    fn touch_file(&mut self, path: &str, by: f64) {
        if path.is_empty() {
            return;
        }
        let path = match path.rsplit_once('/') {
            Some((_, name)) => {
                self.paths.insert(name.to_owned(), path.to_owned());
                path
            }
            // A bare name is short for the file that was met last by it.
            None => self.paths.get(path).map_or(path, String::as_str),
        };
        let file = self.files.entry(path.to_owned()).or_default();
        file.worth.gain(self.blocks, by);
    }

    /// Returns a path as seen from the session's directory, if it is below it or beside it in the same repository. If the agent is
    /// in a work tree, a relative path with a directory is taken to be in that.
    fn relative_path(&self, path: &str) -> String {
        let path = path.strip_prefix("./").unwrap_or(path);
        let tree = self.tree.as_deref();
        let in_tree = tree.filter(|_| !path.starts_with('/') && path.contains('/'));
        let path = in_tree.map_or(Cow::Borrowed(path), |tree| join_path(tree, path).into());
        let path = &*path;
        if self.directory.is_empty() || !path.starts_with('/') {
            return path.to_owned();
        }
        let mut base = self.directory.as_str();
        for up in 0..=UPWARDS {
            // A home or a root is no repository.
            if base.matches('/').count() < if up == 0 { 1 } else { DEEP } {
                break;
            }
            let below = path
                .strip_prefix(base)
                .and_then(|rest| rest.strip_prefix('/'));
            if let Some(below) = below {
                return "../".repeat(up) + below;
            }
            base = base.rsplit_once('/').map_or("", |(above, _)| above);
        }
        path.to_owned()
    }

    /// Returns the path by which the agent finds a file now: the path from the work tree if the file is in it, else the whole path.
    fn shown_path(&self, path: &str) -> String {
        let Some(tree) = self.tree.as_deref() else {
            return path.to_owned();
        };
        let whole = join_path(&self.directory, path);
        let below = whole.strip_prefix(tree);
        let below = below.and_then(|rest| rest.strip_prefix('/'));
        below.map(str::to_owned).unwrap_or(whole)
    }

    /// Returns a text with the paths below the agent's directory as seen from there.
    fn without_directory<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let directory = self.tree.as_ref().unwrap_or(&self.directory);
        let directory = format!("{directory}/");
        if self.directory.is_empty() || !text.contains(&directory) {
            return Cow::Borrowed(text);
        }
        text.replace(&directory, "").into()
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

    /// Returns the report of what is worth showing now.
    #[must_use]
    pub fn report(&self) -> WorkAtHand {
        let now = self.blocks;
        let files = rank_entries(&self.files, now, |file| file.worth, FILES);
        // A bare name that was noted before the path was known means that file.
        let is_known = |path: &String| !path.contains('/') && self.paths.contains_key(path);
        let mut files: Vec<FileAtHand> = files
            .into_iter()
            .filter(|(path, _)| !is_known(path))
            .map(|(path, file)| FileAtHand {
                path: path.clone(),
                changed: file.changed,
                line: file.line,
                names: Vec::new(),
            })
            .collect();
        let mut free = Vec::new();
        for (name, entry) in rank_entries(&self.names, now, |name| name.worth, NAMES + FREE_NAMES) {
            let mut homes: Vec<_> = entry.homes.iter().collect();
            homes.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            let home = homes.into_iter().find_map(|(home, _)| {
                files
                    .iter()
                    .position(|file| file.path == *home && file.names.len() < NAMES_OF_A_FILE)
            });
            match home {
                Some(at) => files[at].names.push(name.clone()),
                None if free.len() < FREE_NAMES => free.push(name.clone()),
                None => {}
            }
        }
        // A bare name may be any file's: only one that a tool has used is known to be where the session began.
        for file in &mut files {
            let is_known = file.changed || file.line.is_some() || file.path.contains('/');
            if is_known {
                file.path = self.shown_path(&file.path);
            }
        }
        let mut references: Vec<String> = Vec::new();
        if !matches!(self.branch.as_str(), "" | "HEAD") {
            references.push(format!("{BRANCH}{}", self.branch));
        }
        let known = rank_entries(&self.references, now, |worth| *worth, REFERENCES);
        references.extend(known.into_iter().map(|(reference, _)| reference.clone()));
        let mut failures = self.failures.iter().rev().map(|(_, failure)| failure);
        let last_failure = self.failures.back().map(|(_, failure)| failure);
        let last_failure = last_failure.filter(|one| !one.worked_later).cloned();
        if last_failure.is_some() {
            failures.next();
        }
        WorkAtHand {
            files,
            names: free,
            references,
            commands: self.latest_commands(),
            last_failure,
            tried: failures
                .filter(|one| !one.worked_later)
                .take(SHOWN_FAILURES)
                .cloned()
                .collect(),
            plan: self.plan.clone(),
            last_words: self.last_words(),
            steps: self.steps.list(),
            is_in_turn: self.is_in_turn,
        }
    }

    /// Returns the latest commands, with only the latest of those that do the same.
    fn latest_commands(&self) -> Vec<String> {
        let mut kinds = BTreeSet::new();
        self.commands
            .iter()
            .rev()
            .filter(|command| kinds.insert(command_kind(&plain_command(command))))
            .take(SHOWN_COMMANDS)
            .cloned()
            .collect()
    }

    fn last_words(&self) -> Vec<String> {
        let paragraphs = self.texts.iter().flat_map(|text| text.split("\n\n"));
        let paragraphs = paragraphs.map(str::trim).filter(|text| !text.is_empty());
        let paragraphs: Vec<&str> = paragraphs.collect();
        let mut words: Vec<String> = Vec::new();
        let mut bytes = 0;
        for paragraph in paragraphs.into_iter().rev() {
            if words.len() == PARAGRAPHS || bytes + paragraph.len() > WORDS_CAP && !words.is_empty()
            {
                break;
            }
            // The plan contains it already.
            if self
                .plan
                .as_ref()
                .is_some_and(|plan| plan.contains(paragraph))
            {
                continue;
            }
            let paragraph = clipped(paragraph, WORDS_CAP);
            bytes += paragraph.len();
            if !words.contains(&paragraph) {
                words.push(paragraph);
            }
        }
        words.reverse();
        words
    }
}

/// Returns the client's own work tree that a directory is in.
fn work_tree_of(directory: &str) -> Option<&str> {
    let at = directory.find(WORK_TREES)? + WORK_TREES.len();
    let end = directory[at..]
        .find('/')
        .map_or(directory.len(), |end| at + end);
    Some(&directory[..end])
}

/// Returns a path from a directory as a whole path, without the steps upwards.
fn join_path(directory: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = directory.split('/').collect();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the kind of a plain command: each program of it with the first word behind it, without options. `python -m pytest`
/// and `npm run build` have one word more.
fn command_kind(command: &str) -> String {
    const RUNNERS: [&str; 5] = ["-m", "compose", "exec", "run", "run-script"];
    let kind_of_one = |command: &str| {
        let words = command.split(' ').enumerate();
        let named = words.filter(|(at, word)| *at == 0 || !word.starts_with('-') || *word == "-m");
        let mut kind = Vec::new();
        for (at, word) in named {
            kind.push(word);
            if at > 0 && !RUNNERS.contains(&word) {
                break;
            }
        }
        kind.join(" ")
    };
    let kinds: Vec<String> = command.split(AND).map(kind_of_one).collect();
    kinds.join(AND)
}

/// Reports whether a text is a plan: it announces what comes next, and lists it.
fn is_plan(text: &str) -> bool {
    let is_item = |line: &&str| {
        let line = line.trim_start();
        let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
        line.starts_with("- ")
            || line.starts_with("* ")
            || digits.len() < line.len() && digits.starts_with(". ")
    };
    let small = text.to_lowercase();
    // The agent answers in the human's language.
    let speaks = [
        "ich werde",
        "nächste",
        "schritt",
        "je vais",
        "prochain",
        "étape",
        "i'll",
        "i will",
        "let me",
        "plan",
        "next",
        "to do",
        "steps",
        "remaining",
        "need to",
    ];
    own_lines(text).filter(is_item).count() >= 3 && speaks.iter().any(|word| small.contains(word))
}

/// Returns the line at which a call that changed or read a file stopped, as the client reports it.
fn stopped_at(outcome: &Value, changed: bool) -> Option<u64> {
    if changed {
        let last = outcome["structuredPatch"].as_array()?.last()?;
        // The patch begins with a few lines before the change.
        let lines = last["lines"].as_array().into_iter().flatten();
        let around =
            lines.take_while(|line| line.as_str().is_some_and(|line| line.starts_with(' ')));
        return Some(last["newStart"].as_u64()? + around.count() as u64);
    }
    let file = &outcome["file"];
    let (start, lines) = (file["startLine"].as_u64()?, file["numLines"].as_u64()?);
    let whole = file["totalLines"].as_u64() == Some(lines);
    (!whole).then_some(start)
}

/// Returns the entries of the most worth, `most` at the most; of equals the first by name.
fn rank_entries<T>(
    entries: &HashMap<String, T>,
    now: u64,
    worth: impl Fn(&T) -> Worth,
    most: usize,
) -> Vec<(&String, &T)> {
    let mut all: Vec<_> = entries
        .iter()
        .map(|(key, entry)| (worth(entry).rank(now), key, entry))
        .collect();
    let order = |a: &(f64, &String, &T), b: &(f64, &String, &T)| {
        b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1))
    };
    if all.len() > most && most > 0 {
        all.select_nth_unstable_by(most - 1, order);
        all.truncate(most);
    }
    all.sort_by(order);
    all.into_iter()
        .map(|(_, key, entry)| (key, entry))
        .collect()
}

/// Forgets all but the half of [`KEPT`] with the most worth once there are too many.
fn prune_entries<T>(entries: &mut HashMap<String, T>, now: u64, worth: impl Fn(&T) -> Worth) {
    if entries.len() <= KEPT {
        return;
    }
    let kept = rank_entries(entries, now, worth, KEPT / 2);
    let kept: BTreeSet<String> = kept.into_iter().map(|(key, _)| key.clone()).collect();
    entries.retain(|key, _| kept.contains(key));
}

/// Returns the part of a text that is searched: all of it, or its start and its end, without the words of masks.
fn searched_part(text: &str) -> Cow<'_, str> {
    let part = split_ends(text, SEARCHED).map_or(Cow::Borrowed(text), |(head, tail)| {
        format!("{head}\n{tail}").into()
    });
    if !part.contains(redact::MASK) {
        return part;
    }
    let mut pieces = part.split(redact::MASK);
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        plain.push(' ');
        plain.push_str(piece.split_once(']').map_or(piece, |(_, behind)| behind));
    }
    plain.into()
}

/// Returns the lines of an output that tell what went wrong; its last lines if there are none.
fn lines_that_matter(output: &str) -> Vec<String> {
    const MARKS: [&str; 19] = [
        "✕",
        "✗",
        "fehler",
        "erreur",
        "error",
        "fail",
        "panic",
        "exception",
        "fatal",
        "assert",
        "expected",
        "not found",
        "denied",
        "undefined",
        "unknown",
        "cannot",
        "no such",
        "traceback",
        "doesn't want",
    ];
    let lines = output
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.trim().is_empty());
    let mut lines: Vec<&str> = lines.collect();
    // The client's own first line says only that the command failed.
    if lines.len() > 1 && lines[0].starts_with("Exit code ") {
        lines.remove(0);
    }
    let matters = |line: &&&str| {
        let small = line.to_lowercase();
        MARKS.iter().any(|mark| small.contains(mark)) || line.trim_start().starts_with("--> ")
    };
    let mut chosen: Vec<&str> = lines.iter().filter(matters).copied().collect();
    if chosen.is_empty() {
        chosen = lines[lines.len().saturating_sub(FAILURE_LINES / 2)..].to_vec();
    }
    let mut seen = BTreeSet::new();
    chosen.retain(|line| seen.insert(line.trim()));
    chosen
        .into_iter()
        .take(FAILURE_LINES)
        .map(|line| clipped(line, LINE_CAP))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(id: &str, tool: &str, input: &Value) -> Value {
        json!({
            "type": "assistant", "cwd": "/p", "gitBranch": "topic",
            "message": { "content": [{ "type": "tool_use", "id": id, "name": tool, "input": input }] },
        })
    }

    fn result(id: &str, text: &str, failed: bool, outcome: &Value) -> Value {
        json!({
            "type": "user", "toolUseResult": outcome,
            "message": { "content": [
                { "type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed }
            ] },
        })
    }

    fn said(text: &str) -> Value {
        json!({ "type": "assistant", "message": { "content": [{ "type": "text", "text": text }] } })
    }

    fn work(records: &[Value]) -> WorkAtHand {
        let mut work = Work::default();
        for record in records {
            work.take_record(record);
        }
        work.report()
    }

    /// Takes a file that a tool has written, in an agent that is in a directory.
    fn wrote(work: &mut Work, cwd: &str, file: &str) {
        let call = json!({"type": "tool_use", "id": file, "name": "Write", "input": {"file_path": file, "content": "x"}});
        work.take_record(&json!({"type": "assistant", "cwd": cwd, "message": {"content": [call]}}));
        let result = json!({"type": "tool_result", "tool_use_id": file, "content": "ok"});
        work.take_record(&json!({"type": "user", "cwd": cwd, "message": {"content": [result]}}));
    }

    fn paths(work: &Work) -> Vec<String> {
        let mut paths: Vec<_> = work
            .report()
            .files
            .into_iter()
            .map(|file| file.path)
            .collect();
        paths.sort();
        paths
    }

    #[test]
    fn a_file_is_named_as_the_agent_finds_it_from_the_work_tree_where_it_is() {
        let tree = "/p/.claude/worktrees/moon";
        let mut work = Work::default();
        wrote(&mut work, "/p", "/p/src/tide.py");
        wrote(&mut work, "/p", "/p/top.md");
        wrote(&mut work, tree, "/p/.claude/worktrees/moon/src/moon.py");
        // As a tool prints it, from a directory below.
        let said = json!([{"type": "text", "text": "FAILED src/moon.py and src/dark.py"}]);
        work.take_record(&json!({"type": "assistant", "cwd": format!("{tree}/src"), "message": {"content": said}}));
        assert_eq!(
            paths(&work),
            ["/p/src/tide.py", "/p/top.md", "src/dark.py", "src/moon.py"]
        );
        // The next session begins in the tree, and another one elsewhere.
        let handoff = format!(
            "pitstop handoff \u{b7} r \u{b7} iteration 1 \u{b7} 0a1b2c3d\n\n{WORK_HEADING}\n\n\
            - /p/src/tide.py (changed, not committed)\n- src/moon.py:3 (changed): dark_nights\n\n\
            {GIT_HEADING}\n\n- branch moon{IN_WORK_TREE}{tree}\n"
        );
        for (cwd, named) in [
            (tree, ["/p/src/tide.py", "src/moon.py"]),
            ("/p", [".claude/worktrees/moon/src/moon.py", "src/tide.py"]),
        ] {
            let mut next = Work::default();
            next.take_record(&json!({"type": "user", "cwd": cwd, "message": {"content": handoff}}));
            assert_eq!(paths(&next), named);
            assert!(next.report().files.iter().all(|file| file.changed));
        }
        // It comes back.
        wrote(&mut work, "/p", "/p/src/utc.py");
        assert!(paths(&work).contains(&".claude/worktrees/moon/src/moon.py".to_owned()));
    }

    #[test]
    fn a_call_whose_session_ended_before_its_result_has_neither_failed_nor_worked() {
        let mut work = Work::default();
        let call =
            json!({"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "make"}});
        work.take_record(&json!({"type": "assistant", "message": {"content": [call]}}));
        let cut = format!("{CUT_CALL} the session ended before this call's result was recorded]");
        let result =
            json!({"type": "tool_result", "tool_use_id": "1", "content": cut, "is_error": true});
        work.take_record(&json!({"type": "user", "message": {"content": [result]}}));
        let said = json!([{"type": "text", "text": "No response requested."}]);
        work.take_record(
            &json!({"type": "assistant", "message": {"model": SYNTHETIC, "content": said}}),
        );
        let report = work.report();
        assert!(report.is_in_turn && report.last_failure.is_none() && report.tried.is_empty());
        assert!(report.last_words.is_empty());
        let detail = crate::steps::Detail {
            input: 100,
            printed: 100,
            failed: 100,
        };
        let mut said = std::collections::HashSet::new();
        let steps = report.steps.iter();
        let shown: String = steps.map(|step| step.show(&detail, &mut said)).collect();
        assert_eq!(shown, "$ make\n  no result: the session ended first\n");
    }

    #[test]
    fn a_changed_file_stands_with_its_names_and_where_the_work_stopped() {
        let report = work(&[
            call("1", "Read", &json!({ "file_path": "/p/src/old_file.rs" })),
            result("1", "fn read_all() {}", false, &json!({})),
            call(
                "2",
                "Edit",
                &json!({ "file_path": "/p/src/new_file.rs", "old_string": "same_name()", "new_string": "same_name(newName)" }),
            ),
            result(
                "2",
                "ok",
                false,
                &json!({ "structuredPatch": [{ "newStart": 7 }, { "newStart": 42 }] }),
            ),
        ]);
        let [first, second] = report.files.as_slice() else {
            panic!("{:?}", report.files);
        };
        assert_eq!(
            (first.path.as_str(), first.changed, first.line),
            ("src/new_file.rs", true, Some(42))
        );
        assert_eq!(first.names, ["newName", "same_name"]);
        assert_eq!(
            (second.path.as_str(), second.changed),
            ("src/old_file.rs", false)
        );
        assert_eq!(second.names, ["read_all"]);
        assert_eq!(report.references, ["branch topic"]);
    }

    #[test]
    fn a_file_beside_the_session_s_directory_is_named_from_there() {
        let mut work = Work::default();
        work.take_record(&json!({ "type": "user", "cwd": "/home/me/git/mono/packages/web", "message": { "content": "go" } }));
        for (path, named) in [
            ("/home/me/git/mono/packages/web/src/a.ts", "src/a.ts"),
            (
                "/home/me/git/mono/packages/shared/src/b.ts",
                "../shared/src/b.ts",
            ),
            ("/home/me/git/mono/libs/c.ts", "../../libs/c.ts"),
            ("/home/me/other/d.ts", "/home/me/other/d.ts"),
            ("./e.ts", "e.ts"),
        ] {
            assert_eq!(work.relative_path(path), named);
        }
    }

    #[test]
    fn notebooks_servers_tools_and_results_of_blocks_belong_to_their_file() {
        let blocks = json!([{ "type": "text", "text": "\u{1b}[31mdef load_frame():\u{1b}[0m" }]);
        let mut shown = result("3", "", false, &json!({}));
        shown["message"]["content"][0]["content"] = blocks;
        let report = work(&[
            call(
                "1",
                "NotebookEdit",
                &json!({ "notebook_path": "/p/nb/explore.ipynb", "new_source": "df = read_frame()" }),
            ),
            result("1", "ok", false, &json!({})),
            call(
                "2",
                "mcp__files__write",
                &json!({ "path": "src/main.go", "content": "func handleUpload() {}" }),
            ),
            result("2", "ok", false, &json!({})),
            call("3", "Read", &json!({ "file_path": "/p/app/load.py" })),
            shown,
        ]);
        let files: Vec<_> = report
            .files
            .iter()
            .map(|file| (file.path.as_str(), file.changed, file.names.clone()))
            .collect();
        let names = |name: &str| vec![name.to_owned()];
        assert!(
            files.contains(&("nb/explore.ipynb", true, names("read_frame"))),
            "{files:?}"
        );
        assert!(
            files.contains(&("src/main.go", false, names("handleUpload"))),
            "{files:?}"
        );
        assert!(
            files.contains(&("app/load.py", false, names("load_frame"))),
            "{files:?}"
        );
    }

    #[test]
    fn commands_of_other_runners_are_not_taken_for_the_same() {
        let lines = [
            "source .venv/bin/activate && python -m pytest -q",
            "python -m mypy src",
            "npm run build",
            "npm run test -- --watch=false",
            "pnpm --filter web test",
            "go test ./a",
            "go test ./b",
        ];
        let records: Vec<Value> = lines
            .iter()
            .map(|line| call("1", "Bash", &json!({ "command": line })))
            .collect();
        assert_eq!(
            work(&records).commands,
            [
                "go test ./b",
                "pnpm --filter web test",
                "npm run test -- --watch=false",
                "npm run build",
                "python -m mypy src",
                "source .venv/bin/activate && python -m pytest -q",
            ]
        );
    }

    #[test]
    fn what_was_used_last_stands_before_what_was_used_long_ago() {
        let mut records = Vec::new();
        for round in 0..60 {
            records.push(said(&format!(
                "Now file_{round:02}.rs with name_{round:02}x."
            )));
        }
        let report = work(&records);
        assert_eq!(report.files[0].path, "file_59.rs");
        assert_eq!(report.names[0], "name_59x");
        assert_eq!(report.files.len(), FILES);
        assert_eq!(report.names.len(), FREE_NAMES);
    }

    #[test]
    fn a_command_stands_once_and_a_failure_until_it_works() {
        let run = |id: &str, line: &str| call(id, "Bash", &json!({ "command": line }));
        let mut records = vec![
            run("1", "cd /p && cargo test 2>&1 | tail"),
            result(
                "1",
                "test a ... ok\nerror: it broke\nmore",
                true,
                &json!({}),
            ),
            run("2", "make all"),
            result("2", "No rule", true, &json!({})),
            run("3", "cargo test"),
        ];
        let report = work(&records);
        assert_eq!(report.commands, ["cargo test", "make all"]);
        assert_eq!(report.last_failure.as_ref().unwrap().call, "make all");
        assert_eq!(report.tried[0].lines, ["error: it broke"]);
        records.push(result("3", "ok", false, &json!({})));
        assert!(work(&records).tried.is_empty());
    }

    #[test]
    fn the_last_paragraphs_are_the_assistant_s_own() {
        let report = work(&[
            json!({ "type": "user", "message": { "content": "a prompt" } }),
            said("one\n\ntwo\n\nthree"),
            said("four\n\nfive"),
        ]);
        assert_eq!(report.last_words, ["two", "three", "four", "five"]);
    }

    #[test]
    fn the_latest_plan_stands_once() {
        let plan = "I'll do it in steps:\n\n1. read\n2. write\n3. test";
        let report = work(&[said("- a\n- b\n- c"), said(plan), said("Now reading.")]);
        assert_eq!(report.plan.as_deref(), Some(plan));
        assert_eq!(report.last_words, ["- a\n- b\n- c", "Now reading."]);
    }

    #[test]
    fn signals_are_neither_plan_nor_last_words() {
        let report = work(&[
            said(
                "I'll go on with the parser.\n\nDONE: read it\n- TODO: test_parser\n- TODO: b\n- DECISION: c | d",
            ),
            said("SCRATCHPAD:\n## Next steps\n- a\n- b\n- c"),
        ]);
        assert_eq!(report.plan, None);
        assert_eq!(report.last_words, ["I'll go on with the parser."]);
        assert_eq!(report.names, ["test_parser"]);
    }

    #[test]
    fn a_flood_is_bounded_and_the_same_lines_give_the_same_report() {
        let flood: Vec<Value> = (0..40)
            .map(|round| {
                let names = (0..1_000).map(|n| format!("flood_{round}_{n}"));
                said(&names.collect::<Vec<_>>().join(" "))
            })
            .collect();
        let mut one = Work::default();
        for record in &flood {
            one.take_record(record);
        }
        assert!(one.names.len() <= KEPT + 1_000);
        assert_eq!(one.report(), work(&flood));
    }

    #[test]
    fn hostile_records_change_nothing() {
        for record in [
            json!(null),
            json!({ "type": "user", "message": { "content": [{ "type": "tool_result", "tool_use_id": 7 }] } }),
            json!({ "type": "assistant", "message": { "content": [{ "type": "tool_use", "id": [], "name": {}, "input": [] }] } }),
            json!({ "type": "assistant", "isSidechain": true, "message": { "content": "some_name" } }),
        ] {
            assert!(work(&[record]).is_empty());
        }
    }
}
