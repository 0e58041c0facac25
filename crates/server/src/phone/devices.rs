//! The paired devices and the open pairing, in two files of the state directory.
//!
//! ```text
//!   devices.json    each device: name, right, times, the SHA-256 of its cookie and of its key
//!   pairing.json    the SHA-256 of the one code that is open, its right, its times, the wrong tries
//! ```
//!
//! The files are the truth: a process that changes them holds `devices.lock`, and replaces them by rename, so that a reader sees an old file or a
//! new one, whole. No secret is in them. A code is removed before its device is written: one that is sent twice at the same time pairs
//! one device.

#![allow(
    clippy::disallowed_methods,
    reason = "it touches the world: the time of a pairing"
)]

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use rustix::{
    fs::{FlockOperation, OFlags},
    io::Errno,
    time::{ClockId, clock_gettime},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};

use crate::secrets::{is_same, random_token};
use pitstop_base::{
    clean, format,
    private_file::{self, OpenError},
};
use pitstop_core::{api::wire::FieldError, config::load::paths::ensure_private_dir};

/// The name of the file of the paired devices.
const DEVICES: &str = "devices.json";

/// The name of the file of the open pairing.
const PAIRING: &str = "pairing.json";

/// The name of the file that is locked while one of the two is changed.
const LOCK: &str = "devices.lock";

/// The most devices that are paired at a time.
pub const DEVICE_COUNT: usize = 16;

/// The time for which a code is good.
pub const CODE_TIME: Duration = Duration::from_secs(120);

/// The number of wrong tries after which an open code is given up.
pub const CODE_TRIES: u32 = 10;

/// The length of a code in hexadecimal digits: 128 bits.
const CODE_DIGITS: usize = 32;

/// The longest name of a device, in characters.
pub const NAME_LIMIT: usize = 60;

/// The largest file read, in bytes: many times that of the most devices.
const FILE_LIMIT: u64 = 256 * 1024;

/// The longest wait for another process that changes the files.
const LOCK_LIMIT: Duration = Duration::from_secs(2);

/// The pause before the lock is tried again.
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The interval at which the time of a device's last request is written.
const SEEN_INTERVAL: Duration = Duration::from_secs(60);

/// The right of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceRight {
    /// The right to look.
    Watch,
    /// The right to look, and to give orders.
    Decide,
}

impl DeviceRight {
    /// Returns the right as it is written.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Watch => "watch",
            Self::Decide => "decide",
        }
    }
}

/// A paired device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// The name, which no other device has.
    pub name: String,
    /// The right.
    pub right: DeviceRight,
    /// The time of its pairing.
    pub paired_at: DateTime<Utc>,
    /// The time of its last request, accurate to a minute.
    pub seen_at: Option<DateTime<Utc>>,
    /// The SHA-256 of its cookie.
    cookie: String,
    /// The SHA-256 of its key.
    key: String,
}

impl Device {
    /// Reports whether these are the secrets of the device, in a time that does not depend on them.
    fn is_held_by(&self, cookies: &[&str], key: &str) -> bool {
        let key = is_same(self.key.as_bytes(), digest(key).as_bytes());
        let matches = |cookie: &&str| is_same(self.cookie.as_bytes(), digest(cookie).as_bytes());
        let cookies = cookies.iter().filter(|cookie| matches(cookie)).count();
        key && cookies > 0
    }

    /// Returns a text that identifies this pairing of the device among all.
    pub(super) fn id(&self) -> &str {
        &self.cookie
    }
}

/// A pairing that waits for its device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Pairing {
    /// The right that the device gets.
    right: DeviceRight,
    /// The time at which it was opened.
    opened_at: DateTime<Utc>,
    /// The same time by the clock that is never set, in milliseconds since the system started.
    opened_uptime_ms: u64,
    /// The SHA-256 of the code.
    code: String,
    /// The number of wrong tries.
    attempts: u32,
}

impl Pairing {
    /// Reports whether the code is good at this moment. Both clocks must say so: one that is set back prolongs nothing.
    fn is_open(&self, at: Moment) -> bool {
        let limit = CODE_TIME.as_millis();
        let age = at.wall.signed_duration_since(self.opened_at);
        let by_wall = u128::try_from(age.num_milliseconds()).is_ok_and(|age| age < limit);
        let uptime = at.uptime.as_millis();
        let by_uptime = uptime.checked_sub(u128::from(self.opened_uptime_ms));
        by_wall && by_uptime.is_some_and(|age| age < limit) && self.attempts < CODE_TRIES
    }
}

/// A moment by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The time of the system.
    pub wall: DateTime<Utc>,
    /// The time since the system started.
    pub uptime: Duration,
}

impl Moment {
    /// Returns the present moment.
    pub fn now() -> Self {
        let uptime = clock_gettime(ClockId::Monotonic);
        Self {
            wall: Utc::now(),
            uptime: Duration::try_from(uptime).unwrap_or_default(),
        }
    }
}

/// The secrets of a device that was paired just now: they are nowhere else.
#[derive(Clone, PartialEq, Eq)]
pub struct Paired {
    /// The device.
    pub device: Device,
    /// The cookie.
    pub cookie: String,
    /// The key for the header.
    pub key: String,
}

impl std::fmt::Debug for Paired {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Paired")
            .field("device", &self.device.name)
            .finish_non_exhaustive()
    }
}

/// The reason why the devices cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// There are as many devices as there may be.
    #[error("{DEVICE_COUNT} devices are paired, and no more can be")]
    Full,
    /// The code is not that of the open pairing.
    #[error("the code is unknown, used or older than two minutes")]
    Code,
    /// The name cannot be that of a device.
    #[error(transparent)]
    Name(FieldError),
    /// Another process does not let go of the lock.
    #[error("another process keeps `{0}` locked")]
    Locked(PathBuf),
    /// A file does not hold what is written there.
    #[error("expected `{path}` to hold what pitstop has written")]
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// The fault.
        source: serde_json::Error,
    },
    /// A system call failed.
    #[error("cannot {act} `{path}`")]
    Io {
        /// The action that failed, as a verb.
        act: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl DeviceError {
    fn io(act: &'static str, path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io {
            act,
            path: path.to_owned(),
            source,
        }
    }
}

/// The contents of the file of devices.
#[derive(Default, Serialize, Deserialize)]
struct DeviceFile {
    devices: Vec<Device>,
}

/// The paired devices of this user on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceStore {
    directory: PathBuf,
}

impl DeviceStore {
    /// Creates the store of this state directory, of which nothing needs to exist yet.
    pub fn new(state_dir: &Path) -> Self {
        Self {
            directory: state_dir.to_owned(),
        }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the files whose change may mean that a device was paired or revoked, or that a pairing was opened.
    pub fn files(&self) -> [PathBuf; 2] {
        [DEVICES, PAIRING].map(|name| self.directory.join(name))
    }

    /// Returns the paired devices.
    pub fn devices(&self) -> Result<Vec<Device>, DeviceError> {
        let file: Option<DeviceFile> = self.read(DEVICES)?;
        Ok(file.unwrap_or_default().devices)
    }

    /// Returns the pairing that is open at this moment.
    fn pairing(&self, at: Moment) -> Result<Option<Pairing>, DeviceError> {
        let pairing: Option<Pairing> = self.read(PAIRING)?;
        Ok(pairing.filter(|pairing| pairing.is_open(at)))
    }

    /// Reports whether a device is paired or a pairing is open. A file that cannot be read admits no device.
    pub fn is_active(&self, at: Moment) -> bool {
        let devices = self.devices().unwrap_or_else(|error| {
            tracing::warn!(error = clean::chain(&error), "no device counts as paired");
            Vec::new()
        });
        !devices.is_empty() || matches!(self.pairing(at), Ok(Some(_)))
    }

    /// Opens a pairing in place of one that was open, and returns its code.
    pub fn open_pairing(&self, right: DeviceRight, at: Moment) -> Result<String, DeviceError> {
        let _lock = self.lock()?;
        if self.devices()?.len() >= DEVICE_COUNT {
            return Err(DeviceError::Full);
        }
        let mut code = token()?;
        code.truncate(CODE_DIGITS);
        let pairing = Pairing {
            right,
            opened_at: at.wall,
            opened_uptime_ms: u64::try_from(at.uptime.as_millis()).unwrap_or(u64::MAX),
            code: digest(&code),
            attempts: 0,
        };
        self.write(PAIRING, &pairing)?;
        Ok(code)
    }

    /// Reports whether the pairing with this code waits still. Devices that are read after it has ended include the one that it paired.
    pub fn waits(&self, code: &str, at: Moment) -> Result<bool, DeviceError> {
        let _lock = self.lock()?;
        let pairing = self.pairing(at)?;
        Ok(pairing.is_some_and(|pairing| pairing.code == digest(code)))
    }

    /// Takes the code of a pairing back, if that is still the one which is open.
    pub fn close_pairing(&self, code: &str) -> Result<(), DeviceError> {
        let _lock = self.lock()?;
        let pairing: Option<Pairing> = self.read(PAIRING)?;
        match pairing {
            Some(pairing) if pairing.code == digest(code) => self.remove(PAIRING),
            _ => Ok(()),
        }
    }

    /// Pairs a device by the code of the open pairing, which is used up by that. A wrong code counts against the open one.
    pub fn pair(&self, code: &str, name: &str, at: Moment) -> Result<Paired, DeviceError> {
        let name = checked_name(name)?;
        let _lock = self.lock()?;
        let Some(pairing) = self.pairing(at)? else {
            self.remove(PAIRING)?;
            return Err(DeviceError::Code);
        };
        if !is_same(pairing.code.as_bytes(), digest(code).as_bytes()) {
            let attempts = pairing.attempts + 1;
            if attempts >= CODE_TRIES {
                tracing::warn!("a code was given up after {CODE_TRIES} wrong tries");
                self.remove(PAIRING)?;
            } else {
                self.write(
                    PAIRING,
                    &Pairing {
                        attempts,
                        ..pairing
                    },
                )?;
            }
            return Err(DeviceError::Code);
        }
        self.remove(PAIRING)?;
        let mut devices = self.devices()?;
        if devices.len() >= DEVICE_COUNT {
            return Err(DeviceError::Full);
        }
        let (cookie, key) = (token()?, token()?);
        let device = Device {
            name: free_name(&name, &devices),
            right: pairing.right,
            paired_at: at.wall,
            seen_at: None,
            cookie: digest(&cookie),
            key: digest(&key),
        };
        devices.push(device.clone());
        self.write(DEVICES, &DeviceFile { devices })?;
        Ok(Paired {
            device,
            cookie,
            key,
        })
    }

    /// Revokes the devices for which this holds, and returns them.
    pub fn revoke(&self, which: impl Fn(&Device) -> bool) -> Result<Vec<Device>, DeviceError> {
        let _lock = self.lock()?;
        let (revoked, devices): (Vec<_>, Vec<_>) = self.devices()?.into_iter().partition(which);
        if !revoked.is_empty() {
            self.write(DEVICES, &DeviceFile { devices })?;
        }
        Ok(revoked)
    }

    /// Notes that a device has sent a request, unless that was noted within the last minute. One that was revoked meanwhile stays so.
    pub(super) fn note_seen(&self, device: &Device, at: Moment) -> Result<(), DeviceError> {
        let age = |seen: DateTime<Utc>| at.wall.signed_duration_since(seen).to_std();
        let is_noted = |seen| age(seen).is_ok_and(|age| age < SEEN_INTERVAL);
        if device.seen_at.is_some_and(is_noted) {
            return Ok(());
        }
        let _lock = self.lock()?;
        let mut devices = self.devices()?;
        if let Some(found) = devices.iter_mut().find(|one| one.id() == device.id()) {
            found.seen_at = Some(at.wall);
            self.write(DEVICES, &DeviceFile { devices })?;
        }
        Ok(())
    }

    /// Waits until no other process changes the files; they are this one's until the returned file is closed.
    fn lock(&self) -> Result<File, DeviceError> {
        let path = self.directory.join(LOCK);
        let failed = |error| DeviceError::io("lock", &path)(error);
        ensure_private_dir(&self.directory).map_err(|error| failed(io::Error::other(error)))?;
        let file = private_file::open(&path, OFlags::RDWR | OFlags::CREATE)
            .map_err(|error| failed(error.into()))?;
        let end = Instant::now() + LOCK_LIMIT;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < end => {
                    thread::sleep(LOCK_PAUSE);
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => return Err(DeviceError::Locked(path)),
                Err(error) => return Err(failed(error.into())),
            }
        }
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, DeviceError> {
        let path = self.directory.join(name);
        let file = match private_file::open(&path, OFlags::RDONLY) {
            Ok(file) => file,
            Err(error) if error.is_absent() => return Ok(None),
            Err(OpenError::Io(error)) if error.kind() == io::ErrorKind::NotADirectory => {
                return Ok(None);
            }
            Err(error) => return Err(DeviceError::io("open", &path)(error.into())),
        };
        let failed = DeviceError::io("read", &path);
        if let Some(owner) = private_file::other_owner(&file).map_err(&failed)? {
            return Err(failed(io::Error::other(format!("user {owner} owns it"))));
        }
        let bytes = private_file::read_at_most(FILE_LIMIT, file).map_err(&failed)?;
        let parsed = serde_json::from_slice(&bytes);
        let parsed = parsed.map_err(|source| DeviceError::Damaged {
            path: path.clone(),
            source,
        })?;
        Ok(Some(parsed))
    }

    /// Replaces a file; the lock is held.
    fn write(&self, name: &str, value: &impl Serialize) -> Result<(), DeviceError> {
        let path = self.directory.join(name);
        let aside = self.directory.join(format!(".{name}.aside"));
        let failed = DeviceError::io("write", &path);
        let bytes = serde_json::to_vec(value).map_err(|error| failed(error.into()))?;
        // A process that was killed while it wrote has left one.
        remove_if_there(&aside).map_err(&failed)?;
        let written = || -> io::Result<()> {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
            let mut file = private_file::open(&aside, flags)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&aside, &path)?;
            File::open(&self.directory)?.sync_all()
        };
        written().map_err(&failed)
    }

    fn remove(&self, name: &str) -> Result<(), DeviceError> {
        let path = self.directory.join(name);
        remove_if_there(&path).map_err(DeviceError::io("remove", &path))
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// Returns the name of a device without the blanks around it, if it is one that can be shown and sent in a header.
fn checked_name(name: &str) -> Result<String, DeviceError> {
    let name = name.trim();
    let length = name.chars().count();
    let fits = (1..=NAME_LIMIT).contains(&length);
    if fits && clean::stripped(name, NAME_LIMIT) == name {
        return Ok(name.to_owned());
    }
    let expected = format!("a name of 1 to {NAME_LIMIT} characters without control characters");
    Err(DeviceError::Name(FieldError::text("name", expected, name)))
}

/// Returns this name, or one made from it that no device has.
fn free_name(name: &str, devices: &[Device]) -> String {
    let is_free = |name: &String| devices.iter().all(|device| device.name != *name);
    let numbered = (2..).map(|number| format!("{name} ({number})"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names
        .find(is_free)
        .expect("there are more numbers than devices")
}

fn token() -> Result<String, DeviceError> {
    random_token().map_err(DeviceError::io("read", Path::new("/dev/urandom")))
}

/// Returns the SHA-256 of a secret in hexadecimal digits.
fn digest(secret: &str) -> String {
    format::hex(&Sha256::digest(secret.as_bytes()))
}

/// The devices as they were read last, and read again whenever their file is another one.
#[derive(Debug)]
pub(super) struct KnownDevices {
    store: DeviceStore,
    known: Mutex<(Option<Stamp>, Arc<[Device]>)>,
}

/// The mark by which a file that was replaced is recognised.
type Stamp = (u64, u64, i64, i64);

impl KnownDevices {
    pub(super) fn new(store: DeviceStore) -> Self {
        Self {
            store,
            known: Mutex::new((None, Arc::default())),
        }
    }

    pub(super) fn store(&self) -> &DeviceStore {
        &self.store
    }

    /// Returns the devices that are paired now.
    pub(super) fn now(&self) -> Arc<[Device]> {
        let stamp = fs::symlink_metadata(self.store.directory.join(DEVICES)).ok();
        let stamp = stamp.map(|meta| (meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()));
        let mut known = self.known.lock();
        if stamp.is_none() || known.0 != stamp {
            let devices = self.store.devices().unwrap_or_else(|error| {
                tracing::warn!(error = clean::chain(&error), "no device counts as paired");
                Vec::new()
            });
            *known = (stamp, devices.into());
        }
        Arc::clone(&known.1)
    }

    /// Returns the device that holds these secrets.
    pub(super) fn find(&self, cookies: &[&str], key: &str) -> Option<Device> {
        let devices = self.now();
        // All are always compared, so that the time taken says nothing about any.
        let held = devices
            .iter()
            .filter(|device| device.is_held_by(cookies, key));
        held.fold(None, |_, device| Some(device.clone()))
    }

    /// Reports whether a device is still paired, with the right that it had.
    pub(super) fn is_paired(&self, device: &Device) -> bool {
        let is_it = |one: &Device| one.id() == device.id() && one.right == device.right;
        self.now().iter().any(is_it)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn store() -> (tempfile::TempDir, DeviceStore) {
        let home = tempfile::tempdir().unwrap();
        let store = DeviceStore::new(&home.path().join("state"));
        (home, store)
    }

    /// Returns the moment so many seconds after a certain one, by each clock.
    fn at(wall: i64, uptime: u64) -> Moment {
        Moment {
            wall: DateTime::from_timestamp(1_000_000 + wall, 0).unwrap(),
            uptime: Duration::from_secs(1_000 + uptime),
        }
    }

    fn paired(store: &DeviceStore, name: &str) -> Paired {
        let code = store.open_pairing(DeviceRight::Decide, at(0, 0)).unwrap();
        store.pair(&code, name, at(1, 1)).unwrap()
    }

    fn is_refused(outcome: &Result<Paired, DeviceError>) -> bool {
        matches!(outcome, Err(DeviceError::Code))
    }

    #[test]
    fn a_code_pairs_one_device_with_its_right_and_is_used_up() {
        let (_home, store) = store();
        assert!(!store.is_active(at(0, 0)));
        let code = store.open_pairing(DeviceRight::Watch, at(0, 0)).unwrap();
        assert_eq!(code.len(), CODE_DIGITS);
        assert!(store.is_active(at(0, 0)) && store.waits(&code, at(0, 0)).unwrap());
        let paired = store.pair(&code, " Ada's phone ", at(5, 5)).unwrap();
        assert_eq!(paired.device.name, "Ada's phone");
        assert_eq!(paired.device.right, DeviceRight::Watch);
        assert!(!store.waits(&code, at(5, 5)).unwrap());
        assert!(is_refused(&store.pair(&code, "another", at(5, 5))));
        assert_eq!(store.devices().unwrap(), [paired.device]);
        assert!(store.is_active(at(1_000_000, 1_000_000)));
    }

    #[test]
    fn a_code_is_over_after_two_minutes_whichever_clock_is_set() {
        let (_home, store) = store();
        for (moment, is_open) in [
            (at(119, 119), true),
            (at(120, 119), false),
            (at(119, 120), false),
            // The clock was set back.
            (at(-1, 119), false),
            (at(30, 150), false),
            // The system was started again.
            (at(60, 0).rebooted(), false),
        ] {
            let code = store.open_pairing(DeviceRight::Watch, at(0, 0)).unwrap();
            assert_eq!(store.waits(&code, moment).unwrap(), is_open, "{moment:?}");
            let outcome = store.pair(&code, "phone", moment);
            assert_eq!(outcome.is_ok(), is_open, "{moment:?}");
        }
    }

    impl Moment {
        fn rebooted(mut self) -> Self {
            self.uptime = Duration::from_secs(5);
            self
        }
    }

    #[test]
    fn ten_wrong_tries_end_a_code_and_a_code_that_was_taken_back_is_none() {
        let (_home, store) = store();
        let code = store.open_pairing(DeviceRight::Watch, at(0, 0)).unwrap();
        let wrong = "0".repeat(CODE_DIGITS);
        for _ in 0..CODE_TRIES {
            assert!(store.waits(&code, at(0, 0)).unwrap());
            assert!(is_refused(&store.pair(&wrong, "phone", at(0, 0))));
        }
        assert!(is_refused(&store.pair(&code, "phone", at(0, 0))));
        let code = store.open_pairing(DeviceRight::Watch, at(0, 0)).unwrap();
        let next = store.open_pairing(DeviceRight::Watch, at(0, 0)).unwrap();
        store.close_pairing(&code).unwrap();
        assert!(store.waits(&next, at(0, 0)).unwrap(), "that of another");
        store.close_pairing(&next).unwrap();
        assert!(is_refused(&store.pair(&next, "phone", at(0, 0))));
        assert!(!store.is_active(at(0, 0)));
    }

    #[test]
    fn a_name_is_one_that_can_be_shown_and_is_taken_once() {
        let (_home, store) = store();
        for name in [
            "",
            "  ",
            "a\r\nb",
            "a\u{202e}b",
            &"x".repeat(61),
            "\u{1b}[2J",
        ] {
            let code = store.open_pairing(DeviceRight::Watch, at(0, 0)).unwrap();
            let outcome = store.pair(&code, name, at(0, 0));
            assert!(matches!(outcome, Err(DeviceError::Name(_))), "{name:?}");
        }
        let names = [0; 3].map(|_| paired(&store, "電話").device.name);
        assert_eq!(names, ["電話", "電話 (2)", "電話 (3)"]);
    }

    #[test]
    fn both_secrets_of_one_device_are_needed() {
        let (_home, store) = store();
        let [one, two] = ["one", "two"].map(|name| paired(&store, name));
        let known = KnownDevices::new(store);
        let find = |cookies: &[&str], key: &str| Some(known.find(cookies, key)?.name);
        assert_eq!(find(&[&one.cookie], &one.key).as_deref(), Some("one"));
        let among = ["", &one.cookie, &two.cookie];
        assert_eq!(find(&among, &two.key).as_deref(), Some("two"));
        for (cookies, key) in [
            (&[][..], &*one.key),
            (&[&*one.cookie], ""),
            (&[&one.cookie], &two.key),
            (&[&one.key], &one.cookie),
            (&[one.device.id()], &one.key),
            (&[""], ""),
        ] {
            assert_eq!(find(cookies, key), None);
        }
    }

    #[test]
    fn a_revoked_device_is_out_at_once_and_is_not_written_again() {
        let (_home, store) = store();
        let [one, two] = ["one", "two"].map(|name| paired(&store, name));
        let known = KnownDevices::new(store.clone());
        assert!(known.is_paired(&one.device) && known.is_paired(&two.device));
        let revoked = store.revoke(|device| device.name == "one").unwrap();
        assert_eq!(revoked[..], [&one.device].map(Clone::clone));
        assert!(!known.is_paired(&one.device) && known.is_paired(&two.device));
        assert_eq!(known.find(&[&one.cookie], &one.key), None);
        store.note_seen(&one.device, at(9, 9)).unwrap();
        store.note_seen(&two.device, at(9, 9)).unwrap();
        let left = store.devices().unwrap();
        assert_eq!((left.len(), left[0].seen_at), (1, Some(at(9, 9).wall)));
        store.note_seen(&left[0], at(68, 68)).unwrap();
        assert_eq!(store.devices().unwrap(), left, "noted once a minute");
        assert_eq!(store.revoke(|_| true).unwrap().len(), 1);
        assert!(!store.is_active(at(9, 9)));
    }

    #[test]
    fn no_more_devices_are_paired_than_there_may_be() {
        let (_home, store) = store();
        for _ in 0..DEVICE_COUNT {
            paired(&store, "phone");
        }
        let outcome = store.open_pairing(DeviceRight::Watch, at(0, 0));
        assert!(matches!(outcome, Err(DeviceError::Full)));
    }

    #[test]
    fn the_files_are_private_hold_no_secret_and_a_link_or_nonsense_admits_nobody() {
        let (home, store) = store();
        let code = store.open_pairing(DeviceRight::Watch, at(0, 0)).unwrap();
        let [devices, pairing] = store.files();
        let text = fs::read_to_string(&pairing).unwrap();
        assert!(!text.contains(&code), "{text}");
        let paired = store.pair(&code, "phone", at(1, 1)).unwrap();
        let text = fs::read_to_string(&devices).unwrap();
        assert!(!text.contains(&paired.cookie) && !text.contains(&paired.key));
        let mode = fs::metadata(&devices).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let elsewhere = home.path().join("elsewhere");
        fs::rename(&devices, &elsewhere).unwrap();
        symlink(&elsewhere, &devices).unwrap();
        assert!(store.devices().is_err() && !store.is_active(at(1, 1)));
        fs::remove_file(&devices).unwrap();
        fs::write(&devices, "{\"devices\": 7}").unwrap();
        assert!(store.devices().is_err() && !store.is_active(at(1, 1)));
        assert!(KnownDevices::new(store).now().is_empty());
    }
}
