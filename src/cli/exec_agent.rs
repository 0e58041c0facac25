//! `pitstop exec-agent REGISTRY PROGRAM ARGS…`: becomes the agent, after making sure that it dies with its pitstop, or that
//! the next start finds it.
//!
//! The command is hidden: only pitstop's own panes start it. The setting to be signalled at the parent's death survives
//! `exec`, and making it here, in a process of its own, needs no code between `fork` and `exec`.

use std::{ffi::OsString, os::unix::process::CommandExt, path::Path, process::Command};

use pitstop_base::process;
use pitstop_store::agent_registry;

/// The exit code of a shell for a command that cannot be run.
const CANNOT_RUN: i32 = 127;

/// Becomes the program; returns only if that fails.
pub fn run(args: &[OsString]) -> i32 {
    die_with_parent();
    let [registry, program, args @ ..] = args else {
        eprintln!("error: no program to run: expected a registry and a program");
        return CANNOT_RUN;
    };
    register_process(Path::new(registry));
    let error = Command::new(program).args(args).exec();
    eprintln!("error: cannot run {}: {error}", program.display());
    CANNOT_RUN
}

/// Requests a signal at the parent's death: SIGTERM, not SIGKILL, so that the client still writes its transcript and
/// runs its hooks. One that ignores it is ended at the next start of pitstop.
#[cfg(target_os = "linux")]
fn die_with_parent() {
    use rustix::process::{Signal, getpid, getppid, kill_process, set_parent_process_death_signal};
    let parent = getppid();
    if let Err(error) = set_parent_process_death_signal(Some(Signal::TERM)) {
        eprintln!("warning: the agent may outlive pitstop: {error}");
    }
    // The parent may have died before the request.
    if getppid() != parent || parent.is_none() {
        let _ = kill_process(getpid(), Signal::TERM);
    }
}

/// Does nothing: on other systems the closed terminal's SIGHUP and the sweep at the next start must suffice.
#[cfg(not(target_os = "linux"))]
fn die_with_parent() {}

/// Registers this process before it becomes the agent: see [`agent_registry`]. An agent is worth more than its line: a line
/// that cannot be written stops nothing, and the database records the agent, too.
fn register_process(registry: &Path) {
    // The registry could not be made, and the person has been warned.
    if registry.as_os_str().is_empty() {
        return;
    }
    let registered = match process::stamp(std::process::id()) {
        Some(stamp) => agent_registry::register(registry, &stamp),
        None => Err(std::io::Error::other(
            "cannot read the start time of pitstop's own process",
        )),
    };
    if let Err(error) = registered {
        eprintln!("warning: the agent may outlive pitstop: {error}");
    }
}
