//! The number of calls after which a reboot now has paid for itself, from this session's own figures.

use crate::{
    app::{
        cold_cache,
        facts::{deciding_figure, fresh_tokens},
        model::Model,
    },
    guard::payoff::{Payoff, SUMMARY, USUAL_AGAIN, USUAL_OUTPUT},
};
use pitstop_agent::{CacheLifetime, PromptCache, bridge::Reported};
use pitstop_transcript::{Tokens, usage::Usage};

/// Returns the number of calls; `None` where it is not known (no figure, no fresh session seen, no price of the model), or where a
/// reboot now would never pay.
pub fn calls(model: &Model) -> Option<u32> {
    let agent = &model.session.agent;
    // What the client says is in use without a message is what the running session has in the cache of any other.
    let reported = agent.bridge.of(model.session.id);
    let cached = reported.and_then(Reported::base_tokens);
    let asks = model.config.summary.generate_summaries;
    let is_for_an_hour = |cache: PromptCache| cache.lifetime == CacheLifetime::Hour;
    let payoff = Payoff {
        used: deciding_figure(model)?.used,
        fresh: fresh_tokens(model)?,
        cached: cached.unwrap_or(Tokens(0)),
        again: USUAL_AGAIN,
        output: USUAL_OUTPUT,
        summary: if asks { SUMMARY } else { Usage::default() },
        // A client that says nothing of its cache is taken for one that reads from it: a reboot then pays later.
        warm: cold_cache::report(model).is_none_or(|cache| cache.warm),
        for_an_hour: agent.prompt_cache.is_some_and(is_for_an_hour),
    };
    payoff.calls(agent.model_id.as_deref()?)
}

/// Returns the number in words, as all screens say it: `in about 14 calls`.
pub fn words(calls: u32) -> String {
    match calls {
        0 | 1 => "with the next call".to_owned(),
        2..=20 => format!("in about {calls} calls"),
        21..=200 => format!("in about {} calls", (calls + 5) / 10 * 10),
        _ => "in over 200 calls".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_the_coarser_the_more_calls_there_are() {
        let said = [1, 2, 20, 24, 26, 200, 201, u32::MAX].map(words);
        let expected = [
            "with the next call",
            "in about 2 calls",
            "in about 20 calls",
            "in about 20 calls",
            "in about 30 calls",
            "in about 200 calls",
            "in over 200 calls",
            "in over 200 calls",
        ];
        assert_eq!(said, expected);
    }
}
