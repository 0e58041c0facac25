//! The banner of a reboot that waits: one line that stays until it is answered.
//!
//! ```text
//!  ┗ Reboot advised: context 86 % full · F5 review · Ctrl-q D defer ━━━━━┛     in the pane's lower border
//!   86 % compact · idle · Reboot advised · F5 review · Ctrl-q D defer         in the footer, where there is no border
//! ```
//!
//! It covers no output of the agent: a permission dialog may be in the last row of the pane.

use std::time::Duration;

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Modifier, Style},
    text::Line,
};

use pitstop_base::keymap::Action;
use pitstop_core::{
    api::wire::{AgentState, CacheReport},
    app::{
        Model, breakpoint, cold_cache,
        reboot::{self, Banner, Block, QuietReason},
    },
    config::Unanswered,
    lineage::{Cause, journal::Step},
};

use super::{frame, text, theme::Theme};

/// The longest part of the agent's reason that is shown, in cells: the keys need room after it.
const REASON: usize = 60;

/// The text of the banner: the whole, in parts of which the last may be left out, and in a word where there is no room.
struct Words {
    parts: Vec<String>,
    /// The number of parts that are not left out unless all of them are.
    least: usize,
    short: String,
    style: Style,
}

impl Words {
    /// Returns words that stand out in a colour, of which so many parts are not left out.
    fn loud(least: usize, parts: Vec<String>, short: String, colour: Style) -> Self {
        Self {
            parts,
            least,
            short,
            style: colour.add_modifier(Modifier::BOLD | Modifier::REVERSED),
        }
    }
}

/// Returns the banner in at most so many cells, beside the figure; none if no banner is due.
pub(super) fn banner_line(model: &Model, cells: usize, theme: &Theme) -> Option<Line<'static>> {
    let words = banner_words(model, false, theme)?;
    Some(frame::row(fit_words(&words, cells), words.style))
}

/// Returns the number of cells of the banner with its keys.
pub(super) fn least_width(model: &Model, theme: &Theme) -> usize {
    banner_words(model, false, theme).map_or(0, |words| {
        text::width(&join_parts(&words.parts[..words.least]))
    })
}

/// Joins parts as they are shown.
fn join_parts(parts: &[String]) -> String {
    format!(" {} ", parts.join(" · "))
}

/// Returns the banner in as few cells as it can be, where it shares its line.
pub(super) fn short_line(model: &Model, cells: usize, theme: &Theme) -> Option<Line<'static>> {
    let words = banner_words(model, false, theme)?;
    let said = format!(" {} ", words.short);
    Some(frame::row(text::fit(&said, cells), words.style))
}

/// Draws the banner into the lower border of the pane.
pub(super) fn draw(buf: &mut Buffer, pane: Rect, model: &Model, theme: &Theme) {
    let room = pane.width.saturating_sub(2);
    if pane.height < 2 {
        return;
    }
    if let Some(words) = banner_words(model, true, theme) {
        let line = frame::row(fit_words(&words, usize::from(room)), words.style);
        buf.set_line(pane.x + 1, pane.bottom() - 1, &line, room);
    }
}

/// Returns as many parts as fit, or the short form.
fn fit_words(words: &Words, cells: usize) -> String {
    for count in (words.least..=words.parts.len()).rev() {
        let said = join_parts(&words.parts[..count]);
        if text::width(&said) <= cells {
            return said;
        }
    }
    text::fit(&format!(" {} ", words.short), cells).into_owned()
}

/// Returns the words of the banner; `figure` is true if they must give the fill of the context too.
fn banner_words(model: &Model, figure: bool, theme: &Theme) -> Option<Words> {
    let key = model.keys().hint(Action::Reboot).unwrap_or_default();
    Some(match reboot::banner(model)? {
        Banner::Asks => {
            let attempt = model.reboot.attempt.as_ref()?;
            // A person is needed once there is something to look at, but not for a moment that is merely good.
            let urgent = matches!(attempt.cause, Cause::Threshold | Cause::ContextLimit);
            let needed = attempt.step() == Step::Review && urgent;
            let style = if needed { theme.bad } else { theme.accent };
            let asks = asking_text(model, attempt.cause, figure);
            let parts = with_answers(model, asks, "review", "defer");
            Words::loud(2, parts, format!("Reboot? {key}"), style)
        }
        Banner::Holds(left) => held_words(model, left, theme),
        Banner::Waits(blocks) => {
            let waits = if blocks.is_empty() {
                "Automatic reboot: preparing the handoff".to_owned()
            } else {
                format!("Automatic reboot waits {}", awaited_events(&blocks))
            };
            let parts = with_answers(model, waits, "review", "defer");
            Words::loud(2, parts, "Reboot waits".to_owned(), theme.accent)
        }
        Banner::CountsDown(left) => {
            // A second that has begun is shown until it is over.
            let seconds = left.as_millis().div_ceil(1000);
            let said = format!("Rebooting in {seconds} s");
            let mut parts = with_answers(model, said, "stops and reviews", "defers");
            parts.push("typing delays it".to_owned());
            let short = format!("Reboot in {seconds} s, {key} stops");
            Words::loud(2, parts, short, theme.accent)
        }
        Banner::Quiet(reason, turns) => quiet_words(model, &reason, turns, theme),
        Banner::Held(breaker) => {
            let said = text::capitalize(&breaker.in_words(model.reboot.mode));
            let mut parts = vec![said.clone()];
            parts.extend(breaker.until().map(|until| {
                let until = model.now.time_of_day(until, "%H:%M");
                format!("until {until}")
            }));
            parts.extend(model.keys().hint_to(Action::Reboot, "review now"));
            Words::loud(1, parts, said, theme.accent)
        }
        Banner::Wished(reason) => {
            let parts = with_answers(model, wish_text(&reason), "review", "defer");
            let short = format!("Agent asks: reboot? {key}");
            Words::loud(2, parts, short, theme.accent)
        }
        Banner::Refused(why) => {
            let said = format!("Reboot refused: {}", text::safe(&why));
            let parts = with_answers(model, said.clone(), "tries again", "defers");
            Words::loud(1, parts, said, theme.bad)
        }
        Banner::ColdCache(cache) => cold_cache_words(model, &cache, theme),
        Banner::HoldsPrompt(cache, left) => holds_prompt(model, &cache, left, theme),
        Banner::AwaitsStep => {
            let mut parts = vec!["Reboot at the agent's next step".to_owned()];
            parts.extend(model.keys().hint_to(Action::Defer, "takes it back"));
            let short = "Reboot at the next step".to_owned();
            Words::loud(1, parts, short, theme.accent)
        }
        Banner::Approved(blocks) => {
            let mut parts = vec![
                format!("Approved, waits {}", awaited_events(&blocks)),
                format!("{key} Enter now"),
            ];
            parts.extend(model.keys().hint_to(Action::Defer, "takes it back"));
            Words::loud(2, parts, "Reboot waits".to_owned(), theme.accent)
        }
    })
}

/// Returns the text, followed by the effects of the keys for a reboot and for deferring it.
fn with_answers(model: &Model, said: String, reboot: &str, defer: &str) -> Vec<String> {
    let reboot = model.keys().hint_to(Action::Reboot, reboot);
    let defer = model.keys().hint_to(Action::Defer, defer);
    std::iter::once(said).chain(reboot).chain(defer).collect()
}

/// Returns what the next prompt costs with a cold cache, and what it would cost in a fresh session.
fn cold_cache_words(model: &Model, cache: &CacheReport, theme: &Theme) -> Words {
    let since = cache.expires_at.map_or_else(String::new, |at| {
        format!(" since {}", model.now.time_of_day(at, "%H:%M"))
    });
    let again = cold_cache::words(cache).join("; ");
    let said = format!("Cache cold{since}: this prompt re-reads {again}");
    let parts = std::iter::once(said).chain(model.keys().hint_to(Action::Reboot, "review"));
    Words {
        parts: parts.collect(),
        least: 1,
        short: "Cache cold".to_owned(),
        style: theme.accent,
    }
}

/// Returns the same with the keys that decide about a prompt which waits because of it.
fn holds_prompt(model: &Model, cache: &CacheReport, left: Duration, theme: &Theme) -> Words {
    let again = cold_cache::words(cache).join("; ");
    let mut parts = vec![
        format!("Cache cold: re-reads {again}"),
        "Enter sends it".to_owned(),
        "Esc takes it back".to_owned(),
    ];
    parts.extend(model.keys().hint_to(Action::Reboot, "review"));
    let seconds = left.as_millis().div_ceil(1000);
    parts.push(format!("sent in {seconds} s"));
    let short = "Cache cold: Enter sends, Esc takes back".to_owned();
    Words::loud(3, parts, short, theme.bad)
}

/// Returns the text for a reboot that the agent has asked for, with its reason if it gave one.
fn wish_text(reason: &str) -> String {
    let reason = pitstop_base::clean::one_line(reason);
    if reason.is_empty() {
        return "The agent asks for a reboot".to_owned();
    }
    let reason = text::fit(&reason, REASON);
    format!("The agent asks for a reboot: {reason}")
}

/// Returns the words for a client that waits in a compaction. Both answers are named wherever there is room for a word; the
/// reason for the compaction comes next.
fn held_words(model: &Model, left: Duration, theme: &Theme) -> Words {
    let seconds = left.as_millis().div_ceil(1000);
    let said = match model.config.guard.unanswered {
        Unanswered::Client => format!("Claude compacts in {seconds} s"),
        Unanswered::Handoff => format!("The handoff replaces a compaction in {seconds} s"),
    };
    let mut parts = with_answers(model, said, "review", "allow");
    let least = parts.len();
    parts.extend(compaction_reason(model).map(str::to_owned));
    let answers = [Action::Reboot, Action::Defer].into_iter();
    let answers: Vec<_> = answers
        .filter_map(|action| model.keys().hint(action))
        .collect();
    let short = format!("Compacts in {seconds} s: {}", answers.join(" or "));
    Words::loud(least, parts, short, theme.bad)
}

/// Returns the reason why the client compacts, as far as that is known.
pub(super) fn compaction_reason(model: &Model) -> Option<&'static str> {
    let cause = model.reboot.attempt.as_ref()?.cause;
    match (cause, model.session.agent.state) {
        (Cause::CompactCommand, _) => Some("/compact was typed"),
        (Cause::Compaction, AgentState::Idle) => Some("idle compaction"),
        (Cause::Compaction, AgentState::Busy) => Some("Claude's limit is reached"),
        _ => None,
    }
}

/// Returns the reason why no reboot begins by itself for now.
fn quiet_words(model: &Model, reason: &QuietReason, turns: u32, theme: &Theme) -> Words {
    let what = match reason {
        QuietReason::Deferred => "Reboot deferred".to_owned(),
        QuietReason::Cancelled => "Not now".to_owned(),
        QuietReason::Undone => "Reboot undone".to_owned(),
        QuietReason::Refused(why) => format!("Reboot refused: {}", text::safe(why)),
    };
    let again = match turns {
        1 => "asked again after the next turn".to_owned(),
        turns => format!("asked again after {turns} turns"),
    };
    let mut parts = vec![what.clone(), again];
    parts.extend(model.keys().hint_to(Action::Reboot, "review now"));
    Words {
        parts,
        least: 1,
        short: what,
        style: theme.accent,
    }
}

/// Returns the reason why a person is asked.
fn asking_text(model: &Model, cause: Cause, figure: bool) -> String {
    match cause {
        Cause::ContextLimit => "Reboot needed: the context window is full".to_owned(),
        Cause::Breakpoint => {
            let what = breakpoint::what(model).map(|what| format!(": {}", text::safe(&what)));
            format!("Good moment to reboot{}", what.unwrap_or_default())
        }
        Cause::Threshold => match model.session.guard.figure(model.now) {
            Some(now) if figure => {
                let percent = text::percent(now.percent);
                format!("Reboot advised: context {percent} % full")
            }
            _ => "Reboot advised".to_owned(),
        },
        Cause::Ctl | Cause::Api => "Reboot requested by a script".to_owned(),
        _ => "Reboot: the handoff is ready".to_owned(),
    }
}

/// Returns the events that have to happen first, in words: `for the turn to end, for you to stop typing`.
pub(super) fn awaited_events(blocks: &[Block]) -> String {
    let words = blocks.iter().map(|block| block.awaited());
    words.collect::<Vec<_>>().join(", ")
}
