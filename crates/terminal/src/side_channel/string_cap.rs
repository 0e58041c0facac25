//! The gate in front of both parsers, which drops strings without end.

use memchr::memchr;

use super::ESC;

/// The longest OSC string let through, in bytes, which is the limit of tmux. The parser's own buffer has no
/// bound, so an unterminated string would grow it for ever. Strings of the other kinds (DCS, APC,
/// SOS, PM) are never buffered by the parser and need no cap.
pub(crate) const STRING_LIMIT: usize = 1 << 20;

/// The gate in front of both parsers: it drops an OSC string that grows too long, up to its end, and each `ESC k` with the
/// string after it, which neither parser knows to be a string.
///
/// `ESC k` is the title of a window of GNU screen, which prompts send because of a `TERM` that is not ours. It is not used as
/// a title: tmux takes it as a window's name and by default does not either. It is not kept, so its length needs no cap.
#[derive(Default)]
pub(crate) struct StringCap {
    state: CapState,
    length: usize,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum CapState {
    #[default]
    Outside,
    AfterEscape,
    InString,
    Dropping,
}

/// The gate's decision about the next bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Passage {
    /// The number of bytes that the gate has handled.
    pub consumed: usize,
    /// The number of these bytes, from the start, that may pass.
    pub passed: usize,
    /// True if a string was too long: after the passed bytes the parsers must forget it.
    pub overflow: bool,
    /// True if a title is dropped: after the passed bytes the parsers wait for the rest of an ESC sequence and must be reset.
    pub title: bool,
}

impl StringCap {
    /// Reports whether the next byte is outside any sequence.
    pub(crate) fn is_outside(&self) -> bool {
        self.state == CapState::Outside
    }

    /// Examines the next bytes; the caller calls again with those that were not consumed.
    pub(crate) fn next(&mut self, bytes: &[u8]) -> Passage {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match self.state {
                CapState::Outside => match memchr(ESC, rest) {
                    None => break,
                    Some(text) => {
                        at += text + 1;
                        self.state = CapState::AfterEscape;
                    }
                },
                // Nearly every sequence is of this kind.
                CapState::AfterEscape if rest[0] == b'[' => {
                    at += 1;
                    self.state = CapState::Outside;
                }
                CapState::AfterEscape if rest[0] == b'k' => {
                    self.state = CapState::Dropping;
                    return Passage {
                        consumed: at + 1,
                        passed: at,
                        title: true,
                        ..Passage::default()
                    };
                }
                CapState::AfterEscape => {
                    at += 1;
                    self.state = after_escape(rest[0]);
                    self.length = 0;
                }
                CapState::InString => {
                    let body = string_end(rest);
                    self.length += body;
                    if self.length > STRING_LIMIT {
                        self.state = CapState::Dropping;
                        return Passage {
                            consumed: at + body,
                            passed: at,
                            overflow: true,
                            ..Passage::default()
                        };
                    }
                    at += body;
                    if let Some(&end) = bytes.get(at) {
                        at += 1;
                        self.state = if end == ESC {
                            CapState::AfterEscape
                        } else {
                            CapState::Outside
                        };
                    }
                }
                // This is only reached at the start of a call, because the arms that set this state return.
                CapState::Dropping => {
                    let body = string_end(rest);
                    let end = rest.get(body);
                    if end.is_some() {
                        self.state = CapState::Outside;
                    }
                    if body == 0 && end == Some(&ESC) {
                        continue;
                    }
                    let own_end = usize::from(end.is_some_and(|&byte| byte != ESC));
                    return Passage {
                        consumed: at + body + own_end,
                        passed: at,
                        ..Passage::default()
                    };
                }
            }
        }
        Passage {
            consumed: bytes.len(),
            passed: bytes.len(),
            ..Passage::default()
        }
    }
}

/// Returns the state after ESC and this byte. Controls and bytes that the parser ignores do not change it.
fn after_escape(byte: u8) -> CapState {
    match byte {
        b']' => CapState::InString,
        0x18 | 0x1a | 0x20..=0x7e => CapState::Outside,
        _ => CapState::AfterEscape,
    }
}

/// Returns the number of bytes before the one that ends an OSC string: BEL, ESC, CAN or SUB.
fn string_end(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .position(|byte| matches!(*byte, 0x07 | 0x18 | 0x1a | ESC))
        .unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes that pass the gate, with `!` where the parsers had to forget, and `~` for a title.
    fn through_the_gate(parts: &[&[u8]]) -> Vec<u8> {
        let mut cap = StringCap::default();
        let mut out = Vec::new();
        for part in parts {
            let mut rest = *part;
            while !rest.is_empty() {
                let passage = cap.next(rest);
                out.extend_from_slice(&rest[..passage.passed]);
                if passage.overflow {
                    out.push(b'!');
                }
                if passage.title {
                    out.push(b'~');
                }
                rest = &rest[passage.consumed..];
            }
        }
        out
    }

    #[test]
    fn an_endless_string_is_dropped_up_to_its_end() {
        let block = vec![b'x'; 64 * 1024];
        for end in [b"\x1b\\".as_slice(), b"\x07", b"\x18", b"\x1a"] {
            let mut parts = vec![b"a\x1b]0;".as_slice()];
            parts.extend(std::iter::repeat_n(block.as_slice(), 1024));
            parts.extend([end, b"OK\x1b]0;t\x07".as_slice()]);
            let out = through_the_gate(&parts);
            let overflow = out
                .iter()
                .position(|&byte| byte == b'!')
                .expect("an overflow");
            assert!(overflow <= STRING_LIMIT + 8);
            let after: &[u8] = &out[overflow + 1..];
            let expected = if end[0] == ESC {
                b"\x1b\\OK\x1b]0;t\x07".as_slice()
            } else {
                b"OK\x1b]0;t\x07"
            };
            assert_eq!(after, expected);
        }
    }

    #[test]
    fn what_is_short_enough_comes_through_unchanged() {
        let long = [
            b"\x1b]52;c;".as_slice(),
            &vec![b'A'; STRING_LIMIT - 10],
            b"\x07after",
        ]
        .concat();
        assert_eq!(through_the_gate(&[&long]), long);
        let other = [
            b"\x1bP".as_slice(),
            &vec![b'A'; 3 * STRING_LIMIT],
            b"\x1b\\after",
        ]
        .concat();
        assert_eq!(through_the_gate(&[&other]), other);
        let tricky = b"\x1b\x1b]0;a\x1b]0;b\x18c\x1b(]x\x1b\x00]0;d\x07";
        for cut in 0..tricky.len() {
            assert_eq!(through_the_gate(&[&tricky[..cut], &tricky[cut..]]), tricky);
        }
    }

    #[test]
    fn a_title_of_screen_is_dropped_wherever_it_is_cut() {
        for (bytes, passed) in [
            (
                b"a\x1bktitle\x1b\\b".as_slice(),
                b"a\x1b~\x1b\\b".as_slice(),
            ),
            (b"a\x1bktitle\x07b\x1bk\x18c", b"a\x1b~b\x1b~c"),
            (b"\x1bka\x1bkb\x1b[mc", b"\x1b~\x1b~\x1b[mc"),
            (b"\x1b]0;t\x1bkx\x1b\\k", b"\x1b]0;t\x1b~\x1b\\k"),
            // These have neither an introducer nor a title sequence.
            (b"\x1b(k\x1b[kk", b"\x1b(k\x1b[kk"),
        ] {
            for cut in 0..=bytes.len() {
                let found = through_the_gate(&[&bytes[..cut], &bytes[cut..]]);
                assert_eq!(found, passed, "{bytes:?} cut at {cut}");
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(through_the_gate(&single), passed, "{bytes:?} byte by byte");
        }
    }
}
