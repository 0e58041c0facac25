//! Looks at the files that a handoff names, and reads those that it includes.
//!
//! The names are the user's or git's, the files anyone's: each part of a path is opened from the handle of the one above
//! it and without following links, so that no name leads out of the project, and only regular files are read, no more
//! than a handoff shows.

use std::{
    ffi::OsStr,
    path::{Component, Path},
    time::{Duration, Instant},
};

use rustix::{
    fd::OwnedFd,
    fs::{CWD, Mode, OFlags},
    io::Errno,
};

use pitstop_agent::claude::projects::repository_top;
use pitstop_base::{
    clean,
    private_file::{self, OpenError},
};
use pitstop_core::app::event::HandoffFiles;
use pitstop_handoff::{IncludedFile, generate::FILE_CAP};

/// The number of files that are included at most: as many would fill any handoff.
const INCLUDED_CAP: usize = 32;

/// The time that checking the files may take; a dead network share never answers.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Checks and reads files in the agent's directory; a file that is not there is included from the project.
pub fn read(project: &Path, place: &Path, named: &[String], include: &[String]) -> HandoffFiles {
    let end = Instant::now() + TIME_LIMIT;
    let mut files = HandoffFiles::default();
    for name in include.iter().take(INCLUDED_CAP) {
        match included(place, name).or_else(|_| included(project, name)) {
            Ok(file) => files.included.push(file),
            Err(why) => {
                let name = clean::one_line(name);
                files.warnings.push(format!("include_files: {name}: {why}"));
            }
        }
    }
    if include.len() > INCLUDED_CAP {
        let more = include.len() - INCLUDED_CAP;
        let warning = format!("include_files: {more} more than the {INCLUDED_CAP} that are read");
        files.warnings.push(warning);
    }
    // Git names files from there.
    let top = repository_top(place).unwrap_or(place);
    for name in named {
        if Instant::now() > end {
            break;
        }
        if is_missing(&[top, place], name) {
            files.missing.push(name.clone());
        }
    }
    files
}

fn is_missing(places: &[&Path], name: &str) -> bool {
    // A name with an escape in it is for display and no path any more.
    let plain = !name.contains('\\') && parts(name).is_some();
    let absent = |place: &&Path| {
        place
            .join(name)
            .symlink_metadata()
            .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    };
    plain && places.iter().all(absent)
}

/// Returns the parts of a path that stays below the place it starts from.
fn parts(name: &str) -> Option<Vec<&OsStr>> {
    let parts: Option<Vec<_>> = Path::new(name)
        .components()
        .filter(|part| *part != Component::CurDir)
        .map(|part| match part {
            Component::Normal(part) => Some(part),
            _ => None,
        })
        .collect();
    parts.filter(|parts| !parts.is_empty())
}

fn included(project: &Path, name: &str) -> Result<IncludedFile, String> {
    let parts = parts(name).ok_or("expected a path inside the project")?;
    let (file, directories) = parts.split_last().ok_or("expected a file")?;
    let common = OFlags::RDONLY | OFlags::CLOEXEC;
    let mut at = rustix::fs::openat(CWD, project, common | OFlags::DIRECTORY, Mode::empty())
        .map_err(|error| error.to_string())?;
    for part in directories {
        let flags = common | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        at = open(&at, part, flags)?;
    }
    let file = private_file::open_at(&at, file, OFlags::RDONLY).map_err(|error| match error {
        OpenError::Link => "links are not followed".to_owned(),
        error if error.is_absent() => "it is not there".to_owned(),
        error => error.to_string(),
    })?;
    // A little over the cap, to know whether there is more.
    let bytes = private_file::read_at_most(FILE_CAP as u64 + 1024, file)
        .map_err(|error| error.to_string())?;
    if bytes.contains(&0) {
        return Err("expected a text, found NUL bytes".to_owned());
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(IncludedFile::new(&clean::one_line(name), &text))
}

fn open(at: &OwnedFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, String> {
    rustix::fs::openat(at, name, flags, Mode::empty()).map_err(|error| match error {
        Errno::NOENT => "it is not there".to_owned(),
        // With DIRECTORY and NOFOLLOW together Linux reports a link as "not a directory".
        Errno::LOOP => "links are not followed".to_owned(),
        Errno::NOTDIR => "a part of its path is a link or no directory".to_owned(),
        error => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn project() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("in/deep")).unwrap();
        fs::write(dir.path().join("secret"), "outside").unwrap();
        fs::write(dir.path().join("in/a.md"), "# A\n").unwrap();
        fs::write(dir.path().join("in/deep/b.md"), "b\n".repeat(10_000)).unwrap();
        fs::write(dir.path().join("in/nul"), "a\0b").unwrap();
        fs::write(dir.path().join("in/a\nb"), "odd").unwrap();
        symlink("../secret", dir.path().join("in/link")).unwrap();
        symlink("..", dir.path().join("in/up")).unwrap();
        rustix::fs::mkfifoat(CWD, dir.path().join("in/pipe"), Mode::RWXU).unwrap();
        dir
    }

    fn read_in(project: &Path, named: &[String], include: &[String]) -> HandoffFiles {
        read(project, project, named, include)
    }

    fn words(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn files_inside_the_project_are_read_up_to_their_cap() {
        let dir = project();
        let names = words(&["a.md", "./deep/b.md", "a\nb"]);
        let files = read_in(&dir.path().join("in"), &[], &names);
        assert_eq!(files.warnings, Vec::<String>::new());
        let [a, b, odd] = files.included.as_slice() else {
            panic!("{files:?}")
        };
        assert_eq!((a.text.trim(), a.cut), ("# A", false));
        assert!(b.cut && b.text.len() <= FILE_CAP);
        assert_eq!(odd.name, "a\\nb");
    }

    #[test]
    fn nothing_else_is_read_and_why_is_reported() {
        let dir = project();
        let outside = dir.path().join("secret").display().to_string();
        for (name, why) in [
            ("../secret", "inside the project"),
            (outside.as_str(), "inside the project"),
            ("", "inside the project"),
            ("link", "links are not followed"),
            ("up/secret", "is a link"),
            ("pipe", "a regular file"),
            ("deep", "a regular file"),
            ("nul", "a text"),
            ("nowhere.md", "not there"),
        ] {
            let files = read_in(&dir.path().join("in"), &[], &words(&[name]));
            assert!(files.included.is_empty(), "{name}");
            assert!(files.warnings[0].contains(why), "{name}: {files:?}");
        }
    }

    #[test]
    fn missing_files_are_found_from_the_top_of_the_repository() {
        let dir = project();
        fs::create_dir(dir.path().join(".git")).unwrap();
        let named = words(&[
            "in/a.md",
            "a.md",
            "in/gone.rs",
            "../x",
            "odd\\x.rs",
            "/etc/none",
        ]);
        let files = read_in(&dir.path().join("in"), &named, &[]);
        assert_eq!(files.missing, ["in/gone.rs"]);
    }

    #[test]
    fn too_many_files_are_reported() {
        let dir = project();
        let names = vec!["a.md".to_owned(); INCLUDED_CAP + 3];
        let files = read_in(&dir.path().join("in"), &[], &names);
        assert_eq!(files.included.len(), INCLUDED_CAP);
        assert!(files.warnings[0].contains("3 more"), "{files:?}");
    }
}
