//! Watches files by the system's own notices, so that an idle supervisor sleeps.
//!
//! Directories are watched, not files: editors and we ourselves replace files by renaming.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;

/// Notices of changed paths.
#[derive(Debug)]
pub struct Watcher {
    notices: Option<RecommendedWatcher>,
    directories: BTreeSet<PathBuf>,
    /// Paths that changed.
    pub changed: mpsc::Receiver<PathBuf>,
    _keep: mpsc::Sender<PathBuf>,
}

impl Watcher {
    /// Starts watching nothing. Where the system gives no notices (its limit of watches is reached, a network file
    /// system) it says so, and hooks remain the sign to read again.
    #[must_use]
    pub fn start() -> Self {
        let (sender, changed) = mpsc::channel(256);
        let keep = sender.clone();
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
        let watcher = watcher
            .inspect_err(|error| tracing::warn!(%error, "files cannot be watched"))
            .ok();
        Self {
            notices: watcher,
            directories: BTreeSet::new(),
            changed,
            _keep: keep,
        }
    }

    /// Watches the directory of a file.
    pub fn watch_beside(&mut self, file: &Path) {
        let Some(directory) = file.parent() else {
            return;
        };
        let Some(watcher) = &mut self.notices else {
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
        let (Some(directory), Some(watcher)) = (file.parent(), &mut self.notices) else {
            return;
        };
        if self.directories.remove(directory) {
            // It is gone, then.
            let _ = watcher.unwatch(directory);
        }
    }
}
