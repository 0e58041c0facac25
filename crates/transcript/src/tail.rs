//! The reader that follows a transcript as it grows.
//!
//! The file belongs to another program, which may be killed in mid-line, and it may be cut, replaced or removed
//! by anyone. Every read therefore asks first whether this is still the file that was read before:
//!
//! ```text
//!   same device and inode · size >= offset · same 64 bytes at the start and before the offset
//!        yes: go on at the offset          no: forget everything and read from the start
//! ```
//!
//! A file edited in place, deep inside and without touching those bytes, is not noticed; the client never does that.
//! When a large file is first read, the usage figure is searched from the end, so that it is there at
//! once; the rest is then read from the start in portions of the caller's budget.
//!
//! The calls block on file I/O: a runtime makes them on a thread that may block.

use std::{
    cell::{Cell, RefCell},
    fs::{self, File},
    io::{self, ErrorKind},
    os::unix::{
        ffi::OsStrExt,
        fs::{FileExt, MetadataExt},
    },
    path::{Path, PathBuf},
};

use memchr::{memmem, memrchr2};
use rustix::fs::OFlags;

use pitstop_base::private_file::{self, OpenError};

use super::{
    digest::{Age, Digest},
    record::{self, Faults, Record, Splitter},
    usage::{Usage, UsageScan, context_of},
};

/// The number of bytes that are compared at the start of the file and before the offset.
const PRINT: usize = 64;

/// The number of bytes read at once: large enough for the disk, small enough for the cache of a processor.
const BLOCK: usize = 256 * 1024;

/// The size in bytes up to which a file is read whole at once instead of being searched from its end.
const SMALL: u64 = 4 * 1024 * 1024;

/// The distance in bytes from the end within which the first figure is searched; beyond it the scan from the start finds it.
const PEEK_REACH: u64 = 256 * 1024 * 1024;

/// The length in bytes of the longest line that is searched from the end; a message with usage is far shorter.
const PEEK_LINE: usize = 8 * 1024 * 1024;

/// The reason why a transcript could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TailError {
    /// The path is not a regular file of this user: it comes from a hook, and hooks are not trusted.
    #[error("expected a regular file of our own as transcript, found {found}: {}", pitstop_base::clean::name(path_bytes(.path)))]
    Refused {
        /// The path as it was given.
        path: PathBuf,
        /// The kind of file that was found there.
        found: &'static str,
    },
    /// The system refused an operation.
    #[error("cannot {action} transcript {}", pitstop_base::clean::name(path_bytes(.path)))]
    Io {
        /// The operation that was tried.
        action: &'static str,
        /// The path as it was given.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// The result of one reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TailReport {
    /// The number of bytes read.
    pub bytes: u64,
    /// The number of records found.
    pub records: u64,
    /// True if the figure for the context window has changed, or there is none any more.
    pub moved: bool,
    /// True if the file was cut or replaced, and is being read from the start.
    pub reset: bool,
    /// True if there is no such file now.
    pub vanished: bool,
    /// True if the budget is used up and the end not reached: the caller should read again soon.
    pub more: bool,
}

/// A transcript that is followed; see the top of this file.
#[derive(Debug, Default)]
pub struct Tail {
    path: PathBuf,
    file: Option<File>,
    /// The file's size when it was last looked at, in bytes.
    size: u64,
    reached: Option<Reached>,
    splitter: Splitter,
    scan: UsageScan,
    /// The figure found from the end while the scan has not reached it.
    peeked: Option<Usage>,
    /// The offset up to which the file was searched from its end.
    peeked_to: u64,
    caught_up: bool,
    sent: Option<Usage>,
}

/// A function that takes a line, with the number of bytes between it and the end of the file.
type TakeLine<'a> = dyn FnMut(&mut UsageScan, &[u8], u64) + 'a;

/// The identity of the file that was read, and the offset reached.
#[derive(Debug, Default)]
struct Reached {
    device: u64,
    inode: u64,
    offset: u64,
    head: Vec<u8>,
    before: Vec<u8>,
}

impl Reached {
    fn at_start_of(file: &fs::Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            ..Self::default()
        }
    }

    /// Reports whether `file` still begins with what was read.
    fn continues_in(&self, file: &File, now: &fs::Metadata) -> io::Result<bool> {
        if (self.device, self.inode) != (now.dev(), now.ino()) || now.len() < self.offset {
            return Ok(false);
        }
        let same = |expected: &[u8], at: u64| {
            let mut found = vec![0; expected.len()];
            match file.read_exact_at(&mut found, at) {
                Ok(()) => Ok(found == expected),
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
                Err(error) => Err(error),
            }
        };
        Ok(same(&self.head, 0)? && same(&self.before, self.offset - self.before.len() as u64)?)
    }

    fn advance(&mut self, piece: &[u8]) {
        self.offset += piece.len() as u64;
        if self.head.len() < PRINT {
            self.head
                .extend_from_slice(&piece[..piece.len().min(PRINT - self.head.len())]);
        }
        self.before
            .extend_from_slice(&piece[piece.len().saturating_sub(PRINT)..]);
        self.before.drain(..self.before.len().saturating_sub(PRINT));
    }
}

impl Tail {
    /// Begins to follow the transcript at `path`, which need not exist yet; nothing is read before the first
    /// [`read_new`](Self::read_new).
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, TailError> {
        let path = path.into();
        let file = open_ours(&path)?;
        Ok(Self {
            path,
            file,
            ..Self::default()
        })
    }

    /// Reads the new part of the file, at most `budget` bytes of it.
    ///
    /// After an error nothing is lost: the next call begins where this one did.
    pub fn read_new(&mut self, budget: u64) -> Result<TailReport, TailError> {
        self.read_lines(
            budget,
            &mut |scan, line, _| scan.feed_line(line),
            &mut || {},
        )
    }

    /// Reads the new part as [`read_new`](Self::read_new) does and also hands every line to `digest`.
    ///
    /// Lines up to the offset `news_from` are history; a file that has replaced another is history up to its
    /// present end, and `digest` begins again with it.
    pub fn read_into(
        &mut self,
        budget: u64,
        digest: &mut Digest,
        news_from: &mut u64,
    ) -> Result<TailReport, TailError> {
        let ahead = news_from.saturating_sub(self.offset());
        let is_new = ahead == 0;
        // No reading goes across the border between history and news.
        let budget = if is_new { budget } else { budget.min(ahead) };
        let reset = Cell::new(false);
        let digest = RefCell::new(digest);
        let report = self.read_lines(
            budget,
            &mut |scan, line, behind| {
                scan.feed_line(line);
                let is_new = is_new && !reset.get();
                digest.borrow_mut().take_line(line, Age { behind, is_new });
            },
            &mut || {
                reset.set(true);
                digest.borrow_mut().clear();
            },
        )?;
        if report.reset {
            *news_from = self.size;
        }
        Ok(report)
    }

    /// Returns the offset in bytes up to which the file was read.
    pub fn offset(&self) -> u64 {
        self.reached.as_ref().map_or(0, |reached| reached.offset)
    }

    /// Returns the path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the usage of the last main-chain call that is known.
    pub const fn latest(&self) -> Option<Usage> {
        if self.caught_up {
            self.scan.last()
        } else {
            self.peeked
        }
    }

    /// Returns the facts about the session up to the offset that was read.
    pub const fn scan(&self) -> &UsageScan {
        &self.scan
    }

    /// Reports whether the end of the file was reached, so that [`scan`](Self::scan) knows the whole session.
    pub const fn caught_up(&self) -> bool {
        self.caught_up
    }

    /// Returns the counts of everything that was met so far and is not a clean record.
    pub const fn faults(&self) -> Faults {
        let mut faults = self.scan.faults();
        faults.add(self.splitter.faults());
        faults
    }

    fn read_lines(
        &mut self,
        budget: u64,
        take: &mut TakeLine<'_>,
        begin: &mut dyn FnMut(),
    ) -> Result<TailReport, TailError> {
        let mut report = TailReport::default();
        match self.find_file() {
            Ok(Some(size)) => {
                self.size = size;
                report.reset = self
                    .begin_if_new()
                    .map_err(|source| self.io_error("read", source))?;
                if report.reset {
                    begin();
                }
                let before = self.scan.records();
                report.bytes = self
                    .read_to(size, budget, take)
                    .map_err(|source| self.io_error("read", source))?;
                report.more = !self.caught_up && report.bytes > 0;
                report.records = self.scan.records() - before;
                report.moved = self.note_figure(self.latest());
            }
            Ok(None) => {
                self.file = None;
                report.vanished = true;
                report.moved = self.note_figure(None);
            }
            Err(error) => {
                self.file = None;
                return Err(error);
            }
        }
        Ok(report)
    }

    /// Makes sure that the open file is the one at the path; returns its size, or none if there is no file.
    fn find_file(&mut self) -> Result<Option<u64>, TailError> {
        let named = match fs::symlink_metadata(&self.path) {
            Ok(named) => named,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(self.io_error("find", source)),
        };
        let held = self.file.as_ref().map(File::metadata).transpose();
        let held = held.map_err(|source| self.io_error("look at", source))?;
        if held.is_none_or(|held| (held.dev(), held.ino()) != (named.dev(), named.ino())) {
            self.file = open_ours(&self.path)?;
        }
        let now = self.file.as_ref().map(File::metadata).transpose();
        Ok(now
            .map_err(|source| self.io_error("look at", source))?
            .map(|now| now.len()))
    }

    /// Starts afresh if the file is not the one that was read; returns whether one had been.
    fn begin_if_new(&mut self) -> io::Result<bool> {
        let Some(file) = &self.file else {
            return Ok(false);
        };
        let now = file.metadata()?;
        let earlier = match &self.reached {
            Some(reached) if reached.continues_in(file, &now)? => return Ok(false),
            earlier => earlier.is_some(),
        };
        self.reached = Some(Reached::at_start_of(&now));
        self.splitter = Splitter::default();
        self.scan = UsageScan::default();
        self.peeked = None;
        self.peeked_to = 0;
        self.caught_up = false;
        Ok(earlier)
    }

    /// Reads from the offset towards `size`, within the budget; returns the bytes read.
    fn read_to(&mut self, size: u64, budget: u64, take: &mut TakeLine<'_>) -> io::Result<u64> {
        let (Some(file), Some(reached)) = (&self.file, &mut self.reached) else {
            return Ok(0);
        };
        let ahead = size.saturating_sub(reached.offset);
        if ahead > budget.min(SMALL) {
            let from = reached
                .offset
                .max(self.peeked_to)
                .max(size.saturating_sub(PEEK_REACH));
            match peek_from_end(file, from, size)? {
                Peek::Used(usage) => self.peeked = Some(usage),
                Peek::Compacted => self.peeked = None,
                Peek::Nothing if self.peeked_to <= reached.offset => self.peeked = self.scan.last(),
                Peek::Nothing => {}
            }
            self.peeked_to = size;
        }
        let mut left = ahead.min(budget);
        let mut buffer = vec![0; left.min(BLOCK as u64) as usize];
        let mut total = 0;
        while left > 0 {
            let want = left.min(BLOCK as u64) as usize;
            let count = match file.read_at(&mut buffer[..want], reached.offset) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let piece = &buffer[..count];
            let behind = size.saturating_sub(reached.offset + count as u64);
            self.splitter
                .push(piece, |line| take(&mut self.scan, line, behind));
            reached.advance(piece);
            left -= count as u64;
            total += count as u64;
        }
        self.caught_up = reached.offset >= size;
        Ok(total)
    }

    fn note_figure(&mut self, latest: Option<Usage>) -> bool {
        std::mem::replace(&mut self.sent, latest) != latest
    }

    fn io_error(&self, action: &'static str, source: io::Error) -> TailError {
        TailError::Io {
            action,
            path: self.path.clone(),
            source,
        }
    }
}

/// Reports whether a prompt on the main chain of the transcript at `path` holds `marker`.
///
/// This shows that a handoff has arrived when no supervisor was running to see it. A missing file holds nothing, and
/// no file holds the empty marker of a handoff that was not written yet.
pub fn find_prompt(path: impl Into<PathBuf>, marker: &str) -> Result<bool, TailError> {
    if marker.is_empty() {
        return Ok(false);
    }
    let mut tail = Tail::open(path)?;
    let plain = memmem::Finder::new(plain_part(marker));
    let mut found = false;
    let mut look = |line: &[u8]| {
        if !found && plain.find(line).is_some() {
            record::each_record(line, &mut |record| {
                found |= matches!(&record, Record::User(user)
                    if user.prompt().is_some_and(|prompt| prompt.contains(marker)));
            });
        }
    };
    tail.read_lines(u64::MAX, &mut |_, line, _| look(line), &mut || {})?;
    look(tail.splitter.pending());
    Ok(found)
}

/// Reports whether the transcript at `path` holds a prompt: only then can its session be resumed.
///
/// Measured with the client (2.1.197): one prompt suffices; mode lines and snapshots alone do not, though
/// they make its id taken. A missing file holds nothing.
pub fn holds_conversation(path: impl Into<PathBuf>) -> Result<bool, TailError> {
    /// The number of bytes read at a time: the first prompt is near the beginning.
    const STEP: u64 = 1 << 20;
    let mut tail = Tail::open(path)?;
    loop {
        let report = tail.read_new(STEP)?;
        if tail.scan.turns() > 0 {
            return Ok(true);
        }
        if !report.more {
            break;
        }
    }
    tail.scan.feed_line(tail.splitter.pending());
    Ok(tail.scan.turns() > 0)
}

/// Hands the bytes of the transcript at `path` to `sink` in pieces, until it returns false. If the file is longer than `start`
/// and `end` together, only that many bytes of its start and end are read, with a line feed between them. A missing file is empty.
pub fn read_pieces(
    path: impl Into<PathBuf>,
    start: u64,
    end: u64,
    mut sink: impl FnMut(&[u8]) -> bool,
) -> Result<(), TailError> {
    let path = path.into();
    let failed = |source| TailError::Io {
        action: "read",
        path: path.clone(),
        source,
    };
    let Some(file) = open_ours(&path)? else {
        return Ok(());
    };
    let size = file.metadata().map_err(failed)?.len();
    let skips = size > start.saturating_add(end);
    let mut buffer = vec![0; BLOCK];
    let mut at = 0;
    while at < size {
        if skips && at == start {
            at = size - end;
            if !sink(b"\n") {
                return Ok(());
            }
        }
        let border = if skips && at < start { start } else { size };
        let want = (border - at).min(BLOCK as u64) as usize;
        let count = match file.read_at(&mut buffer[..want], at) {
            // The file was cut meanwhile.
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(error)),
        };
        at += count as u64;
        if !sink(&buffer[..count]) {
            return Ok(());
        }
    }
    Ok(())
}

/// Returns the longest part of `marker` that JSON never writes in another way.
fn plain_part(marker: &str) -> &str {
    marker
        .split(|c: char| !c.is_ascii_alphanumeric())
        .max_by_key(|part| part.len())
        .unwrap_or("")
}

/// The usage figure at the end of a transcript.
#[derive(Debug, PartialEq)]
enum Peek {
    /// The last main-chain call used this.
    Used(Usage),
    /// The session was compacted after the last call.
    Compacted,
    /// There is neither in the part that was searched.
    Nothing,
}

/// Searches backwards from `high` to `low` for the last main-chain call; a torn tail is skipped.
fn peek_from_end(file: &File, low: u64, high: u64) -> io::Result<Peek> {
    let mut block = vec![0; BLOCK];
    // The pieces of the line under way, last first; none while the torn tail or a line that is too long is skipped.
    let mut line: Option<Vec<Vec<u8>>> = None;
    let mut end = high;
    while end > low {
        let start = end.saturating_sub(BLOCK as u64).max(low);
        let block = &mut block[..(end - start) as usize];
        match file.read_exact_at(block, start) {
            Ok(()) => {}
            // The file was cut meanwhile; the next reading notices it.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Peek::Nothing),
            Err(error) => return Err(error),
        }
        let mut upto = block.len();
        while let Some(at) = memrchr2(b'\n', 0, &block[..upto]) {
            let said = last_word(line.take(), &block[at + 1..upto]);
            if said != Peek::Nothing {
                return Ok(said);
            }
            line = Some(Vec::new());
            upto = at;
        }
        if let Some(pieces) = &mut line {
            pieces.push(block[..upto].to_vec());
            if pieces.len() * BLOCK > PEEK_LINE {
                line = None;
            }
        }
        end = start;
    }
    Ok(last_word(line, &[]))
}

/// Returns the figure of the line made of `first` and the pieces behind it; nothing if its pieces were not kept.
fn last_word(pieces: Option<Vec<Vec<u8>>>, first: &[u8]) -> Peek {
    let Some(pieces) = pieces else {
        return Peek::Nothing;
    };
    let joined;
    let line = if pieces.is_empty() {
        first
    } else {
        joined = [first]
            .into_iter()
            .chain(pieces.iter().rev().map(Vec::as_slice))
            .collect::<Vec<_>>()
            .concat();
        &joined
    };
    let mut said = Peek::Nothing;
    if memmem::find(line, b"\"usage\":").is_some()
        || memmem::find(line, b"compact_boundary").is_some()
    {
        record::each_record(line, &mut |record| match &record {
            Record::CompactBoundary => said = Peek::Compacted,
            Record::Assistant(assistant) => {
                if let Some(usage) = context_of(assistant) {
                    said = Peek::Used(usage);
                }
            }
            _ => {}
        });
    }
    said
}

/// Opens `path` if it is a regular file of this user and not a link; returns none if it does not exist.
pub fn open_ours(path: &Path) -> Result<Option<File>, TailError> {
    let refused = |found| {
        Err(TailError::Refused {
            path: path.to_owned(),
            found,
        })
    };
    let failed = |action, source| TailError::Io {
        action,
        path: path.to_owned(),
        source,
    };
    // The file is checked before it is opened, because opening a device can have effects; and again after,
    // because it may have been replaced between the two.
    match fs::symlink_metadata(path) {
        Ok(named) if named.is_symlink() => return refused("a symbolic link"),
        Ok(named) if !named.is_file() => return refused("no regular file"),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(failed("find", source)),
    }
    let file = match private_file::open(path, OFlags::RDONLY) {
        Ok(file) => file,
        Err(error) if error.is_absent() => return Ok(None),
        Err(OpenError::Link) => return refused("a symbolic link"),
        Err(OpenError::NotRegular) => return refused("no regular file"),
        Err(OpenError::Io(source)) => return Err(failed("open", source)),
    };
    match private_file::other_owner(&file) {
        Ok(None) => Ok(Some(file)),
        Ok(Some(_)) => refused("a file of another user"),
        Err(source) => Err(failed("look at", source)),
    }
}

fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}
