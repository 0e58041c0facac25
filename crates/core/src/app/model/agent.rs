//! The known state of the agent's process and of its work.

use chrono::{DateTime, Utc};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::{api::wire::AgentState, app::event::PaneEvent, lineage::ProcessStamp};
use pitstop_agent::{
    Background, Failure, PromptCache, RateLimit, TimedPrompt,
    bridge::{ToolsBy, UnsentPrompt},
    claude::prompt_box::PromptBox,
};
use pitstop_base::clock::At;
use pitstop_terminal::{input::HostInput, screen::Progress};
use pitstop_transcript::human::RefusedPrompt;

use super::{
    activity::{Activity, Elsewhere},
    bridge::Bridge,
    daemon::DaemonState,
    pastes::Pastes,
};

/// The known state of the agent's process and of its work.
#[derive(Clone, Debug, Default)]
pub struct AgentView {
    /// The agent's state.
    pub state: AgentState,
    /// Its process.
    pub process: Option<ProcessStamp>,
    /// Its version, from the status line.
    pub version: Option<String>,
    /// The display name of the model.
    pub model: Option<String>,
    /// The turn and the question that are open, as far as is known.
    pub activity: Activity,
    /// The prompt that a hook of the user's has refused last, as long as no other has followed it.
    pub(in crate::app) refused: Option<RefusedPrompt>,
    /// The prompt box as it was last seen. Its text is followed only while something waits for it.
    pub prompt_box: PromptBox,
    /// The model as the client names it to itself, with its window mark (`…[1m]`).
    pub model_id: Option<String>,
    /// The model that a person has chosen in the client, as its `--model` takes it; later processes are started with it.
    pub chosen_model: Option<String>,
    /// True if it shows its list of sessions (the agent view) instead of the session.
    pub listing: bool,
    /// The state that it was in when it was stopped or suspended itself (Ctrl-Z), and that it has again once it goes on. Until then
    /// its state is unknown.
    pub suspended: Option<AgentState>,
    /// The work that the last turn left running in the background.
    pub background: Background,
    /// The prompts that the client gives again and again, as the last Stop hook names them.
    pub schedule: Vec<TimedPrompt>,
    /// The state of the sessions that went to the client's daemon.
    pub daemon: DaemonState,
    /// True if it takes a paste as one piece. Otherwise each line of a paste is an Enter.
    pub takes_pastes: bool,
    /// The progress that it reports.
    pub progress: Option<Progress>,
    /// The text that a person has put aside from the prompt box (`Ctrl-S`), with the client's marks in it. It is gone with the process.
    pub put_aside: Option<String>,
    /// True if the last key that a person has typed puts the text aside.
    puts_aside: bool,
    /// True if it has asked for mouse events.
    pub takes_mouse: bool,
    /// True if it has the whole screen of the pane, of which nothing is kept that has scrolled away.
    pub full_screen: bool,
    /// Its permission mode, as its hooks report it.
    pub mode: Option<String>,
    /// The time at which the human last typed into the pane.
    pub typed_at: Option<At>,
    /// True if the agent's prompt may hold text that was not submitted.
    pub draft: bool,
    /// The long texts that a person has pasted into its prompt.
    pub(in crate::app) pastes: Pastes,
    /// True if the last key was a backslash, after which Enter is a new line.
    pub backslash: bool,
    /// The prompt cache as the status line last reported it.
    pub prompt_cache: Option<PromptCache>,
    /// The usage limits as the agent last reported them, each with the length of its window.
    pub limits: Vec<(&'static str, RateLimit)>,
    /// The time at which the exhausted usage limits start again.
    pub limit_reset: Option<DateTime<Utc>>,
    /// True if it takes no prompt because its window is full, which is the limit that it is at then.
    pub window_full: bool,
    /// The failure of the last turn, with the client's message about it, until the next one; one of the account until a turn ends well.
    pub(in crate::app) failed: Option<(Failure, String)>,
    /// The number of turns that ended in this iteration.
    pub turns: u32,
    /// A description of how the process ended, while none runs.
    pub exit: Option<String>,
    /// The assistant's last message.
    pub last_message: Option<String>,
    /// True if a hook has arrived in this iteration.
    pub hooked: bool,
    /// True if a hook has reported that its session began.
    pub started: bool,
    /// The state of the client's own side of the session.
    pub bridge: Bridge,
    /// The way in which it was given its tools.
    pub tools: ToolsBy,
    /// The reason why the client's compactions cannot be answered, if that was found out in this process.
    pub unanswered: Option<String>,
    /// True if the client of this run was given mods and has not run them.
    pub without_mods: bool,
    /// True if the supervisor has switched its auto-compaction off.
    pub holds_compaction: bool,
}

impl AgentView {
    /// Leaves the session to the supervisor again after a person was at it, and has decided for it though another process may go on
    /// with it.
    pub(in crate::app) fn hand_back(&mut self) {
        self.typed_at = None;
        if self.state == AgentState::Elsewhere {
            self.state = AgentState::Idle;
            self.activity.elsewhere = Elsewhere::default();
        }
    }

    /// Answers no compaction of this process any more, for this reason.
    pub(in crate::app) fn leave_unanswered(&mut self, why: &str) {
        self.unanswered = Some(why.to_owned());
    }

    /// Takes in that the client has another conversation, or less of it: it takes prompts again.
    pub(in crate::app) fn window_emptied(&mut self) {
        if self.window_full && self.state == AgentState::Limit {
            self.end_turn(AgentState::Idle);
        }
    }

    /// Takes in that no process was started: there is none that would have to be ended.
    pub(in crate::app) const fn not_started(&mut self) {
        self.state = AgentState::Exited;
    }

    /// Takes in a mode of the pane that the agent has set.
    pub(in crate::app) const fn mode_set(&mut self, event: &PaneEvent) {
        match *event {
            PaneEvent::PasteModeSet { on } => self.takes_pastes = on,
            PaneEvent::MouseModeSet { on } => self.takes_mouse = on,
            PaneEvent::FullScreenSet { on } => self.full_screen = on,
            _ => {}
        }
    }

    /// Notes that a text was put into the prompt box, where it waits for a person.
    pub(in crate::app) const fn prompt_filled(&mut self) {
        self.draft = true;
    }

    /// Notes that a person was warned of a text that may be in the prompt box. Where that cannot be seen, they know best from now on.
    pub(in crate::app) const fn person_warned(&mut self) {
        self.draft = false;
    }

    /// Notes a key that a person has typed into the pane.
    pub(in crate::app) fn typed(&mut self, key: &KeyEvent, at: At) {
        self.typed_at = Some(at);
        let enter = key.code == KeyCode::Enter && key.modifiers.is_empty();
        let control = |c| key.code == KeyCode::Char(c) && key.modifiers == KeyModifiers::CONTROL;
        let clears = control('c');
        let holds = |draft: &UnsentPrompt| !draft.text.is_empty();
        self.puts_aside = control('s') && self.bridge.reported.draft.as_ref().is_some_and(holds);
        // Anything else may leave text in the prompt, a recalled one too; a backslash makes Enter a new line.
        self.draft = !clears && (!enter || (self.draft && self.backslash));
        self.backslash = key.code == KeyCode::Char('\\');
        if enter {
            self.activity.elsewhere.submitted();
        }
    }

    /// Takes in the text that the client's own side reports of the prompt box.
    pub(in crate::app) fn box_reported(&mut self, now: UnsentPrompt) {
        let is_put_aside = now.text.is_empty() && std::mem::take(&mut self.puts_aside);
        let back = |aside: &mut String| now.text.contains(&*aside);
        self.put_aside.take_if(back);
        let before = self.bridge.reported.draft.replace(now);
        if let Some(before) = before.filter(|_| is_put_aside) {
            self.put_aside = Some(before.text);
        }
    }

    /// Takes in that the agent was given this prompt: what was put aside may be in it.
    pub(in crate::app) fn prompt_given(&mut self, prompt: &str) {
        let pastes = &self.pastes;
        let given = |aside: &mut String| prompt.contains(pastes.expand(aside).trim());
        self.put_aside.take_if(given);
    }

    /// Reports whether a person has typed something that ends with the process, as far as is known.
    pub fn has_unsent(&self) -> bool {
        self.has_draft() || self.put_aside.is_some()
    }

    /// Notes the prompt with which its process is started, if there is one: it is of no other process, also where the transcript shows
    /// it before the hook does.
    pub(in crate::app) const fn given_at_start(&mut self, prompt: Option<&str>) {
        if prompt.is_some() {
            self.activity.elsewhere.submitted();
        }
    }

    /// Notes a piece of a person's paste into the pane.
    pub(in crate::app) fn pasted(&mut self, piece: &HostInput, at: At) {
        self.pastes.take(piece);
        self.typed_at = Some(at);
        self.draft = true;
    }

    /// Reports whether a person has typed since then.
    pub(in crate::app) fn is_typed_since(&self, since: At) -> bool {
        let typed = |typed: At| typed.since_start >= since.since_start;
        self.typed_at.is_some_and(typed)
    }

    /// Returns what keeps a text from being typed into the prompt box now.
    pub(in crate::app) const fn text_refusal(&self) -> Option<&'static str> {
        match self.prompt_box {
            PromptBox::Absent | PromptBox::Dialog(_) => {
                Some("the agent's prompt box is not on the screen")
            }
            PromptBox::Holds(_) => {
                Some("the agent's prompt box holds a text that was not submitted")
            }
            // Without paste mode each line of a text would be submitted by itself.
            PromptBox::Empty if !self.takes_pastes => Some("the agent is not ready for a text"),
            PromptBox::Empty => None,
        }
    }

    /// Reports whether the agent's prompt is known to hold text that was not submitted: by the screen, else by the keys.
    pub const fn has_draft(&self) -> bool {
        match self.prompt_box {
            PromptBox::Empty => false,
            PromptBox::Holds(_) => true,
            PromptBox::Absent | PromptBox::Dialog(_) => self.draft,
        }
    }
}
