//! `pitstop save` (`ss`): a checkpoint of the present state of the work.
//!
//! If a supervisor runs here, it makes the checkpoint, with everything it knows. Without one it is made from what the last
//! session carried, the scratchpad, git and the command line.

use std::{
    fs::OpenOptions,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use clap::Args;
use tempfile::NamedTempFile;
use uuid::Uuid;

use super::{
    here::Here,
    out::{self, Failure, Outcome},
    template,
};
use crate::supervisor::program::DEMO;
use pitstop_base::{clean::one_line, format};
use pitstop_core::{
    api::wire::{CheckpointBody, CheckpointReply},
    app::{
        checkpoint::{MANUAL, REQUESTS, saved_scratchpad},
        handoff::git_lines,
        model::{carried::Carried, requests::Requests},
    },
    config::load::{Flags, paths::project_hash},
    lineage::checkpoint::{Checkpoint, PLACE, Place, restore_command},
};
use pitstop_handoff::{
    Marker, PreservedState, Sources,
    breakpoint::git::{self, GitState},
    preserved::{Origin, texts},
    scratchpad::{self, HumanLines, Parsed},
};
use pitstop_store::{Checkpoints, HistoryOf, PrivateDir, SCRATCHPAD, VersionFile};
use pitstop_transcript::SessionId;

/// The most runs among which the last session is looked for.
const RUNS: u32 = 16;

/// Save a checkpoint of the work as it stands, for `pitstop restore`.
///
/// Exits with 0 if it is kept, 1 if not or if the file of `--to` is not written, 2 if the arguments are at fault.
#[derive(Args, Clone, Debug)]
pub struct SaveArgs {
    /// What the work is for
    #[arg(long, value_name = "TEXT")]
    pub task: Option<String>,
    /// What is to be done next; can be given more than once
    #[arg(long, value_name = "TEXT")]
    pub next: Vec<String>,
    /// A mark to find it by; can be given more than once
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// Write it to this file too, for `pitstop restore --from` on another machine
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn run(args: &SaveArgs, flags: &Flags) -> Outcome {
    let body = CheckpointBody {
        task: args.task.clone(),
        next_steps: args.next.clone(),
        tags: args.tag.clone(),
    };
    body.check()
        .map_err(|error| out::misused(error.to_string(), ""))?;
    let export_to = match args.to.as_deref() {
        Some(file) => Some((file, Here::find_configured(flags)?)),
        None => None,
    };
    let (reply, json) = save(body, flags)?;
    let mut exported = String::new();
    if let Some((file, here)) = &export_to {
        export(&reply, file, here)?;
        exported = format!(
            "written to {}, for `pitstop restore --from` on another machine\n",
            one_line(&file.to_string_lossy())
        );
    }
    let text = out::render(args.json, || json, || describe(&reply) + &exported);
    Ok(out::print(&text))
}

/// Writes the checkpoint that was saved to a file that only its user can read.
fn export(reply: &CheckpointReply, file: &Path, here: &Here) -> Result<(), Failure> {
    let which = Checkpoints {
        id: Some(reply.checkpoint_id.clone()),
        limit: 1,
        ..Checkpoints::default()
    };
    let found = here.read_store(async |store| store.checkpoints(&which).await)?;
    let Some(checkpoint) = found.first() else {
        let file = file.display();
        return Err(out::failed(
            format!("nothing was written to {file}: the checkpoint is not in the database yet"),
            &reply.message,
        ));
    };
    let written = write_private(file, &format!("{}\n", checkpoint.to_json()));
    written.map_err(|error| {
        let id = format::short_id(&reply.checkpoint_id);
        out::failed(
            format!("the checkpoint {id} is saved, but cannot be written to {}: {error}", file.display()),
            format!("`pitstop restore --at {id}` goes on from it on this machine; on another one a file is needed"),
        )
    })
}

/// Writes a file that no one else may read. One that is there stays as it was until the new one is whole.
fn write_private(file: &Path, text: &str) -> io::Result<()> {
    // A link leads to the file that is meant.
    let target = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    if target.metadata().is_ok_and(|there| !there.is_file()) {
        // A device or a pipe is written as it is.
        return OpenOptions::new()
            .write(true)
            .open(&target)?
            .write_all(text.as_bytes());
    }
    let above = target
        .parent()
        .filter(|above| !above.as_os_str().is_empty());
    // It is created with the mode 0600.
    let mut aside = NamedTempFile::new_in(above.unwrap_or(Path::new(".")))?;
    aside.write_all(text.as_bytes())?;
    aside.as_file().sync_all()?;
    aside.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

fn save(body: CheckpointBody, flags: &Flags) -> Result<(CheckpointReply, String), Failure> {
    let json = serde_json::to_vec(&body)?;
    let answer = out::ask_if_any(|door, deadline| door.post("/control/save", &json, deadline))?;
    if let Some(answer) = answer {
        let reply = serde_json::from_slice(&answer.body)?;
        let json = String::from_utf8_lossy(&answer.body).into_owned();
        return Ok((reply, json));
    }
    let reply = alone(body, &Here::find_configured(flags)?)?;
    let json = serde_json::to_string(&reply)?;
    Ok((reply, json))
}

/// Saves what is known without a supervisor.
fn alone(body: CheckpointBody, here: &Here) -> Result<CheckpointReply, Failure> {
    let text = scratchpad_text(here)?;
    let notes = Parsed::read(&text);
    let commits = here.config.handoff.git_history_count;
    let git = out::runtime()?.block_on(git::facts(&here.directory, commits, None));
    let (session, carried) = last_carried(here)?.unzip();
    let carried = carried.unwrap_or_default();
    let state = known_state(carried.state, &body, &notes, &git);
    let mut saved = serde_json::to_value(&state)?;
    saved[REQUESTS] = serde_json::to_value(&carried.requests)?;
    let place = Place::of(&here.directory.to_string_lossy(), &git);
    saved[PLACE] = serde_json::to_value(place)?;
    let written = !notes.is_blank();
    if state == PreservedState::default() && !written && matches!(git, GitState::NoRepository) {
        return Err(out::failed(
            "there is nothing to save: no supervisor runs here, the scratchpad is empty, and this is not a git repository",
            "name the work with --task, or the next step with --next",
        ));
    }
    let human = human_lines(here, &text);
    let id = Uuid::new_v4();
    let mut tags = vec![MANUAL.to_owned()];
    tags.extend(body.tags.into_iter().filter(|tag| tag != MANUAL));
    let environment = here.environment().name;
    let checkpoint = Checkpoint {
        id,
        environment: environment.clone(),
        task: state
            .current_objective
            .as_ref()
            .map_or_else(String::new, |item| item.text.clone()),
        context: handoff_text(here, id, &state, &carried.requests, &notes, &git)?,
        next_steps: texts(&state.pending_items),
        tags: tags.clone(),
        state: saved,
        scratchpad: written.then(|| saved_scratchpad(&text, &human)),
        created_at: chrono::Utc::now(),
        run: None,
        iteration: None,
        session,
    };
    // A queued write that cannot be done at the end is reported as lost.
    let _written =
        here.with_store(async |store| store.put_checkpoint(&here.project, &checkpoint).await)?;
    Ok(CheckpointReply {
        status: "saved".to_owned(),
        checkpoint_id: id.to_string(),
        message: format!(
            "no supervisor runs here: saved from {}the scratchpad and git; `{}` goes on from it",
            session.map_or("", |_| "what the last session carried, "),
            restore_command(&environment)
        ),
        environment,
        session_id: session.map(|session| session.to_string()),
        task: checkpoint.task,
        next_steps: checkpoint.next_steps,
        tags,
    })
}

/// Returns the text of the scratchpad; empty where there is none.
pub(super) fn scratchpad_text(here: &Here) -> Result<String, Failure> {
    let bytes = match here.open_files()? {
        Some(files) => files.read(SCRATCHPAD, scratchpad::MAX_BYTES)?,
        None => None,
    };
    Ok(String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned())
}

/// Returns the newest session of this project and what it carried, if the store has that.
fn last_carried(here: &Here) -> Result<Option<(SessionId, Carried)>, Failure> {
    if !here.has_store() {
        return Ok(None);
    }
    let of = HistoryOf::Project(here.project.clone());
    let found = here.read_store(async |store| {
        let runs = store.outline(&of, RUNS).await?;
        // Real work does not go on with what the scripted agent has made up.
        let real = runs.iter().filter(|one| one.run.agent != DEMO);
        let mut newest = real.flat_map(|one| one.iterations.iter().rev());
        let Some(session) = newest.find_map(|one| one.session_id) else {
            return Ok(None);
        };
        let carried = store.carried(session).await?;
        Ok(carried.map(|carried| (session, carried)))
    })?;
    Ok(found.and_then(|(session, carried)| Some((session, serde_json::from_value(carried).ok()?))))
}

/// Returns the state of the work: what the last session carried, with the command line, the scratchpad and git.
fn known_state(
    mut state: PreservedState,
    body: &CheckpointBody,
    notes: &Parsed,
    git: &GitState,
) -> PreservedState {
    if let Some(task) = &body.task {
        state.set_objective(task, Origin::Human);
    }
    for step in &body.next_steps {
        state.add_pending(step, Origin::Human);
    }
    state.feed_scratchpad(notes);
    if let GitState::Facts(facts) = git {
        state.feed_git(facts);
    }
    state
}

/// Returns the handoff for a session that continues from this checkpoint.
fn handoff_text(
    here: &Here,
    id: Uuid,
    state: &PreservedState,
    requests: &Requests,
    notes: &Parsed,
    git: &GitState,
) -> Result<String, Failure> {
    let settings = &here.config.handoff;
    let first = requests.first_beside(state.current_objective.as_ref());
    let marker = Marker {
        run: "saved".to_owned(),
        iteration: 0,
        nonce: format::short_id(id.simple()),
    };
    let lines = git_lines(git, settings);
    let sources = Sources {
        scratchpad: notes,
        git: &lines,
        first_request: first.map_or("", |said| &said.text),
        latest_request: requests.latest.as_ref().map_or("", |said| &said.text),
        ..Sources::new(&marker, state)
    };
    let generator = template::generator(&here.paths).map_err(|error| {
        out::misused(&error, "correct it, or remove it to use the built-in one")
    })?;
    let handoff = generator.generate(&sources, settings.max_state_size);
    Ok(handoff?.text)
}

/// Returns the lines of the scratchpad that a person wrote, by the versions that are kept of it.
fn human_lines(here: &Here, notes: &str) -> HumanLines {
    let versions = project_hash(&here.directory)
        .ok()
        .and_then(|hash| PrivateDir::open_beside(here.paths.state_dir(), &hash).ok())
        .and_then(|directory| VersionFile::open(directory).ok());
    let last = versions.as_ref().and_then(|(_, versions)| versions.last());
    HumanLines::since(last, notes)
}

/// Returns the outcome of the saving, for people.
pub(super) fn describe(reply: &CheckpointReply) -> String {
    let id = format::short_id(&reply.checkpoint_id);
    let mut text = format!(
        "{} {} of {} ({})\n",
        one_line(&reply.status),
        one_line(&id),
        one_line(&reply.environment),
        one_line(&reply.tags.join(", "))
    );
    if !reply.task.is_empty() {
        text.push_str(&format!("task: {}\n", one_line(&reply.task)));
    }
    if let Some(first) = reply.next_steps.first() {
        let more = match reply.next_steps.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        text.push_str(&format!("next: {}{more}\n", one_line(first)));
    }
    if !reply.message.is_empty() {
        text.push_str(&format!("{}\n", one_line(&reply.message)));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn what_is_written_is_its_users_alone_whatever_was_there() {
        let directory = tempfile::tempdir().unwrap();
        for before in [None, Some(0o644), Some(0o666), Some(0o755), Some(0o600)] {
            let file = directory.path().join(format!("{before:?}"));
            if let Some(mode) = before {
                std::fs::write(&file, "longer than what comes").unwrap();
                std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            }
            write_private(&file, "kept\n").unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept\n");
            let mode = file.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{before:?}");
        }
    }

    #[test]
    fn people_are_shown_what_is_kept_and_how_to_go_on() {
        let reply = CheckpointReply {
            status: "saved".to_owned(),
            checkpoint_id: "0a1b2c3d-0000-4000-8000-000000000000".to_owned(),
            environment: "w\u{1b}eb".to_owned(),
            session_id: None,
            task: "ship".to_owned(),
            next_steps: vec!["test".to_owned(), "tag".to_owned()],
            tags: vec!["manual".to_owned(), "v1".to_owned()],
            message: "go on".to_owned(),
        };
        assert_eq!(
            describe(&reply),
            "saved 0a1b2c3d of w\\u{1b}eb (manual, v1)\ntask: ship\nnext: test (and 1 more)\ngo on\n"
        );
    }

    #[test]
    fn an_export_that_cannot_be_written_leaves_the_one_before() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("kept.json");
        write_private(&file, "first").unwrap();
        // A handle on the old file shows whether it was cut in place.
        let mut old = std::fs::File::open(&file).unwrap();
        write_private(&file, "second").unwrap();
        let mut text = String::new();
        io::Read::read_to_string(&mut old, &mut text).unwrap();
        assert_eq!(text, "first", "the old file is whole to its end");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "second");
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
