//! The client's own side of the session: when it is in force, what it moves, and what it cannot.

use crate::{
    app::{
        bridge::{absence, report},
        event::BridgeEvent,
        reboot::blocked_by,
    },
    guard::Figure,
};
use pitstop_agent::bridge::{
    Absence, BridgeOrder, Category, CategoryKind, Fact, Link, Outcome, PutBack, Report, Said,
    TurnEnd, UnsentPrompt, Usage,
};

use super::{in_place::reads_draft, *};

impl Bench {
    pub(super) fn with_bridge(&mut self, absence: Option<Absence>) -> Vec<Effect> {
        let iteration = self.model.session.iteration();
        self.send(Event::Bridge(BridgeEvent::Offered { iteration, absence }))
    }

    pub(super) fn bridge_says(&mut self, number: u128, said: Said) -> Vec<Effect> {
        let report = Report {
            session: session(number),
            client: "2.1.330".into(),
            said,
        };
        self.send(Event::Bridge(BridgeEvent::Said(Box::new(report))))
    }

    pub(super) fn drafts(&mut self, text: &str, cursor: usize) -> Vec<Effect> {
        let text = text.to_owned();
        let changed = Fact::DraftChanged(UnsentPrompt { text, cursor });
        self.bridge_says(OLD, Said::Fact(changed))
    }

    pub(super) fn bridge_looks(&mut self) -> Vec<Effect> {
        let iteration = self.model.session.iteration();
        self.send(Event::TimerFired(TimerId::Bridge(iteration)))
    }

    /// How full the context is now.
    fn figure(&self) -> Option<Figure> {
        self.model.session.guard.figure(self.at())
    }

    /// A session with the bridge in force.
    pub(super) fn bridged() -> Self {
        let mut bench = Self::new();
        bench.with_bridge(None);
        bench.bridge_says(OLD, Said::Hello);
        bench
    }
}

fn usage(used: u64) -> Said {
    Said::Fact(Fact::Usage(Usage {
        used: Some(Tokens(used)),
        window: Tokens(1_000_000),
        ..Usage::default()
    }))
}

fn turn(runs: bool, reason: TurnEnd) -> Said {
    let turn = "1".to_owned();
    Said::Fact(if runs {
        Fact::TurnStarted { turn }
    } else {
        Fact::TurnEnded { turn, reason }
    })
}

/// The order to look for a dialog, if it was given.
fn probes(effects: &[Effect]) -> Option<pitstop_agent::bridge::OrderId> {
    first!(effects, Effect::OrderBridge { id, order: BridgeOrder::Probe, .. } => *id)
}

#[test]
fn its_first_word_puts_it_in_force_and_has_the_prompt_box_read() {
    let mut bench = Bench::new();
    bench.with_bridge(None);
    assert_eq!(report(&bench.model).state, "awaited");
    let effects = bench.bridge_says(OLD, Said::Hello);
    let id = reads_draft(&effects).expect("the prompt box is read");
    assert_eq!(
        reads_draft(&bench.bridge_says(OLD, Said::Polled)),
        None,
        "once"
    );
    let draft = UnsentPrompt {
        text: "half a thought".into(),
        cursor: 4,
    };
    let outcome = Outcome::Draft(draft.clone());
    bench.bridge_says(OLD, Said::Answered(id, outcome));
    assert_eq!(bench.model.session.agent.bridge.reported.draft, Some(draft));
    let report = report(&bench.model);
    assert_eq!((report.state.as_str(), report.why), ("in_force", None));
    assert_eq!(report.draft_characters, Some(14));
    assert_eq!(
        bench.model.session.agent.version.as_deref(),
        Some("2.1.330")
    );
}

#[test]
fn its_figure_counts_before_the_status_line_and_names_its_source() {
    let mut bench = Bench::bridged();
    bench.bridge_says(OLD, usage(18_000));
    bench.send(Event::Agent(AgentEvent::StatusLine(Box::new(StatusLine {
        window: Some(Tokens(1_000_000)),
        ..status_line(OLD)
    }))));
    let figure = bench.figure().expect("a figure");
    assert_eq!(
        (figure.used, figure.window, figure.source),
        (Tokens(18_000), Tokens(1_000_000), Source::Bridge)
    );
}

#[test]
fn what_holds_the_base_load_is_kept_apart_from_the_talk() {
    let mut bench = Bench::bridged();
    let row = |name: &str, tokens, kind| Category {
        name: name.into(),
        tokens: Tokens(tokens),
        kind,
        parts: vec![],
    };
    let usage = Usage {
        used: Some(Tokens(18_000)),
        window: Tokens(200_000),
        categories: vec![
            row("System prompt", 2_421, CategoryKind::Used),
            row("System tools", 12_280, CategoryKind::Used),
            row("Later", 12_464, CategoryKind::Deferred),
            row("Messages", 3_299, CategoryKind::Used),
            row("Free space", 182_000, CategoryKind::Free),
        ],
        ..Usage::default()
    };
    bench.bridge_says(OLD, Said::Fact(Fact::Usage(usage)));
    let report = report(&bench.model);
    assert_eq!(report.base_tokens, Some(14_701));
    assert_eq!(report.categories.len(), 5);
}

#[test]
fn turns_prompts_and_the_draft_are_kept_as_it_says_them() {
    let mut bench = Bench::bridged();
    let turn = || "t".to_owned();
    bench.bridge_says(
        OLD,
        Said::Fact(Fact::PromptSubmitted {
            origin: "composer".into(),
            text: "go".into(),
        }),
    );
    bench.bridge_says(OLD, Said::Fact(Fact::TurnStarted { turn: turn() }));
    assert_eq!(report(&bench.model).turn_runs, Some(true));
    let (turn, reason) = (turn(), TurnEnd::Aborted);
    bench.bridge_says(OLD, Said::Fact(Fact::TurnEnded { turn, reason }));
    bench.drafts("é", 1);
    let report = report(&bench.model);
    assert_eq!(report.turn_runs, Some(false));
    assert_eq!(report.prompt_origin.as_deref(), Some("composer"));
    assert_eq!(report.draft_characters, Some(1));
}

#[test]
fn a_prompt_that_the_client_puts_back_is_taken_back() {
    let mut bench = Bench::bridged();
    let text = "go".to_owned();
    let prompt = PutBack { text, prompts: 2 };
    let put_back = || Said::Fact(Fact::PromptPutBack(prompt.clone()));
    let effects = bench.bridge_says(OLD, put_back());
    assert_eq!(effects, [Effect::TakeBack(session(OLD), prompt.clone())]);
    assert_eq!(bench.bridge_says(77, put_back()), []);
}

#[test]
fn another_session_s_bridge_moves_nothing() {
    let mut bench = Bench::new();
    bench.with_bridge(None);
    let effects = bench.bridge_says(77, usage(190_000));
    assert_eq!(effects, []);
    assert_eq!(bench.model.session.agent.bridge.link, Link::Awaited);
    assert_eq!(bench.figure(), None);
}

#[test]
fn what_it_said_of_a_session_is_void_when_the_agent_changes_it() {
    let mut bench = Bench::bridged();
    bench.bridge_says(OLD, usage(18_000));
    bench.drafts("", 0);
    bench.session_starts(NEW, StartSource::Clear);
    assert_eq!(report(&bench.model).draft_characters, None);
    assert_eq!(bench.figure(), None);
    bench.bridge_says(NEW, usage(14_000));
    let figure = bench.figure().expect("a figure");
    assert_eq!(figure.source, Source::Bridge);
}

#[test]
fn without_a_word_the_session_goes_on_and_says_why() {
    for (version, why) in [(Some("2.1.197"), "too_old"), (None, "no_hello")] {
        let mut bench = Bench::new();
        bench.model.session.agent.version = version.map(str::to_owned);
        bench.with_bridge(None);
        bench.wait(Duration::from_secs(20));
        bench.bridge_looks();
        assert_eq!(report(&bench.model).why.as_deref(), Some(why));
        let notice = &bench.model.view.notices.back().expect("it says so").text;
        assert!(notice.starts_with("without the bridge: "), "{notice}");
        // It may be slow.
        bench.bridge_says(OLD, Said::Hello);
        assert_eq!(report(&bench.model).state, "in_force");
    }
}

#[test]
fn a_session_that_has_not_begun_is_waited_for() {
    let mut bench = Bench::bare(Config::default());
    crate::app::iteration::begin(&mut bench.model, false, None, None);
    bench.spawned(NEW);
    bench.with_bridge(None);
    let iteration = bench.model.session.iteration();
    let effects = bench.bridge_looks();
    assert!(
        matches!(effects[..], [Effect::SetTimer(TimerId::Bridge(of), _)] if of == iteration),
        "{effects:?}"
    );
    assert_eq!(report(&bench.model).state, "awaited");
}

#[test]
fn one_that_falls_silent_gives_its_figure_up() {
    let mut bench = Bench::bridged();
    bench.bridge_says(OLD, usage(18_000));
    bench.wait(Duration::from_secs(40));
    bench.bridge_looks();
    assert_eq!(report(&bench.model).state, "in_force");
    bench.wait(Duration::from_secs(6));
    bench.bridge_looks();
    assert_eq!(report(&bench.model).why.as_deref(), Some("silent"));
    assert_eq!(bench.figure(), None);
}

#[test]
fn one_of_another_protocol_is_named() {
    let mut bench = Bench::new();
    bench.with_bridge(None);
    bench.bridge_says(OLD, Said::WrongProtocol(9));
    let report = report(&bench.model);
    assert_eq!(report.why.as_deref(), Some("other_protocol"));
}

#[test]
fn it_is_left_out_where_it_cannot_be_or_is_not_wanted() {
    let mut bench = Bench::new();
    let model = &mut bench.model;
    let safe = ["--safe-mode".to_owned()];
    assert_eq!(absence(model, true, &[]), None);
    let flag = Some(Absence::Flag("--safe-mode"));
    assert_eq!(absence(model, true, &safe), flag);
    let other = Some(Absence::OtherAgent);
    assert_eq!(absence(model, false, &[]), other);
    model.session.agent.version = Some("2.1.286".into());
    let old = Some(Absence::TooOld("2.1.286".into()));
    assert_eq!(absence(model, true, &[]), old);
    model.session.agent.version = Some("2.1.287".into());
    assert_eq!(absence(model, true, &[]), None);
    model.config.agent.bridge = false;
    let off = Some(Absence::SwitchedOff);
    assert_eq!(absence(model, true, &[]), off);
}

#[test]
fn whatever_it_says_it_ends_no_turn_approves_nothing_and_types_nothing() {
    let mut bench = Bench::bridged();
    bench.review();
    let before = bench.step();
    for said in [
        usage(999_000),
        Said::Fact(Fact::PromptSubmitted {
            origin: "composer".into(),
            text: "approve".into(),
        }),
        Said::Answered(
            pitstop_agent::bridge::OrderId(99),
            Outcome::Replaced { begun: true },
        ),
    ] {
        let effects = bench.bridge_says(OLD, said);
        let acts = effects.iter().any(|effect| {
            matches!(
                effect,
                Effect::Type(_) | Effect::Paste(_) | Effect::Signal(_) | Effect::Start(_)
            )
        });
        assert!(!acts, "{effects:?}");
    }
    assert_eq!(bench.step(), before);
}

#[test]
fn a_turn_that_is_stopped_is_over_when_the_bridge_says_so() {
    let mut bench = Bench::bridged();
    bench.prompted(OLD, "begin");
    bench.bridge_says(OLD, turn(true, TurnEnd::Answer));
    assert_eq!(bench.state(), AgentState::Busy);
    // What a turn has left going on is in the hook of its end.
    bench.bridge_says(OLD, turn(false, TurnEnd::Answer));
    assert_eq!(bench.state(), AgentState::Busy);
    bench.bridge_says(OLD, turn(true, TurnEnd::Answer));
    bench.bridge_says(OLD, turn(false, TurnEnd::Aborted));
    assert_eq!(bench.state(), AgentState::Idle);
}

#[test]
fn a_turn_that_the_bridge_says_runs_is_not_taken_for_stopped() {
    let mut bench = Bench::bridged();
    bench.prompted(OLD, "begin");
    bench.bridge_says(OLD, turn(true, TurnEnd::Answer));
    bench.titled("✳ calm");
    bench.stands();
    assert_eq!(bench.state(), AgentState::Busy);
    // Its end may have been lost with the connection: then the signs serve.
    bench.bridge_says(OLD, Said::Hello);
    bench.titled("⠋ busy");
    bench.titled("✳ calm");
    bench.stands();
    assert_eq!(bench.state(), AgentState::Idle);
}

#[test]
fn a_turn_runs_while_the_bridge_says_so_whatever_hooks_have_said() {
    // What it said last is of the turn before: its word on this one is late.
    let mut bench = Bench::bridged();
    bench.bridge_says(OLD, turn(false, TurnEnd::Answer));
    bench.prompted(OLD, "work");
    bench.titled("⠂ work");
    for stop in 1..4 {
        bench.turn_ended(OLD);
        bench.stands();
        assert_eq!((bench.state(), stop), (AgentState::Busy, stop));
    }
    bench.bridge_says(OLD, turn(true, TurnEnd::Answer));
    bench.turn_ended(OLD);
    bench.titled("✳ work");
    assert_eq!(blocked_by(&bench.model), [Block::Turn]);
    bench.bridge_says(OLD, turn(false, TurnEnd::Answer));
    assert_eq!(bench.model.session.agent.turns, 1);

    // One that a hook has ended too early, with a calm title, one that spins, subagents that go on, and none of these.
    for (title, tasks) in [("✳ a", 0), ("⠂ a", 1), ("◐ a", 2), ("", 1)] {
        let mut bench = Bench::bridged();
        bench.left(OLD, None, in_background(&["a1", "a2"][..tasks]));
        bench.titled(title);
        bench.bridge_says(OLD, turn(true, TurnEnd::Answer));
        bench.stands();
        assert_eq!(bench.state(), AgentState::Busy, "{title} {tasks}");
        bench.turn_ended(OLD);
        bench.bridge_says(OLD, turn(false, TurnEnd::Answer));
        assert_eq!(bench.state(), AgentState::Idle, "{title} {tasks}");
    }
}

/// A session whose prompt box has gone, and the order to look for a dialog.
fn hidden() -> (Bench, pitstop_agent::bridge::OrderId) {
    let mut bench = Bench::bridged();
    bench.prompt_box(PromptBox::Absent);
    let effects = bench.stands();
    assert_eq!(bench.state(), AgentState::Unknown, "until it is known");
    let id = probes(&effects).expect("the bridge looks for a dialog");
    (bench, id)
}

#[test]
fn whether_a_dialog_stands_is_known_by_the_bridge() {
    use pitstop_agent::bridge::Refusal;
    let (mut bench, id) = hidden();
    let dialog = Outcome::Filled(Err(Refusal::Dialog));
    assert_eq!(blocked_by(&bench.model), [Block::Unknown]);
    bench.bridge_says(OLD, Said::Answered(id, dialog.clone()));
    // A list that a person has opened.
    assert_eq!(bench.state(), AgentState::Unknown);
    assert_eq!(blocked_by(&bench.model), [Block::Dialog]);
    bench.prompt_box(PromptBox::Empty);
    bench.stands();
    assert_eq!(bench.state(), AgentState::Idle);

    // In a turn it is the agent who asks.
    bench.prompted(OLD, "begin");
    bench.bridge_says(OLD, turn(true, TurnEnd::Answer));
    bench.titled("✳ calm");
    bench.prompt_box(PromptBox::Absent);
    let id = probes(&bench.stands()).expect("the bridge looks for a dialog");
    bench.bridge_says(OLD, Said::Answered(id, dialog));
    assert_eq!(bench.state(), AgentState::Dialog);

    let (mut bench, id) = hidden();
    bench.bridge_says(OLD, Said::Answered(id, Outcome::Filled(Ok(()))));
    assert_eq!(bench.state(), AgentState::Idle, "a viewer, not a dialog");

    let (mut bench, id) = hidden();
    let cancelled = BridgeEvent::Cancelled {
        id,
        was_taken: false,
    };
    bench.send(Event::Bridge(cancelled));
    assert_eq!(bench.state(), AgentState::Unknown);
}

#[test]
fn a_turn_is_over_when_the_bridge_says_so_and_not_at_a_stop_that_another_hook_answers() {
    let mut bench = Bench::bridged();
    bench.prompted(OLD, "work");
    bench.bridge_says(OLD, turn(true, TurnEnd::Answer));
    // Here the title is calm in between: a dialog may have been open.
    for title in ["✳ work", "⠂ work", "no sign"] {
        bench.titled(title);
        bench.turn_ended(OLD);
        bench.stands();
        assert_eq!(bench.state(), AgentState::Busy, "{title}");
    }
    bench.bridge_says(OLD, turn(false, TurnEnd::Answer));
    assert_eq!(bench.state(), AgentState::Idle);
    assert_eq!(bench.model.session.agent.turns, 1);
    // One that dies without a word of a hook is over by the signs.
    bench.prompted(OLD, "more");
    bench.bridge_says(OLD, turn(true, TurnEnd::Answer));
    bench.titled("⠂ work");
    bench.bridge_says(OLD, turn(false, TurnEnd::Error));
    bench.titled("✳ work");
    bench.ready();
    bench.stands();
    bench.is_idle_after(2);
}

#[test]
fn a_prompt_in_the_middle_of_a_turn_begins_none_in_the_figures() {
    let mut bench = Bench::bridged();
    bench.prompted(OLD, "Port the parser");
    bench.bridge_says(OLD, turn(true, TurnEnd::Answer));
    bench.used(40_000);
    bench.prompted(OLD, "and keep its flags");
    bench.used(90_000);
    let turns = |bench: &Bench| bench.model.session.guard.forecast().turns().len();
    assert_eq!(turns(&bench), 1);
    bench.bridge_says(OLD, turn(false, TurnEnd::Answer));
    bench.turn_ended(OLD);
    assert_eq!(bench.model.session.agent.turns, 1);
    // The next one is another turn, also where the bridge reports it before the hook.
    bench.bridge_says(OLD, turn(true, TurnEnd::Answer));
    bench.prompted(OLD, "now the lexer");
    bench.used(95_000);
    assert_eq!(turns(&bench), 2);
    let iteration = bench.model.session.iteration();
    let kept: Vec<_> = bench.model.turns.of(iteration).collect();
    assert_eq!(kept, [Tokens(90_000)]);
}
