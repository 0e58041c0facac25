//! What lies over everything: the keys in force, and the two questions that stop the work.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};

use crate::{api::wire::AgentState, app::Model, keymap::Action};

use super::{frame, text, theme::Theme};

/// Keys that cannot be set, by where they count.
const FIXED: [(&str, &[(&str, &str)]); 6] = [
    (
        "In the review",
        &[
            (
                "Enter a",
                "approve; while it waits, press again to interrupt the turn",
            ),
            (
                "w t",
                "change the way: fresh, in place, or trim this session",
            ),
            ("e", "edit the handoff"),
            ("x", "drop your edit"),
            ("m", "list what the handoff misses; press again to go back"),
            ("+", "add what it misses"),
            ("d", "defer by three turns"),
            ("↑↓ PgUp PgDn", "read the handoff"),
            ("Tab Shift-Tab", "to the next section, to the one before"),
            ("o", "fold or unfold the section; z all of them"),
            ("/ n N", "search in the handoff; next, previous"),
            ("y", "copy the handoff"),
            ("Esc", "cancel"),
        ],
    ),
    (
        "In a panel",
        &[
            ("e i Enter", "edit in place"),
            ("↑↓ j k", "scroll or select"),
            ("PgUp PgDn", "a page"),
            ("g G", "to the beginning, to the end"),
            ("y", "copy the scratchpad or the handoff"),
            ("p", "handoff: paste it into the agent's prompt"),
            ("x", "handoff: drop your edit"),
            ("m +", "handoff: list what it misses, add it"),
            (
                "Tab o z / n N",
                "handoff: sections and search, as in the review",
            ),
            (
                "/ R p",
                "history: search, resume the session, play its recording",
            ),
            ("m d", "history: mark an iteration, compare another with it"),
            ("Esc q", "back to the pane"),
        ],
    ),
    (
        "In an editor",
        &[
            ("Esc", "save and leave"),
            ("Ctrl-S", "save"),
            ("Ctrl-F Ctrl-G", "find, find next"),
            ("Ctrl-Z Ctrl-Y", "undo, redo"),
            ("Ctrl-A", "select all; Shift with arrows selects"),
            ("Ctrl-C Ctrl-X", "copy, cut"),
        ],
    ),
    (
        "In copy mode",
        &[
            ("hjkl ↑↓←→", "a cell, a row"),
            ("w b e W B E", "by words; capitals: by words between blanks"),
            ("0 ^ $", "beginning, first text, end of the line"),
            ("g G", "to the oldest line, to the newest"),
            ("H M L", "top, middle, bottom of the view"),
            ("{ }", "to the empty line above, below"),
            ("Ctrl-U Ctrl-D", "half a page"),
            ("Ctrl-B Ctrl-F PgUp/Dn", "a page"),
            ("Ctrl-Y Ctrl-E", "scroll a row, the cursor stays"),
            ("/ ? n N", "find a regex down, up; next, back"),
            ("v V Ctrl-V", "select characters, lines, a block"),
            ("o", "to the other end of the selection"),
            ("y Enter", "copy and leave"),
            ("Y", "copy the line"),
            ("r", "take in the new output"),
            ("Esc q", "drop the selection; leave"),
        ],
    ),
    (
        "In a recording (history: p)",
        &[
            ("Space", "play, pause"),
            ("← → h l", "5 seconds back, ahead"),
            (", .", "one step back, ahead"),
            ("- +", "slower, faster"),
            ("0…9 g G", "to a tenth, the beginning, the end"),
            ("↑↓ PgUp PgDn", "scroll"),
            ("Esc q", "close"),
        ],
    ),
    (
        "Mouse",
        &[
            ("click", "focus; on a key hint: do what it says"),
            ("drag the border", "resize the panels"),
            ("wheel", "scroll"),
            ("drag", "select and copy; Shift if the agent has the mouse"),
            ("2 or 3 clicks", "copy a word, a line"),
        ],
    ),
];

/// The cells of a key, before what it does.
const KEYS: usize = 22;

/// From how many cells on the page stands in two columns.
const TWO_COLUMNS: u16 = 150;

/// Draws the help page: what was typed, the actions it finds, and the keys that cannot be set.
pub(super) fn draw(buf: &mut Buffer, whole: Rect, model: &Model, scroll: u16, theme: &Theme) {
    let area = frame::body(whole);
    frame::clear(buf, area);
    let title = frame::title("Help: keys and actions", true, theme);
    let inner = frame::border(buf, area, title, true, theme);
    let search = &model.view.help;
    let typed = if search.query.is_empty() {
        Line::from(Span::styled(
            " type to search, ↑↓ to select, Enter to run",
            theme.dim,
        ))
    } else {
        Line::from(vec![
            Span::styled(" search: ", theme.dim),
            Span::styled(text::safe(&search.query).into_owned(), theme.accent),
            Span::styled("▏", theme.accent),
        ])
    };
    frame::rows(buf, inner, &[typed]);
    let list = Rect {
        y: inner.y + inner.height.min(2),
        height: inner.height.saturating_sub(2),
        ..inner
    };
    let columns = if inner.width < TWO_COLUMNS { 1 } else { 2 };
    let wide = inner.width / columns;
    let (page, selected) = page(model, usize::from(wide), theme);
    let shown = list.height * columns;
    // What is selected stays in sight.
    let scroll = match selected {
        Some(row) => (row + 3).saturating_sub(usize::from(shown)) as u16,
        None => scroll,
    };
    let count = page.len();
    let window = text::window(page.into_iter().enumerate(), scroll, shown);
    let rows = window.rows.chunks(usize::from(list.height).max(1));
    for (column, rows) in (0..columns).zip(rows) {
        let area = Rect {
            x: list.x + column * wide,
            width: wide,
            ..list
        };
        // What keeps two groups apart is not needed at the top.
        let blank = rows
            .first()
            .is_some_and(|row| column > 0 && row.width() == 0);
        frame::rows(buf, area, &rows[usize::from(blank)..]);
    }
    let mark = if window.above || window.below {
        format!("{}/{count}", window.last_line)
    } else {
        String::new()
    };
    let esc = if search.query.is_empty() {
        "Esc close"
    } else {
        "Esc whole page"
    };
    let hints = [esc, "Enter run", "PgDn read"].map(str::to_owned);
    frame::foot(buf, area, &hints, &mark, theme);
}

/// The rows of the page, and which of them is selected.
fn page(model: &Model, cells: usize, theme: &Theme) -> (Vec<Line<'static>>, Option<usize>) {
    let keys = model.keys();
    let search = &model.view.help;
    let all = search.query.trim().is_empty();
    let chosen = search.chosen(keys);
    let mut page = Vec::new();
    let mut selected = None;
    let found = search.found(keys);
    if !found.is_empty() {
        page.push(frame::row(" Everywhere", theme.heading));
    }
    if all {
        let prefix = "prefix; pressed twice it goes to the agent";
        page.extend(entry(&keys.prefix().label(), prefix, false, cells, theme));
    }
    for action in found {
        let is_chosen = chosen == Some(action);
        if is_chosen {
            selected = Some(page.len());
        }
        let labels = labels(model, action);
        page.extend(entry(
            &labels,
            action.description(),
            is_chosen,
            cells,
            theme,
        ));
    }
    if all {
        let rest = "goes to the focused pane as it is";
        page.extend(entry("anything else", rest, false, cells, theme));
    }
    for (place, entries) in FIXED {
        let rows: Vec<Line<'static>> = entries
            .iter()
            .filter(|(key, does)| search.finds(&[place, key, does]))
            .flat_map(|(key, does)| entry(key, does, false, cells, theme))
            .collect();
        if !rows.is_empty() {
            page.push(Line::default());
            page.push(frame::row(format!(" {place}"), theme.heading));
            page.extend(rows);
        }
    }
    if page.is_empty() {
        page.push(frame::row(
            " Nothing is found: Esc shows the whole page.",
            theme.dim,
        ));
    }
    (page, selected)
}

/// The triggers of an action, as they are pressed.
fn labels(model: &Model, action: Action) -> String {
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

/// A key and what it does, wrapped where that is longer than the page is wide.
fn entry(keys: &str, does: &str, chosen: bool, cells: usize, theme: &Theme) -> Vec<Line<'static>> {
    let keys = text::safe(keys);
    let sign = if chosen { "▸ " } else { "  " };
    let gap = KEYS.saturating_sub(text::width(&keys) + 2).max(1);
    let lead = text::Lead {
        first: vec![(format!("{sign}{keys}{}", " ".repeat(gap)), theme.accent)],
        rest: vec![(" ".repeat(KEYS), theme.text)],
    };
    let style = if chosen { theme.selection } else { theme.text };
    text::wrap(&[(does.to_owned(), style)], &lead, cells)
}

/// Asks whether to quit while the agent works.
pub(super) fn draw_quit(buf: &mut Buffer, pane: Rect, model: &Model, theme: &Theme) {
    let doing = match (
        model.session.agent.state,
        model.session.agent.background.is_empty(),
    ) {
        (AgentState::Dialog, _) => Some("A dialog of the agent is open.".to_owned()),
        (AgentState::Unknown, _) => Some("What the agent does is not known just now.".to_owned()),
        (AgentState::Busy, _) => Some("A turn is running.".to_owned()),
        (_, false) => Some(format!(
            "The agent has work in the background: {}.",
            model.session.agent.background
        )),
        _ => None,
    };
    let unsaved = model.draft.notes.unsaved.as_ref().map(|why| {
        format!(
            "The scratchpad is not saved: {}. It is kept in the state directory and comes back with the next start.",
            text::safe(why)
        )
    });
    let ends = doing.is_some().then(|| {
        "Quitting interrupts it and ends the agent cleanly; the session can be resumed.".to_owned()
    });
    let said: Vec<String> = [unsaved, doing, ends].into_iter().flatten().collect();
    question(
        buf,
        pane,
        "Quit?",
        &said,
        &["Enter/y quit", "any other key stays"],
        theme,
    );
}

/// Says that the agent's process is gone, and what can be done.
pub(super) fn draw_exited(buf: &mut Buffer, pane: Rect, model: &Model, theme: &Theme) {
    let how = model.session.agent.exit.as_deref();
    let how = how.map(|how| format!(": {}", text::safe(how).trim_end_matches('.')));
    let mut said = vec![format!(
        "The agent is not running{}.",
        how.unwrap_or_default()
    )];
    // Any other program has no session of ours to go back to.
    let resumes = !model.is_generic();
    if resumes {
        said.push(format!("Session {}", model.session.id));
        said.push("Its conversation is kept; what it wrote last is still in the pane.".to_owned());
    } else {
        said.push("What it wrote last is still in the pane.".to_owned());
    }
    let reboot = model.keys().hint(Action::Reboot);
    let reboot = reboot
        .map(|key| format!("{key} reboot with handoff"))
        .unwrap_or_default();
    let enter = if resumes {
        "Enter resume"
    } else {
        "Enter start again"
    };
    let keys = [enter, &reboot, "q quit", "Esc look"];
    question(buf, pane, "The agent has ended", &said, &keys, theme);
}

/// A question over the pane, which it is about.
fn question(
    buf: &mut Buffer,
    pane: Rect,
    title: &str,
    said: &[String],
    keys: &[&str],
    theme: &Theme,
) {
    let wide = 64.min(pane.width);
    let cells = usize::from(wide.saturating_sub(4));
    let mut lines: Vec<Line<'static>> = said
        .iter()
        .flat_map(|one| text::wrap(&[(one.clone(), theme.text)], &text::Lead::default(), cells))
        .collect();
    lines.push(Line::default());
    let keys: Vec<(String, _)> = keys
        .iter()
        .filter(|key| !key.is_empty())
        .enumerate()
        .flat_map(|(at, key)| {
            let gap = if at == 0 { "" } else { " · " };
            [
                (gap.to_owned(), theme.dim),
                ((*key).to_owned(), theme.accent),
            ]
        })
        .collect();
    lines.extend(text::wrap(&keys, &text::Lead::default(), cells));
    let area = frame::centred(pane, wide, (lines.len() as u16).saturating_add(2));
    frame::clear(buf, area);
    let inner = frame::border(buf, area, frame::title(title, true, theme), true, theme);
    let inner = Rect {
        x: inner.x + 1,
        width: inner.width.saturating_sub(2),
        ..inner
    };
    frame::rows(buf, inner, &lines);
}
