//! The kit's shapes: read from transcripts, played over HTTP, and played to the real client.

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::kit::{
    client::{ASKS_FIRST, live_client},
    home::Home,
    messages_api::{Answer, MessagesApi},
    output::all,
    played::Caller,
    player::TOOLS,
    poll,
    shape::{Shape, Step, ToolCall},
};

fn assistant(at: &str, id: &str, tokens: u64, block: &Value) -> Value {
    json!({
        "type": "assistant", "timestamp": format!("2026-11-25T10:{at}Z"),
        "message": { "id": id, "content": [block], "usage": { "cache_read_input_tokens": tokens } },
    })
}

fn call(id: &str, name: &str, input: &Value) -> Value {
    json!({ "type": "tool_use", "id": id, "name": name, "input": input })
}

fn user(at: &str, content: &Value) -> Value {
    let at = format!("2026-11-25T10:{at}Z");
    json!({ "type": "user", "timestamp": at, "message": { "content": content } })
}

fn result(at: &str, id: &str, text: &str, is_error: bool) -> Value {
    let block =
        json!({ "type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error });
    user(at, &json!([block]))
}

#[test]
fn a_transcript_is_read_as_the_shape_that_it_has() {
    let mut report = result("00:40", "d", "found", false);
    report["toolUseResult"] = json!({ "totalToolUseCount": 7 });
    let mut summary = user("01:00", &json!("This session is being continued"));
    summary["isCompactSummary"] = json!(true);
    let mut aside = assistant(
        "01:01",
        "m9",
        999,
        &json!({ "type": "text", "text": "aside" }),
    );
    aside["isSidechain"] = json!(true);
    let text = |text: &str| json!({ "type": "text", "text": text });
    let records = [
        user("00:00", &json!("Port the parser")),
        // Words, and two calls at once: three records of one answer.
        assistant("00:02", "m1", 20_000, &text("I shall look.")),
        assistant("00:02", "m1", 20_000, &call("a", "Bash", &json!({}))),
        assistant("00:02", "m1", 20_000, &call("b", "Read", &json!({}))),
        result("00:12", "a", "0123456789", false),
        result("00:03", "b", "12345", false),
        assistant("00:20", "m2", 22_500, &call("c", "Bash", &json!({}))),
        result("00:21", "c", "no", true),
        json!("no record"),
        assistant("00:30", "m3", 23_000, &call("d", "Task", &json!({}))),
        report,
        // The client replaces the talk, and the turn goes on.
        summary,
        aside,
        assistant(
            "01:02",
            "m4",
            9_000,
            &call("e", "Write", &json!({ "content": "abc" })),
        ),
        result("01:03", "e", "written", false),
        assistant("01:04", "m5", 9_500, &text("Done.")),
        user("02:00", &json!([text("And now?")])),
        assistant("02:01", "m6", 9_600, &text("Nothing.")),
    ];
    let lines: Vec<String> = records.iter().map(Value::to_string).collect();
    let shape = Shape::of_records(format!("{{torn\n{}", lines.join("\n")).as_bytes());
    assert_eq!((shape.base, shape.turns.len()), (20_000, 2));
    let ms = Duration::from_millis;
    let lasts = ms(100);
    let step = |calls: &[ToolCall], growth, pause| Step {
        calls: calls.to_vec(),
        growth,
        pause: ms(pause),
    };
    let first = [
        step(
            &[
                ToolCall::Shell { bytes: 10, lasts },
                ToolCall::Read { bytes: 5 },
            ],
            2_500,
            30,
        ),
        step(&[ToolCall::Failing { bytes: 2 }], 500, 170),
        step(&[ToolCall::Subagent { calls: 7 }], 0, 90),
        step(&[ToolCall::Write { bytes: 3 }], 500, 30),
        step(&[], 100, 30),
    ];
    assert_eq!(shape.turns[0], first);
    assert_eq!(shape.turns[1], [step(&[], 0, 30)]);
}

#[test]
fn a_made_up_turn_has_the_calls_and_the_growth_that_were_asked_for() {
    for (calls, from, to) in [
        (1, 20_000, 21_000),
        (30, 20_000, 60_001),
        (130, 18_000, 158_000),
    ] {
        let shape = Shape::long_turn(calls, from, to);
        assert_eq!(shape.tool_calls(), calls);
        let growth: u64 = shape.steps().map(|step| step.growth).sum();
        assert_eq!(growth, to - from);
    }
    let shape = Shape::sessions(8, 100, 20_000, 170_000);
    assert_eq!((shape.turns.len(), shape.tool_calls()), (8, 800));
    let one = shape.clone().in_one_turn();
    assert_eq!((one.turns.len(), one.tool_calls()), (1, 800));
    let ends = |shape: &Shape| shape.steps().filter(|step| step.calls.is_empty()).count();
    assert_eq!((ends(&shape), ends(&one)), (8, 1));
}

#[test]
#[ignore = "needs the sessions of PITSTOP_TRANSCRIPTS or ../shared/transcripts"]
fn the_shared_sessions_have_long_turns() {
    let shapes = Shape::long_sessions();
    // Where they are absent a line has said so.
    assert!([0, 5].contains(&shapes.len()), "{}", shapes.len());
    for (name, shape) in &shapes {
        let most = shape.turns.iter().map(Vec::len).max();
        let growth: u64 = shape.steps().map(|step| step.growth).sum();
        let played: Duration = shape.steps().map(|step| step.pause).sum();
        println!(
            "{name}: {} turns, the longest with {most:?} steps, {} calls of tools, from {} by {growth} tokens, {played:?}",
            shape.turns.len(),
            shape.tool_calls(),
            shape.base
        );
        assert!(growth > 15_000 && shape.tool_calls() >= 16, "{name}");
    }
}

/// A client that keeps a conversation and runs no tool.
struct Talk<'a> {
    api: &'a MessagesApi,
    session: &'a str,
    messages: Vec<Value>,
}

impl<'a> Talk<'a> {
    fn new(api: &'a MessagesApi, session: &'a str, prompt: &str) -> Self {
        let messages = vec![json!({ "role": "user", "content": prompt })];
        Self {
            api,
            session,
            messages,
        }
    }

    /// Asks with the talk as it stands; what comes back: the events.
    fn ask(&self) -> Vec<Value> {
        let body = json!({
            "model": "m", "stream": true, "tools": [{ "name": "Bash" }, { "name": "Agent" }],
            "metadata": { "user_id": self.session }, "messages": self.messages,
        })
        .to_string();
        let address = self.api.base_url().replace("http://", "");
        let mut stream = TcpStream::connect(address).unwrap();
        let length = body.len();
        write!(
            stream,
            "POST /v1/messages HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut reader = BufReader::new(stream);
        let mut text = String::new();
        reader.read_line(&mut text).unwrap();
        if text.contains(" 200 ") {
            reader.read_to_string(&mut text).unwrap();
        }
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }

    /// Asks, and adds the answer and the results of its tools; gives the reported tokens and the ids of the tools.
    fn step(&mut self) -> (u64, Vec<String>) {
        let events = self.ask();
        let usage = &events[0]["message"]["usage"];
        let count = |name: &str| usage[name].as_u64().unwrap();
        let tokens = count("input_tokens") + count("cache_read_input_tokens");
        let begun = |event: &&Value| event["type"] == "content_block_start";
        let blocks = events.iter().filter(begun);
        let mut blocks: Vec<Value> = blocks.map(|event| event["content_block"].clone()).collect();
        for event in &events {
            if let Some(text) = event["delta"]["text"].as_str() {
                let at = usize::try_from(event["index"].as_u64().unwrap()).unwrap();
                blocks[at]["text"] = json!(text);
            }
        }
        let ids: Vec<String> = blocks
            .iter()
            .filter_map(|block| block["id"].as_str().map(str::to_owned))
            .collect();
        self.messages
            .push(json!({ "role": "assistant", "content": blocks }));
        let results: Vec<Value> = ids
            .iter()
            .map(|id| json!({ "type": "tool_result", "tool_use_id": id, "content": "done" }))
            .collect();
        self.messages
            .push(json!({ "role": "user", "content": results }));
        (tokens, ids)
    }
}

/// Four steps from 20 000 tokens on, and the last words.
fn played(project: &Path) -> (MessagesApi, Shape) {
    let shape = Shape::long_turn(4, 20_000, 24_000)
        .pause(Duration::ZERO)
        .ending_with("ALL DONE");
    let api = MessagesApi::start().unwrap();
    api.play(&shape, project);
    (api, shape)
}

fn ids(steps: impl IntoIterator<Item = usize>) -> Vec<String> {
    steps
        .into_iter()
        .map(|step| format!("toolu_kit_S{step:05}_0"))
        .collect()
}

#[test]
fn the_player_gives_step_after_step_and_reports_what_the_request_holds() {
    let project = tempfile::tempdir().unwrap();
    let (api, _) = played(project.path());
    let mut talk = Talk::new(&api, "one", "go");
    for (step, tokens) in [(1, 20_000), (2, 21_000), (3, 22_000), (4, 23_000)] {
        assert_eq!(talk.step(), (tokens, ids([step])));
    }
    assert_eq!(talk.step(), (24_000, Vec::new()));
    let words = talk.messages[talk.messages.len() - 2]["content"][0]["text"].to_string();
    assert!(
        words.starts_with("\"Step 5.") && words.ends_with("\\n\\nALL DONE\""),
        "{words}"
    );
    let log = api.wait_for_step(5, Duration::from_secs(60));
    assert_eq!(log.steps(), [1, 2, 3, 4, 5]);
    assert_eq!((log.seams().len(), log.sessions()), (0, vec!["\"one\""]));
    let results: Vec<_> = log.main().flat_map(|call| &call.results).collect();
    assert_eq!(results.len(), 4);
    // No command ran, so that each is missed; the made-up kinds are a command, two that leave files alone, and an edit.
    assert!(!log.faults().is_empty());
}

#[test]
fn the_player_goes_on_where_the_talk_is_replaced_and_reports_less() {
    let project = tempfile::tempdir().unwrap();
    let (api, _) = played(project.path());
    let mut talk = Talk::new(&api, "one", "go");
    talk.step();
    talk.step();
    // In the same turn: the handoff, and the last call with its result.
    let handoff = format!("pitstop handoff \u{b7} {}", "x".repeat(4_000));
    let mut replaced = Talk::new(&api, "one", &handoff);
    replaced.messages.extend(talk.messages.split_off(3));
    let (tokens, given) = replaced.step();
    assert_eq!((tokens / 100, given), (220, ids([3])));
    // And a fresh session.
    let mut fresh = Talk::new(&api, "two", &handoff);
    let (tokens, given) = fresh.step();
    assert_eq!((tokens / 100, given), (210, ids([4])));
    let log = api.played();
    let seams = log.seams();
    assert_eq!((seams.len(), log.sessions().len()), (2, 2));
    let has_handoff: Vec<_> = log.main().map(|call| call.has_handoff).collect();
    assert_eq!(has_handoff, [false, false, true, true]);
    assert_eq!(seams[0].after.present, BTreeSet::from([2]));
    assert!(seams[1].after.body.is_some() && seams[1].before.step == Some(3));
}

#[test]
fn the_player_gives_a_step_again_that_the_client_has_not_had() {
    let project = tempfile::tempdir().unwrap();
    let (api, shape) = played(project.path());
    let busy = Answer::Error {
        status: 529,
        kind: "overloaded_error".into(),
        message: "later".into(),
    };
    let shape = shape.failing_before(1, busy).failing_before(2, Answer::Cut);
    api.play(&shape.pause(Duration::from_millis(50)), project.path());
    let mut talk = Talk::new(&api, "one", "go");
    assert_eq!(talk.ask(), [Value::Null; 0], "an error has no events");
    assert_eq!(talk.step().1, ids([1]));
    let cut = talk.ask();
    assert_eq!(cut.last().unwrap()["delta"]["text"], "This will be cut");
    // A client that is ended while it waits.
    let address = api.base_url().replace("http://", "");
    let mut stream = TcpStream::connect(address).unwrap();
    let body = json!({ "stream": true, "tools": [{}], "messages": talk.messages }).to_string();
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let limit = Duration::from_secs(60);
    let asked = || api.played().calls.len() == 4;
    poll::until_true(limit, asked, || "a fourth call".to_owned());
    drop(stream);
    let lost = || api.played().calls[3].lost;
    poll::until_true(limit, lost, || "the client is gone".to_owned());
    assert_eq!(talk.step().1, ids([2]));
    assert_eq!(api.played().steps(), [1, 2]);
}

#[test]
fn the_player_tells_subagents_summaries_and_notifications_from_the_conversation() {
    let project = tempfile::tempdir().unwrap();
    let (api, shape) = played(project.path());
    let shape = shape.also(1, ToolCall::Subagent { calls: 2 });
    api.play(&shape, project.path());
    let mut talk = Talk::new(&api, "one", "go");
    let (_, given) = talk.step();
    assert_eq!(given, ["toolu_kit_S00001_0", "toolu_kit_S00001_1"]);
    let mut subagent = Talk::new(&api, "one", "Play the subagent toolu_kit_S00001_1 2 times");
    assert_eq!(
        subagent.step(),
        (12_000, vec!["toolu_kit_A00001_1_0".to_owned()])
    );
    assert_eq!(
        subagent.step(),
        (13_000, vec!["toolu_kit_A00001_1_1".to_owned()])
    );
    assert_eq!(subagent.step(), (14_000, Vec::new()));
    let mut summary = Talk::new(&api, "one", "go");
    let wanted = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.";
    summary
        .messages
        .push(json!({ "role": "user", "content": [{ "type": "text", "text": wanted }] }));
    assert_eq!(summary.step().1, [""; 0]);
    let mut told = Talk::new(&api, "one", "go");
    let note = "<task-notification>\n<task-id>a</task-id>";
    told.messages
        .push(json!({ "role": "user", "content": note }));
    assert_eq!(told.step().1, [""; 0]);
    assert_eq!(talk.step().1, ids([2]));
    let log = api.played();
    let counts = [Caller::Main, Caller::Subagent, Caller::Notification].map(|one| log.count(one));
    assert_eq!((counts, log.summaries()), ([2, 3, 1], 1));
    assert!(log.seams().is_empty());
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_client_plays_a_shape_and_runs_each_call_once() {
    let (home, api) = (Home::new().unwrap(), MessagesApi::start().unwrap());
    let shape = Shape::long_turn(30, 20_000, 60_000)
        .also(3, ToolCall::Subagent { calls: 3 })
        .ending_with("ALL DONE");
    api.play(&shape, home.project());
    let output = Command::new(live_client())
        .args([
            "--permission-mode",
            *ASKS_FIRST,
            "--model",
            "claude-sonnet-4-5",
        ])
        .args(["--allowed-tools", TOOLS, "-p", "go"])
        .env_clear()
        .envs(home.claude_env(&api.base_url()))
        .current_dir(home.project())
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let log = api.played();
    for one in &log.calls {
        println!(
            "{:?} {:?} {} {:?}",
            one.caller, one.step, one.tokens, one.results
        );
    }
    println!("{}", all(&output));
    assert_eq!(log.faults(), [""; 0], "{}", all(&output));
    assert!(
        output.status.success() && all(&output).contains("ALL DONE"),
        "{}",
        all(&output)
    );
    let steps: Vec<usize> = (1..=shape.steps().count()).collect();
    assert_eq!(log.steps(), steps);
    let last = log
        .main()
        .filter(|call| call.step.is_some())
        .last()
        .unwrap();
    assert!(last.tokens.abs_diff(60_000) < 500, "{}", last.tokens);
    assert_eq!((log.summaries(), log.seams().len()), (0, 0));
}
