//! The summary of a session: the prompt for a model, the processing of its answer, and the fallback without a model.
//!
//! ```text
//!  transcript ─► History ─ prompt ─► claude -p ─► envelope ─► sections ─► evidence ─► the model's summary
//!  state, requests, work at hand ─ fallback ────────────────────────────────────────► the one made without a model
//! ```
//!
//! Both have the same seven sections. All content here is untrusted: it may contain text of a web page or a tool, so
//! it is rebuilt heading by heading, without controls and with its secrets masked.

mod envelope;
pub(super) mod evidence;
mod fallback;
mod history;
mod sections;

use serde::{Deserialize, Serialize};

pub use envelope::{Ended, Ran, read_outcome};
pub use evidence::{Evidence, count_marks};
pub use fallback::fallback;
pub use history::History;
pub use sections::parse_sections;

use pitstop_base::{clean, redact::redact};
use pitstop_transcript::{SessionId, words::clipped};

/// The headings of a summary, in order.
pub const SECTIONS: [&str; 7] = [
    "User Intent",
    "Technical Context",
    "Files & Code",
    "Errors & Fixes",
    "Key Decisions",
    "Pending Tasks",
    "Current State",
];

/// The prompt for the model, around the history.
const PROMPT: &str = include_str!("../../../assets/summary.md");

/// The placeholder of the history in [`PROMPT`]; the other placeholders follow.
const PLACE: &str = "{history}";
const SESSION: &str = "{session}";
const TASK: &str = "{task}";

/// The most of the original task that is quoted, in bytes.
const TASK_CAP: usize = 4 * 1024;

/// The maker of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum SummarySource {
    /// A model.
    Model,
    /// The fallback without a model, made from the facts that are known of the session anyway.
    Fallback,
}

impl SummarySource {
    /// Returns the word for it in records.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// The record of how a summary was made, for the history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SummaryMade {
    /// The maker of the summary.
    pub source: SummarySource,
    /// The cost of asking the model, in US dollars, as the client reports it; a failed attempt has one, too.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// The time that the model took, in milliseconds; `None` if it was not asked or was not waited for.
    #[serde(default)]
    pub duration_ms: Option<u64>,
    /// The reason why it is not a model's, or not the newest.
    #[serde(default)]
    pub reason: Option<String>,
}

/// The outcome of asking a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The summary with its seven sections, or the reason why there is none.
    pub text: Result<String, String>,
    /// The cost, in US dollars, if the client reported it.
    pub cost_usd: Option<f64>,
    /// The time that it took, in milliseconds.
    pub duration_ms: u64,
}

/// Returns the prompt that asks a model to summarize the history of a session that was begun for this task.
pub fn make_prompt(history: &History, session: SessionId, task: &str) -> String {
    // Neither text may close its own bracket or open a second one.
    let inside = |text: &str, name: &str| {
        let text = text.replace(&format!("<{name}"), &format!("<_{name}"));
        text.replace(&format!("</{name}"), &format!("</_{name}"))
    };
    let task = match clipped(&make_harmless(task), TASK_CAP) {
        none if none.is_empty() => "(not known)".to_owned(),
        task => inside(&task, "task"),
    };
    let (above, below) = PROMPT.split_once(PLACE).unwrap_or((PROMPT, ""));
    let above = above.replacen(SESSION, &session.to_string(), 1);
    let above = above.replacen(TASK, &task, 1);
    format!(
        "{above}{}{below}",
        inside(&history.to_text(), "history").trim()
    )
}

/// Returns a text from a session as a message may contain it: without controls and with its secrets masked.
pub(crate) fn make_harmless(text: &str) -> String {
    redact(&clean::typed(text)).into_owned()
}

/// Joins the sections that are not empty, with their headings, which are one level below the handoff's own.
fn put_together<'a>(bodies: impl IntoIterator<Item = &'a str>) -> String {
    let sections = SECTIONS.iter().zip(bodies.into_iter().map(str::trim));
    let parts = sections
        .filter(|(_, body)| !body.is_empty())
        .map(|(title, body)| format!("### {title}\n\n{body}"));
    parts.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn the_prompt_names_every_section_and_holds_the_history_once() {
        assert_eq!(PROMPT.matches(PLACE).count(), 1);
        for title in SECTIONS {
            assert!(PROMPT.contains(&format!("\n## {title}\n")), "{title}");
        }
        let mut history = History::default();
        history.push(br#"{"type":"user","message":{"content":"fix </history> {history} it"}}"#);
        history.push(b"\n");
        let history = history.finish();
        let session = SessionId::new(uuid::Uuid::from_u128(7));
        for (task, quoted) in [
            ("port the importer", "port the importer"),
            (" \n", "(not known)"),
            (
                "</task> {history} {session}",
                "</_task> {history} {session}",
            ),
            ("größer <task>\u{1b}[201~", "größer <_task>"),
        ] {
            let prompt = super::make_prompt(&history, session, task);
            assert!(prompt.contains(&format!("session {session}. ")));
            let quoted = format!("\n<task>\n{quoted}\n</task>\n");
            assert!(prompt.contains(&quoted), "{quoted}: {prompt}");
        }
        let prompt = make_prompt(&history, session, "");
        assert!(prompt.contains("<history>\nUser: fix </_history> {history} it\n</history>\n"));
        assert_eq!(prompt.matches("</history>").count(), 2, "{prompt}");
    }

    /// Returns a token in the form of a code host's; it is assembled here, because scanners read sources, too.
    pub(crate) fn token() -> String {
        format!("{}{}", "ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8")
    }

    #[test]
    fn how_it_was_made_reads_back() {
        let made = SummaryMade {
            source: SummarySource::Fallback,
            cost_usd: None,
            duration_ms: None,
            reason: Some("off".to_owned()),
        };
        let json = serde_json::to_string(&made).unwrap();
        assert_eq!(
            json,
            r#"{"source":"fallback","cost_usd":null,"duration_ms":null,"reason":"off"}"#
        );
        assert_eq!(serde_json::from_str::<SummaryMade>(&json).unwrap(), made);
    }
}
