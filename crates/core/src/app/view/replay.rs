//! A recording of an iteration, played over the pane.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent};

use crate::lineage::IterationId;
use pitstop_terminal::pane::replay::{Cast, Replay};

use crate::app::{
    effect::Effect,
    event::TimerId,
    model::{Model, Overlay},
};

/// The time between two ticks: 30 a second, as smooth as what was recorded.
const TICK: Duration = Duration::from_millis(33);

/// The time that an arrow skips, in seconds.
const SKIP: i64 = 5;

/// Shows a recording that was read.
pub fn read(model: &mut Model, iteration: IterationId, cast: Result<Cast, String>) {
    match cast {
        Err(why) => {
            model.error(format!("iteration {iteration} cannot be replayed: {why}"));
        }
        // Something else may lie over the pane by now.
        Ok(_) if model.view.overlay.is_some() => {}
        Ok(cast) => {
            if cast.cut {
                model.info("the recording is too long: its end is not played");
            }
            model.view.replay = Some(Replay::new(cast));
            model.view.overlay = Some(Overlay::Replay { iteration });
            tick_timer(model);
        }
    }
}

/// Returns the rows in which a recording is shown: all but the footer and the border.
pub fn height(model: &Model) -> u16 {
    model.view.host.1.saturating_sub(3)
}

/// Handles a key while a recording is played.
pub fn key(model: &mut Model, key: KeyEvent) {
    let height = height(model);
    let Some(replay) = &mut model.view.replay else {
        model.view.overlay = None;
        return;
    };
    match key.code {
        KeyCode::Esc | KeyCode::Char('q') => {
            model.view.overlay = None;
            model.view.replay = None;
            return;
        }
        KeyCode::Char(' ') | KeyCode::Enter => replay.toggle(),
        KeyCode::Right | KeyCode::Char('l') => replay.skip(SKIP),
        KeyCode::Left | KeyCode::Char('h') => replay.skip(-SKIP),
        KeyCode::Char('.') => replay.step(true),
        KeyCode::Char(',') => replay.step(false),
        KeyCode::Char('+' | '=') => replay.change_speed(1),
        KeyCode::Char('-') => replay.change_speed(-1),
        KeyCode::Home | KeyCode::Char('g') => replay.seek_tenth(0),
        KeyCode::End | KeyCode::Char('G') => replay.seek_tenth(10),
        KeyCode::Char(digit @ '0'..='9') => replay.seek_tenth(digit.to_digit(10).unwrap_or(0)),
        KeyCode::Up | KeyCode::Char('k') => replay.scroll(1, height),
        KeyCode::Down | KeyCode::Char('j') => replay.scroll(-1, height),
        KeyCode::PageUp => replay.scroll(i32::from(height), height),
        KeyCode::PageDown => replay.scroll(-i32::from(height), height),
        _ => return,
    }
    tick_timer(model);
}

/// Goes on with the replay when it is time.
pub fn tick(model: &mut Model, epoch: u64) {
    if epoch != model.view.replay_epoch
        || !matches!(model.view.overlay, Some(Overlay::Replay { .. }))
    {
        return;
    }
    if let Some(replay) = &mut model.view.replay {
        replay.tick(TICK);
    }
    tick_timer(model);
}

/// Sets the timer for the next tick, if anything happens in it; a new one makes the one before obsolete.
fn tick_timer(model: &mut Model) {
    if model.view.replay.as_ref().is_some_and(Replay::is_live) {
        let epoch = model.next_epoch();
        model.view.replay_epoch = epoch;
        model.emit(Effect::SetTimer(TimerId::Replay(epoch), TICK));
    }
}
