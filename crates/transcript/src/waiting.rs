//! Calls that wait for their results: a result names its call, and comes lines or minutes after it.

use std::collections::{HashMap, VecDeque};

/// The remembered calls by their ids, at most `CAPACITY`: the oldest is forgotten first, because a record that was cut may
/// hold any number of calls whose result never comes.
#[derive(Debug, Default)]
pub struct Waiting<T, const CAPACITY: usize> {
    calls: HashMap<String, T>,
    /// The ids of `calls`, oldest first.
    order: VecDeque<String>,
}

impl<T, const CAPACITY: usize> Waiting<T, CAPACITY> {
    /// Remembers a call; one of the same id is replaced and keeps its place.
    pub fn insert(&mut self, id: &str, call: T) {
        if self.calls.insert(id.to_owned(), call).is_none() {
            self.order.push_back(id.to_owned());
        }
        while self.order.len() > CAPACITY {
            if let Some(oldest) = self.order.pop_front() {
                self.calls.remove(&oldest);
            }
        }
    }

    /// Removes and returns the call whose result has come; none if it is not known.
    pub fn take(&mut self, id: &str) -> Option<T> {
        let call = self.calls.remove(id)?;
        self.order.retain(|have| have != id);
        Some(call)
    }

    /// Returns the number of calls that wait.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Reports whether no call waits.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_call_is_forgotten_first() {
        let mut waiting = Waiting::<_, 2>::default();
        waiting.insert("a", 1);
        waiting.insert("b", 2);
        waiting.insert("a", 3);
        waiting.insert("c", 4);
        assert_eq!(waiting.len(), 2);
        assert_eq!(waiting.take("a"), None);
        assert_eq!(waiting.take("b"), Some(2));
        assert_eq!(waiting.take("b"), None);
        waiting.insert("d", 5);
        assert_eq!((waiting.take("c"), waiting.take("d")), (Some(4), Some(5)));
        assert!(waiting.is_empty() && waiting.order.is_empty());
    }

    #[test]
    fn calls_whose_result_never_comes_cost_no_more_than_their_share() {
        let mut waiting = Waiting::<_, 64>::default();
        for n in 0..10_000 {
            waiting.insert(&format!("call {n}"), n);
            assert!(waiting.len() <= 64 && waiting.order.len() <= 64);
        }
        assert_eq!(waiting.take("call 9999"), Some(9_999));
    }
}
