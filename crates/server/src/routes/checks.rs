//! The checks of the fields of a request, one by one.

use serde::Serialize;

use pitstop_base::clean;
use pitstop_core::api::wire::{
    CommitBody, FieldError, SAVE_CONTEXT_LIMIT, SAVE_TEXT_LIMIT, SHA_DIGITS, SaveBody,
    TEST_NAME_LIMIT, TEST_NAMES_LIMIT, TestBody, is_sha,
};

/// The largest accepted number of tokens: far above any model, far below an overflow.
const TOKENS_LIMIT: u64 = 1_000_000_000_000;

/// The largest accepted count of tests or files.
const COUNT_LIMIT: u64 = 1_000_000_000;

/// The most unknown fields that are named, and the most characters of each name.
const NAMED: usize = 80;

/// Returns the fields that an endpoint does not know. They are ignored, because a newer or older caller may send some, and the
/// answer names them, because one may be misspelt.
pub(super) fn unknown(given: impl Iterator<Item = String>, read: &impl Serialize) -> Vec<String> {
    let known = serde_json::to_value(read).unwrap_or_default();
    let unknown = given.filter(|name| known.get(name).is_none());
    let shown = unknown.map(|name| clean::stripped(&name, NAMED));
    shown.take(NAMED).collect()
}

/// Returns the number of tokens of that name in a query, if it is given.
pub(super) fn figure(
    given: &[(String, String)],
    name: &str,
    least: u64,
) -> Result<Option<u64>, FieldError> {
    let mut values = given.iter().filter(|(have, _)| have == name);
    let Some((_, value)) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(FieldError::new(name, "one value", "a second one"));
    }
    let number = value.parse().ok();
    let number = number.filter(|number| (least..=TOKENS_LIMIT).contains(number));
    let expected = || format!("a whole number of {least} to {TOKENS_LIMIT}");
    number.map_or_else(
        || Err(FieldError::text(name, expected(), value)),
        |number| Ok(Some(number)),
    )
}

pub(super) fn check_save(body: &SaveBody) -> Result<(), FieldError> {
    if let Some(used) = body.used_tokens.filter(|used| *used > TOKENS_LIMIT) {
        let expected = format!("a whole number of 0 to {TOKENS_LIMIT}");
        return Err(FieldError::new("used_tokens", expected, used));
    }
    for (name, text, limit) in [
        ("inferred_task", &body.inferred_task, SAVE_TEXT_LIMIT),
        (
            "inferred_context",
            &body.inferred_context,
            SAVE_CONTEXT_LIMIT,
        ),
    ] {
        let length = text.as_ref().map_or(0, String::len);
        if length > limit {
            return Err(FieldError::bytes(name, limit, length));
        }
    }
    Ok(())
}

pub(super) fn check_commit(body: &CommitBody) -> Result<(), FieldError> {
    if !is_sha(&body.commit_sha) {
        let (least, most) = (SHA_DIGITS.start(), SHA_DIGITS.end());
        let expected = format!("{least} to {most} hexadecimal digits");
        return Err(FieldError::text("commit_sha", expected, &body.commit_sha));
    }
    check_count("files_changed", body.files_changed)
}

pub(super) fn check_tests(body: &TestBody) -> Result<(), FieldError> {
    check_count("test_count", body.test_count)?;
    check_count("failed_count", body.failed_count)?;
    if let (Some(failed), Some(all)) = (body.failed_count, body.test_count)
        && failed > all
    {
        let expected = format!("a number of at most {all}, the test_count,");
        return Err(FieldError::new("failed_count", expected, failed));
    }
    if let Some(seconds) = body.duration_seconds.filter(|one| one.is_sign_negative()) {
        return Err(FieldError::new(
            "duration_seconds",
            "a number of 0 or more",
            seconds,
        ));
    }
    let failed = body.failed_count;
    check_names("failing_tests", body.failing_tests.as_deref(), failed)?;
    let passed = body.test_count.map(|all| all - failed.unwrap_or(0));
    check_names("passing_tests", body.passing_tests.as_deref(), passed)
}

fn check_names(list: &str, names: Option<&[String]>, count: Option<u64>) -> Result<(), FieldError> {
    let names = names.unwrap_or_default();
    let most = count.unwrap_or(u64::MAX).min(TEST_NAMES_LIMIT as u64);
    if names.len() as u64 > most {
        let expected = format!("a list of at most {most} names");
        return Err(FieldError::new(list, expected, names.len()));
    }
    for (at, name) in names.iter().enumerate() {
        if name.trim().is_empty() || name.len() > TEST_NAME_LIMIT {
            let expected = format!("a name of 1 to {TEST_NAME_LIMIT} bytes");
            return Err(FieldError::text(format!("{list}[{at}]"), expected, name));
        }
    }
    Ok(())
}

fn check_count(name: &str, count: Option<u64>) -> Result<(), FieldError> {
    match count.filter(|count| *count > COUNT_LIMIT) {
        Some(count) => {
            let expected = format!("a whole number of at most {COUNT_LIMIT}");
            Err(FieldError::new(name, expected, count))
        }
        None => Ok(()),
    }
}
