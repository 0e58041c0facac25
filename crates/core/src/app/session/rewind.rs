//! A rewind in the client: everything from a prompt on is taken back.
//!
//! No hook reports it. The transcript shows it by its next prompt, which follows an earlier record; its facts about work, commands
//! and the human's words follow by themselves. The additions of signals and tools become what they were before the prompt.
//! Where a later prompt goes on from what was taken back, they become what they were at its end.

use crate::app::{event::TranscriptFacts, model::draft::HandoffDraft};

impl HandoffDraft {
    /// Takes in what a transcript that has grown shows of words and work; returns whether the conversation was rewound.
    pub(in crate::app) fn transcript_read(
        &mut self,
        facts: &mut TranscriptFacts,
        warmup: Option<&str>,
    ) -> bool {
        let rewound = facts.rewound.take();
        let is_rewound = rewound.is_some_and(|first| self.take_back(&first));
        if let Some(prompt) = facts.returned.take() {
            self.take_up(&prompt);
        }
        if let Some(prompt) = facts.prompt.take() {
            self.prompt_read(prompt);
        }
        self.todo.read(&facts.todos);
        if let Some(work) = facts.work.take() {
            self.work = *work;
        }
        if let Some(commands) = facts.commands.take() {
            self.commands = commands;
        }
        if let Some(words) = facts.human.take() {
            self.words_read(words, warmup);
        }
        is_rewound
    }
}
