//! A rewind in the client: everything from a prompt on is taken back.
//!
//! No hook reports it. The transcript shows it by its next prompt, which follows an earlier record; its facts about work, commands
//! and the human's words follow by themselves. The additions of signals and tools become what they were before the prompt.

use crate::app::{event::TranscriptFacts, model::Model};

/// Takes in the prompts of a transcript that has grown.
pub fn transcript_read(model: &mut Model, facts: &mut TranscriptFacts) {
    if let Some(first) = facts.rewound.take()
        && model.draft.take_back(&first)
    {
        model.session.agent.last_message = None;
        model.info("the conversation was rewound: what was said and decided since is taken back");
    }
    if let Some(prompt) = facts.prompt.take() {
        model.draft.prompt_read(prompt);
    }
}
