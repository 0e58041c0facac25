//! The packages: what the scripts, the package's metadata and the workflows name is there, and what the binary says of itself for them.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use pitstop_base::{
    exit,
    keymap::{Action, Keymap},
};

use crate::{
    bridge::walk,
    kit::{home::Home, output::text, supervisor::PITSTOP},
};

/// The targets whose archives the installer and the formula know.
const TARGETS: [&str; 4] = [
    "aarch64-apple-darwin",
    "aarch64-unknown-linux-musl",
    "x86_64-apple-darwin",
    "x86_64-unknown-linux-musl",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).expect(name)
}

fn toml_of(name: &str) -> toml::Table {
    read(name).parse().expect(name)
}

fn pitstop(args: &[&str]) -> String {
    text(&Command::new(PITSTOP).args(args).output().unwrap())
}

#[test]
fn the_long_version_names_the_commit_and_the_clients_and_the_short_one_does_not() {
    let version = format!("pitstop {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(pitstop(&["-V"]), version);
    let long = pitstop(&["--version"]);
    assert!(long.starts_with(&version), "{long}");
    let clients = toml_of("assets/clients.toml");
    for wanted in ["current", "floor"].map(|name| clients[name].as_str().unwrap()) {
        assert!(long.contains(&format!(" {wanted}")), "{long}");
    }
    // As the build script found it: the tests are built with the same.
    let commit = match env!("PITSTOP_COMMIT") {
        "" => "unknown (",
        commit => commit,
    };
    assert!(long.contains(&format!("\ncommit: {commit}")), "{long}");
}

#[test]
fn the_manual_has_every_key_exit_code_file_and_the_readme_s_examples() {
    let page = pitstop(&["man"]).replace('\\', "");
    for heading in [
        "KEYS",
        "EXIT STATUS",
        "FILES",
        "ENVIRONMENT",
        "EXAMPLES",
        "VERSION",
    ] {
        assert!(
            page.contains(&format!("\n.SH {heading}"))
                || page.contains(&format!("\n.SH \"{heading}\"")),
            "{heading}: {page}"
        );
    }
    let keymap = Keymap::default();
    for action in Action::all() {
        let hint = keymap.hint(action).expect("each action has a key");
        assert!(
            page.contains(&hint) && page.contains(action.description()),
            "{}",
            action.name()
        );
    }
    for (_, meaning) in exit::MEANINGS {
        assert!(page.contains(meaning), "{meaning}");
    }
    for wanted in [
        "~/.config/pitstop/config.toml",
        "~/.local/state/pitstop/pitstop.db",
        ".pitstop/scratchpad.md",
        "fBpitstop --newfR",
        "fBpitstop run --task",
    ] {
        assert!(page.contains(wanted), "{wanted}: {page}");
    }
}

#[test]
fn completions_offer_what_a_person_may_call_with_its_values() {
    for shell in ["bash", "zsh", "fish"] {
        let script = pitstop(&["completions", shell]);
        assert!(!script.contains("gauge"), "{shell}");
        assert!(script.contains("clear-state"), "{shell}");
    }
    let fish = pitstop(&["completions", "fish"]);
    let values = fish.lines().filter(|line| {
        line.contains("_using_subcommand ctl; and not __fish_seen_subcommand_from reboot approve")
    });
    assert_eq!(values.count(), 11, "{fish}");
}

#[test]
fn each_command_has_a_page_of_the_manual_with_its_name_and_the_version() {
    let home = Home::new().unwrap();
    let directory = home.path("man");
    pitstop(&["man", directory.to_str().unwrap()]);
    let pages = walk(&directory);
    assert!(pages.len() > 25, "{pages:?}");
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let name = page.file_stem().unwrap().to_str().unwrap();
        let title = text.lines().find(|line| line.starts_with(".TH "));
        let words = shell_words::split(title.unwrap_or_default()).unwrap();
        let source = concat!("pitstop ", env!("CARGO_PKG_VERSION"));
        let wanted = [".TH", name, "1", &words[3], source, "Manual of pitstop"];
        assert_eq!(words, wanted);
        assert!(!text.contains(".br\n\n.br"), "{name}");
    }
}

#[test]
fn the_package_s_metadata_names_files_that_are_there_or_made_by_the_script() {
    let manifest = toml_of("Cargo.toml");
    let deb = &manifest["package"]["metadata"]["deb"];
    let home = Home::new().unwrap();
    let made = home.project().join("package");
    let done = Command::new(root().join("packaging/extras"))
        .arg(PITSTOP)
        .arg(&made)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    let assets = deb["assets"].as_array().unwrap();
    assert!(assets.len() > 5, "{assets:?}");
    for asset in assets {
        let name = asset[0].as_str().unwrap();
        let path = match name.strip_prefix("target/package/") {
            Some(below) => made.join(below.replace('*', "pitstop")),
            None if name == "target/release/pitstop" => continue,
            None => root().join(name),
        };
        assert!(
            fs::metadata(&path).is_ok_and(|meta| meta.len() > 0),
            "{name} is not there, or empty"
        );
    }
}

#[test]
fn scripts_that_workflows_and_documents_name_are_there_and_can_be_run() {
    let directory = root().join(".github/workflows");
    let mut texts: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    texts.extend(
        [
            "CONTRIBUTING.md",
            "packaging/build-deb",
            "packaging/build-archive",
        ]
        .map(|name| root().join(name)),
    );
    let mut named = 0;
    for file in texts {
        let text = fs::read_to_string(&file).unwrap();
        for rest in text.split("packaging/").skip(1) {
            let name: String = rest
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || "-._".contains(*c))
                .collect();
            let script = root().join("packaging").join(name.trim_end_matches('.'));
            let mode = fs::metadata(&script).map(|meta| meta.permissions().mode());
            assert!(
                mode.is_ok_and(|mode| mode & 0o111 != 0),
                "{} names {}",
                file.display(),
                script.display()
            );
            named += 1;
        }
    }
    assert!(named > 10, "{named}");
}

/// A directory with an archive for each target: one that runs this binary for the machine's own, a text for the others.
fn release(directory: &Path, version: &str) {
    let own = if cfg!(target_os = "macos") {
        "apple-darwin"
    } else {
        "unknown-linux-musl"
    };
    for target in TARGETS {
        let name = format!("pitstop-{version}-{target}");
        let inside = directory.join(&name);
        if target == format!("{}-{own}", std::env::consts::ARCH) {
            let made = Command::new(root().join("packaging/extras"))
                .arg(PITSTOP)
                .arg(&inside)
                .status();
            assert!(made.unwrap().success());
            // A debug build takes long to pack: it is called instead.
            let binary = inside.join("pitstop");
            fs::write(&binary, format!("#!/bin/sh\nexec '{PITSTOP}' \"$@\"\n")).unwrap();
            fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
        } else {
            fs::create_dir(&inside).unwrap();
            fs::write(inside.join("pitstop"), "not for this machine").unwrap();
        }
        let packed = Command::new("tar")
            .arg("-C")
            .arg(directory)
            .arg("-czf")
            .arg(directory.join(format!("{name}.tar.gz")))
            .arg(&name)
            .status();
        assert!(packed.unwrap().success());
        fs::remove_dir_all(inside).unwrap();
    }
    fs::write(
        directory.join(format!("pitstop_{version}-1_amd64.deb")),
        "a package",
    )
    .unwrap();
    let filled = Command::new(root().join("packaging/fill"))
        .args(["owner/name", version])
        .arg(directory)
        .output()
        .unwrap();
    assert!(filled.status.success(), "{filled:?}");
}

#[test]
fn the_installer_installs_what_has_the_right_checksum_and_removes_it_again() {
    let version = env!("CARGO_PKG_VERSION");
    let temporary = tempfile::tempdir().unwrap();
    let published = temporary.path().join(format!("v{version}"));
    let home = temporary.path().join("home");
    fs::create_dir(&published).unwrap();
    fs::create_dir(&home).unwrap();
    release(&published, version);
    let formula = fs::read_to_string(published.join("pitstop.rb")).unwrap();
    let sums = fs::read_to_string(published.join("SHA256SUMS")).unwrap();
    for target in TARGETS {
        let file = format!("pitstop-{version}-{target}.tar.gz");
        let sum = sums
            .lines()
            .find_map(|line| line.strip_suffix(&format!("  {file}")))
            .expect(target);
        let url = format!(
            "https://github.com/owner/name/releases/download/v{version}/{file}\"\n      sha256 \"{sum}\""
        );
        assert!(formula.contains(&url), "{target}: {formula}");
    }
    let install = |args: &[&str]| -> Output {
        Command::new("sh")
            .arg(published.join("install.sh"))
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", &home)
            .env(
                "PITSTOP_BASE_URL",
                format!("file://{}", temporary.path().display()),
            )
            .output()
            .unwrap()
    };
    let done = install(&[]);
    assert!(done.status.success(), "{done:?}");
    let installed = home.join(".local/bin/pitstop");
    let said = Command::new(&installed).arg("-V").output().unwrap();
    assert_eq!(text(&said), format!("pitstop {version}\n"));
    for wanted in [
        "man/man1/pitstop.1",
        "man/man1/pitstop-run.1",
        "bash-completion/completions/pitstop",
        "zsh/site-functions/_pitstop",
        "fish/vendor_completions.d/pitstop.fish",
    ] {
        assert!(home.join(".local/share").join(wanted).is_file(), "{wanted}");
    }
    let done = install(&["--uninstall"]);
    assert!(done.status.success(), "{done:?}");
    assert_eq!(walk(&home), Vec::<PathBuf>::new());

    let wrong: Vec<String> = sums
        .lines()
        .map(|line| format!("{:064}{}\n", 0, &line[64..]))
        .collect();
    let wrong = wrong.concat();
    fs::write(published.join("SHA256SUMS"), wrong).unwrap();
    let refused = install(&[]);
    assert!(!refused.status.success());
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("checksum"),
        "{refused:?}"
    );
    assert_eq!(walk(&home), Vec::<PathBuf>::new());
}
