//! The trim of a transcript by progressive tool-response removal, as a copy under a new session id.
//!
//! Tool responses are most of what fills a context window. A [`Survey`] reads the transcript once and finds
//! the responses that are in the context window; [`Survey::plan`] computes what each level would free; and
//! [`Survey::write`] reads it a second time and writes the copy. No file is touched here, and memory is bounded: a
//! few dozen bytes a record, and one line.
//!
//! ```text
//!   in the window:  everything on the chain from the last message back to the root or the last compaction;
//!                   with it the parallel calls of a message and their responses, which hang beside the chain
//!   the order:      middle of the session outwards ─▶ the first messages ─▶ the recent ones
//!   a level:        the first 0, 10, 20, 50 or 100 % of that order, rounded up
//! ```
//!
//! In the copy a response keeps its block, its id and its place, and its text becomes a placeholder; the session's
//! id is the new one on every record; and the usage of the last call is less by what was removed. By that figure the
//! client (2.1.197) computes how full a resumed session is, and with compaction switched off it refuses every prompt in a
//! copy that still says "full". Every other byte is the original's: a record is not rewritten, only the
//! values that change are. Bytes that are not a record (damage, NUL bytes, lines over the cap) are copied as they are,
//! except for a torn last line, to which the client would append its next record.
//!
//! A result that is no output stays: what a person has answered, approved or refused, and why a call did not run.
//!
//! Known limits:
//! - Savings are estimated at four characters a token, and an image counts for a thousand tokens.
//! - Blocks of unknown kinds inside a response stay: a `tool_reference`, for one, makes a tool callable.
//! - A line of over 64 MiB is copied without a look into it, so it keeps the old session's id.

mod copy;
mod cut;
mod lines;
mod look;
mod reading;

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};

use self::{
    copy::Copy,
    lines::{Piece, each_line, each_span},
    look::{Id, Look, Node, Role},
    reading::Reading,
};
use super::{
    SessionId, Tokens,
    record::{self, Record},
};

pub use cut::PLACEHOLDERS;

/// The levels: the shares of the tool responses in percent.
pub const LEVELS: [u8; 5] = [0, 10, 20, 50, 100];

/// The share of the compact line in percent below which a level is chosen: below that there is room to work.
pub const TARGET_PERCENT: u64 = 80;

/// The number of characters that a token is estimated at, as everywhere in this program.
const CHARACTERS_PER_TOKEN: u64 = 4;

/// The number of first messages whose responses are removed late: the task and how it was first understood.
const FIRST_MESSAGES: usize = 4;

/// The settings that a trim is planned by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrimSettings {
    /// The compact line in tokens, at which a reboot is advised.
    pub compact_line: Tokens,
    /// The number of latest messages that keep their responses until all others are gone.
    pub max_recent_messages: usize,
}

/// The figures of what one level would free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelFigure {
    /// The share of the responses that is removed, in percent.
    pub percent: u8,
    /// The number of responses that are removed.
    pub responses: usize,
    /// The number of tokens in the context window now.
    pub tokens_before: Tokens,
    /// The number of tokens that there would be; never more than before.
    pub tokens_after: Tokens,
}

/// The figures of what each level would free, and the level that is advised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrimPlan {
    /// All levels, in rising order.
    pub levels: Vec<LevelFigure>,
    /// The first level under 80 % of the compact line, in percent; none means that a fresh session is advised.
    pub chosen: Option<u8>,
    /// True if no call gave a figure for the context window, so that the tokens before are an estimate, too.
    pub estimated: bool,
}

impl TrimPlan {
    /// Returns the figure of the level that is advised.
    pub fn chosen_figure(&self) -> Option<LevelFigure> {
        let chosen = self.chosen?;
        self.levels
            .iter()
            .find(|level| level.percent == chosen)
            .copied()
    }

    /// Returns the number of tool responses in the context window.
    pub fn responses(&self) -> usize {
        self.levels.last().map_or(0, |level| level.responses)
    }
}

impl TrimSettings {
    /// Returns the number of tokens that a level must get below to be chosen.
    pub const fn target(&self) -> Tokens {
        Tokens(self.compact_line.0.saturating_mul(TARGET_PERCENT) / 100)
    }
}

/// The result of the writing of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The level's figure.
    pub figure: LevelFigure,
    /// The number of bytes of a torn last line that the copy does not have.
    pub dropped_tail: u64,
}

/// The reason why a transcript could not be trimmed.
#[derive(Debug, thiserror::Error)]
pub enum TrimError {
    /// The transcript could not be read.
    #[error("cannot read the transcript")]
    Read(#[source] io::Error),
    /// The copy could not be written.
    #[error("cannot write the trimmed copy")]
    Write(#[source] io::Error),
    /// There is no such level.
    #[error("expected a level of 0, 10, 20, 50 or 100 percent, found {0}")]
    Level(u8),
    /// The transcript has no messages, so there is nothing to resume.
    #[error("expected a transcript with messages, found none in {records} records")]
    Empty {
        /// The number of records that were found.
        records: usize,
    },
    /// The transcript has more records than can be counted here.
    #[error("expected a transcript of at most {} records, found more", u32::MAX)]
    TooLarge,
    /// The transcript changed between the two readings.
    #[error("expected the transcript as it was at first, found it changed at record {record}")]
    Changed {
        /// The number of the record, from 0.
        record: usize,
    },
    /// The copy would not say the same: a mistake of this program, found before it did harm.
    #[error("expected the copy to keep ids and pairs, found record {record} changed in them")]
    Damaged {
        /// The number of the record, from 0.
        record: usize,
    },
}

/// Returns the end, in bytes, of the conversation that the handoff with this nonce has replaced: the boundary of the compaction
/// before the handoff; none if there is no such handoff behind a boundary.
pub fn replaced_at(transcript: impl BufRead, nonce: &str) -> Result<Option<u64>, TrimError> {
    let has = |line: &[u8], mark: &[u8]| memchr::memmem::find(line, mark).is_some();
    let (mut at, mut boundary, mut found) = (0, None, None);
    each_line(transcript, &mut |piece| {
        let bytes = piece.bytes();
        let whole = !matches!(piece, Piece::Long { .. });
        if whole && (has(bytes, b"compact_boundary") || has(bytes, nonce.as_bytes())) {
            record::each_record(bytes, &mut |record| match &record {
                Record::CompactBoundary => boundary = Some(at),
                Record::User(user)
                    if user.tool_results == 0
                        && user.texts.iter().any(|text| text.contains(nonce)) =>
                {
                    found = found.or(boundary);
                }
                _ => {}
            });
        }
        at += bytes.len() as u64;
        Ok(())
    })?;
    Ok(found)
}

/// The contents of a transcript as far as a trim needs to know them; see the top of this file.
#[derive(Debug)]
pub struct Survey {
    nodes: Vec<Node>,
    /// Every response of a tool in the context window, in order.
    responses: Vec<Response>,
    messages: usize,
    /// The tokens in the context window by the last call on the main chain.
    context: Option<Tokens>,
    /// The record of that call.
    last_call: Option<u32>,
    /// The size of the context, estimated from its characters.
    estimate: Tokens,
    model: Option<String>,
    unpaired: usize,
    /// The offset in bytes of the end of the last whole record that the copy will have.
    end: u64,
    dropped_tail: u64,
    oversized: u64,
}

/// A tool's response: one block, or several that answer the same call.
#[derive(Debug)]
struct Response {
    tool: Id,
    /// The records that it is in.
    records: Vec<u32>,
    /// The number of characters that its removal takes out of the context.
    wins: u64,
    /// The number of its message among those of the context.
    message: usize,
}

impl Survey {
    /// Reads a transcript once.
    pub fn read(transcript: impl BufRead) -> Result<Self, TrimError> {
        let mut reading = Reading::default();
        let (mut at, mut end, mut oversized, mut in_long) = (0, 0, 0, false);
        each_line(transcript, &mut |piece| {
            let bytes = piece.bytes();
            match piece {
                Piece::Line(line) => {
                    each_span(line, &mut |span| reading.take_record(&line[span]));
                    end = at + bytes.len() as u64;
                }
                Piece::Tail(tail) => each_span(tail, &mut |span| {
                    end = at + span.end as u64;
                    reading.take_record(&tail[span]);
                }),
                Piece::Long { ends, .. } => {
                    oversized += u64::from(!in_long);
                    in_long = !ends;
                    if ends {
                        end = at + bytes.len() as u64;
                    }
                }
            }
            at += bytes.len() as u64;
            Ok(())
        })?;
        let mut survey = reading.finish()?;
        (survey.end, survey.dropped_tail, survey.oversized) = (end, at - end, oversized);
        Ok(survey)
    }

    /// Returns the bare id of the model that made the last main-chain call.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Returns the tokens in the context window: by the last call, else estimated.
    pub fn tokens(&self) -> Tokens {
        self.context.unwrap_or(self.estimate)
    }

    /// Returns the number of responses in the context window that answer a call that is not there.
    ///
    /// A whole transcript has none; one that has some was damaged before it came here, and the API may refuse it.
    pub const fn unpaired(&self) -> usize {
        self.unpaired
    }

    /// Returns the number of lines that are so long that they are copied without being parsed.
    pub const fn oversized(&self) -> u64 {
        self.oversized
    }

    /// Reads a copy back: it must have the same records in the same chain, with the same calls and responses.
    pub fn check_copy(&self, copy: impl BufRead) -> Result<(), TrimError> {
        let mut records = 0;
        each_line(copy, &mut |piece| {
            let bytes = piece.bytes();
            if matches!(piece, Piece::Long { .. }) {
                return Ok(());
            }
            let mut outcome = Ok(());
            each_span(bytes, &mut |span| {
                let same =
                    |node: &Node| node.print == Look::read_record(&bytes[span]).fingerprint();
                if !self.nodes.get(records).is_some_and(same) && outcome.is_ok() {
                    outcome = Err(TrimError::Damaged { record: records });
                }
                records += 1;
            });
            outcome
        })?;
        if records == self.nodes.len() {
            Ok(())
        } else {
            Err(TrimError::Damaged { record: records })
        }
    }

    /// Computes what each level would free.
    pub fn plan(&self, settings: &TrimSettings) -> TrimPlan {
        let order = self.removal_order(settings);
        let levels: Vec<_> = LEVELS
            .into_iter()
            .map(|percent| self.level_figure(percent, removed_share(&order, percent)))
            .collect();
        let fits = |level: &&LevelFigure| {
            let target = settings.compact_line.0.saturating_mul(TARGET_PERCENT);
            level.tokens_after.0.saturating_mul(100) < target
        };
        TrimPlan {
            chosen: levels.iter().find(fits).map(|level| level.percent),
            levels,
            estimated: self.context.is_none(),
        }
    }

    /// Reads the same transcript again and writes the copy, trimmed to a level in percent, to `out`.
    pub fn write(
        &self,
        transcript: impl BufRead,
        level: u8,
        new_session: SessionId,
        settings: &TrimSettings,
        out: &mut impl Write,
    ) -> Result<Written, TrimError> {
        if !LEVELS.contains(&level) {
            return Err(TrimError::Level(level));
        }
        let order = self.removal_order(settings);
        let chosen = removed_share(&order, level);
        let figure = self.level_figure(level, chosen);
        let left = figure.tokens_after.max(Tokens(1));
        let mut copy = Copy {
            survey: self,
            removed: chosen.iter().map(|&at| self.responses[at].tool).collect(),
            records: chosen
                .iter()
                .flat_map(|&at| &self.responses[at].records)
                .copied()
                .collect(),
            session: format!("\"{new_session}\"").into_bytes(),
            won: figure.tokens_before.0.saturating_sub(left.0),
            record: 0,
            ends_line: true,
            out,
        };
        // What was appended since the first reading is not in the plan, so it is not in the copy.
        each_line(transcript.take(self.end), &mut |piece| {
            copy.copy_piece(&piece)
        })?;
        copy.finish()?;
        Ok(Written {
            figure,
            dropped_tail: self.dropped_tail,
        })
    }

    /// Reports whether a record belongs to the call that gives the size of the context. One call is several records.
    fn is_last_call(&self, look: &Look, record: usize) -> bool {
        let Some(last) = self.last_call.map(|last| last as usize) else {
            return false;
        };
        let message = self.nodes.get(last).and_then(|node| node.message);
        let same = message.is_some() && message == look.message;
        record == last || (same && look.role == Role::Assistant && !look.sidechain)
    }

    fn level_figure(&self, percent: u8, removed: &[usize]) -> LevelFigure {
        let wins: u64 = removed.iter().map(|&at| self.responses[at].wins).sum();
        let before = self.tokens();
        LevelFigure {
            percent,
            responses: removed.len(),
            tokens_before: before,
            tokens_after: Tokens(before.0.saturating_sub(wins / CHARACTERS_PER_TOKEN)),
        }
    }

    /// Returns the responses in the order in which they are removed.
    fn removal_order(&self, settings: &TrimSettings) -> Vec<usize> {
        let recent_from = self.messages.saturating_sub(settings.max_recent_messages);
        let (mut middle, mut first, mut recent) = (Vec::new(), Vec::new(), Vec::new());
        for (at, response) in self.responses.iter().enumerate() {
            match response.message {
                message if message >= recent_from => recent.push(at),
                message if message < FIRST_MESSAGES => first.push(at),
                _ => middle.push(at),
            }
        }
        let ends = middle.first().zip(middle.last());
        if let Some((&low, &high)) = ends {
            // The key is twice the distance from the middle; of two that are equally far, the older goes first.
            middle.sort_by_key(|&at| ((2 * at).abs_diff(low + high), at));
        }
        first.reverse();
        middle.into_iter().chain(first).chain(recent).collect()
    }
}

/// Returns the part of the order that a level removes: its share, rounded up.
fn removed_share(order: &[usize], percent: u8) -> &[usize] {
    let count = (order.len() * usize::from(percent)).div_ceil(100);
    &order[..count.min(order.len())]
}
