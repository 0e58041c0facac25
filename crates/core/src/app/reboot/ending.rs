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

use crate::{api::wire::AgentState, config::RebootConfig};

use crate::app::{
    effect::{Effect, StopSignal},
    event::TimerId,
    model::{Model, ending::Ending, reboot::Reboot},
    reboot::iteration::close_iteration,
};

/// The deadline of each signal while the machine or the terminal is going away.
const URGENT: Duration = Duration::from_millis(700);

/// The deadline of SIGKILL, after which a process is gone at once unless the kernel holds it.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);

/// An event that may lead to the next signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::app) enum EndingEvent {
    /// The agent is to be ended, without time for a gentle end if it is `urgent`.
    Begins { urgent: bool },
    /// The signal with the timer of this epoch has had its time.
    SignalOver(u64),
    /// All features have taken the event at hand in.
    Settled,
}

/// Moves the ending of the agent on by an event.
pub(in crate::app) fn on(model: &mut Model, event: EndingEvent) {
    let Some((signal, urgent)) = next_signal(model, event) else {
        return;
    };
    if let Some(signal) = signal {
        let before = model.reboot.ending.map(|ending| ending.signal);
        // Escape stops a turn, and no hook reports when that is done.
        if let (EndingEvent::SignalOver(_), Some(before)) = (event, before)
            && before != StopSignal::Interrupt
        {
            let (before, next) = (before.word(), signal.word());
            model.info(format!("the agent did not end on {before}: {next}"));
        }
        let epoch = model.next_epoch();
        let config = &model.config.reboot;
        let effects = model.reboot.try_signal(signal, urgent, epoch, config);
        return model.emit_all(effects);
    }
    if let Some(ending) = &mut model.reboot.ending {
        ending.hopeless = true;
    }
    model.error("the agent's process cannot be ended, not even by SIGKILL");
    if let Some(quitting) = model.outside.quitting() {
        // Waiting would not help: the shell shows which process it is.
        close_iteration(model, quitting.reason);
        model.emit(Effect::Quit(quitting.code));
    }
}

/// Returns the signal to try next, if one is due, and whether that is urgent; no signal if the strongest has failed.
fn next_signal(model: &Model, event: EndingEvent) -> Option<(Option<StopSignal>, bool)> {
    let agent = &model.session.agent;
    let ending = model.reboot.ending;
    match event {
        EndingEvent::Begins { urgent } => {
            let has_begun = ending.is_some_and(|ending| ending.urgent || !urgent);
            let first = match agent.state {
                _ if urgent => StopSignal::Hangup,
                // A program we know nothing about may take an interrupt for anything.
                _ if model.is_generic() => StopSignal::Hangup,
                AgentState::Busy if model.session.transcript.queued.is_empty() => {
                    StopSignal::Interrupt
                }
                _ => StopSignal::Exit,
            };
            (!has_begun && !agent.daemon.is_ending()).then_some((Some(first), urgent))
        }
        EndingEvent::SignalOver(epoch) => {
            let ending = ending.filter(|ending| ending.epoch == epoch)?;
            Some((ending.signal.next(), ending.urgent))
        }
        // Once the interrupted turn is over, SIGINT need not wait any longer.
        EndingEvent::Settled => {
            let ending = ending.filter(|ending| ending.signal == StopSignal::Interrupt)?;
            matches!(agent.state, AgentState::Idle | AgentState::Limit)
                .then_some((Some(StopSignal::Exit), ending.urgent))
        }
    }
}

impl Reboot {
    /// Tries a signal. Returns the orders for it, and for the timer of this epoch that ends its time.
    fn try_signal(
        &mut self,
        signal: StopSignal,
        urgent: bool,
        epoch: u64,
        config: &RebootConfig,
    ) -> [Effect; 2] {
        self.ending = Some(Ending {
            signal,
            epoch,
            urgent,
            hopeless: false,
        });
        let deadline = match signal {
            _ if urgent => URGENT,
            StopSignal::Interrupt => config.interrupt_timeout,
            StopSignal::Exit => config.exit_timeout,
            StopSignal::Hangup => config.hangup_timeout,
            StopSignal::Terminate => config.terminate_timeout,
            StopSignal::Kill => KILL_TIMEOUT,
        };
        let order = match signal {
            StopSignal::Interrupt => Effect::Type(b"\x1b".to_vec()),
            signal => Effect::Signal(signal),
        };
        let timer = TimerId::StopTimeout(epoch);
        [order, Effect::SetTimer(timer, deadline)]
    }
}
