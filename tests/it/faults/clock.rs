//! The clock of the system jumps.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::FileExt as _,
    path::Path,
    process::Command,
};

use super::{Trial, demo};
use crate::kit::supervisor::SOON;

/// A library that adds the seconds that stand in the file `FAULT_CLOCK` to the system's clock. The file is mapped, so
/// that a change counts at once.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static volatile const long long *offset;
__attribute__((constructor)) static void open_clock(void) {
    const char *path = getenv("FAULT_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *map = mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    if (map != MAP_FAILED) offset = map;
    close(file);
}
int clock_gettime(clockid_t id, struct timespec *time) {
    int done = syscall(SYS_clock_gettime, id, time);
    if (id == CLOCK_REALTIME && offset) time->tv_sec += *offset;
    return done;
}
"#;

fn set(clock: &Path, seconds: i64) {
    // Never shorter than it was: who has it mapped would be killed.
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(false);
    let file = options.open(clock).expect("a file");
    file.write_all_at(&seconds.to_ne_bytes(), 0)
        .expect("written");
}

/// Sets the clock by this much while a session rests, and once more in the other direction.
#[track_caller]
fn jump(seconds: i64) {
    let launch = demo();
    let at = |name: &str| launch.the_home().path(name);
    let (source, library, clock) = (at("clock.c"), at("clock.so"), at("clock"));
    fs::write(&source, SHIM).expect("written");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    if !built.is_ok_and(|status| status.success()) {
        println!("skipped: needs a C compiler");
        return;
    }
    set(&clock, 0);
    let launch = launch
        .env("LD_PRELOAD", &library)
        .env("FAULT_CLOCK", &clock);
    let trial = Trial::begin(&launch);
    let before = trial.supervisor.status();
    for (jump, prompt) in [(seconds, "what time is it?"), (0, "and now?")] {
        set(&clock, jump);
        trial.turn(prompt);
        trial.answers();
        let status = trial.supervisor.wait_for_phase("idle", SOON);
        assert_eq!(status["iteration"], before["iteration"], "no reboot");
        assert_eq!(status["agent"]["pid"], before["agent"]["pid"]);
    }
    set(&clock, seconds);
    trial.goes_on();
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn ahead_by_17_hours() {
    jump(17 * 3_600);
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn back_by_an_hour() {
    jump(-3_600);
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn ahead_by_400_days() {
    jump(400 * 86_400);
}
