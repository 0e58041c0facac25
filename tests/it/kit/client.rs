//! The real client under test: which program it is, and what differs between the versions that are tested.

// The kit is shared, and each test uses a part of it.
#![allow(dead_code)]

use std::{env, path::PathBuf, process::Command, sync::LazyLock};

/// The path of the real client; a live test that runs without it fails.
#[track_caller]
pub fn live_client() -> PathBuf {
    let path = env::var_os("PITSTOP_CLAUDE")
        .expect("a live test needs PITSTOP_CLAUDE, the path of the claude binary");
    PathBuf::from(path)
}

/// The version of the real client: major, minor, patch.
static VERSION: LazyLock<(u32, u32, u32)> = LazyLock::new(|| {
    let output = Command::new(live_client())
        .arg("--version")
        .output()
        .expect("the client says its version");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut numbers = text
        .split([' ', '.'])
        .map_while(|word| word.parse::<u32>().ok());
    let mut next = || {
        numbers
            .next()
            .unwrap_or_else(|| panic!("a version: {text}"))
    };
    (next(), next(), next())
});

/// Whether the client is at least this old: 2.1 with that patch number.
pub fn is_at_least(patch: u32) -> bool {
    *VERSION >= (2, 1, patch)
}

/// The permission mode in which the client asks before each risky call, by the name that it has in this version.
pub static ASKS_FIRST: LazyLock<&str> = LazyLock::new(|| {
    if is_at_least(330) {
        "manual"
    } else {
        "default"
    }
});
