//! The human's own words: read from the hook at once, and from the transcript, which knows the earlier words too.

use pitstop_transcript::{human::HumanWords, prompts};

use crate::app::model::Model;

/// Takes in a prompt that the agent was given.
pub fn prompted(model: &mut Model, prompt: &str) {
    let mut words = HumanWords::default();
    if words.take_prompt(prompt, Some(model.now.wall)) {
        // A prompt that was taken out counts again when it is given again.
        if !prompts::is_handoff(prompt) {
            model.draft.signalled.readmit_prompts(&words);
        }
        take(model, &words);
    }
}

/// Takes over the human's words.
pub fn take(model: &mut Model, words: &HumanWords) {
    let warmup = model.config.reboot.warmup_prompt.as_deref().map(str::trim);
    model.draft.human_said(words, warmup);
}
