//! Runs a public conformance suite for terminals inside a pane, and prints how many of its tests pass.
//!
//! `cargo run --example esctest -- SUITE [--reset] [--only REGEX] [--timeout SECONDS] [--log FILE]`
//! `cargo run --example esctest -- -- PROGRAM [ARGUMENT…]`
//!
//! SUITE is the directory of esctest2's `esctest.py` (`esctest/` of the repository ThomasDickey/esctest2); nothing of it
//! is part of this project. It needs Python 3. With `--reset` the terminal is reset hard (RIS) before each test, so that a test
//! does not suffer from what an earlier one left behind. The suite reads the screen by checksums of single cells, which a
//! pane answers nobody but this runner.
//!
//! The second form runs any other program that asks its terminal (such as `ucs-detect --save-json FILE …`, which measures
//! the widths of characters by cursor reports) and prints the screen it left.

#![allow(clippy::disallowed_methods, reason = "real programs take real time")]

use std::{
    env,
    ffi::OsString,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    time::Instant,
};

use pitstop::pane::{
    PaneSize, PaneSpec,
    pty::{self, PtyNews},
    screen::Screen,
};

/// The size the suite asks for, which a pane cannot grant.
const SIZE: (u16, u16) = (80, 25);

/// Starts the suite, with a hard reset before each test if wanted: its own `reset` is known by its name.
const DRIVER: &str = r#"
import os, runpy, sys
suite, hard = sys.argv[1], sys.argv[2] == "hard"
sys.argv[:] = ["esctest.py"] + sys.argv[3:]
sys.path.insert(0, suite)
if hard:
    import esccmd, escio
    level = esccmd.DECSCL
    def after_reset(*arguments):
        if sys._getframe(1).f_code.co_name == "reset":
            escio.Write("\x1bc")
        level(*arguments)
    esccmd.DECSCL = after_reset
runpy.run_path(os.path.join(suite, "esctest.py"), run_name="__main__")
"#;

type Error = Box<dyn std::error::Error>;

struct Options {
    suite: PathBuf,
    reset: bool,
    only: String,
    timeout: String,
    log: Option<PathBuf>,
}

fn main() -> Result<(), Error> {
    let mut words = env::args_os().skip(1).peekable();
    if words.next_if(|word| word == "--").is_some() {
        let program = words.next().ok_or("expected a program")?;
        let (_, screen) = run(program, words.collect(), &env::current_dir()?, false)?;
        writeln!(io::stdout(), "{}", screen.tail_text(1000))?;
        return Ok(());
    }
    let options = options()?;
    let directory = tempfile::tempdir()?;
    let kept = directory.path().join("log");
    let log = options.log.as_deref().unwrap_or(&kept);
    let args = options.arguments(log);
    let (took, _) = run("python3".into(), args, directory.path(), true)?;
    tell(&fs::read_to_string(log)?, took);
    Ok(())
}

fn options() -> Result<Options, Error> {
    let mut options = Options {
        suite: PathBuf::new(),
        reset: false,
        only: ".*".to_owned(),
        timeout: "1".to_owned(),
        log: None,
    };
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--reset" => options.reset = true,
            "--only" => options.only = value()?,
            "--timeout" => options.timeout = value()?,
            "--log" => options.log = Some(value()?.into()),
            _ => options.suite = word.into(),
        }
    }
    if options.suite.join("esctest.py").is_file() {
        options.suite = options.suite.canonicalize()?;
        Ok(options)
    } else {
        Err("expected the directory of esctest.py".into())
    }
}

impl Options {
    fn arguments(&self, log: &Path) -> Vec<OsString> {
        let reset = if self.reset { "hard" } else { "soft" };
        let mut args = vec!["-c".into(), DRIVER.into(), self.suite.clone().into()];
        args.extend([reset, "--include", &self.only].map(Into::into));
        args.extend(["--timeout", &self.timeout, "--no-print-logs", "--logfile"].map(Into::into));
        args.push(log.into());
        args
    }
}

/// Runs a program in a pane to its end; gives the seconds it took, and the screen.
fn run(
    program: OsString,
    args: Vec<OsString>,
    cwd: &Path,
    checksums: bool,
) -> Result<(u64, Screen), Error> {
    let size = PaneSize::new(SIZE.0, SIZE.1);
    let spec = PaneSpec {
        program,
        args,
        env: ["PATH", "HOME", "LANG"]
            .into_iter()
            .filter_map(|name| Some((name.into(), env::var_os(name)?)))
            .chain([
                ("TERM".into(), "xterm-256color".into()),
                ("COLORTERM".into(), "truecolor".into()),
                ("TERM_PROGRAM".into(), "pitstop".into()),
                ("PYTHONDONTWRITEBYTECODE".into(), "1".into()),
            ])
            .collect(),
        cwd: cwd.into(),
        size,
    };
    let began = Instant::now();
    let (sender, mut messages) = pty::channel();
    let pane = pty::spawn(spec, 1, &sender)?;
    let mut screen = Screen::new(size, 10_000);
    if checksums {
        screen.answer_checksums();
    }
    while let Some(message) = messages.blocking_recv() {
        match message.news {
            PtyNews::Output(bytes) => {
                screen.feed(&bytes, Instant::now());
                for reply in screen.take_replies() {
                    pane.try_write(reply)?;
                }
                screen.take_facts();
            }
            PtyNews::OutputEnded | PtyNews::Exited(_) => break,
            PtyNews::Stopped(_) => {}
        }
    }
    pane.release();
    Ok((began.elapsed().as_secs(), screen))
}

/// Tells the counts, and the names of what failed.
fn tell(log: &str, took: u64) {
    let count = |text: &str| log.lines().filter(|line| line.starts_with(text)).count();
    for line in log.lines().filter(|line| line.starts_with("*** TEST ")) {
        println!("{line}");
    }
    println!(
        "{} tests: {} pass, {} fail, {} fail as expected of xterm, {} skipped; {took} s",
        count("Run test: "),
        count("Passed."),
        count("*** TEST "),
        count("Fails as expected"),
        count("Skipped because"),
    );
}
