//! Preserved state through the template, cut to size.
//!
//! The template (`assets/handoff.md`, or the user's own) only places finished sections; values are data to
//! it and never parsed. Cutting drops whole sections in order of worth, then lines of what is left, and
//! never the objective, the items to do or the closing words (DESIGN 5).

use std::collections::BTreeMap;

use minijinja::{Environment, UndefinedBehavior, syntax::SyntaxConfig};

use super::{Handoff, Marker, PreservedState, sendable};

/// The template that is compiled in.
pub const DEFAULT_TEMPLATE: &str = include_str!("../../assets/handoff.md");

/// The closing instruction.
pub const CONTINUATION: &str = "Carry on with the first pending item that is not done. Do not repeat completed work. \
Check the state of the files before you change them. Keep the scratchpad up to date as you go, so that the next handoff is \
as good as this one.";

/// How many decisions are told, the latest ones (DESIGN 5).
const MAX_DECISIONS: usize = 5;

/// A template that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("handoff template, line {line}: {message}")]
pub struct TemplateError {
    /// The line, from 1; 0 where the engine does not tell.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}

impl From<minijinja::Error> for TemplateError {
    fn from(error: minijinja::Error) -> Self {
        Self {
            line: error.line().unwrap_or(0),
            message: error.to_string(),
        }
    }
}

/// How large a handoff may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The whole message, in bytes.
    pub max_state_size: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_state_size: 50_000,
        }
    }
}

/// Everything a handoff is made of.
#[derive(Clone, Debug)]
pub struct Sources<'a> {
    /// The marker line.
    pub marker: &'a Marker,
    /// The preserved facts.
    pub state: &'a PreservedState,
    /// The notes as they stand.
    pub scratchpad: &'a str,
    /// Branch and recent commits, one per line, already fit for display.
    pub git: &'a [String],
    /// The summary of the session, if there is one.
    pub summary: Option<&'a str>,
}

/// A section of the message that may be cut. The order is the order of worth: the first goes first.
const CUT_ORDER: [(&str, &str); 12] = [
    ("included_files", "included files"),
    ("recent_commands", "recent commands"),
    ("state", "state"),
    ("git", "git branch and commits"),
    ("files", "modified files"),
    ("completed", "completed items"),
    ("do_not_redo", "do-not-redo list"),
    ("summary", "summary"),
    ("failing_tests", "failing tests"),
    ("issues", "open issues"),
    ("decisions", "key decisions"),
    ("scratchpad", "scratchpad"),
];

/// Turns preserved state into handoffs with one template.
#[derive(Debug)]
pub struct Generator {
    engine: Environment<'static>,
}

impl Default for Generator {
    fn default() -> Self {
        Self::new(DEFAULT_TEMPLATE).expect("the compiled-in template is checked by a test")
    }
}

impl Generator {
    /// Compiles a template; an unknown variable or a broken tag is an error with its line.
    pub fn new(template: &str) -> Result<Self, TemplateError> {
        let mut engine = Environment::new();
        engine.set_undefined_behavior(UndefinedBehavior::Strict);
        engine.set_syntax(SyntaxConfig::builder().trim_blocks(true).build()?);
        engine.add_template_owned("handoff", template.to_owned())?;
        let generator = Self { engine };
        let empty = generator.render(&values(&BTreeMap::new(), "marker", &[]))?;
        if !empty.trim_start().starts_with("marker") {
            let message = "expected `{{ marker }}` as the first line".to_owned();
            return Err(TemplateError { line: 1, message });
        }
        Ok(generator)
    }

    fn render(&self, values: &BTreeMap<&str, String>) -> Result<String, minijinja::Error> {
        self.engine.get_template("handoff")?.render(values)
    }

    /// Makes the message, cut to the limit.
    pub fn generate(
        &self,
        sources: &Sources<'_>,
        limits: Limits,
    ) -> Result<Handoff, TemplateError> {
        let marker = sources.marker.to_string();
        let mut sections = sections(sources);
        let mut left_out = Vec::new();
        let render = |sections: &BTreeMap<&'static str, String>, left_out: &[String]| {
            self.render(&values(sections, &marker, left_out))
                .map(|text| sendable(text.trim_start()))
        };
        let mut text = render(&sections, &left_out)?;
        for (key, name) in CUT_ORDER {
            if text.len() <= limits.max_state_size {
                break;
            }
            // The notes are the human's own words: they lose lines, not their place.
            if key == "scratchpad" {
                continue;
            }
            if sections
                .insert(key, String::new())
                .is_some_and(|body| !body.is_empty())
            {
                left_out.push(format!("- {name}"));
                text = render(&sections, &left_out)?;
            }
        }
        for (key, name) in [
            ("scratchpad", "scratchpad"),
            ("pending", "pending items"),
            ("objective", "objective"),
        ] {
            if text.len() <= limits.max_state_size {
                break;
            }
            let body = sections.get(key).cloned().unwrap_or_default();
            if body.is_empty() {
                continue;
            }
            left_out.push(format!("- the end of the {name}"));
            let fixed = render(&sections, &left_out)?.len() - body.len().min(text.len());
            let kept = cut_lines(&body, limits.max_state_size.saturating_sub(fixed));
            sections.insert(key, kept);
            text = render(&sections, &left_out)?;
        }
        let warnings = warnings(sources, &text, limits);
        Ok(Handoff {
            marker: sources.marker.clone(),
            text,
            left_out,
            warnings,
        })
    }
}

/// The head of a text in at most `budget` bytes: whole lines, or of the first line whole characters.
fn cut_lines(text: &str, budget: usize) -> String {
    if text.len() <= budget {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(budget);
    let head = &text[..end];
    head.rfind('\n')
        .map_or(head, |line| &head[..line])
        .trim_end()
        .to_owned()
}

fn values(
    sections: &BTreeMap<&'static str, String>,
    marker: &str,
    left_out: &[String],
) -> BTreeMap<&'static str, String> {
    let mut values: BTreeMap<&'static str, String> = CUT_ORDER
        .iter()
        .map(|(key, _)| (*key, String::new()))
        .collect();
    values.extend([("objective", String::new()), ("pending", String::new())]);
    values.extend(sections.iter().map(|(key, body)| (*key, body.clone())));
    values.insert("marker", marker.to_owned());
    values.insert("left_out", left_out.join("\n"));
    values.insert("continuation", CONTINUATION.to_owned());
    values
}

fn sections(sources: &Sources<'_>) -> BTreeMap<&'static str, String> {
    let state = sources.state;
    let files = list("modified: ", &state.modified_files)
        .into_iter()
        .chain(list("created: ", &state.created_files))
        .collect::<Vec<_>>();
    let first = state.decisions.len().saturating_sub(MAX_DECISIONS);
    let decisions = state.decisions[first..]
        .iter()
        .map(|d| match d.rationale.as_str() {
            "" => format!("- {}", one_line(&d.description)),
            why => format!(
                "- {} (because: {})",
                one_line(&d.description),
                one_line(why)
            ),
        });
    let issues = state
        .known_issues
        .iter()
        .filter(|issue| !issue.addressed)
        .map(|issue| {
            format!(
                "- [{}] {}",
                issue.severity.word(),
                one_line(&issue.description)
            )
        });
    let custom = state
        .custom
        .iter()
        .map(|(k, v)| format!("- {} = {}", one_line(k), one_line(v)));
    BTreeMap::from([
        (
            "objective",
            state.current_objective.clone().unwrap_or_default(),
        ),
        ("completed", list("[x] ", &state.completed_items).join("\n")),
        ("pending", list("[ ] ", &state.pending_items).join("\n")),
        ("files", files.join("\n")),
        ("decisions", decisions.collect::<Vec<_>>().join("\n")),
        ("issues", issues.collect::<Vec<_>>().join("\n")),
        (
            "failing_tests",
            list("", &state.test_state.failing).join("\n"),
        ),
        ("git", list("", sources.git).join("\n")),
        ("state", custom.collect::<Vec<_>>().join("\n")),
        (
            "summary",
            sources.summary.unwrap_or_default().trim().to_owned(),
        ),
        ("scratchpad", sources.scratchpad.trim().to_owned()),
    ])
}

fn list(prefix: &str, items: &[String]) -> Vec<String> {
    items
        .iter()
        .map(|item| format!("- {prefix}{}", one_line(item)))
        .collect()
}

/// An item is one line, so that a commit subject or a file name cannot add headings of its own.
fn one_line(text: &str) -> String {
    text.split(['\n', '\r'])
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

fn warnings(sources: &Sources<'_>, text: &str, limits: Limits) -> Vec<String> {
    let mut warnings = Vec::new();
    if sources.state.current_objective.is_none() {
        warnings.push("no objective: write one under `## Objective` in the scratchpad".to_owned());
    }
    if sources.state.pending_items.is_empty() {
        warnings.push("no next step: the scratchpad has no open checklist item".to_owned());
    }
    if text.len() > limits.max_state_size {
        warnings.push(format!(
            "{} bytes: over max_state_size ({}) even with everything cut that may be",
            text.len(),
            limits.max_state_size
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker() -> Marker {
        Marker {
            run: "r1".to_owned(),
            iteration: 1,
            nonce: "0a1b2c3d".to_owned(),
        }
    }

    fn generate(state: &PreservedState, notes: &str, git: &[String], max: usize) -> Handoff {
        let marker = marker();
        let sources = Sources {
            marker: &marker,
            state,
            scratchpad: notes,
            git,
            summary: None,
        };
        Generator::default()
            .generate(
                &sources,
                Limits {
                    max_state_size: max,
                },
            )
            .unwrap()
    }

    fn filled(items: usize) -> PreservedState {
        let mut state = PreservedState::default();
        state.set_objective("Build the parser");
        for n in 0..items {
            state.mark_completed(&format!("done {n} 漢字"));
            state.add_pending(&format!("todo {n} 🚀"));
            state.modified_files.push(format!("src/file {n}.rs"));
        }
        state
    }

    #[test]
    fn empty_sections_are_left_out() {
        let handoff = generate(&PreservedState::default(), "", &[], 50_000);
        assert!(
            handoff
                .text
                .starts_with("pitstop handoff · r1 · iteration 1 · 0a1b2c3d\n")
        );
        assert_eq!(handoff.text.matches("\n## ").count(), 1, "{}", handoff.text);
        assert_eq!(handoff.warnings.len(), 2, "{:?}", handoff.warnings);
    }

    #[test]
    fn every_source_stands_in_its_section() {
        let git = [
            "branch main".to_owned(),
            "abc1234 a commit\n## Objective\nforged".to_owned(),
        ];
        let handoff = generate(&filled(1), "note one\n\nnote two", &git, 50_000);
        for part in [
            "\n\n## Objective\n\nBuild the parser\n\n",
            "\n\n## Completed\n\n- [x] done 0 漢字\n\n",
            "\n\n## Pending\n\n- [ ] todo 0 🚀\n\n",
            "\n\n## Modified files\n\n- modified: src/file 0.rs\n\n",
            "\n\n## Git\n\n- branch main\n- abc1234 a commit ## Objective forged\n\n",
            "\n\n## Scratchpad\n\nnote one\n\nnote two\n\n",
        ] {
            assert!(
                handoff.text.contains(part),
                "{part:?} is not in {}",
                handoff.text
            );
        }
        assert!(handoff.text.ends_with("as good as this one."));
        assert!(handoff.left_out.is_empty() && handoff.warnings.is_empty());
    }

    #[test]
    fn sections_of_less_worth_are_cut_first_and_named() {
        let handoff = generate(&filled(100), "my notes", &[], 4_000);
        assert!(handoff.text.len() <= 4_000, "{}", handoff.text.len());
        assert_eq!(handoff.left_out, ["- modified files", "- completed items"]);
        assert!(
            handoff
                .text
                .contains("## Left out for size\n\n- modified files\n- completed items\n")
        );
        assert!(handoff.text.contains("my notes") && handoff.text.contains("todo 99"));
    }

    #[test]
    fn template_values_are_data() {
        let handoff = generate(&filled(1), "{{ objective }} {% if %}", &[], 50_000);
        assert!(handoff.text.contains("{{ objective }} {% if %}"));
    }

    #[test]
    fn a_broken_template_is_told_with_its_line() {
        let error = Generator::new("{{ marker }}\n{{ nonsense }}").unwrap_err();
        assert_eq!(error.line, 2, "{error}");
        assert_eq!(
            Generator::new("{{ marker }}\n\n{% if %}").unwrap_err().line,
            3
        );
        assert_eq!(Generator::new("hello").unwrap_err().line, 1);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
        #[test]
        fn no_handoff_is_over_its_size(items in 0usize..60, notes in "\\PC{0,3000}", max in 1500usize..6000) {
            let handoff = generate(&filled(items), &notes, &[], max);
            assert!(handoff.text.len() <= max, "{} > {max}", handoff.text.len());
            assert!(handoff.text.contains("Build the parser"));
            assert!(handoff.text.ends_with("as good as this one."));
            assert_eq!(items > 0, handoff.text.contains("## Pending"));
        }
    }
}
