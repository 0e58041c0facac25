//! The list of facts that an agent keeps by a tool: the section *Facts* of the scratchpad.

use super::lines::{heading, list_item};

/// The heading of the list.
const TITLE: &str = "Facts";

/// The level of the heading, if it is made here.
const LEVEL: usize = 2;

/// Reports whether an item of the scratchpad has this text in the same words.
pub fn has_fact(text: &str, fact: &str) -> bool {
    let fact = plain_words(fact);
    let mut items = text.lines().filter_map(|line| list_item(line.trim()));
    items.any(|item| plain_words(item.text) == fact)
}

/// Returns the scratchpad with this fact at the end of the list, which is made if it is not there.
pub fn with_fact(text: &str, fact: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let item = format!("- {fact}");
    if let Some(at) = end_of_list(&lines) {
        lines.insert(at, &item);
        return format!("{}\n", lines.join("\n"));
    }
    let before = text.trim_end();
    let gap = if before.is_empty() { "" } else { "\n\n" };
    format!("{before}{gap}{} {TITLE}\n{item}\n", "#".repeat(LEVEL))
}

/// Returns the place of the next item of the list: behind the last line of its section that is not blank.
fn end_of_list(lines: &[&str]) -> Option<usize> {
    // A title of the whole document is no list.
    let is_list = |line: &&str| {
        heading(line).is_some_and(|(level, words)| {
            level >= LEVEL && words.trim().eq_ignore_ascii_case(TITLE)
        })
    };
    let begin = lines.iter().position(is_list)? + 1;
    let section = &lines[begin..];
    let length = section.iter().position(|line| heading(line).is_some());
    let section = &section[..length.unwrap_or(section.len())];
    let filled = section.iter().rposition(|line| !line.trim().is_empty());
    Some(begin + filled.map_or(0, |last| last + 1))
}

fn plain_words(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ").trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_made_once_and_grows_at_its_end() {
        let one = with_fact("", "the port is 7000");
        assert_eq!(one, "## Facts\n- the port is 7000\n");
        let two = with_fact(&one, "CI needs a login");
        assert_eq!(two, "## Facts\n- the port is 7000\n- CI needs a login\n");
        let among = "# Facts\n\n## Facts\n- a\n\n## Current Plan\n- [ ] b\n";
        let expected = "# Facts\n\n## Facts\n- a\n- c\n\n## Current Plan\n- [ ] b\n";
        assert_eq!(with_fact(among, "c"), expected);
        assert_eq!(
            with_fact("# Notes\ntext\n", "c"),
            "# Notes\ntext\n\n## Facts\n- c\n"
        );
    }

    #[test]
    fn a_fact_in_the_same_words_is_there_already() {
        let text = "## Facts\n- The  port is 7000.\n## Current Plan\n- [x] write the store\n";
        assert!(has_fact(text, "the port is 7000"));
        assert!(has_fact(text, "write the store"));
        assert!(!has_fact(text, "the port is 7001"));
    }
}
