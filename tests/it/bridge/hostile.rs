//! A program that has stolen a token of the client's side, against a whole supervisor: what it cannot do.

use std::{
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use serde_json::{Value, json};

use super::{MODS_FROM, demo, live, say, wait_for, wait_for_figure, walk};
use crate::kit::{
    client::is_at_least,
    home::handoffs,
    supervisor::{SOON, Supervisor, session_of},
};

/// Where the supervisor listens, with one of its tokens.
struct Thief {
    socket: String,
    token: String,
}

impl Thief {
    /// By the file of this name, as any program of the same user can read it.
    #[track_caller]
    fn with(supervisor: &Supervisor, right: &str) -> Self {
        let files = walk(&supervisor.launch.the_home().path("state/pitstop/run"));
        let is_it = |path: &&std::path::PathBuf| path.extension().is_some_and(|end| end == right);
        let file = files.iter().find(is_it).expect("the token's file");
        let text = std::fs::read_to_string(file).expect("its text");
        let mut lines = text.lines().map(str::to_owned);
        let mut next = || lines.next().expect("a line");
        Self {
            socket: next(),
            token: next(),
        }
    }

    /// The status and the body of an answer.
    fn asks(&self, method: &str, path: &str, body: &Value) -> (u16, String) {
        let body = body.to_string();
        let mut stream = UnixStream::connect(&self.socket).expect("it listens");
        stream.set_read_timeout(Some(SOON)).expect("a limit");
        let length = body.len();
        // In one piece: what is refused is not read to its end.
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: pitstop\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}",
            self.token
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        (status.expect("a status"), body.to_owned())
    }

    /// Says something as a process of the client's.
    fn says(&self, message: &str, session: &str, fields: &Value) -> (u16, String) {
        let mut body = json!({ "session": session, "instance": "thief" });
        for (name, value) in fields.as_object().expect("fields") {
            body[name] = value.clone();
        }
        self.asks("POST", &format!("/bridge/{message}"), &body)
    }
}

/// What the client's side has the right to say, and what is answered to anyone who is not the hosted process.
fn messages(order: u64) -> [(&'static str, Value); 6] {
    [
        ("hello", json!({ "protocol": 1, "client": "2.1.330" })),
        (
            "fact",
            json!({ "fact": "draft_changed", "text": "forged", "cursor": 6 }),
        ),
        ("poll", json!({})),
        ("take", json!({ "order": order })),
        ("answer", json!({ "order": order, "outcome": "replaced" })),
        (
            "compact",
            json!({ "compaction": 1, "trigger": "plugin", "order": order }),
        ),
    ]
}

#[test]
fn a_stolen_token_of_the_client_s_side_gives_no_order_and_reads_no_handoff() {
    let supervisor = demo().start();
    wait_for(&supervisor, |bridge| bridge["state"] == "in_force");
    say(&supervisor, "the old talk");
    wait_for_figure(&supervisor, 28_000);
    supervisor.wait_for_state("idle", SOON);
    let session = session_of(&supervisor.status());
    let orders = [
        "reboot", "approve", "defer", "save", "pause", "resume", "undo", "stop", "say",
    ];
    // As it stands, and with a reboot that waits for its approval.
    for phase in ["idle", "review"] {
        if phase == "review" {
            let asked = supervisor.run(&["ctl", "reboot", "--way", "in-place"]);
            assert!(asked.status.success(), "{asked:?}");
        }
        let before = supervisor.wait_for_phase(phase, SOON);
        for right in ["observe", "bridge"] {
            let thief = Thief::with(&supervisor, right);
            for order in orders {
                let text = json!({ "text": "rm -r", "way": "in-place" });
                let (status, body) = thief.asks("POST", &format!("/control/{order}"), &text);
                assert_eq!(status, 403, "{right} {order}: {body}");
            }
            for path in [
                "/status".to_owned(),
                "/history".to_owned(),
                "/api/sessions/current/handoff".to_owned(),
                format!("/api/sessions/{session}/handoff"),
                "/api/sessions/0b1c2d3e-0000-4000-8000-000000000000/handoff".to_owned(),
            ] {
                let (status, body) = thief.asks("GET", &path, &json!({}));
                assert_eq!(status, 403, "{right} {path}: {body}");
            }
        }
        let after = supervisor.status();
        for name in ["iteration", "session_id", "mode"] {
            assert_eq!(after[name], before[name], "{name}");
        }
        assert_eq!(after["reboot"]["phase"], phase);
        assert_eq!(after["agent"]["state"], "idle");
    }
    // The agent's own tools are the observer's: what they show belongs to the present session, without the mark of a handoff.
    let thief = Thief::with(&supervisor, "observe");
    let other = json!({ "session": "0b1c2d3e-0000-4000-8000-000000000000", "input": {} });
    assert_eq!(thief.asks("POST", "/tools/handoff_preview", &other).0, 409);
    let own = json!({ "session": session, "input": {} });
    let (status, shown) = thief.asks("POST", "/tools/handoff_preview", &own);
    assert!(
        status == 200 && !shown.contains("pitstop handoff ·"),
        "{shown}"
    );
}

/// Whatever is asked as a process of the client's while a reboot in place goes through.
#[track_caller]
fn is_shut_out_of_a_reboot_in_place(supervisor: &Supervisor) {
    let thief = Thief::with(supervisor, "bridge");
    let session = session_of(&supervisor.status());
    let asked = supervisor.run(&["ctl", "reboot", "--way", "in-place"]);
    assert!(asked.status.success(), "{asked:?}");
    supervisor.wait_for_phase("review", SOON);
    let over = AtomicBool::new(false);
    let tries = thread::scope(|scope| {
        let stealing = scope.spawn(|| {
            let mut tries = 0;
            while !over.load(Ordering::Acquire) {
                for order in 1..12 {
                    for (message, fields) in messages(order) {
                        let (status, body) = thief.says(message, &session, &fields);
                        assert_eq!(status, 409, "{message} {order}: {body}");
                        assert!(body.contains("the process that pitstop hosts"), "{body}");
                        tries += 1;
                    }
                }
            }
            tries
        });
        assert_eq!(supervisor.ctl("approve").0, 0);
        let status = supervisor.wait_for_iteration(2, SOON);
        over.store(true, Ordering::Release);
        assert_eq!(session_of(&status), session);
        stealing.join().expect("none was let in")
    });
    assert!(tries > 60, "{tries}");
    let home = supervisor.launch.the_home();
    let reported = || handoffs(home).get(&session) == Some(&1);
    supervisor.wait_until("the handoff arrives once", reported);
    let bridge = &supervisor.status()["agent"]["bridge"];
    assert_eq!(
        (&bridge["state"], &bridge["draft_characters"]),
        (&json!("in_force"), &json!(0))
    );
}

#[test]
fn another_process_takes_no_order_answers_none_and_gets_no_text() {
    let supervisor = demo().start();
    wait_for(&supervisor, |bridge| bridge["state"] == "in_force");
    say(&supervisor, "the old talk");
    wait_for_figure(&supervisor, 28_000);
    wait_for(&supervisor, |bridge| bridge["draft_characters"] == 0);
    supervisor.wait_for_state("idle", SOON);
    is_shut_out_of_a_reboot_in_place(&supervisor);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn another_process_than_the_real_client_takes_no_order_and_gets_no_text() {
    assert!(is_at_least(MODS_FROM), "this client runs no mods");
    let launch = live();
    launch.api().report_usage([30_000]);
    let supervisor = launch.start();
    wait_for(&supervisor, |bridge| bridge["state"] == "in_force");
    supervisor.wait_for_state("idle", SOON);
    supervisor.prompt("the old talk");
    wait_for_figure(&supervisor, 30_000);
    supervisor.wait_for_state("idle", SOON);
    wait_for(&supervisor, |bridge| bridge["draft_characters"] == 0);
    is_shut_out_of_a_reboot_in_place(&supervisor);
}
