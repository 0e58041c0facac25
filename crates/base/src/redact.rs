//! Masks secrets by their shape: API keys, tokens, private keys, passwords in assignments, in URLs and in commands.
//!
//! A handoff is sent to a service and kept in files, and the notes, commits and outputs it is made of hold whatever was
//! once pasted. So everything passes here where it is stored or printed: the database, the files of a run, the log, the
//! text typed into a recording ([`typed`]), the answers of the API and standard output. A person's own text is left as it
//! is: the text typed to the agent, the scratchpad with its versions, an unsent prompt.
//!
//! A mask keeps the first few characters, so that a person recognises which key it was, and names the kind:
//!
//! ```text
//! ghp_…[masked GitHub token]      PASSWORD=h…[masked password]      postgres://ada:t…[masked password]@host/db
//! ```
//!
//! It is a net, not a proof: a secret without a shape and without a name passes. It must not spoil ordinary text, so a
//! shape needs a length, and a value by a secret's name needs to look random or to be in a `.env` line. Masking twice gives
//! the same text, and time is linear in the text.

mod json;
mod patterns;
pub mod typed;

use std::{
    borrow::Cow,
    ops::Range,
    sync::{LazyLock, OnceLock},
};

use memchr::memmem;
use regex::bytes::{Captures, Match, Regex, RegexBuilder};

pub use json::{json, named, value};
use patterns::{PARTS, PATTERNS, Pattern, Set, TOKENS, Token};

/// The beginning of the words for the hidden part; its kind and a bracket follow.
pub const MASK: &str = "…[masked ";

const PASSWORD: &str = "password";

/// The kind of a secret that only its name shows.
const SECRET: &str = "secret";

/// The number of characters of a secret that stay, if it is long enough.
const KEPT: usize = 4;

/// The longest value that can be a password or a key, in bytes.
const VALUE_REACH: usize = 512;

/// The number of assignments that are looked at in one stretch without blanks, such as the query of a URL.
const NESTED: usize = 16;

/// The longest name of an assignment, in bytes.
const NAME_REACH: usize = 80;

/// The last word of a name whose value is a secret; those of a password are in [`is_password_name`].
const NAMES: [&str; 23] = [
    "key",
    "apikey",
    "token",
    "secret",
    "credential",
    "credentials",
    "authorization",
    "auth",
    "signature",
    "sid",
    "sig",
    "session",
    "salt",
    "pepper",
    "cookie",
    "privatekey",
    "accesskey",
    "secretkey",
    "authtoken",
    "accesstoken",
    "psk",
    "bearer",
    "creds",
];

/// The endings of a name whose value is a password.
const PASSWORD_NAMES: [&str; 20] = [
    "password",
    "passwd",
    "passwort",
    "passphrase",
    "pwd",
    "pass",
    "pw",
    "kennwort",
    "wachtwoord",
    "passord",
    "heslo",
    "senha",
    "parola",
    "salasana",
    "passe",
    "contrasena",
    "haslo",
    "adgangskode",
    "jelszo",
    "lozinka",
];

/// The parts by which words for a password are known that have other letters than those of ASCII.
const FOREIGN: [&str; 18] = [
    "арол",
    "密码",
    "密碼",
    "口令",
    "パスワード",
    "비밀번호",
    "암호",
    "ontrase",
    "asł",
    "ösenord",
    "elsz",
    "ifre",
    "ωδικ",
    "סיסמ",
    "المرور",
    "पासवर्ड",
    "hẩu",
    "รหัสผ่าน",
];

/// The endings of the names whose random values are found at some distance.
const DISTANT: [&str; 11] = [
    "key",
    "token",
    "secret",
    "pass",
    "pwd",
    "salt",
    "pepper",
    "cookie",
    "auth",
    "credential",
    "credentials",
];

/// The words between a name and its value that say that it is its value.
const LINKS: [&str; 8] = ["value", "is", "ist", "es", "est", "lautet", "è", "é"];

/// The parts, in small letters, by which words for a key or a token are known in other languages than English.
const FOREIGN_KEYS: [&str; 16] = [
    "schlüssel",
    "schluessel",
    "clé",
    "clave",
    "llave",
    "chave",
    "chiave",
    "sleutel",
    "nyckel",
    "klucz",
    "ключ",
    "токен",
    "キー",
    "トークン",
    "密钥",
    "密鑰",
];

/// The parts of words beside them that make it a key which anyone may know.
const FOREIGN_OPEN: [&str; 9] = [
    "ffentlich",
    "publi",
    "públi",
    "public",
    "primär",
    "primari",
    "公開",
    "公开",
    "открыт",
];

/// The verdict of Go in front of the name of a test.
const PASSED: &str = "--- PASS";

/// The signs between the words of a name.
const SEPARATORS: [char; 4] = ['_', '-', '.', ' '];

/// The words in front of `seed` in the name of a secret; a seed of random numbers or of a database is none.
const SEEDS: [&str; 9] = [
    "totp", "otp", "2fa", "mfa", "wallet", "master", "secret", "bip39", "key",
];

/// The words that may follow the last word of a secret's name.
const NAME_ENDS: [&str; 5] = ["base", "data", "value", "b64", "base64"];

/// The words in front of `key` in a name that is no secret's.
const OPEN_KEYS: [&str; 7] = [
    "primary",
    "foreign",
    "cache",
    "sort",
    "partition",
    "row",
    "idempotency",
];

/// The last words of names whose value may be an id in the form of a UUID; of `key`, only if it is the whole name.
const ID_NAMES: [&str; 3] = ["sid", "session", "sessionid"];

/// The beginnings of the ids of the model's service: of calls of tools, of messages and of requests; and of public keys of SSH.
const ID_PREFIXES: [&str; 5] = ["toolu_", "srvtoolu_", "msg_", "req_", "AAAA"];

/// The values that people write where a password goes.
const PLACEHOLDERS: [&str; 12] = [
    "password", "passwd", "pass", "pwd", "pw", "secret", "token", "key", "changeme", "xxx", "xxxx",
    "example",
];

/// The words that follow the name of an option in prose.
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

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// The byte range of the secret, on character boundaries.
    pub range: Range<usize>,
    /// The kind of the secret, in words.
    pub kind: &'static str,
}

/// Replaces the secrets in a text by masks.
pub fn redact(text: &str) -> Cow<'_, str> {
    const ROUNDS: usize = 4;
    let mut masked = mask(text, secrets(text));
    // A mask can reveal another secret: it ends a command, or takes the sign away that kept two apart.
    for _ in 0..ROUNDS {
        let Cow::Owned(once) = &masked else { break };
        let Cow::Owned(again) = mask(once, secrets(once)) else {
            break;
        };
        masked = Cow::Owned(again);
    }
    masked
}

/// Puts masks in the place of secrets, which are in order and apart from one another.
fn mask(text: &str, found: Vec<Secret>) -> Cow<'_, str> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for Secret { range, kind } in found {
        // Short ones keep less: four characters of a password are half of it.
        let length = range.len();
        let kept = if length < 4 * KEPT { length / 8 } else { KEPT };
        let kept = text.floor_char_boundary(range.start + kept);
        out.push_str(&text[done..kept]);
        out.push_str(MASK);
        out.push_str(kind);
        out.push(']');
        done = range.end;
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// Returns the number of masks in a text, and their kinds, in words: `2 secrets are masked: GitHub token, password`. `None`
/// where it holds none.
pub fn masks(text: &str) -> Option<String> {
    let kinds = || {
        let patterns = PATTERNS.iter().map(|pattern| pattern.kind);
        let tokens = TOKENS.iter().map(|(_, kind, ..)| *kind);
        patterns.chain(tokens).chain([SECRET])
    };
    let mut found: Vec<(&str, usize)> = Vec::new();
    for at in memmem::find_iter(text.as_bytes(), MASK) {
        let rest = &text[at + MASK.len()..];
        // A text may only look like a mask.
        let kind = kinds().find(|kind| {
            let behind = rest.strip_prefix(kind);
            behind.is_some_and(|behind| behind.starts_with(']'))
        });
        let Some(kind) = kind else { continue };
        match found.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => found.push((kind, 1)),
        }
    }
    let total: usize = found.iter().map(|(_, count)| count).sum();
    let names: Vec<String> = found
        .iter()
        .map(|(kind, count)| match count {
            1 => (*kind).to_owned(),
            count => format!("{kind} ({count})"),
        })
        .collect();
    let names = names.join(", ");
    match total {
        0 => None,
        1 => Some(format!("1 secret is masked: {names}")),
        total => Some(format!("{total} secrets are masked: {names}")),
    }
}

/// The expressions of [`PATTERNS`], in their order: that of the command, if there is one, and that of the secret. All together take
/// four milliseconds to compile, more than most commands take for all else, and most texts need none.
static SHAPES: [OnceLock<(Option<Regex>, Regex)>; PATTERNS.len()] =
    [const { OnceLock::new() }; PATTERNS.len()];

/// The marks and the names of commands of [`PATTERNS`], in their order: a text without one of each holds no such secret.
static WORDS: LazyLock<[[Vec<&str>; 2]; PATTERNS.len()]> = LazyLock::new(|| {
    let words = |list: &'static str| list.split('|').collect();
    PATTERNS
        .each_ref()
        .map(|pattern| [pattern.mark, pattern.command].map(words))
});

/// A text with the set of its bytes, by which most words that are not in it are ruled out without a search.
struct Searched<'a> {
    text: &'a [u8],
    has_byte: [bool; 256],
}

impl<'a> Searched<'a> {
    fn new(text: &'a str) -> Self {
        let mut has_byte = [false; 256];
        for byte in text.bytes() {
            has_byte[usize::from(byte)] = true;
        }
        Self {
            text: text.as_bytes(),
            has_byte,
        }
    }

    fn has_one_of(&self, words: &[&str]) -> bool {
        words.iter().any(|word| {
            let mut bytes = word.bytes();
            bytes.all(|byte| self.has_byte[usize::from(byte)])
                && memmem::find(self.text, word.as_bytes()).is_some()
        })
    }
}

impl Pattern {
    fn compile(&self) -> (Option<Regex>, Regex) {
        let regex = PARTS
            .iter()
            .fold(self.regex.to_owned(), |regex, (name, part)| {
                regex.replace(name, part)
            });
        // A command ends with its line, unless that ends in a backslash, or where another begins.
        let command = (!self.command.is_empty()).then(|| {
            let name = self.command;
            expression(&format!(
                r"\b(?:{name})(?:[^\n|;\\&]|&[^\n|;\\&]|\\(?s:.))*"
            ))
        });
        (command, expression(&regex))
    }
}

/// Compiles an expression over bytes, for classes of all characters make large automata. Every secret begins behind an
/// ASCII character and ends before one, so none is cut within a character.
fn expression(text: &str) -> Regex {
    RegexBuilder::new(text)
        .unicode(false)
        .build()
        .expect("the expressions are constants, and a test compiles them all")
}

/// Returns the secrets of a text, in order and apart from one another.
pub fn secrets(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    tokens(text, &mut found);
    let searched = Searched::new(text);
    for ((pattern, shape), words) in PATTERNS.iter().zip(&SHAPES).zip(WORDS.iter()) {
        if !words.iter().all(|words| searched.has_one_of(words)) {
            continue;
        }
        let (command, shape) = shape.get_or_init(|| pattern.compile());
        let Some(command) = command else {
            values(text, 0..text.len(), pattern, shape, &mut found);
            continue;
        };
        for command in command.find_iter(text.as_bytes()) {
            values(text, command.range(), pattern, shape, &mut found);
        }
    }
    assignments(text, &mut found);
    distant(text, &mut found);
    let mut found = apart(found);
    for one in &mut found {
        one.range.end = end_with_rest(text, one.range.end);
    }
    apart(found)
}

/// Returns the end of a value that may be wrapped, or put together of several texts in quotes.
fn end_with_rest(text: &str, mut end: usize) -> usize {
    while let reach = text.len().min(end + 2 * VALUE_REACH)
        && let Some(rest) = REST.captures(&text.as_bytes()[end..reach])
        && let Some(more) = last_group(&rest)
        && is_rest(more.as_bytes())
    {
        end += more.end();
    }
    end
}

static REST: LazyLock<Regex> = LazyLock::new(|| {
    expression(
        r#"^(?:\\?\r?\n[ \t>|+]*|["'][ \t]*[+.\\]?\s*["'])([0-9A-Za-z+/_-]{12,}={0,2})(?:\\?[\s"'),;]|$)"#,
    )
});

/// Reports whether a word goes on with a random value: it has letters of both kinds and digits that change often.
fn is_rest(word: &[u8]) -> bool {
    let has = |class: fn(&u8) -> bool| word.iter().any(class);
    let cases = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    word.len() <= VALUE_REACH && cases && switches(word) >= 2 && distinct(word) >= 8
}

/// Adds the secrets of one shape that begin in a part of the text.
fn values(
    text: &str,
    part: Range<usize>,
    pattern: &Pattern,
    shape: &Regex,
    found: &mut Vec<Secret>,
) {
    // A sign in quotes that would end a command does not end the value.
    let reach = text.floor_char_boundary((part.end + VALUE_REACH).min(text.len()));
    let mut at = part.start;
    while let Some(one) = shape.captures_at(&text.as_bytes()[..reach], at) {
        let Some(value) = last_group(&one) else { break };
        if value.start() >= part.end {
            break;
        }
        let is_secret = text.get(value.range()).is_some_and(pattern.is_secret);
        found.extend(is_secret.then(|| Secret {
            range: value.range(),
            kind: pattern.kind,
        }));
        // A value that is no secret may hold one. The bound keeps the time linear. A shape may begin with its value.
        let whole = one.get(0).map_or(value.start(), |whole| whole.start());
        at = if is_secret || value.len() > VALUE_REACH {
            value.end()
        } else {
            value.start().max(whole + 1)
        };
    }
}

fn last_group<'a>(captures: &Captures<'a>) -> Option<Match<'a>> {
    captures.iter().flatten().last()
}

/// Puts secrets in order and joins those that overlap.
fn apart(mut found: Vec<Secret>) -> Vec<Secret> {
    found.sort_by_key(|one| (one.range.start, usize::MAX - one.range.end));
    let mut apart: Vec<Secret> = Vec::with_capacity(found.len());
    for one in found {
        match apart.last_mut() {
            Some(last) if one.range.start < last.range.end => {
                last.range.end = last.range.end.max(one.range.end);
            }
            _ => apart.push(one),
        }
    }
    apart
}

/// Adds the tokens with a prefix of their own. No regular expression: every text is read for them, and one of all prefixes
/// takes longer to compile than most commands take for all else.
fn tokens(text: &str, found: &mut Vec<Secret>) {
    let bytes = text.as_bytes();
    // The end of the last stretch of each set, so that none is read twice.
    let mut ends = [0; Set::COUNT];
    let (mut at, mut is_behind_word) = (0, false);
    while let Some(byte) = bytes.get(at) {
        let is_word = byte.is_ascii_alphanumeric() || *byte == b'_';
        let begins = is_word && !is_behind_word;
        is_behind_word = is_word;
        let token = begins.then(|| token_at(bytes, at, &mut ends)).flatten();
        let Some(token) = token else {
            at += 1;
            continue;
        };
        at = token.range.end;
        found.push(token);
    }
}

/// The tokens by the first byte of their prefix.
static BY_LETTER: LazyLock<[Vec<Token>; 128]> = LazyLock::new(|| {
    let mut tokens = [const { Vec::new() }; 128];
    for token in &TOKENS {
        tokens[usize::from(token.0.as_bytes()[0])].push(*token);
    }
    tokens
});

/// Returns the token that begins at a place in the text.
fn token_at(text: &[u8], at: usize, ends: &mut [usize; Set::COUNT]) -> Option<Secret> {
    let tokens = BY_LETTER.get(usize::from(text[at]))?;
    tokens.iter().find_map(|(prefix, kind, set, least)| {
        if !text[at..].starts_with(prefix.as_bytes()) {
            return None;
        }
        let begin = at + prefix.len();
        let end = &mut ends[*set as usize];
        if *end < begin {
            let length = text[begin..].iter().take_while(|byte| set.has(**byte));
            *end = begin + length.count();
        }
        let body = &text[begin..*end];
        let is_whole = body.len() == *least || body.len() > *least && !is_exact(prefix, *set);
        (is_whole && is_mixed(body, *set)).then_some(Secret {
            range: at..*end,
            kind,
        })
    })
}

/// Reports whether a token has a fixed length.
fn is_exact(prefix: &str, set: Set) -> bool {
    matches!(set, Set::Hex | Set::Upper) && prefix != "AGE-SECRET-KEY-1"
}

/// Reports whether a token's body looks random: words with dashes have one kind of letters, and samples repeat one letter.
fn is_mixed(body: &[u8], set: Set) -> bool {
    let body = &body[..body.len().min(64)];
    let digits = body.iter().filter(|byte| byte.is_ascii_digit()).count();
    let has = |class: fn(&u8) -> bool| body.iter().any(class);
    let cases = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    distinct(body) >= 8 && (digits >= 2 || cases || set == Set::Upper)
}

/// Reports whether the value of a header looks random.
fn is_random(value: &str) -> bool {
    switches(value.as_bytes()) >= 2 && distinct(value.as_bytes()) >= 8
}

/// Reports whether the value of a header is a name and a password in base64.
fn is_base64(value: &str) -> bool {
    let bytes = value.as_bytes();
    bytes.iter().any(u8::is_ascii_uppercase)
        && bytes.iter().any(u8::is_ascii_lowercase)
        && (value.ends_with('=') || value.len().is_multiple_of(4))
        && distinct(bytes) >= 8
}

/// Reports whether a value is text in base64 by its padding.
fn is_padded(value: &str) -> bool {
    let body = value.trim_end_matches('=');
    body.len() < value.len()
        && value.len().is_multiple_of(4)
        && body.bytes().all(|byte| Set::Base64.has(byte))
        && is_base64(value)
}

/// Reports whether a word goes on with a sentence on an option instead of being its value.
fn is_prose(word: &str) -> bool {
    let bare = word.trim_end_matches(['.', ',', ':', ';', '?', '!']);
    PROSE.contains(&bare.trim_end_matches('s'))
        || PROSE.contains(&bare)
        || bare.len() < word.len() && bare.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Returns the number of different bytes.
fn distinct(bytes: &[u8]) -> u32 {
    let mut seen = [0_u64; 4];
    for byte in bytes {
        seen[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
    seen.iter().map(|part| part.count_ones()).sum()
}

/// Reports whether this could be a secret at all, and is not a placeholder, a variable or a mask.
fn is_value(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let bare = lower.trim_matches(['*', '.', 'x', '-', '_']);
    // `ghp_xxxxxxxxxxxx` only shows how a key begins.
    let blanked = value.trim_end_matches(['*', 'x', 'X']).len() + 6 <= value.len();
    // So does `ghp_...`.
    let blanked = blanked
        || value
            .strip_suffix("...")
            .is_some_and(|shown| shown.ends_with(['_', '-']));
    !value.is_empty()
        && !bare.is_empty()
        && !blanked
        && !value.starts_with(['$', '<', '{', '%', '(', '[', '&'])
        && !value.contains(['…', '[', ']'])
        && !lower.starts_with("your-")
        && !lower.starts_with("your_")
        && !PLACEHOLDERS.contains(&lower.as_str())
        && !value.contains("{}")
        && !value.contains("${")
}

/// Adds the values that are given to a secret's name: `PASSWORD=…`, `"api_key": "…"`, `token: …`.
fn assignments(text: &str, found: &mut Vec<Secret>) {
    let (mut stretch_end, mut nested) = (0, 0);
    for sign in memchr::memchr2_iter(b'=', b':', text.as_bytes()) {
        found.extend(variable(text, sign));
        let name = name_before(text, sign);
        if !is_secret_name(name) || text[..sign].ends_with(PASSED) {
            continue;
        }
        if sign >= stretch_end {
            nested = 0;
        }
        nested += 1;
        if nested > NESTED {
            continue;
        }
        let Some((value, quoted)) = value_behind(text, sign + 1) else {
            continue;
        };
        stretch_end = stretch_end.max(value.end);
        let is = value.len() <= VALUE_REACH
            && !is_id(name, &text[value.clone()])
            && is_value(&text[value.clone()])
            && (looks_random(&text[value.clone()], quoted)
                || is_padded(&text[value.clone()])
                || is_of_constant(name, &text[value.clone()]));
        found.extend(is.then(|| named_secret(name, value)));
    }
}

/// Reports whether this is the password of a variable or a constant: `DB_PASSWORD: winter2024`. The value of a type has no digit.
fn is_of_constant(name: &str, value: &str) -> bool {
    let is_upper = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (name.contains('_') || name.ends_with("PASSWORD"))
        && name.bytes().all(is_upper)
        && is_password_name(name)
        && is_mixed_word(value)
}

/// Reports whether a value may be the password of a constant, and no name of a type or of a place.
fn is_mixed_word(value: &str) -> bool {
    let has = |class: fn(&u8) -> bool| value.as_bytes().iter().any(class);
    value.len() >= 6
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        && !value.contains(['.', ' '])
        && !is_plain(value)
}

/// Adds the values that follow a secret's name at some distance: in a table, in XML, in a call, in a sentence, on the next line.
fn distant(text: &str, found: &mut Vec<Secret>) {
    /// The longest text between a name and its value, with the name.
    const DISTANCE: usize = 80;
    let is_part = |byte: &u8| Set::Url.has(*byte) || matches!(byte, b'+' | b'/');
    let is_symbol = |byte: &u8| is_part(byte) || b"!@#$%^*?~&.".contains(byte);
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(begin) = bytes[at..].iter().position(u8::is_ascii_alphanumeric) {
        let mut begin = at + begin;
        // The letter of an escape in JSON is no part of it.
        if begin > 0 && bytes[begin - 1] == b'\\' && b"nrt".contains(&bytes[begin]) {
            begin += 1;
        }
        let part = begin + bytes[begin..].iter().take_while(|b| is_part(b)).count();
        at = part + bytes[part..].iter().take_while(|b| is_symbol(b)).count();
        // Most are words, and one look at their bytes is enough.
        let length = at - begin;
        let is_odd = |byte: &u8| match byte {
            b'a'..=b'z' | b'_' | b'-' | b'.' | b'/' => false,
            b'A'..=b'Z' => length >= 20,
            _ => true,
        };
        if length < 8 || !bytes[begin..at].iter().any(is_odd) {
            continue;
        }
        let padding = bytes[part..].iter().take_while(|byte| **byte == b'=');
        let key = &text[begin..part + padding.take(2).count()];
        let is_key = is_scrambled(key) || looks_like_key(key);
        let value = if is_key { key } else { &text[begin..at] };
        let value = value.trim_end_matches('.');
        let is_random = || {
            value.len() <= VALUE_REACH && looks_random(value, true)
                || is_rest(value.as_bytes()) && is_shuffled(value) && !value.contains(['.', '/'])
        };
        // What is called, or has parts, is a name of code.
        let behind = &text[begin + value.len()..];
        let is_code = behind.starts_with('(') || behind.starts_with("::");
        if is_code || !is_key && !is_random() || !is_value(value) {
            continue;
        }
        let before = text.ceil_char_boundary(begin.saturating_sub(DISTANCE));
        let kind = kind_by_name(&text[before..begin], value, is_key);
        found.extend(kind.map(|kind| Secret {
            range: begin..begin + value.len(),
            kind,
        }));
    }
}

/// Returns the kind of a random value by a secret's name in front of it. Between them are signs and up to three short words, or more of
/// them where the last one says that the value follows.
fn kind_by_name(text: &str, value: &str, is_key: bool) -> Option<&'static str> {
    // Beyond Latin, signs within a word are no letters, too.
    let is_letter = |c: char| c.is_alphanumeric() || ('\u{300}'..'\u{2000}').contains(&c);
    let is_word = |c: char| is_letter(c) || matches!(c, '_' | '-' | '.');
    let (mut end, mut is_far, mut is_linked) = (text.len(), false, false);
    for at in 0..12 {
        if at >= 4 && !is_linked {
            return None;
        }
        let rest = text[..end].trim_end_matches(|c: char| !is_letter(c));
        let word = &rest[rest.trim_end_matches(is_word).len()..];
        let (signs, between) = (&text[rest.len()..end], &text[rest.len()..]);
        let is_cut = signs.len() > 20
            || between.matches('\n').count() > 1
            // What is put together there is named as a whole.
            || signs.contains("{}")
            || is_far && signs.contains('[');
        if word.is_empty() || is_cut || signs.starts_with(']') || rest.ends_with(PASSED) {
            return None;
        }
        let phrase = &rest[rest.trim_end_matches(|c| is_word(c) || c == ' ').len()..];
        let is_foreign = !word.is_ascii() && FOREIGN.iter().any(|one| word.contains(one));
        let is_sql = ends_with(phrase, "identified by");
        let is_foreign_key = names_foreign_key(word, &text[rest.len() - phrase.len()..]);
        let is_password = is_foreign
            || is_sql
            || is_password_name(word)
            || is_foreign_key && word.eq_ignore_ascii_case("clave");
        if is_password || is_foreign_key || is_distant_name(phrase) {
            let is_known = is_password || is_foreign_key || is_secret_name(phrase);
            let is_near = !is_far && !is_sql;
            let is = is_key || is_known && is_given(phrase, is_password, is_near, between, value);
            let kind = if is_password { PASSWORD } else { SECRET };
            return (is && !is_id(word, value)).then_some(kind);
        }
        end = rest.len() - word.len();
        let is_short = word.chars().count() <= 16 && !word.bytes().any(|b| b.is_ascii_digit());
        if !is_short && !text[..end].ends_with(" for ") || signs.contains(". ") {
            return None;
        }
        let is_link = LINKS.iter().any(|one| one.eq_ignore_ascii_case(word));
        is_linked |= at == 0 && (is_link || signs.contains([':', '：']));
        is_far |= !is_link;
    }
    None
}

/// Reports whether a word names a key in another language than English, and no word around it says that anyone may know it.
fn names_foreign_key(word: &str, around: &str) -> bool {
    let has = |text: &str, parts: &[&str]| {
        let text = text.to_lowercase();
        parts.iter().any(|part| text.contains(part))
    };
    has(word, &FOREIGN_KEYS) && !has(around, &FOREIGN_OPEN)
}

/// Reports whether a random value belongs to a name, by the form of both and what is between them.
fn is_given(phrase: &str, is_password: bool, is_near: bool, between: &str, value: &str) -> bool {
    let last = last_word(phrase);
    let is_upper = !last.bytes().any(|byte| byte.is_ascii_lowercase());
    let is_quoted = between.contains(['"', '\'', '`', '>', '|']);
    let is_plain = |c: char| c.is_alphabetic() || c.is_whitespace() || ":=：".contains(c);
    // Tests pass, too.
    let is_verb = last == "pass" && !is_quoted && !between.contains([':', '=']);
    let is_password = is_password && (is_near || !is_verb) || is_near && ends_with(last, "secret");
    // In a list of texts a name is followed by another.
    let is_set = is_quoted && (is_upper || !between.contains(',')) || between.chars().all(is_plain);
    let is_set = is_set && is_near && !is_verb;
    if !is_near && between.contains('\n') {
        return false;
    }
    if !is_hex(value) {
        return is_password && is_set || (is_password || value.len() >= 16) && is_shuffled(value);
    }
    // A hash in hex names a version of something more often.
    let opens = phrase[..phrase.len() - last.len()].trim_end_matches(SEPARATORS);
    let mut openers = ["api", "access", "secret", "auth"].iter();
    let opens = openers.any(|one| ends_with(opens, one))
        || phrase.contains("API")
        || between.contains("API");
    let gap = between.replace("\\n", "\n");
    let is_below = gap.trim().is_empty() && gap.contains('\n');
    let mut links = LINKS.iter();
    let is_linked = is_near || is_quoted || links.any(|one| ends_with(between.trim_end(), one));
    let is_long = value.len() >= 24 && (opens && is_linked || is_set && is_quoted && is_upper);
    !is_below && (is_set && is_password || is_long)
}

/// Reports whether a name ends as those do whose random values are found at some distance.
fn is_distant_name(phrase: &str) -> bool {
    let mut name = phrase;
    for end in NAME_ENDS {
        if ends_with(name, end) {
            name = name[..name.len() - end.len()].trim_end_matches(['_', '-']);
        }
    }
    let mut ends = DISTANT.iter().filter(|one| ends_with(name, one));
    ends.any(|one| !is_open(&name[..name.len() - one.len()]))
}

fn ends_with(text: &str, end: &str) -> bool {
    let at = text.len().checked_sub(end.len());
    at.is_some_and(|at| text.as_bytes()[at..].eq_ignore_ascii_case(end.as_bytes()))
}

/// Reports whether a value is an id that names something and opens nothing.
fn is_id(name: &str, value: &str) -> bool {
    let lengths = value.split('-').map(str::len);
    let is_uuid = lengths.eq([8, 4, 4, 4, 12]) && is_hex(value);
    let may_be_id = name == "key" || names_session(name);
    // The key of a cache ends in the hash of what is in it: `Linux-node-9f86…`.
    let is_of_hash = name == "key"
        && value
            .rsplit_once('-')
            .is_some_and(|(_, hash)| hash.len() == 64 && is_hex(hash));
    // The model signs its thoughts so that the service knows them again.
    let is_thought = name == "signature" && value.len() >= 128 && value.starts_with('E');
    is_uuid && may_be_id
        || is_of_hash
        || is_thought
        || ID_PREFIXES.iter().any(|prefix| value.starts_with(prefix))
}

/// Reports whether a name is that of a session, whose value is often a word: `DESKTOP_SESSION=gnome`.
fn names_session(name: &str) -> bool {
    let last = last_word(name);
    ID_NAMES.iter().any(|one| one.eq_ignore_ascii_case(last))
}

/// Returns the last word of a name in snake case, kebab case or camel case.
fn last_word(name: &str) -> &str {
    let begin = name.rfind(SEPARATORS).map_or(0, |at| at + 1);
    let word = &name[begin..];
    let pairs = word.as_bytes().windows(2);
    let mut humps = pairs.map(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    humps.rposition(|is| is).map_or(word, |at| &word[at + 1..])
}

/// Returns the secret of a `NAME=` of a shell or an `.env` file: upper case, no blanks, at the start of its line. Behind a
/// blank it is an argument, as in `docker run -e NAME=value` or `NAME=value command`; behind a sign, another command. In front of
/// a line there may be what a diff, a search or a listing puts there.
fn variable(text: &str, sign: usize) -> Option<Secret> {
    let bytes = text.as_bytes();
    let is_upper =
        |byte: &&u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || **byte == b'_';
    let name = bytes[..sign].iter().rev().take_while(is_upper);
    let length = name.take(NAME_REACH + 1).count();
    let start = sign - length;
    let is_name = bytes[sign] == b'=' && (2..=NAME_REACH).contains(&length);
    let begins = || start == 0 || b" \t\n\r\x0b\x0c\"'`;&|(".contains(&bytes[start - 1]);
    if !is_name || !(begins() || is_behind_mark(&text[..start])) {
        return None;
    }
    let name = &text[start..sign];
    let (range, _) = value_behind(text, sign + 1)?;
    let value = &text[range.clone()];
    // A quote may also be the end of a text, and what follows is code.
    let is_text = !value.contains(char::is_whitespace)
        || is_password_name(name) && value.starts_with(char::is_alphanumeric);
    let is = is_value(value)
        && !is_id(name, value)
        && if is_secret_name(name) && !names_session(name) {
            value.len() >= 4 && !is_plain(value) && is_text
        } else {
            looks_like_key(value)
        };
    is.then(|| named_secret(name, range))
}

/// Reports whether a text ends in what stands in front of a whole line, `+`, `.env:3:`, `.env-3-` or `3→`, or of a value: `--env=`.
fn is_behind_mark(text: &str) -> bool {
    const REACH: usize = 256;
    let near = &text.as_bytes()[text.len().saturating_sub(REACH)..];
    let Some(mark @ (b'+' | b'-' | b':' | b'=')) = near.last().copied() else {
        return text.ends_with('→') && is_first_word(near);
    };
    let begin = memchr::memrchr3(b' ', b'\t', b'\n', near).map_or(0, |at| at + 1);
    let place = &near[begin..near.len() - 1];
    if mark == b'=' {
        return place.first() == Some(&b'-');
    }
    let number = memchr::memrchr(mark, place).map(|at| &place[at + 1..]);
    let is_numbered = number.is_some_and(|number| number.iter().all(u8::is_ascii_digit));
    let is_file = || {
        mark == b':'
            && memchr::memchr2(b'.', b'/', place).is_some()
            && memmem::find(place, b"//").is_none()
    };
    let is_of_diff = mark != b':' && place.is_empty();
    (is_of_diff || is_numbered || is_file()) && is_first_word(near)
}

/// Reports whether a text has no blank behind the first word of its last line.
fn is_first_word(text: &[u8]) -> bool {
    let line = memchr::memrchr(b'\n', text).map_or(text, |at| &text[at + 1..]);
    memchr::memchr2(b' ', b'\t', line.trim_ascii_start()).is_none()
}

fn named_secret(name: &str, range: Range<usize>) -> Secret {
    let kind = if is_password_name(name) {
        PASSWORD
    } else {
        SECRET
    };
    Secret { range, kind }
}

/// Returns the name in front of a `=` or `:`, without its quote and the blanks behind it.
fn name_before(text: &str, sign: usize) -> &str {
    const BLANKS: usize = 16;
    let before = &text.as_bytes()[..sign];
    let blanks = before.iter().rev().take_while(|byte| **byte == b' ');
    let before = &before[..sign - blanks.take(BLANKS).count()];
    let before = before
        .strip_suffix(b"\"")
        .or_else(|| before.strip_suffix(b"'"))
        .or_else(|| before.strip_suffix(b"`"))
        .unwrap_or(before);
    let slashes = before.iter().rev().take_while(|byte| **byte == b'\\');
    let end = before.len() - slashes.count();
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let name = text.as_bytes()[..end].iter().rev().take_while(is_name);
    &text[end - name.take(NAME_REACH).count()..end]
}

/// Reports whether the last word of a name is one of a secret: `AWS_SECRET_ACCESS_KEY`, `api-key`, `dbPassword`, `keyData`.
fn is_secret_name(name: &str) -> bool {
    let tail_start = name.ceil_char_boundary(name.len().saturating_sub(24));
    let tail = &name[tail_start..];
    let last = last_word(tail);
    let before = tail[..tail.len() - last.len()].trim_end_matches(SEPARATORS);
    let is_in = |words: &[&str], word: &str| words.iter().any(|one| one.eq_ignore_ascii_case(word));
    if !before.is_empty() && is_in(&NAME_ENDS, last) {
        return is_secret_name(before);
    }
    if last.eq_ignore_ascii_case("seed") {
        return SEEDS.iter().any(|word| ends_with(before, word));
    }
    let word = tail.rsplit(SEPARATORS).next().unwrap_or_default();
    // The cookies of servers; what our own and other programs call `sessionId` is shown to everyone.
    let is_cookie = ["SESSID", "SESSIONID", "sessid", "sessionid"]
        .iter()
        .any(|end| word.ends_with(end));
    (is_in(&NAMES, last) || is_in(&NAMES, word)) && !is_open(before)
        || is_password_name(word)
        || is_cookie
}

/// Reports whether the words in front of `key` or its like make it the name of something that anyone may know.
fn is_open(before: &str) -> bool {
    let lower = before.trim_end_matches(SEPARATORS).to_ascii_lowercase();
    lower.contains("public") || OPEN_KEYS.iter().any(|word| lower.ends_with(word))
}

/// Reports whether a name ends in a word for a password, also without a sign before it: `PGPASSWORD`, `dbpasswd`.
fn is_password_name(name: &str) -> bool {
    // Variables are written without a sign, too: `SSHPASS`.
    let is_variable = !name.bytes().any(|byte| byte.is_ascii_lowercase())
        && !["BYPASS", "COMPASS", "TRESPASS"]
            .iter()
            .any(|one| name.ends_with(one));
    PASSWORD_NAMES.iter().any(|ending| {
        let at = name.len().checked_sub(ending.len());
        // The short ones end other words too: `bypass`, `cwd` is none.
        at.is_some_and(|at| {
            name.as_bytes()[at..].eq_ignore_ascii_case(ending.as_bytes())
                && (ending.len() > 4
                    || at == 0
                    || is_variable && at >= 2
                    || !name.as_bytes()[at - 1].is_ascii_alphabetic()
                    || name.as_bytes()[at].is_ascii_uppercase()
                        && name.as_bytes()[at - 1].is_ascii_lowercase())
        })
    })
}

/// Returns the value behind a `=` or `:`, without its quotes, and whether it has some.
fn value_behind(text: &str, from: usize) -> Option<(Range<usize>, bool)> {
    let reach = text.floor_char_boundary((from + VALUE_REACH + 32).min(text.len()));
    let rest = &text[from..reach];
    let blank = rest.len() - rest.trim_start_matches([' ', '=', '>', '\t']).len();
    if blank > 8 {
        return None;
    }
    let mut start = from + blank;
    let rest = &text[start..reach];
    // `Authorization: Bearer …` and its like: the scheme is no part of the secret.
    let scheme = [
        "Bearer ", "bearer ", "Basic ", "Token ", "token ", "ApiKey ",
    ]
    .iter()
    .find(|scheme| {
        rest.trim_start_matches(['"', '\'', '\\'])
            .starts_with(**scheme)
    });
    let bare = rest.trim_start_matches('\\');
    let quote = bare
        .chars()
        .next()
        .filter(|c| matches!(c, '"' | '\'' | '`'));
    if let Some(quote) = quote {
        start += rest.len() - bare.len() + quote.len_utf8();
    }
    start += scheme.map_or(0, |scheme| scheme.len());
    let rest = &text[start.min(reach)..reach];
    let end = match quote {
        Some(quote) => rest.find([quote, '\n'])?,
        None => rest
            .find(|c: char| {
                c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ',' | ';' | ')' | ']' | '}')
            })
            .unwrap_or(rest.len()),
    };
    let value = rest[..end].trim_end_matches('\\');
    (!value.is_empty()).then_some((start..start + value.len(), quote.is_some()))
}

/// Reports whether a value of an `.env` line has no need to be hidden: a switch, a number, a path, code.
fn is_plain(value: &str) -> bool {
    value.len() < 6 && value.bytes().all(|byte| byte.is_ascii_digit())
        || matches!(
            value.to_ascii_lowercase().as_str(),
            "true" | "false" | "none" | "null" | "auto"
        )
        || value.starts_with(['/', '~', '.']) && !is_scrambled(value)
        || value.contains(['(', '<', '{'])
}

/// Reports whether a value looks made by a machine, or by a person who was asked to use a digit and a symbol.
fn looks_random(value: &str, quoted: bool) -> bool {
    let bytes = value.as_bytes();
    let has = |class: fn(&u8) -> bool| bytes.iter().any(class);
    let symbol = |byte: &u8| b"!@#$%^*+/=?~&".contains(byte);
    if is_scrambled(value) {
        return true;
    }
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if bytes.len() < 8 || !bytes.iter().all(|byte| plain(byte) || symbol(byte)) {
        return false;
    }
    let cases = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    let is_strong = quoted && cases && has(|byte| b"!@#$%^*?".contains(byte));
    if !is_strong && (!has(u8::is_ascii_digit) || !has(u8::is_ascii_alphabetic)) {
        return false;
    }
    // Paths, addresses and dates are ordinary.
    if value.contains("//") || value.starts_with(['/', '.', '#', '@']) || value.contains("::") {
        return false;
    }
    let switches = switches(bytes);
    let classes = [
        has(u8::is_ascii_lowercase),
        has(u8::is_ascii_uppercase),
        has(u8::is_ascii_digit),
        bytes.iter().any(symbol),
    ];
    let classes = classes.iter().filter(|one| **one).count();
    // Unquoted text of symbols is an expression more often than a password.
    let short = quoted && classes >= 3 && !value.contains('.') && (switches >= 1 || is_strong);
    let long = bytes.len() >= 12 && switches >= 3 && distinct(bytes) >= 7 && !is_wordy(value);
    short && bytes.len() < 16 && !is_wordy(value) || long
}

/// Returns the number of changes between letters and digits.
fn switches(bytes: &[u8]) -> usize {
    bytes
        .windows(2)
        .filter(|pair| {
            pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic()
                || pair[0].is_ascii_alphabetic() && pair[1].is_ascii_digit()
        })
        .count()
}

/// Reports whether the text is words with numbers, as in `utf8-to-utf16-v2` and `ed25519_sk_v1`: parts that are short and
/// change between letters and digits at most twice.
fn is_wordy(value: &str) -> bool {
    let mut parts = 0;
    let wordy = value
        .split(['_', '-', '.', '/', '@', '+', '='])
        .all(|part| {
            parts += 1;
            part.len() <= 12 && switches(part.as_bytes()) <= 2
        });
    wordy && parts >= 2
}

/// Returns the places where small letters, capitals and digits follow one another.
fn changes(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let class = |byte: u8| match byte {
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        b'0'..=b'9' => 3,
        _ => 0,
    };
    bytes.windows(2).filter(move |pair| {
        let (a, b) = (class(pair[0]), class(pair[1]));
        a != b && a * b > 0
    })
}

/// Reports whether letters and digits alternate in a random value more than in words in camel case with numbers.
fn is_shuffled(value: &str) -> bool {
    let bytes = value.as_bytes();
    let begins_word = |pair: &&[u8]| pair[0].is_ascii_uppercase() && pair[1].is_ascii_lowercase();
    let count = changes(bytes).filter(|pair| !begins_word(pair)).count();
    let has = |class: fn(&u8) -> bool| bytes.iter().any(class);
    // A third of an identifier is the small letters of words.
    let words = bytes.split(|byte| !byte.is_ascii_lowercase());
    let words: usize = words.map(<[u8]>::len).filter(|length| *length >= 2).sum();
    let is_wordless = words * 3 < bytes.len()
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_digit);
    (is_wordless || count * 3 >= bytes.len()) && !is_hex(value)
}

/// Reports whether a value has digits in hex and dashes only, and letters of one case.
fn is_hex(value: &str) -> bool {
    let is = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    let has = |class: fn(&u8) -> bool| value.as_bytes().iter().any(class);
    value.bytes().all(is) && !(has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase))
}

/// Reports whether small letters, capitals and digits alternate as they do in no identifier: in base64, at more than a third of
/// its places. Hashes in hex have no capitals.
fn is_scrambled(value: &str) -> bool {
    let bytes = value.as_bytes();
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    // In twentieths: the fewer digits, the fewer changes chance gives.
    let least = if digits < 2 { 8 } else { 7 };
    (20..=VALUE_REACH).contains(&bytes.len())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+/=_-".contains(byte))
        && (changes(bytes).count() * 20 >= bytes.len() * least
            || bytes.len() >= 32 && entropy(bytes) >= 4.5)
        && bytes.iter().any(u8::is_ascii_lowercase)
        && bytes.iter().any(u8::is_ascii_uppercase)
        && distinct(bytes) >= 10
}

/// Reports whether a value under any name is a key: long, of all three kinds of characters, and random. Hashes in hex,
/// which are all over a repository, are not.
fn looks_like_key(value: &str) -> bool {
    let bytes = value.as_bytes();
    let base64 = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-')
    };
    let has = |class: fn(&u8) -> bool| bytes.iter().filter(|byte| class(byte)).count() >= 3;
    (24..=512).contains(&bytes.len())
        && bytes.iter().all(base64)
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        && switches(bytes) >= 5
        && entropy(bytes) >= 4.0
        && !is_wordy(value)
}

/// Returns Shannon's entropy, in bits a byte.
fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in bytes {
        counts[usize::from(*byte)] += 1;
    }
    let total = bytes.len() as f64;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| {
            let share = f64::from(*count) / total;
            -share * share.log2()
        })
        .sum()
}

#[cfg(any(test, feature = "testing"))]
pub mod planted;
#[cfg(test)]
mod tests;
