//! Tests of the exact replies, modes, frames, facts and bounds of the emulated terminal.

#![allow(
    clippy::disallowed_methods,
    reason = "any instant will do as the first one"
)]

use std::{collections::BTreeMap, sync::LazyLock};

use proptest::prelude::*;

use super::engine::{FACT_LIMIT, LINK_COUNT, ZERO_WIDTH_LIMIT};
use super::feeding::FRAME_LIMIT;
use super::*;
use crate::{MouseTracking, Rgb};

/// The current time, which does not advance unless a test advances it.
static NOW: LazyLock<Instant> = LazyLock::new(Instant::now);

fn screen(columns: u16, rows: u16) -> Screen {
    Screen::new(PaneSize::new(columns, rows), 10_000)
}

fn feed(screen: &mut Screen, bytes: impl AsRef<[u8]>) {
    screen.feed(bytes.as_ref(), *NOW);
}

fn replies(screen: &mut Screen, bytes: impl AsRef<[u8]>) -> Vec<String> {
    feed(screen, bytes);
    let replies = screen.take_replies();
    replies
        .into_iter()
        .map(|reply| String::from_utf8(reply).unwrap())
        .collect()
}

/// Returns this many numbered lines.
fn counted(prefix: &str, lines: usize) -> String {
    (0..lines)
        .flat_map(|line| [prefix.to_owned(), line.to_string(), "\r\n".to_owned()])
        .collect()
}

/// Returns the replies of a fresh 80×24 screen.
fn answer(bytes: &str) -> Vec<String> {
    replies(&mut screen(80, 24), bytes)
}

fn facts(bytes: impl AsRef<[u8]>) -> Vec<ScreenFact> {
    let mut screen = screen(80, 24);
    feed(&mut screen, bytes);
    screen.take_facts()
}

#[test]
#[allow(
    clippy::too_many_lines,
    reason = "a test is one sequence from beginning to end"
)]
fn every_question_has_its_exact_answer() {
    let table = [
        ("\x1b[c", "\x1b[?62;22c"),
        ("\x1b[0c", "\x1b[?62;22c"),
        ("\x1b[>c", "\x1b[>1;100;0c"),
        ("\x1b[=c", "\x1bP!|00000000\x1b\\"),
        ("\x1b[>q", "\x1bP>|pitstop(0.1.0)\x1b\\"),
        ("\x1b[>0q", "\x1bP>|pitstop(0.1.0)\x1b\\"),
        ("\x1b[5n", "\x1b[0n"),
        ("\x1b[6n", "\x1b[1;1R"),
        ("\x1b[5;7H\x1b[6n", "\x1b[5;7R"),
        ("\x1b[5;7H\x1b[?6n", "\x1b[?5;7R"),
        ("\x1b[3;9r\x1b[?6h\x1b[2;4H\x1b[6n", "\x1b[2;4R"),
        ("\x1b[?2026$p", "\x1b[?2026;2$y"),
        ("\x1b[?2026h\x1b[?2026$p", "\x1b[?2026;1$y"),
        ("\x1b[?2027$p", "\x1b[?2027;3$y"),
        ("\x1b[?2031$p", "\x1b[?2031;2$y"),
        ("\x1b[?2031h\x1b[?2031$p", "\x1b[?2031;1$y"),
        ("\x1b[?1004$p", "\x1b[?1004;2$y"),
        ("\x1b[?1004h\x1b[?1004$p", "\x1b[?1004;1$y"),
        ("\x1b[?2004$p", "\x1b[?2004;2$y"),
        ("\x1b[?2004h\x1b[?2004$p", "\x1b[?2004;1$y"),
        ("\x1b[?25$p", "\x1b[?25;1$y"),
        ("\x1b[?25l\x1b[?25$p", "\x1b[?25;2$y"),
        ("\x1b[?9999$p", "\x1b[?9999;0$y"),
        ("\x1b[?1h\x1b[?1$p", "\x1b[?1;1$y"),
        ("\x1b[?7$p", "\x1b[?7;1$y"),
        ("\x1b[?9h\x1b[?9$p", "\x1b[?9;1$y"),
        ("\x1b[?1000h\x1b[?1000$p", "\x1b[?1000;1$y"),
        ("\x1b[?1002h\x1b[?1002$p", "\x1b[?1002;1$y"),
        ("\x1b[?1003h\x1b[?1003$p", "\x1b[?1003;1$y"),
        ("\x1b[?1006h\x1b[?1006$p", "\x1b[?1006;1$y"),
        ("\x1b[?1007$p", "\x1b[?1007;1$y"),
        ("\x1b[?1049h\x1b[?1049$p", "\x1b[?1049;1$y"),
        ("\x1b[?47h\x1b[?47$p", "\x1b[?47;1$y"),
        ("\x1b[4$p", "\x1b[4;2$y"),
        ("\x1b[4h\x1b[4$p", "\x1b[4;1$y"),
        ("\x1b[20$p", "\x1b[20;2$y"),
        ("\x1b[99$p", "\x1b[99;0$y"),
        ("\x1b]10;?\x07", "\x1b]10;rgb:d8d8/d8d8/d8d8\x07"),
        ("\x1b]11;?\x1b\\", "\x1b]11;rgb:1212/1212/1212\x1b\\"),
        ("\x1b]12;?\x07", "\x1b]12;rgb:d8d8/d8d8/d8d8\x07"),
        (
            "\x1b]11;#ff8000\x07\x1b]11;?\x07",
            "\x1b]11;rgb:ffff/8080/0000\x07",
        ),
        ("\x1b]4;1;?\x07", "\x1b]4;1;rgb:cdcd/0000/0000\x07"),
        ("\x1b]4;196;?\x07", "\x1b]4;196;rgb:ffff/0000/0000\x07"),
        ("\x1b]4;255;?\x07", "\x1b]4;255;rgb:eeee/eeee/eeee\x07"),
        ("\x1b[?u", "\x1b[?0u"),
        ("\x1b[>5u\x1b[?u", "\x1b[?5u"),
        ("\x1b[?4m", "\x1b[>4;0m"),
        ("\x1b[>4;2m\x1b[?4m", "\x1b[>4;2m"),
        ("\x1b[>4;2m\x1b[>4m\x1b[?4m", "\x1b[>4;0m"),
        ("\x1b[?996n", "\x1b[?997;1n"),
        ("\x1b[14t", "\x1b[4;384;640t"),
        ("\x1b[16t", "\x1b[6;16;8t"),
        ("\x1b[18t", "\x1b[8;24;80t"),
        (
            "\x1bP+q544e\x1b\\",
            "\x1bP1+r544E=787465726D2D323536636F6C6F72\x1b\\",
        ),
        ("\x1bP+q436f\x1b\\", "\x1bP1+r436F=323536\x1b\\"),
        ("\x1bP+q524742\x1b\\", "\x1bP1+r524742=382F382F38\x1b\\"),
        ("\x1bP+q666f6f\x1b\\", "\x1bP0+r\x1b\\"),
        ("\x1bP+qzz\x1b\\", "\x1bP0+r\x1b\\"),
        ("\x1bP$qm\x1b\\", "\x1bP1$r0m\x1b\\"),
        (
            "\x1b[1;3;4:3;7;38;2;1;2;3;48;5;200m\x1bP$qm\x1b\\",
            "\x1bP1$r0;1;3;4:3;7;38:2::1:2:3;48:5:200m\x1b\\",
        ),
        ("\x1b[31;102m\x1bP$qm\x1b\\", "\x1bP1$r0;31;102m\x1b\\"),
        ("\x1bP$q q\x1b\\", "\x1bP1$r2 q\x1b\\"),
        ("\x1b[5 q\x1bP$q q\x1b\\", "\x1bP1$r5 q\x1b\\"),
        ("\x1bP$qz\x1b\\", "\x1bP0$r\x1b\\"),
        ("\x1b[?6h\x1b[?6$p", "\x1b[?6;1$y"),
        ("\x1b[5$p", "\x1b[5;4$y"),
        ("\x1b[3;9r\x1b[?6h\x1b[2;4H\x1b[6n", "\x1b[2;4R"),
    ];
    for (question, expected) in table {
        assert_eq!(answer(question), [expected], "{question:?}");
    }
}

#[test]
fn dangerous_questions_get_nothing() {
    for question in [
        "\x1b]0;evil\x07\x1b[21t",
        "\x1b]0;evil\x07\x1b[20t",
        "\x1b]52;c;?\x07",
        "\x05",
        "\x1b]50;?\x07",
        "\x1b[?999n",
        "\x1bPevil\x1b\\",
        "\x1b_Gi=1;AAAA\x1b\\",
        "\x1b^x\x1b\\\x1bXx\x1b\\",
        "\x1b[1c",
        "\x1b[=99c",
        // The screen is not read back, except by the runner of a conformance suite.
        "secret\x1b[1;1;1;1;1;6*y",
    ] {
        assert_eq!(answer(question), Vec::<String>::new(), "{question:?}");
    }
}

#[test]
fn replies_come_in_the_order_of_the_questions() {
    let questions = "\x1b[>0q\x1b[c\x1b[6nab\x1b[6n\x1b[>q\x1b[?996n\x1b[5n\x1bP$qm\x1b\\\x1b[?u\x1b[16t\x1b[18t";
    let expected = [
        "\x1bP>|pitstop(0.1.0)\x1b\\",
        "\x1b[?62;22c",
        "\x1b[1;1R",
        "\x1b[1;3R",
        "\x1bP>|pitstop(0.1.0)\x1b\\",
        "\x1b[?997;1n",
        "\x1b[0n",
        "\x1bP1$r0m\x1b\\",
        "\x1b[?0u",
        "\x1b[6;16;8t",
        "\x1b[8;24;80t",
    ];
    assert_eq!(answer(questions), expected);
    for cut in 0..questions.len() {
        let mut screen = screen(80, 24);
        let mut all = replies(&mut screen, &questions[..cut]);
        all.extend(replies(&mut screen, &questions[cut..]));
        assert_eq!(all, expected, "cut at {cut}");
    }
}

#[test]
fn the_hosts_colours_are_reported() {
    let mut screen = screen(80, 24);
    let mut palette = HostPalette {
        foreground: Some(Rgb(1, 2, 3)),
        background: Some(Rgb(250, 251, 252)),
        ..HostPalette::default()
    };
    palette.colours[1] = Some(Rgb(9, 8, 7));
    screen.set_palette(palette);
    assert_eq!(
        replies(
            &mut screen,
            "\x1b]10;?\x07\x1b]11;?\x07\x1b]12;?\x07\x1b]4;1;?;2;?\x07\x1b[?996n"
        ),
        [
            "\x1b]10;rgb:0101/0202/0303\x07",
            "\x1b]11;rgb:fafa/fbfb/fcfc\x07",
            "\x1b]12;rgb:0101/0202/0303\x07",
            "\x1b]4;1;rgb:0909/0808/0707\x07",
            "\x1b]4;2;rgb:0000/cdcd/0000\x07",
            "\x1b[?997;2n",
        ]
    );
}

#[test]
fn a_change_of_scheme_is_reported_only_to_those_who_asked() {
    let mut screen = screen(80, 24);
    screen.set_colour_scheme(ColourScheme::Dark);
    assert_eq!(screen.take_replies(), Vec::<Vec<u8>>::new());
    feed(&mut screen, "\x1b[?2031h");
    screen.set_colour_scheme(ColourScheme::Light);
    screen.set_colour_scheme(ColourScheme::Light);
    assert_eq!(screen.take_replies(), [b"\x1b[?997;2n".to_vec()]);
}

#[test]
fn the_kitty_stack_follows_the_protocol() {
    let flags = |screen: &mut Screen, bytes: &str| {
        feed(screen, bytes);
        screen.modes().kitty_flags
    };
    let mut screen = screen(80, 24);
    assert_eq!(flags(&mut screen, "\x1b[>1u"), 1);
    assert_eq!(flags(&mut screen, "\x1b[>5u"), 5);
    assert_eq!(flags(&mut screen, "\x1b[=8;2u"), 13);
    assert_eq!(flags(&mut screen, "\x1b[=4;3u"), 9);
    assert_eq!(flags(&mut screen, "\x1b[=2u"), 2);
    assert_eq!(
        flags(&mut screen, "\x1b[?1049h"),
        0,
        "the alternate screen has its own stack"
    );
    assert_eq!(flags(&mut screen, "\x1b[>7u"), 7);
    assert_eq!(flags(&mut screen, "\x1b[?1049l"), 2);
    assert_eq!(flags(&mut screen, "\x1b[<u"), 1);
    assert_eq!(flags(&mut screen, "\x1b[<5u"), 0);
    for _ in 0..5000 {
        feed(&mut screen, "\x1b[>1u");
    }
    assert_eq!(flags(&mut screen, "\x1b[<31u"), 1);
    assert_eq!(flags(&mut screen, "\x1b[<65535u"), 0);
    assert_eq!(flags(&mut screen, "\x1b[>1u\x1bc"), 0);
}

#[test]
fn modes_are_reported_as_set() {
    let mut screen = screen(80, 24);
    assert_eq!(
        screen.modes(),
        Modes {
            alternate_scroll: true,
            ..Modes::default()
        }
    );
    feed(
        &mut screen,
        "\x1b[?1h\x1b=\x1b[?2004;1004;1003;1006;1049;2031h\x1b[?1007l\x1b[>4;1m",
    );
    assert_eq!(
        screen.modes(),
        Modes {
            app_cursor: true,
            app_keypad: true,
            bracketed_paste: true,
            focus_events: true,
            mouse: MouseTracking::Motion,
            sgr_mouse: true,
            utf8_mouse: false,
            alternate_screen: true,
            alternate_scroll: false,
            kitty_flags: 0,
            modify_other_keys: 1,
        }
    );
    for (mode, tracking) in [
        (9, MouseTracking::X10),
        (1000, MouseTracking::Click),
        (1002, MouseTracking::Drag),
        (1003, MouseTracking::Motion),
    ] {
        feed(&mut screen, format!("\x1b[?{mode}h"));
        assert_eq!(screen.modes().mouse, tracking);
    }
    feed(&mut screen, "\x1b[?1003l");
    assert_eq!(screen.modes().mouse, MouseTracking::None);
}

#[test]
fn a_dead_childs_modes_are_forgotten_and_its_text_kept() {
    let mut screen = screen(20, 5);
    feed(&mut screen, counted("line ", 50));
    let (text, history) = (screen.text(), screen.history_len());
    feed(
        &mut screen,
        "\x1b[?1;2004;1004;1003;1006;2031h\x1b=\x1b[>5u\x1b[>4;2m\x1b[?25l\x1b[2;3r\x1b[5;1H\x1b[?2026h\x1b[31m\x1b(0\x1b[?1049hjunk\x1b]0;unfinished",
    );
    screen.reset();
    assert_eq!(
        screen.modes(),
        Modes {
            alternate_scroll: true,
            ..Modes::default()
        }
    );
    assert!(screen.cursor().visible);
    assert_eq!(screen.deadline(), None);
    assert_eq!((screen.text(), screen.history_len()), (text, history));
    feed(&mut screen, "q");
    assert!(screen.text().ends_with("\nq"), "{:?}", screen.text());
}

#[test]
fn what_a_child_drew_in_the_frame_that_it_died_in_is_kept() {
    let mut screen = screen(20, 3);
    feed(&mut screen, "old\x1b[?2026h\r\nlast words\x1b[?1003h");
    assert_eq!(screen.text(), "old");
    screen.reset();
    assert_eq!(screen.text(), "old\nlast words");
    assert_eq!(screen.deadline(), None);
    assert_eq!(screen.modes().mouse, Modes::default().mouse);
}

#[test]
fn a_frame_is_shown_when_it_ends() {
    let mut screen = screen(20, 3);
    feed(&mut screen, "old");
    feed(&mut screen, "\x1b[?2026h");
    let revision = screen.revision();
    feed(&mut screen, "\x1b[2J\x1b[Hnew");
    assert_eq!(screen.text(), "old");
    assert_eq!(screen.cursor().column, 3);
    assert_eq!(screen.revision(), revision);
    assert_eq!(screen.deadline(), Some(*NOW + FRAME_LIMIT));
    feed(&mut screen, "er\x1b[?2026l");
    assert_eq!(screen.text(), "newer");
    assert_ne!(screen.revision(), revision);
    assert_eq!(screen.deadline(), None);
}

#[test]
fn a_frame_that_never_ends_is_shown_at_its_deadline() {
    let mut screen = screen(20, 3);
    feed(&mut screen, "old\x1b[?2026h\x1b[2K\rnew");
    assert_eq!(screen.text(), "old");
    screen.feed(b"\x1b[?2026h", *NOW + FRAME_LIMIT / 2);
    assert_eq!(
        screen.deadline(),
        Some(*NOW + FRAME_LIMIT),
        "a second begin does not extend it"
    );
    screen.expire(*NOW + FRAME_LIMIT.saturating_sub(Duration::from_millis(1)));
    assert_eq!(screen.text(), "old");
    screen.expire(*NOW + FRAME_LIMIT);
    assert_eq!(screen.text(), "new");
    assert_eq!(screen.deadline(), None);
}

#[test]
fn questions_inside_a_frame_are_answered_at_once() {
    let mut screen = screen(20, 3);
    assert_eq!(
        replies(&mut screen, "\x1b[?2026hab\x1b[6n\x1b[c"),
        ["\x1b[1;3R", "\x1b[?62;22c"]
    );
}

#[test]
fn no_half_frame_is_ever_shown_wherever_the_bytes_are_cut() {
    let frame =
        |text: &str| format!("\x1b[?2026h\x1b[2J\x1b[H{text}\r\n{text}\r\n{text}\x1b[?2026l");
    let stream = frame("aaaa") + &frame("bbbb") + &frame("cccc");
    let whole = |c: &str| format!("{0}\n{0}\n{0}", c.repeat(4));
    let fine = [String::new(), whole("a"), whole("b"), whole("c")];
    let mut screen = screen(20, 3);
    for byte in stream.bytes() {
        feed(&mut screen, [byte]);
        assert!(fine.contains(&screen.text()), "{:?}", screen.text());
    }
    assert_eq!(screen.text(), whole("c"));
}

#[test]
fn three_mebibytes_in_one_frame_are_not_lost() {
    let mut screen = screen(80, 24);
    feed(&mut screen, "\x1b[?2026h");
    for line in 0..40_000 {
        feed(&mut screen, format!("line {line:070}\r\n"));
    }
    screen.expire(*NOW + FRAME_LIMIT);
    assert!(screen.text().contains("39999"));
    assert_eq!(screen.history_len(), 10_000);
}

#[test]
fn a_character_that_a_sequence_cuts_off_is_broken_where_it_stood() {
    for before in ["her", "x\r\n", "\x1b\x1b0"] {
        let shown = |character: &[u8]| {
            let mut screen = screen(40, 10);
            let after = b"\x1b[4;3Hand then a text";
            feed(&mut screen, [before.as_bytes(), character, after].concat());
            screen.text()
        };
        assert_eq!(shown(b"\xed"), shown("\u{fffd}".as_bytes()), "{before:?}");
    }
}

#[test]
fn titles_are_cleaned_cut_and_stacked() {
    let mut screen = screen(80, 24);
    feed(&mut screen, "\x1b]0;✳ fix\u{202e} it\x07");
    assert_eq!(screen.title(), "✳ fix it");
    feed(&mut screen, "\x1b[22;0t\x1b]2;other\x1b\\\x1b[23;0t");
    assert_eq!(screen.title(), "✳ fix it");
    assert_eq!(screen.take_facts().len(), 3);
    feed(&mut screen, format!("\x1b]0;{}\x07", "é".repeat(5000)));
    assert_eq!(screen.title().chars().count(), 256);
    feed(&mut screen, "\x1b]0;\x07");
    assert_eq!(screen.title(), "");
}

/// Checks a small screen that took the text in two pieces, for each position where it may be cut.
fn wherever_cut(text: &str, look: impl Fn(&mut Screen, usize)) {
    for cut in 0..=text.len() {
        let mut screen = screen(20, 2);
        feed(&mut screen, &text.as_bytes()[..cut]);
        feed(&mut screen, &text.as_bytes()[cut..]);
        look(&mut screen, cut);
    }
}

#[test]
fn a_title_as_screen_has_it_is_neither_shown_nor_taken() {
    let text =
        "\x1b[31ma\x1bkzsh: ~/src \u{e9}\x1b\\b\x1bkcd\x07c\x1bk\x1b]2;own\x07d\x1bke\x1b[32mf";
    wherever_cut(text, |screen, cut| {
        assert_eq!(
            (screen.text().as_str(), screen.title()),
            ("abcdf", "own"),
            "{cut}"
        );
        assert_eq!(
            screen.take_facts(),
            [ScreenFact::Title("own".to_owned())],
            "{cut}"
        );
    });
    let mut single = screen(20, 2);
    for byte in text.bytes() {
        feed(&mut single, [byte]);
    }
    assert_eq!(single.text(), "abcdf");
    // The same holds in a frame that waits, and a sequence that it ends stays ended.
    let mut screen = screen(20, 2);
    feed(&mut screen, "\x1b[?2026ha\x1bkt");
    feed(&mut screen, "itle\x1b\\b\x1bk\x1b[?2026l\x1b[6");
    feed(&mut screen, "\x1bkn\x07n");
    assert_eq!(
        (screen.text().as_str(), screen.is_in_frame()),
        ("abn", false)
    );
    assert_eq!(screen.take_replies(), Vec::<Vec<u8>>::new());
}

#[test]
fn facts_are_reported_in_order() {
    assert_eq!(
        facts(
            "\x07\x07\x1b]0;t\x07\x1b]52;c;aGk=\x07\x1b]9;4;1;50\x07\x1b]9;hey\x07\x1b]133;C\x07\x07"
        ),
        [
            ScreenFact::Bell,
            ScreenFact::Title("t".into()),
            ScreenFact::ClipboardStore("hi".into()),
            ScreenFact::Progress(Progress::Percent(50)),
            ScreenFact::Notification {
                title: String::new(),
                body: "hey".into()
            },
            ScreenFact::Mark(Mark::OutputStart),
            ScreenFact::Bell,
        ]
    );
    assert_eq!(facts("\x1b]52;c;not base64!\x07\x1b]52;z;aGk=\x07"), []);
    assert_eq!(
        facts("\x1b]0;a\x07\x1b]0;b\x07".repeat(10_000)).len(),
        FACT_LIMIT
    );
}

#[test]
fn an_endless_string_does_not_grow_and_what_follows_is_shown() {
    let mut screen = screen(80, 24);
    let block = vec![b'x'; 64 * 1024];
    for start in [
        "\x1b]0;",
        "\x1b]52;c;",
        "\x1bP",
        "\x1b_",
        "\x1b^",
        "\x1bX",
        "\x1bk",
    ] {
        feed(&mut screen, "\x1b[2J\x1b[H");
        feed(&mut screen, start);
        for _ in 0..1024 {
            feed(&mut screen, &block);
        }
        feed(&mut screen, "\x1b\\OK");
        assert_eq!(screen.text(), "OK", "{start:?}");
    }
    assert_eq!(screen.take_facts(), []);
    assert_eq!(screen.title(), "");
}

/// Returns all visited cells, in order.
fn cells(screen: &Screen) -> Vec<(u16, u16, String, u16)> {
    let mut all = Vec::new();
    screen
        .for_each_cell(|cell| all.push((cell.column, cell.row, cell.text.to_owned(), cell.width)));
    all
}

#[test]
fn wide_and_combined_characters_are_one_cell_view() {
    let mut screen = screen(6, 1);
    feed(&mut screen, "a日e\u{301}🎉");
    let expected = [(0, "a", 1), (1, "日", 2), (3, "e\u{301}", 1), (4, "🎉", 2)];
    let expected: Vec<_> = expected.map(|(c, t, w)| (c, 0, t.to_owned(), w)).to_vec();
    assert_eq!(cells(&screen), expected);
    assert_eq!(screen.text(), "a日e\u{301}🎉");
}

#[test]
fn a_pane_of_one_column_never_shows_half_a_character() {
    let mut screen = screen(1, 1);
    feed(&mut screen, "日");
    assert_eq!(cells(&screen), [(0, 0, " ".to_owned(), 1)]);
    assert_eq!(screen.cursor().column, 0);
    assert_eq!(
        replies(&mut screen, "\x1b[18t\x1b[6n"),
        ["\x1b[8;1;1t", "\x1b[1;1R"]
    );
}

#[test]
fn one_cell_takes_a_bounded_number_of_joining_characters() {
    let mut screen = screen(10, 2);
    feed(&mut screen, format!("a{}", "\u{301}".repeat(100_000)));
    for _ in 0..1000 {
        feed(&mut screen, "\x1b[1;2H\u{301}\u{301}");
    }
    assert_eq!(screen.text().chars().count(), 1 + ZERO_WIDTH_LIMIT);
}

#[test]
fn attributes_and_colours_reach_the_view() {
    let mut screen = screen(3, 1);
    feed(
        &mut screen,
        "\x1b[1;2;3;4:3;7;8;9;38;2;1;2;3;48;5;77;58;2;4;5;6mx\x1b[0;95my\x1b[m\x1b]11;#102030\x07\x1b]4;13;#010101\x07",
    );
    let mut seen = Vec::new();
    screen.for_each_cell(|cell| {
        seen.push((
            cell.foreground,
            cell.background,
            cell.underline_colour,
            cell.attributes,
        ));
    });
    let all = Attributes {
        bold: true,
        dim: true,
        italic: true,
        inverse: true,
        hidden: true,
        strike: true,
        blink: false,
        overline: false,
        underline: Underline::Curly,
    };
    let ground = Colour::Rgb(0x10, 0x20, 0x30);
    assert_eq!(
        seen,
        [
            (
                Colour::Rgb(1, 2, 3),
                Colour::Indexed(77),
                Some(Colour::Rgb(4, 5, 6)),
                all
            ),
            (Colour::Rgb(1, 1, 1), ground, None, Attributes::default()),
            (Colour::Default, ground, None, Attributes::default()),
        ]
    );
}

#[test]
fn blinking_and_the_line_above_last_until_they_are_taken_back() {
    let text = "\x1b[5ma\x1b[25mb\x1b[6;53mc\x1b]8;;https://a\x1b\\d\x1b[25;58;2;53;5;53me\x1b[0mf\x1b]8;;\x1b\\\x1b[53;0mg\x1b[0;53mh\x1b[55mi";
    for size in [1, 2, 5, 1000] {
        let mut screen = screen(9, 1);
        for chunk in text.as_bytes().chunks(size) {
            screen.feed_at_once(chunk);
        }
        let mut seen = String::new();
        screen.for_each_cell(|cell| {
            seen.push_str(cell.text);
            seen.push_str(if cell.attributes.blink { "*" } else { "" });
            seen.push_str(if cell.attributes.overline { "^" } else { "" });
            seen.push_str(if cell.hyperlink.is_some() { "@" } else { "" });
        });
        assert_eq!(seen, "a*bc*^d*^@e^@f@gh^i", "in pieces of {size}");
    }
    let answer = replies(&mut screen(4, 1), "\x1b[5;53m\x1bP$qm\x1b\\").concat();
    assert!(answer.contains("$r0;5;53m"), "{answer:?}");
    // A selector widens what has a link or a line too.
    let mut screen = screen(9, 1);
    feed(
        &mut screen,
        "\x1b[53m\u{26a0}\u{fe0f}\x1b]8;;https://a\x1b\\\x1b[55m\u{26a0}\u{fe0f}\u{1f1e9}\u{1f1ea}",
    );
    let mut cells = Vec::new();
    screen.for_each_cell(|cell| cells.push((cell.text.to_owned(), cell.width)));
    let wide: Vec<_> = cells.iter().filter(|(_, width)| *width == 2).collect();
    assert_eq!(wide.len(), 3, "{cells:?}");
}

#[test]
fn sgr_21_is_a_double_underline_and_leaves_bold_on() {
    let mut screen = screen(4, 1);
    feed(&mut screen, "\x1b[1;21mx");
    let mut looks = Vec::new();
    screen.for_each_cell(|cell| looks.push(cell.attributes));
    assert_eq!(
        (looks[0].bold, looks[0].underline),
        (true, Underline::Double)
    );
}

#[test]
fn links_are_kept_when_fit_and_bounded_in_number() {
    let link = |uri: &str| {
        let mut screen = screen(4, 1);
        feed(
            &mut screen,
            format!("\x1b]8;id=1;{uri}\x1b\\x\x1b]8;;\x1b\\y"),
        );
        let mut links = Vec::new();
        screen.for_each_cell(|cell| links.push(cell.hyperlink.map(str::to_owned)));
        assert_eq!(links[1], None);
        links[0].clone()
    };
    assert_eq!(
        link("https://a.example/x;y").as_deref(),
        Some("https://a.example/x;y")
    );
    assert_eq!(link("https://a.example/\u{202e}gpj.exe"), None);
    assert_eq!(link(&format!("https://{}", "a".repeat(3000))), None);

    let mut screen = screen(80, 24);
    for number in 0..20_000 {
        feed(
            &mut screen,
            format!("\x1b[H\x1b]8;;https://e.example/{number}\x1b\\x"),
        );
        assert!(screen.engine.links.known.len() <= LINK_COUNT);
    }
    let mut last = None;
    screen.for_each_cell(|cell| last = last.take().or(cell.hyperlink.map(str::to_owned)));
    assert_eq!(
        last.as_deref(),
        Some("https://e.example/19999"),
        "dead links make room"
    );
}

#[test]
fn the_link_of_a_cell_is_found_where_it_is_shown() {
    let mut screen = screen(20, 3);
    let any = |_: &str| true;
    assert_eq!(
        (screen.link_at(0, 0), screen.shows_link(0..3, any)),
        (None, false)
    );
    feed(&mut screen, "a\x1b]8;;https://x\x1b\\日b\x1b]8;;\x1b\\c");
    let found = |screen: &Screen, row| {
        (0..20)
            .filter(|at| screen.link_at(*at, row).is_some())
            .count()
    };
    assert_eq!(screen.link_at(0, 0), None);
    assert_eq!(
        screen.link_at(2, 0).as_deref(),
        Some("https://x"),
        "its second half"
    );
    assert_eq!(
        (found(&screen, 0), found(&screen, 1), found(&screen, 9)),
        (3, 0, 0)
    );
    assert_eq!(screen.link_at(99, 0), None);
    assert!(screen.shows_link(0..3, |target| target == "https://x"));
    assert!(!screen.shows_link(0..3, |target| target == "https://y"));
    feed(&mut screen, "\r\n\n\n");
    assert!(!screen.shows_link(0..3, any));
    screen.scroll(Scroll::Top);
    assert!(screen.shows_link(0..3, any));
    screen.copy(&CopyOrder::Enter);
    feed(&mut screen, "\x1b[3J\x1b[2J");
    assert_eq!(found(&screen, 0), 3);
}

#[test]
fn a_repeat_costs_no_more_than_a_row() {
    let mut screen = screen(10, 3);
    feed(&mut screen, "x\x1b[65535b");
    assert_eq!(screen.text(), format!("{}\nx", "x".repeat(10)));
    feed(&mut screen, "\x1bcab\x1b[3b");
    assert_eq!(screen.text(), "abbbb");
}

#[test]
fn the_scrollback_holds_ten_thousand_lines_and_scrolls() {
    let mut screen = screen(20, 5);
    feed(&mut screen, counted("", 10_101));
    assert_eq!(screen.history_len(), 10_000);
    assert_eq!(screen.scroll_offset(), 0);
    screen.scroll(Scroll::Lines(3));
    assert_eq!(screen.text(), "10094\n10095\n10096\n10097\n10098");
    assert!(!screen.cursor().visible);
    feed(&mut screen, "more\r\n");
    assert_eq!(
        screen.text(),
        "10094\n10095\n10096\n10097\n10098",
        "the view stays where it is"
    );
    screen.scroll(Scroll::Top);
    assert_eq!(screen.scroll_offset(), 10_000);
    screen.scroll(Scroll::PageDown);
    assert_eq!(screen.scroll_offset(), 9_995);
    screen.scroll(Scroll::Bottom);
    assert!(screen.text().ends_with("more"));
    assert_eq!(screen.tail_text(3), "10099\n10100\nmore");
}

#[test]
fn a_view_of_the_scrollback_stays_while_a_part_of_the_screen_scrolls() {
    let mut screen = screen(10, 4);
    feed(&mut screen, counted("line ", 20));
    screen.scroll(Scroll::Lines(3));
    let shown = screen.text();
    feed(
        &mut screen,
        format!("\x1b[2;4r\x1b[4;1H{}", counted("more ", 60)),
    );
    assert_eq!((screen.text(), screen.scroll_offset()), (shown.clone(), 3));
    feed(
        &mut screen,
        format!("\x1b[r\x1b[4;1H{}", counted("more ", 2)),
    );
    assert_eq!((screen.text(), screen.scroll_offset()), (shown, 5));
    // With a full scrollback, the view is at least not above the oldest line.
    let mut full = Screen::new(PaneSize::new(10, 4), 5);
    feed(&mut full, counted("line ", 7));
    full.scroll(Scroll::Top);
    feed(
        &mut full,
        format!("\x1b[2;4r\x1b[4;1H\x1b[?2026h{}", counted("more ", 60)),
    );
    assert!(full.scroll_offset() <= full.history_len());
    assert!(!full.text().is_empty());
}

#[test]
fn the_scrollback_is_forgotten_at_the_childs_wish_unless_the_user_keeps_it() {
    for keeps in [false, true] {
        let mut screen = screen(20, 5);
        screen.set_keeps_scrollback(keeps);
        feed(&mut screen, counted("", 104));
        feed(&mut screen, "\x1b[3J");
        assert_eq!(screen.history_len(), if keeps { 100 } else { 0 });
        assert!(screen.text().starts_with("100\n"), "{}", screen.text());
        feed(&mut screen, "\x1b[2J\x1b[3J\x1b[H");
        assert_eq!(screen.text(), "");
    }
}

#[test]
fn a_storm_of_resizes_leaves_hardly_anything_in_the_scrollback() {
    let rows = 24;
    let line = |row: u16| format!("\r\n{row:_>58}");
    let lines: Vec<String> = (1..rows).map(line).collect();
    let picture = format!("\x1b[2J\x1b[H{}", lines.concat());
    let mut screen = screen(80, rows);
    feed(&mut screen, counted("old ", 100));
    feed(&mut screen, &picture);
    let before = screen.history_len();
    for step in 0_u16..20 {
        screen.resize(PaneSize::new(60 + step * 7 % 50, rows - step % 5));
        screen.expect_redraw(*NOW + Duration::from_secs(1));
        feed(&mut screen, &picture);
    }
    screen.resize(PaneSize::new(80, rows));
    let grown = screen.history_len().saturating_sub(before);
    assert!(grown <= 2 * usize::from(rows), "{grown} lines more");
    assert!(
        screen
            .tail_text(usize::from(rows) * 2 + 120)
            .contains("old 99")
    );
    // Cleared at any other time, the screen is kept.
    let before = screen.history_len();
    screen.feed(b"\x1b[2J", *NOW + Duration::from_secs(2));
    assert!(screen.history_len() > before);
}

#[test]
fn everything_above_the_cursor_is_erased_in_whichever_row_it_stands() {
    for row in 1..=3 {
        let mut screen = screen(5, 3);
        feed(
            &mut screen,
            format!("aaa\r\nbbb\r\nccc\x1b[{row};2H\x1b[1J"),
        );
        let left = ["  a\nbbb\nccc", "\n  b\nccc", "\n\n  c"];
        assert_eq!(screen.text(), left[row - 1], "row {row}");
        let mut screen = self::screen(5, 3);
        screen.expect_redraw(*NOW + Duration::from_secs(1));
        feed(
            &mut screen,
            format!("aaa\r\nbbb\r\nccc\x1b[{row};2H\x1b[2J"),
        );
        assert_eq!(
            (screen.text().as_str(), screen.history_len()),
            ("", 0),
            "row {row}"
        );
    }
}

#[test]
fn the_view_stays_where_it_is_while_a_part_of_the_screen_scrolls() {
    for text in [
        "\x1b[3;1H\x1b[2M",
        "\x1b[2;4r\x1b[2S",
        "\x1b[2;4r\x1b[4;1H\n\n\n",
        "\x1b[2;4r\x1b[4;1H\x1bE\x1bE",
        "\x1b[2;4r\x1b[4;1Hlong enough to wrap in twenty columns",
        // What grows in the last column goes to the next row.
        "\x1b[2;4r\x1b[4;20H⚠\u{fe0f}",
        "\x1b[2;4r\x1b[4;20H🇩",
        "\x1b[2;4r\x1b[4;20Hx\u{e9}x日\x1b[30b",
        "\x1b[2;4r\x1b[?6h\x1b[3;1H\x1bD\x1bD",
    ] {
        // There is room for more above the screen, or there is none.
        for (scroll, room) in [
            (Scroll::Lines(3), 100),
            (Scroll::Top, 100),
            (Scroll::Lines(3), 12),
        ] {
            let mut screen = Screen::new(PaneSize::new(20, 5), room);
            feed(&mut screen, counted("", 30));
            screen.scroll(scroll);
            // The oldest lines do not move; of three above the screen two are of it.
            let before: Vec<_> = screen.text().lines().take(3).map(str::to_owned).collect();
            let offset = screen.scroll_offset();
            feed(&mut screen, text);
            assert_eq!(screen.scroll_offset(), offset, "{text:?}");
            let after: Vec<_> = screen.text().lines().take(3).map(str::to_owned).collect();
            assert_eq!(after, before, "{text:?}");
        }
    }
}

#[test]
fn the_tail_joins_wrapped_lines() {
    let mut screen = screen(4, 2);
    feed(&mut screen, "first\r\nabcdefghij\r\n\r\n");
    assert_eq!(screen.tail_text(1), "abcdefghij");
    assert_eq!(screen.tail_text(9), "first\nabcdefghij");
}

#[test]
fn clearing_an_empty_screen_adds_nothing_to_the_scrollback() {
    let mut screen = screen(4, 3);
    feed(&mut screen, "\x1b[2J".repeat(5));
    assert_eq!(screen.history_len(), 0);
    feed(&mut screen, "one\x1b[2J\x1b[2J\x1b[41m\x1b[2J");
    assert_eq!((screen.history_len(), screen.text().as_str()), (1, ""));
    let mut grounds = Vec::new();
    screen.for_each_cell(|cell| grounds.push(cell.background));
    assert_eq!(grounds, [Colour::Indexed(1); 12]);
}

#[test]
fn an_erased_line_continues_none() {
    for erased in ["\r\x1b[K", "\x1b[2K\r", "\r\x1b[J"] {
        let mut screen = screen(4, 3);
        feed(&mut screen, format!("abcdef{erased}new"));
        assert_eq!(screen.tail_text(9), "abcd\nnew", "{erased:?}");
        screen.resize(PaneSize::new(9, 3));
        assert_eq!(screen.text(), "abcd\nnew", "{erased:?}");
    }
    let mut screen = screen(4, 3);
    feed(&mut screen, "abcdef\x1b[K");
    assert_eq!(screen.tail_text(9), "abcdef");
}

#[test]
fn each_mode_of_the_alternate_screen_comes_and_goes_and_leaves_the_cursor_where_xterm_does() {
    for (mode, column) in [(47, 7), (1047, 7), (1049, 4)] {
        let mut screen = screen(10, 2);
        feed(&mut screen, format!("main\x1b[?{mode}h\x1b[Hand alt"));
        assert_eq!(screen.text(), "and alt");
        feed(&mut screen, format!("\x1b[?{mode}l"));
        assert_eq!(screen.text(), "main");
        assert_eq!(screen.cursor().column, column, "{mode}");
    }
    let mut screen = screen(10, 2);
    feed(&mut screen, "ab\x1b[?1049h\x1b[?1049lcd\x1b[?1049l");
    assert_eq!(
        screen.cursor().column,
        2,
        "1049 restores without a change of screen"
    );
}

#[test]
fn a_soft_reset_restores_how_text_is_written() {
    let mut screen = screen(10, 5);
    feed(
        &mut screen,
        "\x1b[31;1m\x1b[?1;6h\x1b[?25l\x1b[4h\x1b[2;3r\x1b(0\x1b[3;3H\x1b[!pq",
    );
    assert!(!screen.modes().app_cursor);
    assert!(screen.cursor().visible);
    assert_eq!(
        replies(&mut screen, "\x1bP$qm\x1b\\\x1b[4$p\x1b[?6$p"),
        ["\x1bP1$r0m\x1b\\", "\x1b[4;2$y", "\x1b[?6;2$y"]
    );
    assert!(screen.text().ends_with('q'));
}

#[test]
fn resizing_keeps_the_text() {
    let mut screen = screen(20, 4);
    feed(&mut screen, "hello world");
    screen.resize(PaneSize::new(5, 4));
    assert_eq!(screen.text(), "hello\n worl\nd");
    assert_eq!(screen.cursor().row, 2);
    screen.resize(PaneSize::new(20, 4));
    assert_eq!(screen.text(), "hello world");
}

/// Generates margins, and sequences that move and change the cells between them.
fn function() -> impl Strategy<Value = Vec<u8>> {
    let small = || 0_u16..14;
    prop_oneof![
        (small(), small()).prop_map(|(a, b)| format!("\x1b[{a};{b}s\x1b[u")),
        (small(), small()).prop_map(|(a, b)| format!("\x1b[{a};{b}r")),
        (small(), small()).prop_map(|(a, b)| format!("\x1b[{a};{b}H")),
        (small(), "(@|P|L|M|S|T|X|I|Z|a|e|b|A|B|C|D|E|F|G|d)")
            .prop_map(|(count, end)| format!("\x1b[{count}{end}")),
        "(\x1b7|\x1b8|\x1bD|\x1bM|\x1bE|\x1b#8|\x1b\\[4h|\x1b\\[4l)",
    ]
    .prop_map(String::into_bytes)
}

/// Generates pieces of what programs send, and noise.
fn output() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        any::<Vec<u8>>(),
        "[ -~]{0,40}".prop_map(String::into_bytes),
        "[日🎉e\u{301}\u{200d}\u{fe0f}👨]{0,20}".prop_map(String::into_bytes),
        "[\r\n\t\x08\x0e\x0f]{1,4}".prop_map(String::into_bytes),
        (0_u16..600, 0_u16..600, "[@-~]")
            .prop_map(|(a, b, end)| format!("\x1b[{a};{b}{end}").into_bytes()),
        function(),
        (
            prop::sample::select(vec![
                1, 3, 6, 7, 25, 45, 47, 1000, 1003, 1047, 1048, 1049, 2004, 2026, 2031
            ]),
            "[hl]"
        )
            .prop_map(|(mode, end)| format!("\x1b[?{mode}{end}").into_bytes()),
        "\x1b[\\](P_^Xk#()78cDEHMZ=>][ -~]{0,10}(\x07|\x1b\\\\)?".prop_map(String::into_bytes),
        prop::sample::select(vec![
            b"\x1b[!p".to_vec(),
            b"\x1b[>q\x1b[6n".to_vec(),
            b"\x1b[65535b".to_vec()
        ]),
    ];
    prop::collection::vec(text, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    // Grids of up to 500×200 are slow to build and read; a run of thousands is for a free machine.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_bytes_at_any_size_leave_the_cursor_inside(
        steps in prop::collection::vec((output(), 1_u16..=500, 1_u16..=200, -30_i32..30), 1..8),
    ) {
        let mut screen = Screen::new(PaneSize::new(80, 24), 200);
        for (bytes, columns, rows, scroll) in steps {
            feed(&mut screen, bytes);
            screen.resize(PaneSize::new(columns, rows));
            screen.scroll(Scroll::Lines(scroll));
            let cursor = screen.cursor();
            prop_assert!(cursor.column < columns && cursor.row < rows);
            let mut area = 0;
            screen.for_each_cell(|cell| {
                assert!(cell.column + cell.width <= columns && cell.row < rows);
                assert!(!cell.text.is_empty() && !cell.text.chars().any(char::is_control));
                area += u32::from(cell.width);
            });
            prop_assert!(area <= u32::from(columns) * u32::from(rows));
            assert!(screen.text().lines().count() <= 200);
            assert!(screen.tail_text(20).lines().count() <= 20);
        }
    }
}

proptest! {
    #[test]
    fn a_small_pane_survives_any_bytes(
        steps in prop::collection::vec((output(), 1_u16..=4, 1_u16..=3), 1..12),
    ) {
        let mut screen = Screen::new(PaneSize::new(1, 1), 5);
        for (bytes, columns, rows) in steps {
            screen.resize(PaneSize::new(columns, rows));
            feed(&mut screen, bytes);
            assert!(screen.text().lines().count() <= 200);
        }
        screen.reset();
    }

    #[test]
    fn where_the_bytes_are_cut_changes_nothing(bytes in output(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let mut whole = screen(40, 10);
        feed(&mut whole, &bytes);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let mut parts = screen(40, 10);
        for pair in cuts.windows(2) {
            feed(&mut parts, &bytes[pair[0]..pair[1]]);
        }
        // A half character at the end shows as broken only once the next byte is there.
        feed(&mut whole, "x");
        feed(&mut parts, "x");
        whole.expire(*NOW + FRAME_LIMIT);
        parts.expire(*NOW + FRAME_LIMIT);
        prop_assert_eq!(whole.text(), parts.text());
        prop_assert_eq!(whole.modes(), parts.modes());
        prop_assert_eq!(whole.take_replies(), parts.take_replies());
        prop_assert_eq!(whole.take_facts(), parts.take_facts());
    }

    #[test]
    fn replies_stay_in_a_closed_grammar(bytes in output()) {
        let mut screen = screen(40, 10);
        feed(&mut screen, bytes);
        for reply in screen.take_replies() {
            prop_assert!(reply.starts_with(b"\x1b"));
            prop_assert!(!reply.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0x80..)));
            prop_assert!(reply.len() < 80);
        }
    }
}

/// The cells of a view, by row and column.
type Shown = BTreeMap<(u16, u16), String>;

/// Draws parts of the screen into a view.
fn drawn(screen: &Screen, parts: &[Patch], shown: &mut Shown) {
    for part in parts {
        shown.retain(|(row, column), _| !part.rows.contains(row) || !part.columns.contains(column));
        screen.for_each_cell_in(part, |cell| {
            shown.insert((cell.row, cell.column), format!("{cell:?}"));
        });
    }
}

/// Returns the whole screen, drawn at once.
fn all(screen: &Screen) -> Shown {
    let mut shown = Shown::new();
    drawn(screen, &[Patch::ALL], &mut shown);
    shown
}

proptest! {
    #[test]
    fn what_is_no_damage_has_not_changed(
        steps in prop::collection::vec((output(), -3_i32..=3), 1..12),
    ) {
        let mut screen = screen(30, 8);
        let mut parts = Shown::new();
        for (bytes, lines) in steps {
            screen.scroll(Scroll::Lines(lines));
            feed(&mut screen, bytes);
            let damage = screen.take_damage();
            drawn(&screen, &damage, &mut parts);
            prop_assert_eq!(&all(&screen), &parts);
        }
        screen.expire(*NOW + FRAME_LIMIT);
        let damage = screen.take_damage();
        drawn(&screen, &damage, &mut parts);
        prop_assert_eq!(all(&screen), parts);
    }
}

#[test]
fn what_is_written_again_is_no_damage() {
    let mut screen = screen(20, 4);
    feed(&mut screen, b"\x1b[2J\x1b[Hone\r\n\x1b[31mtwo");
    screen.take_damage();
    feed(&mut screen, b"\x1b[0m\x1b[2J\x1b[Hone\r\n\x1b[31mtwo");
    assert_eq!(screen.take_damage(), []);
    feed(&mut screen, b"\x1b[0m\x1b[2J\x1b[Hone\r\n\x1b[31mtoo");
    let cell = Patch {
        rows: 1..2,
        columns: 1..2,
    };
    assert_eq!(screen.take_damage(), [cell]);
    // A named colour looks different when the name gets another value.
    feed(&mut screen, b"\x1b]4;1;rgb:00/ff/00\x1b\\");
    let whole = Patch {
        rows: 0..4,
        columns: 0..20,
    };
    assert_eq!(screen.take_damage(), [whole]);
    // Half of a wide character is never drawn alone.
    feed(&mut screen, "\x1b[0m\x1b[3;5H日\x1b[4;1Hx".as_bytes());
    screen.take_damage();
    feed(&mut screen, "\x1b[3;5H月\x1b[4;1Hy".as_bytes());
    let row = Patch {
        rows: 2..3,
        columns: 0..20,
    };
    let cell = Patch {
        rows: 3..4,
        columns: 0..1,
    };
    assert_eq!(screen.take_damage(), [row, cell]);
}

#[test]
fn a_colour_of_too_many_digits_is_none() {
    let digits = "0".repeat(51);
    for end in ["\x07", "\x1b\\", "\x18"] {
        let text = format!(
            "a\x1b]4;1;#102030{end}b\x1b]4;1;#{digits}{end}c\x1b]2;own{end}d\x1b]4;1;?{end}"
        );
        wherever_cut(&text, |screen, cut| {
            assert_eq!(
                (screen.text().as_str(), screen.title()),
                ("abcd", "own"),
                "{end:?} {cut}"
            );
            let [reply] = &screen.take_replies()[..] else {
                panic!("one reply");
            };
            let reply = String::from_utf8_lossy(reply);
            assert!(reply.contains("rgb:1010/2020/3030"), "{reply:?}");
        });
    }
}

#[test]
fn what_was_drawn_as_a_whole_is_known() {
    let mut screen = screen(8, 2);
    feed(&mut screen, "a");
    screen.set_drawn();
    screen.copy(&CopyOrder::Enter);
    feed(&mut screen, "\rb");
    // Copy mode shows the text that was there when it began.
    screen.set_drawn();
    screen.copy(&CopyOrder::Leave);
    screen.set_drawn();
    assert_eq!(screen.take_damage(), []);
    feed(&mut screen, "\ra");
    let cell = Patch {
        rows: 0..1,
        columns: 0..1,
    };
    assert_eq!(screen.take_damage(), [cell]);
}

/// Returns each visible unit of the first row with its width.
fn units(screen: &Screen) -> Vec<(String, u16)> {
    let mut units = Vec::new();
    screen.for_each_cell(|cell| {
        if cell.row == 0 {
            units.push((cell.text.to_owned(), cell.width));
        }
    });
    while units.last().is_some_and(|(text, _)| text == " ") {
        units.pop();
    }
    units
}

#[test]
fn what_is_one_character_is_one_unit_of_two_cells() {
    for cluster in [
        "⚠\u{fe0f}",
        "❤\u{fe0f}",
        "1\u{fe0f}\u{20e3}",
        "👩\u{200d}🚀",
        "👩\u{200d}❤\u{fe0f}\u{200d}💋\u{200d}👨",
        "🏳\u{fe0f}\u{200d}🌈",
        "❤\u{fe0f}\u{200d}🔥",
        "👍\u{1f3fd}",
        "☝\u{1f3fd}",
        "👩\u{1f3fb}\u{200d}🚀",
        "🇩🇪",
        "👨\u{200d}👩\u{200d}👧\u{200d}👦",
    ] {
        let mut screen = Screen::new(PaneSize::new(20, 2), 10);
        feed(&mut screen, cluster.as_bytes());
        feed(&mut screen, b"|");
        let wanted = [(cluster.to_owned(), 2), ("|".to_owned(), 1)];
        assert_eq!(units(&screen), wanted, "{cluster}");
        assert_eq!(screen.cursor().column, 3, "{cluster}");
    }
}

#[test]
fn what_is_not_one_character_stays_apart() {
    for (text, widths) in [
        ("🇩🇪🇫🇷", vec![2, 2]),
        ("🇩x", vec![2, 1]),
        ("a\u{fe0f}b", vec![1, 1]),
        ("日\u{200d}本", vec![2, 2]),
        ("a\u{1f3fd}", vec![1, 2]),
        ("👩👩", vec![2, 2]),
        ("⚠x", vec![1, 1]),
    ] {
        let mut screen = Screen::new(PaneSize::new(20, 2), 10);
        feed(&mut screen, text.as_bytes());
        let found: Vec<u16> = units(&screen).iter().map(|(_, width)| *width).collect();
        assert_eq!(found, widths, "{text:?}");
    }
}

#[test]
fn a_character_grows_over_what_stood_behind_it_and_at_the_edge_on_the_next_row() {
    let mut screen = Screen::new(PaneSize::new(6, 2), 10);
    feed(&mut screen, "a日b\r⚠\u{fe0f}".as_bytes());
    assert_eq!(
        units(&screen),
        [
            ("⚠\u{fe0f}".to_owned(), 2),
            (" ".to_owned(), 1),
            ("b".to_owned(), 1)
        ]
    );
    for (text, wanted) in [
        ("abc⚠\u{fe0f}d", "abc\n⚠\u{fe0f}d"),
        ("abc🇩🇪d", "abc\n🇩🇪d"),
        ("abc1\u{fe0f}\u{20e3}d", "abc\n1\u{fe0f}\u{20e3}d"),
        ("ab⚠\u{fe0f}d", "ab⚠\u{fe0f}\nd"),
        ("xxxx\r\nabc⚠\u{fe0f}d", "abc\n⚠\u{fe0f}d"),
    ] {
        let mut screen = Screen::new(PaneSize::new(4, 2), 10);
        feed(&mut screen, text.as_bytes());
        assert_eq!(screen.text(), wanted, "{text:?}");
        assert_eq!(screen.cursor().row, 1, "{text:?}");
        // It is still one line.
        assert!(text.ends_with(&screen.tail_text(1)), "{text:?}");
    }
    let mut screen = Screen::new(PaneSize::new(4, 2), 10);
    feed(&mut screen, "\x1b[31mabc⚠\x1b[32m\u{fe0f}".as_bytes());
    let mut red = Vec::new();
    screen.for_each_cell(|cell| red.push((cell.text == "⚠\u{fe0f}", cell.foreground)));
    assert!(red.contains(&(true, Colour::Indexed(1))), "{red:?}");
    // Without wrapping there is nowhere to go, and in one column nothing is ever wide.
    let mut screen = Screen::new(PaneSize::new(4, 2), 10);
    feed(&mut screen, "\x1b[?7labc⚠\u{fe0f}".as_bytes());
    let widths: Vec<u16> = units(&screen).iter().map(|(_, width)| *width).collect();
    assert_eq!(widths, [1, 1, 1, 1]);
    let mut screen = Screen::new(PaneSize::new(1, 1), 10);
    feed(
        &mut screen,
        "⚠\u{fe0f}🇩🇪1\u{fe0f}\u{20e3}⌚\u{fe0e}".as_bytes(),
    );
    assert_eq!(screen.cursor().column, 0);
}

#[test]
fn an_emoji_that_is_to_be_text_takes_one_cell() {
    for (text, wanted, cursor) in [
        ("⌚\u{fe0e}|", vec![("⌚\u{fe0e}", 1), ("|", 1)], 2),
        (
            "ab⌚\u{fe0e}|",
            vec![("a", 1), ("b", 1), ("⌚\u{fe0e}", 1), ("|", 1)],
            3,
        ),
        ("⚠\u{fe0e}|", vec![("⚠\u{fe0e}", 1), ("|", 1)], 2),
        ("日\u{fe0e}|", vec![("日\u{fe0e}", 2), ("|", 1)], 3),
        (
            "👩\u{200d}\u{fe0e}|",
            vec![("👩\u{200d}\u{fe0e}", 2), ("|", 1)],
            3,
        ),
    ] {
        let mut screen = Screen::new(PaneSize::new(4, 2), 10);
        feed(&mut screen, text.as_bytes());
        let wanted: Vec<_> = wanted
            .into_iter()
            .map(|(text, width)| (text.to_owned(), width))
            .collect();
        assert_eq!(units(&screen), wanted, "{text:?}");
        assert_eq!(screen.cursor().column, cursor, "{text:?}");
    }
}

mod margins;
mod widths;

#[test]
fn the_cursor_stays_on_its_character_when_lines_wrap_otherwise() {
    let mut seed = 77_u64;
    let mut below = move |bound: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % bound
    };
    for round in 0..3_000 {
        let size = PaneSize::new(5 + below(20) as u16, 3 + below(8) as u16);
        let mut screen = Screen::new(size, 100);
        // Every character is different, so that the one at the cursor can be found again.
        let (mut wide, mut narrow) = ('\u{4e00}'..'\u{9fff}', '\u{400}'..'\u{480}');
        let mut text = String::new();
        for _ in 0..=below(5) {
            for _ in 0..below(40) {
                text.extend(if below(3) == 0 {
                    wide.next()
                } else {
                    narrow.next()
                });
            }
            text.push_str(if below(4) > 0 { "\r\n" } else { "" });
        }
        feed(&mut screen, &text);
        if below(3) > 0 {
            let (row, column) = (
                1 + below(u64::from(size.rows())),
                1 + below(u64::from(size.columns())),
            );
            feed(&mut screen, format!("\x1b[{row};{column}H"));
        }
        // Text typed at the cursor shows its position: over a character, or right after one.
        let typed = |screen: &mut Screen| {
            feed(screen, "\u{3a9}");
            screen.text()
        };
        let before = screen.text();
        let mut unchanged = Screen::new(size, 100);
        feed(&mut unchanged, &text);
        let at = (screen.cursor().row + 1, screen.cursor().column + 1);
        if screen.cursor() != unchanged.cursor() {
            feed(&mut unchanged, format!("\x1b[{};{}H", at.0, at.1));
        }
        let wanted = typed(&mut unchanged);
        let scrolls = screen.cursor().row > 0 && before.lines().next() != wanted.lines().next();
        let gone = |c: &char| !matches!(c, ' ' | '\n') && !wanted.contains(*c) && !scrolls;
        let covered = before.chars().find(gone);
        let behind = wanted
            .split('\u{3a9}')
            .next()
            .and_then(|text| text.chars().last());
        let other = PaneSize::new(2 + below(30) as u16, 2 + below(10) as u16);
        screen.resize(other);
        let found = typed(&mut screen).replace(['\n', ' '], "");
        let name = format!("round {round}: {size:?} to {other:?}: {wanted} and {found}");
        match (covered, behind) {
            (Some(covered), _) => {
                assert!(
                    found.contains('\u{3a9}') && !found.contains(covered),
                    "{name}"
                );
            }
            (None, Some(behind)) if !matches!(behind, ' ' | '\n') => {
                assert!(found.contains(&format!("{behind}\u{3a9}")), "{name}");
            }
            _ => {}
        }
    }
}
