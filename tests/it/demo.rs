//! `pitstop demo` as users call it: in a temporary project of its own, of which nothing is left.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::SystemTime,
};

use rustix::process::Signal;
use serde_json::Value;

use crate::kit::{
    output::{all, text},
    supervisor::{Launch, PITSTOP, SOON, Supervisor, key},
};

/// Every file and directory below `root`, with its content and when it was changed.
fn everything(root: &Path) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut to_read = vec![root.to_owned()];
    while let Some(path) = to_read.pop() {
        let about = fs::symlink_metadata(&path).unwrap();
        let mut content = Vec::new();
        if about.is_dir() {
            let entries = fs::read_dir(&path)
                .unwrap()
                .map(|entry| entry.unwrap().path());
            to_read.extend(entries);
        } else {
            content = fs::read(&path).unwrap();
        }
        found.insert(path, (about.modified().unwrap(), content));
    }
    found
}

/// The directories of the demos below the temporary directory.
fn places(temporary: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(temporary).unwrap();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

/// A command that speaks to the demo in `place`.
pub fn command(supervisor: &Supervisor, place: &Path, args: &[&str]) -> Command {
    let mut command = supervisor.launch.command(args);
    command
        .current_dir(place.join("tidepool"))
        .env("XDG_STATE_HOME", place.join("state"));
    command
}

/// Waits until the demo in `place` has worked, so that everything it writes is there.
fn has_worked(supervisor: &Supervisor, place: &Path) {
    supervisor.wait_until("a project", || place.join("tidepool").is_dir());
    let status = || -> Option<Value> {
        let output = command(supervisor, place, &["status", "--json"])
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).ok()
    };
    supervisor.wait_until("a turn is counted", || {
        status().is_some_and(|status| status["context"]["used"].as_u64() > Some(20_000))
    });
    for made in [
        "tidepool/.pitstop/scratchpad.md",
        "state/pitstop/pitstop.db",
    ] {
        supervisor.wait_until(made, || place.join(made).exists());
    }
}

fn ended(supervisor: &Supervisor) -> String {
    supervisor.signal(Signal::TERM);
    supervisor.wait_for_exit(SOON);
    String::from_utf8_lossy(&supervisor.terminal.output()).into_owned()
}

#[test]
fn demos_leave_the_user_s_files_alone_run_side_by_side_and_are_removed() -> io::Result<()> {
    let temporary = tempfile::tempdir()?;
    let temporary = temporary.path().canonicalize()?;
    let launch = Launch::temporary_demo(&temporary, &[]);
    let home = launch.the_home();
    let config = home.path("config/pitstop");
    fs::create_dir(&config)?;
    // A database of the user's own is not the demo's.
    let url = home.path("mine.db");
    let text = format!("[store]\nurl = \"sqlite://{}\"\n", url.display());
    fs::write(config.join("config.toml"), text)?;
    fs::write(home.project().join("main.rs"), "fn main() {}\n")?;
    let before = everything(&home.path(""));

    let first = launch.start();
    first.wait_until("a directory", || !places(&temporary).is_empty());
    let one = places(&temporary).remove(0);
    has_worked(&first, &one);
    let second = launch.start();
    second.wait_until("another", || places(&temporary).len() == 2);
    let other = places(&temporary).into_iter().find(|place| *place != one);
    let other = other.expect("a directory of its own");
    has_worked(&second, &other);
    has_worked(&first, &one);

    let said = ended(&first);
    assert!(said.contains("project and database are removed"), "{said}");
    assert_eq!(places(&temporary), std::slice::from_ref(&other));
    // One that is killed leaves its directory to the next.
    let mut second = second;
    second.check_nothing();
    second.signal(Signal::KILL);
    second.wait_for_exit(SOON);
    assert_eq!(places(&temporary), std::slice::from_ref(&other));
    let third = launch.start();
    third.wait_until("the leftover is swept", || {
        !other.exists() && places(&temporary).len() == 1
    });
    let place = places(&temporary).remove(0);
    has_worked(&third, &place);
    ended(&third);
    assert_eq!(places(&temporary), Vec::<PathBuf>::new());
    // So does a run of the demo, with no terminal.
    let args = "run --demo --headless --max-iterations 1 --max-time 1s --task";
    let args: Vec<&str> = args.split(' ').chain(["Build it"]).collect();
    let run = launch.command(&args).env("TMPDIR", &temporary).output()?;
    assert_eq!(run.status.code(), Some(3), "{}", all(&run));
    assert_eq!(places(&temporary), Vec::<PathBuf>::new());

    let after = everything(&home.path(""));
    let changed: Vec<&PathBuf> = before
        .keys()
        .chain(after.keys())
        .filter(|path| before.get(*path) != after.get(*path))
        .collect();
    assert_eq!(changed, Vec::<&PathBuf>::new());
    Ok(())
}

#[test]
fn a_demo_that_is_kept_says_where_and_is_not_swept() -> io::Result<()> {
    let temporary = tempfile::tempdir()?;
    let temporary = temporary.path().canonicalize()?;
    let kept = Launch::temporary_demo(&temporary, &["--keep"]).start();
    kept.wait_until("a directory", || !places(&temporary).is_empty());
    let place = places(&temporary).remove(0);
    has_worked(&kept, &place);
    let said = ended(&kept);
    assert!(said.contains("is kept in"), "{said}");
    let name = place.file_name().unwrap().to_string_lossy().into_owned();
    assert!(said.contains(&name), "{said}");

    let next = Launch::temporary_demo(&temporary, &[]).start();
    next.wait_until("another", || places(&temporary).len() == 2);
    let own = places(&temporary).into_iter().find(|own| *own != place);
    has_worked(&next, &own.expect("a directory of its own"));
    ended(&next);
    assert_eq!(places(&temporary), std::slice::from_ref(&place));
    // The command that it has printed.
    let history = command(&kept, &place, &["history"]).output()?;
    assert!(text(&history).contains('1'), "{history:?}");
    Ok(())
}

/// No list of sessions names it: its way back is printed, and it ends with its last terminal.
#[test]
fn a_detached_demo_is_found_again_by_the_command_that_is_printed() -> io::Result<()> {
    let temporary = tempfile::tempdir()?;
    let temporary = temporary.path().canonicalize()?;
    let demo = Launch::temporary_demo(&temporary, &[]).start_showing("F10 quit");
    demo.keys([key::PREFIX, "d"]);
    demo.wait_for_exit(SOON);
    let said = String::from_utf8_lossy(&demo.terminal.output()).into_owned();
    let command = said.rsplit_once("goes on: `").expect("a way back").1;
    let command = command.split('`').next().expect("a command");
    let program = format!("'{PITSTOP}' attach");
    let command = command.replace("pitstop attach", &program);
    let there = demo.launch.clone().in_directory(&temporary);
    let again = there.terminal("/bin/sh", ["-c", &command], (100, 30));
    again.wait_for_text("F10 quit", SOON);
    assert_eq!(places(&temporary).len(), 1);
    drop(again);
    demo.wait_until("it is removed", || places(&temporary).is_empty());
    Ok(())
}

#[test]
fn faults_of_the_project_s_configuration_do_not_concern_a_demo_elsewhere() -> io::Result<()> {
    let temporary = tempfile::tempdir()?;
    let launch = Launch::temporary_demo(&temporary.path().canonicalize()?, &[]);
    let own = launch.project().join(".pitstop");
    fs::create_dir(&own)?;
    fs::write(own.join("config.toml"), "[guard]\nwarn = \"never\"\n")?;
    let supervisor = launch.start_showing("F10 quit");
    ended(&supervisor);
    Ok(())
}
