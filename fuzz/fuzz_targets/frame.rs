//! Bytes to screen to frame.

#![no_main]

#[path = "../../tests/it/fuzz/checks/mod.rs"]
mod checks;
#[allow(dead_code)] // The frames' tests use more of it.
#[path = "../../tests/it/ui/scene.rs"]
mod scene;

libfuzzer_sys::fuzz_target!(
    |data: &[u8]| checks::frame::bytes(data, |host| scene::beginning(host, ""))
);
