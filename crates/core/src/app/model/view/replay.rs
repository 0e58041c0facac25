//! A recording of an iteration, played over the pane.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent};

use crate::lineage::IterationId;
use pitstop_terminal::pane::replay::{Cast, Replay};

use crate::app::{consequences::Consequences, effect::Effect, event::TimerId};

use super::{Overlay, View};

/// The time between two ticks: 30 a second, as smooth as what was recorded.
const TICK: Duration = Duration::from_millis(33);

/// The time that an arrow skips, in seconds.
const SKIP: i64 = 5;

impl View {
    /// Shows a recording that was read.
    pub(in crate::app) fn recording_read(
        &mut self,
        iteration: IterationId,
        cast: Result<Cast, String>,
    ) -> Consequences {
        let mut done = Consequences::default();
        match cast {
            Err(why) => done.error(format!("iteration {iteration} cannot be replayed: {why}")),
            // Something else may lie over the pane by now.
            Ok(_) if self.overlay.is_some() => {}
            Ok(cast) => {
                if cast.cut {
                    done.info("the recording is too long: its end is not played");
                }
                self.replay = Some(Replay::new(cast));
                self.overlay = Some(Overlay::Replay { iteration });
                done.effects.extend(self.tick_timer());
            }
        }
        done
    }

    /// Returns the rows in which a recording is shown: all but the footer and the border.
    const fn replay_height(&self) -> u16 {
        self.host.1.saturating_sub(3)
    }

    /// Scrolls the recording that is played.
    pub(in crate::app) fn scroll_replay(&mut self, lines: i32) {
        let height = self.replay_height();
        if let Some(replay) = &mut self.replay {
            replay.scroll(-lines, height);
        }
    }

    /// Handles a key while a recording is played.
    pub(in crate::app) fn replay_key(&mut self, key: KeyEvent) -> Option<Effect> {
        let height = self.replay_height();
        let leaves = matches!(key.code, KeyCode::Esc | KeyCode::Char('q'));
        let Some(replay) = self.replay.as_mut().filter(|_| !leaves) else {
            self.overlay = None;
            return None;
        };
        match key.code {
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
            _ => return None,
        }
        self.tick_timer()
    }

    /// Drops the recording once something else, or nothing, lies over the pane: it takes much memory.
    pub(in crate::app) fn drop_hidden_replay(&mut self) {
        if !matches!(self.overlay, Some(Overlay::Replay { .. })) {
            self.replay = None;
        }
    }

    /// Goes on with the replay when it is time.
    pub(in crate::app) fn replay_tick(&mut self, epoch: u64) -> Option<Effect> {
        if epoch != self.replay_epoch || !matches!(self.overlay, Some(Overlay::Replay { .. })) {
            return None;
        }
        self.replay.as_mut()?.tick(TICK);
        self.tick_timer()
    }

    /// Sets the timer for the next tick, if anything happens in it; a new one makes the one before obsolete.
    fn tick_timer(&mut self) -> Option<Effect> {
        self.replay.as_ref().filter(|replay| replay.is_live())?;
        self.replay_epoch += 1;
        Some(Effect::SetTimer(TimerId::Replay(self.replay_epoch), TICK))
    }
}
