//! The pure core: [`Core::update`] takes an event and returns the effects to carry out.
//!
//! It has no clock, file, socket, thread or randomness. The [`Model`] belongs to the [`Core`]; one loop calls
//! [`Core::update`] with one event after the other, and everything else only looks at the model. Late answers name the
//! iteration, session or epoch they were asked in, and are dropped when that is over.

pub mod autopilot;
pub mod cold_cache;
mod consequences;
pub mod draft;
pub mod effect;
pub mod event;
pub mod facts;
pub mod forecast;
pub mod metrics;
pub mod model;
pub mod needs;
pub mod outside;
pub mod reboot;
pub mod refusal;
pub mod session;
pub mod view;

pub use draft::{breakpoint, carried, checkpoint, handoff, record, signal, summary};
pub use effect::{Effect, Effects};
pub use event::Event;
pub use model::Model;
pub use model::copy;
pub use outside::{changes, control, report, reported, restore, tools};
pub use reboot::{ending, in_place, iteration, leave, moment, submit, trim, unsent};
pub use session::{
    activity, agent, bridge, client_limit, compaction, cost, daemon, figures, hookless,
    host_output, human, payoff, places, process, prompt, signs, suspend, turn,
};
pub use view::{external, focus, history, input, layout, reading, tour};

use crate::api::wire::Reply;
use pitstop_agent::AgentEvent;
use pitstop_base::{clock::At, exit, format};

use autopilot::RunInput;
use breakpoint::MomentFacts;
use carried::Keep;
use draft::summary::SummaryEvent;
use ending::EndingEvent;
use event::{PaneEvent, ReadEvent, StoreEvent, TimerId};
use figures::FigureEvent;
use model::{
    Beginning, CarryOut, Focus, attempt::AttemptEvent, event_scratch::EventScratch,
    submission::SubmissionEvent, trim::SurveyEvent,
};
use process::ProcessEnd;
use reboot::{RebootEvent, in_place::ReplaceEvent};

/// The model, and the only way to change it: by an event.
#[derive(Debug)]
pub struct Core {
    model: Model,
}

impl Core {
    /// Takes a model over.
    pub const fn new(model: Model) -> Self {
        Self { model }
    }

    /// Takes a model over as [`Core::new`] does, where there is no terminal: no panel is seen.
    pub const fn headless(mut model: Model) -> Self {
        model.view.hide_panels();
        Self::new(model)
    }

    /// Returns the model as it is.
    pub const fn view(&self) -> &Model {
        &self.model
    }

    /// Sets the time when nothing else has happened: ages and notices are shown as they are now.
    pub const fn set_time(&mut self, at: At) {
        self.model.now = at;
    }

    /// Takes in what happened at this time and returns the effects to carry out.
    pub fn update(&mut self, at: At, event: Event) -> Effects {
        Effects::from(update(&mut self.model, at, event))
    }

    /// Returns the model as it was last, with what the agents have left running.
    pub fn end(self, left_running: Option<String>) -> Model {
        let mut model = self.model;
        model.outside.leave_running(left_running);
        model
    }
}

/// Returns the model of a supervisor that has not started its agent yet.
pub fn model_of(beginning: Beginning) -> Model {
    let mut model = Model::new(beginning);
    let settings = figures::guard_settings(&model.config);
    model.session.guard.set_settings(settings);
    handoff::draft(&mut model);
    model
}

/// The number of times that the features may look again at what one of them has changed: more than any event needs.
const PASSES: usize = 8;

/// Does the work of [`Core::update`], also for tests and benchmarks, whose models are their own: one line per event, naming the
/// feature that answers it. Then the features look at what is true now, in one order, until nothing changes any more. Facts may
/// therefore arrive in any order, and no feature has to know which other one waits for what it does.
pub fn update(model: &mut Model, at: At, event: Event) -> Vec<Effect> {
    model.now = at;
    model.scratch = EventScratch::default();
    let before = metrics::turns(model);
    let state = model.session.agent.state;
    answer(model, event);
    let left = model.draft.leave_hidden_editors(&model.view, at);
    left.carry_out(model);
    for _ in 0..PASSES {
        let before = (model.scratch.effects.len(), reboot::progress_key(model));
        handoff::draft(model);
        ending::on(model, EndingEvent::Settled);
        autopilot::on(model, RunInput::Intervened);
        reboot::settle(model);
        autopilot::on(model, RunInput::Intervened);
        autopilot::on(model, RunInput::Settled);
        if before == (model.scratch.effects.len(), reboot::progress_key(model)) {
            break;
        }
    }
    if model.session.agent.pastes.awaits_mark()
        && let Some(text) = facts::marked_text(model)
    {
        model.session.agent.pastes.note_marks(&text);
    }
    carried::keep(model, Keep::Soon);
    model.session.note_work(model.now);
    let next = tour::next(model);
    model.view.go_to_step(next);
    model.view.drop_hidden_replay();
    let turns = metrics::turns_since(model, before);
    (model.outside.counters).count_work(turns, &model.scratch.effects);
    if let Some(said) = activity::change_words(model, state) {
        model.view.log(&said, false, model.now.wall);
    }
    if let Some(call) = model.session.release_permission() {
        model.answer(call, Reply::Accepted);
    }
    let facts = (model.autopilot.is_some(), at.wall);
    let found = needs::found(model);
    let calls = (model.outside).take_needs(found, |kind| model.reboot.may_call(kind), facts);
    calls.carry_out(model);
    let size = layout::layout(model).pane_size();
    model.view.fit_pane(size).carry_out(model);
    let title = host_output::title(model);
    model.view.retitle(title).carry_out(model);
    // What was shown in the footer just now is taken down again later.
    let newest = model.view.notices.back();
    if newest.is_some_and(|notice| notice.at == at) {
        model.view.notice_timer(at).carry_out(model);
    }
    autopilot::publish(model);
    model.take_effects()
}

fn answer(model: &mut Model, event: Event) {
    match event {
        Event::Host(event) => input::host(model, event),
        Event::Pane(event) => pane(model, event),
        Event::Agent(event) => agent::said(model, event),
        Event::Bridge(event) => bridge::received(model, event),
        Event::Read(event) => read(model, event),
        Event::Store(StoreEvent::Journaled { reboot, step }) => {
            let kept = model.reboot.journaled(reboot, step);
            let drop = kept.and_then(|kept| model.reboot.forget_draft(&kept));
            model.emit_all(drop);
        }
        Event::Store(StoreEvent::CheckpointKept { id, kept }) => {
            model.draft.checkpoint_kept(id, kept).carry_out(model);
        }
        Event::Store(StoreEvent::CarriedRead { session, found }) => {
            if session == model.session.id {
                model.draft.carried_read(found).carry_out(model);
            }
        }
        Event::Store(StoreEvent::EarlierRuns(earlier)) => {
            model.view.history.earlier_read(earlier);
        }
        Event::Store(StoreEvent::TurnsRead(turns)) => {
            model.turns.read_back(&turns, model.session.iteration());
        }
        Event::Store(StoreEvent::PastRead {
            run,
            iteration,
            found,
        }) => {
            let lineage = &model.lineage;
            model
                .view
                .history
                .past_read(&run, iteration, &found, lineage);
        }
        Event::Store(StoreEvent::HistoryFound { text, found }) => {
            model.view.history.take_found(&text, found).carry_out(model);
        }
        Event::Store(StoreEvent::ErrorChanged(error)) => {
            model.outside.store_changed(error).carry_out(model);
        }
        Event::TimerFired(id) => timer(model, id),
        Event::ControlAsked { call, control } => control::asked(model, call, control),
        Event::PermissionAsked { call, request } => {
            let (session, about) = (request.session, request.tool.clone());
            agent::said(model, AgentEvent::DialogOpened { session, about });
            let gone = model.session.permission_asked(call, *request);
            gone.for_each(|call| model.answer(call, Reply::Accepted));
        }
        Event::HookGone(call) => model.session.permission_gone(call),
        Event::Reported { call, report } => reported::reported(model, call, report),
        Event::ToolCalled { call, caller, tool } => tools::called(model, call, caller, tool),
        Event::ShutdownAsked { signal } => control::quit(model, exit::INTERRUPTED, Some(signal)),
        Event::PlacesChecked(seen) => {
            model.outside.places_checked(&seen).carry_out(model);
            if seen.made.socket {
                model.session.hooks_lost(&mut model.scratch.effects);
                submit::on(model, SubmissionEvent::HooksLost);
            }
            if seen.made.files {
                record::save_iteration(model);
            }
        }
        Event::EffectFailed { what } => model.error(what),
    }
}

fn pane(model: &mut Model, event: PaneEvent) {
    match event {
        PaneEvent::Spawned {
            iteration,
            process,
            new_ids,
        } => process::launched(model, iteration, Ok((process, new_ids))),
        PaneEvent::SpawnFailed { iteration, why } => process::launched(model, iteration, Err(why)),
        PaneEvent::Exited { iteration, exit } => {
            process::ended(model, ProcessEnd::Exited(iteration, exit));
        }
        PaneEvent::Suspended => model.session.agent.suspended().carry_out(model),
        PaneEvent::Continued => {
            let continued = model.session.agent.continued();
            continued.unwrap_or_default().carry_out(model);
        }
        PaneEvent::Screen(fact) => {
            let focused = model.view.focus == Focus::Pane && model.view.overlay.is_none();
            let (ui, facts) = (&model.config.ui, (host_output::has_called(model), focused, model.now));
            let (follows, end) = model.session.screen_seen(fact, ui, facts);
            follows.carry_out(model);
            turn::on(model, end);
        }
        PaneEvent::PasteModeSet { .. }
        | PaneEvent::MouseModeSet { .. }
        | PaneEvent::FullScreenSet { .. } => model.session.agent.mode_set(&event),
        PaneEvent::LinkHovered { target } => model.view.link_hovered(target),
        PaneEvent::CopyMode(outcome) => model.view.copy.answered(outcome).carry_out(model),
        PaneEvent::PromptBoxSeen(prompt_box) => {
            let moved = model.session.box_seen(prompt_box);
            submit::on(model, SubmissionEvent::BoxChanged);
            if let Some(after) = moved {
                model.session.box_moved(after, &mut model.scratch.effects);
            }
        }
        PaneEvent::MarkerSeen => model.reboot.on(AttemptEvent::MarkerSeen),
        PaneEvent::InputRefused => model.error(
            "the agent does not read its input: what you typed last was not delivered (Ctrl-C drops what waits)",
        ),
        PaneEvent::InputCancelled { bytes } => {
            let size = format::bytes(bytes as u64);
            model.info(format!("{size} that the agent had not read were dropped"));
        }
        PaneEvent::LeftoversFound { processes } => {
            let list = processes.join(", ");
            model.error(format!("still running after the agent has ended: {list}"));
        }
    }
}

fn read(model: &mut Model, event: ReadEvent) {
    let now = model.now;
    match event {
        ReadEvent::Scratchpad(disk) => model.draft.notes.file_read(disk, now).carry_out(model),
        ReadEvent::ScratchpadSaved(text) => model.draft.notes.saved(text).carry_out(model),
        ReadEvent::ScratchpadNotSaved(why) => model.draft.notes.not_saved(why).carry_out(model),
        ReadEvent::Draft(text) => {
            model.draft.keeping.draft_found(&text);
            model.reboot.kept_found(&text).carry_out(model);
        }
        ReadEvent::DraftKept(text) => model.reboot.on(AttemptEvent::DraftKept(text)),
        ReadEvent::Versions(versions) => {
            let restored = model.draft.versions_read(Some(versions), now);
            restored.carry_out(model);
        }
        ReadEvent::VersionsUnreadable => model.draft.versions_read(None, now).carry_out(model),
        ReadEvent::EditorClosed(text) => {
            let (lent, iteration) = (model.view.editor_left(model.now), model.session.iteration());
            let closed = (model.draft).editor_closed(lent, text, iteration, model.now);
            closed.carry_out(model);
        }
        ReadEvent::Git(facts) => breakpoint::git_read(model, facts),
        ReadEvent::HandoffFiles(handoff_files) => {
            model.draft.files_read(*handoff_files);
            model.reboot.on(AttemptEvent::Gathered);
        }
        ReadEvent::PaneSignals { iteration, signals } => {
            if iteration == model.session.iteration() {
                model.draft.take_shown(signals, now).carry_out(model);
            }
        }
        ReadEvent::Recorded(iteration, commands) => {
            if iteration == model.session.iteration() {
                model.draft.commands_recorded(commands);
            }
        }
        ReadEvent::Transcript { session, facts } => agent::transcript_read(model, session, *facts),
        ReadEvent::TranscriptLost { session, why } => {
            figures::on(model, FigureEvent::TranscriptLost(session, &why));
        }
        ReadEvent::Prepared { attempt, refused } => {
            model.reboot.on(AttemptEvent::Prepared(attempt, refused));
        }
        ReadEvent::TrimPlanned { ask, plan } => reboot::on(model, SurveyEvent::Planned(ask, plan)),
        ReadEvent::Trimmed { ask, made } => model.reboot.on(AttemptEvent::Copied(ask, made)),
        ReadEvent::Estimate(reading) => figures::on(model, FigureEvent::Estimated(reading)),
        ReadEvent::ClientSettings(settings) => {
            figures::on(model, FigureEvent::SettingsRead(*settings));
        }
        ReadEvent::ClientWords(words) => figures::on(model, FigureEvent::WordsRead(words)),
        ReadEvent::Talk { iteration, talk } => {
            if talk.is_ok() && model.view.overlay.is_none() {
                model.view.move_focus(Focus::Pane).carry_out(model);
            }
            model.view.talk_read(iteration, talk).carry_out(model);
        }
        ReadEvent::Recording { iteration, cast } => {
            model.view.recording_read(iteration, cast).carry_out(model);
        }
        ReadEvent::Task(task) => autopilot::on(model, RunInput::TaskRead(task)),
        ReadEvent::Config(config) => control::reconfigure(model, *config),
        ReadEvent::TranscriptRead { id, read } => {
            summary::on(model, SummaryEvent::TranscriptRead(id, read));
        }
        ReadEvent::Summarized { id, outcome } => {
            summary::on(model, SummaryEvent::Answered(id, outcome));
        }
        ReadEvent::SessionNamed(of, mut started) => {
            agent::session_named(model, of, &mut started);
        }
        ReadEvent::Moved { session } => {
            if !model.session.agent.daemon.sessions.is_empty() && model.session.id != session {
                model.session.forked(session);
                reboot::on(model, RebootEvent::SessionMoved);
            }
        }
        ReadEvent::MovedEnded { holds, left } => {
            process::ended(model, ProcessEnd::Moved(holds, left));
        }
    }
}

fn timer(model: &mut Model, id: TimerId) {
    match id {
        TimerId::StopTimeout(epoch) => ending::on(model, EndingEvent::SignalOver(epoch)),
        TimerId::Enter(epoch) => submit::on(model, SubmissionEvent::TimerFired(epoch)),
        TimerId::AutoDelay(epoch) => reboot::tick(model, epoch).carry_out(model),
        TimerId::HeldPrompt(epoch) => {
            let effects = &mut model.scratch.effects;
            model.session.prompt_timer(epoch, model.now, effects);
        }
        TimerId::Compaction(epoch) => {
            reboot::on(model, RebootEvent::CompactionTimer(epoch));
        }
        TimerId::Verify(epoch) => {
            let waits = facts::is_calm(model) && model.session.agent.prompt_box.is_present();
            let is_typed = model.session.submission.is_before_enter();
            let config = &model.config.reboot;
            let late = model.reboot.proof_is_late(epoch, (waits, is_typed), config);
            late.carry_out(model);
        }
        TimerId::WarmUp(epoch) => model.reboot.on(AttemptEvent::WarmUpDue(epoch)),
        TimerId::Replay(epoch) => model.view.replay_tick(epoch).carry_out(model),
        TimerId::Summary(epoch) => summary::on(model, SummaryEvent::TimerFired(epoch)),
        TimerId::Survey(timer) => reboot::on(model, SurveyEvent::PauseOver(timer)),
        TimerId::Calm(epoch) => {
            let known = (model.autopilot.is_some(), model.now);
            let effects = &mut model.scratch.effects;
            let seen = model.session.judge_signs(epoch, known, effects);
            turn::on(model, seen);
            if facts::has_stopped_compacting(model, epoch) {
                reboot::on(model, ReplaceEvent::TurnAborted);
            }
        }
        TimerId::NewHead(epoch) => {
            let facts = MomentFacts::of(model);
            model.draft.heads_over(epoch, &facts).carry_out(model);
        }
        TimerId::Run(epoch) => autopilot::on(model, RunInput::TimerFired(epoch)),
        TimerId::RunClock => autopilot::on(model, RunInput::ClockDue),
        TimerId::MovedEnd(epoch) => {
            // The shell has not answered in time.
            if model.session.agent.daemon.is_late(epoch) {
                let (holds, left) = (None, Some("it could not be ended in time".to_owned()));
                process::ended(model, ProcessEnd::Moved(holds, left));
            }
        }
        TimerId::Notice => model.view.expire_notices(model.now).carry_out(model),
        TimerId::Moment => {
            let left = model.view.expire_card(model.now);
            model.emit_all(moment::next_timer(left, &model.reboot));
        }
        TimerId::Prefix => model.view.hesitated(),
        // A feature that waited for the time alone looks now, and the screen is drawn.
        TimerId::Quiet | TimerId::Typing => {}
        TimerId::LimitOver => model.outside.limit_looked_at(),
        TimerId::Age => model.emit_all(control::age_timer(model)),
        TimerId::ClientWords => model.session.client.look(&mut model.scratch.effects),
        TimerId::KeepCarried => carried::keep(model, Keep::Now),
        TimerId::SaveNotes(epoch) => model.draft.notes.timer(epoch, model.now).carry_out(model),
        TimerId::Bridge(iteration) => {
            let (follows, is_lost) = model.session.look_at_bridge(iteration, model.now);
            follows.carry_out(model);
            if is_lost {
                figures::on(model, FigureEvent::Moved);
            }
        }
        TimerId::Order(id) => model.session.orders.time_over(id).carry_out(model),
    }
}

#[cfg(test)]
mod tests;
