//! The program that is hosted, with its arguments and environment.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use pitstop_agent::{self as agent, AgentKind, claude};
use pitstop_core::config::{Config, load::paths::Paths};

use super::StartError;

/// The name of the demo agent in the records of runs.
pub const DEMO: &str = "pitstop demo";

/// The task that the demo is given at its start.
const DEMO_TASK: &str = "Build tidepool, a small command-line feed reader, with tests and a README";

/// The agent that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Claude Code, or the program that `[agent] command` names.
    Claude,
    /// The built-in scripted agent.
    Demo,
    /// Any other program, as a command line.
    Command(String),
}

/// The agent that is hosted.
#[derive(Clone, Debug)]
pub struct Hosted {
    /// The kind of the agent.
    pub kind: AgentKind,
    /// The full path of its program.
    pub program: PathBuf,
    /// The arguments of ours that come before all others.
    pub lead_args: Vec<OsString>,
    /// The user's arguments.
    pub args: Vec<String>,
    /// The variables to set for it.
    pub env: Vec<(OsString, OsString)>,
    /// The name of the agent, for people and records.
    pub shown: String,
    /// The `pitstop` executable.
    pub exe: PathBuf,
    /// The prompt that it is given at its start.
    pub prompt: Option<String>,
}

/// Finds the agent, with these arguments after those of the configuration.
pub fn find(
    wanted: &Wanted,
    args: &[String],
    config: &Config,
    paths: &Paths,
) -> Result<Hosted, StartError> {
    let exe = env::current_exe()?;
    let (kind, mut words) = match wanted {
        Wanted::Demo => {
            return Ok(Hosted {
                kind: AgentKind::Demo,
                program: exe.clone(),
                lead_args: vec!["demo-agent".into()],
                prompt: args.is_empty().then(|| DEMO_TASK.to_owned()),
                args: args.to_vec(),
                env: agent_env(AgentKind::Demo, config, paths),
                shown: DEMO.to_owned(),
                exe,
            });
        }
        Wanted::Claude => (AgentKind::Claude, vec![config.agent.command.clone()]),
        Wanted::Command(command) => {
            let words = shell_words::split(command);
            (
                AgentKind::Generic,
                words.map_err(|_| StartError::OpenQuote)?,
            )
        }
    };
    if words.is_empty() {
        return Err(StartError::NoCommand);
    }
    let name = words.remove(0);
    let Some(program) = find_program(OsStr::new(&name)) else {
        return Err(StartError::NoAgent(kind, name));
    };
    let mut all = config.agent.args.clone();
    all.extend(args.iter().cloned());
    if kind == AgentKind::Claude && claude::prints_answer(&all) {
        return Err(StartError::NotInteractive);
    }
    words.extend(all);
    Ok(Hosted {
        kind,
        program,
        lead_args: Vec::new(),
        args: words,
        env: agent_env(kind, config, paths),
        shown: name,
        exe,
        prompt: None,
    })
}

/// The directories below the home into which the client's own installers put it. A shell that is no login shell may lack the first
/// in its `PATH`, and the second is only named by an alias.
const CLIENT_DIRS: [&str; 2] = [".local/bin", ".claude/local"];

/// Returns the program of this name in the `PATH`, or at this path; always absolute. The client is found where it installs itself, too.
///
/// Symbolic links are kept: the shims of tool managers are links to one program that goes by the name it is called by.
pub fn find_program(name: &OsStr) -> Option<PathBuf> {
    let runs = |path: &Path| {
        path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    let path = Path::new(name);
    let found = if path.components().count() > 1 {
        runs(path).then(|| path.to_owned())
    } else {
        let path = env::var_os("PATH");
        let home = env::home_dir().filter(|_| name == "claude");
        let own = home.map(|home| CLIENT_DIRS.map(|dir| home.join(dir)));
        path.iter()
            .flat_map(env::split_paths)
            .chain(own.into_iter().flatten())
            .map(|dir| dir.join(name))
            .find(|path| runs(path))
    };
    std::path::absolute(found?).ok()
}

/// Returns the variables for the agent: the name of our terminal, what the user set, and for the demo a directory of its own, so
/// that it leaves the user's files alone.
pub fn agent_env(kind: AgentKind, config: &Config, paths: &Paths) -> Vec<(OsString, OsString)> {
    let names = if kind == AgentKind::Claude {
        claude::TERMINAL_NAME
    } else {
        agent::TERMINAL_NAME
    };
    let unset = |name: &&(&str, &str)| !config.agent.env.contains_key(name.0);
    let mut env: Vec<(OsString, OsString)> = names
        .iter()
        .filter(unset)
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let own = config
        .agent
        .env
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    env.extend(own);
    let (name, value) = claude::TODO_TOOLS;
    let users = users_todo_tools(config, env::var_os(name).as_deref());
    if kind == AgentKind::Claude && config.agent.todo_tools && users.is_none() {
        env.push((name.into(), value.into()));
    }
    if kind == AgentKind::Demo {
        env.push(("PITSTOP_DEMO_DIR".into(), demo_dir(paths).into()));
    }
    env
}

/// Returns whether the user's own variable switches the client's to-do tools on: as it is configured, else as it is inherited.
fn users_todo_tools(config: &Config, inherited: Option<&OsStr>) -> Option<bool> {
    let set = config.agent.env.get(claude::TODO_TOOLS.0).map(OsStr::new);
    let value = set.or(inherited)?;
    Some(value.to_str().is_some_and(claude::is_on))
}

/// Reports whether the client has its to-do tools switched on.
pub fn has_todo_tools(config: &Config) -> bool {
    let inherited = env::var_os(claude::TODO_TOOLS.0);
    users_todo_tools(config, inherited.as_deref()).unwrap_or(config.agent.todo_tools)
}

/// Returns the directory in which the demo keeps what Claude Code keeps in its own directory.
pub fn demo_dir(paths: &Paths) -> PathBuf {
    paths.state_dir().join("demo")
}

/// Returns the agent's own configuration directory.
pub fn agent_config_dir(kind: AgentKind, config: &Config, paths: &Paths) -> Option<PathBuf> {
    match kind {
        AgentKind::Generic => None,
        AgentKind::Demo => Some(demo_dir(paths)),
        AgentKind::Claude => claude_config_dir(config),
    }
}

/// Returns the directory in which Claude Code keeps its settings and transcripts, by the variables that it is given.
pub fn claude_config_dir(config: &Config) -> Option<PathBuf> {
    let set = config.agent.env.get(claude::CONFIG_DIR).map(OsString::from);
    set.or_else(|| env::var_os(claude::CONFIG_DIR))
        .filter(|dir| !dir.is_empty())
        .map(PathBuf::from)
        .or_else(|| Some(env::home_dir()?.join(".claude")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_program_behind_a_link_keeps_the_name_of_the_link() {
        let dir = tempfile::tempdir().unwrap();
        let manager = dir.path().join("manager");
        std::fs::write(&manager, "#!/bin/sh\n").unwrap();
        let shim = dir.path().join("claude");
        symlink(&manager, &shim).unwrap();
        assert_eq!(find_program(shim.as_os_str()), None, "it cannot be run");
        std::fs::set_permissions(&manager, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(find_program(shim.as_os_str()), Some(shim.clone()));
        symlink("/nowhere", dir.path().join("dangling")).unwrap();
        assert_eq!(find_program(dir.path().join("dangling").as_os_str()), None);
    }

    #[test]
    fn the_users_own_variable_decides_about_the_todo_tools() {
        let mut config = Config::default();
        let of = |config: &Config, inherited: Option<&str>| {
            users_todo_tools(config, inherited.map(OsStr::new))
        };
        assert_eq!((of(&config, None), config.agent.todo_tools), (None, true));
        assert_eq!(of(&config, Some("0")), Some(false));
        let name = claude::TODO_TOOLS.0.to_owned();
        config.agent.env.insert(name, "true".to_owned());
        assert_eq!(of(&config, Some("0")), Some(true));
        config.agent.env.clear();
        config.agent.todo_tools = false;
        assert_eq!(of(&config, None), None);
        assert_eq!(of(&config, Some("1")), Some(true));
    }

    #[test]
    fn what_the_path_finds_is_absolute_and_a_plain_file_is_no_program() {
        let sh = find_program(OsStr::new("sh")).unwrap();
        assert!(sh.is_absolute(), "{}", sh.display());
        // The tests run in the directory of the crate.
        assert_eq!(find_program(OsStr::new("./Cargo.toml")), None);
    }

    #[test]
    fn the_client_s_files_are_where_its_own_variables_put_them() {
        let mut config = Config::default();
        let usual = claude_config_dir(&config);
        let variable = claude::CONFIG_DIR.to_owned();
        config
            .agent
            .env
            .insert(variable.clone(), "/home/u/.claude-work".to_owned());
        let there = Some(PathBuf::from("/home/u/.claude-work"));
        assert_eq!(claude_config_dir(&config), there);
        assert_ne!(usual, there);
        // The client takes an empty one for none.
        config.agent.env.insert(variable, String::new());
        let home = env::home_dir().map(|home| home.join(".claude"));
        assert_eq!(claude_config_dir(&config), home);
    }
}
