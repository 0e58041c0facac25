//! Watches files by the system's own notices, so that an idle supervisor sleeps.
//!
//! Directories are watched, not files: editors and we ourselves replace files by renaming.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, mem,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use notify::ErrorKind;
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Interval, MissedTickBehavior, interval},
};

use super::subscription::Subscription;

/// The most changed paths that are kept by name while the loop is busy with other things.
const MOST: usize = 256;

/// The time between two looks at the files of which the system gives no notices.
const LOOK: Duration = Duration::from_secs(1);

/// The paths that have changed.
#[derive(Debug, PartialEq, Eq)]
pub enum Changes {
    /// The changed paths, by name.
    Paths(BTreeSet<PathBuf>),
    /// Any path may have changed: there were too many to name, or the system has dropped notices.
    Any,
}

impl Default for Changes {
    fn default() -> Self {
        Self::Paths(BTreeSet::new())
    }
}

impl Changes {
    /// Reports whether this path may have changed.
    pub fn include(&self, path: &Path) -> bool {
        match self {
            Self::Paths(paths) => paths.contains(path),
            Self::Any => true,
        }
    }

    /// Reports whether this path, or a directory that it is in, may have changed.
    pub fn concern(&self, path: &Path) -> bool {
        path.ancestors().any(|one| self.include(one))
    }

    fn add(&mut self, event: notify::Event) {
        if event.need_rescan() {
            *self = Self::Any;
        }
        // Reading is no change, and we read.
        let Self::Paths(paths) = self else { return };
        if event.kind.is_access() {
            return;
        }
        paths.extend(event.paths);
        if paths.len() > MOST {
            *self = Self::Any;
        }
    }
}

/// The changes that the thread of the notices has gathered since the loop asked last.
#[derive(Debug, Default)]
struct Gathered {
    changes: Mutex<Changes>,
    woken: Notify,
}

impl Gathered {
    fn add(&self, event: notify::Event) {
        let mut changes = self.changes.lock();
        changes.add(event);
        if *changes != Changes::default() {
            self.woken.notify_one();
        }
    }

    fn take(&self) -> Changes {
        mem::take(&mut *self.changes.lock())
    }
}

/// What a look at a file shows of it: when it was written, and its size in bytes; `None` if it is not there.
type Look = Option<(SystemTime, u64)>;

fn look(file: &Path) -> Look {
    let metadata = fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// The notices of changed paths. Where the system gives none (a user may have few watches, for all of the user's programs), the files
/// are looked at once a second.
#[derive(Debug)]
pub struct Watcher {
    subscription: Subscription,
    directories: BTreeSet<PathBuf>,
    /// The one among them that is watched only until the directory of a file is made below it.
    above: Option<PathBuf>,
    /// The files of which the system gives no notices, as they were at the last look.
    unwatched: BTreeMap<PathBuf, Look>,
    looks: Option<Interval>,
    gathered: Arc<Gathered>,
}

impl Default for Watcher {
    fn default() -> Self {
        let gathered = Arc::<Gathered>::default();
        let for_handler = Arc::clone(&gathered);
        Self {
            subscription: Subscription::new(move |event| for_handler.add(event)),
            directories: BTreeSet::new(),
            above: None,
            unwatched: BTreeMap::new(),
            looks: None,
            gathered,
        }
    }
}

impl Watcher {
    /// Waits for changes and returns all since the last call. A call that is dropped while it waits loses none.
    pub async fn changes(&mut self) -> Changes {
        if self.unwatched.is_empty() {
            self.gathered.woken.notified().await;
            return self.gathered.take();
        }
        let looks = self.looks.get_or_insert_with(|| {
            let mut looks = interval(LOOK);
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            looks
        });
        loop {
            tokio::select! {
                () = self.gathered.woken.notified() => return self.gathered.take(),
                _ = looks.tick() => {
                    let seen = self.unwatched.iter_mut();
                    let changed = seen.filter_map(|(file, last)| {
                        let now = look(file);
                        (mem::replace(last, now) != now).then(|| file.clone())
                    });
                    let changed: BTreeSet<_> = changed.collect();
                    if !changed.is_empty() {
                        return Changes::Paths(changed);
                    }
                }
            }
        }
    }

    /// Watches the directory of a file. One that is not there may come into being later: the next call tries again.
    pub fn watch_beside(&mut self, file: &Path) {
        if let Some(directory) = file.parent() {
            self.above.take_if(|above| above == directory);
            let watched = self.watch(directory);
            self.note(file, watched.is_some());
        }
    }

    /// Watches the directory of a file, or the nearest one above that is there: the next call goes on from that, once the change
    /// of a directory [concerns](Changes::concern) the file.
    pub fn watch_towards(&mut self, file: &Path) {
        let Some(directory) = file.parent() else {
            return;
        };
        let is_refused = self.watch(directory).is_none();
        if self.above.is_none() && self.directories.contains(directory) {
            self.unwatched.remove(file);
            return;
        }
        let above = self.above.take();
        let mut own = self.directories.clone();
        own.retain(|one| Some(one) != above.as_ref());
        let (mut nearest, mut found) = (None, self.nearest(directory));
        // What was made just before its parent was watched gives no notice.
        while found != nearest && found != Some(directory) {
            nearest = found;
            found = self.nearest(directory);
        }
        let mut passed = self.directories.clone();
        passed.retain(|one| !own.contains(one) && Some(one.as_path()) != found);
        for one in passed {
            self.unwatch(&one);
        }
        let above = found.filter(|found| *found != directory && !own.contains(*found));
        self.above = above.map(Path::to_owned);
        let is_watched = !is_refused && found.is_some();
        self.note(file, is_watched);
    }

    fn nearest<'a>(&mut self, directory: &'a Path) -> Option<&'a Path> {
        directory
            .ancestors()
            .find(|one| self.watch(one) == Some(true))
    }

    /// Watches a directory. Returns whether it is there and watched; `None` if the system watches none.
    fn watch(&mut self, directory: &Path) -> Option<bool> {
        if self.directories.contains(directory) {
            return Some(true);
        }
        match self.subscription.watch(directory) {
            Ok(()) => Some(self.directories.insert(directory.to_owned())),
            Err(error) if matches!(error.kind, ErrorKind::PathNotFound) => Some(false),
            Err(error) => {
                if self.unwatched.is_empty() {
                    tracing::warn!(%error, directory = %directory.display(), "not watched: looked at once a second");
                }
                None
            }
        }
    }

    /// Notes whether the system gives notices of a file.
    fn note(&mut self, file: &Path, is_watched: bool) {
        if is_watched {
            self.unwatched.remove(file);
        } else if !self.unwatched.contains_key(file) {
            self.unwatched.insert(file.to_owned(), look(file));
        }
    }

    /// Stops watching the directory of a file.
    pub fn forget_beside(&mut self, file: &Path) {
        self.unwatched.remove(file);
        if let Some(directory) = file.parent() {
            self.unwatch(directory);
        }
    }

    fn unwatch(&mut self, directory: &Path) {
        if self.directories.remove(directory) {
            self.subscription.unwatch(directory);
        }
    }
}

#[cfg(test)]
mod tests {
    use notify::{
        Event, EventKind,
        event::{AccessKind, Flag, ModifyKind},
    };

    use super::*;

    fn changed(path: &str) -> Event {
        Event::new(EventKind::Modify(ModifyKind::Any)).add_path(path.into())
    }

    fn now(watcher: &mut Watcher) -> Option<Changes> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(async {
            tokio::select! {
                biased;
                changes = watcher.changes() => Some(changes),
                () = std::future::ready(()) => None,
            }
        })
    }

    #[test]
    fn many_changes_of_one_path_are_one() {
        let mut watcher = Watcher::default();
        assert_eq!(now(&mut watcher), None);
        for _ in 0..1_000 {
            watcher.gathered.add(changed("/a"));
        }
        watcher.gathered.add(changed("/b"));
        let paths = ["/a", "/b"].map(PathBuf::from).into();
        assert_eq!(now(&mut watcher), Some(Changes::Paths(paths)));
        assert_eq!(now(&mut watcher), None);
    }

    #[test]
    fn a_flood_of_paths_hides_none() {
        let mut watcher = Watcher::default();
        for number in 0..1_000 {
            watcher.gathered.add(changed(&format!("/{number}")));
        }
        let changes = now(&mut watcher).unwrap();
        assert!(changes.include(Path::new("/999")));
        assert_eq!(now(&mut watcher), None);
    }

    #[test]
    fn notices_that_the_system_dropped_may_have_been_of_any_path() {
        let mut watcher = Watcher::default();
        watcher
            .gathered
            .add(Event::new(EventKind::Other).set_flag(Flag::Rescan));
        assert_eq!(now(&mut watcher), Some(Changes::Any));
    }

    #[test]
    fn a_file_whose_directory_is_made_later_is_seen_from_its_first_byte() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("projects/a/t.jsonl");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        let mut watcher = Watcher::default();
        watcher.watch_towards(&file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "{}").unwrap();
        runtime.unwrap().block_on(async {
            let mut seen = async || {
                let changes = tokio::time::timeout(Duration::from_secs(20), watcher.changes());
                let concerns = changes.await.unwrap().concern(&file);
                watcher.watch_towards(&file);
                concerns
            };
            while !seen().await {}
            std::fs::write(&file, "{}{}").unwrap();
            while !seen().await {}
        });
        let only = BTreeSet::from([file.parent().unwrap().to_owned()]);
        assert_eq!((watcher.directories, watcher.above), (only, None));
    }

    #[test]
    fn a_file_without_notices_is_looked_at_whatever_else_goes_on() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("notes.md");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        let mut watcher = Watcher::default();
        watcher.note(&file, false);
        std::fs::write(&file, "one").unwrap();
        let changes = runtime.unwrap().block_on(async {
            loop {
                // The loop of the supervisor drops the call whenever anything else happens.
                let often = Duration::from_millis(10);
                if let Ok(changes) = tokio::time::timeout(often, watcher.changes()).await {
                    return changes;
                }
            }
        });
        assert_eq!(changes, Changes::Paths([file.clone()].into()));
        watcher.forget_beside(&file);
        assert!(watcher.unwatched.is_empty());
    }

    #[test]
    fn reading_is_no_change() {
        let mut watcher = Watcher::default();
        let read = Event::new(EventKind::Access(AccessKind::Any)).add_path("/a".into());
        watcher.gathered.add(read);
        assert_eq!(now(&mut watcher), None);
    }
}
