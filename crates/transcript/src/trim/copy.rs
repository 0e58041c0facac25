//! The second reading: it writes the copy, with the changed values replaced and every other byte kept.

use std::{collections::HashSet, io::Write, ops::Range};

use serde::de::IgnoredAny;

use super::{
    Survey, TrimError,
    cut::{Cut, longest_placeholder},
    lines::{Piece, each_span},
    look::{Id, Look, ResultBlock},
};
use crate::span;

/// The counts of a usage that make up the context, in the order in which tokens are subtracted from them.
const COUNTS: [&[u8]; 4] = [
    b"cache_read_input_tokens",
    b"cache_creation_input_tokens",
    b"input_tokens",
    b"output_tokens",
];

/// The state while the copy is written.
pub(super) struct Copy<'a, W> {
    pub(super) survey: &'a Survey,
    pub(super) removed: HashSet<Id>,
    pub(super) records: HashSet<u32>,
    pub(super) session: Vec<u8>,
    /// The number of tokens that the context loses.
    pub(super) won: u64,
    /// The number of the next record.
    pub(super) record: usize,
    pub(super) ends_line: bool,
    pub(super) out: &'a mut W,
}

impl<W: Write> Copy<'_, W> {
    pub(super) fn copy_piece(&mut self, piece: &Piece<'_>) -> Result<(), TrimError> {
        let bytes = piece.bytes();
        self.ends_line = bytes.ends_with(b"\n");
        if matches!(piece, Piece::Long { .. }) {
            return self.put_bytes(bytes);
        }
        let (mut done, mut outcome) = (0, Ok(()));
        each_span(bytes, &mut |span| {
            if outcome.is_ok() {
                outcome = self
                    .put_bytes(&bytes[done..span.start])
                    .and_then(|()| self.put_record(&bytes[span.clone()]));
                done = span.end;
            }
        });
        outcome?;
        self.put_bytes(&bytes[done..])
    }

    pub(super) fn finish(mut self) -> Result<(), TrimError> {
        if self.record != self.survey.nodes.len() {
            return Err(TrimError::Changed {
                record: self.record,
            });
        }
        if !self.ends_line {
            // The client appends to the file: its next record must not join this one.
            self.put_bytes(b"\n")?;
        }
        Ok(())
    }

    fn put_bytes(&mut self, bytes: &[u8]) -> Result<(), TrimError> {
        self.out.write_all(bytes).map_err(TrimError::Write)
    }

    fn put_record(&mut self, bytes: &[u8]) -> Result<(), TrimError> {
        let record = self.record;
        self.record += 1;
        let look = Look::read_record(bytes);
        let node = self.survey.nodes.get(record);
        if node.is_none_or(|node| node.print != look.fingerprint()) {
            return Err(TrimError::Changed { record });
        }
        let edits = self.edits_of(bytes, &look, record);
        if edits.is_empty() {
            return self.put_bytes(bytes);
        }
        let edited = apply_edits(bytes, &edits);
        if is_json(&edited) && Look::read_record(&edited).fingerprint() == look.fingerprint() {
            return self.put_bytes(&edited);
        }
        Err(TrimError::Damaged { record })
    }

    /// Returns the changes of a record, sorted by place.
    fn edits_of(&self, bytes: &[u8], look: &Look, record: usize) -> Vec<(Range<usize>, Vec<u8>)> {
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
                        Some((
                            content.clone(),
                            Cut::of_content(bytes, content.clone())?.json,
                        ))
                    }),
            );
            // The copy (`toolUseResult`) of several responses in one record is removed with the last of them.
            let holds_more = |result: &ResultBlock| {
                let content = result.contents.last();
                content.is_some_and(|content| Cut::of_content(bytes, content.clone()).is_some())
            };
            if !kept.into_iter().any(holds_more) {
                edits.extend(look.copies.iter().filter_map(|value| {
                    // A number or a word is not output, and what is shorter than any placeholder stays.
                    let holds = matches!(bytes[value.start], b'"' | b'{' | b'[');
                    let mark = longest_placeholder(value.len().saturating_sub(2) as u64)?;
                    holds.then(|| (value.clone(), format!("\"{mark}\"").into_bytes()))
                }));
            }
        }
        for (tool, value) in &look.replacements {
            if self.removed.contains(tool)
                && let Some(cut) = Cut::of_content(bytes, value.clone())
            {
                edits.push((value.clone(), cut.json));
            }
        }
        if self.survey.is_last_call(look, record)
            && let Some(usage) = &look.usage
        {
            edits.extend(lessen_usage(bytes, usage.clone(), self.won));
        }
        edits.sort_by_key(|(value, _)| value.start);
        edits
    }
}

/// Returns the changed counts of a usage that is reduced by so many tokens, and of each of its steps, of which the last has the size of
/// the context.
fn lessen_usage(bytes: &[u8], usage: Range<usize>, tokens: u64) -> Vec<(Range<usize>, Vec<u8>)> {
    let mut reports = vec![usage.clone()];
    span::each_member(bytes, usage, |key, value| {
        if key == b"iterations" {
            span::each_element(bytes, value, |step| reports.push(step));
        }
    });
    let lessened = reports
        .into_iter()
        .flat_map(|report| lessen_counts(bytes, report, tokens));
    lessened.collect()
}

/// Returns the changed counts of a report that is reduced by so many tokens, the cached ones first.
fn lessen_counts(bytes: &[u8], report: Range<usize>, tokens: u64) -> Vec<(Range<usize>, Vec<u8>)> {
    let mut counts = Vec::new();
    span::each_member(bytes, report, |key, value| {
        if let Some(rank) = COUNTS.iter().position(|count| *count == key) {
            counts.push((rank, value));
        }
    });
    counts.sort_by_key(|(rank, _)| *rank);
    let mut left = tokens;
    let lessened = counts.into_iter().filter_map(|(_, value)| {
        let count: u64 = str::from_utf8(&bytes[value.clone()]).ok()?.parse().ok()?;
        let taken = count.min(left);
        left -= taken;
        (taken > 0).then(|| (value, (count - taken).to_string().into_bytes()))
    });
    lessened.collect()
}

/// Returns the bytes with each range replaced; the ranges are in order and do not overlap.
fn apply_edits(bytes: &[u8], edits: &[(Range<usize>, Vec<u8>)]) -> Vec<u8> {
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

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}
