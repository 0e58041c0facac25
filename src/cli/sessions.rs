//! The sessions that an agent keeps of a project: the paths of their transcripts, and their order by time.

use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::{
    runtime::agent::transcript_in,
    supervisor::program::{DEMO, claude_config_dir, demo_dir},
};
use pitstop_agent::claude::{
    project_slug,
    projects::{directory_of, with_work_trees},
};
use pitstop_core::{
    config::{Config, load::paths::Paths},
    lineage::checkpoint::Checkpoint,
};
use pitstop_store::{HistoryOf, Store, StoreError};
use pitstop_transcript::SessionId;

/// Returns the directories where agents keep transcripts, each in its `projects`: Claude Code first, then the demo.
pub(super) fn places(paths: Option<&Paths>, config: &Config) -> Vec<PathBuf> {
    claude_config_dir(config)
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
    /// The time when the transcript was written last.
    pub(super) written: SystemTime,
}

/// Returns the sessions of a project and of its work trees, newest first. Other files there are left out (the client keeps those
/// of its subagents beside, and those of another project whose path differs only in punctuation). A transcript is read when it is its
/// turn: there may be thousands.
pub(super) fn of_project(places: &[PathBuf], project: &Path) -> impl Iterator<Item = Kept> + use<> {
    let mut found = Vec::new();
    for directory in with_work_trees(project) {
        let files = places.iter().filter_map(|place| {
            fs::read_dir(place.join("projects").join(project_slug(&directory))).ok()
        });
        let kept = files
            .flatten()
            .flatten()
            .filter_map(|file| kept(file.path()));
        found.extend(kept.map(|one| (one, directory.clone())));
    }
    found.sort_by(|(a, _), (b, _)| (b.written, &b.path).cmp(&(a.written, &a.path)));
    found.into_iter().filter_map(|(one, directory)| {
        let worked = directory_of(&one.path);
        let is_its = worked.is_none_or(|worked| worked == directory);
        is_its.then_some(one)
    })
}

/// Finds the transcript of a session: its path is searched for and not computed, because the client's rule may change.
pub(super) fn transcript_of(places: &[PathBuf], session: SessionId) -> Option<PathBuf> {
    let mut places = places.iter();
    places.find_map(|place| transcript_in(place, session))
}

/// Reports whether the run that a checkpoint was saved in was the demo's.
pub(super) async fn is_of_the_demo(
    store: &Store,
    checkpoint: &Checkpoint,
) -> Result<bool, StoreError> {
    let Some(run) = &checkpoint.run else {
        return Ok(false);
    };
    let runs = store.outline(&HistoryOf::Run(run.clone()), 1).await?;
    Ok(runs.first().is_some_and(|one| one.run.agent == DEMO))
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
            .map(|one| one.id.to_string())
            .collect();
        assert_eq!(found, [&*ids[1], &*ids[2], &*ids[0]]);
        let mut elsewhere = of_project(&places, Path::new("/elsewhere"));
        assert_eq!(elsewhere.next(), None);
    }

    #[test]
    fn a_project_has_the_sessions_of_its_work_trees_and_not_those_of_a_path_that_differs_in_signs()
    {
        for (name, twin) in [
            ("my p", "my-p"),
            ("b.c", "b/c"),
            ("仕事", "作業"),
            ("a+b", "a_b"),
        ] {
            let home = tempfile::tempdir().unwrap();
            let (place, project) = (home.path().join("agent"), home.path().join(name));
            let tree = project.join("trees/x");
            fs::create_dir_all(project.join(".git/worktrees/x")).unwrap();
            let file = project.join(".git/worktrees/x/gitdir");
            fs::write(file, format!("{}/.git\n", tree.display())).unwrap();
            for (number, cwd) in [&project, &tree, &home.path().join(twin)]
                .iter()
                .enumerate()
            {
                let directory = place.join("projects").join(project_slug(cwd));
                fs::create_dir_all(&directory).unwrap();
                let id = format!("{number}1111111-1111-4111-8111-111111111111.jsonl");
                let record = serde_json::json!({ "cwd": cwd.join("src") }).to_string();
                fs::write(directory.join(id), record).unwrap();
            }
            let found = of_project(&[place], &project);
            let mut found: Vec<_> = found.map(|one| one.id.to_string()).collect();
            found.sort();
            assert!(
                found.len() == 2 && found[1].starts_with('1'),
                "{name}: {found:?}"
            );
        }
    }

    #[test]
    fn a_transcript_is_looked_at_once_it_is_asked_for() {
        let home = tempfile::tempdir().unwrap();
        let (project, twin) = (Path::new("/p/b.c"), Path::new("/p/b/c"));
        let directory = home.path().join("projects").join(project_slug(project));
        fs::create_dir_all(&directory).unwrap();
        let write = |number: u64, cwd: &Path| {
            let id = format!("{number}1111111-1111-4111-8111-111111111111");
            let path = directory.join(format!("{id}.jsonl"));
            fs::write(&path, serde_json::json!({ "cwd": cwd }).to_string()).unwrap();
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - number);
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(at).unwrap();
            id
        };
        let (newest, _) = (write(1, project), write(2, project));
        let mut found = of_project(&[home.path().to_owned()], project);
        assert_eq!(found.next().map(|one| one.id.to_string()), Some(newest));
        // It was not read together with the newest one.
        write(2, twin);
        assert_eq!(found.next(), None);
    }
}
