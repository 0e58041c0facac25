//! Names that others choose: files, branches, commits, sessions.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt as _, path::Path, process::Command};

use pitstop_base::clean;
use pitstop_handoff::breakpoint::git::{self, GitState};

use super::{Item, item, outcomes, shown};

#[test]
fn whatever_a_name_is_it_is_shown_on_one_line_and_stays_itself() {
    let reported = outcomes(&items(), |input| {
        let name = clean::name(input);
        let hostile = |c: char| {
            c.is_control()
                || ('\u{202a}'..='\u{202e}').contains(&c)
                || ('\u{2066}'..='\u{2069}').contains(&c)
        };
        assert!(!name.contains(hostile), "{name:?}");
        shown(&name).replace("\\\\", "\\")
    });
    insta::assert_snapshot!("bad_names", reported);
}

#[test]
fn whatever_a_file_is_called_git_s_list_of_changes_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let git = |args: &[&OsStr]| {
        let mut command = Command::new("git");
        command
            .current_dir(dir.path())
            .args(args)
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        for (name, value) in [("NAME", "a"), ("EMAIL", "a@b")] {
            command
                .env(format!("GIT_AUTHOR_{name}"), value)
                .env(format!("GIT_COMMITTER_{name}"), value);
        }
        let done = command.output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init".as_ref(), "-q".as_ref()]);
    let names = items().into_iter().map(|one| one.input);
    let (names, subjects): (Vec<_>, Vec<_>) =
        names.partition(|name| is_for_a_file(name, dir.path()));
    for name in &names {
        fs::write(dir.path().join(OsStr::from_bytes(name)), "").unwrap();
    }
    assert!(names.len() > 40, "{}", names.len());
    // What no file can be called a commit can.
    let mut reported = Vec::new();
    for subject in subjects
        .iter()
        .filter(|one| one.len() < 10_000 && !one.contains(&0))
    {
        if subject.trim_ascii().is_empty() || std::str::from_utf8(subject).is_err() {
            continue;
        }
        git(&["commit", "-q", "--allow-empty", "-m"]
            .map(OsStr::new)
            .into_iter()
            .chain([OsStr::from_bytes(subject)])
            .collect::<Vec<_>>());
        reported.push(subject.clone());
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let state = runtime.block_on(git::facts(dir.path(), 50, None));
    let GitState::Facts(facts) = state else {
        panic!("{state:?}");
    };
    let mut found = facts.created;
    let mut wanted: Vec<String> = names.iter().map(|name| clean::name(name)).collect();
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted);
    assert_eq!(facts.commits.len(), reported.len());
    for commit in &facts.commits {
        assert!(
            !commit.subject.contains(char::is_control),
            "{:?}",
            commit.subject
        );
    }
}

/// Whether a file may be called so, here.
fn is_for_a_file(name: &[u8], dir: &Path) -> bool {
    let fits = !name.is_empty() && name.len() <= 255 && ![&b"."[..], b".."].contains(&name);
    let path = dir.join(OsStr::from_bytes(name));
    // git's own directory, in any case, is not listed.
    fits && !name.contains(&0)
        && !name.contains(&b'/')
        && !name.eq_ignore_ascii_case(b".git")
        && !path.exists()
}

pub(super) fn items() -> Vec<Item> {
    let mut all = Vec::new();
    for byte in (0..0x20).chain([0x7f]) {
        all.push(item(
            format!("control {byte:02x}"),
            [b"a", &[byte][..], b"b"].concat(),
        ));
    }
    for code in [
        '\u{80}',
        '\u{85}',
        '\u{9b}',
        '\u{9f}',
        '\u{ad}',
        '\u{34f}',
        '\u{61c}',
        '\u{180e}',
        '\u{200b}',
        '\u{200e}',
        '\u{200f}',
        '\u{2028}',
        '\u{2029}',
        '\u{202a}',
        '\u{202b}',
        '\u{202d}',
        '\u{202e}',
        '\u{2060}',
        '\u{2066}',
        '\u{2069}',
        '\u{3164}',
        '\u{feff}',
        '\u{fff9}',
        '\u{fffd}',
        '\u{ffff}',
        '\u{e0001}',
        '\u{e0067}',
        '\u{10ffff}',
    ] {
        all.push(item(
            format!("U+{:04X}", u32::from(code)),
            format!("a{code}b"),
        ));
    }
    let others: [(&str, &[u8]); 40] = [
        ("empty", b""),
        ("a space", b" "),
        ("spaces around", b"  a  "),
        ("a dot", b"."),
        ("two dots", b".."),
        ("a path out", b"../../etc/passwd"),
        ("a path from the root", b"/etc/passwd"),
        ("a flag", b"--upload-pack=touch /tmp/x"),
        ("a short flag", b"-rf"),
        ("a home", b"~root"),
        ("a variable", b"$HOME"),
        ("a command", b"`id`"),
        ("a command in brackets", b"$(id)"),
        ("a pipe", b"a|b"),
        ("a semicolon", b"a; rm -rf ~"),
        ("quotes", b"a\"b'c"),
        ("a backslash", b"a\\b"),
        ("an escape as text", b"a\\x1b[2Jb"),
        ("a star", b"*"),
        ("a colon", b"C:"),
        ("a device", b"NUL"),
        ("a bad byte", b"a\xffb"),
        ("an overlong slash", b"a\xc0\xafb"),
        ("half a surrogate", b"a\xed\xa0\x80b"),
        ("half a character", b"a\xe6\x97"),
        ("Latin 1", b"caf\xe9"),
        ("a CSI", b"a\x1b[31mb"),
        ("an OSC", b"a\x1b]0;t\x07b"),
        ("a C1 as a byte", b"a\x9bb"),
        ("a signal", b"SIGNAL: done"),
        ("a heading", b"# heading"),
        ("a fence", b"```"),
        ("a link", b"[x](javascript:alert(1))"),
        ("a template", b"{{ 7*7 }}{% for %}"),
        ("a marker", b"pitstop handoff \xc2\xb7 run x"),
        ("an emoji that joins", "👩\u{200d}👩".as_bytes()),
        ("marks that join", "e\u{301}\u{301}\u{301}".as_bytes()),
        ("Hebrew", "\u{5d0}\u{5d1}.txt".as_bytes()),
        ("git's own", b".GIT"),
        ("a reference", b"refs/heads/@{-1}"),
    ];
    for (name, bytes) in others {
        all.push(item(name, bytes));
    }
    all.push(item("255 bytes", "x".repeat(255)));
    all.push(item("256 bytes", "y".repeat(256)));
    all.push(item("1 MB", "z".repeat(1_000_000)));
    all.push(item("1 000 marks", format!("e{}", "\u{301}".repeat(1_000))));
    all
}
