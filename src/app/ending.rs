//! Ending the agent: a ladder from the mildest means to the sternest, each rung with a deadline.
//!
//! ```text
//! interrupt ─► /exit ─► SIGHUP ─► SIGTERM ─► SIGKILL        (DESIGN 6)
//! ```
//!
//! Keys are only typed where they cannot be taken for something else: not into a dialog, which would answer
//! it, and not behind a half-written prompt, which would be sent. Then the ladder begins at SIGHUP, on
//! which the client ends just as cleanly (CLAUDE_CODE 6).

use std::time::Duration;

use crate::api::wire::AgentState;

use super::{
    effect::{Effect, Rung},
    event::TimerId,
    model::Model,
};

/// How long the Enter waits behind the typed `/exit`: it must be a write of its own (CLAUDE_CODE 7).
const ENTER_DELAY: Duration = Duration::from_millis(30);

/// The deadline of each rung while the machine or the terminal is going away.
const URGENT: Duration = Duration::from_millis(700);

/// After SIGKILL a process is gone at once unless the kernel holds it.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);

/// How far ending the agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The rung that is being tried.
    pub rung: Rung,
    /// The epoch of its timers.
    epoch: u64,
    /// Whether there is no time for manners.
    urgent: bool,
    /// Whether the last rung has failed too.
    pub hopeless: bool,
}

/// Begins to end the agent; nothing if that has begun already.
pub fn begin(model: &mut Model, urgent: bool) -> Vec<Effect> {
    if model.ending.is_some_and(|ending| ending.urgent || !urgent) {
        return Vec::new();
    }
    let rung = if urgent {
        Rung::Hangup
    } else {
        first_rung(model)
    };
    try_rung(model, rung, urgent)
}

fn first_rung(model: &Model) -> Rung {
    let typing_is_safe = model.identity.agent_kind != "generic" && !model.agent.draft;
    match model.agent.state {
        AgentState::Busy if typing_is_safe => Rung::Interrupt,
        AgentState::Idle | AgentState::Limit if typing_is_safe => Rung::Exit,
        _ => Rung::Hangup,
    }
}

fn try_rung(model: &mut Model, rung: Rung, urgent: bool) -> Vec<Effect> {
    let epoch = model.next_epoch();
    model.ending = Some(Ending {
        rung,
        epoch,
        urgent,
        hopeless: false,
    });
    let reboot = &model.config.reboot;
    let deadline = match rung {
        _ if urgent => URGENT,
        Rung::Interrupt => reboot.interrupt_timeout,
        Rung::Exit => reboot.exit_timeout,
        Rung::Hangup => reboot.hangup_timeout,
        Rung::Terminate => reboot.terminate_timeout,
        Rung::Kill => KILL_TIMEOUT,
    };
    let mut effects = match rung {
        Rung::Interrupt => vec![Effect::Type(b"\x1b".to_vec())],
        Rung::Exit => vec![
            Effect::Type(b"/exit".to_vec()),
            Effect::SetTimer(TimerId::Enter(epoch), ENTER_DELAY),
        ],
        Rung::Hangup | Rung::Terminate | Rung::Kill => vec![Effect::Signal(rung)],
    };
    effects.push(Effect::SetTimer(TimerId::EndRung(epoch), deadline));
    effects
}

/// The Enter behind `/exit` is due.
pub fn enter_due(model: &Model, epoch: u64) -> Vec<Effect> {
    match model.ending {
        Some(ending) if ending.epoch == epoch => vec![Effect::Type(b"\r".to_vec())],
        _ => Vec::new(),
    }
}

/// A rung has had its time: the next one.
pub fn rung_over(model: &mut Model, epoch: u64) -> Vec<Effect> {
    let Some(ending) = model.ending.filter(|ending| ending.epoch == epoch) else {
        return Vec::new();
    };
    if let Some(next) = ending.rung.next() {
        model.notice(format!(
            "the agent did not end on {}: {}",
            ending.rung.word(),
            next.word()
        ));
        return try_rung(model, next, ending.urgent);
    }
    if let Some(ending) = &mut model.ending {
        ending.hopeless = true;
    }
    model.trouble("the agent's process cannot be ended, not even by SIGKILL");
    Vec::new()
}

/// The turn was interrupted: `/exit` need not wait any longer.
pub fn turn_over(model: &mut Model) -> Vec<Effect> {
    match model.ending {
        Some(Ending {
            rung: Rung::Interrupt,
            urgent,
            ..
        }) => try_rung(model, Rung::Exit, urgent),
        _ => Vec::new(),
    }
}
