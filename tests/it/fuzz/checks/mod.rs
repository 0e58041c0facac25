//! What must hold whatever bytes come in: one function for each target of `cargo fuzz` (see `fuzz/README.md`). The
//! property tests beside this directory run the same for a moment.
//!
//! Each takes an input as the fuzzer makes it, and panics if something does not hold that must.

// Each target uses a part of it.
#![allow(dead_code, clippy::disallowed_methods)]

pub mod frame;
pub mod keys;
pub mod replies;
pub mod stage;
pub mod texts;

/// Reads an input from its start: numbers for what is chosen, and the rest as it is.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// The next byte; 0 behind the end.
    pub fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    /// Everything up to the mark, without it.
    pub fn up_to(&mut self, mark: u8) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == mark);
        let (before, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest.get(1..).unwrap_or_default();
        before
    }

    /// The rest in pieces, cut where the seed says.
    pub fn pieces(&self, seed: u8) -> Vec<&'a [u8]> {
        let mut seed = u64::from(seed) + 1;
        let mut rest = self.0;
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            // A xorshift: short pieces and long ones.
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let longest = [1, 7, 60, 4000][(seed % 4) as usize];
            let (piece, after) = rest.split_at(rest.len().min(1 + (seed >> 8) as usize % longest));
            pieces.push(piece);
            rest = after;
        }
        pieces
    }
}
