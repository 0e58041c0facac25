//! What the store is asked for and what it gives back, as plain data.

use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

use crate::lineage::{
    EndReason, Iteration, IterationId, ProcessStamp, Project, RunId, checkpoint::Checkpoint,
};

/// One run of a supervisor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunRecord {
    /// Its name.
    pub run: RunId,
    /// What it works on.
    pub project: Project,
    /// The supervisor's process.
    pub process: ProcessStamp,
    /// The agent, as the user names it.
    pub agent: String,
    /// The version of this program.
    pub version: String,
    /// The task of an autonomous run.
    pub task: Option<String>,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended; none while it lives, or when it died.
    pub ended_at: Option<DateTime<Utc>>,
    /// Why it ended.
    pub end_reason: Option<EndReason>,
}

/// A run with its iterations, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunHistory {
    /// The run.
    pub run: RunRecord,
    /// Its iterations.
    pub iterations: Vec<Iteration>,
}

/// Whose history is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryOf {
    /// Of one run.
    Run(RunId),
    /// Of every run in a project, newest first.
    Project(Project),
}

impl HistoryOf {
    pub(super) fn includes(&self, record: &RunRecord) -> bool {
        match self {
            Self::Run(run) => record.run == *run,
            Self::Project(project) => is_same(project, &record.project),
        }
    }
}

/// Which checkpoints are asked for; newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoints {
    /// Only of this environment.
    pub environment: Option<String>,
    /// Only of this project.
    pub project: Option<Project>,
    /// Only with this tag.
    pub tag: Option<String>,
    /// Only the one whose id begins so.
    pub id: Option<String>,
    /// At most this many.
    pub limit: u32,
}

impl Checkpoints {
    pub(super) fn includes(&self, project: &Project, checkpoint: &Checkpoint) -> bool {
        let (environment, id) = (&checkpoint.environment, checkpoint.id.to_string());
        self.environment.iter().all(|one| one == environment)
            && self.project.iter().all(|one| is_same(one, project))
            && self.tag.iter().all(|tag| checkpoint.tags.contains(tag))
            && self.id.iter().all(|start| id.starts_with(start))
    }
}

/// Whether both are the same directory on the same machine.
pub(super) fn is_same(one: &Project, other: &Project) -> bool {
    one.hash == other.hash && one.host == other.host
}

/// An agent process that a run started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentRecord {
    /// The run that started it.
    pub run: RunId,
    /// The iteration it lived in.
    pub iteration: IterationId,
    /// The process: it leads its own group.
    pub process: ProcessStamp,
}

/// A checkpoint as far as it must be known to forget it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Saved {
    /// Its id.
    pub id: Uuid,
    /// What it is filed under.
    pub environment: String,
    /// The hash of its project.
    pub project: String,
    /// When it was saved.
    pub created_at: DateTime<Utc>,
}

/// How the store is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Health {
    /// Where it is, without secrets.
    pub place: String,
    /// Its schema version; none when it cannot be asked.
    pub schema: Option<i64>,
    /// Why it cannot be used now.
    pub error: Option<String>,
    /// Writes that wait in memory.
    pub queued: usize,
    /// Bytes that wait in memory.
    pub queued_bytes: usize,
    /// Writes that found no room to wait in, or that were refused late, and are lost.
    pub lost: u64,
}
