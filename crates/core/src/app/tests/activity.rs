//! What the agent does, by hooks, title and prompt box.

use super::*;

impl Bench {
    pub(super) fn tool_starts(&mut self, name: &str, id: &str) -> Vec<Effect> {
        self.send(Event::Agent(AgentEvent::ToolStarted {
            session: self.model.session.id,
            call: call(name, id),
        }))
    }

    pub(super) fn tool_ends(&mut self, name: &str, id: &str) -> Vec<Effect> {
        self.tool(call(name, id), "")
    }

    /// A dialog takes the place of the prompt box.
    fn hides(&mut self) -> Vec<Effect> {
        self.prompt_box(PromptBox::Absent)
    }

    fn reason(&self) -> String {
        crate::app::facts::agent_reason(&self.model).unwrap_or_default()
    }

    pub(super) fn blocks(&self) -> Vec<Block> {
        crate::app::reboot::blocked_by(&self.model)
    }
}

fn call(name: &str, id: &str) -> ToolCall {
    ToolCall {
        id: Some(id.to_owned()),
        name: name.to_owned(),
        ..ToolCall::default()
    }
}

/// A bench whose agent runs a tool, with a title that spins.
fn working() -> Bench {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.titled("⠂ work");
    bench.tool_starts("Bash", "t1");
    bench
}

#[test]
fn a_calm_title_over_a_call_without_a_result_is_unknown_and_never_safe() {
    let mut bench = working();
    // Auto mode's dialog: no hook speaks of it at first.
    bench.titled("✳ work");
    bench.hides();
    assert_eq!(bench.state(), AgentState::Busy, "it must stand");
    bench.stands();
    assert_eq!(bench.state(), AgentState::Unknown);
    assert_eq!(bench.blocks(), [Block::Unknown]);
    assert!(bench.reason().contains("prompt box"), "{}", bench.reason());
    // Six seconds later the client reports it.
    bench.asks("Auto mode can't check actions");
    assert_eq!(
        (bench.state(), bench.reason()),
        (
            AgentState::Dialog,
            "Auto mode can't check actions".to_owned()
        )
    );
    // The human stays in auto mode: the box is back and the turn goes on.
    bench.ready();
    bench.titled("⠂ work");
    bench.stands();
    assert_eq!(bench.state(), AgentState::Busy);
    bench.stands();
    assert_eq!(bench.state(), AgentState::Busy);
    bench.turn_ended(OLD);
    bench.titled("✳ work");
    assert_eq!(bench.state(), AgentState::Idle);
}

#[test]
fn the_hook_of_a_call_that_comes_behind_the_end_of_its_turn_opens_none_for_long() {
    let mut bench = working();
    bench.turn_ended(OLD);
    bench.titled("✳ work");
    bench.ready();
    assert_eq!(bench.state(), AgentState::Idle);
    let effects = bench.tool_ends("Bash", "t1");
    let looks = has!(effects, Effect::SetTimer(TimerId::Calm(_), _));
    assert!(looks, "{effects:?}");
    bench.stands();
    assert_eq!(bench.state(), AgentState::Idle);
}

#[test]
fn a_stop_that_another_hook_answers_does_not_end_the_turn() {
    // The title spins until the client has heard all Stop hooks.
    let mut bench = working();
    bench.tool_ends("Bash", "t1");
    for stops in 0..3 {
        bench.turn_ended(OLD);
        bench.stands();
        assert_eq!(bench.state(), AgentState::Busy, "after {stops} stops");
        assert_eq!(bench.blocks(), [Block::Turn]);
        bench.tool_starts("Bash", "t2");
        bench.tool_ends("Bash", "t2");
        bench.titled(if stops == 1 { "⠂ work" } else { "⠐ work" });
    }
    assert_eq!(bench.model.session.agent.turns, 0);
    bench.turn_ended(OLD);
    bench.titled("✳ work");
    assert_eq!(bench.state(), AgentState::Idle);
    assert_eq!(bench.model.session.agent.turns, 1);
    // Without a title its hook is all that is known of a turn's end.
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.turn_ended(OLD);
    assert_eq!(bench.state(), AgentState::Idle);
}

#[test]
fn a_question_behind_a_stop_leaves_the_turn_open() {
    for about in ["Bash", "AskUserQuestion", "another agent needs your input"] {
        let mut bench = working();
        bench.tool_ends("Bash", "t1");
        bench.turn_ended(OLD);
        bench.turn_ended(OLD);
        bench.asks(about);
        bench.hides();
        bench.titled("✳ work");
        bench.stands();
        assert_eq!(bench.blocks(), [Block::Dialog], "{about}");
        bench.titled("⠂ work");
        bench.ready();
        bench.stands();
        assert_eq!(bench.blocks(), [Block::Turn], "{about}");
        bench.titled("✳ work");
        assert_eq!(bench.model.session.agent.turns, 1, "{about}");
        assert!(bench.blocks().is_empty(), "{about}");
    }
}

#[test]
fn a_stop_whose_calm_title_was_there_before_or_comes_late_ends_the_turn_once() {
    let mut bench = working();
    bench.tool_ends("Bash", "t1");
    bench.titled("✳ work");
    bench.turn_ended(OLD);
    bench.is_idle_after(1);
    bench.stands();
    bench.titled("⠂ work");
    bench.prompted(OLD, "more");
    bench.turn_ended(OLD);
    bench.stands();
    assert_eq!(bench.state(), AgentState::Busy);
    bench.titled("✳ work");
    bench.stands();
    bench.is_idle_after(2);
}

#[test]
fn a_turn_that_the_human_stops_is_over_when_the_prompt_box_is_there() {
    let mut bench = working();
    bench.titled("✳ work");
    assert_eq!(bench.state(), AgentState::Busy);
    bench.stands();
    assert_eq!(bench.state(), AgentState::Idle);
    assert!(bench.blocks().is_empty());
}

#[test]
fn without_a_prompt_box_to_see_an_open_call_makes_the_difference() {
    let blind = || {
        let mut bench = Bench::bare(Config::default());
        crate::app::iteration::begin(&mut bench.model, false, None, None);
        bench.spawned(NEW);
        bench.started(OLD);
        assert_eq!(
            bench.state(),
            AgentState::Starting,
            "a dialog may stand at the start"
        );
        bench.prompted(OLD, "work");
        bench.titled("⠂ work");
        bench
    };
    let mut bench = blind();
    bench.tool_starts("Bash", "t1");
    bench.titled("✳ work");
    bench.stands();
    assert_eq!(bench.state(), AgentState::Unknown);
    let mut bench = blind();
    bench.tool_starts("Bash", "t1");
    bench.tool_ends("Bash", "t1");
    bench.titled("✳ work");
    bench.stands();
    assert_eq!(bench.state(), AgentState::Idle);
}

#[test]
fn a_question_stays_open_until_it_is_known_to_be_answered() {
    let mut bench = working();
    bench.asks("Bash");
    bench.hides();
    bench.titled("✳ work");
    bench.stands();
    // A key may have gone anywhere, and the result of another call answers nothing.
    bench.press(KeyCode::Enter);
    bench.tool_starts("Read", "t2");
    bench.tool_ends("Read", "t2");
    assert_eq!(bench.state(), AgentState::Dialog);
    assert_eq!(bench.blocks(), [Block::Dialog, Block::Typing]);
    bench.tool_ends("Bash", "t1");
    assert_eq!(bench.state(), AgentState::Busy);

    // Denied: no hook speaks, the prompt box is back.
    let mut bench = working();
    bench.asks("Bash");
    bench.hides();
    bench.titled("✳ work");
    bench.ready();
    bench.stands();
    bench.stands();
    assert_eq!(bench.state(), AgentState::Idle);
}

#[test]
fn a_question_that_is_not_drawn_here_does_not_stay_for_ever() {
    let mut bench = Bench::new();
    bench.asks("another agent needs your input");
    assert_eq!(bench.state(), AgentState::Dialog);
    bench.stands();
    assert_eq!(bench.state(), AgentState::Idle);

    // Also when the title changes meanwhile.
    bench.asks("another agent needs your input");
    bench.wait(Duration::from_secs(1));
    bench.titled("✳ other");
    bench.wait(Duration::from_millis(1500));
    let stood = TimerId::Calm(bench.model.session.calm_epoch);
    bench.send(Event::TimerFired(stood));
    assert_eq!(bench.state(), AgentState::Dialog);
    bench.stands();
    assert_eq!(bench.state(), AgentState::Idle);
}

#[test]
fn what_the_human_opens_over_the_prompt_box_is_unknown() {
    let mut bench = Bench::new();
    bench.titled("✳ work");
    bench.hides();
    bench.stands();
    assert_eq!(
        (bench.state(), bench.blocks()),
        (AgentState::Unknown, vec![Block::Unknown])
    );
    bench.ready();
    bench.stands();
    assert_eq!(bench.state(), AgentState::Idle);
}

#[test]
fn work_without_a_turn_is_work() {
    let mut bench = Bench::new();
    bench.titled("⠂ Compacting");
    bench.stands();
    assert_eq!(
        (bench.state(), bench.blocks()),
        (AgentState::Busy, vec![Block::Turn])
    );
    bench.titled("✳ work");
    bench.stands();
    assert_eq!(bench.state(), AgentState::Idle);
}

#[test]
fn a_subagent_in_the_background_is_named_and_begins_no_turn() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.left(OLD, Some("I wait"), in_background(&["a1"]));
    bench.titled("◐ work");
    bench.send(Event::Agent(AgentEvent::ToolStarted {
        session: session(OLD),
        call: ToolCall {
            by_subagent: true,
            ..call("Bash", "t7")
        },
    }));
    bench.stands();
    assert_eq!(
        (bench.state(), bench.reason(), bench.blocks()),
        (
            AgentState::Idle,
            "1 background agent".to_owned(),
            vec![Block::Background]
        )
    );
    // The client comes back with a prompt of its own.
    bench.prompted(OLD, "<task-notification>…");
    bench.turn_ended(OLD);
    bench.titled("✳ work");
    assert!(bench.blocks().is_empty());
}

#[test]
fn a_full_window_under_an_open_dialog_is_not_rebooted() {
    let mut config = Config::default();
    config.reboot.mode = RebootMode::Auto;
    config.reboot.auto_delay = Duration::ZERO;
    let mut bench = Bench::with(config);
    bench.prompted(OLD, "work");
    bench.tool_starts("Bash", "t1");
    bench.used(170_000);
    bench.titled("✳ work");
    bench.hides();
    bench.stands();
    assert_eq!(
        (bench.state(), bench.step()),
        (AgentState::Unknown, Some(Step::Armed))
    );
    bench.wait(Duration::from_secs(600));
    let effects = bench.git();
    assert!(signals(&effects).is_empty());
    assert_eq!(bench.step(), Some(Step::Armed));
}

#[test]
fn a_late_hook_does_not_bring_back_an_agent_that_has_ended() {
    let mut bench = Bench::new();
    bench.exited(9);
    bench.prompted(OLD, "work");
    bench.tool_starts("Bash", "t1");
    bench.tool_ends("Bash", "t1");
    bench.asks("Bash");
    bench.turn_ended(OLD);
    bench.ready();
    bench.stands();
    assert_eq!(bench.state(), AgentState::Exited);
}
