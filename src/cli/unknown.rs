//! The report of an unknown command: it names the nearest command.

use super::out::{self, Failure};
use pitstop_core::config::nearest;

/// The words that other programs have for a command of this program.
const OTHER_WORDS: [(&str, &str); 13] = [
    ("undo", "ctl undo"),
    ("reboot", "ctl reboot"),
    ("review", "ctl reboot"),
    ("approve", "ctl approve"),
    ("defer", "ctl defer"),
    ("pause", "ctl pause"),
    ("list", "ls"),
    ("sessions", "ls"),
    ("checkpoint", "save"),
    ("checkpoints", "restore --list"),
    ("config", "check"),
    ("log", "history"),
    ("start", "run"),
];

/// The words that other programs have for what this program asks at its start.
const RESUMING: [&str; 2] = ["resume", "continue"];

/// Returns the failure where there is no such command, which names the one that may be meant.
pub fn failure<'a>(word: &str, commands: impl Iterator<Item = &'a str>) -> Failure {
    if RESUMING.contains(&word) {
        let hint = "`pitstop` alone lists the sessions that can be resumed, `pitstop attach` shows one that runs";
        return out::misused(format!("there is no command {word:?}"), hint);
    }
    let meant = OTHER_WORDS
        .iter()
        .find(|(other, _)| *other == word)
        .map(|(_, command)| *command)
        .or_else(|| nearest(word, commands));
    let hint = meant.map_or_else(
        || "`pitstop --help` lists the commands".to_owned(),
        |command| format!("did you mean `pitstop {command}`? `pitstop --help` lists the commands"),
    );
    out::misused(format!("there is no command {word:?}"), &hint)
}
