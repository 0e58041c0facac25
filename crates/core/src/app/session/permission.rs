//! Permissions that the agent asks for, answered from afar while their dialog is open: the first answer counts.
//!
//! The hook of a permission is held for as long as its question is open. It is let go without an answer once the dialog is answered at
//! the desk, and never answered by a time-out or by a rule of ours.

use crate::api::wire::{NeedKind, PermissionAnswer, PermissionBody, Reply};
use pitstop_agent::{AgentEvent, PermissionRequest};

use crate::app::{
    event::CallId,
    model::{Model, activity::Permission, session::Session},
    refusal::Refusal,
    session::agent,
};

/// Takes in that the agent asks for a permission.
pub fn asked(model: &mut Model, call: Option<CallId>, request: PermissionRequest) {
    let session = model.session.id;
    let opened = AgentEvent::DialogOpened {
        session: request.session,
        about: request.tool.clone(),
    };
    agent::said(model, opened);
    let question = model.session.agent.activity.question.as_mut();
    let Some(question) = question.filter(|_| request.session == session) else {
        if let Some(call) = call {
            model.answer(call, Reply::Accepted);
        }
        return;
    };
    let may_wait = request.is_plain && request.whole && !request.by_subagent;
    let waits = call.filter(|_| may_wait);
    let before = question.permission.replace(Permission {
        tool: request.tool,
        input: request.input,
        call: waits,
    });
    model.session.held_permission = waits;
    // A hook that is not waited for goes its own way.
    let gone = [before.and_then(|one| one.call), call.filter(|_| !may_wait)];
    for call in gone.into_iter().flatten() {
        model.answer(call, Reply::Accepted);
    }
}

impl Session {
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

    /// Lets the hook go whose question is not open any more.
    pub(in crate::app) fn release_permission(&mut self) -> Option<CallId> {
        let question = self.agent.activity.question.as_ref();
        let waits = question.and_then(|one| one.permission.as_ref()?.call);
        self.held_permission.take_if(|held| waits != Some(*held))
    }
}

/// Answers the permission for a person.
pub fn decide(model: &mut Model, body: &PermissionBody) -> Result<(), Refusal> {
    let mut needs = model.outside.needs().iter();
    let is_open = needs.any(|need| need.kind == NeedKind::Permission && need.id == body.id);
    let question = model.session.agent.activity.question.as_mut();
    let permission = question.and_then(|one| one.permission.as_mut());
    let Some(permission) = permission.filter(|_| is_open) else {
        return Err(Refusal::NoPermission);
    };
    let Some(call) = permission.call.take() else {
        return Err(Refusal::AtTheDesk);
    };
    let tool = permission.tool.clone();
    model.session.held_permission = None;
    model.answer(call, Reply::Decided(body.answer));
    model.session.close_question(&mut model.scratch.effects);
    let what = match body.answer {
        PermissionAnswer::Allow => "allowed",
        PermissionAnswer::Deny => "denied",
    };
    model.info(format!("{tool} was {what} from afar"));
    Ok(())
}
