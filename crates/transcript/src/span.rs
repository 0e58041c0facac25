//! The byte ranges of the values of a JSON record, so that one can be replaced and every other byte kept.
//!
//! The bytes are known to be JSON when they come here (`serde_json` has read past them); what it does not
//! check, such as bad UTF-8 inside strings and half surrogate pairs, goes through untouched. On anything else
//! the functions find less, and never panic. No function recurses, so that the depth of nesting has no limit.

use std::{borrow::Cow, ops::Range};

use memchr::memchr2;

use super::record::Text;

/// Hands every member of an object to `sink`: its key, unescaped, and the range of its value in `bytes`.
pub(super) fn each_member(
    bytes: &[u8],
    object: Range<usize>,
    mut sink: impl FnMut(&[u8], Range<usize>),
) {
    let Some(mut at) = first_item(bytes, &object, b'{') else {
        return;
    };
    while at < object.end && bytes[at] == b'"' {
        let key_end = value_end(bytes, at, object.end);
        let colon = skip_space(bytes, key_end, object.end);
        let start = skip_space(bytes, (colon + 1).min(object.end), object.end);
        let end = value_end(bytes, start, object.end);
        if let Some(key) = string_text(&bytes[at..key_end]) {
            sink(&key, start..end);
        }
        let Some(next) = next_item(bytes, end, object.end) else {
            return;
        };
        at = next;
    }
}

/// Hands the range in `bytes` of every element of an array to `sink`.
pub(super) fn each_element(bytes: &[u8], array: Range<usize>, mut sink: impl FnMut(Range<usize>)) {
    let Some(mut at) = first_item(bytes, &array, b'[') else {
        return;
    };
    while at < array.end && bytes[at] != b']' {
        let end = value_end(bytes, at, array.end);
        if end == at {
            return;
        }
        sink(at..end);
        let Some(next) = next_item(bytes, end, array.end) else {
            return;
        };
        at = next;
    }
}

/// Returns the text of a string value; none if it is not a string. Bad UTF-8 comes as it is, half a surrogate pair as WTF-8.
pub(super) fn string_text(value: &[u8]) -> Option<Cow<'_, [u8]>> {
    let text: Text<'_> = serde_json::from_slice(value).ok()?;
    Some(text.0)
}

/// Returns the number of characters in a string value; 0 if it is not a string.
pub(super) fn count_characters(value: &[u8]) -> u64 {
    let text = string_text(value).unwrap_or_default();
    // Every byte that does not continue a character begins one; the count of bad UTF-8 is approximate.
    text.iter()
        .filter(|&&byte| !(0x80..0xc0).contains(&byte))
        .count() as u64
}

/// Returns the place of the first item behind the opening bracket, if `value` begins with `bracket`.
fn first_item(bytes: &[u8], value: &Range<usize>, bracket: u8) -> Option<usize> {
    let opens = value.start < value.end && value.end <= bytes.len();
    (opens && bytes[value.start] == bracket).then(|| skip_space(bytes, value.start + 1, value.end))
}

/// Returns the place of the next item behind the comma at or after `at`; none if there is no comma.
fn next_item(bytes: &[u8], at: usize, end: usize) -> Option<usize> {
    let comma = skip_space(bytes, at, end);
    (comma < end && bytes[comma] == b',').then(|| skip_space(bytes, comma + 1, end))
}

fn skip_space(bytes: &[u8], at: usize, end: usize) -> usize {
    let space = bytes[at..end]
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace());
    at + space.count()
}

/// Returns the end of the value that begins at `at`.
fn value_end(bytes: &[u8], mut at: usize, end: usize) -> usize {
    let mut depth = 0_usize;
    while at < end {
        match bytes[at] {
            b'"' => at = string_end(bytes, at, end),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            // The end of the object or array that this value is in.
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                at += 1;
            }
            _ if depth > 0 => {
                at += 1;
                continue;
            }
            b',' | b':' => return at,
            byte if byte.is_ascii_whitespace() => return at,
            // A number or a word continues to its delimiter.
            _ => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            return at;
        }
    }
    end
}

/// Returns the end of the string whose opening quote is at `at`, behind its closing quote.
fn string_end(bytes: &[u8], at: usize, end: usize) -> usize {
    let mut at = at + 1;
    while let Some(found) = bytes
        .get(at..end)
        .and_then(|rest| memchr2(b'"', b'\\', rest))
    {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(json: &str) -> Vec<(String, String)> {
        let mut found = Vec::new();
        each_member(json.as_bytes(), 0..json.len(), |key, value| {
            found.push((
                String::from_utf8(key.to_vec()).unwrap(),
                json[value].to_owned(),
            ));
        });
        found
    }

    #[test]
    fn every_kind_of_value_is_found_whole() {
        let values = [
            r#""a\"}]\\""#,
            "-1.5e3",
            "true",
            "null",
            "{}",
            "[]",
            r#"{"x":[1,{"y":"}"}]}"#,
            r#"["]",[[]],{"z":"["}]"#,
        ];
        let spaced = values
            .iter()
            .enumerate()
            .map(|(at, value)| format!(" \"k{at}\" :\t{value} "))
            .collect::<Vec<_>>()
            .join(",");
        let names: Vec<_> = found(&format!("{{{spaced}}}"));
        assert_eq!(names.len(), values.len());
        for (at, (key, value)) in names.into_iter().enumerate() {
            assert_eq!((key, value.as_str()), (format!("k{at}"), values[at]));
        }
    }

    #[test]
    fn keys_are_known_through_their_escapes() {
        assert_eq!(
            found(r#"{"sess\u0069onId":1}"#),
            [("sessionId".into(), "1".into())]
        );
    }

    #[test]
    fn elements_are_found_whole() {
        let json = r#" [1, "a,]" ,{"b":[2]},[] ]"#;
        let mut seen = Vec::new();
        each_element(json.as_bytes(), 1..json.len(), |value| {
            seen.push(&json[value]);
        });
        assert_eq!(seen, ["1", r#""a,]""#, r#"{"b":[2]}"#, "[]"]);
        each_element(b"[]", 0..2, |_| panic!("an empty array has no elements"));
        each_element(b"{}", 0..2, |_| panic!("an object has no elements"));
    }

    #[test]
    fn characters_are_those_of_the_text_and_not_of_its_escapes() {
        assert_eq!(count_characters(br#""a\n\u00e9\\""#), 4);
        assert_eq!(count_characters("\"äß漢\"".as_bytes()), 3);
        assert_eq!(count_characters(br#""\ud800""#), 1);
        assert_eq!(count_characters(b"12"), 0);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(prop::sample::select(b"{}[]\",:\\ax1 \xff".to_vec()), 0..60)) {
            each_member(&bytes, 0..bytes.len(), |_, value| assert!(value.end <= bytes.len()));
            each_element(&bytes, 0..bytes.len(), |value| assert!(value.end <= bytes.len()));
            string_text(&bytes);
            count_characters(&bytes);
        }
    }
}
