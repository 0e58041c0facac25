//! Measures the sources: how large they are, who changes whose state, how they are named and described, how they are committed.
//!
//! ```text
//! cargo run --example house               this working tree
//! cargo run --example house -- DIRECTORY  another one, for example an older commit's
//! ```
//!
//! It reads text that rustfmt has laid out and no syntax tree, so that it can measure any version: the counts are for comparison
//! between versions, and a few may be wrong by some. Unit tests are counted as lines and looked at no further.

use std::{
    collections::BTreeMap,
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use regex::Regex;

/// The features of the core: the fields of the model, and the directories that own them.
const FEATURES: [&str; 6] = ["autopilot", "draft", "outside", "reboot", "session", "view"];

/// Methods that change what they are called on.
const CHANGES: &str = "take|push|push_back|push_front|insert|clear|retain|extend|remove|pop|pop_front|replace|get_or_insert\\w*|append|truncate|drain|as_mut|get_mut|iter_mut";

/// Names that Rust's own conventions and traits give.
const USUAL_NAMES: [&str; 22] = [
    "new",
    "from",
    "into",
    "default",
    "fmt",
    "drop",
    "deref",
    "next",
    "main",
    "eq",
    "cmp",
    "hash",
    "index",
    "serialize",
    "deserialize",
    "clone",
    "poll",
    "read",
    "write",
    "flush",
    "visit",
    "expecting",
];

/// A source file without its unit tests.
struct Source {
    path: PathBuf,
    text: String,
}

fn main() -> io::Result<()> {
    let root = env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let root = Path::new(&root);
    let mut files = Vec::new();
    // The first versions were one crate.
    for directory in ["src", "crates"].map(|name| root.join(name)) {
        if directory.exists() {
            collect(&directory, &mut files)?;
        }
    }
    let (product, tests) = split(files)?;
    let code: usize = product.iter().map(|source| code_lines(&source.text)).sum();
    row("files of the product", product.len());
    row("lines of code of the product", code);
    row("lines of code of its unit tests", tests);
    measure_state(root, &product);
    measure_words(&product);
    measure_commits(root);
    Ok(())
}

fn row(name: &str, value: impl std::fmt::Display) {
    println!("{name:<62} {value:>9}");
}

fn share(name: &str, part: usize, whole: usize) {
    let percent = 100.0 * part as f64 / whole.max(1) as f64;
    row(name, format!("{percent:.0} %"));
}

/// Adds every Rust file of a crate's sources below a directory.
fn collect(directory: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let is_beside = ["target", "examples", "benches"]
            .iter()
            .any(|name| path.ends_with(name));
        if path.is_dir() && !is_beside {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(())
}

/// Returns the product's sources, and the number of code lines in unit tests.
fn split(files: Vec<PathBuf>) -> io::Result<(Vec<Source>, usize)> {
    let mut product = Vec::new();
    let mut tests = 0;
    let unit_tests = pattern(r"(?m)^#\[cfg\((all\()?test\b.*\)\]\n(pub(\(.+\))? )?mod tests \{");
    for path in files {
        let text = fs::read_to_string(&path)?;
        let is_test =
            path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests");
        // The convention of the repository: a file's unit tests are its last item.
        let end = if is_test {
            0
        } else {
            unit_tests
                .find(&text)
                .map_or(text.len(), |found| found.start())
        };
        tests += code_lines(&text[end..]);
        if !is_test {
            product.push(Source {
                path,
                text: text[..end].to_owned(),
            });
        }
    }
    Ok((product, tests))
}

fn code_lines(text: &str) -> usize {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .count()
}

/// Counts who may change the whole model, and who changes a part of it that is another feature's.
fn measure_state(root: &Path, product: &[Source]) {
    let app = root.join("crates/core/src/app");
    let app = if app.exists() {
        app
    } else {
        root.join("src/app")
    };
    let function = pattern(r"fn \w+[^{;]*&mut Model\b");
    let features = FEATURES.join("|");
    let write = pattern(&format!(
        r"model\s*\.\s*({features})(?:\s*\.\s*\w+)*\s*(?:[-+|&]?=[^=>]|\.\s*(?:{CHANGES})\()|&mut model\s*\.\s*({features})\b"
    ));
    let mut writes: BTreeMap<(String, &str), usize> = BTreeMap::new();
    let mut functions = 0;
    for source in product {
        functions += function.find_iter(&source.text).count();
        let Ok(inside) = source.path.strip_prefix(&app) else {
            continue;
        };
        let first = inside.iter().next().unwrap_or_default().to_string_lossy();
        let feature = first.trim_end_matches(".rs");
        for found in write.captures_iter(&source.text) {
            let owner = found
                .get(1)
                .or_else(|| found.get(2))
                .map_or("", |name| name.as_str());
            // The types of the model have the rules that need nothing else.
            if let Some(owner) = FEATURES
                .iter()
                .find(|name| **name == owner && owner != feature && feature != "model")
            {
                *writes.entry((feature.to_owned(), owner)).or_default() += 1;
            }
        }
    }
    row("functions that take `&mut Model`", functions);
    row(
        "writes into another feature's state",
        writes.values().sum::<usize>(),
    );
    for ((feature, owner), count) in writes {
        row(&format!("    {feature} into {owner}"), count);
    }
    for name in ["attempt", "run"] {
        let text = format!("let Some({name})");
        let count: usize = product
            .iter()
            .map(|source| source.text.matches(&text).count())
            .sum();
        row(&format!("`{text}`"), count);
    }
}

/// Counts names of functions and beginnings of comments.
fn measure_words(product: &[Source]) {
    let function = pattern(r"(?m)^\s*(?:pub(?:\([\w: ]+\))? )?(?:const |async )*fn (\w+)");
    let described = pattern(
        r"(?m)^ *///[^\n]*(?:\n *///[^\n]*)*(?:\n *#\[[^\n]*)*\n *(?:pub(?:\([\w: ]+\))? )?(?:const |async )*(fn )?",
    );
    let (mut names, mut short, mut comments, mut fragments) = (0, 0, 0, 0);
    for source in product {
        for found in function.captures_iter(&source.text) {
            names += 1;
            short += usize::from(!found[1].contains('_') && !USUAL_NAMES.contains(&&found[1]));
        }
        for found in described.captures_iter(&source.text) {
            comments += 1;
            fragments += usize::from(is_fragment(&found[0], found.get(1).is_some()));
        }
    }
    share("function names of one word", short, names);
    share(
        "doc comments that begin with a fragment",
        fragments,
        comments,
    );
}

/// Reports whether a doc comment does not begin as its kind does: a function's with a verb in the third person, another item's
/// with a capital; both with a whole sentence.
fn is_fragment(comment: &str, is_function: bool) -> bool {
    let text: Vec<&str> = comment
        .lines()
        .map_while(|line| line.trim().strip_prefix("///"))
        .map(str::trim)
        .take_while(|line| !line.is_empty())
        .collect();
    let text = text.join(" ");
    let first = text.split_whitespace().next().unwrap_or_default();
    let is_whole = text.contains(['.', ':', '?'])
        && first.starts_with(|c: char| c.is_uppercase() || "`[1234567890".contains(c));
    !is_whole || is_function && !first.trim_end_matches(',').ends_with('s')
}

/// Prints how large commits are, and how their subjects begin: of the newest 200.
fn measure_commits(root: &Path) {
    let log = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["log", "-200", "--no-merges", "--shortstat", "--format=@%s"])
        .output();
    let Ok(log) = log else { return };
    let log = String::from_utf8_lossy(&log.stdout);
    let number = pattern(r"(\d+) (?:insertion|deletion)");
    let mut sizes = Vec::new();
    let (mut subjects, mut statements) = (0, 0);
    for commit in log.split('@').filter(|text| !text.trim().is_empty()) {
        let subject = commit.lines().next().unwrap_or_default();
        let words = subject.split_once(": ").map_or(subject, |(_, words)| words);
        let first = words.split_whitespace().next().unwrap_or_default();
        subjects += 1;
        statements += usize::from(is_statement(first));
        sizes.push(
            number
                .captures_iter(commit)
                .filter_map(|found| found[1].parse::<usize>().ok())
                .sum::<usize>(),
        );
    }
    sizes.sort_unstable();
    row(
        "changed lines of a commit: median",
        sizes.get(sizes.len() / 2).copied().unwrap_or_default(),
    );
    row(
        "changed lines of a commit: 90 %",
        sizes.get(sizes.len() * 9 / 10).copied().unwrap_or_default(),
    );
    share("subjects that are statements", statements, subjects);
}

/// Reports whether the first word of a subject is no verb in the imperative.
fn is_statement(first: &str) -> bool {
    let begins = [
        "a", "an", "the", "its", "his", "all", "no", "one", "what", "which", "who", "where", "when",
    ];
    begins.contains(&first)
        || first.ends_with('s')
            && !["pass", "process", "compress", "dress", "press"].contains(&first)
        || first.contains(['`', '.'])
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}
