//! The output of `claude -p --output-format json`, and its meaning.
//!
//! Measured with 2.1.197: one object of type `result`. Success has `result`, `total_cost_usd`, `duration_ms`; an API error has
//! `is_error` true under the subtype `success`, its message in `result`, and exit code 1; a budget that is used up has the subtype
//! `error_max_budget_usd` and its message in `errors`. An unknown flag is reported on stderr, with nothing on stdout.

use std::time::Duration;

use serde_json::Value;

use super::{Outcome, make_harmless, parse_sections};
use pitstop_transcript::words::clipped_line;

/// The most of a reason that is kept, in bytes: it is shown in one line of the history.
const REASON_CAP: usize = 300;

/// The way in which the process of a summary ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It ended by itself, with this description: `exit code 1`.
    Exited(String),
    /// It took longer than this limit, and was ended.
    TimedOut(Duration),
    /// It printed more than is allowed, and was ended.
    Flooded,
    /// It was no longer wanted, and was ended.
    Cancelled,
    /// It could not be started.
    NotStarted(String),
}

/// The result of a process that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The way in which it ended.
    pub ended: Ended,
    /// The standard output, as far as it was kept.
    pub stdout: Vec<u8>,
    /// The standard error, as far as it was kept.
    pub stderr: Vec<u8>,
    /// The time that it ran.
    pub took: Duration,
}

/// Returns the outcome of asking a model, according to the process's output.
pub fn read_outcome(ran: &Ran) -> Outcome {
    let envelope = result_of(&ran.stdout);
    let field = |name: &str| envelope.as_ref().map_or(&Value::Null, |one| &one[name]);
    let cost = field("total_cost_usd").as_f64();
    let took = u64::try_from(ran.took.as_millis()).unwrap_or(u64::MAX);
    let text = match &ran.ended {
        Ended::TimedOut(limit) => Err(format!("no answer within {} s", limit.as_secs())),
        Ended::Flooded => Err("the client printed more than a summary can have".to_owned()),
        Ended::Cancelled => Err("cancelled".to_owned()),
        Ended::NotStarted(why) => Err(format!("the client cannot be started: {why}")),
        Ended::Exited(how) => match &envelope {
            Some(envelope) => answer_in(envelope).and_then(parse_sections),
            None => Err(without_envelope(ran, how)),
        },
    };
    Outcome {
        text: text.map_err(|why| clipped_line(&make_harmless(&why), REASON_CAP)),
        cost_usd: cost.filter(|cost| cost.is_finite() && (0.0..1e6).contains(cost)),
        duration_ms: took,
    }
}

/// Returns the words of an answer, or of the error in its place.
fn answer_in(envelope: &Value) -> Result<&str, String> {
    let said = envelope["result"].as_str().unwrap_or_default();
    let subtype = envelope["subtype"].as_str().unwrap_or_default();
    // An answer that does not report success is not taken as one.
    let well = envelope["is_error"] == false && matches!(subtype, "success" | "");
    if well && !said.trim().is_empty() {
        return Ok(said);
    }
    let error = envelope["errors"][0].as_str().unwrap_or(said);
    Err(match (error.trim(), subtype) {
        ("", "" | "success") => "the client gave an empty answer".to_owned(),
        ("", subtype) => format!("the client reported {subtype}"),
        (error, _) => error.to_owned(),
    })
}

/// Returns the object of type `result`: alone, as the last of a list, or on a line of its own after other output.
fn result_of(stdout: &[u8]) -> Option<Value> {
    let is_result = |value: &Value| value["type"] == "result";
    let text = String::from_utf8_lossy(stdout);
    let whole = serde_json::from_str::<Value>(text.trim()).ok();
    match whole {
        Some(Value::Array(list)) => list.into_iter().rev().find(is_result),
        Some(value) => Some(value).filter(is_result),
        None => text
            .lines()
            .rev()
            .filter(|line| line.trim_start().starts_with('{'))
            .take(16)
            .filter_map(|line| serde_json::from_str(line.trim()).ok())
            .find(is_result),
    }
}

/// Returns the first line of the client's error output; if there is none, the way in which it ended.
fn without_envelope(ran: &Ran, how: &str) -> String {
    let complaint = String::from_utf8_lossy(&ran.stderr);
    let complaint = complaint
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty());
    match complaint {
        Some(complaint) => format!("the client ended with {how}: {complaint}"),
        None if ran.stdout.is_empty() => format!("the client ended with {how} and said nothing"),
        None => format!("the client ended with {how} and its answer is no JSON result"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::summary::{SECTIONS, tests::token};

    fn ran(stdout: &[u8]) -> Ran {
        Ran {
            ended: Ended::Exited("exit code 0".to_owned()),
            stdout: stdout.to_vec(),
            stderr: Vec::new(),
            took: Duration::from_millis(1234),
        }
    }

    fn summary() -> String {
        let parts = SECTIONS.map(|title| format!("## {title}\n\nabout it\n"));
        format!(
            "<analysis>\n## User Intent\nhm\n</analysis>\n{}",
            parts.concat()
        )
    }

    fn success(result: &str) -> Value {
        json!({"type": "result", "subtype": "success", "is_error": false, "duration_ms": 5,
            "result": result, "total_cost_usd": 0.0125})
    }

    fn why(stdout: &str) -> String {
        read_outcome(&ran(stdout.as_bytes())).text.unwrap_err()
    }

    #[test]
    fn a_good_answer_gives_its_sections_its_cost_and_its_time() {
        let found = read_outcome(&ran(success(&summary()).to_string().as_bytes()));
        let text = found.text.unwrap();
        assert!(text.starts_with("### User Intent\n\nabout it\n\n### Technical Context\n"));
        assert_eq!(found.cost_usd, Some(0.0125));
        assert_eq!(found.duration_ms, 1234);
    }

    #[test]
    fn the_result_is_found_behind_other_output_and_in_a_list() {
        let result = success(&summary()).to_string();
        for stdout in [
            format!("warning: old version\n{{not json\n{{\"type\":\"note\"}}\n{result}\n"),
            format!("[{{\"type\":\"system\"}},{result}]"),
            format!("\n\n  {result}  \n"),
        ] {
            assert!(
                read_outcome(&ran(stdout.as_bytes())).text.is_ok(),
                "{stdout}"
            );
        }
    }

    #[test]
    fn errors_are_reported_in_the_words_of_the_client() {
        let overloaded = json!({"type": "result", "subtype": "success", "is_error": true,
            "result": "API Error: 529 Overloaded.", "total_cost_usd": 0});
        assert_eq!(why(&overloaded.to_string()), "API Error: 529 Overloaded.");
        let spent = json!({"type": "result", "subtype": "error_max_budget_usd", "is_error": true,
            "errors": ["Reached maximum budget ($0.5)"], "total_cost_usd": 0.51});
        let found = read_outcome(&ran(spent.to_string().as_bytes()));
        assert_eq!(found.text.unwrap_err(), "Reached maximum budget ($0.5)");
        assert_eq!(found.cost_usd, Some(0.51), "what failed has cost, too");
        let turns = json!({"type": "result", "subtype": "error_max_turns", "is_error": true});
        assert_eq!(
            why(&turns.to_string()),
            "the client reported error_max_turns"
        );
        let empty = success(" \n").to_string();
        assert_eq!(why(&empty), "the client gave an empty answer");
    }

    #[test]
    fn what_is_no_result_is_reported_with_how_it_ended() {
        assert_eq!(
            why(""),
            "the client ended with exit code 0 and said nothing"
        );
        let cut = &success(&summary()).to_string()[..200];
        let no_json = "the client ended with exit code 0 and its answer is no JSON result";
        for stdout in [
            cut,
            "garbage",
            "null",
            "[]",
            "{}",
            "42",
            r#"{"type":"assistant"}"#,
        ] {
            assert_eq!(why(stdout), no_json, "{stdout}");
        }
        let error = Ran {
            ended: Ended::Exited("exit code 1".to_owned()),
            stderr: b"\nerror: unknown option '--max-budget-usd'\nmore\n".to_vec(),
            ..ran(b"")
        };
        assert_eq!(
            read_outcome(&error).text.unwrap_err(),
            "the client ended with exit code 1: error: unknown option '--max-budget-usd'"
        );
    }

    #[test]
    fn how_it_was_ended_is_the_reason() {
        let ended = |ended| {
            let ran = Ran {
                ended,
                ..ran(b"{\"type\":\"result\"")
            };
            read_outcome(&ran).text.unwrap_err()
        };
        assert_eq!(
            ended(Ended::TimedOut(Duration::from_secs(4))),
            "no answer within 4 s"
        );
        assert_eq!(ended(Ended::Cancelled), "cancelled");
        assert_eq!(
            ended(Ended::Flooded),
            "the client printed more than a summary can have"
        );
        assert_eq!(
            ended(Ended::NotStarted("no such file".to_owned())),
            "the client cannot be started: no such file"
        );
    }

    #[test]
    fn hostile_envelopes_are_survived() {
        for (envelope, expected) in [
            (
                json!({"type": "result", "is_error": "no", "result": "x"}),
                "x",
            ),
            (
                json!({"type": "result", "is_error": null, "result": ["x"]}),
                "the client gave an empty answer",
            ),
            (
                json!({"type": "result", "subtype": 5, "is_error": false, "result": 7}),
                "the client gave an empty answer",
            ),
            (
                json!({"type": "result", "is_error": true, "errors": [{"a": 1}], "result": "\u{1b}[2Jred\u{202e}\nline"}),
                "[2Jred\u{202e} line",
            ),
        ] {
            assert_eq!(why(&envelope.to_string()), expected, "{envelope}");
        }
        let mut dear = success(&summary());
        for cost in [json!(-1.0), json!(1e300), json!("5"), json!(null)] {
            dear["total_cost_usd"] = cost;
            assert_eq!(
                read_outcome(&ran(dear.to_string().as_bytes())).cost_usd,
                None
            );
        }
        let long = json!({"type": "result", "is_error": true, "result": "é".repeat(10_000)});
        assert!(why(&long.to_string()).len() < REASON_CAP + 10);
        let secret = json!({"type": "result", "is_error": true,
            "result": format!("bad key {}", token())});
        assert!(why(&secret.to_string()).contains("…[masked "));
        let deep = "[".repeat(100_000);
        why(&deep);
        let _ = read_outcome(&ran(b"\xff\xfe{\"type\":\"result\""));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_are_too_much(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            assert!(read_outcome(&ran(&bytes)).text.is_err());
        }
    }
}
