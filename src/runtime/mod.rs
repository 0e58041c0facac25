//! The imperative shell: one loop that waits, drains, updates, runs effects and draws.
//!
//! ```text
//!   signals ─┐
//!   keys    ─┤   in this order of urgency       ┌─► effects ──► the world, whose answers are events
//!   answers ─┼─► loop ─► core.update() ────────┤
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
mod attached;
pub mod canvas;
pub mod client_settings;
pub mod clipboard;
pub mod daemon;
mod editor;
pub mod effects;
mod files;
pub mod follower;
pub mod handoff_files;
mod herdr;
pub mod host;
pub mod host_output;
mod hosted;
mod hover;
mod leaving;
pub mod lines;
pub mod listen;
pub mod notices;
pub mod notify;
mod output;
pub mod paint;
pub mod places;
pub mod prepare;
pub mod recovery;
pub mod resizing;
mod services;
mod signals;
pub mod store_writer;
mod subscription;
pub mod summary;
pub mod task;
mod terminal;
pub mod trim;
pub mod tty;
pub mod user_command;
pub mod watcher;
pub mod worker;

use std::{
    collections::{HashMap, VecDeque},
    io,
    os::fd::OwnedFd,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use chrono::{DateTime, FixedOffset, Local, Offset, TimeZone, Utc};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::mpsc;

use pitstop_agent::{AgentKind, claude};
use pitstop_base::clock::At;
use pitstop_core::{
    app::{
        self, Core, Effect, Event, Model,
        changes::ModelSnapshot,
        event::{HostEvent, ReadEvent, TimerId},
        layout::layout,
    },
    config::{
        OnHangup,
        load::{Flags, paths::Paths},
    },
};
use pitstop_server::{Attachment, Call, Feed, Mailbox};
use pitstop_terminal::{
    input::HostInput,
    pane::pty::{self, PtyMessage},
};

use agent::AgentPlan;
use files::{FileRequest, Files, StartReady};
use host::HostBytes;
use hosted::Hosted;
use lines::{LineFormat, Lines};
use services::{Calls, Services};
pub use signals::Signals;
use store_writer::Job;
use terminal::{ECHO_FRAME_TIME, ECHO_TIME, FRAME_TIME, Terminals};

pub use attached::Client;
pub use herdr::HERDR_VARIABLES;
pub use terminal::{Looks, TERMINAL_VARIABLES, locale};

/// The number of answers that may wait for the loop.
pub const ANSWERS_IN_FLIGHT: usize = 256;

/// The number of starts of agents that may be ready at once: there is one, and none that was given up.
const STARTS_IN_FLIGHT: usize = 4;

/// The state and the channels with which the loop is started.
#[derive(Debug)]
pub struct Setup {
    /// The model.
    pub model: Model,
    /// The effects to run first.
    pub first: Vec<Effect>,
    /// The plan for starting agents.
    pub agent: AgentPlan,
    /// The directory in which the agent has worked before, if that is known.
    pub place: Option<PathBuf>,
    /// The channel to the owner of everything that is kept.
    pub store_writer: mpsc::Sender<Job>,
    /// The channel for answers from tasks.
    pub answers: (mpsc::Sender<Event>, mpsc::Receiver<Event>),
    /// The calls that reach us through the doors.
    pub calls: mpsc::Receiver<Call>,
    /// The terminal for which we were started, if we were for one.
    pub terminal: Option<Attachment>,
    /// The terminals that come later.
    pub attachments: mpsc::Receiver<Attachment>,
    /// The feed of events for those who listen at a door.
    pub feed: Feed,
    /// The orders for the client's own side of the session.
    pub mailbox: Mailbox,
    /// The locations of files.
    pub paths: Paths,
    /// The command line's settings for the configuration, for reloads.
    pub flags: Flags,
    /// The signals, listened for since before there was a process to end.
    pub signals: Signals,
    /// The format of the lines of a headless run; `None` for all others.
    pub line_format: Option<LineFormat>,
    /// The file that holds the run's task, if it is one.
    pub task: Option<PathBuf>,
}

/// What is done at a set time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Deadline {
    /// A timer of the core fires.
    Timer(TimerId),
    /// The configuration is read again.
    Config,
    /// The scratchpad is read again.
    Scratchpad,
    /// Git is queried once more.
    Git,
    /// Usage is estimated from the pane's text.
    Estimate,
    /// The agent's prompt box is read from its screen.
    PromptBox,
    /// The processes that the last agent left are looked at.
    Outliving,
    /// An agent that may suspend itself is looked at.
    Suspension,
    /// The client's own record of its process is read.
    ClientRecord,
}

/// The loop's own state, and the core that it feeds.
pub struct Shell {
    core: Core,
    /// The events that the core has not seen yet, in order.
    queue: VecDeque<Event>,
    /// True while the queue is being emptied: an event that comes in waits its turn.
    draining: bool,
    deadlines: HashMap<Deadline, Instant>,
    started: Instant,
    /// The same moment by [`uptime`].
    started_uptime: Duration,
    /// The exit code, and the latest time at which outstanding writes may be finished.
    quit: Option<(i32, Instant)>,
    terminals: Terminals,
    /// The reporter of a headless run.
    lines: Option<Lines>,
    pane: Hosted,
    /// The handle of the loop's own disk work.
    files: Files,
    services: Services,
    calls: Calls,
    /// The channel for answers from tasks and threads.
    events: mpsc::Sender<Event>,
    agent: Arc<AgentPlan>,
    paths: Paths,
    /// The files of the configuration.
    config_files: Vec<PathBuf>,
    /// The file that holds the run's task.
    task: Option<PathBuf>,
}

/// The sources that wake the loop, beside the host terminal and the clock.
struct Sources {
    signals: Signals,
    answers: mpsc::Receiver<Event>,
    start_ready: mpsc::Receiver<StartReady>,
    calls: mpsc::Receiver<Call>,
    attachments: mpsc::Receiver<Attachment>,
    pane: mpsc::Receiver<PtyMessage>,
}

/// The state after the loop.
pub struct Left {
    /// The exit code.
    pub code: i32,
    /// The model as it was last.
    pub model: Model,
    /// The arguments with which a person goes on with its session, if it has a conversation, which the client accepts to resume.
    pub resumed_with: Option<Vec<String>>,
    /// What the database has not taken, if anything.
    pub unwritten: Option<String>,
    /// The clients of the terminals that were attached, who wait for the last message.
    pub clients: Vec<Client>,
}

/// Runs the supervisor until it is asked to leave.
pub async fn run(setup: Setup) -> io::Result<Left> {
    let (mut shell, mut sources) = Shell::begin(setup)?;
    let code = shell.serve_until_quit(&mut sources).await;
    let plan = Arc::clone(&shell.agent);
    // Not kept in the future of the whole run: it is large.
    let (model, clients) = Box::pin(shell.leave(sources)).await;
    let session = model.session.id;
    let resumed_with = (plan.kind == AgentKind::Claude && plan.can_resume(session)).then(|| {
        let version = model.session.agent.version.as_deref();
        let args = &model.identity.agent_args;
        plan.arguments_as_left(args, session, || claude::reports_choices(version))
    });
    Ok(Left {
        code,
        model,
        unwritten: None,
        resumed_with,
        clients,
    })
}

/// Returns the size of a terminal in cells, columns and rows; that of the smallest usual one if it has none.
pub fn size_of(terminal: &OwnedFd) -> (u16, u16) {
    output::size(terminal).unwrap_or((80, 24))
}

/// Returns the time by the system's clock. A clock that is set before 1970 while we run does not end us, as `Utc::now` would.
pub fn wall() -> DateTime<Utc> {
    SystemTime::now().into()
}

/// Returns the time since the system started, the time for which it slept included.
pub fn uptime() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    // Elsewhere, as on macOS, it goes on in sleep.
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

/// Returns the offset of local time from UTC at a moment, by `TZ` or the system's setting; both are looked at about once a second.
pub fn zone(at: DateTime<Utc>) -> FixedOffset {
    Local.offset_from_utc_datetime(&at.naive_utc()).fix()
}

/// Waits for a moment. The runtime's timers are late by one to two milliseconds, which would delay an echo: for the time of
/// one drawing the clock is watched instead.
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
    /// Takes everything over and runs the first effects.
    fn begin(setup: Setup) -> io::Result<(Self, Sources)> {
        let core = match setup.line_format {
            None => Core::new(setup.model),
            Some(_) => Core::headless(setup.model),
        };
        let model = core.view();
        let (events, answers) = setup.answers;
        let lines = setup.line_format.map(Lines::new).transpose()?;
        let size = layout(model).pane_size();
        let (messages, pane) = pty::channel();
        let screen = hosted::new_screen(size, &model.config.ui);
        let config_files = setup.flags.watched(&setup.paths);
        let places = files::Places {
            scratchpad: setup.agent.scratchpad.clone(),
            project: setup.agent.project.clone(),
            paths: setup.paths.clone(),
            flags: setup.flags,
        };
        let (starts, start_ready) = mpsc::channel(STARTS_IN_FLIGHT);
        let mut shell = Self {
            core,
            queue: VecDeque::new(),
            draining: false,
            deadlines: HashMap::new(),
            started: Instant::now(),
            started_uptime: uptime(),
            quit: None,
            terminals: Terminals::new(),
            lines,
            pane: Hosted::new(screen, messages),
            files: Files::new(places, events.clone(), starts),
            services: Services::new(setup.store_writer, setup.place, &events),
            calls: Calls::new(setup.feed, setup.mailbox),
            events,
            agent: Arc::new(setup.agent),
            paths: setup.paths,
            config_files,
            task: setup.task,
        };
        if let Some(terminal) = setup.terminal {
            shell.attach(terminal);
        }
        for effect in setup.first {
            shell.run_effect(effect);
        }
        shell.watch_files();
        let sources = Sources {
            signals: setup.signals,
            answers,
            start_ready,
            calls: setup.calls,
            attachments: setup.attachments,
            pane,
        };
        Ok((shell, sources))
    }

    /// Serves events until the core wants to leave; returns the exit code.
    async fn serve_until_quit(&mut self, sources: &mut Sources) -> i32 {
        loop {
            if let Some(code) = self.may_leave(sources) {
                return code;
            }
            // Not only when nothing else is ready: a flood from the child must not hold up a deadline.
            self.timers();
            self.draw_if_due();
            self.serve_next(sources).await;
        }
    }

    /// Returns the exit code, if the core wants to leave and all that it wants written is written, or takes too long.
    fn may_leave(&mut self, sources: &mut Sources) -> Option<i32> {
        let (code, limit) = self.quit?;
        // The answers to the last orders may bring more orders.
        while let Ok(event) = sources.answers.try_recv() {
            self.answered(event);
        }
        if self.files.is_idle() {
            return Some(code);
        }
        let late = Instant::now() >= limit;
        if late {
            tracing::error!("the disk takes too long: what was still to be written is lost");
        }
        late.then_some(code)
    }

    /// Waits for what comes next, and serves it.
    async fn serve_next(&mut self, sources: &mut Sources) {
        let wake_at = self.next_deadline();
        let inbox = &mut self.terminals.inbox;
        tokio::select! {
            biased;
            signal = sources.signals.next() => self.signalled(signal),
            Some((id, bytes)) = inbox.bytes.recv() => match bytes {
                HostBytes::Read(bytes) => self.typed(id, &bytes),
                HostBytes::Closed => self.terminal_lost(id),
            },
            Some(id) = inbox.written.recv() => self.terminals.frame_written(id),
            // Behind the bytes: what was typed before the end of a client counts.
            Some((id, message)) = inbox.messages.recv() => self.client_message(id, message),
            Some(event) = sources.answers.recv() => self.answered(event),
            Some(ready) = sources.start_ready.recv() => self.start_ready(ready),
            // The loop looks at the clock, and whether it may end, each time round.
            () = self.files.progress(), if self.quit.is_some() => {}
            Some(call) = sources.calls.recv() => self.called(call),
            Some(attachment) = sources.attachments.recv() => self.attach(attachment),
            Some(message) = sources.pane.recv() => self.pane_message(message),
            changes = self.services.watcher.changes() => self.changed(&changes),
            () = sleep_until(wake_at) => {}
        }
    }

    /// Lets go of the terminals and ends what is left; returns the model as it was last, and the clients.
    async fn leave(self, sources: Sources) -> (Model, Vec<Client>) {
        let is_headless = self.lines.is_some();
        let Self {
            core,
            pane: Hosted {
                pty, mut remains, ..
            },
            terminals,
            services,
            ..
        } = self;
        if pty.is_some()
            && let Some(agent) = core.view().session.agent.process.clone()
        {
            remains.of(agent);
        }
        drop(pty);
        let clients = terminals.leave();
        // A sender that waits for room in the channel must not be waited for.
        drop(sources);
        let calls = services.caller.finish(is_headless);
        tokio::join!(calls, services.herdr.finish());
        (core.end(remains.end().await), clients)
    }

    fn at(&self) -> At {
        let since_start = self.started.elapsed();
        let whole_time = uptime().saturating_sub(self.started_uptime);
        At {
            since_start,
            asleep: whole_time.saturating_sub(since_start),
            wall: wall(),
            zone,
        }
    }

    /// Hands an event to the core, after those that wait. One that an effect brings waits until the effects around it have
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

    /// Does work beside the loop; the core gets the event that it ends with.
    fn spawn(&self, work: impl Future<Output = Option<Event>> + Send + 'static) {
        let events = self.events.clone();
        tokio::spawn(async move {
            if let Some(event) = work.await {
                // The loop is gone, then.
                let _ = events.send(event).await;
            }
        });
    }

    /// Does work that waits for a disk on a thread for it; the core gets the event that it ends with.
    fn spawn_blocking(&self, work: impl FnOnce() -> Event + Send + 'static) {
        let events = self.events.clone();
        tokio::task::spawn_blocking(move || {
            // The loop is gone, then.
            let _ = events.blocking_send(work());
        });
    }

    /// Takes one event to the core and runs what it orders.
    fn update(&mut self, event: Event) {
        let at = self.at();
        let key = matches!(event, Event::Host(HostEvent::Input(HostInput::Key { .. })));
        let before = ModelSnapshot::of(self.core.view());
        let blocked = key.then(|| app::reboot::blocked_by(self.core.view()));
        let prefixed = self.core.view().view.prefixed;
        let effects = self.core.update(at, event);
        for events in before.events(self.core.view(), &effects) {
            self.calls.feed.publish(events);
        }
        let echoes = |effect: &Effect| matches!(effect, Effect::Forward(_));
        if effects.iter().any(echoes) {
            let now = Instant::now();
            if let Some(active) = self.terminals.active_mut() {
                active.frames.echo_until = Some(now + ECHO_TIME);
            }
            // What is typed into the pane seldom changes anything beside it.
            let unchanged = blocked.is_some_and(|blocked| {
                blocked == app::reboot::blocked_by(self.core.view())
                    && prefixed == self.core.view().view.prefixed
                    && before == ModelSnapshot::of(self.core.view())
                    && self.core.view().reboot.attempt.is_none()
            });
            if !unchanged {
                for terminal in self.terminals.all_mut() {
                    terminal.frames.typed_due.get_or_insert(now + FRAME_TIME);
                }
            }
        } else {
            self.terminals.set_dirty();
        }
        let scrolled = self.pane.screen.scroll_offset();
        for effect in effects {
            self.run_effect(effect);
        }
        self.take_up_saved();
        self.report_to_herdr();
        if self.pane.screen.scroll_offset() != scrolled {
            self.terminals.set_dirty();
        }
    }

    /// Handles an answer of a task or a thread, which may concern the shell too.
    fn answered(&mut self, event: Event) {
        match &event {
            Event::Read(ReadEvent::Git(state)) => self.git_answered(state),
            Event::Read(ReadEvent::Versions(_)) => self.files.versions_known = true,
            Event::Read(ReadEvent::Config(config)) => {
                if **config != self.core.view().config {
                    self.post(event);
                    let keeps = self.core.view().config.ui.keep_scrollback;
                    self.pane.screen.set_keeps_scrollback(keeps);
                    if !self.core.view().config.recording.enabled {
                        self.end_recording();
                    }
                    self.choose_themes();
                }
                return;
            }
            Event::Read(ReadEvent::SessionNamed(iteration, started))
                if app::agent::is_unreported(self.core.view(), *iteration, started) =>
            {
                self.begins_unreported(started);
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

    /// Handles a signal that asks us to end. The hang-up of a headless run's terminal is the loss of a terminal.
    fn signalled(&mut self, signal: &'static str) {
        let detaches = self.core.view().config.session.on_hangup == OnHangup::Detach;
        if signal == "SIGHUP" && self.lines.is_some() && detaches {
            tracing::info!("SIGHUP: the run goes on without its terminal");
            return;
        }
        self.post(Event::ShutdownAsked { signal });
    }

    fn next_deadline(&self) -> Option<Instant> {
        let now = Instant::now();
        [
            self.next_frame(now),
            self.pane.screen.deadline(),
            self.pane.resizing.deadline(),
            self.pane.listening.deadline(),
            self.quit.map(|(_, limit)| limit),
        ]
        .into_iter()
        .flatten()
        .chain(self.deadlines.values().copied())
        .min()
    }

    fn timers(&mut self) {
        let now = Instant::now();
        for (id, inputs) in self.terminals.escapes_due(now) {
            for input in inputs {
                self.input(id, input);
            }
        }
        if self.pane.screen.deadline().is_some_and(|due| due <= now) {
            self.pane.screen.expire(now);
            self.after_feed();
        }
        if self.pane.resizing.deadline().is_some_and(|due| due <= now) {
            // On a busy machine the window may have changed again, and its signal waits behind the events that are served first.
            self.resized();
        }
        if let Some(size) = self.pane.resizing.due(now) {
            self.set_pane_size(size);
            self.terminals.set_dirty();
        }
        self.listened(now);
        while let Some(deadline) = self.take_due(now) {
            match deadline {
                Deadline::Timer(id) => self.post(Event::TimerFired(id)),
                Deadline::Config => self.request_file(FileRequest::ReadConfig),
                Deadline::Scratchpad => self.request_file(FileRequest::ReadScratchpad),
                Deadline::Git => self.read_git(),
                Deadline::Estimate => self.estimate(),
                Deadline::PromptBox => self.look_at_prompt_box(),
                Deadline::Outliving => self.look_at_outliving(),
                Deadline::Suspension => self.look_for_suspension(),
                Deadline::ClientRecord => self.read_client_record(),
            }
        }
    }

    /// Has something done after this time; an earlier time for it is replaced.
    fn set_deadline(&mut self, deadline: Deadline, after: Duration) {
        self.deadlines.insert(deadline, Instant::now() + after);
    }

    /// Has something done after this time, unless a time for it is set.
    fn add_deadline(&mut self, deadline: Deadline, after: Duration) {
        let due = self.deadlines.entry(deadline);
        due.or_insert_with(|| Instant::now() + after);
    }

    /// Takes the earliest deadline that is reached by now.
    fn take_due(&mut self, now: Instant) -> Option<Deadline> {
        let due = self.deadlines.iter().filter(|(_, at)| **at <= now);
        let deadline = due.min_by_key(|(_, at)| **at).map(|(due, _)| *due)?;
        self.deadlines.remove(&deadline);
        Some(deadline)
    }
}
