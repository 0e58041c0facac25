//! What the disk and the limits of the system refuse.

use std::{
    fs,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::{MINE, Trial, can, demo, in_namespace, through};
use crate::kit::{
    small_disk::SmallDisk,
    supervisor::{Launch, PITSTOP, SOON, Supervisor, key},
};

#[test]
#[ignore = "needs PITSTOP_TEST_SMALL_DISK=<a directory on a file system of about 1 MiB>"]
fn the_project_s_disk_is_full() {
    let disk = SmallDisk::new();
    let project = disk.path().join("project");
    fs::create_dir(&project).expect("a directory");
    let launch = Launch::manual_demo("")
        .in_directory(&project)
        .notes(&format!("{MINE}\n"));
    let trial = Trial::begin(&launch);
    disk.fill();
    trial.supervisor.keys([key::F3, "e", "more ", key::ESC]);
    trial.supervisor.wait_for_text("not saved", SOON);
    trial.supervisor.keys([key::ESC]);
    trial.answers();
    trial.is_refused_a_reboot();
    let doctor = trial.supervisor.run(&["doctor"]);
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(
        doctor.contains("the disk of the project is full"),
        "{doctor}"
    );
    disk.empty();
    trial.supervisor.wait_for_notes("more ");
    trial.goes_on();
}

#[test]
#[ignore = "needs PITSTOP_TEST_SMALL_DISK=<a directory on a file system of about 1 MiB>"]
fn the_temporary_directory_is_full() {
    let disk = SmallDisk::new();
    disk.fill();
    Trial::begin(&demo().env("TMPDIR", disk.path())).goes_on();
}

/// A mount in a namespace of its own, where the disk takes no writes; only what is on the screen can be looked at.
#[track_caller]
fn read_only(directory: &str) {
    let mount = format!(
        "mount --bind \"{directory}\" \"{directory}\" && mount -o remount,ro,bind \"{directory}\""
    );
    let probe = tempfile::tempdir().expect("a directory");
    let there = probe.path().display().to_string();
    let try_it = in_namespace(&mount.replace(directory, &there));
    if !can(
        "mount namespaces",
        &format!("sh -c '{}' true", try_it.replace('\'', "'\\''")),
    ) {
        return;
    }
    let launch = Launch::generic("sh -c 'echo READY; exec cat'").after(&in_namespace(&mount));
    fs::create_dir_all(launch.the_home().path("state/pitstop")).expect("a directory");
    let supervisor = launch.start_showing("READY");
    supervisor.prompt("are you there");
    let twice = |screen: &str| screen.matches("are you there").count() >= 2;
    supervisor.terminal.wait_for(twice, SOON);
    supervisor.keys([key::F1]);
    supervisor.wait_for_text("In the review", SOON);
    supervisor.keys([key::ESC, key::F10]);
    let exit = supervisor.wait_for_exit(SOON);
    assert_eq!(
        (exit.code, exit.signal),
        (0, None),
        "{}",
        supervisor.screen()
    );
    assert_eq!(supervisor.terminal.modes_left_on(), Vec::<&str>::new());
    assert!(supervisor.terminal.has_its_settings_back());
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn the_state_directory_is_read_only() {
    read_only("$XDG_STATE_HOME");
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn the_project_is_read_only() {
    read_only("$PWD");
}

/// Makes these system calls fail with an error of the disk, in a supervisor that runs.
struct Failing(Child);

impl Failing {
    /// None where processes cannot be traced.
    #[track_caller]
    fn from_now_on(supervisor: &Supervisor, calls: &str) -> Option<Self> {
        let pid = supervisor.pid().as_raw_nonzero().to_string();
        let inject = format!("inject={calls}:error=EIO");
        let tracer = Command::new("strace")
            .args([
                "-f",
                "-qq",
                "-o",
                "/dev/null",
                "-e",
                &format!("trace={calls}"),
            ])
            .args(["-e", &inject, "-p", &pid])
            .stderr(Stdio::null())
            .spawn();
        let Ok(tracer) = tracer else {
            println!("skipped: needs strace");
            return None;
        };
        let mut failing = Self(tracer);
        let is_traced = || {
            let status = fs::read_to_string(format!("/proc/{pid}/status"));
            status.is_ok_and(|status| !status.contains("TracerPid:\t0"))
        };
        let end = Instant::now() + SOON;
        while !is_traced() {
            let ended = failing.0.try_wait().expect("a child").is_some();
            if ended || Instant::now() > end {
                println!("skipped: needs the right to trace processes");
                return None;
            }
            thread::park_timeout(Duration::from_millis(10));
        }
        Some(failing)
    }
}

impl Drop for Failing {
    fn drop(&mut self) {
        // It may have ended with what it traced.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// With these calls failing at the start, it is refused with the reason; failing later, the work goes on, or says why not.
#[track_caller]
fn calls_fail(calls: &str) {
    let inject =
        format!("strace -D -f -qq -o /dev/null -e trace={calls} -e inject={calls}:error=EIO");
    if !can("strace", &format!("{inject} true")) {
        return;
    }
    let mut refused = demo().after(&through(&inject)).start();
    refused.check_nothing();
    let exit = refused.wait_for_exit(SOON);
    assert_eq!((exit.code, exit.signal), (1, None));
    let screen = refused.screen();
    assert!(screen.contains("Input/output error"), "{screen}");
    assert!(screen.contains("see that files can be written"), "{screen}");
    assert!(refused.terminal.has_its_settings_back());
    drop(refused);

    let trial = Trial::begin(&demo());
    if let Some(failing) = Failing::from_now_on(&trial.supervisor, calls) {
        goes_on_or_says_so(&trial);
        drop(failing);
    }
}

#[track_caller]
fn goes_on_or_says_so(trial: &Trial) {
    trial.answers();
    trial.supervisor.keys([key::F3, "e", "more ", key::ESC]);
    let word = |screen: &str| screen.contains("not saved");
    let known = || word(&trial.supervisor.screen()) || trial.supervisor.notes().contains("more ");
    trial
        .supervisor
        .wait_until("the note is saved, or marked", known);
    trial.supervisor.keys([key::ESC]);
    trial.reboots_or_is_refused();
    trial.answers();
    trial.leaves();
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn writes_cannot_be_synced() {
    calls_fail("fsync,fdatasync");
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn files_cannot_be_renamed() {
    calls_fail("rename,renameat,renameat2,link,linkat");
}

/// Started with so little to use, it works or says what is missing; it is never ended by a signal.
#[track_caller]
fn limited(limit: &str) {
    let mut supervisor = demo().after(limit).start();
    supervisor.check_nothing();
    let terminal = &supervisor.terminal;
    let works = || terminal.screen_text().contains("F10 quit");
    let over = || {
        let home = supervisor.launch.the_home();
        crate::kit::supervisor::processes_of(home).is_empty()
    };
    supervisor.wait_until("it works, or has ended", || works() || over());
    if works() {
        supervisor.wait_for_state("idle", SOON);
        supervisor.keys([key::F10]);
    }
    let exit = supervisor.wait_for_exit(SOON);
    println!("{limit}: {exit:?}\n{}", supervisor.screen());
    assert_eq!(exit.signal, None, "{}", supervisor.screen());
    assert!(terminal.has_its_settings_back());
    assert_eq!(terminal.modes_left_on(), Vec::<&str>::new());
    let says = exit.code == 0 || !supervisor.screen().trim().is_empty();
    assert!(says, "it says why");
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn descriptors_from_64_down() {
    for limit in [64, 48, 32] {
        limited(&format!("ulimit -n {limit}"));
    }
}

#[test]
fn an_address_space_of_977_64_and_32_mib() {
    let demo = demo();
    for limit in [1_000_000, 65_536, 32_768] {
        let limit = format!("ulimit -v {limit}");
        // A debug build alone is larger than the last of them.
        let fits = Command::new("/bin/sh")
            .args(["-c", &format!("{limit}; exec {PITSTOP} --version")])
            .output();
        if fits.is_ok_and(|output| output.status.success()) {
            let mut supervisor = demo.clone().after(&limit).start();
            supervisor.check_nothing();
            let exit = supervisor.wait_for_exit(SOON);
            assert_eq!((exit.code, exit.signal), (1, None));
            let screen = supervisor.screen();
            assert!(
                screen.contains("the address space is limited to"),
                "{screen}"
            );
            assert!(supervisor.terminal.has_its_settings_back());
        }
    }
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn no_tmpdir() {
    Trial::begin(&demo().env("TMPDIR", "/nowhere")).goes_on();
}
