//! The drawing for a host terminal without UTF-8: each sign becomes the nearest one of ASCII. The hosted program's own
//! cells stay as they are.

use ratatui::{buffer::Buffer, layout::Rect};

/// Replaces every sign that Pitstop draws; `pane` holds the cells of the hosted program, if they are seen.
pub(super) fn replace_signs(buf: &mut Buffer, pane: Option<Rect>) {
    let area = buf.area;
    for position in area.positions() {
        if pane.is_some_and(|pane| pane.contains(position)) {
            continue;
        }
        let cell = &mut buf[position];
        if let Some(sign) = cell.symbol().chars().next().and_then(nearest_ascii) {
            cell.set_char(sign);
        }
    }
}

/// Returns the nearest sign of ASCII, for one of Pitstop's own signs that is not ASCII.
const fn nearest_ascii(c: char) -> Option<char> {
    Some(match c {
        '─' | '━' | '┄' | '–' | '−' => '-',
        '│' | '┃' | '┤' | '▏' | '▎' | '‖' => '|',
        '╭' | '╮' | '╰' | '╯' | '┏' | '┓' | '┗' | '┛' | '┴' => '+',
        '█' | '▉' | '▊' | '▋' | '▌' | '▍' | '▇' | '▆' | '▅' => '#',
        '▄' | '▃' | '▂' | '▁' | '▀' => '=',
        '┊' => ':',
        '·' | '…' => '.',
        '▸' | '▶' | '→' => '>',
        '▾' | '↓' => 'v',
        '↑' => '^',
        '←' => '<',
        '☑' | '✓' | '×' => 'x',
        '☐' => '_',
        '✗' | '≠' => '!',
        '•' => '*',
        '“' | '”' => '"',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_ours_become_ascii_and_the_panes_cells_stay() {
        let mut buf = Buffer::with_lines(["┏▸x┓", "┃█┃┃", "┗━━┛"]);
        replace_signs(&mut buf, Some(Rect::new(1, 1, 1, 1)));
        assert_eq!(buf, Buffer::with_lines(["+>x+", "|█||", "+--+"]));
    }
}
