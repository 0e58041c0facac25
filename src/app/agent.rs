//! What the hosted agent tells, and what becomes of it: its state, the figures, the iterations.

use std::time::Duration;

use crate::{
    agent::{
        AgentEvent, Background, Failure, StartSource, StatusLine, ToolCall, ToolOutput, claude,
    },
    api::wire::AgentState,
    autopilot::{Autopilot, End},
    breakpoint::test_run,
    bridge::Usage,
    config::{Config, GuardConfig, Preset},
    guard::{
        Crossing, GuardSettings, Reading, Source,
        threshold::{self, Threshold, Thresholds},
    },
    lineage::{Cause, EndReason, IterationId, Meta, RunEnd},
    transcript::{SessionId, Tokens},
};

use super::{
    activity, autopilot, breakpoint, checkpoint, client_limit, compaction,
    cost::TurnCosts,
    daemon,
    effect::{Effect, StartAgent},
    ending,
    event::{Exit, Lots, TimerId, TranscriptFacts},
    handoff, history, hookless, human,
    model::{AgentView, Model, Overlay},
    outward, reboot, say, scratchpad, signal,
    summary::{self, Summaries},
    trim,
};

/// How the guard measures, by the user's settings.
#[must_use]
pub fn guard_settings(config: &Config) -> GuardSettings {
    GuardSettings {
        thresholds: thresholds(&config.guard),
        reserve: Tokens(config.context.reserve),
        window_override: config.context.window.map(Tokens),
        ..GuardSettings::default()
    }
}

/// The config room has checked order and range, so a refusal here can only be a combination of caps that
/// contradict each other: then the shares count alone.
fn thresholds(config: &GuardConfig) -> Thresholds {
    let shares = Thresholds::new(config.notice, config.warn, config.compact, config.force_at)
        .unwrap_or_else(|_| {
            Thresholds::preset(match config.preset {
                Preset::Default | Preset::Lean => threshold::Preset::Normal,
                Preset::Late => threshold::Preset::Late,
                Preset::Early => threshold::Preset::Early,
            })
        });
    let caps = [
        config.notice_tokens,
        config.warn_tokens,
        config.compact_tokens,
        None,
    ];
    shares
        .with_caps(caps.map(|cap| cap.map(Tokens)))
        .unwrap_or(shares)
}

/// Begins the record of the next iteration and forgets the figures of the last.
pub fn open_iteration(
    model: &mut Model,
    session: SessionId,
    cause: Option<Cause>,
    parent: Option<IterationId>,
) {
    let at = model.now.wall;
    // A record left open here would be a mistake of ours; the next iteration must still get its own.
    let _ = model.lineage.close(at, EndReason::Crash);
    if let Ok(iteration) = model.lineage.open_below(parent, Some(session), cause, at) {
        model.iteration = iteration;
        // Counted from the newest: whoever reads of an earlier one goes on reading of it.
        if model.history.detail || model.history.selected > 0 {
            model.history.selected += 1;
        }
    }
    model.session = session;
    scratchpad::handed_over(model);
    let version = model.agent.version.take();
    model.agent = AgentView {
        version,
        holds_compaction: model.config.guard.replace_compaction,
        ..AgentView::default()
    };
    model.guard.start_iteration();
    model.compactions = compaction::Compactions::default();
    new_session(model);
    model.title.clear();
    // The new screen has no still.
    model.copy = None;
    model.press = None;
    model.ending = None;
    model.reboot.quiet = None;
    model.reboot.forget_calls();
}

/// Forgets what belongs to the session before.
fn new_session(model: &mut Model) {
    model.costs = TurnCosts::default();
    model.agent.prompt_cache = None;
    model.transcript = TranscriptFacts::default();
    model.transcript_lost = false;
    model.todo.carry_over();
    model.heard.forget();
    model.commands.clear();
    model.summary = Summaries::default();
}

/// Ends the record of the present iteration.
pub fn close_iteration(model: &mut Model, reason: EndReason) -> Vec<Effect> {
    note_figures(model);
    let mut effects = summary::close(model);
    effects.extend(history::keep_turn(model));
    let closed = model.lineage.close(model.now.wall, reason).is_ok();
    // An agent that had ended before has its record; the run's end is still to be written.
    if closed || model.quitting.is_some() {
        effects.extend(save_iteration(model));
    }
    effects
}

/// Keeps the newest iteration's record.
pub fn save_iteration(model: &mut Model) -> Vec<Effect> {
    note_figures(model);
    let meta = meta(model);
    let last = model.lineage.iterations().last();
    last.map(|last| Effect::SaveIteration(Box::new(last.clone()), Box::new(meta)))
        .into_iter()
        .collect()
}

/// The run's record. It has an end once its last iteration has: what is written last is the whole of it.
fn meta(model: &Model) -> Meta {
    let run = model.autopilot.as_ref().map(|run| &run.pilot);
    let quitting = model.quitting.filter(|_| model.lineage.current().is_none());
    let end = quitting.map(|quitting| {
        let end = run.and_then(Autopilot::end).unwrap_or_else(|| RunEnd {
            reason: quitting.reason,
            exit_code: Some(quitting.code),
            evidence: End::Stopped {
                code: quitting.code,
            }
            .to_string(),
        });
        (model.now.wall, end)
    });
    let task = run.map(|run| run.plan.task.as_str());
    model.lineage.meta(task, end)
}

/// Copies the figures of the moment into the open record.
fn note_figures(model: &mut Model) {
    let used = model.used();
    let (session, totals, cost) = (model.session, model.transcript.totals, model.agent.cost_usd);
    let compactions = model.compactions.count();
    if let Some(current) = model.lineage.current_mut() {
        current.session_id = Some(session);
        current.tokens = totals;
        current.cost_usd = cost.or(current.cost_usd);
        current.compactions = compactions;
        current.tokens_at_birth = current.tokens_at_birth.or(used);
        current.tokens_at_end = used.or(current.tokens_at_end);
    }
}

/// The agent's process runs.
pub fn spawned(
    model: &mut Model,
    iteration: IterationId,
    process: crate::lineage::ProcessStamp,
    lots: Lots,
) -> Vec<Effect> {
    if iteration != model.iteration {
        return Vec::new();
    }
    model.agent.process = Some(process);
    model.lots = lots;
    if model.is_generic() {
        model.agent.state = AgentState::Idle;
    }
    // Asked before it is told, for telling it may end the attempt.
    let kept = reboot::undelivered(model);
    let mut effects = reboot::spawned(model);
    // The next handoff has a nonce of its own; the one on its way keeps its own.
    handoff::leave_edit(model);
    handoff::draft(model);
    if let Some(body) = kept {
        handoff::keep(model, &body);
    }
    effects.extend(client_limit::read_settings(model));
    effects.extend(save_iteration(model));
    effects
}

/// The agent's process could not be started.
pub fn spawn_failed(model: &mut Model, iteration: IterationId, why: &str) -> Vec<Effect> {
    if iteration != model.iteration {
        return Vec::new();
    }
    model.agent.state = AgentState::Exited;
    model.agent.exit = Some(why.to_owned());
    model.trouble(why.to_owned());
    if model.reboot.attempt.is_some() {
        return reboot::spawn_failed(model, why);
    }
    let effects = close_iteration(model, EndReason::Crash);
    if !autopilot::takes_over(model, false) {
        model.overlay = Some(Overlay::Exited);
    }
    effects
}

/// The agent's process is gone.
pub fn exited(model: &mut Model, iteration: IterationId, exit: &Exit) -> Vec<Effect> {
    if iteration != model.iteration || model.agent.state == AgentState::Exited {
        return Vec::new();
    }
    if model.agent.daemon.is_ending() {
        return Vec::new();
    }
    model.agent.process = None;
    let was_ending = model.ending.take().is_some();
    daemon::hold(model, exit, was_ending).unwrap_or_else(|| gone(model, exit, was_ending))
}

/// The agent is gone, with all that it was.
pub(super) fn gone(model: &mut Model, exit: &Exit, was_ending: bool) -> Vec<Effect> {
    model.agent.state = AgentState::Exited;
    model.agent.exit = Some(exit.to_string());
    let mut effects = outward::ended(model);
    let rebooting = model
        .reboot
        .attempt
        .as_ref()
        .is_some_and(|attempt| !attempt.is_harmless());
    let reason = if let Some(quitting) = model.quitting {
        quitting.reason
    } else if was_ending && rebooting {
        reboot::end_reason(model)
    } else if *exit == Exit::Code(0) {
        EndReason::Natural
    } else {
        EndReason::Crash
    };
    // A new agent that died before its proof is closed by the roll-back.
    let rolled = rebooting && !was_ending;
    if !rolled {
        effects.extend(close_iteration(model, reason));
    }
    if let Some(quitting) = model.quitting {
        effects.push(Effect::Quit(quitting.code));
        return effects;
    }
    let (expected, more) = reboot::exited(model, exit);
    effects.extend(more);
    if !expected {
        model.notice(format!("the agent has ended: {exit}"));
        if !autopilot::takes_over(model, *exit == Exit::Code(0)) {
            model.overlay = Some(Overlay::Exited);
        }
    }
    effects
}

/// What a hook or the status line told.
pub fn said(model: &mut Model, event: AgentEvent) -> Vec<Effect> {
    if let AgentEvent::Unknown { name } = &event {
        tracing::warn!(%name, "an unknown hook event was ignored");
        return Vec::new();
    }
    let mut effects = follow(model, &event);
    if event.session() != Some(model.session) {
        tracing::warn!(session = ?event.session(), "an event of another session was ignored");
        effects.extend(daemon::another_spoke(model, &event));
        return effects;
    }
    // A client whose hooks are switched off may show its status line all the same.
    model.agent.hooked |= !matches!(event, AgentEvent::StatusLine(_));
    trim::session_seen(model, model.session);
    effects.extend(match event {
        AgentEvent::SessionStarted {
            model: name,
            source,
            ..
        } => started(model, name, &source),
        AgentEvent::PromptSubmitted { prompt, .. } => prompted(model, &prompt),
        AgentEvent::ToolFinished { call, output, .. } => {
            // A subagent in the background works on when the turn is over.
            if !call.by_subagent {
                activity::call_ends(model, &call);
            }
            tool_finished(model, &call, &output)
        }
        AgentEvent::ToolStarted { call, .. } => {
            if !call.by_subagent {
                activity::call_begins(model, &call);
            }
            Vec::new()
        }
        AgentEvent::TurnEnded {
            last_message,
            background,
            ..
        } => turn_ended(model, last_message.as_deref(), background),
        AgentEvent::TurnFailed {
            failure, message, ..
        } => turn_failed(model, failure, &message),
        AgentEvent::DialogOpened { about, .. } => activity::asked(model, about),
        AgentEvent::StatusLine(line) => status_line(model, &line),
        AgentEvent::Compacting { automatic, .. } => compaction::announced(model, automatic),
        AgentEvent::Compacted { .. } => compaction::finished(model),
        AgentEvent::Notified { .. }
        | AgentEvent::SessionEnded { .. }
        | AgentEvent::SubagentStarted { .. }
        | AgentEvent::SubagentStopped { .. }
        | AgentEvent::Unknown { .. } => Vec::new(),
    });
    effects.extend(reboot::consider(model));
    effects.extend(reboot::advance(model));
    effects
}

/// Follows the agent to another session id (`/clear`, a resume inside the client, a client that ignores
/// `--session-id`) and to the transcript that it names.
fn follow(model: &mut Model, event: &AgentEvent) -> Vec<Effect> {
    let mut effects = Vec::new();
    if let AgentEvent::SessionStarted {
        session, source, ..
    } = event
        && *session != model.session
    {
        // An event of the session that this reboot ended is late, not a move.
        let late = model
            .lineage
            .iterations()
            .iter()
            .any(|one| !one.is_open() && one.session_id == Some(*session));
        let moves = !late && (!model.agent.hooked || *source != StartSource::Startup);
        if moves && *source == StartSource::Fork {
            effects.extend(daemon::forked(model, *session));
        } else if moves {
            tracing::info!(from = %model.session, to = %session, ?source, "the agent changed its session");
            model.session = *session;
            effects.extend(summary::close(model));
            new_session(model);
            model.guard.start_iteration();
            model.compactions.change_session();
            effects.extend(reboot::session_changed(model));
        }
    }
    let path = match event {
        AgentEvent::SessionStarted {
            transcript_path, ..
        }
        | AgentEvent::PromptSubmitted {
            transcript_path, ..
        }
        | AgentEvent::TurnEnded {
            transcript_path, ..
        } => transcript_path.clone(),
        AgentEvent::StatusLine(line) => line.transcript_path.clone(),
        _ => None,
    };
    if let (Some(session), Some(path)) = (event.session(), path)
        && session == model.session
        && let Some(path) = daemon::written(model, event, path)
    {
        effects.push(Effect::FollowTranscript { session, path });
    }
    effects
}

/// What is shown while the agent view is.
const AGENT_VIEW: &str = "agent view: the session has gone to a daemon; Esc, Enter takes it back";

/// The title alone says that the agent view is open, and it is one of the signs of a turn.
pub fn title_changed(model: &mut Model) -> Vec<Effect> {
    let listing = !model.is_generic() && claude::is_agent_view(&model.title);
    let mut effects = Vec::new();
    if listing && !std::mem::replace(&mut model.agent.listing, listing) {
        model.trouble(AGENT_VIEW);
        effects = daemon::opened(model);
    } else if !listing {
        // It is back in the pane, and the banner has nothing to say any more.
        model.notices.retain(|notice| notice.text != AGENT_VIEW);
    }
    model.agent.listing = listing;
    effects.extend(activity::title_changed(model));
    effects
}

fn started(model: &mut Model, name: Option<String>, source: &StartSource) -> Vec<Effect> {
    match source {
        StartSource::Resume => model.guard.note_resume(),
        StartSource::Compact => compaction::rebuilt(model),
        _ => {}
    }
    // A dialog at the start may still come; the prompt box says that it is over.
    if model.agent.state == AgentState::Starting && model.agent.prompt_box.is_present() {
        model.agent.state = AgentState::Idle;
    }
    model.agent.draft = false;
    if let Some(name) = name {
        model.guard.set_model_hint(&name);
        model.agent.model_id = Some(name.clone());
        model.agent.model.get_or_insert(name);
    }
    Vec::new()
}

fn prompted(model: &mut Model, prompt: &str) -> Vec<Effect> {
    say::prompted(model, prompt);
    let before = history::keep_turn(model);
    turn_begins(model);
    human::prompted(model, prompt);
    let mut effects = reboot::prompt_seen(model, prompt);
    effects.extend(before);
    effects.extend(activity::look_again(model));
    // Without auto-compaction the client refuses the prompt at this line, and no other hook tells of it. With it,
    // the prompt goes out and the client compacts when the service refuses it (measured with 2.1.197).
    if model.agent.holds_compaction && is_at_refusal(model) {
        activity::turn_ends(model, AgentState::Limit);
        effects.extend(context_limit(model));
    }
    effects
}

/// A turn begins.
pub(super) fn turn_begins(model: &mut Model) {
    breakpoint::prompted(model);
    activity::turn_begins(model);
    // Not when a turn ends: its last figure comes after that.
    model.guard.begin_turn();
    model.costs.begin_turn(model.used());
    model.agent.draft = false;
    model.agent.background = Background::default();
    model.heard.turn_begins();
}

/// Whether the window is so full that a client without auto-compaction takes no prompt.
pub(super) fn is_at_refusal(model: &Model) -> bool {
    let figure = model.guard.figure(model.now);
    figure.is_some_and(|figure| figure.used >= figure.lines.refusal())
}

/// The client takes no more prompts in this session.
pub(super) fn context_limit(model: &mut Model) -> Vec<Effect> {
    model.trouble("context limit reached: the client refuses prompts until a reboot");
    let manual = model.mode == crate::config::RebootMode::Manual;
    if manual || model.reboot.attempt.is_some() || autopilot::is_last(model) {
        return Vec::new();
    }
    reboot::request(model, Cause::ContextLimit, false).unwrap_or_else(|why| {
        if let Some(effects) = autopilot::thrash(model, &why) {
            return effects;
        }
        reboot::refused(model, &why);
        Vec::new()
    })
}

/// A turn has ended with these words.
pub(super) fn turn_ended(
    model: &mut Model,
    message: Option<&str>,
    background: Background,
) -> Vec<Effect> {
    activity::turn_ends(model, AgentState::Idle);
    model.agent.turns = model.agent.turns.saturating_add(1);
    model.agent.background = background;
    let mut effects = vec![Effect::ReadGit];
    effects.extend(client_limit::read_settings(model));
    if let Some(message) = message {
        effects.extend(signal::by_hook(model, message));
        model.agent.last_message = Some(message.to_owned());
    }
    effects.extend(ending::turn_over(model));
    effects.extend(summary::turn_over(model));
    effects.extend(autopilot::turn_ended(model, message));
    effects.extend(save_iteration(model));
    effects.extend(checkpoint::after_turn(model));
    effects.extend(wait_for_quiet(model));
    effects
}

/// Takes in what a tool did to the to-do list, the outcome of the tests that a shell command has run, and the commits it has
/// made.
pub(super) fn tool_finished(
    model: &mut Model,
    call: &ToolCall,
    output: &ToolOutput,
) -> Vec<Effect> {
    autopilot::tool_finished(model, call, output);
    if let Some(todo) = &call.todo
        && model.todo.hooked(todo)
    {
        handoff::draft(model);
    }
    let mut effects = Vec::new();
    if breakpoint::writes_notes(call) {
        effects = scratchpad::agent_wrote(model);
    }
    let Some(command) = &call.command else {
        effects.extend(breakpoint::tool_finished(model, call, "", &[]));
        return effects;
    };
    let printed = format!("{}\n{}", output.stdout, output.stderr);
    let outcomes = test_run::recognise(Some(command), &printed);
    effects.extend(breakpoint::tool_finished(model, call, &printed, &outcomes));
    effects
}

fn turn_failed(model: &mut Model, failure: Failure, message: &str) -> Vec<Effect> {
    let limited = failure == Failure::UsageLimit;
    activity::turn_ends(
        model,
        if limited {
            AgentState::Limit
        } else {
            AgentState::Idle
        },
    );
    model.agent.turns = model.agent.turns.saturating_add(1);
    model.trouble(format!("the turn failed: {message}"));
    let mut effects = checkpoint::after_turn(model);
    if failure == Failure::ContextLimit {
        activity::turn_ends(model, AgentState::Limit);
        effects.extend(context_limit(model));
        return effects;
    }
    effects.extend(ending::turn_over(model));
    effects.extend(autopilot::turn_failed(model, failure, message));
    effects
}

fn status_line(model: &mut Model, line: &StatusLine) -> Vec<Effect> {
    let agent = &mut model.agent;
    agent.version = line.version.clone().or_else(|| agent.version.take());
    agent.model = line.model_name.clone().or_else(|| agent.model.take());
    agent.cost_usd = line.cost_usd.or(agent.cost_usd);
    agent.prompt_cache = line.prompt_cache.or(agent.prompt_cache);
    if let Some(cost) = line.cost_usd {
        model.costs.observe(cost);
    }
    agent.limits = [("5 h", line.five_hour), ("7 d", line.seven_day)]
        .into_iter()
        .filter_map(|(name, limit)| limit.map(|limit| limit_words(name, limit)))
        .collect();
    agent.limit_reset = [line.five_hour, line.seven_day]
        .into_iter()
        .flatten()
        .filter(|limit| limit.used_percentage >= USED_UP)
        .filter_map(|limit| moment(limit.resets_at?))
        .max();
    if let Some(id) = &line.model_id {
        model.guard.set_model_hint(id);
        model.agent.model_id = Some(id.clone());
    }
    match line.usage {
        Some(usage) => {
            observe(model, usage.context(), line.window, Source::StatusLine);
        }
        // Before the first call, and after a compaction, there is no figure.
        None => model.guard.set_status_line_window(line.window),
    }
    let mut effects = figures_changed(model);
    effects.extend(autopilot::figures_in(model));
    if line.usage.is_some() {
        effects.extend(autopilot::figure_observed(model));
    }
    effects
}

/// The bridge said how full the window is.
pub(super) fn usage_pushed(model: &mut Model, usage: &Usage) -> Vec<Effect> {
    if let Some(cost) = usage.cost_usd {
        model.agent.cost_usd = Some(cost);
        model.costs.observe(cost);
    }
    match usage.used {
        Some(used) => observe(model, used, Some(usage.window), Source::Bridge),
        None => model.guard.set_status_line_window(Some(usage.window)),
    }
    let mut effects = figures_changed(model);
    effects.extend(autopilot::figures_in(model));
    if usage.used.is_some() {
        effects.extend(autopilot::figure_observed(model));
    }
    effects
}

/// Gives the guard a figure. A fall is taken for a compaction only where nothing else would report one: `/rewind` and others
/// make it fall too.
fn observe(model: &mut Model, used: Tokens, window: Option<Tokens>, source: Source) {
    let reading = Reading {
        used,
        window,
        source,
        at: model.now,
    };
    let followed = model.transcript.whole && !model.transcript_lost;
    if model.guard.observe(reading) && !model.agent.hooked && !followed {
        compaction::fell(model);
    }
}

/// The share from which on a usage limit counts as used up, percent: the client rounds.
const USED_UP: f64 = 99.0;

fn moment(seconds: u64) -> Option<chrono::DateTime<chrono::Utc>> {
    chrono::DateTime::from_timestamp(i64::try_from(seconds).ok()?, 0)
}

fn limit_words(name: &str, limit: crate::agent::RateLimit) -> String {
    let reset = limit
        .resets_at
        .and_then(moment)
        .map_or_else(String::new, |at| {
            format!(", resets {}", at.format("%H:%M UTC"))
        });
    format!("{name} limit {:.0} %{reset}", limit.used_percentage)
}

/// The transcript has grown.
pub fn transcript_read(
    model: &mut Model,
    session: SessionId,
    mut facts: TranscriptFacts,
) -> Vec<Effect> {
    if session != model.session {
        return Vec::new();
    }
    let signals = std::mem::take(&mut facts.signals);
    let said = facts.said.take();
    model.agent.last_message = said.or(model.agent.last_message.take());
    let commands = facts.commands.take();
    let ran = std::mem::take(&mut facts.ran);
    let turns_before = model.transcript.turns;
    let mut news = model.todo.read(&facts.todos) || commands.is_some();
    if let Some(work) = facts.work.take() {
        news |= *work != model.work;
        model.work = *work;
    }
    if let Some(words) = facts.human.take() {
        news |= human::take(model, &words);
    }
    model.commands = commands.unwrap_or_else(|| std::mem::take(&mut model.commands));
    let (used, prompt) = (facts.used, facts.last_prompt.clone());
    if let Some(name) = &facts.model {
        model.guard.set_model_hint(name);
    }
    // A trimmed copy that grows has its client, whether that has hooks or not.
    if model.transcript.turns > 0 && facts.turns > model.transcript.turns {
        trim::session_seen(model, session);
    }
    model.transcript = facts;
    model.transcript_lost = false;
    // Before the figure, so that its fall is explained.
    compaction::transcript_read(model);
    if let Some(used) = used {
        observe(model, used, None, Source::Transcript);
    } else {
        model.guard.forget(Source::Transcript);
    }
    let mut effects = figures_changed(model);
    if news {
        handoff::draft(model);
    }
    effects.extend(signal::by_transcript(model, signals));
    if hookless::is_hookless(model) {
        effects.extend(hookless::transcript_read(model, turns_before, ran));
    }
    effects.extend(trim::grown(model));
    effects.extend(reboot::advance(model));
    // The hook is the proof; the transcript is the second witness.
    if let Some(prompt) = prompt {
        effects.extend(reboot::prompt_seen(model, &prompt));
    }
    effects.extend(reboot::consider(model));
    if used.is_some() {
        effects.extend(autopilot::figure_observed(model));
    }
    effects
}

/// The transcript cannot be read any more.
pub fn transcript_lost(model: &mut Model, session: SessionId, why: &str) -> Vec<Effect> {
    if session != model.session {
        return Vec::new();
    }
    tracing::warn!(%session, why, "the transcript cannot be followed");
    model.guard.forget(Source::Transcript);
    model.transcript_lost = true;
    figures_changed(model)
}

/// An estimate came in.
pub fn estimated(model: &mut Model, reading: Reading) -> Vec<Effect> {
    observe(model, reading.used, reading.window, reading.source);
    let mut effects = figures_changed(model);
    // An estimate is behind by what is not drawn yet.
    if reading.source != Source::Estimate {
        effects.extend(autopilot::figure_observed(model));
    }
    effects
}

/// A figure has changed, or the lines have: levels crossed are reported once, ages need a clock.
pub(super) fn figures_changed(model: &mut Model) -> Vec<Effect> {
    client_limit::judge(model);
    let used = model.used();
    if let Some(current) = model.lineage.current_mut() {
        current.tokens_at_birth = current.tokens_at_birth.or(used);
    }
    let mut effects = vec![Effect::SetTimer(TimerId::Age, Duration::from_secs(1))];
    effects.extend(client_limit::look_later(model));
    let mut saved = false;
    if let Some(crossing) = model.guard.crossing(model.now) {
        // A session that was brought back is as full as it was: what is new is that it is back.
        if !(is_brought_back(model) && model.agent.turns == 0) {
            model.notice(crossed_words(&crossing));
        }
        let kept = checkpoint::at_line(model, &crossing);
        saved = !kept.is_empty();
        effects.extend(kept);
        effects.extend(summary::crossed(model, crossing.level));
    }
    effects.extend(client_limit::near(model, saved));
    effects
}

/// Whether the session was taken up again after an undo, a failed reboot or the agent's end.
fn is_brought_back(model: &Model) -> bool {
    let cause = model.current_iteration().and_then(|one| one.cause);
    matches!(
        cause,
        Some(Cause::Undo | Cause::Recovery | Cause::AgentExit | Cause::AgentCrash)
    )
}

/// A line that was passed, for a notice.
fn crossed_words(crossing: &Crossing) -> String {
    let percent = crossing.figure.percent.floor();
    let line = match crossing.threshold {
        Threshold::Notice => "",
        Threshold::Warn => ", past the warn line",
        Threshold::Compact | Threshold::Force => ", past the compact line",
    };
    format!("context: {percent:.0} % full{line}")
}

/// Comes back once the human has been quiet for long enough, if somebody waits for that.
pub fn wait_for_quiet(model: &mut Model) -> Vec<Effect> {
    if !reboot::is_typing(model) {
        return Vec::new();
    }
    let epoch = model.next_epoch();
    model.quiet_epoch = epoch;
    let quiet = model.config.reboot.typing_quiet + Duration::from_millis(50);
    vec![Effect::SetTimer(TimerId::Quiet(epoch), quiet)]
}

/// Starts the very first agent.
pub fn begin(
    model: &mut Model,
    resume: bool,
    cause: Option<Cause>,
    prompt: Option<String>,
) -> Vec<Effect> {
    let session = model.session;
    let parent = model.lineage.iterations().last().map(|last| last.iteration);
    open_iteration(model, session, cause, parent);
    let first = model.iteration == IterationId::FIRST;
    vec![
        Effect::Start(StartAgent {
            iteration: model.iteration,
            session,
            resume,
            prompt,
            anew: None,
            first,
        }),
        Effect::ReadGit,
    ]
}
