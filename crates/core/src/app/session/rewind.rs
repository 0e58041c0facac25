//! A rewind in the client: everything from a prompt on is taken back.
//!
//! No hook reports it. The transcript shows it by its next prompt, which follows an earlier record; its facts about work, commands
//! and the human's words follow by themselves. The additions of signals and tools become what they were before the prompt.

use crate::app::{event::TranscriptFacts, model::draft::HandoffDraft};

impl HandoffDraft {
    /// Takes in the prompts of a transcript that has grown; returns whether the conversation was rewound.
    pub(in crate::app) fn prompts_read(&mut self, facts: &mut TranscriptFacts) -> bool {
        let rewound = facts.rewound.take();
        let is_rewound = rewound.is_some_and(|first| self.take_back(&first));
        if let Some(prompt) = facts.prompt.take() {
            self.prompt_read(prompt);
        }
        is_rewound
    }
}
