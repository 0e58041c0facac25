//! Turns hook and status-line payloads into [`AgentEvent`]s.
//!
//! The trust boundary: a body comes from any process that can reach the socket with the observe right, so
//! it may be anything. Limits: 1 MiB, 64 levels of nesting, session ids are UUIDs, token figures
//! are whole numbers up to 10^12, every text is cut. Unknown fields are ignored and unknown
//! events become [`AgentEvent::Unknown`], for the client changes fast.
//!
//! Shapes as measured with Claude Code 2.1.197.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{
    AgentEvent, Background, BackgroundTask, CacheLifetime, EndReason, Failure, PermissionRequest,
    PromptCache, RateLimit, StartSource, StatusLine, TimedPrompt, ToolCall, ToolOutput,
    claude::projects::work_place, clip_text,
};
use pitstop_transcript::{SessionId, Tokens, record::mend_json, todo::TodoCall, usage::in_window};

/// The largest body that is read, in bytes.
pub const MAX_BODY: usize = 1024 * 1024;

/// The deepest nesting that is read.
pub const MAX_DEPTH: usize = 64;

/// The largest figure that is believed; no window, cost or duration comes near it.
const MAX_NUMBER: f64 = 1e12;

/// The beginning of the instructions of a compaction that pitstop has ordered, as the bridge gives them.
const ORDERED: &str = "pitstop order ";

/// The length at which names, kinds and ids are cut, in bytes.
const SHORT: usize = 256;

/// The length at which a prompt that comes at set times is cut, in bytes.
const PROMPT: usize = 1024;

/// The longest path that is taken, in bytes: `PATH_MAX` on Linux.
const PATH: usize = 4096;

/// The length at which commands and tool output are cut, in bytes. The client itself cuts shell output at 30 000 characters.
const OUTPUT: usize = 64 * 1024;

/// The longest list that is read; a client runs a few tasks side by side.
const MAX_LIST: usize = 256;

/// The length at which the input of a tool that asks for a permission is cut, in bytes: more is not read on a phone.
const MAX_INPUT: usize = 64 * 1024;

/// The length at which assistant messages are cut, in bytes: the largest answer a model gives is below this.
const MESSAGE: usize = 512 * 1024;

/// The reason for which a payload was refused.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// The body is too large.
    #[error("expected a body of at most {MAX_BODY} bytes, found {0}")]
    TooLarge(usize),
    /// The body nests too deep.
    #[error("expected JSON nested at most {MAX_DEPTH} deep, found more")]
    TooDeep,
    /// The body is no JSON object.
    #[error("expected a JSON object: {0}")]
    Json(#[from] serde_json::Error),
    /// A needed field is absent or of another type.
    #[error("expected the field `{field}` to be {expected}, found {found}")]
    Field {
        /// The field's path.
        field: &'static str,
        /// The form that was expected.
        expected: &'static str,
        /// The form that was found.
        found: String,
    },
}

/// Reads the payload of the hook `event`.
pub fn parse_hook(event: &str, body: &[u8]) -> Result<AgentEvent, HookError> {
    let body = parse_object(body)?;
    let at = Payload(&body);
    let session = at.session()?;
    Ok(match event {
        "SessionStart" | "PreCompact" | "PostCompact" if is_of_subagent(at) => {
            AgentEvent::SubagentCompacts { session }
        }
        "SessionStart" => AgentEvent::SessionStarted {
            session,
            source: start_source(&at.text("source", SHORT).unwrap_or_default()),
            model: at.text("model", SHORT),
            transcript_path: at.transcript_path(),
            prompt_cache: resumed_cache(at),
        },
        "UserPromptSubmit" => AgentEvent::PromptSubmitted {
            session,
            // Whole, for it is compared with the handoff; the body's own limit is its cap.
            prompt: at.need_text("prompt", MAX_BODY)?,
            transcript_path: at.transcript_path(),
        },
        "PreToolUse" => AgentEvent::ToolStarted {
            session,
            call: tool_call(at)?,
        },
        "PostToolUse" => AgentEvent::ToolFinished {
            session,
            call: ToolCall {
                todo: todo_call(at),
                ..tool_call(at)?
            },
            output: tool_output(at, false),
        },
        "PostToolUseFailure" => AgentEvent::ToolFinished {
            session,
            call: tool_call(at)?,
            output: tool_output(at, true),
        },
        "Stop" => AgentEvent::TurnEnded {
            session,
            last_message: at.text("last_assistant_message", MESSAGE),
            background: read_background(at),
            transcript_path: at.transcript_path(),
        },
        // The session's own turn goes on.
        "StopFailure" if is_of_subagent(at) => AgentEvent::SubagentStopped { session },
        "StopFailure" => turn_failed(session, at),
        "Notification" => read_notification(session, at),
        "PermissionRequest" => AgentEvent::DialogOpened {
            session,
            about: at.text("tool_name", SHORT).unwrap_or_default(),
        },
        "Elicitation" => AgentEvent::DialogOpened {
            session,
            about: elicited(at),
        },
        "PreCompact" => AgentEvent::Compacting {
            session,
            automatic: at.text("trigger", SHORT).as_deref() == Some("auto"),
            ordered: at
                .text("custom_instructions", SHORT)
                .is_some_and(|text| text.starts_with(ORDERED)),
        },
        "PostModelSwitch" => AgentEvent::ModelSwitched {
            session,
            chosen: chosen_model(at),
        },
        "PostCompact" => AgentEvent::Compacted { session },
        "SessionEnd" => AgentEvent::SessionEnded {
            session,
            reason: end_reason(&at.text("reason", SHORT).unwrap_or_default()),
        },
        "SubagentStart" => AgentEvent::SubagentStarted { session },
        "SubagentStop" => AgentEvent::SubagentStopped { session },
        other => AgentEvent::Unknown {
            name: clip_text(other, SHORT),
        },
    })
}

/// Returns what an MCP server asks a person for in a form of its own, with the server's name.
fn elicited(at: Payload<'_>) -> String {
    let [server, message] =
        ["mcp_server_name", "message"].map(|field| at.text(field, SHORT).unwrap_or_default());
    format!("{server}: {message}")
}

/// Returns the model that a person has switched to by command or from the list; none if the client has, as it does when it resumes a
/// session, or for what is no name of a model: it becomes an argument.
fn chosen_model(at: Payload<'_>) -> Option<String> {
    let source = at.text("source", SHORT)?;
    // The default has no name of its own.
    let name = at
        .text("requested_model", SHORT)
        .unwrap_or_else(|| "default".to_owned());
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.:/@[]".contains(c));
    (is_name && matches!(source.as_str(), "command" | "picker")).then_some(name)
}

/// Reads the permission that the payload of a `PermissionRequest` hook asks for.
pub fn parse_permission(body: &[u8]) -> Option<PermissionRequest> {
    let body = parse_object(body).ok()?;
    let at = Payload(&body);
    let tool = at.text("tool_name", SHORT)?;
    let input = at.inner("tool_input");
    let command = input.and_then(|input| input.0.get("command")?.as_str());
    let shown = match command.filter(|_| tool == "Bash") {
        Some(command) => command.to_owned(),
        None => input.map_or_else(String::new, |input| {
            serde_json::to_string_pretty(input.0).unwrap_or_default()
        }),
    };
    Some(PermissionRequest {
        session: at.session().ok()?,
        // The answer to a question and to a plan is more than a yes.
        is_plain: !matches!(tool.as_str(), "AskUserQuestion" | "ExitPlanMode"),
        whole: shown.len() <= MAX_INPUT,
        input: clip_text(&shown, MAX_INPUT),
        tool,
        by_subagent: is_of_subagent(at),
    })
}

/// Returns the permission mode that a hook's payload names beside its event; none for a subagent, which may have a mode of its own.
pub fn parse_mode(body: &[u8]) -> Option<AgentEvent> {
    let body = parse_object(body).ok()?;
    let at = Payload(&body);
    let mode = at.text("permission_mode", SHORT);
    let mode = mode.filter(|_| !is_of_subagent(at))?;
    let session = at.session().ok()?;
    Some(AgentEvent::ModeSeen { session, mode })
}

/// Returns the session and the place where its agent works, by the payload of any hook; none for a subagent, which may have a
/// place of its own.
pub fn parse_place(body: &[u8]) -> Option<(SessionId, PathBuf)> {
    let body = parse_object(body).ok()?;
    let at = Payload(&body);
    let cwd = at.path("cwd").filter(|_| !is_of_subagent(at))?;
    let place = work_place(Path::new(&cwd), Path::new(&at.path("transcript_path")?))?;
    Some((at.session().ok()?, place))
}

/// Reads the payload of the status line command.
pub fn parse_status_line(body: &[u8]) -> Result<StatusLine, HookError> {
    let body = parse_object(body)?;
    let at = Payload(&body);
    let model = at.inner("model");
    let context = at.inner("context_window");
    let cost = at.inner("cost");
    let limits = at.inner("rate_limits");
    Ok(StatusLine {
        session: at.session()?,
        transcript_path: at.transcript_path(),
        model_id: model.and_then(|m| m.text("id", SHORT)),
        model_name: model.and_then(|m| m.text("display_name", SHORT)),
        window: context.map_or(Ok(None), |c| c.tokens("context_window_size"))?,
        usage: context
            .and_then(|c| c.0.get("current_usage"))
            .and_then(in_window),
        used_percentage: context.and_then(|c| c.number("used_percentage")),
        cost_usd: cost.and_then(|c| c.number("total_cost_usd")),
        duration_ms: cost.and_then(|c| c.whole_number("total_duration_ms")),
        five_hour: limits
            .and_then(|l| l.inner("five_hour"))
            .and_then(rate_limit),
        seven_day: limits
            .and_then(|l| l.inner("seven_day"))
            .and_then(rate_limit),
        version: at.text("version", SHORT),
        prompt_cache: at.inner("prompt_cache").and_then(prompt_cache),
    })
}

/// Reads the body as an object, if it keeps to the limits. Bytes in it that are no characters are replaced; the rest is kept.
fn parse_object(body: &[u8]) -> Result<Map<String, Value>, HookError> {
    if body.len() > MAX_BODY {
        return Err(HookError::TooLarge(body.len()));
    }
    if nesting_depth(body) > MAX_DEPTH {
        return Err(HookError::TooDeep);
    }
    Ok(serde_json::from_str(&mend_json(body))?)
}

/// Returns the depth to which brackets nest outside of strings; that needs no valid JSON and guards a parser's stack.
pub fn nesting_depth(body: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// An object of a payload with typed access to its fields.
#[derive(Clone, Copy)]
struct Payload<'a>(&'a Map<String, Value>);

impl<'a> Payload<'a> {
    fn session(self) -> Result<SessionId, HookError> {
        let text = self.need_text("session_id", SHORT)?;
        text.parse().map_err(|_| HookError::Field {
            field: "session_id",
            expected: "a UUID",
            found: format!("`{}`", clip_text(&text, 64).escape_debug()),
        })
    }

    fn transcript_path(self) -> Option<String> {
        self.path("transcript_path")
    }

    fn path(self, field: &str) -> Option<String> {
        let path = self.0.get(field)?.as_str()?;
        // A cut path would name another file, so a longer one counts as absent.
        (!path.is_empty() && path.len() <= PATH).then(|| path.to_owned())
    }

    fn text(self, field: &str, limit: usize) -> Option<String> {
        self.0
            .get(field)?
            .as_str()
            .map(|text| clip_text(text, limit))
    }

    fn need_text(self, field: &'static str, limit: usize) -> Result<String, HookError> {
        self.text(field, limit).ok_or_else(|| HookError::Field {
            field,
            expected: "a text",
            found: value_kind(self.0.get(field)).to_owned(),
        })
    }

    fn flag(self, field: &str) -> bool {
        self.0.get(field).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Returns the objects of a list; an element of another type counts as an empty object.
    fn list(self, field: &str) -> impl Iterator<Item = Map<String, Value>> {
        let list = self.0.get(field).and_then(Value::as_array);
        let objects = list.into_iter().flatten().take(MAX_LIST);
        objects.map(|one| one.as_object().cloned().unwrap_or_default())
    }

    fn inner(self, field: &str) -> Option<Payload<'a>> {
        self.0.get(field)?.as_object().map(Payload)
    }

    /// Returns a number that can be believed; anything else counts as absent.
    fn number(self, field: &str) -> Option<f64> {
        let number = self.0.get(field)?.as_f64()?;
        (0.0..=MAX_NUMBER).contains(&number).then_some(number)
    }

    /// Returns a believable number, cut to a whole one.
    fn whole_number(self, field: &str) -> Option<u64> {
        self.number(field).map(|number| number as u64)
    }

    /// Returns a token figure. Unlike the rest of a payload it moves the gauge, so a bad one is an error.
    fn tokens(self, field: &'static str) -> Result<Option<Tokens>, HookError> {
        match self.0.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => self
                .whole_number(field)
                .map(|n| Some(Tokens(n)))
                .ok_or_else(|| HookError::Field {
                    field,
                    expected: "a number from 0 to 10^12",
                    found: clip_text(&value.to_string(), 64),
                }),
        }
    }
}

/// Names the type of a value in words.
fn value_kind(value: Option<&Value>) -> &'static str {
    match value {
        None => "nothing",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "a boolean",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a text",
        Some(Value::Array(_)) => "a list",
        Some(Value::Object(_)) => "an object",
    }
}

fn start_source(word: &str) -> StartSource {
    match word {
        "startup" => StartSource::Startup,
        "resume" => StartSource::Resume,
        "clear" => StartSource::Clear,
        "compact" => StartSource::Compact,
        "fork" => StartSource::Fork,
        other => StartSource::Other(other.to_owned()),
    }
}

fn end_reason(word: &str) -> EndReason {
    match word {
        "prompt_input_exit" => EndReason::PromptExit,
        "clear" => EndReason::Clear,
        other => EndReason::Other(other.to_owned()),
    }
}

fn tool_call(at: Payload<'_>) -> Result<ToolCall, HookError> {
    let input = at.inner("tool_input");
    Ok(ToolCall {
        id: at.text("tool_use_id", SHORT),
        name: at.need_text("tool_name", SHORT)?,
        command: input.and_then(|i| i.text("command", OUTPUT)),
        directory: at.path("cwd"),
        file: input.and_then(|i| {
            i.text("file_path", PATH)
                .or_else(|| i.text("notebook_path", PATH))
        }),
        by_subagent: is_of_subagent(at),
        todo: None,
    })
}

/// Reports whether the hook is about a subagent.
fn is_of_subagent(at: Payload<'_>) -> bool {
    at.0.get("agent_id").is_some_and(Value::is_string)
}

/// Reads the background work, without the tasks that the client lists as over.
fn read_background(at: Payload<'_>) -> Background {
    let text =
        |one: &Map<String, Value>, field| Payload(one).text(field, SHORT).unwrap_or_default();
    let runs = |status: &str| !matches!(status, "completed" | "failed" | "killed" | "stopped");
    Background {
        tasks: at
            .list("background_tasks")
            .filter(|one| runs(&text(one, "status")))
            .map(|one| BackgroundTask {
                id: text(&one, "id"),
                kind: text(&one, "type"),
            })
            .collect(),
        prompts: at
            .list("session_crons")
            .map(|one| TimedPrompt {
                id: text(&one, "id"),
                recurs: Payload(&one).flag("recurring"),
                schedule: text(&one, "schedule"),
                prompt: Payload(&one).text("prompt", PROMPT).unwrap_or_default(),
            })
            .collect(),
    }
}

fn todo_call(at: Payload<'_>) -> Option<Box<TodoCall>> {
    if is_of_subagent(at) {
        return None;
    }
    let field = |name| at.0.get(name).unwrap_or(&Value::Null);
    TodoCall::read(
        field("tool_use_id").as_str(),
        field("tool_name").as_str()?,
        field("tool_input"),
        field("tool_response"),
    )
    .map(Box::new)
}

/// Reads a tool's output. A shell result has streams; other tools give any JSON, of which only a plain text is kept.
fn tool_output(at: Payload<'_>, failed: bool) -> ToolOutput {
    let response = at.inner("tool_response");
    let plain = || at.text("tool_response", OUTPUT);
    ToolOutput {
        stdout: response
            .and_then(|r| r.text("stdout", OUTPUT))
            .or_else(plain)
            .unwrap_or_default(),
        stderr: response
            .and_then(|r| r.text("stderr", OUTPUT))
            .or_else(|| at.text("error", OUTPUT))
            .unwrap_or_default(),
        interrupted: response.is_some_and(|r| r.flag("interrupted")) || at.flag("is_interrupt"),
        failed,
        duration_ms: at.whole_number("duration_ms"),
    }
}

fn turn_failed(session: SessionId, at: Payload<'_>) -> AgentEvent {
    let word = at.text("error", SHORT).unwrap_or_default();
    let message = ["error_details", "last_assistant_message", "message"]
        .into_iter()
        .find_map(|field| at.text(field, OUTPUT))
        .unwrap_or_default();
    AgentEvent::TurnFailed {
        session,
        failure: failure_kind(&word, &message),
        message,
    }
}

/// Classifies a failure by its word. The context limit and a refusal have no word of their own and are recognised by their text, as is
/// a request that the service calls invalid, for which the client has two words (seen in 2.1.332).
pub fn failure_kind(word: &str, message: &str) -> Failure {
    let lower = message.to_ascii_lowercase();
    match word {
        // The limits of an API key have no reset that the client knows; it shows the service's words (seen in 2.1.332).
        "rate_limit" if lower.contains("rejected (429)") => Failure::RateLimit,
        "rate_limit" => Failure::UsageLimit,
        "authentication_failed" | "billing_error" => Failure::Account,
        _ if lower.contains("prompt is too long") || lower.contains("context limit") => {
            Failure::ContextLimit
        }
        "overloaded" | "server_error" => Failure::Service,
        "invalid_request" => Failure::Conversation,
        _ if lower.contains("api error: 400") || lower.contains("start a new session") => {
            Failure::Conversation
        }
        _ => Failure::Other,
    }
}

/// The notifications that ask for nothing. Every other one counts as an open dialog: the client invents new ones, and a
/// question that is missed gets its answer from whatever is typed next (read in 2.1.197 and 2.1.330).
const HARMLESS: [&str; 9] = [
    "agent_completed",
    "auth_storage_failure",
    "auth_success",
    "computer_use_exit",
    "elicitation_complete",
    "elicitation_response",
    "idle_prompt",
    "plugin_notification",
    "push_notification",
];

fn read_notification(session: SessionId, at: Payload<'_>) -> AgentEvent {
    let message = at.text("message", OUTPUT).unwrap_or_default();
    let kind = at.text("notification_type", SHORT).unwrap_or_default();
    if HARMLESS.contains(&kind.as_str()) {
        return AgentEvent::Notified {
            session,
            kind,
            message,
        };
    }
    let about = match kind.as_str() {
        // A hook of its own says what is asked for.
        "elicitation_dialog" | "elicitation_url_dialog" => String::new(),
        _ if message.is_empty() => kind,
        _ => message,
    };
    AgentEvent::DialogOpened { session, about }
}

/// Reads the state of the prompt cache. A value that cannot be believed counts as absent: the cache moves no gauge. Where no answer
/// has reported a cache, the client calls it cold all the time.
fn prompt_cache(at: Payload<'_>) -> Option<PromptCache> {
    if at.0.get("caching_observed") == Some(&Value::Bool(false)) {
        return None;
    }
    Some(PromptCache {
        warm: at.0.get("warm")?.as_bool()?,
        expires_at: at.whole_number("expires_at"),
        recache: at.whole_number("recache_tokens_if_cold").map(Tokens),
        usd: None,
        lifetime: match at.text("ttl", SHORT).as_deref() {
            Some("1h") => CacheLifetime::Hour,
            _ => CacheLifetime::FiveMinutes,
        },
    })
}

/// Reads the state of the prompt cache at the start of a resumed session, if it is cold. When a warm one expires is not reported: it
/// would count as warm until the next answer, however late that is.
fn resumed_cache(at: Payload<'_>) -> Option<PromptCache> {
    let is_cold = at.0.get("prompt_cache_likely_expired")?.as_bool()?;
    is_cold.then(|| PromptCache {
        warm: false,
        expires_at: None,
        recache: at.whole_number("context_tokens").map(Tokens),
        usd: at.number("estimated_cache_write_usd"),
        lifetime: CacheLifetime::default(),
    })
}

fn rate_limit(at: Payload<'_>) -> Option<RateLimit> {
    Some(RateLimit {
        used_percentage: at.number("used_percentage")?,
        resets_at: at.whole_number("resets_at"),
    })
}

#[cfg(test)]
mod tests;
