//! Recognises commits in the output of an agent's shell commands.
//!
//! Git reports a commit in one line, `[main 1a2b3c4] the subject`, and often its size in the next. Only the output of
//! command lines that commit is read: a log that shows such a line is not a commit.

use std::sync::LazyLock;

use regex::Regex;

use pitstop_base::clean;

/// The longest subject or branch kept, in characters.
const TEXT_CAP: usize = 300;

/// The longest message kept, in bytes: longer ones are documents, and the commit itself has them.
const MESSAGE_CAP: usize = 8 * 1024;

/// The most output that is read, in bytes; if it is longer, its end is read.
const OUTPUT_CAP: usize = 256 * 1024;

/// A commit, as far as its observer could know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// The commit's id, whole or abbreviated, in lower case.
    pub sha: String,
    /// The branch; `None` when the head is detached.
    pub branch: Option<String>,
    /// The first line of its message, safe to show.
    pub subject: String,
    /// The whole message as far as it is known, safe to show.
    pub message: String,
    /// The number of files that it changed, if reported.
    pub files: Option<u64>,
}

impl Made {
    /// Creates a commit from the data that an external caller reports, shortened and made safe to show.
    pub fn from_report(sha: &str, branch: Option<&str>, message: &str, files: Option<u64>) -> Self {
        let branch = branch.map(str::trim).filter(|name| !name.is_empty());
        let message = message.trim();
        let whole = clean::text(message);
        Self {
            sha: sha.to_ascii_lowercase(),
            branch: branch.map(|name| clean::stripped(name, TEXT_CAP)),
            subject: clean::stripped(message.lines().next().unwrap_or(""), TEXT_CAP),
            message: whole[..whole.floor_char_boundary(MESSAGE_CAP)].to_owned(),
            files,
        }
    }

    /// Returns the id in the short form of seven digits that people write.
    pub fn short_id(&self) -> &str {
        self.sha.get(..7).unwrap_or(&self.sha)
    }

    /// Reports whether two ids, either of which may be abbreviated, can belong to the same commit.
    pub fn is(&self, sha: &str) -> bool {
        self.sha.starts_with(sha) || sha.starts_with(&self.sha)
    }
}

/// Returns the commits that a shell command line has made, in order, according to its output.
pub fn find_commits(command: &str, printed: &str) -> Vec<Made> {
    if !makes_commits(command) {
        return Vec::new();
    }
    let start = printed.ceil_char_boundary(printed.len().saturating_sub(OUTPUT_CAP));
    let text = clean::without_escapes(&printed[start..]);
    let mut found: Vec<Made> = Vec::new();
    for line in text.lines() {
        if let Some(made) = read_line(line) {
            found.push(made);
        } else if let (Some(last), Some(files)) = (found.last_mut(), files_in(line)) {
            last.files.get_or_insert(files);
        }
    }
    found
}

/// Reports whether the line runs git with a verb that makes commits. Quotes are not parsed: a wrong guess costs no more than
/// one search of the output.
fn makes_commits(line: &str) -> bool {
    const VERBS: [&str; 6] = ["commit", "merge", "cherry-pick", "revert", "rebase", "am"];
    line.split(['&', '|', ';', '\n', '(', ')', '`'])
        .any(|part| {
            let mut words = part.split_whitespace();
            words.any(|word| word.rsplit('/').next() == Some("git"))
                && words.any(|word| VERBS.contains(&word))
        })
}

/// Reads `[main 1a2b3c4] subject`, `[main (root-commit) 1a2b3c4] subject` and `[detached HEAD 1a2b3c4] subject`.
fn read_line(line: &str) -> Option<Made> {
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        // A branch's name has no space in it.
        let line = r"^\[(?:(?<branch>\S+)|[^\]]+?)(?: \(root-commit\))? (?<sha>[0-9A-Fa-f]{7,64})\] (?<subject>.*)";
        Regex::new(line).expect("a valid pattern")
    });
    let found = LINE.captures(line)?;
    let branch = found.name("branch").map(|branch| branch.as_str());
    Some(Made::from_report(
        &found["sha"],
        branch,
        &found["subject"],
        None,
    ))
}

/// Returns the number of files in ` 2 files changed, 3 insertions(+)`.
fn files_in(line: &str) -> Option<u64> {
    let (count, rest) = line.strip_prefix(' ')?.split_once(" file")?;
    count
        .parse()
        .ok()
        .filter(|_| rest.trim_start_matches('s').starts_with(" changed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(sha: &str, branch: Option<&str>, subject: &str, files: Option<u64>) -> Made {
        Made::from_report(sha, branch, subject, files)
    }

    #[test]
    fn a_commit_is_read_with_its_branch_and_size() {
        let printed = "[main 1a2b3c4] parser: read dates\n 2 files changed, 3 insertions(+)\n create mode 100644 a\n";
        assert_eq!(
            find_commits(
                "cd x && git add -A && git commit -m 'parser: read dates'",
                printed
            ),
            [made("1a2b3c4", Some("main"), "parser: read dates", Some(2))]
        );
        let printed = "[feature/a-b (root-commit) 1a2b3c4d5e] first\n 1 file changed, 0 insertions(+), 0 deletions(-)\n";
        assert_eq!(
            find_commits("/usr/bin/git -c x=y commit", printed),
            [made("1a2b3c4d5e", Some("feature/a-b"), "first", Some(1))]
        );
        assert_eq!(
            find_commits(
                "git commit --amend",
                "[detached HEAD 1a2b3c4] x]] y\n Date: now\n"
            ),
            [made("1a2b3c4", None, "x]] y", None)]
        );
    }

    #[test]
    fn several_commits_of_one_line_are_distinguished() {
        let printed = "[main 1111111] a\n 1 file changed\n[main 2222222] b\n 4 files changed\n";
        let shas = find_commits("git commit -m a; git commit -m b", printed);
        let found: Vec<_> = shas.iter().map(|one| (one.short_id(), one.files)).collect();
        assert_eq!(found, [("1111111", Some(1)), ("2222222", Some(4))]);
    }

    #[test]
    fn what_commits_nothing_is_not_read() {
        let line = "[main 1a2b3c4] x\n";
        for command in [
            "git log",
            "cat notes",
            "echo git; echo commit",
            "gitk commit",
            "git status",
        ] {
            assert_eq!(find_commits(command, line), [], "{command}");
        }
        for printed in [
            "",
            "[main] x",
            "[main 1a2b] x",
            "[main 1a2b3cx] x",
            "[1a2b3c4] x",
            "[main 1a2b3c4]x",
        ] {
            assert_eq!(find_commits("git commit", printed), [], "{printed}");
        }
    }

    #[test]
    fn what_others_wrote_is_made_safe_to_show() {
        let one = Made::from_report("ABCDEF1", Some(" "), "a\u{1b}]0;x\u{7}b\nc", None);
        assert_eq!((one.sha.as_str(), one.branch.as_deref()), ("abcdef1", None));
        assert_eq!(one.subject, "a]0;xb");
        assert_eq!(one.message, "a\\u{1b}]0;x\\u{7}b\nc");
        let long = Made::from_report(
            "abcdef1",
            Some(&"b".repeat(9_000)),
            &"s".repeat(9_000),
            None,
        );
        assert_eq!((long.subject.len(), long.branch.unwrap().len()), (300, 300));
        assert_eq!(long.message.len(), MESSAGE_CAP);
    }

    #[test]
    fn an_abbreviated_id_is_the_whole_ones() {
        let whole = made(&"1a2b3c4d".repeat(5), None, "x", None);
        assert!(whole.is("1a2b3c4") && made("1a2b3c4", None, "", None).is(&whole.sha));
        assert!(!whole.is("1a2b3c5"));
    }
}
