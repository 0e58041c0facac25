//! One file per subcommand.

#![allow(clippy::disallowed_methods, reason = "commands touch the world")]

pub mod context;
pub mod ctl;
pub mod git_hook;
pub mod handoff;
pub mod history;
pub mod hook;
mod observer;
pub mod out;
pub mod run;
pub mod status;
pub mod statusline;

pub mod check;
pub mod exec_agent;
pub mod host;
pub mod template;
pub mod test;
pub mod trim;
pub mod trust;
