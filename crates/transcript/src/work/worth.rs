//! The worth of what was mentioned, which fades with the blocks of the conversation.

use std::collections::{BTreeSet, HashMap};

/// The number of blocks (texts, calls, results) after which half of a worth is gone.
const HALF_LIFE: f64 = 24.0;

/// The most identifiers, files and references that are remembered; those of the least worth are forgotten first.
pub(super) const KEPT: usize = 8_192;

// The worth of a mention by its place.

/// The worth of an identifier that is new in an edit, and of a file that was edited or written.
pub(super) const CHANGED: f64 = 4.0;
/// The worth of an identifier in an edit that was there before, and of a file that a call names.
pub(super) const NEARBY: f64 = 2.0;
/// The worth of an identifier in a whole file that was written.
pub(super) const WRITTEN: f64 = 2.0;
/// The worth of a mention in a search pattern.
pub(super) const SOUGHT: f64 = 4.0;
/// The worth of a mention in a shell command, or in another input of a tool.
pub(super) const RUN: f64 = 2.0;
/// The worth of a mention by the assistant, and of one by the human.
pub(super) const SAID: f64 = 2.0;
pub(super) const ASKED: f64 = 4.0;
/// The worth of a mention in a file that was read, and in any other output.
pub(super) const READ: f64 = 0.5;
pub(super) const PRINTED: f64 = 0.4;

/// A worth that fades.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Worth {
    sum: f64,
    /// The block of the last gain.
    at: u64,
    mentions: u32,
}

impl Worth {
    pub(super) fn gain(&mut self, at: u64, by: f64) {
        self.sum = self.faded_sum(at) + by;
        self.at = at;
        self.mentions = self.mentions.saturating_add(1);
    }

    /// Returns the part of the sum that is left at a block.
    fn faded_sum(self, at: u64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "blocks of one session")]
        let age = at.saturating_sub(self.at) as f64;
        self.sum * (-age / HALF_LIFE).exp2()
    }

    /// Returns the value for the ranking: repeated mentions count for more than a single one.
    fn rank(self, at: u64) -> f64 {
        self.faded_sum(at) * (1.0 + 0.5 * f64::from(self.mentions).ln())
    }
}

/// Returns the entries of the most worth, `most` at the most; of equals the first by name.
pub(super) fn rank_entries<T>(
    entries: &HashMap<String, T>,
    now: u64,
    worth: impl Fn(&T) -> Worth,
    most: usize,
) -> Vec<(&String, &T)> {
    let mut all: Vec<_> = entries
        .iter()
        .map(|(key, entry)| (worth(entry).rank(now), key, entry))
        .collect();
    let order = |a: &(f64, &String, &T), b: &(f64, &String, &T)| {
        b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1))
    };
    if all.len() > most && most > 0 {
        all.select_nth_unstable_by(most - 1, order);
        all.truncate(most);
    }
    all.sort_by(order);
    all.into_iter()
        .map(|(_, key, entry)| (key, entry))
        .collect()
}

/// Forgets all but the half of [`KEPT`] with the most worth once there are too many.
pub(super) fn prune_entries<T>(
    entries: &mut HashMap<String, T>,
    now: u64,
    worth: impl Fn(&T) -> Worth,
) {
    if entries.len() <= KEPT {
        return;
    }
    let kept = rank_entries(entries, now, worth, KEPT / 2);
    let kept: BTreeSet<String> = kept.into_iter().map(|(key, _)| key.clone()).collect();
    entries.retain(|key, _| kept.contains(key));
}
