//! Everything the supervisor knows, in one value that one loop owns.
//!
//! The state of each feature is a type of its own in a file below this one, with the rules that need nothing else. What features
//! do with it is theirs; nothing here knows them.

pub mod activity;
pub mod bridge;
pub mod client_limits;
pub mod compactions;
pub mod copy;
pub mod costs;
pub mod daemon;
pub mod ending;
pub mod external;
pub mod happened;
pub mod heard;
pub mod history;
pub mod moments;
pub mod reading;
pub mod reboot;
pub mod requests;
pub mod run;
pub mod saying;
pub mod summaries;
pub mod tally;
pub mod todo;
pub mod tour;
pub mod trim;
pub mod unsent;
pub mod view;

use std::{collections::VecDeque, fmt};

use chrono::{DateTime, Utc};
use ratatui_textarea::{TextArea, WrapMode};

use crate::{
    agent::{Background, PromptCache, claude::prompt_box::PromptBox},
    api::wire::{AgentState, Reply},
    breakpoint::git::GitState,
    clock::At,
    config::{Config, RebootMode},
    guard::{Guard, GuardSettings},
    handoff::{Check, Generator, Handoff, Marker, PreservedState},
    keymap::Keymap,
    lineage::{
        EndReason, Iteration, IterationId, Lineage, ProcessStamp, RunId,
        checkpoint::SavedScratchpad,
    },
    pane::{replay::Replay, screen::Progress},
    scratchpad::{
        HumanLines, Parsed,
        versions::{Version, Versions},
    },
    transcript::{SessionId, Tokens, work::WorkAtHand},
};

use crate::app::event::{CallId, Ground, Lots, TranscriptFacts};

use activity::Activity;
use bridge::Bridge;
use client_limits::ClientLimits;
use compactions::Compactions;
use copy::{CopyMode, Press};
use costs::TurnCosts;
use daemon::DaemonState;
use ending::Ending;
use external::External;
use happened::Happened;
use heard::Heard;
use history::HistoryPanel;
use moments::Moments;
use reboot::Reboot;
use requests::Requests;
use run::Run;
use saying::Saying;
use summaries::Summaries;
use tally::Tally;
use todo::TodoList;
use tour::Tour;
use view::View;

/// Who we are and whom we host: what does not change while we run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Our version.
    pub version: &'static str,
    /// Our process id.
    pub pid: u32,
    /// The project directory, as shown.
    pub project: String,
    /// What checkpoints are filed under.
    pub environment: String,
    /// The kind's word: `claude`, `demo` or `generic`.
    pub agent_kind: &'static str,
    /// The command of the agent, as shown.
    pub agent_command: String,
    /// Whether the client was started with its to-do tools on.
    pub todo_tools: bool,
}

/// What we know of the agent's process and its doings.
#[derive(Clone, Debug, Default)]
pub struct AgentView {
    /// What it is doing.
    pub state: AgentState,
    /// Its process.
    pub process: Option<ProcessStamp>,
    /// Its version, from the status line.
    pub version: Option<String>,
    /// The model's name for people.
    pub model: Option<String>,
    /// The turn and the question that are open, as far as is known.
    pub activity: Activity,
    /// The prompt box as it was seen last. Its text is followed only while something waits for it.
    pub prompt_box: PromptBox,
    /// The model as the client names it to itself, with its window mark (`…[1m]`).
    pub model_id: Option<String>,
    /// Whether it shows its list of sessions (the agent view) instead of the session.
    pub listing: bool,
    /// What the last turn left going on in the background.
    pub background: Background,
    /// Whether the session has gone to the client's daemon.
    pub daemon: DaemonState,
    /// Whether it takes a paste as one piece. Without that each line of one is an Enter.
    pub takes_pastes: bool,
    /// How far it says that it is.
    pub progress: Option<Progress>,
    /// Whether it has asked for the mouse.
    pub takes_mouse: bool,
    /// When the human last typed into the pane.
    pub typed_at: Option<At>,
    /// Whether the agent's prompt may hold text that was not submitted.
    pub draft: bool,
    /// Whether the last key was a backslash, after which Enter is a new line.
    pub backslash: bool,
    /// What the session has cost, in US dollars.
    pub cost_usd: Option<f64>,
    /// The prompt cache as the status line last reported it.
    pub prompt_cache: Option<PromptCache>,
    /// Usage limits as the agent tells them, for display.
    pub limits: Vec<String>,
    /// When the usage limits that are used up begin anew.
    pub limit_reset: Option<DateTime<Utc>>,
    /// Turns that ended in this iteration.
    pub turns: u32,
    /// How the process ended, while there is none.
    pub exit: Option<String>,
    /// The last thing the assistant said.
    pub last_message: Option<String>,
    /// Whether any hook has arrived in this iteration.
    pub hooked: bool,
    /// The client's own side of the session.
    pub bridge: Bridge,
    /// Whether we have switched its auto-compaction off.
    pub holds_compaction: bool,
}

impl AgentView {
    /// Whether the agent's prompt holds text that was not submitted, as far as is known: by the screen, else by the keys.
    #[must_use]
    pub const fn has_draft(&self) -> bool {
        match self.prompt_box {
            PromptBox::Empty => false,
            PromptBox::Holds(_) => true,
            PromptBox::Absent => self.draft,
        }
    }
}

/// An editor for a whole document, with undo, selection and search.
#[derive(Clone)]
pub struct Editor {
    /// The text area.
    pub area: TextArea<'static>,
    /// The text as it was when editing began, or as last merged.
    pub base: String,
    /// The search pattern being typed, if one is.
    pub search: Option<String>,
    /// Whether something of this edit was saved.
    pub saved: bool,
}

impl Editor {
    /// Opens an editor on a text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut area = TextArea::new(text.split('\n').map(str::to_owned).collect());
        area.set_wrap_mode(WrapMode::WordOrGlyph);
        area.set_hard_tab_indent(true);
        area.set_max_histories(10_000);
        Self {
            area,
            base: text.to_owned(),
            search: None,
            saved: false,
        }
    }

    /// The text as it stands.
    #[must_use]
    pub fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    /// Replaces the text, as one step that undo takes back, and keeps the cursor on its line.
    pub fn replace(&mut self, text: &str) {
        let cursor = self.area.cursor();
        let (row, column) = (cursor.0, cursor.1);
        let line = self.area.lines().get(row).cloned().unwrap_or_default();
        let alike = text
            .split('\n')
            .enumerate()
            .filter(|(_, one)| **one == line);
        let row = alike
            .map(|(at, _)| at)
            .min_by_key(|at| at.abs_diff(row))
            .unwrap_or(row);
        let yank = self.area.yank_text();
        self.area.select_all();
        self.area.cut();
        self.area.insert_str(text);
        self.area.set_yank_text(yank);
        self.area.move_cursor(ratatui_textarea::CursorMove::Jump(
            u16::try_from(row).unwrap_or(u16::MAX),
            u16::try_from(column).unwrap_or(u16::MAX),
        ));
        text.clone_into(&mut self.base);
    }
}

impl fmt::Debug for Editor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Editor")
            .field("cursor", &self.area.cursor())
            .finish_non_exhaustive()
    }
}

/// The scratchpad panel.
#[derive(Clone, Debug, Default)]
pub struct NotesPanel {
    /// The notes that are in force.
    pub text: String,
    /// What they say, as of the last draft of the handoff.
    pub parsed: Parsed,
    /// The text that was read for it.
    read: String,
    /// What stands in the file as far as we know: something else while a change is not saved.
    pub disk: String,
    /// Why the last change could not be saved, while that is so.
    pub unsaved: Option<String>,
    /// The editor, while the human edits in place.
    pub editor: Option<Editor>,
    /// The first line shown.
    pub scroll: u16,
    /// When the agent last changed it.
    pub changed_at: Option<At>,
    /// The lines that a person wrote.
    pub human: HumanLines,
    /// What the agent wrote last, or was given at its start: its next text is a change of this one.
    pub agent_base: String,
    /// Whether the change that is read next is the agent's.
    pub agent_wrote: bool,
    /// The last change of the file of which nobody told who made it: it counts as a person's.
    pub foreign: Option<Foreign>,
    /// What it was before.
    pub versions: Versions,
    /// The scratchpad of a checkpoint that is restored, until it is known which lines of the present one are a person's.
    pub restored: Option<SavedScratchpad>,
    /// The version that a person looks at, counted from the newest.
    pub looking: Option<usize>,
}

impl NotesPanel {
    /// A panel of these notes, which stand in the file.
    fn of(notes: String) -> Self {
        Self {
            disk: notes.clone(),
            agent_base: notes.clone(),
            text: notes,
            ..Self::default()
        }
    }

    /// Reads the notes, unless they are as they were.
    pub fn read(&mut self) {
        if self.read != self.text {
            self.parsed = Parsed::read(&self.text);
            self.text.clone_into(&mut self.read);
        }
    }

    /// The version that a person looks at.
    #[must_use]
    pub fn looked_at(&self) -> Option<&Version> {
        self.versions.iter().nth_back(self.looking?)
    }
}

/// A change of the scratchpad's file that was taken for a person's, as it can be taken back when the agent's hook comes.
#[derive(Clone, Debug)]
pub struct Foreign {
    /// The notes before it.
    pub before: String,
    /// The person's lines before it.
    pub human: HumanLines,
}

/// The handoff panel.
#[derive(Clone, Debug)]
pub struct HandoffPanel {
    /// The message as generated from what is known.
    pub generated: Handoff,
    /// The message in the human's own words, once edited.
    pub edited: Option<Handoff>,
    /// The editor, while the human edits in place.
    pub editor: Option<Editor>,
    /// The first line shown.
    pub scroll: u16,
    /// What the message does not say of the session.
    pub check: Check,
    /// Whether that is listed in place of the message.
    pub lists_missing: bool,
}

impl HandoffPanel {
    /// A panel of a message that says nothing yet.
    fn empty(marker: Marker) -> Self {
        Self {
            generated: Handoff {
                text: marker.to_string(),
                marker,
                left_out: Vec::new(),
                warnings: Vec::new(),
            },
            edited: None,
            editor: None,
            scroll: 0,
            check: Check::default(),
            lists_missing: false,
        }
    }

    /// The message as it would be sent now.
    #[must_use]
    pub fn current(&self) -> &Handoff {
        self.edited.as_ref().unwrap_or(&self.generated)
    }
}

/// What has the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Focus {
    /// The hosted program.
    #[default]
    Pane,
    /// The scratchpad panel.
    Scratchpad,
    /// The handoff panel.
    Handoff,
    /// The history panel.
    History,
}

impl Focus {
    /// In the order in which the focus moves.
    pub const ALL: [Self; 4] = [Self::Pane, Self::Scratchpad, Self::Handoff, Self::History];
}

/// What lies over everything and has the keys until it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlay {
    /// Every key in force.
    Help {
        /// The first line shown.
        scroll: u16,
    },
    /// The handoff before it is sent. Only a person at the keyboard opens it: its letters decide, and must not be those of a
    /// prompt that is being typed.
    Review,
    /// The recording of an iteration.
    Replay {
        /// Which.
        iteration: IterationId,
    },
    /// What was said in the footer, with times.
    Messages {
        /// How many rows are scrolled.
        scroll: u16,
    },
    /// How the context has filled, turn by turn.
    Chart,
    /// Whether to quit while a turn runs.
    Quit,
    /// The agent's process is gone: what now?
    Exited,
}

/// A line in the footer for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What it says.
    pub text: String,
    /// Whether something went wrong.
    pub bad: bool,
    /// Since when it is shown.
    pub at: At,
}

/// How far quitting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quitting {
    /// The exit code to leave with.
    pub code: i32,
    /// Why the last iteration ends, in the words of its record.
    pub reason: EndReason,
}

/// Everything the supervisor knows.
#[derive(Debug)]
pub struct Model {
    /// Who we are.
    pub identity: Identity,
    /// What the user set.
    pub config: Config,
    /// Who decides when to reboot.
    pub mode: RebootMode,
    /// Whether reboots by themselves are paused.
    pub paused: bool,
    /// The autonomous run, if this is one.
    pub autopilot: Option<Run>,
    /// The agent.
    pub agent: AgentView,
    /// The chain of iterations.
    pub lineage: Lineage,
    /// The number of the present iteration.
    pub iteration: IterationId,
    /// The session that the agent is in.
    pub session: SessionId,
    /// Context usage.
    pub guard: Guard,
    /// Where the client itself acts.
    pub client: ClientLimits,
    /// What the last turns have cost.
    pub costs: TurnCosts,
    /// Compactions of the client's own in this iteration.
    pub compactions: Compactions,
    /// What the transcript says.
    pub transcript: TranscriptFacts,
    /// Whether the transcript was there and cannot be read any more.
    pub transcript_lost: bool,
    /// Git.
    pub git: GitState,
    /// The files that the handoff names and includes.
    pub ground: Ground,
    /// The last shell commands, as the handoff tells them.
    pub commands: String,
    /// The agent's own to-do list.
    pub todo: TodoList,
    /// Which signals were heard from where.
    pub heard: Heard,
    /// The human's first and latest request.
    pub requests: Requests,
    /// The work at hand, as the transcript shows it.
    pub work: WorkAtHand,
    /// What the agent's signals said in this run.
    pub told: PreservedState,
    /// The preserved facts as of the last drafting.
    pub preserved: PreservedState,
    /// The scratchpad panel.
    pub notes: NotesPanel,
    /// The handoff panel.
    pub handoff: HandoffPanel,
    /// The history panel.
    pub history: HistoryPanel,
    /// What has the keys.
    pub focus: Focus,
    /// Whether the pane has the whole screen.
    pub zoomed: bool,
    /// What lies over everything.
    pub overlay: Option<Overlay>,
    /// Whether the prefix was just pressed.
    pub prefixed: bool,
    /// Copy mode, while the pane is read and not lived in.
    pub copy: Option<CopyMode>,
    /// The recording that is played.
    pub replay: Option<Replay>,
    /// The epoch of the timer that plays it.
    pub replay_epoch: u64,
    /// When the agent last called for a person, as far as that was passed on.
    pub called_at: Option<At>,
    /// The last press of the mouse on the pane's text.
    pub press: Option<Press>,
    /// Where the link goes that the pointer stands on, if it does: a target that is passed on.
    pub hovered: Option<String>,
    /// The guided tour, in the demo.
    pub tour: Option<Tour>,
    /// The pane's title, as the agent set it.
    pub title: String,
    /// The host terminal's size, in cells: columns, rows.
    pub host: (u16, u16),
    /// Whether the host terminal has the focus, once it has said so.
    pub host_focused: Option<bool>,
    /// The document that is in `$EDITOR`, while that has the host terminal.
    pub external: Option<External>,
    /// A paste that is coming in for one of our editors.
    pub pasting: Vec<u8>,
    /// Lines for the footer, newest last.
    pub notices: VecDeque<Notice>,
    /// What a person looks at: the message log, help's search, the width of the panels.
    pub view: View,
    /// The reboot under way, if any.
    pub reboot: Reboot,
    /// The summary of the session.
    pub summary: Summaries,
    /// Random values for the next reboot.
    pub lots: Lots,
    /// Commits and test runs, and whether now is a good moment.
    pub moments: Moments,
    /// What is counted for monitoring.
    pub tally: Tally,
    /// How far ending the agent is, if it is being ended.
    pub ending: Option<Ending>,
    /// Whether we are leaving.
    pub quitting: Option<Quitting>,
    /// What lives on after quitting, a line each, for the shell.
    pub left_running: Vec<String>,
    /// Makes handoffs.
    pub generator: Generator,
    /// Checkpoints on their way to disk that somebody waits for, with what to answer.
    pub saves: Vec<(uuid::Uuid, CallId, Reply)>,
    /// Why the store cannot be used and history is kept in memory, while that is so.
    pub store_trouble: Option<String>,
    /// Which of the supervisor's own places are gone and cannot be made again, and why.
    pub places_missing: Option<String>,
    /// The unsent prompt of the session before, until it stands in this one's prompt box.
    pub unsent: Option<String>,
    /// What we typed last to be submitted, and when that began.
    pub said: Option<(String, At)>,
    /// The prompt that we type for somebody, until it is taken.
    pub saying: Option<Saying>,
    /// The epoch of the timer that waits for a calm title to stay.
    pub calm_epoch: u64,
    /// The epoch of the timer that writes the scratchpad.
    pub save_epoch: u64,
    /// What the event at hand has brought.
    pub happened: Happened,
    /// The moment of the last event, for views that show ages.
    pub now: At,
    epoch: u64,
}

/// What a model begins with.
#[derive(Debug)]
pub struct Beginning {
    /// Who we are.
    pub identity: Identity,
    /// What the user set.
    pub config: Config,
    /// The run's iterations so far: empty for a new run.
    pub lineage: Lineage,
    /// The session of the first agent.
    pub session: SessionId,
    /// Random values.
    pub lots: Lots,
    /// The scratchpad on disk.
    pub notes: String,
    /// The handoff template.
    pub generator: Generator,
    /// The host terminal's size, in cells: columns, rows.
    pub host: (u16, u16),
    /// The moment it begins.
    pub now: At,
}

impl Model {
    /// A supervisor that has not started its agent yet, and has drafted nothing.
    #[must_use]
    pub fn new(beginning: Beginning) -> Self {
        let last = beginning.lineage.iterations().last();
        let iteration = last.map_or(IterationId::FIRST, |last| last.iteration.next());
        let handoff = HandoffPanel::empty(Marker {
            run: beginning.lineage.run().to_string(),
            iteration: 1,
            nonce: beginning.lots.nonce.clone(),
        });
        Self {
            mode: beginning.config.reboot.mode,
            guard: Guard::new(GuardSettings::default()),
            identity: beginning.identity,
            config: beginning.config,
            paused: false,
            autopilot: None,
            agent: AgentView::default(),
            lineage: beginning.lineage,
            iteration,
            session: beginning.session,
            client: ClientLimits::default(),
            costs: TurnCosts::default(),
            compactions: Compactions::default(),
            transcript: TranscriptFacts::default(),
            transcript_lost: false,
            git: GitState::NoRepository,
            ground: Ground::default(),
            commands: String::new(),
            todo: TodoList::default(),
            heard: Heard::default(),
            requests: Requests::default(),
            work: WorkAtHand::default(),
            told: PreservedState::default(),
            preserved: PreservedState::default(),
            notes: NotesPanel::of(beginning.notes),
            handoff,
            history: HistoryPanel::default(),
            focus: Focus::default(),
            zoomed: false,
            overlay: None,
            prefixed: false,
            copy: None,
            replay: None,
            replay_epoch: 0,
            called_at: None,
            press: None,
            hovered: None,
            tour: None,
            title: String::new(),
            host: beginning.host,
            host_focused: None,
            external: None,
            pasting: Vec::new(),
            notices: VecDeque::new(),
            view: View::default(),
            reboot: Reboot::default(),
            summary: Summaries::default(),
            lots: beginning.lots,
            moments: Moments::default(),
            tally: Tally::default(),
            ending: None,
            quitting: None,
            left_running: Vec::new(),
            generator: beginning.generator,
            saves: Vec::new(),
            store_trouble: None,
            places_missing: None,
            unsent: None,
            said: None,
            saying: None,
            calm_epoch: 0,
            save_epoch: 0,
            happened: Happened::default(),
            now: beginning.now,
            epoch: 0,
        }
    }

    /// The keys in force.
    #[must_use]
    pub const fn keys(&self) -> &Keymap {
        &self.config.keys
    }

    /// A number that no timer has had yet.
    pub const fn next_epoch(&mut self) -> u64 {
        self.epoch += 1;
        self.epoch
    }

    /// The record of the present iteration.
    #[must_use]
    pub fn current_iteration(&self) -> Option<&Iteration> {
        self.lineage.current()
    }

    /// Whether it hosts some other program than Claude Code or the demo: one of which no hooks, prompt box or transcript are known.
    #[must_use]
    pub fn is_generic(&self) -> bool {
        self.identity.agent_kind == "generic"
    }

    /// The run's name.
    #[must_use]
    pub const fn run(&self) -> &RunId {
        self.lineage.run()
    }

    /// Tokens in use, by the best source.
    #[must_use]
    pub fn used(&self) -> Option<Tokens> {
        self.guard.figure(self.now).map(|figure| figure.used)
    }

    /// Says something in the footer.
    pub fn notice(&mut self, text: impl Into<String>) {
        self.say(text.into(), false);
    }

    /// Tells of trouble in the footer.
    pub fn trouble(&mut self, text: impl Into<String>) {
        let text = text.into();
        // The footer forgets it after a few seconds.
        tracing::warn!(trouble = %crate::clean::one_line(&text));
        self.say(text, true);
    }

    fn say(&mut self, text: String, bad: bool) {
        let at = self.now;
        self.view.log(&text, bad, at.wall);
        // The same words again only renew the notice.
        self.notices.retain(|notice| notice.text != text);
        self.notices.push_back(Notice { text, bad, at });
        if self.notices.len() > 50 {
            self.notices.pop_front();
        }
    }
}
