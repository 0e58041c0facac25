//! The handoff: the message that the next session is given.
//!
//! This crate owns the facts that must survive ([`PreservedState`]) and the one message that they become ([`Handoff`]). All but
//! [`breakpoint::git`] is pure: the caller passes in the contents of git, the scratchpad and the transcript.

pub mod breakpoint;
pub mod check;
pub mod claims;
pub mod edits;
pub mod generate;
pub mod preserved;
pub mod quality;
pub mod scratchpad;
pub mod sections;
pub mod signal;
pub mod strategy;
pub mod summary;
pub mod work;

use std::fmt;

use pitstop_base::clean;
use pitstop_transcript::{Tokens, prompts::HANDOFF};

pub use check::{Check, check};
pub use generate::{Generator, IncludedFile, Sources, TemplateError};
pub use preserved::PreservedState;
pub use sections::{continuation, next_step};

/// The state of the turn from which the next session continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TurnStanding {
    /// The turn is over: the agent had finished, or was stopped by the human.
    #[default]
    Over,
    /// The turn is running, and something in it may be in progress.
    Running,
    /// The turn was ended by pitstop between two calls of tools. That made no part of it fail.
    CutByUs,
}

/// The first line of every handoff: it names the run, and its nonce proves that it arrived.
///
/// The nonce is random and new for every handoff, so no page or tool output can forge a delivery.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Marker {
    /// The name of the run.
    pub run: String,
    /// The number of the iteration that writes the handoff.
    pub iteration: u64,
    /// The short random number, in hexadecimal.
    pub nonce: String,
}

impl Marker {
    /// Parses the marker in the first line of a handoff, as [`fmt::Display`] wrote it.
    pub fn read(handoff: &str) -> Option<Self> {
        let rest = handoff.lines().next()?.strip_prefix(HANDOFF)?;
        let (rest, nonce) = rest.rsplit_once(" · ")?;
        let (run, iteration) = rest.rsplit_once(" · iteration ")?;
        Some(Self {
            run: run.to_owned(),
            iteration: iteration.parse().ok()?,
            nonce: nonce.to_owned(),
        })
    }

    /// Reports whether this text contains the marker.
    pub fn is_in(&self, text: &str) -> bool {
        !self.nonce.is_empty() && text.contains(&self.to_string())
    }
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            run,
            iteration,
            nonce,
        } = self;
        write!(f, "{HANDOFF}{run} · iteration {iteration} · {nonce}")
    }
}

/// The finished message, exactly as it is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handoff {
    /// The marker in its first line.
    pub marker: Marker,
    /// The whole message, the marker line included.
    pub text: String,
    /// The parts that were cut to keep within the size, in the words of the message's own list.
    pub left_out: Vec<String>,
    /// The warnings for a reader before it is sent: no objective, no next step, over the size.
    pub warnings: Vec<String>,
}

impl Handoff {
    /// Returns its size in bytes.
    pub const fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Returns its estimated size in tokens.
    pub fn tokens(&self) -> Tokens {
        tokens_of(&self.text)
    }

    /// Returns the message below the marker line, which a person may edit.
    pub fn body(&self) -> &str {
        self.text.split_once('\n').map_or("", |(_, body)| body)
    }

    /// Returns the same handoff with its body replaced by a person's own words. The marker line stays, because
    /// without it the delivery could not be proved; the size limit does not apply to a person.
    #[must_use]
    pub fn with_body(&self, body: &str) -> Self {
        let text = sendable(&format!("{}\n{body}", self.marker));
        Self {
            marker: self.marker.clone(),
            text,
            left_out: self.left_out.clone(),
            warnings: if body.trim().is_empty() {
                vec!["the handoff is empty".to_owned()]
            } else {
                Vec::new()
            },
        }
    }
}

/// Returns the estimated size of a message in tokens, at 4 characters per token.
pub fn tokens_of(text: &str) -> Tokens {
    Tokens(text.chars().count().div_ceil(4) as u64)
}

/// Returns the text as it may be sent to an agent: [`clean::typed`], without blank space at the end (clients trim it, and the
/// delivery is compared byte for byte).
pub fn sendable(text: &str) -> String {
    let mut text = clean::typed(text);
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
pub(crate) mod tests {
    mod leaks;

    use pitstop_transcript::human::Said;

    use super::*;

    pub(crate) fn marker() -> Marker {
        Marker {
            run: "r1".to_owned(),
            iteration: 1,
            nonce: "0a1b2c3d".to_owned(),
        }
    }

    pub(crate) fn said(text: &str) -> Said {
        Said {
            text: text.to_owned(),
            at: None,
        }
    }

    #[test]
    fn sendable_removes_what_could_end_a_paste_and_nothing_else() {
        let text = "a\tb\n\u{1b}[201~c\u{1b}[\u{1b}[201~201~d 'q' \"q\" 🚀👩‍👩‍👧 漢字\u{9b}201~\u{7f}";
        assert_eq!(sendable(text), "a\tb\ncd 'q' \"q\" 🚀👩‍👩‍👧 漢字201~");
    }

    #[test]
    fn a_marker_reads_back_from_its_handoff() {
        let text = format!("{}\n\nbody", marker());
        assert_eq!(Marker::read(&text), Some(marker()));
        assert_eq!(Marker::read("body"), None);
        assert_eq!(Marker::read(""), None);
    }

    #[test]
    fn an_edit_keeps_the_marker_line() {
        let handoff = Handoff {
            marker: marker(),
            text: format!("{}\n\nbody", marker()),
            left_out: vec![],
            warnings: vec![],
        };
        assert_eq!(handoff.body(), "\nbody");
        let edited = handoff.with_body("\nmine\n");
        assert_eq!(edited.text, format!("{}\n\nmine", marker()));
        assert!(edited.marker.is_in(&edited.text));
    }

    #[test]
    fn another_nonce_is_another_handoff() {
        let other = Marker {
            nonce: "ffffffff".to_owned(),
            ..marker()
        };
        assert!(!other.is_in(&format!("{}\n", marker())));
    }

    proptest::proptest! {
        #[test]
        fn sendable_text_never_ends_a_paste(text in "(\u{1b}|\\[|2|0|1|~|a|\n){0,60}") {
            let clean = sendable(&text);
            assert!(!clean.contains('\u{1b}'));
            assert_eq!(sendable(&clean), clean);
        }
    }
}
