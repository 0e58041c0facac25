//! The human's own words in a transcript: their prompts, word for word, without what was pasted into them.
//!
//! | counts | does not count |
//! |---|---|
//! | prompts, also those that waited while the agent worked, and commands that begin a turn or have words behind them | text of the client (`isMeta`, an origin that is not `human`, tags) |
//! | the reason given when a call was refused | words that a tool claims to be the human's |
//! | words that a handoff carried over: its objective, its requests, its list of prompts | the rest of a handoff, and the prompts of a run except for its task |
//! | | prompts that the client gives by itself: scheduled ones, "Goal set: …" |
//! | | prompts taken back out of the queue; a subagent's conversation, results of tools |

use std::collections::{BTreeSet, VecDeque};

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    commands::{ShellMode, record_time, shell_mode},
    content::first_text,
    denial::{Denial, own_words, read_denial},
    prompts::{self, IMAGE_MARK, IMAGE_SOURCE},
    prose,
    record::STOPPED,
    words::{clipped, on_one_line, plain_key, split_ends},
};
use pitstop_base::{recent, redact};

/// The headings of the handoff's sections that hold the human's words.
pub const OBJECTIVE_HEADING: &str = "## Objective";
/// The heading of the very first prompt, where it is not the objective.
pub const FIRST_HEADING: &str = "## First request";
/// The heading of the latest prompt.
pub const LATEST_HEADING: &str = "## Latest request";
/// The heading of the list of prompts.
pub const PROMPTS_HEADING: &str = "## What the human said";

/// The client's stamp on the result of a call that the human refused.
const REFUSED: &[u8] = b"user-rejected";
/// The key of the human's answers to questions of the agent, and the start of a block with their words on a call that they allowed.
const ANSWERS: &[u8] = b"\"answers\":";
const ALLOWED_WITH: &[u8] = b"{\"type\":\"text\",\"text\":";

/// The start of the result of a plan that the human has approved.
const APPROVED: &str = "User has approved";
/// The marks of a line that may hold what the human said to a call.
const REPLIES: [&str; 3] = ["\"is_error\":true", "\"questions\":", APPROVED];

/// The most of the first and of the latest prompt that is kept, in bytes: half at its start and half at its end.
const PROMPT_CAP: usize = 8 * 1024;

/// The most of any other prompt that is kept, in bytes: half at its start and half at its end.
const LISTED_CAP: usize = 2 * 1024;

/// The most prompts that are kept, the latest ones: far above what fits into a handoff, and a bound for a hostile file.
pub const KEPT_PROMPTS: usize = 500;

/// The number of prompts of no person that are known: only the latest ones have just been reported by a hook.
const UNSAID: usize = 16;

/// The most of a hook's reason for a refusal that is kept, in bytes.
const REASON_CAP: usize = 200;

/// A text that the human said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Said {
    /// The text, word for word.
    pub text: String,
    /// The time when it was said, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<DateTime<Utc>>,
}

/// The human's words in one session; see the top of this file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HumanWords {
    /// The first request of the sessions before this one, as a handoff carried it over.
    pub carried_first: Option<Said>,
    /// The latest request of those sessions.
    pub carried_latest: Option<Said>,
    /// The first prompt of this session that is the human's.
    pub first: Option<Said>,
    /// The latest prompt, if it is not the first one.
    pub latest: Option<Said>,
    /// The prompts without what was pasted into them, oldest first, each once. One that only says "go on" is left out.
    pub prompts: Vec<Said>,
    /// The goal that a person has set in the client, until it is met, given up or cleared.
    pub goal: Option<String>,
    /// The prompts that were taken back out of the queue, by [`plain_key`].
    pub taken_back: BTreeSet<String>,
    keys: BTreeSet<String>,
    /// The keys of those prompts that the agent has not been given yet.
    queued: BTreeSet<String>,
    /// The prompt that a hook of the user's has refused, as long as no other has followed it.
    pub refused: Option<RefusedPrompt>,
    /// The keys of the latest prompts that the agent has of no person: the client gave them by itself, or a hook refused them.
    unsaid: VecDeque<String>,
}

/// A prompt that a hook of the user's has refused: the agent has not been given it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedPrompt {
    /// True if it is a handoff; none where the hook has kept it out of the client's record.
    pub is_handoff: Option<bool>,
    /// What the hook said, on one line.
    pub why: String,
}

impl HumanWords {
    /// Reports whether a line of a transcript can hold words of the human, without parsing it.
    pub fn may_hold_words(line: &[u8]) -> bool {
        let has = |mark: &[u8]| memchr::memmem::find(line, mark).is_some();
        let in_result = || [REFUSED, ANSWERS, ALLOWED_WITH].into_iter().any(has);
        (has(b"\"user\"") && (!has(b"\"tool_result\"") || in_result()))
            || has(b"\"queued_command\"")
            || has(b"\"queue-operation\"")
            || has(b"\"goal_status\"")
            || has(prompts::REFUSED_BY_HOOK.as_bytes())
    }

    /// Takes one record; returns whether it held words of the human.
    pub fn take_record(&mut self, record: &Value) -> bool {
        let at = record_time(record);
        let queue = record["type"] == "queue-operation" && record["isSidechain"] != true;
        match record["operation"].as_str().filter(|_| queue) {
            Some("enqueue") => {
                let text = record["content"].as_str();
                text.is_some_and(|text| self.enqueue_prompt(text, at))
            }
            // The arrow key brings the queue back into the prompt box.
            Some("popAll") => {
                let text = record["content"].as_str();
                text.is_some_and(|text| self.take_back(text))
            }
            _ => {
                let mut any = false;
                for text in by_a_human(record) {
                    any |= match shell_mode(text) {
                        // While it waited in the queue, nothing showed that it was a command.
                        Some(ShellMode::Ran(command)) => self.take_back(command),
                        _ => self.take_prompt(text, at),
                    };
                }
                any |= self.name_images(&prompts::image_sources(record));
                if let Some(goal) = prompts::goal_status(record) {
                    any |= self.take_goal(record, goal, at);
                }
                // An answer is no request of its own.
                for answer in chosen_answers(record) {
                    let text = as_listed(&redact::redact(&answer));
                    self.list_prompt(Said { text, at });
                    any = true;
                }
                if let Some((prompt, why)) = prompts::refused_prompt(record) {
                    self.refused = Some(RefusedPrompt {
                        is_handoff: prompt.map(prompts::is_handoff),
                        why: clipped(&on_one_line(&redact::redact(why)), REASON_CAP),
                    });
                    any = true;
                }
                let unsaid = unsaid_prompt(record);
                any | unsaid.is_some_and(|text| self.note_unsaid(text))
            }
        }
    }

    /// Takes a prompt that was given at the time `at`; returns whether it held words of the human.
    pub fn take_prompt(&mut self, prompt: &str, at: Option<DateTime<Utc>>) -> bool {
        let prompt = prompt.trim();
        self.refused = None;
        if prompts::is_handoff(prompt) {
            self.carry_over(prompt);
            return true;
        }
        let Some(prompt) = without_command(prompt) else {
            return false;
        };
        let Some(own) = prompts::of_human(prompt) else {
            return false;
        };
        let own = &redact::redact(&own);
        if says_nothing(own) {
            return true;
        }
        self.list_prompt(Said {
            text: as_listed(own),
            at,
        });
        let text = match prose::without_long_pastes(own) {
            none if none.is_empty() => cap_both_ends(own, LISTED_CAP),
            text => cap_both_ends(&text, PROMPT_CAP),
        };
        let whole = Said { text, at };
        if self.first.is_none() {
            self.first = Some(whole);
        } else if self
            .first
            .as_ref()
            .is_none_or(|first| first.text != whole.text)
        {
            self.latest = Some(whole);
        }
        true
    }

    /// Adds the files of its images to the latest prompt, so that another session can look at them; returns whether it has any.
    fn name_images(&mut self, images: &[String]) -> bool {
        let awaits =
            |said: &&mut Said| said.text.contains(IMAGE_MARK) && !said.text.contains(IMAGE_SOURCE);
        let Some(listed) = self.prompts.last_mut().filter(awaits) else {
            return false;
        };
        if images.is_empty() {
            return false;
        }
        let key = plain_key(&listed.text);
        for whole in [&mut self.first, &mut self.latest].into_iter().flatten() {
            if plain_key(&as_listed(&whole.text)) == key {
                whole.text = format!("{}\n{}", whole.text, images.join("\n"));
            }
        }
        listed.text = format!("{} {}", listed.text, images.join(" "));
        true
    }

    /// Takes what a record says of the goal; returns whether that changes anything.
    fn take_goal(&mut self, record: &Value, goal: &str, at: Option<DateTime<Utc>>) -> bool {
        let goal = Some(goal).filter(|goal| !goal.is_empty());
        let is_new = self.goal.as_deref() != goal;
        self.goal = goal.map(str::to_owned);
        // In the middle of a turn nothing else shows that a person has set it.
        let set = goal.filter(|_| record["attachment"]["sentinel"] == true);
        set.is_some_and(|goal| self.take_prompt(&format!("/goal {goal}"), at)) || is_new
    }

    /// Takes a prompt that waits while the agent works; returns whether it held words of the human.
    fn enqueue_prompt(&mut self, prompt: &str, at: Option<DateTime<Utc>>) -> bool {
        let key = key_of(prompt);
        let is_new = !self.keys.contains(&key);
        let any = self.take_prompt(prompt, at);
        if is_new && self.keys.contains(&key) {
            self.queued.insert(key);
        }
        any
    }

    /// Adds a prompt to the list, unless it is known.
    fn list_prompt(&mut self, said: Said) {
        let key = plain_key(&said.text);
        self.taken_back.remove(&key);
        self.queued.remove(&key);
        if key.is_empty() || !self.keys.insert(key) {
            return;
        }
        self.prompts.push(said);
        if self.prompts.len() > KEPT_PROMPTS {
            let oldest = self.prompts.remove(0);
            self.keys.remove(&plain_key(&oldest.text));
        }
    }

    /// Forgets a prompt that waited in the queue; returns whether it was known.
    fn take_back(&mut self, prompt: &str) -> bool {
        let key = key_of(prompt);
        // The same text may have been said before, and then stays.
        if !self.queued.remove(&key) {
            return false;
        }
        self.keys.remove(&key);
        let is_it = |said: &Said| plain_key(&as_listed(&said.text)) == key;
        self.prompts.retain(|said| !is_it(said));
        self.first = self.first.take().filter(|said| !is_it(said));
        if self.latest.as_ref().is_some_and(is_it) {
            self.latest = self.prompts.get(1..).and_then(<[Said]>::last).cloned();
        }
        self.taken_back.insert(key);
        true
    }

    /// Notes a prompt that the agent did not get from a person: neither the queue nor a hook distinguishes it from a person's. Returns
    /// whether it was taken for one.
    fn note_unsaid(&mut self, prompt: &str) -> bool {
        if self.take_back(prompt) {
            return true;
        }
        let key = key_of(prompt);
        if !key.is_empty() && !self.keys.contains(&key) {
            recent::take(&mut self.unsaid, &key);
            recent::push(&mut self.unsaid, key, UNSAID);
        }
        false
    }

    /// Reports whether a person gave this prompt, by its [`plain_key`].
    pub fn has_prompt(&self, key: &str) -> bool {
        self.keys.contains(key)
    }

    /// Reports whether the agent has this prompt of no person, by its [`plain_key`]. The `latest` that a hook has reported may be the one
    /// that another hook has refused without its text.
    pub fn is_unsaid(&self, key: &str, latest: bool) -> bool {
        let refused = self.refused.as_ref();
        let is_hidden = latest && refused.is_some_and(|one| one.is_handoff.is_none());
        (is_hidden || self.unsaid.iter().any(|one| one == key)) && !self.has_prompt(key)
    }

    /// Reports whether a prompt was taken back out of the queue.
    pub fn is_taken_back(&self, said: &Said) -> bool {
        !self.taken_back.is_empty() && self.taken_back.contains(&key_of(&said.text))
    }

    /// Takes over the human's words from a handoff.
    fn carry_over(&mut self, handoff: &str) {
        let text_of = |heading: &str| {
            let lines = section_lines(handoff, heading);
            let lines = lines.iter().map(|line| {
                line.strip_prefix("> ")
                    .or_else(|| line.strip_prefix('>'))
                    .unwrap_or(line)
            });
            let text = lines.collect::<Vec<_>>().join("\n").trim().to_owned();
            (!text.is_empty()).then_some(Said { text, at: None })
        };
        // The first request is shown by itself only where it is not the objective.
        let first = text_of(FIRST_HEADING).or_else(|| text_of(OBJECTIVE_HEADING));
        self.carried_first = self.carried_first.take().or(first);
        self.carried_latest = text_of(LATEST_HEADING).or(self.carried_latest.take());
        for said in listed_in(handoff) {
            self.list_prompt(said);
        }
        for request in [FIRST_HEADING, LATEST_HEADING]
            .into_iter()
            .filter_map(text_of)
        {
            self.list_prompt(Said {
                text: as_listed(&request.text),
                at: None,
            });
        }
    }
}

/// Returns the content of a prompt that the agent was given, and the part of its record that says of whom it is.
fn given_prompt(record: &Value) -> Option<(&Value, &Value)> {
    match record["type"].as_str()? {
        "user" => Some((&record["message"]["content"], record)),
        "attachment" if record["attachment"]["type"] == "queued_command" => {
            Some((&record["attachment"]["prompt"], &record["attachment"]))
        }
        _ => None,
    }
}

/// Reports whether a person gave what a record of the main conversation holds, by the part of it that says so.
pub(super) fn is_a_persons(source: &Value) -> bool {
    // Clients before 2.1.3 do not name an origin.
    let origin = source["origin"]["kind"].as_str().unwrap_or("human");
    let typed = origin == "human" && source["promptSource"] != "system";
    source["isMeta"] != true && (typed || is_by_bridge(&source["origin"]))
}

/// Returns the texts of a record that a person gave: prompts, also those that wait, and their words on a call that they refused or
/// allowed.
pub fn by_a_human(record: &Value) -> Vec<&str> {
    let by_client = ["isSidechain", "isMeta", "isCompactSummary"];
    if by_client.iter().any(|key| record[*key] == true) {
        return Vec::new();
    }
    let waits = record["type"] == "queue-operation" && record["operation"] == "enqueue";
    let queued = || waits.then_some((&record["content"], record));
    let prompt = given_prompt(record).or_else(queued);
    let Some((content, _)) = prompt.filter(|(_, source)| is_a_persons(source)) else {
        return Vec::new();
    };
    let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
    let mut texts: Vec<&str> = content.as_str().into_iter().collect();
    for block in blocks {
        // The client writes a refusal into the call's result, where any tool could write the same; so it counts only with the
        // client's own stamp.
        match read_denial(record, block, true) {
            Some(Denial::Refused(words)) => texts.extend(own_words(words)),
            _ => texts.extend(block["text"].as_str().filter(|_| block["type"] == "text")),
        }
    }
    texts
}

/// Returns the text of a prompt that the agent has of no person: one at a set time, one by which the client goes on, or one of a person's
/// that a hook refused.
pub(super) fn unsaid_prompt(record: &Value) -> Option<&str> {
    let is_main = record["isSidechain"] != true && record["isCompactSummary"] != true;
    if let Some((prompt, _)) = prompts::refused_prompt(record) {
        return prompt;
    }
    let (content, source) = given_prompt(record).filter(|_| is_main)?;
    first_text(content).filter(|_| record["isMeta"] == true || !is_a_persons(source))
}

/// Returns the answers that a person chose or wrote to questions of the agent, each with its question.
pub fn chosen_answers(record: &Value) -> Vec<String> {
    let result = &record["toolUseResult"];
    // After some time without an answer, the client goes on by itself.
    let by_human = record["type"] == "user" && result["questions"].is_array();
    if !by_human || record["isSidechain"] == true || !result["afkTimeoutMs"].is_null() {
        return Vec::new();
    }
    let answers = result["answers"].as_object().into_iter().flatten();
    let asked = answers.filter_map(|(question, answer)| {
        let several = answer.as_array().into_iter().flatten();
        let parts: Vec<&str> = answer
            .as_str()
            .into_iter()
            .chain(several.filter_map(Value::as_str))
            .collect();
        let notes = result["annotations"][question]["notes"].as_str();
        let said: Vec<&str> = parts
            .into_iter()
            .chain(notes)
            .filter(|part| !part.trim().is_empty())
            .collect();
        (!said.is_empty()).then(|| format!("{} (asked: {question})", said.join(", ")))
    });
    let written = result["response"].as_str().map(str::to_owned);
    asked.chain(written).collect()
}

/// Reports whether a line of a transcript can hold the reply to a call, without parsing it.
pub(super) fn may_hold_reply(line: &[u8]) -> bool {
    let mut marks = REPLIES.iter();
    marks.any(|mark| memchr::memmem::find(line, mark.as_bytes()).is_some())
}

/// Reports whether a result in this record is a reply to the call, an answer, an approval or the reason that it did not run, and no
/// output of a tool: running it again does not bring that back.
pub(super) fn is_reply(record: &Value, result: &Value) -> bool {
    first_text(&result["content"]).is_some_and(|text| text.starts_with(APPROVED))
        || !chosen_answers(record).is_empty()
        || read_denial(record, result, false).is_some()
}

/// Returns the prompts in a handoff's list.
pub fn listed_in(handoff: &str) -> Vec<Said> {
    let lines = section_lines(handoff, PROMPTS_HEADING).into_iter();
    lines.filter_map(parse_item).collect()
}

/// The mark behind the date of a pinned prompt.
const PINNED: &str = ", pinned";

/// Returns a prompt as an item of the handoff's list, in one line.
pub fn item_line(said: &Said, pinned: bool) -> String {
    let pinned = if pinned { PINNED } else { "" };
    match said.at {
        Some(at) => format!("- {}{pinned}: {}", at.format("%Y-%m-%d"), said.text),
        None => format!("- {}", said.text),
    }
}

/// Reads an item of the handoff's list; returns none for any other line.
pub fn parse_item(line: &str) -> Option<Said> {
    let item = line.strip_prefix("- ")?;
    let dated = item.split_once(": ").and_then(|(date, text)| {
        let date = date.strip_suffix(PINNED).unwrap_or(date);
        let date: NaiveDate = date.parse().ok()?;
        Some((date.and_hms_opt(0, 0, 0)?.and_utc(), text))
    });
    let (at, text) = dated.map_or((None, item), |(at, text)| (Some(at), text));
    Some(Said {
        text: text.trim().to_owned(),
        at,
    })
}

/// The words by which a person only lets the agent continue, or thanks, by [`plain_key`], between bars.
const GO_ON: &str = "ja|bitte|nein|weiter|mach weiter|danke|passt|genau|gut|oui|non|continuez|vas y|d accord|merci|lgtm|looks good|\
    do it|next|please|keep going|great|perfect|yep|continue|go|go ahead|go on|k|no|ok|okay|proceed|sure|thanks|\
    thank you|y|yes|да|нет|продолжай|продолжайте|дальше|давай|хорошо|спасибо|ок|пожалуйста|继续|请继续|继续吧|好|好的|是|是的|可以|\
    没问题|谢谢|不|不用|繼續|請繼續|謝謝|はい|いいえ|続けて|続けてください|お願いします|ありがとう|네|아니요|계속|계속해|계속해줘|sí|sigue|continúa|adelante|gracias|\
    por favor|sim|obrigado|avanti|grazie";

/// Reports whether a prompt only lets the agent continue, and is not a request that is worth a place in a handoff.
pub(super) fn says_nothing(prompt: &str) -> bool {
    let key = plain_key(&prompts::without_marks(prompt));
    let mut rest = key.as_str();
    // A number is a choice.
    while rest.contains(char::is_alphabetic) {
        let behind = GO_ON.split('|').filter_map(|word| rest.strip_prefix(word));
        let behind = behind.filter(|behind| behind.is_empty() || behind.starts_with(' '));
        match behind.min_by_key(|behind| behind.len()) {
            Some(behind) => rest = behind.trim_start(),
            None => return false,
        }
    }
    true
}

/// Returns the person's words in a prompt that may be a command; none for a command alone and for the note of an interruption.
fn without_command(prompt: &str) -> Option<&str> {
    if prompt.starts_with(STOPPED) {
        return None;
    }
    let name = prompt.split_whitespace().next().unwrap_or_default();
    match name.strip_prefix('/') {
        // A path is not a command.
        Some(word) if !word.is_empty() && !word.contains('/') => {
            prompts::is_request(name, &prompt[name.len()..]).then_some(prompt)
        }
        _ => Some(prompt),
    }
}

/// Returns the lines below a heading, up to the next one of its level.
pub fn section_lines<'a>(text: &'a str, heading: &str) -> Vec<&'a str> {
    text.lines()
        .skip_while(|line| line.trim_end() != heading)
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .collect()
}

/// Returns the key by which two prompts are equal; empty for one that holds no words of the human.
fn key_of(prompt: &str) -> String {
    let own = without_command(prompt.trim()).and_then(prompts::of_human);
    own.map_or_else(String::new, |own| {
        plain_key(&as_listed(&redact::redact(&own)))
    })
}

/// Returns a prompt without what was pasted into it, as the list shows it.
pub fn as_listed(prompt: &str) -> String {
    cap_both_ends(&prose::own_text(prompt), LISTED_CAP)
}

/// Returns a text, or its start and its end with a mark where something is missing.
fn cap_both_ends(text: &str, cap: usize) -> String {
    split_ends(text, cap).map_or_else(
        || text.to_owned(),
        |(head, tail)| format!("{head}\n{}\n{tail}", prose::LEFT_OUT),
    )
}

/// Reports whether a prompt came through pitstop's own mod for a person, as `pitstop ctl say` gives it: it counts as typed.
fn is_by_bridge(origin: &Value) -> bool {
    origin["kind"] == "plugin" && origin["name"] == "pitstop" && origin["asUser"] == true
}

#[cfg(test)]
mod tests {
    use super::{prompts::REFUSED_BY_HOOK, *};
    use serde_json::json;

    fn user(text: &str, more: &Value) -> Value {
        let mut record = json!({
            "type": "user", "timestamp": "2026-11-22T10:00:00Z",
            "message": { "role": "user", "content": text },
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            record[key] = value.clone();
        }
        record
    }

    fn listed_of(words: &HumanWords) -> Vec<&str> {
        words
            .prompts
            .iter()
            .map(|said| said.text.as_str())
            .collect()
    }

    #[test]
    fn only_the_human_s_own_words_count() {
        let mut words = HumanWords::default();
        for (text, more) in [
            ("Never a.", json!({ "isMeta": true })),
            ("Never b.", json!({ "isSidechain": true })),
            ("Never c.", json!({ "origin": { "kind": "plugin" } })),
            (
                "Never c2.",
                json!({ "origin": { "kind": "plugin", "name": "pitstop" } }),
            ),
            (
                "Never c3.",
                json!({ "origin": { "kind": "plugin", "name": "other", "asUser": true } }),
            ),
            ("Never d.", json!({ "promptSource": "system" })),
            ("<task-notification>Never e.</task-notification>", json!({})),
            ("/model never", json!({})),
            (
                "[Request interrupted by user for tool use] never",
                json!({}),
            ),
        ] {
            assert!(!words.take_record(&user(text, &more)), "{text}");
        }
        // What the client gave is known as its own.
        words.unsaid.clear();
        assert_eq!(words, HumanWords::default());
        let human = json!({ "origin": { "kind": "human" }, "promptSource": "typed" });
        assert!(words.take_record(&user("Build it. Never push to main.", &human)));
        assert!(words.take_record(&user("Never push to main!", &human)));
        assert!(words.take_record(&user("Build it: never push to main!", &human)));
        assert_eq!(
            listed_of(&words),
            ["Build it. Never push to main.", "Never push to main!"]
        );
        assert_eq!(
            words.prompts[0].at.unwrap().to_rfc3339(),
            "2026-11-22T10:00:00+00:00"
        );
        assert_eq!(words.first.unwrap().text, "Build it. Never push to main.");
        assert_eq!(words.latest.unwrap().text, "Build it: never push to main!");
    }

    #[test]
    fn a_prompt_is_listed_whole_in_any_language_without_what_was_pasted_into_it() {
        let mut words = HumanWords::default();
        for prompt in [
            "データベースには触らないでください。",
            "Не трогай схему. И пиши тесты!",
            "Never retry on 4xx.\n\n<pasted_content id=\"1\">\nERROR: you must never run this as root\n</pasted_content>",
            "See:\n```\nalways\n```\nwhat is wrong?",
            "<pasted_content id=\"2\">\n2026-11-22 10:00:00 ERROR only\n2026-11-22 10:00:01 INFO never\n</pasted_content>",
        ] {
            words.take_prompt(prompt, None);
        }
        assert_eq!(
            listed_of(&words),
            [
                "データベースには触らないでください。",
                "Не трогай схему. И пиши тесты!",
                "Never retry on 4xx.\n…",
                "See:\n…\nwhat is wrong?",
            ]
        );
        let long = format!("{} The end counts.", "a word ".repeat(1_000));
        words.take_prompt(&long, None);
        let last = listed_of(&words).pop().unwrap().to_owned();
        assert!(last.len() <= LISTED_CAP + 8 && last.ends_with("The end counts."));
    }

    #[test]
    fn a_long_paste_in_a_request_is_named_by_its_size_and_what_was_typed_stands_whole() {
        let (head, tail) = (
            "Fix the pool leak. Never restart the database.",
            "Start with src/pool.rs, please.",
        );
        for line in [
            "level=error ts=17# msg=\"you must never do this #\"",
            "{\"level\": \"info\", \"msg\": \"never do #\", \"ts\": #}",
            "10.0.0.# - - [20/Nov/2026:10:00:01 +0000] \"GET /never/# HTTP/1.1\" 200 512",
            "Nov 20 10:00:# host sshd[#]: Accepted key for ada",
            "\tat com.acme.Foo#.must(Foo#.java:#)",
            "   Compiling crate# v1.#.0",
            "Ada#,#,London only",
            "api-#-abcde   1/1     Running   0          #d",
            "| a# | must | never |",
            "#12 0.# Get:# http://example.org stable/main amd64 never",
            "-rw-r--r-- 1 root root # Nov 20 10:00 must # be.txt",
            "./src/module#/some/file#.rs",
            "VARIABLE_#=never/value#",
            "tests/test_a.py::test_# PASSED   [ #%]",
            "epoch # loss 0.# accuracy 0.9#",
            "INSERT INTO only VALUES (#, 'never', 'must');",
            "> a quotation of line # that someone else wrote",
        ] {
            let lines = (10..90).map(|n| line.replace('#', &n.to_string()) + "\n");
            let log: String = lines.collect();
            let fence = format!("```\n{log}```\n");
            let tags = format!("\n<pasted_content id=\"1\">\n{log}</pasted_content id=\"1\">\n");
            for paste in [log, fence, tags] {
                let mut words = HumanWords::default();
                words.take_prompt(&format!("{head}\n{paste}\n{tail}"), None);
                let first = words.first.unwrap().text;
                let parts: Vec<&str> = first.split('\n').filter(|line| !line.is_empty()).collect();
                let [typed, mark, behind] = parts[..] else {
                    panic!("{paste}: {first}");
                };
                assert_eq!([typed, behind], [head, tail]);
                assert!(mark.starts_with("[pasted: 8"), "{first}");
                // The list has the same text, and reads it back from a handoff as the same.
                let listed = &words.prompts[0].text;
                assert_eq!(as_listed(&first), *listed);
                assert_eq!(as_listed(listed), *listed);
            }
        }
        let short = format!("{head}\n\nValueError: must be positive\n\n{tail}");
        let all = "2026-11-22 10:00:00 ERROR only\n".repeat(300);
        for (prompt, first) in [(short.clone(), Some(short)), (all, None)] {
            let mut words = HumanWords::default();
            words.take_prompt(&prompt, None);
            let text = words.first.unwrap().text;
            assert!(text.len() <= LISTED_CAP + 8, "{text}");
            assert!(first.is_none_or(|first| first == text));
        }
    }

    #[test]
    fn a_prompt_that_only_says_go_on_is_no_request() {
        let mut words = HumanWords::default();
        for prompt in ["Port the parser", "Now its tests", "Continue.", "yes"] {
            words.take_prompt(prompt, None);
        }
        assert_eq!(words.first.unwrap().text, "Port the parser");
        assert_eq!(words.latest.unwrap().text, "Now its tests");
    }

    #[test]
    fn words_that_only_say_go_on_do_so_in_every_language() {
        for prompt in [
            "да, продолжай",
            "好的，继续",
            "はい、続けてください。",
            "네, 계속해줘",
            "Ok, danke, weiter!",
            "yes please, go on",
            "Sí, adelante",
            "[Image #2]",
            "[Pasted text #1 +30 lines]",
            "ok [Image #1] [Image #2]",
            "2)",
        ] {
            assert!(says_nothing(prompt), "{prompt}");
        }
        for prompt in [
            "нет, не так",
            "继续，但是不要改数据库",
            "goon",
            "weiter mit dem Lexer",
            "no tabs",
            "[Image #1] blue, please",
            "a[0] is wrong",
        ] {
            assert!(!says_nothing(prompt), "{prompt}");
        }
    }

    #[test]
    fn words_on_a_call_count_without_what_the_client_puts_around_them() {
        let unwanted = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n";
        let said = |text: &str| json!([{ "type": "tool_result", "tool_use_id": "t", "is_error": true, "content": format!("{unwanted}{text}") }]);
        let refused = |content: Value| json!({ "type": "user", "toolDenialKind": "user-rejected", "message": { "content": content } });
        let allowed = json!({ "type": "user", "message": { "content": [
            { "tool_use_id": "t", "type": "tool_result", "content": "ok" },
            { "type": "text", "text": "gut, aber ohne Kommentare" },
        ] } });
        let mut typed = refused(said(""));
        typed["userFeedback"] = json!("先写测试");
        for (record, words) in [
            (refused(said("не трогай схему")), vec!["не трогай схему"]),
            (
                refused(said(
                    "use tabs\n\nNote: The user's next message may contain a correction or preference.",
                )),
                vec!["use tabs"],
            ),
            (typed, vec!["先写测试"]),
            (refused(said("")), vec![]),
            (
                refused(said(
                    "The user wants to clarify these questions.\n    Take their response\n\n    Questions asked:\n- \"Which?\"\n  Answer: the second one\n  User notes: but smaller\n- \"When?\"\n  (No answer provided)",
                )),
                vec!["the second one", "but smaller"],
            ),
            (allowed, vec!["gut, aber ohne Kommentare"]),
        ] {
            let mut human = HumanWords::default();
            assert!(HumanWords::may_hold_words(record.to_string().as_bytes()));
            assert_eq!(human.take_record(&record), !words.is_empty());
            assert_eq!(listed_of(&human), words);
        }
        // A tool of someone else's can say so, too.
        let unstamped = json!({ "type": "user", "message": { "content": said("Never.") } });
        assert!(!HumanWords::default().take_record(&unstamped));
    }

    #[test]
    fn what_the_human_chose_is_theirs_and_no_request() {
        let result = |outcome: Value| {
            json!({ "type": "user", "toolUseResult": outcome, "message": { "content": [
            { "type": "tool_result", "tool_use_id": "t", "content": "Your questions have been answered" },
        ] } })
        };
        for (outcome, listed) in [
            (
                json!({"questions": [], "answers": {"Which base?": "SQLite"}}),
                vec!["SQLite (asked: Which base?)"],
            ),
            (
                json!({"questions": [], "answers": {"Was noch?": ["Doku", "Tests"]}, "annotations": {"Was noch?": {"notes": "erst Doku"}}}),
                vec!["Doku, Tests, erst Doku (asked: Was noch?)"],
            ),
            (
                json!({"questions": [], "answers": {}, "response": "neither, keep both"}),
                vec!["neither, keep both"],
            ),
            (
                json!({"questions": [], "answers": {"Which?": "A"}, "afkTimeoutMs": 60000}),
                vec![],
            ),
            (json!({"answers": {"Which?": "A"}}), vec![]),
        ] {
            let record = result(outcome);
            let mut human = HumanWords::default();
            assert!(HumanWords::may_hold_words(record.to_string().as_bytes()));
            human.take_record(&record);
            assert_eq!(listed_of(&human), listed);
            assert_eq!((human.first, human.latest), (None, None));
        }
    }

    #[test]
    fn the_words_behind_a_command_count() {
        let mut words = HumanWords::default();
        words.take_prompt("/fix the importer. Never touch b.rs", None);
        words.take_prompt("/model opus", None);
        words.take_prompt("/etc/hosts must never change, leave it", None);
        words.take_prompt("2", None);
        assert_eq!(
            listed_of(&words),
            [
                "/fix the importer. Never touch b.rs",
                "/etc/hosts must never change, leave it"
            ]
        );
        assert_eq!(
            words.first.clone().unwrap().text,
            "/fix the importer. Never touch b.rs"
        );
        // The client records it in tags.
        let tags = "<command-name>/fix</command-name>\n<command-args>the importer. Never touch b.rs</command-args>";
        words.take_prompt(tags, None);
        assert_eq!(words.prompts.len(), 2);
    }

    #[test]
    fn a_prompt_that_waited_counts() {
        let mut words = HumanWords::default();
        words.take_record(&json!({
            "type": "attachment",
            "attachment": { "type": "queued_command", "prompt": "Only use tabs.", "origin": { "kind": "human" } },
        }));
        words.take_record(&json!({ "type": "queue-operation", "operation": "enqueue", "content": "Always ask me first." }));
        words.take_record(
            &json!({ "type": "queue-operation", "operation": "dequeue", "content": "Never this." }),
        );
        assert_eq!(
            listed_of(&words),
            ["Only use tabs.", "Always ask me first."]
        );
    }

    #[test]
    fn a_prompt_that_a_hook_refused_is_not_said_until_it_is_given_again() {
        let text = "deploy it\n\nOriginal prompt: with the key";
        let content =
            format!("{REFUSED_BY_HOOK}:\n[gate.sh]: no\nticket\n\n\nOriginal prompt: {text}");
        let refused = json!({"type": "system", "subtype": "informational", "content": content});
        assert!(HumanWords::may_hold_words(refused.to_string().as_bytes()));
        let mut words = HumanWords::default();
        words.take_prompt("Build it", None);
        words.take_record(
            &json!({"type": "queue-operation", "operation": "enqueue", "content": text}),
        );
        assert!(words.take_record(&refused), "it waited");
        assert_eq!(listed_of(&words), ["Build it"]);
        let why = words.refused.clone().map(|one| (one.is_handoff, one.why));
        assert_eq!(why, Some((Some(false), "[gate.sh]: no ticket".to_owned())));
        words.take_record(&refused);
        assert!(words.is_unsaid(&key_of(text), false));
        words.take_record(&user(text, &json!({})));
        assert!(!words.is_unsaid(&key_of(text), false));
        assert_eq!((words.prompts.len(), words.refused.clone()), (2, None));
        let hidden = json!({"type": "system", "content": format!("{REFUSED_BY_HOOK}:\nno")});
        words.take_record(&hidden);
        assert!(words.is_unsaid("b", true) && !words.is_unsaid("a", false));
        assert!(!words.is_unsaid(&key_of(text), true));
        // The agent writes no such record.
        let said = user(&content, &json!({}));
        assert_eq!(prompts::refused_prompt(&said), None);
    }

    #[test]
    fn a_prompt_that_the_client_gives_by_itself_is_no_person_s() {
        let scheduled = |text: &str| user(text, &json!({"isMeta": true, "promptSource": "system"}));
        let continued = |text: &str| {
            json!({"type": "attachment", "attachment": {"type": "queued_command",
                "prompt": text, "origin": {"kind": "auto-continuation"}}})
        };
        for given in [
            scheduled("check the build"),
            scheduled("ビルドを確認して"),
            continued("Goal set: all tests pass"),
        ] {
            let text = unsaid_prompt(&given).expect("the client's").to_owned();
            for queued in [false, true] {
                let mut words = HumanWords::default();
                words.take_prompt("Build it", None);
                if queued {
                    words.take_record(&json!({"type": "queue-operation", "operation": "enqueue", "content": text}));
                    assert_eq!(
                        words.latest.clone().unwrap().text,
                        text,
                        "it may be a person's"
                    );
                }
                assert!(HumanWords::may_hold_words(given.to_string().as_bytes()));
                assert_eq!(words.take_record(&given), queued);
                assert_eq!(
                    (listed_of(&words), words.latest.clone()),
                    (vec!["Build it"], None)
                );
                assert!(
                    words.is_unsaid(&plain_key(&text), false) != queued,
                    "{text}"
                );
            }
            // What a person has said stays.
            let mut words = HumanWords::default();
            words.take_prompt(&text, None);
            assert!(!words.take_record(&given));
            assert_eq!(listed_of(&words), [text.as_str()]);
        }
    }

    #[test]
    fn a_prompt_has_the_files_of_its_images() {
        let sources = |paths: &[&str]| {
            let named = paths
                .iter()
                .map(|path| json!({"type": "text", "text": format!("{IMAGE_SOURCE}{path}]")}));
            let blocks: Vec<Value> = named.collect();
            json!({"type": "user", "isMeta": true, "message": {"content": blocks}})
        };
        let mut words = HumanWords::default();
        for (prompt, paths) in [
            (
                "[Image #1] make the header look like this",
                vec!["/p/my app/ヘッダー [2].png"],
            ),
            (
                "zwischen [Image #2] und [Image #3] liegt der Fehler",
                vec!["/tmp/a.png", "/tmp/b.png"],
            ),
        ] {
            words.take_record(&user(prompt, &json!({})));
            assert!(HumanWords::may_hold_words(
                sources(&paths).to_string().as_bytes()
            ));
            assert!(words.take_record(&sources(&paths)));
            // Read again, it is not named twice.
            assert!(!words.take_record(&sources(&paths)));
            let latest = words.latest.as_ref().or(words.first.as_ref()).unwrap();
            let listed = listed_of(&words).pop().unwrap();
            assert_eq!(plain_key(listed), plain_key(prompt));
            for path in paths {
                let named = format!("{IMAGE_SOURCE}{path}]");
                assert!(
                    latest.text.contains(&named) && listed.contains(&named),
                    "{latest:?}"
                );
            }
        }
        // No file belongs to words without an image.
        words.take_prompt("Now the tests", None);
        assert!(!words.take_record(&sources(&["/tmp/c.png"])));
        assert_eq!(plain_key("[Image: source: x]"), "image source x");
    }

    #[test]
    fn a_goal_is_a_request_however_short_and_whenever_it_is_set() {
        let typed = |goal: &str| {
            let text = format!(
                "<command-name>/goal</command-name>\n<command-message>goal</command-message>\n<command-args>{goal}</command-args>"
            );
            user(&text, &json!({}))
        };
        let status = |met: bool, goal: &str| json!({"type": "attachment", "attachment": {"type": "goal_status", "sentinel": true, "met": met, "condition": goal}});
        for goal in ["tests pass", "完了", "the file done.txt exists"] {
            let mut words = HumanWords::default();
            assert!(HumanWords::may_hold_words(
                status(false, goal).to_string().as_bytes()
            ));
            words.take_record(&status(false, goal));
            words.take_record(&typed(goal));
            words.take_prompt(&format!("/goal {goal}"), None);
            assert_eq!(listed_of(&words), [format!("/goal {goal}")]);
            assert_eq!(words.goal.as_deref(), Some(goal));
            let mut failed = status(false, goal);
            failed["attachment"]["failed"] = json!(true);
            for over in [status(true, goal), failed] {
                words.take_record(&status(false, goal));
                assert!(words.take_record(&over) && words.goal.is_none(), "{over}");
            }
        }
        let mut words = HumanWords::default();
        for none in [
            typed("clear"),
            typed("Stop"),
            typed(""),
            status(true, "tests pass"),
        ] {
            assert!(!words.take_record(&none), "{none}");
        }
        assert_eq!(words.goal, None);
    }

    #[test]
    fn a_prompt_that_was_taken_back_out_of_the_queue_was_not_said() {
        let mut words = HumanWords::default();
        let queue = |words: &mut HumanWords, operation: &str, text: &str| {
            let record =
                json!({ "type": "queue-operation", "operation": operation, "content": text });
            assert!(HumanWords::may_hold_words(record.to_string().as_bytes()));
            words.take_record(&record)
        };
        words.take_prompt("Build it", None);
        words.take_prompt("Use tabs", None);
        queue(&mut words, "enqueue", "Delete the tests");
        queue(&mut words, "enqueue", "Use tabs");
        assert_eq!(words.latest.clone().unwrap().text, "Use tabs");
        assert!(queue(&mut words, "popAll", "Delete the tests"));
        // It was said before it was queued.
        assert!(!queue(&mut words, "popAll", "Use tabs"));
        assert_eq!(listed_of(&words), ["Build it", "Use tabs"]);
        assert_eq!(words.latest.clone().unwrap().text, "Use tabs");
        assert!(words.taken_back.contains("delete the tests"));
        // Sent after all.
        words.take_prompt("Delete the tests", None);
        assert_eq!(listed_of(&words)[2], "Delete the tests");
        assert!(words.taken_back.is_empty());
        // The agent has it: it is no longer in the queue.
        assert!(!queue(&mut words, "popAll", "Delete the tests"));
    }

    #[test]
    fn a_command_of_the_shell_mode_that_waited_in_the_queue_was_not_said() {
        for command in ["echo <ok> && make", "cargo test\n  --lib", "ls größe"] {
            let mut words = HumanWords::default();
            words.take_prompt("Build it", None);
            let ran = format!("<bash-input>{command}</bash-input>");
            for record in [
                json!({ "type": "queue-operation", "operation": "enqueue", "content": command }),
                json!({ "type": "queue-operation", "operation": "dequeue" }),
                json!({ "type": "user", "message": { "content": ran } }),
                json!({ "type": "user", "message": { "content": "<bash-stdout>x</bash-stdout>" } }),
            ] {
                words.take_record(&record);
            }
            assert_eq!(listed_of(&words), ["Build it"]);
            assert_eq!(words.latest, None);
        }
    }

    #[test]
    fn a_handoff_carries_objective_and_prompts_and_nothing_else() {
        let mut words = HumanWords::default();
        let handoff = format!(
            "pitstop handoff · r1 · iteration 2 · 0a1b2c3d\n\nNever mind.\n\n{OBJECTIVE_HEADING}\n\nPort the parser\n\n\
             {PROMPTS_HEADING}\n\n- 2026-11-20, pinned: Never touch main: it is live\n- Prefer tabs\n\n\
             {LATEST_HEADING}\n\n> Go on\n> - and on\n\n## Git\n\n- always"
        );
        words.take_prompt(&handoff, None);
        assert_eq!(words.carried_first.clone().unwrap().text, "Port the parser");
        assert_eq!(
            words.carried_latest.clone().unwrap().text,
            "Go on\n- and on"
        );
        assert_eq!(
            listed_of(&words),
            [
                "Never touch main: it is live",
                "Prefer tabs",
                "Go on\n- and on"
            ]
        );
        assert_eq!(
            item_line(&words.prompts[0], false),
            "- 2026-11-20: Never touch main: it is live"
        );
        assert_eq!(words.first, None);
    }

    #[test]
    fn of_a_run_s_prompt_the_task_alone_counts() {
        let mut words = HumanWords::default();
        let start = include_str!("../../../assets/run/start.md")
            .replace("{task}", "Port it. Never delete a test.")
            .replace("{stop_phrase}", "ALL DONE");
        words.take_prompt(&start, None);
        assert!(!words.take_prompt(include_str!("../../../assets/run/go-on.md"), None));
        assert_eq!(listed_of(&words), ["Port it. Never delete a test."]);
        assert_eq!(words.latest, None);
    }
}
