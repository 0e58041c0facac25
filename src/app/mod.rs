//! The pure core: [`update`] takes what happened and says what to do.
//!
//! It has no clock, file, socket, thread or randomness. One loop owns the [`Model`] and calls [`update`]
//! with one event after the other; late answers name the iteration, session or epoch they were asked in, and
//! are dropped when that is over.

pub mod agent;
pub mod control;
pub mod copy;
pub mod effect;
pub mod ending;
pub mod event;
pub mod handoff;
pub mod input;
pub mod layout;
pub mod model;
pub mod outward;
pub mod reboot;
pub mod replay;
pub mod report;
pub mod scratchpad;

pub use effect::Effect;
pub use event::Event;
pub use model::Model;

use crate::clock::At;

use event::{Document, PaneEvent, ReadEvent, StoreEvent, TimerId};

/// The exit code of a supervisor that a signal ended (DESIGN 8).
const INTERRUPTED: i32 = 130;

/// Takes in one event: one line per event, naming the feature that answers it.
pub fn update(model: &mut Model, at: At, event: Event) -> Vec<Effect> {
    model.now = at;
    let mut effects = answer(model, event);
    // Whoever said something in the footer now has it taken down again later.
    if model.notices.back().is_some_and(|notice| notice.at == at) {
        effects.extend(control::notice_timer(model));
    }
    effects
}

fn answer(model: &mut Model, event: Event) -> Vec<Effect> {
    match event {
        Event::Host(event) => input::host(model, event),
        Event::Pane(event) => pane(model, event),
        Event::Agent(event) => agent::said(model, event),
        Event::Read(event) => read(model, event),
        Event::Store(StoreEvent::Journaled { reboot, step }) => {
            reboot::journaled(model, reboot, step)
        }
        Event::TimerFired(id) => timer(model, id),
        Event::ControlAsked { call, control } => control::asked(model, call, control),
        Event::ShutdownAsked { signal } => control::quit(model, INTERRUPTED, Some(signal)),
        Event::Troubled { what } => {
            model.trouble(what);
            Vec::new()
        }
    }
}

fn pane(model: &mut Model, event: PaneEvent) -> Vec<Effect> {
    match event {
        PaneEvent::Spawned {
            iteration,
            process,
            lots,
        } => agent::spawned(model, iteration, process, lots),
        PaneEvent::SpawnFailed { iteration, why } => agent::spawn_failed(model, iteration, &why),
        PaneEvent::Exited { iteration, exit } => agent::exited(model, iteration, &exit),
        PaneEvent::Screen(fact) => control::screen_fact(model, fact),
        PaneEvent::PasteModeSet { on } => {
            model.agent.takes_pastes = on;
            reboot::advance(model)
        }
        PaneEvent::MouseModeSet { on } => {
            model.agent.takes_mouse = on;
            Vec::new()
        }
        PaneEvent::CopyMode(news) => copy::answered(model, news),
        PaneEvent::MarkerSeen => reboot::marker_seen(model),
        PaneEvent::InputRefused => {
            model.trouble(
                "the agent does not read its input: what you typed last was not delivered",
            );
            Vec::new()
        }
        PaneEvent::LeftoversFound { processes } => {
            if !processes.is_empty() {
                let list = processes.join(", ");
                model.trouble(format!("still running after the agent has ended: {list}"));
            }
            Vec::new()
        }
    }
}

fn read(model: &mut Model, event: ReadEvent) -> Vec<Effect> {
    match event {
        ReadEvent::Scratchpad(text) => {
            scratchpad::read(model, text);
            Vec::new()
        }
        ReadEvent::EditorClosed { document, text } => match (document, text) {
            (_, None) => {
                model.trouble("the editor failed: nothing was changed");
                Vec::new()
            }
            (Document::Scratchpad, Some(text)) => scratchpad::write(model, text),
            (Document::Handoff, Some(text)) => {
                handoff::take_edit(model, &text);
                Vec::new()
            }
        },
        ReadEvent::Git(facts) => {
            model.git = facts;
            handoff::draft(model);
            reboot::drafted(model)
        }
        ReadEvent::Transcript { session, facts } => agent::transcript_read(model, session, *facts),
        ReadEvent::TranscriptLost { session, why } => agent::transcript_lost(model, session, &why),
        ReadEvent::Estimate(reading) => agent::estimated(model, reading),
        ReadEvent::Recording { iteration, cast } => replay::read(model, iteration, cast),
        ReadEvent::Config(config) => control::reconfigure(model, *config),
    }
}

fn timer(model: &mut Model, id: TimerId) -> Vec<Effect> {
    match id {
        TimerId::EndRung(epoch) => {
            let mut effects = ending::rung_over(model, epoch);
            effects.extend(reboot::advance(model));
            effects
        }
        TimerId::Enter(epoch) if model.saying == Some(epoch) => {
            model.saying = None;
            vec![Effect::Type(b"\r".to_vec())]
        }
        TimerId::Enter(_) | TimerId::Verify(_) | TimerId::AutoDelay(_) | TimerId::WarmUp(_) => {
            reboot::timer(model, id)
        }
        TimerId::Quiet(epoch) => {
            if epoch == model.quiet_epoch {
                reboot::advance(model)
            } else {
                Vec::new()
            }
        }
        TimerId::Replay(epoch) => replay::tick(model, epoch),
        TimerId::Calm(epoch) => agent::calm(model, epoch),
        TimerId::Notice => control::expire_notices(model),
        TimerId::Age => control::age_tick(model),
        TimerId::SaveNotes(epoch) => {
            if epoch == model.save_epoch {
                scratchpad::save(model)
            } else {
                Vec::new()
            }
        }
    }
}

#[cfg(test)]
mod tests;
