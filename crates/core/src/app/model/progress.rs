//! The work that a session has got done, by which, and not by its turns, it is judged whether reboots help.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hasher as _},
};

use crate::autopilot;

/// The number of commands that are remembered: a run of a week has fewer.
const COMMANDS: usize = 1 << 14;

/// The programs that only read. A session that runs nothing else has got nothing done by its commands.
const LOOKS: [&str; 38] = [
    "[", "awk", "basename", "bat", "cat", "cd", "cut", "date", "df", "diff", "dirname", "du",
    "echo", "env", "fd", "file", "find", "grep", "head", "jq", "less", "ls", "nl", "printf", "ps",
    "pwd", "rg", "sleep", "sort", "stat", "tail", "test", "tr", "tree", "true", "uniq", "wc",
    "which",
];

/// The subcommands of git that only read.
const GIT_LOOKS: [&str; 9] = [
    "blame", "branch", "diff", "grep", "log", "ls-files", "remote", "show", "status",
];

/// The work that the sessions of a run have got done.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// True if a tool has changed a file or the to-do list in the present session, or a new command was run.
    worked: bool,
    /// A hash of git, notes, to-dos, signals and tests when the session began; none while git has not been read.
    began: Option<u64>,
    /// The hashes of the commands of all sessions so far.
    commands: BTreeSet<u64>,
    /// The number of sessions in a row that have filled without getting anything done.
    pub(in crate::app) idle_sessions: u32,
}

impl Progress {
    /// Notes that a tool has run in the main conversation or in a subagent's, and reports whether that is work done.
    pub fn tool_ran(&mut self, name: &str, command: Option<&str>, failed: bool) -> bool {
        let worked = match command {
            None => !failed && autopilot::changes_work(name),
            Some(command) => {
                let words: Vec<&str> = command.split_whitespace().collect();
                let new = self.commands.len() < COMMANDS && self.commands.insert(hash_of(&words));
                new && !only_looks(command)
            }
        };
        self.worked |= worked;
        worked
    }

    /// Takes the draft's state of the work after git was read: the first one is what later ones are compared with.
    pub fn looked(&mut self, state: u64) {
        self.began.get_or_insert(state);
    }

    /// Reports whether the present session has got something done, given the draft's state of the work.
    pub fn is_made(&self, state: u64) -> bool {
        self.worked || self.began.is_some_and(|began| began != state)
    }

    /// Begins the next session; the present one has ended because it was `full` or for another reason.
    pub fn next_session(&mut self, full: bool, state: u64) {
        self.idle_sessions = if full { self.idle(state) } else { 0 };
        self.worked = false;
        self.began = self.began.map(|_| state);
    }

    /// Returns the number of sessions in a row that have filled without getting anything done, with the present one if it has not.
    pub fn idle(&self, state: u64) -> u32 {
        if self.is_made(state) {
            0
        } else {
            self.idle_sessions.saturating_add(1)
        }
    }
}

/// Reports whether a shell command only reads and changes nothing, as far as its words show.
pub(in crate::app) fn only_looks(command: &str) -> bool {
    let quiet = ["2>&1", "2>/dev/null", "/dev/null"];
    let without = |text: String, one: &str| text.replace(one, "");
    let written = quiet.into_iter().fold(command.to_owned(), without);
    let writes =
        |word: &str| word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&') != ">";
    let redirects = written.match_indices('>').any(|(at, _)| {
        let target = written[at + 1..]
            .trim_start_matches('>')
            .split_whitespace()
            .next();
        target.is_some_and(writes)
    });
    !redirects && written.split([';', '|', '&', '\n']).all(part_only_looks)
}

fn part_only_looks(part: &str) -> bool {
    let mut words = part
        .split_whitespace()
        .map(|word| word.trim_matches(['(', ')', '{', '}']))
        .filter(|word| !word.is_empty())
        .skip_while(|word| word.contains('='));
    let Some(program) = words.next() else {
        return true;
    };
    match program {
        "git" => words.next().is_some_and(|word| GIT_LOOKS.contains(&word)),
        "sed" => !words.any(|word| word.starts_with("-i")),
        program => LOOKS.contains(&program),
    }
}

pub(in crate::app) fn hash_of(value: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_only_look_are_told_from_those_that_work() {
        for command in [
            "ls -la",
            "cat a.rs | head -20",
            "cd src && grep -rn foo . 2>/dev/null",
            "cat a 2>/dev/null | head -5",
            "cat a 2>/dev/null; git status",
            "git log --oneline -5; git status",
            "find . -name '*.rs' | wc -l",
            "RUST_LOG=1 cat x 2>&1",
            "sed -n 1,20p file",
            "(cd a; pwd)",
        ] {
            assert!(only_looks(command), "{command}");
        }
        for command in [
            "cargo test",
            "echo x > file",
            "cat a >> b",
            "git commit -qm x",
            "git -C x status",
            "sed -i s/a/b/ file",
            "ls && rm x",
            "python3 - <<'E'",
        ] {
            assert!(!only_looks(command), "{command}");
        }
    }

    #[test]
    fn the_same_command_in_a_later_session_is_no_progress() {
        let mut progress = Progress::default();
        progress.looked(1);
        progress.tool_ran("Bash", Some("cargo  test"), true);
        assert!(progress.is_made(1), "one that fails is work, too");
        progress.next_session(true, 1);
        progress.tool_ran("Bash", Some("cargo test"), false);
        progress.tool_ran("Read", None, false);
        progress.tool_ran("Edit", None, true);
        assert_eq!((progress.is_made(1), progress.idle(1)), (false, 1));
        progress.next_session(true, 1);
        assert_eq!(progress.idle(1), 2);
        assert_eq!(
            progress.idle(7),
            0,
            "git, notes, plan or tests have changed"
        );
        progress.tool_ran("Write", None, false);
        assert_eq!(progress.idle(1), 0);
        progress.next_session(true, 1);
        progress.next_session(false, 1);
        assert_eq!(
            progress.idle(1),
            1,
            "one that did not fill counts for nothing"
        );
    }
}
