//! The overlays that lie over everything: the keys in force, and the two questions that stop the work.

use ratatui::{
    buffer::Buffer,
    layout::{Margin, Rect},
    text::{Line, Span},
};

use pitstop_base::keymap::Action;
use pitstop_core::{
    api::wire::AgentState,
    app::{
        Model,
        facts::{has_conversation, queued},
        unsent::{Unsent, unsent},
    },
};

use super::{frame, text, theme::Theme};

/// The keys that cannot be set, by the place where they count: each line has a key and what it does.
const FIXED: &str = include_str!("../../assets/keys.txt");

/// The number of cells of a key, before its effect.
const KEYS: usize = 20;

/// The cells that a column of the page needs.
const COLUMN: u16 = 70;

/// The gap between two columns, in cells.
const GUTTER: u16 = 2;

/// A row of the page.
struct Row {
    line: Line<'static>,
    /// The name of the group it belongs to; none for the blank row between two.
    group: Option<&'static str>,
    /// True if the row is that name.
    is_heading: bool,
}

/// Draws the help page: the typed text, the actions it finds, and the keys that cannot be set.
pub(super) fn draw(buf: &mut Buffer, whole: Rect, model: &Model, scroll: u16, theme: &Theme) {
    let (area, inner) = frame::page(buf, whole, "Help: keys and actions", theme);
    let search = &model.view.help;
    let typed = if search.query.is_empty() {
        frame::row(" type to search, ↑↓ to select, Enter to run", theme.dim)
    } else {
        Line::from(vec![
            Span::styled(" search: ", theme.dim),
            Span::styled(text::safe(&search.query).into_owned(), theme.accent),
            Span::styled("▏", theme.accent),
        ])
    };
    frame::rows(buf, inner, &[typed]);
    let list = frame::below(inner, 2);
    let columns = (inner.width / COLUMN).clamp(1, 3);
    let wide = inner.width / columns;
    let gutter = if columns > 1 { GUTTER } else { 0 };
    let (page, selected) = page_rows(model, usize::from(wide.saturating_sub(gutter)), theme);
    let (columns, height) = (usize::from(columns), usize::from(list.height));
    let begin = |scroll| first_row(&page, selected, scroll, columns, height);
    let (base, first) = (begin(0), begin(usize::from(scroll)));
    let (columns, end) = place_rows(&page, first, columns, height, theme);
    for (column, rows) in (0..).zip(columns) {
        let area = Rect {
            x: list.x + column * wide,
            width: wide,
            ..list
        };
        frame::rows(buf, area, &rows);
    }
    let (above, below) = (first > 0, end < page.len());
    let furthest = (!below).then(|| i32::try_from(first - base).unwrap_or(i32::MAX));
    model.view.bounds.set_range(0, furthest);
    let mark = text::mark(above, below, end, page.len());
    let esc = if search.query.is_empty() {
        "Esc close"
    } else {
        "Esc clear search"
    };
    let run = selected.map(|_| "Enter run");
    let select = selected.map(|_| "↑↓ select");
    let read = (above || below).then_some("PgUp/PgDn scroll");
    let hints = [Some(esc), run, select, read].into_iter().flatten();
    frame::foot(buf, area, &hints.collect::<Vec<_>>(), &mark, theme);
}

/// Returns the row that the page begins with: the selected row is in sight until the page is scrolled from there, and that not past its
/// end.
fn first_row(
    page: &[Row],
    selected: Option<usize>,
    scroll: usize,
    columns: usize,
    height: usize,
) -> usize {
    let theme = Theme::default();
    let end = |first: usize| place_rows(page, first, columns, height, &theme).1;
    let mut first = 0;
    if let Some(row) = selected {
        while end(first) <= row && first < row {
            first += 1;
        }
    }
    first = (first + scroll).min(page.len());
    while first > 0 && end(first - 1) == page.len() {
        first -= 1;
    }
    first
}

/// Returns the rows of each column, from a row of the page on, and the row behind the last one. Groups are kept whole where
/// the rest of the page fits so.
fn place_rows(
    page: &[Row],
    first: usize,
    columns: usize,
    height: usize,
    theme: &Theme,
) -> (Vec<Vec<Line<'static>>>, usize) {
    let whole = fill_columns(page, first, columns, height, true, theme);
    if whole.1 == page.len() {
        return whole;
    }
    fill_columns(page, first, columns, height, false, theme)
}

/// Fills the columns in the same way; a column begins with the heading of its group and does not end with one.
fn fill_columns(
    page: &[Row],
    first: usize,
    columns: usize,
    height: usize,
    keeps_whole: bool,
    theme: &Theme,
) -> (Vec<Vec<Line<'static>>>, usize) {
    let mut at = first;
    let mut placed = Vec::new();
    for column in 1..=columns {
        let mut rows = Vec::new();
        while page.get(at).is_some_and(|row| row.group.is_none()) {
            at += 1;
        }
        if let Some(Row {
            group: Some(group),
            is_heading: false,
            ..
        }) = page.get(at)
        {
            rows.push(frame::row(format!(" {group}, continued"), theme.heading));
        }
        let whole = |at: usize| page[at..].iter().skip(1).take_while(|row| !row.is_heading);
        while rows.len() < height && at < page.len() {
            // A group that fits whole into the next column begins there.
            let split = page[at].is_heading && rows.len() + whole(at).count() > height;
            if keeps_whole && split && column < columns && !rows.is_empty() {
                break;
            }
            rows.push(page[at].line.clone());
            at += 1;
        }
        // The end of the page ends with no heading.
        while at < page.len() && at > first + 1 {
            let last = &page[at - 1];
            if !last.is_heading && last.group.is_some() {
                break;
            }
            rows.pop();
            at -= 1;
        }
        placed.push(rows);
    }
    (placed, at)
}

/// Returns the rows of the page, and the selected one.
fn page_rows(model: &Model, cells: usize, theme: &Theme) -> (Vec<Row>, Option<usize>) {
    let keys = model.keys();
    let search = &model.view.help;
    let all = search.query.trim().is_empty();
    let chosen = search.chosen(keys);
    let mut page = Vec::new();
    let mut selected = None;
    let found = search.found(keys);
    let mut rows = Vec::new();
    if all {
        let prefix = "prefix; press it twice to send it to the agent";
        rows.extend(entry_rows(
            &keys.prefix().label(),
            prefix,
            false,
            cells,
            theme,
        ));
    }
    for action in found {
        let is_chosen = chosen == Some(action);
        if is_chosen {
            // Behind the heading.
            selected = Some(rows.len() + 1);
        }
        let (labels, does) = (trigger_labels(model, action), action.description());
        rows.extend(entry_rows(&labels, does, is_chosen, cells, theme));
    }
    if all {
        let rest = "goes to the focused pane as it is";
        rows.extend(entry_rows("anything else", rest, false, cells, theme));
    }
    add_group(&mut page, "Everywhere", rows, theme);
    let groups = FIXED.split("# ").skip(1);
    for (place, keys) in groups.filter_map(|group| group.split_once('\n')) {
        let entries = keys.lines().filter_map(|line| line.split_once(" | "));
        let rows = entries
            .filter(|(key, does)| search.finds(&[place, key, does]))
            .flat_map(|(key, does)| entry_rows(key, does, false, cells, theme))
            .collect();
        add_group(&mut page, place, rows, theme);
    }
    if page.is_empty() {
        let said = " Nothing is found: Esc shows the whole page.";
        page.push(Row {
            line: frame::row(said, theme.dim),
            group: Some(""),
            is_heading: true,
        });
    }
    (page, selected)
}

/// Adds a group of keys, if there is one to add.
fn add_group(page: &mut Vec<Row>, name: &'static str, rows: Vec<Line<'static>>, theme: &Theme) {
    if rows.is_empty() {
        return;
    }
    if !page.is_empty() {
        page.push(Row {
            line: Line::default(),
            group: None,
            is_heading: false,
        });
    }
    let row = |line: Line<'static>, is_heading: bool| Row {
        line,
        group: Some(name),
        is_heading,
    };
    page.push(row(frame::row(format!(" {name}"), theme.heading), true));
    page.extend(rows.into_iter().map(|line| row(line, false)));
}

/// Returns the triggers of an action, as they are pressed.
fn trigger_labels(model: &Model, action: Action) -> String {
    let keys = model.keys();
    let binding = keys.bindings().iter().find(|one| one.action == action);
    let triggers = binding.into_iter().flat_map(|one| &one.triggers);
    let labels: Vec<String> = triggers.map(|trigger| keys.label(*trigger)).collect();
    if labels.is_empty() {
        "no key".to_owned()
    } else {
        labels.join(", ")
    }
}

/// Returns a key and its effect, wrapped where that is longer than the page is wide. The whole of a selected entry is on
/// the ground of a selection.
fn entry_rows(
    keys: &str,
    does: &str,
    chosen: bool,
    cells: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let keys = text::safe(keys);
    let sign = if chosen { "▸ " } else { "  " };
    let (key_style, style) = if chosen {
        let style = theme.text.patch(theme.selection);
        (style, style)
    } else {
        (theme.accent, theme.text)
    };
    let indent = vec![(" ".repeat(KEYS), style)];
    let named = format!("{sign}{keys}");
    let mut rows = Vec::new();
    let first = if text::width(&named) < KEYS {
        let gap = " ".repeat(KEYS - text::width(&named));
        vec![(format!("{named}{gap}"), key_style)]
    } else {
        // The effect comes below, in its column.
        rows.push(frame::row(text::fit(&named, cells), key_style));
        indent.clone()
    };
    let lead = text::Lead {
        first,
        rest: indent,
    };
    rows.extend(text::wrap(&[(does.to_owned(), style)], &lead, cells));
    if chosen {
        for row in &mut rows {
            let rest = cells.saturating_sub(row.width());
            row.push_span(Span::styled(" ".repeat(rest), style));
        }
    }
    rows
}

/// Asks whether to quit while the agent works; returns the place of the keys.
pub(super) fn draw_quit(buf: &mut Buffer, pane: Rect, model: &Model, theme: &Theme) -> Rect {
    let background = &model.session.agent.background;
    let doing = match model.session.agent.state {
        AgentState::Dialog => Some("A dialog of the agent is open.".to_owned()),
        AgentState::Unknown => Some("What the agent does is not known just now.".to_owned()),
        AgentState::Busy => Some("A turn is running.".to_owned()),
        _ if background.is_empty() => None,
        _ => Some(format!(
            "The agent has work in the background: {background}."
        )),
    };
    let unsaved = model.draft.notes.unsaved().map(|why| {
        format!(
            "The scratchpad is not saved: {}. It is kept in the state directory and comes back with the next start.",
            text::safe(why)
        )
    });
    let runs = model.autopilot.as_ref();
    let run = runs
        .is_some_and(|run| !run.pilot.is_over())
        .then(|| "An autonomous run is under way.".to_owned());
    let kept = match unsent(model) {
        Unsent::Text(_) => ": it is kept, and comes back when the session is resumed",
        Unsent::Unreadable => ": what cannot be read of it, such as an image, ends with the agent",
        Unsent::Nothing => "",
    };
    let has_draft = model.session.agent.has_unsent();
    let draft = has_draft.then(|| format!("A prompt is typed and not sent{kept}."));
    let queued = queued(model).len();
    let queued = (queued > 0).then(|| {
        let are = if queued == 1 { " waits" } else { "s wait" };
        format!("{queued} prompt{are} for the turn to end: kept, and back in the prompt box when the session is resumed.")
    });
    let ends = doing.is_some().then(|| {
        "Quitting interrupts it and ends the agent cleanly; the session can be resumed.".to_owned()
    });
    let said = [unsaved, doing, run, draft, queued, ends];
    let said: Vec<String> = said.into_iter().flatten().collect();
    draw_question(
        buf,
        pane,
        "Quit?",
        &said,
        &["d detach", "Enter/y end the agent", "any other key stays"],
        theme,
    )
}

/// Shows that the agent's process is gone, and the actions that are left; returns the place of their keys.
pub(super) fn draw_exited(buf: &mut Buffer, pane: Rect, model: &Model, theme: &Theme) -> Rect {
    let how = model.session.agent.exit.as_deref();
    let how = how.map(|how| format!(": {}", text::safe(how).trim_end_matches('.')));
    let mut said = vec![format!("Its process is gone{}.", how.unwrap_or_default())];
    let resumes = has_conversation(model);
    if resumes {
        said.push(format!("Session {}", model.session.id));
        let shows = model
            .keys()
            .hint_to(Action::Scroll, "shows it once this is hidden");
        let shows = shows.map_or_else(String::new, |shows| format!(": {shows}"));
        said.push(format!("What was said in it is kept{shows}."));
    } else {
        said.push(
            "What it wrote last is still in the pane, unless it had the whole screen.".to_owned(),
        );
    }
    let reboot = model.keys().hint_to(Action::Reboot, "reboot with handoff");
    let enter = if resumes {
        "Enter resume"
    } else {
        "Enter start again"
    };
    let keys = [
        Some(enter),
        reboot.as_deref(),
        Some("q quit"),
        Some("Esc hide"),
    ];
    let keys: Vec<&str> = keys.into_iter().flatten().collect();
    draw_question(buf, pane, "The agent has ended", &said, &keys, theme)
}

/// Draws a question over the pane, which it is about; returns the place of its keys.
fn draw_question(
    buf: &mut Buffer,
    pane: Rect,
    title: &str,
    said: &[String],
    keys: &[&str],
    theme: &Theme,
) -> Rect {
    let wide = 64.min(pane.width);
    let cells = usize::from(wide.saturating_sub(4));
    let hints = frame::hint_rows(keys, cells, theme);
    // The border and the blank row take three: in a low pane the last words give way to the keys.
    let room = usize::from(pane.height).saturating_sub(hints.len() + 3);
    let mut lines: Vec<Line<'static>> = said
        .iter()
        .flat_map(|one| text::wrapped(one, theme.text, cells))
        .take(room)
        .collect();
    lines.push(Line::default());
    let above = lines.len() as u16;
    lines.extend(hints);
    let area = frame::centred(pane, wide, (lines.len() as u16).saturating_add(2));
    frame::clear_beside(buf, pane, area);
    let inner = frame::draw_border(buf, area, frame::title(title, true, theme), true, theme);
    frame::rows(buf, inner.inner(Margin::new(1, 0)), &lines);
    frame::below(inner, above)
}
