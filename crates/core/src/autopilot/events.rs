//! The events that a run reports in its log: one line an event, for people or as JSON.

use std::{fmt, time::Duration};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use super::{cap::duration, stop_phrase};
use crate::lineage::{Cause, EndReason, IterationId, json};
use pitstop_base::{
    clean,
    format::{self, dollars},
};
use pitstop_transcript::{SessionId, Tokens};

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// The run begins.
    RunStarted {
        /// The first line of its task.
        task: String,
        /// The text that ends it.
        stop_phrase: String,
        /// The most iterations.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        max_iterations: Option<u32>,
        /// The most it may cost, in US dollars.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        max_cost_usd: Option<f64>,
        /// The longest it may take, in seconds.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        max_time_s: Option<u64>,
    },
    /// An agent's process runs.
    IterationStarted {
        /// The iteration.
        iteration: IterationId,
        /// Its session.
        session_id: SessionId,
        /// The trigger of the iteration.
        cause: String,
    },
    /// An iteration's record is closed.
    IterationEnded {
        /// The iteration.
        iteration: IterationId,
        /// The reason for its end.
        end_reason: EndReason,
    },
    /// A turn is over.
    TurnEnded {
        /// The iteration.
        iteration: IterationId,
        /// The number of the turn in the run, from 1.
        turn: u64,
        /// The number of tokens in the context window.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        used_tokens: Option<Tokens>,
        /// The share of the usable window, in percent.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        percent: Option<f64>,
        /// The cost of the run so far, in US dollars.
        cost_usd: f64,
        /// The number of done items of the plan, as far as there is one.
        #[serde(default)]
        done: usize,
        /// The number of open items of the plan.
        #[serde(default)]
        open: usize,
        /// The start of the agent's last message.
        message: String,
    },
    /// A turn ended with an error.
    TurnFailed {
        /// The iteration.
        iteration: IterationId,
        /// The client's error message.
        message: String,
    },
    /// A prompt was typed.
    Prompted {
        /// The iteration.
        iteration: IterationId,
        /// The start of the prompt.
        prompt: String,
    },
    /// A commit was made.
    Committed {
        /// The iteration.
        iteration: IterationId,
        /// Its id, as far as it is known.
        sha: String,
        /// The id's start and the first line of its message.
        what: String,
    },
    /// A test run has ended.
    TestsEnded {
        /// The iteration.
        iteration: IterationId,
        /// True if all tests passed.
        passed: bool,
        /// The number of tests that ran, if reported.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        count: Option<u64>,
        /// The number of tests that failed, if reported.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        failed: Option<u64>,
        /// The outcome in words.
        what: String,
        /// The command line.
        command: String,
    },
    /// The run waits.
    Waiting {
        /// The reason for the wait.
        why: String,
        /// The length of the wait, in seconds.
        seconds: u64,
        /// The end of the wait, if that is known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        until: Option<DateTime<Utc>>,
    },
    /// The task was changed by a person.
    TaskChanged {
        /// The first line of the task.
        task: String,
    },
    /// The run is paused.
    Paused {
        /// The source of the pause.
        by: String,
    },
    /// The run goes on after a pause or a trip.
    Resumed,
    /// A person is needed.
    PersonNeeded {
        /// The reason why a person is needed.
        why: String,
    },
    /// A breaker has tripped.
    Tripped {
        /// The name of the breaker.
        breaker: String,
        /// Its evidence.
        evidence: String,
    },
    /// A message that the footer would show.
    Notice {
        /// The text of the message.
        text: String,
        /// True if something went wrong.
        bad: bool,
    },
    /// The run is over.
    RunEnded {
        /// The exit code.
        code: i32,
        /// The reason for the end.
        why: String,
        /// The number of iterations of the run.
        iterations: u64,
        /// The number of turns of the run.
        turns: u64,
        /// The cost of the run, in US dollars.
        cost_usd: f64,
        /// The time that the run took, in seconds.
        seconds: u64,
    },
}

impl RunEvent {
    /// Returns the figures of the event in words: what the line for people has behind its beginning.
    pub fn figures(&self) -> String {
        let parts: Vec<String> = self.parts().into_iter().flatten().collect();
        parts.join(" · ")
    }

    /// Returns one line of JSON, the moment and the run in front.
    pub fn json_line(&self, at: DateTime<Utc>, run: &str) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            at: String,
            run: &'a str,
            #[serde(flatten)]
            event: &'a RunEvent,
        }
        let at = at.to_rfc3339_opts(SecondsFormat::Millis, true);
        let line = Line {
            at,
            run,
            event: self,
        };
        json(&line).to_string()
    }

    /// Returns one line for people, the moment in front. Text that came from outside is made safe to show.
    pub fn line(&self, at: DateTime<Utc>) -> String {
        let at = at.to_rfc3339_opts(SecondsFormat::Secs, true);
        clean::one_line(&format!("{at}  {self}")).into_owned()
    }
}

/// The text for people.
impl RunEvent {
    fn head(&self) -> String {
        match self {
            Self::RunStarted {
                task, stop_phrase, ..
            } => {
                format!("run started: {task} · until \"{stop_phrase}\"")
            }
            Self::IterationStarted {
                iteration,
                session_id,
                cause,
            } => {
                // The first one has no cause.
                let cause = cause.parse().map_or("the first one", Cause::phrase);
                format!("iteration {iteration} started, {cause}: session {session_id}")
            }
            Self::IterationEnded {
                iteration,
                end_reason,
            } => format!("iteration {iteration} ended: {}", end_reason.phrase()),
            Self::TurnEnded {
                iteration, turn, ..
            } => format!("turn {turn} ended in iteration {iteration}"),
            Self::TurnFailed { iteration, message } => {
                format!("turn failed in iteration {iteration}: {message}")
            }
            Self::Prompted { iteration, prompt } => {
                format!("prompt to iteration {iteration}: {prompt}")
            }
            Self::Committed { what, .. } | Self::TestsEnded { what, .. } => what.clone(),
            Self::Waiting {
                why,
                seconds,
                until,
            } => {
                let until = until.map(|until| until.format(" (until %Y-%m-%d %H:%M UTC)"));
                let until = until.map_or_else(String::new, |until| until.to_string());
                format!("waiting {}: {why}{until}", time(*seconds))
            }
            Self::TaskChanged { task } => format!("the task was changed: {task}"),
            Self::Paused { by } => format!("paused by {by}"),
            Self::Resumed => "resumed".to_owned(),
            Self::PersonNeeded { why } => format!("a person is needed: {why}"),
            Self::Tripped { breaker, evidence } => {
                let breaker = breaker.replace('_', " ");
                format!("a breaker tripped ({breaker}): {evidence}")
            }
            Self::Notice { text, bad } => format!("{}{text}", if *bad { "! " } else { "" }),
            Self::RunEnded { code, why, .. } => format!("run ended with code {code}: {why}"),
        }
    }

    /// Returns the parts that follow the head of the line.
    fn parts(&self) -> Vec<Option<String>> {
        match self {
            Self::RunStarted {
                max_iterations,
                max_cost_usd,
                max_time_s,
                ..
            } => vec![
                max_iterations.map(|most| format!("at most {most} iterations")),
                max_cost_usd.map(dollars),
                max_time_s.map(time),
            ],
            Self::TurnEnded {
                used_tokens,
                percent,
                cost_usd,
                done,
                open,
                message,
                ..
            } => {
                let (used, all) = (used_tokens.zip(*percent), done + open);
                vec![
                    used.map(|(used, share)| format!("{}k tokens, {share:.0}%", used.0 / 1000)),
                    Some(dollars(*cost_usd)),
                    (all > 0).then(|| format!("{done} of {all} done")),
                    Some(message.clone()),
                ]
            }
            Self::TestsEnded { command, .. } => {
                vec![Some(command.clone()).filter(|command| !command.is_empty())]
            }
            Self::RunEnded {
                iterations,
                turns,
                cost_usd,
                seconds,
                ..
            } => {
                let iterations = format::count(*iterations, "iteration");
                let turns = format::count(*turns, "turn");
                let (cost, time) = (dollars(*cost_usd), time(*seconds));
                vec![Some(format!("{iterations}, {turns}, {cost}, {time}"))]
            }
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for RunEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.head())?;
        let mut parts = self.parts().into_iter().flatten();
        parts.try_for_each(|part| write!(f, " · {part}"))
    }
}

fn time(seconds: u64) -> String {
    duration(Duration::from_secs(seconds))
}

/// Returns the first line of a text that is not blank, cut: it names a task or a message.
pub fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    let line = line.unwrap_or_default().trim_start_matches(['#', ' ']);
    if line.chars().count() <= stop_phrase::LIMIT {
        return line.to_owned();
    }
    let start: String = line.chars().take(stop_phrase::LIMIT).collect();
    format!("{start}…")
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;

    use super::*;

    fn at() -> DateTime<Utc> {
        Utc.with_ymd_and_hms(2026, 11, 21, 12, 0, 0).unwrap()
    }

    #[test]
    fn news_are_one_line_whatever_the_agent_says() {
        let event = RunEvent::TurnFailed {
            iteration: IterationId::FIRST,
            message: "a\nb\x1b[31m\u{202e}".to_owned(),
        };
        let line = event.line(at());
        assert!(
            line.starts_with("2026-11-21T12:00:00Z  turn failed in iteration 1: a"),
            "{line}"
        );
        assert!(!line.contains(['\n', '\x1b', '\u{202e}']), "{line}");
        let json = event.json_line(at(), "r");
        assert!(!json.contains(['\n', '\x1b']), "{json}");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            (&value["event"], &value["run"], &value["iteration"]),
            (&"turn_failed".into(), &"r".into(), &1.into())
        );
        assert_eq!(serde_json::from_value::<RunEvent>(value).unwrap(), event);
    }

    #[test]
    fn a_line_for_people_has_no_names_of_the_record() {
        let session_id = SessionId::new(uuid::Uuid::from_u128(1));
        let iteration = IterationId::FIRST;
        let mut lines: Vec<String> = EndReason::ALL
            .iter()
            .map(|end_reason| RunEvent::IterationEnded {
                iteration,
                end_reason: *end_reason,
            })
            .map(|event| event.line(at()))
            .collect();
        lines.extend(Cause::ALL.iter().map(|cause| {
            let event = RunEvent::IterationStarted {
                iteration,
                session_id,
                cause: cause.to_string(),
            };
            assert!(event.json_line(at(), "r").contains(cause.as_str()));
            event.line(at())
        }));
        let tripped = RunEvent::Tripped {
            breaker: "same_command".to_owned(),
            evidence: "`make` failed 5 times".to_owned(),
        };
        lines.push(tripped.line(at()));
        assert!(lines.iter().all(|line| !line.contains('_')), "{lines:#?}");
        assert!(
            lines[1].ends_with("iteration 1 ended: it was rebooted to free its context window")
        );
        assert!(
            lines
                .iter()
                .any(|line| line.contains(" started, rebooted at the compact line: "))
        );
        let first = RunEvent::IterationStarted {
            iteration,
            session_id,
            cause: "start".to_owned(),
        };
        assert!(first.line(at()).contains(" started, the first one: "));
    }

    #[test]
    fn a_text_is_named_by_its_first_line() {
        assert_eq!(first_line("\n\n# Port it\nto Rust"), "Port it");
        assert_eq!(first_line(""), "");
        assert_eq!(
            first_line(&"é".repeat(500)).chars().count(),
            stop_phrase::LIMIT + 1
        );
    }
}
