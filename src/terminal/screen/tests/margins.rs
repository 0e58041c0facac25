//! Margins, and what else the engine does not do by itself.

use alacritty_terminal::term::cell::Flags;

use super::*;

/// Five rows of five letters on a screen of eight columns and six rows.
const LETTERS: &str = "abcde\r\nfghij\r\nklmno\r\npqrst\r\nuvwxy";

/// Side margins around the three columns in the middle.
const SIDES: &str = "\x1b[?69h\x1b[2;4s";

fn shown(bytes: &str) -> String {
    let mut screen = screen(8, 6);
    feed(&mut screen, LETTERS);
    feed(&mut screen, bytes);
    screen.text()
}

#[track_caller]
fn all_show(table: &[(&str, &str)]) {
    for (bytes, rows) in table {
        assert_eq!(
            shown(bytes),
            rows.replace(' ', "\n").replace('.', " "),
            "{bytes:?}"
        );
    }
}

/// Where the cursor is after this, row and column from 1.
fn place(bytes: &str) -> (u16, u16) {
    let mut screen = screen(8, 6);
    feed(&mut screen, bytes);
    let cursor = screen.cursor();
    (cursor.row + 1, cursor.column + 1)
}

#[test]
fn the_origin_moves_places() {
    let origin = format!("{SIDES}\x1b[2;4r\x1b[?6h");
    all_show(&[
        (
            &format!("{origin}\x1b[2;2HX"),
            "abcde fghij klXno pqrst uvwxy",
        ),
        (
            &format!("{origin}\x1b[9;9HX"),
            "abcde fghij klmno pqrXt uvwxy",
        ),
        (
            &format!("{origin}\x1b[2d\x1b[2GX"),
            "abcde fghij klXno pqrst uvwxy",
        ),
    ]);
    assert_eq!(place("\x1b[2;4r\x1b[?6h\x1b[?6l"), (1, 1));
    assert_eq!(
        place("\x1b[3;3H\x1b7\x1b[2;4r\x1b[?6h\x1b8\x1b[1;1H"),
        (1, 1)
    );
    assert_eq!(
        place("\x1b[2;4r\x1b[?6h\x1b7\x1b[?6l\x1b8\x1b[1;1H"),
        (2, 1)
    );
}

#[test]
fn text_wraps_and_scrolls_between_the_margins() {
    let all = format!("{SIDES}\x1b[2;4r");
    all_show(&[
        (
            &format!("{all}\x1b[2;2HABCD"),
            "abcde fABCj kDmno pqrst uvwxy",
        ),
        (
            &format!("{all}\x1b[?7l\x1b[2;2HABCD"),
            "abcde fABDj klmno pqrst uvwxy",
        ),
        (
            &format!("{all}\x1b[4;2HABCD"),
            "abcde flmnj kABCo pD..t uvwxy",
        ),
        (
            &format!("{all}\x1b[4;3H\n"),
            "abcde flmnj kqrso p...t uvwxy",
        ),
        (
            &format!("{all}\x1b[4;5H\nX"),
            "abcde fghij klmno pqrsX uvwxy",
        ),
        (
            &format!("{all}\x1b[2;3H\x1bM"),
            "abcde f...j kghio plmnt uvwxy",
        ),
        (
            &format!("{all}\x1b[2;1H\x1bMX"),
            "abcde Xghij klmno pqrst uvwxy",
        ),
        (&format!("{all}\x1b[2S"), "abcde fqrsj k...o p...t uvwxy"),
        (&format!("{all}\x1b[T"), "abcde f...j kghio plmnt uvwxy"),
        (
            &format!("{all}\x1b[65535S"),
            "abcde f...j k...o p...t uvwxy",
        ),
        (
            &format!("{all}\x1b[3;3H\x1b[L"),
            "abcde fghij k...o plmnt uvwxy",
        ),
        (
            &format!("{all}\x1b[3;3H\x1b[M"),
            "abcde fghij kqrso p...t uvwxy",
        ),
        (
            &format!("{all}\x1b[3;1H\x1b[M"),
            "abcde fghij klmno pqrst uvwxy",
        ),
        (
            &format!("{all}\x1b[3;3H\x1b[@"),
            "abcde fghij kl.mo pqrst uvwxy",
        ),
        (
            &format!("{all}\x1b[3;3H\x1b[P"),
            "abcde fghij kln.o pqrst uvwxy",
        ),
        (
            &format!("{all}\x1b[3;5H\x1b[P"),
            "abcde fghij klmno pqrst uvwxy",
        ),
        (
            &format!("{all}\x1b[3;2H\x1b[4hX\x1b[4l"),
            "abcde fghij kXlmo pqrst uvwxy",
        ),
        (
            &format!("{all}\x1b[3;2Hz\x1b[5b"),
            "abcde fghij kzzzo pzzzt uvwxy",
        ),
    ]);
}

#[test]
fn the_cursor_stops_at_the_margins_it_is_inside_of() {
    let all = format!("{SIDES}\x1b[2;4r");
    for (bytes, wanted) in [
        ("\x1b[3;3H\x1b[9A", (2, 3)),
        ("\x1b[1;3H\x1b[9B", (4, 3)),
        ("\x1b[5;3H\x1b[9B", (6, 3)),
        ("\x1b[5;3H\x1b[9A", (2, 3)),
        ("\x1b[3;3H\x1b[9C", (3, 4)),
        ("\x1b[3;5H\x1b[9C", (3, 8)),
        ("\x1b[3;3H\x1b[9D", (3, 2)),
        ("\x1b[3;1H\x1b[9D", (3, 1)),
        ("\x1b[3;3H\x1b[9E", (4, 2)),
        ("\x1b[3;3H\x1b[9F", (2, 2)),
        ("\x1b[3;3H\r", (3, 2)),
        ("\x1b[3;1H\r", (3, 1)),
        ("\x1b[?6h\x1b[?7l\x1b[1;1H\r", (2, 2)),
        ("\x1b[3;2H\x08", (3, 2)),
        ("\x1b[3;1H\t", (3, 4)),
        ("\x1b[3;5H\t", (3, 8)),
        ("\x1b[3;3H\x1b[9a", (3, 4)),
        ("\x1b[3;3H\x1b[9e", (4, 3)),
    ] {
        assert_eq!(place(&format!("{all}{bytes}")), wanted, "{bytes:?}");
    }
    assert_eq!(place("\x1b[2;4r\x1b[3;3H\x1b[9A"), (2, 3));
    assert_eq!(place("\x1b[2;4r\x1b[3;3H\x1b[9B"), (4, 3));
}

#[test]
fn side_margins_are_only_set_where_they_are_allowed() {
    // Without the mode, the same bytes save the cursor.
    assert_eq!(place("\x1b[3;3H\x1b[2;4s\x1b[5;5H\x1b[u"), (3, 3));
    assert_eq!(place("\x1b[3;3H\x1b[s\x1b[5;5H\x1b[u"), (3, 3));
    for end in ["\x1b[?69l", "\x1b[!p", "\x1bc", "\x1b#8"] {
        let wide = format!("{SIDES}{end}\x1b[H12345678");
        let mut screen = screen(8, 6);
        feed(&mut screen, wide);
        assert!(screen.text().starts_with("12345678"), "{end:?}");
    }
    // Turned upside down or outside, they are none.
    assert_eq!(place("\x1b[?69h\x1b[4;2s\x1b[9C"), (1, 8));
    let mut wide = screen(8, 6);
    feed(&mut wide, SIDES);
    wide.resize(PaneSize::new(9, 6));
    feed(&mut wide, "\x1b[H123456789");
    assert!(wide.text().starts_with("123456789"));
}

#[test]
fn the_first_row_goes_too_when_all_above_the_second_is_erased() {
    assert_eq!(shown("\x1b[2;2H\x1b[1J"), "\n  hij\nklmno\npqrst\nuvwxy");
}

#[test]
fn the_screens_share_a_cursor_or_keep_their_own_by_the_mode() {
    assert_eq!(place("\x1b[2;2H\x1b[?47h\x1b[5;5H\x1b[?47l"), (5, 5));
    assert_eq!(place("\x1b[2;2H\x1b[?1049h\x1b[5;5H\x1b[?1049l"), (2, 2));
    let saved = "\x1b[2;2H\x1b7\x1b[3;3H\x1b[?1047h\x1b[5;5H\x1b7\x1b[?1047l\x1b8";
    assert_eq!(place(saved), (2, 2));
    assert_eq!(place("\x1b[2;2H\x1b7\x1b[!p\x1b8"), (1, 1));
    // The place that was saved may be no more when the screen comes back.
    let mut smaller = screen(8, 6);
    feed(&mut smaller, "\x1b[6;8H\x1b7\x1b[?47h");
    smaller.resize(PaneSize::new(4, 3));
    feed(&mut smaller, "\x1b[?47l\x1b8x");
    assert_eq!((smaller.cursor().row, smaller.cursor().column), (2, 3));
}

#[test]
fn half_a_wide_character_never_stays() {
    for bytes in [
        "\x1b[H日本\x1b[?69h\x1b[2;3s\x1b[S",
        "\x1b[H日本\x1b[?69h\x1b[2;6s\x1b[1;2H\x1b[P",
        "\x1b[?69h\x1b[1;3s\x1b[H日本語",
        "\x1b[H日本\x1b[?69h\x1b[1;3s\x1b[H\x1b[@",
    ] {
        let mut screen = screen(8, 6);
        feed(&mut screen, bytes);
        for row in 0..6 {
            let flags: Vec<_> = screen
                .engine
                .row(row)
                .iter()
                .map(|cell| cell.flags)
                .collect();
            let leads = |at: usize| flags[at].contains(Flags::WIDE_CHAR);
            let follows = |at: usize| flags[at].contains(Flags::WIDE_CHAR_SPACER);
            for at in 0..flags.len() {
                assert!(
                    !leads(at) || (at + 1 < flags.len() && follows(at + 1)),
                    "{bytes:?}"
                );
                assert!(!follows(at) || (at > 0 && leads(at - 1)), "{bytes:?}");
            }
        }
    }
}

#[test]
fn a_wide_character_that_does_not_fit_wraps_or_is_left_out() {
    let mut fits = screen(8, 6);
    feed(&mut fits, "\x1b[?69h\x1b[2;4s\x1b[1;2H日日");
    assert_eq!(fits.text(), " 日\n 日");
    let mut narrow = screen(8, 6);
    feed(&mut narrow, "\x1b[?69h\x1b[2;3s\x1b[1;2Ha日b");
    assert_eq!(narrow.text(), " a\n 日\n b");
}
