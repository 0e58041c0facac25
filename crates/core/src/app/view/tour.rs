//! The guided tour of the demo: five steps, each with a line that names what to press next; it goes on when that was done.

use crate::{guard::Level, lineage::Cause};
use pitstop_base::keymap::Action;

use crate::app::model::{Focus, Model};

pub use crate::app::model::tour::Tour;

/// The number of steps.
const STEPS: usize = 5;

/// Returns the tour at its next step if what the present one asks for was done. What was done before its time counts when its step
/// comes.
pub(in crate::app) fn next(model: &Model) -> Option<Tour> {
    let step = model.view.tour?.step;
    let step = step + usize::from(is_done(model, step));
    Some(Tour { step })
}

fn is_done(model: &Model, step: usize) -> bool {
    let cause = model.current_iteration().and_then(|one| one.cause);
    let mut reboots = model.lineage.iterations().iter().map(|one| &one.reboot);
    match step {
        0 => {
            let figure = model.session.guard.figure(model.now);
            model.session.iteration().get() > 1
                || figure.is_some_and(|one| one.level >= Level::Critical)
        }
        1 => {
            model.draft.notes.human().iter().next().is_some()
                && model.draft.notes.editor().is_none()
        }
        2 => reboots.any(Option::is_some) && model.reboot.attempt.is_none(),
        3 => cause == Some(Cause::Undo) && model.reboot.attempt.is_none(),
        4 => model.view.focus == Focus::History,
        _ => false,
    }
}

/// Returns the line of the present step; `None` where there is no tour.
pub fn line(model: &Model) -> Option<String> {
    let step = model.view.tour?.step;
    let key = |action| model.keys().hint(action).unwrap_or_else(|| "?".to_owned());
    let what = match step {
        0 => "watch the context fill up to the warn line".to_owned(),
        1 => format!(
            "press {}, then e: write a note that survives; Esc saves it",
            key(Action::Scratchpad)
        ),
        2 => format!(
            "press {}: read the handoff, Enter reboots into a fresh session",
            key(Action::Reboot)
        ),
        3 => format!("press {}: the old session comes back", key(Action::Undo)),
        4 => format!(
            "press {}: each session with its handoff",
            key(Action::History)
        ),
        _ => {
            let quit = key(Action::Quit);
            return Some(format!(
                "Tour done: `pitstop` hosts Claude Code the same way · {quit} quits"
            ));
        }
    };
    Some(format!("Tour {} of {STEPS}: {what}", step + 1))
}
