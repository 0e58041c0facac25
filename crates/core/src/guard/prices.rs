//! The prices of the models, as `assets/prices.toml` lists them.

use std::{collections::BTreeMap, sync::LazyLock};

use pitstop_transcript::{Tokens, usage::Usage};
use serde::Deserialize;

/// The price of a model, in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Price {
    /// The price of input that neither comes from the prompt cache nor goes into it.
    pub input: f64,
    /// The price of the answer.
    pub output: f64,
    /// The price of input that comes from the prompt cache.
    pub cache_read: f64,
    /// The price of input that goes into the prompt cache for five minutes.
    pub cache_write_5m: f64,
    /// The price of input that goes into the prompt cache for an hour.
    pub cache_write_1h: f64,
}

impl Price {
    /// Returns the price where what goes into the prompt cache is kept there for an hour, if it is.
    #[must_use]
    pub const fn with_cache(mut self, for_an_hour: bool) -> Self {
        if for_an_hour {
            self.cache_write_5m = self.cache_write_1h;
        }
        self
    }

    /// Returns what a call costs that writes to the cache for five minutes, in US dollars.
    pub fn cost_usd(&self, usage: Usage) -> f64 {
        let parts = [
            (usage.input, self.input),
            (usage.output, self.output),
            (usage.cache_read, self.cache_read),
            (usage.cache_creation, self.cache_write_5m),
        ];
        let cost = parts
            .iter()
            .map(|(tokens, price)| tokens.0 as f64 * price)
            .sum::<f64>();
        cost / 1e6
    }
}

/// The price list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceList {
    /// The day on which the list was compared with its source.
    date: String,
    /// The version of the client with whose catalog it was compared.
    #[serde(rename = "client")]
    _client: String,
    models: BTreeMap<String, Row>,
}

/// The prices of one model.
#[derive(Debug, Deserialize)]
struct Row {
    #[serde(flatten)]
    price: Price,
    /// The prices of calls with a long prompt, where they differ.
    long: Option<LongPrompt>,
}

/// The prices of calls whose prompt is longer than a limit.
#[derive(Debug, Deserialize)]
struct LongPrompt {
    /// The longest prompt that has the usual price.
    above: Tokens,
    #[serde(flatten)]
    price: Price,
}

static PRICES: LazyLock<Option<PriceList>> =
    LazyLock::new(|| toml::from_str(include_str!("../../../../assets/prices.toml")).ok());

/// Returns the price of a call to the model of this id with a prompt of this length; `None` for a model that is not listed.
///
/// The id is that of the Claude API, as the client and the transcript name it: `claude-opus-4-8[1m]`,
/// `claude-haiku-4-5-20251001`. Ids of clouds are not listed, because a cloud sets its own prices.
pub fn find_price(model: &str, prompt: Tokens) -> Option<Price> {
    let row = PRICES.as_ref()?.models.get(bare_name(model))?;
    let long = row.long.as_ref().filter(|long| prompt > long.above);
    Some(long.map_or(row.price, |long| long.price))
}

/// Returns the day on which the price list was compared with its source.
pub fn date_of_prices() -> &'static str {
    PRICES.as_ref().map_or("", |prices| &prices.date)
}

/// Returns the id of a model without the mark of its large window, its date, and the zero of a first minor version.
fn bare_name(model: &str) -> &str {
    let model = model.strip_suffix("[1m]").unwrap_or(model);
    let is_date = |end: &str| end.len() == 8 && end.bytes().all(|byte| byte.is_ascii_digit());
    let model = match model.rsplit_once('-') {
        Some((name, end)) if is_date(end) => name,
        _ => model,
    };
    model.strip_suffix("-0").unwrap_or(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input_of(model: &str) -> Option<f64> {
        find_price(model, Tokens(1_000)).map(|price| price.input)
    }

    #[test]
    fn each_row_of_the_list_agrees_with_itself() {
        let prices = PRICES
            .as_ref()
            .expect("the list is valid TOML of this form");
        assert!(date_of_prices().parse::<chrono::NaiveDate>().is_ok());
        assert!(prices.models.len() > 20);
        for (name, row) in &prices.models {
            assert_eq!(bare_name(name), name, "the key is a bare name");
            for price in [Some(row.price), row.long.as_ref().map(|long| long.price)] {
                let Some(price) = price else { continue };
                // These ratios hold for every model of the list; the cache read is the one that differs.
                assert!(
                    (price.cache_write_5m / price.input - 1.25).abs() < 1e-9,
                    "{name}"
                );
                assert!(
                    (price.cache_write_1h / price.input - 2.0).abs() < 1e-9,
                    "{name}"
                );
                assert!((price.output / price.input - 5.0).abs() < 1e-9, "{name}");
                let read = price.cache_read / price.input;
                assert!((0.02..=0.1 + 1e-9).contains(&read), "{name}: {read}");
            }
        }
    }

    #[test]
    fn a_model_is_found_by_each_name_that_the_client_gives_it() {
        for (model, input) in [
            ("claude-opus-4-8", Some(5.0)),
            ("claude-opus-4-8[1m]", Some(5.0)),
            ("claude-haiku-4-5-20251001", Some(1.0)),
            ("claude-sonnet-4-5-20250929[1m]", Some(3.0)),
            ("claude-sonnet-4-20250514", Some(3.0)),
            ("claude-sonnet-4-0", Some(3.0)),
            ("claude-3-5-haiku-20241022", Some(0.8)),
            ("claude-opus-4-9", None),
            ("us.anthropic.claude-opus-4-5-20251101-v1:0", None),
            ("claude-demo", None),
            ("<synthetic>", None),
            ("opus", None),
            ("", None),
        ] {
            assert_eq!(input_of(model), input, "{model}");
        }
    }

    #[test]
    fn a_long_prompt_has_the_price_of_long_prompts() {
        let input = |prompt| {
            let price = find_price("claude-haiku-5-5", Tokens(prompt));
            price.map(|price| price.input)
        };
        assert_eq!(input(100_000), Some(0.1));
        assert_eq!(input(100_001), Some(0.5));
        let opus = |prompt| find_price("claude-opus-4-8", Tokens(prompt));
        assert_eq!(opus(1), opus(900_000));
    }

    #[test]
    fn a_call_costs_the_sum_of_its_parts() {
        let price = find_price("claude-opus-4-8", Tokens(0)).expect("listed");
        let cost = price.cost_usd(Usage {
            input: Tokens(1_000_000),
            cache_creation: Tokens(2_000_000),
            cache_read: Tokens(4_000_000),
            output: Tokens(100_000),
        });
        assert!((cost - (5.0 + 12.5 + 2.0 + 2.5)).abs() < 1e-9, "{cost}");
    }
}
