//! A session that another process goes on with.

use super::*;
use crate::app::{event::TranscriptFacts, reboot::blocked_by};
use crate::lineage::TokenTotals;

impl Bench {
    /// The transcript holds so many turns and so many tokens that the model has said.
    pub(super) fn said_by(&mut self, turns: u64, output: u64) -> Vec<Effect> {
        self.said_behind(None, turns, output)
    }

    /// As above, where so many of the turns were in the file when the session was resumed.
    fn said_behind(&mut self, old_turns: Option<u64>, turns: u64, output: u64) -> Vec<Effect> {
        self.facts_read(TranscriptFacts {
            old_turns,
            turns,
            totals: TokenTotals {
                output: Tokens(output),
                ..TokenTotals::default()
            },
            whole: true,
            ..TranscriptFacts::default()
        })
    }
}

/// One turn is over, here.
fn after_a_turn() -> Bench {
    let mut bench = Bench::new();
    bench.prompted(OLD, "count the herons");
    bench.said_by(1, 0);
    bench.said_by(1, 20);
    bench.turn_ended(OLD);
    bench
}

#[test]
fn an_answered_prompt_that_no_hook_has_reported_is_of_another_process() {
    let mut bench = after_a_turn();
    bench.said_by(2, 20);
    assert_eq!(
        bench.state(),
        AgentState::Idle,
        "a prompt alone proves nothing"
    );
    bench.said_by(2, 45);
    assert_eq!(bench.state(), AgentState::Elsewhere);
    assert_eq!(blocked_by(&bench.model), [Block::Elsewhere]);
    // It stands for as long as nothing is done here.
    bench.titled("✳ herons");
    bench.stands();
    assert_eq!(bench.state(), AgentState::Elsewhere);
    bench.prompted(OLD, "and the ducks");
    bench.said_by(3, 45);
    assert_eq!(bench.state(), AgentState::Busy);
    bench.turn_ended(OLD);
    // The end of the own turn is written late.
    bench.said_by(3, 70);
    assert_eq!(bench.state(), AgentState::Idle);
}

#[test]
fn a_prompt_of_a_process_that_died_may_be_read_when_its_session_is_resumed() {
    for is_reported in [true, false] {
        let mut bench = after_a_turn();
        if is_reported {
            bench.prompted(OLD, "and the ducks");
        } else {
            bench.model.session.agent.activity.elsewhere.submitted();
        }
        super::super::iteration::begin(&mut bench.model, true, None, None);
        bench.spawned(OLD);
        bench.started(OLD);
        bench.ready();
        for (turns, output) in [(1, 20), (2, 20), (2, 45)] {
            bench.said_behind(Some(1), turns, output);
        }
        assert_eq!(bench.state(), AgentState::Idle, "{is_reported}");
        // One more is of another process.
        bench.said_behind(Some(1), 3, 45);
        bench.said_behind(Some(1), 3, 60);
        assert_eq!(bench.state(), AgentState::Elsewhere, "{is_reported}");
    }
}

#[test]
fn what_was_read_before_a_session_was_resumed_hides_no_prompt_that_is_given_then() {
    let mut bench = after_a_turn();
    super::super::iteration::begin(&mut bench.model, true, None, Some("go on".to_owned()));
    bench.spawned(OLD);
    bench.started(OLD);
    bench.ready();
    // The follower of the file is the same, and it was there from the session's beginning.
    for (turns, output) in [(1, 20), (2, 20), (2, 45)] {
        bench.said_behind(Some(0), turns, output);
    }
    assert_ne!(bench.state(), AgentState::Elsewhere);
}

#[test]
fn turns_of_the_session_here_are_never_taken_for_those_of_another_process() {
    // A turn so short that its lines are read when it is over.
    let mut bench = Bench::new();
    bench.said_by(0, 0);
    bench.prompted(OLD, "count the herons");
    bench.turn_ended(OLD);
    bench.said_by(1, 20);
    assert_eq!(bench.state(), AgentState::Idle);
    // One that the client begins by itself spins the title.
    bench.titled("⠂ herons");
    bench.said_by(2, 40);
    assert_eq!(bench.state(), AgentState::Idle);
    // A session that is resumed brings its turns along.
    let mut bench = Bench::new();
    bench.said_by(7, 300);
    assert_eq!(bench.state(), AgentState::Idle);
    // After the agent view the file is another one.
    let mut bench = after_a_turn();
    bench.titled("1 awaiting input · claude agents");
    bench.titled("✳ herons");
    bench.said_by(3, 90);
    assert_ne!(bench.state(), AgentState::Elsewhere);
}

#[test]
fn a_prompt_given_here_whose_hook_is_lost_is_not_of_another_process() {
    let mut bench = after_a_turn();
    bench.press(KeyCode::Enter);
    bench.said_by(2, 20);
    bench.said_by(2, 45);
    assert_eq!(bench.state(), AgentState::Idle);
    // It stands for one prompt only.
    bench.said_by(3, 45);
    bench.said_by(3, 60);
    assert_eq!(bench.state(), AgentState::Elsewhere);
    // One that its hook has reported stands for none.
    let mut bench = after_a_turn();
    bench.press(KeyCode::Enter);
    bench.prompted(OLD, "and the ducks");
    bench.said_by(2, 30);
    bench.turn_ended(OLD);
    bench.said_by(3, 30);
    bench.said_by(3, 45);
    assert_eq!(bench.state(), AgentState::Elsewhere);
}

#[test]
fn a_prompt_whose_hook_comes_after_the_transcript_hides_no_other_process() {
    let mut bench = Bench::new();
    bench.said_by(0, 0);
    bench.press(KeyCode::Enter);
    bench.said_by(1, 0);
    bench.prompted(OLD, "count the herons");
    bench.said_by(1, 20);
    bench.turn_ended(OLD);
    bench.said_by(2, 20);
    bench.said_by(2, 45);
    assert_eq!(bench.state(), AgentState::Elsewhere);
    // A hook that never comes leaves nothing to the next prompt's.
    let mut bench = after_a_turn();
    bench.press(KeyCode::Enter);
    bench.said_by(2, 45);
    bench.press(KeyCode::Enter);
    bench.prompted(OLD, "and the ducks");
    bench.turn_ended(OLD);
    bench.said_by(3, 60);
    assert_eq!(bench.state(), AgentState::Idle);
}

#[test]
fn a_person_may_reboot_it_all_the_same() {
    let mut bench = after_a_turn();
    bench.said_by(2, 45);
    bench.approve();
    assert_eq!(bench.step(), Some(Step::Ending));
}

#[test]
fn another_process_is_seen_in_a_session_that_was_cleared_after_a_resume() {
    for before in [1, 7, 300] {
        let mut bench = Bench::new();
        bench.said_by(before, 300);
        super::super::iteration::begin(&mut bench.model, true, None, None);
        bench.spawned(OLD);
        bench.resumed(OLD);
        bench.ready();
        bench.session_starts(9, StartSource::Clear);
        bench.prompted(9, "count the herons");
        for (turns, output) in [(1, 0), (1, 20)] {
            bench.said_behind(Some(0), turns, output);
        }
        bench.turn_ended(9);
        for (turns, output) in [(2, 20), (2, 45)] {
            bench.said_behind(Some(0), turns, output);
        }
        assert_eq!(bench.state(), AgentState::Elsewhere, "{before}");
    }
}
