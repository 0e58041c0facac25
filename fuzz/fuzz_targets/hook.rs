//! The payload of a hook and of a status line.

#![no_main]

#[path = "../../tests/it/fuzz/checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::texts::hook(data));
