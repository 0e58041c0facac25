//! stub
pub mod theme;
use crate::{app::{Model, layout}, pane::screen::Screen};
/// stub
pub fn draw(frame: &mut ratatui::Frame, model: &Model, screen: &Screen, _: &theme::Theme) {
    let l = layout::layout(model);
    let inner = l.pane_inner();
    let buffer = frame.buffer_mut();
    screen.for_each_cell(|cell| {
        let (x, y) = (inner.x + cell.column, inner.y + cell.row);
        if let Some(c) = buffer.cell_mut((x, y)) { c.set_symbol(cell.text); }
    });
    let status = crate::app::report::status(model);
    let text = format!("{:?} {:?} {:?} {:?}", status.agent.state, status.context, status.reboot, model.notices.back().map(|n| &n.text));
    buffer.set_stringn(l.footer.x, l.footer.y, &text, l.footer.width as usize, ratatui::style::Style::default());
    if let Some(o) = &model.overlay { buffer.set_stringn(0, 0, format!("{o:?}"), 80, ratatui::style::Style::default()); }
}
/// stub
pub struct Cursor { /// s
 pub visible: bool, /// s
 pub row: u16, /// s
 pub column: u16, /// s
 pub style: u8 }
/// stub
pub fn cursor(_: &Model, _: &Screen) -> Option<Cursor> { None }
