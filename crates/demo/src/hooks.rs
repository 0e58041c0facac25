//! Runs the hook and status line commands of the settings file, and the commands of the story, as Claude Code does.

use std::{
    io::{self, Write as _},
    process::{Command, Output, Stdio},
    thread,
};

use serde_json::Value;

use super::Start;
use pitstop_transcript::SessionId;

impl Start {
    /// Runs the commands of `event`, one after the other. Each ends by itself: `pitstop hook` has a time limit of its own.
    pub(super) fn call_hooks(&self, event: &str, session: SessionId, payload: &Value) {
        let groups = self.settings["hooks"][event].as_array();
        let commands = groups
            .into_iter()
            .flatten()
            .flat_map(|group| group["hooks"].as_array().into_iter().flatten())
            .filter_map(|hook| hook["command"].as_str());
        for command in commands {
            // A hook that cannot be started changes nothing.
            let _ = self.shell(command, session, Some(payload));
        }
    }

    /// Runs the status line command and returns its output, if there is such a command.
    pub(super) fn run_status_line(&self, session: SessionId, payload: &Value) -> Option<String> {
        let command = self.settings["statusLine"]["command"].as_str()?;
        let output = self.shell(command, session, Some(payload)).ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs a command to its end, with this on its standard input and the variables that the settings and the client set.
    pub(super) fn shell(
        &self,
        command: &str,
        session: SessionId,
        input: Option<&Value>,
    ) -> io::Result<Output> {
        let set = self.settings["env"].as_object().into_iter().flatten();
        let mut child = Command::new("/bin/sh")
            .args(["-c", command])
            .current_dir(&self.cwd)
            .envs(set.filter_map(|(name, value)| Some((name, value.as_str()?))))
            .env("CLAUDECODE", "1")
            .env("CLAUDE_CODE_CHILD_SESSION", "1")
            .env("CLAUDE_CODE_ENTRYPOINT", "cli")
            .env("CLAUDE_CODE_SESSION_ID", session.to_string())
            .env("CLAUDE_PROJECT_DIR", &self.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let body = input.map_or_else(String::new, |input| format!("{input}\n"));
        if let Some(mut stdin) = child.stdin.take() {
            // A command that reads nothing must not hold the session up.
            thread::spawn(move || drop(stdin.write_all(body.as_bytes())));
        }
        child.wait_with_output()
    }
}
