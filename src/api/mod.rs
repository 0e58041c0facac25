//! The doors for hooks, scripts and people elsewhere.
//!
//! The room owns the control socket, the optional loopback port, the two secrets that open them, and
//! the small client that `pitstop hook`, `statusline`, `status` and `ctl` speak through. It decides
//! who may ask, how much and for how long; it refuses to decide what an event means or whether an
//! order is carried out: requests go to the loop as data and its reply is passed on.

pub mod client;
pub mod endpoint;
pub mod events;
pub mod metrics;
pub mod server;
pub mod wire;

pub use server::{
    ApiError, Call, Feed, Listening, RequestQueue, Secrets, bind_control_socket, bind_loopback,
    serve,
};
pub use wire::{AgentState, Control, Reply, Request};
