//! What a fact is: paths, identifiers, references and commands, found in a text by the same rules on both sides of a cut.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use regex::Regex;

use super::corpus::{Said, Session, Who};

/// The kinds of facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    Path,
    Identifier,
    Reference,
    Command,
}

impl Class {
    pub const ALL: [Self; 4] = [Self::Path, Self::Identifier, Self::Reference, Self::Command];
}

/// A fact: its kind and its one spelling.
pub type Fact = (Class, String);

/// The shortest identifier: shorter ones are often words of a language.
const IDENTIFIER: std::ops::RangeInclusive<usize> = 6..=60;

/// Names that look like identifiers and belong to no project: brands, the client's own fields, and what every page, standard
/// library and test of a language has.
const COMMON: &str = "
    GitHub GitLab JavaScript TypeScript PostgreSQL MySQL OpenAI DevTools WebSocket YouTube PowerShell
    file_path old_string new_string tool_use tool_result node_modules in_progress
    forEach indexOf lastIndexOf toString toLowerCase toUpperCase startsWith endsWith parseInt parseFloat isArray hasOwnProperty
    charAt charCodeAt findIndex flatMap setTimeout setInterval clearTimeout clearInterval
    getElementById getElementsByClassName querySelector querySelectorAll getAttribute setAttribute removeAttribute
    addEventListener removeEventListener preventDefault stopPropagation dispatchEvent innerHTML innerText textContent
    classList className createElement appendChild removeChild insertBefore parentNode parentElement nextSibling
    localStorage sessionStorage getSelection scrollIntoView shiftKey ctrlKey metaKey useState useEffect onClick onChange
    is_list is_nil is_map is_binary is_atom is_integer to_string to_list group_by utc_now DateTime NaiveDateTime
    to_owned as_str as_ref is_empty is_some is_none is_ok is_err unwrap_or unwrap_or_default into_iter filter_map flat_map
    HashMap HashSet BTreeMap BTreeSet PathBuf read_to_string dead_code
    __init__ __name__ __main__ __file__ __pycache__ read_text write_text is_file is_dir makedirs
    assert_eq
";

/// What looks like the id of an issue and is none.
const STANDARDS: [&str; 10] = [
    "UTF", "SHA", "ISO", "RFC", "HTTP", "GPT", "X", "ASCII", "CVE", "MD",
];

/// Programs that say nothing of a project: with what arguments they are called differs each time.
const PLUMBING: [&str; 38] = [
    "cd", "ls", "cat", "echo", "head", "tail", "grep", "rg", "sed", "awk", "find", "wc", "sort",
    "uniq", "mkdir", "rm", "cp", "mv", "touch", "chmod", "sleep", "true", "false", "which", "pwd",
    "printf", "test", "xargs", "tee", "cut", "tr", "diff", "for", "do", "done", "while", "if",
    "export",
];

/// Words before a program.
const BEFORE: [&str; 6] = ["sudo", "time", "timeout", "env", "exec", "nohup"];

/// Programs whose first word says only that the next one counts.
const RUNNERS: [&str; 4] = ["run", "exec", "x", "tool"];

/// Programs of which only the script says what they do.
const INTERPRETERS: [&str; 8] = [
    "python", "python3", "node", "bash", "sh", "ruby", "deno", "bun",
];

static URL: LazyLock<Regex> = LazyLock::new(|| pattern(r#"https?://[^\s"'<>()\[\]`\\]+"#));
static PATH: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(\$\{?[A-Za-z_]\w*\}?/)?([A-Za-z0-9_.~@+/-]+)"));
static IDENT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z_][A-Za-z0-9_]*)*"));
static ISSUE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\b[A-Z]{2}[A-Z0-9]{0,8}-[0-9]+\b|#[0-9]{2,}\b|\b[a-z][a-z0-9]*(?:-[a-z0-9]*[a-z][a-z0-9]*)+\.[0-9]+\b",
    )
});
static COMMON_NAMES: LazyLock<BTreeSet<&str>> =
    LazyLock::new(|| COMMON.split_whitespace().collect());
static COMMIT: LazyLock<Regex> = LazyLock::new(|| pattern(r"[A-Za-z0-9_#-]+"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern of this file")
}

/// What a session knows that its texts do not say: directories to strip, names of branches.
pub struct Ground<'a> {
    pub roots: &'a [String],
    pub branches: &'a [String],
}

impl<'a> Ground<'a> {
    pub fn of(session: &'a Session) -> Self {
        Self {
            roots: &session.roots,
            branches: &session.branches,
        }
    }
}

/// The facts of a text, other than commands.
pub fn facts(text: &str, ground: &Ground<'_>) -> BTreeSet<Fact> {
    let mut found = BTreeSet::new();
    let (rest, paths) = without_paths(text, ground, &mut found);
    let paths = paths.into_iter().filter(|(_, rooted)| *rooted);
    found.extend(paths.map(|(path, _)| (Class::Path, path)));
    found.extend(identifiers(&rest).map(|name| (Class::Identifier, name)));
    found.extend(references(&rest, ground).map(|name| (Class::Reference, name)));
    found
}

/// The text without its URLs and paths; the URLs go to `found`, the paths with whether a directory stands before them.
fn without_paths(
    text: &str,
    ground: &Ground<'_>,
    found: &mut BTreeSet<Fact>,
) -> (String, Vec<(String, bool)>) {
    let mut rest = String::with_capacity(text.len());
    let mut end = 0;
    for url in URL.find_iter(text) {
        let name = url
            .as_str()
            .trim_end_matches(['.', ',', ';', ':', '/', '*']);
        found.insert((Class::Reference, name.to_owned()));
        rest.push_str(&text[end..url.start()]);
        rest.push(' ');
        end = url.end();
    }
    rest.push_str(&text[end..]);
    let mut paths = Vec::new();
    let rest = PATH.replace_all(&rest, |found: &regex::Captures<'_>| {
        // Below a directory that only a variable names.
        let variable = found.get(1).map_or("", |variable| variable.as_str());
        match path(&found[2], ground) {
            Some((path, rooted)) => {
                paths.push((path, rooted || !variable.is_empty()));
                format!(" {variable} ")
            }
            None => found[0].to_owned(),
        }
    });
    (rest.into_owned(), paths)
}

/// A word as a path below the project, if it looks like a file; and whether it names a directory.
fn path(word: &str, ground: &Ground<'_>) -> Option<(String, bool)> {
    let word = word.trim_end_matches(['.', '-', '/', '~']);
    let name = word.rsplit('/').next()?;
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    let looks = match ending {
        "" => matches!(name, "Makefile" | "Dockerfile" | "Justfile" | "LICENSE"),
        _ => {
            !stem.is_empty()
                && ending.len() <= 8
                && ending.starts_with(|c: char| c.is_ascii_lowercase())
                && ending
                    .bytes()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        }
    };
    if !looks {
        return None;
    }
    let below = ground.roots.iter().find_map(|root| {
        let rest = word.strip_prefix(root.as_str())?;
        rest.strip_prefix('/')
    });
    let path = below.unwrap_or(word).trim_start_matches("./");
    Some((path.to_owned(), below.is_some() || path.contains('/')))
}

fn identifiers(text: &str) -> impl Iterator<Item = String> {
    IDENT.find_iter(text).flat_map(|word| {
        let word = word.as_str();
        let parts: Vec<&str> = word
            .split("::")
            .filter(|part| is_identifier(part))
            .collect();
        if parts.is_empty() && word.contains("::") && IDENTIFIER.contains(&word.len()) {
            return vec![word.to_owned()];
        }
        parts.into_iter().map(str::to_owned).collect()
    })
}

/// Whether a name has an underscore or a hump inside and is no one's id or common word.
fn is_identifier(name: &str) -> bool {
    let bytes = name.as_bytes();
    let hump = bytes
        .windows(2)
        .any(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase());
    let joined = name.trim_matches('_').contains('_');
    let id = ["toolu_", "msg_", "req_"]
        .iter()
        .any(|start| name.starts_with(start));
    IDENTIFIER.contains(&name.len()) && (hump || joined) && !id && !COMMON_NAMES.contains(name)
}

fn references(text: &str, ground: &Ground<'_>) -> impl Iterator<Item = String> {
    let issues = ISSUE.find_iter(text).filter(|found| {
        let project = found.as_str().split('-').next().unwrap_or_default();
        // `color: #888;` is no issue.
        let before = text[..found.start()].trim_end();
        let after = text[found.end()..].trim_start();
        let styled = before.ends_with(':') && after.starts_with([';', '}', '"', '\'']);
        let colour = project.starts_with('#') && (styled || before.ends_with(['"', '\'', '(']));
        !STANDARDS.contains(&project) && !colour
    });
    let issues = issues.map(|found| found.as_str());
    let commits = COMMIT.find_iter(text).map(|found| found.as_str());
    let commits = commits.filter(|word| {
        matches!(word.len(), 7..=12 | 40)
            && word.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
            && word.bytes().any(|c| c.is_ascii_digit())
            && word.bytes().any(|c| c.is_ascii_lowercase())
    });
    let branches = ground.branches.iter().map(String::as_str);
    let branches = branches.filter(|name| has_word(text, name));
    let all: Vec<String> = issues
        .chain(commits)
        .chain(branches)
        .map(str::to_owned)
        .collect();
    all.into_iter()
}

/// Whether a text has this with no letter, digit or hyphen beside it.
fn has_word(text: &str, word: &str) -> bool {
    words_at(text, word).next().is_some()
}

fn words_at<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| {
            let before = text[..*at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            !before.is_some_and(inside) && !after.is_some_and(inside)
        })
}

/// The commands of a shell line: each program with its subcommand, without arguments, plumbing and here-documents.
pub fn commands(line: &str) -> BTreeSet<String> {
    let line = line.split("<<").next().unwrap_or_default();
    let pieces = line.split(['\n', ';', '|', '&']);
    pieces.filter_map(command).collect()
}

fn command(piece: &str) -> Option<String> {
    let mut words = piece
        .split_whitespace()
        .map(|word| word.trim_matches(['(', ')', '`', '"', '\'', '{', '}', '$']))
        .skip_while(|word| {
            word.contains('=') || BEFORE.contains(word) || word.bytes().all(|c| c.is_ascii_digit())
        });
    let program = words.next()?.rsplit('/').next()?;
    let named = |word: &str| {
        let mut bytes = word.bytes();
        bytes.next().is_some_and(|c| c.is_ascii_lowercase())
            && bytes.all(|c| c.is_ascii_alphanumeric() || matches!(c, b':' | b'.' | b'_' | b'-'))
    };
    if !named(program) || PLUMBING.contains(&program) || program.len() < 2 {
        return None;
    }
    let mut flag = "";
    let mut words = words
        // `git -C DIR commit`
        .filter(|word| std::mem::replace(&mut flag, word) != "-C" && !word.starts_with('-'))
        .peekable();
    let runner = words.next_if(|word| RUNNERS.contains(word));
    let sub = words.next().map(|word| match word.rsplit_once('/') {
        Some((_, script)) if INTERPRETERS.contains(&program) => script,
        _ => word,
    });
    let sub = sub.filter(|word| named(word)).or(runner);
    Some(sub.map_or_else(|| program.to_owned(), |sub| format!("{program} {sub}")))
}

/// How far apart a program and its subcommand may stand, in bytes: flags and directories come between.
const APART: usize = 60;

/// What a text names.
pub struct Named<'a> {
    text: &'a str,
    facts: BTreeSet<Fact>,
    paths: BTreeSet<String>,
}

impl<'a> Named<'a> {
    pub fn of(text: &'a str, ground: &Ground<'_>) -> Self {
        let mut facts = BTreeSet::new();
        let (rest, paths) = without_paths(text, ground, &mut facts);
        facts.extend(identifiers(&rest).map(|name| (Class::Identifier, name)));
        facts.extend(references(&rest, ground).map(|name| (Class::Reference, name)));
        Self {
            text,
            facts,
            paths: paths.into_iter().map(|(path, _)| path).collect(),
        }
    }

    pub fn has(&self, fact: &Fact) -> bool {
        let (class, name) = fact;
        match class {
            Class::Path => self.paths.iter().any(|path| is_path(name, path)),
            Class::Command => self.has_command(name),
            Class::Identifier | Class::Reference => self.facts.contains(fact),
        }
    }

    /// Whether it names a file by its path, or at least by its name.
    pub fn has_file(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let same = |have: &String| have == name || is_path(path, have);
        self.paths.iter().any(same)
    }

    /// How many files it names.
    pub fn files(&self) -> usize {
        self.paths.len()
    }

    fn has_command(&self, command: &str) -> bool {
        let Some((program, sub)) = command.split_once(' ') else {
            return has_word(self.text, command);
        };
        words_at(self.text, program).any(|at| {
            let rest = &self.text[at + program.len()..];
            let rest = rest.split(['\n', ';', '|', '&']).next().unwrap_or_default();
            words_at(rest, sub).next().is_some_and(|gap| gap <= APART)
        })
    }
}

/// Whether a word in a text names this path: whole, or from a directory on.
fn is_path(path: &str, word: &str) -> bool {
    let ends = |long: &str, short: &str| {
        long.strip_suffix(short)
            .is_some_and(|rest| rest.ends_with('/'))
    };
    path == word || (word.contains('/') && ends(path, word)) || ends(word, path)
}

/// What stands before a cut and what is used behind it.
pub struct Known {
    /// In how many records each fact stands before the cut.
    pub before: BTreeMap<Fact, usize>,
    /// Those that the human or the agent uses in the next records.
    pub used: BTreeSet<Fact>,
    /// The files that each identifier was seen in.
    pub homes: BTreeMap<String, BTreeSet<String>>,
    /// The files that are read again.
    pub read_again: BTreeSet<String>,
}

impl Known {
    pub fn of(before: &[Said], behind: &[Said], ground: &Ground<'_>) -> Self {
        let mut known = Self {
            before: BTreeMap::new(),
            used: BTreeSet::new(),
            homes: BTreeMap::new(),
            read_again: BTreeSet::new(),
        };
        let mut files = BTreeSet::new();
        for said in before {
            for fact in facts(&said.shown, ground).into_iter().chain(ran(said)) {
                *known.before.entry(fact).or_default() += 1;
            }
            let calls = said.calls.iter();
            let shown = calls.filter_map(|call| Some((call.file.as_ref()?, &call.text)));
            for (file, text) in shown.chain(said.results.iter().map(|(file, text)| (file, text))) {
                let Some((file, _)) = path(file, ground) else {
                    continue;
                };
                let mut ignored = BTreeSet::new();
                let (rest, _) = without_paths(text, ground, &mut ignored);
                for name in identifiers(&rest) {
                    known.homes.entry(name).or_default().insert(file.clone());
                }
                files.insert(file);
            }
        }
        for said in behind.iter().filter(|said| said.who != Who::Other) {
            let used = facts(&said.own, ground).into_iter().chain(ran(said));
            known
                .used
                .extend(used.filter(|fact| known.before.contains_key(fact)));
            for call in said.calls.iter().filter(|call| call.tool == "Read") {
                let file = call.file.as_ref().and_then(|file| path(file, ground));
                known.read_again.extend(
                    file.map(|(file, _)| file)
                        .filter(|file| files.contains(file)),
                );
            }
        }
        known
    }
}

/// The commands that a record runs.
fn ran(said: &Said) -> impl Iterator<Item = Fact> {
    let lines = said.calls.iter().filter_map(|call| call.command.as_deref());
    lines
        .flat_map(commands)
        .map(|command| (Class::Command, command))
}

/// Texts with what is to be found in them. An instrument is tried before it measures; `cargo test` does not build benches.
pub fn check() -> Result<(), String> {
    let roots = ["/home/me/feed".to_owned()];
    let branches = ["fix-dates".to_owned()];
    let ground = Ground {
        roots: &roots,
        branches: &branches,
    };
    for (text, expected) in [
        (
            "see /home/me/feed/src/parse.rs:12 and ./src/list.rs.",
            "src/list.rs src/parse.rs",
        ),
        (
            "/home/me/feed/Cargo.toml, but not README.md or and/or",
            "Cargo.toml",
        ),
        ("run ${ROOT_DIR}/hooks/start.sh", "hooks/start.sh ROOT_DIR"),
        (
            "store::open_file calls readEntry, not GitHub's forEach",
            "open_file readEntry",
        ),
        ("short_ a_b std::fs", "std::fs"),
        (
            "on fix-dates: #123, FEED-7 and feed-abc.4 in 3f78685",
            "#123 3f78685 FEED-7 feed-abc.4 fix-dates",
        ),
        ("UTF-8 and color: #888; and 1234567 and deadbeef", ""),
        (
            "at https://example.org/a_long_name/x.html.",
            "https://example.org/a_long_name/x.html",
        ),
    ] {
        let found: Vec<String> = facts(text, &ground)
            .into_iter()
            .map(|fact| fact.1)
            .collect();
        expect(text, &found.join(" "), expected)?;
    }
    for (line, expected) in [
        (
            "cd x && FOO=1 cargo test --lib 2>&1 | tail -5",
            "cargo test",
        ),
        (
            "git -C dir commit -m \"$(cat <<'EOF'\nls; npm run\nEOF\n)\"",
            "git commit",
        ),
        (
            "npm run build; ./scripts/check.sh; python3 tools/gen.py a",
            "check.sh,npm build,python3 gen.py",
        ),
        ("claude --dir ./x -p", "claude"),
    ] {
        let found: Vec<String> = commands(line).into_iter().collect();
        expect(line, &found.join(","), expected)?;
    }
    let text = "- parse.rs has it\n$ git -C x commit -m y\n`src/feed/list.rs`, open_file2";
    let named = Named::of(text, &ground);
    for (class, name, expected) in [
        (Class::Path, "src/feed/list.rs", true),
        (Class::Path, "old/src/feed/list.rs", true),
        (Class::Path, "src/parse.rs", false),
        (Class::Identifier, "open_file", false),
        (Class::Command, "git commit", true),
        (Class::Command, "git add", false),
    ] {
        let fact = (class, name.to_owned());
        expect(name, &named.has(&fact).to_string(), &expected.to_string())?;
    }
    Ok(())
}

fn expect(text: &str, found: &str, expected: &str) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!(
        "in {text:?}: expected {expected:?}, found {found:?}"
    ))
}
