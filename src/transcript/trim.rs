//! A transcript cut by progressive tool-response removal, as a copy under a new session id.
//!
//! What fills a context window is mostly what tools answered. A [`Survey`] reads the transcript once and finds
//! the responses that are in the context window; [`Survey::plan`] says what each level would win; and
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
//! id is the new one on every record. Every other byte is the original's: a record is not written anew, only the
//! values that change are. What is no record (damage, NUL bytes, lines over the cap) is copied as it is, but
//! for a torn last line, to which the client would append its next record.
//!
//! Known limits:
//! - Savings are estimated at four characters a token, and an image counts for a thousand tokens.
//! - Blocks of kinds unknown to us inside a response stay: a `tool_reference`, for one, makes a tool callable.
//! - A line of over 64 MiB is copied without a look into it, so it keeps the old session's id.

use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hasher},
    io::{self, BufRead, Write},
    ops::Range,
};

use serde::{Deserialize, Serialize, de::IgnoredAny};

use super::{
    SessionId, Tokens,
    record::{self, LINE_CAP, Record},
    span,
    usage::context_of,
};

/// The levels: shares of the tool responses in percent.
pub const LEVELS: [u8; 5] = [0, 10, 20, 50, 100];

/// What stands in a removed response's place, the longest that is no longer than what was removed.
///
/// The shorter ones are for responses such as `ok`: a trim must never make a session longer, and an empty
/// response would be refused where it is marked as an error.
pub const PLACEHOLDERS: [&str; 3] = [
    "[tool output removed by pitstop to free context; run the tool again if it is needed]",
    "[removed]",
    "-",
];

/// A level wins if it leaves less than this share of the compact line, in percent: below that there is room to work.
pub const TARGET_PERCENT: u64 = 80;

/// The estimate for text, as everywhere in this program.
const CHARACTERS_PER_TOKEN: u64 = 4;

/// What an image or document counts for, at most, in characters: about a thousand tokens, whatever its bytes.
const ATTACHMENT_CHARACTERS: u64 = 4_000;

/// How many of the first messages go late: the task and how it was first understood.
const FIRST_MESSAGES: usize = 4;

/// How a trim is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrimSettings {
    /// The line at which a reboot is advised, in tokens.
    pub compact_line: Tokens,
    /// How many of the latest messages keep their responses until all others are gone.
    pub max_recent_messages: usize,
}

/// What one level would win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelFigure {
    /// The share of the responses that is removed, in percent.
    pub percent: u8,
    /// How many responses that is.
    pub responses: usize,
    /// Tokens in the context window now.
    pub tokens_before: Tokens,
    /// Tokens there would be; never more than before.
    pub tokens_after: Tokens,
}

/// What each level would win, and which one is advised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrimPlan {
    /// All levels, in rising order.
    pub levels: Vec<LevelFigure>,
    /// The first level under 80 % of the compact line, in percent; none means that a fresh session is advised.
    pub chosen: Option<u8>,
    /// No call gave a figure for the context window, so the tokens before are an estimate too.
    pub estimated: bool,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The level's figure.
    pub figure: LevelFigure,
    /// Bytes of a torn last line that the copy does not have.
    pub dropped_tail: u64,
}

/// A trimmed transcript in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trimmed {
    /// The copy.
    pub bytes: Vec<u8>,
    /// What it won.
    pub figure: LevelFigure,
    /// Bytes of a torn last line that the copy does not have.
    pub dropped_tail: u64,
}

/// Why a transcript could not be trimmed.
#[derive(Debug, thiserror::Error)]
pub enum TrimError {
    /// The transcript could not be read.
    #[error("cannot read the transcript")]
    Read(#[source] io::Error),
    /// The copy could not be written.
    #[error("cannot write the trimmed copy")]
    Write(#[source] io::Error),
    /// A level that there is none of.
    #[error("expected a level of 0, 10, 20, 50 or 100 percent, found {0}")]
    Level(u8),
    /// Nothing to resume.
    #[error("expected a transcript with messages, found none in {records} records")]
    Empty {
        /// The records that were found.
        records: usize,
    },
    /// More records than this counts.
    #[error("expected a transcript of at most {} records, found more", u32::MAX)]
    TooLarge,
    /// Between the two readings it became another one.
    #[error("expected the transcript as it was at first, found it changed at record {record}")]
    Changed {
        /// The number of the record, from 0.
        record: usize,
    },
    /// The copy would not say the same: a mistake of ours, found before it did harm.
    #[error("expected the copy to keep ids and pairs, found record {record} changed in them")]
    Damaged {
        /// The number of the record, from 0.
        record: usize,
    },
}

/// Says what each level would win on `transcript`.
pub fn plan(transcript: impl BufRead, settings: &TrimSettings) -> Result<TrimPlan, TrimError> {
    Ok(Survey::read(transcript)?.plan(settings))
}

/// Trims a transcript in memory to a level in percent, under the id `new_session`.
pub fn apply(
    transcript: &[u8],
    level: u8,
    new_session: SessionId,
    settings: &TrimSettings,
) -> Result<Trimmed, TrimError> {
    let mut bytes = Vec::with_capacity(transcript.len());
    let survey = Survey::read(transcript)?;
    let written = survey.write(transcript, level, new_session, settings, &mut bytes)?;
    Ok(Trimmed {
        bytes,
        figure: written.figure,
        dropped_tail: written.dropped_tail,
    })
}

/// What a transcript holds, as far as a trim needs to know; see the top of this file.
#[derive(Debug)]
pub struct Survey {
    nodes: Vec<Node>,
    /// Every response of a tool in the context window, in order.
    responses: Vec<Response>,
    messages: usize,
    /// What the last call on the main chain used.
    context: Option<Tokens>,
    /// What the context holds by its characters.
    estimate: Tokens,
    model: Option<String>,
    unpaired: usize,
    /// Where the last whole record ends that the copy will have, in bytes.
    end: u64,
    dropped_tail: u64,
    oversized: u64,
}

/// One record, as a link of the chain. Ids are hashes, for there are many of them.
#[derive(Clone, Copy, Debug)]
struct Node {
    uuid: Option<Id>,
    parent: Parent,
    message: Option<Id>,
    role: Role,
    sidechain: bool,
    characters: u32,
    /// Everything that the copy must keep.
    print: u64,
}

impl Node {
    const fn is_message(&self) -> bool {
        matches!(self.role, Role::User | Role::Assistant) && !self.sidechain
    }

    const fn is_in_chain(&self) -> bool {
        !self.sidechain && (self.uuid.is_some() || self.is_message())
    }
}

type Id = std::num::NonZeroU64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
    Boundary,
    #[default]
    Other,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Parent {
    /// The record says nothing.
    #[default]
    Unsaid,
    /// It says that it has none.
    Root,
    Of(Id),
}

/// A tool's response: one block, or several that answer the same call.
#[derive(Debug)]
struct Response {
    tool: Id,
    /// The records that it stands in.
    records: Vec<u32>,
    /// The characters that its removal takes out of the context.
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
                    each_span(line, &mut |span| reading.take(&line[span]));
                    end = at + bytes.len() as u64;
                }
                Piece::Tail(tail) => each_span(tail, &mut |span| {
                    end = at + span.end as u64;
                    reading.take(&tail[span]);
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
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Returns the tokens in the context window: by the last call, else estimated.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        self.context.unwrap_or(self.estimate)
    }

    /// Returns how many responses in the context window answer a call that is not there.
    ///
    /// A whole transcript has none; one that has some was damaged before it came here, and the API may refuse it.
    #[must_use]
    pub const fn unpaired(&self) -> usize {
        self.unpaired
    }

    /// Returns how many lines are so long that they are copied without a look into them.
    #[must_use]
    pub const fn oversized(&self) -> u64 {
        self.oversized
    }

    /// Says what each level would win.
    #[must_use]
    pub fn plan(&self, settings: &TrimSettings) -> TrimPlan {
        let order = self.order(settings);
        let levels: Vec<_> = LEVELS
            .into_iter()
            .map(|percent| self.figure(percent, removed(&order, percent)))
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
        let order = self.order(settings);
        let chosen = removed(&order, level);
        let mut copy = Copy {
            survey: self,
            removed: chosen.iter().map(|&at| self.responses[at].tool).collect(),
            records: chosen
                .iter()
                .flat_map(|&at| &self.responses[at].records)
                .copied()
                .collect(),
            session: format!("\"{new_session}\"").into_bytes(),
            record: 0,
            ends_line: true,
            out,
        };
        // What was appended since the first reading is not in the plan, so it is not in the copy.
        each_line(transcript.take(self.end), &mut |piece| copy.piece(&piece))?;
        copy.finish()?;
        Ok(Written {
            figure: self.figure(level, chosen),
            dropped_tail: self.dropped_tail,
        })
    }

    fn figure(&self, percent: u8, removed: &[usize]) -> LevelFigure {
        let wins: u64 = removed.iter().map(|&at| self.responses[at].wins).sum();
        let before = self.tokens();
        LevelFigure {
            percent,
            responses: removed.len(),
            tokens_before: before,
            tokens_after: Tokens(before.0.saturating_sub(wins / CHARACTERS_PER_TOKEN)),
        }
    }

    /// The responses in the order in which they go.
    fn order(&self, settings: &TrimSettings) -> Vec<usize> {
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
            // Twice the distance from the middle; of two that are equally far, the older goes first.
            middle.sort_by_key(|&at| ((2 * at).abs_diff(low + high), at));
        }
        first.reverse();
        middle.into_iter().chain(first).chain(recent).collect()
    }
}

/// Those of the order that a level removes: its share, rounded up.
fn removed(order: &[usize], percent: u8) -> &[usize] {
    let count = (order.len() * usize::from(percent)).div_ceil(100);
    &order[..count.min(order.len())]
}

/// What is gathered while a transcript is read for the first time.
#[derive(Default)]
struct Reading {
    nodes: Vec<Node>,
    uses: Vec<(Id, u32)>,
    results: Vec<Found>,
    /// What the client itself sends in place of a response, by its call.
    replaced: HashMap<Id, u64>,
    boundary: Option<Boundary>,
    /// The last figure for the context window and the record that gave it.
    context: Option<(Tokens, u32)>,
    model: Option<String>,
    too_large: bool,
}

/// A response's block.
struct Found {
    tool: Id,
    record: u32,
    /// The characters that its removal wins; none if there is nothing to remove.
    wins: Option<u64>,
}

/// The last compaction, and what it kept of what lies before it.
struct Boundary {
    record: u32,
    kept: HashSet<Id>,
    segment: Option<(Id, Id)>,
}

impl Reading {
    fn take(&mut self, bytes: &[u8]) {
        let Ok(record) = u32::try_from(self.nodes.len()) else {
            self.too_large = true;
            return;
        };
        let look = Look::at(bytes);
        if !look.sidechain {
            self.take_main(bytes, &look, record);
        }
        self.nodes.push(look.node());
    }

    fn take_main(&mut self, bytes: &[u8], look: &Look, record: u32) {
        match look.role {
            Role::Boundary => {
                self.boundary = Some(Boundary {
                    record,
                    kept: look.kept.iter().copied().collect(),
                    segment: look.segment.0.zip(look.segment.1),
                });
                // The figure from before is void.
                self.context = None;
            }
            Role::Assistant => {
                let uses = look.uses.iter().map(|&tool| (tool, record));
                self.uses.extend(uses);
                self.take_usage(bytes, record);
            }
            Role::User | Role::Other => {}
        }
        self.results.extend(look.results.iter().map(|result| {
            Found {
                tool: result.tool,
                record,
                wins: result
                    .contents
                    .last()
                    .and_then(|content| Cut::of(bytes, content.clone()))
                    .map(|cut| cut.wins),
            }
        }));
        for (tool, value) in &look.replacements {
            let cut = Cut::of(bytes, value.clone());
            self.replaced.insert(*tool, cut.map_or(0, |cut| cut.wins));
        }
    }

    fn take_usage(&mut self, bytes: &[u8], record: u32) {
        record::each_record(bytes, &mut |said| {
            let Record::Assistant(said) = said else {
                return;
            };
            let Some(usage) = context_of(&said) else {
                return;
            };
            self.context = Some((usage.context(), record));
            if said.model.as_deref() != self.model.as_deref() {
                self.model = said.model.map(|model| model.chars().take(200).collect());
            }
        });
    }

    fn finish(self) -> Result<Survey, TrimError> {
        if self.too_large {
            return Err(TrimError::TooLarge);
        }
        if !self.nodes.iter().any(Node::is_message) {
            let records = self.nodes.len();
            return Err(TrimError::Empty { records });
        }
        let mut inside = self.chain();
        self.add_parallel_calls(&mut inside);
        let calls: HashSet<Id> = self
            .uses
            .iter()
            .filter(|(_, record)| inside[*record as usize])
            .map(|(tool, _)| *tool)
            .collect();
        let first = self.first_record();
        let results: Vec<&Found> = self
            .results
            .iter()
            .filter(|result| {
                let at = result.record as usize;
                inside[at] || (at >= first && calls.contains(&result.tool))
            })
            .collect();
        for result in &results {
            inside[result.record as usize] = true;
        }
        let unpaired = results
            .iter()
            .filter(|result| !calls.contains(&result.tool));
        let characters: u64 = self
            .nodes
            .iter()
            .zip(&inside)
            .filter(|(_, inside)| **inside)
            .map(|(node, _)| u64::from(node.characters))
            .sum();
        let messages = number_messages(&self.nodes, &inside);
        Ok(Survey {
            unpaired: unpaired.count(),
            responses: self.responses(&results, &messages),
            messages: messages.last().map_or(0, |last| last + 1),
            context: self.context.map(|(tokens, _)| tokens),
            estimate: Tokens(characters / CHARACTERS_PER_TOKEN),
            model: self.model,
            nodes: self.nodes,
            end: 0,
            dropped_tail: 0,
            oversized: 0,
        })
    }

    /// The first record behind the last compaction.
    fn first_record(&self) -> usize {
        self.boundary
            .as_ref()
            .map_or(0, |boundary| boundary.record as usize + 1)
    }

    /// Marks the records on the way from the last message back to the root or to the last compaction, and what
    /// that compaction kept.
    fn chain(&self) -> Vec<bool> {
        let first = self.first_record();
        let mut inside = vec![false; self.nodes.len()];
        let by_uuid: HashMap<Id, usize> = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.is_in_chain())
            .filter_map(|(at, node)| Some((node.uuid?, at)))
            .collect();
        let before = |at: usize| {
            (first..at)
                .rev()
                .find(|&earlier| self.nodes[earlier].is_in_chain())
        };
        let mut next = (first..self.nodes.len())
            .rev()
            .find(|&at| self.nodes[at].is_message());
        while let Some(at) = next.filter(|&at| !inside[at]) {
            inside[at] = true;
            next = match self.nodes[at].parent {
                Parent::Root => None,
                Parent::Of(parent) => match by_uuid.get(&parent) {
                    Some(&found) => Some(found).filter(|&found| found >= first),
                    // It was lost, or stands in another session's file: what came before it in this one is
                    // the best guess.
                    None => before(at),
                },
                Parent::Unsaid => before(at),
            };
        }
        if let Some(boundary) = &self.boundary {
            self.add_kept(boundary, &by_uuid, &mut inside);
        }
        inside
    }

    fn add_kept(&self, boundary: &Boundary, by_uuid: &HashMap<Id, usize>, inside: &mut [bool]) {
        for uuid in &boundary.kept {
            if let Some(&at) = by_uuid.get(uuid) {
                inside[at] = true;
            }
        }
        let ends = boundary
            .segment
            .and_then(|(head, tail)| by_uuid.get(&head).copied().zip(by_uuid.get(&tail).copied()));
        if let Some((head, tail)) = ends.filter(|(head, tail)| head <= tail) {
            for (node, inside) in self.nodes.iter().zip(inside).take(tail + 1).skip(head) {
                *inside |= node.is_in_chain();
            }
        }
    }

    /// One message is several records, and with parallel calls not all of them lie on the chain.
    fn add_parallel_calls(&self, inside: &mut [bool]) {
        let first = self.first_record();
        let said: HashSet<Id> = self
            .nodes
            .iter()
            .zip(&*inside)
            .filter(|(node, inside)| **inside && node.role == Role::Assistant)
            .filter_map(|(node, _)| node.message)
            .collect();
        for (node, inside) in self.nodes.iter().zip(inside).skip(first) {
            let beside = node.message.is_some_and(|message| said.contains(&message));
            *inside |= beside && node.is_message() && node.role == Role::Assistant;
        }
    }

    /// The responses in the context that hold anything, in order.
    fn responses(&self, results: &[&Found], messages: &[usize]) -> Vec<Response> {
        let mut responses: Vec<Response> = Vec::new();
        let mut known: HashMap<Id, usize> = HashMap::new();
        for result in results {
            let Some(wins) = result.wins else { continue };
            // What came after the last call is not in its figure, so nothing of the figure can be won with it.
            let counts = self
                .context
                .is_none_or(|(_, record)| result.record < record);
            let wins = match self.replaced.get(&result.tool) {
                Some(_) if known.contains_key(&result.tool) => 0,
                Some(&sent_instead) => sent_instead,
                None => wins,
            };
            let at = *known.entry(result.tool).or_insert_with(|| {
                responses.push(Response {
                    tool: result.tool,
                    records: Vec::new(),
                    wins: 0,
                    message: 0,
                });
                responses.len() - 1
            });
            let response = &mut responses[at];
            response.records.push(result.record);
            response.wins += if counts { wins } else { 0 };
            response.message = messages[result.record as usize];
        }
        responses
    }
}

/// The number of the message that each record belongs to, counting those of the context.
///
/// The records of one answer are one message, and so is what the user says in one go.
fn number_messages(nodes: &[Node], inside: &[bool]) -> Vec<usize> {
    let mut count = 0_usize;
    let mut last: Option<&Node> = None;
    let numbers = nodes.iter().zip(inside).map(|(node, inside)| {
        if *inside && node.is_message() {
            let same = last.is_some_and(|last| match (last.role, node.role) {
                (Role::User, Role::User) => true,
                (Role::Assistant, Role::Assistant) => {
                    node.message.is_some() && node.message == last.message
                }
                _ => false,
            });
            count += usize::from(!same);
            last = Some(node);
        }
        count.saturating_sub(1)
    });
    numbers.collect()
}

/// What is needed while the copy is written.
struct Copy<'a, W> {
    survey: &'a Survey,
    removed: HashSet<Id>,
    records: HashSet<u32>,
    session: Vec<u8>,
    /// The number of the next record.
    record: usize,
    ends_line: bool,
    out: &'a mut W,
}

impl<W: Write> Copy<'_, W> {
    fn piece(&mut self, piece: &Piece<'_>) -> Result<(), TrimError> {
        let bytes = piece.bytes();
        self.ends_line = bytes.ends_with(b"\n");
        if matches!(piece, Piece::Long { .. }) {
            return self.put(bytes);
        }
        let (mut done, mut outcome) = (0, Ok(()));
        each_span(bytes, &mut |span| {
            if outcome.is_ok() {
                outcome = self
                    .put(&bytes[done..span.start])
                    .and_then(|()| self.put_record(&bytes[span.clone()]));
                done = span.end;
            }
        });
        outcome?;
        self.put(&bytes[done..])
    }

    fn finish(mut self) -> Result<(), TrimError> {
        if self.record != self.survey.nodes.len() {
            return Err(TrimError::Changed {
                record: self.record,
            });
        }
        if !self.ends_line {
            // The client appends to the file: its next record must not join this one.
            self.put(b"\n")?;
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), TrimError> {
        self.out.write_all(bytes).map_err(TrimError::Write)
    }

    fn put_record(&mut self, bytes: &[u8]) -> Result<(), TrimError> {
        let record = self.record;
        self.record += 1;
        let look = Look::at(bytes);
        let node = self.survey.nodes.get(record);
        if node.is_none_or(|node| node.print != look.print()) {
            return Err(TrimError::Changed { record });
        }
        let edits = self.edits(bytes, &look, record);
        if edits.is_empty() {
            return self.put(bytes);
        }
        let edited = edit(bytes, &edits);
        if is_json(&edited) && Look::at(&edited).print() == look.print() {
            return self.put(&edited);
        }
        Err(TrimError::Damaged { record })
    }

    /// What changes in a record, by place.
    fn edits(&self, bytes: &[u8], look: &Look, record: usize) -> Vec<(Range<usize>, Vec<u8>)> {
        let mut edits: Vec<_> = look
            .sessions
            .iter()
            .map(|value| (value.clone(), self.session.clone()))
            .collect();
        if u32::try_from(record).is_ok_and(|record| self.records.contains(&record)) {
            let (gone, kept): (Vec<&ResultBlock>, Vec<&ResultBlock>) = look
                .results
                .iter()
                .partition(|result| self.removed.contains(&result.tool));
            edits.extend(
                gone.iter()
                    .flat_map(|result| &result.contents)
                    .filter_map(|content| {
                        Some((content.clone(), Cut::of(bytes, content.clone())?.json))
                    }),
            );
            // The copy of several responses in one record goes with the last of them.
            let holds_more = |result: &ResultBlock| {
                let content = result.contents.last();
                content.is_some_and(|content| Cut::of(bytes, content.clone()).is_some())
            };
            if !kept.into_iter().any(holds_more) {
                edits.extend(look.copies.iter().filter_map(|value| {
                    // A number or a word is no output, and what is shorter than any placeholder stays.
                    let holds = matches!(bytes[value.start], b'"' | b'{' | b'[');
                    let mark = placeholder(value.len().saturating_sub(2) as u64)?;
                    holds.then(|| (value.clone(), format!("\"{mark}\"").into_bytes()))
                }));
            }
        }
        for (tool, value) in &look.replacements {
            if self.removed.contains(tool)
                && let Some(cut) = Cut::of(bytes, value.clone())
            {
                edits.push((value.clone(), cut.json));
            }
        }
        edits.sort_by_key(|(value, _)| value.start);
        edits
    }
}

/// The bytes with each range replaced; the ranges are in order and apart.
fn edit(bytes: &[u8], edits: &[(Range<usize>, Vec<u8>)]) -> Vec<u8> {
    let mut edited = Vec::with_capacity(bytes.len());
    let mut done = 0;
    for (value, new) in edits {
        edited.extend_from_slice(&bytes[done..value.start]);
        edited.extend_from_slice(new);
        done = value.end;
    }
    edited.extend_from_slice(&bytes[done..]);
    edited
}

/// The longest placeholder of at most this many characters.
fn placeholder(characters: u64) -> Option<&'static str> {
    PLACEHOLDERS
        .into_iter()
        .find(|mark| mark.len() as u64 <= characters)
}

/// What a response's content becomes.
struct Cut {
    /// The characters that it loses, less those of the placeholder.
    wins: u64,
    json: Vec<u8>,
}

impl Cut {
    /// Cuts the content in `value`; none if there is nothing in it to remove, or no more.
    fn of(bytes: &[u8], value: Range<usize>) -> Option<Self> {
        let raw = &bytes[value.clone()];
        if raw.first() == Some(&b'"') {
            let mark = placeholder(span::characters(raw)).filter(|_| !is_placeholder(raw))?;
            return Some(Self::new(span::characters(raw), mark, &[]));
        }
        let (mut characters, mut is_gone, mut unknown) = (0, true, Vec::new());
        span::elements(bytes, value, |element| {
            let block = Block::at(bytes, element.clone());
            match block.kind.as_slice() {
                b"text" => {
                    let text = block.text.map_or(&b""[..], |text| &bytes[text]);
                    characters += span::characters(text);
                    is_gone &= is_placeholder(text);
                }
                b"image" | b"document" | b"search_result" => {
                    characters += (element.len() as u64).min(ATTACHMENT_CHARACTERS);
                    is_gone = false;
                }
                _ => unknown.push(element),
            }
        });
        let mark = placeholder(characters).filter(|_| !is_gone)?;
        let unknown: Vec<&[u8]> = unknown.into_iter().map(|block| &bytes[block]).collect();
        Some(Self::new(characters, mark, &unknown))
    }

    fn new(characters: u64, mark: &str, unknown: &[&[u8]]) -> Self {
        let json = if unknown.is_empty() {
            format!("\"{mark}\"").into_bytes()
        } else {
            let mut json = format!("[{{\"type\":\"text\",\"text\":\"{mark}\"}}").into_bytes();
            for block in unknown {
                json.push(b',');
                json.extend_from_slice(block);
            }
            json.push(b']');
            json
        };
        Self {
            wins: characters - mark.len() as u64,
            json,
        }
    }
}

fn is_placeholder(value: &[u8]) -> bool {
    let text = span::text(value).unwrap_or_default();
    PLACEHOLDERS.iter().any(|mark| mark.as_bytes() == &*text)
}

/// A record as far as a trim needs to know it, with the places of what may change.
#[derive(Default)]
struct Look {
    kind: Vec<u8>,
    role: Role,
    uuid: Option<Id>,
    parent: Parent,
    sidechain: bool,
    message: Option<Id>,
    characters: u64,
    uses: Vec<Id>,
    results: Vec<ResultBlock>,
    sessions: Vec<Range<usize>>,
    copies: Vec<Range<usize>>,
    replacements: Vec<(Id, Range<usize>)>,
    kept: Vec<Id>,
    segment: (Option<Id>, Option<Id>),
}

/// A `tool_result` block.
struct ResultBlock {
    tool: Id,
    /// Where its content stands; more than one place only if its key is repeated, and then the last counts.
    contents: Vec<Range<usize>>,
}

impl Look {
    fn at(bytes: &[u8]) -> Self {
        let mut look = Self::default();
        let mut subtype = Vec::new();
        let mut message = None;
        span::members(bytes, 0..bytes.len(), |key, value| match key {
            b"type" => look.kind = owned(&bytes[value]),
            b"subtype" => subtype = owned(&bytes[value]),
            b"uuid" => look.uuid = id_of(&bytes[value]),
            b"parentUuid" => {
                look.parent = id_of(&bytes[value]).map_or(Parent::Root, Parent::Of);
            }
            b"isSidechain" => look.sidechain = &bytes[value] == b"true",
            b"sessionId" if bytes[value.start] == b'"' => look.sessions.push(value),
            b"toolUseResult" => look.copies.push(value),
            b"message" => message = Some(value),
            b"compactMetadata" => look.take_compaction(bytes, value),
            b"replacements" => look.take_replacements(bytes, value),
            _ => {}
        });
        look.role = match (look.kind.as_slice(), subtype.as_slice()) {
            (b"user", _) => Role::User,
            (b"assistant", _) => Role::Assistant,
            (b"system", b"compact_boundary") => Role::Boundary,
            _ => Role::Other,
        };
        if look.kind != b"content-replacement" {
            look.replacements.clear();
        }
        if let Some(message) = message
            && matches!(look.role, Role::User | Role::Assistant)
        {
            look.take_message(bytes, message);
        }
        look
    }

    fn take_message(&mut self, bytes: &[u8], message: Range<usize>) {
        let mut content = None;
        span::members(bytes, message, |key, value| match key {
            b"id" => self.message = id_of(&bytes[value]),
            b"content" => content = Some(value),
            _ => {}
        });
        let Some(content) = content else { return };
        if bytes[content.start] == b'"' {
            self.characters = span::characters(&bytes[content]);
            return;
        }
        span::elements(bytes, content, |element| {
            let block = Block::at(bytes, element.clone());
            self.characters += block.characters(bytes, element);
            match block.kind.as_slice() {
                b"tool_use" => self.uses.extend(block.id),
                b"tool_result" => self.results.extend(block.tool.map(|tool| ResultBlock {
                    tool,
                    contents: block.contents,
                })),
                _ => {}
            }
        });
    }

    fn take_compaction(&mut self, bytes: &[u8], value: Range<usize>) {
        span::members(bytes, value, |key, value| match key {
            b"preservedMessages" => span::members(bytes, value, |key, value| {
                if matches!(key, b"uuids" | b"allUuids") {
                    span::elements(bytes, value, |uuid| self.kept.extend(id_of(&bytes[uuid])));
                }
            }),
            b"preservedSegment" => span::members(bytes, value, |key, value| match key {
                b"headUuid" => self.segment.0 = id_of(&bytes[value]),
                b"tailUuid" => self.segment.1 = id_of(&bytes[value]),
                _ => {}
            }),
            _ => {}
        });
    }

    fn take_replacements(&mut self, bytes: &[u8], value: Range<usize>) {
        span::elements(bytes, value, |element| {
            let (mut tool, mut text) = (None, None);
            span::members(bytes, element, |key, value| match key {
                b"toolUseId" => tool = id_of(&bytes[value]),
                b"replacement" if bytes[value.start] == b'"' => text = Some(value),
                _ => {}
            });
            self.replacements.extend(tool.zip(text));
        });
    }

    fn node(&self) -> Node {
        Node {
            uuid: self.uuid,
            parent: self.parent,
            message: self.message,
            role: self.role,
            sidechain: self.sidechain,
            characters: u32::try_from(self.characters).unwrap_or(u32::MAX),
            print: self.print(),
        }
    }

    /// Everything that the copy must keep: kind, chain and pairs.
    fn print(&self) -> u64 {
        let raw = |id: Option<Id>| id.map_or(0, Id::get);
        let mut hasher = DefaultHasher::new();
        hasher.write(&self.kind);
        hasher.write_u8(u8::from(self.sidechain));
        hasher.write_u64(raw(self.uuid));
        hasher.write_u64(match self.parent {
            Parent::Unsaid => 1,
            Parent::Root => 2,
            Parent::Of(parent) => parent.get(),
        });
        hasher.write_u64(raw(self.message));
        hasher.write_usize(self.uses.len());
        for tool in &self.uses {
            hasher.write_u64(tool.get());
        }
        for result in &self.results {
            hasher.write_u64(result.tool.get());
            hasher.write_usize(result.contents.len());
        }
        hasher.write_usize(self.sessions.len());
        hasher.finish()
    }
}

/// A block of a message's content, or of a response's.
#[derive(Default)]
struct Block {
    kind: Vec<u8>,
    id: Option<Id>,
    tool: Option<Id>,
    text: Option<Range<usize>>,
    contents: Vec<Range<usize>>,
}

impl Block {
    fn at(bytes: &[u8], place: Range<usize>) -> Self {
        let mut block = Self::default();
        span::members(bytes, place, |key, value| match key {
            b"type" => block.kind = owned(&bytes[value]),
            b"id" => block.id = id_of(&bytes[value]),
            b"tool_use_id" => block.tool = id_of(&bytes[value]),
            b"text" => block.text = Some(value),
            b"content" => block.contents.push(value),
            _ => {}
        });
        block
    }

    /// About how many characters it is for the model.
    fn characters(&self, bytes: &[u8], place: Range<usize>) -> u64 {
        let of = |place: &Range<usize>| match bytes[place.start] {
            b'"' => span::characters(&bytes[place.clone()]),
            _ => place.len() as u64,
        };
        match self.kind.as_slice() {
            b"text" => self.text.as_ref().map_or(0, of),
            b"image" | b"document" => (place.len() as u64).min(ATTACHMENT_CHARACTERS),
            b"tool_result" => self.contents.last().map_or(0, |content| {
                Cut::of(bytes, content.clone()).map_or_else(
                    || of(content),
                    |cut| cut.wins + cut.json.len().saturating_sub(2) as u64,
                )
            }),
            _ => place.len() as u64,
        }
    }
}

/// The text of a short string value.
fn owned(value: &[u8]) -> Vec<u8> {
    span::text(value).unwrap_or_default().into_owned()
}

/// The hash of an id; none if the value is no string. The hasher's keys are fixed, so it is the same on both readings.
fn id_of(value: &[u8]) -> Option<Id> {
    let text = span::text(value)?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&text);
    Some(Id::new(hasher.finish()).unwrap_or(Id::MAX))
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

/// A piece of a transcript.
enum Piece<'a> {
    /// A line with its end.
    Line(&'a [u8]),
    /// A last line without an end.
    Tail(&'a [u8]),
    /// A part of a line that is over the cap.
    Long {
        bytes: &'a [u8],
        /// The line ends with it.
        ends: bool,
    },
}

impl<'a> Piece<'a> {
    const fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Line(bytes) | Self::Tail(bytes) | Self::Long { bytes, .. } => bytes,
        }
    }
}

/// Hands all of a transcript to `sink`, byte for byte, in pieces of at most [`LINE_CAP`] and a buffer.
fn each_line(
    mut transcript: impl BufRead,
    sink: &mut impl FnMut(Piece<'_>) -> Result<(), TrimError>,
) -> Result<(), TrimError> {
    let mut carry: Vec<u8> = Vec::new();
    let mut is_long = false;
    loop {
        let buffer = match transcript.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(TrimError::Read(error)),
        };
        if buffer.is_empty() {
            break;
        }
        let line_end = memchr::memchr(b'\n', buffer);
        let taken = line_end.map_or(buffer.len(), |end| end + 1);
        let (bytes, ends) = (&buffer[..taken], line_end.is_some());
        if is_long || carry.len() + bytes.len() > LINE_CAP {
            if !carry.is_empty() {
                sink(Piece::Long {
                    bytes: &carry,
                    ends: false,
                })?;
                carry = Vec::new();
            }
            sink(Piece::Long { bytes, ends })?;
            is_long = !ends;
        } else if ends && carry.is_empty() {
            sink(Piece::Line(bytes))?;
        } else {
            carry.extend_from_slice(bytes);
            if ends {
                sink(Piece::Line(&carry))?;
                carry.clear();
            }
        }
        transcript.consume(taken);
    }
    if carry.is_empty() {
        return Ok(());
    }
    sink(Piece::Tail(&carry))
}

/// Hands the place of every record in a line to `sink`; what is between them is none.
fn each_span(line: &[u8], sink: &mut impl FnMut(Range<usize>)) {
    let mut start = 0;
    for nul in memchr::memchr_iter(0, line).chain([line.len()]) {
        spans_of_stretch(&line[start..nul], &mut |span| {
            sink(start + span.start..start + span.end);
        });
        start = nul + 1;
    }
}

fn spans_of_stretch(stretch: &[u8], sink: &mut impl FnMut(Range<usize>)) {
    let mut at = 0;
    // Torn records are given up a limited number of times, so that a hostile line costs linear time.
    let mut tries = 16;
    loop {
        at = stretch.len() - without_lead(&stretch[at..]).len();
        let rest = &stretch[at..];
        if rest.is_empty() {
            return;
        }
        if let Some(length) = object_length(rest) {
            sink(at..at + length);
            at += length;
        } else if let Some(behind) = record::record_behind(rest, &mut tries) {
            at += behind;
        } else {
            return;
        }
    }
}

/// The bytes without white space and byte order mark at their start.
fn without_lead(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.trim_ascii_start();
    bytes
        .strip_prefix(b"\xef\xbb\xbf")
        .map_or(bytes, <[u8]>::trim_ascii_start)
}

/// The length of the JSON object that the bytes begin with.
fn object_length(bytes: &[u8]) -> Option<usize> {
    if bytes.first() != Some(&b'{') {
        return None;
    }
    let mut stream = serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
    stream.next()?.ok()?;
    Some(stream.byte_offset())
}
