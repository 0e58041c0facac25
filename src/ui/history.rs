//! The history panel: the iterations of this run and of earlier ones, newest first.

pub(super) mod detail;

use std::borrow::Cow;

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};

use pitstop_base::keymap::Action;
use pitstop_core::{
    app::{
        Model,
        facts::{YOUNG, cost_of, lasted, total_cost_of},
        model::Focus,
    },
    lineage::{Cause, Iteration, RebootRecord, RunId, Way, past::Excerpt},
};
use pitstop_transcript::Tokens;

use super::{frame, reading, text, theme::Theme};

/// Draws the history panel.
pub(super) fn draw(buf: &mut Buffer, area: Rect, model: &Model, theme: &Theme) {
    let selects = model.view.focus == Focus::History && model.view.overlay.is_none();
    // The view that is open over the pane has the keys, and shows which.
    let focused = selects && !model.view.history.is_large();
    let key = model.keys().hint(Action::History);
    let corner = frame::corner_label(key.filter(|_| !focused), theme);
    let room = usize::from(area.width).saturating_sub(4 + corner.width());
    let title = frame::title(&panel_name(model, room), focused, theme);
    let inner = frame::draw_border_with_corner(buf, area, title, &corner, focused, theme);
    let list = draw_query(buf, inner, model, theme);
    let mark = draw_rows(buf, list, model, selects, theme);
    if focused {
        frame::foot(buf, area, &list_hints(model), &mark, theme);
    } else {
        frame::foot::<&str>(buf, area, &[], &mark, theme);
    }
}

/// Returns the keys of the list.
fn list_hints(model: &Model) -> Vec<Cow<'static, str>> {
    if model.view.history.typing {
        return vec!["Enter handoffs too".into(), "Esc show all".into()];
    }
    let (history, lineage) = (&model.view.history, &model.lineage);
    let compares = history
        .compared(lineage)
        .map(|marked| format!("d compare with #{}", marked.iteration).into());
    let run = model.autopilot.is_some().then_some("t run view".into());
    let mut hints: Vec<Cow<'static, str>> = compares.into_iter().chain(run).collect();
    let back = if !model.view.history.query.is_empty() {
        "Esc show all"
    } else if history.marked.is_some() {
        "Esc unmark"
    } else {
        "Esc back"
    };
    let rest = [
        "Enter details",
        "R resume",
        "p play",
        "/ search",
        "m mark to compare",
        "y copy id",
        "↑↓ select",
        back,
    ];
    hints.extend(rest.map(Cow::from));
    hints
}

/// Draws the list, and returns its place if not all of it is seen.
fn draw_rows(buf: &mut Buffer, inner: Rect, model: &Model, selects: bool, theme: &Theme) -> String {
    let (history, lineage) = (&model.view.history, &model.lineage);
    let count = history.listed(lineage).count();
    if count == 0 {
        let empty = if model.view.history.query.is_empty() {
            "nothing has run yet"
        } else {
            "nothing found"
        };
        frame::rows(buf, inner, &[frame::row(empty, theme.dim)]);
        return String::new();
    }
    let selected = model.view.history.selected.min(count - 1);
    let (cells, height) = (usize::from(inner.width), usize::from(inner.height));
    // The iterations that can be seen, no more:
    let shown: Vec<_> = history
        .listed(lineage)
        .take(selected + height + 1)
        .collect();
    // A figure at the border is hard to read.
    let columns = Columns::of(&shown, model, cells.saturating_sub(1));
    let headings = shown.chunk_by(|one, next| one.0 == next.0).count();
    let roomy = count * 2 + headings <= height + 1;
    let mut lines = Vec::new();
    let mut selected_row = 0;
    let mut has_excerpt = false;
    // The result of a search may begin with an earlier run.
    let mut above = Some(model.run()).filter(|_| model.view.history.query.is_empty());
    for (at, (run, iteration)) in shown.iter().enumerate() {
        if Some(*run) != above {
            above = Some(run);
            lines.push(frame::row(run_heading(run, model, cells), theme.title));
        }
        let chosen = selects && at == selected;
        let marked = history.marked.as_ref();
        let marked = marked.is_some_and(|one| one.is(run, iteration.iteration));
        let signs = if marked { ["*", "*"] } else { [" ", "▸"] };
        let sign = signs[usize::from(chosen)];
        if chosen {
            selected_row = lines.len();
        }
        let first = columns.first_row(run, iteration, model, sign);
        let open = iteration.is_open();
        let style = if open { theme.text } else { theme.dim };
        let number = if open { theme.accent } else { theme.dim };
        let second = (roomy || chosen).then(|| columns.second_row(iteration, model));
        let excerpt = history.excerpt(run, iteration);
        let excerpt = excerpt.map(|one| excerpt_row(&one, model, &columns, theme));
        if chosen {
            // Grey is hard to read on the ground of a selection.
            let style = theme.text.patch(theme.selection);
            let row = |said: String| frame::row(format!("{said:<cells$}"), style);
            lines.push(row(first.0 + &first.1));
            lines.extend(second.map(row));
        } else {
            lines.push(Line::from(vec![
                Span::styled(first.0, number),
                Span::styled(first.1, style),
            ]));
            lines.extend(second.map(|said| frame::row(said, theme.dim)));
        }
        has_excerpt |= chosen && excerpt.is_some();
        lines.extend(excerpt);
    }
    let of_selected = 2 + usize::from(has_excerpt);
    let first = (selected_row + of_selected)
        .saturating_sub(height)
        .min(selected_row);
    let wanted = history.query.to_lowercase();
    let rows = lines[first..].iter().take(usize::from(inner.height));
    let rows = rows.cloned();
    let rows = rows.map(|row| reading::mark_matches(row, &wanted, theme));
    frame::rows(buf, inner, &rows.collect::<Vec<_>>());
    text::mark(first > 0, lines.len() > first + height, selected + 1, count)
}

/// Returns the words around what was searched for, with the name of what they are from.
fn excerpt_row(
    excerpt: &Excerpt,
    model: &Model,
    columns: &Columns,
    theme: &Theme,
) -> Line<'static> {
    let wanted = model.view.history.query.to_lowercase();
    let name = format!(
        "{:indent$}{}: ",
        "",
        excerpt.of,
        indent = columns.number + 3
    );
    let words = text::safe(&excerpt.words);
    let room = columns.cells.saturating_sub(text::width(&name));
    let at = words.to_lowercase().find(&wanted).unwrap_or(0);
    let before = words.get(..at).unwrap_or_default();
    // What comes before keeps a third of the room.
    let mut skipped = 0;
    while text::width(&before[skipped..]) > room / 3 {
        skipped = before[skipped..]
            .find(' ')
            .map_or(at, |blank| skipped + blank + 1);
    }
    let sign = if skipped > 0 { "…" } else { "" };
    let words = format!("{sign}{}", &words[skipped.min(before.len())..]);
    Line::from(vec![
        Span::styled(name, theme.dim),
        Span::styled(text::fit(&words, room).into_owned(), theme.text),
    ])
}

/// Returns `run of 2026-11-20 09:00 · $16.15`, above the iterations of an earlier run.
fn run_heading(run: &RunId, model: &Model, cells: usize) -> String {
    let cost = cost_of_run(run, model).map(text::dollars);
    let name = if run == model.run() {
        "this run".to_owned()
    } else {
        let began = model.now.local(run.started());
        format!("run of {}", began.format("%Y-%m-%d %H:%M"))
    };
    let parts = [name, cost.unwrap_or_default()];
    format!(" {}", text::join(&parts, cells.saturating_sub(1)))
}

/// The widths of the list's columns, in cells.
struct Columns {
    cells: usize,
    number: usize,
    ended: usize,
    time: usize,
    tokens: usize,
    cost: usize,
    /// True if the cost is in the second row of an iteration: the first is too narrow.
    cost_below: bool,
}

/// The gap between two columns, in cells.
const GAP: usize = 2;

/// The fewest cells that the words for the end of an iteration need.
const LEAST_ENDED: usize = 12;

impl Columns {
    fn of(shown: &[(&RunId, &Iteration)], model: &Model, cells: usize) -> Self {
        let widest = |said: &dyn Fn(&RunId, &Iteration) -> String| {
            let widths = shown.iter().map(|(run, one)| text::width(&said(run, one)));
            widths.max().unwrap_or(0)
        };
        let number = widest(&|_, one| one.iteration.to_string());
        let time = widest(&|_, one| length_cell(one, model));
        let tokens = widest(&|_, one| token_figures(one, model));
        let cost = widest(&|_, one| cost_cell(one, model));
        let ended = widest(&|run, one| ended_cell(run, one, model));
        let column = |wide: usize| if wide == 0 { 0 } else { GAP + wide };
        let room = cells.saturating_sub(number + 3 + column(time) + column(tokens));
        let cost_below = room < LEAST_ENDED.min(ended) + column(cost);
        let room = room.saturating_sub(if cost_below { 0 } else { column(cost) });
        Self {
            cells,
            number,
            ended: ended.min(room),
            time,
            tokens,
            cost,
            cost_below,
        }
    }

    /// Returns `#2 `, and `at the compact line  41m  19k→132k  $6.35`.
    fn first_row(
        &self,
        run: &RunId,
        iteration: &Iteration,
        model: &Model,
        sign: &str,
    ) -> (String, String) {
        let number = format!("#{}", iteration.iteration);
        let number = format!("{sign}{number:<wide$} ", wide = self.number + 1);
        let ended = ended_cell(run, iteration, model);
        let ended = if text::width(&ended) > self.ended {
            ended
                .trim_start_matches("at the ")
                .trim_start_matches("at a ")
        } else {
            &ended
        };
        let ended = text::fit(ended, self.ended);
        let mut said = format!("{ended:<wide$}", wide = self.ended);
        let cost = if self.cost_below { 0 } else { self.cost };
        for (cell, wide) in [
            (length_cell(iteration, model), self.time),
            (token_figures(iteration, model), self.tokens),
            (cost_cell(iteration, model), cost),
        ] {
            if wide > 0 {
                said.push_str(&format!("{:GAP$}{cell:>wide$}", ""));
            }
        }
        (number, said)
    }

    /// Returns `began by key · reboot took 1.6 s · handoff 11.2 KB`, and the cost at its right end if it has no place
    /// above.
    fn second_row(&self, iteration: &Iteration, model: &Model) -> String {
        let indent = self.number + 3;
        let cost = cost_cell(iteration, model);
        let has_cost = self.cost_below && self.cost > 0;
        let wide = if has_cost { self.cost + 1 } else { 0 };
        let room = self.cells.saturating_sub(indent + wide);
        let said = text::join(&beginning_parts(iteration, room), room);
        let mut row = format!("{:indent$}{said}", "");
        if has_cost {
            let above = indent + self.ended + 2 * GAP + self.time + self.tokens;
            let gap = above.min(self.cells).saturating_sub(text::width(&row));
            row.push_str(&format!("{cost:>gap$}"));
        }
        row
    }
}

/// Returns the words for the end of an iteration.
fn ended_cell(run: &RunId, iteration: &Iteration, model: &Model) -> String {
    let ended = model.view.history.ended(&model.lineage, run, iteration);
    ended.unwrap_or_else(|| "now".to_owned())
}

/// Returns the length of an iteration: of one that runs, in seconds only as long as the screen follows them.
fn length_cell(iteration: &Iteration, model: &Model) -> String {
    let lasted = lasted(iteration, model);
    if iteration.is_open() && lasted >= YOUNG && lasted.as_secs() < 60 {
        return "<1m".to_owned();
    }
    text::span(lasted)
}

fn cost_cell(iteration: &Iteration, model: &Model) -> String {
    let cost = cost_of(iteration, model);
    cost.map(text::dollars).unwrap_or_default()
}

/// Returns the words for the beginning of an iteration, and for the time that the reboot took.
fn beginning_parts(iteration: &Iteration, cells: usize) -> Vec<String> {
    let mut parts = vec![format!("began {}", begun_by(iteration))];
    if let Some(record) = &iteration.reboot {
        let took = text::short(record.total_ms());
        let long = format!("reboot took {took}");
        let fits = text::width(&parts[0]) + 3 + text::width(&long) <= cells;
        parts.push(if fits { long } else { format!("reboot {took}") });
        parts.push(given_cell(record));
    }
    parts.extend(text::compaction_count(iteration.compactions));
    parts
}

/// Returns the handoff or the trim that a reboot gave to the iteration, short.
fn given_cell(record: &RebootRecord) -> String {
    if let Some(trim) = record.trim {
        let (before, after) = (trim.tokens_before, trim.tokens_after);
        return format!("trim {}→{}", text::rough(before), text::rough(after));
    }
    let bytes = usize::try_from(record.handoff_bytes).unwrap_or(usize::MAX);
    let place = match record.way {
        Way::InPlace => "in place, ",
        Way::OnTheFly => "on the fly, ",
        Way::Fresh | Way::Trim => "",
    };
    format!("{place}handoff {}", text::bytes(bytes))
}

/// Returns the cause of an iteration; it follows `began`.
fn begun_by(iteration: &Iteration) -> &'static str {
    iteration.cause.map_or("with the run", Cause::short)
}

/// Returns `History · 3 iterations · $14.20`, with the cost of this run, which is named where there are earlier ones; or
/// the number that a search has found.
fn panel_name(model: &Model, room: usize) -> String {
    if !model.view.history.query.is_empty() {
        let (history, lineage) = (&model.view.history, &model.lineage);
        let all = text::count(history.all(lineage).count(), "iteration");
        return format!("History · {} of {all}", history.listed(lineage).count());
    }
    let count = model.lineage.iterations().len();
    let cost = cost_of_run(model.run(), model).map(text::dollars);
    let mut parts = vec![text::count(count, "iteration")];
    parts.extend(cost.clone());
    if model.view.history.earlier.is_empty() {
        return match count {
            0 | 1 => "History".to_owned(),
            _ => format!("History · {}", parts.join(" · ")),
        };
    }
    let whole = format!("History · this run: {}", parts.join(", "));
    match cost {
        _ if text::width(&whole) <= room => whole,
        Some(cost) => format!("History · this run {cost}"),
        None => "History".to_owned(),
    }
}

/// Draws the text of the search above the list, and returns the rest of the panel.
fn draw_query(buf: &mut Buffer, inner: Rect, model: &Model, theme: &Theme) -> Rect {
    let history = &model.view.history;
    if (history.query.is_empty() && !history.typing) || inner.height < 2 {
        return inner;
    }
    let cursor = if history.typing { "▏" } else { "" };
    let room = usize::from(inner.width).saturating_sub(2);
    let query = text::safe(&history.query);
    // The user types at its end.
    let shown = text::tail(&query, room);
    let style = if history.typing {
        theme.accent
    } else {
        theme.dim
    };
    let row = frame::row(format!("/{shown}{cursor}"), style);
    frame::rows(buf, inner, &[row]);
    frame::below(inner, 1)
}

/// Returns the cost of a run with its summaries by now; none where it is not known.
fn cost_of_run(run: &RunId, model: &Model) -> Option<f64> {
    let all = model.view.history.all(&model.lineage);
    let of_it = all.filter(|(of, _)| *of == run);
    let costs = of_it.filter_map(|(_, one)| total_cost_of(one, model));
    costs.reduce(|sum, cost| sum + cost)
}

fn token_figures(iteration: &Iteration, model: &Model) -> String {
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
