//! Bytes to replies: every reply is one of a few forms filled with our own numbers.

use std::time::Instant;

use pitstop_terminal::{ColourScheme, HostPalette, PaneSize, Rgb, screen::Screen};

use super::Input;

/// The forms of a reply: `#` is a number, `@` a version, `&` numbers with `;` and `:`, `%` a colour's part of four hexadecimal digits.
const FORMS: [&str; 26] = [
    "\x1b[?62;22c",
    "\x1b[>1;100;0c",
    "\x1bP!|00000000\x1b\\",
    "\x1bP>|pitstop(@)\x1b\\",
    "\x1b[0n",
    "\x1b[#;#R",
    "\x1b[?#;#R",
    "\x1b[#;#$y",
    "\x1b[?#;#$y",
    "\x1b[?#u",
    "\x1b[>4;#m",
    "\x1b[?997;#n",
    "\x1b[4;#;#t",
    "\x1b[6;#;#t",
    "\x1b[8;#;#t",
    "\x1bP0+r\x1b\\",
    "\x1bP1+r544E=787465726D2D323536636F6C6F72\x1b\\",
    "\x1bP1+r6E616D65=787465726D2D323536636F6C6F72\x1b\\",
    "\x1bP1+r436F=323536\x1b\\",
    "\x1bP1+r636F6C6F7273=323536\x1b\\",
    "\x1bP1+r524742=382F382F38\x1b\\",
    "\x1bP0$r\x1b\\",
    "\x1bP1$r&m\x1b\\",
    "\x1bP1$r# q\x1b\\",
    "\x1b]#;rgb:%/%/%",
    "\x1b]4;#;rgb:%/%/%",
];

/// Feeds a screen of any size and looks at its replies and at what it shows.
pub fn check(data: &[u8]) {
    let mut input = Input(data);
    let size = PaneSize::new(u16::from(input.byte()), u16::from(input.byte() % 64));
    let seed = input.byte();
    let mut screen = Screen::new(size, 20);
    if seed & 1 == 1 {
        screen.set_palette(HostPalette {
            background: Some(Rgb(seed, 2, 3)),
            ..HostPalette::default()
        });
        screen.set_colour_scheme(ColourScheme::Light);
    }
    let now = Instant::now();
    for piece in input.pieces(seed) {
        screen.feed(piece, now);
        these(&screen.take_replies(), input.0);
        super::stage::facts(&mut screen);
    }
}

/// The replies to what has been sent.
pub fn these(replies: &[Vec<u8>], sent: &[u8]) {
    for reply in replies {
        let shown = reply.escape_ascii();
        let form = FORMS.iter().find(|form| is_of(form.as_bytes(), reply));
        let form = form.unwrap_or_else(|| panic!("a reply of no known form: {shown}"));
        assert!(
            !reply
                .iter()
                .any(|byte| matches!(byte, b'\r' | b'\n' | 0x80..))
        );
        // What the form itself spells was not taken from the sender.
        let own = form.contains("pitstop") || form.contains("+r") || form.contains("rgb:");
        assert!(
            own || !reflects(reply, sent),
            "a reply repeats the sender: {shown}"
        );
    }
}

/// Whether a reply has the form.
fn is_of(form: &[u8], reply: &[u8]) -> bool {
    let some = |mark: fn(&u8) -> bool| reply.iter().take_while(|byte| mark(byte)).count();
    match form.split_first() {
        // An OSC ends as its question did.
        None => matches!(reply, b"" | b"\x07" | b"\x1b\\"),
        Some((b'#', form)) => {
            let digits = some(u8::is_ascii_digit);
            (1..=9).contains(&digits) && is_of(form, &reply[digits..])
        }
        Some((b'@', form)) => {
            let version = some(|byte| matches!(byte, b'.' | b'0'..=b'9'));
            version > 0 && is_of(form, &reply[version..])
        }
        Some((b'&', form)) => {
            let numbers = some(|byte| matches!(byte, b'0'..=b';'));
            numbers > 0 && is_of(form, &reply[numbers..])
        }
        Some((b'%', form)) => {
            some(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) == 4 && is_of(form, &reply[4..])
        }
        Some((byte, form)) => reply.first() == Some(byte) && is_of(form, &reply[1..]),
    }
}

/// Whether four letters in a row stand in both.
fn reflects(reply: &[u8], sent: &[u8]) -> bool {
    let letters = reply
        .windows(4)
        .filter(|run| run.iter().all(u8::is_ascii_alphabetic));
    letters
        .into_iter()
        .any(|run| memchr::memmem::find(sent, run).is_some())
}
