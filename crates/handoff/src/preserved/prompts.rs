//! The rules that must hold: the human's prompts, and the constraints that the agent stated.

use std::collections::{BTreeSet, HashMap};

use super::{Constraint, Origin, PreservedState};
use pitstop_transcript::{
    human::{HumanWords, KEPT_PROMPTS, Said},
    words::{plain_key, without_images},
};

impl PreservedState {
    /// Adds a rule that must hold, unless it is known or was removed by the human.
    pub fn add_constraint(&mut self, said: Said, origin: Origin) {
        self.add_constraints([Constraint {
            said,
            origin,
            pinned: false,
        }]);
    }

    /// Applies the words of the human.
    pub fn feed_human(&mut self, words: &HumanWords) {
        if !words.taken_back.is_empty() {
            self.constraints.retain(|have| {
                have.origin != Origin::Human
                    || !words.taken_back.contains(&plain_key(&have.said.text))
            });
        }
        self.add_constraints(words.prompts.iter().map(|said| Constraint {
            said: said.clone(),
            origin: Origin::Human,
            pinned: false,
        }));
    }

    /// Adds several constraints, in time that grows only with their number.
    pub fn add_constraints(&mut self, new: impl IntoIterator<Item = Constraint>) {
        let known = self.constraints.iter().enumerate();
        let mut known: HashMap<String, usize> = known
            .map(|(at, have)| (plain_key(&have.said.text), at))
            .collect();
        for constraint in new {
            let key = plain_key(&constraint.said.text);
            if key.is_empty() || self.withdrawn.contains(&key) {
                continue;
            }
            match known.get(&key) {
                // A constraint that the agent noted becomes the human's when they state it themselves.
                Some(&at) if constraint.origin == Origin::Human => {
                    let have = &mut self.constraints[at];
                    let pinned = have.pinned || constraint.pinned;
                    if have.origin != Origin::Human {
                        *have = constraint;
                    } else if without_images(&constraint.said.text) == have.said.text {
                        // The transcript says more of it than the hook: the files of its images.
                        have.said.text = constraint.said.text;
                    }
                    have.pinned = pinned;
                }
                Some(_) => {}
                None => {
                    known.insert(key, self.constraints.len());
                    self.constraints.push(constraint);
                }
            }
        }
        let mut over = self.constraints.len().saturating_sub(KEPT_PROMPTS);
        self.constraints.retain(|have| {
            let stays = over == 0 || have.pinned;
            over -= usize::from(!stays);
            stays
        });
    }

    /// Pins a prompt of the human, so that every handoff has it, or unpins it; returns whether it is pinned now, or
    /// `None` if it is not known.
    pub fn toggle_pin(&mut self, said: &Said) -> Option<bool> {
        let key = plain_key(&said.text);
        let mut all = self.constraints.iter_mut();
        let found = all.find(|one| plain_key(&one.said.text) == key)?;
        found.pinned = !found.pinned;
        Some(found.pinned)
    }

    /// Returns the prompts of the human, oldest first.
    pub fn prompts(&self) -> impl DoubleEndedIterator<Item = &Constraint> {
        let all = self.constraints.iter();
        all.filter(|one| one.origin == Origin::Human)
    }

    /// Reports whether this prompt of the human is known, by its [`plain_key`].
    pub fn has_prompt(&self, key: &str) -> bool {
        self.prompts().any(|one| plain_key(&one.said.text) == key)
    }

    /// Removes a prompt or a constraint permanently, as the human wants.
    pub fn withdraw_constraint(&mut self, said: &Said) {
        let key = plain_key(&said.text);
        self.constraints
            .retain(|have| plain_key(&have.said.text) != key);
        self.withdrawn.insert(key);
    }

    /// Removes the constraints that a human has removed elsewhere, by [`plain_key`].
    pub fn withdraw_all(&mut self, withdrawn: &BTreeSet<String>) {
        self.withdrawn.extend(withdrawn.iter().cloned());
        let is_out = |have: &Constraint| self.withdrawn.contains(&plain_key(&have.said.text));
        self.constraints.retain(|have| !is_out(have));
    }

    /// Admits prompts again that were removed before.
    pub fn readmit_prompts(&mut self, words: &HumanWords) {
        for said in &words.prompts {
            self.withdrawn.remove(&plain_key(&said.text));
        }
    }

    /// Adds a prompt that the human wrote, even if it was removed before.
    pub fn restate_constraint(&mut self, said: Said) {
        self.withdrawn.remove(&plain_key(&said.text));
        self.add_constraint(said, Origin::Human);
    }
}
