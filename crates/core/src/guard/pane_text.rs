//! The amount of text that a pane has shown: the measure of an agent that reports nothing.
//!
//! Bytes tell little. A program that redraws its screen ten times a second writes megabytes without new text, and one
//! that counts seconds has new text only once. So lines are counted and not bytes, each as often as it was ever visible at
//! the same time, without its figures and its ornaments:
//!
//! ```text
//!   in sight before      in sight now           new
//!   ⠋ working 3 s        ⠙ working 4 s
//!   ok                   ok
//!                        ok                     ok
//!                        the parser is done     the parser is done
//! ```
//!
//! Known limits: text that passes between two looks is not seen, a line that is wrapped differently counts again, and a line
//! that comes back after a long time is not counted twice.

use std::{
    collections::{HashMap, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
};

/// The most different lines that are remembered: far more than the history that is read of any screen.
const REMEMBERED: usize = 20_000;

/// The number of last lines that may still be growing while they are written.
const GROWING_LINES: usize = 4;

/// The text that a pane has shown so far.
#[derive(Clone, Debug, Default)]
pub struct PaneText {
    characters: u64,
    /// The most times that a line was visible at once, by the line's hash.
    seen: HashMap<u64, u32>,
    /// The keys of `seen`, oldest first.
    order: VecDeque<u64>,
    /// The last lines as they were at the last look.
    last: Vec<String>,
}

impl PaneText {
    /// Returns the number of characters shown so far.
    pub const fn characters(&self) -> u64 {
        self.characters
    }

    /// Takes in the visible text: the screen with the lines above it.
    pub fn look(&mut self, text: &str) {
        let mut in_sight: HashMap<u64, u32> = HashMap::new();
        for line in text.lines().map(str::trim) {
            let Some(key) = key_of(line) else { continue };
            let times = in_sight.entry(key).or_default();
            *times += 1;
            if *times > self.most(key) {
                self.remember(key, *times);
                self.characters += self.length(line);
            }
        }
        let lines = text.lines().rev().map(str::trim);
        self.last = lines
            .filter(|line| key_of(line).is_some())
            .take(GROWING_LINES)
            .map(str::to_owned)
            .collect();
    }

    fn most(&self, key: u64) -> u32 {
        self.seen.get(&key).copied().unwrap_or_default()
    }

    fn remember(&mut self, key: u64, times: u32) {
        if self.seen.insert(key, times).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > REMEMBERED {
            if let Some(oldest) = self.order.pop_front() {
                self.seen.remove(&oldest);
            }
        }
    }

    /// Returns the number of characters of a line with its end, without those that were counted while it was shorter.
    fn length(&self, line: &str) -> u64 {
        let grows = |last: &&String| line.len() > last.len() && line.starts_with(*last);
        let counted = self.last.iter().filter(grows);
        let counted = counted.map(|last| last.chars().count() + 1).max();
        (line.chars().count() + 1).saturating_sub(counted.unwrap_or_default()) as u64
    }
}

/// Returns the key by which lines are equal: the hash of their letters and the places of figures; `None` without either.
fn key_of(line: &str) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    let (mut any, mut in_figure) = (false, false);
    for c in line.chars().filter(|c| c.is_alphanumeric()) {
        any = true;
        if !c.is_numeric() {
            c.hash(&mut hasher);
        } else if !in_figure {
            '#'.hash(&mut hasher);
        }
        in_figure = c.is_numeric();
    }
    any.then(|| hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_that_is_drawn_again_says_nothing_new() {
        let mut text = PaneText::default();
        let frame = |spin: char, seconds: u32| {
            format!("┌───┐\n│ {spin} working · {seconds} s │\n│ the plan │\n└───┘")
        };
        text.look(&frame('⠋', 1));
        let once = text.characters();
        assert_eq!(once, 20 + 13);
        for seconds in 2..5_000 {
            text.look(&frame('⠙', seconds));
        }
        assert_eq!(text.characters(), once);
        // Between two pages one comes back to.
        text.look("another page");
        text.look(&frame('⠋', 1));
        text.look("another page");
        assert_eq!(text.characters(), once + 13);
    }

    #[test]
    fn lines_that_repeat_count_as_often_as_they_are_in_sight() {
        let mut text = PaneText::default();
        text.look("ok");
        text.look("ok\nok\nok");
        assert_eq!(text.characters(), 9);
        text.look("ok\nok");
        text.look("ok\nok\nok");
        assert_eq!(text.characters(), 9);
    }

    #[test]
    fn a_line_that_grows_while_it_is_written_counts_once() {
        let mut text = PaneText::default();
        for shown in ["The", "The par", "The parser", "The parser\nis done"] {
            text.look(shown);
        }
        assert_eq!(text.characters(), 11 + 8);
    }

    #[test]
    fn memory_is_bounded_whatever_is_shown() {
        let mut text = PaneText::default();
        for n in 0..3_u32 {
            let letters = |at: u32| -> String {
                format!("{n}{at}")
                    .bytes()
                    .map(|digit| char::from(digit + 49))
                    .collect()
            };
            let lines: Vec<String> = (0..15_000).map(letters).collect();
            text.look(&lines.join("\n"));
        }
        assert!(text.seen.len() <= REMEMBERED);
        assert_eq!(text.seen.len(), text.order.len());
    }
}
