//! Where the client itself acts, and what keeps below it.

use super::{compaction::compacting, *};
use crate::guard::Threshold;
use pitstop_agent::{
    bridge::{self, Category, CategoryKind, Fact, Said},
    claude::limits::{CompactionSettings, Words},
};
use pitstop_transcript::usage::Usage;

const MILLION: u64 = 1_000_000;

/// The client's settings with this much on its command line.
fn flag(tokens: &str) -> Event {
    let args = ["--autocompact".to_owned(), tokens.to_owned()];
    settings(&args, &[])
}

fn settings(args: &[String], env: &[(&str, &str)]) -> Event {
    let variable = |name: &str| {
        let found = env.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let read = CompactionSettings::read(args, &variable, &[], None);
    Event::Read(ReadEvent::ClientSettings(Box::new(read)))
}

/// A status line of a client with this window.
fn figure(used: u64, window: u64) -> Event {
    let line = StatusLine {
        usage: Some(Usage {
            input: Tokens(used),
            ..Usage::default()
        }),
        window: Some(Tokens(window)),
        ..status_line(OLD)
    };
    Event::Agent(AgentEvent::StatusLine(Box::new(line)))
}

fn compact_line(bench: &Bench) -> u64 {
    let lines = bench.model.session.guard.assess(Tokens(0)).lines;
    lines.at(Threshold::Compact).0
}

fn limit(bench: &Bench) -> Option<(u64, String)> {
    let limit = bench.model.session.client.limit()?;
    Some((limit.at.0, limit.origin.to_string()))
}

#[test]
fn the_settings_are_read_at_the_start_and_with_every_turn() {
    let mut bench = Bench::bare(Config::default());
    crate::app::iteration::begin(&mut bench.model, false, None, None);
    assert!(bench.spawned(NEW).contains(&Effect::ReadClientSettings));
    bench.started(OLD);
    bench.prompted(OLD, "work");
    assert!(bench.turn_ended(OLD).contains(&Effect::ReadClientSettings));
}

#[test]
fn the_lines_follow_the_flag_and_come_back_without_it() {
    let mut bench = Bench::new();
    bench.send(figure(100_000, MILLION));
    assert_eq!(limit(&bench), Some((967_000, "its default".to_owned())));
    assert_eq!(compact_line(&bench), 153_000);
    bench.send(flag("200k"));
    assert_eq!(limit(&bench), Some((167_000, "--autocompact".to_owned())));
    assert_eq!(compact_line(&bench), 153_000, "low enough as it is");
    bench.send(flag("150k"));
    assert_eq!(limit(&bench), Some((117_000, "--autocompact".to_owned())));
    assert_eq!(compact_line(&bench), 99_450);
    bench.send(settings(&[], &[]));
    assert_eq!(compact_line(&bench), 153_000);
}

#[test]
fn a_limit_that_puts_the_figure_past_the_compact_line_arms_a_reboot() {
    let mut bench = Bench::in_mode(RebootMode::Auto);
    bench.prompted(OLD, "work");
    bench.send(figure(120_000, MILLION));
    assert_eq!(bench.step(), None);
    bench.send(flag("170k"));
    assert_eq!(bench.step(), Some(Step::Armed));
}

#[test]
fn in_a_small_window_the_client_has_no_point_of_its_own_until_one_is_set() {
    let mut bench = Bench::new();
    bench.send(figure(100_000, 200_000));
    assert_eq!(limit(&bench), None);
    bench.send(settings(&[], &[("DISABLE_AUTO_COMPACT", "1")]));
    assert_eq!(
        limit(&bench),
        Some((177_000, "DISABLE_AUTO_COMPACT".to_owned()))
    );
    assert_eq!(compact_line(&bench), 153_000, "there is room enough");
}

#[test]
fn what_the_client_says_on_its_screen_is_believed_where_it_is_lower() {
    let mut bench = Bench::new();
    let effects = bench.send(figure(150_000, MILLION));
    let set = limit(&bench);
    let looks = |effects: &[Effect]| has!(effects, Effect::SetTimer(TimerId::ClientWords, _));
    assert!(looks(&effects));
    for again in [true, true, false] {
        let effects = bench.send(Event::TimerFired(TimerId::ClientWords));
        assert_eq!(effects[0], Effect::ReadClientWords);
        assert_eq!(looks(&effects), again);
    }
    let says = |bench: &mut Bench, words| {
        bench.send(Event::Read(ReadEvent::ClientWords(words)));
    };
    says(&mut bench, Words::Left(10));
    assert_eq!(limit(&bench), set, "one look may be about another figure");
    says(&mut bench, Words::Left(10));
    let (at, origin) = limit(&bench).expect("a limit");
    assert!((164_000..=167_000).contains(&at), "{at}");
    assert_eq!(origin, "its screen");
    // Rounding apart it is the same limit: nothing moves.
    bench.send(figure(160_000, MILLION));
    says(&mut bench, Words::Left(4));
    says(&mut bench, Words::Left(4));
    assert_eq!(limit(&bench), Some((at, origin)));
    // Another setting is another limit.
    bench.send(flag("500k"));
    assert_eq!(limit(&bench), Some((467_000, "--autocompact".to_owned())));
}

#[test]
fn words_about_a_figure_that_comes_later_are_not_laid_beside_the_one_before() {
    let mut bench = Bench::new();
    let says = |bench: &mut Bench, left| {
        bench.send(Event::Read(ReadEvent::ClientWords(Words::Left(left))));
    };
    bench.send(figure(100_000, MILLION));
    let set = limit(&bench);
    says(&mut bench, 7);
    assert_eq!(limit(&bench), set);
    bench.send(figure(155_000, MILLION));
    says(&mut bench, 7);
    assert_eq!(limit(&bench), set);
    says(&mut bench, 7);
    let (at, _) = limit(&bench).expect("a limit");
    assert!((165_000..=167_000).contains(&at), "{at}");
}

#[test]
fn an_automatic_compaction_in_a_turn_is_an_upper_bound() {
    let mut config = Config::default();
    config.guard.compact_tokens = None;
    let mut bench = Bench::with(config);
    bench.send(figure(400_000, MILLION));
    let compacted = |bench: &mut Bench, automatic| {
        bench.send(compacting(automatic));
        let session = session(OLD);
        bench.send(Event::Agent(AgentEvent::Compacted { session }));
    };
    compacted(&mut bench, true);
    assert_eq!(
        limit(&bench),
        Some((967_000, "its default".to_owned())),
        "outside of a turn it is idle compaction"
    );
    bench.prompted(OLD, "work");
    bench.send(figure(400_000, MILLION));
    compacted(&mut bench, false);
    assert_eq!(limit(&bench).map(|limit| limit.0), Some(967_000));
    bench.send(figure(400_000, MILLION));
    bench.send(compacting(true));
    bench.send(figure(400_000, MILLION));
    assert_eq!(bench.step(), None, "the figure will fall");
    // That one was stopped with Escape: what a person asks for later says nothing.
    compacted(&mut bench, false);
    assert_eq!(limit(&bench).map(|limit| limit.0), Some(967_000));
    bench.send(figure(400_000, MILLION));
    compacted(&mut bench, true);
    assert_eq!(bench.step(), None);
    assert_eq!(
        limit(&bench),
        Some((400_000, "its last compaction".to_owned()))
    );
    assert!(compact_line(&bench) < 400_000);
}

#[test]
fn everything_is_saved_once_when_the_client_s_point_comes_near() {
    let mut bench = Bench::new();
    bench.send(figure(100_000, MILLION));
    bench.prompted(OLD, "work");
    bench.send(figure(951_000, MILLION));
    let near = saved(&bench.send(figure(958_000, MILLION)));
    assert_eq!(near.len(), 1);
    assert!(near[0].tags.iter().any(|tag| tag == "before-compaction"));
    assert!(saved(&bench.send(figure(959_000, MILLION))).is_empty());
    let announced = saved(&bench.send(compacting(true)));
    assert_eq!(announced.len(), 1, "and again with all that came since");
}

#[test]
fn a_client_that_refuses_prompts_loses_nothing_so_nothing_is_saved_for_it() {
    let mut bench = Bench::new();
    bench.send(settings(&[], &[("DISABLE_COMPACT", "1")]));
    bench.send(figure(172_000, 200_000));
    assert!(
        saved(&bench.send(figure(175_500, 200_000)))
            .iter()
            .all(|one| !one.tags.iter().any(|tag| tag == "before-compaction"))
    );
}

#[test]
fn lean_lines_count_in_a_large_window_and_shares_in_a_small_one() {
    let lines = |window| {
        let config = Config::from_toml("config.toml", "[guard]\npreset = \"lean\"\n");
        let mut bench = Bench::with(config.expect("usable"));
        bench.send(figure(50_000, window));
        let lines = bench.model.session.guard.assess(Tokens(0)).lines;
        [Threshold::Notice, Threshold::Warn, Threshold::Compact].map(|line| lines.at(line).0)
    };
    assert_eq!(lines(MILLION), [120_000, 170_000, 220_000]);
    assert_eq!(lines(200_000), [90_000, 126_000, 153_000]);
}

/// The client's own word of its limit, by the bridge; without rows as in the middle of a turn.
pub(super) fn by_bridge(compacts_at: Option<u64>, rows: bool) -> Said {
    let row = Category {
        name: "Messages".into(),
        tokens: Tokens(1),
        kind: CategoryKind::Used,
        parts: vec![],
    };
    Said::Fact(Fact::Usage(bridge::Usage {
        used: Some(Tokens(100_000)),
        window: Tokens(MILLION),
        compacts_at: compacts_at.map(Tokens),
        categories: rows.then_some(row).into_iter().collect(),
        ..bridge::Usage::default()
    }))
}

#[test]
fn what_the_client_reports_by_the_bridge_is_its_limit_whatever_was_reckoned() {
    let mut bench = Bench::bridged();
    bench.bridge_says(OLD, by_bridge(Some(300_000), true));
    let reported = Some((300_000, "its own figure".to_owned()));
    assert_eq!(limit(&bench), reported);
    assert!(compact_line(&bench) < 300_000);
    // Neither the screen nor a figure in the middle of a turn moves it.
    bench.send(Event::Read(ReadEvent::ClientWords(Words::Next)));
    bench.send(Event::Read(ReadEvent::ClientWords(Words::Next)));
    bench.bridge_says(OLD, by_bridge(None, false));
    assert_eq!(limit(&bench), reported);
    // A setting that has changed counts until the client reports again; where both agree the reason is shown.
    bench.send(flag("200k"));
    assert_eq!(limit(&bench), Some((167_000, "--autocompact".to_owned())));
    bench.bridge_says(OLD, by_bridge(Some(300_000), true));
    assert_eq!(limit(&bench), reported);
    bench.bridge_says(OLD, by_bridge(Some(167_000), true));
    assert_eq!(limit(&bench), Some((167_000, "--autocompact".to_owned())));
    bench.bridge_says(OLD, by_bridge(None, true));
    assert_eq!(limit(&bench), Some((167_000, "--autocompact".to_owned())));
}

#[test]
fn without_the_bridge_the_reckoned_limit_is_back() {
    let mut bench = Bench::bridged();
    bench.send(figure(100_000, MILLION));
    bench.bridge_says(OLD, by_bridge(Some(300_000), true));
    bench.wait(bridge::SILENCE + Duration::from_secs(1));
    bench.bridge_looks();
    assert_eq!(limit(&bench), Some((967_000, "its default".to_owned())));
    assert_eq!(compact_line(&bench), 153_000);
}
