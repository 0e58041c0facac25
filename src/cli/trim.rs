//! `pitstop trim [SESSION]`: a copy of a session with old tool output removed, under a new id.
//!
//! The copy is made by `runtime::trim`, which the reboot uses, too.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use clap::Args;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    here::Here,
    out::{self, Failure, Outcome, columns, tokens},
    sessions::{self, Kept},
};
use crate::{
    runtime::{
        trim::{Copied, CopyError, Surveyed},
        zone,
    },
    supervisor::program::demo_dir,
};
use pitstop_base::clean::one_line;
use pitstop_core::{
    app::figures::guard_settings,
    config::{Config, load::Flags},
    guard::{Room, reading::WindowEvidence, threshold::Threshold},
};
use pitstop_transcript::{
    SessionId, Tokens,
    trim::{LEVELS, Survey, TARGET_PERCENT, TrimPlan, TrimSettings},
};

/// Copy a session without its old tool output, to continue it in less context
#[derive(Args, Clone, Debug)]
pub struct TrimArgs {
    /// The session's id, for a session of this directory, or the path of its transcript; without it the newest session
    /// of this directory
    pub session: Option<String>,
    /// Only print what each level would free
    #[arg(long)]
    pub dry_run: bool,
    /// Remove this share of the tool responses, in percent, instead of the least that is enough
    #[arg(long, value_name = "PERCENT", value_parser = level)]
    pub level: Option<u8>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

fn level(text: &str) -> Result<u8, String> {
    let number = text.trim_end_matches('%').parse().ok();
    number
        .filter(|level| LEVELS.contains(level))
        .ok_or_else(|| format!("expected 0, 10, 20, 50 or 100, found {text:?}"))
}

/// The report about a trim.
struct Report {
    /// The session that was taken because none was named.
    newest: Option<Kept>,
    /// True if it is a session of the demo.
    by_demo: bool,
    transcript: PathBuf,
    window: Tokens,
    settings: TrimSettings,
    plan: TrimPlan,
    unpaired: usize,
    oversized: u64,
    level: Option<u8>,
    copy: Option<(SessionId, Copied)>,
}

/// Runs the command; 0, or 1 if no copy could be made or no level is enough, or 2 if the config is at fault.
pub fn run(args: &TrimArgs, flags: &Flags) -> Outcome {
    let here = Here::find_configured(flags)?;
    let (path, newest) = find(args.session.as_deref(), &here)?;
    let read = Surveyed::read(&path).map_err(|error| {
        let hint = match error {
            CopyError::Missing(_) => {
                "give the id of a session of this directory, or the path of a transcript"
            }
            _ => "",
        };
        out::failed(out::chain(&error), hint)
    })?;
    let survey = &read.survey;
    let (window, settings) = measure(&here.config, survey);
    let plan = survey.plan(&settings);
    let (unpaired, oversized) = (survey.unpaired(), survey.oversized());
    let level = args.level.or(plan.chosen);
    // Level 0 frees nothing: such a copy is made only if it is asked for.
    let wanted = level.filter(|level| !args.dry_run && (*level > 0 || args.level.is_some()));
    let copy = match wanted {
        None => None,
        Some(level) => {
            let session = SessionId::new(Uuid::new_v4());
            let copied = read.copy(level, session, &settings);
            Some((session, copied?))
        }
    };
    let report = Report {
        newest,
        by_demo: path.starts_with(demo_dir(&here.paths)),
        transcript: path,
        window,
        settings,
        plan,
        unpaired,
        oversized,
        level,
        copy,
    };
    let code = if level.is_none() && !args.dry_run {
        out::FAILED
    } else {
        out::OK
    };
    let text = out::render(args.json, || as_json(&report), || as_text(&report));
    Ok(out::print(&text).max(code))
}

/// Finds the transcript of a session of this directory by its id, or of the newest one; any other argument is a path.
fn find(session: Option<&str>, here: &Here) -> Result<(PathBuf, Option<Kept>), Failure> {
    let places = sessions::places(Some(&here.paths), &here.config);
    let mut known = sessions::of_project(&places, &here.directory);
    let here = here.directory.display();
    let unknown = |error: &str| {
        out::failed(
            error,
            "go to the directory that the session was started in, or give the path of its transcript",
        )
    };
    let Some(session) = session else {
        let newest = known.next();
        let newest = newest.ok_or_else(|| unknown(&format!("no session of {here} is known")))?;
        return Ok((newest.path.clone(), Some(newest)));
    };
    let Ok(id) = session.parse::<SessionId>() else {
        return Ok((PathBuf::from(session), None));
    };
    match known.find(|one| one.id == id) {
        Some(found) => Ok((found.path, None)),
        None => Err(unknown(&format!("no session {id} of {here}"))),
    }
}

/// Measures the window and the compact line as the gauge does, from the transcript.
fn measure(config: &Config, survey: &Survey) -> (Tokens, TrimSettings) {
    let settings = guard_settings(config);
    let evidence = WindowEvidence {
        user: settings.window_override,
        status_line: None,
        model: survey.model().map(str::to_owned),
        most_used: survey.tokens(),
    };
    let window = evidence.window();
    let usable = Tokens(window.0.saturating_sub(settings.reserve.0));
    let trim = TrimSettings {
        compact_line: settings
            .thresholds
            .lines(Room::new(window, usable, None))
            .at(Threshold::Compact),
        max_recent_messages: config.context.max_recent_messages,
    };
    (window, trim)
}

fn as_text(report: &Report) -> String {
    let target = tokens(report.settings.target().0);
    let mut rows = vec![out::heads("level|responses|tokens before|after|")];
    rows.extend(report.plan.levels.iter().map(|level| {
        let chosen = report.plan.chosen.filter(|one| *one == level.percent);
        let mark = chosen.map(|_| format!("← the first below {target}"));
        vec![
            format!("{} %", level.percent),
            level.responses.to_string(),
            tokens(level.tokens_before.0),
            tokens(level.tokens_after.0),
            mark.unwrap_or_default(),
        ]
    }));
    let mut text = String::new();
    if let Some(newest) = &report.newest {
        let written: DateTime<Utc> = newest.written.into();
        text.push_str(&format!(
            "the newest session here: {}, last written at {}\n",
            newest.id,
            written
                .with_timezone(&zone(written))
                .format("%Y-%m-%d %H:%M")
        ));
    }
    text.push_str(&columns(&rows));
    let lines = notes(report)
        .into_iter()
        .map(|note| format!("note: {note}\n"));
    let target = format!(
        "{target} is {TARGET_PERCENT} % of the compact line ({} of a window of {})\n",
        tokens(report.settings.compact_line.0),
        tokens(report.window.0),
    );
    text.push_str(&target);
    text.extend(lines);
    text.push_str(&ending(report));
    text
}

/// Returns the notes that a person should read before continuing with the copy.
fn notes(report: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    if report.plan.estimated {
        notes.push(
            "the transcript does not say how full the context is; the tokens before are an estimate".to_owned(),
        );
    }
    if report.unpaired > 0 {
        notes.push(format!(
            "the transcript is damaged: {} tool responses belong to calls that are not in it",
            report.unpaired
        ));
    }
    if report.oversized > 0 {
        notes.push(format!("lines too long to be read: {}", report.oversized));
    }
    match &report.copy {
        Some((_, copy)) if copy.written.dropped_tail > 0 => notes.push(format!(
            "the last line is incomplete; its {} bytes are not in the copy",
            copy.written.dropped_tail
        )),
        _ => {}
    }
    notes
}

fn ending(report: &Report) -> String {
    if let Some((session, copy)) = &report.copy {
        let figure = copy.written.figure;
        return format!(
            "level {} %: {} → {} tokens in {}\nto go on: {}\n",
            figure.percent,
            tokens(figure.tokens_before.0),
            tokens(figure.tokens_after.0),
            one_line(&copy.path.to_string_lossy()),
            resume(report, *session),
        );
    }
    match report.level {
        None => "no level is enough: reboot into a fresh session with a handoff instead (F5 in `pitstop`)\n",
        Some(0) => "the session is small enough as it is\n",
        Some(_) => "",
    }
    .to_owned()
}

fn resume(report: &Report, session: SessionId) -> String {
    let command = if report.by_demo {
        "pitstop demo --here"
    } else {
        "pitstop"
    };
    format!("{command} -- --resume {session}")
}

fn as_json(report: &Report) -> Value {
    let advice = match report.plan.chosen {
        None => "fresh",
        Some(0) => "none",
        Some(_) => "trim",
    };
    json!({
        "transcript": report.transcript,
        "newest": report.newest.is_some(),
        "window": report.window,
        "compact_line": report.settings.compact_line,
        "target": report.settings.target(),
        "levels": report.plan.levels,
        "chosen": report.plan.chosen,
        "advice": advice,
        "estimated": report.plan.estimated,
        "unpaired": report.unpaired,
        "oversized_lines": report.oversized,
        "copy": report.copy.as_ref().map(|(session, copy)| json!({
            "session_id": session,
            "path": copy.path,
            "level": copy.written.figure.percent,
            "responses": copy.written.figure.responses,
            "tokens_before": copy.written.figure.tokens_before,
            "tokens_after": copy.written.figure.tokens_after,
            "dropped_tail": copy.written.dropped_tail,
            "resume": resume(report, *session),
        })),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_five_levels_are_levels() {
        assert_eq!(level("20"), Ok(20));
        assert_eq!(level("100%"), Ok(100));
        for wrong in ["30", "-1", "", "256", "x"] {
            assert!(level(wrong).is_err(), "{wrong}");
        }
    }
}
