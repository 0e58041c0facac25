//! Two edits of the same notes, brought together so that no line of a person is lost.

use std::collections::{BTreeMap, BTreeSet};

use diffy::{ConflictStyle, MergeOptions};

use super::{lines::list_item, versions::Version};

/// The largest number of lines that are compared one by one: the time grows with the square of the lines that differ.
const COMPARED_LINES: usize = 30_000;

/// The length of a conflict's marks, which no line of notes begins with.
const MARK: usize = 53;

/// The smallest length, in bytes, at which a person's line also counts as kept where it is a part of a longer one.
const PART: usize = 12;

/// Brings together the edits of two writers to `base`. Where both changed the same lines, both versions stay: the lines of
/// `theirs`, then those that `mine` has added there.
pub fn merge(base: &str, mine: &str, theirs: &str) -> String {
    if mine == theirs || theirs == base {
        return mine.to_owned();
    }
    if mine == base {
        return theirs.to_owned();
    }
    if [base, mine, theirs].map(count_lines).iter().sum::<usize>() > COMPARED_LINES {
        return join_sides(&[base], &[mine], &[theirs]);
    }
    let merged = MergeOptions::new()
        .set_conflict_marker_length(MARK)
        .set_conflict_style(ConflictStyle::Diff3)
        .merge(&ended(base), &ended(mine), &ended(theirs));
    let mut text = match merged {
        Ok(text) => text,
        Err(marked) => resolve_conflicts(&marked),
    };
    if !mine.ends_with('\n') && !theirs.ends_with('\n') && text.ends_with('\n') {
        text.pop();
    }
    text
}

fn count_lines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// Ends the last line: without its end it would differ from the same line with one.
fn ended(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("{}\n", text.strip_suffix('\n').unwrap_or(text)),
    }
}

/// Returns the difference between two texts, as the hunks of a unified diff; empty if they are equal.
pub fn difference(before: &str, after: &str) -> String {
    if count_lines(before) + count_lines(after) > COMPARED_LINES {
        return "@@ too long to be compared @@\n".to_owned();
    }
    let patch = diffy::create_patch(&ended(before), &ended(after)).to_string();
    // The two lines in front name files.
    patch.splitn(3, '\n').nth(2).unwrap_or_default().to_owned()
}

/// Returns a merge's text with both versions in the place of each conflict.
fn resolve_conflicts(marked: &str) -> String {
    let mark = |c: char| String::from(c).repeat(MARK);
    let (open, middle, half, close) = (mark('<'), mark('|'), mark('='), mark('>'));
    let mut text = String::with_capacity(marked.len());
    // The sides of the conflict that is open: mine, base, theirs.
    let mut sides: [Vec<&str>; 3] = Default::default();
    let mut side = None;
    for line in marked.split_inclusive('\n') {
        match side {
            None if line.starts_with(&open) => side = Some(0),
            None => text.push_str(line),
            Some(0) if line.starts_with(&middle) => side = Some(1),
            Some(1) if line.starts_with(&half) => side = Some(2),
            Some(2) if line.starts_with(&close) => {
                let [mine, base, theirs] = std::mem::take(&mut sides);
                text.push_str(&join_sides(&base, &mine, &theirs));
                side = None;
            }
            Some(at) => sides[at].push(line),
        }
    }
    text
}

/// Returns the lines of `theirs`, and those that `mine` has added, without those of `base` that either has removed.
fn join_sides(base: &[&str], mine: &[&str], theirs: &[&str]) -> String {
    fn lines<'a>(texts: &[&'a str]) -> Vec<&'a str> {
        texts.iter().flat_map(|text| text.lines()).collect()
    }
    let (base, mine, theirs) = (lines(base), lines(mine), lines(theirs));
    let set = |lines: &[&str]| -> BTreeSet<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    };
    let (in_base, in_mine, in_theirs) = (set(&base), set(&mine), set(&theirs));
    let stays = |line: &&&str| !in_base.contains(**line) || in_mine.contains(**line);
    let added = |line: &&&str| {
        !line.trim().is_empty() && !in_base.contains(**line) && !in_theirs.contains(**line)
    };
    let kept = theirs.iter().filter(stays).chain(mine.iter().filter(added));
    kept.flat_map(|line| [line, "\n"]).collect()
}

/// The lines that a person has written and not removed. A line is known by its words: ticking it, indenting it or another
/// bullet makes no other line of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HumanLines(BTreeSet<String>);

impl HumanLines {
    /// Creates the set from the lines that were stored.
    pub fn new(lines: impl IntoIterator<Item = String>) -> Self {
        Self(lines.into_iter().collect())
    }

    /// Returns the lines of a text that was not watched since this version of it: the new lines in it are a person's.
    /// Without a version all of it is.
    pub fn since(version: Option<&Version>, text: &str) -> Self {
        let (mut human, before) = match version {
            Some(version) => (Self::new(version.human.clone()), version.text.as_str()),
            None => (Self::default(), super::TEMPLATE),
        };
        human.record_edit(before, text);
        human
    }

    /// Returns all of the lines, by their words.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Records that a person has made `new` of `old`: the added lines are theirs, and the removed ones belong to none.
    pub fn record_edit(&mut self, old: &str, new: &str) {
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        for words in old.lines().filter_map(line_words) {
            *known.entry(words).or_default() += 1;
        }
        let present = Present::in_text(new);
        self.0.retain(|line| present.has(line));
        for words in new.lines().filter_map(line_words) {
            match known.get_mut(&words) {
                Some(count) if *count > 0 => *count -= 1,
                // The headings of the template have no author.
                _ if super::TEMPLATE.lines().any(|heading| heading == words) => {}
                _ => {
                    self.0.insert(words);
                }
            }
        }
    }

    /// Returns the text `new`, which another author made of `old`, with each of these lines that got lost put back behind
    /// the line that it followed.
    pub fn restore_lost(&self, old: &str, new: &str) -> String {
        let missing: BTreeSet<&str> = self.missing_in(new).collect();
        if missing.is_empty() {
            return new.to_owned();
        }
        let lost = |line: &str| {
            line_words(line).is_some_and(|words| {
                missing.contains(words.as_str())
                    || missing.iter().any(|lost| holds_line(&words, lost))
            })
        };
        // The line of `new` behind which a lost line is put, from 1, or 0 for the place before all of them.
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for (at, line) in new.lines().enumerate() {
            if let Some(words) = line_words(line) {
                places.entry(words).or_insert(at + 1);
            }
        }
        let mut put: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        let mut place = 0;
        let mut after_lost = false;
        for line in old.lines() {
            // With the blank line behind it.
            let blank = line.trim().is_empty() && after_lost;
            after_lost = lost(line);
            if after_lost || blank {
                put.entry(place).or_default().push(line);
            } else if let Some(at) = line_words(line).and_then(|words| places.get(&words)) {
                place = *at;
            }
        }
        let mut lines: Vec<&str> = Vec::new();
        lines.extend(put.remove(&0).unwrap_or_default());
        for (at, line) in new.lines().enumerate() {
            lines.push(line);
            lines.extend(put.remove(&(at + 1)).unwrap_or_default());
        }
        let mut text = lines.join("\n");
        if new.ends_with('\n') || old.ends_with('\n') {
            text.push('\n');
        }
        text
    }

    /// Returns those of these lines that a text does not have.
    pub fn missing_in<'a>(&'a self, text: &str) -> impl Iterator<Item = &'a str> {
        let present = Present::in_text(text);
        self.iter().filter(move |line| !present.has(line))
    }
}

impl Extend<String> for HumanLines {
    fn extend<T: IntoIterator<Item = String>>(&mut self, lines: T) {
        self.0.extend(lines);
    }
}

/// The words of a text's lines.
struct Present {
    lines: BTreeSet<String>,
    all: String,
}

impl Present {
    fn in_text(text: &str) -> Self {
        let lines: Vec<String> = text.lines().filter_map(line_words).collect();
        Self {
            all: lines.join("\n"),
            lines: lines.into_iter().collect(),
        }
    }

    fn has(&self, line: &str) -> bool {
        self.lines.contains(line) || (line.len() >= PART && self.all.contains(line))
    }
}

/// Reports whether the words of a line are those of a person's line, or hold them.
fn holds_line(words: &str, line: &str) -> bool {
    words == line || (line.len() >= PART && words.contains(line))
}

/// Returns a line by its words: without bullet, tick and the blanks between them. `None` for a blank line.
fn line_words(line: &str) -> Option<String> {
    let item = list_item(line.trim_start()).map_or(line, |item| item.text);
    let words: Vec<&str> = item.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_of_different_lines_merge() {
        let merged = merge("a\nb\nc\nd\ne\n", "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n");
        assert_eq!(merged, "A\nb\nc\nd\nE\n");
    }

    #[test]
    fn an_edit_on_one_side_only_wins() {
        assert_eq!(merge("a", "a", "b"), "b");
        assert_eq!(merge("a", "b", "a"), "b");
        assert_eq!(merge("a", "b", "b"), "b");
    }

    #[test]
    fn where_both_changed_the_same_lines_both_versions_stay() {
        assert_eq!(merge("a\n", "mine\n", "theirs\n"), "theirs\nmine\n");
        assert_eq!(merge("a", "mine", "theirs"), "theirs\nmine");
        assert_eq!(
            merge("a\nb\nc\n", "a\nmine\nc\n", "a\nc\n"),
            "a\nmine\nc\n",
            "what one removed and the other changed"
        );
        assert_eq!(merge("", "mine", "theirs"), "theirs\nmine");
        // A line that is in the base only does not come back.
        assert_eq!(merge("a\nb\n", "b\nmine\n", "theirs\n"), "theirs\nmine\n");
    }

    #[test]
    fn marks_in_the_notes_harm_nothing() {
        let marks = "<<<<<<< ours\n=======\n>>>>>>> theirs\n";
        let merged = merge("a\n", &format!("{marks}mine\n"), "theirs\n");
        assert_eq!(merged, format!("theirs\n{marks}mine\n"));
    }

    #[test]
    fn texts_of_many_lines_are_merged_in_time() {
        let text = |word: &str| -> String {
            let lines: Vec<String> = (0..20_000).map(|n| format!("{word} {n}")).collect();
            lines.join("\n") + "\n"
        };
        let merged = merge("base\n", &text("mine"), &text("theirs"));
        assert!(merged.starts_with("theirs 0\n") && merged.ends_with("mine 19999\n"));
        assert_eq!(merged.lines().count(), 40_000);
    }

    #[test]
    fn a_persons_line_is_put_back_where_it_stood() {
        let mut human = HumanLines::default();
        let old = "## Plan\n- [ ] one\n- [ ] two\n\n## Notes\nagent\n";
        let edited =
            "## Plan\n- [ ] one\n- [ ] mine\n  - a part of it\n- [ ] two\n\n## Notes\nagent\n";
        human.record_edit(old, edited);
        let lines: Vec<&str> = human.iter().collect();
        assert_eq!(lines, ["a part of it", "mine"]);
        let new = "## Plan\n- [x] one\n- [ ] three\n\n## Notes\nother\n";
        assert_eq!(
            human.restore_lost(edited, new),
            "## Plan\n- [x] one\n- [ ] mine\n  - a part of it\n- [ ] three\n\n## Notes\nother\n"
        );
        assert_eq!(
            human.restore_lost(edited, ""),
            "- [ ] mine\n  - a part of it\n"
        );
        let mut human = HumanLines::default();
        let old = "## Objective\nship it\n\n## Current Plan\n- [ ] mine\n";
        human.record_edit("", old);
        assert_eq!(
            human.restore_lost(old, "## Current Plan\n- [ ] theirs\n"),
            "## Objective\nship it\n\n## Current Plan\n- [ ] mine\n- [ ] theirs\n"
        );
    }

    #[test]
    fn a_line_is_kept_where_its_words_are() {
        let mut human = HumanLines::default();
        human.record_edit("", "- [ ] fix the fuzz test\n1. short\n");
        for kept in [
            "* [x] fix the  fuzz test\n- short",
            "- fix the fuzz test (in b1c2)\nshort\n",
        ] {
            assert_eq!(
                human.restore_lost("- [ ] fix the fuzz test\n1. short\n", kept),
                kept
            );
        }
        // A short one may be a part of anything.
        let lost = human.restore_lost("1. short\n", "- fix the fuzz test shortly\n");
        assert_eq!(lost, "1. short\n- fix the fuzz test shortly\n");
    }

    #[test]
    fn a_line_that_the_person_removes_is_gone() {
        let mut human = HumanLines::default();
        human.record_edit("a\n", "a\nmine\n");
        human.record_edit("a\nmine\n", "a\n");
        assert_eq!(human.iter().count(), 0);
        // Ticking a line of another author's does not make it the person's.
        human.record_edit("- [ ] a\n", "- [x] a\n");
        assert_eq!(human.iter().count(), 0);
    }

    proptest::proptest! {
        #[test]
        fn no_line_that_one_side_added_is_lost(
            base in "([a-d]{0,3}\n){0,8}",
            mine in "([a-f]{0,3}\n){0,8}",
            theirs in "([a-f]{0,3}\n){0,8}",
        ) {
            let merged = merge(&base, &mine, &theirs);
            let has = |text: &str, line: &str| text.lines().any(|one| one == line);
            for line in mine.lines().chain(theirs.lines()) {
                proptest::prop_assert!(
                    line.is_empty() || has(&base, line) || has(&merged, line),
                    "{line:?} is lost in {merged:?}"
                );
            }
        }

        #[test]
        fn any_texts_are_merged_without_a_panic(
            base in "[-*<>=| \\[\\]x1.\n\u{e9}a]{0,80}",
            mine in "[-*<>=| \\[\\]x1.\n\u{e9}a]{0,80}",
            theirs in "[-*<>=| \\[\\]x1.\n\u{e9}a]{0,80}",
        ) {
            let merged = merge(&base, &mine, &theirs);
            let mut human = HumanLines::default();
            human.record_edit(&base, &mine);
            let kept = human.restore_lost(&mine, &merged);
            proptest::prop_assert_eq!(human.missing_in(&kept).count(), 0);
        }
    }

    #[test]
    fn many_lost_lines_are_put_back_in_time() {
        let pasted: Vec<String> = (0..40_000)
            .map(|n| format!("a line of a log, number {n}"))
            .collect();
        let pasted = pasted.join("\n") + "\n";
        let mut human = HumanLines::default();
        human.record_edit("", &pasted);
        for new in ["- [ ] agent\n", "", "## Plan\n- a\n"] {
            let kept = human.restore_lost(&pasted, new);
            assert_eq!(kept.lines().count(), 40_000 + new.lines().count());
        }
    }
}
