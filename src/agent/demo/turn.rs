//! Plays one turn, step by step: what is said and called, written and reported to the hooks.

use std::{collections::VecDeque, io, time::Instant};

use serde_json::{Value, json};
use uuid::Uuid;

use super::{draw::wrap, session::Session, story::Step};
use crate::transcript::{Tokens, usage::Usage};

/// Lines of a tool's output that are shown.
const SHOWN_LINES: usize = 3;

/// A turn being played.
pub struct Turn {
    /// Its id in the facts of the bridge.
    pub id: String,
    steps: VecDeque<Step>,
    /// What started it; goes back into the box when it is interrupted before a word was said.
    pub prompt: String,
    /// When it began.
    pub began: Instant,
    /// When the next step is due.
    pub due: Instant,
    /// Whether anything was said or called.
    pub spoke: bool,
    /// Context before and after, tokens.
    usage: (u64, u64),
    calls: (u64, u64),
    call: String,
    running: Option<RunningTool>,
    /// The word of the error that ends it.
    pub failure: Option<String>,
}

struct RunningTool {
    id: String,
    name: &'static str,
    input: Value,
    output: Option<String>,
    began: Instant,
}

impl Turn {
    /// A turn that takes the context from `before` to `after` tokens.
    pub fn new(
        prompt: String,
        steps: VecDeque<Step>,
        before: u64,
        after: u64,
        due: Instant,
    ) -> Self {
        let calls = steps.len() as u64;
        Self {
            id: Uuid::new_v4().to_string(),
            steps,
            prompt,
            began: Instant::now(),
            due,
            spoke: false,
            usage: (before, after),
            calls: (0, calls.max(1)),
            call: String::new(),
            running: None,
            failure: None,
        }
    }

    /// The conversation was replaced: what is left of the turn grows on from so many tokens.
    fn goes_on_from(&mut self, context: u64) {
        let left = self.usage.1.saturating_sub(self.context());
        self.usage = (context, context.saturating_add(left));
        self.calls = (0, (self.calls.1 - self.calls.0).max(1));
    }

    /// The context after the current call, tokens.
    fn context(&self) -> u64 {
        let (before, after) = (u128::from(self.usage.0), u128::from(self.usage.1));
        let (done, all) = (u128::from(self.calls.0), u128::from(self.calls.1));
        let context = (before * (all - done) + after * done) / all;
        u64::try_from(context).unwrap_or(u64::MAX)
    }
}

/// `context` tokens as one call reports them, after one that ended at `before`.
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

/// What a call costs, US dollars: the prices of a large model.
pub fn cost(usage: Usage) -> f64 {
    let millions = |tokens: Tokens| tokens.0 as f64 / 1e6;
    millions(usage.input) * 5.0
        + millions(usage.cache_creation) * 6.25
        + millions(usage.cache_read) * 0.5
        + millions(usage.output) * 25.0
}

impl Session {
    /// Plays the next step of the turn; gives false when the turn is over.
    pub fn play(&mut self, turn: &mut Turn) -> io::Result<bool> {
        if let Some(tool) = turn.running.take() {
            self.finish_tool(&tool)?;
            if self.replaced_in_turn()? {
                turn.goes_on_from(self.context);
            }
            return Ok(true);
        }
        let Some(step) = turn.steps.pop_front() else {
            return Ok(false);
        };
        let joins_tool = matches!(turn.steps.front(), Some(Step::Tool(..)));
        match step {
            Step::Fail(word) => {
                turn.failure = Some(word);
                return Ok(false);
            }
            Step::Say(text) => {
                self.begin_call(turn);
                let reason = if joins_tool { "tool_use" } else { "end_turn" };
                self.record.block(
                    &turn.call,
                    &json!({ "type": "text", "text": text }),
                    self.usage,
                    reason,
                )?;
                self.say(&text);
                if !joins_tool {
                    turn.call.clear();
                }
                self.last_message = text;
            }
            Step::Tool(name, input, output) => {
                // Words and the call after them are one answer of the model, in two lines.
                self.begin_call(turn);
                let id = format!("toolu_{}", Uuid::new_v4().simple());
                let block = json!({ "type": "tool_use", "id": id, "name": name, "input": input });
                self.record
                    .block(&turn.call, &block, self.usage, "tool_use")?;
                turn.call.clear();
                let fields = json!({ "tool_name": name, "tool_input": input, "tool_use_id": id });
                self.call_hook("PreToolUse", fields);
                self.show_call(name, &input);
                turn.running = Some(RunningTool {
                    id,
                    name,
                    input,
                    output,
                    began: Instant::now(),
                });
            }
        }
        turn.spoke = true;
        self.status_line_soon();
        Ok(true)
    }

    /// Begins an API call, unless words of the same answer have begun it.
    fn begin_call(&mut self, turn: &mut Turn) {
        turn.calls.0 = (turn.calls.0 + 1).min(turn.calls.1);
        if turn.call.is_empty() {
            turn.call = Uuid::new_v4().simple().to_string();
            let context = turn.context();
            self.usage = split_usage(context, self.context);
            self.context = context;
            self.cost += cost(self.usage);
            self.has_usage = true;
        }
    }

    fn finish_tool(&mut self, tool: &RunningTool) -> io::Result<()> {
        let made_up = tool.output.clone().map(|output| (output, false));
        let (output, failed) = made_up.unwrap_or_else(|| self.run_shell(&tool.input));
        let response = if tool.name == "Bash" {
            json!({ "stdout": output, "stderr": "", "interrupted": false, "isImage": false })
        } else {
            json!(output)
        };
        self.record.tool_result(&tool.id, &output, &response)?;
        let duration = u64::try_from(tool.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut fields = json!({
            "tool_name": tool.name, "tool_input": tool.input, "tool_use_id": tool.id,
            "duration_ms": duration,
        });
        if failed {
            fields["error"] = json!(output);
            self.call_hook("PostToolUseFailure", fields);
        } else {
            fields["tool_response"] = response;
            self.call_hook("PostToolUse", fields);
        }
        self.show_output(&output);
        self.status_line_soon();
        Ok(())
    }

    /// Ends the turn: the hooks are called, and it may go on by itself later.
    pub fn end_turn(&mut self) {
        let fields = json!({
            "stop_hook_active": false, "last_assistant_message": self.last_message,
            "background_tasks": [],
        });
        self.call_hook("Stop", fields);
        self.status_line_soon();
    }

    /// Ends the turn as a call does that the service has failed.
    pub fn fail_turn(&mut self, word: &str) {
        let message = format!("API Error: {word}");
        self.above
            .extend([format!("  \x1b[31m⎿  {message}"), String::new()]);
        let fields = json!({ "error": word, "last_assistant_message": message });
        self.call_hook("StopFailure", fields);
    }

    /// Runs a scripted command; gives what it prints, and whether it failed.
    fn run_shell(&self, input: &Value) -> (String, bool) {
        let command = input["command"].as_str().unwrap_or_default();
        match self.start.shell(command, self.id, None) {
            Ok(output) => {
                let text = [output.stdout, output.stderr].concat();
                let text = String::from_utf8_lossy(&text).into_owned();
                (text, !output.status.success())
            }
            Err(error) => (error.to_string(), true),
        }
    }

    fn say(&mut self, text: &str) {
        let width = self.canvas.columns().saturating_sub(4);
        for (row, line) in wrap(&rendered(text), width).into_iter().enumerate() {
            let mark = if row == 0 {
                "\x1b[97m⏺\x1b[0m "
            } else {
                "  "
            };
            self.above.push(format!("{mark}{line}"));
        }
        self.above.push(String::new());
    }

    fn show_call(&mut self, name: &str, input: &Value) {
        let about = ["command", "file_path"]
            .iter()
            .find_map(|field| input[*field].as_str());
        let width = self.canvas.columns().saturating_sub(6);
        let call = match (name, about) {
            ("TodoWrite", _) => "Update Todos".to_owned(),
            (_, Some(about)) => format!("{name}({about})"),
            (_, None) => name.to_owned(),
        };
        let line = wrap(&call, width).into_iter().next().unwrap_or_default();
        self.above.push(format!("\x1b[32m⏺\x1b[0m \x1b[1m{line}"));
        for todo in input["todos"].as_array().into_iter().flatten() {
            let (mark, style) = match todo["status"].as_str() {
                Some("completed") => ("☒", "\x1b[2;9m"),
                Some("in_progress") => ("☐", "\x1b[1m"),
                _ => ("☐", ""),
            };
            let text = todo["content"].as_str().unwrap_or_default();
            self.above.push(format!("     {style}{mark} {text}"));
        }
    }

    fn show_output(&mut self, output: &str) {
        let width = self.canvas.columns().saturating_sub(7);
        let lines: Vec<_> = output.lines().collect();
        for (row, line) in lines.iter().take(SHOWN_LINES).enumerate() {
            let mark = if row == 0 { "⎿ " } else { "  " };
            let line = wrap(&line.replace('\t', "    "), width).into_iter().next();
            self.above
                .push(format!("  \x1b[2m{mark} {}", line.unwrap_or_default()));
        }
        match lines.len() {
            0 => self.above.push("  \x1b[2m⎿  (No content)".into()),
            count if count > SHOWN_LINES => {
                self.above
                    .push(format!("  \x1b[2m   … +{} lines", count - SHOWN_LINES));
            }
            _ => {}
        }
        self.above.push(String::new());
    }
}

/// Markdown as the pane gets it: heads and marks are gone, as with the real client.
fn rendered(text: &str) -> String {
    let line = |line: &str| {
        line.trim_start_matches('#')
            .trim_start_matches(' ')
            .replace("**", "")
            .replace('`', "")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_adds_up_to_the_context() {
        for context in [0, 1, 3, 500, 18_000, 155_000] {
            assert_eq!(split_usage(context, 12_000).context(), Tokens(context));
        }
        assert_eq!(split_usage(20_000, 18_000).cache_creation, Tokens(2000));
    }
}
