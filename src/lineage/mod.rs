//! The chain of iterations: who lived when, why each life ended, and how one became the next.
//!
//! This room owns the numbers and names of runs and iterations, the record of each (`meta.json`
//! and the database), the journal that is written ahead of every reboot step, checkpoints, the
//! lock that keeps a second supervisor out, and the private files all of it is kept in. It does
//! not decide when to reboot (`guard`, `breakpoint`) nor carry one out (`app`, `runtime`).
//!
//! Pure: this file, [`checkpoint`], [`journal`], [`metrics`] and [`past`]. Touching the world: [`agent_registry`],
//! [`files`], [`lock`] and [`store`].

pub mod checkpoint;
pub mod journal;
pub mod metrics;
pub mod past;
mod phrase;

use std::{collections::BTreeMap, fmt, num::NonZeroU64, path::Path, str::FromStr};

use chrono::{DateTime, NaiveDateTime, SubsecRound, Utc};
use serde::{Deserialize, Serialize};

pub use crate::process::ProcessStamp;
use crate::{
    handoff::summary::SummaryMade,
    lineage::journal::Step,
    transcript::{SessionId, Tokens},
};

/// The number of one life of the pane within a run, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IterationId(NonZeroU64);

impl IterationId {
    /// The first iteration of every run.
    pub const FIRST: Self = Self(NonZeroU64::MIN);

    /// Wraps a number that was read from somewhere; `None` for 0, which numbers no iteration.
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The bare number, from 1.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The iteration after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for IterationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How the date and time stand in a [`RunId`].
const RUN_ID_TIME: &str = "%Y%m%d-%H%M%S";

/// The name of one run of the supervisor: sorts by its start and is safe as a file name.
///
/// It reads `20261121-075144-3fa94c`: UTC to the second, then 24 random bits, so that two machines
/// which share a database and start in the same second still differ.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

impl RunId {
    /// Makes the name of a run that started at `started`, told from its twins by `random`.
    #[must_use]
    pub fn new(started: DateTime<Utc>, random: [u8; 3]) -> Self {
        let [a, b, c] = random;
        Self(format!(
            "{}-{a:02x}{b:02x}{c:02x}",
            started.format(RUN_ID_TIME)
        ))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// When the run began, to the second.
    #[must_use]
    pub fn started(&self) -> DateTime<Utc> {
        let time = self.0.rsplit_once('-').map_or("", |(time, _)| time);
        NaiveDateTime::parse_from_str(time, RUN_ID_TIME)
            .unwrap_or_default()
            .and_utc()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RunId {
    type Err = LineageError;

    /// Accepts only what [`RunId::new`] writes: the text becomes a directory name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let well_formed = text.rsplit_once('-').is_some_and(|(time, random)| {
            NaiveDateTime::parse_from_str(time, RUN_ID_TIME)
                .is_ok_and(|parsed| parsed.format(RUN_ID_TIME).to_string() == time)
                && random.len() == 6
                && random
                    .bytes()
                    .all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
        });
        if well_formed {
            Ok(Self(text.to_owned()))
        } else {
            Err(LineageError::RunId(text.chars().take(64).collect()))
        }
    }
}

impl TryFrom<String> for RunId {
    type Error = LineageError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(run: RunId) -> Self {
        run.0
    }
}

/// What went wrong with the chain of iterations.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LineageError {
    /// The text is not a run's name.
    #[error("expected a run name such as 20261121-075144-3fa94c, found {0:?}")]
    RunId(String),
    /// An iteration was to be opened while another is still open.
    #[error("expected no open iteration, found iteration {0} still open")]
    StillOpen(IterationId),
    /// An iteration was to be closed and none is open.
    #[error("expected an open iteration, found none")]
    NoneOpen,
    /// A word of the record is not one that we write.
    #[error("expected {expected}, found {found:?}")]
    Word {
        /// What kind of word was looked for.
        expected: &'static str,
        /// The word found, shortened.
        found: String,
    },
}

/// Gives an enum its words: `as_str`, `Display`, `FromStr` and serde, all from one list.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident, $expected:literal, { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$doc])* #[serde(rename = $word)] $variant,)+ }

        impl $name {
            /// Every value, in order.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word this value is written as.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::lineage::LineageError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::lineage::LineageError::Word {
                        expected: $expected,
                        found: text.chars().take(64).collect(),
                    }),
                }
            }
        }
    };
}
pub(crate) use words;

words! {
    /// Why an iteration ended; the words are those of `meta.json`.
    EndReason, "an end reason (natural, context_limit, promise_found, user_reboot, shutdown, crash, limit or breaker)", {
        /// The agent ended by itself.
        Natural = "natural",
        /// The context window was full.
        ContextLimit = "context_limit",
        /// The promise text was found in the agent's last message.
        PromiseFound = "promise_found",
        /// The human asked for a reboot.
        UserReboot = "user_reboot",
        /// The supervisor was told to end.
        Shutdown = "shutdown",
        /// The agent or the supervisor died.
        Crash = "crash",
        /// A cap of the run was reached.
        Limit = "limit",
        /// A breaker of the run tripped.
        Breaker = "breaker",
    }
}

words! {
    /// What asked for a reboot.
    Cause, "the cause of a reboot", {
        /// A key.
        Key = "key",
        /// `pitstop ctl`.
        Ctl = "ctl",
        /// The API.
        Api = "api",
        /// Usage passed a threshold.
        Threshold = "threshold",
        /// A good moment behind the warn line: a commit, or tests that passed.
        Breakpoint = "breakpoint",
        /// The autonomous loop.
        Autopilot = "autopilot",
        /// The agent ended by itself.
        AgentExit = "agent_exit",
        /// The agent died.
        AgentCrash = "agent_crash",
        /// The client refused prompts because its context window is full.
        ContextLimit = "context_limit",
        /// The human took the last reboot back.
        Undo = "undo",
        /// The supervisor died in mid-reboot and the next one finished it.
        Recovery = "recovery",
        /// The work of a checkpoint is taken up.
        Restore = "restore",
    }
}

words! {
    /// How the next iteration gets its context.
    Way, "a way to reboot (fresh or trim)", {
        /// A new session that is told the handoff.
        Fresh = "fresh",
        /// A trimmed copy of the old session, resumed under a new id.
        Trim = "trim",
    }
}

/// Tokens that went in and came out over a whole iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenTotals {
    /// Tokens sent to the model, caches included.
    pub input: Tokens,
    /// Tokens the model wrote.
    pub output: Tokens,
}

/// What a trim has removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrimRecord {
    /// The level: the share of the tool responses that was removed, in percent.
    pub level: u8,
    /// How many tool responses that was.
    pub responses: usize,
    /// How many there were.
    pub of: usize,
    /// Tokens in the context window before.
    pub tokens_before: Tokens,
    /// Tokens in the context window after it, estimated.
    pub tokens_after: Tokens,
}

/// How one reboot went, as the API and the history report it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RebootRecord {
    /// The session that ended, where the agent has sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_session: Option<SessionId>,
    /// The session that carries on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_session: Option<SessionId>,
    /// How the context went over.
    pub way: Way,
    /// What asked for it.
    pub cause: Cause,
    /// What was removed, where the way was a trim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<TrimRecord>,
    /// Milliseconds spent in each step.
    #[serde(default)]
    pub transition_time_ms: BTreeMap<Step, u64>,
    /// The size of the handoff in bytes.
    pub handoff_bytes: u64,
    /// The estimated size of the handoff in tokens.
    pub handoff_tokens: Tokens,
    /// Whether the handoff was seen to arrive.
    pub verified: bool,
    /// Whether a warm-up prompt was sent.
    pub warmed_up: bool,
    /// The preserved state the handoff was made from, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preserved_state: Option<serde_json::Value>,
}

impl RebootRecord {
    /// Milliseconds the whole transition took.
    #[must_use]
    pub fn total_ms(&self) -> u64 {
        self.transition_time_ms
            .values()
            .fold(0, |sum, step| sum.saturating_add(*step))
    }
}

/// One life of the pane: from the start of an agent process to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// Its number within the run.
    pub iteration: IterationId,
    /// The session it spoke in; none for an agent without sessions, or before the id is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// When it began.
    #[serde(with = "moment")]
    pub started_at: DateTime<Utc>,
    /// When it ended; none while it lives.
    #[serde(
        default,
        with = "moment::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub ended_at: Option<DateTime<Utc>>,
    /// Why it ended; none while it lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<EndReason>,
    /// Tokens in and out over its whole life.
    pub tokens: TokenTotals,
    /// What was done in it, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Who wrote the summary, what that cost, and why it is not a model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_made: Option<SummaryMade>,
    /// The iteration whose work it carries on: the one before, or after an undo the one resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<IterationId>,
    /// Tokens in the context window at its first answer: the base load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_at_birth: Option<Tokens>,
    /// Tokens in the context window at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_at_end: Option<Tokens>,
    /// How often the client compacted the context by itself or for the human.
    #[serde(default, skip_serializing_if = "is_none_at_all")]
    pub compactions: u32,
    /// What it cost, in US dollars, as the agent tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// What asked for the reboot that began it; none for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The reboot that began it, with its times; none for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reboot: Option<RebootRecord>,
}

impl Iteration {
    /// Whether it still lives.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.ended_at.is_none()
    }

    /// Whether a handoff was given to it, and not a trimmed copy or nothing.
    #[must_use]
    pub fn was_given_handoff(&self) -> bool {
        let record = self.reboot.as_ref();
        record.is_some_and(|one| one.trim.is_none() && one.handoff_bytes > 0)
    }

    fn born(iteration: IterationId, at: DateTime<Utc>) -> Self {
        Self {
            iteration,
            session_id: None,
            started_at: at.trunc_subsecs(3),
            ended_at: None,
            end_reason: None,
            tokens: TokenTotals::default(),
            summary: None,
            summary_made: None,
            parent: None,
            tokens_at_birth: None,
            tokens_at_end: None,
            compactions: 0,
            cost_usd: None,
            cause: None,
            reboot: None,
        }
    }

    fn close(&mut self, at: DateTime<Utc>, reason: EndReason) {
        // A clock set back must not make an iteration end before it began.
        self.ended_at = Some(at.trunc_subsecs(3).max(self.started_at));
        self.end_reason = Some(reason);
    }
}

/// How many of the latest iterations keep in memory what their reboot handed over. What becomes known late, such as a
/// summary, is written with the whole record again, and comes long before so many further reboots.
const STATES_KEPT: usize = 4;

/// The iterations of one run, in order: at most the last is open.
///
/// ```text
///        open              close(reason)             open
/// none ───────► 1 open ───────────────► 1 closed ───────────► 2 open ─ ─ ►
///                  │                        ▲
///                  └── current_mut: figures ┘
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Lineage {
    run: RunId,
    iterations: Vec<Iteration>,
}

impl Lineage {
    /// Begins the chain of a new run.
    #[must_use]
    pub const fn new(run: RunId) -> Self {
        Self {
            run,
            iterations: Vec::new(),
        }
    }

    /// The chain of a run whose supervisor is gone, as it was recorded: what it left open is closed as a
    /// crash at `at`.
    #[must_use]
    pub fn recorded(run: RunId, mut iterations: Vec<Iteration>, at: DateTime<Utc>) -> Self {
        for left_open in iterations.iter_mut().filter(|one| one.is_open()) {
            left_open.close(at, EndReason::Crash);
        }
        Self { run, iterations }
    }

    /// The run this is the chain of.
    #[must_use]
    pub const fn run(&self) -> &RunId {
        &self.run
    }

    /// Opens the next iteration as a child of the last one, in `session`, begun by `cause`.
    pub fn open(
        &mut self,
        session: Option<SessionId>,
        cause: Option<Cause>,
        at: DateTime<Utc>,
    ) -> Result<IterationId, LineageError> {
        let parent = self.iterations.last().map(|last| last.iteration);
        self.open_below(parent, session, cause, at)
    }

    /// Opens the next iteration as a child of `parent`: an undo carries on from an older one.
    pub fn open_below(
        &mut self,
        parent: Option<IterationId>,
        session: Option<SessionId>,
        cause: Option<Cause>,
        at: DateTime<Utc>,
    ) -> Result<IterationId, LineageError> {
        if let Some(open) = self.current() {
            return Err(LineageError::StillOpen(open.iteration));
        }
        let id = self
            .iterations
            .last()
            .map_or(IterationId::FIRST, |last| last.iteration.next());
        self.iterations.push(Iteration {
            session_id: session,
            parent,
            cause,
            ..Iteration::born(id, at)
        });
        self.forget_old_states();
        Ok(id)
    }

    /// The states that old reboots handed over are kept in the store: a run of hundreds of sessions must not keep them in
    /// memory too, where each may hold the names of thousands of tests.
    fn forget_old_states(&mut self) {
        let old = self.iterations.len().saturating_sub(STATES_KEPT);
        // All before that one have been through this.
        let one = old
            .checked_sub(1)
            .and_then(|at| self.iterations.get_mut(at));
        if let Some(record) = one.and_then(|one| one.reboot.as_mut()) {
            record.preserved_state = None;
        }
    }

    /// Closes the open iteration and returns its finished record.
    pub fn close(
        &mut self,
        at: DateTime<Utc>,
        reason: EndReason,
    ) -> Result<&Iteration, LineageError> {
        let open = self.current_mut().ok_or(LineageError::NoneOpen)?;
        open.close(at, reason);
        Ok(open)
    }

    /// The open iteration.
    #[must_use]
    pub fn current(&self) -> Option<&Iteration> {
        self.iterations.last().filter(|last| last.is_open())
    }

    /// The open iteration, to note figures in.
    pub fn current_mut(&mut self) -> Option<&mut Iteration> {
        self.iterations.last_mut().filter(|last| last.is_open())
    }

    /// The iteration of that number.
    #[must_use]
    pub fn get(&self, id: IterationId) -> Option<&Iteration> {
        let place = usize::try_from(id.get()).ok()?.checked_sub(1)?;
        self.iterations.get(place)
    }

    /// The iteration of that number, to attach what becomes known late, such as its summary.
    pub fn get_mut(&mut self, id: IterationId) -> Option<&mut Iteration> {
        let place = usize::try_from(id.get()).ok()?.checked_sub(1)?;
        self.iterations.get_mut(place)
    }

    /// The newest iteration that spoke in this session.
    #[must_use]
    pub fn newest_in(&self, session: SessionId) -> Option<IterationId> {
        let mut newest_first = self.iterations.iter().rev();
        let found = newest_first.find(|one| one.session_id == Some(session));
        found.map(|one| one.iteration)
    }

    /// The iteration whose work `id` carries on.
    #[must_use]
    pub fn parent(&self, id: IterationId) -> Option<&Iteration> {
        self.get(self.get(id)?.parent?)
    }

    /// Every iteration, oldest first.
    #[must_use]
    pub fn iterations(&self) -> &[Iteration] {
        &self.iterations
    }

    /// What `meta.json` says of this run, with its task and how it ended, as far as they are known.
    #[must_use]
    pub fn meta(&self, task: Option<&str>, ended: Option<(DateTime<Utc>, RunEnd)>) -> Meta {
        let costs = self.iterations.iter().filter_map(|one| one.cost_usd);
        let (ended_at, end) = ended.unzip();
        Meta {
            run_id: self.run.clone(),
            task: task.map(str::to_owned),
            started_at: Some(self.run.started()),
            ended_at: ended_at.map(|at| at.trunc_subsecs(3).max(self.run.started())),
            end,
            cost: costs.reduce(|sum, cost| sum + cost).map(in_millionths),
            iterations: self.iterations.iter().map(IterationRecord::from).collect(),
        }
    }
}

/// An amount of money without the last digits that adding up leaves behind.
fn in_millionths(dollars: f64) -> f64 {
    (dollars * 1e6).round() / 1e6
}

/// The file `meta.json` of a run. What is not known is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// The run's name; records of before called it `run`.
    #[serde(alias = "run")]
    pub run_id: RunId,
    /// The task of an autonomous run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// When it began, to the second; only records of before are without it.
    #[serde(
        default,
        with = "moment::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended; none while it lives.
    #[serde(
        default,
        with = "moment::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub ended_at: Option<DateTime<Utc>>,
    /// How it ended; none while it lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<RunEnd>,
    /// What all iterations together cost, in US dollars, as the agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Its iterations, oldest first.
    pub iterations: Vec<IterationRecord>,
}

impl Meta {
    /// The text of the file: indented JSON with a final newline.
    #[must_use]
    pub fn to_json(&self) -> String {
        format!("{:#}\n", json(self))
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// Why.
    pub reason: EndReason,
    /// The exit code of the supervisor; none if it died without notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What shows it: the line with the stop phrase, what a breaker has seen, which cap was reached.
    pub evidence: String,
}

impl RunEnd {
    /// The end of a run whose supervisor died without notice, as the next start finds it.
    #[must_use]
    pub fn crashed() -> Self {
        Self {
            reason: EndReason::Crash,
            exit_code: None,
            evidence: "the supervisor ended without notice".to_owned(),
        }
    }
}

/// A record as JSON. None of ours can fail: their keys are text and nothing in them says no.
pub(crate) fn json(record: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(record).expect("plain records with text keys always become JSON")
}

/// Whether a count is nil; by reference, as serde asks.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_none_at_all(count: &u32) -> bool {
    *count == 0
}

/// One iteration as it stands in `meta.json`; with the number of compactions where there were any.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IterationRecord {
    /// The number, from 1.
    pub iteration: IterationId,
    /// The session it spoke in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// When it began.
    #[serde(with = "moment")]
    pub started_at: DateTime<Utc>,
    /// When it ended.
    #[serde(
        default,
        with = "moment::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub ended_at: Option<DateTime<Utc>>,
    /// Why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<EndReason>,
    /// What asked for the reboot that began it; left out for the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Tokens in and out.
    pub tokens: TokenTotals,
    /// What it cost, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// How often the client compacted its context; left out if it never did.
    #[serde(default, skip_serializing_if = "is_none_at_all")]
    pub compactions: u32,
    /// What was done, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The file with the handoff that it was given, beside this record; left out if it was given none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<String>,
}

impl From<&Iteration> for IterationRecord {
    fn from(whole: &Iteration) -> Self {
        Self {
            iteration: whole.iteration,
            session_id: whole.session_id,
            started_at: whole.started_at,
            ended_at: whole.ended_at,
            end_reason: whole.end_reason,
            cause: whole.cause,
            tokens: whole.tokens,
            cost: whole.cost_usd.map(in_millionths),
            compactions: whole.compactions,
            summary: whole.summary.clone(),
            handoff: whole
                .was_given_handoff()
                .then(|| format!("iteration-{}/handoff.md", whole.iteration)),
        }
    }
}

impl From<IterationRecord> for Iteration {
    fn from(record: IterationRecord) -> Self {
        Self {
            session_id: record.session_id,
            ended_at: record.ended_at,
            end_reason: record.end_reason,
            tokens: record.tokens,
            compactions: record.compactions,
            summary: record.summary,
            ..Self::born(record.iteration, record.started_at)
        }
    }
}

/// The directory a supervisor works for, as the records name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Project {
    /// The absolute path, for people; bytes that are no text are replaced.
    pub path: String,
    /// Sixteen hex digits made from the path's bytes: names sockets and finds records.
    pub hash: String,
    /// The machine: on a shared database equal paths on two machines are two projects.
    pub host: String,
}

impl Project {
    /// Names the project at the absolute `path` on the machine `host`.
    #[must_use]
    pub fn new(path: &Path, host: &str) -> Self {
        Self {
            path: path.to_string_lossy().into_owned(),
            hash: format!("{:016x}", fnv1a(path.as_os_str().as_encoded_bytes())),
            host: host.to_owned(),
        }
    }
}

/// FNV-1a over 64 bits: must never change, so the standard library's unspecified hash will not do.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Moments in files and in the database: UTC, to the millisecond, always 24 characters, so that
/// their order as text is their order in time.
pub(crate) mod moment {
    use chrono::{DateTime, SecondsFormat, Utc};
    use serde::{Deserialize, Deserializer, Serializer};

    /// The moment as text.
    pub(crate) fn text(at: DateTime<Utc>) -> String {
        at.to_rfc3339_opts(SecondsFormat::Millis, true)
    }

    pub(crate) fn serialize<S: Serializer>(
        at: &DateTime<Utc>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&text(*at))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<DateTime<Utc>, D::Error> {
        DateTime::<Utc>::deserialize(deserializer)
    }

    pub(crate) mod option {
        use super::{DateTime, Deserialize, Deserializer, Serializer, Utc, text};

        #[allow(clippy::ref_option)] // the signature is serde's
        pub(crate) fn serialize<S: Serializer>(
            at: &Option<DateTime<Utc>>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            match at {
                Some(at) => serializer.serialize_str(&text(*at)),
                None => serializer.serialize_none(),
            }
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<DateTime<Utc>>, D::Error> {
            Option::<DateTime<Utc>>::deserialize(deserializer)
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::{Duration, TimeZone};

    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        Utc.timestamp_opt(1_795_000_000 + second, 123_456_789)
            .unwrap()
    }

    fn run() -> RunId {
        RunId::new(at(0), [0x3f, 0xa9, 0x4c])
    }

    fn session(n: u128) -> SessionId {
        SessionId::new(uuid::Uuid::from_u128(n))
    }

    fn reboot() -> RebootRecord {
        RebootRecord {
            old_session: None,
            new_session: None,
            way: Way::Fresh,
            cause: Cause::Threshold,
            trim: None,
            transition_time_ms: BTreeMap::new(),
            handoff_bytes: 1,
            handoff_tokens: Tokens(1),
            verified: true,
            warmed_up: false,
            preserved_state: None,
        }
    }

    #[test]
    fn a_run_name_sorts_by_time_and_reads_back() {
        let earlier = RunId::new(at(0), [0xff; 3]);
        let later = RunId::new(at(1), [0; 3]);
        assert!(earlier < later);
        assert_eq!(earlier.as_str().parse(), Ok(earlier.clone()));
        assert!(
            earlier
                .as_str()
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
        );
    }

    #[test]
    fn a_run_name_that_is_no_directory_name_is_refused() {
        for text in [
            "",
            "..",
            "../x",
            "20261121-075144-3FA94C",
            "20261121-075144-3fa94",
            "20261321-075144-3fa94c",
            "20261121-075144-3fa94c/",
            "20261121-075144",
            "+0261121-075144-3fa94c",
            " 20261121-075144-3fa94c",
        ] {
            assert!(text.parse::<RunId>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_end_reasons_have_exactly_the_words_of_the_contract() {
        let words: Vec<_> = EndReason::ALL
            .iter()
            .map(|reason| reason.as_str())
            .collect();
        assert_eq!(
            words,
            [
                "natural",
                "context_limit",
                "promise_found",
                "user_reboot",
                "shutdown",
                "crash",
                "limit",
                "breaker"
            ]
        );
        for reason in EndReason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
            assert_eq!(reason.as_str().parse(), Ok(*reason));
        }
    }

    #[test]
    fn iterations_open_and_close_in_turn() {
        let mut lineage = Lineage::new(run());
        assert_eq!(
            lineage.close(at(0), EndReason::Natural).unwrap_err(),
            LineageError::NoneOpen
        );

        let first = lineage.open(Some(session(1)), None, at(1)).unwrap();
        assert_eq!(first.get(), 1);
        assert_eq!(
            lineage.open(None, None, at(2)).unwrap_err(),
            LineageError::StillOpen(first)
        );
        lineage.current_mut().unwrap().tokens_at_end = Some(Tokens(150_000));
        let closed = lineage.close(at(3), EndReason::UserReboot).unwrap();
        assert_eq!(closed.end_reason, Some(EndReason::UserReboot));
        assert!(lineage.current().is_none());

        let second = lineage
            .open(Some(session(2)), Some(Cause::Key), at(4))
            .unwrap();
        assert_eq!(second.get(), 2);
        assert_eq!(lineage.parent(second).map(|p| p.iteration), Some(first));
        assert_eq!(lineage.parent(first), None);
        assert_eq!(lineage.iterations().len(), 2);
    }

    #[test]
    fn an_undo_carries_on_from_the_older_iteration() {
        let mut lineage = Lineage::new(run());
        let first = lineage.open(Some(session(1)), None, at(1)).unwrap();
        lineage.close(at(2), EndReason::UserReboot).unwrap();
        lineage
            .open(Some(session(2)), Some(Cause::Key), at(3))
            .unwrap();
        lineage.close(at(4), EndReason::UserReboot).unwrap();
        let third = lineage
            .open_below(Some(first), Some(session(1)), Some(Cause::Undo), at(5))
            .unwrap();
        assert_eq!(third.get(), 3);
        assert_eq!(lineage.parent(third).map(|p| p.iteration), Some(first));
    }

    #[test]
    fn old_iterations_forget_what_was_handed_over() {
        let mut lineage = Lineage::new(run());
        for second in 0..10 {
            lineage.open(None, None, at(second)).unwrap();
            lineage.current_mut().unwrap().reboot = Some(RebootRecord {
                preserved_state: Some(serde_json::json!({ "a": 1 })),
                ..reboot()
            });
            lineage.close(at(second), EndReason::ContextLimit).unwrap();
        }
        let kept = |one: &Iteration| one.reboot.as_ref().unwrap().preserved_state.is_some();
        let kept: Vec<_> = lineage.iterations().iter().map(kept).collect();
        assert_eq!(kept.iter().filter(|kept| **kept).count(), STATES_KEPT);
        assert!(kept[6..].iter().all(|kept| *kept), "{kept:?}");
    }

    #[test]
    fn a_clock_set_back_ends_no_iteration_before_its_start() {
        let mut lineage = Lineage::new(run());
        lineage.open(None, None, at(100)).unwrap();
        let closed = lineage
            .close(at(100) - Duration::hours(1), EndReason::Crash)
            .unwrap();
        assert_eq!(closed.ended_at, Some(closed.started_at));
    }

    #[test]
    fn meta_has_exactly_the_names_of_its_schema_and_no_nulls() {
        let mut lineage = Lineage::new(run());
        lineage.open(Some(session(7)), None, at(0)).unwrap();
        let open = lineage.current_mut().unwrap();
        open.tokens = TokenTotals {
            input: Tokens(12),
            output: Tokens(3),
        };
        open.cost_usd = Some(1.5);
        let names = |value: &serde_json::Value| -> Vec<String> {
            value.as_object().unwrap().keys().cloned().collect()
        };
        let value: serde_json::Value =
            serde_json::from_str(&lineage.meta(None, None).to_json()).unwrap();
        assert_eq!(
            names(&value),
            ["run_id", "started_at", "cost", "iterations"]
        );
        assert_eq!(
            names(&value["iterations"][0]),
            ["iteration", "session_id", "started_at", "tokens", "cost"]
        );

        lineage.current_mut().unwrap().summary = Some("did it".to_owned());
        lineage.close(at(60), EndReason::PromiseFound).unwrap();
        lineage
            .open(Some(session(8)), Some(Cause::Key), at(61))
            .unwrap();
        let second = lineage.current_mut().unwrap();
        second.cost_usd = Some(0.1 + 0.2);
        second.reboot = Some(RebootRecord {
            handoff_bytes: 7,
            ..reboot()
        });
        lineage.close(at(62), EndReason::Breaker).unwrap();
        let end = RunEnd {
            reason: EndReason::Breaker,
            exit_code: Some(4),
            evidence: "breaker no_change tripped".to_owned(),
        };
        let meta = lineage.meta(Some("build it"), Some((at(62), end)));
        let value: serde_json::Value = serde_json::from_str(&meta.to_json()).unwrap();
        assert_eq!(
            names(&value),
            [
                "run_id",
                "task",
                "started_at",
                "ended_at",
                "end",
                "cost",
                "iterations"
            ]
        );
        assert_eq!(
            value["end"],
            serde_json::json!({"reason": "breaker", "exit_code": 4, "evidence": "breaker no_change tripped"})
        );
        assert_eq!(value["cost"], 1.8);
        assert_eq!(value["started_at"], moment::text(run().started()));
        let record = &value["iterations"][0];
        assert_eq!(
            names(record),
            [
                "iteration",
                "session_id",
                "started_at",
                "ended_at",
                "end_reason",
                "tokens",
                "cost",
                "summary"
            ]
        );
        assert_eq!(
            record["tokens"],
            serde_json::json!({"input": 12, "output": 3})
        );
        assert_eq!(record["end_reason"], "promise_found");
        assert_eq!(record["started_at"].as_str().unwrap().len(), 24);
        let second = &value["iterations"][1];
        assert_eq!(
            (&second["cause"], &second["cost"], &second["handoff"]),
            (&"key".into(), &0.3.into(), &"iteration-2/handoff.md".into())
        );
        assert_eq!(serde_json::from_value::<Meta>(value).unwrap(), meta);
    }

    #[test]
    fn a_record_of_an_older_shape_is_read() {
        let old = r#"{"run": "20261121-075144-3fa94c", "iterations": [{"iteration": 1,
            "started_at": "2026-11-21T07:51:44.000Z", "end_reason": "limit", "tokens": {"input": 1, "output": 2}}]}"#;
        let meta: Meta = serde_json::from_str(old).unwrap();
        assert_eq!(meta.run_id.as_str(), "20261121-075144-3fa94c");
        assert_eq!((meta.started_at, meta.iterations.len()), (None, 1));
    }

    #[test]
    fn a_project_keeps_its_hash_for_good() {
        // The value is on users' disks: a change here loses their history.
        assert_eq!(
            Project::new(Path::new("/home/a/b"), "h").hash,
            format!("{:016x}", fnv1a(b"/home/a/b"))
        );
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}
