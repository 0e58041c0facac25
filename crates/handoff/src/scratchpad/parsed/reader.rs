//! Reads the notes line by line.

use super::{
    super::lines::{Fences, LineKind, ListItem, heading, is_rule, list_item},
    Id, Item, Parsed, Role,
    titles::{LABEL, Section, is_rejection, section_labelled, section_titled},
    words::{is_placeholder, next_in, read_blocker, read_decision},
};

/// Returns the kind of each line, and the least indentation of the fence that it belongs to. A fence that is never closed
/// goes to the end, as it is drawn.
fn line_kinds(lines: &[&str]) -> Vec<(LineKind, usize)> {
    let mut fences = Fences::default();
    let mut begun = None;
    let mut kinds: Vec<(LineKind, usize)> = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        let kind = fences.kind(line.trim_start());
        let indent = if line.trim().is_empty() {
            usize::MAX
        } else {
            indent_of(line)
        };
        kinds.push((kind, indent));
        match (kind, begun) {
            (LineKind::Fence, None) => begun = Some(at),
            (LineKind::Fence, Some(first)) => {
                let least = kinds[first..].iter().map(|(_, indent)| *indent).min();
                for (_, indent) in &mut kinds[first..] {
                    *indent = least.unwrap_or_default();
                }
                begun = None;
            }
            _ => {}
        }
    }
    for (kind, indent) in &mut kinds[begun.unwrap_or(lines.len())..] {
        (*kind, *indent) = (LineKind::Code, 0);
    }
    kinds
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns a line without so much of its indentation; a blank of several bytes that begins within that stays.
fn unindented(line: &str, indent: usize) -> String {
    line[line.floor_char_boundary(indent)..].to_owned()
}

/// An entry of *Key Decisions* or *Blockers* as it is being read.
#[derive(Debug, Default)]
struct Entry {
    text: String,
    /// The texts that are listed below it.
    below: Vec<String>,
    /// The line of its heading, if it is one in the section: a list below it has the entries instead.
    heading: Option<usize>,
}

/// The fact that the lines below it belong to: those that are indented further.
#[derive(Clone, Copy, Debug)]
struct Owner {
    id: Id,
    indent: usize,
    /// True if a line of text goes on with it however it is indented: up to the next blank line.
    goes_on: bool,
}

/// The indentation of a paragraph: no line is below it.
const PARAGRAPH: usize = usize::MAX;

#[derive(Debug, Default)]
pub(super) struct Reader {
    out: Parsed,
    lines: Vec<(String, Role)>,
    /// The section that is open, its level, and whether a blank line ends it.
    section: Option<(Section, usize, bool)>,
    owner: Option<Owner>,
    objective: Vec<String>,
    /// True if a section *Objective* with text in it was there already.
    has_objective: bool,
    last_action: Vec<String>,
    next: Option<String>,
    decisions: Vec<Entry>,
    blockers: Vec<Entry>,
    /// The entry of the row of a table in the line before.
    row: Option<Id>,
}

impl Reader {
    pub(super) fn read(notes: &str) -> Parsed {
        // Some editors begin a file with a mark of its byte order.
        let notes = notes.strip_prefix('\u{feff}').unwrap_or(notes);
        let mut reader = Self::default();
        let lines: Vec<&str> = notes.lines().collect();
        for (line, (kind, indent)) in lines.iter().zip(line_kinds(&lines)) {
            let role = reader.take_line(line, kind, indent);
            reader.lines.push(((*line).to_owned(), role));
        }
        reader.finish()
    }

    fn take_line(&mut self, line: &str, kind: LineKind, indent: usize) -> Role {
        let text = line.trim();
        let row = self.row.take();
        if text.is_empty() {
            if let Some(owner) = &mut self.owner {
                owner.goes_on = false;
            }
            if matches!(self.section, Some((_, _, true))) {
                self.open_section(None);
            }
            self.keep_raw(line);
            return Role::Blank;
        }
        if kind != LineKind::Text {
            return self.take_code(line, indent);
        }
        if let Some((level, words)) = heading(line) {
            return self.take_heading(line, level, words);
        }
        if indent == 0
            && let Some((section, rest)) = section_labelled(text)
        {
            self.open_section(Some((section, LABEL, !rest.is_empty())));
            if rest.is_empty() {
                let known = true;
                return Role::Heading {
                    level: LABEL,
                    known,
                };
            }
            return self.take_body(rest, rest, 0, None);
        }
        if is_rule(text) {
            self.owner = None;
            return Role::Empty;
        }
        match list_item(text) {
            Some(item) if item.text.is_empty() => Role::Empty,
            Some(item) => self.list_item(line, indent, &item),
            None => self.take_body(line, text, indent, row),
        }
    }

    /// Opens a section, or none.
    fn open_section(&mut self, section: Option<(Section, usize, bool)>) {
        self.has_objective |= self.objective.iter().any(|line| !line.trim().is_empty());
        self.owner = None;
        self.section = section;
    }

    fn open_kind(&self) -> Option<Section> {
        self.section.map(|(section, ..)| section)
    }

    fn take_heading(&mut self, line: &str, level: usize, words: &str) -> Role {
        if let Some((section, rest)) = section_titled(words) {
            self.open_section(Some((section, level, false)));
            if !rest.is_empty() {
                return self.take_body(rest, rest, 0, None);
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
            self.open_section(None);
            return Role::Heading { level, known };
        }
        match self.open_kind() {
            Some(Section::Objective) if !self.has_objective => {
                self.objective.push(line.to_owned());
                Role::Fact(Id::Objective)
            }
            Some(Section::Decisions) if is_rejection(words) => {
                self.open_section(None);
                Role::Heading { level, known }
            }
            Some(Section::Decisions) => {
                let id = Id::Decision(self.decisions.len());
                self.decisions.push(Entry {
                    text: words.trim().to_owned(),
                    below: Vec::new(),
                    heading: Some(self.lines.len()),
                });
                self.set_owner(id, 0);
                Role::Fact(id)
            }
            _ => {
                self.keep_raw(line);
                Role::Heading { level, known }
            }
        }
    }

    /// Reads a line in a code fence, or a mark of one; all of a fence is indented at least so far.
    fn take_code(&mut self, line: &str, indent: usize) -> Role {
        if let Some(Owner { id, indent: of, .. }) = self.owner
            && let Id::Item(at) = id
            && indent > of
        {
            self.out.items[at].notes.push(unindented(line, of));
            return Role::Fact(id);
        }
        self.owner = None;
        if self.open_kind() == Some(Section::Objective) && !self.has_objective {
            self.objective.push(line.to_owned());
            return Role::Fact(Id::Objective);
        }
        self.keep_raw(line);
        Role::Code
    }

    /// Keeps a line of a section that is a text.
    fn keep_raw(&mut self, line: &str) {
        match self.open_kind() {
            Some(Section::Objective) if !self.has_objective && line.trim().is_empty() => {
                self.objective.push(String::new());
            }
            Some(Section::LastAction) => self.last_action.push(line.to_owned()),
            _ => {}
        }
    }

    fn list_item(&mut self, line: &str, indent: usize, item: &ListItem<'_>) -> Role {
        self.keep_raw(line);
        self.end_group();
        let section = self.open_kind();
        // The items under the heading *Next* are open, with a box or without.
        let is_outermost = self.owner.is_none_or(|owner| indent <= owner.indent);
        let open = section == Some(Section::Next) && is_outermost;
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
            self.set_owner(id, indent);
            return Role::Fact(id);
        }
        if let Some(owner) = self.owner
            && (indent > owner.indent || self.is_heading(owner.id))
        {
            match owner.id {
                Id::Item(at) => self.out.items[at]
                    .notes
                    .push(unindented(line, owner.indent)),
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
                self.add_entry(item.text, indent).unwrap_or(Role::Empty)
            }
            Some(_) if is_placeholder(item.text) => Role::Empty,
            _ => Role::Text,
        }
    }

    fn set_owner(&mut self, id: Id, indent: usize) {
        self.owner = Some(Owner {
            id,
            indent,
            goes_on: !matches!(id, Id::Item(_)),
        });
    }

    /// Reports whether a fact is a decision in a heading.
    fn is_heading(&self, id: Id) -> bool {
        matches!(id, Id::Decision(at) if self.decisions[at].heading.is_some())
    }

    /// Removes the entry of a heading in *Key Decisions* that has a list right below it: it only names a group.
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

    /// Adds an entry to the section that is open, unless it only holds a place.
    fn add_entry(&mut self, text: &str, indent: usize) -> Option<Role> {
        if is_placeholder(text) {
            return None;
        }
        let (entries, id) = match self.open_kind() {
            Some(Section::Blockers) => (&mut self.blockers, Id::Blocker as fn(usize) -> Id),
            _ => (&mut self.decisions, Id::Decision as fn(usize) -> Id),
        };
        let id = id(entries.len());
        entries.push(Entry {
            text: text.to_owned(),
            ..Entry::default()
        });
        self.set_owner(id, indent);
        Some(Role::Fact(id))
    }

    /// Reads a line that is no heading and no list item.
    fn take_body(&mut self, line: &str, text: &str, indent: usize, row: Option<Id>) -> Role {
        self.keep_raw(line);
        if let Some(owner) = self.owner
            && let Some(role) = self.continue_fact(owner, line, text, indent)
        {
            return role;
        }
        self.owner = None;
        let Some(section) = self.open_kind() else {
            return Role::Text;
        };
        if matches!(section, Section::Decisions | Section::Blockers) && text.starts_with('|') {
            return self.take_row(text, row);
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
            // Words before a list, and the quoted words of another person, are plain text.
            Section::Decisions | Section::Blockers if text.ends_with(':') => Role::Text,
            Section::Decisions | Section::Blockers if text.starts_with('>') => Role::Text,
            Section::Decisions | Section::Blockers => {
                self.add_entry(text, PARAGRAPH).unwrap_or(Role::Empty)
            }
            Section::Next if self.next.is_none() => {
                self.next = Some(text.to_owned());
                self.set_owner(Id::Next, PARAGRAPH);
                Role::Fact(Id::Next)
            }
            _ => Role::Text,
        }
    }

    /// Adds a line that goes on with the fact that the lines above it began.
    fn continue_fact(
        &mut self,
        owner: Owner,
        line: &str,
        text: &str,
        indent: usize,
    ) -> Option<Role> {
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
                .push(unindented(line, owner.indent)),
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

    /// Reads a row of a table; the line below its head takes the head back.
    fn take_row(&mut self, text: &str, before: Option<Id>) -> Role {
        let cells = text
            .split('|')
            .map(str::trim)
            .filter(|cell| !cell.is_empty());
        if cells
            .clone()
            .all(|cell| cell.chars().all(|c| matches!(c, '-' | ':')))
        {
            let is_rule = text.contains('-');
            let entries = match before.filter(|_| is_rule) {
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
        let role = self.add_entry(&joined.join(" | "), PARAGRAPH);
        self.owner = None;
        match role {
            Some(Role::Fact(id)) => {
                self.row = Some(id);
                Role::Fact(id)
            }
            _ => Role::Empty,
        }
    }

    fn finish(mut self) -> Parsed {
        let mut out = std::mem::take(&mut self.out);
        out.objective = of_lines(&self.objective).map(|text| only_item(&text));
        let last_action = of_lines(&self.last_action);
        out.next = self
            .next
            .or_else(|| last_action.as_deref().and_then(next_in));
        out.decisions = self
            .decisions
            .iter()
            .map(|one| read_decision(&one.text, &one.below))
            .collect();
        out.blockers = self
            .blockers
            .iter()
            .map(|one| read_blocker(&one.text, &one.below))
            .collect();
        out.lines = self.lines;
        out
    }
}

/// Returns lines as a text without blank ones around it, if any text is left.
fn of_lines(lines: &[String]) -> Option<String> {
    let text = lines.join("\n");
    let text = text.trim_matches('\n').trim_end();
    (!text.trim().is_empty() && !is_placeholder(text)).then(|| text.to_owned())
}

/// Returns the text of the item if a text is one list item, else the whole.
fn only_item(text: &str) -> String {
    let item = list_item(text.trim_start()).filter(|_| !text.contains('\n'));
    item.map_or(text, |item| item.text).to_owned()
}
