//! One question to Claude Code that is answered on stdout: `claude -p`.
//!
//! The statements about the client here were measured with 2.1.197 and 2.1.330:
//!
//! - The prompt is read from stdin; `--no-session-persistence` leaves no transcript.
//! - `--tools` decides which tools there are, `--allowedTools` which of them need no asking; no person can be asked.
//! - `--permission-mode default` is known to both; its new name `manual` is refused by 2.1.197.
//! - `disableAllHooks` in `--settings` wins over the user's own settings; a hook of theirs would take the side session for the
//!   hosted one.
//! - `CLAUDE_CODE_SAFE_MODE` leaves out instructions files, plugins and servers, and keeps what decides how to sign in (`env`,
//!   `apiKeyHelper`, the model). As a variable it is no fault to a client that does not know it, as a flag it would be.

use std::ffi::OsString;

use serde_json::{Map, Value, json};

/// The choices that decide how the question is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question<'a> {
    /// The tools that may be used, as permission rules: `Read`, `Bash(git log:*)`.
    pub tools: &'a [String],
    /// The model; none for the client's own choice.
    pub model: Option<&'a str>,
    /// The highest cost of the answer, in US dollars.
    pub max_cost_usd: f64,
    /// The text of the user's own `--settings`: it may contain the way to sign in.
    pub user_settings: Option<&'a str>,
}

/// Returns the arguments; the prompt goes to stdin.
pub fn arguments(question: Question<'_>) -> Vec<OsString> {
    let mut names: Vec<&str> = question.tools.iter().map(|rule| name_of(rule)).collect();
    names.dedup();
    let mut args: Vec<String> = ["-p", "--output-format", "json", "--no-session-persistence"]
        .map(str::to_owned)
        .to_vec();
    args.extend([
        "--max-budget-usd".to_owned(),
        question.max_cost_usd.to_string(),
    ]);
    args.extend([
        "--settings".to_owned(),
        merged_settings(question.user_settings),
    ]);
    args.extend(["--permission-mode".to_owned(), "default".to_owned()]);
    if let Some(model) = question.model {
        args.extend(["--model".to_owned(), model.to_owned()]);
    }
    // An empty word means none at all; left out, it would mean all.
    args.extend(["--tools".to_owned(), names.join(",")]);
    if !question.tools.is_empty() {
        args.push("--allowedTools".to_owned());
        args.extend(question.tools.iter().cloned());
    }
    args.push("--strict-mcp-config".to_owned());
    args.into_iter().map(OsString::from).collect()
}

/// Returns the variables for the client beside those that the hosted one gets.
pub fn environment() -> Vec<(OsString, OsString)> {
    vec![("CLAUDE_CODE_SAFE_MODE".into(), "1".into())]
}

/// The longest name of a model that is passed on, in bytes; an ARN is about 120 long.
const MODEL_CAP: usize = 256;

/// Returns the model of a session, as the client reports it, for a question: without the mark of a large window (`[1m]`). A
/// question fits into any window, and on some accounts the large one is billed apart. A text that is no model's name gives
/// none: it comes from outside and becomes an argument.
pub fn without_window_mark(reported: &str) -> Option<&str> {
    let name = reported.split('[').next()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:/@".contains(c);
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    (starts_well && name.len() <= MODEL_CAP && name.chars().all(plain)).then_some(name)
}

/// Returns the tool that a permission rule is about.
fn name_of(rule: &str) -> &str {
    rule.split('(').next().unwrap_or(rule).trim()
}

/// Returns the user's own settings without hooks and status line. Settings that cannot be read would have kept the hosted agent
/// from starting, so nothing is lost with them.
fn merged_settings(user: Option<&str>) -> String {
    let user = user.and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
    let mut settings = user.unwrap_or_default();
    settings.remove("hooks");
    settings.remove("statusLine");
    settings.insert("disableAllHooks".to_owned(), json!(true));
    Value::Object(settings).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(question: Question<'_>) -> Vec<String> {
        let words = arguments(question).into_iter();
        words.map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn the_default_question_may_read_and_nothing_else() {
        let tools = ["Read".to_owned()];
        let asked = words(Question {
            tools: &tools,
            model: None,
            max_cost_usd: 0.5,
            user_settings: None,
        });
        assert_eq!(
            asked,
            [
                "-p",
                "--output-format",
                "json",
                "--no-session-persistence",
                "--max-budget-usd",
                "0.5",
                "--settings",
                r#"{"disableAllHooks":true}"#,
                "--permission-mode",
                "default",
                "--tools",
                "Read",
                "--allowedTools",
                "Read",
                "--strict-mcp-config",
            ]
        );
    }

    #[test]
    fn no_tools_are_none_and_rules_are_distinguished_from_names() {
        let question = Question {
            tools: &[],
            model: Some("haiku"),
            max_cost_usd: 2.0,
            user_settings: None,
        };
        let asked = words(question);
        let at = asked.iter().position(|word| word == "--tools").unwrap();
        assert_eq!(asked[at + 1..], ["", "--strict-mcp-config"]);
        assert_eq!(asked[at - 2..at], ["--model", "haiku"]);
        let tools = ["Read", "Bash(git log:*)", "Bash(git show:*)"].map(str::to_owned);
        let asked = words(Question {
            tools: &tools,
            ..question
        });
        let at = asked.iter().position(|word| word == "--tools").unwrap();
        assert_eq!(
            asked[at + 1..],
            [
                "Read,Bash",
                "--allowedTools",
                "Read",
                "Bash(git log:*)",
                "Bash(git show:*)",
                "--strict-mcp-config"
            ]
        );
    }

    #[test]
    fn a_sessions_model_loses_its_window_mark_and_must_be_a_name() {
        for (reported, asked) in [
            ("claude-opus-4-8[1m]", Some("claude-opus-4-8")),
            ("claude-opus-5-5", Some("claude-opus-5-5")),
            (
                "arn:aws:bedrock:us-east-1:12:application-inference-profile/a1b2[1m]",
                Some("arn:aws:bedrock:us-east-1:12:application-inference-profile/a1b2"),
            ),
            (
                "claude-sonnet-4-5@20250929",
                Some("claude-sonnet-4-5@20250929"),
            ),
            ("--dangerously-skip-permissions", None),
            ("<synthetic>", None),
            ("a b", None),
            ("[1m]", None),
            ("", None),
        ] {
            assert_eq!(without_window_mark(reported), asked, "{reported}");
        }
    }

    #[test]
    fn the_users_own_settings_stay_but_for_what_runs_commands_beside() {
        let user =
            r#"{"apiKeyHelper":"k","hooks":{"Stop":[]},"statusLine":{},"disableAllHooks":false}"#;
        assert_eq!(
            merged_settings(Some(user)),
            r#"{"apiKeyHelper":"k","disableAllHooks":true}"#
        );
        assert_eq!(
            merged_settings(Some("[broken")),
            r#"{"disableAllHooks":true}"#
        );
    }
}
