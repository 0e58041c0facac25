//! The pane end to end: real programs in the real `pitstop`, seen from the outer terminal.

use std::{
    fmt::Write as _,
    fs,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use crate::kit::{
    supervisor::{Launch, SOON, Supervisor, key},
    terminal::{Seen, emulate},
};

/// How long a key may take to show while the child floods (issue 2), by a program built with optimisation. Tests
/// without it run on an emulator some ten times slower, on machines that do other things too.
const KEY_LIMIT: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1000 } else { 100 });

/// How large the flood is, in megabytes. Half of it is more than what the limit leaves beside a program without optimisation, which
/// takes a minute for all of it.
const FLOOD: usize = if cfg!(debug_assertions) { 50 } else { 100 };

/// The memory that a flood may take in KiB: 57 MiB are the usual peak.
const MEMORY_LIMIT: u64 = if cfg!(debug_assertions) { 100 } else { 150 } * 1024;

/// A supervisor whose hosted program is this shell script, in raw mode without echo.
pub(crate) fn script(size: (u16, u16), text: &str) -> Launch {
    // By all that these scripts write, an estimate would ask for a reboot.
    let launch = Launch::generic("sh child.sh")
        .set("reboot.mode=\"manual\"")
        .size(size.0, size.1);
    let file = launch.project().join("child.sh");
    fs::write(file, format!("stty raw -echo\n{text}\n")).unwrap();
    launch
}

pub(crate) fn file(supervisor: &Supervisor, name: &str) -> PathBuf {
    supervisor.launch.project().join(name)
}

pub(crate) fn read(supervisor: &Supervisor, name: &str) -> Vec<u8> {
    fs::read(file(supervisor, name)).unwrap_or_default()
}

/// Waits until the file has this many bytes; gives how long that took.
#[track_caller]
pub(crate) fn wait_for_bytes(
    supervisor: &Supervisor,
    name: &str,
    count: usize,
    limit: Duration,
) -> Duration {
    let path = file(supervisor, name);
    let length = || fs::metadata(&path).map_or(0, |file| file.len());
    let began = Instant::now();
    while length() < count as u64 {
        assert!(
            began.elapsed() < limit,
            "{} of {count} bytes after {limit:?}; the screen:\n{}",
            length(),
            supervisor.screen()
        );
        thread::park_timeout(Duration::from_micros(500));
    }
    began.elapsed()
}

/// A figure of the supervisor's memory in KiB.
pub(crate) fn memory(supervisor: &Supervisor, name: &str) -> u64 {
    let pid = supervisor.pid().as_raw_nonzero();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.unwrap().parse().unwrap()
}

/// A small generator of numbers (xorshift): the same ones in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn among<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// Any character but controls.
    fn character(&mut self) -> char {
        let bound = self.among(&[0x7f, 0x250, 0x3000, 0x11_0000]);
        loop {
            let c = char::from_u32(self.below(bound) as u32);
            if let Some(c) = c.filter(|c| !c.is_control()) {
                return c;
            }
        }
    }
}

/// Which forms of keys the outer terminal sends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// All, to a pitstop that did not ask for any.
    All,
    /// Those that mean the same with the kitty protocol and without. When pitstop has asked the terminal for that
    /// protocol, its own forms are translated for a child that has not, by design.
    Common,
}

/// Something that a user's terminal may send and that is none of pitstop's business.
///
/// Left out, because they are not for the child as they are: the keys of the keymap (Ctrl-q, F1 to F10); what a
/// terminal says by itself (focus, mouse, answers, ends of pastes that have not begun), which is told to the child by the modes
/// it has set, or not at all; arrows in
/// the form of the application mode, which are said in the form that the child has set; and of a paste the
/// control characters but TAB, CR and LF, which are taken away.
fn input(random: &mut Random, keys: Keys) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut push = |text: &str| bytes.extend_from_slice(text.as_bytes());
    match random.below(16) {
        0..5 => push(&random.character().to_string()),
        // Controls, without the prefix and without ESC, which stands below in all its company.
        5 => {
            let c = random.below(0x20) as u8;
            bytes.push(if matches!(c, 0x11 | 0x1b) { 0x7f } else { c });
        }
        // C1 controls as characters.
        6 => push(&format!(
            "\u{80}{}",
            char::from(0x80 + random.below(0x20) as u8)
        )),
        // Broken UTF-8, and something whole behind it.
        7 => {
            for _ in 0..=random.below(3) {
                bytes.push(0x80 + random.below(0x80) as u8);
            }
            bytes.push(b'z');
        }
        // Alt with a key, also those that begin sequences.
        8 => match random.below(4) {
            0 => push(random.among(&["\x1b]x", "\x1bPx", "\x1b_x", "\x1bOz", "\x1b\x1bx"])),
            1 => push(&format!(
                "\x1b{}",
                random
                    .character()
                    .to_string()
                    .replace(['[', ']', 'O', 'P', '_'], "k")
            )),
            2 => push(random.among(&["\x1b\r", "\x1b\t", "\x1b\x7f", "\x1b\x01", "\x1b\0"])),
            _ => push("\x1b\x1b\x1bj"),
        },
        // Cursor and editing keys with and without modifiers.
        9 | 10 => {
            let modifier = 2 + random.below(15);
            match random.below(5) {
                0 => push(&format!(
                    "\x1b[{}",
                    random.among(&['A', 'B', 'C', 'D', 'F', 'H', 'Z', 'E'])
                )),
                1 => push(&format!(
                    "\x1b[1;{modifier}{}",
                    random.among(&['A', 'D', 'F', 'H', 'P', 'R'])
                )),
                2 => push(&format!(
                    "\x1b[{}~",
                    random.among(&[1, 2, 3, 4, 5, 6, 7, 8, 23, 24, 34])
                )),
                3 => push(&format!(
                    "\x1b[{};{modifier}~",
                    random.among(&[2, 3, 5, 11, 15, 21, 24])
                )),
                // From a host terminal that was asked this is the key by its number.
                _ if keys == Keys::All => push(&format!("\x1b[27;{modifier};13~")),
                _ => push(&format!("\x1b[6;{modifier}~")),
            }
        }
        // The keypad in the application mode that the child has set.
        11 => push(&format!(
            "\x1bO{}",
            char::from(b'j' + random.below(16) as u8)
        )),
        // Sequences that mean nothing.
        12 => push(random.among(&[
            "\x1b[12;34w",
            "\x1b[5;6;7v",
            "\x1b[!p",
            "\x1b[1\x07",
            "\x1b[ q",
        ])),
        // The kitty protocol.
        13 if keys == Keys::All => push(random.among(&[
            "\x1b[97;5u",
            "\x1b[13;2u",
            "\x1b[27u",
            "\x1b[57414;1:3u",
            "\x1b[97:65;2:2u",
        ])),
        // A paste.
        _ => {
            push("\x1b[200~");
            for _ in 0..random.below(200) {
                match random.below(12) {
                    0 => push(random.among(&["\t", "\r\n", "\n", "\r"])),
                    _ => push(&random.character().to_string()),
                }
            }
            push("\x1b[201~");
        }
    }
    bytes
}

fn a_stream_reaches_the_child_unchanged(launch: &Launch, keys: Keys, length: usize) {
    let supervisor = launch.start_showing("READY");
    let mut random = Random(0x5eed);
    let mut stream = Vec::with_capacity(length + 1024);
    while stream.len() < length {
        stream.extend(input(&mut random, keys));
    }
    // Ctrl-C overtakes what waits for a child that is slower than this typist, and drops it.
    stream.retain(|byte| *byte != 0x03);
    let mut rest = stream.as_slice();
    while !rest.is_empty() {
        let cut = rest.len().min(1 + random.below(6000) as usize);
        supervisor.terminal.send(&rest[..cut]);
        rest = &rest[cut..];
    }
    let limit = SOON * 6;
    let took = wait_for_bytes(&supervisor, "typed", stream.len(), limit);
    eprintln!("{} bytes typed in {took:?}", stream.len());
    let typed = read(&supervisor, "typed");
    let same = typed
        .iter()
        .zip(&stream)
        .take_while(|(one, other)| one == other)
        .count();
    let around = |bytes: &[u8]| {
        let part = &bytes[same.saturating_sub(30)..bytes.len().min(same + 30)];
        part.escape_ascii().to_string()
    };
    assert!(
        typed == stream,
        "from byte {same} on the child got\n{}\nfor\n{}",
        around(&typed),
        around(&stream)
    );
}

/// Takes all that is typed, with marked pastes and the keypad's application mode.
const TAKER: &str = "printf '\\033[?2004h\\033=READY'\nexec cat >typed";

#[test]
fn a_megabyte_of_anything_typed_reaches_the_child_unchanged() {
    let launch = script((80, 24), TAKER).mute();
    a_stream_reaches_the_child_unchanged(&launch, Keys::All, 1 << 20);
}

#[test]
fn a_terminal_with_the_kitty_protocol_changes_nothing_of_what_is_typed() {
    let launch = script((80, 24), TAKER);
    a_stream_reaches_the_child_unchanged(&launch, Keys::Common, 128 << 10);
}

#[test]
fn a_flood_leaves_the_keys_alive_and_the_memory_small() {
    let line = "0123456789 abcdefghijklmnopqrstuvwxyz ".repeat(2);
    let flood = format!(
        "(yes \"$(printf '{line}\\r')\" | head -c {FLOOD}000000\nprintf '\\r\\nFLOOD OVER'; echo >over) &\n\
         exec cat >keys"
    );
    let supervisor = script((140, 45), &flood).start_showing("0123456789 abc");
    let over = || file(&supervisor, "over").exists();
    let began = Instant::now();
    let (mut shown, mut reached) = (Vec::new(), Vec::new());
    while !over() {
        for wanted in [true, false] {
            let pressed = Instant::now();
            supervisor.keys([key::F1]);
            let help = |text: &str| text.contains("In the review") == wanted;
            supervisor.terminal.wait_for(help, SOON);
            shown.push(pressed.elapsed());
        }
        let pressed = Instant::now();
        supervisor.keys(["k"]);
        wait_for_bytes(&supervisor, "keys", reached.len() + 1, SOON);
        reached.push(pressed.elapsed());
    }
    supervisor.wait_for_text("FLOOD OVER", SOON);
    let took = began.elapsed();
    let peak = memory(&supervisor, "VmHWM:");
    eprintln!("{FLOOD} MB in {took:?}; peak memory {} MiB", peak / 1024);
    for (what, times) in [("show", &mut shown), ("reach the child", &mut reached)] {
        times.sort();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100];
        let (most, worst) = (at(90), at(100));
        eprintln!(
            "{} keys {what}: half in {:?}, most in {most:?}, all in {worst:?}",
            times.len(),
            at(50)
        );
        // Single ones may meet a moment in which the machine has no time for us.
        assert!(most < KEY_LIMIT, "keys took {most:?} to {what}");
    }
    assert!(peak < MEMORY_LIMIT, "{peak} KiB at the peak");
    let screen = supervisor.screen();
    let whole = screen
        .lines()
        .filter(|row| row.contains(line.trim_end()))
        .count();
    assert!(
        whole >= 38,
        "{whole} whole lines of the flood are left on the screen:\n{screen}"
    );
}

#[test]
fn a_child_that_never_reads_blocks_nothing_and_the_user_is_warned() {
    let supervisor =
        script((140, 45), "printf '\\033[?2004hREADY'\nexec sleep 1000").start_showing("READY");
    let before = memory(&supervisor, "VmHWM:");
    let text = "a line of a very long paste\n".repeat((6 << 20) / 28);
    supervisor.keys(["\x1b[200~", &text, "\x1b[201~"]);
    supervisor.wait_for_text("does not read", SOON);
    let pressed = Instant::now();
    supervisor.keys([key::F1]);
    supervisor.wait_for_text("In the review", SOON);
    let took = pressed.elapsed();
    let grown = memory(&supervisor, "VmHWM:") - before;
    eprintln!("a key shown within {took:?}, memory +{grown} KiB");
    assert!(took < KEY_LIMIT, "a key took {took:?} to show");
    assert!(grown < 16 * 1024, "{grown} KiB more");
}

#[test]
fn a_paste_that_is_too_long_for_a_sleeping_child_is_cut_off_and_has_no_holes() {
    let text =
        "printf '\\033[?2004hREADY'\nwhile [ ! -e wake ]; do sleep 0.05; done\nexec cat >typed";
    let supervisor = script((140, 45), text).start_showing("READY");
    let lines: Vec<String> = (0..600_000).map(|n| format!("line {n}\n")).collect();
    let lines = lines.concat();
    supervisor.keys(["\x1b[200~", &lines, "\x1b[201~"]);
    // The help page comes up behind the paste: all of it has been dealt with.
    supervisor.keys([key::F1]);
    supervisor.wait_for_text("In the review", SOON);
    fs::write(file(&supervisor, "wake"), "").unwrap();
    let ended = || read(&supervisor, "typed").ends_with(b"\x1b[201~");
    supervisor.wait_until_within(SOON * 3, "the end of the paste", ended);
    let typed = read(&supervisor, "typed");
    let part = &typed[6..typed.len() - 6];
    assert!(part.len() > 4 << 20, "only {} bytes were taken", part.len());
    assert!(lines.as_bytes().starts_with(part), "the paste has a hole");
}

/// What a lively program writes: colours, attributes, wide characters, accents, cursor moves, scrolling regions,
/// insertions, tabs; then the cursor rests somewhere.
///
/// Left out: clusters, on whose width terminals differ (see `pane::screen`).
fn lively(columns: u16, rows: u16) -> Vec<u8> {
    let mut random = Random(0xce11);
    let mut stream = String::from("\x1b[2J\x1b[H");
    for step in 0..6000 {
        let (row, column) = (
            1 + random.below(rows.into()),
            1 + random.below(columns.into()),
        );
        let piece = match random.below(22) {
            0 => format!("\x1b[{row};{column}H"),
            1 => format!(
                "\x1b[{}m",
                random.among(&[0, 1, 2, 3, 4, 7, 8, 9, 22, 23, 24, 27, 28, 29])
            ),
            2 => format!("\x1b[3{0};4{1};9{1}m", random.below(8), random.below(8)),
            3 => format!(
                "\x1b[38;5;{};48;5;{}m",
                random.below(256),
                random.below(256)
            ),
            4 => format!(
                "\x1b[38;2;{};2;3;48;2;4;{};6m",
                random.below(256),
                random.below(256)
            ),
            5 => format!(
                "\x1b[4:{};58:2::{}:10:200m",
                1 + random.below(5),
                random.below(256)
            ),
            6 => random
                .among(&["漢字", "かな交じり", "한국어", "🙂", "🚀🚀", "Ａ"])
                .to_owned(),
            7 => random
                .among(&["e\u{301}", "žluťoučký", "──┼──", "█▒░", "→✓", "\u{a0}"])
                .to_owned(),
            8 => format!(
                "\x1b[{}{}",
                1 + random.below(3),
                random.among(&['@', 'P', 'L', 'M', 'X', 'S', 'T', 'A', 'B', 'C', 'D'])
            ),
            // Whole screens are erased in the first half only, so that there is something to see at the end.
            9 if step < 3000 => format!("\x1b[{}J", random.below(3)),
            9 => format!("\x1b[{}K", random.below(3)),
            10 => random
                .among(&[
                    "\r\n",
                    "\n",
                    "\x1bM",
                    "\t",
                    "\x08",
                    "\x1b7",
                    "\x1b8",
                    "\x1b(0qx\x1b(B",
                ])
                .to_owned(),
            11 => format!(
                "\x1b[{};{}r",
                1 + random.below(5),
                u64::from(rows) - random.below(5)
            ),
            _ => "plain words of text, "
                .chars()
                .take(random.below(21) as usize)
                .collect(),
        };
        stream.push_str(&piece);
    }
    stream += "\x1b[r\x1b[0m\x1b[7;11H";
    stream.into_bytes()
}

/// The pane's rectangle: first column and row, columns and rows. Told by the child and by the border.
fn pane_of(supervisor: &Supervisor, bordered: bool) -> (usize, usize, u16, u16) {
    let reported = || String::from_utf8(read(supervisor, "size")).unwrap();
    supervisor.wait_until("the child's size", || reported().ends_with('\n'));
    let reported = reported();
    let (rows, columns) = reported.trim().split_once(' ').unwrap();
    let edge = usize::from(bordered);
    (edge, edge, columns.parse().unwrap(), rows.parse().unwrap())
}

#[test]
fn the_pane_shows_cell_by_cell_what_a_bare_terminal_would() {
    for (size, bordered) in [((140, 45), true), ((90, 30), false)] {
        let text = "stty size >size\nprintf READY\nread -r line <go\ncat stream\nprintf over >over\nexec cat >keys";
        let launch = script(
            size,
            &text.replace("read -r line <go", "dd bs=1 count=1 of=go 2>/dev/null"),
        )
        // One that knows the kinds of underline.
        .env("TERM_PROGRAM", "ghostty");
        let supervisor = launch.start_showing("READY");
        let (left, top, columns, rows) = pane_of(&supervisor, bordered);
        let stream = lively(columns, rows);
        fs::write(file(&supervisor, "stream"), &stream).unwrap();
        let (wanted, cursor) = emulate(columns, rows, &stream);
        let drawn = wanted.iter().flatten().filter(|cell| cell.text != " ");
        assert!(
            drawn.count() > 500,
            "the stream leaves hardly anything to compare"
        );
        let inside = |row: usize, column: usize| {
            (left..left + usize::from(columns)).contains(&column)
                && (top..top + usize::from(rows)).contains(&row)
        };
        let outside = |cells: &[Vec<Seen>]| -> Vec<(usize, usize, Seen)> {
            let mut found = Vec::new();
            for (row, line) in cells.iter().enumerate() {
                let text: String = line.iter().map(|cell| cell.text.as_str()).collect();
                // The gauge, the iteration's line in the history and the footer count along: a generic agent's usage is
                // estimated from its text.
                let counts = text.contains("#1 now") || row + 1 == cells.len();
                for (column, cell) in line.iter().enumerate() {
                    let counts = counts || row < 8 && column > left + usize::from(columns);
                    if !inside(row, column) && !counts {
                        found.push((row, column, cell.clone()));
                    }
                }
            }
            found
        };
        let before = outside(&supervisor.terminal.cells());
        supervisor.keys(["g"]);
        wait_for_bytes(&supervisor, "over", 4, SOON);
        let pane = |cells: &[Vec<Seen>]| -> Vec<Vec<Seen>> {
            let lines = cells.iter().skip(top).take(rows.into());
            let part = |line: &Vec<Seen>| line[left..left + usize::from(columns)].to_vec();
            lines.map(part).collect()
        };
        let same = |cells: &[Vec<Seen>], at: (usize, usize)| {
            pane(cells) == wanted && at == (cursor.0 + top, cursor.1 + left)
        };
        if !supervisor.terminal.wait_for_cells(same, SOON) {
            let found = pane(&supervisor.terminal.cells());
            let pairs = found.iter().flatten().zip(wanted.iter().flatten());
            let different: Vec<_> = pairs
                .enumerate()
                .filter(|(_, (one, other))| one != other)
                .map(|(at, pair)| (at / usize::from(columns), at % usize::from(columns), pair))
                .collect();
            panic!(
                "{} cells differ; row, column, (found, wanted): {:#?}\ncursor at {:?}, wanted at {cursor:?} in the pane",
                different.len(),
                &different[..different.len().min(5)],
                supervisor.terminal.cursor()
            );
        }
        let after = outside(&supervisor.terminal.cells());
        let changed: Vec<_> = before
            .iter()
            .zip(&after)
            .filter(|(one, other)| one != other)
            .collect();
        assert!(
            changed.is_empty() && before.len() == after.len(),
            "cells outside the pane have changed: {changed:?}"
        );
    }
}

/// The 28 questions that programs ask their terminal, and how each answer begins.
const QUESTIONS: [(&str, &str); 28] = [
    (r"\033[c", "\x1b[?62;"),
    (r"\033[>c", "\x1b[>1;"),
    (r"\033[=c", "\x1bP!|"),
    (r"\033[>0q", "\x1bP>|pitstop("),
    (r"\033[5n", "\x1b[0n"),
    (r"\033[6n", "\x1b["),
    (r"\033[?6n", "\x1b[?"),
    (r"\033[?2026$p", "\x1b[?2026;2$y"),
    (r"\033[?2027$p", "\x1b[?2027;3$y"),
    (r"\033[?2031$p", "\x1b[?2031;2$y"),
    (r"\033[?1004$p", "\x1b[?1004;2$y"),
    (r"\033[?2004$p", "\x1b[?2004;2$y"),
    (r"\033[?25$p", "\x1b[?25;1$y"),
    (r"\033[?9999$p", "\x1b[?9999;0$y"),
    (r"\033[4$p", "\x1b[4;2$y"),
    (r"\033]10;?\033\\", "\x1b]10;rgb:"),
    (r"\033]11;?\033\\", "\x1b]11;rgb:"),
    (r"\033]12;?\033\\", "\x1b]12;rgb:"),
    (r"\033]4;1;?\033\\", "\x1b]4;1;rgb:"),
    (r"\033[?u", "\x1b[?0u"),
    (r"\033[?4m", "\x1b[>4;0m"),
    (r"\033[?996n", "\x1b[?997;1n"),
    (r"\033[14t", "\x1b[4;"),
    (r"\033[16t", "\x1b[6;"),
    (r"\033[18t", "\x1b[8;"),
    (r"\033P+q544e\033\\", "\x1bP1+r"),
    (r"\033P$qm\033\\", "\x1bP1$r0m"),
    (r"\033P$q q\033\\", "\x1bP1$r"),
];

/// Questions whose answer would let a file that is shown type for the user: the title, the clipboard, the answerback.
const DANGEROUS: [&str; 3] = [r"\033[21t", r"\033]52;c;?\033\\", r"\005"];

#[test]
fn every_question_is_answered_in_one_read_and_the_dangerous_ones_are_not() {
    let mut text = String::from(
        "printf '\\033]2;the title\\033\\\\'\nask() { printf \"$1\"; dd bs=4096 count=1 of=$2 2>/dev/null; }\n",
    );
    // Until the host terminal has said what its colours are, others are reported: its foreground is f0f0f0.
    text += "until grep -q f0f0 host 2>/dev/null; do ask '\\033]10;?\\033\\\\' host; done\n";
    for (number, (question, _)) in QUESTIONS.iter().enumerate() {
        let _ = writeln!(text, "ask '{question}' answer{number}");
    }
    // Each followed by a harmless one: its answer must come alone.
    for (number, question) in DANGEROUS.iter().enumerate() {
        let _ = writeln!(text, "ask '{question}\\033[5n' silence{number}");
    }
    // All at once: the answers come in the order of the questions.
    for (question, _) in QUESTIONS {
        let _ = writeln!(text, "printf '{question}'");
    }
    text += "printf done >done\nexec cat >all";
    let supervisor = script((140, 45), &text).start();
    wait_for_bytes(&supervisor, "done", 4, SOON);
    let mut together = Vec::new();
    for (number, (question, wanted)) in QUESTIONS.iter().enumerate() {
        let answer = read(&supervisor, &format!("answer{number}"));
        let shown = answer.escape_ascii();
        assert!(
            answer.starts_with(wanted.as_bytes()),
            "{question} was answered {shown}"
        );
        let escapes = memchr::memchr_iter(0x1b, &answer).count();
        let ended = answer.ends_with(b"\x1b\\");
        assert_eq!(
            escapes,
            1 + usize::from(ended),
            "{question}: one answer, not {shown}"
        );
        together.push(answer);
    }
    for (number, question) in DANGEROUS.iter().enumerate() {
        let answer = read(&supervisor, &format!("silence{number}"));
        assert_eq!(
            answer,
            b"\x1b[0n",
            "{question} was answered {}",
            answer.escape_ascii()
        );
    }
    // The cursor may have been somewhere else by then: of the positions only the form counts.
    let form = |bytes: &[u8]| -> String {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.replace(|c: char| c.is_ascii_digit(), "")
    };
    let wanted = form(&together.concat());
    supervisor.wait_until("all answers in order", || {
        form(&read(&supervisor, "all")) == wanted
    });
}

#[test]
fn a_frame_that_is_never_finished_shows_all_the_same() {
    let text = "printf READY\ndd bs=1 count=1 of=go 2>/dev/null\nprintf '\\033[?2026hUNFINISHED'\nexec cat >keys";
    let supervisor = script((80, 24), text).start_showing("READY");
    let pressed = Instant::now();
    supervisor.keys(["g"]);
    supervisor.wait_for_text("UNFINISHED", SOON);
    let took = pressed.elapsed();
    eprintln!("shown after {took:?}");
    // 150 ms are the frame's; 250 in all are not felt as a delay.
    assert!(
        took > Duration::from_millis(140),
        "a frame was shown before its end: {took:?}"
    );
    let limit = Duration::from_millis(if cfg!(debug_assertions) { 1000 } else { 250 });
    assert!(took < limit, "an unfinished frame was hidden for {took:?}");
}

#[test]
fn what_a_frame_has_half_drawn_is_never_shown() {
    let text = "n=0\nwhile [ $n -lt 200 ]; do n=$((n+1))\nprintf '\\033[?2026h\\033[2J\\033[HHALF'\n\
                printf '\\033[2J\\033[HWHOLE%s\\033[?2026l' $n\ndone\nexec cat >keys";
    let supervisor = script((80, 24), text).start_showing("WHOLE200");
    let output = supervisor.terminal.output();
    let halves = output.windows(4).filter(|window| window == b"HALF").count();
    // A child that is held up for 150 ms in a frame has lost its right to it.
    assert!(halves <= 2, "{halves} of 200 frames were seen half-drawn");
}

#[test]
fn frames_are_bracketed_for_a_terminal_that_knows_brackets_and_for_no_other() {
    let text = "printf READY\ndd bs=1 count=1 of=go 2>/dev/null\nprintf WORDS\nexec cat >keys";
    for knows in [true, false] {
        let launch = script((80, 24), text);
        let launch = if knows { launch } else { launch.mute() };
        let supervisor = launch.start_showing("READY");
        let before = supervisor.terminal.output().len();
        supervisor.keys(["g"]);
        supervisor.wait_for_text("WORDS", SOON);
        let output = supervisor.terminal.output();
        let frame = String::from_utf8_lossy(&output[before..]).into_owned();
        if knows {
            let at = frame.find("WORDS").unwrap();
            let opened = frame[..at].rfind("\x1b[?2026h");
            let closed = frame[..at].rfind("\x1b[?2026l");
            assert!(opened > closed, "no frame around {frame:?}");
            assert!(
                frame[at..].contains("\x1b[?2026l"),
                "the frame is left open: {frame:?}"
            );
        } else {
            let all = String::from_utf8_lossy(&output);
            assert!(!all.contains("\x1b[?2026h"), "{all:?}");
        }
    }
}

/// Draws its size on the alternate screen whenever a key is pressed.
const MEASURER: &str = "printf '\\033[?1049h\\033[2J\\033[HREADY'\n\
    while dd bs=1 count=1 of=key 2>/dev/null; do printf '\\033[2J\\033[H[%s]' \"$(stty size)\"; done";

#[test]
fn a_full_screen_program_has_the_size_of_its_pane_zoomed_and_not() {
    let supervisor = script((140, 45), MEASURER).start_showing("READY");
    let shows = |size: &str| {
        supervisor.keys(["s"]);
        supervisor.wait_for_text(size, SOON);
    };
    shows("[42 96]");
    supervisor.keys([key::F8]);
    shows("[44 140]");
    supervisor.keys([key::F8]);
    shows("[42 96]");
    supervisor.terminal.resize(90, 30);
    // The window's own signal may come after the key.
    let resized = |text: &str| {
        supervisor.keys(["s"]);
        text.contains("[29 90]")
    };
    supervisor.terminal.wait_for(resized, SOON);
}

#[test]
#[ignore = "needs vim"]
fn vim_fills_the_pane_and_follows_its_size() {
    let launch = Launch::generic("vim -u NONE -N note.txt");
    fs::write(launch.project().join("note.txt"), "the first line\n").unwrap();
    let supervisor = launch.start_showing("the first line");
    for (keys, size) in [("", "42 96"), (key::F8, "44 140"), (key::F8, "42 96")] {
        supervisor.keys([keys]);
        // The question may overtake the signal that gives vim its size, and the answer be wiped: it is asked again.
        let asked = std::cell::Cell::new(None::<Instant>);
        let answered = || {
            if asked
                .get()
                .is_none_or(|at| at.elapsed() > Duration::from_millis(500))
            {
                supervisor.keys([":echo &lines &columns\r"]);
                asked.set(Some(Instant::now()));
            }
            supervisor.screen().contains(size)
        };
        supervisor.wait_until("vim knows its size", answered);
    }
    supervisor.keys(["oa second line", key::ESC, ":wq\r"]);
    let written = || read(&supervisor, "note.txt") == b"the first line\na second line\n";
    supervisor.wait_until("the file is written", written);
}
