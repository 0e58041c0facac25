//! Masks the secrets in the texts of JSON, so that it stays JSON.

use std::borrow::Cow;

use serde_json::Value;

use super::{Secret, apart, is_password_name, is_secret_name, last_word, mask, redact, secrets};

/// Returns the same value with the secrets in its texts replaced by masks. A name counts as the name of its text.
pub fn value(of: &Value) -> Value {
    match of {
        Value::String(text) => Value::String(redact(text).into_owned()),
        Value::Array(values) => values.iter().map(value).collect(),
        Value::Object(fields) => {
            let mut texts = fields.values().filter_map(Value::as_str);
            let title = texts.find(|text| is_title(text));
            let masked = fields.iter().map(|(name, one)| {
                let one = match one {
                    Value::String(text) => {
                        let name = title.filter(|_| is_value_name(name)).unwrap_or(name);
                        Value::String(named(name, text).into_owned())
                    }
                    other => value(other),
                };
                (name.clone(), one)
            });
            Value::Object(masked.collect())
        }
        other => other.clone(),
    }
}

/// Replaces the secrets in the texts of one or more JSON values by masks; names stay. A name counts as the name of its
/// text: `{"db_password": "…"}`. Text that is no JSON is left as it is, as far as it has no texts in quotes.
pub fn json(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let mut done = 0;
    let mut name: Option<Cow<'_, str>> = None;
    let mut title = Cow::Borrowed("");
    let mut at = 0;
    while let Some(begin) = memchr::memchr(b'"', &bytes[at..]).map(|found| at + found) {
        let Some(end) = closing_quote(bytes, begin + 1) else {
            break;
        };
        at = end + 1;
        let Some(value) = unquoted(&text[begin..at]) else {
            name = None;
            continue;
        };
        let behind = bytes[at..]
            .iter()
            .position(|byte| !byte.is_ascii_whitespace());
        if behind.is_some_and(|blanks| bytes[at + blanks] == b':') {
            name = Some(value);
            continue;
        }
        let name = name.take().filter(|_| follows_colon(bytes, begin));
        let masked = match &name {
            Some(name) if is_value_name(name) && is_title(&title) => named(&title, &value),
            Some(name) => named(name, &value),
            None => redact(&value),
        };
        if let Cow::Owned(masked) = masked {
            out.push_str(&text[done..begin]);
            // A text always becomes JSON.
            out.push_str(&serde_json::to_string(&masked).unwrap_or_default());
            done = at;
        }
        title = value;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// Replaces the secrets in a text by masks, also the one that only its name shows.
pub fn named<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    let mut found = secrets(value);
    if is_secret_name(name) && !value.contains(['"', '\n']) {
        let head = format!("{name}=\"");
        let whole = format!("{head}{value}\"");
        let more = secrets(&whole).into_iter().filter_map(|one| {
            let start = one.range.start.checked_sub(head.len())?;
            let end = (one.range.end - head.len()).min(value.len());
            Some(Secret {
                range: start..end,
                kind: one.kind,
            })
        });
        found.extend(more);
        found = apart(found);
    }
    match mask(value, found) {
        Cow::Owned(once) => Cow::Owned(redact(&once).into_owned()),
        whole @ Cow::Borrowed(_) => whole,
    }
}

/// Reports whether a field has the value of what another field names: `{"name": "DB_PASSWORD", "value": "…"}`.
fn is_value_name(name: &str) -> bool {
    name.eq_ignore_ascii_case("value")
}

/// Reports whether a text is a secret's name, and more than a word such as `key`.
fn is_title(text: &str) -> bool {
    is_secret_name(text) && (last_word(text) != text || is_password_name(text))
}

fn closing_quote(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

fn unquoted(literal: &str) -> Option<Cow<'_, str>> {
    let inner = &literal[1..literal.len() - 1];
    if inner.contains('\\') {
        return serde_json::from_str(literal).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

fn follows_colon(bytes: &[u8], at: usize) -> bool {
    let before = bytes[..at]
        .iter()
        .rposition(|byte| !byte.is_ascii_whitespace());
    before.is_some_and(|before| bytes[before] == b':')
}
