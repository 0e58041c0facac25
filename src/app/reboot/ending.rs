//! Ending the agent: a ladder from the mildest means to the sternest, each rung with a deadline.
//!
//! ```text
//! Escape ─► SIGINT ─► SIGHUP ─► SIGTERM ─► SIGKILL
//! ```
//!
//! `/exit` is not typed, for reasons measured on the client (2.1.197): it joins a half-typed draft and submits
//! both; after an Escape early in a turn it submits the interrupted prompt a second time; and its Enter answers
//! a dialog that happens to be open. SIGINT to the client itself ends it within 0.2 s idle, with a draft, in
//! mid-turn and with a dialog open (1.6 s with a background task), and runs `SessionEnd` each time; its hooks get
//! 1.5 s. A busy client gets Escape first: it then ends its running shell command, which otherwise goes on as an
//! orphan in a session of its own, where no signal to the process group finds it.

use std::time::Duration;

use crate::api::wire::AgentState;

use crate::app::{
    effect::{Effect, Rung},
    event::TimerId,
    model::{Model, ending::Ending},
    reboot::iteration::close_iteration,
};

/// The deadline of each rung while the machine or the terminal is going away.
const URGENT: Duration = Duration::from_millis(700);

/// After SIGKILL a process is gone at once unless the kernel holds it.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);

/// Begins to end the agent; nothing if that has begun already.
pub fn begin(model: &mut Model, urgent: bool) -> Vec<Effect> {
    if model.session.agent.daemon.is_ending()
        || model
            .reboot
            .ending
            .is_some_and(|ending| ending.urgent || !urgent)
    {
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
    match (model.identity.agent_kind, model.session.agent.state) {
        // A program we know nothing about may take an interrupt for anything.
        ("generic", _) => Rung::Hangup,
        (_, AgentState::Busy) => Rung::Interrupt,
        _ => Rung::Exit,
    }
}

fn try_rung(model: &mut Model, rung: Rung, urgent: bool) -> Vec<Effect> {
    let epoch = model.next_epoch();
    model.reboot.ending = Some(Ending {
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
    let act = match rung {
        Rung::Interrupt => Effect::Type(b"\x1b".to_vec()),
        Rung::Exit | Rung::Hangup | Rung::Terminate | Rung::Kill => Effect::Signal(rung),
    };
    vec![act, Effect::SetTimer(TimerId::EndRung(epoch), deadline)]
}

/// A rung has had its time: the next one.
pub fn rung_over(model: &mut Model, epoch: u64) -> Vec<Effect> {
    let Some(ending) = model.reboot.ending.filter(|ending| ending.epoch == epoch) else {
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
    if let Some(ending) = &mut model.reboot.ending {
        ending.hopeless = true;
    }
    model.trouble("the agent's process cannot be ended, not even by SIGKILL");
    let Some(quitting) = model.outside.quitting else {
        return Vec::new();
    };
    // Nothing better comes of waiting: the shell shows which process it is.
    let mut effects = close_iteration(model, quitting.reason);
    effects.push(Effect::Quit(quitting.code));
    effects
}

/// The turn was interrupted: SIGINT need not wait any longer.
pub fn turn_over(model: &mut Model) -> Vec<Effect> {
    match model.reboot.ending {
        Some(Ending {
            rung: Rung::Interrupt,
            urgent,
            ..
        }) => try_rung(model, Rung::Exit, urgent),
        _ => Vec::new(),
    }
}
