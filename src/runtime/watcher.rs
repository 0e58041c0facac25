//! Watches files by the system's own notices, so that an idle supervisor sleeps.
//!
//! Directories are watched, not files: editors and we ourselves replace files by renaming.

use std::{
    cell::OnceCell,
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;

/// Notices of changed paths.
#[derive(Debug)]
pub struct Watcher {
    /// There since the first directory. `None` in it: the system gives no notices (its limit of watches is reached, a
    /// network file system), and hooks remain the sign to read again.
    notices: OnceCell<Option<RecommendedWatcher>>,
    directories: BTreeSet<PathBuf>,
    /// Paths that changed.
    pub changed: mpsc::Receiver<PathBuf>,
    sender: mpsc::Sender<PathBuf>,
}

impl Default for Watcher {
    /// Watches nothing.
    fn default() -> Self {
        let (sender, changed) = mpsc::channel(256);
        Self {
            notices: OnceCell::new(),
            directories: BTreeSet::new(),
            changed,
            sender,
        }
    }
}

fn start(sender: mpsc::Sender<PathBuf>) -> Option<RecommendedWatcher> {
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        // Reading is no change, and we read.
        if event.kind.is_access() {
            return;
        }
        for path in event.paths {
            // A full queue already holds a reason to read.
            let _ = sender.try_send(path);
        }
    });
    watcher
        .inspect_err(|error| tracing::warn!(%error, "files cannot be watched"))
        .ok()
}

impl Watcher {
    /// Watches the directory of a file.
    pub fn watch_beside(&mut self, file: &Path) {
        let Some(directory) = file.parent() else {
            return;
        };
        self.notices.get_or_init(|| start(self.sender.clone()));
        let Some(Some(watcher)) = self.notices.get_mut() else {
            return;
        };
        if self.directories.contains(directory) {
            return;
        }
        match watcher.watch(directory, RecursiveMode::NonRecursive) {
            Ok(()) => {
                self.directories.insert(directory.to_owned());
            }
            // It may come into being later: the next call tries again.
            Err(error) => tracing::debug!(%error, directory = %directory.display(), "not watched"),
        }
    }

    /// Stops watching the directory of a file.
    pub fn forget_beside(&mut self, file: &Path) {
        let (Some(directory), Some(Some(watcher))) = (file.parent(), self.notices.get_mut()) else {
            return;
        };
        if self.directories.remove(directory) {
            // It is gone, then.
            let _ = watcher.unwatch(directory);
        }
    }
}
