//! The reports that scripts read as JSON: the status, the history, the handoff, the use of the context window.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{AgentState, AgentTools, TodoList};
use crate::{guard::ForecastReport, lineage::TrimRecord};
use pitstop_agent::{AgentKind, bridge::Category};
use pitstop_handoff::summary::SummaryMade;

/// The status, which `pitstop status --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusReport {
    /// The supervisor's version.
    pub version: String,
    /// The supervisor's process id.
    pub pid: u32,
    /// The project directory.
    pub project: String,
    /// The id of this run.
    pub run_id: Option<String>,
    /// The mode's word: `manual`, `ask` or `auto`.
    pub mode: String,
    /// True if no reboot begins by itself until a person allows it again.
    #[serde(default)]
    pub paused: bool,
    /// True if the pane has the whole screen.
    pub zoomed: bool,
    /// The iteration's number, from 1.
    pub iteration: u32,
    /// The session in which the agent is, once it is known.
    pub session_id: Option<String>,
    /// The objective of the work: the run's task, else the objective of the handoff, on one line.
    pub objective: Option<String>,
    /// The time at which the run began, UTC.
    pub started_at: Option<DateTime<Utc>>,
    /// The last reboot, if there was one.
    pub last_reboot: Option<LastReboot>,
    /// The hosted program.
    pub agent: AgentReport,
    /// The use of the context window.
    pub context: ContextReport,
    /// The progress of a reboot.
    pub reboot: RebootReport,
    /// The cost of the session so far, in US dollars.
    pub cost_usd: Option<f64>,
    /// The cost of one of the last turns, in US dollars.
    pub turn_cost_usd: Option<f64>,
    /// The cost of a turn in a fresh session, in US dollars.
    pub fresh_turn_cost_usd: Option<f64>,
    /// The number of calls of the model after which a reboot now has paid for itself; null where it is not known, or never does.
    pub reboot_pays_in_calls: Option<u32>,
    /// The prompt cache of the service, if the agent reports it.
    pub prompt_cache: Option<CacheReport>,
    /// The autonomous run, if this is one.
    pub run: Option<RunReport>,
    /// The reason why the store cannot be used, while history waits for it.
    pub store_error: Option<String>,
    /// Whether what waits is on disk, too; null while the store can be used.
    #[serde(default)]
    pub store_kept: Option<bool>,
    /// What a person is needed for, the most urgent first.
    #[serde(default)]
    pub needs: Vec<NeedReport>,
    /// True while the agent is ended because the supervisor ends.
    #[serde(default)]
    pub quitting: bool,
}

impl StatusReport {
    /// Reports whether a reboot goes ahead by itself unless a person refuses it.
    pub fn counts_down(&self) -> bool {
        let due = |need: &NeedReport| need.kind == NeedKind::Review && need.until.is_some();
        self.mode == "auto" && self.needs.iter().any(due)
    }
}

/// Something that a person is needed for, as part of a [`StatusReport`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeedReport {
    /// The number of the need, different for all of a supervisor's.
    pub id: u64,
    /// The kind.
    pub kind: NeedKind,
    /// A sentence on what waits.
    pub what: String,
    /// The reason; empty if there is none to give.
    pub why: String,
    /// The time since which it waits, UTC.
    pub since: DateTime<Utc>,
    /// The time until which a person can decide, or at which it ends by itself, UTC.
    pub until: Option<DateTime<Utc>>,
    /// The name of the tool that asks, where it is a permission.
    pub tool: Option<String>,
    /// True if it is a permission that can be answered by `POST /control/permission`.
    #[serde(default)]
    pub answerable: bool,
}

/// The permission that the agent asks for, as it is: secrets are not masked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionReport {
    /// The number of the need, as in [`NeedReport`].
    pub id: u64,
    /// The name of the tool.
    pub tool: String,
    /// The whole command, or the tool's input as JSON.
    pub input: String,
    /// True if it can be answered from afar.
    pub answerable: bool,
}

/// The agent's screen as text, without colours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenReport {
    /// The width in cells.
    pub columns: u16,
    /// The height in cells.
    pub rows: u16,
    /// The rows from top to bottom, without the blanks at their ends.
    pub lines: Vec<String>,
}

/// The kinds of [`NeedReport`], the most urgent first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum NeedKind {
    /// The agent asks for a permission.
    Permission,
    /// The agent asks a question.
    Question,
    /// A handoff waits for an approval.
    Review,
    /// The client takes no more prompts because its window is full.
    ContextRefused,
    /// The last turn has failed, and nothing goes on by itself.
    TurnFailed,
    /// A breaker has stopped the run.
    RunStopped,
    /// The run does not get on, though nothing has stopped it.
    RunStuck,
    /// The handoff was sent, and is not known to have arrived.
    Unconfirmed,
    /// The agent's process has ended.
    AgentEnded,
    /// The agent is suspended.
    Suspended,
    /// The agent asks for a reboot.
    RebootAsked,
    /// The usage limit is over, and the agent waits for a prompt.
    LimitOver,
    /// The usage limit is reached.
    Limit,
    /// The run is paused.
    RunPaused,
    /// The run has ended.
    RunOver,
}

impl NeedKind {
    /// Returns the kind's word in JSON.
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// Reports whether the work waits until a person acts.
    pub const fn is_urgent(self) -> bool {
        !matches!(self, Self::Limit | Self::RunPaused | Self::RunOver)
    }
}

/// The last reboot of a run, as part of a [`StatusReport`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastReboot {
    /// The time at which the new session began, UTC.
    pub at: DateTime<Utc>,
    /// The fill of the window before it, in tokens.
    pub tokens_before: Option<u64>,
    /// The fill of the window after the first turn behind it, in tokens.
    pub tokens_after: Option<u64>,
}

/// The prompt cache, as part of a [`StatusReport`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheReport {
    /// True if the next call can still read from it.
    pub warm: bool,
    /// The time at which it expires, or expired.
    pub expires_at: Option<DateTime<Utc>>,
    /// The number of tokens that a call has to write again once the cache is cold.
    pub recache_tokens: Option<u64>,
    /// The list price of that in US dollars, where the model's is known.
    pub recache_usd: Option<f64>,
    /// The number of tokens that a fresh session would begin with.
    pub fresh_tokens: Option<u64>,
    /// The list price of writing these, in US dollars.
    pub fresh_usd: Option<f64>,
}

/// An autonomous run, as part of a [`StatusReport`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The phase of the run.
    pub phase: RunPhase,
    /// The first line of its task.
    pub task: String,
    /// The text that ends it.
    pub stop_phrase: String,
    /// True if the run has no terminal.
    pub headless: bool,
    /// The number of iterations so far, including the present one.
    pub iteration: u64,
    /// The greatest allowed number of iterations.
    pub max_iterations: Option<u32>,
    /// The number of turns that have ended.
    pub turns: u64,
    /// The elapsed time, in seconds.
    pub elapsed_s: u64,
    /// The longest allowed time, in seconds.
    pub max_time_s: Option<u64>,
    /// The cost so far, in US dollars.
    pub cost_usd: f64,
    /// The highest allowed cost, in US dollars.
    pub max_cost_usd: Option<f64>,
    /// The name of the party that paused the run.
    pub paused_by: Option<String>,
    /// The condition that the run waits for, or the evidence of the breaker that stopped it.
    pub why: Option<String>,
    /// The time at which the wait ends, if that is known.
    pub waits_until: Option<DateTime<Utc>>,
    /// The longest remaining wait, in seconds.
    pub waits_s: Option<u64>,
    /// The number of plan items that are done.
    #[serde(default)]
    pub done: usize,
    /// The number of plan items that are open.
    #[serde(default)]
    pub open: usize,
    /// The first open item.
    pub next: Option<String>,
    /// The number of reboots so far.
    #[serde(default)]
    pub reboots: usize,
    /// The number of commits seen.
    #[serde(default)]
    pub commits: u64,
    /// The number of test runs that passed.
    #[serde(default)]
    pub tests_passed: u64,
    /// The number of test runs that failed.
    #[serde(default)]
    pub tests_failed: u64,
    /// The growth of its context window, and the work that is left.
    pub forecast: Option<ForecastReport>,
    /// The newest lines of the timeline, oldest first.
    #[serde(default)]
    pub timeline: Vec<RunLine>,
}

/// The phase of an autonomous run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum RunPhase {
    /// Turns follow one another.
    Working,
    /// The next turn waits for something, or the agent at work for a person.
    Waiting,
    /// A person holds it.
    Paused,
    /// A breaker has stopped it.
    Tripped,
    /// The run has ended.
    Ended,
}

/// A line of a run's timeline, as `pitstop run --headless` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLine {
    /// The time at which it was printed, UTC.
    pub at: DateTime<Utc>,
    /// The text of the line.
    pub text: String,
}

/// The hosted program, as part of a [`StatusReport`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReport {
    /// The kind of the program.
    pub kind: AgentKind,
    /// The command that started the program.
    pub command: String,
    /// The version that the program reported.
    pub version: Option<String>,
    /// The program's activity.
    pub state: AgentState,
    /// The subject of its question or wait, or the reason why its state is unknown.
    pub reason: Option<String>,
    /// The time at which the usage limit that holds it is reset, if that is known, UTC.
    pub limit_reset: Option<DateTime<Utc>>,
    /// True if any of its hooks has arrived in this iteration.
    #[serde(default)]
    pub hooked: bool,
    /// The state of its to-do list.
    #[serde(default)]
    pub todo_list: TodoList,
    /// The bridge: the client's own side of the session.
    #[serde(default)]
    pub bridge: BridgeReport,
    /// The way in which it reaches pitstop's tools.
    #[serde(default)]
    pub tools: AgentTools,
    /// The start of its last message on one line, without secrets.
    pub last_words: Option<String>,
}

/// The bridge, as part of an [`AgentReport`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BridgeReport {
    /// The state of the bridge: `awaited`, `in_force` or `absent`.
    pub state: String,
    /// The reason for its absence, as a word: `other_agent`, `switched_off`, `flag`, `hooks_off`, `too_old`, `not_written`,
    /// `other_protocol`, `no_hello` or `silent`.
    pub why: Option<String>,
    /// The same reason in a sentence; for a bridge in force, the reason why it answers no compaction, if it does not.
    pub reason: Option<String>,
    /// The time since its last message, in milliseconds.
    pub age_ms: Option<u64>,
    /// True if a turn is running.
    pub turn_runs: Option<bool>,
    /// The origin of the last prompt: `composer` is the person at the prompt box.
    pub prompt_origin: Option<String>,
    /// The length of the text in the prompt box, in characters.
    pub draft_characters: Option<u64>,
    /// The size of the window before the conversation began, in tokens, by the last usage that named categories.
    pub base_tokens: Option<u64>,
    /// The contents of the window, by category.
    pub categories: Vec<Category>,
}

/// The use of the context window, as part of a [`StatusReport`]; before the first figure all but the lines and the client's
/// limit are `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContextReport {
    /// The number of tokens in use.
    pub used: Option<u64>,
    /// The whole window in tokens.
    pub window: Option<u64>,
    /// The window less the client's reserve, in tokens.
    pub usable: Option<u64>,
    /// The share of `usable` in use, in percent.
    pub percent: Option<f64>,
    /// The name of the level: `healthy`, `warning`, `critical` or `overflow`.
    pub level: Option<String>,
    /// The source of the figure: `bridge`, `status_line`, `transcript` or `estimate`.
    pub source: Option<String>,
    /// The age of the figure, in milliseconds.
    pub age_ms: Option<u64>,
    /// The positions of the lines.
    pub lines: Option<LinesReport>,
    /// The point at which the client itself acts, if that is known.
    pub client_limit: Option<ClientLimitReport>,
    /// The growth of the window, and the work that is left.
    pub forecast: Option<ForecastReport>,
}

/// A tool's answer to the agent: the answer to `POST /tools/{tool}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolReply {
    /// The text of the answer.
    pub text: String,
}

/// The positions of the lines, in tokens, as part of a [`ContextReport`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinesReport {
    /// The line at which the gauge leaves `healthy`.
    pub notice: u64,
    /// The line at which a checkpoint is kept.
    pub warn: u64,
    /// The line at which a reboot is advised.
    pub compact: u64,
    /// The line at which `auto` interrupts a turn.
    pub force: u64,
    /// True if the lines were moved below the point at which the client itself acts.
    pub lowered: bool,
}

/// The point at which the client itself acts on a full window, as part of a [`ContextReport`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientLimitReport {
    /// The number of tokens in use at which the client acts.
    pub at: u64,
    /// The client's action: `compacts` or `refuses prompts`.
    pub act: String,
    /// The source of this knowledge, such as `--autocompact`.
    pub origin: String,
}

/// The progress of a reboot, as part of a [`StatusReport`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebootReport {
    /// The state machine's phase: `idle`, `armed`, `drafting`, `review` and so on. In `review` the handoff is drafted and waits
    /// for an approval; a person may be looking at it, or a line on the screen offers to show it. In `idle`, `held` may give the
    /// reason why there is no reboot.
    pub phase: String,
    /// The cause of the reboot, while there is one; else the reason why the last one was refused or failed.
    pub reason: Option<String>,
    /// The activities that have to end before the reboot can continue.
    pub blocked_by: Vec<String>,
    /// The way in which the present reboot carries the context over: `fresh`, `in-place`, `on-the-fly` or `trim`.
    pub way: Option<String>,
    /// The obstacle to an automatic reboot that is due, for as long as it exists.
    pub held: Option<HeldReport>,
}

/// An obstacle to an automatic reboot, as part of a [`RebootReport`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldReport {
    /// The reason, in words.
    pub reason: String,
    /// The time at which the obstacle ends by itself, UTC; `None` if it ends once the session gets something done.
    pub until: Option<DateTime<Utc>>,
}

/// The iterations of a run, oldest first, as `pitstop history --json` prints them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HistoryReport {
    /// The run's id.
    pub run_id: Option<String>,
    /// The run's iterations, oldest first.
    pub iterations: Vec<IterationReport>,
}

/// One life of the pane, as part of a [`HistoryReport`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IterationReport {
    /// The number of the iteration, from 1.
    pub iteration: u32,
    /// The session in which it ran.
    pub session_id: Option<String>,
    /// The session from which it was rebooted.
    pub previous_session_id: Option<String>,
    /// The time at which it began, UTC.
    pub started_at: Option<DateTime<Utc>>,
    /// The time at which it ended, UTC; `None` while it runs.
    pub ended_at: Option<DateTime<Utc>>,
    /// The duration so far, in milliseconds.
    pub duration_ms: u64,
    /// The reason for its end: `natural`, `context_limit`, `user_reboot` and so on; `None` while it runs.
    pub end_reason: Option<String>,
    /// The name of the signal that asked pitstop to end, if one did.
    pub signal: Option<String>,
    /// True if its end is known to have cut a turn.
    pub in_turn: bool,
    /// The cause of the iteration: `start`, or the trigger of the reboot before it.
    pub cause: Option<String>,
    /// The iteration's tokens.
    pub tokens: IterationTokens,
    /// The number of turns that ended in it; `None` where that was not counted.
    pub turns: Option<u32>,
    /// The number of times that the client compacted its context.
    pub compactions: u32,
    /// The cost of the iteration, in US dollars.
    pub cost_usd: Option<f64>,
    /// The duration of each step of the reboot that began it, in milliseconds, by the step's name.
    pub transition_time_ms: BTreeMap<String, u64>,
    /// The state that was preserved over that reboot, where it is still known.
    pub preserved_state: Option<serde_json::Value>,
    /// The size of the handoff that it was given, in bytes; `None` for the first iteration and after a trim.
    pub handoff_bytes: Option<u64>,
    /// The way in which the reboot that began it carried the context over: `fresh` or `trim`.
    pub way: Option<String>,
    /// The device by which a person approved the reboot that began it, if it was not at the desk.
    pub approved_from: Option<String>,
    /// The content that a trim removed.
    pub trim: Option<TrimRecord>,
    /// A summary of the work done in it, in a sentence or two.
    pub summary: Option<String>,
    /// The writer of the summary, its cost, and the reason if no model wrote it.
    pub summary_made: Option<SummaryMade>,
}

/// The tokens of one iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterationTokens {
    /// The number of tokens in the context window at the first answer.
    pub at_start: Option<u64>,
    /// The number of tokens in the context window at the end, or now.
    pub at_end: Option<u64>,
    /// The total number of tokens sent to the model.
    pub input: Option<u64>,
    /// The total number of tokens written by the model.
    pub output: Option<u64>,
}

/// The handoff as data, and as the message that would be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HandoffReport {
    /// The time at which it was made, UTC.
    pub generated_at: Option<DateTime<Utc>>,
    /// The objective.
    pub task_title: Option<String>,
    /// The agent's role: the name that `--agent` gave it, else its permission mode.
    pub current_hat: Option<String>,
    /// The git branch.
    pub branch: Option<String>,
    /// The commit to which the branch points.
    pub head_commit: Option<String>,
    /// The completed items.
    pub completed_items: Vec<String>,
    /// The items that are left to do.
    pub remaining_items: Vec<String>,
    /// The issues that block the work.
    pub blocking_issues: Vec<String>,
    /// The files changed since the run began.
    pub modified_files: Vec<String>,
    /// The files created since the run began.
    pub created_files: Vec<String>,
    /// The files deleted since the run began.
    pub deleted_files: Vec<String>,
    /// The files that have uncommitted changes now according to git, no matter who made the changes.
    pub uncommitted_files: Vec<String>,
    /// The next step.
    pub next_step: Option<String>,
    /// The decisions with their reasons.
    pub key_decisions: Vec<KeyDecision>,
    /// The decisions with their reasons, as texts.
    pub key_decision_texts: Vec<String>,
    /// The closing instruction.
    pub continuation_prompt: Option<String>,
    /// The session in which it was made.
    pub session_id: Option<String>,
    /// The kind of handoff: `present` (as it would be sent now), or for a session that has ended `given` (the one it handed over),
    /// `checkpoint` (the last one saved in it), `received` (the one it was given itself) or `summary`.
    pub kind: String,
    /// The revision: another one for each other text.
    pub revision: String,
    /// The whole message, byte for byte as it would be sent, or as it was.
    pub text: String,
    /// The message's size in tokens, estimated.
    pub tokens: u64,
    /// The message's size in bytes.
    pub bytes: u64,
    /// The parts that were cut to stay within the size limit.
    pub left_out: Vec<String>,
    /// The warnings that a reader should know before it is sent.
    pub warnings: Vec<String>,
    /// All items of which it was made, with their sources.
    pub sources: Vec<SourcedItem>,
    /// The state of the agent's to-do list, which may be among the sources.
    pub todo_list: TodoList,
    /// The gaps of the handoff with respect to its session, where they are known.
    pub check: Option<HandoffCheck>,
}

/// The gaps of a handoff with respect to its session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoffCheck {
    /// True if the handoff has no gaps.
    pub complete: bool,
    /// The finding in one line.
    pub finding: String,
    /// The number of prompts of the human.
    pub prompts: u64,
    /// The prompts that are missing, in full.
    pub missing_prompts: Vec<String>,
    /// The number of recent facts of the work.
    pub facts: u64,
    /// The facts that are missing.
    pub missing_facts: Vec<MissingFact>,
    /// The lines with claims that are not in the transcript; only `pitstop handoff --check` looks for them.
    pub unfounded: Option<Vec<UnfoundedLine>>,
}

/// A line of a handoff with claims that are not in its session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfoundedLine {
    /// The number of the line, from 1.
    pub line: u64,
    /// The text of the line.
    pub text: String,
    /// The claims that were not found.
    pub claims: Vec<String>,
}

/// A recent fact of the work that is not in the handoff.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingFact {
    /// The class of the fact: `file`, `identifier`, `reference`, `command` or `failure`.
    pub class: String,
    /// The text of the fact.
    pub text: String,
}

/// A decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyDecision {
    /// The decision itself.
    pub text: String,
    /// The reason, if one was given.
    pub reason: Option<String>,
    /// The time of the decision, if that is known, UTC.
    pub decided_at: Option<DateTime<Utc>>,
}

/// An item of the preserved state with its source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcedItem {
    /// The list that holds the item, by its name in the preserved state.
    pub field: String,
    /// The text of the item.
    pub text: String,
    /// The source of the item: `human`, `signal`, `scratchpad`, `todo`, `git` or `tests`.
    pub source: String,
}

/// The figures about which `GET /context/usage` asks; `None` means the measured ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageQuery {
    /// The number of tokens in use.
    pub used_tokens: Option<u64>,
    /// The whole window in tokens.
    pub max_tokens: Option<u64>,
}

/// The use of the context window and the advised action; the figures are `null` before the first one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UsageReply {
    /// The number of tokens in use.
    pub used: Option<u64>,
    /// The whole window in tokens.
    pub max: Option<u64>,
    /// The window less the client's reserve, in tokens.
    pub usable: Option<u64>,
    /// The share of `usable` in use, in percent.
    pub percent: Option<f64>,
    /// The name of the level.
    pub status: Option<String>,
    /// The advised action.
    pub action: UsageAction,
}

/// The advised action of a [`UsageReply`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageAction {
    /// The kind of the action.
    #[serde(rename = "type")]
    pub kind: UsageActionKind,
    /// The advice for people.
    pub message: String,
    /// True if the supervisor does it by itself.
    pub auto: bool,
}

/// The kinds of [`UsageAction`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageActionKind {
    /// The advice is to do nothing.
    None,
    /// The advice is to save.
    Save,
    /// The advice is to save and to begin a fresh session.
    SaveAndRestart,
}

/// The answer to `POST /statusline`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusLineReply {
    /// One line of plain text: level name, percent of usable, remaining work, cost. It may be empty.
    pub line: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status() -> StatusReport {
        let least = json!({
            "version": "0.1.0", "pid": 42, "project": "/home/me/project", "run_id": "r1", "mode": "ask",
            "zoomed": false, "iteration": 1, "context": {}, "reboot": {"phase": "idle", "blocked_by": []},
            "agent": {"kind": "demo", "command": "pitstop demo", "state": "starting", "todo_list": "empty", "tools": "none"},
        });
        serde_json::from_value(least).unwrap()
    }

    #[test]
    fn status_has_exactly_the_promised_fields_and_null_for_the_unknown() {
        let expected = json!({
            "version": "0.1.0", "pid": 42, "project": "/home/me/project", "run_id": "r1",
            "mode": "ask", "paused": false, "zoomed": false, "iteration": 1, "session_id": null,
            "objective": null, "started_at": null, "last_reboot": null,
            "agent": {"kind": "demo", "command": "pitstop demo", "version": null, "state": "starting",
                      "reason": null, "limit_reset": null, "hooked": false, "todo_list": "empty",
                      "bridge": {"state": "", "why": null, "reason": null, "age_ms": null, "turn_runs": null,
                                 "prompt_origin": null, "draft_characters": null, "base_tokens": null, "categories": []},
                      "tools": "none", "last_words": null},
            "context": {"used": null, "window": null, "usable": null, "percent": null,
                        "level": null, "source": null, "age_ms": null, "lines": null, "client_limit": null, "forecast": null},
            "reboot": {"phase": "idle", "reason": null, "blocked_by": [], "way": null, "held": null},
            "cost_usd": null, "turn_cost_usd": null, "fresh_turn_cost_usd": null, "reboot_pays_in_calls": null, "prompt_cache": null, "run": null, "store_error": null, "store_kept": null, "needs": [], "quitting": false,
        });
        assert_eq!(
            serde_json::to_string(&status()).unwrap(),
            expected.to_string()
        );
    }

    #[test]
    fn every_report_survives_the_wire() {
        let text = serde_json::to_string(&status()).unwrap();
        assert_eq!(
            serde_json::from_str::<StatusReport>(&text).unwrap(),
            status()
        );
        let history = HistoryReport {
            run_id: None,
            iterations: vec![IterationReport {
                iteration: 2,
                transition_time_ms: BTreeMap::from([("ending".into(), 120)]),
                ..IterationReport::default()
            }],
        };
        let text = serde_json::to_string(&history).unwrap();
        assert_eq!(
            serde_json::from_str::<HistoryReport>(&text).unwrap(),
            history
        );
    }

    #[test]
    fn where_a_run_stands_is_one_word_for_scripts_and_people() {
        for (phase, word) in [
            (RunPhase::Working, "working"),
            (RunPhase::Waiting, "waiting"),
            (RunPhase::Paused, "paused"),
            (RunPhase::Tripped, "tripped"),
            (RunPhase::Ended, "ended"),
        ] {
            assert_eq!(
                (json!(phase), phase.to_string()),
                (json!(word), word.into())
            );
        }
    }

    #[test]
    fn usage_action_is_written_with_its_type() {
        let action = UsageAction {
            kind: UsageActionKind::SaveAndRestart,
            message: "now".into(),
            auto: true,
        };
        assert_eq!(
            serde_json::to_value(action).unwrap(),
            json!({"type": "save_and_restart", "message": "now", "auto": true})
        );
    }
}
