//! The host terminal's bytes to the child's.

#![no_main]

#[path = "../../tests/it/fuzz/checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::keys::check(data));
