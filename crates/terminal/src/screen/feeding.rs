//! The way of the child's bytes to the engine: cut characters, string cap, frames and findings.

use std::time::{Duration, Instant};

use vte::ansi::Processor;

use crate::begun_character;
use crate::side_channel::{Finding, plain};

use super::engine::VERSION_REPLY;
use super::{Frozen, Screen};

/// The time for which a synchronized frame may hide the drawing: long enough for a slow frame, short
/// enough that a program that died inside one does not look frozen.
pub(super) const FRAME_LIMIT: Duration = Duration::from_millis(150);

/// The mark that ends a synchronized frame, as programs send it.
const FRAME_END: &[u8] = b"\x1b[?2026l";

/// The longest frame that waits until it is complete, in bytes. Bytes beyond it are applied as they come, so that little is
/// left to do when the last of them arrives; that is worth the copy of the cells that it costs.
const WAITING_FRAME: usize = 32 * 1024;

/// The byte that cancels a half-read sequence in the parser.
const CAN: u8 = 0x18;

const ESC: u8 = 0x1b;

/// Reports whether the bytes may contain a query, or another sequence whose effect the child waits for. Colours,
/// moves, erasures, private modes and titles are not such.
fn asks(bytes: &[u8]) -> bool {
    memchr::memchr_iter(ESC, bytes).any(|at| match &bytes[at + 1..] {
        [b'[', rest @ ..] => {
            let last = rest.iter().find(|byte| !matches!(byte, b' '..=b'?'));
            !matches!(
                last,
                None | Some(b'A'..=b'H' | b'J'..=b'M' | b'P' | b'X' | b'd' | b'h' | b'l' | b'm' | b'r')
            )
        }
        // A colour query has its question mark early.
        [b']', rest @ ..] => rest[..rest.len().min(32)].contains(&b'?'),
        [b'P' | b'Z', ..] => true,
        _ => false,
    })
}

impl Screen {
    /// Takes bytes from the child; `now` only serves the deadline of synchronized frames.
    pub fn feed(&mut self, bytes: &[u8], now: Instant) {
        self.expire(now);
        self.redraw_until = self.redraw_until.filter(|until| now < *until);
        self.engine.redraws = self.redraw_until.is_some();
        self.take(bytes, Some(now));
    }

    /// Takes bytes of a recording: synchronized frames are not held back, so that there is no deadline.
    pub fn feed_at_once(&mut self, bytes: &[u8]) {
        self.take(bytes, None);
    }

    fn take(&mut self, bytes: &[u8], now: Option<Instant>) {
        let rest = self.complete_held(bytes, now);
        let (whole, begun) = rest.split_at(rest.len() - begun_character(rest));
        self.guard(whole, now);
        self.held.extend_from_slice(begun);
        if self.frozen.is_none() && self.waiting.is_none() && !bytes.is_empty() {
            self.revision += 1;
        }
    }

    /// Joins a character cut by the end of the last bytes, and returns the bytes after it. The parser
    /// would do it itself, but (vte 0.15) it loses a character that follows within the next three
    /// bytes.
    fn complete_held<'a>(&mut self, bytes: &'a [u8], now: Option<Instant>) -> &'a [u8] {
        let mut rest = bytes;
        while !self.held.is_empty() && !rest.is_empty() {
            self.held.push(rest[0]);
            if begun_character(&self.held) == self.held.len() {
                rest = &rest[1..];
                continue;
            }
            // The character is complete, or broken by this byte: then the byte begins an item of its own.
            if std::str::from_utf8(&self.held).is_ok() {
                rest = &rest[1..];
            } else {
                self.held.pop();
            }
            let character = std::mem::take(&mut self.held);
            self.guard(&character, now);
            if std::str::from_utf8(&character).is_err() {
                // Otherwise the parser would wait for the rest of a character that does not continue.
                self.read(&[0], now);
            }
        }
        rest
    }

    /// Passes on the bytes that the string cap lets through.
    fn guard(&mut self, bytes: &[u8], now: Option<Instant>) {
        let mut rest = bytes;
        loop {
            if self.cap.is_outside() && self.waiting.is_none() {
                rest = self.plain(rest);
            }
            if rest.is_empty() {
                return;
            }
            // One sequence at a time, so that plain bytes after it come back here; a frame that waits takes all.
            let next = match self.waiting {
                None => memchr::memchr(ESC, &rest[1..]).map_or(rest.len(), |at| at + 1),
                Some(_) => rest.len(),
            };
            let passage = self.cap.next(&rest[..next]);
            self.read(&rest[..passage.passed], now);
            if passage.overflow {
                tracing::warn!("a string sequence of over 1 MiB from the pane was dropped");
                self.wait_no_more(now);
                self.processor = Processor::new();
                self.side_channel.forget_sequence();
            }
            if passage.title {
                self.read(&[CAN], now);
            }
            rest = &rest[passage.consumed..];
        }
    }

    /// Applies bytes that were let through, or adds them to the waiting frame that they belong to.
    fn read(&mut self, bytes: &[u8], now: Option<Instant>) {
        let Some(waiting) = &mut self.waiting else {
            return self.advance(bytes, now);
        };
        // The end mark may have been cut in two.
        let seen = waiting.len().saturating_sub(FRAME_END.len());
        waiting.extend_from_slice(bytes);
        let whole = memchr::memmem::find(&waiting[seen..], FRAME_END).is_some();
        if whole || waiting.len() > WAITING_FRAME || asks(&waiting[seen..]) {
            self.wait_no_more(now);
        }
    }

    /// Applies the waiting frame, if there is one.
    pub(super) fn wait_no_more(&mut self, now: Option<Instant>) {
        if let Some(waiting) = self.waiting.take() {
            if memchr::memmem::find(&waiting, FRAME_END).is_none() {
                self.frozen = Some(self.freeze());
            }
            self.advance(&waiting, now);
        }
    }

    /// Applies the bytes that need neither gate nor side channel, which are most of a child's output, and returns the rest.
    fn plain<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let mut rest = bytes;
        while !rest.is_empty() && self.side_channel.is_between_sequences() {
            if !self.begun {
                rest = &rest[self.engine.write(rest)..];
            }
            let (part, after) = rest.split_at(plain(rest));
            if part.is_empty() {
                break;
            }
            self.processor.advance(&mut self.engine, part);
            self.begun = begun_character(part) > 0;
            rest = after;
        }
        rest
    }

    /// Advances side channel and engine together.
    fn advance(&mut self, bytes: &[u8], now: Option<Instant>) {
        let mut rest = bytes;
        loop {
            rest = self.plain(rest);
            if rest.is_empty() {
                return;
            }
            self.begun = false;
            let (done, finding) = self.side_channel.next(rest);
            let (step, after) = rest.split_at(done);
            match (finding, step.split_last()) {
                (Some(Finding::Repeat(count)), Some((&last, before))) => {
                    self.processor.advance(&mut self.engine, before);
                    self.repeat(count, last);
                }
                (Some(Finding::EndlessColour), Some((&last, _))) => {
                    self.processor = Processor::new();
                    if last == ESC {
                        self.processor.advance(&mut self.engine, &[ESC]);
                    }
                }
                (Some(finding), _) => {
                    self.processor.advance(&mut self.engine, step);
                    if self.handle(finding, after, now) {
                        return;
                    }
                }
                (None, _) => self.processor.advance(&mut self.engine, step),
            }
            rest = after;
        }
    }

    /// Repeats a character, at most one row's worth: REP costs the sender a few bytes but costs us one step for each character.
    fn repeat(&mut self, count: u16, last: u8) {
        let limit = self.engine.size.columns();
        if count <= limit {
            self.processor.advance(&mut self.engine, &[last]);
        } else {
            self.processor.advance(&mut self.engine, &[CAN]);
            self.processor
                .advance(&mut self.engine, format!("\x1b[{limit}b").as_bytes());
        }
    }

    /// Acts on a finding of the side channel; returns true if the bytes after it are handled, too.
    fn handle(&mut self, finding: Finding, after: &[u8], now: Option<Instant>) -> bool {
        match finding {
            Finding::FrameBegin => return self.begin_frame(after, now),
            Finding::FrameEnd => self.end_frame(),
            Finding::Fact(fact) => self.engine.report(fact),
            Finding::SoftReset => self.engine.soft_reset(),
            Finding::Overline(on) => self.engine.set_overline(on),
            Finding::VersionQuery => self.engine.reply(VERSION_REPLY),
            Finding::ExtendedCursorQuery => self.engine.report_cursor("?"),
            Finding::SchemeQuery => self.engine.report_scheme(),
            Finding::CellSizeQuery => self.engine.report_cell_size(),
            Finding::CapabilityQuery(names) => self.engine.report_capabilities(&names),
            Finding::SettingQuery(setting) => self.engine.report_setting(setting),
            // The caller handles these, because it has the final byte.
            Finding::Repeat(_) | Finding::EndlessColour => {}
        }
        false
    }

    /// Begins a frame; returns true if it waits, or waited, and has taken all bytes after it.
    fn begin_frame(&mut self, after: &[u8], now: Option<Instant>) -> bool {
        // A second begin does not extend the first, or a stream of begins would hide all output.
        if self.engine.in_frame {
            return false;
        }
        self.engine.in_frame = true;
        let Some(now) = now else { return false };
        self.deadline = Some(now + FRAME_LIMIT);
        // A frame that ends within these bytes is never seen half-drawn.
        let waits = memchr::memmem::find(after, FRAME_END).is_none();
        if waits {
            self.waiting = Some(Vec::new());
            self.read(after, Some(now));
        }
        waits
    }

    fn freeze(&self) -> Frozen {
        let (size, cursor) = (self.engine.size, self.engine.cursor());
        let mut cells = Vec::with_capacity(usize::from(size.columns()) * usize::from(size.rows()));
        for row in 0..size.rows() {
            cells.extend_from_slice(self.engine.row(row));
        }
        Frozen {
            cells,
            size,
            cursor,
        }
    }

    pub(super) fn end_frame(&mut self) {
        self.engine.in_frame = false;
        self.deadline = None;
        self.thaw();
    }

    pub(super) fn thaw(&mut self) {
        self.frozen = None;
        self.revision += 1;
    }

    /// Shows an unfinished frame whose deadline has passed.
    pub fn expire(&mut self, now: Instant) {
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            self.wait_no_more(Some(now));
            self.end_frame();
        }
    }
}
