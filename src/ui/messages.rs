//! The message log: the messages of the footer and the notifications, with times, newest first.

use ratatui::{buffer::Buffer, layout::Rect, text::Line};

use pitstop_core::app::Model;

use super::{frame, text, theme::Theme};

/// Draws the log over everything but the footer.
pub(super) fn draw(buf: &mut Buffer, whole: Rect, model: &Model, scroll: u16, theme: &Theme) {
    let (area, inner) = frame::page(buf, whole, "Messages", theme);
    let log = &model.view.log;
    if log.is_empty() {
        frame::rows(buf, inner, &[frame::row(" No messages yet.", theme.dim)]);
    }
    let cells = usize::from(inner.width);
    let rows = log.iter().rev().enumerate().flat_map(|(at, message)| {
        let style = if message.bad { theme.bad } else { theme.text };
        let sign = if message.bad { "! " } else { "  " };
        let time = format!(" {} ", model.now.time_of_day(message.at, "%H:%M:%S"));
        let indent = text::width(&time) + 2;
        let lead = text::Lead {
            first: vec![(time, theme.dim), (sign.to_owned(), theme.bad)],
            rest: vec![(" ".repeat(indent), theme.dim)],
        };
        let said = text::safe(&message.text).into_owned();
        let rows: Vec<Line<'static>> = text::wrap(&[(said, style)], &lead, cells);
        rows.into_iter().map(move |row| (at, row))
    });
    let window = text::window(rows, scroll, inner.height);
    window.record(&model.view.bounds);
    frame::rows(buf, inner, &window.rows);
    let mark = text::count(log.len(), "message");
    let scrolls = window.scrolls().then_some("↑↓ PgUp/PgDn scroll");
    let hints: Vec<&str> = std::iter::once("Esc close").chain(scrolls).collect();
    frame::foot(buf, area, &hints, &mark, theme);
}
