//! A recording being played, over everything but the footer.

use std::time::Duration;

use ratatui::{buffer::Buffer, layout::Rect};

use crate::{app::Model, lineage::IterationId};

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
    let area = Rect {
        height: whole.height.saturating_sub(1),
        ..whole
    };
    frame::clear(buf, area);
    let size = replay.screen().size();
    let title = format!(
        "Recording of iteration {iteration} · {}×{}",
        size.columns(),
        size.rows()
    );
    let inner = frame::border(buf, area, frame::title(&title, true, theme), true, theme);
    pane::cells_from_bottom(buf, inner, replay.screen(), theme.depth);
    let sign = match (replay.is_behind(), replay.is_playing()) {
        (true, _) => "…",
        (_, true) => "▶",
        (_, false) => "‖",
    };
    let mut mark = format!(
        "{sign} {} / {} {}",
        clock(replay.clock()),
        clock(replay.cast().length()),
        replay.speed()
    );
    if replay.screen().scroll_offset() > 0 {
        mark.push_str(&format!(" · −{}", replay.screen().scroll_offset()));
    }
    let hints = [
        "Esc close",
        "Space play",
        "←→ 5 s",
        ",/. step",
        "-/+ speed",
        "0-9 go to",
        "↑↓ scroll",
    ]
    .map(str::to_owned);
    frame::foot(buf, area, &hints, &mark, theme);
}

/// `3:07`, `1:02:09`.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}
