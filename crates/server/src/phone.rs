//! The devices of the user's that may look at the sessions of this machine, and decide.
//!
//! # Trust boundary
//!
//! A device proves itself by two secrets: a cookie that no script can read, and a key that only the page can, because a cookie is sent to
//! every port of its host.

pub mod devices;
