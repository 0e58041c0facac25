//! The state of the client's own limit.

use pitstop_agent::claude::limits::{CompactionSettings, Limit};
use pitstop_transcript::Tokens;

/// The known state of the client's own limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientLimits {
    pub(in crate::app) settings: CompactionSettings,
    /// The limit that follows from the settings, and the window that it was derived from, in tokens.
    pub(in crate::app) set: (Option<Limit>, Tokens),
    /// A limit that the client has shown.
    pub(in crate::app) learned: Option<Limit>,
    /// The limit that the client itself reports by the bridge, while the bridge reports.
    pub(in crate::app) reported: Option<Limit>,
    /// The limit that the last words on the client's screen implied.
    pub(in crate::app) seen: Option<Tokens>,
    /// True if an order of ours has lowered the client's trigger in this turn: what it shows of that stays on its screen until the
    /// next one, also where the order is taken back.
    pub(in crate::app) misled: bool,
    /// The number of times that the screen was read since the last figure.
    pub(in crate::app) looks: usize,
    /// The limit that a compaction under way will have shown.
    pub(in crate::app) announced: Option<Limit>,
    /// True if a checkpoint was saved because the figure came near the limit, and the figure has not left it since.
    pub(in crate::app) saved: bool,
}

impl ClientLimits {
    /// Notes that an order that the client gets lowers its trigger, if it does.
    pub const fn order_given(&mut self, is_lowered: bool) {
        self.misled |= is_lowered;
    }

    /// Returns the limit that counts: the one that the client reports, else the lowest.
    pub fn limit(&self) -> Option<&Limit> {
        if let Some(reported) = &self.reported {
            // If the settings give the same limit, theirs is returned, since it names its reason.
            let set = self.set.0.as_ref();
            return Some(set.filter(|set| set.at == reported.at).unwrap_or(reported));
        }
        match (&self.set.0, &self.learned) {
            (Some(set), Some(learned)) if learned.at < set.at => Some(learned),
            (None, learned) => learned.as_ref(),
            (set, _) => set.as_ref(),
        }
    }
}
