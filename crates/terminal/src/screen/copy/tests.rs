use std::time::Instant;

use proptest::prelude::*;

use crate::PaneSize;
use crate::copy::{CopyMark, CopyOrder, Motion, SelectionKind, Words};
use crate::screen::{Screen, Scroll};

const HISTORY: usize = 500;

fn feed(screen: &mut Screen, text: &str) {
    screen.feed(
        text.replace('\n', "\r\n").as_bytes(),
        #[allow(clippy::disallowed_methods, reason = "tests have a clock")]
        Instant::now(),
    );
}

/// Returns a screen with this text in copy mode, with the cursor at its oldest cell.
fn reading(columns: u16, rows: u16, text: &str) -> Screen {
    let mut screen = Screen::new(PaneSize::new(columns, rows), HISTORY);
    feed(&mut screen, text);
    screen.copy(&CopyOrder::Enter);
    screen.copy(&CopyOrder::Move(Motion::Oldest));
    screen
}

fn go(screen: &mut Screen, motions: impl IntoIterator<Item = Motion>) {
    for motion in motions {
        screen.copy(&CopyOrder::Move(motion));
    }
}

fn select(screen: &mut Screen, kind: SelectionKind) {
    screen.copy(&CopyOrder::Select(kind));
}

fn copied(screen: &mut Screen) -> String {
    screen.copy(&CopyOrder::Copy).copied.expect("a selection")
}

fn at(screen: &Screen) -> (u16, u16) {
    let cursor = screen.cursor();
    (cursor.column, cursor.row)
}

fn search(screen: &mut Screen, pattern: &str, backward: bool) -> Option<String> {
    screen.copy(&CopyOrder::SearchBegin);
    let pattern = pattern.to_owned();
    let said = screen
        .copy(&CopyOrder::SearchFor { pattern, backward })
        .said;
    screen.copy(&CopyOrder::SearchEnd { keep: true });
    said
}

#[test]
fn words_begin_and_end_as_in_vi() {
    let mut screen = reading(40, 3, "foo.bar  baz_1\n  next line");
    let w = Motion::WordForward(Words::Small);
    let columns = |screen: &mut Screen, motion, count: usize| {
        let mut seen = Vec::new();
        for _ in 0..count {
            go(screen, [motion]);
            seen.push(at(screen));
        }
        seen
    };
    assert_eq!(
        columns(&mut screen, w, 5),
        [(3, 0), (4, 0), (9, 0), (2, 1), (7, 1)]
    );
    let b = Motion::WordBack(Words::Small);
    assert_eq!(
        columns(&mut screen, b, 6),
        [(2, 1), (9, 0), (4, 0), (3, 0), (0, 0), (0, 0)]
    );
    let e = Motion::WordEnd(Words::Small);
    assert_eq!(
        columns(&mut screen, e, 5),
        [(2, 0), (3, 0), (6, 0), (13, 0), (5, 1)]
    );
    go(&mut screen, [Motion::Oldest]);
    let big = Motion::WordForward(Words::Big);
    assert_eq!(columns(&mut screen, big, 2), [(9, 0), (2, 1)]);
    let big = Motion::WordEnd(Words::Big);
    go(&mut screen, [Motion::Oldest]);
    assert_eq!(columns(&mut screen, big, 2), [(6, 0), (13, 0)]);
}

#[test]
fn lines_have_a_beginning_a_text_and_an_end_over_their_rows() {
    let mut screen = reading(10, 4, "  abcdefghijklmn\nx");
    go(&mut screen, [Motion::LineEnd]);
    assert_eq!(at(&screen), (5, 1));
    go(&mut screen, [Motion::LineText]);
    assert_eq!(at(&screen), (2, 0));
    go(&mut screen, [Motion::Down, Motion::LineStart]);
    assert_eq!(at(&screen), (0, 0));
}

#[test]
fn the_view_follows_the_cursor_and_pages() {
    let lines: Vec<String> = (0..100).map(|n| format!("line {n}")).collect();
    let mut screen = reading(20, 10, &lines.join("\n"));
    assert_eq!((at(&screen), screen.scroll_offset()), ((0, 0), 90));
    go(&mut screen, [Motion::HalfPages(-1)]);
    assert_eq!((at(&screen), screen.scroll_offset()), ((0, 0), 85));
    go(&mut screen, [Motion::Low, Motion::Down, Motion::Down]);
    assert_eq!((at(&screen), screen.scroll_offset()), ((0, 9), 83));
    go(&mut screen, [Motion::View(5)]);
    assert_eq!((at(&screen), screen.scroll_offset()), ((0, 9), 88));
    go(&mut screen, [Motion::Newest]);
    assert_eq!((at(&screen), screen.scroll_offset()), ((0, 9), 0));
    go(&mut screen, [Motion::Middle]);
    assert_eq!(at(&screen), (0, 4));
    go(&mut screen, [Motion::High, Motion::Up]);
    assert_eq!((at(&screen), screen.scroll_offset()), ((0, 0), 1));
}

#[test]
fn paragraphs_are_parted_by_empty_lines() {
    let mut screen = reading(20, 8, "a\nb\n\nc\n\n\nd");
    let rows: Vec<u16> = [Motion::ParagraphForward; 3]
        .map(|motion| {
            go(&mut screen, [motion]);
            at(&screen).1
        })
        .to_vec();
    assert_eq!(rows, [2, 4, 6]);
    go(&mut screen, [Motion::ParagraphBack]);
    assert_eq!(at(&screen).1, 5);
}

#[test]
fn a_character_selection_joins_wrapped_rows_and_drops_blanks_behind_lines() {
    let mut screen = reading(10, 6, "abcdefghijklm   \nsecond\n\nlast");
    select(&mut screen, SelectionKind::Characters);
    go(&mut screen, [Motion::Newest, Motion::LineEnd]);
    assert_eq!(copied(&mut screen), "abcdefghijklm\nsecond\n\nlast");
    // A blank between words is a part of what was selected.
    screen.copy(&CopyOrder::Unselect);
    feed(&mut screen, "\x1b[H");
    let mut screen = reading(20, 3, "one two");
    select(&mut screen, SelectionKind::Characters);
    go(&mut screen, [Motion::Right; 3]);
    assert_eq!(copied(&mut screen), "one ");
}

#[test]
fn a_line_selection_takes_all_rows_of_a_line() {
    let mut screen = reading(10, 6, "zero\nabcdefghijklm\nlast");
    go(&mut screen, [Motion::Down, Motion::Down]);
    select(&mut screen, SelectionKind::Lines);
    assert_eq!(copied(&mut screen), "abcdefghijklm");
    go(&mut screen, [Motion::Up, Motion::Up]);
    assert_eq!(copied(&mut screen), "zero\nabcdefghijklm");
    let line = screen.copy(&CopyOrder::CopyLine).copied;
    assert_eq!(line.as_deref(), Some("zero"));
}

#[test]
fn a_block_is_the_same_from_any_corner() {
    let text = "abcd\nefgh\nijkl";
    let corners: [&[Motion]; 4] = [
        &[Motion::Right],
        &[Motion::Right, Motion::Down, Motion::Down],
        &[Motion::Right, Motion::Right],
        &[Motion::Right, Motion::Right, Motion::Down, Motion::Down],
    ];
    let opposite: [&[Motion]; 4] = [
        &[Motion::Right, Motion::Down, Motion::Down],
        &[Motion::Right, Motion::Up, Motion::Up],
        &[Motion::Left, Motion::Down, Motion::Down],
        &[Motion::Left, Motion::Up, Motion::Up],
    ];
    for (corner, to) in corners.into_iter().zip(opposite) {
        let mut screen = reading(8, 4, text);
        go(&mut screen, corner.iter().copied());
        select(&mut screen, SelectionKind::Block);
        go(&mut screen, to.iter().copied());
        assert_eq!(copied(&mut screen), "bc\nfg\njk");
    }
}

#[test]
fn wide_characters_are_whole_whichever_half_is_met() {
    let mut screen = reading(10, 3, "a日本b\nabcdef");
    go(&mut screen, [Motion::Right, Motion::Right]);
    assert_eq!(at(&screen), (3, 0), "a step goes over a whole character");
    go(&mut screen, [Motion::Left]);
    assert_eq!(at(&screen), (1, 0));
    screen.copy(&CopyOrder::Press {
        column: 2,
        row: 0,
        clicks: 1,
    });
    select(&mut screen, SelectionKind::Characters);
    assert_eq!(copied(&mut screen), "日");
    screen.copy(&CopyOrder::Unselect);
    go(
        &mut screen,
        [
            Motion::Down,
            Motion::LineStart,
            Motion::Right,
            Motion::Right,
        ],
    );
    select(&mut screen, SelectionKind::Block);
    go(&mut screen, [Motion::Up]);
    assert_eq!(copied(&mut screen), "日\nbc");
}

#[test]
fn the_other_end_of_a_selection_can_be_moved() {
    let mut screen = reading(20, 3, "one two three");
    go(&mut screen, [Motion::WordForward(Words::Small)]);
    select(&mut screen, SelectionKind::Characters);
    go(&mut screen, [Motion::WordEnd(Words::Small)]);
    assert_eq!(copied(&mut screen), "two");
    screen.copy(&CopyOrder::SwapEnds);
    go(&mut screen, [Motion::LineStart]);
    assert_eq!(copied(&mut screen), "one two");
}

#[test]
fn a_selection_survives_output_and_scrolling() {
    let mut screen = reading(20, 4, "alpha\nbeta\ngamma");
    assert!(!screen.has_new_output());
    select(&mut screen, SelectionKind::Characters);
    go(&mut screen, [Motion::LineEnd]);
    // More than the scrollback holds, and a screen that is cleared with it.
    feed(&mut screen, &"flood\n".repeat(HISTORY * 2));
    feed(&mut screen, "\x1b[2J\x1b[3J\x1b[H");
    screen.scroll(Scroll::Lines(2));
    assert_eq!(copied(&mut screen), "alpha");
    assert!(screen.text().starts_with("alpha\nbeta"));
    assert!(screen.has_new_output());
    screen.copy(&CopyOrder::Refresh);
    assert!(!screen.has_new_output());
    assert_eq!(screen.text(), "");
    screen.copy(&CopyOrder::Leave);
    assert_eq!(screen.scroll_offset(), 0);
}

#[test]
fn new_output_is_reported_while_the_view_is_above_it_and_repaints_are_none() {
    let mut screen = Screen::new(PaneSize::new(20, 4), HISTORY);
    feed(&mut screen, &"line\n".repeat(20));
    screen.scroll(Scroll::Lines(3));
    assert!(!screen.has_new_output());
    feed(&mut screen, "\x1b[A\r\x1b[Kline\n");
    assert!(!screen.has_new_output(), "the same line painted again");
    let shown = screen.text();
    feed(&mut screen, "more\n");
    assert!(screen.has_new_output());
    assert_eq!(screen.text(), shown, "the view stays where it is");
    screen.scroll(Scroll::Bottom);
    assert!(!screen.has_new_output());
}

#[test]
fn what_is_shown_of_an_unfinished_frame_is_what_is_read() {
    let mut screen = Screen::new(PaneSize::new(20, 3), HISTORY);
    feed(&mut screen, "before");
    feed(&mut screen, "\x1b[?2026h\x1b[2J\x1b[Hhalf");
    screen.copy(&CopyOrder::Enter);
    assert_eq!(screen.text(), "before");
}

#[test]
fn searches_find_forward_backward_and_round() {
    let mut screen = reading(20, 3, "one\ntwo\nthree\ntwo again\nfive");
    assert_eq!(search(&mut screen, "two", false), None);
    assert_eq!((at(&screen), screen.scroll_offset()), ((0, 1), 2));
    let next = CopyOrder::SearchAgain { reverse: false };
    let back = CopyOrder::SearchAgain { reverse: true };
    assert_eq!(screen.copy(&next).said, None);
    assert_eq!((at(&screen), screen.scroll_offset()), ((0, 2), 1));
    let said = screen.copy(&next).said;
    assert_eq!(said.as_deref(), Some("went round the newest line"));
    let said = screen.copy(&back).said;
    assert_eq!(said.as_deref(), Some("went round the oldest line"));
    assert_eq!(search(&mut screen, "one", true), None);
    assert_eq!((at(&screen), screen.scroll_offset()), ((0, 0), 2));
    assert_eq!(
        search(&mut screen, "nine", false).as_deref(),
        Some("not found")
    );
}

#[test]
fn case_counts_only_if_the_pattern_has_a_capital() {
    let mut screen = reading(30, 3, "start\nWORD word");
    assert_eq!(search(&mut screen, "word", false), None);
    assert_eq!(at(&screen), (0, 1));
    assert_eq!(
        search(&mut screen, "WORD", false).as_deref(),
        Some("went round the newest line")
    );
    go(&mut screen, [Motion::Oldest]);
    assert_eq!(
        search(&mut screen, r"\Sord\W*$", false),
        None,
        "a class is no capital"
    );
    assert_eq!(at(&screen), (5, 1));
}

#[test]
fn a_pattern_finds_what_was_wrapped_and_what_has_accents() {
    let mut screen = reading(8, 5, "xx a long word here\nne\u{301}e");
    assert_eq!(search(&mut screen, "long word", false), None);
    assert_eq!(at(&screen), (5, 0));
    assert_eq!(search(&mut screen, "ne\u{301}e", false), None);
    assert_eq!(at(&screen), (0, 3));
    assert_eq!(search(&mut screen, "here$", true), None);
    assert_eq!(at(&screen), (7, 1));
}

#[test]
fn a_search_shows_as_it_is_typed_and_can_be_given_up() {
    let mut screen = reading(20, 3, "one\ntwo\nthree");
    screen.copy(&CopyOrder::SearchBegin);
    let typed = |pattern: &str| CopyOrder::SearchFor {
        pattern: pattern.to_owned(),
        backward: false,
    };
    screen.copy(&typed("t"));
    assert_eq!(at(&screen), (0, 1));
    screen.copy(&typed("th"));
    assert_eq!(at(&screen), (0, 2));
    let outcome = screen.copy(&typed("th("));
    assert!(outcome.bad_pattern);
    assert_eq!(
        outcome.said.as_deref(),
        Some("not a pattern: unclosed group")
    );
    assert_eq!(at(&screen), (0, 0), "a bad pattern leads nowhere");
    screen.copy(&typed("th"));
    screen.copy(&CopyOrder::SearchEnd { keep: false });
    assert_eq!(at(&screen), (0, 0));
    let said = screen.copy(&CopyOrder::SearchAgain { reverse: false }).said;
    assert!(said.is_some_and(|said| said.starts_with("nothing was searched")));
}

#[test]
fn matches_and_selection_are_marked_in_the_view() {
    let mut screen = reading(10, 3, "ab ab\nxxxxxxxxab\nab");
    search(&mut screen, "ab", false);
    let marks = |screen: &Screen| {
        let mut marks = Vec::new();
        screen.for_each_mark(|row, from, to, mark| marks.push((row, from, to, mark)));
        marks
    };
    let found = CopyMark::Found;
    assert_eq!(
        marks(&screen),
        [
            (0, 0, 1, found),
            (0, 3, 4, found),
            (1, 8, 9, found),
            (2, 0, 1, found)
        ]
    );
    screen.copy(&CopyOrder::Move(Motion::LineStart));
    select(&mut screen, SelectionKind::Characters);
    go(&mut screen, [Motion::Down]);
    assert!(marks(&screen).contains(&(0, 0, 9, CopyMark::Selected)));
    assert!(marks(&screen).contains(&(1, 0, 0, CopyMark::Selected)));
}

#[test]
fn clicks_take_cells_words_and_lines() {
    let mut screen = reading(30, 4, "see src/main.rs:12, now\nnext");
    let press = |clicks, column| CopyOrder::Press {
        column,
        row: 0,
        clicks,
    };
    screen.copy(&press(2, 8));
    assert_eq!(copied(&mut screen), "src/main.rs:12");
    screen.copy(&press(3, 8));
    assert_eq!(copied(&mut screen), "see src/main.rs:12, now");
    screen.copy(&press(1, 1));
    assert_eq!(screen.copy(&CopyOrder::Copy).copied, None);
    screen.copy(&CopyOrder::Drag { column: 5, row: 0 });
    assert_eq!(copied(&mut screen), "ee sr");
    // A word that was clicked stays selected whichever way the mouse goes.
    screen.copy(&press(2, 8));
    screen.copy(&CopyOrder::Drag { column: 1, row: 0 });
    assert_eq!(copied(&mut screen), "ee src/main.rs:12");
}

#[test]
fn a_drag_beyond_the_edge_scrolls() {
    let lines: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    let mut screen = Screen::new(PaneSize::new(10, 4), HISTORY);
    feed(&mut screen, &lines.join("\n"));
    screen.copy(&CopyOrder::Enter);
    screen.copy(&CopyOrder::Press {
        column: 0,
        row: 0,
        clicks: 1,
    });
    for _ in 0..3 {
        screen.copy(&CopyOrder::Drag { column: 0, row: -1 });
    }
    assert_eq!(screen.scroll_offset(), 3);
    assert_eq!(copied(&mut screen), "13\n14\n15\n1");
}

#[test]
fn cursor_and_selection_stay_with_their_text_when_the_pane_is_resized() {
    let mut screen = reading(
        20,
        6,
        "first line here\nsecond line is longer than it\nthird",
    );
    assert_eq!(search(&mut screen, "longer", false), None);
    select(&mut screen, SelectionKind::Characters);
    go(&mut screen, [Motion::WordEnd(Words::Small)]);
    for (columns, rows) in [
        (7, 6),
        (40, 3),
        (9, 9),
        (3, 2),
        (20, 6),
        (200, 50),
        (1, 1),
        (20, 6),
    ] {
        screen.resize(PaneSize::new(columns, rows));
        assert_eq!(copied(&mut screen), "longer", "at {columns}×{rows}");
        let cursor = screen.cursor();
        assert!(cursor.column < columns && cursor.row < rows);
    }
}

#[test]
fn orders_without_a_still_do_nothing() {
    let mut screen = Screen::new(PaneSize::new(10, 4), HISTORY);
    let outcome = screen.copy(&CopyOrder::Copy);
    assert_eq!(outcome, crate::copy::CopyOutcome::default());
    screen.copy(&CopyOrder::Leave);
}

fn any_order() -> impl Strategy<Value = CopyOrder> {
    use CopyOrder as Order;
    let words = || prop_oneof![Just(Words::Small), Just(Words::Big)];
    let motion = prop_oneof![
        prop::sample::select(vec![
            Motion::Left,
            Motion::Right,
            Motion::Up,
            Motion::Down,
            Motion::LineStart,
            Motion::LineText,
            Motion::LineEnd,
            Motion::Oldest,
            Motion::Newest,
            Motion::High,
            Motion::Middle,
            Motion::Low,
            Motion::ParagraphBack,
            Motion::ParagraphForward,
        ]),
        words().prop_map(Motion::WordForward),
        words().prop_map(Motion::WordBack),
        words().prop_map(Motion::WordEnd),
        (-9..9).prop_map(Motion::Rows),
        (-3..3).prop_map(Motion::HalfPages),
        (-9..9).prop_map(Motion::View),
    ];
    let pattern = prop::sample::select(vec![
        "a",
        "",
        "(",
        "b+",
        "$",
        "^",
        ".*",
        "日",
        "x{999}{999}",
    ]);
    prop_oneof![
        8 => motion.prop_map(Order::Move),
        2 => prop::sample::select(vec![
            SelectionKind::Characters,
            SelectionKind::Lines,
            SelectionKind::Block,
        ]).prop_map(Order::Select),
        2 => prop::sample::select(vec![
            Order::Enter,
            Order::Refresh,
            Order::SwapEnds,
            Order::Unselect,
            Order::SearchBegin,
            Order::SearchEnd { keep: true },
            Order::SearchEnd { keep: false },
            Order::SearchAgain { reverse: false },
            Order::SearchAgain { reverse: true },
            Order::Copy,
            Order::CopyLine,
        ]),
        1 => (pattern, any::<bool>()).prop_map(|(pattern, backward)| Order::SearchFor {
            pattern: pattern.to_owned(),
            backward,
        }),
        1 => (0_u16..50, 0_u16..50, 0_u8..5).prop_map(|(column, row, clicks)| Order::Press {
            column,
            row,
            clicks,
        }),
        1 => (0_u16..50, -5..50).prop_map(|(column, row)| Order::Drag { column, row }),
    ]
}

proptest! {
    #[test]
    fn no_order_breaks_a_still(
        text in "[ab日é \n\t]{0,200}",
        columns in 1_u16..30,
        rows in 1_u16..12,
        orders in prop::collection::vec((any_order(), 1_u16..30, 1_u16..12, 0..8), 0..40),
    ) {
        let mut screen = Screen::new(PaneSize::new(columns, rows), 50);
        feed(&mut screen, &text);
        screen.copy(&CopyOrder::Enter);
        for (order, columns, rows, resize) in orders {
            if resize == 0 {
                screen.resize(PaneSize::new(columns, rows));
            }
            screen.copy(&order);
            let size = screen.size();
            let cursor = screen.cursor();
            prop_assert!(cursor.column < size.columns() && cursor.row < size.rows());
            let mut inside = true;
            screen.for_each_mark(|row, from, to, _| {
                inside &= row < size.rows() && from <= to && to < size.columns();
            });
            prop_assert!(inside);
            screen.for_each_cell(|_| {});
        }
    }
}

#[test]
fn a_search_that_is_typed_goes_on_over_a_new_size() {
    let mut screen = reading(20, 3, "one\ntwo\ntwin");
    screen.copy(&CopyOrder::SearchBegin);
    let typed = |pattern: &str| CopyOrder::SearchFor {
        pattern: pattern.to_owned(),
        backward: false,
    };
    screen.copy(&typed("t"));
    screen.resize(PaneSize::new(30, 3));
    screen.copy(&typed("tw"));
    assert_eq!(at(&screen), (0, 1));
    screen.copy(&CopyOrder::SearchEnd { keep: false });
    assert_eq!(at(&screen), (0, 0));
    let again = screen.copy(&CopyOrder::SearchAgain { reverse: false });
    assert!(
        again
            .said
            .is_some_and(|said| said.starts_with("nothing was searched"))
    );
}
