//! The known effect of a trim of the session.

use std::time::Duration;

use pitstop_base::{clock::At, format::thousands};
use pitstop_transcript::{
    SessionId, Tokens,
    trim::{LevelFigure, TrimPlan, TrimSettings},
};

use crate::app::{effect::Effect, event::TimerId};

/// The known effect of a trim while the review is open.
#[derive(Clone, Debug, Default)]
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
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOffered {
    /// The agent keeps no transcripts.
    #[error("this agent keeps no transcript that could be trimmed")]
    Generic,
    /// The transcript is being read.
    #[error("the transcript is being read")]
    Reading,
    /// The transcript cannot be read, or holds nothing.
    #[error("{0}")]
    Unreadable(String),
    /// The session is so small that nothing need be removed.
    #[error("it is already below {}", thousands(.target.0))]
    Small {
        /// The number of tokens that the session is below.
        target: Tokens,
    },
    /// The strongest level does not remove enough.
    #[error(
        "without any tool output {} would be left, and it must be below {}",
        thousands(.least.0),
        thousands(.target.0)
    )]
    NoLevel {
        /// The number of tokens that a level must get below.
        target: Tokens,
        /// The number of tokens that the strongest level leaves.
        least: Tokens,
    },
}

/// What happens to the preview of a trim.
#[derive(Clone, Debug)]
pub enum SurveyEvent {
    /// A person, or a script, is shown what a trim would do.
    Wanted,
    /// The survey of this number has ended, with the plan of what each level would free.
    Planned(u64, Result<TrimPlan, String>),
    /// The transcript has grown: the earlier survey is out of date.
    Grown,
    /// The pause of this timer is over.
    PauseOver(u64),
    /// The agent went to another session: the earlier survey is of no use.
    Moved,
}

/// The facts by which a session is surveyed.
#[derive(Clone, Copy, Debug)]
pub(in crate::app) struct SurveyFacts {
    pub(in crate::app) session: SessionId,
    pub(in crate::app) settings: TrimSettings,
    /// A number that no survey and no timer has had yet.
    pub(in crate::app) number: u64,
    pub(in crate::app) now: At,
}

/// The shortest pause between two surveys.
const PAUSE: Duration = Duration::from_secs(1);

/// The ratio of the pause after a survey to the survey's time: surveys then cost a tenth of a processor.
const PAUSE_SHARE: u32 = 9;

impl Preview {
    /// Takes in an event. Returns the order that follows from it: for a survey, or for the pause after one.
    pub(in crate::app) fn on(&mut self, event: SurveyEvent, facts: &SurveyFacts) -> Option<Effect> {
        match event {
            SurveyEvent::Wanted => self.survey(facts),
            SurveyEvent::Planned(ask, plan) => {
                let (_, since) = self.asked.take_if(|(one, _)| *one == ask)?;
                self.found = Some(plan);
                self.pause = Some(facts.number);
                let pause = PAUSE.max(facts.now.since(since) * PAUSE_SHARE);
                Some(Effect::SetTimer(TimerId::Survey(facts.number), pause))
            }
            SurveyEvent::Grown => {
                self.stale = true;
                let waits = self.asked.is_some() || self.pause.is_some();
                (!waits).then(|| self.survey(facts)).flatten()
            }
            SurveyEvent::PauseOver(timer) => {
                self.pause.take_if(|one| *one == timer)?;
                self.stale.then(|| self.survey(facts)).flatten()
            }
            SurveyEvent::Moved => {
                *self = Self::default();
                self.survey(facts)
            }
        }
    }

    /// Has the session surveyed, unless that is under way.
    fn survey(&mut self, facts: &SurveyFacts) -> Option<Effect> {
        if self.asked.is_some() {
            return None;
        }
        self.settings = facts.settings;
        self.asked = Some((facts.number, facts.now));
        self.stale = false;
        self.pause = None;
        Some(Effect::SurveyTrim {
            ask: facts.number,
            session: facts.session,
            settings: facts.settings,
        })
    }

    /// Returns the number of the survey under way.
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
