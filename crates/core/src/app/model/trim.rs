//! The known effect of a trim of the session.

use std::fmt;

use pitstop_base::{clock::At, format::thousands};
use pitstop_transcript::{
    Tokens,
    trim::{LevelFigure, TrimPlan, TrimSettings},
};

/// The known effect of a trim while the review is open.
#[derive(Clone, Debug)]
pub struct Preview {
    /// The settings that the last requested survey measured by.
    pub settings: TrimSettings,
    /// The result of the last survey.
    pub(in crate::app) found: Option<Result<TrimPlan, String>>,
    /// The number of the survey under way, and the time at which it began.
    pub(in crate::app) asked: Option<(u64, At)>,
    /// True if the transcript has grown since.
    pub(in crate::app) stale: bool,
    /// The epoch of the timer that ends the pause after a survey.
    pub(in crate::app) pause: Option<u64>,
}

impl Default for Preview {
    fn default() -> Self {
        Self {
            settings: TrimSettings {
                compact_line: Tokens(0),
                max_recent_messages: 0,
            },
            found: None,
            asked: None,
            stale: false,
            pause: None,
        }
    }
}

/// The effect that a trim would have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The level with the figures of what it removes and leaves.
    pub figure: LevelFigure,
    /// The number of tool responses in the context window.
    pub of: usize,
    /// True if the number of tokens before the trim is an estimate too.
    pub estimated: bool,
}

/// The reason why a trim is not offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotOffered {
    /// The agent keeps no transcripts.
    Generic,
    /// The transcript is being read.
    Reading,
    /// The transcript cannot be read, or holds nothing.
    Unreadable(String),
    /// The session is so small that nothing need be removed.
    Small {
        /// The number of tokens that the session is below.
        target: Tokens,
    },
    /// The strongest level does not remove enough.
    NoLevel {
        /// The number of tokens that a level must get below.
        target: Tokens,
        /// The number of tokens that the strongest level leaves.
        least: Tokens,
    },
}

impl fmt::Display for NotOffered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Generic => f.write_str("this agent keeps no transcript that could be trimmed"),
            Self::Reading => f.write_str("the transcript is being read"),
            Self::Unreadable(why) => f.write_str(why),
            Self::Small { target } => {
                write!(f, "it is already below {}", thousands(target.0))
            }
            Self::NoLevel { target, least } => write!(
                f,
                "without any tool output {} would be left, and it must be below {}",
                thousands(least.0),
                thousands(target.0)
            ),
        }
    }
}

impl Preview {
    /// Returns the number of the survey under way.
    #[must_use]
    pub fn asked(&self) -> Option<u64> {
        self.asked.map(|(ask, _)| ask)
    }

    pub(in crate::app) fn offer(&self) -> Result<Offer, NotOffered> {
        let plan = match &self.found {
            None => return Err(NotOffered::Reading),
            Some(Err(why)) => return Err(NotOffered::Unreadable(why.clone())),
            Some(Ok(plan)) => plan,
        };
        let target = self.settings.target();
        match plan.chosen_figure() {
            Some(figure) if figure.responses > 0 => Ok(Offer {
                figure,
                of: plan.responses(),
                estimated: plan.estimated,
            }),
            Some(_) => Err(NotOffered::Small { target }),
            None => {
                let strongest = plan.levels.last();
                let least = strongest.map_or(Tokens(0), |level| level.tokens_after);
                Err(NotOffered::NoLevel { target, least })
            }
        }
    }
}
