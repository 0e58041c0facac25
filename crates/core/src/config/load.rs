//! Finds, reads and merges: defaults < user < project < flags.
//!
//! The user's file may be a link (dotfiles often are) and may belong to root (so on NixOS), but no other user may be able
//! to write it: it names commands. The project's file may have come with a clone: it is opened below its directory without
//! following links, has to be a regular file of the user's own, and sets looks and numbers only until [`trust`] holds it as
//! trusted.

pub mod paths;
pub mod trust;

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

use pitstop_base::private_file::{self, OpenError};

use super::{
    Config,
    error::{ConfigErrors, Fault},
    file,
    merge::{Layer, merge},
};
use paths::Paths;

/// The settings of the configuration on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// The file of `--config FILE`, read instead of the user's file; it has to exist.
    pub file: Option<PathBuf>,
    /// The settings of `--set TABLE.KEY=VALUE`, and of other flags in these terms; later ones win. The value is TOML; a
    /// value that is no TOML is taken as a text.
    pub settings: Vec<String>,
}

impl Flags {
    /// Returns the files whose change is worth a reload, whether they exist or not. Dotfiles are often links, and an editor writes to what
    /// they lead to.
    pub fn watched(&self, paths: &Paths) -> Vec<PathBuf> {
        let own = paths.watched().into_iter().chain(self.file.clone());
        let mut files: Vec<PathBuf> = own.collect();
        let targets = files.iter().filter_map(|file| file.canonicalize().ok());
        let targets: Vec<PathBuf> = targets.filter(|target| !files.contains(target)).collect();
        files.extend(targets);
        files
    }
}

/// A configuration with its sources.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The configuration, checked and ready to use.
    pub config: Config,
    /// The settings that were ignored, with the reasons; to be shown and logged, the session goes on.
    pub warnings: Vec<Fault>,
    /// The sources that had an effect, from the lowest to the highest; the defaults are not listed.
    pub sources: Vec<Source>,
}

/// A source that had an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The user's own file.
    User(PathBuf),
    /// The project's file, and whether `pitstop trust` was given for it as it is now.
    Project {
        /// The file.
        path: PathBuf,
        /// True if all of its keys count.
        trusted: bool,
    },
    /// A flag, as it was written.
    Flag(String),
}

/// Reads the files that exist and merges them. All faults of all files are reported together.
///
/// A running session takes up an edit in the same way: on an error the caller keeps the old configuration and shows the
/// faults.
pub fn load(paths: &Paths, flags: &Flags) -> Result<Loaded, ConfigErrors> {
    let mut errors = ConfigErrors::default();
    let mut warnings = Vec::new();
    let mut layers = Vec::new();
    let mut sources = Vec::new();
    match read_user(paths, flags) {
        Ok(Some((path, text))) => {
            layers.push(layer(path.display().to_string(), text, true));
            sources.push(Source::User(path));
        }
        Ok(None) => {}
        Err(fault) => errors.faults.push(fault),
    }
    match read_project(paths) {
        Ok(Some(text)) => {
            let path = paths.project_config();
            let trusted = trust::is_trusted(paths, &text).unwrap_or_else(|error| {
                warnings.push(Fault::general(error.to_string(), None));
                false
            });
            layers.push(layer(path.display().to_string(), text, trusted));
            sources.push(Source::Project { path, trusted });
        }
        Ok(None) => {}
        Err(fault) => warnings.push(fault),
    }
    for setting in &flags.settings {
        match as_toml(setting) {
            Some(text) => layers.push(layer(format!("--set {setting}"), text, true)),
            None => errors.faults.push(Fault::general(
                format!("expected TABLE.KEY=VALUE after --set, found `{setting}`"),
                None,
            )),
        }
        sources.push(Source::Flag(setting.clone()));
    }
    match merge(layers) {
        Ok((config, ignored)) if errors.faults.is_empty() => {
            warnings.extend(ignored);
            Ok(Loaded {
                config,
                warnings,
                sources,
            })
        }
        Ok(_) => Err(errors),
        Err(more) => {
            errors.faults.extend(more.faults);
            errors.more += more.more;
            Err(errors)
        }
    }
}

/// Checks one file as if it were the user's own.
pub fn check_file(path: &Path) -> Result<Config, ConfigErrors> {
    let text = read_named(path)?;
    Config::from_toml(&path.display().to_string(), &text)
}

impl Config {
    /// Checks a TOML text laid over the defaults; `name` is the file as the user would name it.
    pub fn from_toml(name: &str, text: &str) -> Result<Self, ConfigErrors> {
        let layers = vec![layer(name.to_owned(), text.to_owned(), true)];
        merge(layers).map(|(config, _)| config)
    }

    /// Checks a TOML text as an untrusted project's; the second of the pair holds the settings that were ignored.
    pub fn from_project_toml(name: &str, text: &str) -> Result<(Self, Vec<Fault>), ConfigErrors> {
        merge(vec![layer(name.to_owned(), text.to_owned(), false)])
    }
}

fn layer(name: String, text: String, trusted: bool) -> Layer {
    Layer {
        written: file::read(name, text),
        trusted,
    }
}

/// Returns `TABLE.KEY=VALUE` as a line of TOML.
fn as_toml(setting: &str) -> Option<String> {
    let (name, value) = setting.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !name.contains('.') || !name.chars().all(is_name) {
        return None;
    }
    if toml::de::DeValue::parse(value).is_ok() {
        return Some(format!("{name} = {value}"));
    }
    let text = toml::Value::String(value.to_owned());
    Some(format!("{name} = {text}"))
}

/// Reads the user's file, or the one that a flag names; `None` if there is none.
fn read_user(paths: &Paths, flags: &Flags) -> Result<Option<(PathBuf, String)>, Fault> {
    if let Some(path) = &flags.file {
        return Ok(Some((path.clone(), read_named(path)?)));
    }
    let path = paths.user_config();
    let Some(file) = open_if_there(&path)? else {
        return Ok(None);
    };
    check_writers(&file, &path)?;
    let text = read_text(file, &path)?;
    Ok(Some((path, text)))
}

/// Reads another file of the user's configuration, as careful as with the first; `None` if there is none.
pub fn read_beside(path: &Path) -> Result<Option<String>, Fault> {
    let file = open_if_there(path)?;
    file.map(|file| read_text(file, path)).transpose()
}

fn open_if_there(path: &Path) -> Result<Option<File>, Fault> {
    match open(path) {
        Ok(file) => Ok(Some(file)),
        // A link to nothing is a file that its user believes to be in force.
        Err(error) if is_missing(&error) && !path.is_symlink() => Ok(None),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// Reads a file that the user named: it has to be there, and may belong to anyone.
fn read_named(path: &Path) -> Result<String, Fault> {
    let file = open(path).map_err(|error| unreadable(path, &error))?;
    read_text(file, path)
}

/// Reads the project's file below its directory, following no link; `None` if there is none. A fault here is a warning: a
/// repository cannot keep Pitstop from starting.
fn read_project(paths: &Paths) -> Result<Option<String>, Fault> {
    let path = paths.project_config();
    let refused = |why: &str| {
        let shown = path.display();
        Fault::general(
            format!("{shown} is ignored: expected a regular file of your own, found {why}"),
            None,
        )
    };
    let directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match rustix::fs::open(paths.project_dir(), directory, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(refused("a link")),
        // Linux reports a link in the same way when a directory is asked for.
        Err(Errno::NOTDIR) => return Err(refused("a link or a file as its directory")),
        Err(error) => return Err(refused(&io::Error::from(error).to_string())),
    };
    let file = match private_file::open_at(directory, "config.toml".as_ref(), OFlags::RDONLY) {
        Ok(file) => file,
        Err(error) if error.is_absent() => return Ok(None),
        Err(OpenError::Link) => return Err(refused("a link")),
        Err(OpenError::NotRegular) => return Err(refused("something else")),
        Err(OpenError::Io(error)) => return Err(refused(&error.to_string())),
    };
    match private_file::other_owner(&file) {
        Ok(None) => read_text(file, &path).map(Some),
        Ok(Some(owner)) => Err(refused(&format!("one of user {owner}"))),
        Err(error) => Err(refused(&error.to_string())),
    }
}

/// Opens a file for reading without waiting for a pipe's other end.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let descriptor = rustix::fs::open(path, flags, Mode::empty())?;
    Ok(File::from(descriptor))
}

/// Refuses a file that another user can write: it names commands, so only its user (or root) may be able to write it. Write
/// permission for the user's own group is common (umask 002) and lets in no other user.
fn check_writers(file: &File, path: &Path) -> Result<(), Fault> {
    let meta = file.metadata().map_err(|error| unreadable(path, &error))?;
    let (owner, mode) = (meta.uid(), meta.mode() & 0o777);
    let ours = owner == rustix::process::geteuid().as_raw() || owner == 0;
    let own_group = meta.gid() == rustix::process::getegid().as_raw();
    let others_write = mode & 0o002 != 0 || (mode & 0o020 != 0 && !own_group);
    if ours && !others_write {
        return Ok(());
    }
    let shown = path.display();
    Err(Fault::general(
        format!(
            "expected {shown} to be writable by you alone, found owner {owner}, mode {mode:03o}"
        ),
        Some(writers_help(ours, path)),
    ))
}

/// Returns what to do about a file of ours that others can write, or about one of another user.
fn writers_help(ours: bool, path: &Path) -> String {
    let shown = path.display().to_string();
    let shown = shell_words::quote(&shown);
    if ours {
        format!("run `chmod go-w {shown}`; the file names commands")
    } else {
        format!("it names commands: if you trust its owner, use it by `--config {shown}`")
    }
}

/// Reads the text of an open file: regular, of a sane size, UTF-8.
fn read_text(file: File, path: &Path) -> Result<String, Fault> {
    let shown = path.display();
    let meta = file.metadata().map_err(|error| unreadable(path, &error))?;
    if !meta.is_file() {
        return Err(Fault::general(
            format!("expected {shown} to be a regular file, found something else"),
            None,
        ));
    }
    let mut bytes = Vec::new();
    // One byte more than allowed shows a file that is too large, even one that grows.
    file.take(file::MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > file::MAX_BYTES {
        return Err(Fault::general(
            format!(
                "expected {shown} to be at most {} bytes, found more",
                file::MAX_BYTES
            ),
            None,
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].split(|byte| *byte == b'\n').count();
        Fault::general(
            format!("expected {shown} to be UTF-8, found another byte in line {line}"),
            None,
        )
    })
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn unreadable(path: &Path, error: &io::Error) -> Fault {
    Fault::general(format!("cannot read {}: {error}", path.display()), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_on_a_file_of_another_user_is_not_to_change_its_mode() {
        let path = Path::new("/home/ada/my config.toml");
        let ours = writers_help(true, path);
        assert!(
            ours.contains("chmod go-w '/home/ada/my config.toml'"),
            "{ours}"
        );
        let other = writers_help(false, path);
        assert!(!other.contains("chmod"), "{other}");
        assert!(
            other.contains("--config '/home/ada/my config.toml'"),
            "{other}"
        );
    }
}
