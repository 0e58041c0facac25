//! Queries git: a thin runner and pure parsing functions.
//!
//! The repository is not trusted. Its config can name programs for nearly everything git does, so the runner closes
//! each of these entry points for its own queries (`status`, `log` and `diff`):
//!
//! | entry point | closed by |
//! |---|---|
//! | hooks, file system monitor, external diff, pager | settings on the command line |
//! | clean filters, which `status` runs to compare content | each filter found in the config is set to nothing |
//! | signature checks of `log` (`gpg.program`) | `log.showSignature` off |
//! | fetching of missing objects (`core.sshCommand`, transports) | no lazy fetch, no protocol allowed |
//! | submodules, whose own config applies inside | not entered by these queries, but queried each by itself |
//! | `GIT_*` variables, a relative `PATH` | environment built from nothing, `git` found in absolute directories only |
//!
//! A file under a filter such as git-lfs may be listed as modified when only its time stamp changed; that is the cost.
//! Every answer is bounded in time and size. A missing repository, a missing git and a lack of commits are answers, not errors.

mod directory;
mod parse;
mod runner;

use std::{collections::HashSet, path::PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

pub use runner::{facts, read_all};

/// The answer of git about a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum GitState {
    /// The directory is in a repository.
    Facts(Box<GitFacts>),
    /// The directory is not in a repository.
    #[default]
    NoRepository,
    /// The `git` program was not found.
    NoGit,
    /// Git was queried and did not answer; the reason is safe to show.
    Unreadable(String),
}

/// The facts about a repository. All names are made safe to show, so a name that had unsafe characters is no longer a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GitFacts {
    /// The branch; `None` when the head is detached.
    pub branch: Option<String>,
    /// The full id of the head commit; none before the first commit.
    pub head: Option<String>,
    /// True if the head is not on a branch.
    pub detached: bool,
    /// The top of the work tree, if it is a linked one and not the repository's main one.
    pub work_tree: Option<String>,
    /// The other work trees of the repository.
    pub other_trees: Vec<OtherTree>,
    /// The file to which git appends a line whenever the head of this work tree moves.
    pub head_log: PathBuf,
    /// The last commits, newest first.
    pub commits: Vec<Commit>,
    /// The changed files, relative to the top of the repository like all other files here; conflicts are included.
    pub modified: Vec<String>,
    /// The new files, tracked or not.
    pub created: Vec<String>,
    /// The files that are gone.
    pub deleted: Vec<String>,
    /// The files that moved.
    pub renamed: Vec<Renamed>,
    /// The files with unresolved conflicts, which are also listed as changed.
    pub conflicts: Vec<String>,
    /// The operation that is in progress: `rebase of topic, step 2 of 5`, `merge`.
    pub operation: Option<String>,
    /// What else a reader must know: the name of a detached head, stashes, a branch without a commit.
    pub notes: Vec<String>,
    /// True if there were more files than the lists hold, or than git may print.
    pub truncated: bool,
    /// The changes since the run began, committed or not, without those that only other people have committed, or that were committed
    /// before; `None` if they are not known, as in another repository.
    pub since_start: Option<Changes>,
}

impl GitFacts {
    /// Returns the files that git reports as having uncommitted changes, including those that are gone.
    pub fn uncommitted_files(&self) -> impl Iterator<Item = &String> {
        let renamed = self.renamed.iter().map(|one| &one.to);
        let lists = [&self.modified, &self.created, &self.deleted];
        lists.into_iter().flatten().chain(renamed)
    }

    /// Returns the other work trees that a shell command, or the path of a file, names. One work tree may be inside another, whose path
    /// does not name that.
    pub fn trees_named_in(&self, text: &str) -> Vec<&OtherTree> {
        let mut tops: Vec<&String> = self.other_trees.iter().map(|tree| &tree.top).collect();
        tops.extend(&self.work_tree);
        tops.sort_by_key(|top| std::cmp::Reverse(top.len()));
        let mut rest = text.to_owned();
        let mut named = HashSet::new();
        for top in tops {
            let is_whole = |(at, _): (usize, &str)| ends_a_name(&rest[at + top.len()..]);
            if !top.is_empty() && rest.match_indices(top.as_str()).any(is_whole) {
                rest = rest.replace(top, "");
                named.insert(top);
            }
        }
        let trees = self.other_trees.iter();
        let is_named = |tree: &&OtherTree| named.contains(&tree.top) || tree.is_named_in(&rest);
        trees.filter(is_named).collect()
    }
}

/// Another work tree of the same repository.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OtherTree {
    /// Its top directory.
    pub top: String,
    /// The branch; `None` when the head is detached.
    pub branch: Option<String>,
    /// The last commits that were made in it, newest first, as git logs them there.
    pub commits: Vec<Commit>,
}

impl OtherTree {
    /// Reports whether a shell command, or the path of a file, names the directory relative to another one.
    fn is_named_in(&self, text: &str) -> bool {
        let name = self.top.rsplit('/').next().unwrap_or_default();
        let is_whole = |(at, _): (usize, &str)| {
            let before = &text[..at];
            let is_path = before.ends_with('/')
                || ["cd ", "-C ", "add "]
                    .iter()
                    .any(|word| before.ends_with(word));
            is_path && ends_a_name(&text[at + name.len()..])
        };
        !name.is_empty() && text.match_indices(name).any(is_whole)
    }
}

/// Reports whether a name that this text follows ends there.
fn ends_a_name(rest: &str) -> bool {
    let next = rest.chars().next();
    next.is_none_or(|next| !next.is_alphanumeric() && !"-_.".contains(next))
}

/// The tracked files that differ between two states, relative to the top of the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Changes {
    /// The files that are in both states.
    pub modified: Vec<String>,
    /// The files that are in the later state only.
    pub created: Vec<String>,
    /// The files that are in the earlier state only.
    pub deleted: Vec<String>,
    /// The files that have another name in the later state.
    pub renamed: Vec<Renamed>,
}

impl Changes {
    /// Leaves these files out.
    fn leave_out(&mut self, files: &HashSet<String>) {
        for list in [&mut self.modified, &mut self.created, &mut self.deleted] {
            list.retain(|file| !files.contains(file));
        }
        self.renamed.retain(|one| !files.contains(&one.to));
    }
}

/// The state of the repository when a run began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunStart {
    /// The full id of the head commit; none before the first commit.
    pub head: Option<String>,
    /// The files with uncommitted changes then.
    pub uncommitted: Vec<String>,
    /// The time from which on a commit is one of the run; none in states from before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<DateTime<Utc>>,
}

impl From<&GitFacts> for RunStart {
    fn from(facts: &GitFacts) -> Self {
        Self {
            head: facts.head.clone(),
            uncommitted: facts.uncommitted_files().cloned().collect(),
            since: None,
        }
    }
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Commit {
    /// The commit's full id.
    pub sha: String,
    /// The first line of its message.
    pub subject: String,
    /// The time at which it was committed.
    pub at: DateTime<Utc>,
}

/// A file that moved.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Renamed {
    /// The former path.
    pub from: String,
    /// The current path.
    pub to: String,
}

#[cfg(test)]
mod tests;
