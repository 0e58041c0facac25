//! Values on their way to the database, without their secrets.

use chrono::{DateTime, Utc};

use crate::db::Bind;
use pitstop_base::redact;
use pitstop_core::lineage::{self, moment};

/// Binds a text without its secrets. Every text from outside gets into the database by `bind_text`, `bind_maybe` or
/// `masked_json`, which mask secrets; a text that is searched for passes through them, too.
pub(super) fn bind_text(value: &impl ToString) -> Bind {
    bind_maybe(Some(value.to_string()))
}

pub(super) fn bind_maybe(value: Option<impl ToString>) -> Bind {
    Bind::Text(value.map(|value| redact::redact(&value.to_string()).into_owned()))
}

pub(super) fn bind_time(at: DateTime<Utc>) -> Bind {
    Bind::Text(Some(moment::text(at)))
}

pub(super) fn bind_number(value: impl Into<u64>) -> Bind {
    bind_count(Some(value.into()))
}

/// Binds a count. One beyond 63 bits is nonsense from outside: it is kept as the largest that fits.
pub(super) fn bind_count(value: Option<u64>) -> Bind {
    Bind::Int(value.map(|value| i64::try_from(value).unwrap_or(i64::MAX)))
}

pub(super) fn masked_json(value: &impl serde::Serialize) -> String {
    redact::json(&lineage::json(value).to_string()).into_owned()
}

/// Returns a text in the form for a pattern of `LIKE … ESCAPE '!'`.
pub(super) fn like_pattern(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        let has_case = || c.to_lowercase().ne([c]) || c.to_uppercase().ne([c]);
        if !c.is_ascii() && has_case() {
            pattern.push('_');
            continue;
        }
        if matches!(c, '!' | '%' | '_') {
            pattern.push('!');
        }
        pattern.push(c);
    }
    pattern
}
