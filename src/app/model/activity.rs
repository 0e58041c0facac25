//! The state of the turn and of the question that are open.

use std::collections::BTreeSet;

use crate::{agent::Background, clock::At, transcript::Tokens};

/// What the title says of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TitleState {
    /// No turn runs, or a dialog is open: `✳ …`.
    Calm,
    /// One runs, or background agents do: a spinner of braille dots or of half circles.
    Spins,
}

impl TitleState {
    pub(in crate::app) fn of(title: &str) -> Option<Self> {
        match title.chars().next()? {
            '✳' => Some(Self::Calm),
            '\u{2800}'..='\u{28ff}' | '\u{25d0}'..='\u{25d3}' => Some(Self::Spins),
            _ => None,
        }
    }
}

/// A question that waits for the human.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What it is about: a tool's name or the client's words.
    pub about: String,
    /// When it was asked.
    pub(in crate::app) asked: At,
    /// Whether it was seen in the place of the prompt box.
    pub(in crate::app) drawn: bool,
}

/// What a Stop hook has reported of a turn that other sources say goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::app) struct ReportedStop {
    /// The last words of the turn so far.
    pub(in crate::app) message: Option<String>,
    /// What is left going on in the background.
    pub(in crate::app) background: Background,
}

/// The turn and the question that are open.
#[derive(Clone, Debug, Default)]
pub struct Activity {
    /// Whether a turn is open.
    pub(in crate::app) turn: bool,
    /// Whether title and prompt box have ended the turn before: its hook may still come.
    pub(in crate::app) hook_due: bool,
    /// The Stop hook that has come while the turn goes on: it ends the turn once no source says that it runs.
    pub(in crate::app) stop: Option<ReportedStop>,
    /// Main-chain calls of tools without a result.
    pub(in crate::app) calls: BTreeSet<String>,
    /// The question that is open.
    pub question: Option<Question>,
    /// What the title says.
    pub(in crate::app) title: Option<TitleState>,
    /// Whether the bridge has seen a dialog, since the prompt box was there last.
    pub(in crate::app) dialog_seen: bool,
    /// Whether the prompt box was seen in this iteration: then its absence means something.
    pub(in crate::app) box_seen: bool,
    /// What the transcript shows of another process in the same session.
    pub(in crate::app) elsewhere: Elsewhere,
}

/// Signs of another process that goes on with the session.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::app) struct Elsewhere {
    /// Prompts that a hook has reported and the transcript does not show yet.
    pub(in crate::app) awaited: u64,
    /// Whether a prompt was submitted here, by a person or by us, that no hook has reported: hooks that the machine was too busy for
    /// are lost, or come after the transcript.
    pub(in crate::app) submitted: bool,
    /// Whether the transcript has shown a prompt that was submitted here before its hook has come.
    pub(in crate::app) hook_late: bool,
    /// How much had been said in all when the transcript showed a prompt that no hook has reported.
    pub(in crate::app) unreported: Option<Tokens>,
    /// Whether such a prompt was answered, and no turn has begun here since.
    pub(in crate::app) known: bool,
}

impl Elsewhere {
    /// A prompt was submitted here, by a person or by us. A hook that has not come for the one before is lost.
    pub(in crate::app) const fn submitted(&mut self) {
        self.submitted = true;
        self.hook_late = false;
    }
}
