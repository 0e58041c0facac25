//! A session that the client moves to its daemon: followed, and ended there.

use super::*;
use crate::app::reboot::blocked_by;

/// The id under which the daemon runs the session on.
const MOVED: u128 = 77;

fn forked(bench: &mut Bench) -> Vec<Effect> {
    bench.titled("1 awaiting input · claude agents");
    bench.send(Event::Agent(AgentEvent::SessionStarted {
        session: session(MOVED),
        source: StartSource::Fork,
        model: None,
        transcript_path: Some("/t/77.jsonl".to_owned()),
        prompt_cache: None,
    }))
}

fn spoke(bench: &mut Bench, number: u128) -> Vec<Effect> {
    bench.prompted(number, "count the herons")
}

fn ended(bench: &mut Bench, left: Option<&str>) -> Vec<Effect> {
    let (holds, left) = (Some(session(MOVED)), left.map(str::to_owned));
    bench.send(Event::Read(ReadEvent::MovedEnded { holds, left }))
}

/// What is to be ended in the daemon.
fn to_end(effects: &[Effect]) -> Option<Vec<SessionId>> {
    first!(effects, Effect::EndMoved { sessions, .. } => sessions.clone())
}

fn starts(effects: &[Effect]) -> bool {
    has!(effects, Effect::Start(_))
}

fn quits(effects: &[Effect]) -> bool {
    has!(effects, Effect::Quit(_))
}

#[test]
fn a_fork_is_followed_and_a_reboot_ends_it_before_the_next_session_starts() {
    let mut bench = Bench::new();
    forked(&mut bench);
    assert_eq!(bench.model.session.id, session(MOVED));
    let effects = bench.approve();
    assert_eq!(
        signals(&effects),
        [StopSignal::Exit],
        "the list blocks no person"
    );
    let effects = bench.exited(0);
    assert_eq!(to_end(&effects), Some(vec![session(OLD), session(MOVED)]));
    assert!(!starts(&effects), "{effects:?}");
    let again = bench.exited(0);
    assert!(to_end(&again).is_none() && !starts(&again), "it ends once");
    let effects = ended(&mut bench, None);
    assert!(starts(&effects), "{effects:?}");
    let iterations = bench.model.lineage.iterations();
    assert_eq!(iterations[0].session_id, Some(session(MOVED)));
    assert_eq!(iterations[0].end_reason, Some(EndReason::UserReboot));
    assert_eq!(iterations[1].session_id, Some(session(NEW)));
}

#[test]
fn quitting_ends_it_there_and_says_what_goes_on() {
    let mut bench = Bench::new();
    forked(&mut bench);
    bench.send(Event::ShutdownAsked { signal: "SIGTERM" });
    let effects = bench.exited(0);
    assert!(
        to_end(&effects).is_some() && !quits(&effects),
        "{effects:?}"
    );
    // A second signal hurries nothing that is not there any more.
    let again = bench.send(Event::ShutdownAsked { signal: "SIGTERM" });
    assert!(signals(&again).is_empty() && !quits(&again), "{again:?}");
    let effects = ended(&mut bench, Some("00aa (it outlives SIGKILL)"));
    assert!(quits(&effects), "{effects:?}");
    let notice = &bench.model.view.notices.back().expect("a notice").text;
    assert!(
        notice.contains("00aa") && notice.contains("claude stop"),
        "{notice}"
    );
    assert_eq!(bench.model.outside.left_running().first(), Some(notice));
}

#[test]
fn an_answer_that_does_not_come_holds_nothing_up() {
    let mut bench = Bench::new();
    forked(&mut bench);
    bench.send(Event::ShutdownAsked { signal: "SIGTERM" });
    let effects = bench.exited(0);
    let timer = first!(effects, Effect::SetTimer(id @ TimerId::MovedEnd(_), _) => *id);
    let effects = bench.send(Event::TimerFired(timer.expect("a deadline")));
    assert!(quits(&effects), "{effects:?}");
    let late = ended(&mut bench, None);
    assert!(!quits(&late), "and does not count later");
}

#[test]
fn a_session_that_the_person_leaves_to_run_on_is_left_alone() {
    let mut bench = Bench::new();
    forked(&mut bench);
    let effects = bench.exited(0);
    assert_eq!(to_end(&effects), None);
    let notices: Vec<_> = bench
        .model
        .view
        .notices
        .iter()
        .map(|one| &one.text)
        .collect();
    assert!(
        notices
            .iter()
            .any(|text| text.contains("goes on in Claude Code's background")),
        "{notices:?}"
    );
}

#[test]
fn a_crash_of_the_pane_ends_it_so_that_it_can_be_resumed() {
    let mut bench = Bench::new();
    forked(&mut bench);
    assert!(to_end(&bench.exited(1)).is_some());
    ended(&mut bench, None);
    assert_eq!(bench.ended(0), Some(EndReason::Crash));
}

#[test]
fn a_fork_that_no_start_names_is_looked_for_after_the_agent_view() {
    let asks =
        |effects: &[Effect]| has!(effects, Effect::FindMoved { from } if *from == [session(OLD)]);
    let mut bench = Bench::new();
    assert!(!asks(&spoke(&mut bench, MOVED)), "no agent view was seen");
    let effects = bench.titled("1 awaiting input · claude agents");
    assert!(asks(&effects), "it may have spoken before");
    assert!(asks(&spoke(&mut bench, MOVED)));
    assert!(!asks(&spoke(&mut bench, MOVED)), "once");
    assert_eq!(bench.model.session.id, session(OLD), "nothing is known yet");
    bench.send(Event::Read(ReadEvent::Moved {
        session: session(MOVED),
    }));
    assert_eq!(bench.model.session.id, session(MOVED));
    // Without an agent view nothing is believed.
    let mut bench = Bench::new();
    bench.send(Event::Read(ReadEvent::Moved {
        session: session(MOVED),
    }));
    assert_eq!(bench.model.session.id, session(OLD));
}

#[test]
fn the_banner_goes_when_the_session_is_back() {
    let mut bench = Bench::new();
    forked(&mut bench);
    let shown = |bench: &Bench| {
        let mut notices = bench.model.view.notices.iter();
        notices.any(|notice| notice.text.starts_with("agent view:"))
    };
    assert!(shown(&bench) && bench.model.session.agent.listing);
    bench.titled("✳ count the herons");
    assert!(!shown(&bench) && !bench.model.session.agent.listing);
    // It runs in the daemon all the same.
    bench.send(Event::ShutdownAsked { signal: "SIGTERM" });
    assert!(to_end(&bench.exited(0)).is_some());
}

#[test]
fn no_reboot_by_itself_throws_a_person_out_of_the_list() {
    let mut bench = Bench::new();
    forked(&mut bench);
    assert_eq!(blocked_by(&bench.model), [Block::Dialog]);
}

#[test]
fn the_record_names_the_session_that_can_be_resumed() {
    let mut bench = Bench::new();
    forked(&mut bench);
    bench.approve();
    bench.exited(0);
    // Nothing was said in the fork.
    let (holds, left) = (Some(session(OLD)), None);
    bench.send(Event::Read(ReadEvent::MovedEnded { holds, left }));
    let old = bench.model.lineage.iterations()[0].session_id;
    assert_eq!(old, Some(session(OLD)));
    let attempt = bench.model.reboot.attempt.as_ref().expect("it goes on");
    assert_eq!(attempt.old, session(OLD));
}

#[test]
fn a_fork_is_the_same_conversation_and_its_transcript_is_read_when_it_has_one() {
    let mut bench = Bench::new();
    let call = list("t1", &[("a", pitstop_transcript::todo::Status::Pending)]);
    bench.model.draft.todo.hooked(&call);
    bench.model.draft.commands = vec!["cargo test".to_owned()];
    let follows = |effects: &[Effect]| has!(effects, Effect::FollowTranscript { .. });
    assert!(!follows(&forked(&mut bench)), "there is none yet");
    assert_eq!(bench.model.draft.commands, ["cargo test"]);
    assert!(bench.model.draft.todo.is_kept());
    let stopped = AgentEvent::TurnEnded {
        session: session(MOVED),
        last_message: None,
        background: Background::default(),
        transcript_path: Some("/t/77.jsonl".to_owned()),
    };
    assert!(follows(&bench.send(Event::Agent(stopped))));
}

/// A hook reports a session that begins as a fork.
fn begins_as_fork(bench: &mut Bench, number: u128) -> Vec<Effect> {
    bench.send(Event::Agent(AgentEvent::SessionStarted {
        session: session(number),
        source: StartSource::Fork,
        model: None,
        transcript_path: Some(format!("/t/{number}.jsonl")),
        prompt_cache: None,
    }))
}

/// The client's own record of the process in the pane names this session.
fn pane_is_in(bench: &mut Bench, number: u128, source: StartSource) -> Vec<Effect> {
    let pane = bench.model.session.pane();
    let started = Box::new(AgentEvent::SessionStarted {
        session: session(number),
        source,
        model: None,
        transcript_path: Some(format!("/t/{number}.jsonl")),
        prompt_cache: None,
    });
    bench.send(Event::Read(ReadEvent::SessionNamed(pane, started)))
}

/// The agent ends by itself, and nothing of it is in the daemon.
#[track_caller]
fn ends_in_the_pane(bench: &mut Bench) {
    assert_eq!(to_end(&bench.exited(0)), None);
    assert!(!bench.model.session.agent.daemon.goes_on);
    assert_eq!(bench.state(), AgentState::Exited);
}

#[test]
fn a_client_that_begins_with_a_fork_of_an_earlier_session_has_it_in_the_pane() {
    for number in [9, 10, MOVED] {
        let mut bench = Bench::bare(Config::default());
        super::super::iteration::begin(&mut bench.model, false, None, None);
        bench.spawned(NEW);
        let effects = begins_as_fork(&mut bench, number);
        assert_eq!(bench.model.session.id, session(number));
        let followed = first!(effects, Effect::FollowTranscript { session, .. } => *session);
        assert_eq!(followed, Some(session(number)), "before a turn has ended");
        let cause = bench.model.lineage.current().and_then(|one| one.cause);
        assert_eq!(cause, Some(crate::lineage::Cause::Resume));
        bench.ready();
        ends_in_the_pane(&mut bench);
    }
}

#[test]
fn a_branch_is_followed_once_the_pane_is_in_it_and_takes_its_state_along() {
    // An armed reboot does not hide it. The record does not tell a branch from a cleared or a resumed session.
    for (armed, source) in [
        (false, StartSource::Clear),
        (false, StartSource::Resume),
        (true, StartSource::Clear),
    ] {
        let mut bench = Bench::new();
        bench.prompted(OLD, "Port the parser");
        if armed {
            bench.used(155_000);
            bench.send(Event::TimerFired(TimerId::Age));
        }
        bench.said(OLD, "OBJECTIVE: a parser in Rust");
        assert_eq!(bench.model.reboot.attempt.is_some(), armed);
        begins_as_fork(&mut bench, 9);
        assert_eq!(bench.model.session.id, session(OLD), "it may be a copy");
        let effects = pane_is_in(&mut bench, 9, source);
        assert_eq!(bench.model.session.id, session(9));
        let followed = first!(effects, Effect::FollowTranscript { session, .. } => *session);
        assert_eq!(followed, Some(session(9)));
        let objective = &bench.model.draft.preserved.current_objective;
        let objective = objective.as_ref().map(|one| one.text.as_str());
        assert_eq!(objective, Some("a parser in Rust"));
        bench.prompted(9, "and the lexer");
        assert_eq!(bench.state(), AgentState::Busy);
        bench.turn_ended(9);
        ends_in_the_pane(&mut bench);
    }
}

#[test]
fn a_copy_that_goes_on_in_the_background_takes_nothing_from_the_pane() {
    for prompt in ["count the ducks", "数える", "Посчитай"] {
        let mut bench = Bench::new();
        begins_as_fork(&mut bench, 9);
        bench.prompted(9, prompt);
        bench.is_idle_after(0);
        assert_eq!(bench.model.session.id, session(OLD));
        bench.prompted(OLD, prompt);
        assert_eq!(bench.state(), AgentState::Busy);
        bench.turn_ended(9);
        assert_eq!(bench.state(), AgentState::Busy);
        bench.turn_ended(OLD);
        ends_in_the_pane(&mut bench);
    }
}

#[test]
fn the_session_to_which_a_person_went_behind_the_agent_view_is_the_last_one() {
    for (goes_to, source, all) in [
        (9, StartSource::Clear, [OLD, MOVED, 9].as_slice()),
        (8, StartSource::Resume, &[OLD, MOVED, 8]),
        (OLD, StartSource::Resume, &[MOVED, OLD]),
    ] {
        let mut bench = Bench::new();
        forked(&mut bench);
        bench.session_starts(goes_to, source);
        bench.send(Event::ShutdownAsked { signal: "SIGTERM" });
        let sessions: Vec<_> = all.iter().map(|one| session(*one)).collect();
        assert_eq!(to_end(&bench.exited(0)), Some(sessions), "{goes_to}");
    }
}
