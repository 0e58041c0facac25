//! Notifies when files of pitstop's own may have been removed, replaced or moved away, so that the task that keeps them sleeps.
//!
//! ```text
//!   watch(files) ──► look at them, make again what is gone ──► changed() ──► watch(files) ──► look …
//! ```
//!
//! They are watched first and then looked at: what happens between the two is noticed. Their directories are watched, for what
//! comes and goes by their names and for being removed or moved themselves. What gives no notice (a directory further above that is
//! moved, a network file system) is found by the look that [`Notices::changed`] asks for after half a minute at the latest.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use notify::{ErrorKind, Event, EventKind, event::ModifyKind};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use super::subscription::Subscription;

/// The time between two looks at the files while all of them are watched.
const LOOK: Duration = Duration::from_secs(30);

/// The time between two looks while one is not watched or not where it should be.
const LOOK_SOON: Duration = Duration::from_secs(1);

/// The time to wait after a notice: a directory is removed file by file, and cannot be while a file is made in it again.
const SETTLE: Duration = Duration::from_millis(200);

/// The notices of changes to a set of files.
#[derive(Debug)]
pub struct Notices {
    /// The name of the files, for the log.
    what: &'static str,
    /// The part in the system's notices, dropped with its directories when others are set.
    subscription: Option<Subscription>,
    woken: Arc<Notify>,
    /// The reason why not all of the files are watched, as it was logged last.
    refused: Option<String>,
}

impl Notices {
    /// Creates notices of no files yet.
    pub fn new(what: &'static str) -> Self {
        Self {
            what,
            subscription: None,
            woken: Arc::default(),
            refused: None,
        }
    }

    /// Watches these files or directories from now on, and no others. It must be called before they are looked at, each time
    /// after [`Self::changed`] and after anything was made again.
    pub fn watch(&mut self, files: impl IntoIterator<Item = PathBuf>) {
        let files: BTreeSet<PathBuf> = files.into_iter().collect();
        let error = self.try_watch(&files).err();
        // A directory that is not there is made again by the look.
        let absent = matches!(&error, Some(error) if matches!(error.kind, ErrorKind::PathNotFound));
        let refused = error.map(|error| error.to_string());
        if refused.is_some() && refused != self.refused && !absent {
            let (what, why) = (self.what, refused.as_deref());
            tracing::warn!(what, why, "no notices of changes: looked at once a second");
        }
        self.refused = refused;
    }

    fn try_watch(&mut self, files: &BTreeSet<PathBuf>) -> notify::Result<()> {
        let directories: BTreeSet<PathBuf> = files
            .iter()
            .filter_map(|file| file.parent())
            .map(Path::to_path_buf)
            .collect();
        let awaited = files | &directories;
        let woken = Arc::clone(&self.woken);
        let subscription = Subscription::new(move |event| {
            if is_awaited(&event, &awaited) {
                woken.notify_one();
            }
        });
        let outcomes: Vec<_> = directories
            .iter()
            .map(|directory| subscription.watch(directory))
            .collect();
        self.subscription = Some(subscription);
        outcomes.into_iter().collect()
    }

    /// Waits until one of them may have changed; no longer than a second if not all is watched, or if the caller still has
    /// to try `again`. A call that is dropped while it waits loses nothing.
    pub async fn changed(&self, again: bool) {
        let soon = again || self.refused.is_some();
        let look = if soon { LOOK_SOON } else { LOOK };
        if timeout(look, self.woken.notified()).await.is_ok() {
            // Dropped meanwhile, it finds the notice again.
            self.woken.notify_one();
            sleep(SETTLE).await;
            let _ = timeout(Duration::ZERO, self.woken.notified()).await;
        }
    }
}

/// Reports whether an event means that something came or went by one of these paths.
fn is_awaited(event: &Event, awaited: &BTreeSet<PathBuf>) -> bool {
    let moves = match event.kind {
        EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) => {
            true
        }
        _ => event.need_rescan(),
    };
    moves && (event.need_rescan() || event.paths.iter().any(|path| awaited.contains(path)))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;

    use super::*;

    /// The longest time that a notice is waited for: less than [`LOOK`].
    const SOON: Duration = Duration::from_secs(20);

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(test);
    }

    /// Creates notices of this file, which is there.
    fn watching(file: &Path) -> Notices {
        let mut notices = Notices::new("files");
        notices.watch([file.to_path_buf()]);
        assert_eq!(notices.refused, None);
        notices
    }

    async fn is_noticed(notices: &Notices) -> bool {
        timeout(SOON, notices.changed(false)).await.is_ok()
    }

    #[test]
    fn a_file_that_is_removed_replaced_or_moved_with_its_directory_is_noticed() {
        run(async {
            let home = tempfile::tempdir().unwrap();
            let directory = home.path().join("a/b");
            let file = directory.join("file");
            let moved = home.path().join("moved");
            let harms: [&dyn Fn(); 4] = [
                &|| fs::remove_file(&file).unwrap(),
                &|| {
                    fs::write(directory.join("other"), "").unwrap();
                    fs::rename(directory.join("other"), &file).unwrap();
                },
                &|| fs::rename(&directory, &moved).unwrap(),
                &|| fs::remove_dir_all(home.path().join("a")).unwrap(),
            ];
            for (number, harm) in harms.into_iter().enumerate() {
                fs::create_dir_all(&directory).unwrap();
                fs::write(&file, "").unwrap();
                let notices = watching(&file);
                harm();
                assert!(is_noticed(&notices).await, "harm {number}");
            }
        });
    }

    #[test]
    fn a_directory_that_is_held_open_is_noticed_too() {
        run(async {
            let home = tempfile::tempdir().unwrap();
            let directory = home.path().join("runs/run");
            fs::create_dir_all(&directory).unwrap();
            let held = fs::File::open(&directory).unwrap();
            let notices = watching(&directory);
            fs::remove_dir_all(home.path().join("runs")).unwrap();
            assert!(is_noticed(&notices).await);
            drop(held);
        });
    }

    #[test]
    fn what_was_made_again_is_noticed_again() {
        run(async {
            let home = tempfile::tempdir().unwrap();
            let file = home.path().join("a/file");
            let mut notices = Notices::new("files");
            for _ in 0..3 {
                fs::create_dir_all(home.path().join("a")).unwrap();
                notices.watch([file.clone()]);
                assert_eq!(notices.refused, None);
                fs::remove_dir_all(home.path().join("a")).unwrap();
                assert!(is_noticed(&notices).await);
            }
        });
    }

    #[test]
    fn by_a_link_the_directory_behind_it_is_watched() {
        run(async {
            let home = tempfile::tempdir().unwrap();
            fs::create_dir_all(home.path().join("real/within")).unwrap();
            std::os::unix::fs::symlink(home.path().join("real"), home.path().join("link")).unwrap();
            let file = home.path().join("link/within/file");
            fs::write(&file, "").unwrap();
            let notices = watching(&file);
            fs::rename(home.path().join("real/within"), home.path().join("else")).unwrap();
            assert!(is_noticed(&notices).await);
        });
    }

    #[test]
    fn what_others_do_beside_it_wakes_no_one_and_a_wait_that_is_given_up_loses_no_notice() {
        run(async {
            let home = tempfile::tempdir().unwrap();
            let directory = home.path().join("a");
            fs::create_dir_all(&directory).unwrap();
            let file = directory.join("file");
            fs::write(&file, "").unwrap();
            let notices = watching(&file);
            fs::write(&file, "written").unwrap();
            fs::read(&file).unwrap();
            fs::write(directory.join("other"), "").unwrap();
            fs::remove_file(directory.join("other")).unwrap();
            let waited = timeout(SETTLE, notices.woken.notified()).await;
            assert!(waited.is_err(), "nothing happened to the file");
            fs::remove_file(&file).unwrap();
            // Given up while it settles.
            let given_up = timeout(SETTLE / 2, notices.changed(false)).await;
            assert!(given_up.is_err());
            assert!(is_noticed(&notices).await);
        });
    }

    #[test]
    fn what_is_not_there_is_looked_at_by_the_clock() {
        run(async {
            let home = tempfile::tempdir().unwrap();
            let file = home.path().join("gone/file");
            let mut notices = Notices::new("files");
            notices.watch([file.clone()]);
            assert!(notices.refused.is_some());
            assert!(is_noticed(&notices).await, "after a second");
            fs::create_dir(home.path().join("gone")).unwrap();
            notices.watch([file]);
            assert_eq!(notices.refused, None, "the directory is there now");
        });
    }
}
