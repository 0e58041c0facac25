//! The removal of a response's content.

use std::ops::Range;

use super::look::Block;
use crate::span;

/// The placeholders for a removed response; the longest that is not longer than what was removed is used.
///
/// The shorter ones are for responses such as `ok`: a trim must never make a session longer, and an empty
/// response would be refused where it is marked as an error.
pub const PLACEHOLDERS: [&str; 3] = [
    "[tool output removed by pitstop to free context; run the tool again if it is needed]",
    "[removed]",
    "-",
];

/// The most characters that an image or document counts for: about a thousand tokens, whatever its bytes.
pub(super) const ATTACHMENT_CHARACTERS: u64 = 4_000;

/// Returns the longest placeholder of at most this many characters.
pub(super) fn longest_placeholder(characters: u64) -> Option<&'static str> {
    PLACEHOLDERS
        .into_iter()
        .find(|mark| mark.len() as u64 <= characters)
}

/// The replacement of a response's content.
pub(super) struct Cut {
    /// The number of characters that it loses, less those of the placeholder.
    pub(super) wins: u64,
    pub(super) json: Vec<u8>,
}

impl Cut {
    /// Cuts the content in `value`; returns none if there is nothing in it to remove, or nothing left.
    pub(super) fn of_content(bytes: &[u8], value: Range<usize>) -> Option<Self> {
        let raw = &bytes[value.clone()];
        if raw.first() == Some(&b'"') {
            let characters = span::count_characters(raw);
            let mark = longest_placeholder(characters).filter(|_| !is_placeholder(raw))?;
            return Some(Self::new(characters, mark, &[]));
        }
        let (mut characters, mut is_gone, mut unknown) = (0, true, Vec::new());
        span::each_element(bytes, value, |element| {
            let block = Block::read_block(bytes, element.clone());
            match block.kind.as_slice() {
                b"text" => {
                    let text = block.text.map_or(&b""[..], |text| &bytes[text]);
                    characters += span::count_characters(text);
                    is_gone &= is_placeholder(text);
                }
                b"image" | b"document" | b"search_result" => {
                    characters += (element.len() as u64).min(ATTACHMENT_CHARACTERS);
                    is_gone = false;
                }
                _ => unknown.push(element),
            }
        });
        let mark = longest_placeholder(characters).filter(|_| !is_gone)?;
        let unknown: Vec<&[u8]> = unknown.into_iter().map(|block| &bytes[block]).collect();
        Some(Self::new(characters, mark, &unknown))
    }

    fn new(characters: u64, mark: &str, unknown: &[&[u8]]) -> Self {
        let json = if unknown.is_empty() {
            format!("\"{mark}\"").into_bytes()
        } else {
            let mut json = format!("[{{\"type\":\"text\",\"text\":\"{mark}\"}}").into_bytes();
            for block in unknown {
                json.push(b',');
                json.extend_from_slice(block);
            }
            json.push(b']');
            json
        };
        Self {
            wins: characters - mark.len() as u64,
            json,
        }
    }
}

fn is_placeholder(value: &[u8]) -> bool {
    let text = span::string_text(value).unwrap_or_default();
    PLACEHOLDERS.iter().any(|mark| mark.as_bytes() == &*text)
}
