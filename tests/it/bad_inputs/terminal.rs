//! What a program may write to its terminal.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use pitstop_terminal::{
    Modes, PaneSize,
    screen::{Screen, ScreenFact},
};

use super::{Item, cuttings, item, outcomes, shown};
use crate::fuzz::checks::{replies, stage};

const SIZE: (u16, u16) = (20, 5);

/// More than a string may be long, one of which the parser keeps.
const TOO_LONG: usize = 1_100_000;

/// Stands for a resize between bytes; no item uses it otherwise.
const RESIZE: u8 = 0xff;

#[test]
fn whatever_a_program_writes_the_screen_goes_on() {
    insta::assert_snapshot!("bad_terminal", outcomes(&items(), outcome));
}

#[test]
fn every_control_at_every_place_in_a_sequence_does_what_is_stated() {
    insta::assert_snapshot!("bad_controls", outcomes(&controls(), outcome));
}

#[test]
fn a_resize_in_the_middle_of_a_sequence_harms_nothing() {
    insta::assert_snapshot!("bad_resizes", outcomes(&resizes(), resized));
}

/// Feeds a screen and no more.
pub(super) fn at_once(input: &[u8]) {
    let mut screen = screen();
    screen.feed(input, Instant::now());
    screen.take_replies();
}

fn screen() -> Screen {
    Screen::new(PaneSize::new(SIZE.0, SIZE.1), 50)
}

/// What the screen shows and says in the end, the same however the bytes come.
fn outcome(input: &[u8]) -> String {
    let whole = fed(input, &[input]);
    for pieces in cuttings(input) {
        let found = fed(input, &pieces);
        assert!(found == whole, "in pieces: {found}\nat once: {whole}");
    }
    whole
}

fn fed(sent: &[u8], pieces: &[&[u8]]) -> String {
    let mut screen = screen();
    let now = Instant::now();
    for piece in pieces {
        screen.feed(piece, now);
    }
    end(screen, sent, now)
}

/// The same with resizes in between.
fn resized(input: &[u8]) -> String {
    let mut screen = screen();
    let now = Instant::now();
    for (count, piece) in input.split(|byte| *byte == RESIZE).enumerate() {
        if count > 0 {
            let wide = u16::from(count % 2 == 0);
            screen.resize(PaneSize::new(7 + 13 * wide, 2 + 3 * wide));
        }
        screen.feed(piece, now);
    }
    end(screen, input, now)
}

/// What is left in the end; and the screen takes text again.
fn end(mut screen: Screen, sent: &[u8], now: Instant) -> String {
    screen.expire(now + Duration::from_secs(1));
    let cursor = screen.cursor();
    let size = screen.size();
    assert!(cursor.column < size.columns() && cursor.row < size.rows());
    let answers = screen.take_replies();
    replies::these(&answers, sent);
    let mut reported = format!("{:?} at {},{}", text(&screen), cursor.column, cursor.row);
    let modes = Modes {
        alternate_scroll: true,
        ..Modes::default()
    };
    if screen.modes() != modes {
        write!(reported, " modes {}", changed(&modes, &screen.modes())).unwrap();
    }
    for reply in answers.iter().take(2) {
        write!(
            reported,
            " answers {}",
            shown(&String::from_utf8_lossy(reply))
        )
        .unwrap();
    }
    if answers.len() > 2 {
        write!(reported, " and {} more", answers.len() - 2).unwrap();
    }
    let facts = stage::facts(&mut screen);
    assert!(facts.len() <= 256);
    for fact in facts.iter().take(2) {
        let fact = match fact {
            ScreenFact::ClipboardStore(text) => format!("copies {}", shown(text)),
            fact => shown(&format!("{fact:?}")).replace("\\\"", "'"),
        };
        write!(reported, " · {fact}").unwrap();
    }
    if facts.len() > 2 {
        write!(reported, " · {} more", facts.len() - 2).unwrap();
    }
    screen.resize(PaneSize::new(SIZE.0, SIZE.1));
    screen.feed(b"\x18\x1b\\\x1bcalive", now);
    screen.expire(now + Duration::from_secs(1));
    assert_eq!(screen.text().trim_end(), "alive");
    reported
}

/// The screen's lines, the long ones cut.
fn text(screen: &Screen) -> String {
    let text = screen.text();
    let text = text.trim_end();
    let start: String = text.chars().take(60).collect();
    if start.len() < text.len() {
        format!("{start}…")
    } else {
        start
    }
}

/// The modes that are not as they were.
fn changed(before: &Modes, after: &Modes) -> String {
    let [before, after] = [before, after].map(|modes| format!("{modes:?}"));
    let before: Vec<&str> = before.split(", ").collect();
    let differs = after.split(", ").filter(|one| !before.contains(one));
    differs
        .map(|one| one.trim_matches(['{', '}', ' ']))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Each C0 and C1 control at each place where a parser can be.
pub(super) fn controls() -> Vec<Item> {
    const PLACES: [(&str, &str, &str); 17] = [
        ("in text", "ab", "cd"),
        ("behind ESC", "ab\x1b", "cd"),
        ("in an escape", "ab\x1b(", "Bcd"),
        ("behind CSI", "ab\x1b[", "1mcd"),
        ("in numbers", "ab\x1b[3", "1mcd"),
        ("behind a semicolon", "ab\x1b[3;", "1mcd"),
        ("in a private CSI", "ab\x1b[?20", "04hcd"),
        ("in an intermediate", "ab\x1b[1 ", "qcd"),
        ("in a CSI that is wrong", "ab\x1b[1<", "2mcd"),
        ("in an OSC", "ab\x1b]2;ti", "tle\x07cd"),
        ("in an OSC's number", "ab\x1b]", "2;title\x07cd"),
        ("in a DCS", "ab\x1bP", "$qm\x1b\\cd"),
        ("in a DCS's text", "ab\x1bP$q", "m\x1b\\cd"),
        ("in a DCS of no kind", "ab\x1bP1;2x", "m\x1b\\cd"),
        ("in an APC", "ab\x1b_G", "a=q\x1b\\cd"),
        ("in a PM or SOS", "ab\x1b^x\x1b\\\x1bX", "a\x1b\\cd"),
        ("in half a character", "ab\u{e9}", "cd"),
    ];
    let mut all = Vec::new();
    for (place, before, after) in PLACES {
        let mut before = before.as_bytes().to_vec();
        if place.starts_with("in half") {
            before.pop();
        }
        let mut add = |name: String, control: &[u8]| {
            all.push(item(
                name,
                [&before[..], control, after.as_bytes()].concat(),
            ));
        };
        for byte in (0..0x20).chain([0x7f]) {
            add(format!("{byte:02x} {place}"), &[byte]);
        }
        for code in 0x80..0xa0_u8 {
            add(
                format!("U+{code:02x} {place}"),
                char::from(code).to_string().as_bytes(),
            );
            // Half of a character is made whole by some of them.
            add(format!("byte {code:02x} {place}"), &[code]);
        }
    }
    all
}

pub(super) fn items() -> Vec<Item> {
    let mut all = long_sequences();
    all.extend(strings());
    all.extend(extensions());
    all.extend(numbers());
    all.extend(stacks());
    all.extend(text_that_is_none());
    all
}

/// Sequences with too many parameters, or too long ones.
fn long_sequences() -> Vec<Item> {
    let mut all = Vec::new();
    for end in ["m", "H", "J", "r", "h"] {
        for count in [16, 17, 33, 1_000, 20_000] {
            let numbers = vec!["1"; count].join(";");
            all.push(item(
                format!("{count} numbers before {end}"),
                format!("ab\x1b[{numbers}{end}cd"),
            ));
        }
    }
    for (name, middle) in [
        ("semicolons", ";".repeat(5_000)),
        ("colons", ":".repeat(5_000)),
        ("subparameters", format!("38{}", ":2".repeat(5_000))),
        ("digits", "9".repeat(5_000)),
        ("zeros before a number", format!("{}31", "0".repeat(5_000))),
        ("spaces", " ".repeat(5_000)),
        (
            "intermediates of all kinds",
            " !\"#$%&'()*+,-./".repeat(300),
        ),
        ("private marks", "?".repeat(5_000)),
        ("marks mixed", "<=>?".repeat(1_000)),
    ] {
        all.push(item(
            format!("{name} in a CSI"),
            format!("ab\x1b[{middle}mcd"),
        ));
        all.push(item(
            format!("{name} in a DCS"),
            format!("ab\x1bP{middle}q\x1b\\cd"),
        ));
    }
    all.push(item(
        "escapes in a row",
        format!("ab{}cd", "\x1b".repeat(5_000)),
    ));
    all.push(item(
        "designations in a row",
        format!("ab\x1b{}Bcd", "(".repeat(5_000)),
    ));
    all.push(item(
        "a CSI in each CSI",
        format!("ab{}mcd", "\x1b[1;".repeat(2_000)),
    ));
    all
}

/// Strings that are too long, do not end, or end otherwise.
fn strings() -> Vec<Item> {
    let too_long = format!("{}\x1b\\cd", "x".repeat(TOO_LONG));
    let long = "x".repeat(100_000);
    let rests: [(&str, &[u8]); 10] = [
        ("of 1.1 MB", too_long.as_bytes()),
        ("without an end", long.as_bytes()),
        ("ended by CAN", b"short\x18cd\x1b\\"),
        ("ended by SUB", b"short\x1acd\x1b\\"),
        ("ended by ESC c", b"short\x1bccd\x1b\\"),
        ("ended by a CSI", b"short\x1b[mcd\x1b\\"),
        ("ended by BEL", b"short\x07cd\x1b\\"),
        ("in bad UTF-8", b"\xc3\x28\xff\xfe\xf0\x9f\x1b\\cd"),
        ("with line feeds", b"one\r\ntwo\nthree\x1b\\cd"),
        ("with NUL", b"one\0two\x1b\\cd"),
    ];
    let mut all = Vec::new();
    for (name, start) in [
        ("title", "\x1b]2;"),
        ("OSC of no kind", "\x1b]4242;"),
        ("DCS", "\x1bP1$q"),
        ("APC", "\x1b_G"),
        ("PM", "\x1b^"),
        ("SOS", "\x1bX"),
        ("GNU screen's title", "\x1bk"),
    ] {
        for (how, rest) in rests {
            let input = [b"ab", start.as_bytes(), rest].concat();
            all.push(item(format!("{name} {how}"), input));
        }
    }
    all.push(item(
        "a title of invisible letters",
        format!(
            "\x1b]2;{}\x07ok",
            "\u{200b}\u{202e}\u{2066}\u{feff}".repeat(100)
        ),
    ));
    all.push(item(
        "a title of marks that join",
        format!("\x1b]2;e{}\x07ok", "\u{301}".repeat(5_000)),
    ));
    all.push(item(
        "10 000 titles",
        format!("{}ok", "\x1b]2;a\x07\x1b]2;b\x07".repeat(5_000)),
    ));
    all.push(item("a title in a title", "\x1b]2;one\x1b]2;two\x07ok"));
    all.push(item(
        "a title that is a sequence",
        "\x1b]2;[31m]52;c;aGk=\x07ok",
    ));
    all.push(item("an icon name", "\x1b]1;icon\x07ok"));
    all.push(item(
        "a title that is asked back",
        "\x1b]2;rm -rf ~\x07\x1b[21tok",
    ));
    all
}

/// Links, clipboard, progress, notifications, marks of shells.
fn extensions() -> Vec<Item> {
    let long = "x".repeat(3_000);
    let cases: [(&str, &str); 69] = [
        ("a link without an address", "8;;"),
        ("a link without a part", "8"),
        ("a link with one part", "8;"),
        ("a link of another scheme", "8;;javascript:alert(1)"),
        ("a link to a file elsewhere", "8;;file://evil/etc/passwd"),
        ("a link that is too long", &format!("8;;https://a/{long}")),
        (
            "a link with an id that is too long",
            &format!("8;id={long};https://a/"),
        ),
        ("a link with a key of no kind", "8;id=1:x=y:=:;https://a/"),
        ("a link with a space", "8;;https://a/b c"),
        ("a link in other letters", "8;;https://a/é日"),
        ("a link with a semicolon", "8;;https://a/b;c"),
        ("a link with escapes", "8;;https://a/%1b%0a%00"),
        ("a clipboard that is read", "52;c;?"),
        ("a clipboard of no base64", "52;c;***"),
        ("a clipboard with half a base64", "52;c;aGk"),
        ("a clipboard of nothing", "52;c;"),
        ("a clipboard without a text", "52;c"),
        ("a clipboard of all kinds", "52;cpqs01234567;aGk="),
        ("a clipboard of no kind", "52;zz;aGk="),
        ("a clipboard with a control", "52;c;G1tBYQ=="),
        ("a clipboard of no UTF-8", "52;c;/////w=="),
        ("a clipboard of NULs", "52;c;AAAA"),
        ("progress without a number", "9;4"),
        ("progress with nothing", "9;4;"),
        ("progress of no kind", "9;4;9;50"),
        ("progress beyond its end", "9;4;1;101"),
        ("progress below its start", "9;4;1;-1"),
        ("progress of a huge number", "9;4;1;99999999999999999999"),
        ("progress of a fraction", "9;4;1;1.5"),
        ("progress with too much", "9;4;1;50;60;70"),
        ("progress in letters", "9;4;one;fifty"),
        ("a notification of nothing", "9;"),
        ("a notification that is too long", &format!("9;{long}")),
        ("a notification with controls", "9;a\x01b\x08c\x0bd"),
        (
            "a notification from right to left",
            "9;\u{202e}evil\u{2066}",
        ),
        ("777 without a heading", "777;notify"),
        ("777 of no kind", "777;preexec"),
        ("777 with semicolons", "777;notify;a;b;c;d"),
        ("99 without a payload", "99;"),
        ("99 with keys of no kind", "99;i=1:zz=2:=:p=;text"),
        ("99 of half a message", "99;i=1:d=0;half"),
        ("99 in base64 that is none", "99;e=1;***"),
        ("99 that asks", "99;i=1:p=?;"),
        ("a mark of no kind", "133;Z"),
        ("a mark without a letter", "133;"),
        ("a mark without a part", "133"),
        ("a mark with an exit code of text", "133;D;ok"),
        ("a mark with a huge exit code", "133;D;99999999999999999999"),
        ("a mark with a negative exit code", "133;D;-1"),
        ("a mark with more", "133;A;cl=m;aid=1;\u{200b}"),
        ("a directory elsewhere", "7;file://evil/tmp"),
        ("a directory that is none", "7;/tmp"),
        ("a colour of no number", "4;x;#000"),
        ("a colour beyond all", "4;256;#000"),
        ("a colour of no value", "4;1;red"),
        ("half a colour", "4;1"),
        ("2 000 colours", &format!("4{}", ";1;#010203".repeat(2_000))),
        (
            "2 000 questions for colours",
            &format!("4{}", ";1;?".repeat(2_000)),
        ),
        ("a background that is none", "11;rgb:zz/zz/zz"),
        ("a cursor colour of five parts", "12;rgb:1/2/3/4/5"),
        ("colours set back beyond all", "104;256;999;x;"),
        ("an OSC of no number", "x;y"),
        ("an OSC of a huge number", "99999999999999999999;y"),
        ("an OSC of nothing", ""),
        ("an OSC of semicolons", &";".repeat(3_000)),
        ("an OSC of a negative number", "-1;y"),
        ("an image of iTerm", &format!("1337;File=inline=1:{long}")),
        ("a command of VS Code", "633;E;rm -rf ~;nonce"),
        ("a font", "50;#9999"),
    ];
    let ends = [("", "\x07"), (" to ST", "\x1b\\")];
    let mut all = Vec::new();
    for (name, body) in cases {
        for (how, end) in ends {
            all.push(item(
                format!("{name}{how}"),
                format!("ab\x1b]{body}{end}cd"),
            ));
        }
    }
    all.push(item(
        "a link that is never closed",
        "\x1b]8;;https://a/\x1b\\text",
    ));
    all.push(item(
        "5 000 links",
        (0..5_000).fold(String::new(), |all, n| {
            all + &format!("\x1b]8;;https://a/{n}\x1b\\x")
        }),
    ));
    all.push(item("1 000 notifications", "\x1b]9;hey\x07".repeat(1_000)));
    all.push(item("1 000 bells", "\x07".repeat(1_000)));
    all
}

/// Numbers that are huge, reversed or missing.
fn numbers() -> Vec<Item> {
    let mut all = Vec::new();
    for end in "ABCDEFGHIJKLMPSTXZ@`abdefgrs".chars() {
        for number in ["0", "65535", "65536", "4294967296", "99999999999999999999"] {
            all.push(item(
                format!("{number} before {end}"),
                format!("ab\x1b[{number}{end}cd"),
            ));
        }
    }
    for (name, text) in [
        ("margins reversed", "\x1b[4;2rab\r\ncd"),
        ("margins alike", "\x1b[3;3rab\r\ncd"),
        ("margins beyond", "\x1b[9;99rab\r\ncd"),
        ("margins of nothing", "\x1b[0;0rab\r\ncd"),
        ("margins huge", "\x1b[1;65535rab\r\ncd"),
        (
            "margins left and right reversed",
            "\x1b[?69h\x1b[9;3sab\r\ncd",
        ),
        ("margins left and right alike", "\x1b[?69h\x1b[3;3sab\r\ncd"),
        (
            "margins left and right beyond",
            "\x1b[?69h\x1b[50;99sab\r\ncd",
        ),
        ("the origin in no margins", "\x1b[?6h\x1b[9;9Hab\x1b[?6lcd"),
        (
            "a scroll in reversed margins",
            "\x1b[4;2r\x1b[99S\x1b[99Tab",
        ),
        (
            "lines inserted outside of margins",
            "\x1b[2;3r\x1b[5H\x1b[9L\x1b[9Mab",
        ),
        ("a repetition of nothing", "\x1b[5bab"),
        ("a repetition without end", "a\x1b[4294967295b"),
        ("a repetition of half a character", "e\u{301}\x1b[3b"),
        ("a repetition of a wide one", "日\x1b[30b"),
        ("a repetition behind a control", "a\r\x1b[3b"),
        (
            "repetitions of repetitions",
            "ab\x1b[9999b\x1b[9999b\x1b[9999b",
        ),
        ("a window of 0", "\x1b[8;0;0tab"),
        ("a window without end", "\x1b[8;65535;65535tab"),
        (
            "a window that is moved",
            "\x1b[3;9;9t\x1b[1t\x1b[2t\x1b[9;1tab",
        ),
        ("132 columns", "\x1b[?40h\x1b[?3hab\x1b[?3l"),
        ("tabs cleared of no kind", "\x1b[9g\tab"),
        ("no tabs", "\x1b[3g\tab"),
        ("5 000 tabs", "\t\t\t\t\t\t\t\t\t\tab\x1b[5000I\x1b[5000Z"),
        ("a rectangle reversed", "ab\x1b[65;5;9;1;2$x"),
        ("a rectangle beyond", "ab\x1b[65;1;1;9999;9999$x"),
        ("a rectangle of a control", "ab\x1b[7;1;1;2;2$x"),
        ("a rectangle copied onto itself", "ab\x1b[1;1;9;9;1;1;1;1$v"),
        ("a checksum of all", "ab\x1b[1;1;1;1;9999;9999*y"),
        ("columns inserted beyond", "ab\x1b[9999'}\x1b[9999'~"),
        (
            "colours of half a kind",
            "\x1b[38mab\x1b[38;5mcd\x1b[38;2;1mef",
        ),
        ("colours beyond", "\x1b[38;5;999mab\x1b[38;2;999;999;999mcd"),
        (
            "colours by colons of half a kind",
            "\x1b[38:2mab\x1b[38::mcd\x1b[58:9:1m",
        ),
        ("an underline of no kind", "\x1b[4:9mab\x1b[4:mcd"),
        ("a cursor of no shape", "\x1b[99 qab"),
        ("modes of no kind", "\x1b[?99999hab\x1b[99999hcd"),
        (
            "modes saved and never set",
            "\x1b[?1s\x1b[?99r\x1b[?2004rab",
        ),
        ("a mode that is asked", "\x1b[?65535$p\x1b[65535$pab"),
        ("a report of no kind", "\x1b[99n\x1b[?99nab"),
        ("a terminal of no level", "\x1b[99;9\"pab"),
        ("kitty keys beyond", "\x1b[>9999u\x1b[=9999;9u\x1b[<9999uab"),
        ("modifyOtherKeys beyond", "\x1b[>4;99mab"),
        ("capabilities of no hex", "\x1bP+qzz;;54;\x1b\\ab"),
        ("settings of no kind", "\x1bP$qzz\x1b\\ab"),
        ("a sixel", "\x1bPq#0;2;0;0;0~~@@vv\x1b\\ab"),
        ("a soft font", "\x1bP1;1;1{ @~~~\x1b\\ab"),
        (
            "a macro that runs itself",
            "\x1bP1;0;1!z1b5b312a7a\x1b\\\x1b[1*zab",
        ),
        ("an answer-back", "\x05ab"),
    ] {
        all.push(item(name, text));
    }
    all
}

/// Stacks that only grow, or are emptied too often.
fn stacks() -> Vec<Item> {
    let many = |text: &str| text.repeat(2_000);
    [
        ("titles pushed", many("\x1b]2;t\x07\x1b[22t")),
        ("titles popped", many("\x1b[23t")),
        ("keys pushed", many("\x1b[>1u")),
        ("keys popped", many("\x1b[<1u")),
        ("cursors saved", many("\x1b7\x1b[s")),
        ("cursors restored", many("\x1b8\x1b[u")),
        ("colours pushed", many("\x1b[#P")),
        ("colours popped", many("\x1b[#Q")),
        ("attributes pushed", many("\x1b[#{")),
        ("attributes popped", many("\x1b[#}")),
        ("screens changed", many("\x1b[?1049h\x1b[?1049l")),
        ("screens entered", many("\x1b[?1049h\x1b[?47h\x1b[?1047h")),
        ("screens left", many("\x1b[?1049l\x1b[?47l")),
        ("frames begun", many("\x1b[?2026h")),
        ("frames ended", many("\x1b[?2026l")),
        (
            "a frame that is never ended",
            format!("\x1b[?2026h{}", many("line\r\n")),
        ),
        ("questions", many("\x1b[6n\x1b[c\x1b[>q\x1b[?u")),
        ("resets", many("\x1bc\x1b[!p")),
        ("alignment patterns", "\x1b#8".repeat(50)),
        ("the whole erased", many("\x1b[2J\x1b[3J\x1b[H")),
        (
            "character sets shifted",
            many("\x0e\x0f\x1bn\x1bo\x1b|\x1b}\x1b~\x1bN\x1bO"),
        ),
    ]
    .map(|(name, text)| item(format!("2 000 {name}"), format!("ab{text}cd")))
    .into()
}

/// Bad UTF-8, and clusters that are too long.
fn text_that_is_none() -> Vec<Item> {
    let mut all = Vec::new();
    let bad: [(&str, &[u8]); 18] = [
        ("a lone follower", b"\xb0"),
        ("two lone followers", b"\xbf\xbf"),
        ("an overlong slash", b"\xc0\xaf"),
        ("an overlong NUL", b"\xc0\x80"),
        ("an overlong ESC", b"\xc0\x9b"),
        ("an overlong of three", b"\xe0\x80\xaf"),
        ("an overlong of four", b"\xf0\x80\x80\xaf"),
        ("half a surrogate", b"\xed\xa0\x80"),
        ("two surrogates", b"\xed\xa0\xbd\xed\xb8\x80"),
        ("beyond Unicode", b"\xf4\x90\x80\x80"),
        ("of five bytes", b"\xf8\x88\x80\x80\x80"),
        ("of six bytes", b"\xfc\x84\x80\x80\x80\x80"),
        ("FE and FF", b"\xfe\xff"),
        ("a character cut by text", b"\xe6\x97a"),
        ("a character cut by ESC", b"\xe6\x97\x1b[1m"),
        ("a character cut by a line feed", b"\xf0\x9f\x98\n"),
        ("a mark of byte order", b"\xef\xbb\xbf"),
        ("no character", b"\xef\xbf\xbe"),
    ];
    for (name, bytes) in bad {
        all.push(item(name, [b"ab", bytes, b"cd"].concat()));
        all.push(item(
            format!("{name} at the edge"),
            [&b"\x1b[1;20H"[..], bytes, b"cd"].concat(),
        ));
    }
    for (name, text) in [
        ("64 joiners", format!("👩{}", "\u{200d}👩".repeat(64))),
        (
            "64 joiners and nothing",
            format!("👩{}", "\u{200d}".repeat(64)),
        ),
        ("64 marks on a letter", format!("e{}", "\u{301}".repeat(64))),
        (
            "5 000 marks on a letter",
            format!("e{}", "\u{301}".repeat(5_000)),
        ),
        ("marks on nothing", "\u{301}".repeat(64)),
        ("joiners on nothing", "\u{200d}".repeat(64)),
        (
            "64 variations",
            format!("⚠{}", "\u{fe0f}\u{fe0e}".repeat(32)),
        ),
        ("65 halves of flags", "🇩".repeat(65)),
        ("64 tones of skin", format!("👋{}", "\u{1f3fd}".repeat(64))),
        (
            "tags without an end",
            format!("🏴{}", "\u{e0067}".repeat(64)),
        ),
        ("Hangul in parts", "\u{1100}\u{1161}\u{11a8}".repeat(30)),
        (
            "letters from right to left",
            "\u{202e}abc\u{202c}\u{2066}d\u{2069}".to_owned(),
        ),
        (
            "no-break and zero widths",
            "\u{a0}\u{200b}\u{feff}\u{2060}ab".to_owned(),
        ),
        ("private letters", "\u{e000}\u{f8ff}\u{10fffd}".to_owned()),
        (
            "separators of lines",
            "a\u{2028}b\u{2029}c\u{85}d".to_owned(),
        ),
        ("a wide one in the last column", "\x1b[1;20H日b".to_owned()),
        ("half of a wide one overwritten", "日\x1b[1;2Hx".to_owned()),
        (
            "a cluster across a line",
            format!("\x1b[1;19H{}", "👩\u{200d}👩".repeat(3)),
        ),
        ("a mark in a new line", "a\r\n\u{301}b".to_owned()),
        (
            "Zalgo",
            "Z\u{351}\u{36b}\u{343}a\u{34e}\u{331}l\u{34b}g\u{322}o\u{338}".to_owned(),
        ),
    ] {
        all.push(item(name, text));
    }
    all
}

/// Sequences cut by a resize at every place.
pub(super) fn resizes() -> Vec<Item> {
    let mut all = Vec::new();
    for (name, text) in [
        ("a colour", &b"ab\x1b[38;2;1;2;3mcd"[..]),
        ("a move", b"ab\x1b[3;19Hcd"),
        ("a title", b"\x1b]2;title\x07cd"),
        ("a question", b"\x1bP$qm\x1b\\cd"),
        ("a frame", b"\x1b[?2026hab\x1b[?2026lcd"),
        ("another screen", b"ab\x1b[?1049hcd\x1b[?1049l"),
        ("margins", b"\x1b[2;4rab\r\ncd\x1b[r"),
        ("a wide character", "\x1b[1;19H日月".as_bytes()),
        ("a cluster", "👩\u{200d}👩".as_bytes()),
    ] {
        for place in 1..text.len() {
            let input = [&text[..place], &[RESIZE], &text[place..]].concat();
            all.push(item(format!("{name} at {place}"), input));
        }
        let all_places: Vec<u8> = text.iter().flat_map(|byte| [*byte, RESIZE]).collect();
        all.push(item(format!("{name} at every place"), all_places));
    }
    all
}
