//! An agent whose hooks do not speak: its title and its transcript are the witnesses of what it does.
//!
//! | seen | taken for |
//! |---|---|
//! | a new prompt in the transcript, or a title that spins | a turn runs |
//! | a calm title, and no call of a tool without its result | no turn runs |
//! | the result of a shell command in the transcript | that the command has run, as a hook would have told |
//!
//! A calm title with a call open may be a question for the human, so it counts for nothing. Neither can see a dialog that
//! stands before the session's first record: until then nothing is typed for anybody.

use std::time::Duration;

use crate::{
    agent::{ToolCall, ToolOutput},
    api::wire::AgentState,
};

use super::{
    agent,
    effect::Effect,
    event::{Ran, TimerId},
    model::Model,
    reboot,
};

/// How long a sign must stand before it is believed.
const STANDS: Duration = Duration::from_millis(1500);

/// What a title says of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// No turn runs: `✳ …`.
    Calm,
    /// One runs: a spinner of braille dots.
    Spins,
}

impl Sign {
    fn of(title: &str) -> Option<Self> {
        match title.chars().next()? {
            _ if agent::is_calm(title) => Some(Self::Calm),
            '\u{2800}'..='\u{28ff}' => Some(Self::Spins),
            _ => None,
        }
    }
}

/// Whether there are no other witnesses.
#[must_use]
pub fn is_alone(model: &Model) -> bool {
    !model.agent.hooked && model.identity.agent_kind != "generic"
}

/// Whether something may be typed for the human: a dialog that stands before the first record would take it.
#[must_use]
pub fn may_type(model: &Model) -> bool {
    !is_alone(model) || model.transcript.turns > 0
}

/// The title has changed.
pub fn title_changed(model: &mut Model) -> Vec<Effect> {
    let sign = Sign::of(&model.title);
    if sign == model.agent.sign {
        return Vec::new();
    }
    model.agent.sign = sign;
    look_again(model)
}

/// Looks at the signs once they have stood for a while.
fn look_again(model: &mut Model) -> Vec<Effect> {
    let epoch = model.next_epoch();
    model.calm_epoch = epoch;
    vec![Effect::SetTimer(TimerId::Calm(epoch), STANDS)]
}

/// The transcript has grown from so many turns by these commands.
pub fn transcript_read(model: &mut Model, turns_before: u64, ran: Vec<Ran>) -> Vec<Effect> {
    let mut effects = Vec::new();
    for Ran {
        command,
        output,
        failed,
    } in ran
    {
        let call = ToolCall {
            name: "Bash".to_owned(),
            command: Some(command),
            ..ToolCall::default()
        };
        let output = ToolOutput {
            stdout: output,
            failed,
            ..ToolOutput::default()
        };
        effects.extend(agent::tool_finished(model, &call, &output));
    }
    // The first turns that are read may be those of a session that is resumed.
    if turns_before > 0 && model.transcript.turns > turns_before {
        begin_turn(model);
    }
    if matches!(model.agent.state, AgentState::Starting | AgentState::Busy) {
        effects.extend(look_again(model));
    }
    effects
}

/// The signs have stood for long enough.
pub fn judge(model: &mut Model, epoch: u64) -> Vec<Effect> {
    if epoch != model.calm_epoch {
        return Vec::new();
    }
    let mut effects = Vec::new();
    match (model.agent.sign, model.agent.state) {
        (Some(Sign::Spins), AgentState::Starting | AgentState::Idle) => begin_turn(model),
        // What a run types goes to whatever stands in the pane.
        (Some(Sign::Calm), AgentState::Starting)
            if may_type(model) || model.autopilot.is_none() =>
        {
            agent::set_state(model, AgentState::Idle);
        }
        (Some(Sign::Calm), AgentState::Busy) if model.transcript.calls_open == 0 => {
            let said = model.agent.last_message.clone();
            effects.extend(agent::turn_ended(
                model,
                said.as_deref(),
                crate::agent::Background::default(),
            ));
        }
        _ => return Vec::new(),
    }
    effects.extend(reboot::consider(model));
    effects.extend(reboot::advance(model));
    effects
}

fn begin_turn(model: &mut Model) {
    if matches!(model.agent.state, AgentState::Starting | AgentState::Idle) {
        agent::turn_begins(model);
    }
}
