//! What becomes of the human's rules: reboot after reboot through the product, with agents that keep notes and agents that do not.
//!
//! The agent is made up: its sessions are written as the client writes them. What carries the rules from one session to the next
//! is the product alone, and what the agent itself puts into its notes.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::product::Product;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// How many reboots follow one another.
const REBOOTS: usize = 5;

/// How many prompts there are between two reboots.
const ROUNDS: [usize; 3] = [2, 6, 12];

/// What the human says once, in the first session: one sentence each.
const SAID: [(&str, &str); 6] = [
    (
        "goal",
        "Build a small command-line feed reader that keeps its entries in one file.",
    ),
    (
        "safety rule",
        "Never delete or overwrite anything below ~/feeds, it is the only copy.",
    ),
    (
        "hard constraint",
        "The binary must stay under 4 MB and start in less than 50 ms.",
    ),
    (
        "preference",
        "I prefer small commits with a test in each of them.",
    ),
    (
        "decision",
        "We use SQLite instead of JSON files because two processes write at once.",
    ),
    (
        "rejected way",
        "Polling every minute was rejected, it got us banned by two servers.",
    ),
];

/// What a longer prompt ends with.
const LAST_SENTENCE: &str = "Only ever talk to the staging server, the other one is live.";

/// The length of that prompt, in bytes.
const LONG: usize = 900;

/// What the agent does with its notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agent {
    /// It keeps none.
    Silent,
    /// It writes the rules down and keeps them.
    Noting,
    /// It writes its notes new each turn, and only how far it is.
    Rewriting,
}

/// How many of the human's sentences stand word for word in each handoff.
struct Kept {
    by_reboot: [usize; REBOOTS],
    /// In how many handoffs each sentence is missing.
    missing: Vec<usize>,
}

/// Prints the table.
pub fn print() -> Outcome<()> {
    println!(
        "\n| the human's sentences, word for word | prompts a round | of {} in handoff 1 to {REBOOTS} | the last of {LONG} bytes, in how many of {REBOOTS} |",
        SAID.len()
    );
    println!("|---|---|---|---|");
    let mut missing = [0; SAID.len()];
    for agent in [Agent::Silent, Agent::Noting, Agent::Rewriting] {
        for prompts in ROUNDS {
            let kept = chain(agent, prompts, &spread(prompts), &SAID)?;
            let long = chain(agent, prompts, &long(), &[("", LAST_SENTENCE)])?;
            let name = format!("{agent:?} agent").to_lowercase();
            let counts = kept.by_reboot.map(|count| count.to_string()).join(" · ");
            let found: usize = long.by_reboot.iter().sum();
            println!("| {name} | {prompts} | {counts} | {found} |");
            for (all, one) in missing.iter_mut().zip(kept.missing) {
                *all += one;
            }
        }
    }
    let handoffs = 3 * ROUNDS.len() * REBOOTS;
    let stand = SAID.len() * handoffs - missing.iter().sum::<usize>();
    println!("| all | | {stand} of {} | |", SAID.len() * handoffs);
    let lost = SAID
        .iter()
        .zip(missing)
        .map(|((name, _), count)| format!("{name} {count}"));
    let lost: Vec<_> = lost.collect();
    println!("\nMissing, of {handoffs} handoffs: {}.", lost.join(", "));
    Ok(())
}

/// The sentences over the prompts of the first session: the goal by itself, the others after it.
fn spread(prompts: usize) -> Vec<String> {
    let sentences = SAID.map(|(_, text)| text);
    let (goal, others) = sentences.split_at(1);
    let each = others.len().div_ceil(prompts - 1);
    let others = others.chunks(each).map(|some| some.join(" "));
    std::iter::once(goal.join(" ")).chain(others).collect()
}

/// A goal, and then a prompt in which much is said before the sentence that counts.
fn long() -> Vec<String> {
    let mut text = "First a word on the feeds.".to_owned();
    let room = LONG - LAST_SENTENCE.len() - 1;
    for number in 1.. {
        let sentence =
            format!(" Feed {number} of the list has entries with dates of its own kind.");
        if text.len() + sentence.len() > room {
            break;
        }
        text.push_str(&sentence);
    }
    let blank = " ".repeat(room - text.len());
    vec![
        SAID[0].1.to_owned(),
        format!("{text}{blank} {LAST_SENTENCE}"),
    ]
}

/// Runs sessions with reboots between them and looks for the sentences in each handoff.
fn chain(
    agent: Agent,
    prompts: usize,
    first: &[String],
    sentences: &[(&'static str, &str)],
) -> Outcome<Kept> {
    let directory = tempfile::tempdir()?;
    let path = |round: usize| directory.path().join(format!("session-{round}.jsonl"));
    let mut product = Product::new(&path(0), "/p")?;
    let mut kept = Kept {
        by_reboot: [0; REBOOTS],
        missing: vec![0; sentences.len()],
    };
    let mut handed_over = None;
    for round in 0..REBOOTS {
        let mut log = Log::new(path(round), round);
        let mut play = |number, prompt, announced| {
            let played = Turn {
                agent,
                round,
                number,
                prompt,
                sentences,
            };
            turn(&mut product, &mut log, &played, announced)
        };
        if let Some(handoff) = handed_over.take() {
            play(0, handoff, false)?;
        }
        for number in 0..prompts {
            let prompt = match first.get(number).filter(|_| round == 0) {
                Some(prompt) => prompt.clone(),
                None => format!("Go on with part {} of step {}.", number + 1, round + 1),
            };
            play(number + 1, prompt, true)?;
        }
        let handoff = product.reboot(&path(round + 1))?;
        let words = plain(&handoff);
        for (missing, (_, sentence)) in kept.missing.iter_mut().zip(sentences) {
            if words.contains(&plain(sentence)) {
                kept.by_reboot[round] += 1;
            } else {
                *missing += 1;
            }
        }
        handed_over = Some(handoff);
    }
    Ok(kept)
}

/// Runs the turns of another program's session (`turns.jsonl` in `place`) through as many reboots, and writes each handoff
/// beside them. The sessions that follow have one turn of work each.
pub fn foreign(place: &Path) -> Outcome<()> {
    let path = |round: usize| place.join(format!("session-{round}.jsonl"));
    let mut product = Product::new(&path(0), "/p")?;
    let mut log = Log::new(path(0), 0);
    for line in fs::read_to_string(place.join("turns.jsonl"))?.lines() {
        let turn: Value = serde_json::from_str(line)?;
        let text = turn["text"].as_str().ok_or("a turn without its text")?;
        match turn["role"].as_str() {
            Some("user") => {
                product.prompted(text)?;
                log.prompt(text);
            }
            Some("assistant") => {
                log.say(text);
                log.write()?;
                product.read()?;
                product.turn_ended(Some(text))?;
            }
            // What the client adds for the model is not the session's.
            _ => {}
        }
    }
    log.write()?;
    product.read()?;
    for round in 1..=REBOOTS {
        let handoff = product.reboot(&path(round))?;
        fs::write(place.join(format!("handoff-{round}.md")), &handoff)?;
        let mut log = Log::new(path(round), round);
        let work = Turn {
            agent: Agent::Silent,
            round,
            number: 1,
            prompt: handoff,
            sentences: &[],
        };
        turn(&mut product, &mut log, &work, false)?;
    }
    Ok(())
}

/// A text with single blanks: where its lines break does not count.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

struct Turn<'a> {
    agent: Agent,
    round: usize,
    number: usize,
    prompt: String,
    sentences: &'a [(&'static str, &'a str)],
}

/// A turn of the agent's: it reads, edits, runs the tests and says what it did.
fn turn(product: &mut Product, log: &mut Log, turn: &Turn<'_>, announced: bool) -> Outcome<()> {
    let (round, number) = (turn.round, turn.number);
    if announced {
        product.prompted(&turn.prompt)?;
    }
    log.prompt(&turn.prompt);
    let file = format!("/p/src/step_{round}/part_{number}.rs");
    let body = format!("pub fn part_{number}_of_step_{round}() -> usize {{\n    {number}\n}}\n");
    log.call("Read", &json!({ "file_path": file }), &body);
    let edit = json!({ "file_path": file, "old_string": body, "new_string": body.replace("usize", "u64") });
    log.call("Edit", &edit, "The file has been updated successfully.");
    let output = format!("running {number} tests\ntest result: ok. {number} passed; 0 failed");
    log.call("Bash", &json!({ "command": "cargo test" }), &output);
    let mut said = format!(
        "Part {number} of step {} is done: part_{number}_of_step_{round} returns u64 now.",
        round + 1
    );
    match turn.agent {
        Agent::Silent => {}
        Agent::Noting => {
            said.push_str("\n\nSCRATCHPAD:\n# Scratchpad\n\n## Rules\n");
            for (_, sentence) in turn.sentences {
                said.push_str(&format!("- {sentence}\n"));
            }
            said.push_str(&format!(
                "\n## Current Plan\n- [x] part {number} of step {}\n",
                round + 1
            ));
        }
        Agent::Rewriting => {
            said.push_str(&format!(
                "\n\nSCRATCHPAD:\n# Scratchpad\n\n## Current Plan\n- [x] part {number} of step {}\n- [ ] the next part\n",
                round + 1
            ));
        }
    }
    log.say(&said);
    log.write()?;
    product.read()?;
    product.turn_ended(Some(&said))
}

/// A session's transcript, as the client writes it.
struct Log {
    path: PathBuf,
    round: usize,
    lines: Vec<Value>,
    calls: usize,
}

impl Log {
    fn new(path: PathBuf, round: usize) -> Self {
        Self {
            path,
            round,
            lines: Vec::new(),
            calls: 0,
        }
    }

    fn push(&mut self, kind: &str, message: &Value) -> &mut Value {
        let (number, parent) = (
            self.lines.len(),
            self.lines.last().map(|line| line["uuid"].clone()),
        );
        self.lines.push(json!({
            "parentUuid": parent,
            "isSidechain": false,
            "userType": "external",
            "cwd": "/p",
            "sessionId": format!("00000000-0000-4000-8000-{:012}", self.round + 1),
            "version": "2.1.330",
            "gitBranch": "main",
            "type": kind,
            "message": message,
            "uuid": format!("00000000-0000-4000-{:04}-{number:012}", 9000 + self.round),
            "timestamp": format!("2026-11-18T{:02}:{:02}:{:02}.000Z", 11 + self.round, number / 60 % 60, number % 60),
        }));
        let last = self.lines.len() - 1;
        &mut self.lines[last]
    }

    fn prompt(&mut self, text: &str) {
        let line = self.push("user", &json!({ "role": "user", "content": text }));
        line["origin"] = json!({ "kind": "human" });
        line["promptSource"] = json!("typed");
    }

    fn say(&mut self, text: &str) {
        let block = json!({ "type": "text", "text": text });
        self.assistant(&block);
    }

    fn assistant(&mut self, block: &Value) {
        let id = format!("msg_{:04}_{:06}", self.round, self.lines.len());
        let usage = json!({ "input_tokens": 10, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 20_000, "output_tokens": 50 });
        self.push(
            "assistant",
            &json!({
                "id": id, "type": "message", "role": "assistant", "model": "claude-opus-4-8",
                "content": [block], "usage": usage,
            }),
        );
    }

    fn call(&mut self, tool: &str, input: &Value, output: &str) {
        self.calls += 1;
        let id = format!("toolu_{:04}_{:06}", self.round, self.calls);
        self.assistant(&json!({ "type": "tool_use", "id": id, "name": tool, "input": input }));
        let result = json!({ "type": "tool_result", "tool_use_id": id, "content": output });
        let line = self.push("user", &json!({ "role": "user", "content": [result] }));
        if tool == "Bash" {
            line["toolUseResult"] = json!({ "stdout": output, "stderr": "", "interrupted": false });
        }
    }

    fn write(&self) -> Outcome<()> {
        let lines: Vec<String> = self.lines.iter().map(Value::to_string).collect();
        Ok(fs::write(&self.path, lines.join("\n") + "\n")?)
    }
}
