//! The transcript: Claude Code's record of a session.
//!
//! The record is the client's own file, written while it is read here and cut wherever the client was killed. This
//! crate reads it, tolerantly and in bounded memory, and never writes it.

pub mod branches;
pub mod commands;
pub mod content;
pub mod denial;
pub mod digest;
pub mod ending;
pub mod facts;
pub mod human;
pub mod prompts;
pub mod prose;
pub mod queue;
pub mod record;
pub mod shell;
mod span;
pub mod steps;
pub mod tail;
pub mod talk;
pub mod todo;
pub mod trim;
pub mod usage;
pub mod version;
pub mod waiting;
pub mod words;
pub mod work;

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The id of one Claude Code conversation: a UUID, so nothing else can get into a path or an argv.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct SessionId(Uuid);

impl SessionId {
    /// Wraps a UUID that was made elsewhere.
    pub const fn new(id: Uuid) -> Self {
        Self(id)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for SessionId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self)
    }
}

/// A number of tokens.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Tokens(pub u64);
