//! The history panel: the iterations of this run and of earlier ones, newest first, and the details of one.

use std::time::Duration;

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

use crate::{
    app::{
        Model,
        facts::{cost_of, totals_of},
        history,
        model::{Focus, history::Difference},
    },
    handoff::summary::SummarySource,
    keymap::Action,
    lineage::{
        Cause, Iteration, RebootRecord, RunId, Way, journal::JournalEntry, past::PastSession,
    },
    transcript::Tokens,
};

use super::{
    frame,
    markdown::{self, Marks},
    text,
    text::tokens,
    theme::Theme,
};

/// The widest that the texts in the details get, in cells.
const WIDEST: u16 = 100;

/// Draws the history panel.
pub(super) fn draw(buf: &mut Buffer, area: Rect, model: &Model, theme: &Theme) {
    let focused = model.view.focus == Focus::History && model.view.overlay.is_none();
    let inner = frame::border(
        buf,
        area,
        frame::title(&name(model), focused, theme),
        focused,
        theme,
    );
    if focused {
        let hints: &[&str] = if model.view.history.typing {
            &["Enter search handoffs too", "Esc show all"]
        } else {
            &[
                "↑↓ select",
                "Enter details",
                "/ search",
                "R resume",
                "p play",
                "m mark",
                "y copy id",
                "Esc back",
            ]
        };
        let mut hints: Vec<String> = hints.iter().map(|hint| (*hint).to_owned()).collect();
        if model.autopilot.is_some() && !model.view.history.typing {
            hints.insert(2, "t run view".to_owned());
        }
        if let Some(marked) = history::compared(model).filter(|_| !model.view.history.typing) {
            hints.insert(1, format!("d compare with #{}", marked.iteration));
        }
        frame::foot(buf, area, &hints, "", theme);
    } else if let Some(key) = model.keys().hint(Action::History) {
        frame::corner(buf, area, &frame::row(format!(" {key} "), theme.dim));
    }
    let inner = query(buf, inner, model, theme);
    let count = history::listed(model).count();
    if count == 0 {
        let empty = if model.view.history.query.is_empty() {
            "nothing has run yet"
        } else {
            "nothing found"
        };
        frame::rows(buf, inner, &[frame::row(empty, theme.dim)]);
        return;
    }
    let roomy = count * 2 <= usize::from(inner.height);
    let selected = model.view.history.selected.min(count - 1);
    let cells = usize::from(inner.width);
    let mut lines = Vec::new();
    let mut selected_row = 0;
    let mut above = model.run();
    // No more than can be seen: a run may have hundreds.
    let reach = selected + usize::from(inner.height) + 1;
    for (at, (run, iteration)) in history::listed(model).enumerate().take(reach) {
        if run != above {
            above = run;
            let began = run.started().format("%Y-%m-%d %H:%M UTC");
            let cost = cost_of_run(run, model).map(text::dollars);
            let parts = [format!("run of {began}"), cost.unwrap_or_default()];
            let heading = format!(" {}", text::join(&parts, cells.saturating_sub(1)));
            lines.push(frame::row(heading, theme.title));
        }
        let chosen = focused && at == selected;
        let marked = history::marked(model).is_some_and(|one| one.is(run, iteration.iteration));
        let signs = if marked { ["*", "*"] } else { [" ", "▸"] };
        let sign = signs[usize::from(chosen)];
        let line = summary(run, iteration, model, sign, chosen, cells, theme);
        if chosen {
            selected_row = lines.len();
        }
        lines.push(line);
        if roomy || chosen {
            lines.push(detail(iteration, cells, theme));
        }
    }
    let height = usize::from(inner.height);
    let first = (selected_row + 2).saturating_sub(height).min(selected_row);
    frame::rows(buf, inner, &lines[first..]);
}

/// `History · 3 iterations · $14.20`, with the cost of this run; or how many a search has found.
fn name(model: &Model) -> String {
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    if !model.view.history.query.is_empty() {
        let (found, all) = (history::listed(model).count(), history::all(model).count());
        return format!("History · {found} of {all} iteration{}", plural(all));
    }
    let count = model.lineage.iterations().len();
    let mut name = "History".to_owned();
    if count > 1 {
        name.push_str(&format!(" · {count} iterations"));
    }
    if let Some(cost) = cost_of_run(model.run(), model).filter(|_| count > 1) {
        name.push_str(&format!(" · {}", text::dollars(cost)));
    }
    name
}

/// What is searched for, above the list; what is left of the panel.
fn query(buf: &mut Buffer, inner: Rect, model: &Model, theme: &Theme) -> Rect {
    let history = &model.view.history;
    if (history.query.is_empty() && !history.typing) || inner.height < 2 {
        return inner;
    }
    let cursor = if history.typing { "▏" } else { "" };
    let room = usize::from(inner.width).saturating_sub(2);
    let query = text::safe(&history.query);
    // The end of it is what is being typed.
    let skipped = text::width(&query).saturating_sub(room);
    let shown: String = query.chars().skip(skipped).collect();
    let style = if history.typing {
        theme.accent
    } else {
        theme.dim
    };
    frame::rows(
        buf,
        inner,
        &[frame::row(format!("/{shown}{cursor}"), style)],
    );
    Rect {
        y: inner.y + 1,
        height: inner.height - 1,
        ..inner
    }
}

/// What a run has cost by now; none where nothing is known of it.
fn cost_of_run(run: &RunId, model: &Model) -> Option<f64> {
    let of_it = history::all(model).filter(|(of, _)| *of == run);
    let costs = of_it.filter_map(|(_, iteration)| cost_of(iteration, model));
    costs.fold(None, |sum, cost| Some(sum.unwrap_or(0.0) + cost))
}

/// `#3 now · 12m · 18k→128k · $4.12`, behind the sign for the selected or the marked one.
fn summary(
    run: &RunId,
    iteration: &Iteration,
    model: &Model,
    sign: &str,
    chosen: bool,
    cells: usize,
    theme: &Theme,
) -> Line<'static> {
    let open = iteration.is_open();
    let number = format!("{sign}#{} ", iteration.iteration);
    let ended = history::ended(model, run, iteration).unwrap_or("now");
    let parts = [
        ended.to_owned(),
        text::span(lived(iteration, model)),
        figures(iteration, model),
        cost_of(iteration, model)
            .map(text::dollars)
            .unwrap_or_default(),
    ];
    let rest = text::join(&parts, cells.saturating_sub(text::width(&number)));
    let row = if chosen {
        theme.selection
    } else {
        Style::new()
    };
    let number_style = if open { theme.accent } else { theme.dim };
    let style = if open { theme.text } else { theme.dim };
    let gap = cells.saturating_sub(text::width(&number) + text::width(&rest));
    Line::from(vec![
        Span::styled(number, number_style.patch(row)),
        Span::styled(rest, style.patch(row)),
        Span::styled(" ".repeat(gap), row),
    ])
}

/// Why it began, and how long the reboot took.
fn detail(iteration: &Iteration, cells: usize, theme: &Theme) -> Line<'static> {
    let mut parts = vec![begun_by(iteration)];
    if let Some(record) = &iteration.reboot {
        parts.push(format!("in {}", text::short(record.total_ms())));
        let given = if let Some(trim) = record.trim {
            let (before, after) = (trim.tokens_before, trim.tokens_after);
            format!("trim {}→{}", text::rough(before), text::rough(after))
        } else {
            let bytes = usize::try_from(record.handoff_bytes).unwrap_or(usize::MAX);
            let place = match record.way {
                Way::InPlace => "in place, ",
                Way::Fresh | Way::Trim => "",
            };
            format!("{place}handoff {}", text::bytes(bytes))
        };
        parts.push(given);
    }
    parts.extend(text::compactions(iteration.compactions));
    let rest = text::join(&parts, cells.saturating_sub(4));
    frame::row(format!("    {rest}"), theme.dim)
}

fn begun_by(iteration: &Iteration) -> String {
    iteration.cause.map_or("started", Cause::short).to_owned()
}

fn lived(iteration: &Iteration, model: &Model) -> Duration {
    let end = iteration.ended_at.unwrap_or(model.now.wall);
    end.signed_duration_since(iteration.started_at)
        .to_std()
        .unwrap_or_default()
}

fn figures(iteration: &Iteration, model: &Model) -> String {
    let end = if iteration.is_open() {
        model.used()
    } else {
        iteration.tokens_at_end
    };
    let word = |figure: Option<Tokens>| figure.map_or_else(|| "–".to_owned(), text::rough);
    match (iteration.tokens_at_birth, end) {
        (None, None) => String::new(),
        (birth, end) => format!("{}→{}", word(birth), word(end)),
    }
}

/// Draws the details of the selected iteration over the pane.
pub(super) fn draw_detail(buf: &mut Buffer, pane: Rect, model: &Model, theme: &Theme) {
    let Some((run, iteration)) = history::selected(model) else {
        return;
    };
    let past = history::past_of_selected(model);
    // Of an earlier run the list has no more than it shows.
    let iteration = match past {
        Some(Ok(past)) if run != model.run() => &past.iteration,
        _ => iteration,
    };
    let differs = history::asked_of_selected(model).and_then(|past| past.difference.as_ref());
    let shows_difference = model.view.history.difference && differs.is_some();
    let messages = past.map_or_else(Vec::new, |past| messages(past, iteration));
    let mut facts = facts(run, iteration, model);
    facts.extend(summary_made(iteration));
    if messages.is_empty() {
        facts.extend(summary_lines(iteration));
    }
    // Whole texts take the whole pane: cut words of the agent's beside them would look like a fault.
    let area = if messages.is_empty() {
        let height = (facts.len() as u16).saturating_add(2);
        frame::centred(pane, pane.width.saturating_sub(4).clamp(36, 76), height)
    } else {
        pane
    };
    frame::clear(buf, area);
    let name = if run == model.run() {
        format!("Iteration {}", iteration.iteration)
    } else {
        format!("Iteration {} of run {run}", iteration.iteration)
    };
    let title = frame::title(&name, false, theme);
    let inner = frame::border(buf, area, title, false, theme);
    let cells = usize::from(inner.width);
    let text_cells = inner.width.saturating_sub(2).min(WIDEST);
    let facts = facts.into_iter().map(|(name, value)| {
        let room = cells.saturating_sub(14);
        let line = Line::from(vec![
            Span::styled(format!(" {name:<12} "), theme.dim),
            Span::styled(text::fit(&value, room).into_owned(), theme.text),
        ]);
        (0, line)
    });
    let heading = |heading: &str| {
        [
            (0, Line::default()),
            (0, frame::row(format!(" {heading}"), theme.title)),
        ]
    };
    let scroll = model.view.history.scroll;
    let window = if let Some(difference) = differs.filter(|_| shows_difference) {
        let rows = difference_rows(difference, cells, text_cells, theme);
        text::window(rows, scroll, inner.height)
    } else {
        let messages = messages.iter().flat_map(|(name, said)| {
            let rows = markdown::rows(said, text_cells, Marks::Kept, theme);
            heading(name).into_iter().chain(rows.map(indented))
        });
        text::window(facts.chain(messages), scroll, inner.height)
    };
    frame::rows(buf, inner, &window.rows);
    let mut hints = vec!["Enter close"];
    if window.above || window.below {
        hints.push("PgUp/PgDn scroll");
    }
    if shows_difference {
        hints.push("d whole texts");
    } else if differs.is_some() {
        hints.push("d difference");
    }
    hints.extend(["R resume", "p play", "y copy", "m mark", "↑↓ other"]);
    let hints: Vec<String> = hints.into_iter().map(str::to_owned).collect();
    frame::foot(buf, area, &hints, "", theme);
}

/// A row of a text below its heading, which is a cell from the border.
fn indented((line, mut row): (usize, Line<'static>)) -> (usize, Line<'static>) {
    row.spans.insert(0, Span::raw(" "));
    (line, row)
}

/// A difference below its heading, which takes the whole width.
fn difference_rows<'a>(
    difference: &'a Difference,
    cells: usize,
    text_cells: u16,
    theme: &'a Theme,
) -> impl Iterator<Item = (usize, Line<'static>)> + 'a {
    let heading = [(difference.heading.clone(), theme.title)];
    let lead = text::Lead {
        first: vec![(" ".to_owned(), theme.title)],
        rest: vec![(" ".to_owned(), theme.title)],
    };
    let heading = text::wrap(&heading, &lead, cells.saturating_sub(1));
    std::iter::once(Line::default())
        .chain(heading)
        .map(|row| (0, row))
        .chain(changes(&difference.text, text_cells, theme).map(indented))
}

/// The rows of a unified diff: what was added and what is gone differ by their sign, not only by their colour.
fn changes<'a>(
    difference: &'a str,
    cells: u16,
    theme: &'a Theme,
) -> impl Iterator<Item = (usize, Line<'static>)> + 'a {
    let shown = if difference.is_empty() {
        " nothing"
    } else {
        difference
    };
    shown.lines().enumerate().flat_map(move |(number, line)| {
        let style = match line.as_bytes().first() {
            Some(b'+') => theme.good,
            Some(b'-') => theme.bad,
            Some(b'@') => theme.accent,
            _ => theme.text,
        };
        let run = (text::safe_line(line).into_owned(), style);
        let rows = text::wrap(&[run], &text::Lead::default(), usize::from(cells));
        rows.into_iter().map(move |row| (number, row))
    })
}

/// The whole texts of an iteration: the handoff that it was given, the one that it gave, its summary.
fn messages(
    past: &Result<Box<PastSession>, String>,
    iteration: &Iteration,
) -> Vec<(&'static str, String)> {
    let past = match past {
        Ok(past) => past,
        Err(why) => return vec![("Handoffs", why.clone())],
    };
    let handoff = |entry: &Option<JournalEntry>| entry.as_ref().map(|entry| entry.handoff.clone());
    let saved = past.checkpoint.as_ref().filter(|_| past.gave.is_none());
    [
        ("Handoff it was given", handoff(&past.got)),
        ("Handoff it gave", handoff(&past.gave)),
        ("Last checkpoint", saved.map(|one| one.context.clone())),
        (
            "Summary",
            iteration
                .summary
                .clone()
                .or_else(|| past.iteration.summary.clone()),
        ),
    ]
    .into_iter()
    .filter_map(|(heading, said)| Some((heading, said.filter(|said| !said.trim().is_empty())?)))
    .collect()
}

/// What the session was begun with.
fn given(record: &RebootRecord) -> (&'static str, String) {
    if let Some(trim) = record.trim {
        let said = format!(
            "{} → {} tokens · {} of {} tool responses ({} %)",
            tokens(trim.tokens_before),
            tokens(trim.tokens_after),
            trim.responses,
            trim.of,
            trim.level
        );
        return ("trimmed", said);
    }
    let bytes = usize::try_from(record.handoff_bytes).unwrap_or(usize::MAX);
    let arrived = if record.verified {
        "delivered and confirmed"
    } else {
        "not confirmed"
    };
    let said = format!(
        "{} · {} tokens · {arrived}",
        text::bytes(bytes),
        tokens(record.handoff_tokens)
    );
    ("handoff", said)
}

fn facts(run: &RunId, iteration: &Iteration, model: &Model) -> Vec<(&'static str, String)> {
    let id = |session: &Option<crate::transcript::SessionId>| {
        session.map_or_else(|| "–".to_owned(), |id| id.to_string())
    };
    let time = |at: chrono::DateTime<chrono::Utc>| at.format("%Y-%m-%d %H:%M:%S UTC").to_string();
    let mut facts = vec![
        ("session", id(&iteration.session_id)),
        (
            "started",
            format!("{}, {}", time(iteration.started_at), begun_by(iteration)),
        ),
    ];
    if let Some(ended) = iteration.ended_at {
        let reason = history::ended(model, run, iteration).unwrap_or_default();
        facts.push(("ended", format!("{}, {reason}", time(ended))));
    }
    facts.push(("lasted", text::span(lived(iteration, model))));
    let context = [
        Some(figures(iteration, model)),
        text::compactions(iteration.compactions),
    ];
    let context: Vec<String> = context
        .into_iter()
        .flatten()
        .filter(|one| !one.is_empty())
        .collect();
    facts.push(("context", context.join(" · ")));
    let totals = totals_of(iteration, model);
    facts.push((
        "tokens",
        format!("{} in, {} out", tokens(totals.input), tokens(totals.output)),
    ));
    facts.extend(cost_of(iteration, model).map(|cost| ("cost", text::dollars(cost))));
    facts.extend(
        iteration
            .parent
            .map(|parent| ("continues", format!("iteration {parent}"))),
    );
    if let Some(record) = &iteration.reboot {
        facts.push(("from session", id(&record.old_session)));
        facts.push(given(record));
        facts.push(("reboot took", text::short(record.total_ms())));
        for (step, ms) in &record.transition_time_ms {
            facts.push(("", format!("{step} {}", text::short(*ms))));
        }
    }
    facts
}

/// Who wrote the summary.
fn summary_made(iteration: &Iteration) -> Vec<(&'static str, String)> {
    let made = iteration
        .summary
        .as_ref()
        .and(iteration.summary_made.as_ref());
    let Some(made) = made else {
        return Vec::new();
    };
    let by = match made.source {
        SummarySource::Model => "by a model",
        SummarySource::Fallback => "from the transcript",
    };
    let time = made.duration_ms.map(text::short);
    let cost = made.cost_usd.filter(|cost| *cost > 0.0).map(text::dollars);
    let parts = [Some(by.to_owned()), time, cost];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    let mut facts = vec![("summary", parts.join(" · "))];
    let reason = made.reason.as_deref();
    facts.extend(reason.map(|reason| ("", text::safe(reason).into_owned())));
    facts
}

/// A line of each section of the summary that says something.
fn summary_lines(iteration: &Iteration) -> Vec<(&'static str, String)> {
    let Some(said) = &iteration.summary else {
        return Vec::new();
    };
    let mut facts = Vec::new();
    let mut lines = said.lines().filter(|line| !line.trim().is_empty());
    let mut heading = None;
    for line in &mut lines {
        if let Some(title) = line.strip_prefix("### ") {
            heading = Some(title);
        } else if let Some(title) = heading.take()
            && line.trim() != "None."
        {
            facts.push(("", format!("{title}: {}", text::safe(line.trim()))));
        }
    }
    // Words of another shape, such as an older version kept.
    if !said.contains("### ") {
        facts.push(("", text::safe(said).into_owned()));
    }
    facts
}
