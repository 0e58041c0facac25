//! The clipboard: the host terminal's by OSC 52, and the system's by its own tool where there is one.
//!
//! OSC 52 reaches the clipboard of the machine the human sits at, also over SSH, but not every terminal takes it;
//! the tool reaches the clipboard of the machine we run on. What the human copies goes to both, what the agent
//! stores only to the terminal, which may ask.

use std::{ffi::OsStr, process::Stdio, time::Duration};

use base64::Engine as _;
use tokio::{io::AsyncWriteExt as _, process::Command, sync::mpsc};

use pitstop_core::app::Event;

/// The largest text given to the host terminal, in bytes: with more, terminals drop the sequence or hang on it.
const TERMINAL_LIMIT: usize = 1 << 20;

/// The time that a tool may take to read the text. Tools that stay to serve it do so in the background.
const TOOL_TIME: Duration = Duration::from_secs(3);

/// A program that takes the clipboard's text on its standard input, and its arguments.
pub type Tool = (&'static str, &'static [&'static str]);

const WAYLAND: Tool = ("wl-copy", &["--type", "text/plain;charset=utf-8"]);
const X11: Tool = ("xclip", &["-selection", "clipboard", "-in"]);
const MAC: Tool = ("pbcopy", &[]);

/// Returns the tool of the system we run on, by the variables that name its display.
pub fn tool(wayland: Option<&OsStr>, display: Option<&OsStr>, mac: bool) -> Option<Tool> {
    let set = |variable: Option<&OsStr>| variable.is_some_and(|value| !value.is_empty());
    if mac {
        Some(MAC)
    } else if set(wayland) {
        Some(WAYLAND)
    } else if set(display) {
        Some(X11)
    } else {
        None
    }
}

/// Returns the sequence that stores a text in the host terminal's clipboard, built from the text alone; `None` for one
/// that is too large.
pub fn sequence(text: &str) -> Option<Vec<u8>> {
    (text.len() <= TERMINAL_LIMIT).then(|| {
        let encoded = base64::engine::general_purpose::STANDARD.encode(text);
        format!("\x1b]52;c;{encoded}\x1b\\").into_bytes()
    })
}

/// Gives a text to the system's tool, if there is one, without waiting for it.
pub fn give_to_system(text: String, answers: &mpsc::Sender<Event>) {
    let variable = |name| std::env::var_os(name);
    let (wayland, display) = (variable("WAYLAND_DISPLAY"), variable("DISPLAY"));
    let mac = cfg!(target_os = "macos");
    let Some(tool) = tool(wayland.as_deref(), display.as_deref(), mac) else {
        return;
    };
    let answers = answers.clone();
    tokio::spawn(async move {
        if let Err(why) = run(tool, text).await {
            // A display without its tool is common, and the host terminal has the text.
            tracing::info!(program = tool.0, why, "not on the system's clipboard");
            if why != NOT_THERE {
                let what = format!("{} did not take the text: {why}", tool.0);
                // The loop is gone, then.
                let _ = answers.send(Event::EffectFailed { what }).await;
            }
        }
    });
}

/// The reason for the failure of a tool that is not installed.
const NOT_THERE: &str = "it is not installed";

async fn run((program, arguments): Tool, text: String) -> Result<(), String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => NOT_THERE.to_owned(),
            _ => error.to_string(),
        })?;
    let mut input = child.stdin.take().ok_or("it has no input")?;
    let given = async move {
        input.write_all(text.as_bytes()).await?;
        drop(input);
        child.wait().await
    };
    match tokio::time::timeout(TOOL_TIME, given).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(status.to_string()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("it took too long".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_is_that_of_the_display() {
        let set = |text: &'static str| Some(OsStr::new(text));
        assert_eq!(tool(set("wayland-0"), set(":0"), false), Some(WAYLAND));
        assert_eq!(tool(set(""), set(":0"), false), Some(X11));
        assert_eq!(tool(None, None, false), None);
        assert_eq!(tool(None, None, true), Some(MAC));
    }

    #[test]
    fn a_text_is_rebuilt_and_one_that_is_too_large_is_not_sent() {
        assert_eq!(
            sequence("a\x1b]").as_deref(),
            Some(&b"\x1b]52;c;YRtd\x1b\\"[..])
        );
        assert_eq!(sequence(&"x".repeat(TERMINAL_LIMIT + 1)), None);
    }
}
