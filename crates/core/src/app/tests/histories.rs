//! Random histories of a lineage beside a model of what was said: nothing is lost, and nothing comes back that was taken back.
//!
//! A supervisor is ended and killed, and another one goes on from what the store has. What was preserved is compared after each
//! step with what the model says must stand, by kind and word for word.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{
    prelude::*,
    test_runner::{Config as Runs, TestRunner},
};

use crate::{
    api::wire::CheckpointBody,
    app::{
        carried,
        draft::handoff,
        event::{ReadEvent, TranscriptFacts},
        facts::goes_on_the_fly,
        model::carried::Carried,
        reboot::in_place,
        tests::{
            in_place::{reads_draft, replaces},
            on_the_fly::turn,
            trim::{copies, good_plan, surveys, trim_record},
        },
    },
    lineage::{Way, checkpoint::Checkpoint},
};
use pitstop_agent::bridge::{Outcome, ReplaceWhen, Said as Told, UnsentPrompt};
use pitstop_transcript::human::{HumanWords, Said};

use super::*;

/// What is done next; a number chooses among what there is to choose from.
#[derive(Clone, Debug)]
enum Happening {
    /// A person gives a prompt, and the agent's answer has some signals.
    Turn(Vec<Signal>),
    /// A person takes a prompt of theirs out of the handoff.
    PromptTakenOut(usize),
    /// A reboot while the agent waits for a prompt.
    Reboot(Way),
    /// A reboot in the middle of a turn, which goes on.
    RebootOnTheFly(Vec<Signal>),
    /// The last reboot into another session is taken back.
    Undo,
    /// pitstop is left by its key, or killed; then it resumes the session.
    Quit,
    Killed,
    /// A checkpoint is saved, or the last one restored in a new process.
    Saved,
    Restored,
    /// The client is rewound to before one of the session's prompts.
    Rewound(usize),
    /// Another session of the lineage is resumed inside the client.
    Resumed(usize),
}

#[derive(Clone, Copy, Debug)]
enum Signal {
    Decision,
    Rejected,
    ToDo,
    Done(usize),
    Issue,
    Resolved(usize),
    State(u8),
    Objective,
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    use Happening::*;
    let signal = prop_oneof![
        3 => Just(Signal::Decision),
        1 => Just(Signal::Rejected),
        3 => Just(Signal::ToDo),
        2 => any::<usize>().prop_map(Signal::Done),
        2 => Just(Signal::Issue),
        1 => any::<usize>().prop_map(Signal::Resolved),
        2 => (0..4_u8).prop_map(Signal::State),
        1 => Just(Signal::Objective),
    ];
    let signals = prop::collection::vec(signal, 0..5);
    let way = prop::sample::select(vec![Way::Fresh, Way::InPlace, Way::Trim]);
    let one = prop_oneof![
        10 => signals.clone().prop_map(Turn),
        1 => any::<usize>().prop_map(PromptTakenOut),
        4 => way.prop_map(Reboot),
        2 => signals.prop_map(RebootOnTheFly),
        2 => Just(Undo),
        2 => Just(Quit),
        2 => Just(Killed),
        1 => Just(Saved),
        1 => Just(Restored),
        2 => any::<usize>().prop_map(Rewound),
        1 => any::<usize>().prop_map(Resumed),
    ];
    prop::collection::vec(one, 1..30)
}

/// What must stand.
#[derive(Clone, Debug, Default, PartialEq)]
struct Truth {
    first_request: Option<String>,
    objective: Option<String>,
    prompts: BTreeSet<String>,
    taken_out: BTreeSet<String>,
    decisions: BTreeSet<String>,
    rejected: BTreeSet<String>,
    to_do: BTreeSet<String>,
    done: BTreeSet<String>,
    issues: BTreeSet<String>,
    custom: BTreeMap<String, String>,
}

impl Truth {
    /// A way back takes back what the agent has said, and no word of a human's.
    fn with_human(mut self, now: &Self) -> Self {
        self.prompts.extend(now.prompts.iter().cloned());
        self.taken_out.extend(now.taken_out.iter().cloned());
        let taken_out = &self.taken_out;
        self.prompts.retain(|prompt| !taken_out.contains(prompt));
        self
    }
}

/// The supervisor, what is on disk, and what must stand.
struct World {
    bench: Bench,
    /// The session that the agent is in, and the one that a reboot would begin.
    session: u128,
    coming: u128,
    store: BTreeMap<SessionId, Carried>,
    truth: Truth,
    /// What stood at the end of each session that was left.
    sessions: BTreeMap<u128, Truth>,
    /// The session and what stood when the last reboot into a fresh session began, until it can be undone no more.
    before_reboot: Option<(u128, Truth)>,
    /// The prompts of the session, with what stood before each.
    prompts: Vec<(String, Truth)>,
    rewound: Option<String>,
    /// What the transcript of each session has on the branch that counts: the prompts, by their names.
    transcripts: BTreeMap<u128, Vec<(String, String)>>,
    /// How often each session was compacted, by its transcript.
    compactions: BTreeMap<u128, u64>,
    checkpoint: Option<(Checkpoint, Truth)>,
    /// How many names were given.
    names: usize,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            bench: Bench::new(),
            session: OLD,
            coming: NEW,
            store: BTreeMap::new(),
            truth: Truth::default(),
            sessions: BTreeMap::new(),
            before_reboot: None,
            prompts: Vec::new(),
            rewound: None,
            transcripts: BTreeMap::new(),
            compactions: BTreeMap::new(),
            checkpoint: None,
            names: 0,
        };
        world.greeted();
        world
    }

    fn name(&mut self, of: &str) -> String {
        self.names += 1;
        format!("{of} {}", self.names)
    }

    /// Sends an event, and keeps what is to be kept.
    fn send(&mut self, event: Event) -> Vec<Effect> {
        let effects = self.bench.send(event);
        self.keep(effects)
    }

    fn keep(&mut self, mut effects: Vec<Effect>) -> Vec<Effect> {
        for effect in &effects {
            match effect {
                Effect::KeepCarried(session, carried) => {
                    // As the store has it.
                    let stored = serde_json::to_value(&**carried).expect("plain data");
                    let carried = serde_json::from_value(stored).expect("its own shape");
                    self.store.insert(*session, carried);
                }
                Effect::SaveCheckpoint(checkpoint) => {
                    self.checkpoint = Some(((**checkpoint).clone(), self.truth.clone()));
                }
                _ => {}
            }
        }
        if let Some(id) = reads_draft(&effects) {
            let empty = Outcome::Draft(UnsentPrompt::default());
            let more = self
                .bench
                .bridge_says(self.session, Told::Answered(id, empty));
            effects.extend(self.keep(more));
        }
        effects
    }

    fn exits(&mut self) -> Vec<Effect> {
        let iteration = self.bench.model.session.pane();
        let exit = Exit::Code(0);
        self.send(Event::Pane(PaneEvent::Exited { iteration, exit }))
    }

    fn press(&mut self, code: KeyCode) -> Vec<Effect> {
        let effects = self.bench.press(code);
        self.keep(effects)
    }

    /// An agent of which the bridge speaks shows its prompt box.
    fn greeted(&mut self) {
        self.bench.with_bridge(None);
        self.bench.bridge_says(self.session, Told::Hello);
        self.bench.ready();
        self.bench.used(50_000);
    }

    fn spawned(&mut self) {
        self.coming = self.coming.max(self.session) + 1;
        self.bench.spawned(self.coming);
    }

    fn happens(&mut self, happening: &Happening) {
        match happening {
            Happening::Turn(signals) => self.turn(signals, false),
            Happening::RebootOnTheFly(signals) => self.turn(signals, true),
            Happening::PromptTakenOut(which) => self.prompt_is_taken_out(*which),
            Happening::Reboot(Way::InPlace) => self.reboots_in_place(),
            Happening::Reboot(Way::Trim) => self.trims(),
            Happening::Reboot(_) => self.reboots(),
            Happening::Undo => self.undoes(),
            Happening::Quit => self.comes_back(true),
            Happening::Killed => self.comes_back(false),
            Happening::Saved => {
                self.send(Event::ControlAsked {
                    call: CallId(1),
                    control: Control::Save(CheckpointBody::EMPTY),
                });
            }
            Happening::Restored => self.restores(),
            Happening::Rewound(which) => self.rewinds(*which),
            Happening::Resumed(which) => self.resumes(*which),
        }
        self.check(happening);
    }

    fn turn(&mut self, signals: &[Signal], reboots: bool) {
        let prompt = self.name("Work on part");
        let uuid = self.name("uuid");
        self.prompts.push((uuid.clone(), self.truth.clone()));
        self.truth.prompts.insert(prompt.clone());
        self.truth.first_request.get_or_insert(prompt.clone());
        let effects = self.bench.prompted(self.session, &prompt);
        self.keep(effects);
        let transcript = self.transcripts.entry(self.session).or_default();
        let rewound = self.rewound.take();
        if let Some(first) = &rewound {
            let at = transcript.iter().position(|(uuid, _)| uuid == first);
            transcript.truncate(at.expect("it is in the transcript"));
        }
        transcript.push((uuid.clone(), prompt));
        let mut human = HumanWords::default();
        for (_, prompt) in transcript {
            human.take_prompt(prompt, None);
        }
        let facts = TranscriptFacts {
            prompt: Some(uuid),
            rewound,
            human: Some(human),
            compactions: *self.compactions.entry(self.session).or_default(),
            whole: true,
            ..TranscriptFacts::default()
        };
        let effects = self.bench.facts_read(facts.clone());
        self.keep(effects);
        if reboots {
            self.reboots_on_the_fly(facts);
        }
        let answer: Vec<String> = signals.iter().map(|one| self.signals(*one)).collect();
        self.send(Event::Agent(AgentEvent::TurnEnded {
            session: session(self.session),
            last_message: Some(answer.join("\n")),
            background: Background::default(),
            transcript_path: None,
        }));
        if reboots {
            self.bench.bridge_says(self.session, turn(false));
        }
        self.bench.ready();
        // The moment for changes to come together is over.
        self.send(Event::TimerFired(TimerId::KeepCarried));
    }

    fn signals(&mut self, signal: Signal) -> String {
        let choose =
            |of: &BTreeSet<String>, which: usize| of.iter().nth(which % of.len().max(1)).cloned();
        match signal {
            Signal::Decision => {
                let name = self.name("decision");
                self.truth.decisions.insert(name.clone());
                format!("DECISION: {name} | why")
            }
            Signal::Rejected => {
                let name = self.name("way");
                self.truth.rejected.insert(name.clone());
                format!("REJECTED: {name} | why")
            }
            Signal::ToDo => {
                let name = self.name("task");
                self.truth.to_do.insert(name.clone());
                format!("TODO: {name}")
            }
            Signal::Done(which) => {
                let Some(name) = choose(&self.truth.to_do, which) else {
                    return String::new();
                };
                self.truth.to_do.remove(&name);
                self.truth.done.insert(name.clone());
                format!("DONE: {name}")
            }
            Signal::Issue => {
                let name = self.name("fault");
                self.truth.issues.insert(name.clone());
                format!("ISSUE[high]: {name}")
            }
            Signal::Resolved(which) => {
                let Some(name) = choose(&self.truth.issues, which) else {
                    return String::new();
                };
                self.truth.issues.remove(&name);
                format!("RESOLVED: {name}")
            }
            Signal::State(key) => {
                let value = self.name("value");
                self.truth.custom.insert(format!("k{key}"), value.clone());
                format!("STATE k{key}={value}")
            }
            Signal::Objective => {
                let name = self.name("goal");
                self.truth.objective = Some(name.clone());
                format!("OBJECTIVE: {name}")
            }
        }
    }

    fn prompt_is_taken_out(&mut self, which: usize) {
        let count = self.truth.prompts.len().max(1);
        let Some(prompt) = self.truth.prompts.iter().nth(which % count).cloned() else {
            return;
        };
        self.truth.prompts.remove(&prompt);
        self.truth.taken_out.insert(prompt.clone());
        let said = Said {
            text: prompt,
            at: None,
        };
        self.bench.model.draft.signalled.withdraw_constraint(&said);
        self.send(Event::TimerFired(TimerId::KeepCarried));
    }

    fn reboots(&mut self) {
        let (old, new) = (self.session, self.coming);
        let stood = self.truth.clone();
        self.press(KeyCode::F(5));
        let effects = self.bench.git();
        self.keep(effects);
        if in_place::is_chosen(&self.bench.model) {
            self.press(KeyCode::Char('w'));
        }
        self.press(KeyCode::Enter);
        let effects = self.exits();
        let start = starts(&effects).remove(0);
        self.session = new;
        self.spawned();
        self.bench.started(new);
        let prompt = start.prompt.expect("the handoff");
        let effects = self.bench.prompted(new, &prompt);
        self.keep(effects);
        self.bench.turn_ended(new);
        self.greeted();
        self.sessions.insert(old, stood.clone());
        self.before_reboot = Some((old, stood));
        self.prompts.clear();
        self.send(Event::TimerFired(TimerId::KeepCarried));
    }

    fn reboots_in_place(&mut self) {
        self.bench.used(155_000);
        self.press(KeyCode::F(5));
        let effects = self.bench.git();
        self.keep(effects);
        if !in_place::is_chosen(&self.bench.model) {
            self.press(KeyCode::Char('w'));
        }
        assert!(in_place::is_chosen(&self.bench.model));
        let effects = self.press(KeyCode::Enter);
        let (id, _, _) = replaces(&effects).expect("the order is given");
        let nonce = self.bench.model.reboot.new_ids.nonce.clone();
        self.bench.bridge_says(self.session, Told::HandedOut(id));
        self.send(Event::Agent(AgentEvent::Compacted {
            session: session(self.session),
        }));
        self.spawned();
        let effects = self
            .bench
            .prompted(self.session, &format!("/pitstop:go {nonce}"));
        self.keep(effects);
        self.bench.used(21_000);
        let done = Outcome::Replaced { begun: true };
        self.bench
            .bridge_says(self.session, Told::Answered(id, done));
        self.bench.turn_ended(self.session);
        self.bench.ready();
        assert_eq!(self.bench.step(), None);
        *self.compactions.entry(self.session).or_default() += 1;
        self.before_reboot = None;
        self.prompts.clear();
        self.send(Event::TimerFired(TimerId::KeepCarried));
    }

    /// The last facts read are those of the turn.
    fn reboots_on_the_fly(&mut self, facts: TranscriptFacts) {
        self.bench.bridge_says(self.session, turn(true));
        self.bench.tool_starts("Bash", "t1");
        self.bench.used(155_000);
        self.press(KeyCode::F(5));
        let effects = self.bench.git();
        self.keep(effects);
        for _ in 0..4 {
            if !goes_on_the_fly(&self.bench.model) {
                self.press(KeyCode::Char('w'));
            }
        }
        let effects = self.press(KeyCode::Enter);
        let (id, _, when) = replaces(&effects).expect("the order is given");
        assert_eq!(when, ReplaceWhen::NextStep);
        let answered = Told::Answered(id, Outcome::Lowered);
        self.bench.bridge_says(self.session, answered);
        self.bench.tool_ends("Bash", "t1");
        self.bench.bridge_says(self.session, Told::HandedOut(id));
        let attempt = self.bench.model.reboot.attempt.as_ref().expect("a reboot");
        let text = &attempt.handoff.as_ref().expect("its handoff").text;
        let handoff = text.lines().next().map(str::to_owned);
        self.send(Event::Agent(AgentEvent::Compacted {
            session: session(self.session),
        }));
        let compactions = facts.compactions + 1;
        self.compactions.insert(self.session, compactions);
        let effects = self.bench.facts_read(TranscriptFacts {
            compactions,
            handoff,
            ..facts
        });
        self.keep(effects);
        self.spawned();
        self.bench.used(21_000);
        assert_eq!(self.bench.step(), None);
        self.before_reboot = None;
        self.prompts.clear();
    }

    /// The copy has all prompts of the session.
    fn trims(&mut self) {
        let (old, new) = (self.session, self.coming);
        let stood = self.truth.clone();
        self.bench.used(155_000);
        let effects = self.press(KeyCode::F(5));
        let ask = surveys(&effects)[0];
        let effects = self.bench.git();
        self.keep(effects);
        let plan = Ok(good_plan());
        self.send(Event::Read(ReadEvent::TrimPlanned { ask, plan }));
        self.press(KeyCode::Char('t'));
        self.press(KeyCode::Enter);
        let effects = self.exits();
        let (ask, _, _) = copies(&effects)[0];
        let effects = self.bench.copied(ask, Ok(trim_record()));
        self.keep(effects);
        self.session = new;
        let transcript = self.transcripts.get(&old).cloned().unwrap_or_default();
        self.transcripts.insert(new, transcript);
        self.spawned();
        self.bench.resumed(new);
        assert_eq!(self.bench.step(), None);
        self.greeted();
        self.sessions.insert(old, stood.clone());
        self.before_reboot = Some((old, stood));
        self.prompts.clear();
        self.send(Event::TimerFired(TimerId::KeepCarried));
    }

    fn undoes(&mut self) {
        let Some((old, stood)) = self.before_reboot.take() else {
            return;
        };
        self.send(Event::ControlAsked {
            call: CallId(1),
            control: Control::Undo,
        });
        self.exits();
        assert_eq!(self.bench.model.session.id, session(old));
        self.sessions.insert(self.session, self.truth.clone());
        self.truth = stood.with_human(&self.truth);
        self.session = old;
        self.spawned();
        self.bench.started(old);
        self.greeted();
        self.prompts.clear();
        self.send(Event::TimerFired(TimerId::KeepCarried));
    }

    /// Another process, in this session.
    fn begins(&mut self) {
        self.bench = Bench::bare(Config::default());
        self.bench.model.config.summary.generate_summaries = false;
        self.bench.model.session.id = session(self.session);
        self.before_reboot = None;
    }

    fn comes_back(&mut self, by_key: bool) {
        if by_key {
            self.press(KeyCode::F(10));
        }
        let carried = self.store.get(&session(self.session)).cloned();
        self.begins();
        carried::take_up(&mut self.bench.model, None, Ok(carried.map(Box::new)));
        crate::app::iteration::begin(&mut self.bench.model, true, None, None);
        self.spawned();
        self.bench.started(self.session);
        self.greeted();
    }

    fn restores(&mut self) {
        let Some((checkpoint, stood)) = self.checkpoint.clone() else {
            return;
        };
        self.sessions.insert(self.session, self.truth.clone());
        self.coming += 1;
        self.session = self.coming;
        self.begins();
        self.bench.model.reboot.new_ids = new_ids(900 + self.session);
        crate::app::restore::begin(&mut self.bench.model, &checkpoint, &GitState::NoRepository);
        let effects = self.bench.model.take_effects();
        let effects = self.bench.settle(effects);
        let start = starts(&effects).remove(0);
        self.keep(effects);
        self.truth = stood;
        self.spawned();
        self.bench.started(self.session);
        let prompt = start.prompt.expect("the handoff");
        let effects = self.bench.prompted(self.session, &prompt);
        self.keep(effects);
        self.bench.turn_ended(self.session);
        self.greeted();
        self.prompts.clear();
        self.send(Event::TimerFired(TimerId::KeepCarried));
    }

    /// The client shows it by its next prompt only.
    fn rewinds(&mut self, which: usize) {
        if self.prompts.is_empty() {
            return;
        }
        let which = which % self.prompts.len();
        let (first, stood) = self.prompts[which].clone();
        self.prompts.truncate(which);
        let taken_out = self.truth.taken_out.clone();
        let now = Truth {
            taken_out,
            ..Truth::default()
        };
        self.truth = stood.with_human(&now);
        self.rewound = Some(first);
        self.turn(&[Signal::Decision], false);
    }

    fn resumes(&mut self, which: usize) {
        // Of a session that this process has ended, such an event is taken for a late one.
        let iterations = self.bench.model.lineage.iterations();
        let ended_here = |one: &u128| {
            iterations
                .iter()
                .any(|here| here.session_id == Some(session(*one)))
        };
        let known: Vec<u128> = self
            .sessions
            .keys()
            .copied()
            .filter(|one| *one != self.session && !ended_here(one))
            .collect();
        let Some(other) = known.get(which % known.len().max(1)).copied() else {
            return;
        };
        self.sessions.insert(self.session, self.truth.clone());
        self.send(Event::Agent(AgentEvent::SessionStarted {
            session: session(other),
            source: StartSource::Resume,
            model: None,
            transcript_path: None,
            prompt_cache: None,
        }));
        let found = self.store.get(&session(other)).cloned();
        self.send(Event::Store(StoreEvent::CarriedRead {
            session: session(other),
            found: Ok(found.map(Box::new)),
        }));
        self.truth = self.sessions[&other].clone().with_human(&self.truth);
        self.session = other;
        self.before_reboot = None;
        self.prompts.clear();
        self.bench.bridge_says(self.session, Told::Hello);
        self.bench.ready();
        self.send(Event::TimerFired(TimerId::KeepCarried));
    }

    fn check(&mut self, happening: &Happening) {
        handoff::draft(&mut self.bench.model);
        let draft = &self.bench.model.draft;
        let state = &draft.preserved;
        let texts = |items: &mut dyn Iterator<Item = &str>| -> BTreeSet<String> {
            items.map(str::to_owned).collect()
        };
        let found = Truth {
            first_request: draft.requests.first.as_ref().map(|said| said.text.clone()),
            // Without one it is the first request.
            objective: self
                .truth
                .objective
                .as_ref()
                .and(state.current_objective.as_ref())
                .map(|one| one.text.clone()),
            prompts: texts(&mut state.prompts().map(|one| one.said.text.as_str())),
            taken_out: self.truth.taken_out.clone(),
            decisions: texts(&mut state.decisions.iter().map(|one| one.description.as_str())),
            rejected: texts(&mut state.rejected.iter().map(|one| one.what.as_str())),
            // That stands in the scratchpad.
            to_do: texts(
                &mut state
                    .pending_items
                    .iter()
                    .map(|one| one.text.as_str())
                    .filter(|text| *text != "next"),
            ),
            done: texts(&mut state.completed_items.iter().map(|one| one.text.as_str())),
            issues: texts(
                &mut state
                    .known_issues
                    .iter()
                    .filter(|one| !one.addressed)
                    .map(|one| one.description.as_str()),
            ),
            custom: state
                .custom
                .iter()
                .map(|(key, item)| (key.clone(), item.text.clone()))
                .collect(),
        };
        assert_eq!(found, self.truth, "after {happening:?}");
        let text = &draft.handoff.current().text;
        for decision in &self.truth.decisions {
            assert!(text.contains(decision), "{decision}:\n{text}");
        }
    }
}

#[test]
fn nothing_that_was_said_is_lost_and_nothing_comes_back_that_was_taken_back() {
    let mut runner = TestRunner::new(Runs {
        cases: 96,
        ..Runs::default()
    });
    let played = runner.run(&happenings(), |happenings| {
        let mut world = World::new();
        for happening in &happenings {
            world.happens(happening);
        }
        Ok(())
    });
    if let Err(fault) = played {
        panic!("{fault}");
    }
}
