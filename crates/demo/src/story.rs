//! The story that the demo plays: a small project, item by item, so that a reboot has something to carry on.

use std::{collections::VecDeque, iter, sync::LazyLock};

use serde::Deserialize;
use serde_json::{Value, json};

/// One thing the agent does in a turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// It says something, in Markdown.
    Say(String),
    /// The service fails: the turn is over with this error's word.
    Fail(String),
    /// It calls a tool by its name and with this input; without an output the shell command is run.
    Tool(&'static str, Value, Option<String>),
}

/// Reads a line of a script as steps.
pub fn scripted(line: &str) -> VecDeque<Step> {
    line.split('\t')
        .map(|step| match step.split_at_checked(2) {
            Some(("$ ", command)) => Step::Tool("Bash", json!({ "command": command }), None),
            Some(("! ", word)) => Step::Fail(word.to_owned()),
            _ => Step::Say(step.replace("\\n", "\n")),
        })
        .collect()
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

/// The number of lines in the files that it reads: about half of what a turn adds to the context, so that a trim has
/// something to remove.
const FILE_LINES: usize = 600;

/// The prompt the demo gives itself when it goes on alone.
pub const GO_ON: &str = "Go on with the next item.";

/// Returns the files that the story edits, each with what it is about.
pub fn edited_files() -> impl Iterator<Item = (&'static str, &'static str)> {
    PLAN.iter().map(|item| (item.file, item.title))
}

/// The position of a session in the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Story {
    /// The number of items that are done.
    pub done: usize,
}

impl Story {
    /// Takes up the plan at the place that a handoff names: its `demo_next` state, else behind the last item
    /// that it names as done, else from the start.
    pub fn from_prompt(prompt: &str) -> Self {
        let state = prompt.split("demo_next").skip(1).filter_map(|rest| {
            // Its value comes right behind it; the name alone means nothing.
            let value = rest.trim_start_matches([' ', '=', ':', '`', '*']);
            value
                .split(|c: char| !c.is_ascii_digit())
                .next()?
                .parse()
                .ok()
        });
        let done = |line: &&str| line.contains("DONE") || line.contains("[x]");
        let named = prompt.lines().filter(done).filter_map(|line| {
            let at = PLAN.iter().rposition(|item| line.contains(item.title))?;
            Some(at + 1)
        });
        Self {
            done: state.chain(named).max().unwrap_or(0),
        }
    }

    /// Returns the steps of the next turn.
    pub fn turn(&mut self, handed_over: bool) -> VecDeque<Step> {
        let number = self.done;
        self.done += 1;
        let item = &PLAN[number % PLAN.len()];
        let (title, file, test, thought) = (item.title, item.file, item.test, item.thought);
        let begins = match number {
            _ if handed_over => Some(format!(
                "I have the handoff. Going on with item {}: **{title}**.",
                number + 1
            )),
            0 => Some(format!(
                "I'll build it in small steps.\n\nOBJECTIVE: {OBJECTIVE}"
            )),
            _ => None,
        };
        let count = 3 + number % PLAN.len() * 2;
        let cases = (1..=count).map(|n| format!("test {test}::case_{n} ... ok\n"));
        let tested = format!(
            "running {count} tests\n{}\ntest result: ok. {count} passed; 0 failed; 0 ignored; \
             0 measured; 0 filtered out; finished in 0.0{}s\n",
            cases.collect::<String>(),
            number % 9 + 1
        );
        let listing = (1..=FILE_LINES).map(|n| match n % 6 {
            1 => format!("{n:>6}→/// {thought}"),
            2 => format!("{n:>6}→pub fn {test}_{n}(feed: &Feed) -> Result<Vec<Entry>, Error> {{"),
            3 => format!("{n:>6}→    let entries = feed.entries()?;"),
            4 => format!("{n:>6}→    entries.iter().map({test}::check).collect()"),
            5 => format!("{n:>6}→}}"),
            _ => format!("{n:>6}→"),
        });
        let status = |index: usize| match index.cmp(&(number % PLAN.len())) {
            std::cmp::Ordering::Less => "completed",
            std::cmp::Ordering::Equal => "in_progress",
            std::cmp::Ordering::Greater => "pending",
        };
        let todos = PLAN.iter().enumerate().map(|(index, item)| {
            json!({ "content": item.title, "status": status(index), "activeForm": item.title })
        });
        let tool = |name, input, output: &str| Step::Tool(name, input, Some(output.to_owned()));
        let shell = |command, output: &str| tool("Bash", json!({ "command": command }), output);
        begins
            .map(Step::Say)
            .into_iter()
            .chain([
                tool(
                    "TodoWrite",
                    json!({ "todos": todos.collect::<Vec<_>>() }),
                    "Todos have been modified successfully.",
                ),
                tool(
                    "Read",
                    json!({ "file_path": file }),
                    &listing.collect::<Vec<_>>().join("\n"),
                ),
                Step::Say(thought.to_owned()),
                tool(
                    "Edit",
                    json!({ "file_path": file }),
                    "The file has been updated.",
                ),
                shell(format!("cargo test {test}"), &tested),
                shell(format!("git commit -qam \"{title}\""), ""),
                Step::Say(summary(number)),
            ])
            .collect()
    }
}

/// Returns the last message of a turn, with its signals and now and then the whole scratchpad.
fn summary(number: usize) -> String {
    let (item, done) = (&PLAN[number % PLAN.len()], number + 1);
    let next = PLAN[done % PLAN.len()].title;
    let title = item.title;
    let mut text = format!(
        "{title} is in `{}`, and its tests pass.\n\nDONE: {title}\nTODO: {next}\nSTATE demo_next={done}",
        item.file
    );
    if let Some(decision) = item.decision {
        text += &format!("\nDECISION: {decision}");
    }
    if done % 3 == 0 {
        let marks = iter::repeat_n('x', done).chain(iter::repeat(' '));
        let plan = PLAN.iter().zip(marks);
        let plan = plan.map(|(item, mark)| format!("- [{mark}] {}\n", item.title));
        text += &format!(
            "\nSCRATCHPAD:\n## Current Understanding\n\n{OBJECTIVE}.\n\n## Current Plan\n\n{}\n\
             ## Last Action\n\nFinished item {done} of {}.\nSIGNAL:\n",
            plan.collect::<String>(),
            PLAN.len()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handoff_says_where_the_story_goes_on() {
        let done = "- [x] Parse RSS and Atom feeds\n- [x] Store entries in SQLite\n- [ ] Package a release";
        for (prompt, next) in [
            ("pitstop handoff\n- demo_next: 7\n", 7),
            ("demo_next=3 … demo_next=12", 12),
            (done, 3),
            ("demo_next: none\nbuild it", 0),
        ] {
            assert_eq!(Story::from_prompt(prompt).done, next, "{prompt}");
        }
    }
}
