use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
};

use super::{write::WriteStep, *};
use crate::run_dir::{HANDOFF, META, RunDir, list_runs};
use pitstop_core::lineage::{IterationId, RunId};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn what_is_written_is_private_and_ignored_by_git() {
    let project = tempfile::tempdir().unwrap();
    let dir = PrivateDir::open_project(project.path()).unwrap();
    let run = RunId::new(chrono::DateTime::UNIX_EPOCH, [1, 2, 3]);
    let run_dir = RunDir::open(&dir, &run).unwrap();
    run_dir
        .write(IterationId::FIRST, HANDOFF, "# Handoff")
        .unwrap();

    let pitstop = project.path().join(".pitstop");
    let iteration = pitstop.join("runs").join(run.as_str()).join("iteration-1");
    assert_eq!(fs::read(pitstop.join(".gitignore")).unwrap(), b"*\n");
    assert_eq!(
        fs::read(iteration.join("handoff.md")).unwrap(),
        b"# Handoff"
    );
    assert_eq!(mode(&iteration.join("handoff.md")), 0o600);
    for dir in [&pitstop, &pitstop.join("runs"), &iteration] {
        assert_eq!(mode(dir), 0o700);
    }
    assert_eq!(list_runs(&dir).unwrap(), [run]);
}

#[test]
fn a_write_stopped_after_any_step_leaves_the_old_file_or_the_new_one_whole() {
    use WriteStep::{Rename, SyncDirectory, SyncFile, WriteAside};
    let old = vec![b'o'; 100_000];
    let new = vec![b'n'; 90_000];
    for (name, exists) in [(META, true), ("scratchpad.md", true), (META, false)] {
        for step in [WriteAside, SyncFile, Rename, SyncDirectory] {
            let project = tempfile::tempdir().unwrap();
            let dir = PrivateDir::open_project(project.path()).unwrap();
            if exists {
                dir.write_private(name, &old).unwrap();
            }
            let mut met = false;
            let stopped = dir.write_watched(name, &new, &mut |done| {
                if done == step {
                    met = true;
                    return Err(io::Error::other("stopped here"));
                }
                Ok(())
            });
            assert!(met && stopped.is_err());

            let expected = match (matches!(step, Rename | SyncDirectory), exists) {
                (true, _) => Some(&new),
                (false, true) => Some(&old),
                (false, false) => None,
            };
            let found = dir.read(name, 1 << 20).unwrap();
            assert_eq!(found.as_ref(), expected, "{name} {step:?}");

            dir.sweep_asides().unwrap();
            dir.write_private(name, &new).unwrap();
            assert_eq!(dir.read(name, 1 << 20).unwrap().as_ref(), Some(&new));
            assert_eq!(dir.names().unwrap(), [".gitignore", name]);
        }
    }
}

#[test]
fn what_a_living_process_writes_is_not_swept() {
    let project = tempfile::tempdir().unwrap();
    let dir = PrivateDir::open_project(project.path()).unwrap();
    // The first process of the system lives, and no number is as high as the second.
    for name in [
        ".a.aside-1-0",
        ".b.aside-4000000000-7",
        ".aside",
        ".c.aside-x",
    ] {
        dir.write_private(name, b"half").unwrap();
    }
    dir.sweep_asides().unwrap();
    let left = dir.names().unwrap();
    assert_eq!(left, [".a.aside-1-0", ".aside", ".c.aside-x", ".gitignore"]);
}

#[test]
fn a_failed_write_leaves_nothing_aside() {
    let project = tempfile::tempdir().unwrap();
    let dir = PrivateDir::open_project(project.path()).unwrap();
    // A directory under the name: the rename must fail.
    dir.dir("meta.json").unwrap();
    assert!(dir.write_private("meta.json", b"{}").is_err());
    assert_eq!(dir.names().unwrap(), [".gitignore", "meta.json"]);
}

#[test]
fn links_are_never_followed() {
    let project = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let secret = elsewhere.path().join("secret");
    fs::write(&secret, b"secret").unwrap();

    symlink(elsewhere.path(), project.path().join(".pitstop")).unwrap();
    let error = PrivateDir::open_project(project.path()).unwrap_err();
    assert!(matches!(error, FilesError::Link(_)), "{error:?}");
    fs::remove_file(project.path().join(".pitstop")).unwrap();

    let dir = PrivateDir::open_project(project.path()).unwrap();
    symlink(&secret, project.path().join(".pitstop/scratchpad.md")).unwrap();
    assert!(matches!(
        dir.read("scratchpad.md", 100),
        Err(FilesError::Link(_))
    ));
    assert!(matches!(
        dir.append("scratchpad.md"),
        Err(FilesError::Link(_))
    ));
    dir.write_private("scratchpad.md", b"mine").unwrap();
    assert_eq!(fs::read(&secret).unwrap(), b"secret");

    symlink(elsewhere.path(), project.path().join(".pitstop/runs")).unwrap();
    let run = RunId::new(chrono::DateTime::UNIX_EPOCH, [1, 2, 3]);
    assert!(matches!(RunDir::open(&dir, &run), Err(FilesError::Link(_))));
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
}

#[test]
fn a_hard_link_is_replaced_and_not_written_through() {
    let project = tempfile::tempdir().unwrap();
    let dir = PrivateDir::open_project(project.path()).unwrap();
    let other = project.path().join("other");
    fs::write(&other, b"theirs").unwrap();
    fs::hard_link(&other, dir.path().join(META)).unwrap();
    dir.write_private(META, b"ours").unwrap();
    assert_eq!(fs::read(&other).unwrap(), b"theirs");
}

#[test]
fn a_directory_open_to_others_is_closed_to_them() {
    let project = tempfile::tempdir().unwrap();
    let pitstop = project.path().join(".pitstop");
    fs::create_dir(&pitstop).unwrap();
    fs::set_permissions(&pitstop, fs::Permissions::from_mode(0o777)).unwrap();
    PrivateDir::open_project(project.path()).unwrap();
    assert_eq!(mode(&pitstop), 0o700);
}

#[test]
#[ignore = "needs root, to give a directory to another user"]
fn a_directory_of_another_user_is_refused() {
    let project = tempfile::tempdir().unwrap();
    let pitstop = project.path().join(".pitstop");
    fs::create_dir(&pitstop).unwrap();
    std::os::unix::fs::chown(&pitstop, Some(12_345), None).unwrap();
    assert_eq!(fs::metadata(&pitstop).unwrap().uid(), 12_345);
    let error = PrivateDir::open_project(project.path()).unwrap_err();
    assert!(
        matches!(error, FilesError::Owner { found: 12_345, .. }),
        "{error:?}"
    );
}

#[test]
fn a_directory_is_removed_with_all_that_is_in_it_and_nothing_behind_its_links() {
    let project = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("theirs"), b"theirs").unwrap();
    let dir = PrivateDir::open_project(project.path()).unwrap();
    let runs = dir.dir("runs").unwrap();
    let inner = runs.dir("one").unwrap().dir("iteration-1").unwrap();
    inner.write_private("pane.cast", &[0; 1_000]).unwrap();
    symlink(elsewhere.path(), inner.path().join("link")).unwrap();
    let size = runs.size_of("one");
    assert!((1_000..2_000).contains(&size), "{size}");
    assert_eq!(runs.remove_dir("one").unwrap(), size);
    assert_eq!(runs.names().unwrap(), Vec::<String>::new());
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
    assert_eq!(runs.remove_dir("one").unwrap(), 0);

    symlink(elsewhere.path(), runs.path().join("link")).unwrap();
    assert!(matches!(runs.remove_dir("link"), Err(FilesError::Link(_))));
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
}

#[test]
fn what_is_no_file_is_no_state_file() {
    let project = tempfile::tempdir().unwrap();
    let dir = PrivateDir::open_project(project.path()).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(dir.path().join("fifo"))
        .status();
    assert!(made.unwrap().success());
    assert!(matches!(dir.read("fifo", 10), Err(FilesError::Kind { .. })));
    fs::write(project.path().join(".pitstop/runs"), b"").unwrap();
    assert!(matches!(dir.dir("runs"), Err(FilesError::Kind { .. })));
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let project = tempfile::tempdir().unwrap();
    let dir = PrivateDir::open_project(project.path()).unwrap();
    for name in ["", ".", "..", "a/b", "/etc/passwd", "../x", "a\0"] {
        assert!(
            matches!(dir.write_private(name, b""), Err(FilesError::Name(_))),
            "{name:?}"
        );
        assert!(
            matches!(dir.read(name, 1), Err(FilesError::Name(_))),
            "{name:?}"
        );
        assert!(
            matches!(dir.dir(name), Err(FilesError::Name(_))),
            "{name:?}"
        );
    }
}

#[test]
fn a_file_is_read_up_to_its_limit_and_refused_beyond() {
    let project = tempfile::tempdir().unwrap();
    let dir = PrivateDir::open_project(project.path()).unwrap();
    dir.write_private("a", b"12345").unwrap();
    assert_eq!(dir.read("a", 5).unwrap().unwrap(), b"12345");
    assert!(matches!(
        dir.read("a", 4),
        Err(FilesError::TooLarge { limit: 4, .. })
    ));
    assert_eq!(dir.read("none", 4).unwrap(), None);
    assert!(
        PrivateDir::find_project(&project.path().join("x"))
            .unwrap()
            .is_none()
    );
}

#[test]
fn of_a_larger_file_the_start_can_be_read() {
    let project = tempfile::tempdir().unwrap();
    let dir = PrivateDir::open_project(project.path()).unwrap();
    dir.write_private("a", b"12345").unwrap();
    for (most, read) in [(4, "1234"), (5, "12345"), (6, "12345")] {
        let start = dir.read_start("a", most).unwrap().unwrap();
        assert_eq!(start, read.as_bytes(), "{most}");
    }
    assert_eq!(dir.read_start("none", 4).unwrap(), None);
}
