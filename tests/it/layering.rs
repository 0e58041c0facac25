//! The walls between the rooms, as data: who may use whom, who may touch the world, which file is a crate's door.
//!
//! The lists are read against the imports and paths in `src/`; unit tests (`#[cfg(test)]`, `tests.rs`) are left
//! out, because they may reach for anything.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Each room with the rooms it may use. `clock`, `clean` and `redact` are rooms that every room may use.
const ROOMS: [(&str, &[&str]); 27] = [
    ("clock", &[]),
    ("clean", &[]),
    ("redact", &[]),
    ("private_file", &[]),
    ("format", &[]),
    ("process", &[]),
    ("transcript", &[]),
    ("bridge", &["transcript"]),
    ("keymap", &[]),
    ("scratchpad", &[]),
    ("terminal", &[]),
    ("pane", &["terminal"]),
    ("agent", &["transcript"]),
    ("breakpoint", &["transcript"]),
    ("guard", &["transcript", "breakpoint"]),
    ("handoff", &["transcript", "scratchpad", "breakpoint"]),
    (
        "lineage",
        &["process", "transcript", "scratchpad", "guard", "handoff"],
    ),
    ("store", &["process", "transcript", "scratchpad", "lineage"]),
    ("autopilot", &["transcript", "guard", "lineage"]),
    (
        "config",
        &["keymap", "agent", "guard", "handoff", "autopilot", "pane"],
    ),
    (
        "api",
        &[
            "transcript",
            "bridge",
            "agent",
            "guard",
            "handoff",
            "lineage",
        ],
    ),
    (
        "app",
        &[
            "transcript",
            "bridge",
            "keymap",
            "scratchpad",
            "pane",
            "agent",
            "breakpoint",
            "guard",
            "handoff",
            "lineage",
            "autopilot",
            "config",
            "api",
        ],
    ),
    (
        "ui",
        &[
            "transcript",
            "keymap",
            "scratchpad",
            "pane",
            "agent",
            "breakpoint",
            "guard",
            "handoff",
            "lineage",
            "autopilot",
            "config",
            "api",
            "app",
        ],
    ),
    ("logging", &["config"]),
    (
        "runtime",
        &[
            "process",
            "transcript",
            "bridge",
            "keymap",
            "scratchpad",
            "pane",
            "agent",
            "breakpoint",
            "guard",
            "handoff",
            "lineage",
            "store",
            "autopilot",
            "config",
            "api",
            "app",
            "ui",
        ],
    ),
    (
        "supervisor",
        &[
            "process",
            "transcript",
            "keymap",
            "scratchpad",
            "pane",
            "agent",
            "breakpoint",
            "guard",
            "handoff",
            "lineage",
            "store",
            "autopilot",
            "config",
            "api",
            "app",
            "ui",
            "runtime",
        ],
    ),
    (
        "cli",
        &[
            "process",
            "transcript",
            "bridge",
            "keymap",
            "scratchpad",
            "pane",
            "agent",
            "breakpoint",
            "guard",
            "handoff",
            "lineage",
            "store",
            "autopilot",
            "config",
            "api",
            "app",
            "ui",
            "logging",
            "runtime",
            "supervisor",
        ],
    ),
];

/// Words that every room may use.
const COMMON: [&str; 5] = ["clock", "clean", "redact", "private_file", "format"];

/// Files and directories that may touch the world.
const WORLD: [&str; 22] = [
    "private_file.rs",
    "process.rs",
    "main.rs",
    "logging.rs",
    "cli/",
    "config/load.rs",
    "config/load/",
    "transcript/tail.rs",
    "agent/demo/",
    "breakpoint/git.rs",
    "pane/pty.rs",
    "pane/recording.rs",
    "api/server",
    "api/client.rs",
    "store/agent_registry.rs",
    "store/connection.rs",
    "store/db.rs",
    "store/lock.rs",
    "store/private_dir.rs",
    "store/writes.rs",
    "runtime/",
    "supervisor/",
];

/// What touching the world looks like.
const WORLDLY: [&str; 14] = [
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "std::env",
    "std::os::unix::net",
    "tokio::",
    "rustix::",
    "Instant::now",
    "SystemTime",
    "Utc::now",
    "Local::now",
    "Uuid::new_v4",
    "notify::",
];

/// Each crate with the files that may use it.
const DOORS: [(&str, &[&str]); 16] = [
    (
        "alacritty_terminal",
        &["terminal/screen.rs", "terminal/screen/"],
    ),
    (
        "vte",
        &[
            "terminal/screen.rs",
            "terminal/screen/",
            "terminal/side_channel.rs",
        ],
    ),
    ("filedescriptor", &["pane/pty.rs"]),
    ("portable_pty", &["pane/pty.rs"]),
    ("sqlx", &["store/db.rs"]),
    (
        "axum",
        &[
            "api/server.rs",
            "api/server/bridge.rs",
            "api/server/routes.rs",
            "api/server/stream.rs",
        ],
    ),
    ("hyper", &["api/server.rs", "api/server/"]),
    (
        "ratatui_textarea",
        &["app/model.rs", "app/input.rs", "ui/scratchpad.rs"],
    ),
    (
        "ratatui",
        &[
            "ui/",
            "app/layout.rs",
            "runtime/canvas.rs",
            "runtime/terminal.rs",
            "runtime/paint.rs",
        ],
    ),
    ("notify", &["runtime/watcher.rs"]),
    ("pulldown_cmark", &["ui/markdown.rs"]),
    ("jiff", &["autopilot/patience.rs"]),
    ("regex", &["terminal/screen/copy/search.rs", "redact.rs"]),
    ("minijinja", &["handoff/generate.rs"]),
    ("clap_complete", &["cli/completions.rs"]),
    ("clap_mangen", &["cli/man.rs"]),
];

fn source_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every source file by its path below `src/`, without comments and unit tests.
fn sources() -> BTreeMap<String, String> {
    fn walk(directory: &Path, root: &Path, found: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, root, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let name = path
                    .strip_prefix(root)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                if !name.ends_with("tests.rs") {
                    found.insert(name, code(&fs::read_to_string(&path).unwrap()));
                }
            }
        }
    }
    let root = source_root();
    let mut found = BTreeMap::new();
    walk(&root, &root, &mut found);
    assert!(
        found.len() > 50,
        "expected the whole crate, found {} files",
        found.len()
    );
    found
}

/// The code of a file up to its unit tests, without line comments.
fn code(text: &str) -> String {
    let end = text
        .find("\n#[cfg(test)]\nmod ")
        .or_else(|| text.find("\n#[cfg(test)]\npub(crate) mod "));
    text[..end.unwrap_or(text.len())]
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn room_of(file: &str) -> &str {
    file.split(['/', '.']).next().unwrap()
}

/// The rooms that a file names behind `crate::`, also in groups.
fn used_rooms(code: &str) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        // `pub(crate)` and `$crate::` name no room of ours by themselves.
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut word = String::new();
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    _ => {}
                }
                if depth == 0 && (c.is_alphanumeric() || c == '_') {
                    word.push(c);
                } else if !word.is_empty() {
                    if depth == 0 || c == '{' || c == ':' {
                        rooms.insert(std::mem::take(&mut word));
                    }
                    word.clear();
                }
                // Behind `room::` come names of that room, up to the next comma at this depth.
                if c == ':' {
                    word.push('\u{0}');
                }
                if c == ',' {
                    word.clear();
                }
            }
            rooms.insert(word);
        } else {
            rooms.insert(
                rest.chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect(),
            );
        }
    }
    let known: BTreeSet<&str> = ROOMS.iter().map(|(room, _)| *room).collect();
    rooms.retain(|room| known.contains(room.as_str()));
    rooms
}

fn is_in(file: &str, places: &[&str]) -> bool {
    places.iter().any(|place| {
        if !place.ends_with('/') && place.contains('.') {
            file == *place
        } else {
            file.starts_with(place)
        }
    })
}

/// Whether the code uses a crate by its path.
fn uses_crate(code: &str, name: &str) -> bool {
    code.match_indices(&format!("{name}::")).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
    })
}

#[test]
fn rooms_use_only_rooms_before_them() {
    let mut wrong = Vec::new();
    for (file, code) in sources() {
        let room = room_of(&file);
        let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            continue;
        };
        for used in used_rooms(&code) {
            if used != room && !allowed.contains(&used.as_str()) && !COMMON.contains(&used.as_str())
            {
                wrong.push(format!("{file} uses {used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "walls broken:\n{}", wrong.join("\n"));
}

#[test]
fn the_list_of_rooms_has_no_circles() {
    for (at, (room, allowed)) in ROOMS.iter().enumerate() {
        for used in *allowed {
            let place = ROOMS.iter().position(|(name, _)| name == used);
            assert!(
                place.is_some_and(|place| place < at),
                "{room} may use {used}, which is not before it"
            );
        }
    }
}

#[test]
fn only_listed_files_touch_the_world() {
    let mut wrong = Vec::new();
    for (file, code) in sources() {
        if is_in(&file, &WORLD) {
            continue;
        }
        // Whether this thread is unwinding is nothing of the world's.
        let code = code.replace("std::thread::panicking", "");
        wrong.extend(
            WORLDLY
                .iter()
                .filter(|sign| code.contains(**sign))
                .map(|sign| format!("{file}: {sign}")),
        );
    }
    assert!(
        wrong.is_empty(),
        "pure files touch the world:\n{}",
        wrong.join("\n")
    );
}

/// The model belongs to the core, so that the shell cannot assign to it: that does not compile. What would get round it is
/// a model of the shell's own, or the function that tests call with theirs.
#[test]
fn the_shell_only_looks_at_the_model() {
    let mut wrong = Vec::new();
    for (file, code) in sources() {
        let found = ["&mut Model", "mut model: Model", "app::update"]
            .into_iter()
            .filter(|sign| file.starts_with("runtime/") && code.contains(sign));
        wrong.extend(found.map(|sign| format!("{file}: {sign}")));
    }
    assert!(
        wrong.is_empty(),
        "changed behind the core's back:\n{}",
        wrong.join("\n")
    );
}

/// What waits until the disk has taken something.
const SYNCING: [&str; 6] = [
    "write_private",
    "write_masked",
    "write_meta",
    "write_settings",
    "sync_all",
    "VersionFile::",
];

/// The files of the shell that wait so, each on a thread or task of its own.
const OFF_THE_LOOP: [&str; 6] = [
    "runtime/agent.rs",
    "runtime/files.rs",
    "runtime/store_writer.rs",
    "runtime/prepare.rs",
    "runtime/recovery.rs",
    "runtime/trim.rs",
];

#[test]
fn the_loop_waits_for_no_disk() {
    let mut wrong = Vec::new();
    for (file, code) in sources() {
        if !file.starts_with("runtime/") || is_in(&file, &OFF_THE_LOOP) {
            continue;
        }
        let found = SYNCING.iter().filter(|sign| code.contains(**sign));
        wrong.extend(found.map(|sign| format!("{file}: {sign}")));
    }
    assert!(
        wrong.is_empty(),
        "keys wait for a disk:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn every_crate_has_its_one_door() {
    let mut wrong = Vec::new();
    for (file, code) in sources() {
        for (name, doors) in DOORS {
            if uses_crate(&code, name) && !is_in(&file, doors) {
                wrong.push(format!("{file} uses {name}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "used outside their doors:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn the_map_names_every_room() {
    let map = fs::read_to_string(source_root().join("lib.rs")).unwrap();
    let rooms: BTreeSet<String> = fs::read_dir(source_root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| name.trim_end_matches(".rs").to_owned())
        .filter(|name| !matches!(name.as_str(), "lib" | "main"))
        .collect();
    for room in &rooms {
        assert!(
            map.contains(&format!("//! - [`{room}`]: ")),
            "lib.rs does not name {room}"
        );
        assert!(
            map.contains(&format!("pub mod {room};")),
            "lib.rs does not have {room}"
        );
        assert!(
            ROOMS.iter().any(|(name, _)| name == room),
            "{room} has no walls"
        );
    }
    assert_eq!(rooms.len(), ROOMS.len());
}

/// The documents that a comment cites, by a path from the root or by a name in capitals.
fn cited(line: &str) -> impl Iterator<Item = &str> {
    let is_outside = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-'));
    let comment = line.trim_start().strip_prefix("//").unwrap_or_default();
    let words = comment
        .split(is_outside)
        .map(|word| word.trim_end_matches('.'));
    words.filter(|word| {
        let first = word.split('.').next().unwrap_or_default();
        let capitals =
            first.len() > 3 && first.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
        let document =
            word.strip_suffix(".md").is_some() && (capitals || word.starts_with("docs/"));
        document || ["DESIGN", "HOUSE", "RELIABILITY"].contains(word)
    })
}

#[test]
fn comments_cite_only_documents_of_the_repository() {
    fn walk(directory: &Path, wrong: &mut Vec<String>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, wrong);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let root = Path::new(env!("CARGO_MANIFEST_DIR"));
                let missing = text
                    .lines()
                    .flat_map(cited)
                    .filter(|one| !root.join(one).exists());
                wrong.extend(missing.map(|one| format!("{}: {one}", path.display())));
            }
        }
    }
    let mut wrong = Vec::new();
    for directory in ["src", "tests", "benches", "examples", "fuzz/fuzz_targets"] {
        walk(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join(directory),
            &mut wrong,
        );
    }
    assert!(
        wrong.is_empty(),
        "not in the repository:\n{}",
        wrong.join("\n")
    );
    assert!(cited("/// As in DESIGN 6, and in docs/none.md.").eq(["DESIGN", "docs/none.md"]));
}

#[test]
fn imports_in_groups_are_seen() {
    let code = "use crate::{\n    app::{Model, layout},\n    clean, pane::screen::Screen,\n};\nlet x = crate::guard::assess();";
    let rooms: Vec<String> = used_rooms(code).into_iter().collect();
    assert_eq!(rooms, ["app", "clean", "guard", "pane"]);
    assert!(uses_crate("use vte::ansi;", "vte"));
    assert!(!uses_crate(
        "use alacritty_terminal::vte::ansi; my_vte::x",
        "vte"
    ));
}

/// The variables by which tests break or steer the program.
const TEST_SWITCHES: [&str; 3] = ["PITSTOP_DEMO_", "PITSTOP_CRASH_AT", "PITSTOP_PANIC_AT"];

/// Those of these names that a user's demo needs.
const OF_THE_DEMO: [&str; 3] = [
    "PITSTOP_DEMO_DIR",
    "PITSTOP_DEMO_PROMISE",
    "PITSTOP_DEMO_AUTO",
];

/// The switches for tests that a text holds.
fn test_switches(text: &str) -> Vec<String> {
    let named = |at: usize| -> String {
        let rest = text[at..].chars();
        rest.take_while(|c| c.is_ascii_uppercase() || *c == '_')
            .collect()
    };
    let all = TEST_SWITCHES
        .iter()
        .flat_map(|name| text.match_indices(name));
    all.map(|(at, _)| named(at))
        .filter(|name| !OF_THE_DEMO.iter().any(|own| name.starts_with(own)))
        .collect()
}

#[test]
fn switches_for_tests_stand_only_where_a_release_build_leaves_them_out() {
    const GUARD: &str = "#[cfg(debug_assertions)]";
    let sources = sources();
    let door = &sources["agent/demo/mod.rs"];
    assert!(door.contains(&format!("{GUARD}\nmod switches;")));
    for (file, code) in &sources {
        if file == "agent/demo/switches.rs" {
            continue;
        }
        let mut rest = String::new();
        let mut lines = code.lines();
        while let Some(line) = lines.next() {
            if line.trim() != GUARD {
                rest.push_str(line);
                rest.push('\n');
                continue;
            }
            // What stands behind the guard is a statement, or a block that ends with a brace at its own margin.
            let end = line.replace(GUARD, "}");
            let first = lines.next().unwrap_or_default();
            if !first.ends_with(';') {
                lines.by_ref().find(|line| *line == end);
            }
        }
        assert_eq!(test_switches(&rest), [""; 0], "{file}");
    }
}
