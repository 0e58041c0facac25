//! The human's own words: read from the hook at once, and from the transcript, which knows the earlier words too.

use pitstop_base::clock::At;
use pitstop_transcript::{human::HumanWords, prompts};

use crate::app::model::draft::HandoffDraft;

impl HandoffDraft {
    /// Takes in a prompt that the agent was given.
    pub(in crate::app) fn prompted(&mut self, prompt: &str, warmup: Option<&str>, now: At) {
        let mut words = HumanWords::default();
        if words.take_prompt(prompt, Some(now.wall)) {
            // A prompt that was taken out counts again when it is given again.
            if !prompts::is_handoff(prompt) {
                self.signalled.readmit_prompts(&words);
            }
            self.human_said(&words, warmup);
        }
    }
}
