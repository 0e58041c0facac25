//! Durations and sizes as people write them: `2s`, `1h30m`, `64MiB`.

use std::{fmt::Write as _, time::Duration};

/// The units of a duration from the largest to the smallest, in milliseconds.
const DURATION_UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// The units of a size, in bytes; the first name of each is the one that is printed.
const SIZE_UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

/// Reads `500ms`, `2s`, `4h`, `1h30m`; each unit at most once, from large to small. A bare `0` is a duration of zero.
pub fn parse_duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    if text.is_empty() {
        return None;
    }
    let mut millis: u64 = 0;
    let mut rest = text;
    let mut smallest = u64::MAX;
    while !rest.is_empty() {
        let (number, after) = split_digits(rest)?;
        let end = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        let (_, scale) = DURATION_UNITS.iter().find(|(name, _)| *name == unit)?;
        if *scale >= smallest {
            return None;
        }
        smallest = *scale;
        millis = millis.checked_add(number.checked_mul(*scale)?)?;
        rest = next;
    }
    Some(Duration::from_millis(millis))
}

/// Writes a duration as [`parse_duration`] reads it, whole milliseconds only.
pub(super) fn format_duration(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if rest == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (name, scale) in DURATION_UNITS {
        if rest >= scale {
            let _ = write!(text, "{}{name}", rest / scale);
            rest %= scale;
        }
    }
    text
}

/// Reads `64MiB`, `50kB`, `512B` or a bare number of bytes.
pub(super) fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = split_digits(text)?;
    let unit = unit.trim_start();
    if unit.is_empty() {
        return Some(number);
    }
    let (_, scale) = SIZE_UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    number.checked_mul(*scale)
}

/// Writes a size as [`parse_size`] reads it, in the largest unit that needs no fraction.
pub(super) fn format_size(bytes: u64) -> String {
    let whole = |scale: u64| bytes >= scale && bytes.is_multiple_of(scale);
    match SIZE_UNITS.iter().find(|(_, scale)| whole(*scale)) {
        Some((name, scale)) => format!("{}{name}", bytes / scale),
        None => "0B".to_owned(),
    }
}

fn split_digits(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_in_their_written_forms() {
        for (text, millis) in [
            ("500ms", 500),
            ("2s", 2_000),
            ("4h", 14_400_000),
            ("1h30m", 5_400_000),
            ("1m500ms", 60_500),
            ("2d", 172_800_000),
            ("0s", 0),
            ("0", 0),
        ] {
            assert_eq!(
                parse_duration(text),
                Some(Duration::from_millis(millis)),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in [
            "",
            "2",
            "s",
            "2 s",
            "-2s",
            "1.5s",
            "2S",
            "30m1h",
            "1h1h",
            "2sec",
            "ms",
            "1s2",
            "99999999999999999999s",
            "999999999999999999d",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_are_read_in_their_written_forms() {
        for (text, bytes) in [
            ("64MiB", 67_108_864),
            ("64mib", 67_108_864),
            ("50kB", 50_000),
            ("512", 512),
            ("1 GB", 1_000_000_000),
            ("0B", 0),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for text in [
            "",
            "MiB",
            "1.5MB",
            "-1",
            "1XB",
            "99999999999999999999",
            "99999999999GiB",
        ] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn durations_are_read_back_as_printed(millis in 0_u64..1_000_000_000_000) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Some(duration));
        }

        #[test]
        fn sizes_are_read_back_as_printed(bytes: u64) {
            prop_assert_eq!(parse_size(&format_size(bytes)), Some(bytes));
        }
    }
}
