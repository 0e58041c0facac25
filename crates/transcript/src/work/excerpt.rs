//! The parts of texts and outputs that count for the work.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::Value;

use super::LINE_CAP;
use crate::words::{clipped, own_lines, split_ends};
use pitstop_base::redact;

/// The most of a text that is searched for names, in bytes: half at its start and half at its end.
const SEARCHED: usize = 256 * 1024;

/// The most lines of the last failure that are reported.
const FAILURE_LINES: usize = 12;

/// Reports whether a text is a plan: it announces what comes next, and lists it.
pub(super) fn is_plan(text: &str) -> bool {
    // The agent answers in the human's language.
    const SPEAKS: &str = "ich werde|nächste|schritt|je vais|prochain|étape|план|следующ|шаг|далее|计划|步骤|接下来|下一步|手順|次に|\
        i'll|i will|let me|plan|next|to do|steps|remaining|need to";
    let is_item = |line: &&str| {
        let line = line.trim_start();
        let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
        line.starts_with("- ")
            || line.starts_with("* ")
            || digits.len() < line.len()
                && [". ", ") ", "、", "．"]
                    .iter()
                    .any(|mark| digits.starts_with(mark))
    };
    let small = text.to_lowercase();
    own_lines(text).filter(is_item).count() >= 3
        && SPEAKS.split('|').any(|word| small.contains(word))
}

/// Returns the line at which a call that changed or read a file stopped, as the client reports it.
pub(super) fn stopped_at(outcome: &Value, changed: bool) -> Option<u64> {
    if changed {
        let last = outcome["structuredPatch"].as_array()?.last()?;
        // The patch begins with a few lines before the change.
        let lines = last["lines"].as_array().into_iter().flatten();
        let around =
            lines.take_while(|line| line.as_str().is_some_and(|line| line.starts_with(' ')));
        return Some(last["newStart"].as_u64()? + around.count() as u64);
    }
    let file = &outcome["file"];
    let (start, lines) = (file["startLine"].as_u64()?, file["numLines"].as_u64()?);
    let whole = file["totalLines"].as_u64() == Some(lines);
    (!whole).then_some(start)
}

/// Returns the part of a text that is searched: all of it, or its start and its end, without the words of masks.
pub(super) fn searched_part(text: &str) -> Cow<'_, str> {
    let part = split_ends(text, SEARCHED).map_or(Cow::Borrowed(text), |(head, tail)| {
        format!("{head}\n{tail}").into()
    });
    if !part.contains(redact::MASK) {
        return part;
    }
    let mut pieces = part.split(redact::MASK);
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        plain.push(' ');
        plain.push_str(piece.split_once(']').map_or(piece, |(_, behind)| behind));
    }
    plain.into()
}

/// Returns the lines of an output that tell what went wrong; its last lines if there are none.
pub(super) fn lines_that_matter(output: &str) -> Vec<String> {
    const MARKS: &str = "✕|✗|fehler|erreur|ошибка|не удалось|错误|失败|エラー|失敗|error|fail|panic|exception|fatal|assert|expected|\
        not found|denied|undefined|unknown|cannot|no such|traceback";
    let lines = output
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.trim().is_empty());
    let mut lines: Vec<&str> = lines.collect();
    // The client's own first line says only that the command failed.
    if lines.len() > 1 && lines[0].starts_with("Exit code ") {
        lines.remove(0);
    }
    let matters = |line: &&&str| {
        let small = line.to_lowercase();
        MARKS.split('|').any(|mark| small.contains(mark)) || line.trim_start().starts_with("--> ")
    };
    let mut chosen: Vec<&str> = lines.iter().filter(matters).copied().collect();
    if chosen.is_empty() {
        chosen = lines[lines.len().saturating_sub(FAILURE_LINES / 2)..].to_vec();
    }
    let mut seen = BTreeSet::new();
    chosen.retain(|line| seen.insert(line.trim()));
    chosen
        .into_iter()
        .take(FAILURE_LINES)
        .map(|line| clipped(line, LINE_CAP))
        .collect()
}
