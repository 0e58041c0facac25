//! The content of a message in its parsed form: one text, or a list of blocks.

use std::{borrow::Cow, sync::LazyLock};

use regex::Regex;
use serde_json::Value;

/// A block of a message.
#[derive(Clone, Copy, Debug)]
pub enum Block<'a> {
    /// A text that was said.
    Text(&'a str),
    /// A tool call.
    Call(&'a Value),
    /// The result of a call.
    Result(&'a Value),
    /// A picture.
    Image,
}

/// Returns the blocks of a message's content, of which a string is one text; blocks of other kinds are left out.
pub fn each_block(content: &Value) -> impl Iterator<Item = Block<'_>> {
    let listed = content.as_array().into_iter().flatten();
    let listed = listed.filter_map(|block| match block["type"].as_str()? {
        "text" => Some(Block::Text(block["text"].as_str().unwrap_or_default())),
        "tool_use" => Some(Block::Call(block)),
        "tool_result" => Some(Block::Result(block)),
        "image" => Some(Block::Image),
        _ => None,
    });
    content.as_str().map(Block::Text).into_iter().chain(listed)
}

/// Returns the text of a content: a string, or the texts of its blocks, one below the other.
pub fn joined_text(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let blocks = content.as_array().into_iter().flatten();
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// Returns the text of a content, or of its first block.
pub(super) fn first_text(content: &Value) -> Option<&str> {
    content.as_str().or_else(|| content[0]["text"].as_str())
}

/// Returns a tool's output without what the client adds for the agent: reminders, ids of agents and background commands, and what
/// to do next.
pub fn tool_output(result: &Value) -> String {
    let output = joined_text(&result["content"]);
    let own = match without_notes(&output) {
        Cow::Borrowed(own) if own.len() == output.len() => None,
        own => Some(own.into_owned()),
    };
    own.unwrap_or(output)
}

pub(super) fn without_notes(output: &str) -> Cow<'_, str> {
    static NOTE: LazyLock<Regex> = LazyLock::new(|| {
        // Each alternative begins with a text that can be searched for: one that does not makes all of them slow.
        let notes = [
            "(?s:<system-reminder>.*?</system-reminder>)",
            "(?m:^)(?:agentId: |Command running in background with ID: ).*",
            "(?m:^)<usage>[^<]*</usage>",
            r" \(file state is current in your context[^)\n]*\)",
            r" Use ExitWorktree to leave[^.\n]*\.",
        ];
        Regex::new(&notes.join("|")).expect("a valid pattern")
    });
    if output.starts_with("Async agent launched successfully.") {
        return Cow::Borrowed("");
    }
    NOTE.replace_all(behind_no_output(output).unwrap_or(output), "")
}

/// Returns what is behind the client's word that a tool has printed nothing; none in an output.
fn behind_no_output(output: &str) -> Option<&str> {
    let by_name = || {
        let (tool, rest) = output
            .strip_prefix('(')?
            .split_once(" completed with no output)")?;
        let is_name = tool.chars().all(|c| c.is_alphanumeric() || c == '_');
        (is_name && !tool.is_empty()).then_some(rest)
    };
    output
        .strip_prefix("Tool ran without output or errors")
        .or_else(by_name)
}

/// Returns the text in the first tag of this name.
pub(super) fn text_in_tag<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (_, inner) = text.split_once(&format!("<{tag}>"))?;
    inner
        .split_once(&format!("</{tag}>"))
        .map(|(inner, _)| inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_client_adds_to_an_output_is_not_the_tool_s() {
        for (output, own) in [
            (
                "1\tx\n\n<system-reminder>\nUse file_path.\n</system-reminder>\n",
                "1\tx\n\n\n",
            ),
            (
                "It is in a.rs.\nagentId: a881341 (for resuming)\n<usage>total_tokens: 1\ntool_uses: 2</usage>",
                "It is in a.rs.\n\n",
            ),
            (
                "Async agent launched successfully.\nagentId: ac27727\noutput_file: /tmp/x.output",
                "",
            ),
            (
                "File created successfully at: a.py (file state is current in your context — no need to Read it back)",
                "File created successfully at: a.py",
            ),
            (
                "It works in the worktree. Use ExitWorktree to leave mid-session, or exit the session to be prompted.",
                "It works in the worktree.",
            ),
            (
                "Command running in background with ID: b7636e2. Output is being written to: /tmp/b.output",
                "",
            ),
            ("(Bash completed with no output)", ""),
            ("Tool ran without output or errors\n", "\n"),
            ("let agentId: string", "let agentId: string"),
            ("Usage: <usage>x</usage>", "Usage: <usage>x</usage>"),
            ("<system-reminder> is a tag", "<system-reminder> is a tag"),
        ] {
            assert_eq!(without_notes(output), own, "{output}");
        }
    }
}
