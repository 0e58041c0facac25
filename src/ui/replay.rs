//! A recording being played, over everything but the footer.

use std::time::Duration;

use ratatui::{buffer::Buffer, layout::Rect};

use pitstop_core::{app::Model, lineage::IterationId};

use super::{frame, pane, theme::Theme};

/// Draws the recording of an iteration.
pub(super) fn draw(
    buf: &mut Buffer,
    whole: Rect,
    model: &Model,
    iteration: IterationId,
    theme: &Theme,
) {
    let Some(replay) = &model.view.replay else {
        return;
    };
    let area = frame::body(whole);
    let size = replay.screen().size();
    let room = (area.width.saturating_sub(2), area.height.saturating_sub(2));
    let (columns, rows) = (size.columns(), size.rows());
    let mut title = format!("Recording of iteration {iteration} · {columns}×{rows}");
    if columns > room.0 || rows > room.1 {
        let (columns, rows) = (room.0.min(columns), room.1.min(rows));
        title.push_str(&format!(", {columns}×{rows} of it shown"));
    }
    let (_, inner) = frame::page(buf, whole, &title, theme);
    // The end of the screen, where a prompt would be, is shown unless the view was moved.
    let hidden = replay.hidden(inner.height);
    let lifted = replay.lifted().min(hidden);
    let first = hidden - lifted;
    pane::cells_from(buf, inner, replay.screen(), first, theme.depth);
    let sign = match (replay.is_behind(), replay.is_playing()) {
        (true, _) => "…",
        (_, true) => "▶",
        (_, false) => "‖",
    };
    let mut mark = format!(
        "{sign} {} / {} {}",
        clock_label(replay.clock()),
        clock_label(replay.cast().length()),
        replay.speed()
    );
    let above = replay.screen().scroll_offset() + usize::from(lifted);
    if above > 0 {
        mark.push_str(&format!(" · −{above}"));
    }
    let mut hints = vec![
        "Esc close",
        if replay.is_playing() {
            "Space pause"
        } else {
            "Space play"
        },
        "←→ 5 s",
        ",/. step",
        "-/+ speed",
        "0-9 jump",
    ];
    // The hint is needed most if rows are hidden.
    hints.insert(if hidden > 0 { 2 } else { hints.len() }, "↑↓ scroll");
    frame::foot(buf, area, &hints, &mark, theme);
}

/// Returns a time as `3:07` or `1:02:09`.
fn clock_label(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}
