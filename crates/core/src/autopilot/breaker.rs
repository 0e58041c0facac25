//! Breakers: signs that a run goes nowhere. Each trip names its evidence, and a person may reset it.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use pitstop_base::{format::thousands, recent};
use pitstop_transcript::{Tokens, words::on_one_line};

/// The number of failing commands that are remembered: an agent that runs more between two tries does not repeat itself.
const COMMANDS: usize = 64;

/// The length of the text that is kept as evidence, in characters.
const EVIDENCE: usize = 200;

/// The multiple of the limit that trips the breaker even if the output differs each time: no progress takes that long.
const WHATEVER_OUTPUT: u32 = 3;

/// The limits that trip the breakers; `None` switches one off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The number of failures of the same command in a row.
    pub same_command: Option<u32>,
    /// The number of turns in a row that change neither a file nor the to-dos nor the notes.
    pub no_change: Option<u32>,
    /// The number of equal last messages in a row.
    pub same_message: Option<u32>,
}

/// The cause for which reboots do not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "cause")]
pub enum Thrash {
    /// A fresh session is nearly full from the start.
    #[error(
        "the base load is too high: a fresh session begins with {} of {} tokens (tools, MCP servers, instructions)",
        thousands(.base.0),
        thousands(.line.0)
    )]
    BaseLoad {
        /// The number of tokens of a fresh session.
        base: Tokens,
        /// The line at which a reboot is due, in tokens.
        line: Tokens,
    },
    /// The handoff alone fills much of the window.
    #[error(
        "the handoff is re-injected too large: {} of {} tokens (max_state_size, include_files)",
        thousands(.handoff.0),
        thousands(.line.0)
    )]
    Handoff {
        /// The estimated number of tokens of the handoff.
        handoff: Tokens,
        /// The line at which a reboot is due, in tokens.
        line: Tokens,
    },
    /// One turn brought most of the tokens.
    #[error("one giant output: a single turn brought {} of {} tokens", thousands(.growth.0), thousands(.line.0))]
    OneTurn {
        /// The number of tokens that the turn brought.
        growth: Tokens,
        /// The line at which a reboot is due, in tokens.
        line: Tokens,
    },
    /// The sessions fill quickly, without one of the other causes.
    #[error("the sessions fill within a few turns")]
    Quick,
}

impl Thrash {
    /// Names the cause from the figures of the session that is full again: a fresh session's tokens, the handoff's,
    /// the largest growth within one turn, and the line.
    pub fn of(
        base: Option<Tokens>,
        handoff: Option<Tokens>,
        growth: Option<Tokens>,
        line: Tokens,
    ) -> Self {
        // Nothing is a share of a line that is not known.
        let share = |tokens: Tokens, percent: u64| {
            tokens.0 > 0 && tokens.0.saturating_mul(100) >= line.0.saturating_mul(percent)
        };
        let handoff = handoff.unwrap_or_default();
        // The first figure of a session is taken when its first answer is there: with the handoff in it.
        let empty = base.map(|base| Tokens(base.0.saturating_sub(handoff.0)));
        if share(handoff, 30) {
            return Self::Handoff { handoff, line };
        }
        if let Some(base) = empty.filter(|base| share(*base, 60)) {
            return Self::BaseLoad { base, line };
        }
        match growth.filter(|growth| share(*growth, 40)) {
            Some(growth) => Self::OneTurn { growth, line },
            None => Self::Quick,
        }
    }
}

/// A tripped breaker with its evidence.
#[derive(Clone, Debug, PartialEq, Eq, strum::IntoStaticStr, thiserror::Error)]
#[strum(serialize_all = "snake_case")]
pub enum Trip {
    /// The same command fails again and again.
    #[error("`{command}` failed {}: {output}", in_a_row(*.times, "time"))]
    SameCommand {
        /// The command.
        command: String,
        /// The number of failures.
        times: u32,
        /// The end of its last output.
        output: String,
    },
    /// The state does not change.
    #[error("{} changed no file, to-do or note, and ran no new command", in_a_row(*.turns, "turn"))]
    NoChange {
        /// The number of turns without a change.
        turns: u32,
    },
    /// The agent says the same again and again.
    #[error("{} ended with the same words: {message}", in_a_row(*.times, "turn"))]
    SameMessage {
        /// The repeated message.
        message: String,
        /// The number of equal messages in a row.
        times: u32,
    },
    /// Reboots do not help.
    #[error("{why}; {cause}")]
    #[strum(serialize = "reboot_thrash")]
    Thrash {
        /// The message of the reboot's own breaker.
        why: String,
        /// The cause.
        cause: Thrash,
    },
    /// A reboot that is due is refused.
    #[error("the reboot is refused: {why}")]
    #[strum(serialize = "reboot_refused")]
    Refused {
        /// The reason for the refusal.
        why: String,
    },
    /// The project's directory is gone.
    #[error("the project's directory is gone: {project}")]
    #[strum(serialize = "project_gone")]
    NoProject {
        /// The directory.
        project: String,
    },
    /// The service fails.
    #[error("{} failed, the last one with: {message}", in_a_row(*.times, "turn"))]
    Service {
        /// The number of failures in a row.
        times: u32,
        /// The last message of the service.
        message: String,
    },
    /// The agent dies.
    #[error("the agent died {}, the last time with {exit}", in_a_row(*.times, "time"))]
    #[strum(serialize = "agent_dies")]
    Deaths {
        /// The number of deaths in a row.
        times: u32,
        /// The way in which the agent died the last time.
        exit: String,
    },
    /// A dialog is open and no person is there to answer it.
    #[error("a dialog waits and no person is there to answer it: {about}")]
    Dialog {
        /// The subject of the dialog.
        about: String,
    },
    /// A typed or sent text does not arrive.
    #[error("{what} does not arrive at the agent")]
    NoAnswer {
        /// The text that did not arrive, in words.
        what: &'static str,
    },
}

impl Trip {
    /// Returns the breaker's name for scripts.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// Returns a count of things that followed one another: `once`, `1 turn`, `3 turns in a row`.
fn in_a_row(number: u32, thing: &str) -> String {
    match (number, thing) {
        (1, "time") => "once".to_owned(),
        (1, _) => format!("1 {thing}"),
        _ => format!("{number} {thing}s in a row"),
    }
}

/// A command that has failed and not succeeded since.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Failing {
    command: String,
    /// The output without the parts that differ by themselves.
    shape: String,
    /// The number of failures with this shape; the next field counts all.
    alike: u32,
    times: u32,
}

/// The counts of the breakers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Breakers {
    limits: Limits,
    failing: VecDeque<Failing>,
    /// The first trip by a command within the running turn: reported when the turn is over.
    by_command: Option<Trip>,
    unchanged: u32,
    last: Option<String>,
    same: u32,
}

impl Breakers {
    /// Creates breakers with these limits.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Forgets everything that was counted: a person has looked at it.
    pub fn reset(&mut self) {
        *self = Self::new(self.limits);
    }

    /// Records that a shell command has run.
    pub fn command_ran(&mut self, command: &str, output: &str, failed: bool) {
        let command = on_one_line(command);
        let at = self.failing.iter().position(|one| one.command == command);
        let known = at.and_then(|at| self.failing.remove(at));
        if !failed {
            // It has passed within the same turn after all.
            let passed = excerpt(&command);
            self.by_command.take_if(
                |trip| matches!(trip, Trip::SameCommand { command, .. } if *command == passed),
            );
            return;
        }
        let shape = shape(output);
        let mut failing = known.unwrap_or_else(|| Failing {
            command: command.clone(),
            shape: String::new(),
            alike: 0,
            times: 0,
        });
        failing.times += 1;
        failing.alike = if failing.shape == shape {
            failing.alike + 1
        } else {
            1
        };
        failing.shape = shape;
        let (alike, times) = (failing.alike, failing.times);
        recent::push(&mut self.failing, failing, COMMANDS);
        let Some(limit) = self.limits.same_command else {
            return;
        };
        if alike >= limit || times >= limit.saturating_mul(WHATEVER_OUTPUT) {
            self.by_command = Some(Trip::SameCommand {
                command: excerpt(&command),
                times,
                output: excerpt_of_end(output),
            });
        }
    }

    /// Records the end of a turn: whether anything has changed in it, and the last message.
    pub fn turn_ended(&mut self, changed: bool, message: Option<&str>) -> Option<Trip> {
        self.unchanged = if changed { 0 } else { self.unchanged + 1 };
        let message = message.map(on_one_line);
        self.same = match (&message, &self.last) {
            (Some(now), Some(before)) if now == before => self.same + 1,
            (Some(_), _) => 1,
            (None, _) => 0,
        };
        self.last.clone_from(&message);
        if let Some(trip) = self.by_command.take() {
            return Some(trip);
        }
        let over = |limit: Option<u32>, count| limit.is_some_and(|limit| count >= limit);
        if over(self.limits.same_message, self.same) {
            return Some(Trip::SameMessage {
                message: excerpt(&message.unwrap_or_default()),
                times: self.same,
            });
        }
        over(self.limits.no_change, self.unchanged).then_some(Trip::NoChange {
            turns: self.unchanged,
        })
    }
}

/// Returns an output without the parts that differ from one try to the next by themselves: numbers.
fn shape(output: &str) -> String {
    let mut shape = String::new();
    let mut in_number = false;
    for c in on_one_line(output).chars() {
        if c.is_ascii_digit() {
            if !in_number {
                shape.push('#');
            }
        } else {
            shape.push(c);
        }
        in_number = c.is_ascii_digit();
    }
    shape
}

/// Returns the start of a text, in one line.
pub fn excerpt(text: &str) -> String {
    let text = on_one_line(text);
    if text.chars().count() <= EVIDENCE {
        return text;
    }
    let start: String = text.chars().take(EVIDENCE).collect();
    format!("{start}…")
}

/// Returns the end of a text, in one line: the error is there.
fn excerpt_of_end(text: &str) -> String {
    let text = on_one_line(text);
    let count = text.chars().count();
    if count <= EVIDENCE {
        return text;
    }
    let end: String = text.chars().skip(count - EVIDENCE).collect();
    format!("…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        same_command: Some(3),
        no_change: Some(4),
        same_message: Some(3),
    };

    fn breakers() -> Breakers {
        Breakers::new(LIMITS)
    }

    /// Ends a turn that changes something and says something new.
    fn turn(breakers: &mut Breakers, number: u32) -> Option<Trip> {
        breakers.turn_ended(true, Some(&format!("step {number}")))
    }

    #[test]
    fn the_same_command_that_fails_the_same_way_trips_with_its_output() {
        let mut breakers = breakers();
        for number in 0..2 {
            breakers.command_ran("make  test", &format!("failed in 0.{number} s"), true);
            breakers.command_ran("ls", "", false);
            assert_eq!(turn(&mut breakers, number), None);
        }
        breakers.command_ran("make test", "failed in 12.5 s", true);
        let trip = turn(&mut breakers, 9).unwrap();
        assert_eq!(trip.name(), "same_command");
        assert_eq!(
            trip.to_string(),
            "`make test` failed 3 times in a row: failed in 12.5 s"
        );
    }

    #[test]
    fn a_success_or_another_outcome_is_progress() {
        let mut breakers = breakers();
        for number in 0..8 {
            breakers.command_ran("make", &format!("error in {}", "x".repeat(number)), true);
        }
        assert_eq!(turn(&mut breakers, 1), None, "each time another error");
        breakers.command_ran("make", "still an error", true);
        assert_eq!(
            turn(&mut breakers, 2).map(|trip| trip.name()),
            Some("same_command"),
            "but not for ever"
        );
        breakers.reset();
        for _ in 0..5 {
            breakers.command_ran("make", "e", true);
            breakers.command_ran("make", "e", true);
            breakers.command_ran("make", "", false);
        }
        assert_eq!(turn(&mut breakers, 3), None);
    }

    #[test]
    fn turns_that_change_nothing_trip() {
        let mut breakers = breakers();
        let say = |breakers: &mut Breakers, changed, number: u32| {
            breakers.turn_ended(changed, Some(&format!("thinking {number}")))
        };
        for number in 0..3 {
            assert_eq!(say(&mut breakers, false, number), None);
        }
        assert_eq!(say(&mut breakers, true, 3), None);
        for number in 4..7 {
            assert_eq!(say(&mut breakers, false, number), None);
        }
        assert_eq!(
            say(&mut breakers, false, 7),
            Some(Trip::NoChange { turns: 4 })
        );
    }

    #[test]
    fn equal_messages_trip() {
        let mut breakers = breakers();
        assert_eq!(breakers.turn_ended(true, Some("I am stuck.")), None);
        assert_eq!(breakers.turn_ended(true, Some("I am  stuck.\n")), None);
        let trip = breakers.turn_ended(true, Some("I am stuck.")).unwrap();
        assert_eq!(trip.name(), "same_message");
        assert!(trip.to_string().contains("I am stuck."), "{trip}");
        breakers.reset();
        assert_eq!(breakers.turn_ended(true, Some("I am stuck.")), None);
        assert_eq!(breakers.turn_ended(true, None), None);
        assert_eq!(breakers.turn_ended(true, Some("I am stuck.")), None);
    }

    #[test]
    fn what_is_switched_off_never_trips() {
        let mut breakers = Breakers::new(Limits::default());
        for _ in 0..1000 {
            breakers.command_ran("false", "", true);
            assert_eq!(breakers.turn_ended(false, Some("same")), None);
        }
    }

    #[test]
    fn the_cause_of_thrashing_is_named() {
        let line = Tokens(150_000);
        let k = |count: u64| Some(Tokens(count * 1000));
        let cause = |base, handoff, growth| Thrash::of(base, handoff, growth, line);
        assert!(matches!(
            cause(k(110), k(10), k(5)),
            Thrash::BaseLoad {
                base: Tokens(100_000),
                ..
            }
        ));
        assert!(matches!(cause(k(70), k(50), k(5)), Thrash::Handoff { .. }));
        assert!(matches!(cause(k(30), k(3), k(90)), Thrash::OneTurn { .. }));
        assert_eq!(cause(k(30), k(3), k(20)), Thrash::Quick);
        assert_eq!(cause(None, None, None), Thrash::Quick);
        let unknown = Thrash::of(None, Some(Tokens(0)), None, Tokens(0));
        assert_eq!(unknown, Thrash::Quick);
        let words = cause(k(110), k(10), k(5)).to_string();
        assert!(words.contains("100k of 150k"), "{words}");
    }

    #[test]
    fn evidence_is_short_and_in_one_line() {
        let long = "é\n".repeat(10_000);
        let mut breakers = Breakers::new(Limits {
            same_command: Some(1),
            ..Limits::default()
        });
        breakers.command_ran(&long, &long, true);
        let words = breakers.turn_ended(true, None).unwrap().to_string();
        assert!(
            words.chars().count() < 500 && !words.contains('\n'),
            "{words}"
        );
    }

    #[test]
    fn a_command_that_passes_in_the_end_does_not_trip() {
        let mut breakers = breakers();
        let fail = |breakers: &mut Breakers| {
            for _ in 0..3 {
                breakers.command_ran("make test", "failed", true);
            }
        };
        fail(&mut breakers);
        breakers.command_ran("make  test", "ok", false);
        assert_eq!(turn(&mut breakers, 1), None);
        fail(&mut breakers);
        breakers.command_ran("ls", "", false);
        let trip = turn(&mut breakers, 2);
        assert!(trip.is_some(), "another command shows nothing of it");
    }
}
