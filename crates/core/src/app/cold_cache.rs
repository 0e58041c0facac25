//! The price of going on after the prompt cache has gone cold: the service then reads the whole conversation again, at the price of
//! writing it, and a fresh session would have it read less.

use chrono::{DateTime, Utc};

use crate::{
    api::wire::{AgentState, CacheReport},
    config::ColdCache,
    guard::{payoff::USUAL_AGAIN, prices},
};
use pitstop_agent::{CacheLifetime, PromptCache};
use pitstop_base::format;
use pitstop_transcript::Tokens;

use crate::app::{facts::fresh_tokens, model::Model};

/// Returns the prompt cache as it is now: it may have gone cold since it was last reported as warm.
pub fn report(model: &Model) -> Option<CacheReport> {
    let cache = model.session.agent.prompt_cache?;
    let expires_at = expiry(cache);
    let fresh = fresh_tokens(model);
    Some(CacheReport {
        warm: cache.warm && expires_at.is_none_or(|at| at > model.now.wall),
        expires_at,
        recache_tokens: cache.recache.map(|tokens| tokens.0),
        recache_usd: cache.usd.or_else(|| price(model, cache, cache.recache?)),
        fresh_tokens: fresh.map(|tokens| tokens.0),
        fresh_usd: fresh.and_then(|fresh| price(model, cache, fresh)),
    })
}

/// Returns the time at which the cache expires, or has expired.
fn expiry(cache: PromptCache) -> Option<DateTime<Utc>> {
    let seconds = i64::try_from(cache.expires_at?).ok()?;
    DateTime::from_timestamp(seconds, 0)
}

/// Returns the list price of writing so many tokens into the cache, in US dollars.
fn price(model: &Model, cache: PromptCache, count: Tokens) -> Option<f64> {
    let price = prices::find_price(model.session.agent.model_id.as_deref()?, count)?;
    let per_million = match cache.lifetime {
        CacheLifetime::FiveMinutes => price.cache_write_5m,
        CacheLifetime::Hour => price.cache_write_1h,
    };
    Some(count.0 as f64 * per_million / 1e6)
}

/// Returns the cold cache if a person who is about to go on is to know of it: a fresh session would be cheaper, now and with each
/// further call, as both prices rise with what is read.
pub fn advised(model: &Model) -> Option<CacheReport> {
    let idle = model.session.agent.state == AgentState::Idle;
    costly(model).filter(|_| idle && model.config.guard.cold_cache != ColdCache::Off)
}

/// Returns the cold cache, whatever the agent does, if a fresh session would be cheaper, and no run or reboot decides how it goes on.
pub(in crate::app) fn costly(model: &Model) -> Option<CacheReport> {
    if model.autopilot.is_some() || model.reboot.attempt.is_some() {
        return None;
    }
    let cache = report(model).filter(|cache| !cache.warm)?;
    let (again, fresh) = (cache.recache_tokens?, cache.fresh_tokens?);
    (fresh + USUAL_AGAIN.0 < again).then_some(cache)
}

/// Returns what a call writes into the cold cache, and what it would write in a fresh session, with the prices as far as they are
/// known: `143k, about $0.89` and `fresh: 21k, $0.13`.
pub fn words(cache: &CacheReport) -> Vec<String> {
    let dollars = |usd: Option<f64>, about| {
        usd.map_or_else(String::new, |usd| {
            format!(", {about}{}", format::dollars(usd))
        })
    };
    let again = cache.recache_tokens.map(format::tokens);
    let again = again.map(|again| again + &dollars(cache.recache_usd, "about "));
    let fresh = cache.fresh_tokens.map(format::tokens);
    let fresh = fresh.map(|fresh| format!("fresh: {fresh}{}", dollars(cache.fresh_usd, "")));
    again.into_iter().chain(fresh).collect()
}
