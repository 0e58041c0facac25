//! The signals that were seen from each source.

use std::collections::{HashSet, VecDeque};

use pitstop_base::recent;
use pitstop_handoff::signal::{self, Signal};

use super::progress::hash_of;

/// The most signals remembered of each source.
const REMEMBERED: usize = 1_000;

/// The hash of a signal that was seen from one source, and the hash of the slot that it overwrites, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SignalHash {
    hash: u64,
    slot: Option<u64>,
}

impl SignalHash {
    fn of(signal: &Signal) -> Self {
        let slot = match signal {
            Signal::Scratchpad(_) => Some(hash_of(&"scratchpad")),
            Signal::Objective(_) => Some(hash_of(&"objective")),
            Signal::State { key, .. } => Some(hash_of(&("state", key))),
            _ => None,
        };
        Self {
            hash: hash_of(signal),
            slot,
        }
    }
}

/// The signals that were seen from each source.
#[derive(Clone, Debug, Default)]
pub struct SeenSignals {
    /// The signals that the hook has reported and the transcript has not yet.
    ahead: VecDeque<SignalHash>,
    /// The signals that the transcript has shown in this turn and the hook has not reported yet.
    behind: VecDeque<SignalHash>,
    /// The signals that were in the pane when it was last read.
    in_pane: Vec<SignalHash>,
    /// The hashes of the signals in the supervisor's own texts, which the pane echoes.
    ours: HashSet<u64>,
}

impl SeenSignals {
    /// Forgets all signals, since another session begins and nothing that was seen before is seen again.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// Ends a turn: its hook has reported it, or another one begins and none will.
    pub fn end_turn(&mut self) {
        self.behind.clear();
    }

    /// Notes that a text of the supervisor's own is about to show in the pane.
    pub fn expect_echo(&mut self, text: &str) {
        if self.ours.len() < REMEMBERED {
            self.ours
                .extend(signal::parse_signals(text).iter().map(hash_of));
        }
    }

    pub(in crate::app) fn by_hook(&mut self, signal: &Signal) -> bool {
        let seen = SignalHash::of(signal);
        if recent::take(&mut self.behind, &seen) {
            return false;
        }
        recent::push(&mut self.ahead, seen, REMEMBERED);
        true
    }

    pub(in crate::app) fn by_transcript(&mut self, signal: &Signal) -> bool {
        let seen = SignalHash::of(signal);
        if recent::take(&mut self.ahead, &seen) {
            return false;
        }
        recent::push(&mut self.behind, seen, REMEMBERED);
        let newer = |have: &SignalHash| have.slot.is_some() && have.slot == seen.slot;
        !self.ahead.iter().any(newer)
    }

    /// Returns the signals that have been added at the end of the pane since it was last read. Signals are not new because others
    /// have left the pane at the top or because they were drawn again.
    pub(in crate::app) fn by_pane(&mut self, signals: Vec<Signal>) -> Vec<Signal> {
        let hashes: Vec<SignalHash> = signals.iter().map(SignalHash::of).collect();
        let most = hashes.len().min(self.in_pane.len());
        let known = (0..=most)
            .rev()
            .find(|&known| self.in_pane.ends_with(&hashes[..known]))
            .unwrap_or(0);
        self.in_pane = hashes;
        let mut new = signals;
        new.drain(..known);
        new.retain(|signal| !self.ours.contains(&hash_of(signal)));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(text: &str) -> Signal {
        Signal::Done(text.to_owned())
    }

    fn goal(text: &str) -> Signal {
        Signal::Objective(text.to_owned())
    }

    #[test]
    fn a_message_that_both_tell_counts_once_in_either_order() {
        let mut seen = SeenSignals::default();
        assert!(seen.by_hook(&done("a")));
        assert!(!seen.by_transcript(&done("a")));
        assert!(seen.by_transcript(&done("b")));
        assert!(!seen.by_hook(&done("b")));
    }

    #[test]
    fn the_same_words_in_another_turn_count_again() {
        let mut seen = SeenSignals::default();
        for _ in 0..3 {
            assert!(seen.by_hook(&goal("a")));
            assert!(!seen.by_transcript(&goal("a")));
        }
    }

    #[test]
    fn a_turn_without_its_hook_does_not_silence_the_next() {
        let mut seen = SeenSignals::default();
        assert!(seen.by_transcript(&goal("a")));
        seen.end_turn();
        assert!(seen.by_hook(&goal("a")));
    }

    #[test]
    fn the_transcript_does_not_overwrite_what_the_hook_reported_ahead_of_it() {
        let mut seen = SeenSignals::default();
        assert!(seen.by_hook(&goal("new")));
        assert!(!seen.by_transcript(&goal("from earlier in the turn")));
        assert!(seen.by_transcript(&done("from earlier in the turn")));
        assert!(!seen.by_transcript(&goal("new")));
        assert!(seen.by_transcript(&goal("of the next turn")));
    }

    #[test]
    fn the_pane_shows_what_has_come_to_its_end() {
        let mut seen = SeenSignals::default();
        let (a, b, c) = (done("a"), done("b"), done("c"));
        let look = |seen: &mut SeenSignals, signals: &[&Signal]| {
            seen.by_pane(signals.iter().map(|one| (*one).clone()).collect())
        };
        assert_eq!(look(&mut seen, &[&a]), std::slice::from_ref(&a));
        assert_eq!(look(&mut seen, &[&a]), []);
        assert_eq!(look(&mut seen, &[&a, &b]), std::slice::from_ref(&b));
        // The first has left the scrollback.
        assert_eq!(look(&mut seen, &[&b, &a, &c]), [a.clone(), c.clone()]);
        seen.expect_echo("DONE: b");
        assert_eq!(look(&mut seen, &[&c, &b]), [], "our own words");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut seen = SeenSignals::default();
        for n in 0..5_000 {
            seen.by_hook(&done(&n.to_string()));
            seen.by_transcript(&done(&format!("t{n}")));
        }
        assert!(seen.ahead.len() <= REMEMBERED && seen.behind.len() <= REMEMBERED);
    }
}
