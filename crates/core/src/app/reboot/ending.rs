//! The ending of the agent: a ladder from the mildest means to the strongest, each with a deadline.
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
//! orphan in a session of its own, where no signal to the process group finds it. With prompts in the client's queue it gets none:
//! the client begins them upon it, and they are kept for the session's resumption. SIGINT alone ends it then within 1.5 s, its
//! command too, and leaves the queue as it is (measured on 2.1.332).

use std::time::Duration;

use crate::api::wire::AgentState;

use crate::app::{
    effect::{Effect, StopSignal},
    event::TimerId,
    model::{Model, ending::Ending},
    reboot::iteration::close_iteration,
};

/// The deadline of each signal while the machine or the terminal is going away.
const URGENT: Duration = Duration::from_millis(700);

/// The deadline of SIGKILL, after which a process is gone at once unless the kernel holds it.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);

/// Begins to end the agent; does nothing if that has begun already.
pub fn begin(model: &mut Model, urgent: bool) {
    if model.session.agent.daemon.is_ending()
        || model
            .reboot
            .ending
            .is_some_and(|ending| ending.urgent || !urgent)
    {
        return;
    }
    let signal = if urgent {
        StopSignal::Hangup
    } else {
        first_signal(model)
    };
    try_signal(model, signal, urgent);
}

fn first_signal(model: &Model) -> StopSignal {
    match model.session.agent.state {
        // A program we know nothing about may take an interrupt for anything.
        _ if model.is_generic() => StopSignal::Hangup,
        AgentState::Busy if model.session.transcript.queued.is_empty() => StopSignal::Interrupt,
        _ => StopSignal::Exit,
    }
}

fn try_signal(model: &mut Model, signal: StopSignal, urgent: bool) {
    let epoch = model.next_epoch();
    model.reboot.ending = Some(Ending {
        signal,
        epoch,
        urgent,
        hopeless: false,
    });
    let reboot = &model.config.reboot;
    let deadline = match signal {
        _ if urgent => URGENT,
        StopSignal::Interrupt => reboot.interrupt_timeout,
        StopSignal::Exit => reboot.exit_timeout,
        StopSignal::Hangup => reboot.hangup_timeout,
        StopSignal::Terminate => reboot.terminate_timeout,
        StopSignal::Kill => KILL_TIMEOUT,
    };
    let act = match signal {
        StopSignal::Interrupt => Effect::Type(b"\x1b".to_vec()),
        StopSignal::Exit | StopSignal::Hangup | StopSignal::Terminate | StopSignal::Kill => {
            Effect::Signal(signal)
        }
    };
    model.emit(act);
    model.emit(Effect::SetTimer(TimerId::StopTimeout(epoch), deadline));
}

/// Goes on to the next signal when one has had its time.
pub fn signal_over(model: &mut Model, epoch: u64) {
    let Some(ending) = model.reboot.ending.filter(|ending| ending.epoch == epoch) else {
        return;
    };
    if let Some(next) = ending.signal.next() {
        // Escape stops a turn, and no hook reports when that is done.
        if ending.signal == StopSignal::Interrupt {
            return try_signal(model, next, ending.urgent);
        }
        model.info(format!(
            "the agent did not end on {}: {}",
            ending.signal.word(),
            next.word()
        ));
        return try_signal(model, next, ending.urgent);
    }
    if let Some(ending) = &mut model.reboot.ending {
        ending.hopeless = true;
    }
    model.error("the agent's process cannot be ended, not even by SIGKILL");
    let Some(quitting) = model.outside.quitting() else {
        return;
    };
    // Waiting would not help: the shell shows which process it is.
    close_iteration(model, quitting.reason);
    model.emit(Effect::Quit(quitting.code));
}

/// Sends SIGINT once the interrupted turn is over: it need not wait any longer.
pub(in crate::app) fn settle(model: &mut Model) {
    let state = model.session.agent.state;
    if let Some(ending) = model.reboot.ending
        && ending.signal == StopSignal::Interrupt
        && matches!(state, AgentState::Idle | AgentState::Limit)
    {
        try_signal(model, StopSignal::Exit, ending.urgent);
    }
}
