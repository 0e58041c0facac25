//! The events: every fact that reaches the core, by its source.

use std::{path::PathBuf, sync::Arc};

use crate::{
    api::wire::{Control, Report},
    config::Config,
    guard::Reading,
    lineage::{
        IterationId, ProcessStamp, RunId, TokenTotals, TrimRecord,
        journal::Step,
        metrics::TurnFigures,
        past::{Found, PastSession},
    },
};
use pitstop_agent::{
    AgentEvent, PermissionRequest,
    bridge::{self, Absence, OrderId, ToolsBy},
    claude::{
        limits::{CompactionSettings, Words},
        prompt_box::PromptBox,
    },
};
use pitstop_handoff::{
    IncludedFile, breakpoint::git::GitState, scratchpad::versions::Versions, signal::Signal,
    summary::Outcome,
};
use pitstop_terminal::{
    copy::CopyOutcome, input::HostInput, pane::replay::Cast, screen::ScreenFact,
};
use pitstop_transcript::{
    SessionId, Tokens, human::HumanWords, talk::Talk, todo::Todos, trim::TrimPlan, work::WorkAtHand,
};

use crate::app::model::{carried::Carried, history::EarlierRun};

/// A fact, in the past tense.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The host terminal has sent something.
    Host(HostEvent),
    /// The pane or its process has reported something.
    Pane(PaneEvent),
    /// The hosted agent has reported something, through a hook or its status line.
    Agent(AgentEvent),
    /// The bridge is asked for at a start, or has reported something.
    Bridge(BridgeEvent),
    /// Something outside was read.
    Read(ReadEvent),
    /// The store answered.
    Store(StoreEvent),
    /// A timer that was set has run out.
    TimerFired(TimerId),
    /// Someone with the control token asked for something.
    ControlAsked {
        /// The call that waits for the answer.
        call: CallId,
        /// The order that is given.
        control: Control,
    },
    /// A permission's hook has come, and waits if there is a call.
    PermissionAsked {
        /// The call that waits for a person's answer.
        call: Option<CallId>,
        /// The permission.
        request: Box<PermissionRequest>,
    },
    /// A hook that waited has gone: its dialog was answered at the desk.
    HookGone(CallId),
    /// A program outside has seen something.
    Reported {
        /// The call that waits for the answer.
        call: CallId,
        /// The report of what was seen.
        report: Report,
    },
    /// The hosted agent calls a tool.
    ToolCalled {
        /// The call that waits for the answer.
        call: CallId,
        /// The agent that calls.
        caller: bridge::Caller,
        /// The tool that it calls.
        tool: bridge::Tool,
    },
    /// The supervisor was asked to end, by a signal or because its terminal is gone.
    ShutdownAsked {
        /// The signal's name.
        signal: &'static str,
    },
    /// Something of the supervisor's own was gone, or can be made again now.
    PlacesChecked(Box<PlacesSeen>),
    /// Something went wrong that the user should see and that cannot be mended: the session goes on.
    EffectFailed {
        /// A description, in the user's words.
        what: String,
    },
}

/// The state of the places that the supervisor keeps its own things in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacesSeen {
    /// The places that were gone and are there again.
    pub made: MadeAgain,
    /// The places that are gone and cannot be made again, and the reason.
    pub missing: Option<String>,
    /// True if the project's directory itself is gone.
    pub project_gone: bool,
    /// The path of the control socket now.
    pub socket: PathBuf,
    /// The path of the token of the agent's hooks now.
    pub observe: PathBuf,
}

/// Places that were gone and are there again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MadeAgain {
    /// True if the project's lock was made again, with what lies beside it in the state directory.
    pub lock: bool,
    /// True if the control socket or its tokens were made again: hooks from the time between were lost.
    pub socket: bool,
    /// True if the run's directory in the project was made again.
    pub files: bool,
}

/// A fact about the bridge.
#[derive(Clone, Debug, PartialEq)]
pub enum BridgeEvent {
    /// The agent of this iteration is started with it, or without it for a reason.
    Offered {
        /// The iteration of the agent.
        iteration: IterationId,
        /// The reason for which it is not, if so.
        absence: Option<Absence>,
    },
    /// The agent of this iteration is given its tools in this way.
    ToolsGiven {
        /// The iteration of the agent.
        iteration: IterationId,
        /// The way.
        by: ToolsBy,
    },
    /// The bridge has reported something.
    Said(Box<bridge::Report>),
    /// An order was taken back, or could not be.
    Cancelled {
        /// The order.
        id: OrderId,
        /// True if a process has taken it, and may carry it out.
        was_taken: bool,
    },
    /// The order to replace the conversation was revoked, or could not be.
    Revoked {
        /// The order.
        id: OrderId,
        /// True if the client had not asked for the text yet, and gets it no more.
        in_time: bool,
    },
}

/// An event from the host terminal.
#[derive(Clone, Debug, PartialEq)]
pub enum HostEvent {
    /// The human did something.
    Input(HostInput),
    /// The host terminal has a new size, in cells.
    Resized {
        /// Its width in cells.
        columns: u16,
        /// Its height in cells.
        rows: u16,
    },
    /// The last terminal in which a person could type is gone.
    Left,
}

/// An event from the pane.
#[derive(Clone, Debug, PartialEq)]
pub enum PaneEvent {
    /// The agent's process was started.
    Spawned {
        /// The iteration of the process.
        iteration: IterationId,
        /// The process, distinguished from any later one with the same number.
        process: ProcessStamp,
        /// Fresh random values for the next reboot.
        new_ids: NewIds,
    },
    /// The agent's process could not be started.
    SpawnFailed {
        /// The iteration of the process.
        iteration: IterationId,
        /// The reason, with a hint.
        why: String,
    },
    /// The agent's process is gone.
    Exited {
        /// The iteration of the process.
        iteration: IterationId,
        /// The way in which it ended.
        exit: Exit,
    },
    /// The agent's process was stopped, or waits to be continued by a shell.
    Suspended,
    /// The agent's process goes on.
    Continued,
    /// The emulator saw something that is no cell: a title, a bell, a notification.
    Screen(ScreenFact),
    /// The hosted program has begun, or ceased, to take pastes as one piece (mode 2004).
    PasteModeSet {
        /// True if it does.
        on: bool,
    },
    /// The hosted program has asked for the mouse, or gives it back.
    MouseModeSet {
        /// True if the program has the mouse.
        on: bool,
    },
    /// The hosted program has taken the whole screen of the pane (the alternate screen), or gives it back.
    FullScreenSet {
        /// True if the program has it.
        on: bool,
    },
    /// The pointer has come to rest on a link, or has left it.
    LinkHovered {
        /// The link's target, if it is passed on to the host terminal; `None` if there is no such link.
        target: Option<String>,
    },
    /// The screen has done what a reader asked for.
    CopyMode(CopyOutcome),
    /// The agent's prompt box has come or gone, or holds another text while something waits for that.
    PromptBoxSeen(PromptBox),
    /// The pane's text carries the marker of the handoff that was pasted (generic agents have no hooks).
    MarkerSeen,
    /// The input queue of the pane is full: the child does not read.
    InputRefused,
    /// The user has pressed Ctrl-C while so many bytes waited for a child that does not read: they were dropped.
    InputCancelled {
        /// The number of bytes that were dropped.
        bytes: usize,
    },
    /// Processes of an ended agent that are still alive.
    LeftoversFound {
        /// The processes, each as `pid name`.
        processes: Vec<String>,
    },
}

/// The way in which a process ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exit {
    /// The process exited with this code.
    #[error("exit code {0}")]
    Code(u32),
    /// This signal ended the process.
    #[error("signal {0}")]
    Signal(String),
}

/// An event that was read from outside.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadEvent {
    /// The scratchpad as it is on disk; `None` if there is no such file.
    Scratchpad(Option<String>),
    /// The scratchpad has this text on disk now, because we wrote it.
    ScratchpadSaved(String),
    /// The scratchpad could not be written, for this reason.
    ScratchpadNotSaved(String),
    /// An unsent prompt that was kept.
    Draft(String),
    /// This unsent prompt is on disk, or as much of it as the disk takes; `None` if there is none any more.
    DraftKept(Option<String>),
    /// Earlier versions of the scratchpad.
    Versions(Versions),
    /// Versions of the scratchpad cannot be read.
    VersionsUnreadable,
    /// The user left `$EDITOR` with this text; `None` if the editor failed.
    EditorClosed(Option<String>),
    /// The state of the git repository.
    Git(GitState),
    /// The files that the handoff names and includes.
    HandoffFiles(Box<HandoffFiles>),
    /// The signals in the pane's text, oldest first: all that it shows.
    PaneSignals {
        /// The iteration of the pane.
        iteration: IterationId,
        /// The signals.
        signals: Vec<Signal>,
    },
    /// The last shell commands of the recording of this iteration's pane, as they would be shown.
    Recorded(IterationId, Vec<String>),
    /// The facts of the transcript by now.
    Transcript {
        /// The session of the transcript.
        session: SessionId,
        /// The facts in it.
        facts: Box<TranscriptFacts>,
    },
    /// The transcript cannot be read any more.
    TranscriptLost {
        /// The session of the transcript.
        session: SessionId,
        /// The reason.
        why: String,
    },
    /// The amount of tokens that each level of a trim would free.
    TrimPlanned {
        /// The number under which it was asked.
        ask: u64,
        /// The plan, or the reason that there is none.
        plan: Result<TrimPlan, String>,
    },
    /// Everything that a reboot needs is there, or something is missing.
    Prepared {
        /// The number of the attempt.
        attempt: u64,
        /// The reason that it cannot go ahead, if so.
        refused: Option<String>,
    },
    /// The trimmed copy of a session is there whole, or there is none.
    Trimmed {
        /// The number under which it was asked.
        ask: u64,
        /// The record of what was removed, or the reason that the copy could not be made.
        made: Result<TrimRecord, String>,
    },
    /// The client's own record names the session that the agent's process of this iteration is in: its beginning, as its hook reports
    /// it.
    SessionNamed(IterationId, Box<AgentEvent>),
    /// The client's daemon runs this session as a fork of the agent's.
    Moved {
        /// Its session.
        session: SessionId,
    },
    /// The sessions that were to be ended in the client's daemon have been ended.
    MovedEnded {
        /// The last of them that holds the conversation. The client writes a fork's transcript with its first prompt: before,
        /// the session that it was forked from holds it.
        holds: Option<SessionId>,
        /// The sessions that may go on, and the reason; `None` if none does.
        left: Option<String>,
    },
    /// An estimate from the pane's text.
    Estimate(Reading),
    /// The values that the client's arguments, environment and settings files give for its compaction.
    ClientSettings(Box<CompactionSettings>),
    /// The client's words about its limit at the end of its screen.
    ClientWords(Words),
    /// The recording of an iteration.
    Recording {
        /// The iteration.
        iteration: IterationId,
        /// The recording, or the reason that there is none.
        cast: Result<Cast, String>,
    },
    /// The transcript of an iteration's session.
    Talk {
        /// The iteration.
        iteration: IterationId,
        /// The transcript, or the reason that there is none.
        talk: Result<Arc<Talk>, String>,
    },
    /// The task of the run as its file has it now, or the reason that the file cannot be read.
    Task(Result<String, String>),
    /// The configuration files changed and are good.
    Config(Box<Config>),
    /// The transcript has been written to its end, as far as can be seen, and read.
    TranscriptRead {
        /// The order that this answers.
        id: SummaryId,
        /// The error holds the reason that there is nothing to summarize.
        read: Result<(), String>,
    },
    /// A model was asked for a summary.
    Summarized {
        /// The order that this answers.
        id: SummaryId,
        /// The result.
        outcome: Outcome,
    },
}

/// An answer of the store.
#[derive(Clone, Debug, PartialEq)]
pub enum StoreEvent {
    /// This step of this reboot is on disk.
    Journaled {
        /// The reboot.
        reboot: uuid::Uuid,
        /// The step.
        step: Step,
    },
    /// The state of a checkpoint that was to be kept.
    CheckpointKept {
        /// The checkpoint.
        id: uuid::Uuid,
        /// The place where it is now.
        kept: Kept,
    },
    /// The state that a session carries of its lineage, if the store knows of it.
    CarriedRead {
        /// The session that goes on from it.
        session: SessionId,
        /// The state that it carries, or the reason that this is not known.
        found: Result<Option<Box<Carried>>, String>,
    },
    /// The project's runs before this one, newest first.
    EarlierRuns(Vec<EarlierRun>),
    /// The figures of this run's turns before its supervisor was started, oldest first.
    TurnsRead(Vec<TurnFigures>),
    /// The store's record of an iteration, or the reason that it has none.
    PastRead {
        /// Its run.
        run: RunId,
        /// Its number.
        iteration: IterationId,
        /// The record, or the reason.
        found: Result<Box<PastSession>, String>,
    },
    /// The places where the store has found a text, or the reason that it could not look.
    HistoryFound {
        /// The text that was looked for.
        text: String,
        /// The iterations.
        found: Result<Vec<Found>, String>,
    },
    /// The store cannot be used any more, or what waits for it has come to another place; `None` if it can again, and has all that
    /// waited.
    ErrorChanged(Option<StoreAway>),
}

/// The store while it cannot be used: what is to be written waits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("history waits {} for the database: {why}", self.place())]
pub struct StoreAway {
    /// The reason why it cannot be used.
    pub why: String,
    /// True if what waits is in a file, too, and does not end with this process.
    pub is_kept: bool,
}

impl StoreAway {
    /// Returns the place of what waits, in words.
    pub const fn place(&self) -> &'static str {
        if self.is_kept { "on disk" } else { "in memory" }
    }
}

/// The place where a record is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The record is on disk.
    Durable,
    /// The record is in memory until the store can be used again; the text is the reason that it cannot now.
    Waiting(String),
    /// The record is lost, for this reason.
    Lost(String),
}

/// A document that can be edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// The scratchpad.
    Scratchpad,
    /// The handoff.
    Handoff,
}

/// A timer. Those with an epoch are obsolete once the model's epoch for them has moved on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimerId {
    /// A signal of the ending ladder took too long.
    StopTimeout(u64),
    /// The Enter after typed text is due.
    Enter(u64),
    /// The handoff should have been proven by now.
    Verify(u64),
    /// The human has stopped typing.
    Quiet,
    /// No key has followed the prefix for a moment.
    Prefix,
    /// `auto` mode goes ahead.
    AutoDelay(u64),
    /// A person may answer a compaction for a while; the number is that of the compaction.
    Compaction(u64),
    /// A person may decide about a prompt for a while; the number is that of the prompt.
    HeldPrompt(u64),
    /// The warm-up prompt is due.
    WarmUp(u64),
    /// A summary is to be ordered, or is late.
    Summary(u64),
    /// The session may be surveyed again.
    Survey(u64),
    /// The title and the prompt box have not changed for a while.
    Calm(u64),
    /// The next moment of a recording is due.
    Replay(u64),
    /// The commit that is the head has not been reported by a hook by now.
    NewHead(u64),
    /// The wait of the autonomous run is over.
    Run(u64),
    /// The time of the autonomous run has moved on.
    RunClock,
    /// The session in the client's daemon should have been ended by now.
    MovedEnd(u64),
    /// A notice has been shown long enough.
    Notice,
    /// A reboot is shown as it goes on, and what it has brought for a while.
    Moment,
    /// The human has not typed into the pane for the quiet time, and the footer no longer shows that they type.
    Typing,
    /// The usage limit that holds the agent is over.
    LimitOver,
    /// A figure on the screen has another age.
    Age,
    /// The client has drawn what belongs to the last figure.
    ClientWords,
    /// The session's carried state has changed, and is to be kept.
    KeepCarried,
    /// The scratchpad's edits are to be written.
    SaveNotes(u64),
    /// The bridge should have reported by now.
    Bridge(IterationId),
    /// An order for the bridge should have been taken, or answered, by now.
    Order(OrderId),
}

/// A summary that was ordered. Answers to an older order are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SummaryId(pub u64);

/// A call at one of the endpoints that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId(pub u64);

/// Random values, drawn by the shell because the core has no randomness.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewIds {
    /// The id of the next reboot.
    pub reboot: uuid::Uuid,
    /// The session that the next reboot starts.
    pub session: SessionId,
    /// The nonce of the next handoff: 8 hex digits.
    pub nonce: String,
}

/// The facts of a transcript, as far as we show or use them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptFacts {
    /// The tokens in the context window after the last main-chain call.
    pub used: Option<Tokens>,
    /// The tokens in it after the first such call, or the first behind the last compaction; none while the file is not read whole.
    pub first_used: Option<Tokens>,
    /// The model, without its window mark.
    pub model: Option<String>,
    /// The input and output tokens of the whole session.
    pub totals: TokenTotals,
    /// The part of those from before the last compaction.
    pub before_compaction: TokenTotals,
    /// The number of turns so far.
    pub turns: u64,
    /// The number of those that were there before the session was followed, if that is known.
    pub old_turns: Option<u64>,
    /// The number of compactions so far.
    pub compactions: u64,
    /// True if the file was read to its end, so that the counts are complete.
    pub whole: bool,
    /// The position up to which the file was read, in bytes.
    pub read: u64,
    /// The name of the newest prompt that was not taken back.
    pub prompt: Option<String>,
    /// The name of the first prompt that a rewind has taken back, reported once.
    pub rewound: Option<String>,
    /// The name of the last prompt of a branch that was taken back and counts again, reported once.
    pub returned: Option<String>,
    /// The latest prompt.
    pub last_prompt: Option<String>,
    /// The first line of the latest prompt that is a handoff.
    pub handoff: Option<String>,
    /// The number of lines that could not be read and were skipped.
    pub skipped: u64,
    /// The signals in what the assistant has written since the facts before these, in order.
    pub signals: Vec<Signal>,
    /// The last message of the assistant since then.
    pub said: Option<String>,
    /// The agent's own to-do list.
    pub todos: Todos,
    /// The work at hand, if it has changed since the facts before these.
    pub work: Option<Box<WorkAtHand>>,
    /// The human's own words in this session, if there were new ones since then.
    pub human: Option<HumanWords>,
    /// The last shell commands as they would be shown, if there were new ones since then.
    pub commands: Option<Vec<String>>,
    /// The shell commands and the calls of other tools that have ended since then, in order.
    pub ran: Vec<Ran>,
    /// The number of tool calls on the main chain that have no result yet, of those since we began to follow.
    pub calls_open: usize,
    /// The end of the last turn, if it is over and has ended since we began to follow.
    pub closing: Option<Closing>,
    /// The number of such ends so far.
    pub closings: u64,
    /// The prompts that a person has given while the agent works, and that it has not been given yet.
    pub queued: Vec<String>,
}

pub use pitstop_transcript::digest::{Closing, Ran};

/// The state in the file system of the files that a handoff names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HandoffFiles {
    /// The files that are not there, of those that were asked about.
    pub missing: Vec<String>,
    /// The files that the user wants to be named.
    pub included: Vec<IncludedFile>,
    /// A warning for each of those that could not be read, with the reason.
    pub warnings: Vec<String>,
}
