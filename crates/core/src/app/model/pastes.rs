//! The long texts that a person has pasted into the prompt box. The client shows a mark in the place of each, and gives its text to
//! no one before the prompt is submitted; on its way into the pane it passes us.

use std::collections::{BTreeMap, VecDeque};

use pitstop_agent::claude::prompt_box::paste_marks;
use pitstop_base::recent;
use pitstop_terminal::input::HostInput;

/// The smallest length at which a paste of one line is kept: the client puts no mark in the place of a shorter one.
const LONG: usize = 200;

/// The number of pastes that are kept without a mark: the client does not put one in the place of each.
const UNMARKED: usize = 16;

/// The number of pastes that are kept by their marks: no prompt box has more, and a session may last for weeks.
const MARKED: usize = 64;

/// The largest paste that is kept, in bytes, as large as a draft on disk may be.
const LARGEST: usize = pitstop_handoff::scratchpad::MAX_BYTES;

/// The long pastes of one agent process.
#[derive(Clone, Debug, Default)]
pub struct Pastes {
    /// The paste that is coming in, unless it is too large.
    incoming: Option<Vec<u8>>,
    /// Those for which no mark is known, the oldest first.
    unmarked: VecDeque<String>,
    /// The others, by the number in their mark.
    marked: BTreeMap<u32, String>,
}

impl Pastes {
    /// Takes in a piece of a paste that goes to the agent.
    pub(in crate::app) fn take(&mut self, piece: &HostInput) {
        match piece {
            HostInput::PasteStart => self.incoming = Some(Vec::new()),
            HostInput::PasteChunk(bytes) => {
                if let Some(incoming) = &mut self.incoming {
                    incoming.extend_from_slice(bytes);
                }
                self.incoming.take_if(|incoming| incoming.len() > LARGEST);
            }
            HostInput::PasteEnd => {
                let bytes = self.incoming.take().unwrap_or_default();
                let text = String::from_utf8_lossy(&bytes);
                let text = text.replace("\r\n", "\n").replace('\r', "\n");
                if text.len() >= LONG || text.contains('\n') {
                    recent::push(&mut self.unmarked, text, UNMARKED);
                }
            }
            _ => {}
        }
    }

    /// Reports whether there is a paste for which no mark is known.
    pub(in crate::app) fn awaits_mark(&self) -> bool {
        !self.unmarked.is_empty()
    }

    /// Finds the pastes of the marks that are new in the box's text. A mark has the number of lines; it is that of the latest paste
    /// of so many, because the client shows some pastes as they are.
    pub(in crate::app) fn note_marks(&mut self, boxed: &str) {
        let is_new = |number: &u32| !self.marked.contains_key(number);
        let mut new: Vec<_> = paste_marks(boxed)
            .filter(|mark| is_new(&mark.number))
            .collect();
        new.sort_by_key(|mark| std::cmp::Reverse(mark.number));
        for mark in new {
            let is_its = |text: &String| text.matches('\n').count() == mark.lines;
            let found = self.unmarked.iter().rposition(is_its);
            if let Some(text) = found.and_then(|at| self.unmarked.remove(at)) {
                self.marked.insert(mark.number, text);
            }
            if self.marked.len() > MARKED {
                self.marked.pop_first();
            }
        }
    }

    /// Returns the box's text with the pastes in the place of their marks, as far as they are known.
    pub(in crate::app) fn expand(&self, boxed: &str) -> String {
        let mut text = String::with_capacity(boxed.len());
        let mut end = 0;
        for mark in paste_marks(boxed) {
            let pasted = self.marked.get(&mark.number);
            if let Some(pasted) = pasted.filter(|text| text.matches('\n').count() == mark.lines) {
                text.push_str(&boxed[end..mark.range.start]);
                text.push_str(pasted);
                end = mark.range.end;
            }
        }
        text.push_str(&boxed[end..]);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pasted(texts: &[&str]) -> Pastes {
        let mut pastes = Pastes::default();
        for text in texts {
            pastes.take(&HostInput::PasteStart);
            for chunk in text.as_bytes().chunks(7) {
                pastes.take(&HostInput::PasteChunk(chunk.to_vec()));
            }
            pastes.take(&HostInput::PasteEnd);
        }
        pastes
    }

    #[test]
    fn a_mark_stands_for_the_paste_of_its_number_of_lines() {
        let long = "x".repeat(900);
        let mut pastes = pasted(&["一\r二\r三\r四\r", "a\nb\nc\nd\n", &long, "short"]);
        let boxed =
            "see [Pasted text #1 +4 lines] and [Pasted text #2 +4 lines], [Pasted text #4]!";
        pastes.note_marks(boxed);
        let expanded = format!("see 一\n二\n三\n四\n and a\nb\nc\nd\n, {long}!");
        assert_eq!(pastes.expand(boxed), expanded);
        // The same marks mean the same later, and others nothing.
        pastes.note_marks("[Pasted text #7 +4 lines]");
        for unknown in [
            "[Pasted text #7 +4 lines]",
            "[Pasted text #1 +5 lines]",
            "[Image #1]",
            "[Pasted text #",
        ] {
            assert_eq!(pastes.expand(unknown), unknown);
        }
        assert_eq!(pastes.expand("[Pasted text #2 +4 lines]"), "a\nb\nc\nd\n");
    }

    #[test]
    fn a_paste_that_is_shown_as_it_is_takes_no_mark_of_a_later_one() {
        let mut pastes = pasted(&["shown\nas\nit\nis", "the\none\nwith\nmark"]);
        pastes.note_marks("[Pasted text #3 +3 lines]");
        let expanded = pastes.expand("[Pasted text #3 +3 lines]");
        assert_eq!(expanded, "the\none\nwith\nmark");
    }

    #[test]
    fn a_paste_that_is_too_large_is_not_kept_in_part() {
        let mut pastes = pasted(&[&"line\n".repeat(LARGEST / 5 + 1)]);
        let boxed = format!("[Pasted text #1 +{} lines]", LARGEST / 5 + 1);
        pastes.note_marks(&boxed);
        assert_eq!(pastes.expand(&boxed), boxed);
    }
}
