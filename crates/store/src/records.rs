//! The questions to the store and its answers, as plain data.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use pitstop_core::lineage::{
    EndReason, Iteration, IterationId, ProcessStamp, Project, RunId, checkpoint::Checkpoint,
};

/// One run of a supervisor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Its name.
    pub run: RunId,
    /// The project that it works on.
    pub project: Project,
    /// The supervisor's process.
    pub process: ProcessStamp,
    /// The agent, as the user names it.
    pub agent: String,
    /// The version of this program.
    pub version: String,
    /// The task of an autonomous run.
    pub task: Option<String>,
    /// The time at which it began.
    pub started_at: DateTime<Utc>,
    /// The time at which it ended; none while it lives, or if it died.
    pub ended_at: Option<DateTime<Utc>>,
    /// The reason why it ended.
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

/// The choice of the runs whose history is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryOf {
    /// The history of one run.
    Run(RunId),
    /// The history of every run in a project, newest first.
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

/// The choice of the checkpoints that are asked for; newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoints {
    /// The only environment, if one is given.
    pub environment: Option<String>,
    /// The only project, if one is given.
    pub project: Option<Project>,
    /// The tag that they must have, if one is given.
    pub tag: Option<String>,
    /// The beginning that their id must have, if one is given.
    pub id: Option<String>,
    /// The largest number of checkpoints.
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

/// Reports whether both are the same directory on the same machine.
pub(super) fn is_same(one: &Project, other: &Project) -> bool {
    one.hash == other.hash && one.host == other.host
}

/// An agent process that a run started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// The run that started it.
    pub run: RunId,
    /// The iteration it lived in.
    pub iteration: IterationId,
    /// The process: it leads its own group.
    pub process: ProcessStamp,
}

/// The part of a checkpoint that must be known to forget it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Saved {
    /// Its id.
    pub id: Uuid,
    /// The environment that it is filed under.
    pub environment: String,
    /// The hash of its project.
    pub project: String,
    /// The time at which it was saved.
    pub created_at: DateTime<Utc>,
}

/// The state of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Health {
    /// The place of the database, without secrets.
    pub place: String,
    /// Its schema version; none when it cannot be asked.
    pub schema: Option<i64>,
    /// The reason why it cannot be used now.
    pub error: Option<String>,
    /// The number of writes that wait in memory.
    pub queued: usize,
    /// The number of writes that found no room to wait in, or that were refused late, and are lost.
    pub lost: u64,
}
