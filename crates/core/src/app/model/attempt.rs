//! The facts that the reboot under way takes in. Its next step follows from them once all features look again at what is true.

use std::{collections::BTreeMap, mem::discriminant};

use pitstop_agent::bridge::{Decision, OrderId};
use pitstop_base::{
    clean,
    clock::{At, milliseconds},
};
use pitstop_handoff::{Handoff, PreservedState};
use pitstop_transcript::{SessionId, Tokens};

use crate::{
    api::wire::AgentState,
    app::{consequences::Consequences, effect::Effect, event::TimerId},
    config::RebootConfig,
    lineage::{Cause, RebootRecord, TrimRecord, Way, journal::Step},
};

use super::{
    reboot::{
        Approval, Attempt, Held, Kind, LastLook, Launch, Phase, Prepared, Proof, Reboot, Replacing,
    },
    unsent::OnDisk,
};

/// The command that begins the turn after a replaced conversation, by its name in hooks and the transcript.
pub(in crate::app) const COMMAND: &str = "pitstop:go";

/// A fact about the reboot under way.
#[derive(Clone, Debug)]
pub(in crate::app) enum AttemptEvent<'a> {
    /// The facts for the draft were read.
    Gathered,
    /// All that the new agent needs was made, or was refused for this reason, for the attempt with this epoch.
    Prepared(u64, Option<String>),
    /// This unsent prompt is on disk.
    DraftKept(Option<String>),
    /// The session that ends has ended as this one.
    EndedAs(SessionId),
    /// The trimmed copy of this order was made, or could not be.
    Copied(u64, Result<TrimRecord, String>),
    /// The new agent's process runs.
    Spawned,
    /// The new agent's process could not be started.
    NotSpawned(&'a str),
    /// The agent's process has ended in this way.
    AgentEnded(String),
    /// The client runs in the session that it was started for.
    SessionSeen,
    /// The marker of the handoff was seen in the pane.
    MarkerSeen,
    /// The transcript has a handoff that begins with this line: in a compaction that was answered there is no prompt with it.
    HandoffRead(&'a str),
    /// The agent was given a prompt, or its turn is over.
    WentOn,
    /// The handoff that the client was given was not put in force: its person has stopped the compaction.
    StoppedInClient,
    /// The moment is not a safe one, while the agent is in this state.
    NotSafe(AgentState),
    /// The last look at the prompt box has come as far as this.
    Looked(LastLook),
    /// Another call has begun where the turn was to be cut: the next gap between calls is waited for.
    CallBegun,
    /// This is kept on disk of the prompt box while the conversation is replaced around it.
    DraftBeside(OnDisk),
    /// The client has the text: by this order, or by the answer to its question.
    HandedOut(Option<OrderId>),
    /// The start of the process that belongs to the phase was ordered; true if it gets the handoff as its prompt.
    StartOrdered(bool),
    /// The phase has come as far as this one, which is in the journal already.
    GotOn(Phase),
    /// The clock by which `auto` announces it has stopped.
    ClockStopped,
    /// Another way was taken, while nothing has been done in the one before.
    WayTaken(Kind),
    /// A person or a script has chosen this way.
    WayChosen(Way),
    /// It answers this compaction of the client's, which has begun for this cause: the client waits in it.
    Holds(Cause, Held),
    /// It is approved, with this message.
    Approved(Approval, Handoff),
    /// The running turn is to be interrupted.
    Pushed,
    /// `auto` waits no longer for the end of the running turn.
    OutWaited,
    /// A person has approved it from this device.
    ApprovedFrom(&'a str),
    /// The agent has gone to this session.
    SessionMoved(SessionId),
    /// The context is full: it is due at more than a good moment.
    WindowFull,
    /// The new agent could not take over for this reason: the old session is to be resumed.
    RollsBack(String),
    /// The delay of the warm-up prompt is over, by the timer of this epoch.
    WarmUpDue(u64),
}

/// Returns the timer after which a proof that has not come is late.
pub(in crate::app) const fn verify_timer(config: &RebootConfig, epoch: u64) -> Effect {
    Effect::SetTimer(TimerId::Verify(epoch), config.verify_timeout)
}

impl Reboot {
    /// Begins an attempt, whose timers have this epoch.
    pub(in crate::app) fn begin(&mut self, attempt: Attempt, epoch: u64) {
        // The reboot answers the agent's request.
        self.wish = None;
        self.refused = None;
        if attempt.kind.is_reboot() {
            self.failure = None;
        }
        self.attempt = Some(Attempt { epoch, ..attempt });
    }

    /// Passes an event to the reboot that is under way; without a reboot nothing happens.
    pub(in crate::app) fn on(&mut self, event: AttemptEvent) {
        if let Some(attempt) = &mut self.attempt {
            attempt.on(event);
        }
    }

    /// Notes that this order to read the prompt box has ended. Returns false if it is not waited for.
    pub(in crate::app) fn look_done(&mut self, order: OrderId) -> bool {
        let phase = self.attempt.as_ref().map(|one| &one.phase);
        let waits = matches!(phase, Some(Phase::Waiting { look: LastLook::Ordered(one), .. }) if *one == order);
        if waits {
            self.on(AttemptEvent::Looked(LastLook::Done));
        }
        waits
    }

    /// Takes the message as it is now, where no one has read the one that was fixed, a turn has gone on since, or it is a person's
    /// version, which may be newer than their approval.
    pub(in crate::app) fn renew_message(&mut self, message: &Handoff, edited: bool) {
        let renews =
            |one: &&mut Attempt| one.approved == Some(Approval::Auto) || one.outdated || edited;
        let attempt = self.attempt.as_mut().filter(renews);
        if let Some(fixed) = attempt.and_then(|attempt| attempt.handoff.as_mut()) {
            fixed.clone_from(message);
        }
    }

    /// Notes how an attempt ends: the reason if it did not complete. Returns the unsent prompt that was written to disk for it.
    pub(in crate::app) fn close(
        &mut self,
        attempt: &mut Attempt,
        why: Option<&str>,
        now: At,
    ) -> OnDisk {
        self.ending = None;
        // If we were killed before the end is on disk, the next start would find the reboot open and the prompt box empty.
        if attempt.beside != OnDisk::Nothing {
            self.beside = Some((attempt.id, std::mem::take(&mut attempt.beside)));
        }
        if let Some(why) = why {
            let failure = attempt.failure.get_or_insert_with(|| why.to_owned());
            self.failure = Some(failure.clone());
        } else if attempt.kind.is_reboot() {
            // A run that begins a session for every turn does so by intention.
            if attempt.cause != Cause::Autopilot {
                self.note_done(now);
            }
        } else {
            self.failure.clone_from(&attempt.failure);
        }
        match &mut attempt.phase {
            Phase::Waiting { draft, .. } => std::mem::take(draft),
            _ => OnDisk::Nothing,
        }
    }

    /// Notes that this step is on disk. Returns the unsent prompt that needs its place there no longer, if the step was the last.
    pub(in crate::app) fn journaled(&mut self, id: uuid::Uuid, step: Step) -> Option<OnDisk> {
        let attempt = self.attempt.as_mut();
        if let Some(written) = attempt.filter(|one| one.id == id && one.step() == step) {
            written.journaled = true;
        }
        let ended = self
            .beside
            .take_if(|(one, _)| *one == id && step.is_final());
        ended.map(|(_, kept)| kept)
    }

    /// Takes a prompt that reached the agent as the proof, if it is the handoff.
    pub(in crate::app) fn prompt_seen(&mut self, prompt: &str) -> Consequences {
        let mut done = Consequences::default();
        let begun = |one: &&mut Attempt| one.kind != Kind::Trim && one.has_begun();
        let Some(attempt) = self.attempt.as_mut().filter(begun) else {
            return done;
        };
        let Some(handoff) = &attempt.handoff else {
            return done;
        };
        let go = attempt.kind.replaces() && is_go(prompt, &handoff.marker.nonce);
        if !go && !handoff.marker.is_in(prompt) {
            return done;
        }
        if !go && clean::composed(prompt.trim_end()) != clean::composed(&handoff.text) {
            let (sent, arrived) = (handoff.text.len(), prompt.len());
            done.error(format!(
                "the handoff arrived changed: {sent} bytes sent, {arrived} arrived"
            ));
        }
        attempt.set_proof(Proof::Seen);
        done
    }

    /// Takes in that the time for the proof is over by the timer of this epoch, while the client `waits` for a prompt, or the message
    /// `is_typed` still.
    pub(in crate::app) fn proof_is_late(
        &mut self,
        epoch: u64,
        (waits, is_typed): (bool, bool),
        config: &RebootConfig,
    ) -> Consequences {
        let mut done = Consequences::default();
        let awaits = |one: &&mut Attempt| one.epoch == epoch && !one.is_proven();
        let Some(attempt) = self.attempt.as_mut().filter(awaits) else {
            return done;
        };
        if attempt.held.is_some() && matches!(attempt.phase, Phase::Replacing(_)) {
            attempt.on(AttemptEvent::StoppedInClient);
        } else if attempt.kind == Kind::Trim && waits {
            // Without hooks the screen is the proof: a client that waits for a prompt has taken the session.
            attempt.set_proof(Proof::Seen);
        } else if is_typed {
            // The time begins with the Enter.
            done.emit(verify_timer(config, epoch));
        } else if !attempt.is_overdue() {
            attempt.set_proof(Proof::Overdue);
            done.error(match attempt.kind {
                Kind::Trim => "the trimmed session is not confirmed: look at the pane (a dialog may wait for you)",
                _ => "the handoff is not confirmed: look at the pane (a dialog may wait for you); the handoff stays in its panel",
            });
        }
        done
    }
}

impl Attempt {
    /// Returns the answer that gives the client the handoff, if the client waits for one in a compaction.
    pub(in crate::app) fn answer(&self) -> Option<Effect> {
        let held = self.held.as_ref().filter(|held| !held.answered)?;
        let text = self.handoff.as_ref()?.text.clone();
        let (id, decision) = (held.id.clone(), Decision::Replace { text });
        Some(Effect::AnswerQuestion { id, decision })
    }

    /// Lets the client continue in its own way, if it waits in a compaction. A reboot under review goes on as any other.
    pub(in crate::app) fn let_client_go(&mut self) -> Option<Effect> {
        let held = self.held.take_if(|held| !held.answered)?;
        let (id, decision) = (held.id, Decision::Client);
        Some(Effect::AnswerQuestion { id, decision })
    }

    /// Returns the record of this reboot in an iteration: how long each step from the approval on took, and what was sent.
    pub(in crate::app) fn reboot_record(
        &self,
        new_session: SessionId,
        preserved: &PreservedState,
        now: At,
    ) -> RebootRecord {
        let handoff = self.handoff.as_ref();
        let in_place = handoff.filter(|_| self.kind.replaces());
        let sent = handoff.filter(|_| self.kind != Kind::Trim);
        let mut transition_time_ms = BTreeMap::new();
        let ends = self.entered.iter().skip(1).map(|(_, at)| *at);
        for ((step, at), end) in self.entered.iter().zip(ends.chain([now])) {
            if !matches!(step, Step::Armed | Step::Drafting | Step::Review) {
                let ms = milliseconds(end.since(*at));
                *transition_time_ms.entry(*step).or_default() += ms;
            }
        }
        // A checkpoint that was saved without a supervisor has no session.
        let has_old = self.kind.replaces() || self.old != new_session;
        RebootRecord {
            old_session: has_old.then_some(self.old),
            new_session: Some(new_session),
            way: self.kind.way(),
            nonce: in_place.map(|handoff| handoff.marker.nonce.clone()),
            trim: self.trimmed,
            cause: self.cause,
            transition_time_ms,
            handoff_bytes: sent.map_or(0, |handoff| handoff.bytes() as u64),
            handoff_tokens: sent.map_or(Tokens(0), Handoff::tokens),
            verified: self.is_proven(),
            warmed_up: false,
            approved_from: self.approved_from.clone(),
            preserved_state: serde_json::to_value(preserved).ok(),
        }
    }

    /// Reports whether it may answer a compaction that the client asks about: it is not too far for that, and has answered none. One
    /// that waits for its answer was stopped in the client, which makes one at a time.
    pub(in crate::app) fn may_hold(&self) -> bool {
        let answered = self.held.as_ref().is_some_and(|held| held.answered);
        self.is_harmless() && self.kind.is_reboot() && !answered
    }

    fn on(&mut self, event: AttemptEvent) {
        match event {
            AttemptEvent::WayTaken(kind) => self.kind = kind,
            AttemptEvent::WayChosen(way) => {
                self.kind = way.into();
                self.is_chosen = true;
            }
            AttemptEvent::Holds(cause, held) => {
                self.kind = Kind::InPlace;
                self.cause = cause;
                self.held = Some(held);
            }
            AttemptEvent::Approved(approval, message) => {
                self.approved = Some(approval);
                // Where the text is empty, nothing has to arrive.
                self.handoff = (!message.text.is_empty()).then_some(message);
            }
            AttemptEvent::Pushed => self.force = true,
            AttemptEvent::CallBegun => self.force = false,
            AttemptEvent::ApprovedFrom(device) => self.approved_from = Some(device.to_owned()),
            AttemptEvent::DraftBeside(on_disk) => self.beside = on_disk,
            AttemptEvent::RollsBack(why) => {
                self.failure = Some(why);
                self.beside = OnDisk::Nothing;
            }
            AttemptEvent::WindowFull if self.cause == Cause::Breakpoint => {
                self.cause = Cause::Threshold;
            }
            AttemptEvent::SessionMoved(session) if self.kind.is_reboot() && self.is_harmless() => {
                self.old = session;
            }
            event => self.on_in_phase(event),
        }
    }

    /// Takes in a fact whose meaning depends on the phase.
    fn on_in_phase(&mut self, event: AttemptEvent) {
        let (begun, by_auto) = (self.has_begun(), self.is_by_auto());
        match (event, &mut self.phase) {
            (AttemptEvent::Gathered, Phase::Drafting { gathered }) => *gathered = true,
            // A different attempt, or none, means that this one was taken back meanwhile.
            (AttemptEvent::Prepared(epoch, refused), Phase::Preparing(prepared))
                if epoch == self.epoch && *prepared == Prepared::Ordered =>
            {
                *prepared = refused.map_or(Prepared::Ready, Prepared::Refused);
            }
            // The prompt box is read once more: the person may have continued typing meanwhile.
            (AttemptEvent::DraftKept(Some(text)), Phase::Waiting { look, draft })
                if *draft == OnDisk::Ordered(text.clone()) =>
            {
                *draft = OnDisk::Kept(text);
                *look = LastLook::Pending;
            }
            (AttemptEvent::EndedAs(session), Phase::Ending) if self.kind.is_reboot() => {
                self.old = session;
            }
            (AttemptEvent::Copied(ask, made), Phase::Starting { copying, agent })
                if *copying && ask == self.epoch =>
            {
                match made {
                    Ok(record) => self.trimmed = Some(record),
                    Err(why) => {
                        let why = format!("the trimmed copy could not be made: {why}");
                        agent.launch = Launch::Failed(why);
                    }
                }
            }
            (AttemptEvent::Spawned, phase) => phase.launched(Launch::Running),
            (AttemptEvent::NotSpawned(why), phase) => {
                phase.launched(Launch::Failed(why.to_owned()));
            }
            (AttemptEvent::AgentEnded(how), Phase::Replacing(replacing)) => replacing.end(&how),
            // In any other phase it is the old one that is gone.
            (AttemptEvent::AgentEnded(how), phase) => {
                phase.launched(Launch::Failed(format!(
                    "the new agent ended at once: {how}"
                )));
            }
            (AttemptEvent::SessionSeen, _) if self.kind == Kind::Trim && begun => {
                self.set_proof(Proof::Seen);
            }
            (AttemptEvent::MarkerSeen, _) => self.set_proof(Proof::Seen),
            (AttemptEvent::HandoffRead(first_line), _)
                if begun
                    && (self.held.is_some() || self.kind == Kind::OnTheFly)
                    && (self.handoff.as_ref()).is_some_and(|one| one.marker.is_in(first_line)) =>
            {
                self.set_proof(Proof::Seen);
            }
            (AttemptEvent::StoppedInClient, Phase::Replacing(replacing)) => {
                let why = "the client has not taken the handoff: its compaction was stopped";
                *replacing = Replacing::Refused(why.to_owned());
            }
            (AttemptEvent::NotSafe(state), Phase::Waiting { look, .. }) => {
                *look = LastLook::Pending;
                self.outdated |= state == AgentState::Busy;
            }
            (AttemptEvent::Looked(at), Phase::Waiting { look, .. }) => *look = at,
            (AttemptEvent::ClockStopped, Phase::Review { clock }) => *clock = None,
            (AttemptEvent::HandedOut(order), Phase::Replacing(replacing)) => {
                let overdue = false;
                *replacing = Replacing::HandedOut { order, overdue };
                if let Some(held) = self.held.as_mut().filter(|_| order.is_none()) {
                    held.answered = true;
                }
            }
            (AttemptEvent::WentOn, phase) => self.passed_over |= phase.only_lacks_proof(),
            (AttemptEvent::StartOrdered(given), phase) => phase.start_ordered(given),
            (AttemptEvent::GotOn(next), phase) if discriminant(&next) == discriminant(phase) => {
                *phase = next;
            }
            (AttemptEvent::OutWaited, Phase::Waiting { .. }) if by_auto => self.force = true,
            (AttemptEvent::WarmUpDue(epoch), Phase::Warming { due, .. }) if epoch == self.epoch => {
                *due = true;
            }
            _ => {}
        }
    }
}

impl Phase {
    /// Reports whether the session goes on without the message if it goes on now. A turn that ends before the client is late is the one
    /// that is cut, or that the client compacts in.
    const fn only_lacks_proof(&self) -> bool {
        matches!(
            self,
            Self::Verifying(_) | Self::Replacing(Replacing::HandedOut { overdue: true, .. })
        )
    }

    /// Notes that the start of the process was ordered, with the message as its prompt if that is `given`.
    fn start_ordered(&mut self, given: bool) {
        self.launched(Launch::Ordered);
        if let Some(agent) = self.agent_mut() {
            agent.given = given;
        }
    }

    /// Notes how far the start of the process has come that belongs to this phase.
    fn launched(&mut self, launch: Launch) {
        if let Self::RollingBack(now) = self {
            *now = launch;
        } else if let Some(agent) = self.agent_mut() {
            agent.launch = launch;
        }
    }
}

impl Replacing {
    /// Notes that the agent has ended meanwhile.
    fn end(&mut self, how: &str) {
        let why = match self {
            Self::HandedOut { .. } | Self::Revoking { .. } => {
                format!("the agent ended while its conversation was being replaced: {how}")
            }
            _ => format!("the agent ended before its conversation was replaced: {how}"),
        };
        *self = Self::Gone(why);
    }
}

/// Reports whether this prompt is the command that begins the turn after the handoff.
pub(in crate::app) fn is_go(prompt: &str, nonce: &str) -> bool {
    !nonce.is_empty() && prompt.contains(COMMAND) && prompt.contains(nonce)
}
