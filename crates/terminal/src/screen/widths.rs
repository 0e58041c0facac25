//! The number of cells that a code point takes, as the hosted client counts them.
//!
//! Claude Code lays out its lines by its own count (measured with 2.1.330, by the table of its runtime and its own list of spacing
//! marks), and positions its cursor by it: a screen that counts differently has gaps, or loses letters. The count is that of
//! `unicode-width` except for the ranges below; clusters such as emoji with a joiner are in `engine/cluster.rs`.

use unicode_width::UnicodeWidthChar as _;

/// The code points whose number of cells differs from that of `unicode-width`: first, last, cells.
#[rustfmt::skip]
const OTHERS: [(u32, u32, usize); 76] = [
    // Signs that precede or enclose a number, and letters that have no ink by themselves.
    (0x600, 0x604, 0), (0x6dd, 0x6dd, 0), (0x890, 0x891, 1), (0x980, 0x980, 0),
    // Spacing vowel signs: Bengali, Oriya, Tamil, Kannada, Malayalam, Sinhala.
    (0x9be, 0x9be, 1), (0x9d7, 0x9d7, 1), (0xb3e, 0xb3e, 1), (0xb57, 0xb57, 1), (0xbbe, 0xbbe, 1), (0xbd7, 0xbd7, 1),
    (0xc80, 0xc80, 0), (0xcc0, 0xcc0, 1), (0xcc2, 0xcc2, 1), (0xcc7, 0xcc8, 1), (0xcca, 0xccb, 1), (0xcd5, 0xcd6, 1),
    (0xd3a, 0xd3a, 0), (0xd3e, 0xd3e, 1), (0xd4e, 0xd4e, 1), (0xd57, 0xd57, 1), (0xdcf, 0xdcf, 1), (0xddf, 0xddf, 1),
    // The same for scripts of the Philippines and of Indonesia.
    (0x1715, 0x1715, 1), (0x1734, 0x1734, 1), (0x17d8, 0x17d8, 2), (0x1b35, 0x1b35, 1), (0x1b3b, 0x1b3b, 1),
    (0x1b3d, 0x1b3d, 1), (0x1b43, 0x1b44, 1), (0x1baa, 0x1baa, 1), (0x1bf2, 0x1bf3, 1),
    // Pictures and signs that take two cells without a selector.
    (0x261d, 0x261d, 2), (0x26f9, 0x26f9, 2), (0x270c, 0x270d, 2), (0x2d7f, 0x2d7f, 0), (0x2e3a, 0x2e3b, 2),
    // Marks and letters of Korean.
    (0x302e, 0x302f, 2), (0x3164, 0x3164, 2), (0x3248, 0x324f, 2),
    // Spacing signs of further scripts of India, and of musical notation.
    (0xa8fa, 0xa8fa, 1), (0xa953, 0xa953, 1), (0xa9c0, 0xa9c0, 1), (0xffa0, 0xffa0, 1), (0x111c0, 0x111c0, 1),
    (0x111c2, 0x111c3, 1), (0x11235, 0x11235, 1), (0x1133e, 0x1133e, 1), (0x1134d, 0x1134d, 1), (0x11357, 0x11357, 1),
    (0x113b8, 0x113b8, 1), (0x113c2, 0x113c2, 1), (0x113c5, 0x113c5, 1), (0x113c7, 0x113c9, 1), (0x113cf, 0x113cf, 1),
    (0x113d1, 0x113d1, 1), (0x114b0, 0x114b0, 1), (0x114bd, 0x114bd, 1), (0x115af, 0x115af, 1), (0x116b6, 0x116b6, 1),
    (0x11930, 0x11930, 1), (0x1193d, 0x1193d, 1), (0x1193f, 0x1193f, 1), (0x11941, 0x11941, 1), (0x11a84, 0x11a89, 1),
    (0x11d46, 0x11d46, 1), (0x11f02, 0x11f02, 1), (0x11f41, 0x11f41, 1), (0x16ff0, 0x16ff1, 2), (0x1d165, 0x1d166, 1),
    (0x1d16d, 0x1d172, 1),
    // Letters of flags, and more pictures that take two cells without a selector.
    (0x1f1e6, 0x1f1ff, 2), (0x1f3cb, 0x1f3cc, 2), (0x1f574, 0x1f575, 2), (0x1f590, 0x1f590, 2), (0x1f93b, 0x1f93b, 2),
    (0x1f946, 0x1f946, 2),
];

/// Returns the number of cells that a code point takes by itself: 0 for one that joins the character before it.
pub fn cells_of(c: char) -> usize {
    let number = u32::from(c);
    let at = OTHERS.partition_point(|(_, last, _)| *last < number);
    match OTHERS.get(at) {
        Some((first, _, cells)) if *first <= number => *cells,
        _ => c.width().unwrap_or(0).min(2),
    }
}
