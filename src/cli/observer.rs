//! The search for the supervisors that a report from a directory concerns, and the sending of the report.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use pitstop_core::config::load::paths::{Paths, secrets_file_of};
use pitstop_server::client::{ApiClient, OBSERVE_VARIABLE};

/// The time that reporting to a supervisor may take: the reporter is done with its work and waits for nothing else.
const TELL_LIMIT: Duration = Duration::from_secs(2);

/// Returns clients of the supervisors that `directory` concerns: the one that hosts this process, if one does, and those
/// of the directories from this one up to `top`, or up to the root.
pub(super) fn find_doors(directory: &Path, top: Option<&Path>) -> Vec<ApiClient> {
    let hosting = env::var_os(OBSERVE_VARIABLE).map(Into::into);
    let mut found: Vec<ApiClient> = Vec::new();
    let above = directory
        .ancestors()
        .take_while(|place| top.is_none_or(|top| place.starts_with(top)))
        .filter_map(|place| secrets_file_of(place, "observe").ok());
    for file in hosting.into_iter().chain(above) {
        if let Ok(door) = ApiClient::from_file(&file)
            && found.iter().all(|known| known.socket() != door.socket())
        {
            found.push(door);
        }
    }
    found
}

/// Returns clients of this user's supervisors that are not among those `known`.
pub(super) fn other_doors(known: &[ApiClient]) -> Vec<ApiClient> {
    let Ok(paths) = Paths::of_process(Path::new("/")) else {
        return Vec::new();
    };
    let files = paths
        .run_dirs()
        .flat_map(|dir| secrets_files(dir, "observe"));
    let clients = files.filter_map(|file| ApiClient::from_file(&file).ok());
    let is_known = |one: &ApiClient| known.iter().any(|known| known.socket() == one.socket());
    clients.filter(|one| !is_known(one)).collect()
}

/// Returns the secrets files in the directory of sockets that have this ending.
pub(super) fn secrets_files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == ending))
        .collect()
}

/// Posts a report to a supervisor. An error is ignored: it does not affect the work that was done.
pub(super) fn post_report(door: &ApiClient, path: &str, body: &impl Serialize) {
    if let Ok(json) = serde_json::to_vec(body) {
        door.post(path, &json, Instant::now() + TELL_LIMIT).ok();
    }
}
