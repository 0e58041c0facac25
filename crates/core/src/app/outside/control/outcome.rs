//! The result of an order by `ctl`, for the person who gave it: what happens now, and what is theirs to do.

use crate::api::wire::Control;
use crate::app::{
    facts::{Block, blocked_by, goes_on_the_fly, turn_runs},
    model::Model,
    reboot::{DEFER_TURNS, in_place},
};
use pitstop_base::keymap::Action;

/// Returns the result of this order; the model is as the order has left it.
pub(super) fn of(model: &Model, order: &Control) -> String {
    let run = model.autopilot.is_some();
    match order {
        Control::Reboot | Control::RebootBy(_) => reboot_asked(model),
        Control::Approve | Control::ApproveAs(_) => approved(model),
        Control::Permission(_) => "it is answered; the dialog closes".to_owned(),
        Control::Defer => format!("deferred for {DEFER_TURNS} turns"),
        // The first is answered with the checkpoint, of the second the order inside is.
        Control::Save(_) | Control::From(..) => String::new(),
        Control::Pause if run => "the run is paused until `pitstop ctl resume`".to_owned(),
        Control::Pause => "no automatic reboots until `pitstop ctl resume`".to_owned(),
        Control::Resume if run => "the run goes on".to_owned(),
        Control::Resume => "automatic reboots are allowed again".to_owned(),
        Control::Undo if model.reboot.attempt.is_none() => {
            "what was forgotten is preserved again".to_owned()
        }
        Control::Undo => {
            "this session ends and the one before the last reboot is resumed".to_owned()
        }
        Control::ClearState => {
            "forgotten; the scratchpad, git, and your first and latest prompt stay. `pitstop ctl undo` brings it back; \
             behind a reboot `pitstop restore --tag clear-state` does"
                .to_owned()
        }
        Control::Detach => "all terminals are detached; the session goes on".to_owned(),
        Control::Stop => "the agent is ended, then pitstop leaves".to_owned(),
        Control::Say(_) if run => "it is typed at the next safe moment".to_owned(),
        Control::Say(_) => "it is typed into the agent's prompt".to_owned(),
    }
}

/// Returns the result of an order that was given from afar, where no command line is at hand.
pub(super) fn from_afar(model: &Model, order: &Control) -> String {
    match order {
        Control::Reboot | Control::RebootBy(_) if !is_approved(model) => {
            "the handoff waits for your approval".to_owned()
        }
        Control::Reboot | Control::RebootBy(_) | Control::Approve | Control::ApproveAs(_) => {
            match awaited(model).as_str() {
                "" => "approved: it begins now".to_owned(),
                awaited => format!("approved: it waits {awaited}"),
            }
        }
        Control::Pause if model.autopilot.is_some() => {
            "the run is paused until you resume it".to_owned()
        }
        Control::Pause => "no automatic reboots until you resume them".to_owned(),
        order => of(model, order),
    }
}

/// Reports whether no reboot waits for an approval.
fn is_approved(model: &Model) -> bool {
    let attempt = model.reboot.attempt.as_ref();
    attempt.is_none_or(|one| one.approved.is_some())
}

fn reboot_asked(model: &Model) -> String {
    if is_approved(model) {
        return approved(model);
    }
    let key = model.keys().hint(Action::Reboot);
    let key = key.map_or_else(String::new, |key| format!("{key} in pitstop reviews it, "));
    format!(
        "the reboot waits for an approval: {key}`pitstop ctl approve` goes ahead, `pitstop ctl defer` puts it off"
    )
}

fn approved(model: &Model) -> String {
    let awaited = awaited(model);
    let waits = (model.reboot).has_attempt(|one| one.is_harmless() && !one.force);
    if goes_on_the_fly(model) && turn_runs(model) {
        return "approved: the conversation is replaced at the agent's next step, and its turn goes on (`pitstop status`)".to_owned();
    }
    if awaited.is_empty() || !waits {
        let what = if in_place::is_chosen(model) {
            "the conversation is replaced now"
        } else {
            "the session ends now and the next begins"
        };
        return format!("approved: {what} (`pitstop status`)");
    }
    format!("approved: it waits {awaited} (`pitstop ctl approve` again does not wait)")
}

/// Returns what a reboot waits for, as words that follow `waits`.
fn awaited(model: &Model) -> String {
    let blocks = blocked_by(model);
    let blocks: Vec<_> = blocks.into_iter().map(Block::awaited).collect();
    blocks.join(" and ")
}
