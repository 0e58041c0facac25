//! Real sessions of other projects: where they lie, and how they are read. None of them is copied into this repository.

// The kit is shared, and each test uses a part of it.
#![allow(dead_code)]

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
};

/// Where the sessions lie: `PITSTOP_TRANSCRIPTS`, else `../shared/transcripts` beside the repository.
pub fn place() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/transcripts");
    env::var_os("PITSTOP_TRANSCRIPTS").map_or(beside, PathBuf::from)
}

/// All transcripts below a directory, sorted.
pub fn below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    find(directory, &mut files);
    files.sort();
    files
}

fn find(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let unpacked = Path::new(name.trim_end_matches(".gz"));
        if path.is_dir() {
            find(&path, files);
        } else if unpacked.extension().is_some_and(|end| end == "jsonl") {
            files.push(path);
        }
    }
}

/// The bytes of a transcript. `gzip` stands on every system that the tests run on, and saves a dependency.
pub fn bytes_of(file: &Path) -> io::Result<Vec<u8>> {
    if file.extension().is_none_or(|end| end != "gz") {
        return fs::read(file);
    }
    let out = Command::new("gzip").arg("-dc").arg(file).output()?;
    if !out.status.success() {
        let error = format!("gzip cannot read {}", file.display());
        return Err(io::Error::other(error));
    }
    Ok(out.stdout)
}
