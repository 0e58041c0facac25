//! The state that is reported outside: counters, missing resources, and the supervisor's exit.

use chrono::{DateTime, Utc};

use crate::{
    app::{
        consequences::Consequences,
        effect::Effect,
        event::{StoreAway, TimerId},
    },
    lineage::EndReason,
};
use pitstop_base::{clean, clock::look_within, redact::redact};

use super::{counters::Counters, needs::Need};

/// The state of quitting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quitting {
    /// The exit code to leave with.
    pub code: i32,
    /// The reason why the last iteration ends, in the terms of its record.
    pub reason: EndReason,
}

/// The state that is reported outside.
#[derive(Debug, Default)]
pub struct Outside {
    /// The counters for monitoring.
    pub counters: Counters,
    /// The store while it cannot be used.
    pub store_away: Option<StoreAway>,
    /// A description of the supervisor's own files that are gone and cannot be made again, with the reason.
    pub places_missing: Option<String>,
    /// True if the project's directory is gone, and with it all that the agent works on.
    pub project_gone: bool,
    left_running: Vec<String>,
    needs: Vec<Need>,
    /// The number of the newest need.
    last_need: u64,
    /// The end of the usage limit at which the model is looked at again.
    limit_awaited: Option<DateTime<Utc>>,
    quitting: Option<Quitting>,
}

impl Outside {
    /// Returns one line for each session or process that keeps running after quitting, for the shell.
    pub fn left_running(&self) -> &[String] {
        &self.left_running
    }

    /// Returns what a person is needed for, the most urgent first.
    pub fn needs(&self) -> &[Need] {
        &self.needs
    }

    /// Returns the exit, if the supervisor is quitting.
    pub const fn quitting(&self) -> Option<Quitting> {
        self.quitting
    }

    /// Takes note that the store cannot be used any more, or can again.
    pub(in crate::app) fn store_changed(&mut self, away: Option<StoreAway>) -> Consequences {
        let mut follows = Consequences::default();
        match &away {
            Some(away) => follows.error(away.to_string()),
            None if self.store_away.is_some() => {
                follows.info("the database works again: what waited is written");
            }
            None => {}
        }
        self.store_away = away;
        follows
    }

    /// Begins to quit with this exit code, for this reason.
    pub(in crate::app) const fn quit(&mut self, code: i32, reason: EndReason) {
        self.quitting = Some(Quitting { code, reason });
    }

    /// Notes what keeps running after quitting.
    pub(in crate::app) fn leave_running(&mut self, lines: impl IntoIterator<Item = String>) {
        self.left_running.extend(lines);
    }

    /// Gives a need that was found now its number, the time of its beginning, and its reason without secrets: those of the need of its
    /// kind and occasion, if there is one. Reports whether a person was called for it.
    pub(in crate::app) fn number_need(&mut self, need: &mut Need, now: DateTime<Utc>) -> bool {
        let mut known = self.needs.iter();
        let known = known.find(|known| known.is_of(need.kind, need.occasion));
        need.why = match known {
            Some(known) if known.reason == need.reason => known.why.clone(),
            _ => clean::one_line(&redact(&need.why)).into_owned(),
        };
        if let Some(known) = known {
            (need.id, need.since) = (known.id, known.since);
            return known.called;
        }
        self.last_need += 1;
        (need.id, need.since) = (self.last_need, now);
        false
    }

    /// Takes in what a person is needed for now. Returns the needs that they were called for and that are settled by it.
    pub(in crate::app) fn needs_found(&mut self, found: Vec<Need>) -> Vec<Need> {
        let mut before = std::mem::replace(&mut self.needs, found);
        before.retain(|one| one.called && self.needs.iter().all(|now| now.id != one.id));
        before
    }

    /// Awaits the end of a usage limit, which no event reports. Returns the timer for it, unless it is awaited already or over.
    pub(in crate::app) fn await_limit(
        &mut self,
        reset: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Option<Effect> {
        let is_new = self.limit_awaited.replace(reset) != Some(reset);
        let left = (reset - now).to_std().ok().filter(|_| is_new)?;
        Some(Effect::SetTimer(TimerId::LimitOver, look_within(left)))
    }

    /// Notes that the timer for the end of a usage limit has fired: if that is still to come, it is awaited again.
    pub(in crate::app) const fn limit_looked_at(&mut self) {
        self.limit_awaited = None;
    }
}
