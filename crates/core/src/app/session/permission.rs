//! Permissions that the agent asks for, answered from afar while their dialog is open: the first answer counts.
//!
//! The hook of a permission is held for as long as its question is open. It is let go without an answer once the dialog is answered at
//! the desk, and never answered by a time-out or by a rule of ours.

use crate::api::wire::{PermissionAnswer, Reply};
use pitstop_agent::PermissionRequest;

use crate::app::{
    consequences::Consequences,
    effect::Effect,
    event::CallId,
    model::{activity::Permission, session::Session},
    refusal::Refusal,
};

impl Session {
    /// Takes in the permission of a dialog that the agent has opened. Returns the hooks that are not waited for: they go their own way.
    pub(in crate::app) fn permission_asked(
        &mut self,
        call: Option<CallId>,
        request: PermissionRequest,
    ) -> impl Iterator<Item = CallId> + use<> {
        let question = self.agent.activity.question.as_mut();
        let question = question.filter(|_| request.session == self.id);
        let may_wait = request.is_plain && request.whole && !request.by_subagent;
        let waits = call.filter(|_| may_wait && question.is_some());
        let before = question.and_then(|question| {
            self.held_permission = waits;
            question.permission.replace(Permission {
                tool: request.tool,
                input: request.input,
                call: waits,
            })
        });
        let before = before.and_then(|one| one.call);
        before.into_iter().chain(call.xor(waits))
    }

    /// Takes in that a hook has gone before it was answered.
    pub(in crate::app) fn permission_gone(&mut self, call: CallId) {
        let question = self.agent.activity.question.as_mut();
        if let Some(permission) = question.and_then(|one| one.permission.as_mut())
            && permission.call == Some(call)
        {
            permission.call = None;
        }
        self.held_permission.take_if(|held| *held == call);
    }

    /// Stops holding a permission hook whose question is no longer open, and returns its call, which is to be answered.
    pub(in crate::app) fn release_permission(&mut self) -> Option<CallId> {
        let question = self.agent.activity.question.as_ref();
        let waits = question.and_then(|one| one.permission.as_ref()?.call);
        self.held_permission.take_if(|held| waits != Some(*held))
    }

    /// Answers the permission for a person.
    pub(in crate::app) fn decide(
        &mut self,
        how: PermissionAnswer,
    ) -> Result<Consequences, Refusal> {
        let question = self.agent.activity.question.as_mut();
        let permission = question.and_then(|one| one.permission.as_mut());
        let permission = permission.ok_or(Refusal::NoPermission)?;
        let call = permission.call.take().ok_or(Refusal::AtTheDesk)?;
        let what = match how {
            PermissionAnswer::Allow => "allowed",
            PermissionAnswer::Deny => "denied",
        };
        let mut follows = Consequences::from([Effect::Answer(call, Reply::Decided(how))]);
        follows.info(format!("{} was {what} from afar", permission.tool));
        self.held_permission = None;
        self.close_question(&mut follows.effects);
        Ok(follows)
    }
}
