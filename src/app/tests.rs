//! Transitions: event in, exact effects and state out.

use std::time::Duration;

use chrono::{TimeZone, Utc};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use uuid::Uuid;

use crate::{
    agent::{AgentEvent, StartSource},
    api::wire::{AgentState, Control, Reply},
    breakpoint::git::GitState,
    clock::At,
    config::{Config, RebootMode},
    guard::{Reading, Source},
    handoff::Generator,
    lineage::{EndReason, Lineage, ProcessStamp, RunId, TrimRecord, Way, journal::Step},
    pane::{input::HostInput, screen::ScreenFact},
    transcript::{
        SessionId, Tokens,
        trim::{LEVELS, LevelFigure, TrimPlan},
    },
};

use super::{
    Effect, Event, Model,
    effect::{Rung, StartAgent},
    event::{CallId, Exit, HostEvent, Lots, PaneEvent, ReadEvent, StoreEvent, TimerId},
    model::{Beginning, Focus, Identity, Overlay},
    reboot::Kind,
    update,
};

mod autopilot;
mod breakpoint;
mod checkpoint;
mod external;
mod feed;
mod summary;
mod witness;

const OLD: u128 = 1;
const NEW: u128 = 2;

fn session(number: u128) -> SessionId {
    SessionId::new(Uuid::from_u128(number))
}

fn lots(number: u128) -> Lots {
    Lots {
        reboot: Uuid::from_u128(1000 + number),
        session: session(number),
        nonce: format!("{number:08x}"),
    }
}

/// A model with its clock, which obeys the journal at once unless told not to.
pub(super) struct Bench {
    pub(super) model: Model,
    since_start: Duration,
    journal_answers: bool,
    /// Whether orders to read the transcript are answered at once.
    reads: bool,
    journaled: Vec<Step>,
}

impl Bench {
    /// A supervisor whose agent is idle in its first session.
    pub(super) fn new() -> Self {
        Self::with(Config::default())
    }

    /// No model is asked for summaries, and transcripts have nothing to say.
    fn with(mut config: Config) -> Self {
        config.summary.generate_summaries = false;
        Self::as_configured(config)
    }

    fn as_configured(config: Config) -> Self {
        let mut bench = Self::bare(config);
        super::agent::begin(&mut bench.model, false, None, None);
        bench.spawned(NEW);
        bench.started(OLD);
        bench
    }

    /// A supervisor that has not started its agent yet.
    fn bare(config: Config) -> Self {
        let wall = Utc.timestamp_opt(1_795_000_000, 0).unwrap();
        let now = At {
            since_start: Duration::ZERO,
            wall,
        };
        let model = Model::new(Beginning {
            identity: Identity {
                version: "0",
                pid: 1,
                project: "/p".to_owned(),
                environment: "p".to_owned(),
                agent_kind: "claude",
                agent_command: "claude".to_owned(),
            },
            config,
            lineage: Lineage::new(RunId::new(wall, [1, 2, 3])),
            session: session(OLD),
            lots: lots(NEW),
            notes: "- [ ] next".to_owned(),
            generator: Generator::default(),
            host: (140, 40),
            now,
        });
        Self {
            model,
            since_start: Duration::ZERO,
            journal_answers: true,
            reads: true,
            journaled: Vec::new(),
        }
    }

    fn at(&self) -> At {
        let wall = Utc.timestamp_opt(1_795_000_000, 0).unwrap() + self.since_start;
        At {
            since_start: self.since_start,
            wall,
        }
    }

    pub(super) fn wait(&mut self, time: Duration) {
        self.since_start += time;
    }

    /// Takes an event and returns what is to be done, but for the journal, which is answered.
    pub(super) fn tell(&mut self, event: Event) -> Vec<Effect> {
        let at = self.at();
        let effects = update(&mut self.model, at, event);
        self.obey(effects)
    }

    /// Answers the journal, and gives back the rest of what is to be done.
    fn obey(&mut self, mut effects: Vec<Effect>) -> Vec<Effect> {
        let mut done = Vec::new();
        let at = self.at();
        while !effects.is_empty() {
            let mut answers = Vec::new();
            for effect in effects {
                match effect {
                    Effect::Journal(entry) => {
                        self.journaled.push(entry.step);
                        let (reboot, step) = (entry.reboot_id, entry.step);
                        if self.journal_answers {
                            answers.push(Event::Store(StoreEvent::Journaled { reboot, step }));
                        }
                    }
                    Effect::Summarize { id, ask: false } if self.reads => {
                        let text = Err("nothing was said yet".to_owned());
                        answers.push(Event::Read(ReadEvent::Condensed { id, text }));
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
        let iteration = self.model.iteration;
        let process = ProcessStamp {
            pid: 77,
            start_time: "x".to_owned(),
        };
        self.tell(Event::Pane(PaneEvent::Spawned {
            iteration,
            process,
            lots: lots(next),
        }))
    }

    fn exited(&mut self, code: u32) -> Vec<Effect> {
        let iteration = self.model.iteration;
        self.tell(Event::Pane(PaneEvent::Exited {
            iteration,
            exit: Exit::Code(code),
        }))
    }

    fn started(&mut self, number: u128) -> Vec<Effect> {
        self.tell(Event::Agent(AgentEvent::SessionStarted {
            session: session(number),
            source: StartSource::Startup,
            model: None,
            transcript_path: None,
        }))
    }

    fn prompted(&mut self, number: u128, prompt: &str) -> Vec<Effect> {
        self.tell(Event::Agent(AgentEvent::PromptSubmitted {
            session: session(number),
            prompt: prompt.to_owned(),
            transcript_path: None,
        }))
    }

    fn turn_ended(&mut self, number: u128) -> Vec<Effect> {
        self.tell(Event::Agent(AgentEvent::TurnEnded {
            session: session(number),
            last_message: None,
            background_tasks: 0,
            transcript_path: None,
        }))
    }

    fn used(&mut self, used: u64) -> Vec<Effect> {
        let at = self.at();
        let reading = Reading {
            used: Tokens(used),
            window: None,
            source: Source::StatusLine,
            at,
        };
        self.tell(Event::Read(ReadEvent::Estimate(reading)))
    }

    fn press(&mut self, code: KeyCode) -> Vec<Effect> {
        let event = KeyEvent::new(code, KeyModifiers::NONE);
        self.tell(Event::Host(HostEvent::Input(HostInput::Key {
            event,
            raw: vec![b'?'],
        })))
    }

    fn git(&mut self) -> Vec<Effect> {
        let mut effects = self.tell(Event::Read(ReadEvent::Git(GitState::NoRepository)));
        effects.extend(self.tell(Event::Read(ReadEvent::Ground(Box::default()))));
        effects
    }

    fn step(&self) -> Option<Step> {
        self.model
            .reboot
            .attempt
            .as_ref()
            .map(|attempt| attempt.step)
    }

    /// Goes as far as the order to start the new agent, and returns it.
    fn rebooted(&mut self) -> StartAgent {
        self.press(KeyCode::F(5));
        self.git();
        self.press(KeyCode::Enter);
        let effects = self.exited(0);
        let start = effects.iter().find_map(|effect| match effect {
            Effect::Start(start) => Some(start.clone()),
            _ => None,
        });
        start.expect("the old agent is gone: the new one is started")
    }
}

fn signals(effects: &[Effect]) -> Vec<Rung> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Signal(rung) => Some(*rung),
            _ => None,
        })
        .collect()
}

#[test]
fn a_reboot_by_key_goes_through_every_step_in_order() {
    let mut bench = Bench::new();
    bench.press(KeyCode::F(5));
    assert!(matches!(
        bench.model.overlay,
        Some(Overlay::Review { asked: true, .. })
    ));
    bench.git();
    assert_eq!(bench.step(), Some(Step::Review));
    let shown = bench.model.handoff.current().text.clone();
    let effects = bench.press(KeyCode::Enter);
    assert_eq!(signals(&effects), [Rung::Exit]);
    assert_eq!(bench.model.overlay, None);

    let effects = bench.exited(0);
    let start = StartAgent {
        anew: None,
        iteration: bench.model.iteration,
        session: session(NEW),
        resume: false,
        prompt: Some(shown.clone()),
        first: false,
    };
    assert!(effects.contains(&Effect::Start(start)), "{effects:?}");
    assert_eq!(bench.model.iteration.get(), 2);
    bench.spawned(3);
    bench.started(NEW);
    assert_eq!(bench.step(), Some(Step::Verifying));
    bench.prompted(NEW, &shown);
    assert_eq!(bench.step(), None);
    assert_eq!(
        bench.journaled,
        [
            Step::Armed,
            Step::Drafting,
            Step::Review,
            Step::Waiting,
            Step::Ending,
            Step::Starting,
            Step::Delivering,
            Step::Verifying,
            Step::Done
        ]
    );
    let iterations = bench.model.lineage.iterations();
    assert_eq!(iterations[0].end_reason, Some(EndReason::UserReboot));
    let record = iterations[1].reboot.as_ref().unwrap();
    assert!(record.verified);
    assert_eq!(
        (record.old_session, record.new_session),
        (Some(session(OLD)), Some(session(NEW)))
    );
    assert_eq!(record.handoff_bytes, shown.len() as u64);
}

#[test]
fn nothing_is_done_before_its_step_is_on_disk() {
    let mut bench = Bench::new();
    bench.press(KeyCode::F(5));
    bench.git();
    bench.journal_answers = false;
    let effects = bench.press(KeyCode::Enter);
    assert_eq!(bench.step(), Some(Step::Waiting));
    assert!(signals(&effects).is_empty());
    let reboot = bench.model.reboot.attempt.as_ref().unwrap().id;
    let effects = bench.tell(Event::Store(StoreEvent::Journaled {
        reboot,
        step: Step::Waiting,
    }));
    assert_eq!(bench.step(), Some(Step::Ending));
    assert!(signals(&effects).is_empty(), "ending is not on disk yet");
    let effects = bench.tell(Event::Store(StoreEvent::Journaled {
        reboot,
        step: Step::Ending,
    }));
    assert_eq!(signals(&effects), [Rung::Exit]);
}

#[test]
fn a_proof_that_comes_early_counts() {
    let mut bench = Bench::new();
    let start = bench.rebooted();
    bench.journal_answers = false;
    bench.started(NEW);
    bench.prompted(NEW, &start.prompt.unwrap());
    assert_eq!(
        bench.step(),
        Some(Step::Starting),
        "not spawned yet, as far as we know"
    );
    bench.journal_answers = true;
    bench.spawned(3);
    assert_eq!(bench.step(), None, "all steps follow at once");
}

#[test]
fn another_prompt_is_no_proof() {
    let mut bench = Bench::new();
    let start = bench.rebooted();
    bench.spawned(3);
    bench.started(NEW);
    bench.prompted(NEW, "something else");
    assert_eq!(bench.step(), Some(Step::Verifying));
    let forged = start.prompt.unwrap().replace("00000002", "deadbeef");
    bench.prompted(NEW, &forged);
    assert_eq!(bench.step(), Some(Step::Verifying));
}

#[test]
fn a_late_proof_is_told_and_still_counts() {
    let mut bench = Bench::new();
    let start = bench.rebooted();
    let effects = bench.spawned(3);
    let timer = effects.iter().find_map(|effect| match effect {
        Effect::SetTimer(id @ TimerId::Verify(_), _) => Some(*id),
        _ => None,
    });
    bench.wait(Duration::from_secs(20));
    let effects = bench.tell(Event::TimerFired(timer.unwrap()));
    assert!(
        !effects
            .iter()
            .any(|effect| matches!(effect, Effect::Type(_) | Effect::Paste(_)))
    );
    assert!(bench.model.notices.back().unwrap().bad);
    assert_eq!(bench.step(), Some(Step::Verifying));
    bench.started(NEW);
    bench.prompted(NEW, &start.prompt.unwrap());
    assert_eq!(bench.step(), None);
}

#[test]
fn a_new_agent_that_dies_takes_the_reboot_back() {
    let mut bench = Bench::new();
    bench.rebooted();
    bench.spawned(3);
    let effects = bench.exited(1);
    let start = effects.iter().find_map(|effect| match effect {
        Effect::Start(start) => Some(start.clone()),
        _ => None,
    });
    let start = start.expect("the old session is resumed");
    assert_eq!(
        (start.session, start.resume, start.prompt),
        (session(OLD), true, None)
    );
    assert_eq!(
        bench.model.lineage.iterations()[1].end_reason,
        Some(EndReason::Crash)
    );
    bench.spawned(4);
    assert_eq!(bench.step(), None);
    assert_eq!(bench.journaled.last(), Some(&Step::Failed));
    assert!(
        bench
            .model
            .reboot
            .failure
            .as_ref()
            .unwrap()
            .contains("exit code 1")
    );
}

#[test]
fn a_running_turn_holds_an_approved_reboot_back_until_it_ends() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.press(KeyCode::F(5));
    bench.git();
    let effects = bench.press(KeyCode::Enter);
    assert_eq!(
        (bench.step(), signals(&effects)),
        (Some(Step::Waiting), vec![])
    );
    let effects = bench.turn_ended(OLD);
    assert_eq!(signals(&effects), [Rung::Exit]);
}

#[test]
fn a_second_approval_interrupts_the_turn() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.press(KeyCode::F(5));
    bench.git();
    bench.press(KeyCode::Enter);
    bench.press(KeyCode::F(5));
    let effects = bench.press(KeyCode::Enter);
    assert!(
        effects.contains(&Effect::Type(b"\x1b".to_vec())),
        "{effects:?}"
    );
    assert_eq!(
        bench.model.ending.map(|ending| ending.rung),
        Some(Rung::Interrupt)
    );
    let effects = bench.turn_ended(OLD);
    assert_eq!(signals(&effects), [Rung::Exit]);
}

#[test]
fn a_rung_that_does_not_help_is_followed_by_the_next() {
    let mut bench = Bench::new();
    bench.press(KeyCode::F(5));
    bench.git();
    let mut effects = bench.press(KeyCode::Enter);
    for rung in [Rung::Exit, Rung::Hangup, Rung::Terminate, Rung::Kill] {
        assert_eq!(signals(&effects), [rung]);
        let timer = effects.iter().find_map(|effect| match effect {
            Effect::SetTimer(id @ TimerId::EndRung(_), _) => Some(*id),
            _ => None,
        });
        effects = bench.tell(Event::TimerFired(timer.unwrap()));
    }
    assert_eq!(bench.step(), None, "given up");
    assert!(bench.model.reboot.failure.is_some());
    assert_eq!(
        bench.model.iteration.get(),
        1,
        "no second agent was started"
    );
}

#[test]
fn the_compact_line_opens_the_review_at_a_safe_moment_only() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.used(155_000);
    bench.tell(Event::TimerFired(TimerId::Age));
    assert_eq!(
        (bench.step(), bench.model.overlay),
        (Some(Step::Armed), None)
    );
    bench.press(KeyCode::Char('x'));
    bench.turn_ended(OLD);
    assert_eq!(bench.model.overlay, None, "the human types");
    bench.wait(Duration::from_secs(4));
    let quiet = TimerId::Quiet(bench.model.quiet_epoch);
    bench.tell(Event::TimerFired(quiet));
    bench.git();
    assert!(matches!(
        bench.model.overlay,
        Some(Overlay::Review { asked: false, .. })
    ));
    bench.press(KeyCode::Enter);
    assert_eq!(
        bench.step(),
        Some(Step::Review),
        "an Enter that was under way approves nothing"
    );
    bench.wait(Duration::from_secs(1));
    let effects = bench.press(KeyCode::Enter);
    assert_eq!(signals(&effects), [Rung::Exit]);
    bench.exited(0);
    assert_eq!(
        bench.model.lineage.iterations()[0].end_reason,
        Some(EndReason::ContextLimit)
    );
}

#[test]
fn a_cancelled_review_does_not_come_back_and_a_deferred_one_does() {
    let mut bench = Bench::new();
    bench.used(155_000);
    bench.tell(Event::TimerFired(TimerId::Age));
    bench.git();
    bench.press(KeyCode::Char('d'));
    assert_eq!((bench.step(), bench.model.overlay), (None, None));
    for turn in 1..=3 {
        bench.prompted(OLD, "work");
        bench.turn_ended(OLD);
        bench.git();
        assert_eq!(bench.step().is_some(), turn == 3, "after turn {turn}");
    }
    bench.press(KeyCode::Esc);
    for _ in 0..5 {
        bench.prompted(OLD, "work");
        bench.turn_ended(OLD);
        assert_eq!(bench.step(), None);
    }
}

#[test]
fn manual_mode_and_a_pause_leave_it_to_the_human() {
    let mut config = Config::default();
    config.reboot.mode = RebootMode::Manual;
    let mut bench = Bench::with(config);
    bench.used(155_000);
    bench.tell(Event::TimerFired(TimerId::Age));
    assert_eq!(bench.step(), None);

    let mut bench = Bench::new();
    let pause = Event::ControlAsked {
        call: CallId(1),
        control: Control::Pause,
    };
    let effects = bench.tell(pause);
    assert!(ordered(&effects).contains("until `pitstop ctl resume`"));
    bench.used(155_000);
    bench.tell(Event::TimerFired(TimerId::Age));
    assert_eq!(bench.step(), None);
}

#[test]
fn auto_mode_goes_ahead_after_its_delay_unless_a_key_stops_it() {
    let mut config = Config::default();
    config.reboot.mode = RebootMode::Auto;
    for stopped in [false, true] {
        let mut bench = Bench::with(config.clone());
        bench.used(155_000);
        bench.tell(Event::TimerFired(TimerId::Age));
        let effects = bench.git();
        let timer = effects.iter().find_map(|effect| match effect {
            Effect::SetTimer(id @ TimerId::AutoDelay(_), _) => Some(*id),
            _ => None,
        });
        bench.wait(Duration::from_secs(10));
        if stopped {
            bench.press(KeyCode::Esc);
        }
        let effects = bench.tell(Event::TimerFired(timer.unwrap()));
        assert_eq!(signals(&effects).is_empty(), stopped);
    }
}

#[test]
fn the_breaker_stops_reboots_by_themselves_and_not_those_by_key() {
    let mut bench = Bench::new();
    let start = bench.rebooted();
    bench.spawned(3);
    bench.started(NEW);
    bench.prompted(NEW, &start.prompt.unwrap());
    bench.turn_ended(NEW);
    bench.used(170_000);
    bench.tell(Event::TimerFired(TimerId::Age));
    assert_eq!(
        bench.step(),
        None,
        "full again after one turn: a reboot would not help"
    );
    assert!(
        bench
            .model
            .notices
            .iter()
            .any(|notice| notice.text.contains("only 1 turns"))
    );
    bench.press(KeyCode::F(5));
    assert!(bench.step().is_some());
}

#[test]
fn events_of_another_session_change_nothing() {
    let mut bench = Bench::new();
    let start = bench.rebooted();
    bench.spawned(3);
    bench.prompted(OLD, &start.prompt.unwrap());
    bench.turn_ended(OLD);
    assert_eq!(bench.step(), Some(Step::Verifying));
    assert_eq!(bench.model.agent.turns, 0);
    let stale = Event::Pane(PaneEvent::Exited {
        iteration: crate::lineage::IterationId::FIRST,
        exit: Exit::Code(0),
    });
    bench.tell(stale);
    assert_ne!(bench.model.agent.state, AgentState::Exited);
}

#[test]
fn clearing_inside_the_client_is_followed() {
    let mut bench = Bench::new();
    bench.tell(Event::Agent(AgentEvent::SessionStarted {
        session: session(9),
        source: StartSource::Clear,
        model: None,
        transcript_path: None,
    }));
    assert_eq!(bench.model.session, session(9));
    bench.prompted(9, "hello");
    assert_eq!(bench.model.agent.state, AgentState::Busy);
}

#[test]
fn a_turn_that_the_human_stopped_is_over_when_the_title_says_so() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    let title = |text: &str| Event::Pane(PaneEvent::Screen(ScreenFact::Title(text.to_owned())));
    bench.tell(title("⠂ work"));
    assert_eq!(bench.model.agent.state, AgentState::Busy);
    let effects = bench.tell(title("✳ work"));
    let calm = TimerId::Calm(bench.model.calm_epoch);
    assert!(
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::SetTimer(id, _) if *id == calm))
    );
    assert_eq!(bench.model.agent.state, AgentState::Busy);
    bench.tell(Event::TimerFired(calm));
    assert_eq!(bench.model.agent.state, AgentState::Idle);
}

#[test]
fn a_refused_prompt_is_a_context_limit_and_asks_for_a_reboot() {
    let mut config = Config::default();
    config.guard.replace_compaction = true;
    let mut bench = Bench::with(config);
    bench.press(KeyCode::F(7));
    bench.model.mode = RebootMode::Manual;
    bench.used(178_000);
    bench.prompted(OLD, "more");
    assert_eq!(
        (bench.model.agent.state, bench.step()),
        (AgentState::Limit, None)
    );
    bench.model.mode = RebootMode::Ask;
    bench.prompted(OLD, "more");
    assert!(bench.step().is_some());
}

#[test]
fn a_client_that_compacts_by_itself_takes_prompts_to_the_end_of_its_window() {
    let mut bench = Bench::new();
    bench.model.mode = RebootMode::Manual;
    bench.used(178_000);
    bench.prompted(OLD, "more");
    assert_eq!(bench.model.agent.state, AgentState::Busy);
    // If it did refuse, its title says that no turn runs, and no hook tells of an end.
    bench.wait(Duration::from_secs(1));
    bench.tell(Event::Pane(PaneEvent::Screen(ScreenFact::Title(
        "✳ work".to_owned(),
    ))));
    let calm = TimerId::Calm(bench.model.calm_epoch);
    bench.tell(Event::TimerFired(calm));
    assert_eq!(bench.model.agent.state, AgentState::Limit);
}

fn compacting(automatic: bool) -> Event {
    let session = session(OLD);
    Event::Agent(AgentEvent::Compacting { session, automatic })
}

/// The mode's answer to a client that is about to compact, with compaction replaced or not.
fn announced(mode: RebootMode, replace: bool, automatic: bool) -> (Bench, bool) {
    let mut config = Config::default();
    config.guard.replace_compaction = replace;
    config.reboot.mode = mode;
    let mut bench = Bench::with(config);
    bench.used(100_000);
    bench.prompted(OLD, "work");
    let Event::Agent(event) = compacting(automatic) else {
        unreachable!()
    };
    let refused = super::compaction::refusal(&bench.model, &event).is_some();
    bench.tell(compacting(automatic));
    (bench, refused)
}

#[test]
fn only_automatic_compaction_is_replaced_and_only_where_the_user_wants_it() {
    for mode in [RebootMode::Manual, RebootMode::Ask, RebootMode::Auto] {
        for (replace, automatic) in [(false, true), (true, false), (false, false)] {
            let (bench, refused) = announced(mode, replace, automatic);
            assert!(!refused, "{mode:?}");
            assert_eq!(bench.step(), None);
            let told = bench.model.notices.iter();
            assert!(
                told.clone()
                    .all(|notice| !notice.text.contains("held back")),
                "{mode:?}"
            );
        }
        let (bench, refused) = announced(mode, true, true);
        assert!(refused, "{mode:?}");
        match mode {
            RebootMode::Manual => {
                let told = &bench.model.notices.back().expect("a notice").text;
                assert_eq!(
                    *told,
                    "the client wanted to compact and was held back: F5 reboots it"
                );
                assert_eq!(bench.step(), None);
            }
            // It waits for the end of the turn.
            _ => assert_eq!(bench.step(), Some(Step::Armed)),
        }
    }
}

#[test]
fn a_client_that_asks_again_opens_no_second_review_and_respects_a_no() {
    let (mut bench, _) = announced(RebootMode::Ask, true, true);
    bench.tell(compacting(true));
    bench.turn_ended(OLD);
    bench.git();
    assert_eq!(bench.step(), Some(Step::Review));
    bench.press(KeyCode::Esc);
    bench.prompted(OLD, "more");
    bench.tell(compacting(true));
    assert_eq!(bench.step(), None, "no is no");
    let event = AgentEvent::Compacting {
        session: session(OLD),
        automatic: true,
    };
    assert!(super::compaction::refusal(&bench.model, &event).is_some());
    let event = AgentEvent::Compacting {
        session: session(NEW),
        automatic: true,
    };
    assert_eq!(super::compaction::refusal(&bench.model, &event), None);
}

#[test]
fn a_compaction_is_counted_in_the_record_of_its_iteration() {
    let mut bench = Bench::new();
    let facts = |compactions, used: Option<u64>| {
        Event::Read(ReadEvent::Transcript {
            session: session(OLD),
            facts: Box::new(super::event::TranscriptFacts {
                compactions,
                used: used.map(Tokens),
                whole: true,
                ..Default::default()
            }),
        })
    };
    bench.tell(facts(0, Some(100_000)));
    bench.turn_ended(OLD);
    bench.tell(facts(0, Some(140_000)));
    bench.prompted(OLD, "more");
    bench.tell(facts(1, None));
    bench.tell(Event::Agent(AgentEvent::SessionStarted {
        session: session(OLD),
        source: StartSource::Compact,
        model: None,
        transcript_path: None,
    }));
    let session = session(OLD);
    bench.tell(Event::Agent(AgentEvent::Compacted { session }));
    bench.tell(facts(1, Some(30_000)));
    bench.turn_ended(OLD);
    bench.tell(facts(1, Some(34_000)));
    assert_eq!(bench.model.lineage.iterations()[0].compactions, 1);
    let notices = bench.model.notices.iter();
    let told = notices.filter(|notice| notice.text.contains("compacted its context"));
    assert_eq!(told.count(), 1);
    bench.exited(0);
    bench.press(KeyCode::Enter);
    bench.tell(facts(1, Some(34_000)));
    let counts: Vec<u32> = bench
        .model
        .lineage
        .iterations()
        .iter()
        .map(|one| one.compactions)
        .collect();
    assert_eq!(
        counts,
        [1, 0],
        "the resumed session brings its boundaries along"
    );
}

#[test]
fn an_agent_that_ends_by_itself_can_be_resumed() {
    let mut bench = Bench::new();
    bench.exited(0);
    assert_eq!(bench.model.overlay, Some(Overlay::Exited));
    assert_eq!(
        bench.model.lineage.iterations()[0].end_reason,
        Some(EndReason::Natural)
    );
    let effects = bench.press(KeyCode::Enter);
    let start = effects.iter().find_map(|effect| match effect {
        Effect::Start(start) => Some(start.clone()),
        _ => None,
    });
    let start = start.unwrap();
    assert_eq!((start.session, start.resume), (session(OLD), true));
    assert!(
        bench.journaled.is_empty(),
        "nothing is at stake: {:?}",
        bench.journaled
    );
}

#[test]
fn quitting_asks_in_a_turn_and_ends_the_agent_first() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    assert!(signals(&bench.press(KeyCode::F(10))).is_empty());
    assert_eq!(bench.model.overlay, Some(Overlay::Quit));
    bench.press(KeyCode::Enter);
    assert_eq!(
        bench.model.ending.map(|ending| ending.rung),
        Some(Rung::Interrupt)
    );
    let effects = bench.exited(0);
    assert!(effects.contains(&Effect::Quit(0)));
    let ended = bench.model.lineage.iterations()[0].end_reason;
    assert_eq!(ended, Some(EndReason::Shutdown));
}

#[test]
fn a_signal_leaves_no_time_for_questions() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    let effects = bench.tell(Event::ShutdownAsked { signal: "SIGTERM" });
    assert_eq!(signals(&effects), [Rung::Hangup]);
}

#[test]
fn keys_in_a_panel_never_reach_the_child() {
    let mut bench = Bench::new();
    bench.press(KeyCode::F(3));
    assert_eq!(bench.model.focus, Focus::Scratchpad);
    for code in [
        KeyCode::Char('j'),
        KeyCode::Char('e'),
        KeyCode::Char('z'),
        KeyCode::Enter,
    ] {
        let effects = bench.press(code);
        assert!(
            !effects
                .iter()
                .any(|effect| matches!(effect, Effect::Forward(_))),
            "{code:?}"
        );
    }
    let effects = bench.press(KeyCode::Esc);
    let written = effects.iter().find_map(|effect| match effect {
        Effect::WriteScratchpad { base, text } => Some((base.clone(), text.clone())),
        _ => None,
    });
    assert_eq!(
        written,
        Some(("- [ ] next".to_owned(), "z\n- [ ] next".to_owned()))
    );
}

#[test]
fn a_paste_is_text_in_every_focus() {
    for focus in [Focus::Scratchpad, Focus::Handoff, Focus::History] {
        let mut bench = Bench::new();
        bench.model.focus = focus;
        let mut effects = Vec::new();
        for piece in [
            HostInput::PasteStart,
            HostInput::PasteChunk((0x20..0x7f).collect()),
            HostInput::PasteEnd,
        ] {
            effects.extend(bench.tell(Event::Host(HostEvent::Input(piece))));
        }
        effects.retain(|effect| !matches!(effect, Effect::SetTimer(TimerId::Notice, _)));
        assert_eq!(effects, [], "in {focus:?}");
    }
}

#[test]
fn what_the_agent_writes_while_the_human_edits_is_merged() {
    let mut bench = Bench::new();
    bench.press(KeyCode::F(3));
    bench.press(KeyCode::Char('e'));
    bench.press(KeyCode::Char('X'));
    let disk = "- [ ] next\nfrom the agent".to_owned();
    bench.tell(Event::Read(ReadEvent::Scratchpad(disk.clone())));
    let editor = bench.model.notes.editor.as_ref().unwrap();
    assert!(editor.text().contains('X'));
    // Both changed the end of the same hunk: the agent's version is kept and offered.
    let merged = editor.text().contains("from the agent");
    assert!(merged || bench.model.notes.theirs == Some(disk));
}

#[test]
fn an_undo_resumes_the_old_session_and_asks_nothing_for_a_while() {
    let mut bench = Bench::new();
    bench.used(155_000);
    let start = bench.rebooted();
    bench.spawned(3);
    bench.started(NEW);
    bench.prompted(NEW, &start.prompt.unwrap());
    bench.turn_ended(NEW);
    bench.model.history.selected = 1;
    let effects = bench.tell(Event::ControlAsked {
        call: CallId(1),
        control: Control::Undo,
    });
    assert_eq!(signals(&effects), [Rung::Exit]);
    let effects = bench.exited(0);
    let start = effects.iter().find_map(|effect| match effect {
        Effect::Start(start) => Some(start.clone()),
        _ => None,
    });
    let start = start.unwrap();
    assert_eq!(
        (start.session, start.resume, start.prompt),
        (session(OLD), true, None)
    );
    bench.spawned(4);
    bench.started(OLD);
    let iterations = bench.model.lineage.iterations();
    assert_eq!(iterations[2].parent, Some(iterations[0].iteration));
    let selected = bench.model.history.selected;
    assert_eq!(selected, 2, "it is still the first iteration");
    bench.used(155_000);
    let said = bench.model.notices.back().unwrap().text.clone();
    assert!(
        said.contains("the session before the reboot is back"),
        "{said}"
    );
    bench.tell(Event::TimerFired(TimerId::Age));
    assert_eq!(bench.step(), None);
    let undone = Event::ControlAsked {
        call: CallId(2),
        control: Control::Undo,
    };
    let effects = bench.tell(undone);
    assert!(
        matches!(effects[0], Effect::Answer(_, Reply::Refused { .. })),
        "nothing to undo now"
    );
}

#[test]
fn a_line_that_is_passed_is_told_in_words_that_need_no_manual() {
    let mut bench = Bench::new();
    let mut told = |used| {
        bench.used(used);
        bench.model.notices.back().unwrap().text.clone()
    };
    assert_eq!(told(95_000), "context: 52 % full");
    assert_eq!(told(130_000), "context: 72 % full, past the warn line");
    assert_eq!(told(155_000), "context: 86 % full, past the compact line");
}

#[test]
fn an_estimate_alone_opens_no_review() {
    let mut bench = Bench::new();
    let at = bench.at();
    let (used, window, source) = (Tokens(175_000), None, Source::Estimate);
    let reading = Reading {
        used,
        window,
        source,
        at,
    };
    bench.tell(Event::Read(ReadEvent::Estimate(reading)));
    bench.tell(Event::TimerFired(TimerId::Age));
    assert_eq!(bench.step(), None);
}

#[test]
fn a_reboot_that_wins_little_is_said_to() {
    let warned = |base: u64, now: u64| {
        let mut bench = Bench::new();
        bench.used(base);
        bench.turn_ended(OLD);
        bench.used(now);
        bench.git();
        let warnings = &bench.model.handoff.generated.warnings;
        warnings
            .iter()
            .any(|warning| warning.contains("would win little"))
    };
    assert!(
        warned(140_000, 155_000),
        "140k of 155k are there from the start"
    );
    assert!(!warned(20_000, 155_000));
    assert!(!warned(20_000, 21_000), "it has hardly begun");
}

#[test]
fn the_outcome_of_a_test_run_reaches_the_handoff() {
    let mut bench = Bench::new();
    bench.started(1);
    let mut ran = |stdout: &str, stderr: &str| {
        bench.tell(Event::Agent(AgentEvent::ToolFinished {
            session: session(1),
            call: crate::agent::ToolCall {
                name: "Bash".to_owned(),
                command: Some("cargo test".to_owned()),
                ..Default::default()
            },
            output: crate::agent::ToolOutput {
                stdout: stdout.to_owned(),
                stderr: stderr.to_owned(),
                ..Default::default()
            },
        }));
        bench.model.handoff.generated.text.clone()
    };
    let failed = "running 1 test\ntest tests::adds ... FAILED\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n";
    assert!(ran(failed, "").contains("## Failing tests\n\n- tests::adds\n"));
    let broken = "error: could not compile `x` (lib test) due to 1 previous error\n";
    assert!(ran("", broken).contains("- (cargo test could not be built)"));
    let passed = "running 1 test\ntest tests::adds ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";
    let text = ran(passed, "");
    assert!(
        text.contains("- none of 1 known tests\n- fixed in the last run: tests::adds"),
        "{text}"
    );
}

/// A plan with these tokens after each level, of 40 responses in a context of 155k.
fn plan(after: [u64; 5]) -> TrimPlan {
    let before = Tokens(155_000);
    let levels: Vec<_> = LEVELS
        .into_iter()
        .zip(after)
        .map(|(percent, after)| LevelFigure {
            percent,
            responses: 40 * usize::from(percent) / 100,
            tokens_before: before,
            tokens_after: Tokens(after),
        })
        .collect();
    let fits = |level: &&LevelFigure| level.tokens_after.0 < 122_400;
    TrimPlan {
        chosen: levels.iter().find(fits).map(|level| level.percent),
        levels,
        estimated: false,
    }
}

/// A plan whose level of 20 % wins.
fn good_plan() -> TrimPlan {
    plan([155_000, 140_000, 110_000, 80_000, 40_000])
}

fn surveys(effects: &[Effect]) -> Vec<u64> {
    let asked = effects.iter().filter_map(|effect| match effect {
        Effect::SurveyTrim { ask, .. } => Some(*ask),
        _ => None,
    });
    asked.collect()
}

fn copies(effects: &[Effect]) -> Vec<(u64, SessionId, SessionId)> {
    let ordered = effects.iter().filter_map(|effect| match effect {
        Effect::TrimTranscript { ask, from, to, .. } => Some((*ask, *from, *to)),
        _ => None,
    });
    ordered.collect()
}

fn starts(effects: &[Effect]) -> Vec<StartAgent> {
    let ordered = effects.iter().filter_map(|effect| match effect {
        Effect::Start(start) => Some(start.clone()),
        _ => None,
    });
    ordered.collect()
}

fn trim_record() -> TrimRecord {
    TrimRecord {
        level: 20,
        responses: 8,
        of: 40,
        tokens_before: Tokens(155_000),
        tokens_after: Tokens(110_000),
    }
}

impl Bench {
    fn planned(&mut self, ask: u64, plan: Result<TrimPlan, String>) -> Vec<Effect> {
        self.tell(Event::Read(ReadEvent::TrimPlanned { ask, plan }))
    }

    fn copied(&mut self, ask: u64, made: Result<TrimRecord, String>) -> Vec<Effect> {
        self.tell(Event::Read(ReadEvent::Trimmed { ask, made }))
    }

    fn grown(&mut self, turns: u64) -> Vec<Effect> {
        let session = self.model.session;
        let facts = Box::new(super::event::TranscriptFacts {
            used: Some(Tokens(155_000)),
            turns,
            ..Default::default()
        });
        self.tell(Event::Read(ReadEvent::Transcript { session, facts }))
    }

    /// A review with a trim that is offered.
    fn offered(&mut self) {
        let effects = self.press(KeyCode::F(5));
        self.git();
        self.planned(surveys(&effects)[0], Ok(good_plan()));
    }

    /// Goes as far as the order of the copy; its number.
    fn trimming(&mut self) -> u64 {
        self.offered();
        self.press(KeyCode::Char('t'));
        let effects = self.press(KeyCode::Enter);
        assert_eq!(signals(&effects), [Rung::Exit]);
        let effects = self.exited(0);
        assert_eq!(starts(&effects), [], "no agent before the copy is there");
        let (ask, from, to) = copies(&effects)[0];
        assert_eq!((from, to), (session(OLD), session(NEW)));
        ask
    }

    fn resumed(&mut self, number: u128) -> Vec<Effect> {
        self.tell(Event::Agent(AgentEvent::SessionStarted {
            session: session(number),
            source: StartSource::Resume,
            model: None,
            transcript_path: None,
        }))
    }
}

#[test]
fn a_trim_copies_the_ended_session_and_resumes_the_copy() {
    let mut bench = Bench::new();
    bench.used(155_000);
    let ask = bench.trimming();
    assert_eq!(bench.model.iteration.get(), 1);
    let effects = bench.copied(ask, Ok(trim_record()));
    let start = StartAgent {
        anew: None,
        iteration: bench.model.iteration,
        session: session(NEW),
        resume: true,
        prompt: None,
        first: false,
    };
    assert_eq!(starts(&effects), [start]);
    let saved = |effect: &Effect| matches!(effect, Effect::SaveHandoff { .. });
    assert!(!effects.iter().any(saved), "no handoff was given");
    bench.spawned(3);
    assert_eq!(bench.step(), Some(Step::Verifying));
    bench.resumed(NEW);
    assert_eq!(bench.step(), None);
    assert_eq!(
        bench.journaled,
        [
            Step::Armed,
            Step::Drafting,
            Step::Review,
            Step::Waiting,
            Step::Ending,
            Step::Starting,
            Step::Verifying,
            Step::Done
        ]
    );
    let record = bench.model.lineage.iterations()[1].reboot.clone().unwrap();
    assert_eq!((record.way, record.trim), (Way::Trim, Some(trim_record())));
    assert_eq!(
        (record.old_session, record.new_session, record.handoff_bytes),
        (Some(session(OLD)), Some(session(NEW)), 0)
    );
    assert!(record.verified);
}

#[test]
fn the_way_is_journaled_from_the_approval_on() {
    let mut bench = Bench::new();
    bench.offered();
    bench.press(KeyCode::Char('t'));
    bench.journal_answers = false;
    let at = bench.at();
    let enter = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
    let key = Event::Host(HostEvent::Input(HostInput::Key {
        event: enter,
        raw: vec![b'\r'],
    }));
    let effects = update(&mut bench.model, at, key);
    let entry = effects.iter().find_map(|effect| match effect {
        Effect::Journal(entry) => Some(entry.clone()),
        _ => None,
    });
    let entry = entry.unwrap();
    assert_eq!((entry.step, entry.way), (Step::Waiting, Way::Trim));
    assert_eq!(entry.trim, Some(trim_record()));
}

#[test]
fn t_chooses_the_trim_and_chooses_back() {
    let mut bench = Bench::new();
    bench.offered();
    let kind = |bench: &Bench| bench.model.reboot.attempt.as_ref().unwrap().kind;
    assert_eq!(kind(&bench), Kind::Fresh);
    bench.press(KeyCode::Char('t'));
    assert_eq!(kind(&bench), Kind::Trim);
    bench.press(KeyCode::Char('t'));
    bench.press(KeyCode::Enter);
    let effects = bench.exited(0);
    assert!(copies(&effects).is_empty() && starts(&effects)[0].prompt.is_some());
}

#[test]
fn a_trim_that_is_not_enough_or_not_needed_is_not_offered() {
    let cases = [
        (
            Ok(plan([155_000, 150_000, 145_000, 140_000, 130_000])),
            "even 100 % leaves 130k",
        ),
        (Ok(plan([90_000; 5])), "already below 122k"),
        (Err("no transcript".to_owned()), "no transcript"),
    ];
    for (plan, expected) in cases {
        let mut bench = Bench::new();
        let effects = bench.press(KeyCode::F(5));
        bench.planned(surveys(&effects)[0], plan);
        bench.press(KeyCode::Char('t'));
        let said = bench.model.notices.back().unwrap();
        assert!(said.bad && said.text.contains(expected), "{}", said.text);
        let kind = bench.model.reboot.attempt.as_ref().unwrap().kind;
        assert_eq!(kind, Kind::Fresh);
    }
}

#[test]
fn a_trim_chosen_before_it_is_known_waits_for_the_survey() {
    let mut bench = Bench::new();
    let effects = bench.press(KeyCode::F(5));
    bench.git();
    bench.press(KeyCode::Char('t'));
    assert!(signals(&bench.press(KeyCode::Enter)).is_empty());
    assert_eq!(bench.step(), Some(Step::Review));
    let bad = plan([155_000; 5]);
    bench.planned(surveys(&effects)[0], Ok(bad));
    assert!(
        signals(&bench.press(KeyCode::Enter)).is_empty(),
        "and it never becomes a fresh one by itself"
    );
    bench.press(KeyCode::Char('t'));
    assert_eq!(signals(&bench.press(KeyCode::Enter)), [Rung::Exit]);
}

#[test]
fn a_session_that_grows_under_review_is_surveyed_again_with_pauses() {
    let mut bench = Bench::new();
    let effects = bench.press(KeyCode::F(5));
    let first = surveys(&effects)[0];
    assert!(surveys(&bench.grown(2)).is_empty(), "one survey at a time");
    bench.wait(Duration::from_millis(500));
    let effects = bench.planned(first, Ok(good_plan()));
    let pause = effects.iter().find_map(|effect| match effect {
        Effect::SetTimer(id @ TimerId::Survey(_), pause) => Some((*id, *pause)),
        _ => None,
    });
    let (timer, pause) = pause.unwrap();
    assert_eq!(pause, Duration::from_millis(4500));
    assert!(surveys(&bench.grown(3)).is_empty());
    let effects = bench.tell(Event::TimerFired(timer));
    let second = surveys(&effects)[0];
    bench.planned(first, Err("late".to_owned()));
    bench.planned(second, Ok(good_plan()));
    bench.press(KeyCode::Esc);
    assert!(surveys(&bench.grown(4)).is_empty(), "nobody looks");
}

#[test]
fn a_copy_that_cannot_be_made_takes_the_reboot_back() {
    let mut bench = Bench::new();
    let ask = bench.trimming();
    let effects = bench.copied(ask, Err("no space".to_owned()));
    let start = starts(&effects).remove(0);
    assert_eq!(
        (start.session, start.resume, start.prompt),
        (session(OLD), true, None)
    );
    bench.spawned(4);
    assert_eq!(bench.step(), None);
    let failure = bench.model.reboot.failure.clone().unwrap();
    assert!(failure.contains("no space"), "{failure}");
    assert_eq!(
        bench.journaled.iter().rev().take(2).collect::<Vec<_>>(),
        [&Step::Failed, &Step::RollingBack]
    );
    let iterations = bench.model.lineage.iterations();
    assert_eq!(iterations[1].parent, Some(iterations[0].iteration));
    assert_eq!(iterations.len(), 2);
}

#[test]
fn a_client_that_refuses_the_copy_takes_the_reboot_back() {
    let mut bench = Bench::new();
    let ask = bench.trimming();
    bench.copied(ask, Ok(trim_record()));
    bench.spawned(3);
    let start = starts(&bench.exited(1)).remove(0);
    assert_eq!((start.session, start.resume), (session(OLD), true));
    bench.spawned(4);
    bench.resumed(OLD);
    assert_eq!((bench.step(), bench.model.session), (None, session(OLD)));
}

#[test]
fn without_hooks_a_calm_title_or_a_growing_copy_proves_a_trim() {
    let mut bench = Bench::new();
    let ask = bench.trimming();
    bench.copied(ask, Ok(trim_record()));
    let effects = bench.spawned(3);
    let timer = effects.iter().find_map(|effect| match effect {
        Effect::SetTimer(id @ TimerId::Verify(_), _) => Some(*id),
        _ => None,
    });
    let title = ScreenFact::Title("✳ work".to_owned());
    bench.tell(Event::Pane(PaneEvent::Screen(title)));
    assert_eq!(bench.step(), Some(Step::Verifying), "it may still refuse");
    bench.tell(Event::TimerFired(timer.unwrap()));
    assert_eq!(bench.step(), None);

    let mut bench = Bench::new();
    let ask = bench.trimming();
    bench.copied(ask, Ok(trim_record()));
    bench.spawned(3);
    bench.grown(4);
    assert_eq!(bench.step(), Some(Step::Verifying), "that is the copy");
    bench.grown(5);
    assert_eq!(bench.step(), None);
}

#[test]
fn late_words_of_the_old_session_prove_no_trim() {
    let mut bench = Bench::new();
    let ask = bench.trimming();
    bench.turn_ended(OLD);
    bench.copied(ask, Ok(trim_record()));
    bench.turn_ended(OLD);
    bench.spawned(3);
    assert_eq!(bench.step(), Some(Step::Verifying));
}

#[test]
fn an_undo_of_a_trim_resumes_the_whole_session() {
    let mut bench = Bench::new();
    let ask = bench.trimming();
    bench.copied(ask, Ok(trim_record()));
    bench.spawned(3);
    bench.resumed(NEW);
    let undone = Event::ControlAsked {
        call: CallId(1),
        control: Control::Undo,
    };
    assert_eq!(signals(&bench.tell(undone)), [Rung::Exit]);
    let start = starts(&bench.exited(0)).remove(0);
    assert_eq!((start.session, start.resume), (session(OLD), true));
}

#[test]
fn a_script_may_choose_the_way() {
    let mut bench = Bench::new();
    let by = |way| Event::ControlAsked {
        call: CallId(1),
        control: Control::RebootBy(way),
    };
    let effects = bench.tell(by(Way::Trim));
    assert!(ordered(&effects).starts_with("the review is open"));
    bench.git();
    let approve = || Event::ControlAsked {
        call: CallId(2),
        control: Control::Approve,
    };
    let refused = bench.tell(approve());
    assert!(
        matches!(&refused[0], Effect::Answer(_, Reply::Refused { why }) if why.contains("still being read"))
    );
    bench.planned(surveys(&effects)[0], Ok(good_plan()));
    assert_eq!(signals(&bench.tell(approve())), [Rung::Exit]);
    assert_eq!(copies(&bench.exited(0)).len(), 1);
}

#[test]
fn an_agent_without_transcripts_has_one_way() {
    let mut bench = Bench::new();
    bench.model.identity.agent_kind = "generic";
    let effects = bench.press(KeyCode::F(5));
    assert!(surveys(&effects).is_empty());
    bench.press(KeyCode::Char('t'));
    let kind = bench.model.reboot.attempt.as_ref().unwrap().kind;
    assert_eq!(kind, Kind::Fresh);
}

#[test]
fn a_session_left_under_review_is_not_the_one_that_is_trimmed() {
    let mut bench = Bench::new();
    bench.offered();
    bench.press(KeyCode::Char('t'));
    let effects = bench.tell(Event::Agent(AgentEvent::SessionStarted {
        session: session(9),
        source: StartSource::Clear,
        model: None,
        transcript_path: None,
    }));
    let ask = surveys(&effects)[0];
    assert!(
        signals(&bench.press(KeyCode::Enter)).is_empty(),
        "nothing is known of it yet"
    );
    bench.planned(ask, Ok(good_plan()));
    bench.press(KeyCode::Enter);
    let effects = bench.exited(0);
    assert_eq!(copies(&effects)[0].1, session(9));
}

/// What the one who gave an order by `ctl` is told.
pub(super) fn ordered(effects: &[Effect]) -> &str {
    match effects.first() {
        Some(Effect::Answer(_, Reply::Ordered(reply))) => &reply.message,
        other => panic!("the order was not carried out: {other:?}"),
    }
}

#[test]
fn whoever_gives_an_order_hears_what_follows_from_it() {
    let mut bench = Bench::new();
    let order = |bench: &mut Bench, control: Control| {
        let call = CallId(1);
        let effects = bench.tell(Event::ControlAsked { call, control });
        ordered(&effects).to_owned()
    };
    let told = order(&mut bench, Control::Reboot);
    assert!(told.contains("`pitstop ctl approve`"), "{told}");
    bench.git();
    bench.prompted(OLD, "one more thing");
    let told = order(&mut bench, Control::Approve);
    assert!(told.contains("once this is over: turn"), "{told}");
    let told = order(&mut bench, Control::Approve);
    assert!(told.contains("the session ends now"), "{told}");
    let mut bench = Bench::new();
    order(&mut bench, Control::Reboot);
    let told = order(&mut bench, Control::Defer);
    assert!(told.contains("3 turns"), "{told}");
    let told = order(&mut bench, Control::Say("go".to_owned()));
    assert!(told.contains("typed"), "{told}");
    let told = order(&mut bench, Control::Stop);
    assert!(told.contains("the agent is ended"), "{told}");
}
