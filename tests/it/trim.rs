//! Trim: copies of sessions with old tool output removed, on a generated corpus, case by case, by the command
//! and on the real client.

mod command;
mod corpus;
mod live;
pub(crate) mod reboot;

use std::{collections::BTreeSet, fs};

use pitstop_transcript::{
    SessionId, Tokens,
    trim::{LEVELS, LevelFigure, PLACEHOLDERS, Survey, TrimError, TrimPlan, TrimSettings},
};
use serde_json::{Value, json};

use self::corpus::{Sample, sample};
const OLD: &str = "11111111-1111-4111-8111-111111111111";
const NEW: &str = "22222222-2222-4222-8222-222222222222";

const SETTINGS: TrimSettings = TrimSettings {
    compact_line: Tokens(153_000),
    max_recent_messages: 10,
};

fn new_session() -> SessionId {
    NEW.parse().unwrap()
}

/// A trimmed transcript.
struct Trimmed {
    bytes: Vec<u8>,
    figure: LevelFigure,
    dropped_tail: u64,
}

#[track_caller]
fn apply(transcript: &[u8], level: u8) -> Trimmed {
    apply_with(transcript, level, &SETTINGS).unwrap()
}

fn apply_with(transcript: &[u8], level: u8, settings: &TrimSettings) -> Result<Trimmed, TrimError> {
    let mut bytes = Vec::new();
    let survey = Survey::read(transcript)?;
    let written = survey.write(transcript, level, new_session(), settings, &mut bytes)?;
    Ok(Trimmed {
        bytes,
        figure: written.figure,
        dropped_tail: written.dropped_tail,
    })
}

#[track_caller]
fn plan_of(transcript: &[u8], settings: &TrimSettings) -> TrimPlan {
    Survey::read(transcript).unwrap().plan(settings)
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

/// A line without the NUL bytes before it.
fn without_nuls(line: &[u8]) -> &[u8] {
    let nuls = line.iter().take_while(|byte| **byte == 0).count();
    &line[nuls..]
}

/// Every record that stands alone on a line, by `serde_json`'s own parser.
fn records(bytes: &[u8]) -> Vec<Value> {
    let parsed = lines(bytes).into_iter();
    parsed
        .filter_map(|line| serde_json::from_slice(without_nuls(line)).ok())
        .collect()
}

/// All blocks of a kind in a record's message.
fn blocks<'a>(record: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let content = record["message"]["content"].as_array();
    let all = content.into_iter().flatten();
    all.filter(move |block| block["type"] == kind)
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Whether a response's content is no more than a placeholder.
fn is_gone(content: &Value) -> bool {
    let is_mark = |value: &Value| PLACEHOLDERS.contains(&text_of(value));
    match content {
        Value::String(_) => is_mark(content),
        Value::Array(blocks) => blocks.first().is_some_and(|first| is_mark(&first["text"])),
        _ => false,
    }
}

/// The responses that a copy no longer has.
fn gone(copy: &[u8]) -> BTreeSet<String> {
    let mut gone = BTreeSet::new();
    for record in records(copy) {
        for block in blocks(&record, "tool_result") {
            if is_gone(&block["content"]) {
                gone.insert(text_of(&block["tool_use_id"]).to_owned());
            }
        }
    }
    gone
}

/// The ids of calls and responses, and the links of the chain, in order.
fn skeleton(bytes: &[u8]) -> Vec<String> {
    let mut bones = Vec::new();
    for record in records(bytes) {
        bones.push(format!("{} <- {}", record["uuid"], record["parentUuid"]));
        bones.extend(blocks(&record, "tool_use").map(|block| format!("use {}", block["id"])));
        let results = blocks(&record, "tool_result");
        bones.extend(results.map(|block| format!("result {}", block["tool_use_id"])));
    }
    bones
}

/// A record without what a trim may change.
fn masked(line: &[u8]) -> Value {
    let mut record: Value =
        serde_json::from_slice(without_nuls(line)).expect("an edited line is JSON");
    for key in ["sessionId", "toolUseResult"] {
        if record.get(key).is_some() {
            record[key] = Value::Null;
        }
    }
    if let Some(content) = record["message"]["content"].as_array_mut() {
        for block in content
            .iter_mut()
            .filter(|block| block["type"] == "tool_result")
        {
            block["content"] = Value::Null;
        }
    }
    if record["type"] == "assistant" {
        record["message"]["usage"] = Value::Null;
    }
    record
}

/// The message of the last call on the main chain that says how full the context is.
fn last_call(bytes: &[u8]) -> Value {
    let said = |record: &Value| {
        let message = &record["message"];
        let main = record["type"] == "assistant" && record["isSidechain"] != true;
        let genuine = message["model"] != "<synthetic>" && record["isApiErrorMessage"] != true;
        (main && genuine && message["usage"].is_object()).then(|| message["id"].clone())
    };
    let all = records(bytes);
    all.iter().rev().find_map(said).unwrap_or(Value::Null)
}

fn is_last_call(record: &Value, last: &Value) -> bool {
    record["type"] == "assistant" && record["message"]["id"] == *last
}

/// The characters of all responses.
fn response_characters(bytes: &[u8]) -> usize {
    let mut sum = 0;
    for record in records(bytes) {
        for block in blocks(&record, "tool_result") {
            sum += match &block["content"] {
                Value::String(text) => text.chars().count(),
                other => other.to_string().chars().count(),
            };
        }
    }
    sum
}

#[track_caller]
fn the_copy_keeps_all_but_responses(sample: &Sample, copy: &[u8], removed: &BTreeSet<String>) {
    let expected = sample.with_session(NEW);
    let (expected, found) = (lines(&expected), lines(copy));
    assert_eq!(expected.len(), found.len(), "lines");
    let last = last_call(&expected.concat());
    for (expected, found) in expected.into_iter().zip(found) {
        if expected == found {
            continue;
        }
        let record: Value = serde_json::from_slice(without_nuls(expected)).unwrap_or_else(|_| {
            panic!("changed: {}", String::from_utf8_lossy(expected));
        });
        let mut answered = blocks(&record, "tool_result");
        assert!(
            is_last_call(&record, &last)
                || answered.any(|block| removed.contains(text_of(&block["tool_use_id"]))),
            "changed without a removed response: {record}"
        );
        assert_eq!(masked(expected), masked(found));
    }
}

/// Tests one transcript at every level; returns how many responses it has in its context.
#[track_caller]
fn every_property_holds(sample: &Sample) -> usize {
    let original = sample.with_session(OLD);
    let plan = plan_of(&original[..], &SETTINGS);
    let whole = original.len() as u64 - sample.torn as u64;
    let count = sample.context.len();
    let mut before = (BTreeSet::new(), plan.levels[0].tokens_before);
    let already = gone(&original);
    for (at, level) in LEVELS.into_iter().enumerate() {
        let trimmed = apply(&original, level);
        assert_eq!(trimmed.figure, plan.levels[at]);
        assert_eq!(trimmed.dropped_tail, sample.torn as u64);
        // The level's share of the responses in context, rounded up, and the lower level's among them.
        assert_eq!(
            trimmed.figure.responses,
            (count * usize::from(level)).div_ceil(100)
        );
        let removed: BTreeSet<_> = gone(&trimmed.bytes).difference(&already).cloned().collect();
        assert_eq!(removed.len(), trimmed.figure.responses);
        assert!(
            removed.is_subset(&sample.context),
            "out of context: {removed:?}"
        );
        assert!(
            before.0.is_subset(&removed),
            "level {level} left out some of a lower one"
        );
        // Tokens never grow.
        let figure = trimmed.figure;
        assert!(figure.tokens_after <= before.1 && figure.tokens_before == before_all(&plan));
        assert!(response_characters(&trimmed.bytes) <= response_characters(&original));
        assert!(trimmed.bytes.len() as u64 <= whole + 1);
        // The copy's own figure is the one that was reported.
        // Two levels will do: each costs another reading.
        if !plan.estimated && matches!(level, 20 | 100) {
            let copy = plan_of(&trimmed.bytes[..], &SETTINGS);
            assert_eq!(before_all(&copy), figure.tokens_after.max(Tokens(1)));
        }
        // Pairs and chain are whole, and the rest is the same, byte for byte.
        assert_eq!(
            skeleton(&trimmed.bytes),
            skeleton(&original[..whole as usize])
        );
        the_copy_keeps_all_but_responses(sample, &trimmed.bytes, &removed);
        before = (removed, figure.tokens_after);
    }
    let all = apply(&original, 100);
    let again = apply(&all.bytes, 100);
    assert_eq!(again.figure.responses, 0);
    assert!(again.bytes == all.bytes, "a second trim changed something");
    count
}

fn before_all(plan: &TrimPlan) -> Tokens {
    plan.levels[0].tokens_before
}

/// How many transcripts a run of the whole suite has time for; `PITSTOP_TEST_TRANSCRIPTS` asks for more.
const USUAL_TRANSCRIPTS: u64 = 50;

#[test]
fn every_property_holds_on_a_corpus_of_transcripts() {
    let asked = std::env::var("PITSTOP_TEST_TRANSCRIPTS").ok();
    let transcripts = asked.map_or(USUAL_TRANSCRIPTS, |count| count.parse().expect("a number"));
    let part = |first: u64| -> usize {
        let seeds = (first..transcripts).step_by(4);
        let each = seeds.map(|seed| {
            let outcome = std::panic::catch_unwind(|| every_property_holds(&sample(seed)));
            outcome.unwrap_or_else(|_| panic!("the transcript of seed {seed}"))
        });
        each.sum()
    };
    let responses: usize = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..4)
            .map(|first| scope.spawn(move || part(first)))
            .collect();
        parts.into_iter().map(|part| part.join().unwrap()).sum()
    });
    let least = usize::try_from(transcripts * 8).expect("a count");
    assert!(responses > least, "the corpus is poor: {responses}");
}

// Case by case. A session is written as prompts, calls and responses; ids and links come by themselves.

#[derive(Default)]
struct Session {
    text: String,
    last: Option<String>,
    count: u32,
}

// JSON that is written where it is used reads better without a borrow.
#[allow(clippy::needless_pass_by_value)]
impl Session {
    fn prompt(&mut self, text: &str) -> &mut Self {
        let message = json!({ "role": "user", "content": text });
        self.record(json!({ "type": "user", "message": message }))
    }

    /// A call and its response.
    fn call(&mut self, tool: &str, content: Value) -> &mut Self {
        self.asks(&format!("m-{tool}"), tool, 100_000);
        self.answers(tool, content)
    }

    fn asks(&mut self, message: &str, tool: &str, used: u64) -> &mut Self {
        let call = json!({ "type": "tool_use", "id": tool, "name": "Bash", "input": {} });
        self.said(message, json!([call]), used)
    }

    fn said(&mut self, message: &str, content: Value, used: u64) -> &mut Self {
        let usage =
            json!({ "input_tokens": 0, "cache_read_input_tokens": used, "output_tokens": 0 });
        let message = json!({ "id": message, "role": "assistant", "model": "claude-opus-4-6", "content": content, "usage": usage });
        self.record(json!({ "type": "assistant", "message": message }))
    }

    fn answers(&mut self, tool: &str, content: Value) -> &mut Self {
        let block = json!({ "tool_use_id": tool, "type": "tool_result", "content": content });
        let message = json!({ "role": "user", "content": [block] });
        self.record(
            json!({ "type": "user", "message": message, "toolUseResult": { "stdout": content } }),
        )
    }

    fn record(&mut self, mut record: Value) -> &mut Self {
        self.count += 1;
        let uuid = format!("u{}", self.count);
        record["uuid"] = json!(uuid);
        if record.get("parentUuid").is_none() {
            record["parentUuid"] = json!(self.last);
        }
        record["sessionId"] = json!(OLD);
        if record["isSidechain"] != true {
            self.last = Some(uuid);
        }
        self.line(&record.to_string())
    }

    fn line(&mut self, line: &str) -> &mut Self {
        self.text.push_str(line);
        self.text.push('\n');
        self
    }

    fn end(&mut self) -> &mut Self {
        self.said("end", json!([{ "type": "text", "text": "done" }]), 100_000)
    }

    fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    #[track_caller]
    fn trimmed(&self, level: u8) -> Trimmed {
        apply(self.bytes(), level)
    }

    #[track_caller]
    fn gone(&self, level: u8) -> Vec<String> {
        gone(&self.trimmed(level).bytes).into_iter().collect()
    }
}

fn output(tool: &str) -> Value {
    json!(format!("output of {tool} ").repeat(50))
}

/// A session with so many calls, one after the other, in a turn each.
fn calls(count: usize) -> Session {
    let mut session = Session::default();
    for at in 0..count {
        let tool = format!("t{at:02}");
        session.prompt("go on").call(&tool, output(&tool));
    }
    session.end();
    session
}

#[test]
fn the_last_call_of_the_copy_says_what_the_trim_left() {
    let mut session = Session::default();
    session.prompt("go").call("t1", json!("x".repeat(40_000)));
    let usage = |output: u64| {
        json!({
            "input_tokens": 3, "cache_creation_input_tokens": 12_000,
            "cache_read_input_tokens": 5_000, "output_tokens": output,
            "cache_creation": { "ephemeral_5m_input_tokens": 12_000 },
        })
    };
    // One call in two records, whose output was still growing in the first.
    for (text, output) in [("one", 1), ("two", 97)] {
        let content = json!([{ "type": "text", "text": text }]);
        let message = json!({ "id": "last", "role": "assistant", "model": "claude-opus-4-6", "content": content, "usage": usage(output) });
        session.record(json!({ "type": "assistant", "message": message }));
    }
    let trimmed = session.trimmed(100);
    let won = 17_100 - trimmed.figure.tokens_after.0;
    assert!((9_900..10_000).contains(&won), "{won}");
    let said: Vec<Value> = records(&trimmed.bytes)
        .into_iter()
        .filter(|record| record["message"]["id"] == "last")
        .map(|record| record["message"]["usage"].clone())
        .collect();
    let expected = |output: u64| {
        let mut usage = usage(output);
        usage["cache_read_input_tokens"] = json!(0);
        usage["cache_creation_input_tokens"] = json!(17_000 - won);
        usage
    };
    assert_eq!(said, [expected(1), expected(97)]);
    let again = plan_of(&trimmed.bytes[..], &SETTINGS);
    assert_eq!(before_all(&again), trimmed.figure.tokens_after);
}

#[test]
fn a_single_response_goes_at_every_level_above_0() {
    let session = calls(1);
    assert_eq!(session.gone(0), [""; 0]);
    for level in [10, 20, 50, 100] {
        assert_eq!(session.gone(level), ["t00"]);
    }
}

#[test]
fn the_share_of_an_odd_count_is_rounded_up_and_100_percent_is_all() {
    let session = calls(7);
    let counts: Vec<usize> = LEVELS.map(|level| session.gone(level).len()).into();
    assert_eq!(counts, [0, 1, 2, 4, 7]);
}

#[test]
fn responses_go_from_the_middle_outwards_then_the_first_then_the_recent() {
    // A response and the next prompt are one message: of 62 the first 4 hold t00, the recent 10 t25 to t29.
    let session = calls(30);
    let order = |level| session.gone(level);
    let names = |numbers: std::ops::RangeInclusive<u32>| -> Vec<String> {
        numbers.map(|number| format!("t{number:02}")).collect()
    };
    assert_eq!(order(10), names(11..=13));
    assert_eq!(order(20), names(10..=15));
    assert_eq!(order(50), names(5..=19));
    assert_eq!(order(100), names(0..=29));
}

#[test]
fn the_first_go_when_the_middle_is_gone_and_the_recent_only_then() {
    // Of 14 messages the recent 10 hold t01 to t05.
    let session = calls(6);
    assert_eq!(session.gone(10), ["t00"]);
    assert_eq!(session.gone(20), ["t00", "t01"]);
    // With everything recent the oldest goes first.
    let settings = TrimSettings {
        max_recent_messages: 1_000,
        ..SETTINGS
    };
    let trimmed = apply_with(calls(30).bytes(), 10, &settings).unwrap();
    assert_eq!(
        gone(&trimmed.bytes),
        ["t00", "t01", "t02"].map(str::to_owned).into()
    );
    // With nothing recent the middle is that of all but the first.
    let settings = TrimSettings {
        max_recent_messages: 0,
        ..SETTINGS
    };
    let trimmed = apply_with(calls(6).bytes(), 10, &settings).unwrap();
    assert_eq!(gone(&trimmed.bytes), ["t03".to_owned()].into());
}

#[test]
fn a_response_in_two_blocks_is_one_response() {
    let text = |text: &str| json!({ "type": "text", "text": text.repeat(60) });
    let mut session = Session::default();
    session
        .prompt("go")
        .call("t0", json!([text("one "), text("two ")]))
        .end();
    let trimmed = session.trimmed(10);
    assert_eq!(trimmed.figure.responses, 1);
    // 480 characters less those of the placeholder.
    let wins = (480 - PLACEHOLDERS[0].len() as u64) / 4;
    assert_eq!(trimmed.figure.tokens_after, Tokens(100_000 - wins));
    assert!(!String::from_utf8(trimmed.bytes).unwrap().contains("two "));
}

#[test]
fn two_blocks_for_one_call_go_together() {
    let mut session = Session::default();
    session
        .prompt("go")
        .asks("m", "t0", 1)
        .answers("t0", output("t0"))
        .answers("t0", output("t0"));
    session.call("t1", output("t1")).end();
    let trimmed = session.trimmed(50);
    assert_eq!(trimmed.figure.responses, 1);
    assert!(
        !String::from_utf8(trimmed.bytes)
            .unwrap()
            .contains("output of t0")
    );
}

#[test]
fn responses_of_parallel_calls_beside_the_chain_are_found() {
    let mut session = Session::default();
    session.prompt("go").asks("m", "t0", 1);
    let first = session.last.clone();
    session.asks("m", "t1", 1);
    let second = session.last.clone();
    // Each response hangs on its own call, so only the last lies on the chain.
    session.last = first;
    session.answers("t0", output("t0"));
    session.last = second;
    session.answers("t1", output("t1")).end();
    assert_eq!(session.gone(100), ["t0", "t1"]);
    assert_eq!(session.gone(50).len(), 1);
}

#[test]
fn the_copy_beside_two_responses_goes_with_the_last_of_them() {
    let block =
        |tool: &str| json!({ "type": "tool_result", "tool_use_id": tool, "content": output(tool) });
    let mut session = Session::default();
    session.prompt("go").asks("m", "t0", 1).asks("m", "t1", 1);
    let message = json!({ "role": "user", "content": [block("t0"), block("t1")] });
    session.record(json!({ "type": "user", "message": message, "toolUseResult": { "stdout": output("both") } })).end();
    let has_copy = |level| {
        String::from_utf8(session.trimmed(level).bytes)
            .unwrap()
            .contains("output of both")
    };
    assert!(has_copy(50) && !has_copy(100));
}

#[test]
fn an_image_goes_and_counts_by_what_it_costs_not_by_its_bytes() {
    let source =
        json!({ "type": "base64", "media_type": "image/png", "data": "A".repeat(400_000) });
    let mut session = Session::default();
    session
        .prompt("look")
        .call("t0", json!([{ "type": "image", "source": source }]))
        .end();
    let trimmed = session.trimmed(100);
    assert!(trimmed.bytes.len() < 4_000);
    assert_eq!(
        trimmed.figure.tokens_after,
        Tokens(100_000 - (4_000 - PLACEHOLDERS[0].len() as u64) / 4)
    );
}

#[test]
fn blocks_of_unknown_kinds_stay_byte_for_byte() {
    let unknown = r#"{"type": "tool_reference", "tool_name":"x","n":1.50}"#;
    let mut session = Session::default();
    session.prompt("go").asks("m", "t0", 1);
    session.line(&format!(
        r#"{{"type":"user","uuid":"r","parentUuid":"u2","sessionId":"{OLD}","message":{{"content":[{{"type":"tool_result","tool_use_id":"t0","content":[{{"type":"text","text":"{}"}},{unknown}]}},{{"type":"odd","n":1.0}}]}}}}"#,
        "long ".repeat(40)
    ));
    session.last = Some("r".into());
    // One that holds nothing else is left whole, and is no response that could go.
    session
        .call(
            "t1",
            json!([{ "type": "tool_reference", "tool_name": "y" }]),
        )
        .end();
    let trimmed = session.trimmed(100);
    assert_eq!(trimmed.figure.responses, 1);
    let text = String::from_utf8(trimmed.bytes).unwrap();
    let expected = format!(
        r#""content":[{{"type":"text","text":"{}"}},{unknown}]}},{{"type":"odd","n":1.0}}]"#,
        PLACEHOLDERS[0]
    );
    assert!(text.contains(&expected), "{text}");
    assert!(!text.contains("long long"));
}

#[test]
fn what_lies_before_the_last_compaction_neither_counts_nor_changes() {
    let mut session = calls(3);
    session.record(json!({ "type": "system", "subtype": "compact_boundary", "parentUuid": null }));
    session.prompt("summary").call("new", output("new")).end();
    assert_eq!(session.gone(100), ["new"]);
    assert_eq!(session.trimmed(100).figure.responses, 1);
}

#[test]
fn what_a_compaction_kept_counts() {
    let mut session = calls(3);
    let kept = ["u8", "u9"]; // The call of t02 and its response.
    session.record(json!({
        "type": "system", "subtype": "compact_boundary", "parentUuid": null,
        "compactMetadata": { "preservedMessages": { "anchorUuid": "x", "uuids": kept } },
    }));
    session.prompt("summary").call("new", output("new")).end();
    assert_eq!(session.gone(100), ["new", "t02"]);
}

#[test]
fn right_after_a_compaction_the_figure_is_an_estimate() {
    let mut session = calls(1);
    session.record(json!({ "type": "system", "subtype": "compact_boundary", "parentUuid": null }));
    session.prompt(&"four".repeat(1_000));
    let plan = plan_of(session.bytes(), &SETTINGS);
    assert!(plan.estimated);
    assert_eq!(plan.levels[0].tokens_before, Tokens(1_000));
    assert_eq!(plan.chosen, Some(0));
}

#[test]
fn sidechains_do_not_count_and_keep_their_output() {
    let mut session = Session::default();
    session.prompt("go").asks("m", "t0", 1);
    let side = json!({ "type": "tool_use", "id": "side", "name": "Bash", "input": {} });
    session.record(json!({ "type": "assistant", "isSidechain": true, "message": { "id": "s", "model": "m", "content": [side], "usage": { "input_tokens": 9 } } }));
    let result = json!({ "type": "tool_result", "tool_use_id": "side", "content": output("side") });
    session
        .record(json!({ "type": "user", "isSidechain": true, "message": { "content": [result] } }));
    session.answers("t0", output("t0")).end();
    let trimmed = session.trimmed(100);
    assert_eq!(
        (trimmed.figure.responses, trimmed.figure.tokens_before),
        (1, Tokens(100_000))
    );
    let text = String::from_utf8(trimmed.bytes).unwrap();
    assert!(text.contains("output of side") && !text.contains(OLD));
}

#[test]
fn a_resumed_chain_whose_parent_is_in_another_file_is_trimmed_whole() {
    let mut session = Session {
        last: Some("elsewhere".into()),
        ..Session::default()
    };
    session.prompt("go").call("t0", output("t0"));
    session.last = Some("lost".into());
    session.prompt("resumed").call("t1", output("t1")).end();
    let trimmed = session.trimmed(100);
    assert_eq!(trimmed.figure.responses, 2);
    assert!(
        String::from_utf8(trimmed.bytes)
            .unwrap()
            .contains(r#""parentUuid":"lost""#)
    );
}

#[test]
fn a_branch_that_was_rewound_neither_counts_nor_changes() {
    let mut session = Session::default();
    session.prompt("go").call("t0", output("t0"));
    let here = session.last.clone();
    session.prompt("wrong way").call("t1", output("t1")).end();
    session.last = here;
    session.prompt("right way").call("t2", output("t2")).end();
    assert_eq!(session.gone(100), ["t0", "t2"]);
}

#[test]
fn a_short_response_goes_without_making_the_session_longer() {
    let mut session = Session::default();
    session
        .prompt("go")
        .call("t0", json!("ok"))
        .call("t1", json!("0123456789"))
        .call("t2", json!(""))
        .end();
    let trimmed = session.trimmed(100);
    let contents: Vec<_> = records(&trimmed.bytes)
        .iter()
        .flat_map(|record| {
            blocks(record, "tool_result")
                .map(|block| text_of(&block["content"]).to_owned())
                .collect::<Vec<_>>()
        })
        .collect();
    // An empty one has nothing that could go.
    assert_eq!(contents, ["-", "[removed]", ""]);
    assert_eq!(trimmed.figure.responses, 2);
}

#[test]
fn what_came_after_the_last_figure_wins_nothing_of_it() {
    let mut session = Session::default();
    session.prompt("go").call("t0", output("t0"));
    let trimmed = session.trimmed(100);
    assert_eq!(trimmed.figure.responses, 1);
    assert_eq!(trimmed.figure.tokens_after, trimmed.figure.tokens_before);
}

#[test]
fn a_torn_last_line_is_dropped_and_reported() {
    let mut session = calls(2);
    let whole = session.trimmed(100);
    session.text.push_str(r#"{"type":"user","sessionId":"#);
    let torn = session.trimmed(100);
    assert_eq!((torn.bytes, torn.dropped_tail), (whole.bytes, 27));
}

#[test]
fn a_last_line_without_its_end_is_kept_and_ended() {
    let mut session = calls(1);
    let whole = session.trimmed(100).bytes;
    session.text.pop();
    let trimmed = session.trimmed(100);
    assert_eq!((trimmed.bytes, trimmed.dropped_tail), (whole, 0));
}

#[test]
fn nul_runs_rubbish_and_joined_records_are_passed_through() {
    let mut session = Session::default();
    session.prompt("go").asks("m", "t0", 1);
    session.line("\0\0\0not json {");
    session.answers("t0", output("t0"));
    session.text.pop();
    session.call("t1", output("t1"));
    session.text.push_str("{\"torn\":\0\0");
    session.end();
    let trimmed = session.trimmed(100);
    assert_eq!(trimmed.figure.responses, 2);
    let text = String::from_utf8(trimmed.bytes).unwrap();
    assert!(
        text.contains("\0\0\0not json {\n") && text.contains("{\"torn\":\0\0{"),
        "{text}"
    );
    assert!(!text.contains(OLD) && !text.contains("output of"));
    assert!(
        text.lines()
            .any(|line| line.matches(r#""type":"user""#).count() == 1
                && line.contains(r#"}{"type":"assistant""#))
    );
}

#[test]
fn bytes_that_are_no_utf_8_and_odd_spacing_are_kept() {
    let line = |session: &str| {
        let mut line =
            format!(r#"{{ "sessionId" : "{session}" ,"type":"odd", "x":"\ud800"#).into_bytes();
        line.extend_from_slice(b"\xff\xfe\", \"forkedFrom\":{\"sessionId\":\"");
        line.extend_from_slice(OLD.as_bytes());
        line.extend_from_slice(b"\"},\"n\":1.0e0}\r\n");
        line
    };
    let session = calls(1);
    let original = [&line(OLD)[..], session.bytes()].concat();
    let trimmed = apply(&original, 0);
    assert!(trimmed.bytes.starts_with(&line(NEW)));
}

#[test]
fn a_line_over_the_cap_is_copied_as_it_is() {
    let session = calls(2);
    let mut original = session.bytes().to_vec();
    original.extend_from_slice(br#"{"type":"odd","x":""#);
    original.resize(original.len() + 65 * 1024 * 1024, b'a');
    original.extend_from_slice(b"\"}\n");
    let long = original[session.bytes().len()..].to_vec();
    original.extend_from_slice(b"{\"type\":\"mode\"}\n");
    let trimmed = apply(&original, 100);
    assert_eq!(trimmed.figure.responses, 2);
    let tail = [&long[..], b"{\"type\":\"mode\"}\n"].concat();
    assert!(trimmed.bytes.ends_with(&tail));
}

#[test]
fn what_the_client_sends_in_place_of_a_response_goes_too() {
    let mut session = Session::default();
    session.prompt("go").call("t0", json!("x".repeat(40_000)));
    let instead = json!({ "kind": "tool-result", "toolUseId": "t0", "replacement": "<persisted-output>".repeat(100) });
    session
        .line(
            &json!({ "type": "content-replacement", "sessionId": OLD, "replacements": [instead] })
                .to_string(),
        )
        .end();
    let trimmed = session.trimmed(100);
    let wins = (1_800 - PLACEHOLDERS[0].len() as u64) / 4;
    assert_eq!(trimmed.figure.tokens_after, Tokens(100_000 - wins));
    assert!(
        !String::from_utf8(trimmed.bytes)
            .unwrap()
            .contains("persisted")
    );
}

#[test]
fn the_first_level_below_80_percent_of_the_compact_line_wins() {
    // Ten responses of 10 000 tokens each in 110 000.
    let mut session = Session::default();
    for at in 0..10 {
        session
            .prompt("go")
            .call(&format!("t{at}"), json!("x".repeat(40_000)));
    }
    session.said("end", json!([]), 110_000);
    let chosen = |compact_line| {
        let settings = TrimSettings {
            compact_line: Tokens(compact_line),
            ..SETTINGS
        };
        plan_of(session.bytes(), &settings).chosen
    };
    let after: Vec<u64> = plan_of(session.bytes(), &SETTINGS)
        .levels
        .iter()
        .map(|level| level.tokens_after.0)
        .collect();
    assert_eq!(after, [110_000, 100_021, 90_042, 60_105, 10_210]);
    assert_eq!(chosen(137_501), Some(0));
    assert_eq!(chosen(137_500), Some(10));
    assert_eq!(chosen(120_000), Some(20));
    assert_eq!(chosen(100_000), Some(50));
    assert_eq!(chosen(20_000), Some(100));
    assert_eq!(chosen(12_000), None);
}

#[test]
fn levels_that_there_are_none_of_and_empty_transcripts_are_refused() {
    let trim = |bytes: &[u8], level| apply_with(bytes, level, &SETTINGS);
    assert!(matches!(
        trim(calls(1).bytes(), 30),
        Err(TrimError::Level(30))
    ));
    for empty in ["", "\n", "rubbish\n", "{\"type\":\"mode\"}\n"] {
        assert!(
            matches!(trim(empty.as_bytes(), 10), Err(TrimError::Empty { .. })),
            "{empty:?}"
        );
    }
}

#[test]
fn a_transcript_that_grows_between_the_readings_is_cut_where_it_was() {
    let mut session = calls(2);
    let survey = Survey::read(session.bytes()).unwrap();
    let whole = session.trimmed(100).bytes;
    session.prompt("later").call("late", output("late"));
    let mut bytes = Vec::new();
    survey
        .write(session.bytes(), 100, new_session(), &SETTINGS, &mut bytes)
        .unwrap();
    assert_eq!(bytes, whole);
    // Another transcript in its place is noticed.
    let other = calls(2).text.replace("t01", "t09");
    let outcome = survey.write(
        other.as_bytes(),
        100,
        new_session(),
        &SETTINGS,
        &mut Vec::new(),
    );
    assert!(matches!(outcome, Err(TrimError::Changed { .. })));
}

#[test]
fn every_broken_transcript_of_the_fixtures_is_survived() {
    let fixtures = fs::read_dir(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/transcript"
    ))
    .unwrap();
    let mut trimmed = 0;
    for file in fixtures.map(|entry| entry.unwrap().path()) {
        let bytes = fs::read(&file).unwrap();
        if file.extension().is_some_and(|end| end == "jsonl")
            && let Ok(copy) = apply_with(&bytes, 100, &SETTINGS)
        {
            trimmed += 1;
            let again = apply(&copy.bytes, 100);
            assert!(again.bytes == copy.bytes, "{}", file.display());
        }
    }
    assert!(trimmed > 20, "{trimmed}");
}

#[test]
fn the_steps_of_the_last_call_say_what_the_trim_left() {
    let step = |kind: &str, read: u64| json!({ "type": kind, "input_tokens": 3, "cache_read_input_tokens": read, "output_tokens": 7 });
    for steps in [
        json!([step("message", 90_000)]),
        json!([step("message", 50_000), step("message", 90_000)]),
        json!([step("message", 90_000), step("advisor_message", 200_000)]),
    ] {
        let mut session = Session::default();
        session.prompt("go").call("t1", json!("x".repeat(40_000)));
        let usage = json!({ "input_tokens": 6, "cache_read_input_tokens": 140_000, "output_tokens": 14, "iterations": steps });
        let content = json!([{ "type": "text", "text": "done" }]);
        let message = json!({ "id": "last", "role": "assistant", "model": "claude-opus-4-6", "content": content, "usage": usage });
        session.record(json!({ "type": "assistant", "message": message }));
        let trimmed = session.trimmed(100);
        assert_eq!(trimmed.figure.tokens_before, Tokens(90_010));
        assert!(trimmed.figure.tokens_after < Tokens(81_000));
        let again = plan_of(&trimmed.bytes, &SETTINGS);
        assert_eq!(before_all(&again), trimmed.figure.tokens_after, "{steps}");
    }
}

#[test]
fn what_a_person_has_answered_approved_or_refused_stays() {
    let replies = [
        (
            "t1",
            json!({ "content": "User has answered your questions: \"Which base?\"=\"SQLite\". You can now continue with the user's answers in mind." }),
            json!({ "questions": [], "answers": { "Which base?": "SQLite" } }),
        ),
        (
            "t2",
            json!({ "content": "User has approved your plan. You can now start coding. ## Approved Plan: 1. port the importer" }),
            json!({ "plan": "1. port the importer" }),
        ),
        (
            "t3",
            json!({ "is_error": true, "content": "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed, the user said:\nnever push" }),
            json!("User rejected tool use"),
        ),
    ];
    let mut session = Session::default();
    session.prompt("go");
    for (tool, mut block, outcome) in replies {
        block["type"] = json!("tool_result");
        block["tool_use_id"] = json!(tool);
        let message = json!({ "role": "user", "content": [block] });
        session.asks(&format!("m-{tool}"), tool, 100_000);
        session.record(json!({ "type": "user", "message": message, "toolUseResult": outcome }));
    }
    // A call that has failed has output.
    session.asks("m-t4", "t4", 100_000);
    let block = json!({ "type": "tool_result", "tool_use_id": "t4", "is_error": true, "content": output("t4") });
    let message = json!({ "role": "user", "content": [block] });
    session.record(json!({ "type": "user", "message": message, "toolUseResult": "Error" }));
    session.call("t5", output("t5")).end();
    assert_eq!(session.gone(100), ["t4", "t5"]);
    assert_eq!(plan_of(session.bytes(), &SETTINGS).responses(), 2);
    let text = String::from_utf8(session.trimmed(100).bytes).unwrap();
    for kept in ["SQLite", "port the importer", "never push"] {
        assert!(text.contains(kept), "{kept}");
    }
}
