//! Queues that keep the newest of what they are given.

use std::collections::VecDeque;

/// Adds an item at the end; at most `most` stay, and the oldest goes.
pub fn push<T>(queue: &mut VecDeque<T>, item: T, most: usize) {
    queue.push_back(item);
    if queue.len() > most {
        queue.pop_front();
    }
}

/// Takes the oldest item out that equals another one. Returns false if there is none.
pub fn take<T: PartialEq<U>, U: ?Sized>(queue: &mut VecDeque<T>, wanted: &U) -> bool {
    let at = queue.iter().position(|have| have == wanted);
    at.and_then(|at| queue.remove(at)).is_some()
}
