//! The branches of a transcript: a rewind leaves no record, but the next prompt continues from an earlier record than the last, and
//! the lines between the two are taken back.
//!
//! ```text
//!   prompt 1 ── answer ── prompt 2 ── answer ── prompt 3 ── answer
//!                  └───── prompt 4          taken back: all lines from prompt 2 up to prompt 4
//! ```
//!
//! A file only grows, so a prompt that is later in the file than the parent of the newest one is not among its ancestors, and is
//! taken back. Only prompts show this, because the results of parallel calls are beside the chain, too; and only once they are
//! answered: a prompt that waited in the client's queue may be beside the chain, which then continues without it. In the turn of the
//! first prompt after a rewind 2.1.332 writes that the end of the conversation is not the last one: its answer need not be awaited then.
//!
//! After a rewind to the beginning 2.1.332 names the end of the old conversation as the parent of the next prompt, and brings that
//! conversation back if the session is resumed; but behind the prompt it describes the environment once more, as it does where a
//! conversation begins, and writes that mark. The prompt then takes back all before it.
//!
//! A prompt may also go on from a record that was taken back, since two processes in one session each go on from their own last one.
//! Then what leads to that record counts again, and what the other process has added since they parted is taken back.
//!
//! The client's own side, where it speaks, says at once which prompt it has put back into the prompt box, and how many are left.

use std::{
    collections::{HashMap, VecDeque},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use memchr::memmem;
use serde_json::Value;

/// The number of latest records among which the parent of a prompt is found.
const REMEMBERED: usize = 1 << 17;

/// The most prompts that are kept, the newest ones: more than people type.
const KEPT: usize = 4_096;

/// The text in front of the name of a record.
const NAME: &[u8] = b"\"uuid\":\"";

/// The kinds of the records that the client writes when a turn has ended.
pub const TURN_ENDS: [&str; 2] = ["stop_hook_summary", "turn_duration"];

/// The most bytes of a name.
const NAME_CAP: usize = 64;

/// The branches as far as the file was read; lines are numbered from 0.
#[derive(Debug, Default)]
pub struct Branches {
    /// The number of lines that were read in this pass.
    lines: u64,
    /// The largest number of lines that were read in any pass.
    known: u64,
    /// The lines of the records by their names, each as a number.
    records: HashMap<u64, u64>,
    order: VecDeque<u64>,
    /// The prompts, oldest first.
    prompts: VecDeque<Prompt>,
    /// The lines of the compactions, and of the client's summaries, which it counts as prompts.
    compactions: Vec<u64>,
    summaries: Vec<u64>,
    /// The newest prompt, if it may have taken back earlier ones or made them count again: its line, and that of its parent.
    unanswered: Option<(u64, u64)>,
    /// The line of the newest prompt, if others are before it, until its turn ends, and whether a conversation begins with it: it has
    /// no parent, or the client describes its environment to the agent once more. If none begins, only until it is answered.
    newest: Option<(u64, bool)>,
    rewound: Option<(u64, String)>,
    returned: Option<String>,
}

/// A prompt, with the lines up to the next one.
#[derive(Debug)]
struct Prompt {
    line: u64,
    name: String,
    /// The line of its parent, if that is known.
    parent: Option<u64>,
    /// The end of its lines, if they are taken back.
    taken_back: Option<u64>,
    /// Its text as a number; none if it has more than text.
    text: Option<u64>,
}

impl Branches {
    /// Begins to read the file from its start once more.
    pub(super) const fn begin_again(&mut self) {
        self.lines = 0;
    }

    /// Takes the next line; returns whether it is not taken back.
    pub fn take_line(&mut self, line: &[u8]) -> bool {
        let number = self.lines;
        self.lines += 1;
        if number < self.known {
            return self.is_kept(number);
        }
        self.known = self.lines;
        for at in memmem::find_iter(line, NAME) {
            let name = &line[at + NAME.len()..];
            let end = memchr::memchr(b'"', &name[..name.len().min(NAME_CAP + 1)]);
            if let Some(end) = end {
                self.remember_record(hash_name(&name[..end]), number);
            }
        }
        true
    }

    /// Reports whether the line of this number is not taken back.
    pub fn is_kept(&self, line: u64) -> bool {
        self.taken_back_with(line).is_none()
    }

    /// Returns the place of the prompt with which the line of this number was taken back, if it was.
    fn taken_back_with(&self, line: u64) -> Option<usize> {
        let behind = self.prompts.partition_point(|one| one.line <= line);
        let above = behind.checked_sub(1)?;
        let end = self.prompts[above].taken_back?;
        (line < end).then_some(above)
    }

    /// Returns the number of the line that was taken last.
    pub const fn line_number(&self) -> u64 {
        self.lines.saturating_sub(1)
    }

    fn remember_record(&mut self, record: u64, line: u64) {
        if self.records.contains_key(&record) {
            return;
        }
        self.records.insert(record, line);
        self.order.push_back(record);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.records.remove(&oldest);
        }
    }

    /// Takes a record of the line that was taken last.
    pub fn take_record(&mut self, record: &Value) {
        let line = self.line_number();
        if self.lines != self.known || record["isSidechain"] == true {
            return;
        }
        if record["subtype"] == "compact_boundary" {
            self.compactions.push(line);
        } else if record["isCompactSummary"] == true {
            self.summaries.push(line);
        } else if record["type"] == "assistant" {
            self.note_answer(record["parentUuid"].as_str());
        } else if is_rewind_mark(record) {
            if let Some((line, parent)) = self.take_unanswered() {
                self.follow(line, Some(parent));
            } else if let Some((line, _)) = self.newest.take() {
                self.follow(line, None);
            }
        } else if TURN_ENDS.iter().any(|end| record["subtype"] == *end) {
            self.newest = None;
        } else if record["attachment"]["type"] == "environment" {
            self.newest = self.newest.map(|(line, _)| (line, true));
        } else if let Some((name, parent)) = prompt_names(record) {
            self.newest = (!self.prompts.is_empty()).then_some((line, parent.is_none()));
            let parent = parent.and_then(|parent| self.line_of(parent));
            let parent = parent.filter(|parent| *parent < line);
            let goes_on = |(line, _): &(u64, u64)| parent.is_some_and(|parent| parent >= *line);
            let before = self.unanswered.filter(goes_on);
            let forks = |parent: &u64| {
                !self.is_kept(*parent) || self.kept_prompts().any(|one| one.line > *parent)
            };
            let forked = parent.filter(forks).map(|parent| (line, parent));
            self.unanswered = forked.or(before);
            self.prompts.push_back(Prompt {
                line,
                name: name.to_owned(),
                parent,
                taken_back: None,
                text: text_of(record).map(|text| hash_name(text.as_bytes())),
            });
            if self.prompts.len() > KEPT {
                self.prompts.pop_front();
                self.unanswered = None;
            }
        }
    }

    /// Reports whether the next answer, the end of the turn, and the client's word on a rewind must be taken, whatever they contain.
    pub(super) const fn awaits_answer(&self) -> bool {
        self.unanswered.is_some() || self.newest.is_some()
    }

    fn line_of(&self, name: &str) -> Option<u64> {
        self.records.get(&hash_name(name.as_bytes())).copied()
    }

    /// Returns the prompts that are not taken back, oldest first.
    fn kept_prompts(&self) -> impl DoubleEndedIterator<Item = &Prompt> {
        self.prompts.iter().filter(|one| one.taken_back.is_none())
    }

    /// Takes the newest prompt, if it is on another branch than the one before: its line, and that of its parent. One that begins a
    /// conversation goes on from nothing, whatever it names that was taken back.
    fn take_unanswered(&mut self) -> Option<(u64, u64)> {
        self.newest = self.newest.filter(|(_, begins)| *begins);
        let unanswered = self.unanswered.take();
        unanswered.filter(|(_, parent)| self.newest.is_none() || self.is_kept(*parent))
    }

    /// Notes that the agent has answered the record of this name: if that is the unanswered prompt, or a record behind it, what lies
    /// between that and its parent is taken back.
    fn note_answer(&mut self, parent: Option<&str>) {
        let Some((line, from)) = self.take_unanswered() else {
            return;
        };
        let above = parent.and_then(|parent| self.line_of(parent));
        if above.is_none_or(|above| above < line) {
            return;
        }
        self.follow(line, Some(from));
    }

    /// Takes back the prompt that the client has put back into the prompt box, and all behind it, if this many are left before it. They
    /// are counted from the first one that the client knows: a resumed one knows none from before a compaction. Does nothing where no
    /// prompt fits: the box may hold one that was never sent.
    pub fn take_back(&mut self, text: &str, left: usize) {
        let text = Some(hash_name(text.as_bytes()));
        let is_kept = |line: &u64| self.is_kept(*line);
        let summaries = self.summaries.iter().copied().filter(is_kept);
        let prompts = self.kept_prompts().map(|one| one.line);
        let lines: Vec<u64> = prompts.chain(summaries).collect();
        let fits = |one: &Prompt, first: u64| {
            let before = lines.iter().filter(|line| (first..one.line).contains(line));
            one.text == text && before.count() == left
        };
        let found = self.kept_prompts().rfind(|one| {
            let compactions = self.compactions.iter().copied().filter(is_kept);
            let firsts = [0].into_iter().chain(compactions);
            let mut before = firsts.filter(|first| *first <= one.line);
            before.any(|first| fits(one, first))
        });
        // Of too many prompts the oldest are not known.
        let found = found.filter(|_| self.prompts.len() < KEPT);
        if let Some(first) = found.map(|one| one.line) {
            self.unanswered = None;
            self.take_back_prompts(self.known, |one| one.line >= first);
        }
    }

    /// Has the prompt of this line go on from the record of the line `from`, or from nothing: the prompts that lead there count, and
    /// those between are taken back.
    fn follow(&mut self, line: u64, mut from: Option<u64>) {
        let mut again = Vec::new();
        while let Some(place) = from.and_then(|from| self.taken_back_with(from)) {
            let prompt = &mut self.prompts[place];
            if again.is_empty() {
                self.returned = Some(prompt.name.clone());
            }
            prompt.taken_back = None;
            again.push(prompt.line);
            from = prompt.parent;
            if from.is_none() {
                // What is before it is of no other branch, as far as is known.
                from = prompt.line.checked_sub(1);
                break;
            }
        }
        let mut again = again.into_iter().peekable();
        self.take_back_prompts(line, |one| {
            again.next_if_eq(&one.line).is_none() && from.is_none_or(|from| one.line > from)
        });
    }

    /// Takes back those of the prompts before this line to which this applies, each with the lines up to the next prompt. The latest
    /// is asked about first.
    fn take_back_prompts(&mut self, mut end: u64, mut applies: impl FnMut(&Prompt) -> bool) {
        let before = self.prompts.partition_point(|one| one.line < end);
        for one in self.prompts.range_mut(..before).rev() {
            if one.taken_back.is_none() && applies(one) {
                one.taken_back = Some(end);
                if self.rewound.as_ref().is_none_or(|(at, _)| one.line < *at) {
                    self.rewound = Some((one.line, one.name.clone()));
                }
            }
            end = one.line;
        }
    }

    /// Returns the name of the newest prompt.
    pub fn newest_prompt(&self) -> Option<&str> {
        self.kept_prompts().next_back().map(|one| one.name.as_str())
    }

    /// Takes the name of the first prompt that was taken back since the last call of this function.
    pub fn take_rewound(&mut self) -> Option<String> {
        self.rewound.take().map(|(_, name)| name)
    }

    /// Takes the name of the last prompt that counts again since the last call of this function, though it was taken back.
    pub fn take_returned(&mut self) -> Option<String> {
        self.returned.take()
    }
}

fn hash_name(name: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

/// Returns the name of a prompt, and of its parent record; none for any other record, and where the file has no names.
fn prompt_names(record: &Value) -> Option<(&str, Option<&str>)> {
    let marked = ["isMeta", "isCompactSummary"];
    if record["type"] != "user" || marked.iter().any(|mark| record[mark] == true) {
        return None;
    }
    let is_result = |block: &Value| block["type"] == "tool_result";
    match &record["message"]["content"] {
        Value::String(_) => {}
        Value::Array(blocks) if !blocks.iter().any(is_result) => {}
        _ => return None,
    }
    let name = record["uuid"]
        .as_str()
        .filter(|name| name.len() <= NAME_CAP)?;
    match record.get("parentUuid")? {
        Value::Null => Some((name, None)),
        parent => Some((name, Some(parent.as_str()?))),
    }
}

/// Reports whether the client writes that the conversation does not go on from the end that it named last.
fn is_rewind_mark(record: &Value) -> bool {
    let is_none = |name: &str| name.chars().all(|c| matches!(c, '0' | '-'));
    let is_mark = record["type"] == "last-prompt" && record["explicit"] == true;
    is_mark && record["leafUuid"].as_str().is_some_and(is_none)
}

/// Returns the text of a prompt that is nothing else.
fn text_of(record: &Value) -> Option<&str> {
    match &record["message"]["content"] {
        Value::String(text) => Some(text),
        Value::Array(blocks) if blocks.len() == 1 => blocks[0]["text"].as_str(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Makes a line: `u2<a1` is a prompt behind `a1`, `a` an answer, `r` a result, `m` a text of the client, `e` the
    /// description of the environment, `s` the end of a turn; `-` no parent. `z<-` is the client's word on a rewind.
    fn line(text: &str) -> Value {
        if text == "z<-" {
            return json!({"type": "last-prompt", "explicit": true, "leafUuid": "00000000-0000-0000-0000-000000000000"});
        }
        let (name, parent) = text.split_once('<').unwrap();
        let parent = if parent == "-" {
            Value::Null
        } else {
            json!(parent)
        };
        if name.starts_with('e') {
            return json!({"parentUuid": parent, "type": "attachment", "attachment": {"type": "environment"}, "uuid": name});
        }
        if name.starts_with('s') {
            return json!({"parentUuid": parent, "type": "system", "subtype": TURN_ENDS[0], "uuid": name});
        }
        let (kind, content) = match &name[..1] {
            "a" => ("assistant", json!([{"type": "text", "text": "x"}])),
            "r" => (
                "user",
                json!([{"type": "tool_result", "content": "\"uuid\":\"u1\""}]),
            ),
            _ => ("user", json!(name)),
        };
        json!({"parentUuid": parent, "isMeta": name.starts_with('m'), "type": kind,
            "message": {"content": content}, "uuid": name})
    }

    /// Returns the lines that are not taken back at the end, and the first prompt taken back by each rewind.
    fn read(text: &str) -> (String, String) {
        let lines: Vec<&str> = text.split_whitespace().collect();
        let (mut branches, mut rewound) = (Branches::default(), Vec::new());
        for one in &lines {
            let one = line(one);
            assert!(branches.take_line(one.to_string().as_bytes()));
            branches.take_record(&one);
            rewound.extend(branches.take_rewound());
        }
        branches.begin_again();
        let mut stands = Vec::new();
        for one in lines {
            let value = line(one);
            if branches.take_line(value.to_string().as_bytes()) {
                branches.take_record(&value);
                stands.push(one.split_once('<').unwrap().0);
            }
        }
        assert_eq!(
            branches.take_rewound(),
            None,
            "a second pass finds nothing new"
        );
        (stands.join(" "), rewound.join(" "))
    }

    #[test]
    fn what_a_rewind_takes_back_does_not_stand() {
        for (text, stands, rewound) in [
            (
                "u1<- a1<u1 u2<a1 a2<u2 u3<a2 a3<u3",
                "u1 a1 u2 a2 u3 a3",
                "",
            ),
            ("u1<- a1<u1 u2<a1 a2<u2 u3<a1 a3<u3", "u1 a1 u3 a3", "u2"),
            (
                "u1<- a1<u1 u2<a1 a2<u2 u3<a2 a3<u3 u4<a1 a4<u4",
                "u1 a1 u4 a4",
                "u2",
            ),
            (
                "u1<- a1<u1 u2<a1 a2<u2 u3<a1 a3<u3 u4<a1 u5<u4 a5<u5",
                "u1 a1 u4 u5 a5",
                "u2 u3",
            ),
            (
                "u1<- a1<u1 u2<a1 a2<u2 u3<a1 a3<u3 u4<a3 a4<u4 u5<a3 a5<u5",
                "u1 a1 u3 a3 u5 a5",
                "u2 u4",
            ),
            ("m1<- u1<m1 a1<u1 u2<m1 a2<u2", "m1 u2 a2", "u1"),
            // Parallel calls, texts of the client, and an unknown parent.
            (
                "u1<- a1<u1 a2<a1 r1<a1 r2<a2 m1<r1 a3<m1 u2<r1 a4<u2",
                "u1 a1 a2 r1 r2 m1 a3 u2 a4",
                "",
            ),
            ("u1<- a1<u1 u2<x9 a2<u2", "u1 a1 u2 a2", ""),
            ("u1<- a1<u1 u2<- a2<u2", "u1 a1 u2 a2", ""),
            // A prompt from the queue, after which the chain continues without it.
            (
                "u1<- a1<u1 u2<a1 a2<u2 u3<a1 u4<u3 a3<a2",
                "u1 a1 u2 a2 u3 u4 a3",
                "",
            ),
            // It is not answered yet.
            ("u1<- a1<u1 u2<a1 a2<u2 u3<a1", "u1 a1 u2 a2 u3", ""),
            // The client says that there was a rewind.
            ("u1<- a1<u1 u2<a1 a2<u2 u3<a1 z<-", "u1 a1 u3 z", "u2"),
            ("u1<- a1<u1 u2<a1 a2<u2 u3<- z<-", "u3 z", "u1"),
            (
                "u1<- a1<u1 u2<a1 a2<u2 u3<a1 z<- a3<u3",
                "u1 a1 u3 z a3",
                "u2",
            ),
            ("u1<- a1<u1 u2<a1 a2<u2 u3<a2 z<-", "u1 a1 u2 a2 u3 z", ""),
            ("u1<- a1<u1 u2<- a2<u2 z<-", "u2 a2 z", "u1"),
            ("u1<- a1<u1 u2<- a2<u2 s2<a2 z<-", "u1 a1 u2 a2 s2 z", ""),
            ("u1<- z<- a1<u1", "u1 z a1", ""),
            // To the beginning: the environment is described once more.
            (
                "u1<- e1<u1 a1<e1 u2<a1 a2<u2 u3<a2 e2<u3 z<- a3<e2",
                "u3 e2 z a3",
                "u1",
            ),
            // The client may write its word behind the answer.
            (
                "u1<- e1<u1 a1<e1 u2<a1 a2<u2 u3<a2 e2<u3 a3<e2 z<-",
                "u3 e2 a3 z",
                "u1",
            ),
            // The environment is described behind a compaction and in a resumed session, too, and a rewind comes behind the turn.
            (
                "u1<- e1<u1 a1<e1 u2<a1 e2<u2 a2<e2 s2<a2 z<- u3<a2 a3<u3",
                "u1 e1 a1 u2 e2 a2 s2 z u3 a3",
                "",
            ),
            (
                "u1<- e1<u1 a1<e1 e2<a1 u2<e2 z<- a2<u2",
                "u1 e1 a1 e2 u2 z a2",
                "",
            ),
        ] {
            assert_eq!(
                read(text),
                (stands.to_owned(), rewound.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn what_a_prompt_goes_on_from_counts_again() {
        for (text, stands, rewound) in [
            (
                "u1<- a1<u1 u2<a1 a2<u2 u3<a1 a3<u3 u4<a2 a4<u4",
                "u1 a1 u2 a2 u4 a4",
                "u2 u3",
            ),
            (
                "u1<- a1<u1 u2<a1 a2<u2 u3<a1 a3<u3 u4<a2 a4<u4 u5<a3 a5<u5 u6<a4 a6<u6",
                "u1 a1 u2 a2 u4 a4 u6 a6",
                "u2 u3 u2 u3",
            ),
            (
                "u1<- a1<u1 u2<a1 a2<u2 u3<a2 a3<u3 u4<a1 a4<u4 u5<a2 a5<u5",
                "u1 a1 u2 a2 u5 a5",
                "u2 u4",
            ),
            // The prompt that goes back is not answered yet, and a hostile record is its own parent.
            (
                "u1<- a1<u1 u2<a1 a2<u2 u3<a1 a3<u3 u4<a2",
                "u1 a1 u3 a3 u4",
                "u2",
            ),
            (
                "u1<- a1<u1 u2<u2 a2<u2 u3<a1 a3<u3 u4<a2 a4<u4",
                "u1 a1 u2 a2 u4 a4",
                "u2 u3",
            ),
        ] {
            assert_eq!(
                read(text),
                (stands.to_owned(), rewound.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn a_prompt_that_is_put_back_is_taken_back_at_once_if_it_is_known_which() {
        let read = |names: &str, (text, left): (&str, usize)| {
            let mut branches = Branches::default();
            for (number, one) in names.split_whitespace().enumerate() {
                let mut record = match one {
                    "boundary" => json!({"type": "system", "subtype": "compact_boundary"}),
                    _ => line(&format!("u{number}<-")),
                };
                if one == "summary" {
                    record["isCompactSummary"] = true.into();
                }
                record["message"]["content"] = one.into();
                branches.take_line(record.to_string().as_bytes());
                branches.take_record(&record);
            }
            branches.take_back(text, left);
            let lines = 0..names.split_whitespace().count() as u64;
            let stands = lines.filter(|line| branches.is_kept(*line)).count();
            (branches.take_rewound(), stands)
        };
        for (names, put_back, rewound, stands) in [
            ("go add go", ("go", 2), Some("u2"), 2),
            ("go add go", ("go", 0), Some("u0"), 0),
            ("go add go", ("add", 1), Some("u1"), 1),
            // A prompt that was never sent, or was taken out of the queue.
            ("go add go", ("go", 1), None, 3),
            ("go add go", ("go", 3), None, 3),
            // Behind a compaction, in the client that has compacted, and in one that has resumed the session.
            ("go boundary handoff go", ("go", 2), Some("u3"), 3),
            ("go boundary handoff go", ("go", 1), Some("u3"), 3),
            ("go boundary summary go", ("go", 2), Some("u3"), 3),
            ("go boundary summary go", ("go", 1), Some("u3"), 3),
            ("go boundary summary go", ("go", 0), Some("u0"), 0),
            ("go boundary summary", ("go", 2), None, 3),
        ] {
            let found = read(names, put_back);
            assert_eq!(
                found,
                (rewound.map(str::to_owned), stands),
                "{names} {put_back:?}"
            );
        }
    }

    #[test]
    fn a_prompt_that_begins_the_conversation_again_brings_nothing_back_that_was_put_back() {
        for behind in ["u3<a2 e3<u3 z<- a3<e3", "u3<a2 e3<u3 a3<e3", "u3<- a3<u3"] {
            let mut branches = Branches::default();
            let take = |branches: &mut Branches, text: &str| {
                for one in text.split_whitespace().map(line) {
                    branches.take_line(one.to_string().as_bytes());
                    branches.take_record(&one);
                }
            };
            take(&mut branches, "u1<- a1<u1 u2<a1 a2<u2");
            branches.take_back("u1", 0);
            take(&mut branches, behind);
            let kept: Vec<_> = (0..5).filter(|line| branches.is_kept(*line)).collect();
            assert_eq!(kept, [4], "{behind}");
        }
    }

    #[test]
    fn prompts_without_names_take_nothing_back() {
        let mut branches = Branches::default();
        for text in ["one", "two", "größe"] {
            let record = json!({"type": "user", "message": {"content": text}});
            branches.take_line(record.to_string().as_bytes());
            branches.take_record(&record);
        }
        assert_eq!(branches.take_rewound(), None);
        assert_eq!(branches.newest_prompt(), None);
    }
}
