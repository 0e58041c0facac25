//! An agent whose hooks are silent: its title, its screen and its transcript show what it does.
//!
//! A new prompt in the transcript begins a turn, and the result of a shell command shows that the command has run, as a hook would
//! have reported. Everything else is [`activity`](super::activity)'s.

use crate::api::wire::AgentState;
use pitstop_agent::{ToolCall, ToolOutput};
use pitstop_base::clock::At;

use crate::app::{
    event::Ran,
    model::{Model, session::Session, submission::SubmissionEvent},
    reboot::submit,
    session::turn::{self, TurnEvent},
};

/// Takes in a transcript that has grown from so many turns, and the commands that have run.
pub fn transcript_read(model: &mut Model, turns_before: u64, ran: Vec<Ran>) {
    for Ran {
        command,
        directory,
        output,
        failed,
        ..
    } in ran.into_iter().filter(|one| one.tool.is_none())
    {
        let call = ToolCall {
            name: "Bash".to_owned(),
            command: Some(command),
            directory,
            ..ToolCall::default()
        };
        let output = ToolOutput {
            stdout: output,
            failed,
            ..ToolOutput::default()
        };
        model.draft.moments.tool_started(&call);
        turn::tool_finished(model, &call, &output);
    }
    // The first turns that are read may be those of a session that is resumed.
    if turns_before > 0 && model.session.transcript.turns > turns_before {
        // A hook would have proven the same.
        if let Some(prompt) = model.session.transcript.last_prompt.clone() {
            submit::on(model, SubmissionEvent::Taken(&prompt));
        }
        let begun = model.session.begin_seen_turn(model.now);
        turn::on(model, begun);
    }
    if matches!(
        model.session.agent.state,
        AgentState::Starting | AgentState::Busy | AgentState::Unknown
    ) {
        model.session.look_again(&mut model.scratch.effects);
    }
}

impl Session {
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
