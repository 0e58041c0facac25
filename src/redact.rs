//! Masks secrets by their shape: API keys, tokens, private keys, passwords in assignments, in URLs and in commands.
//!
//! A handoff is sent to a service and kept in files, and the notes, commits and outputs it is made of hold whatever
//! was once pasted. So everything passes here where it is stored or printed: the database, the files of a run, the log, what is typed
//! into a recording ([`typed`]), the answers of the API and standard output. What is a person's own is left as it is:
//! what is typed to the agent, the scratchpad with its versions, an unsent prompt.
//!
//! A mask keeps the first few characters, so that a person recognises which key it was, and names the kind:
//!
//! ```text
//! ghp_…[masked GitHub token]      PASSWORD=h…[masked password]      postgres://ada:t…[masked password]@host/db
//! ```
//!
//! It is a net, not a proof: a secret without a shape and without a name passes. What it must not do is spoil ordinary text,
//! so a shape needs a length, and a value by a secret's name needs to look random or to stand in a `.env` line. Masking
//! twice changes nothing, and time is linear in the text: every look to the side is bounded.

mod commands;
mod json;
pub mod typed;

use std::{borrow::Cow, ops::Range};

use memchr::{memchr_iter, memchr2_iter, memmem};

pub use json::{json, named};

/// What begins the words for the hidden part; its kind and a bracket follow.
pub const MASK: &str = "…[masked ";

/// The kinds that have no row in [`TOKENS`].
const KINDS: [&str; 7] = [
    PASSWORD,
    "private key",
    "web token",
    "bot token",
    "bearer token",
    "webhook",
    "secret",
];

const PASSWORD: &str = "password";

/// How many characters of a secret stay, if it is long enough.
const KEPT: usize = 4;

/// The longest token that is followed, in bytes: web tokens hold whole user profiles.
const REACH: usize = 16 * 1024;

/// The longest value that can be a password or a key, in bytes.
const VALUE_REACH: usize = 512;

/// How many assignments are looked at in one stretch without blanks, such as the query of a URL.
const NESTED: usize = 16;

/// The longest name of an assignment, in bytes.
const NAME_REACH: usize = 80;

/// Characters that the body of a token may hold.
#[derive(Clone, Copy)]
enum Set {
    Hex,
    /// Upper-case letters and digits.
    Upper,
    Alnum,
    /// And `_`.
    Word,
    /// And `_` and `-`.
    Url,
    /// And `.` as well.
    Dotted,
}

impl Set {
    const fn has(self, byte: u8) -> bool {
        match self {
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Word => byte.is_ascii_alphanumeric() || byte == b'_',
            Self::Url => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
        }
    }
}

/// The tokens with a prefix of their own: the prefix, the kind, what may follow, and how much of it must.
const TOKENS: [(&str, &str, Set, usize); 60] = [
    ("sk-ant-", "Anthropic key", Set::Url, 16),
    ("sk-proj-", "OpenAI key", Set::Url, 20),
    ("sk-svcacct-", "OpenAI key", Set::Url, 20),
    ("sk-or-v1-", "OpenRouter key", Set::Hex, 32),
    ("sk-", "API key", Set::Url, 20),
    ("sk_live_", "Stripe key", Set::Alnum, 16),
    ("sk_test_", "Stripe key", Set::Alnum, 16),
    ("rk_live_", "Stripe key", Set::Alnum, 16),
    ("rk_test_", "Stripe key", Set::Alnum, 16),
    ("whsec_", "Stripe secret", Set::Alnum, 20),
    ("AKIA", "AWS key id", Set::Upper, 16),
    ("ASIA", "AWS key id", Set::Upper, 16),
    ("ghp_", "GitHub token", Set::Alnum, 30),
    ("gho_", "GitHub token", Set::Alnum, 30),
    ("ghu_", "GitHub token", Set::Alnum, 30),
    ("ghs_", "GitHub token", Set::Alnum, 30),
    ("ghr_", "GitHub token", Set::Alnum, 30),
    ("github_pat_", "GitHub token", Set::Word, 30),
    ("glpat-", "GitLab token", Set::Url, 20),
    ("glptt-", "GitLab token", Set::Hex, 40),
    ("gldt-", "GitLab token", Set::Url, 20),
    ("glsa_", "Grafana token", Set::Word, 32),
    ("xoxb-", "Slack token", Set::Url, 20),
    ("xoxa-", "Slack token", Set::Url, 20),
    ("xoxp-", "Slack token", Set::Url, 20),
    ("xoxr-", "Slack token", Set::Url, 20),
    ("xoxs-", "Slack token", Set::Url, 20),
    ("xoxe-", "Slack token", Set::Url, 20),
    ("xapp-", "Slack token", Set::Url, 20),
    ("AIza", "Google key", Set::Url, 35),
    ("ya29.", "Google token", Set::Url, 20),
    ("GOCSPX-", "Google secret", Set::Url, 20),
    ("hf_", "Hugging Face token", Set::Alnum, 30),
    ("npm_", "npm token", Set::Alnum, 36),
    ("pypi-", "PyPI token", Set::Url, 50),
    ("SG.", "SendGrid key", Set::Dotted, 40),
    ("shpat_", "Shopify token", Set::Hex, 32),
    ("shpss_", "Shopify secret", Set::Hex, 32),
    ("dop_v1_", "DigitalOcean token", Set::Hex, 64),
    ("dckr_pat_", "Docker token", Set::Url, 20),
    ("dapi", "Databricks token", Set::Hex, 32),
    ("key-", "Mailgun key", Set::Hex, 32),
    ("SK", "Twilio key", Set::Hex, 32),
    ("hvs.", "Vault token", Set::Url, 24),
    ("hvb.", "Vault token", Set::Url, 24),
    ("ATATT3", "Atlassian token", Set::Url, 50),
    ("lin_api_", "Linear key", Set::Alnum, 32),
    ("ntn_", "Notion token", Set::Alnum, 40),
    ("gsk_", "Groq key", Set::Alnum, 40),
    ("xai-", "xAI key", Set::Alnum, 40),
    ("pplx-", "Perplexity key", Set::Alnum, 40),
    ("r8_", "Replicate token", Set::Alnum, 37),
    ("sbp_", "Supabase token", Set::Hex, 40),
    ("pscale_tkn_", "PlanetScale token", Set::Url, 32),
    ("PMAK-", "Postman key", Set::Url, 50),
    ("NRAK-", "New Relic key", Set::Alnum, 27),
    ("sntrys_", "Sentry token", Set::Dotted, 40),
    ("EAACEdEose0cBA", "Facebook token", Set::Alnum, 20),
    ("AGE-SECRET-KEY-1", "age key", Set::Upper, 50),
    ("HRKU-", "Heroku key", Set::Url, 36),
];

/// The last word of a name whose value is a secret; those of a password are in [`is_password_name`].
const NAMES: [&str; 16] = [
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
    "cookie",
    "privatekey",
    "accesskey",
    "secretkey",
    "authtoken",
    "accesstoken",
];

/// Values that people write where a password goes.
const PLACEHOLDERS: [&str; 12] = [
    "password", "passwd", "pass", "pwd", "pw", "secret", "token", "key", "changeme", "xxx", "xxxx",
    "example",
];

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// Where it is, on character boundaries.
    pub range: Range<usize>,
    /// What it is, in words.
    pub kind: &'static str,
}

/// Replaces the secrets in a text by masks.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    mask(text, secrets(text))
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

/// How many masks a text holds, and of which kinds, in words: `2 secrets are masked: GitHub token, password`. `None` where it
/// holds none.
#[must_use]
pub fn masks(text: &str) -> Option<String> {
    let known = TOKENS.iter().map(|(_, kind, ..)| *kind).chain(KINDS);
    let mut kinds: Vec<&str> = known.collect();
    kinds.dedup();
    let mut found: Vec<(&str, usize)> = Vec::new();
    for at in memmem::find_iter(text.as_bytes(), MASK) {
        let rest = &text[at + MASK.len()..];
        // A text may only look like a mask.
        let kind = kinds.iter().copied().find(|kind| {
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

/// The secrets of a text, in order and apart from one another.
#[must_use]
pub fn secrets(text: &str) -> Vec<Secret> {
    let bytes = text.as_bytes();
    let mut found = Found::default();
    private_keys(text, &mut found);
    tokens(bytes, &mut found);
    urls(text, &mut found);
    bearers(bytes, &mut found);
    assignments(text, &mut found);
    commands::passwords(text, &mut found);
    apart(found.0)
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

/// What has been found so far.
#[derive(Default)]
struct Found(Vec<Secret>);

impl Found {
    fn add(&mut self, kind: &'static str, range: Range<usize>) {
        self.0.push(Secret { range, kind });
    }
}

/// The bodies of PEM private keys; one whose end is missing goes as far as its lines look like one.
fn private_keys(text: &str, found: &mut Found) {
    const BEGIN: &str = "-----BEGIN ";
    let mut from = 0;
    for at in memmem::find_iter(text.as_bytes(), BEGIN) {
        if at < from {
            continue;
        }
        let label = &text[at + BEGIN.len()..];
        let label = &label[..label.floor_char_boundary(60)];
        let Some(length) = label.find("PRIVATE KEY").filter(|length| *length < 30) else {
            continue;
        };
        let Some(dashes) = label[length..].find("-----") else {
            continue;
        };
        let body = at + BEGIN.len() + length + dashes + 5;
        let end = body + key_body(&text.as_bytes()[body..]);
        from = end;
        let start =
            body + text[body..end].len() - text[body..end].trim_start_matches(is_break).len();
        let end = start + text[start..end].trim_end_matches(is_break).len();
        if end > start + 16 {
            found.add("private key", start..end);
        }
    }
}

/// Line ends, also as they are written inside strings.
fn is_break(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\\' | 'n' | 'r')
}

/// The length of base64 with line ends and PEM headers, up to the dashes that end it or something else.
fn key_body(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .position(|byte| {
            !(byte.is_ascii_alphanumeric()
                || byte.is_ascii_whitespace()
                || matches!(byte, b'+' | b'/' | b'=' | b'\\' | b':' | b',' | b'|' | b'>'))
        })
        .map_or(bytes.len(), |end| {
            // Headers (`Proc-Type: 4,ENCRYPTED`, `DEK-Info: …-CBC,…`) hold a single dash.
            let dash = bytes[end] == b'-' && bytes.get(end + 1) != Some(&b'-');
            if dash {
                end + 1 + key_body_rest(&bytes[end + 1..])
            } else {
                end
            }
        })
}

/// As [`key_body`], over the few dashes of the headers.
fn key_body_rest(bytes: &[u8]) -> usize {
    let mut at = 0;
    for _ in 0..8 {
        let rest = &bytes[at..];
        let stop = rest.iter().position(|byte| {
            !(byte.is_ascii_alphanumeric()
                || byte.is_ascii_whitespace()
                || matches!(byte, b'+' | b'/' | b'=' | b'\\' | b':' | b','))
        });
        let Some(stop) = stop else {
            return bytes.len();
        };
        at += stop;
        if bytes[at] != b'-' || bytes.get(at + 1) == Some(&b'-') {
            return at;
        }
        at += 1;
    }
    at
}

/// Tokens with a prefix of their own, and JSON web tokens.
fn tokens(bytes: &[u8], found: &mut Found) {
    let mut runs = Runs { bytes, end: 0 };
    let mut at = 0;
    while at < bytes.len() {
        let stretch = bytes[at..]
            .iter()
            .position(|byte| !IN_TOKEN[usize::from(*byte)])
            .unwrap_or(bytes.len() - at);
        let end = at + stretch;
        // Most words are shorter than any token.
        if stretch >= SHORTEST_TOKEN {
            while at < end {
                let boundary = at == 0 || !Set::Word.has(bytes[at - 1]);
                let token = boundary.then(|| token(&mut runs, at)).flatten();
                if let Some((kind, length)) = token {
                    found.add(kind, at..at + length);
                }
                at += token.map_or(1, |(_, length)| length);
            }
        }
        at = end.max(at) + 1;
    }
}

/// No token of those we know is shorter, in bytes.
const SHORTEST_TOKEN: usize = 20;

/// The characters that tokens are made of; a table, because every byte of a text is looked up.
static IN_TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = Set::Dotted.has(byte as u8) || byte as u8 == b':';
        byte += 1;
    }
    table
};

/// Measures runs of characters. The runs that can hold the start of another token are measured once.
struct Runs<'a> {
    bytes: &'a [u8],
    /// Where the last run of [`Set::Url`] ended.
    end: usize,
}

impl Runs<'_> {
    fn length(&mut self, from: usize, set: Set) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        match set {
            Set::Url => {
                if from >= self.end {
                    self.end = from + run(rest, set);
                }
                self.end - from
            }
            Set::Dotted => run(&rest[..rest.len().min(128)], set),
            // They hold no boundary at which another token could begin.
            Set::Hex | Set::Upper | Set::Alnum | Set::Word => run(rest, set),
        }
    }
}

/// The kind and the length of the token that begins here.
fn token(runs: &mut Runs<'_>, at: usize) -> Option<(&'static str, usize)> {
    let bytes = &runs.bytes[at..];
    let first = *bytes.first()?;
    if !first.is_ascii_alphanumeric() {
        return None;
    }
    if bytes.starts_with(b"eyJ") {
        return web_token(runs, at).map(|length| ("web token", length));
    }
    if first.is_ascii_digit() {
        return bot_token(bytes).map(|length| ("bot token", length));
    }
    TOKENS
        .iter()
        .filter(|(prefix, ..)| bytes.starts_with(prefix.as_bytes()))
        .find_map(|(prefix, kind, set, least)| {
            let body = runs.length(at + prefix.len(), *set);
            let end = prefix.len() + body;
            // A fixed alphabet means a fixed length: what is longer is something else.
            let exact = matches!(set, Set::Hex | Set::Upper) && *prefix != "AGE-SECRET-KEY-1";
            let whole = if exact {
                body == *least && !bytes.get(end).is_some_and(|byte| Set::Word.has(*byte))
            } else {
                body >= *least
            };
            (whole && is_mixed(&bytes[prefix.len()..end], *set)).then_some((*kind, end))
        })
}

/// The length of the run of characters of a set, at most [`REACH`].
fn run(bytes: &[u8], set: Set) -> usize {
    let reach = &bytes[..bytes.len().min(REACH)];
    reach
        .iter()
        .position(|byte| !set.has(*byte))
        .unwrap_or(reach.len())
}

/// Whether a token's body looks random: words with dashes have one kind of letters, and samples repeat one letter.
fn is_mixed(body: &[u8], set: Set) -> bool {
    let body = &body[..body.len().min(64)];
    let digits = body.iter().filter(|byte| byte.is_ascii_digit()).count();
    let has = |class: fn(&u8) -> bool| body.iter().any(class);
    let cases = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    distinct(body) >= 8 && (digits >= 2 || cases || matches!(set, Set::Upper))
}

/// How many different bytes there are.
fn distinct(bytes: &[u8]) -> u32 {
    let mut seen = [0_u64; 4];
    for byte in bytes {
        seen[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
    seen.iter().map(|part| part.count_ones()).sum()
}

/// `eyJ….eyJ….…`: header and body are JSON objects in base64.
fn web_token(runs: &mut Runs<'_>, at: usize) -> Option<usize> {
    let body_at = at + runs.length(at, Set::Url) + 1;
    let rest = runs.bytes.get(body_at - 1..)?;
    if body_at - at < 13 || !rest.starts_with(b".eyJ") {
        return None;
    }
    let sign_at = body_at + runs.length(body_at, Set::Url) + 1;
    if sign_at - body_at < 13 || runs.bytes.get(sign_at - 1) != Some(&b'.') {
        return None;
    }
    Some(sign_at + runs.length(sign_at, Set::Url) - at)
}

/// `123456789:AA…`: a chat bot's token.
fn bot_token(bytes: &[u8]) -> Option<usize> {
    let digits = bytes
        .iter()
        .take(12)
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let body = bytes.get(digits..)?.strip_prefix(b":AA")?;
    let length = run(body, Set::Url);
    ((8..=10).contains(&digits) && length == 33).then_some(digits + 3 + length)
}

/// The passwords of `scheme://user:password@host`, and the paths of webhooks that are secrets themselves.
fn urls(text: &str, found: &mut Found) {
    const HOOKS: [&str; 3] = [
        "hooks.slack.com/services/",
        "discord.com/api/webhooks/",
        "discordapp.com/api/webhooks/",
    ];
    for at in memmem::find_iter(text.as_bytes(), "://") {
        let start = at + 3;
        let reach = text.floor_char_boundary((start + 512).min(text.len()));
        let rest = &text[start..reach];
        let end = rest
            .find(|c: char| {
                c.is_whitespace()
                    || matches!(
                        c,
                        '/' | '"' | '\'' | '`' | '<' | '>' | '?' | '#' | '|' | ')'
                    )
            })
            .unwrap_or(rest.len());
        if let Some(hook) = HOOKS.iter().find(|hook| rest.starts_with(**hook)) {
            let length = run(&rest.as_bytes()[hook.len()..], Set::Dotted);
            let more = rest.as_bytes()[hook.len()..]
                .iter()
                .take_while(|byte| Set::Url.has(**byte) || **byte == b'/')
                .count();
            if more > length.max(16) {
                found.add("webhook", start + hook.len()..start + hook.len() + more);
            }
            continue;
        }
        let Some((user, password)) = rest[..end]
            .rsplit_once('@')
            .and_then(|(login, _)| login.split_once(':'))
        else {
            continue;
        };
        if is_value(password) && password.len() >= 3 {
            let from = start + user.len() + 1;
            found.add(PASSWORD, from..from + password.len());
        }
    }
}

/// Whether this could be a secret at all, and is not a placeholder, a variable or a mask.
fn is_value(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let bare = lower.trim_matches(['*', '.', 'x', '-', '_']);
    !value.is_empty()
        && !bare.is_empty()
        && !value.starts_with(['$', '<', '{', '%', '(', '[', '&'])
        && !value.contains(['…', '[', ']'])
        && !PLACEHOLDERS.contains(&lower.as_str())
        && !value.contains("{}")
        && !value.contains("${")
}

/// Values that are given to a secret's name: `PASSWORD=…`, `"api_key": "…"`, `token: …`.
fn assignments(text: &str, found: &mut Found) {
    let bytes = text.as_bytes();
    let (mut stretch_end, mut nested) = (0, 0);
    for at in memchr2_iter(b'=', b':', bytes) {
        let Some(name) = name_before(text, at) else {
            continue;
        };
        let (secret, env) = (is_secret_name(name), is_env_line(text, at, name));
        if !secret && !env {
            continue;
        }
        if at >= stretch_end {
            nested = 0;
        }
        nested += 1;
        if nested > NESTED {
            continue;
        }
        let Some((value, quoted)) = value_behind(text, at + 1) else {
            continue;
        };
        stretch_end = stretch_end.max(value.end);
        if value.len() > VALUE_REACH {
            continue;
        }
        let text_of = &text[value.clone()];
        let is_secret = is_value(text_of)
            && if secret && env {
                text_of.len() >= 4 && !is_plain(text_of)
            } else if secret {
                looks_random(text_of, quoted)
            } else {
                looks_like_key(text_of)
            };
        if is_secret {
            let kind = if is_password_name(name) {
                PASSWORD
            } else {
                "secret"
            };
            found.add(kind, value);
        }
    }
}

/// The name in front of a `=` or `:`, which may be quoted and have a blank behind it.
fn name_before(text: &str, at: usize) -> Option<&str> {
    let start = text.ceil_char_boundary(at.saturating_sub(NAME_REACH));
    let head = text[start..at].trim_end_matches([' ', ':']);
    let head = head.strip_suffix(['"', '\'', '`']).unwrap_or(head);
    // Quotes within quotes.
    let head = head.trim_end_matches('\\');
    let length = head
        .bytes()
        .rev()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        .count();
    let name = &head[head.len() - length..];
    (!name.is_empty()).then_some(name)
}

/// Whether the last word of a name is one of a secret: `AWS_SECRET_ACCESS_KEY`, `api-key`, `dbPassword`.
fn is_secret_name(name: &str) -> bool {
    let tail_start = name.ceil_char_boundary(name.len().saturating_sub(24));
    let tail = &name[tail_start..];
    let word = tail.rsplit(['_', '-', '.']).next().unwrap_or_default();
    let is = |word: &str| NAMES.iter().any(|name| name.eq_ignore_ascii_case(word));
    // The last hump of camel case.
    let hump = word
        .bytes()
        .rposition(|byte| byte.is_ascii_uppercase())
        .filter(|at| *at > 0 && word.as_bytes()[at - 1].is_ascii_lowercase());
    is(word) || hump.is_some_and(|at| is(&word[at..])) || is_password_name(word)
}

/// Whether a name ends in a word for a password, also without a sign before it: `PGPASSWORD`, `dbpasswd`.
fn is_password_name(name: &str) -> bool {
    const ENDINGS: [&str; 6] = [
        "password",
        "passwd",
        "passwort",
        "passphrase",
        "pwd",
        "pass",
    ];
    ENDINGS.iter().any(|ending| {
        let at = name.len().checked_sub(ending.len());
        // The short ones end other words too: `bypass`, `cwd` is none.
        at.is_some_and(|at| {
            name.as_bytes()[at..].eq_ignore_ascii_case(ending.as_bytes())
                && (ending.len() > 4
                    || at == 0
                    || !name.as_bytes()[at - 1].is_ascii_alphabetic()
                    || name.as_bytes()[at].is_ascii_uppercase()
                        && name.as_bytes()[at - 1].is_ascii_lowercase())
        })
    })
}

/// Whether this is a `NAME=value` of a shell or an `.env` file: upper case, no blanks, at the start of its line.
fn is_env_line(text: &str, at: usize, name: &str) -> bool {
    let upper = name
        .bytes()
        .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    if !upper || name.len() < 2 || text.as_bytes()[at] != b'=' || !text[..at].ends_with(name) {
        return false;
    }
    let before = &text.as_bytes()[at.saturating_sub(name.len() + 16)..at - name.len()];
    let line = before
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(before, |end| &before[end + 1..]);
    // Behind a blank it is an argument, as in `docker run -e NAME=value` or `NAME=value command`; behind a sign, another command.
    line.iter().all(u8::is_ascii_whitespace)
        || matches!(
            line.last(),
            Some(b' ' | b'"' | b'\'' | b'`' | b';' | b'&' | b'|' | b'(')
        )
}

/// The value behind a `=` or `:`, without its quotes, and whether it has some.
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
    let plain = !value.contains(char::is_whitespace);
    (plain && !value.is_empty()).then_some((start..start + value.len(), quote.is_some()))
}

/// Whether a value of an `.env` line is nothing to hide: a switch, a number, a path, code.
fn is_plain(value: &str) -> bool {
    value.len() < 6 && value.bytes().all(|byte| byte.is_ascii_digit())
        || matches!(
            value.to_ascii_lowercase().as_str(),
            "true" | "false" | "none" | "null" | "auto"
        )
        || value.starts_with(['/', '~', '.'])
        || value.contains(['(', '<', '{'])
}

/// Whether a value looks made by a machine, or by a person who was told to use a digit and a symbol.
fn looks_random(value: &str, quoted: bool) -> bool {
    let bytes = value.as_bytes();
    let has = |class: fn(&u8) -> bool| bytes.iter().any(class);
    let symbol = |byte: &u8| {
        matches!(
            byte,
            b'!' | b'@'
                | b'#'
                | b'$'
                | b'%'
                | b'^'
                | b'*'
                | b'+'
                | b'/'
                | b'='
                | b'?'
                | b'~'
                | b'&'
        )
    };
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if bytes.len() < 8 || !bytes.iter().all(|byte| plain(byte) || symbol(byte)) {
        return false;
    }
    if !has(u8::is_ascii_digit) || !has(u8::is_ascii_alphabetic) {
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
    let short = quoted && classes >= 3 && !value.contains('.') && switches >= 1;
    let long = bytes.len() >= 12 && switches >= 3 && distinct(bytes) >= 7 && !is_wordy(value);
    short && bytes.len() < 16 && !is_wordy(value) || long
}

/// How often letters and digits follow one another.
fn switches(bytes: &[u8]) -> usize {
    bytes
        .windows(2)
        .filter(|pair| {
            pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic()
                || pair[0].is_ascii_alphabetic() && pair[1].is_ascii_digit()
        })
        .count()
}

/// Whether the text is words with numbers, as in `utf8-to-utf16-v2` and `ed25519_sk_v1`: parts that are short and
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

/// Whether a value under any name is a key: long, of all three kinds of characters, and random. Hashes in hex, which are
/// all over a repository, are not.
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

/// Shannon's entropy, bits a byte.
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

/// `Bearer …` and `Basic …` wherever they stand.
fn bearers(bytes: &[u8], found: &mut Found) {
    for at in memchr_iter(b' ', bytes) {
        let head = &bytes[at.saturating_sub(6)..at];
        let bearer = head.eq_ignore_ascii_case(b"bearer");
        let basic = head.ends_with(b"Basic");
        if !bearer && !basic {
            continue;
        }
        let body = &bytes[at + 1..(at + 1 + REACH).min(bytes.len())];
        let set = |byte: &u8| {
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'_' | b'-' | b'.' | b'~' | b'+' | b'/' | b'=')
        };
        let length = body
            .iter()
            .position(|byte| !set(byte))
            .unwrap_or(body.len());
        let value = &body[..length];
        let random = switches(value) >= 2 && distinct(value) >= 8;
        let base64 = basic
            && value.iter().any(u8::is_ascii_uppercase)
            && value.iter().any(u8::is_ascii_lowercase)
            && (value.ends_with(b"=") || value.len().is_multiple_of(4))
            && distinct(value) >= 8;
        if value.len() >= 16 && (random || base64) {
            found.add("bearer token", at + 1..at + 1 + length);
        }
    }
}

#[cfg(test)]
mod tests;
