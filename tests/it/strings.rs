//! Every text that a user may read, in one file: `docs/strings.txt`. It is there to be read aloud from top to bottom, and shows each
//! change of a text in the difference.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The rooms whose texts are read by users; what only logs or programs read stands elsewhere.
const ROOMS: [&str; 7] = [
    "src/app",
    "src/autopilot",
    "src/cli",
    "src/config",
    "src/keymap.rs",
    "src/supervisor",
    "src/ui",
];

fn sources(path: &Path, into: &mut Vec<PathBuf>) {
    if path.is_file() {
        let name = path.file_name().and_then(|name| name.to_str());
        if name != Some("tests.rs") && path.extension().is_some_and(|one| one == "rs") {
            into.push(path.to_owned());
        }
        return;
    }
    if path.file_name().is_some_and(|name| name == "tests") {
        return;
    }
    for entry in fs::read_dir(path).expect("a directory") {
        sources(&entry.expect("an entry").path(), into);
    }
}

/// The string literals of a source without its tests, comments, and the texts of invariants and of the trace.
fn literals(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut rest = source;
    let mut before = String::new();
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some((text, length)) = raw(rest) {
            found.push((before.clone(), text));
            length
        } else if c == '"' {
            let (text, length) = plain(rest);
            found.push((before.clone(), text));
            length
        } else if c == '\'' {
            character(rest)
        } else {
            c.len_utf8()
        };
        before.push_str(&rest[..length]);
        let cut = before.len().saturating_sub(60);
        before.drain(..before.ceil_char_boundary(cut));
        rest = &rest[length..];
    }
    let inward = |before: &str| {
        let call = before.trim_end();
        ["expect(", "reason =", "env::var_os(", "debug!("]
            .iter()
            .any(|end| call.ends_with(end))
            || call.contains("tracing::")
            || call.ends_with("allow(")
    };
    found
        .into_iter()
        .filter(|(before, text)| !inward(before) && is_read(text))
        .map(|(_, text)| text)
        .collect()
}

/// A sentence, a label of several words, or a hint; names, formats and paths are not.
fn is_read(text: &str) -> bool {
    let words = text.split_whitespace();
    let words = words.filter(|word| word.chars().filter(char::is_ascii_lowercase).count() > 1);
    words.count() > 1 && !text.contains("\\x1b") && !text.contains("SELECT ")
}

/// A literal in quotes and its length in the source.
fn plain(rest: &str) -> (String, usize) {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (text, at + 1),
            '\\' => match chars.next() {
                // A line that goes on: the blanks at the next one's beginning do not count.
                Some((_, '\n')) => while chars.next_if(|(_, c)| c.is_whitespace()).is_some() {},
                Some((_, 'n')) => text.push(' '),
                Some((_, other)) if other == '"' || other == '\\' => text.push(other),
                Some((_, other)) => text.extend(['\\', other]),
                None => break,
            },
            c => text.push(c),
        }
    }
    (text, rest.len())
}

/// A raw literal, if one stands here.
fn raw(rest: &str) -> Option<(String, usize)> {
    let behind = rest.strip_prefix('r')?;
    let marks = behind.bytes().take_while(|byte| *byte == b'#').count();
    let text = behind[marks..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(marks));
    let end = text.find(&close)?;
    Some((text[..end].to_owned(), 1 + marks + 1 + end + close.len()))
}

/// The length of a character literal, or of the mark of a lifetime.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            let behind = rest.get(3..).unwrap_or_default();
            behind.find('\'').map_or(1, |at| 3 + at + 1)
        }
        Some(_) => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => 1,
        },
        None => 1,
    }
}

/// The help of a command and of those below it.
fn help(words: &[&str], into: &mut String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pitstop"));
    let output = command
        .args(words)
        .arg("--help")
        .output()
        .expect("pitstop runs");
    assert!(output.status.success(), "{words:?}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let _ = writeln!(into, "\n== pitstop {}\n", words.join(" "));
    into.push_str(&text);
    let below = text.split("Commands:\n").nth(1).unwrap_or_default();
    let names = below.lines().take_while(|line| line.starts_with("  "));
    let names = names.filter_map(|line| line.get(2..)?.split(' ').next());
    for name in names.filter(|name| !name.is_empty() && *name != "help") {
        help(&[words, &[name]].concat(), into);
    }
}

#[test]
fn every_text_that_a_user_reads_stands_in_one_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for room in ROOMS {
        sources(&root.join(room), &mut files);
    }
    files.sort();
    let mut all = String::from(
        "Every text that a user may read, made by `cargo test --test it strings::` (PITSTOP_STRINGS=write writes it again).\n",
    );
    for file in files {
        let source = fs::read_to_string(&file).expect("a source");
        let texts = literals(&source);
        if texts.is_empty() {
            continue;
        }
        let name = file.strip_prefix(root).expect("below the root");
        let _ = writeln!(all, "\n== {}\n", name.display());
        for text in texts {
            let _ = writeln!(all, "{}", text.trim().replace('\n', " "));
        }
    }
    help(&[], &mut all);
    let path = root.join("docs/strings.txt");
    if std::env::var_os("PITSTOP_STRINGS").is_some_and(|value| value == "write") {
        fs::write(&path, &all).expect("written");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let differs = kept
        .lines()
        .zip(all.lines())
        .find(|(kept, now)| kept != now);
    assert!(
        kept == all,
        "docs/strings.txt is not as the texts are now (first difference: {differs:?}); PITSTOP_STRINGS=write writes it again"
    );
}
