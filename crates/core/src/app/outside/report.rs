//! The reports for scripts and people elsewhere: the model as data.

use std::collections::BTreeMap;

use serde::Deserialize as _;

use crate::{
    api::wire::{
        AgentReport, ClientLimitReport, ContextReport, HandoffCheck, HandoffReport, HeldReport,
        HistoryReport, IterationReport, IterationTokens, KeyDecision, LastReboot, LinesReport,
        MissingFact, NeedKind, PermissionReport, RebootReport, SourcedItem, StatusLineReply,
        StatusReport, TodoList, UsageAction, UsageActionKind, UsageQuery, UsageReply,
    },
    config::RebootMode,
    guard::{Assessment, Level, Threshold, assess},
    lineage::{
        Iteration,
        past::{MessageKind, PastSession},
    },
};
use pitstop_agent::{
    AgentKind,
    bridge::{Absence, Link},
    claude::role,
};
use pitstop_base::{
    clean,
    clock::milliseconds,
    format::{dollars, percent as whole},
    redact::redact,
};
use pitstop_handoff::{
    Check, PreservedState,
    breakpoint::git::GitState,
    preserved::Item,
    scratchpad::Parsed,
    sections::{decision_text, issue_text},
    tokens_of,
};
use pitstop_transcript::{
    Tokens,
    words::{clipped_line, on_one_line},
};

use crate::app::{
    autopilot, cold_cache,
    facts::{Block, agent_reason, blocked_by, cost_of, lasted, limit_reset, totals_of},
    forecast,
    model::{Model, needs::Need, progress::hash_of},
    reboot::{self, Banner},
    session::{bridge, cost, payoff},
};

/// The most that is reported of the agent's last message, in bytes.
const LAST_WORDS: usize = 300;

fn number(id: u64) -> u32 {
    u32::try_from(id).unwrap_or(u32::MAX)
}

/// Returns the report of the present state.
pub fn status(model: &Model) -> StatusReport {
    let identity = &model.identity;
    let cost = cost::per_turn(model);
    let away = model.outside.store_away.as_ref();
    StatusReport {
        version: identity.version.to_owned(),
        pid: identity.pid,
        project: identity.project.clone(),
        run_id: Some(model.run().to_string()),
        mode: model.reboot.mode.name().to_owned(),
        paused: model.reboot.paused,
        zoomed: model.view.zoomed,
        iteration: number(model.session.iteration().get()),
        session_id: Some(model.session.id.to_string()),
        objective: objective(model),
        started_at: model.lineage.iterations().first().map(|one| one.started_at),
        last_reboot: last_reboot(model),
        agent: AgentReport {
            kind: identity.agent_kind,
            command: identity.agent_command.clone(),
            version: model.session.agent.version.clone(),
            state: model.session.agent.state,
            reason: agent_reason(model).map(|reason| clean::one_line(&reason).into_owned()),
            limit_reset: limit_reset(model),
            hooked: model.session.agent.hooked,
            todo_list: todo_list(model),
            bridge: bridge::report(model),
            tools: bridge::tools(model),
            last_words: last_words(model),
        },
        context: context(model),
        reboot: reboot_report(model),
        cost_usd: model.session.spending.session_cost(),
        turn_cost_usd: cost.map(|cost| cost.now),
        fresh_turn_cost_usd: cost.and_then(|cost| cost.fresh),
        reboot_pays_in_calls: payoff::calls(model),
        prompt_cache: cold_cache::report(model),
        run: autopilot::report(model),
        store_error: away.map(|away| away.why.clone()),
        store_kept: away.map(|away| away.is_kept),
        needs: model.outside.needs().iter().map(Need::report).collect(),
        quitting: model.outside.quitting().is_some(),
    }
}

/// Returns the start of the agent's last message on one line.
fn last_words(model: &Model) -> Option<String> {
    let said = model.session.agent.last_message.as_deref()?;
    // A secret that this cut goes through is not recognised; it is far behind the next one.
    let start = clipped_line(said, 8 * LAST_WORDS);
    let line = clipped_line(&redact(&start), LAST_WORDS);
    Some(clean::one_line(&line).into_owned())
}

/// Returns the objective on one line: the run's task, else the objective of the handoff.
fn objective(model: &Model) -> Option<String> {
    let task = autopilot::report(model).map(|run| run.task);
    let state = &model.draft.preserved;
    let stated = || Some(state.current_objective.as_ref()?.text.clone());
    let objective = task.filter(|task| !task.is_empty()).or_else(stated)?;
    Some(clean::one_line(&on_one_line(&objective)).into_owned())
}

/// Returns the last reboot of this run: an iteration also begins where a session is resumed, after the agent has died or at an undo.
fn last_reboot(model: &Model) -> Option<LastReboot> {
    let iterations = model.lineage.iterations();
    let at = iterations.iter().rposition(|one| one.reboot.is_some())?;
    let (before, after) = (iterations[..at].last(), &iterations[at]);
    Some(LastReboot {
        at: after.started_at,
        tokens_before: before
            .and_then(|before| before.tokens_at_end)
            .map(|tokens| tokens.0),
        tokens_after: after.tokens_at_birth.map(|tokens| tokens.0),
    })
}

fn lines(model: &Model) -> LinesReport {
    let lines = model.session.guard.assess(Tokens(0)).lines;
    LinesReport {
        notice: lines.at(Threshold::Notice).0,
        warn: lines.at(Threshold::Warn).0,
        compact: lines.at(Threshold::Compact).0,
        force: lines.at(Threshold::Force).0,
        lowered: lines.are_lowered(),
    }
}

fn client_limit(model: &Model) -> Option<ClientLimitReport> {
    let limit = model.session.client.limit()?;
    Some(ClientLimitReport {
        at: limit.at.0,
        act: limit.act.word().to_owned(),
        origin: limit.origin.to_string(),
    })
}

fn context(model: &Model) -> ContextReport {
    let bounds = ContextReport {
        lines: Some(lines(model)),
        client_limit: client_limit(model),
        ..ContextReport::default()
    };
    let Some(figure) = model.session.guard.figure(model.now) else {
        return bounds;
    };
    ContextReport {
        used: Some(figure.used.0),
        window: Some(figure.window.0),
        usable: Some(figure.usable.0),
        percent: Some((figure.percent * 10.0).round() / 10.0),
        level: Some(figure.level.word().to_owned()),
        // Scripts get one word, where people read two.
        source: Some(figure.source.to_string().replace(' ', "_")),
        age_ms: Some(milliseconds(figure.age)),
        forecast: forecast::report(model),
        ..bounds
    }
}

fn reboot_report(model: &Model) -> RebootReport {
    match &model.reboot.attempt {
        Some(attempt) => RebootReport {
            phase: attempt.step().to_string(),
            reason: Some(attempt.cause.to_string()),
            blocked_by: blocked_by(model).iter().map(Block::to_string).collect(),
            way: Some(attempt.kind.way().to_string()),
            held: None,
        },
        None => RebootReport {
            phase: "idle".to_owned(),
            reason: match &model.reboot.refused {
                Some(why) => Some(format!("refused: {why}")),
                None => model.reboot.failure.clone(),
            },
            blocked_by: Vec::new(),
            way: None,
            held: held(model),
        },
    }
}

/// Returns what holds back an automatic reboot that is due: a breaker, or that a person or a refusal has put it off.
fn held(model: &Model) -> Option<HeldReport> {
    let (reason, until) = match reboot::banner(model)? {
        Banner::Held(breaker) => (breaker.to_string(), breaker.until()),
        Banner::Quiet(reason, turns) => (reason.in_words(turns), None),
        _ => return None,
    };
    Some(HeldReport { reason, until })
}

/// Returns the iterations of this run.
pub fn history(model: &Model) -> HistoryReport {
    HistoryReport {
        run_id: Some(model.run().to_string()),
        iterations: model
            .lineage
            .iterations()
            .iter()
            .map(|iteration| {
                let mut report = iteration_report(iteration);
                if iteration.is_open() {
                    report.duration_ms = milliseconds(lasted(iteration, model));
                    report.tokens.at_end = model.used().map(|used| used.0);
                    let totals = totals_of(iteration, model);
                    report.tokens.input = Some(totals.input.0);
                    report.tokens.output = Some(totals.output.0);
                    report.cost_usd = cost_of(iteration, model);
                }
                report
            })
            .collect(),
    }
}

/// Returns one iteration's record as scripts read it.
pub fn iteration_report(iteration: &Iteration) -> IterationReport {
    let record = iteration.reboot.as_ref();
    IterationReport {
        iteration: number(iteration.iteration.get()),
        session_id: iteration.session_id.map(|id| id.to_string()),
        previous_session_id: record
            .and_then(|one| one.old_session)
            .map(|id| id.to_string()),
        started_at: Some(iteration.started_at),
        ended_at: iteration.ended_at,
        duration_ms: milliseconds(iteration.lasted()),
        end_reason: iteration.end_reason.map(|reason| reason.to_string()),
        signal: iteration.signal.clone(),
        in_turn: iteration.in_turn,
        cause: Some(
            iteration
                .cause
                .map_or_else(|| "start".to_owned(), |cause| cause.to_string()),
        ),
        tokens: IterationTokens {
            at_start: iteration.tokens_at_birth.map(|tokens| tokens.0),
            at_end: iteration.tokens_at_end.map(|tokens| tokens.0),
            input: Some(iteration.tokens.input.0),
            output: Some(iteration.tokens.output.0),
        },
        turns: iteration.turns,
        compactions: iteration.compactions,
        cost_usd: iteration.cost_usd,
        transition_time_ms: record.map_or_else(BTreeMap::new, |one| {
            one.transition_time_ms
                .iter()
                .map(|(step, ms)| (step.to_string(), *ms))
                .collect()
        }),
        preserved_state: record.and_then(|one| one.preserved_state.clone()),
        handoff_bytes: record
            .filter(|one| one.trim.is_none())
            .map(|one| one.handoff_bytes),
        way: record.map(|one| one.way.to_string()),
        approved_from: record.and_then(|one| one.approved_from.clone()),
        trim: record.and_then(|one| one.trim),
        summary: iteration.summary.clone(),
        summary_made: iteration.summary_made.clone(),
    }
}

/// Returns the handoff as it would be sent now.
pub fn handoff(model: &Model) -> HandoffReport {
    let handoff = model.draft.handoff.current();
    let (state, notes) = (&model.draft.preserved, model.draft.notes.parsed());
    let (branch, head) = match &model.draft.git {
        GitState::Facts(repository) => (repository.branch.clone(), repository.head.clone()),
        _ => (None, None),
    };
    HandoffReport {
        generated_at: Some(model.now.wall),
        branch,
        head_commit: head,
        current_hat: role(&model.identity.agent_args).or_else(|| model.session.agent.mode.clone()),
        next_step: pitstop_handoff::next_step(state, notes),
        continuation_prompt: Some(pitstop_handoff::continuation(state, notes)),
        session_id: Some(model.session.id.to_string()),
        kind: "present".to_owned(),
        revision: revision(&handoff.text),
        left_out: handoff.left_out.clone(),
        warnings: handoff.warnings.clone(),
        todo_list: todo_list(model),
        check: (!handoff.text.is_empty()).then(|| handoff_check(&model.draft.handoff.check)),
        ..report_of(&handoff.text, state)
    }
}

/// Returns the revision of a text: a number that no one can tell anything from but whether it is the same text.
pub fn revision(text: &str) -> String {
    format!("{:016x}", hash_of(&text))
}

/// Returns the permission that the agent asks for.
pub fn permission(model: &Model) -> Option<PermissionReport> {
    let mut needs = model.outside.needs().iter();
    let need = needs.find(|need| need.kind == NeedKind::Permission)?;
    let question = model.session.agent.activity.question.as_ref()?;
    let permission = question.permission.as_ref()?;
    Some(PermissionReport {
        id: need.id,
        tool: permission.tool.clone(),
        input: permission.input.clone(),
        answerable: permission.call.is_some(),
    })
}

/// Returns what a handoff misses of its session.
pub fn handoff_check(check: &Check) -> HandoffCheck {
    HandoffCheck {
        complete: check.is_complete(),
        finding: check.to_string(),
        prompts: check.prompts as u64,
        missing_prompts: check
            .missing_prompts
            .iter()
            .map(Check::shown_prompt)
            .collect(),
        facts: check.facts as u64,
        missing_facts: check
            .missing_facts
            .iter()
            .map(|fact| MissingFact {
                class: fact.class().word().to_owned(),
                text: fact.to_string(),
            })
            .collect(),
        unfounded: None,
    }
}

/// Returns the handoff of a session that has ended, by what the store has of it.
pub fn past_handoff(past: &PastSession) -> HandoffReport {
    let message = past.message();
    let state = message.and_then(|message| message.state);
    let state = state.and_then(|state| PreservedState::deserialize(state).ok());
    let text = message.map_or("", |message| message.text);
    let mut report = report_of(text, state.as_ref().unwrap_or(&PreservedState::default()));
    if let Some(state) = state {
        let saved = past
            .checkpoint
            .as_ref()
            .and_then(|one| one.scratchpad.as_ref());
        let notes = saved.map_or_else(Parsed::default, |saved| Parsed::read(&saved.text));
        report.next_step = pitstop_handoff::next_step(&state, &notes);
        report.continuation_prompt = Some(pitstop_handoff::continuation(&state, &notes));
        (report.branch, report.head_commit) = (state.branch, state.head);
    }
    report.task_title = report.task_title.or_else(|| past.task.clone());
    report.session_id = past.iteration.session_id.map(|id| id.to_string());
    report.generated_at = message.and_then(|message| message.at);
    let kind = message.map(|message| message.kind);
    let word = kind.map_or("none", MessageKind::word);
    word.clone_into(&mut report.kind);
    let instead = match kind {
        Some(MessageKind::Given) => return report,
        Some(MessageKind::Saved) => ": this is its last checkpoint",
        Some(MessageKind::Received) => ": this is what it was given itself",
        Some(MessageKind::Summary) => ": this is its summary",
        None => ", and neither a checkpoint nor a summary of it is kept",
    };
    let warning = format!("the session handed over nothing{instead}");
    report.warnings.push(warning);
    report
}

/// Returns a message with the items of the state that it was made from.
fn report_of(text: &str, state: &PreservedState) -> HandoffReport {
    let items = |items: &[Item]| items.iter().map(|item| item.text.clone()).collect();
    HandoffReport {
        task_title: state
            .current_objective
            .as_ref()
            .map(|item| item.text.clone()),
        completed_items: items(&state.completed_items),
        remaining_items: items(&state.pending_items),
        blocking_issues: state
            .known_issues
            .iter()
            .filter(|issue| !issue.addressed)
            .map(issue_text)
            .collect(),
        modified_files: items(&state.modified_files),
        created_files: items(&state.created_files),
        deleted_files: items(&state.deleted_files),
        uncommitted_files: items(&state.uncommitted_files),
        key_decisions: state
            .decisions
            .iter()
            .map(|decision| KeyDecision {
                text: decision.description.clone(),
                reason: Some(decision.rationale.clone()).filter(|why| !why.is_empty()),
                decided_at: decision.timestamp,
            })
            .collect(),
        key_decision_texts: state.decisions.iter().map(decision_text).collect(),
        text: text.to_owned(),
        tokens: tokens_of(text).0,
        bytes: text.len() as u64,
        sources: state
            .items()
            .into_iter()
            .map(|(field, text, origin)| SourcedItem {
                field: field.to_owned(),
                text,
                source: origin.word().to_owned(),
            })
            .collect(),
        ..HandoffReport::default()
    }
}

/// Returns whether the agent's to-do list is a source of the handoff. What was seen counts more than what was switched.
fn todo_list(model: &Model) -> TodoList {
    if model.draft.todo.is_kept() {
        return TodoList::Kept;
    }
    match model.identity.agent_kind {
        AgentKind::Generic => TodoList::None,
        AgentKind::Claude if !model.identity.todo_tools => TodoList::Off,
        AgentKind::Claude | AgentKind::Demo => TodoList::Empty,
    }
}

/// Returns the reason that there is no handoff of a session that the store does not know.
pub fn no_session(session: &str) -> String {
    format!(
        "the store knows no session {session}: expected the id of one of any run, as `pitstop history --json` shows them, or `current`"
    )
}

/// Returns how full the context window is, or would be at other figures.
pub fn usage(model: &Model, query: UsageQuery) -> UsageReply {
    let figure = model.session.guard.figure(model.now);
    let used = query
        .used_tokens
        .map(Tokens)
        .or_else(|| figure.as_ref().map(|one| one.used));
    let window = query
        .max_tokens
        .map(Tokens)
        .or_else(|| figure.as_ref().map(|one| one.window))
        .or_else(|| used.map(|_| model.session.guard.window()));
    let assessed = match (used, window) {
        // The client's act at its own limit gives no information about another window.
        (Some(used), Some(window)) if window != model.session.guard.window() => {
            Some(assess(used, window, model.session.guard.settings(), None))
        }
        (Some(used), Some(_)) => Some(model.session.guard.assess(used)),
        _ => None,
    };
    let auto = model.reboot.mode == RebootMode::Auto && !model.reboot.paused;
    UsageReply {
        used: used.map(|tokens| tokens.0),
        max: window.map(|tokens| tokens.0),
        usable: assessed.as_ref().map(|one| one.usable.0),
        percent: assessed
            .as_ref()
            .map(|one| (one.percent * 10.0).round() / 10.0),
        status: assessed.as_ref().map(|one| one.level.word().to_owned()),
        action: action(assessed.as_ref(), auto),
    }
}

fn action(assessed: Option<&Assessment>, auto: bool) -> UsageAction {
    let (kind, what) = match assessed.map(|one| one.level) {
        None => (UsageActionKind::None, "no figure yet"),
        Some(Level::Healthy | Level::Warning) => (UsageActionKind::None, "nothing to do"),
        Some(Level::Critical) => (UsageActionKind::Save, "save: the window is filling up"),
        Some(Level::Overflow) => (
            UsageActionKind::SaveAndRestart,
            "save and reboot: the window is nearly full",
        ),
    };
    let percent = assessed.map(|one| format!(" (at {} %)", whole(one.percent)));
    let auto = auto && kind == UsageActionKind::SaveAndRestart;
    UsageAction {
        kind,
        message: format!("{what}{}", percent.unwrap_or_default()),
        auto,
    }
}

/// Returns the line that the agent shows under its prompt when the user has none of their own.
pub fn status_line(model: &Model) -> StatusLineReply {
    let Some(figure) = model.session.guard.figure(model.now) else {
        return StatusLineReply::default();
    };
    let forecast = forecast::report(model);
    let left = forecast.as_ref().and_then(forecast::left);
    StatusLineReply {
        line: line_of(
            figure.level,
            figure.percent,
            left.as_deref(),
            model.session.spending.session_cost(),
        ),
    }
}

/// Returns that line made from its parts.
pub fn line_of(level: Level, percent: f64, left: Option<&str>, cost: Option<f64>) -> String {
    let mut line = format!("{} {}%", level.label(), whole(percent));
    if let Some(left) = left {
        line.push_str(&format!(" · {left}"));
    }
    if let Some(cost) = cost {
        line.push_str(&format!(" · {}", dollars(cost)));
    }
    line
}

/// Returns the reason that the client's own side reports nothing; `None` where it does report, is still awaited, or no one wants it.
pub fn without_bridge(model: &Model) -> Option<String> {
    let Link::Absent(why) = &model.session.agent.bridge.link else {
        return None;
    };
    let is_wanted = !matches!(why, Absence::OtherAgent | Absence::SwitchedOff);
    is_wanted.then(|| why.to_string())
}
