//! Transitions: event in, exact effects and state out.

use std::time::Duration;

use chrono::{TimeZone, Utc};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use uuid::Uuid;

use crate::{
    api::wire::{AgentState, Control, Reply},
    config::{Config, RebootMode},
    guard::{Reading, Source},
    lineage::{
        EndReason, Lineage, ProcessStamp, RunId, TrimRecord, Way,
        checkpoint::Checkpoint,
        journal::{JournalEntry, Step},
    },
};
use pitstop_agent::{
    AgentEvent, AgentKind, Background, BackgroundTask, Failure, StartSource, StatusLine, ToolCall,
    ToolOutput,
    bridge::{Decision, InstanceName, QuestionId},
    claude::prompt_box::{PromptBox, ShownPrompt},
};
use pitstop_base::clock::At;
use pitstop_handoff::{Generator, breakpoint::git::GitState};
use pitstop_terminal::{input::HostInput, screen::ScreenFact};
use pitstop_transcript::{
    SessionId, Tokens,
    todo::{Status, Todo, TodoCall, TodoChange},
    trim::{LEVELS, LevelFigure, TrimPlan},
};

use super::{
    Effect, Event, Model,
    effect::{Preparation, StartAgent, StopSignal},
    event::{CallId, Exit, HostEvent, NewIds, PaneEvent, ReadEvent, StoreEvent, TimerId},
    model::{Beginning, CarryOut, Focus, Identity, Overlay},
    model_of,
    reboot::{Attempt, Block, Kind},
    update,
};

/// The value of the first effect of this pattern.
macro_rules! first {
    ($effects:expr, $pattern:pat $(if $guard:expr)? => $value:expr) => {
        $effects.iter().find_map(|effect| match effect {
            $pattern $(if $guard)? => Some($value),
            _ => None,
        })
    };
}

/// The values of all effects of this pattern, in their order.
macro_rules! all {
    ($effects:expr, $pattern:pat $(if $guard:expr)? => $value:expr) => {
        $effects
            .iter()
            .filter_map(|effect| match effect {
                $pattern $(if $guard)? => Some($value),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
}

/// Whether there is an effect of this pattern.
macro_rules! has {
    ($effects:expr, $($pattern:tt)+) => {
        $effects.iter().any(|effect| matches!(effect, $($pattern)+))
    };
}

mod activity;
mod agent;
mod autopilot;
mod breakpoint;
mod bridge;
mod carried;
mod checkpoint;
mod client_limit;
mod cold_cache;
mod coming_back;
mod compaction;
mod control;
mod cost;
mod daemon;
mod draft;
mod elsewhere;
mod external;
mod feed;
mod forecast;
mod handoff;
mod held;
mod histories;
mod history;
mod hookless;
mod in_place;
mod input;
mod lost_hooks;
mod mouse;
mod needs;
mod on_the_fly;
mod orders;
mod promises;
mod reboot;
mod rewind;
mod scratchpad;
mod submit;
mod summary;
mod tools;
mod tour;
mod trim;

const OLD: u128 = 1;
const NEW: u128 = 2;

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

/// A model with its clock, which answers the journal at once unless it is not to.
pub(super) struct Bench {
    pub(super) model: Model,
    since_start: Duration,
    /// The time for which the machine has slept, and the seconds by which its clock was set.
    asleep: Duration,
    clock_set: i64,
    journal_answers: bool,
    /// Whether unsent prompts are on disk at once.
    draft_answers: bool,
    /// Whether orders to read the transcript are answered at once.
    reads: bool,
    /// Whether the prompt box shows at once what is typed.
    shows: bool,
    /// What was typed into the prompt box since it was empty.
    in_box: String,
    /// What was to be prepared for a reboot.
    prepared: Vec<Preparation>,
    /// Why a reboot cannot be prepared, if so.
    missing: Option<String>,
    /// Why the scratchpad cannot be written, if so.
    disk_error: Option<String>,
    journaled: Vec<Step>,
    /// The same, whole.
    entries: Vec<JournalEntry>,
}

impl Bench {
    /// A person makes this body of the handoff of `base`.
    fn edit_handoff(&mut self, base: &str, body: &str) {
        let follows = self.model.draft.take_edit(base, body);
        follows.carry_out(&mut self.model);
    }

    /// A supervisor whose agent is idle in its first session.
    pub(super) fn new() -> Self {
        Self::with(Config::default())
    }

    fn in_mode(mode: RebootMode) -> Self {
        let mut config = Config::default();
        config.reboot.mode = mode;
        Self::with(config)
    }

    /// No model is asked for summaries, and transcripts have nothing to say.
    fn with(mut config: Config) -> Self {
        config.summary.generate_summaries = false;
        Self::as_configured(config)
    }

    fn as_configured(config: Config) -> Self {
        let mut bench = Self::bare(config);
        super::iteration::begin(&mut bench.model, false, None, None);
        bench.spawned(NEW);
        bench.started(OLD);
        bench.ready();
        bench
    }

    /// A supervisor that has not started its agent yet.
    fn bare(config: Config) -> Self {
        let wall = Utc.timestamp_opt(1_795_000_000, 0).unwrap();
        let now = At {
            since_start: Duration::ZERO,
            asleep: Duration::ZERO,
            wall,
            zone: pitstop_base::clock::UTC,
        };
        let model = model_of(Beginning {
            identity: Identity {
                version: "0",
                pid: 1,
                project: "/p".to_owned(),
                environment: "p".to_owned(),
                agent_kind: AgentKind::Claude,
                agent_command: "claude".to_owned(),
                agent_args: vec!["--model".to_owned(), "opus".to_owned()],
                todo_tools: true,
            },
            config,
            lineage: Lineage::new(RunId::new(wall, [1, 2, 3])),
            session: session(OLD),
            new_ids: new_ids(NEW),
            notes: "- [ ] next".to_owned(),
            generator: Generator::default(),
            host: (140, 40),
            now,
        });
        Self {
            model,
            since_start: Duration::ZERO,
            asleep: Duration::ZERO,
            clock_set: 0,
            journal_answers: true,
            draft_answers: true,
            reads: true,
            shows: true,
            in_box: String::new(),
            prepared: Vec::new(),
            missing: None,
            disk_error: None,
            journaled: Vec::new(),
            entries: Vec::new(),
        }
    }

    fn at(&self) -> At {
        let seconds = 1_795_000_000 + self.clock_set;
        let wall = Utc.timestamp_opt(seconds, 0).unwrap() + self.since_start + self.asleep;
        At {
            since_start: self.since_start,
            asleep: self.asleep,
            wall,
            zone: pitstop_base::clock::UTC,
        }
    }

    pub(super) fn wait(&mut self, time: Duration) {
        self.since_start += time;
    }

    fn control(&mut self, control: Control) -> Vec<Effect> {
        let call = CallId(1);
        self.send(Event::ControlAsked { call, control })
    }

    /// Takes an event and returns what is to be done, but for the journal, which is answered.
    pub(super) fn send(&mut self, event: Event) -> Vec<Effect> {
        let at = self.at();
        let effects = update(&mut self.model, at, event);
        self.settle(effects)
    }

    /// Answers the journal, and gives back the rest of what is to be done.
    fn settle(&mut self, mut effects: Vec<Effect>) -> Vec<Effect> {
        let mut done = Vec::new();
        let at = self.at();
        while !effects.is_empty() {
            let mut answers = Vec::new();
            for effect in effects {
                match effect {
                    Effect::Journal(entry) => {
                        self.journaled.push(entry.step);
                        self.entries.push((*entry).clone());
                        let (reboot, step) = (entry.reboot_id, entry.step);
                        if self.journal_answers {
                            answers.push(Event::Store(StoreEvent::Journaled { reboot, step }));
                        }
                    }
                    Effect::Prepare(preparation) => {
                        answers.push(Event::Read(ReadEvent::Prepared {
                            attempt: preparation.attempt,
                            refused: self.missing.clone(),
                        }));
                        self.prepared.push(*preparation);
                    }
                    Effect::KeepDraft(text) => {
                        if self.draft_answers {
                            answers.push(Event::Read(ReadEvent::DraftKept(text.clone())));
                        }
                        done.push(Effect::KeepDraft(text));
                    }
                    Effect::ReadPromptBox => {
                        let seen = self.model.session.agent.prompt_box.clone();
                        answers.push(Event::Pane(PaneEvent::PromptBoxSeen(seen)));
                    }
                    Effect::WriteScratchpad { base, text } => {
                        let read = match &self.disk_error {
                            Some(why) => ReadEvent::ScratchpadNotSaved(why.clone()),
                            None => ReadEvent::ScratchpadSaved(text.clone()),
                        };
                        answers.push(Event::Read(read));
                        done.push(Effect::WriteScratchpad { base, text });
                    }
                    Effect::Summarize { id, ask: false } if self.reads => {
                        let read = Err("nothing was said yet".to_owned());
                        answers.push(Event::Read(ReadEvent::TranscriptRead { id, read }));
                    }
                    Effect::Paste(pieces) => {
                        if self.shows && !self.model.is_generic() {
                            if self.model.session.agent.prompt_box == PromptBox::Empty {
                                self.in_box.clear();
                            }
                            self.in_box.push_str(&pieces.concat());
                            let shown = holds(&self.in_box);
                            answers.push(Event::Pane(PaneEvent::PromptBoxSeen(shown)));
                        }
                        done.push(Effect::Paste(pieces));
                    }
                    effect => done.push(effect),
                }
            }
            effects = answers
                .into_iter()
                .flat_map(|answer| update(&mut self.model, at, answer))
                .collect();
        }
        done
    }

    fn spawned(&mut self, next: u128) -> Vec<Effect> {
        let iteration = self.model.session.iteration();
        let process = ProcessStamp {
            pid: 77,
            start_time: "x".to_owned(),
        };
        self.send(Event::Pane(PaneEvent::Spawned {
            iteration,
            process,
            new_ids: new_ids(next),
        }))
    }

    fn exited(&mut self, code: u32) -> Vec<Effect> {
        let iteration = self.model.session.pane();
        self.send(Event::Pane(PaneEvent::Exited {
            iteration,
            exit: Exit::Code(code),
        }))
    }

    fn started(&mut self, number: u128) -> Vec<Effect> {
        self.session_starts(number, StartSource::Startup)
    }

    fn resumed(&mut self, number: u128) -> Vec<Effect> {
        self.session_starts(number, StartSource::Resume)
    }

    fn session_starts(&mut self, number: u128, source: StartSource) -> Vec<Effect> {
        self.send(Event::Agent(AgentEvent::SessionStarted {
            session: session(number),
            source,
            model: None,
            transcript_path: None,
            prompt_cache: None,
        }))
    }

    /// The agent shows an empty prompt box.
    fn ready(&mut self) -> Vec<Effect> {
        self.send(Event::Pane(PaneEvent::PasteModeSet { on: true }));
        self.prompt_box(PromptBox::Empty)
    }

    fn prompt_box(&mut self, prompt_box: PromptBox) -> Vec<Effect> {
        self.send(Event::Pane(PaneEvent::PromptBoxSeen(prompt_box)))
    }

    fn titled(&mut self, text: &str) -> Vec<Effect> {
        let title = ScreenFact::Title(text.to_owned());
        self.send(Event::Pane(PaneEvent::Screen(title)))
    }

    /// Title and prompt box stand for long enough.
    fn stands(&mut self) -> Vec<Effect> {
        self.wait(Duration::from_secs(4));
        let epoch = self.model.session.calm_epoch;
        self.send(Event::TimerFired(TimerId::Calm(epoch)))
    }

    #[track_caller]
    fn is_idle_after(&self, turns: u32) {
        let agent = &self.model.session.agent;
        assert_eq!((agent.state, agent.turns), (AgentState::Idle, turns));
    }

    fn state(&self) -> AgentState {
        self.model.session.agent.state
    }

    fn prompted(&mut self, number: u128, prompt: &str) -> Vec<Effect> {
        let effects = self.send(Event::Agent(AgentEvent::PromptSubmitted {
            session: session(number),
            prompt: prompt.to_owned(),
            transcript_path: None,
        }));
        if matches!(self.model.session.agent.prompt_box, PromptBox::Holds(_)) && self.shows {
            self.prompt_box(PromptBox::Empty);
        }
        effects
    }

    fn turn_ended(&mut self, number: u128) -> Vec<Effect> {
        self.left(number, None, Background::default())
    }

    /// A turn ends with these words.
    fn said(&mut self, number: u128, message: &str) -> Vec<Effect> {
        self.left(number, Some(message), Background::default())
    }

    /// A turn ends with these words, if any, and with this in the background.
    fn left(&mut self, number: u128, said: Option<&str>, background: Background) -> Vec<Effect> {
        self.send(Event::Agent(AgentEvent::TurnEnded {
            session: session(number),
            last_message: said.map(str::to_owned),
            background,
            transcript_path: None,
        }))
    }

    fn failed(&mut self, failure: Failure, message: &str) -> Vec<Effect> {
        self.send(Event::Agent(AgentEvent::TurnFailed {
            session: session(OLD),
            failure,
            message: message.to_owned(),
        }))
    }

    fn asks(&mut self, about: &str) -> Vec<Effect> {
        self.send(Event::Agent(AgentEvent::DialogOpened {
            session: session(OLD),
            about: about.to_owned(),
        }))
    }

    fn shell(&mut self, command: &str, stdout: &str) -> Vec<Effect> {
        let call = ToolCall {
            name: "Bash".to_owned(),
            command: Some(command.to_owned()),
            ..ToolCall::default()
        };
        self.tool(call, stdout)
    }

    fn edit(&mut self, file: &str) -> Vec<Effect> {
        let call = ToolCall {
            name: "Edit".to_owned(),
            file: Some(file.to_owned()),
            ..ToolCall::default()
        };
        self.tool(call, "")
    }

    /// The agent changes its to-do list.
    fn plans(&mut self, change: TodoCall) -> Vec<Effect> {
        let call = ToolCall {
            name: "TodoWrite".to_owned(),
            todo: Some(Box::new(change)),
            ..ToolCall::default()
        };
        self.tool(call, "")
    }

    fn tool(&mut self, call: ToolCall, stdout: &str) -> Vec<Effect> {
        let output = ToolOutput {
            stdout: stdout.to_owned(),
            ..ToolOutput::default()
        };
        self.tool_ran(call, output)
    }

    fn tool_ran(&mut self, call: ToolCall, output: ToolOutput) -> Vec<Effect> {
        let session = self.model.session.id;
        self.send(Event::Agent(AgentEvent::ToolFinished {
            session,
            call,
            output,
        }))
    }

    pub(in crate::app) fn used(&mut self, used: u64) -> Vec<Effect> {
        self.reading(used, None, Source::StatusLine)
    }

    fn reading(&mut self, used: u64, window: Option<u64>, source: Source) -> Vec<Effect> {
        let reading = Reading {
            used: Tokens(used),
            window: window.map(Tokens),
            source,
            at: self.at(),
        };
        self.send(Event::Read(ReadEvent::Estimate(reading)))
    }

    fn press(&mut self, code: KeyCode) -> Vec<Effect> {
        self.key(code, KeyModifiers::NONE)
    }

    fn key(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Vec<Effect> {
        let event = KeyEvent::new(code, modifiers);
        self.send(Event::Host(HostEvent::Input(HostInput::Key {
            event,
            raw: vec![b'?'],
        })))
    }

    fn git(&mut self) -> Vec<Effect> {
        let mut effects = self.send(Event::Read(ReadEvent::Git(GitState::NoRepository)));
        effects.extend(self.send(Event::Read(ReadEvent::HandoffFiles(Box::default()))));
        effects
    }

    /// A person opens the review, and its sources are read.
    fn review(&mut self) -> Vec<Effect> {
        self.press(KeyCode::F(5));
        self.git()
    }

    /// The review is opened and approved.
    fn approve(&mut self) -> Vec<Effect> {
        let mut effects = self.review();
        effects.extend(self.press(KeyCode::Enter));
        effects
    }

    /// The reboot is done, and has gone through all steps but these.
    #[track_caller]
    fn is_done_without(&self, left_out: &[Step]) {
        let all = Step::ALL.iter().take_while(|step| **step <= Step::Done);
        let gone = all.filter(|step| !left_out.contains(step));
        assert!(self.journaled.iter().eq(gone), "{:?}", self.journaled);
    }

    fn ended(&self, iteration: usize) -> Option<EndReason> {
        self.model.lineage.iterations()[iteration].end_reason
    }

    fn step(&self) -> Option<Step> {
        self.model.reboot.attempt.as_ref().map(Attempt::step)
    }

    /// Goes as far as the order to start the new agent, and returns it.
    fn rebooted(&mut self) -> StartAgent {
        self.approve();
        let start = starts(&self.exited(0)).pop();
        start.expect("the old agent is gone: the new one is started")
    }

    /// Goes on until the handoff has arrived in the new session; returns what that brings about.
    fn rebooted_to_new(&mut self) -> Vec<Effect> {
        let start = self.rebooted();
        self.spawned(3);
        self.started(NEW);
        self.prompted(NEW, &start.prompt.expect("the handoff"))
    }
}

/// A call that sets the agent's whole to-do list.
pub(super) fn list(id: &str, entries: &[(&str, Status)]) -> TodoCall {
    let entry = |(text, status): &(&str, Status)| Todo {
        id: None,
        text: (*text).to_owned(),
        status: *status,
    };
    TodoCall {
        id: Some(id.to_owned()),
        change: TodoChange::List(entries.iter().map(entry).collect()),
    }
}

/// A prompt box that holds this text.
fn holds(text: &str) -> PromptBox {
    PromptBox::Holds(ShownPrompt {
        rows: text.split('\n').map(str::to_owned).collect(),
        whole: true,
        scrolled: None,
        room: 1_000,
    })
}

/// Subagents in the background, by their ids.
fn in_background(ids: &[&str]) -> Background {
    let task = |id: &&str| BackgroundTask {
        id: (*id).to_owned(),
        kind: "subagent".to_owned(),
    };
    Background {
        tasks: ids.iter().map(task).collect(),
        ..Background::default()
    }
}

/// A status line that says nothing but whose it is.
fn status_line(number: u128) -> StatusLine {
    StatusLine {
        session: session(number),
        ..StatusLine::default()
    }
}

/// A question of the client's own side.
fn question(number: u64) -> QuestionId {
    let instance = InstanceName("asks".to_owned());
    QuestionId { instance, number }
}

/// What was decided, about which question.
fn decisions(effects: &[Effect]) -> Vec<(u64, Decision)> {
    all!(effects, Effect::AnswerQuestion { id, decision } => (id.number, decision.clone()))
}

fn signals(effects: &[Effect]) -> Vec<StopSignal> {
    all!(effects, Effect::Signal(signal) => *signal)
}

/// What is kept of the prompt box, one after the other.
fn kept(effects: &[Effect]) -> Vec<Option<String>> {
    all!(effects, Effect::KeepDraft(text) => text.clone())
}

fn saved(effects: &[Effect]) -> Vec<Checkpoint> {
    all!(effects, Effect::SaveCheckpoint(one) => (**one).clone())
}

fn starts(effects: &[Effect]) -> Vec<StartAgent> {
    all!(effects, Effect::Start(start) => start.clone())
}

/// What the one who gave an order by `ctl` gets as an answer.
pub(super) fn ordered(effects: &[Effect]) -> &str {
    match effects.first() {
        Some(Effect::Answer(_, Reply::Ordered(reply))) => &reply.message,
        other => panic!("the order was not carried out: {other:?}"),
    }
}
