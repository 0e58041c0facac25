//! The session's screen, and its report for the status line.

use chrono::Utc;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use super::{
    bridge,
    draw::{first_line, wrap},
    record,
    session::Session,
};
use pitstop_transcript::usage::Usage;

/// The frames of the spinner in the live part.
const SPINNER: [char; 6] = ['·', '✢', '✳', '✶', '✻', '✽'];

/// The frames of the spinner in the title.
const TITLE_SPINNER: [char; 2] = ['⠂', '⠐'];

/// The numbers of lines of a tool's output, and of a prompt, that are shown.
const SHOWN: (usize, usize) = (3, 12);

impl Session {
    /// Returns the payload of the status line command.
    pub(super) fn status_payload(&self) -> Value {
        let window = self.window();
        let input = |usage: Usage| self.context.saturating_sub(usage.output.0) as f64;
        let share = |usage| (input(usage) * 100.0 / window as f64).round();
        let age = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let name = if window > 200_000 {
            "Demo 1 (1M context)"
        } else {
            "Demo 1"
        };
        json!({
            "session_id": self.id.to_string(), "cwd": self.start.cwd.to_string_lossy(),
            "transcript_path": self.record.path.to_string_lossy(),
            "model": { "id": self.start.model, "display_name": name },
            "version": if self.bridge.is_some() { bridge::CLIENT } else { record::VERSION },
            "cost": { "total_cost_usd": self.cost, "total_duration_ms": age },
            "context_window": {
                "context_window_size": window, "current_usage": self.usage.map(record::wire),
                "used_percentage": self.usage.map(share),
            },
            "rate_limits": { "five_hour": {
                "used_percentage": (self.cost * 4.0).min(100.0).round(),
                "resets_at": Utc::now().timestamp() + 3 * 3600,
            } },
        })
    }

    /// Returns the width that is left beside so many cells.
    fn beside(&self, cells: usize) -> usize {
        self.canvas.columns.saturating_sub(cells)
    }

    /// Prints the welcome box and the end of a resumed conversation.
    pub(super) fn welcome(&mut self, conversation: &[(bool, String)]) {
        let cwd = self.start.cwd.to_string_lossy();
        let lines = [
            "✻ Welcome to the pitstop demo",
            "",
            "a scripted agent, no account needed",
            &cwd,
        ];
        // Columns are counted without the frame; a narrow terminal gets what fits.
        let width = self.beside(5).clamp(1, 60);
        let (rule, edge) = ("─".repeat(width + 2), "\x1b[38;5;174m│\x1b[0m");
        let lines = lines.map(|line| {
            let line = first_line(line, width);
            let pad = " ".repeat(width.saturating_sub(line.width()));
            format!("{edge} {line}{pad} {edge}")
        });
        self.above.push(format!("\x1b[38;5;174m╭{rule}╮"));
        self.above.extend(lines);
        self.above
            .extend([format!("\x1b[38;5;174m╰{rule}╯"), String::new()]);
        // The last messages are enough to recognise the conversation.
        for (by_user, text) in &conversation[conversation.len().saturating_sub(6)..] {
            let mark = if *by_user { "\x1b[2m❯" } else { "⏺" };
            let line = first_line(text, self.beside(4));
            self.above.push(format!("{mark} {line}"));
        }
    }

    /// Prints lines behind a mark, the others behind as much space, and a blank one; `more` is the number of those left out.
    fn block(&mut self, marks: [&str; 2], lines: &[String], shown: usize, more: &str) {
        for (row, line) in lines.iter().take(shown).enumerate() {
            self.above.push(format!("{}{line}", marks[row.min(1)]));
        }
        if lines.len() > shown {
            self.above
                .push(format!("{more}… +{} lines", lines.len() - shown));
        }
        self.above.push(String::new());
    }

    /// Prints a prompt as it was submitted.
    pub(super) fn show_prompt(&mut self, prompt: &str) {
        let mut lines = wrap(prompt, self.beside(3));
        for line in &mut lines {
            line.push(' ');
        }
        let marks = ["\x1b[48;5;237m❯ ", "\x1b[48;5;237m  "];
        self.block(marks, &lines, SHOWN.1, "\x1b[2m  ");
    }

    /// Prints the agent's words: heads and marks of Markdown are gone, as with the real client.
    pub(super) fn show_words(&mut self, text: &str) {
        let lines = text
            .lines()
            .map(|line| line.trim_start_matches('#').trim_start_matches(' '));
        let text = lines.collect::<Vec<_>>().join("\n");
        let text = text.replace("**", "").replace('`', "");
        let lines = wrap(&text, self.beside(4));
        self.block(["\x1b[97m⏺\x1b[0m ", "  "], &lines, usize::MAX, "");
    }

    /// Prints what went wrong or was stopped.
    pub(super) fn show_error(&mut self, text: &str) {
        self.block(["  \x1b[31m⎿  ", ""], &[text.to_owned()], 1, "");
    }

    /// Prints a call of a tool, with the list of to-dos if it is one.
    pub(super) fn show_call(&mut self, name: &str, input: &Value) {
        let about = ["command", "file_path"]
            .iter()
            .find_map(|field| input[*field].as_str());
        let call = match about {
            Some(about) => format!("{name}({about})"),
            None => "Update Todos".to_owned(),
        };
        let line = first_line(&call, self.beside(6));
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

    /// Prints the beginning of a tool's output.
    pub(super) fn show_output(&mut self, output: &str) {
        let width = self.beside(7);
        let mut lines: Vec<_> = output.lines().map(|line| first_line(line, width)).collect();
        if lines.is_empty() {
            lines.push("(No content)".to_owned());
        }
        let marks = ["  \x1b[2m⎿  ", "  \x1b[2m   "];
        self.block(marks, &lines, SHOWN.0, "  \x1b[2m   ");
    }

    /// Draws what is new above the live part, and the live part as it should look now.
    pub(super) fn draw(&mut self) -> std::io::Result<()> {
        // The last column stays empty: a full row would wrap, and the moves would miss.
        let room = self.beside(1).max(1);
        let rule = format!("\x1b[2m{}", "─".repeat(room));
        let mut lines = vec![String::new()];
        let mut title = '✳';
        if let Some(turn) = &self.turn {
            let tenths = (turn.began.elapsed().as_millis() / 100) as usize;
            title = TITLE_SPINNER[tenths / 10 % TITLE_SPINNER.len()];
            let mark = SPINNER[tenths % SPINNER.len()];
            let text = format!("{mark} Working… ({}s · esc to interrupt)", tenths / 10);
            let text = format!("\x1b[38;5;174m{}", first_line(&text, room));
            lines.extend([text, String::new()]);
        }
        lines.push(rule.clone());
        let draft = wrap(&self.draft, room.saturating_sub(3));
        // The mark of the client's prompt has a no-break space behind it.
        let marks = ["❯\u{a0}", "  "];
        for (row, line) in draft.iter().enumerate() {
            lines.push(format!("{}{line}", marks[row.min(1)]));
        }
        let caret_row = lines.len() - 1;
        let column = lines[caret_row].width().min(room.saturating_sub(1));
        lines[caret_row].push_str("\x1b[7m \x1b[27m");
        lines.push(rule);
        let status = self.status.iter().map(|line| format!("  {line}"));
        lines.extend(status.map(|line| first_line(&line, room)));
        let hint = match self.quit_armed {
            Some((key, _)) => format!("Press Ctrl-{key} again to exit"),
            None => self.hint.to_owned(),
        };
        lines.push(format!("\x1b[2m{}", first_line(&format!("  {hint}"), room)));
        let above = std::mem::take(&mut self.above);
        self.canvas.frame(
            format!("{title} pitstop demo"),
            &above,
            &lines,
            (caret_row, column),
        )
    }
}
