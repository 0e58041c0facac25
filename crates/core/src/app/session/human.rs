//! The human's own words: read from the hook at once, and from the transcript, which knows the earlier words too.

use pitstop_transcript::{
    human::{HumanWords, Said},
    prompts,
};

use crate::app::model::Model;

/// Takes in a prompt that the agent was given.
pub fn prompted(model: &mut Model, prompt: &str) {
    let mut words = HumanWords::default();
    if words.prompt(prompt, Some(model.now.wall)) {
        // A prompt that was taken out counts again when it is given again.
        if !prompts::is_handoff(prompt) {
            model.draft.signalled.readmit(&words);
        }
        take(model, &words);
    }
}

/// Takes over the human's words.
pub fn take(model: &mut Model, words: &HumanWords) {
    model.draft.signalled.feed_human(words);
    // The warm-up prompt is no request to a session in particular.
    let warmup = model.config.reboot.warmup_prompt.as_deref().map(str::trim);
    let asked = |said: &&Said| Some(said.text.as_str()) != warmup;
    let first = words.first.as_ref().filter(asked);
    let prompt = words.latest.as_ref().filter(asked).or(first);
    let requests = &mut model.draft.requests;
    if requests.first.is_none() {
        requests.first = words.carried_first.as_ref().or(first).cloned();
    }
    // The words that a handoff carried are older than those read since.
    let latest = prompt.or_else(|| {
        let carried = words.carried_latest.as_ref();
        carried.filter(|_| requests.latest.is_none())
    });
    if let Some(latest) = latest
        && requests
            .first
            .as_ref()
            .is_none_or(|first| first.text != latest.text)
    {
        requests.latest = Some(latest.clone());
    }
}
