//! The second way of a reboot: what a trim of the session would win, and whether it is offered.
//!
//! While a review is open the transcript is surveyed, and again when it has grown, with pauses in proportion to
//! what a survey costs. The way that a person chose never changes by itself: if a later survey says that a trim
//! is not enough, the approval is refused and says why.

use std::{fmt, time::Duration};

use crate::{
    clock::At,
    guard::threshold::Threshold,
    lineage::{Cause, Iteration, TrimRecord, Way, journal::Step},
    transcript::{
        SessionId, Tokens,
        trim::{LevelFigure, TrimPlan, TrimSettings},
    },
};

use super::{
    effect::Effect,
    event::TimerId,
    model::Model,
    reboot::{Attempt, Kind},
};

/// The shortest pause between two surveys.
const PAUSE: Duration = Duration::from_secs(1);

/// How many times as long as a survey takes the pause behind it is: surveys then cost a tenth of a processor.
const PAUSE_SHARE: u32 = 9;

/// What is known of a trim while the review is open.
#[derive(Clone, Debug)]
pub struct Preview {
    /// How it was measured the last time it was asked.
    pub settings: TrimSettings,
    /// What the last survey said.
    found: Option<Result<TrimPlan, String>>,
    /// The survey under way, and since when.
    asked: Option<(u64, At)>,
    /// The transcript has grown since.
    stale: bool,
    /// The timer that ends the pause after a survey.
    pause: Option<u64>,
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

/// What a trim would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The level with what it removes and leaves.
    pub figure: LevelFigure,
    /// How many tool responses there are in the context window.
    pub of: usize,
    /// Whether the tokens before are an estimate too.
    pub estimated: bool,
}

/// Why a trim is not offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotOffered {
    /// The agent keeps no transcripts.
    Generic,
    /// The transcript is being read.
    Reading,
    /// The transcript cannot be read, or holds nothing.
    Unreadable(String),
    /// Nothing need be removed.
    Small {
        /// What the session is below.
        target: Tokens,
    },
    /// No level is enough.
    NoLevel {
        /// What a level must get below.
        target: Tokens,
        /// What the strongest one leaves.
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
                write!(f, "it is already below {}", thousands(*target))
            }
            Self::NoLevel { target, least } => write!(
                f,
                "without any tool output {} would be left, and it must be below {}",
                thousands(*least),
                thousands(*target)
            ),
        }
    }
}

/// Tokens in thousands, for sentences.
#[must_use]
pub fn thousands(Tokens(count): Tokens) -> String {
    match count {
        0..1_000 => count.to_string(),
        _ => format!("{}k", count.saturating_add(500) / 1_000),
    }
}

/// How a trim is measured now: against the compact line that the gauge shows.
fn settings(model: &Model) -> TrimSettings {
    let lines = model.guard.assess(Tokens(0)).lines;
    TrimSettings {
        compact_line: lines.at(Threshold::Compact),
        max_recent_messages: model.config.context.max_recent_messages,
    }
}

/// Has the session surveyed for the review, unless that is under way.
pub fn survey(model: &mut Model) -> Vec<Effect> {
    let (settings, session, now) = (settings(model), model.session, model.now);
    let generic = model.is_generic();
    let ask = model.next_epoch();
    let Some(preview) = open_preview(model).filter(|one| one.asked.is_none() && !generic) else {
        return Vec::new();
    };
    preview.settings = settings;
    preview.asked = Some((ask, now));
    preview.stale = false;
    preview.pause = None;
    vec![Effect::SurveyTrim {
        ask,
        session,
        settings,
    }]
}

/// What each level would win is known.
pub fn planned(model: &mut Model, ask: u64, plan: Result<TrimPlan, String>) -> Vec<Effect> {
    let now = model.now;
    let Some(preview) = open_preview(model) else {
        return Vec::new();
    };
    let Some((_, since)) = preview.asked.take_if(|(one, _)| *one == ask) else {
        return Vec::new();
    };
    preview.found = Some(plan);
    let pause = PAUSE.max(now.since(since) * PAUSE_SHARE);
    let timer = model.next_epoch();
    if let Some(preview) = open_preview(model) {
        preview.pause = Some(timer);
    }
    vec![Effect::SetTimer(TimerId::Survey(timer), pause)]
}

/// The transcript has grown: what was surveyed is out of date.
pub fn grown(model: &mut Model) -> Vec<Effect> {
    let Some(preview) = open_preview(model) else {
        return Vec::new();
    };
    let waits = preview.asked.is_some() || preview.pause.is_some();
    preview.stale = true;
    if waits { Vec::new() } else { survey(model) }
}

/// The pause after a survey is over.
pub fn pause_over(model: &mut Model, timer: u64) -> Vec<Effect> {
    let Some(preview) = open_preview(model) else {
        return Vec::new();
    };
    if preview.pause.take_if(|one| *one == timer).is_none() || !preview.stale {
        return Vec::new();
    }
    survey(model)
}

/// The agent went to another session: what was surveyed is of no use.
pub fn moved(model: &mut Model) -> Vec<Effect> {
    let Some(preview) = open_preview(model) else {
        return Vec::new();
    };
    *preview = Preview::default();
    survey(model)
}

/// The preview of a reboot that has not been approved.
fn open_preview(model: &mut Model) -> Option<&mut Preview> {
    let attempt = model.reboot.attempt.as_mut()?;
    let open = matches!(attempt.step, Step::Armed | Step::Drafting | Step::Review);
    (open && matches!(attempt.kind, Kind::Fresh | Kind::Trim)).then_some(&mut attempt.preview)
}

/// What a trim would do, or why it is not offered.
pub fn offer(model: &Model) -> Result<Offer, NotOffered> {
    if model.is_generic() {
        return Err(NotOffered::Generic);
    }
    let attempt = model.reboot.attempt.as_ref().ok_or(NotOffered::Reading)?;
    attempt.preview.offer()
}

impl Preview {
    /// The number of the survey under way.
    #[must_use]
    pub fn asked(&self) -> Option<u64> {
        self.asked.map(|(ask, _)| ask)
    }

    fn offer(&self) -> Result<Offer, NotOffered> {
        let plan = match &self.found {
            None => return Err(NotOffered::Reading),
            Some(Err(why)) => return Err(NotOffered::Unreadable(why.clone())),
            Some(Ok(plan)) => plan,
        };
        let target = self.settings.target();
        match plan.chosen() {
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

/// Takes the other way, or back. A trim may be chosen before it is known whether it is offered: its approval waits.
pub fn toggle(model: &mut Model) -> Result<Vec<Effect>, String> {
    let way = match model.reboot.attempt.as_ref().map(|one| one.kind) {
        Some(Kind::Trim) => Way::Fresh,
        _ => Way::Trim,
    };
    choose(model, way)
}

/// Takes this way.
pub fn choose(model: &mut Model, way: Way) -> Result<Vec<Effect>, String> {
    if way == Way::Trim {
        match offer(model) {
            Ok(_) | Err(NotOffered::Reading) => {}
            Err(why) => return Err(format!("trim is not offered: {why}")),
        }
    }
    let Some(attempt) = &mut model.reboot.attempt else {
        return Err("no reboot is under review".to_owned());
    };
    match attempt.step {
        Step::Armed | Step::Drafting | Step::Review => attempt.kind = way.into(),
        step => return Err(format!("the way is settled: {step}")),
    }
    Ok(Vec::new())
}

/// Why a reboot cannot be approved the way it stands.
pub fn refusal(model: &Model) -> Option<String> {
    let attempt = model.reboot.attempt.as_ref()?;
    let pending = matches!(attempt.step, Step::Armed | Step::Drafting | Step::Review);
    if attempt.kind != Kind::Trim || !pending {
        return None;
    }
    match offer(model) {
        Ok(_) => None,
        Err(NotOffered::Reading) => {
            Some("the transcript is still being read: once more".to_owned())
        }
        Err(why) => Some(format!("no trim: {why}; t takes the handoff instead")),
    }
}

impl From<Way> for Kind {
    fn from(way: Way) -> Self {
        match way {
            Way::Fresh => Self::Fresh,
            Way::Trim => Self::Trim,
        }
    }
}

/// Orders the copy, once the old agent is gone; nothing if that was done.
pub(super) fn order_copy(model: &mut Model) -> Vec<Effect> {
    let ask = model.next_epoch();
    let Some(attempt) = &mut model.reboot.attempt else {
        return Vec::new();
    };
    if attempt.copying.is_some() {
        return Vec::new();
    }
    attempt.copying = Some(ask);
    vec![Effect::TrimTranscript {
        ask,
        from: attempt.old,
        to: attempt.new,
        settings: attempt.preview.settings,
    }]
}

/// The copy was made, or could not be.
pub fn copied(model: &mut Model, ask: u64, made: Result<TrimRecord, String>) -> Vec<Effect> {
    let Some(attempt) = &mut model.reboot.attempt else {
        return Vec::new();
    };
    if attempt.copying != Some(ask) || attempt.step != Step::Starting {
        return Vec::new();
    }
    match made {
        Ok(record) => attempt.trimmed = Some(record),
        Err(why) => attempt.failed = Some(format!("the trimmed copy could not be made: {why}")),
    }
    super::reboot::advance(model)
}

/// The client runs in this session: what proves that it took a trimmed copy.
pub fn session_seen(model: &mut Model, session: SessionId) {
    if let Some(attempt) = &mut model.reboot.attempt
        && attempt.kind == Kind::Trim
        && attempt.has_begun()
        && session == model.session
    {
        attempt.proven = true;
    }
}

impl Attempt {
    /// What the trim has removed, or will have by the latest survey.
    pub(super) fn trim_record(&self) -> Option<TrimRecord> {
        if self.kind != Kind::Trim || self.trimmed.is_some() {
            return self.trimmed;
        }
        let Offer { figure, of, .. } = self.preview.offer().ok()?;
        Some(TrimRecord {
            level: figure.percent,
            responses: figure.responses,
            of,
            tokens_before: figure.tokens_before,
            tokens_after: figure.tokens_after,
        })
    }

    /// Whether the trimmed copy is being written.
    #[must_use]
    pub fn is_copying(&self) -> bool {
        self.kind == Kind::Trim && self.step == Step::Starting && self.trimmed.is_none()
    }
}

/// Tokens that a fresh session would begin with: its base load and the handoff.
#[must_use]
pub fn fresh_tokens(model: &Model) -> Option<Tokens> {
    let base = fresh_load(model)?;
    let handoff = model.handoff.current().tokens();
    Some(Tokens(base.0.saturating_add(handoff.0)))
}

/// What a fresh session carries before any work, as the gauge shows it: by this iteration's first figure, unless
/// this one was resumed.
#[must_use]
pub fn base_load(model: &Model) -> Option<Tokens> {
    match model.current_iteration() {
        Some(one) if told(one).is_none() => fresh_load(model),
        _ => model.guard.forecast().base(),
    }
}

/// The base load of a fresh session, by the newest iteration that was begun as one: a resumed one begins with what
/// was said before.
pub(super) fn fresh_load(model: &Model) -> Option<Tokens> {
    let load = |one: &Iteration| {
        let birth = one.tokens_at_birth?;
        Some(Tokens(birth.0.saturating_sub(told(one)?.0)))
    };
    let iterations = model.lineage.iterations();
    iterations.iter().rev().find_map(load)
}

/// The size of the handoff that an iteration was begun with; none if its session is not known to be a fresh one.
fn told(one: &Iteration) -> Option<Tokens> {
    match (&one.reboot, one.cause) {
        (_, Some(Cause::Undo | Cause::Recovery | Cause::AgentExit)) => None,
        (Some(record), _) => (record.way == Way::Fresh).then_some(record.handoff_tokens),
        (None, cause) => cause.is_none().then_some(Tokens(0)),
    }
}
