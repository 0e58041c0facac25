//! Figures for people: tokens, bytes, times, money. One form each, wherever they are shown.

use std::{
    fmt::{self, Write as _},
    time::Duration,
};

/// Formats a number of tokens: `950`, `128.4k`, `153k`, `1M`, `1.25M`.
pub fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        // From here on the rounded figure would read `1000k`.
        1_000..999_950 => format!("{}k", decimals(count as f64 / 1e3, 1)),
        _ => format!("{}M", decimals(count as f64 / 1e6, 2)),
    }
}

/// Formats a number of tokens where a glance is enough: `950`, `19k`, `1.25M`.
pub fn rough_tokens(count: u64) -> String {
    match count {
        10_000..999_500 => format!("{}k", (count + 500) / 1_000),
        _ => tokens(count),
    }
}

/// Formats a number of tokens in whole thousands, for sentences: `950`, `19k`, `1250k`.
pub fn thousands(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        _ => format!("{}k", count.saturating_add(500) / 1_000),
    }
}

/// Formats a number of bytes: `950 B`, `12.4 KB`, `1.2 MB`, by thousands.
pub fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..999_950 => format!("{} KB", decimals(count as f64 / 1e3, 1)),
        _ => format!("{} MB", decimals(count as f64 / 1e6, 1)),
    }
}

/// Formats a share for people, in whole percent that are reached, without the sign: the same everywhere, and no line is
/// shown as passed before it is.
pub fn percent(share: f64) -> String {
    format!("{:.0}", share.floor())
}

fn decimals(value: f64, places: usize) -> String {
    let text = format!("{value:.places$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The characters of an id that are shown: enough to find it by.
pub const SHORT_ID: usize = 8;

/// Formats an id by its beginning.
pub fn short_id(id: impl fmt::Display) -> String {
    id.to_string().chars().take(SHORT_ID).collect()
}

/// Formats a number of things: `1 turn`, `3 turns`, `2 stashes`.
pub fn count<N: Copy + fmt::Display + PartialEq + From<u8>>(number: N, thing: &str) -> String {
    let plural = match thing {
        _ if number == N::from(1) => "",
        _ if thing.ends_with("sh") => "es",
        _ => "s",
    };
    format!("{number} {thing}{plural}")
}

/// Returns a text with its first letter in upper case.
pub fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.chain(chars).collect()
}

/// Formats a span of time, as short as a panel needs it: `45s`, `12m`, `2h03m`, `3d4h`.
pub fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{minutes}m"),
        3_600..86_400 => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{}h", hours % 24),
    }
}

/// Formats the time of a step while it runs: `0.4 s`, `75.0 s`.
pub fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_millis() as f64 / 1e3)
}

/// Formats the time that a step took, as short as a panel needs it: `412 ms`, `1.2 s`, `12m`.
pub fn short(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{:.1} s", milliseconds as f64 / 1e3),
        _ => span(Duration::from_millis(milliseconds)),
    }
}

/// Formats the time that something took, in full: `40 ms`, `2.5 s`, `3 min 20 s`, `2 h 5 min`.
pub fn duration(milliseconds: u64) -> String {
    let ms = milliseconds;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms / 1_000 % 60),
        _ => format!("{} h {} min", ms / 3_600_000, ms / 60_000 % 60),
    }
}

/// Formats an age: `now`, `2 s ago`, `<1 min ago`, `3 min ago`, `2 h ago`, `3 d ago`. It changes by the second in the first
/// ten alone, see `age_timer` in `app/outside/control.rs`.
pub fn ago(age: Duration) -> String {
    match age.as_secs() {
        0 => "now".to_owned(),
        seconds @ 1..10 => format!("{seconds} s ago"),
        10..60 => "<1 min ago".to_owned(),
        seconds @ 60..3_600 => format!("{} min ago", seconds / 60),
        seconds @ 3_600..172_800 => format!("{} h ago", seconds / 3_600),
        seconds => format!("{} d ago", seconds / 86_400),
    }
}

/// Formats US dollars; an absurd figure from outside stays short.
pub fn dollars(cost: f64) -> String {
    if cost.abs() < 1e6 {
        format!("${cost:.2}")
    } else {
        format!("${cost:.1e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_short_and_exact_enough() {
        let cases = [
            (950, "950", "950 B"),
            (1_000, "1k", "1 KB"),
            (128_449, "128.4k", "128.4 KB"),
            (180_000, "180k", "180 KB"),
            (999_949, "999.9k", "999.9 KB"),
            (999_950, "1M", "1 MB"),
            (1_250_000, "1.25M", "1.2 MB"),
        ];
        for (count, as_tokens, as_bytes) in cases {
            assert_eq!((&*tokens(count), &*bytes(count)), (as_tokens, as_bytes));
        }
        let rough = [950, 18_600, 1_250_000].map(rough_tokens);
        assert_eq!(rough, ["950", "19k", "1.25M"]);
        assert_eq!([dollars(2.5), dollars(-1e9)], ["$2.50", "$-1.0e9"]);
    }

    #[test]
    fn times_are_short_in_panels_and_full_elsewhere() {
        let spans = [0, 45, 60, 7_380, 273_600].map(|seconds| span(Duration::from_secs(seconds)));
        assert_eq!(spans, ["0s", "45s", "1m", "2h03m", "3d4h"]);
        let ages = [0, 2, 10, 59, 200, 8_000].map(|seconds| ago(Duration::from_secs(seconds)));
        assert_eq!(
            ages,
            [
                "now",
                "2 s ago",
                "<1 min ago",
                "<1 min ago",
                "3 min ago",
                "2 h ago"
            ]
        );
        assert_eq!([412, 1_240].map(short), ["412 ms", "1.2 s"]);
        let full = [40, 2_599, 200_000, 7_500_000].map(duration);
        assert_eq!(full, ["40 ms", "2.5 s", "3 min 20 s", "2 h 5 min"]);
    }

    #[test]
    fn an_age_of_two_days_and_more_is_given_in_days() {
        let ages = [47, 48, 64, 720].map(|hours| ago(Duration::from_secs(hours * 3_600)));
        assert_eq!(ages, ["47 h ago", "2 d ago", "2 d ago", "30 d ago"]);
    }
}
