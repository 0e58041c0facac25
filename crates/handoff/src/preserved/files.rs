//! The files that the run has changed, by git and by the agent's own tools.

use std::collections::{BTreeSet, HashSet};

use super::{Item, Origin, PreservedState};
use crate::breakpoint::git::{GitFacts, Renamed};

impl PreservedState {
    /// Applies git's state of the files: those that this run has changed, and those that are not committed. If the run's start is
    /// not known, all uncommitted files count as the run's.
    pub fn feed_git(&mut self, git: &GitFacts) {
        (self.branch, self.head) = (git.branch.clone(), git.head.clone());
        let uncommitted: BTreeSet<&String> = git.uncommitted_files().collect();
        let start = git.since_start.as_ref().and(self.run_start.as_ref());
        let before = start.map_or(&[][..], |start| &start.uncommitted);
        let before: HashSet<&String> = before.iter().collect();
        let since = git.since_start.clone().unwrap_or_default();
        let of_run = |committed: &[String], now: &[String]| {
            let mut known = HashSet::new();
            let files = committed.iter().chain(now);
            let of_run = files
                .filter(|file| !(before.contains(file) && uncommitted.contains(file)))
                .filter(|file| known.insert(*file));
            of_run.map(|file| Item::new(file, Origin::Git)).collect()
        };
        // A file that the run has created and then changed counts as created.
        let made: HashSet<&String> = since.created.iter().collect();
        let modified = git.modified.iter().filter(|file| !made.contains(file));
        let modified: Vec<String> = modified.cloned().collect();
        let moved = |name: fn(&Renamed) -> &String, files: &[String], renamed: &[Renamed]| {
            let moved = renamed.iter().map(name);
            files.iter().chain(moved).cloned().collect::<Vec<_>>()
        };
        let created = moved(|one| &one.to, &git.created, &git.renamed);
        let deleted = moved(|one| &one.from, &git.deleted, &git.renamed);
        self.modified_files = of_run(&since.modified, &modified);
        self.created_files = of_run(
            &moved(|one| &one.to, &since.created, &since.renamed),
            &created,
        );
        self.deleted_files = of_run(
            &moved(|one| &one.from, &since.deleted, &since.renamed),
            &deleted,
        );
        let renamed = since.renamed.iter().chain(&git.renamed);
        let mut known = HashSet::new();
        self.renamed_files = renamed
            .filter(|one| known.insert(&one.to))
            .cloned()
            .collect();
        let item = |file: &String| Item::new(file, Origin::Git);
        self.uncommitted_files = git.uncommitted_files().map(item).collect();
    }

    /// Clears all files and the start of the run, because another run begins.
    pub fn forget_files(&mut self) {
        self.modified_files.clear();
        self.created_files.clear();
        self.deleted_files.clear();
        self.renamed_files.clear();
        self.uncommitted_files.clear();
        (self.branch, self.head) = (None, None);
        self.run_start = None;
        self.other_trees.clear();
    }

    /// Adds the files that the agent's own tools have changed and that git does not ascribe to the run: those that were
    /// uncommitted before, and all files if there is no repository.
    pub fn feed_changed<'a>(&mut self, files: impl Iterator<Item = &'a str>, has_git: bool) {
        for file in files {
            let is = |item: &Item| item.text == file;
            let known = [&self.modified_files, &self.created_files];
            let known = known.into_iter().flatten().any(is);
            if !known && (!has_git || self.uncommitted_files.iter().any(is)) {
                self.modified_files.push(Item::new(file, Origin::Tools));
            }
        }
    }
}
