//! `pitstop history --chart`: the context usage and the cost, turn by turn, as an SVG.
//!
//! ```text
//!  100 % ┤                          ┤ $4   left: the share of the usable window at the end of each turn;
//!        │ - - - - - - - - - compact│      right: the cost of the run by then. At a reboot the fill
//!   50 % ┤    ╱│   ╱│   ╱           ┤ $2   falls, so it looks like the teeth of a saw.
//!        │ ╱╱  │╱╱  │╱╱             │
//!    0 % └──┴──┴──┴──┴──┴──┴──┴──┴──┘ $0
//! ```

use std::fmt::Write as _;

use pitstop_base::format;
use pitstop_core::{
    config::GuardConfig,
    lineage::{Iteration, IterationId, metrics::TurnFigures},
};

/// The width and the height of the picture.
const SIZE: (f64, f64) = (960.0, 420.0);

/// The edges of the plot in the picture: left, top, right, bottom.
const PLOT: (f64, f64, f64, f64) = (70.0, 60.0, 885.0, 360.0);

/// The approximate number of marks on an axis.
const MARKS: f64 = 5.0;

/// A turn in the chart.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    iteration: IterationId,
    /// The share of the usable window, in percent.
    percent: f64,
    /// The cost of the run by then, in US dollars.
    cost: Option<f64>,
}

/// Draws a run; none where no figure of a turn is known.
pub(super) fn draw(
    title: &str,
    turns: &[TurnFigures],
    iterations: &[Iteration],
    lines: &GuardConfig,
) -> Option<String> {
    let points = points(turns, iterations);
    let most = points.iter().map(|point| point.percent).reduce(f64::max)?;
    let top = most.max(100.0);
    let costs = points.iter().filter_map(|point| point.cost);
    let cost = costs.fold(0.0, f64::max);
    let step = nice(cost / MARKS);
    let dearest = (cost / step).ceil().max(1.0) * step;
    let scale = Scale {
        count: points.len(),
        top,
        dearest,
    };
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let _ = head(&mut svg, title);
    let _ = axes(&mut svg, &scale, step, lines_in_force(turns, lines));
    let _ = plot(&mut svg, &scale, &points);
    svg.push_str("</svg>\n");
    Some(svg)
}

/// Returns the lines in percent of the window that was usable last: of a share and a cap in tokens the lower one is in force.
fn lines_in_force(turns: &[TurnFigures], lines: &GuardConfig) -> [(&'static str, f64); 2] {
    let usable = turns.last().map_or(0, |turn| turn.usable.0).max(1) as f64;
    let lower = |share: u8, cap: Option<u64>| {
        let cap = cap.map_or(f64::INFINITY, |cap| cap as f64 * 100.0 / usable);
        cap.min(f64::from(share))
    };
    [
        ("warn", lower(lines.warn, lines.warn_tokens)),
        ("compact", lower(lines.compact, lines.compact_tokens)),
    ]
}

/// Returns the turns with the cost of the whole run by then: the cost of each iteration begins at zero.
fn points(turns: &[TurnFigures], iterations: &[Iteration]) -> Vec<Point> {
    let cost_before = |iteration: IterationId| -> f64 {
        let earlier = iterations.iter().filter(|one| one.iteration < iteration);
        earlier.filter_map(Iteration::total_cost).sum()
    };
    turns
        .iter()
        .map(|turn| Point {
            iteration: turn.iteration,
            percent: turn.used.0 as f64 * 100.0 / turn.usable.0.max(1) as f64,
            cost: turn.cost_usd.map(|cost| cost_before(turn.iteration) + cost),
        })
        .collect()
}

/// Returns the smallest of 1, 2 and 5 times a power of ten that is not below `step`.
fn nice(step: f64) -> f64 {
    if !step.is_finite() || step <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(step.log10().floor());
    let times = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|times| times * power >= step);
    times.unwrap_or(10.0) * power
}

/// The mapping from figures to places in the picture.
struct Scale {
    count: usize,
    top: f64,
    dearest: f64,
}

impl Scale {
    fn x(&self, at: usize) -> f64 {
        let (left, _, right, _) = PLOT;
        let steps = self.count.saturating_sub(1).max(1);
        left + (right - left) * at as f64 / steps as f64
    }

    fn y(&self, percent: f64) -> f64 {
        let (_, top, _, bottom) = PLOT;
        bottom - (bottom - top) * percent / self.top
    }

    fn y_of_cost(&self, cost: f64) -> f64 {
        let (_, top, _, bottom) = PLOT;
        bottom - (bottom - top) * cost / self.dearest
    }
}

fn head(svg: &mut String, title: &str) -> std::fmt::Result {
    let (width, height) = SIZE;
    writeln!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">"#
    )?;
    svg.push_str(
        "<style>\n\
         text { font: 13px sans-serif; fill: #333 } .title { font-size: 15px; font-weight: bold }\n\
         .back { fill: #fff } .grid { stroke: #ddd } .line { stroke: #999; stroke-dasharray: 5 4 }\n\
         .reboot { stroke: #888 } .fill { stroke: #1f6fb2; fill: none; stroke-width: 2 }\n\
         .area { fill: #1f6fb2; opacity: .15 } .cost { stroke: #b35900; fill: none; stroke-width: 2; stroke-dasharray: 2 3 }\n\
         .of-fill { fill: #1f6fb2 } .of-cost { fill: #b35900 }\n\
         @media (prefers-color-scheme: dark) { text { fill: #ccc } .back { fill: #16181c } .grid { stroke: #333 }\n\
         .fill { stroke: #6cb6ff } .area, .of-fill { fill: #6cb6ff } .cost { stroke: #f0a35e } .of-cost { fill: #f0a35e } }\n\
         </style>\n",
    );
    writeln!(
        svg,
        r#"<rect class="back" width="{width}" height="{height}"/>"#
    )?;
    let (left, ..) = PLOT;
    let title = escaped(title);
    writeln!(
        svg,
        r#"<title>{title}</title><text class="title" x="{left}" y="24">{title}</text>"#
    )
}

fn axes(svg: &mut String, scale: &Scale, step: f64, lines: [(&str, f64); 2]) -> std::fmt::Result {
    let (left, top, right, bottom) = PLOT;
    let (before, after) = (left - 8.0, right + 8.0);
    let above = top - 14.0;
    writeln!(
        svg,
        r#"<text class="of-fill" x="{before}" y="{above}" text-anchor="start" dx="-50">context, % of usable</text>
<text class="of-cost" x="{after}" y="{above}" text-anchor="end" dx="50">cost of the run, US$</text>"#
    )?;
    let mut percent = 0.0;
    while percent <= scale.top {
        let y = scale.y(percent);
        writeln!(
            svg,
            r#"<line class="grid" x1="{left}" y1="{y:.1}" x2="{right}" y2="{y:.1}"/><text class="of-fill" x="{before}" y="{:.1}" text-anchor="end">{percent} %</text>"#,
            y + 4.0
        )?;
        percent += 25.0;
    }
    let mut cost = 0.0;
    while cost <= scale.dearest + step / 2.0 {
        let y = scale.y_of_cost(cost) + 4.0;
        let word = format::dollars(cost);
        writeln!(
            svg,
            r#"<text class="of-cost" x="{after}" y="{y:.1}">{word}</text>"#
        )?;
        cost += step;
    }
    // In a large window they are so near to each other that their names need places side by side.
    for ((name, at), x) in lines.into_iter().zip([left + 6.0, left + 106.0]) {
        let y = scale.y(at);
        writeln!(
            svg,
            r#"<line class="line" x1="{left}" y1="{y:.1}" x2="{right}" y2="{y:.1}"/><text x="{x:.1}" y="{:.1}">{name} {at:.0} %</text>"#,
            y - 4.0
        )?;
    }
    let every = nice(scale.count as f64 / (2.0 * MARKS)).max(1.0) as usize;
    for at in (0..scale.count).filter(|at| at % every == 0) {
        let (x, y) = (scale.x(at), bottom + 18.0);
        writeln!(
            svg,
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="middle">{}</text>"#,
            at + 1
        )?;
    }
    let (x, y) = (f64::midpoint(left, right), bottom + 40.0);
    writeln!(
        svg,
        r#"<text x="{x:.1}" y="{y:.1}" text-anchor="middle">turns</text>"#
    )
}

fn plot(svg: &mut String, scale: &Scale, points: &[Point]) -> std::fmt::Result {
    let (_, top, _, bottom) = PLOT;
    let mut start = 0;
    for iteration in points.chunk_by(|one, next| one.iteration == next.iteration) {
        let place = |at: usize| scale.x(start + at);
        let mut path = String::new();
        for (at, point) in iteration.iter().enumerate() {
            write!(path, "{:.1},{:.1} ", place(at), scale.y(point.percent))?;
        }
        let (first, last) = (place(0), place(iteration.len() - 1));
        writeln!(
            svg,
            r#"<polygon class="area" points="{first:.1},{bottom} {path}{last:.1},{bottom}"/><polyline class="fill" points="{path}"/>"#
        )?;
        // A single turn is a point, which a line does not show.
        for (at, point) in iteration.iter().enumerate() {
            let (x, y) = (place(at), scale.y(point.percent));
            writeln!(
                svg,
                r#"<circle class="of-fill" cx="{x:.1}" cy="{y:.1}" r="2.5"/>"#
            )?;
        }
        if let Some(point) = iteration.first().filter(|_| start > 0) {
            let x = f64::midpoint(scale.x(start - 1), first);
            writeln!(
                svg,
                r#"<line class="reboot" x1="{x:.1}" y1="{top}" x2="{x:.1}" y2="{bottom}"/><text x="{x:.1}" y="{:.1}" dx="4">#{}</text>"#,
                top + 12.0,
                point.iteration
            )?;
        }
        start += iteration.len();
    }
    let known = points.iter().enumerate();
    let known = known.filter_map(|(at, point)| Some((at, point.cost?)));
    let mut path = String::new();
    for (at, cost) in known {
        write!(path, "{:.1},{:.1} ", scale.x(at), scale.y_of_cost(cost))?;
    }
    writeln!(svg, r#"<polyline class="cost" points="{path}"/>"#)
}

fn escaped(text: &str) -> String {
    let text = pitstop_base::clean::one_line(text).replace('&', "&amp;");
    let text = text.replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use pitstop_core::config::Config;
    use pitstop_transcript::Tokens;

    fn turn(iteration: u64, used: u64, cost: f64) -> TurnFigures {
        TurnFigures {
            iteration: IterationId::new(iteration).unwrap(),
            at: DateTime::UNIX_EPOCH,
            used: Tokens(used),
            usable: Tokens(180_000),
            cost_usd: Some(cost),
        }
    }

    #[test]
    fn a_reboot_is_a_tooth_and_the_cost_goes_on_behind_it() {
        let turns = [
            turn(1, 90_000, 1.0),
            turn(1, 162_000, 2.5),
            turn(2, 18_000, 0.5),
        ];
        let mut lineage = pitstop_core::lineage::Lineage::new(pitstop_core::lineage::RunId::new(
            DateTime::UNIX_EPOCH,
            [1, 2, 3],
        ));
        lineage.open(None, None, DateTime::UNIX_EPOCH).unwrap();
        lineage.current_mut().unwrap().cost_usd = Some(2.5);
        lineage.current_mut().unwrap().summary_made = Some(pitstop_handoff::summary::SummaryMade {
            source: pitstop_handoff::summary::SummarySource::Model,
            cost_usd: Some(0.25),
            duration_ms: None,
            reason: None,
        });
        let iterations = lineage.iterations();
        let found: Vec<_> = points(&turns, iterations)
            .iter()
            .map(|point| (point.percent.round() as u64, point.cost))
            .collect();
        assert_eq!(found, [(50, Some(1.0)), (90, Some(2.5)), (10, Some(3.25))]);
        let svg = draw("run <1>", &turns, iterations, &Config::default().guard).unwrap();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        for part in [
            "run &lt;1&gt;",
            ">100 %<",
            ">compact 85 %<",
            ">$3.00<",
            ">#2<",
            "class=\"reboot\"",
        ] {
            assert!(svg.contains(part), "{part}");
        }
        assert_eq!(svg.matches("<polygon").count(), 2, "a tooth an iteration");
        assert_eq!(
            draw("none", &[], iterations, &Config::default().guard),
            None
        );
    }

    #[test]
    fn the_marks_of_an_axis_are_round() {
        for (step, mark) in [
            (0.0, 1.0),
            (0.03, 0.05),
            (0.7, 1.0),
            (1.2, 2.0),
            (6.0, 10.0),
        ] {
            assert!((nice(step) - mark).abs() < 1e-9, "{step}");
        }
    }

    #[test]
    fn a_line_with_a_lower_cap_in_tokens_is_drawn_at_the_cap() {
        let guard = GuardConfig {
            warn_tokens: Some(36_000),
            compact_tokens: Some(170_000),
            ..Config::default().guard
        };
        let svg = draw("run", &[turn(1, 90_000, 1.0)], &[], &guard).unwrap();
        for part in [">warn 20 %<", ">compact 85 %<"] {
            assert!(svg.contains(part), "{part}");
        }
    }

    #[test]
    fn the_names_of_lines_that_are_near_to_each_other_are_side_by_side() {
        for (warn, compact) in [(13, 16), (84, 85), (1, 99)] {
            let guard = GuardConfig {
                warn,
                compact,
                warn_tokens: None,
                compact_tokens: None,
                ..Config::default().guard
            };
            let svg = draw("run", &[turn(1, 90_000, 1.0)], &[], &guard).unwrap();
            let x_of = |name: &str| -> f64 {
                let mut texts = svg.split("<text x=\"");
                let text = texts.find(|text| text.contains(name)).expect("a name");
                text.split('"').next().unwrap_or_default().parse().unwrap()
            };
            assert!(x_of(">compact ") >= x_of(">warn ") + 100.0);
        }
    }
}
