//! The earlier versions of the scratchpad, so that no text of it is ever out of reach.

use std::collections::VecDeque;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// The most versions that are kept of a project.
pub const MAX_VERSIONS: usize = 200;

/// The most bytes of the texts of those versions.
pub const MAX_VERSION_BYTES: usize = 4 * 1024 * 1024;

/// The author of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Author {
    /// A person, in the panel, in an editor or by any other program.
    Human,
    /// The agent, by its signal or by its file tools.
    Agent,
}

/// The scratchpad from one moment to the next change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// The number of the version in the project, from 1. One that is written again, while a person goes on editing, takes
    /// the place of the one with its number.
    pub number: u64,
    /// The moment since which it was in force.
    #[serde(with = "chrono::serde::ts_milliseconds")]
    pub at: DateTime<Utc>,
    /// The author of the text.
    pub by: Author,
    /// Its text.
    pub text: String,
    /// The lines in it that a person wrote, by their words: see [`super::HumanLines`].
    pub human: Vec<String>,
    /// The text of the file, if this text could not be written there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsaved_over: Option<String>,
}

/// Versions from the oldest to the newest, within the limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions(VecDeque<Version>);

impl Versions {
    /// Returns the newest version.
    pub fn last(&self) -> Option<&Version> {
        self.0.back()
    }

    /// Returns the versions from the oldest to the newest.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Version> + ExactSizeIterator {
        self.0.iter()
    }

    /// Adds a version, or puts it in the place of the newest if it has its number; the oldest are dropped beyond the
    /// limits. The newest always stays.
    pub fn add(&mut self, version: Version) {
        if self
            .last()
            .is_some_and(|last| last.number == version.number)
        {
            self.0.pop_back();
        }
        self.0.push_back(version);
        let mut bytes: usize = self.0.iter().map(|version| version.text.len()).sum();
        while self.0.len() > MAX_VERSIONS || (bytes > MAX_VERSION_BYTES && self.0.len() > 1) {
            bytes -= self.0.pop_front().map_or(0, |version| version.text.len());
        }
    }
}

impl Extend<Version> for Versions {
    fn extend<T: IntoIterator<Item = Version>>(&mut self, versions: T) {
        versions.into_iter().for_each(|version| self.add(version));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u64, text: &str) -> Version {
        Version {
            number,
            at: DateTime::UNIX_EPOCH,
            by: Author::Human,
            text: text.to_owned(),
            human: Vec::new(),
            unsaved_over: None,
        }
    }

    fn numbers(versions: &Versions) -> Vec<u64> {
        versions.iter().map(|version| version.number).collect()
    }

    #[test]
    fn one_with_the_newest_number_takes_its_place() {
        let mut versions = Versions::default();
        versions.extend([version(1, "a"), version(2, "b"), version(2, "bc")]);
        assert_eq!(numbers(&versions), [1, 2]);
        assert_eq!(versions.last().map(|last| last.text.as_str()), Some("bc"));
    }

    #[test]
    fn the_oldest_go_and_the_newest_stays() {
        let mut versions = Versions::default();
        versions.extend((1..=201).map(|number| version(number, "a")));
        assert_eq!(versions.iter().len(), MAX_VERSIONS);
        assert_eq!(versions.iter().next().map(|first| first.number), Some(2));
        let large = "x".repeat(MAX_VERSION_BYTES);
        versions.extend([version(300, &large), version(301, &large)]);
        assert_eq!(numbers(&versions), [301]);
    }
}
