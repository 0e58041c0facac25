//! The signals that the loop answers.

use std::{io, task::Poll};

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

use pitstop_base::process::ignores;

/// The signals that we answer.
#[derive(Debug)]
pub struct Signals {
    ending: Vec<(&'static str, Signal)>,
}

/// The signals that end us, the most urgent first. Those after the first three are not sent to have us end in order, but they would
/// end us all the same, with the terminal in disorder.
const ENDING: [(&str, Number); 12] = [
    ("SIGTERM", Number::TERM),
    ("SIGHUP", Number::HUP),
    ("SIGINT", Number::INT),
    ("SIGQUIT", Number::QUIT),
    ("SIGUSR1", Number::USR1),
    ("SIGUSR2", Number::USR2),
    ("SIGALRM", Number::ALARM),
    ("SIGXCPU", Number::XCPU),
    ("SIGABRT", Number::ABORT),
    ("SIGXFSZ", Number::XFSZ),
    ("SIGVTALRM", Number::VTALARM),
    ("SIGPROF", Number::PROF),
];

impl Signals {
    /// Listens from now on: a signal that comes before the loop begins waits for it.
    pub fn new() -> io::Result<Self> {
        // `nohup` asks for it to be ignored, and listening would take that back.
        let is_answered = |number| number != Number::HUP || ignores(&[number]) != Some(true);
        let mut ending = ENDING.to_vec();
        ending.retain(|(_, number)| is_answered(*number));
        Self::listen(&ending)
    }

    /// Listens to these signals, each with its name.
    pub fn listen(signals: &[(&'static str, Number)]) -> io::Result<Self> {
        let listen = |number: Number| signal(SignalKind::from_raw(number.as_raw()));
        let ending = signals
            .iter()
            .map(|(name, number)| Ok((*name, listen(*number)?)));
        Ok(Self {
            ending: ending.collect::<io::Result<_>>()?,
        })
    }

    /// Waits for the next signal; returns its name.
    pub async fn next(&mut self) -> &'static str {
        std::future::poll_fn(|context| {
            let mut came = self
                .ending
                .iter_mut()
                .filter_map(|(name, signal)| signal.poll_recv(context).is_ready().then_some(*name));
            came.next().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}
