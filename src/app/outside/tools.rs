//! What the hosted agent asks for by its tools. It is an observation: figures are read, what it says is kept as a signal of its
//! text is, and a reboot that it asks for is shown to a person, who decides.

use crate::{
    api::wire::{Reply, ToolReply, UsageQuery},
    bridge::{Caller, Tool},
    handoff::signal::Signal,
    redact::redact,
    transcript::Tokens,
};

use crate::app::{
    draft::{scratchpad, signal},
    effect::Effect,
    event::CallId,
    model::{Model, reboot::Wish},
    outside::report,
    reboot,
};

/// How much of the handoff is shown, in characters: 1 500 tokens.
const PREVIEW: usize = 6_000;

/// What the agent is answered: the tool's words, or why nothing was done.
type Said = Result<String, String>;

/// The agent calls a tool.
pub fn called(model: &mut Model, call: CallId, caller: Caller, tool: Tool) -> Vec<Effect> {
    let (said, mut effects) = if is_ours(model, caller) {
        run(model, tool)
    } else {
        let why = "this session has been left for another one: nothing was kept";
        (Err(why.to_owned()), Vec::new())
    };
    let reply = match said {
        Ok(text) => Reply::Tool(ToolReply { text }),
        Err(why) => Reply::Refused { why },
    };
    effects.insert(0, Effect::Answer(call, reply));
    effects
}

/// Whether the present agent calls. One that says less about itself is believed.
fn is_ours(model: &Model, caller: Caller) -> bool {
    let iteration = model.session.pane.get();
    caller
        .session
        .is_none_or(|session| session == model.session.id)
        && caller.iteration.is_none_or(|number| number == iteration)
}

fn run(model: &mut Model, tool: Tool) -> (Said, Vec<Effect>) {
    match tool {
        Tool::Context => (Ok(context(model)), Vec::new()),
        Tool::HandoffPreview => (Ok(preview(model)), Vec::new()),
        Tool::Note { text } => match scratchpad::noted(model, &redact(&text)) {
            Ok(effects) => kept(effects.is_some(), effects.unwrap_or_default()),
            Err(why) => (Err(why), Vec::new()),
        },
        Tool::Decision { text, why } => {
            let (text, why) = (masked(&text), masked(&why));
            let (new, effects) = signal::by_tool(model, Signal::Decision { text, why });
            kept(new, effects)
        }
        Tool::Done { item } => {
            let (new, effects) = signal::by_tool(model, Signal::Done(masked(&item)));
            kept(new, effects)
        }
        Tool::RequestReboot { reason } => request_reboot(model, &masked(&reason)),
    }
}

fn masked(text: &str) -> String {
    redact(text).into_owned()
}

fn kept(new: bool, effects: Vec<Effect>) -> (Said, Vec<Effect>) {
    let said = if new { "kept" } else { "known already" };
    (Ok(said.to_owned()), effects)
}

fn context(model: &Model) -> String {
    let usage = report::usage(model, UsageQuery::default());
    let (Some(used), Some(usable), Some(percent)) = (usage.used, usage.usable, usage.percent)
    else {
        return "not known yet".to_owned();
    };
    let line = model.session.guard.assess(Tokens(used)).lines;
    let line = line.at(crate::guard::Threshold::Compact);
    let turns = report::turns_left(model).map_or_else(String::new, |turns| format!(", {turns}"));
    format!(
        "{used} of {usable} usable tokens in use ({percent:.0} %){turns}; a reboot is suggested from {line} on",
        line = line.0
    )
}

/// The handoff without its first line: with the mark in it a delivery could be forged.
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

/// Shows a person that the agent asks. Who decides, and when, stays as it is.
fn request_reboot(model: &mut Model, reason: &str) -> (Said, Vec<Effect>) {
    if let Some(attempt) = &model.reboot.attempt {
        let said = format!("a reboot is under way already: {}", attempt.step());
        return (Ok(said), Vec::new());
    }
    if reboot::wish(model).is_some() {
        let said = "you have asked already: go on working until the human decides";
        return (Ok(said.to_owned()), Vec::new());
    }
    model.reboot.wish = Some(Wish {
        session: model.session.id,
        reason: reason.to_owned(),
    });
    let mut said = "The agent asks for a reboot.".to_owned();
    if !reason.is_empty() {
        said = format!("The agent asks for a reboot: {reason}");
    }
    let now = model.now.wall;
    // The banner stands until it is answered; when it began to is read here.
    model.view.log(&said, false, now);
    let answer = "asked: the human decides, go on working until then";
    (Ok(answer.to_owned()), vec![Effect::Call(said)])
}
