//! The tools that the hosted agent calls. They are observations: figures are read, what the agent reports is kept as a signal in
//! its text is, and a reboot that it asks for is shown to a person, who decides.

use crate::api::wire::{Reply, ToolReply, UsageQuery};
use pitstop_agent::bridge::{Caller, Tool};
use pitstop_base::{format::percent, redact::redact};
use pitstop_handoff::signal::Signal;
use pitstop_transcript::Tokens;

use crate::app::{
    event::CallId,
    forecast,
    model::{CarryOut, Model},
    outside::report,
    reboot,
    refusal::Refusal,
};

/// The part of the handoff that is shown, in characters: 1 500 tokens.
const PREVIEW: usize = 6_000;

/// Answers a tool call of the agent.
pub fn called(model: &mut Model, call: CallId, caller: Caller, tool: Tool) {
    let now = model.now;
    let kept = match tool {
        _ if !is_ours(model, caller) => Err(Refusal::SessionLeft),
        Tool::Context => return model.answer(call, said(describe_usage(model))),
        Tool::HandoffPreview => return model.answer(call, said(preview(model))),
        Tool::RequestReboot { reason } => {
            let vain = asks_in_vain(model);
            if vain.is_none() {
                model.reboot.agent_asked(model.session.id, masked(&reason));
            }
            let asked = "asked: the human decides, go on working until then";
            return model.answer(call, said(vain.unwrap_or_else(|| asked.to_owned())));
        }
        Tool::Note { text } => (model.draft.notes.note(&redact(&text), now)).map_err(Refusal::from),
        Tool::Decision { text, why } => {
            let (text, why) = (masked(&text), masked(&why));
            Ok(model.draft.take_given(Signal::Decision { text, why }, now))
        }
        Tool::Done { item } => Ok(model.draft.take_given(Signal::Done(masked(&item)), now)),
    };
    let reply = match kept {
        Ok(Some(follows)) => {
            follows.carry_out(model);
            said("kept".to_owned())
        }
        Ok(None) => said("known already".to_owned()),
        Err(why) => Reply::Refused {
            why: why.to_string(),
        },
    };
    model.answer(call, reply);
}

fn said(text: String) -> Reply {
    Reply::Tool(ToolReply { text })
}

/// Reports whether the present agent calls. A caller that gives less about itself is believed.
fn is_ours(model: &Model, caller: Caller) -> bool {
    let iteration = model.session.pane().get();
    caller
        .session
        .is_none_or(|session| session == model.session.id)
        && caller.iteration.is_none_or(|number| number == iteration)
}

fn masked(text: &str) -> String {
    redact(text).into_owned()
}

/// Returns one line about the tokens in use, what is left, and the line from which a reboot is suggested.
fn describe_usage(model: &Model) -> String {
    let usage = report::usage(model, UsageQuery::default());
    let (Some(used), Some(usable)) = (usage.used, usage.usable) else {
        return "not known yet".to_owned();
    };
    let assessed = model.session.guard.assess(Tokens(used));
    let line = assessed.lines.at(crate::guard::Threshold::Compact);
    let percent = percent(assessed.percent);
    let forecast = forecast::report(model);
    let left = forecast.as_ref().and_then(forecast::left);
    let left = left.map_or_else(String::new, |left| format!(", {left}"));
    format!(
        "{used} of {usable} usable tokens in use ({percent} %){left}; a reboot is suggested from {line} on",
        line = line.0
    )
}

/// Returns the handoff without its first line: with the mark in it a delivery could be forged.
fn preview(model: &Model) -> String {
    let body = model.draft.handoff.current().body();
    if body.trim().is_empty() {
        return "there is no handoff yet".to_owned();
    }
    let shown: String = body.chars().take(PREVIEW).collect();
    let left = body.chars().count() - shown.chars().count();
    if left == 0 {
        return shown;
    }
    format!("{shown}\n\n… and {left} characters more")
}

/// Returns why a person need not be shown that the agent asks for a reboot, if so. Who decides, and when, stays as it is.
fn asks_in_vain(model: &Model) -> Option<String> {
    if let Some(step) = model.reboot.step() {
        return Some(format!("a reboot is under way already: {step}"));
    }
    let asked = "you have asked already: go on working until the human decides";
    reboot::wish(model).map(|_| asked.to_owned())
}
