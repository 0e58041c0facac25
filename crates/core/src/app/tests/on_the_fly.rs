//! A reboot on the fly: the handoff takes the place of the conversation between two steps of a turn, which goes on.

use crate::{
    app::{
        event::{BridgeEvent, ReadEvent, TranscriptFacts},
        facts::{NO_TURN_RUNS, goes_on_the_fly},
        reboot::{Banner, QuietReason, banner, on_the_fly},
        session::compaction,
    },
    lineage::Way,
};
use pitstop_agent::{
    bridge::{BridgeOrder, Fact, OrderId, Outcome, ReplaceWhen, Said, TurnEnd},
    claude::limits::Words,
};

use super::{client_limit::by_bridge, in_place::replaces, reboot::prefixed, *};

pub(super) fn turn(runs: bool) -> Said {
    let turn = "1".to_owned();
    Said::Fact(if runs {
        Fact::TurnStarted { turn }
    } else {
        let reason = TurnEnd::Answer;
        Fact::TurnEnded { turn, reason }
    })
}

fn restores(effects: &[Effect]) -> bool {
    let restore = |effect: &Effect| {
        matches!(
            effect,
            Effect::OrderBridge {
                order: BridgeOrder::RestoreTrigger,
                ..
            }
        )
    };
    effects.iter().any(restore)
}

impl Bench {
    /// A session with the bridge in force, in the middle of a turn.
    fn at_work(mode: RebootMode) -> Self {
        let mut bench = Self::bridged();
        bench.model.reboot.mode = mode;
        bench.prompted(OLD, "work");
        bench.bridge_says(OLD, turn(true));
        bench.tool_starts("Bash", "t1");
        bench
    }

    /// The compact line is passed; the order that follows from it by itself, if one does.
    fn fills(&mut self) -> Option<OrderId> {
        let mut effects = self.used(155_000);
        effects.extend(self.git());
        let (id, _, when) = replaces(&effects)?;
        assert_eq!(when, ReplaceWhen::NextStep);
        Some(id)
    }

    /// The client asks for the handoff at its next step.
    fn asks_for(&mut self, id: OrderId) {
        self.answered(id, Outcome::Lowered);
        assert_eq!(on_the_fly::awaited(&self.model), Some(id));
        self.tool_ends("Bash", "t1");
        self.bridge_says(OLD, Said::HandedOut(id));
    }

    /// The client has compacted, and its transcript has the handoff.
    fn is_replaced(&mut self) {
        let text = self.model.reboot.attempt.as_ref().unwrap();
        let text = text.handoff.as_ref().unwrap().text.clone();
        self.compacted();
        self.facts_read(TranscriptFacts {
            compactions: 1,
            whole: true,
            handoff: text.lines().next().map(str::to_owned),
            ..Default::default()
        });
    }
}

#[test]
fn auto_reboots_at_the_line_in_the_middle_of_the_turn_which_goes_on() {
    let mut bench = Bench::at_work(RebootMode::Auto);
    let process = bench.model.session.agent.process.clone();
    let id = bench.fills().expect("the order is given at once");
    assert_eq!(banner(&bench.model), None, "it is on its way");
    bench.asks_for(id);
    assert_eq!(
        bench.model.session.iteration().get(),
        1,
        "no sign of it yet"
    );
    bench.is_replaced();
    assert_eq!(bench.step(), None);
    assert_eq!(
        (bench.state(), bench.blocks()),
        (AgentState::Busy, vec![Block::Turn])
    );
    assert_eq!(bench.model.session.agent.process, process);
    let record = bench
        .model
        .lineage
        .current()
        .unwrap()
        .reboot
        .clone()
        .unwrap();
    assert_eq!((record.way, record.verified), (Way::OnTheFly, true));
    assert_eq!(record.old_session, record.new_session);
    assert_eq!(bench.model.session.iteration().get(), 2);
    // The turn is one, and its end is of the new iteration.
    bench.turn_ended(OLD);
    bench.bridge_says(OLD, turn(false));
    assert_eq!(bench.model.session.agent.turns, 1);
    assert_eq!(bench.journaled.last(), Some(&Step::Done));
}

/// A supervisor that is killed between two writes leaves a reboot open rather than one that is in no record.
#[test]
fn the_record_is_written_before_the_journal_is_closed() {
    let mut bench = Bench::at_work(RebootMode::Auto);
    let id = bench.fills().expect("the order");
    bench.asks_for(id);
    bench.compacted();
    let text = bench.model.reboot.attempt.as_ref().unwrap();
    let text = text.handoff.as_ref().unwrap().text.clone();
    let facts = Box::new(TranscriptFacts {
        handoff: text.lines().next().map(str::to_owned),
        ..Default::default()
    });
    let session = bench.model.session.id;
    let proof = Event::Read(ReadEvent::Transcript { session, facts });
    let at = bench.at();
    let effects = update(&mut bench.model, at, proof);
    let place = |is: &dyn Fn(&Effect) -> bool| effects.iter().position(is);
    let record =
        place(&|effect| matches!(effect, Effect::SaveIteration(one, _) if one.reboot.is_some()));
    let closed =
        place(&|effect| matches!(effect, Effect::Journal(entry) if entry.step == Step::Done));
    assert!(record.is_some() && record < closed, "{effects:?}");
}

#[test]
fn ask_offers_it_and_goes_ahead_by_a_person_alone() {
    let mut bench = Bench::at_work(RebootMode::Ask);
    assert_eq!(bench.fills(), None);
    assert!(goes_on_the_fly(&bench.model), "it is what F5 offers");
    assert_eq!(banner(&bench.model), Some(Banner::Asks));
    let effects = bench.approve();
    let (id, text, when) = replaces(&effects).expect("the order is given");
    assert_eq!(when, ReplaceWhen::NextStep);
    assert_eq!(text, bench.model.draft.handoff.current().text);
    bench.answered(id, Outcome::Lowered);
    assert_eq!(banner(&bench.model), Some(Banner::AwaitsStep));
    bench.bridge_says(OLD, Said::HandedOut(id));
    bench.is_replaced();
    assert_eq!((bench.step(), bench.state()), (None, AgentState::Busy));
    // By the keys for the ways each is reached, and what was chosen stays chosen.
    let mut bench = Bench::at_work(RebootMode::Ask);
    bench.fills();
    bench.review();
    bench.press(KeyCode::Char('w'));
    assert!(!goes_on_the_fly(&bench.model));
    bench.used(156_000);
    assert!(!goes_on_the_fly(&bench.model));
    let effects = bench.press(KeyCode::Enter);
    assert_eq!(
        (replaces(&effects), bench.step()),
        (None, Some(Step::Waiting))
    );
}

#[test]
fn manual_does_it_by_order_only() {
    let mut bench = Bench::at_work(RebootMode::Manual);
    assert_eq!((bench.fills(), bench.step()), (None, None));
    bench.review();
    assert!(
        !goes_on_the_fly(&bench.model),
        "a fresh session is what a person's order means"
    );
    while !goes_on_the_fly(&bench.model) {
        bench.press(KeyCode::Char('w'));
    }
    let effects = bench.press(KeyCode::Enter);
    assert!(replaces(&effects).is_some_and(|(_, _, when)| when == ReplaceWhen::NextStep));
}

#[test]
fn a_turn_that_ends_before_its_next_step_is_followed_by_what_was_approved() {
    // The answer to the order may come before the turn's end and behind it, and refuse the order for that end.
    let refused = Outcome::Failed(NO_TURN_RUNS.to_owned());
    for (by_person, late, answer) in [
        (true, false, Outcome::Lowered),
        (true, true, Outcome::Lowered),
        (true, false, refused.clone()),
        (true, true, refused.clone()),
        (false, false, Outcome::Lowered),
        (false, true, Outcome::Lowered),
        (false, true, refused),
    ] {
        let mode = if by_person {
            RebootMode::Ask
        } else {
            RebootMode::Auto
        };
        let mut bench = Bench::at_work(mode);
        let by_itself = bench.fills();
        let id = by_itself.unwrap_or_else(|| replaces(&bench.approve()).expect("the order").0);
        let mut effects = Vec::new();
        let is_lowered = answer == Outcome::Lowered;
        if !late {
            bench.answered(id, answer.clone());
        }
        bench.tool_ends("Bash", "t1");
        bench.turn_ended(OLD);
        effects.extend(bench.bridge_says(OLD, turn(false)));
        if late {
            effects.extend(bench.answered(id, answer));
        }
        if !by_person && is_lowered {
            assert!(effects.contains(&Effect::RevokeOrder(id)));
            let in_time = true;
            bench.send(Event::Bridge(BridgeEvent::Revoked { id, in_time }));
        }
        effects.extend(bench.git());
        if by_person {
            let (next, _, when) = replaces(&effects).expect("it is replaced at once");
            assert!(next != id && when == ReplaceWhen::Idle);
        } else {
            assert!(
                matches!(banner(&bench.model), Some(Banner::CountsDown(_))),
                "it is announced as any other"
            );
        }
        assert_eq!(bench.state(), AgentState::Idle);
    }
}

#[test]
fn a_turn_that_ends_before_the_order_is_given_has_the_reboot_behind_it_announced() {
    let mut bench = Bench::at_work(RebootMode::Auto);
    let mut effects = bench.used(155_000);
    bench.tool_ends("Bash", "t1");
    effects.extend(bench.turn_ended(OLD));
    effects.extend(bench.bridge_says(OLD, turn(false)));
    effects.extend(bench.git());
    assert_eq!(replaces(&effects), None, "nobody could say no to it");
    assert!(matches!(banner(&bench.model), Some(Banner::CountsDown(_))));
}

#[test]
fn it_is_taken_back_while_the_client_has_not_asked() {
    for in_time in [true, false] {
        let mut bench = Bench::at_work(RebootMode::Auto);
        let id = bench.fills().expect("the order");
        bench.answered(id, Outcome::Lowered);
        let effects = prefixed(&mut bench, KeyCode::Char('D'));
        assert!(effects.contains(&Effect::RevokeOrder(id)), "{effects:?}");
        let effects = bench.send(Event::Bridge(BridgeEvent::Revoked { id, in_time }));
        if in_time {
            assert!(restores(&effects));
            assert_eq!(bench.step(), None);
            let reason = bench.model.reboot.quiet.as_ref().map(|one| &one.reason);
            assert_eq!(reason, Some(&QuietReason::Deferred));
            assert_eq!(bench.model.session.iteration().get(), 1);
        } else {
            bench.is_replaced();
            assert_eq!(bench.model.session.iteration().get(), 2, "it is in force");
        }
    }
}

#[test]
fn where_the_client_refuses_auto_waits_for_the_end_of_the_turn() {
    let mut bench = Bench::at_work(RebootMode::Auto);
    let id = bench.fills().expect("the order");
    let why = "compaction is switched off in the client's settings";
    bench.answered(id, Outcome::Failed(why.to_owned()));
    assert_eq!(bench.step(), Some(Step::Waiting));
    assert!(!goes_on_the_fly(&bench.model));
    assert_eq!(bench.state(), AgentState::Busy);
    // A person's order is refused with the reason, and can be given in another way.
    let mut bench = Bench::at_work(RebootMode::Ask);
    bench.fills();
    let id = replaces(&bench.approve()).expect("the order").0;
    bench.answered(id, Outcome::Failed(why.to_owned()));
    assert_eq!(bench.step(), None);
    assert!(bench.notice().contains(why), "{}", bench.notice());
}

#[test]
fn a_client_that_compacts_without_asking_is_held_back_and_not_asked_again() {
    let mut bench = Bench::at_work(RebootMode::Auto);
    let id = bench.fills().expect("the order");
    bench.answered(id, Outcome::Lowered);
    let event = AgentEvent::Compacting {
        session: session(OLD),
        automatic: true,
        ordered: false,
    };
    let why = compaction::refusal(&bench.model, &event).expect("it is held back");
    assert!(why.contains("mod"), "{why}");
    let effects = bench.send(Event::Agent(event.clone()));
    assert!(restores(&effects) && effects.contains(&Effect::RevokeOrder(id)));
    assert!(!goes_on_the_fly(&bench.model));
    assert_eq!(
        compaction::refusal(&bench.model, &event),
        None,
        "its own are its own"
    );
    bench.press(KeyCode::F(5));
    assert!(in_place_refusal(&bench).contains("managed settings"));
}

#[test]
fn a_client_that_goes_on_without_asking_is_given_up_after_many_calls() {
    let mut bench = Bench::at_work(RebootMode::Auto);
    let id = bench.fills().expect("the order");
    bench.answered(id, Outcome::Lowered);
    let mut restored = false;
    for number in 0..40 {
        bench.tool_starts("Bash", &number.to_string());
        restored |= restores(&bench.tool_ends("Bash", &number.to_string()));
    }
    assert!(restored);
    assert_eq!(bench.step(), Some(Step::Waiting));
}

#[test]
fn what_the_client_shows_while_its_trigger_is_lowered_is_not_its_limit() {
    let mut bench = Bench::at_work(RebootMode::Auto);
    let limits = |bench: &Bench| {
        let client = &bench.model.session.client;
        (client.learned.clone(), client.reported.clone())
    };
    let shown = |bench: &mut Bench| {
        for _ in 0..2 {
            bench.send(Event::Read(ReadEvent::ClientWords(Words::Next)));
        }
        bench.bridge_says(OLD, by_bridge(Some(2_000), true));
        assert_eq!(limits(bench), (None, None));
    };
    let id = bench.fills().expect("the order");
    shown(&mut bench);
    bench.answered(id, Outcome::Lowered);
    shown(&mut bench);
    bench.tool_ends("Bash", "t1");
    bench.bridge_says(OLD, Said::HandedOut(id));
    shown(&mut bench);
    bench.compacted();
    shown(&mut bench);
    // Behind it the client has its own again.
    bench.is_replaced();
    bench.bridge_says(OLD, by_bridge(Some(300_000), true));
    assert_ne!(limits(&bench).1, None);
}

#[test]
fn what_the_client_still_shows_of_a_lowered_trigger_behind_its_turn_is_not_its_limit() {
    let mut bench = Bench::at_work(RebootMode::Auto);
    let id = bench.fills().expect("the order");
    bench.answered(id, Outcome::Lowered);
    // The turn ends before the client has asked.
    bench.turn_ended(OLD);
    let shows = |bench: &mut Bench| {
        for _ in 0..2 {
            bench.send(Event::Read(ReadEvent::ClientWords(Words::Next)));
        }
        bench.model.session.client.learned.is_some()
    };
    assert!(!shows(&mut bench));
    bench.wait(Duration::from_secs(60));
    assert!(!shows(&mut bench));
    bench.prompted(OLD, "go on");
    assert!(shows(&mut bench), "it has its own again");
}

fn in_place_refusal(bench: &Bench) -> String {
    crate::app::facts::replace_refusal(&bench.model).unwrap_or_default()
}

#[test]
fn a_subagent_is_not_compacted_by_the_trigger_that_is_lowered_for_the_session() {
    let mut bench = Bench::at_work(RebootMode::Auto);
    let event = AgentEvent::SubagentCompacts {
        session: session(OLD),
    };
    assert_eq!(compaction::refusal(&bench.model, &event), None);
    let id = bench.fills().expect("the order");
    bench.answered(id, Outcome::Lowered);
    assert!(compaction::refusal(&bench.model, &event).is_some());
    // What the configuration holds back is the session's own compaction.
    let mut free = Bench::at_work(RebootMode::Auto);
    free.model.config.guard.replace_compaction = true;
    assert_eq!(compaction::refusal(&free.model, &event), None);
}
