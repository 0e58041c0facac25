//! A validator for the part of JSON Schema that our own schemas use; any other keyword fails the test.

// The kit is shared, and each test uses a part of it.
#![allow(dead_code)]

use serde_json::Value;

/// The faults of a value, each with its place.
pub fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, value, "$", &mut found);
    found
}

fn check(schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let schema = schema.as_object().expect("a schema is an object");
    let mut fault = |what: String| found.push(format!("{at}: {what}"));
    for (keyword, rule) in schema {
        match keyword.as_str() {
            "$schema" | "title" | "description" | "properties" | "items" => {}
            "type" => {
                let fits = match rule.as_str().expect("a type's name") {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "integer" => value.is_u64() || value.is_i64(),
                    "number" => value.is_number(),
                    "boolean" => value.is_boolean(),
                    other => panic!("unknown type {other}"),
                };
                if !fits {
                    fault(format!("expected {rule}, found {value}"));
                }
            }
            "enum" => {
                if !rule.as_array().expect("a list").contains(value) {
                    fault(format!("expected one of {rule}, found {value}"));
                }
            }
            "minimum" => {
                if value.as_f64() < rule.as_f64() {
                    fault(format!("expected at least {rule}, found {value}"));
                }
            }
            "pattern" => {
                let pattern = rule.as_str().expect("a pattern");
                if !value.as_str().is_some_and(|text| matches(pattern, text)) {
                    fault(format!("expected {pattern}, found {value}"));
                }
            }
            "required" => {
                for name in rule.as_array().expect("a list") {
                    if value.get(name.as_str().expect("a name")).is_none() {
                        fault(format!("expected {name}"));
                    }
                }
            }
            "additionalProperties" => {
                assert_eq!(*rule, false, "only false is known");
                for name in value
                    .as_object()
                    .into_iter()
                    .flat_map(|object| object.keys())
                {
                    if schema["properties"].get(name).is_none() {
                        fault(format!("unknown name {name}"));
                    }
                }
            }
            other => panic!("unknown keyword {other}"),
        }
    }
    if let Some(properties) = schema.get("properties") {
        for (name, value) in value.as_object().into_iter().flatten() {
            if let Some(schema) = properties.get(name) {
                check(schema, value, &format!("{at}.{name}"), found);
            }
        }
    }
    if let Some(items) = schema.get("items") {
        for (index, value) in value.as_array().into_iter().flatten().enumerate() {
            check(items, value, &format!("{at}[{index}]"), found);
        }
    }
}

/// Whether a text fits an anchored pattern of characters, sets and counts, which is all that our schemas use.
fn matches(pattern: &str, text: &str) -> bool {
    let body = pattern
        .strip_prefix('^')
        .and_then(|rest| rest.strip_suffix('$'))
        .expect("an anchored pattern");
    let mut left = text.chars();
    let mut rest = body.chars().peekable();
    while let Some(c) = rest.next() {
        let set: String = match c {
            '[' => rest.by_ref().take_while(|c| *c != ']').collect(),
            '\\' => rest.next().expect("an escaped character").to_string(),
            c => c.to_string(),
        };
        let count = if rest.peek() == Some(&'{') {
            let digits: String = rest.by_ref().skip(1).take_while(|c| *c != '}').collect();
            digits.parse().expect("a count")
        } else {
            1
        };
        for _ in 0..count {
            if !left.next().is_some_and(|c| in_set(&set, c)) {
                return false;
            }
        }
    }
    left.next().is_none()
}

fn in_set(set: &str, c: char) -> bool {
    let set: Vec<char> = set.chars().collect();
    match set[..] {
        [one] => one == c,
        _ => set
            .chunks(3)
            .any(|range| matches!(range, [low, '-', high] if (*low..=*high).contains(&c))),
    }
}

#[test]
fn the_validator_finds_what_does_not_fit() {
    let schema = serde_json::json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": { "a": { "type": "string", "pattern": "^[0-9a-f]{2}\\.x$" }, "n": { "type": "integer", "minimum": 1 } },
    });
    let none: [String; 0] = [];
    assert_eq!(
        faults(&schema, &serde_json::json!({ "a": "0f.x", "n": 1 })),
        none
    );
    for bad in [
        serde_json::json!([]),
        serde_json::json!({}),
        serde_json::json!({ "a": "0g.x" }),
        serde_json::json!({ "a": "0f.xx" }),
        serde_json::json!({ "a": "0f.x", "n": 0 }),
        serde_json::json!({ "a": "0f.x", "n": null }),
        serde_json::json!({ "a": "0f.x", "b": 1 }),
    ] {
        assert_ne!(faults(&schema, &bad), none, "{bad}");
    }
}
