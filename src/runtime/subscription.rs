//! The system's notices of changed files. All readers of a process share one source: a user may have few of them (128 on Linux, for
//! all of the user's programs), which forty sessions with a source for each reader would use up.
//!
//! The thread of the source takes only the lock of the readers, so that it goes on while a directory is added under the other lock.

use std::{
    collections::BTreeMap,
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use notify::{Error, Event, RecommendedWatcher, RecursiveMode, Result, Watcher as _};
use parking_lot::Mutex;

/// The source, there since the first directory. It is locked before the readers.
static SOURCE: Mutex<Option<RecommendedWatcher>> = Mutex::new(None);

/// The readers by their numbers.
static READERS: Mutex<BTreeMap<u64, Reader>> = Mutex::new(BTreeMap::new());

/// The number of the next reader.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A reader's part in the notices, which ends when it is dropped.
#[derive(Debug)]
pub struct Subscription(u64);

struct Reader {
    /// Called on the thread of the source with each event.
    handler: Box<dyn Fn(Event) + Send>,
    /// The directories as the reader names them, by their real paths: one directory has one path at the source.
    directories: BTreeMap<PathBuf, PathBuf>,
}

impl fmt::Debug for Reader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.directories.fmt(formatter)
    }
}

impl Reader {
    /// Returns the path of an event as the reader names it; `None` if it does not watch that directory.
    fn named(&self, path: &Path) -> Option<PathBuf> {
        if let Some(directory) = self.directories.get(path) {
            return Some(directory.clone());
        }
        let directory = self.directories.get(path.parent()?)?;
        Some(directory.join(path.file_name()?))
    }
}

/// Passes an event on to the readers that it concerns.
fn dispatch(event: Result<Event>) {
    let Ok(event) = event else { return };
    for reader in READERS.lock().values() {
        let paths: Vec<_> = event
            .paths
            .iter()
            .filter_map(|path| reader.named(path))
            .collect();
        if event.need_rescan() || !paths.is_empty() {
            (reader.handler)(Event {
                paths,
                ..event.clone()
            });
        }
    }
}

impl Subscription {
    /// Creates a part of a reader that watches nothing yet.
    pub fn new(handler: impl Fn(Event) + Send + 'static) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let reader = Reader {
            handler: Box::new(handler),
            directories: BTreeMap::new(),
        };
        READERS.lock().insert(number, reader);
        Self(number)
    }

    /// Watches a directory from now on, but not what is in the directories in it. One that was made again is watched by another call.
    pub fn watch(&self, directory: &Path) -> Result<()> {
        let real = fs::canonicalize(directory).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::path_not_found(),
            _ => Error::io(error),
        })?;
        let mut source = SOURCE.lock();
        let source = match &mut *source {
            Some(source) => source,
            none => none.insert(notify::recommended_watcher(dispatch)?),
        };
        if let Some(reader) = READERS.lock().get_mut(&self.0) {
            reader
                .directories
                .insert(real.clone(), directory.to_owned());
        }
        source.watch(&real, RecursiveMode::NonRecursive)
    }

    /// Stops watching a directory.
    pub fn unwatch(&self, directory: &Path) {
        self.release(|named| named == directory);
    }

    /// Stops watching the directories of these names, which the source watches on where another reader does.
    fn release(&self, is_released: impl Fn(&Path) -> bool) {
        let mut source = SOURCE.lock();
        let mut readers = READERS.lock();
        let Some(reader) = readers.get_mut(&self.0) else {
            return;
        };
        let released = reader
            .directories
            .extract_if(.., |_, named| is_released(named));
        let mut unused: Vec<PathBuf> = released.map(|(real, _)| real).collect();
        unused.retain(|real| {
            !readers
                .values()
                .any(|one| one.directories.contains_key(real))
        });
        drop(readers);
        for directory in unused {
            // It may be gone.
            let _ = source.as_mut().map(|source| source.unwatch(&directory));
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.release(|_| true);
        READERS.lock().remove(&self.0);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{
        collections::BTreeSet,
        os::unix::fs::symlink,
        sync::mpsc::{Receiver, channel},
        time::Duration,
    };

    use super::*;

    /// Watches a directory; returns the paths that change in it.
    fn watching(directory: &Path) -> (Subscription, Receiver<PathBuf>) {
        let (sender, changes) = channel();
        let subscription = Subscription::new(move |event| {
            for path in event.paths {
                // The test may be over.
                let _ = sender.send(path);
            }
        });
        subscription.watch(directory).unwrap();
        (subscription, changes)
    }

    /// Returns the paths up to and with the one of a file that was changed last.
    fn until(changes: &Receiver<PathBuf>, last: &Path) -> BTreeSet<PathBuf> {
        let mut seen = BTreeSet::new();
        while !seen.contains(last) {
            seen.insert(changes.recv_timeout(Duration::from_secs(20)).unwrap());
        }
        seen
    }

    #[test]
    fn each_reader_hears_of_its_own_directories_by_its_own_names() {
        let home = tempfile::tempdir().unwrap();
        let [real, link, other] = ["real", "link", "other"].map(|name| home.path().join(name));
        fs::create_dir(&real).unwrap();
        fs::create_dir(&other).unwrap();
        symlink(&real, &link).unwrap();
        let (direct, of_direct) = watching(&real);
        let (_by_link, of_link) = watching(&link);
        let (_apart, of_other) = watching(&other);
        fs::write(real.join("a"), "").unwrap();
        fs::write(other.join("b"), "").unwrap();
        assert_eq!(until(&of_direct, &real.join("a")), [real.join("a")].into());
        assert_eq!(until(&of_link, &link.join("a")), [link.join("a")].into());
        assert_eq!(until(&of_other, &other.join("b")), [other.join("b")].into());
        drop(direct);
        fs::write(real.join("c"), "").unwrap();
        until(&of_link, &link.join("c"));
        let rest: BTreeSet<_> = of_direct.iter().collect();
        assert!(!rest.contains(&real.join("c")));
    }
}
