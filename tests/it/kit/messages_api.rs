//! A stand-in Messages API on loopback, so that the real client runs with no account and no network.
//!
//! It says what the script says and remembers what it was asked, or it plays a [`Shape`]. Main calls carry `tools`; the rest
//! are side jobs (titles and such) and take nothing from either.

// The kit is shared by tests and an example, and each uses a part of it.
#![allow(dead_code)]

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use chrono::{SecondsFormat, Utc};
use serde_json::{Value, json};

use super::{
    played::Played,
    player::{Player, Reply},
    prompt_cache::PromptCache,
    shape::Shape,
};

/// What one main call is answered with.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Text, and the turn is over.
    Text(String),
    /// A tool call; the client runs it and calls again.
    Tool { name: String, input: Value },
    /// Blocks of content as they stand: text, and calls of tools with ids of their own.
    Blocks(Vec<Value>),
    /// An HTTP error, such as 429 or 529.
    Error {
        status: u16,
        kind: String,
        message: String,
    },
    /// A usage limit that is reached, and that resets so long after the call.
    Limited(Duration),
    /// The connection is closed without a word.
    Close,
    /// The stream begins, and the connection is closed in the middle of a text.
    Cut,
    /// The stream begins, then says nothing until it is dropped or the client goes.
    Stall,
}

impl Answer {
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub fn shell(command: &str) -> Self {
        Self::Tool {
            name: "Bash".into(),
            input: json!({ "command": command }),
        }
    }
}

/// The answers in a conversation that begins with a certain text.
struct Script {
    begins: String,
    answers: VecDeque<Answer>,
}

#[derive(Default)]
struct State {
    answers: VecDeque<Answer>,
    scripts: Vec<Script>,
    usage: VecDeque<u64>,
    last_usage: u64,
    player: Option<Player>,
    cache: Option<PromptCache>,
    main: Vec<Value>,
    side: Vec<Value>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    ids: AtomicU64,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The running stand-in. Its threads end with the process.
pub struct MessagesApi {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl MessagesApi {
    /// Listens on a free port of loopback.
    pub fn start() -> io::Result<Self> {
        Self::listen(0)
    }

    /// Listens on `port` of loopback; 0 picks a free one.
    pub fn listen(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                last_usage: 18_000,
                ..State::default()
            }),
            changed: Condvar::new(),
            ids: AtomicU64::new(1),
        });
        let for_threads = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&for_threads);
                // A client that goes away in the middle is its own affair.
                thread::spawn(move || drop(serve(&shared, &stream)));
            }
        });
        Ok(Self { address, shared })
    }

    /// The value for `ANTHROPIC_BASE_URL`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The context, in tokens, that each further main call reports; the last one stays.
    pub fn report_usage(&self, usage: impl IntoIterator<Item = u64>) {
        self.shared.state().usage.extend(usage);
    }

    /// From now on each scripted main call reports what it reads from a prompt cache, and what it writes to it.
    pub fn keep_cache(&self) {
        self.shared.state().cache = Some(PromptCache::default());
    }

    /// What further main calls are answered with; when the list is empty, a short text.
    pub fn answer(&self, answers: impl IntoIterator<Item = Answer>) {
        self.shared.state().answers.extend(answers);
    }

    /// What is answered in a conversation whose first prompt contains this, such as a subagent's; the rest of the script is
    /// for the others.
    pub fn answer_in(&self, begins: &str, answers: impl IntoIterator<Item = Answer>) {
        self.shared.state().scripts.push(Script {
            begins: begins.to_owned(),
            answers: answers.into_iter().collect(),
        });
    }

    /// Answers all further main calls by the steps of a shape, in this project; they are in [`Self::played`] and nowhere else.
    #[track_caller]
    pub fn play(&self, shape: &Shape, project: &Path) {
        let player = Player::new(shape, project).expect("the files of the shape");
        self.shared.state().player = Some(player);
    }

    /// What was played so far.
    #[track_caller]
    pub fn played(&self) -> Played {
        let state = self.shared.state();
        state.player.as_ref().expect("a shape is played").played()
    }

    /// Waits until a step was given, by its number from 1, at most `limit`; returns what was played.
    #[track_caller]
    pub fn wait_for_step(&self, step: usize, limit: Duration) -> Played {
        self.wait_while(limit, |state| {
            let player = state.player.as_ref().expect("a shape is played");
            !player.has_given(step)
        });
        self.played()
    }

    /// The bodies of all main calls so far; where a shape is played, of those with which a talk began.
    pub fn main_calls(&self) -> Vec<Value> {
        let state = self.shared.state();
        let played = state.player.as_ref().map(Player::played);
        let calls = played.into_iter().flat_map(|played| played.calls);
        let begun = calls.filter_map(|call| call.body);
        state.main.iter().cloned().chain(begun).collect()
    }

    /// The bodies of all side jobs so far.
    pub fn side_calls(&self) -> Vec<Value> {
        self.shared.state().side.clone()
    }

    /// Waits until there are `count` main calls, at most `limit`; returns those there are.
    pub fn wait_for_calls(&self, count: usize, limit: Duration) -> Vec<Value> {
        self.wait_while(limit, |state| state.main.len() < count);
        self.main_calls()
    }

    fn wait_while(&self, limit: Duration, holds: impl Fn(&State) -> bool) {
        let state = self.shared.state();
        let changed = &self.shared.changed;
        drop(changed.wait_timeout_while(state, limit, |state| holds(state)));
    }
}

/// All texts of the user's in a request's messages, in order, without the client's reminders.
pub fn user_texts(call: &Value) -> Vec<String> {
    let messages = call["messages"].as_array().into_iter().flatten();
    messages
        .filter(|message| message["role"] == "user")
        .flat_map(|message| match &message["content"] {
            Value::String(text) => vec![text.clone()],
            Value::Array(blocks) => blocks
                .iter()
                .filter_map(|block| block["text"].as_str().map(str::to_owned))
                .collect(),
            _ => Vec::new(),
        })
        .filter(|text| !text.starts_with("<system-reminder>"))
        .collect()
}

struct Request {
    method: String,
    path: String,
    body: Vec<u8>,
}

fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim_end().split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Request { method, path, body }))
}

fn serve(shared: &Shared, stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut out = stream;
    while let Some(request) = read_request(&mut reader)? {
        let is_call = request.method == "POST" && request.path.starts_with("/v1/messages");
        if request.method == "HEAD" {
            out.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
        } else if request.path.contains("/count_tokens") {
            json_reply(out, 200, &json!({ "input_tokens": 1000 }))?;
        } else if is_call {
            let body = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
            if !answer_call(shared, out, &body)? {
                return Ok(());
            }
        } else {
            json_reply(out, 200, &json!({}))?;
        }
    }
    Ok(())
}

fn json_reply(mut out: impl Write, status: u16, body: &Value) -> io::Result<()> {
    let body = body.to_string();
    let length = body.len();
    write!(
        out,
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// Answers one call; false when the connection is used up.
fn answer_call(shared: &Shared, out: &TcpStream, body: &Value) -> io::Result<bool> {
    let is_main = body["tools"]
        .as_array()
        .is_some_and(|tools| !tools.is_empty());
    let Some(reply) = is_main.then(|| play(shared, body)).flatten() else {
        let (answer, tokens) = next_answer(shared, body, is_main);
        let usage = cached_usage(shared, body, &answer).filter(|_| is_main);
        return give(
            shared,
            out,
            body,
            &answer,
            &usage.unwrap_or_else(|| usage_of(tokens)),
        );
    };
    thread::sleep(reply.pause);
    let given = if is_gone(out) {
        Err(io::ErrorKind::ConnectionAborted.into())
    } else {
        give(shared, out, body, &reply.answer, &usage_of(reply.tokens))
    };
    let ended = given.is_ok().then(Instant::now);
    if let Some(player) = &mut shared.state().player {
        player.ended(reply.number, ended);
    }
    shared.changed.notify_all();
    given
}

/// Whether the client has closed its side, as it does when it is ended or its turn is stopped.
fn is_gone(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).is_err()
        || matches!(stream.peek(&mut [0]), Ok(0))
        || stream.set_nonblocking(false).is_err()
}

/// The usage of a call with so many tokens of context.
fn usage_of(tokens: u64) -> Value {
    json!({
        "input_tokens": 3, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": tokens.saturating_sub(3), "output_tokens": 1,
    })
}

/// The usage of a call by the prompt cache, if there is one.
fn cached_usage(shared: &Shared, body: &Value, answer: &Answer) -> Option<Value> {
    let mut usage = shared.state().cache.as_mut()?.take(body);
    let said = match answer {
        Answer::Text(text) => text.len(),
        Answer::Tool { input, .. } => input.to_string().len(),
        _ => 0,
    };
    usage["output_tokens"] = json!(1 + said / 4);
    Some(usage)
}

/// Writes an answer; false when the connection is used up.
fn give(
    shared: &Shared,
    out: &TcpStream,
    body: &Value,
    answer: &Answer,
    usage: &Value,
) -> io::Result<bool> {
    let id = shared.ids.fetch_add(1, Ordering::Relaxed);
    let blocks = match answer {
        Answer::Error {
            status,
            kind,
            message,
        } => {
            let error = json!({ "type": "error", "error": { "type": kind, "message": message } });
            json_reply(out, *status, &error)?;
            return Ok(true);
        }
        Answer::Limited(resets_in) => {
            let resets = Utc::now() + *resets_in;
            let resets = resets.to_rfc3339_opts(SecondsFormat::Secs, true);
            let message = format!("5-hour limit reached, resets at {resets}");
            let error = json!({ "type": "rate_limit_error", "message": message });
            json_reply(out, 429, &json!({ "type": "error", "error": error }))?;
            return Ok(true);
        }
        Answer::Close => return Ok(false),
        Answer::Text(text) => vec![json!({ "type": "text", "text": text })],
        Answer::Tool { name, input } => vec![json!({
            "type": "tool_use", "id": format!("toolu_kit{id:08}"), "name": name, "input": input,
        })],
        Answer::Blocks(blocks) => blocks.clone(),
        Answer::Cut | Answer::Stall => Vec::new(),
    };
    let reason = if blocks.iter().any(|block| block["type"] == "tool_use") {
        "tool_use"
    } else {
        "end_turn"
    };
    let message = |content: &[Value], stop: Value| {
        json!({
            "id": format!("msg_kit{id:08}"), "type": "message", "role": "assistant",
            "model": body["model"], "content": content, "stop_reason": stop, "stop_sequence": null,
            "usage": usage,
        })
    };
    if body["stream"] != true {
        json_reply(out, 200, &message(&blocks, json!(reason)))?;
        return Ok(true);
    }
    let mut stream = Stream::begin(out, &message(&[], Value::Null))?;
    match answer {
        Answer::Cut => stream.open(0, &json!({ "type": "text", "text": "This will be cut" }))?,
        // Reading ends when the client gives up.
        Answer::Stall => drop(stream.out.read(&mut [0])?),
        _ => stream.finish(&blocks, reason)?,
    }
    Ok(false)
}

/// What the player says to a main call, where one plays.
fn play(shared: &Shared, body: &Value) -> Option<Reply> {
    let mut state = shared.state();
    let player = state.player.as_mut()?;
    Some(player.answer(body, Instant::now()))
}

/// What the script says to this call, and the context it reports; remembers the call.
fn next_answer(shared: &Shared, body: &Value, is_main: bool) -> (Answer, u64) {
    let mut state = shared.state();
    if !is_main {
        state.side.push(body.clone());
        return (Answer::text("A title"), 10);
    }
    state.main.push(body.clone());
    shared.changed.notify_all();
    if let Some(usage) = state.usage.pop_front() {
        state.last_usage = usage;
    }
    let begins = user_texts(body).into_iter().next().unwrap_or_default();
    let script = state
        .scripts
        .iter_mut()
        .find(|script| begins.contains(&script.begins));
    let answer = match script {
        Some(script) => script.answers.pop_front(),
        None => state.answers.pop_front(),
    };
    (
        answer.unwrap_or_else(|| Answer::text("Understood.")),
        state.last_usage,
    )
}

/// A message that is given event by event.
struct Stream<'a> {
    out: &'a TcpStream,
}

impl<'a> Stream<'a> {
    fn begin(mut out: &'a TcpStream, message: &Value) -> io::Result<Self> {
        out.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
        )?;
        let mut stream = Self { out };
        stream.event("message_start", json!({ "message": message }))?;
        Ok(stream)
    }

    fn event(&mut self, kind: &str, mut data: Value) -> io::Result<()> {
        data["type"] = json!(kind);
        self.out
            .write_all(format!("event: {kind}\ndata: {data}\n\n").as_bytes())
    }

    /// Begins a block and says what it holds.
    fn open(&mut self, index: usize, block: &Value) -> io::Result<()> {
        let mut opening = block.clone();
        let delta = if block["type"] == "text" {
            opening["text"] = json!("");
            json!({ "type": "text_delta", "text": block["text"] })
        } else {
            opening["input"] = json!({});
            json!({ "type": "input_json_delta", "partial_json": block["input"].to_string() })
        };
        let opening = json!({ "index": index, "content_block": opening });
        self.event("content_block_start", opening)?;
        let delta = json!({ "index": index, "delta": delta });
        self.event("content_block_delta", delta)
    }

    fn finish(mut self, blocks: &[Value], reason: &str) -> io::Result<()> {
        for (index, block) in blocks.iter().enumerate() {
            self.open(index, block)?;
            self.event("content_block_stop", json!({ "index": index }))?;
        }
        let delta = json!({ "stop_reason": reason, "stop_sequence": null });
        let usage = json!({ "output_tokens": 20 });
        self.event("message_delta", json!({ "delta": delta, "usage": usage }))?;
        self.event("message_stop", json!({}))
    }
}
