//! The fill of the context, by every source, and the consequences when the figure or the lines have moved.

use std::time::Duration;

use crate::{
    config::{Config, GuardConfig},
    guard::{
        Crossing, GuardSettings, Level, Reading, Source,
        threshold::{Threshold, Thresholds},
    },
    lineage::Cause,
};
use pitstop_agent::{
    StatusLine,
    bridge::Usage,
    claude::limits::{CompactionSettings, Words},
};
use pitstop_base::clock::At;
use pitstop_transcript::{SessionId, Tokens, usage};

use crate::app::{
    autopilot::{self, RunInput},
    draft::{
        checkpoint::{self, SaveOrder},
        summary::{self, SummaryEvent},
    },
    effect::Effect,
    event::TimerId,
    facts::awaits_replaced_turn,
    model::{CarryOut, Model, session::Session},
    reboot::on_the_fly,
    session::compaction::CompactionSign,
};

/// Returns how the guard measures, by the user's settings.
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

/// What may move the figure or the lines.
pub(in crate::app) enum FigureEvent<'a> {
    /// An estimate was made.
    Estimated(Reading),
    /// The transcript was read, which has this figure.
    Transcribed(Option<Tokens>),
    /// The transcript of this session cannot be read any more, for this reason.
    TranscriptLost(SessionId, &'a str),
    /// The status line was drawn.
    StatusLine(&'a StatusLine),
    /// The bridge reports how full the window is. It has no figure before the first call and after a compaction.
    Pushed(&'a Usage),
    /// The client's settings were read: the lines may have moved, and the figure may lie behind one now.
    SettingsRead(CompactionSettings),
    /// The client's footer was read, which shows how near its limit is.
    WordsRead(Words),
    /// Something else has moved them.
    Moved,
}

/// What a figure has brought.
#[derive(Default)]
struct FigureSeen {
    /// True if it can be one.
    is_possible: bool,
    /// True if it fell so far that the client has compacted.
    fell: bool,
}

impl Session {
    /// Takes in an event at this time; returns `None` if it has moved nothing. Of a turn that was replaced no figure counts until the
    /// next has begun, and a trigger that we have lowered is no limit of the client's.
    fn take_figure(
        &mut self,
        event: FigureEvent<'_>,
        (now, is_replaced, is_lowered): (At, bool, bool),
        effects: &mut Vec<Effect>,
    ) -> Option<FigureSeen> {
        let reading = |used, window, source| Reading {
            used,
            window,
            source,
            at: now,
        };
        match event {
            FigureEvent::Estimated(one) => {
                Some(self.observe(Reading { at: now, ..one }, is_replaced))
            }
            FigureEvent::Transcribed(Some(used)) => {
                Some(self.observe(reading(used, None, Source::Transcript), is_replaced))
            }
            FigureEvent::Transcribed(None) => {
                self.guard.forget(Source::Transcript);
                Some(FigureSeen::default())
            }
            FigureEvent::TranscriptLost(session, why) => (session == self.id).then(|| {
                self.transcript_lost(why);
                FigureSeen::default()
            }),
            FigureEvent::StatusLine(line) => {
                self.status_line_seen(line);
                let used = line.usage.map(usage::Usage::context);
                let one = used.map(|used| reading(used, line.window, Source::StatusLine));
                let seen = one.map(|one| self.observe(one, is_replaced));
                self.guard.set_status_line_window(line.window);
                Some(seen.unwrap_or_default())
            }
            FigureEvent::Pushed(usage) => {
                if let Some(cost) = usage.cost_usd {
                    self.cost_reported(cost);
                }
                let window = Some(usage.window);
                let one = usage.used.map(|used| reading(used, window, Source::Bridge));
                let seen = one.map(|one| self.observe(one, is_replaced));
                if !is_lowered {
                    self.client_limit_reported(usage);
                }
                self.guard.set_status_line_window(window);
                Some(seen.unwrap_or_default())
            }
            FigureEvent::SettingsRead(settings) => {
                if settings.managed {
                    let why = || on_the_fly::PASSED_OVER.to_owned();
                    self.agent.unanswered.get_or_insert_with(why);
                }
                let moves = self.client_settings_read(settings);
                moves.then(FigureSeen::default)
            }
            FigureEvent::WordsRead(words) => {
                let misled = self.client.misled;
                let moves = !misled && self.client_words_read(words, now, effects);
                moves.then(FigureSeen::default)
            }
            FigureEvent::Moved => Some(FigureSeen::default()),
        }
    }

    /// Gives the guard a figure, which may be none that can be. A fall is taken for a compaction only where nothing else would report
    /// one: `/rewind` and others make it fall too.
    fn observe(&mut self, reading: Reading, is_replaced: bool) -> FigureSeen {
        let is_possible = is_replaced || self.guard.can_be(&reading);
        if !is_possible {
            tracing::debug!(?reading, "a figure that cannot be is passed over");
        }
        let followed = self.is_transcript_followed();
        let fell = !is_replaced && self.guard.observe(reading) && !self.agent.hooked && !followed;
        FigureSeen { is_possible, fell }
    }
}

/// Handles what may move a figure or the lines: levels crossed are reported once, ages need a clock.
pub(in crate::app) fn on(model: &mut Model, event: FigureEvent<'_>) {
    let is_report = matches!(event, FigureEvent::StatusLine(_) | FigureEvent::Pushed(_));
    // An estimate lacks what is not drawn yet.
    let is_whole = matches!(&event, FigureEvent::Estimated(one) if one.source != Source::Estimate);
    let lowered = on_the_fly::has_lowered_trigger(model);
    let facts = (model.now, awaits_replaced_turn(model), lowered);
    let effects = &mut model.scratch.effects;
    let Some(seen) = model.session.take_figure(event, facts, effects) else {
        return;
    };
    if seen.fell {
        let seen = model.session.compaction_seen(CompactionSign::Fell);
        seen.carry_out(model);
    }
    model.session.judge_client_limit();
    let used = model.used();
    if let Some(current) = model.lineage.current_mut() {
        current.tokens_at_birth = current.tokens_at_birth.or(used);
        current.compactions = model.session.compactions.count();
    }
    model.emit(Effect::SetTimer(TimerId::Age, Duration::from_secs(1)));
    let (session, effects) = (&mut model.session, &mut model.scratch.effects);
    session.look_at_words_later(effects);
    if used.is_some() {
        model.view.figure_came(model.now).carry_out(model);
    }
    let mut saved = false;
    if let Some(crossing) = model.session.guard.crossing(model.now) {
        // A session that was brought back is as full as it was: only its return is new.
        if !(is_brought_back(model) && model.session.agent.turns == 0) {
            model.info(crossed_words(&crossing));
        }
        saved = crossing.figure.level >= Level::Critical;
        if saved {
            let tokens = format!("tokens-{}", crossing.figure.used.0);
            checkpoint::save(model, SaveOrder::automatic(tokens));
        }
        summary::on(model, SummaryEvent::LineCrossed(crossing.figure.level));
    }
    // A line that was crossed just now has saved everything already.
    if model.session.comes_near_client_limit(model.now) && !saved {
        checkpoint::save(model, SaveOrder::before_compaction());
    }
    if is_report {
        autopilot::on(model, RunInput::StatusLineSeen);
    }
    if is_whole || is_report && seen.is_possible {
        autopilot::on(model, RunInput::FigureObserved);
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

/// Returns the notice for a line that was passed. It has no figure: the gauge beside it changes while the notice is shown.
pub fn crossed_words(crossing: &Crossing) -> String {
    let line = match crossing.threshold {
        Threshold::Notice => "notice",
        Threshold::Warn => "warn",
        Threshold::Compact | Threshold::Force => "compact",
    };
    format!("the context is past the {line} line")
}
