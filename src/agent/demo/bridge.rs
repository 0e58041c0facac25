//! The demo's side of the bridge: it reports and takes orders by the protocol of the mods (`assets/bridge/`), so that all of it
//! can be seen and tested without the client.
//!
//! One thread polls and hands each order to the session's loop; another sends facts, in their order. When nothing listens both
//! end, and the session goes on without them.

use std::{
    io::{self, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use uuid::Uuid;

use super::{BASE_LOAD, Start, session::Session, terminal::Incoming};
use crate::transcript::SessionId;

/// The protocol that it speaks.
const PROTOCOL: u32 = 1;

/// The version of a client that speaks it.
pub const CLIENT: &str = "2.1.330";

/// How long one call may take: longer than a poll is held.
const CALL_LIMIT: Duration = Duration::from_secs(30);

/// An order for the session's loop, and where its outcome goes.
#[derive(Debug)]
pub struct Asked {
    pub order: Value,
    pub outcome: Sender<Value>,
}

/// Where facts go.
#[derive(Debug)]
pub struct Bridge {
    facts: Sender<Value>,
    peer: Peer,
    /// The turn that runs.
    turn: Option<String>,
    /// The prompt box as it was reported last.
    draft: String,
}

/// A connection to the supervisor, by the first file there is of those that its variable names.
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

    /// Reports until the session is over or nothing listens any more.
    fn serve(&self, to: &Sender<Incoming>, facts: Receiver<Value>) -> io::Result<()> {
        let hello = self.post("hello", json!({ "protocol": PROTOCOL, "client": CLIENT }))?;
        if hello["accepted"] != true {
            return Ok(());
        }
        self.post("answers", json!({}))?;
        let peer = self.clone();
        thread::spawn(move || {
            for fact in facts {
                // One that cannot be sent is worth nothing later.
                let _ = peer.post("fact", fact);
            }
        });
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
            if to.send(Incoming::Order(Asked { order, outcome })).is_err() {
                return Ok(());
            }
            let Ok(mut answer) = done.recv() else {
                return Ok(());
            };
            answer["order"] = number;
            self.post("answer", answer)?;
        }
    }
}

impl Bridge {
    /// A bridge, if this session is started with one.
    pub fn start(start: &Start, id: SessionId, to: &Sender<Incoming>) -> Option<Self> {
        let files = start.settings["env"]["PITSTOP_BRIDGE"].as_str();
        let files = files.filter(|_| start.mods)?;
        let peer = Peer {
            files: files.lines().map(PathBuf::from).collect(),
            instance: Uuid::new_v4().simple().to_string(),
            session: Arc::new(Mutex::new(id)),
        };
        let (facts, reported) = channel();
        let (to, serving) = (to.clone(), peer.clone());
        thread::spawn(move || {
            // The supervisor is gone, or does not want it: the session goes on without.
            let _ = serving.serve(&to, reported);
        });
        Some(Self {
            facts,
            peer,
            turn: None,
            draft: String::new(),
        })
    }

    fn report(&self, fact: Value) {
        // Nothing listens any more, then.
        let _ = self.facts.send(fact);
    }
}

/// The cursor behind a text, in UTF-16 units.
fn end(text: &str) -> usize {
    text.encode_utf16().count()
}

impl Session {
    /// The process is in this session now.
    pub(super) fn report_session(&mut self, source: &str) {
        let id = self.id;
        if let Some(bridge) = &mut self.bridge {
            *bridge
                .peer
                .session
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = id;
            bridge.report(json!({ "fact": "session_started", "source": source }));
        }
        self.report_usage();
    }

    /// A prompt was submitted by this origin.
    pub(super) fn report_prompt(&mut self, prompt: &str, origin: &str) {
        if let Some(bridge) = &mut self.bridge {
            let text: String = prompt.chars().take(1_000).collect();
            let fact = json!({ "fact": "prompt_submitted", "origin": origin, "text": text });
            bridge.report(fact);
        }
    }

    /// A turn has begun.
    pub(super) fn report_turn(&mut self) {
        if let Some(bridge) = &mut self.bridge
            && bridge.turn.is_none()
        {
            let turn = Uuid::new_v4().to_string();
            bridge.report(json!({ "fact": "turn_started", "turn": turn }));
            bridge.turn = Some(turn);
        }
    }

    /// The turn has ended like this.
    pub(super) fn report_turn_end(&mut self, reason: &str) {
        let Some(bridge) = &mut self.bridge else {
            return;
        };
        if let Some(turn) = bridge.turn.take() {
            bridge.report(json!({ "fact": "turn_ended", "turn": turn, "reason": reason }));
            self.at_next_step = None;
        }
        self.report_usage();
    }

    fn report_usage(&self) {
        let Some(bridge) = &self.bridge else {
            return;
        };
        let (used, window) = (self.context, self.window());
        let row = |name: &str, tokens: u64, kind: &str| json!({ "name": name, "tokens": tokens, "kind": kind });
        bridge.report(json!({
            "fact": "usage", "used": self.has_usage.then_some(used), "window": window, "cost_usd": self.cost,
            "categories": [
                row("System prompt", BASE_LOAD, "used"),
                row("Messages", used.saturating_sub(BASE_LOAD), "used"),
                row("Free space", window.saturating_sub(used), "free"),
            ],
        }));
    }

    /// The prompt box may hold something else than before.
    pub(super) fn report_draft(&mut self) {
        if let Some(bridge) = &mut self.bridge
            && bridge.draft != self.draft
        {
            bridge.draft.clone_from(&self.draft);
            let fact =
                json!({ "fact": "draft_changed", "text": self.draft, "cursor": end(&self.draft) });
            bridge.report(fact);
        }
    }

    /// Carries an order out.
    pub(super) fn ordered(&mut self, asked: Asked) -> io::Result<()> {
        let Asked { order, outcome } = asked;
        let text = order["text"].as_str().unwrap_or_default().to_owned();
        let filled = |refusal: Option<&str>| json!({ "outcome": "filled", "filled": refusal.is_none(), "refusal": refusal });
        let answer = match order["kind"].as_str().unwrap_or_default() {
            "read_draft" => {
                json!({ "outcome": "draft", "text": self.draft, "cursor": end(&self.draft) })
            }
            "probe" => filled(None),
            "fill_draft" => {
                let refusal = (!self.draft.is_empty()).then_some("draft");
                if refusal.is_none() {
                    self.draft = text;
                }
                filled(refusal)
            }
            "replace_conversation" if order["when"] == "next_step" => {
                if self.turn.is_some() {
                    self.at_next_step = Some(order["id"].clone());
                    json!({ "outcome": "lowered" })
                } else {
                    json!({ "outcome": "failed", "why": "no turn runs" })
                }
            }
            "restore_trigger" => {
                self.at_next_step = None;
                json!({ "outcome": "restored" })
            }
            "replace_conversation" => match self.replace(&order)? {
                Some(why) => json!({ "outcome": "failed", "why": why }),
                None => json!({ "outcome": "replaced" }),
            },
            kind => {
                json!({ "outcome": "failed", "why": format!("the demo does not know the order {kind}") })
            }
        };
        // The supervisor is gone, then.
        let _ = outcome.send(answer);
        Ok(())
    }

    /// Puts what the supervisor gives in the place of the conversation between two steps of the turn, if it has ordered that; says whether
    /// that was done.
    pub(super) fn replaced_in_turn(&mut self) -> io::Result<bool> {
        let (Some(order), Some(bridge)) = (self.at_next_step.take(), &self.bridge) else {
            return Ok(false);
        };
        self.compactions += 1;
        let asked = json!({ "compaction": self.compactions, "trigger": "auto", "order": order });
        let decided = bridge.peer.post("compact", asked).unwrap_or_default();
        let Some(text) = decided["text"].as_str() else {
            return Ok(false);
        };
        self.take_over(text, "auto")?;
        Ok(true)
    }

    /// Puts what the supervisor gives for this order in the place of the conversation, and begins a turn; gives why not, if so.
    fn replace(&mut self, order: &Value) -> io::Result<Option<String>> {
        if self.turn.is_some() && order["when"] == "interrupting" {
            self.interrupt();
        }
        if self.is_busy() {
            return Ok(Some("a turn runs".to_owned()));
        }
        if order["answers"] == false {
            return Ok(Some("nothing answers compactions".to_owned()));
        }
        let Some(bridge) = &self.bridge else {
            return Ok(Some("there is no bridge".to_owned()));
        };
        let asked = json!({ "compaction": 0, "trigger": "plugin", "order": order["id"] });
        let decided = match bridge.peer.post("compact", asked) {
            Ok(decided) => decided,
            Err(error) => return Ok(Some(error.to_string())),
        };
        let Some(text) = decided["text"].as_str() else {
            let why = decided["why"].as_str().unwrap_or("not decided");
            return Ok(Some(why.to_owned()));
        };
        let nonce = order["nonce"].as_str().unwrap_or_default();
        self.begin_with(text, &format!("/pitstop:go {nonce}"))?;
        Ok(None)
    }
}
