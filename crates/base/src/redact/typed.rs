//! Masks the secrets in typed text, which comes key by key.
//!
//! A secret shows its shape only as a whole, so typed text is held until its line is over:
//!
//! ```text
//!   e x p o r t ␣ T O K E N = … ── held ──▶ Enter ──▶ the line, masked
//! ```
//!
//! Secrets are searched in the line as its correction keys leave it, and in all that was typed. Keys that move the cursor
//! are not followed.

use super::{Secret, mask, secrets};

/// The most text that is held, in bytes: beyond it the line is returned as far as it goes.
const HELD: usize = 64 * 1024;

/// The marks around a paste.
const PASTE: (&str, &str) = ("\u{1b}[200~", "\u{1b}[201~");

/// The holder of typed text.
#[derive(Debug, Default)]
pub struct Typed {
    held: String,
}

impl Typed {
    /// Adds typed text; returns the lines that are over, masked.
    pub fn add(&mut self, text: &str) -> Option<String> {
        self.held.push_str(text);
        let over = self.held.len() > HELD || is_over(&self.held);
        over.then(|| self.finish()).flatten()
    }

    /// Returns the text that is held, masked.
    pub fn finish(&mut self) -> Option<String> {
        let held = std::mem::take(&mut self.held);
        (!held.is_empty()).then(|| masked(&held))
    }
}

/// Reports whether no later text can belong to a secret in it.
fn is_over(text: &str) -> bool {
    let Some(line) = text.strip_suffix(['\r', '\n']) else {
        return false;
    };
    let count = |needle: &str| text.matches(needle).count();
    !line.ends_with('\\') && count(PASTE.0) <= count(PASTE.1) && count("PRIVATE KEY-----") % 2 == 0
}

/// Returns a line with its secrets masked.
fn masked(raw: &str) -> String {
    let mut found = Vec::new();
    for corrected in [true, false] {
        let view = View::of(raw, corrected);
        found.extend(secrets(&view.text).into_iter().map(|one| view.raw(&one)));
    }
    mask(raw, super::apart(found)).into_owned()
}

/// The characters of the typed text, and the place of each in it.
#[derive(Default)]
struct View {
    text: String,
    /// The places where the character of each byte of `text` begins and ends in the raw text.
    places: Vec<(usize, usize)>,
}

impl View {
    fn of(raw: &str, corrected: bool) -> Self {
        let mut view = Self::default();
        let mut at = 0;
        while let Some(c) = raw[at..].chars().next() {
            let end = at + c.len_utf8();
            at = match c {
                '\u{1b}' => {
                    let (end, key) = escape(raw, at);
                    if let Some(key) = key {
                        view.push(key, at, end);
                    }
                    end
                }
                '\u{7f}' | '\u{8}' if corrected => {
                    view.pop();
                    end
                }
                '\r' | '\n' => {
                    view.push('\n', at, end);
                    end
                }
                c if c.is_control() && c != '\t' => end,
                c => {
                    view.push(c, at, end);
                    end
                }
            };
        }
        view
    }

    fn push(&mut self, c: char, begin: usize, end: usize) {
        self.text.push(c);
        self.places.resize(self.text.len(), (begin, end));
    }

    fn pop(&mut self) {
        self.text.pop();
        self.places.truncate(self.text.len());
    }

    /// Returns a secret of this view at its place in the raw text.
    fn raw(&self, secret: &Secret) -> Secret {
        let place = |at: usize| self.places.get(at).copied().unwrap_or_default();
        Secret {
            range: place(secret.range.start).0..place(secret.range.end.saturating_sub(1)).1,
            kind: secret.kind,
        }
    }
}

/// Returns the byte offset behind the escape sequence at `at`, and the character of the key that it reports, if it reports one:
/// `CSI 97 u` reports `a`.
fn escape(raw: &str, at: usize) -> (usize, Option<char>) {
    let bytes = raw.as_bytes();
    let next = |at: usize| raw[at..].chars().next().map_or(at, |c| at + c.len_utf8());
    match bytes.get(at + 1) {
        Some(b'[') => {
            let parameters = at + 2;
            let is_final = |byte: &u8| (0x40..=0x7e).contains(byte);
            let Some(length) = bytes[parameters..].iter().position(is_final) else {
                return (raw.len(), None);
            };
            let last = parameters + length;
            let code = raw.get(parameters..last).unwrap_or_default();
            let code = code.split([';', ':']).next().unwrap_or_default();
            let key = code.parse().ok().and_then(char::from_u32);
            let key = key.filter(|key| bytes[last] == b'u' && !key.is_control());
            (last + 1, key)
        }
        Some(b'O') => (next(at + 2), None),
        Some(_) => (next(at + 1), None),
        None => (at + 1, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types keys one by one, and returns all text given in the end.
    fn typed(text: &str) -> String {
        let mut typed = Typed::default();
        let mut out = String::new();
        for c in text.chars() {
            out.extend(typed.add(c.encode_utf8(&mut [0; 4])));
        }
        out.extend(typed.finish());
        out
    }

    #[test]
    fn a_secret_that_is_typed_key_by_key_is_masked() {
        for line in [
            "export DB_PASSWORD=wintermute7\r",
            "PGPASSWORD=wintermute7 psql\r",
            "mysql -u root -pwintermute7 shop\r",
            "export DB_PASSWORD=wintr\u{7f}ermute7\r",
            "DB_PASSWORD=wintermute7\u{15}ls\r",
            "\u{1b}[200~DB_PASSWORD=winter\u{1b}[Dmute7\u{1b}[201~\r",
            "docker login \\\r -p wintermute7\r",
            "DB_PASSWORD=wintermute7",
        ] {
            let out = typed(line);
            assert!(!out.contains("mute7"), "{out:?}");
            assert!(out.contains(super::super::MASK), "{out:?}");
        }
        let codes = "DB_PASSWORD=wintermute7\n".chars().map(u32::from);
        let keys: Vec<String> = codes.map(|code| format!("\u{1b}[{code}u")).collect();
        assert!(!typed(&keys.concat()).contains("\u{1b}[109u\u{1b}[117u"));
    }

    #[test]
    fn a_private_key_is_held_over_its_lines() {
        let body = "MIIEvQIBADANBgkqhkiG9w0\rQwErTy12QwErTy12";
        let text = format!("-----BEGIN PRIVATE KEY-----\r{body}\r-----END PRIVATE KEY-----\rls\r");
        let out = typed(&text);
        assert!(!out.contains("QwErTy12"), "{out:?}");
        assert!(out.ends_with("-----END PRIVATE KEY-----\rls\r"), "{out:?}");
    }

    #[test]
    fn what_is_no_secret_is_given_as_it_was_typed() {
        for text in [
            "ls -la\rcd ..\r",
            "é\u{1b}[A\u{1b}OP\u{1b}x\u{1b}[1;2R\u{3}\u{7f}",
            "\u{1b}",
            "\u{1b}[",
            "\u{1b}é",
            "\u{1b}Oé",
            "",
        ] {
            assert_eq!(typed(text), text);
        }
    }

    #[test]
    fn a_line_without_an_end_is_not_held_for_ever() {
        let mut typed = Typed::default();
        let mut given = 0;
        for _ in 0..HELD {
            given += typed.add("ab").map_or(0, |text| text.len());
            assert!(typed.held.len() <= HELD);
        }
        assert!(given > HELD / 2);
    }

    proptest::proptest! {
        #[test]
        fn any_keys_are_taken(pieces in proptest::collection::vec("(\u{1b}|\\[|\\d|;|u|O|~|\u{7f}|\r|é|DB_PASSWORD=|[a-z]{1,4}|\\\\|PRIVATE KEY-----){0,6}", 0..12)) {
            let mut typed = Typed::default();
            for piece in &pieces {
                let _ = typed.add(piece);
            }
            let _ = typed.finish();
        }
    }
}
