//! The moment of a reboot, over the pane: its stages while it goes on, then a card with its results.
//!
//! ```text
//! ╭ Rebooting ───────────────────────────╮     ╭ Rebooted in 1.4 s ─────────────────╮
//! │ ✓ ending the old session     0.2 s   │     │ 160k → 12k tokens                  │
//! │ … starting the new session   0.9 s   │     │ 23 items carried over, confirmed   │
//! │   confirming the handoff             │     │ Ctrl-q u undoes it                 │
//! ╰──────────────────────────────────────╯     ╰────────────────────────────────────╯
//! ```
//!
//! It takes no keys, so it has not the sign of a rectangle that does.
//!
//! A dialog of the agent is never covered: it may be what the reboot waits for.

use ratatui::{
    buffer::Buffer,
    layout::{Margin, Rect},
    text::{Line, Span},
};

use pitstop_base::keymap::Action;
use pitstop_core::{
    api::wire::AgentState,
    app::{
        Model,
        reboot::{Attempt, Kind},
        view::Outcome,
    },
    lineage::{Cause, journal::Step},
};

use super::{frame, text, theme::Theme};

/// The words on how a card is closed.
const CLOSES: &str = "typing closes it";

/// The widest that the box gets.
const WIDEST: u16 = 56;

/// Returns the work of a step of a reboot, in words.
pub(super) fn step_in_words(attempt: &Attempt, step: Step) -> &'static str {
    match step {
        _ if attempt.is_copying() && step == Step::Starting => "trimming a copy of the session",
        Step::Armed | Step::Drafting | Step::Review => "writing the handoff",
        Step::Preparing => "preparing the new session",
        Step::Waiting => "waiting for a safe moment",
        Step::Ending => "ending the old session",
        Step::Starting if attempt.kind == Kind::Fresh => "starting the new session",
        Step::Starting => "resuming the session",
        Step::Delivering if attempt.kind.replaces() => "replacing the conversation",
        Step::Delivering => "sending the handoff",
        Step::Verifying if attempt.kind == Kind::Trim => "confirming the session",
        Step::Verifying => "confirming the handoff",
        Step::Warming => "sending the warm-up prompt",
        Step::RollingBack => "resuming the old session",
        Step::Done => "done",
        Step::Failed => "failed",
    }
}

/// Reports whether the stages or the card lie over the pane.
pub(super) fn is_shown(model: &Model) -> bool {
    let asked = model.session.agent.state == AgentState::Dialog;
    let stages = shown_attempt(model).is_some();
    !asked && model.view.overlay.is_none() && (stages || model.view.card.is_some())
}

/// Returns the reboot whose stages are shown: one that is not confirmed in time needs a look at the pane.
fn shown_attempt(model: &Model) -> Option<&Attempt> {
    let attempt = model.reboot.attempt.as_ref()?;
    let is_shown = !(attempt.is_harmless() || attempt.is_overdue() || attempt.is_warming());
    is_shown.then_some(attempt)
}

/// Reports whether the session that is shown is being left.
pub(super) fn is_under_way(model: &Model) -> bool {
    shown_attempt(model).is_some()
}

/// Draws the stages or the card over the pane's cells.
pub(super) fn draw(buf: &mut Buffer, pane: Rect, model: &Model, theme: &Theme) {
    if !is_shown(model) || pane.width < 24 || pane.height < 6 {
        return;
    }
    let width = WIDEST.min(pane.width);
    let cells = usize::from(width.saturating_sub(4));
    let (title, lines) = match (shown_attempt(model), &model.view.card) {
        (Some(attempt), _) => (
            "Rebooting".to_owned(),
            progress_lines(model, attempt, cells, theme),
        ),
        (None, Some(card)) => card_lines(model, &card.outcome, cells, theme),
        (None, None) => return,
    };
    let height = (lines.len() as u16).saturating_add(2).min(pane.height);
    let centre = frame::centred(pane, width, height);
    // Above the middle, where the eye is and the prompt box is not.
    let area = Rect {
        y: pane.y + (pane.height - height) / 3,
        ..centre
    };
    frame::clear_beside(buf, pane, area);
    let failed = model.view.card.as_ref().filter(|card| card.is_failure());
    let mut title = frame::title(&title, false, theme);
    if failed.is_some() && shown_attempt(model).is_none() {
        for span in &mut title.spans {
            span.style = theme.bad;
        }
    }
    let inner = frame::draw_border(buf, area, title, false, theme);
    frame::rows(buf, inner.inner(Margin::new(1, 0)), &lines);
}

/// Returns the steps that this reboot takes, from the end of the old session on.
fn steps_taken(model: &Model, attempt: &Attempt) -> Vec<Step> {
    let mut path = match attempt.kind {
        Kind::Fresh => vec![
            Step::Ending,
            Step::Starting,
            Step::Delivering,
            Step::Verifying,
        ],
        Kind::InPlace | Kind::OnTheFly => vec![Step::Delivering, Step::Verifying],
        Kind::Trim => vec![Step::Ending, Step::Starting, Step::Verifying],
        Kind::Undo(..) | Kind::Restart => vec![Step::Ending, Step::Starting],
    };
    if attempt.kind.is_reboot() && model.config.reboot.warmup_prompt.is_some() {
        path.push(Step::Warming);
    }
    if attempt.step() == Step::RollingBack {
        let entered = |step: &Step| attempt.entered.iter().any(|(one, _)| one == step);
        path.retain(entered);
        path.push(Step::RollingBack);
    }
    path
}

fn progress_lines(
    model: &Model,
    attempt: &Attempt,
    cells: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let entered = |step: Step| attempt.entered.iter().position(|(one, _)| *one == step);
    let lines = steps_taken(model, attempt).into_iter().map(|step| {
        let Some(at) = entered(step) else {
            return frame::row(format!("  {}", step_in_words(attempt, step)), theme.dim);
        };
        let began = attempt.entered[at].1;
        let behind = attempt.entered.get(at + 1).map(|(_, at)| *at);
        let (sign, style) = match behind {
            Some(_) => ("✓", theme.good),
            None => ("…", theme.accent),
        };
        let took = text::seconds(behind.unwrap_or(model.now).since(began));
        let doing = format!(" {}", step_in_words(attempt, step));
        let gap = cells.saturating_sub(1 + text::width(&doing) + text::width(&took));
        Line::from(vec![
            Span::styled(sign, style),
            Span::styled(doing, theme.text),
            Span::raw(" ".repeat(gap.max(1))),
            Span::styled(took, theme.dim),
        ])
    });
    lines.collect()
}

fn card_lines(
    model: &Model,
    outcome: &Outcome,
    cells: usize,
    theme: &Theme,
) -> (String, Vec<Line<'static>>) {
    match outcome {
        Outcome::Done {
            took_ms,
            before,
            after,
            items,
            proven,
        } => {
            let now = model
                .session
                .guard
                .figure(model.now)
                .map(|figure| figure.used);
            let after = match (now, after) {
                (Some(now), _) => format!("{} tokens", text::rough(now)),
                (None, Some(after)) => format!("about {} tokens", text::rough(*after)),
                (None, None) => "no figure yet".to_owned(),
            };
            let figures = match before {
                Some(before) => format!("{} → {after}", text::rough(*before)),
                None => after,
            };
            let mut lines = text::wrapped(figures, theme.heading, cells);
            let carried = items.map(|items| format!("{} carried over", text::count(items, "item")));
            let proof = match (items.is_some(), *proven) {
                (true, true) => "handoff confirmed",
                (false, true) => "session confirmed",
                (_, false) => "not confirmed",
            };
            let parts: Vec<String> = carried.into_iter().chain([proof.to_owned()]).collect();
            let style = if *proven { theme.good } else { theme.accent };
            lines.extend(text::wrapped(parts.join(" · "), style, cells));
            let record = model
                .current_iteration()
                .and_then(|one| one.reboot.as_ref());
            let undo = record.and_then(|one| one.old_session);
            let undo = undo.map(|_| (Action::Undo, "undoes it"));
            lines.extend(card_hints(model, undo.as_slice(), cells, theme));
            let did = match record.map(|one| one.cause) {
                Some(Cause::Restore) => "Restored",
                _ => "Rebooted",
            };
            (format!("{did} in {}", text::short(*took_ms)), lines)
        }
        Outcome::Failed { step, why, resumed } => {
            let when = match step {
                Step::Preparing | Step::Waiting => "while preparing the new session",
                Step::Ending => "while ending the old session",
                Step::Starting => "while starting the new session",
                Step::Delivering => "while sending the handoff",
                _ => "while confirming the handoff",
            };
            let mut lines = text::wrapped(format!("It failed {when}."), theme.text, cells);
            lines.extend(text::wrapped(text::safe(why), theme.bad, cells));
            let goes_on = if *resumed {
                "The old session is resumed; nothing is lost."
            } else {
                "The agent was not touched and goes on."
            };
            lines.extend(text::wrapped(goes_on, theme.text, cells));
            let keys = [(Action::Reboot, "retries"), (Action::Messages, "messages")];
            lines.extend(card_hints(model, &keys, cells, theme));
            ("! Reboot failed".to_owned(), lines)
        }
    }
}

/// Returns the effects of some keys, and how the card is closed.
fn card_hints(
    model: &Model,
    keys: &[(Action, &str)],
    cells: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let keys = keys.iter();
    let hints = keys.filter_map(|(action, does)| model.keys().hint_to(*action, does));
    let hints: Vec<String> = hints.chain([CLOSES.to_owned()]).collect();
    frame::hint_rows(&hints, cells, theme)
}
