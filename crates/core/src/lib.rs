//! What pitstop decides, as data in and data out: no thread, no file, no clock.
//!
//! [`app`] holds the state of one supervised session and turns events into effects; the other modules are what it decides by.

pub mod api;
pub mod app;
pub mod autopilot;
pub mod config;
pub mod guard;
pub mod lineage;
