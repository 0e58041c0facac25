//! The handoff of a session that no pitstop hosts: the core is given its transcript, as a follower reads it, and drafts the message.

use std::{path::PathBuf, sync::mpsc as std_mpsc, thread};

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{
    cli::{
        here::Here,
        out::{self, Failure},
        save::scratchpad_text,
        template,
    },
    runtime::{
        self, effects,
        follower::{FollowCommand, follow},
        handoff_files,
    },
    supervisor::boot::start_of_time,
};
use pitstop_agent::{AgentEvent, AgentKind, Background, StartSource};
use pitstop_base::format;
use pitstop_core::{
    app::{
        self, Effect, Event, Model,
        event::ReadEvent,
        model::{Beginning, Identity},
    },
    config::load::Flags,
    lineage::{Lineage, RunId},
};
use pitstop_handoff::{Handoff, breakpoint::git};
use pitstop_store::PrivateDir;
use pitstop_transcript::{SessionId, ending::Ending};

/// The session whose handoff is wanted.
#[derive(Debug, Deserialize)]
pub struct Question {
    session: SessionId,
    transcript: PathBuf,
    /// The directory of the handoffs, which must be there: it is gone once the plugin is removed.
    directory: PathBuf,
}

/// The handoff that was written.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// Its file.
    file: PathBuf,
    /// Its size, for people.
    size: String,
    /// The random number in its first line.
    nonce: String,
}

/// The number of handoffs that are kept, one for each session; the oldest are removed.
const KEPT: usize = 20;

/// Writes the handoff of a session into its file.
pub fn answer(asked: &Question, flags: &Flags) -> Result<Answer, Failure> {
    let Some(directory) = PrivateDir::find_path(&asked.directory)? else {
        return Err(out::failed(
            format!("the directory {} is gone", out::path(&asked.directory)),
            "`pitstop plugin install DIR` makes it again",
        ));
    };
    let here = Here::find(flags)?;
    let handoff = draft(asked, &here)?;
    let name = format!("{}.md", asked.session);
    let text = format!("{}\n", handoff.text);
    directory.write_private(&name, text.as_bytes())?;
    forget_oldest(&directory);
    Ok(Answer {
        file: directory.path().join(&name),
        size: format::bytes(handoff.bytes() as u64),
        nonce: handoff.marker.nonce,
    })
}

/// Removes the handoffs that were written longest ago, beyond those that are kept. One that cannot be removed is in no one's way.
fn forget_oldest(directory: &PrivateDir) {
    let names = directory.names().unwrap_or_default();
    let written = |name: &String| directory.path().join(name).metadata()?.modified();
    let mut files: Vec<_> = names
        .into_iter()
        .filter_map(|name| Some((written(&name).ok()?, name)))
        .collect();
    files.sort();
    for (_, name) in files.iter().rev().skip(KEPT) {
        directory.remove(name).ok();
    }
}

/// Returns the handoff that the core makes of a session's transcript, and of the scratchpad, git and files of this project.
fn draft(asked: &Question, here: &Here) -> Result<Handoff, Failure> {
    let mut drafting = Drafting {
        model: model(asked.session, here)?,
        here,
    };
    app::iteration::begin(&mut drafting.model, false, None, None);
    drafting.update(Event::Agent(AgentEvent::SessionStarted {
        session: asked.session,
        source: StartSource::Startup,
        model: None,
        transcript_path: None,
        prompt_cache: None,
    }));
    let commits = here.config.handoff.git_history_count;
    let git = out::runtime()?.block_on(git::facts(&here.directory, commits, None));
    drafting.update(Event::Read(ReadEvent::Git(git)));
    drafting.read(asked)?;
    // No hook and no timer ends the turn here.
    let ending = Ending::read(&asked.transcript);
    if ending.is_ok_and(|ending| !ending.is_in_turn) {
        drafting.update(Event::Agent(AgentEvent::TurnEnded {
            session: asked.session,
            last_message: None,
            background: Background::default(),
            transcript_path: None,
        }));
    }
    if !here.config.handoff.generate_handoff {
        return Err(out::failed(
            "no handoff is made",
            "`[handoff] generate_handoff` is off",
        ));
    }
    if drafting.model.session.transcript.turns == 0 {
        return Err(out::failed("nothing was said in this session yet", ""));
    }
    Ok(drafting.model.draft.handoff.current().clone())
}

/// Returns a core that has seen nothing of the session.
fn model(session: SessionId, here: &Here) -> Result<Model, Failure> {
    let wall = runtime::wall();
    let random = *Uuid::new_v4().as_bytes();
    let mut config = here.config.clone();
    // No model is asked.
    config.summary.generate_summaries = false;
    let generator = template::generator(&here.paths).map_err(|error| {
        out::misused(&error, "correct it, or remove it to use the built-in one")
    })?;
    Ok(app::model_of(Beginning {
        identity: Identity {
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            project: here.directory.to_string_lossy().into_owned(),
            environment: here.environment().name,
            agent_kind: AgentKind::Claude,
            agent_command: "claude".to_owned(),
            agent_args: Vec::new(),
            todo_tools: true,
        },
        config,
        lineage: Lineage::new(RunId::new(wall, [random[0], random[1], random[2]])),
        session,
        new_ids: effects::new_ids(),
        notes: scratchpad_text(here)?,
        generator,
        host: (80, 24),
        now: start_of_time(wall),
    }))
}

/// A core that is given what a supervisor would give it, and whose orders are not carried out but one: to look at files.
struct Drafting<'a> {
    model: Model,
    here: &'a Here,
}

impl Drafting<'_> {
    fn update(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let at = start_of_time(runtime::wall());
            for effect in app::update(&mut self.model, at, event) {
                if let Effect::ReadHandoffFiles { named, include } = effect {
                    let project = &self.here.directory;
                    let files = handoff_files::read(project, project, &named, &include);
                    events.push(Event::Read(ReadEvent::HandoffFiles(Box::new(files))));
                }
            }
        }
    }

    /// Reads the whole transcript, as the follower of a supervisor reads it.
    fn read(&mut self, asked: &Question) -> Result<(), Failure> {
        let (order, orders) = std_mpsc::channel();
        let (events, mut received) = mpsc::channel(64);
        let transcript = asked.transcript.clone();
        // It has ended only if it has panicked, and that is noticed below.
        order
            .send(FollowCommand::Follow(asked.session, transcript, 0))
            .ok();
        drop(order);
        let reader = thread::spawn(move || follow(&orders, &events));
        let mut lost = None;
        while let Some(event) = received.blocking_recv() {
            if let Event::Read(ReadEvent::TranscriptLost { why, .. }) = &event {
                lost = Some(why.clone());
            }
            self.update(event);
        }
        let ended = reader
            .join()
            .map_err(|_| "its reader has panicked".to_owned());
        match ended.err().or(lost) {
            Some(why) => Err(out::failed(
                format!(
                    "cannot read the transcript {}: {why}",
                    out::path(&asked.transcript)
                ),
                "",
            )),
            None => Ok(()),
        }
    }
}
