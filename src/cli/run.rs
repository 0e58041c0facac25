//! `pitstop run`: keeps an agent at one task across context windows until a stop phrase, a cap or a breaker.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::{
    demo::DemoPlace,
    host::{self, Asked, HostArgs, Request},
    out::{self, Failure, Outcome},
};
use crate::runtime::{lines::LineFormat, task};
use pitstop_base::clean::one_line;
use pitstop_core::{
    autopilot::{Caps, Fresh, Limits, Plan, stop_phrase},
    config::{Config, parse_duration},
};

/// The rule for when a new session is begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
pub enum FreshWhen {
    /// When the context window is full
    #[default]
    Threshold,
    /// After every turn
    Always,
}

/// Work on a task by itself, across context windows, until the agent says that it is done.
///
/// Exit codes: 0 done, or you quit · 1 error · 2 bad usage or configuration · 3 a cap was reached · 4 a breaker tripped ·
/// 5 the agent could not run · 130 interrupted.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub struct RunArgs {
    /// The task: a file, read again before each prompt, or the text itself
    #[arg(long, value_name = "FILE|TEXT")]
    pub task: String,
    /// The text by which the agent says that the whole task is done
    #[arg(long, value_name = "TEXT", default_value = stop_phrase::DEFAULT)]
    pub until: String,
    /// End after this many iterations (sessions); 0 for no cap
    #[arg(long, value_name = "N", value_parser = sessions, allow_negative_numbers = true)]
    pub max_iterations: Option<u32>,
    /// End when it has cost this much; 0 for no cap
    #[arg(long, value_name = "USD", value_parser = dollars, allow_negative_numbers = true)]
    pub max_cost: Option<f64>,
    /// End after this long, such as 4h or 90m; 0 for no cap
    #[arg(long, value_name = "TIME", value_parser = time, allow_negative_numbers = true)]
    pub max_time: Option<Duration>,
    /// When a new session is begun
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub fresh: FreshWhen,
    /// Run without a terminal and print one line an event
    #[arg(long)]
    pub headless: bool,
    /// Print JSON lines
    #[arg(long, requires = "headless")]
    pub json: bool,
    /// Host the built-in scripted agent, with no account
    #[arg(long)]
    pub demo: bool,
    /// Have the scripted agent work in this directory, as a real one would, and keep everything
    #[arg(long, requires = "demo")]
    pub here: bool,
    /// Arguments for the agent
    #[arg(last = true, value_name = "ARGS")]
    pub args: Vec<String>,
}

fn sessions(text: &str) -> Result<u32, String> {
    let expected = || format!("expected a whole number from 0 to {}", u32::MAX);
    text.parse().map_err(|_| expected())
}

fn dollars(text: &str) -> Result<f64, String> {
    let amount: f64 = text
        .trim_start_matches('$')
        .parse()
        .map_err(|_| "expected an amount such as 2.50".to_owned())?;
    if (0.0..=1e6).contains(&amount) {
        Ok(amount)
    } else {
        Err("expected an amount from 0 to 1000000".to_owned())
    }
}

fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "expected a time such as 4h, 90m or 1h30m".to_owned())
}

/// The run to be made, as far as the command line defines it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RunRequest {
    args: RunArgs,
    task: String,
    /// The task's file, if it is one.
    pub(super) file: Option<PathBuf>,
}

impl RunRequest {
    /// Reads the task and checks what clap cannot.
    fn new(args: &RunArgs) -> Result<Self, Failure> {
        let (task, file) = task_of(&args.task)?;
        let until = args.until.trim();
        // The agent cannot be expected to write what no one sees.
        let is_seen = !until.is_empty() && one_line(until) == until;
        if !is_seen || until.len() > stop_phrase::LIMIT {
            return Err(out::misused(
                format!(
                    "--until needs one line of 1 to {} bytes without invisible characters, found \"{}\"",
                    stop_phrase::LIMIT,
                    one_line(until)
                ),
                "the agent writes it on a line of its own when all is done",
            ));
        }
        Ok(Self {
            args: args.clone(),
            task,
            file,
        })
    }

    /// Returns the form of its output if it runs without a terminal.
    pub(super) fn line_format(&self) -> Option<LineFormat> {
        let line_format = if self.args.json {
            LineFormat::Json
        } else {
            LineFormat::Lines
        };
        self.args.headless.then_some(line_format)
    }

    /// Returns the variables that the scripted agent reads from its environment.
    pub(super) fn demo_env(&self) -> Vec<(OsString, OsString)> {
        let mut env: Vec<(OsString, OsString)> = vec![("PITSTOP_DEMO_AUTO".into(), "0".into())];
        if std::env::var_os("PITSTOP_DEMO_STOP_PHRASE").is_none() {
            env.push((
                "PITSTOP_DEMO_STOP_PHRASE".into(),
                self.args.until.trim().into(),
            ));
        }
        env
    }

    /// Returns the rules of the run: the command line has precedence over the configuration; 0 is no cap.
    pub(super) fn plan(&self, config: &Config) -> Plan {
        let (args, caps) = (&self.args, &config.autopilot);
        Plan {
            task: self.task.clone(),
            stop_phrase: args.until.trim().to_owned(),
            caps: Caps {
                max_iterations: cap(args.max_iterations, caps.max_iterations),
                max_cost_usd: cap(args.max_cost, caps.max_cost_usd),
                max_time: cap(args.max_time, caps.max_time),
            },
            limits: Limits {
                same_command: caps.same_command_limit,
                no_change: caps.no_change_limit,
                same_message: caps.same_message_limit,
            },
            fresh: match args.fresh {
                FreshWhen::Threshold => Fresh::Threshold,
                FreshWhen::Always => Fresh::Always,
            },
            attended: !args.headless,
        }
    }
}

/// Returns the value of a flag, else the configured one; zero is no cap.
fn cap<T: Default + PartialEq>(flag: Option<T>, set: Option<T>) -> Option<T> {
    flag.or(set).filter(|most| *most != T::default())
}

/// Returns the task and its file. A word with a slash or an ending is taken for the name of a file, so that a misspelled
/// name does not become a task.
fn task_of(given: &str) -> Result<(String, Option<PathBuf>), Failure> {
    let path = Path::new(given);
    let one_word = !given.contains(char::is_whitespace);
    if path.is_file() {
        let text = task::read(path).map_err(|why| out::misused(why, ""))?;
        // The path is made absolute, because the agent, or a shell, may change directories.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        return Ok((text, Some(path)));
    }
    if given.trim().is_empty() {
        let error = "the task is empty: expected a text or the name of a file";
        return Err(out::misused(error, ""));
    }
    if one_word && given.contains('/') && path.exists() {
        return Err(out::misused(
            format!("expected a file as the task, found something else: {given}"),
            "name a file of text, or give the task itself, in several words",
        ));
    }
    if one_word && (given.contains('/') || path.extension().is_some()) {
        return Err(out::misused(
            format!("there is no task file {given}"),
            "a task of one word is read as the name of a file; a task given as text has several words",
        ));
    }
    if given.len() as u64 > task::LIMIT {
        let limit = task::LIMIT;
        return Err(out::misused(
            format!("the task is too long: expected at most {limit} bytes"),
            "put what it refers to into files",
        ));
    }
    Ok((given.to_owned(), None))
}

/// Runs the task; returns the exit code.
pub fn run(args: &RunArgs, host: &HostArgs) -> Outcome {
    if host.agent.is_some() {
        return Err(out::misused(
            "expected an agent that reports when a turn is over, found --agent",
            "an autonomous run needs Claude Code, or --demo",
        ));
    }
    let request = RunRequest::new(args)?;
    let mut host = host.clone();
    host.args.extend(args.args.iter().cloned());
    let place = if args.here {
        DemoPlace::Here
    } else {
        DemoPlace::Temporary { keep: false }
    };
    host::start_session(Request {
        args: host,
        demo: args.demo.then_some(place),
        asked: Asked::Run(Box::new(request)),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        run: RunArgs,
    }

    fn parse(words: &[&str]) -> Result<RunRequest, String> {
        let words = ["run"].iter().chain(words);
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        RunRequest::new(&line.run).map_err(|failure| failure.error)
    }

    #[test]
    fn flags_count_before_the_configuration_and_zero_is_no_cap() {
        let config = Config::default();
        let plan = parse(&["--task", "build it"]).unwrap().plan(&config);
        assert_eq!(plan.caps.max_iterations, Some(50));
        assert_eq!(plan.stop_phrase, stop_phrase::DEFAULT);
        assert!(plan.attended);
        let words = [
            "--task",
            "build it",
            "--until",
            " ALL DONE ",
            "--max-iterations",
            "0",
            "--max-cost",
            "$2.5",
            "--max-time",
            "1h30m",
            "--fresh",
            "always",
            "--headless",
            "--json",
        ];
        for until in ["✅ 完了", "c'est fini !"] {
            let plan = parse(&["--task", "a b", "--until", until])
                .unwrap()
                .plan(&config);
            assert_eq!(plan.stop_phrase, until);
        }
        let request = parse(&words).unwrap();
        let plan = request.plan(&config);
        assert_eq!(plan.caps.max_iterations, None);
        assert_eq!(plan.caps.max_cost_usd, Some(2.5));
        assert_eq!(plan.caps.max_time, Some(Duration::from_secs(5400)));
        assert_eq!(
            (plan.stop_phrase.as_str(), plan.fresh),
            ("ALL DONE", Fresh::Always)
        );
        assert_eq!(
            (plan.attended, request.line_format()),
            (false, Some(LineFormat::Json))
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let long = "x".repeat(300);
        for (words, what) in [
            (&["--task", ""][..], "is empty"),
            (&["--task", "no/such/file"][..], "there is no task file"),
            (&["--task", "task.md"][..], "there is no task file"),
            (&["--task", "/"][..], "expected a file as the task"),
            (
                &["--task", "a b", "--max-iterations", "x"][..],
                "a whole number from 0",
            ),
            (
                &["--task", "a b", "--max-iterations", "-1"][..],
                "a whole number from 0",
            ),
            (
                &["--task", "a b", "--max-iterations", "1.5"][..],
                "a whole number from 0",
            ),
            (&["--task", "a b", "--max-time", "-1"][..], "such as 4h"),
            (&["--task", "a b", "--until", " "][..], "--until needs"),
            (&["--task", "a b", "--until", "a\nb"][..], "--until needs"),
            (&["--task", "a b", "--until", &long][..], "--until needs"),
            (&["--task", "a b", "--until", "\u{200b}"][..], "invisible"),
            (
                &["--task", "a b", "--until", "DO\u{202e}NE"][..],
                "invisible",
            ),
            (&["--task", "a b", "--max-time", "soon"][..], "such as 4h"),
            (&["--task", "a b", "--max-cost", "much"][..], "such as 2.50"),
            (&["--task", "a b", "--max-cost", "-1"][..], "from 0 to"),
            (&["--task", "a b", "--json"][..], "--headless"),
            (&[][..], "--task"),
        ] {
            let error = parse(words).unwrap_err();
            assert!(error.contains(what), "{words:?}: {error}");
        }
    }

    #[test]
    fn a_task_may_be_a_file_or_a_text() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("task.md");
        std::fs::write(&file, "port it\n").unwrap();
        let request = parse(&["--task", file.to_str().unwrap()]).unwrap();
        assert_eq!(
            (request.task.as_str(), request.file.as_deref()),
            ("port it\n", Some(&*file))
        );
        let request = parse(&["--task", "fix src/a.rs and b.rs"]).unwrap();
        assert_eq!(
            (request.task.as_str(), &request.file),
            ("fix src/a.rs and b.rs", &None)
        );
    }
}
