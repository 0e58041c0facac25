//! `pitstop restore [ENV]` (`rs`): a fresh session that is given the handoff of a checkpoint.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::{Value, json};

use super::{
    demo::DemoPlace,
    here::Here,
    host::{self, Asked, HostArgs, Request},
    out::{self, Failure, Outcome, columns},
    sessions::is_of_the_demo,
};
use crate::runtime::zone;
use pitstop_base::{clock::Zone, format, private_file::read_at_most};
use pitstop_core::{
    app::checkpoint::MANUAL,
    config::load::Flags,
    lineage::checkpoint::{Checkpoint, MAX_BYTES, environment_word},
};
use pitstop_store::{Checkpoints, Store, StoreError};

/// The most checkpoints that are listed.
const LISTED: u32 = 100;

/// The number of characters of the shortest beginning of an id that is accepted.
const SHORTEST_ID: usize = 4;

/// Start a fresh session with the handoff of the newest checkpoint.
///
/// Without ENV: the checkpoints of this directory. `PITSTOP_ENV`, else `[store] environment`, names another
/// environment, --from a file. With --list nothing is started. The scratchpad comes back too: lines that you wrote into the
/// present one stay.
#[derive(Args, Clone, Debug)]
pub struct RestoreArgs {
    /// The environment whose newest checkpoint is taken up
    #[arg(value_name = "ENV")]
    pub environment: Option<String>,
    /// List the checkpoints instead, newest first; automatic ones in a row that are alike are one line
    #[arg(long)]
    pub list: bool,
    /// List each of those that are alike too
    #[arg(long, requires = "list")]
    pub all: bool,
    /// Take the checkpoint whose id begins so
    #[arg(long, value_name = "ID")]
    pub at: Option<String>,
    /// Only checkpoints with this tag
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,
    /// Take the checkpoint in this file, which `pitstop save --to` has written
    #[arg(long, value_name = "FILE", conflicts_with_all = ["environment", "list", "at", "tag"])]
    pub from: Option<PathBuf>,
    /// Print the list as one JSON object
    #[arg(long, requires = "list")]
    pub json: bool,
    /// Host this program instead of Claude Code
    #[arg(long = "agent", value_name = "CMD", id = "restore-agent")]
    pub agent: Option<String>,
    /// Arguments for the agent
    #[arg(last = true, value_name = "ARGS", id = "restore-args")]
    pub args: Vec<String>,
}

/// Runs the command: 0 after a session or a list, 1 if there is no such checkpoint, 2 if the arguments are at fault.
pub fn run(args: &RestoreArgs, host: &HostArgs) -> Outcome {
    let flags: Flags = host.config_flags();
    let here = Here::find_configured(&flags)?;
    if let Some(file) = &args.from {
        let checkpoint = import(file)?;
        let demo = here.has_store()
            && here.read_store(async |store| is_of_the_demo(store, &checkpoint).await)?;
        return start(args, host, demo, checkpoint);
    }
    let which = which(args, &here)?;
    let (found, known, is_demo) = if here.has_store() {
        here.read_store(async |store| look(store, &which, !args.list).await)?
    } else {
        Default::default()
    };
    if args.list {
        let json = || as_json(&found);
        let text = out::render(args.json, json, || table(&found, args.all, zone));
        return Ok(out::print(&text));
    }
    if args.at.is_some() && found.len() > 1 {
        return Err(out::misused(
            format!("this id fits {} checkpoints", found.len()),
            "give more of the id; `pitstop restore --list` shows them",
        ));
    }
    match found.into_iter().next() {
        Some(checkpoint) => start(args, host, is_demo, checkpoint),
        None => Err(none_found(&which, &known)),
    }
}

fn start(args: &RestoreArgs, host: &HostArgs, is_demo: bool, checkpoint: Checkpoint) -> Outcome {
    let mut host = host.clone();
    host.agent = args.agent.clone().or(host.agent);
    host.args.extend(args.args.iter().cloned());
    let demo = is_demo && host.agent.is_none();
    host::start_session(Request {
        args: host,
        demo: demo.then_some(DemoPlace::Here),
        asked: Asked::Restore(Box::new(checkpoint)),
    })
}

/// Reads a checkpoint from a file.
fn import(file: &Path) -> Result<Checkpoint, Failure> {
    // One byte over the limit is enough to refuse it.
    let read = File::open(file).and_then(|open| read_at_most(MAX_BYTES as u64 + 1, open));
    let refused = |why: &str| {
        out::misused(
            format!("{}: {why}", file.display()),
            "`pitstop save --to FILE` writes one",
        )
    };
    let bytes = read.map_err(|error| refused(&error.to_string()))?;
    Checkpoint::from_json(&String::from_utf8_lossy(&bytes))
        .map_err(|error| refused(&out::chain(&error)))
}

/// Returns the query for the checkpoints that are meant.
fn which(args: &RestoreArgs, here: &Here) -> Result<Checkpoints, Failure> {
    let id = args.at.as_deref().map(id_start).transpose();
    let id = id.map_err(|error| out::misused(&error, "`pitstop restore --list` shows them"))?;
    let limit = if args.list || id.is_some() { LISTED } else { 1 };
    let mut which = Checkpoints {
        tag: args.tag.clone(),
        id,
        limit,
        ..Checkpoints::default()
    };
    match &args.environment {
        Some(name) => which.environment = Some(name.clone()),
        // An id is enough.
        None if which.id.is_some() => {}
        None => {
            let environment = here.environment();
            if !environment.chosen {
                which.project = Some(here.project.clone());
            }
            which.environment = Some(environment.name);
        }
    }
    Ok(which)
}

/// Checks the beginning of an id: hex digits and dashes.
fn id_start(text: &str) -> Result<String, String> {
    let plain = text.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    if plain && text.len() >= SHORTEST_ID {
        return Ok(text.to_ascii_lowercase());
    }
    Err(format!(
        "expected {SHORTEST_ID} or more hex digits of a checkpoint's id, found {text:?}"
    ))
}

/// Returns the checkpoints; if there are none, the environments that have some; and whether the newest is the demo's.
async fn look(
    store: &Store,
    which: &Checkpoints,
    to_start: bool,
) -> Result<(Vec<Checkpoint>, Vec<String>, bool), StoreError> {
    let mut found = store.checkpoints(which).await?;
    if !to_start && which.tag.is_none() {
        // Checkpoints made by hand are listed however many automatic ones came after them.
        let by_hand = Checkpoints {
            tag: Some(MANUAL.to_owned()),
            ..which.clone()
        };
        found.extend(store.checkpoints(&by_hand).await?);
        found.sort_by_key(|one| std::cmp::Reverse((one.created_at, one.id)));
        found.dedup_by_key(|one| one.id);
    }
    let mut known: Vec<String> = Vec::new();
    let Some(first) = found.first() else {
        let all = Checkpoints {
            limit: LISTED,
            ..Checkpoints::default()
        };
        for one in store.checkpoints(&all).await? {
            if !known.contains(&one.environment) {
                known.push(one.environment);
            }
        }
        return Ok((found, known, false));
    };
    let is_demo = to_start && is_of_the_demo(store, first).await?;
    Ok((found, known, is_demo))
}

fn none_found(which: &Checkpoints, known: &[String]) -> Failure {
    let mut wanted = match (&which.environment, &which.id) {
        (Some(name), _) => format!("checkpoint of {name:?}"),
        (None, Some(id)) => format!("checkpoint whose id begins with {id}"),
        (None, None) => "checkpoint".to_owned(),
    };
    if let Some(tag) = &which.tag {
        wanted.push_str(&format!(" tagged {tag:?}"));
    }
    let hint = if known.is_empty() {
        "`pitstop save` makes one".to_owned()
    } else {
        let known = known.iter().map(|name| environment_word(name));
        let known = known.collect::<Vec<_>>().join(", ");
        format!("there are checkpoints of: {known}; `pitstop restore ENV` takes one up")
    };
    out::failed(format!("there is no {wanted}"), &hint)
}

/// Reports whether a person or a script asked for the checkpoint.
fn is_by_hand(one: &Checkpoint) -> bool {
    one.tags.iter().any(|tag| tag == MANUAL)
}

/// Reports whether one checkpoint restores no more than the other: both were saved automatically in the same session, with
/// the same state of the work.
fn is_alike(one: &Checkpoint, other: &Checkpoint) -> bool {
    let [one_work, other_work] = [one, other].map(|it| (&it.task, &it.next_steps, it.session));
    !is_by_hand(one)
        && !is_by_hand(other)
        && (&one.environment, one_work) == (&other.environment, other_work)
}

fn table(found: &[Checkpoint], each: bool, zone: Zone) -> String {
    if found.is_empty() {
        return "no checkpoints\n".to_owned();
    }
    let head = "id|saved|made|environment|iteration|tags|next|task";
    let mut rows = vec![out::heads(head)];
    rows.extend(
        found
            .chunk_by(|one, next| !each && is_alike(one, next))
            .map(|alike| {
                let one = &alike[0];
                let made = match alike.len() {
                    _ if is_by_hand(one) => "BY HAND".to_owned(),
                    1 => "automatic".to_owned(),
                    count => format!("{count} automatic"),
                };
                let saved = one.created_at.with_timezone(&zone(one.created_at));
                let task = one.task.lines().next().unwrap_or_default();
                let tags = one.tags.iter().filter(|tag| *tag != MANUAL);
                vec![
                    format::short_id(one.id),
                    saved.format("%Y-%m-%d %H:%M:%S").to_string(),
                    made,
                    one.environment.clone(),
                    one.iteration
                        .map_or_else(|| "–".to_owned(), |number| number.to_string()),
                    tags.map(String::as_str).collect::<Vec<_>>().join(", "),
                    one.next_steps.len().to_string(),
                    task.chars().take(60).collect(),
                ]
            }),
    );
    columns(&rows)
}

fn as_json(found: &[Checkpoint]) -> Value {
    let one = |one: &Checkpoint| {
        json!({
            "id": one.id, "environment": one.environment, "task": one.task, "next_steps": one.next_steps,
            "tags": one.tags, "created_at": one.created_at, "run_id": one.run, "iteration": one.iteration,
            "session_id": one.session, "handoff_bytes": one.context.len(), "auto_save": one.auto_save(),
            "breakpoint": one.state.get("breakpoint"), "last_error": one.last_error(), "progress": one.progress(),
            "scratchpad_bytes": one.scratchpad.as_ref().map(|saved| saved.text.len()),
        })
    };
    json!({"checkpoints": found.iter().map(one).collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_list_merges_what_is_alike_and_shows_what_was_made_by_hand() {
        let one = Checkpoint {
            id: Uuid::from_u128(0x0a1b_2c3d << 96),
            environment: "web".to_owned(),
            task: "ship\u{1b}[2J it\nsoon".to_owned(),
            context: "12345".to_owned(),
            next_steps: vec!["a".to_owned()],
            tags: vec!["auto-save".to_owned(), "tokens-7".to_owned()],
            state: Value::Null,
            scratchpad: None,
            created_at: DateTime::UNIX_EPOCH,
            run: None,
            iteration: None,
            session: None,
        };
        let mut by_hand = one.clone();
        by_hand.tags = vec![MANUAL.to_owned(), "v1".to_owned()];
        let found = [one.clone(), one.clone(), by_hand, one.clone()];
        assert_eq!(
            table(&found, false, pitstop_base::clock::UTC),
            "id        saved                made         environment  iteration  tags                 next  task\n\
             0a1b2c3d  1970-01-01 00:00:00  2 automatic  web          –          auto-save, tokens-7  1     ship\\u{1b}[2J it\n\
             0a1b2c3d  1970-01-01 00:00:00  BY HAND      web          –          v1                   1     ship\\u{1b}[2J it\n\
             0a1b2c3d  1970-01-01 00:00:00  automatic    web          –          auto-save, tokens-7  1     ship\\u{1b}[2J it\n"
        );
        assert_eq!(
            table(&found, true, pitstop_base::clock::UTC)
                .lines()
                .count(),
            5
        );
        let mut later = one.clone();
        later.next_steps.clear();
        assert_eq!(
            table(&[later, one.clone()], false, pitstop_base::clock::UTC)
                .lines()
                .count(),
            3
        );
        assert_eq!(as_json(&[one])["checkpoints"][0]["handoff_bytes"], 5);
        assert_eq!(
            table(&[], false, pitstop_base::clock::UTC),
            "no checkpoints\n"
        );
    }

    #[test]
    fn an_id_is_known_by_its_beginning() {
        assert_eq!(id_start("0A1b2c"), Ok("0a1b2c".to_owned()));
        for wrong in ["", "0a1", "hello", "0a1b%"] {
            assert!(id_start(wrong).is_err(), "{wrong:?}");
        }
    }
}
