//! The imperative shell: one loop that waits, drains, updates, runs effects and draws.
//!
//! ```text
//!   signals ─┐
//!   keys    ─┤   in this order of urgency       ┌─► effects ──► the world, whose answers are events
//!   answers ─┼─► loop ─► core.update()     ────┤
//!   calls   ─┤             │                    └─► (nothing)
//!   bytes   ─┤             ▼
//!   timers  ─┘          draw once, if anything changed and the last frame is out
//! ```
//!
//! Everything that could block is on a thread or task of its own behind a bounded channel: reading the pane
//! never waits for drawing, and a flood from the child fills its channel and slows the child, not the keys.

#![allow(
    clippy::disallowed_methods,
    reason = "the shell is where time and ids come from"
)]

pub mod agent;
pub mod canvas;
pub mod client_settings;
pub mod clipboard;
mod daemon;
mod editor;
pub mod effects;
mod files;
pub mod follower;
pub mod front;
pub mod ground;
pub mod host;
mod hover;
pub mod keeper;
mod leaving;
pub mod listen;
pub mod outward;
pub mod paint;
pub mod places;
pub mod prepare;
pub mod recovery;
pub mod resizing;
pub mod summary;
pub mod task;
pub mod trim;
pub mod watcher;
pub mod worker;

use std::{
    collections::{HashMap, VecDeque},
    io,
    path::PathBuf,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant, SystemTime},
};

use chrono::{DateTime, Utc};
use ratatui::layout::Rect;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{mpsc, oneshot},
};

use crate::{
    agent::{
        AgentEvent,
        claude::prompt_box::{PromptBox, Row},
        parse_hook, parse_status_line,
    },
    api::{
        Call, Feed,
        wire::{News, NewsKind, Reply, Request},
    },
    app::{
        self, Core, Effect, Event, Model, compaction,
        event::{CallId, Exit, HostEvent, PaneEvent, ReadEvent, TimerId},
        layout::{Layout, layout},
        news::Glimpse,
        report, tally,
    },
    clock::At,
    config::load::{Flags, paths::Paths},
    guard::pane_text::PaneText,
    lineage::{IterationId, process::ignores},
    pane::{
        input::{Decoder, HostInput, HostReply},
        pty::{self, PaneExit, Pty, PtyMessage, PtyNews},
        recording::Recording,
        screen::{CursorShape, DrawnRow, Screen},
    },
    transcript::{SessionId, Tokens},
    ui::{Depth, Theme, pane},
};

use agent::AgentPlan;
use canvas::Canvas;
use files::{Files, Order, StartReady};
use follower::Poke;
use front::{Front, Speech};
use host::{HostBytes, HostKeys};
use hover::Pointer;
use keeper::Job;
use listen::Listening;
use outward::Outward;
use paint::Abilities;
use resizing::Resizing;
use summary::SideProcesses;
use watcher::Watcher;
use worker::Worker;

/// The shortest time between two frames: 60 a second.
const FRAME_TIME: Duration = Duration::from_millis(16);

/// For how long after a key what the child writes is drawn without waiting for a frame's time: its echo is among it,
/// under a flood or in a stream of frames too.
const ECHO_TIME: Duration = Duration::from_millis(20);

/// The shortest time between two drawings in the [`ECHO_TIME`].
const ECHO_FRAME_TIME: Duration = Duration::from_micros(500);

/// How long a lone Escape may be the beginning of a longer key.
const ESCAPE_TIME: Duration = Duration::from_millis(25);

/// How many answers may wait for the loop.
pub const ANSWERS_IN_FLIGHT: usize = 256;

/// How long a changed configuration must rest before it is read: an editor that cuts the file short first would
/// else have its empty half-way state taken for a wish for the defaults.
const CONFIG_SETTLE: Duration = Duration::from_millis(150);

/// How often the pane's text is taken for an estimate, where nothing better is known.
const ESTIMATE_TIME: Duration = Duration::from_secs(1);

/// How long after output the agent's prompt box is read off its screen: at most so often.
const PROMPT_BOX_TIME: Duration = Duration::from_millis(50);

/// How many lines of the pane are looked through for it: what an agent says within a second.
const ESTIMATE_LINES: usize = 500;

/// How long the scratchpad must have stayed as it is before it is read: many programs write a file in place,
/// and between the cut and the text it is empty, which an open editor would merge as a deletion of everything.
const NOTES_SETTLE: Duration = Duration::from_millis(60);

/// How much may be typed for an agent that is about to start, in bytes.
const TYPED_AHEAD: usize = 64 * 1024;

/// What the loop is started with.
#[derive(Debug)]
pub struct Setup {
    /// The model.
    pub model: Model,
    /// What to do first.
    pub first: Vec<Effect>,
    /// How agents are started.
    pub agent: AgentPlan,
    /// The owner of everything kept.
    pub keeper: mpsc::Sender<Job>,
    /// Answers from tasks.
    pub answers: (mpsc::Sender<Event>, mpsc::Receiver<Event>),
    /// What reaches us through the doors.
    pub calls: mpsc::Receiver<Call>,
    /// Where those hear of what happens who listen at a door.
    pub feed: Feed,
    /// Where things lie.
    pub paths: Paths,
    /// What the command line says about the configuration, for reloads.
    pub flags: Flags,
    /// The colours that the host terminal can show.
    pub depth: Depth,
    /// What else it can do.
    pub abilities: Abilities,
    /// The signals, listened for since before there was anything to end.
    pub signals: Signals,
    /// How it speaks where there is no terminal; `None` where there is one.
    pub speech: Option<Speech>,
    /// The file that holds the run's task, if it is one.
    pub task: Option<PathBuf>,
}

/// The loop's own state, and the core that it feeds.
pub struct Shell {
    pub(crate) core: Core,
    pub(crate) screen: Screen,
    pub(crate) pty: Option<Pty>,
    pub(crate) agent: Arc<AgentPlan>,
    pub(crate) keeper: mpsc::Sender<Job>,
    pub(crate) events: mpsc::Sender<Event>,
    /// Events that the core has not seen yet, in order.
    queue: VecDeque<Event>,
    /// The queue is being emptied: what comes in waits its turn.
    draining: bool,
    pub(crate) follower: Worker<Poke>,
    pub(crate) transcript: Option<PathBuf>,
    /// The session that was started last, and how much of its transcript was there before, in bytes.
    pub(crate) begun: Option<(SessionId, u64)>,
    pub(crate) listening: Listening,
    pub(crate) trimmer: Worker<trim::Ask>,
    pub(crate) watcher: Watcher,
    pub(crate) paths: Paths,
    /// All disk work of the loop's own.
    files: Files,
    /// The core knows the versions of the scratchpad that are on disk.
    versions_known: bool,
    /// The agent that is about to start.
    starting: Option<Starting>,
    pub(crate) front: Front,
    /// The file that holds the run's task.
    pub(crate) task: Option<PathBuf>,
    pub(crate) pane_messages: mpsc::Sender<PtyMessage>,
    pub(crate) feed: Feed,
    pub(crate) calls_open: HashMap<CallId, oneshot::Sender<Reply>>,
    pub(crate) timers: HashMap<TimerId, Instant>,
    pub(crate) git_running: bool,
    pub(crate) git_asked: bool,
    pub(crate) palette: crate::pane::HostPalette,
    pub(crate) scheme: Option<crate::pane::ColourScheme>,
    pub(crate) watch_for: Option<String>,
    /// The exit code, and how long at most what is to be written first may take.
    quit: Option<(i32, Instant)>,
    /// The child has refused a part of the paste that is coming in.
    pub(crate) paste_cut: bool,
    /// The sizes of the pane that the child has not been told yet.
    pub(crate) resizing: Resizing,
    /// The host terminal's window is what changes the pane's size just now.
    pub(crate) window_resizes: bool,
    /// What goes to the host terminal beside the cells.
    pub(crate) outward: Outward,
    pointer: Pointer,
    pub(crate) recording: Option<(Instant, Recording)>,
    pub(crate) summaries: SideProcesses,
    remains: leaving::Remains,
    editing: Option<editor::Editing>,
    depth: Depth,
    theme: Theme,
    hostname: String,
    canvas: Canvas,
    /// Where everything was at the last whole frame.
    drawn_layout: Option<Layout>,
    decoder: Decoder,
    escape_due: Option<Instant>,
    host_keys: HostKeys,
    host_synchronizes: bool,
    cursor_shape: Option<u8>,
    started: Instant,
    dirty: bool,
    /// When what an input to the pane has changed in the model (a draft, a check in the footer) is drawn at the
    /// latest. Its echo is about to come, and a frame before it would keep the echo waiting for [`FRAME_TIME`].
    typed_due: Option<Instant>,
    /// Until when the echo of what was typed last is awaited.
    echo_until: Option<Instant>,
    drawn_revision: u64,
    drawn_at: Option<Instant>,
    next_call: u64,
    estimate_due: Option<Instant>,
    /// When the prompt box is looked at.
    prompt_box_due: Option<Instant>,
    /// Whether the model asked for what it holds, even if that is nothing new.
    prompt_box_asked: bool,
    config_due: Option<Instant>,
    notes_due: Option<Instant>,
    /// What the pane has shown, for the estimate.
    shown: PaneText,
}

/// An agent that is about to start: what it needs is being written.
struct Starting {
    iteration: IterationId,
    /// What is typed for it meanwhile.
    typed: Vec<u8>,
}

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    /// The rows of the pane that the child has changed.
    Pane,
    /// Everything.
    Whole,
}

/// What woke the loop.
enum Woken {
    Signal(&'static str),
    Resized,
    Suspend,
    Host(HostBytes),
    Written,
    Answer(Event),
    /// What the next agent needs is on disk.
    StartReady(Box<StartReady>),
    /// The disk has taken what it was given.
    Kept,
    Call(Call),
    Pane(PtyMessage),
    Changed(PathBuf),
    Timer,
}

/// The signals that we answer.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    hangup: Option<Signal>,
    interrupt: Signal,
    winch: Signal,
    stop: Signal,
    /// Those that nobody sends to have us end in order, but that would end us all the same, with the terminal in disorder.
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

    async fn next(&mut self) -> Woken {
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

/// Runs the supervisor until it is told to leave; returns the exit code and the model as it was last.
pub async fn run(setup: Setup) -> io::Result<(i32, Model)> {
    let (pane_messages, mut pane) = pty::channel();
    let Setup {
        model,
        first,
        agent,
        keeper,
        answers,
        mut calls,
        feed,
        paths,
        flags,
        depth,
        abilities,
        mut signals,
        speech,
        task,
    } = setup;
    let core = match speech {
        None => Core::new(model),
        Some(_) => Core::headless(model),
    };
    let model = core.view();
    let size = layout(model).pane_size();
    let theme = Theme::new(model.config.ui.theme, depth, true);
    let (events, mut answers) = answers;
    let follower = Worker::new("transcript", follower::follow, events.clone());
    let trimmer = Worker::new("trim", trim::work, events.clone());
    let (starts, mut start_ready) = mpsc::channel(4);
    let places = files::Places {
        scratchpad: agent.scratchpad.clone(),
        project: agent.project.clone(),
        paths: paths.clone(),
        flags,
    };
    let files = Files::new(places, events.clone(), starts);
    let front = match speech {
        None => Front::terminal()?,
        Some(speech) => Front::headless(speech)?,
    };
    let canvas = Canvas::new(model.host, abilities);
    let screen = effects::new_screen(size, &model.config.ui);
    let mut shell = Shell {
        core,
        screen,
        pty: None,
        agent: Arc::new(agent),
        keeper,
        events,
        queue: VecDeque::new(),
        draining: false,
        follower,
        transcript: None,
        begun: None,
        listening: Listening::default(),
        trimmer,
        watcher: Watcher::default(),
        paths,
        front,
        task,
        pane_messages,
        feed,
        calls_open: HashMap::new(),
        timers: HashMap::new(),
        git_running: false,
        git_asked: false,
        palette: crate::pane::HostPalette::default(),
        scheme: None,
        watch_for: None,
        quit: None,
        paste_cut: false,
        resizing: Resizing::default(),
        window_resizes: false,
        outward: Outward::new(abilities),
        pointer: Pointer::default(),
        recording: None,
        summaries: SideProcesses::default(),
        remains: leaving::Remains::default(),
        editing: None,
        depth,
        theme,
        hostname: rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned(),
        canvas,
        drawn_layout: None,
        decoder: Decoder::default(),
        escape_due: None,
        host_keys: HostKeys::default(),
        host_synchronizes: false,
        cursor_shape: None,
        started: Instant::now(),
        dirty: true,
        typed_due: None,
        echo_until: None,
        drawn_revision: 0,
        drawn_at: None,
        next_call: 0,
        estimate_due: None,
        prompt_box_due: None,
        prompt_box_asked: false,
        files,
        versions_known: false,
        starting: None,
        config_due: None,
        notes_due: None,
        shown: PaneText::default(),
    };
    for effect in first {
        shell.run_effect(effect);
    }
    shell.watch_files();
    let mut calls_closed = false;
    let code = loop {
        if let Some((code, limit)) = shell.quit {
            // What the last orders have brought may bring more.
            while let Ok(event) = answers.try_recv() {
                shell.serve(Woken::Answer(event));
            }
            if shell.files.is_idle() || Instant::now() >= limit {
                break code;
            }
        }
        // Not only when nothing else is ready: a flood from the child must not hold up a deadline.
        shell.timers();
        shell.draw_if_due();
        let wake_at = shell.next_deadline();
        let woken = tokio::select! {
            biased;
            woken = signals.next() => woken,
            woken = shell.front.next() => woken,
            Some(event) = answers.recv() => Woken::Answer(event),
            Some(ready) = start_ready.recv() => Woken::StartReady(Box::new(ready)),
            () = shell.files.progress(), if shell.quit.is_some() => Woken::Kept,
            call = calls.recv(), if !calls_closed => {
                let Some(call) = call else { calls_closed = true; continue };
                Woken::Call(call)
            }
            Some(message) = pane.recv() => Woken::Pane(message),
            Some(path) = shell.watcher.changed.recv() => Woken::Changed(path),
            () = sleep_until(wake_at) => Woken::Timer,
        };
        shell.serve(woken);
    };
    let Shell {
        core,
        pty,
        mut front,
        mut outward,
        summaries,
        mut remains,
        editing,
        ..
    } = shell;
    if pty.is_some()
        && let Some(agent) = core.view().agent.process.clone()
    {
        remains.of(agent);
    }
    drop(pty);
    if let Some(editing) = editing {
        editing.end().await;
    }
    // The last call to a person.
    let mut last = outward.take();
    last.extend(outward.leave());
    if !last.is_empty() {
        front.write(last);
    }
    drop(front);
    // Who waits for room in the channel must not be waited for.
    drop(answers);
    drop(summaries);
    // The person has the terminal back meanwhile.
    let left_running = remains.end().await;
    Ok((code, core.end(left_running)))
}

/// The time by the system's clock. A clock that is set before 1970 while we run is no reason to end, as it is for `Utc::now`.
#[must_use]
pub fn wall() -> DateTime<Utc> {
    SystemTime::now().into()
}

/// A hook as those hear of it who listen to events.
fn hook_news(event: &str, parsed: &AgentEvent) -> News {
    let call = match parsed {
        AgentEvent::ToolStarted { call, .. } | AgentEvent::ToolFinished { call, .. } => Some(call),
        _ => None,
    };
    let data = serde_json::json!({
        "event": event, "session_id": parsed.session(),
        "tool": call.map(|call| &call.name), "tool_use_id": call.and_then(|call| call.id.as_ref()),
    });
    let kind = NewsKind::Hook;
    News { kind, data }
}

/// Waits for a moment. The runtime's timers are late by one to two milliseconds, which is what an echo is not to wait: for
/// the time of one drawing the clock is watched instead.
async fn sleep_until(at: Option<Instant>) {
    let Some(at) = at else {
        return std::future::pending().await;
    };
    if at.saturating_duration_since(Instant::now()) > ECHO_FRAME_TIME {
        return tokio::time::sleep_until(at.into()).await;
    }
    while Instant::now() < at {
        tokio::task::yield_now().await;
    }
}

impl Shell {
    fn at(&self) -> At {
        At {
            since_start: self.started.elapsed(),
            wall: wall(),
        }
    }

    /// Hands an event to the core, behind those that wait. One that an effect brings waits until the effects around it have
    /// been run: running an effect never calls back into the core.
    pub(crate) fn post(&mut self, event: Event) {
        self.queue.push_back(event);
        if std::mem::replace(&mut self.draining, true) {
            return;
        }
        while let Some(event) = self.queue.pop_front() {
            self.update(event);
        }
        self.draining = false;
    }

    /// Takes one event to the core and runs what it orders.
    fn update(&mut self, event: Event) {
        let at = self.at();
        let key = matches!(event, Event::Host(HostEvent::Input(HostInput::Key { .. })));
        let before = Glimpse::of(self.core.view());
        let blocked = key.then(|| app::reboot::blocked_by(self.core.view()));
        let prefixed = self.core.view().prefixed;
        let effects = self.core.update(at, event);
        for news in before.news(self.core.view(), &effects) {
            self.feed.publish(news);
        }
        let echoes = |effect: &Effect| matches!(effect, Effect::Forward(_));
        if effects.iter().any(echoes) {
            let now = Instant::now();
            self.echo_until = Some(now + ECHO_TIME);
            // What is typed into the pane seldom changes anything beside it.
            let unchanged = blocked.is_some_and(|blocked| {
                blocked == app::reboot::blocked_by(self.core.view())
                    && prefixed == self.core.view().prefixed
                    && before == Glimpse::of(self.core.view())
                    && self.core.view().reboot.attempt.is_none()
            });
            if !unchanged {
                self.typed_due.get_or_insert(now + FRAME_TIME);
            }
        } else {
            self.dirty = true;
        }
        let scrolled = self.screen.scroll_offset();
        self.run_effects(effects);
        self.dirty |= self.screen.scroll_offset() != scrolled;
    }

    fn serve(&mut self, woken: Woken) {
        match woken {
            // Ctrl-C and Ctrl-\ in a program that has our terminal are meant for that.
            Woken::Signal("SIGINT" | "SIGQUIT") if self.editing.is_some() => {}
            Woken::Signal(signal) => self.signalled(signal),
            Woken::Resized => self.resized(),
            Woken::Suspend => self.suspend(),
            Woken::Host(HostBytes::Read(bytes)) => self.typed(&bytes),
            Woken::Host(HostBytes::Closed) => self.signalled("SIGHUP"),
            Woken::Written => self.front.frame_written(),
            Woken::Answer(event) => self.answered(event),
            Woken::Call(call) => self.called(call),
            Woken::Pane(message) => self.pane(message),
            Woken::Changed(path) => self.changed(&path),
            Woken::StartReady(ready) => self.start_ready(*ready),
            // The loop looks at the clock, and whether it may end, each time round.
            Woken::Timer | Woken::Kept => {}
        }
    }

    /// An answer of a task or a thread, which may concern the shell too.
    fn answered(&mut self, event: Event) {
        match &event {
            Event::Read(ReadEvent::Git(_)) => self.git_answered(),
            Event::Read(ReadEvent::EditorClosed { .. }) => self.editor_left(),
            Event::Read(ReadEvent::Versions(_)) => self.versions_known = true,
            Event::Read(ReadEvent::Config(config)) => {
                if **config != self.core.view().config {
                    self.post(event);
                    let keeps = self.core.view().config.ui.keep_scrollback;
                    self.screen.set_keeps_scrollback(keeps);
                    self.choose_theme();
                }
                return;
            }
            Event::PlacesChecked(seen) => {
                // The next session's hooks are given this path.
                Arc::make_mut(&mut self.agent)
                    .observe
                    .clone_from(&seen.observe);
            }
            _ => {}
        }
        self.post(event);
    }

    /// A signal asks us to end. A run that is to go on without its terminal loses only that.
    fn signalled(&mut self, signal: &'static str) {
        if signal == "SIGHUP" {
            if !self.front.has_terminal() && self.core.view().config.autopilot.keep_running {
                tracing::info!("SIGHUP: the run goes on, there is no terminal to lose");
                return;
            }
            if self.front.has_terminal() && app::autopilot::outlives_terminal(self.core.view()) {
                self.front.lose_terminal();
                self.post(Event::TerminalLost);
                return;
            }
        }
        self.post(Event::ShutdownAsked { signal });
    }

    fn resized(&mut self) {
        let (columns, rows) = self.front.size(self.core.view().host);
        if self.core.view().host == (columns, rows) {
            return;
        }
        self.canvas.renew((columns, rows));
        self.window_resizes = true;
        self.post(Event::Host(HostEvent::Resized { columns, rows }));
        self.window_resizes = false;
    }

    fn suspend(&mut self) {
        if let Err(error) = self.front.suspend() {
            tracing::warn!(%error, "cannot suspend");
        }
        self.redraw();
    }

    /// Draws everything anew: somebody else has drawn on the host terminal.
    pub(crate) fn redraw(&mut self) {
        self.canvas.renew(self.core.view().host);
        self.outward.raw(self.host_keys.request());
        self.pointer = Pointer::default();
        self.cursor_shape = None;
        self.resized();
        self.dirty = true;
    }

    /// Bytes from the host terminal.
    fn typed(&mut self, bytes: &[u8]) {
        for input in self.decoder.feed(bytes) {
            // What was typed ahead was meant for the editor, not for the agent.
            if self.editing.is_none() {
                self.input(input);
            }
        }
        self.escape_due = self.decoder.pending().then(|| Instant::now() + ESCAPE_TIME);
    }

    fn input(&mut self, input: HostInput) {
        if let HostInput::Reply { reply, .. } = input {
            self.host_reply(reply);
            return;
        }
        if !self.points(&input) {
            self.post(Event::Host(HostEvent::Input(input)));
        }
    }

    /// The host terminal answers one of our questions.
    fn host_reply(&mut self, reply: HostReply) {
        match reply {
            HostReply::ModeReport { mode: 2026, value } => {
                self.host_synchronizes = matches!(value, 1 | 2);
            }
            HostReply::KittyFlags(_) | HostReply::DeviceAttributes(_) => {
                let kitty = matches!(reply, HostReply::KittyFlags(_));
                let keys = self.host_keys.learned(kitty);
                if keys != std::mem::replace(&mut self.host_keys, keys) {
                    self.outward.raw(keys.request());
                    self.dirty = true;
                }
            }
            reply => effects::learn_colour(self, &reply),
        }
    }

    /// Whether the host terminal was asked to tell keys apart.
    pub(crate) fn asked_for_keys(&self) -> bool {
        self.host_keys != HostKeys::Alike
    }

    /// Chooses the colours anew: by the user's wish, and by whether the host terminal is dark.
    pub(crate) fn choose_theme(&mut self) {
        let dark = self.scheme != Some(crate::pane::ColourScheme::Light);
        self.theme = Theme::new(self.core.view().config.ui.theme, self.depth, dark);
        self.dirty = true;
    }

    /// Something reached us through a door.
    fn called(&mut self, call: Call) {
        let Call { request, reply } = call;
        self.core.set_time(self.at());
        let answer = match request {
            Request::Hook { event, body } => {
                let mut refusal = None;
                match parse_hook(&event, &body) {
                    Ok(parsed) => {
                        self.feed.publish(hook_news(&event, &parsed));
                        refusal = compaction::refusal(self.core.view(), &parsed);
                        self.post(Event::Agent(parsed));
                    }
                    Err(error) => tracing::warn!(%error, event, "a hook payload was ignored"),
                }
                self.poke_transcript();
                refusal.map_or(Reply::Accepted, |reason| Reply::Blocked {
                    reason: reason.to_owned(),
                })
            }
            Request::StatusLine { body } => {
                match parse_status_line(&body) {
                    Ok(line) => {
                        self.post(Event::Agent(AgentEvent::StatusLine(Box::new(line))));
                    }
                    Err(error) => tracing::warn!(%error, "a status line payload was ignored"),
                }
                Reply::StatusLine(report::status_line(self.core.view()))
            }
            Request::Control(control) => {
                self.next_call += 1;
                let call = CallId(self.next_call);
                self.calls_open.insert(call, reply);
                self.post(Event::ControlAsked { call, control });
                return;
            }
            Request::Reported(report) => {
                self.next_call += 1;
                let call = CallId(self.next_call);
                self.calls_open.insert(call, reply);
                self.post(Event::Reported { call, report });
                return;
            }
            Request::Metrics => Reply::Metrics(Box::new(tally::metrics(self.core.view()))),
            Request::Status => Reply::Status(Box::new(report::status(self.core.view()))),
            Request::History => Reply::History(report::history(self.core.view())),
            Request::Handoff { session } => match session.map(|id| id.parse().map_err(|_| id)) {
                Some(Ok(session)) if session != self.core.view().session => {
                    self.keep(Job::FindHandoff(session, reply));
                    return;
                }
                Some(Err(id)) => Reply::NotFound {
                    why: report::no_session(&id),
                },
                _ => Reply::Handoff(Box::new(report::handoff(self.core.view()))),
            },
            Request::Usage(query) => Reply::Usage(report::usage(self.core.view(), query)),
        };
        // Whoever asked may have gone away.
        let _ = reply.send(answer);
    }

    /// The pane's process or its output.
    fn pane(&mut self, message: PtyMessage) {
        let PtyMessage { iteration, news } = message;
        let current = iteration == self.core.view().iteration.get();
        match news {
            PtyNews::Output(bytes) if current => self.output(&bytes),
            PtyNews::Stopped(_) if current => {
                // The child leads its session: nobody else could continue it.
                if let Some(pty) = &self.pty {
                    let _ = pty.signal(pty::Signal::Continue);
                }
            }
            PtyNews::Exited(exit) if current => self.exited(exit),
            PtyNews::Output(_)
            | PtyNews::OutputEnded
            | PtyNews::Stopped(_)
            | PtyNews::Exited(_) => {}
        }
    }

    fn exited(&mut self, exit: PaneExit) {
        self.screen.reset();
        self.recording = None;
        let leftovers = self
            .pty
            .take()
            .map(|pty| effects::leftovers(&pty))
            .unwrap_or_default();
        if let Some(process) = self.core.view().agent.process.clone() {
            if !leftovers.is_empty() {
                self.remains.of(process.clone());
            }
            self.keep(Job::AgentGone(process));
        }
        let exit = match (exit.code, exit.signal) {
            (_, Some(signal)) => Exit::Signal(signal.to_string()),
            (code, None) => Exit::Code(code.and_then(|code| u32::try_from(code).ok()).unwrap_or(1)),
        };
        let iteration = self.core.view().iteration;
        self.post(Event::Pane(PaneEvent::Exited { iteration, exit }));
        if !leftovers.is_empty() {
            self.post(Event::Pane(PaneEvent::LeftoversFound {
                processes: leftovers,
            }));
        }
    }

    fn output(&mut self, bytes: &[u8]) {
        self.screen.feed(bytes, Instant::now());
        if let Some((begun, recording)) = &mut self.recording
            && let Err(error) = recording.output(begun.elapsed(), bytes)
        {
            effects::recording_failed(&error);
        }
        self.after_feed();
        self.listen();
        if self.agent.kind.tells() {
            self.prompt_box_due
                .get_or_insert_with(|| Instant::now() + PROMPT_BOX_TIME);
        }
        if self.wants_estimate() {
            self.estimate_due
                .get_or_insert_with(|| Instant::now() + ESTIMATE_TIME);
        }
    }

    /// What the emulator has to say after bytes or after a frame's time was up.
    fn after_feed(&mut self) {
        for reply in self.screen.take_replies() {
            self.write_pane(reply);
        }
        for fact in self.screen.take_facts() {
            self.screen_fact(fact);
        }
        let pastes = self.screen.modes().bracketed_paste;
        if pastes != self.core.view().agent.takes_pastes {
            self.post(Event::Pane(PaneEvent::PasteModeSet { on: pastes }));
        }
        let mouse = self.screen.modes().mouse != crate::pane::MouseTracking::None;
        if mouse != self.core.view().agent.takes_mouse {
            self.post(Event::Pane(PaneEvent::MouseModeSet { on: mouse }));
        }
        if let Some(text) = &self.watch_for
            && self.screen.tail_text(200).contains(text.as_str())
        {
            self.watch_for = None;
            self.post(Event::Pane(PaneEvent::MarkerSeen));
        }
    }

    /// Writes to the child; a child that does not read is told of, not waited for. False if it was refused.
    pub(crate) fn write_pane(&mut self, bytes: Vec<u8>) -> bool {
        let refused = match (&self.pty, &mut self.starting) {
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

    /// Watches what the user and the agent may edit; they may have done so already. Each of these waits for a thread.
    fn watch_files(&mut self) {
        let scratchpad = self.agent.scratchpad.clone();
        for file in self.paths.watched().into_iter().chain([scratchpad]) {
            self.watcher.watch_beside(&file);
            self.changed(&file);
        }
        self.order(Order::OpenVersions);
        self.order(Order::ReadDraft);
    }

    /// A watched file has changed.
    fn changed(&mut self, path: &std::path::Path) {
        if self.transcript.as_deref() == Some(path) {
            self.poke_transcript();
        } else if path == self.agent.scratchpad {
            self.notes_due = Some(Instant::now() + NOTES_SETTLE);
        } else if self.paths.watched().iter().any(|watched| watched == path) {
            self.config_due = Some(Instant::now() + CONFIG_SETTLE);
        }
    }

    /// Has the transcript read on. A client that is new here makes the directory long after it has named the file, so it is
    /// watched at the first sign of life that finds it.
    pub(crate) fn poke_transcript(&mut self) {
        if let Some(path) = &self.transcript {
            self.watcher.watch_beside(path);
            self.follower.send(Poke::Grown);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let now = Instant::now();
        let frame = self.wants_frame(now).map(|frame| self.frame_at(frame, now));
        // One that is over is among the reasons for a frame.
        let typed = self.typed_due.filter(|due| *due > now);
        [
            frame,
            typed,
            self.escape_due,
            self.screen.deadline(),
            self.resizing.deadline(),
            self.estimate_due,
            self.prompt_box_due,
            self.config_due,
            self.notes_due,
            self.listening.deadline(),
            self.quit.map(|(_, limit)| limit),
        ]
        .into_iter()
        .flatten()
        .chain(self.timers.values().copied())
        .min()
    }

    fn timers(&mut self) {
        let now = Instant::now();
        if self.escape_due.is_some_and(|due| due <= now) {
            self.escape_due = None;
            for input in self.decoder.flush() {
                self.input(input);
            }
        }
        if self.screen.deadline().is_some_and(|due| due <= now) {
            self.screen.expire(now);
            self.after_feed();
        }
        if let Some(size) = self.resizing.due(now) {
            self.set_pane_size(size);
            self.dirty = true;
        }
        if self.config_due.is_some_and(|due| due <= now) {
            self.config_due = None;
            self.order(Order::ReadConfig);
        }
        if self.estimate_due.is_some_and(|due| due <= now) {
            self.estimate_due = None;
            self.estimate();
        }
        if self.prompt_box_due.is_some_and(|due| due <= now) {
            self.prompt_box_due = None;
            self.look_at_prompt_box();
        }
        self.listened(now);
        if self.notes_due.is_some_and(|due| due <= now) {
            self.notes_due = None;
            self.order(Order::ReadScratchpad);
        }
        let due: Vec<TimerId> = self
            .timers
            .iter()
            .filter(|(_, at)| **at <= now)
            .map(|(id, _)| *id)
            .collect();
        for id in due {
            self.timers.remove(&id);
            self.post(Event::TimerFired(id));
        }
    }

    /// Reads the agent's prompt box off its screen. Its text is followed only while something waits for it: a person who types
    /// there changes it with each key.
    fn look_at_prompt_box(&mut self) {
        let Some(text) = self.screen.drawn_text() else {
            self.prompt_box_due = Some(Instant::now() + PROMPT_BOX_TIME);
            return;
        };
        let rows: Vec<Row> = text
            .rows
            .into_iter()
            .map(|DrawnRow { text, solid }| Row { text, solid })
            .collect();
        let seen = PromptBox::read(&rows, text.cursor);
        let known = &self.core.view().agent.prompt_box;
        let asked = std::mem::take(&mut self.prompt_box_asked);
        let follows =
            self.core.view().saying.is_some() || self.core.view().reboot.attempt.is_some();
        let alike = std::mem::discriminant(&seen) == std::mem::discriminant(known);
        if asked || (seen != *known && (follows || !alike)) {
            self.post(Event::Pane(PaneEvent::PromptBoxSeen(seen)));
            self.poke_transcript();
        }
    }

    /// Whether nothing better can be known: a program that tells nothing, or one whose transcript has gone. For a
    /// client that has not spoken yet no figure is truer than the few words on its screen.
    fn wants_estimate(&self) -> bool {
        !self.agent.kind.tells() || self.core.view().transcript_lost
    }

    /// Estimates usage from the pane's text, where nothing better is known.
    fn estimate(&mut self) {
        if !self.wants_estimate() {
            return;
        }
        self.shown.look(&self.screen.settled_text(ESTIMATE_LINES));
        let used: Tokens = crate::guard::reading::estimate(self.shown.characters(), 0);
        let at = self.at();
        let source = crate::guard::Source::Estimate;
        let reading = crate::guard::Reading {
            used,
            window: None,
            source,
            at,
        };
        self.post(Event::Read(ReadEvent::Estimate(reading)));
    }

    /// Forgets what was counted for the estimate: a new iteration begins.
    pub(crate) fn restart_estimate(&mut self) {
        self.shown = PaneText::default();
        self.estimate_due = None;
    }

    /// What is to be drawn, if anything: not while the last frame is on its way out.
    fn wants_frame(&self, now: Instant) -> Option<Frame> {
        if !self.front.is_ready() {
            return None;
        }
        let typed = self.typed_due.is_some_and(|due| due <= now);
        let output = self.screen.revision() != self.drawn_revision;
        // The echo goes first where both are due, and so does the first word: the panels can wait for their frame's time.
        let patch = output && self.drawn_alone().is_some();
        let urgent = self.echoes(now) || self.drawn_revision == 0;
        if patch && (urgent || !(self.dirty || typed)) {
            return Some(Frame::Pane);
        }
        let whole = self.dirty || typed || output || !self.outward.is_empty();
        whole.then_some(Frame::Whole)
    }

    /// Whether the echo of a key is awaited.
    fn echoes(&self, now: Instant) -> bool {
        self.echo_until.is_some_and(|until| now < until)
    }

    /// Where the pane is, if its cells can be drawn without the rest.
    fn drawn_alone(&self) -> Option<Rect> {
        let now = layout(self.core.view());
        (self.drawn_layout.as_ref() == Some(&now))
            .then(|| crate::ui::pane_alone(&now, self.core.view(), &self.screen))
            .flatten()
    }

    /// Draws what is due.
    fn draw_if_due(&mut self) {
        self.look_under_pointer();
        let now = Instant::now();
        if let Some(frame) = self.wants_frame(now)
            && self.frame_at(frame, now) <= now
        {
            self.draw(frame);
        }
    }

    /// When a frame may be drawn. A child's first output does not wait, so that it shows as soon as the child is
    /// there: one frame more in an iteration.
    fn frame_at(&self, frame: Frame, now: Instant) -> Instant {
        let first = self.drawn_revision == 0 && self.screen.revision() > 0;
        let time = if frame == Frame::Pane && self.echoes(now) {
            ECHO_FRAME_TIME
        } else {
            FRAME_TIME
        };
        let last = self.drawn_at.filter(|_| !first);
        last.map_or(now, |at| at + time)
    }

    /// For tests of what a panic leaves behind: `PITSTOP_PANIC_AT=draw` breaks the second frame.
    #[cfg(debug_assertions)]
    fn panic_if_asked(&self) {
        let asked = std::env::var_os("PITSTOP_PANIC_AT").is_some_and(|place| place == "draw");
        assert!(!asked || self.drawn_at.is_none(), "PITSTOP_PANIC_AT=draw");
    }

    fn draw(&mut self, frame: Frame) {
        #[cfg(debug_assertions)]
        self.panic_if_asked();
        self.core.set_time(self.at());
        let alone = self.drawn_alone().filter(|_| frame == Frame::Pane);
        let damage = if alone.is_some() {
            self.screen.take_damage()
        } else {
            self.screen.set_drawn();
            Vec::new()
        };
        self.note_links(&damage, alone.is_none());
        let (model, screen, theme) = (self.core.view(), &self.screen, &self.theme);
        let cells = if let Some(pane) = alone {
            let cursor = crate::ui::cursor(model, screen).map(placed);
            let looks = (theme.depth, self.hostname.as_str());
            self.canvas.pane(pane, screen, &damage, looks, cursor)
        } else {
            self.dirty = false;
            self.typed_due = None;
            let layout = layout(model);
            let pane = layout.pane_inner();
            let links = pane::links(pane, screen, 0..u16::MAX, theme.depth, &self.hostname);
            self.canvas.set_links(links);
            self.drawn_layout = Some(layout);
            self.canvas
                .whole(|buf| crate::ui::paint(buf, model, screen, theme).map(placed))
        };
        let mut bytes = self.outward.take();
        bytes.extend_from_slice(self.follow_pointer());
        let cursor = self.cursor_shape();
        if !(cells.is_empty() && cursor.is_empty() && bytes.is_empty()) {
            if self.host_synchronizes {
                bytes.extend_from_slice(b"\x1b[?2026h");
            }
            bytes.extend_from_slice(&cells);
            bytes.extend_from_slice(&cursor);
            if self.host_synchronizes {
                bytes.extend_from_slice(b"\x1b[?2026l");
            }
            self.front.write(bytes);
        }
        self.drawn_revision = self.screen.revision();
        self.drawn_at = Some(Instant::now());
    }

    /// The host's cursor has the child's shape.
    fn cursor_shape(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let Some(cursor) = crate::ui::cursor(self.core.view(), &self.screen) else {
            return bytes;
        };
        // DECSCUSR: the blinking form of a shape is the one before its steady form.
        let steady = match cursor.shape {
            CursorShape::Block => 2,
            CursorShape::Underline => 4,
            CursorShape::Bar => 6,
        };
        let shape: u8 = steady - u8::from(cursor.blinking);
        if self.cursor_shape != Some(shape) {
            self.cursor_shape = Some(shape);
            bytes.extend_from_slice(format!("\x1b[{shape} q").as_bytes());
        }
        bytes
    }
}

/// Where the cursor stands: at the child's also while that is hidden, because input methods open there.
fn placed(cursor: crate::ui::HostCursor) -> canvas::Cursor {
    let at = ratatui::layout::Position::new(cursor.column, cursor.row);
    (at, cursor.visible)
}
