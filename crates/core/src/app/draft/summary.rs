//! The summary in the handoff: when it is written, by whom, and which version counts.
//!
//! ```text
//!  warn ──► order ──► transcript read ──► the one without a model ─────────► record, summary.md
//!             ▲            └──► a model is asked ──► its summary ──► handoff ───┘
//!  drafting ──┘ if turns have passed         └──► the reason for none ──────────┘
//! ```
//!
//! A model is asked once at the warn line, in the background, and again at a reboot if turns have passed since. A review never
//! waits for it; `auto` mode does, for the time that it has. A summary that has not come by then is not used, and the record notes
//! so.

use std::time::Duration;

use serde_json::json;

use crate::{
    api::wire::{ApiEvent, ApiEventKind},
    guard::Level,
    lineage::{Iteration, IterationId},
};
use pitstop_base::format;
use pitstop_handoff::summary::{Outcome, SummaryMade, SummarySource, count_marks};
use pitstop_transcript::SessionId;

use crate::app::{
    consequences::Consequences,
    draft::{handoff, record::save_iteration},
    effect::Effect,
    event::{SummaryId, TimerId},
    model::{
        CarryOut, Model,
        summaries::{Summaries, Summary, SummaryRequest},
    },
};

/// The time that a turn that has crossed the line may go on before it is summarized as it is: most cross it with their last words,
/// and what is written a moment too early is out of date at once and asked for again. An agent that looks idle is no exception: the
/// figure may be here before the hooks that report what the turn does.
const SETTLE: Duration = Duration::from_secs(3);

/// The time that drafting waits for the transcript to be read; half a gigabyte takes as long.
const READ_LIMIT: Duration = Duration::from_secs(5);

/// The time beyond its own limit after which the answer is given up: the shell is quicker unless something hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// The reasons for which a model's summary is not there yet, or not wanted.
const NOT_YET: &str = "the model has not answered yet";
const OFF: &str = "generate_summaries is off";

/// What happens to the summary.
#[derive(Debug)]
pub enum SummaryEvent {
    /// Usage has passed a line upwards, to this level.
    LineCrossed(Level),
    /// A turn has ended.
    TurnOver,
    /// A reboot is being drafted.
    Drafting,
    /// The transcript was read for this summary, or has no text.
    TranscriptRead(SummaryId, Result<(), String>),
    /// The model has answered, or failed to.
    Answered(SummaryId, Outcome),
    /// The timer of this epoch has run out.
    TimerFired(u64),
    /// The message is fixed, or the supervisor is left: for this reason, what has not come by now is not waited for.
    TooLate(&'static str),
    /// The iteration, or its session, is over.
    Closed,
}

/// What is true outside the summary.
struct SummaryFacts {
    iteration: IterationId,
    session: SessionId,
    /// The number of turns that the session has had.
    turns: u32,
    /// True if there is anything to summarize.
    has_transcript: bool,
    /// True if a model is to be asked at all.
    wants_model: bool,
    /// True if the agent is being ended: it adds nothing more that could be summed up.
    is_ending: bool,
    /// The time that the model has.
    timeout: Duration,
    /// What the summaries of this iteration have cost so far, by its record: one that was dropped has cost its price, too.
    cost: Option<f64>,
    /// The summary without a model, where the event may write one.
    plain: Option<String>,
}

impl SummaryFacts {
    fn of(model: &Model, plain: Option<String>) -> Self {
        let has_transcript = !model.is_generic() && model.config.handoff.generate_handoff;
        let settings = &model.config.summary;
        let record = model.lineage.get(model.session.iteration());
        Self {
            iteration: model.session.iteration(),
            session: model.session.id,
            turns: model.session.agent.turns,
            has_transcript,
            wants_model: settings.generate_summaries && has_transcript,
            is_ending: model.outside.quitting().is_some() || model.reboot.ending.is_some(),
            timeout: settings.timeout,
            cost: record.and_then(Iteration::summary_cost),
            plain,
        }
    }
}

/// Takes in what happens to the summary. One that has changed is put where it belongs: into the record and its file.
pub fn on(model: &mut Model, event: SummaryEvent) {
    let writes = matches!(
        event,
        SummaryEvent::TranscriptRead(..)
            | SummaryEvent::Answered(..)
            | SummaryEvent::TimerFired(_)
            | SummaryEvent::TooLate(_)
    );
    let plain = writes.then(|| handoff::draft(model));
    let plain = plain.and_then(|()| handoff::summary_without_model(&model.draft));
    let facts = SummaryFacts::of(model, plain);
    let (done, changed) = model.draft.summary.on(event, &facts);
    done.carry_out(model);
    let iteration = facts.iteration;
    if let Some((text, made)) = model.draft.summary.written().filter(|_| changed) {
        model.lineage.add_summary(iteration, text.clone(), made);
        model.emit(Effect::SaveSummary { iteration, text });
        save_iteration(model);
    }
}

/// Reports whether drafting has to wait: for the transcript in any case, for the model only if no one would look at the draft.
pub fn is_awaited(model: &Model, unattended: bool) -> bool {
    let order = model.draft.summary.order.as_ref();
    order.is_some_and(|order| order.reading || (unattended && order.asking))
}

impl Summaries {
    /// Takes in an event. Returns what follows, and whether the summary has changed.
    fn on(&mut self, event: SummaryEvent, facts: &SummaryFacts) -> (Consequences, bool) {
        let mut done = Consequences::default();
        let changed = match event {
            SummaryEvent::LineCrossed(level) => {
                if level >= Level::Critical && !facts.is_ending && !self.warned && facts.wants_model
                {
                    self.warned = true;
                    self.epoch += 1;
                    self.due = Some(self.epoch);
                    done.emit(Effect::SetTimer(TimerId::Summary(self.epoch), SETTLE));
                }
                false
            }
            SummaryEvent::TurnOver => {
                if self.due.take().is_some() {
                    self.give_order(true, facts, &mut done);
                }
                false
            }
            SummaryEvent::Drafting => {
                self.refresh(facts, &mut done);
                false
            }
            SummaryEvent::TranscriptRead(id, read) => {
                self.make_fallback(id, &read, facts, &mut done)
            }
            SummaryEvent::Answered(id, outcome) => self.answered(id, outcome, facts, &mut done),
            SummaryEvent::TimerFired(epoch) => self.time_over(epoch, facts, &mut done),
            SummaryEvent::TooLate(why) => {
                let order = self.close(&mut done);
                let late = order.is_some_and(|order| order.asking) && self.current.is_some();
                if late {
                    self.note(why, (None, None), facts, &mut done);
                }
                late
            }
            SummaryEvent::Closed => {
                self.close(&mut done);
                false
            }
        };
        // The one without a model follows what is known of the session.
        if let (true, Some(current), Some(plain)) = (changed, &mut self.current, &facts.plain)
            && current.made.source == SummarySource::Fallback
        {
            current.text.clone_from(plain);
        }
        (done, changed)
    }

    /// Orders a new summary if turns have passed since the last one, or if there is none.
    fn refresh(&mut self, facts: &SummaryFacts, done: &mut Consequences) {
        if !facts.has_transcript {
            return;
        }
        self.due = None;
        let turns = facts.turns;
        let by_model =
            |one: &Summary| one.made.source == SummarySource::Model && one.turns == turns;
        let under_way = |order: &SummaryRequest| order.asking && order.turns == turns;
        if self.current.as_ref().is_some_and(by_model) || self.order.as_ref().is_some_and(under_way)
        {
            return;
        }
        // A model would refuse again what it has refused a moment ago.
        let ask = facts.wants_model && self.answered != Some(turns);
        self.give_order(ask, facts, done);
    }

    fn give_order(&mut self, ask: bool, facts: &SummaryFacts, done: &mut Consequences) {
        self.epoch += 1;
        let id = SummaryId(self.epoch);
        self.order = Some(SummaryRequest {
            id,
            turns: facts.turns,
            reading: true,
            asking: ask,
        });
        done.emit(Effect::Summarize { id, ask });
        done.emit(Effect::SetTimer(TimerId::Summary(self.epoch), READ_LIMIT));
    }

    /// Makes the summary that needs no model, now that the transcript has been read.
    fn make_fallback(
        &mut self,
        id: SummaryId,
        read: &Result<(), String>,
        facts: &SummaryFacts,
        done: &mut Consequences,
    ) -> bool {
        let Some(mut order) = self.order.filter(|order| order.id == id) else {
            return false;
        };
        order.reading = false;
        // Without any text there is nothing to ask a model about.
        order.asking &= read.is_ok();
        self.order = order.asking.then_some(order);
        if order.asking {
            let limit = facts.timeout + PATIENCE;
            done.emit(Effect::SetTimer(TimerId::Summary(id.0), limit));
        }
        if let Err(why) = read {
            tracing::info!(why, "there is nothing to summarize");
            return false;
        }
        let ours = |one: &Summary| one.made.source == SummarySource::Fallback;
        let Some(text) = facts.plain.clone() else {
            return false;
        };
        if !self.current.as_ref().is_none_or(ours) {
            return false;
        }
        let before = self.current.take().map(|one| one.made);
        let made = before.unwrap_or_else(made_by_none);
        let reason = if order.asking {
            Some(NOT_YET.to_owned())
        } else if facts.wants_model {
            made.reason
        } else {
            Some(OFF.to_owned())
        };
        self.current = Some(Summary {
            text,
            made: SummaryMade {
                reason,
                cost_usd: facts.cost,
                ..made
            },
            turns: order.turns,
        });
        true
    }

    /// Takes over the model's answer, or its failure to give one.
    fn answered(
        &mut self,
        id: SummaryId,
        outcome: Outcome,
        facts: &SummaryFacts,
        done: &mut Consequences,
    ) -> bool {
        let Some(order) = self.order.take_if(|order| order.id == id) else {
            return false;
        };
        self.answered = Some(order.turns);
        let Outcome {
            text,
            cost_usd,
            duration_ms,
        } = outcome;
        match text {
            Ok(text) => {
                let marked = match count_marks(&text) {
                    0 => String::new(),
                    1 => "; 1 name or number in it is not found in the session, and marked"
                        .to_owned(),
                    count => format!(
                        "; {count} names or numbers in it are not found in the session, and marked"
                    ),
                };
                let seconds = duration_ms.div_ceil(1000);
                done.note(format!("the summary is written, in {seconds} s{marked}"));
                self.current = Some(Summary {
                    text,
                    made: SummaryMade {
                        source: SummarySource::Model,
                        cost_usd: sum(facts.cost, cost_usd),
                        duration_ms: Some(duration_ms),
                        reason: None,
                    },
                    turns: order.turns,
                });
            }
            Err(why) => {
                done.note(self.missed(&why));
                self.note(&why, (cost_usd, Some(duration_ms)), facts, done);
            }
        }
        true
    }

    /// Returns the notice for a model that gave no summary. The record has the whole reason.
    fn missed(&self, why: &str) -> String {
        let current = self.current.as_ref();
        let instead = match current.map(|one| one.made.source) {
            Some(SummarySource::Fallback) => "the handoff has one made from the transcript instead",
            Some(SummarySource::Model) => "the handoff keeps the earlier one",
            None => "the handoff has none",
        };
        // The text in brackets is for the record.
        let why = why.split_once(" (").map_or(why, |(start, _)| start);
        format!(
            "no summary by the model: {why}; {instead} ([summary] sets the model and its limits)"
        )
    }

    /// Notes on the summary that stays the reason that there is no newer one by a model, and what asking has cost in dollars and in
    /// milliseconds; listeners are notified.
    fn note(
        &mut self,
        why: &str,
        (cost_usd, duration_ms): (Option<f64>, Option<u64>),
        facts: &SummaryFacts,
        done: &mut Consequences,
    ) {
        let SummaryFacts {
            iteration,
            session,
            turns,
            cost,
            ..
        } = *facts;
        let data = json!({"iteration": iteration, "session_id": session, "message": failure(why)});
        let kind = ApiEventKind::Summary;
        done.emit(Effect::Publish(Box::new(ApiEvent { kind, data })));
        // For a session of which nothing is known, the record has that alone.
        let current = self.current.get_or_insert_with(|| Summary {
            text: String::new(),
            made: made_by_none(),
            turns,
        });
        let made = &mut current.made;
        made.reason = Some(match made.source {
            SummarySource::Fallback => why.to_owned(),
            SummarySource::Model => {
                let passed = format::count(turns.saturating_sub(current.turns), "turn");
                format!("written {passed} before the end, and not again: {why}")
            }
        });
        made.duration_ms = made.duration_ms.max(duration_ms);
        made.cost_usd = sum(cost, cost_usd);
    }

    /// Handles a timer that has run out: the turn goes on too long, or there is no answer.
    fn time_over(&mut self, epoch: u64, facts: &SummaryFacts, done: &mut Consequences) -> bool {
        if self.due.take_if(|due| *due == epoch).is_some() {
            self.give_order(true, facts, done);
            return false;
        }
        let order = self.order.as_mut();
        let Some(order) = order.filter(|order| order.id.0 == epoch) else {
            return false;
        };
        if order.reading {
            // It may still come; nothing waits for it any more.
            order.reading = false;
            let limit = facts.timeout + PATIENCE;
            done.emit(Effect::SetTimer(TimerId::Summary(epoch), limit));
            return false;
        }
        let (id, asked) = (order.id, order.asking);
        done.emit(Effect::CancelSummary);
        if !asked {
            self.order = None;
            return false;
        }
        let outcome = Outcome {
            text: Err("no answer".to_owned()),
            cost_usd: None,
            duration_ms: u64::try_from(facts.timeout.as_millis()).unwrap_or(u64::MAX),
        };
        self.answered(id, outcome, facts, done)
    }

    /// Drops the order for a summary, and returns it.
    fn close(&mut self, done: &mut Consequences) -> Option<SummaryRequest> {
        self.due = None;
        let order = self.order.take()?;
        done.emit(Effect::CancelSummary);
        Some(order)
    }

    /// Returns the summary for the record, which also names why there is none by a model.
    fn written(&self) -> Option<(String, SummaryMade)> {
        let current = self.current.as_ref()?;
        let why = current.made.reason.as_deref();
        let why = why.filter(|why| ![NOT_YET, OFF].contains(why));
        let text = match (why, current.made.source) {
            (Some(why), SummarySource::Fallback) => format!("{}\n\n{}", failure(why), current.text),
            _ => current.text.clone(),
        };
        Some((text, current.made.clone()))
    }
}

const fn made_by_none() -> SummaryMade {
    SummaryMade {
        source: SummarySource::Fallback,
        cost_usd: None,
        duration_ms: None,
        reason: None,
    }
}

/// Returns the cost of both, as far as it is known.
fn sum(before: Option<f64>, more: Option<f64>) -> Option<f64> {
    match (before, more) {
        (Some(before), Some(more)) => Some(before + more),
        (before, more) => before.or(more),
    }
}

/// Returns the line above the summary without a model where one was asked in vain.
fn failure(why: &str) -> String {
    format!("Summary generation failed: {why}")
}
