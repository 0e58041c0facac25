//! A rewind in the client: everything from a prompt on is taken back.
//!
//! No hook reports it. The transcript shows it by its next prompt, which follows an earlier record; its facts about work, commands
//! and the human's words follow by themselves. The additions of signals and tools become what they were before the prompt.

use pitstop_handoff::PreservedState;

use crate::app::{
    event::TranscriptFacts,
    model::{Model, rewinds::Before, summaries::Summaries},
};

/// The number of prompts for which the state before them is remembered.
const PROMPTS_KEPT: usize = 64;

/// Notes a prompt that a hook reports, whose words are not taken in yet.
pub fn prompted(model: &mut Model) {
    model.draft.rewinds.hooked = Some(now(model));
}

/// Takes in the prompts of a transcript that has grown.
pub fn transcript_read(model: &mut Model, facts: &mut TranscriptFacts) {
    if let Some(first) = facts.rewound.take() {
        take_back(model, &first);
    }
    let Some(prompt) = facts.prompt.take() else {
        return;
    };
    let last = model.draft.rewinds.prompts.back();
    if last.is_some_and(|(name, _)| *name == prompt) {
        return;
    }
    let hooked = model.draft.rewinds.hooked.take();
    let before = hooked.unwrap_or_else(|| now(model));
    let prompts = &mut model.draft.rewinds.prompts;
    prompts.push_back((prompt, before));
    if prompts.len() > PROMPTS_KEPT {
        prompts.pop_front();
    }
}

fn now(model: &Model) -> Before {
    let draft = &model.draft;
    Before {
        state: PreservedState {
            // The start of the run is the same before each prompt.
            run_start: None,
            ..draft.signalled.clone()
        },
        requests: draft.requests.clone(),
        todo: draft.todo.clone(),
    }
}

/// Takes back everything from this prompt on. What a person has had removed stays removed.
fn take_back(model: &mut Model, first: &str) {
    let rewinds = &mut model.draft.rewinds;
    let Some(at) = rewinds.prompts.iter().position(|(name, _)| name == first) else {
        return;
    };
    let before = rewinds.prompts.drain(at..).next();
    rewinds.hooked = None;
    let draft = &mut model.draft;
    if let Some((_, mut before)) = before {
        before.state.withdraw_all(&draft.signalled.withdrawn);
        before.state.run_start = draft.signalled.run_start.take();
        draft.signalled = before.state;
        draft.requests = before.requests;
        draft.todo = before.todo;
    }
    // The signals that the new prompt's turn has given by a hook so far are in the transcript, too.
    draft.seen_signals.forget();
    draft.summary = Summaries::default();
    model.session.agent.last_message = None;
    model.info("the conversation was rewound: what was said and decided since is taken back");
}
