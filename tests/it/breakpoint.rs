//! Git is asked safely: real repositories, some of them with booby traps.

use std::{
    fs,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use pitstop_handoff::{
    Generator, Marker, PreservedState, Sources,
    breakpoint::git::{self, GitFacts, GitState, Renamed},
};
use pitstop_transcript::human::section_lines;
use tempfile::TempDir;

/// A repository of its own, made by the real git with no config but ours.
struct Repo {
    dir: TempDir,
}

impl Repo {
    fn new() -> Self {
        let repo = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(repo.path()).unwrap();
        repo.git(&["init", "--quiet", "--initial-branch=main"]);
        repo
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    /// Where traps leave their mark.
    fn sprung(&self) -> Vec<String> {
        let marks = self.dir.path().join("sprung");
        let Ok(entries) = fs::read_dir(marks) else {
            return Vec::new();
        };
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// A program that leaves a mark when it runs.
    fn trap(&self, name: &str) -> String {
        let marks = self.dir.path().join("sprung");
        fs::create_dir_all(&marks).unwrap();
        let program = self.dir.path().join(format!("trap-{name}"));
        fs::write(
            &program,
            format!("#!/bin/sh\n: > '{}/{name}'\n", marks.display()),
        )
        .unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        program.display().to_string()
    }

    fn try_git(&self, args: &[&str]) -> Output {
        Command::new("git")
            .current_dir(self.path())
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.dir.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_COMMITTER_DATE", "1700000000 +0000")
            .env("GIT_AUTHOR_DATE", "1700000000 +0000")
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap()
    }

    fn git(&self, args: &[&str]) -> String {
        let output = self.try_git(args);
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn write(&self, name: impl AsRef<Path>, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn commit(&self, subject: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", subject]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn state(&self) -> GitState {
        ask(&self.path(), 10)
    }

    fn facts(&self) -> GitFacts {
        match self.state() {
            GitState::Facts(facts) => *facts,
            other => panic!("expected facts, found {other:?}"),
        }
    }
}

/// What git says now, with as many commits, and the state of a run that began as `start`.
fn state_since(dir: &Path, commits: usize, start: &GitFacts) -> (GitState, PreservedState) {
    let mut state = PreservedState {
        run_start: Some(start.into()),
        ..PreservedState::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let now = runtime.block_on(git::facts(dir, commits, state.run_start.as_ref()));
    let GitState::Facts(facts) = &now else {
        panic!("no facts: {now:?}")
    };
    state.feed_git(facts);
    (now, state)
}

/// What a run that began as `start` has changed by now: modified, created, deleted, and what is not committed.
fn changed_since(dir: &Path, start: &GitFacts) -> [Vec<String>; 4] {
    let (_, state) = state_since(dir, 1, start);
    [
        &state.modified_files,
        &state.created_files,
        &state.deleted_files,
        &state.uncommitted_files,
    ]
    .map(|files| files.iter().map(|file| file.text.clone()).collect())
}

#[test]
fn what_the_run_has_changed_is_told_from_what_is_not_committed() {
    let repo = Repo::new();
    for name in ["a.rs", "ünï code.rs", "before.rs", "gone.rs", "moved.rs"] {
        repo.write(name, &format!("{name}\n").repeat(9));
    }
    repo.commit("start");
    repo.write("before.rs", "the human's own change");
    repo.write("notes.txt", "the human's own file");
    let start = repo.facts();
    assert_eq!(
        changed_since(&repo.path(), &start),
        [vec![], vec![], vec![], vec!["before.rs", "notes.txt"]]
    );

    repo.write("a.rs", "changed and committed");
    repo.write("new.rs", "made and committed");
    repo.git(&["add", "a.rs", "new.rs"]);
    repo.git(&["commit", "--quiet", "--message", "of the run"]);
    repo.write("ünï code.rs", "changed");
    repo.write("new.rs", "made, committed and changed");
    repo.write("newer.rs", "made");
    repo.git(&["rm", "--quiet", "gone.rs"]);
    repo.git(&["mv", "moved.rs", "moved here.rs"]);
    assert_eq!(
        changed_since(&repo.path(), &start),
        [
            vec!["a.rs", "ünï code.rs"],
            vec!["new.rs", "moved here.rs", "newer.rs"],
            vec!["gone.rs", "moved.rs"],
            vec![
                "before.rs",
                "new.rs",
                "ünï code.rs",
                "newer.rs",
                "notes.txt",
                "gone.rs",
                "moved here.rs"
            ],
        ]
    );

    // Another work tree has the same commits, and what was not committed elsewhere is not there.
    repo.git(&["worktree", "add", "--quiet", "-b", "side", "../side"]);
    let side = repo.dir.path().join("side");
    fs::write(side.join("side.rs"), "made there").unwrap();
    assert_eq!(
        changed_since(&side, &start),
        [
            vec!["a.rs".to_owned()],
            vec!["new.rs".to_owned(), "side.rs".to_owned()],
            vec![],
            vec!["side.rs".to_owned()]
        ]
    );
}

#[test]
fn a_run_that_began_before_the_first_commit_or_in_another_repository_knows_its_files() {
    let repo = Repo::new();
    repo.write("first.rs", "the human's");
    let start = repo.facts();
    repo.write("second.rs", "made");
    repo.commit("the first commit");
    assert_eq!(
        changed_since(&repo.path(), &start),
        [vec![], vec!["first.rs", "second.rs"], vec![], vec![]]
    );
    // Its start is not known there: what is not committed is all that can be said.
    let other = Repo::new();
    other.commit("another");
    other.write("here.rs", "made");
    repo.write("third.rs", "made");
    assert_eq!(
        changed_since(&other.path(), &repo.facts()),
        [vec![], vec!["here.rs"], vec![], vec!["here.rs"]]
    );
}

fn ask(dir: &Path, commits: usize) -> GitState {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(git::facts(dir, commits, None))
}

#[test]
fn a_directory_outside_any_repository_says_so() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(ask(dir.path(), 10), GitState::NoRepository);
}

#[test]
fn a_directory_that_is_not_there_is_a_reason_and_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(
        ask(&dir.path().join("gone"), 10),
        GitState::Unreadable(_)
    ));
}

#[test]
fn a_repository_without_commits_has_a_branch_and_no_head() {
    let repo = Repo::new();
    repo.write("first.txt", "x");
    let facts = repo.facts();
    assert_eq!(
        (facts.branch.as_deref(), facts.head, facts.commits.len()),
        (Some("main"), None, 0)
    );
    assert_eq!(facts.created, ["first.txt"]);
}

#[test]
fn commits_branch_and_changes_are_reported() {
    let repo = Repo::new();
    for name in ["kept.rs", "with space.rs", "gone.rs", "staged gone.rs"] {
        repo.write(name, name);
    }
    repo.write("old name.rs", &"the same long content\n".repeat(20));
    let first = repo.commit("first: one");
    let second = repo.commit("second: two \u{1b}[31mred\u{202e}");
    repo.write("with space.rs", "changed");
    fs::remove_file(repo.path().join("gone.rs")).unwrap();
    repo.git(&["rm", "--quiet", "staged gone.rs"]);
    repo.git(&["mv", "old name.rs", "new name.rs"]);
    repo.write("new/deep/file.rs", "x");
    repo.write("staged.rs", "x");
    repo.git(&["add", "staged.rs"]);

    let facts = repo.facts();
    assert_eq!(
        (facts.branch.as_deref(), facts.head.as_deref()),
        (Some("main"), Some(second.as_str()))
    );
    assert_eq!(facts.modified, ["with space.rs"]);
    assert_eq!(facts.created, ["staged.rs", "new/deep/file.rs"]);
    assert_eq!(facts.deleted, ["gone.rs", "staged gone.rs"]);
    assert_eq!(
        facts.renamed,
        [Renamed {
            from: "old name.rs".into(),
            to: "new name.rs".into()
        }]
    );
    let reported: Vec<_> = facts
        .commits
        .iter()
        .map(|commit| (commit.sha.as_str(), commit.subject.as_str()))
        .collect();
    assert_eq!(
        reported,
        [
            (second.as_str(), "second: two \\u{1b}[31mred\\u{202e}"),
            (first.as_str(), "first: one")
        ]
    );
    assert_eq!(facts.commits[0].at.timestamp(), 1_700_000_000);
    let GitState::Facts(one) = ask(&repo.path(), 1) else {
        panic!("no facts")
    };
    assert_eq!(one.commits.len(), 1);
}

/// What the handoff says of git and of the files.
fn described(dir: &Path, start: &GitFacts) -> (Vec<String>, Vec<String>) {
    let (facts, state) = state_since(dir, 5, start);
    let settings = pitstop_core::config::Config::default().handoff;
    let git = pitstop_core::app::handoff::git_lines(&facts, &settings);
    let marker = Marker::read("pitstop handoff · r1 · iteration 1 · 0a1b2c3d").unwrap();
    let sources = Sources {
        git: &git,
        ..Sources::new(&marker, &state)
    };
    let text = Generator::default()
        .generate(&sources, 50_000)
        .unwrap()
        .text;
    let lines = section_lines(&text, "## Modified files").into_iter();
    let files = lines.filter_map(|line| line.strip_prefix("- "));
    (git, files.map(str::to_owned).collect())
}

#[test]
fn what_git_is_in_the_middle_of_is_told_with_its_conflicts() {
    let repo = Repo::new();
    repo.write("a.rs", "one\n");
    repo.commit("start");
    let start = repo.facts();
    repo.git(&["checkout", "--quiet", "-b", "topic"]);
    repo.write("a.rs", "two\n");
    let theirs = repo.commit("on topic");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.write("a.rs", "three\n");
    repo.commit("on main");
    let said = |args: &[&str], undo: &[&str]| {
        assert!(!repo.try_git(args).status.success(), "{args:?}");
        let (git, _) = described(&repo.path(), &start);
        repo.git(undo);
        git
    };
    let git = said(&["merge", "topic"], &["merge", "--abort"]);
    assert_eq!(
        git[..3],
        ["branch main", "in progress: merge", "conflicts in a.rs"]
    );
    let git = said(&["rebase", "topic"], &["rebase", "--abort"]);
    assert!(git[0].starts_with("the head is detached at "), "{git:?}");
    assert_eq!(git[1], "in progress: rebase of main, step 1 of 1");
    let git = said(&["cherry-pick", &theirs], &["cherry-pick", "--abort"]);
    assert_eq!(git[1], "in progress: cherry-pick");
    let git = said(&["revert", "--no-edit", &theirs], &["revert", "--abort"]);
    assert_eq!(git[1], "in progress: revert");
    // In a work tree of its own.
    repo.git(&["worktree", "add", "--quiet", "../side", "topic"]);
    let side = repo.dir.path().join("side");
    assert!(
        !repo
            .try_git(&["-C", "../side", "merge", "main"])
            .status
            .success()
    );
    let (git, _) = described(&side, &start);
    let place = git[0].strip_prefix("branch topic, in the work tree /");
    assert!(
        place.is_some_and(|place| place.ends_with("/side")),
        "{git:?}"
    );
    assert_eq!(git[1], "in progress: merge");
    let (git, _) = described(&repo.path(), &start);
    assert!(!git[1].starts_with("in progress"), "{git:?}");
}

#[test]
fn the_other_work_trees_are_known_with_what_was_committed_in_them() {
    let repo = Repo::new();
    repo.commit("start");
    assert_eq!(repo.facts().other_trees, []);
    for (place, branch) in [("../side", "topic"), ("deep/été (1)", "other")] {
        repo.git(&["worktree", "add", "--quiet", "-b", branch, place]);
    }
    let side = repo.dir.path().join("side");
    repo.git(&[
        "-C",
        "../side",
        "commit",
        "--quiet",
        "--allow-empty",
        "-m",
        "there",
    ]);
    let shown = |dir: &Path| {
        let GitState::Facts(facts) = ask(dir, 1) else {
            panic!("no facts of {dir:?}");
        };
        let trees = facts.other_trees.iter();
        let trees = trees.map(|tree| {
            let subjects: Vec<&str> = tree.commits.iter().map(|one| &*one.subject).collect();
            let name = tree.top.rsplit('/').next().unwrap_or_default();
            format!(
                "{name} {:?} {subjects:?}",
                tree.branch.as_deref().unwrap_or_default()
            )
        });
        trees.collect::<Vec<_>>()
    };
    let other = "été (1) \"other\" []";
    assert_eq!(shown(&repo.path()), [other, "side \"topic\" [\"there\"]"]);
    let main = repo.path();
    let main = main.file_name().unwrap().to_string_lossy().into_owned();
    let main = format!("{main} \"main\" [\"start\"]");
    assert_eq!(shown(&side), [main.as_str(), other]);
    repo.git(&["-C", "../side", "checkout", "--quiet", "--detach"]);
    assert_eq!(shown(&repo.path())[1], "side \"\" [\"there\"]");
}

#[test]
fn files_with_other_names_and_very_many_files_are_told_in_few_lines() {
    let repo = Repo::new();
    for name in ["old.rs", "lib/staged.rs", "gone.rs"] {
        repo.write(name, &format!("{name}\n").repeat(9));
    }
    repo.commit("start");
    let start = repo.facts();
    repo.git(&["mv", "old.rs", "new.rs"]);
    repo.commit("renamed");
    repo.git(&["mv", "lib/staged.rs", "lib/other.rs"]);
    repo.git(&["rm", "--quiet", "gone.rs"]);
    let (_, files) = described(&repo.path(), &start);
    assert_eq!(
        files,
        [
            "renamed: lib/staged.rs → lib/other.rs",
            "renamed, committed: old.rs → new.rs",
            "deleted: gone.rs",
        ]
    );
    for number in 0..300 {
        repo.write(format!("gen/deep/er/{number}.rs"), "made");
        repo.write(format!("{number}.txt"), "made");
    }
    let (git, files) = described(&repo.path(), &start);
    assert_eq!((git[0].as_str(), git.len()), ("branch main", 3));
    assert_eq!(files.len(), 41);
    assert!(files[0].starts_with("renamed"));
    let last = files.last().unwrap();
    assert!(
        last.starts_with("563 more: ") && last.contains("300 in gen/deep"),
        "{last}"
    );
}

#[test]
fn a_detached_head_has_no_branch() {
    let repo = Repo::new();
    let sha = repo.commit("only");
    repo.git(&["checkout", "--quiet", "--detach"]);
    let facts = repo.facts();
    assert_eq!(
        (facts.detached, facts.branch, facts.head),
        (true, None, Some(sha))
    );
}

#[test]
fn names_that_are_hostile_or_no_utf8_stay_on_their_line() {
    let repo = Repo::new();
    repo.commit("only");
    let names: [&[u8]; 6] = [
        b"line\nfeed",
        b"esc\x1b[2Jape",
        b"bell\x07",
        b"bidi\xe2\x80\xaetxt.exe",
        b"-rf",
        b"# branch.head evil",
    ];
    for name in names {
        repo.write(std::ffi::OsStr::from_bytes(name), "x");
    }
    let no_utf8 = repo
        .path()
        .join(std::ffi::OsStr::from_bytes(b"bytes\xff\xfe"));
    // Some file systems refuse such names; the parser's own tests cover them too.
    let has_bytes = fs::write(no_utf8, "x").is_ok();
    let facts = repo.facts();
    assert_eq!(facts.branch.as_deref(), Some("main"));
    assert_eq!(facts.created.len(), names.len() + usize::from(has_bytes));
    assert!(
        facts
            .created
            .iter()
            .all(|name| !name.chars().any(|c| c.is_control() || c == '\u{202e}'))
    );
    assert_eq!(
        facts.created.contains(&"bytes\\xff\\xfe".to_owned()),
        has_bytes
    );
}

#[test]
fn more_files_than_anyone_reads_are_cut_and_said_to_be() {
    let repo = Repo::new();
    for n in 0..2_100 {
        repo.write(format!("many/{n}"), "");
    }
    let facts = repo.facts();
    assert_eq!((facts.created.len(), facts.truncated), (2_000, true));
}

fn set_traps(repo: &Repo) {
    repo.write("watched.txt", "one\n");
    repo.commit("only");
    repo.write(
        ".gitattributes",
        "*.txt filter=evil diff=evil\n*.md filter=a.b=c\n*.log filter=long\n",
    );
    for name in ["a.md", "z.log"] {
        repo.write(name, "x\n");
    }
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message", "attributes"]);
    fs::write(
        repo.path().join(".git/info/attributes"),
        "watched.txt filter=evil\n",
    )
    .unwrap();
    // A commit that claims to be signed, so that `log.showSignature` has something to verify.
    let commit = repo.git(&["cat-file", "commit", "HEAD"]);
    let signature =
        "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n";
    let (head, _) = commit.split_once("\n\n").unwrap();
    repo.write("../signed", &format!("{head}\n{signature}"));
    let signed = repo.git(&["hash-object", "-t", "commit", "-w", "../signed"]);
    repo.git(&["update-ref", "HEAD", &signed]);

    let hooks = repo.path().join("hooks");
    fs::create_dir(&hooks).unwrap();
    for hook in [
        "post-index-change",
        "fsmonitor-watchman",
        "post-checkout",
        "reference-transaction",
    ] {
        for dir in [&hooks, &repo.path().join(".git/hooks")] {
            fs::create_dir_all(dir).unwrap();
            fs::copy(repo.trap(hook), dir.join(hook)).unwrap();
        }
    }
    for (key, name) in [
        ("core.fsmonitor", "fsmonitor"),
        ("core.pager", "pager"),
        ("pager.status", "pager-status"),
        ("pager.log", "pager-log"),
        ("core.editor", "editor"),
        ("core.askPass", "askpass"),
        ("core.sshCommand", "ssh"),
        ("credential.helper", "credential"),
        ("diff.external", "diff-external"),
        ("diff.evil.textconv", "textconv"),
        ("diff.evil.command", "diff-command"),
        ("filter.evil.clean", "clean"),
        ("filter.evil.smudge", "smudge"),
        ("filter.a.b=c.clean", "clean-odd-name"),
        ("filter.long.process", "process"),
        ("gpg.program", "gpg"),
    ] {
        repo.git(&["config", key, &repo.trap(name)]);
    }
    for (key, value) in [
        ("core.hooksPath", hooks.to_str().unwrap()),
        ("filter.evil.required", "true"),
        ("log.showSignature", "true"),
        ("status.submoduleSummary", "true"),
        ("alias.status", "!touch ../sprung/alias"),
    ] {
        repo.git(&["config", key, value]);
    }
    // Setting the traps may have sprung some.
    for mark in repo.sprung() {
        fs::remove_file(repo.dir.path().join("sprung").join(mark)).unwrap();
    }
    // Same size, new time: git must compare the content, for which it would run the filters.
    for name in ["watched.txt", "a.md", "z.log"] {
        let file = fs::File::options()
            .append(true)
            .open(repo.path().join(name))
            .unwrap();
        file.set_modified(
            std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_600_000_000),
        )
        .unwrap();
    }
}

#[test]
fn a_repository_with_booby_traps_fires_none() {
    let repo = Repo::new();
    set_traps(&repo);
    let facts = repo.facts();
    assert_eq!(
        facts.commits.first().map(|commit| commit.subject.as_str()),
        Some("signed")
    );
    assert_eq!(repo.sprung(), [""; 0]);

    // The traps are real: plain git springs them.
    repo.try_git(&["status"]);
    repo.try_git(&["log", "-1"]);
    let sprung = repo.sprung();
    for trap in ["clean", "clean-odd-name", "process", "gpg", "fsmonitor"] {
        assert!(
            sprung.iter().any(|mark| mark == trap),
            "{trap} is no trap; sprung: {sprung:?}"
        );
    }
}

#[test]
fn changes_within_submodules_are_told_and_no_trap_in_them_fires() {
    const INNER: &str = "libs/in ner";
    let (library, repo) = (Repo::new(), Repo::new());
    library.write("a.rs", "1");
    library.commit("one");
    let from = library.path();
    let from = from.to_str().unwrap();
    for (place, name) in [(".", INNER), (INNER, "deep")] {
        let allow = ["-c", "protocol.file.allow=always", "-C", place];
        repo.git(&[&allow[..], &["submodule", "--quiet", "add", from, name]].concat());
        repo.git(&["-C", place, "commit", "--quiet", "--message", "submodule"]);
    }
    repo.commit("both");
    assert!(repo.facts().uncommitted_files().next().is_none());
    repo.write("libs/in ner/a.rs", "2");
    repo.write("libs/in ner/deep/new.rs", "3");
    for (key, trap) in [("core.fsmonitor", "monitor"), ("filter.x.clean", "clean")] {
        repo.git(&["-C", INNER, "config", key, &repo.trap(trap)]);
    }
    repo.write(format!("{INNER}/.gitattributes"), "* filter=x\n");
    // Neither a link nor a path that leads out of the repository is followed.
    std::os::unix::fs::symlink(from, repo.path().join("link")).unwrap();
    library.write("a.rs", "2");
    let more = format!("[submodule \"l\"]\n\tpath = link\n[submodule \"o\"]\n\tpath = {from}\n");
    let listed = fs::read_to_string(repo.path().join(".gitmodules")).unwrap();
    repo.write(".gitmodules", &format!("{listed}{more}"));
    let facts = repo.facts();
    assert_eq!(facts.modified, [".gitmodules", "libs/in ner/a.rs"]);
    assert_eq!(
        facts.created,
        [
            "link",
            "libs/in ner/.gitattributes",
            "libs/in ner/deep/new.rs"
        ]
    );
    assert_eq!(repo.sprung(), [""; 0]);
}

#[test]
fn a_missing_object_is_not_fetched() {
    let repo = Repo::new();
    repo.write("a.txt", "x");
    repo.commit("only");
    let tree = repo.git(&["rev-parse", "HEAD^{tree}"]);
    let ssh = repo.trap("ssh");
    for (key, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.url", "ssh://nowhere.invalid/x"),
        ("remote.origin.promisor", "true"),
        ("protocol.ssh.allow", "always"),
        ("core.sshCommand", ssh.as_str()),
    ] {
        repo.git(&["config", key, value]);
    }
    fs::remove_file(
        repo.path()
            .join(format!(".git/objects/{}/{}", &tree[..2], &tree[2..])),
    )
    .unwrap();
    assert!(matches!(repo.state(), GitState::Unreadable(_)));
    assert_eq!(repo.sprung(), [""; 0]);
    repo.try_git(&["status"]);
    assert_eq!(repo.sprung(), ["ssh"], "plain git springs the trap");
}

#[test]
fn the_index_is_not_written() {
    let repo = Repo::new();
    repo.write("a.txt", "x");
    repo.commit("only");
    let file = fs::File::options()
        .append(true)
        .open(repo.path().join("a.txt"))
        .unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    let before = fs::read(repo.path().join(".git/index")).unwrap();
    repo.facts();
    assert_eq!(fs::read(repo.path().join(".git/index")).unwrap(), before);
}

#[test]
fn what_only_other_people_have_committed_is_not_of_the_run() {
    let steps: [(&[&str], &[&str]); 4] = [
        (
            &["merge", "--quiet", "--no-edit", "theirs"],
            &["both.rs", "mine.rs"],
        ),
        (&["rebase", "--quiet", "theirs"], &["both.rs", "mine.rs"]),
        (
            &[
                "pull",
                "--quiet",
                "--no-rebase",
                "--no-edit",
                "../theirs",
                "main",
            ],
            &["both.rs", "mine.rs"],
        ),
        (&["checkout", "--quiet", "theirs"], &[]),
    ];
    for (step, modified) in steps {
        let repo = Repo::new();
        for name in ["both.rs", "mine.rs", "theirs.rs"] {
            repo.write(name, "one\ntwo\nthree\nfour\nfive\n");
        }
        repo.commit("start");
        repo.git(&["clone", "--quiet", ".", "../theirs"]);
        let start = repo.facts();
        repo.write("../theirs/theirs.rs", "changed");
        repo.write("../theirs/made by them.rs", "made");
        repo.write("../theirs/both.rs", "ONE\ntwo\nthree\nfour\nfive\n");
        let eve = [
            "-C",
            "../theirs",
            "-c",
            "user.name=Eve",
            "-c",
            "user.email=eve@example.org",
        ];
        repo.git(&[&eve[..], &["add", "--all"]].concat());
        repo.git(&[&eve[..], &["commit", "--quiet", "--message", "hers"]].concat());
        repo.write("mine.rs", "changed");
        repo.write("both.rs", "one\ntwo\nthree\nfour\nFIVE\n");
        repo.commit("of the run");
        repo.git(&["fetch", "--quiet", "../theirs", "main:theirs"]);
        repo.git(step);
        let changed = changed_since(&repo.path(), &start);
        let modified: Vec<String> = modified.iter().map(|one| (*one).to_owned()).collect();
        assert_eq!(changed, [modified, vec![], vec![], vec![]], "{step:?}");
    }
}

#[test]
fn what_was_committed_before_the_run_is_not_of_the_run() {
    let repo = Repo::new();
    repo.write("both.rs", "one\n");
    repo.commit("start");
    repo.git(&["checkout", "--quiet", "-b", "older"]);
    repo.write("both.rs", "two\n");
    repo.write("older.rs", "made before\n");
    repo.commit("before the run");
    repo.git(&["checkout", "--quiet", "main"]);
    let start = repo.facts();
    repo.git(&["checkout", "--quiet", "older"]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let changed = |since| {
        let run_start = git::RunStart {
            since: chrono::DateTime::from_timestamp(since, 0),
            ..(&start).into()
        };
        let now = runtime.block_on(git::facts(&repo.path(), 1, Some(&run_start)));
        let GitState::Facts(facts) = now else {
            panic!("no facts: {now:?}")
        };
        let mut state = PreservedState {
            run_start: Some(run_start),
            ..PreservedState::default()
        };
        state.feed_git(&facts);
        [state.modified_files, state.created_files]
            .map(|files| files.into_iter().map(|file| file.text).collect::<Vec<_>>())
    };
    // All commits here are of the same second.
    assert_eq!(
        changed(1_700_000_001),
        [Vec::<&str>::new(), Vec::new()],
        "the run began after them"
    );
    assert_eq!(
        changed(1_700_000_000),
        [vec!["both.rs"], vec!["older.rs"]],
        "they are of the run"
    );
}
