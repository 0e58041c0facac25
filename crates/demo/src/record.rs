//! The demo's transcript: a JSONL file in the forms Claude Code writes.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use chrono::{SecondsFormat, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use pitstop_agent::claude::project_slug;
use pitstop_transcript::{SessionId, usage::Usage};

/// The version that the demo reports: its own, so that nothing mistakes it for the real client.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-demo");

/// A transcript that is being written.
pub struct Record {
    /// The path of its file.
    pub path: PathBuf,
    file: File,
    session: SessionId,
    model: String,
    cwd: String,
    parent: Option<String>,
}

/// Returns the path of the transcript of `session`.
pub fn path_of(config_dir: &Path, cwd: &Path, session: SessionId) -> PathBuf {
    let project = config_dir.join("projects").join(project_slug(cwd));
    project.join(format!("{session}.jsonl"))
}

impl Record {
    /// Opens the transcript at `path`, creating or continuing it.
    pub fn open(path: PathBuf, session: SessionId, model: &str, cwd: &Path) -> io::Result<Self> {
        if let Some(project) = path.parent() {
            fs::create_dir_all(project)?;
        }
        let is_new = !path.exists();
        let last = |line: &Value| Some(line["uuid"].as_str()?.to_owned());
        let parent = lines(&path).iter().rev().find_map(last);
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).mode(0o600).open(&path)?;
        let mut record = Self {
            path,
            file,
            session,
            // The transcript names the model without its window mark.
            model: model.split('[').next().unwrap_or(model).to_owned(),
            cwd: cwd.to_string_lossy().into_owned(),
            parent,
        };
        if is_new {
            let session = session.to_string();
            record.write(&json!({ "type": "mode", "mode": "normal", "sessionId": session }))?;
        }
        Ok(record)
    }

    /// Writes a prompt of the user.
    pub fn prompt(&mut self, text: &str) -> io::Result<()> {
        let message = json!({ "role": "user", "content": text });
        let fields = json!({ "message": message, "permissionMode": "default" });
        self.chained("user", fields)
    }

    /// Writes one block of an assistant message: one API call is several lines with one id and usage.
    pub fn block(&mut self, call: &str, block: &Value, usage: Usage, stop: &str) -> io::Result<()> {
        let message = json!({
            "id": format!("msg_{call}"), "type": "message", "role": "assistant", "model": self.model,
            "content": [block], "stop_reason": stop, "stop_sequence": null, "usage": wire(usage),
        });
        let fields = json!({ "message": message, "requestId": format!("req_{call}") });
        self.chained("assistant", fields)
    }

    /// Writes a tool's result with the copy the client keeps beside it.
    pub fn tool_result(&mut self, id: &str, content: &str, copy: &Value) -> io::Result<()> {
        self.tool_ended(id, content, copy, false)
    }

    /// Writes that a shell command has failed, in the client's words.
    pub fn tool_failed(&mut self, id: &str, code: i32, output: &str) -> io::Result<()> {
        let said = format!("Exit code {code}\n{output}");
        self.tool_ended(id, &said, &json!(format!("Error: {said}")), true)
    }

    fn tool_ended(&mut self, id: &str, said: &str, copy: &Value, failed: bool) -> io::Result<()> {
        let block = json!({
            "tool_use_id": id, "type": "tool_result", "content": said, "is_error": failed,
        });
        let message = json!({ "role": "user", "content": [block] });
        self.chained("user", json!({ "message": message, "toolUseResult": copy }))
    }

    /// Writes the mark of a compaction.
    pub fn compacted(&mut self, before: u64, trigger: &str) -> io::Result<()> {
        self.parent = None;
        let fields = json!({
            "subtype": "compact_boundary", "content": "Conversation compacted", "level": "info",
            "compactMetadata": { "trigger": trigger, "preTokens": before },
        });
        self.chained("system", fields)
    }

    /// Writes the answer to a prompt that did not fit.
    pub fn too_long(&mut self) -> io::Result<()> {
        let message = json!({
            "id": Uuid::new_v4().to_string(), "model": "<synthetic>", "role": "assistant",
            "stop_reason": "stop_sequence", "type": "message", "usage": wire(Usage::default()),
            "content": [{ "type": "text", "text": "Prompt is too long" }],
        });
        let fields = json!({
            "message": message, "error": "invalid_request", "isApiErrorMessage": true,
        });
        self.chained("assistant", fields)
    }

    fn chained(&mut self, kind: &str, fields: Value) -> io::Result<()> {
        let uuid = Uuid::new_v4().to_string();
        let line = json!({
            "parentUuid": self.parent, "isSidechain": false, "type": kind, "uuid": uuid,
            "timestamp": Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true),
            "userType": "external", "entrypoint": "cli", "cwd": self.cwd,
            "sessionId": self.session.to_string(), "version": VERSION, "gitBranch": "main",
        });
        self.parent = Some(uuid);
        self.write(&joined(line, fields))
    }

    /// Writes a line in one piece, so that a reader never meets half of one.
    fn write(&mut self, line: &Value) -> io::Result<()> {
        self.file.write_all(format!("{line}\n").as_bytes())
    }
}

/// Returns an object with the fields of another one in addition.
pub fn joined(mut object: Value, fields: Value) -> Value {
    if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
        object.extend(fields);
    }
    object
}

/// Writes the usage in the form of the API.
pub fn wire(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input.0, "cache_creation_input_tokens": usage.cache_creation.0,
        "cache_read_input_tokens": usage.cache_read.0, "output_tokens": usage.output.0,
    })
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// The texts of a conversation, to be shown again after a resume, each with true if it is the user's; and the context in use
/// at its end, in tokens.
pub type Conversation = (Vec<(bool, String)>, u64);

/// Returns the conversation of an existing transcript; none if nothing was said. Like the real client, the demo takes a prompt
/// without an answer for a conversation.
pub fn conversation(path: &Path) -> Option<Conversation> {
    let (mut said, mut context) = (Vec::new(), super::BASE_LOAD);
    for line in lines(path) {
        let by_user = line["type"] == "user";
        let parts = &line["message"]["content"];
        if let Some(text) = parts.as_str().or_else(|| parts[0]["text"].as_str()) {
            said.push((by_user, text.to_owned()));
        }
        if let Some(usage) = line["message"]["usage"].as_object()
            && line["isApiErrorMessage"] != true
        {
            let counted = |(name, count): (&String, &Value)| {
                count.as_u64().filter(|_| name.ends_with("_tokens"))
            };
            context = usage.iter().filter_map(counted).sum();
        }
    }
    (!said.is_empty()).then_some((said, context))
}
