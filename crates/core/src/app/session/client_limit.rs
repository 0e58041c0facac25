//! The limit at which the client itself acts: as it reports by the bridge, otherwise from its settings, and lower where it shows
//! that these are not all of it.
//!
//! ```text
//!   arguments, environment, settings files ─▶ the limit as it is set ──┐
//!   the words on its screen · a PreCompact in a turn ─▶ a lower one ───┼─▶ guard: the lines keep below it
//!   its own figure by the bridge ─▶ instead of both, while it reports ─┘
//! ```
//!
//! A learnt or reported limit holds until the limit by the settings changes: then it was about another one. A limit that the client
//! shows while a reboot on the fly has lowered its trigger is not its own, and is not believed.

use std::time::Duration;

use crate::api::wire::AgentState;
use pitstop_agent::{
    bridge::Usage,
    claude::limits::{Act, CompactionSettings, Limit, Origin, Words},
};
use pitstop_base::clock::At;
use pitstop_transcript::Tokens;

use crate::app::{
    effect::Effect,
    event::TimerId,
    model::{client_limits::ClientLimits, session::Session},
};

/// The delays after which the client's screen is read after a figure, each counted from the time before: the words have their place
/// in the footer only once the hints that appear with the end of a turn have left it, some seconds later.
const LOOKS: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(4),
    Duration::from_secs(10),
];

/// The percentage by which a limit must be lower than the known one to be believed: the client rounds.
const ROUNDED: u64 = 2;

impl Session {
    /// Gives the order to read the client's settings again: they may change while it runs.
    pub(in crate::app) fn read_client_settings(&self, effects: &mut Vec<Effect>) {
        if !self.is_generic {
            effects.push(Effect::ReadClientSettings);
        }
    }

    /// Has the client's screen looked at once it has drawn what belongs to the figure of now.
    pub(in crate::app) fn look_at_words_later(&mut self, effects: &mut Vec<Effect>) {
        if !self.is_generic {
            self.client.looks = 0;
            self.client.set_next_look(effects);
        }
    }

    /// Takes over the client's settings that were read; returns whether the lines have moved.
    pub(in crate::app) fn client_settings_read(&mut self, settings: CompactionSettings) -> bool {
        self.client.settings = settings;
        self.judge_client_limit()
    }

    /// Takes the limit by the settings for the model and the window of now; returns whether the limit has changed.
    pub(in crate::app) fn judge_client_limit(&mut self) -> bool {
        if self.is_generic {
            return false;
        }
        let window = self.guard.window();
        let version = self.agent.version.as_deref();
        let set = self
            .client
            .settings
            .limit(self.guard.model_id(), window, version);
        if self.client.set != (set.clone(), window) {
            self.client.set = (set, window);
            self.client.learned = None;
            // The limit was reported before the client could know of this.
            self.client.reported = None;
        }
        if self.agent.bridge.of(self.id).is_none() {
            self.client.reported = None;
        }
        let at = self.client.limit().map(|limit| limit.at);
        let changed = self.guard.client_limit() != at;
        self.guard.set_client_limit(at);
        changed
    }

    /// Takes over the usage that the client reports by the bridge, with its limit if the report is the complete one.
    pub(in crate::app) fn client_limit_reported(&mut self, usage: &Usage) {
        if usage.categories.is_empty() {
            return;
        }
        self.judge_client_limit();
        self.client.reported = usage.compacts_at.map(|at| Limit {
            at,
            act: Act::Compacts,
            origin: Origin::Bridge,
        });
    }

    /// Takes in the client's footer, which shows how near its limit is; returns whether the lines have moved. It is drawn before the
    /// figure that it is about has come, so one look may relate it to the figure before: two that agree are believed.
    pub(in crate::app) fn client_words_read(
        &mut self,
        words: Words,
        now: At,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let Some(used) = self.used(now) else {
            return false;
        };
        let limit = words.limit(used, self.guard.window());
        let before = self.client.seen.replace(limit.at);
        let agrees = |before: Tokens| !is_lower(limit.at, before) && !is_lower(before, limit.at);
        if !before.is_some_and(agrees) {
            effects.push(Effect::SetTimer(TimerId::ClientWords, LOOKS[0]));
            return false;
        }
        self.learn_client_limit(limit)
    }

    /// Notes that the client is about to compact: if it does so by itself in a turn, its limit is not above the figure of now.
    /// Outside of a turn it is idle compaction, which has a point of its own.
    pub(in crate::app) fn compaction_announced(&mut self, automatic: bool, now: At) {
        let within_turn = automatic && self.agent.state == AgentState::Busy;
        let used = self.used(now).filter(|_| within_turn);
        self.client.announced = used.map(|at| Limit {
            at,
            act: Act::Compacts,
            origin: Origin::Hook,
        });
    }

    /// Takes over the limit that the client's announcement showed once it has compacted. It does not count before, because the
    /// figure of that time lies behind every line that keeps below it. Returns whether the lines have moved.
    pub(in crate::app) fn learn_announced_limit(&mut self) -> bool {
        let announced = self.client.announced.take();
        announced.is_some_and(|limit| self.learn_client_limit(limit))
    }

    fn learn_client_limit(&mut self, limit: Limit) -> bool {
        let known = self.client.limit().map(|known| known.at);
        if known.is_some_and(|known| !is_lower(limit.at, known)) {
            return false;
        }
        self.client.learned = Some(limit);
        self.judge_client_limit();
        true
    }

    /// Reports whether the figure has come near the point where the client compacts, and was not before.
    pub(in crate::app) fn comes_near_client_limit(&mut self, now: At) -> bool {
        let limit = self.client.limit();
        let compacts = limit.is_some_and(|limit| limit.act == Act::Compacts);
        let figure = self.guard.figure(now);
        let is_near = compacts && figure.is_some_and(|one| one.lines.is_near_client(one.used));
        let was_near = std::mem::replace(&mut self.client.saved, is_near);
        is_near && !was_near
    }
}

impl ClientLimits {
    /// Has the client's screen looked at, and sets the time of the next look.
    pub(in crate::app) fn look(&mut self, effects: &mut Vec<Effect>) {
        self.looks += 1;
        effects.push(Effect::ReadClientWords);
        self.set_next_look(effects);
    }

    fn set_next_look(&self, effects: &mut Vec<Effect>) {
        let after = LOOKS.get(self.looks);
        effects.extend(after.map(|after| Effect::SetTimer(TimerId::ClientWords, *after)));
    }
}

fn is_lower(at: Tokens, than: Tokens) -> bool {
    u128::from(at.0) * 100 < u128::from(than.0) * u128::from(100 - ROUNDED)
}
