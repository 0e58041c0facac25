//! The demo's side of the bridge: it reports and takes orders by the protocol of the mods (`assets/bridge/`), so that all of it
//! can be seen and tested without the client.
//!
//! One thread polls and hands each order to the session's loop, which sends facts. When nothing listens it ends, and the session
//! goes on without.

use std::{
    io::{self, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Sender, channel},
    },
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use uuid::Uuid;

use super::{BASE_LOAD, Start, session::Session, terminal::Incoming};
use pitstop_transcript::SessionId;

/// The protocol that it speaks.
const PROTOCOL: u32 = 1;

/// The version of a client that speaks it.
pub const CLIENT: &str = "2.1.330";

/// The time limit of one call: longer than a poll is held.
const CALL_LIMIT: Duration = Duration::from_secs(30);

/// The state of the session's bridge.
#[derive(Debug)]
pub struct Bridge {
    peer: Peer,
    /// The prompt box as it was reported last.
    draft: String,
    /// The order to replace the conversation at the next step of the turn.
    at_next_step: Option<Value>,
    /// The number of compactions that the supervisor was asked about.
    compactions: u64,
}

/// A connection to the supervisor, by the first existing file of those that its variable names.
#[derive(Clone, Debug)]
struct Peer {
    files: Vec<PathBuf>,
    instance: String,
    session: Arc<Mutex<SessionId>>,
}

impl Peer {
    fn post(&self, message: &str, mut body: Value) -> io::Result<Value> {
        let mut texts = self.files.iter().map(std::fs::read_to_string);
        let lines = texts.find_map(Result::ok).unwrap_or_default();
        let (socket, token) = lines
            .trim_end()
            .split_once('\n')
            .ok_or_else(|| io::Error::other("expected a file with a socket and a token"))?;
        let session = *self.session.lock().unwrap_or_else(PoisonError::into_inner);
        body["session"] = json!(session.to_string());
        body["instance"] = json!(self.instance);
        let body = body.to_string();
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(CALL_LIMIT))?;
        write!(
            stream,
            "POST /bridge/{message} HTTP/1.1\r\nhost: pitstop\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).unwrap_or_default();
        if !status.starts_with('2') {
            return Err(io::Error::other(format!("{message}: {status}")));
        }
        serde_json::from_str(body).map_err(io::Error::other)
    }

    /// Hands each order to the session's loop until the session is over or nothing listens any more.
    fn serve(&self, to: &Sender<Incoming>) -> io::Result<()> {
        loop {
            let order = self.post("poll", json!({}))?["order"].take();
            if order.is_null() {
                continue;
            }
            let number = order["id"].clone();
            if self.post("take", json!({ "order": number }))?["taken"] != true {
                continue;
            }
            let (outcome, done) = channel();
            // One of them fails when the session is over.
            let asked = to.send(Incoming::Order(order, outcome));
            let (Ok(()), Ok(mut answer)) = (asked, done.recv()) else {
                return Ok(());
            };
            answer["order"] = number;
            self.post("answer", answer)?;
        }
    }
}

impl Bridge {
    /// Starts a bridge, if this session is started with one and the supervisor wants it.
    pub fn start(start: &Start, id: SessionId, to: &Sender<Incoming>) -> Option<Self> {
        let files = start.settings["env"]["PITSTOP_BRIDGE"].as_str();
        let files = files.filter(|_| start.mods)?;
        let peer = Peer {
            files: files.lines().map(PathBuf::from).collect(),
            instance: Uuid::new_v4().simple().to_string(),
            session: Arc::new(Mutex::new(id)),
        };
        let hello = json!({ "protocol": PROTOCOL, "client": CLIENT });
        let accepted = peer.post("hello", hello).ok()?["accepted"] == true;
        peer.post("answers", json!({})).ok().filter(|_| accepted)?;
        let (to, serving) = (to.clone(), peer.clone());
        // When the supervisor is gone the session goes on without.
        thread::spawn(move || serving.serve(&to));
        Some(Self {
            peer,
            draft: String::new(),
            at_next_step: None,
            compactions: 0,
        })
    }
}

/// Writes a draft in the words of the protocol, with the cursor at its end in UTF-16 units.
fn draft(kind: &str, name: &str, text: &str) -> Value {
    json!({ kind: name, "text": text, "cursor": text.encode_utf16().count() })
}

fn failed(why: &str) -> Value {
    json!({ "outcome": "failed", "why": why })
}

impl Session {
    /// Reports a fact, if there is a bridge and something listens.
    pub(super) fn report(&self, fact: Value) {
        if let Some(bridge) = &self.bridge {
            let _ = bridge.peer.post("fact", fact);
        }
    }

    /// Reports that the process is in this session now.
    pub(super) fn report_session(&mut self, source: &str) {
        if let Some(Bridge { peer, .. }) = &self.bridge {
            *peer.session.lock().unwrap_or_else(PoisonError::into_inner) = self.id;
        }
        self.report(json!({ "fact": "session_started", "source": source }));
        self.report_usage();
    }

    /// Reports that this turn has ended, with the reason.
    pub(super) fn report_turn_end(&mut self, turn: &str, reason: &str) {
        if let Some(bridge) = &mut self.bridge {
            bridge.at_next_step = None;
        }
        self.report(json!({ "fact": "turn_ended", "turn": turn, "reason": reason }));
        self.report_usage();
    }

    fn report_usage(&self) {
        let (used, window) = (self.context, self.window());
        let row = |name: &str, tokens: u64, kind: &str| json!({ "name": name, "tokens": tokens, "kind": kind });
        self.report(json!({
            "fact": "usage", "used": self.usage.map(|_| used), "window": window, "cost_usd": self.cost,
            "categories": [
                row("System prompt", BASE_LOAD, "used"),
                row("Messages", used.saturating_sub(BASE_LOAD), "used"),
                row("Free space", window.saturating_sub(used), "free"),
            ],
        }));
    }

    /// Reports the text of the prompt box if it is another than before.
    pub(super) fn report_draft(&mut self) {
        if let Some(bridge) = &mut self.bridge
            && bridge.draft != self.draft
        {
            bridge.draft.clone_from(&self.draft);
            self.report(draft("fact", "draft_changed", &self.draft));
        }
    }

    /// Carries an order out; returns the outcome.
    pub(super) fn ordered(&mut self, order: &Value) -> Value {
        let refusal = |why: Option<&str>| json!({ "outcome": "filled", "filled": why.is_none(), "refusal": why });
        match (order["kind"].as_str().unwrap_or_default(), &mut self.bridge) {
            ("read_draft", _) => draft("outcome", "draft", &self.draft),
            ("probe", _) => refusal(None),
            ("fill_draft", _) if !self.draft.is_empty() => refusal(Some("draft")),
            ("fill_draft", _) => {
                order["text"]
                    .as_str()
                    .unwrap_or_default()
                    .clone_into(&mut self.draft);
                refusal(None)
            }
            ("restore_trigger", Some(bridge)) => {
                bridge.at_next_step = None;
                json!({ "outcome": "restored" })
            }
            ("replace_conversation", Some(bridge)) if order["when"] == "next_step" => {
                if self.turn.is_some() {
                    bridge.at_next_step = Some(order["id"].clone());
                    json!({ "outcome": "lowered" })
                } else {
                    failed("no turn runs")
                }
            }
            ("replace_conversation", _) => match self.replace(order) {
                Ok(()) => json!({ "outcome": "replaced" }),
                Err(why) => failed(&why),
            },
            (kind, _) => failed(&format!("the demo does not know the order {kind}")),
        }
    }

    /// Replaces the conversation by the supervisor's text between two steps of the turn, if it has ordered that; reports whether
    /// that was done.
    pub(super) fn replaced_in_turn(&mut self) -> io::Result<bool> {
        let Some(bridge) = &mut self.bridge else {
            return Ok(false);
        };
        let Some(order) = bridge.at_next_step.take() else {
            return Ok(false);
        };
        bridge.compactions += 1;
        let asked = json!({ "compaction": bridge.compactions, "trigger": "auto", "order": order });
        let decided = bridge.peer.post("compact", asked).unwrap_or_default();
        let Some(text) = decided["text"].as_str() else {
            return Ok(false);
        };
        self.take_over(text, "auto")?;
        Ok(true)
    }

    /// Replaces the conversation by the supervisor's text for this order, and begins a turn; returns the reason if it cannot.
    fn replace(&mut self, order: &Value) -> Result<(), String> {
        if order["when"] == "interrupting" {
            self.interrupt();
        }
        let bridge = self.bridge.as_ref().filter(|_| self.turn.is_none());
        let bridge = bridge.ok_or("a turn runs")?;
        if order["answers"] == false {
            return Err("nothing answers compactions".to_owned());
        }
        let asked = json!({ "compaction": 0, "trigger": "plugin", "order": order["id"] });
        let decided = bridge
            .peer
            .post("compact", asked)
            .map_err(|error| error.to_string())?;
        let text = decided["text"]
            .as_str()
            .ok_or_else(|| decided["why"].as_str().unwrap_or("not decided"))?;
        let go = format!(
            "/pitstop:go {}",
            order["nonce"].as_str().unwrap_or_default()
        );
        self.take_over(text, "manual")
            .and_then(|()| self.submit(go, "plugin"))
            .map_err(|error| error.to_string())
    }
}
