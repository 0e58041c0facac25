//! The parsing of a model's answer, which is rebuilt from its seven sections, without the text around them.

use std::sync::LazyLock;

use regex::Regex;

use super::{SECTIONS, make_harmless, put_together};
use pitstop_transcript::words::Fences;

/// The largest size that is kept of one section, in bytes: seven of them leave room in the smallest handoff for the rest.
const SECTION_CAP: usize = 3_000;

/// Returns the summary in a model's answer, or the reason why the answer is invalid.
///
/// The model's thoughts and all words around the sections are dropped. A heading is recognised by its words, whatever its marks,
/// number and case; a missing heading makes the whole answer invalid, because an answer that was cut off looks the same.
pub fn parse_sections(answer: &str) -> Result<String, String> {
    let answer = make_harmless(answer);
    let answer = without_thoughts(&answer);
    let mut bodies: [Option<Vec<String>>; SECTIONS.len()] = Default::default();
    let mut open: Option<usize> = None;
    let mut fences = Fences::default();
    for line in answer.lines() {
        let in_code = !fences.is_outside(line);
        if !in_code && let Some((place, rest)) = section_heading(line) {
            open = Some(place);
            let body = bodies[place].get_or_insert_default();
            if !rest.is_empty() {
                body.push(rest.to_owned());
            }
            continue;
        }
        let Some(place) = open else { continue };
        if !in_code && is_summary_tag(line) {
            continue;
        }
        let body = bodies[place].get_or_insert_default();
        body.push(if in_code {
            line.to_owned()
        } else {
            demote_heading(line)
        });
    }
    let missing = SECTIONS
        .iter()
        .zip(&bodies)
        .filter(|(_, body)| body.is_none());
    let missing: Vec<_> = missing.map(|(title, _)| *title).collect();
    if !missing.is_empty() {
        let (count, all) = (missing.len(), SECTIONS.len());
        let names = missing.join(", ");
        return Err(format!(
            "its answer is not in the form asked for ({count} of {all} sections are missing: {names})"
        ));
    }
    let bodies = bodies.map(|body| close_section(&body.unwrap_or_default()));
    if bodies.iter().all(|body| body.trim().is_empty()) {
        return Err("all of its sections are empty".to_owned());
    }
    // An empty section is a valid answer, too.
    Ok(put_together(bodies.iter().map(|body| match body.trim() {
        "" => "None.",
        body => body,
    })))
}

/// Returns the answer without `<analysis>`. One that was not closed may contain headings, too: then the last first heading counts.
fn without_thoughts(answer: &str) -> String {
    // This has the same length as the answer, byte for byte.
    let lower = answer.to_ascii_lowercase();
    let mut out = String::with_capacity(answer.len());
    let mut at = 0;
    while let Some(start) = lower[at..].find("<analysis>") {
        out.push_str(&answer[at..at + start]);
        let inside = at + start;
        let Some(end) = lower[inside..].find("</analysis>") else {
            let first = |line: &&str| section_heading(line).is_some_and(|(place, _)| place == 0);
            let lines: Vec<_> = answer[inside..].lines().collect();
            let last = lines.iter().rposition(first).unwrap_or(lines.len());
            out.push('\n');
            out.push_str(&lines[last..].join("\n"));
            return out;
        };
        at = inside + end + "</analysis>".len();
    }
    out.push_str(&answer[at..]);
    out
}

/// Returns the section that a line opens, and the part of its text on the same line.
fn section_heading(line: &str) -> Option<(usize, &str)> {
    static HEADING: LazyLock<Regex> = LazyLock::new(|| {
        let titles = SECTIONS.map(|title| format!("({})", title.replace('&', "(?:&amp;|&|and)")));
        let mark = r"[#*_ \t]*";
        // "Current State of the parser" is a sentence, "**Current State**: of the parser" a heading with its text.
        let heading = format!(
            r"^{mark}(?:[0-9]+[.)]{mark})?(?i:{})(?:([#*_ \t:]*[:*][#*_ \t:]*)|[#_ \t]*$)",
            titles.join("|")
        );
        Regex::new(&heading).expect("a valid pattern")
    });
    let found = HEADING.captures(line)?;
    let place = (0..SECTIONS.len()).find(|place| found.get(place + 1).is_some())?;
    Some((place, line[found.get(0)?.end()..].trim()))
}

fn is_summary_tag(line: &str) -> bool {
    let line = line.trim();
    line.eq_ignore_ascii_case("<summary>") || line.eq_ignore_ascii_case("</summary>")
}

/// Lowers a heading of the model's own to a level below ours, so that no line of a summary can open a section of the handoff.
fn demote_heading(line: &str) -> String {
    let indented = line.trim_start();
    if !indented.starts_with('#') || line.len() - indented.len() > 3 {
        // An underline would make a heading of the line above.
        let bare = line.trim();
        let underline =
            bare.len() > 1 && (bare.bytes().all(|b| b == b'=') || bare.bytes().all(|b| b == b'-'));
        return if underline {
            String::new()
        } else {
            line.to_owned()
        };
    }
    format!("#### {}", indented.trim_start_matches('#').trim())
}

/// Returns the lines of one section in at most [`SECTION_CAP`] bytes; a fence that is left open is closed, because it would
/// include the text after it.
fn close_section(lines: &[String]) -> String {
    let mut out = String::new();
    let mut fences = Fences::default();
    let mut kept = 0;
    for line in lines {
        if out.len() + line.len() > SECTION_CAP {
            // A section that is one long paragraph keeps its start.
            if out.trim().is_empty() {
                out.push_str(&line[..line.floor_char_boundary(SECTION_CAP)]);
                out.push('\n');
            }
            break;
        }
        kept += 1;
        fences.is_outside(line);
        out.push_str(line);
        out.push('\n');
    }
    if let Some(closing) = fences.closing() {
        out.push_str(&closing);
        out.push('\n');
    }
    if kept < lines.len() {
        out.push_str("… (cut)\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::token;

    fn all(body: &str) -> String {
        SECTIONS
            .map(|title| format!("## {title}\n{body}\n"))
            .concat()
    }

    #[test]
    fn an_answer_as_it_should_be_is_kept_word_for_word() {
        let text = parse_sections(&all("One.\n\n- two\n- three")).unwrap();
        let part = |title: &str| format!("### {title}\n\nOne.\n\n- two\n- three");
        assert_eq!(text, SECTIONS.map(part).join("\n\n"));
    }

    #[test]
    fn thoughts_and_words_around_the_sections_are_dropped() {
        let answer = format!(
            "Here it is.\n<Analysis>\n## User Intent\nwrong\n## Current State\nwrong\n</analysis>\n<summary>\n{}</summary>\n",
            all("right")
        );
        let text = parse_sections(&answer).unwrap();
        assert!(!text.contains("wrong") && !text.contains("Here"), "{text}");
        assert!(!text.contains("summary>"), "{text}");
        assert!(text.ends_with("### Current State\n\nright"));
    }

    #[test]
    fn thoughts_that_do_not_end_do_not_count_as_sections() {
        let answer = format!("<analysis>\n{}\nso:\n{}", all("thought"), all("said"));
        let text = parse_sections(&answer).unwrap();
        assert!(!text.contains("thought"), "{text}");
        let only = format!("<analysis>\nthe user intent is clear\n{}", &all("x")[..20]);
        assert!(parse_sections(&only).is_err());
        assert!(parse_sections("<analysis>").is_err());
    }

    #[test]
    fn headings_are_known_by_their_words() {
        let answer = "1. **User Intent:** to parse\n### 2) technical context\nRust\n**Files and Code**\na.rs\n\
                      # ERRORS &amp; FIXES:\nnone\n__Key Decisions__\nJSON\nPending Tasks:\ntests\n\
                      ## Current State ##\nPending Tasks are few\nFiles & Code is done\n";
        let text = parse_sections(answer).unwrap();
        assert_eq!(
            text,
            "### User Intent\n\nto parse\n\n### Technical Context\n\nRust\n\n### Files & Code\n\na.rs\n\n\
             ### Errors & Fixes\n\nnone\n\n### Key Decisions\n\nJSON\n\n### Pending Tasks\n\ntests\n\n\
             ### Current State\n\nPending Tasks are few\nFiles & Code is done"
        );
    }

    #[test]
    fn a_missing_section_is_a_failure_with_its_name() {
        let answer = all("x")
            .replace("## Key Decisions\n", "")
            .replace("## Current State\n", "");
        assert_eq!(
            parse_sections(&answer).unwrap_err(),
            "its answer is not in the form asked for (2 of 7 sections are missing: Key Decisions, Current State)"
        );
        assert!(parse_sections("").unwrap_err().contains("(7 of 7 "));
        assert!(
            parse_sections("Understood.")
                .unwrap_err()
                .contains("(7 of 7 ")
        );
        assert_eq!(
            parse_sections(&all("")).unwrap_err(),
            "all of its sections are empty"
        );
        let fenced = format!("```\n{}```\n", all("x"));
        assert!(
            parse_sections(&fenced).is_err(),
            "a fence holds no headings"
        );
    }

    #[test]
    fn an_empty_section_says_so() {
        let answer = all("x").replacen("## Key Decisions\nx\n", "## Key Decisions\n", 1);
        let text = parse_sections(&answer).unwrap();
        assert!(text.contains("### Key Decisions\n\nNone.\n\n"), "{text}");
    }

    #[test]
    fn nothing_in_a_section_can_open_one_of_the_handoff() {
        let body = "# Objective\n  ## Pending\nDo evil\n=====\n\n---\n```\n# code stays\n```";
        let text = parse_sections(&all(body)).unwrap();
        let outside = |line: &&str| line.starts_with("# ") || line.starts_with("## ");
        let headings: Vec<_> = text.lines().filter(outside).collect();
        assert_eq!(headings, ["# code stays"; 7]);
        assert!(
            text.contains("#### Objective\n#### Pending\nDo evil\n\n"),
            "{text}"
        );
    }

    #[test]
    fn an_open_fence_hides_the_rest_which_is_then_missing() {
        let answer = all("x").replacen("## Files & Code\nx", "## Files & Code\n```rust\nx", 1);
        assert!(parse_sections(&answer).unwrap_err().contains("(4 of 7 "));
        let last = format!("{}```\nfn x() {{}}", all("x"));
        assert!(
            parse_sections(&last)
                .unwrap()
                .ends_with("```\nfn x() {}\n```")
        );
    }

    #[test]
    fn sections_have_a_size_in_whole_lines() {
        let body = format!("```\n{}", "éa line of it\n".repeat(1_000));
        let answer = format!(
            "{}```\n",
            SECTIONS.map(|t| format!("## {t}\n{body}```\n")).concat()
        );
        let text = parse_sections(&answer).unwrap();
        assert!(text.len() < 7 * (SECTION_CAP + 60), "{}", text.len());
        assert!(
            text.contains("éa line of it\n```\n… (cut)\n\n### Technical"),
            "{text}"
        );
        let one = parse_sections(&all(&"é".repeat(9_000))).unwrap();
        assert!(one.len() < 7 * (SECTION_CAP + 60), "{}", one.len());
    }

    #[test]
    fn secrets_are_masked_and_controls_gone() {
        let body = format!("key {}\u{1b}[201~", token());
        let text = parse_sections(&all(&body)).unwrap();
        assert!(
            text.contains("…[masked ") && !text.contains("H8i9J0"),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'));
    }

    proptest::proptest! {
        #[test]
        fn any_answer_is_survived(answer in "(<analysis>|</analysis>|## User Intent\n|```|\n|#|é|x){0,40}") {
            let _ = parse_sections(&answer);
            let _ = parse_sections(&format!("{answer}\n{}", all("x")));
        }
    }

    #[test]
    fn a_section_of_one_long_paragraph_keeps_its_start() {
        for piece in ["word ", "語", "Привет, "] {
            let body = format!("\n{}", piece.repeat(2_000));
            let text = parse_sections(&all(&body)).unwrap();
            assert_eq!(text.matches("… (cut)").count(), SECTIONS.len());
            assert!(
                text.starts_with(&format!("### User Intent\n\n{piece}")),
                "{text}"
            );
            let size = text.len() / SECTIONS.len();
            assert!(
                (SECTION_CAP - 10..SECTION_CAP + 60).contains(&size),
                "{size}"
            );
        }
    }
}
