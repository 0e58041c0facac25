//! Tokens per call and in the context window, gathered record by record.

use std::{
    collections::{HashMap, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
};

use serde_json::Value;

use super::{
    Tokens, prompts,
    record::{self, Assistant, Faults, Record},
    todo::clip_text,
};

/// The tokens that one call to the model used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The input that came neither from the cache nor went into it.
    pub input: Tokens,
    /// The input written to the cache.
    pub cache_creation: Tokens,
    /// The input read from the cache.
    pub cache_read: Tokens,
    /// The answer of the model.
    pub output: Tokens,
}

impl Usage {
    /// Returns the tokens that the next request will carry at least: all input, and the answer that joins it.
    pub fn context(self) -> Tokens {
        Tokens(self.prompt().0.saturating_add(self.output.0))
    }

    /// Returns all input, cached or not.
    pub fn prompt(self) -> Tokens {
        Tokens(
            self.input
                .0
                .saturating_add(self.cache_creation.0)
                .saturating_add(self.cache_read.0),
        )
    }

    /// Combines each figure with the other's by `sum`.
    fn combine_with(self, other: Self, sum: fn(u64, u64) -> u64) -> Self {
        let sum = |one: Tokens, other: Tokens| Tokens(sum(one.0, other.0));
        Self {
            input: sum(self.input, other.input),
            cache_creation: sum(self.cache_creation, other.cache_creation),
            cache_read: sum(self.cache_read, other.cache_read),
            output: sum(self.output, other.output),
        }
    }
}

/// The largest count of tokens that is accepted: no context window comes near it; a larger figure is damage or malice.
const COUNT_CAP: f64 = 1e12;

/// The counts of a report, in the order of the fields of [`Usage`].
const COUNTS: [&str; 4] = [
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
];

/// Returns a count from a report of the service; a missing one is 0, and one that is not a number in range is none.
fn read_count(report: &Value, field: &str) -> Option<Tokens> {
    match &report[field] {
        Value::Null => Some(Tokens(0)),
        count => count
            .as_f64()
            .filter(|count| (0.0..=COUNT_CAP).contains(count))
            .map(|count| Tokens(count as u64)),
    }
}

/// Returns the usage that is paid for by a report of the service; an invalid count costs nothing.
pub fn paid_usage(report: &Value) -> Usage {
    let [input, cache_creation, cache_read, output] =
        COUNTS.map(|field| read_count(report, field).unwrap_or_default());
    Usage {
        input,
        cache_creation,
        cache_read,
        output,
    }
}

/// Returns the usage of the context window by the report of a call; none where no call can have used that, because every call
/// has input. The counts of a call of several steps (`iterations`, an advisor's among them) are their sum, which is paid
/// for; the last step of the conversation has the figure.
pub fn in_window(report: &Value) -> Option<Usage> {
    let possible = |report: &Value| {
        let whole = COUNTS
            .iter()
            .all(|field| read_count(report, field).is_some());
        Some(paid_usage(report)).filter(|usage| whole && usage.prompt() > Tokens(0))
    };
    let steps = report["iterations"].as_array().into_iter().flatten();
    let own = |step: &&Value| matches!(&step["type"], Value::String(kind) if kind.ends_with("message") && kind != "advisor_message");
    let steps = steps.filter(own);
    let last = steps.clone().rev().find_map(possible);
    last.or_else(|| (steps.count() < 2).then(|| possible(report))?)
}

/// Returns the figure that a main-chain call gives for the context window, if it gives one.
///
/// Subagents have windows of their own, and messages that no model made carry zeros.
pub fn context_of(said: &Assistant<'_>) -> Option<Usage> {
    said.context
        .filter(|_| !said.sidechain && said.is_genuine())
}

/// The number of latest calls among which a repeated message is recognised.
///
/// The records of one call are close together; the bound keeps a session of any length in a few megabytes.
const CALLS_REMEMBERED: usize = 1 << 16;

/// The longest text kept of a prompt, in bytes.
const TEXT_CAP: usize = 256 * 1024;

/// The figures that the supervisor needs about a session, gathered from its records in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageScan {
    first: Option<Usage>,
    last: Option<Usage>,
    model: Option<String>,
    totals: Usage,
    before_compaction: Usage,
    calls: u64,
    turns: u64,
    compactions: u64,
    records: u64,
    faults: Faults,
    last_prompt: Option<String>,
    handoff: Option<String>,
    seen: HashMap<u64, Usage>,
    seen_in_order: VecDeque<u64>,
}

impl UsageScan {
    /// Takes one stretch of the file (a line without its end).
    pub fn feed_line(&mut self, line: &[u8]) {
        if record::is_blank(line) {
            return;
        }
        if record::is_plain_tool_result(line) {
            self.records += 1;
            return;
        }
        let faults = record::each_record(line, &mut |record| self.feed_record(&record));
        self.faults.add(faults);
    }

    /// Takes one record.
    pub fn feed_record(&mut self, record: &Record<'_>) {
        self.records += 1;
        match record {
            Record::User(user) => {
                if let Some(prompt) = user.prompt() {
                    self.take_prompt(&prompt);
                }
            }
            Record::Assistant(said) => self.take_answer(said),
            Record::CompactBoundary => {
                self.compactions += 1;
                self.before_compaction = self.totals;
                // The figure from before the compaction is void; the next call brings a new one.
                (self.first, self.last) = (None, None);
            }
            Record::Unknown(_) => {}
        }
    }

    /// Returns the usage of the first main-chain call, or of the first behind the last compaction.
    pub const fn first(&self) -> Option<Usage> {
        self.first
    }

    /// Returns the usage of the last main-chain call; none before the first and right after a compaction.
    pub const fn last(&self) -> Option<Usage> {
        self.last
    }

    /// Returns the bare id of the model that made the last main-chain call.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Returns the sum over all calls of the session, subagents included, each call counted once.
    pub const fn totals(&self) -> Usage {
        self.totals
    }

    /// Returns that sum as it was at the last compaction; nothing before the first.
    pub const fn before_compaction(&self) -> Usage {
        self.before_compaction
    }

    /// Returns the number of calls to a model, subagents included.
    pub const fn calls(&self) -> u64 {
        self.calls
    }

    /// Returns the number of turns: prompts on the main chain.
    pub const fn turns(&self) -> u64 {
        self.turns
    }

    /// Returns the number of times that the client compacted the session.
    pub const fn compactions(&self) -> u64 {
        self.compactions
    }

    /// Returns the number of records read.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Returns the counts of what was met inside lines and is not a record.
    pub const fn faults(&self) -> Faults {
        self.faults
    }

    /// Returns the latest prompt of the session, at most 256 KiB of it.
    pub fn last_prompt(&self) -> Option<&str> {
        self.last_prompt.as_deref()
    }

    /// Returns the first line of the latest prompt that is a handoff.
    pub fn handoff(&self) -> Option<&str> {
        self.handoff.as_deref()
    }

    fn take_prompt(&mut self, prompt: &str) {
        self.turns += 1;
        self.last_prompt = Some(clip_text(prompt, TEXT_CAP).to_owned());
        if prompts::is_handoff(prompt) {
            let first = prompt.trim_start().lines().next().unwrap_or_default();
            self.handoff = Some(clip_text(first, TEXT_CAP).to_owned());
        }
    }

    fn take_answer(&mut self, said: &Assistant<'_>) {
        if !said.is_genuine() {
            return;
        }
        if let Some(usage) = said.usage {
            self.count_call(key_of(said), usage);
        }
        if let Some(usage) = context_of(said) {
            self.first.get_or_insert(usage);
            self.last = Some(usage);
            if let Some(model) = said
                .model
                .as_deref()
                .filter(|&model| Some(model) != self.model.as_deref())
            {
                self.model = Some(clip_text(model, TEXT_CAP).to_owned());
            }
        }
    }

    /// Counts a call once, however many records it has; its last record is the complete one.
    fn count_call(&mut self, key: Option<u64>, usage: Usage) {
        self.totals = self.totals.combine_with(usage, u64::saturating_add);
        let Some(key) = key else {
            self.calls += 1;
            return;
        };
        if let Some(earlier) = self.seen.insert(key, usage) {
            self.totals = self.totals.combine_with(earlier, u64::saturating_sub);
            return;
        }
        self.calls += 1;
        self.seen_in_order.push_back(key);
        if self.seen_in_order.len() > CALLS_REMEMBERED
            && let Some(oldest) = self.seen_in_order.pop_front()
        {
            self.seen.remove(&oldest);
        }
    }
}

/// Returns the key of a call: the hash of the message id and the request id, else of the message id alone.
fn key_of(said: &Assistant<'_>) -> Option<u64> {
    let id = said.message_id.as_deref()?;
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    said.request_id.hash(&mut hasher);
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, request: &str, used: u64, output: u64, extra: &str) -> String {
        format!(
            r#"{{"type":"assistant","requestId":"{request}"{extra},"message":{{"id":"{id}","model":"claude-opus-4-8","content":[{{"type":"text","text":"said {id}"}}],"usage":{{"input_tokens":1,"cache_creation_input_tokens":2,"cache_read_input_tokens":{used},"output_tokens":{output}}}}}}}"#
        )
    }

    fn prompt(text: &str) -> String {
        format!(r#"{{"type":"user","message":{{"content":"{text}"}}}}"#)
    }

    fn scan(lines: &[String]) -> UsageScan {
        let mut scan = UsageScan::default();
        for line in lines {
            scan.feed_line(line.as_bytes());
        }
        scan
    }

    #[test]
    fn the_last_main_chain_call_is_the_figure() {
        let scan = scan(&[
            prompt("go"),
            call("a", "r1", 100, 5, ""),
            call("b", "r2", 200, 5, ""),
            call("side", "r3", 900, 5, r#","isSidechain":true"#),
            call("err", "r4", 900, 5, r#","isApiErrorMessage":true"#),
            r#"{"type":"assistant","message":{"id":"s","model":"<synthetic>","usage":{"input_tokens":900}}}"#.to_owned(),
            r#"{"type":"assistant","message":{"id":"z","model":"m","usage":{"input_tokens":0}}}"#.to_owned(),
        ]);
        assert_eq!(scan.last().map(Usage::context), Some(Tokens(208)));
        assert_eq!(scan.model(), Some("claude-opus-4-8"));
        assert_eq!(scan.turns(), 1);
        assert_eq!(scan.records(), 7);
    }

    #[test]
    fn the_last_step_of_a_call_is_the_figure_and_what_cannot_be_is_none() {
        // Steps are `message:400`; after `|` what is expected, and 41 008 where what went before stays in force.
        let cases = r#"
            "input_tokens":900,"cache_read_input_tokens":120000 message:400 message:500 | 60510
            "input_tokens":900,"cache_read_input_tokens":120000 message:400 advisor_message:7 message:500 | 60510
            "input_tokens":900,"cache_read_input_tokens":120000 message:400 advisor_message:7 | 60410
            "input_tokens":900,"cache_read_input_tokens":120000 message:400 fallback_message:300 | 60310
            "input_tokens":900,"cache_read_input_tokens":120000 message:400 compaction:9 message:-3 | 60410
            "input_tokens":900,"cache_read_input_tokens":120000 message:-4 message:"5" | 41008
            "input_tokens":900,"cache_read_input_tokens":120000 advisor_message:7 | 120900
            "input_tokens":900,"cache_read_input_tokens":120000 | 120900
            "input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0 | 41008
            "output_tokens":300 | 41008
            "input_tokens":3,"cache_read_input_tokens":9e15 | 41008
            "input_tokens":3,"cache_read_input_tokens":-120000 | 41008
            "input_tokens":3,"cache_read_input_tokens":"120000" | 41008
            "input_tokens":3,"cache_read_input_tokens":{} | 41008"#;
        for case in cases.trim().lines() {
            let (given, expected) = case.split_once(" | ").unwrap();
            let mut words = given.split_whitespace();
            let sum = words.next().unwrap();
            let steps = words.map(|step| step.split_once(':').unwrap()).map(|(kind, input)| {
                format!(r#"{{"type":"{kind}","input_tokens":{input},"cache_read_input_tokens":60000,"output_tokens":10}}"#)
            });
            let steps = steps.collect::<Vec<_>>().join(",");
            let line = format!(
                r#"{{"type":"assistant","message":{{"id":"b","usage":{{{sum},"iterations":[{steps}]}}}}}}"#
            );
            let last = scan(&[call("a", "r1", 41_000, 5, ""), line]).last();
            assert_eq!(last.unwrap().context().0.to_string(), expected, "{given}");
        }
    }

    #[test]
    fn a_call_of_several_records_counts_once_and_by_its_last() {
        let scan = scan(&[
            call("a", "r1", 100, 1, ""),
            call("b", "r2", 200, 4, ""),
            call("a", "r1", 100, 2, ""),
            call("a", "r1", 100, 30, ""),
            call("a", "other", 100, 7, ""),
        ]);
        assert_eq!(scan.calls(), 3);
        assert_eq!(scan.totals().output, Tokens(30 + 4 + 7));
        assert_eq!(scan.totals().cache_read, Tokens(400));
    }

    #[test]
    fn a_call_without_request_id_is_known_by_its_message_id() {
        let line =
            r#"{"type":"assistant","message":{"id":"a","model":"m","usage":{"output_tokens":9}}}"#
                .to_owned();
        let scan = scan(&[line.clone(), line]);
        assert_eq!((scan.calls(), scan.totals().output), (1, Tokens(9)));
    }

    #[test]
    fn a_compaction_voids_the_figure_until_the_next_call() {
        let boundary = r#"{"type":"system","subtype":"compact_boundary"}"#.to_owned();
        let mut scan = scan(&[call("a", "r1", 100, 5, ""), boundary]);
        assert_eq!((scan.first(), scan.last()), (None, None));
        assert_eq!(scan.compactions(), 1);
        scan.feed_line(call("b", "r2", 20, 1, "").as_bytes());
        assert_eq!(scan.last().map(Usage::context), Some(Tokens(24)));
        assert_eq!(scan.first(), scan.last());
    }

    #[test]
    fn the_last_prompt_is_kept() {
        let scan = scan(&[prompt("first"), call("a", "r", 1, 1, ""), prompt("second")]);
        assert_eq!(scan.last_prompt(), Some("second"));
    }

    #[test]
    fn memory_for_repeated_calls_is_bounded() {
        let mut scan = UsageScan::default();
        for id in 0..(CALLS_REMEMBERED + 100) {
            scan.feed_line(call(&id.to_string(), "r", 1, 1, "").as_bytes());
        }
        assert_eq!(scan.seen.len(), CALLS_REMEMBERED);
        assert_eq!(scan.calls(), (CALLS_REMEMBERED + 100) as u64);
    }

    #[test]
    fn bad_lines_are_counted_and_passed() {
        let scan = scan(&[
            "rubbish".to_owned(),
            String::new(),
            format!("{}{}", prompt("a"), prompt("b")),
        ]);
        assert_eq!(
            (scan.turns(), scan.faults().broken, scan.faults().joined),
            (2, 1, 1)
        );
    }
}
