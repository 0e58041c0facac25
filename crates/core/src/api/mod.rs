//! The API for hooks, scripts and people in other terminals. Each listener of it is called a *door*.
//!
//! The module owns the control socket, the optional loopback port, the tokens that open them, and
//! the small client through which `pitstop hook`, `statusline`, `status` and `ctl` talk. It decides
//! who may ask, how much and for how long; it does not decide what an event means or whether an
//! order is carried out: requests go to the loop as data and its reply is passed on.

pub mod endpoint;
pub mod events;
pub mod metrics;
pub mod wire;

pub use wire::{AgentState, Control, Reply, Request};
