//! The details of an iteration: facts, the whole texts of its messages, the changes between two of them.

use chrono::{DateTime, Utc};
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Modifier,
    text::{Line, Span},
};

use pitstop_core::{
    app::{
        Model,
        facts::{cost_of, totals_of},
        history,
        model::history::Difference,
    },
    lineage::{Iteration, RebootRecord, RunId, past::PastSession},
};
use pitstop_handoff::summary::SummarySource;
use pitstop_transcript::SessionId;

use super::{
    super::{
        frame,
        markdown::{self, Marks},
        reading, review,
        text::{self, tokens},
        theme::Theme,
    },
    begun_by, length_cell, token_figures,
};

/// The widest that the texts get, in cells.
const WIDEST: u16 = 100;

/// Draws the details of the selected iteration over the pane: first the facts that a person asks for, then the whole texts,
/// ids and times of steps last. All of the pane is taken: cut words of the agent beside them would look like a fault.
pub(in crate::ui) fn draw(buf: &mut Buffer, pane: Rect, model: &Model, theme: &Theme) {
    let (history, lineage) = (&model.view.history, &model.lineage);
    let Some((run, iteration)) = history.selection(lineage) else {
        return;
    };
    let asked = history.asked_of_selected(lineage);
    let past = asked.and_then(|past| past.found.as_ref());
    // Of an earlier run the list has no more than it shows.
    let iteration = match past {
        Some(Ok(past)) if run != model.run() => &past.iteration,
        _ => iteration,
    };
    let differs = asked.and_then(|past| past.difference.as_ref());
    let difference = differs.filter(|_| model.view.history.difference);
    frame::clear(buf, pane);
    let name = name_of(run, iteration, model, difference.is_some());
    let inner = frame::draw_border(buf, pane, frame::title(&name, true, theme), true, theme);
    let cells = usize::from(inner.width);
    let text_cells = inner.width.saturating_sub(2).min(WIDEST);
    let scroll = model.view.history.scroll;
    let (window, lines) = if let Some(difference) = difference {
        let rows = difference_rows(difference, cells, text_cells, theme);
        let lines = difference.text.lines().count().max(1);
        (text::window(rows, scroll, inner.height), lines)
    } else {
        let facts = iteration_facts(run, iteration, past, model);
        let messages = match past {
            Some(Ok(past)) => history::texts(past, iteration),
            Some(Err(why)) => vec![("Handoffs", &why[..])],
            None => Vec::new(),
        };
        let record = record_facts(iteration);
        let texts: Vec<usize> = messages
            .iter()
            .map(|(_, said)| said.split('\n').count())
            .collect();
        let lines = facts.len() + texts.iter().sum::<usize>() + 2 * texts.len() + 2 + record.len();
        let mut above = facts.len();
        let texts = messages
            .iter()
            .zip(texts)
            .flat_map(|((name, said), count)| {
                let first = above + 2;
                above = first + count;
                let rows = markdown::rows(said, text_cells, Marks::Rendered, theme).map(indent_row);
                heading_rows(name, first, theme)
                    .chain(rows.map(move |(line, row)| (first + line, row)))
            });
        let at_end = lines - record.len();
        let rows = fact_rows(&facts, 0, cells, theme)
            .chain(texts)
            .chain(heading_rows("Record", at_end, theme))
            .chain(fact_rows(&record, at_end, cells, theme));
        (text::window(rows, scroll, inner.height), lines)
    };
    window.record(&model.view.history.bounds);
    let wanted = model.view.history.query.to_lowercase();
    let rows = window.rows.iter().cloned();
    let rows = rows.map(|row| reading::mark_matches(row, &wanted, theme));
    frame::rows(buf, inner, &rows.collect::<Vec<_>>());
    let mut hints = vec!["Esc close"];
    if window.scrolls() {
        hints.push("PgUp/PgDn scroll");
    }
    hints.extend(["R resume", "p play", "y copy"]);
    if difference.is_some() {
        hints.push("d whole texts");
    } else if differs.is_some() {
        hints.push("d diff");
    }
    hints.extend(["m mark to compare", "↑↓ other iteration"]);
    frame::foot(buf, pane, &hints, &window.mark(lines), theme);
}

/// Returns the name of an iteration, or of its comparison with the one that is marked.
fn name_of(run: &RunId, iteration: &Iteration, model: &Model, compares: bool) -> String {
    let name = if run == model.run() {
        format!("Iteration {}", iteration.iteration)
    } else {
        format!("Iteration {} of run {run}", iteration.iteration)
    };
    match model.view.history.compared(&model.lineage) {
        Some(marked) if compares => {
            format!("{name} and iteration {}: what changed", marked.iteration)
        }
        None if compares => format!("{name}: what changed"),
        _ => name,
    }
}

/// Returns facts and their names, wrapped; each is a line from `first` on.
fn fact_rows<'a>(
    facts: &'a [(&'static str, String)],
    first: usize,
    cells: usize,
    theme: &'a Theme,
) -> impl Iterator<Item = (usize, Line<'static>)> + 'a {
    facts
        .iter()
        .enumerate()
        .flat_map(move |(at, (name, said))| {
            let name = format!(" {name:<12} ");
            let rows = frame::named_rows(name, (said.clone(), theme.text), cells, theme);
            rows.into_iter().map(move |row| (first + at, row))
        })
}

/// Returns a blank row and a heading, which end before a line.
fn heading_rows(
    said: &str,
    line: usize,
    theme: &Theme,
) -> impl Iterator<Item = (usize, Line<'static>)> + use<> {
    let heading = frame::row(format!(" {said}"), theme.title);
    [
        (line.saturating_sub(2), Line::default()),
        (line.saturating_sub(1), heading),
    ]
    .into_iter()
}

/// Returns a row of a text below its heading, which is a cell from the border.
fn indent_row((line, mut row): (usize, Line<'static>)) -> (usize, Line<'static>) {
    row.spans.insert(0, Span::raw(" "));
    (line, row)
}

/// Returns the rows of a difference below its heading, which takes the whole width.
fn difference_rows<'a>(
    difference: &'a Difference,
    cells: usize,
    text_cells: u16,
    theme: &'a Theme,
) -> impl Iterator<Item = (usize, Line<'static>)> + 'a {
    let heading = [(difference.heading.clone(), theme.title)];
    let lead = text::Lead::hanging(" ", theme.title);
    let heading = text::wrap(&heading, &lead, cells.saturating_sub(1));
    std::iter::once(Line::default())
        .chain(heading)
        .map(|row| (0, row))
        .chain(
            change_rows(&difference.text, text_cells, theme)
                .into_iter()
                .map(indent_row),
        )
}

/// Returns the rows of a unified diff, rendered as the text itself is: what was added and what was removed differ by their sign
/// and by a line through them, not only by their colour. Red is for a thing that needs a person, and a removed line needs none.
fn change_rows(difference: &str, cells: u16, theme: &Theme) -> Vec<(usize, Line<'static>)> {
    if difference.is_empty() {
        return vec![(0, frame::row("nothing", theme.text))];
    }
    let lines: Vec<&str> = difference.lines().collect();
    let sign = |line: &str| line.as_bytes().first().copied().unwrap_or(b' ');
    let mut rows = Vec::new();
    let mut first = 0;
    let mut shown = 0;
    for part in lines.chunk_by(|one, next| sign(one) == sign(next) && sign(one) != b'@') {
        if sign(part[0]) == b'@' {
            let said = match parse_hunk(part[0]) {
                Some((begin, count)) => {
                    let folded = begin.saturating_sub(shown + 1);
                    shown = begin + count - 1;
                    (folded > 0).then(|| format!("⋯ {} unchanged", text::count(folded, "line")))
                }
                None => Some(text::safe(part[0].trim_matches(['@', ' '])).into_owned()),
            };
            rows.extend(said.map(|said| (first, frame::row(said, theme.dim))));
        } else {
            let said: Vec<&str> = part
                .iter()
                .map(|line| line.get(1..).unwrap_or(""))
                .collect();
            let said = said.join("\n");
            let laid = markdown::rows(&said, cells.saturating_sub(2), Marks::Rendered, theme);
            let row = |(line, row)| (first + line, diff_row(sign(part[0]), row, theme));
            rows.extend(laid.map(row));
        }
        first += part.len();
    }
    rows
}

/// Returns a row of a diff after its sign: added, removed or unchanged.
fn diff_row(sign: u8, row: Line<'static>, theme: &Theme) -> Line<'static> {
    let (sign, style) = match sign {
        b'+' => ("+ ", theme.good),
        b'-' => ("- ", theme.text.add_modifier(Modifier::CROSSED_OUT)),
        _ => return [Span::raw("  ")].into_iter().chain(row.spans).collect(),
    };
    let spans = row
        .spans
        .into_iter()
        .map(|span| Span::styled(span.content, style));
    let sign = Span::styled(sign, style.remove_modifier(Modifier::CROSSED_OUT));
    [sign].into_iter().chain(spans).collect()
}

/// Reads the place in the older text of `@@ -12,7 +12,9 @@`: its first line, and the number of its lines.
fn parse_hunk(head: &str) -> Option<(usize, usize)> {
    let range = head.strip_prefix("@@ -")?.split(' ').next()?;
    let (begin, count) = range.split_once(',').unwrap_or((range, "1"));
    let count: usize = count.parse().ok()?;
    // Where nothing of the older text is there, it begins behind that line.
    let begin: usize = begin.parse().ok()?;
    Some((begin + usize::from(count == 0), count))
}

/// Returns the text that the session was begun with.
fn given_fact(record: &RebootRecord) -> (&'static str, String) {
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
        "handoff of {} · {} tokens · {arrived}",
        text::bytes(bytes),
        tokens(record.handoff_tokens)
    );
    ("was given", said)
}

/// Returns the facts of an iteration: its beginning and end, its turns, tokens and cost, and the next step.
fn iteration_facts(
    run: &RunId,
    iteration: &Iteration,
    past: Option<&Result<Box<PastSession>, String>>,
    model: &Model,
) -> Vec<(&'static str, String)> {
    let time = |at: DateTime<Utc>| model.now.local(at).format("%Y-%m-%d %H:%M").to_string();
    let lasted = length_cell(iteration, model);
    let began = format!("{}, {}", time(iteration.started_at), begun_by(iteration));
    let ended = match iteration.ended_at {
        Some(at) => {
            let reason = model.view.history.ended(&model.lineage, run, iteration);
            let reason = reason.unwrap_or_default();
            ("ended", format!("{}, {reason}, after {lasted}", time(at)))
        }
        None => ("lasts", format!("{lasted} so far")),
    };
    let mut facts = vec![("began", began), ended];
    let mut context = vec![token_figures(iteration, model)];
    let turns = iteration
        .turns
        .and_then(|count| usize::try_from(count).ok());
    context.extend(turns.map(|turns| text::count(turns, "turn")));
    context.extend(text::compaction_count(iteration.compactions));
    context.retain(|one| !one.is_empty());
    facts.push(("context", context.join(" · ")));
    let totals = totals_of(iteration, model);
    let (input, output) = (tokens(totals.input), tokens(totals.output));
    facts.push(("tokens", format!("{input} in, {output} out")));
    facts.extend(cost_of(iteration, model).map(|cost| ("cost", text::dollars(cost))));
    facts.extend(next_step(iteration, past, model).map(|next| ("next step", next)));
    facts.extend(iteration.reboot.as_ref().map(given_fact));
    facts.extend(summary_made(iteration));
    if !matches!(past, Some(Ok(_))) {
        facts.extend(summary_lines(iteration));
    }
    facts.retain(|(_, said)| !said.is_empty());
    facts
}

/// Returns the next step at the end of an iteration; of the iteration that lives, the next step now.
fn next_step(
    iteration: &Iteration,
    past: Option<&Result<Box<PastSession>, String>>,
    model: &Model,
) -> Option<String> {
    let next = if iteration.is_open() {
        review::next_step(&model.draft.handoff.current().text)
    } else {
        let past = past?.as_ref().ok()?;
        review::next_step(&past.gave.as_ref()?.handoff)
    };
    next.map(|next| text::safe(&next).into_owned())
}

/// Returns the facts of its record: the ids, and the times that the steps of its reboot took.
fn record_facts(iteration: &Iteration) -> Vec<(&'static str, String)> {
    let id =
        |session: &Option<SessionId>| session.map_or_else(|| "–".to_owned(), |id| id.to_string());
    let mut facts = vec![("session", id(&iteration.session_id))];
    let parent = iteration.parent;
    facts.extend(parent.map(|parent| ("continues", format!("iteration {parent}"))));
    if let Some(record) = &iteration.reboot {
        facts.push(("from session", id(&record.old_session)));
        let device = record.approved_from.as_deref();
        let device = device.map(|device| text::safe(device).into_owned());
        facts.extend(device.map(|device| ("approved from", device)));
        let steps = record.transition_time_ms.iter();
        let steps: Vec<String> = steps
            .map(|(step, ms)| format!("{step} {}", text::short(*ms)))
            .collect();
        let took = text::short(record.total_ms());
        facts.push(("reboot took", format!("{took}: {}", steps.join(", "))));
    }
    facts
}

/// Returns the author of the summary.
fn summary_made(iteration: &Iteration) -> Vec<(&'static str, String)> {
    let (Some(_), Some(made)) = (&iteration.summary, &iteration.summary_made) else {
        return Vec::new();
    };
    let by = match made.source {
        SummarySource::Model => "by a model",
        SummarySource::Fallback => "from the transcript",
    };
    let time = made.duration_ms.map(text::short);
    let cost = made.cost_usd.filter(|cost| *cost > 0.0).map(text::dollars);
    let parts = [Some(by.to_owned()), time, cost].into_iter().flatten();
    let summary = ("summary", parts.collect::<Vec<_>>().join(" · "));
    let reason = made.reason.as_deref();
    let reason = reason.map(|reason| ("", text::safe(reason).into_owned()));
    std::iter::once(summary).chain(reason).collect()
}

/// Returns a line of each section of the summary that is not empty.
fn summary_lines(iteration: &Iteration) -> Vec<(&'static str, String)> {
    let Some(said) = &iteration.summary else {
        return Vec::new();
    };
    let mut facts = Vec::new();
    let mut heading = None;
    for line in said.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(title) = line.strip_prefix("### ") {
            heading = Some(title);
        } else if let Some(title) = heading.take()
            && line.trim() != "None."
        {
            facts.push(("", format!("{title}: {}", text::safe(line.trim()))));
        }
    }
    // A text of another shape, such as an older version kept.
    if !said.contains("### ") {
        facts.push(("", text::safe(said).into_owned()));
    }
    facts
}
