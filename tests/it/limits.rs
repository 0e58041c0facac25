//! Limits of size: what grows past one is to be split, not the limit raised.

use crate::layering::sources;

/// The two values that everything could be put into, with the most fields that each may have.
const STRUCTS: [(&str, &str, usize); 2] = [
    ("app/model.rs", "Model", 12),
    ("runtime/mod.rs", "Shell", 20),
];

/// The most lines of a function, without comments.
const LONGEST_FUNCTION: usize = 80;

/// The lines of an item after its first, up to the brace that ends it: the code is formatted.
fn body<'a>(lines: &[&'a str], first: usize) -> Vec<&'a str> {
    let indent = lines[first].len() - lines[first].trim_start().len();
    let is_end = |line: &&&str| line.len() == indent + 1 && line.trim_start() == "}";
    let rest = lines[first + 1..].iter();
    let end = rest.clone().position(|line| is_end(&line));
    rest.take(end.expect("an item ends")).copied().collect()
}

#[test]
fn the_model_and_the_shell_have_few_fields() {
    let sources = sources();
    for (file, name, most) in STRUCTS {
        let lines: Vec<&str> = sources[file].lines().collect();
        let head = format!("pub struct {name} {{");
        let first = lines.iter().position(|line| *line == head);
        let body = body(&lines, first.expect("the struct is there"));
        let is_field = |line: &&&str| line.starts_with("    ") && line.contains(": ");
        let fields = body.iter().filter(is_field).count();
        assert!(fields > 0, "{name} has no fields: is it read right?");
        assert!(fields <= most, "{name} has {fields} fields, not {most}");
    }
}

/// The functions of a file that are too long. A long `match` is fine while each arm is one line, so that such lines do not count.
fn too_long(code: &str) -> Vec<String> {
    let lines: Vec<&str> = code.lines().collect();
    let is_head = |line: &str| {
        let (before, _) = line.split_once("fn ").unwrap_or(("no function", ""));
        let mut words = before
            .trim_start()
            .split(' ')
            .filter(|word| !word.is_empty());
        words.all(|word| word.starts_with("pub") || ["const", "async"].contains(&word))
    };
    let is_arm = |line: &&&str| line.contains(" => ") && line.ends_with(',');
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| is_head(line)) {
        if line.ends_with(['}', ';']) {
            continue;
        }
        let body = body(&lines, at);
        // With the first line and the last.
        let size = body.len() + 2 - body.iter().filter(is_arm).count();
        if size > LONGEST_FUNCTION {
            found.push(format!("{}: {size} lines", line.trim()));
        }
    }
    found
}

#[test]
fn no_function_is_long() {
    let is_test = |file: &String| file.contains("/tests/");
    let sources = sources().into_iter().filter(|(file, _)| !is_test(file));
    let found = sources.flat_map(|(file, code)| {
        let long = too_long(&code).into_iter();
        long.map(move |one| format!("{file}: {one}"))
    });
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "to be split:\n{}", found.join("\n"));

    let with = |line: &str| format!("pub(crate) async fn f() {{\n{}}}", line.repeat(79));
    assert_eq!(too_long(&with("    a();\n")).len(), 1);
    assert!(too_long(&with("        A => a(),\n")).is_empty());
}
