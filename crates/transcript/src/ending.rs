//! What a session is remembered by: the person's first and last prompt, the agent's last words, and whether it ended in the middle
//! of a turn.

use std::path::PathBuf;

use memchr::memmem;

use super::{
    human::by_a_human,
    prompts::of_human,
    record::{self, Record, STOPPED, Splitter},
    tail::{TailError, read_pieces},
    words::{clipped, without_signals},
};

/// The parts of a transcript that are read, at its start and at its end, in bytes.
const START: u64 = 256 * 1024;
const END: u64 = 1024 * 1024;

/// The longest text that is kept of a prompt or of the agent's words, in bytes.
const TEXT: usize = 2_000;

/// What a session is remembered by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// The first prompt that the person wrote, as far as it is near the start.
    pub first_prompt: Option<String>,
    /// The last one, likewise near the end.
    pub last_prompt: Option<String>,
    /// The agent's last message.
    pub last_words: Option<String>,
    /// True if the agent had not finished its turn.
    pub is_in_turn: bool,
}

impl Ending {
    /// Reads it from the transcript at `path`; only the start and the end of a long one. A missing file has none of it.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, TailError> {
        let mut ending = Self::default();
        let mut lines = Splitter::default();
        read_pieces(path, START, END, |piece| {
            lines.push(piece, |line| ending.take_line(line));
            true
        })?;
        ending.take_line(lines.pending());
        Ok(ending)
    }

    fn take_line(&mut self, line: &[u8]) {
        if !record::is_blank(line) {
            let _ = record::each_record(line, &mut |record| self.take_record(&record));
        }
        // A prompt that waited comes in an attachment, where the agent reads it.
        if memmem::find(line, b"\"queued_command\"").is_some() {
            let records = record::parsed_records(line);
            let attachments = records.iter().filter(|one| one["type"] == "attachment");
            for text in attachments.flat_map(by_a_human) {
                self.take_prompt(text);
            }
        }
    }

    fn take_prompt(&mut self, prompt: &str) {
        // What the client carries out by itself begins no turn.
        let own_work = ["<bash-", "<command-", "<local-command-"];
        self.is_in_turn |= !own_work
            .iter()
            .any(|tag| prompt.trim_start().starts_with(tag));
        if let Some(own) = of_human(prompt) {
            let own = clipped(own.trim(), TEXT);
            self.first_prompt.get_or_insert_with(|| own.clone());
            self.last_prompt = Some(own);
        }
    }

    fn take_record(&mut self, record: &Record<'_>) {
        match record {
            Record::User(user) if !user.sidechain => {
                let stopped = user.texts.first();
                if stopped.is_some_and(|text| text.starts_with(STOPPED)) {
                    self.is_in_turn = false;
                } else if user.tool_results > 0 {
                    self.is_in_turn = true;
                } else if let Some(prompt) = user.prompt() {
                    self.take_prompt(&prompt);
                }
            }
            Record::Assistant(said) if !said.sidechain => {
                let text = said.texts.join("\n");
                let words = without_signals(&text);
                if said.tool_uses > 0 {
                    self.is_in_turn = true;
                } else if !text.trim().is_empty() {
                    // A message of signals alone ends a turn, too.
                    self.is_in_turn = false;
                }
                if said.is_genuine() && !words.trim().is_empty() {
                    self.last_words = Some(clipped(words.trim(), TEXT));
                }
            }
            _ => {}
        }
    }
}

/// What a person has chosen in a session of the client. No hook reports it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// The permission mode in which it was left: the client writes it with each prompt and when it ends.
    pub mode: Option<String>,
    /// The name that they gave it (`/rename`): the client writes it again when it is far from the end.
    pub name: Option<String>,
}

/// Returns what a person has chosen in the session of this transcript, as far as it is near the end.
pub fn last_choices(path: impl Into<PathBuf>) -> Result<Choices, TailError> {
    let mut choices = Choices::default();
    let mut lines = Splitter::default();
    let mut take = |line: &[u8]| {
        let is_named = |kind: &&str| memmem::find(line, kind.as_bytes()).is_some();
        if !["\"permission-mode\"", "\"custom-title\""]
            .iter()
            .any(is_named)
        {
            return;
        }
        for record in record::parsed_records(line) {
            let text = |field: &str| record[field].as_str().map(str::to_owned);
            match record["type"].as_str() {
                Some("permission-mode") => choices.mode = text("permissionMode"),
                Some("custom-title") => choices.name = text("customTitle"),
                _ => {}
            }
        }
    };
    read_pieces(path, 0, END, |piece| {
        lines.push(piece, &mut take);
        true
    })?;
    take(lines.pending());
    Ok(choices)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn ending(records: &[Value]) -> Ending {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let lines: Vec<String> = records.iter().map(Value::to_string).collect();
        std::fs::write(&path, lines.join("\n")).unwrap();
        Ending::read(path).unwrap()
    }

    fn user(content: impl Into<Value>) -> Value {
        json!({"type": "user", "message": {"role": "user", "content": content.into()}})
    }

    fn said(content: impl Into<Value>) -> Value {
        json!({"type": "assistant", "message": {"id": "m", "model": "claude-x", "content": content.into()}})
    }

    #[test]
    fn a_session_is_remembered_by_its_first_and_last_words_and_by_a_turn_that_was_cut() {
        let call = || json!([{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]);
        let result = || json!([{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]);
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        let begun = [user("Port the parser"), said(text("I begin."))];
        let all = ending(&begun);
        assert_eq!(all.first_prompt.as_deref(), Some("Port the parser"));
        assert_eq!(all.last_words.as_deref(), Some("I begin."));
        assert!(!all.is_in_turn);
        let cut = |more: &[Value]| ending(&[&begun[..], more].concat());
        assert!(cut(&[user("And the tests")]).is_in_turn);
        assert_eq!(
            cut(&[user("And the tests")]).last_prompt.as_deref(),
            Some("And the tests")
        );
        let waited = json!({"type": "attachment", "attachment": {
            "type": "queued_command", "prompt": "Keep the flags", "origin": {"kind": "human"},
        }});
        let waited = cut(&[user("go"), said(call()), user(result()), waited]);
        assert_eq!(waited.last_prompt.as_deref(), Some("Keep the flags"));
        assert!(waited.is_in_turn);
        assert!(cut(&[user("go"), said(call())]).is_in_turn);
        assert!(cut(&[user("go"), said(call()), user(result())]).is_in_turn);
        assert!(
            !cut(&[
                user("go"),
                said(call()),
                user(result()),
                said(text("Done."))
            ])
            .is_in_turn
        );
        assert!(!cut(&[user("go"), user("[Request interrupted by user]")]).is_in_turn);
        for by_client in [
            "command-name>/compact</command-name",
            "local-command-stdout",
            "bash-input>ls</bash-input",
        ] {
            assert!(!cut(&[user(format!("<{by_client}>"))]).is_in_turn);
        }
        // The client's report at a resume on what was left running begins no turn.
        let mut report = user("<task-notification>\n<status>stopped</status>");
        report["queueTranscriptOnly"] = json!(true);
        assert!(!cut(&[report]).is_in_turn);
        assert_eq!(ending(&[]), Ending::default());
    }

    #[test]
    fn a_session_was_left_with_the_choices_of_the_last_records() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let is =
            |mode: &str| json!({"type": "permission-mode", "permissionMode": mode}).to_string();
        let said = user("the record \"permission-mode\" is not said").to_string();
        let named = |name: &str| json!({"type": "custom-title", "customTitle": name}).to_string();
        for (lines, mode, name) in [
            (
                vec![
                    named("first"),
                    is("default"),
                    said.clone(),
                    named("the \"custom-title\" of it"),
                    is("acceptEdits"),
                ],
                Some("acceptEdits"),
                Some("the \"custom-title\" of it"),
            ),
            (
                vec![
                    is("plan"),
                    said.clone(),
                    "{\"type\":\"permission-mode".to_owned(),
                ],
                Some("plan"),
                None,
            ),
            (vec![said], None, None),
        ] {
            std::fs::write(&path, lines.join("\n")).unwrap();
            let choices = last_choices(&path).unwrap();
            let found = (choices.mode.as_deref(), choices.name.as_deref());
            assert_eq!(found, (mode, name));
        }
        let none = last_choices(dir.path().join("none")).unwrap();
        assert_eq!(none, Choices::default());
    }

    #[test]
    fn a_last_message_of_signals_alone_ends_its_turn() {
        for signals in [
            "DONE: the parser",
            "OBJECTIVE: ship it\nTODO: the docs",
            "SCRATCHPAD:\n- [x] the parser\nSIGNAL:",
        ] {
            let begun = [user("go on"), said("I begin."), user("finish it")];
            let all = ending(&[&begun[..], &[said(signals)]].concat());
            assert!(!all.is_in_turn, "{signals}");
            assert_eq!(all.last_words.as_deref(), Some("I begin."), "{signals}");
        }
    }
}
