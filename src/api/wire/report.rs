//! What scripts read as JSON: how things stand, the history, the handoff, how full the context window is.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{AgentState, AgentTools, TodoList};
use crate::{
    agent::AgentKind, bridge::Category, handoff::summary::SummaryMade, lineage::TrimRecord,
};

/// How things stand: what `pitstop status --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusReport {
    /// The supervisor's version.
    pub version: String,
    /// The supervisor's process id.
    pub pid: u32,
    /// The project directory.
    pub project: String,
    /// This run's id.
    pub run_id: Option<String>,
    /// The mode's word: `manual`, `ask` or `auto`.
    pub mode: String,
    /// Whether the pane has the whole screen.
    pub zoomed: bool,
    /// The iteration's number, from 1.
    pub iteration: u32,
    /// The session the agent is in, once it is known.
    pub session_id: Option<String>,
    /// The hosted program.
    pub agent: AgentReport,
    /// How full the context window is.
    pub context: ContextReport,
    /// How far a reboot is.
    pub reboot: RebootReport,
    /// What the session has cost so far, in US dollars.
    pub cost_usd: Option<f64>,
    /// What one of the last turns has cost, in US dollars.
    pub turn_cost_usd: Option<f64>,
    /// What one would cost in a fresh session, in US dollars.
    pub fresh_turn_cost_usd: Option<f64>,
    /// The prompt cache of the service, if the agent reports it.
    pub prompt_cache: Option<CacheReport>,
    /// The autonomous run, if this is one.
    pub run: Option<RunReport>,
    /// Why history is kept in memory, while the store cannot be used.
    pub store_error: Option<String>,
}

/// The prompt cache, as part of a [`StatusReport`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheReport {
    /// Whether the next call can still read from it.
    pub warm: bool,
    /// Until when it can, or could.
    pub expires_at: Option<DateTime<Utc>>,
    /// What a call has to write again once it is cold, in tokens.
    pub recache_tokens: Option<u64>,
}

/// An autonomous run, as part of a [`StatusReport`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// Where it stands.
    pub phase: RunPhase,
    /// The first line of its task.
    pub task: String,
    /// The text that ends it.
    pub stop_phrase: String,
    /// Whether it runs without a terminal.
    pub headless: bool,
    /// How many iterations it has had, the present one among them.
    pub iteration: u64,
    /// How many it may have.
    pub max_iterations: Option<u32>,
    /// How many turns have ended.
    pub turns: u64,
    /// How long it has taken, in seconds.
    pub elapsed_s: u64,
    /// How long it may take, in seconds.
    pub max_time_s: Option<u64>,
    /// What it has cost, in US dollars.
    pub cost_usd: f64,
    /// What it may cost, in US dollars.
    pub max_cost_usd: Option<f64>,
    /// Who paused it.
    pub paused_by: Option<String>,
    /// What it waits for, or the evidence of the breaker that stopped it.
    pub why: Option<String>,
    /// When what it waits for is over, if that is known.
    pub waits_until: Option<DateTime<Utc>>,
    /// How many seconds it waits yet, at most.
    pub waits_s: Option<u64>,
    /// How many items of its plan are done.
    #[serde(default)]
    pub done: usize,
    /// How many are open.
    #[serde(default)]
    pub open: usize,
    /// The first of those.
    pub next: Option<String>,
    /// How many reboots it has had.
    #[serde(default)]
    pub reboots: usize,
    /// How many commits were seen.
    #[serde(default)]
    pub commits: u64,
    /// How many test runs passed.
    #[serde(default)]
    pub tests_passed: u64,
    /// How many failed.
    #[serde(default)]
    pub tests_failed: u64,
    /// How fast its context window fills, and what is left.
    pub forecast: Option<ForecastReport>,
    /// Its newest lines, oldest first.
    #[serde(default)]
    pub timeline: Vec<RunLine>,
}

/// Where an autonomous run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum RunPhase {
    /// Turns follow one another.
    Working,
    /// The next turn waits for something.
    Waiting,
    /// A person holds it.
    Paused,
    /// A breaker has stopped it.
    Tripped,
    /// It is over.
    Ended,
}

/// A line of a run's timeline: what `pitstop run --headless` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLine {
    /// When it was printed, UTC.
    pub at: DateTime<Utc>,
    /// What it says.
    pub text: String,
}

/// The hosted program, as part of a [`StatusReport`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReport {
    /// Which program it is.
    pub kind: AgentKind,
    /// The command it was started by.
    pub command: String,
    /// The version it reported.
    pub version: Option<String>,
    /// What it is doing.
    pub state: AgentState,
    /// What it asks or waits for, or why its state is not known.
    pub reason: Option<String>,
    /// When the usage limit that holds it starts again, if that is known, UTC.
    pub limit_reset: Option<DateTime<Utc>>,
    /// Whether any of its hooks has arrived in this iteration.
    #[serde(default)]
    pub hooked: bool,
    /// Whether it keeps a to-do list.
    #[serde(default)]
    pub todo_list: TodoList,
    /// Its own side of the session.
    #[serde(default)]
    pub bridge: BridgeReport,
    /// How it reaches pitstop's tools.
    #[serde(default)]
    pub tools: AgentTools,
}

/// The bridge, as part of an [`AgentReport`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BridgeReport {
    /// Where it stands: `awaited`, `in_force` or `absent`.
    pub state: String,
    /// Why it is absent, as a word: `other_agent`, `switched_off`, `flag`, `hooks_off`, `too_old`, `not_written`,
    /// `other_protocol`, `no_hello` or `silent`.
    pub why: Option<String>,
    /// The same in words; of one in force, why it answers no compaction, if so.
    pub reason: Option<String>,
    /// How long ago it last spoke, in milliseconds.
    pub age_ms: Option<u64>,
    /// Whether a turn runs.
    pub turn_runs: Option<bool>,
    /// Who submitted the last prompt: `composer` is the person at the prompt box.
    pub prompt_origin: Option<String>,
    /// How long the text in the prompt box is, in characters.
    pub draft_characters: Option<u64>,
    /// What the window held before a word was said, in tokens, by the last usage that named categories.
    pub base_tokens: Option<u64>,
    /// What the window holds.
    pub categories: Vec<Category>,
}

/// How full the context window is, as part of a [`StatusReport`]; before the first figure all but the lines and the client's
/// limit are `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContextReport {
    /// Tokens in use.
    pub used: Option<u64>,
    /// The whole window in tokens.
    pub window: Option<u64>,
    /// The window less the client's reserve, in tokens.
    pub usable: Option<u64>,
    /// `used` as a percentage of `usable`.
    pub percent: Option<f64>,
    /// The level's word: `healthy`, `warning`, `critical` or `overflow`.
    pub level: Option<String>,
    /// Where the figure is from: `bridge`, `status_line`, `transcript` or `estimate`.
    pub source: Option<String>,
    /// How old the figure is, in milliseconds.
    pub age_ms: Option<u64>,
    /// Where the lines lie.
    pub lines: Option<LinesReport>,
    /// Where the client itself acts, if that is known.
    pub client_limit: Option<ClientLimitReport>,
    /// How fast it fills, and what is left.
    pub forecast: Option<ForecastReport>,
}

/// How fast the context window fills, and what is left to the compact line at that growth, as part of a [`ContextReport`]. What is
/// not known yet is `null`, and past the line nothing is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForecastReport {
    /// The unit that fits, in which the screen says what is left.
    pub unit: Option<ForecastUnit>,
    /// Tokens that a minute of the agent's work adds.
    pub growth_per_minute: Option<u64>,
    /// Tokens that a tool call adds.
    pub growth_per_call: Option<u64>,
    /// Tokens that a turn adds: half of the last ones added less.
    pub growth_per_turn: Option<u64>,
    /// Minutes of work left.
    pub minutes_left: Option<u32>,
    /// Tool calls left.
    pub calls_left: Option<u32>,
    /// Turns left, where several fit.
    pub turns_left: Option<TurnsLeft>,
}

/// What the rest of the window is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForecastUnit {
    /// Turns: several fit.
    Turns,
    /// Minutes of work.
    Minutes,
    /// Tool calls: time says nothing yet.
    Calls,
}

/// How many turns are left, as part of a [`ForecastReport`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnsLeft {
    /// If they grow as the larger ones of the last.
    pub least: u32,
    /// If they grow as the smaller ones.
    pub most: u32,
}

/// What a tool says to the agent: the answer to `POST /tools/{tool}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolReply {
    /// Its words.
    pub text: String,
}

/// Where the lines lie, in tokens, as part of a [`ContextReport`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinesReport {
    /// From here on the gauge leaves `healthy`.
    pub notice: u64,
    /// From here on a checkpoint is kept.
    pub warn: u64,
    /// From here on a reboot is advised.
    pub compact: u64,
    /// From here on `auto` interrupts a turn.
    pub force: u64,
    /// Whether they were moved below the point where the client itself acts.
    pub lowered: bool,
}

/// Where the client itself acts on a full window, as part of a [`ContextReport`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientLimitReport {
    /// From how many tokens in use on.
    pub at: u64,
    /// What it does: `compacts` or `refuses prompts`.
    pub act: String,
    /// Where that is known from, such as `--autocompact`.
    pub origin: String,
}

/// How far a reboot is, as part of a [`StatusReport`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebootReport {
    /// The state machine's phase: `idle`, `armed`, `drafting`, `review` and so on. In `review` the handoff is drafted and waits
    /// for an approval; a person may look at it, or a line on the screen says that they can. In `idle` `held` may say why there
    /// is none.
    pub phase: String,
    /// What asked for the reboot, while there is one; else why the last one was refused or failed.
    pub reason: Option<String>,
    /// What has to end before the reboot can go on.
    pub blocked_by: Vec<String>,
    /// How the context goes over in the reboot under way: `fresh`, `in-place`, `on-the-fly` or `trim`.
    #[serde(default)]
    pub way: Option<String>,
    /// What holds an automatic reboot back that is due, for as long as it does.
    #[serde(default)]
    pub held: Option<HeldReport>,
}

/// What holds an automatic reboot back, as part of a [`RebootReport`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldReport {
    /// Why, in words.
    pub reason: String,
    /// When it is over by itself, UTC; nothing if it is over once the session gets something done.
    pub until: Option<DateTime<Utc>>,
}

/// The iterations of a run, oldest first: what `pitstop history --json` prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HistoryReport {
    /// The run's id.
    pub run_id: Option<String>,
    /// Its iterations, oldest first.
    pub iterations: Vec<IterationReport>,
}

/// One life of the pane, as part of a [`HistoryReport`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IterationReport {
    /// Its number, from 1.
    pub iteration: u32,
    /// The session it ran in.
    pub session_id: Option<String>,
    /// The session it was rebooted from.
    pub previous_session_id: Option<String>,
    /// When it began, UTC.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended, UTC; nothing while it runs.
    pub ended_at: Option<DateTime<Utc>>,
    /// How long it has lasted, in milliseconds.
    pub duration_ms: u64,
    /// Why it ended: `natural`, `context_limit`, `user_reboot` and so on; nothing while it runs.
    pub end_reason: Option<String>,
    /// What began it: `start`, or the trigger of the reboot before it.
    pub cause: Option<String>,
    /// Its tokens.
    pub tokens: IterationTokens,
    /// How many turns ended in it; null where that was not counted.
    #[serde(default)]
    pub turns: Option<u32>,
    /// How often the client compacted its context.
    #[serde(default)]
    pub compactions: u32,
    /// What it has cost, in US dollars.
    pub cost_usd: Option<f64>,
    /// How long each step of the reboot that began it took, in milliseconds by the step's word.
    pub transition_time_ms: BTreeMap<String, u64>,
    /// What was preserved over that reboot, where it is still known.
    #[serde(default)]
    pub preserved_state: Option<serde_json::Value>,
    /// The size of the handoff it was given, in bytes; nothing for the first one and after a trim.
    pub handoff_bytes: Option<u64>,
    /// How the context went over in the reboot that began it: `fresh` or `trim`.
    pub way: Option<String>,
    /// What a trim removed.
    pub trim: Option<TrimRecord>,
    /// What was done in it, in a sentence or two.
    pub summary: Option<String>,
    /// Who wrote the summary, what that cost, and why it is not a model's.
    pub summary_made: Option<SummaryMade>,
}

/// The tokens of one iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterationTokens {
    /// In the context window at its first answer.
    pub at_start: Option<u64>,
    /// In the context window at its end, or now.
    pub at_end: Option<u64>,
    /// Sent to the model in all.
    pub input: Option<u64>,
    /// Written by the model in all.
    pub output: Option<u64>,
}

/// The handoff as data, and as the message that would be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoffReport {
    /// When it was made, UTC.
    pub generated_at: Option<DateTime<Utc>>,
    /// The objective.
    pub task_title: Option<String>,
    /// The agent's role: the name that `--agent` gave it, else its permission mode.
    #[serde(default)]
    pub current_hat: Option<String>,
    /// The git branch.
    pub branch: Option<String>,
    /// The commit the branch points at.
    pub head_commit: Option<String>,
    /// What is done.
    pub completed_items: Vec<String>,
    /// What is left to do.
    pub remaining_items: Vec<String>,
    /// What stands in the way.
    pub blocking_issues: Vec<String>,
    /// Files changed since the run began.
    pub modified_files: Vec<String>,
    /// Files created since the run began.
    pub created_files: Vec<String>,
    /// Files deleted since the run began.
    pub deleted_files: Vec<String>,
    /// Files of which git says that something in them is not committed now, whoever changed them.
    pub uncommitted_files: Vec<String>,
    /// What is to be done next.
    pub next_step: Option<String>,
    /// Decisions with their reasons.
    pub key_decisions: Vec<KeyDecision>,
    /// The same as texts.
    #[serde(default)]
    pub key_decision_texts: Vec<String>,
    /// The closing instruction.
    pub continuation_prompt: Option<String>,
    /// The session it was made in.
    pub session_id: Option<String>,
    /// `present`: as it would be sent now. Of a session that has ended: `given` (what it handed over), `checkpoint` (the last
    /// one saved in it), `received` (what it was given itself), or `summary`.
    #[serde(default)]
    pub kind: String,
    /// The whole message, byte for byte as it would be sent, or as it was.
    pub text: String,
    /// The message's size in tokens, estimated.
    pub tokens: u64,
    /// The message's size in bytes.
    pub bytes: u64,
    /// What was cut to keep within the size.
    pub left_out: Vec<String>,
    /// What a reader should know before it is sent.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Every item it was made of, with its source.
    #[serde(default)]
    pub sources: Vec<SourcedItem>,
    /// Whether the agent's to-do list is among the sources.
    #[serde(default)]
    pub todo_list: TodoList,
    /// What it does not say of its session, where that is known.
    pub check: Option<HandoffCheck>,
}

/// What a handoff does not say of its session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoffCheck {
    /// Whether nothing is missing.
    pub complete: bool,
    /// The finding in one line.
    pub finding: String,
    /// How many prompts of the human there are.
    pub prompts: u64,
    /// Those that are missing, whole.
    pub missing_prompts: Vec<String>,
    /// How many recent facts of the work there are.
    pub facts: u64,
    /// Those that are missing.
    pub missing_facts: Vec<MissingFact>,
    /// Its lines that claim what does not stand in the transcript; `pitstop handoff --check` alone looks for them.
    #[serde(default)]
    pub unfounded: Option<Vec<UnfoundedLine>>,
}

/// A line of a handoff that claims what does not stand in its session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfoundedLine {
    /// Its number, from 1.
    pub line: u64,
    /// The line.
    pub text: String,
    /// What of it was not found.
    pub claims: Vec<String>,
}

/// A recent fact of the work that is not in the handoff.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingFact {
    /// `file`, `identifier`, `reference`, `command` or `failure`.
    pub class: String,
    /// What it is.
    pub text: String,
}

/// Something that was decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyDecision {
    /// What.
    pub text: String,
    /// Why, if that was said.
    pub reason: Option<String>,
    /// When, if that is known, UTC.
    pub decided_at: Option<DateTime<Utc>>,
}

/// An item of the preserved state with its source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcedItem {
    /// The list it stands in, by its name in the preserved state.
    pub field: String,
    /// What was said.
    pub text: String,
    /// `human`, `signal`, `scratchpad`, `todo`, `git` or `tests`.
    pub source: String,
}

/// Which figures `GET /context/usage` asks about; nothing means the measured ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageQuery {
    /// Tokens in use.
    pub used_tokens: Option<u64>,
    /// The whole window in tokens.
    pub max_tokens: Option<u64>,
}

/// How full the context window is and what to do about it; figures are `null` before the first one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UsageReply {
    /// Tokens in use.
    pub used: Option<u64>,
    /// The whole window in tokens.
    pub max: Option<u64>,
    /// The window less the client's reserve, in tokens.
    pub usable: Option<u64>,
    /// `used` as a percentage of `usable`.
    pub percent: Option<f64>,
    /// The level's word.
    pub status: Option<String>,
    /// What to do.
    pub action: UsageAction,
}

/// What to do about a [`UsageReply`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageAction {
    /// Its kind.
    #[serde(rename = "type")]
    pub kind: UsageActionKind,
    /// The advice for people.
    pub message: String,
    /// Whether the supervisor does it by itself.
    pub auto: bool,
}

/// The kinds of [`UsageAction`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageActionKind {
    /// Nothing to do.
    None,
    /// Save.
    Save,
    /// Save and begin a fresh session.
    SaveAndRestart,
}

/// What `POST /statusline` answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusLineReply {
    /// One line of plain text: level word, percent of usable, what is left, cost. May be empty.
    pub line: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status() -> StatusReport {
        StatusReport {
            version: "0.1.0".into(),
            pid: 42,
            project: "/home/me/project".into(),
            run_id: Some("r1".into()),
            mode: "ask".into(),
            zoomed: false,
            iteration: 1,
            session_id: None,
            agent: AgentReport {
                kind: AgentKind::Demo,
                command: "pitstop demo".into(),
                version: None,
                state: AgentState::Starting,
                reason: None,
                limit_reset: None,
                hooked: false,
                todo_list: TodoList::Empty,
                bridge: BridgeReport::default(),
                tools: AgentTools::None,
            },
            context: ContextReport::default(),
            reboot: RebootReport {
                phase: "idle".into(),
                ..RebootReport::default()
            },
            cost_usd: None,
            turn_cost_usd: None,
            fresh_turn_cost_usd: None,
            prompt_cache: None,
            run: None,
            store_error: None,
        }
    }

    #[test]
    fn status_has_exactly_the_promised_fields_and_null_for_the_unknown() {
        let expected = json!({
            "version": "0.1.0", "pid": 42, "project": "/home/me/project", "run_id": "r1",
            "mode": "ask", "zoomed": false, "iteration": 1, "session_id": null,
            "agent": {"kind": "demo", "command": "pitstop demo", "version": null, "state": "starting",
                      "reason": null, "limit_reset": null, "hooked": false, "todo_list": "empty",
                      "bridge": {"state": "", "why": null, "reason": null, "age_ms": null, "turn_runs": null,
                                 "prompt_origin": null, "draft_characters": null, "base_tokens": null, "categories": []},
                      "tools": "none"},
            "context": {"used": null, "window": null, "usable": null, "percent": null,
                        "level": null, "source": null, "age_ms": null, "lines": null, "client_limit": null, "forecast": null},
            "reboot": {"phase": "idle", "reason": null, "blocked_by": [], "way": null, "held": null},
            "cost_usd": null, "turn_cost_usd": null, "fresh_turn_cost_usd": null, "prompt_cache": null, "run": null, "store_error": null,
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
