//! The tokens, and the files through which the authorized processes learn them.
//!
//! ```text
//!   HASH.control    socket path LF control token LF
//!   HASH.observe    socket path LF observe token LF [the user's own status line command]
//!   HASH.bridge     socket path LF bridge token LF
//! ```
//!
//! A token is never an argument, a part of a URL, or a variable: a child of ours gets the *path* of
//! the observe and of the bridge file, and only we know the path of the third. All files are created with
//! mode 0600 rather than changed to it later, so there is no moment at which they are open to others.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{ApiError, door};
use pitstop_base::format;
use pitstop_core::api::endpoint::Right;

/// A token's strength in bytes: 256 bits, beyond guessing.
const TOKEN_BYTES: usize = 32;

/// The tokens of a run, for checking.
#[derive(Clone)]
pub struct Keys(Arc<Tokens>);

struct Tokens {
    observe: String,
    bridge: String,
    control: String,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(..)")
    }
}

impl Keys {
    fn random() -> io::Result<Self> {
        Ok(Self(Arc::new(Tokens {
            observe: random_token()?,
            bridge: random_token()?,
            control: random_token()?,
        })))
    }

    /// Returns the right of the bearer of `token`.
    pub(super) fn right_of(&self, token: &[u8]) -> Option<Right> {
        // All tokens are always compared, so that the time taken reveals nothing about any.
        let rights = [
            (&self.0.control, Right::Control),
            (&self.0.bridge, Right::Bridge),
            (&self.0.observe, Right::Observe),
        ];
        let held = rights.map(|(known, right)| (is_same(known.as_bytes(), token), right));
        let right = held.into_iter().find(|(is_held, _)| *is_held);
        right.map(|(_, right)| right)
    }
}

/// Returns a new token in hexadecimal digits.
pub(super) fn random_token() -> io::Result<String> {
    let mut bytes = [0_u8; TOKEN_BYTES];
    // The oldest interface of the kernel's generator: every Unix has it, and it needs no crate.
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format::hex(&bytes))
}

/// Reports whether two byte strings are equal, in a time that depends on their lengths only.
pub(super) fn is_same(secret: &[u8], guess: &[u8]) -> bool {
    let mut difference = u8::from(secret.len() != guess.len());
    for (a, b) in secret.iter().zip(guess) {
        difference = black_box(difference | (a ^ b));
    }
    difference == 0
}

/// The secrets' files of a run; dropping this removes them.
#[derive(Debug)]
pub struct Secrets {
    keys: Keys,
    project: String,
    status_line: Option<OsString>,
    /// The directories that hold the files.
    dirs: Vec<SecretsDir>,
}

/// The secrets' files in one directory.
#[derive(Debug)]
struct SecretsDir {
    dir: PathBuf,
    /// The socket that the files name.
    socket: PathBuf,
    observe: SecretFile,
    control: SecretFile,
    bridge: SecretFile,
}

/// A file that we made and keep open: as long as it is open, no later file can have its inode number, so that a later
/// supervisor's file can be distinguished from ours and left alone.
#[derive(Debug)]
struct SecretFile {
    path: PathBuf,
    made: File,
}

impl Secrets {
    /// Makes new tokens and writes `<project>.control`, `.observe` and `.bridge` into `dir`.
    ///
    /// `project` is the project's hash, `dir` the directory of sockets and tokens (created with mode 0700 if it does not
    /// exist, refused if others may write to it), `socket` the path for the files to name, and
    /// `status_line` the user's own status line command, which ours runs.
    pub fn create(
        dir: &Path,
        project: &str,
        socket: &Path,
        status_line: Option<&OsStr>,
    ) -> Result<Self, ApiError> {
        let mut secrets = Self {
            keys: Keys::random().map_err(ApiError::io("read", "/dev/urandom"))?,
            project: project.to_owned(),
            status_line: status_line.map(OsStr::to_owned),
            dirs: Vec::new(),
        };
        secrets.keep(dir, socket)?;
        Ok(secrets)
    }

    /// Makes sure that the files exist in `dir` and name this socket; returns whether they had to be written.
    pub fn keep(&mut self, dir: &Path, socket: &Path) -> Result<bool, ApiError> {
        let known = self.dirs.iter().position(|found| found.dir == dir);
        if let Some(known) = known {
            let found = &self.dirs[known];
            if found.socket == socket && found.is_there() {
                return Ok(false);
            }
        }
        door::ensure_private_directory(dir)?;
        if socket.as_os_str().as_bytes().contains(&b'\n') {
            return Err(ApiError::LineBreak {
                path: socket.to_owned(),
            });
        }
        let path = |ending: &str| dir.join(format!("{}.{ending}", self.project));
        let write = |ending, token: &str, line| write_secret(path(ending), socket, token, line);
        let (keys, line) = (&self.keys.0, self.status_line.as_deref());
        let written = write("control", &keys.control, None).and_then(|control| {
            Ok(SecretsDir {
                dir: dir.to_owned(),
                socket: socket.to_owned(),
                observe: write("observe", &keys.observe, line)?,
                control,
                bridge: write("bridge", &keys.bridge, None)?,
            })
        });
        let found = written.inspect_err(|_| {
            // An incomplete set would keep clients from using the files in another directory.
            for ending in ["control", "observe", "bridge"] {
                let _ = fs::remove_file(path(ending));
            }
        })?;
        match known {
            Some(known) => self.dirs[known] = found,
            None => self.dirs.push(found),
        }
        Ok(true)
    }

    /// Reports whether the files were written in `dir` and should still be there.
    pub fn is_kept_in(&self, dir: &Path) -> bool {
        self.dirs.iter().any(|found| found.dir == dir)
    }

    /// Returns the paths of the files in all directories.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let files = self.dirs.iter().flat_map(SecretsDir::files);
        files.map(|(file, _)| file)
    }

    /// Returns the tokens, for [`super::serve`].
    pub fn keys(&self) -> Keys {
        self.keys.clone()
    }

    /// Returns the file whose path is given to hook commands.
    pub fn observe_file(&self) -> &Path {
        &self.current().observe.path
    }

    /// Returns the file that the user's own commands read; its path is never given to the hosted agent.
    pub fn control_file(&self) -> &Path {
        &self.current().control.path
    }

    /// Returns the first directory in which all files exist, or else the first of all.
    fn current(&self) -> &SecretsDir {
        let mut dirs = self.dirs.iter();
        dirs.find(|dir| dir.is_there())
            .or(self.dirs.first())
            .expect("they are written before anything else")
    }
}

impl SecretsDir {
    fn files(&self) -> impl Iterator<Item = (&Path, u64)> {
        [&self.observe, &self.control, &self.bridge]
            .into_iter()
            .filter_map(|file| Some((file.path.as_path(), file.made.metadata().ok()?.ino())))
    }

    fn is_there(&self) -> bool {
        self.files()
            .all(|(file, inode)| door::is_still(file, inode))
    }
}

impl Drop for Secrets {
    fn drop(&mut self) {
        for (file, inode) in self.dirs.iter().flat_map(SecretsDir::files) {
            door::remove_if_still(file, inode);
        }
    }
}

/// Rewrites one file and returns it open; a file of an earlier run is removed first.
fn write_secret(
    path: PathBuf,
    socket: &Path,
    token: &str,
    status_line: Option<&OsStr>,
) -> Result<SecretFile, ApiError> {
    match fs::remove_file(&path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(ApiError::io("remove", path)(error)),
    }
    let mut text = Vec::new();
    text.extend_from_slice(socket.as_os_str().as_bytes());
    text.push(b'\n');
    text.extend_from_slice(token.as_bytes());
    text.push(b'\n');
    text.extend_from_slice(status_line.map(OsStr::as_bytes).unwrap_or_default());
    // `create_new` is O_EXCL, which follows no link either.
    let mut made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .map_err(ApiError::io("create", &path))?;
    made.write_all(&text)
        .map_err(ApiError::io("write", &path))?;
    Ok(SecretFile { path, made })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    pub(crate) fn private_dir() -> tempfile::TempDir {
        let mode = fs::Permissions::from_mode(0o700);
        tempfile::Builder::new()
            .permissions(mode)
            .tempdir()
            .unwrap()
    }

    #[test]
    fn each_token_has_its_own_right_and_no_other_has_any() {
        let keys = Keys::random().unwrap();
        let right = |token: &str| keys.right_of(token.as_bytes());
        assert_eq!(keys.0.control.len(), 64);
        assert_ne!(keys.0.control, keys.0.observe);
        assert_eq!(right(&keys.0.control), Some(Right::Control));
        assert_eq!(right(&keys.0.observe), Some(Right::Observe));
        assert_eq!(right(&keys.0.bridge), Some(Right::Bridge));
        assert_eq!(right(""), None);
        assert_eq!(right(&keys.0.control[..63]), None);
        assert_eq!(right(&format!("{}0", keys.0.control)), None);
        assert_eq!(format!("{keys:?}"), "Keys(..)");
    }

    #[test]
    fn secrets_are_private_files_that_go_with_their_owner() {
        let dir = private_dir();
        let socket = dir.path().join("p.sock");
        let secrets =
            Secrets::create(dir.path(), "p", &socket, Some(OsStr::new("my-line --x"))).unwrap();
        let (observe, control, bridge) = (
            secrets.observe_file().to_owned(),
            secrets.control_file().to_owned(),
            dir.path().join("p.bridge"),
        );
        for file in [&observe, &control, &bridge] {
            let mode = fs::metadata(file).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o600);
        }
        let text = fs::read_to_string(&observe).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines,
            [
                socket.to_str().unwrap(),
                &secrets.keys.0.observe,
                "my-line --x"
            ]
        );
        assert!(!text.contains(&secrets.keys.0.control));
        let text = fs::read_to_string(&bridge).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines, [socket.to_str().unwrap(), &secrets.keys.0.bridge]);
        drop(secrets);
        assert!(!observe.exists() && !control.exists() && !bridge.exists());
    }

    #[test]
    fn leftovers_and_links_are_replaced_and_never_written_through() {
        let dir = private_dir();
        let victim = dir.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, dir.path().join("p.observe")).unwrap();
        fs::write(dir.path().join("p.control"), "old").unwrap();
        let secrets = Secrets::create(dir.path(), "p", Path::new("/s"), None).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert!(
            fs::symlink_metadata(secrets.observe_file())
                .unwrap()
                .is_file()
        );
        assert!(
            fs::read_to_string(secrets.control_file())
                .unwrap()
                .starts_with("/s\n")
        );
    }

    #[test]
    fn an_ended_run_leaves_its_successors_files_alone() {
        let dir = private_dir();
        let first = Secrets::create(dir.path(), "p", Path::new("/s"), None).unwrap();
        let second = Secrets::create(dir.path(), "p", Path::new("/s"), None).unwrap();
        drop(first);
        assert!(second.observe_file().exists() && second.control_file().exists());
    }

    #[test]
    fn files_that_are_gone_are_written_again_with_the_same_tokens() {
        let top = private_dir();
        let dir = top.path().join("user/pitstop");
        let (usual, other) = (dir.join("p.sock"), top.path().join("p.sock"));
        let mut secrets = Secrets::create(&dir, "p", &usual, None).unwrap();
        let read = |secrets: &Secrets| fs::read_to_string(secrets.control_file()).unwrap();
        let before = read(&secrets);
        assert!(!secrets.keep(&dir, &usual).unwrap());
        fs::remove_dir_all(top.path().join("user")).unwrap();
        assert!(secrets.keep(&dir, &usual).unwrap());
        assert_eq!(read(&secrets), before);

        // Nothing can be made there: another place serves, until it can.
        fs::remove_dir_all(top.path().join("user")).unwrap();
        fs::write(top.path().join("user"), "").unwrap();
        assert!(secrets.keep(&dir, &usual).is_err());
        assert!(secrets.keep(top.path(), &other).unwrap());
        assert_eq!(secrets.observe_file(), top.path().join("p.observe"));
        fs::remove_file(top.path().join("user")).unwrap();
        assert!(secrets.keep(&dir, &other).unwrap());
        assert!(read(&secrets).starts_with(other.to_str().unwrap()));
        drop(secrets);
        assert!(!dir.join("p.control").exists() && !top.path().join("p.control").exists());
    }

    #[test]
    fn a_socket_path_with_a_line_break_is_refused() {
        let dir = private_dir();
        let outcome = Secrets::create(dir.path(), "p", Path::new("/a\nb"), None);
        assert!(matches!(outcome, Err(ApiError::LineBreak { .. })));
    }
}
