//! The forecast: how fast the context window fills and what is left of it, as data, and in the words that all screens share.
//!
//! ```text
//!  +4.1k a minute · about 12 min left · 60 tool calls left     within a long turn
//!  +1.1k a tool call · about 30 tool calls left                      while no rate per minute is known
//!  +4.1k a turn · 5–8 turns left                                     where several turns fit
//! ```
//!
//! A forecast is a rough one: the larger the figure, the coarser its steps, so that it does not change with each call.

use crate::api::wire::{ForecastReport, ForecastUnit, TurnsLeft};
use pitstop_base::format;

use crate::app::model::Model;

/// The limits beyond which nothing is counted: turns and tool calls, and hours of work.
const MANY: u32 = 200;
const MANY_HOURS: u32 = 10;

/// The number up to which minutes and calls are counted one by one.
const COUNTED_SINGLY: u32 = 20;

/// Returns the forecast as scripts read it; `None` without a figure.
pub fn report(model: &Model) -> Option<ForecastReport> {
    model.session.guard.forecast_report(model.now)
}

/// Returns the whole forecast in words: growth, what is left, and the tool calls beside minutes.
pub fn words(forecast: &ForecastReport) -> Vec<String> {
    let said = [growth(forecast), left(forecast), calls_beside(forecast)];
    said.into_iter().flatten().collect()
}

/// Returns the growth, in the unit that fits: `+4.1k a minute`.
pub fn growth(forecast: &ForecastReport) -> Option<String> {
    let by_minute = forecast.growth_per_minute.map(|count| (count, "minute"));
    let by_call = forecast.growth_per_call.map(|count| (count, "tool call"));
    let by_turn = forecast.growth_per_turn.map(|count| (count, "turn"));
    let (count, unit) = match forecast.unit {
        Some(ForecastUnit::Turns) => by_turn,
        Some(ForecastUnit::Calls) => by_call,
        Some(ForecastUnit::Minutes) | None => by_minute.or(by_turn).or(by_call),
    }?;
    Some(format!("+{} a {unit}", format::tokens(count)))
}

/// Returns what is left to the compact line, in the unit that fits: `about 12 min left`.
pub fn left(forecast: &ForecastReport) -> Option<String> {
    let said = match forecast.unit? {
        ForecastUnit::Turns => turns(forecast.turns_left?),
        ForecastUnit::Minutes => minutes(forecast.minutes_left?),
        ForecastUnit::Calls => calls(forecast.calls_left?),
    };
    Some(format!("{said} left"))
}

/// Returns the tool calls that are left, where minutes are the unit.
pub fn calls_beside(forecast: &ForecastReport) -> Option<String> {
    let beside = forecast.unit == Some(ForecastUnit::Minutes);
    let said = calls(forecast.calls_left.filter(|_| beside)?);
    // The minutes before it show already that it is a rough figure.
    Some(format!("{} left", said.trim_start_matches("about ")))
}

fn turns(TurnsLeft { least, most }: TurnsLeft) -> String {
    if most > MANY {
        format!("over {}", format::count(least.min(MANY), "turn"))
    } else if least == most {
        format::count(most, "turn")
    } else {
        format!("{least}–{most} turns")
    }
}

fn minutes(count: u32) -> String {
    match count {
        0 => "less than 1 min".to_owned(),
        1..=COUNTED_SINGLY => format!("about {count} min"),
        21..=90 => format!("about {} min", nearest(count, 5)),
        _ if count > MANY_HOURS * 60 => format!("over {MANY_HOURS} h"),
        _ => format!("about {} h", nearest(count, 60) / 60),
    }
}

fn calls(count: u32) -> String {
    match count {
        0 | 1 => "about 1 tool call".to_owned(),
        2..=COUNTED_SINGLY => format!("about {count} tool calls"),
        21..=MANY => format!("about {} tool calls", nearest(count, 10)),
        _ => format!("over {MANY} tool calls"),
    }
}

const fn nearest(count: u32, step: u32) -> u32 {
    (count + step / 2) / step * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_said_in_the_unit_that_fits() {
        let known = ForecastReport {
            unit: Some(ForecastUnit::Minutes),
            growth_per_minute: Some(4_100),
            growth_per_call: Some(820),
            growth_per_turn: Some(61_000),
            minutes_left: Some(12),
            calls_left: Some(62),
            turns_left: None,
        };
        let said = |forecast: ForecastReport| words(&forecast).join(" · ");
        assert_eq!(
            said(known),
            "+4.1k a minute · about 12 min left · 60 tool calls left"
        );
        let calls = ForecastReport {
            unit: Some(ForecastUnit::Calls),
            growth_per_minute: None,
            minutes_left: None,
            ..known
        };
        assert_eq!(said(calls), "+820 a tool call · about 60 tool calls left");
        let turns = ForecastReport {
            unit: Some(ForecastUnit::Turns),
            turns_left: Some(TurnsLeft { least: 5, most: 8 }),
            growth_per_turn: Some(4_100),
            ..known
        };
        assert_eq!(said(turns), "+4.1k a turn · 5–8 turns left");
        // Past the line.
        let past = ForecastReport {
            unit: None,
            minutes_left: None,
            calls_left: None,
            ..known
        };
        assert_eq!(said(past), "+4.1k a minute");
        assert_eq!(said(ForecastReport::default()), "");
    }

    #[test]
    fn silly_figures_are_capped_and_large_ones_are_coarse() {
        let cases = [
            (0, "less than 1 min"),
            (1, "about 1 min"),
            (20, "about 20 min"),
            (23, "about 25 min"),
            (90, "about 90 min"),
            (91, "about 2 h"),
            (600, "about 10 h"),
            (601, "over 10 h"),
            (u32::MAX, "over 10 h"),
        ];
        for (count, expected) in cases {
            assert_eq!(minutes(count), expected);
        }
        let said = [0, 1, 2, 34, 200, 201, u32::MAX].map(calls);
        assert_eq!(
            said,
            [
                "about 1 tool call",
                "about 1 tool call",
                "about 2 tool calls",
                "about 30 tool calls",
                "about 200 tool calls",
                "over 200 tool calls",
                "over 200 tool calls"
            ]
        );
        let said = [(4, 4), (5, 8), (150, 600), (999, 999)]
            .map(|(least, most)| turns(TurnsLeft { least, most }));
        assert_eq!(
            said,
            ["4 turns", "5–8 turns", "over 150 turns", "over 200 turns"]
        );
    }
}
