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
};
use pitstop_handoff::summary::{Outcome, SummaryMade, SummarySource, count_marks};

use crate::app::{
    draft::{handoff, record::save_iteration},
    effect::Effect,
    event::{SummaryId, TimerId},
    model::{
        Model,
        summaries::{Summary, SummaryRequest, turns_of},
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

/// Reports whether a model is to be asked at all.
fn wants_model(model: &Model) -> bool {
    model.config.summary.generate_summaries && has_transcript(model)
}

/// Reports whether there is anything to summarize, and a model to ask.
fn has_transcript(model: &Model) -> bool {
    !model.is_generic() && model.config.handoff.generate_handoff
}

/// Orders a summary for a little later when usage has passed the warn line upwards.
pub fn crossed(model: &mut Model, level: Level) {
    // An agent that is being ended adds nothing more that could be summed up.
    let over = model.outside.quitting().is_some() || model.reboot.ending.is_some();
    if level < Level::Critical || over || model.draft.summary.warned || !wants_model(model) {
        return;
    }
    model.draft.summary.warned = true;
    let epoch = model.next_epoch();
    model.draft.summary.due = Some(epoch);
    model.emit(Effect::SetTimer(TimerId::Summary(epoch), SETTLE));
}

/// Orders the summary that is due when a turn has ended.
pub fn turn_over(model: &mut Model) {
    if model.draft.summary.due.take().is_some() {
        order(model, true);
    }
}

/// Makes a new summary for a reboot that is being drafted if turns have passed since the last one, or if there is none.
pub fn refresh(model: &mut Model) {
    if !has_transcript(model) {
        return;
    }
    model.draft.summary.due = None;
    let turns = model.session.agent.turns;
    let summaries = &model.draft.summary;
    let by_model = |one: &Summary| one.made.source == SummarySource::Model && one.turns == turns;
    let under_way = |order: &SummaryRequest| order.asking && order.turns == turns;
    if summaries.current.as_ref().is_some_and(by_model)
        || summaries.order.as_ref().is_some_and(under_way)
    {
        return;
    }
    // A model would refuse again what it has refused a moment ago.
    let ask = wants_model(model) && model.draft.summary.answered != Some(turns);
    order(model, ask);
}

fn order(model: &mut Model, ask: bool) {
    let epoch = model.next_epoch();
    let id = SummaryId(epoch);
    model.draft.summary.order = Some(SummaryRequest {
        id,
        turns: model.session.agent.turns,
        reading: true,
        asking: ask,
    });
    model.emit(Effect::Summarize { id, ask });
    model.emit(Effect::SetTimer(TimerId::Summary(epoch), READ_LIMIT));
}

/// Reports whether drafting has to wait: for the transcript in any case, for the model only if no one would look at the draft.
pub fn is_awaited(model: &Model, unattended: bool) -> bool {
    let order = model.draft.summary.order.as_ref();
    order.is_some_and(|order| order.reading || (unattended && order.asking))
}

/// Makes the summary that needs no model, now that the transcript has been read.
pub fn transcript_read(model: &mut Model, id: SummaryId, read: &Result<(), String>) {
    let Some(mut order) = model.draft.summary.order.filter(|order| order.id == id) else {
        return;
    };
    order.reading = false;
    // Without any text there is nothing to ask a model about.
    order.asking &= read.is_ok();
    model.draft.summary.order = order.asking.then_some(order);
    if order.asking {
        let limit = model.config.summary.timeout + PATIENCE;
        model.emit(Effect::SetTimer(TimerId::Summary(id.0), limit));
    }
    if let Err(why) = read {
        tracing::info!(why, "there is nothing to summarize");
        return;
    }
    let ours = |one: &Summary| one.made.source == SummarySource::Fallback;
    if model.draft.summary.current.as_ref().is_none_or(ours)
        && let Some(text) = handoff::summary_without_model(model)
    {
        let before = model.draft.summary.current.take().map(|one| one.made);
        model.draft.summary.current = Some(Summary {
            text,
            made: made_without_model(model, order, before),
            turns: order.turns,
        });
        keep(model);
    }
}

/// Returns how a summary without a model came about: the cost of asking a model stays on record.
fn made_without_model(
    model: &Model,
    order: SummaryRequest,
    before: Option<SummaryMade>,
) -> SummaryMade {
    let made = before.unwrap_or_else(made_by_none);
    let reason = if order.asking {
        Some(NOT_YET.to_owned())
    } else if wants_model(model) {
        made.reason
    } else {
        Some(OFF.to_owned())
    };
    SummaryMade { reason, ..made }
}

const fn made_by_none() -> SummaryMade {
    SummaryMade {
        source: SummarySource::Fallback,
        cost_usd: None,
        duration_ms: None,
        reason: None,
    }
}

/// Returns the line above the summary without a model where one was asked in vain.
fn failure(why: &str) -> String {
    format!("Summary generation failed: {why}")
}

/// Takes over the model's answer, or its failure to give one.
pub fn answered(model: &mut Model, id: SummaryId, outcome: Outcome) {
    let Some(order) = model.draft.summary.order.take_if(|order| order.id == id) else {
        return;
    };
    model.draft.summary.answered = Some(order.turns);
    let Outcome {
        text,
        cost_usd,
        duration_ms,
    } = outcome;
    match text {
        Ok(text) => {
            let unfounded = count_marks(&text);
            model.draft.summary.current = Some(Summary {
                text,
                made: SummaryMade {
                    source: SummarySource::Model,
                    cost_usd,
                    duration_ms: Some(duration_ms),
                    reason: None,
                },
                turns: order.turns,
            });
            let marked = match unfounded {
                0 => String::new(),
                1 => "; 1 name or number in it is not found in the session, and marked".to_owned(),
                count => format!(
                    "; {count} names or numbers in it are not found in the session, and marked"
                ),
            };
            model.info(format!(
                "the summary is written, in {} s{marked}",
                duration_ms.div_ceil(1000)
            ));
        }
        Err(why) => {
            let text = missed(model, &why);
            model.note(&text);
            note(model, &why, cost_usd, Some(duration_ms));
        }
    }
    keep(model);
}

/// Returns the notice for a model that gave no summary. The record has the whole reason.
fn missed(model: &Model, why: &str) -> String {
    let current = model.draft.summary.current.as_ref();
    let instead = match current.map(|one| one.made.source) {
        Some(SummarySource::Fallback) => "the handoff has one made from the transcript instead",
        Some(SummarySource::Model) => "the handoff keeps the earlier one",
        None => "the handoff has none",
    };
    // The text in brackets is for the record.
    let why = why.split_once(" (").map_or(why, |(start, _)| start);
    format!("no summary by the model: {why}; {instead} ([summary] sets the model and its limits)")
}

/// Notes on the summary that stays the reason that there is no newer one by a model, and the cost of asking; listeners are notified.
fn note(model: &mut Model, why: &str, cost_usd: Option<f64>, duration_ms: Option<u64>) {
    let (iteration, session) = (model.session.iteration(), model.session.id);
    let data = json!({"iteration": iteration, "session_id": session, "message": failure(why)});
    let kind = ApiEventKind::Summary;
    model.emit(Effect::Publish(Box::new(ApiEvent { kind, data })));
    let turns = model.session.agent.turns;
    // For a session of which nothing is known, the record has that alone.
    let current = model.draft.summary.current.get_or_insert_with(|| Summary {
        text: String::new(),
        made: made_by_none(),
        turns,
    });
    let made = &mut current.made;
    made.reason = Some(match made.source {
        SummarySource::Fallback => why.to_owned(),
        SummarySource::Model => {
            let passed = turns_of(turns.saturating_sub(current.turns));
            format!("written {passed} before the end, and not again: {why}")
        }
    });
    made.duration_ms = made.duration_ms.max(duration_ms);
    made.cost_usd = match (made.cost_usd, cost_usd) {
        (Some(before), Some(more)) => Some(before + more),
        (before, more) => before.or(more),
    };
}

/// Handles a timer that has run out: the turn goes on too long, or there is no answer.
pub fn timer(model: &mut Model, epoch: u64) {
    let summary = &mut model.draft.summary;
    if summary.due.take_if(|due| *due == epoch).is_some() {
        return order(model, true);
    }
    let order = summary.order.as_mut();
    let Some(order) = order.filter(|order| order.id.0 == epoch) else {
        return;
    };
    if order.reading {
        // It may still come; nothing waits for it any more.
        order.reading = false;
        let limit = model.config.summary.timeout + PATIENCE;
        model.emit(Effect::SetTimer(TimerId::Summary(epoch), limit));
        return;
    }
    let id = order.id;
    let asked = order.asking;
    model.emit(Effect::CancelSummary);
    if asked {
        let outcome = Outcome {
            text: Err("no answer".to_owned()),
            cost_usd: None,
            duration_ms: u64::try_from(model.config.summary.timeout.as_millis())
                .unwrap_or(u64::MAX),
        };
        answered(model, id, outcome);
    } else {
        model.draft.summary.order = None;
    }
}

/// Stops waiting because the message is fixed, or pitstop leaves: the record notes what has not come by now.
pub fn settle(model: &mut Model, why: &str) {
    model.draft.summary.due = None;
    let Some(order) = model.draft.summary.order.take() else {
        return;
    };
    model.emit(Effect::CancelSummary);
    if order.asking && model.draft.summary.current.is_some() {
        note(model, why, None, None);
        keep(model);
    }
}

/// Drops the order for a summary: the iteration, or its session, is over.
pub fn close(model: &mut Model) {
    model.draft.summary.due = None;
    if model.draft.summary.order.take().is_some() {
        model.emit(Effect::CancelSummary);
    }
}

/// Puts the summary where it belongs: into the record and its file.
fn keep(model: &mut Model) {
    let Some(mut current) = model.draft.summary.current.take() else {
        return;
    };
    // The one without a model follows what is known of the session.
    if current.made.source == SummarySource::Fallback
        && let Some(text) = handoff::summary_without_model(model)
    {
        current.text = text;
    }
    model.draft.summary.current = Some(current.clone());
    let why = current.made.reason.as_deref();
    let why = why.filter(|why| ![NOT_YET, OFF].contains(why));
    if let (Some(why), SummarySource::Fallback) = (why, current.made.source) {
        current.text = format!("{}\n\n{}", failure(why), current.text);
    }
    let iteration = model.session.iteration();
    let text = current.text.clone();
    model.lineage.add_summary(iteration, text, current.made);
    model.emit(Effect::SaveSummary {
        iteration,
        text: current.text,
    });
    save_iteration(model);
}
