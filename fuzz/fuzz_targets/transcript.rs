//! A transcript through all its readers.

#![no_main]

#[path = "../../tests/it/fuzz/checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::texts::transcript(data));
