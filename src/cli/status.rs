//! `pitstop status [--json | --line [--watch]]`: the status of the supervisor of this directory.

pub(super) mod line;

use chrono::Utc;
use clap::Args;

use super::here::Here;
use super::out::{self, Outcome, columns, duration, tokens};
use crate::supervisor::boot::start_of_time;
use pitstop_agent::bridge::{Category, CategoryKind, Part};
use pitstop_base::clock::At;
use pitstop_base::format::dollars;
use pitstop_core::api::wire::{CacheReport, ContextReport, NeedReport, RunReport, StatusReport};
use pitstop_core::app::{autopilot::facts::facts, cold_cache, forecast, payoff, reboot::Block};
use pitstop_core::config::load::Flags;
use pitstop_core::lineage::Cause;

/// The number of a run's newest lines that are shown.
const LINES: usize = 5;

/// Show the status of the supervisor of this directory.
#[derive(Args, Clone, Debug)]
pub struct StatusArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Print one short line for a status bar: what waits for you, context, state and cost
    ///
    /// The line is empty where no supervisor runs.
    #[arg(long, conflicts_with = "json")]
    pub line: bool,
    /// Print the line again whenever it changes, until the supervisor ends
    #[arg(long, requires = "line")]
    pub watch: bool,
}

/// Runs the command; 0, or 3 if no supervisor runs here, or 1.
pub fn run(args: &StatusArgs, flags: &Flags) -> Outcome {
    if !flags.settings.is_empty() {
        // What is shown does not depend on a setting: one is only checked.
        Here::find_configured(flags)?;
    }
    if args.line {
        return line::run(args.watch);
    }
    let (report, json) = out::get::<StatusReport>("/status")?;
    let now = start_of_time(Utc::now());
    let text = out::render(args.json, || json, || describe(&report, now));
    Ok(out::print(&text))
}

/// Returns the report for people.
fn describe(report: &StatusReport, now: At) -> String {
    let agent = &report.agent;
    let session = report.session_id.as_deref().unwrap_or("not known yet");
    // The reason gives the time in UTC.
    let reset = agent
        .limit_reset
        .map(|at| format!("until {}", now.time_of_day(at, "%H:%M")));
    let mut rows = vec![
        vec!["project".to_owned(), report.project.clone()],
        row(
            "supervisor",
            &[
                format!("pitstop {}", report.version),
                format!("pid {}", report.pid),
                format!(
                    "reboots: {}{}",
                    report.mode,
                    if report.paused { " (paused)" } else { "" }
                ),
            ],
        ),
        row(
            "agent",
            &[
                match &agent.version {
                    Some(version) => format!("{} {version}", agent.kind.word()),
                    None => agent.kind.word().to_owned(),
                },
                match reset.as_ref().or(agent.reason.as_ref()) {
                    Some(reason) => format!("{}: {reason}", agent.state.phrase()),
                    None => agent.state.phrase().to_owned(),
                },
            ],
        ),
        row(
            "iteration",
            &[report.iteration.to_string(), format!("session {session}")],
        ),
        row("context", &context(&report.context)),
    ];
    rows.extend(report.needs.iter().map(|need| need_row(need, now)));
    if let Some(forecast) = &report.context.forecast {
        let parts = forecast::words(forecast);
        rows.extend((!parts.is_empty()).then(|| row("growth", &parts)));
    }
    if let Some(limit) = &report.context.client_limit {
        let lowered = report.context.lines.is_some_and(|lines| lines.lowered);
        let (act, at, origin) = (&limit.act, tokens(limit.at), &limit.origin);
        let mut parts = vec![format!("{act} at {at} ({origin})")];
        parts.extend(lowered.then(|| "the lines were moved below it".to_owned()));
        rows.push(row("client", &parts));
    }
    rows.push(reboot_row(report, now));
    if let Some(run) = &report.run {
        rows.extend(run_rows(run, now));
    }
    let contents = describe_contents(&report.agent.bridge.categories);
    if !contents.is_empty() {
        rows.push(row("window", &contents));
    }
    if let Some(cost) = report.cost_usd {
        rows.push(row("cost", &cost_parts(cost, report)));
    }
    if let Some(cache) = &report.prompt_cache {
        rows.push(row("cache", &cache_parts(cache, now)));
    }
    if let Some(error) = &report.store_error {
        let place = match report.store_kept {
            Some(true) => "on disk",
            _ => "in memory",
        };
        rows.push(row("history", &[format!("waits {place}: {error}")]));
    }
    columns(&rows)
}

/// Returns the reboot that is under way or held, and when one now would pay for itself.
fn reboot_row(report: &StatusReport, now: At) -> Vec<String> {
    let reboot = &report.reboot;
    let is_held = reboot.held.is_some() && reboot.phase == "idle";
    let phase = match reboot.phase.as_str() {
        _ if is_held => "held",
        "review" if report.counts_down() => "counts down",
        "review" => "waits for your review",
        phase => phase,
    };
    let mut parts = vec![phase.to_owned()];
    // In `idle` it is no cause, but the reason why the last one was refused.
    // What holds it may say the same at more length.
    let held = reboot.held.as_ref().map_or("", |held| &held.reason);
    let reason = reboot.reason.as_ref();
    parts.extend(
        reason
            .filter(|reason| !held.starts_with(reason.as_str()))
            .map(|reason| {
                let cause = reason.parse::<Cause>();
                cause.map_or_else(|_| reason.clone(), |cause| cause.short().to_owned())
            }),
    );
    let blocks = reboot.blocked_by.iter().map(|block| {
        let known = block.parse::<Block>();
        known.map_or_else(|_| format!("for {block}"), |one| one.awaited().to_owned())
    });
    let waits = blocks.collect::<Vec<_>>().join(", ");
    parts.extend((!waits.is_empty()).then(|| format!("waits {waits}")));
    if let Some(held) = &reboot.held {
        let until = held.until.map_or_else(String::new, |until| {
            format!(", until {}", now.time_of_day(until, "%H:%M"))
        });
        parts.push(format!("{}{until}", held.reason));
    }
    let pays = report.reboot_pays_in_calls.map(payoff::words);
    parts.extend(pays.map(|when| format!("pays for itself {when}")));
    row("reboot", &parts)
}

/// Returns what a person is needed for.
fn need_row(need: &NeedReport, now: At) -> Vec<String> {
    let mut parts = vec![need.what.clone()];
    parts.extend((!need.why.is_empty()).then(|| need.why.clone()));
    let until = need.until.map(|at| now.time_of_day(at, "%H:%M"));
    parts.extend(until.map(|until| format!("until {until}")));
    row("needs you", &parts)
}

/// Returns what the context window holds, the largest first: the client's categories, and of MCP tools the servers.
fn describe_contents(categories: &[Category]) -> Vec<String> {
    let rows = Category::of_kind(categories, CategoryKind::Used);
    let described = rows.into_iter().map(|row| {
        let named = |part: &Part| format!("{} {}", part.name, tokens(part.tokens.0));
        let servers: Vec<_> = row.parts.iter().map(named).collect();
        let servers = match &servers[..] {
            [_, ..] if row.name == "MCP tools" => format!(" ({})", servers.join(", ")),
            _ => String::new(),
        };
        format!("{} {}{servers}", row.name, tokens(row.tokens.0))
    });
    described.collect()
}

/// Returns the costs of the session.
fn cost_parts(cost: f64, report: &StatusReport) -> Vec<String> {
    let (turn, fresh) = (report.turn_cost_usd, report.fresh_turn_cost_usd);
    let mut parts = vec![dollars(cost)];
    parts.extend(turn.map(|cost| format!("{} a turn", dollars(cost))));
    parts.extend(fresh.map(|cost| format!("about {} in a fresh session", dollars(cost))));
    parts
}

/// Returns words for whether the next call can read from the prompt cache.
fn cache_parts(cache: &CacheReport, now: At) -> Vec<String> {
    let expires = cache.expires_at.map(|at| now.time_of_day(at, "%H:%M"));
    if cache.warm {
        let until = |at: String| format!("warm until {at}");
        return vec![expires.map_or_else(|| "warm".to_owned(), until)];
    }
    let since = |at: String| format!("cold since {at}");
    let mut parts = vec![expires.map_or_else(|| "cold".to_owned(), since)];
    parts.extend(cold_cache::words(cache));
    parts
}

/// Returns the progress of an autonomous run, and its newest lines.
fn run_rows(run: &RunReport, now: At) -> Vec<Vec<String>> {
    let name = |name: &str| match name {
        "state" => "run".to_owned(),
        "time" | "cost" => format!("run {name}"),
        name => name.to_owned(),
    };
    let facts = facts(run, now).into_iter();
    // The forecast is that of the context above.
    let facts = facts.filter(|(fact, _)| *fact != "context");
    let mut rows: Vec<Vec<String>> = facts.map(|(fact, said)| vec![name(fact), said]).collect();
    let skipped = run.timeline.len().saturating_sub(LINES);
    rows.extend(run.timeline.iter().skip(skipped).map(|line| {
        let at = now.time_of_day(line.at, "%H:%M:%S");
        vec!["log".to_owned(), format!("{at}  {}", line.text)]
    }));
    rows
}

fn row(name: &str, parts: &[String]) -> Vec<String> {
    vec![name.to_owned(), parts.join(" · ")]
}

/// Returns the name of a level for people, as the screen shows it; `None` for a word that is no level.
fn label(word: &str) -> Option<&'static str> {
    use pitstop_core::guard::Level::{self, Critical, Healthy, Overflow, Warning};
    let levels = [Healthy, Warning, Critical, Overflow];
    let level = levels.into_iter().find(|level| level.word() == word);
    level.map(Level::label)
}

fn context(context: &ContextReport) -> Vec<String> {
    let Some(used) = context.used else {
        return vec!["no figure yet".to_owned()];
    };
    let mut parts = vec![match context.usable {
        Some(usable) => format!("{} of {} usable", tokens(used), tokens(usable)),
        None => tokens(used),
    }];
    parts.extend(context.percent.map(|percent| format!("{percent:.1} %")));
    let level = context.level.as_deref();
    parts.extend(level.map(|word| label(word).unwrap_or(word).to_owned()));
    let source = context.source.as_deref();
    parts.extend(source.map(|source| source.replace('_', " ")));
    parts.extend(context.age_ms.map(|age| format!("{} ago", duration(age))));
    parts
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    pub(in crate::cli) fn report() -> StatusReport {
        let report = json!({
            "version": "0.1.0", "pid": 42, "project": "/home/me/pro\u{1b}ject", "run_id": "r1",
            "mode": "ask", "zoomed": false, "iteration": 3, "session_id": "s-3",
            "agent": {
                "kind": "claude", "command": "claude", "version": "2.1.197", "state": "idle", "hooked": true,
            },
            "context": {
                "used": 128_400, "window": 200_000, "usable": 180_000, "percent": 71.3, "level": "critical",
                "source": "status_line", "age_ms": 2_000,
                "client_limit": { "at": 167_000, "act": "compacts", "origin": "--autocompact" },
                "forecast": {
                    "unit": "minutes", "growth_per_minute": 4_100, "growth_per_call": 820, "minutes_left": 6, "calls_left": 30,
                },
            },
            "reboot": { "phase": "waiting", "reason": "threshold", "blocked_by": ["turn", "typing"] },
            "cost_usd": 4.123, "turn_cost_usd": 0.314, "fresh_turn_cost_usd": 0.042, "reboot_pays_in_calls": 14,
            "prompt_cache": { "warm": true, "recache_tokens": 50_000, "fresh_tokens": 21_000 },
        });
        serde_json::from_value(report).expect("a status")
    }

    #[test]
    fn people_get_aligned_lines_with_nothing_raw_in_them() {
        assert_eq!(
            describe(&report(), start_of_time(Utc::now())),
            "project     /home/me/pro\\u{1b}ject\n\
             supervisor  pitstop 0.1.0 · pid 42 · reboots: ask\n\
             agent       claude 2.1.197 · idle\n\
             iteration   3 · session s-3\n\
             context     128.4k of 180k usable · 71.3 % · warn · status line · 2.0 s ago\n\
             growth      +4.1k a minute · about 6 min left · 30 tool calls left\n\
             client      compacts at 167k (--autocompact)\n\
             reboot      waiting · at the compact line · waits for the turn to end, for you to stop typing · pays for itself in about 14 calls\n\
             cost        $4.12 · $0.31 a turn · about $0.04 in a fresh session\n\
             cache       warm\n"
        );
    }

    #[test]
    fn before_the_first_figure_none_is_made_up() {
        let mut report = report();
        report.context = ContextReport::default();
        report.session_id = None;
        let text = describe(&report, start_of_time(Utc::now()));
        assert!(text.contains("context     no figure yet\n"));
        assert!(text.contains("3 · session not known yet\n"));
    }

    #[test]
    fn a_pause_a_countdown_and_a_deferred_reboot_are_named_once() {
        let mut report = report();
        report.paused = true;
        let now = start_of_time(Utc::now());
        assert!(describe(&report, now).contains("reboots: ask (paused)\n"));
        report.reboot = serde_json::from_value(json!({
            "phase": "review", "reason": "threshold", "blocked_by": [],
        }))
        .unwrap();
        let mut need = super::line::tests::need(pitstop_core::api::wire::NeedKind::Review);
        report.needs = vec![need.clone()];
        assert!(describe(&report, now).contains("waits for your review · at the compact line"));
        need.until = Some(Utc::now());
        report.needs = vec![need];
        // In `ask` it is the client's own compaction that has an end.
        assert!(describe(&report, now).contains("waits for your review"));
        report.mode = "auto".to_owned();
        assert!(describe(&report, now).contains("counts down · at the compact line"));
        report.reboot = serde_json::from_value(json!({
            "phase": "idle", "reason": "deferred", "blocked_by": [],
            "held": {"reason": "deferred, until 3 turns are over"},
        }))
        .unwrap();
        let text = describe(&report, now);
        assert!(
            text.contains("held · deferred, until 3 turns are over"),
            "{text}"
        );
    }
}
