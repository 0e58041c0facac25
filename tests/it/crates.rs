//! The crates that we link: licences that suit ours, and no newer Rust than we promise.

use std::process::Command;

use serde_json::Value;

/// The licences that a linked crate may have, one of them at least.
const LICENCES: [&str; 9] = [
    "MIT",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "MPL-2.0",
    "CC0-1.0",
    "Unicode-3.0",
];

fn cargo(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(args)
        .args(["--offline", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {args:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Whether the terms can be met. An older way to write `OR` is a slash.
fn is_permitted(terms: &str) -> bool {
    let either = |terms: &str| {
        let mut names = terms.trim_matches(['(', ')']).split(" OR ");
        names.any(|name| LICENCES.contains(&name.trim()))
    };
    terms.replace('/', " OR ").split(" AND ").all(either)
}

#[test]
fn every_linked_crate_has_a_licence_that_suits_ours() {
    let tree = cargo(&[
        "tree",
        "--edges=normal",
        "--prefix=none",
        "--format={l}\t{p}",
    ]);
    assert!(tree.lines().count() > 100, "expected our crates:\n{tree}");
    let terms = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
    let wrong: Vec<_> = tree
        .lines()
        .filter(|line| !is_permitted(&terms(line)))
        .collect();
    assert!(wrong.is_empty(), "other licences:\n{}", wrong.join("\n"));

    assert!(is_permitted("(GPL-3.0 OR MIT) AND Unicode-3.0"));
    assert!(is_permitted("GPL-3.0/MIT"));
    assert!(!is_permitted("MIT AND GPL-3.0"));
}

#[test]
fn no_crate_needs_a_newer_rust_than_ours() {
    let metadata = cargo(&[
        "metadata",
        "--format-version=1",
        "--filter-platform=host-tuple",
    ]);
    let metadata: Value = serde_json::from_str(&metadata).expect("JSON");
    let version = |package: &Value| {
        let text = package["rust_version"].as_str().unwrap_or_default();
        let parts = text.split('.').filter_map(|part| part.parse().ok());
        let mut version: Vec<u32> = parts.collect();
        version.resize(3, 0);
        version
    };
    let packages = metadata["packages"].as_array().expect("packages");
    let ours = packages.iter().find(|package| package["name"] == "pitstop");
    let ours = version(ours.expect("our own package"));
    let newer = packages.iter().filter(|package| version(package) > ours);
    let newer: Vec<_> = newer
        .map(|package| (&package["name"], &package["rust_version"]))
        .collect();
    assert!(newer.is_empty(), "newer than {ours:?}: {newer:?}");
}
