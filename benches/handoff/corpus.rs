//! The sessions, read by a parser of the bench's own (an instrument should not share its faults with what it measures), and
//! the places where they are cut.

use std::{
    env,
    error::Error,
    fs,
    ops::Range,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// Where the sessions lie; else `../shared/transcripts` beside the repository.
const PLACE: &str = "PITSTOP_TRANSCRIPTS";

/// Where a session is cut besides at the client's own boundaries, in percent of its records.
const MIDDLES: [usize; 3] = [40, 60, 80];

/// Where a turn of many calls is cut, in percent of its records.
const IN_TURN: [usize; 4] = [25, 50, 75, 90];

/// How many calls of tools a turn has at least that is cut inside: in real sessions the one that fills the window has 51 to 177.
const LONG_TURN: usize = 30;

/// How many records behind a cut are looked at for what is used next.
pub const NEXT: usize = 100;

/// How many times the tail's size must stand before a cut: with less there is nothing to choose.
const WORTH_CHOOSING: usize = 4;

/// The size of the rivals where the set holds no summary of the client's, in characters.
const USUAL_SIZE: usize = 14_400;

/// Whose words a record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Human,
    Agent,
    /// Tool results, and what the client adds by itself.
    Other,
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub struct Call {
    pub tool: String,
    pub file: Option<String>,
    pub command: Option<String>,
    /// Every text in its input.
    pub text: String,
}

/// A record of the main chain: a prompt, a block of the agent's, or results of tools.
#[derive(Clone, Debug)]
pub struct Said {
    /// Its line in the file.
    pub line: usize,
    pub who: Who,
    /// As a reader of the session sees it.
    pub shown: String,
    /// What the human or the agent said in it themselves.
    pub own: String,
    pub calls: Vec<Call>,
    /// Whether it holds results of tools.
    pub answers: bool,
    /// The files that its tool results show, with what is shown of them.
    pub results: Vec<(String, String)>,
}

/// A session.
pub struct Session {
    pub name: String,
    pub lines: Vec<String>,
    pub said: Vec<Said>,
    /// The client's summaries: the line of the boundary, and the text.
    pub summaries: Vec<(usize, String)>,
    /// The working directories, longest first.
    pub roots: Vec<String>,
    pub branches: Vec<String>,
    /// Lines that are no record.
    pub broken: usize,
}

/// What kind of place a session is cut at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where the client compacted it.
    Boundary,
    /// At a share of all its records.
    MidSession,
    /// Between two calls of tools of one long turn, behind a result.
    InTurn,
}

/// Where a session is cut.
#[derive(Clone, Debug)]
pub struct Cut {
    pub session: usize,
    pub place: Place,
    /// `boundary`, or the percentage.
    pub name: String,
    /// The first line behind it.
    pub line: usize,
    /// The first record behind it.
    pub at: usize,
    /// The client's own summary, at a boundary.
    pub summary: Option<String>,
    /// The size of the rivals, in characters.
    pub size: usize,
}

/// The directory of the sessions, or why there is none.
pub fn place() -> Result<PathBuf, String> {
    let place = env::var_os(PLACE).map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/transcripts"),
        PathBuf::from,
    );
    if place.is_dir() {
        return Ok(place);
    }
    Err(format!(
        "no sessions at {}: set {PLACE} to a directory of transcripts (*.jsonl or *.jsonl.gz)",
        place.display()
    ))
}

/// Reads every session below a directory, in the order of their names. Subagents' own transcripts are left out: they are
/// never rebooted.
pub fn sessions(place: &Path) -> Result<Vec<Session>, Box<dyn Error>> {
    let mut files = Vec::new();
    find(place, &mut files)?;
    files.sort();
    let mut sessions = Vec::new();
    for file in files {
        let name = file.strip_prefix(place)?.to_string_lossy();
        let name = name.trim_end_matches(".gz").trim_end_matches(".jsonl");
        sessions.push(Session::new(name, &text_of(&file)?));
    }
    Ok(sessions)
}

fn find(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if name != "subagents" {
                find(&path, files)?;
            }
        } else if name.ends_with(".jsonl") || name.ends_with(".jsonl.gz") {
            files.push(path);
        }
    }
    Ok(())
}

/// `gzip` stands on every system that the bench runs on, and saves a dependency.
fn text_of(file: &Path) -> Result<String, Box<dyn Error>> {
    let bytes = if file.extension().is_some_and(|end| end == "gz") {
        let out = Command::new("gzip").arg("-dc").arg(file).output()?;
        if !out.status.success() {
            return Err(format!("gzip cannot read {}", file.display()).into());
        }
        out.stdout
    } else {
        fs::read(file)?
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Session {
    fn new(name: &str, text: &str) -> Self {
        let mut session = Self {
            name: name.to_owned(),
            lines: text.lines().map(str::to_owned).collect(),
            said: Vec::new(),
            summaries: Vec::new(),
            roots: Vec::new(),
            branches: Vec::new(),
            broken: 0,
        };
        let mut boundary = None;
        // Which file a call was about, by the call's id.
        let mut about: Vec<(String, String)> = Vec::new();
        for number in 0..session.lines.len() {
            let Ok(record) = serde_json::from_str::<Value>(&session.lines[number]) else {
                session.broken += 1;
                continue;
            };
            if record["isSidechain"] == true {
                continue;
            }
            note(&mut session.roots, record["cwd"].as_str());
            note(&mut session.branches, record["gitBranch"].as_str());
            match record["type"].as_str() {
                Some("system") if record["subtype"] == "compact_boundary" => {
                    boundary = Some(number);
                }
                Some("user") if record["isCompactSummary"] == true => {
                    if let Some(at) = boundary.take() {
                        let text = texts(&record["message"]["content"]).join("\n");
                        session.summaries.push((at, text));
                    }
                }
                Some("user") => session.said.push(user(number, &record, &about)),
                Some("assistant") if record["isApiErrorMessage"] != true => {
                    session.said.push(assistant(number, &record, &mut about));
                }
                _ => {}
            }
        }
        session
            .roots
            .sort_by_key(|root| std::cmp::Reverse(root.len()));
        session
            .branches
            .retain(|name| !matches!(name.as_str(), "HEAD" | "main" | "master"));
        session
    }

    /// The turns with many calls of tools: the number of each, from 1, and its records, the prompt first.
    fn long_turns(&self) -> Vec<(usize, Range<usize>)> {
        let prompts = self.said.iter().enumerate();
        let prompts = prompts.filter(|(_, said)| said.who == Who::Human);
        let starts: Vec<usize> = prompts.map(|(at, _)| at).collect();
        let ends = starts.iter().skip(1).copied();
        let ends = ends.chain([self.said.len()]);
        let turns = starts.iter().zip(ends).enumerate();
        let turns = turns.map(|(number, (start, end))| (number + 1, *start..end));
        let calls = |records: &Range<usize>| {
            let said = self.said[records.clone()].iter();
            said.map(|said| said.calls.len()).sum::<usize>()
        };
        turns
            .filter(|(_, records)| calls(records) >= LONG_TURN)
            .collect()
    }

    /// The first record of these that stands right behind the results of all calls before it.
    fn behind_a_result(&self, records: Range<usize>) -> Option<usize> {
        let mut records = records.skip(1);
        records.find(|at| self.said[at - 1].answers && !self.said[*at].answers)
    }

    /// What the human said before this record, in order.
    pub fn prompts(&self, before: usize) -> impl Iterator<Item = &str> {
        let human = self.said[..before].iter();
        let human = human.filter(|said| said.who == Who::Human);
        human.map(|said| said.own.as_str())
    }
}

fn note(list: &mut Vec<String>, text: Option<&str>) {
    if let Some(text) = text.filter(|text| !text.is_empty())
        && !list.iter().any(|have| have == text)
    {
        list.push(text.to_owned());
    }
}

/// The texts of a message or of a tool's result.
fn texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(blocks) => {
            let texts = blocks.iter().filter(|block| block["type"] == "text");
            texts.filter_map(|block| block["text"].as_str()).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether the client wrote this into a prompt by itself: its tags and its words for an interruption.
fn is_clients(text: &str) -> bool {
    let text = text.trim_start();
    let tag = text
        .strip_prefix('<')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
    tag || text.starts_with("[Request interrupted by user")
}

fn user(line: usize, record: &Value, about: &[(String, String)]) -> Said {
    let content = &record["message"]["content"];
    let meta = record["isMeta"] == true;
    let mut shown = String::new();
    let mut own = Vec::new();
    for text in texts(content) {
        if meta || is_clients(text) {
            shown.push_str(&format!("Client: {text}\n"));
        } else {
            shown.push_str(&format!("Human: {text}\n"));
            own.push(text);
        }
    }
    let mut results = Vec::new();
    let mut answers = false;
    let blocks = content.as_array().into_iter().flatten();
    for block in blocks.filter(|block| block["type"] == "tool_result") {
        answers = true;
        let text = texts(&block["content"]).join("\n");
        shown.push_str(&format!("Result:\n{}\n", indented(&text)));
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        if let Some((_, file)) = about.iter().find(|(have, _)| have == id) {
            results.push((file.clone(), text));
        }
    }
    Said {
        line,
        who: if own.is_empty() {
            Who::Other
        } else {
            Who::Human
        },
        shown,
        own: own.join("\n"),
        calls: Vec::new(),
        answers,
        results,
    }
}

fn assistant(line: usize, record: &Value, about: &mut Vec<(String, String)>) -> Said {
    let content = &record["message"]["content"];
    let mut shown = String::new();
    let mut own = texts(content).join("\n");
    if !own.trim().is_empty() {
        shown.push_str(&format!("Agent: {own}\n"));
    }
    let mut calls = Vec::new();
    let blocks = content.as_array().into_iter().flatten();
    for block in blocks.filter(|block| block["type"] == "tool_use") {
        let (tool, input) = (block["name"].as_str().unwrap_or_default(), &block["input"]);
        let mut words = Vec::new();
        leaves(input, &mut words);
        let text = words.join("\n");
        let file = input["file_path"].as_str().map(str::to_owned);
        if let (Some(id), Some(file)) = (block["id"].as_str(), &file) {
            about.push((id.to_owned(), file.clone()));
        }
        shown.push_str(&format!("{tool} {}\n", reported(input)));
        own.push('\n');
        own.push_str(&text);
        calls.push(Call {
            tool: tool.to_owned(),
            file,
            command: input["command"].as_str().map(str::to_owned),
            text,
        });
    }
    Said {
        line,
        who: Who::Agent,
        shown,
        own,
        calls,
        answers: false,
        results: Vec::new(),
    }
}

fn leaves<'a>(value: &'a Value, words: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => words.push(text),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, words)),
        Value::Object(fields) => fields.values().for_each(|field| leaves(field, words)),
        _ => {}
    }
}

/// A call's input: its first field on the line, the others and further lines below it.
fn reported(input: &Value) -> String {
    let mut words = Vec::new();
    leaves(input, &mut words);
    let text = words.join("\n");
    match text.split_once('\n') {
        Some((first, rest)) => format!("{first}\n{}", indented(rest)),
        None => text,
    }
}

fn indented(text: &str) -> String {
    let lines = text.lines().map(|line| format!("  {line}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The places where the sessions are cut.
pub fn cuts(sessions: &[Session]) -> Vec<Cut> {
    let summaries = sessions.iter().flat_map(|session| &session.summaries);
    let sizes: Vec<usize> = summaries.map(|(_, text)| text.chars().count()).collect();
    let usual = sizes.iter().sum::<usize>().checked_div(sizes.len());
    let usual = usual.unwrap_or(USUAL_SIZE);
    let mut cuts = Vec::new();
    for (number, session) in sessions.iter().enumerate() {
        let first_behind = |line: usize| session.said.partition_point(|said| said.line < line);
        let boundaries = session.summaries.iter().map(|(line, text)| Cut {
            session: number,
            place: Place::Boundary,
            name: "boundary".to_owned(),
            line: *line,
            at: first_behind(*line),
            summary: Some(text.clone()),
            size: text.chars().count(),
        });
        let middles = MIDDLES.iter().filter_map(|percent| {
            let at = session.said.len() * percent / 100;
            Some(Cut {
                session: number,
                place: Place::MidSession,
                name: format!("{percent} %"),
                line: session.said.get(at)?.line,
                at,
                summary: None,
                size: usual,
            })
        });
        let in_turns = session
            .long_turns()
            .into_iter()
            .flat_map(|(turn, records)| {
                IN_TURN.iter().filter_map(move |percent| {
                    let from = records.start + records.len() * percent / 100;
                    let at = session.behind_a_result(from..records.end)?;
                    Some(Cut {
                        session: number,
                        place: Place::InTurn,
                        name: format!("turn {turn}, {percent} %"),
                        line: session.said.get(at)?.line,
                        at,
                        summary: None,
                        size: usual,
                    })
                })
            });
        let all = boundaries.chain(middles).chain(in_turns);
        cuts.extend(all.filter(|cut| {
            let before: usize = session.said[..cut.at]
                .iter()
                .map(|said| said.shown.chars().count())
                .sum();
            before >= WORTH_CHOOSING * cut.size
        }));
    }
    cuts
}
