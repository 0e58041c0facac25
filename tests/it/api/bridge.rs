//! The client's own side of the session at its door: rights, orders that one process takes once, and hostile bodies.

use pitstop_agent::bridge::{self, BridgeOrder, Fact, OrderId, Outcome, ReplaceWhen, Said};
use pitstop_transcript::SessionId;
use serde_json::{Value, json};

use super::*;

const SESSION: &str = "5b1fb70c-12ef-4add-a791-d6648daa787b";
const OTHER: &str = "26ae726b-661f-457b-9adc-732e195ecd7a";

fn session() -> SessionId {
    SESSION.parse().unwrap()
}

/// A body by one process of the client's.
fn body(instance: &str, session: &str, fields: &Value) -> Vec<u8> {
    let mut body = json!({ "session": session, "instance": instance });
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body.to_string().into_bytes()
}

impl Supervisor {
    fn bridge(&self, message: &str, instance: &str, fields: &Value) -> Answered {
        let body = body(instance, SESSION, fields);
        self.request("bridge", "POST", &format!("/bridge/{message}"), &body)
    }

    #[track_caller]
    fn greets(&self, instance: &str) {
        let hello = json!({"protocol": 1, "client": "2.1.330"});
        let answer = self.bridge("hello", instance, &hello);
        answer.expect(200);
        assert!(answer.body.contains("\"accepted\":true"), "{answer:?}");
    }

    /// Sends a poll and leaves the connection open.
    fn polls(&self, instance: &str) -> UnixStream {
        self.sends("poll", instance, &json!({}))
    }

    /// Sends a message and leaves the connection open.
    fn sends(&self, name: &str, instance: &str, fields: &Value) -> UnixStream {
        let body = body(instance, SESSION, fields);
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        limit(&stream);
        let path = format!("/bridge/{name}");
        let message = self.signed("bridge", "POST", &path, &body);
        stream.write_all(&message).unwrap();
        stream
    }

    /// What the bridge said, as the loop received it.
    fn bridge_said(&self) -> Vec<Said> {
        let said = |request: &Request| match request {
            Request::Bridge(report) => Some(report.said.clone()),
            _ => None,
        };
        self.received().iter().filter_map(said).collect()
    }

    /// The same, once it is this: a message is answered when it is queued.
    #[track_caller]
    fn says(&self, expected: &[Said]) {
        eventually("the loop hears what the bridge said", || {
            self.bridge_said().len() >= expected.len()
        });
        assert_eq!(self.bridge_said(), expected);
    }
}

fn polled(answer: &Answered) -> Value {
    answer.expect(200);
    serde_json::from_str::<Value>(&answer.body).unwrap()["order"].clone()
}

#[test]
fn the_bridge_observes_and_answers_and_has_no_other_right() {
    let supervisor = Supervisor::start();
    for (method, path, status) in ENDPOINTS {
        let body = if method == "GET" {
            b""
        } else {
            fitting_body(path)
        };
        let observes = supervisor.request("observe", method, path, body).status != 403;
        let answer = supervisor.request("bridge", method, path, body);
        answer.expect(if observes { status } else { 403 });
    }
    for message in ["hello", "fact", "poll", "take", "answer", "nonsense"] {
        let path = format!("/bridge/{message}");
        let answer = supervisor.request("observe", "POST", &path, b"{}");
        answer.expect(403);
    }
    let received = supervisor.received();
    let orders = |request: &Request| matches!(request, Request::Control(_));
    assert!(!received.iter().any(orders), "{received:?}");
    assert_eq!(supervisor.bridge_said(), []);
}

#[test]
fn an_order_to_replace_the_conversation_waits_for_the_mod_that_answers_compactions() {
    let supervisor = Supervisor::start();
    supervisor.greets("a");
    let order = |when| BridgeOrder::ReplaceConversation {
        text: "the handoff".to_owned(),
        nonce: "n1".to_owned(),
        when,
    };
    let mailbox = &supervisor.mailbox;
    let place = |id, when| mailbox.place(OrderId(id), session(), order(when));
    place(7, ReplaceWhen::Idle);
    let mut taking = supervisor.sends("take", "a", &json!({ "order": 7 }));
    taking
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let early = taking.read(&mut [0]);
    assert!(early.is_err(), "{early:?}");
    limit(&taking);
    let loaded = supervisor.bridge("answers", "second", &json!({}));
    loaded.expect(202);
    let both = r#"{"taken":true,"answers":true}"#;
    assert_eq!(receive(taking).body, both);
    place(8, ReplaceWhen::NextStep);
    let taken = supervisor.bridge("take", "a", &json!({ "order": 8 }));
    assert_eq!(taken.body, both);
}

#[test]
fn an_order_is_carried_out_once_and_its_answer_reaches_the_loop() {
    let supervisor = Supervisor::start();
    supervisor.greets("a");
    let waiting = supervisor.polls("a");
    let text = "sk-ant-api03-0123456789abcdefghijklmnopqrstuvwxyz \u{7}exactly".to_owned();
    let order = BridgeOrder::FillDraft { text, cursor: 2 };
    supervisor.mailbox.place(OrderId(7), session(), order);
    let order = polled(&receive(waiting));
    assert_eq!((&order["id"], &order["cursor"]), (&json!(7), &json!(2)));
    let text = order["text"].as_str().unwrap();
    assert!(text.starts_with("sk-ant-api03-0123") && text.contains('\u{7}'));

    let take = || supervisor.bridge("take", "a", &json!({"order": 7})).body;
    assert_eq!(take(), r#"{"taken":true}"#);
    assert_eq!(take(), r#"{"taken":false}"#);
    let answer = json!({"order": 7, "outcome": "filled", "filled": true});
    supervisor.greets("b");
    supervisor.bridge("answer", "b", &answer).expect(409);
    supervisor.bridge("answer", "a", &answer).expect(202);
    supervisor.bridge("answer", "a", &answer).expect(409);
    let answered = Said::Answered(OrderId(7), Outcome::Filled(Ok(())));
    supervisor.says(&[Said::Hello, Said::Polled, Said::Hello, answered]);
}

#[test]
fn a_poll_whose_client_has_died_takes_no_order() {
    let supervisor = Supervisor::start();
    supervisor.greets("dead");
    supervisor.greets("fork");
    drop(supervisor.polls("dead"));
    eventually("the poll is there", || {
        supervisor.bridge_said().contains(&Said::Polled)
    });
    let read = BridgeOrder::ReadDraft;
    supervisor.mailbox.place(OrderId(1), session(), read);
    supervisor.greets("alive");
    let order = polled(&receive(supervisor.polls("alive")));
    assert_eq!(order["id"], 1);
    let take = json!({"order": 1});
    // Another session's process sees it not, and cannot take it.
    let foreign = body("fork", OTHER, &take);
    let answer = supervisor.request("bridge", "POST", "/bridge/take", &foreign);
    assert_eq!(answer.body, r#"{"taken":false}"#);
    let taken = supervisor.bridge("take", "alive", &take).body;
    assert_eq!(taken, r#"{"taken":true}"#);
}

#[test]
fn a_poll_is_over_when_its_process_has_another_session() {
    let supervisor = Supervisor::start();
    supervisor.greets("a");
    let waiting = supervisor.polls("a");
    eventually("the poll is there", || {
        supervisor.bridge_said().contains(&Said::Polled)
    });
    let began = Instant::now();
    let moved = json!({"fact": "session_started", "source": "clear"});
    let moved = body("a", OTHER, &moved);
    let answer = supervisor.request("bridge", "POST", "/bridge/fact", &moved);
    answer.expect(202);
    assert_eq!(polled(&receive(waiting)), Value::Null);
    assert!(began.elapsed() < Duration::from_secs(8), "it was held");
}

#[test]
fn facts_reach_the_loop_and_hostile_ones_do_not() {
    let supervisor = Supervisor::start();
    let fact = json!({"fact": "turn_started", "turn": "t"});
    // Before its hello a process is not listened to.
    supervisor.bridge("fact", "a", &fact).expect(409);
    supervisor.bridge("poll", "a", &json!({})).expect(409);
    supervisor.greets("a");
    supervisor.bridge("fact", "a", &fact).expect(202);
    for (message, fields) in [
        ("fact", json!({})),
        ("fact", json!({"fact": "approve"})),
        ("fact", json!({"fact": "turn_started", "turn": "../x"})),
        (
            "fact",
            json!({"fact": "draft_changed", "text": "a", "cursor": 2}),
        ),
        (
            "fact",
            json!({"fact": "draft_changed", "text": "a".repeat(300_000), "cursor": 0}),
        ),
        ("fact", json!({"fact": "usage", "window": -1})),
        ("fact", json!({"fact": "usage", "window": u64::MAX})),
        ("hello", json!({"protocol": 1})),
        ("hello", json!({"protocol": "1", "client": "2"})),
        (
            "hello",
            json!({"protocol": 1, "client": "2.1.330\u{1b}[2J"}),
        ),
        ("take", json!({})),
        ("take", json!({"order": -1})),
        ("answer", json!({"order": 1})),
        ("answer", json!({"order": 1, "outcome": "reboot"})),
    ] {
        supervisor.bridge(message, "a", &fields).expect(400);
    }
    for (instance, session) in [("", SESSION), ("a b", SESSION), ("a", "../../x"), ("a", "")] {
        let body = body(instance, session, &fact);
        let answer = supervisor.request("bridge", "POST", "/bridge/fact", &body);
        answer.expect(400);
    }
    for bytes in [&b""[..], b"[]", b"{", b"\xff", b"null"] {
        let answer = supervisor.request("bridge", "POST", "/bridge/fact", bytes);
        answer.expect(400);
    }
    supervisor.bridge("approve", "a", &json!({})).expect(404);
    let turn = "t".to_owned();
    supervisor.says(&[Said::Hello, Said::Fact(Fact::TurnStarted { turn })]);
}

#[test]
fn another_protocol_is_refused_and_the_loop_hears_of_it() {
    let supervisor = Supervisor::start();
    let hello = json!({"protocol": bridge::PROTOCOL + 1, "client": "2.1.330"});
    let answer = supervisor.bridge("hello", "a", &hello);
    answer.expect(200);
    assert!(answer.body.contains("\"accepted\":false"), "{answer:?}");
    let wrong = Said::WrongProtocol(bridge::PROTOCOL + 1);
    supervisor.says(&[wrong]);
    supervisor.bridge("poll", "a", &json!({})).expect(409);
}

#[test]
fn polls_that_wait_leave_room_for_hooks() {
    let supervisor = Supervisor::start();
    let waiting: Vec<_> = (0..20)
        .map(|number| {
            let name = format!("i{number}");
            supervisor.greets(&name);
            supervisor.polls(&name)
        })
        .collect();
    let began = Instant::now();
    let answer = supervisor.request("observe", "POST", "/hooks/claude/Stop", b"{}");
    answer.expect(202);
    assert!(began.elapsed() < HOOK_LIMIT, "{:?}", began.elapsed());
    drop(waiting);
}
