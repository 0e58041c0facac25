//! The feed of events, with one writer, the loop, and any number of readers, one for each open `GET /events`.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use pitstop_core::api::events::{ApiEvent, Ring};

/// The feed of events for all listeners. Clones are the same feed.
#[derive(Clone, Debug)]
pub struct Feed(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    mark: String,
    ring: Mutex<Ring>,
    newest: watch::Sender<u64>,
}

impl Feed {
    /// Creates an empty feed. The mark, of letters and digits, distinguishes it from any other supervisor's.
    pub fn new(mark: &str) -> Self {
        let plain = mark.chars().filter(char::is_ascii_alphanumeric);
        Self(Arc::new(Inner {
            mark: plain.take(16).collect(),
            ring: Mutex::default(),
            newest: watch::Sender::new(0),
        }))
    }

    /// Sends an event to all listeners. It never waits: a slow listener misses events and is notified of that.
    pub fn publish(&self, event: ApiEvent) {
        let newest = self.0.ring.lock().push(event);
        self.0.newest.send_replace(newest);
    }

    /// Returns the number of the newest event.
    pub(super) fn newest(&self) -> u64 {
        self.0.ring.lock().newest()
    }

    /// Returns the events after number `seen`; `None` if some of them are gone.
    pub(super) fn after(&self, seen: u64, limit: usize) -> Option<Vec<(u64, ApiEvent)>> {
        self.0.ring.lock().after(seen, limit)
    }

    /// Returns a receiver that is notified of every new number.
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.0.newest.subscribe()
    }

    /// Returns a number in the form that listeners see.
    pub(super) fn id(&self, number: u64) -> String {
        format!("{}-{number}", self.0.mark)
    }

    /// Returns the number of an id that this feed gave out.
    pub(super) fn number(&self, id: &str) -> Option<u64> {
        let (mark, number) = id.rsplit_once('-')?;
        (mark == self.0.mark).then(|| number.parse().ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_known_by_the_feed_that_gave_it_only() {
        let (one, other) = (Feed::new("a1"), Feed::new("b2"));
        assert_eq!(one.number(&one.id(17)), Some(17));
        for id in [
            other.id(17),
            String::new(),
            "17".into(),
            "a1-".into(),
            "a1-x".into(),
        ] {
            assert_eq!(one.number(&id), None, "{id:?}");
        }
    }
}
