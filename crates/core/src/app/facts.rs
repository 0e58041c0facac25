//! The questions that features ask about one another: what blocks a reboot, whether a text may be typed, who is at the keyboard.
//!
//! Everything here only reads the model, so a feature that asks need not know the feature that it asks about.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{
    api::wire::AgentState,
    autopilot::{Spent, prompt},
    config::RebootMode,
    guard::{Figure, Source, Threshold},
    lineage::{Cause, EndReason, Iteration, TokenTotals, Way, journal::Step},
};
use pitstop_agent::{
    TimedPrompt,
    bridge::Link,
    claude::prompt_box::{self, PromptBox},
};
use pitstop_base::{
    clean,
    clock::{self, At},
    redact::redact,
};
use pitstop_transcript::{
    Tokens,
    prompts::{is_handoff, without_marks},
};

use crate::app::{
    effect::Effect,
    event::Document,
    model::{
        Model,
        activity::TitleState,
        reboot::{Approval, Attempt, Held, Kind, Phase},
        unsent::Unsent,
    },
};

/// Returns what the agent waits for, or the reason that nothing is known, in words.
pub fn agent_reason(model: &Model) -> Option<String> {
    let agent = &model.session.agent;
    match agent.state {
        AgentState::Dialog => {
            let question = agent.activity.question.as_ref();
            question.map(|one| match &one.permission {
                Some(permission) => permission.subject(),
                None => one.about.clone(),
            })
        }
        AgentState::Unknown if agent.suspended.is_some() => {
            Some("it is suspended (Ctrl-Z): any key in the pane continues it".to_owned())
        }
        AgentState::Unknown if agent.listing => {
            Some("its agent view is open, Esc returns to the session".to_owned())
        }
        AgentState::Unknown if agent.activity.dialog_seen => {
            Some("a dialog or a list is open (seen by the bridge)".to_owned())
        }
        AgentState::Unknown if agent.activity.box_seen => {
            Some("a dialog, a list or a viewer has the place of the prompt box".to_owned())
        }
        AgentState::Unknown => Some("a tool call has no result and the title is calm".to_owned()),
        AgentState::Elsewhere => {
            Some("another process has added a turn to this session".to_owned())
        }
        AgentState::Idle if !agent.background.is_empty() => Some(agent.background.to_string()),
        AgentState::Limit if agent.window_full => Some("its context window is full".to_owned()),
        // In UTC, as everything in a report.
        AgentState::Limit => limit_reset(model).map(|reset| {
            let utc = At {
                zone: clock::UTC,
                ..model.now
            };
            format!("until {}", utc.time_of_day(reset, "%H:%M UTC"))
        }),
        AgentState::Exited if agent.daemon.goes_on => {
            Some("the session goes on in Claude Code's background".to_owned())
        }
        AgentState::Exited if waits_for_enter(model) => {
            Some(format!("its process has ended: {}", after_end(model)))
        }
        _ => None,
    }
}

/// Reports whether the agent has ended and nothing but a person brings it back.
pub fn waits_for_enter(model: &Model) -> bool {
    model.session.agent.state == AgentState::Exited
        && model.reboot.attempt.is_none()
        && model.autopilot.is_none()
}

/// Returns what Enter in the pane of an ended agent does.
pub fn after_end(model: &Model) -> &'static str {
    if has_conversation(model) {
        "Enter in its pane resumes it"
    } else {
        "Enter in its pane starts it again"
    }
}

/// Reports whether something was said in the agent's session, so that it can be resumed.
pub fn has_conversation(model: &Model) -> bool {
    let transcript = &model.session.transcript;
    transcript.turns > 0 || transcript.prompt.is_some()
}

/// Returns the time until which a usage limit holds the agent, if that is known.
pub(in crate::app) fn limit_reset(model: &Model) -> Option<DateTime<Utc>> {
    let agent = &model.session.agent;
    let held = agent.state == AgentState::Limit && !agent.window_full;
    agent.limit_reset.filter(|_| held)
}

/// Reports whether the title shows that no turn runs.
pub fn is_calm(model: &Model) -> bool {
    model.session.agent.activity.title == Some(TitleState::Calm)
}

/// A condition that blocks a reboot, and a text that is to be typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Block {
    /// A turn runs, or the agent has not reported yet that it is ready.
    Turn,
    /// Something runs in the background of the session, and would end with it.
    #[strum(serialize = "background task")]
    Background,
    /// It is not known what the agent does.
    Unknown,
    /// The agent waits for an answer.
    Dialog,
    /// Another process continues the session.
    Elsewhere,
    /// The human types.
    Typing,
    /// A document is in `$EDITOR`, and the person at it has not asked for the reboot.
    Editor,
    /// The unsent prompt cannot be read, and so would be lost.
    #[strum(serialize = "unsent prompt")]
    Unsent,
}

impl Block {
    /// Returns the event that has to happen first, as words that follow `waits`.
    pub const fn awaited(self) -> &'static str {
        match self {
            Self::Turn => "for the turn to end",
            Self::Unknown => "until it is known what the agent does",
            Self::Dialog => "for the dialog to be answered",
            Self::Typing => "for you to stop typing",
            Self::Background => "for the background task to end",
            Self::Elsewhere => "for a prompt here: the session was resumed elsewhere",
            Self::Editor => "for the editor to be left",
            Self::Unsent => "for your prompt to be submitted or cleared: it cannot be read",
        }
    }
}

/// Returns the reason that the conversation cannot be replaced inside the running client now, if so.
pub fn replace_refusal(model: &Model) -> Option<String> {
    let agent = &model.session.agent;
    if model.is_generic() {
        return Some("this agent runs no mods".to_owned());
    }
    if agent.state == AgentState::Exited {
        return Some("the agent has ended".to_owned());
    }
    if agent.bridge.of(model.session.id).is_some() {
        return agent.unanswered.clone();
    }
    Some(match &agent.bridge.link {
        Link::Absent(why) => format!("the bridge is not in force: {why}"),
        _ => "the bridge has not reported yet".to_owned(),
    })
}

/// Reports whether the client shows that a turn of its main conversation runs.
pub fn turn_runs(model: &Model) -> bool {
    let reported = model.session.agent.bridge.of(model.session.id);
    reported.is_some_and(|reported| reported.turn == Some(true))
}

/// The reason that there is no next step to wait for, in the words of our mod.
pub const NO_TURN_RUNS: &str = "no turn runs";

/// Returns the reason that the conversation cannot be replaced within a turn now, if so.
pub fn on_the_fly_refusal(model: &Model) -> Option<String> {
    let no_turn = || (!turn_runs(model)).then(|| NO_TURN_RUNS.to_owned());
    replace_refusal(model).or_else(no_turn)
}

/// Reports whether the reboot under way replaces the conversation inside the running client.
pub fn goes_in_place(model: &Model) -> bool {
    model.reboot.has_attempt(|one| one.kind.replaces())
}

/// Reports whether the reboot under way does so in the middle of the turn.
pub fn goes_on_the_fly(model: &Model) -> bool {
    model.reboot.has_attempt(|one| one.kind == Kind::OnTheFly)
}

/// Reports whether the message of a reboot waits for an approval.
pub(in crate::app) fn is_under_review(model: &Model) -> bool {
    (model.reboot).has_attempt(|one| one.step() == Step::Review && one.approved.is_none())
}

/// Returns the compaction in which the client waits for a decision.
pub(in crate::app) fn held(model: &Model) -> Option<&Held> {
    model.reboot.held().filter(|held| !held.answered)
}

/// Reports whether a person has stopped the compaction in which the client waited, when the signs have lasted since this epoch. A
/// typed `/compact` is no turn: only the title shows it.
pub(in crate::app) fn has_stopped_compacting(model: &Model, epoch: u64) -> bool {
    let held = held(model).filter(|_| epoch == model.session.calm_epoch);
    held.is_some_and(|held| model.session.agent.has_rested_since(held.since))
}

/// Reports whether the client waits in a compaction.
pub fn holds_compaction(model: &Model) -> bool {
    held(model).is_some()
}

/// Returns the time in which a person may still answer it; `None` once it is answered.
pub fn answer_left(model: &Model) -> Option<Duration> {
    let attempt = model.reboot.attempt.as_ref()?;
    let until = held(model)?.until;
    let unanswered = attempt.approved.is_none();
    unanswered.then(|| until.saturating_sub(model.now.since_start))
}

/// Reports whether a compaction is answered without asking a person.
pub(in crate::app) fn answers_at_once(model: &Model) -> bool {
    model.reboot.mode == RebootMode::Auto || model.autopilot.is_some()
}

/// Reports whether the conversation is replaced and the turn after it has not begun: figures that come now are of the one before.
pub(in crate::app) fn awaits_replaced_turn(model: &Model) -> bool {
    let attempt = model.reboot.attempt.as_ref();
    let awaits = |one: &Attempt| one.has_begun() && !one.is_proven() && !one.is_overdue();
    goes_in_place(model) && attempt.is_some_and(awaits)
}

/// Returns what blocks a reboot now; empty at a safe moment. A person who has approved does not block it by typing.
pub fn blocked_by(model: &Model) -> Vec<Block> {
    let agent = &model.session.agent;
    // Background work goes on with the process, and the prompt box keeps what it holds.
    let in_place = goes_in_place(model);
    let mut blocks = Vec::new();
    if matches!(agent.state, AgentState::Busy | AgentState::Starting) {
        blocks.push(Block::Turn);
    }
    let by_person = (model.reboot).has_attempt(|one| one.approved == Some(Approval::Person));
    // A person who decides does not wait for prompts that come again and again.
    let decides = by_person || is_under_review(model);
    let awaits_all = !decides && !agent.background.is_empty();
    if (awaits_all || agent.background.ends()) && !in_place {
        blocks.push(Block::Background);
    }
    // The list hides whether a turn runs: only the hooks show it then.
    if agent.state == AgentState::Unknown && !(agent.listing && by_person) {
        blocks.push(if agent.activity.dialog_seen {
            Block::Dialog
        } else {
            Block::Unknown
        });
    }
    if agent.state == AgentState::Elsewhere && !by_person {
        blocks.push(Block::Elsewhere);
    }
    // What is typed into the agent view is the task of yet another session; the session itself is ended from there too.
    if agent.state == AgentState::Dialog
        || (agent.listing && !by_person && !agent.activity.dialog_seen)
    {
        blocks.push(Block::Dialog);
    }
    if is_typing(model) && !by_person {
        blocks.push(Block::Typing);
    }
    if model.view.external.is_some() && !by_person {
        blocks.push(Block::Editor);
    }
    if unsent(model) == Unsent::Unreadable && !in_place {
        blocks.push(Block::Unsent);
    }
    if agent.state == AgentState::Exited {
        blocks.clear();
    }
    blocks
}

/// Returns what keeps a text from being typed now. An editor occupies the host terminal and not the agent's prompt, and what runs in the
/// background takes no text: a server never ends.
pub(in crate::app) fn text_blocked_by(model: &Model) -> Option<Block> {
    let mut blocks = blocked_by(model).into_iter();
    blocks.find(|block| !matches!(block, Block::Editor | Block::Background))
}

/// Reports whether the turn that stops has been stopped for a reboot: that is no failure of the agent's.
pub(in crate::app) fn is_cut_by_us(model: &Model) -> bool {
    (model.reboot).has_attempt(|one| one.force || !one.is_harmless())
}

/// Reports whether nothing blocks a reboot now.
pub fn is_safe(model: &Model) -> bool {
    blocked_by(model).is_empty()
}

/// Reports whether the human has typed into the pane within the quiet time.
pub fn is_typing(model: &Model) -> bool {
    let quiet = model.config.reboot.typing_quiet;
    let typed_at = model.session.agent.typed_at;
    typed_at.is_some_and(|typed| model.now.since(typed) < quiet)
}

/// Reports whether a document is open in an editor, `$EDITOR` or one of our own: a half-written text is not to be sent.
pub(in crate::app) fn is_editing(model: &Model) -> bool {
    model.view.external.is_some()
        || model.draft.notes.editor().is_some()
        || model.draft.handoff.editor.is_some()
}

/// Reports whether the handoff is in `$EDITOR`.
pub(in crate::app) fn is_handoff_lent(model: &Model) -> bool {
    let lent = model.view.external.as_ref();
    lent.is_some_and(|lent| lent.document == Document::Handoff)
}

/// Returns what the prompt box holds now, behind what a person has put aside there and an earlier prompt that could not be put back yet.
pub fn unsent(model: &Model) -> Unsent {
    let agent = &model.session.agent;
    let aside = agent.put_aside.as_ref();
    let aside = aside.map(|text| without_marks(&agent.pastes.expand(text)));
    let aside = aside.filter(|text| !text.trim().is_empty());
    // One that a hook has refused is back in the box, and is no words of a person, as long as they have added none.
    let in_box = match in_box(model) {
        Unsent::Text(text) if is_handoff(&text) && agent.typed_at.is_none() => Unsent::Nothing,
        now => now,
    };
    let now = match (in_box, aside) {
        (Unsent::Nothing, Some(aside)) => Unsent::Text(aside),
        (Unsent::Text(text), Some(aside)) => Unsent::Text(format!("{aside}\n{text}")),
        (now, _) => now,
    };
    match (&model.reboot.unsent, now) {
        // What the box of an agent that is gone held was taken over at its end.
        (Some(_), _) if model.session.agent.state == AgentState::Exited => Unsent::Nothing,
        (Some(waiting), Unsent::Text(text)) if !text.contains(&waiting.text) => {
            Unsent::Text(format!("{}\n{text}", waiting.text))
        }
        (_, now) => now,
    }
}

/// Returns what the prompt box holds now.
pub(in crate::app) fn in_box(model: &Model) -> Unsent {
    // For other programs no prompt box is known.
    let ours = &model.session.submission;
    if model.is_generic() || ours.is_open() || ours.is_left_in_box(&model.session.agent) {
        return Unsent::Nothing;
    }
    // Back in the box it comes behind what was typed there meanwhile.
    if let Some(held) = &model.session.held_prompt {
        let typed = model.session.agent.bridge.draft(model.session.id);
        let typed = typed.map(|draft| model.session.agent.pastes.expand(&draft.text));
        let texts = typed.into_iter().chain([held.text.clone()]);
        return Unsent::Text(texts.collect::<Vec<_>>().join("\n"));
    }
    if let Some(text) = expanded_text(model) {
        return if prompt_box::stands_for_more(&text) {
            Unsent::Unreadable
        } else {
            Unsent::Text(text)
        };
    }
    match &model.session.agent.prompt_box {
        PromptBox::Holds(_) => Unsent::Unreadable,
        PromptBox::Absent | PromptBox::Dialog(_)
            if model.session.agent.draft && model.session.agent.state != AgentState::Exited =>
        {
            Unsent::Unreadable
        }
        PromptBox::Absent | PromptBox::Dialog(_) | PromptBox::Empty => Unsent::Nothing,
    }
}

/// Returns the text in the prompt box with the client's marks in it, as far as it can be seen.
pub(in crate::app) fn marked_text(model: &Model) -> Option<String> {
    let agent = &model.session.agent;
    let reported = agent.bridge.draft(model.session.id);
    match (reported, &agent.prompt_box) {
        (Some(draft), shown) if agent.state != AgentState::Exited => {
            let lacks_mark = shown.is_for_shell() && !draft.text.starts_with('!');
            let mark = if lacks_mark { "!" } else { "" };
            Some(format!("{mark}{}", draft.text))
        }
        (_, PromptBox::Holds(draft)) => draft.marked_text(),
        _ => None,
    }
}

/// Returns the text in the prompt box with the long pastes in the place of their marks, as far as both are known. What cannot be known,
/// such as an image, has its mark.
pub(in crate::app) fn expanded_text(model: &Model) -> Option<String> {
    marked_text(model).map(|text| model.session.agent.pastes.expand(&text))
}

/// Returns the prompts of a person's that wait for the agent, which works: they are gone if it ends.
pub fn queued(model: &Model) -> &[String] {
    let works = model.session.agent.state == AgentState::Busy && model.autopilot.is_none();
    if works && !model.session.is_transcript_lost() {
        &model.session.transcript.queued
    } else {
        &[]
    }
}

/// Returns what a person has given and goes with the agent if that ends now: the prompts that wait for it, and what the prompt box
/// holds. Without the latter if it cannot be read.
pub(in crate::app) fn not_begun(model: &Model) -> Option<String> {
    let waiting = queued(model).iter().cloned();
    let texts: Vec<_> = waiting.chain(unsent(model).text()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// Returns what keeps a text from being typed into the agent's prompt now, whatever else the agent does.
pub fn typing_refusal(model: &Model) -> Option<&'static str> {
    if model.session.submission.is_open() {
        return Some("another text is on its way to the agent");
    }
    if model.is_generic() {
        return None;
    }
    model.session.agent.text_refusal()
}

/// Returns the body of a message that was not delivered, while the old session is being resumed: it stays at hand for another review.
pub fn undelivered(model: &Model) -> Option<String> {
    let message = match &model.reboot.attempt {
        // A trim sends no message, so the human's own is still to be sent.
        Some(attempt) if attempt.kind == Kind::Trim => model.draft.handoff.edited.as_ref(),
        Some(attempt) if matches!(attempt.phase, Phase::RollingBack(_)) => attempt.handoff.as_ref(),
        Some(_) => None,
        None => model.draft.handoff.edited.as_ref(),
    };
    message.map(|one| one.body().to_owned())
}

/// Returns the reason for which the old iteration of this reboot ends, as its record names it.
pub fn end_reason(model: &Model) -> EndReason {
    match model.reboot.attempt.as_ref().map(|attempt| attempt.cause) {
        Some(Cause::Threshold | Cause::Breakpoint | Cause::ContextLimit | Cause::Compaction) => {
            EndReason::ContextLimit
        }
        Some(Cause::Autopilot) => EndReason::Natural,
        _ => EndReason::UserReboot,
    }
}

/// Returns the figure that decides about reboots. An estimate is not good enough: a program that only redraws its screen would fill
/// any window by it.
pub fn deciding_figure(model: &Model) -> Option<Figure> {
    let figure = model.session.guard.figure(model.now);
    figure.filter(|figure| figure.source != Source::Estimate)
}

/// Reports whether the context is past the force line, beyond which neither breakers nor an earlier refusal count.
pub(in crate::app) fn is_forced(model: &Model) -> bool {
    deciding_figure(model).is_some_and(|figure| figure.used >= figure.lines.at(Threshold::Force))
}

/// Reports whether no reboot is to begin by itself just now.
pub fn is_quiet(model: &Model) -> bool {
    let quiet = model.reboot.quiet.as_ref();
    quiet.is_some_and(|quiet| {
        model.session.agent.turns < quiet.until_turn && (quiet.forced || !is_forced(model))
    })
}

/// Returns the cost of an iteration of this run, in US dollars; for the one that runs, by now.
pub fn cost_of(iteration: &Iteration, model: &Model) -> Option<f64> {
    let now = model.session.spending.cost();
    now.filter(|_| iteration.is_open()).or(iteration.cost_usd)
}

/// Returns the same with the cost of the iteration's summary, which is in no session's.
pub fn total_cost_of(iteration: &Iteration, model: &Model) -> Option<f64> {
    let costs = [cost_of(iteration, model), iteration.summary_cost()];
    costs.into_iter().flatten().reduce(|sum, one| sum + one)
}

/// The age up to which the screen follows an age by the second; from then on it does by the minute.
pub const YOUNG: Duration = Duration::from_secs(10);

/// Returns the length of an iteration of this run; for the one that runs, by now.
pub fn lasted(iteration: &Iteration, model: &Model) -> Duration {
    let now = model.session.lasted(model.now);
    let now = now.filter(|_| iteration.is_open());
    now.unwrap_or_else(|| iteration.lasted())
}

/// Returns the input and output tokens of an iteration of this run; for the one that runs, by now.
pub fn totals_of(iteration: &Iteration, model: &Model) -> TokenTotals {
    let now = model.session.spending.tokens();
    let now = now.filter(|_| iteration.is_open());
    now.unwrap_or(iteration.tokens)
}

/// Returns what the run has spent so far: iterations, cost and time.
pub fn spent(model: &Model) -> Spent {
    let iterations = model.lineage.iterations();
    let costs = iterations
        .iter()
        .filter_map(|one| total_cost_of(one, model));
    let run = model.autopilot.as_ref();
    Spent {
        iterations: iterations.len() as u64,
        cost_usd: costs.sum(),
        time: run.map_or(Duration::ZERO, |run| run.pilot.time(model.now)),
    }
}

/// Returns the task that was given to the run: its objective before any other.
pub fn run_task(model: &Model) -> Option<&str> {
    let run = model.autopilot.as_ref();
    run.map(|run| run.pilot.plan.task.as_str())
}

/// Returns the handoff's text about the prompts that come at set times, which end with the client's process, and about the stop phrase
/// of a run; empty where there is neither.
pub fn closing_words(model: &Model) -> String {
    let scheduled = |prompt: &TimedPrompt| {
        let line = format!("- {}: {}", prompt.schedule, prompt.prompt);
        redact(&clean::typed(&line).replace('\n', " ")).into_owned()
    };
    let schedule = model.session.agent.schedule.iter().map(scheduled);
    let schedule = schedule.collect::<Vec<_>>().join("\n");
    let run = model.autopilot.as_ref();
    let run = run.map(|run| prompt::carry_on(&run.pilot.plan.stop_phrase));
    let schedule = (!schedule.is_empty()).then(|| format!("{SCHEDULE}\n\n{schedule}"));
    schedule
        .into_iter()
        .chain(run)
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// What the next agent is asked to do about the prompts that come at set times.
const SCHEDULE: &str = "The session before had these prompts at set times. CronList shows which of them still come; if one is missing \
and still wanted, set it again with CronCreate.";

/// Reports whether a run goes on unattended.
pub fn is_unattended(model: &Model) -> bool {
    let run = model.autopilot.as_ref();
    run.is_some_and(|run| !run.pilot.plan.attended)
}

/// Reports whether a run may have no further iteration.
pub fn is_last(model: &Model) -> bool {
    let caps = model.autopilot.as_ref().map(|run| run.pilot.plan.caps);
    caps.is_some_and(|caps| caps.forbids_another(&spent(model)).is_some())
}

/// Returns the time that `auto` announces a reboot for: zero where the run is unattended, or when each turn ends in one.
pub fn auto_delay(model: &Model, cause: Cause) -> Duration {
    if is_unattended(model) || cause == Cause::Autopilot {
        Duration::ZERO
    } else {
        model.config.reboot.auto_delay
    }
}

/// Returns the prompt for an agent that is started again after it died.
pub fn restart_prompt(model: &Model) -> Option<String> {
    let run = model.autopilot.as_ref();
    let plan = &run.filter(|run| !run.pilot.is_held())?.pilot.plan;
    Some(prompt::again(&plan.task, &plan.stop_phrase))
}

/// Returns the order to read the task again, if it is a file.
#[must_use]
pub fn reads_task(model: &Model) -> Option<Effect> {
    let reads = model.autopilot.as_ref().is_some_and(|run| run.reads_task);
    reads.then_some(Effect::ReadTask)
}

/// Returns the tokens that a fresh session would begin with: its base load, by the client's own count where no fresh session has
/// been seen, and the handoff.
pub fn fresh_tokens(model: &Model) -> Option<Tokens> {
    let by_client = || {
        model
            .session
            .agent
            .bridge
            .of(model.session.id)?
            .base_tokens()
    };
    let base = fresh_load(model).or_else(by_client)?;
    let handoff = model.draft.handoff.current().tokens();
    Some(Tokens(base.0.saturating_add(handoff.0)))
}

/// Returns the tokens that a fresh session carries before any work, as the gauge shows it: by this iteration's first figure, unless
/// this one was resumed.
pub fn base_load(model: &Model) -> Option<Tokens> {
    match model.current_iteration() {
        Some(one) if handoff_size(one).is_none() => fresh_load(model),
        _ => model.session.guard.forecast().base(),
    }
}

/// Returns the base load of a fresh session, by the newest iteration that was begun as one: a resumed one begins with the earlier
/// conversation.
pub(in crate::app) fn fresh_load(model: &Model) -> Option<Tokens> {
    let load = |one: &Iteration| {
        let birth = one.tokens_at_birth?;
        Some(Tokens(birth.0.saturating_sub(handoff_size(one)?.0)))
    };
    let iterations = model.lineage.iterations();
    iterations.iter().rev().find_map(load)
}

/// Returns the size of the handoff that an iteration was begun with; `None` if its session is not known to be a fresh one.
pub(in crate::app) fn handoff_size(one: &Iteration) -> Option<Tokens> {
    match (&one.reboot, one.cause) {
        (_, Some(Cause::Undo | Cause::Recovery | Cause::AgentExit | Cause::Resume)) => None,
        (Some(record), _) => (record.way != Way::Trim).then_some(record.handoff_tokens),
        (None, cause) => cause.is_none().then_some(Tokens(0)),
    }
}
