//! The number of calls after which a reboot has paid for itself.
//!
//! Each call of the model reads the whole context window from the prompt cache. A reboot costs something once, and makes every call
//! after it cheaper:
//!
//! ```text
//!   once      = summary + start of the fresh session, written to the cache + what is read again, written, in calls of its own
//!   each call = (used − start − read again) × price of a cache read
//!   calls     = once ÷ each call
//! ```
//!
//! What the work adds costs the same with and without a reboot. Where the cache is cold, the next call would write the whole window
//! again: the reboot saves that, too.

use pitstop_transcript::{Tokens, usage::Usage};

use super::prices::{Price, find_price};

/// What a session reads again after a reboot where no reboot of its run shows it, in tokens: the mean at the compactions of real
/// sessions (`cargo bench --bench cost`).
pub const USUAL_AGAIN: Tokens = Tokens(20_000);

/// The tokens that one call reads again, in the same sessions.
pub const AGAIN_PER_CALL: Tokens = Tokens(1_800);

/// The summary that a model is asked for before a reboot: the most of the session that it reads, and a usual answer.
pub const SUMMARY: Usage = Usage {
    input: Tokens(0),
    cache_creation: Tokens(25_000),
    cache_read: Tokens(0),
    output: Tokens(1_500),
};

/// The tokens of one answer, in the same sessions.
pub const USUAL_OUTPUT: Tokens = Tokens(300);

/// The longest payoff that is counted, in calls: nothing is known about work that is so far away.
const MANY_CALLS: f64 = 999.0;

/// The figures of a session that decide whether a reboot pays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Payoff {
    /// The tokens in the context window now.
    pub used: Tokens,
    /// The tokens that a fresh session starts with: instructions, tools and the handoff.
    pub fresh: Tokens,
    /// The part of these that it reads from the cache, because the running session has written them.
    pub cached: Tokens,
    /// The tokens that are read again after the reboot.
    pub again: Tokens,
    /// The tokens of one answer.
    pub output: Tokens,
    /// The calls for the summary.
    pub summary: Usage,
    /// True if the next call can read the window from the cache.
    pub warm: bool,
    /// True if the cache is kept for an hour.
    pub for_an_hour: bool,
}

impl Payoff {
    /// Returns the number of calls after which a reboot now has saved what it costs, for the model of this id; `None` if it never
    /// does, or the model has no known price.
    pub fn calls(&self, model: &str) -> Option<u32> {
        let price = |prompt| Some(find_price(model, prompt)?.with_cache(self.for_an_hour));
        self.calls_at(price(self.used)?, price(self.after())?)
    }

    /// Returns that number for the prices of a call now and of one after the reboot: long prompts may have prices of their own.
    fn calls_at(&self, stays: Price, fresh: Price) -> Option<u32> {
        let saved =
            self.used.0 as f64 * stays.cache_read - self.after().0 as f64 * fresh.cache_read;
        if saved <= 0.0 {
            return None;
        }
        // At the least the next call, because nothing is saved before it.
        let calls = (self.once(stays, fresh) / saved).ceil().max(1.0);
        (calls <= MANY_CALLS).then_some(calls as u32)
    }

    /// Returns the tokens in the window once all is read again.
    const fn after(&self) -> Tokens {
        Tokens(self.fresh.0.saturating_add(self.again.0))
    }

    /// Returns what the reboot costs once, in millionths of a US dollar; less than nothing where it spares a cold window.
    fn once(&self, stays: Price, fresh: Price) -> f64 {
        let dearer = |price: Price| price.cache_write_5m - price.cache_read;
        let (cached, spared) = if self.warm {
            (self.cached.0.min(self.fresh.0), 0.0)
        } else {
            (0, self.used.0 as f64 * dearer(stays))
        };
        let start = (self.fresh.0 - cached) as f64 * dearer(fresh);
        let summary = fresh.cost_usd(self.summary) * 1e6;
        summary + start + self.reading_again(fresh) - spared
    }

    /// Returns what it costs to read again: the text itself, and that of the calls which do it, over a window that fills meanwhile.
    fn reading_again(&self, price: Price) -> f64 {
        let again = self.again.0 as f64;
        let calls = self.again.0.div_ceil(AGAIN_PER_CALL.0) as f64;
        let window = self.fresh.0 as f64 + again / 2.0;
        again * price.cache_write_5m
            + calls * (window * price.cache_read + self.output.0 as f64 * price.output)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::guard::prices::find_price;

    fn opus() -> Price {
        find_price("claude-opus-4-8", Tokens(0)).expect("listed")
    }

    fn usual(used: u64) -> Payoff {
        Payoff {
            used: Tokens(used),
            fresh: Tokens(30_000),
            cached: Tokens(20_000),
            again: Tokens(18_000),
            output: Tokens(200),
            summary: SUMMARY,
            warm: true,
            for_an_hour: false,
        }
    }

    #[test]
    fn the_calls_are_the_cost_by_the_saving() {
        // Summary 0.19375 $, start 10k × 5.75, again 18k × 6.25 and 10 calls of 39k × 0.5 + 200 × 25: 0.60875 $ in all.
        let once = usual(120_000).once(opus(), opus());
        assert!((once - 608_750.0).abs() < 1.0, "{once}");
        // Each call saves 72k × 0.5.
        assert_eq!(usual(120_000).calls("claude-opus-4-8"), Some(17));
        assert_eq!(usual(300_000).calls("claude-opus-4-8"), Some(5));
    }

    #[test]
    fn a_reboot_that_saves_nothing_never_pays() {
        assert_eq!(usual(48_000).calls("claude-opus-4-8"), None);
        assert_eq!(usual(10_000).calls("claude-opus-4-8"), None);
        assert_eq!(
            usual(48_001).calls("claude-opus-4-8"),
            None,
            "too far away to count"
        );
        let free = Price {
            cache_read: 0.0,
            ..opus()
        };
        assert_eq!(usual(120_000).calls_at(free, free), None);
        assert_eq!(usual(120_000).calls("claude-demo-1"), None, "no price");
    }

    #[test]
    fn a_cold_window_makes_a_reboot_pay_with_the_next_call() {
        let cold = Payoff {
            warm: false,
            ..usual(150_000)
        };
        assert_eq!(cold.calls("claude-opus-4-8"), Some(1));
    }

    #[test]
    fn cheap_cache_reads_make_a_reboot_pay_later() {
        let calls = |model| usual(150_000).calls(model);
        let (tenth, twentieth, fortieth) = (
            calls("claude-opus-5"),
            calls("claude-opus-5-5"),
            calls("claude-fable-5-1"),
        );
        assert!(
            tenth < twentieth && twentieth < fortieth,
            "{tenth:?} {twentieth:?} {fortieth:?}"
        );
    }

    #[test]
    fn a_fresh_session_may_have_the_prices_of_short_prompts() {
        let haiku = |used| usual(used).calls("claude-haiku-5-5");
        // Beyond 100k each call costs five times as much: to get below is worth more than the tokens alone.
        assert!(
            haiku(101_000) < haiku(99_000).map(|calls| calls / 3),
            "{:?} {:?}",
            haiku(101_000),
            haiku(99_000)
        );
    }

    fn any_tokens() -> impl Strategy<Value = Tokens> {
        prop_oneof![any::<u64>(), 0..1_000_000_u64].prop_map(Tokens)
    }

    proptest! {
        #[test]
        fn a_fuller_window_pays_no_later_and_every_answer_is_a_number_of_calls(
            used in any_tokens(), more in 0..1_000_000_u64, fresh in any_tokens(), cached in any_tokens(),
            again in any_tokens(), output in 0..100_000_u64, warm in any::<bool>(), summarized in any::<bool>(),
            for_an_hour in any::<bool>(),
            model in prop_oneof![Just("claude-opus-4-8"), Just("claude-opus-5-5"), Just("claude-haiku-5-5")],
        ) {
            let summary = if summarized { SUMMARY } else { Usage::default() };
            let now = Payoff { used, fresh, cached, again, output: Tokens(output), summary, warm, for_an_hour };
            let later = Payoff { used: Tokens(used.0.saturating_add(more)), ..now };
            let (now, later) = (now.calls(model), later.calls(model));
            for calls in [now, later].into_iter().flatten() {
                prop_assert!((1..=999).contains(&calls));
            }
            if let Some(now) = now {
                prop_assert!(later.is_some_and(|later| later <= now), "{now} {later:?}");
            }
        }
    }

    #[test]
    fn a_cache_that_is_kept_for_an_hour_makes_a_reboot_pay_later() {
        let hour = Payoff {
            for_an_hour: true,
            ..usual(120_000)
        };
        // Summary 0.2875 $, start 10k × 9.5, again 18k × 10 and the same 10 calls: 0.8075 $ in all.
        assert_eq!(hour.calls("claude-opus-4-8"), Some(23));
    }
}
