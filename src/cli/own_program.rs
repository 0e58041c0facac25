//! The program of a supervisor of another version, which is run in place of this one where this one does not understand that
//! supervisor: it can be run as long as the supervisor runs, even if its file was replaced.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{fs::MetadataExt as _, process::CommandExt as _},
    process::Command,
    time::Instant,
};

use serde::Deserialize;

use super::out::{self, Failure};
use pitstop_base::clean::one_line;
use pitstop_server::client::ApiClient;

/// The fields about the supervisor that the status has in every version.
#[derive(Deserialize)]
struct OwnProgram {
    version: String,
    pid: u32,
}

/// Becomes the program of a supervisor, called with these words; returns why that cannot be done.
pub(super) fn become_it(
    supervisor: &ApiClient,
    deadline: Instant,
    words: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Failure {
    let not_another = || {
        out::failed(
            "the supervisor's answer is not in the form this version knows",
            "both must be of the same version; restart the older one",
        )
    };
    let answer = supervisor.get("/status", deadline).ok();
    let own = answer.and_then(|answer| serde_json::from_slice(&answer.body).ok());
    let Some(OwnProgram { version, pid }) = own else {
        return not_another();
    };
    let file = format!("/proc/{pid}/exe");
    // It would call itself for ever.
    if is_same(&file, "/proc/self/exe") {
        return not_another();
    }
    let version = one_line(&version).into_owned();
    eprintln!("pitstop: the session here is run by pitstop {version}: its own program shows it");
    let error = Command::new(file).arg0("pitstop").args(words).exec();
    out::failed(
        format!("the program of pitstop {version}, which runs here, cannot be started: {error}"),
        "detach and stop work all the same: `pitstop detach`, `pitstop stop`",
    )
}

/// Reports whether two paths name the same file.
fn is_same(one: &str, other: &str) -> bool {
    let place = |path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    place(one).is_some_and(|one| place(other) == Some(one))
}
