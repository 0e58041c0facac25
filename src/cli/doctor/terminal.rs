//! The checks of what the terminal can do: by its names, and by its answers.

use std::{
    env,
    fs::{File, OpenOptions},
    io::{IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    termios::tcgetwinsize,
};

use super::Finding;
use crate::{
    cli::out::Raw,
    runtime::{Looks, locale},
    supervisor::boot::variable,
    ui::Depth,
};
use pitstop_base::keymap::{Keymap, Trigger};
use pitstop_core::app::layout::SMALLEST;
use pitstop_terminal::input::{Decoder, HostInput, HostReply};

/// The time that the terminal may take to answer: some are behind a slow line.
const ANSWER_TIME: Duration = Duration::from_millis(600);

/// The queries for keyboard flags, synchronized output and name; DA1 comes last, because every terminal answers it.
const QUESTIONS: &[u8] = b"\x1b[?u\x1b[?2026$p\x1b[>0q\x1b[c";

/// Checks the size and the answers of the terminal that this command runs in, as far as it can be asked.
pub(super) fn examine() -> (Option<Finding>, Option<Finding>) {
    if !std::io::stdin().is_terminal() {
        let unasked = Finding::unknown("not asked: standard input is not a terminal");
        return (None, Some(unasked));
    }
    let Ok(tty) = OpenOptions::new().read(true).write(true).open("/dev/tty") else {
        return (None, None);
    };
    let answers = match ask(&tty) {
        Some(answers) => answers.check(),
        None => Finding::warning("the terminal does not answer queries")
        .remedy("colours and keys are guessed from TERM; use a newer terminal or multiplexer if they are wrong"),
    };
    (size(&tty), Some(answers))
}

/// Checks the terminal by the environment.
pub(super) fn names() -> Finding {
    let (term, locale) = (variable("TERM"), locale(&variable));
    let colours = match Looks::of(variable).depth {
        Depth::Mono => "no colours",
        Depth::Ansi16 => "16 colours",
        Depth::Indexed256 => "256 colours",
        Depth::TrueColor => "all colours",
    };
    let utf8 = ["utf-8", "utf8"]
        .iter()
        .any(|name| locale.to_ascii_lowercase().contains(name));
    let found = format!("TERM={term}, {colours}");
    if term.is_empty() || term == "dumb" {
        return Finding::warning(found).remedy("set TERM to your terminal's name");
    }
    if !utf8 && !cfg!(target_os = "macos") {
        return Finding::warning(format!("{found}, locale {locale:?}"))
            .remedy("set LANG to a UTF-8 locale such as C.UTF-8: programs in the pane go by it");
    }
    Finding::ok(found)
}

/// A host terminal that keeps keys for itself, as far as that is known of it.
struct Taking {
    terminal: &'static str,
    /// The keys, as labels.
    keys: &'static [&'static str],
    /// The instruction to get the keys back.
    remedy: &'static str,
}

/// Returns the terminal, by the variables that it sets, and the keys that it keeps unless its settings change that.
fn taking(variable: impl Fn(&str) -> String) -> Option<Taking> {
    let is_set = |name: &str| !variable(name).is_empty();
    let program = variable("TERM_PROGRAM");
    Some(match program.as_str() {
        "vscode" => Taking {
            terminal: "VS Code's terminal",
            keys: &["F1", "F5", "F6", "F10", "F11", "Ctrl-q"],
            remedy: "set \"terminal.integrated.sendKeybindingsToShell\": true",
        },
        "Apple_Terminal" | "iTerm.app" => Taking {
            terminal: "a terminal of macOS",
            keys: &[
                "F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9", "F10", "F11", "F12",
            ],
            remedy: "hold Fn, or let the system use F1, F2 and so on as standard function keys",
        },
        _ if is_set("VTE_VERSION") => Taking {
            terminal: "a terminal of the VTE family, such as GNOME Terminal",
            keys: &["F1", "F10", "F11"],
            remedy: "switch the menu's accelerator and the shortcuts for help and full screen off in its preferences",
        },
        _ if is_set("KONSOLE_VERSION") => Taking {
            terminal: "Konsole",
            keys: &["F1", "F11"],
            remedy: "remove them under Settings > Configure Keyboard Shortcuts",
        },
        _ => return None,
    })
}

/// Checks which keys of pitstop the host terminal may keep for itself: it cannot be asked, so it is known by its name.
pub(super) fn keys(keymap: &Keymap) -> Finding {
    let multiplexed = ["TMUX", "STY"]
        .iter()
        .any(|name| env::var_os(name).is_some());
    keys_in(keymap, multiplexed, variable)
}

fn keys_in(keymap: &Keymap, multiplexed: bool, variable: impl Fn(&str) -> String) -> Finding {
    let Some(taking) = taking(variable) else {
        // The outer terminal cannot be identified inside a multiplexer.
        let found = if multiplexed {
            "not known inside tmux or screen"
        } else {
            "this terminal is not known to use any of pitstop's keys itself"
        };
        return Finding::ok(found);
    };
    let is_kept = |label: &str| taking.keys.contains(&label);
    let mut lost: Vec<String> = Vec::new();
    let prefix = keymap.prefix().label();
    if is_kept(&prefix) {
        lost.push(format!("{prefix} (prefix)"));
    }
    for binding in keymap.bindings() {
        for trigger in &binding.triggers {
            let label = keymap.label(*trigger);
            if matches!(trigger, Trigger::Direct(_)) && is_kept(&label) {
                lost.push(format!("{label} ({})", binding.action.name()));
            }
        }
    }
    if lost.is_empty() {
        return Finding::ok(format!(
            "{} uses none of pitstop's keys itself",
            taking.terminal
        ));
    }
    let found = format!("{} may keep {}", taking.terminal, lost.join(", "));
    let other = if is_kept(&prefix) {
        "set keys.prefix and the others in [keys] to keys that arrive".to_owned()
    } else {
        format!("use {prefix} and a letter, which F1 or {prefix} ? lists")
    };
    Finding::warning(found).remedy(format!("{}; or {other}", taking.remedy))
}

fn size(tty: &File) -> Option<Finding> {
    let size = tcgetwinsize(tty).ok()?;
    let found = format!("{}×{} cells", size.ws_col, size.ws_row);
    Some(if size.ws_col < SMALLEST.0 || size.ws_row < SMALLEST.1 {
        Finding::broken(found).remedy(format!("make it at least {}×{}", SMALLEST.0, SMALLEST.1))
    } else if size.ws_col < 100 {
        Finding::ok(format!(
            "{found}: the pane alone; panels from 100 columns on"
        ))
    } else {
        Finding::ok(found)
    })
}

/// The answers of the terminal.
#[derive(Debug, Default, PartialEq, Eq)]
struct Answers {
    kitty_keys: bool,
    synchronizes: bool,
    name: Option<String>,
}

impl Answers {
    fn take(&mut self, reply: HostReply) -> bool {
        match reply {
            HostReply::KittyFlags(_) => self.kitty_keys = true,
            HostReply::ModeReport { mode: 2026, value } => {
                self.synchronizes = matches!(value, 1 | 2);
            }
            HostReply::Version(name) => self.name = Some(name),
            HostReply::DeviceAttributes(_) => return true,
            _ => {}
        }
        false
    }

    fn check(self) -> Finding {
        let name = self.name.unwrap_or_else(|| "no name reported".to_owned());
        let yes = |has: bool| if has { "yes" } else { "no" };
        let found = format!(
            "{name}, keys without ambiguity: {}, frames without flicker: {}",
            yes(self.kitty_keys),
            yes(self.synchronizes)
        );
        let check = Finding::ok(found);
        if self.kitty_keys {
            return check;
        }
        check.remedy(
            "Shift+Enter may reach the agent as Enter (tmux: `set -s extended-keys on`); \\ then Enter makes a new line",
        )
    }
}

/// Asks the terminal, in raw mode for as long as it takes to answer.
fn ask(tty: &File) -> Option<Answers> {
    let _raw = Raw::begin().ok()?;
    let mut out = tty;
    out.write_all(QUESTIONS).ok()?;
    let deadline = Instant::now() + ANSWER_TIME;
    let mut decoder = Decoder::default();
    let mut answers = Answers::default();
    let mut chunk = [0_u8; 1_024];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok()?;
        let mut ready = [PollFd::new(tty, PollFlags::IN)];
        if left.is_zero() || poll(&mut ready, Some(&timeout)).ok()? == 0 {
            return None;
        }
        let count = rustix::io::read(tty, &mut chunk).ok()?;
        for input in decoder.feed(&chunk[..count]) {
            if let HostInput::Reply { reply, .. } = input
                && answers.take(reply)
            {
                return Some(answers);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::State;

    #[test]
    fn keys_that_the_terminal_keeps_are_named_with_what_to_do() {
        let keymap = Keymap::default();
        let only = |name: &'static str, value: &'static str| {
            move |asked: &str| {
                if asked == name {
                    value.to_owned()
                } else {
                    String::new()
                }
            }
        };
        let check = keys_in(&keymap, false, only("VTE_VERSION", "7600"));
        assert_eq!(check.state, State::Warning);
        assert!(check.found.contains("F1 (help)"), "{}", check.found);
        assert!(!check.found.contains("F5"), "{}", check.found);
        assert!(
            check.remedy.contains("Ctrl-q and a letter"),
            "{}",
            check.remedy
        );
        let check = keys_in(&keymap, false, only("TERM_PROGRAM", "vscode"));
        assert!(check.found.contains("Ctrl-q (prefix)"), "{}", check.found);
        let check = keys_in(&keymap, false, only("TERM", "foot"));
        assert_eq!((check.state, check.remedy.as_str()), (State::Ok, ""));
    }

    #[test]
    fn answers_are_read_to_the_one_that_every_terminal_gives() {
        let mut decoder = Decoder::default();
        let mut answers = Answers::default();
        let mut over = false;
        for input in decoder.feed(b"\x1b[?1u\x1b[?2026;2$y\x1bP>|kitty(0.40)\x1b\\\x1b[?62;4c") {
            if let HostInput::Reply { reply, .. } = input {
                over = answers.take(reply);
            }
        }
        assert!(over);
        let expected = Answers {
            kitty_keys: true,
            synchronizes: true,
            name: Some("kitty(0.40)".to_owned()),
        };
        assert_eq!(answers, expected);
        assert_eq!(answers.check().remedy, "");
    }
}
