//! The documents for users name what is there: links lead somewhere, commands and flags exist, no key is left out.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use pitstop_base::keymap::Action;

const PITSTOP: &str = env!("CARGO_BIN_EXE_pitstop");

/// Every document at the top and in `docs/`, with its text.
fn documents() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for directory in [root.to_owned(), root.join("docs")] {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|kind| kind == "md") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

fn help(command: &[&str]) -> String {
    let output = Command::new(PITSTOP)
        .args(command)
        .arg("--help")
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The names of the sub-commands that `pitstop --help` lists.
fn commands() -> BTreeSet<String> {
    let help = help(&[]);
    let list = help
        .split("Commands:\n")
        .nth(1)
        .expect("a list of commands");
    list.lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn links_lead_to_files_of_the_repository() {
    let mut broken = Vec::new();
    for (path, text) in documents() {
        for link in text.split("](").skip(1) {
            let target = link.split([')', '#']).next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.contains(' ') {
                continue;
            }
            if !path.with_file_name(target).exists() {
                broken.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_command_is_described_and_every_one_described_exists() {
    let commands = commands();
    assert!(commands.contains("demo"), "{commands:?}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/commands.md")).unwrap();
    for command in commands.iter().filter(|command| *command != "help") {
        assert!(
            page.contains(&format!("`pitstop {command}")),
            "docs/commands.md says nothing of `pitstop {command}`"
        );
    }
}

/// The lines of the shell blocks that call `pitstop`, without comments and what goes to the agent.
fn calls(text: &str) -> Vec<Vec<String>> {
    let blocks = text.split("```sh\n").skip(1);
    blocks
        .filter_map(|block| block.split("```").next())
        .flat_map(str::lines)
        .filter(|line| line.starts_with("pitstop"))
        .filter_map(|line| line.split(" # ").next())
        .filter_map(|line| line.split(" -- ").next())
        .map(|line| line.split_whitespace().skip(1).map(str::to_owned).collect())
        .collect()
}

#[test]
fn commands_in_the_documents_have_flags_that_exist() {
    let commands = commands();
    let mut checked = 0;
    for (path, text) in documents() {
        for call in calls(&text) {
            let first = call.first().filter(|word| !word.starts_with('-'));
            if let Some(command) = first {
                let known = commands.contains(command) || ["ss", "rs"].contains(&&**command);
                assert!(known, "{}: no command {command}", path.display());
            }
            let help = help(&first.map(String::as_str).into_iter().collect::<Vec<_>>());
            for flag in call.iter().filter(|word| word.starts_with("--")) {
                assert!(
                    help.contains(flag.as_str()),
                    "{}: no flag {flag} in {call:?}",
                    path.display()
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 10, "{checked}");
}

#[test]
fn every_table_and_every_key_that_can_be_pressed_is_described() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = fs::read_to_string(root.join("config.toml")).unwrap();
    let keys: toml::Table = config.parse().unwrap();
    let page = fs::read_to_string(root.join("docs/keys.md")).unwrap();
    let missing: Vec<&str> = Action::all()
        .map(Action::name)
        .filter(|name| !page.contains(&format!("`{name}`")))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/keys.md says nothing of {missing:?}"
    );
    let page = fs::read_to_string(root.join("docs/configuration.md")).unwrap();
    let missing: Vec<&String> = keys
        .keys()
        .filter(|name| !page.contains(&format!("\n| `[{name}]` |")))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/configuration.md says nothing of {missing:?}"
    );
}
