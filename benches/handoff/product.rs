//! The product without a terminal: its own core and its own readers, driven through sessions and reboots.
//!
//! The core ([`app::update`]) decides all; this file is a small shell around it. It has the transcript followed by the
//! product's own follower, the summary made by the product's own rules, and says to every other order that it is done.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    sync::{atomic::AtomicBool, mpsc as std_mpsc},
    time::Duration,
};

use chrono::DateTime;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use pitstop::runtime::{
    follower::{FollowCommand, follow},
    summary::read_history,
};
use pitstop_agent::{
    AgentEvent, AgentKind, Background, StartSource, claude::prompt_box::PromptBox,
};
use pitstop_base::clock::{self, At};
use pitstop_core::{
    app::{
        self, Effect, Event, Model,
        effect::StartAgent,
        event::{Exit, HostEvent, NewIds, PaneEvent, ReadEvent, StoreEvent},
        model::{Beginning, Identity},
    },
    config::Config,
    lineage::{Lineage, ProcessStamp, RunId},
};
use pitstop_handoff::{Generator, breakpoint::git::GitState};
use pitstop_terminal::input::HostInput;
use pitstop_transcript::SessionId;
use tokio::sync::mpsc;
use uuid::Uuid;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// November 18, 2026: a moment like any other.
const BEGAN: i64 = 1_795_000_000;

/// A supervisor whose agent waits for a prompt.
pub struct Product {
    model: Model,
    since_start: Duration,
    /// The number of the present session.
    number: u128,
    transcript: PathBuf,
    resumes: bool,
    ending: bool,
    started: Option<StartAgent>,
    follower: Option<Follower>,
}

/// The product's follower on a thread of its own, which goes on for as long as this is held.
struct Follower {
    order: std_mpsc::Sender<FollowCommand>,
    events: mpsc::Receiver<Event>,
}

fn session(number: u128) -> SessionId {
    SessionId::new(Uuid::from_u128(number))
}

fn new_ids(number: u128) -> NewIds {
    NewIds {
        reboot: Uuid::from_u128(1000 + number),
        session: session(number),
        nonce: format!("{number:08x}"),
    }
}

impl Product {
    /// Begins a run whose first session is written to this transcript.
    pub fn new(transcript: &Path, project: &str) -> Outcome<Self> {
        Self::begin(transcript, project, false)
    }

    /// Begins a run that goes on with the session of this transcript, as `pitstop -- --resume` does.
    pub fn resuming(transcript: &Path, project: &str) -> Outcome<Self> {
        Self::begin(transcript, project, true)
    }

    /// No model is asked for summaries.
    fn begin(transcript: &Path, project: &str, resumes: bool) -> Outcome<Self> {
        let wall = DateTime::from_timestamp(BEGAN, 0).unwrap_or_default();
        let mut config = Config::default();
        config.summary.generate_summaries = false;
        let model = app::model_of(Beginning {
            identity: Identity {
                version: "0",
                pid: 1,
                project: project.to_owned(),
                environment: "bench".to_owned(),
                agent_kind: AgentKind::Claude,
                agent_command: "claude".to_owned(),
                agent_args: Vec::new(),
                todo_tools: true,
            },
            config,
            lineage: Lineage::new(RunId::new(wall, [1, 2, 3])),
            session: session(1),
            new_ids: new_ids(2),
            notes: String::new(),
            generator: Generator::default(),
            host: (140, 40),
            now: At {
                since_start: Duration::ZERO,
                asleep: Duration::ZERO,
                wall,
                zone: clock::UTC,
            },
        });
        let mut product = Self {
            model,
            since_start: Duration::ZERO,
            number: 1,
            transcript: transcript.to_owned(),
            resumes,
            ending: false,
            started: None,
            follower: None,
        };
        app::iteration::begin(&mut product.model, resumes, None, None);
        product.begin_session()?;
        Ok(product)
    }

    fn begin_session(&mut self) -> Outcome<()> {
        let iteration = self.model.session.iteration();
        let number = self.number;
        self.update(Event::Pane(PaneEvent::Spawned {
            iteration,
            process: ProcessStamp {
                pid: 77,
                start_time: "x".to_owned(),
            },
            new_ids: new_ids(number + 1),
        }))?;
        self.update(Event::Agent(AgentEvent::SessionStarted {
            session: session(number),
            source: if self.resumes {
                StartSource::Resume
            } else {
                StartSource::Startup
            },
            model: None,
            transcript_path: None,
            prompt_cache: None,
        }))?;
        self.update(Event::Pane(PaneEvent::PasteModeSet { on: true }))?;
        self.update(Event::Pane(PaneEvent::PromptBoxSeen(PromptBox::Empty)))
    }

    /// The human gives a prompt.
    pub fn prompted(&mut self, prompt: &str) -> Outcome<()> {
        let session = session(self.number);
        self.update(Event::Agent(AgentEvent::PromptSubmitted {
            session,
            prompt: prompt.to_owned(),
            transcript_path: None,
        }))
    }

    /// The turn is over.
    pub fn turn_ended(&mut self, last: Option<&str>) -> Outcome<()> {
        self.update(Event::Agent(AgentEvent::TurnEnded {
            session: session(self.number),
            last_message: last.map(str::to_owned),
            background: Background::default(),
            transcript_path: None,
        }))
    }

    /// Has the transcript read, as the product reads it: on a thread of its own, by its own follower.
    pub fn read(&mut self) -> Outcome<()> {
        let (order, orders) = std_mpsc::channel();
        let (events, mut received) = mpsc::channel(1_024);
        // What stood there before a resumed session began is history.
        let history = if self.resumes {
            fs::metadata(&self.transcript)?.len()
        } else {
            0
        };
        let session = session(self.number);
        order.send(FollowCommand::Follow(
            session,
            self.transcript.clone(),
            history,
        ))?;
        drop(order);
        let reader = std::thread::spawn(move || follow(&orders, &events));
        while let Some(event) = received.blocking_recv() {
            self.update(event)?;
        }
        reader
            .join()
            .map_err(|_| "the follower has panicked".into())
    }

    /// Has what is new in the transcript read by a follower that stays.
    pub fn follow_on(&mut self) -> Outcome<()> {
        let mut follower = if let Some(follower) = self.follower.take() {
            follower.order.send(FollowCommand::Grown)?;
            follower
        } else {
            let (order, orders) = std_mpsc::channel();
            let (reported, events) = mpsc::channel(1_024);
            order.send(FollowCommand::Follow(
                session(self.number),
                self.transcript.clone(),
                0,
            ))?;
            std::thread::spawn(move || follow(&orders, &reported));
            Follower { order, events }
        };
        // The last report of a reading has reached the end of the file.
        loop {
            let event = follower.events.blocking_recv();
            let event = event.ok_or("the follower has gone")?;
            let whole = match &event {
                Event::Read(ReadEvent::Transcript { facts, .. }) => facts.whole,
                _ => false,
            };
            self.update(event)?;
            if whole {
                break;
            }
        }
        self.follower = Some(follower);
        Ok(())
    }

    /// Closes the review.
    pub fn put_off(&mut self) -> Outcome<()> {
        self.press(KeyCode::Esc)
    }

    /// The handoff as it would be sent now: a person asks for a reboot and looks at it.
    pub fn handoff(&mut self) -> Outcome<String> {
        self.press(KeyCode::F(5))?;
        self.update(Event::Read(ReadEvent::Git(GitState::NoRepository)))?;
        self.update(Event::Read(ReadEvent::HandoffFiles(Box::default())))?;
        Ok(self.model.draft.handoff.current().text.clone())
    }

    /// Reboots into a session that is written to this transcript; gives the prompt that it begins with.
    pub fn reboot(&mut self, transcript: &Path) -> Outcome<String> {
        self.handoff()?;
        self.press(KeyCode::Enter)?;
        if !std::mem::take(&mut self.ending) {
            return Err("the product does not end the old agent".into());
        }
        let iteration = self.model.session.iteration();
        self.update(Event::Pane(PaneEvent::Exited {
            iteration,
            exit: Exit::Code(0),
        }))?;
        let start = self.started.take();
        let start = start.ok_or("the product does not start a new agent")?;
        self.number += 1;
        self.resumes = false;
        transcript.clone_into(&mut self.transcript);
        self.begin_session()?;
        let prompt = start.prompt.ok_or("the new agent gets no handoff")?;
        self.prompted(&prompt)?;
        Ok(prompt)
    }

    fn press(&mut self, code: KeyCode) -> Outcome<()> {
        let event = KeyEvent::new(code, KeyModifiers::NONE);
        let raw = vec![b'?'];
        self.update(Event::Host(HostEvent::Input(HostInput::Key { event, raw })))
    }

    /// Takes an event and does what follows from it.
    fn update(&mut self, event: Event) -> Outcome<()> {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            self.since_start += Duration::from_secs(1);
            let wall = DateTime::from_timestamp(BEGAN, 0).unwrap_or_default() + self.since_start;
            let at = At {
                since_start: self.since_start,
                asleep: Duration::ZERO,
                wall,
                zone: clock::UTC,
            };
            for effect in app::update(&mut self.model, at, event) {
                events.extend(self.answer(effect)?);
            }
        }
        Ok(())
    }

    fn answer(&mut self, effect: Effect) -> Outcome<Option<Event>> {
        let answer = match effect {
            Effect::Journal(entry) => Event::Store(StoreEvent::Journaled {
                reboot: entry.reboot_id,
                step: entry.step,
            }),
            Effect::Prepare(preparation) => Event::Read(ReadEvent::Prepared {
                attempt: preparation.attempt,
                refused: None,
            }),
            Effect::WriteScratchpad { text, .. } => Event::Read(ReadEvent::ScratchpadSaved(text)),
            Effect::Summarize { id, .. } => {
                let history = read_history(&self.transcript, None, &AtomicBool::new(false))?;
                let read = if history.is_empty() {
                    Err("nothing was said yet".to_owned())
                } else {
                    Ok(())
                };
                Event::Read(ReadEvent::TranscriptRead { id, read })
            }
            Effect::KeepDraft(text) => Event::Read(ReadEvent::DraftKept(text)),
            Effect::ReadPromptBox => Event::Pane(PaneEvent::PromptBoxSeen(
                self.model.session.agent.prompt_box.clone(),
            )),
            Effect::Signal(_) => {
                self.ending = true;
                return Ok(None);
            }
            Effect::Start(start) => {
                self.started = Some(start);
                return Ok(None);
            }
            _ => return Ok(None),
        };
        Ok(Some(answer))
    }
}
