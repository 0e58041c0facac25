//! The signals that the loop answers.

use std::{io, task::Poll};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::process::ignores;

use super::Woken;

/// The signals that we answer.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    hangup: Option<Signal>,
    interrupt: Signal,
    winch: Signal,
    stop: Signal,
    /// Those that are not sent to have us end in order, but that would end us all the same, with the terminal in disorder.
    deadly: Vec<(&'static str, Signal)>,
}

impl Signals {
    /// Listens from now on: a signal that comes before the loop begins waits for it.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            // `nohup` asks for it to be ignored, and listening would take that back.
            hangup: (ignores(&[rustix::process::Signal::HUP]) != Some(true))
                .then(|| signal(SignalKind::hangup()))
                .transpose()?,
            interrupt: signal(SignalKind::interrupt())?,
            winch: signal(SignalKind::window_change())?,
            stop: signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?,
            deadly: DEADLY
                .into_iter()
                .map(|(name, number)| Ok((name, signal(SignalKind::from_raw(number.as_raw()))?)))
                .collect::<io::Result<_>>()?,
        })
    }

    pub(super) async fn next(&mut self) -> Woken {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => Woken::Signal("SIGTERM"),
            () = received(self.hangup.as_mut()) => Woken::Signal("SIGHUP"),
            _ = self.interrupt.recv() => Woken::Signal("SIGINT"),
            _ = self.winch.recv() => Woken::Resized,
            _ = self.stop.recv() => Woken::Suspend,
            name = any_of(&mut self.deadly) => Woken::Signal(name),
        }
    }
}

/// See [`Signals`].
const DEADLY: [(&str, rustix::process::Signal); 9] = [
    ("SIGQUIT", rustix::process::Signal::QUIT),
    ("SIGUSR1", rustix::process::Signal::USR1),
    ("SIGUSR2", rustix::process::Signal::USR2),
    ("SIGALRM", rustix::process::Signal::ALARM),
    ("SIGXCPU", rustix::process::Signal::XCPU),
    ("SIGABRT", rustix::process::Signal::ABORT),
    ("SIGXFSZ", rustix::process::Signal::XFSZ),
    ("SIGVTALRM", rustix::process::Signal::VTALARM),
    ("SIGPROF", rustix::process::Signal::PROF),
];

/// The name of the first of these signals that comes.
async fn any_of(signals: &mut [(&'static str, Signal)]) -> &'static str {
    std::future::poll_fn(|context| {
        let mut came = signals
            .iter_mut()
            .filter_map(|(name, signal)| signal.poll_recv(context).is_ready().then_some(*name));
        came.next().map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

async fn received(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}
