//! `GET /events` from outside: what a listener hears, misses, and is dropped for.

use std::io::{BufRead, BufReader};

use pitstop_server::STREAM_COUNT;
use serde_json::{Value, json};

use super::*;

/// One event as it came.
#[derive(Clone, Debug, Default, PartialEq)]
struct Received {
    id: Option<String>,
    event: String,
    data: Value,
}

/// An open stream.
struct Listener {
    reader: BufReader<UnixStream>,
}

impl Supervisor {
    /// Sends the request for events; the answer waits unread.
    fn ask_for_events(&self, last: Option<&str>) -> UnixStream {
        let token = format!("Authorization: Bearer {}", self.token("control"));
        let last = last.map(|id| format!("Last-Event-ID: {id}"));
        let mut headers = vec![token.as_str()];
        headers.extend(last.as_deref());
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        limit(&stream);
        stream
            .write_all(&message("GET /events HTTP/1.1", &headers, b""))
            .unwrap();
        stream
    }

    fn listen(&self, last: Option<&str>) -> Listener {
        let mut reader = BufReader::new(self.ask_for_events(last));
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
        }
        let head = head.to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200"), "{head}");
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        assert!(!head.contains("access-control"), "{head}");
        Listener { reader }
    }

    fn publish(&self, data: Value) {
        let kind = ApiEventKind::Notice;
        self.feed.publish(ApiEvent { kind, data });
    }
}

impl Listener {
    /// The next event; none when the stream has ended. Lines that are the size of a chunk are no part of it.
    fn next(&mut self) -> Option<Received> {
        let mut received = Received::default();
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end();
            if let Some(id) = line.strip_prefix("id: ") {
                received.id = Some(id.to_owned());
            } else if let Some(event) = line.strip_prefix("event: ") {
                event.clone_into(&mut received.event);
            } else if let Some(data) = line.strip_prefix("data: ") {
                received.data = serde_json::from_str(data).unwrap();
                return Some(received);
            } else if line == "0" {
                return None;
            }
        }
    }

    #[track_caller]
    fn expect(&mut self, event: &str) -> Received {
        let received = self.next().expect("an event");
        assert_eq!(received.event, event, "{received:?}");
        received
    }
}

#[test]
fn a_listener_hears_how_things_stand_and_then_what_happens() {
    let supervisor = Supervisor::start();
    supervisor.publish(json!({"n": 1}));
    let mut listener = supervisor.listen(None);
    let first = listener.expect("status");
    assert_eq!(first.data["agent"]["kind"], "demo");
    for number in 2..5 {
        supervisor.publish(json!({"n": number, "text": "a\nevent: status\n\n"}));
        let received = listener.expect("notice");
        assert_eq!(received.data["n"], number);
        assert_eq!(received.id, Some(format!("t1-{number}")));
    }
}

#[test]
fn a_listener_that_comes_back_hears_what_it_has_missed() {
    let supervisor = Supervisor::start();
    for number in 1..=200 {
        supervisor.publish(json!({ "n": number }));
    }
    let mut listener = supervisor.listen(Some("t1-50"));
    for number in 51..=200 {
        assert_eq!(listener.expect("notice").data["n"], number);
    }
    supervisor.publish(json!({"n": 201}));
    assert_eq!(listener.expect("notice").id.as_deref(), Some("t1-201"));
    // The id of a status goes on from there, too.
    let id = supervisor.listen(None).expect("status").id;
    let mut listener = supervisor.listen(id.as_deref());
    supervisor.publish(json!({"n": 202}));
    assert_eq!(listener.expect("notice").data["n"], 202);
}

#[test]
fn what_is_no_longer_kept_is_reported_as_a_gap() {
    let supervisor = Supervisor::start();
    for number in 1..=2_000 {
        supervisor.publish(json!({ "n": number }));
    }
    for last in ["t1-1", "t1-9999999", "other-1999", "nonsense", "t1--1"] {
        let mut listener = supervisor.listen(Some(last));
        assert_eq!(listener.expect("gap").id, None);
        let status = listener.expect("status");
        assert_eq!(status.id.as_deref(), Some("t1-2000"), "{last}");
    }
}

#[test]
fn a_listener_that_does_not_read_is_dropped_and_the_others_hear_on() {
    let supervisor = Supervisor::start();
    let slow = supervisor.ask_for_events(None);
    let mut other = supervisor.listen(None);
    other.expect("status");
    // More than every buffer on the way holds, told no faster than one who reads can follow.
    let text = "x".repeat(4 * 1024);
    for number in 0..3_000 {
        supervisor.publish(json!({"n": number, "text": text}));
        assert_eq!(other.expect("notice").data["n"], number);
    }
    let mut slow = Listener {
        reader: BufReader::new(slow),
    };
    let mut last = None;
    while let Some(received) = slow.next() {
        last = received.data["n"].as_u64().or(last);
    }
    assert!(last.is_none_or(|last| last < 2_999), "{last:?}");
    supervisor.publish(json!({"n": "still there"}));
    other.expect("notice");
}

#[test]
fn streams_are_few_and_leave_the_door_open_for_all_else() {
    let supervisor = Supervisor::start();
    let mut listeners: Vec<_> = (0..STREAM_COUNT).map(|_| supervisor.listen(None)).collect();
    for listener in &mut listeners {
        listener.expect("status");
    }
    supervisor.expects(503, "control", "GET", "/events", b"");
    supervisor.expects(200, "control", "GET", "/status", b"");
    // One who leaves makes room, once it has been noticed.
    drop(listeners.pop());
    supervisor.publish(json!({}));
    eventually("there is room", || {
        supervisor.publish(json!({}));
        let mut answer = BufReader::new(supervisor.ask_for_events(None));
        let mut line = String::new();
        answer.read_line(&mut line).unwrap();
        line.starts_with("HTTP/1.1 200")
    });
}

#[test]
fn streams_end_at_once_when_the_door_closes() {
    let mut supervisor = Supervisor::start();
    let mut listener = supervisor.listen(None);
    listener.expect("status");
    let began = Instant::now();
    supervisor.end();
    assert_eq!(listener.next(), None);
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_stream_is_the_users_own() {
    let supervisor = Supervisor::start();
    supervisor.expects(403, "observe", "GET", "/events", b"");
    supervisor.expects(405, "control", "POST", "/events", b"{}");
}
