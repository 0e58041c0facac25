//! The file `meta.json` of a run.

use chrono::{DateTime, SubsecRound, Utc};
use serde::{Deserialize, Serialize};

use super::{
    Cause, EndReason, Iteration, IterationId, Lineage, RunId, TokenTotals,
    iteration::is_none_at_all, moment,
};
use pitstop_transcript::{SessionId, Tokens};

/// The file `meta.json` of a run. Unknown values are left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// The run's name; older records called it `run`.
    #[serde(alias = "run")]
    pub run_id: RunId,
    /// The task of an autonomous run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The time when it began, to the second; only older records lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "moment::option")]
    pub started_at: Option<DateTime<Utc>>,
    /// The time when it ended; none while it lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "moment::option")]
    pub ended_at: Option<DateTime<Utc>>,
    /// The way it ended; none while it lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<RunEnd>,
    /// The cost of all iterations together in US dollars, as the agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Its iterations, oldest first.
    pub iterations: Vec<IterationRecord>,
}

impl Meta {
    /// Returns the text of the file: indented JSON with a final newline.
    pub fn to_json(&self) -> String {
        format!("{:#}\n", json(self))
    }
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// The reason for the end.
    pub reason: EndReason,
    /// The exit code of the supervisor; none if it died without notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The evidence for the reason: the line with the stop phrase, what a breaker has seen, which cap was reached.
    pub evidence: String,
}

impl RunEnd {
    /// Returns the end of a run whose supervisor died without notice, as the next start finds it.
    pub fn crashed() -> Self {
        Self {
            reason: EndReason::Crash,
            exit_code: None,
            evidence: "the supervisor ended without notice".to_owned(),
        }
    }
}

/// One iteration as `meta.json` records it; with the number of compactions where there were any.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IterationRecord {
    /// The number, from 1.
    pub iteration: IterationId,
    /// The session it ran in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The time when it began.
    #[serde(with = "moment")]
    pub started_at: DateTime<Utc>,
    /// The time when it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "moment::option")]
    pub ended_at: Option<DateTime<Utc>>,
    /// Its length in milliseconds, also where the clock was set in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The reason why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<EndReason>,
    /// The name of the signal that asked pitstop to end; left out if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// True if its end is known to have cut a turn; left out otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_turn: bool,
    /// The cause of the reboot that began it; left out for the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The input and output tokens, and those in the context window.
    pub tokens: RecordedTokens,
    /// Its cost in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The number of turns that ended in it; left out where that was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// The number of times that the client compacted its context; left out if it never did.
    #[serde(default, skip_serializing_if = "is_none_at_all")]
    pub compactions: u32,
    /// A description of the work that was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The path of the file with the handoff that it was given, relative to this record; left out if it was given none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<String>,
}

/// The tokens of an iteration: the sums over its calls, and the numbers in the context window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedTokens {
    /// The sums over all calls.
    #[serde(flatten)]
    pub totals: TokenTotals,
    /// The number of tokens in the context window at its first answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_start: Option<Tokens>,
    /// The number of tokens in the context window at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_end: Option<Tokens>,
}

impl From<&Iteration> for IterationRecord {
    fn from(whole: &Iteration) -> Self {
        Self {
            iteration: whole.iteration,
            session_id: whole.session_id,
            started_at: whole.started_at,
            ended_at: whole.ended_at,
            duration_ms: whole.duration_ms,
            end_reason: whole.end_reason,
            signal: whole.signal.clone(),
            in_turn: whole.in_turn,
            cause: whole.cause,
            tokens: RecordedTokens {
                totals: whole.tokens,
                at_start: whole.tokens_at_birth,
                at_end: whole.tokens_at_end,
            },
            cost: whole.cost_usd.map(in_millionths),
            turns: whole.turns,
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
            duration_ms: record.duration_ms,
            end_reason: record.end_reason,
            signal: record.signal,
            in_turn: record.in_turn,
            cause: record.cause,
            cost_usd: record.cost,
            tokens: record.tokens.totals,
            tokens_at_birth: record.tokens.at_start,
            tokens_at_end: record.tokens.at_end,
            turns: record.turns,
            compactions: record.compactions,
            summary: record.summary,
            ..Self::born(record.iteration, record.started_at)
        }
    }
}

impl Lineage {
    /// Returns the `meta.json` of this run, with its task and its end, as far as they are known.
    pub fn meta(&self, task: Option<&str>, ended: Option<(DateTime<Utc>, RunEnd)>) -> Meta {
        let costs = self.iterations().iter().filter_map(|one| one.cost_usd);
        let (ended_at, end) = ended.unzip();
        Meta {
            run_id: self.run().clone(),
            task: task.map(str::to_owned),
            started_at: Some(self.run().started()),
            ended_at: ended_at.map(|at| at.trunc_subsecs(3).max(self.run().started())),
            end,
            cost: costs.reduce(|sum, cost| sum + cost).map(in_millionths),
            iterations: self
                .iterations()
                .iter()
                .map(IterationRecord::from)
                .collect(),
        }
    }
}

/// Rounds an amount of money to millionths of a dollar, without the last digits that adding up leaves behind.
fn in_millionths(dollars: f64) -> f64 {
    (dollars * 1e6).round() / 1e6
}

/// Returns a record as JSON.
///
/// # Panics
///
/// Never for a record of this program: their keys are text and no value refuses to serialize.
pub fn json(record: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(record).expect("plain records with text keys always become JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iteration_that_is_read_from_the_record_has_what_the_record_holds() {
        let whole = Iteration {
            cost_usd: Some(1.25),
            cause: Some(Cause::Threshold),
            signal: Some("TERM".to_owned()),
            in_turn: true,
            turns: Some(3),
            duration_ms: Some(90_000),
            compactions: 2,
            tokens_at_birth: Some(Tokens(9)),
            summary: Some("built a boat".to_owned()),
            ..Iteration::born(IterationId::FIRST, DateTime::UNIX_EPOCH)
        };
        let read = Iteration::from(IterationRecord::from(&whole));
        assert_eq!(read, whole);
    }
}
