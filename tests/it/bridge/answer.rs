//! The real client's conversation replaced by an order, with a socket of the test's own in the place of pitstop.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use pitstop::bridge::FILES;
use serde_json::{Value, json};

use super::MODS_FROM;
use crate::kit::{
    client::{ASKS_FIRST, is_at_least, live_client},
    home::Home,
    messages_api::MessagesApi,
    poll,
    supervisor::{SOON, key},
    terminal::{Answers, Spec, Terminal},
};

const HANDOFF: &str = "# Handoff\n\nNext step: mend the fuzz test";

/// What the client's side has said, and the orders that it is still to be given.
#[derive(Default)]
struct Side {
    orders: Vec<Value>,
    heard: Vec<(String, Value)>,
}

impl Side {
    /// What is answered to a message.
    fn answer(&mut self, name: &str, body: &Value) -> Value {
        match name {
            "hello" => json!({ "protocol": 1, "accepted": true }),
            "poll" => json!({ "order": self.orders.first() }),
            "take" => {
                let waits = self
                    .orders
                    .first()
                    .is_some_and(|one| one["id"] == body["order"]);
                if waits {
                    self.orders.remove(0);
                }
                json!({ "taken": waits })
            }
            "compact" if body["order"] == 1 => json!({ "decision": "skip", "why": "not now" }),
            "compact" if body["order"].is_u64() => {
                json!({ "decision": "replace", "text": HANDOFF })
            }
            "compact" => json!({ "decision": "client" }),
            _ => json!({}),
        }
    }

    fn said(&self, name: &str) -> Vec<Value> {
        let said = self.heard.iter().filter(|(one, _)| one == name);
        said.map(|(_, body)| body.clone()).collect()
    }
}

/// Answers one connection until the client closes it.
fn serve(stream: &UnixStream, side: &Mutex<Side>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut first = String::new();
        reader
            .read_line(&mut first)
            .ok()
            .filter(|count| *count > 0)?;
        let name = first.split(' ').nth(1)?.rsplit('/').next()?.to_owned();
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((field, value)) = line.trim_end().split_once(':') else {
                break;
            };
            if field.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body: Value = serde_json::from_slice(&body).ok()?;
        if name == "poll" {
            poll::within(Duration::from_secs(2), || {
                !side.lock().unwrap().orders.is_empty()
            });
        }
        let answer = {
            let mut side = side.lock().unwrap();
            let answer = side.answer(&name, &body).to_string();
            side.heard.push((name, body));
            answer
        };
        let length = answer.len();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
        write!(&mut &*stream, "{head} {length}\r\n\r\n{answer}").ok()?;
    }
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_client_puts_the_handoff_in_the_place_of_its_conversation() {
    assert!(is_at_least(MODS_FROM), "this client runs no mods");
    let (home, api) = (Home::new().unwrap(), MessagesApi::start().unwrap());
    for (directories, name, text) in FILES {
        let directory = home.path("mods").join(directories.join("/"));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(name), text).unwrap();
    }
    let side = Arc::new(Mutex::new(Side::default()));
    let listener = UnixListener::bind(home.path("socket")).unwrap();
    let right = format!("{}\ntoken\n", home.path("socket").display());
    fs::write(home.path("right"), right).unwrap();
    let answering = Arc::clone(&side);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let side = Arc::clone(&answering);
            thread::spawn(move || serve(&stream, &side));
        }
    });
    let mut env = home.claude_env(&api.base_url());
    env.push(("PITSTOP_BRIDGE".into(), home.path("right").into()));
    let mods = home.path("mods");
    let args = ["--permission-mode", *ASKS_FIRST, "--plugin-dir"].map(Into::into);
    let client = Terminal::spawn(&Spec {
        program: live_client().as_os_str(),
        args: &[&args[..], &[mods.into_os_string()]].concat(),
        env: &env,
        dir: home.project(),
        columns: 120,
        rows: 40,
        answers: Answers::All,
    });
    let count = |name: &str| side.lock().unwrap().said(name).len();
    let ended = || {
        let side = side.lock().unwrap();
        let facts = side.said("fact");
        facts
            .iter()
            .filter(|one| one["fact"] == "turn_ended")
            .count()
    };
    poll::until_true(SOON, || count("hello") > 0, || client.screen_text());
    client.wait_for(|screen| screen.contains('❯'), SOON);
    client.send("the old talk");
    client.wait_for_text("the old talk", SOON);
    client.send(key::ENTER);
    poll::until_true(SOON, || ended() == 1, || client.screen_text());
    client.send("half a thought");
    client.wait_for_text("half a thought", SOON);

    // One that is refused changes nothing, and is no reason for the client to summarize.
    let order = |id: u64| {
        let order = json!({ "id": id, "kind": "replace_conversation", "nonce": "n0nce", "interrupt": false });
        let before = count("answer");
        side.lock().unwrap().orders.push(order);
        poll::until_true(SOON, || count("answer") > before, || client.screen_text());
        side.lock().unwrap().said("answer").pop().unwrap()
    };
    let refused = order(1);
    assert_eq!(
        (&refused["outcome"], &refused["why"]),
        (&json!("failed"), &json!("not now"))
    );
    assert_eq!(api.main_calls().len(), 1);

    assert_eq!(order(2)["outcome"], "replaced");
    let calls = api.wait_for_calls(2, SOON);
    assert_eq!(calls.len(), 2, "no call of a model for a summary");
    let messages = calls[1]["messages"].to_string();
    assert_eq!(messages.matches("mend the fuzz test").count(), 1);
    assert!(messages.contains("n0nce") && !messages.contains("the old talk"));
    assert!(
        messages.contains("# Environment"),
        "the client's own reminders"
    );
    client.wait_for_text("half a thought", SOON);
}
