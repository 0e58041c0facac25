//! The price of going on with a cold prompt cache, and a prompt that waits for a decision.

use crate::{
    app::{
        cold_cache, facts,
        model::unsent::Unsent,
        reboot::{Banner, banner},
    },
    config::ColdCache,
};
use pitstop_agent::{
    CacheLifetime, PromptCache,
    bridge::{Decision, Said},
};
use pitstop_transcript::usage::Usage;

use super::*;

/// What the client waits for before it sends a prompt without an answer.
const PATIENCE: Duration = Duration::from_secs(120);

impl Bench {
    /// A session that began at 18k, holds 143k of Opus, and whose prompt cache is warm for five minutes.
    fn caching(cold_cache: ColdCache) -> Self {
        let mut config = Config::default();
        config.guard.cold_cache = cold_cache;
        let mut bench = Self::with(config);
        bench.with_bridge(None);
        bench.bridge_says(OLD, Said::Hello);
        for (used, recache) in [(18_000, 18_000), (143_000, 143_000)] {
            bench.prompted(OLD, "work");
            bench.turn_ended(OLD);
            let mut line = status_line(OLD);
            line.model_id = Some("claude-opus-4-8[1m]".to_owned());
            line.window = Some(Tokens(1_000_000));
            line.usage = Some(Usage {
                cache_read: Tokens(used),
                ..Usage::default()
            });
            line.prompt_cache = Some(PromptCache {
                warm: true,
                expires_at: u64::try_from(bench.at().wall.timestamp() + 300).ok(),
                recache: Some(Tokens(recache)),
                usd: None,
                lifetime: CacheLifetime::FiveMinutes,
            });
            bench.send(Event::Agent(AgentEvent::StatusLine(Box::new(line))));
        }
        bench
    }

    /// The same after a lunch break.
    fn cold(cold_cache: ColdCache) -> Self {
        let mut bench = Self::caching(cold_cache);
        bench.wait(Duration::from_secs(1_800));
        bench.send(Event::TimerFired(TimerId::Age));
        bench
    }

    fn submits(&mut self, number: u64, text: &str) -> Vec<Effect> {
        self.bridge_says(OLD, Said::Prompting(question(number), text.to_owned()))
    }

    /// A second passes on the clock of the prompt that is held.
    fn second(&mut self) -> Vec<Effect> {
        self.wait(Duration::from_secs(1));
        let held = self.model.session.held_prompt.as_ref();
        let epoch = held.map_or(0, |held| held.epoch);
        self.send(Event::TimerFired(TimerId::HeldPrompt(epoch)))
    }
}

#[test]
fn the_price_of_the_next_prompt_is_known_once_the_cache_is_cold() {
    let bench = Bench::caching(ColdCache::Say);
    assert_eq!(banner(&bench.model), None, "it is warm");
    let bench = Bench::cold(ColdCache::Say);
    let cache = cold_cache::report(&bench.model).expect("it is known");
    assert_eq!(cache.recache_tokens, Some(143_000));
    // 143 000 and 18 000 tokens at $6.25 for a million, which is what Opus takes for writing them.
    let cents = |usd: Option<f64>| usd.map(|usd| (usd * 1_000.0).round());
    assert_eq!(cents(cache.recache_usd), Some(894.0));
    let fresh = cache.fresh_tokens.expect("it is known");
    assert!((18_000..20_000).contains(&fresh), "{fresh}");
    assert_eq!(banner(&bench.model), Some(Banner::ColdCache(cache)));
    let bench = Bench::cold(ColdCache::Off);
    assert_eq!(banner(&bench.model), None);
}

#[test]
fn nothing_is_said_where_a_fresh_session_saves_nothing() {
    let mut bench = Bench::cold(ColdCache::Ask);
    let cache = bench.model.session.agent.prompt_cache.as_mut();
    cache.expect("it is known").recache = Some(Tokens(30_000));
    assert_eq!(banner(&bench.model), None);
    assert_eq!(
        decisions(&bench.submits(1, "go on")),
        [(1, Decision::Client)]
    );
}

#[test]
fn a_prompt_waits_for_a_key_and_never_longer_than_it_may() {
    let mut bench = Bench::cold(ColdCache::Ask);
    assert_eq!(decisions(&bench.submits(1, "go on")), []);
    assert!(matches!(banner(&bench.model), Some(Banner::HoldsPrompt(_, left)) if left == PATIENCE));
    // The client asks again before one of its calls is cut off.
    assert_eq!(decisions(&bench.submits(1, "go on")), []);
    for _ in 1..PATIENCE.as_secs() {
        assert_eq!(decisions(&bench.second()), []);
    }
    assert_eq!(decisions(&bench.second()), [(1, Decision::Client)]);
    assert!(!matches!(
        banner(&bench.model),
        Some(Banner::HoldsPrompt(..))
    ));
}

#[test]
fn enter_sends_a_held_prompt_and_escape_puts_it_back() {
    for (key, goes_back) in [
        (KeyCode::Enter, false),
        (KeyCode::Esc, true),
        (KeyCode::F(5), true),
    ] {
        let mut bench = Bench::cold(ColdCache::Ask);
        bench.submits(1, "go on");
        let effects = bench.press(key);
        let decided = decisions(&effects);
        let [(1, decision)] = &decided[..] else {
            panic!("expected one decision, found {decided:?}");
        };
        assert_eq!(matches!(decision, Decision::Skip { .. }), goes_back);
        assert!(!has!(effects, Effect::Forward(_)));
        assert_eq!(bench.model.reboot.attempt.is_some(), key == KeyCode::F(5));
        // The key is the agent's again.
        let effects = bench.press(KeyCode::Char('x'));
        assert_eq!(has!(effects, Effect::Forward(_)), key != KeyCode::F(5));
    }
}

#[test]
fn the_words_of_a_held_prompt_are_an_unsent_prompt() {
    let mut bench = Bench::cold(ColdCache::Ask);
    bench.submits(1, "go on");
    bench.drafts("and then", 8);
    let kept = bench.send(Event::TimerFired(TimerId::KeepCarried));
    let words = "and then\ngo on".to_owned();
    assert_eq!(facts::unsent(&bench.model), Unsent::Text(words.clone()));
    assert!(kept.contains(&Effect::KeepDraft(Some(words))), "{kept:?}");
}

#[test]
fn a_held_prompt_of_an_agent_that_ends_is_put_into_the_box_of_the_next_one() {
    let mut bench = Bench::cold(ColdCache::Ask);
    bench.submits(1, "go on");
    bench.exited(1);
    assert!(bench.model.session.held_prompt.is_none());
    bench.press(KeyCode::Enter);
    bench.spawned(4);
    bench.resumed(OLD);
    let waiting = bench.model.reboot.unsent.as_ref();
    let waiting = waiting.map(|one| one.text.clone());
    let typed = bench.model.session.submission.is_open();
    assert!(typed || waiting.as_deref() == Some("go on"), "{waiting:?}");
}

#[test]
fn only_ask_has_the_client_ask() {
    for (set, asks) in [
        (ColdCache::Off, false),
        (ColdCache::Say, false),
        (ColdCache::Ask, true),
    ] {
        let mut bench = Bench::cold(set);
        assert_eq!(bench.model.session.asks_of_prompts, asks);
        let expected = if asks {
            vec![]
        } else {
            vec![(1, Decision::Client)]
        };
        assert_eq!(decisions(&bench.submits(1, "go on")), expected);
        // A new setting is in force at once, and lets go what it would not hold.
        let mut config = Config::default();
        config.guard.cold_cache = ColdCache::Say;
        let effects = bench.send(Event::Read(ReadEvent::Config(Box::new(config))));
        assert_eq!(effects.contains(&Effect::AskOfPrompts(false)), asks);
        assert_eq!(decisions(&effects).len(), usize::from(asks));
    }
}

#[test]
fn a_resumed_session_is_cold_by_the_client_s_own_word() {
    let mut bench = Bench::cold(ColdCache::Say);
    bench.send(Event::Agent(AgentEvent::SessionStarted {
        session: session(OLD),
        source: StartSource::Resume,
        model: Some("claude-haiku-4-5".to_owned()),
        transcript_path: None,
        prompt_cache: Some(PromptCache {
            warm: false,
            expires_at: None,
            recache: Some(Tokens(60_110)),
            usd: Some(0.0751),
            lifetime: CacheLifetime::FiveMinutes,
        }),
    }));
    let cache = cold_cache::report(&bench.model).expect("it is known");
    assert_eq!(
        (cache.recache_tokens, cache.recache_usd),
        (Some(60_110), Some(0.0751))
    );
    assert!(!cache.warm);
}

#[test]
fn the_first_figure_of_a_resumed_session_is_no_fresh_session_s() {
    let mut bench = Bench::new();
    // The transcript is read before the hook comes.
    bench.used(90_000);
    bench.resumed(OLD);
    bench.used(90_000);
    assert_eq!(
        bench.model.lineage.iterations()[0].tokens_at_birth,
        Some(Tokens(90_000))
    );
    assert_eq!(facts::fresh_tokens(&bench.model), None);
}

#[test]
fn what_is_said_of_the_cache_at_a_resume_holds_up_to_the_next_turn() {
    let mut bench = Bench::caching(ColdCache::Ask);
    bench.model.session.agent.prompt_cache = None;
    bench.send(Event::Agent(AgentEvent::SessionStarted {
        session: session(OLD),
        source: StartSource::Resume,
        model: None,
        transcript_path: None,
        prompt_cache: Some(PromptCache {
            warm: false,
            expires_at: None,
            recache: Some(Tokens(143_000)),
            usd: None,
            lifetime: CacheLifetime::FiveMinutes,
        }),
    }));
    assert!(cold_cache::report(&bench.model).is_some_and(|cache| !cache.warm));
    // A gateway reports no cache with its answers, so the status line has none.
    bench.prompted(OLD, "go on");
    bench.turn_ended(OLD);
    bench.send(Event::Agent(AgentEvent::StatusLine(Box::new(status_line(
        OLD,
    )))));
    assert_eq!(
        cold_cache::report(&bench.model).map(|cache| cache.warm),
        None
    );
    assert_eq!(
        decisions(&bench.submits(1, "and on")),
        [(1, Decision::Client)]
    );
}
