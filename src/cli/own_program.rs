//! The program of a supervisor of another version, which stands in for this one where this one does not understand the other: it is
//! there as long as the supervisor runs, also when its file was replaced.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::{fs::MetadataExt as _, process::CommandExt as _},
    process::Command,
    time::Instant,
};

use serde::Deserialize;

use pitstop_base::clean::one_line;
use pitstop_server::client::ApiClient;

/// What the status of every version says of its supervisor.
#[derive(Deserialize)]
struct OwnProgram {
    version: String,
    pid: u32,
}

/// The reason why the program of a supervisor cannot stand in.
#[derive(Debug, thiserror::Error)]
pub(super) enum CannotStandIn {
    #[error("the supervisor's answer is not in the form this version knows")]
    NotAnother,
    #[error("the program of pitstop {0}, which runs here, cannot be started: {1}")]
    NotStarted(String, io::Error),
}

impl CannotStandIn {
    /// Returns what to do about it.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NotAnother => "both must be of the same version; restart the older one",
            Self::NotStarted(..) => {
                "detach and stop work all the same: `pitstop detach`, `pitstop stop`"
            }
        }
    }
}

/// Becomes the program of a supervisor, called with these words; returns why that cannot be done.
pub(super) fn become_it(
    supervisor: &ApiClient,
    deadline: Instant,
    words: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> CannotStandIn {
    let answer = supervisor.get("/status", deadline).ok();
    let own = answer.and_then(|answer| serde_json::from_slice(&answer.body).ok());
    let Some(OwnProgram { version, pid }) = own else {
        return CannotStandIn::NotAnother;
    };
    let file = format!("/proc/{pid}/exe");
    // It would call itself for ever.
    if is_same(&file, "/proc/self/exe") {
        return CannotStandIn::NotAnother;
    }
    let version = one_line(&version).into_owned();
    eprintln!("pitstop: the session here is run by pitstop {version}: its own program shows it");
    let error = Command::new(file).arg0("pitstop").args(words).exec();
    CannotStandIn::NotStarted(version, error)
}

/// Reports whether two paths name the same file.
fn is_same(one: &str, other: &str) -> bool {
    let place = |path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    place(one).is_some_and(|one| place(other) == Some(one))
}
