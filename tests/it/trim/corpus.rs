//! Generated transcripts: each seed gives one, always the same.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// Where a session's id goes when the transcript is written out.
const SESSION: &str = "@@SESSION@@";

/// A transcript whose session's id can be chosen, and what is true of it.
pub struct Sample {
    template: Vec<u8>,
    /// The calls whose responses are in the context and hold anything.
    pub context: BTreeSet<String>,
    /// Bytes of a torn last line.
    pub torn: usize,
}

impl Sample {
    /// The transcript under this id; under the new one it is what a copy at level 0 must be.
    pub fn with_session(&self, session: &str) -> Vec<u8> {
        let whole = self.template.len() - self.torn;
        let is_copy = session == super::NEW;
        let text = if is_copy {
            &self.template[..whole]
        } else {
            &self.template
        };
        let mut bytes = Vec::new();
        let mut rest = text;
        while let Some(at) = memchr::memmem::find(rest, SESSION.as_bytes()) {
            bytes.extend_from_slice(&rest[..at]);
            bytes.extend_from_slice(session.as_bytes());
            rest = &rest[at + SESSION.len()..];
        }
        bytes.extend_from_slice(rest);
        if is_copy && !bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        bytes
    }
}

/// A small generator of numbers (xorshift), so that a seed means the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.roll(chances) == 0
    }
}

struct Writer {
    dice: Dice,
    bytes: Vec<u8>,
    /// The last record of the main chain.
    last: Option<String>,
    count: u64,
    used: u64,
    context: Vec<String>,
    /// Prompts that can be gone back to: the chain and the context there.
    marks: Vec<(Option<String>, usize)>,
}

/// The transcript of a seed.
pub fn sample(seed: u64) -> Sample {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..8 {
        dice.roll(2);
    }
    let mut writer = Writer {
        dice,
        bytes: Vec::new(),
        last: None,
        count: 0,
        used: 15_000,
        context: Vec::new(),
        marks: Vec::new(),
    };
    if writer.dice.one_in(8) {
        writer.last = Some("in-another-file".into());
    }
    let turns = 1 + writer.dice.roll(11);
    for _ in 0..turns {
        writer.turn();
    }
    let torn = writer.tear();
    Sample {
        template: writer.bytes,
        context: writer.context.into_iter().collect(),
        torn,
    }
}

impl Writer {
    fn turn(&mut self) {
        self.noise();
        if self.dice.one_in(12) {
            self.compact();
        } else if self.dice.one_in(12) && !self.marks.is_empty() {
            self.rewind();
        }
        self.marks.push((self.last.clone(), self.context.len()));
        let prompt = self.text(200);
        let content = if self.dice.one_in(3) {
            json!([{ "type": "text", "text": prompt }, { "type": "image", "source": { "data": "AAAA" } }])
        } else {
            json!(prompt)
        };
        self.main(json!({ "type": "user", "message": { "role": "user", "content": content } }));
        for _ in 0..self.dice.roll(4) {
            self.step();
            if self.dice.one_in(6) {
                self.sidechain();
            }
        }
        self.say(&json!({ "type": "text", "text": "done" }), None);
    }

    /// One message with one to three calls, and their responses.
    fn step(&mut self) {
        let message = self.id("msg");
        if self.dice.one_in(3) {
            self.say(
                &json!({ "type": "thinking", "thinking": "hm", "signature": "s" }),
                Some(&message),
            );
        }
        let mut calls = Vec::new();
        for _ in 0..=self.dice.roll(3) {
            let tool = self.id("toolu");
            self.say(&json!({ "type": "tool_use", "id": tool, "name": "Bash", "input": { "command": self.count } }), Some(&message));
            calls.push((tool, self.last.clone()));
            if self.dice.one_in(10) {
                self.noise();
            }
        }
        if calls.len() > 1 && self.dice.one_in(3) {
            let blocks: Vec<Value> = calls.iter().map(|(tool, _)| self.result(tool)).collect();
            let copy = self.text(80);
            self.main(json!({ "type": "user", "message": { "role": "user", "content": blocks }, "toolUseResult": copy }));
            return;
        }
        for (tool, call) in calls {
            // The response hangs on its own call.
            self.last = call;
            let block = self.result(&tool);
            let copy = json!({ "stdout": block["content"], "stderr": "", "interrupted": false });
            self.main(json!({ "type": "user", "message": { "role": "user", "content": [block] }, "toolUseResult": copy }));
        }
    }

    fn result(&mut self, tool: &str) -> Value {
        let (content, holds) = match self.dice.roll(12) {
            0 => (json!(""), false),
            1 => (json!("ok"), true),
            2 => {
                let text = self.text(200);
                let more = self.text(200);
                (
                    json!([{ "type": "text", "text": text }, { "type": "text", "text": more }]),
                    true,
                )
            }
            3 => {
                let data = "iVBOR".repeat(self.dice.roll(300) as usize);
                (
                    json!([{ "type": "image", "source": { "type": "base64", "data": data } }]),
                    true,
                )
            }
            4 => {
                let text = self.text(300);
                (
                    json!([{ "type": "text", "text": text }, { "type": "odd", "n": 1.5 }]),
                    true,
                )
            }
            5 => (
                json!([{ "type": "tool_reference", "tool_name": "x" }]),
                false,
            ),
            6 => (
                json!("\u{1b}[31m \"sessionId\":\"x\" \\ \u{0} 漢字 ".repeat(9)),
                true,
            ),
            _ => (json!(self.text(300)), true),
        };
        if holds {
            self.context.push(tool.to_owned());
        }
        let mut block = json!({ "tool_use_id": tool, "type": "tool_result", "content": content });
        if self.dice.one_in(5) {
            block["is_error"] = json!(self.dice.one_in(2));
        }
        block
    }

    fn say(&mut self, block: &Value, message: Option<&str>) {
        let message = message.map_or_else(|| self.id("msg"), str::to_owned);
        self.used += self.dice.roll(3_000);
        let usage = json!({ "input_tokens": 3, "cache_creation_input_tokens": 0, "cache_read_input_tokens": self.used, "output_tokens": 20 });
        let message = json!({ "id": message, "role": "assistant", "model": "claude-opus-4-6", "content": [block], "usage": usage });
        self.main(json!({ "type": "assistant", "message": message }));
    }

    fn compact(&mut self) {
        self.main(json!({ "parentUuid": null, "type": "system", "subtype": "compact_boundary" }));
        self.context.clear();
        self.marks.clear();
        self.used = 20_000;
    }

    /// Goes back to an earlier prompt: what was said since is out of the context.
    fn rewind(&mut self) {
        let at = self.dice.roll(self.marks.len() as u64) as usize;
        let (last, context) = self.marks[at].clone();
        self.marks.truncate(at);
        self.context.truncate(context);
        self.last = last;
    }

    fn sidechain(&mut self) {
        let (last, tool) = (self.last.clone(), self.id("side"));
        let call = json!({ "type": "tool_use", "id": tool, "name": "Bash", "input": {} });
        let usage = json!({ "input_tokens": 999_999 });
        self.main(json!({ "isSidechain": true, "type": "assistant", "message": { "id": "s", "model": "m", "content": [call], "usage": usage } }));
        let result =
            json!({ "type": "tool_result", "tool_use_id": tool, "content": self.text(500) });
        self.main(json!({ "isSidechain": true, "type": "user", "message": { "content": [result] }, "toolUseResult": "aside" }));
        self.last = last;
    }

    /// Lines that are none of our business.
    fn noise(&mut self) {
        match self.dice.roll(10) {
            0 => self.put(format!("{{\"type\":\"mode\",\"mode\":\"normal\",\"sessionId\":\"{SESSION}\"}}\n").as_bytes()),
            1 => self.put(b"{\"type\":\"file-history-snapshot\",\"snapshot\":{\"sessionId\":\"kept\",\"n\":1.0}}\n"),
            2 => self.put(b"\0\0\0\0"),
            3 => self.put(b"no json at all \xff\xfe\n"),
            4 => self.put(b"{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\"\n"),
            5 => self.put(b"\r\n \n"),
            6 => self.put(format!("{{ \"type\" : \"odd\\u0020one\" , \"sessionId\":\"{SESSION}\", \"x\":[ 1.50 , \"\\ud800\" ] }}\r\n").as_bytes()),
            7 => self.main(json!({ "type": "attachment", "attachment": { "content": "x" } })),
            8 => self.main(json!({ "type": "system", "subtype": "turn_duration", "isMeta": false })),
            _ => {}
        }
    }

    /// One record of the main chain (a sidechain puts the chain back itself).
    fn main(&mut self, mut record: Value) {
        let uuid = self.id("uuid");
        if record.get("parentUuid").is_none() {
            record["parentUuid"] = json!(self.last);
        }
        record["uuid"] = json!(uuid);
        record["sessionId"] = json!(SESSION);
        self.put(record.to_string().as_bytes());
        self.put(b"\n");
        self.last = Some(uuid);
    }

    /// Sometimes leaves a last line without its end; returns how much of it is torn.
    fn tear(&mut self) -> usize {
        match self.dice.roll(4) {
            0 => {
                let torn = b"{\"type\":\"assistant\",\"message\":{\"id\":\"torn";
                self.put(torn);
                torn.len()
            }
            1 => {
                while self.bytes.last() == Some(&b'\n') {
                    self.bytes.pop();
                }
                0
            }
            _ => 0,
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn id(&mut self, kind: &str) -> String {
        self.count += 1;
        format!("{kind}_{:06}", self.count)
    }

    fn text(&mut self, most: u64) -> String {
        const WORDS: [&str; 7] = [
            "cargo ",
            "line\n",
            "\"quoted\" ",
            "ä漢 ",
            "\t",
            "}{\"type\":\"user\" ",
            "ok ",
        ];
        let mut text = "out: ".to_owned();
        for _ in 0..=(self.dice.roll(most) / 5) {
            text.push_str(WORDS[self.dice.roll(7) as usize]);
        }
        text
    }
}
