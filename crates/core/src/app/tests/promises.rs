//! Two promises as properties: the screen is true, and a handoff arrives exactly once. What a person, the agent, the disk and the
//! clock do comes in any order, with kills between; a stand-in for the world knows what is so.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, VecDeque},
};

use proptest::{prelude::*, test_runner::TestRunner};

use super::*;
use crate::{
    app::{
        self,
        reboot::{Approval, Banner, RebootAction, act, banner, blocked_by, is_quiet},
    },
    guard::Level,
    lineage::{
        Cause, IterationId,
        journal::{Evidence, JournalEntry, Marker as Told, Recovery, recover},
    },
};
use pitstop_agent::{EndReason as SessionEnd, ToolCall, ToolOutput};
use pitstop_handoff::{Handoff, Marker};

/// Something that happens, if it can at that moment.
#[derive(Clone, Debug)]
enum Happening {
    /// A person submits a prompt.
    Prompt,
    /// The turn ends, and leaves a task in the background or not.
    TurnEnds(bool),
    /// The agent asks a question.
    Asks,
    /// The question is answered.
    Answered,
    /// A person writes a draft that can be read, or one that cannot.
    Draft(bool),
    /// The draft is cleared.
    NoDraft,
    /// The client reports how full its context is.
    Used(u64),
    /// `/clear`: another session in the same process.
    Cleared,
    Key(KeyCode),
    Order(Control),
    /// What was written ahead first is on disk.
    Journaled,
    /// What the new agent needs is there, or not.
    Prepared(bool),
    /// Git and the files have been read.
    Git,
    /// Time goes by, and the timers with it.
    Later(u64),
    /// The agent dies.
    Dies,
    /// From here on it obeys signals, or only the last.
    Obeys(bool),
    /// The ordered process runs, or cannot be started.
    Spawned(bool),
    /// It shows an empty prompt box.
    Greets,
    /// It takes the prompt that it was started with.
    Takes,
    /// pitstop is killed and started again; whether what it was writing got to the disk.
    Killed(bool),
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    use Happening::*;
    let key = |code| Just(Key(code));
    let one = prop_oneof![
        3 => Just(Prompt),
        4 => prop::bool::weighted(0.2).prop_map(TurnEnds),
        1 => Just(Asks),
        2 => Just(Answered),
        1 => prop::bool::weighted(0.7).prop_map(Draft),
        2 => Just(NoDraft),
        4 => prop::sample::select(vec![50_000, 130_000, 155_000, 179_000]).prop_map(Used),
        1 => Just(Cleared),
        4 => key(KeyCode::F(5)),
        4 => key(KeyCode::Enter),
        1 => key(KeyCode::Esc),
        1 => key(KeyCode::Char('d')),
        2 => key(KeyCode::F(7)),
        1 => key(KeyCode::Char('x')),
        1 => prop::sample::select(vec![
            Control::Reboot, Control::Approve, Control::Defer, Control::Pause, Control::Resume, Control::Undo,
        ]).prop_map(Order),
        12 => Just(Journaled),
        5 => prop::bool::weighted(0.9).prop_map(Prepared),
        5 => Just(Git),
        6 => prop::sample::select(vec![200, 1_000, 4_000, 11_000, 30_000]).prop_map(Later),
        1 => Just(Dies),
        1 => any::<bool>().prop_map(Obeys),
        6 => prop::bool::weighted(0.9).prop_map(Spawned),
        5 => Just(Greets),
        5 => Just(Takes),
        1 => any::<bool>().prop_map(Killed),
    ];
    prop::collection::vec(one, 1..90)
}

/// The agent's process, as it really is.
#[derive(Debug)]
struct Agent {
    iteration: IterationId,
    session: SessionId,
    /// Whether pitstop knows that it runs.
    reported: bool,
    /// The prompt that it was started with, until it takes it.
    prompt: Option<String>,
    greeted: bool,
    turn: bool,
    asks: bool,
    background: bool,
    box_now: PromptBox,
    /// How full the client has said that it is.
    used: Option<Tokens>,
}

/// All that is outside of the core.
struct World {
    bench: Bench,
    agent: Option<Agent>,
    obeys: bool,
    /// What is being written ahead, oldest first.
    writing: VecDeque<JournalEntry>,
    /// What stands in the journal.
    journal: Option<JournalEntry>,
    preparing: VecDeque<u64>,
    /// The reboots for which everything was there.
    prepared: BTreeSet<u64>,
    /// The reboots whose end of the old agent is on disk.
    ending: BTreeSet<Uuid>,
    /// The reboots that a person has approved.
    wanted: BTreeSet<Uuid>,
    timers: Vec<(TimerId, Duration)>,
    /// How often each handoff has arrived, and where.
    arrived: BTreeMap<String, Vec<SessionId>>,
    /// Sessions that have a transcript.
    spoken: BTreeSet<SessionId>,
    count: u128,
    /// What the core is still to hear.
    events: VecDeque<Event>,
    telling: bool,
    /// Whether pitstop has left.
    over: bool,
    seen: Seen,
}

impl World {
    fn new(mode: RebootMode) -> Self {
        let mut world = Self {
            bench: Self::core(mode),
            agent: None,
            obeys: true,
            writing: VecDeque::new(),
            journal: None,
            preparing: VecDeque::new(),
            prepared: BTreeSet::new(),
            ending: BTreeSet::new(),
            wanted: BTreeSet::new(),
            timers: Vec::new(),
            arrived: BTreeMap::new(),
            spoken: BTreeSet::new(),
            count: NEW,
            events: VecDeque::new(),
            telling: false,
            over: false,
            seen: Seen::default(),
        };
        world.begins(|model| app::iteration::begin(model, false, None, None));
        world
    }

    fn core(mode: RebootMode) -> Bench {
        let mut config = Config::default();
        config.summary.generate_summaries = false;
        config.reboot.mode = mode;
        Bench::bare(config)
    }

    fn model(&self) -> &Model {
        &self.bench.model
    }

    fn begins(&mut self, first: impl FnOnce(&mut Model)) {
        first(&mut self.bench.model);
        let effects = self.bench.model.take_effects();
        self.run(effects);
    }

    /// Gives the core what has happened, and what follows of its orders: one event after the other, as the loop does.
    fn send(&mut self, event: Event) {
        self.events.push_back(event);
        if std::mem::replace(&mut self.telling, true) {
            return;
        }
        let mut last = None;
        while let Some(event) = self.events.pop_front() {
            self.tell_one(&event);
            last = Some(event);
        }
        self.telling = false;
        if let Some(last) = last
            && !self.over
        {
            self.check(&last);
        }
    }

    fn tell_one(&mut self, event: &Event) {
        let at = self.bench.at();
        let attempt = self.model().reboot.attempt.as_ref();
        let before = attempt.map(|one| (one.id, one.approved));
        let effects = update(&mut self.bench.model, at, event.clone());
        let model = &self.bench.model;
        if let Some(attempt) = &model.reboot.attempt {
            let begun = before.is_none_or(|(id, _)| id != attempt.id);
            if begun && attempt.is_by_itself() {
                assert!(
                    model.reboot.mode != RebootMode::Manual && !model.reboot.paused,
                    "{event:?}"
                );
            }
            let approved = Some(Approval::Person);
            if attempt.approved == approved && before != Some((attempt.id, approved)) {
                let by_person = matches!(event, Event::Host(_) | Event::ControlAsked { .. });
                assert!(by_person, "a person has approved it by {event:?}");
                self.wanted.insert(attempt.id);
            }
        }
        self.run(effects);
    }

    fn run(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Journal(entry) => self.writing.push_back(*entry),
                Effect::Prepare(preparation) => self.preparing.push_back(preparation.attempt),
                Effect::ReadPromptBox => {
                    let seen = self.model().session.agent.prompt_box.clone();
                    self.send(Event::Pane(PaneEvent::PromptBoxSeen(seen)));
                }
                Effect::WriteScratchpad { text, .. } => {
                    self.send(Event::Read(ReadEvent::ScratchpadSaved(text)));
                }
                Effect::Signal(signal) => self.signalled(signal),
                Effect::Type(bytes) => self.typed(&bytes),
                Effect::Paste(pieces) => self.pasted(&pieces.concat()),
                Effect::Start(start) => self.starts(start),
                Effect::SetTimer(id, after) => {
                    self.timers.retain(|(other, _)| *other != id);
                    self.timers.push((id, self.bench.since_start + after));
                }
                Effect::Quit(_) => self.over = true,
                _ => {}
            }
        }
    }

    /// The old agent is touched: everything that the new one needs is there, the step is on disk, and someone wants it.
    fn touched(&self, how: &str) {
        let Some(attempt) = &self.model().reboot.attempt else {
            panic!("{how} without a reboot");
        };
        // A restart has no agent to lose.
        if attempt.kind == Kind::Restart {
            return;
        }
        assert!(
            self.prepared.contains(&attempt.epoch),
            "{how}: nothing is prepared"
        );
        if !attempt.kind.is_reboot() {
            return;
        }
        assert!(self.ending.contains(&attempt.id), "{how}: not on disk");
        match attempt.approved {
            Some(Approval::Person) => {
                assert!(self.wanted.contains(&attempt.id), "{how}: no one wants it");
            }
            Some(Approval::Auto) => {
                let entered = |step| attempt.entered.iter().find(|(one, _)| *one == step);
                let [shown, gone] =
                    [Step::Review, Step::Preparing].map(|step| entered(step).unwrap().1);
                let delay = self.model().config.reboot.auto_delay;
                assert!(gone.since(shown) >= delay, "{how}: too early");
            }
            None => panic!("{how}: no one has approved it"),
        }
    }

    fn signalled(&mut self, signal: StopSignal) {
        self.touched(signal.word());
        if self.obeys || signal == StopSignal::Kill {
            self.dies();
        }
    }

    fn dies(&mut self) {
        let Some(agent) = self.agent.take() else {
            return;
        };
        if agent.reported {
            let exit = Exit::Code(0);
            self.send(Event::Pane(PaneEvent::Exited {
                iteration: agent.iteration,
                exit,
            }));
        } else {
            let why = "it ended".to_owned();
            self.send(Event::Pane(PaneEvent::SpawnFailed {
                iteration: agent.iteration,
                why,
            }));
        }
    }

    fn typed(&mut self, bytes: &[u8]) {
        if bytes == b"\x1b" {
            self.touched("Escape");
            return;
        }
        let Some(agent) = &mut self.agent else { return };
        if let PromptBox::Holds(draft) = std::mem::replace(&mut agent.box_now, PromptBox::Empty) {
            let text = draft.rows.join("\n");
            self.takes(text);
        }
    }

    fn pasted(&mut self, text: &str) {
        let Some(agent) = &mut self.agent else { return };
        assert_eq!(agent.box_now, PromptBox::Empty, "it is joined to a draft");
        agent.box_now = holds(text);
        self.sees_box();
    }

    fn sees_box(&mut self) {
        let Some(agent) = &self.agent else { return };
        let seen = if agent.asks {
            PromptBox::Absent
        } else {
            agent.box_now.clone()
        };
        self.send(Event::Pane(PaneEvent::PromptBoxSeen(seen)));
    }

    fn starts(&mut self, start: StartAgent) {
        assert!(
            self.agent.is_none(),
            "two agents: {start:?} beside {:?}",
            self.agent
        );
        self.agent = Some(Agent {
            iteration: start.iteration,
            session: start.session,
            reported: false,
            prompt: start.prompt,
            greeted: false,
            turn: false,
            asks: false,
            background: false,
            box_now: PromptBox::Empty,
            used: None,
        });
    }

    /// The agent takes a prompt.
    fn takes(&mut self, prompt: String) {
        let Some(agent) = &mut self.agent else { return };
        let session = agent.session;
        agent.turn = true;
        agent.background = false;
        self.spoken.insert(session);
        if let Some(marker) = Marker::read(&prompt) {
            let arrived = self.arrived.entry(marker.nonce).or_default();
            arrived.push(session);
            assert_eq!(arrived.len(), 1, "a handoff arrives twice: {arrived:?}");
        }
        self.send(Event::Agent(AgentEvent::PromptSubmitted {
            session,
            prompt,
            transcript_path: None,
        }));
        self.sees_box();
    }

    fn happens(&mut self, happening: &Happening) {
        if self.over {
            return;
        }
        if let Some(agent) = self.agent.as_ref().filter(|agent| agent.greeted) {
            let (idle, turn, asks) = (!agent.turn && !agent.asks, agent.turn, agent.asks);
            let session = agent.session;
            let empty = agent.box_now == PromptBox::Empty;
            match happening {
                Happening::Prompt if idle && empty && agent.prompt.is_none() => {
                    return self.takes("go on".to_owned());
                }
                Happening::TurnEnds(task) if turn && !asks => return self.turn_ends(*task),
                Happening::Asks if turn && !asks => {
                    self.change(|agent| agent.asks = true);
                    let about = "Bash".to_owned();
                    self.send(Event::Agent(AgentEvent::DialogOpened { session, about }));
                    return self.sees_box();
                }
                Happening::Answered if asks => {
                    self.change(|agent| agent.asks = false);
                    let call = ToolCall {
                        name: "Bash".to_owned(),
                        ..ToolCall::default()
                    };
                    let output = ToolOutput::default();
                    self.send(Event::Agent(AgentEvent::ToolFinished {
                        session,
                        call,
                        output,
                    }));
                    return self.sees_box();
                }
                Happening::Draft(whole) if empty && !asks => {
                    let mut draft = holds("my own words");
                    if let PromptBox::Holds(draft) = &mut draft {
                        draft.whole = *whole;
                    }
                    self.change(|agent| agent.box_now = draft);
                    return self.sees_box();
                }
                Happening::NoDraft if !empty && !self.model().session.submission.is_open() => {
                    self.change(|agent| agent.box_now = PromptBox::Empty);
                    return self.sees_box();
                }
                Happening::Used(used) if turn || idle => return self.used(*used),
                Happening::Cleared if idle && empty && agent.prompt.is_none() => {
                    return self.cleared();
                }
                _ => {}
            }
        }
        self.happens_to_us(happening);
    }

    fn happens_to_us(&mut self, happening: &Happening) {
        match happening {
            Happening::Key(code) => {
                let event = KeyEvent::new(*code, KeyModifiers::NONE);
                let raw = Vec::new();
                self.send(Event::Host(HostEvent::Input(HostInput::Key { event, raw })));
            }
            Happening::Order(control) => {
                let (call, control) = (CallId(1), control.clone());
                self.send(Event::ControlAsked { call, control });
            }
            Happening::Journaled => self.journaled(),
            Happening::Prepared(there) => {
                let Some(attempt) = self.preparing.pop_front() else {
                    return;
                };
                if *there {
                    self.prepared.insert(attempt);
                }
                let refused = (!there).then(|| "the disk is full".to_owned());
                self.send(Event::Read(ReadEvent::Prepared { attempt, refused }));
            }
            Happening::Git => {
                self.send(Event::Read(ReadEvent::Git(GitState::NoRepository)));
                self.send(Event::Read(ReadEvent::HandoffFiles(Box::default())));
            }
            Happening::Later(time) => self.later(Duration::from_millis(*time)),
            Happening::Dies => self.dies(),
            Happening::Obeys(obeys) => self.obeys = *obeys,
            Happening::Spawned(runs) => self.spawned(*runs),
            Happening::Greets => self.greets(),
            Happening::Takes => {
                if let Some(agent) = self.agent.as_mut().filter(|agent| agent.greeted)
                    && let Some(prompt) = agent.prompt.take()
                {
                    self.takes(prompt);
                }
            }
            Happening::Killed(written) => self.killed(*written),
            _ => {}
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut Agent)) {
        if let Some(agent) = &mut self.agent {
            change(agent);
        }
    }

    fn turn_ends(&mut self, task: bool) {
        let Some(agent) = &mut self.agent else { return };
        (agent.turn, agent.background) = (false, task);
        let session = agent.session;
        let background = if task {
            in_background(&["b1"])
        } else {
            Background::default()
        };
        self.send(Event::Agent(AgentEvent::TurnEnded {
            session,
            last_message: None,
            background,
            transcript_path: None,
        }));
    }

    fn used(&mut self, used: u64) {
        self.change(|agent| agent.used = Some(Tokens(used)));
        let reading = Reading {
            used: Tokens(used),
            window: None,
            source: Source::StatusLine,
            at: self.bench.at(),
        };
        self.send(Event::Read(ReadEvent::Estimate(reading)));
    }

    fn cleared(&mut self) {
        self.count += 1;
        let next = session(self.count);
        let Some(agent) = &self.agent else { return };
        let before = agent.session;
        self.send(Event::Agent(AgentEvent::SessionEnded {
            session: before,
            reason: SessionEnd::Clear,
        }));
        self.change(|agent| {
            (agent.session, agent.background, agent.used) = (next, false, None);
        });
        self.send(Event::Agent(AgentEvent::SessionStarted {
            session: next,
            source: StartSource::Clear,
            model: None,
            transcript_path: None,
            prompt_cache: None,
        }));
        // What was full is gone: nothing is under way for its sake, unless a person wants it.
        let attempt = self.model().reboot.attempt.as_ref();
        let left =
            attempt.filter(|one| one.is_by_itself() && one.is_harmless() && one.approved.is_none());
        let seen = self.model().view.overlay == Some(Overlay::Review);
        assert!(left.is_none() || seen, "{left:?}");
    }

    fn journaled(&mut self) {
        let Some(entry) = self.writing.pop_front() else {
            return;
        };
        let (reboot, step) = (entry.reboot_id, entry.step);
        if step == Step::Ending {
            self.ending.insert(reboot);
        }
        self.seen.rolled_back += u32::from(step == Step::RollingBack);
        self.journal = Some(entry);
        self.send(Event::Store(StoreEvent::Journaled { reboot, step }));
    }

    fn later(&mut self, time: Duration) {
        let end = self.bench.since_start + time;
        // A timer may set the next one.
        for _ in 0..50 {
            let due = self
                .timers
                .iter()
                .enumerate()
                .filter(|(_, (_, at))| *at <= end);
            let Some(next) = due.min_by_key(|(_, (_, at))| *at).map(|(place, _)| place) else {
                break;
            };
            let (id, at) = self.timers.swap_remove(next);
            self.bench.since_start = self.bench.since_start.max(at);
            self.send(Event::TimerFired(id));
        }
        self.bench.since_start = end;
        self.send(Event::TimerFired(TimerId::Age));
    }

    fn spawned(&mut self, runs: bool) {
        let Some(agent) = self.agent.as_mut().filter(|agent| !agent.reported) else {
            return;
        };
        if !runs {
            return self.dies();
        }
        agent.reported = true;
        let iteration = agent.iteration;
        self.count += 1;
        let process = ProcessStamp {
            pid: 77,
            start_time: "x".to_owned(),
        };
        let new_ids = new_ids(self.count);
        self.send(Event::Pane(PaneEvent::Spawned {
            iteration,
            process,
            new_ids,
        }));
    }

    fn greets(&mut self) {
        let Some(agent) = self
            .agent
            .as_mut()
            .filter(|agent| agent.reported && !agent.greeted)
        else {
            return;
        };
        agent.greeted = true;
        let session = agent.session;
        self.send(Event::Agent(AgentEvent::SessionStarted {
            session,
            source: StartSource::Startup,
            model: None,
            transcript_path: None,
            prompt_cache: None,
        }));
        self.send(Event::Pane(PaneEvent::PasteModeSet { on: true }));
        self.sees_box();
    }

    /// Everything in memory is gone, the agent dies with it, and the next start decides by what is on disk.
    fn killed(&mut self, written: bool) {
        if written && let Some(last) = self.writing.back() {
            self.journal = Some(last.clone());
        }
        self.agent = None;
        self.writing.clear();
        self.preparing.clear();
        self.prepared.clear();
        self.timers.clear();
        let mode = self.model().reboot.mode;
        let since_start = self.bench.since_start;
        self.bench = Self::core(mode);
        self.bench.since_start = since_start;
        self.count += 2;
        self.bench.model.session.id = session(self.count - 1);
        self.bench.model.reboot.new_ids = new_ids(self.count);
        // A supervisor drafts with ids of its own from the start.
        app::handoff::draft(&mut self.bench.model);
        let entry = self.journal.take();
        let Some((entry, recovery)) = entry.map(|entry| (entry.clone(), self.decided(&entry)))
        else {
            return self.begins(|model| app::iteration::begin(model, false, None, None));
        };
        self.seen.cut_short += u32::from(recovery != Recovery::Nothing);
        let finished = matches!(
            recovery,
            Recovery::FinishDeliver { .. } | Recovery::FinishResume { .. }
        );
        self.seen.finished += u32::from(finished);
        let resumed = |model: &mut Model, session| {
            model.session.id = session;
            app::iteration::begin(model, true, Some(Cause::Recovery), None);
        };
        match recovery {
            Recovery::Nothing | Recovery::RollBack { resume: None } => {
                self.begins(|model| app::iteration::begin(model, false, None, None));
            }
            Recovery::RollBack {
                resume: Some(session),
            }
            | Recovery::FinishResume { session } => {
                self.begins(|model| resumed(model, session));
            }
            Recovery::FinishDeliver { session } => {
                let new = session.unwrap_or(self.bench.model.session.id);
                self.wanted.insert(entry.reboot_id);
                let handoff = Handoff {
                    marker: Marker::read(&entry.handoff).expect("a marker"),
                    text: entry.handoff.clone(),
                    left_out: Vec::new(),
                    warnings: Vec::new(),
                };
                let taken_up = RebootAction::TakeUp(Box::new(entry.clone()), handoff, new);
                self.begins(|model| {
                    assert_eq!(act(model, taken_up), Ok(()));
                });
                // Until it has written its own.
                self.journal = Some(entry);
            }
        }
    }

    fn decided(&self, entry: &JournalEntry) -> Recovery {
        let new = entry.new_session.expect("a session");
        let there = self.arrived.get(&entry.nonce);
        let marker = if there.is_some_and(|there| there.contains(&new)) {
            Told::Seen
        } else if self.spoken.contains(&new) {
            Told::Absent
        } else {
            Told::NoTranscript
        };
        let evidence = Evidence {
            old_resumable: entry
                .old_session
                .is_some_and(|old| self.spoken.contains(&old)),
            marker,
        };
        recover(entry, evidence).recovery
    }

    /// What the screen says is so.
    fn check(&self, event: &Event) {
        let model = self.model();
        let blocks = blocked_by(model);
        if let Some(agent) = self.agent.as_ref().filter(|agent| agent.greeted) {
            let state = model.session.agent.state;
            let reported = || format!("{state:?} after {event:?}: {agent:?}");
            assert!(!agent.turn || state != AgentState::Idle, "{}", reported());
            assert!(
                !agent.asks || !matches!(state, AgentState::Idle | AgentState::Busy),
                "{}",
                reported()
            );
            assert_ne!(state, AgentState::Exited, "{}", reported());
            assert_eq!(model.used(), agent.used, "{}", reported());
            let unreadable = matches!(&agent.box_now, PromptBox::Holds(draft) if !draft.whole);
            let safe = !agent.turn && !agent.asks && !agent.background && !unreadable;
            assert!(safe || !blocks.is_empty(), "called safe: {}", reported());
        } else {
            let state = model.session.agent.state;
            let gone = matches!(state, AgentState::Exited | AgentState::Starting);
            assert!(
                gone || self.agent.is_some(),
                "{state:?} after {event:?}: no agent"
            );
        }
        self.check_banner(event, &blocks);
    }

    /// Whatever holds a reboot back stands on the screen.
    fn check_banner(&self, event: &Event, blocks: &[Block]) {
        let model = self.model();
        if model.view.overlay == Some(Overlay::Review) {
            return;
        }
        let shown = banner(model);
        let reported = || format!("{shown:?} after {event:?}, {:?}", model.reboot.quiet);
        let Some(attempt) = &model.reboot.attempt else {
            let full = model
                .session
                .guard
                .figure(model.now)
                .is_some_and(|figure| figure.level >= Level::Overflow);
            let held = full
                && is_quiet(model)
                && model.reboot.mode != RebootMode::Manual
                && !model.reboot.paused;
            assert_eq!(
                held,
                matches!(shown, Some(Banner::Quiet(..))) && full,
                "{}",
                reported()
            );
            return;
        };
        match attempt.step() {
            Step::Armed | Step::Drafting | Step::Review if attempt.approved.is_none() => {
                assert!(shown.is_some(), "{}", reported());
            }
            Step::Waiting => assert_eq!(shown.is_some(), !blocks.is_empty(), "{}", reported()),
            _ => {}
        }
        if let Some(Banner::CountsDown(_)) = shown {
            assert!(
                model.reboot.mode == RebootMode::Auto && !model.reboot.paused,
                "{}",
                reported()
            );
        }
    }

    /// Everything that is under way comes to its end: then the reboot is over, and what was sent has arrived.
    fn settles(&mut self) {
        self.obeys = true;
        for _ in 0..200 {
            let quiet = self.writing.is_empty() && self.preparing.is_empty();
            let over = self
                .model()
                .reboot
                .attempt
                .as_ref()
                .is_none_or(super::super::reboot::Attempt::is_harmless);
            if self.over || (quiet && over) {
                return;
            }
            for one in [
                Happening::Journaled,
                Happening::Prepared(true),
                Happening::Git,
                Happening::Spawned(true),
                Happening::Greets,
                Happening::Takes,
                Happening::Answered,
                Happening::Later(6_000),
            ] {
                self.happens(&one);
            }
        }
        panic!(
            "it never comes to an end: {:?}",
            self.model().reboot.attempt
        );
    }
}

/// As many as take five seconds unoptimized.
const CASES: u32 = 300;

#[test]
fn the_screen_is_true_and_a_handoff_arrives_once_whatever_happens() {
    let modes = vec![RebootMode::Manual, RebootMode::Ask, RebootMode::Auto];
    let mut runner = TestRunner::new(ProptestConfig {
        cases: CASES,
        source_file: Some(file!()),
        ..ProptestConfig::default()
    });
    let seen = RefCell::new(Seen::default());
    let strategy = (prop::sample::select(modes), happenings());
    let held = runner.run(&strategy, |(mode, happenings)| {
        let mut world = World::new(mode);
        for one in [Happening::Spawned(true), Happening::Greets]
            .iter()
            .chain(&happenings)
        {
            world.happens(one);
        }
        world.settles();
        seen.borrow_mut().add(&world);
        Ok(())
    });
    if let Err(error) = held {
        panic!("{error}");
    }
    let seen = seen.into_inner();
    println!("{CASES} cases: {seen:?}");
    // Else the property would hold for want of reboots.
    assert!(seen.arrived > CASES / 10, "{seen:?}");
    assert!(seen.cut_short > CASES / 50, "{seen:?}");
}

/// How much of what is promised has happened.
#[derive(Debug, Default)]
struct Seen {
    /// Handoffs that have arrived.
    arrived: u32,
    /// Reboots that a kill has cut short.
    cut_short: u32,
    /// Those of them that were finished at the next start.
    finished: u32,
    /// Reboots that were taken back because the new agent did not come up.
    rolled_back: u32,
}

impl Seen {
    fn add(&mut self, world: &World) {
        self.arrived += world.arrived.len() as u32;
        self.cut_short += world.seen.cut_short;
        self.finished += world.seen.finished;
        self.rolled_back += world.seen.rolled_back;
    }
}
