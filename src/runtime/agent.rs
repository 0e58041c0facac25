//! The start of an agent by the shell: settings file, command line, environment.

use std::{
    env,
    ffi::OsString,
    io::{self, Read as _},
    os::unix::process::CommandExt as _,
    path::{Component, Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use pitstop_agent::{
    self as agent, AgentKind, Launch, Start,
    bridge::{self, ToolsBy},
    claude::{self, projects::directory_of},
};
use pitstop_base::{
    clean::{self, chain},
    redact::redact,
};
use pitstop_core::{
    app::effect::StartAgent, config::load::paths::ensure_private_dir, lineage::IterationId,
};
use pitstop_demo as demo;
use pitstop_store::{FilesError, PrivateDir, run_dir::RunDir};
use pitstop_terminal::pane::PaneSpec;
use pitstop_transcript::{
    SessionId,
    ending::{Choices, last_choices},
    tail::holds_conversation,
};

use super::{client_settings::ClientSettings, daemon::wait_until};

/// The hidden subcommand by which agents are started: it makes them die with us and registers them, then becomes them.
pub const SHIM: &str = "exec-agent";

/// The time that the client may take to report its version: 0.03 s if it has run before, a second or more if it has not.
const VERSION_LIMIT: Duration = Duration::from_secs(3);

/// The number of bytes of its version output that are read at most.
const VERSION_BYTES: usize = 256;

/// The files in which an organization lists the only MCP servers that the client may have, on Linux and macOS (in 2.1.197 and 2.1.330).
const MANAGED_SERVERS: [&str; 2] = [
    "/etc/claude-code/managed-mcp.json",
    "/Library/Application Support/ClaudeCode/managed-mcp.json",
];

/// The plan for starting agents, the same for every iteration.
#[derive(Clone, Debug)]
pub struct AgentPlan {
    /// The kind of the program.
    pub kind: AgentKind,
    /// The program, found in the `PATH`.
    pub program: PathBuf,
    /// The arguments of ours that come before all others.
    pub lead_args: Vec<OsString>,
    /// The arguments that the user wrote after `--`, and `[agent] args`.
    pub user_args: Vec<String>,
    /// The variables to set for it.
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
    /// The directory for settings when the project cannot be written.
    pub spare_dir: PathBuf,
    /// The user's state directory, in which the supervisor keeps its own files.
    pub state_dir: PathBuf,
    /// The agent's own configuration directory, below which transcripts may be read.
    pub config_dir: Option<PathBuf>,
}

impl AgentPlan {
    /// Returns the program to run in the pane for this start.
    ///
    /// A fresh session begins at `place`, where the one before it worked, if that is known.
    /// With `no_compaction` the client's own auto-compaction is off; without, it is not touched.
    /// A session that has nothing to resume is begun as a new one: the client would refuse to resume it and end.
    pub fn spec(
        &self,
        start: &StartAgent,
        place: Option<&Path>,
        no_compaction: bool,
        mods: Option<PathBuf>,
        tools: ToolsBy,
        reports_choices: bool,
    ) -> io::Result<PaneSpec> {
        let (session, way) = self.way(start);
        let resumed = match way {
            Start::Resume => Some(session),
            Start::Fresh => claude::resumed_session(&self.user_args).filter(|_| start.first),
        };
        let place = match resumed {
            Some(session) => self.place_of(session),
            None => place.map(Path::to_owned),
        };
        let is_new = |place: &PathBuf| !start.first || *place != self.project;
        let place = place.filter(|place| is_new(place) && self.is_there(place));
        let settings_file =
            self.write_settings(start.iteration, no_compaction, tools, reports_choices)?;
        let mcp_config = (tools == ToolsBy::Server)
            .then(|| claude::mcp_config(&self.exe, &self.observe, start.iteration.get()))
            .transpose()
            .map_err(io::Error::other)?;
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
            user_args: self.arguments(start, place.is_some(), reports_choices),
            settings_file,
            mods,
            mcp_config,
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
            cwd: place.unwrap_or_else(|| self.project.clone()),
        })
    }

    /// Returns the user's arguments for this start, with what a person has chosen in the client since the first; `elsewhere` is true
    /// if it begins in another directory.
    fn arguments(&self, start: &StartAgent, elsewhere: bool, reports_choices: bool) -> Vec<String> {
        let mut args = if elsewhere {
            claude::arguments_elsewhere(&self.user_args, &self.project)
        } else {
            self.user_args.clone()
        };
        if let Some(model) = &start.model {
            args = claude::arguments_with_model(&args, model);
        }
        let resumed = (start.resume && !start.first).then_some(start.session);
        let before = start.after.or(resumed);
        let mut left = before.map_or_else(Choices::default, |one| self.choices_in(one));
        left.mode = left.mode.filter(|_| reports_choices);
        with_choices(args, left)
    }

    /// Returns the arguments with which a person goes on with a session that had `args`: a mode or a name among them would outweigh
    /// what was chosen in it since. What they do not name, the client restores.
    pub fn arguments_as_left(
        &self,
        args: &[String],
        session: SessionId,
        reports_choices: impl FnOnce() -> bool,
    ) -> Vec<String> {
        let (mode, name) = (claude::names_mode(args), claude::names_session(args));
        let mut left = Choices::default();
        if mode || name {
            left = self.choices_in(session);
        }
        left.name = left.name.filter(|_| name);
        left.mode = left.mode.filter(|_| mode && reports_choices());
        with_choices(args.to_vec(), left)
    }

    /// Returns what a person has chosen in a session of the client, as far as it is known.
    fn choices_in(&self, session: SessionId) -> Choices {
        let Some(transcript) = self.transcript_of(session) else {
            return Choices::default();
        };
        last_choices(transcript).unwrap_or_else(|error| {
            tracing::warn!(error = chain(&error), "what was chosen in it is not known");
            Choices::default()
        })
    }

    /// Reports whether an agent can be started in this directory; if not, it is started in the project.
    pub(super) fn is_there(&self, place: &Path) -> bool {
        let there = place.is_dir();
        if !there {
            let (place, project) = (place.display(), self.project.display());
            tracing::warn!(%place, %project, "the agent's directory is gone: the project's counts");
        }
        there
    }

    /// Returns the directory in which a session works, according to its transcript.
    pub fn place_of(&self, session: SessionId) -> Option<PathBuf> {
        directory_of(&self.transcript_of(session)?)
    }

    /// Returns the variables that are set for it over those of this process.
    fn variables(&self, no_compaction: bool) -> Vec<(OsString, OsString)> {
        let mut env = self.env.clone();
        if no_compaction && self.kind.reports() {
            let (name, value) = claude::NO_AUTO_COMPACTION;
            env.push((name.into(), value.into()));
        }
        env
    }

    /// Returns the sources from which the client, if it is started so, takes its compaction settings.
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

    /// Returns the length of the session's transcript in bytes; 0 if there is none yet.
    pub(super) fn transcript_length(&self, start: &StartAgent) -> u64 {
        let path = self.transcript_of(start.session);
        path.map_or(0, |path| length(&path))
    }

    /// Reports whether the session has a conversation on disk. A transcript that cannot be read counts as having one.
    pub fn can_resume(&self, session: SessionId) -> bool {
        let Some(path) = self.transcript_of(session) else {
            return false;
        };
        holds_conversation(path)
            .inspect_err(|error| tracing::warn!(%error, %session, "the transcript cannot be read"))
            .unwrap_or(true)
    }

    /// Reports whether it runs mods: the client does, and the demo does if its variable is set to 1.
    pub fn runs_mods(&self) -> bool {
        let variable = demo::BRIDGE_VARIABLE;
        let given = self.env.iter().find(|(name, _)| name == variable);
        let given = || given.map(|(_, value)| value.clone());
        match self.kind {
            AgentKind::Claude => true,
            AgentKind::Generic => false,
            AgentKind::Demo => given()
                .or_else(|| env::var_os(variable))
                .is_some_and(|is| is == "1"),
        }
    }

    /// Writes the per-run settings beside the iteration's other files, and nowhere else.
    pub(super) fn write_settings(
        &self,
        iteration: IterationId,
        no_compaction: bool,
        tools: ToolsBy,
        reports_switches: bool,
    ) -> io::Result<PathBuf> {
        if !self.kind.reports() {
            return Ok(PathBuf::new());
        }
        let user = self.user_settings()?;
        let own = self.own_settings();
        let directory = self.directory_of(iteration)?;
        let values = claude::SettingsValues {
            exe: &self.exe,
            observe: &self.observe,
            bridge: &self.bridge_files(),
            scratchpad: &self.scratchpad,
            given: directory.path(),
            own: own.as_deref(),
            server: tools == ToolsBy::Server,
            no_compaction,
            reports_switches,
        };
        let settings = claude::settings(values, user.as_deref()).map_err(io::Error::other)?;
        let bytes = settings.json.as_bytes();
        directory
            .write_private("settings.json", bytes)
            .map_err(io::Error::other)?;
        let path = directory.path().join("settings.json");
        // A directory that was moved away still takes files, but the client would not find them.
        path.metadata().map_err(|error| {
            let place = path.display();
            io::Error::new(error.kind(), format!("{place} is not there once written"))
        })?;
        Ok(path)
    }

    /// Returns the files from which the mod may read its access right. The mod cannot recognize another user's file, so only
    /// directories count that no other user can write to.
    fn bridge_files(&self) -> Vec<PathBuf> {
        // It is written beside the other one, under the same name (`api::server::secrets`).
        let usual = self.observe.with_extension("bridge");
        let other = usual.file_name().map(|name| self.spare_dir.join(name));
        // Another user who made it first could name a socket of theirs in it.
        let is_ours = || ensure_private_dir(&self.spare_dir).is_ok();
        let other = other.filter(|file| *file != usual && is_ours());
        std::iter::once(usual).chain(other).collect()
    }

    /// Asks the client for its version; returns `None` if it does not answer in time.
    pub fn ask_version(&self) -> Option<String> {
        let mut child = Command::new(&self.program)
            .arg("--version")
            .env_clear()
            .envs(agent::child_env(std::env::vars_os(), &self.env))
            .current_dir(&self.project)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let end = Instant::now() + VERSION_LIMIT;
        let status = wait_until(end, &mut child)?;
        // A process that it has started may hold its output open: only the output that is there is read.
        let mut output = child.stdout.take()?;
        rustix::io::ioctl_fionbio(&output, true).ok()?;
        let mut said = [0; VERSION_BYTES];
        let length = output.read(&mut said).ok()?;
        let said = String::from_utf8_lossy(&said[..length]);
        let version = said.split_whitespace().next()?;
        let is_version = version.starts_with(|c: char| c.is_ascii_digit());
        (status.success() && is_version).then(|| version.to_owned())
    }

    /// Returns the directory for the files that the client is given at a start.
    fn directory_of(&self, iteration: IterationId) -> io::Result<PrivateDir> {
        let directory = match &self.files {
            Some(files) => files.iteration(iteration),
            None => PrivateDir::open_path(&self.spare_dir),
        };
        directory.map_err(io::Error::other)
    }

    /// Writes the mods beside the settings; returns the directory that the client should load.
    pub(super) fn write_mods(&self, iteration: IterationId, tools: bool) -> io::Result<PathBuf> {
        let directory = self.directory_of(iteration)?;
        let write = || {
            let mods = directory.dir("bridge")?;
            for ([plugin, part], name, text) in bridge::FILES {
                let directory = mods.dir(plugin)?.dir(part)?;
                let text = bridge::text_of(name, text, tools);
                directory.write_for_now(name, text.as_bytes())?;
            }
            Ok::<_, FilesError>(mods.path().to_owned())
        };
        write().map_err(io::Error::other)
    }

    /// Returns the text of the user's own `--settings`.
    pub(super) fn user_settings(&self) -> io::Result<Option<String>> {
        match claude::user_settings(&self.user_args) {
            None => Ok(None),
            Some(claude::Given::Text(text)) => Ok(Some(text)),
            Some(claude::Given::File(file)) => {
                std::fs::read_to_string(self.project.join(file)).map(Some)
            }
        }
    }

    /// Returns the text of the settings in the agent's configuration directory.
    fn own_settings(&self) -> Option<String> {
        std::fs::read_to_string(self.config_dir.as_ref()?.join("settings.json")).ok()
    }

    /// Returns the user's own status line command, which ours runs: from their `--settings`, else from the settings in
    /// the agent's configuration directory. The project's settings have no influence on commands of ours.
    pub fn user_status_line(&self) -> Option<String> {
        let given = self.user_settings().ok().flatten();
        given
            .as_deref()
            .and_then(claude::user_status_line)
            .or_else(|| claude::user_status_line(&self.own_settings()?))
    }

    /// Reports whether a transcript at this path may be read: only below the agent's own configuration directory.
    pub fn may_read(&self, transcript: &Path) -> bool {
        let plain = transcript
            .components()
            .all(|part| !matches!(part, Component::ParentDir | Component::CurDir));
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

    /// Returns the transcript of a session, if there is one. Its path is searched for and not computed, because the
    /// client's rule for naming a project's directory may change; the id is unique.
    pub fn transcript_of(&self, session: SessionId) -> Option<PathBuf> {
        transcript_in(self.config_dir.as_ref()?, session)
    }
}

/// Returns the arguments with what a person has chosen in the session before instead of what they choose.
fn with_choices(mut args: Vec<String>, left: Choices) -> Vec<String> {
    if let Some(name) = &left.name {
        args = claude::arguments_with_name(&args, &clean::one_line(&redact(name)));
    }
    match left.mode {
        Some(mode) => claude::arguments_in_mode(&args, &mode),
        None => args,
    }
}

/// Reports whether the client accepts an MCP server for the session: where an organization manages the servers, it ends at once.
pub(super) fn takes_servers() -> bool {
    !MANAGED_SERVERS.iter().any(|file| Path::new(file).exists())
}

/// Returns the length of a file in bytes; 0 if there is none.
pub(super) fn length(path: &Path) -> u64 {
    path.symlink_metadata().map_or(0, |file| file.len())
}

/// Returns the transcript of a session below this configuration directory, if there is one.
pub fn transcript_in(config_dir: &Path, session: impl std::fmt::Display) -> Option<PathBuf> {
    let name = format!("{session}.jsonl");
    let projects = std::fs::read_dir(config_dir.join("projects")).ok()?;
    projects
        .flatten()
        .map(|project| project.path().join(&name))
        .filter(|path| path.is_file())
        .max_by_key(|path| path.metadata().and_then(|file| file.modified()).ok())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn the_mods_are_given_no_directory_in_which_others_can_write() {
        let home = tempfile::tempdir().unwrap();
        let spare_dir = home.path().join("spare");
        let plan = AgentPlan {
            kind: AgentKind::Claude,
            program: PathBuf::new(),
            lead_args: Vec::new(),
            user_args: Vec::new(),
            env: Vec::new(),
            exe: PathBuf::new(),
            observe: home.path().join("run/p.observe"),
            scratchpad: PathBuf::new(),
            registry: PathBuf::new(),
            project: PathBuf::new(),
            files: None,
            spare_dir: spare_dir.clone(),
            state_dir: PathBuf::new(),
            config_dir: None,
        };
        let usual = home.path().join("run/p.bridge");
        let both = [usual.clone(), spare_dir.join("p.bridge")];
        assert_eq!(plan.bridge_files(), both);
        // It is ours from now on: in /tmp no one else can take the name.
        let mode = fs::metadata(&spare_dir).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::set_permissions(&spare_dir, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(plan.bridge_files(), [usual]);
    }
}
