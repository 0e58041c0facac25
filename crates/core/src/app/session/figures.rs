//! The fill of the context, by every source, and the consequences when the figure or the lines have moved.

use std::time::Duration;

use crate::{
    config::{Config, GuardConfig},
    guard::{
        Advice, Crossing, GuardSettings, Reading, Source,
        threshold::{Threshold, Thresholds},
    },
    lineage::Cause,
};
use pitstop_agent::{
    bridge::Usage,
    claude::limits::{CompactionSettings, Words},
};
use pitstop_base::format::percent;
use pitstop_transcript::Tokens;

use crate::app::{
    autopilot::{self, RunInput},
    draft::{
        checkpoint,
        summary::{self, SummaryEvent},
    },
    effect::Effect,
    event::TimerId,
    facts::awaits_replaced_turn,
    model::Model,
    reboot::on_the_fly,
    session::compaction::{self, CompactionSign},
};

/// Returns how the guard measures, by the user's settings.
#[must_use]
pub fn guard_settings(config: &Config) -> GuardSettings {
    GuardSettings {
        thresholds: thresholds(&config.guard),
        reserve: Tokens(config.context.reserve),
        window_override: config.context.window.map(Tokens),
    }
}

fn thresholds(config: &GuardConfig) -> Thresholds {
    let caps = [
        config.notice_tokens,
        config.warn_tokens,
        config.compact_tokens,
        None,
    ];
    Thresholds::new(
        [config.notice, config.warn, config.compact, config.force_at],
        caps.map(|cap| cap.map(Tokens)),
    )
}

/// Gives the guard a figure; returns whether it can be one. A fall is taken for a compaction only where nothing else would
/// report one: `/rewind` and others make it fall too.
pub(in crate::app) fn observe(
    model: &mut Model,
    used: Tokens,
    window: Option<Tokens>,
    source: Source,
) -> bool {
    if awaits_replaced_turn(model) {
        return true;
    }
    let reading = Reading {
        used,
        window,
        source,
        at: model.now,
    };
    let taken = model.session.guard.can_be(&reading);
    if !taken {
        tracing::debug!(?reading, "a figure that cannot be is passed over");
    }
    let followed = model.session.transcript.whole && !model.session.is_transcript_lost();
    if model.session.guard.observe(reading) && !model.session.agent.hooked && !followed {
        compaction::seen(model, CompactionSign::Fell);
    }
    taken
}

/// Takes in an estimate.
pub fn estimated(model: &mut Model, reading: Reading) {
    observe(model, reading.used, reading.window, reading.source);
    figures_changed(model);
    // An estimate lacks what is not drawn yet.
    if reading.source != Source::Estimate {
        autopilot::on(model, RunInput::FigureObserved);
    }
}

/// Handles a change of a figure or the lines: levels crossed are reported once, ages need a clock.
pub(in crate::app) fn figures_changed(model: &mut Model) {
    model.session.judge_client_limit();
    let used = model.used();
    if let Some(current) = model.lineage.current_mut() {
        current.tokens_at_birth = current.tokens_at_birth.or(used);
    }
    model.emit(Effect::SetTimer(TimerId::Age, Duration::from_secs(1)));
    let (session, effects) = (&mut model.session, &mut model.scratch.effects);
    session.look_at_words_later(effects);
    if used.is_some() {
        let timer = model.view.figure_came(model.now);
        model.emit_all(timer);
    }
    let mut saved = false;
    if let Some(crossing) = model.session.guard.crossing(model.now) {
        // A session that was brought back is as full as it was: only its return is new.
        if !(is_brought_back(model) && model.session.agent.turns == 0) {
            model.info(crossed_words(&crossing));
        }
        saved = crossing.figure.advice != Advice::None;
        if saved {
            let tokens = format!("tokens-{}", crossing.figure.used.0);
            checkpoint::save(model, vec![checkpoint::AUTO_SAVE.to_owned(), tokens]);
        }
        summary::on(model, SummaryEvent::LineCrossed(crossing.figure.level));
    }
    // A line that was crossed just now has saved everything already.
    if model.session.comes_near_client_limit(model.now) && !saved {
        checkpoint::save(model, checkpoint::before_compaction());
    }
}

/// Reports whether the session was taken up again after an undo, a failed reboot or the agent's end.
fn is_brought_back(model: &Model) -> bool {
    let cause = model.current_iteration().and_then(|one| one.cause);
    matches!(
        cause,
        Some(Cause::Undo | Cause::Recovery | Cause::AgentExit | Cause::AgentCrash | Cause::Resume)
    )
}

/// Returns the notice for a line that was passed.
#[must_use]
pub fn crossed_words(crossing: &Crossing) -> String {
    let percent = percent(crossing.figure.percent);
    let line = match crossing.threshold {
        Threshold::Notice => ", past the notice line",
        Threshold::Warn => ", past the warn line",
        Threshold::Compact | Threshold::Force => ", past the compact line",
    };
    format!("context: {percent} % full{line}")
}

/// Takes over the client's settings that were read: the lines may have moved, and the figure may lie behind one now.
pub fn settings_read(model: &mut Model, settings: CompactionSettings) {
    if settings.managed {
        let why = || on_the_fly::PASSED_OVER.to_owned();
        model.session.agent.unanswered.get_or_insert_with(why);
    }
    if model.session.client_settings_read(settings) {
        figures_changed(model);
    }
}

/// Takes in the client's footer, which shows how near its limit is.
pub fn client_said(model: &mut Model, words: Words) {
    if on_the_fly::has_lowered_trigger(model) {
        return;
    }
    let (session, effects) = (&mut model.session, &mut model.scratch.effects);
    if session.client_words_read(words, model.now, effects) {
        figures_changed(model);
    }
}

/// Takes over the bridge's report of how full the window is.
pub(in crate::app) fn usage_pushed(model: &mut Model, usage: &Usage) {
    if let Some(cost) = usage.cost_usd {
        model.session.cost_reported(cost);
    }
    let (window, source) = (Some(usage.window), Source::Bridge);
    let observe_in = |used| observe(model, used, window, source);
    let taken = usage.used.is_some_and(observe_in);
    if !on_the_fly::has_lowered_trigger(model) {
        model.session.client_limit_reported(usage);
    }
    report_taken(model, window, taken);
}

/// Draws the consequences of the client's report. It has no figure before the first call and after a compaction.
pub(in crate::app) fn report_taken(model: &mut Model, window: Option<Tokens>, taken: bool) {
    model.session.guard.set_status_line_window(window);
    figures_changed(model);
    autopilot::on(model, RunInput::StatusLineSeen);
    if taken {
        autopilot::on(model, RunInput::FigureObserved);
    }
}
