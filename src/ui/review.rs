//! The review: the whole handoff before it is sent, what it waits for, and the keys that decide.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};

use crate::{
    app::{
        Model, breakpoint,
        draft::{self, Unsent},
        reboot::{self, Kind},
        trim::{self, NotOffered, Offer},
    },
    lineage::{Cause, journal::Step},
};

use super::{
    footer, frame, handoff,
    markdown::{self, Marks},
    scratchpad, text,
    theme::Theme,
};

/// Where the review lies.
fn area(whole: Rect) -> Rect {
    let body = Rect {
        height: whole.height.saturating_sub(1),
        ..whole
    };
    let margin = if body.width >= 80 { 4 } else { 0 };
    frame::centred(
        body,
        body.width.saturating_sub(margin).min(116),
        body.height,
    )
}

/// The rows of the review: facts at the top, the message, the keys.
struct Parts {
    head: Vec<Line<'static>>,
    head_area: Rect,
    body: Rect,
}

fn parts(whole: Rect, model: &Model, theme: &Theme) -> Parts {
    let area = area(whole);
    let inner = Rect {
        x: area.x + 2,
        y: area.y + 1,
        width: area.width.saturating_sub(4),
        height: area.height.saturating_sub(2),
    };
    let mut head = head(model, usize::from(inner.width), theme);
    head.truncate(usize::from(inner.height / 2));
    let above = head.len() as u16;
    Parts {
        head,
        head_area: Rect {
            height: above,
            ..inner
        },
        body: Rect {
            y: inner.y + above,
            height: inner.height - above,
            ..inner
        },
    }
}

/// Draws the review over everything but the footer.
pub(super) fn draw(buf: &mut Buffer, whole: Rect, model: &Model, theme: &Theme) {
    let area = area(whole);
    frame::clear(buf, area);
    let title = if is_trim(model) {
        "Reboot: review the trim"
    } else {
        "Reboot: review the handoff"
    };
    let title = frame::title(title, true, theme);
    frame::border(buf, area, title, true, theme);
    let parts = parts(whole, model, theme);
    frame::rows(buf, parts.head_area, &parts.head);
    if let Some(editor) = &model.handoff.editor {
        scratchpad::editor(buf, parts.body, editor, theme);
        let hints = ["Esc done", "Ctrl-F find", "Ctrl-Z undo"].map(str::to_owned);
        frame::foot(buf, area, &hints, "", theme);
        return;
    }
    let list = handoff::listed(model);
    let message = list
        .as_deref()
        .unwrap_or_else(|| &model.handoff.current().text);
    let rows = markdown::rows(message, parts.body.width, Marks::Kept, theme);
    let window = text::window(rows, model.handoff.scroll, parts.body.height);
    frame::rows(buf, parts.body, &window.rows);
    frame::foot(
        buf,
        area,
        &keys(model, area.width),
        &frame::position(&window, message),
        theme,
    );
}

/// Where the text cursor stands while the message is edited in the review.
pub(super) fn cursor(whole: Rect, model: &Model, theme: &Theme) -> Option<(u16, u16)> {
    let editor = model.handoff.editor.as_ref()?;
    scratchpad::cursor(parts(whole, model, theme).body, editor)
}

fn head(model: &Model, cells: usize, theme: &Theme) -> Vec<Line<'static>> {
    let handoff = model.handoff.current();
    let next = model.iteration.next();
    let facts = [
        format!("iteration {} → {next}", model.iteration),
        cause(model),
        handoff::size(model, handoff),
    ];
    let mut lines = vec![frame::row(text::join(&facts, cells), theme.title)];
    let mut safe = footer::safe_marks(model, theme);
    safe.push(Span::styled(format!("  {}", waits(model)), theme.dim));
    lines.push(frame::cut(Line::from(safe), cells));
    lines.extend(ways(model, cells, theme));
    if is_trim(model) {
        let unsent = "This message is not sent: the session itself goes on.";
        lines.push(frame::row(text::fit(unsent, cells), theme.dim));
    } else {
        lines.extend(handoff::remarks(handoff, cells, theme));
        let editing = model.handoff.editor.is_some();
        lines.extend(handoff::missing(model, !editing, cells, theme));
    }
    lines.extend(unsent(model, cells, theme));
    lines.push(Line::styled("─".repeat(cells), theme.border));
    lines
}

/// What becomes of what stands in the agent's prompt box.
fn unsent(model: &Model, cells: usize, theme: &Theme) -> Option<Line<'static>> {
    let (said, style) = match draft::unsent(model) {
        Unsent::Nothing => return None,
        Unsent::Text(text) => {
            let lines = text.lines().count();
            let more = match lines {
                0 | 1 => String::new(),
                lines => format!(" ({lines} lines)"),
            };
            let start = text::safe(text.lines().next().unwrap_or_default()).into_owned();
            let said = format!("Your unsent prompt goes over, unsent{more}: {start}");
            (said, theme.text)
        }
        Unsent::Unreadable => (
            "Your unsent prompt cannot be read whole: submit or clear it.".to_owned(),
            theme.bad,
        ),
    };
    Some(frame::row(text::fit(&said, cells), style))
}

fn is_trim(model: &Model) -> bool {
    let attempt = model.reboot.attempt.as_ref();
    attempt.is_some_and(|attempt| attempt.kind == Kind::Trim)
}

/// Both ways with what they leave, the one that Enter takes marked: `▸ trim   128.4k → 98.2k tokens · …`.
fn ways(model: &Model, cells: usize, theme: &Theme) -> Vec<Line<'static>> {
    let offer = trim::offer(model);
    let mut lines = vec![way(!is_trim(model), "fresh", &fresh(model), cells, theme)];
    // An agent without transcripts has one way, and no word about another.
    if offer != Err(NotOffered::Generic) {
        let said = match offer {
            Ok(offer) => trimmed(&offer, cells),
            Err(NotOffered::Reading) => vec!["reading the transcript …".to_owned()],
            Err(why) => vec![format!("not offered: {}", text::safe(&why.to_string()))],
        };
        lines.push(way(is_trim(model), "trim", &said, cells, theme));
    }
    lines
}

fn way(chosen: bool, word: &str, said: &[String], cells: usize, theme: &Theme) -> Line<'static> {
    let (sign, style, rest) = if chosen {
        ("▸", theme.accent, theme.text)
    } else {
        (" ", theme.dim, theme.dim)
    };
    let name = format!("{sign} {word:<5} ");
    let room = cells.saturating_sub(text::width(&name));
    Line::from(vec![
        Span::styled(name, style),
        Span::styled(text::join(said, room), rest),
    ])
}

fn fresh(model: &Model) -> Vec<String> {
    let change = trim::fresh_tokens(model).map(|after| change(model.used(), after));
    let what = "a new session is told this message".to_owned();
    change.into_iter().chain([what]).collect()
}

fn trimmed(offer: &Offer, cells: usize) -> Vec<String> {
    let Offer { figure, of, .. } = offer;
    let (before, after) = (figure.tokens_before, figure.tokens_after);
    let plural = if *of == 1 { "" } else { "s" };
    let removed = format!("{} of {of} tool response{plural} removed", figure.responses);
    // What is removed must be seen wherever a trim can be approved.
    let change = if cells < 72 {
        format!("{} → {}", text::rough(before), text::rough(after))
    } else {
        change(Some(before), after)
    };
    vec![change, removed, format!("level {} %", figure.percent)]
}

/// `128.4k → about 19.6k tokens`: what comes after is always an estimate.
fn change(before: Option<crate::transcript::Tokens>, after: crate::transcript::Tokens) -> String {
    let before = before.map(|before| format!("{} → ", text::tokens(before)));
    format!(
        "{}about {} tokens",
        before.unwrap_or_default(),
        text::tokens(after)
    )
}

fn cause(model: &Model) -> String {
    let words = match model.reboot.attempt.as_ref().map(|attempt| attempt.cause) {
        None | Some(Cause::Key) => "asked by key",
        Some(Cause::Ctl) => "asked by pitstop ctl",
        Some(Cause::Api) => "asked through the API",
        Some(Cause::Threshold) => "the compact line is reached",
        Some(Cause::Breakpoint) => return breakpoint::reason(model),
        Some(Cause::Autopilot) => "asked by the unattended run",
        Some(Cause::AgentExit) => "the agent has ended",
        Some(Cause::AgentCrash) => "the agent has died",
        Some(Cause::ContextLimit) => "the context window is full",
        Some(Cause::Undo) => "undo",
        Some(Cause::Recovery) => "recovery",
        Some(Cause::Restore) => "restored from a checkpoint",
    };
    words.to_owned()
}

/// What happens after the approval.
fn waits(model: &Model) -> String {
    let blocks = reboot::blocked_by(model);
    let blocks: Vec<&str> = blocks
        .into_iter()
        .filter(|block| *block != "typing")
        .map(|block| match block {
            reboot::UNSENT => "unsent prompt that cannot be read",
            other => other,
        })
        .collect();
    let approved = model
        .reboot
        .attempt
        .as_ref()
        .is_some_and(|attempt| attempt.step == Step::Waiting);
    match (approved, blocks.is_empty()) {
        (true, false) => format!(
            "approved; waits for the {} to end: Enter interrupts",
            blocks.join(", ")
        ),
        (true, true) => "approved".to_owned(),
        (false, true) => "goes ahead at once".to_owned(),
        (false, false) => format!("waits for the {} to end", blocks.join(", ")),
    }
}

fn keys(model: &Model, cells: u16) -> Vec<String> {
    let approved = model
        .reboot
        .attempt
        .as_ref()
        .is_some_and(|attempt| attempt.step == Step::Waiting);
    let trims = is_trim(model);
    let approve = match (approved, trims) {
        (true, _) => "Enter/a interrupt",
        (false, false) => "Enter/a approve",
        (false, true) => "Enter/a trim",
    };
    let edited = model.handoff.edited.is_some();
    let mut keys = vec![approve, "e edit", "d defer", "Esc cancel", "↑↓ read"];
    if edited {
        keys.insert(2, "x drop edit");
    }
    let offered = matches!(trim::offer(model), Ok(_) | Err(NotOffered::Reading));
    if !approved && (trims || offered) {
        keys.insert(1, if trims { "t fresh" } else { "t trim" });
    }
    // Where not all fit, the way out must be among them.
    if cells < 72 {
        keys.retain(|key| *key != "Esc cancel");
        keys.insert(1, "Esc cancel");
    }
    keys.into_iter().map(str::to_owned).collect()
}
