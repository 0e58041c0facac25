//! Bytes from the terminal to keys, with the habits of Claude Code's prompt box.
//!
//! The unit is one read: a carriage return submits only when it came alone or after at most two
//! characters. Text and Enter in one write therefore do not submit, as measured with the real one.

use memchr::memmem::find;

/// The most characters before a carriage return in one read that still leave it an Enter.
const FAST_TYPING: usize = 2;

/// What a read meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// Characters to put into the prompt.
    Text(String),
    /// A bracketed paste, whole.
    Paste(String),
    /// A carriage return, whose meaning only the whole read shows.
    Return,
    /// Enter.
    Submit,
    /// A line break inside the prompt.
    Newline,
    /// Backspace.
    Backspace,
    /// Ctrl-U.
    ClearLine,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    EndOfInput,
    /// Escape alone.
    Escape,
    /// The terminal's answer to DA1.
    Attributes,
    /// The terminal's answer that it knows synchronized output.
    KnowsFrames,
}

/// Keeps what a read left unfinished: a paste, a sequence, a character.
#[derive(Debug, Default)]
pub struct Keyboard {
    rest: Vec<u8>,
    paste: Option<Vec<u8>>,
}

const PASTE_END: &[u8] = b"\x1b[201~";

impl Keyboard {
    /// Decodes one read.
    pub fn read(&mut self, bytes: &[u8]) -> Vec<Key> {
        let alone = self.rest.is_empty() && self.paste.is_none();
        let mut input = std::mem::take(&mut self.rest);
        input.extend_from_slice(bytes);
        let mut keys = Vec::new();
        let mut left = input.as_slice();
        while !left.is_empty() {
            if let Some(mut paste) = self.paste.take() {
                // The end mark may be split over two reads, so it is looked for in the whole.
                let before = paste.len().saturating_sub(PASTE_END.len() - 1);
                paste.extend_from_slice(left);
                let Some(at) = find(&paste[before..], PASTE_END) else {
                    self.paste = Some(paste);
                    break;
                };
                let end = before + at;
                let tail = paste.len() - end - PASTE_END.len();
                left = &left[left.len() - tail..];
                keys.push(Key::Paste(pasted(&paste[..end])));
                continue;
            }
            // Behind other bytes it may be the beginning of a mark that the end of the read has cut.
            let cut = left == b"\x1b" && input.len() > 1;
            let used = if cut { 0 } else { self.one(left, &mut keys) };
            if used == 0 {
                self.rest = left.to_vec();
                break;
            }
            left = &left[used..];
        }
        enter_or_newline(keys, alone)
    }

    /// Decodes one key from the front; gives the bytes used, 0 when more are needed.
    fn one(&mut self, bytes: &[u8], keys: &mut Vec<Key>) -> usize {
        let key = match bytes[0] {
            0x1b => return self.escape(bytes, keys),
            b'\r' => Key::Return,
            b'\n' => Key::Newline,
            0x03 => Key::Interrupt,
            0x04 => Key::EndOfInput,
            0x15 => Key::ClearLine,
            0x7f | 0x08 => Key::Backspace,
            0x00..0x20 if bytes[0] != b'\t' => return 1,
            _ => return text(bytes, keys),
        };
        keys.push(key);
        1
    }

    fn escape(&mut self, bytes: &[u8], keys: &mut Vec<Key>) -> usize {
        match bytes.get(1) {
            Some(b'[') => {
                let Some(end) = bytes[2..].iter().position(|b| (0x40..=0x7e).contains(b)) else {
                    // Sequences are short; anything longer is none.
                    return if bytes.len() > 64 { bytes.len() } else { 0 };
                };
                let used = end + 3;
                match &bytes[2..used] {
                    b"200~" => self.paste = Some(Vec::new()),
                    b"13;2u" | b"27;2;13~" => keys.push(Key::Newline),
                    b"13u" => keys.push(Key::Submit),
                    [b'?', .., b'c'] => keys.push(Key::Attributes),
                    // 1, 2 and 3: known; 0 and 4: not to be had.
                    [b'?', b'2', b'0', b'2', b'6', b';', b'1'..=b'3', b'$', b'y'] => {
                        keys.push(Key::KnowsFrames);
                    }
                    _ => {}
                }
                used
            }
            // A string sequence, such as the reply to XTVERSION, up to ST or BEL.
            Some(b'P' | b']' | b'_') => {
                let end = find(bytes, b"\x1b\\").map(|at| at + 2);
                end.or_else(|| find(bytes, b"\x07").map(|at| at + 1))
                    .unwrap_or(if bytes.len() > 4096 { bytes.len() } else { 0 })
            }
            Some(b'\r') => {
                keys.push(Key::Newline);
                2
            }
            Some(b'O') => bytes.len().min(3),
            // Escape alone, or before a key that has nothing to do with it.
            _ => {
                keys.push(Key::Escape);
                1
            }
        }
    }
}

/// Takes the longest run of plain characters.
fn text(bytes: &[u8], keys: &mut Vec<Key>) -> usize {
    let run = bytes
        .iter()
        .position(|b| (*b < 0x20 && *b != b'\t') || *b == 0x7f)
        .unwrap_or(bytes.len());
    let valid = match std::str::from_utf8(&bytes[..run]) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        // Half a character at the end of a read waits for the rest; a bad byte is passed over.
        Err(error) => return usize::from(error.error_len().is_some() || run < bytes.len()),
    };
    keys.push(Key::Text(valid.to_owned()));
    valid.len()
}

/// A paste as the prompt box keeps it: line feeds only, a tab as four spaces.
fn pasted(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .replace("\r\n", "\n")
        .replace('\r', "\n")
        .replace('\t', "    ")
}

/// Turns an Enter that came with more text in the same read into a line break.
fn enter_or_newline(keys: Vec<Key>, alone: bool) -> Vec<Key> {
    let characters: usize = keys
        .iter()
        .map(|key| match key {
            Key::Text(text) | Key::Paste(text) => text.chars().count().max(1),
            _ => 0,
        })
        .sum();
    let pasted = keys.iter().any(|key| matches!(key, Key::Paste(_)));
    let submits = !alone || (characters <= FAST_TYPING && !pasted);
    let meant = |key| match key {
        Key::Return if submits => Key::Submit,
        Key::Return => Key::Newline,
        key => key,
    };
    keys.into_iter().map(meant).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(reads: &[&[u8]]) -> Vec<Key> {
        let mut keyboard = Keyboard::default();
        reads
            .iter()
            .flat_map(|bytes| keyboard.read(bytes))
            .collect()
    }

    fn text(text: &str) -> Key {
        Key::Text(text.into())
    }

    #[test]
    fn pastes_in_pieces_stay_whole_wherever_a_read_is_cut() {
        let bytes = b"\x1b[200~one\x1b[201~\x1b[200~two\x1b[201~";
        let whole = ["one", "two"].map(|text| Key::Paste(text.to_owned()));
        for at in 2..bytes.len() {
            let (first, second) = bytes.split_at(at);
            assert_eq!(read(&[first, second]), whole, "{at}");
        }
        assert_eq!(read(&[b"\x1b", b"x"])[0], Key::Escape);
    }

    #[test]
    fn enter_counts_alone_and_after_two_characters_only() {
        assert_eq!(read(&[b"hello", b"\r"]), [text("hello"), Key::Submit]);
        assert_eq!(read(&[b"hi\r"]), [text("hi"), Key::Submit]);
        assert_eq!(read(&[b"hello\r"]), [text("hello"), Key::Newline]);
        let paste = Key::Paste("a".into());
        assert_eq!(
            read(&[b"\x1b[200~a\x1b[201~\r"]),
            [paste.clone(), Key::Newline]
        );
        assert_eq!(
            read(&[b"\x1b[200~a\x1b[201~", b"\r"]),
            [paste.clone(), Key::Submit]
        );
        // In the form of the kitty protocol it cannot be taken for anything else.
        let form = b"\x1b[200~a\x1b[201~\x1b[13u";
        assert_eq!(read(&[form]), [paste, Key::Submit]);
    }

    #[test]
    fn every_way_to_break_a_line_is_known() {
        for newline in [b"\n".as_slice(), b"\x1b[13;2u", b"\x1b[27;2;13~", b"\x1b\r"] {
            assert_eq!(read(&[newline]), [Key::Newline], "{newline:?}");
        }
    }

    #[test]
    fn a_paste_in_pieces_is_one_paste() {
        let whole = b"\x1b[200~a\tb\r\n\x1b[Z\xc3\xa9\x1b[201~x";
        for cut in 1..whole.len() - 1 {
            let keys = read(&[&whole[..cut], &whole[cut..]]);
            let pastes: Vec<_> = keys
                .iter()
                .filter(|key| matches!(key, Key::Paste(_)))
                .collect();
            // A cut inside the first ESC makes it the Escape key, as for any terminal program.
            if cut > 1 {
                assert_eq!(
                    pastes,
                    [&Key::Paste("a    b\n\x1b[Z\u{e9}".into())],
                    "cut at {cut}"
                );
            }
        }
    }

    #[test]
    fn answers_of_the_terminal_are_not_text() {
        let keys = read(&[b"\x1bP>|kit(1)\x1b\\\x1b[?62;4c\x1b[?2026;2$y"]);
        assert_eq!(keys, [Key::Attributes, Key::KnowsFrames]);
        assert_eq!(
            read(&[b"\x1b[?2026;0$y", b"\x1b[A", b"\x1bOA", b"\x1b[I"]),
            []
        );
    }

    proptest! {
        #[test]
        fn no_bytes_in_any_pieces_panic(reads in proptest::collection::vec(
            proptest::collection::vec(any::<u8>(), 0..24), 0..6)) {
            let mut keyboard = Keyboard::default();
            for bytes in reads {
                keyboard.read(&bytes);
            }
        }
    }
}
