//! An agent whose hooks are silent, or of which some are lost: its title, its screen and its transcript show what it does.
//!
//! A new prompt in the transcript begins a turn, and the result of a shell command shows that the command has run, as a hook would
//! have reported. Everything else is [`activity`](super::activity)'s.

use crate::api::wire::AgentState;
use pitstop_agent::{ToolCall, ToolOutput};
use pitstop_base::clock::At;

use crate::app::{
    event::Ran,
    model::{Model, activity::TitleState, session::Session, submission::SubmissionEvent},
    reboot::submit,
    session::turn::{self, TurnEvent},
};

/// Takes in a transcript that has grown from so many turns, and the commands that have run.
pub fn transcript_read(model: &mut Model, turns_before: u64, ran: Vec<Ran>) {
    let hookless = model.session.is_hookless();
    let missed = |one: &Ran| hookless && one.tool.is_none();
    for Ran {
        command,
        directory,
        output,
        failed,
        ..
    } in ran.into_iter().filter(missed)
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
