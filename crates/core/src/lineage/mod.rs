//! The chain of iterations: when each one began and ended, why it ended, and how one became the next.
//!
//! This module owns the numbers and names of runs and iterations, the record of each, the journal that is written ahead of
//! every reboot step, checkpoints and figures: all of it plain data and rules, kept on disk by `store`. It does not decide
//! when to reboot (`guard`, `breakpoint`) nor carry one out (`app`, `runtime`).

mod chain;
pub mod checkpoint;
mod error;
mod ids;
mod iteration;
pub mod journal;
mod meta;
pub mod metrics;
pub mod moment;
pub mod past;
mod project;
mod reboot;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use self::words::words;
pub use self::{
    chain::Lineage,
    error::LineageError,
    ids::{IterationId, RunId},
    iteration::{EndReason, Iteration, TokenTotals},
    meta::{IterationRecord, Meta, RunEnd, json},
    project::{Project, hash_name},
    reboot::{Cause, RebootRecord, TrimRecord, Way},
};
pub use pitstop_base::process::ProcessStamp;
