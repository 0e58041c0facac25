//! The paths of all files: the directories of the user and of the project.

use std::{
    ffi::OsString,
    fs::{DirBuilder, Metadata},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};
use sha2::{Digest as _, Sha256};

use pitstop_base::format;

/// The name of Pitstop's directory in each of the user's directories.
const NAME: &str = "pitstop";

/// The path of the state directory below the home.
const STATE: &str = ".local/state";

/// The directory of sockets and tokens in the state directory.
const RUN: &str = "run";

/// The longest path of a socket in bytes: macOS holds 104 with the closing NUL, Linux 108.
const SOCKET_PATH_MAX: usize = 103;

/// The directories of one user and one project. Nothing here is created or checked; see
/// [`ensure_private_dir`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    config: PathBuf,
    state: PathBuf,
    run: Vec<PathBuf>,
    project: PathBuf,
}

/// The reason why the directories cannot be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathsError {
    /// Neither `HOME`, nor the password database, nor both XDG variables name a directory.
    #[error(
        "no home directory is named by HOME or the password database; set HOME, or XDG_CONFIG_HOME and XDG_STATE_HOME"
    )]
    NoHome,
}

/// The values that the directories depend on; handed in, so that tests leave the process alone.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The function that looks up an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// The function that reads the home directory from the password database, for when `HOME` is not set.
    pub home: &'a dyn Fn() -> Option<PathBuf>,
    /// The numeric id of the user.
    pub uid: u32,
}

impl Surroundings<'_> {
    /// Returns a directory by the XDG base directory rules: relative paths count as not set.
    fn directory(&self, name: &str) -> Option<PathBuf> {
        let path = PathBuf::from((self.variable)(name)?);
        path.is_absolute().then_some(path)
    }

    /// Returns the directories of sockets and tokens, the usual one first: `run` in the state directory, which a logout leaves alone, and
    /// `/tmp/pitstop-UID` where no variable names a home, that takes no files, or the path of a socket would be too long.
    fn run_dirs(&self) -> Vec<PathBuf> {
        let home = || Some(self.directory("HOME")?.join(STATE));
        let state = self.directory("XDG_STATE_HOME").or_else(home);
        let state = state.map(|path| path.join(NAME).join(RUN));
        let shared = PathBuf::from(format!("/tmp/{NAME}-{}", self.uid));
        state.into_iter().chain([shared]).collect()
    }
}

/// Returns this process's own surroundings.
fn of_this_process() -> Surroundings<'static> {
    Surroundings {
        variable: &|name| std::env::var_os(name),
        home: &std::env::home_dir,
        uid: rustix::process::geteuid().as_raw(),
    }
}

/// Returns the secrets file of the project that the current directory belongs to: `ending` is `observe` or `control`. Needs no home
/// and reads no file, for hooks are in a hurry.
pub fn secrets_file_here(ending: &str) -> io::Result<PathBuf> {
    secrets_file_of(&project_here()?, ending)
}

/// Returns the project that the current directory belongs to, by [`project_of`].
pub fn project_here() -> io::Result<PathBuf> {
    let directory = std::env::current_dir().map_err(explain_gone)?;
    project_of(&directory, std::env::home_dir().as_deref())
}

/// Returns the error of a current directory that cannot be found, with what to do about one that is gone.
fn explain_gone(error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::NotFound {
        return error;
    }
    let why = "it was deleted or moved; change to a directory that exists";
    io::Error::new(error.kind(), why)
}

/// Returns the project that a directory belongs to, without links: the nearest directory from there upwards that has a `.pitstop` or is
/// the root of a git work tree; the directory itself if there is none. The search ends before the home directory, and at a directory
/// in which other users could have put such a mark. A path that is not UTF-8 is refused: records and JSON could not name it, and agents
/// end there at once.
pub fn project_of(directory: &Path, home: Option<&Path>) -> io::Result<PathBuf> {
    let directory = directory.canonicalize()?;
    let home = home.and_then(|home| home.canonicalize().ok());
    let user = rustix::process::geteuid().as_raw();
    let is_ours = |place: &Path| {
        let meta = place.metadata();
        meta.is_ok_and(|meta| meta.uid() == user && meta.mode() & 0o002 == 0)
    };
    let is_project = |place: &&Path| place.join(".pitstop").is_dir() || place.join(".git").exists();
    let mut places = directory
        .ancestors()
        .take_while(|place| *place == directory || home.as_deref() != Some(*place))
        .take_while(|place| is_ours(place));
    let project = places.find(is_project).unwrap_or(&directory);
    if project.to_str().is_none() {
        let why = "its path is not UTF-8, so neither agents nor records can name it; rename it";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(project.to_path_buf())
}

/// Returns the secrets file of a project directory, as [`secrets_file_here`] does: in the first of the directories that has it.
pub fn secrets_file_of(project: &Path, ending: &str) -> io::Result<PathBuf> {
    let name = format!("{}.{ending}", project_hash(project)?);
    let mut files = of_this_process().run_dirs();
    for place in &mut files {
        place.push(&name);
    }
    let found = files.iter().position(|file| file.exists());
    Ok(files.swap_remove(found.unwrap_or(0)))
}

impl Paths {
    /// Returns the directories as this process sees them, for a project directory.
    pub fn of_process(project: &Path) -> Result<Self, PathsError> {
        Self::find(&of_this_process(), project)
    }

    /// Returns the directories as this process would see them with these variables, for a project directory.
    pub fn of_process_with(
        variables: &[(OsString, OsString)],
        project: &Path,
    ) -> Result<Self, PathsError> {
        let process = of_this_process();
        let variable = |name: &str| {
            let own = variables.iter().find(|(own, _)| own == name);
            own.map_or_else(
                || (process.variable)(name),
                |(_, value)| Some(value.clone()),
            )
        };
        let surroundings = Surroundings {
            variable: &variable,
            ..process
        };
        Self::find(&surroundings, project)
    }

    /// Returns the directories in given surroundings, for a project directory.
    pub fn find(surroundings: &Surroundings<'_>, project: &Path) -> Result<Self, PathsError> {
        let directory = |name: &str| surroundings.directory(name);
        let home = || {
            let by_database = || (surroundings.home)().filter(|home| home.is_absolute());
            directory("HOME")
                .or_else(by_database)
                .ok_or(PathsError::NoHome)
        };
        let user = |variable: &str, below_home: &str| match directory(variable) {
            Some(path) => Ok(path.join(NAME)),
            None => home().map(|home| home.join(below_home).join(NAME)),
        };
        Ok(Self {
            config: user("XDG_CONFIG_HOME", ".config")?,
            state: user("XDG_STATE_HOME", STATE)?,
            run: surroundings.run_dirs(),
            project: project.to_owned(),
        })
    }

    /// Returns `$XDG_CONFIG_HOME/pitstop`: the files that the user writes.
    pub fn config_dir(&self) -> &Path {
        &self.config
    }

    /// Returns the user's `config.toml`.
    pub fn user_config(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// Returns `$XDG_STATE_HOME/pitstop`: the files that Pitstop keeps.
    pub fn state_dir(&self) -> &Path {
        &self.state
    }

    /// Returns the `SQLite` file with runs, checkpoints and the journal.
    pub fn database(&self) -> PathBuf {
        self.state.join("pitstop.db")
    }

    /// Returns the record of trusted project files.
    pub fn trust_record(&self) -> PathBuf {
        self.state.join("trusted")
    }

    /// Returns the directory of the log files.
    pub fn log_dir(&self) -> PathBuf {
        self.state.join("log")
    }

    /// Returns the usual directory of sockets and tokens.
    pub fn run_dir(&self) -> &Path {
        &self.run[0]
    }

    /// Returns the directories of sockets and tokens: the usual one, and that which is used where it cannot be made.
    pub fn run_dirs(&self) -> impl Iterator<Item = &Path> {
        self.run.iter().map(PathBuf::as_path)
    }

    /// Returns the directory that is used where the state directory takes no files.
    pub fn spare_dir(&self) -> &Path {
        &self.run[self.run.len() - 1]
    }

    /// Returns the paths that the control socket of the project with this hash may have, the usual one first: in one of the
    /// [`Self::run_dirs`], but for those where the path would be too long for a socket's address. Clients read its
    /// place from the secrets file.
    pub fn control_sockets(&self, hash: &str) -> impl Iterator<Item = PathBuf> {
        let name = format!("{hash}.sock");
        self.run_dirs()
            .map(move |place| place.join(&name))
            .filter(|socket| socket.as_os_str().len() <= SOCKET_PATH_MAX)
    }

    /// Returns the project's directory itself.
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// Returns the project's `.pitstop`.
    pub fn project_dir(&self) -> PathBuf {
        self.project.join(".pitstop")
    }

    /// Returns the project's `.pitstop/config.toml`.
    pub fn project_config(&self) -> PathBuf {
        self.project_dir().join("config.toml")
    }

    /// Returns the files whose change is worth a reload, whether they exist or not.
    pub fn watched(&self) -> [PathBuf; 3] {
        [
            self.user_config(),
            self.project_config(),
            self.trust_record(),
        ]
    }
}

/// Returns the short name of a project directory in sockets and locks: 16 hexadecimal digits of the SHA-256 of its real
/// path, so that two ways to one directory meet in one supervisor.
pub fn project_hash(project: &Path) -> io::Result<String> {
    let real = match project.canonicalize() {
        // One that was renamed or removed while its session runs is known by the path that it had, which was without links.
        Err(error) if error.kind() == io::ErrorKind::NotFound && project.is_absolute() => {
            project.to_owned()
        }
        found => found?,
    };
    let mut name = hash(real.as_os_str().as_encoded_bytes());
    name.truncate(16);
    Ok(name)
}

/// Returns the SHA-256 of some bytes in 64 hexadecimal digits.
pub(super) fn hash(bytes: &[u8]) -> String {
    format::hex(&Sha256::digest(bytes))
}

/// The reason why a directory is not used.
#[derive(Debug, thiserror::Error)]
pub enum DirError {
    /// The directory cannot be made or looked at.
    #[error("cannot use the directory {}: {source}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The directory is there, but not as Pitstop would have made it.
    #[error("expected {} to be {expected}, found {found}", path.display())]
    Unsafe {
        /// The path of the directory, or of the one that holds it.
        path: PathBuf,
        /// The expected state of the directory.
        expected: &'static str,
        /// The found state of the directory.
        found: String,
    },
}

/// Makes a directory that only its user can enter, or makes sure that an existing one is private: the user's own, no link,
/// mode 0700, in a place where no other user can swap it.
///
/// One that others can read is closed; one that others could write is refused, because they may have put something into it.
pub fn ensure_private_dir(path: &Path) -> Result<(), DirError> {
    let failed = |source| DirError::Io {
        path: path.to_owned(),
        source,
    };
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    if let Some(parent) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        builder.recursive(true).create(parent).map_err(failed)?;
        check_parent(parent)?;
    }
    match builder.recursive(false).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(failed(error)),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(descriptor) => std::fs::File::from(descriptor),
        Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => {
            return Err(DirError::Unsafe {
                path: path.to_owned(),
                expected: "a directory",
                found: "a link or a file".to_owned(),
            });
        }
        Err(error) => return Err(failed(error.into())),
    };
    let meta = directory.metadata().map_err(failed)?;
    check_private(path, &meta)?;
    if meta.mode() & 0o077 != 0 {
        let private = std::fs::Permissions::from_mode(0o700);
        directory.set_permissions(private).map_err(failed)?;
    }
    Ok(())
}

fn check_private(path: &Path, meta: &Metadata) -> Result<(), DirError> {
    let us = rustix::process::geteuid().as_raw();
    let mode = meta.mode() & 0o777;
    let (expected, found) = if meta.uid() != us {
        ("owned by you", format!("owner {}", meta.uid()))
    } else if mode & 0o022 != 0 {
        ("writable by you alone", format!("mode {mode:03o}"))
    } else {
        return Ok(());
    };
    Err(DirError::Unsafe {
        path: path.to_owned(),
        expected,
        found,
    })
}

/// Refuses a parent directory that everyone can write and that has no sticky bit: only that bit keeps others from swapping
/// the directory.
fn check_parent(parent: &Path) -> Result<(), DirError> {
    let meta = parent.metadata().map_err(|source| DirError::Io {
        path: parent.to_owned(),
        source,
    })?;
    let mode = meta.mode() & 0o7777;
    if mode & 0o002 != 0 && mode & 0o1000 == 0 {
        return Err(DirError::Unsafe {
            path: parent.to_owned(),
            expected: "sticky, or not writable by everyone",
            found: format!("mode {mode:04o}"),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_project_whose_path_is_not_utf_8_is_refused() {
        use std::os::unix::ffi::OsStrExt as _;
        let place = tempfile::tempdir().unwrap();
        let named = place.path().join(std::ffi::OsStr::from_bytes(b"na\xefve"));
        std::fs::create_dir_all(named.join("app/.git")).unwrap();
        let refused = project_of(&named.join("app"), None).unwrap_err();
        assert!(refused.to_string().contains("not UTF-8"), "{refused}");
        assert!(project_of(place.path(), None).is_ok());
    }

    #[test]
    fn a_current_directory_that_is_gone_is_reported_with_what_to_do() {
        let gone = explain_gone(io::ErrorKind::NotFound.into()).to_string();
        assert!(gone.contains("change to a directory that exists"), "{gone}");
        let closed = io::Error::from(io::ErrorKind::PermissionDenied);
        let said = closed.to_string();
        assert_eq!(explain_gone(closed).to_string(), said);
    }
}
