//! The record of the project files that the user has read and trusts, exactly as they were then.
//!
//! The record is `$XDG_STATE_HOME/pitstop/trusted`, mode 0600, one line a project:
//!
//! ```text
//! SHA-256 of the file   SHA-256 of the project's real path   the path, for people
//! ```
//!
//! Trust is given to these bytes in this directory: a changed file is asked about again, and a copy
//! of a trusted file in another clone is not trusted.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
};

use rustix::fs::OFlags;

use super::{
    paths::{DirError, Paths, ensure_private_dir, hash},
    read_project,
};
use crate::config::{error::Fault, file, schema::Voter};
use pitstop_base::{clean::one_line, private_file};

/// The largest record that is read, in bytes; some six thousand projects.
const MAX_BYTES: u64 = 1024 * 1024;

/// The reason why trust cannot be looked up or given.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The project has no file to trust.
    #[error("this project has no configuration to trust: {} does not exist", .0.display())]
    NoFile(PathBuf),
    /// The project's file is refused even if it is trusted.
    #[error("{0}")]
    Refused(String),
    /// The record cannot be read or written.
    #[error("cannot use the record of trusted projects {}: {source}", path.display())]
    Record {
        /// The record.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The record is not safe to use.
    #[error(
        "expected {} to be a file of your own that only you can write, found owner {owner}, mode {mode:03o}; no project is trusted",
        path.display()
    )]
    Unsafe {
        /// The record.
        path: PathBuf,
        /// The numeric id of its owner.
        owner: u32,
        /// Its permission bits.
        mode: u32,
    },
    /// The state directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirError),
}

/// A project file as it was read, for the user to see before it is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The file.
    pub path: PathBuf,
    /// Its text as it would be trusted.
    pub text: String,
    /// The keys that only count once it is trusted, as `table.key`.
    pub owner_keys: Vec<String>,
    /// True if it is trusted already.
    pub trusted: bool,
}

/// Reads the project's file for the user to decide about.
pub fn candidate(paths: &Paths) -> Result<Candidate, TrustError> {
    let path = paths.project_config();
    let text = match read_project(paths) {
        Ok(Some(text)) => text,
        Ok(None) => return Err(TrustError::NoFile(path)),
        Err(Fault { message, .. }) => return Err(TrustError::Refused(message)),
    };
    let written = file::read(path.display().to_string(), text.as_str());
    let owner_keys = written
        .entries
        .iter()
        .filter(|entry| entry.key.voter == Voter::Owner)
        .map(|entry| format!("{}.{}", entry.key.table, entry.key.name))
        .collect();
    Ok(Candidate {
        trusted: is_trusted(paths, &text)?,
        path,
        text,
        owner_keys,
    })
}

/// Trusts a file as it was shown to the user, not as it may have become since.
pub fn trust(paths: &Paths, candidate: &Candidate) -> Result<(), TrustError> {
    let fingerprint = Fingerprint::of(paths, &candidate.text)?;
    let mut lines = read_record(paths)?;
    lines.retain(|line| !fingerprint.is_project_of(line));
    let shown = candidate.path.display().to_string();
    lines.push(format!(
        "{} {} {}",
        fingerprint.text,
        fingerprint.project,
        one_line(&shown)
    ));
    write_record(paths, &lines)
}

/// Takes the trust from the project back, and reports whether there was any.
pub fn revoke(paths: &Paths) -> Result<bool, TrustError> {
    let fingerprint = Fingerprint::of(paths, "")?;
    let mut lines = read_record(paths)?;
    let before = lines.len();
    lines.retain(|line| !fingerprint.is_project_of(line));
    let changed = lines.len() != before;
    if changed {
        write_record(paths, &lines)?;
    }
    Ok(changed)
}

/// Reports whether the project's file is trusted with this text.
pub fn is_trusted(paths: &Paths, text: &str) -> Result<bool, TrustError> {
    let fingerprint = Fingerprint::of(paths, text)?;
    let wanted = format!("{} {} ", fingerprint.text, fingerprint.project);
    Ok(read_record(paths)?
        .iter()
        .any(|line| line.starts_with(&wanted)))
}

/// The fingerprint that identifies a text in a project.
struct Fingerprint {
    text: String,
    project: String,
}

impl Fingerprint {
    fn of(paths: &Paths, text: &str) -> Result<Self, TrustError> {
        let project = paths.project();
        let real = project
            .canonicalize()
            .map_err(|_| TrustError::NoFile(paths.project_config()))?;
        Ok(Self {
            text: hash(text.as_bytes()),
            project: hash(real.as_os_str().as_encoded_bytes()),
        })
    }

    fn is_project_of(&self, line: &str) -> bool {
        line.split(' ').nth(1) == Some(&self.project)
    }
}

fn read_record(paths: &Paths) -> Result<Vec<String>, TrustError> {
    let path = paths.trust_record();
    let failed = |source: io::Error| TrustError::Record {
        path: path.clone(),
        source,
    };
    let file = match private_file::open(&path, OFlags::RDONLY) {
        Ok(file) => file,
        Err(error) if error.is_absent() => return Ok(Vec::new()),
        Err(error) => return Err(failed(error.into())),
    };
    let meta = file.metadata().map_err(failed)?;
    let (owner, mode) = (meta.uid(), meta.mode() & 0o777);
    if owner != rustix::process::geteuid().as_raw() || mode & 0o022 != 0 {
        return Err(TrustError::Unsafe { path, owner, mode });
    }
    let mut text = String::new();
    file.take(MAX_BYTES)
        .read_to_string(&mut text)
        .map_err(failed)?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Writes a temporary file, syncs and renames it, so that a crash leaves the old record or the new one.
fn write_record(paths: &Paths, lines: &[String]) -> Result<(), TrustError> {
    ensure_private_dir(paths.state_dir())?;
    let path = paths.trust_record();
    let failed = |source: io::Error| TrustError::Record {
        path: path.clone(),
        source,
    };
    // Created with mode 0600 under a name that cannot be guessed.
    let mut aside = tempfile::NamedTempFile::new_in(paths.state_dir()).map_err(failed)?;
    for line in lines {
        writeln!(aside, "{line}").map_err(failed)?;
    }
    aside.as_file().sync_all().map_err(failed)?;
    aside.persist(&path).map_err(|error| failed(error.error))?;
    let directory = File::open(paths.state_dir()).map_err(failed)?;
    directory.sync_all().map_err(failed)
}
