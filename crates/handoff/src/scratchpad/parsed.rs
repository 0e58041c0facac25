//! The contents of the notes, read once: the panel, the preserved state, the handoff and its warnings all use them.
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
//! A heading counts without its case, number, sign or colon, and so does a line `**Objective:** text`. Words that only hold
//! a place ("none", "TBD", an empty box) are no items. Every line knows the facts that were read from it, so that those
//! given elsewhere can be left out: see [`Parsed::without`].

mod reader;
mod titles;
mod words;

use std::sync::LazyLock;

use chrono::{DateTime, Utc};

use pitstop_base::redact::redact;
use reader::Reader;
pub use words::{next_in, split_reason};

/// An item of a checklist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// The text of the thing to do, or done.
    pub text: String,
    /// True if its box is ticked.
    pub done: bool,
    /// The lines that are indented below it and are no items themselves.
    pub notes: Vec<String>,
}

/// A decision in the notes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The text of the decision.
    pub text: String,
    /// The reason; empty if the notes give none.
    pub reason: String,
    /// The date, if the notes begin the decision with one.
    pub at: Option<DateTime<Utc>>,
}

/// A thing that blocks the work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocker {
    /// The text of the blocker, with a severity in brackets if there is one.
    pub text: String,
    /// True if the notes mark it as done.
    pub resolved: bool,
}

/// A fact that was read from the notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact<'a> {
    /// The objective of the work.
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
    /// The objective of the work.
    pub objective: Option<String>,
    /// The next step, if the notes name one.
    pub next: Option<String>,
    /// The items of all checklists, in their order.
    pub items: Vec<Item>,
    /// The decisions.
    pub decisions: Vec<Decision>,
    /// The blockers.
    pub blockers: Vec<Blocker>,
    lines: Vec<(String, Role)>,
}

/// The notes without contents.
pub static NO_NOTES: LazyLock<Parsed> = LazyLock::new(Parsed::default);

/// The role of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Blank,
    Text,
    Code,
    /// A heading; `known` is true if it is one of the notes' own sections.
    Heading {
        level: usize,
        known: bool,
    },
    /// A rule, an empty box, a word that only holds a place.
    Empty,
    Fact(Id),
}

/// The part that is left below a line, up to the next heading that is left.
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
    /// Reads the notes, their secrets masked: if half of a secret came into another item, it could not be recognised any
    /// more.
    pub fn read(notes: &str) -> Self {
        Reader::read(&redact(notes))
    }

    /// Reports whether the notes are empty: no line but the headings of the notes' own sections.
    pub fn is_blank(&self) -> bool {
        self.lines
            .iter()
            .all(|(_, role)| matches!(role, Role::Blank | Role::Heading { known: true, .. }))
    }

    /// Returns the open items.
    pub fn pending(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| !item.done)
    }

    /// Returns the ticked items.
    pub fn completed(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| item.done)
    }

    /// Returns the notes without the facts given elsewhere, and without sections that are empty then. Headings that are not
    /// the notes' own are a person's words and stay.
    pub fn without(&self, mut is_said: impl FnMut(Fact<'_>) -> bool) -> String {
        let mut kept: Vec<usize> = Vec::new();
        // The number of lines given elsewhere, up to each line.
        let mut said = 0;
        let mut said_before: Vec<usize> = Vec::with_capacity(self.lines.len());
        // The first of the lines of one fact decides.
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
        // The lines are taken from the end, so that a section whose last subsection goes is seen to be empty.
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
                // It introduced the lines below it, all of which are given elsewhere.
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

    /// Returns for each line the end of the block that holds it: at the next blank line or heading.
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
