//! What the session shows and reports of itself.

use chrono::Utc;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use super::{
    bridge,
    draw::{Live, wrap},
    record,
    session::Session,
    turn::Turn,
};
use crate::transcript::usage::Usage;

impl Session {
    /// The payload of the status line command.
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

    /// Prints the welcome box and the end of a resumed conversation.
    pub(super) fn welcome(&mut self, conversation: &[(bool, String)]) {
        let cwd = self.start.cwd.to_string_lossy().into_owned();
        let lines = [
            "✻ Welcome to the pitstop demo",
            "",
            "a scripted agent, no account needed",
            &cwd,
        ];
        // Columns are counted without the frame; a narrow terminal gets what fits.
        let width = self.canvas.columns().saturating_sub(5).clamp(1, 60);
        let rule = "─".repeat(width + 2);
        self.above.push(format!("\x1b[38;5;174m╭{rule}╮"));
        for line in lines {
            let line = wrap(line, width).swap_remove(0);
            let pad = " ".repeat(width.saturating_sub(line.width()));
            let edge = "\x1b[38;5;174m│\x1b[0m";
            self.above.push(format!("{edge} {line}{pad} {edge}"));
        }
        self.above
            .extend([format!("\x1b[38;5;174m╰{rule}╯"), String::new()]);
        // What was said last is enough to see where one is.
        for (by_user, text) in conversation.iter().rev().take(6).rev() {
            let first = wrap(text, self.canvas.columns().saturating_sub(4)).swap_remove(0);
            self.above.push(format!(
                "{} {first}",
                if *by_user { "\x1b[2m❯" } else { "⏺" }
            ));
        }
    }

    /// Prints a prompt as it was submitted.
    pub(super) fn show_prompt(&mut self, prompt: &str) {
        let lines = wrap(
            &prompt.replace('\t', "    "),
            self.canvas.columns().saturating_sub(3),
        );
        let shown = lines.len().min(12);
        for (row, line) in lines.iter().take(shown).enumerate() {
            let mark = if row == 0 { '❯' } else { ' ' };
            self.above.push(format!("\x1b[48;5;237m{mark} {line} "));
        }
        if lines.len() > shown {
            self.above
                .push(format!("\x1b[2m  … +{} lines", lines.len() - shown));
        }
        self.above.push(String::new());
    }

    /// The live part as it should look now.
    pub(super) fn shown(&self) -> Live {
        let hint = match &self.quit_armed {
            Some((key, _)) => format!("Press Ctrl-{key} again to exit"),
            None => self.hint.clone(),
        };
        let tenths = |turn: &Turn| (turn.began.elapsed().as_millis() / 100) as u64;
        Live {
            busy: self
                .turn
                .as_ref()
                .map(|turn| ("Working".into(), tenths(turn))),
            draft: self.draft.clone(),
            status: self.status.clone(),
            hint,
        }
    }
}
