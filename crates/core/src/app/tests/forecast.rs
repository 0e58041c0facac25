//! What is left of the window, by the events of long and short turns.

use crate::{
    api::wire::{ForecastReport, ForecastUnit},
    app::forecast::report,
};

use super::*;

const TEN_SECONDS: Duration = Duration::from_secs(10);

impl Bench {
    /// A tool call of ten seconds ends, and the figure follows.
    fn tool_adds(&mut self, used: u64, by_subagent: bool) {
        self.wait(TEN_SECONDS);
        let call = ToolCall {
            name: "Read".to_owned(),
            by_subagent,
            ..ToolCall::default()
        };
        self.tool(call, "");
        self.used(used);
    }

    /// A turn of so many calls, a thousand tokens each.
    fn long_turn(&mut self, from: u64, calls: u64) {
        self.prompted(OLD, "go on");
        for call in 0..calls {
            self.tool_adds(from + call * 1_000, false);
        }
    }

    fn forecast(&self) -> ForecastReport {
        report(&self.model).expect("there is a figure")
    }
}

#[test]
fn a_long_turn_is_counted_in_minutes_and_tool_calls() {
    let mut bench = Bench::new();
    assert_eq!(report(&bench.model), None);
    bench.long_turn(20_000, 100);
    let expected = ForecastReport {
        unit: Some(ForecastUnit::Minutes),
        growth_per_minute: Some(6_000),
        growth_per_call: Some(1_000),
        growth_per_turn: None,
        minutes_left: Some(5),
        calls_left: Some(34),
        turns_left: None,
    };
    assert_eq!(bench.forecast(), expected);
    // The turn is over, and a night passes.
    bench.turn_ended(OLD);
    bench.wait(Duration::from_secs(9 * 3_600));
    bench.prompted(OLD, "good morning");
    bench.wait(TEN_SECONDS);
    bench.used(120_000);
    assert_eq!(bench.forecast().growth_per_minute, Some(6_000));
}

#[test]
fn short_turns_are_counted_in_turns() {
    let mut bench = Bench::new();
    for turn in 0..8 {
        bench.long_turn(20_000 + turn * 2_000, 2);
        bench.turn_ended(OLD);
        bench.wait(Duration::from_secs(600));
    }
    let forecast = bench.forecast();
    assert_eq!(forecast.unit, Some(ForecastUnit::Turns));
    assert_eq!(forecast.turns_left.map(|turns| turns.least), Some(59));
    assert_eq!(forecast.growth_per_turn, Some(2_000));
}

#[test]
fn a_question_that_waits_for_the_human_is_no_work() {
    let mut bench = Bench::new();
    bench.long_turn(20_000, 20);
    for call in 20..40 {
        bench.asks("Bash");
        bench.hides_for_an_hour();
        bench.tool_adds(20_000 + call * 1_000, false);
    }
    let forecast = bench.forecast();
    assert_eq!(forecast.growth_per_call, Some(1_000));
    assert!(
        forecast
            .growth_per_minute
            .is_some_and(|growth| growth >= 6_000),
        "{forecast:?}"
    );
}

impl Bench {
    /// The dialog is drawn, and answered by a key after an hour.
    fn hides_for_an_hour(&mut self) {
        self.prompt_box(PromptBox::Absent);
        self.wait(Duration::from_secs(3_600));
        self.prompt_box(PromptBox::Empty);
    }
}

#[test]
fn calls_of_subagents_do_not_fill_the_window_and_do_not_count() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "go on");
    for call in 0..20 {
        bench.tool_adds(20_000 + call * 1_000, false);
        bench.tool_adds(20_000 + call * 1_000, true);
    }
    let forecast = bench.forecast();
    assert_eq!(
        (forecast.growth_per_call, forecast.growth_per_minute),
        (Some(1_000), Some(3_000))
    );
}

#[test]
fn a_fresh_session_knows_nothing_of_the_growth_before() {
    let mut bench = Bench::new();
    bench.long_turn(20_000, 60);
    bench.turn_ended(OLD);
    assert!(bench.forecast().minutes_left.is_some());
    bench.rebooted_to_new();
    assert_eq!(report(&bench.model), None);
    bench.used(19_000);
    assert_eq!(bench.forecast(), ForecastReport::default());
    for call in 1..=3 {
        bench.tool_adds(19_000 + call * 9_000, false);
    }
    assert_eq!(bench.forecast(), ForecastReport::default());
}
