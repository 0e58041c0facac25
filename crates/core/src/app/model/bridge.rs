//! The known state of the client's own side of the session.

use pitstop_agent::bridge::{Link, Outcome, Reported, UnsentPrompt};
use pitstop_transcript::SessionId;

use super::orders::{EndedOrder, OrderEnd, Purpose};

/// The bridge of one iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bridge {
    /// The state of the connection to the client's side.
    pub link: Link,
    /// The last report.
    pub reported: Reported,
}

impl Bridge {
    /// Takes in how the order to read the prompt box has ended. What was reported meanwhile is newer than the first look; what the last
    /// one could not read is not known.
    pub(in crate::app) fn draft_read(&mut self, ended: EndedOrder) {
        let last = ended.purpose == Purpose::LastDraft;
        let reported = &mut self.reported;
        match ended.end {
            OrderEnd::Answered(Outcome::Draft(draft))
                if reported.session == Some(ended.session) =>
            {
                if last || reported.draft.is_none() {
                    reported.draft = Some(draft);
                }
            }
            other => {
                tracing::warn!(?other, "the bridge could not read the prompt box");
                reported.draft.take_if(|_| last);
            }
        }
    }

    /// Returns the last report on a session, while the bridge is in force.
    pub fn of(&self, session: SessionId) -> Option<&Reported> {
        (self.link.is_in_force() && self.reported.session == Some(session))
            .then_some(&self.reported)
    }

    /// Returns the last reported text in a session's prompt box, while the bridge is in force. An empty box gives none, since a box
    /// behind a dialog is reported as empty too.
    pub fn draft(&self, session: SessionId) -> Option<&UnsentPrompt> {
        let draft = self.of(session)?.draft.as_ref();
        draft.filter(|draft| !draft.text.is_empty())
    }
}
