//! `pitstop context [--all] [--json]`: the shell commands of this project's sessions, with their output.
//!
//! It reads files only, so it needs no supervisor: the newest run's `meta.json` names the session, whose transcript is
//! in the agent's configuration directory; for an agent without one the recording of its pane is read.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::{
    out::{self, Failure, Outcome},
    sessions,
};
use pitstop_base::clean;
use pitstop_core::{
    config::{
        Config,
        load::{Flags, load, paths::Paths},
    },
    lineage::{IterationId, Meta},
};
use pitstop_handoff::strategy::{self, MAX_COMMANDS};
use pitstop_store::{
    FilesError, PrivateDir,
    run_dir::{META, RECORDING, RunDir, list_runs},
};
use pitstop_transcript::{
    commands::{CommandLog, CommandReader, CommandRecord, cast},
    tail::read_pieces,
};

/// The most bytes of a run's record that are read.
const META_LIMIT: usize = 16 * 1024 * 1024;

/// The most bytes of a recording that are read: far above what one may grow to.
const RECORDING_LIMIT: usize = 1024 * 1024 * 1024;

/// Print the last shell commands of this session, with their output.
#[derive(Args, Clone, Debug)]
pub struct ContextArgs {
    /// Print every session of this project
    #[arg(long)]
    pub all: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Runs the command; 0, or 1 if nothing could be read.
pub fn run(args: &ContextArgs) -> Outcome {
    let sessions = read_sessions(args.all)?;
    if sessions.is_empty() && !args.json {
        let error = "no session of this project is on record";
        return Err(out::failed(error, out::START));
    }
    let json = || as_json(&sessions);
    let text = out::render(args.json, json, || as_text(&sessions, args.all));
    Ok(out::print(&text))
}

/// A session and its last commands.
struct Session {
    id: String,
    source: &'static str,
    log: CommandLog,
}

/// Returns the present session, or all of them, oldest first.
fn read_sessions(all: bool) -> Result<Vec<Session>, Failure> {
    let project = out::project()?;
    let paths = Paths::of_process(&project).ok();
    let loaded = paths
        .as_ref()
        .and_then(|paths| load(paths, &Flags::default()).ok());
    let config = loaded.map_or_else(Config::default, |loaded| loaded.config);
    let places = sessions::places(paths.as_ref(), &config);
    let mut found = Vec::new();
    if let Some(private) = PrivateDir::find_project(&project)? {
        let mut runs = list_runs(&private)?;
        runs.reverse();
        for run in runs {
            let Some(run) = RunDir::find(&private, &run)? else {
                continue;
            };
            of_run(&run, &places, all, &mut found)?;
            if !all && !found.is_empty() {
                break;
            }
        }
    }
    // There may be sessions from before pitstop was used here.
    if found.is_empty() {
        let known = sessions::of_project(&places, &project);
        for one in known.take(if all { usize::MAX } else { 1 }) {
            found.push(from_transcript(one.id.to_string(), &one.path)?);
        }
    }
    found.reverse();
    Ok(found)
}

/// Adds the sessions of a run that can be read, newest first.
fn of_run(
    run: &PrivateDir,
    places: &[PathBuf],
    all: bool,
    found: &mut Vec<Session>,
) -> Result<(), Failure> {
    let Some(meta) = run.read(META, META_LIMIT)? else {
        return Ok(());
    };
    // A record that another version or a person wrote hides only its own run.
    let Ok(meta) = serde_json::from_slice::<Meta>(&meta) else {
        return Ok(());
    };
    for iteration in meta.iterations.iter().rev() {
        let transcript = iteration
            .session_id
            .and_then(|id| Some((id, sessions::transcript_of(places, id)?)));
        if let Some((id, path)) = transcript {
            let id = id.to_string();
            // A resumed session has the same id in several iterations.
            if found.iter().all(|have| have.id != id) {
                found.push(from_transcript(id, &path)?);
            }
        } else if let Some(log) = read_recorded(run, iteration.iteration)? {
            found.push(Session {
                id: format!("{}/{}", meta.run_id.as_str(), iteration.iteration),
                source: "recording",
                log,
            });
        }
        if !all && !found.is_empty() {
            break;
        }
    }
    Ok(())
}

fn read_recorded(
    run: &PrivateDir,
    iteration: IterationId,
) -> Result<Option<CommandLog>, FilesError> {
    let Some(directory) = run.find_dir(&format!("iteration-{iteration}"))? else {
        return Ok(None);
    };
    let bytes = directory.read(RECORDING, RECORDING_LIMIT)?;
    Ok(bytes.map(|bytes| cast::read_commands(&bytes, MAX_COMMANDS)))
}

fn from_transcript(id: String, path: &Path) -> Result<Session, Failure> {
    let mut reader = CommandReader::new(MAX_COMMANDS);
    read_pieces(path, u64::MAX, 0, |piece| {
        reader.push(piece);
        true
    })?;
    Ok(Session {
        id,
        source: "transcript",
        log: reader.finish(),
    })
}

fn as_text(sessions: &[Session], heads: bool) -> String {
    let texts = sessions
        .iter()
        .map(|one| (&one.id, strategy::shown_commands(&one.log).join("\n")))
        .filter(|(_, text)| !text.is_empty());
    if !heads {
        return texts.map(|(_, text)| text).collect();
    }
    let headed = texts.map(|(id, text)| format!("=== Session {} ===\n{text}", clean::one_line(id)));
    headed.collect::<Vec<_>>().join("\n")
}

fn as_json(sessions: &[Session]) -> Value {
    let command = |log: &CommandLog, record: &CommandRecord| {
        json!({
            "command": record.command,
            "exit": record.exit,
            "at": record.at,
            "duration_ms": record.duration.map(|duration| duration.as_millis() as u64),
            "output": strategy::shorten_output(log.read(record)),
        })
    };
    let sessions = sessions.iter().map(|one| {
        let commands = one.log.records();
        let commands: Vec<_> = commands
            .iter()
            .map(|record| command(&one.log, record))
            .collect();
        json!({"id": one.id, "source": one.source, "commands": commands})
    });
    json!({"sessions": sessions.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;
    use pitstop_transcript::commands::{Chunk, Direction};

    fn session(id: &str, output: &str) -> Session {
        let mut log = CommandLog::new(MAX_COMMANDS);
        let record = CommandRecord {
            command: Some("ls".to_owned()),
            exit: Some(0),
            ..CommandRecord::default()
        };
        log.push(
            record,
            vec![Chunk::Bytes(Direction::Output, output.as_bytes().to_vec())],
        );
        Session {
            id: id.to_owned(),
            source: "transcript",
            log,
        }
    }

    #[test]
    fn one_session_stands_alone_and_several_under_heads() {
        let silent = Session {
            log: CommandLog::new(MAX_COMMANDS),
            ..session("s0", "")
        };
        let (one, two) = (session("s1", "a\n"), session("s2", "b\u{1b}]0;x\u{7}\n"));
        let sessions = [one, silent, two];
        assert_eq!(as_text(&sessions[..1], false), "$ ls\na\n");
        assert_eq!(
            as_text(&sessions, true),
            "=== Session s1 ===\n$ ls\na\n\n=== Session s2 ===\n$ ls\nb\n"
        );
    }

    #[test]
    fn json_has_every_field_of_a_command() {
        assert_eq!(
            as_json(&[session("s1", "a\n")]),
            json!({"sessions": [{"id": "s1", "source": "transcript", "commands": [
                {"command": "ls", "exit": 0, "at": null, "duration_ms": null, "output": "a\n"}
            ]}]})
        );
    }
}
