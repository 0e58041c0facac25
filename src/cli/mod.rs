//! One file per subcommand.

#![allow(clippy::disallowed_methods, reason = "commands touch the world")]

pub mod api;
pub mod attach;
pub mod choose;
pub mod completions;
pub mod context;
pub mod ctl;
pub mod demo;
pub mod doctor;
mod editor;
mod fleet;
pub mod git_hook;
pub mod handoff;
pub mod here;
pub mod history;
pub mod hook;
pub mod leftovers;
mod login;
pub mod ls;
pub mod man;
pub mod mcp;
pub mod notify;
mod observer;
mod offer;
pub mod out;
mod own_program;
pub mod phone;
mod picker;
pub mod plugin;
pub mod prune;
pub mod restore;
pub mod run;
pub mod save;
pub mod server;
mod sessions;
pub mod status;
pub mod statusline;

pub mod check;
pub mod exec_agent;
pub mod host;
pub mod template;
pub mod test;
pub mod trim;
pub mod trust;
pub mod unknown;
pub mod version;
