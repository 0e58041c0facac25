//! The client's directories of projects: the one that a path has, and the owner of a transcript in one.
//!
//! Paths that differ only in punctuation share one directory, so its name does not tell the path; the `cwd` of hooks and records
//! does. That also follows a shell's `cd`, so the path that counts is the one at or above it that has this name (measured with
//! 2.1.331).

use std::{
    fs::{self, File},
    io::{Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use pitstop_base::private_file::{self, read_at_most};

/// The longest name that is not cut, in characters.
const LONGEST: usize = 200;

/// The number of bytes of a transcript that are read at its end and at its beginning: its heaviest lines have some 200 KB.
const READ: u64 = 1 << 20;

/// The most bytes that are read of a file of git's that holds one path.
const SHORT: u64 = 64 * 1024;

/// Returns the name of a project's directory under `<config dir>/projects/`.
///
/// Every UTF-16 unit that is no ASCII letter or digit becomes `-`; a longer name is cut, and a hash of the path follows.
pub fn project_slug(cwd: &Path) -> String {
    let text = cwd.to_string_lossy();
    let plain = |unit| u8::try_from(unit).ok().filter(u8::is_ascii_alphanumeric);
    let mut slug = String::new();
    let mut hash = 0_i32;
    for unit in text.encode_utf16() {
        slug.push(plain(unit).map_or('-', char::from));
        hash = hash.wrapping_mul(31).wrapping_add(i32::from(unit));
    }
    if slug.len() > LONGEST {
        let mut hash = hash.unsigned_abs();
        let mut digits = String::new();
        while hash > 0 {
            digits.extend(char::from_digit(hash % 36, 36));
            hash /= 36;
        }
        slug.truncate(LONGEST);
        slug.push('-');
        slug.extend(digits.chars().rev());
    }
    slug
}

/// Returns the directory that a session works in, by a hook's `cwd` and the transcript that it names: the client's own, or the git
/// work tree of the same repository that a shell has gone to, below it or elsewhere.
pub fn work_place(cwd: &Path, transcript: &Path) -> Option<PathBuf> {
    let own = named_above(cwd, transcript);
    let mut below = cwd.ancestors().take_while(|above| Some(*above) != own);
    let linked = below.find_map(|place| Some((place, linked_to(place)?)));
    match (own, linked) {
        (Some(own), linked) => Some(linked.map_or(own, |(place, _)| place).to_owned()),
        (None, Some((place, git))) => {
            let name = directory_name(transcript)?;
            let is_its = |tree: PathBuf| {
                named_above(&tree, transcript).is_some() || is_named_below(&tree, name)
            };
            work_trees(&git).any(is_its).then(|| place.to_owned())
        }
        (None, None) => None,
    }
}

/// Returns the Git directory that a linked work tree shares with the others; `None` if the place is not a linked work tree.
fn linked_to(place: &Path) -> Option<PathBuf> {
    let text = short_text(&place.join(".git"))?;
    // It may be relative to the work tree. A submodule has such a file, too.
    let git = place.join(text.strip_prefix("gitdir:")?.trim());
    let git = git.canonicalize().unwrap_or(git);
    let trees = git.parent().filter(|trees| trees.ends_with("worktrees"))?;
    trees.parent().map(Path::to_owned)
}

/// Returns the work trees of the repository with this Git directory: the main one and the linked ones.
fn work_trees(git: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let listed = fs::read_dir(git.join("worktrees")).into_iter();
    let linked = listed.flatten().flatten().filter_map(|tree| {
        let file = short_text(&tree.path().join("gitdir"))?;
        Some(Path::new(file.trim_end()).parent()?.to_owned())
    });
    git.parent().map(Path::to_owned).into_iter().chain(linked)
}

/// Returns the directory that the session of a transcript is resumed in, by its records.
pub fn directory_of(transcript: &Path) -> Option<PathBuf> {
    let mut file = File::open(transcript).ok()?;
    let end = file.metadata().ok()?.len().saturating_sub(READ);
    [end, 0].into_iter().find_map(|from| {
        file.seek(SeekFrom::Start(from)).ok()?;
        let bytes = read_at_most(READ, &file).ok()?;
        bytes.rsplit(|byte| *byte == b'\n').find_map(|line| {
            let record: serde_json::Value = serde_json::from_slice(line).ok()?;
            let cwd = Path::new(record["cwd"].as_str()?);
            named_above(cwd, transcript).map(Path::to_owned)
        })
    })
}

/// Returns the time of the first words in a transcript.
pub fn began_at(transcript: &Path) -> Option<DateTime<Utc>> {
    let bytes = read_at_most(READ, File::open(transcript).ok()?).ok()?;
    bytes.split(|byte| *byte == b'\n').find_map(|line| {
        let record: serde_json::Value = serde_json::from_slice(line).ok()?;
        record["timestamp"].as_str()?.parse().ok()
    })
}

/// Returns the directory at or above `cwd` whose transcripts lie beside this transcript.
fn named_above<'a>(cwd: &'a Path, transcript: &Path) -> Option<&'a Path> {
    let name = directory_name(transcript)?;
    cwd.ancestors().find(|above| project_slug(above) == name)
}

/// Returns the name of the client's directory that a transcript lies in.
fn directory_name(transcript: &Path) -> Option<&str> {
    transcript.parent()?.file_name()?.to_str()
}

/// Reports whether this is the name of a directory at or below `top`: a session may have been begun in a subdirectory.
fn is_named_below(top: &Path, name: &str) -> bool {
    let slug = project_slug(top);
    // The name of a directory goes on from the name of the one above it, as far as it is not cut.
    let goes_on = match name.strip_prefix(slug.as_str()) {
        Some("") => return true,
        Some(rest) => rest.starts_with('-'),
        None => slug.len() > LONGEST && name.get(..LONGEST) == slug.get(..LONGEST),
    };
    let below = || fs::read_dir(top).into_iter().flatten().flatten();
    goes_on
        && below().any(|entry| {
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            is_directory && is_named_below(&entry.path(), name)
        })
}

/// Returns a project's directory with the work trees that lie in its repository, where the client makes its own.
pub fn with_work_trees(project: &Path) -> Vec<PathBuf> {
    let top = repository_top(project).unwrap_or(project);
    let trees = work_trees(&top.join(".git")).skip(1);
    let trees = trees.filter(|tree| tree.starts_with(top));
    std::iter::once(project.to_owned()).chain(trees).collect()
}

/// Returns the top of the work tree of git that a directory is in; `None` if it is in none.
pub fn repository_top(directory: &Path) -> Option<&Path> {
    let has_git = |above: &&Path| above.join(".git").symlink_metadata().is_ok();
    directory.ancestors().find(has_git)
}

/// Returns the text of a short file of a repository's, which may have put anything in its place.
fn short_text(path: &Path) -> Option<String> {
    let file = private_file::open_to_read(path).ok()?;
    String::from_utf8(read_at_most(SHORT, file).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_is_cut_and_ends_in_the_hash_that_the_client_computes() {
        let part = format!("/d é.x{}東京", "y".repeat(40));
        let slug = project_slug(Path::new(&format!("/home/me{}", part.repeat(6))));
        assert_eq!(&slug[199..], "--8t9hyt");
        for length in [199, 200, 201] {
            let slug = project_slug(&Path::new("/").join("x".repeat(length - 1)));
            assert_eq!(slug.len() > length, length > LONGEST, "{slug}");
        }
    }

    #[test]
    fn what_a_repository_has_in_the_place_of_a_short_file_of_gits_is_passed_over() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let text = "/p/.git\n";
        fs::write(at("file"), text).unwrap();
        fs::write(at("bytes"), b"\xff\xfe").unwrap();
        fs::create_dir(at("directory")).unwrap();
        for (name, to) in [("link", at("file")), ("endless", "/dev/zero".into())] {
            std::os::unix::fs::symlink(to, at(name)).unwrap();
        }
        let made = std::process::Command::new("mkfifo")
            .arg(at("pipe"))
            .status();
        assert!(made.unwrap().success());
        assert_eq!(short_text(&at("file")).as_deref(), Some(text));
        for name in ["bytes", "directory", "link", "endless", "pipe", "none"] {
            assert_eq!(short_text(&at(name)), None, "{name}");
        }
    }

    #[test]
    fn a_place_is_the_clients_own_directory_or_a_work_tree_below_and_not_where_a_shell_has_gone() {
        let home = tempfile::tempdir().unwrap();
        for own in [
            "b c",
            ".x/ü+(1)",
            "東京/仕事",
            &"長い 名/".repeat(60)[..659],
        ] {
            let own = home.path().join(own);
            let transcript = Path::new("/c").join(project_slug(&own)).join("s.jsonl");
            let place = |cwd: &Path| work_place(cwd, &transcript);
            for (inner, git) in [
                ("ein Baum", "/r/.git/worktrees/b"),
                ("sub", "../.git/modules/s"),
            ] {
                fs::create_dir_all(own.join(inner)).unwrap();
                fs::write(own.join(inner).join(".git"), format!("gitdir: {git}\n")).unwrap();
            }
            assert_eq!(place(&own.join("ein Baum/src")), Some(own.join("ein Baum")));
            assert_eq!(place(&own.join("sub/src")).as_ref(), Some(&own));
            assert_eq!(place(&own).as_ref(), Some(&own));
            assert_eq!(place(home.path()), None);
        }
    }

    #[test]
    fn a_place_is_also_a_work_tree_elsewhere_if_it_is_of_the_sessions_repository() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        let link = |repository: &str, name: &str, gitdir: &str| {
            let git = at(repository).join(".git/worktrees").join(name);
            fs::create_dir_all(&git).unwrap();
            fs::create_dir_all(at(name).join("src")).unwrap();
            fs::write(git.join("gitdir"), format!("{}/.git\n", at(name).display())).unwrap();
            fs::write(at(name).join(".git"), format!("gitdir: {gitdir}\n")).unwrap();
        };
        let absolute = at("main/.git/worktrees/one");
        link("main", "one", absolute.to_str().unwrap());
        link("main", "two", "../main/.git/worktrees/two");
        link("foreign", "three", "../foreign/.git/worktrees/three");
        let deep = format!("main/{}", "sehr tief/".repeat(25));
        for below in ["main/a b/ü", "one/東京/src", "main/.x", deep.as_str()] {
            fs::create_dir_all(at(below)).unwrap();
        }
        // A path beside the repository goes on from its name, too.
        fs::create_dir_all(at("main-x")).unwrap();
        let beside = Path::new("/c").join(project_slug(&at("main-x")));
        assert_eq!(work_place(&at("two/src"), &beside.join("s.jsonl")), None);
        let own = [
            "main",
            "one",
            "main/a b/ü",
            "one/東京/src",
            "main/.x",
            deep.trim_end_matches('/'),
        ];
        for own in own {
            let transcript = Path::new("/c").join(project_slug(&at(own))).join("s.jsonl");
            let place = |cwd: &Path| work_place(cwd, &transcript);
            assert_eq!(place(&at("one/src")), Some(at("one")), "{own}");
            assert_eq!(place(&at("two/src")), Some(at("two")), "{own}");
            assert_eq!(place(&at("two")), Some(at("two")), "{own}");
            assert_eq!(place(&at("three/src")), None, "{own}");
            assert_eq!(place(&at(own)), Some(at(own)), "{own}");
        }
    }

    #[test]
    fn the_records_say_whose_a_transcript_is_where_paths_share_a_directory() {
        let home = tempfile::tempdir().unwrap();
        let transcript = home.path().join("-a-b-c/s.jsonl");
        fs::create_dir_all(transcript.parent().unwrap()).unwrap();
        for (records, owner) in [
            (&["/a/b-c", "/a/b-c/src"][..], Some("/a/b-c")),
            (&["/a/b/c/src", "/elsewhere"], Some("/a/b/c")),
            // It has moved here from another directory, and its shell has gone on.
            (&["/a", "/a/b.c/x/y"], Some("/a/b.c")),
            (&["/elsewhere"], None),
        ] {
            let line = |cwd: &&str| format!("{{\"cwd\":\"{cwd}\"}}\nno JSON\n");
            fs::write(&transcript, records.iter().map(line).collect::<String>()).unwrap();
            assert_eq!(directory_of(&transcript).as_deref(), owner.map(Path::new));
        }
    }
}
