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

use crate::{
    agent::claude::project_slug,
    transcript::{SessionId, usage::Usage},
};

/// The version the demo reports: its own, so that nothing mistakes it for the real client.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-demo");

/// A transcript being written.
pub struct Record {
    path: PathBuf,
    file: File,
    session: SessionId,
    model: String,
    cwd: String,
    parent: Option<String>,
}

/// Where the transcript of `session` lies.
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
        let parent = last_uuid(&path);
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)?;
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
            record.write(&json!({
                "type": "permission-mode", "permissionMode": "default", "sessionId": session,
            }))?;
        }
        Ok(record)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a prompt of the user's.
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
        let block = json!({
            "tool_use_id": id, "type": "tool_result", "content": content, "is_error": false,
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
        let usage = wire(Usage::default());
        let message = json!({
            "id": Uuid::new_v4().to_string(), "model": "<synthetic>", "role": "assistant",
            "stop_reason": "stop_sequence", "stop_sequence": "", "type": "message", "usage": usage,
            "content": [{ "type": "text", "text": "Prompt is too long" }],
        });
        let fields = json!({
            "message": message, "error": "invalid_request", "isApiErrorMessage": true,
        });
        self.chained("assistant", fields)
    }

    fn chained(&mut self, kind: &str, fields: Value) -> io::Result<()> {
        let uuid = Uuid::new_v4().to_string();
        let mut line = json!({
            "parentUuid": self.parent, "isSidechain": false, "type": kind, "uuid": uuid,
            "timestamp": Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true),
            "userType": "external", "entrypoint": "cli", "cwd": self.cwd,
            "sessionId": self.session.to_string(), "version": VERSION, "gitBranch": "main",
        });
        if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), fields) {
            line.extend(fields);
        }
        self.parent = Some(uuid);
        self.write(&line)
    }

    /// Writes a line in one piece, so that a reader never meets half of one.
    fn write(&mut self, line: &Value) -> io::Result<()> {
        self.file.write_all(format!("{line}\n").as_bytes())
    }
}

/// Usage as the API words it.
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

fn last_uuid(path: &Path) -> Option<String> {
    let lines = lines(path);
    lines
        .iter()
        .rev()
        .find_map(|line| Some(line["uuid"].as_str()?.to_owned()))
}

/// The context in use at the end of an existing transcript, tokens; none if it says nothing. Like the real
/// one, it takes a prompt without an answer for a conversation.
pub fn context_of(path: &Path) -> Option<u64> {
    let lines = lines(path);
    let last = lines
        .iter()
        .rfind(|line| line["type"] == "assistant" && line["isApiErrorMessage"] != true);
    let Some(last) = last else {
        let asked = lines.iter().any(|line| line["type"] == "user");
        return asked.then_some(super::BASE_LOAD);
    };
    let usage = last["message"]["usage"].as_object()?;
    let written = wire(Usage::default());
    let names = written.as_object()?.keys();
    Some(names.filter_map(|name| usage.get(name)?.as_u64()).sum())
}

/// The texts of the conversation, to be shown again after a resume: what was said, and whether by
/// the user.
pub fn conversation(path: &Path) -> Vec<(bool, String)> {
    let said = |line: &Value| {
        let by_user = line["type"] == "user";
        let content = &line["message"]["content"];
        let text = content.as_str().or_else(|| content[0]["text"].as_str())?;
        (by_user || line["type"] == "assistant").then(|| (by_user, text.to_owned()))
    };
    lines(path).iter().filter_map(said).collect()
}
