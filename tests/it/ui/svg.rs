//! A frame as an SVG picture.
//!
//! Text stays text; borders and bars are drawn as shapes, because fonts leave gaps between their box characters. Shared by
//! the tests and `examples/screenshot.rs`.

use std::{collections::BTreeMap, fmt::Write};

use ratatui::{
    buffer::{Buffer, Cell},
    layout::Position,
    style::{Color, Modifier},
};
use unicode_width::UnicodeWidthStr;

/// The size of a cell, in SVG units: close to that of common fonts at 15 units.
const CELL: (f64, f64) = (9.0, 19.0);

/// The size of the text.
const FONT: f64 = 15.0;

/// Space around the frame.
const MARGIN: f64 = 16.0;

type Parts = (u8, u8, u8);

/// The colours of the terminal that the picture shows.
pub struct Colours {
    text: Parts,
    ground: Parts,
    named: [Parts; 16],
}

/// A dark terminal.
pub const DARK: Colours = Colours {
    text: (215, 219, 228),
    ground: (19, 21, 29),
    named: NAMED,
};

/// A light one.
pub const LIGHT: Colours = Colours {
    text: (36, 41, 51),
    ground: (255, 255, 255),
    named: NAMED,
};

const NAMED: [Parts; 16] = [
    (40, 44, 56),
    (224, 96, 96),
    (112, 184, 104),
    (216, 180, 88),
    (96, 136, 224),
    (184, 128, 216),
    (88, 184, 192),
    (200, 204, 212),
    (104, 112, 128),
    (240, 120, 120),
    (144, 208, 136),
    (236, 204, 112),
    (130, 170, 255),
    (208, 160, 240),
    (128, 212, 220),
    (240, 242, 246),
];

/// What is drawn, layer by layer.
#[derive(Default)]
struct Layers {
    grounds: String,
    /// Lines and blocks by colour.
    shapes: BTreeMap<(String, u8), String>,
    text: String,
}

/// A frame, and the cursor if it can be seen.
pub struct Frame {
    pub buffer: Buffer,
    pub cursor: Option<Position>,
}

/// Draws a frame.
pub fn svg(frame: &Frame, colours: &Colours) -> String {
    document(frame, "", &content(frame, colours), colours)
}

/// Draws frames of one size that follow one another, each for its number of seconds, again and again. Where the reader wants no
/// motion, only the last is seen.
pub fn animation(frames: &[(Frame, f64)], colours: &Colours) -> String {
    let total: f64 = frames.iter().map(|(_, seconds)| seconds).sum();
    let mut style = ".f{visibility:hidden}.f:last-child{visibility:visible}@media(prefers-reduced-motion:no-preference){.f:last-child{visibility:hidden}".to_owned();
    let mut rules = String::new();
    let mut groups = String::new();
    let mut begin = 0.0;
    for (number, (frame, seconds)) in frames.iter().enumerate() {
        let end = begin + seconds;
        let (from, to) = (100.0 * begin / total, 100.0 * end / total);
        let _ = write!(
            style,
            ".f{number}{{animation:f{number} {total}s step-end infinite}}"
        );
        let _ = write!(
            rules,
            "@keyframes f{number}{{0%{{visibility:hidden}}{from:.2}%{{visibility:visible}}{to:.2}%{{visibility:hidden}}}}"
        );
        let content = content(frame, colours);
        let _ = write!(groups, "<g class=\"f f{number}\">\n{content}</g>\n");
        begin = end;
    }
    style.push('}');
    style.push_str(&rules);
    document(&frames[0].0, &style, &groups, colours)
}

/// Returns the document around what is drawn.
fn document(frame: &Frame, style: &str, content: &str, colours: &Colours) -> String {
    let area = frame.buffer.area;
    let (wide, high) = (
        f64::from(area.width) * CELL.0 + 2.0 * MARGIN,
        f64::from(area.height) * CELL.1 + 2.0 * MARGIN,
    );
    let ground = hex(colours.ground);
    let edge = hex(mixed(colours.text, colours.ground, 0.2));
    let mut out = String::new();
    let _ = writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" role="img" aria-label="pitstop in a terminal">"#
    );
    let _ = writeln!(
        out,
        r#"<style>text{{font:{FONT}px ui-monospace,"JetBrains Mono","DejaVu Sans Mono",Menlo,Consolas,monospace;white-space:pre}}.b{{font-weight:700}}.i{{font-style:italic}}.d{{opacity:.62}}{style}</style>"#
    );
    let _ = writeln!(
        out,
        r#"<rect x=".5" y=".5" width="{}" height="{}" rx="11" fill="{ground}" stroke="{edge}"/>"#,
        wide - 1.0,
        high - 1.0
    );
    out.push_str(content);
    out.push_str("</svg>\n");
    out
}

/// Returns what is drawn of a frame.
fn content(frame: &Frame, colours: &Colours) -> String {
    let buffer = &frame.buffer;
    let mut layers = Layers::default();
    for y in 0..buffer.area.height {
        row(buffer, y, colours, &mut layers);
    }
    let mut out = layers.grounds;
    if let Some(Position { x, y }) = frame.cursor {
        let (x, y) = corner(x, y);
        let _ = writeln!(
            out,
            r#"<rect x="{x}" y="{y}" width="{}" height="{}" fill="{}"/>"#,
            CELL.0,
            CELL.1,
            hex(colours.text)
        );
    }
    for ((colour, weight), path) in &layers.shapes {
        let paint = match weight {
            0 => format!(r#"fill="{colour}""#),
            1 => format!(r#"fill="none" stroke="{colour}" stroke-width="1.3""#),
            _ => format!(r#"fill="none" stroke="{colour}" stroke-width="2.6""#),
        };
        let _ = writeln!(out, r#"<path {paint} d="{path}"/>"#);
    }
    out.push_str(&layers.text);
    out
}

fn corner(x: u16, y: u16) -> (f64, f64) {
    (
        MARGIN + f64::from(x) * CELL.0,
        MARGIN + f64::from(y) * CELL.1,
    )
}

/// A run of cells of one look.
struct Run {
    x: u16,
    cells: u16,
    text: String,
    ink: Parts,
    ground: Parts,
    modifier: Modifier,
}

fn row(buffer: &Buffer, y: u16, colours: &Colours, layers: &mut Layers) {
    let mut run: Option<Run> = None;
    let mut x = 0;
    while x < buffer.area.width {
        let cell = &buffer[(x, y)];
        let cells = cell.symbol().width().max(1) as u16;
        let (ink, ground) = paints(cell, colours);
        let shape = shape(cell.symbol(), x, y, &hex(ink), layers);
        let text = if shape { " " } else { cell.symbol() };
        // A wide character is placed by itself: fonts differ most in these.
        let joins = run.as_ref().is_some_and(|run| {
            cells == 1
                && run.text.width() == usize::from(run.cells)
                && (run.ink, run.ground, run.modifier) == (ink, ground, cell.modifier)
                && run.text.is_ascii()
                && text.is_ascii()
        });
        if joins && let Some(run) = &mut run {
            run.text.push_str(text);
            run.cells += cells;
        } else {
            if let Some(done) = run.take() {
                write_run(&done, y, colours, layers);
            }
            run = Some(Run {
                x,
                cells,
                text: text.to_owned(),
                ink,
                ground,
                modifier: cell.modifier,
            });
        }
        x += cells;
    }
    if let Some(done) = run {
        write_run(&done, y, colours, layers);
    }
}

fn write_run(run: &Run, y: u16, colours: &Colours, layers: &mut Layers) {
    let (left, top) = corner(run.x, y);
    let wide = f64::from(run.cells) * CELL.0;
    let ink = hex(run.ink);
    if run.ground != colours.ground {
        let ground = hex(run.ground);
        // A hair more than the cell, so that no seam is seen between rows.
        let _ = writeln!(
            layers.grounds,
            r#"<rect x="{left}" y="{top}" width="{wide}" height="{}" fill="{ground}"/>"#,
            CELL.1 + 0.3
        );
    }
    for (attribute, height) in [(Modifier::UNDERLINED, 16.0), (Modifier::CROSSED_OUT, 10.0)] {
        if run.modifier.contains(attribute) {
            let path = layers.shapes.entry((ink.clone(), 1)).or_default();
            let _ = write!(path, "M{left} {}h{wide}", top + height);
        }
    }
    let text = run.text.trim_end();
    let begin = text.len() - text.trim_start().len();
    let text = &text[begin..];
    if text.is_empty() || run.modifier.contains(Modifier::HIDDEN) {
        return;
    }
    let mut class = String::new();
    for (attribute, name) in [
        (Modifier::BOLD, "b"),
        (Modifier::ITALIC, "i"),
        (Modifier::DIM, "d"),
    ] {
        if run.modifier.contains(attribute) {
            class.push_str(if class.is_empty() { "" } else { " " });
            class.push_str(name);
        }
    }
    let class = if class.is_empty() {
        class
    } else {
        format!(r#" class="{class}""#)
    };
    let left = left + begin as f64 * CELL.0;
    let length = text.width() as f64 * CELL.0;
    let base = top + 14.2;
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let _ = writeln!(
        layers.text,
        r#"<text x="{left}" y="{base:.1}" textLength="{length}" lengthAdjust="spacingAndGlyphs" fill="{ink}"{class}>{text}</text>"#
    );
}

/// The colours of a cell's text and ground, as a terminal would show them.
fn paints(cell: &Cell, colours: &Colours) -> (Parts, Parts) {
    let ink = parts(cell.fg, colours.text, colours);
    let ground = parts(cell.bg, colours.ground, colours);
    if cell.modifier.contains(Modifier::REVERSED) {
        (ground, ink)
    } else {
        (ink, ground)
    }
}

fn parts(colour: Color, default: Parts, colours: &Colours) -> Parts {
    let named = |index: usize| colours.named[index];
    match colour {
        Color::Reset => default,
        Color::Black => named(0),
        Color::Red => named(1),
        Color::Green => named(2),
        Color::Yellow => named(3),
        Color::Blue => named(4),
        Color::Magenta => named(5),
        Color::Cyan => named(6),
        Color::Gray => named(7),
        Color::DarkGray => named(8),
        Color::LightRed => named(9),
        Color::LightGreen => named(10),
        Color::LightYellow => named(11),
        Color::LightBlue => named(12),
        Color::LightMagenta => named(13),
        Color::LightCyan => named(14),
        Color::White => named(15),
        Color::Rgb(r, g, b) => (r, g, b),
        Color::Indexed(index @ 0..16) => named(usize::from(index)),
        Color::Indexed(index @ 16..232) => {
            let step = |value: u8| if value == 0 { 0 } else { 55 + 40 * value };
            let rest = index - 16;
            (step(rest / 36), step(rest / 6 % 6), step(rest % 6))
        }
        Color::Indexed(index) => {
            let level = 8 + 10 * (index - 232);
            (level, level, level)
        }
    }
}

fn mixed(a: Parts, b: Parts, share: f64) -> Parts {
    let mix = |a: u8, b: u8| (f64::from(a) * share + f64::from(b) * (1.0 - share)) as u8;
    (mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

fn hex((r, g, b): Parts) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// The arms of a box character: up, right, down, left; whether it is heavy, whether its corner is round.
fn arms(symbol: &str) -> Option<([bool; 4], bool, bool)> {
    let (arms, heavy, round) = match symbol {
        "─" => ("rl", false, false),
        "│" => ("ud", false, false),
        "╭" => ("rd", false, true),
        "╮" => ("dl", false, true),
        "╯" => ("ul", false, true),
        "╰" => ("ur", false, true),
        "┌" => ("rd", false, false),
        "┐" => ("dl", false, false),
        "┘" => ("ul", false, false),
        "└" => ("ur", false, false),
        "├" => ("urd", false, false),
        "┤" => ("udl", false, false),
        "━" => ("rl", true, false),
        "┃" => ("ud", true, false),
        "┏" => ("rd", true, false),
        "┓" => ("dl", true, false),
        "┛" => ("ul", true, false),
        "┗" => ("ur", true, false),
        _ => return None,
    };
    Some((
        ['u', 'r', 'd', 'l'].map(|arm| arms.contains(arm)),
        heavy,
        round,
    ))
}

/// Draws a symbol as a shape, if it is one.
fn shape(symbol: &str, x: u16, y: u16, ink: &str, layers: &mut Layers) -> bool {
    let (left, top) = corner(x, y);
    let (middle_x, middle_y) = (left + CELL.0 / 2.0, top + CELL.1 / 2.0);
    if let Some(([up, right, down, to_left], heavy, round)) = arms(symbol) {
        let path = layers
            .shapes
            .entry((ink.to_owned(), 1 + u8::from(heavy)))
            .or_default();
        if round {
            let (from_y, to_x) = (
                if up { top } else { top + CELL.1 },
                if right { left + CELL.0 } else { left },
            );
            let _ = write!(
                path,
                "M{middle_x} {from_y}Q{middle_x} {middle_y} {to_x} {middle_y}"
            );
            return true;
        }
        // Half a stroke beyond the middle closes corners.
        let over = if heavy { 1.3 } else { 0.65 };
        let (from_y, to_y) = (
            if up { top } else { middle_y - over },
            if down { top + CELL.1 } else { middle_y + over },
        );
        let (from_x, to_x) = (
            if to_left { left } else { middle_x - over },
            if right {
                left + CELL.0
            } else {
                middle_x + over
            },
        );
        if up || down {
            let _ = write!(path, "M{middle_x} {from_y:.2}V{to_y:.2}");
        }
        if right || to_left {
            let _ = write!(path, "M{from_x:.2} {middle_y}H{to_x:.2}");
        }
        return true;
    }
    if symbol == "⎿" {
        let path = layers.shapes.entry((ink.to_owned(), 1)).or_default();
        let _ = write!(
            path,
            "M{} {top}V{}H{}",
            left + 2.0,
            top + CELL.1 - 5.0,
            left + CELL.0
        );
        return true;
    }
    let eighth = |symbols: &str| {
        symbols
            .chars()
            .position(|c| symbol.starts_with(c))
            .map(|at| (at + 1) as f64 / 8.0)
    };
    let rect = if let Some(share) = eighth("▏▎▍▌▋▊▉█") {
        (
            left,
            top,
            // A hair more, so that no seam is seen between cells.
            CELL.0 * share + if symbol == "█" { 0.2 } else { 0.0 },
            CELL.1,
        )
    } else if let Some(share) = eighth("▁▂▃▄▅▆▇") {
        let high = CELL.1 * share;
        (left, top + CELL.1 - high, CELL.0 + 0.2, high)
    } else if symbol == "▀" {
        (left, top, CELL.0 + 0.2, CELL.1 / 2.0)
    } else if symbol == "┊" {
        let path = layers.shapes.entry((ink.to_owned(), 1)).or_default();
        for step in 0..4 {
            let _ = write!(
                path,
                "M{middle_x} {}v2.6",
                top + 2.6 + f64::from(step) * 3.9
            );
        }
        return true;
    } else {
        return false;
    };
    let path = layers.shapes.entry((ink.to_owned(), 0)).or_default();
    let _ = write!(
        path,
        "M{:.2} {:.2}h{:.2}v{:.2}h-{:.2}z",
        rect.0, rect.1, rect.2, rect.3, rect.2
    );
    true
}
