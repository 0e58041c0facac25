//! The log file: the events, for a person who looks for a cause afterwards.
//!
//! Daily files `pitstop.2026-11-21.log` (UTC) in the log directory, mode 0600, old ones removed: `tracing-appender` writes
//! in the background, changes the file at midnight and removes old ones. It would create files that everyone can read,
//! follow links and report on stderr, where the UI is, that it cannot open one: so each is created here before the day's
//! first line. One that it cannot remove it still reports there. A log that cannot be written is no reason to stop; the
//! reason is handed back as a warning.
//!
//! Names of branches, files and models end up in log lines. Every line passes [`one_line`], so that
//! reading the log in a terminal is safe, and [`redact`], so that showing it to others is.

#![allow(
    clippy::disallowed_methods,
    reason = "it touches the world: the day of the log file"
)]

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Instant, SystemTime},
};

use chrono::{DateTime, NaiveDate, Utc};
use rustix::fs::OFlags;
use tracing_appender::{
    non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard},
    rolling::{RollingFileAppender, Rotation},
};
use tracing_subscriber::{
    Layer as _, Registry,
    filter::Targets,
    fmt::{MakeWriter, format::FmtSpan},
    layer::SubscriberExt as _,
};

use pitstop_base::{clean::one_line, private_file, redact::redact};
use pitstop_core::config::{
    LogConfig, LogLevel,
    load::paths::{DirError, ensure_private_dir},
};

/// The text that the files' names start with; the next constant ends them, with the date between.
const PREFIX: &str = "pitstop";
const SUFFIX: &str = "log";

/// The largest size of a day's file, in bytes; later lines of that day are dropped. Even a fault that logs in a loop must
/// not fill the disk.
const MAX_DAY_BYTES: u64 = 16 * 1024 * 1024;

/// The longest line, in bytes; longer ones are cut: no message is worth more, and inputs are hostile.
const MAX_LINE_BYTES: usize = 16 * 1024;

/// The number of lines in flight to the writing thread; more are dropped rather than waited for.
const LINES_IN_FLIGHT: usize = 4_096;

/// The number of lines taken at once; the next constant is the number a second after that: as many as a busy session logs,
/// and far less than a flood, which would fill the day's file and keep out the cause of later faults.
const BURST: f64 = 2_000.0;
const LINES_A_SECOND: f64 = 10.0;

/// The reason why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The log directory cannot be used.
    #[error("running without a log: {0}")]
    Directory(#[from] DirError),
    /// Today's file cannot be opened.
    #[error("running without a log: cannot open {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A logger is set already.
    #[error("running without a log: another logger is set")]
    Taken,
}

/// Starts the log of this process. `filter` is the user's value of `PITSTOP_LOG`, in the terms of `tracing` (`debug`,
/// `pitstop::app=trace`); without it the configured level counts.
///
/// The guard keeps the log going; dropped, it writes the lines still in flight. On an error the caller shows the reason and
/// runs on without a log.
pub fn start(
    directory: &Path,
    log: &LogConfig,
    filter: Option<&str>,
) -> Result<WorkerGuard, LogError> {
    let (subscriber, guard) = subscriber(directory, log, filter)?;
    tracing::subscriber::set_global_default(subscriber).map_err(|_| LogError::Taken)?;
    Ok(guard)
}

/// Returns the log as a subscriber, for [`start`] and for tests that want one of their own.
pub fn subscriber(
    directory: &Path,
    log: &LogConfig,
    filter: Option<&str>,
) -> Result<(impl tracing::Subscriber + Send + Sync + use<>, WorkerGuard), LogError> {
    ensure_private_dir(directory)?;
    // A user with a filter asks for more lines and wants all of them.
    let rate = filter.is_none().then(|| Rate::new(Instant::now()));
    let file = DailyFile::open(directory, log.keep_days, rate)?;
    let (writer, worker) = NonBlockingBuilder::default()
        .buffered_lines_limit(LINES_IN_FLIGHT)
        .lossy(true)
        .thread_name("log")
        .finish(file);
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_span_events(FmtSpan::NONE)
        .with_writer(Printable(writer))
        .with_filter(filter_for(log.level, filter));
    let subscriber = Registry::default().with(lines);
    Ok((subscriber, worker))
}

fn filter_for(level: LogLevel, filter: Option<&str>) -> Targets {
    // Below warnings the dependencies have no message that belongs in a user's log.
    let ours = format!("warn,pitstop={level}");
    let wished = filter.and_then(|filter| filter.parse().ok());
    wished.unwrap_or_else(|| ours.parse().expect("a valid filter"))
}

/// Hands each event's line to the writing thread in a form that is safe to show.
#[derive(Clone, Debug)]
struct Printable(NonBlocking);

impl<'a> MakeWriter<'a> for Printable {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line {
            bytes: Vec::new(),
            out: self.0.clone(),
        }
    }
}

/// One event's line while it is put together. It is handed on as a whole, so that lines of several
/// threads do not mix.
#[derive(Debug)]
struct Line {
    bytes: Vec<u8>,
    out: NonBlocking,
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The text beyond the cap is dropped: an error would be reported on stderr.
        let room = MAX_LINE_BYTES.saturating_sub(self.bytes.len());
        self.bytes
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.bytes.is_empty() {
            return;
        }
        let text = String::from_utf8_lossy(&self.bytes);
        let masked = redact(text.trim_end_matches('\n'));
        let line = format!("{}\n", one_line(&masked));
        // The channel refuses only when the writer is gone, at the very end.
        let _ = self.out.write_all(line.as_bytes());
    }
}

/// The file of the day within its bounds. Its writes never fail: there is no place to report it.
struct DailyFile {
    directory: PathBuf,
    day: NaiveDate,
    /// The number of bytes that the day's file may still grow by.
    room: u64,
    files: RollingFileAppender,
    rate: Option<Rate>,
}

/// The number of lines that may still come.
#[derive(Debug)]
struct Rate {
    left: f64,
    at: Instant,
    left_out: u64,
}

impl Rate {
    fn new(now: Instant) -> Self {
        Self {
            left: BURST,
            at: now,
            left_out: 0,
        }
    }

    /// Returns the number of lines left out before this one, if it may come now.
    fn admits(&mut self, now: Instant) -> Option<u64> {
        let since = now.duration_since(self.at).as_secs_f64();
        self.at = now;
        self.left = (self.left + since * LINES_A_SECOND).min(BURST);
        if self.left < 1.0 {
            self.left_out += 1;
            return None;
        }
        self.left -= 1.0;
        Some(std::mem::take(&mut self.left_out))
    }
}

impl DailyFile {
    fn open(directory: &Path, keep_days: u32, rate: Option<Rate>) -> Result<Self, LogError> {
        let day = today();
        let failed = |source| LogError::File {
            path: path_of(directory, day),
            source,
        };
        let room = create(directory, day).map_err(failed)?;
        let files = RollingFileAppender::builder()
            .rotation(Rotation::DAILY)
            .filename_prefix(PREFIX)
            .filename_suffix(SUFFIX)
            // It leaves one fewer, for the file that it is about to create: that file is there already.
            .max_log_files(keep_days as usize + 1)
            .build(directory)
            .map_err(|error| failed(io::Error::other(error)))?;
        Ok(Self {
            directory: directory.to_owned(),
            day,
            room,
            files,
            rate,
        })
    }

    /// Adds a line, as long as the day's file has room.
    fn add(&mut self, line: &[u8]) {
        const FULL_NOTICE: &[u8] = b"(the log of this day is full: no more of it is kept)\n";
        if self.room == 0 {
            return;
        }
        if self.files.write_all(line).is_ok() {
            self.room = self.room.saturating_sub(line.len() as u64);
        }
        if self.room == 0 {
            // It is the last one: whether it can be written makes no difference.
            let _ = self.files.write_all(FULL_NOTICE);
        }
    }
}

impl Write for DailyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let day = today();
        // A clock set back does not bring an old day's file back.
        if day > self.day {
            self.day = day;
            self.room = create(&self.directory, day).unwrap_or(0);
        }
        match self.rate.as_mut().map(|rate| rate.admits(Instant::now())) {
            Some(None) => {}
            None | Some(Some(0)) => self.add(bytes),
            Some(Some(lines)) => {
                self.add(format!("({lines} lines were left out: too many at once)\n").as_bytes());
                self.add(bytes);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn today() -> NaiveDate {
    DateTime::<Utc>::from(SystemTime::now()).date_naive()
}

fn path_of(directory: &Path, day: NaiveDate) -> PathBuf {
    directory.join(format!("{PREFIX}.{day}.{SUFFIX}"))
}

/// Creates a day's file unless it is there, and returns the number of bytes that it may still grow by; no link is followed.
fn create(directory: &Path, day: NaiveDate) -> io::Result<u64> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND;
    let file = private_file::open(&path_of(directory, day), flags)?;
    Ok(MAX_DAY_BYTES.saturating_sub(file.metadata()?.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pitstop_core::config::Config;
    use std::os::unix::fs::PermissionsExt as _;

    fn read_all(directory: &Path) -> String {
        let mut names: Vec<PathBuf> = std::fs::read_dir(directory)
            .expect("the directory")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        names.sort();
        names
            .iter()
            .map(|path| std::fs::read_to_string(path).expect("a log file"))
            .collect()
    }

    #[test]
    fn the_user_s_filter_counts_and_what_is_none_does_not() {
        use tracing::Level;
        for (filter, target, level, is_logged) in [
            (None, "pitstop_core::app", Level::INFO, true),
            (None, "sqlx::query", Level::INFO, false),
            (Some("debug"), "sqlx::query", Level::DEBUG, true),
            (
                Some("warn,pitstop_core::app=trace"),
                "pitstop_core::app::draft",
                Level::TRACE,
                true,
            ),
            (
                Some("warn,pitstop_core::app=trace"),
                "pitstop",
                Level::INFO,
                false,
            ),
            (Some("pitstop=loud"), "pitstop", Level::INFO, true),
            (Some("pitstop=loud"), "pitstop", Level::DEBUG, false),
        ] {
            let filter_of = filter_for(LogLevel::Info, filter);
            assert_eq!(
                filter_of.would_enable(target, &level),
                is_logged,
                "{filter:?}"
            );
        }
    }

    /// Returns the log of what is logged at a level.
    fn logged(level: LogLevel, act: impl FnOnce()) -> String {
        let home = tempfile::tempdir().expect("a directory");
        let directory = home.path().join("log");
        let log = LogConfig {
            level,
            ..Config::default().log
        };
        let (subscriber, guard) = subscriber(&directory, &log, None).expect("a log");
        tracing::subscriber::with_default(subscriber, act);
        drop(guard);
        read_all(&directory)
    }

    #[test]
    fn a_hostile_name_reaches_the_log_as_one_harmless_line() {
        let text = logged(LogLevel::Info, || {
            tracing::warn!(
                branch = "x\u{1b}]0;evil\u{7}\ninjected\u{202e}",
                "branch\rgone\u{9b}2J"
            );
        });
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("injected"), "{text}");
        assert!(
            !text.trim_end_matches('\n').chars().any(char::is_control),
            "{text:?}"
        );
        assert!(!text.contains('\u{202e}'), "{text:?}");
    }

    #[test]
    fn a_secret_does_not_reach_the_log() {
        let text = logged(LogLevel::Info, || {
            // Whole ones would be found in this file.
            let word = "wintermute7x9";
            let command = format!("PGPASSWORD={word} psql");
            let error = Some(format!("{{\"db_password\": \"{word}\"}}"));
            tracing::warn!(command, ?error, "failed: sshpass -p {word}");
        });
        assert!(!text.contains("mute"), "{text}");
        assert!(text.contains("[masked password]"), "{text}");
    }

    #[test]
    fn the_level_decides_what_is_kept() {
        let text = logged(LogLevel::Warn, || {
            tracing::info!("quiet");
            tracing::warn!("loud");
            tracing::debug!(target: "sqlx", "chatter");
        });
        assert!(text.contains("loud") && !text.contains("quiet") && !text.contains("chatter"));
    }

    #[test]
    fn a_long_line_is_cut() {
        let text = logged(LogLevel::Info, || {
            tracing::info!("{}", "x".repeat(1_000_000));
            tracing::info!("next");
        });
        assert!(text.len() < MAX_LINE_BYTES + 1_000, "{}", text.len());
        assert!(text.lines().count() == 2 && text.contains("next"));
    }

    /// Waits until a file that is created from now on is younger than those before, as it is with days.
    fn next_tick(directory: &Path) {
        let file = || tempfile::tempfile_in(directory).ok()?.metadata().ok();
        let first = file().and_then(|now| now.created().ok());
        while first.is_some() && file().and_then(|now| now.created().ok()) == first {}
    }

    #[test]
    fn old_days_go_and_today_stays_at_every_start() {
        let ago = |directory: &Path, days| path_of(directory, today() - chrono::Days::new(days));
        for (keep, left) in [(1, 1), (2, 2), (3, 3), (30, 5)] {
            let home = tempfile::tempdir().expect("a directory");
            let path = home.path();
            std::fs::write(path.join("notes.log"), "mine").expect("written");
            for days in [4, 3, 2, 1] {
                std::fs::write(ago(path, days), "old\n").expect("written");
                next_tick(path);
            }
            for line in ["first\n", "second\n", "third\n"] {
                let mut file = DailyFile::open(path, keep, None).expect("a log");
                file.write_all(line.as_bytes()).expect("never fails");
            }
            let days: Vec<u64> = (0..9).filter(|days| ago(path, *days).exists()).collect();
            assert_eq!(days, (0..left).collect::<Vec<_>>(), "keep {keep}");
            let last = std::fs::read_to_string(path_of(path, today()));
            assert_eq!(last.expect("there"), "first\nsecond\nthird\n");
            assert!(path.join("notes.log").exists());
        }
    }

    #[test]
    fn a_new_day_has_a_private_file_and_room_again() {
        let home = tempfile::tempdir().expect("a directory");
        let mut file = DailyFile::open(home.path(), 3, None).expect("a log");
        let path = path_of(home.path(), today());
        let mut on = |days: i64, line: &[u8]| {
            file.day = today() + chrono::TimeDelta::days(days);
            file.room = 0;
            file.write_all(line).expect("never fails");
            file.room
        };
        // The clock is set back.
        assert_eq!(on(1, b"too much\n"), 0);
        assert_eq!(on(-1, b"the next\n"), MAX_DAY_BYTES - 9);
        assert_eq!(read_all(home.path()), "the next\n");
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(on(-1, b"a new file\n"), MAX_DAY_BYTES - 11);
        let mode = path.metadata().expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::remove_file(&path).expect("removed");
        std::fs::create_dir(&path).expect("made");
        assert_eq!(on(-1, b"nowhere\n"), 0);
    }

    #[test]
    fn a_flood_leaves_room_for_what_comes_after_it() {
        let home = tempfile::tempdir().expect("a directory");
        let rate = Some(Rate::new(Instant::now()));
        let mut file = DailyFile::open(home.path(), 7, rate).expect("a log");
        for _ in 0..100_000 {
            file.write_all(b"again\n").expect("taken");
        }
        if let Some(rate) = &mut file.rate {
            rate.left = 1.0;
        }
        file.write_all(b"the cause\n").expect("taken");
        let text = read_all(home.path());
        // Some come in the time that this takes.
        let lines = text.lines().count();
        assert!((2_000..20_000).contains(&lines), "{lines}");
        assert!(text.ends_with("the cause\n"));
        assert!(text.contains("lines were left out: too many at once)"));

        let mut rate = Rate::new(Instant::now());
        let later = Instant::now() + std::time::Duration::from_secs(1);
        while rate.admits(later).is_some() {}
        assert_eq!(rate.admits(later), None);
        let later = later + std::time::Duration::from_secs(1);
        assert_eq!((rate.admits(later), rate.admits(later)), (Some(2), Some(0)));
    }

    #[test]
    fn a_day_takes_no_more_than_its_share() {
        let home = tempfile::tempdir().expect("a directory");
        let path = path_of(home.path(), today());
        let full = std::fs::File::create(&path).expect("created");
        full.set_len(MAX_DAY_BYTES).expect("grown");
        let mut file = DailyFile::open(home.path(), 7, None).expect("a log");
        file.write_all(b"too much\n").expect("never fails");
        assert_eq!(path.metadata().expect("there").len(), MAX_DAY_BYTES);
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_a_reason_and_no_panic() {
        let home = tempfile::tempdir().expect("a directory");
        let file = home.path().join("file");
        std::fs::write(&file, "").expect("written");
        let error = subscriber(&file.join("log"), &Config::default().log, None)
            .err()
            .expect("no log");
        assert!(
            error.to_string().starts_with("running without a log: "),
            "{error}"
        );
    }

    #[test]
    fn a_link_in_place_of_the_file_is_not_followed() {
        let home = tempfile::tempdir().expect("a directory");
        let target = home.path().join("target");
        std::fs::write(&target, "").expect("written");
        let directory = home.path().join("log");
        ensure_private_dir(&directory).expect("made");
        let link = path_of(&directory, today());
        std::os::unix::fs::symlink(&target, link).expect("linked");
        let opened = DailyFile::open(&directory, 7, None);
        assert!(opened.is_err());
        assert_eq!(target.metadata().expect("there").len(), 0);
    }
}
