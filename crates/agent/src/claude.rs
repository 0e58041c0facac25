//! Claude Code: its arguments and its settings file.
//!
//! The statements about the client here were measured with 2.1.197:
//!
//! - A prompt after `--` arrives exactly, in the request and in `UserPromptSubmit`: leading dashes,
//!   line ends, tabs, even control characters, 120 KB. Without `--` a prompt that begins with a dash
//!   or follows a variadic option is lost.
//! - A prompt that equals a subcommand (`doctor`) runs the subcommand even after `--`; a line feed
//!   at its end prevents that.
//! - Of two `--settings`, `--session-id` or `--append-system-prompt` the last wins, hence merging.
//! - `--session-id` beside `--resume` or `--continue` is refused, and so is an id already in use.
//! - `--append-system-prompt` beside its `-file` form is refused.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::{CommandLine, Launch, LaunchError, MAX_PROMPT_ARGUMENT, Start};
use pitstop_transcript::{SessionId, version::is_at_least};

pub mod daemon;
pub mod limits;
pub mod projects;
pub mod prompt_box;
pub mod question;
pub mod registered;
mod settings;

pub use projects::project_slug;
pub use settings::{
    BRIDGE_VARIABLE, EVENTS, OBSERVE_VARIABLE, PERMISSION_SECONDS, PROGRAM_VARIABLE, Settings,
    SettingsError, SettingsValues, mcp_config, setting, settings, user_status_line,
};

/// The variable that names the client's configuration directory.
pub const CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";

/// The variable that switches the client's auto-compaction off for one process; `/compact` goes on working (measured with 2.1.197).
pub const NO_AUTO_COMPACTION: (&str, &str) = ("DISABLE_AUTO_COMPACT", "1");

/// The variable that gives the client's to-do tools to models that have none by themselves; their names are announced and
/// their definitions loaded when they are wanted. 2.1.330 by itself has them only for 4.x models except Opus 4.8; 2.1.197 has
/// them for all and does not know this variable (measured).
pub const TODO_TOOLS: (&str, &str) = ("CLAUDE_CODE_ENABLE_TODO_TOOLS", "1");

/// Reports whether a variable of the client that has this value is on.
pub fn is_on(value: &str) -> bool {
    let value = value.trim().to_ascii_lowercase();
    matches!(value.as_str(), "1" | "true" | "yes" | "on")
}

/// The text that teaches the agent about notes and signals.
pub const SYSTEM_PROMPT: &str = include_str!("../../../assets/system_prompt.md");

/// The variables that name the terminal to the client. It turns on the kitty keyboard protocol, notifications and
/// progress for terminals that it knows by name, whatever they answer. Of those it knows, this one's abilities are the
/// nearest to ours; all else that our terminal reports of itself (`TERM`, XTVERSION) is true. `[agent] env` can override this.
pub const TERMINAL_NAME: [(&str, &str); 2] = [
    ("TERM_PROGRAM", "ghostty"),
    ("TERM_PROGRAM_VERSION", "1.2.0"),
];

/// Reports whether this title is that of the client's list of sessions: `1 awaiting input · claude agents`. A left arrow in an
/// empty prompt opens it, and the session goes on under a daemon (measured with 2.1.197).
pub fn is_agent_view(title: &str) -> bool {
    title.ends_with("claude agents")
}

/// The Enter key in the form of the kitty protocol. The client knows it whether it has asked for that protocol or not, and takes
/// it for Enter at any place in a read. The effect of a carriage return depends on the rest of the read: after typed text it is
/// a new line (7 of 7), after a paste sometimes (2 of 21), and when a client that was busy finds a paste and two of them, the
/// text is lost and no key is taken until the next end of a paste (12 of 12). Text and this form in one read were submitted in
/// 25 of 28; in the three others, each the first prompt of its session, the next Enter submitted it, and one Enter too many
/// never did harm (measured with 2.1.197).
pub const ENTER: &[u8] = b"\x1b[13u";

/// Returns a text in the form that goes into the prompt box, so that the Enter after it submits it. After a last word such as
/// `@notes` Enter accepts the completion that the box offers, and a last backslash turns Enter into a new line; a blank prevents
/// both, and the client drops it except at the end of a paste so long that it is folded (measured with 2.1.197).
pub fn boxed(mut text: String) -> String {
    let last = text.rsplit(char::is_whitespace).next().unwrap_or_default();
    // A text that is only the name of a command is meant as that command.
    let completed = last.contains('@') || (last.starts_with(['/', '#', ':']) && last != text);
    if completed || last.ends_with('\\') {
        text.push(' ');
    }
    text
}

/// The largest number of lines of a paste that the client takes for the human's own words. A longer one is in `<pasted_content>`,
/// which the client calls material and no instruction (measured with 2.1.330; 2.1.197 does not do that).
const PASTE_LINES: usize = 3;

/// The largest number of UTF-16 units of such a paste, in which a tab counts as the four blanks that the client makes of it.
const PASTE_UNITS: usize = 800;

/// Splits a text into pieces that arrive as one prompt in the human's own words, when each is a paste of its own. They may come in
/// one read (measured with 2.1.197 and 2.1.330). No piece ends in the mention of a file: the client would offer names for it, and
/// put a mark in the place of the next piece (measured with 2.1.330).
pub fn pieces(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let (mut lines, mut units) = (1, 0);
    for c in text.chars() {
        if units + units_of(c) > PASTE_UNITS || (c == '\n' && lines == PASTE_LINES) {
            let mention = piece.split_off(mention_at_the_end(&piece));
            pieces.push(std::mem::replace(&mut piece, mention));
            (lines, units) = (1, piece.chars().map(units_of).sum());
        }
        lines += usize::from(c == '\n');
        units += units_of(c);
        piece.push(c);
    }
    pieces.push(piece);
    pieces
}

/// Returns the number of UTF-16 units that a character has in the client's prompt box.
fn units_of(c: char) -> usize {
    if c == '\t' { 4 } else { c.len_utf16() }
}

/// Returns the byte at which the last word of a text begins, if that word mentions a file as `@src/a.rs` and is not all of the
/// text; else the end of the text.
fn mention_at_the_end(text: &str) -> usize {
    let word = text.rfind(char::is_whitespace).map_or(0, |blank| {
        blank + text[blank..].chars().next().map_or(0, char::len_utf8)
    });
    if word > 0 && text[word..].starts_with('@') {
        word
    } else {
        text.len()
    }
}

/// The first version in which a long text may come in portions, of which the prompt box shows one before the next comes.
const PORTIONS_FROM: [u32; 3] = [2, 1, 330];

/// Reports whether a client of this version takes a long text in portions. An older one has by then put a mark in the place of the
/// text's middle, and puts the rest into the wrong place: 186 KB in portions arrived mixed up in 3 of 3, at once exact (2.1.197).
pub fn takes_portions(version: Option<&str>) -> bool {
    is_at_least(version, PORTIONS_FROM)
}

/// The oldest client that is known to say what a person chooses in it, as [`reports_choices`] has it.
const CHOICES_FROM: [u32; 3] = [2, 1, 331];

/// Reports whether a client of this version says what a person chooses in it: it has the hook for a switch of the model, and takes
/// the present names of the permission modes (2.1.197 does neither, and ends at once on `manual`). One that is not known may not.
pub fn reports_choices(version: Option<&str>) -> bool {
    version.is_some() && is_at_least(version, CHOICES_FROM)
}

/// The words that the client takes for a subcommand when they are its first whole argument.
const SUBCOMMANDS: [&str; 17] = [
    "agents",
    "auth",
    "auto-mode",
    "config",
    "doctor",
    "gateway",
    "help",
    "install",
    "mcp",
    "migrate-installer",
    "plugin",
    "plugins",
    "project",
    "setup-token",
    "ultrareview",
    "update",
    "upgrade",
];

/// The options that take every following word up to the next dash.
const VARIADIC: [&str; 11] = [
    "--add-dir",
    "--allowed-tools",
    "--allowedTools",
    "--betas",
    "--channels",
    "--dangerously-load-development-channels",
    "--disallowed-tools",
    "--disallowedTools",
    "--file",
    "--mcp-config",
    "--tools",
];

/// The options that take a value of their own, so that a following `-c` or `--resume` is no option.
const WITH_VALUE: [&str; 25] = [
    "--agent",
    "--agents",
    "--append-system-prompt",
    "--append-system-prompt-file",
    "--autocompact",
    "--debug-file",
    "--effort",
    "--fallback-model",
    "--input-format",
    "--json-schema",
    "--max-budget-usd",
    "--max-turns",
    "--model",
    "-n",
    "--name",
    "--output-format",
    "--permission-mode",
    "--permission-prompt-tool",
    "--plugin-dir",
    "--plugin-url",
    "--session-id",
    "--setting-sources",
    "--settings",
    "--system-prompt",
    "--system-prompt-file",
];

/// The options that never take a word. The word after an option that we do not know is taken for its value:
/// it is better to keep a prompt of the user once too often than half an option.
const FLAGS: [&str; 31] = [
    "--allow-dangerously-skip-permissions",
    "--allow-other-models",
    "--ax-screen-reader",
    "--background",
    "--bare",
    "--bg",
    "--brief",
    "--chrome",
    "--continue",
    "--dangerously-skip-permissions",
    "--disable-slash-commands",
    "--enable-auto-mode",
    "--exclude-dynamic-system-prompt-sections",
    "--fork-session",
    "--help",
    "--ide",
    "--include-unsupported-models",
    "--init",
    "--maintenance",
    "--no-chrome",
    "--no-session-persistence",
    "--print",
    "--restricted",
    "--safe-mode",
    "--strict-mcp-config",
    "--tmux",
    "--verbose",
    "--version",
    "-c",
    "-h",
    "-p",
];

/// The flags that switch the client's hooks off, so that nothing is observed.
const BLINDING: [&str; 2] = ["--bare", SAFE_MODE];

/// The flag among them that keeps MCP servers out, too (measured with 2.1.197 and 2.1.330).
pub const SAFE_MODE: &str = "--safe-mode";

/// The session that the user's own arguments ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserSession {
    /// They ask for none: the session id is ours to choose.
    Ours,
    /// The user names the id of a new session.
    Named(SessionId),
    /// The user resumes or continues; only the first hook reports the id.
    Theirs,
}

/// A value given as text or as the path of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// The text itself.
    Text(String),
    /// A file that the caller reads, relative to the agent's directory.
    File(PathBuf),
}

/// Builds the command that starts or resumes Claude Code, or the demo that takes its flags.
pub(super) fn command_line(launch: &Launch) -> Result<CommandLine, LaunchError> {
    let user = user_arguments(launch);
    let (flag, session) = match (launch.way, user_session(&user)) {
        (Start::Resume, _) => (Some("--resume"), Some(launch.session)),
        (Start::Fresh, UserSession::Ours) => (Some("--session-id"), Some(launch.session)),
        (Start::Fresh, UserSession::Named(id)) => (None, Some(id)),
        (Start::Fresh, UserSession::Theirs) => (None, None),
    };
    let (append, user) = append_prompt(&user, launch.user_append.as_deref());
    let mut line: Vec<OsString> = launch.lead_args.clone();
    // Of several mods that answer the same event the first decides.
    if let Some(mods) = &launch.mods {
        line.extend(["--plugin-dir".into(), mods.clone().into_os_string()]);
    }
    // The user's arguments go first: a variadic option at their end stops at our first dash.
    line.extend(user.into_iter().map(OsString::from));
    if let Some(flag) = flag {
        line.extend([flag.into(), launch.session.to_string().into()]);
    }
    line.extend([
        "--settings".into(),
        launch.settings_file.clone().into_os_string(),
    ]);
    // It adds to the servers that the user's own arguments name.
    if let Some(config) = &launch.mcp_config {
        line.extend(["--mcp-config".into(), config.into()]);
    }
    line.extend(["--append-system-prompt".into(), append.into()]);
    if let Some(prompt) = &launch.prompt {
        line.extend(["--".into(), prompt_argument(prompt)?]);
    }
    if line.iter().any(|arg| arg.as_encoded_bytes().contains(&0)) {
        return Err(LaunchError::Nul);
    }
    Ok(CommandLine {
        program: launch.program.clone(),
        args: line,
        session,
    })
}

/// Returns the prompt as one argument that arrives as a prompt.
fn prompt_argument(prompt: &str) -> Result<OsString, LaunchError> {
    let mut argument = prompt.to_owned();
    if SUBCOMMANDS.contains(&prompt) {
        argument.push('\n');
    }
    if argument.len() > MAX_PROMPT_ARGUMENT {
        return Err(LaunchError::PromptTooLong {
            found: argument.len(),
            limit: MAX_PROMPT_ARGUMENT,
        });
    }
    Ok(argument.into())
}

/// Returns the user's arguments without those that we merge or that belong to the first start only.
fn user_arguments(launch: &Launch) -> Vec<String> {
    let keeps_session = launch.first && launch.way == Start::Fresh;
    Arguments(&launch.user_args).without(|name| {
        let session_flag = is_session_flag(name) && !keeps_session;
        // A prompt of the user belongs to the first start, too.
        let prompt = name.is_empty() && !launch.first;
        matches!(name, "--settings" | "--") || session_flag || prompt
    })
}

/// Returns the prompt with which the user's own arguments begin a session.
pub fn user_prompt(args: &[String]) -> Option<&str> {
    let mut arguments = Arguments(args).iter();
    let prompt = arguments.find(|arg| arg.name.is_empty())?;
    prompt.raw.first().map(String::as_str)
}

/// Reports whether an option chooses the session.
fn is_session_flag(name: &str) -> bool {
    matches!(
        name,
        "--resume" | "-r" | "--continue" | "-c" | "--session-id" | "--fork-session" | "--from-pr"
    )
}

/// Returns the session that the user's own arguments ask for.
pub fn user_session(args: &[String]) -> UserSession {
    let mut found = UserSession::Ours;
    for arg in Arguments(args).iter() {
        match arg.name {
            "--resume" | "-r" | "--continue" | "-c" | "--from-pr" => return UserSession::Theirs,
            // A malformed id is left to the client, which says what is wrong with it.
            "--session-id" => {
                found = arg
                    .value
                    .and_then(|id| id.parse().ok())
                    .map_or(UserSession::Theirs, UserSession::Named);
            }
            _ => {}
        }
    }
    found
}

/// Reports whether the user's own arguments leave no choice of a session: they name one, or ask for something that is none.
pub fn chooses_session(args: &[String]) -> bool {
    user_session(args) != UserSession::Ours
        || prints_answer(args)
        || Arguments(args).has(&["--help", "-h", "--version", "-v"])
}

/// Returns the role that the user's arguments give the agent by `--agent`.
pub fn role(args: &[String]) -> Option<String> {
    Arguments(args).last("--agent").map(str::to_owned)
}

/// Returns the session that the user's own arguments resume, if they name it.
pub fn resumed_session(args: &[String]) -> Option<SessionId> {
    let arguments = Arguments(args);
    let named = arguments.last("--resume").or_else(|| arguments.last("-r"));
    named?.parse().ok()
}

/// Reports whether the session that they resume goes on under an id of its own.
pub fn forks_session(args: &[String]) -> bool {
    Arguments(args).has(&["--fork-session"])
}

/// Returns those of the user's arguments that hold for every session: none that chooses one, and no prompt.
pub fn lasting_arguments(args: &[String]) -> Vec<String> {
    Arguments(args).without(|name| is_session_flag(name) || matches!(name, "" | "--"))
}

/// Returns the user's arguments for a start in the directory where the agent has worked: it needs no other work tree, and relative
/// paths begin where the first agent was started.
pub fn arguments_elsewhere(args: &[String], project: &Path) -> Vec<String> {
    let mut words = Arguments(args).without(|name| matches!(name, "--worktree" | "-w" | "--tmux"));
    for word in words.iter_mut().filter(|word| word.starts_with('.')) {
        let place = project.join(&*word);
        if place.exists() {
            *word = place.display().to_string();
        }
    }
    words
}

/// The modes that a person can choose in the client, as its `--permission-mode` takes them; hooks and transcripts call `manual` by its
/// older name `default`.
const MODES: [&str; 4] = ["acceptEdits", "auto", "manual", "plan"];

/// The options that say in which permission mode a session begins.
const MODE: &str = "--permission-mode";
const SKIPS: &str = "--dangerously-skip-permissions";

/// Reports whether arguments say in which permission mode a session begins.
pub fn names_mode(args: &[String]) -> bool {
    Arguments(args).has(&[MODE, SKIPS])
}

/// Returns the user's arguments for a session that begins in the permission mode in which the one before it was left. The mode
/// that asks for nothing is never added to them: who has allowed it has said so in them, or in the settings.
pub fn arguments_in_mode(args: &[String], mode: &str) -> Vec<String> {
    let mode = if mode == "default" { "manual" } else { mode };
    if !MODES.contains(&mode) {
        return args.to_vec();
    }
    let arguments = Arguments(args);
    let has = arguments
        .last(MODE)
        .map(|mode| mode.replace("default", "manual"));
    if has.as_deref() == Some(mode) && !arguments.has(&[SKIPS]) {
        return args.to_vec();
    }
    let mut words = vec![MODE.to_owned(), mode.to_owned()];
    if arguments.has(&[SKIPS]) {
        words.push("--allow-dangerously-skip-permissions".to_owned());
    }
    words.extend(arguments.without(|name| matches!(name, SKIPS | MODE)));
    words
}

/// Returns the user's arguments with another model.
pub fn arguments_with_model(args: &[String], model: &str) -> Vec<String> {
    const MODEL: &str = "--model";
    let mut words = vec![MODEL.to_owned(), model.to_owned()];
    words.extend(Arguments(args).without(|name| name == MODEL));
    words
}

const NAME: &str = "--name";

/// Reports whether the user's arguments name the session.
pub fn names_session(args: &[String]) -> bool {
    Arguments(args).has(&[NAME, "-n"])
}

/// Returns the user's arguments with the name that a person gave the session before, as far as an argument may be long.
pub fn arguments_with_name(args: &[String], name: &str) -> Vec<String> {
    let name = &name[..name.floor_char_boundary(NAME_LENGTH)];
    // It may begin like an option.
    let mut words = vec![format!("{NAME}={name}")];
    words.extend(Arguments(args).without(|name| matches!(name, NAME | "-n")));
    words
}

/// The most of a session's name that is given to the next one, in bytes.
const NAME_LENGTH: usize = 256;

/// Returns the user's own `--settings`, to be merged by [`settings()`].
pub fn user_settings(args: &[String]) -> Option<Given> {
    let value = Arguments(args).last("--settings")?;
    Some(if value.trim_start().starts_with('{') {
        Given::Text(value.to_owned())
    } else {
        Given::File(value.into())
    })
}

/// Returns the file of the user's own `--append-system-prompt-file`, which the caller reads for
/// [`Launch::user_append`].
pub fn user_append_file(args: &[String]) -> Option<PathBuf> {
    Arguments(args)
        .last("--append-system-prompt-file")
        .map(PathBuf::from)
}

/// Reports whether the user's arguments ask for one answer on stdout (`-p`), which needs no pane.
pub fn prints_answer(args: &[String]) -> bool {
    Arguments(args).has(&["-p", "--print"])
}

/// Returns the first of the user's flags that switches hooks off, so that the gauge stays blind.
pub fn blinding_flag(args: &[String]) -> Option<&'static str> {
    let mut flags = BLINDING.into_iter();
    flags.find(|flag| Arguments(args).has(&[flag]))
}

/// Returns our appended prompt joined with the user's own, and the arguments without theirs.
fn append_prompt(args: &[String], file_text: Option<&str>) -> (String, Vec<String>) {
    const APPEND: [&str; 2] = ["--append-system-prompt", "--append-system-prompt-file"];
    let mut prompt = SYSTEM_PROMPT.trim_end().to_owned();
    let arguments = Arguments(args);
    if let Some(text) = arguments.last("--append-system-prompt").or(file_text) {
        prompt = format!("{text}\n\n{prompt}");
    }
    (prompt, arguments.without(|name| APPEND.contains(&name)))
}

/// The command-line arguments, read as the client reads them.
pub struct Arguments<'a>(pub &'a [String]);

/// An option with its value, or a bare word (then `name` is empty).
pub struct Argument<'a> {
    /// The option without a glued value.
    pub name: &'a str,
    /// The glued or following value; of a variadic option the first one.
    pub value: Option<&'a str>,
    /// The words that it takes up.
    pub raw: &'a [String],
}

impl<'a> Arguments<'a> {
    /// Returns all of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = Argument<'a>> + use<'a> {
        let mut rest = self.0;
        let mut literal = false;
        std::iter::from_fn(move || {
            let first = rest.first()?;
            let (name, glued) = match first.split_once('=') {
                _ if literal || first.len() < 2 || !first.starts_with('-') => ("", None),
                Some((name, value)) if name.starts_with("--") => (name, Some(value)),
                _ => (first.as_str(), None),
            };
            literal |= name == "--";
            let words = rest[1..]
                .iter()
                .take_while(|word| !word.starts_with('-'))
                .count();
            let following = match name {
                "" | "--" => 0,
                name if VARIADIC.contains(&name) => words,
                _ if glued.is_some() => 0,
                name if FLAGS.contains(&name) => 0,
                name if WITH_VALUE.contains(&name) => 1.min(rest.len() - 1),
                _ => words.min(1),
            };
            let raw;
            (raw, rest) = rest.split_at(1 + following);
            let value = glued.or_else(|| raw.get(1).map(String::as_str));
            Some(Argument { name, value, raw })
        })
    }

    /// Reports whether one of these options is among them.
    pub fn has(&self, names: &[&str]) -> bool {
        self.iter().any(|arg| names.contains(&arg.name))
    }

    /// Returns the words of all but those whose name is left out.
    fn without(&self, is_left_out: impl Fn(&str) -> bool) -> Vec<String> {
        let kept = self.iter().filter(|arg| !is_left_out(arg.name));
        kept.flat_map(|arg| arg.raw).cloned().collect()
    }

    /// Returns the value of the last option called `name`, which is the one that counts.
    pub fn last(&self, name: &str) -> Option<&'a str> {
        self.iter().filter(|arg| arg.name == name).last()?.value
    }
}

#[cfg(test)]
mod tests;
