//! The reboot journal: every step is written before it is done, so that a supervisor which finds
//! an unfinished entry knows what may have happened and can finish it or roll it back.
//!
//! ```text
//!             nothing is lost yet: roll back          the human approved: finish
//! ┌────────────────────────────────────────────┐ ┌───────────────────────────────────────────┐
//!  armed → drafting → review → preparing → waiting ► ending → starting → delivering → verifying
//!                                                     │         └────────────┬──────────┘
//!                                          start, give the handoff   is the marker in the new
//!                                                                    transcript? yes: resume it
//!                                                                    no: start, give the handoff
//!  warming → resume the new session       done, failed → nothing       rolling_back → roll back
//! ```
//!
//! Four rules take precedence over the steps:
//! - A marker seen in the new transcript proves the delivery, whatever step was written last (a
//!   journal kept in memory by a full disk lags behind): that session is resumed, nothing is sent.
//! - A new session that was given another prompt and not the handoff has gone on without it: it is
//!   resumed as it is, because what was said in it would be in no session that goes on.
//! - A transcript that may hold the marker but cannot be read sends nothing: the old session is
//!   resumed, because giving a handoff twice is worse than asking the human once more.
//! - Agents that outlived the supervisor hang on a dead terminal: they are ended before anything
//!   else, so that no session ever has two live processes.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::lineage::{Cause, IterationId, RunId, TrimRecord, Way, moment};
use pitstop_base::format;
use pitstop_transcript::SessionId;

pub use super::reboot::Step;

/// One reboot as the journal records it: the last step written, and everything that is needed to
/// finish it or to roll it back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// The id of this reboot; each new step replaces the one before under the same id.
    pub reboot_id: Uuid,
    /// The run it happens in.
    pub run: RunId,
    /// The iteration that it ends.
    pub iteration: IterationId,
    /// The step that is about to be done.
    pub step: Step,
    /// The way in which the context is handed over.
    pub way: Way,
    /// The session that ends, where the agent has sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_session: Option<SessionId>,
    /// The session that begins, once its id is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_session: Option<SessionId>,
    /// The random part of the handoff's marker line: found in a transcript, it proves delivery.
    pub nonce: String,
    /// The whole handoff, as approved.
    pub handoff: String,
    /// The record of what a trim removes: as planned, and once the copy exists as it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<TrimRecord>,
    /// The cause of the reboot.
    pub cause: Cause,
    /// The time when this step was written.
    #[serde(with = "moment")]
    pub at: DateTime<Utc>,
    /// The outcome, once it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

/// The evidence about the handoff in the new session's transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// It holds the marker: the handoff arrived.
    Seen,
    /// It was read to its end and does not hold it.
    Absent,
    /// It was read to its end, and holds another prompt in its place: the session has gone on without the handoff.
    PassedOver,
    /// There is no transcript under the new id.
    NoTranscript,
    /// It is there, or may be, and could not be read.
    Unknown,
}

/// The facts that a starting supervisor found out about an unfinished reboot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// True if the old session has something to resume: the client keeps no transcript before the first prompt,
    /// and refuses to resume a session without one.
    pub old_resumable: bool,
    /// The evidence in the new transcript.
    pub marker: Marker,
}

/// The action to take about an unfinished reboot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Does nothing: the reboot was over.
    Nothing,
    /// Resumes the old session; the handoff text is kept, so that the review can be opened again.
    RollBack {
        /// The session to resume; none where there is nothing to resume: the agent is started afresh.
        resume: Option<SessionId>,
    },
    /// Starts a new session and gives it the handoff.
    FinishDeliver {
        /// The id to start it under; if none, a fresh one is chosen, because the client refuses an
        /// id that already has a transcript.
        session: Option<SessionId>,
    },
    /// Resumes the new session: the handoff (or the trimmed history) is already there.
    FinishResume {
        /// The session to resume.
        session: SessionId,
    },
}

/// The decision, with the sentence to show the human.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The action to take.
    pub recovery: Recovery,
    /// One sentence: the step that the reboot was in, and the action taken.
    pub sentence: String,
}

/// Decides what to do about `entry`, which was found unfinished, in the light of `evidence`.
pub fn recover(entry: &JournalEntry, evidence: Evidence) -> Plan {
    let recovery = decide(entry, evidence);
    Plan {
        sentence: sentence(entry, evidence.marker, &recovery),
        recovery,
    }
}

fn decide(entry: &JournalEntry, evidence: Evidence) -> Recovery {
    let marker = evidence.marker;
    let roll_back = Recovery::RollBack {
        resume: entry.old_session.filter(|_| evidence.old_resumable),
    };
    if entry.step.is_final() {
        return Recovery::Nothing;
    }
    if let (Some(session), true) = (entry.new_session, arrived(entry.way, marker)) {
        // A roll-back that was under way was decided by the human: it is carried on.
        if entry.step != Step::RollingBack && !before_approval(entry, marker) {
            return Recovery::FinishResume { session };
        }
    }
    match entry.step {
        Step::Armed
        | Step::Drafting
        | Step::Review
        | Step::Preparing
        | Step::Waiting
        | Step::RollingBack => roll_back,
        Step::Ending | Step::Starting | Step::Delivering | Step::Verifying => {
            finish(entry, marker).unwrap_or(roll_back)
        }
        // The handoff had arrived; but if the client had not written it when it died, it must be given again.
        Step::Warming => match (entry.new_session, marker) {
            (Some(session), Marker::Unknown) => Recovery::FinishResume { session },
            _ => finish(entry, marker).unwrap_or(roll_back),
        },
        Step::Done | Step::Failed => Recovery::Nothing,
    }
}

/// Reports whether the new session has what it needs to carry on, or has gone on without it.
const fn arrived(way: Way, marker: Marker) -> bool {
    match way {
        Way::Fresh => matches!(marker, Marker::Seen | Marker::PassedOver),
        Way::InPlace | Way::OnTheFly => matches!(marker, Marker::Seen),
        // A trimmed copy is complete once it exists: it is renamed into place whole.
        Way::Trim => matches!(marker, Marker::Seen | Marker::Absent),
    }
}

/// Reports whether a trim is not approved yet: its copy may be written for the preview, so it proves nothing.
const fn before_approval(entry: &JournalEntry, marker: Marker) -> bool {
    matches!(entry.way, Way::Trim)
        && !matches!(marker, Marker::Seen)
        && matches!(
            entry.step,
            Step::Armed | Step::Drafting | Step::Review | Step::Preparing | Step::Waiting
        )
}

/// Returns the way to finish an approved reboot whose handoff was not seen to arrive; `None`: roll it back.
fn finish(entry: &JournalEntry, marker: Marker) -> Option<Recovery> {
    match entry.way {
        // The conversation was not replaced: its session continues as it was.
        Way::InPlace | Way::OnTheFly if marker != Marker::Seen => return None,
        Way::Fresh | Way::InPlace | Way::OnTheFly => {}
        // Without the trimmed copy there is nothing to resume under the new id.
        Way::Trim => return None,
    }
    let deliver = |session| Some(Recovery::FinishDeliver { session });
    let Some(session) = entry.new_session else {
        // The agent has no sessions: what the dead agent knew was lost with it.
        return deliver(None);
    };
    match marker {
        Marker::Seen | Marker::PassedOver => Some(Recovery::FinishResume { session }),
        Marker::NoTranscript => deliver(Some(session)),
        Marker::Absent => deliver(None),
        // Nothing can have been given before the start, whether the transcript is readable or not.
        Marker::Unknown if entry.step == Step::Ending => deliver(None),
        Marker::Unknown => None,
    }
}

fn sentence(entry: &JournalEntry, marker: Marker, recovery: &Recovery) -> String {
    let stood = match entry.step {
        Step::Armed => "had been asked for",
        Step::Drafting => "was drafting its handoff",
        Step::Review => "was under review",
        Step::Preparing => "was preparing the new session",
        Step::Waiting => "was waiting for a safe moment",
        Step::Ending => "was ending the old session",
        Step::Starting if entry.way == Way::Trim => "was trimming the session",
        Step::Starting => "was starting the new session",
        Step::Delivering if matches!(entry.way, Way::InPlace | Way::OnTheFly) => {
            "was replacing the conversation"
        }
        Step::Delivering => "was delivering the handoff",
        Step::Verifying if entry.way == Way::Trim => "was resuming the trimmed session",
        Step::Verifying => "was waiting for proof of the delivery",
        Step::Warming if entry.way == Way::Trim => "had resumed the trimmed session",
        Step::Warming => "had delivered the handoff",
        Step::RollingBack => "was being taken back",
        Step::Done => "was finished",
        Step::Failed => "had failed and was closed",
    };
    let done = match recovery {
        Recovery::Nothing => "nothing is left to do".to_owned(),
        Recovery::RollBack { resume: Some(old) } => {
            format!(
                "the old session {} is resumed and the handoff is kept for another review",
                format::short_id(old)
            )
        }
        Recovery::RollBack { resume: None } => {
            "nothing had been said that could be resumed, so the agent is started afresh".to_owned()
        }
        Recovery::FinishDeliver { .. } => {
            "a new session is started with the approved handoff".to_owned()
        }
        Recovery::FinishResume { session } if marker == Marker::PassedOver => {
            format!(
                "the new session {} has gone on without the handoff and is resumed as it is",
                format::short_id(session)
            )
        }
        Recovery::FinishResume { session } => {
            format!(
                "the new session {} has what it needs and is resumed; nothing is sent again",
                format::short_id(session)
            )
        }
    };
    // The footer cuts a long sentence at its end.
    format!(
        "{done}: pitstop was stopped while the reboot of iteration {} {stood}",
        entry.iteration
    )
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;

    use super::*;

    fn old() -> SessionId {
        SessionId::new(Uuid::from_u128(1))
    }

    fn new() -> SessionId {
        SessionId::new(Uuid::from_u128(2))
    }

    fn entry(step: Step) -> JournalEntry {
        let at = Utc.timestamp_opt(1_795_000_000, 0).unwrap();
        JournalEntry {
            reboot_id: Uuid::from_u128(9),
            run: RunId::new(at, [1, 2, 3]),
            iteration: IterationId::FIRST,
            step,
            way: Way::Fresh,
            old_session: Some(old()),
            new_session: Some(new()),
            nonce: "n0nce".to_owned(),
            handoff: "# Handoff".to_owned(),
            trim: None,
            cause: Cause::Key,
            at,
            outcome: None,
        }
    }

    fn evidence(marker: Marker) -> Evidence {
        Evidence {
            old_resumable: true,
            marker,
        }
    }

    fn recovery(entry: &JournalEntry, marker: Marker) -> Recovery {
        recover(entry, evidence(marker)).recovery
    }

    const BACK: fn() -> Recovery = || Recovery::RollBack {
        resume: Some(old()),
    };
    const RESUME: fn() -> Recovery = || Recovery::FinishResume { session: new() };
    const GIVE: fn() -> Recovery = || Recovery::FinishDeliver {
        session: Some(new()),
    };
    const GIVE_FRESH: fn() -> Recovery = || Recovery::FinishDeliver { session: None };
    const NOTHING: fn() -> Recovery = || Recovery::Nothing;

    #[test]
    fn every_step_is_recovered_by_the_table() {
        type Row = (Step, [fn() -> Recovery; 4]);
        #[rustfmt::skip]
        let table: [Row; 13] = [
            // step               seen     absent      no transcript  unknown
            (Step::Armed,       [RESUME,  BACK,       BACK,          BACK]),
            (Step::Drafting,    [RESUME,  BACK,       BACK,          BACK]),
            (Step::Review,      [RESUME,  BACK,       BACK,          BACK]),
            (Step::Preparing,   [RESUME,  BACK,       BACK,          BACK]),
            (Step::Waiting,     [RESUME,  BACK,       BACK,          BACK]),
            (Step::Ending,      [RESUME,  GIVE_FRESH, GIVE,          GIVE_FRESH]),
            (Step::Starting,    [RESUME,  GIVE_FRESH, GIVE,          BACK]),
            (Step::Delivering,  [RESUME,  GIVE_FRESH, GIVE,          BACK]),
            (Step::Verifying,   [RESUME,  GIVE_FRESH, GIVE,          BACK]),
            (Step::Warming,     [RESUME,  GIVE_FRESH, GIVE,          RESUME]),
            (Step::Done,        [NOTHING, NOTHING,    NOTHING,       NOTHING]),
            (Step::RollingBack, [BACK,    BACK,       BACK,          BACK]),
            (Step::Failed,      [NOTHING, NOTHING,    NOTHING,       NOTHING]),
        ];
        let markers = [
            Marker::Seen,
            Marker::Absent,
            Marker::NoTranscript,
            Marker::Unknown,
        ];
        assert_eq!(table.map(|(step, _)| step), Step::ALL);
        for (step, expected) in table {
            for (marker, expected) in markers.into_iter().zip(expected) {
                let found = recovery(&entry(step), marker);
                assert_eq!(found, expected(), "{step} {marker:?}");
            }
        }
    }

    #[test]
    fn a_session_without_a_transcript_is_not_resumed() {
        for step in Step::ALL {
            let evidence = Evidence {
                old_resumable: false,
                ..evidence(Marker::NoTranscript)
            };
            let found = recover(&entry(*step), evidence).recovery;
            assert_ne!(found, BACK(), "{step}");
            assert_ne!(found, RESUME(), "{step}");
        }
    }

    #[test]
    fn before_the_new_id_is_chosen_the_handoff_goes_to_a_fresh_one() {
        let mut entry = entry(Step::Ending);
        entry.new_session = None;
        assert_eq!(recovery(&entry, Marker::NoTranscript), GIVE_FRESH());
    }

    #[test]
    fn an_agent_without_sessions_is_given_it_again_because_it_forgot() {
        for step in [Step::Starting, Step::Delivering, Step::Verifying] {
            let mut entry = entry(step);
            (entry.old_session, entry.new_session) = (None, None);
            assert_eq!(recovery(&entry, Marker::Unknown), GIVE_FRESH());
        }
    }

    #[test]
    fn a_trim_resumes_its_copy_if_there_is_one_and_the_original_if_not() {
        for step in [
            Step::Ending,
            Step::Starting,
            Step::Delivering,
            Step::Verifying,
        ] {
            let mut entry = entry(step);
            entry.way = Way::Trim;
            assert_eq!(recovery(&entry, Marker::Absent), RESUME(), "{step}");
            assert_eq!(recovery(&entry, Marker::NoTranscript), BACK(), "{step}");
        }
        let mut review = entry(Step::Review);
        review.way = Way::Trim;
        assert_eq!(recovery(&review, Marker::Absent), BACK());
    }

    #[test]
    fn a_reboot_in_place_is_resumed_where_the_handoff_was_seen_and_else_taken_back() {
        for step in [Step::Delivering, Step::Verifying] {
            let mut entry = entry(step);
            entry.way = Way::InPlace;
            entry.new_session = entry.old_session;
            let resumed = Recovery::FinishResume { session: old() };
            assert_eq!(recovery(&entry, Marker::Seen), resumed);
            for marker in [Marker::Absent, Marker::Unknown, Marker::NoTranscript] {
                assert_eq!(recovery(&entry, marker), BACK(), "{step}");
            }
        }
    }

    #[test]
    fn the_sentence_names_where_it_was_and_what_is_done() {
        let plan = recover(&entry(Step::Waiting), evidence(Marker::NoTranscript));
        assert_eq!(
            plan.sentence,
            "the old session 00000000 is resumed and the handoff is kept for another review: \
             pitstop was stopped while the reboot of iteration 1 was waiting for a safe moment"
        );
        let plan = recover(&entry(Step::Verifying), evidence(Marker::Seen));
        let done =
            "the new session 00000000 has what it needs and is resumed; nothing is sent again: ";
        assert!(plan.sentence.starts_with(done), "{}", plan.sentence);
    }

    #[test]
    fn an_entry_reads_back_as_it_was_written() {
        let mut entry = entry(Step::Verifying);
        entry.handoff = "\u{0}\u{1f600}\r\n\"".to_owned();
        let text = serde_json::to_string(&entry).unwrap();
        assert_eq!(serde_json::from_str::<JournalEntry>(&text).unwrap(), entry);
        assert!(text.contains(r#""step":"verifying""#));
    }

    #[test]
    fn a_session_that_has_gone_on_with_another_prompt_is_resumed_as_it_is() {
        for step in [
            Step::Ending,
            Step::Starting,
            Step::Delivering,
            Step::Verifying,
            Step::Warming,
        ] {
            let plan = recover(&entry(step), evidence(Marker::PassedOver));
            assert_eq!(plan.recovery, RESUME(), "{step}");
            let said = "the new session 00000000 has gone on without the handoff";
            assert!(plan.sentence.contains(said), "{}", plan.sentence);
        }
        let undone = recovery(&entry(Step::RollingBack), Marker::PassedOver);
        assert_eq!(undone, BACK(), "a person has decided that");
    }
}
