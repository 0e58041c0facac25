//! The directory of one run in a project's `.pitstop/`, and the names of the files in it.

use std::path::PathBuf;

use super::private_dir::{FilesError, PrivateDir};
use pitstop_base::redact;
use pitstop_core::lineage::{IterationId, Meta, RunId};

/// The record of a run.
pub const META: &str = "meta.json";
/// The handoff that an iteration gave.
pub const HANDOFF: &str = "handoff.md";
/// The summary of an iteration.
pub const SUMMARY: &str = "summary.md";
/// The settings file injected into an iteration's agent.
pub const SETTINGS: &str = "settings.json";
/// The recording of an iteration's pane.
pub const RECORDING: &str = "pane.cast";

/// The directory of one run: `.pitstop/runs/RUN`. It is opened for each use: a part that was removed meanwhile is made again.
#[derive(Clone, Debug)]
pub struct RunDir {
    project: PathBuf,
    run: RunId,
}

impl RunDir {
    /// Opens the directory of `run`, creating it where it is missing.
    pub fn open(project: &PrivateDir, run: &RunId) -> Result<Self, FilesError> {
        project.dir("runs")?.dir(run.as_str())?;
        Ok(Self {
            project: project.path().to_owned(),
            run: run.clone(),
        })
    }

    /// Opens the directory of an earlier `run`, if it is there.
    pub fn find(project: &PrivateDir, run: &RunId) -> Result<Option<PrivateDir>, FilesError> {
        let runs = project.find_dir("runs")?;
        runs.map_or(Ok(None), |runs| runs.find_dir(run.as_str()))
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> PathBuf {
        self.project.join("runs").join(self.run.as_str())
    }

    /// Opens the project's directory that it lies in.
    pub fn project(&self) -> Result<PrivateDir, FilesError> {
        PrivateDir::open_again(&self.project)
    }

    fn dir(&self) -> Result<PrivateDir, FilesError> {
        self.project()?.dir("runs")?.dir(self.run.as_str())
    }

    /// Writes `meta.json`, its secrets masked.
    pub fn write_meta(&self, meta: &Meta) -> Result<(), FilesError> {
        let json = meta.to_json();
        self.dir()?
            .write_private(META, redact::json(&json).as_bytes())
    }

    /// Opens the directory of one iteration, `iteration-N`, creating it where it is missing.
    pub fn iteration(&self, iteration: IterationId) -> Result<PrivateDir, FilesError> {
        self.dir()?.dir(&format!("iteration-{iteration}"))
    }

    /// Opens the directory of an iteration of this run, or of an earlier one, which is not created.
    pub fn iteration_of(
        &self,
        run: &RunId,
        iteration: IterationId,
    ) -> Result<Option<PrivateDir>, FilesError> {
        if *run == self.run {
            return self.iteration(iteration).map(Some);
        }
        match Self::find(&self.project()?, run)? {
            Some(earlier) => earlier.find_dir(&format!("iteration-{iteration}")),
            None => Ok(None),
        }
    }

    /// Writes one of an iteration's texts, such as [`HANDOFF`], its secrets masked.
    pub fn write(&self, iteration: IterationId, name: &str, text: &str) -> Result<(), FilesError> {
        self.iteration(iteration)?.write_masked(name, text)
    }
}

/// The directory of a run, kept in place. It is held open, and the inode of an open directory is given to no other one: so a
/// directory that was removed differs from the one that the next write of a file made in its place, in which all other files
/// are missing.
#[derive(Debug)]
pub struct KeptRunDir {
    run: RunDir,
    held: Option<PrivateDir>,
}

impl KeptRunDir {
    /// Keeps the directory that is there now in place.
    pub fn new(run: RunDir) -> Self {
        let held = run.dir().ok();
        Self { run, held }
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> PathBuf {
        self.run.path()
    }

    /// Makes the directory again if it is gone; returns true if it was, even if there is another one by now.
    pub fn keep(&mut self) -> Result<bool, FilesError> {
        if self.held.as_ref().is_some_and(PrivateDir::is_in_place) {
            return Ok(false);
        }
        self.held = Some(self.run.dir()?);
        Ok(true)
    }
}

/// Returns the runs that have a directory in `project`, oldest first.
pub fn list_runs(project: &PrivateDir) -> Result<Vec<RunId>, FilesError> {
    let Some(runs) = project.find_dir("runs")? else {
        return Ok(Vec::new());
    };
    // Names we did not make are no runs; they are left alone.
    Ok(runs
        .names()?
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_directory_that_a_write_has_made_in_the_place_of_a_removed_one_counts_as_removed() {
        let project = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open_project(project.path()).unwrap();
        let run = RunId::new(chrono::DateTime::UNIX_EPOCH, [1, 2, 3]);
        let files = RunDir::open(&dir, &run).unwrap();
        let mut kept = KeptRunDir::new(files.clone());
        assert!(!kept.keep().unwrap());

        for removed in [files.path(), project.path().join(".pitstop")] {
            fs::remove_dir_all(&removed).unwrap();
            assert!(kept.keep().unwrap(), "it is gone");
            assert!(files.path().is_dir() && !kept.keep().unwrap());

            fs::remove_dir_all(&removed).unwrap();
            files.write(IterationId::FIRST, HANDOFF, "").unwrap();
            assert!(kept.keep().unwrap(), "another one is in its place");
            assert!(!kept.keep().unwrap());
        }
    }
}
