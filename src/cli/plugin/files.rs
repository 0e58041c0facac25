//! Writes the plugin into a directory of the user's, and removes it again: the files that are ours, and no other.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use serde_json::json;

use crate::{
    cli::out::{self, Failure},
    supervisor::program::claude_config_dir,
};
use pitstop_agent::bridge::{PLUGIN, place_of};
use pitstop_core::config::Config;
use pitstop_store::PrivateDir;

/// The directory of the handoffs, in that of the plugin.
const HANDOFFS: &str = "handoffs";

/// The file with the paths of the program and of the handoffs.
const PLACE: (&str, &str) = ("hooks", "place.js");

/// Writes the plugin, and returns what the person is to know.
pub fn install(directory: &Path, json: bool) -> Result<String, Failure> {
    let written = write(directory)?;
    let object = || json!({ "directory": written, "command": command(&written) });
    Ok(out::render(json, object, || described(&written)))
}

/// Removes the plugin, and returns what was removed.
pub fn remove(directory: &Path, json: bool) -> Result<String, Failure> {
    let removed = take_away(directory)?;
    let object = || json!({ "directory": removed, "removed": true });
    Ok(out::render(json, object, || {
        let removed = out::path(&removed);
        format!("removed the plugin and its handoffs: {removed}\n")
    }))
}

/// The names of the files and directories that are ours, in the plugin's directory.
fn ours() -> impl Iterator<Item = (&'static str, &'static str)> {
    let fixed = PLUGIN
        .iter()
        .map(|(directory, name, _)| (*directory, *name));
    fixed.chain([PLACE])
}

fn write(directory: &Path) -> Result<PathBuf, Failure> {
    let program = env::current_exe().map_err(out::cannot("find", Path::new("pitstop")))?;
    let directory = std::path::absolute(directory).map_err(out::cannot("find", directory))?;
    refuse_foreign(&directory)?;
    let plugin = PrivateDir::open_path(&directory)?;
    let handoffs = plugin.dir(HANDOFFS)?;
    let place = place_of(utf8(&program)?, utf8(handoffs.path())?);
    for (below, name, text) in PLUGIN {
        plugin.dir(below)?.write_private(name, text.as_bytes())?;
    }
    plugin
        .dir(PLACE.0)?
        .write_private(PLACE.1, place.as_bytes())?;
    Ok(directory)
}

fn utf8(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| {
        let path = out::path(path);
        out::failed(
            format!("expected a path that is valid UTF-8, found {path}"),
            "",
        )
    })
}

/// Finds out, without a change, that a directory holds nothing, or a plugin of ours and nothing else.
fn refuse_foreign(directory: &Path) -> Result<(), Failure> {
    let foreign = |found: &str| {
        out::failed(
            format!(
                "{} holds other files, such as {found}",
                out::path(directory)
            ),
            "move them elsewhere, or name a directory of the plugin's own; nothing was changed",
        )
    };
    for name in names(directory)? {
        let is_ours = name == HANDOFFS || ours().any(|(below, _)| below == name);
        let path = directory.join(&name);
        if !is_ours || !path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            return Err(foreign(&name));
        }
        for file in names(&path)? {
            let known = ours().any(|(below, known)| below == name && known == file);
            if !known && name != HANDOFFS {
                return Err(foreign(&format!("{name}/{file}")));
            }
        }
    }
    Ok(())
}

/// Returns the names in a directory; none where there is no such directory.
fn names(directory: &Path) -> Result<Vec<String>, Failure> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(out::cannot("list", directory)(error)),
    };
    let name = |entry: io::Result<fs::DirEntry>| {
        Some(entry.ok()?.file_name().to_string_lossy().into_owned())
    };
    Ok(entries.filter_map(name).collect())
}

fn take_away(directory: &Path) -> Result<PathBuf, Failure> {
    let directory = std::path::absolute(directory).map_err(out::cannot("find", directory))?;
    let manifest = directory.join(PLUGIN[0].0).join(PLUGIN[0].1);
    let place = directory.join(PLACE.0).join(PLACE.1);
    if directory.is_symlink() {
        return Err(out::failed(
            format!("{} is a link", out::path(&directory)),
            "name the directory that it leads to",
        ));
    }
    if !manifest.is_file() || !place.is_file() {
        return Err(out::failed(
            format!(
                "there is no plugin of pitstop's in {}",
                out::path(&directory)
            ),
            "name the directory that it was installed into",
        ));
    }
    refuse_foreign(&directory)?;
    fs::remove_dir_all(&directory).map_err(out::cannot("remove", &directory))?;
    Ok(directory)
}

/// Returns the command that has the client load the plugin. Below its directory `skills` the client looks by itself.
fn command(directory: &Path) -> String {
    if is_skill(directory) {
        return "claude".to_owned();
    }
    format!(
        "claude --plugin-dir {}",
        shell_words::quote(&directory.to_string_lossy())
    )
}

/// Reports whether each session of the user's looks for plugins in the directory above.
fn is_skill(directory: &Path) -> bool {
    claude_config_dir(&Config::default())
        .is_some_and(|own| directory.parent() == Some(&own.join("skills")))
}

fn described(directory: &Path) -> String {
    let shown = out::path(directory);
    let loaded = if is_skill(directory) {
        "each session of yours loads it from now on, without a flag".to_owned()
    } else {
        "for one session; in ~/.claude/skills/pitstop it is loaded by each".to_owned()
    };
    format!(
        "installed in {shown}; nothing else was written\n\n  \
         {}    {loaded}\n\n\
         It shows a gauge above the prompt, warns at each line, keeps the session's handoff in\n\
         {shown}/{HANDOFFS}, and at the compact line, or by /pitstop:reboot, asks\n\
         whether the conversation is replaced by it. Nothing is replaced without your yes.\n\
         It cannot start a fresh process, reboot in the middle of a turn, undo a reboot, decide by itself,\n\
         keep a history, or be watched from elsewhere: `pitstop` hosts the client and does all of that.\n\
         Claude Code before 2.1.287 ignores it without a word. `pitstop plugin remove {}` removes it.\n",
        command(directory),
        shell_words::quote(&directory.to_string_lossy())
    )
}
