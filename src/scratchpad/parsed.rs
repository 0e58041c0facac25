//! What the notes say, read once: the panel, the preserved state, the handoff and its warnings all go by this.
//!
//! ```text
//! ## Objective              → objective             a list item or a paragraph of its own
//! - [x] / - [ ]             → items, anywhere       what is indented below an item belongs to it
//! ## Key Decisions          → decisions             "text | why", "text — why", "text because …", "**text**: why"
//! ## Blockers               → blockers              struck out, or called resolved: dealt with
//! ## Current Understanding,
//! ## Last Action            → text
//! ## Next                   → open items; the first is the next step, as is what follows a "Next:" in *Last Action*
//! ```
//!
//! A heading counts without its case, number, sign or colon, and so does a line `**Objective:** text`. Words that only hold a
//! place ("none", "TBD", an empty box) are no items. Every line knows what was read from it, so that what is said elsewhere
//! can be left out: see [`Parsed::without`].

mod reader;
mod titles;
mod words;

use std::sync::LazyLock;

use chrono::{DateTime, Utc};

use crate::redact::redact;
use reader::Reader;
pub use words::split_reason;

/// An item of a checklist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// What is to do, or was.
    pub text: String,
    /// Whether its box is ticked.
    pub done: bool,
    /// The lines that are indented below it and are no items themselves.
    pub notes: Vec<String>,
}

/// Something that was decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// What.
    pub text: String,
    /// Why; empty if the notes do not say.
    pub reason: String,
    /// When, if the notes begin it with a date.
    pub at: Option<DateTime<Utc>>,
}

/// Something that stands in the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocker {
    /// What, with a severity in brackets if there is one.
    pub text: String,
    /// Whether the notes call it dealt with.
    pub resolved: bool,
}

/// Something that was read from the notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact<'a> {
    /// What the work is for.
    Objective(&'a str),
    /// An item of a checklist.
    Item(&'a Item),
    /// A decision.
    Decision(&'a Decision),
    /// A blocker.
    Blocker(&'a Blocker),
    /// The next step, where it is no item of a list.
    Next(&'a str),
    /// Any other line, outside of code.
    Line(&'a str),
}

/// The notes, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// What the work is for.
    pub objective: Option<String>,
    /// What comes next, if the notes say so.
    pub next: Option<String>,
    /// The items of all checklists, as they stand.
    pub items: Vec<Item>,
    /// What was decided.
    pub decisions: Vec<Decision>,
    /// What stands in the way.
    pub blockers: Vec<Blocker>,
    lines: Vec<(String, Role)>,
}

/// Notes that say nothing.
pub static NO_NOTES: LazyLock<Parsed> = LazyLock::new(Parsed::default);

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Blank,
    Text,
    Code,
    /// A heading; whether it is one of the notes' own sections.
    Heading {
        level: usize,
        known: bool,
    },
    /// A rule, an empty box, a word that only holds a place.
    Empty,
    Fact(Id),
}

/// What is left below a line, up to the next heading that is left.
#[derive(Clone, Copy, Debug)]
enum Below {
    Nothing,
    Heading(usize),
    Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    Objective,
    Item(usize),
    Decision(usize),
    Blocker(usize),
    Next,
}

impl Parsed {
    /// Reads the notes, their secrets masked: of a half that stands in another item nobody could tell any more that it was one.
    #[must_use]
    pub fn read(notes: &str) -> Self {
        Reader::read(&redact(notes))
    }

    /// Whether nothing has been noted: no line but the headings of the notes' own sections.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.lines
            .iter()
            .all(|(_, role)| matches!(role, Role::Blank | Role::Heading { known: true, .. }))
    }

    /// The open items.
    pub fn pending(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| !item.done)
    }

    /// The ticked items.
    pub fn completed(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| item.done)
    }

    /// The notes without what is said elsewhere, and without sections that are empty then. Headings that are not the notes'
    /// own are a person's words and stay.
    #[must_use]
    pub fn without(&self, mut is_said: impl FnMut(Fact<'_>) -> bool) -> String {
        let mut kept: Vec<usize> = Vec::new();
        // How many lines are said, up to each line.
        let mut said = 0;
        let mut said_before: Vec<usize> = Vec::with_capacity(self.lines.len());
        // Of the lines of one fact, the first decides.
        let mut last: Option<(Id, bool)> = None;
        for (at, (line, role)) in self.lines.iter().enumerate() {
            let stays = match role {
                Role::Empty => false,
                Role::Fact(id) => {
                    let known = last.filter(|(have, _)| have == id);
                    let gone = known.map_or_else(|| is_said(self.fact(*id)), |(_, gone)| gone);
                    last = Some((*id, gone));
                    !gone
                }
                Role::Text => !is_said(Fact::Line(line)),
                Role::Blank | Role::Code | Role::Heading { .. } => true,
            };
            said += usize::from(!stays && *role != Role::Empty);
            said_before.push(said);
            if stays {
                kept.push(at);
            }
        }
        // From the end, so that a section whose last subsection goes is seen to be empty.
        let mut text: Vec<&str> = Vec::new();
        let mut below = Below::Nothing;
        let ends = self.block_ends();
        let mut next = self.lines.len();
        for at in kept.into_iter().rev() {
            let (line, role) = &self.lines[at];
            match role {
                Role::Heading { level, known } => {
                    let empty = match below {
                        Below::Nothing => true,
                        Below::Heading(lower) => lower <= *level,
                        Below::Text => false,
                    };
                    if *known && empty {
                        continue;
                    }
                    below = Below::Heading(*level);
                }
                Role::Blank if text.last().is_none_or(|line| line.is_empty()) => continue,
                Role::Blank => {}
                // It spoke of what stood below it, all of which is said.
                Role::Text
                    if line.trim_end().ends_with(':')
                        && ends[at] <= next
                        && said_before[ends[at] - 1] > said_before[at] =>
                {
                    continue;
                }
                _ => below = Below::Text,
            }
            next = at;
            text.push(line.trim_end());
        }
        text.reverse();
        text.join("\n").trim_matches('\n').to_owned()
    }

    /// For each line, where the block that it stands in ends: at the next blank line or heading.
    fn block_ends(&self) -> Vec<usize> {
        let mut end = self.lines.len();
        let mut ends: Vec<usize> = (0..self.lines.len())
            .rev()
            .map(|at| {
                if matches!(self.lines[at].1, Role::Blank | Role::Heading { .. }) {
                    end = at;
                }
                end
            })
            .collect();
        ends.reverse();
        ends
    }

    fn fact(&self, id: Id) -> Fact<'_> {
        match id {
            Id::Objective => Fact::Objective(self.objective.as_deref().unwrap_or_default()),
            Id::Item(at) => Fact::Item(&self.items[at]),
            Id::Decision(at) => Fact::Decision(&self.decisions[at]),
            Id::Blocker(at) => Fact::Blocker(&self.blockers[at]),
            Id::Next => Fact::Next(self.next.as_deref().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests;
