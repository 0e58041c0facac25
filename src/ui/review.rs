//! The review: the effect of the reboot beside the whole handoff, and the keys that decide.
//!
//! ```text
//!  ≥ 120 columns   the decision at the left, the handoff at the right
//!  below           the decision above, the handoff below
//! ```
//!
//! Every figure is of one moment: the tokens in use now are the "now" of each way.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::{
    buffer::Buffer,
    layout::{Margin, Position, Rect},
    text::{Line, Span},
};

use pitstop_core::{
    app::{
        Model, breakpoint, cost,
        facts::{goes_on_the_fly, on_the_fly_refusal, turn_runs},
        in_place, layout,
        reading::sections,
        reboot::{self, Block, Kind, compaction, on_the_fly},
        trim::{self, NotOffered, Offer},
        unsent::{self, Unsent},
    },
    config::Unanswered,
    lineage::{Cause, Way, journal::Step},
};
use pitstop_transcript::Tokens;

use super::{
    banner, frame, gauge, handoff, hint, markdown::Marks, reading, scratchpad, text, theme::Theme,
};

/// The rectangles of the parts of the review.
struct Parts {
    decision: Rect,
    document: Rect,
    /// True if the parts lie side by side.
    beside: bool,
}

fn lay_out_parts(whole: Rect, model: &Model, theme: &Theme) -> Parts {
    let inner = frame::body(whole).inner(Margin::new(2, 1));
    let (left, right) = layout::review_columns(whole.width);
    if left > 0 {
        return Parts {
            decision: Rect {
                width: left,
                ..inner
            },
            document: Rect {
                x: inner.right() - right,
                width: right,
                ..inner
            },
            beside: true,
        };
    }
    // The handoff keeps at least half of the rows.
    let rows = decision_lines(model, usize::from(inner.width), false, theme).len() + 1;
    let above = (rows as u16).min(inner.height / 2);
    Parts {
        decision: Rect {
            height: above.saturating_sub(1),
            ..inner
        },
        document: frame::below(inner, above),
        beside: false,
    }
}

/// Draws the review over everything but the footer.
pub(super) fn draw(buf: &mut Buffer, whole: Rect, model: &Model, theme: &Theme) {
    let parts = lay_out_parts(whole, model, theme);
    let title = if is_trim(model) {
        "Reboot: review the trim"
    } else {
        "Reboot: review the handoff"
    };
    let size = handoff::size_label(model, model.draft.handoff.current());
    let size = frame::corner_label(Some(size), theme);
    let (area, _) = frame::page_with_corner(buf, whole, title, &size, theme);
    let cells = usize::from(parts.decision.width);
    let lines = decision_lines(model, cells, parts.beside, theme);
    frame::rows(buf, parts.decision, &lines);
    draw_rule(buf, &parts, theme);
    if let Some(editor) = &model.draft.handoff.editor {
        scratchpad::draw_editor(buf, parts.document, editor, theme);
        let mark = scratchpad::cursor_place(parts.document, editor);
        frame::foot(buf, area, scratchpad::editor_hints(editor), &mark, theme);
        return;
    }
    let listed = handoff::listed_missing(model);
    let message = listed
        .as_deref()
        .unwrap_or_else(|| &model.draft.handoff.current().text);
    let (reader, document) = (&model.view.reading, parts.document);
    let (rows, mark) = reading::lay_out(message, reader, document, Marks::Kept, theme);
    frame::rows(buf, document, &rows);
    let keys = reading::search_keys(reader).unwrap_or_else(|| {
        let left = frame::below(parts.decision, lines.len() as u16 + 1);
        list_keys(buf, left, keys_of(model, area.width), theme)
    });
    frame::foot(buf, area, &keys, &mark, theme);
}

/// Lists the keys for reading where the decision leaves them room, and returns those for the border.
fn list_keys(buf: &mut Buffer, left: Rect, mut keys: Vec<String>, theme: &Theme) -> Vec<String> {
    let reading = keys.iter().position(|key| key == READ_KEY);
    let reading = reading.unwrap_or(keys.len());
    if usize::from(left.height) > keys.len() - reading {
        let listed = keys.split_off(reading);
        let cells = usize::from(left.width);
        let rows = listed
            .iter()
            .map(|key| frame::hint_line(&[key], cells, theme));
        let heading = frame::row(KEYS, theme.heading);
        frame::rows(
            buf,
            left,
            &std::iter::once(heading).chain(rows).collect::<Vec<_>>(),
        );
    }
    keys
}

/// Draws the rule between decision and document.
fn draw_rule(buf: &mut Buffer, parts: &Parts, theme: &Theme) {
    let (decision, document) = (parts.decision, parts.document);
    if parts.beside {
        for y in document.top()..document.bottom() {
            buf.set_line(decision.right() + 1, y, &Line::styled("│", theme.border), 1);
        }
    } else if document.y > decision.y {
        let rule = Line::styled("─".repeat(usize::from(document.width)), theme.border);
        buf.set_line(document.x, document.y - 1, &rule, document.width);
    }
}

/// Returns the place of the text cursor while the message is edited in the review.
pub(super) fn editor_cursor(whole: Rect, model: &Model, theme: &Theme) -> Option<(u16, u16)> {
    let editor = model.draft.handoff.editor.as_ref()?;
    let parts = lay_out_parts(whole, model, theme);
    scratchpad::editor_cursor(parts.document, editor)
}

/// Returns the keys that a click on a row of the decision is taken for: those that lead to the way or the section that it names.
pub(super) fn keys_at(
    buf: &Buffer,
    model: &Model,
    theme: &Theme,
    column: u16,
    row: u16,
) -> Vec<KeyEvent> {
    let parts = lay_out_parts(buf.area, model, theme);
    let panel = &model.draft.handoff;
    let area = parts.decision.intersection(buf.area);
    if panel.editor.is_some() || !area.contains(Position::new(column, row)) {
        return Vec::new();
    }
    let said = |row: u16| -> String {
        let signs = (area.left()..area.right()).map(|x| buf[(x, row)].symbol());
        signs.collect::<String>().trim_end().to_owned()
    };
    let press = |code: KeyCode, times: usize| vec![KeyEvent::from(code); times];
    let above = (area.top()..row).rev();
    let section = above.take_while(|row| !said(*row).is_empty());
    let section: Vec<String> = section.map(said).collect();
    if section.last().is_some_and(|heading| heading == KEYS) {
        return hint::read_keys(model, &said(row)).unwrap_or_default();
    }
    if section.last().is_some_and(|heading| heading == CONTENTS) && !panel.lists_missing {
        let at = section.len() - 1;
        return match model.view.reading.section {
            // The first section is the one in view there.
            None => [press(KeyCode::Home, 1), press(KeyCode::Tab, at + 1)].concat(),
            Some(now) if now < at => press(KeyCode::Tab, at - now),
            Some(0) => press(KeyCode::BackTab, 1),
            // From the one before it is shown again, wherever the reader has gone.
            Some(now) => [
                press(KeyCode::BackTab, now - at + 1),
                press(KeyCode::Tab, usize::from(at > 0)),
            ]
            .concat(),
        };
    }
    let ways: Vec<(u16, bool)> = (area.top()..area.bottom())
        .filter_map(|row| {
            let said = said(row);
            let (sign, name) = said.split_at_checked(said.find(char::is_alphabetic)?)?;
            let is_way = matches!(sign, "▸ " | "  ")
                && WAYS.iter().any(|way| name.starts_with(way))
                && !name.starts_with(NO_TRIM);
            is_way.then_some((row, sign == "▸ "))
        })
        .collect();
    let chosen = ways.iter().position(|(_, chosen)| *chosen);
    let clicked = ways.iter().position(|(at, _)| *at == row);
    let Some((chosen, clicked)) = chosen.zip(clicked) else {
        return Vec::new();
    };
    // They are in the order in which the key goes round.
    press(
        KeyCode::Char('w'),
        (clicked + ways.len() - chosen) % ways.len(),
    )
}

const ON_THE_FLY: &str = "On the fly";
const FRESH: &str = "Fresh";
const IN_PLACE: &str = "In place";
const TRIM: &str = "Trim";

/// The words in the place of a trim that cannot be made, which is no way.
const NO_TRIM: &str = "Trim is not possible";

/// The names of the ways.
const WAYS: [&str; 4] = [ON_THE_FLY, FRESH, IN_PLACE, TRIM];

/// The heading of the list of keys, and the first key in it.
const KEYS: &str = "Keys";
const READ_KEY: &str = "↑↓ read";

/// The heading of the list of sections.
const CONTENTS: &str = "In the handoff";

/// Returns the lines of the decision: the ways, the tokens they leave and their cost, the time it happens, and the facts to
/// know before.
fn decision_lines(model: &Model, cells: usize, beside: bool, theme: &Theme) -> Vec<Line<'static>> {
    let gap = beside.then(Line::default);
    let next = model.session.iteration().next();
    let facts = [
        format!("iteration {} → {next}", model.session.iteration()),
        cause_label(model),
    ];
    let mut lines = vec![frame::row(text::join(&facts, cells), theme.title)];
    lines.extend(text::wrapped(waiting_text(model), theme.accent, cells));
    lines.extend(gap.clone());
    lines.extend(way_lines(model, cells, beside, theme));
    if beside {
        lines.extend(cost_line(model, theme, cells));
    }
    let mut remarks = unsent_lines(model, beside, cells, theme);
    let handoff = model.draft.handoff.current();
    if is_trim(model) {
        let said = "A trim sends no message: the session itself goes on.";
        remarks.extend(text::wrapped(said, theme.dim, cells));
    } else {
        let editing = model.draft.handoff.editor.is_some();
        remarks.extend(handoff::remark_lines(handoff, cells, theme));
        remarks.extend(handoff::missing_lines(model, !editing, cells, theme));
    }
    if !remarks.is_empty() {
        lines.extend(gap);
        lines.extend(remarks);
    }
    if is_trim(model) {
        return lines;
    }
    if beside {
        let labels = [
            ("Next step", next_step(&handoff.text)),
            ("New since the last handoff", new_items(model)),
        ];
        for (label, said) in labels {
            let Some(said) = said else { continue };
            lines.extend([Line::default(), frame::row(label, theme.heading)]);
            lines.extend(text::wrapped(text::safe(&said), theme.text, cells));
        }
        lines.extend(contents_lines(&handoff.text, cells, theme));
    }
    lines
}

/// Returns the sections of the message, each with the number of its items.
fn contents_lines(message: &str, cells: usize, theme: &Theme) -> Vec<Line<'static>> {
    let sections = sections(message);
    if sections.is_empty() {
        return Vec::new();
    }
    let all: Vec<&str> = message.split('\n').collect();
    let mut lines = vec![Line::default(), frame::row(CONTENTS, theme.heading)];
    for section in sections {
        let body = all.get(section.line..section.end).unwrap_or_default();
        let items = body.iter().filter(|line| line.starts_with("- ")).count();
        let count = match items {
            0 => String::new(),
            items => text::count(items, "item"),
        };
        let room = cells.saturating_sub(ITEMS);
        let title = text::fit(&text::safe(section.title), room).into_owned();
        let gap = room.saturating_sub(text::width(&title)) + ITEMS - count.len().min(ITEMS);
        lines.push(Line::from(vec![
            Span::styled(title, theme.text),
            Span::raw(" ".repeat(gap)),
            Span::styled(count, theme.dim),
        ]));
    }
    lines
}

/// Returns the step that the message names as the next one.
pub(super) fn next_step(message: &str) -> Option<String> {
    let sections = sections(message);
    let step = sections.iter().find(|section| section.is_next_step())?;
    let mut lines = message.split('\n').take(step.end).skip(step.line + 1);
    let first = lines.find(|line| !line.trim().is_empty())?;
    let words = first.trim().trim_start_matches("- ");
    Some(words.trim_start_matches("[ ] ").to_owned())
}

/// Returns the numbers of items that the state has beyond the one that this iteration was given.
fn new_items(model: &Model) -> Option<String> {
    let given = model.current_iteration()?.reboot.as_ref()?;
    let given = given.preserved_state.as_ref()?;
    let state = &model.draft.preserved;
    let lists = [
        ("completed_items", state.completed_items.len(), "done"),
        ("decisions", state.decisions.len(), "decision"),
        ("constraints", state.constraints.len(), "rule"),
        ("rejected", state.rejected.len(), "rejected way"),
        ("known_issues", state.known_issues.len(), "issue"),
    ];
    let more = lists.into_iter().filter_map(|(name, now, thing)| {
        let before = given.get(name).and_then(|list| list.as_array());
        match now.saturating_sub(before.map_or(0, Vec::len)) {
            0 => None,
            done if thing == "done" => Some(format!("{done} done")),
            items => Some(text::count(items, thing)),
        }
    });
    let said: Vec<String> = more.collect();
    Some(if said.is_empty() {
        "no item".to_owned()
    } else {
        said.join(", ")
    })
}

/// Returns what becomes of the text in the agent's prompt box; one row where the handoff is below.
fn unsent_lines(model: &Model, beside: bool, cells: usize, theme: &Theme) -> Vec<Line<'static>> {
    let (said, style) = match unsent::unsent(model) {
        Unsent::Nothing => return Vec::new(),
        Unsent::Text(text) => {
            let lines = text.lines().count();
            let more = match lines {
                0 | 1 => String::new(),
                lines => format!(" ({lines} lines)"),
            };
            let start = text::safe(text.lines().next().unwrap_or_default()).into_owned();
            let stays = if in_place::is_chosen(model) {
                "stays where it is"
            } else {
                "goes over, unsent"
            };
            let said = format!("Your unsent prompt {stays}{more}: {start}");
            (said, theme.text)
        }
        Unsent::Unreadable if in_place::is_chosen(model) => {
            let said = "Your unsent prompt stays where it is.";
            (said.to_owned(), theme.text)
        }
        Unsent::Unreadable => (
            "Your unsent prompt cannot be read whole: submit or clear it.".to_owned(),
            theme.bad,
        ),
    };
    if beside {
        return text::wrapped(said, style, cells);
    }
    vec![frame::row(text::fit(&said, cells), style)]
}

fn is_trim(model: &Model) -> bool {
    let attempt = model.reboot.attempt.as_ref();
    attempt.is_some_and(|attempt| attempt.kind == Kind::Trim)
}

/// The number of cells for a section's number of items.
const ITEMS: usize = 10;

/// The numbers of cells of a way's name, and of the figure behind its bar.
const WAY: (usize, usize) = (13, 9);

/// The description of a fresh session.
const FRESH_EFFECT: &str = "a new session with this handoff";

/// The effect of a reboot in the middle of a turn on the work in hand.
const ON_THE_FLY_EFFECT: &str = "the turn goes on: nothing is interrupted";

/// Returns the tokens in use now and those that each way would leave, as bars; the way that Enter takes is marked.
fn way_lines(model: &Model, cells: usize, beside: bool, theme: &Theme) -> Vec<Line<'static>> {
    let used = model.used();
    let (trims, in_place) = (is_trim(model), in_place::is_chosen(model));
    let row = |chosen, name, tokens| way_line(model, chosen, name, tokens, cells, theme);
    let mut lines: Vec<_> = used
        .map(|used| row(None, "Now", Some(used)))
        .into_iter()
        .collect();
    let fresh = trim::fresh_tokens(model);
    if compaction::is_held(model) {
        lines.push(row(Some(true), IN_PLACE, fresh));
        lines.push(goes_on(model, cells, theme));
        return lines;
    }
    let on_the_fly = goes_on_the_fly(model);
    let in_place = in_place && !on_the_fly;
    if on_the_fly_refusal(model).is_none() {
        lines.push(row(Some(on_the_fly), ON_THE_FLY, fresh));
        if on_the_fly {
            let said = format!("{}{ON_THE_FLY_EFFECT}", " ".repeat(WAY.0));
            lines.push(frame::row(text::fit(&said, cells), theme.dim));
        }
    }
    let takes_fresh = !trims && !in_place && !on_the_fly;
    lines.push(row(Some(takes_fresh), FRESH, fresh));
    if takes_fresh && fresh.is_some() {
        let lead = text::Lead::hanging(" ".repeat(WAY.0), theme.dim);
        let said = fresh_effect(model);
        lines.extend(text::wrap(&[(said, theme.dim)], &lead, cells));
    }
    if in_place::refusal(model).is_none() {
        lines.push(row(Some(in_place), IN_PLACE, fresh));
        lines.extend(in_place.then(|| goes_on(model, cells, theme)));
    }
    // An agent without transcripts has one way, and no word about another.
    let offer = trim::offer(model);
    if offer == Err(NotOffered::Generic) {
        return lines;
    }
    let detail = match &offer {
        Ok(offer) => {
            let after = trimmed_tokens(offer, used);
            lines.push(row(Some(trims), TRIM, Some(after)));
            // If the handoff is below, only the chosen way is explained.
            if !beside && !trims {
                return lines;
            }
            let of = text::count(offer.of, "tool response");
            format!("{} of {of} removed", offer.figure.responses)
        }
        Err(NotOffered::Reading) => "Trim: reading the transcript …".to_owned(),
        Err(why) => format!("{NO_TRIM}: {}", text::safe(&why.to_string())),
    };
    let indent = if offer.is_ok() { WAY.0 } else { 2 };
    let lead = text::Lead::hanging(" ".repeat(indent), theme.dim);
    lines.extend(text::wrap(&[(detail, theme.dim)], &lead, cells));
    lines
}

/// Returns what a fresh session brings, and what ends with the old one.
fn fresh_effect(model: &Model) -> String {
    let mut said = FRESH_EFFECT.to_owned();
    if model.draft.goal.is_some() {
        said.push_str("; sets the goal again");
    }
    let scheduled = model.session.agent.schedule.len();
    if scheduled > 0 {
        let prompts = text::count(scheduled as u64, "scheduled prompt");
        said = format!("{said}; ends {prompts}, which the handoff names");
    }
    said
}

/// Returns the line on the parts that a reboot in place leaves as they are.
fn goes_on(model: &Model, cells: usize, theme: &Theme) -> Line<'static> {
    let background = &model.session.agent.background;
    let mut said = "the same process and session".to_owned();
    if !background.is_empty() {
        said = format!("{said}; goes on: {background}");
    }
    let said = format!("{}{said}", " ".repeat(WAY.0));
    frame::row(text::fit(&said, cells), theme.dim)
}

/// Returns the tokens that a trim would leave of those in use now. The survey counts by itself: only the amount that it
/// takes away is certain.
fn trimmed_tokens(offer: &Offer, used: Option<Tokens>) -> Tokens {
    let figure = offer.figure;
    let saved = figure.tokens_before.0.saturating_sub(figure.tokens_after.0);
    used.map_or(figure.tokens_after, |used| {
        Tokens(used.0.saturating_sub(saved))
    })
}

/// Returns `▸ Fresh   █▌········┊··┊··    ~16.8k`: `chosen` is none for the tokens in use now.
fn way_line(
    model: &Model,
    chosen: Option<bool>,
    name: &str,
    tokens: Option<Tokens>,
    cells: usize,
    theme: &Theme,
) -> Line<'static> {
    let (sign, style) = match chosen {
        Some(true) => ("▸", theme.accent),
        _ => (" ", theme.dim),
    };
    let said = if name == FRESH {
        FRESH_EFFECT
    } else {
        "this handoff instead of the conversation"
    };
    let name = Span::styled(format!("{sign} {name:<width$}", width = WAY.0 - 2), style);
    let Some(tokens) = tokens else {
        return Line::from(vec![name, Span::styled(said, theme.text)]);
    };
    let assessed = model.session.guard.assess(tokens);
    // The figure after the reboot is always an estimate.
    let about = if chosen.is_some() { "~" } else { "" };
    let figure = format!("{about}{}", text::tokens(tokens));
    let room = cells.saturating_sub(WAY.0 + WAY.1);
    let mut spans = vec![name];
    if room >= 6 {
        let level = theme.level(assessed.level);
        let bar = gauge::bar(tokens, assessed.usable, &assessed.lines, level, theme, room);
        spans.extend(bar.spans);
    }
    let figure = format!("{figure:>width$}", width = WAY.1);
    spans.push(Span::styled(figure, theme.text));
    Line::from(spans)
}

/// Returns the cost of a turn now, and in a fresh session.
fn cost_line(model: &Model, theme: &Theme, cells: usize) -> Option<Line<'static>> {
    let cost = cost::per_turn(model)?;
    let now = format!("A turn costs {} now", text::dollars(cost.now));
    let said = match cost.fresh.map(text::dollars) {
        None => now,
        Some(fresh) => {
            let whole = format!("{now}, about {fresh} in a fresh session");
            if text::width(&whole) <= cells {
                whole
            } else {
                format!("{now}, ~{fresh} fresh")
            }
        }
    };
    Some(frame::row(text::fit(&said, cells), theme.text))
}

fn cause_label(model: &Model) -> String {
    let words = match model.reboot.attempt.as_ref().map(|attempt| attempt.cause) {
        None | Some(Cause::Key) => "requested by key",
        Some(Cause::Ctl) => "requested by pitstop ctl",
        Some(Cause::Api) => "requested through the API",
        Some(Cause::Threshold) => "the compact line is reached",
        Some(Cause::Breakpoint) => return breakpoint::reason(model),
        Some(Cause::Autopilot) => "requested by the autonomous run",
        Some(Cause::AgentExit) => "the agent has ended",
        Some(Cause::AgentCrash) => "the agent has crashed",
        Some(Cause::ContextLimit) => "the context window is full",
        Some(Cause::Compaction) => {
            banner::compaction_reason(model).unwrap_or("a compaction of Claude's")
        }
        Some(Cause::CompactCommand) => "/compact was typed",
        Some(Cause::Undo) => "undo",
        Some(Cause::Recovery) => "recovery",
        Some(Cause::Restore) => "restored from a checkpoint",
        Some(Cause::Resume) => "an earlier session",
    };
    words.to_owned()
}

/// Returns what happens after the approval: the one word on safety in the review.
fn waiting_text(model: &Model) -> String {
    if let Some(left) = compaction::left(model) {
        let seconds = left.as_millis().div_ceil(1000);
        let next = match model.config.guard.unanswered {
            Unanswered::Client => "it compacts by itself",
            Unanswered::Handoff => "it gets this handoff",
        };
        return format!(
            "Claude is about to compact and waits for your answer; in {seconds} s {next}."
        );
    }
    if goes_on_the_fly(model) && turn_runs(model) {
        let said = if on_the_fly::awaited(model).is_some() {
            "Approved; the agent gets it at its next step."
        } else {
            "Enter goes ahead at the agent's next step, without interrupting it."
        };
        return said.to_owned();
    }
    if is_impossible_trim(model) {
        return "Nothing goes ahead: the trim that was asked for is not possible. w takes another way."
            .to_owned();
    }
    let mut blocks = reboot::blocked_by(model);
    blocks.retain(|block| *block != Block::Typing);
    let ends = banner::awaited_events(&blocks);
    match (is_approved(model), blocks.is_empty()) {
        (true, false) => format!("Approved; waits {ends}. Enter interrupts the turn."),
        (true, true) => "Approved.".to_owned(),
        (false, true) => "Enter goes ahead at once.".to_owned(),
        (false, false) if blocks.contains(&Block::Turn) => {
            format!(
                "Once approved it waits {ends}. Enter again interrupts it: a call that runs is lost."
            )
        }
        (false, false) => format!("Once approved it waits {ends}."),
    }
}

/// Reports whether a trim is chosen, by a script or before it was known, that cannot be made.
fn is_impossible_trim(model: &Model) -> bool {
    let offer = trim::offer(model);
    is_trim(model) && !is_approved(model) && offer.is_err_and(|why| why != NotOffered::Reading)
}

fn is_approved(model: &Model) -> bool {
    let attempt = model.reboot.attempt.as_ref();
    attempt.is_some_and(|attempt| attempt.step() == Step::Waiting)
}

fn keys_of(model: &Model, cells: u16) -> Vec<String> {
    let approved = is_approved(model);
    let trims = is_trim(model);
    let edited = model.draft.handoff.edited.is_some();
    let held = compaction::is_held(model);
    let approve = match (approved, trims) {
        (true, _) => "Enter/a interrupt",
        (false, false) if held => "Enter/a reboot instead",
        (false, false) => "Enter/a approve",
        (false, true) => "Enter/a trim",
    };
    let out = match (held, approved) {
        (true, _) if cells < 60 => "Esc compacts",
        (true, _) => "Esc lets Claude compact",
        (false, true) => "Esc cancel",
        (false, false) => "Esc close",
    };
    let text = &model.draft.handoff.current().text;
    let mut keys = vec![
        approve,
        "e edit",
        out,
        "d defer 3 turns",
        READ_KEY,
        "/ find",
        handoff::fold_key(&model.view.reading, text),
        "Tab next section",
        "o fold or open",
        "y copy",
        "P pin, D drop your prompt",
    ];
    if edited {
        keys.insert(2, "x drop edit");
    }
    if is_impossible_trim(model) {
        keys.retain(|key| *key != approve);
    }
    let next = trim::next_way(model);
    let offered = matches!(trim::offer(model), Ok(_) | Err(NotOffered::Reading));
    if held {
        keys.retain(|key| *key != "d defer 3 turns");
    } else if !approved && (next != Way::Trim || offered) {
        let key = match next {
            Way::Fresh => "w fresh",
            Way::InPlace => "w in place",
            Way::OnTheFly => "w on the fly",
            Way::Trim => "w trim",
        };
        let behind = usize::from(keys.contains(&approve));
        keys.insert(behind, key);
    }
    keys.into_iter().map(str::to_owned).collect()
}
