//! What it costs to live in a pane: throughput, latency, frames, idle work, memory, start, hooks.
//!
//! ```text
//! cargo bench --bench pane              all of it, some ten minutes
//! PITSTOP_BENCH=quick cargo bench …     a look, two minutes
//! PITSTOP_BENCH_ONLY=throughput,…       some of: emulator throughput latency frames idle start hooks
//! PITSTOP_BENCH_WORKLOAD=cursor         throughput of those whose name has this in it
//! PITSTOP_BENCH_BESIDE=PATH             another build of pitstop, measured in turn with this one
//! ```
//!
//! The same child runs in `pitstop`, in tmux if there is one, and bare in the same outer terminal (the kit's,
//! which emulates and so knows what is on the screen). Its pane has the same size everywhere. The cases take
//! turns, round by round, so that a busy moment of the machine burdens all of them alike; medians are reported.

#![allow(clippy::disallowed_methods, reason = "it measures real time")]
#![allow(
    clippy::too_many_lines,
    reason = "a measurement is one sequence from beginning to end"
)]

use std::{
    collections::HashSet,
    env,
    error::Error,
    ffi::{OsStr, OsString},
    fmt::Write as _,
    fs,
    io::{self, Read, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use alacritty_terminal::{
    event::VoidListener,
    term::{Config, Term, test::TermSize},
    vte::ansi::Processor,
};
use pitstop_core::api::{Reply, Request, wire::StatusLineReply};
use pitstop_server::{Call, Feed, RequestQueue, Secrets, bind_control_socket, serve};
use pitstop_terminal::{PaneSize, screen::Screen};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::Signal,
    termios::{OptionalActions, tcgetattr, tcsetattr},
    time::{ClockId, clock_gettime},
};
use tokio::sync::mpsc;

#[path = "../tests/it/kit/home.rs"]
mod home;
#[path = "../tests/it/kit/process.rs"]
mod process;
#[path = "../tests/it/kit/terminal.rs"]
mod terminal;

use home::Home;
use process::server_of;
use terminal::{Answers, Spec, Terminal};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The program under test, built with the same profile.
const PITSTOP: &str = env!("CARGO_BIN_EXE_pitstop");

/// The time of a frame of those that are streamed.
const FRAME_TIME: Duration = Duration::from_nanos(33_333_333);

/// The pane in every host: columns, rows.
const PANE: (u16, u16) = (112, 47);

/// A host terminal in which `pitstop` gives its pane that size and shows all its panels.
const PITSTOP_OUTER: (u16, u16) = (162, 50);

/// How often the hosts take turns in typing.
const LATENCY_ROUNDS: usize = 4;

/// How often they take turns in drawing frames.
const FRAME_ROUNDS: usize = 4;

/// How long what a start has set in motion may take: a host is not idle before.
const SETTLE: Duration = Duration::from_secs(2);

/// How long anything may take before the benchmark gives up.
const LIMIT: Duration = Duration::from_secs(120);

fn main() -> Outcome<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    if let [first, mode, rest @ ..] = args.as_slice()
        && first == "--child"
    {
        return child(mode, rest);
    }
    let plan = Plan::of_environment();
    let bench = Bench::new(plan)?;
    if bench.wants("emulator") {
        bench.emulator();
    }
    if bench.wants("throughput") {
        bench.throughput()?;
    }
    if bench.wants("latency") {
        bench.latency();
    }
    if bench.wants("frames") {
        bench.frames()?;
    }
    if bench.wants("idle") {
        bench.idle()?;
    }
    if bench.wants("start") {
        bench.start();
    }
    if bench.wants("hooks") {
        bench.hooks()?;
    }
    Ok(())
}

/// How much is measured.
struct Plan {
    rounds: usize,
    bytes: usize,
    keys: usize,
    idle: Duration,
    frames: usize,
    starts: usize,
    hooks: usize,
    only: Option<String>,
}

impl Plan {
    fn of_environment() -> Self {
        let only = env::var("PITSTOP_BENCH_ONLY").ok();
        if env::var("PITSTOP_BENCH").is_ok_and(|word| word == "quick") {
            Self {
                rounds: 2,
                bytes: 4 << 20,
                keys: 60,
                idle: Duration::from_secs(5),
                frames: 90,
                starts: 6,
                hooks: 40,
                only,
            }
        } else {
            Self {
                rounds: 8,
                bytes: 16 << 20,
                keys: 400,
                idle: Duration::from_secs(20),
                frames: 448,
                starts: 60,
                hooks: 300,
                only,
            }
        }
    }
}

/// Who hosts the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Bare,
    Tmux,
    /// Another build of pitstop.
    Beside,
    Pitstop,
}

impl Who {
    const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Tmux => "tmux",
            Self::Beside => "beside",
            Self::Pitstop => "pitstop",
        }
    }
}

struct Bench {
    plan: Plan,
    home: Home,
    own: PathBuf,
    hosts: Vec<Who>,
    /// Another build, with a home of its own: each keeps its database as it knows it.
    beside: Option<(PathBuf, Home)>,
}

/// A child in its host, in an outer terminal.
struct Hosted {
    who: Who,
    terminal: Terminal,
    /// The directory and the name of tmux's socket.
    socket: (PathBuf, String),
}

impl Hosted {
    /// The processes of the host, without the child.
    fn processes(&self) -> Vec<i32> {
        let first = self.terminal.pid();
        let own = server_of(first).map(|server| server.as_raw_nonzero().get());
        let first = first.as_raw_nonzero().get();
        let reported =
            (self.who == Who::Tmux).then(|| self.tmux(&["display-message", "-p", "#{pid}"]));
        let server = reported.and_then(Result::ok).and_then(|reported| {
            String::from_utf8_lossy(&reported.stdout)
                .trim()
                .parse()
                .ok()
        });
        [Some(first), own, server].into_iter().flatten().collect()
    }

    fn tmux(&self, args: &[&str]) -> io::Result<Output> {
        Command::new("tmux")
            .args(["-L", &self.socket.1])
            .args(args)
            .env("TMUX_TMPDIR", &self.socket.0)
            .output()
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        if self.who == Who::Tmux {
            // The server would outlive its terminal. It may have ended by itself.
            let _ = self.tmux(&["kill-server"]);
        }
    }
}

impl Bench {
    fn new(plan: Plan) -> Outcome<Self> {
        let home = Home::new()?;
        fs::write(
            home.path("tmux.conf"),
            // As many lines as pitstop keeps; no wait behind Escape.
            "set -g history-limit 10000\nset -s escape-time 0\n",
        )?;
        let tmux = Command::new("tmux").arg("-V").output();
        let mut hosts = vec![Who::Bare];
        if let Ok(version) = &tmux {
            println!("{}", String::from_utf8_lossy(&version.stdout).trim());
            hosts.push(Who::Tmux);
        }
        let beside = match env::var_os("PITSTOP_BENCH_BESIDE") {
            Some(program) => {
                hosts.push(Who::Beside);
                Some((PathBuf::from(program), Home::new()?))
            }
            None => None,
        };
        hosts.push(Who::Pitstop);
        Ok(Self {
            plan,
            home,
            own: env::current_exe()?,
            hosts,
            beside,
        })
    }

    fn wants(&self, part: &str) -> bool {
        let only = self.plan.only.as_deref();
        only.is_none_or(|only| only.split(',').any(|one| one == part))
    }

    /// Starts the child of this benchmark with these arguments in a host.
    fn host(&self, who: Who, child: &[&str]) -> Hosted {
        let own = self.own.display().to_string();
        let socket = format!("bench-{}", std::process::id());
        let conf = self.home.path("tmux.conf").display().to_string();
        let words = |words: &[&str]| -> Vec<OsString> {
            words.iter().chain(child).map(OsString::from).collect()
        };
        let line = [&[own.as_str(), "--child"], child].concat().join(" ");
        let (program, args, size) = match who {
            Who::Bare => (own.as_str(), words(&["--child"]), PANE),
            Who::Tmux => {
                let tmux = ["-L", &socket, "-f", &conf, "new-session", &line];
                let args = tmux.iter().map(OsString::from).collect();
                ("tmux", args, (PANE.0, PANE.1 + 1))
            }
            Who::Beside | Who::Pitstop => {
                // By so much text the estimate would soon ask for a reboot.
                let pitstop = ["--set", "reboot.mode=\"manual\"", "--agent", &line];
                let args = pitstop.iter().map(OsString::from).collect();
                (PITSTOP, args, PITSTOP_OUTER)
            }
        };
        let (program, home) = match &self.beside {
            Some((program, home)) if who == Who::Beside => (program.as_os_str(), home),
            _ => (OsStr::new(program), &self.home),
        };
        let mut env = home.env();
        env.push(("TMUX_TMPDIR".into(), self.home.path("run").into()));
        let terminal = Terminal::spawn(&Spec {
            program,
            args: &args,
            env: &env,
            dir: home.project(),
            columns: size.0,
            rows: size.1,
            answers: Answers::All,
        });
        Hosted {
            who,
            terminal,
            socket: (self.home.path("run"), socket),
        }
    }

    /// Ends a host; its child gets the signals that the host gives it.
    fn end(hosted: &Hosted) {
        match hosted.who {
            // It may have ended by itself.
            Who::Tmux => drop(hosted.tmux(&["kill-server"])),
            Who::Bare | Who::Beside | Who::Pitstop => {
                let first = hosted.terminal.pid();
                let ends = server_of(first).unwrap_or(first);
                // It may have ended by itself.
                let _ = rustix::process::kill_process(ends, Signal::TERM);
            }
        }
        hosted.terminal.wait_for_exit(LIMIT);
    }

    /// What our emulator makes of bytes beside the engine alone, both in this process.
    fn emulator(&self) {
        let mut table = Table::new(&["workload", "engine MB/s", "screen MB/s", "screen ÷ engine"]);
        for (name, unit) in workloads() {
            let payload = unit.repeat((self.plan.bytes / unit.len()).max(1));
            let megabytes = payload.len() as f64 / 1e6;
            let (mut engine, mut own) = (Vec::new(), Vec::new());
            for _ in 0..self.plan.rounds.max(5) {
                engine.push(megabytes / parse(&payload).as_secs_f64());
                let mut screen = Screen::new(PaneSize::new(PANE.0, PANE.1), 10_000);
                let began = Instant::now();
                for piece in payload.chunks(16 * 1024) {
                    screen.feed(piece, began);
                }
                own.push(megabytes / began.elapsed().as_secs_f64());
            }
            let (engine, own) = (median(&mut engine), median(&mut own));
            table.row(&[
                name.to_owned(),
                format!("{engine:.1}"),
                format!("{own:.1}"),
                format!("{:.2}", own / engine),
            ]);
        }
        println!("\nEmulator\n\n{}", table.text());
    }

    /// From the key that starts the child's writing to its end mark on the outer screen, in MB/s.
    fn throughput(&self) -> Outcome<()> {
        let workload = env::var("PITSTOP_BENCH_WORKLOAD").unwrap_or_default();
        let payloads: Vec<(&str, PathBuf, usize)> = workloads()
            .into_iter()
            .filter(|(name, _)| name.contains(&workload))
            .map(|(name, unit)| {
                let file = self.home.path(&format!("{}.bin", name.replace(' ', "-")));
                let times = (self.plan.bytes / unit.len()).max(1);
                fs::write(&file, &unit)?;
                Ok((name, file, times))
            })
            .collect::<io::Result<_>>()?;
        let mut table = Table::new(&[
            "workload",
            "bare read",
            "engine on a PTY",
            "bare engine",
            "tmux",
            "pitstop",
            "pitstop ÷ engine",
            "pitstop ÷ tmux",
            "pitstop ÷ beside",
        ]);
        let mut memory = String::new();
        for (name, file, times) in &payloads {
            let megabytes = fs::metadata(file)?.len() as f64 * *times as f64 / 1e6;
            let payload = fs::read(file)?.repeat(*times);
            let (file, times) = (file.display().to_string(), times.to_string());
            let child = ["write", file.as_str(), times.as_str()];
            let hosts: Vec<Hosted> = self.hosts[1..]
                .iter()
                .map(|who| self.host(*who, &child))
                .collect();
            for hosted in &hosts {
                hosted.terminal.wait_for_text("READY", LIMIT);
            }
            let (mut bare, mut parsed, mut engine) = (Vec::new(), Vec::new(), Vec::new());
            let mut rates = vec![Vec::new(); hosts.len()];
            for round in 0..self.plan.rounds {
                bare.push(megabytes / self.bare_read(&child, None)?.as_secs_f64());
                let took = self.bare_read(&child, Some(Engine::new()))?;
                parsed.push(megabytes / took.as_secs_f64());
                engine.push(megabytes / parse(&payload).as_secs_f64());
                for at in order_of(round, hosts.len()) {
                    let terminal = &hosts[at].terminal;
                    let began = Instant::now();
                    terminal.send("g");
                    terminal.wait_for_text(&format!("END{round}."), LIMIT);
                    rates[at].push(megabytes / began.elapsed().as_secs_f64());
                }
            }
            let of = |who: Who| {
                let at = hosts.iter().position(|hosted| hosted.who == who);
                at.map(|at| median(&mut rates[at].clone()))
            };
            let (tmux, own) = (of(Who::Tmux), of(Who::Pitstop));
            let engine = median(&mut engine);
            table.row(&[
                (*name).to_owned(),
                format!("{:.0}", median(&mut bare)),
                format!("{:.1}", median(&mut parsed)),
                format!("{engine:.1}"),
                tmux.map_or_else(|| "–".to_owned(), |rate| format!("{rate:.1}")),
                own.map_or_else(|| "–".to_owned(), |rate| format!("{rate:.1}")),
                ratio(own, Some(engine)),
                ratio(own, tmux),
                ratio(own, of(Who::Beside)),
            ]);
            for hosted in hosts {
                let peaks: u64 = hosted
                    .processes()
                    .iter()
                    .map(|pid| memory_of(*pid, "VmHWM:"))
                    .sum();
                let _ = writeln!(
                    memory,
                    "| {name} | {} | {:.1} |",
                    hosted.who.name(),
                    mib(peaks)
                );
                Self::end(&hosted);
            }
        }
        println!("\nThroughput, MB/s\n\n{}", table.text());
        println!(
            "Peak memory meanwhile, MiB\n\n| workload | host | peak |\n|---|---|---|\n{memory}"
        );
        Ok(())
    }

    /// A PTY with a reader that throws everything away, or gives it to an engine and nothing else.
    fn bare_read(&self, child: &[&str], mut engine: Option<Engine>) -> Outcome<Duration> {
        let pair = native_pty_system().openpty(PtySize {
            rows: PANE.1,
            cols: PANE.0,
            ..PtySize::default()
        })?;
        let mut command = CommandBuilder::new(&self.own);
        command.arg("--child");
        command.args(child);
        let mut process = pair.slave.spawn_command(command)?;
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader()?;
        let mut writer = pair.master.take_writer()?;
        let mut buffer = vec![0; 64 * 1024];
        let mut tail = Vec::new();
        let mut wait_for = |mark: &[u8]| -> io::Result<()> {
            loop {
                let count = reader.read(&mut buffer)?;
                if let Some(engine) = &mut engine {
                    engine.advance(&buffer[..count]);
                }
                tail.extend_from_slice(&buffer[count.saturating_sub(64)..count]);
                if tail.windows(mark.len()).any(|window| window == mark) {
                    return Ok(());
                }
                tail.drain(..tail.len().saturating_sub(64));
            }
        };
        wait_for(b"READY")?;
        let began = Instant::now();
        writer.write_all(b"g")?;
        wait_for(b"END0.")?;
        let took = began.elapsed();
        process.kill()?;
        process.wait()?;
        Ok(took)
    }

    /// From a key to what the child answers, on the outer screen.
    fn latency(&self) {
        let mut table = Table::new(&["child", "host", "p50 ms", "p90 ms", "p99 ms", "worst ms"]);
        for mode in ["echo", "stream", "flood"] {
            let mut times = vec![Vec::new(); self.hosts.len()];
            for round in 0..LATENCY_ROUNDS {
                for at in order_of(round, self.hosts.len()) {
                    let hosted = self.host(self.hosts[at], &[mode]);
                    hosted.terminal.wait_for_text("READY", LIMIT);
                    if mode == "echo" {
                        thread::sleep(SETTLE);
                    }
                    times[at].extend(press(&hosted.terminal, self.plan.keys / LATENCY_ROUNDS));
                    Self::end(&hosted);
                }
            }
            for (who, times) in self.hosts.iter().zip(&mut times) {
                times.sort();
                table.row(&[
                    mode.to_owned(),
                    who.name().to_owned(),
                    millis(times, 50),
                    millis(times, 90),
                    millis(times, 99),
                    millis(times, 100),
                ]);
            }
        }
        println!("\nKey to screen\n\n{}", table.text());
    }

    /// Frames of 27 KB, thirty a second, each bracketed: whether one is ever seen half-drawn, what one costs, and
    /// how long it takes from the child's write to the outer screen.
    fn frames(&self) -> Outcome<()> {
        let mut table = Table::new(&[
            "host",
            "torn frames",
            "CPU ms a frame",
            "visible p50 ms",
            "visible p99 ms",
            "outer ÷ inner bytes",
        ]);
        let hosts = &self.hosts[1..];
        let mut drawn: Vec<Drawn> = hosts.iter().map(|_| Drawn::default()).collect();
        for round in 0..FRAME_ROUNDS {
            for at in order_of(round, hosts.len()) {
                self.draw(hosts[at], &mut drawn[at])?;
            }
        }
        for (who, mut drawn) in hosts.iter().zip(drawn) {
            drawn.delays.sort();
            table.row(&[
                who.name().to_owned(),
                format!("{} of {}", drawn.torn, drawn.frames),
                format!("{:.2}", drawn.cost / 1e6 / drawn.frames as f64),
                millis(&drawn.delays, 50),
                millis(&drawn.delays, 99),
                format!("{:.3}", drawn.outer as f64 / drawn.inner as f64),
            ]);
        }
        println!("\nFrames of 27 KB, 30 a second\n\n{}", table.text());
        Ok(())
    }

    /// Lets a host draw its part of the frames.
    fn draw(&self, who: Who, drawn: &mut Drawn) -> Outcome<()> {
        let count = self.plan.frames / FRAME_ROUNDS;
        let frames = count.to_string();
        let hosted = self.host(who, &["frames", &frames]);
        hosted.terminal.wait_for_text("READY", LIMIT);
        let first = hosted.terminal.row_of("READY").unwrap_or(0);
        let processes = hosted.processes();
        let work = || -> io::Result<u64> {
            let of = |pid: &i32| Work::of(*pid).map(|work| work.nanoseconds);
            processes.iter().map(of).sum()
        };
        let (before, bytes) = (work()?, hosted.terminal.output().len());
        let clock = (Instant::now(), monotonic());
        hosted.terminal.send("g");
        hosted.terminal.wait_for_text("END", LIMIT);
        drawn.cost += (work()? - before) as f64;
        let (output, reads) = (hosted.terminal.output(), hosted.terminal.reads());
        let size = match who {
            Who::Beside | Who::Pitstop => PITSTOP_OUTER,
            Who::Bare | Who::Tmux => (PANE.0, PANE.1 + 1),
        };
        let mut seen = Seen::default();
        let ends = reads.iter().map(|(_, end)| *end);
        let rows = first..first + usize::from(PANE.1) - 1;
        terminal::replay(size, &output, ends, rows, |read, rows| {
            let at = reads[read].0.saturating_duration_since(clock.0);
            seen.look(&rows, clock.1 + at);
        });
        drawn.frames += count;
        drawn.torn += seen.torn.len();
        drawn.delays.extend(seen.delays);
        drawn.outer += output.len() - bytes;
        drawn.inner += (0..count)
            .map(|frame| full_frame(frame, monotonic(), 24).len())
            .sum::<usize>();
        Self::end(&hosted);
        Ok(())
    }

    /// What is done and held while nothing happens.
    fn idle(&self) -> Outcome<()> {
        let mut table = Table::new(&[
            "child",
            "host",
            "CPU ms",
            "% of a core",
            "wake-ups",
            "memory MiB",
        ]);
        let cases =
            ["echo", "spinner"].map(|mode| self.hosts[1..].iter().map(move |who| (mode, who)));
        for (mode, who) in cases.into_iter().flatten() {
            let hosted = self.host(*who, &[mode]);
            hosted.terminal.wait_for_text("READY", LIMIT);
            // What the start set in motion is over by then; the age of the figure on the screen counts its
            // first ten seconds one by one.
            thread::sleep(Duration::from_secs(12));
            let processes = hosted.processes();
            let sum = |before: &[Work]| {
                let all = before.iter();
                all.fold((0, 0), |sum, one| {
                    (sum.0 + one.nanoseconds, sum.1 + one.wakeups)
                })
            };
            let look = || -> io::Result<Vec<Work>> {
                processes.iter().map(|pid| Work::of(*pid)).collect()
            };
            let before = sum(&look()?);
            thread::sleep(self.plan.idle);
            let after = sum(&look()?);
            let memory: u64 = processes.iter().map(|pid| memory_of(*pid, "VmRSS:")).sum();
            let spent = (after.0 - before.0) as f64;
            table.row(&[
                (if mode == "echo" {
                    "none"
                } else {
                    "10 Hz spinner"
                })
                .to_owned(),
                who.name().to_owned(),
                format!("{:.2}", spent / 1e6),
                format!("{:.2}", spent / self.plan.idle.as_nanos() as f64 * 100.0),
                (after.1 - before.1).to_string(),
                format!("{:.1}", mib(memory)),
            ]);
            Self::end(&hosted);
        }
        println!("\nIdle for {:?}\n\n{}", self.plan.idle, table.text());
        Ok(())
    }

    /// From the start of the host to the child's first text on the outer screen.
    fn start(&self) {
        let mut times = vec![Vec::new(); self.hosts.len()];
        for round in 0..=self.plan.starts {
            for at in order_of(round, self.hosts.len()) {
                let began = Instant::now();
                let hosted = self.host(self.hosts[at], &["echo"]);
                hosted.terminal.wait_for_text("READY", LIMIT);
                let took = began.elapsed();
                Self::end(&hosted);
                // The first of each fills caches and makes the database.
                if round > 0 {
                    times[at].push(took);
                }
            }
        }
        let mut table = Table::new(&["host", "p50 ms", "p90 ms"]);
        for (who, times) in self.hosts.iter().zip(&mut times) {
            times.sort();
            table.row(&[who.name().to_owned(), millis(times, 50), millis(times, 90)]);
        }
        println!("\nStart to the child's first text\n\n{}", table.text());
    }

    /// What a hook and the status line cost the session they report from, beside `true`: the floor of starting any
    /// process here.
    fn hooks(&self) -> Outcome<()> {
        let dir = tempfile::Builder::new()
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir()?;
        let socket = dir.path().join("p.sock");
        let secrets = Secrets::create(dir.path(), "p", &socket, None)?;
        let runtime = tokio::runtime::Runtime::new()?;
        let (calls, queue) = mpsc::channel(64);
        let (listening, _) = runtime.block_on(async { bind_control_socket(&socket) })?;
        let (keys, desk) = (
            secrets.keys(),
            RequestQueue::new(calls, Feed::new("bench"), mpsc::channel(1).0),
        );
        runtime.spawn(serve(listening, keys, desk, std::future::pending()));
        runtime.spawn(take_all(queue));
        let hook = |file: &Path| {
            let mut command = Command::new(PITSTOP);
            command.args(["hook", "Stop", "--observe"]).arg(file);
            command
        };
        let line = |file: &Path| {
            let mut command = Command::new(PITSTOP);
            command.arg("statusline").arg("--observe").arg(file);
            command
        };
        let nobody = Path::new("/nowhere");
        let mut cases = [
            Small::new("`true`", Command::new("true"), PAYLOAD, ""),
            Small::new("hook, no supervisor", hook(nobody), PAYLOAD, ""),
            Small::new(
                "hook, supervisor",
                hook(secrets.observe_file()),
                PAYLOAD,
                "",
            ),
            Small::new(
                "statusline, no supervisor",
                line(nobody),
                FIGURES,
                "warn 72% · $4.12\n",
            ),
            Small::new(
                "statusline, supervisor",
                line(secrets.observe_file()),
                FIGURES,
                "warn 72% · 5–8 turns left · $4.12\n",
            ),
        ];
        for _ in 0..self.plan.hooks {
            for case in &mut cases {
                case.run()?;
            }
        }
        let mut table = Table::new(&["command", "p50 ms", "p99 ms"]);
        for Small { name, times, .. } in &mut cases {
            times.sort();
            table.row(&[(*name).to_owned(), millis(times, 50), millis(times, 99)]);
        }
        println!("\nHooks\n\n{}", table.text());
        Ok(())
    }
}

/// Returns the order of the hosts in a round: there and back, because it matters behind which other host one is measured.
fn order_of(round: usize, hosts: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..hosts).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

/// Presses keys and waits for what the child answers to each.
fn press(terminal: &Terminal, keys: usize) -> Vec<Duration> {
    let row = terminal.row_of("READY").unwrap_or(0);
    let answered = |key| {
        // Longer than a frame, and never in step with one.
        thread::sleep(Duration::from_micros(20_000 + (key as u64 * 7919) % 17_000));
        let began = Instant::now();
        terminal.send("k");
        let mark = format!("[{key:05}]");
        assert!(
            terminal.wait_for_row(row, &mark, LIMIT),
            "no answer to a key"
        );
        began.elapsed()
    };
    (0..keys).map(answered).collect()
}

/// The emulator's engine with nothing around it.
struct Engine {
    term: Term<VoidListener>,
    parser: Processor,
}

impl Engine {
    fn new() -> Self {
        let size = TermSize::new(PANE.0.into(), PANE.1.into());
        Self {
            term: Term::new(Config::default(), &size, VoidListener),
            parser: Processor::new(),
        }
    }

    fn advance(&mut self, bytes: &[u8]) {
        self.parser.advance(&mut self.term, bytes);
    }
}

/// What the engine alone needs for these bytes.
fn parse(payload: &[u8]) -> Duration {
    let mut engine = Engine::new();
    let began = Instant::now();
    for piece in payload.chunks(16 * 1024) {
        engine.advance(piece);
    }
    began.elapsed()
}

/// What a host has made of its frames.
#[derive(Default)]
struct Drawn {
    frames: usize,
    torn: usize,
    /// Nanoseconds of its processes.
    cost: f64,
    delays: Vec<Duration>,
    /// Bytes to the outer terminal.
    outer: usize,
    /// Bytes of the child.
    inner: usize,
}

/// What was seen of frames.
#[derive(Default)]
struct Seen {
    last: Option<usize>,
    torn: HashSet<usize>,
    delays: Vec<Duration>,
}

impl Seen {
    /// Looks at the rows as they were at that time of the monotonic clock.
    fn look(&mut self, rows: &[String], now: Duration) {
        let mark = |row: &String| -> Option<(usize, u64)> {
            let (_, rest) = row.split_once('<')?;
            let (frame, rest) = rest.split_once(' ')?;
            let (at, _) = rest.split_once('>')?;
            Some((frame.parse().ok()?, at.parse().ok()?))
        };
        let marks: Vec<(usize, u64)> = rows.iter().filter_map(mark).collect();
        let Some(newest) = marks.iter().max().copied() else {
            return;
        };
        if marks.len() < rows.len() || marks.iter().any(|(frame, _)| *frame != newest.0) {
            self.torn.insert(newest.0);
        } else if self.last != Some(newest.0) {
            self.last = Some(newest.0);
            let written = Duration::from_nanos(newest.1);
            self.delays.push(now.saturating_sub(written));
        }
    }
}

/// The time of the clock that all processes share.
fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or(0),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    )
}

/// A frame that draws everything again, as full-screen programs do: the same text in its colours, `pieces` a row, and
/// in each row the frame's number; in the first one the time of its writing, in nanoseconds.
fn full_frame(frame: usize, at: Duration, pieces: usize) -> String {
    let mut text = String::from("\x1b[?2026h\x1b[2J\x1b[H");
    let width = usize::from(PANE.0) - 40;
    for row in 1..PANE.1 {
        let time = if row == 1 { at.as_nanos() } else { 0 };
        let _ = write!(text, "\x1b[{row};1H<{frame:06} {time:020}> ");
        for piece in 0..pieces {
            let (from, to) = (piece * width / pieces, (piece + 1) * width / pieces);
            let shade = (piece * 13 + usize::from(row) * 5) % 256;
            let back = if pieces > 40 { ";48;5;17" } else { "" };
            let _ = write!(
                text,
                "\x1b[38;2;{shade};{};{}{back}m",
                255 - shade,
                100 + piece % 100
            );
            text.extend(
                (from..to).map(|at| char::from(b'a' + ((at + usize::from(row)) % 26) as u8)),
            );
        }
        text.push_str("\x1b[0m\x1b[K");
    }
    text.push_str("\x1b[?2026l");
    text
}

/// Stands in for the loop: takes every call at once.
async fn take_all(mut queue: mpsc::Receiver<Call>) {
    while let Some(call) = queue.recv().await {
        let line = || {
            let line = "warn 72% · 5–8 turns left · $4.12".to_owned();
            Reply::StatusLine(StatusLineReply { line })
        };
        let reply = match call.request {
            Request::StatusLine { .. } => line(),
            _ => Reply::Accepted,
        };
        // No one waits for the reply to a hook.
        call.reply.send(reply).ok();
    }
}

/// A hook payload of the usual size.
const PAYLOAD: &[u8] = br#"{"session_id":"3f0c1c9e-5f0a-4f0e-9f57-0d7f6f1f3a11","transcript_path":"/home/me/.claude/projects/p/3f0c1c9e.jsonl","cwd":"/home/me/p","hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"Done: the parser reads every line, and the tests pass."}"#;

/// A status line payload of the usual fields.
const FIGURES: &[u8] = br#"{"session_id":"3f0c1c9e-5f0a-4f0e-9f57-0d7f6f1f3a11","transcript_path":"/home/me/.claude/projects/p/3f0c1c9e.jsonl","cwd":"/home/me/p","version":"2.1.197","model":{"id":"claude-opus-4-8","display_name":"Opus 4.8"},"cost":{"total_cost_usd":4.12,"total_duration_ms":600000},"context_window":{"context_window_size":200000,"current_usage":{"input_tokens":5,"output_tokens":395,"cache_creation_input_tokens":0,"cache_read_input_tokens":129600},"used_percentage":64.8}}"#;

/// A small client that the hosted agent calls again and again.
struct Small {
    name: &'static str,
    command: Command,
    input: &'static [u8],
    says: &'static str,
    times: Vec<Duration>,
}

impl Small {
    fn new(
        name: &'static str,
        mut command: Command,
        input: &'static [u8],
        says: &'static str,
    ) -> Self {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self {
            name,
            command,
            input,
            says,
            times: Vec::new(),
        }
    }

    /// Runs it as the hosted agent would and measures from start to end.
    fn run(&mut self) -> Outcome<()> {
        let began = Instant::now();
        let mut child = self.command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // `true` may be gone before it has been written to.
            stdin.write_all(self.input).ok();
        }
        let output = child.wait_with_output()?;
        self.times.push(began.elapsed());
        let as_expected = output.status.success()
            && output.stdout == self.says.as_bytes()
            && output.stderr.is_empty();
        if !as_expected {
            return Err(format!("{}: {output:?}", self.name).into());
        }
        Ok(())
    }
}

/// The work of a process so far, all threads together.
struct Work {
    nanoseconds: u64,
    wakeups: u64,
}

impl Work {
    fn of(pid: i32) -> io::Result<Self> {
        let mut work = Self {
            nanoseconds: 0,
            wakeups: 0,
        };
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            let thread = thread?.path();
            let ran = fs::read_to_string(thread.join("schedstat"))?;
            work.nanoseconds += first_number(&ran);
            let status = fs::read_to_string(thread.join("status"))?;
            let switches = status
                .lines()
                .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            work.wakeups += switches.map_or(0, first_number);
        }
        Ok(work)
    }
}

fn first_number(text: &str) -> u64 {
    let number = text.split_whitespace().next();
    number.and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// A figure from a process's status, in KiB.
fn memory_of(pid: i32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.map_or(0, first_number)
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(0.0)
}

/// That percentile of sorted times, in milliseconds.
fn millis(times: &[Duration], percent: usize) -> String {
    let at = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    let time = times.get(at).map_or(0.0, Duration::as_secs_f64);
    format!("{:.2}", time * 1e3)
}

fn ratio(one: Option<f64>, other: Option<f64>) -> String {
    match (one, other) {
        (Some(one), Some(other)) if other > 0.0 => format!("{:.2}", one / other),
        _ => "–".to_owned(),
    }
}

/// A table in Markdown.
struct Table(String);

impl Table {
    fn new(heads: &[&str]) -> Self {
        let rule = "---|".repeat(heads.len());
        Self(format!("| {} |\n|{rule}\n", heads.join(" | ")))
    }

    fn row(&mut self, cells: &[String]) {
        let _ = writeln!(self.0, "| {} |", cells.join(" | "));
        eprintln!("{}", cells.join("  "));
    }

    fn text(&self) -> &str {
        &self.0
    }
}

/// What programs write: a name and a piece to be repeated.
fn workloads() -> Vec<(&'static str, Vec<u8>)> {
    let mut plain = String::new();
    let mut colours = String::new();
    let mut unicode = String::new();
    let mut addressed = String::new();
    let mut redraws = String::new();
    for n in 0_u32..1200 {
        let _ = write!(
            plain,
            "{n:06} the quick brown fox jumps over the lazy dog, again and again and again.\r\n"
        );
        for (at, word) in [
            "fn ", "main", "() ", "{ let ", "x", " = ", "\"text\"", "; }",
        ]
        .iter()
        .enumerate()
        {
            let colour = (n + at as u32 * 37) % 256;
            let _ = match at % 3 {
                0 => write!(colours, "\x1b[1;3{}m{word}\x1b[0m", colour % 8),
                1 => write!(colours, "\x1b[38;5;{colour}m{word}"),
                _ => write!(
                    colours,
                    "\x1b[38;2;{colour};120;{}m{word}\x1b[39m",
                    255 - colour
                ),
            };
        }
        colours.push_str("\r\n");
        let _ = write!(
            unicode,
            "{n} 漢字かな交じり文 žluťoučký kůň 🙂🚀 → ✓ é ñ ß ──┤ 한국어 텍스트 Привет, мир\r\n"
        );
        let _ = write!(
            addressed,
            "\x1b[{};{}H{n:04}-x\x1b[K",
            1 + (n * 7) % 46,
            1 + (n * 31) % 100
        );
    }
    for frame in 0_u32..12 {
        redraws.push_str("\x1b[?2026h\x1b[H");
        for row in 0..46 {
            let _ = write!(
                redraws,
                "\x1b[{};1H\x1b[38;5;{}m",
                row + 1,
                (row + frame) % 256
            );
            let _ = write!(
                redraws,
                "row {row:02} of frame {frame:02} with some text that fills most of the line of the pane\x1b[0m\x1b[K"
            );
        }
        redraws.push_str("\x1b[?2026l");
    }
    let mut clears = String::new();
    let mut regions = String::new();
    for frame in 0_u32..12 {
        clears.push_str("\x1b[2J\x1b[3J\x1b[H");
        for row in 0..46 {
            let _ = write!(
                clears,
                "\x1b[2m{row:3}\x1b[22m  {} \x1b[1mall printed again\x1b[22m in frame {frame}, and most of it as before\r\n",
                "·".repeat(20)
            );
        }
    }
    for n in 0_u32..1200 {
        let top = 1 + n % 20;
        let _ = write!(
            regions,
            "\x1b[{top};{}r\x1b[{};1H\r\n{n:06} scrolled within a region of the screen, and nothing else\x1b[r",
            top + 20,
            top + 20
        );
    }
    vec![
        ("plain lines", plain.into_bytes()),
        ("SGR colours", colours.into_bytes()),
        ("Unicode", unicode.into_bytes()),
        ("cursor-addressed", addressed.into_bytes()),
        ("synchronized redraws", redraws.into_bytes()),
        ("reprints with clears", clears.into_bytes()),
        ("scroll regions", regions.into_bytes()),
    ]
}

/// The hosted program.
fn child(mode: &str, args: &[String]) -> Outcome<()> {
    let mut stdin = io::stdin();
    let mut settings = tcgetattr(&stdin)?;
    settings.make_raw();
    tcsetattr(&stdin, OptionalActions::Now, &settings)?;
    let mut out = io::stdout();
    let mut say = |text: &str| -> io::Result<()> {
        out.write_all(text.as_bytes())?;
        out.flush()
    };
    match (mode, args) {
        ("write", [file, times]) => {
            let unit = fs::read_to_string(file)?;
            let payload = unit.repeat(times.parse()?);
            say("READY")?;
            for round in 0.. {
                if stdin.read(&mut [0])? == 0 {
                    break;
                }
                say(&payload)?;
                say(&format!("\x1b[0m\x1b[2J\x1b[HEND{round}.\r\n"))?;
            }
        }
        ("frames", [frames]) => {
            say("\x1b[2J\x1b[HREADY")?;
            stdin.read_exact(&mut [0])?;
            let began = Instant::now();
            for frame in 0..frames.parse()? {
                say(&full_frame(frame, monotonic(), 24))?;
                let next = FRAME_TIME * (frame as u32 + 1);
                thread::sleep(next.saturating_sub(began.elapsed()));
            }
            say(&format!("\x1b[{};1HEND", PANE.1))?;
            // Until it is told to end.
            while stdin.read(&mut [0])? > 0 {}
        }
        ("stream" | "spinner", _) => {
            say("\x1b[2J\x1b[HREADY")?;
            let (mut key, mut frame) = (0, 0);
            let time = if mode == "stream" {
                FRAME_TIME
            } else {
                FRAME_TIME * 3
            };
            let mut next = Instant::now();
            loop {
                let left = next.saturating_duration_since(Instant::now());
                let limit = Timespec {
                    tv_sec: 0,
                    tv_nsec: i64::from(left.subsec_nanos()),
                };
                let mut input = [PollFd::new(&stdin, PollFlags::IN)];
                if poll(&mut input, Some(&limit))? > 0 {
                    if stdin.read(&mut [0])? == 0 {
                        break;
                    }
                    say(&format!("\x1b[1;1H[{key:05}]"))?;
                    key += 1;
                    continue;
                }
                if mode == "stream" {
                    let text = full_frame(frame, Duration::ZERO, 72).replacen("\x1b[2J", "", 1);
                    say(&text.replacen("\x1b[1;1H<", "\x1b[1;9H<", 1))?;
                } else {
                    let dots = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
                    say(&format!("\x1b[20;1H{} Working…", dots[frame % dots.len()]))?;
                }
                frame += 1;
                next += time;
            }
        }
        ("echo" | "flood", _) => {
            say("\x1b[2J\x1b[HREADY")?;
            let mut key = 0;
            for round in 0_u64.. {
                if mode == "flood" {
                    say(&redraw(round))?;
                    let mut input = [PollFd::new(&stdin, PollFlags::IN)];
                    if poll(&mut input, Some(&Timespec::default()))? == 0 {
                        continue;
                    }
                }
                if stdin.read(&mut [0])? == 0 {
                    break;
                }
                say(&format!("\x1b[1;1H[{key:05}]"))?;
                key += 1;
            }
        }
        _ => return Err(format!("expected a mode of the child, found {mode}").into()),
    }
    Ok(())
}

/// Draws all rows but the first again.
fn redraw(round: u64) -> String {
    let mut piece = String::new();
    for row in 2..40 {
        let _ = write!(
            piece,
            "\x1b[{row};1H{round:08} a flood that redraws this line, row {row}, all the time\x1b[K"
        );
    }
    piece
}
