//! What is read off the loop: git, transcripts, the client's settings and the files of a handoff.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use crate::runtime::{Shell, agent::length, follower::FollowCommand, handoff_files, trim::Ask};
use pitstop_agent::{
    AgentEvent, StartSource,
    bridge::PutBack,
    claude::{
        projects::repository_top,
        registered::{RECORD_CAP, session_in},
    },
};
use pitstop_base::{clean::chain, private_file::read_at_most};
use pitstop_core::{
    api::wire::CommitBody,
    app::{
        Event,
        event::{HandoffFiles, ReadEvent},
    },
    lineage::IterationId,
};
use pitstop_handoff::breakpoint::git::{self, GitState};
use pitstop_transcript::{SessionId, tail::open_ours, talk::Talk, trim::TrimSettings};

/// The time that reading the files a handoff names may take before the handoff is drafted without them.
const READ_LIMIT: Duration = Duration::from_secs(4);

/// The least number of commits that git is asked for: an agent may make several between two queries.
const LOOKED_AT: usize = 20;

impl Shell {
    /// Reads a session's transcript on a thread for slow work: it may have many megabytes.
    pub(super) fn read_transcript(&self, session: SessionId, iteration: IterationId) {
        let path = self.transcript_of(session);
        self.spawn_blocking(move || {
            let talk = match path {
                Some(path) => Talk::read(path).map_err(|error| chain(&error)),
                None => Err("it has none yet".to_owned()),
            };
            let talk = talk.map(Arc::new);
            Event::Read(ReadEvent::Talk { iteration, talk })
        });
    }

    /// Notes the directory in which the agent works, as a hook has reported it.
    pub(in crate::runtime) fn works_at(&mut self, session: SessionId, place: PathBuf) {
        let known = self.services.place.as_ref();
        let before = known.unwrap_or(&self.agent.project);
        if session == self.core.view().session.id && place != *before {
            self.services.place = Some(place);
            self.read_git();
        }
    }

    /// Returns the directory in which the agent works; the project if that is not known or not there any more.
    fn place(&self) -> PathBuf {
        let known = self.services.place.as_ref();
        let place = known.filter(|place| self.agent.is_there(place));
        place.unwrap_or(&self.agent.project).clone()
    }

    /// Reports whether a commit was made in a work tree in which the agent does not work, or that is the project's own: its
    /// supervisors are found by their directories.
    pub(in crate::runtime) fn is_elsewhere(&self, commit: &CommitBody) -> bool {
        let Some(tree) = &commit.work_tree else {
            return false;
        };
        let place = self.place();
        let is_here = repository_top(&place).is_some_and(|top| {
            let same = top.canonicalize().ok() == tree.canonicalize().ok();
            same && !self.agent.project.starts_with(top)
        });
        !is_here
    }

    /// Queries git, one query at a time: its answer serves all callers.
    pub(in crate::runtime) fn read_git(&mut self) {
        if std::mem::replace(&mut self.services.git_running, true) {
            self.services.git_asked = true;
            return;
        }
        let directory = self.place();
        let model = self.core.view();
        // More than are shown: they reveal a commit that no hook has reported.
        let commits = model.config.handoff.git_history_count.max(LOOKED_AT);
        let start = model.draft.signalled.run_start.clone();
        self.spawn(async move {
            let facts = git::facts(&directory, commits, start.as_ref()).await;
            Some(Event::Read(ReadEvent::Git(facts)))
        });
    }

    /// Reads the client's settings off the loop: the files may be on a slow disk.
    pub(super) fn read_client_settings(&self) {
        if !self.agent.kind.reports() {
            return;
        }
        let no_compaction = self.core.view().session.agent.holds_compaction;
        let settings = self.agent.client_settings(no_compaction);
        self.spawn(async move {
            let read = tokio::task::spawn_blocking(move || settings.read());
            let found = tokio::time::timeout(READ_LIMIT, read).await.ok()?.ok()?;
            Some(Event::Read(ReadEvent::ClientSettings(Box::new(found))))
        });
    }

    /// Reads the files for a handoff off the loop: they may be on a slow disk.
    pub(super) fn read_handoff_files(&self, named: Vec<String>, include: Vec<String>) {
        let (project, place) = (self.agent.project.clone(), self.place());
        let caught_up = self.files.caught_up();
        self.spawn(async move {
            // The handoff also contains the scratchpad: earlier orders to read it are carried out first.
            let _ = tokio::time::timeout(READ_LIMIT, caught_up).await;
            let look = move || handoff_files::read(&project, &place, &named, &include);
            let looked = tokio::task::spawn_blocking(look);
            let files = match tokio::time::timeout(READ_LIMIT, looked).await {
                Ok(Ok(files)) => files,
                _ => HandoffFiles {
                    warnings: vec!["the files of the handoff could not be looked at".to_owned()],
                    ..HandoffFiles::default()
                },
            };
            Some(Event::Read(ReadEvent::HandoffFiles(Box::new(files))))
        });
    }

    pub(in crate::runtime) fn follow(&mut self, session: SessionId, path: String) {
        let path = PathBuf::from(path);
        if self.services.transcript.as_ref() == Some(&path) {
            self.transcript_grown();
            return;
        }
        if !self.agent.may_read(&path) {
            let shown = pitstop_base::clean::one_line(&path.to_string_lossy()).into_owned();
            tracing::warn!(
                path = shown,
                "a transcript outside the agent's own directory is not read"
            );
            return;
        }
        if let Some(old) = self.services.transcript.replace(path.clone()) {
            self.services.watcher.forget_beside(&old);
        }
        self.services.watcher.watch_towards(&path);
        // In the session that was started, everything is new that did not exist at the start or that had not been read; in another
        // one to which the agent turns, everything from now on.
        let history = match self.services.begun {
            Some((begun, before)) if begun == session => before,
            _ => length(&path),
        };
        self.services
            .follower
            .send(FollowCommand::Follow(session, path, history));
    }

    pub(in crate::runtime) fn take_back(&mut self, session: SessionId, prompt: PutBack) {
        let command = FollowCommand::TakeBack(session, prompt);
        self.services.follower.send(command);
    }

    /// Notes that a session has begun whose hook was lost: all that was said in it since is new.
    pub(in crate::runtime) fn begins_unreported(&mut self, started: &AgentEvent) {
        tracing::warn!(
            ?started,
            "the hook of a session's beginning was lost, or is late"
        );
        if let AgentEvent::SessionStarted {
            session,
            source: StartSource::Clear,
            ..
        } = started
            && !self.core.view().session.agent.daemon.is_branch(*session)
        {
            self.services.begun = Some((*session, 0));
        }
    }

    /// Reads the client's own record of the agent's process off the loop.
    pub(in crate::runtime) fn read_client_record(&mut self) {
        self.watch_client_record();
        let model = self.core.view();
        let (iteration, known) = (model.session.pane(), model.session.id);
        let process = model.session.agent.process.clone();
        let (Some(record), Some(process)) = (self.services.client_record.clone(), process) else {
            return;
        };
        let plan = Arc::clone(&self.agent);
        self.spawn(async move {
            let read = move || {
                let bytes = read_at_most(RECORD_CAP, open_ours(&record).ok()??).ok()?;
                let found = |session| plan.transcript_of(session);
                session_in(&bytes, &process, plan.config_dir.as_deref()?, found)
            };
            let started = tokio::task::spawn_blocking(read).await.ok()??;
            let is_new = started.session() != Some(known);
            let started = Box::new(started);
            is_new.then_some(Event::Read(ReadEvent::SessionNamed(iteration, started)))
        });
    }

    /// Returns the transcript of a session: the one that is followed, if it is that session's.
    fn transcript_of(&self, session: SessionId) -> Option<PathBuf> {
        let name = format!("{session}.jsonl");
        let followed = self.services.transcript.clone();
        followed
            .filter(|path| path.file_name().is_some_and(|one| *one == *name))
            .or_else(|| self.agent.transcript_of(session))
    }

    /// Has a session's transcript surveyed, or copied under this id. The reason why that is impossible is sent as an answer as well.
    pub(super) fn ask_trimmer(
        &mut self,
        ask: u64,
        session: SessionId,
        settings: TrimSettings,
        copy: Option<SessionId>,
    ) {
        let why = match self.transcript_of(session) {
            None => "the session has no transcript yet",
            Some(path) => {
                let asked = Ask {
                    ask,
                    path,
                    settings,
                    copy,
                };
                if self.services.trimmer.send(asked) {
                    return;
                }
                "the thread that trims is gone; the log may say why"
            }
        };
        let why = why.to_owned();
        self.post(Event::Read(match copy {
            None => ReadEvent::TrimPlanned {
                ask,
                plan: Err(why),
            },
            Some(_) => ReadEvent::Trimmed {
                ask,
                made: Err(why),
            },
        }));
    }

    /// Notes that a git query was answered, and starts the next one if it was requested.
    pub(in crate::runtime) fn git_answered(&mut self, state: &GitState) {
        self.services.git_running = false;
        if let GitState::Facts(facts) = state {
            self.watch_head(&facts.head_log);
        }
        if std::mem::take(&mut self.services.git_asked) {
            self.read_git();
        }
    }

    /// Watches the head of the repository, which a commit without a hook and without output moves too.
    fn watch_head(&mut self, log: &Path) {
        // Git makes the directory with the first commit.
        let directory = log.parent().filter(|directory| !directory.exists());
        let watched = directory.unwrap_or(log);
        let services = &mut self.services;
        if services.head_log.as_deref() != Some(watched) {
            if let Some(old) = services.head_log.replace(watched.to_owned()) {
                services.watcher.forget_beside(&old);
            }
            // The head may have moved before it was watched.
            services.git_asked = true;
        }
        services.watcher.watch_beside(watched);
    }
}
