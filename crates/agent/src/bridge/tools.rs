//! The tools that the agent is given: their names, their inputs, and the checks of the inputs' validity.
//!
//! ```text
//!   the mod in the client ($.tool.register) ──┐
//!   `pitstop mcp`, where there is no mod ─────┴─▶ POST /tools/{name} ──▶ the core, which answers in words
//! ```
//!
//! A call is an observation: it reads figures and keeps the agent's words, as a signal in its text does. A call of
//! `request_reboot` is shown to a person and does nothing else.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::message::Invalid;
use pitstop_base::clean;
use pitstop_transcript::SessionId;

/// The names, descriptions and forms of the tools, as both ways give them to the client.
pub const TOOLS: &str = include_str!("../../../../assets/bridge/tools.json");

/// The longest text of a call, in bytes: that of a line with a signal.
const TEXT_LIMIT: usize = 2_000;

/// The way in which the agent is given its tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolsBy {
    /// It is given none.
    #[default]
    None,
    /// The mod registers them.
    Mod,
    /// `pitstop mcp` serves them.
    Server,
}

/// The agent that calls: a session that was left may still have a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Caller {
    /// The session, as the mod knows it.
    pub session: Option<SessionId>,
    /// The number of the iteration that it was started for, as `pitstop mcp` knows it.
    pub iteration: Option<u64>,
}

/// The body of a call.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ToolBody {
    /// The agent that calls.
    #[serde(flatten)]
    pub caller: Caller,
    /// The input of the tool.
    #[serde(default)]
    pub input: Map<String, Value>,
}

/// A call of the agent. Each text is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Show how full the context is.
    Context,
    /// Keep a fact in the scratchpad.
    Note {
        /// The fact.
        text: String,
    },
    /// Keep a decision.
    Decision {
        /// The decision.
        text: String,
        /// The reason; may be empty.
        why: String,
    },
    /// Mark an item as done.
    Done {
        /// The item.
        item: String,
    },
    /// Show the handoff as it would be sent now.
    HandoffPreview,
    /// Ask a person for a reboot.
    RequestReboot {
        /// The reason; may be empty.
        reason: String,
    },
}

impl Tool {
    /// Returns the tool of that name with its input, if that is valid; none if there is no such tool.
    pub fn read(name: &str, input: &Map<String, Value>) -> Option<Result<Self, Invalid>> {
        let given = |field| text_in(input, field);
        let needed = |field| given(field).and_then(|text| text.ok_or_else(|| missing_text(field)));
        Some(match name {
            "context" => Ok(Self::Context),
            "note" => needed("text").map(|text| Self::Note { text }),
            "decision" => needed("text").and_then(|text| {
                let why = given("why")?.unwrap_or_default();
                Ok(Self::Decision { text, why })
            }),
            "done" => needed("item").map(|item| Self::Done { item }),
            "handoff_preview" => Ok(Self::HandoffPreview),
            "request_reboot" => given("reason").map(|reason| Self::RequestReboot {
                reason: reason.unwrap_or_default(),
            }),
            _ => return None,
        })
    }
}

fn missing_text(field: &'static str) -> Invalid {
    Invalid::new(field, "some text")
}

/// Returns a text of the input on one line, without control characters for a terminal; none if it is not there, or blank.
fn text_in(input: &Map<String, Value>, field: &'static str) -> Result<Option<String>, Invalid> {
    let text = match input.get(field) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text,
        Some(_) => return Err(missing_text(field)),
    };
    if text.len() > TEXT_LIMIT {
        let expected = format!("a text of at most {TEXT_LIMIT} bytes");
        return Err(Invalid::new(field, expected));
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = clean::stripped(&words.join(" "), TEXT_LIMIT);
    let line = line.trim();
    Ok((!line.is_empty()).then(|| line.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, input: &str) -> Option<Result<Tool, Invalid>> {
        Tool::read(name, &serde_json::from_str(input).unwrap())
    }

    fn listed() -> Vec<Value> {
        serde_json::from_str(TOOLS).unwrap()
    }

    #[test]
    fn every_tool_that_is_listed_is_known_and_takes_what_its_form_asks_for() {
        let tools = listed();
        assert_eq!(tools.len(), 6);
        for tool in tools {
            let name = tool["name"].as_str().unwrap();
            let fields = tool["inputSchema"]["required"].as_array();
            let input: Map<String, Value> = fields
                .into_iter()
                .flatten()
                .map(|field| (field.as_str().unwrap().to_owned(), "x".into()))
                .collect();
            let read = Tool::read(name, &input).expect("it is known");
            assert!(read.is_ok(), "{name}: {read:?}");
        }
        assert_eq!(read("approve", "{}"), None);
    }

    #[test]
    fn all_that_the_model_is_given_of_the_tools_is_at_most_600_tokens() {
        // As the client sends them: with its own names, and without what only makes the file readable.
        let sent = serde_json::to_string(&listed()).unwrap();
        let names = listed().len() * "mcp__pitstop__".len();
        // The repository's estimate: four characters to a token (`handoff::tokens_of`).
        let tokens = (sent.chars().count() + names).div_ceil(4);
        assert!(tokens <= 600, "{tokens}");
    }

    #[test]
    fn a_text_is_one_clean_line() {
        let note = read("note", r#"{"text":" a\u001b[2J\n\u202eb \t c "}"#);
        let text = "a[2J b c".to_owned();
        assert_eq!(note, Some(Ok(Tool::Note { text })));
        let decision = read("decision", r#"{"text":"use SQLite","more":[1]}"#);
        let (text, why) = ("use SQLite".to_owned(), String::new());
        assert_eq!(decision, Some(Ok(Tool::Decision { text, why })));
    }

    #[test]
    fn hostile_input_is_refused_with_its_field() {
        let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(TEXT_LIMIT + 1));
        for (name, input) in [
            ("note", "{}"),
            ("note", r#"{"text":null}"#),
            ("note", r#"{"text":"  \n "}"#),
            ("note", r#"{"text":"\u0007\u001b"}"#),
            ("note", r#"{"text":{"text":"x"}}"#),
            ("note", &long),
            ("decision", r#"{"why":"x"}"#),
            ("decision", r#"{"text":"x","why":7}"#),
            ("done", r#"{"item":["x"]}"#),
            ("request_reboot", r#"{"reason":true}"#),
        ] {
            let refused = read(name, input).unwrap().expect_err(name);
            assert!(!refused.expected.is_empty(), "{name}");
        }
    }
}
