//! The numbers of iterations and the names of runs.

use std::{fmt, num::NonZeroU64, str::FromStr};

use chrono::{DateTime, NaiveDateTime, Utc};
use serde::{Deserialize, Serialize};

use super::LineageError;

/// The number of one life of the pane within a run, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IterationId(NonZeroU64);

impl Default for IterationId {
    fn default() -> Self {
        Self::FIRST
    }
}

impl IterationId {
    /// The first iteration of every run.
    pub const FIRST: Self = Self(NonZeroU64::MIN);

    /// Wraps a number that was read from elsewhere; returns `None` for 0, which numbers no iteration.
    pub const fn new(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// Returns the bare number, from 1.
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// Returns the iteration after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for IterationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The format of the date and time in a [`RunId`].
const RUN_ID_TIME: &str = "%Y%m%d-%H%M%S";

/// The name of one run of the supervisor: it sorts by the start of the run and is safe as a file name.
///
/// It reads `20261121-075144-3fa94c`: UTC to the second, then 24 random bits, so that two machines
/// which share a database and start in the same second still differ.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

impl RunId {
    /// Makes the name of a run that started at `started`; `random` distinguishes it from others of the same second.
    pub fn new(started: DateTime<Utc>, random: [u8; 3]) -> Self {
        let [a, b, c] = random;
        Self(format!(
            "{}-{a:02x}{b:02x}{c:02x}",
            started.format(RUN_ID_TIME)
        ))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the time when the run began, to the second.
    pub fn started(&self) -> DateTime<Utc> {
        let time = self.0.rsplit_once('-').map_or("", |(time, _)| time);
        NaiveDateTime::parse_from_str(time, RUN_ID_TIME)
            .unwrap_or_default()
            .and_utc()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RunId {
    type Err = LineageError;

    /// Accepts only what [`RunId::new`] writes: the text becomes a directory name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let well_formed = text.rsplit_once('-').is_some_and(|(time, random)| {
            NaiveDateTime::parse_from_str(time, RUN_ID_TIME)
                .is_ok_and(|parsed| parsed.format(RUN_ID_TIME).to_string() == time)
                && random.len() == 6
                && random
                    .bytes()
                    .all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
        });
        if well_formed {
            Ok(Self(text.to_owned()))
        } else {
            Err(LineageError::RunId(text.chars().take(64).collect()))
        }
    }
}

impl TryFrom<String> for RunId {
    type Error = LineageError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(run: RunId) -> Self {
        run.0
    }
}
