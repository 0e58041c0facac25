//! Plays one turn, step by step: its words and tool calls, the transcript and the reports to the hooks.

use std::{collections::VecDeque, io, time::Instant};

use serde_json::{Value, json};
use uuid::Uuid;

use super::{session::Session, story::Step};
use pitstop_transcript::{Tokens, usage::Usage};

/// The pause between two turns of the story, in steps' paces.
const PAUSE_PACES: u32 = 5;

/// A turn being played.
pub struct Turn {
    /// Its id in the facts of the bridge.
    pub id: String,
    pub steps: VecDeque<Step>,
    /// The prompt that started it; it goes back into the box when the turn is interrupted before a word was said.
    pub prompt: String,
    /// The time at which it began.
    pub began: Instant,
    /// The time at which the next step is due.
    pub due: Instant,
    /// True if anything was said or called.
    pub spoke: bool,
    /// The context at its end, in tokens.
    pub target: u64,
    /// The id of the call that has words and awaits its tool.
    pub call: Option<String>,
    /// The tool that runs: its description for the hooks, its output and the time at which it began.
    pub running: Option<(Value, Option<String>, Instant)>,
}

/// Splits `context` tokens as one call reports them, after one that ended at `before`.
pub fn split_usage(context: u64, before: u64) -> Usage {
    let output = 400.min(context / 4);
    let input = 3.min(context - output);
    let rest = context - output - input;
    let creation = context.saturating_sub(before).min(rest);
    Usage {
        input: Tokens(input),
        cache_creation: Tokens(creation),
        cache_read: Tokens(rest - creation),
        output: Tokens(output),
    }
}

/// Returns the cost of a call in US dollars, at the prices of a large model.
pub fn cost(usage: Usage) -> f64 {
    let millions = |tokens: Tokens| tokens.0 as f64 / 1e6;
    millions(usage.input) * 5.0
        + millions(usage.cache_creation) * 6.25
        + millions(usage.cache_read) * 0.5
        + millions(usage.output) * 25.0
}

impl Session {
    /// Plays the next step of the turn, or ends it.
    pub(super) fn play(&mut self, mut turn: Turn) -> io::Result<()> {
        if let Some((tool, output, began)) = turn.running.take() {
            self.finish_tool(tool, output, began)?;
            let left = turn.target.saturating_sub(self.context);
            if self.replaced_in_turn()? {
                turn.target = self.context + left;
            }
        } else {
            match turn.steps.pop_front() {
                None => return self.end_turn(&turn.id, None),
                Some(Step::Fail(word)) => return self.end_turn(&turn.id, Some(&word)),
                Some(Step::Say(text)) => {
                    let joins_tool = matches!(turn.steps.front(), Some(Step::Tool(..)));
                    let stop = if joins_tool { "tool_use" } else { "end_turn" };
                    let block = json!({ "type": "text", "text": text });
                    // Words and the call after them are one answer of the model, in two lines.
                    let call = self.write_block(&mut turn, &block, stop)?;
                    turn.call = joins_tool.then_some(call);
                    self.show_words(&text);
                    self.last_message = text;
                }
                Some(Step::Tool(name, input, output)) => {
                    let id = format!("toolu_{}", Uuid::new_v4().simple());
                    let block =
                        json!({ "type": "tool_use", "id": id, "name": name, "input": input });
                    self.write_block(&mut turn, &block, "tool_use")?;
                    self.show_call(name, &input);
                    let tool = json!({ "tool_name": name, "tool_input": input, "tool_use_id": id });
                    self.call_hook("PreToolUse", tool.clone());
                    turn.running = Some((tool, output, Instant::now()));
                }
            }
            turn.spoke = true;
        }
        self.status_line_soon();
        turn.due = Instant::now() + self.start.pace;
        self.turn = Some(turn);
        Ok(())
    }

    /// Writes a block of an API call, which begins with it unless words of the same answer have begun it; returns the call's id.
    fn write_block(&mut self, turn: &mut Turn, block: &Value, stop: &str) -> io::Result<String> {
        let begun = turn.call.take();
        if begun.is_none() {
            // The context nears its end with each step that is left.
            let left = turn.target.saturating_sub(self.context);
            let context = self.context + left / (turn.steps.len() as u64 + 1);
            self.usage = Some(split_usage(context, self.context));
            self.context = context;
            self.cost += self.usage.map_or(0.0, cost);
        }
        let call = begun.unwrap_or_else(|| Uuid::new_v4().simple().to_string());
        let usage = self.usage.unwrap_or_default();
        self.record.block(&call, block, usage, stop)?;
        Ok(call)
    }

    fn finish_tool(
        &mut self,
        mut tool: Value,
        output: Option<String>,
        began: Instant,
    ) -> io::Result<()> {
        let (output, failed) = if let Some(output) = output {
            (output, None)
        } else {
            let command = tool["tool_input"]["command"].as_str().unwrap_or_default();
            let ran = self.start.shell(command, self.id, None)?;
            let text = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
            // A signal has no code.
            let code = ran.status.code().unwrap_or(137);
            (text, Some(code).filter(|code| *code != 0))
        };
        let mut response = json!(output);
        if tool["tool_name"] == "Bash" {
            response =
                json!({ "stdout": output, "stderr": "", "interrupted": false, "isImage": false });
        }
        let id = tool["tool_use_id"].as_str().unwrap_or_default();
        match failed {
            Some(code) => self.record.tool_failed(id, code, &output)?,
            None => self.record.tool_result(id, &output, &response)?,
        }
        tool["duration_ms"] = json!(u64::try_from(began.elapsed().as_millis()).ok());
        let (event, field, outcome) = if failed.is_some() {
            ("PostToolUseFailure", "error", json!(output))
        } else {
            ("PostToolUse", "tool_response", response)
        };
        tool[field] = outcome;
        self.call_hook(event, tool);
        self.show_output(&output);
        Ok(())
    }

    /// Ends the turn, with this word of an error if the service has failed; it may go on by itself later.
    fn end_turn(&mut self, turn: &str, failure: Option<&str>) -> io::Result<()> {
        if let Some(word) = failure {
            let message = format!("API Error: {word}");
            self.show_error(&message);
            let fields = json!({ "error": word, "last_assistant_message": message });
            self.call_hook("StopFailure", fields);
        } else {
            let fields = json!({
                "stop_hook_active": false, "last_assistant_message": self.last_message,
                "background_tasks": [],
            });
            self.call_hook("Stop", fields);
        }
        self.status_line_soon();
        self.report_turn_end(turn, failure.map_or("answer", |_| "error"));
        if let Some(prompt) = self.queue.pop_front() {
            return self.submit(prompt, "composer");
        }
        if self.start.auto {
            self.go_on_due = Some(Instant::now() + self.start.pace * PAUSE_PACES);
        }
        Ok(())
    }
}
