//! The client's compaction settings from its files, arguments and environment, and whether these switch hooks off.
//!
//! They are read as numbers and switches; nothing in them is run.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use pitstop_agent::{
    self as agent,
    claude::{
        self, Given,
        limits::{CompactionSettings, SettingsFile},
    },
};

/// The largest file that is read, in bytes: the client's state file grows with its projects.
const LARGEST: u64 = 16 << 20;

/// The files of an organization's own settings, on Linux and on macOS.
const MANAGED: [&str; 2] = [
    "/etc/claude-code/managed-settings.json",
    "/Library/Application Support/ClaudeCode/managed-settings.json",
];

/// The sources from which the client takes its settings.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// The user's arguments for it.
    pub args: Vec<String>,
    /// The variables that are set for it over those of this process.
    pub env: Vec<(OsString, OsString)>,
    /// The client's configuration directory.
    pub config_dir: Option<PathBuf>,
    /// The project.
    pub project: PathBuf,
}

impl ClientSettings {
    /// Reads all of it. A file that is missing or is no file counts as empty.
    pub fn read(&self) -> CompactionSettings {
        let texts = self.texts();
        let files: Vec<_> = texts
            .iter()
            .map(|(name, text)| SettingsFile { name, text })
            .collect();
        let variables = agent::child_env(env::vars_os(), &self.env);
        let variable = |name: &str| {
            let mut set = variables.iter().rev();
            let (_, value) = set.find(|(known, _)| known == name)?;
            Some(value.to_string_lossy().into_owned())
        };
        let is_named = variable(claude::CONFIG_DIR).is_some_and(|dir| !dir.is_empty());
        let own = self.config_dir.as_deref();
        let state = own.and_then(|dir| text_of(&state_file(dir, is_named)));
        let mut read = CompactionSettings::read(&self.args, &variable, &files, state.as_deref());
        read.managed = managed().is_some_and(|text| !matches!(text.trim(), "" | "{}"));
        read
    }

    /// Returns the name of the settings that switch hooks off, and mods with them; `None` if no file that is known here does.
    pub fn without_hooks(&self) -> Option<&'static str> {
        let is_on = |text: &str, name| claude::setting(text, name) == Some(true);
        let words = ["disableAllHooks", "allowManagedHooksOnly"];
        if managed().is_some_and(|text| words.into_iter().any(|name| is_on(&text, name))) {
            return Some("managed settings");
        }
        let texts = self.texts();
        let mut said = texts
            .iter()
            .filter_map(|(name, text)| Some((*name, claude::setting(text, "disableAllHooks")?)));
        // The last file that sets it counts.
        said.next_back().and_then(|(name, off)| off.then_some(name))
    }

    /// Returns the settings files that exist, with the names that people know; files that take precedence come last.
    fn texts(&self) -> Vec<(&'static str, String)> {
        let own = self.config_dir.as_deref();
        let given = match claude::user_settings(&self.args) {
            None => None,
            Some(Given::Text(text)) => Some(text),
            Some(Given::File(file)) => text_of(&self.project.join(file)),
        };
        let texts = [
            (
                "your settings",
                own.and_then(|dir| text_of(&dir.join("settings.json"))),
            ),
            (
                "the project's settings",
                text_of(&self.project.join(".claude/settings.json")),
            ),
            (
                "the project's local settings",
                text_of(&self.project.join(".claude/settings.local.json")),
            ),
            ("--settings", given),
        ];
        let there = texts.into_iter();
        there
            .filter_map(|(name, text)| Some((name, text?)))
            .collect()
    }
}

/// Returns the organization's own settings, if there are any.
fn managed() -> Option<String> {
    MANAGED.iter().find_map(|file| text_of(Path::new(file)))
}

/// Returns the path of the client's state file: in its configuration directory if a variable names that, and beside it otherwise.
fn state_file(config_dir: &Path, is_named: bool) -> PathBuf {
    let place = if is_named {
        Some(config_dir)
    } else {
        config_dir.parent()
    };
    place.unwrap_or(config_dir).join(".claude.json")
}

/// Returns the text of a regular file. Reading anything else could block for ever.
fn text_of(path: &Path) -> Option<String> {
    let found = fs::metadata(path).ok()?;
    (found.is_file() && found.len() <= LARGEST)
        .then(|| fs::read_to_string(path).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_file_that_says_something_of_hooks_counts() {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join("project");
        fs::create_dir_all(project.join(".claude")).unwrap();
        let settings = |args: &[&str]| ClientSettings {
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: Vec::new(),
            config_dir: Some(home.path().to_owned()),
            project: project.clone(),
        };
        assert_eq!(settings(&[]).without_hooks(), None);
        let off = r#"{"disableAllHooks": true}"#;
        fs::write(home.path().join("settings.json"), off).unwrap();
        assert_eq!(settings(&[]).without_hooks(), Some("your settings"));
        let local = project.join(".claude/settings.local.json");
        fs::write(local, r#"{"disableAllHooks": false}"#).unwrap();
        assert_eq!(settings(&[]).without_hooks(), None);
        let given = settings(&["--settings", off]).without_hooks();
        assert_eq!(given, Some("--settings"));
    }
}
