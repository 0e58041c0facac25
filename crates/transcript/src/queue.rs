//! The prompts that a person has given while the agent works, and that it has not been given yet: they are in no conversation, and
//! are gone if the agent ends.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    commands::{ShellMode, shell_mode},
    human::{by_a_human, unsaid_prompt},
    prompts::{REFUSED_BY_HOOK, of_human, typed_command},
};

/// The number of prompts that may wait. One whose end is not recorded must not fill the memory.
const CAP: usize = 64;

/// The prompts that wait, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    waiting: Vec<String>,
}

impl Queue {
    /// Reports whether a line of a transcript may change the queue, without parsing it.
    pub fn may_change(&self, line: &[u8]) -> bool {
        let has = |mark: &[u8]| memchr::memmem::find(line, mark).is_some();
        has(b"\"queue-operation\"")
            || (!self.waiting.is_empty()
                && (has(b"\"user\"")
                    || has(b"\"queued_command\"")
                    || has(b"\"local_command\"")
                    || has(REFUSED_BY_HOOK.as_bytes())))
    }

    /// Takes one record. The client does not tell which prompt it takes out, so that a prompt waits until it is in the conversation.
    pub fn take_record(&mut self, record: &Value) {
        let text = record["content"].as_str().unwrap_or_default();
        match (record["type"].as_str(), record["operation"].as_str()) {
            (Some("queue-operation"), Some("enqueue")) => {
                let own = of_human(text).filter(|_| self.waiting.len() < CAP);
                self.waiting.extend(own.map(Cow::into_owned));
            }
            (Some("queue-operation"), Some("remove" | "popAll")) => self.remove(text),
            (Some("queue-operation"), _) => {}
            _ => {
                let local = (record["subtype"] == "local_command").then_some(text);
                let given = by_a_human(record).into_iter().chain(unsaid_prompt(record));
                for text in given.chain(local) {
                    match shell_mode(text) {
                        Some(ShellMode::Ran(command)) => self.remove(command),
                        _ => self.remove(text),
                    }
                }
            }
        }
    }

    fn remove(&mut self, prompt: &str) {
        let command = || typed_command(prompt.trim()).map(Cow::Owned);
        let own = of_human(prompt).or_else(command).unwrap_or_default();
        if let Some(at) = self.waiting.iter().position(|one| **one == *own) {
            self.waiting.remove(at);
        }
    }

    /// Returns the prompts, oldest first.
    pub fn prompts(&self) -> &[String] {
        &self.waiting
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_prompt_waits_until_it_is_given_or_taken_back() {
        let mut queue = Queue::default();
        let mut take = |record: Value| {
            assert!(queue.may_change(record.to_string().as_bytes()) || queue.waiting.is_empty());
            queue.take_record(&record);
            queue.prompts().join(" | ")
        };
        let operation = |name: &str, text: &str| json!({"type": "queue-operation", "operation": name, "content": text});
        let user =
            |text: &str| json!({"type": "user", "message": {"role": "user", "content": text}});
        let pasted = "see\n\n<pasted_content id=\"b9\">\na\nb\n</pasted_content id=\"b9\">\n";
        assert_eq!(take(operation("enqueue", "もう一つ")), "もう一つ");
        take(operation("enqueue", "<task-notification>\n<task-id>x"));
        take(operation("enqueue", pasted));
        let all = take(operation("enqueue", "go on"));
        assert_eq!(all, "もう一つ | seea\nb | go on");
        // Taken out, and then in the conversation.
        assert_eq!(
            take(json!({"type": "queue-operation", "operation": "dequeue"})),
            all
        );
        assert_eq!(take(user("もう一つ")), "seea\nb | go on");
        // Given beside the result of a tool.
        assert_eq!(take(operation("remove", pasted)), "go on");
        let given = json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": pasted}});
        assert_eq!(take(given), "go on");
        // A command of the shell mode, which the queue does not tell from a prompt.
        take(operation("enqueue", "make größe && echo <ok>"));
        let ran = "<bash-input>make größe && echo <ok></bash-input>";
        assert_eq!(take(user(ran)), "go on");
        // A prompt that the client gives at a set time.
        take(operation("enqueue", "check the build"));
        let mut given = user("check the build");
        given["isMeta"] = json!(true);
        assert_eq!(take(given), "go on");
        // A command that the client carries out by itself, in both of its records.
        let text = "<command-name>/mcp</command-name>\n            <command-message>mcp</command-message>\n            <command-args></command-args>";
        let local = json!({"type": "system", "subtype": "local_command", "content": text});
        for record in [user(text), local] {
            take(operation("enqueue", "/mcp"));
            take(json!({"type": "queue-operation", "operation": "remove"}));
            assert_eq!(take(record), "go on");
        }
        assert_eq!(take(operation("popAll", "go on")), "");
    }
}
