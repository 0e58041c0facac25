//! The directories in which the agent works, and the paths of files as seen from them.

use std::borrow::Cow;

use serde_json::Value;

/// The most directories above the session's own from which a file below them is still named by a relative path, and the least
/// depth of such a directory: a package of a repository has others beside it.
const UPWARDS: usize = 2;
const DEEP: usize = 4;

/// The part in front of the name in the path of a work tree that the client has made.
const WORK_TREES: &str = "/.claude/worktrees/";

/// The directories of one session.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The directory where the session began: files are stored by their paths from here.
    directory: String,
    /// The directory in which the agent is now.
    current: String,
    /// The client's work tree in which the agent is now, if it began elsewhere: its files are named by their paths from there.
    tree: Option<String>,
}

impl Places {
    /// Notes the directory in which the agent is.
    pub(super) fn works_in(&mut self, directory: &str) {
        // Only the first directory counts: a shell's `cd` changes it, and paths must stay comparable.
        if self.directory.is_empty() {
            directory.clone_into(&mut self.directory);
        }
        directory.clone_into(&mut self.current);
        let tree = work_tree_of(directory);
        self.tree = tree
            .filter(|tree| *tree != self.directory)
            .map(str::to_owned);
    }

    /// Returns the directory in which the agent is now; empty if it is not known.
    pub(super) fn current(&self) -> &str {
        &self.current
    }

    /// Returns a path as seen from the session's directory, if it is below it or beside it in the same repository. If the agent is
    /// in a work tree, a relative path with a directory is taken to be in that.
    pub(super) fn relative_path(&self, path: &str) -> String {
        let path = path.strip_prefix("./").unwrap_or(path);
        let tree = self.tree.as_deref();
        let in_tree = tree.filter(|_| !path.starts_with('/') && path.contains('/'));
        let path = in_tree.map_or(Cow::Borrowed(path), |tree| join_path(tree, path).into());
        let path = &*path;
        if self.directory.is_empty() || !path.starts_with('/') {
            return path.to_owned();
        }
        let mut base = self.directory.as_str();
        for up in 0..=UPWARDS {
            // A home or a root is no repository.
            if base.matches('/').count() < if up == 0 { 1 } else { DEEP } {
                break;
            }
            let below = path
                .strip_prefix(base)
                .and_then(|rest| rest.strip_prefix('/'));
            if let Some(below) = below {
                return "../".repeat(up) + below;
            }
            base = base.rsplit_once('/').map_or("", |(above, _)| above);
        }
        path.to_owned()
    }

    /// Returns the path by which the agent finds a file now: the path from the work tree if the file is in it, else the whole path.
    pub(super) fn shown_path(&self, path: &str) -> String {
        let Some(tree) = self.tree.as_deref() else {
            return path.to_owned();
        };
        let whole = join_path(&self.directory, path);
        let below = whole.strip_prefix(tree);
        let below = below.and_then(|rest| rest.strip_prefix('/'));
        below.map(str::to_owned).unwrap_or(whole)
    }

    /// Names the place of a search as the agent finds it now; a search of the directory that it is in needs none.
    pub(super) fn shorten_search(&self, input: &mut Value) {
        let Some(path) = input["path"].as_str() else {
            return;
        };
        if path.trim_end_matches('/') != self.current {
            input["path"] = self.shown_path(&self.relative_path(path)).into();
        } else if let Some(fields) = input.as_object_mut() {
            fields.shift_remove("path");
        }
    }

    /// Returns a text with the paths below the agent's directory as seen from there.
    pub(super) fn without_directory<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let directory = self.tree.as_ref().unwrap_or(&self.directory);
        let directory = format!("{directory}/");
        if self.directory.is_empty() || !text.contains(&directory) {
            return Cow::Borrowed(text);
        }
        text.replace(&directory, "").into()
    }
}

/// Returns the client's own work tree that a directory is in.
fn work_tree_of(directory: &str) -> Option<&str> {
    let at = directory.find(WORK_TREES)? + WORK_TREES.len();
    let end = directory[at..]
        .find('/')
        .map_or(directory.len(), |end| at + end);
    Some(&directory[..end])
}

/// Returns the path of a file from the client's own work tree that it is in.
pub fn below_work_tree(path: &str) -> Option<&str> {
    let (_, rest) = path.split_once(WORK_TREES.trim_start_matches('/'))?;
    Some(rest.split_once('/')?.1)
}

/// Returns a path from a directory as a whole path, without the steps upwards.
pub(super) fn join_path(directory: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = directory.split('/').collect();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
