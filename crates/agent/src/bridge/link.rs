//! The state of the bridge: in force, or not and for which reason.
//!
//! ```text
//!   off (known before the start)
//!   awaited ──a word of the session──▶ in force ◀──a word──▶ lost (silent)
//!      └──the time is over, or the client is too old──▶ lost ──a word──▶ in force
//! ```

use std::{fmt, time::Duration};

use super::{
    FIRST_VERSION, PROTOCOL,
    message::{Category, UnsentPrompt, Usage},
};
use pitstop_base::clock::At;
use pitstop_transcript::{SessionId, Tokens, version::is_at_least};

/// The longest silence of a bridge in force: it polls every ten seconds.
pub const SILENCE: Duration = Duration::from_secs(45);

/// The reason why the bridge is not in force.
#[derive(Clone, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Absence {
    /// The agent is not Claude Code.
    OtherAgent,
    /// The user's configuration switches it off.
    SwitchedOff,
    /// A flag of the user keeps mods out.
    Flag(&'static str),
    /// Settings switch hooks off, and mods with them: the name of the settings.
    HooksOff(&'static str),
    /// The client does not run mods yet: its version.
    TooOld(String),
    /// The mods could not be written, for this reason.
    NotWritten(String),
    /// The mods speak another protocol.
    OtherProtocol(u32),
    /// It has not reported since the session began.
    NoHello,
    /// It has ceased to report.
    Silent,
}

impl Absence {
    /// Returns its name in `snake_case`, for scripts.
    pub fn word(&self) -> &'static str {
        self.into()
    }
}

/// Returns the absence if a client of this version is too old for mods. A version that is not known may be new enough: an old
/// client ignores the flag (measured with 2.1.197).
pub fn too_old(version: Option<&str>) -> Option<Absence> {
    let is_old = !is_at_least(version, FIRST_VERSION);
    version
        .filter(|_| is_old)
        .map(|version| Absence::TooOld(version.to_owned()))
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherAgent => f.write_str("this agent runs no mods"),
            Self::SwitchedOff => f.write_str("[agent] bridge is false"),
            Self::Flag(flag) => write!(f, "{flag} keeps mods out"),
            Self::HooksOff(whose) => write!(f, "{whose} switch hooks off, and mods with them"),
            Self::TooOld(version) => {
                let [major, minor, patch] = FIRST_VERSION;
                write!(
                    f,
                    "the client is {version}, mods come with {major}.{minor}.{patch}"
                )
            }
            Self::NotWritten(why) => write!(f, "the mods cannot be written: {why}"),
            Self::OtherProtocol(found) => {
                write!(f, "it speaks protocol {found}, this pitstop {PROTOCOL}")
            }
            Self::NoHello => {
                f.write_str("it has not reported: are mods forbidden by managed settings?")
            }
            Self::Silent => f.write_str("it has ceased to report"),
        }
    }
}

/// The state of the client's side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// The client has not been started.
    #[default]
    None,
    /// The client was started with it.
    Awaited,
    /// It reports.
    InForce {
        /// The client's version, by its hello.
        client: String,
        /// The time of its last report.
        reported: At,
    },
    /// It does not report.
    Absent(Absence),
}

impl Link {
    /// Reports whether the client's side reports.
    pub const fn is_in_force(&self) -> bool {
        matches!(self, Self::InForce { .. })
    }

    /// Reports whether the client was started with the mods, whatever became of them.
    pub const fn loads_mods(&self) -> bool {
        match self {
            Self::None => false,
            Self::Awaited | Self::InForce { .. } => true,
            Self::Absent(why) => matches!(
                why,
                Absence::NoHello | Absence::Silent | Absence::OtherProtocol(_)
            ),
        }
    }

    /// Notes a report for our session; returns true if the bridge came into force by it.
    pub fn note_report(&mut self, client: &str, at: At) -> bool {
        let before = std::mem::replace(
            self,
            Self::InForce {
                client: client.to_owned(),
                reported: at,
            },
        );
        !before.is_in_force()
    }

    /// Gives up on a bridge that has not reported until now; returns true if it did.
    pub fn give_up(&mut self, why: Absence) -> bool {
        let awaited = *self == Self::Awaited;
        if awaited {
            *self = Self::Absent(why);
        }
        awaited
    }

    /// Checks whether it has been silent for too long; returns true if it is lost by that.
    pub fn check_silence(&mut self, at: At) -> bool {
        let Self::InForce { reported, .. } = self else {
            return false;
        };
        let lost = at.since(*reported) > SILENCE;
        if lost {
            *self = Self::Absent(Absence::Silent);
        }
        lost
    }

    /// Returns the word for it in `status --json`.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::None | Self::Awaited => "awaited",
            Self::InForce { .. } => "in_force",
            Self::Absent(_) => "absent",
        }
    }
}

/// The last reports of the bridge about one session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reported {
    /// The session.
    pub session: Option<SessionId>,
    /// The prompt box.
    pub draft: Option<UnsentPrompt>,
    /// True if a turn runs, once that is known.
    pub turn: Option<bool>,
    /// The number of turns whose end it has reported.
    pub turns_ended: u64,
    /// The number of these that a figure has followed.
    pub turns_measured: u64,
    /// The submitter of the last prompt.
    pub origin: Option<String>,
    /// Its last usage that named categories.
    pub usage: Option<Usage>,
}

impl Reported {
    /// Returns the tokens in the window before a word was said: all in use but the messages.
    pub fn base_tokens(&self) -> Option<Tokens> {
        let rows = &self.usage.as_ref()?.categories;
        let base = |row: &&Category| row.kind == super::CategoryKind::Used && row.name != MESSAGES;
        (!rows.is_empty()).then(|| {
            let sum = rows.iter().filter(base).map(|row| row.tokens.0);
            Tokens(sum.fold(0, u64::saturating_add))
        })
    }
}

/// The client's name for the row of the conversation.
const MESSAGES: &str = "Messages";

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> At {
        At {
            since_start: Duration::from_secs(seconds),
            asleep: Duration::ZERO,
            wall: chrono::DateTime::from_timestamp(1_800_000_000, 0).expect("a valid moment"),
            zone: pitstop_base::clock::UTC,
        }
    }

    #[test]
    fn it_is_in_force_from_its_first_word_until_it_is_silent_for_long() {
        let mut link = Link::Awaited;
        assert!(link.note_report("2.1.330", at(0)));
        assert!(!link.note_report("2.1.330", at(10)));
        assert!(!link.check_silence(at(55)));
        assert!(link.check_silence(at(56)));
        assert_eq!(link, Link::Absent(Absence::Silent));
        assert!(!link.check_silence(at(99)));
        assert!(link.loads_mods(), "it may be reading them again");
        assert!(link.note_report("2.1.330", at(100)), "it may come back");
    }

    #[test]
    fn what_is_given_up_may_still_come_and_what_is_in_force_is_not_given_up() {
        let mut link = Link::Awaited;
        assert!(link.give_up(Absence::NoHello));
        assert!(!link.give_up(Absence::TooOld("2.1.197".into())));
        assert!(link.loads_mods() && !Link::Absent(Absence::SwitchedOff).loads_mods());
        assert!(link.note_report("2.1.330", at(0)));
        assert!(!link.give_up(Absence::NoHello));
        assert!(link.is_in_force());
    }

    #[test]
    fn each_absence_says_why_in_words() {
        let old = Absence::TooOld("2.1.197".into());
        assert_eq!(
            old.to_string(),
            "the client is 2.1.197, mods come with 2.1.287"
        );
        assert_eq!(
            Absence::Flag("--safe-mode").to_string(),
            "--safe-mode keeps mods out"
        );
    }
}
