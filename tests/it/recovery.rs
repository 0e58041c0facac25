//! A supervisor that is killed at any moment: the next start finds, finishes or takes back what was left.

use std::{
    fs,
    time::{Duration, Instant},
};

use pitstop_base::process;
use pitstop_core::{
    config::load::paths::project_hash,
    lineage::{Project, journal::JournalEntry},
};
use pitstop_store::{Store, StoreOptions, StoreTarget};
use rustix::process::Signal;
use serde_json::Value;

use crate::{
    kit::{
        home::handoffs,
        messages_api::Answer,
        side_by_side::side_by_side,
        supervisor::{
            KILLED, Launch, SOON, Supervisor, agents, group_members, key, session_of, wait_for_end,
        },
    },
    trim::reboot::{choose_trim, fill, filled, removed, transcript},
};

/// What the demo says in these tests, to be waited for.
const REPLY: &str = "The tide is noted.";

/// What becomes of a reboot that was cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The old session is resumed.
    Back,
    /// A new session has the handoff.
    Forth,
    /// The trimmed copy is resumed.
    Trimmed,
    /// No reboot was open: a new run begins and names the session before.
    Afresh,
}

fn demo() -> Launch {
    Launch::quiet_demo().env("PITSTOP_DEMO_REPLY", REPLY)
}

/// One whole turn, so that there is something to resume.
fn one_turn(supervisor: &Supervisor) {
    supervisor.wait_for_state("idle", SOON);
    supervisor.turn("note the tide", REPLY);
}

/// The reboot that the journal of a home's project holds open.
pub fn open_reboot(launch: &Launch) -> Option<JournalEntry> {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let state = launch.the_home().path("state/pitstop");
        let target = StoreTarget::new(None, &state).expect("a target");
        let opened = Store::open(StoreOptions::new(target))
            .await
            .expect("a store");
        let project = Project::new(launch.project(), &process::host_name());
        let open = opened
            .store
            .journal_open(&project)
            .await
            .expect("a journal");
        opened.store.close().await;
        open
    })
}

/// Begins a reboot as far as the supervisor lives, and waits for its death.
fn reboot_until_death(supervisor: Supervisor, step: &str) -> Launch {
    supervisor.keys([key::F5]);
    if !matches!(step, "armed" | "drafting" | "review") {
        supervisor.wait_for_phase("review", SOON);
        supervisor.keys([if step == "failed" {
            key::ESC
        } else {
            key::ENTER
        }]);
    }
    let exit = supervisor.wait_for_exit(SOON);
    assert_eq!(exit.code, KILLED, "it died: {exit:?}");
    supervisor.kill()
}

/// What must hold after the start that follows a death.
#[track_caller]
fn check_recovered(launch: &Launch, old: &str, outcome: Outcome) {
    let began = Instant::now();
    let supervisor = launch.start();
    let status = supervisor.wait_for_status_within(SOON * 2, |status| {
        status["reboot"]["phase"] == "idle" && status["agent"]["state"] == "idle"
    });
    println!("recovered as {outcome:?} in {:?}", began.elapsed());
    let session = session_of(&status);
    let home = launch.the_home();
    let log = supervisor.log();
    match outcome {
        Outcome::Back => {
            assert_eq!(session, old, "the old session is back");
            assert_eq!(
                handoffs(home).values().sum::<usize>(),
                0,
                "nothing was sent"
            );
            let taken_back = ["pitstop was stopped while the reboot", "reboot rolled back"];
            // In a full session the level's word takes its place on the screen; the log keeps it.
            let says = |text: &str| taken_back.iter().any(|words| text.contains(words));
            if !says(&log) {
                supervisor.terminal.wait_for(says, SOON);
            }
            assert!(log.contains("recovering a reboot"), "{log}");
        }
        Outcome::Forth => {
            assert_ne!(session, old, "a new session");
            // The real client writes its transcript a while after its hooks.
            let arrived = || handoffs(home).get(&session) == Some(&1);
            supervisor.wait_until("the new session has the handoff", arrived);
            let reported = handoffs(home);
            assert_eq!(
                reported.values().sum::<usize>(),
                1,
                "told once in all: {reported:?}"
            );
            assert!(log.contains("recovering a reboot"), "{log}");
        }
        Outcome::Trimmed => {
            assert_ne!(session, old, "the copy");
            assert_eq!((removed(home, old), removed(home, &session)), (0, 5));
            assert_eq!(handoffs(home).values().sum::<usize>(), 0, "nothing is sent");
            assert!(log.contains("recovering a reboot"), "{log}");
            let last = supervisor.history();
            let last = last["iterations"].as_array().and_then(|all| all.last());
            assert_eq!(last.expect("an iteration")["way"], "trim");
        }
        Outcome::Afresh => {
            assert_ne!(session, old, "a new run");
            // On a busy machine its time on the screen may be over; the log keeps it.
            let said = || supervisor.log().contains("ended without notice");
            supervisor.wait_until("the run before is named", said);
            assert!(handoffs(home).values().sum::<usize>() <= 1);
        }
    }
    check_in_order(&supervisor, launch, &session);
}

/// One agent, no reboot left open, and a history in order.
#[track_caller]
fn check_in_order(supervisor: &Supervisor, launch: &Launch, session: &str) {
    let alive = agents(launch.the_home());
    assert_eq!(alive.len(), 1, "one agent: {alive:#?}");
    supervisor.wait_until("the journal is closed", || open_reboot(launch).is_none());
    check_history(supervisor, session);
}

/// Numbers without gaps, nothing left open but the last, which is the present session.
#[track_caller]
fn check_history(supervisor: &Supervisor, session: &str) {
    let history = supervisor.history();
    let iterations = history["iterations"]
        .as_array()
        .expect("iterations")
        .clone();
    for (index, one) in iterations.iter().enumerate() {
        let last = index + 1 == iterations.len();
        assert_eq!(one["iteration"], index + 1, "{history:#}");
        assert_eq!(one["ended_at"].is_null(), last, "{history:#}");
        assert_eq!(one["end_reason"].is_null(), last, "{history:#}");
    }
    let last = iterations.last().expect("an iteration");
    assert_eq!(last["session_id"], session, "{history:#}");
    check_files(supervisor);
}

/// Each handoff that the record names is there.
#[track_caller]
fn check_files(supervisor: &Supervisor) {
    let runs = supervisor.launch.project().join(".pitstop/runs");
    let run = supervisor.status()["run_id"]
        .as_str()
        .map(|run| runs.join(run));
    let run = run.expect("a run");
    let missing = || -> Option<Vec<String>> {
        let meta = fs::read(run.join("meta.json")).ok()?;
        let meta: Value = serde_json::from_slice(&meta).ok()?;
        let named = meta["iterations"].as_array()?.iter();
        let named = named.filter_map(|one| one["handoff"].as_str());
        let gone = named.filter(|name| !run.join(name).is_file());
        Some(gone.map(str::to_owned).collect())
    };
    let none = || missing().is_some_and(|missing| missing.is_empty());
    supervisor.wait_until("the handoffs of the record", none);
}

/// Kills the supervisor at a border of its journal and starts it again.
#[track_caller]
fn cross(launch: Launch, border: &str, outcome: Outcome) {
    let (step, _) = border.split_once(':').expect("STEP:EDGE");
    let launch = match step {
        "warming" => launch.set("reboot.warmup_prompt=\"look around\""),
        _ => launch,
    };
    let supervisor = launch.clone().env("PITSTOP_CRASH_AT", border).start();
    one_turn(&supervisor);
    let old = session_of(&supervisor.status());
    reboot_until_death(supervisor, step);
    check_recovered(&launch, &old, outcome);
}

macro_rules! borders {
    ($($name:ident: $border:literal $outcome:ident;)*) => { $(
        #[test]
        fn $name() {
            cross(demo(), $border, Outcome::$outcome);
        }
    )* };
}

borders! {
    killed_before_armed_is_written: "armed:before" Afresh;
    killed_after_armed_is_written: "armed:after" Back;
    killed_before_drafting_is_written: "drafting:before" Back;
    killed_after_drafting_is_written: "drafting:after" Back;
    killed_before_review_is_written: "review:before" Back;
    killed_after_review_is_written: "review:after" Back;
    killed_before_preparing_is_written: "preparing:before" Back;
    killed_after_preparing_is_written: "preparing:after" Back;
    killed_before_waiting_is_written: "waiting:before" Back;
    killed_after_waiting_is_written: "waiting:after" Back;
    killed_before_ending_is_written: "ending:before" Back;
    killed_after_ending_is_written: "ending:after" Forth;
    killed_before_starting_is_written: "starting:before" Forth;
    killed_after_starting_is_written: "starting:after" Forth;
    killed_before_delivering_is_written: "delivering:before" Forth;
    killed_after_delivering_is_written: "delivering:after" Forth;
    killed_before_verifying_is_written: "verifying:before" Forth;
    killed_after_verifying_is_written: "verifying:after" Forth;
    killed_before_warming_is_written: "warming:before" Forth;
    killed_after_warming_is_written: "warming:after" Forth;
    killed_before_done_is_written: "done:before" Forth;
    killed_after_done_is_written: "done:after" Afresh;
    killed_before_a_cancel_is_written: "failed:before" Back;
    killed_after_a_cancel_is_written: "failed:after" Afresh;
}

/// Kills the supervisor at a border of the journal of a trim and starts it again.
#[track_caller]
fn cross_trim(border: &str, outcome: Outcome) {
    let (step, _) = border.split_once(':').expect("STEP:EDGE");
    let launch = match step {
        "warming" => filled().set("reboot.warmup_prompt=\"look around\""),
        _ => filled(),
    };
    let supervisor = launch.clone().env("PITSTOP_CRASH_AT", border).start();
    let old = fill(&supervisor);
    choose_trim(&supervisor);
    supervisor.keys([key::ENTER]);
    let exit = supervisor.wait_for_exit(SOON);
    assert_eq!(exit.code, KILLED, "it died: {exit:?}");
    supervisor.kill();
    let left_aside = || {
        let path = transcript(launch.the_home(), &old);
        let beside = fs::read_dir(path.parent().expect("a directory")).expect("a directory");
        beside
            .flatten()
            .filter(|one| one.file_name().to_string_lossy().contains("aside"))
            .count()
    };
    check_recovered(&launch, &old, outcome);
    assert_eq!(left_aside(), 0, "half a copy is left");
}

macro_rules! trim_borders {
    ($($name:ident: $border:literal $outcome:ident;)*) => { $(
        #[test]
        fn $name() {
            cross_trim($border, Outcome::$outcome);
        }
    )* };
}

trim_borders! {
    trim_killed_before_waiting_is_written: "waiting:before" Back;
    trim_killed_after_waiting_is_written: "waiting:after" Back;
    trim_killed_before_ending_is_written: "ending:before" Back;
    trim_killed_after_ending_is_written: "ending:after" Back;
    trim_killed_before_starting_is_written: "starting:before" Back;
    trim_killed_after_starting_is_written: "starting:after" Back;
    trim_killed_before_verifying_is_written: "verifying:before" Trimmed;
    trim_killed_after_verifying_is_written: "verifying:after" Trimmed;
    trim_killed_before_warming_is_written: "warming:before" Trimmed;
    trim_killed_after_warming_is_written: "warming:after" Trimmed;
    trim_killed_before_done_is_written: "done:before" Trimmed;
    trim_killed_after_done_is_written: "done:after" Afresh;
}

/// Killed after the old session's end was written, before the new one began: what stood unsent in the old one's prompt box stands
/// in that of the session that takes over.
#[test]
fn an_unsent_prompt_survives_a_crash_in_the_reboot() {
    let launch = demo();
    let supervisor = launch
        .clone()
        .env("PITSTOP_CRASH_AT", "ending:after")
        .start();
    one_turn(&supervisor);
    let old = session_of(&supervisor.status());
    supervisor.keys(["my own words"]);
    supervisor.wait_for_text("my own words", SOON);
    reboot_until_death(supervisor, "ending");
    let supervisor = launch.start();
    supervisor.wait_for_text("\u{276f}\u{a0}my own words", SOON);
    assert_ne!(session_of(&supervisor.status()), old);
}

/// What stands unsent in the prompt box at the end stands in that of the next session.
#[test]
fn an_unsent_prompt_comes_back_after_a_quit_a_hang_up_and_a_kill() {
    let launch = demo().set("session.on_hangup=\"end\"");
    let project = project_hash(launch.project()).unwrap();
    let kept = format!("state/pitstop/projects/{project}/draft.md");
    let kept = launch.the_home().path(&kept);
    let ends: [fn(&Supervisor); 3] = [
        |supervisor| drop(supervisor.quit()),
        |supervisor| supervisor.terminal.signal(Signal::HUP),
        |supervisor| supervisor.signal(Signal::KILL),
    ];
    let words = "\u{276f}\u{a0}my own words";
    for end in ends {
        let supervisor = launch.start_idle();
        supervisor.keys(["my own words"]);
        supervisor.wait_for_text(words, SOON);
        let is_kept = || fs::read_to_string(&kept).is_ok_and(|text| text.contains("my own words"));
        supervisor.wait_until("it is on disk", is_kept);
        end(&supervisor);
        supervisor.wait_for_exit(SOON);
        wait_for_end(launch.the_home());
        let again = launch.start_showing(words);
        again.keys([key::CTRL_U]);
        again.quit();
        wait_for_end(launch.the_home());
    }
}

#[test]
fn a_trim_that_was_finished_at_the_next_start_can_be_undone() {
    let launch = filled();
    let border = "verifying:after";
    let supervisor = launch.clone().env("PITSTOP_CRASH_AT", border).start();
    let old = fill(&supervisor);
    choose_trim(&supervisor);
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_exit(SOON);
    supervisor.kill();
    let supervisor = launch.start_idle();
    assert_ne!(session_of(&supervisor.status()), old);
    assert_eq!(supervisor.ctl("undo").0, 0);
    supervisor
        .wait_for_status(|status| session_of(status) == old && status["reboot"]["phase"] == "idle");
    assert_eq!(removed(launch.the_home(), &old), 0);
}

macro_rules! live_borders {
    ($($name:ident: $border:literal $outcome:ident;)*) => { $(
        #[test]
        #[ignore = "live: needs PITSTOP_CLAUDE"]
        fn $name() {
            let launch = Launch::live();
            launch.api().answer([Answer::text(REPLY)]);
            cross(launch, $border, Outcome::$outcome);
        }
    )* };
}

// What the next start does at each border is the demo's above. These are the states that the client's own files can be in: its
// session was killed, no new one began, one began without a prompt, one took the prompt just now, one has answered it.
live_borders! {
    live_killed_after_review_is_written: "review:after" Back;
    live_killed_after_starting_is_written: "starting:after" Forth;
    live_killed_after_delivering_is_written: "delivering:after" Forth;
    live_killed_after_verifying_is_written: "verifying:after" Forth;
    live_killed_before_done_is_written: "done:before" Forth;
}

/// An agent command that is the demo, but ends at once whenever it is told a handoff.
fn broken_by_handoffs() -> Launch {
    demo().behind("case \"$*\" in *'pitstop handoff ·'*) exit 9 ;; esac")
}

#[test]
fn killed_before_rolling_back_is_written() {
    cross_broken("rolling_back:before");
}

#[test]
fn killed_after_rolling_back_is_written() {
    cross_broken("rolling_back:after");
}

/// The new agent cannot take over, and pitstop dies while it takes the reboot back. The next start either
/// takes it back, or tries again and then takes it back.
#[track_caller]
fn cross_broken(border: &str) {
    let launch = broken_by_handoffs();
    let supervisor = launch.clone().env("PITSTOP_CRASH_AT", border).start();
    one_turn(&supervisor);
    let old = session_of(&supervisor.status());
    reboot_until_death(supervisor, "rolling_back");
    check_recovered(&launch, &old, Outcome::Back);
}

#[test]
fn a_reboot_that_fails_goes_back_and_keeps_its_message() {
    let launch = broken_by_handoffs();
    let supervisor = launch.start();
    one_turn(&supervisor);
    let old = session_of(&supervisor.status());
    supervisor.review();
    let message = supervisor.handoff_text();
    supervisor.keys([key::ENTER]);
    let status = supervisor.wait_for_iteration(3, SOON);
    assert_eq!(session_of(&status), old);
    supervisor.wait_for_state("idle", SOON);
    let body = |text: &str| text.split_once('\n').expect("a marker line").1.to_owned();
    assert_eq!(body(&supervisor.handoff_text()), body(&message));
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn live_without_any_turn_there_is_nothing_to_resume() {
    no_turn(&Launch::live, &["review:after", "ending:after"]);
}

#[test]
fn without_any_turn_there_is_nothing_to_resume_and_a_fresh_session_begins() {
    let borders = [
        "review:after",
        "failed:before",
        "ending:after",
        "done:before",
    ];
    no_turn(&demo, &borders);
}

#[track_caller]
fn no_turn(launch: &(dyn Fn() -> Launch + Sync), borders: &[&str]) {
    side_by_side(borders, |border| {
        let launch = launch();
        let supervisor = launch.clone().env("PITSTOP_CRASH_AT", border).start_idle();
        let (step, _) = border.split_once(':').expect("a border");
        let launch = reboot_until_death(supervisor, step).without_env("PITSTOP_CRASH_AT");
        let supervisor = launch.start_idle();
        supervisor.wait_for_phase("idle", SOON);
        let expected = usize::from(matches!(step, "ending" | "done"));
        let reported = || handoffs(launch.the_home()).values().sum::<usize>();
        supervisor.wait_until(border, || reported() == expected);
        assert_eq!(agents(launch.the_home()).len(), 1, "{border}");
    });
}

#[test]
fn a_handoff_that_was_lost_with_its_transcript_is_given_again() {
    let launch = demo();
    let supervisor = launch
        .clone()
        .set("reboot.warmup_prompt=\"look around\"")
        .env("PITSTOP_CRASH_AT", "warming:after")
        .start();
    one_turn(&supervisor);
    let old = session_of(&supervisor.status());
    let launch_after = reboot_until_death(supervisor, "warming");
    // What a client does that dies before it writes.
    let new = open_reboot(&launch)
        .and_then(|entry| entry.new_session)
        .expect("a session");
    let demo = launch.the_home().path("state/pitstop/demo/projects");
    let gone = wait_for_end(launch.the_home());
    println!("the agent was gone after {gone:?}");
    for project in fs::read_dir(demo).expect("projects").flatten() {
        let _ = fs::remove_file(project.path().join(format!("{new}.jsonl")));
    }
    check_recovered(
        &launch_after.without_env("PITSTOP_CRASH_AT"),
        &old,
        Outcome::Forth,
    );
}

/// Waits until no process of the home lives; how long that took.
#[test]
fn ten_kills_at_any_moment_leave_no_agent_and_the_next_start_says_so() {
    // Any moment, but the same ones each time: a linear congruence.
    let mut seed = 20_261_121_u32;
    let mut slowest = Duration::ZERO;
    let mut launch = Launch::demo().set("reboot.mode=\"manual\"");
    for round in 0..10 {
        let supervisor = launch.start();
        if round > 0 {
            supervisor.wait_until("the notice of each death", || {
                supervisor.log().matches("ended without notice").count() == round
            });
        }
        supervisor.wait_for_status(|status| status["agent"]["state"] != "starting");
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let pause = Duration::from_millis(u64::from(seed >> 22));
        // A moment is wanted here and no condition.
        std::thread::park_timeout(pause);
        launch = supervisor.kill();
        slowest = slowest.max(wait_for_end(launch.the_home()));
    }
    println!("10 of 10 kills: no agent left; the slowest took {slowest:?}");
}

/// How many kills a run of the whole suite has time for; `PITSTOP_TEST_KILLS` asks for more.
const USUAL_KILLS: u32 = 4;

#[test]
fn killed_at_any_moment_of_a_reboot_its_handoff_arrives_once_or_not_at_all() {
    let asked = std::env::var("PITSTOP_TEST_KILLS").ok();
    let kills = asked.map_or(USUAL_KILLS, |count| count.parse().expect("a number"));
    // The moments are shares of what a reboot takes here and now, so that a slow machine is killed in all of its steps, too.
    let whole = a_whole_reboot();
    // The same shares each time: a linear congruence.
    let mut seed = 20_261_122_u32;
    let mut share = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(seed >> 8) / f64::from(1 << 24)
    };
    let mut reported = 0;
    for kill in 1..=kills {
        let moment = whole.mul_f64(share());
        let again = (share() < 0.4)
            .then_some(share())
            .map(|one| whole.mul_f64(one));
        let launch = demo();
        let supervisor = launch.start();
        let old = reboots(&supervisor);
        // A moment is wanted here and no condition.
        std::thread::park_timeout(moment);
        supervisor.kill();
        let step = open_reboot(&launch).map(|entry| entry.step);
        if let Some(moment) = again {
            let recovering = launch.start();
            std::thread::park_timeout(moment);
            recovering.kill();
        }
        println!("kill {kill}: after {moment:?} at {step:?}, in the recovery {again:?}");
        let arrived = check_once_or_not_at_all(&launch, &old);
        println!(
            "kill {kill}: {}",
            if arrived { "once" } else { "not at all" }
        );
        reported += u32::from(arrived);
    }
    println!(
        "{kills} kills: {reported} handoffs arrived once, {} not at all",
        kills - reported
    );
}

/// What a reboot takes that nothing disturbs, from its approval on.
fn a_whole_reboot() -> Duration {
    let supervisor = demo().start();
    let old = reboots(&supervisor);
    let began = Instant::now();
    supervisor
        .wait_for_status(|status| status["reboot"]["phase"] == "idle" && session_of(status) != old);
    began.elapsed()
}

/// One turn, and a reboot that is approved; the session before it.
fn reboots(supervisor: &Supervisor) -> String {
    one_turn(supervisor);
    let old = session_of(&supervisor.status());
    supervisor.review();
    supervisor.keys([key::ENTER]);
    old
}

/// What must hold at the start that follows a death at any moment; whether the handoff has arrived.
#[track_caller]
fn check_once_or_not_at_all(launch: &Launch, old: &str) -> bool {
    let supervisor = launch.start();
    let status = supervisor.wait_for_status_within(SOON * 2, |status| {
        status["reboot"]["phase"] == "idle" && status["agent"]["state"] == "idle"
    });
    let home = launch.the_home();
    let session = session_of(&status);
    let log = supervisor.log();
    let taken_back = ["is resumed and the handoff is kept", "reboot rolled back"]
        .iter()
        .any(|words| log.contains(words));
    let reported = handoffs(home);
    let count: usize = reported.values().sum();
    assert!(count <= 1, "told more than once: {reported:?}\n{log}");
    assert!(
        count == 1 || session == old || taken_back,
        "lost without a word: {reported:?}\n{log}"
    );
    assert!(
        count == 0 || session != old,
        "told, and taken back: {reported:?}\n{log}"
    );
    check_in_order(&supervisor, launch, &session);
    count == 1
}

#[test]
fn the_next_start_names_the_session_of_a_run_that_died() {
    // Wide enough for the whole hint.
    let launch = demo().size(160, 45);
    let supervisor = launch.start();
    one_turn(&supervisor);
    let session = session_of(&supervisor.status());
    let launch = supervisor.kill();
    let supervisor = launch.start();
    supervisor.wait_for_text("ended without notice", SOON);
    supervisor.wait_for_state("idle", SOON);
    let hint = format!("pitstop demo --here -- --resume {session}");
    assert!(supervisor.log().contains(&hint), "{}", supervisor.log());
    supervisor.wait_for_text(&session, SOON);
    drop(supervisor);
    // And the hint holds.
    let supervisor = launch.agent_args(["--resume", &session]).start();
    let status = supervisor.wait_for_state("idle", SOON);
    assert_eq!(session_of(&status), session);
    // It is said once.
    assert!(!supervisor.screen().contains("ended without notice"));
}

#[test]
fn what_outlives_its_agent_is_named() {
    let agent = "sh -c \"trap '' HUP; sleep 600 & echo READY; read line\"";
    let supervisor = Launch::generic(agent).start_showing("READY");
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_log("still running after the agent has ended", SOON);
}

#[test]
fn half_a_file_of_a_killed_write_is_swept_at_the_next_start() {
    let launch = Launch::quiet_demo();
    let half = launch
        .project()
        .join(".pitstop/.scratchpad.md.aside-4000000000-3");
    std::fs::create_dir_all(half.parent().expect("a directory")).expect("the directory is made");
    std::fs::write(&half, "half of i").expect("the file is written");
    let _supervisor = launch.start_idle();
    assert!(!half.exists());
}

#[test]
fn an_agent_that_ignores_every_signal_is_swept_at_the_next_start() {
    let launch =
        Launch::generic("sh -c \"trap '' HUP INT TERM; echo deaf; while :; do sleep 1; done\"");
    let supervisor = launch.start_showing("deaf");
    let agent = supervisor.agent_pid();
    let launch = supervisor.kill();
    assert!(
        !group_members(agent).is_empty(),
        "it outlives its supervisor"
    );
    let supervisor = launch.start_showing("deaf");
    let swept = || group_members(agent).is_empty();
    supervisor.wait_until("the deaf agent is swept", swept);
    assert_ne!(supervisor.agent_pid(), agent);
    supervisor.wait_for_log("was still alive and was ended", SOON);
}

#[test]
fn an_agent_that_the_database_does_not_know_is_swept_at_the_next_start() {
    let launch =
        Launch::generic("sh -c \"trap '' HUP INT TERM; echo READY; while :; do sleep 1; done\"");
    // Nothing listens there: what the run has to record stays in memory and goes with it.
    let nowhere = "store.url=\"postgres://nobody@127.0.0.1:1/nothing\"";
    let supervisor = launch.clone().set(nowhere).start_showing("READY");
    let agent = supervisor.agent_pid();
    let _ = supervisor.kill();
    assert!(
        !group_members(agent).is_empty(),
        "it outlives its supervisor"
    );

    let supervisor = launch.start_showing("READY");
    assert!(group_members(agent).is_empty(), "it was ended first");
    assert_ne!(supervisor.agent_pid(), agent);
    supervisor.wait_for_log("was still alive and was ended", SOON);
}

#[test]
fn the_record_of_a_run_is_there_before_its_agent() {
    let launch = Launch::generic(
        "sh -c \"[ -e deadly ] && kill -9 $PPID; echo READY; while :; do sleep 1; done\"",
    );
    let supervisor = launch.start_showing("READY");
    drop(supervisor);
    // The first thing that the next agent does is to kill its supervisor.
    let deadly = launch.project().join("deadly");
    fs::write(&deadly, "").expect("a file");
    let supervisor = launch.start();
    let exit = supervisor.wait_for_exit(SOON);
    assert_eq!(exit.code, KILLED, "it died: {exit:?}");
    let launch = supervisor.kill();
    fs::remove_file(deadly).expect("removed");
    let supervisor = launch.start_showing("READY");
    supervisor.wait_for_log("ended without notice: nothing had been said", SOON);
}

#[test]
fn a_run_that_was_taken_up_again_is_not_pruned() {
    let launch = demo();
    let supervisor = launch
        .clone()
        .env("PITSTOP_CRASH_AT", "ending:after")
        .start();
    one_turn(&supervisor);
    reboot_until_death(supervisor, "ending");
    let supervisor = launch.start_idle();
    let run = supervisor.status()["run_id"].as_str().unwrap().to_owned();
    let runs = launch.project().join(".pitstop/runs");
    let first = runs.join(run).join("iteration-1");
    assert!(first.is_dir());
    let pruned = supervisor.run(&["prune", "--older-than", "0"]);
    assert!(pruned.status.success());
    assert!(first.is_dir(), "it goes on");
}

#[test]
fn a_session_that_was_given_another_prompt_is_not_left_for_the_handoff() {
    let launch = demo();
    let border = "verifying:after";
    let supervisor = launch.clone().env("PITSTOP_CRASH_AT", border).start();
    one_turn(&supervisor);
    let old = session_of(&supervisor.status());
    let launch_after = reboot_until_death(supervisor, "verifying");
    let new = open_reboot(&launch).and_then(|entry| entry.new_session);
    let new = new.expect("a session").to_string();
    let home = launch.the_home();
    wait_for_end(home);
    // What a client leaves whose person was faster than the handoff.
    let path = transcript(home, &old);
    let other = fs::read_to_string(&path).expect("a transcript");
    let other = other.replace(&old, &new);
    fs::write(path.with_file_name(format!("{new}.jsonl")), other).expect("a file");
    let supervisor = launch_after.without_env("PITSTOP_CRASH_AT").start();
    let status = supervisor.wait_for_status_within(SOON * 2, |status| {
        status["reboot"]["phase"] == "idle" && status["agent"]["state"] == "idle"
    });
    assert_eq!(session_of(&status), new);
    assert_eq!(handoffs(home).values().sum::<usize>(), 0, "nothing is sent");
    check_in_order(&supervisor, &launch, &new);
}
