//! A run over eight sessions, each filled by a hundred calls of tools and more.

use std::{
    env,
    ops::Range,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{LONG_RUN, OUTPUT, Run, impatient, play, print_seams};
use crate::{
    autopilot::{self, PROMISE, RUN},
    bridge::MODS_FROM,
    kit::{
        client::is_at_least,
        played::{PlayedCall, Seam},
        shape::Shape,
        supervisor::Launch,
    },
};

/// How long the model thinks in a turn that is to be cut between two steps: less than a real one. With less still, the figures, which come
/// from the transcript there, pass the line at which a turn is cut within a step before there was a moment between two, and on a busy
/// machine the next step begins while the turn is being cut.
const THINKS: Duration = Duration::from_secs(1);

/// From an empty session to the compact line of a window of 200 000 tokens.
const GROWTH: (u64, u64) = (20_000, 153_000);

/// How many sessions are played, and how many calls in each: eight of a hundred, which take eight minutes of processor time, only if
/// `PITSTOP_TEST_LONG_TURN` is set.
fn size() -> (usize, usize) {
    if env::var_os("PITSTOP_TEST_LONG_TURN").is_some() {
        (8, 100)
    } else {
        (3, 40)
    }
}

fn sessions((count, calls): (usize, usize)) -> Shape {
    Shape::sessions(count, calls, GROWTH.0, GROWTH.1)
}

fn headless(order: &[&str]) -> Launch {
    // By the prices of the client eight sessions cost about as much as a run may without a word.
    let all = ["--headless", "--json", "--max-cost", "0"];
    autopilot::live(&all).order(order.iter().copied())
}

/// How a run is to go from one session to the next.
struct Expected {
    cause: &'static str,
    /// How the sessions before the last one end.
    end: &'static str,
    way: &'static str,
    /// Whether the client's session is the same all the time.
    is_one_session: bool,
    /// How full each is at its end.
    tokens: Range<u64>,
}

/// Behind the line, and before the one at which a turn is cut in any case.
const FULL_AT: Range<u64> = 153_000..174_600;

const ON_THE_FLY: Expected = Expected {
    cause: "threshold",
    end: "context_limit",
    way: "on-the-fly",
    is_one_session: true,
    tokens: FULL_AT,
};

const FRESH: Expected = Expected {
    way: "fresh",
    is_one_session: false,
    ..ON_THE_FLY
};

/// The calls of the main conversation by session, or by what took its place.
fn by_session(run: &Run) -> Vec<Vec<&PlayedCall>> {
    let mut found: Vec<Vec<&PlayedCall>> = Vec::new();
    for call in run.played.main() {
        if call.body.is_some() {
            found.push(Vec::new());
        }
        found.last_mut().expect("the first has a body").push(call);
    }
    found
}

/// The figure is that of this call: of its input, or with its output.
#[track_caller]
fn assert_is_of(figure: &Value, call: &PlayedCall) {
    let figure = figure.as_u64().expect("a figure");
    let most = call.tokens + OUTPUT;
    assert!((call.tokens..=most).contains(&figure), "{figure}");
}

/// Every session is recorded as it was played.
#[track_caller]
fn check_records(run: &Run, expected: &Expected) {
    let played = by_session(run);
    let history = run.history();
    let recorded = history["iterations"].as_array().expect("iterations");
    let meta = run.meta["iterations"].as_array().expect("iterations");
    assert_eq!((recorded.len(), meta.len()), (played.len(), played.len()));
    for (at, calls) in played.iter().enumerate() {
        let (one, also) = (&recorded[at], &meta[at]);
        let is_last = at + 1 == played.len();
        println!("{one}");
        assert_is_of(&one["tokens"]["at_start"], calls[0]);
        // On a busy machine the figure of the very last call comes when the session is over.
        let mut answered = calls.iter().rev().filter(|call| call.answered.is_some());
        let (last, before) = (answered.next().expect("an answer"), answered.next());
        let lowest = before.map_or(last.tokens, |before| before.tokens.min(last.tokens));
        let at_end = one["tokens"]["at_end"].as_u64().expect("a figure");
        assert!(
            (lowest..=last.tokens + OUTPUT).contains(&at_end),
            "{at_end}"
        );
        let input: u64 = calls
            .iter()
            .filter(|call| call.answered.is_some())
            .map(|call| call.tokens)
            .sum();
        assert_eq!(one["tokens"]["input"], input, "{one}");
        // A turn is over where a step calls no tool.
        let is_end = |call: &&&PlayedCall| {
            let calls = call.step.map(|step| &run.played.steps[step - 1]);
            call.answered.is_some() && calls.is_some_and(Vec::is_empty)
        };
        let turns = calls.iter().filter(is_end).count();
        assert_eq!(
            (&one["turns"], &also["turns"]),
            (&turns.into(), &turns.into())
        );
        assert_eq!(one["tokens"], {
            let mut tokens = also["tokens"].clone();
            tokens["at_start"] = one["tokens"]["at_start"].clone();
            tokens["at_end"] = one["tokens"]["at_end"].clone();
            tokens
        });
        let end = if is_last {
            "promise_found"
        } else {
            expected.end
        };
        assert_eq!(
            (&one["end_reason"], &also["end_reason"]),
            (&end.into(), &end.into())
        );
        assert_eq!(
            (&one["iteration"], &one["compactions"]),
            (&(at + 1).into(), &0.into())
        );
        let session = one["session_id"].as_str().expect("a session");
        assert!(calls[0].session.contains(session), "{session}");
        if at == 0 {
            assert_eq!(
                (&one["cause"], &one["way"]),
                (&"start".into(), &Value::Null)
            );
            continue;
        }
        assert_eq!(one["cause"], expected.cause, "{one}");
        assert_eq!(one["way"], expected.way, "{one}");
        assert!(one["handoff_bytes"].as_u64() > Some(0), "{one}");
        let before = &recorded[at - 1]["session_id"];
        assert_eq!(before == session, expected.is_one_session, "{one}");
    }
}

/// Where one session went over into the next: near the line, and with a handoff.
#[track_caller]
fn check_seams(run: &Run, expected: &Expected, count: usize) {
    let seams = run.played.seams();
    assert!(seams.len() + 1 >= count, "{} sessions", seams.len() + 1);
    let is_given = |seam: &&Seam| seam.after.has_handoff && seam.after.tokens < 40_000;
    assert_eq!(seams.iter().filter(is_given).count(), seams.len());
    for seam in &seams {
        let before = seam.before.tokens;
        assert!(expected.tokens.contains(&before), "{before}");
        // On the fly nothing of what the last tools have said is lost.
        if expected.is_one_session {
            assert_eq!(seam.after.present.last().copied(), seam.before.step);
        }
    }
}

/// On the fly where the client can, else by cutting its turns.
fn by_version(launch: Launch, shape: Shape) -> (Launch, Shape, Expected) {
    if is_at_least(MODS_FROM) {
        return (launch, shape, ON_THE_FLY);
    }
    (impatient(launch), shape.pause(THINKS), FRESH)
}

#[track_caller]
fn check(run: &Run, expected: &Expected, count: usize) {
    print_seams(&run.played);
    run.check();
    check_seams(run, expected, count);
    check_records(run, expected);
}

/// One turn over all sessions.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_run_over_eight_sessions_on_the_fly_is_one_turn() {
    assert!(is_at_least(MODS_FROM), "this client runs no mods");
    let began = Instant::now();
    let size = (8, size().1);
    let run = play(&headless(&[]), sessions(size).in_one_turn());
    println!("took {:?}", began.elapsed());
    check(&run, &ON_THE_FLY, size.0);
    assert_eq!(run.turns(), 1);
    assert_eq!(run.played.sessions().len(), 1);
}

/// The same work where each turn is cut when it has gone on past the line for too long.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_run_without_mods_cuts_its_turns() {
    let shape = sessions(size()).in_one_turn().pause(THINKS);
    let run = play(&impatient(headless(&[])), shape);
    check(&run, &FRESH, size().0);
}

/// Each turn fills a session and ends by itself, past the line.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_run_whose_turns_end_past_the_line_waits_for_their_ends() {
    let (count, calls) = size();
    let shape = Shape::sessions(count, calls, GROWTH.0, 158_000);
    let run = play(&headless(&[]).set("agent.bridge=false"), shape);
    check(&run, &FRESH, count);
    assert_eq!(run.turns(), count);
    assert_eq!(run.played.sessions().len(), count);
}

/// A person looks on, and does nothing.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_run_that_a_person_watches_goes_the_same_way() {
    let shape = sessions(size()).in_one_turn().ending_with(PROMISE);
    let (launch, shape, expected) = by_version(autopilot::live(&[]), shape);
    let launch = launch.playing(&shape);
    let supervisor = launch.start();
    let shows = |needle: &'static str| {
        let seen = move |screen: &str| screen.contains(needle);
        supervisor.terminal.wait_for(seen, RUN);
    };
    shows("iteration 2/50");
    shows("iteration 3/50");
    let exit = supervisor.wait_for_exit(LONG_RUN);
    let said = String::from_utf8_lossy(&supervisor.terminal.output()).into_owned();
    assert!(said.contains("the run is over: the stop phrase was given\r\n"));
    let code = i32::try_from(exit.code).ok();
    let run = Run::over(launch, code, Vec::new(), &shape);
    check(&run, &expected, size().0);
}

/// A session for each turn, however little it has used.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_run_that_begins_a_session_for_each_turn_loses_nothing() {
    let (count, calls) = size();
    let shape = Shape::sessions(count, calls, GROWTH.0, 60_000);
    let run = play(&headless(&["--fresh", "always"]), shape);
    let expected = Expected {
        cause: "autopilot",
        end: "natural",
        // The handoff that begins a session counts along.
        tokens: 59_000..66_000,
        ..FRESH
    };
    check(&run, &expected, count);
    assert_eq!(run.turns(), count);
    assert_eq!(run.played.sessions().len(), count);
}
