//! What may stand in a configuration; the exact messages of those that were written by hand are in `tests/fixtures/config/`.

use pitstop_core::config::{Config, DEFAULT_TOML, error::Style};

use super::{Item, item, outcomes};

#[test]
fn a_wrong_value_of_any_key_is_reported_with_its_line() {
    let reported = outcomes(&items(), |input| {
        let text = std::str::from_utf8(input).unwrap();
        let line = 1 + text.lines().position(|line| line.ends_with(WRONG)).unwrap();
        let errors = Config::from_toml("config.toml", text).expect_err("it is wrong");
        let shown = errors.render(Style::Plain);
        let place = format!("config.toml:{line}:");
        assert!(shown.contains(&place), "expected {place}, found {shown}");
        let hidden = |c: char| c.is_control() && c != '\n';
        assert!(!shown.contains(hidden), "{shown:?}");
        String::new()
    });
    assert!(!reported.is_empty());
}

/// Marks the line that is wrong.
const WRONG: &str = " # wrong";

pub(super) fn items() -> Vec<Item> {
    let values = [
        ("an empty list of lists", "[[]]"),
        ("a date", "1979-05-27"),
        ("a huge number", "9223372036854775807"),
        ("an unknown word", "\"\\u001b[2J \\u202e\""),
        ("a table", "{ x = 1 }"),
    ];
    let mut all = Vec::new();
    for (number, line) in DEFAULT_TOML.lines().enumerate() {
        let Some((key, value)) = line.trim_start_matches("# ").split_once(" = ") else {
            continue;
        };
        if !key
            .chars()
            .all(|c| c.is_ascii_lowercase() || "_0123456789".contains(c))
        {
            continue;
        }
        for (kind, wrong) in values {
            // Texts take any word; tables are some keys' own form.
            let is_text = value.starts_with('"') || value.starts_with('[');
            if (is_text && kind == "an unknown word")
                || (value.starts_with('{') && kind == "a table")
            {
                continue;
            }
            let lines = DEFAULT_TOML.lines().enumerate();
            let text: String = lines
                .map(|(at, old)| {
                    if at == number {
                        format!("{key} = {wrong}{WRONG}\n")
                    } else {
                        format!("{old}\n")
                    }
                })
                .collect();
            all.push(item(format!("line {}: {key} as {kind}", number + 1), text));
        }
    }
    all
}
