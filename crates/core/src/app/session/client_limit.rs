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
use pitstop_transcript::Tokens;

use crate::app::{
    draft::checkpoint, effect::Effect, event::TimerId, model::Model, reboot::on_the_fly,
};

/// The delays after which the client's screen is read after a figure, each counted from the time before: the words have their place
/// in the footer only once the hints that appear with the end of a turn have left it, some seconds later.
const LOOKS: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(4),
    Duration::from_secs(10),
];

/// Gives the order to read the client's settings again: they may change while it runs.
pub fn read_settings(model: &mut Model) {
    if !model.is_generic() {
        model.emit(Effect::ReadClientSettings);
    }
}

/// Has the client's screen looked at once it has drawn what belongs to the figure of now.
pub fn look_later(model: &mut Model) {
    model.session.client.looks = 0;
    next_look(model);
}

fn next_look(model: &mut Model) {
    let after = LOOKS.get(model.session.client.looks);
    if let Some(after) = after.filter(|_| !model.is_generic()) {
        model.emit(Effect::SetTimer(TimerId::ClientWords, *after));
    }
}

/// Looks at the client's screen when it is time.
pub fn look(model: &mut Model) {
    model.session.client.looks += 1;
    model.emit(Effect::ReadClientWords);
    next_look(model);
}

/// Takes over the client's settings that were read; returns whether the lines have moved.
pub fn settings_read(model: &mut Model, settings: CompactionSettings) -> bool {
    if settings.managed {
        let why = || on_the_fly::PASSED_OVER.to_owned();
        model.session.agent.unanswered.get_or_insert_with(why);
    }
    model.session.client.settings = settings;
    judge(model)
}

/// Takes the limit by the settings for the model and the window of now; returns whether the limit has changed.
pub fn judge(model: &mut Model) -> bool {
    if model.is_generic() {
        return false;
    }
    let window = model.session.guard.window();
    let version = model.session.agent.version.as_deref();
    let model_id = model.session.guard.model_id();
    let settings = &model.session.client.settings;
    let set = settings.limit(model_id, window, version);
    if model.session.client.set != (set.clone(), window) {
        model.session.client.set = (set, window);
        model.session.client.learned = None;
        // The limit was reported before the client could know of this.
        model.session.client.reported = None;
    }
    if model.session.agent.bridge.of(model.session.id).is_none() {
        model.session.client.reported = None;
    }
    let at = model.session.client.limit().map(|limit| limit.at);
    let changed = model.session.guard.client_limit() != at;
    model.session.guard.set_client_limit(at);
    changed
}

/// Takes over the usage that the client reports by the bridge, with its limit if the report is the complete one.
pub fn reported(model: &mut Model, usage: &Usage) {
    if usage.categories.is_empty() || on_the_fly::has_lowered_trigger(model) {
        return;
    }
    judge(model);
    model.session.client.reported = usage.compacts_at.map(|at| Limit {
        at,
        act: Act::Compacts,
        origin: Origin::Bridge,
    });
}

/// Takes in the client's footer, which shows how near its limit is; returns whether the lines have moved. It is drawn before the
/// figure that it is about has come, so one look may relate it to the figure before: two that agree are believed.
pub fn said(model: &mut Model, words: Words) -> bool {
    let used = model.used();
    let Some(used) = used.filter(|_| !on_the_fly::has_lowered_trigger(model)) else {
        return false;
    };
    let limit = words.limit(used, model.session.guard.window());
    let before = model.session.client.seen.replace(limit.at);
    let agrees = |before: Tokens| !is_lower(limit.at, before) && !is_lower(before, limit.at);
    if !before.is_some_and(agrees) {
        model.emit(Effect::SetTimer(TimerId::ClientWords, LOOKS[0]));
        return false;
    }
    learn(model, limit)
}

/// Notes that the client is about to compact: if it does so by itself in a turn, its limit is not above the figure of now. Outside
/// of a turn it is idle compaction, which has a point of its own.
pub fn announced(model: &mut Model, automatic: bool) {
    model.session.client.announced = model
        .used()
        .filter(|_| automatic && model.session.agent.state == AgentState::Busy)
        .map(|at| Limit {
            at,
            act: Act::Compacts,
            origin: Origin::Hook,
        });
}

/// Takes over the limit that the client's announcement showed once it has compacted. It does not count before, because the figure
/// of that time lies behind every line that keeps below it. Returns whether the lines have moved.
pub fn shown(model: &mut Model) -> bool {
    let announced = model.session.client.announced.take();
    announced.is_some_and(|limit| learn(model, limit))
}

/// The percentage by which a limit must be lower than the known one to be believed: the client rounds.
const ROUNDED: u64 = 2;

fn is_lower(at: Tokens, than: Tokens) -> bool {
    u128::from(at.0) * 100 < u128::from(than.0) * u128::from(100 - ROUNDED)
}

fn learn(model: &mut Model, limit: Limit) -> bool {
    let known = model.session.client.limit().map(|known| known.at);
    if known.is_some_and(|known| !is_lower(limit.at, known)) {
        return false;
    }
    model.session.client.learned = Some(limit);
    judge(model);
    true
}

/// Saves everything once when a changed figure is near the point where the client compacts. `saved` is true if a line that was
/// crossed just now has done that already.
pub fn near(model: &mut Model, saved: bool) {
    let limit = model.session.client.limit();
    let compacts = limit.is_some_and(|limit| limit.act == Act::Compacts);
    let figure = model.session.guard.figure(model.now);
    let is_near = compacts && figure.is_some_and(|one| one.lines.is_near_client(one.used));
    let before = std::mem::replace(&mut model.session.client.saved, is_near);
    if is_near && !before && !saved {
        before_compaction(model);
    }
}

/// Saves everything that a compaction by the client may lose.
pub fn before_compaction(model: &mut Model) {
    let tags = vec![
        checkpoint::AUTO_SAVE.to_owned(),
        "before-compaction".to_owned(),
    ];
    checkpoint::save(model, tags);
}
