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

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};

use super::lines::{Fences, ListItem, Place, heading, is_rule, list_item};

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
    /// The section *Current Understanding*.
    pub understanding: Option<String>,
    /// The section *Last Action*.
    pub last_action: Option<String>,
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
pub static NO_NOTES: Parsed = Parsed {
    objective: None,
    understanding: None,
    last_action: None,
    next: None,
    items: Vec::new(),
    decisions: Vec::new(),
    blockers: Vec::new(),
    lines: Vec::new(),
};

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

/// The sections that the notes have, by what is read from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    /// The notes themselves.
    Title,
    Objective,
    Understanding,
    Plan,
    Decisions,
    Blockers,
    LastAction,
    Next,
    /// Those of a summary of a session, which agents take over.
    Other,
}

/// Their headings, in lower case.
const TITLES: [(Section, &[&str]); 9] = [
    (Section::Title, &["scratchpad", "notes"]),
    (
        Section::Objective,
        &[
            "objective",
            "objectives",
            "current objective",
            "goal",
            "goals",
        ],
    ),
    (
        Section::Understanding,
        &["current understanding", "understanding"],
    ),
    (
        Section::Plan,
        &[
            "current plan",
            "plan",
            "checklist",
            "tasks",
            "todo",
            "to do",
        ],
    ),
    (
        Section::Decisions,
        &[
            "key decisions",
            "key decision",
            "decisions",
            "decisions made",
        ],
    ),
    (
        Section::Blockers,
        &[
            "blockers",
            "blocker",
            "current blockers",
            "blocking issues",
            "known issues",
            "open issues",
        ],
    ),
    (Section::LastAction, &["last action", "last actions"]),
    (
        Section::Next,
        &[
            "next",
            "next step",
            "next steps",
            "next action",
            "next actions",
            "next up",
        ],
    ),
    (
        Section::Other,
        &[
            "user intent",
            "technical context",
            "files & code",
            "errors & fixes",
            "pending tasks",
            "current state",
        ],
    ),
];

/// The level of a line such as `**Blockers:**`: every heading ends its section.
const LABEL: usize = 7;

impl Parsed {
    /// Reads the notes.
    #[must_use]
    pub fn read(notes: &str) -> Self {
        let mut reader = Reader::default();
        let lines: Vec<&str> = notes.lines().collect();
        for (line, (place, indent)) in lines.iter().zip(places(&lines)) {
            let role = reader.line(line, place, indent);
            reader.lines.push(((*line).to_owned(), role));
        }
        reader.finished()
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
        let mut said: Vec<bool> = Vec::with_capacity(self.lines.len());
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
            said.push(!stays && *role != Role::Empty);
            if stays {
                kept.push(at);
            }
        }
        // From the end, so that a section whose last subsection goes is seen to be empty.
        let mut text: Vec<&str> = Vec::new();
        let mut below = Below::Nothing;
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
                // It spoke of what stood below it.
                Role::Text
                    if line.trim_end().ends_with(':') && self.is_gone(at + 1, next, &said) =>
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

    /// Whether a block began at this line, of which nothing is left before the next line that is, because it is said.
    fn is_gone(&self, from: usize, next: usize, said: &[bool]) -> bool {
        let ends = |(_, role): &(String, Role)| matches!(role, Role::Blank | Role::Heading { .. });
        let length = self.lines[from..].iter().position(ends);
        let end = length.map_or(self.lines.len(), |length| from + length);
        end <= next && said[from..end].contains(&true)
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

/// Where each line stands, and the least indentation of the fence that it belongs to. A fence that is never closed goes to
/// the end, as it is drawn.
fn places(lines: &[&str]) -> Vec<(Place, usize)> {
    let mut fences = Fences::default();
    let mut begun = None;
    let mut places: Vec<(Place, usize)> = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        let place = fences.place(line.trim_start());
        let indent = if line.trim().is_empty() {
            usize::MAX
        } else {
            indentation(line)
        };
        places.push((place, indent));
        match (place, begun) {
            (Place::Mark, None) => begun = Some(at),
            (Place::Mark, Some(first)) => {
                let least = places[first..].iter().map(|(_, indent)| *indent).min();
                for (_, indent) in &mut places[first..] {
                    *indent = least.unwrap_or_default();
                }
                begun = None;
            }
            _ => {}
        }
    }
    for (place, indent) in &mut places[begun.unwrap_or(lines.len())..] {
        (*place, *indent) = (Place::Code, 0);
    }
    places
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// An entry of *Key Decisions* or *Blockers* as it is being read.
#[derive(Debug, Default)]
struct Entry {
    text: String,
    /// What is listed below it.
    below: Vec<String>,
    /// Whether it is a heading in the section: a list below it has the entries instead.
    heading: Option<usize>,
}

/// What the lines below it belong to: those that are indented further.
#[derive(Clone, Copy, Debug)]
struct Owner {
    id: Id,
    indent: usize,
    /// Whether a line of text goes on with it however it is indented: up to the next blank line.
    goes_on: bool,
}

/// The indentation of a paragraph: nothing is below it.
const PARAGRAPH: usize = usize::MAX;

#[derive(Debug, Default)]
struct Reader {
    out: Parsed,
    lines: Vec<(String, Role)>,
    /// The section that is open, its level, and whether a blank line ends it.
    section: Option<(Section, usize, bool)>,
    owner: Option<Owner>,
    objective: Vec<String>,
    /// Whether a section *Objective* with something in it was there already.
    has_objective: bool,
    understanding: Vec<String>,
    last_action: Vec<String>,
    next: Option<String>,
    decisions: Vec<Entry>,
    blockers: Vec<Entry>,
    /// The entry of the row of a table in the line before.
    row: Option<Id>,
}

impl Reader {
    fn line(&mut self, line: &str, place: Place, indent: usize) -> Role {
        let text = line.trim();
        let row = self.row.take();
        if text.is_empty() {
            if let Some(owner) = &mut self.owner {
                owner.goes_on = false;
            }
            if matches!(self.section, Some((_, _, true))) {
                self.open(None);
            }
            self.raw(line);
            return Role::Blank;
        }
        if place != Place::Text {
            return self.code(line, indent);
        }
        if let Some((level, words)) = heading(line) {
            return self.heading(line, level, words);
        }
        if indent == 0
            && let Some((section, rest)) = label(text)
        {
            self.open(Some((section, LABEL, !rest.is_empty())));
            if rest.is_empty() {
                let known = true;
                return Role::Heading {
                    level: LABEL,
                    known,
                };
            }
            return self.body(rest, rest, 0, None);
        }
        if is_rule(text) {
            self.owner = None;
            return Role::Empty;
        }
        match list_item(text) {
            Some(item) if item.text.is_empty() => Role::Empty,
            Some(item) => self.list_item(line, indent, &item),
            None => self.body(line, text, indent, row),
        }
    }

    /// Opens a section, or none.
    fn open(&mut self, section: Option<(Section, usize, bool)>) {
        self.has_objective |= self.objective.iter().any(|line| !line.trim().is_empty());
        self.owner = None;
        self.section = section;
    }

    fn kind(&self) -> Option<Section> {
        self.section.map(|(section, ..)| section)
    }

    fn heading(&mut self, line: &str, level: usize, words: &str) -> Role {
        if let Some((section, rest)) = titled(words) {
            self.open(Some((section, level, false)));
            if !rest.is_empty() {
                return self.body(rest, rest, 0, None);
            }
            // The handoff and the panel have that name themselves.
            return match section {
                Section::Title => Role::Empty,
                _ => Role::Heading { level, known: true },
            };
        }
        let known = false;
        let inside = self.section.is_some_and(|(_, above, _)| level > above);
        self.owner = None;
        if !inside {
            self.open(None);
            return Role::Heading { level, known };
        }
        match self.kind() {
            Some(Section::Objective) if !self.has_objective => {
                self.objective.push(line.to_owned());
                Role::Fact(Id::Objective)
            }
            Some(Section::Decisions) if is_rejection(words) => {
                self.open(None);
                Role::Heading { level, known }
            }
            Some(Section::Decisions) => {
                let id = Id::Decision(self.decisions.len());
                self.decisions.push(Entry {
                    text: words.trim().to_owned(),
                    below: Vec::new(),
                    heading: Some(self.lines.len()),
                });
                self.owns(id, 0);
                Role::Fact(id)
            }
            _ => {
                self.raw(line);
                Role::Heading { level, known }
            }
        }
    }

    /// A line in a code fence, or a mark of one; all of a fence is indented at least so far.
    fn code(&mut self, line: &str, indent: usize) -> Role {
        if let Some(Owner { id, indent: of, .. }) = self.owner
            && let Id::Item(at) = id
            && indent > of
        {
            self.out.items[at].notes.push(line[of..].to_owned());
            return Role::Fact(id);
        }
        self.owner = None;
        if self.kind() == Some(Section::Objective) && !self.has_objective {
            self.objective.push(line.to_owned());
            return Role::Fact(Id::Objective);
        }
        self.raw(line);
        Role::Code
    }

    /// Keeps a line of a section that is a text.
    fn raw(&mut self, line: &str) {
        match self.kind() {
            Some(Section::Objective) if !self.has_objective && line.trim().is_empty() => {
                self.objective.push(String::new());
            }
            Some(Section::Understanding) => self.understanding.push(line.to_owned()),
            Some(Section::LastAction) => self.last_action.push(line.to_owned()),
            _ => {}
        }
    }

    fn list_item(&mut self, line: &str, indent: usize, item: &ListItem<'_>) -> Role {
        self.raw(line);
        self.end_group();
        let section = self.kind();
        // What follows the heading *Next* is open, with a box or without.
        let open = section == Some(Section::Next) && self.is_outermost(indent);
        if let Some(done) = item.done.or(open.then_some(false)) {
            if is_placeholder(item.text) {
                return Role::Empty;
            }
            if section == Some(Section::Next) && !done && self.next.is_none() {
                self.next = Some(item.text.to_owned());
            }
            let id = Id::Item(self.out.items.len());
            self.out.items.push(Item {
                text: item.text.to_owned(),
                done,
                notes: Vec::new(),
            });
            self.owns(id, indent);
            return Role::Fact(id);
        }
        if let Some(owner) = self.owner
            && (indent > owner.indent || self.is_heading(owner.id))
        {
            match owner.id {
                Id::Item(at) => self.out.items[at]
                    .notes
                    .push(line[owner.indent..].to_owned()),
                Id::Decision(at) => self.decisions[at].below.push(item.text.to_owned()),
                Id::Blocker(at) => self.blockers[at].below.push(item.text.to_owned()),
                Id::Objective | Id::Next => {}
            }
            return Role::Fact(owner.id);
        }
        self.owner = None;
        match section {
            Some(Section::Objective) if !self.has_objective => {
                if is_placeholder(item.text) {
                    return Role::Empty;
                }
                self.objective.push(line.to_owned());
                Role::Fact(Id::Objective)
            }
            Some(Section::Decisions | Section::Blockers) => {
                self.entry(item.text, indent).unwrap_or(Role::Empty)
            }
            Some(_) if is_placeholder(item.text) => Role::Empty,
            _ => Role::Text,
        }
    }

    /// Whether a list item is not below another one.
    fn is_outermost(&self, indent: usize) -> bool {
        self.owner.is_none_or(|owner| indent <= owner.indent)
    }

    fn owns(&mut self, id: Id, indent: usize) {
        self.owner = Some(Owner {
            id,
            indent,
            goes_on: !matches!(id, Id::Item(_)),
        });
    }

    /// Whether it is a decision that stands in a heading.
    fn is_heading(&self, id: Id) -> bool {
        matches!(id, Id::Decision(at) if self.decisions[at].heading.is_some())
    }

    /// A heading in *Key Decisions* with a list right below it only names a group.
    fn end_group(&mut self) {
        let Some(Id::Decision(at)) = self.owner.map(|owner| owner.id) else {
            return;
        };
        let entry = &self.decisions[at];
        let Some(line) = entry.heading.filter(|_| entry.below.is_empty()) else {
            return;
        };
        self.decisions.truncate(at);
        let (text, role) = &mut self.lines[line];
        let level = heading(text).map_or(LABEL, |(level, _)| level);
        *role = Role::Heading {
            level,
            known: false,
        };
        self.owner = None;
    }

    /// A new entry of the section that is open, unless it only holds a place.
    fn entry(&mut self, text: &str, indent: usize) -> Option<Role> {
        if is_placeholder(text) {
            return None;
        }
        let (entries, id) = match self.kind() {
            Some(Section::Blockers) => (&mut self.blockers, Id::Blocker as fn(usize) -> Id),
            _ => (&mut self.decisions, Id::Decision as fn(usize) -> Id),
        };
        let id = id(entries.len());
        entries.push(Entry {
            text: text.to_owned(),
            ..Entry::default()
        });
        self.owns(id, indent);
        Some(Role::Fact(id))
    }

    /// A line that is no heading and no list item.
    fn body(&mut self, line: &str, text: &str, indent: usize, row: Option<Id>) -> Role {
        self.raw(line);
        if let Some(owner) = self.owner
            && let Some(role) = self.belongs(owner, line, text, indent)
        {
            return role;
        }
        self.owner = None;
        let Some(section) = self.kind() else {
            return Role::Text;
        };
        if matches!(section, Section::Decisions | Section::Blockers) && text.starts_with('|') {
            return self.row(text, row);
        }
        if section == Section::Objective && !self.has_objective {
            if is_placeholder(text) {
                return Role::Empty;
            }
            self.objective.push(line.to_owned());
            return Role::Fact(Id::Objective);
        }
        if is_placeholder(text) {
            return Role::Empty;
        }
        match section {
            // Words before a list, and what somebody else has said.
            Section::Decisions | Section::Blockers if text.ends_with(':') => Role::Text,
            Section::Decisions | Section::Blockers if text.starts_with('>') => Role::Text,
            Section::Decisions | Section::Blockers => {
                self.entry(text, PARAGRAPH).unwrap_or(Role::Empty)
            }
            Section::Next if self.next.is_none() => {
                self.next = Some(text.to_owned());
                self.owns(Id::Next, PARAGRAPH);
                Role::Fact(Id::Next)
            }
            _ => Role::Text,
        }
    }

    /// A line that goes on with what the lines above it began.
    fn belongs(&mut self, owner: Owner, line: &str, text: &str, indent: usize) -> Option<Role> {
        let below_heading = self.is_heading(owner.id);
        if !(owner.goes_on || below_heading || indent > owner.indent) {
            return None;
        }
        let goes_on = |to: &mut String| {
            to.push(' ');
            to.push_str(text);
        };
        match owner.id {
            Id::Item(at) => self.out.items[at]
                .notes
                .push(line[owner.indent..].to_owned()),
            Id::Decision(at) | Id::Blocker(at) => {
                let entries = match owner.id {
                    Id::Decision(_) => &mut self.decisions,
                    _ => &mut self.blockers,
                };
                let entry = &mut entries[at];
                match entry.below.last_mut() {
                    Some(below) => goes_on(below),
                    None if below_heading => entry.below.push(text.to_owned()),
                    None => goes_on(&mut entry.text),
                }
            }
            Id::Next => goes_on(self.next.get_or_insert_default()),
            Id::Objective => {}
        }
        Some(Role::Fact(owner.id))
    }

    /// A row of a table; the line below its head takes the head back.
    fn row(&mut self, text: &str, before: Option<Id>) -> Role {
        let cells = text
            .split('|')
            .map(str::trim)
            .filter(|cell| !cell.is_empty());
        if cells
            .clone()
            .all(|cell| cell.chars().all(|c| matches!(c, '-' | ':')))
        {
            let entries = match before {
                Some(Id::Decision(_)) => &mut self.decisions,
                Some(Id::Blocker(_)) => &mut self.blockers,
                _ => return Role::Empty,
            };
            entries.pop();
            if let Some((_, role)) = self.lines.last_mut() {
                *role = Role::Empty;
            }
            return Role::Empty;
        }
        let joined: Vec<&str> = cells.collect();
        let role = self.entry(&joined.join(" | "), PARAGRAPH);
        self.owner = None;
        match role {
            Some(Role::Fact(id)) => {
                self.row = Some(id);
                Role::Fact(id)
            }
            _ => Role::Empty,
        }
    }

    fn finished(mut self) -> Parsed {
        let mut out = std::mem::take(&mut self.out);
        out.objective = of_lines(&self.objective).map(|text| only_item(&text));
        out.understanding = of_lines(&self.understanding);
        out.last_action = of_lines(&self.last_action);
        out.next = self
            .next
            .or_else(|| out.last_action.as_deref().and_then(next_in));
        out.decisions = self.decisions.iter().map(decision).collect();
        out.blockers = self.blockers.iter().map(blocker).collect();
        out.lines = self.lines;
        out
    }
}

/// Lines as a text without blank ones around it, if anything is left.
fn of_lines(lines: &[String]) -> Option<String> {
    let text = lines.join("\n");
    let text = text.trim_matches('\n').trim_end();
    (!text.trim().is_empty() && !is_placeholder(text)).then(|| text.to_owned())
}

/// A text of one list item is the item's.
fn only_item(text: &str) -> String {
    let item = list_item(text.trim_start()).filter(|_| !text.contains('\n'));
    item.map_or(text, |item| item.text).to_owned()
}

/// The section with this heading, and what stands behind a colon on its line.
fn titled(words: &str) -> Option<(Section, &str)> {
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
    let title = title.to_lowercase();
    TITLES
        .iter()
        .find(|(_, titles)| titles.contains(&title.as_str()))
        .map(|(section, _)| *section)
}

/// A line that is the head of a section without being a heading, and what stands behind it.
fn label(line: &str) -> Option<(Section, &str)> {
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

fn is_rejection(title: &str) -> bool {
    let title = title.to_lowercase();
    ["reject", "alternative", "ruled out", "discarded"]
        .iter()
        .any(|word| title.contains(word))
}

/// What follows "Next:" in a text, up to the end of the line.
fn next_in(text: &str) -> Option<String> {
    // Of the same length as the text, byte for byte.
    let lower = text.to_ascii_lowercase();
    let at = ["next:", "next step:", "next up:", "next**:", "next:**"]
        .iter()
        .filter_map(|mark| {
            let at = lower.find(mark)?;
            let before = text[..at].chars().next_back();
            (!before.is_some_and(char::is_alphanumeric)).then_some(at + mark.len())
        })
        .min()?;
    let rest = text[at..].lines().next()?;
    let next = rest.trim_matches(|c: char| c == '*' || c.is_whitespace());
    (!is_placeholder(next)).then(|| next.to_owned())
}

/// Whether a text only holds the place of one.
fn is_placeholder(text: &str) -> bool {
    const WORDS: [&str; 24] = [
        "",
        "empty",
        "n/a",
        "na",
        "nil",
        "no blockers",
        "no blockers yet",
        "no decisions",
        "no decisions yet",
        "no issues",
        "no known blockers",
        "no known issues",
        "no open issues",
        "none",
        "none at the moment",
        "none known",
        "none so far",
        "none yet",
        "not yet",
        "nothing",
        "nothing so far",
        "nothing yet",
        "tba",
        "tbd",
    ];
    let text = text.trim();
    let between = |open: &str, close: &str| {
        let inner = text
            .strip_prefix(open)
            .and_then(|text| text.strip_suffix(close));
        inner.is_some_and(|inner| !inner.contains(open))
    };
    let is_form = between("<", ">") || between("{{", "}}");
    if is_form || text.len() > 40 {
        return is_form;
    }
    let bare = text.trim_matches(|c: char| !c.is_alphanumeric());
    // What has no letter or figure, but is no mark of Markdown, is a word: an emoji, for one.
    if bare.is_empty() {
        return text
            .chars()
            .all(|c| c.is_ascii_punctuation() || matches!(c, '–' | '—' | '…'));
    }
    WORDS.contains(&bare.to_lowercase().as_str())
}

fn decision(entry: &Entry) -> Decision {
    let (at, text) = dated(&entry.text);
    let (text, mut reason) = split_reason(text);
    for below in &entry.below {
        let below = without_because(below);
        if !reason.is_empty() && !below.is_empty() {
            reason.push_str("; ");
        }
        reason.push_str(below);
    }
    Decision { text, reason, at }
}

/// Splits what was decided from why.
#[must_use]
pub fn split_reason(text: &str) -> (String, String) {
    let text = text.trim();
    let whole = || (unmarked(text).to_owned(), String::new());
    // `**What**: why`, and `**What**: what exactly | why`.
    if let Some((head, rest)) = text
        .strip_prefix("**")
        .and_then(|text| text.split_once("**"))
    {
        let (colon, behind) = match rest.strip_prefix(':') {
            Some(behind) => (true, behind.trim()),
            None => (head.ends_with(':'), rest.trim()),
        };
        let head = head.trim_end_matches(':').trim();
        if head.is_empty() {
            return whole();
        }
        if colon && !behind.is_empty() {
            return match split(behind) {
                Some((what, why)) if !what.is_empty() => {
                    (format!("{head}: {what}"), why.to_owned())
                }
                _ => (head.to_owned(), without_because(behind).to_owned()),
            };
        }
        if behind.is_empty() {
            return (head.to_owned(), String::new());
        }
    }
    match split(text) {
        Some((what, why)) if !what.is_empty() => (unmarked(what).to_owned(), why.to_owned()),
        _ => whole(),
    }
}

/// The parts around the first mark, of the clearest kind, that a reason follows; not within code.
fn split(text: &str) -> Option<(&str, &str)> {
    // Of the same length as the text, byte for byte.
    let lower = text.to_ascii_lowercase();
    for mark in [
        "|",
        "—",
        " – ",
        " -- ",
        " - ",
        " (because",
        " (reason:",
        " (why:",
        " because of ",
        " because",
        " reason:",
        " rationale:",
        " why:",
    ] {
        let outside = |at: &usize| text[..*at].matches('`').count() % 2 == 0;
        // "because" is a word of its own.
        let whole = |at: &usize| {
            let behind = lower[at + mark.len()..].chars().next();
            !mark.ends_with('e') || behind.is_some_and(|c| !c.is_alphanumeric())
        };
        let found = lower.match_indices(mark).map(|(at, _)| at);
        let Some(at) = found.filter(outside).find(whole) else {
            continue;
        };
        let what = text[..at].trim_end_matches([' ', ',', ';', ':', '(']);
        let mut why = without_because(&text[at + mark.len()..]);
        if mark.starts_with(" (") {
            why = why.strip_suffix(')').unwrap_or(why);
        }
        if !what.is_empty() && !why.is_empty() {
            return Some((what, why));
        }
    }
    None
}

/// A reason without the word that opens it.
fn without_because(text: &str) -> &str {
    let mut rest = text.trim_start_matches([' ', ':', '|', '(']);
    let lower = rest.to_ascii_lowercase();
    for word in ["because of ", "because", "rationale:", "reason:", "why:"] {
        if lower.starts_with(word) {
            rest = rest[word.len()..].trim_start_matches([' ', ':']);
            break;
        }
    }
    rest.trim()
}

/// A text without the marks of bold print around the whole of it.
fn unmarked(text: &str) -> &str {
    let inner = text
        .strip_prefix("**")
        .and_then(|text| text.strip_suffix("**"));
    inner
        .filter(|inner| !inner.contains("**"))
        .unwrap_or(text)
        .trim()
}

/// The date that a text begins with, and the rest: a day is its first moment, UTC.
fn dated(text: &str) -> (Option<DateTime<Utc>>, &str) {
    let bare = text.trim_start_matches(['[', '(', '*', ' ']);
    let day = bare
        .get(..10)
        .and_then(|day| NaiveDate::parse_from_str(day, "%Y-%m-%d").ok());
    let Some(day) = day else {
        return (None, text);
    };
    let mut rest = &bare[10..];
    let mut time = NaiveTime::MIN;
    for format in ["%H:%M:%S", "%H:%M"] {
        let length = if format.len() > 5 { 9 } else { 6 };
        let clock = rest.get(1..length).filter(|_| rest.starts_with([' ', 'T']));
        if let Some(Ok(found)) = clock.map(|clock| NaiveTime::parse_from_str(clock, format)) {
            (time, rest) = (found, &rest[length..]);
            rest = rest.strip_prefix('Z').unwrap_or(rest);
            break;
        }
    }
    let behind = rest.trim_start_matches([']', ')', '*', ':', '-', '–', '—', ',', ' ']);
    if behind.is_empty() || behind.len() == rest.len() {
        return (None, text);
    }
    (Some(NaiveDateTime::new(day, time).and_utc()), behind)
}

fn blocker(entry: &Entry) -> Blocker {
    let mut text = entry.text.trim();
    let mut resolved = false;
    if let Some(struck) = text
        .strip_prefix("~~")
        .and_then(|text| text.strip_suffix("~~"))
    {
        (text, resolved) = (struck, true);
    }
    for word in ["resolved", "fixed", "solved", "done"] {
        let lower = text.to_ascii_lowercase();
        if lower.starts_with(word) && text[word.len()..].starts_with(':') {
            (text, resolved) = (&text[word.len() + 1..], true);
        } else if lower.ends_with(&format!("({word})")) {
            (text, resolved) = (&text[..text.len() - word.len() - 2], true);
        }
    }
    let mut text = text.trim().to_owned();
    if !entry.below.is_empty() {
        text = format!("{text} ({})", entry.below.join("; "));
    }
    Blocker { text, resolved }
}

#[cfg(test)]
mod tests;
