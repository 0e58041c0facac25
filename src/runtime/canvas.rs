//! The content of the host terminal, and the bytes that change it into the next content.
//!
//! A whole frame paints everything and sends the difference. Where only the child has written, which is nearly
//! always, a part is painted and compared alone: the echo of a key does not wait for panels that have not changed.

use ratatui::{
    buffer::{Buffer, Cell},
    layout::{Position, Rect},
};

use crate::ui::{
    Depth,
    extra::{LinkRun, cell_span, span_apart},
    pane,
};
use pitstop_terminal::screen::{Patch, Screen};

use super::paint::{Abilities, Painter};

/// The cell of the cursor and whether it is visible there. Input methods open at a hidden one too.
pub type Cursor = (Position, bool);

/// The host terminal's cells as they were last sent.
#[derive(Debug)]
pub struct Canvas {
    painter: Painter,
    shown: Buffer,
    /// The buffer in which a whole frame is painted.
    next: Buffer,
    /// The buffers of a part as it was and as it becomes, kept to reuse their memory.
    part: (Buffer, Buffer),
    /// The cell to which the cursor was moved last, and whether it is visible there.
    cursor: Option<Cursor>,
    /// True if the host terminal shows something other than `shown`: it is cleared first.
    stale: bool,
    /// The size of the host terminal in cells: columns, rows.
    clip: (u16, u16),
}

impl Canvas {
    /// Creates a canvas on a terminal that was just cleared and hides its cursor; its size is in cells. The terminal has that size,
    /// too, until it is [clipped](Self::clip).
    pub fn new((columns, rows): (u16, u16), abilities: Abilities) -> Self {
        let area = Rect::new(0, 0, columns, rows);
        Self {
            painter: Painter::new(abilities),
            shown: Buffer::empty(area),
            next: Buffer::default(),
            part: (Buffer::default(), Buffer::default()),
            cursor: None,
            stale: false,
            clip: (columns, rows),
        }
    }

    /// Takes the size of the host terminal, if it is not that of what is shown: cells beyond are not sent.
    pub const fn clip(&mut self, size: (u16, u16)) {
        self.clip = size;
    }

    /// Takes the links of the next frame, in the order of their places.
    pub fn set_links(&mut self, links: Vec<LinkRun>) {
        self.painter.set_links(links);
    }

    /// Returns the size of the host terminal in cells: columns, rows.
    pub const fn clipped(&self) -> (u16, u16) {
        self.clip
    }

    /// Takes the size of what is shown and that of the host terminal, in cells, and forgets what is on it: the next whole frame
    /// clears it.
    pub fn renew(&mut self, (columns, rows): (u16, u16), clip: (u16, u16)) {
        self.clip = clip;
        let area = Rect::new(0, 0, columns, rows);
        self.shown = Buffer::empty(area);
        self.stale = true;
    }

    /// Paints everything and returns the bytes for what has changed: none if nothing has. `paint` returns the place of
    /// the cursor, if there is one.
    pub fn whole(&mut self, paint: impl FnOnce(&mut Buffer) -> Option<Cursor>) -> Vec<u8> {
        let stale = std::mem::take(&mut self.stale);
        if stale {
            self.painter.hide_cursor();
            self.painter.clear();
            self.cursor = None;
        }
        self.next.resize(self.shown.area);
        self.next.reset();
        let cursor = paint(&mut self.next);
        std::mem::swap(&mut self.shown, &mut self.next);
        let (changed, _) = changed_cells(&self.next, &self.shown);
        self.painter.draw(seen(changed, self.clip));
        self.finish(cursor)
    }

    /// Paints what has changed of the pane, whose cells lie in this rectangle, and returns the bytes for it. The rest of the
    /// screen must be as the last whole frame left it.
    pub fn pane(
        &mut self,
        area: Rect,
        screen: &Screen,
        damage: &[Patch],
        looks: (Depth, &str),
        cursor: Option<Cursor>,
    ) -> Vec<u8> {
        let (depth, hostname) = looks;
        if let [first, .., last] | [first @ last] = damage {
            let rows = first.rows.start..last.rows.end;
            self.set_links(pane::link_runs(area, screen, rows, depth, hostname));
        }
        for patch in damage {
            self.part(pane::patch_place(area, patch), |buf| {
                pane::copy_patch(buf, area, screen, patch, depth);
            });
        }
        self.finish(cursor)
    }

    /// Repaints a part.
    fn part(&mut self, area: Rect, paint: impl FnOnce(&mut Buffer)) {
        let area = area.intersection(self.shown.area);
        let (width, stride) = (usize::from(area.width), usize::from(self.shown.area.width));
        let start = usize::from(area.y) * stride + usize::from(area.x);
        let (before, after) = &mut self.part;
        before.resize(area);
        after.resize(area);
        for (row, cells) in after.content.chunks_exact_mut(width.max(1)).enumerate() {
            cells.clone_from_slice(&self.shown.content[start + row * stride..][..width]);
        }
        paint(after);
        swap(before, &mut self.shown, start);
        let (changed, harmed) = changed_cells(before, after);
        self.painter.draw(seen(changed, self.clip));
        swap(after, &mut self.shown, start);
        // Beyond the part nothing has changed, but the end of a row may have left its mark there.
        for (y, end) in harmed {
            let row = usize::from(y) * stride;
            let from = usize::from(area.right());
            let cells = &self.shown.content[row + from..row + stride];
            self.painter
                .draw(seen(behind(cells, (area.right(), y), end), self.clip));
        }
    }

    /// Moves the cursor to its place and returns the bytes of everything that was painted.
    fn finish(&mut self, cursor: Option<Cursor>) -> Vec<u8> {
        let (columns, rows) = self.clip;
        let cursor = cursor.filter(|(at, _)| at.x < columns && at.y < rows);
        // The cursor comes after the cells: writing a cell moves it.
        if let Some((at, _)) = cursor
            && (self.cursor != cursor || !self.painter.is_empty())
        {
            self.painter.set_cursor(at);
        }
        let seen = |cursor: Option<Cursor>| cursor.is_some_and(|(_, seen)| seen);
        match (seen(self.cursor), seen(cursor)) {
            (true, false) => self.painter.hide_cursor(),
            (false, true) => self.painter.show_cursor(),
            _ => {}
        }
        self.cursor = cursor;
        self.painter.take()
    }
}

/// A cell with its column and row.
type Placed<'a> = (u16, u16, &'a Cell);

/// Returns the cells that are whole on a terminal of this size.
fn seen(cells: Vec<Placed<'_>>, (columns, rows): (u16, u16)) -> impl Iterator<Item = Placed<'_>> {
    let is_seen = move |(x, y, cell): &Placed<'_>| {
        *y < rows && usize::from(*x) + cell_span(cell) <= usize::from(columns)
    };
    cells.into_iter().filter(is_seen)
}

/// Exchanges a part with the rectangle of its size that begins at that cell of the whole: a copy of so many cells costs
/// more than everything else that is done with them.
fn swap(part: &mut Buffer, whole: &mut Buffer, start: usize) {
    let (width, stride) = (usize::from(part.area.width), usize::from(whole.area.width));
    for (row, cells) in part.content.chunks_exact_mut(width.max(1)).enumerate() {
        cells.swap_with_slice(&mut whole.content[start + row * stride..][..width]);
    }
}

/// Returns the cells that differ, in the order of their places; the second cell of a wide character is never among them.
///
/// What is drawn may leave its mark on cells that do not differ, and these are drawn again: the second half of a wide character
/// whose first half is drawn over, and the cells on which a terminal that joins less than we do puts the rest of a cluster. For the
/// rows whose end leaves one behind the buffer, the second list has the row and the column behind the mark.
fn changed_cells<'a>(before: &Buffer, after: &'a Buffer) -> (Vec<Placed<'a>>, Vec<(u16, u16)>) {
    let (mut changed, mut beyond) = (Vec::new(), Vec::new());
    let columns = usize::from(after.area.width).max(1);
    let rows = before
        .content
        .chunks_exact(columns)
        .zip(after.content.chunks_exact(columns));
    for (y, (old, new)) in (after.area.y..).zip(rows) {
        let (mut x, mut harmed) = (0, 0);
        while let Some(cell) = new.get(x) {
            let end = x + cell_span(cell);
            if *cell != old[x] || x < harmed {
                changed.push((after.area.x + x as u16, y, cell));
                let covered = (x..end.min(columns)).map(|at| at + cell_span(&old[at]));
                harmed = covered.fold(harmed, usize::max).max(x + span_apart(cell));
            }
            x = end;
        }
        if harmed > columns {
            beyond.push((y, after.area.x.saturating_add(harmed as u16)));
        }
    }
    (changed, beyond)
}

/// Returns the cells from a place up to a column, and further as far as these leave marks themselves.
fn behind(cells: &[Cell], (left, y): (u16, u16), end: u16) -> Vec<Placed<'_>> {
    let (mut x, mut end) = (0, usize::from(end.saturating_sub(left)));
    let mut drawn = Vec::new();
    while let Some(cell) = cells.get(x).filter(|_| x < end) {
        drawn.push((left + x as u16, y, cell));
        end = end.max(x + span_apart(cell));
        x += cell_span(cell);
    }
    drawn
}

#[cfg(test)]
mod tests {
    use alacritty_terminal::{
        Term,
        event::VoidListener,
        term::{self, test::TermSize},
    };
    use pitstop_terminal::PaneSize;
    use ratatui::style::Style;
    use vte::ansi::{Processor, StdSyncHandler};

    use super::*;

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    #[test]
    fn a_part_sends_only_what_has_changed_in_it() {
        let mut canvas = Canvas::new((20, 4), Abilities::default());
        let first = canvas.whole(|buf| {
            buf.set_string(0, 0, "panel", ratatui::style::Style::default());
            buf.set_string(10, 2, "child", ratatui::style::Style::default());
            Some((Position::new(15, 2), true))
        });
        assert!(text(&first).contains("panel"));
        let area = Rect::new(10, 2, 10, 1);
        canvas.part(area, |buf| {
            assert_eq!(buf[(10, 2)].symbol(), "c", "it begins with what is shown");
            buf.set_string(15, 2, "x", ratatui::style::Style::default());
        });
        let echo = text(&canvas.finish(Some((Position::new(16, 2), true))));
        assert!(
            echo.contains('x') && echo.contains("\u{1b}[3;17H"),
            "{echo:?}"
        );
        assert!(!echo.contains("child") && echo.len() < 60, "{echo:?}");
        let again = canvas.whole(|buf| {
            buf.set_string(0, 0, "panel", ratatui::style::Style::default());
            buf.set_string(10, 2, "childx", ratatui::style::Style::default());
            Some((Position::new(16, 2), true))
        });
        assert_eq!(text(&again), "", "nothing has changed");
    }

    #[test]
    fn a_renewed_canvas_clears_and_paints_everything() {
        let mut canvas = Canvas::new((8, 2), Abilities::default());
        let paint = |buf: &mut Buffer| {
            buf.set_string(0, 0, "all", ratatui::style::Style::default());
            None
        };
        assert!(text(&canvas.whole(paint)).contains("all"));
        canvas.renew((10, 3), (10, 3));
        let again = text(&canvas.whole(paint));
        assert!(
            again.contains("\u{1b}[2J") && again.contains("all"),
            "{again:?}"
        );
        assert_eq!(canvas.shown.area, Rect::new(0, 0, 10, 3));
    }

    #[test]
    fn on_a_smaller_terminal_whole_characters_are_sent_and_no_cursor_beyond() {
        let mut canvas = Canvas::new((8, 2), Abilities::default());
        canvas.clip((4, 1));
        let sent = text(&canvas.whole(|buf| {
            buf.set_string(0, 0, "abc🚀x", ratatui::style::Style::default());
            buf.set_string(0, 1, "below", ratatui::style::Style::default());
            Some((Position::new(5, 0), true))
        }));
        assert!(sent.contains("abc"), "{sent:?}");
        assert!(!sent.contains(['🚀', 'x']), "{sent:?}");
        assert!(
            !sent.contains("below") && !sent.contains("\u{1b}[1;6H"),
            "{sent:?}"
        );
    }

    #[test]
    fn a_character_that_grows_over_half_of_another_leaves_nothing_of_it() {
        let mut canvas = Canvas::new((8, 1), Abilities::default());
        let plain = ratatui::style::Style::default();
        canvas.whole(|buf| {
            buf.set_string(0, 0, "⚠🚀e", plain);
            None
        });
        let grown = canvas.whole(|buf| {
            buf.set_string(0, 0, "⚠\u{fe0f} e", plain);
            None
        });
        assert!(text(&grown).contains("\u{1b}[1;3H "), "{grown:?}");
    }

    #[test]
    fn a_narrow_character_in_the_place_of_a_wide_one_leaves_nothing_of_it() {
        let mut canvas = Canvas::new((8, 1), Abilities::default());
        let plain = ratatui::style::Style::default();
        let paint = |text: &'static str| {
            move |buf: &mut Buffer| {
                buf.set_string(0, 0, text, plain);
                None
            }
        };
        canvas.whole(paint("🚀x"));
        let narrow = text(&canvas.whole(paint("e x")));
        assert!(narrow.ends_with("\u{1b}[1;1He "), "{narrow:?}");
    }

    #[test]
    fn what_a_cluster_at_the_end_of_a_part_may_have_run_over_is_drawn_again() {
        let mut canvas = Canvas::new((8, 1), Abilities::default());
        let plain = ratatui::style::Style::default();
        canvas.whole(|buf| {
            buf.set_string(4, 0, "┃│xy", plain);
            None
        });
        let cluster = "\u{1f469}\u{200d}\u{1f680}";
        canvas.part(Rect::new(0, 0, 4, 1), |buf| {
            buf[(2, 0)].set_symbol(cluster);
        });
        let sent = text(&canvas.finish(None));
        let behind = sent.split(cluster).nth(1).expect("it is drawn");
        assert!(behind.contains("┃│") && !behind.contains('x'), "{sent:?}");
        canvas.part(Rect::new(0, 0, 4, 1), |buf| {
            buf[(2, 0)].set_symbol("a");
        });
        assert!(!text(&canvas.finish(None)).contains('x'));
    }

    /// A host terminal as most are: it joins no code points into one character, and does not wrap.
    fn outer((columns, rows): (u16, u16)) -> Term<VoidListener> {
        let size = TermSize::new(columns.into(), rows.into());
        let mut outer = Term::new(term::Config::default(), &size, VoidListener);
        take(&mut outer, b"\x1b[?7l");
        outer
    }

    fn take(outer: &mut Term<VoidListener>, bytes: &[u8]) {
        Processor::<StdSyncHandler>::new().advance(outer, bytes);
    }

    fn cells_of(outer: &Term<VoidListener>) -> Vec<term::cell::Cell> {
        let cells = outer.grid().display_iter();
        cells.map(|at| at.cell.clone()).collect()
    }

    #[test]
    fn frames_of_parts_leave_what_one_frame_of_everything_shows() {
        const PARTS: [&str; 10] = [
            "text ",
            "\u{65e5}\u{672c}",
            "\u{1f469}\u{200d}\u{1f680}",
            "\u{26a0}\u{fe0f}",
            "e\u{301}",
            "\x1b[48;5;19m",
            "\x1b[0m",
            "\x1b[K",
            "\x1b[2X",
            "\x1b[2J",
        ];
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for round in 0..400 {
            let size = (20 + random(10) as u16, 6);
            let pane = Rect::new(1, 1, size.0 - 1 - random(4) as u16, 4);
            let mut screen = Screen::new(PaneSize::new(pane.width, pane.height), 10);
            let whole = |canvas: &mut Canvas, screen: &Screen| {
                canvas.whole(|buf| {
                    for y in 0..buf.area.height {
                        buf.set_string(0, y, "|".repeat(buf.area.width.into()), Style::default());
                    }
                    pane::copy_cells(buf, pane, screen, Depth::TrueColor);
                    None
                })
            };
            let (mut canvas, mut host) = (Canvas::new(size, Abilities::default()), outer(size));
            take(&mut host, &whole(&mut canvas, &screen));
            screen.set_drawn();
            for _ in 0..8 {
                let mut text = String::new();
                for _ in 0..=random(4) {
                    text += &format!("\x1b[{};{}H", 1 + random(4), 1 + random(28));
                    text += PARTS[random(10) as usize];
                    text += PARTS[random(10) as usize];
                }
                screen.feed_at_once(text.as_bytes());
                let bytes = if random(4) == 0 {
                    screen.set_drawn();
                    whole(&mut canvas, &screen)
                } else {
                    let damage = screen.take_damage();
                    canvas.pane(pane, &screen, &damage, (Depth::TrueColor, ""), None)
                };
                take(&mut host, &bytes);
                let mut fresh = outer(size);
                let all = whole(&mut Canvas::new(size, Abilities::default()), &screen);
                take(&mut fresh, &all);
                assert_eq!(cells_of(&host), cells_of(&fresh), "{round}: {text:?}");
            }
        }
    }

    #[test]
    fn a_part_beyond_the_edge_is_cut() {
        let mut canvas = Canvas::new((8, 2), Abilities::default());
        canvas.part(Rect::new(6, 1, 10, 10), |buf| {
            assert_eq!(buf.area, Rect::new(6, 1, 2, 1));
        });
        canvas.part(Rect::new(20, 20, 3, 3), |_| {});
        assert_eq!(text(&canvas.finish(None)), "");
    }
}
