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

use crate::lineage::IterationId;
use pitstop_handoff::signal::{self, Signal};

use crate::app::model::Model;

/// Takes in the signals of a turn's last message, which the Stop hook reports.
pub fn by_hook(model: &mut Model, message: &str) {
    let mut signals = signal::parse_signals(message);
    signals.retain(|signal| model.draft.seen_signals.by_hook(signal));
    model.draft.seen_signals.end_hook();
    take_in(model, signals);
}

/// Takes in the signals of the assistant's messages that the transcript shows.
pub fn by_transcript(model: &mut Model, mut signals: Vec<Signal>) {
    signals.retain(|signal| model.draft.seen_signals.by_transcript(signal));
    take_in(model, signals);
}

/// Takes in the signals that a generic agent's pane shows.
pub fn by_pane(model: &mut Model, iteration: IterationId, signals: Vec<Signal>) {
    if iteration != model.session.iteration() {
        return;
    }
    let new = model.draft.seen_signals.by_pane(signals);
    take_in(model, new);
}

/// Takes in a signal that the agent gives by a tool, and returns whether it is new. One that is in the agent's text as well counts once.
pub fn by_tool(model: &mut Model, signal: Signal) -> bool {
    let before = model.draft.signalled.clone();
    take_in(model, vec![signal]);
    model.draft.signalled != before
}

fn take_in(model: &mut Model, signals: Vec<Signal>) {
    if signals.is_empty() {
        return;
    }
    for signal in &signals {
        model.draft.signalled.feed_signal(signal, model.now.wall);
    }
    // Of several scratchpads the last one counts: the others would only be overwritten.
    let notes = signals.into_iter().rev().find_map(|signal| match signal {
        Signal::Scratchpad(text) => Some(text),
        _ => None,
    });
    if let Some(text) = notes {
        let now = model.now;
        model.draft.notes.signalled(&text, now).carry_out(model);
    }
}
