//! The hosted program, as far as we must know it.
//!
//! This crate decides how an agent is started and resumed, and reads what it reports about itself. The core prompts
//! and ends it: `app::reboot`.
//! Nothing is run here: every function turns data into data, and `runtime` runs the result.

use std::ffi::{OsStr, OsString};

use serde::{Deserialize, Serialize};

use pitstop_transcript::SessionId;

pub mod bridge;
pub mod claude;
mod event;
pub mod generic;
pub mod hook;

pub use event::{
    AgentEvent, Background, BackgroundTask, CacheLifetime, EndReason, Failure, PermissionRequest,
    PromptCache, RateLimit, StartSource, StatusLine, TimedPrompt, ToolCall, ToolOutput,
};
pub use hook::{
    HookError, parse_hook, parse_mode, parse_permission, parse_place, parse_status_line,
};

/// The kind of program that the pane hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum AgentKind {
    /// Claude Code itself.
    Claude,
    /// The built-in scripted stand-in; it takes Claude Code's flags and calls its hooks.
    Demo,
    /// Any other program: pane and estimates only.
    Generic,
}

impl AgentKind {
    /// Reports whether the agent has sessions, hooks and a transcript, as Claude Code has.
    pub const fn reports(self) -> bool {
        !matches!(self, Self::Generic)
    }

    /// Returns the word for it in `status --json`.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// The way in which a session begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A new session under a new id.
    Fresh,
    /// An existing session goes on.
    Resume,
}

/// Everything that decides an agent's command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The kind of the program.
    pub kind: AgentKind,
    /// The program to run.
    pub program: OsString,
    /// The arguments of our own that go before everything else, such as `demo-agent` for the demo.
    pub lead_args: Vec<OsString>,
    /// The session to begin or to resume.
    pub session: SessionId,
    /// The choice between a new session and an existing one.
    pub way: Start,
    /// True if this is the first start of the lineage: only then do the user's own `--resume`,
    /// `--continue` and `--session-id` take effect.
    pub first: bool,
    /// The first prompt, given as an argument.
    pub prompt: Option<String>,
    /// The arguments that the user wrote after `--`.
    pub user_args: Vec<String>,
    /// The per-run settings file, see [`claude::settings()`].
    pub settings_file: std::path::PathBuf,
    /// The directory of our mods, if the client is to load them.
    pub mods: Option<std::path::PathBuf>,
    /// A configuration of MCP servers to be added, as JSON.
    pub mcp_config: Option<String>,
    /// The text of the user's own `--append-system-prompt-file`, read by the caller
    /// ([`claude::user_append_file`] names it).
    pub user_append: Option<String>,
}

/// A command ready to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// The program.
    pub program: OsString,
    /// Its arguments, without the program's own name.
    pub args: Vec<OsString>,
    /// The id the session will have, as far as the arguments decide it; `None` when the user's own
    /// flags choose the session, so that only the first hook can report it.
    pub session: Option<SessionId>,
}

/// The reason why no command line could be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// The prompt does not fit one argument.
    #[error("the start prompt has {found} bytes, but one argument holds at most {limit}")]
    PromptTooLong {
        /// The length of the prompt, in bytes.
        found: usize,
        /// The length that fits, in bytes.
        limit: usize,
    },
    /// The prompt or an argument has a NUL byte.
    #[error("an argument holds a NUL byte, which no command line can carry")]
    Nul,
}

/// The number of bytes that fit one argument: Linux takes 128 KiB with the closing NUL (`MAX_ARG_STRLEN`).
pub const MAX_PROMPT_ARGUMENT: usize = 128 * 1024 - 1;

/// Builds the command that starts or resumes `launch`.
pub fn command_line(launch: &Launch) -> Result<CommandLine, LaunchError> {
    match launch.kind {
        AgentKind::Claude | AgentKind::Demo => claude::command_line(launch),
        AgentKind::Generic => generic::command_line(launch),
    }
}

/// The marks that a Claude Code process leaves in the environment of its children. A client that finds
/// `CLAUDE_CODE_CHILD_SESSION` keeps no transcript at all (measured with 2.1.197), so all go.
/// The user's own `CLAUDE_CODE_*` settings (Bedrock, output limits, renderer) stay.
const CHILD_MARKS: [&str; 15] = [
    "CLAUDECODE",
    "CLAUDE_CODE_AGENT",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_RESUME_FROM_SESSION",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_CODE_TMUX_SESSION",
    "CLAUDE_EFFORT",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PROJECT_DIR",
    "AI_AGENT",
    claude::OBSERVE_VARIABLE,
    claude::BRIDGE_VARIABLE,
    claude::PROGRAM_VARIABLE,
];

/// The marks of the terminal that we run in: the child runs in our own. In the pane that herdr's variable names, herdr's hook for the
/// client would have it resume the client without us.
const TERMINAL_MARKS: [&str; 9] = [
    "TMUX",
    "TMUX_PANE",
    "STY",
    "WINDOW",
    "LINES",
    "COLUMNS",
    "VTE_VERSION",
    "KITTY_WINDOW_ID",
    "HERDR_PANE_ID",
];

/// The variables that name the terminal to a program in our pane.
pub const TERMINAL_NAME: [(&str, &str); 2] = [
    ("TERM_PROGRAM", "pitstop"),
    ("TERM_PROGRAM_VERSION", env!("CARGO_PKG_VERSION")),
];

/// The families of names that are removed: per-session marks, and terminals known by name.
const REMOVED_FAMILIES: [&str; 3] = ["CLAUDE_CODE_SESSION_", "ZELLIJ", "TERM_PROGRAM"];

/// Reports whether the child may not inherit the variable `name`.
pub fn is_removed(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    CHILD_MARKS.contains(&name)
        || TERMINAL_MARKS.contains(&name)
        || REMOVED_FAMILIES
            .iter()
            .any(|family| name.starts_with(family))
}

/// Returns the environment of the hosted program: `inherited` without the marks of other hosts, with our
/// terminal's name, then `extra`, which wins.
pub fn child_env(
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    extra: &[(OsString, OsString)],
) -> Vec<(OsString, OsString)> {
    let own = [("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let inherited: Vec<_> = inherited.into_iter().collect();
    let nested = inherited.iter().any(|(name, _)| name == "CLAUDECODE");
    // A client's shell tool sets GIT_EDITOR=true; inherited, it would eat the user's messages.
    let blind_editor =
        |name: &OsStr, value: &OsStr| nested && name == "GIT_EDITOR" && value == "true";
    let set = |name: &OsStr| own.iter().chain(extra).any(|(other, _)| other == name);
    let mut env: Vec<_> = inherited
        .into_iter()
        .filter(|(name, value)| !is_removed(name) && !set(name) && !blind_editor(name, value))
        .collect();
    let overridden = |name: &OsStr| extra.iter().any(|(other, _)| other == name);
    env.extend(own.iter().filter(|(name, _)| !overridden(name)).cloned());
    env.extend(extra.iter().cloned());
    env
}

/// Cuts `text` to at most `limit` bytes, on a character boundary.
pub(crate) fn clip_text(text: &str, limit: usize) -> String {
    text[..text.floor_char_boundary(limit)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    #[test]
    fn the_child_inherits_no_marks_of_other_hosts_but_the_users_settings() {
        let inherited = env(&[
            ("CLAUDECODE", "1"),
            ("CLAUDE_CODE_CHILD_SESSION", "1"),
            ("CLAUDE_CODE_SESSION_ID", "x"),
            ("CLAUDE_CODE_ENTRYPOINT", "cli"),
            ("TMUX", "/tmp/x"),
            ("STY", "1"),
            ("HERDR_PANE_ID", "w1:p1"),
            ("ZELLIJ_PANE_ID", "2"),
            ("TERM_PROGRAM_VERSION", "3"),
            ("LINES", "24"),
            ("GIT_EDITOR", "true"),
            ("PITSTOP", "/another/pitstop"),
            ("PITSTOP_OBSERVE", "/another/observe"),
            ("TERM", "screen"),
            ("CLAUDE_CODE_USE_BEDROCK", "1"),
            ("CLAUDE_CODE_NO_FLICKER", "1"),
            ("CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS", "5"),
            ("HOME", "/h"),
        ]);
        assert_eq!(
            child_env(inherited, &env(&[("PITSTOP_RUN", "r")])),
            env(&[
                ("CLAUDE_CODE_USE_BEDROCK", "1"),
                ("CLAUDE_CODE_NO_FLICKER", "1"),
                ("CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS", "5"),
                ("HOME", "/h"),
                ("TERM", "xterm-256color"),
                ("COLORTERM", "truecolor"),
                ("PITSTOP_RUN", "r"),
            ])
        );
    }

    #[test]
    fn the_users_own_git_editor_stays() {
        let inherited = env(&[("GIT_EDITOR", "true")]);
        assert!(child_env(inherited, &[]).contains(&("GIT_EDITOR".into(), "true".into())));
    }

    #[test]
    fn what_the_caller_passes_wins() {
        let inherited = env(&[("PITSTOP_RUN", "old")]);
        let got = child_env(inherited, &env(&[("PITSTOP_RUN", "new"), ("TERM", "dumb")]));
        assert_eq!(
            got,
            env(&[
                ("COLORTERM", "truecolor"),
                ("PITSTOP_RUN", "new"),
                ("TERM", "dumb")
            ])
        );
    }

    #[test]
    fn clipping_keeps_characters_whole() {
        assert_eq!(clip_text("aé", 2), "a");
        assert_eq!(clip_text("aé", 3), "aé");
    }
}
