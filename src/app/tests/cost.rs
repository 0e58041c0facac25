//! What a turn costs.

use super::*;
use crate::{
    agent::PromptCache,
    app::{cost, report},
    transcript::usage::Usage,
};

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
    bench.tell(Event::Agent(AgentEvent::StatusLine(Box::new(line))));
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
    bench.tell(Event::Agent(AgentEvent::SessionStarted {
        session: session(9),
        source: StartSource::Clear,
        model: None,
        transcript_path: None,
    }));
    assert_eq!(cents(&bench), None);
}

#[test]
fn the_prompt_cache_goes_cold_by_itself() {
    let mut bench = Bench::new();
    assert_eq!(report::cache(&bench.model), None);
    let mut line = status_line(OLD);
    let expires = bench.at().wall.timestamp() + 300;
    line.prompt_cache = Some(PromptCache {
        warm: true,
        expires_at: u64::try_from(expires).ok(),
        recache: Some(Tokens(50_000)),
    });
    bench.tell(Event::Agent(AgentEvent::StatusLine(Box::new(line))));
    let warm = report::cache(&bench.model).expect("it was reported");
    assert!(warm.warm);
    assert_eq!(warm.recache_tokens, Some(50_000));
    bench.wait(Duration::from_secs(301));
    bench.tell(Event::TimerFired(TimerId::Age));
    assert!(report::cache(&bench.model).is_some_and(|cache| !cache.warm));
}
