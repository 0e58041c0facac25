//! The agent's own to-do list, rebuilt from the calls of its to-do tools.
//!
//! Claude Code 2.1.197 has `TaskCreate`, `TaskUpdate` and `TaskList`, which change one task at a time by its number; with
//! `CLAUDE_CODE_ENABLE_TASKS=0` it has `TodoWrite`, which sends the whole list each time. A task's number is given by the
//! result alone. Each call is known by its id, so that the same call may come from a hook and from the transcript.

use std::collections::VecDeque;

use serde_json::Value;

/// The most entries of a list; the client's own advice is a handful.
const ENTRIES_CAP: usize = 500;

/// The length in bytes of the longest text of an entry.
const TEXT_CAP: usize = 2_000;

/// The length in bytes of the longest id.
const ID_CAP: usize = 256;

/// The number of calls that are remembered by their ids: those that a hook may have reported ahead of the transcript.
const CALLS_REMEMBERED: usize = 256;

/// Reports whether a tool of this name changes or shows the list.
pub fn is_todo_tool(name: &str) -> bool {
    matches!(name, "TodoWrite" | "TaskCreate" | "TaskUpdate" | "TaskList")
}

/// The progress of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum Status {
    /// It has not been begun.
    Pending,
    /// It is being done.
    InProgress,
    /// It is done.
    Completed,
}

/// One entry of the list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Todo {
    /// Its number, where entries have one.
    pub id: Option<String>,
    /// The task to do.
    pub text: String,
    /// The progress of the entry.
    pub status: Status,
}

/// The change that one call made to the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TodoChange {
    /// The whole list, as it is now.
    List(Vec<Todo>),
    /// A new entry.
    Added(Todo),
    /// An entry whose text or status was changed.
    Changed {
        /// Its number.
        id: String,
        /// Its new text.
        text: Option<String>,
        /// Its new status.
        status: Option<Status>,
    },
    /// An entry that was deleted.
    Deleted {
        /// Its number.
        id: String,
    },
}

/// One call of a to-do tool that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TodoCall {
    /// The call's id; none if it is not known.
    pub id: Option<String>,
    /// The change that it made.
    pub change: TodoChange,
}

impl TodoCall {
    /// Reads a call from the tool's name, its input, and its result as the client keeps it; none if it changed nothing.
    pub fn read(id: Option<&str>, tool: &str, input: &Value, result: &Value) -> Option<Self> {
        let change = match tool {
            "TodoWrite" => TodoChange::List(read_list(&input["todos"])?),
            "TaskList" => TodoChange::List(read_list(&result["tasks"])?),
            "TaskCreate" => TodoChange::Added(Todo {
                id: Some(task_number(&result["task"]["id"])?),
                text: entry_text(&input["subject"])
                    .or_else(|| entry_text(&result["task"]["subject"]))?,
                status: Status::Pending,
            }),
            "TaskUpdate" if result["success"] != false => {
                let id = task_number(&input["taskId"])?;
                match input["status"].as_str() {
                    Some("deleted") => TodoChange::Deleted { id },
                    word => TodoChange::Changed {
                        id,
                        text: entry_text(&input["subject"]),
                        status: word.and_then(|word| word.parse().ok()),
                    },
                }
            }
            _ => return None,
        };
        let id = id.map(|id| clip_text(id, ID_CAP).to_owned());
        Some(Self { id, change })
    }
}

/// Cuts a text to at most `cap` bytes, on a character boundary.
pub(super) fn clip_text(text: &str, cap: usize) -> &str {
    &text[..text.floor_char_boundary(cap)]
}

fn entry_text(value: &Value) -> Option<String> {
    let text = clip_text(value.as_str()?.trim(), TEXT_CAP);
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns a task's number, which comes as text.
fn task_number(value: &Value) -> Option<String> {
    match value {
        Value::String(id) => (!id.is_empty()).then(|| clip_text(id, ID_CAP).to_owned()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

fn read_list(value: &Value) -> Option<Vec<Todo>> {
    let entry = |one: &Value| {
        Some(Todo {
            id: task_number(&one["id"]),
            text: entry_text(&one["content"]).or_else(|| entry_text(&one["subject"]))?,
            status: one["status"].as_str()?.parse().ok()?,
        })
    };
    let entries = value.as_array()?.iter().filter_map(entry);
    Some(entries.take(ENTRIES_CAP).collect())
}

/// The list after the calls so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Todos {
    entries: Vec<Todo>,
    /// The ids of the latest calls, oldest first.
    calls: VecDeque<String>,
}

impl Todos {
    /// Applies a call; one that is known already changes nothing.
    pub fn apply(&mut self, call: &TodoCall) {
        if self.knows(call) {
            return;
        }
        if let Some(id) = &call.id {
            self.calls.push_back(id.clone());
            let over = self.calls.len().saturating_sub(CALLS_REMEMBERED);
            self.calls.drain(..over);
        }
        match &call.change {
            TodoChange::List(entries) => self.entries.clone_from(entries),
            TodoChange::Added(entry) => {
                self.entries.retain(|have| have.id != entry.id);
                if self.entries.len() < ENTRIES_CAP {
                    self.entries.push(entry.clone());
                }
            }
            TodoChange::Changed { id, text, status } => {
                let found = |have: &&mut Todo| have.id.as_ref() == Some(id);
                if let Some(entry) = self.entries.iter_mut().find(found) {
                    if let Some(text) = text {
                        entry.text.clone_from(text);
                    }
                    entry.status = status.unwrap_or(entry.status);
                }
            }
            TodoChange::Deleted { id } => self.entries.retain(|have| have.id.as_ref() != Some(id)),
        }
    }

    /// Reports whether the call has been applied.
    pub fn knows(&self, call: &TodoCall) -> bool {
        call.id
            .as_ref()
            .is_some_and(|id| self.calls.iter().any(|have| have == id))
    }

    /// Reports whether the list is empty.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the completed entries.
    pub fn completed(&self) -> impl Iterator<Item = &str> {
        self.texts_with(Status::Completed)
    }

    /// Returns the entries that are still to do, those in progress first.
    pub fn pending(&self) -> impl Iterator<Item = &str> {
        self.texts_with(Status::InProgress)
            .chain(self.texts_with(Status::Pending))
    }

    fn texts_with(&self, status: Status) -> impl Iterator<Item = &str> {
        let entries = self.entries.iter();
        entries
            .filter(move |entry| entry.status == status)
            .map(|entry| entry.text.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn todos(calls: &[(&str, Value, Value)]) -> Todos {
        let mut todos = Todos::default();
        for (n, (tool, input, result)) in calls.iter().enumerate() {
            let id = format!("t{n}");
            if let Some(call) = TodoCall::read(Some(&id), tool, input, result) {
                todos.apply(&call);
                // From the other source.
                todos.apply(&call);
            }
        }
        todos
    }

    #[track_caller]
    fn check(todos: &Todos, completed: &[&str], pending: &[&str]) {
        assert_eq!(todos.completed().collect::<Vec<_>>(), completed);
        assert_eq!(todos.pending().collect::<Vec<_>>(), pending);
    }

    #[test]
    fn todo_write_sends_the_whole_list() {
        let todo = |text: &str, status: &str| json!({"content": text, "status": status, "activeForm": "x"});
        let first = json!({"todos": [todo("a", "pending")]});
        let second = json!({"todos": [
            todo("a", "completed"), todo("b", "pending"), todo("c", "in_progress"),
            todo(" ", "pending"), todo("d", "unheard of"), "odd", null,
        ]});
        let list = todos(&[
            ("TodoWrite", first, Value::Null),
            ("TodoWrite", second, Value::Null),
        ]);
        check(&list, &["a"], &["c", "b"]);
    }

    #[test]
    fn tasks_change_one_by_one() {
        let made = |id: &str| json!({"task": {"id": id, "subject": "s"}});
        let mut calls = vec![
            (
                "TaskCreate",
                json!({"subject": "a", "description": "x"}),
                made("1"),
            ),
            (
                "TaskCreate",
                json!({"subject": "b", "description": "x"}),
                made("2"),
            ),
            (
                "TaskCreate",
                json!({"subject": "c", "description": "x"}),
                made("3"),
            ),
            (
                "TaskUpdate",
                json!({"taskId": "1", "status": "completed"}),
                json!({"success": true}),
            ),
            (
                "TaskUpdate",
                json!({"taskId": "2", "status": "in_progress", "subject": "b2"}),
                json!({"success": true}),
            ),
            (
                "TaskUpdate",
                json!({"taskId": "3", "status": "completed"}),
                json!({"success": false, "error": "Task not found"}),
            ),
        ];
        check(&todos(&calls), &["a"], &["b2", "c"]);
        calls.push((
            "TaskUpdate",
            json!({"taskId": "3", "status": "deleted"}),
            json!({}),
        ));
        check(&todos(&calls), &["a"], &["b2"]);
        let listed = json!({"tasks": [{"id": "7", "subject": "z", "status": "pending"}]});
        calls.push(("TaskList", json!({}), listed));
        check(&todos(&calls), &[], &["z"]);
    }

    #[test]
    fn hostile_calls_are_cut_or_passed_over() {
        for (tool, input, result) in [
            ("TodoWrite", json!({"todos": "x"}), Value::Null),
            ("TodoWrite", json!([]), Value::Null),
            (
                "TaskCreate",
                json!({"subject": "a"}),
                json!({"task": {"id": ""}}),
            ),
            ("TaskCreate", json!({}), json!("Task #1 created")),
            ("TaskUpdate", json!({"taskId": {}}), Value::Null),
            ("Bash", json!({"todos": []}), Value::Null),
        ] {
            assert_eq!(
                TodoCall::read(None, tool, &input, &result),
                None,
                "{tool} {input}"
            );
        }
        let long = json!({"content": "é".repeat(5_000), "status": "pending"});
        let many = json!({"todos": vec![long; 2_000]});
        let list = todos(&[("TodoWrite", many, Value::Null)]);
        assert_eq!(list.pending().count(), ENTRIES_CAP);
        assert!(list.pending().all(|text| text.len() <= TEXT_CAP));
    }
}
