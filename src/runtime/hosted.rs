//! The hosted agent: its process, its screen, and the facts that are read from the screen.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use pitstop_agent::claude::prompt_box::{PromptBox, Row};
use pitstop_base::{
    clean::chain,
    process::{self, Member},
};
use pitstop_core::{
    app::{
        Event,
        event::{Exit, PaneEvent, ReadEvent},
        facts,
    },
    config::UiConfig,
    guard::pane_text::PaneText,
    lineage::IterationId,
};
use pitstop_terminal::{
    PaneSize,
    pane::{
        pty::{self, PaneExit, Pty, PtyEvent, PtyMessage},
        recording::{Recording, RecordingError},
    },
    screen::{DrawnRow, Screen},
};
use pitstop_transcript::Tokens;

use super::{
    Deadline, Shell, leaving::Remains, listen::Listening, resizing::Resizing, store_writer::Job,
};

/// The number of bytes that may be typed for an agent that is about to start.
const TYPED_AHEAD: usize = 64 * 1024;

/// The time between two estimates from the pane's text, where nothing better is known.
const ESTIMATE_TIME: Duration = Duration::from_secs(1);

/// The time after output at which the agent's prompt box is read from its screen: at most this often.
const PROMPT_BOX_TIME: Duration = Duration::from_millis(50);

/// The time that processes of an agent may outlive it without a message: its last hooks end by themselves.
const OUTLIVING_TIME: Duration = Duration::from_secs(1);

/// The number of lines of the pane that are searched for an estimate: as many as an agent prints within a second.
const ESTIMATE_LINES: usize = 500;

/// The time between two looks at an agent that may suspend itself.
const SUSPENSION_TIME: Duration = Duration::from_millis(100);

/// The number of these looks.
const SUSPENSION_LOOKS: u8 = 10;

/// The state of the pane.
pub(super) struct Hosted {
    pub screen: Screen,
    /// The transcript that is read in the place of the screen.
    pub transcript: Option<Box<Screen>>,
    pub pty: Option<Pty>,
    /// The channel for messages of the process and its output.
    pub messages: mpsc::Sender<PtyMessage>,
    /// The agent that is about to start.
    pub starting: Option<Starting>,
    pub recording: Option<(Instant, Recording)>,
    /// The sizes of the pane that the child has not been sent yet.
    pub resizing: Resizing,
    /// True if the child has refused a part of the paste that is coming in.
    pub paste_cut: bool,
    /// The text that is looked for on the screen.
    pub watch_for: Option<String>,
    /// The processes that ended agents have left running.
    pub remains: Remains,
    /// The processes that the last agent left when it ended, until they are looked at.
    pub outliving: Vec<Member>,
    pub listening: Listening,
    /// The text that the pane has shown, for the estimate.
    pub shown: PaneText,
    /// True if the model asked for its content, even if that is nothing new.
    pub prompt_box_asked: bool,
    /// The looks that are due because the agent was sent a key that may suspend it.
    pub suspending: Option<Suspending>,
    /// True if the agent has suspended itself and has not been seen to take its terminal again.
    pub given_back: bool,
}

/// The looks at an agent that may suspend itself.
pub(super) struct Suspending {
    /// The number of looks that are left.
    looks: u8,
    /// True if the agent had given its terminal back at the last look.
    given_back: bool,
}

impl Hosted {
    /// Creates the state of a pane in which nothing runs yet.
    pub fn new(screen: Screen, messages: mpsc::Sender<PtyMessage>) -> Self {
        Self {
            screen,
            transcript: None,
            pty: None,
            messages,
            starting: None,
            recording: None,
            resizing: Resizing::default(),
            paste_cut: false,
            watch_for: None,
            remains: Remains::default(),
            outliving: Vec::new(),
            listening: Listening::default(),
            shown: PaneText::default(),
            prompt_box_asked: false,
            suspending: None,
            given_back: false,
        }
    }

    /// Returns the screen that is seen: the agent's, or the transcript that is read.
    pub fn seen(&self) -> &Screen {
        self.transcript.as_deref().unwrap_or(&self.screen)
    }
}

/// An agent that is about to start: its files are being written.
pub(super) struct Starting {
    pub iteration: IterationId,
    /// The bytes that are typed for it meanwhile.
    pub typed: Vec<u8>,
}

/// Creates an empty screen with the user's settings.
pub(super) fn new_screen(size: PaneSize, ui: &UiConfig) -> Screen {
    let mut screen = Screen::new(size, ui.scrollback_lines);
    screen.set_keeps_scrollback(ui.keep_scrollback);
    screen
}

impl Shell {
    /// Handles a message of the pane's process or its output.
    pub(super) fn pane_message(&mut self, message: PtyMessage) {
        let PtyMessage { iteration, event } = message;
        let current = iteration == self.core.view().session.pane().get();
        match event {
            PtyEvent::Output(bytes) if current => self.output(&bytes),
            PtyEvent::Stopped(_) if current => self.agent_suspended(),
            PtyEvent::Continued if current => self.post(Event::Pane(PaneEvent::Continued)),
            PtyEvent::Exited(exit) if current => self.exited(exit),
            PtyEvent::Output(_)
            | PtyEvent::OutputEnded
            | PtyEvent::Stopped(_)
            | PtyEvent::Continued
            | PtyEvent::Exited(_) => {}
        }
    }

    /// Expects that the agent may suspend itself for the key that it is sent.
    pub(super) fn expect_suspension(&mut self) {
        if self.pane.pty.as_ref().is_some_and(|pty| !pty.edits_lines()) {
            self.pane.suspending = Some(Suspending {
                looks: SUSPENSION_LOOKS,
                given_back: false,
            });
            self.set_deadline(Deadline::Suspension, SUSPENSION_TIME);
        }
    }

    /// Looks whether the agent has given its terminal back. The system does not stop it: it leads its session and its parent is in
    /// another one, so the signal that it sends itself is discarded, and it waits for a shell.
    pub(super) fn look_for_suspension(&mut self) {
        let Some(mut suspending) = self.pane.suspending.take() else {
            return;
        };
        let given_back = self.pane.pty.as_ref().is_some_and(Pty::edits_lines);
        // A shell in the pane takes the terminal from its job for a moment.
        if given_back && suspending.given_back {
            self.pane.given_back = true;
            return self.agent_suspended();
        }
        suspending.looks -= 1;
        suspending.given_back = given_back;
        if suspending.looks > 0 {
            self.pane.suspending = Some(suspending);
            self.set_deadline(Deadline::Suspension, SUSPENSION_TIME);
        }
    }

    /// Has a person continue the agent where one is there who could, and else continues it: no other process would.
    fn agent_suspended(&mut self) {
        let unattended = facts::is_unattended(self.core.view());
        if unattended || self.terminals.active().is_none() {
            tracing::warn!("the agent was suspended and is continued");
            return self.continue_agent();
        }
        self.post(Event::Pane(PaneEvent::Suspended));
    }

    /// Continues the agent, if it is stopped.
    pub(super) fn continue_agent(&self) {
        if let Some(pty) = &self.pane.pty {
            let _ = pty.signal(pty::Signal::CONT);
        }
    }

    pub(super) fn exited(&mut self, exit: PaneExit) {
        self.pane.screen.reset();
        self.end_recording();
        let pty = self.pane.pty.take();
        let left = pty.map(|pty| leftovers(&pty)).unwrap_or_default();
        if let Some(process) = self.core.view().session.agent.process.clone() {
            if !left.is_empty() {
                self.pane.remains.of(process.clone());
            }
            self.keep(Job::AgentGone(process));
        }
        self.pane.outliving = left;
        self.set_deadline(Deadline::Outliving, OUTLIVING_TIME);
        let exit = match (exit.code, exit.signal) {
            (_, Some(signal)) => Exit::Signal(signal.to_string()),
            (code, None) => Exit::Code(code.and_then(|code| u32::try_from(code).ok()).unwrap_or(1)),
        };
        let iteration = self.core.view().session.pane();
        self.post(Event::Pane(PaneEvent::Exited { iteration, exit }));
    }

    /// Reports the processes that the agent that ended last has left and that still live.
    pub(super) fn look_at_outliving(&mut self) {
        let left = std::mem::take(&mut self.pane.outliving).into_iter();
        let processes: Vec<String> = left
            .filter(|member| process::alive(&member.stamp))
            .map(|member| format!("{} {}", member.stamp.pid, member.name))
            .collect();
        if !processes.is_empty() {
            self.post(Event::Pane(PaneEvent::LeftoversFound { processes }));
        }
    }

    pub(super) fn output(&mut self, bytes: &[u8]) {
        self.pane.screen.feed(bytes, Instant::now());
        if let Some((begun, recording)) = &mut self.pane.recording
            && let Err(error) = recording.output(begun.elapsed(), bytes)
        {
            recording_failed(&error);
        }
        self.after_feed();
        self.listen();
        if self.pane.given_back && self.pane.pty.as_ref().is_some_and(|pty| !pty.edits_lines()) {
            self.pane.given_back = false;
            self.post(Event::Pane(PaneEvent::Continued));
        }
        if self.agent.kind.reports() {
            self.add_deadline(Deadline::PromptBox, PROMPT_BOX_TIME);
        }
        if self.wants_estimate() {
            self.add_deadline(Deadline::Estimate, ESTIMATE_TIME);
        }
    }

    /// Handles the emulator's replies and facts after bytes or at the end of a frame's time.
    pub(super) fn after_feed(&mut self) {
        for reply in self.pane.screen.take_replies() {
            self.write_pane(reply);
        }
        for fact in self.pane.screen.take_facts() {
            self.screen_fact(fact);
        }
        let pastes = self.pane.screen.modes().bracketed_paste;
        if pastes != self.core.view().session.agent.takes_pastes {
            self.post(Event::Pane(PaneEvent::PasteModeSet { on: pastes }));
        }
        let mouse = self.pane.screen.modes().mouse != pitstop_terminal::MouseTracking::None;
        if mouse != self.core.view().session.agent.takes_mouse {
            self.post(Event::Pane(PaneEvent::MouseModeSet { on: mouse }));
        }
        let full = self.pane.screen.modes().alternate_screen;
        if full != self.core.view().session.agent.full_screen {
            self.post(Event::Pane(PaneEvent::FullScreenSet { on: full }));
        }
        if let Some(text) = &self.pane.watch_for
            && self.pane.screen.tail_text(200).contains(text.as_str())
        {
            self.pane.watch_for = None;
            self.post(Event::Pane(PaneEvent::MarkerSeen));
        }
    }

    /// Writes to the child; a child that does not read is reported, not waited for. Returns false if it was refused.
    pub(super) fn write_pane(&mut self, bytes: Vec<u8>) -> bool {
        let refused = match (&self.pane.pty, &mut self.pane.starting) {
            (Some(pty), _) => pty.try_write(bytes).is_err(),
            (None, Some(starting)) if starting.typed.len() + bytes.len() <= TYPED_AHEAD => {
                starting.typed.extend(bytes);
                false
            }
            (None, Some(_)) => true,
            (None, None) => false,
        };
        if refused {
            self.post(Event::Pane(PaneEvent::InputRefused));
        }
        !refused
    }

    /// Reads the agent's prompt box from its screen. Where the client's own side reports the text of the box, it is followed here only
    /// while something waits for it, because a person who types there changes it with each key.
    pub(super) fn look_at_prompt_box(&mut self) {
        let Some(text) = self.pane.screen.drawn_text() else {
            self.set_deadline(Deadline::PromptBox, PROMPT_BOX_TIME);
            return;
        };
        let rows: Vec<Row> = text
            .rows
            .into_iter()
            .map(|DrawnRow { text, solid }| Row { text, solid })
            .collect();
        let seen = PromptBox::read(&rows, text.cursor);
        let known = &self.core.view().session.agent.prompt_box;
        let asked = std::mem::take(&mut self.pane.prompt_box_asked);
        let model = self.core.view();
        let session = &model.session;
        let waits = session.submission.is_open() || model.reboot.attempt.is_some();
        let follows = waits || session.agent.bridge.of(session.id).is_none();
        let alike = std::mem::discriminant(&seen) == std::mem::discriminant(known)
            && seen.is_for_shell() == known.is_for_shell();
        if asked || (seen != *known && (follows || !alike)) {
            self.post(Event::Pane(PaneEvent::PromptBoxSeen(seen)));
            if waits || asked || !alike {
                self.transcript_grown();
            }
        }
    }

    /// Reports whether nothing better than an estimate is possible: for a program that reports nothing, or one whose transcript is
    /// gone. For a client that has not spoken yet, having no figure is more accurate than one from the few words on its screen.
    pub(super) fn wants_estimate(&self) -> bool {
        !self.agent.kind.reports() || self.core.view().session.is_transcript_lost()
    }

    /// Estimates usage from the pane's text, where nothing better is known.
    pub(super) fn estimate(&mut self) {
        if !self.wants_estimate() {
            return;
        }
        self.pane
            .shown
            .look(&self.pane.screen.settled_text(ESTIMATE_LINES));
        let used: Tokens = pitstop_core::guard::reading::estimate(self.pane.shown.characters());
        let at = self.at();
        let source = pitstop_core::guard::Source::Estimate;
        let reading = pitstop_core::guard::Reading {
            used,
            window: None,
            source,
            at,
        };
        self.post(Event::Read(ReadEvent::Estimate(reading)));
    }
}

pub(super) fn recording_failed(error: &RecordingError) {
    tracing::warn!(error = chain(error), "the pane is not recorded any more");
}

/// Returns the processes of an ended agent that are still there, and releases the agent's own process number.
fn leftovers(pty: &Pty) -> Vec<Member> {
    let pid = pty.pid();
    let mut members = process::members_of_session(pid);
    members.retain(|member| member.stamp.pid != pid);
    pty.release();
    members
}
