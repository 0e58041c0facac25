//! Notifies when files of pitstop's own may have been removed, replaced or moved away, so that who keeps them sleeps until then.
//!
//! ```text
//!   watch(files) ──► look at them, make again what is gone ──► changed() ──► watch(files) ──► look …
//! ```
//!
//! They are watched first and looked at then: what happens between the two is noticed. The directory of a file is watched for
//! what comes and goes by the file's name, and so is each directory above it for being moved; one that is removed must have
//! been emptied before. The notices are read by the task that asks for them: no thread of their own would have to be ended.
//!
//! Where the system gives no notices (another system than Linux, its limit of watches is reached, a network file system, a
//! directory that is not there), [`Notices::changed`] returns after [`LOOK`] at the latest.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

/// How often the files are looked at where there are no notices.
pub const LOOK: Duration = Duration::from_secs(1);

/// How long nothing must have been noticed before it is looked what has changed: a directory is removed file by file, and one in
/// which a file is made again meanwhile cannot be.
const SETTLE: Duration = Duration::from_millis(200);

/// How long that is waited for.
const SETTLE_LIMIT: Duration = Duration::from_secs(1);

/// Notices of changes to a set of files.
#[derive(Debug)]
pub struct Notices {
    /// What they are, for the log.
    what: &'static str,
    source: Option<system::Source>,
    /// Each of the files is watched.
    whole: bool,
    /// Why not, as it was logged last.
    refused: Option<String>,
    noticed: Option<Noticed>,
}

/// The directories to be watched, those above before those in them, with the names that are awaited there.
type Plan = BTreeMap<PathBuf, BTreeSet<OsString>>;

/// What prevents that all is watched.
#[derive(Debug, PartialEq, Eq)]
enum Gap {
    /// A directory is not there: who looks makes it again.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    Absent,
    /// There will be no notices of something.
    Refused(String),
}

impl Notices {
    /// Notices of nothing yet.
    #[must_use]
    pub const fn of(what: &'static str) -> Self {
        Self {
            what,
            source: None,
            whole: false,
            refused: None,
            noticed: None,
        }
    }

    /// Watches these files or directories from now on, and no others. To be called before they are looked at, each time
    /// after [`Self::changed`] and after anything was made again; within a tokio runtime.
    pub fn watch(&mut self, files: impl IntoIterator<Item = PathBuf>) {
        let plan = plan(files);
        let watched = match &mut self.source {
            Some(source) => source.watch(&plan),
            None => {
                system::Source::new().and_then(|source| self.source.insert(source).watch(&plan))
            }
        };
        self.whole = watched.is_ok();
        let refused = match watched {
            Err(Gap::Refused(why)) => Some(why),
            Ok(()) | Err(Gap::Absent) => None,
        };
        if refused.is_some() && refused != self.refused {
            let (what, why) = (self.what, refused.as_deref());
            tracing::warn!(what, why, "no notices of changes: looked at once a second");
        }
        // One that is absent for a moment says nothing of the others.
        if refused.is_some() || self.whole {
            self.refused = refused;
        }
    }

    /// Waits until one of them may have changed; no longer than [`LOOK`] if not all is watched, or if the caller still has
    /// to try `again`. A call that is dropped while it waits loses nothing.
    pub async fn changed(&mut self, again: bool) {
        let timed = (again || !self.whole).then(|| Instant::now() + LOOK);
        loop {
            let settled = self.noticed.map(Noticed::settled);
            let due = settled.into_iter().chain(timed).min();
            tokio::select! {
                () = next(self.source.as_ref()) => {
                    let now = Instant::now();
                    let first = self.noticed.map_or(now, |noticed| noticed.first);
                    self.noticed = Some(Noticed { first, last: now });
                }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => break,
            }
        }
        self.noticed = None;
    }
}

/// When something was noticed that was not yet told.
#[derive(Clone, Copy, Debug)]
struct Noticed {
    first: Instant,
    last: Instant,
}

impl Noticed {
    fn settled(self) -> Instant {
        (self.last + SETTLE).min(self.first + SETTLE_LIMIT)
    }
}

/// The next notice, if there are any.
async fn next(source: Option<&system::Source>) {
    match source {
        Some(source) => source.noticed().await,
        None => std::future::pending().await,
    }
}

/// Which directories are watched for these files, by their paths as they are written and as they are without links.
fn plan(files: impl IntoIterator<Item = PathBuf>) -> Plan {
    let mut plan = Plan::new();
    for file in files {
        let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else {
            continue;
        };
        let real = directory.canonicalize().ok();
        let real = real.as_deref().filter(|real| *real != directory);
        for directory in real.into_iter().chain([directory]) {
            for above in directory.ancestors() {
                plan.entry(above.to_owned()).or_default();
            }
            let names = plan.entry(directory.to_owned()).or_default();
            names.insert(name.to_owned());
        }
    }
    // That of a relative path's first part.
    plan.remove(Path::new(""));
    plan
}

/// The notices of Linux.
#[cfg(target_os = "linux")]
mod system {
    use std::{
        collections::{BTreeSet, HashMap},
        ffi::{OsStr, OsString},
        mem::MaybeUninit,
        os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
        path::Path,
    };

    use rustix::{
        fs::{
            FsWord,
            inotify::{self, CreateFlags, Event, ReadFlags, Reader, WatchFlags},
        },
        io::Errno,
    };
    use tokio::io::{Interest, unix::AsyncFd};

    use super::{Gap, Plan};

    /// File systems on which another machine, or a program of the user's, may change of which nothing is reported here: NFS, SMB
    /// in its three kinds, AFS, Ceph, 9P, FUSE.
    const REMOTE: [u32; 8] = [
        0x0000_6969,
        0x0000_517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x5346_414f,
        0x00c3_6400,
        0x0102_1997,
        0x6573_5546,
    ];

    /// More than any one notice takes.
    const BUFFER: usize = 4096;

    /// An open inotify.
    #[derive(Debug)]
    pub struct Source {
        inotify: AsyncFd<OwnedFd>,
        /// The names awaited in each directory, by the number of its watch. No number is given twice.
        awaited: HashMap<i32, BTreeSet<OsString>>,
    }

    impl Source {
        pub fn new() -> Result<Self, Gap> {
            let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
                .map_err(|error| Gap::Refused(format!("cannot open inotify: {error}")))?;
            #[allow(
                deprecated,
                reason = "its successor is unsafe for a file that may close itself; an `OwnedFd` does not"
            )]
            let inotify = AsyncFd::with_interest(inotify, Interest::READABLE)
                .map_err(|error| Gap::Refused(format!("cannot wait for inotify: {error}")))?;
            Ok(Self {
                inotify,
                awaited: HashMap::new(),
            })
        }

        /// Watches all it can, and says what is amiss.
        pub fn watch(&mut self, plan: &Plan) -> Result<(), Gap> {
            let before = std::mem::take(&mut self.awaited);
            let mut outcome = Ok(());
            for (directory, names) in plan {
                match self.add(directory, names) {
                    Ok(()) => {}
                    // The other one is worth a line in the log.
                    Err(Gap::Absent) if outcome.is_err() => {}
                    Err(gap) => outcome = Err(gap),
                }
            }
            for gone in before.keys().filter(|one| !self.awaited.contains_key(one)) {
                // The system has ended it already, then.
                let _ = inotify::remove_watch(self.inotify.get_ref(), *gone);
            }
            outcome
        }

        fn add(&mut self, directory: &Path, names: &BTreeSet<OsString>) -> Result<(), Gap> {
            let itself = WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF | WatchFlags::ONLYDIR;
            let within = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVE;
            let flags = if names.is_empty() {
                itself
            } else {
                itself | within
            };
            // By a link it may be in the plan twice.
            let flags = flags | WatchFlags::MASK_ADD;
            match inotify::add_watch(self.inotify.get_ref(), directory, flags) {
                Ok(number) => {
                    let awaited = self.awaited.entry(number).or_default();
                    awaited.extend(names.iter().cloned());
                }
                Err(Errno::NOENT | Errno::NOTDIR) => return Err(Gap::Absent),
                // A directory that may not be read, such as a shared /home, is not ours to be moved.
                Err(Errno::ACCESS) if names.is_empty() => {}
                Err(Errno::NOSPC) => {
                    return Err(Gap::Refused(
                        "the system's limit of watches is reached".to_owned(),
                    ));
                }
                Err(error) => {
                    let directory = directory.display();
                    return Err(Gap::Refused(format!("cannot watch {directory}: {error}")));
                }
            }
            if !names.is_empty() && is_remote(directory) {
                let directory = directory.display();
                return Err(Gap::Refused(format!(
                    "{directory} is on a network file system"
                )));
            }
            Ok(())
        }

        /// Waits for a notice that concerns what is watched. A call that is dropped while it waits loses none.
        pub async fn noticed(&self) {
            loop {
                let Ok(mut ready) = self.inotify.readable().await else {
                    // The runtime ends.
                    return std::future::pending().await;
                };
                let concerned = self.read();
                ready.clear_ready();
                if concerned {
                    return;
                }
            }
        }

        /// Reads all notices that are there; whether one concerns what is watched.
        pub fn read(&self) -> bool {
            let mut buffer = [MaybeUninit::uninit(); BUFFER];
            let mut notices = Reader::new(self.inotify.get_ref(), &mut buffer);
            let mut concerned = false;
            loop {
                match notices.next() {
                    Ok(notice) => concerned |= self.concerns(&notice),
                    Err(Errno::INTR) => {}
                    Err(_) => return concerned,
                }
            }
        }

        fn concerns(&self, notice: &Event<'_>) -> bool {
            if notice.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                return true;
            }
            // The last notice of a watch that was ended names none of those in force.
            let Some(awaited) = self.awaited.get(&notice.wd()) else {
                return false;
            };
            match notice.file_name() {
                Some(name) => awaited.contains(OsStr::from_bytes(name.to_bytes())),
                None => true,
            }
        }
    }

    fn is_remote(directory: &Path) -> bool {
        let remote = |kind: FsWord| REMOTE.contains(&(kind as u32));
        rustix::fs::statfs(directory).is_ok_and(|found| remote(found.f_type))
    }
}

/// Other systems: the files are looked at.
#[cfg(not(target_os = "linux"))]
mod system {
    use super::{Gap, Plan};

    #[derive(Debug)]
    pub struct Source;

    impl Source {
        pub fn new() -> Result<Self, Gap> {
            Err(Gap::Refused("this system gives none".to_owned()))
        }

        pub fn watch(&mut self, _: &Plan) -> Result<(), Gap> {
            Ok(())
        }

        pub async fn noticed(&self) {
            std::future::pending().await
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;

    use super::*;

    /// How long a notice is waited for.
    const SOON: Duration = Duration::from_secs(20);

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(test);
    }

    /// Notices of these files, each of which is there.
    fn watching(files: &[&Path]) -> Notices {
        let mut notices = Notices::of("files");
        notices.watch(files.iter().map(|file| file.to_path_buf()));
        assert!(notices.whole, "{notices:?}");
        notices
    }

    async fn is_noticed(notices: &mut Notices) -> bool {
        tokio::time::timeout(SOON, notices.changed(false))
            .await
            .is_ok()
    }

    /// What was noticed so far, without waiting until no more comes.
    fn has_noticed(notices: &Notices) -> bool {
        notices.source.as_ref().is_some_and(system::Source::read)
    }

    #[test]
    fn a_file_that_is_removed_replaced_or_moved_with_its_directory_is_noticed() {
        run(async {
            let home = tempfile::tempdir().unwrap();
            let directory = home.path().join("a/b");
            let file = directory.join("file");
            let moved = home.path().join("moved");
            let harms: [&dyn Fn(); 5] = [
                &|| fs::remove_file(&file).unwrap(),
                &|| {
                    fs::write(directory.join("other"), "").unwrap();
                    fs::rename(directory.join("other"), &file).unwrap();
                },
                &|| fs::rename(&directory, &moved).unwrap(),
                &|| fs::rename(home.path().join("a"), home.path().join("c")).unwrap(),
                &|| fs::remove_dir_all(home.path().join("a")).unwrap(),
            ];
            for (number, harm) in harms.into_iter().enumerate() {
                fs::create_dir_all(&directory).unwrap();
                fs::write(&file, "").unwrap();
                let mut notices = watching(&[&file]);
                harm();
                assert!(is_noticed(&mut notices).await, "harm {number}");
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
            let mut notices = watching(&[&directory]);
            fs::remove_dir_all(home.path().join("runs")).unwrap();
            assert!(is_noticed(&mut notices).await);
            drop(held);
        });
    }

    #[test]
    fn what_was_made_again_is_noticed_again() {
        run(async {
            let home = tempfile::tempdir().unwrap();
            let file = home.path().join("a/file");
            let mut notices = Notices::of("files");
            for _ in 0..3 {
                fs::create_dir_all(home.path().join("a")).unwrap();
                fs::write(&file, "").unwrap();
                notices.watch([file.clone()]);
                assert!(notices.whole);
                fs::remove_dir_all(home.path().join("a")).unwrap();
                assert!(is_noticed(&mut notices).await);
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
            let mut notices = watching(&[&file]);
            fs::rename(home.path().join("real"), home.path().join("else")).unwrap();
            assert!(is_noticed(&mut notices).await);
        });
    }

    #[test]
    fn what_others_do_beside_it_wakes_no_one() {
        run(async {
            let home = tempfile::tempdir().unwrap();
            let directory = home.path().join("a");
            fs::create_dir_all(&directory).unwrap();
            let file = directory.join("file");
            fs::write(&file, "").unwrap();
            let notices = watching(&[&file]);
            fs::write(&file, "written").unwrap();
            fs::read(&file).unwrap();
            fs::write(directory.join("other"), "").unwrap();
            fs::remove_file(directory.join("other")).unwrap();
            fs::create_dir(home.path().join("beside")).unwrap();
            assert!(!has_noticed(&notices));
            fs::remove_file(&file).unwrap();
            assert!(has_noticed(&notices));
        });
    }

    #[test]
    fn a_wait_that_is_given_up_loses_no_notice() {
        run(async {
            let home = tempfile::tempdir().unwrap();
            let file = home.path().join("file");
            fs::write(&file, "").unwrap();
            let mut notices = watching(&[&file]);
            fs::remove_file(&file).unwrap();
            while notices.noticed.is_none() {
                tokio::select! {
                    biased;
                    () = notices.changed(false) => panic!("it is not quiet for so long yet"),
                    () = tokio::task::yield_now() => {}
                }
            }
            assert!(!has_noticed(&notices), "it was read");
            assert!(is_noticed(&mut notices).await);
        });
    }

    #[test]
    fn what_is_not_there_is_looked_at_by_the_clock() {
        run(async {
            let home = tempfile::tempdir().unwrap();
            let file = home.path().join("gone/file");
            let mut notices = Notices::of("files");
            notices.watch([file.clone()]);
            assert!(!notices.whole && notices.refused.is_none());
            assert!(is_noticed(&mut notices).await);
            fs::create_dir(home.path().join("gone")).unwrap();
            notices.watch([file]);
            assert!(notices.whole, "the directory is there now");
        });
    }

    #[test]
    fn what_is_no_directory_or_not_there_differs_from_what_is_refused() {
        run(async {
            let mut source = system::Source::new().unwrap();
            let gap = |source: &mut system::Source, file: &str| source.watch(&plan([file.into()]));
            assert_eq!(gap(&mut source, "/dev/null/file"), Err(Gap::Absent));
            assert_eq!(gap(&mut source, "/no/such/file"), Err(Gap::Absent));
            assert_eq!(gap(&mut source, "/file"), Ok(()));
        });
    }
}
