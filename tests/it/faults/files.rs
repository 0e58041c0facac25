//! What becomes of the scratchpad and of the configuration.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{MINE, Trial, demo, make_fifo, make_hole, remove};
use crate::kit::supervisor::{Launch, SOON};

/// Spoils the scratchpad of a session. The work goes on; a reboot goes ahead or is refused with the reason, and whatever
/// the file was before is not lost.
#[track_caller]
fn spoil(harm: impl Fn(&Path)) {
    let trial = Trial::begin(&demo());
    let file = trial.supervisor.launch.scratchpad();
    harm(&file);
    trial.turn("go on");
    trial.answers();
    trial.reboots_or_is_refused();
    trial.answers();
    trial.leaves();
}

/// The text of the notes is put back, or asked for: it is known, whatever has become of the file.
#[track_caller]
fn keeps(harm: impl Fn(&Path)) {
    let trial = Trial::begin(&demo());
    harm(&trial.supervisor.launch.scratchpad());
    trial.turn("go on");
    let known = || trial.supervisor.handoff_text().contains(MINE);
    trial.supervisor.wait_until("the notes are known", known);
    trial.answers();
    trial.leaves();
}

macro_rules! harms {
    ($with:ident $($name:ident: $harm:expr;)*) => { $(
        #[test]
        #[ignore = "a fault of `cargo run --example faults`"]
        fn $name() {
            $with($harm);
        }
    )* };
}

harms! { keeps
    scratchpad_a_directory: |path| {
        remove(path);
        fs::create_dir(path).expect("a directory");
    };
    scratchpad_a_pipe: |path| {
        remove(path);
        make_fifo(path);
    };
    scratchpad_a_link_out: |path| {
        let outside = path.with_file_name("../outside.md");
        fs::write(&outside, "- [ ] read from elsewhere\n").expect("written");
        remove(path);
        symlink("../outside.md", path).expect("a link");
    };
    scratchpad_endless: |path| {
        remove(path);
        symlink("/dev/zero", path).expect("a link");
    };
    scratchpad_a_link_to_itself: |path| {
        remove(path);
        symlink(path, path).expect("a link");
    };
    scratchpad_deleted: remove;
    scratchpad_without_a_mode: |path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o0)).expect("a mode");
    };
    scratchpad_sparse: |path| {
        remove(path);
        make_hole(path, 10 << 30);
    };
}

harms! { spoil
    scratchpad_binary: |path| {
        let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        fs::write(path, bytes).expect("written");
    };
    scratchpad_no_utf8: |path| fs::write(path, b"# Plan\n- [ ] caf\xe9 \xff\xfe\n").expect("written");
    scratchpad_nul_and_escape: |path| {
        fs::write(path, "- [ ] a\0b\x1b]0;owned\x07\x1b[2J\n").expect("written");
    };
    scratchpad_a_line_of_64_mb: |path| fs::write(path, "x".repeat(64 << 20)).expect("written");
}

fn file(launch: &Launch) -> std::path::PathBuf {
    let file = launch.the_home().path("config/pitstop/config.toml");
    fs::create_dir_all(file.parent().expect("a directory")).expect("made");
    file
}

/// A configuration that is spoiled while pitstop runs is not taken, and at a start it is refused before the terminal is
/// touched.
#[track_caller]
fn config(harm: impl Fn(&Path)) {
    let launch = demo();
    let file = file(&launch);
    fs::write(&file, "[guard]\nwarn = 60\n").expect("written");
    let trial = Trial::begin(&launch);
    trial.supervisor.wait_for_text("warn 108k", SOON);
    let aside = file.with_file_name("aside");
    harm(&aside);
    // In one step: without a file, and with the beginning of a long one, the defaults would be in force.
    let flags = RenameFlags::EXCHANGE;
    renameat_with(CWD, &aside, CWD, &file, flags).expect("exchanged");
    remove(&aside);
    trial
        .supervisor
        .wait_for_text("the configuration is not taken", SOON);
    trial.supervisor.wait_for_text("warn 108k", SOON);
    trial.goes_on();
    let mut again = launch.start();
    again.check_nothing();
    let exit = again.wait_for_exit(SOON);
    assert_eq!((exit.code, exit.signal), (2, None), "{}", again.screen());
    assert!(again.screen().contains("config.toml"), "{}", again.screen());
    assert!(!String::from_utf8_lossy(&again.terminal.output()).contains("\x1b[?1049h"));
}

harms! { config
    config_garbage: |path| fs::write(path, [0x5a, 0xff, 0, 0x1b].repeat(100)).expect("written");
    config_unknown_key: |path| fs::write(path, "[guard]\nwarm = 60\n").expect("written");
    config_a_directory: |path| fs::create_dir(path).expect("a directory");
    config_a_pipe: make_fifo;
    config_endless: |path| symlink("/dev/zero", path).expect("a link");
    config_of_10_mb: |path| fs::write(path, "# a comment\n".repeat(900_000)).expect("written");
}
