//! The supervisor's own places, when they vanish: what is made again is reported, and what only they could prove is proven otherwise.
//!
//! Without the control socket no hook arrives. Those that were lost meanwhile are not known, so the agent is treated as one without
//! hooks until the next one comes: its title, its screen and its transcript show what it does.

use crate::app::{
    consequences::Consequences,
    effect::Effect,
    event::{MadeAgain, PlacesSeen},
    model::{outside::Outside, session::Session},
};

impl Outside {
    /// Takes in a check of the places that found a change.
    pub(in crate::app) fn places_checked(&mut self, seen: &PlacesSeen) -> Consequences {
        let mut follows = Consequences::default();
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
            let made = made.join(" and ");
            follows.error(format!("{made} {verb} removed: made again"));
        }
        self.project_gone = seen.project_gone;
        let before = std::mem::replace(&mut self.places_missing, seen.missing.clone());
        if let Some(why) = seen.missing.as_ref().filter(|_| seen.missing != before) {
            follows.error(format!("pitstop's own files are gone: {why}"));
        }
        let makes = (lock || files).then_some(Effect::MakeFilesAgain(seen.made));
        let reads = files.then_some(Effect::ReadScratchpad);
        follows.effects.extend(makes.into_iter().chain(reads));
        follows
    }
}

impl Session {
    /// Notes that hooks were lost.
    pub(in crate::app) fn hooks_lost(&mut self, effects: &mut Vec<Effect>) {
        self.agent.hooked = false;
        self.agent.activity.elsewhere.hooks_lost();
        self.look_again(effects);
    }
}
