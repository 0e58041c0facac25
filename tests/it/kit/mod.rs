//! The kit: what tests need to drive the whole program.
