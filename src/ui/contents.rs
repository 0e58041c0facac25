//! What the context window holds: the client's own categories as bars, with their parts and with the key or command that makes each smaller.
//!
//! ```text
//!  Messages        110k  77 %  ███████████████████▍      F5: fresh session ~21k
//!    results of tools  82k
//!    what you said    1.2k
//!  MCP tools         8k   6 %  █▍                        /mcp switches a server off
//!    linear            6k
//!  not in the window until it is used: System tools (deferred) 12.5k
//! ```

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};

use pitstop_agent::bridge::{Category, CategoryKind};
use pitstop_base::keymap::Action;
use pitstop_core::app::{Model, facts::fresh_tokens};
use pitstop_transcript::Tokens;

use super::{frame, gauge::EIGHTHS, text, theme::Theme};

/// The widest bar, in cells.
const BAR: usize = 40;

/// The narrowest bar that still shows a difference between shares, in cells.
const LEAST_BAR: usize = 5;

/// The cells of a figure.
const FIGURE: usize = 7;

/// Draws the page over everything but the footer.
pub(super) fn draw(buf: &mut Buffer, whole: Rect, model: &Model, scroll: u16, theme: &Theme) {
    let rows = reported_categories(model);
    let used = Category::of_kind(rows, CategoryKind::Used);
    let all: u64 = used.iter().map(|row| row.tokens.0).sum();
    let mut name = "What fills the window".to_owned();
    if !used.is_empty() {
        name.push_str(&format!(" · {}", text::tokens(Tokens(all))));
    }
    let (area, inner) = frame::page(buf, whole, &name, theme);
    let cells = usize::from(inner.width);
    let mut lines = Vec::new();
    if used.is_empty() {
        let said = "Not known: the client reports it through the bridge, from its first figure on.";
        lines.push(frame::row(text::fit(said, cells), theme.dim));
    }
    let widest = used.iter().map(|row| text::width(&row.name)).max();
    let widest = widest.unwrap_or(0);
    let bar = bar_width(&used, widest, cells, model);
    for row in used {
        let line = category_line(row, all, widest, bar, model, theme);
        lines.push(frame::cut(line, cells));
        lines.extend(row.parts.iter().map(|part| {
            let said = format!(
                "   {:>FIGURE$}  {}",
                text::tokens(part.tokens),
                text::safe(&part.name)
            );
            frame::row(text::fit(&said, cells), theme.dim)
        }));
    }
    let later = Category::of_kind(rows, CategoryKind::Deferred);
    lines.extend(later.into_iter().map(|row| {
        let (name, tokens) = (text::safe(&row.name), text::tokens(row.tokens));
        let said = format!(" not in the window until it is used: {name} {tokens}");
        frame::row(text::fit(&said, cells), theme.dim)
    }));
    let window = text::window(lines.into_iter().enumerate(), scroll, inner.height);
    window.record(&model.view.bounds);
    frame::rows(buf, inner, &window.rows);
    let scrolls = window.scrolls().then_some("↑↓ scroll");
    let hints: Vec<&str> = ["c chart", "Esc close"]
        .into_iter()
        .chain(scrolls)
        .collect();
    frame::foot(buf, area, &hints, "", theme);
}

/// Returns the client's categories, as it last reported them.
fn reported_categories(model: &Model) -> &[Category] {
    let reported = model.session.agent.bridge.of(model.session.id);
    let usage = reported.and_then(|reported| reported.usage.as_ref());
    usage.map_or(&[], |usage| &usage.categories)
}

/// Returns the width of the widest bar: a third of the page, and less where the hints would be cut.
fn bar_width(used: &[&Category], widest: usize, cells: usize, model: &Model) -> usize {
    let hints = used.iter().filter_map(|row| way_out(&row.name, model));
    let hint = hints.map(|hint| text::width(&hint)).max().unwrap_or(0);
    // The blanks and the percentage stand beside the name, the figure and the hint.
    let rest = cells.saturating_sub(widest + FIGURE + hint + 11);
    rest.clamp(LEAST_BAR, BAR).min(cells / 3)
}

/// Returns the line of a category.
fn category_line(
    row: &Category,
    all: u64,
    widest: usize,
    bar: usize,
    model: &Model,
    theme: &Theme,
) -> Line<'static> {
    let share = row.tokens.0 as f64 / all.max(1) as f64;
    let name = text::safe(&row.name).into_owned();
    let gap = " ".repeat(widest.saturating_sub(text::width(&name)));
    let tokens = text::tokens(row.tokens);
    let percent = text::percent(share * 100.0);
    let eighths = ((share * (bar * 8) as f64).round() as usize).max(1);
    let full = EIGHTHS[7].repeat(eighths / 8);
    let rest = (eighths % 8).checked_sub(1).map_or("", |at| EIGHTHS[at]);
    let mut line = Line::from(vec![
        Span::styled(format!(" {name}{gap}"), theme.text),
        Span::styled(format!(" {tokens:>FIGURE$} {percent:>3} %  "), theme.text),
        Span::styled(format!("{full}{rest}"), theme.accent),
    ]);
    if let Some(hint) = way_out(&row.name, model) {
        line.push_span(Span::styled(format!("  {hint}"), theme.dim));
    }
    line
}

/// Returns what takes a category out of the window, by its name in the client's `/context` (2.1.332).
fn way_out(name: &str, model: &Model) -> Option<String> {
    Some(match name {
        "Messages" => {
            let key = model.keys().hint(Action::Reboot)?;
            let fresh = text::rough(fresh_tokens(model)?);
            format!("{key}: fresh session ~{fresh}")
        }
        "MCP tools" => "/mcp switches a server off".to_owned(),
        "Memory files" => "/memory edits them".to_owned(),
        "Skills" => "/skills lists them, /plugin removes them".to_owned(),
        "Custom agents" => "/agents removes one".to_owned(),
        "System tools" => "--disallowedTools NAME leaves one out".to_owned(),
        _ => return None,
    })
}
