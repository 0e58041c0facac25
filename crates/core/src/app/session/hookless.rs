//! An agent whose hooks are silent, or of which some are lost: its title, its screen and its transcript show what it does.
//!
//! A new prompt in the transcript begins a turn, and the result of a call shows that it has run, as a hook would have reported. What
//! both report counts once. Everything else is [`activity`](super::activity)'s.

use crate::api::wire::AgentState;
use pitstop_agent::{ToolCall, ToolOutput};
use pitstop_base::clock::At;

use crate::app::{
    effect::Effect,
    event::{Ran, TranscriptFacts},
    model::{activity::TitleState, draft::HandoffDraft, seen_calls::ShownCall, session::Session},
    session::turn::TurnEvent,
};

impl HandoffDraft {
    /// Takes in an ended call that the transcript shows. Returns it if no hook has reported it. Hooks report no command of the human's.
    pub(in crate::app) fn call_shown(
        &mut self,
        ran: Ran,
        is_hookless: bool,
        now: At,
    ) -> Option<(ToolCall, ToolOutput)> {
        let shown = match &ran.call {
            Some(call) => self.seen_calls.by_transcript(call, ran.by_subagent),
            None if is_hookless => ShownCall::New,
            None => ShownCall::Known,
        };
        let is_shell = ran.tool.is_none();
        let is_own_shell = is_shell && !ran.by_subagent;
        if shown == ShownCall::Known || shown == ShownCall::Overtaken && !is_own_shell {
            return None;
        }
        let call = ToolCall {
            id: ran.call,
            name: ran.tool.unwrap_or_else(|| "Bash".to_owned()),
            command: is_shell.then_some(ran.command),
            directory: ran.directory,
            file: ran.file,
            by_subagent: ran.by_subagent,
            ..ToolCall::default()
        };
        let output = ToolOutput {
            stdout: ran.output,
            failed: ran.failed,
            ..ToolOutput::default()
        };
        self.moments.tool_started(&call);
        if shown == ShownCall::New {
            return Some((call, output));
        }
        // The outcome of its tests is newer than what came later.
        self.take_printed(&call, &output, now);
        None
    }
}

impl Session {
    /// Takes in that the transcript has grown from these facts. Returns the turn that it begins.
    pub(in crate::app) fn turns_shown(
        &mut self,
        before: &TranscriptFacts,
        now: At,
        effects: &mut Vec<Effect>,
    ) -> Option<TurnEvent> {
        let hookless = self.is_hookless();
        let mut begun = None;
        if self.has_more_turns(before) {
            self.agent.activity.closed = false;
            begun = if hookless {
                self.begin_seen_turn(now)
            } else {
                self.begin_unreported(self.shows_end(before))
            };
        }
        let open = matches!(
            self.agent.state,
            AgentState::Starting | AgentState::Busy | AgentState::Unknown
        );
        if hookless && open {
            self.look_again(effects);
        }
        begun
    }

    /// Looks for the end of a turn that has just begun, if the transcript shows both at once.
    pub(in crate::app) fn end_shown(
        &mut self,
        has_begun: bool,
        before: &TranscriptFacts,
        effects: &mut Vec<Effect>,
    ) {
        if has_begun && self.shows_end(before) {
            self.agent.activity.closings = before.closings;
            self.look_again(effects);
        }
    }

    fn shows_end(&self, before: &TranscriptFacts) -> bool {
        let now = &self.transcript;
        now.closing.is_some() && now.closings > before.closings
    }

    /// Reports whether the transcript shows more turns than these facts. The first that are read may be those of a session that is
    /// resumed. Without any hooks the title has shown the first.
    pub(in crate::app) fn has_more_turns(&self, before: &TranscriptFacts) -> bool {
        let now = &self.transcript;
        let is_known = before.turns > 0 || (now.old_turns.is_some() && !self.is_hookless());
        is_known && now.turns > before.turns.max(now.old_turns.unwrap_or(0))
    }

    /// Begins the turn of a prompt that was submitted here and that the transcript shows before its hook, once it is seen to run or
    /// its end is seen as well.
    pub(in crate::app) fn begin_unreported(&mut self, is_over: bool) -> Option<TurnEvent> {
        let agent = &mut self.agent;
        let reported = agent.bridge.of(self.id).and_then(|one| one.turn);
        let activity = &mut agent.activity;
        let spins = activity.title == Some(TitleState::Spins);
        let is_over = is_over && !activity.hook_due;
        let runs = activity.turn || is_over || reported.unwrap_or(spins);
        let begins = runs && activity.calls.is_empty() && activity.elsewhere.begin_turn();
        begins.then_some(TurnEvent::Prompted)
    }

    /// Begins a turn, as far as can be seen.
    pub(in crate::app) fn begin_seen_turn(&mut self, now: At) -> Option<TurnEvent> {
        let rests = matches!(
            self.agent.state,
            AgentState::Starting | AgentState::Idle | AgentState::Unknown
        );
        rests.then(|| {
            self.begin_turn(now);
            TurnEvent::Begun
        })
    }
}
