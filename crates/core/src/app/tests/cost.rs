//! What a turn costs, and what an iteration does.

use super::*;
use crate::{
    app::{cold_cache, cost, event::TranscriptFacts, facts, payoff, report},
    lineage::{Cause, TokenTotals},
};
use pitstop_agent::{CacheLifetime, PromptCache};
use pitstop_transcript::usage::Usage;

/// The status line after a turn: so many tokens in use, and what the session has cost so far.
fn turn(bench: &mut Bench, used: u64, total: f64) {
    bench.prompted(OLD, "work");
    bench.turn_ended(OLD);
    let mut line = status_line(OLD);
    line.cost_usd = Some(total);
    line.window = Some(Tokens(1_000_000));
    line.usage = Some(Usage {
        cache_read: Tokens(used),
        ..Usage::default()
    });
    bench.send(Event::Agent(AgentEvent::StatusLine(Box::new(line))));
}

/// The status line of a session that has cost so much.
fn reported(bench: &mut Bench, number: u128, total: f64) {
    let mut line = status_line(number);
    line.cost_usd = Some(total);
    bench.send(Event::Agent(AgentEvent::StatusLine(Box::new(line))));
}

/// What has been spent when its supervisor is killed counts for the caps of a run that goes on.
#[test]
fn what_a_turn_costs_is_recorded_while_it_is_at_work() {
    let mut bench = Bench::new();
    reported(&mut bench, OLD, 1.0);
    bench.prompted(OLD, "work");
    bench.send(Event::TimerFired(TimerId::KeepCarried));
    let mut line = status_line(OLD);
    line.cost_usd = Some(3.5);
    let effects = bench.send(Event::Agent(AgentEvent::StatusLine(Box::new(line))));
    let timer = has!(effects, Effect::SetTimer(TimerId::KeepCarried, _));
    assert!(timer, "{effects:?}");
    let effects = bench.send(Event::TimerFired(TimerId::KeepCarried));
    let saved =
        first!(effects, Effect::SaveIteration(one, _) if one.cost_usd.is_some() => one.cost_usd);
    assert_eq!(saved, Some(Some(3.5)));
    // And once.
    let effects = bench.send(Event::TimerFired(TimerId::KeepCarried));
    assert!(!has!(effects, Effect::SaveIteration(..)), "{effects:?}");
}

fn cents(bench: &Bench) -> Option<(f64, Option<f64>)> {
    let rounded = |cost: f64| (cost * 100.0).round();
    let cost = cost::per_turn(&bench.model)?;
    Some((rounded(cost.now), cost.fresh.map(rounded)))
}

#[test]
fn the_cost_of_a_turn_is_what_the_session_s_rises_by() {
    let mut bench = Bench::new();
    let mut seen = Vec::new();
    // What the first turn has cost is not known: its session may be older.
    for (used, total) in [
        (20_000, 0.10),
        (100_000, 0.30),
        (200_000, 0.60),
        (200_000, 0.90),
        (200_000, 4.00),
        (200_000, 4.30),
        (200_000, 4.60),
    ] {
        turn(&mut bench, used, total);
        seen.push(cents(&bench));
    }
    let at_200k = Some((30.0, Some(3.0)));
    assert_eq!(
        seen,
        [
            None,
            None,
            None,
            Some((20.0, Some(4.0))),
            at_200k,
            at_200k,
            at_200k
        ],
        "and the one that wrote the cache again does not move it"
    );
}

#[test]
fn where_a_figure_is_missing_nothing_is_said() {
    let mut bench = Bench::new();
    for _ in 0..4 {
        turn(&mut bench, 20_000, 0.0);
    }
    assert_eq!(cents(&bench), None, "a subscription has no cost");
    for total in [0.5, 1.0, 1.5, 2.0] {
        turn(&mut bench, 20_000, total);
    }
    assert_eq!(
        cents(&bench),
        Some((50.0, None)),
        "it is as small as a fresh one"
    );
    bench.session_starts(9, StartSource::Clear);
    assert_eq!(cents(&bench), None);
}

#[test]
fn the_prompt_cache_goes_cold_by_itself() {
    let mut bench = Bench::new();
    assert_eq!(cold_cache::report(&bench.model), None);
    let mut line = status_line(OLD);
    let expires = bench.at().wall.timestamp() + 300;
    line.prompt_cache = Some(PromptCache {
        warm: true,
        expires_at: u64::try_from(expires).ok(),
        recache: Some(Tokens(50_000)),
        usd: None,
        lifetime: CacheLifetime::FiveMinutes,
    });
    bench.send(Event::Agent(AgentEvent::StatusLine(Box::new(line))));
    let warm = cold_cache::report(&bench.model).expect("it was reported");
    assert!(warm.warm);
    assert_eq!(warm.recache_tokens, Some(50_000));
    bench.wait(Duration::from_secs(301));
    bench.send(Event::TimerFired(TimerId::Age));
    assert!(cold_cache::report(&bench.model).is_some_and(|cache| !cache.warm));
}

/// A session that began at 20 000 tokens and has so many in use, of a model with a price.
fn priced(used: u64) -> Bench {
    let mut bench = Bench::new();
    for used in [20_000, used] {
        turn(&mut bench, used, 0.1);
    }
    bench.model.session.agent.model_id = Some("claude-opus-4-8[1m]".to_owned());
    bench
}

#[test]
fn a_reboot_pays_for_itself_the_sooner_the_fuller_the_window_is() {
    let calls = |used| payoff::calls(&priced(used).model);
    assert_eq!(calls(25_000), None, "never");
    let [few, more] = [90_000, 150_000].map(|used| calls(used).expect("it pays"));
    assert!((1..few).contains(&more), "{few} {more}");
    let mut bench = priced(150_000);
    bench.model.session.agent.prompt_cache = Some(PromptCache {
        warm: false,
        expires_at: None,
        recache: None,
        usd: None,
        lifetime: CacheLifetime::FiveMinutes,
    });
    assert_eq!(payoff::calls(&bench.model), Some(1), "the window is cold");
}

#[test]
fn nothing_is_said_of_a_reboot_where_a_figure_is_missing() {
    let mut bench = priced(150_000);
    bench.model.session.agent.model_id = Some("us.anthropic.claude-opus-4-8".to_owned());
    assert_eq!(payoff::calls(&bench.model), None, "no price is known");
    bench.model.session.agent.model_id = None;
    assert_eq!(payoff::calls(&bench.model), None, "no model is known");
    let mut empty = Bench::new();
    empty.model.session.agent.model_id = Some("claude-opus-4-8".to_owned());
    assert_eq!(payoff::calls(&empty.model), None, "no figure is known");
}

fn undone(bench: &mut Bench) {
    bench.control(Control::Undo);
    bench.exited(0);
    bench.spawned(4);
}

/// What each iteration has cost in cents, by its record and the run's report; the sum is what the cap counts.
fn cents_of_iterations(bench: &Bench) -> Vec<f64> {
    let cents = |cost: Option<f64>| (cost.unwrap_or(0.0) * 100.0).round();
    let reported = report::history(&bench.model).iterations;
    let reported: Vec<f64> = reported.iter().map(|one| cents(one.cost_usd)).collect();
    let spent = cents(Some(facts::spent(&bench.model).cost_usd));
    assert!((reported.iter().sum::<f64>() - spent).abs() < 0.5);
    reported
}

#[test]
fn a_session_that_is_resumed_counts_from_where_it_stood() {
    let mut bench = Bench::new();
    turn(&mut bench, 20_000, 0.10);
    bench.rebooted_to_new();
    reported(&mut bench, NEW, 0.0);
    reported(&mut bench, NEW, 0.05);
    undone(&mut bench);
    reported(&mut bench, OLD, 0.10);
    assert_eq!(cents_of_iterations(&bench), [10.0, 5.0, 0.0]);
    turn(&mut bench, 20_000, 0.12);
    assert_eq!(cents_of_iterations(&bench), [10.0, 5.0, 2.0]);
    // The process dies and is resumed by itself.
    bench.exited(1);
    bench.press(KeyCode::Enter);
    bench.spawned(5);
    assert_eq!(bench.model.session.iteration().get(), 4);
    turn(&mut bench, 20_000, 0.13);
    assert_eq!(cents_of_iterations(&bench).last(), Some(&1.0));
}

#[test]
fn what_a_session_had_used_before_the_run_that_the_user_resumes_it_in_is_not_counted_again() {
    let mut bench = Bench::bare(Config::default());
    super::super::iteration::begin(&mut bench.model, false, Some(Cause::Resume), None);
    bench.spawned(OLD);
    bench.started(OLD);
    bench.ready();
    reported(&mut bench, OLD, 0.25);
    transcribed(&mut bench, OLD, 1_000);
    assert_eq!(cents_of_iterations(&bench), [0.0]);
    assert_eq!(tokens_of_iterations(&bench), [(0, 0)]);
    turn(&mut bench, 20_000, 0.28);
    transcribed(&mut bench, OLD, 1_500);
    assert_eq!(cents_of_iterations(&bench), [3.0]);
    assert_eq!(tokens_of_iterations(&bench), [(500, 5)]);
}

/// The whole transcript of a session has so many tokens in, and a hundredth of them out.
fn transcribed(bench: &mut Bench, number: u128, input: u64) {
    let facts = Box::new(TranscriptFacts {
        totals: TokenTotals {
            input: Tokens(input),
            output: Tokens(input / 100),
        },
        whole: true,
        ..TranscriptFacts::default()
    });
    let session = session(number);
    bench.send(Event::Read(ReadEvent::Transcript { session, facts }));
}

/// The tokens that went in and came out in each iteration.
fn tokens_of_iterations(bench: &Bench) -> Vec<(u64, u64)> {
    let iterations = report::history(&bench.model).iterations.into_iter();
    let tokens = iterations.map(|one| (one.tokens.input.unwrap(), one.tokens.output.unwrap()));
    tokens.collect()
}

#[test]
fn the_tokens_of_a_session_that_is_resumed_are_counted_once() {
    let mut bench = Bench::new();
    transcribed(&mut bench, OLD, 1_000);
    bench.rebooted_to_new();
    transcribed(&mut bench, NEW, 500);
    undone(&mut bench);
    assert_eq!(
        tokens_of_iterations(&bench),
        [(1_000, 10), (500, 5), (0, 0)]
    );
    transcribed(&mut bench, OLD, 1_000);
    transcribed(&mut bench, OLD, 1_200);
    assert_eq!(
        tokens_of_iterations(&bench),
        [(1_000, 10), (500, 5), (200, 2)]
    );
    // `/clear` begins a transcript, and the iteration goes on.
    bench.session_starts(9, StartSource::Clear);
    transcribed(&mut bench, 9, 300);
    assert_eq!(tokens_of_iterations(&bench).last(), Some(&(500, 5)));
}

#[test]
fn a_trimmed_copy_counts_from_where_its_session_stood() {
    let mut bench = Bench::new();
    turn(&mut bench, 20_000, 0.10);
    let ask = bench.trimming();
    bench.copied(ask, Ok(super::trim::trim_record()));
    bench.spawned(3);
    bench.resumed(NEW);
    reported(&mut bench, NEW, 0.13);
    assert_eq!(cents_of_iterations(&bench), [10.0, 3.0]);
}

#[test]
fn a_client_that_begins_again_at_nothing_is_believed() {
    let mut bench = Bench::new();
    turn(&mut bench, 20_000, 0.10);
    bench.rebooted_to_new();
    undone(&mut bench);
    reported(&mut bench, OLD, 0.0);
    reported(&mut bench, OLD, 0.04);
    assert_eq!(cents_of_iterations(&bench).last(), Some(&4.0));
}

#[test]
fn the_sessions_of_one_iteration_are_counted_together() {
    let mut bench = Bench::new();
    turn(&mut bench, 20_000, 0.10);
    bench.session_starts(9, StartSource::Clear);
    assert_eq!(cents_of_iterations(&bench), [10.0]);
    reported(&mut bench, 9, 0.0);
    reported(&mut bench, 9, 0.03);
    assert_eq!(cents_of_iterations(&bench), [13.0]);
    // Of a session of which nothing is known the first figure is what it had cost before.
    bench.resumed(10);
    reported(&mut bench, 10, 7.0);
    reported(&mut bench, 10, 7.02);
    // The status line and the bridge both report: what comes last may be older.
    reported(&mut bench, 10, 7.01);
    assert_eq!(cents_of_iterations(&bench), [15.0]);
}

#[test]
fn the_time_for_which_the_client_keeps_its_cache_counts() {
    let calls = |lifetime| {
        let mut bench = priced(150_000);
        bench.model.session.agent.prompt_cache = Some(PromptCache {
            warm: true,
            expires_at: None,
            recache: None,
            usd: None,
            lifetime,
        });
        payoff::calls(&bench.model).expect("it pays")
    };
    assert!(calls(CacheLifetime::Hour) > calls(CacheLifetime::FiveMinutes));
}
