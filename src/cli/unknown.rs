//! The report of an unknown command: it names the nearest command.

use super::out;
use pitstop_core::config::nearest;

/// The words that other programs have for a command of this program.
const OTHER_WORDS: [(&str, &str); 7] = [
    ("resume", "history"),
    ("continue", "history"),
    ("checkpoint", "save"),
    ("checkpoints", "restore --list"),
    ("config", "check"),
    ("log", "history"),
    ("start", "run"),
];

/// Reports that there is no such command, and which one may be meant; returns the exit code.
#[must_use]
pub fn report<'a>(word: &str, commands: impl Iterator<Item = &'a str>) -> i32 {
    let meant = OTHER_WORDS
        .iter()
        .find(|(other, _)| *other == word)
        .map(|(_, command)| *command)
        .or_else(|| nearest(word, commands));
    let hint = meant.map_or_else(
        || "`pitstop --help` lists the commands".to_owned(),
        |command| format!("did you mean `pitstop {command}`? `pitstop --help` lists the commands"),
    );
    out::misused(&format!("there is no command {word:?}"), &hint)
}
