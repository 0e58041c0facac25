//! Recordings of real programs, and what they must show: each cell as another emulator has it.
//!
//! Below `recordings/` there is a `.cast` and a `.grid` for each entry of `recipes.toml`, both made by
//! `cargo run --example conformance`. The grids come from tmux, which was fed the same bytes; where it is known to be
//! wrong or to know less than we do, the note at the grid's head says so.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
    time::{Duration, Instant},
};

use alacritty_terminal::{term::cell::Flags, vte::ansi::Color};
use pitstop_terminal::{
    PaneSize,
    pane::replay::{Cast, Replay},
    screen::Screen,
};
use serde_json::Value;

use crate::kit::{
    client::{ASKS_FIRST, live_client},
    grid::{self, Grid, Look, Unit},
    messages_api::Answer,
    poll,
    supervisor::{Launch, SOON, key},
    terminal::Seen,
    tmux::Tmux,
};

/// The lines kept above the screen, as in the default settings.
const SCROLLBACK: usize = 10_000;

enum Event {
    Output(Vec<u8>),
    Resize(PaneSize),
}

struct Recording {
    name: String,
    file: Vec<u8>,
    size: PaneSize,
    events: Vec<Event>,
    expected: Grid,
}

fn recordings() -> Vec<Recording> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/recordings");
    let files = fs::read_dir(directory).expect("the recordings").flatten();
    let mut casts: Vec<PathBuf> = files
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|end| end == "cast"))
        .collect();
    casts.sort_by_key(|cast| cast.file_stem().map(std::ffi::OsStr::to_owned));
    casts.iter().map(|cast| read(cast)).collect()
}

fn read(cast: &Path) -> Recording {
    let name = cast
        .file_stem()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let file = fs::read(cast).expect("a recording");
    let expected = fs::read_to_string(cast.with_extension("grid")).expect("what it must show");
    let mut lines = file.split(|byte| *byte == b'\n');
    let head: Value = serde_json::from_slice(lines.next().unwrap_or_default()).expect("a header");
    let side = |name: &str| {
        head[name]
            .as_u64()
            .and_then(|side| u16::try_from(side).ok())
    };
    Recording {
        size: PaneSize::new(
            side("width").expect("a width"),
            side("height").expect("a height"),
        ),
        events: lines.filter(|line| !line.is_empty()).map(event).collect(),
        expected: Grid::parse(&expected).unwrap_or_else(|fault| panic!("{name}: {fault}")),
        name,
        file,
    }
}

fn event(line: &[u8]) -> Event {
    let event: Value = serde_json::from_slice(line).expect("an event");
    let text = event[2].as_str().expect("a text");
    match (&event[1], text.split_once('x')) {
        (Value::String(kind), Some((columns, rows))) if kind == "r" => {
            let side = |side: &str| side.parse().expect("a number of cells");
            Event::Resize(PaneSize::new(side(columns), side(rows)))
        }
        _ => Event::Output(text.as_bytes().to_vec()),
    }
}

impl Recording {
    /// What our screen shows when it gets the output in pieces of these lengths, over and over.
    fn fed(&self, lengths: &[usize]) -> Grid {
        let now = Instant::now();
        let mut screen = Screen::new(self.size, SCROLLBACK);
        let mut lengths = lengths.iter().cycle();
        for event in &self.events {
            match event {
                Event::Resize(size) => screen.resize(*size),
                Event::Output(bytes) => {
                    let mut rest = &bytes[..];
                    while !rest.is_empty() {
                        let length = *lengths.next().expect("lengths");
                        let (piece, after) = rest.split_at(length.min(rest.len()));
                        screen.feed(piece, now);
                        rest = after;
                    }
                }
            }
        }
        screen.expire(now + Duration::from_secs(1));
        Grid::with_above(&mut screen)
    }

    /// What the history panel shows at the recording's end.
    fn replayed(&self) -> Grid {
        let mut replay = Replay::new(Cast::parse(&self.file).expect("a recording"));
        replay.seek(Duration::MAX);
        while replay.is_behind() {
            replay.tick(Duration::ZERO);
        }
        // It keeps fewer lines, and is asked for none of them here.
        Grid {
            above: self.expected.above.clone(),
            ..Grid::of(replay.screen())
        }
    }

    /// All its output, on a terminal as new.
    fn output(&self) -> Vec<u8> {
        let mut bytes = b"\x1bc".to_vec();
        for event in &self.events {
            if let Event::Output(output) = event {
                bytes.extend_from_slice(output);
            }
        }
        bytes
    }
}

/// Shows every difference of every recording at once.
fn compare(found: impl Fn(&Recording) -> Grid) {
    let recordings = recordings();
    assert!(recordings.len() >= 40, "{} recordings", recordings.len());
    let mut reported = String::new();
    for recording in &recordings {
        for difference in recording.expected.differences(&found(recording)) {
            reported.push_str(&format!("{}: {difference}\n", recording.name));
        }
    }
    assert!(reported.is_empty(), "{reported}");
}

#[test]
fn real_programs_look_as_in_another_emulator() {
    compare(|recording| recording.fed(&[usize::MAX]));
}

#[test]
fn real_programs_look_the_same_wherever_their_bytes_are_cut() {
    compare(|recording| recording.fed(&[1, 7, 2, 64, 3, 1, 500, 5, 1, 31]));
}

#[test]
fn small_recordings_look_the_same_byte_by_byte() {
    compare(|recording| match recording.output().len() {
        0..=10_000 => recording.fed(&[1]),
        _ => recording.expected.clone(),
    });
}

#[test]
fn real_programs_look_the_same_when_they_are_replayed() {
    compare(Recording::replayed);
}

#[test]
fn every_recipe_has_its_recording() {
    let recipes = include_str!("recordings/recipes.toml");
    let recipes: toml::Table = recipes.parse().expect("a list of recipes");
    let mut named: Vec<&str> = recipes["recording"]
        .as_array()
        .expect("recipes")
        .iter()
        .map(|recipe| recipe["name"].as_str().expect("a name"))
        .collect();
    named.sort_unstable();
    let recordings = recordings();
    let kept: Vec<&str> = recordings
        .iter()
        .map(|recording| &*recording.name)
        .collect();
    assert_eq!(named, kept);
}

/// Shows the files `go-0`, `go-1` and so on in the pane, each as soon as it is there and the pane has its size.
const SHOWN_IN_TURN: &str = r#"
stty raw -echo
printf HERE
i=0
while :; do
    until [ -e go-$i ] && [ "$(stty size)" = "$(cat size-$i)" ]; do sleep 0.02; done
    cat go-$i
    i=$((i + 1))
done
"#;

/// The line below a zoomed pane.
const STRIP: u16 = 1;

/// The recordings that the whole program shows: one of each kind, as the others would take their time. Not emoji: the
/// kit's outer terminal joins none.
const SHOWN: [&str; 11] = [
    "claude-full-scroll",
    "claude-full-tools",
    "claude-inline",
    "dialog",
    "htop",
    "mc",
    "sequences-cells",
    "tree",
    "truecolour",
    "vim-colours",
    "wide-200",
];

/// The pane's cells as they stand in the outer terminal, from its upper left corner on.
fn pane(cells: &[Vec<Seen>], (row, column): (usize, usize), size: PaneSize) -> Grid {
    let (columns, rows) = (size.columns().into(), size.rows().into());
    let lines = cells.iter().take(rows);
    Grid {
        columns,
        rows,
        cursor: (column, row),
        lines: lines
            .map(|line| units(&line[..line.len().min(columns)]))
            .collect(),
        ..Grid::default()
    }
}

fn units(line: &[Seen]) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut column = 0;
    while let Some(seen) = line.get(column) {
        let width = 1 + usize::from(seen.attributes.contains(Flags::WIDE_CHAR));
        units.push(Unit {
            column,
            width,
            text: seen.text.clone(),
            style: style(seen),
        });
        column += width;
    }
    units
}

fn style(seen: &Seen) -> String {
    let words = [
        (Flags::BOLD, "bold"),
        (Flags::DIM, "dim"),
        (Flags::ITALIC, "italic"),
        (Flags::INVERSE, "inverse"),
        (Flags::HIDDEN, "hidden"),
        (Flags::STRIKEOUT, "strike"),
        (Flags::UNDERLINE, "underline"),
    ];
    let words = words
        .iter()
        .filter(|(flag, _)| seen.attributes.contains(*flag));
    let look = Look {
        words: words.map(|(_, word)| *word).collect(),
        foreground: colour(seen.foreground),
        background: colour(seen.background),
        underline: seen.underline.and_then(colour),
    };
    look.to_string()
}

fn colour(colour: Color) -> Option<String> {
    match colour {
        Color::Named(_) => None,
        Color::Indexed(index) => Some(index.to_string()),
        Color::Spec(rgb) => Some(format!("#{:02x}{:02x}{:02x}", rgb.r, rgb.g, rgb.b)),
    }
}

/// What is expected, as far as the kit's terminal shows it: it has one kind of underline, and the cursor counts
/// wherever it is.
fn as_seen(expected: &Grid) -> Grid {
    let mut grid = expected.clone();
    for unit in grid.lines.iter_mut().flatten() {
        for kind in ["double", "curly", "dotted", "dashed"] {
            unit.style = unit.style.replace(kind, "underline");
        }
    }
    grid.above.clear();
    grid.notes.clear();
    grid.cursor_shown = false;
    grid
}

#[test]
fn the_whole_program_shows_them_as_they_are() {
    // A host terminal that is known to take all kinds of underline.
    let launch = Launch::generic("sh child.sh")
        .size(140, 24)
        .env("TERM", "xterm-kitty");
    let project = launch.project().to_owned();
    fs::write(project.join("child.sh"), SHOWN_IN_TURN).expect("a script");
    let supervisor = launch.start();
    let terminal = &supervisor.terminal;
    terminal.wait_for_text("HERE", SOON);
    supervisor.keys([key::F8]);
    let recordings = recordings();
    let shown = recordings
        .iter()
        .filter(|recording| SHOWN.contains(&&*recording.name));
    for (turn, recording) in shown.enumerate() {
        let size = recording.size;
        terminal.resize(size.columns(), size.rows() + STRIP);
        let reported = format!("{} {}", size.rows(), size.columns());
        fs::write(project.join(format!("size-{turn}")), reported).expect("a file");
        fs::write(project.join("next"), recording.output()).expect("a file");
        fs::rename(project.join("next"), project.join(format!("go-{turn}"))).expect("a file");
        let expected = as_seen(&recording.expected);
        let same = |cells: &[Vec<Seen>], cursor| pane(cells, cursor, size) == expected;
        if !terminal.wait_for_cells(same, SOON) {
            let found = pane(&terminal.cells(), terminal.cursor(), size);
            panic!("{}: {:#?}", recording.name, expected.differences(&found));
        }
    }
}

/// What the real client is asked and answers, here and in the comparison below.
const ANSWER: &str = "Two ways:\n\n- **bold** and `code`\n- 日本語\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThat is all.";

/// The row that says how long the turn took has another word each time, and a hint at the right goes after a while.
fn without_what_varies(mut grid: Grid) -> Grid {
    // No one sees where a hidden cursor stands, and the client leaves it where it has drawn last.
    if !grid.cursor_shown {
        grid.cursor = (0, 0);
    }
    for line in &mut grid.lines {
        if line.first().is_some_and(|unit| unit.text == "✻") {
            line.clear();
        }
        if grid::text(line).ends_with("/effort")
            && let Some(hint) = line.iter().rposition(|unit| unit.text == "●")
        {
            for unit in &mut line[hint..] {
                " ".clone_into(&mut unit.text);
                unit.style.clear();
            }
        }
    }
    grid
}

/// The client's own default is another one now and then, and is announced.
static MODE: LazyLock<[&str; 2]> = LazyLock::new(|| ["--permission-mode", *ASKS_FIRST]);

/// What the bare client shows in tmux after the answer.
fn bare(launch: &Launch, size: PaneSize) -> Grid {
    let quoted = |text: &OsStr| format!("'{}'", text.to_string_lossy().replace('\'', "'\\''"));
    let mut command = format!("cd {} && env -i", quoted(launch.project().as_os_str()));
    for (name, value) in launch.environment() {
        command.push_str(&format!(" {}={}", name.to_string_lossy(), quoted(&value)));
    }
    command.push_str(&format!(" {}", quoted(live_client().as_os_str())));
    for argument in *MODE {
        command.push_str(&format!(" {argument}"));
    }
    // The shell stays, so that the client can be stopped below it.
    command.push_str("; exit");
    let tmux = Tmux::start(size.columns().into(), size.rows().into(), &command);
    let wait = |text: &str| {
        let shown = || tmux.text().contains(text);
        poll::until_true(SOON, shown, || {
            format!("waited for {text:?} in vain:\n{}", tmux.text())
        });
    };
    wait("? for shortcuts");
    tmux.send("Which ways are there?");
    wait("Which ways are there?");
    tmux.send("\r");
    wait("That is all.");
    wait("✻");
    tmux.settle();
    without_what_varies(as_seen(&tmux.grid().expect("a grid")))
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_client_looks_the_same_hosted_and_bare() {
    for full_screen in ["0", "1"] {
        // Narrow enough for the pane to have the width from the start: a client that is resized while it starts scrolls
        // what is typed out of sight.
        let size = PaneSize::new(96, 30);
        let live = Launch::live().env("CLAUDE_CODE_NO_FLICKER", full_screen);
        live.api().answer([Answer::text(ANSWER)]);
        let expected = bare(&live, size);
        live.api().answer([Answer::text(ANSWER)]);
        // As a generic agent it gets no status line, which would change its last lines.
        let client = live_client();
        let mut launch = Launch::generic(&client.to_string_lossy())
            .agent_args(*MODE)
            .home(live.the_home())
            .size(size.columns(), size.rows() + STRIP);
        for (name, value) in live.environment() {
            launch = launch.env(&name.to_string_lossy(), value);
        }
        let supervisor = launch.start();
        let terminal = &supervisor.terminal;
        terminal.wait_for_text("? for shortcuts", SOON);
        let shows = |text: &str, limit: Duration| {
            poll::within(limit, || terminal.screen_text().contains(text))
        };
        // A client that is still starting forgets what was typed, and a busy one may lose an Enter; one more on an empty
        // line does nothing.
        let answered = || {
            let asked = "Which ways are there?";
            if !shows(asked, Duration::ZERO) {
                supervisor.keys([asked]);
            }
            if shows(asked, SOON / 12) {
                supervisor.keys(["\r"]);
            }
            shows("That is all.", SOON / 12)
        };
        supervisor.wait_until("the answer", answered);
        let hosted = |cells: &[Vec<Seen>], cursor| without_what_varies(pane(cells, cursor, size));
        if !terminal.wait_for_cells(
            |cells, cursor| hosted(cells, cursor) == expected,
            Duration::from_secs(20),
        ) {
            let found = hosted(&terminal.cells(), terminal.cursor());
            panic!(
                "full screen {full_screen:?}: {:#?}\n{}",
                expected.differences(&found),
                terminal.screen_text()
            );
        }
    }
}
