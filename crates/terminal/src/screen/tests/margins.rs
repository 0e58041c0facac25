//! Tests of margins, and of the other functions that the engine does not have by itself.

use super::*;

/// Five rows of five letters on a screen of eight columns and six rows.
const LETTERS: &str = "abcde\r\nfghij\r\nklmno\r\npqrst\r\nuvwxy";

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

/// Returns the cursor's row and column after these bytes, from 1.
fn place(bytes: &str) -> (u16, u16) {
    let mut screen = screen(8, 6);
    feed(&mut screen, bytes);
    let cursor = screen.cursor();
    (cursor.row + 1, cursor.column + 1)
}

#[test]
fn the_origin_moves_places() {
    all_show(&[
        (
            "\x1b[2;4r\x1b[?6h\x1b[2;2HX",
            "abcde fghij kXmno pqrst uvwxy",
        ),
        (
            "\x1b[2;4r\x1b[?6h\x1b[9;4HX",
            "abcde fghij klmno pqrXt uvwxy",
        ),
        (
            "\x1b[2;4r\x1b[?6h\x1b[2d\x1b[2GX",
            "abcde fghij kXmno pqrst uvwxy",
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
fn text_scrolls_between_the_margins() {
    for (bytes, rows) in [
        ("\x1b[4;1HABCDEFGHI", "abcde klmno ABCDEFGH I uvwxy"),
        ("\x1b[4;3H\n", "abcde klmno pqrst  uvwxy"),
        ("\x1b[5;5H\nX", "abcde fghij klmno pqrst uvwxy ....X"),
        ("\x1b[2;3H\x1bM", "abcde  fghij klmno uvwxy"),
        ("\x1b[2S", "abcde pqrst   uvwxy"),
        ("\x1b[T", "abcde  fghij klmno uvwxy"),
        ("\x1b[65535S", "abcde    uvwxy"),
        ("\x1b[3;3H\x1b[L", "abcde fghij  klmno uvwxy"),
        ("\x1b[3;3H\x1b[M", "abcde fghij pqrst  uvwxy"),
        ("\x1b[5;3H\x1b[M", "abcde fghij klmno pqrst uvwxy"),
    ] {
        all_show(&[(&format!("\x1b[2;4r{bytes}"), rows)]);
    }
}

#[test]
fn the_cursor_stops_at_the_margins_it_is_inside_of() {
    for (bytes, wanted) in [
        ("\x1b[3;3H\x1b[9A", (2, 3)),
        ("\x1b[1;3H\x1b[9B", (4, 3)),
        ("\x1b[5;3H\x1b[9B", (6, 3)),
        ("\x1b[5;3H\x1b[9A", (2, 3)),
        ("\x1b[3;3H\x1b[9E", (4, 1)),
        ("\x1b[3;3H\x1b[9F", (2, 1)),
        ("\x1b[3;3H\x1b[9e", (4, 3)),
    ] {
        assert_eq!(place(&format!("\x1b[2;4r{bytes}")), wanted, "{bytes:?}");
    }
}

#[test]
fn margins_at_the_sides_are_not_known() {
    // The same bytes save the cursor, with numbers or without.
    for bytes in ["\x1b[s", "\x1b[2;4s", "\x1b[?69h\x1b[2;4s"] {
        let saved = format!("{bytes}\x1b[5;5H\x1b[u");
        assert_eq!(place(&format!("\x1b[3;3H{saved}")), (3, 3), "{bytes:?}");
    }
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
    // The saved position may no longer exist when the screen comes back.
    let mut smaller = screen(8, 6);
    feed(&mut smaller, "\x1b[6;8H\x1b7\x1b[?47h");
    smaller.resize(PaneSize::new(4, 3));
    feed(&mut smaller, "\x1b[?47l\x1b8x");
    assert_eq!((smaller.cursor().row, smaller.cursor().column), (2, 3));
}

#[test]
fn no_text_before_the_cursor_is_deleted() {
    all_show(&[
        ("\x1b[2;3H\x1b[9P", "abcde fg klmno pqrst uvwxy"),
        ("\x1b[2;3H\x1b[7P", "abcde fg klmno pqrst uvwxy"),
        ("\x1b[2;3H\x1b[2P", "abcde fgj klmno pqrst uvwxy"),
    ]);
}

#[test]
fn half_of_a_wide_character_does_not_stay() {
    for (bytes, row) in [
        ("\x1b[2G\x1b[K", ""),
        ("\x1b[2G\x1b[J", ""),
        ("\x1b[1G\x1b[1K", "  本x"),
        ("\x1b[1G\x1b[1J", "  本x"),
        ("\x1b[1G\x1b[X", "  本x"),
        ("\x1b[2G\x1b[P", " 本x"),
        ("\x1b[2G\x1b[@", "   本x"),
        ("\x1b[1G\x1b[3X", "    x"),
    ] {
        let mut screen = screen(8, 1);
        feed(&mut screen, format!("日本x{bytes}"));
        assert_eq!(screen.text(), row, "{bytes:?}");
    }
}
