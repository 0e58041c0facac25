//! The footer: one line with the agent's state, the mode of reboots, the latest message, and keys.
//!
//! ```text
//!  idle · reboots: ask   ! the newest notice    F1 help  F5 reboot  F8 zoom
//! ```
//!
//! While the pointer is on a link, its target is shown behind the state: see [`hover`].
//!
//! The less important parts give way: the hints first, then the autonomous run, then how reboots are decided, then the
//! gauge's bar; the notice is cut. The banner shows the condition that a reboot waits for.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Modifier,
    text::{Line, Span},
};

use pitstop_base::keymap::Action;
use pitstop_core::{
    api::wire::AgentState,
    app::{
        Model, activity, facts,
        layout::Layout,
        model::{Focus, Notice, Overlay},
        reboot::{self, compaction},
    },
    lineage::journal::Step,
};
use pitstop_terminal::screen::{Progress, Screen};

use super::{banner, copy, frame, gauge, hover, moment, pane, run, text, theme::Theme, tour};

/// Draws the footer.
pub(super) fn draw(
    buf: &mut Buffer,
    layout: &Layout,
    model: &Model,
    screen: &Screen,
    theme: &Theme,
) {
    let area = layout.footer.intersection(buf.area);
    if area.is_empty() {
        return;
    }
    let cells = usize::from(area.width);
    // A pattern that is being typed has the line for itself for a moment.
    let searches = model.view.copy.search().is_some();
    let narrow = !layout.bordered && !model.view.prefixed && hover::hovered_target(model).is_none();
    let short = (narrow && !searches)
        .then(|| banner::short_line(model, cells / 2, theme))
        .flatten();
    let taken = short.as_ref().map_or(0, |short| short.width() + 1);
    let beside = || beside_copy(model, layout, theme);
    let copied = copy::footer_line(model, screen, cells.saturating_sub(taken), beside, theme);
    if let Some(short) = short {
        draw_banner(buf, layout, model, copied.as_ref(), short, theme);
        return;
    }
    if let Some(line) = copied {
        buf.set_line(area.x, area.y, &line, area.width);
        return;
    }
    let latest = latest_message(model, theme);
    // Without a border of the pane, the tour has the line for itself.
    let tours = !layout.bordered && latest.is_none() && !model.view.prefixed;
    if let Some(line) = tour::tour_line(model, cells, theme).filter(|_| tours) {
        buf.set_line(area.x, area.y, &line, area.width);
        return;
    }
    let wanted = latest
        .as_ref()
        .map_or(0, |latest| text::width(&latest.content) + 3);
    let left = frame::cut(left_parts(layout, model, screen, wanted, theme), cells);
    let used = left.width();
    buf.set_line(area.x, area.y, &left, area.width);

    // A notice is cut before help is left out.
    let room = cells.saturating_sub(used + wanted + 2);
    let help = if cells >= 60 {
        hint_cells(model, Action::Help, "help")
    } else {
        0
    };
    let least = help.min(cells.saturating_sub(used + 2));
    let hints = hints_line(model, layout, theme, room.max(least));
    let hint_cells = hints.width();
    if hint_cells > 0 {
        let x = area.right() - hint_cells as u16;
        buf.set_line(x, area.y, &hints, hint_cells as u16);
    }
    if let Some(latest) = latest {
        let room = cells.saturating_sub(used + hint_cells + 3);
        if room >= 4 {
            let latest = frame::row(text::fit(&latest.content, room), latest.style);
            buf.set_line(area.x + used as u16 + 2, area.y, &latest, room as u16);
        }
    }
}

/// Says at the right end of the last row that a terminal shows how to leave one that only watches, and how the screen comes to fit into
/// one that is smaller. The terminal has this size.
pub fn draw_terminal_hint(
    buf: &mut Buffer,
    (columns, rows): (u16, u16),
    watches: bool,
    theme: &Theme,
) {
    let shown = Rect::new(0, 0, columns, rows).intersection(buf.area);
    let hint = match (watches, shown != buf.area, theme.ascii) {
        (true, true, false) => " cut off · watching · q leaves ",
        (true, true, true) => " cut off, watching, q leaves ",
        (true, false, false) => " watching · q leaves ",
        (true, false, true) => " watching, q leaves ",
        (false, true, _) => " cut off: type or click to fit ",
        (false, false, _) => return,
    };
    let cells = text::width(hint) as u16;
    if shown.height > 0 && cells <= shown.width {
        let (x, y) = (shown.right() - cells, shown.bottom() - 1);
        buf.set_string(x, y, hint, theme.accent);
    }
}

/// Reports whether the context panel, if there is one, lies below this overlay, without its figure being shown in it.
const fn covers_gauge(overlay: Option<Overlay>) -> bool {
    matches!(
        overlay,
        Some(Overlay::Help { .. } | Overlay::Messages { .. } | Overlay::Replay { .. })
    )
}

/// Returns the parts that are shown beside copy mode, as far as there is room for them.
fn beside_copy(model: &Model, layout: &Layout, theme: &Theme) -> Vec<Span<'static>> {
    let mut beside = vec![Span::styled(state_label(model), state_style(model, theme))];
    if layout.strip {
        beside.extend(gauge::words(model, theme));
    }
    beside
}

/// Returns the parts that are always shown, beside a message that wants so many cells.
fn left_parts(
    layout: &Layout,
    model: &Model,
    screen: &Screen,
    wanted: usize,
    theme: &Theme,
) -> Line<'static> {
    let cells = usize::from(layout.footer.width);
    let mut left: Vec<Span<'static>> = vec![Span::raw(" ")];
    if layout.strip || covers_gauge(model.view.overlay) {
        let room = match cells {
            100.. => 32,
            _ => (cells / 4).clamp(12, 24),
        };
        left.extend(gauge::strip(model, theme, room).spans);
        left.push(Span::styled(" · ", theme.dim));
    }
    left.extend([
        Span::styled(state_label(model), state_style(model, theme)),
        Span::styled(progress_label(model), theme.dim),
    ]);
    // The notice goes after a while; that something is not on the disk does not.
    left.extend(unsaved_data(model).map(|text| Span::styled(format!(" · {text}"), theme.bad)));
    if layout.strip && !layout.bordered && screen.scroll_offset() > 0 {
        let mark = pane::scroll_mark(screen).trim_end().to_owned();
        left.push(Span::styled(" ·", theme.dim));
        left.push(Span::styled(mark, theme.accent));
    }
    let decided = Span::styled(mode_label(model), theme.dim);
    let mut parts = run::run_parts(model, theme);
    // A link's target needs its room whole more than this does.
    let target = hover::hovered_target(model).map_or(0, |target| text::width(target) + 3);
    // A reboot that goes on has been decided on, and of a run how far it is matters more.
    if !parts.is_empty() {
        parts.push(decided);
    } else if !moment::is_under_way(model)
        && spans_width(&left) + 3 + decided.width() + wanted.min(40) + target <= cells
    {
        left.extend([Span::styled(" · ", theme.dim), decided]);
    }
    if let Some(target) = hover::hovered_target(model) {
        left = with_target(left, target, cells, wanted.min(cells / 3), theme);
    }
    // A new message is worth more than the parts that are always shown.
    let reserved = wanted.min(cells / 2);
    let mut used = spans_width(&left);
    // The first hints keep their place: a person who watches a run may know no key yet.
    let pause = hint_cells(model, Action::Pause, run::pause_does(model));
    let keys = hint_cells(model, Action::Help, "help") + pause;
    for part in parts {
        let part = [Span::styled(" · ", theme.dim), part];
        if used + spans_width(&part) + reserved.max(keys) > cells {
            break;
        }
        used += spans_width(&part);
        left.extend(part);
    }
    Line::from(left)
}

/// Returns the data that does not reach the disk, for as long as that is so.
fn unsaved_data(model: &Model) -> impl Iterator<Item = &'static str> {
    let (outside, notes) = (&model.outside, &model.draft.notes);
    let away = outside.store_away.as_ref().map(|away| away.is_kept);
    let missing = [
        (away == Some(true), "database away"),
        (away == Some(false), "history in memory"),
        (outside.places_missing.is_some(), "pitstop's files are gone"),
        (notes.unsaved().is_some(), "scratchpad not saved"),
    ];
    let missing = missing.into_iter();
    missing.filter_map(|(is_missing, said)| is_missing.then_some(said))
}

/// Draws the footer with the banner of a reboot, where the pane has no border for it. A notice has its time beside it, and so has
/// copy mode, while the banner is cut to its short form.
fn draw_banner(
    buf: &mut Buffer,
    layout: &Layout,
    model: &Model,
    copied: Option<&Line<'static>>,
    short: Line<'static>,
    theme: &Theme,
) {
    let area = layout.footer.intersection(buf.area);
    let cells = usize::from(area.width);
    let notice = model.view.notices.back();
    let notice = notice.map(|notice| Line::from(of_notice(notice, theme)));
    let Some(beside) = copied.cloned().or(notice) else {
        let mut left = vec![Span::raw(" ")];
        // The answers to a compaction need more room than the bar leaves.
        if compaction::is_held(model) {
            left.extend(gauge::words(model, theme));
        } else {
            left.extend(gauge::strip(model, theme, 15).spans);
        }
        // The agent's state gives way where the banner would not be whole, and so does the rest before a compaction.
        let state = format!(" · {}", state_label(model));
        if compaction::is_held(model) {
            let help = hint_cells(model, Action::Help, "help");
            let room = cells.saturating_sub(banner::least_width(model, theme) + 1 + help);
            if spans_width(&left) > room {
                left.truncate(1);
            } else if spans_width(&left) + text::width(&state) <= room {
                left.push(Span::styled(state, state_style(model, theme)));
            }
        } else if cells >= 60 {
            left.push(Span::styled(state, state_style(model, theme)));
        }
        left.extend(unsaved_data(model).map(|text| Span::styled(format!(" · {text}"), theme.bad)));
        if left.len() > 1 {
            left.push(Span::raw(" "));
        }
        let left = frame::cut(Line::from(left), cells);
        let room = cells.saturating_sub(left.width());
        let line = banner::banner_line(model, room, theme).unwrap_or(short);
        buf.set_line(area.x, area.y, &left, area.width);
        buf.set_line(area.x + left.width() as u16, area.y, &line, room as u16);
        let rest = room.saturating_sub(line.width() + 2);
        let hints = hints_line(model, layout, theme, rest);
        let wide = hints.width() as u16;
        buf.set_line(area.right() - wide, area.y, &hints, wide);
        return;
    };
    let mut left = Line::default();
    if copied.is_none() {
        left.push_span(Span::raw(" "));
        left.extend(gauge::strip(model, theme, 15).spans);
        left.push_span(Span::styled(" ·", theme.dim));
    }
    left.extend(short.spans);
    left.push_span(Span::raw(" "));
    let beside = frame::cut(beside, cells.saturating_sub(left.width()));
    left.extend(beside.spans);
    buf.set_line(area.x, area.y, &left, area.width);
}

/// Returns the left part with a link's target behind it; where that has no room for its host, the target is shown alone.
fn with_target(
    mut left: Vec<Span<'static>>,
    target: &str,
    cells: usize,
    reserved: usize,
    theme: &Theme,
) -> Vec<Span<'static>> {
    let least = hover::least_width(target);
    let mut room = cells.saturating_sub(spans_width(&left));
    if least + reserved <= room {
        room -= reserved;
    } else if least > room {
        left.clear();
        room = cells;
    }
    left.extend(hover::target_spans(target, room, theme));
    left
}

fn spans_width(spans: &[Span<'_>]) -> usize {
    spans.iter().map(|span| text::width(&span.content)).sum()
}

/// Returns the mode that decides on reboots: not to be taken for the client's own permission mode, which is on the same
/// screen.
fn mode_label(model: &Model) -> String {
    let paused = if model.reboot.paused { " (paused)" } else { "" };
    format!("reboots: {}{paused}", model.reboot.mode.name())
}

fn state_label(model: &Model) -> String {
    if model.outside.quitting().is_some() {
        return "quitting".to_owned();
    }
    let asks = model.session.agent.state == AgentState::Dialog;
    if moment::is_under_way(model) && !asks {
        return "rebooting".to_owned();
    }
    let phrase = activity::phrase(model);
    // The background tasks, while the agent waits for a prompt.
    if model.session.agent.state == AgentState::Idle && !model.session.agent.background.is_empty() {
        return format!("{phrase} · {}", model.session.agent.background);
    }
    phrase
}

/// Returns the progress that the agent reports: ` 42 %`.
fn progress_label(model: &Model) -> String {
    match model.session.agent.progress {
        None | Some(Progress::None) => String::new(),
        Some(Progress::Percent(percent)) => format!(" {percent} %"),
        Some(Progress::Error(percent)) => format!(" failed at {percent} %"),
        Some(Progress::Indeterminate) => " …".to_owned(),
        Some(Progress::Paused(percent)) => format!(" paused at {percent} %"),
    }
}

fn state_style(model: &Model, theme: &Theme) -> ratatui::style::Style {
    match model.session.agent.state {
        AgentState::Idle | AgentState::Busy | AgentState::Starting => theme.text,
        AgentState::Limit | AgentState::Unknown | AgentState::Elsewhere => theme.accent,
        // A person is needed.
        AgentState::Dialog | AgentState::Exited => theme.bad,
    }
}

/// Returns the reboot under way, unless something has gone wrong since its step began; else the newest notice, else the
/// reason why an autonomous run is held up.
fn latest_message(model: &Model, theme: &Theme) -> Option<Span<'static>> {
    if let Some(step) = reboot_step(model) {
        return Some(Span::styled(step, theme.accent));
    }
    let quits = model.outside.quitting().is_some();
    if let Some(ending) = model.reboot.ending.filter(|_| quits) {
        let said = format!("ending the agent: {}", ending.signal.word());
        return Some(Span::styled(said, theme.accent));
    }
    // The dialog shows everything, and so does the card of a reboot that is done: later messages do not wait for it.
    if model.view.overlay == Some(Overlay::Exited) {
        return None;
    }
    let card = model.view.card.as_ref();
    let card = card.filter(|card| moment::is_shown(model) && !card.is_failure());
    let is_on_card = |notice: &&Notice| {
        let came_with = card.is_some_and(|card| notice.at.since_start <= card.done_at.since_start);
        came_with && !notice.bad
    };
    let notice = model.view.notices.back();
    if let Some(notice) = notice.filter(|notice| !is_on_card(notice)) {
        return Some(of_notice(notice, theme));
    }
    let asks = matches!(
        model.session.agent.state,
        AgentState::Dialog | AgentState::Unknown | AgentState::Elsewhere | AgentState::Exited
    );
    match facts::agent_reason(model).filter(|_| asks) {
        Some(reason) => {
            let style = state_style(model, theme);
            Some(Span::styled(text::safe(&reason).into_owned(), style))
        }
        None => run::why_it_waits(model, theme),
    }
}

/// Returns the text of a notice.
fn of_notice(notice: &Notice, theme: &Theme) -> Span<'static> {
    let (sign, style) = if notice.bad {
        ("! ", theme.bad)
    } else {
        ("", theme.text)
    };
    Span::styled(format!("{sign}{}", text::safe(&notice.text)), style)
}

fn reboot_step(model: &Model) -> Option<String> {
    let attempt = model.reboot.attempt.as_ref()?;
    let blocks = reboot::blocked_by(model);
    let since = attempt.entered.last().map_or(model.now, |(_, at)| *at);
    // A call for a person is in the notice, and in the review itself.
    let notice = model.view.notices.back();
    let newer_bad =
        notice.is_some_and(|notice| notice.bad && notice.at.since_start >= since.since_start);
    match attempt.step() {
        // The banner shows it.
        Step::Armed | Step::Drafting | Step::Review => None,
        Step::Waiting if !blocks.is_empty() => None,
        _ if newer_bad => None,
        // The notice goes after a while; that a person is needed does not.
        _ if attempt.is_overdue() => Some("reboot: not confirmed · look at the pane".to_owned()),
        step => {
            let doing = moment::step_in_words(attempt, step);
            Some(format!("{doing} {}", text::seconds(model.now.since(since))))
        }
    }
}

/// Returns the keys that have an effect now, the most useful first.
fn wanted_keys(model: &Model, layout: &Layout) -> Vec<(Action, String, &'static str)> {
    let key = |action: Action, word| Some((action, model.keys().hint(action)?, word));
    // A question takes any key for its answer.
    if model.view.overlay == Some(Overlay::Quit) {
        return Vec::new();
    }
    // An overlay has its own keys in its border.
    if model.view.overlay.is_some() {
        let wanted = [key(Action::Help, "help"), key(Action::Quit, "quit")];
        return wanted.into_iter().flatten().collect();
    }
    let all = layout.panels.len() + 1 == Focus::ALL.len();
    // Below this width the pane has the whole screen.
    let zooms = layout.bordered || model.view.zoomed;
    // While a reboot goes on there is none to ask for or to decide on, and a banner names the key by its effect then.
    let reboots = !moment::is_under_way(model);
    let asks = reboots && reboot::banner(model).is_none();
    let has_run = model.autopilot.is_some();
    let wanted = [
        key(Action::Help, "help"),
        key(Action::Pause, run::pause_does(model)).filter(|_| has_run),
        key(Action::Reboot, "reboot").filter(|_| asks),
        panel_keys(model).filter(|_| !all),
        key(Action::Zoom, "zoom").filter(|_| zooms),
        key(Action::FocusNext, "focus"),
        key(Action::Mode, "ask/auto").filter(|_| reboots),
        key(Action::Quit, "quit"),
    ];
    wanted.into_iter().flatten().collect()
}

/// Returns the number of cells of a hint and the gap beside it; none if the action has no key.
fn hint_cells(model: &Model, action: Action, word: &str) -> usize {
    let key = model.keys().hint(action);
    key.map_or(0, |key| text::width(&key) + 1 + word.len() + 2)
}

/// Returns `F3/4/6 panels`: the keys of the panels that are not in sight.
fn panel_keys(model: &Model) -> Option<(Action, String, &'static str)> {
    let actions = [Action::Scratchpad, Action::Handoff, Action::History];
    let keys = actions.into_iter();
    let keys: Vec<String> = keys.filter_map(|one| model.keys().hint(one)).collect();
    let first = keys.first()?;
    let numbers = keys.iter().skip(1).filter_map(|key| key.strip_prefix('F'));
    let key = match first.strip_prefix('F') {
        Some(_) if numbers.clone().count() == 2 => {
            numbers.fold(first.clone(), |all, number| format!("{all}/{number}"))
        }
        _ => first.clone(),
    };
    Some((Action::Scratchpad, key, "panels"))
}

/// Returns the most useful keys that fit, or the keys that the prefix waits for.
fn hints_line(model: &Model, layout: &Layout, theme: &Theme, cells: usize) -> Line<'static> {
    if model.view.prefixed {
        let prefix = model.keys().prefix().label();
        let help = model.keys().after_prefix(Action::Help);
        let help = help.map_or_else(String::new, |key| format!(", {key} for help"));
        let mut said = format!(" {prefix} … then a key{help} ");
        if text::width(&said) > cells {
            said = format!(" {prefix} … ");
        }
        let style = theme.accent.add_modifier(Modifier::REVERSED);
        return frame::row(text::fit(&said, cells.max(12)), style);
    }
    let mut shown: Vec<(usize, String, &str)> = Vec::new();
    let mut used = 1;
    for (action, key, word) in wanted_keys(model, layout) {
        let wide = text::width(&key) + 1 + word.len() + usize::from(!shown.is_empty()) * 2;
        if used + wide > cells {
            break;
        }
        used += wide;
        let order = Action::all().position(|one| one == action).unwrap_or(0);
        shown.push((order, key, word));
    }
    shown.sort_by_key(|(order, _, _)| *order);
    let mut spans = Vec::new();
    for (at, (_, key, word)) in shown.into_iter().enumerate() {
        spans.push(Span::raw(if at == 0 { "" } else { "  " }));
        spans.push(Span::styled(key, theme.accent));
        spans.push(Span::styled(format!(" {word}"), theme.dim));
    }
    if !spans.is_empty() {
        spans.push(Span::raw(" "));
    }
    Line::from(spans)
}

/// Draws a footer into a rectangle that is too small for anything else.
pub(super) fn too_small(buf: &mut Buffer, area: Rect, theme: &Theme) {
    let (columns, rows) = pitstop_core::app::layout::SMALLEST;
    let said = format!(
        "pitstop needs {columns}×{rows} cells, this terminal has {}×{}",
        area.width, area.height
    );
    let lines = text::wrapped(said, theme.text, usize::from(area.width.max(1)));
    let above = area.height.saturating_sub(lines.len() as u16) / 2;
    frame::rows(buf, frame::below(area, above), &lines);
}
