//! The supervisor's own places, when they vanish: what is made again is reported, and what only they could prove is proven otherwise.
//!
//! Without the control socket no hook arrives. Those that were lost meanwhile are not known, so the agent is treated as one without
//! hooks until the next one comes: its title, its screen and its transcript show what it does.

use crate::app::{
    draft::record::save_iteration,
    effect::Effect,
    event::{MadeAgain, PlacesSeen},
    model::{Model, submission::SubmissionEvent},
    reboot::submit,
};

/// Handles a check of the places that found a change.
pub fn checked(model: &mut Model, seen: &PlacesSeen) {
    let MadeAgain {
        lock,
        socket,
        files,
    } = seen.made;
    let named = format!("the control socket ({})", seen.socket.display());
    let made: Vec<&str> = [
        (lock, "the project's lock"),
        (socket, named.as_str()),
        (files, "the run's directory"),
    ]
    .into_iter()
    .filter_map(|(made, name)| made.then_some(name))
    .collect();
    if !made.is_empty() {
        let verb = if made.len() == 1 { "was" } else { "were" };
        model.error(format!("{} {verb} removed: made again", made.join(" and ")));
    }
    if let Some(why) = model.outside.places_checked(seen) {
        model.error(format!("pitstop's own files are gone: {why}"));
    }
    if socket {
        model.session.agent.hooked = false;
        model.session.agent.activity.elsewhere.hooks_lost();
        submit::on(model, SubmissionEvent::HooksLost);
        model.session.look_again(&mut model.scratch.effects);
    }
    model.emit_all((lock || files).then_some(Effect::MakeFilesAgain(seen.made)));
    if files {
        save_iteration(model);
        model.emit(Effect::ReadScratchpad);
    }
}
