//! One record as far as a trim needs to know it, with the places of the values that may change.

use std::{
    hash::{DefaultHasher, Hasher},
    ops::Range,
};

use super::cut::{ATTACHMENT_CHARACTERS, Cut};
use crate::span;

/// One record, as a link of the chain. Ids are hashes, because there are many of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) uuid: Option<Id>,
    pub(super) parent: Parent,
    pub(super) message: Option<Id>,
    pub(super) role: Role,
    pub(super) sidechain: bool,
    pub(super) characters: u32,
    /// The hash of everything that the copy must keep.
    pub(super) print: u64,
}

impl Node {
    pub(super) const fn is_message(&self) -> bool {
        matches!(self.role, Role::User | Role::Assistant) && !self.sidechain
    }

    pub(super) const fn is_in_chain(&self) -> bool {
        !self.sidechain && (self.uuid.is_some() || self.is_message())
    }
}

pub(super) type Id = std::num::NonZeroU64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Role {
    User,
    Assistant,
    Boundary,
    #[default]
    Other,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Parent {
    /// The record does not name a parent.
    #[default]
    Unsaid,
    /// The record states that it has no parent.
    Root,
    Of(Id),
}

/// A record as far as a trim needs to know it, with the places of the values that may change.
#[derive(Default)]
pub(super) struct Look {
    pub(super) kind: Vec<u8>,
    pub(super) role: Role,
    pub(super) uuid: Option<Id>,
    pub(super) parent: Parent,
    pub(super) sidechain: bool,
    pub(super) message: Option<Id>,
    /// The range of its message's content.
    content: Option<Range<usize>>,
    /// The range of its message's usage.
    pub(super) usage: Option<Range<usize>>,
    pub(super) uses: Vec<Id>,
    pub(super) results: Vec<ResultBlock>,
    pub(super) sessions: Vec<Range<usize>>,
    pub(super) copies: Vec<Range<usize>>,
    pub(super) replacements: Vec<(Id, Range<usize>)>,
    pub(super) kept: Vec<Id>,
    pub(super) segment: (Option<Id>, Option<Id>),
}

/// A `tool_result` block.
pub(super) struct ResultBlock {
    pub(super) tool: Id,
    /// The range of its content; more than one only if its key is repeated, and then the last counts.
    pub(super) contents: Vec<Range<usize>>,
}

impl Look {
    pub(super) fn read_record(bytes: &[u8]) -> Self {
        let mut look = Self::default();
        let mut subtype = Vec::new();
        let mut message = None;
        span::each_member(bytes, 0..bytes.len(), |key, value| match key {
            b"type" => look.kind = owned_text(&bytes[value]),
            b"subtype" => subtype = owned_text(&bytes[value]),
            b"uuid" => look.uuid = id_of(&bytes[value]),
            b"parentUuid" => {
                look.parent = id_of(&bytes[value]).map_or(Parent::Root, Parent::Of);
            }
            b"isSidechain" => look.sidechain = &bytes[value] == b"true",
            b"sessionId" if bytes[value.start] == b'"' => look.sessions.push(value),
            b"toolUseResult" => look.copies.push(value),
            b"message" => message = Some(value),
            b"compactMetadata" => look.take_compaction(bytes, value),
            b"replacements" => look.take_replacements(bytes, value),
            _ => {}
        });
        look.role = match (look.kind.as_slice(), subtype.as_slice()) {
            (b"user", _) => Role::User,
            (b"assistant", _) => Role::Assistant,
            (b"system", b"compact_boundary") => Role::Boundary,
            _ => Role::Other,
        };
        if look.kind != b"content-replacement" {
            look.replacements.clear();
        }
        if let Some(message) = message
            && matches!(look.role, Role::User | Role::Assistant)
        {
            look.take_message(bytes, message);
        }
        look
    }

    fn take_message(&mut self, bytes: &[u8], message: Range<usize>) {
        let mut content = None;
        span::each_member(bytes, message, |key, value| match key {
            b"id" => self.message = id_of(&bytes[value]),
            b"content" => content = Some(value),
            b"usage" => self.usage = Some(value),
            _ => {}
        });
        self.content.clone_from(&content);
        let Some(content) = content else { return };
        span::each_element(bytes, content, |element| {
            let block = Block::read_block(bytes, element);
            match block.kind.as_slice() {
                b"tool_use" => self.uses.extend(block.id),
                b"tool_result" => self.results.extend(block.tool.map(|tool| ResultBlock {
                    tool,
                    contents: block.contents,
                })),
                _ => {}
            }
        });
    }

    fn take_compaction(&mut self, bytes: &[u8], value: Range<usize>) {
        span::each_member(bytes, value, |key, value| match key {
            b"preservedMessages" => span::each_member(bytes, value, |key, value| {
                if matches!(key, b"uuids" | b"allUuids") {
                    span::each_element(bytes, value, |uuid| self.kept.extend(id_of(&bytes[uuid])));
                }
            }),
            b"preservedSegment" => span::each_member(bytes, value, |key, value| match key {
                b"headUuid" => self.segment.0 = id_of(&bytes[value]),
                b"tailUuid" => self.segment.1 = id_of(&bytes[value]),
                _ => {}
            }),
            _ => {}
        });
    }

    fn take_replacements(&mut self, bytes: &[u8], value: Range<usize>) {
        span::each_element(bytes, value, |element| {
            let (mut tool, mut text) = (None, None);
            span::each_member(bytes, element, |key, value| match key {
                b"toolUseId" => tool = id_of(&bytes[value]),
                b"replacement" if bytes[value.start] == b'"' => text = Some(value),
                _ => {}
            });
            self.replacements.extend(tool.zip(text));
        });
    }

    /// Returns the approximate number of characters that its message has for the model.
    fn count_characters(&self, bytes: &[u8]) -> u64 {
        let Some(content) = &self.content else {
            return 0;
        };
        let mut sum = span::count_characters(&bytes[content.clone()]);
        span::each_element(bytes, content.clone(), |element| {
            sum += Block::read_block(bytes, element.clone()).count_characters(bytes, element);
        });
        sum
    }

    pub(super) fn to_node(&self, bytes: &[u8]) -> Node {
        Node {
            uuid: self.uuid,
            parent: self.parent,
            message: self.message,
            role: self.role,
            sidechain: self.sidechain,
            characters: u32::try_from(self.count_characters(bytes)).unwrap_or(u32::MAX),
            print: self.fingerprint(),
        }
    }

    /// Returns the hash of everything that the copy must keep: kind, chain and pairs.
    pub(super) fn fingerprint(&self) -> u64 {
        let raw = |id: Option<Id>| id.map_or(0, Id::get);
        let mut hasher = DefaultHasher::new();
        hasher.write(&self.kind);
        hasher.write_u8(u8::from(self.sidechain));
        hasher.write_u64(raw(self.uuid));
        hasher.write_u64(match self.parent {
            Parent::Unsaid => 1,
            Parent::Root => 2,
            Parent::Of(parent) => parent.get(),
        });
        hasher.write_u64(raw(self.message));
        hasher.write_usize(self.uses.len());
        for tool in &self.uses {
            hasher.write_u64(tool.get());
        }
        for result in &self.results {
            hasher.write_u64(result.tool.get());
            hasher.write_usize(result.contents.len());
        }
        hasher.write_usize(self.sessions.len());
        hasher.finish()
    }
}

/// A block of a message's content, or of a response's.
#[derive(Default)]
pub(super) struct Block {
    pub(super) kind: Vec<u8>,
    pub(super) id: Option<Id>,
    pub(super) tool: Option<Id>,
    pub(super) text: Option<Range<usize>>,
    pub(super) contents: Vec<Range<usize>>,
}

impl Block {
    pub(super) fn read_block(bytes: &[u8], place: Range<usize>) -> Self {
        let mut block = Self::default();
        span::each_member(bytes, place, |key, value| match key {
            b"type" => block.kind = owned_text(&bytes[value]),
            b"id" => block.id = id_of(&bytes[value]),
            b"tool_use_id" => block.tool = id_of(&bytes[value]),
            b"text" => block.text = Some(value),
            b"content" => block.contents.push(value),
            _ => {}
        });
        block
    }

    /// Returns the approximate number of characters that it has for the model.
    fn count_characters(&self, bytes: &[u8], place: Range<usize>) -> u64 {
        let of = |place: &Range<usize>| match bytes[place.start] {
            b'"' => span::count_characters(&bytes[place.clone()]),
            _ => place.len() as u64,
        };
        match self.kind.as_slice() {
            b"text" => self.text.as_ref().map_or(0, of),
            b"image" | b"document" => (place.len() as u64).min(ATTACHMENT_CHARACTERS),
            b"tool_result" => self.contents.last().map_or(0, |content| {
                Cut::of_content(bytes, content.clone()).map_or_else(
                    || of(content),
                    |cut| cut.wins + cut.json.len().saturating_sub(2) as u64,
                )
            }),
            _ => place.len() as u64,
        }
    }
}

/// Returns the text of a short string value.
fn owned_text(value: &[u8]) -> Vec<u8> {
    span::string_text(value).unwrap_or_default().into_owned()
}

/// Returns the hash of an id; none if the value is not a string. The hasher's keys are fixed, so it is the same on both readings.
fn id_of(value: &[u8]) -> Option<Id> {
    let text = span::string_text(value)?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&text);
    Some(Id::new(hasher.finish()).unwrap_or(Id::MAX))
}
