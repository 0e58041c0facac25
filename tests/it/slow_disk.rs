//! A disk that takes its time: a sync that does not return holds up no key, and nothing that was to be written is lost.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use crate::kit::supervisor::{Launch, SOON, Supervisor, key};

/// How much later a key may be drawn while a sync does not return.
const DELAY: Duration = Duration::from_millis(50);

/// How many keys are timed.
const KEYS: usize = 25;

/// A disk whose syncs can be held up.
struct Disk {
    held: PathBuf,
}

impl Disk {
    fn of(launch: Launch) -> (Self, Launch) {
        let held = launch.the_home().path("held");
        let launch = launch.env("PITSTOP_HOLD_SYNC", &held);
        (Self { held }, launch)
    }

    fn hold(&self) {
        fs::write(&self.held, "").expect("a file");
    }

    fn release(&self) {
        fs::remove_file(&self.held).expect("it is there");
    }
}

/// Waits until the scratchpad is being written: its new text lies beside it.
fn wait_for_sync(supervisor: &Supervisor) {
    let directory = supervisor.launch.project().join(".pitstop");
    let is_written = || {
        let entries = fs::read_dir(&directory).expect("a directory");
        let mut names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.any(|name| name.starts_with(".scratchpad.md.aside-"))
    };
    supervisor.wait_until("the scratchpad is being written", is_written);
}

/// The time from a key to its echo, in the middle of many.
fn echo_time(supervisor: &Supervisor, line: &str) -> Duration {
    let mut times: Vec<Duration> = (1..=KEYS)
        .map(|count| {
            let wanted = format!("{line}{}", "x".repeat(count));
            let key = if count == 1 { wanted.as_str() } else { "x" };
            let typed = Instant::now();
            supervisor.keys([key]);
            supervisor.wait_for_text(&wanted, SOON);
            typed.elapsed()
        })
        .collect();
    supervisor.keys([key::ENTER]);
    // The program repeats the line: late, that would come into the middle of the next one.
    let whole = format!("{line}{}", "x".repeat(KEYS));
    let repeated = |screen: &str| screen.matches(&whole).count() >= 2;
    supervisor.terminal.wait_for(repeated, SOON);
    times.sort_unstable();
    times[KEYS / 2]
}

#[test]
fn a_sync_that_does_not_return_holds_up_no_key() {
    let (disk, launch) = Disk::of(Launch::generic("cat").notes("- [ ] next\n"));
    let supervisor = launch.start_idle();
    let before = echo_time(&supervisor, "free");
    disk.hold();
    supervisor.keys([key::F3, "e", "mine ", key::ESC, key::ESC]);
    wait_for_sync(&supervisor);
    let held = echo_time(&supervisor, "held");
    assert!(held <= before + DELAY, "{held:?} instead of {before:?}");
    assert_eq!(supervisor.notes(), "- [ ] next\n");
    // What is written meanwhile follows.
    supervisor.keys([key::F3, "e", "and more ", key::ESC, key::ESC]);
    let shown = |screen: &str| screen.contains("and more mine");
    supervisor.terminal.wait_for(shown, SOON);
    disk.release();
    let written = || supervisor.notes() == "and more mine \n- [ ] next\n";
    supervisor.wait_until("both notes are in the file", written);
}

#[test]
fn leaving_waits_for_what_is_still_to_be_written() {
    let (disk, launch) = Disk::of(Launch::generic("cat").notes("- [ ] next\n"));
    let supervisor = launch.start_idle();
    let agent = supervisor.agent_pid();
    disk.hold();
    supervisor.keys([key::F3, "e", "mine ", key::ESC, key::ESC]);
    wait_for_sync(&supervisor);
    supervisor.keys([key::F10]);
    let gone = || rustix::process::test_kill_process(agent).is_err();
    supervisor.wait_until("the agent is gone", gone);
    assert_eq!(supervisor.notes(), "- [ ] next\n");
    disk.release();
    assert_eq!(supervisor.wait_for_exit(SOON).code, 0);
    assert_eq!(supervisor.notes(), "mine \n- [ ] next\n");
}
