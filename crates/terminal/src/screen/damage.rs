//! The parts of the viewport that look different from when they were last drawn.
//!
//! The engine reports which rows were written to. A program that redraws its whole screen mostly writes the same text
//! again, so these rows are compared with their cells as they were drawn: the comparison of a cell costs a small part of
//! its drawing.

use std::ops::Range;

use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::term::color::{COUNT, Colors};

use super::PaneSize;
use super::cells::is_spacer;

/// A part of the viewport, in cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The rows of the part.
    pub rows: Range<u16>,
    /// The columns of the part.
    pub columns: Range<u16>,
}

impl Patch {
    /// The whole viewport, whatever its size.
    pub const ALL: Self = Self::rows(0..u16::MAX);

    /// Creates a part of whole rows.
    pub const fn rows(rows: Range<u16>) -> Self {
        Self {
            rows,
            columns: 0..u16::MAX,
        }
    }
}

/// The viewport's cells as they were last drawn.
#[derive(Default)]
pub(super) struct Drawn {
    cells: Vec<Cell>,
    size: Option<PaneSize>,
    /// The colours that the child has redefined; a cell only names them.
    colours: Option<Colors>,
}

impl Drawn {
    /// Returns the changed parts of these rows, the only ones that can have changed, from top to bottom; they then count as drawn.
    pub(super) fn take_damage<'a>(
        &mut self,
        size: PaneSize,
        colours: &Colors,
        rows: Range<u16>,
        row_of: impl Fn(u16) -> &'a [Cell],
    ) -> Vec<Patch> {
        let columns = usize::from(size.columns());
        let known = self.colours.as_ref();
        let recoloured = known.is_none_or(|known| (0..COUNT).any(|at| known[at] != colours[at]));
        if recoloured || self.size != Some(size) {
            self.set(size, colours, row_of);
            return vec![Patch {
                rows: 0..size.rows(),
                columns: 0..size.columns(),
            }];
        }
        let mut damage: Vec<Patch> = Vec::new();
        for row in rows {
            let before = &mut self.cells[usize::from(row) * columns..][..columns];
            let now = row_of(row);
            let Some(changed) = change(before, now) else {
                continue;
            };
            before[changed.clone()].clone_from_slice(&now[changed.clone()]);
            let columns = changed.start as u16..changed.end as u16;
            match damage.last_mut() {
                Some(above) if above.rows.end == row && above.columns == columns => {
                    above.rows.end += 1;
                }
                _ => damage.push(Patch {
                    rows: row..row + 1,
                    columns,
                }),
            }
        }
        damage
    }

    /// Records that the whole viewport was drawn.
    pub(super) fn set<'a>(
        &mut self,
        size: PaneSize,
        colours: &Colors,
        row_of: impl Fn(u16) -> &'a [Cell],
    ) {
        self.colours = Some(*colours);
        self.size = Some(size);
        self.cells.clear();
        self.cells
            .extend((0..size.rows()).flat_map(|row| row_of(row).iter().cloned()));
    }
}

/// Returns the range of columns in which a row has changed. A row with characters of more than one cell or of more than one
/// code point, or with links, changes as a whole: the drawing of its cells depends on their neighbours.
fn change(before: &[Cell], now: &[Cell]) -> Option<Range<usize>> {
    let differ = |at: &usize| before[*at] != now[*at];
    let first = (0..now.len()).find(differ)?;
    let last = (first..now.len()).rfind(differ)?;
    let tied = |cell: &Cell| {
        cell.extra.is_some() || cell.flags.contains(Flags::WIDE_CHAR) || is_spacer(cell)
    };
    if before.iter().chain(now).any(tied) {
        Some(0..now.len())
    } else {
        Some(first..last + 1)
    }
}
