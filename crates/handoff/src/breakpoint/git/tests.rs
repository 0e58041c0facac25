use proptest::prelude::*;

use super::{
    directory::{logged_commits, logged_mails, logged_notes, operation_in, work_tree_of},
    parse::{FILES_CAP, filters_in, parse_diff, parse_log, parse_others, parse_status},
    *,
};

const HEAD: &str = "0123456789abcdef0123456789abcdef01234567";

fn status(entries: &[&str]) -> GitFacts {
    parse_status(format!("{}\0", entries.join("\0")).as_bytes())
}

#[test]
fn the_head_may_be_on_a_branch_detached_or_not_yet_there() {
    let on = status(&[
        &format!("# branch.oid {HEAD}"),
        "# branch.head fix/two words",
    ]);
    assert_eq!(
        (on.head.as_deref(), on.branch.as_deref(), on.detached),
        (Some(HEAD), Some("fix/two words"), false)
    );
    let off = status(&[&format!("# branch.oid {HEAD}"), "# branch.head (detached)"]);
    assert_eq!((off.branch, off.detached), (None, true));
    let empty = status(&["# branch.oid (initial)", "# branch.head main"]);
    assert_eq!((empty.head, empty.branch.as_deref()), (None, Some("main")));
}

#[test]
fn every_kind_of_change_has_its_list() {
    let ids = format!("100644 100644 100644 {HEAD} {HEAD}");
    let facts = status(&[
        &format!("1 .M N... {ids} src/a b.rs"),
        &format!("1 A. N... {ids} added.rs"),
        &format!("1 AD N... {ids} came-and-went.rs"),
        &format!("1 .D N... {ids} gone.rs"),
        &format!("1 MM N... {ids} both.rs"),
        &format!("2 R. N... {ids} R100 new name.rs"),
        "old name.rs",
        &format!("2 C. N... {ids} C75 copy.rs"),
        "original.rs",
        &format!("u UU N... 100644 100644 100644 100644 {HEAD} {HEAD} {HEAD} conflict.rs"),
        "? un tracked.txt",
        "? another/repository/",
        "! ignored.txt",
        "9 from the future",
    ]);
    assert_eq!(facts.modified, ["src/a b.rs", "both.rs", "conflict.rs"]);
    assert_eq!(facts.created, ["added.rs", "copy.rs", "un tracked.txt"]);
    assert_eq!(facts.deleted, ["gone.rs"]);
    assert_eq!(
        facts.renamed,
        [Renamed {
            from: "old name.rs".to_owned(),
            to: "new name.rs".to_owned()
        }]
    );
    assert!(!facts.truncated);
}

#[test]
fn hostile_names_are_made_safe() {
    let facts = parse_status(b"? a\x1b[2J\nb\0? \xff\xfe.txt\0? \xe2\x80\xaegnp.exe\0");
    assert_eq!(
        facts.created,
        ["a\\u{1b}[2J\\nb", "\\xff\\xfe.txt", "\\u{202e}gnp.exe"]
    );
}

#[test]
fn lists_are_bounded_and_a_cut_entry_is_left_out() {
    let many = "? name\0".repeat(FILES_CAP + 5);
    let facts = parse_status(many.as_bytes());
    assert_eq!((facts.created.len(), facts.truncated), (FILES_CAP, true));
    assert_eq!(parse_status(b"? whole\0? cu").created, ["whole"]);
}

#[test]
fn a_work_tree_is_named_by_its_path_and_not_by_a_word() {
    let named = |own: Option<&str>, tops: &[&str], text: &str| {
        let tree = |top: &&str| OtherTree {
            top: (*top).to_owned(),
            branch: None,
            commits: Vec::new(),
        };
        let facts = GitFacts {
            work_tree: own.map(str::to_owned),
            other_trees: tops.iter().map(tree).collect(),
            ..GitFacts::default()
        };
        let named = facts.trees_named_in(text).into_iter();
        named.map(|tree| tree.top.clone()).collect::<Vec<_>>()
    };
    for (top, text, is_named) in [
        ("/w/fix", "cd ../fix && cargo test", true),
        ("/w/fix", "git -C fix log", true),
        ("/w/fix", "git worktree add ../fix -b x", true),
        ("/w/fix", "cat \"/w/fix/src/a.rs\"", true),
        ("/w/fix", "npm run fix", false),
        ("/w/fix", "cd ../fix-2; cd ../fix.old; ls /w/fixes", false),
        ("/w/été 1", "cd '/w/été 1' && ls", true),
        ("/w/仕事", "cd ../仕事", true),
        ("", "cd /", false),
    ] {
        let expected = if is_named { vec![top] } else { vec![] };
        assert_eq!(named(None, &[top], text), expected, "{text}");
    }
    // Inside of another one.
    let (main, moon) = ("/w/p", "/w/p/.claude/worktrees/moon");
    let file = "/w/p/.claude/worktrees/moon/src/p.rs";
    assert_eq!(named(Some(moon), &[main], file), [""; 0]);
    assert_eq!(named(Some(moon), &[main], "cd /w/p && git log"), [main]);
    assert_eq!(named(None, &[moon], file), [moon]);
    assert_eq!(named(Some("/w/q"), &[main, moon], file), [moon]);
}

#[test]
fn the_log_of_a_head_names_the_commits_that_were_made_there() {
    let line = |what: &str| {
        format!(
            "{} {HEAD} A B <a@b> 1700000000 +0100\t{what}\n",
            "0".repeat(40)
        )
    };
    let made = [
        "commit (initial): one",
        "commit: two: 2",
        "commit (amend): three",
        "cherry-pick: four",
    ];
    let other = [
        "checkout: moving from a to b",
        "reset: moving to HEAD",
        "",
        "rebase (finish): returning",
    ];
    let log = made
        .iter()
        .chain(&other)
        .map(|what| line(what))
        .collect::<String>();
    let commits = logged_commits(format!("half a line\tcommit: no\n{log}").as_bytes());
    let subjects: Vec<&str> = commits.iter().map(|one| one.subject.as_str()).collect();
    assert_eq!(subjects, ["four", "three", "two: 2", "one"]);
    assert_eq!(
        (&*commits[0].sha, commits[0].at.timestamp()),
        (HEAD, 1_700_000_000)
    );
}

#[test]
fn what_git_has_begun_and_put_aside_is_told() {
    let line = |what: &str| format!("{HEAD} {HEAD} ada <a@b> 1795000000 +0000\t{what}\n");
    for (files, operation, notes) in [
        (vec![("MERGE_HEAD", HEAD.to_owned())], Some("merge"), vec![]),
        (
            vec![("CHERRY_PICK_HEAD", HEAD.to_owned())],
            Some("cherry-pick"),
            vec![],
        ),
        (
            vec![
                ("REVERT_HEAD", HEAD.to_owned()),
                ("sequencer/todo", "revert a one\nrevert b two\n".to_owned()),
            ],
            Some("revert of several commits, 2 of them not done"),
            vec![],
        ),
        // The conflict of the first one is resolved and committed.
        (
            vec![("sequencer/todo", "pick a one\npick b two\n".to_owned())],
            Some("cherry-pick of several commits, 1 of them not done"),
            vec![],
        ),
        (
            vec![("BISECT_LOG", String::new())],
            Some("bisection"),
            vec![],
        ),
        (
            vec![("logs/HEAD", line("checkout: moving from main to v1.2"))],
            None,
            vec!["checked out as v1.2"],
        ),
        (
            vec![(
                "logs/HEAD",
                line("checkout: moving from main to v1.2") + &line("commit: go to it"),
            )],
            None,
            vec![],
        ),
        (
            vec![("logs/HEAD", line("checkout: moving from main to HEAD~2"))],
            None,
            vec![],
        ),
        (
            vec![("logs/refs/stash", line("WIP on main: abc c3"))],
            None,
            vec!["1 stash, the last one: WIP on main: abc c3"],
        ),
        (
            vec![(
                "logs/refs/stash",
                line("WIP on main: abc c3") + &line("On main: half"),
            )],
            None,
            vec!["2 stashes, the last one: On main: half"],
        ),
        (
            vec![("logs/refs/stash", line("On main: half").repeat(400))],
            None,
            vec!["400 stashes, the last one: On main: half"],
        ),
    ] {
        let place = tempfile::tempdir().unwrap();
        for (name, text) in &files {
            let file = place.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        assert_eq!(
            operation_in(place.path()).as_deref(),
            operation,
            "{files:?}"
        );
        assert_eq!(logged_notes(place.path(), true), notes, "{files:?}");
    }
}

#[test]
fn commits_are_read_and_bad_ones_left_out() {
    let log = format!(
        "{HEAD}\x001700000000\x00subject: with\ttab\0nonsense\x001\x00x\0{HEAD}\x00soon\x00x\0"
    );
    let commits = parse_log(log.as_bytes());
    assert_eq!(commits.len(), 1);
    assert_eq!(commits[0].subject, "subject: with\\ttab");
    assert_eq!(commits[0].at.timestamp(), 1_700_000_000);
}

#[test]
fn filters_are_found_whatever_they_are_called() {
    let keys =
        b"user.name\0filter.lfs.clean\0filter.lfs.process\0filter.a.b=c.d.clean\0filter.bare\0";
    assert_eq!(filters_in(keys), ["a.b=c.d", "lfs"]);
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(
        prop_oneof![Just(0u8), Just(b' '), Just(b'1'), Just(b'2'), Just(b'R'), any::<u8>()], 0..200)) {
        let facts = parse_status(&bytes);
        let names = facts.modified.iter().chain(&facts.created).chain(&facts.deleted);
        prop_assert!(names.clone().all(|name| !name.chars().any(char::is_control)));
        parse_log(&bytes);
        parse_diff(&bytes);
    }
}

#[test]
fn a_linked_work_tree_is_known_by_an_absolute_and_by_a_relative_place() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let directory = place.join("main/.git/worktrees/side");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::create_dir_all(place.join("side")).unwrap();
    let side = place.join("side").display().to_string();
    for (recorded, top) in [
        (format!("{side}/.git\n"), Some(side.clone())),
        ("../../../../side/.git\n".to_owned(), Some(side.clone())),
        ("../../../../gone/.git\n".to_owned(), None),
        ("/gone/.git\n".to_owned(), Some("/gone".to_owned())),
    ] {
        std::fs::write(directory.join("gitdir"), &recorded).unwrap();
        assert_eq!(work_tree_of(&directory), top, "{recorded}");
    }
}

#[test]
fn a_file_is_of_others_if_no_commit_of_it_is_ones_own() {
    let printed = "\u{1}5\0eve@x\0eve@x\0\nboth.rs\0a b.rs\0\u{1}5\0me@x\0me@x\0\u{1}5\0me@x\0eve@x\0\nboth.rs\0\u{1}5\0eve@x\0me@x\0\npicked.rs\0";
    for (mails, expected) in [
        (&["me@x"][..], &["a b.rs"][..]),
        (&["eve@x"], &[]),
        (&["ada@x"], &["a b.rs", "both.rs", "picked.rs"]),
    ] {
        let mails = mails.iter().map(|mail| mail.as_bytes().to_vec()).collect();
        let mut others = Vec::from_iter(parse_others(printed.as_bytes(), &mails, 5));
        others.sort();
        assert_eq!(others, expected);
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("logs")).unwrap();
    let ids = format!("{HEAD} {HEAD}");
    let log = format!(
        "half@x> 1 +0000\n{ids} A B <me@x> 1 +0000\tcommit: <not@x>\n{ids} A <> 1 +0000\treset\n"
    );
    std::fs::write(directory.path().join("logs/HEAD"), log).unwrap();
    let expected = [b"me@x".to_vec(), Vec::new()];
    assert_eq!(logged_mails(directory.path()), HashSet::from(expected));
}

#[test]
fn a_commit_from_before_the_run_makes_no_file_ones_own() {
    let printed = "\u{1}5\0me@x\0me@x\0\nolder.rs\0both.rs\0\u{1}7\0me@x\0me@x\0\nboth.rs\0\u{1}\0me@x\0me@x\0\nno time.rs\0";
    let mails = HashSet::from([b"me@x".to_vec()]);
    let left_out = parse_others(printed.as_bytes(), &mails, 6);
    assert_eq!(left_out, HashSet::from(["older.rs".to_owned()]));
}

#[test]
fn a_pipe_in_gits_directory_is_not_read() {
    use std::io::Write as _;

    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("sequencer")).unwrap();
    let pipe = directory.path().join("sequencer/todo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    // Open at both ends and filled, so that a reader is not kept waiting here.
    let mut open = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&pipe)
        .unwrap();
    open.write_all("pick 0a1b2c3d it\n".repeat(1_000).as_bytes())
        .unwrap();
    let operation = operation_in(directory.path());
    assert_eq!(operation.as_deref(), Some("cherry-pick"));
}
