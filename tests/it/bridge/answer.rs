//! The real client's conversation replaced by an order, with a socket of the test's own in the place of pitstop.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use pitstop_agent::bridge::FILES;
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
    received: Vec<(String, Value)>,
    /// Whether nothing is answered any more, from the next question about a compaction on.
    dies: bool,
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
        let said = self.received.iter().filter(|(one, _)| one == name);
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
            let is_dead = side.dies && side.received.iter().any(|(one, _)| one == "compact");
            if is_dead || (side.dies && name == "compact") {
                side.received.push((name, body));
                return None;
            }
            let answer = side.answer(&name, &body).to_string();
            side.received.push((name, body));
            answer
        };
        let length = answer.len();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
        write!(&mut &*stream, "{head} {length}\r\n\r\n{answer}").ok()?;
    }
}

/// The real client with our mods, and a socket of the test's own that answers them.
struct Answered {
    /// Removed with it.
    _home: Home,
    api: MessagesApi,
    side: Arc<Mutex<Side>>,
    client: Terminal,
}

impl Answered {
    fn start() -> Self {
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
        let answered = Self {
            _home: home,
            api,
            side,
            client,
        };
        answered.wait_until(|one| one.count("hello") > 0);
        answered
            .client
            .wait_for(|screen| screen.contains('❯'), SOON);
        answered
    }

    #[track_caller]
    fn wait_until(&self, holds: impl Fn(&Self) -> bool) {
        poll::until_true(SOON, || holds(self), || self.client.screen_text());
    }

    /// How often the client's side has said this.
    fn count(&self, name: &str) -> usize {
        self.side.lock().unwrap().said(name).len()
    }

    /// Types this prompt and waits until its turn is over.
    #[track_caller]
    fn prompt(&self, text: &str) {
        let ended = |one: &Self| {
            let facts = one.side.lock().unwrap().said("fact");
            let ended = facts.iter().filter(|fact| fact["fact"] == "turn_ended");
            ended.count()
        };
        let before = ended(self);
        self.client.send(text);
        self.client.wait_for_text(text, SOON);
        self.client.send(key::ENTER);
        self.wait_until(|one| ended(one) > before);
    }

    /// Has the conversation replaced by the order of this number; gives the answer to it.
    #[track_caller]
    fn replace(&self, id: u64) -> Value {
        let order =
            json!({ "id": id, "kind": "replace_conversation", "nonce": "n0nce", "when": "idle" });
        let before = self.count("answer");
        self.side.lock().unwrap().orders.push(order);
        self.wait_until(|one| one.count("answer") > before);
        self.side.lock().unwrap().said("answer").pop().unwrap()
    }
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_client_puts_the_handoff_in_the_place_of_its_conversation() {
    let answered = Answered::start();
    let (api, client) = (&answered.api, &answered.client);
    answered.prompt("the old talk");
    client.send("half a thought");
    client.wait_for_text("half a thought", SOON);

    // One that is refused changes nothing, and is no reason for the client to summarize.
    let refused = answered.replace(1);
    assert_eq!(
        (&refused["outcome"], &refused["why"]),
        (&json!("failed"), &json!("not now"))
    );
    assert_eq!(api.main_calls().len(), 1);

    assert_eq!(answered.replace(2)["outcome"], "replaced");
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

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_client_compacts_by_itself_where_no_answer_comes_any_more() {
    let answered = Answered::start();
    for text in ["one", "two", "three"] {
        answered.prompt(text);
    }
    answered.side.lock().unwrap().dies = true;
    let calls = answered.api.main_calls().len();
    let began = Instant::now();
    answered.client.send("/compact");
    answered.client.wait_for_text("/compact", SOON);
    answered.client.send(key::ENTER);
    answered.wait_until(|one| one.api.main_calls().len() > calls);
    println!("it goes its own way after {:?}", began.elapsed());
    let summary = answered.api.main_calls().pop().unwrap()["messages"].to_string();
    assert!(summary.contains("summary"), "{summary}");
}
