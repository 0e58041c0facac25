//! The author of the words in a prompt: a person, or pitstop or the client.
//!
//! All prompts are recorded as the user's. A prompt of an autonomous run holds the task, which a person wrote.

use std::borrow::Cow;

use super::prose::looks_printed;

/// The text that every handoff begins with.
pub const HANDOFF: &str = "pitstop handoff · ";

/// The prompts that pitstop types in an autonomous run, with `{task}` in place of a person's words.
const RUN_PROMPTS: [&str; 3] = [
    include_str!("../../../assets/run/start.md"),
    include_str!("../../../assets/run/changed.md"),
    include_str!("../../../assets/run/go-on.md"),
];

/// The text in front of the start prompt for an agent that was started again.
const AGAIN: &str = include_str!("../../../assets/run/again.md");

/// The client's mark in front of text that it takes for pasted.
const PASTED: &str = "<pasted_content";

/// The client's mark behind such text.
const PASTED_END: &str = "</pasted_content";

/// Reports whether a prompt is a handoff.
pub fn is_handoff(prompt: &str) -> bool {
    prompt.trim_start().starts_with(HANDOFF)
}

/// The text that the summary of a compaction begins with; the client marks its record only since some version.
const COMPACTED: &str = "This session is being continued from a previous conversation";

/// The client's tags whose names are one word, as are the tags of HTML and of prompts that people mark up.
const CLIENT_TAGS: [&str; 2] = ["tick", "channel"];

/// Returns the part of a prompt that a person wrote; none if it is a handoff, a prompt that pitstop types by itself, or a text
/// of the client: a command, a reminder, the report of a background task.
pub fn of_human(prompt: &str) -> Option<Cow<'_, str>> {
    let prompt = prompt.trim();
    let text = if prompt.contains(PASTED) {
        Cow::Owned(unwrap_pastes(prompt))
    } else {
        Cow::Borrowed(prompt)
    };
    if text.is_empty() || is_handoff(&text) || text.starts_with(COMPACTED) {
        return None;
    }
    if is_clients_tag(&text) {
        return command_arguments(&text).map(|own| Cow::Owned(own.to_owned()));
    }
    match task_in(&text) {
        Some(task) => (!task.is_empty()).then(|| Cow::Owned(task.to_owned())),
        None => Some(text),
    }
}

/// Reports whether a text begins with a tag of the client: `<task-notification>`, `<local-command-stdout>`. The tags that people
/// write have names of one word: `<rules>`, `<div>`.
fn is_clients_tag(text: &str) -> bool {
    let Some(tag) = text.strip_prefix('<') else {
        return false;
    };
    let end = tag
        .find(|c: char| !(c.is_ascii_lowercase() || matches!(c, '-' | '_')))
        .unwrap_or(tag.len());
    let name = &tag[..end];
    name.contains(['-', '_']) || CLIENT_TAGS.contains(&name)
}

/// Returns the text behind the name of a command, where it is more than a word or two: `/fix never touch the schema`.
fn command_arguments(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("<command-args>")?;
    if !text.starts_with("<command-") {
        return None;
    }
    said_behind_a_command(rest.split_once("</command-args>")?.0)
}

/// Returns the words behind a command's name, if they are more than two: one or two are a choice or a name.
pub fn said_behind_a_command(words: &str) -> Option<&str> {
    let words = words.trim();
    (words.split_whitespace().count() > 2).then_some(words)
}

/// Returns the task in a prompt of an autonomous run, empty where it names none; none in any other text.
fn task_in(text: &str) -> Option<&str> {
    let text = match text.strip_prefix(AGAIN.trim()) {
        Some("") => return Some(""),
        Some(rest) => rest.trim_start(),
        None => text,
    };
    RUN_PROMPTS.iter().find_map(|template| {
        let template = template.trim();
        let Some((before, behind)) = template.split_once("{task}") else {
            return text.starts_with(template).then_some("");
        };
        let rest = text.strip_prefix(before.trim_end())?;
        let behind = behind.split('{').next().unwrap_or_default().trim();
        // The task may quote the template.
        let end = rest.rfind(behind).unwrap_or(rest.len());
        Some(rest[..end].trim())
    })
}

/// Returns a text without the marks of pastes, and without the line ends that the client puts around them: it takes a quick
/// burst of keys for a paste, too, which then begins in the middle of a word. Both the opening and the closing mark may carry
/// an id (measured with 2.1.330); the client writes a mark differently where a person's own text has one.
fn unwrap_pastes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let next = |rest: &str| {
        [PASTED, PASTED_END]
            .iter()
            .filter_map(|mark| rest.find(mark))
            .min()
    };
    while let Some(at) = next(rest) {
        let (before, mark) = rest.split_at(at);
        let closed = mark
            .find(['>', '\n'])
            .filter(|&end| mark.as_bytes()[end] == b'>');
        let Some(end) = closed else {
            // Text that is not closed on its line is not a mark: one character of it is kept, and the search continues behind it.
            out.push_str(before);
            out.push_str(&mark[..1]);
            rest = &mark[1..];
            continue;
        };
        let behind = &mark[end + 1..];
        if mark.starts_with(PASTED) {
            let own = before.strip_suffix('\n').unwrap_or(before);
            out.push_str(own.strip_suffix('\n').unwrap_or(own));
            rest = behind.strip_prefix('\n').unwrap_or(behind);
            // Output of a program does not continue the line that was typed.
            if looks_printed(rest.lines().next().unwrap_or_default().trim()) && !out.is_empty() {
                out.push('\n');
            }
        } else {
            out.push_str(before.strip_suffix('\n').unwrap_or(before));
            rest = behind;
        }
    }
    out.push_str(rest);
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str) -> String {
        let text = template.replace("{task}", "port it to {Rust}\n\n## How to end\n\nwell");
        text.replace("{stop_phrase}", "ALL DONE").trim().to_owned()
    }

    #[test]
    fn what_pitstop_types_by_itself_is_no_person_s() {
        let [start, changed, go_on] = RUN_PROMPTS.map(filled);
        let task = "port it to {Rust}\n\n## How to end\n\nwell";
        assert_eq!(of_human(&start).as_deref(), Some(task));
        assert_eq!(of_human(&changed).as_deref(), Some(task));
        let again = format!("{}\n\n{start}", AGAIN.trim());
        assert_eq!(of_human(&again).as_deref(), Some(task));
        assert_eq!(of_human(&go_on), None);
        assert_eq!(of_human(AGAIN), None);
    }

    #[test]
    fn what_the_client_says_is_no_person_s() {
        for text in [
            "pitstop handoff · r1 · iteration 1 · 0a1b2c3d\n\ngo on",
            "<task-notification>\n<task-id>a</task-id>\n</task-notification>",
            "<system-reminder>be good</system-reminder>",
            "<pasted_content id=\"1\">\npitstop handoff · r1 · iteration 1 · 0a\n</pasted_content>",
            "<local-command-stdout>never</local-command-stdout>",
            "<ide_opened_file>only this one</ide_opened_file>",
            "<command-name>/model</command-name>\n<command-args>opus</command-args>",
            "This session is being continued from a previous conversation that ran out of context. Never mind.",
            "  ",
        ] {
            assert_eq!(of_human(text), None, "{text}");
        }
    }

    #[test]
    fn what_stands_behind_a_command_is_a_person_s() {
        let text = "<command-message>fix</command-message>\n<command-name>/fix</command-name>\n\
                    <command-args>the importer. Never touch b.rs</command-args>";
        assert_eq!(
            of_human(text).as_deref(),
            Some("the importer. Never touch b.rs")
        );
    }

    #[test]
    fn what_a_person_pastes_is_theirs() {
        let text = "<pasted_content id=\"1\" lines=\"5\">\nfix it\n</pasted_content>\nsoon";
        assert_eq!(of_human(text).as_deref(), Some("fix it\nsoon"));
        let text =
            "A wor\n\n<pasted_content id=\"80e2\">\nd on the feeds.\n</pasted_content id=\"80e2\">";
        assert_eq!(of_human(text).as_deref(), Some("A word on the feeds."));
        let text = "<pasted_content id=\"b2af\">\nfix it\n</pasted_content id=\"b2af\">";
        assert_eq!(of_human(text).as_deref(), Some("fix it"));
        let text = "what does <pasted_content mean\nhere, and why?";
        assert_eq!(of_human(text).as_deref(), Some(text));
        for text in [
            "< 5 ms is the goal",
            "go on",
            "<5 ms",
            "<div> is broken",
            "<rules>Never push.</rules>",
        ] {
            assert_eq!(of_human(text).as_deref(), Some(text));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_prompt_is_read(text in "(<pasted_content|</pasted_content>|>|<|pitstop handoff · |é|\n|This is the task as it stands now:|Go on){0,12}") {
            let _ = of_human(&text);
        }
    }
}
