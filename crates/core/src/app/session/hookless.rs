//! An agent whose hooks are silent, or of which some are lost: its title, its screen and its transcript show what it does.
//!
//! A new prompt in the transcript begins a turn, and the result of a call shows that it has run, as a hook would have reported. What
//! both report counts once. Everything else is [`activity`](super::activity)'s.

use crate::api::wire::AgentState;
use pitstop_agent::{ToolCall, ToolOutput};
use pitstop_base::clock::At;

use crate::app::{
    event::Ran,
    model::{
        Model, activity::TitleState, seen_calls::ShownCall, session::Session,
        submission::SubmissionEvent,
    },
    reboot::submit,
    session::turn::{self, TurnEvent},
};

/// Takes in a transcript that has grown from so many turns, and the calls that have ended.
pub fn transcript_read(model: &mut Model, turns_before: u64, ran: Vec<Ran>) {
    for one in ran {
        take_ran(model, one);
    }
    let hookless = model.session.is_hookless();
    // The first turns that are read may be those of a session that is resumed.
    if turns_before > 0 && model.session.transcript.turns > turns_before {
        // A hook would have proven the same.
        if let Some(prompt) = model.session.transcript.last_prompt.clone() {
            submit::on(model, SubmissionEvent::Taken(&prompt));
        }
        model.session.agent.activity.closed = false;
        let begun = if hookless {
            model.session.begin_seen_turn(model.now)
        } else {
            model.session.begin_unreported()
        };
        turn::on(model, begun);
    }
    let state = model.session.agent.state;
    let open = matches!(
        state,
        AgentState::Starting | AgentState::Busy | AgentState::Unknown
    );
    if hookless && open {
        model.session.look_again(&mut model.scratch.effects);
    }
}

/// Takes in an ended call that no hook has reported. Hooks report no command of the human's.
fn take_ran(model: &mut Model, ran: Ran) {
    let shown = match &ran.call {
        Some(call) => model.draft.seen_calls.by_transcript(call),
        None if model.session.is_hookless() => ShownCall::New,
        None => ShownCall::Known,
    };
    let is_shell = ran.tool.is_none();
    let call = ToolCall {
        id: ran.call,
        name: ran.tool.unwrap_or_else(|| "Bash".to_owned()),
        command: is_shell.then_some(ran.command),
        directory: ran.directory,
        file: ran.file,
        ..ToolCall::default()
    };
    let output = ToolOutput {
        stdout: ran.output,
        failed: ran.failed,
        ..ToolOutput::default()
    };
    match shown {
        ShownCall::New => {
            model.draft.moments.tool_started(&call);
            turn::tool_finished(model, &call, &output);
        }
        // The outcome of its tests is newer than what came later.
        ShownCall::Overtaken if is_shell => {
            model.draft.moments.tool_started(&call);
            model.draft.take_printed(&call, &output, model.now);
        }
        ShownCall::Overtaken | ShownCall::Known => {}
    }
}

impl Session {
    /// Begins the turn of a prompt that was submitted here and that the transcript shows before its hook, once it is seen to run.
    pub(in crate::app) fn begin_unreported(&mut self) -> Option<TurnEvent> {
        let agent = &mut self.agent;
        let reported = agent.bridge.of(self.id).and_then(|one| one.turn);
        let activity = &mut agent.activity;
        let spins = activity.title == Some(TitleState::Spins);
        let runs = activity.turn || reported.unwrap_or(spins);
        let begins = runs && activity.calls.is_empty() && activity.elsewhere.begin_turn();
        begins.then_some(TurnEvent::Prompted)
    }

    /// Begins a turn, as far as can be seen.
    pub(in crate::app) fn begin_seen_turn(&mut self, now: At) -> Option<TurnEvent> {
        let rests = matches!(
            self.agent.state,
            AgentState::Starting | AgentState::Idle | AgentState::Unknown
        );
        rests.then(|| {
            self.begin_turn(now);
            TurnEvent::Begun
        })
    }
}
