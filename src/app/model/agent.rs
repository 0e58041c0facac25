//! What is known of the agent's process and its doings.

use chrono::{DateTime, Utc};

use crate::{
    agent::{Background, PromptCache, claude::prompt_box::PromptBox},
    api::wire::AgentState,
    bridge::ToolsBy,
    clock::At,
    lineage::ProcessStamp,
    pane::screen::Progress,
};

use super::{
    activity::{Activity, Elsewhere},
    bridge::Bridge,
    daemon::DaemonState,
};

/// What we know of the agent's process and its doings.
#[derive(Clone, Debug, Default)]
pub struct AgentView {
    /// What it is doing.
    pub state: AgentState,
    /// Its process.
    pub process: Option<ProcessStamp>,
    /// Its version, from the status line.
    pub version: Option<String>,
    /// The model's name for people.
    pub model: Option<String>,
    /// The turn and the question that are open, as far as is known.
    pub activity: Activity,
    /// The prompt box as it was seen last. Its text is followed only while something waits for it.
    pub prompt_box: PromptBox,
    /// The model as the client names it to itself, with its window mark (`…[1m]`).
    pub model_id: Option<String>,
    /// Whether it shows its list of sessions (the agent view) instead of the session.
    pub listing: bool,
    /// What the last turn left going on in the background.
    pub background: Background,
    /// Whether the session has gone to the client's daemon.
    pub daemon: DaemonState,
    /// Whether it takes a paste as one piece. Without that each line of one is an Enter.
    pub takes_pastes: bool,
    /// How far it says that it is.
    pub progress: Option<Progress>,
    /// Whether it has asked for the mouse.
    pub takes_mouse: bool,
    /// Its permission mode, as its hooks say.
    pub mode: Option<String>,
    /// When the human last typed into the pane.
    pub typed_at: Option<At>,
    /// Whether the agent's prompt may hold text that was not submitted.
    pub draft: bool,
    /// Whether the last key was a backslash, after which Enter is a new line.
    pub backslash: bool,
    /// The prompt cache as the status line last reported it.
    pub prompt_cache: Option<PromptCache>,
    /// Usage limits as the agent reports them, for display.
    pub limits: Vec<String>,
    /// When the usage limits that are used up start again.
    pub limit_reset: Option<DateTime<Utc>>,
    /// Turns that ended in this iteration.
    pub turns: u32,
    /// How the process ended, while there is none.
    pub exit: Option<String>,
    /// The last thing the assistant said.
    pub last_message: Option<String>,
    /// Whether any hook has arrived in this iteration.
    pub hooked: bool,
    /// The client's own side of the session.
    pub bridge: Bridge,
    /// How it was given its tools.
    pub tools: ToolsBy,
    /// Why the client's compactions cannot be answered, where that was found out in this process.
    pub unanswered: Option<String>,
    /// Whether the client of this run was given mods and has not run them.
    pub without_mods: bool,
    /// Whether we have switched its auto-compaction off.
    pub holds_compaction: bool,
}

impl AgentView {
    /// A person has decided for the session here, though another process goes on with it.
    pub(in crate::app) fn stay_here(&mut self) {
        if self.state == AgentState::Elsewhere {
            self.state = AgentState::Idle;
            self.activity.elsewhere = Elsewhere::default();
        }
    }

    /// Whether the agent's prompt holds text that was not submitted, as far as is known: by the screen, else by the keys.
    #[must_use]
    pub const fn has_draft(&self) -> bool {
        match self.prompt_box {
            PromptBox::Empty => false,
            PromptBox::Holds(_) => true,
            PromptBox::Absent => self.draft,
        }
    }
}
