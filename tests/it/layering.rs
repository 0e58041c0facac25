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
    ("terminal", &["keymap"]),
    ("pane", &["terminal"]),
    ("agent", &["transcript", "terminal"]),
    ("breakpoint", &[]),
    ("guard", &["transcript"]),
    ("handoff", &["transcript", "scratchpad", "breakpoint"]),
    ("lineage", &["process", "transcript", "handoff"]),
    ("store", &["process", "transcript", "scratchpad", "lineage"]),
    ("autopilot", &["transcript", "lineage"]),
    ("config", &["keymap"]),
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
            "scratchpad",
            "agent",
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
const DOORS: [(&str, &[&str]); 18] = [
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
        &[
            "app/model/panels.rs",
            "app/view/input.rs",
            "ui/scratchpad.rs",
        ],
    ),
    (
        "ratatui",
        &[
            "ui/",
            "app/view/layout.rs",
            "runtime/canvas.rs",
            "runtime/terminal.rs",
            "runtime/paint.rs",
        ],
    ),
    ("notify", &["runtime/notices.rs", "runtime/watcher.rs"]),
    ("pulldown_cmark", &["ui/markdown.rs"]),
    ("jiff", &["autopilot/patience.rs"]),
    (
        "regex",
        &[
            "terminal/screen/copy/search.rs",
            "redact.rs",
            "breakpoint/test_run/reader.rs",
        ],
    ),
    ("minijinja", &["handoff/generate.rs"]),
    ("rmcp", &["cli/mcp.rs"]),
    ("clap_complete", &["cli/completions.rs"]),
    ("clap_mangen", &["cli/man.rs"]),
    ("tracing_appender", &["logging.rs"]),
];

fn source_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every source file by its path below `src/`, without comments and unit tests.
pub(super) fn sources() -> BTreeMap<String, String> {
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

/// The code of a file up to the module of its unit tests, which is the last item, without line comments.
fn code(text: &str) -> String {
    const TEST: &str = "\n#[cfg(test)]\n";
    let is_module = |at: usize| {
        let line = text[at + TEST.len()..].lines().next().unwrap_or_default();
        line.contains("mod ") && line.ends_with('{')
    };
    let mut tests = text.match_indices(TEST).map(|(at, _)| at);
    text[..tests.find(|at| is_module(*at)).unwrap_or(text.len())]
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn only_the_module_of_tests_is_left_out() {
    let declared = "#[cfg(test)]\nmod tests;\nuse crate::app;";
    assert_eq!(code(&format!("\n{declared}")).trim(), declared);
    let inline = "// a\nuse crate::app;\n#[cfg(test)]\nmod tests {\n    use crate::ui;\n}";
    assert_eq!(code(inline), "use crate::app;");
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
fn every_edge_between_rooms_is_used() {
    let edges = |(room, allowed): &(&'static str, &'static [&'static str])| {
        let room = *room;
        allowed.iter().map(move |used| (room, *used))
    };
    let mut unused: Vec<(&str, &str)> = ROOMS.iter().flat_map(edges).collect();
    for (file, code) in sources() {
        let used = used_rooms(&code);
        unused.retain(|(room, other)| *room != room_of(&file) || !used.contains(*other));
    }
    assert!(unused.is_empty(), "allowed, but not used: {unused:?}");
}

/// The most files that may import one another in a circle.
const LARGEST_CIRCLE: usize = 4;

/// Paths like `a::{b, c::{d}}`, each written out.
fn written_out(tree: &str) -> Vec<String> {
    let Some((head, inside)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return vec![path.trim().to_owned()];
    };
    let inside = inside.trim_end().strip_suffix('}').unwrap_or(inside);
    let (mut paths, mut piece, mut depth) = (Vec::new(), String::new(), 0);
    for c in inside.chars().chain([',']) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if c == ',' && depth == 0 {
            let whole = std::mem::take(&mut piece);
            if !whole.trim().is_empty() {
                paths.extend(written_out(&format!("{}{}", head.trim(), whole.trim())));
            }
        } else {
            piece.push(c);
        }
    }
    paths
}

/// The paths into this crate that a file's code names, in imports and elsewhere.
fn named_paths(code: &str) -> Vec<String> {
    const STARTS: [&str; 3] = ["crate::", "super::", "self::"];
    let code = &code.replace("(in crate::app)", "");
    let mut paths = Vec::new();
    for statement in code.split(';') {
        let import = statement.lines().position(|line| {
            let (before, tree) = line.trim_start().split_once("use ").unwrap_or(("", ""));
            (before.is_empty() || before.starts_with("pub"))
                && STARTS.iter().any(|start| tree.starts_with(start))
        });
        if let Some(at) = import {
            let lines: Vec<&str> = statement.lines().skip(at).collect();
            let lines = lines.join(" ");
            let tree = lines.split_once("use ").map_or("", |(_, tree)| tree);
            paths.extend(written_out(tree));
        }
    }
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    for word in code.split(|c: char| !is_path(c)) {
        // What ends so is the head of a group, which is written out above.
        let is_head = word.ends_with(':');
        if !is_head && STARTS[..2].iter().any(|start| word.starts_with(start)) {
            paths.push(word.to_owned());
        }
    }
    paths
}

/// A file's module path with slashes: that of `app/mod.rs` is `app`, and that of `lib.rs` empty.
fn module_of(file: &str) -> String {
    let mut parts: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
    parts.pop_if(|last| matches!(*last, "mod" | "lib" | "main"));
    parts.join("/")
}

/// The file in which a path ends, as seen from a module.
fn file_of(here: &str, path: &str, modules: &BTreeSet<String>) -> Option<String> {
    let mut base: Vec<&str> = here.split('/').collect();
    for part in path.split("::").map(str::trim) {
        match part {
            "crate" => base.clear(),
            "super" => {
                base.pop();
            }
            "self" | "" => {}
            part => base.push(part),
        }
    }
    while !base.is_empty() {
        let module = base.join("/");
        if modules.contains(&module) {
            return Some(module);
        }
        base.pop();
    }
    None
}

/// The files that each file imports, by their module paths. What a door names of the files below it is no import: that is what
/// a door is for.
fn imports(sources: &BTreeMap<String, String>) -> BTreeMap<String, BTreeSet<String>> {
    let modules: BTreeSet<String> = sources.keys().map(|file| module_of(file)).collect();
    let of = |(file, code): (&String, &String)| {
        let module = module_of(file);
        let paths = named_paths(code);
        let named = paths
            .iter()
            .filter_map(|path| file_of(&module, path, &modules));
        let below = format!("{module}/");
        let others = named.filter(|other| *other != module && !other.starts_with(&below));
        let others = others.collect();
        (module, others)
    };
    sources.iter().map(of).collect()
}

/// The groups of files that import one another in a circle.
fn circles(sources: &BTreeMap<String, String>) -> BTreeSet<Vec<String>> {
    let imports = imports(sources);
    let reached = |from: &String| {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&String> = imports[from].iter().collect();
        while let Some(one) = next.pop() {
            if seen.insert(one.clone()) {
                next.extend(&imports[one]);
            }
        }
        seen
    };
    let reach: BTreeMap<&String, BTreeSet<String>> =
        imports.keys().map(|one| (one, reached(one))).collect();
    let group = |(module, seen): (&&String, &BTreeSet<String>)| -> Vec<String> {
        let back = seen.iter().filter(|other| reach[other].contains(*module));
        back.cloned().collect()
    };
    let groups = reach.iter().map(group);
    groups.filter(|group| group.len() > 1).collect()
}

#[test]
fn no_circle_of_imports_is_large_and_none_leaves_its_folder_in_the_core() {
    let folder = |module: &String| module.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    for circle in circles(&sources()) {
        assert!(
            circle.len() <= LARGEST_CIRCLE,
            "a circle of {} files: {circle:?}",
            circle.len()
        );
        let folders: BTreeSet<_> = circle.iter().map(folder).collect();
        assert!(
            !circle[0].starts_with("app/") || folders.len() == 1,
            "a circle across folders: {circle:?}"
        );
    }
}

/// The levels of the core, each of which may use those before it.
const LEVELS: [&[&str]; 9] = [
    &["model", "event", "effect"],
    &["facts", "forecast", "orders", "refusal"],
    &["metrics"],
    &["draft"],
    &["reboot"],
    &["autopilot"],
    &["session"],
    &["outside"],
    &["view"],
];

#[test]
fn the_core_s_features_use_only_features_below_them() {
    let level = |module: &str| {
        let name = module.strip_prefix("app/")?.split('/').next()?;
        let level = LEVELS.iter().position(|level| level.contains(&name));
        assert!(level.is_some(), "{module} has no level");
        level
    };
    let is_core = |module: &str| module.starts_with("app/") && !module.starts_with("app/tests/");
    let mut wrong = Vec::new();
    for (module, used) in imports(&sources()) {
        for used in used.iter().filter(|_| is_core(&module)) {
            // By the core's own door one would get round these walls.
            if used == "app" || level(used) > level(&module) {
                wrong.push(format!("{module} uses {used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "walls broken:\n{}", wrong.join("\n"));
}

#[test]
fn a_circle_is_seen_however_it_is_written() {
    let file = |name: &str, code: &str| (name.to_owned(), code.to_owned());
    let sources = BTreeMap::from([
        file("app/mod.rs", "pub mod a;\nuse a::one;\nuse self::b::two;"),
        file("app/a.rs", "use super::{\n    b::{self, two as other},\n};"),
        file(
            "app/b.rs",
            "pub(in crate::app) fn f() { crate::app::c::three(); }",
        ),
        file("app/c.rs", "fn three() {}\npub use super::a::one;"),
        file("app/d.rs", "use crate::app::{a::one, b};"),
    ]);
    let found: Vec<_> = circles(&sources).into_iter().collect();
    assert_eq!(found, [["app/a", "app/b", "app/c"]]);
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
        if code.contains("make_raw") {
            wrong.push(format!("{file} sets raw mode, which crossterm does"));
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
const OF_THE_DEMO: [&str; 4] = [
    "PITSTOP_DEMO_DIR",
    "PITSTOP_DEMO_STOP_PHRASE",
    "PITSTOP_DEMO_AUTO",
    "PITSTOP_DEMO_BRIDGE",
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
    for (file, code) in sources() {
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
