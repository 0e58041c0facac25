//! The material that the next session is given: the handoff and its sources, the scratchpad, checkpoints and the record.
//!
//! It knows neither the agent's process nor a reboot: those call it.

pub mod breakpoint;
pub mod carried;
pub mod checkpoint;
pub mod handoff;
pub mod record;
pub mod signal;
pub mod summary;
