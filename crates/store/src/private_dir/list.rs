//! The entries of a directory: their names, their size, their removal.

use std::ffi::CString;

use rustix::fs::{AtFlags, Dir, FileType};

use super::{
    PrivateDir,
    error::{FilesError, io_error},
};

/// The depth to which a directory of ours is removed: a run holds iterations, which hold files.
const MAX_DEPTH: usize = 8;

impl PrivateDir {
    /// Removes the directory `name` with all that is in it, without following links; returns the bytes of the files
    /// that were in it. It is no error when there is none.
    pub fn remove_dir(&self, name: &str) -> Result<u64, FilesError> {
        let Some(dir) = self.find_dir(name)? else {
            return Ok(0);
        };
        let bytes = dir.remove_entries(0)?;
        rustix::fs::unlinkat(&self.handle, name, AtFlags::REMOVEDIR)
            .map_err(|error| io_error("remove", &dir.path, error))?;
        Ok(bytes)
    }

    fn remove_entries(&self, depth: usize) -> Result<u64, FilesError> {
        let mut bytes = 0;
        for name in self.entries()? {
            let path = self.path.join(name.to_string_lossy().as_ref());
            let stat = rustix::fs::statat(&self.handle, &name, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|error| io_error("look at", &path, error))?;
            let is_dir = FileType::from_raw_mode(stat.st_mode).is_dir();
            // Our directories are two deep, and their names are text: anything else was put there by another program.
            let removed = match name.to_str() {
                Ok(text) if is_dir && depth < MAX_DEPTH => {
                    let below = Self::open_below(&self.handle, &self.path, text, false)?;
                    bytes += below.remove_entries(depth + 1)?;
                    rustix::fs::unlinkat(&self.handle, &name, AtFlags::REMOVEDIR)
                }
                _ => {
                    bytes += u64::try_from(stat.st_size).unwrap_or(0);
                    rustix::fs::unlinkat(&self.handle, &name, AtFlags::empty())
                }
            };
            removed.map_err(|error| io_error("remove", &path, error))?;
        }
        Ok(bytes)
    }

    /// Returns the bytes of the files in the directory `name` and below it; 0 when there is none.
    pub fn size_of(&self, name: &str) -> u64 {
        self.size_below(name, 0)
    }

    fn size_below(&self, name: &str, depth: usize) -> u64 {
        let dir = self.find_dir(name).ok().flatten();
        let Some(dir) = dir.filter(|_| depth <= MAX_DEPTH) else {
            return 0;
        };
        let size = |name: &CString| {
            let stat = rustix::fs::statat(&dir.handle, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            if FileType::from_raw_mode(stat.st_mode).is_dir() {
                return Some(dir.size_below(name.to_str().ok()?, depth + 1));
            }
            u64::try_from(stat.st_size).ok()
        };
        dir.entries().iter().flatten().filter_map(size).sum()
    }

    /// Returns the names in it that are text, sorted, without `.` and `..`.
    pub fn names(&self) -> Result<Vec<String>, FilesError> {
        let entries = self.entries()?.into_iter();
        let mut names: Vec<String> = entries.filter_map(|name| name.into_string().ok()).collect();
        names.sort();
        Ok(names)
    }

    fn entries(&self) -> Result<Vec<CString>, FilesError> {
        let failed = |error| io_error("list", &self.path, error);
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                names.push(entry.file_name().to_owned());
            }
        }
        Ok(names)
    }
}
