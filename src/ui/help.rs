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
                "approve; once more while it waits: interrupt the turn",
            ),
            (
                "t",
                "trim the session instead of a handoff; once more: back",
            ),
            ("e", "edit the handoff"),
            ("x", "drop your edit"),
            ("m", "list what the handoff misses; once more: back"),
            ("+", "add what it misses"),
            ("d", "defer by some turns"),
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
            ("p", "handoff: paste it into the agent's prompt"),
            ("x", "handoff: drop your edit"),
            ("m +", "handoff: list what it misses, add that"),
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
            ("w b e W B E", "by words; capitals: by blanks"),
            ("0 ^ $", "beginning, first text, end of the line"),
            ("g G", "to the oldest line, to the newest"),
            ("H M L", "top, middle, bottom of the view"),
            ("{ }", "to the empty line above, below"),
            ("Ctrl-U Ctrl-D", "half a page"),
            ("Ctrl-B Ctrl-F PgUp…", "a page"),
            ("Ctrl-Y Ctrl-E", "scroll a row, the cursor stays"),
            ("/ ? n N", "find a regex down, up; next, back"),
            ("v V Ctrl-V", "select characters, lines, a block"),
            ("o", "to the selection's other end"),
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
            ("click", "focus"),
            ("wheel", "scroll"),
            ("drag", "select and copy; Shift if the agent has the mouse"),
            ("2 or 3 clicks", "copy a word, a line"),
        ],
    ),
];

/// Draws the help page.
pub(super) fn draw(buf: &mut Buffer, whole: Rect, model: &Model, scroll: u16, theme: &Theme) {
    let body = Rect {
        height: whole.height.saturating_sub(1),
        ..whole
    };
    let page = page(model, theme);
    let height = (page.len() as u16).saturating_add(2);
    let area = frame::centred(body, 76, height);
    frame::clear(buf, area);
    let inner = frame::border(buf, area, frame::title("Keys", true, theme), true, theme);
    let count = page.len();
    let window = text::window(page.into_iter().enumerate(), scroll, inner.height);
    frame::rows(buf, inner, &window.rows);
    let mark = if window.above || window.below {
        format!("{}/{count}", window.last_line)
    } else {
        String::new()
    };
    let hints = ["Esc close", "↑↓ PgDn read"].map(str::to_owned);
    frame::foot(buf, area, &hints, &mark, theme);
}

fn page(model: &Model, theme: &Theme) -> Vec<Line<'static>> {
    let keys = model.keys();
    let mut page = vec![
        frame::row(" Everywhere", theme.heading),
        entry(
            &keys.prefix().label(),
            "prefix; pressed twice it goes to the agent",
            theme,
        ),
    ];
    for action in Action::all() {
        let binding = keys
            .bindings()
            .iter()
            .find(|binding| binding.action == action);
        let triggers: Vec<String> = binding
            .into_iter()
            .flat_map(|binding| &binding.triggers)
            .map(|trigger| keys.label(*trigger))
            .collect();
        let labels = if triggers.is_empty() {
            "–".to_owned()
        } else {
            triggers.join(", ")
        };
        page.push(entry(&labels, action.description(), theme));
    }
    page.push(entry(
        "anything else",
        "goes to the focused pane as it is",
        theme,
    ));
    for (place, entries) in FIXED {
        page.push(Line::default());
        page.push(frame::row(format!(" {place}"), theme.heading));
        page.extend(entries.iter().map(|(key, does)| entry(key, does, theme)));
    }
    page
}

fn entry(keys: &str, does: &str, theme: &Theme) -> Line<'static> {
    let keys = text::safe(keys);
    let gap = 20_usize.saturating_sub(text::width(&keys)).max(1);
    Line::from(vec![
        Span::styled(format!("  {keys}"), theme.accent),
        Span::raw(" ".repeat(gap)),
        Span::styled(does.to_owned(), theme.text),
    ])
}

/// Asks whether to quit while the agent works.
pub(super) fn draw_quit(buf: &mut Buffer, whole: Rect, model: &Model, theme: &Theme) {
    let doing = match (model.agent.state, model.agent.background.is_empty()) {
        (AgentState::Dialog, _) => Some("A dialog of the agent is open.".to_owned()),
        (AgentState::Unknown, _) => Some("What the agent does is not known just now.".to_owned()),
        (AgentState::Busy, _) => Some("A turn is running.".to_owned()),
        (_, false) => Some(format!(
            "The agent has work in the background: {}.",
            model.agent.background
        )),
        _ => None,
    };
    let unsaved = model.notes.unsaved.as_ref().map(|why| {
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
        whole,
        "Quit?",
        &said,
        &["Enter/y quit", "any other key stays"],
        theme,
    );
}

/// Says that the agent's process is gone, and what can be done.
pub(super) fn draw_exited(buf: &mut Buffer, whole: Rect, model: &Model, theme: &Theme) {
    let how = model.agent.exit.as_deref().unwrap_or("it is not known how");
    let mut said = vec![format!(
        "The agent is not running: {}.",
        text::safe(how).trim_end_matches('.')
    )];
    // Any other program has no session of ours to go back to.
    let resumes = !model.is_generic();
    if resumes {
        said.push(format!("Session {}", model.session));
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
    question(buf, whole, "The agent has ended", &said, &keys, theme);
}

fn question(
    buf: &mut Buffer,
    whole: Rect,
    title: &str,
    said: &[String],
    keys: &[&str],
    theme: &Theme,
) {
    let body = Rect {
        height: whole.height.saturating_sub(1),
        ..whole
    };
    let wide = 64.min(body.width);
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
    let area = frame::centred(body, wide, (lines.len() as u16).saturating_add(2));
    frame::clear(buf, area);
    let inner = frame::border(buf, area, frame::title(title, true, theme), true, theme);
    let inner = Rect {
        x: inner.x + 1,
        width: inner.width.saturating_sub(2),
        ..inner
    };
    frame::rows(buf, inner, &lines);
}
