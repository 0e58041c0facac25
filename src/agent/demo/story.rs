//! What the demo plays: a small project, item by item, so that a reboot has something to carry on.

use std::{collections::VecDeque, sync::LazyLock};

use serde::Deserialize;
use serde_json::{Value, json};

/// One thing the agent does in a turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// It says something, in Markdown.
    Say(String),
    /// The service fails: the turn is over with this error's word.
    Fail(String),
    /// It calls a tool.
    Tool {
        /// The tool's name.
        name: &'static str,
        /// What it is called with.
        input: Value,
        /// What comes out; `None` runs the shell command for real.
        output: Option<String>,
    },
}

impl Step {
    /// A shell command with a made-up output.
    fn shell(command: &str, output: &str) -> Self {
        Self::call("Bash", json!({ "command": command }), Some(output))
    }

    /// A shell command that is run.
    pub fn run(command: &str) -> Self {
        Self::call("Bash", json!({ "command": command }), None)
    }

    fn file(name: &'static str, path: &str, output: &str) -> Self {
        Self::call(name, json!({ "file_path": path }), Some(output))
    }

    fn call(name: &'static str, input: Value, output: Option<&str>) -> Self {
        Self::Tool {
            name,
            input,
            output: output.map(str::to_owned),
        }
    }
}

/// One item of the project's plan.
#[derive(Deserialize)]
struct Item {
    title: &'static str,
    file: &'static str,
    test: &'static str,
    thought: &'static str,
    decision: Option<&'static str>,
}

const OBJECTIVE: &str = "tidepool: a small command-line feed reader";

/// The plan, made up once for all sessions.
static PLAN: LazyLock<Vec<Item>> = LazyLock::new(|| {
    let plan = include_str!("../../../assets/demo/plan.json");
    serde_json::from_str(plan).expect("the compiled-in plan is checked by tests")
});

/// How long the files are that it reads: about half of what a turn adds to the context, so that a trim has
/// something to remove.
const FILE_LINES: usize = 600;

/// The prompt the demo gives itself when it goes on alone.
pub const GO_ON: &str = "Go on with the next item.";

/// Which item of the plan a session goes on with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Story {
    next: usize,
}

impl Story {
    /// Takes up the plan where a handoff says: its `demo_next` state, else behind the last item it
    /// names as done, else from the start.
    pub fn from_prompt(prompt: &str) -> Self {
        let state = prompt.split("demo_next").skip(1).filter_map(|rest| {
            // Its value stands right behind it; the name alone says nothing.
            let digits = rest.trim_start_matches([' ', '=', ':', '`', '*']);
            let end = digits
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(digits.len());
            digits[..end].parse().ok()
        });
        let done = |line: &&str| line.contains("DONE") || line.contains("[x]");
        let named = prompt.lines().filter(done).filter_map(|line| {
            let at = PLAN.iter().rposition(|item| line.contains(item.title))?;
            Some(at + 1)
        });
        Self {
            next: state.chain(named).max().unwrap_or(0),
        }
    }

    /// How many items are behind it.
    pub const fn done(self) -> u64 {
        self.next as u64
    }

    /// The steps of the next turn.
    pub fn turn(&mut self, handed_over: bool) -> VecDeque<Step> {
        let number = self.next;
        self.next += 1;
        let item = &PLAN[number % PLAN.len()];
        let mut steps = VecDeque::new();
        if handed_over {
            steps.push_back(Step::Say(format!(
                "I have the handoff. Going on with item {}: **{}**.",
                number + 1,
                item.title
            )));
        } else if number == 0 {
            steps.push_back(Step::Say(format!(
                "I'll build it in small steps.\n\nOBJECTIVE: {OBJECTIVE}"
            )));
        }
        steps.extend([
            todo(number),
            Step::file("Read", item.file, &listing(item, FILE_LINES)),
            Step::Say(item.thought.to_owned()),
            Step::file("Edit", item.file, "The file has been updated."),
            Step::shell(&format!("cargo test {}", item.test), &tests(item, number)),
            Step::shell(&format!("git commit -qam \"{}\"", item.title), ""),
            Step::Say(summary(item, number)),
        ]);
        steps
    }
}

/// The to-do tool's list with the current item in progress.
fn todo(number: usize) -> Step {
    let at = number % PLAN.len();
    let status = |index: usize| match index.cmp(&at) {
        std::cmp::Ordering::Less => "completed",
        std::cmp::Ordering::Equal => "in_progress",
        std::cmp::Ordering::Greater => "pending",
    };
    let todos: Vec<_> = PLAN
        .iter()
        .enumerate()
        .map(|(index, item)| {
            json!({ "content": item.title, "status": status(index), "activeForm": item.title })
        })
        .collect();
    let output = "Todos have been modified successfully.";
    Step::call("TodoWrite", json!({ "todos": todos }), Some(output))
}

/// The lines of a file as the read tool numbers them.
fn listing(item: &Item, lines: usize) -> String {
    let line = |n: usize| match n % 6 {
        1 => format!("/// {}", item.thought),
        2 => format!(
            "pub fn {}_{n}(feed: &Feed) -> Result<Vec<Entry>, Error> {{",
            item.test
        ),
        3 => "    let entries = feed.entries()?;".to_owned(),
        4 => format!("    entries.iter().map({}::check).collect()", item.test),
        5 => "}".to_owned(),
        _ => String::new(),
    };
    let lines = (1..=lines).map(|n| format!("{n:>6}\u{2192}{}", line(n)));
    lines.collect::<Vec<_>>().join("\n")
}

/// What `cargo test` prints.
fn tests(item: &Item, number: usize) -> String {
    let count = 3 + number % PLAN.len() * 2;
    let name = item.test;
    let line = |n| format!("test {name}::case_{n} ... ok");
    let lines = (1..=count).map(line).collect::<Vec<_>>().join("\n");
    format!(
        "running {count} tests\n{lines}\n\ntest result: ok. {count} passed; 0 failed; 0 ignored; \
         0 measured; 0 filtered out; finished in 0.0{}s\n",
        number % 9 + 1
    )
}

/// The last message of a turn, with its signals and now and then the whole scratchpad.
fn summary(item: &Item, number: usize) -> String {
    let next = PLAN[(number + 1) % PLAN.len()].title;
    let mut text = format!(
        "{} is in `{}`, and its tests pass.\n\nDONE: {}\nTODO: {next}\nSTATE demo_next={}",
        item.title,
        item.file,
        item.title,
        number + 1
    );
    if let Some(decision) = item.decision {
        text.push_str("\nDECISION: ");
        text.push_str(decision);
    }
    if number % 3 == 2 {
        text.push_str(&scratchpad(number + 1));
    }
    text
}

/// The notes as the agent would keep them with `done` items behind it.
fn scratchpad(done: usize) -> String {
    let mark = |index: usize| if index < done { 'x' } else { ' ' };
    let line = |(index, item): (usize, &Item)| format!("- [{}] {}", mark(index), item.title);
    let plan = PLAN
        .iter()
        .enumerate()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n");
    format!(
        "\nSCRATCHPAD:\n## Current Understanding\n\n{OBJECTIVE}.\n\n## Current Plan\n\n{plan}\n\n\
         ## Last Action\n\nFinished item {done} of {}.\nSIGNAL:\n",
        PLAN.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handoff_says_where_the_story_goes_on() {
        assert_eq!(
            Story::from_prompt("pitstop handoff\n- demo_next: 7\n"),
            Story { next: 7 }
        );
        assert_eq!(
            Story::from_prompt("demo_next=3 … demo_next=12"),
            Story { next: 12 }
        );
        let done = "- [x] Parse RSS and Atom feeds\n- [x] Store entries in SQLite\n- [ ] Package a release";
        assert_eq!(Story::from_prompt(done), Story { next: 3 });
        assert_eq!(
            Story::from_prompt("demo_next: none\nbuild it"),
            Story::default()
        );
    }

    #[test]
    fn a_turn_ends_with_a_message_and_its_signals() {
        let mut story = Story::default();
        for number in 1..=20 {
            let Some(Step::Say(text)) = story.turn(false).pop_back() else {
                panic!("a turn ends with words");
            };
            assert!(text.contains(&format!("STATE demo_next={number}")));
        }
    }
}
