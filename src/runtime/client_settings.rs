//! What the client's settings files, arguments and environment say about its compaction.
//!
//! They are read as numbers and switches; nothing in them is run.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use crate::agent::{
    self,
    claude::{
        self, Given,
        limits::{CompactionSettings, SettingsFile},
    },
};

/// The largest file that is read, in bytes: the client's state file grows with its projects.
const LARGEST: u64 = 16 << 20;

/// Where the client looks.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// The user's arguments for it.
    pub args: Vec<String>,
    /// The variables that are set for it over those of this process.
    pub env: Vec<(OsString, OsString)>,
    /// Its configuration directory.
    pub config_dir: Option<PathBuf>,
    /// The project.
    pub project: PathBuf,
}

impl ClientSettings {
    /// Reads all of it. A file that is missing or is no file counts as empty.
    #[must_use]
    pub fn read(&self) -> CompactionSettings {
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
        let files: Vec<_> = texts
            .iter()
            .filter_map(|(name, text)| {
                Some(SettingsFile {
                    name,
                    text: text.as_deref()?,
                })
            })
            .collect();
        let state = own.and_then(|dir| text_of(&state_file(dir)));
        let variables = agent::child_env(env::vars_os(), &self.env);
        let variable = |name: &str| {
            let mut set = variables.iter().rev();
            let (_, value) = set.find(|(known, _)| known == name)?;
            Some(value.to_string_lossy().into_owned())
        };
        CompactionSettings::read(&self.args, &variable, &files, state.as_deref())
    }
}

/// The client's state file lies in its configuration directory where that was named, and beside it otherwise.
fn state_file(config_dir: &Path) -> PathBuf {
    let named = env::var_os("CLAUDE_CONFIG_DIR").is_some_and(|dir| !dir.is_empty());
    let place = if named {
        Some(config_dir)
    } else {
        config_dir.parent()
    };
    place.unwrap_or(config_dir).join(".claude.json")
}

/// The text of a plain file. What is no file could keep us waiting for ever.
fn text_of(path: &Path) -> Option<String> {
    let found = fs::metadata(path).ok()?;
    (found.is_file() && found.len() <= LARGEST)
        .then(|| fs::read_to_string(path).ok())
        .flatten()
}
