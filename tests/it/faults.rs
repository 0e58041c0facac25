//! Faults: what is broken on purpose while a person works, and what must hold after it.
//!
//! The table of all of them is `tests/fixtures/faults.toml`; `cargo run --example faults` runs it and prints a line for each.
//! Most tests here are ignored otherwise: together they take minutes. Tests of other files stand in the table too.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use crate::kit::{
    home::{Home, handoffs},
    supervisor::{Launch, SOON, Supervisor, agents, key, processes_of, session_of},
};

mod child;
mod clock;
mod disk;
mod doors;
mod files;
mod kills;
mod kills_of_runs;
mod kills_of_writers;
mod store;
mod terminal;
mod transcript;

/// A line that a person wrote into the notes.
const MINE: &str = "feeds are parsed by hand";

const REPLY: &str = "Understood.";

/// What stands in a file of the user's.
const OWN: &str = "fn main() {}\n";

/// How long a debug build on a machine that others use too may take for an answer.
const ANSWER: Duration = Duration::from_secs(5);

/// A demo that is rebooted by hand, with a note in its scratchpad.
fn demo() -> Launch {
    Launch::manual_demo(&format!(
        "# Scratchpad\n\n## Current Understanding\n{MINE}\n\n## Current Plan\n- [ ] write the store\n"
    ))
}

/// A session with something to lose: a turn that was taken, a person's line in the notes, a file of the user's.
struct Trial {
    supervisor: Supervisor,
    own: PathBuf,
}

impl Trial {
    #[track_caller]
    fn begin(launch: &Launch) -> Self {
        let own = launch.project().join("main.rs");
        fs::write(&own, OWN).expect("written");
        let trial = Self {
            supervisor: launch.start(),
            own,
        };
        trial.turn("begin the work");
        trial
    }

    /// Types a prompt, which is answered.
    #[track_caller]
    fn turn(&self, prompt: &str) {
        self.supervisor.wait_for_state("idle", SOON);
        let replies = || self.supervisor.screen().matches(REPLY).count();
        let before = replies();
        self.supervisor.prompt(prompt);
        self.supervisor.wait_until("a reply", || replies() > before);
        self.supervisor.wait_for_state("idle", SOON);
    }

    /// Keys and scripts are answered at once.
    #[track_caller]
    fn answers(&self) {
        let began = Instant::now();
        self.supervisor.keys([key::F1]);
        self.supervisor.wait_for_text("In the review", ANSWER);
        self.supervisor.keys([key::ESC]);
        self.supervisor
            .terminal
            .wait_for(|screen| !screen.contains("In the review"), ANSWER);
        assert!(self.supervisor.try_status().is_some());
        println!("answered in {:?}", began.elapsed());
    }

    /// A reboot that was approved goes ahead, or is refused with the reason; the agent is idle again.
    #[track_caller]
    fn reboots_or_is_refused(&self) {
        let before = self.supervisor.status()["iteration"].as_u64();
        self.supervisor.review();
        self.supervisor.keys([key::ENTER]);
        self.supervisor.wait_for_status(|status| {
            let refused = || self.supervisor.screen().contains("refused");
            let next = status["iteration"].as_u64() > before || refused();
            next && status["reboot"]["phase"] == "idle" && status["agent"]["state"] == "idle"
        });
    }

    /// A reboot goes ahead: the new session gets the handoff once, with the person's line.
    #[track_caller]
    fn reboots(&self) {
        let before = self.supervisor.status();
        let next = before["iteration"].as_u64().expect("a number") + 1;
        self.supervisor.review();
        let text = self.supervisor.handoff_text();
        assert!(text.contains(MINE), "{text}");
        self.supervisor.keys([key::ENTER]);
        let status = self.supervisor.wait_for_iteration(next, SOON);
        let (old, new) = (session_of(&before), session_of(&status));
        assert_ne!(old, new);
        let home = self.home();
        let arrived = || handoffs(home).get(&new) == Some(&1);
        self.supervisor.wait_until("the handoff", arrived);
        let alive = agents(home);
        assert_eq!(alive.len(), 1, "one agent: {alive:#?}");
        self.supervisor.wait_for_state("idle", SOON);
    }

    /// A reboot is refused with the reason, and the agent goes on as the same one.
    #[track_caller]
    fn is_refused_a_reboot(&self) {
        let before = self.supervisor.status();
        let agent = self.supervisor.agent_pid();
        self.supervisor.review();
        self.supervisor.keys([key::ENTER]);
        self.supervisor.wait_for_text("the reboot is refused", SOON);
        let after = self.supervisor.wait_for_phase("idle", SOON);
        assert_eq!(session_of(&after), session_of(&before));
        assert_eq!(self.supervisor.agent_pid(), agent);
    }

    /// Quits: the terminal is as it was, nothing lives on, and what is the user's is as they left it.
    #[track_caller]
    fn ends(&self) {
        self.leaves();
        let notes = self.supervisor.notes();
        assert!(notes.contains(MINE), "the notes: {notes}");
    }

    /// As [`Self::ends`], where the notes themselves were spoiled.
    #[track_caller]
    fn leaves(&self) {
        let terminal = &self.supervisor.terminal;
        self.supervisor.keys([key::F10]);
        let over = || processes_of(self.home()).is_empty();
        // About a note that is not saved, or a turn that has just begun.
        let asks = || terminal.screen_text().contains("any other key stays");
        let either = || over() || asks();
        self.supervisor.wait_until("it ends or asks", either);
        if !over() {
            self.supervisor.keys([key::ENTER]);
        }
        let exit = self.supervisor.wait_for_exit(SOON);
        assert_eq!((exit.code, exit.signal), (0, None));
        assert_eq!(terminal.modes_left_on(), Vec::<&str>::new());
        assert!(terminal.has_its_settings_back());
        self.supervisor.wait_until("no process is left", over);
        assert_eq!(fs::read_to_string(&self.own).expect("the user's"), OWN);
        let log = self.supervisor.log();
        assert!(!log.contains("panic"), "{log}");
        // The title that hostile files set in these tests.
        let drawn = terminal.output();
        assert!(!String::from_utf8_lossy(&drawn).contains("\x1b]0;owned"));
    }

    /// Goes on with the work, over a reboot, to its end.
    #[track_caller]
    fn goes_on(&self) {
        self.turn("go on");
        self.answers();
        self.reboots();
        self.ends();
    }

    fn home(&self) -> &Home {
        self.supervisor.launch.the_home()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home().path(name)
    }
}

/// What a process has in memory, in MiB.
fn memory(supervisor: &Supervisor) -> u64 {
    crate::pane::memory(supervisor, "VmRSS:") / 1024
}

/// A command before pitstop, which runs in its place: pitstop's command line follows it.
fn through(command: &str) -> String {
    format!("exec {command} \"$0\" \"$@\"")
}

/// A mount namespace of its own, in which this was done before.
fn in_namespace(commands: &str) -> String {
    // As root there may be no user namespaces, and as another user there is no other way.
    let unshare = "unshare $([ \"$(id -u)\" = 0 ] && echo -m || echo -rm)";
    through(&format!(
        "{unshare} /bin/sh -c '{commands} && exec \"$0\" \"$@\"'"
    ))
}

/// Whether a shell can run this here; if not, it prints why the test is skipped.
fn can(what: &str, commands: &str) -> bool {
    let output = Command::new("/bin/sh").args(["-c", commands]).output();
    let can = output.is_ok_and(|output| output.status.success());
    if !can {
        println!("skipped: needs {what}");
    }
    can
}

fn make_fifo(path: &Path) {
    let fifo = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, fifo, mode, 0).expect("a pipe");
}

fn remove(path: &Path) {
    fs::remove_file(path).expect("removed");
}

/// A file with a hole of this many bytes.
fn make_hole(path: &Path, size: u64) {
    let file = fs::File::create(path).expect("a file");
    file.set_len(size).expect("a hole");
}

/// Numbers that look random and are the same ones each time: a linear congruence.
struct Moments(u32);

impl Moments {
    /// Up to this many milliseconds.
    fn up_to(&mut self, limit: u32) -> Duration {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Duration::from_millis(u64::from((self.0 >> 8) % limit))
    }
}

/// Every line of the table names tests that are there, and says what is expected.
#[test]
fn the_table_of_faults_names_tests_that_are_there() {
    let text = include_str!("../fixtures/faults.toml");
    let table: toml::Value = toml::from_str(text).expect("the table");
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--list", "--format", "terse"])
        .output()
        .expect("it runs");
    let known = String::from_utf8(output.stdout).expect("text");
    let known: Vec<&str> = known
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .collect();
    let mut named = Vec::new();
    let mut titles = BTreeSet::new();
    for group in table["group"].as_array().expect("groups") {
        for fault in group["fault"].as_array().expect("faults") {
            let tests = fault.get("tests").and_then(toml::Value::as_array);
            assert!(tests.is_some() != fault.get("skip").is_some(), "{fault}");
            named.extend(
                tests
                    .into_iter()
                    .flatten()
                    .map(|test| test.as_str().unwrap()),
            );
            assert!(
                titles.insert(format!("{}{}", group["name"], fault["name"])),
                "{fault}"
            );
        }
    }
    let is_there = |wanted: &&str| {
        known.iter().any(|name| {
            wanted
                .strip_suffix('*')
                .map_or(name == wanted, |begin| name.starts_with(begin))
        })
    };
    let missing: Vec<&str> = named
        .iter()
        .copied()
        .filter(|test| !is_there(test))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
    // And none of these here is left out.
    let own = known
        .iter()
        .filter(|name| name.starts_with("faults::") && !name.contains("the_table"));
    let left_out: Vec<_> = own.filter(|name| !named.contains(name)).collect();
    assert!(left_out.is_empty(), "{left_out:#?}");
}
