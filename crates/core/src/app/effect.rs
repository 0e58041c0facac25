//! The effects: every order that the core gives, by who carries it out.

use std::{sync::Arc, time::Duration};

use serde::Serialize;

use crate::{
    api::wire::{ApiEvent, Reply},
    autopilot::RunEvent,
    lineage::{
        Cause, Iteration, IterationId, Meta, RunId, Way, checkpoint::Checkpoint,
        journal::JournalEntry, metrics::TurnFigures,
    },
};
use pitstop_agent::bridge::{BridgeOrder, Decision, OrderId, PutBack, QuestionId};
use pitstop_handoff::{PreservedState, scratchpad::versions::Version};
use pitstop_terminal::{
    PaneSize,
    copy::CopyOrder,
    input::HostInput,
    screen::{Progress, Scroll},
};
use pitstop_transcript::{SessionId, talk::Talk, trim::TrimSettings};

use crate::app::{
    event::{CallId, MadeAgain, SummaryId, TimerId},
    model::{carried::Carried, needs::Need},
};

/// An order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send what the human did on to the child, in the form that the child asked for.
    Forward(HostInput),
    /// Write these bytes to the child, in one write of their own.
    Type(Vec<u8>),
    /// Paste these pieces of a text into the child in one write, each with marks of its own if the child asked for them.
    Paste(Vec<String>),
    /// Give the pane a new size.
    ResizePane(PaneSize),
    /// Move through the scrollback.
    ScrollPane(Scroll),
    /// Do this in copy mode; `PaneEvent::CopyMode` comes back.
    CopyMode(CopyOrder),
    /// Report to the child that it got or lost the focus.
    FocusPane(bool),
    /// Send a signal to the agent, from SIGHUP on to its whole process group.
    Signal(StopSignal),
    /// Continue the agent's stopped process.
    ContinueAgent,
    /// Start an agent process.
    Start(StartAgent),
    /// Make and check what the next agent needs, and run the user's `pre_reboot`; `ReadEvent::Prepared` comes back.
    Prepare(Box<Preparation>),
    /// Run the user's `post_reboot` with this on its standard input, as JSON.
    RunPostReboot(Box<RebootResult>),
    /// Look for this text on the pane's screen until it is seen.
    WatchPane(String),
    /// Read the state of the git repository.
    ReadGit,
    /// Read what the client's arguments, environment and settings files set for its compaction; `ReadEvent::ClientSettings` comes back.
    ReadClientSettings,
    /// Read what the client shows about its limit at the end of its screen; `ReadEvent::ClientWords` comes back if it does.
    ReadClientWords,
    /// Look whether these files are there, and read those that the handoff includes; `ReadEvent::HandoffFiles` comes back.
    ReadHandoffFiles {
        /// Files that the handoff names.
        named: Vec<String>,
        /// Files whose text it includes, as the user wrote them.
        include: Vec<String>,
    },
    /// Write the scratchpad, if it still is what we read last: `ReadEvent::ScratchpadSaved` comes back, or `ScratchpadNotSaved`.
    /// Otherwise `ReadEvent::Scratchpad` comes back.
    WriteScratchpad {
        /// The text that we believe is on disk.
        base: String,
        /// The text that shall be there.
        text: String,
    },
    /// Read the scratchpad.
    ReadScratchpad,
    /// Keep the unsent prompt on disk, or take it off: `ReadEvent::DraftKept` comes back. `ReadEvent::Draft` gives it to the next
    /// start.
    KeepDraft(Option<String>),
    /// Read the agent's prompt box off its screen now: `PaneEvent::PromptBoxSeen` comes back.
    ReadPromptBox,
    /// Have the client's own side of the session do this; a `BridgeEvent` comes back, if it can.
    OrderBridge {
        /// The number that the answer names.
        id: OrderId,
        /// The session whose side is meant.
        session: SessionId,
        /// The order itself.
        order: BridgeOrder,
    },
    /// Take an order for the client's own side back, unless a process has taken it; `BridgeEvent::Cancelled` comes back.
    CancelOrder(OrderId),
    /// Take the order to replace the conversation back, unless the client has the text; `BridgeEvent::Revoked` comes back.
    RevokeOrder(OrderId),
    /// Have the client's own side ask about each prompt of its person before it is sent, or no more.
    AskOfPrompts(bool),
    /// Answer the client's own side: with what a compaction leaves of its conversation, or with whether a prompt is sent.
    AnswerQuestion {
        /// The question.
        id: QuestionId,
        /// The answer.
        decision: Decision,
    },
    /// Keep this version of the scratchpad.
    KeepVersion(Version),
    /// Read the recording of an iteration, of this run or an earlier one.
    ReadRecording(RunId, IterationId),
    /// Read the transcript of a session; `ReadEvent::Talk` comes back, with this iteration.
    ReadTranscript(SessionId, IterationId),
    /// Show a transcript in the place of the pane's screen, in copy mode.
    ShowTranscript(Arc<Talk>),
    /// Look for a text in all that the store has of the project; `StoreEvent::HistoryFound` comes back.
    SearchHistory(String),
    /// Keep the session's figures at the end of a turn.
    KeepTurn(TurnFigures),
    /// Read what the store has of an iteration; `StoreEvent::PastRead` comes back.
    ReadPast(RunId, IterationId),
    /// Read the file that holds the task of the run.
    ReadTask,
    /// Open a document with this text in `$EDITOR`.
    OpenEditor(String),
    /// Follow this transcript file.
    FollowTranscript {
        /// The session whose transcript it is.
        session: SessionId,
        /// The path that the agent has given: the shell checks it before it opens it.
        path: String,
    },
    /// Take a prompt, and all behind it, back in the transcript of this session: the client has put it back into the prompt box.
    TakeBack(SessionId, PutBack),
    /// Report what each level of a trim of a session would free; `ReadEvent::TrimPlanned` comes back.
    SurveyTrim {
        /// The number that the answer names.
        ask: u64,
        /// The session.
        session: SessionId,
        /// The settings by which it is measured.
        settings: TrimSettings,
    },
    /// Write a trimmed copy of a session whose agent has ended; `ReadEvent::Trimmed` comes back.
    TrimTranscript {
        /// The number that the answer names.
        ask: u64,
        /// The session.
        from: SessionId,
        /// The copy's session, which has no transcript yet.
        to: SessionId,
        /// The settings by which it is measured.
        settings: TrimSettings,
    },
    /// Write a step ahead; `StoreEvent::Journaled` comes back when it is on disk.
    Journal(Box<JournalEntry>),
    /// Keep an iteration's record, in the store and in `meta.json`.
    SaveIteration(Box<Iteration>, Box<Meta>),
    /// Make again the contents of these places: what the agent was started with, its recording, its entry among the agents.
    MakeFilesAgain(MadeAgain),
    /// Record the agent in the pane in a file of its own, because it goes on in this iteration; `PaneEvent::Spawned` comes back.
    ContinuePane(IterationId),
    /// Keep the handoff that an iteration was given.
    SaveHandoff {
        /// The iteration that gets it.
        iteration: IterationId,
        /// The whole message.
        text: String,
    },
    /// Read the session for its summary: `ReadEvent::TranscriptRead` comes back, and `ReadEvent::Summarized` if a model is asked.
    Summarize {
        /// The number of the order; it replaces any before.
        id: SummaryId,
        /// True if a model is asked.
        ask: bool,
    },
    /// Look whether the client's daemon runs a fork of one of these sessions; `ReadEvent::Moved` comes back if it does.
    FindMoved {
        /// The sessions that the agent has had.
        from: Vec<SessionId>,
    },
    /// End what the client's daemon runs of these sessions; `ReadEvent::MovedEnded` comes back.
    EndMoved {
        /// The sessions that the agent has had.
        sessions: Vec<SessionId>,
        /// The time that the client may take for it.
        limit: Duration,
    },
    /// Ask no model any more: end the process, if one runs.
    CancelSummary,
    /// Keep the summary of an iteration.
    SaveSummary {
        /// The iteration that it is about.
        iteration: IterationId,
        /// Its seven sections.
        text: String,
    },
    /// Keep what a session carries of its lineage.
    KeepCarried(SessionId, Box<Carried>),
    /// Read what a session carries; `StoreEvent::CarriedRead` comes back.
    ReadCarried {
        /// The session whose state is read.
        of: SessionId,
        /// The session that goes on from it.
        session: SessionId,
    },
    /// Keep a checkpoint.
    SaveCheckpoint(Box<Checkpoint>),
    /// Report `TimerId` after this time; setting it again replaces it.
    SetTimer(TimerId, Duration),
    /// Answer a call.
    Answer(CallId, Reply),
    /// Send this to those who listen to events.
    Publish(Box<ApiEvent>),
    /// Put a text on the clipboard: the host terminal's, and the system's where there is one.
    Copy(String),
    /// Put the agent's text on the clipboard of the host terminal, as it asked.
    StoreClipboard(String),
    /// Ring the host terminal's bell.
    Bell,
    /// Show a message on the host's desktop.
    Notify {
        /// Its heading, which may be empty.
        title: String,
        /// Its text.
        body: String,
    },
    /// Name the host terminal's window.
    HostTitle(String),
    /// Show on the host terminal the agent's progress.
    HostProgress(Progress),
    /// Call a person for this, in each way that the user wants.
    Call(Box<Need>),
    /// Take a call back: no person is needed for this any more.
    Settled(Box<Need>),
    /// Write to the run's log.
    LogRun(Box<RunEvent>),
    /// Lets go of the terminal in which something was typed last.
    Detach,
    /// Lets go of all terminals.
    DetachAll,
    /// Leave, with this exit code, after everything has been written.
    Quit(i32),
}

/// Returns the order to write this to the run's log.
pub(in crate::app) fn run_event(event: RunEvent) -> Effect {
    Effect::LogRun(Box::new(event))
}

/// The orders that one event gives the shell, in sequence.
///
/// They are carried out or taken out, never dropped: an order that is not carried out would leave the core waiting for its answer.
#[derive(Debug)]
#[must_use = "an effect that is not run is lost"]
pub struct Effects(Vec<Effect>);

impl From<Vec<Effect>> for Effects {
    fn from(effects: Vec<Effect>) -> Self {
        Self(effects)
    }
}

impl std::ops::Deref for Effects {
    type Target = [Effect];

    fn deref(&self) -> &[Effect] {
        &self.0
    }
}

impl IntoIterator for Effects {
    type Item = Effect;
    type IntoIter = std::vec::IntoIter<Effect>;

    fn into_iter(mut self) -> Self::IntoIter {
        std::mem::take(&mut self.0).into_iter()
    }
}

impl Drop for Effects {
    fn drop(&mut self) {
        // `let _ =` silences `must_use`, but not this.
        debug_assert!(
            self.0.is_empty() || std::thread::panicking(),
            "effects were dropped: {:?}",
            self.0
        );
    }
}

/// The agent process to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartAgent {
    /// The iteration that it will be.
    pub iteration: IterationId,
    /// The session to create or to resume.
    pub session: SessionId,
    /// True if the session exists already.
    pub resume: bool,
    /// The session that a new one takes over from, or is a copy of.
    pub after: Option<SessionId>,
    /// The model, if a person has chosen another one than the arguments name.
    pub model: Option<String>,
    /// The first prompt, given at the start.
    pub prompt: Option<String>,
    /// The first prompt instead, if the session that was to be resumed has nothing on disk and begins again.
    pub prompt_if_new: Option<String>,
    /// True if it is the first process of this supervisor: only then do the user's own `--resume` and `--continue` flags count.
    pub first: bool,
}

/// The things that must be there before an agent is ended for a reboot.
#[derive(Clone, Debug, PartialEq)]
pub struct Preparation {
    /// The number of the attempt, which the answer names: one that is taken back and the next one have the same id.
    pub attempt: u64,
    /// The iteration that shall begin.
    pub iteration: IterationId,
    /// The message, where one is sent.
    pub handoff: Option<String>,
    /// The copy that the session to be resumed is made from, where there is one.
    pub copy: Option<ReplacedCopy>,
    /// The data that `pre_reboot` is given; `None` where it is not run.
    pub hook: Option<RebootResult>,
    /// True if it is tried again for a while before it is refused: no person waits for the answer, and the refusal may end a run.
    pub is_patient: bool,
}

/// A copy of the conversation that was replaced in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacedCopy {
    /// The session whose transcript holds it.
    pub from: SessionId,
    /// The nonce of the handoff that has taken its place.
    pub nonce: String,
    /// The session that it gets.
    pub to: SessionId,
}

/// The JSON data that the user's own commands around a reboot are given.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RebootResult {
    /// `pre_reboot` or `post_reboot`.
    pub hook: &'static str,
    /// The reboot.
    pub reboot_id: uuid::Uuid,
    /// The run it happens in.
    pub run_id: RunId,
    /// The project's directory.
    pub project: String,
    /// The iteration that ends.
    pub iteration: IterationId,
    /// The cause of the reboot.
    pub cause: Cause,
    /// The way in which the context is carried over.
    pub way: Way,
    /// The session that ends.
    pub old_session: SessionId,
    /// The session that begins.
    pub new_session: SessionId,
    /// Tokens in use when it was begun, where they are known.
    pub used_tokens: Option<u64>,
    /// The message, where one is sent.
    pub handoff: Option<String>,
    /// The state that is preserved over it.
    pub preserved_state: PreservedState,
    /// The result: `done`, `rolled_back` or `failed`; absent before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<&'static str>,
    /// The reason for which it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// True if the handoff was seen to arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// The time from the approval to the end, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
}

/// The signals of the ladder by which an agent is ended, mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopSignal {
    /// Escape, to stop the running turn.
    Interrupt,
    /// SIGINT to the agent alone, on which the client exits cleanly.
    Exit,
    /// SIGHUP to the process group.
    Hangup,
    /// SIGTERM to the process group.
    Terminate,
    /// SIGKILL to the process group.
    Kill,
}

impl StopSignal {
    /// Returns the next stronger signal.
    pub const fn next(self) -> Option<Self> {
        match self {
            Self::Interrupt => Some(Self::Exit),
            Self::Exit => Some(Self::Hangup),
            Self::Hangup => Some(Self::Terminate),
            Self::Terminate => Some(Self::Kill),
            Self::Kill => None,
        }
    }

    /// Returns the word for the signal.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Interrupt => "Escape",
            Self::Exit => "SIGINT",
            Self::Hangup => "SIGHUP",
            Self::Terminate => "SIGTERM",
            Self::Kill => "SIGKILL",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "effects were dropped")]
    fn an_effect_cannot_be_dropped_unseen() {
        let effects = Effects::from(vec![Effect::Bell]);
        assert_eq!(effects.into_iter().next(), Some(Effect::Bell));
        drop(Effects::from(vec![Effect::Bell]));
    }

    #[test]
    fn every_rung_leads_to_a_kill_of_the_group() {
        for signal in [
            StopSignal::Interrupt,
            StopSignal::Exit,
            StopSignal::Hangup,
            StopSignal::Terminate,
        ] {
            let last = std::iter::successors(Some(signal), |signal| signal.next()).last();
            assert_eq!(last, Some(StopSignal::Kill));
        }
    }
}
