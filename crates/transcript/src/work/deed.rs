//! What a call did, so that a later call is known to have done the same: for a shell line its pipelines, each with its directory
//! and its variables, and whether the exit status of the line is theirs.

use crate::{
    facts::{SAYS_NOTHING, SET_UP, is_variable},
    shell::{Kind, Token, tokens},
    words::{is_among, on_one_line},
};

use super::{excerpt::verdict, places::join_path};

/// The programs that only show what others have made, and hide their exit status behind a pipe, and those that only prepare the files.
const ASIDE: &str = "awk|bat|cat|chmod|column|cp|cut|diff|dmesg|egrep|fgrep|find|grep|head|journalctl|jq|kill|less|ln|ls|mkdir|more|mv|\
    pkill|rg|rm|sed|sort|tac|tail|tee|touch|tr|uniq|wc|xargs";

/// The words behind a program with which it does the same.
const ASIDE_WORDS: &str = "add|blame|diff|grep|log|logs|show|view";

/// The words that begin, join and end a compound command, whose status may be that of any part.
const COMPOUND: &str =
    "!|case|do|done|elif|else|esac|fi|for|function|if|select|then|until|while|{|}";

/// The words in front of a program that change nothing of what it does.
const WRAPPERS: &str = "command|exec|nice|time|timeout";

/// The flags that choose some of the tests or packages, and those with which a program does not do its work, or does it elsewhere.
const NARROWS: &str = "-E|-L|-R|-g|-k|-m|-p|-pl|-run|-t|-w|-Dtest|--bin|--bins|--deselect|--doc|--example|--exclude|--filter|--grep|--group|\
    --ignore|--last-failed|--lf|--lib|--only|--package|--scope|--skip|--tag|--test|--testNamePattern|--test-name-pattern|--tests";
const IDLE: &str = "-C|-V|-h|-n|--check|--co|--collect-only|--cwd|--directory|--dry-run|--help|--list|--listTests|--manifest-path|--no-run|\
    --prefix|--version";

/// The flags that change nothing of what a runner of tests runs.
const QUIET: &str = "--|-q|-s|-v|-vv|-x|--no-capture|--nocapture|--quiet|--trace|--verbose";

/// The parts of words by which a program is known to test or check what others make.
const CHECKS: [&str; 8] = [
    "build", "check", "clippy", "fmt", "lint", "spec", "test", "tsc",
];
const TESTS: [&str; 6] = ["jest", "mocha", "phpunit", "spec", "test", "tox"];

/// What a call did; see the top of this file.
#[derive(Clone, Debug, Default)]
pub(super) struct Deed {
    /// The whole call in one line.
    line: String,
    /// The directory in which it began; empty if that is not known.
    place: String,
    parts: Vec<Part>,
    /// True if its exit status is not that of each of its parts.
    is_masked: bool,
}

/// A pipeline of a shell line, without the programs at its end that only show its output.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    place: String,
    /// Its variables, its program and arguments; `|` is a word.
    words: Vec<String>,
    /// True if it worked where the line did.
    is_own: bool,
    /// True if it may be what failed where the line did.
    may_fail: bool,
}

impl Deed {
    /// Creates that of a call which is no shell line.
    pub(super) fn of_call(line: String) -> Self {
        Self {
            line,
            ..Self::default()
        }
    }

    /// Creates that of a shell line which begins in this directory.
    pub(super) fn of_line(line: &str, directory: &str) -> Self {
        let mut reader = Reader {
            place: directory.to_owned(),
            ..Reader::default()
        };
        reader.read_line(line);
        let mut parts = reader.parts;
        if parts.iter().any(|part| !part.is_aside()) {
            parts.retain(|part| !part.is_aside());
        }
        let is_aside = parts.iter().all(Part::is_aside);
        let is_masked = reader.is_compound || parts.iter().any(|part| !part.is_own);
        if reader.is_compound {
            parts.clear();
        }
        Self {
            line: on_one_line(line),
            place: directory.to_owned(),
            parts,
            is_masked: is_masked && !is_aside,
        }
    }

    /// Reports whether nothing is known of it.
    pub(super) fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// Returns whether the call worked, by its exit status or else by its output; none if neither shows it. What its output shows to
    /// have worked is known to have.
    pub(super) fn outcome(&mut self, failed: bool, output: &str) -> Option<bool> {
        if failed || !self.is_masked {
            return Some(!failed);
        }
        let verdict = verdict(output);
        for part in &mut self.parts {
            part.is_own |= verdict == Some(true);
        }
        let is_own = self.parts.iter().any(|part| part.is_own);
        verdict.or_else(|| is_own.then_some(true))
    }

    /// Reports whether the other one did the same, in the same place.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let same = |(one, other): (&Part, &Part)| one.is_same(other);
        let mut both = self.parts.iter().zip(&other.parts);
        self.is_same_line(other)
            || !self.parts.is_empty() && self.parts.len() == other.parts.len() && both.all(same)
    }

    /// Reports whether the other one is the same line in the same place: then both have the status of the same program.
    pub(super) fn is_same_line(&self, other: &Self) -> bool {
        self.line == other.line && is_same_place(&self.place, &other.place)
    }

    /// Forgets the parts of this failed one that have worked in a later one; returns whether none is left. The last one is what the
    /// others were for, unless they check something.
    pub(super) fn is_done_by(&mut self, later: &Self) -> bool {
        let has_worked = |part: &Part| {
            let mut worked = later.parts.iter().filter(|one| one.is_own);
            worked.any(|one| one.overtakes(part))
        };
        let may_fail = self.parts.iter().any(|part| part.may_fail);
        let known = self.parts.len();
        let is_reached = self.parts.last().is_some_and(has_worked);
        self.parts.retain(|part| {
            let is_wanted = !is_reached || part.names(&CHECKS);
            part.may_fail == may_fail && is_wanted && !has_worked(part)
        });
        self.is_same_line(later) || self.parts.is_empty() && known > 0
    }
}

impl Part {
    /// Returns its program, without what is in front of it.
    fn program(&self) -> &str {
        let mut words = self.words.iter().filter(|word| !is_variable(word));
        words.next().map_or("", String::as_str)
    }

    /// Reports whether it is beside the work: it shows, prepares or says something.
    fn is_aside(&self) -> bool {
        let program = self.program();
        let mut behind = self.words.iter().skip(1).take(3);
        is_among(ASIDE, program)
            || is_among(SAYS_NOTHING, program)
            || behind.any(|word| is_among(ASIDE_WORDS, word))
    }

    /// Reports whether its program or the first words behind it contain one of these.
    fn names(&self, marks: &[&str]) -> bool {
        let mut words = self.words.iter().take(3);
        words.any(|word| !word.contains(['.', '=']) && marks.iter().any(|mark| word.contains(mark)))
    }

    /// Reports whether nothing of the other one, which failed, is open once this one has worked: it is the same, or the same with more
    /// flags, or the same runner with tests that are no fewer.
    fn overtakes(&self, failed: &Self) -> bool {
        if self.is_same(failed) {
            return true;
        }
        let lacking = |one: &Self, other: &Self| -> Vec<String> {
            let words = one.words.iter().filter(|word| !other.words.contains(word));
            words.cloned().collect()
        };
        let (extra, missing) = (lacking(self, failed), lacking(failed, self));
        let is_flag = |word: &String| word.starts_with('-');
        let name = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
        let narrows =
            |word: &str| is_among(NARROWS, &name(word)) || word.starts_with("--workspace=");
        let is_variable_of = |word: &String| is_variable(word);
        let is_joined = |word: &String| matches!(word.as_str(), "|" | "<" | "(");
        if !is_same_place(&self.place, &failed.place)
            || self.program() != failed.program()
            || extra.iter().chain(&missing).any(is_variable_of)
            || self.words.iter().chain(&failed.words).any(is_joined)
            || extra.iter().any(|word| is_among(IDLE, &name(word)))
        {
            return false;
        }
        if self.names(&TESTS) && failed.names(&TESTS) {
            let is_above = |word: &String| {
                let path = word.trim_end_matches("...").trim_end_matches('/');
                missing.iter().any(|below| below.starts_with(path)) || word == "./..."
            };
            let is_number = |word: &String| word.bytes().all(|byte| byte.is_ascii_digit());
            return extra.iter().all(|word| {
                (is_flag(word) || is_number(word) || is_above(word)) && !narrows(word)
            }) && missing
                .iter()
                .all(|word| !is_flag(word) || narrows(word) || is_among(QUIET, word));
        }
        // The directory itself is no part of it.
        let is_part = |(at, word): (usize, &String)| {
            narrows(word) && extra.get(at + 1).is_none_or(|of| of != ".")
        };
        missing.is_empty()
            && extra.first().is_some_and(is_flag)
            && !extra.iter().enumerate().any(is_part)
    }

    fn is_same(&self, other: &Self) -> bool {
        is_same_place(&self.place, &other.place) && self.words == other.words
    }
}

/// Reports whether two directories are the same as far as they are known.
fn is_same_place(one: &str, other: &str) -> bool {
    let (long, short) = if one.len() < other.len() {
        (other, one)
    } else {
        (one, other)
    };
    let rest = long.strip_suffix(short);
    rest.is_some_and(|rest| rest.is_empty() || short.is_empty() || rest.ends_with('/'))
}

/// A reader of a shell line.
#[derive(Default)]
struct Reader {
    parts: Vec<Part>,
    place: String,
    /// The directories of the shells around a subshell.
    outer: Vec<String>,
    words: Vec<String>,
    /// The number of the brackets that are open within a command.
    nested: usize,
    is_compound: bool,
    /// True if the shell ends with the first command that fails, and if a pipeline fails with any program of it.
    stops: bool,
    pipes_fail: bool,
    /// True if the next command does not depend on those before it, and if one follows `||`.
    is_next: bool,
    is_either: bool,
}

impl Reader {
    fn read_line(&mut self, line: &str) {
        for Token { kind, text, place } in tokens(line) {
            match (kind, text.as_str()) {
                (Kind::Document, _) => {
                    self.words.push(line[place.start..].to_owned());
                    self.end_pipeline();
                    return;
                }
                // What comes from a file belongs to the command, where its output goes does not.
                (Kind::Target, _) if line[..place.start].trim_end().ends_with('<') => {
                    self.words.extend(["<".to_owned(), text]);
                }
                (Kind::Target, _) => {}
                (Kind::Word, _) => self.words.push(text),
                (_, "(") if !self.words.is_empty() => {
                    self.nested += 1;
                    self.words.push(text);
                }
                (_, sign) if self.nested > 0 && place.start < line.len() => {
                    self.nested -= usize::from(sign == ")");
                    self.words.push(text);
                }
                (_, "|") => {
                    // A subshell is before it.
                    for part in self.parts.iter_mut().filter(|_| self.words.is_empty()) {
                        part.is_own = self.pipes_fail;
                    }
                    self.words.push(text);
                }
                (_, sign) => self.take_sign(sign),
            }
        }
    }

    fn take_sign(&mut self, sign: &str) {
        self.end_pipeline();
        match sign {
            "(" => self.outer.push(self.place.clone()),
            ")" => self.place = self.outer.pop().unwrap_or_default(),
            "&&" => {}
            "||" => {
                self.is_either = true;
                for part in &mut self.parts {
                    part.is_own = false;
                }
            }
            sign => {
                self.is_next = true;
                if let Some(last) = self.parts.last_mut().filter(|_| sign == "&") {
                    last.is_own = false;
                }
            }
        }
    }

    fn end_pipeline(&mut self) {
        let mut words = std::mem::take(&mut self.words);
        let mut is_own = true;
        while let Some(at) = words.iter().rposition(|word| word == "|")
            && words.get(at + 1).is_none_or(|word| is_among(ASIDE, word))
        {
            words.truncate(at);
            is_own = self.pipes_fail;
        }
        if is_among(WRAPPERS, words.first().map_or("", String::as_str)) {
            words.remove(0);
            let is_its_own =
                |word: &&String| word.starts_with(|c: char| c == '-' || c.is_ascii_digit());
            let own = words.iter().take_while(is_its_own).count();
            words.drain(..own);
        }
        while words.first().is_some_and(|word| is_among(COMPOUND, word)) {
            self.is_compound = true;
            let of_shell =
                ["case", "for", "function", "select"].contains(&words.remove(0).as_str());
            words.drain(if of_shell { 0.. } else { words.len().. });
        }
        let Some(first) = words.first() else { return };
        if self.is_next && !self.stops {
            for part in &mut self.parts {
                (part.is_own, part.may_fail) = (false, false);
            }
        }
        self.is_either &= !std::mem::take(&mut self.is_next);
        match first.as_str() {
            "cd" | "pushd" => {
                let target = words[1..].iter().find(|word| !word.starts_with('-'));
                let target = target.map_or("~", |target| {
                    target.trim_start_matches("./").trim_end_matches('/')
                });
                self.place = match self.place.as_str() {
                    "" => target.to_owned(),
                    place => join_path(place, target),
                };
            }
            "set" => {
                self.pipes_fail |= words.iter().any(|word| word == "pipefail");
                self.stops |= words
                    .iter()
                    .any(|word| word.starts_with('-') && word.contains('e'));
            }
            first if is_among(SET_UP, first) => {}
            _ => self.parts.push(Part {
                place: self.place.clone(),
                words,
                is_own: is_own && !self.is_either,
                may_fail: true,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether a line that failed is done by a later one that worked, with what that one printed.
    fn is_done(failed: &str, later: &str, output: &str) -> bool {
        let (mut failed, mut later) = (Deed::of_line(failed, "/p"), Deed::of_line(later, "/p"));
        match later.outcome(false, output) {
            Some(worked) => worked && failed.is_done_by(&later),
            None => failed.is_same_line(&later),
        }
    }

    #[test]
    fn a_failure_is_done_by_the_same_pipeline_in_the_same_place_with_the_same_variables() {
        for (failed, later, done) in [
            ("cd /p && cargo test 2>&1 | tail", "cargo test", true),
            (
                "cd web && npm run build",
                "cd ./web/ && npm run build > log",
                true,
            ),
            ("(cd web && npm run lint)", "cd /p/web; npm run lint", true),
            ("make", "export A=1 && make && make install", true),
            ("time make -j 4", "timeout 60 make -j 4", true),
            (
                "cat a.json | ./import.sh",
                "cat a.json | ./import.sh | head",
                false,
            ),
            ("cat a.json | ./import.sh", "cat a.json | ./import.sh", true),
            ("cat a.json | ./import.sh", "cat a.json", false),
            ("psql < a.sql | sort", "psql", false),
            ("echo $(date) | nc -l", "echo $(date)", false),
            ("cd web && npm run build", "cd api && npm run build", false),
            (
                "(cd web && npm run lint)",
                "(cd api && npm run lint)",
                false,
            ),
            (
                "(cd web && ls); npm run lint",
                "cd web && npm run lint",
                false,
            ),
            ("NODE_ENV=production npm run build", "npm run build", false),
            (
                "for p in a b; do make $p; done",
                "for p in a b; do make $p; done",
                true,
            ),
            ("for p in a b; do make $p; done", "make $p", false),
            ("tail log", "cat log", false),
        ] {
            assert_eq!(is_done(failed, later, ""), done, "{failed} -> {later}");
        }
    }

    #[test]
    fn a_failure_is_done_by_what_goes_further_and_by_nothing_narrower() {
        for (failed, later) in [
            ("mix test test/a_test.exs", "mix test --seed 0"),
            (
                "cd web && pytest tests/a.py::x -q",
                "cd web && pytest tests",
            ),
            (
                "cargo test -p x parser -- --nocapture",
                "cargo test --workspace",
            ),
            ("go test ./a", "go test ./..."),
            ("npx jest -t sum src/a.test.ts", "npx jest --coverage"),
            ("./gradlew test --tests A", "./gradlew test"),
            (
                "git add a dist/x.css && git commit -m one",
                "git add -f dist/x.css && git commit -m one",
            ),
            ("mkdir out && ./run.sh", "./run.sh"),
            ("pip install x && python app.py", "python app.py"),
            ("git push", "git push --set-upstream origin x"),
            ("npm install", "npm install --legacy-peer-deps"),
            ("npx tsc --noEmit", "npx tsc --noEmit -p ."),
            ("A=1 make all", "A=1 make all -j 4"),
        ] {
            assert!(is_done(failed, later, ""), "{failed} -> {later}");
        }
        for (failed, later) in [
            ("mix test", "mix test test/a_test.exs"),
            ("pytest tests/a.py", "pytest tests/b.py"),
            ("pytest", "pytest -k sum"),
            ("cargo test", "cargo test -p x"),
            ("cargo test --no-default-features", "cargo test"),
            ("cargo build", "cargo build -p x"),
            ("cargo build", "cargo build --help"),
            ("npm test", "npm test --workspace=web"),
            ("npm run lint && npm run build", "npm run build"),
            ("cargo fmt --check && cargo test", "cargo test"),
            ("make", "make clean"),
            ("make -C a", "make -C b"),
            ("make", "make -C a"),
            ("git push", "git push origin x"),
            ("A=1 make all", "make all -j 4"),
            ("make all", "A=1 make all"),
            ("git push", "git stash push -m x"),
            ("terraform apply", "terraform apply --dry-run"),
        ] {
            assert!(!is_done(failed, later, ""), "{failed} -> {later}");
        }
        // One part after the other.
        let mut failed = Deed::of_line("npm run lint && npm run build", "/p");
        assert!(!failed.is_done_by(&Deed::of_line("npm run lint", "/p")));
        assert!(failed.is_done_by(&Deed::of_line("npm run build", "/p")));
    }

    #[test]
    fn an_exit_status_that_is_not_the_programs_own_shows_nothing_and_its_output_may() {
        for later in [
            "npm run build 2>&1 | tail -5",
            "npm run build || true",
            "npm run build; echo $?",
            "npm run build > /tmp/log 2>&1; tail -3 /tmp/log",
            "npm run build | tee log | head\ngit status",
            "npm run build & sleep 5",
            "(npm run build) 2>&1 | tail -5",
        ] {
            let mut deed = Deed::of_line(later, "/p");
            assert!(!is_done("npm run build", later, "dist/a.js"), "{later}");
            assert!(is_done("npm run build", later, "built in 2 s"), "{later}");
            assert_eq!(
                deed.outcome(false, "a.ts(3,4): error TS2322: x"),
                Some(false),
                "{later}"
            );
            assert!(is_done(later, later, "dist/a.js"), "{later}");
        }
        for own in [
            "npm run build",
            "cd web && npm run build && echo ok",
            "set -o pipefail; npm run build | tail -5",
            "set -e; npm run build; ls dist",
            "rm -rf dist; npm run build 2>&1",
        ] {
            assert!(
                is_done(
                    "cd web; npm run build",
                    &format!("cd web; {own}").replace("cd web; cd", "cd"),
                    ""
                ),
                "{own}"
            );
        }
        // What others have made is no failure of the program that shows it.
        for shows in [
            "journalctl -u api 2>&1 | tail -50",
            "gh run view 12 --log-failed | tail -50",
            "dmesg | tail; ls",
            "cat log | tail",
            "grep -rn 'error:' src | head; ls",
            "git log | head",
            "docker logs api 2>&1 | tail",
            "for f in a b; do echo $f; cat $f; done",
        ] {
            let mut deed = Deed::of_line(shows, "/p");
            assert_eq!(
                deed.outcome(false, "error: it broke"),
                Some(true),
                "{shows}"
            );
        }
    }

    #[test]
    fn a_call_that_its_output_shows_to_have_failed_is_a_failure_and_its_step_says_so() {
        use crate::work::{Work, WorkAtHand};
        use serde_json::json;
        let work = |runs: &[(&str, &str, bool)]| -> WorkAtHand {
            let mut work = Work::default();
            for (command, output, failed) in runs {
                let call = json!({"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": command}});
                work.take_record(
                    &json!({"type": "assistant", "cwd": "/p", "message": {"content": [call]}}),
                );
                let result = json!({"type": "tool_result", "tool_use_id": "1", "content": output, "is_error": failed});
                let background = output.starts_with("Command running").then_some("b1");
                work.take_record(&json!({"type": "user", "cwd": "/p", "toolUseResult": {"backgroundTaskId": background},
                    "message": {"content": [result]}}));
            }
            work.report()
        };
        let error = "a.ts(3,4): error TS2322: x";
        let first = ("npm run build", error, true);
        for (later, printed, failed) in [
            ("npm run build 2>&1 | tail -5", error, true),
            (
                "npm run build; echo $?",
                "a.ts(3,4): error TS2322: x\n2",
                true,
            ),
            ("npm run build | head -2", "> build", false),
            (
                "npm run build",
                "Command running in background with ID: b1",
                false,
            ),
        ] {
            let report = work(&[first, (later, printed, false)]);
            let failure = report.last_failure.unwrap_or_default();
            assert_eq!(failure.call, if failed { later } else { first.0 });
            assert_eq!(failure.lines, [error]);
            let steps = format!("{:?}", report.steps);
            assert_eq!(
                steps.matches("Failed").count(),
                1 + usize::from(failed),
                "{steps}"
            );
            let done = work(&[first, (later, printed, false), ("npm run build", "", false)]);
            assert!(done.last_failure.is_none() && done.tried.is_empty());
        }
        // The next session reads the same from the steps.
        let handoff = format!(
            "pitstop handoff \u{b7} r \u{b7} iteration 1 \u{b7} 0a1b2c3d\n\n## Last steps\n\n```\n$ npm run build\n  failed:\n    {error}\n\
             $ npm run build | head -2\n  printed:\n    > build\n```\n"
        );
        let mut next = Work::default();
        next.take_record(&json!({"type": "user", "cwd": "/p", "message": {"content": handoff}}));
        assert_eq!(next.report().last_failure.unwrap_or_default().call, first.0);
    }
}
