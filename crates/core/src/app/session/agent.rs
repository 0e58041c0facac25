//! The reports of the hosted agent by its hooks, its status line, its title and its transcript.

use crate::{
    api::wire::AgentState,
    lineage::{IterationId, Lineage, TokenTotals},
};
use pitstop_agent::{AgentEvent, StartSource, StatusLine, claude};
use pitstop_base::{clock::At, format::percent};
use pitstop_transcript::{
    SessionId, Tokens,
    human::{HumanWords, RefusedPrompt},
};

use crate::app::{
    autopilot::{self, RunInput},
    consequences::Consequences,
    draft::{
        carried::{self, Keep},
        record::{save_iteration, save_order},
        summary::{self, SummaryEvent},
    },
    effect::Effect,
    event::TranscriptFacts,
    facts::handoff_size,
    model::{
        CarryOut, Model, activity::TitleState, agent::AgentView, attempt::AttemptEvent,
        session::Session, submission::SubmissionEvent,
    },
    reboot::{self, RebootAction, RebootEvent, in_place::ReplaceEvent, submit, trim::SurveyEvent},
    session::{
        compaction::{self, CompactionSign},
        figures::{self, FigureEvent},
        turn::{self, TurnEvent},
    },
};

/// Takes in a report of a hook or the status line.
pub fn said(model: &mut Model, event: AgentEvent) {
    if let AgentEvent::Unknown { name } = &event {
        tracing::warn!(%name, "an unknown hook event was ignored");
        return;
    }
    if model.session.note_branch(&event) {
        return;
    }
    follow(model, &event);
    if event.session() != Some(model.session.id) {
        tracing::warn!(session = ?event.session(), "an event of another session was ignored");
        let asks = model.session.agent.daemon.another_spoke(&event);
        return model.emit_all(asks);
    }
    // The transcript of a session that is resumed may show a turn that its last client never ended: this one has begun none.
    if model.session.is_hookless()
        && let AgentEvent::SessionStarted { source, .. } = &event
        && *source == StartSource::Resume
    {
        model.session.agent.end_turn(AgentState::Idle);
    }
    // A client whose hooks are switched off may show its status line all the same.
    if !matches!(event, AgentEvent::StatusLine(_)) {
        model.session.agent.hook_seen(model.now);
    }
    model.reboot.on(AttemptEvent::SessionSeen);
    reboot::on(model, ReplaceEvent::HookSeen(&event));
    let effects = &mut model.scratch.effects;
    let seen = model.session.reported(&event, model.now, effects);
    turn::on(model, seen);
    match event {
        AgentEvent::SessionStarted {
            model: name,
            source,
            ..
        } => {
            let is_resumed = model.session.started(name, &source);
            if is_resumed && model.lineage.note_resumed() {
                save_iteration(model);
            }
            if source == StartSource::Compact {
                let sign = CompactionSign::Rebuilt;
                model.session.compaction_seen(sign).carry_out(model);
            }
        }
        AgentEvent::ToolStarted { call, .. } => model.draft.moments.tool_started(&call),
        AgentEvent::ToolFinished { call, output, .. } => {
            // The transcript may have shown it already.
            let is_new = model.draft.seen_calls.by_hook(&call);
            // It may have more calls of this step, which have not begun.
            let is_unshown = is_new && model.session.is_transcript_followed();
            model.scratch.at_seam = !call.by_subagent && !is_unshown && !model.session.is_in_call();
            let ended = is_new.then_some((call, output));
            turn::on(model, ended.map(TurnEvent::ToolFinished));
        }
        AgentEvent::StatusLine(line) => figures::on(model, FigureEvent::StatusLine(&line)),
        AgentEvent::ModelSwitched {
            chosen: Some(name), ..
        } => {
            // Who comes back to the session has it, too.
            let args = &mut model.identity.agent_args;
            *args = claude::arguments_with_model(args, &name);
            model.session.agent.chosen_model = Some(name);
        }
        AgentEvent::Compacting {
            automatic, ordered, ..
        } => compaction::announced(model, automatic, ordered),
        AgentEvent::Compacted { .. } => {
            let sign = CompactionSign::Finished;
            model.session.compaction_seen(sign).carry_out(model);
            if model.session.learn_announced_limit() {
                figures::on(model, FigureEvent::Moved);
            }
            save_iteration(model);
        }
        _ => {}
    }
}

/// Follows the agent to another session id (`/clear`, a resume inside the client, a client that ignores
/// `--session-id`) and to the transcript that it names.
fn follow(model: &mut Model, event: &AgentEvent) {
    if let AgentEvent::SessionStarted {
        session, source, ..
    } = event
        && *session != model.session.id
    {
        // A session that a reboot has ended comes back by a resume inside the client, once the new process has spoken; before, its
        // event is late and no move.
        let mut iterations = model.lineage.iterations().iter();
        let ended = iterations.any(|one| !one.is_open() && one.session_id == Some(*session));
        let moves = if model.session.agent.hooked {
            *source != StartSource::Startup
        } else {
            !ended
        };
        if moves && *source == StartSource::Fork && model.session.agent.hooked {
            model.session.forked(*session);
            reboot::on(model, RebootEvent::SessionMoved);
        } else if moves {
            tracing::info!(from = %model.session.id, to = %session, ?source, "the agent changed its session");
            carried::keep(model, Keep::Now);
            let before = model.session.id;
            model.session.change(*session, source);
            model.draft.note_left([before]);
            match source {
                StartSource::Resume if model.session.agent.hooked => {
                    let asks = model.draft.come_back(*session, *session, None);
                    model.emit_all(asks);
                }
                // The source of the first session may be known by the arguments, as for a fork: then it stays.
                StartSource::Resume | StartSource::Fork => {
                    let asks = model.draft.keeping.ask(*session, *session);
                    model.emit(asks);
                }
                StartSource::Clear => model.draft.conversation_cleared(),
                _ => {}
            }
            summary::on(model, SummaryEvent::Closed);
            model.draft.leave_session();
            model.reboot.leave_session();
            reboot::on(model, RebootEvent::SessionChanged);
            // A cleared one has no conversation yet to which a person could come back.
            if *source == StartSource::Resume {
                save_iteration(model);
            }
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
        && session == model.session.id
        && let Some(path) = model.session.agent.daemon.written(event, path)
    {
        model.emit(Effect::FollowTranscript { session, path });
    }
}

/// Reports whether the session that the client's own record of the process in the pane names is another than the one that is known:
/// the hook of its beginning was lost, or it is a branch. While the client's daemon has the session, the record is of the list that the
/// pane shows; and a reboot that has touched the agent has sessions of its own.
pub fn is_unreported(model: &Model, of: IterationId, started: &AgentEvent) -> bool {
    let agent = &model.session.agent;
    let is_touched = model.reboot.has_attempt(|one| !one.is_harmless());
    let is_settled = !is_touched && agent.daemon.sessions.is_empty();
    let runs = of == model.session.pane() && agent.process.is_some();
    is_settled && runs && started.session() != Some(model.session.id)
}

/// Goes over to the session that the client's own record names, which shows no branch as one.
pub(in crate::app) fn session_named(model: &mut Model, of: IterationId, started: &mut AgentEvent) {
    let before = model.session.id;
    if let AgentEvent::SessionStarted {
        session, source, ..
    } = started
        && model.session.agent.daemon.is_branch(*session)
    {
        *source = StartSource::Fork;
    }
    if is_unreported(model, of, started) {
        follow(model, started);
    }
    if let AgentEvent::SessionStarted { source, .. } = started
        && model.session.id != before
        && model.session.started(None, source)
        && model.lineage.note_resumed()
    {
        save_iteration(model);
    }
}

/// The notice that is shown while the agent view is.
const AGENT_VIEW: &str = "agent view: the session has gone to a daemon; Esc, Enter takes it back";

/// The share at which a usage limit counts as used up, in percent: the client rounds.
const USED_UP: f64 = 99.0;

fn moment(seconds: u64) -> Option<chrono::DateTime<chrono::Utc>> {
    chrono::DateTime::from_timestamp(i64::try_from(seconds).ok()?, 0)
}

impl AgentView {
    /// Returns the usage limits in words, each until its reset: an agent that rests reports no other figure then.
    pub fn limit_words(&self, now: At) -> Vec<String> {
        let words = self.limits.iter().filter_map(|(name, limit)| {
            let reset = limit.resets_at.and_then(moment);
            if reset.is_some_and(|at| at <= now.wall) {
                return None;
            }
            let reset = reset.map_or_else(String::new, |at| {
                format!(", resets {}", now.time_of_day(at, "%H:%M"))
            });
            let used = percent(limit.used_percentage);
            Some(format!("{name} limit {used} %{reset}"))
        });
        words.collect()
    }
}

impl Session {
    /// Takes in the title: it alone shows that the agent view is open, and it is one of the signs of a turn. Returns what follows, and
    /// the end of a turn that it shows.
    pub(in crate::app) fn title_changed(
        &mut self,
        title: String,
        now: At,
    ) -> (Consequences, Option<TurnEvent>) {
        let mut follows = Consequences::default();
        self.title = title;
        let listing = !self.is_generic && claude::is_agent_view(&self.title);
        if !listing {
            // The session is back in the pane, and the banner is no longer true.
            follows.withdraw(AGENT_VIEW);
        } else if !self.agent.listing {
            follows.error(AGENT_VIEW);
            follows.emit(self.agent.daemon.opened(self.id));
        }
        self.agent.listing = listing;
        let title = TitleState::of(&self.title);
        let activity = &mut self.agent.activity;
        activity.unseen.take_if(|_| title != Some(TitleState::Calm));
        let before = std::mem::replace(&mut activity.title, title);
        if before == title {
            return (follows, None);
        }
        if before == Some(TitleState::Spins) {
            activity.rested = Some(now.since_start);
        }
        self.look_again(&mut follows.effects);
        (follows, self.settle_stop())
    }

    /// Takes in a report of the agent. Returns what it shows of a turn.
    fn reported(
        &mut self,
        event: &AgentEvent,
        now: At,
        effects: &mut Vec<Effect>,
    ) -> Option<TurnEvent> {
        match event {
            AgentEvent::SessionStarted { prompt_cache, .. } => {
                self.agent.prompt_cache = prompt_cache.or(self.agent.prompt_cache);
            }
            AgentEvent::PromptSubmitted { prompt, .. } => {
                return Some(TurnEvent::Submitted(prompt.clone()));
            }
            AgentEvent::ToolStarted { call, .. } if !call.by_subagent => {
                self.agent.begin_call(call);
            }
            AgentEvent::ToolFinished { call, .. } if !call.by_subagent => {
                self.end_call(call, effects);
            }
            AgentEvent::TurnEnded {
                last_message,
                background,
                ..
            } => {
                let recurring = background.prompts.iter().filter(|prompt| prompt.recurs);
                self.agent.schedule = recurring.cloned().collect();
                return self.stop_reported(last_message.clone(), background.clone(), effects);
            }
            AgentEvent::TurnFailed {
                failure, message, ..
            } => return Some(TurnEvent::Failed(*failure, message.clone())),
            AgentEvent::DialogOpened { about, .. } => self.asked(about.clone(), now, effects),
            AgentEvent::ModeSeen { mode, .. } => self.agent.mode = Some(mode.clone()),
            _ => {}
        }
        None
    }

    /// Takes in the hook of the session's start. Returns whether it is an earlier session, in which no turn was seen to end.
    fn started(&mut self, name: Option<String>, source: &StartSource) -> bool {
        let agent = &mut self.agent;
        // This hook may come behind the first turn, where the machine is busy.
        let is_early = !std::mem::replace(&mut agent.started, true) || agent.turns == 0;
        // A dialog at the start may still come; the prompt box shows that it is over.
        if agent.state == AgentState::Starting && agent.prompt_box.is_present() {
            agent.state = AgentState::Idle;
        }
        agent.draft = false;
        let is_resumed = match source {
            StartSource::Resume => true,
            StartSource::Fork => is_early,
            _ => false,
        };
        if is_resumed {
            self.guard.note_resume();
        }
        if let Some(name) = name {
            self.guard.set_model_hint(&name);
            agent.model_id = Some(name.clone());
            agent.model.get_or_insert(name);
        }
        is_resumed && is_early
    }

    /// Takes over the agent's version and model, its limits and its cost from its status line.
    pub(in crate::app) fn status_line_seen(&mut self, line: &StatusLine) {
        let agent = &mut self.agent;
        agent.version = line.version.clone().or_else(|| agent.version.take());
        agent.model = line.model_name.clone().or_else(|| agent.model.take());
        agent.prompt_cache = line.prompt_cache.or(agent.prompt_cache);
        agent.limits = [("5 h", line.five_hour), ("7 d", line.seven_day)]
            .into_iter()
            .filter_map(|(name, limit)| Some((name, limit?)))
            .collect();
        let used_to = |least: f64| {
            let limits = [line.five_hour, line.seven_day].into_iter().flatten();
            let used_up = limits.filter(|limit| limit.used_percentage >= least);
            used_up.filter_map(|limit| moment(limit.resets_at?)).max()
        };
        // One that is nearly used up holds nothing while another is.
        agent.limit_reset = used_to(100.0).or_else(|| used_to(USED_UP));
        if let Some(id) = &line.model_id {
            self.guard.set_model_hint(id);
            self.agent.model_id = Some(id.clone());
        }
        if let Some(cost) = line.cost_usd {
            self.cost_reported(cost);
        }
    }

    /// Takes over the agent's last words; a rewound conversation has taken back those before.
    fn words_read(&mut self, said: Option<String>, is_rewound: bool) {
        let known = self.agent.last_message.take().filter(|_| !is_rewound);
        self.agent.last_message = said.or(known);
    }

    /// Takes over the tokens that the session has used. Where a conversation was replaced, those up to its boundary belong to the
    /// iteration before, and are returned: a sign that it is replaced may come before the last call of that one is read.
    fn spent(&mut self, facts: &TranscriptFacts) -> Option<TokenTotals> {
        let mut late = None;
        if let Some(before) = self.compactions.before_our_own() {
            let is_behind = facts.compactions > before;
            let totals = if is_behind {
                facts.before_compaction
            } else {
                facts.totals
            };
            late = self.spending.settle_tokens(self.id, totals);
            if !is_behind {
                return late;
            }
        }
        self.spending.observe_tokens(self.id, facts.totals);
        late
    }
}

/// Notes the figure of a conversation's first call: the client may write several calls before they are read. A resumed conversation
/// had its first call in an earlier iteration, and one that the client has compacted since begins with a later one.
fn note_base_load(lineage: &mut Lineage, session: &Session, first: Tokens) {
    let is_known = session.compactions.before_our_own().is_none();
    if is_known
        && session.compactions.count() == 0
        && let Some(current) = lineage.current_mut()
        && handoff_size(current).is_some()
        && (current.reboot.is_some() || session.transcript.old_turns == Some(0))
    {
        current.tokens_at_birth = Some(first);
    }
}

impl AgentView {
    /// Takes in the prompt that a hook has refused; returns it if that is new.
    fn refusal_read(&mut self, words: &HumanWords) -> Option<RefusedPrompt> {
        let before = std::mem::replace(&mut self.refused, words.refused.clone());
        self.refused
            .clone()
            .filter(|one| before.as_ref() != Some(one))
    }
}

/// Returns why a handoff that was taken for proven has not arrived, where a hook has refused this prompt, and whether that is sure: our
/// own hook had reported it before, and its session is of no use.
fn handoff_refusal(model: &Model, refused: &RefusedPrompt) -> Option<(String, bool)> {
    let known = &model.session.transcript;
    let is_given = known.turns > 0 || known.handoff.is_some();
    // The session to which a person has gone since has no handoff.
    let begun = model.lineage.current().and_then(|one| one.reboot.as_ref());
    let is_left = begun.is_some_and(|one| one.new_session != Some(model.session.id));
    let is_none = is_given || is_left || refused.is_handoff == Some(false);
    let why = || format!("a hook has refused the handoff: {}", refused.why);
    (!is_none).then(|| (why(), refused.is_handoff == Some(true)))
}

/// Takes in the facts of a transcript that has grown.
pub fn transcript_read(model: &mut Model, session: SessionId, mut facts: TranscriptFacts) {
    if session != model.session.id {
        return;
    }
    let words = facts.human.as_ref();
    let refused = words.and_then(|words| model.session.agent.refusal_read(words));
    let warmup = model.config.reboot.warmup_prompt.as_deref();
    let is_rewound = model.draft.transcript_read(&mut facts, warmup);
    if is_rewound {
        // The order for a summary of it is forgotten.
        model.emit(Effect::CancelSummary);
        model.info("the conversation was rewound: what was said and decided since is taken back");
    }
    model.session.words_read(facts.said.take(), is_rewound);
    let signals = std::mem::take(&mut facts.signals);
    let ran = std::mem::take(&mut facts.ran);
    let (used, first_used, prompt) = (facts.used, facts.first_used, facts.last_prompt.clone());
    if let Some(name) = &facts.model {
        model.session.guard.set_model_hint(name);
    }
    let known = &model.session.transcript;
    let has_more_turns = known.turns > 0 && facts.turns > known.turns;
    // One more boundary is a sign too.
    let is_compacted = known.whole && facts.whole && facts.compactions > known.compactions;
    // A trimmed copy that grows has its client, whether that has hooks or not.
    if has_more_turns {
        model.reboot.on(AttemptEvent::SessionSeen);
    }
    if is_compacted {
        reboot::on(model, ReplaceEvent::Compacted);
    }
    // While a file is read for the first time, its sums are of a part.
    if facts.whole
        && let Some(late) = model.session.spent(&facts)
    {
        let before = model.lineage.add_late_tokens(late).cloned();
        model.emit_all(before.map(|one| save_order(model, &one)));
    }
    let has_results = ran.iter().any(|one| one.call.is_some() && !one.by_subagent);
    let before = model.session.transcript_read(facts);
    if model.session.seen_elsewhere(&before) {
        autopilot::on(model, RunInput::ResumedElsewhere);
    }
    // After the last result of a step the turn can be cut. A call and its result may be read at once.
    model.scratch.at_seam |=
        (has_results || before.calls_open > 0) && model.session.is_between_calls();
    // This comes before the figure, so that the figure's fall is explained.
    if model.session.transcript.whole {
        let sign = CompactionSign::Boundaries(model.session.transcript.compactions);
        model.session.compaction_seen(sign).carry_out(model);
    }
    if let Some(first) = first_used {
        note_base_load(&mut model.lineage, &model.session, first);
    }
    figures::on(model, FigureEvent::Transcribed(used));
    (model.draft.take_transcribed(signals, model.now)).carry_out(model);
    for one in ran {
        let hookless = model.session.is_hookless();
        let ended = model.draft.call_shown(one, hookless, model.now);
        turn::on(model, ended.map(TurnEvent::ToolFinished));
    }
    // A hook would have proven the same.
    if let Some(prompt) = prompt.as_deref()
        && model.session.has_more_turns(&before)
    {
        submit::on(model, SubmissionEvent::Taken(prompt));
    }
    let (now, effects) = (model.now, &mut model.scratch.effects);
    let begun = model.session.turns_shown(&before, now, effects);
    let begins = begun.is_some();
    turn::on(model, begun);
    (model.session).end_shown(begins, &before, &mut model.scratch.effects);
    reboot::on(model, SurveyEvent::Grown);
    if let Some(line) = model.session.transcript.handoff.clone() {
        model.reboot.on(AttemptEvent::HandoffRead(&line));
    }
    // The hook is the proof; the transcript is the second one.
    if let Some(prompt) = prompt {
        model.reboot.prompt_seen(&prompt).carry_out(model);
    }
    if let Some((why, is_sure)) = refused.and_then(|refused| handoff_refusal(model, &refused))
        && reboot::act(model, RebootAction::BringBack(why.clone())).is_err()
        && is_sure
    {
        model.error(why);
    }
    if used.is_some() {
        autopilot::on(model, RunInput::FigureObserved);
    }
}
