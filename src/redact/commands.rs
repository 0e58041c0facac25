//! Passwords in the arguments of commands.

use memchr::memmem;

use super::{Found, PASSWORD, is_value};

/// The longest argument that can hold a password, in bytes.
const REACH: usize = 512;

/// No password that is worth a mask is shorter, in bytes.
const LEAST: usize = 3;

/// How a command takes a password.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `-pX`: a blank behind the option would make it ask.
    Attached,
    /// `-p X` or `-pX`.
    Either,
    /// `-u user:X`.
    Login,
}

/// A command, or the last of the words that name it, with an option that takes a password.
const COMMANDS: [(&str, &str, Form); 12] = [
    ("mysql", "-p", Form::Attached),
    ("mariadb", "-p", Form::Attached),
    ("sshpass", "-p", Form::Either),
    ("redis-cli", "-a", Form::Either),
    ("redis-cli", "--pass", Form::Either),
    ("login", "-p", Form::Either),
    ("ldapsearch", "-w", Form::Either),
    ("curl", "-u", Form::Login),
    ("curl", "--user", Form::Login),
    ("curl", "-U", Form::Login),
    ("curl", "--proxy-user", Form::Login),
    ("http", "-a", Form::Login),
];

/// Options that take a password whatever the command is.
const OPTIONS: [&str; 3] = ["--password", "--passwd", "--passphrase"];

/// Words that follow the name of an option in prose.
const PROSE: [&str; 30] = [
    "a",
    "an",
    "and",
    "argument",
    "as",
    "by",
    "can",
    "file",
    "flag",
    "for",
    "from",
    "if",
    "in",
    "is",
    "must",
    "of",
    "on",
    "only",
    "option",
    "or",
    "parameter",
    "prompt",
    "stdin",
    "takes",
    "the",
    "to",
    "value",
    "was",
    "when",
    "with",
];

/// Finds them.
pub(super) fn passwords(text: &str, found: &mut Found) {
    let bytes = text.as_bytes();
    let mut last = "";
    for (name, ..) in COMMANDS {
        if name == last {
            continue;
        }
        last = name;
        // A command whose arguments were looked at holds no other of its name.
        let mut from = 0;
        for at in memmem::find_iter(bytes, name) {
            if at < from || !begins_word(bytes, at) {
                continue;
            }
            let end = command_end(bytes, at);
            from = end;
            arguments(text, at + name.len()..end, name, found);
        }
    }
    for option in OPTIONS {
        for at in memmem::find_iter(bytes, option) {
            let end = at + option.len();
            if !begins_word(bytes, at) {
                continue;
            }
            let value = match bytes.get(end) {
                Some(b'=') => value(text, end + 1),
                Some(b' ') => value(text, end + 1).filter(|value| !is_prose(&text[value.clone()])),
                _ => None,
            };
            if let Some(value) = value {
                found.add(PASSWORD, value);
            }
        }
    }
}

/// Whether a command or an option can begin here.
fn begins_word(bytes: &[u8], at: usize) -> bool {
    at == 0
        || bytes[at - 1].is_ascii_whitespace()
        || matches!(
            bytes[at - 1],
            b'/' | b'"' | b'\'' | b'`' | b'(' | b';' | b'&' | b'|'
        )
}

/// Where a command ends: with its line, unless that goes on, or where another begins.
fn command_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\n' | b'|' | b';' => break,
            b'\\' => at += 1,
            _ => {}
        }
        at += 1;
    }
    at.min(bytes.len())
}

/// The passwords among the arguments of one command.
fn arguments(text: &str, range: std::ops::Range<usize>, name: &str, found: &mut Found) {
    let bytes = text.as_bytes();
    for at in memmem::find_iter(&bytes[range.clone()], b" -") {
        let word = range.start + at + 1;
        for (_, option, form) in COMMANDS.iter().filter(|(of, ..)| *of == name) {
            let Some(length) = option_length(&bytes[word..range.end], option, *form) else {
                continue;
            };
            let end = word + length;
            let from = match (bytes.get(end), form) {
                (Some(b' '), Form::Attached) | (None | Some(b'\n'), _) => continue,
                (Some(b' '), _) => end + 1,
                (Some(b'='), _) if option.starts_with("--") => end + 1,
                // A longer option.
                (Some(_), _) if option.starts_with("--") => continue,
                (Some(_), _) => end,
            };
            let Some(value) = value(text, from) else {
                continue;
            };
            let value = if *form == Form::Login {
                let Some(colon) = text[value.clone()].find(':') else {
                    continue;
                };
                value.start + colon + 1..value.end
            } else {
                value
            };
            if value.len() >= LEAST && is_value(&text[value.clone()]) {
                found.add(PASSWORD, value);
            }
        }
    }
}

/// The length of an option that begins here; short ones may stand together: `-su`.
fn option_length(bytes: &[u8], option: &str, form: Form) -> Option<usize> {
    if bytes.starts_with(option.as_bytes()) {
        return Some(option.len());
    }
    let letter = *option.as_bytes().last()?;
    let together = bytes[1..]
        .iter()
        .take_while(|byte| byte.is_ascii_alphabetic())
        .count();
    let is = form == Form::Login
        && option.len() == 2
        && (2..6).contains(&together)
        && bytes[together] == letter
        && bytes.get(together + 1) == Some(&b' ');
    is.then_some(together + 1)
}

/// The argument that begins here, without its quotes, if it can be a password.
fn value(text: &str, from: usize) -> Option<std::ops::Range<usize>> {
    let reach = text.floor_char_boundary((from + REACH).min(text.len()));
    let rest = text.get(from..reach)?;
    let blanks = rest.len() - rest.trim_start_matches(' ').len();
    let rest = &rest[blanks..];
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
    let start = from + blanks + usize::from(quote.is_some());
    let rest = &text[start.min(reach)..reach];
    let length = match quote {
        Some(quote) => rest.find([quote, '\n'])?,
        None => rest
            .find(|c: char| {
                c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ';' | '|' | ')' | ',')
            })
            .unwrap_or(rest.len()),
    };
    let value = &rest[..length];
    // Another option, or nothing that a mask would help.
    let is = length >= LEAST && !value.starts_with('-') && is_value(value);
    is.then_some(start..start + length)
}

/// Whether a word goes on with a sentence on an option instead of being its value.
fn is_prose(word: &str) -> bool {
    let bare = word.trim_end_matches(['.', ',', ':', ';', '?', '!']);
    PROSE.contains(&bare)
        || bare.len() < word.len() && bare.bytes().all(|byte| byte.is_ascii_lowercase())
}
