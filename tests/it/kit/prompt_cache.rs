//! The prompt cache of the service, as its documentation describes it: what a request reads from it, and what it writes.
//!
//! A request is a row of blocks: tools, system prompt, messages. Up to each block that is marked with `cache_control` the prefix is
//! kept. A later request reads the longest kept prefix that ends at one of its marks, or at most twenty blocks before one.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use serde_json::{Value, json};

/// The number of blocks before a mark at which a kept prefix is looked for.
const LOOK_BACK: usize = 20;

/// How the client begins a block of the system prompt that is for the service: it differs from session to session, and real sessions
/// read what follows it from the cache.
const FOR_THE_SERVICE: &str = "x-anthropic-billing-header";

/// The prefixes that are kept, by their hash. None is ever dropped: a test is over within the five minutes.
#[derive(Default)]
pub struct PromptCache(HashSet<u64>);

/// A block, as it ends the prefix up to it.
struct Block {
    prefix: u64,
    /// The tokens up to its end, at four bytes each.
    tokens: u64,
    marked: bool,
}

impl PromptCache {
    /// Takes a request, and returns the usage of its input.
    pub fn take(&mut self, request: &Value) -> Value {
        let blocks = blocks(request);
        let all = blocks.last().map_or(0, |block| block.tokens);
        let marks: Vec<usize> = (0..blocks.len()).filter(|at| blocks[*at].marked).collect();
        let looked_at = marks
            .iter()
            .rev()
            .flat_map(|mark| (mark.saturating_sub(LOOK_BACK)..=*mark).rev());
        let read = looked_at
            .filter(|at| self.0.contains(&blocks[*at].prefix))
            .map(|at| blocks[at].tokens)
            .max()
            .unwrap_or(0);
        let kept = marks.last().map_or(0, |mark| blocks[*mark].tokens);
        self.0.extend(marks.iter().map(|mark| blocks[*mark].prefix));
        json!({
            "input_tokens": all - kept.max(read), "cache_read_input_tokens": read,
            "cache_creation_input_tokens": kept.saturating_sub(read),
        })
    }
}

fn blocks(request: &Value) -> Vec<Block> {
    let list = |value: &Value| {
        value
            .as_array()
            .cloned()
            .unwrap_or_else(|| vec![value.clone()])
    };
    let messages = list(&request["messages"]);
    let said = messages.iter().flat_map(|message| {
        let role = message["role"].clone();
        list(&message["content"])
            .into_iter()
            .map(move |block| (role.clone(), block))
    });
    let named = |name: &str, value: &Value| {
        list(value)
            .into_iter()
            .map(|block| (json!(name), block))
            .collect::<Vec<_>>()
    };
    let before = [
        named("tools", &request["tools"]),
        named("system", &request["system"]),
    ]
    .concat();
    let mut hasher = DefaultHasher::new();
    let mut bytes = 0;
    let is_prompt = |block: &Value| {
        !block["text"]
            .as_str()
            .is_some_and(|text| text.starts_with(FOR_THE_SERVICE))
    };
    let all = before
        .into_iter()
        .chain(said)
        .filter(|(_, block)| is_prompt(block));
    all.map(|(place, mut block)| {
        let mark = block
            .as_object_mut()
            .and_then(|fields| fields.remove("cache_control"));
        // A text is the same, however it is written down.
        let text = block
            .as_str()
            .or(block["text"].as_str())
            .map_or_else(|| block.to_string(), str::to_owned);
        bytes += text.len() as u64;
        (place.to_string(), text).hash(&mut hasher);
        Block {
            prefix: hasher.finish(),
            tokens: bytes / 4,
            marked: mark.is_some(),
        }
    })
    .collect()
}
