//! The functions that all printing commands share: quiet writes, clean text, aligned columns, one way to fail.

use std::env;
use std::ffi::OsStr;
use std::fmt::{Display, Write as _};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use chrono::{DateTime, Utc};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Runtime};
use unicode_width::UnicodeWidthStr;

pub use pitstop_base::clean::chain;
use pitstop_base::clean::one_line;
pub use pitstop_base::exit::{FAILED, NONE_RUNS, OK, USAGE};
pub use pitstop_base::format::{duration, tokens};
use pitstop_base::{format, private_file::read_at_most, redact};
use pitstop_core::api::wire::ErrorBody;
use pitstop_core::config::{
    error::Style,
    load::paths::{project_here, secrets_file_here},
};
use pitstop_server::{
    CLIENT_LIMIT,
    client::{Answer, ApiClient, ClientError},
};

use super::own_program;
use crate::supervisor::{NoTerminal, StartError};

/// The end of a command: its exit code, or the reason why it has failed.
pub type Outcome = Result<i32, Failure>;

/// The reason why a command has failed, and its exit code then.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Failure {
    /// The exit code.
    pub code: i32,
    /// What is wrong.
    pub error: String,
    /// What can be done about it; empty where nothing is known.
    pub hint: String,
}

impl Failure {
    /// Sets the exit code.
    pub fn with_code(self, code: i32) -> Self {
        Self { code, ..self }
    }

    /// Prints it as [`complain`] does; returns the exit code.
    pub fn show(&self) -> i32 {
        complain(&self.error, &self.hint);
        self.code
    }
}

impl<E: std::error::Error> From<E> for Failure {
    /// Returns a failure with all causes of the error.
    fn from(error: E) -> Self {
        failed(chain(&error), "")
    }
}

/// The terminal in raw mode: it is restored when this is dropped, for whatever reason.
pub struct Raw;

impl Raw {
    /// Sets raw mode; standard input must be a terminal, because crossterm would else use any other one.
    pub fn begin() -> io::Result<Self> {
        enable_raw_mode().map(|()| Self)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // A terminal that has gone away needs no modes.
        disable_raw_mode().ok();
    }
}

/// Prints text or JSON on standard output in one write, its secrets masked; a reader that has gone away is not an error.
pub fn print(text: &str) -> i32 {
    let text = if text.starts_with(['{', '[']) {
        redact::json(text)
    } else {
        redact::redact(text)
    };
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    match written {
        Ok(()) => OK,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => OK,
        Err(error) => {
            complain(&format!("cannot write to standard output: {error}"), "");
            FAILED
        }
    }
}

/// Returns what a command prints: one line of JSON for scripts, or text for people.
pub fn render<J: Display>(
    as_json: bool,
    json: impl FnOnce() -> J,
    text: impl FnOnce() -> String,
) -> String {
    if as_json {
        format!("{}\n", json())
    } else {
        text()
    }
}

/// Prints one error with its hint, if that is not empty, on standard error.
pub fn complain(error: &str, hint: &str) {
    let mut text = format!("error: {}\n", one_line(&redact::redact(error)));
    if !hint.is_empty() {
        writeln!(text, "hint: {}", one_line(hint)).expect("writing to a string cannot fail");
    }
    // No reader is left to see that even this could not be written.
    io::stderr().write_all(text.as_bytes()).ok();
}

/// Returns a failure, with a hint unless that is empty.
pub fn failed(error: impl Into<String>, hint: impl Into<String>) -> Failure {
    Failure {
        code: FAILED,
        error: error.into(),
        hint: hint.into(),
    }
}

/// Returns the failure of a wrong command line, with a hint unless that is empty.
pub fn misused(error: impl Into<String>, hint: impl Into<String>) -> Failure {
    failed(error, hint).with_code(USAGE)
}

/// Returns the failure of a supervisor that cannot start, or has crashed.
pub fn not_started(error: &StartError) -> Failure {
    failed(chain(error), error.hint()).with_code(error.code())
}

/// Returns the style for faults on this stream: in colour on a terminal, unless `NO_COLOR` is set.
pub fn style(stream: &impl IsTerminal) -> Style {
    let no_color = env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty());
    if stream.is_terminal() && !no_color {
        Style::Colour
    } else {
        Style::Plain
    }
}

/// Reports whether there is a terminal on which a screen can be drawn.
pub fn has_terminal() -> bool {
    check_terminal().is_ok()
}

/// Checks that standard input and output are a terminal on which a screen can be drawn.
pub fn check_terminal() -> Result<(), NoTerminal> {
    match env::var_os("TERM") {
        _ if !io::stdin().is_terminal() || !io::stdout().is_terminal() => Err(NoTerminal::NotOne),
        Some(term) if term == "dumb" => Err(NoTerminal::Dumb),
        Some(term) if !term.is_empty() => Ok(()),
        _ => Err(NoTerminal::Unnamed),
    }
}

/// Makes a runtime on this thread.
pub fn runtime() -> Result<Runtime, Failure> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Goes to the directory of a project.
pub fn enter(project: &Path) -> Result<(), Failure> {
    env::set_current_dir(project).map_err(cannot("enter", project))
}

/// Makes the failure of something that was to be done with a file or a directory.
pub fn cannot(act: &str, path: &Path) -> impl FnOnce(io::Error) -> Failure {
    let what = format!("cannot {act} {}", path.display());
    move |error| failed(format!("{what}: {error}"), "")
}

/// Returns the current project.
pub fn project() -> Result<PathBuf, Failure> {
    project_here()
        .map_err(|error| failed(format!("cannot find the current directory: {error}"), ""))
}

/// Reads standard input, at most this many bytes of it.
pub fn piped(limit: u64) -> io::Result<Vec<u8>> {
    read_at_most(limit, io::stdin().lock())
}

/// Returns the heads of a table's columns, which are given with bars between them.
pub fn heads(names: &str) -> Vec<String> {
    names.split('|').map(str::to_owned).collect()
}

/// Returns how long ago a moment is, in words.
pub fn ago(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    format::ago(now.signed_duration_since(at).to_std().unwrap_or_default())
}

/// Returns rows as text with columns aligned and two cells apart; the last column is not padded. Fields may
/// come from anywhere: characters that are unsafe to show become escapes here.
pub fn columns(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<_>> = rows
        .iter()
        .map(|row| row.iter().map(|field| one_line(field)).collect())
        .collect();
    let mut widths: Vec<usize> = Vec::new();
    for row in &rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, field) in widths.iter_mut().zip(row) {
            *width = (*width).max(field.width());
        }
    }
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (width, field) in widths.iter().zip(row) {
            line.push_str(field);
            line.extend(std::iter::repeat_n(' ', width - field.width() + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Returns a path with `~` for the home directory.
pub fn path(path: &Path) -> String {
    let below = env::home_dir().and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned));
    match below {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}

/// Asks the supervisor of the current project.
pub fn ask(
    exchange: impl Fn(&ApiClient, Instant) -> Result<Answer, ClientError>,
) -> Result<Answer, Failure> {
    ask_if_any(exchange)?.ok_or_else(none_runs)
}

/// Returns the way to the supervisor of the current project.
pub fn here() -> Result<ApiClient, ClientError> {
    client_of(secrets_file_here("control"))
}

/// Returns the way to the supervisor with this secrets file.
pub fn client_of(file: io::Result<PathBuf>) -> Result<ApiClient, ClientError> {
    let act = "find out which directory this is";
    ApiClient::from_file(&file.map_err(|source| ClientError::Io { act, source })?)
}

/// Asks as [`ask`] does, but returns `None` if no supervisor runs here, which is not an error.
pub fn ask_if_any(
    exchange: impl Fn(&ApiClient, Instant) -> Result<Answer, ClientError>,
) -> Result<Option<Answer>, Failure> {
    let asked = |door: ApiClient| exchange(&door, Instant::now() + CLIENT_LIMIT);
    let answer = match here().and_then(asked) {
        Ok(answer) => answer,
        Err(ClientError::NoSupervisor { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if (200..300).contains(&answer.status) {
        return Ok(Some(answer));
    }
    Err(refused(&answer))
}

/// Returns the reason that the supervisor gives for a refusal.
pub fn refused(answer: &Answer) -> Failure {
    let refusal = serde_json::from_slice::<ErrorBody>(&answer.body);
    let refusal = refusal.unwrap_or_else(|_| ErrorBody {
        error: format!("the supervisor answered with code {}", answer.status),
        hint: String::new(),
        field: None,
    });
    failed(refusal.error, refusal.hint)
}

/// Gets a report of the supervisor, with its JSON as it came.
pub fn get<T: DeserializeOwned>(path: &str) -> Result<(T, String), Failure> {
    get_if_any(path)?.ok_or_else(none_runs)
}

/// Gets a report as [`get`] does, but returns `None` if no supervisor runs here, which is not an error.
pub fn get_if_any<T: DeserializeOwned>(path: &str) -> Result<Option<(T, String)>, Failure> {
    let Some(answer) = ask_if_any(|door, deadline| door.get(path, deadline))? else {
        return Ok(None);
    };
    let answer = serde_json::from_slice(&answer.body)
        .ok()
        .zip(String::from_utf8(answer.body).ok());
    answer
        .map(Some)
        .ok_or_else(|| by_own_program(env::args_os().skip(1)))
}

/// Becomes the program of the supervisor of the current project, called with these words; returns why that cannot be done.
pub fn by_own_program(words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Failure {
    match here() {
        Ok(door) => own_program::become_it(&door, Instant::now() + CLIENT_LIMIT, words),
        Err(error) => error.into(),
    }
}

/// The hint on how to start a supervisor.
pub const START: &str = "start one with `pitstop`, or go to the directory in which it was started";

/// Returns the failure where no supervisor runs here.
pub fn none_runs() -> Failure {
    failed("no supervisor runs for this directory", START).with_code(NONE_RUNS)
}

/// Returns the failure where nothing is known of this directory.
pub fn none_recorded() -> Failure {
    let error = "no supervisor runs for this directory, and no earlier run of it is on record";
    failed(error, START).with_code(NONE_RUNS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_cells() {
        let row = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
        assert_eq!(
            columns(&[row("漢字", "1"), row("abc", "2"), row("", "")]),
            "漢字  1\nabc   2\n\n"
        );
    }
}
