//! Finds out which commit is built, for `pitstop --version`.
//!
//! ```text
//!   PITSTOP_COMMIT        the commit, for sources without a repository; git is not asked then
//!   PITSTOP_COMMIT_DATE   its date, as 2026-11-27
//! ```
//!
//! Without them git is asked, in a release build. A debug build does not ask: each commit would compile the package and its tests once
//! more. What is not known is left empty, and is shown as unknown.

use std::{env, process::Command};

/// The sources: with a change in one of them, uncommitted ones are looked for again.
const SOURCES: [&str; 6] = [
    "src",
    "crates",
    "assets",
    "config.toml",
    "Cargo.toml",
    "Cargo.lock",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for name in ["PITSTOP_COMMIT", "PITSTOP_COMMIT_DATE"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let given = |name| env::var(name).unwrap_or_default();
    let (mut commit, mut date) = (given("PITSTOP_COMMIT"), given("PITSTOP_COMMIT_DATE"));
    if commit.is_empty() && given("PROFILE") == "release" {
        (commit, date) = committed().unwrap_or_default();
    }
    println!("cargo::rustc-env=PITSTOP_COMMIT={commit}");
    println!("cargo::rustc-env=PITSTOP_COMMIT_DATE={date}");
}

/// Asks git for the commit that is checked out here, and its date; nothing if these sources are not the top of a repository, as where a
/// package is made in a repository of its own.
fn committed() -> Option<(String, String)> {
    if !git(&["rev-parse", "--show-prefix"])?.is_empty() {
        return None;
    }
    let mut commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let date = git(&["show", "--no-patch", "--format=%cs", "HEAD"])?;
    // Where HEAD points to, and each commit made on it. A file that is not there would have this run at each call of cargo.
    for name in ["HEAD", "logs/HEAD"] {
        let file = git(&["rev-parse", "--git-path", name])?;
        if std::path::Path::new(&file).exists() {
            println!("cargo::rerun-if-changed={file}");
        }
    }
    for name in SOURCES {
        println!("cargo::rerun-if-changed={name}");
    }
    let changed = git(&[&["status", "--porcelain", "--"], &SOURCES[..]].concat())?;
    if !changed.is_empty() {
        commit += " with uncommitted changes";
    }
    Some((commit, date))
}

/// Returns what git prints; nothing if it is missing or fails.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
