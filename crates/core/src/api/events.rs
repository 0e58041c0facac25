//! The events that `GET /events` sends: their kinds, and the ring that keeps the latest for late listeners.
//!
//! ```text
//!   id: 5f3a9c01-17        the feed's mark and the number within it
//!   event: reboot
//!   data: {"phase":"review","reason":"breakpoint","blocked_by":[]}
//! ```
//!
//! The mark changes with each supervisor, so that a listener that reconnects to another one learns that events are missing
//! instead of being given other events under the same numbers.

use std::collections::VecDeque;

use serde_json::Value;

use pitstop_base::{recent, redact};

/// The number of events kept for listeners that reconnect: minutes of a busy session.
pub const KEPT: usize = 1024;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ApiEventKind {
    /// The whole status: the first event of every stream, and after every [`ApiEventKind::Gap`].
    Status,
    /// Events are missing here, because they were no longer kept.
    Gap,
    /// A hook of the agent fired.
    Hook,
    /// The agent's state has changed.
    Agent,
    /// Another session or iteration began.
    Session,
    /// The figure for the context window has changed.
    Context,
    /// The context level has changed.
    Level,
    /// The mode or the pause has changed.
    Mode,
    /// The reboot has advanced by a step.
    Reboot,
    /// What a person is needed for has changed.
    Needs,
    /// A commit was made.
    Commit,
    /// A test run has ended.
    Tests,
    /// A checkpoint is being kept.
    Checkpoint,
    /// A model was asked for a summary but gave none.
    Summary,
    /// The text that the footer shows.
    Notice,
}

impl ApiEventKind {
    /// All kinds.
    pub const ALL: &[Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Returns the event's name in the stream.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiEvent {
    /// The kind of the event.
    pub kind: ApiEventKind,
    /// The details, as JSON.
    pub data: Value,
}

impl ApiEvent {
    /// Returns the event as the stream carries it; without an id if it has no place of its own in the feed.
    pub fn to_event(&self, id: Option<&str>) -> String {
        // JSON on one line holds no line break, so nothing in it can end the event or begin another.
        let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
        let data = self.data.to_string();
        let data = redact::json(&data);
        format!("{id}event: {}\ndata: {data}\n\n", self.kind.word())
    }
}

/// The latest events, oldest first, numbered from 1.
#[derive(Debug, Default)]
pub struct Ring {
    kept: VecDeque<ApiEvent>,
    /// The number of the newest event; 0 before the first.
    newest: u64,
}

impl Ring {
    /// Adds an event and returns its number; the oldest is dropped when there are more than [`KEPT`].
    pub fn push(&mut self, event: ApiEvent) -> u64 {
        recent::push(&mut self.kept, event, KEPT);
        self.newest += 1;
        self.newest
    }

    /// Returns the number of the newest event; 0 before the first.
    pub const fn newest(&self) -> u64 {
        self.newest
    }

    /// Returns at most `limit` of the events after number `seen`, with their numbers; `None` if some of them are no longer kept,
    /// or if there never was such a number.
    pub fn after(&self, seen: u64, limit: usize) -> Option<Vec<(u64, ApiEvent)>> {
        let oldest = self.newest - self.kept.len() as u64;
        if seen < oldest || seen > self.newest {
            return None;
        }
        let skip = usize::try_from(seen - oldest).unwrap_or(usize::MAX);
        let rest = self.kept.iter().skip(skip).take(limit);
        Some((seen + 1..).zip(rest.cloned()).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(number: u64) -> ApiEvent {
        ApiEvent {
            kind: ApiEventKind::Notice,
            data: json!({ "n": number }),
        }
    }

    #[test]
    fn an_event_has_an_id_a_name_and_one_line_of_data() {
        let one = ApiEvent {
            kind: ApiEventKind::Notice,
            data: json!({"text": "a\nid: 9\n\nb\r"}),
        };
        assert_eq!(
            one.to_event(Some("ab-7")),
            "id: ab-7\nevent: notice\ndata: {\"text\":\"a\\nid: 9\\n\\nb\\r\"}\n\n"
        );
        assert!(one.to_event(None).starts_with("event: notice\n"));
    }

    #[test]
    fn a_listener_gets_what_came_after_what_it_has_seen() {
        let mut ring = Ring::default();
        assert_eq!(ring.after(0, 9), Some(Vec::new()));
        for number in 1..=3 {
            assert_eq!(ring.push(event(number)), number);
        }
        assert_eq!(ring.after(3, 9), Some(Vec::new()));
        assert_eq!(ring.after(1, 9), Some(vec![(2, event(2)), (3, event(3))]));
        assert_eq!(ring.after(0, 2), Some(vec![(1, event(1)), (2, event(2))]));
        assert_eq!(ring.after(4, 9), None, "it has not been yet");
    }

    #[test]
    fn what_is_no_longer_kept_is_not_passed_over_in_silence() {
        let mut ring = Ring::default();
        for number in 1..=KEPT as u64 + 5 {
            ring.push(event(number));
        }
        assert_eq!(ring.after(4, 9), None);
        let rest = ring.after(5, usize::MAX).unwrap();
        assert_eq!((rest.len(), rest[0].0), (KEPT, 6));
        assert_eq!(
            rest.last(),
            Some(&(KEPT as u64 + 5, event(KEPT as u64 + 5)))
        );
    }
}
