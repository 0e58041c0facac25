//! How the shell starts an agent: settings file, command line, environment.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use crate::{
    agent::{self, AgentKind, Launch, Start, claude},
    app::effect::StartAgent,
    bridge,
    lineage::IterationId,
    pane::PaneSpec,
    store::{FilesError, PrivateDir, run_dir::RunDir},
    transcript::{SessionId, tail::holds_conversation},
};

use super::client_settings::ClientSettings;

/// The hidden subcommand by which agents are started: it makes them die with us and registers them, then becomes them.
pub const SHIM: &str = "exec-agent";

/// How agents are started, the same for every iteration.
#[derive(Clone, Debug)]
pub struct AgentPlan {
    /// Which program it is.
    pub kind: AgentKind,
    /// The program, found in the `PATH`.
    pub program: PathBuf,
    /// Arguments of ours before everything else.
    pub lead_args: Vec<OsString>,
    /// What the user wrote after `--`, and `[agent] args`.
    pub user_args: Vec<String>,
    /// Variables to set for it.
    pub env: Vec<(OsString, OsString)>,
    /// The `pitstop` executable.
    pub exe: PathBuf,
    /// The file with the observe right.
    pub observe: PathBuf,
    /// The scratchpad file.
    pub scratchpad: PathBuf,
    /// The file in which it registers before it is started.
    pub registry: PathBuf,
    /// The project.
    pub project: PathBuf,
    /// The run's directory in the project.
    pub files: Option<RunDir>,
    /// Where settings go when the project cannot be written.
    pub runtime_dir: PathBuf,
    /// Where the supervisor keeps its own things of the user's.
    pub state_dir: PathBuf,
    /// The agent's own configuration directory, below which transcripts may be read.
    pub config_dir: Option<PathBuf>,
}

impl AgentPlan {
    /// What to run in the pane for this start.
    ///
    /// With `no_compaction` the client's own auto-compaction is off; without, it is not touched.
    /// A session that has nothing to resume is begun from nothing: the client would refuse it and end.
    pub fn spec(
        &self,
        start: &StartAgent,
        no_compaction: bool,
        mods: Option<PathBuf>,
    ) -> io::Result<PaneSpec> {
        let (session, way) = self.way(start);
        let settings_file = self.write_settings(start.iteration, no_compaction)?;
        let user_append = claude::user_append_file(&self.user_args)
            .map(|file| std::fs::read_to_string(self.project.join(file)))
            .transpose()?;
        let launch = Launch {
            kind: self.kind,
            program: self.program.clone().into_os_string(),
            lead_args: self.lead_args.clone(),
            session,
            way,
            first: start.first,
            prompt: match &start.prompt_if_new {
                Some(prompt) if start.resume && way == Start::Fresh => Some(prompt.clone()),
                _ => start.prompt.clone(),
            },
            user_args: self.user_args.clone(),
            settings_file,
            mods,
            user_append,
        };
        let line = agent::command_line(&launch).map_err(io::Error::other)?;
        let mut args = vec![
            OsString::from(SHIM),
            self.registry.clone().into(),
            line.program,
        ];
        args.extend(line.args);
        let env = self.variables(no_compaction);
        Ok(PaneSpec {
            program: self.exe.clone().into_os_string(),
            args,
            env: agent::child_env(std::env::vars_os(), &env),
            cwd: self.project.clone(),
        })
    }

    /// The variables that are set for it over those of this process.
    fn variables(&self, no_compaction: bool) -> Vec<(OsString, OsString)> {
        let mut env = self.env.clone();
        if no_compaction && self.kind.reports() {
            let (name, value) = claude::NO_AUTO_COMPACTION;
            env.push((name.into(), value.into()));
        }
        env
    }

    /// Where the client finds out where to compact, when it is started so.
    #[must_use]
    pub fn client_settings(&self, no_compaction: bool) -> ClientSettings {
        ClientSettings {
            args: self.user_args.clone(),
            env: self.variables(no_compaction),
            config_dir: self.config_dir.clone(),
            project: self.project.clone(),
        }
    }

    fn way(&self, start: &StartAgent) -> (SessionId, Start) {
        if !start.resume {
            return (start.session, Start::Fresh);
        }
        if !self.kind.reports() || self.can_resume(start.session) {
            return (start.session, Start::Resume);
        }
        tracing::warn!(session = %start.session, "nothing was said that could be resumed: begun from nothing");
        // An id whose file exists is taken; the hooks will report the new one.
        let taken = self.transcript_of(start.session).is_some();
        let session = if taken {
            SessionId::new(uuid::Uuid::new_v4())
        } else {
            start.session
        };
        (session, Start::Fresh)
    }

    /// How much of the transcript of the session to be resumed is there, in bytes.
    pub(super) fn transcript_length(&self, start: &StartAgent) -> u64 {
        start
            .resume
            .then(|| self.transcript_of(start.session))
            .flatten()
            .map_or(0, |path| length(&path))
    }

    /// Whether the session has a conversation on disk. One that cannot be read is taken to have.
    #[must_use]
    pub fn can_resume(&self, session: SessionId) -> bool {
        let Some(path) = self.transcript_of(session) else {
            return false;
        };
        holds_conversation(path)
            .inspect_err(|error| tracing::warn!(%error, %session, "the transcript cannot be read"))
            .unwrap_or(true)
    }

    /// Writes the per-run settings beside the iteration's other files, and nowhere else.
    pub(super) fn write_settings(
        &self,
        iteration: IterationId,
        no_compaction: bool,
    ) -> io::Result<PathBuf> {
        if !self.kind.reports() {
            return Ok(PathBuf::new());
        }
        let user = self.user_settings()?;
        let directory = self.directory_of(iteration)?;
        let injection = claude::Injection {
            exe: &self.exe,
            observe: &self.observe,
            // It is written beside the other one, under the same name (`api::server::secrets`).
            bridge: &self.observe.with_extension("bridge"),
            scratchpad: &self.scratchpad,
            given: directory.path(),
            no_compaction,
        };
        let settings = claude::settings(injection, user.as_deref()).map_err(io::Error::other)?;
        let bytes = settings.json.as_bytes();
        directory
            .write_private("settings.json", bytes)
            .map_err(io::Error::other)?;
        let path = directory.path().join("settings.json");
        // A directory that was moved away takes files still, but the client would not find them.
        path.metadata().map_err(|error| {
            let place = path.display();
            io::Error::new(error.kind(), format!("{place} is not there once written"))
        })?;
        Ok(path)
    }

    /// The directory for what the client is given at a start.
    fn directory_of(&self, iteration: IterationId) -> io::Result<PrivateDir> {
        let directory = match &self.files {
            Some(files) => files.iteration(iteration),
            None => PrivateDir::open_path(&self.runtime_dir),
        };
        directory.map_err(io::Error::other)
    }

    /// Writes the mods beside the settings; gives the directory that the client is to load.
    pub(super) fn write_mods(&self, iteration: IterationId) -> io::Result<PathBuf> {
        let directory = self.directory_of(iteration)?;
        let write = || {
            let mods = directory.dir("bridge")?;
            for (directories, name, text) in bridge::FILES {
                let mut directory = mods.dir(directories[0])?;
                for below in &directories[1..] {
                    directory = directory.dir(below)?;
                }
                directory.write_for_now(name, text.as_bytes())?;
            }
            Ok::<_, FilesError>(mods.path().to_owned())
        };
        write().map_err(io::Error::other)
    }

    /// The text of the user's own `--settings`.
    pub(super) fn user_settings(&self) -> io::Result<Option<String>> {
        match claude::user_settings(&self.user_args) {
            None => Ok(None),
            Some(claude::Given::Text(text)) => Ok(Some(text)),
            Some(claude::Given::File(file)) => {
                std::fs::read_to_string(self.project.join(file)).map(Some)
            }
        }
    }

    /// The user's own status line command, which ours runs: from their `--settings`, else from the settings in
    /// the agent's configuration directory. The project's settings have no vote on commands of ours.
    #[must_use]
    pub fn user_status_line(&self) -> Option<String> {
        let given = self.user_settings().ok().flatten();
        let own = || std::fs::read_to_string(self.config_dir.as_ref()?.join("settings.json")).ok();
        given
            .as_deref()
            .and_then(claude::user_status_line)
            .or_else(|| claude::user_status_line(&own()?))
    }

    /// Whether a transcript at this path may be read: only below the agent's own configuration directory.
    #[must_use]
    pub fn may_read(&self, transcript: &Path) -> bool {
        let plain = transcript.components().all(|part| {
            !matches!(
                part,
                std::path::Component::ParentDir | std::path::Component::CurDir
            )
        });
        let Some(config) = &self.config_dir else {
            return false;
        };
        let below = |root: &Path| transcript.starts_with(root.join("projects"));
        plain
            && transcript
                .extension()
                .is_some_and(|ending| ending == "jsonl")
            && (below(config) || config.canonicalize().is_ok_and(|real| below(&real)))
    }

    /// The transcript of a session, if there is one. Its place is looked for and not computed, because the
    /// client's rule for naming a project's directory may change; the id is unique.
    #[must_use]
    pub fn transcript_of(&self, session: SessionId) -> Option<PathBuf> {
        transcript_in(self.config_dir.as_ref()?, session)
    }
}

/// The length of a file, in bytes; 0 if there is none.
pub(super) fn length(path: &Path) -> u64 {
    path.symlink_metadata().map_or(0, |file| file.len())
}

/// The same, below this configuration directory.
#[must_use]
pub fn transcript_in(config_dir: &Path, session: impl std::fmt::Display) -> Option<PathBuf> {
    let name = format!("{session}.jsonl");
    let projects = std::fs::read_dir(config_dir.join("projects")).ok()?;
    projects
        .flatten()
        .map(|project| project.path().join(&name))
        .find(|path| path.is_file())
}
