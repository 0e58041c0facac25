//! Asks git.
