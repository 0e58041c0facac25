//! The error about one field of a body or query, in words that name the field.

use std::fmt;

use serde_json::error::Category;

use pitstop_base::clean;

/// The longest value that is quoted back, in characters.
const FOUND_CAP: usize = 80;

/// A field whose value is not acceptable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} as {field}, found {found}")]
pub struct FieldError {
    /// The field's name; for a list item with its index, such as `tags[1]`.
    pub field: String,
    /// A description of the expected value.
    pub expected: String,
    /// A description of the found value.
    pub found: String,
}

impl FieldError {
    /// Creates an error with the expected and the found value; the latter is shortened and made safe to show.
    pub fn new(
        field: impl Into<String>,
        expected: impl Into<String>,
        found: impl fmt::Display,
    ) -> Self {
        Self {
            field: clean::stripped(&field.into(), FOUND_CAP),
            expected: expected.into(),
            found: shortened(&found.to_string()),
        }
    }

    /// Creates an error as [`FieldError::new`] does, with the found text in quotes.
    pub fn text(field: impl Into<String>, expected: impl Into<String>, found: &str) -> Self {
        Self::new(field, expected, format_args!("{found:?}"))
    }

    /// Creates an error as [`FieldError::new`] does, for a text of `found` bytes where at most `most` are allowed.
    pub fn bytes(field: impl Into<String>, most: usize, found: usize) -> Self {
        let expected = format!("a text of at most {most} bytes");
        Self::new(field, expected, format_args!("{found} bytes"))
    }
}

fn shortened(found: &str) -> String {
    let short = clean::one_line(found);
    match short.char_indices().nth(FOUND_CAP) {
        Some((end, _)) => format!("{}…", &short[..end]),
        None => short.into_owned(),
    }
}

/// Describes the fault of a body that could not be read; `path` is the field at which the reader stopped.
///
/// # Errors
///
/// Returns a message where no single field is at fault: the text is not JSON.
pub fn of_json(path: &str, error: &serde_json::Error) -> Result<FieldError, String> {
    let (line, column) = (error.line(), error.column());
    let place = format!("at line {line} column {column}");
    let said = error.to_string();
    let said = said
        .strip_suffix(&place)
        .map_or(said.as_str(), |said| said.trim_end());
    if error.classify() != Category::Data {
        return Err(format!(
            "expected a JSON object, found a fault {place}: {said}"
        ));
    }
    let quoted = |text: &str| text.split('`').nth(1).unwrap_or(text).to_owned();
    if let Some(name) = said.strip_prefix("missing field ") {
        return Ok(FieldError::new(quoted(name), "a value", "none"));
    }
    if let Some(name) = said.strip_prefix("duplicate field ") {
        return Ok(FieldError::new(quoted(name), "one value", "a second one"));
    }
    let rest = ["invalid type: ", "invalid value: ", "unknown variant "]
        .into_iter()
        .find_map(|start| said.strip_prefix(start));
    Ok(
        match rest.and_then(|rest| rest.rsplit_once(", expected ")) {
            Some((found, expected)) => FieldError::new(path, plain(expected), plain(found)),
            None => FieldError::new(path, "something else", said),
        },
    )
}

/// Returns the name of a serde type in words that a JSON author knows.
fn plain(word: &str) -> &str {
    match word {
        "u64" | "usize" => "a whole number of 0 or more",
        "f64" => "a number",
        "a string" => "a text",
        "a boolean" => "true or false",
        "a sequence" | "sequence" => "a list",
        "map" => "an object",
        word => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::wire::{PermissionBody, RebootBody, TestBody};

    fn of<T: serde::de::DeserializeOwned + fmt::Debug>(json: &str) -> (String, String) {
        let mut reader = serde_json::Deserializer::from_str(json);
        let error = serde_path_to_error::deserialize::<_, T>(&mut reader).unwrap_err();
        let path = error.path().to_string();
        match of_json(&path, error.inner()) {
            Ok(field) => (field.field.clone(), field.to_string()),
            Err(said) => (String::new(), said),
        }
    }

    #[test]
    fn the_field_its_value_and_what_is_expected_are_named() {
        for (json, field, said) in [
            ("{}", "passed", "expected a value as passed, found none"),
            (
                r#"{"passed": "yes"}"#,
                "passed",
                "expected true or false as passed, found string \"yes\"",
            ),
            (
                r#"{"passed": true, "test_count": -1}"#,
                "test_count",
                "expected a whole number of 0 or more as test_count, found integer `-1`",
            ),
            (
                r#"{"passed": true, "passed": true}"#,
                "passed",
                "expected one value as passed, found a second one",
            ),
            (
                r#"{"passed": true, "failing_tests": ["a", {}]}"#,
                "failing_tests[1]",
                "expected a text as failing_tests[1], found an object",
            ),
            (
                r#"{"passed": true, "failing_tests": "a"}"#,
                "failing_tests",
                "expected a list as failing_tests, found string \"a\"",
            ),
            (
                r#"{"passed": true, "#,
                "",
                "expected a JSON object, found a fault at line 1 column 17: EOF while parsing a value",
            ),
        ] {
            let (named, error) = of::<TestBody>(json);
            assert_eq!((named.as_str(), error.as_str()), (field, said), "{json}");
        }
        for (json, said) in [
            (
                r#"{"way": "sideways"}"#,
                "expected one of `fresh`, `in-place`, `on-the-fly`, `trim` as way, found `sideways`",
            ),
            (r#"{"way": 5}"#, "expected a text as way, found integer `5`"),
            (
                r#"{"way": ["trim"]}"#,
                "expected a text as way, found a list",
            ),
            (
                r#"{"way": {"trim": null}}"#,
                "expected a text as way, found an object",
            ),
        ] {
            let (named, error) = of::<RebootBody>(json);
            assert_eq!((named.as_str(), error.as_str()), ("way", said), "{json}");
        }
        let (named, error) = of::<PermissionBody>(r#"{"id": 1, "answer": true}"#);
        assert_eq!(named, "answer");
        assert_eq!(error, "expected a text as answer, found boolean `true`");
    }

    #[test]
    fn what_was_found_is_short_and_safe_to_show() {
        let error = FieldError::text("tag", "a word", &format!("\u{1b}{}", "x".repeat(1_000)));
        assert!(error.found.starts_with("\"\\u{1b}xxx") && error.found.chars().count() == 81);
    }
}
