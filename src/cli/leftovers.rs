//! The sockets and secrets of supervisors that were killed: no process answers there any more.
//!
//! Each start removes those of its own project; the others stay until they are searched for.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use pitstop_core::config::load::paths::Paths;
use pitstop_server::client;

/// The age that a file must have: the files of a supervisor that is just starting are not leftovers.
const SETTLED: Duration = Duration::from_secs(60);

/// The endings of a supervisor's files for its project: the socket, and the secrets of the clients that may ask.
const ENDINGS: [&str; 4] = ["sock", "control", "observe", "bridge"];

/// The files that one dead supervisor left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Its project's hash.
    pub hash: String,
    /// The files.
    pub files: Vec<PathBuf>,
}

impl Leftover {
    /// Removes the files; one that is gone is not an error.
    pub fn remove_files(&self) -> io::Result<()> {
        for file in &self.files {
            match fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Finds the files that dead supervisors left in the directory of sockets and tokens, and in that which is used in its place.
pub fn find_leftovers(paths: &Paths, now: SystemTime) -> Vec<Leftover> {
    let places = paths.run_dirs();
    places.flat_map(|place| find_in(place, now)).collect()
}

fn find_in(run_dir: &Path, now: SystemTime) -> Vec<Leftover> {
    let names: BTreeSet<String> = fs::read_dir(run_dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (hash, ending) = name.split_once('.')?;
            let ours = ENDINGS.contains(&ending)
                && hash.len() == 16
                && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            ours.then(|| hash.to_owned())
        })
        .collect();
    names
        .into_iter()
        .filter_map(|hash| of(run_dir, hash, now))
        .collect()
}

fn of(run_dir: &Path, hash: String, now: SystemTime) -> Option<Leftover> {
    let at = |ending: &str| run_dir.join(format!("{hash}.{ending}"));
    let files = ENDINGS.into_iter().map(at);
    let files: Vec<PathBuf> = files
        .filter(|file| fs::symlink_metadata(file).is_ok())
        .collect();
    let is_settled = |file: &PathBuf| {
        let changed = fs::symlink_metadata(file).and_then(|metadata| metadata.modified());
        changed.is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age >= SETTLED))
    };
    // The socket may be elsewhere if its path would be too long here: the secrets name it.
    let named = client::ApiClient::from_file(&at("control"));
    let socket = named.map_or_else(|_| at("sock"), |door| door.socket().to_owned());
    let dead = files.iter().all(is_settled) && !client::is_answered(&socket);
    dead.then_some(Leftover { hash, files })
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn what_is_answered_or_young_is_no_leftover() {
        let dir = tempfile::tempdir().unwrap();
        let (dead, live) = ("0123456789abcdef", "fedcba9876543210");
        let path = |name: String| dir.path().join(name);
        drop(UnixListener::bind(path(format!("{dead}.sock"))).unwrap());
        fs::write(path(format!("{dead}.observe")), "x").unwrap();
        fs::write(path("notes.observe".to_owned()), "x").unwrap();
        let _listening = UnixListener::bind(path(format!("{live}.sock"))).unwrap();

        assert_eq!(find_in(dir.path(), SystemTime::now()), []);
        let later = SystemTime::now() + SETTLED * 2;
        let found = find_in(dir.path(), later);
        let names: Vec<_> = found.iter().map(|one| one.hash.as_str()).collect();
        assert_eq!(names, [dead]);
        assert_eq!(found[0].files.len(), 2);
        found[0].remove_files().unwrap();
        found[0].remove_files().unwrap();
        assert_eq!(find_in(dir.path(), later), []);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
