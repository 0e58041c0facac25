//! Parses a shell line: the commands in it, the directory of each, and the tests that each requests of a runner.
//!
//! Directories are followed as far as the line itself shows them: `cd`, subshells, `sh -c`, and the flags by which a program
//! changes its directory. A directory that depends on a variable, a pattern, a here-document or another machine is not known,
//! and unknown directories are never taken as equal.

use super::Row;
use pitstop_transcript::{
    shell::{Kind, Token, tokens},
    words::is_among,
};

/// The programs that only show text or change the shell: a log of a test run is not a run.
const SHOW: &str =
    "cat|head|tail|less|more|grep|rg|sed|awk|echo|printf|git|cd|ls|find|bat|pushd|popd|tee|export";

/// The programs that run a command on another machine, or in a directory that only they know.
const FOREIGN: &str = "docker|docker-compose|podman|kubectl|ssh|nix";

/// The flags by which a program changes its directory, each after its program; an empty program means any program.
#[rustfmt::skip]
const DIRECTORY_FLAGS: [(&str, &str); 13] = [
    ("", "-C"), ("", "--directory"), ("", "--chdir"), ("", "--manifest-path"), ("npm", "--prefix"), ("pnpm", "--dir"),
    ("yarn", "--cwd"), ("bun", "--cwd"), ("gradle", "-p"), ("gradle", "--project-dir"), ("ctest", "--test-dir"),
    ("jest", "--rootDir"), ("vitest", "--root"),
];

const PACKAGE_MANAGERS: &str = "npm|pnpm|yarn|bun";

/// The scripts that run all tests of a project; any other one, as `test:unit`, may run a part of them.
const WHOLE_SCRIPTS: &str = "test|tests|test-all|test-ci|test:all|test:ci|test:once|test:run";

/// The words by which a package manager runs a script in other packages than that of the directory.
const WORKSPACE_WORDS: &str = "-w|--workspace|--workspaces|--filter|-F|-r|workspace|workspaces";

/// The words that make a runner's name after them an argument.
const NO_RUN: &str = "install|add|remove|uninstall|update|which|-v";

/// The flags that select some of the tests, or leave some out.
const NARROW: &str = "-k|-m|-p|--package|--lib|--test|--bin|--doc|--example|-E|-run|-t|--testNamePattern|--lf|\
    --last-failed|--ff|--skip|--grep|-g|-e|--tag|--filter|--only|--group|--test-name-pattern|--test-only|\
    -Dtest|-pl|--tests|-R|-L|-I|--test_filter|--name|--plain-name|--filter-method|\
    --deselect|--ignore|--ignore-glob|--exclude|--exclude-group|-skip|--testPathIgnorePatterns|\
    --testPathPattern|--testPathPatterns|--selectProjects|--project|--changed|--changedSince|--onlyChanged|\
    --findRelatedTests|--shard|--partition|--stale|--bins|--examples|--benches|-LE|\
    --testsuite|--exclude-testsuite|--pattern|--exclude-pattern|--ignored|--run-ignored|--filterset|--filter-class|\
    --filter-namespace|--filter-trait|--fgrep|--invert|--tags|--exclude-tags|--test-skip-pattern|--test_tag_filters|\
    -Dgroups|-DexcludedGroups|-Dit.test";

/// The flags with a value in the next word that selects no tests. None of them is without a value in another runner.
const VALUED: &str = "-coverprofile|-timeout|--config|--console|--cov|--cov-report|--features|--import|--logger|--reporter|--settings|\
    --target|--tb|--test-reporter|-W|-covermode|-mod|-shuffle|-tags|--collect|--configuration|--coverage-clover|\
    --coverage-html|--coverageDirectory|--coverageReporters|--env|--environment|--format|--formatter|--junit-xml|\
    --junitxml|--log-cli-level|--log-junit|--log-level|--maxWorkers|--order|--order-by|--override-ini|--pool|--reporters|\
    --require|--results-directory|--rootdir|--verbosity";

/// The flags with which a run ends at a test that fails, so that the others show nothing.
const STOPS: &str =
    "--bail|--exitfirst|--fail-fast|--failfast|--maxfail|--stop-on-failure|-failfast|-x";

/// One command of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    words: Vec<String>,
    /// The directory that it runs in, without a trailing slash; `None` if that is not known.
    pub(super) directory: Option<String>,
    /// True if it may not have run, because it follows `||`.
    doubtful: bool,
}

/// The tests that a command requests of a runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Every test.
    All,
    /// The tests whose names begin with one of these paths.
    Below(Vec<String>),
    /// Some tests; it is not known which ones.
    Some,
}

/// Reads the commands of a line that the shell runs in `directory`.
pub(super) fn read_commands(line: &str, directory: Option<&str>) -> Vec<Command> {
    let mut reader = Reader {
        directory: directory.and_then(|base| join_path(None, base)),
        ..Reader::default()
    };
    reader.read_line(line);
    reader.commands
}

/// Reports whether a line may change the directory of the shell that it runs in.
pub fn changes_directory(line: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_')
        .any(|word| matches!(word, "cd" | "pushd" | "popd"))
}

/// A reader of a line.
#[derive(Default)]
struct Reader {
    commands: Vec<Command>,
    directory: Option<String>,
    /// The directories of the shells around a subshell.
    outer: Vec<Option<String>>,
    words: Vec<String>,
    doubtful: bool,
    is_document: bool,
}

impl Reader {
    fn read_line(&mut self, line: &str) {
        for Token { kind, text, .. } in tokens(line) {
            match kind {
                Kind::Word => self.words.push(text),
                // Its lines would be taken for commands, so the directory is no longer known.
                Kind::Document => self.is_document = true,
                Kind::Target => {}
                Kind::Sign => {
                    self.command_ends();
                    match text.as_str() {
                        "(" => self.outer.push(self.directory.clone()),
                        ")" => self.directory = self.outer.pop().unwrap_or_default(),
                        _ => {}
                    }
                    self.doubtful = text == "||";
                }
            }
        }
    }

    fn command_ends(&mut self) {
        let mut words = std::mem::take(&mut self.words);
        let opens = |word: &str| {
            matches!(word, "{" | "do" | "then" | "else" | "if" | "while" | "!")
                || word.split_once('=').is_some_and(|(name, _)| is_name(name))
        };
        words.drain(..words.iter().take_while(|word| opens(word)).count());
        let Some(program) = words.first().map(|word| base_name(word).to_owned()) else {
            return;
        };
        let here = self.directory.clone();
        match program.as_str() {
            "cd" | "pushd" => {
                let target = words[1..]
                    .iter()
                    .find(|word| !word.starts_with('-') || word.as_str() == "-");
                self.directory = target.and_then(|target| join_path(here.as_deref(), target));
            }
            "popd" => self.directory = None,
            "sh" | "bash" | "zsh" => {
                let at = words.iter().position(|word| is_flag_with(word, 'c'));
                if let Some(line) = at.and_then(|at| words.get(at + 1)) {
                    self.outer.push(here.clone());
                    let (line, doubtful) = (line.clone(), self.doubtful);
                    self.read_line(&line);
                    self.doubtful = doubtful;
                    self.directory = self.outer.pop().unwrap_or_default();
                    return;
                }
            }
            _ => {}
        }
        if std::mem::take(&mut self.is_document) {
            self.directory = None;
        }
        let mut command = Command {
            words,
            directory: here,
            doubtful: self.doubtful,
        };
        command.take_directory();
        self.commands.push(command);
    }
}

/// Returns the alternatives of a filter by name. The anchors around a group of them are those of each: `^(A|B)$` is `^A$|^B$`, and
/// those of a subtest are its test's: `^A$/^b$` is `^A/b$`.
fn alternatives(filter: &str) -> Vec<String> {
    fn inner(text: &str, begin: char, end: char) -> Option<&str> {
        text.strip_prefix(begin)?.strip_suffix(end)
    }
    let anchored = inner(filter, '^', '$').and_then(|text| inner(text, '(', ')'));
    let all = anchored.or_else(|| inner(filter, '(', ')'));
    let parts = all.unwrap_or(filter).split('|');
    let parts = parts.map(|part| part.replace("$/^", "/"));
    match anchored {
        Some(_) => parts.map(|part| format!("^{part}$")).collect(),
        None => parts.collect(),
    }
}

impl Command {
    /// Reports whether it only shows text, changes the shell, or has Gradle build without a test.
    pub(super) fn only_shows(&self) -> bool {
        is_among(SHOW, &self.words[0])
            || is_among("gradle|gradlew", base_name(&self.words[0])) && self.only_builds()
    }

    /// Reports whether it asks Gradle for tasks that run no test, and for nothing else.
    fn only_builds(&self) -> bool {
        let words = self.words[1..].iter();
        let mut tasks = words.filter(|word| !word.starts_with('-')).peekable();
        let builds = |task: &String| {
            let name = task.rsplit(':').next().unwrap_or_default();
            let kinds = ["assemble", "bundle", "clean", "install"];
            kinds.iter().any(|kind| name.starts_with(kind))
        };
        tasks.peek().is_some() && tasks.all(builds)
    }

    /// Reports whether it ends at a test that fails.
    pub(super) fn stops_early(&self) -> bool {
        let mut flags = self.words.iter().filter_map(|word| word.split('=').next());
        flags.any(|flag| is_among(STOPS, flag))
    }

    /// Returns the parts of names by one of which it selects the tests of any file or package, with their anchors; none if it does
    /// not.
    pub(super) fn picked_names(&self) -> Vec<String> {
        let mut picked = Vec::new();
        for (at, word) in self.words.iter().enumerate() {
            let (flag, value) = match word.split_once('=') {
                Some((flag, value)) => (flag, Some(value)),
                None => (word.as_str(), self.words.get(at + 1).map(String::as_str)),
            };
            let filter = match flag {
                "-run" | "-t" | "--testNamePattern" => value,
                // It may leave out any of them.
                "-skip" => Some(""),
                "-Dtest" => value
                    .and_then(|tests| tests.split_once('#'))
                    .map(|(_, names)| names),
                _ => None,
            };
            // What a negation leaves out is not known: `!A#b`, `(?!b|c)`.
            let negates = value.is_some_and(|value| value.contains('!'));
            let filter = filter.map(|filter| if negates { "" } else { filter });
            picked.extend(filter.into_iter().flat_map(alternatives));
        }
        picked
    }

    /// Removes the flags that change the directory, and applies them.
    fn take_directory(&mut self) {
        let packages = is_among(PACKAGE_MANAGERS, base_name(&self.words[0]));
        let elsewhere = |word: &String| {
            let flag = word.split('=').next().unwrap_or_default();
            packages && is_among(WORKSPACE_WORDS, flag)
        };
        if is_among(FOREIGN, base_name(&self.words[0])) || self.words.iter().any(elsewhere) {
            self.directory = None;
            return;
        }
        let mut at = 1;
        while at < self.words.len() {
            let Some((flag, value)) = self.directory_flag(at) else {
                at += 1;
                continue;
            };
            let Some(path) = value.or_else(|| self.words.get(at + 1).cloned()) else {
                return;
            };
            let whole = usize::from(self.words[at] == flag);
            self.words.drain(at..=at + whole);
            let path = match flag {
                "--manifest-path" => path.rsplit_once('/').map_or(".", |(parent, _)| parent),
                _ => &path,
            };
            self.directory = join_path(self.directory.as_deref(), path);
        }
    }

    /// Returns the directory flag at this word, and its value if that is part of the same word.
    fn directory_flag(&self, at: usize) -> Option<(&'static str, Option<String>)> {
        let word = &self.words[at];
        DIRECTORY_FLAGS.iter().find_map(|(program, flag)| {
            let fits = if *flag == "-C" {
                self.words.iter().all(|word| base_name(word) != "ctest")
            } else {
                program.is_empty()
                    || self
                        .words
                        .iter()
                        .any(|word| base_name(word).starts_with(program))
            };
            let rest = word.strip_prefix(flag).filter(|_| fits)?;
            match rest.strip_prefix('=') {
                Some(value) => Some((*flag, Some(value.to_owned()))),
                None if rest.is_empty() => Some((*flag, None)),
                // `-Cdir`, and `--directory-of-others`.
                None => (*flag == "-C").then(|| (*flag, Some(rest.to_owned()))),
            }
        })
    }

    /// Returns the certainty, 0 to 2, that it runs this runner, and the tests that it requests; 0 is a script that may run anything.
    pub(super) fn asks_of(&self, row: &Row) -> (u8, Scope) {
        if self.only_shows() {
            return (0, Scope::Some);
        }
        let (program, name) = row.called;
        let at = (0..self.words.len()).find(|at| {
            let before = &self.words[..*at];
            is_among(name, base_name(&self.words[*at]))
                && (program.is_empty()
                    || before.iter().any(|word| is_among(program, base_name(word))))
                && !before.iter().any(|word| is_among(NO_RUN, word))
        });
        if let Some(at) = at {
            let rest = &self.words[at + 1..];
            let is_test = |word: &String| matches!(word.as_str(), "test" | "check" | "build");
            // `gradle clean` succeeds, too.
            if row.word == "gradle test" && !rest.iter().any(is_test) {
                return (2, Scope::Some);
            }
            return (2, self.scope_of(rest, row));
        }
        // `npm test` and similar commands run what the project defines as all tests.
        let mut first = self.words.iter().take(3);
        let script = first.position(|word| word.starts_with("test"));
        let at = match base_name(&self.words[0]) {
            "make" | "just" | "task" | "composer" | "hatch" | "poe" => script,
            "tox" | "nox" => (self.words.len() == 1).then_some(0),
            manager => script.filter(|_| is_among(PACKAGE_MANAGERS, manager) && row.by_script),
        };
        let scope = at.map(|at| match self.scope_of(&self.words[at + 1..], row) {
            scope if is_among(WHOLE_SCRIPTS, &self.words[at]) || at == 0 => (1, scope),
            _ => (1, Scope::Some),
        });
        scope.unwrap_or((0, Scope::Some))
    }

    fn scope_of(&self, rest: &[String], row: &Row) -> Scope {
        let mut paths = Vec::new();
        let mut before = "";
        let is_gradle = row.word == "gradle test";
        // Behind `-p` pytest has a plugin, and others a package.
        let is_plugin = |flag: &str| row.word == "pytest" && flag == "-p";
        for word in rest {
            let word = word.as_str();
            let last = std::mem::replace(&mut before, word);
            let is_value = is_among(VALUED, last) || is_plugin(last);
            let flag = word.split('=').next().unwrap_or_default();
            if is_among(NARROW, flag) && !is_plugin(flag) || is_gradle && flag == "-x" {
                return Scope::Some;
            }
            let number = word.chars().all(|c| c.is_ascii_digit());
            if is_value || word.starts_with('-') || number || row.plain.contains(&word) {
                continue;
            }
            paths.push(
                word.trim_start_matches("./")
                    .trim_end_matches('/')
                    .to_owned(),
            );
        }
        match (self.doubtful, paths.is_empty()) {
            (true, _) => Scope::Some,
            (false, true) => Scope::All,
            (false, false) => Scope::Below(paths),
        }
    }
}

/// Returns `path` relative to `base`, without `.`, `..` and a trailing slash; `None` if it is not plain or `base` is not known.
fn join_path(base: Option<&str>, path: &str) -> Option<String> {
    if path.is_empty() || path.contains(['$', '`', '*', '?', '[', '{', '~']) || path == "-" {
        return None;
    }
    let whole = match base {
        _ if path.starts_with('/') => path.to_owned(),
        Some(base) => format!("{base}/{path}"),
        None => return None,
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Some(format!("/{}", parts.join("/")))
}

/// Returns the name of a program without its directories.
fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or_default()
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Reports whether a word is a group of short flags that contains this one: `-lc`.
fn is_flag_with(word: &str, flag: char) -> bool {
    word.strip_prefix('-')
        .is_some_and(|flags| flags.chars().all(char::is_alphabetic) && flags.contains(flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the directory of each command of a line that does more than show text.
    fn places(line: &str) -> Vec<String> {
        read_commands(line, Some("/p"))
            .into_iter()
            .filter(|command| !command.only_shows())
            .map(|command| command.directory.unwrap_or_else(|| "?".to_owned()))
            .collect()
    }

    #[test]
    fn each_command_has_the_directory_that_its_line_gives_it() {
        for (line, expected) in [
            ("pytest -q", &["/p"][..]),
            ("cd api && pytest", &["/p/api"]),
            (
                "cd api/ && pytest; cd ../web && pytest",
                &["/p/api", "/p/web"],
            ),
            ("(cd api && pytest); pytest", &["/p/api", "/p"]),
            ("cd /srv/./x/../y && go test ./...", &["/srv/y"]),
            ("cd \"my api\" && cargo test 2>&1 | tail -3", &["/p/my api"]),
            (
                "bash -lc 'cd web && npm test' && npm test",
                &["/p/web", "/p"],
            ),
            (
                "FOO=1 cargo test --manifest-path crates/x/Cargo.toml",
                &["/p/crates/x"],
            ),
            ("cargo test --manifest-path=Cargo.toml", &["/p"]),
            ("npm --prefix a test", &["/p/a"]),
            ("npm run test --prefix=b", &["/p/b"]),
            ("pnpm --dir c test && yarn --cwd d test", &["/p/c", "/p/d"]),
            ("go -C x test ./...", &["/p/x"]),
            ("make -C x test; make -Cy test", &["/p/x", "/p/y"]),
            ("uv --directory api run pytest", &["/p/api"]),
            ("env -C api python3 -m pytest", &["/p/api"]),
            ("./gradlew -p app test", &["/p/app"]),
            ("ctest --test-dir build -C Release", &["/p/build"]),
            ("npx vitest run --root web", &["/p/web"]),
            // A directory that is not known is not guessed.
            ("cd $DIR && pytest", &["?"]),
            ("cd ~/x && pytest", &["?"]),
            ("cd - && pytest", &["?"]),
            ("cd && pytest", &["?"]),
            ("pushd x && pytest && popd && pytest", &["/p/x", "?"]),
            (
                "for d in a b; do (cd \"$d\" && pytest); done; pytest",
                &["/p", "?", "/p", "/p"],
            ),
            ("npm test -w web", &["?"]),
            ("pnpm --filter=web test", &["?"]),
            ("yarn workspace web test", &["?"]),
            ("docker compose exec api pytest", &["?"]),
            (
                "cat > x.sh <<EOF\ncd api\npytest\nEOF\npytest",
                &["?", "?", "?"],
            ),
        ] {
            assert_eq!(places(line), expected, "{line}");
        }
        let unknown = read_commands("cd x && pytest; cd /y && pytest", None);
        let places: Vec<_> = unknown.iter().map(|one| one.directory.as_deref()).collect();
        assert_eq!(places, [None, None, None, Some("/y")]);
    }

    #[test]
    fn a_line_that_may_leave_the_shell_elsewhere_is_known() {
        for line in ["cd x && pytest", "(cd x; ls)", "pushd a", "a;cd b"] {
            assert!(changes_directory(line), "{line}");
        }
        for line in ["pytest abcd", "pytest --no-cd", "cargo test", "abcd_cd x"] {
            assert!(!changes_directory(line), "{line}");
        }
    }
}
