//! Signals from three sources, each counted once, and those that the agent gives by a tool.
//!
//! ```text
//!   Stop hook    the last message of a turn, at once
//!   transcript   every message, in order, a moment later; it alone shows a turn that ends without its hook
//!   pane         the text on a generic agent's screen
//! ```
//!
//! The hook may be ahead of the transcript or behind it. What one of them has reported is remembered until the other reports it
//! too. While the hook is ahead, what the transcript shows is older: it does not overwrite what the hook has reported.

use pitstop_base::clock::At;
use pitstop_handoff::signal::{self, Signal};

use crate::app::{consequences::Consequences, model::draft::HandoffDraft};

impl HandoffDraft {
    /// Takes in that a turn begins: a prompt begins new work.
    pub(in crate::app) fn begin_turn(&mut self) {
        self.moments.pass();
        self.seen_signals.end_turn();
    }

    /// Takes in the signals of a turn's last message, which the Stop hook reports.
    pub(in crate::app) fn take_hooked(&mut self, message: &str, now: At) -> Consequences {
        let mut signals = signal::parse_signals(message);
        signals.retain(|signal| self.seen_signals.by_hook(signal));
        self.seen_signals.end_turn();
        self.take_signals(signals, now)
    }

    /// Takes in the signals of the assistant's messages that the transcript shows.
    pub(in crate::app) fn take_transcribed(
        &mut self,
        mut signals: Vec<Signal>,
        now: At,
    ) -> Consequences {
        signals.retain(|signal| self.seen_signals.by_transcript(signal));
        self.take_signals(signals, now)
    }

    /// Takes in the signals that a generic agent's pane shows.
    pub(in crate::app) fn take_shown(&mut self, signals: Vec<Signal>, now: At) -> Consequences {
        let new = self.seen_signals.by_pane(signals);
        self.take_signals(new, now)
    }

    /// Takes in a signal that the agent gives by a tool; returns what follows if it is new. One that is in the agent's text as well
    /// counts once.
    pub(in crate::app) fn take_given(&mut self, signal: Signal, now: At) -> Option<Consequences> {
        let before = self.signalled.clone();
        let follows = self.take_signals(vec![signal], now);
        (self.signalled != before).then_some(follows)
    }

    fn take_signals(&mut self, signals: Vec<Signal>, now: At) -> Consequences {
        for signal in &signals {
            self.signalled.feed_signal(signal, now.wall);
        }
        // Of several scratchpads the last one counts: the others would only be overwritten.
        let notes = signals.into_iter().rev().find_map(|signal| match signal {
            Signal::Scratchpad(text) => Some(text),
            _ => None,
        });
        notes.map_or_else(Consequences::default, |text| {
            self.notes.signalled(&text, now)
        })
    }
}
