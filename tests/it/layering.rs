//! Walls that no manifest can state: the order within a crate, who may touch the world, what the loop waits for.
//!
//! Which crate may use which is stated by the manifests in `crates/`. The lists here are read against the imports and paths of
//! the sources; unit tests (`#[cfg(test)]`, `tests.rs`) are left out, because they may reach for anything.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use pitstop_core::api::wire::ApiEventKind;

/// Files and directories that may touch the world.
const WORLD: [&str; 23] = [
    "base/private_file.rs",
    "base/process.rs",
    "transcript/tail.rs",
    "terminal/pane/pty.rs",
    "terminal/pane/recording.rs",
    "handoff/breakpoint/git/directory.rs",
    "handoff/breakpoint/git/runner.rs",
    "core/config/load.rs",
    "core/config/load/",
    "demo/",
    "server/",
    "store/agent_registry.rs",
    "store/connection.rs",
    "store/db.rs",
    "store/lock.rs",
    "store/private_dir.rs",
    "store/private_dir/",
    "store/writes.rs",
    "pitstop/main.rs",
    "pitstop/logging.rs",
    "pitstop/cli/",
    "pitstop/runtime/",
    "pitstop/supervisor/",
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

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Each crate's name without the prefix, and the directory of its sources.
fn crates() -> Vec<(String, PathBuf)> {
    let libraries = fs::read_dir(root().join("crates")).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        (name, entry.path().join("src"))
    });
    libraries
        .chain([("pitstop".to_owned(), root().join("src"))])
        .collect()
}

/// Every Rust file below a directory.
fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found
}

/// Every source file by its crate and its path in it, like `core/app/mod.rs`, without comments and unit tests.
fn sources() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (name, directory) in crates() {
        for path in rust_files(&directory) {
            let below = path.strip_prefix(&directory).unwrap().to_str().unwrap();
            if !below.ends_with("tests.rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.insert(format!("{name}/{below}"), code(&text));
            }
        }
    }
    assert!(
        found.len() > 300,
        "expected every crate, found {}",
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

fn is_in(file: &str, places: &[&str]) -> bool {
    places.iter().any(|place| {
        if !place.ends_with('/') && place.contains('.') {
            file == *place
        } else {
            file.starts_with(place)
        }
    })
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

/// A file's module path with slashes: that of `core/app/mod.rs` is `core/app`, and that of `core/lib.rs` is `core`.
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
            "crate" => base.truncate(1),
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
            !circle[0].starts_with("core/app/") || folders.len() == 1,
            "a circle across folders: {circle:?}"
        );
    }
}

/// The levels within a module, each of which may use those before it.
const LEVELS: [(&str, &[&[&str]]); 3] = [
    (
        "core/",
        &[
            &["lineage", "guard", "config"],
            &["autopilot", "api"],
            &["app"],
        ],
    ),
    (
        "core/app/",
        &[
            &["model", "event", "effect", "consequences"],
            &["facts", "forecast", "orders", "refusal", "cold_cache"],
            &["metrics"],
            &["draft"],
            &["reboot"],
            &["autopilot"],
            &["session"],
            &["outside"],
            &["view"],
            &["needs"],
        ],
    ),
    (
        "pitstop/",
        &[
            &["ui", "logging"],
            &["runtime"],
            &["supervisor"],
            &["cli"],
            &["main"],
        ],
    ),
];

#[test]
fn a_module_uses_only_modules_of_lower_levels() {
    let mut wrong = Vec::new();
    let imports = imports(&sources());
    for (within, levels) in LEVELS {
        let level = |module: &str| {
            let name = module.strip_prefix(within)?.split('/').next()?;
            let level = levels.iter().position(|level| level.contains(&name));
            assert!(level.is_some(), "{module} has no level");
            level
        };
        let is_within = |module: &str| module.starts_with(within) && !module.contains("/tests/");
        for (module, used) in imports.iter().filter(|(module, _)| is_within(module)) {
            for used in used {
                // By the parent one would get round these walls.
                if *used == within.trim_end_matches('/') || level(used) > level(module) {
                    wrong.push(format!("{module} uses {used}"));
                }
            }
        }
    }
    none("walls broken", &wrong);
}

#[track_caller]
fn none(what: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

#[test]
fn a_circle_is_seen_however_it_is_written() {
    let file = |name: &str, code: &str| (name.to_owned(), code.to_owned());
    let sources = BTreeMap::from([
        file(
            "core/app/mod.rs",
            "pub mod a;\nuse a::one;\nuse self::b::two;",
        ),
        file(
            "core/app/a.rs",
            "use super::{\n    b::{self, two as other},\n};",
        ),
        file(
            "core/app/b.rs",
            "pub(in crate::app) fn f() { crate::app::c::three(); }",
        ),
        file("core/app/c.rs", "fn three() {}\npub use super::a::one;"),
        file("core/app/d.rs", "use crate::app::{a::one, b};"),
    ]);
    let found: Vec<_> = circles(&sources).into_iter().collect();
    assert_eq!(found, [["core/app/a", "core/app/b", "core/app/c"]]);
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
    none("pure files touch the world", &wrong);
}

/// The model belongs to the core, so that the shell cannot assign to it: that does not compile. What would get round it is
/// a model of the shell's own, or the function that tests call with theirs.
#[test]
fn the_shell_only_looks_at_the_model() {
    let mut wrong = Vec::new();
    for (file, code) in sources() {
        let found = ["&mut Model", "mut model: Model", "app::update"]
            .into_iter()
            .filter(|sign| file.starts_with("pitstop/runtime/") && code.contains(sign));
        wrong.extend(found.map(|sign| format!("{file}: {sign}")));
    }
    none("changed behind the core's back", &wrong);
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
    "pitstop/runtime/agent.rs",
    "pitstop/runtime/files.rs",
    "pitstop/runtime/store_writer.rs",
    "pitstop/runtime/prepare.rs",
    "pitstop/runtime/recovery.rs",
    "pitstop/runtime/trim.rs",
];

#[test]
fn the_loop_waits_for_no_disk() {
    let mut wrong = Vec::new();
    for (file, code) in sources() {
        if !file.starts_with("pitstop/runtime/") || is_in(&file, &OFF_THE_LOOP) {
            continue;
        }
        let found = SYNCING.iter().filter(|sign| code.contains(**sign));
        wrong.extend(found.map(|sign| format!("{file}: {sign}")));
    }
    none("keys wait for a disk", &wrong);
}

#[test]
fn every_crate_is_named_in_the_map() {
    let map = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    for (name, _) in crates().iter().filter(|(name, _)| name != "pitstop") {
        let line = format!("//! - [`pitstop_{name}`]: ");
        assert!(map.contains(&line), "src/lib.rs does not name {name}");
    }
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
    let mut wrong = Vec::new();
    for directory in [
        "src",
        "crates",
        "tests",
        "benches",
        "examples",
        "fuzz/fuzz_targets",
    ] {
        for path in rust_files(&root().join(directory)) {
            let text = fs::read_to_string(&path).unwrap();
            let missing = text
                .lines()
                .flat_map(cited)
                .filter(|one| !root().join(one).exists());
            wrong.extend(missing.map(|one| format!("{}: {one}", path.display())));
        }
    }
    none("not in the repository", &wrong);
    assert!(cited("/// As in DESIGN 6, and in docs/none.md.").eq(["DESIGN", "docs/none.md"]));
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

/// An event that the description names and nothing makes would be waited for in vain.
#[test]
fn every_kind_of_event_is_made_somewhere() {
    let sources = sources();
    let own = "core/api/events.rs";
    assert!(sources.contains_key(own));
    let unmade: Vec<String> = ApiEventKind::ALL
        .iter()
        .map(|kind| format!("ApiEventKind::{kind:?}"))
        .filter(|kind| {
            !sources
                .iter()
                .any(|(file, code)| file != own && code.contains(kind))
        })
        .collect();
    assert!(unmade.is_empty(), "nothing makes {unmade:?}");
}
