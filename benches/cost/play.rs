//! The model: the calls of a session as they would be billed under a policy.

use pitstop_core::guard::{
    payoff::{AGAIN_PER_CALL, SUMMARY},
    prices::{Price, find_price},
};
use pitstop_transcript::{Tokens, usage::Usage};

use super::sessions::{Call, Session};

/// What one call adds to the window, and the pause before it.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub added: u64,
    pub output: u64,
    pub pause: i64,
}

/// A session as work: what it began with, and its steps.
#[derive(Clone, Debug)]
pub struct Work {
    pub base: u64,
    /// The part of the beginning that the session read from the cache.
    pub cached: u64,
    pub steps: Vec<Step>,
}

impl Work {
    /// Returns the work of a session. What a compaction took out of the window is no work.
    pub fn of(session: &Session) -> Self {
        let mut before = session.base();
        let steps = session.calls.iter().map(|call| {
            let prompt = call.usage.prompt().0;
            let added = prompt.saturating_sub(before);
            before = prompt;
            Step {
                added: if call.compacted { 0 } else { added },
                output: call.usage.output.0,
                pause: call.pause,
            }
        });
        Self {
            base: session.base(),
            steps: steps.collect(),
            cached: session
                .calls
                .first()
                .map_or(0, |call| call.usage.cache_read.0),
        }
    }

    /// Returns the work of several sessions, one after the other in one conversation.
    pub fn joined(all: &[Self]) -> Self {
        Self {
            base: mean(all.iter().map(|one| one.base)),
            cached: mean(all.iter().map(|one| one.cached)),
            steps: all.iter().flat_map(|one| one.steps.clone()).collect(),
        }
    }

    /// Returns the tokens that all steps add.
    pub fn added(&self) -> u64 {
        self.steps.iter().map(|step| step.added).sum()
    }
}

pub fn mean(all: impl ExactSizeIterator<Item = u64>) -> u64 {
    let count = all.len().max(1) as u64;
    all.sum::<u64>() / count
}

/// What happens when the window has reached a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// The client compacts: the conversation is read once more, a summary comes out of it, files are restored.
    Compact {
        line: u64,
        summary: u64,
        restored: u64,
    },
    /// pitstop reboots: a model is asked for a summary of an excerpt, a fresh session starts with the handoff.
    Reboot { line: u64, handoff: u64 },
}

impl Policy {
    const fn line(self) -> u64 {
        match self {
            Self::Compact { line, .. } | Self::Reboot { line, .. } => line,
        }
    }
}

/// The rules of the bill.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// The model whose prices count.
    pub model: &'a str,
    /// The tokens that are read again after a window was emptied.
    pub again: u64,
    /// The pause after which the cache is cold, in seconds; none if it always is warm.
    pub cold_after: Option<i64>,
    /// True if the cache is written for an hour.
    pub for_an_hour: bool,
}

impl<'a> Rules<'a> {
    /// The rules for the prices of a model, where the cache goes cold after the time that it is kept.
    pub const fn new(model: &'a str, again: u64, for_an_hour: bool) -> Self {
        Self {
            model,
            again,
            cold_after: Some(if for_an_hour { 3_600 } else { 300 }),
            for_an_hour,
        }
    }

    /// The same where the cache is always warm.
    pub const fn warm(self) -> Self {
        Self {
            cold_after: None,
            ..self
        }
    }
}

/// What was billed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bill {
    pub usd: f64,
    pub calls: u32,
    /// How often the window was emptied.
    pub emptied: u32,
}

/// A session that is played.
#[derive(Clone, Copy, Debug)]
pub struct Player<'a> {
    rules: Rules<'a>,
    bill: Bill,
    /// The tokens in the window, and those of them that the cache has.
    window: u64,
    cached: u64,
}

impl<'a> Player<'a> {
    pub fn new(rules: Rules<'a>, window: u64, cached: u64) -> Self {
        Self {
            rules,
            bill: Bill::default(),
            window,
            cached,
        }
    }

    pub const fn bill(&self) -> Bill {
        self.bill
    }

    /// Makes a call that adds tokens to the window.
    pub fn call(&mut self, added: u64, output: u64) {
        let prompt = self.window + added;
        let cached = self.cached.min(prompt);
        self.charge(Usage {
            input: Tokens(0),
            cache_read: Tokens(cached),
            cache_creation: Tokens(prompt - cached),
            output: Tokens(output),
        });
        self.window = prompt;
        self.cached = prompt;
    }

    pub fn step(&mut self, step: Step) {
        self.pause(step.pause);
        self.call(step.added, step.output);
    }

    /// Takes the window that a session really had, after a pause. Where it has fallen only the beginning is in the cache.
    pub fn resume(&mut self, window: u64, beginning: u64, pause: i64) {
        if window < self.window {
            self.cached = beginning;
        }
        self.pause(pause);
        self.window = window;
    }

    /// Lets seconds pass, after which the cache may be cold.
    fn pause(&mut self, seconds: i64) {
        if self.rules.cold_after.is_some_and(|limit| seconds > limit) {
            self.cached = 0;
        }
    }

    fn charge(&mut self, usage: Usage) {
        if let Some(price) = price(self.rules, usage.prompt()) {
            self.bill.usd += price.cost_usd(usage);
            self.bill.calls += 1;
        }
    }

    /// Empties the window by a policy, in a session that began like this work; then all is read again.
    pub fn empty(&mut self, policy: Policy, work: &Work, output: u64) {
        self.bill.emptied += 1;
        let carried = match policy {
            Policy::Compact {
                summary, restored, ..
            } => {
                self.call(3_000, summary);
                summary + restored
            }
            Policy::Reboot { handoff, .. } => {
                self.charge(SUMMARY);
                handoff
            }
        };
        self.window = work.base + carried;
        self.cached = work.cached.min(work.base);
        // What the client has restored by itself is not read again.
        let restored = match policy {
            Policy::Compact { restored, .. } => restored,
            Policy::Reboot { .. } => 0,
        };
        let mut again = self.rules.again.saturating_sub(restored);
        while again > 0 {
            let added = again.min(AGAIN_PER_CALL.0);
            self.call(added, output);
            again -= added;
        }
    }
}

/// Returns the price of a call; the write to the cache is that of the time it is kept.
pub fn price(rules: Rules<'_>, prompt: Tokens) -> Option<Price> {
    Some(find_price(rules.model, prompt)?.with_cache(rules.for_an_hour))
}

/// Plays all work under a policy.
pub fn play(work: &Work, policy: Policy, rules: Rules<'_>) -> Bill {
    let mut player = Player::new(rules, work.base, work.cached);
    let output = mean(work.steps.iter().map(|step| step.output));
    for step in &work.steps {
        if player.window + step.added >= policy.line() && player.window > work.base {
            player.empty(policy, work, output);
        }
        player.step(*step);
    }
    player.bill
}

/// Returns what the calls of a session cost by their own usage.
pub fn billed(session: &Session, rules: Rules<'_>) -> f64 {
    let price = |call: &Call| Some(price(rules, call.usage.prompt())?.cost_usd(call.usage));
    session.calls.iter().filter_map(price).sum()
}

/// Returns what the model says that the same calls cost: it knows their prompts and answers, the pauses and the compactions.
pub fn replay(session: &Session, rules: Rules<'_>) -> f64 {
    let work = Work::of(session);
    let mut player = Player::new(rules, 0, work.cached);
    for call in &session.calls {
        player.resume(call.usage.prompt().0, work.cached, call.pause);
        player.call(0, call.usage.output.0);
    }
    player.bill().usd
}
