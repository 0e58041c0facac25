//! The messages that are printed when a supervisor has ended.

use pitstop_base::{clean, redact::redact};
use pitstop_core::app::{Model, autopilot};

/// Returns what a person who has left wants to know: how to go on, with which arguments, if there is a conversation that can be
/// resumed.
pub(super) fn text(model: &Model, resumed_with: Option<&[String]>, code: i32) -> String {
    let iterations = model.lineage.iterations().len();
    let plural = if iterations == 1 { "" } else { "s" };
    let mut text = format!(
        "pitstop: {iterations} iteration{plural} in run {}\n",
        model.run()
    );
    if let Some(report) = autopilot::report(model) {
        let why = report.why.unwrap_or_default();
        let why = clean::one_line(&why);
        let figures = autopilot::run_ended(model, code).figures();
        text = format!("{text}the run is over: {why}\n{figures}\n");
    }
    if let Some(args) = resumed_with {
        let session = model.session.id;
        let args = shell_words::join(args);
        let args = if args.is_empty() { args } else { args + " " };
        text = format!("{text}to go on: pitstop -- {args}--resume {session}\n");
    }
    for left in model.outside.left_running() {
        text = format!("{text}{}\n", clean::one_line(left));
    }
    redact(&text).into_owned()
}

/// Returns the warning that the history lacks this, and where the run's own record is.
pub(super) fn unwritten(model: &Model, what: &str) -> String {
    let why = model.outside.store_away.as_ref();
    let why = why.map_or_else(String::new, |away| format!(" ({})", away.why));
    let what = redact(&format!("{what}{why}")).into_owned();
    let what = clean::one_line(&what);
    let run = model.run();
    format!("warning: {what}: the run's own record is .pitstop/runs/{run}/meta.json\n")
}

/// Prints what a script must know: the run's own lines have reported the rest.
pub(super) fn headless(model: &Model) {
    for left in model.outside.left_running() {
        eprintln!("warning: {}", clean::one_line(&redact(left)));
    }
}
