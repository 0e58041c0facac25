//! What a reboot of the real client takes, by each way, from its approval to the next turn's request at the stand-in API.
//!
//! ```text
//! PITSTOP_CLAUDE=PATH cargo bench --bench reboot                      twenty of each, some ten minutes
//! PITSTOP_BENCH=quick PITSTOP_CLAUDE=PATH cargo bench --bench reboot  a look: three of each
//! PITSTOP_BENCH_ONLY='fresh,in place' …                               some of: fresh, in place, trim, /compact
//! ```
//!
//! One `pitstop` hosts the client; the ways take turns, round by round, in a conversation that has the same talk each time. The
//! clock starts when the approval is sent to the control socket (for the client's own `/compact`: when its Enter is sent), and
//! stops when the next turn's request has arrived. By a trim and by `/compact` no turn begins: `go on` is submitted as soon as
//! pitstop takes it. The stand-in answers at once, so the time of a model that writes a summary is not in it.

#![allow(clippy::disallowed_methods, reason = "it measures real time")]
#![allow(
    clippy::too_many_lines,
    reason = "a measurement is one sequence from beginning to end"
)]

use std::{
    env,
    error::Error,
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use pitstop_server::client::ApiClient;
use serde_json::{Value, json};

#[path = "../tests/it/kit/mod.rs"]
#[allow(dead_code, reason = "the kit is shared, and a part of it is used here")]
mod kit;

use kit::{
    messages_api::Answer,
    poll,
    supervisor::{Launch, Supervisor, key},
};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// How long anything may take before the benchmark gives up.
const LIMIT: Duration = Duration::from_secs(60);

/// What a person rules, what is decided, and the file that is worked on: whether they are in the next request is looked at.
const RULE: &str = "Never delete a file below ~/feeds.";
const DECISION: &str = "the store is SQLite";
const FILE: &str = "src/tide/parser.rs";

/// How much of a window of 200 000 tokens the stand-in says is in use, before and behind it.
const FULL: u64 = 135_000;
const BEHIND: u64 = 40_000;

/// The prompt that begins each round.
const TALK: &str = "Never delete a file below ~/feeds. Read src/tide/parser.rs and list the dates.";

/// A way to a smaller context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Fresh,
    InPlace,
    Trim,
    Compact,
}

impl Way {
    const ALL: [Self; 4] = [Self::Fresh, Self::InPlace, Self::Trim, Self::Compact];

    const fn name(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::InPlace => "in place",
            Self::Trim => "trim",
            Self::Compact => "the client's `/compact`",
        }
    }
}

/// What one took, and what the next request was.
struct Measured {
    took: Duration,
    /// Tokens of the messages before and after it: their bytes by four.
    before: usize,
    after: usize,
    /// Calls of a model before the next turn's request.
    calls: usize,
    /// Whether rule, decision and file are in the request.
    kept: [bool; 3],
}

fn main() -> Outcome<()> {
    let quick = env::var("PITSTOP_BENCH").is_ok_and(|word| word == "quick");
    let rounds = if quick { 3 } else { 20 };
    let only = env::var("PITSTOP_BENCH_ONLY").unwrap_or_default();
    let ways = Way::ALL.into_iter();
    let wanted = |way: &Way| only.split(',').any(|one| way.name().contains(one));
    let ways: Vec<Way> = ways.filter(wanted).collect();
    let launch = Launch::live()
        .set("reboot.mode=\"manual\"")
        // As people have it: the tests switch these compilers off.
        .env("BUN_JSC_useDFGJIT", "1")
        .env("BUN_JSC_useFTLJIT", "1")
        .agent_args(["--model", "claude-sonnet-4-5"])
        .agent_args(["--allowed-tools", "Bash(seq:*)"]);
    fs::create_dir_all(launch.project().join("src/tide"))?;
    fs::write(launch.project().join(FILE), "pub fn parse() {}\n")?;
    let bench = Bench {
        supervisor: launch.start(),
    };
    bench.rests();
    let mut measured: Vec<Vec<Measured>> = ways.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for (way, measured) in ways.iter().zip(&mut measured) {
            let one = bench.measure(*way)?;
            println!("{round} {}: {} ms", way.name(), one.took.as_millis());
            measured.push(one);
        }
    }
    println!("\nload: {}", fs::read_to_string("/proc/loadavg")?.trim());
    println!(
        "\n| way | p50 ms | min | max | tokens before | after | model calls | rule · decision · file |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (way, measured) in ways.iter().zip(&mut measured) {
        measured.sort_by_key(|one| one.took);
        row(*way, measured);
    }
    bench.supervisor.quit();
    Ok(())
}

/// A line of the table: times sorted, of the rest the middle one.
fn row(way: Way, measured: &[Measured]) {
    let Some(middle) = measured.get(measured.len() / 2) else {
        return;
    };
    let ms = |one: &Measured| one.took.as_secs_f64() * 1e3;
    let [first, last] = [measured.first(), measured.last()].map(|one| one.map_or(0.0, ms));
    let kept = middle.kept.map(|kept| if kept { "yes" } else { "no" });
    println!(
        "| {} | {:.0} | {first:.0} | {last:.0} | {} | {} | {} | {} |",
        way.name(),
        ms(middle),
        middle.before,
        middle.after,
        middle.calls,
        kept.join(" · ")
    );
}

struct Bench {
    supervisor: Supervisor,
}

impl Bench {
    fn status(&self, holds: impl Fn(&Value) -> bool) -> Value {
        self.supervisor.wait_for_status_within(LIMIT, holds)
    }

    /// The bridge is in force, nothing runs, no reboot is under way.
    fn rests(&self) -> Value {
        self.status(|status| {
            let bridge = &status["agent"]["bridge"];
            bridge["state"] == "in_force"
                && bridge["turn_runs"] != true
                && status["agent"]["state"] == "idle"
                && status["reboot"]["phase"] == "idle"
        })
    }

    /// Calls of a model so far: of the conversation, and others.
    fn calls(&self) -> (usize, usize) {
        let api = self.supervisor.launch.api();
        (api.main_calls().len(), api.side_calls().len())
    }

    /// A turn that reads and decides, so that there is something to lose.
    fn talks(&self) {
        let shell = || Answer::shell("seq 1 6000");
        let decided = format!("It is read.\n\nDECISION: {DECISION} | two write at a time");
        let api = self.supervisor.launch.api();
        let read = Answer::Tool {
            name: "Read".to_owned(),
            input: json!({ "file_path": self.supervisor.launch.project().join(FILE) }),
        };
        api.answer([read, shell(), shell(), shell(), Answer::text(&decided)]);
        // So full that a trim is worth its while, and below the line at which the client compacts by itself.
        api.report_usage([FULL; 5]);
        let before = self.calls().0;
        self.supervisor.prompt(TALK);
        api.wait_for_calls(before + 5, LIMIT);
        self.rests();
    }

    fn control(&self) -> Outcome<ApiClient> {
        let run = fs::read_dir(self.supervisor.launch.the_home().path("run/pitstop"))?;
        let files: Vec<PathBuf> = run.flatten().map(|file| file.path()).collect();
        let is_control = |path: &&PathBuf| path.extension().is_some_and(|end| end == "control");
        let file = files.iter().find(is_control).ok_or("no control file")?;
        Ok(ApiClient::from_file(file)?)
    }

    fn measure(&self, way: Way) -> Outcome<Measured> {
        self.talks();
        let api = self.supervisor.launch.api();
        let before = api.main_calls().last().map_or(0, tokens);
        let control = self.control()?;
        let word = match way {
            Way::Fresh => "fresh",
            Way::InPlace => "in-place",
            Way::Trim => "trim",
            Way::Compact => "",
        };
        if word.is_empty() {
            self.supervisor.keys(["/compact"]);
            self.supervisor
                .terminal
                .wait_for_text("❯\u{a0}/compact", LIMIT);
        } else {
            let asked = self.supervisor.run(&["ctl", "reboot", "--way", word]);
            if !asked.status.success() {
                return Err(format!("{word}: {}", String::from_utf8_lossy(&asked.stderr)).into());
            }
            self.supervisor.wait_for_phase("review", LIMIT);
        }
        let iteration = self.supervisor.status()["iteration"].as_u64();
        let (main, side) = self.calls();
        let began = Instant::now();
        let end = began + LIMIT;
        api.report_usage(vec![BEHIND; 1 + usize::from(way == Way::Compact)]);
        if word.is_empty() {
            api.answer([Answer::text("<summary>What the stand-in says.</summary>")]);
            self.supervisor.keys([key::ENTER]);
            api.wait_for_calls(main + 1, LIMIT);
        } else {
            let approved = control.post("/control/approve", b"{}", end)?;
            if approved.status >= 300 {
                return Err(format!("{word}: {}", String::from_utf8_lossy(&approved.body)).into());
            }
        }
        if matches!(way, Way::Trim | Way::Compact) {
            self.goes_on(&control, way, iteration)?;
        }
        let summaries = usize::from(way == Way::Compact);
        let calls = api.wait_for_calls(main + summaries + 1, LIMIT);
        let took = began.elapsed();
        let request = calls.get(main + summaries).ok_or("no request")?;
        let text = request["messages"].to_string();
        let measured = Measured {
            took,
            before,
            after: tokens(request),
            calls: calls.len() - 1 - main + self.calls().1 - side,
            kept: [RULE, DECISION, FILE].map(|words| text.contains(words)),
        };
        self.rests();
        Ok(measured)
    }

    /// Submits `go on` as soon as that is taken.
    fn goes_on(&self, control: &ApiClient, way: Way, before: Option<u64>) -> Outcome<()> {
        let end = Instant::now() + LIMIT;
        let body = json!({ "text": "go on" }).to_string();
        if way == Way::Trim {
            // Until then the old session would take it.
            self.status(|status| status["iteration"].as_u64() > before);
        }
        let mut trouble = None;
        let taken = poll::within(LIMIT, || {
            match control.post("/control/say", body.as_bytes(), end) {
                Ok(answer) => answer.status < 300,
                Err(error) => {
                    trouble = Some(error.to_string());
                    true
                }
            }
        });
        match trouble {
            Some(error) => Err(error.into()),
            None if taken => Ok(()),
            None => Err("`go on` is not taken".into()),
        }
    }
}

/// What the messages of a request have, in tokens: their bytes by four.
fn tokens(call: &Value) -> usize {
    call["messages"].to_string().len() / 4
}
