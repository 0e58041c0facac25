//! The first reading: it finds the responses that are in the context window.

use std::collections::{HashMap, HashSet};

use super::{
    CHARACTERS_PER_TOKEN, Response, Survey, TrimError,
    cut::Cut,
    look::{Id, Look, Node, Parent, Role},
};
use crate::{
    Tokens,
    content::{Block, each_block},
    human,
    record::{self, Record},
    usage::context_of,
};

/// The state that is gathered while a transcript is read for the first time.
#[derive(Default)]
pub(super) struct Reading {
    nodes: Vec<Node>,
    uses: Vec<(Id, u32)>,
    results: Vec<Found>,
    /// The number of characters that a cut of the client's own text in place of a response wins, by its call.
    replaced: HashMap<Id, u64>,
    boundary: Option<Boundary>,
    /// The last figure for the context window and the record that gave it.
    context: Option<(Tokens, u32)>,
    model: Option<String>,
    too_large: bool,
}

/// A block of a response.
struct Found {
    tool: Id,
    record: u32,
    /// The number of characters that its removal wins; none if there is nothing to remove.
    wins: Option<u64>,
}

/// The last compaction, and the earlier records that it kept.
struct Boundary {
    record: u32,
    kept: HashSet<Id>,
    segment: Option<(Id, Id)>,
}

impl Reading {
    pub(super) fn take_record(&mut self, bytes: &[u8]) {
        let Ok(record) = u32::try_from(self.nodes.len()) else {
            self.too_large = true;
            return;
        };
        let look = Look::read_record(bytes);
        if !look.sidechain {
            self.take_main(bytes, &look, record);
        }
        self.nodes.push(look.to_node(bytes));
    }

    fn take_main(&mut self, bytes: &[u8], look: &Look, record: u32) {
        match look.role {
            Role::Boundary => {
                self.boundary = Some(Boundary {
                    record,
                    kept: look.kept.iter().copied().collect(),
                    segment: look.segment.0.zip(look.segment.1),
                });
                // The figure from before the compaction is void.
                self.context = None;
            }
            Role::Assistant => {
                let uses = look.uses.iter().map(|&tool| (tool, record));
                self.uses.extend(uses);
                self.take_usage(bytes, record);
            }
            Role::User | Role::Other => {}
        }
        let is_reply = holds_reply(bytes, look);
        self.results.extend(look.results.iter().map(|result| {
            Found {
                tool: result.tool,
                record,
                wins: result
                    .contents
                    .last()
                    .filter(|_| !is_reply)
                    .and_then(|content| Cut::of_content(bytes, content.clone()))
                    .map(|cut| cut.wins),
            }
        }));
        for (tool, value) in &look.replacements {
            let cut = Cut::of_content(bytes, value.clone());
            self.replaced.insert(*tool, cut.map_or(0, |cut| cut.wins));
        }
    }

    fn take_usage(&mut self, bytes: &[u8], record: u32) {
        record::each_record(bytes, &mut |said| {
            let Record::Assistant(said) = said else {
                return;
            };
            let Some(usage) = context_of(&said) else {
                return;
            };
            self.context = Some((usage.context(), record));
            if said.model.as_deref() != self.model.as_deref() {
                self.model = said.model.map(|model| model.chars().take(200).collect());
            }
        });
    }

    pub(super) fn finish(self) -> Result<Survey, TrimError> {
        if self.too_large {
            return Err(TrimError::TooLarge);
        }
        if !self.nodes.iter().any(Node::is_message) {
            let records = self.nodes.len();
            return Err(TrimError::Empty { records });
        }
        let mut inside = self.mark_chain();
        self.add_parallel_calls(&mut inside);
        let calls: HashSet<Id> = self
            .uses
            .iter()
            .filter(|(_, record)| inside[*record as usize])
            .map(|(tool, _)| *tool)
            .collect();
        let first = self.first_record();
        let results: Vec<&Found> = self
            .results
            .iter()
            .filter(|result| {
                let at = result.record as usize;
                inside[at] || (at >= first && calls.contains(&result.tool))
            })
            .collect();
        for result in &results {
            inside[result.record as usize] = true;
        }
        let unpaired = results
            .iter()
            .filter(|result| !calls.contains(&result.tool));
        let characters: u64 = self
            .nodes
            .iter()
            .zip(&inside)
            .filter(|(_, inside)| **inside)
            .map(|(node, _)| u64::from(node.characters))
            .sum();
        let messages = number_messages(&self.nodes, &inside);
        Ok(Survey {
            unpaired: unpaired.count(),
            responses: self.list_responses(&results, &messages),
            messages: messages.last().map_or(0, |last| last + 1),
            context: self.context.map(|(tokens, _)| tokens),
            last_call: self.context.map(|(_, record)| record),
            estimate: Tokens(characters / CHARACTERS_PER_TOKEN),
            model: self.model,
            nodes: self.nodes,
            end: 0,
            dropped_tail: 0,
            oversized: 0,
        })
    }

    /// Returns the first record behind the last compaction.
    fn first_record(&self) -> usize {
        self.boundary
            .as_ref()
            .map_or(0, |boundary| boundary.record as usize + 1)
    }

    /// Marks the records on the way from the last message back to the root or to the last compaction, and those
    /// that the compaction kept.
    fn mark_chain(&self) -> Vec<bool> {
        let first = self.first_record();
        let mut inside = vec![false; self.nodes.len()];
        let by_uuid: HashMap<Id, usize> = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.is_in_chain())
            .filter_map(|(at, node)| Some((node.uuid?, at)))
            .collect();
        let earlier = self.earlier_links(first);
        let mut eldest: HashMap<Id, usize> = HashMap::new();
        for (at, node) in self.nodes.iter().enumerate().skip(first) {
            if let (true, Parent::Of(parent)) = (node.is_in_chain(), node.parent) {
                eldest.entry(parent).or_insert(at);
            }
        }
        let mut next = (first..self.nodes.len())
            .rev()
            .find(|&at| self.nodes[at].is_message());
        while let Some(at) = next.filter(|&at| !inside[at]) {
            inside[at] = true;
            next = match self.nodes[at].parent {
                Parent::Root => None,
                Parent::Of(parent) => match by_uuid.get(&parent) {
                    Some(&found) => Some(found).filter(|&found| found >= first),
                    // The parent was lost, or is in another session's file: what came before it in this one
                    // is the best guess. Of several records with that parent the earlier ones were rewound.
                    None => earlier[eldest.get(&parent).copied().unwrap_or(at)],
                },
                Parent::Unsaid => earlier[at],
            };
        }
        if let Some(boundary) = &self.boundary {
            self.add_kept(boundary, &by_uuid, &mut inside);
        }
        inside
    }

    /// Returns for every record the last one before it that is a link of the chain; none before `first`.
    fn earlier_links(&self, first: usize) -> Vec<Option<usize>> {
        let mut last = None;
        let links = self.nodes.iter().enumerate().map(|(at, node)| {
            let here = last;
            if at >= first && node.is_in_chain() {
                last = Some(at);
            }
            here
        });
        links.collect()
    }

    fn add_kept(&self, boundary: &Boundary, by_uuid: &HashMap<Id, usize>, inside: &mut [bool]) {
        for uuid in &boundary.kept {
            if let Some(&at) = by_uuid.get(uuid) {
                inside[at] = true;
            }
        }
        let ends = boundary
            .segment
            .and_then(|(head, tail)| by_uuid.get(&head).copied().zip(by_uuid.get(&tail).copied()));
        if let Some((head, tail)) = ends.filter(|(head, tail)| head <= tail) {
            for (node, inside) in self.nodes.iter().zip(inside).take(tail + 1).skip(head) {
                *inside |= node.is_in_chain();
            }
        }
    }

    /// Marks the further records of marked messages: with parallel calls not all records of a message are on the chain.
    fn add_parallel_calls(&self, inside: &mut [bool]) {
        let first = self.first_record();
        let said: HashSet<Id> = self
            .nodes
            .iter()
            .zip(&*inside)
            .filter(|(node, inside)| **inside && node.role == Role::Assistant)
            .filter_map(|(node, _)| node.message)
            .collect();
        for (node, inside) in self.nodes.iter().zip(inside).skip(first) {
            let beside = node.message.is_some_and(|message| said.contains(&message));
            *inside |= beside && node.is_message() && node.role == Role::Assistant;
        }
    }

    /// Returns the responses in the context that hold anything, in order.
    fn list_responses(&self, results: &[&Found], messages: &[usize]) -> Vec<Response> {
        let mut responses: Vec<Response> = Vec::new();
        let mut known: HashMap<Id, usize> = HashMap::new();
        for result in results {
            let Some(wins) = result.wins else { continue };
            // A response after the last call is not in its figure, so nothing of the figure can be won with it.
            let counts = self
                .context
                .is_none_or(|(_, record)| result.record < record);
            let wins = match self.replaced.get(&result.tool) {
                Some(_) if known.contains_key(&result.tool) => 0,
                Some(&sent_instead) => sent_instead,
                None => wins,
            };
            let at = *known.entry(result.tool).or_insert_with(|| {
                responses.push(Response {
                    tool: result.tool,
                    records: Vec::new(),
                    wins: 0,
                    message: 0,
                });
                responses.len() - 1
            });
            let response = &mut responses[at];
            response.records.push(result.record);
            response.wins += if counts { wins } else { 0 };
            response.message = messages[result.record as usize];
        }
        responses
    }
}

/// Reports whether a record holds a reply to a call. The client writes each result into a record of its own.
fn holds_reply(bytes: &[u8], look: &Look) -> bool {
    let may_hold = !look.results.is_empty() && human::may_hold_reply(bytes);
    let parsed = may_hold.then(|| record::parsed_records(bytes));
    parsed.into_iter().flatten().any(|record| {
        let is_reply = |block: Block<'_>| match block {
            Block::Result(result) => human::is_reply(&record, result),
            _ => false,
        };
        each_block(&record["message"]["content"]).any(is_reply)
    })
}

/// Returns the number of the message that each record belongs to, counting those of the context.
///
/// The records of one answer are one message, and so are consecutive records of the user.
fn number_messages(nodes: &[Node], inside: &[bool]) -> Vec<usize> {
    let mut count = 0_usize;
    let mut last: Option<&Node> = None;
    let numbers = nodes.iter().zip(inside).map(|(node, inside)| {
        if *inside && node.is_message() {
            let same = last.is_some_and(|last| match (last.role, node.role) {
                (Role::User, Role::User) => true,
                (Role::Assistant, Role::Assistant) => {
                    node.message.is_some() && node.message == last.message
                }
                _ => false,
            });
            count += usize::from(!same);
            last = Some(node);
        }
        count.saturating_sub(1)
    });
    numbers.collect()
}
