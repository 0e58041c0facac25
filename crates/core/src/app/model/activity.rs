//! The state of the turn and of the question that are open.

use std::{collections::BTreeSet, time::Duration};

use pitstop_agent::Background;
use pitstop_base::{clock::At, redact::redact};
use pitstop_transcript::Tokens;
use serde_json::Value;

use crate::{app::event::CallId, autopilot::breaker::excerpt};

/// The agent's state as the pane's title shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TitleState {
    /// The agent rests or has a dialog open: `✳ …`.
    Calm,
    /// A turn or background agents run: a spinner of braille dots or of half circles.
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
    /// The subject of the question: a tool's name or the client's words.
    pub about: String,
    /// The time at which it was asked.
    pub(in crate::app) asked: At,
    /// True if it was seen in the place of the prompt box.
    pub(in crate::app) drawn: bool,
    /// The permission that it asks for, if it is one and its hook has come.
    pub permission: Option<Permission>,
}

/// A permission that the agent asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// The name of the tool.
    pub tool: String,
    /// The whole command, or the tool's input as JSON. Secrets are not masked.
    pub input: String,
    /// The hook that waits for a person's answer from afar; `None` if it can be answered at the desk only.
    pub call: Option<CallId>,
}

impl Permission {
    /// Returns the question that the client asks by way of a permission, if it is one, without secrets.
    fn question(&self) -> Option<String> {
        let input = (self.tool == "AskUserQuestion").then_some(&self.input)?;
        let input: Value = serde_json::from_str(input).ok()?;
        let question = input["questions"][0]["question"].as_str()?;
        Some(excerpt(&redact(question)))
    }

    /// Returns what it is about, for a person who does not see the dialog: the client's own notification names no tool.
    pub(in crate::app) fn subject(&self) -> String {
        let tool = self.tool.as_str();
        match tool {
            "AskUserQuestion" => self.question().unwrap_or_else(|| tool.to_owned()),
            "ExitPlanMode" => "its plan waits for approval".to_owned(),
            _ => format!("permission for {tool}: {}", excerpt(&redact(&self.input))),
        }
    }
}

/// The report of a Stop hook on a turn that goes on according to other sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::app) struct ReportedStop {
    /// The last words of the turn so far.
    pub(in crate::app) message: Option<String>,
    /// The work that goes on in the background.
    pub(in crate::app) background: Background,
}

/// The turn and the question that are open.
#[derive(Clone, Debug, Default)]
pub struct Activity {
    /// True if a turn is open.
    pub(in crate::app) turn: bool,
    /// The time at which the last turn was seen to begin.
    pub(in crate::app) began: Option<At>,
    /// True if its beginning was taken in: the figures from then on are its own.
    pub(in crate::app) counted: bool,
    /// True if the hook of a tool has opened the turn again that was over: it may have come late.
    pub(in crate::app) reopened: bool,
    /// A hash of the last words of the turn that has ended.
    pub(in crate::app) last_words: Option<u64>,
    /// The time of the last hook of a turn that neither title nor bridge have shown to run.
    pub(in crate::app) unseen: Option<At>,
    /// True if title and prompt box have ended the previous turn, whose hook may still come.
    pub(in crate::app) hook_due: bool,
    /// The number of ends of turns that the transcript had shown when the turn began.
    pub(in crate::app) closings: u64,
    /// True if the transcript has ended the previous turn in the place of its hook, which may still come.
    pub(in crate::app) closed: bool,
    /// The Stop hook that has come while the turn goes on. It ends the turn once no source shows that it runs.
    pub(in crate::app) stop: Option<ReportedStop>,
    /// The ids of the main chain's tool calls without a result.
    pub(in crate::app) calls: BTreeSet<String>,
    /// The question that is open.
    pub question: Option<Question>,
    /// The state that the title shows.
    pub(in crate::app) title: Option<TitleState>,
    /// The time at which the title last stopped spinning, by the monotonic clock.
    pub(in crate::app) rested: Option<Duration>,
    /// True if the bridge has seen a dialog since the prompt box was last there.
    pub(in crate::app) dialog_seen: bool,
    /// True if the prompt box was seen in this iteration, so that its absence means something.
    pub(in crate::app) box_seen: bool,
    /// The signs in the transcript of another process in the same session.
    pub(in crate::app) elsewhere: Elsewhere,
}

/// The signs of another process that goes on with the session.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::app) struct Elsewhere {
    /// The number of prompts that a hook has reported and the transcript does not show yet.
    pub(in crate::app) awaited: u64,
    /// The number of turns that had been read when this process resumed the session.
    pub(in crate::app) turns_before: u64,
    /// True if a prompt was submitted here, by a person or by the supervisor, that no hook has reported: on a busy machine, hooks are
    /// lost or come after the transcript.
    pub(in crate::app) submitted: bool,
    /// True if the transcript has shown a prompt that was submitted here before its hook has come.
    pub(in crate::app) hook_late: bool,
    /// True if that prompt has begun a turn.
    pub(in crate::app) begun: bool,
    /// The session's total of output tokens when the transcript showed a prompt that no hook has reported.
    pub(in crate::app) unreported: Option<Tokens>,
    /// True if such a prompt was answered, and no turn has begun here since.
    pub(in crate::app) known: bool,
}

impl Elsewhere {
    /// Notes that the conversation was replaced: the transcript has the handoff as a prompt that no hook reports, and what waited
    /// for an answer is written once more.
    pub(in crate::app) fn replaced(&mut self) {
        *self = Self {
            awaited: self.awaited + 2,
            ..Self::default()
        };
    }

    /// Notes that a prompt was submitted here, by a person or by the supervisor. A hook that has not come for the previous prompt is
    /// lost.
    pub(in crate::app) const fn submitted(&mut self) {
        self.submitted = true;
        (self.hook_late, self.begun) = (false, false);
    }
}
