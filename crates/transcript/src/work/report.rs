//! The report of the work: what is worth showing now, within its bounds.

use std::collections::BTreeSet;

use super::{BRANCH, FileAtHand, WORDS_CAP, Work, WorkAtHand, deed::Deed, worth::rank_entries};
use crate::{
    facts::{AND, plain_command},
    steps::denial_reason,
    words::clipped,
};

/// The most entries of a report: files, identifiers (of one file, of all, without a file), references, commands, failures.
/// They name 5 to 15 points more of the identifiers used next than bounds of two thirds, for 1 kB more (handoff bench).
pub(super) const FILES: usize = 24;
const NAMES_OF_A_FILE: usize = 16;
const NAMES: usize = 130;
pub(super) const FREE_NAMES: usize = 20;
const REFERENCES: usize = 6;
const SHOWN_COMMANDS: usize = 10;
const SHOWN_FAILURES: usize = 6;

/// The most paragraphs of the assistant.
const PARAGRAPHS: usize = 4;

impl Work {
    /// Returns the report of what is worth showing now.
    pub fn report(&self) -> WorkAtHand {
        let now = self.blocks;
        let files = rank_entries(&self.files, now, |file| file.worth, FILES);
        // A bare name that was noted before the path was known means that file.
        let (files, printed): (Vec<_>, Vec<_>) = files
            .into_iter()
            .filter(|(path, file)| file.is_used || !self.paths.contains_key(*path))
            .partition(|(_, file)| file.is_at_hand);
        let mut files: Vec<FileAtHand> = files
            .into_iter()
            .map(|(path, file)| FileAtHand {
                path: path.clone(),
                changed: file.changed,
                line: file.line,
                names: Vec::new(),
            })
            .collect();
        let mut free = Vec::new();
        for (name, entry) in rank_entries(&self.names, now, |name| name.worth, NAMES + FREE_NAMES) {
            let mut homes: Vec<_> = entry.homes.iter().collect();
            homes.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            let home = homes.into_iter().find_map(|(home, _)| {
                files
                    .iter()
                    .position(|file| file.path == *home && file.names.len() < NAMES_OF_A_FILE)
            });
            match home {
                Some(at) => files[at].names.push(name.clone()),
                None if free.len() < FREE_NAMES => free.push(name.clone()),
                None => {}
            }
        }
        // A bare name may be any file's: only one that a tool has used is known to be where the session began.
        for file in &mut files {
            let is_known = file.changed || file.line.is_some() || file.path.contains('/');
            if is_known {
                file.path = self.places.shown_path(&file.path);
            }
        }
        // What only an output has named is not what the work is about, but may be used next.
        free.extend(printed.iter().map(|(path, _)| self.places.shown_path(path)));
        let mut references: Vec<String> = Vec::new();
        if !matches!(self.branch.as_str(), "" | "HEAD") {
            references.push(format!("{BRANCH}{}", self.branch));
        }
        let known = rank_entries(&self.references, now, |worth| *worth, REFERENCES);
        references.extend(known.into_iter().map(|(reference, _)| reference.clone()));
        let failures = self.failures.iter().rev().map(|(_, failure)| failure);
        // A call that was not allowed is no failure, but the next session must not try it again.
        let is_denied =
            |one: &super::Failure| one.lines.iter().any(|line| denial_reason(line).is_some());
        let last_failure = failures.clone().find(|one| !is_denied(one));
        let last_failure = last_failure.filter(|one| !one.worked_later);
        WorkAtHand {
            files,
            names: free,
            references,
            commands: self.latest_commands(),
            tried: failures
                .filter(|one| !one.worked_later && Some(*one) != last_failure)
                .take(SHOWN_FAILURES)
                .cloned()
                .collect(),
            last_failure: last_failure.cloned(),
            plan: self.plan.clone(),
            last_words: self.last_words(),
            steps: self.steps.list(),
            is_in_turn: self.is_in_turn,
        }
    }

    /// Returns the latest commands, with only the latest of those that do the same, and without those that went wrong: these are
    /// among the failures.
    fn latest_commands(&self) -> Vec<String> {
        let mut kinds = BTreeSet::new();
        let is_open = |command: &String| {
            let deed = Deed::of_line(command, "");
            let mut open = self.failures.iter().filter(|(_, one)| !one.worked_later);
            open.any(|(failed, one)| one.call == *command || failed.is_same(&deed))
        };
        self.commands
            .iter()
            .rev()
            .filter(|command| !is_open(command))
            .filter(|command| kinds.insert(command_kind(&plain_command(command))))
            .take(SHOWN_COMMANDS)
            .cloned()
            .collect()
    }

    fn last_words(&self) -> Vec<String> {
        let paragraphs = self.texts.iter().flat_map(|text| text.split("\n\n"));
        let paragraphs = paragraphs.map(str::trim).filter(|text| !text.is_empty());
        let paragraphs: Vec<&str> = paragraphs.collect();
        let mut words: Vec<String> = Vec::new();
        let mut bytes = 0;
        for paragraph in paragraphs.into_iter().rev() {
            if words.len() == PARAGRAPHS || bytes + paragraph.len() > WORDS_CAP && !words.is_empty()
            {
                break;
            }
            // The plan contains it already.
            if self
                .plan
                .as_ref()
                .is_some_and(|plan| plan.contains(paragraph))
            {
                continue;
            }
            let paragraph = clipped(paragraph, WORDS_CAP);
            bytes += paragraph.len();
            if !words.contains(&paragraph) {
                words.push(paragraph);
            }
        }
        words.reverse();
        words
    }
}

/// Returns the kind of a plain command: each program of it with the first word behind it, without options. `python -m pytest`
/// and `npm run build` have one word more.
fn command_kind(command: &str) -> String {
    const RUNNERS: [&str; 5] = ["-m", "compose", "exec", "run", "run-script"];
    let kind_of_one = |command: &str| {
        let words = command.split(' ').enumerate();
        let named = words.filter(|(at, word)| *at == 0 || !word.starts_with('-') || *word == "-m");
        let mut kind = Vec::new();
        for (at, word) in named {
            kind.push(word);
            if at > 0 && !RUNNERS.contains(&word) {
                break;
            }
        }
        kind.join(" ")
    };
    let kinds: Vec<String> = command.split(AND).map(kind_of_one).collect();
    kinds.join(AND)
}
