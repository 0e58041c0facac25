//! The figures for monitoring, and their text in the Prometheus exposition format (version 0.0.4).
//!
//! The text has only figures and our own words: it contains no path, prompt, branch or session, so the observe token may read it.

use std::fmt::Write as _;

use crate::guard::Level;

/// The content type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The upper bounds of the hook histogram, in microseconds: the promised 10 ms and the range around it.
pub const HOOK_BOUNDS: [u64; 10] = [
    500, 1_000, 2_500, 5_000, 10_000, 20_000, 50_000, 100_000, 250_000, 1_000_000,
];

/// The figures of one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricsReport {
    /// The supervisor's version.
    pub version: String,
    /// The agent's kind.
    pub agent: String,
    /// The number of tokens in the context window; `None` before the first figure, as are the three below.
    pub used: Option<u64>,
    /// The whole window in tokens.
    pub window: Option<u64>,
    /// The usable window in tokens.
    pub usable: Option<u64>,
    /// The share of `usable` in use, in percent.
    pub percent: Option<f64>,
    /// The level, once there is a figure.
    pub level: Option<Level>,
    /// The age of the figure, in seconds.
    pub age_seconds: Option<f64>,
    /// The iteration's number.
    pub iteration: u64,
    /// The number of turns that have ended since the supervisor started.
    pub turns: u64,
    /// The cost of the run, in US dollars, as the agent reports it.
    pub cost_usd: f64,
    /// The number of reboots that have ended, by cause and outcome.
    pub reboots: Vec<(&'static str, &'static str, u64)>,
    /// The seconds spent in each step of the reboots of this run, and the number of reboots that had the step.
    pub transitions: Vec<(&'static str, f64, u64)>,
    /// The number of commits seen.
    pub commits: u64,
    /// The numbers of test runs seen that passed and that failed.
    pub tests: (u64, u64),
    /// The number of checkpoints ordered.
    pub checkpoints: u64,
}

/// The times that hooks took, from their connection to the moment at which the loop had them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookTimes {
    /// The number of hooks up to each of [`HOOK_BOUNDS`] and above the bound before; the last count is of those beyond all bounds.
    pub counts: [u64; HOOK_BOUNDS.len() + 1],
    /// The sum of all times, in microseconds.
    pub total: u64,
    /// The number of hooks that were rejected because the loop did not take them.
    pub lost: u64,
}

impl HookTimes {
    /// Notes a hook that took `micros` microseconds.
    pub fn note(&mut self, micros: u64) {
        let place = HOOK_BOUNDS.partition_point(|bound| *bound < micros);
        self.counts[place] += 1;
        self.total = self.total.saturating_add(micros);
    }
}

/// The name of a family of one sample without labels, its value if it is known, and its help.
type PlainSample = (&'static str, Option<f64>, &'static str);

/// The text of the metric families, one after the other.
#[derive(Default)]
struct Exposition(String);

impl Exposition {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail, here and below.
        let _ = write!(
            self.0,
            "# HELP pitstop_{name} {help}\n# TYPE pitstop_{name} {kind}\n"
        );
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let _ = write!(self.0, "pitstop_{name}");
        for (at, (label, text)) in labels.iter().enumerate() {
            let open = if at == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{open}{label}=\"{}\"", escaped(text));
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{close} {value}");
    }

    /// Writes families of one sample without labels; one whose value is unknown is left out. The name distinguishes a counter
    /// from a gauge.
    fn plain_samples(&mut self, rows: &[PlainSample]) {
        for (name, value, help) in rows {
            if let Some(value) = value {
                let is_counter = name.ends_with("_total");
                let kind = if is_counter { "counter" } else { "gauge" };
                self.family(name, kind, help);
                self.sample(name, &[], *value);
            }
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// Returns the whole text.
pub fn text(report: &MetricsReport, hooks: &HookTimes) -> String {
    let mut out = Exposition::default();
    out.family("info", "gauge", "Who is asked.");
    let who = [("version", &*report.version), ("agent", &*report.agent)];
    out.sample("info", &who, 1.0);
    context(&mut out, report);
    let count = |count: u64| Some(count as f64);
    #[rustfmt::skip]
    out.plain_samples(&[
        ("iteration", count(report.iteration), "Number of the present iteration."),
        ("turns_total", count(report.turns), "Turns that have ended."),
        ("cost_usd_total", Some(report.cost_usd), "Cost of the run in US dollars."),
        ("commits_total", count(report.commits), "Commits seen."),
        ("checkpoints_total", count(report.checkpoints), "Checkpoints kept."),
    ]);
    out.family("test_runs_total", "counter", "Test runs seen, by outcome.");
    let (passed, failed) = report.tests;
    for (outcome, count) in [("passed", passed), ("failed", failed)] {
        out.sample("test_runs_total", &[("outcome", outcome)], count as f64);
    }
    let help = "Reboots that have ended, by cause and outcome.";
    out.family("reboots_total", "counter", help);
    for (cause, outcome, count) in &report.reboots {
        let labels = [("cause", *cause), ("outcome", *outcome)];
        out.sample("reboots_total", &labels, *count as f64);
    }
    let help = "Seconds spent in each step of the reboots that went through.";
    out.family("transition_seconds", "summary", help);
    for (step, seconds, count) in &report.transitions {
        out.sample("transition_seconds_sum", &[("step", step)], *seconds);
        out.sample("transition_seconds_count", &[("step", step)], *count as f64);
    }
    hook_times(&mut out, hooks);
    out.0
}

fn context(out: &mut Exposition, report: &MetricsReport) {
    use Level::{Critical, Healthy, Overflow, Warning};
    let tokens = |count: Option<u64>| count.map(|count| count as f64);
    #[rustfmt::skip]
    out.plain_samples(&[
        ("context_used_tokens", tokens(report.used), "Tokens in the context window."),
        ("context_window_tokens", tokens(report.window), "The whole window."),
        ("context_usable_tokens", tokens(report.usable), "The window less the reserve."),
        ("context_used_percent", report.percent, "Used of usable, in percent."),
        ("context_age_seconds", report.age_seconds, "Age of the figure."),
    ]);
    if let Some(level) = report.level {
        let help = "The level: 1 for the one in force.";
        out.family("context_level", "gauge", help);
        for each in [Healthy, Warning, Critical, Overflow] {
            let value = f64::from(u8::from(each == level));
            out.sample("context_level", &[("level", each.word())], value);
        }
    }
}

fn hook_times(out: &mut Exposition, hooks: &HookTimes) {
    let help = "Seconds from a hook's connection until the supervisor had it.";
    out.family("hook_seconds", "histogram", help);
    let mut below = 0;
    for (bound, count) in HOOK_BOUNDS.iter().zip(hooks.counts) {
        below += count;
        let bound = (*bound as f64 / 1e6).to_string();
        out.sample("hook_seconds_bucket", &[("le", &bound)], below as f64);
    }
    let all: u64 = hooks.counts.iter().sum();
    out.sample("hook_seconds_bucket", &[("le", "+Inf")], all as f64);
    out.sample("hook_seconds_sum", &[], hooks.total as f64 / 1e6);
    out.sample("hook_seconds_count", &[], all as f64);
    let help = "Hooks turned away because the supervisor did not keep up.";
    out.plain_samples(&[("hooks_lost_total", Some(hooks.lost as f64), help)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_the_first_figure_there_is_no_sample_of_it() {
        let text = text(&MetricsReport::default(), &HookTimes::default());
        assert!(!text.contains("pitstop_context_"));
        assert!(text.contains("pitstop_turns_total 0\n"));
    }

    #[test]
    fn figures_levels_and_reboots_are_reported() {
        let report = MetricsReport {
            version: "0.1\"\\\n".to_owned(),
            agent: "claude".to_owned(),
            used: Some(128_400),
            percent: Some(71.3),
            level: Some(Level::Critical),
            cost_usd: 4.25,
            reboots: vec![("key", "done", 2)],
            transitions: vec![("ending", 0.75, 2)],
            tests: (3, 1),
            ..MetricsReport::default()
        };
        let text = text(&report, &HookTimes::default());
        for line in [
            "pitstop_info{version=\"0.1\\\"\\\\\\n\",agent=\"claude\"} 1",
            "pitstop_context_used_tokens 128400",
            "pitstop_context_used_percent 71.3",
            "pitstop_context_level{level=\"warning\"} 0",
            "pitstop_context_level{level=\"critical\"} 1",
            "pitstop_cost_usd_total 4.25",
            "pitstop_test_runs_total{outcome=\"failed\"} 1",
            "pitstop_reboots_total{cause=\"key\",outcome=\"done\"} 2",
            "pitstop_transition_seconds_sum{step=\"ending\"} 0.75",
            "pitstop_transition_seconds_count{step=\"ending\"} 2",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
    }

    #[test]
    fn buckets_of_hooks_add_up() {
        let mut hooks = HookTimes::default();
        for micros in [400, 500, 501, 10_000, 5_000_000] {
            hooks.note(micros);
        }
        let text = text(&MetricsReport::default(), &hooks);
        for line in [
            "pitstop_hook_seconds_bucket{le=\"0.0005\"} 2",
            "pitstop_hook_seconds_bucket{le=\"0.001\"} 3",
            "pitstop_hook_seconds_bucket{le=\"0.01\"} 4",
            "pitstop_hook_seconds_bucket{le=\"1\"} 4",
            "pitstop_hook_seconds_bucket{le=\"+Inf\"} 5",
            "pitstop_hook_seconds_count 5",
            "pitstop_hook_seconds_sum 5.011401",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
    }

    #[test]
    fn every_line_is_a_comment_or_a_sample_of_a_declared_family() {
        let report = MetricsReport {
            used: Some(1),
            level: Some(Level::Healthy),
            reboots: vec![("key", "done", 1)],
            transitions: vec![("ending", 1.0, 1)],
            ..MetricsReport::default()
        };
        let text = text(&report, &HookTimes::default());
        let mut families = Vec::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                families.push(rest.split(' ').next().unwrap());
            } else if !line.starts_with("# HELP ") {
                let (name, value) = line.rsplit_once(' ').unwrap();
                let name = name.split('{').next().unwrap();
                assert!(
                    families.iter().any(|family| name.starts_with(family)),
                    "{line}"
                );
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
        }
    }
}
