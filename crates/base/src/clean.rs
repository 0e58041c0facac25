//! Makes text from outside safe to show, and text of Pitstop safe to type: the one sanitizer of each kind.
//!
//! File, branch and commit names, model names, hook fields and error texts are chosen by others. Shown raw, a control
//! character could draw over the panels, a bidirectional mark could make a name read backwards, and an invisible letter
//! could hide an instruction. Everything that ends in a panel, a log line or an emitted sequence passes here first; an
//! unsafe character is shown as an escape instead of being dropped, so that two names which differ stay different.
//! [`stripped`] is for the few texts that are handed on as text, such as a title; [`typed`] is for text that goes to the
//! hosted program as if it were typed.

use std::{borrow::Cow, fmt::Write, iter::Peekable, str::Chars};

/// Returns `text` on one line: line feeds, tabs and everything unsafe become visible escapes.
pub fn one_line(text: &str) -> Cow<'_, str> {
    cleaned(text, false)
}

/// Returns an error with all its causes, on one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        // Some errors tell their cause themselves.
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        source = cause.source();
    }
    one_line(&text).into_owned()
}

/// Returns `text` with its line feeds and tabs kept, CRLF folded to LF, and everything unsafe as visible escapes.
pub fn text(text: &str) -> Cow<'_, str> {
    cleaned(text, true)
}

/// Returns a name that need not be UTF-8, such as a path, on one line; bytes that are no UTF-8 become `\xNN`.
pub fn name(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(&one_line(chunk.valid()));
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// Returns at most `limit` characters of `text`, with everything unsafe left out.
///
/// It is for titles and notifications, which are handed on to the host terminal: an escape would be noise there.
pub fn stripped(text: &str, limit: usize) -> String {
    let mut before = None;
    let mut rest = text.chars();
    std::iter::from_fn(|| {
        let c = rest.next()?;
        let kept = joins(before, c, rest.clone().next()) || !is_unsafe(c);
        before = Some(c);
        Some(kept.then_some(c))
    })
    .flatten()
    .take(limit)
    .collect()
}

/// Returns program output without its escape sequences (CSI, OSC and the other strings, also the one-byte C1 forms) and
/// controls: LF and TAB stay, CR LF becomes LF, the text that a lone CR or a backspace takes back is left out, because
/// progress bars print a line many times.
pub fn without_escapes(text: &str) -> Cow<'_, str> {
    if !text
        .chars()
        .any(|c| c.is_control() && !matches!(c, '\n' | '\t'))
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let (mut line, mut returned) = (0, false);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' | '\u{90}'..='\u{9f}' => skip_sequence(c, &mut rest),
            '\r' => returned = true,
            '\n' => {
                out.push(c);
                (line, returned) = (out.len(), false);
            }
            '\u{8}' if out.len() > line => {
                out.pop();
            }
            c if c.is_control() && c != '\t' => {}
            c => {
                if std::mem::take(&mut returned) {
                    out.truncate(line);
                }
                out.push(c);
            }
        }
    }
    Cow::Owned(out)
}

/// Passes over the rest of a sequence that began with `first`: ESC or a C1 control.
fn skip_sequence(first: char, rest: &mut Peekable<Chars<'_>>) {
    let kind = match first {
        '\u{1b}' => {
            // An escape that is followed by a control or text from elsewhere introduces nothing.
            let Some(next) = rest.next_if(|c| matches!(c, ' '..='~')) else {
                return;
            };
            next
        }
        // The 8-bit form of `ESC X` is X + 0x40.
        c1 => char::from_u32(u32::from(c1) - 0x40).unwrap_or(' '),
    };
    match kind {
        '[' => {
            while rest.next_if(|c| matches!(c, ' '..='?')).is_some() {}
            rest.next_if(|c| matches!(c, '@'..='~'));
        }
        // The last one is a title of GNU screen.
        ']' | 'P' | 'X' | '^' | '_' | 'k' => skip_string(rest),
        // A designation, such as `ESC ( B`, has its final byte behind the intermediates.
        ' '..='/' => {
            while rest.next_if(|c| matches!(c, ' '..='/')).is_some() {}
            rest.next_if(|c| matches!(c, '0'..='~'));
        }
        _ => {}
    }
}

/// Passes over a control string. It ends at BEL, ST or any other escape; one that does not end on its line was cut, and the
/// rest is text.
fn skip_string(rest: &mut Peekable<Chars<'_>>) {
    while let Some(c) = rest.next_if(|c| !matches!(c, '\u{1b}' | '\n')) {
        if matches!(c, '\u{7}' | '\u{9c}') {
            return;
        }
    }
}

/// The sequence that ends a bracketed paste.
const PASTE_END: &str = "\u{1b}[201~";

/// Returns `text` as it may be typed or pasted into the hosted program: without the marks that end a paste, also those
/// that removing one would join, and without control characters (C0, DEL, C1) other than TAB and LF, which could be
/// taken as keys. So CR LF becomes LF. Nothing else changes.
pub fn typed(text: &str) -> String {
    if !text
        .chars()
        .any(|c| c.is_control() && !matches!(c, '\t' | '\n'))
    {
        return text.to_owned();
    }
    let mut kept = String::with_capacity(text.len());
    for c in text.chars() {
        kept.push(c);
        if kept.ends_with(PASTE_END) {
            kept.truncate(kept.len() - PASTE_END.len());
        }
    }
    kept.retain(|c| matches!(c, '\t' | '\n') || !c.is_control());
    kept
}

fn cleaned(text: &str, multiline: bool) -> Cow<'_, str> {
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut before = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let after = rest.clone().next();
        match c {
            '\n' | '\t' if multiline => out.push(c),
            '\r' if multiline && after == Some('\n') => {}
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ if joins(before, c, after) || !is_unsafe(c) => out.push(c),
            _ => out.extend(c.escape_unicode()),
        }
        before = Some(c);
    }
    if out == text {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(out)
    }
}

/// Reports whether `c` is a joiner doing its job: Persian, Indic scripts and emoji families need one between two visible
/// letters of their own; in ASCII text it only hides something.
fn joins(before: Option<char>, c: char, after: Option<char>) -> bool {
    let visible = |side: Option<char>| side.is_some_and(|c| !c.is_ascii() && !is_unsafe(c));
    matches!(c, '\u{200c}' | '\u{200d}') && visible(before) && visible(after)
}

/// Reports whether showing `c` raw can steer a terminal, reorder a line, or hide.
fn is_unsafe(c: char) -> bool {
    matches!(c,
        // C0, DEL and C1.
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Soft hyphen, grapheme joiner, Arabic letter mark, Hangul fillers, Khmer inherent vowels, Mongolian
        // selectors and separator: no ink of their own.
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{3164}' | '\u{ffa0}'
        // Zero-width characters and directional marks; line and paragraph separators, embeddings, overrides.
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        // Word joiner, invisible operators, isolates, deprecated format characters.
        | '\u{2060}'..='\u{206f}'
        // Variation selectors but the last two, which choose text or emoji form; byte order mark; annotations.
        | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
        // Controls of shorthand and of musical notation.
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        // Tags and further variation selectors: whole messages have been hidden in them.
        | '\u{e0000}'..='\u{e0fff}')
}

/// Returns the text with each letter and its accents in one character where there is one (NFC), as Claude Code's prompt box
/// does with typed or pasted text (measured with 2.1.197 and 2.1.330). It is the same text by the rules of Unicode.
pub fn composed(text: &str) -> String {
    use unicode_normalization::UnicodeNormalization as _;
    text.nfc().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cause_that_an_error_tells_itself_is_told_once() {
        #[derive(Debug, thiserror::Error)]
        enum Failed {
            #[error("cannot read it: {0}")]
            Told(#[source] std::io::Error),
            #[error("cannot read it")]
            Untold(#[source] std::io::Error),
        }
        for make in [Failed::Told, Failed::Untold] {
            let error = make(std::io::Error::other("no such disk"));
            assert_eq!(chain(&error), "cannot read it: no such disk");
        }
    }

    #[test]
    fn ordinary_text_is_borrowed_and_unchanged() {
        for plain in [
            "",
            "src/main.rs",
            "naïve café",
            "日本語",
            "👩‍👩‍👧 ⚠️",
            "می‌خواهم",
        ] {
            assert!(
                matches!(one_line(plain), Cow::Borrowed(out) if out == plain),
                "{plain:?}"
            );
        }
    }

    #[test]
    fn what_steers_a_terminal_becomes_an_escape() {
        let cases = [
            ("a\x1b[31mb", "a\\u{1b}[31mb"),
            ("bell\x07", "bell\\u{7}"),
            ("c1\u{9b}31m", "c1\\u{9b}31m"),
            ("del\x7f", "del\\u{7f}"),
            ("two\nlines\r\n\tin", "two\\nlines\\r\\n\\tin"),
            ("evil\u{202e}gpj.exe", "evil\\u{202e}gpj.exe"),
            ("iso\u{2066}late\u{2069}", "iso\\u{2066}late\\u{2069}"),
            ("pass\u{200b}word\u{200d}", "pass\\u{200b}word\\u{200d}"),
            ("\u{feff}bom", "\\u{feff}bom"),
            ("tag\u{e0041}", "tag\\u{e0041}"),
            (
                "a\u{1b}]0;x\u{7}\u{202e}\u{9b}\n",
                "a\\u{1b}]0;x\\u{7}\\u{202e}\\u{9b}\\n",
            ),
            (
                "a\u{1b}[31m\n\u{202e}b\u{9b}\u{7}é漢",
                "a\\u{1b}[31m\\n\\u{202e}b\\u{9b}\\u{7}é漢",
            ),
        ];
        for (raw, shown) in cases {
            assert_eq!(one_line(raw), shown);
        }
    }

    #[test]
    fn text_keeps_lines_and_tabs_and_nothing_else() {
        assert_eq!(text("a\tb\r\nc\nd\re\x1b"), "a\tb\nc\nd\\re\\u{1b}");
    }

    #[test]
    fn a_name_shows_bytes_that_are_no_utf8() {
        assert_eq!(name(b"ok \xff\xfe \xc3\xa9\n"), "ok \\xff\\xfe \u{e9}\\n");
    }

    #[test]
    fn stripped_text_has_no_control_nor_bidi_characters() {
        let hostile = "a\u{1b}[31mb\u{9b}c\u{202e}d\u{2066}e\u{200b}f\r\n\tg\u{7f}";
        assert_eq!(stripped(hostile, 100), "a[31mbcdefg");
        assert_eq!(stripped("👨\u{200d}👩 ok", 100), "👨\u{200d}👩 ok");
        assert_eq!(stripped(&"x".repeat(1000), 256).len(), 256);
    }

    #[test]
    fn typed_text_loses_its_controls_and_nothing_else() {
        assert_eq!(typed("a\tb\nc\r\x07\x1b[201~d\u{9b}\u{7f}"), "a\tb\ncd");
        assert_eq!(typed("a\x1b[201~b\x07\tc\r\nd\u{9b}e\u{7f}"), "ab\tc\nde");
        assert_eq!(typed("\x1b[20\x1b[201~1~x"), "x");
        assert_eq!(typed("\x1b[31m"), "[31m");
        let kept = "日本語 👨\u{200d}👩 \u{202e}\"quotes\" '`$(x)`\\ \u{feff}";
        assert_eq!(typed(kept), kept);
        let long = "é🎉\t日\n".repeat(10_000);
        assert_eq!(typed(&long), long);
    }

    #[test]
    fn output_without_its_escapes_is_what_a_person_reads() {
        for (raw, read) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\x1b[1;31mred\x1b[0m\r\nnext\r\n", "red\nnext\n"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07 end", "link end"),
            ("\x1bP1$r0m\x1b\\a\x1b(Bb\x1b=c\u{9b}32md", "abcd"),
            ("10%\r50%\r\x1b[K100%\ndone", "100%\ndone"),
            ("kept\r\n", "kept\n"),
            ("kept\r", "kept"),
            ("abc\x08\x08xy\x07", "axy"),
            ("\x1b]0;cut\nnext", "\nnext"),
            ("\x1bktitle\x1b\\$ ls\u{ab}k", "$ ls\u{ab}k"),
            ("\x1b[31", ""),
            ("\x1bé", "é"),
        ] {
            assert_eq!(without_escapes(raw), read, "{raw:?}");
        }
    }

    proptest! {
        #[test]
        fn no_control_survives_the_removal_of_escapes(raw in "(\x1b|\\[|\\]|;|m|P|\r|\n|\x07|\x08|\u{9b}|\u{9c}|é|a|1){0,60}") {
            let read = without_escapes(&raw).into_owned();
            prop_assert!(!read.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')), "{:?}", read);
            prop_assert_eq!(without_escapes(&read).into_owned(), read);
        }

        #[test]
        fn nothing_unsafe_survives_and_cleaning_twice_changes_nothing(raw in any::<String>()) {
            let line = one_line(&raw).into_owned();
            prop_assert!(!line.chars().any(char::is_control));
            let turned = line.chars().any(|c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'));
            prop_assert!(!turned);
            let again = one_line(&line).into_owned();
            prop_assert_eq!(again, line);
        }

        #[test]
        fn any_bytes_make_one_line(raw in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(!name(&raw).chars().any(char::is_control));
        }
    }

    #[test]
    fn composing_keeps_the_text() {
        assert_eq!(
            composed("nai\u{308}ve e\u{301} \u{1f469}\u{200d}\u{1f467}"),
            "naïve é \u{1f469}\u{200d}\u{1f467}"
        );
    }

    #[test]
    fn controls_without_ink_are_shown() {
        for (raw, shown) in [
            ("short\u{1bca0}hand", "short\\u{1bca0}hand"),
            ("mu\u{1d173}sic\u{1d17a}", "mu\\u{1d173}sic\\u{1d17a}"),
        ] {
            assert_eq!(one_line(raw), shown);
        }
    }
}
