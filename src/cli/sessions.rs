//! The sessions that an agent keeps of a project: where their transcripts lie, and which is the newest.

use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::{
    agent::claude::project_slug,
    config::load::paths::Paths,
    runtime::agent::transcript_in,
    supervisor::program::{claude_config_dir, demo_dir},
    transcript::SessionId,
};

/// Where agents keep transcripts, each in its `projects`: Claude Code first, then the demo.
pub(super) fn places(paths: Option<&Paths>) -> Vec<PathBuf> {
    claude_config_dir()
        .into_iter()
        .chain(paths.map(demo_dir))
        .collect()
}

/// A session of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// Its id.
    pub(super) id: SessionId,
    /// Its transcript.
    pub(super) path: PathBuf,
    /// When that was written last.
    pub(super) written: SystemTime,
}

/// The sessions of a project, newest first. What else lies there (the client keeps those of its subagents beside) is none.
pub(super) fn of_project(places: &[PathBuf], project: &Path) -> Vec<Kept> {
    let mut found: Vec<Kept> = places
        .iter()
        .filter_map(|place| fs::read_dir(place.join("projects").join(project_slug(project))).ok())
        .flat_map(Iterator::flatten)
        .filter_map(|entry| kept(entry.path()))
        .collect();
    found.sort_by(|a, b| (b.written, &b.path).cmp(&(a.written, &a.path)));
    found
}

/// The transcript of a session: looked for and not computed, because the client's rule may change.
pub(super) fn transcript_of(places: &[PathBuf], session: SessionId) -> Option<PathBuf> {
    let mut places = places.iter();
    places.find_map(|place| transcript_in(place, session))
}

fn kept(path: PathBuf) -> Option<Kept> {
    let name = path.file_name()?.to_str()?;
    let id = name.strip_suffix(".jsonl")?.parse().ok()?;
    let file = path.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
    let written = file.modified().ok()?;
    Some(Kept { id, path, written })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_newest_session_comes_first_and_only_sessions_count() {
        let home = tempfile::tempdir().unwrap();
        let project = Path::new("/p/x");
        let places = ["a", "b"].map(|name| home.path().join(name));
        let ids =
            ["1", "2", "3"].map(|one| format!("{}-1111-4111-8111-111111111111", one.repeat(8)));
        for (place, name, age) in [
            (&places[0], format!("{}.jsonl", ids[0]), 30),
            (&places[1], format!("{}.jsonl", ids[1]), 10),
            (&places[0], format!("{}.jsonl", ids[2]), 20),
            (&places[0], "agent-0a1b.jsonl".to_owned(), 0),
            (&places[0], format!("{}.bak", ids[0]), 0),
        ] {
            let directory = place.join("projects").join(project_slug(project));
            fs::create_dir_all(&directory).unwrap();
            let file = fs::File::create(directory.join(name)).unwrap();
            let base = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
            file.set_modified(base - Duration::from_secs(age)).unwrap();
        }
        let found: Vec<_> = of_project(&places, project)
            .iter()
            .map(|one| one.id.to_string())
            .collect();
        assert_eq!(found, [&*ids[1], &*ids[2], &*ids[0]]);
        assert!(of_project(&places, Path::new("/elsewhere")).is_empty());
    }
}
