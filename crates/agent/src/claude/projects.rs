//! The client's directories of projects: the one that a path has, and the owner of a transcript in one.
//!
//! Paths that differ only in punctuation share one directory, so its name does not tell the path; the `cwd` of hooks and records
//! does. That also follows a shell's `cd`, so the path that counts is the one at or above it that has this name (measured with
//! 2.1.331).

use std::{
    fs::{self, File},
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

/// The longest name that is not cut, in characters.
const LONGEST: usize = 200;

/// The number of bytes of a transcript that are read at its end and at its beginning: its heaviest lines have some 200 KB.
const READ: u64 = 1 << 20;

/// Returns the name of a project's directory under `<config dir>/projects/`.
///
/// Every UTF-16 unit that is no ASCII letter or digit becomes `-`; a longer name is cut, and a hash of the path follows.
#[must_use]
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
/// work tree below it that a shell has gone to.
#[must_use]
pub fn work_place(cwd: &Path, transcript: &Path) -> Option<PathBuf> {
    let own = named_above(cwd, transcript)?;
    let is_linked = |place: &&Path| {
        // A submodule has such a file, too.
        let text = short_text(&place.join(".git")).unwrap_or_default();
        text.starts_with("gitdir:") && text.contains("/worktrees/")
    };
    let mut below = cwd.ancestors().take_while(|above| *above != own);
    Some(below.find(is_linked).unwrap_or(own).to_owned())
}

/// Returns the directory that the session of a transcript is resumed in, by its records.
#[must_use]
pub fn directory_of(transcript: &Path) -> Option<PathBuf> {
    let mut file = File::open(transcript).ok()?;
    let end = file.metadata().ok()?.len().saturating_sub(READ);
    [end, 0].into_iter().find_map(|from| {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(from)).ok()?;
        file.by_ref().take(READ).read_to_end(&mut bytes).ok()?;
        bytes.rsplit(|byte| *byte == b'\n').find_map(|line| {
            let record: serde_json::Value = serde_json::from_slice(line).ok()?;
            let cwd = Path::new(record["cwd"].as_str()?);
            named_above(cwd, transcript).map(Path::to_owned)
        })
    })
}

/// Returns the directory at or above `cwd` whose transcripts lie beside this transcript.
fn named_above<'a>(cwd: &'a Path, transcript: &Path) -> Option<&'a Path> {
    let name = transcript.parent()?.file_name()?.to_str()?;
    cwd.ancestors().find(|above| project_slug(above) == name)
}

/// Returns a project's directory with the work trees that lie in its repository, where the client makes its own.
#[must_use]
pub fn with_work_trees(project: &Path) -> Vec<PathBuf> {
    let has_git = |top: &&Path| top.join(".git").symlink_metadata().is_ok();
    let top = project.ancestors().find(has_git).unwrap_or(project);
    let listed = fs::read_dir(top.join(".git/worktrees")).into_iter();
    let trees = listed.flatten().flatten().filter_map(|tree| {
        let file = short_text(&tree.path().join("gitdir"))?;
        let tree = Path::new(file.trim_end()).parent()?;
        tree.starts_with(top).then(|| tree.to_owned())
    });
    std::iter::once(project.to_owned()).chain(trees).collect()
}

fn short_text(path: &Path) -> Option<String> {
    let is_file = path.symlink_metadata().ok()?.is_file();
    fs::read_to_string(path).ok().filter(|_| is_file)
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
            assert_eq!(place(&own), Some(own));
            assert_eq!(place(home.path()), None);
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
