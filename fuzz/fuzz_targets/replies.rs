//! Bytes to replies.

#![no_main]

#[path = "../../tests/it/fuzz/checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::replies::check(data));
