//! What happened: every fact that reaches the core, by its source.

use std::path::PathBuf;

use crate::{
    agent::{
        AgentEvent,
        claude::{
            limits::{CompactionSettings, Words},
            prompt_box::PromptBox,
        },
    },
    api::wire::{Control, Report},
    breakpoint::git::GitState,
    bridge::{self, Absence, OrderId, ToolsBy},
    config::Config,
    guard::Reading,
    handoff::{IncludedFile, signal::Signal, summary::Outcome},
    lineage::{
        IterationId, ProcessStamp, RunId, TokenTotals, TrimRecord, journal::Step, past::PastSession,
    },
    pane::{copy::CopyOutcome, input::HostInput, replay::Cast, screen::ScreenFact},
    scratchpad::versions::Versions,
    transcript::{
        SessionId, Tokens, human::HumanWords, todo::Todos, trim::TrimPlan, work::WorkAtHand,
    },
};

use crate::app::model::{carried::Carried, history::EarlierRun};

/// A fact, in the past tense.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The host terminal spoke.
    Host(HostEvent),
    /// The pane or its process spoke.
    Pane(PaneEvent),
    /// The hosted agent spoke, through a hook or its status line.
    Agent(AgentEvent),
    /// The bridge is asked for at a start, or has spoken.
    Bridge(BridgeEvent),
    /// Something outside was read.
    Read(ReadEvent),
    /// The store answered.
    Store(StoreEvent),
    /// A timer that was set has run out.
    TimerFired(TimerId),
    /// Someone with the control token asked for something.
    ControlAsked {
        /// Which call waits for the answer.
        call: CallId,
        /// What is wanted.
        control: Control,
    },
    /// A program outside has seen something.
    Reported {
        /// Which call waits for the answer.
        call: CallId,
        /// What was seen.
        report: Report,
    },
    /// The hosted agent calls a tool.
    ToolCalled {
        /// Which call waits for the answer.
        call: CallId,
        /// Which agent.
        caller: bridge::Caller,
        /// What it calls.
        tool: bridge::Tool,
    },
    /// The supervisor was told to end by a signal or because its terminal is gone.
    ShutdownAsked {
        /// The signal's name.
        signal: &'static str,
    },
    /// The host terminal is gone, and the run goes on without it.
    TerminalLost,
    /// Something of the supervisor's own was gone, or can be made again now.
    PlacesChecked(Box<PlacesSeen>),
    /// Something went wrong that the user should see and that cannot be mended: the session goes on.
    EffectFailed {
        /// What, in the user's words.
        what: String,
    },
}

/// What became of the places that the supervisor keeps its own things in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacesSeen {
    /// What was gone and is there again.
    pub made: MadeAgain,
    /// What is gone and cannot be made again, and why.
    pub missing: Option<String>,
    /// Where the control socket is now.
    pub socket: PathBuf,
    /// Where the token of the agent's hooks is now.
    pub observe: PathBuf,
}

/// Places that were gone and are there again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MadeAgain {
    /// The project's lock, with what lies beside it in the state directory.
    pub lock: bool,
    /// The control socket or its tokens: hooks of the time between were lost.
    pub socket: bool,
    /// The run's directory in the project.
    pub files: bool,
}

/// What is known of the bridge.
#[derive(Clone, Debug, PartialEq)]
pub enum BridgeEvent {
    /// The agent of this iteration is started with it, or why not.
    Offered {
        /// Whose agent.
        iteration: IterationId,
        /// Why it is not, if so.
        absence: Option<Absence>,
    },
    /// How the agent of this iteration is given its tools.
    ToolsGiven {
        /// Whose agent.
        iteration: IterationId,
        /// How.
        by: ToolsBy,
    },
    /// It has said something.
    Said(Box<bridge::Report>),
    /// An order was taken back, or could not be.
    Cancelled {
        /// The order.
        id: OrderId,
        /// Whether a process has taken it, and may carry it out.
        was_taken: bool,
    },
    /// The order to replace the conversation was revoked, or could not be.
    Revoked {
        /// The order.
        id: OrderId,
        /// Whether the client had not asked for the text yet, and gets it no more.
        in_time: bool,
    },
}

/// What comes from the host terminal.
#[derive(Clone, Debug, PartialEq)]
pub enum HostEvent {
    /// The human did something.
    Input(HostInput),
    /// The host terminal has a new size, in cells.
    Resized {
        /// Its width.
        columns: u16,
        /// Its height.
        rows: u16,
    },
}

/// What comes from the pane.
#[derive(Clone, Debug, PartialEq)]
pub enum PaneEvent {
    /// The agent's process was started.
    Spawned {
        /// Whose process.
        iteration: IterationId,
        /// The process, distinguished from any later bearer of its number.
        process: ProcessStamp,
        /// Fresh random values for the next reboot.
        new_ids: NewIds,
    },
    /// The agent's process could not be started.
    SpawnFailed {
        /// Whose process.
        iteration: IterationId,
        /// Why, with a hint.
        why: String,
    },
    /// The agent's process is gone.
    Exited {
        /// Whose process.
        iteration: IterationId,
        /// How it ended.
        exit: Exit,
    },
    /// The emulator saw something that is no cell: a title, a bell, a notification.
    Screen(ScreenFact),
    /// The hosted program has begun, or ceased, to take pastes as one piece (mode 2004).
    PasteModeSet {
        /// Whether it does.
        on: bool,
    },
    /// The hosted program has asked for the mouse, or gives it back.
    MouseModeSet {
        /// Whether it has it.
        on: bool,
    },
    /// The pointer has come to stand on a link, or has left it.
    LinkHovered {
        /// Where it goes, if it is passed on to the host terminal; `None` if there is no such link.
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
        /// How many there were.
        bytes: usize,
    },
    /// Processes of an ended agent that are still alive.
    LeftoversFound {
        /// `pid name`, one each.
        processes: Vec<String>,
    },
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this code.
    Code(u32),
    /// By this signal.
    Signal(String),
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// What was read from outside.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadEvent {
    /// The scratchpad as it stands on disk; `None` if there is no such file.
    Scratchpad(Option<String>),
    /// The scratchpad says this on disk now, because we wrote it.
    ScratchpadSaved(String),
    /// The scratchpad could not be written, for this reason.
    ScratchpadNotSaved(String),
    /// An unsent prompt that was kept.
    Draft(String),
    /// This unsent prompt is on disk, or as much of it as the disk takes; `None`: there is none any more.
    DraftKept(Option<String>),
    /// Earlier versions of the scratchpad.
    Versions(Versions),
    /// Versions of the scratchpad cannot be read.
    VersionsUnreadable,
    /// The user left `$EDITOR`.
    EditorClosed {
        /// Which document it held.
        document: Document,
        /// The text it was left with; `None` if the editor failed.
        text: Option<String>,
    },
    /// The state of the git repository.
    Git(GitState),
    /// The files that the handoff names and includes.
    HandoffFiles(Box<HandoffFiles>),
    /// Signals in the pane's text, oldest first: all that stand there.
    PaneSignals {
        /// Whose pane.
        iteration: IterationId,
        /// The signals.
        signals: Vec<Signal>,
    },
    /// The last shell commands of the pane's recording, as they would be shown.
    Recorded {
        /// Whose pane.
        iteration: IterationId,
        /// The text.
        commands: Vec<String>,
    },
    /// What the transcript says by now.
    Transcript {
        /// Whose transcript.
        session: SessionId,
        /// What it says.
        facts: Box<TranscriptFacts>,
    },
    /// The transcript cannot be read any more.
    TranscriptLost {
        /// Whose transcript.
        session: SessionId,
        /// Why.
        why: String,
    },
    /// What each level of a trim would free.
    TrimPlanned {
        /// The number under which it was asked.
        ask: u64,
        /// The plan, or why there is none.
        plan: Result<TrimPlan, String>,
    },
    /// Everything that a reboot needs is there, or something is missing.
    Prepared {
        /// The reboot.
        reboot: uuid::Uuid,
        /// Why it cannot go ahead, if so.
        refused: Option<String>,
    },
    /// The trimmed copy of a session is there whole, or there is none.
    Trimmed {
        /// The number under which it was asked.
        ask: u64,
        /// What was removed, or why it could not be made.
        made: Result<TrimRecord, String>,
    },
    /// The client's daemon runs this session as a fork of the agent's.
    Moved {
        /// Its session.
        session: SessionId,
    },
    /// The sessions that were to be ended in the client's daemon are.
    MovedEnded {
        /// The last of them that holds the conversation. The client writes a fork's transcript with its first prompt: before,
        /// the session that it was forked from holds it.
        holds: Option<SessionId>,
        /// Which may go on, and why; none if none does.
        left: Option<String>,
    },
    /// An estimate from the pane's text.
    Estimate(Reading),
    /// What the client's arguments, environment and settings files say about its compaction.
    ClientSettings(Box<CompactionSettings>),
    /// What the client says about its limit at the end of its screen.
    ClientWords(Words),
    /// The recording of an iteration.
    Recording {
        /// Which.
        iteration: IterationId,
        /// The recording, or why there is none.
        cast: Result<Cast, String>,
    },
    /// The task of the run as its file has it now, or why that cannot be read.
    Task(Result<String, String>),
    /// The configuration files changed and are good.
    Config(Box<Config>),
    /// The transcript has been written to its end, as far as can be seen, and read.
    TranscriptRead {
        /// For which order.
        id: SummaryId,
        /// Why there is nothing to summarize.
        read: Result<(), String>,
    },
    /// A model was asked for a summary.
    Summarized {
        /// For which order.
        id: SummaryId,
        /// What came of it.
        outcome: Outcome,
    },
}

/// What the store answers.
#[derive(Clone, Debug, PartialEq)]
pub enum StoreEvent {
    /// This step of this reboot is on disk.
    Journaled {
        /// The reboot.
        reboot: uuid::Uuid,
        /// The step.
        step: Step,
    },
    /// What became of a checkpoint.
    CheckpointKept {
        /// The checkpoint.
        id: uuid::Uuid,
        /// Where it is now.
        kept: Kept,
    },
    /// What a session carries of its lineage, if the store knows of it.
    CarriedRead {
        /// The session that goes on from it.
        session: SessionId,
        /// What it carries, or why that is not known.
        found: Result<Option<Box<Carried>>, String>,
    },
    /// The project's runs before this one, newest first.
    EarlierRuns(Vec<EarlierRun>),
    /// What the store has of an iteration, or why it has nothing.
    PastRead {
        /// Its run.
        run: RunId,
        /// Its number.
        iteration: IterationId,
        /// What there is.
        found: Result<Box<PastSession>, String>,
    },
    /// Where the store has found a text, or why it could not look.
    HistoryFound {
        /// What was looked for.
        text: String,
        /// The iterations.
        found: Result<Vec<(RunId, IterationId)>, String>,
    },
    /// The store cannot be used any more, and why; `None`: it can again, and has all that waited.
    ErrorChanged(Option<String>),
}

/// Where a record is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// On disk.
    Durable,
    /// In memory, until the store can be used again, and why it cannot now.
    Waiting(String),
    /// Nowhere, and why.
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
    /// `auto` mode goes ahead.
    AutoDelay(u64),
    /// A person may answer a compaction for a while; the number says which.
    Compaction(u64),
    /// The warm-up prompt is due.
    WarmUp(u64),
    /// A summary is to be ordered, or is late.
    Summary(u64),
    /// The session may be surveyed again.
    Survey(u64),
    /// Title and prompt box have stood for a while.
    Calm(u64),
    /// The next moment of a recording is due.
    Replay(u64),
    /// No hook has reported the commit that is the head by now.
    NewHead(u64),
    /// What the autonomous run waits for.
    Run(u64),
    /// The time of the autonomous run has moved on.
    RunClock,
    /// The session in the client's daemon should have been ended by now.
    MovedEnd(u64),
    /// A notice has been shown long enough.
    Notice,
    /// A reboot is shown as it goes on, and what it has brought for a while.
    Moment,
    /// The human has not typed into the pane for the quiet time, and the footer no longer says so.
    Typing,
    /// A figure on the screen has another age.
    Age,
    /// The client has drawn what belongs to the last figure.
    ClientWords,
    /// What the session carries has changed, and is to be kept.
    KeepCarried,
    /// The scratchpad's edits are to be written.
    SaveNotes(u64),
    /// The bridge should have spoken by now.
    Bridge(IterationId),
    /// An order for the bridge should have been taken, or answered, by now.
    Order(OrderId),
}

/// A summary that was ordered. Answers to an older order are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SummaryId(pub u64);

/// A call at one of the doors that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId(pub u64);

/// Random values, drawn by the shell because the core has no randomness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewIds {
    /// The id of the next reboot.
    pub reboot: uuid::Uuid,
    /// The session that the next reboot starts.
    pub session: SessionId,
    /// The nonce of the next handoff: 8 hex digits.
    pub nonce: String,
}

/// What a transcript says, as far as we show or use it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptFacts {
    /// Tokens in the context window after the last main-chain call.
    pub used: Option<Tokens>,
    /// The model, without its window mark.
    pub model: Option<String>,
    /// Tokens sent in and got out over the whole session.
    pub totals: TokenTotals,
    /// Of those, what was before the last compaction.
    pub before_compaction: TokenTotals,
    /// Turns so far.
    pub turns: u64,
    /// Compactions so far.
    pub compactions: u64,
    /// Whether the file was read to its end, so that the counts are whole.
    pub whole: bool,
    /// Up to where the file was read, in bytes.
    pub read: u64,
    /// The name of the newest prompt that stands.
    pub prompt: Option<String>,
    /// The name of the first prompt that a rewind has taken back, told once.
    pub rewound: Option<String>,
    /// The latest prompt.
    pub last_prompt: Option<String>,
    /// The first line of the latest prompt that is a handoff.
    pub handoff: Option<String>,
    /// Lines that could not be read and were skipped.
    pub skipped: u64,
    /// Signals in what the assistant has said since the facts before these, in order.
    pub signals: Vec<Signal>,
    /// The last thing the assistant said since then.
    pub said: Option<String>,
    /// The agent's own to-do list.
    pub todos: Todos,
    /// The work at hand, if it has changed since the facts before these.
    pub work: Option<Box<WorkAtHand>>,
    /// The human's own words in this session, if there were new ones since then.
    pub human: Option<HumanWords>,
    /// The last shell commands as they would be shown, if there were new ones since then.
    pub commands: Option<Vec<String>>,
    /// The shell commands that have ended since then, in order.
    pub ran: Vec<Ran>,
    /// Calls of tools on the main chain that have no result yet, of those since we began to follow.
    pub calls_open: usize,
}

pub use crate::transcript::digest::Ran;

/// What the file system says to what a handoff names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HandoffFiles {
    /// Files that are not there, of those that were asked about.
    pub missing: Vec<String>,
    /// The files that the user wants to be named.
    pub included: Vec<IncludedFile>,
    /// Which of those could not be read, and why.
    pub warnings: Vec<String>,
}
