//! The split of a transcript, byte for byte, into lines and records.

use std::{
    io::{self, BufRead},
    ops::Range,
};

use serde::de::IgnoredAny;

use super::TrimError;
use crate::record::{self, LINE_CAP};

/// A piece of a transcript.
pub(super) enum Piece<'a> {
    /// A line with its line feed.
    Line(&'a [u8]),
    /// A last line without a line feed.
    Tail(&'a [u8]),
    /// A part of a line that is over the cap.
    Long {
        bytes: &'a [u8],
        /// True if the line ends with it.
        ends: bool,
    },
}

impl<'a> Piece<'a> {
    pub(super) const fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Line(bytes) | Self::Tail(bytes) | Self::Long { bytes, .. } => bytes,
        }
    }
}

/// Hands all of a transcript to `sink`, byte for byte, in pieces of at most [`LINE_CAP`] bytes and a buffer.
pub(super) fn each_line(
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

/// Hands the range of every record in a line to `sink`; the bytes between them are not a record.
pub(super) fn each_span(line: &[u8], sink: &mut impl FnMut(Range<usize>)) {
    let mut start = 0;
    for nul in memchr::memchr_iter(0, line).chain([line.len()]) {
        let read = |rest| Some(((), object_length(rest)?));
        record::each_of(&line[start..nul], read, |(), span| {
            sink(start + span.start..start + span.end);
        });
        start = nul + 1;
    }
}

/// Returns the length of the JSON object that the bytes begin with.
fn object_length(bytes: &[u8]) -> Option<usize> {
    if bytes.first() != Some(&b'{') {
        return None;
    }
    let mut stream = serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
    stream.next()?.ok()?;
    Some(stream.byte_offset())
}
