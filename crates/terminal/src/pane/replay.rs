//! The playback of a recording: the bytes of an asciicast, fed to a screen of its own.
//!
//! ```text
//!   file ──read──▶ Cast ──▶ Replay ──feed──▶ Screen ──▶ cells
//!                             ▲ tick: a bounded piece of work each time
//! ```
//!
//! The file is as untrusted as the program that was recorded: lines that are not an event are skipped and counted, times
//! never go back, sizes are clamped, and a jump far ahead is done piece by piece, so that keys never wait for it.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::PaneSize;
use crate::screen::{Screen, Scroll};

/// The largest number of events that are kept; the rest are not played.
const EVENT_LIMIT: usize = 2_000_000;

/// The largest number of bytes fed in one tick: about 20 ms of work.
const PIECE: usize = 512 * 1024;

/// The longest pause that is played; a longer one is shortened to it.
const PAUSE: Duration = Duration::from_secs(2);

/// The time that a frame may extend past the moment that is shown: a frame is not shown half drawn.
const FRAME_REACH: Duration = Duration::from_millis(150);

/// The number of lines that the replay keeps above its screen.
const SCROLLBACK: usize = 1000;

/// The slowest and the fastest speed, as powers of two.
const SPEEDS: std::ops::RangeInclusive<i32> = -2..=6;

/// A recording as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cast {
    size: PaneSize,
    events: Vec<CastEvent>,
    /// The number of lines that were not events.
    pub skipped: usize,
    /// True if the file had more events than are kept.
    pub cut: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct CastEvent {
    at: Duration,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Output(String),
    Resize(PaneSize),
}

/// The reason why a file cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CastError {
    /// The first line is not the header of an asciicast.
    #[error("expected the header of an asciicast v2 in the first line, found {0}")]
    Header(String),
    /// The recording is empty.
    #[error("nothing was recorded")]
    Empty,
}

impl Cast {
    /// Reads an asciicast v2. A line that was cut off at the end, as a crash leaves it, is skipped.
    pub fn parse(bytes: &[u8]) -> Result<Self, CastError> {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let first = lines.next().unwrap_or_default();
        let size = header(first).ok_or_else(|| {
            let found = String::from_utf8_lossy(&first[..first.len().min(40)]);
            CastError::Header(format!("`{}`", pitstop_base::clean::one_line(&found)))
        })?;
        let mut cast = Self {
            size,
            events: Vec::new(),
            skipped: 0,
            cut: false,
        };
        let mut last = Duration::ZERO;
        for line in lines.filter(|line| !line.is_empty()) {
            if cast.events.len() >= EVENT_LIMIT {
                cast.cut = true;
                break;
            }
            match event(line) {
                Some((at, Some(what))) => {
                    last = last.max(at);
                    cast.events.push(CastEvent { at: last, what });
                }
                // Markers and input have nothing to show.
                Some((_, None)) => {}
                None => cast.skipped += 1,
            }
        }
        if cast.events.is_empty() {
            return Err(CastError::Empty);
        }
        Ok(cast)
    }

    /// Returns how long the recording lasts.
    pub fn length(&self) -> Duration {
        self.events.last().map_or(Duration::ZERO, |event| event.at)
    }
}

fn header(line: &[u8]) -> Option<PaneSize> {
    let header: Value = serde_json::from_slice(line).ok()?;
    if header.get("version")?.as_u64()? != 2 {
        return None;
    }
    let side = |name| {
        let number = header.get(name)?.as_u64()?;
        u16::try_from(number).ok().filter(|number| *number > 0)
    };
    Some(PaneSize::new(side("width")?, side("height")?))
}

/// Returns the time and the content of an event; the content is `None` for a kind that is not shown.
fn event(line: &[u8]) -> Option<(Duration, Option<What>)> {
    let (at, kind, data): (f64, String, String) = serde_json::from_slice(line).ok()?;
    let at = Duration::try_from_secs_f64(at).ok()?;
    Some(match kind.as_str() {
        "o" => (at, Some(What::Output(data))),
        "r" => {
            let (columns, rows) = data.split_once('x')?;
            let size = PaneSize::new(columns.parse().ok()?, rows.parse().ok()?);
            (at, Some(What::Resize(size)))
        }
        _ => (at, None),
    })
}

/// A recording being played.
pub struct Replay {
    cast: Cast,
    screen: Screen,
    /// The next event to be fed.
    next: usize,
    /// The number of bytes of its text that have been fed.
    fed: usize,
    /// The moment that is shown, or that the ticks work towards.
    clock: Duration,
    playing: bool,
    speed: i32,
    /// The number of rows by which a view with fewer rows than the screen was moved up.
    lifted: u16,
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("next", &self.next)
            .field("clock", &self.clock)
            .field("playing", &self.playing)
            .finish_non_exhaustive()
    }
}

impl Replay {
    /// Creates a replay at the beginning of the recording, playing.
    pub fn new(cast: Cast) -> Self {
        Self {
            screen: Screen::new(cast.size, SCROLLBACK),
            cast,
            next: 0,
            fed: 0,
            clock: Duration::ZERO,
            playing: true,
            speed: 0,
            lifted: 0,
        }
    }

    /// Returns the recording.
    pub const fn cast(&self) -> &Cast {
        &self.cast
    }

    /// Returns the screen that is shown.
    pub const fn screen(&self) -> &Screen {
        &self.screen
    }

    /// Returns the moment that is shown.
    pub const fn clock(&self) -> Duration {
        self.clock
    }

    /// Reports whether the replay is playing.
    pub const fn is_playing(&self) -> bool {
        self.playing
    }

    /// Reports whether the wanted moment has not been reached yet.
    pub fn is_behind(&self) -> bool {
        self.due().is_some()
    }

    /// Reports whether there is anything to do at the next tick.
    pub fn is_live(&self) -> bool {
        self.playing || self.is_behind()
    }

    /// Returns the speed as text: `×1`, `×¼`, `×16`.
    pub fn speed(&self) -> String {
        match self.speed {
            -2 => "×¼".to_owned(),
            -1 => "×½".to_owned(),
            power => format!("×{}", 1_u32 << power.clamp(0, 16)),
        }
    }

    /// Pauses the replay or continues it; at the end, continuing starts again from the beginning.
    pub fn toggle(&mut self) {
        self.playing = !self.playing;
        if self.playing && self.clock >= self.cast.length() {
            self.seek(Duration::ZERO);
        }
    }

    /// Plays faster or slower by powers of two.
    pub fn change_speed(&mut self, by: i32) {
        self.speed = (self.speed + by).clamp(*SPEEDS.start(), *SPEEDS.end());
    }

    /// Goes to a moment; the following ticks do the work.
    pub fn seek(&mut self, to: Duration) {
        let to = to.min(self.cast.length());
        if to < self.clock || self.next == 0 {
            self.screen = Screen::new(self.cast.size, SCROLLBACK);
            self.next = 0;
            self.fed = 0;
        }
        self.clock = to;
        self.lifted = 0;
        self.screen.scroll(Scroll::Bottom);
    }

    /// Goes forward, or back where negative, by a number of seconds.
    pub fn skip(&mut self, seconds: i64) {
        let span = Duration::from_secs(seconds.unsigned_abs());
        self.seek(if seconds < 0 {
            self.clock.saturating_sub(span)
        } else {
            self.clock.saturating_add(span)
        });
    }

    /// Pauses, and goes to the next moment at which something happened, or to the previous one.
    pub fn step(&mut self, forward: bool) {
        self.playing = false;
        let clock = self.clock;
        let events = &self.cast.events;
        let to = if forward {
            let behind = events.partition_point(|event| event.at <= clock);
            events.get(behind).map(|event| event.at)
        } else {
            let here = events.partition_point(|event| event.at < clock);
            here.checked_sub(1).map(|before| events[before].at)
        };
        if let Some(to) = to {
            self.seek(to);
        }
    }

    /// Goes to a tenth of the length, 0 to 10.
    pub fn seek_tenth(&mut self, tenth: u32) {
        self.seek(self.cast.length() * tenth.min(10) / 10);
    }

    /// Returns how many rows of the screen do not fit into a view of this height: those above the last written row.
    pub fn hidden(&self, height: u16) -> u16 {
        let cursor = usize::from(self.screen.cursor().row) + 1;
        let written = self.screen.text().lines().count().max(cursor);
        u16::try_from(written)
            .unwrap_or(u16::MAX)
            .saturating_sub(height)
    }

    /// Returns the number of hidden rows by which the view was moved up.
    pub const fn lifted(&self) -> u16 {
        self.lifted
    }

    /// Moves a view of this height up, or down where negative: over the rows that it hides, then over those scrolled out.
    pub fn scroll(&mut self, up: i32, height: u16) {
        let hidden = i32::from(self.hidden(height));
        let lifted = i32::from(self.lifted).min(hidden);
        let out = i32::try_from(self.screen.scroll_offset()).unwrap_or(i32::MAX);
        let (inside, beyond) = if up > 0 {
            let inside = up.min(hidden - lifted);
            (inside, up - inside)
        } else {
            let beyond = up.max(-out);
            ((up - beyond).max(-lifted), beyond)
        };
        self.lifted = u16::try_from(lifted + inside).unwrap_or(0);
        self.screen.scroll(Scroll::Lines(beyond));
    }

    /// Advances by the time that has passed, but does no more than one tick's worth of work.
    pub fn tick(&mut self, passed: Duration) {
        if self.playing && !self.is_behind() {
            self.advance(passed);
        }
        let mut room = PIECE;
        while room > 0
            && let Some(event) = self.due()
        {
            let event = &self.cast.events[event];
            match &event.what {
                What::Output(text) => {
                    let rest = &text.as_bytes()[self.fed..];
                    let piece = &rest[..rest.len().min(room)];
                    self.screen.feed_at_once(piece);
                    room -= piece.len();
                    self.fed += piece.len();
                    if piece.len() < rest.len() {
                        break;
                    }
                }
                What::Resize(size) => {
                    self.screen.resize(*size);
                    // Reflowing a grid costs as much as feeding many bytes.
                    room = room.saturating_sub(PIECE / 16);
                }
            }
            self.next += 1;
            self.fed = 0;
        }
        // The replies and facts of a replay have no reader.
        self.screen.take_replies();
        self.screen.take_facts();
        if self.clock >= self.cast.length() && !self.is_behind() {
            self.playing = false;
        }
    }

    fn advance(&mut self, passed: Duration) {
        let span = if self.speed < 0 {
            passed / (1 << -self.speed)
        } else {
            passed * (1 << self.speed)
        };
        self.clock = (self.clock + span).min(self.cast.length());
        if let Some(next) = self.cast.events.get(self.next) {
            self.clock = self.clock.max(next.at.saturating_sub(PAUSE));
        }
    }

    /// Returns the index of the event to be fed next, if its time has come, or if it ends a frame that is half drawn.
    fn due(&self) -> Option<usize> {
        let event = self.cast.events.get(self.next)?;
        let reach = if self.screen.is_in_frame() {
            FRAME_REACH
        } else {
            Duration::ZERO
        };
        (event.at <= self.clock + reach).then_some(self.next)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CAST: &str = r#"{"version": 2, "width": 20, "height": 4}
[0.5, "o", "one\r\n"]
[1.0, "i", "typed"]
[2.0, "o", "two\r\n"]
[2.5, "r", "30x5"]
[60.0, "o", "three"]
"#;

    fn replay(text: &str) -> Replay {
        Replay::new(Cast::parse(text.as_bytes()).expect("a cast"))
    }

    fn settle(replay: &mut Replay) {
        for _ in 0..10_000 {
            if !replay.is_behind() {
                return;
            }
            replay.tick(Duration::ZERO);
        }
        panic!("it never gets there");
    }

    fn shown(replay: &mut Replay, seconds: f64) -> String {
        replay.seek(Duration::from_secs_f64(seconds));
        settle(replay);
        replay.screen().text()
    }

    #[test]
    fn any_moment_can_be_seen() {
        let mut replay = replay(CAST);
        assert_eq!(shown(&mut replay, 0.0), "");
        assert_eq!(shown(&mut replay, 2.2), "one\ntwo");
        assert_eq!(replay.screen().size(), PaneSize::new(20, 4));
        assert_eq!(shown(&mut replay, 99.0), "one\ntwo\nthree");
        assert_eq!(replay.screen().size(), PaneSize::new(30, 5));
        assert_eq!(shown(&mut replay, 0.5), "one");
        assert_eq!(replay.screen().size(), PaneSize::new(20, 4));
    }

    #[test]
    fn steps_go_from_event_to_event() {
        let mut replay = replay(CAST);
        let mut clocks = Vec::new();
        for forward in [true, true, true, true, true, false, false] {
            replay.step(forward);
            settle(&mut replay);
            clocks.push(replay.clock().as_millis());
        }
        assert_eq!(clocks, [500, 2000, 2500, 60_000, 60_000, 2500, 2000]);
        assert!(!replay.is_playing());
    }

    #[test]
    fn playing_passes_over_long_pauses_and_ends() {
        let mut replay = replay(CAST);
        let tick = Duration::from_millis(100);
        let mut ticks = 0;
        while replay.is_playing() {
            replay.tick(tick);
            ticks += 1;
            assert!(ticks < 100, "at {:?}", replay.clock());
        }
        assert_eq!(replay.screen().text(), "one\ntwo\nthree");
        assert!(ticks > 40, "the short pauses are played: {ticks} ticks");
        replay.toggle();
        assert_eq!(replay.clock(), Duration::ZERO);
        replay.change_speed(3);
        replay.tick(tick);
        assert_eq!(
            (replay.clock().as_millis(), replay.speed()),
            (800, "×8".to_owned())
        );
        replay.change_speed(-99);
        assert_eq!(replay.speed(), "×¼");
    }

    #[test]
    fn a_frame_is_not_shown_half_drawn() {
        let mut replay = replay(
            "{\"version\": 2, \"width\": 20, \"height\": 4}\n[1, \"o\", \"\\u001b[?2026hhalf\"]\n[1.05, \"o\", \" whole\\u001b[?2026l\"]\n[3, \"o\", \" late\"]",
        );
        assert_eq!(shown(&mut replay, 1.0), "half whole");
    }

    #[test]
    fn what_is_no_recording_is_reported() {
        let error = |text: &str| {
            Cast::parse(text.as_bytes())
                .expect_err("no cast")
                .to_string()
        };
        assert_eq!(error(&CAST[..41]), "nothing was recorded");
        for text in [
            "",
            "hello",
            "{\"version\": 1}",
            "{\"version\": 2, \"width\": 0, \"height\": 4}",
        ] {
            assert!(error(text).starts_with("expected the header"), "{text}");
        }
        let hostile = "{\"version\": 2, \"width\": 65535, \"height\": 65535}\n\
            [-1, \"o\", \"x\"]\n[1e999, \"o\", \"x\"]\n[1e300, \"o\", \"x\"]\n[1, \"r\", \"0x0\"]\n\
            [0.5, \"o\", \"back\"]\n[1, \"r\", \"axb\"]\nnull\n[2, \"o\", \"cut o";
        let cast = Cast::parse(hostile.as_bytes()).expect("a cast");
        assert_eq!((cast.skipped, cast.events.len()), (6, 2));
        assert_eq!(
            cast.length(),
            Duration::from_secs(1),
            "time never goes back"
        );
        let mut replay = Replay::new(cast);
        replay.seek_tenth(10);
        settle(&mut replay);
        assert_eq!(replay.screen().size(), PaneSize::new(1, 1));
    }

    #[test]
    fn a_jump_over_much_output_is_done_in_pieces() {
        let text = "x".repeat(3 * PIECE);
        let mut replay = replay(&format!(
            "{{\"version\": 2, \"width\": 80, \"height\": 4}}\n[1, \"o\", \"{text}end\"]"
        ));
        replay.seek_tenth(10);
        let mut ticks = 0;
        while replay.is_behind() {
            replay.tick(Duration::ZERO);
            ticks += 1;
        }
        assert_eq!(ticks, 4);
        assert!(replay.screen().text().ends_with("end"));
    }

    #[test]
    fn a_low_view_is_moved_over_what_it_hides_and_then_over_what_was_scrolled_out() {
        let text = serde_json::to_string(&"line\r\n".repeat(12)).expect("JSON");
        let file =
            format!("{{\"version\": 2, \"width\": 9, \"height\": 10}}\n[0.1, \"o\", {text}]\n");
        let mut replay = Replay::new(Cast::parse(file.as_bytes()).expect("a recording"));
        replay.seek_tenth(10);
        replay.tick(Duration::ZERO);
        let stands = |replay: &Replay| (replay.lifted(), replay.screen().scroll_offset());
        // Of ten rows six are shown; three more have been scrolled out.
        assert_eq!((replay.hidden(6), stands(&replay)), (4, (0, 0)));
        replay.scroll(1, 6);
        assert_eq!(stands(&replay), (1, 0));
        replay.scroll(5, 6);
        assert_eq!(stands(&replay), (4, 2));
        replay.scroll(100, 6);
        assert_eq!(stands(&replay), (4, 3));
        replay.scroll(-1, 6);
        assert_eq!(stands(&replay), (4, 2));
        replay.scroll(-4, 6);
        assert_eq!(stands(&replay), (2, 0));
        replay.scroll(-100, 6);
        assert_eq!(stands(&replay), (0, 0));
    }

    proptest! {
        #[test]
        fn no_file_and_no_key_breaks_it(
            lines in prop::collection::vec("\\[[0-9.]{1,4}, \"[orim]\", \"(x|\\\\\\\\u001b\\[2J|[0-9]{1,3}x[0-9]{1,3}){0,9}\"\\]|.{0,20}", 0..20),
            keys in prop::collection::vec(0..9, 0..20),
        ) {
            let text = format!("{{\"version\": 2, \"width\": 9, \"height\": 3}}\n{}", lines.join("\n"));
            if let Ok(cast) = Cast::parse(text.as_bytes()) {
                let mut replay = Replay::new(cast);
                for key in keys {
                    match key {
                        0 => replay.toggle(),
                        1 => replay.skip(5),
                        2 => replay.skip(-5),
                        3 => replay.step(true),
                        4 => replay.step(false),
                        5 => replay.change_speed(1),
                        6 => replay.seek_tenth(5),
                        7 => replay.scroll(3, 2),
                        _ => replay.change_speed(-1),
                    }
                    replay.tick(Duration::from_millis(30));
                    replay.screen().for_each_cell(|_| {});
                }
            }
        }
    }
}
