//! The headings by which the sections of the notes are known, however they are written.

/// The sections of the notes, by the facts that are read from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    /// The notes themselves.
    Title,
    Objective,
    Understanding,
    Plan,
    Decisions,
    Blockers,
    LastAction,
    Next,
    /// The sections of a summary of a session, which agents take over.
    Other,
}

/// The level of a line such as `**Blockers:**`: every heading ends its section.
pub(super) const LABEL: usize = 7;

/// Returns the section with this heading, and the text behind a colon on its line.
pub(super) fn section_titled(words: &str) -> Option<(Section, &str)> {
    if let Some(section) = section_of(words) {
        return Some((section, ""));
    }
    let (title, rest) = words.split_once(':')?;
    Some((section_of(title)?, rest.trim_matches(['*', '_', ' '])))
}

fn section_of(title: &str) -> Option<Section> {
    let title = title.split(" (").next().unwrap_or_default();
    let title = title
        .trim_start_matches(|c: char| !c.is_alphabetic())
        .trim_end_matches(|c: char| !c.is_alphanumeric());
    by_title(title)
}

fn by_title(title: &str) -> Option<Section> {
    Some(match title.to_lowercase().as_str() {
        "scratchpad" | "notes" => Section::Title,
        "objective" | "objectives" | "current objective" | "goal" | "goals" => Section::Objective,
        "current understanding" | "understanding" => Section::Understanding,
        "current plan" | "plan" | "checklist" | "tasks" | "todo" | "to do" => Section::Plan,
        "key decisions" | "key decision" | "decisions" | "decisions made" => Section::Decisions,
        "blockers" | "blocker" | "current blockers" | "blocking issues" | "known issues"
        | "open issues" => Section::Blockers,
        "last action" | "last actions" => Section::LastAction,
        "next" | "next step" | "next steps" | "next action" | "next actions" | "next up" => {
            Section::Next
        }
        "user intent" | "technical context" | "files & code" | "errors & fixes"
        | "pending tasks" | "current state" => Section::Other,
        _ => return None,
    })
}

/// Returns the section whose head is this line without being a heading, and the text behind it.
pub(super) fn section_labelled(line: &str) -> Option<(Section, &str)> {
    let mark = ["**", "__"].into_iter().find(|mark| line.starts_with(mark));
    let Some(mark) = mark else {
        let (title, rest) = line.split_once(':')?;
        let rest = rest.strip_prefix(' ').or(rest.is_empty().then_some(rest))?;
        return Some((by_title(title.trim())?, rest.trim()));
    };
    let (title, rest) = line[mark.len()..].split_once(mark)?;
    let section = by_title(title.trim_end_matches(':').trim())?;
    let behind = rest.strip_prefix(':').unwrap_or(rest);
    let named = title.ends_with(':') || behind.len() < rest.len() || rest.is_empty();
    named.then(|| (section, behind.trim()))
}

pub(super) fn is_rejection(title: &str) -> bool {
    let title = title.to_lowercase();
    ["reject", "alternative", "ruled out", "discarded"]
        .iter()
        .any(|word| title.contains(word))
}
