//! Calls of tools that a person, a rule or the client itself did not let run, or not to their end. Such a call has not failed,
//! and the text of its result is the client's own, but for what the person typed.
//!
//! Since some version the client stamps these results with a `toolDenialKind`. Where there is no stamp, the text decides, for the
//! client's own tools alone: a tool of an MCP server could print the same words.

use serde_json::Value;

use super::{content::first_text, record::STOPPED, version::is_at_least};

/// The text in front of the human's words in the result of a call that they refused; its first letter may be large.
const SAID: &str = "he user said:";

/// The start of the advice that some versions add below the human's words.
const ADVICE: &str = "\n\nNote: The user's next message may contain";

/// The start of the text that the client writes for a person who wants to talk about the agent's questions.
const QUESTIONS: &str = "The user wants to clarify these questions.";

/// The marks of a person's words in that text.
const ANSWERS: [&str; 2] = ["Answer:", "User notes:"];

/// The start of a refusal to which some versions add that the call was running.
const UNWANTED: &str = "The user doesn't want to proceed with this tool use";
const WAS_RUNNING: &str = "this call was stopped while running";

/// The client's stamp on the result of a call that the human refused, or stopped.
const REFUSED: &str = "user-rejected";

/// The oldest client that is known to say of a refused call that it had not run (measured with 2.1.331 and 2.1.332).
const SAYS_BEFORE_RUN: [u32; 3] = [2, 1, 331];

/// The text that pitstop's own hook gives the client when a person refuses a call from another device: the client takes it for a
/// rule.
pub const REFUSED_ELSEWHERE: &str = "The user denied this from another device.";

/// The reason for which a call did not run to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial<'a> {
    /// The human refused it, with these words or none.
    Refused(&'a str),
    /// A hook, a rule, the permission mode or the check of auto mode did not allow it, for this reason or none.
    Blocked(&'a str),
    /// The human stopped it while it ran.
    Stopped,
    /// The client did not run it: another call had failed, or the turn was over.
    Skipped,
    /// The session ended before its result came.
    Cut,
}

/// The starts of results by which an unstamped denial is known, with bars between them; the first that fits counts.
const STARTS: [(Denial<'_>, &str); 5] = [
    (
        Denial::Cut,
        "[Tool call interrupted:|[Agent call interrupted:|[Request interrupted: the session",
    ),
    (Denial::Stopped, STOPPED),
    (
        Denial::Skipped,
        "[Tool call |[This turn ended|The user doesn't want to take this action|Sibling tool call errored|\
         Cancelled: parallel tool call|Error: Streaming fallback",
    ),
    (
        Denial::Refused(""),
        "The user doesn't want to proceed with this tool use|Permission for this tool use was denied|\
         User chose to stay in plan mode|The agent proposed a plan that was|User rejected|User denied|User aborted",
    ),
    (
        Denial::Blocked(""),
        "Permission to |Permission for this action|PreToolUse:|Hook PreToolUse:|\
         Execution stopped by PreToolUse hook|Claude requested permissions to ",
    ),
];

/// Returns the reason for which the call of this result did not run, or not to its end; none if it ran. `is_foreign` is true if
/// the tool may not be the client's own.
pub fn read_denial<'a>(
    record: &'a Value,
    result: &'a Value,
    is_foreign: bool,
) -> Option<Denial<'a>> {
    if result["is_error"] != true {
        return None;
    }
    let text = first_text(&result["content"]).unwrap_or_default();
    let text = without_wrapper(text).unwrap_or(text).trim();
    let stamp = record["toolDenialKind"].as_str();
    if stamp.is_none() && is_foreign {
        return None;
    }
    let fits = |starts: &str| starts.split('|').any(|start| text.starts_with(start));
    let known = STARTS.iter().find(|(_, starts)| fits(starts));
    let known = known.map(|(denial, _)| *denial);
    let is_elsewhere = text.starts_with(REFUSED_ELSEWHERE);
    let known = known.or(is_elsewhere.then_some(Denial::Refused("")));
    let is_unwanted = text.starts_with(UNWANTED) && text.contains(WAS_RUNNING);
    let denial = match (stamp, known) {
        _ if is_unwanted => Denial::Stopped,
        (Some(REFUSED), _) if was_stopped(record) => Denial::Stopped,
        (_, Some(Denial::Cut)) => Denial::Cut,
        _ if text == REFUSED_ELSEWHERE => Denial::Refused(""),
        (Some(REFUSED), _) => Denial::Refused(""),
        (Some("interrupted"), _) => Denial::Stopped,
        (Some("cancelled"), _) => Denial::Skipped,
        (Some(_), _) => Denial::Blocked(""),
        (None, known) => known?,
    };
    Some(match denial {
        Denial::Refused(_) => Denial::Refused(words_in(record, text)),
        // The client's sentence for a person's refusal says nothing about the rule.
        Denial::Blocked(_) if text.starts_with(UNWANTED) => denial,
        Denial::Blocked(_) => Denial::Blocked(text),
        other => other,
    })
}

/// Reports whether a call with the stamp of a refusal was stopped while it ran. The client has one stamp and one text for both; only
/// the record of a refused call states that the call had not run, or how it was decided.
fn was_stopped(record: &Value) -> bool {
    let version = record["version"].as_str();
    let says_so = version.is_some() && is_at_least(version, SAYS_BEFORE_RUN);
    let is_refused = record["toolDenialBeforeRun"] == true
        || record["permissionDecision"]["decision"] == "reject"
        || record["userFeedback"].is_string();
    says_so && !is_refused
}

/// Returns the words that a person typed when they refused a call.
fn words_in<'a>(record: &'a Value, text: &'a str) -> &'a str {
    let typed = record["userFeedback"].as_str();
    let typed = typed.filter(|words| !words.trim().is_empty());
    let quoted = || text.split_once(SAID).map(|(_, words)| words);
    let words = typed.or_else(quoted).unwrap_or_default();
    words.split(ADVICE).next().unwrap_or_default().trim()
}

/// Returns the person's own words in those that came with a refusal: all of them, or their answers to questions of the agent.
pub fn own_words(refusal: &str) -> impl Iterator<Item = &str> {
    let asked = refusal.starts_with(QUESTIONS);
    let whole = (!asked && !refusal.is_empty()).then_some(refusal);
    let lines = refusal.lines().filter(move |_| asked);
    let answers = lines.filter_map(|line| {
        let mut marks = ANSWERS.iter();
        marks.find_map(|mark| line.trim().strip_prefix(mark))
    });
    whole.into_iter().chain(answers.map(str::trim))
}

/// Returns the text of an error that the client wrapped in its tag; none for any other text.
pub fn without_wrapper(text: &str) -> Option<&str> {
    let text = text.trim().strip_prefix("<tool_use_error>")?;
    Some(text.strip_suffix("</tool_use_error>").unwrap_or(text))
}
