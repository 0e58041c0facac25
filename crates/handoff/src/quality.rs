//! Checks of a handoff without a model: the warnings for a reader before it is sent.
//!
//! A check never stops a handoff. Its warning is shown beside the preview, in words that name what to do.

use std::{collections::HashSet, sync::LazyLock};

use regex::Regex;

use super::{Sources, preserved::Item};
use pitstop_base::redact;
use pitstop_transcript::words::Fences;

/// The facts that the checks compare with. A fact that is not known is not checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Comparison<'a> {
    /// The files named by the preserved state that do not exist.
    pub missing: &'a [String],
    /// The full id of the commit that is checked out.
    pub head: Option<&'a str>,
}

/// The number of missing files that are named.
const NAMED: usize = 3;

/// Returns the warnings for a finished message that may have `max` bytes, most important first.
pub fn check_message(sources: &Sources<'_>, text: &str, max: usize) -> Vec<String> {
    let mut warnings = Vec::new();
    let state = sources.state;
    if state.current_objective.is_none() {
        warnings.push("no objective: write one under `## Objective` in the scratchpad".to_owned());
    }
    if super::next_step(state, sources.scratchpad).is_none() {
        warnings.push("no next step: the scratchpad has no open checklist item".to_owned());
    }
    warnings.extend(missing_files(sources));
    let named = sources.git.iter().map(String::as_str);
    warnings.extend(head_moved(named, sources.comparison));
    if let Some(placeholder) = find_placeholder(text) {
        warnings.push(format!("a placeholder is not filled in: `{placeholder}`"));
    }
    warnings.extend(redact::masks(text));
    if text.len() > max {
        warnings.push(format!(
            "{} bytes: over max_state_size ({max}) even with everything cut that may be",
            text.len()
        ));
    }
    warnings
}

fn missing_files(sources: &Sources<'_>) -> Option<String> {
    let gone = sources.comparison.missing.iter();
    let gone: HashSet<&str> = gone.map(String::as_str).collect();
    let state = sources.state;
    let of_issues = state
        .known_issues
        .iter()
        .filter(|issue| !issue.addressed)
        .flat_map(|issue| &issue.files);
    let named = state.modified_files.iter().chain(&state.created_files);
    let mut missing: Vec<&str> = named
        .map(Item::as_str)
        .chain(of_issues.map(String::as_str))
        .filter(|name| gone.contains(name))
        .collect();
    missing.dedup();
    let more = match missing.len() {
        0 => return None,
        count if count > NAMED => format!(" and {} more", count - NAMED),
        _ => String::new(),
    };
    let first = missing[..missing.len().min(NAMED)].join(", ");
    Some(format!("named but not there: {first}{more}"))
}

/// Returns the warnings for a message in a human's own words: its sources may have changed since.
pub fn check_edited(text: &str, comparison: Comparison<'_>) -> Vec<String> {
    let Some((_, body)) = text
        .split_once('\n')
        .filter(|(_, body)| !body.trim().is_empty())
    else {
        return vec!["the handoff is empty".to_owned()];
    };
    let commits = body.lines().filter_map(|line| line.strip_prefix("- "));
    let moved = head_moved(commits, comparison);
    let placeholder = find_placeholder(body);
    let unfilled = placeholder.map(|one| format!("a placeholder is not filled in: `{one}`"));
    let secrets = match redact::secrets(body).len() {
        0 => None,
        1 => {
            Some("1 secret stands in your text: it is sent, and masked in what is kept".to_owned())
        }
        count => Some(format!(
            "{count} secrets stand in your text: they are sent, and masked in what is kept"
        )),
    };
    moved.into_iter().chain(unfilled).chain(secrets).collect()
}

/// Returns a warning if the head has moved: the first line that begins with the id of a commit names the former head.
fn head_moved<'a>(
    mut lines: impl Iterator<Item = &'a str>,
    comparison: Comparison<'_>,
) -> Option<String> {
    let head = comparison.head?;
    let named = lines.find_map(|line| {
        let word = line.split(' ').next()?;
        let is_id = word.len() >= 7
            && word.bytes().all(|byte| byte.is_ascii_hexdigit())
            && word.bytes().any(|byte| byte.is_ascii_digit());
        is_id.then_some(word)
    })?;
    (!head.starts_with(named)).then(|| {
        let now = head.get(..8).unwrap_or(head);
        format!("the head has moved: the handoff names {named}, checked out is {now}")
    })
}

/// Returns the first placeholder outside of code.
pub fn find_placeholder(text: &str) -> Option<&str> {
    /// What is to be filled in, in the forms of templates; a type's parameter, a tag or an address is not.
    const FORMS: &str = concat!(
        r"\{\{.*?\}\}|TODO: fill|\bXXX\b",
        r"|(?i)<\s*(?:…|\.\.\.|tbd|todo|placeholder|fill in|(?:your|insert|fill|the|describe) [^>]*[^>\s])\s*>",
    );
    static PLACEHOLDER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(FORMS).expect("a valid pattern"));
    let mut fences = Fences::default();
    let mut lines = text.lines().filter(|line| fences.is_outside(line));
    // Every second part is between back quotes, and so is code.
    let found = lines.find_map(|line| {
        line.split('`')
            .step_by(2)
            .find_map(|part| PLACEHOLDER.find(part))
    });
    found.map(|found| found.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Marker, PreservedState, preserved::Origin};

    fn warnings(state: &PreservedState, git: &[String], comparison: Comparison<'_>) -> Vec<String> {
        let marker = Marker {
            run: "r".to_owned(),
            iteration: 1,
            nonce: "0".to_owned(),
        };
        let sources = Sources {
            git,
            comparison,
            ..Sources::new(&marker, state)
        };
        check_message(&sources, "text", 50_000)
    }

    #[test]
    fn a_complete_handoff_has_no_warning() {
        let mut state = PreservedState::default();
        assert_eq!(warnings(&state, &[], Comparison::default()).len(), 2);
        state.set_objective("o", Origin::Human);
        state.add_pending("p", Origin::Human);
        assert!(warnings(&state, &[], Comparison::default()).is_empty());
    }

    #[test]
    fn files_that_are_not_there_are_named() {
        let mut state = PreservedState::default();
        state.set_objective("o", Origin::Human);
        state.add_pending("p", Origin::Human);
        state.modified_files = ["a", "b", "c", "d", "e"]
            .map(|name| Item::new(name, Origin::Git))
            .to_vec();
        let missing = ["b", "c", "d", "e", "not named any more"].map(str::to_owned);
        let comparison = Comparison {
            missing: &missing,
            head: None,
        };
        assert_eq!(
            warnings(&state, &[], comparison),
            ["named but not there: b, c, d and 1 more"]
        );
    }

    #[test]
    fn a_head_that_has_moved_is_reported() {
        let mut state = PreservedState::default();
        state.set_objective("o", Origin::Human);
        state.add_pending("p", Origin::Human);
        let git = ["branch main".to_owned(), "3f786850 a commit".to_owned()];
        let at = |head| Comparison {
            missing: &[],
            head: Some(head),
        };
        assert!(warnings(&state, &git, at("3f786850e387550fdab836ed7e6dc881de23001b")).is_empty());
        assert_eq!(
            warnings(&state, &git, at("89e6c98d92887913cadf06b2adb97f26cde4849b")),
            ["the head has moved: the handoff names 3f786850, checked out is 89e6c98d"]
        );
        assert!(warnings(&state, &[], at("89e6c98d")).is_empty());
    }

    #[test]
    fn a_human_s_own_words_are_checked_against_the_ground() {
        let text = "marker\n\n## Git\n\n- branch deadbeef\n- 3f786850 a commit\nfix {{ it }}";
        let at = |head| Comparison {
            missing: &[],
            head: Some(head),
        };
        assert_eq!(
            check_edited(text, at("3f786850e387550fdab836ed7e6dc881de23001b")),
            ["a placeholder is not filled in: `{{ it }}`"]
        );
        assert_eq!(
            check_edited(text, at("89e6c98d92887913cadf06b2adb97f26cde4849b"))[0],
            "the head has moved: the handoff names 3f786850, checked out is 89e6c98d"
        );
        assert_eq!(
            check_edited("marker\n \n", Comparison::default()),
            ["the handoff is empty"]
        );
        assert_eq!(
            check_edited("marker\nA_PASSWORD=hunter2", Comparison::default()),
            ["1 secret stands in your text: it is sent, and masked in what is kept"]
        );
    }

    #[test]
    fn placeholders_are_found_in_prose_and_not_in_code() {
        for (text, found) in [
            ("Objective: {{ goal }}", Some("{{ goal }}")),
            ("a <…> b", Some("<…>")),
            ("ask <your name> first", Some("<your name>")),
            ("- TODO: fill this in", Some("TODO: fill")),
            ("fix XXX here", Some("XXX")),
            ("`{{ goal }}` and `XXX`", None),
            ("```\n{{ goal }}\n```\nfine", None),
            ("Vec<Option<T>> and <br> and a < b > c", None),
            ("TODO: write tests, XXXL", None),
        ] {
            assert_eq!(find_placeholder(text), found, "{text:?}");
        }
    }
}
