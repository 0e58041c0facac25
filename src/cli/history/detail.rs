//! `pitstop history SESSION`: one iteration with the handoff it was given, the one it gave, and its whole summary.

use serde_json::{Value, json};

use super::{HEADS, table_fields};
use crate::cli::out::{columns, heads};
use pitstop_base::clean;
use pitstop_core::{api::wire::IterationReport, app::history, lineage::past::PastSession};
use pitstop_handoff::scratchpad::difference;

/// Returns the changes from the handoff that it was given to the one that it gave; none unless there are both.
pub(super) fn handoff_difference(past: &PastSession) -> Option<String> {
    let (got, gave) = (past.got.as_ref()?, past.gave.as_ref()?);
    Some(difference(&got.handoff, &gave.handoff))
}

/// Returns the iteration as one JSON object.
pub(super) fn as_json(past: &PastSession, report: &IterationReport) -> Value {
    json!({
        "run_id": past.run, "task": past.task, "iteration": report,
        "handoff_given": past.got.as_ref().map(|entry| &entry.handoff),
        "handoff_made": past.gave.as_ref().map(|entry| &entry.handoff),
        "difference": handoff_difference(past),
    })
}

/// Returns the iteration as text for people.
pub(super) fn describe(past: &PastSession, report: &IterationReport) -> String {
    let session = report.session_id.as_deref().unwrap_or("–");
    let mut rows = vec![
        vec!["run".to_owned(), past.run.to_string()],
        vec!["session".to_owned(), session.to_owned()],
    ];
    let next = past.gave.as_ref().map(|entry| entry.cause);
    // The session's id, which the table shortens, is shown whole above.
    let named = heads(HEADS).into_iter().zip(table_fields(report, next));
    rows.extend(
        named
            .filter(|(name, _)| name != "session")
            .map(|(name, value)| vec![name.replace('#', "iteration"), value]),
    );
    if let Some(device) = &report.approved_from {
        rows.push(vec![
            "approved from".to_owned(),
            clean::one_line(device).into_owned(),
        ]);
    }
    if let Some(task) = &past.task {
        rows.push(vec!["task".to_owned(), super::short_task(Some(task))]);
    }
    let mut text = columns(&rows);
    for (heading, said) in history::texts(past, &past.iteration) {
        let said = clean::text(said);
        text.push_str(&format!("\n──── {heading} ────\n{}\n", said.trim_end()));
    }
    text
}
