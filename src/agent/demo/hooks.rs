//! Runs the hook and status line commands of the settings file, as Claude Code does.

use std::{
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::transcript::SessionId;

/// How long a hook may run when the settings do not say.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long all hooks of `SessionEnd` may take together; the real client gives the same.
const END_PATIENCE: Duration = Duration::from_millis(1500);

/// The commands of the settings file.
#[derive(Clone, Debug, Default)]
pub struct Hooks {
    settings: Value,
    cwd: PathBuf,
    silent: bool,
}

impl Hooks {
    /// Takes the parsed settings; a `silent` one calls nothing.
    pub fn new(settings: Value, cwd: &Path, silent: bool) -> Self {
        Self {
            settings,
            cwd: cwd.to_owned(),
            silent,
        }
    }

    /// Runs all commands of `event` side by side and waits for them. A matcher is held against the tool's name.
    pub fn run(&self, event: &str, session: SessionId, payload: &Value) {
        let subject = payload["tool_name"].as_str().unwrap_or_default();
        let groups = self.settings["hooks"][event]
            .as_array()
            .into_iter()
            .flatten();
        let commands = groups
            .filter(|group| matches(group["matcher"].as_str().unwrap_or_default(), subject))
            .flat_map(|group| group["hooks"].as_array().into_iter().flatten())
            .filter(|_| !self.silent);
        let mut running: Vec<_> = commands
            .filter_map(|hook| {
                let child =
                    self.start(hook["command"].as_str()?, session, payload, Stdio::null())?;
                let seconds = hook["timeout"]
                    .as_u64()
                    .map_or(PATIENCE, Duration::from_secs);
                Some((child, seconds))
            })
            .collect();
        let began = Instant::now();
        for (child, patience) in &mut running {
            let patience = if event == "SessionEnd" {
                END_PATIENCE
            } else {
                *patience
            };
            wait(child, began + patience);
        }
    }

    /// Whether there is a status line command.
    pub fn has_status_line(&self) -> bool {
        !self.silent && self.settings["statusLine"]["command"].is_string()
    }

    /// Runs the status line command and gives its output.
    pub fn status_line(&self, session: SessionId, payload: &Value) -> Option<String> {
        let command = self.settings["statusLine"]["command"].as_str()?;
        self.output(command, session, payload)
    }

    /// Runs one command and gives its output.
    fn output(&self, command: &str, session: SessionId, payload: &Value) -> Option<String> {
        let mut child = self.start(command, session, payload, Stdio::piped())?;
        let mut output = child.stdout.take()?;
        let reader = thread::spawn(move || {
            let mut text = Vec::new();
            // What came before an error is shown all the same.
            let _ = output.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        wait(&mut child, Instant::now() + PATIENCE);
        reader.join().ok()
    }

    /// The variables that the settings set.
    fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        let set = self.settings["env"].as_object().into_iter().flatten();
        set.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
    }

    fn start(
        &self,
        command: &str,
        session: SessionId,
        payload: &Value,
        stdout: Stdio,
    ) -> Option<Child> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", command])
            .current_dir(&self.cwd)
            .envs(self.variables())
            .env("CLAUDECODE", "1")
            .env("CLAUDE_CODE_CHILD_SESSION", "1")
            .env("CLAUDE_CODE_ENTRYPOINT", "cli")
            .env("CLAUDE_CODE_SESSION_ID", session.to_string())
            .env("CLAUDE_PROJECT_DIR", &self.cwd)
            .stdin(Stdio::piped())
            .stdout(stdout)
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let body = format!("{payload}\n");
        let mut stdin = child.stdin.take()?;
        // A hook that reads nothing must not hold the session up.
        thread::spawn(move || drop(stdin.write_all(body.as_bytes())));
        Some(child)
    }
}

/// Waits for the end of a command, and kills it at the deadline.
fn wait(child: &mut Child, deadline: Instant) {
    let mut nap = Duration::from_micros(200);
    while Instant::now() < deadline {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        thread::sleep(nap);
        nap = (nap * 2).min(Duration::from_millis(5));
    }
    // It may have ended by itself just now.
    let _ = child.kill();
    let _ = child.wait();
}

/// Whether a matcher takes the subject: empty and `*` take all, else alternatives by `|`.
fn matches(matcher: &str, subject: &str) -> bool {
    matches!(matcher, "" | "*") || matcher.split('|').any(|name| name.trim() == subject)
}

/// The payload's common part.
pub fn payload(event: &str, session: SessionId, transcript: &Path, cwd: &Path) -> Value {
    json!({
        "session_id": session.to_string(), "transcript_path": transcript.to_string_lossy(),
        "cwd": cwd.to_string_lossy(), "permission_mode": "default", "hook_event_name": event,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matcher_names_tools_or_takes_all() {
        assert!(matches("", "Bash") && matches("*", "Bash") && matches("Edit|Bash", "Bash"));
        assert!(!matches("Edit", "Bash"));
    }
}
