//! The properties of the child's cells that ratatui's cells lack: a kind of underline, a line above, and a link.
//!
//! They are stored in places that ratatui compares but has no use for, so that a frame still sends only what has changed:
//!
//! ```text
//!   Cell.modifier         bits 0–8 ratatui's · 9–11 kind of underline · 12 "is a link" · 13 a line above
//!   Cell.underline_color  of a link: 24 bits of its number; the true colour is in its LinkRun
//! ```
//!
//! The targets are kept beside the frame, by place. A panel that lies over a link has cells of its own, without the bit.

use ratatui::{
    buffer::{Cell, CellDiffOption},
    layout::Position,
    style::{Color, Modifier},
};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use pitstop_terminal::screen::Underline;

const UNDERLINE_SHIFT: u32 = 9;
const UNDERLINE_BITS: u16 = 0b111 << UNDERLINE_SHIFT;
const LINK_BIT: u16 = 1 << 12;
const OVERLINE_BIT: u16 = 1 << 13;

/// Cells of one row that link to the same target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRun {
    /// The row in the host terminal, from 0.
    pub row: u16,
    /// The first column, from 0.
    pub first: u16,
    /// The last column.
    pub last: u16,
    /// The number that distinguishes links: the same for all parts of one.
    pub number: u32,
    /// The target: printable ASCII, of a scheme that is passed on.
    pub target: String,
    /// The colour of the underline.
    pub underline: Color,
}

/// Returns the modifier with this kind of underline.
pub fn with_underline(modifier: Modifier, kind: Underline) -> Modifier {
    let number: u16 = match kind {
        Underline::None => return modifier,
        Underline::Single => 0,
        Underline::Double => 2,
        Underline::Curly => 3,
        Underline::Dotted => 4,
        Underline::Dashed => 5,
    };
    let bits = modifier.bits() | Modifier::UNDERLINED.bits() | number << UNDERLINE_SHIFT;
    Modifier::from_bits_retain(bits)
}

/// Returns the kind of underline as SGR 4 numbers them, 1 for a plain one; 0 for none.
pub fn underline_number(modifier: Modifier) -> u16 {
    if !modifier.contains(Modifier::UNDERLINED) {
        return 0;
    }
    ((modifier.bits() & UNDERLINE_BITS) >> UNDERLINE_SHIFT).max(1)
}

/// Returns the modifier with a line above the text.
pub fn with_overline(modifier: Modifier) -> Modifier {
    Modifier::from_bits_retain(modifier.bits() | OVERLINE_BIT)
}

/// Reports whether a modifier has a line above the text.
pub fn is_overlined(modifier: Modifier) -> bool {
    modifier.bits() & OVERLINE_BIT != 0
}

/// Returns the number of cells of the host terminal that a cell's symbol takes: 1 or 2.
pub fn cell_span(cell: &Cell) -> usize {
    match (cell.diff_option, cell.symbol()) {
        (CellDiffOption::ForcedWidth(width), _) => usize::from(width.get()).min(2),
        (_, symbol) if symbol.len() < 2 => 1,
        (_, symbol) => symbol.width().clamp(1, 2),
    }
}

/// Returns the number of cells that a symbol takes on a terminal that joins none of its code points.
pub fn span_apart(cell: &Cell) -> usize {
    let symbol = cell.symbol();
    if symbol.len() <= 4 {
        return cell_span(cell);
    }
    symbol.chars().filter_map(UnicodeWidthChar::width).sum()
}

/// Marks a cell as part of a link.
pub fn mark_link(cell: &mut Cell, number: u32) {
    cell.modifier = Modifier::from_bits_retain(cell.modifier.bits() | LINK_BIT);
    let [_, r, g, b] = number.to_be_bytes();
    cell.underline_color = Color::Rgb(r, g, b);
}

/// Reports whether a cell is part of a link.
pub fn is_link(cell: &Cell) -> bool {
    cell.modifier.bits() & LINK_BIT != 0
}

/// Returns the run that a place lies in; runs are in the order of their places.
pub fn run_at(runs: &[LinkRun], at: Position) -> Option<&LinkRun> {
    let behind = runs.partition_point(|run| (run.row, run.first) <= (at.y, at.x));
    let run = runs.get(behind.checked_sub(1)?)?;
    (run.row == at.y && at.x <= run.last).then_some(run)
}

/// Returns a number for a link, from its target and the child's own id for it (FNV-1a).
pub fn link_number(target: &str, id: &str) -> u32 {
    let bytes = target.bytes().chain([0xff]).chain(id.bytes());
    bytes.fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// Reports whether a target may be handed to the host terminal, which may open it: web pages, mail and files of this
/// machine, written as addresses are, in printable ASCII. Pitstop never opens it.
pub fn may_pass(target: &str, hostname: &str) -> bool {
    if target.len() > TARGET_LIMIT || !target.bytes().all(|byte| (0x21..=0x7e).contains(&byte)) {
        return false;
    }
    let Some((scheme, rest)) = target.split_once(':') else {
        return false;
    };
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => rest
            .strip_prefix("//")
            .is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', '#'])),
        "mailto" => rest.contains('@'),
        "file" => rest.strip_prefix("//").is_some_and(|rest| {
            let host = rest.split_once('/').map(|(host, _)| host);
            host.is_some_and(|host| {
                host.is_empty()
                    || host.eq_ignore_ascii_case("localhost")
                    || (!hostname.is_empty() && host.eq_ignore_ascii_case(hostname))
            })
        }),
        _ => false,
    }
}

/// The longest target passed on, in bytes: the length that browsers and terminals accept.
const TARGET_LIMIT: usize = 2083;

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests the targets that no sequence can bring; those of a child are sent through all layers in
    /// `tests/it/fidelity.rs`.
    #[test]
    fn what_no_sequence_brings_passes_no_more_than_the_rest() {
        for target in [
            "",
            ":",
            "http:///x",
            "https://#x",
            "mailto:",
            "https://example.org/\u{1b}]8;;\u{7}",
            "https://example.org/\u{7}",
            "https://example.org/\n",
        ] {
            assert!(!may_pass(target, "here"), "{target:?}");
        }
        let long = |length: usize| format!("https://{:a>length$}", "", length = length - 8);
        assert!(may_pass(&long(TARGET_LIMIT), "here"));
        assert!(!may_pass(&long(TARGET_LIMIT + 1), "here"));
        assert!(may_pass("file://HERE/x", "here"));
        assert!(!may_pass("file://x/", ""));
    }

    #[test]
    fn kinds_of_underline_ride_in_the_modifier() {
        let kinds = [
            (Underline::None, 0),
            (Underline::Single, 1),
            (Underline::Double, 2),
            (Underline::Curly, 3),
            (Underline::Dotted, 4),
            (Underline::Dashed, 5),
        ];
        for (kind, number) in kinds {
            let modifier = with_underline(Modifier::BOLD, kind);
            assert_eq!(underline_number(modifier), number);
            assert_eq!(modifier.contains(Modifier::UNDERLINED), number > 0);
            assert!(modifier.contains(Modifier::BOLD));
        }
        assert_eq!(underline_number(Modifier::UNDERLINED), 1);
    }

    #[test]
    fn a_place_finds_its_run() {
        let run = |row, first, last| LinkRun {
            row,
            first,
            last,
            number: 1,
            target: "https://a".to_owned(),
            underline: Color::Reset,
        };
        let runs = [run(1, 2, 4), run(1, 7, 7), run(3, 0, 9)];
        let found = |x, y| run_at(&runs, Position { x, y }).map(|run| run.first);
        assert_eq!(found(2, 1), Some(2));
        assert_eq!(found(4, 1), Some(2));
        assert_eq!(found(5, 1), None);
        assert_eq!(found(7, 1), Some(7));
        assert_eq!(found(0, 2), None);
        assert_eq!(found(0, 3), Some(0));
        assert_eq!(found(1, 0), None);
    }
}
