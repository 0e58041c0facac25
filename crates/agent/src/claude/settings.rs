//! The per-run settings file: hooks and status line that call `pitstop`, the permission for the scratchpad, and none for what
//! the client was given.
//!
//! The commands are short, for the client shows them in the chat wherever it mentions a hook. The values that they need are
//! in the file's own `env`: a daemon of the client that continues the session has the environment of whichever session
//! started it, which may be hosted by another supervisor, but it passes this file on.
//!
//! Measured with Claude Code 2.1.197 and 2.1.330:
//!
//! - `env` of `--settings` wins over the process's own environment, in hooks and in the status line, and in the daemon too.
//! - Of two `--settings` the last wins, so the user's own is merged into ours. Hooks of its settings
//!   files run beside ours; its `statusLine` is replaced.
//! - A permission for one absolute file is `Edit(//abs/path)` (it covers `Write` too) and
//!   `Read(//abs/path)`; `Write(…)` rules and single slashes match nothing; `*?[]` and `\` are
//!   pattern characters and take a backslash.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// The hook for a switch of the model.
const SWITCHED: &str = "PostModelSwitch";

/// The hooks we ask for, in the order a session meets them. `PostCompact` is none of them: the client prints the command of each
/// such hook into the chat, and `SessionStart` and the transcript report a compaction too.
pub const EVENTS: [&str; 15] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "Elicitation",
    "PostToolUse",
    "PostToolUseFailure",
    "Notification",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    SWITCHED,
    "Stop",
    "StopFailure",
    "SessionEnd",
];

/// The time in seconds that a permission's hook may wait for a person's answer from afar: a day. The dialog is open meanwhile, and the
/// first answer counts.
pub const PERMISSION_SECONDS: u64 = 86_400;

/// The variable that names the `pitstop` executable, for the commands in the settings file.
pub const PROGRAM_VARIABLE: &str = "PITSTOP";

/// The variable that names the file with the observe right, for hooks that are not given it as an argument.
pub const OBSERVE_VARIABLE: &str = "PITSTOP_OBSERVE";

/// The variable that names the files with the bridge's right, one in a line, for the mod in the client: the first that is there
/// counts.
pub const BRIDGE_VARIABLE: &str = "PITSTOP_BRIDGE";

/// The paths and choices that go into the settings file.
#[derive(Clone, Copy, Debug)]
pub struct SettingsValues<'a> {
    /// The `pitstop` executable, absolute.
    pub exe: &'a Path,
    /// The file with the observe right, absolute.
    pub observe: &'a Path,
    /// The files with the bridge's right, absolute: the present one, and the one that there would be where the state directory takes no files.
    pub bridge: &'a [PathBuf],
    /// The scratchpad file that the agent may read and edit without asking, absolute.
    pub scratchpad: &'a Path,
    /// The directory of the files that the client was given for this session, absolute: the agent may not change them.
    pub given: &'a Path,
    /// The text of the settings in the user's configuration directory, for the looks of their status line.
    pub own: Option<&'a str>,
    /// True if the tools of our MCP server are allowed without asking.
    pub server: bool,
    /// True if the client is to leave compaction to us, the early kinds included.
    pub no_compaction: bool,
    /// True if the client has the hook for a switch of the model: one that does not know it ignores all hooks (measured with 2.1.197).
    pub reports_switches: bool,
}

/// The settings by which the client compacts before its window is full: while a session is idle, and with a summary that it
/// has written ahead. `DISABLE_AUTO_COMPACT` is about the full window.
const EARLY_COMPACTION: [&str; 2] = ["idleCompaction", "precomputeCompactionEnabled"];

/// The per-run settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The text of the file.
    pub json: String,
    /// The status line command of the user's own `--settings`, to be chained by ours.
    pub user_status_line: Option<String>,
}

/// The reason why no settings could be made.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The user's own `--settings` is not JSON.
    #[error("expected the text of --settings to be a JSON object: {0}")]
    NotJson(#[from] serde_json::Error),
    /// Part of the user's own `--settings` has another form than ours can join.
    #[error("expected `{field}` in --settings to be {expected}")]
    Shape {
        /// The field of the settings.
        field: &'static str,
        /// The form that was expected.
        expected: &'static str,
    },
    /// A path cannot be written in a settings file.
    #[error("expected a path that is valid UTF-8, found {0}")]
    Path(PathBuf),
}

/// The name of our MCP server in the client.
const SERVER: &str = "pitstop";

/// Returns the configuration that adds our MCP server, for the agent of this iteration.
pub fn mcp_config(exe: &Path, observe: &Path, iteration: u64) -> Result<String, SettingsError> {
    let iteration = iteration.to_string();
    let args = [
        "mcp",
        "--iteration",
        &iteration,
        "--observe",
        path_text(observe)?,
    ];
    // Its tools are in the first request, and not only announced.
    let server =
        json!({ "type": "stdio", "command": path_text(exe)?, "args": args, "alwaysLoad": true });
    Ok(json!({ "mcpServers": { SERVER: server } }).to_string())
}

/// Makes the per-run settings: hooks and status line that call `pitstop`, permission for the
/// scratchpad, none for its own directory, joined with the user's own `--settings` text.
pub fn settings(values: SettingsValues<'_>, user: Option<&str>) -> Result<Settings, SettingsError> {
    let mut root: Map<String, Value> = user.map_or(Ok(Map::new()), serde_json::from_str)?;
    let user_status_line = root.get("statusLine").and_then(status_line_command);

    let env = inner_object(&mut root, "env")?;
    env.insert(PROGRAM_VARIABLE.into(), path_text(values.exe)?.into());
    env.insert(OBSERVE_VARIABLE.into(), path_text(values.observe)?.into());
    let bridge: Result<Vec<&str>, _> = values.bridge.iter().map(|file| path_text(file)).collect();
    env.insert(BRIDGE_VARIABLE.into(), bridge?.join("\n").into());

    let hooks = inner_object(&mut root, "hooks")?;
    let is_known = |event: &&str| values.reports_switches || *event != SWITCHED;
    for event in EVENTS.into_iter().filter(is_known) {
        let command = pitstop_command(&format!("hook {event}"));
        let timeout = if event == "PermissionRequest" {
            PERMISSION_SECONDS
        } else {
            5
        };
        // The user's own hooks are kept: hooks of one event run side by side.
        inner_list(hooks, event, "hooks")?.push(
            json!({ "hooks": [{ "type": "command", "command": command, "timeout": timeout }] }),
        );
    }

    let permissions = inner_object(&mut root, "permissions")?;
    let allow = inner_list(permissions, "allow", "permissions.allow")?;
    let file = rule_path(values.scratchpad)?;
    allow.extend(["Read", "Edit"].map(|tool| Value::from(format!("{tool}({file})"))));
    if values.server {
        // All tools of the server, for it has no others than ours.
        allow.push(format!("mcp__{SERVER}").into());
    }

    // The client reloads a mod when its files change: edited by the agent, it would run what the agent likes.
    let deny = inner_list(permissions, "deny", "permissions.deny")?;
    deny.push(format!("Edit({}/**)", rule_path(values.given)?).into());

    let line = status_line(root.get("statusLine"), values.own);
    root.insert("statusLine".into(), line);
    if values.no_compaction {
        root.extend(EARLY_COMPACTION.map(|name| (name.to_owned(), Value::from(false))));
    }
    let json = serde_json::to_string_pretty(&root)?;
    Ok(Settings {
        json,
        user_status_line,
    })
}

/// Reports whether the client takes this value.
type IsValid = fn(&Value) -> bool;

/// How a status line is drawn, with what the client takes for each: it refuses all settings for a value of another type.
const LOOKS: [(&str, IsValid); 3] = [
    ("padding", Value::is_number),
    ("refreshInterval", Value::is_number),
    ("hideVimModeIndicator", Value::is_boolean),
];

/// Returns the status line that calls `pitstop`, drawn as the user's own: the one given, else that of their settings.
fn status_line(given: Option<&Value>, own: Option<&str>) -> Value {
    let own = || {
        let mut own: Map<String, Value> = serde_json::from_str(own?).ok()?;
        own.remove("statusLine")
    };
    let given = given.filter(|line| status_line_command(line).is_some());
    let users = given.cloned().or_else(own).unwrap_or_default();
    let mut line = json!({ "type": "command", "command": pitstop_command("statusline") });
    for (name, is_valid) in LOOKS {
        if let Some(value) = users.get(name).filter(|value| is_valid(value)) {
            line[name] = value.clone();
        }
    }
    line
}

fn inner_object<'a>(
    root: &'a mut Map<String, Value>,
    field: &'static str,
) -> Result<&'a mut Map<String, Value>, SettingsError> {
    root.entry(field)
        .or_insert_with(|| json!({}))
        .as_object_mut()
        .ok_or(SettingsError::Shape {
            field,
            expected: "an object",
        })
}

fn inner_list<'a>(
    object: &'a mut Map<String, Value>,
    key: &str,
    field: &'static str,
) -> Result<&'a mut Vec<Value>, SettingsError> {
    object
        .entry(key)
        .or_insert_with(|| json!([]))
        .as_array_mut()
        .ok_or(SettingsError::Shape {
            field,
            expected: "made of lists",
        })
}

/// Returns one shell command that calls `pitstop` with `words`. If the variable is lost, it does nothing and succeeds.
fn pitstop_command(words: &str) -> String {
    format!(r#""${{{PROGRAM_VARIABLE}:-:}}" {words}"#)
}

fn path_text(path: &Path) -> Result<&str, SettingsError> {
    path.to_str()
        .ok_or_else(|| SettingsError::Path(path.to_owned()))
}

/// Writes an absolute path for a permission rule: a second slash in front, pattern characters escaped.
fn rule_path(path: &Path) -> Result<String, SettingsError> {
    let mut rule = String::from("/");
    for c in path_text(path)?.chars() {
        if matches!(
            c,
            '\\' | '*' | '?' | '[' | ']' | '{' | '}' | '(' | ')' | '!'
        ) {
            rule.push('\\');
        }
        rule.push(c);
    }
    Ok(rule)
}

/// Returns the status line command in the text of a settings file of the user.
pub fn user_status_line(settings_json: &str) -> Option<String> {
    let root: Map<String, Value> = serde_json::from_str(settings_json).ok()?;
    root.get("statusLine").and_then(status_line_command)
}

/// Returns the value of a switch in the text of a settings file.
pub fn setting(settings_json: &str, name: &str) -> Option<bool> {
    let root: Map<String, Value> = serde_json::from_str(settings_json).ok()?;
    root.get(name)?.as_bool()
}

fn status_line_command(status_line: &Value) -> Option<String> {
    let command = status_line.get("command")?.as_str()?;
    (!command.trim().is_empty()).then(|| command.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> SettingsValues<'static> {
        SettingsValues {
            exe: Path::new("/opt/it's here/pitstop"),
            observe: Path::new("/run/u 1/observe"),
            bridge: Vec::leak(vec!["/run/u 1/bridge".into(), "/state/run/bridge".into()]),
            scratchpad: Path::new("/w/a [b]*/.pitstop/scratchpad.md"),
            given: Path::new("/w/a [b]*/.pitstop/runs/r/iteration-1"),
            own: None,
            server: false,
            no_compaction: false,
            reports_switches: true,
        }
    }

    fn value(settings: &Settings) -> Value {
        serde_json::from_str(&settings.json).unwrap()
    }

    #[test]
    fn a_client_gets_no_hook_that_it_may_not_know() {
        for (version, knows) in [
            (Some("2.1.197"), false),
            (Some("2.1.330"), false),
            (Some("2.1.331"), true),
            (Some("3.0.0"), true),
            (None, false),
        ] {
            let reports_switches = crate::claude::reports_choices(version);
            let values = SettingsValues {
                reports_switches,
                ..values()
            };
            let hooks = value(&settings(values, None).unwrap())["hooks"].clone();
            assert_eq!(!hooks[SWITCHED].is_null(), knows, "{version:?}");
            assert!(!hooks["Stop"].is_null());
        }
    }

    #[test]
    fn every_hook_calls_pitstop_by_a_command_without_paths() {
        let settings = value(&settings(values(), None).unwrap());
        for event in EVENTS {
            assert_eq!(
                settings["hooks"][event][0]["hooks"][0]["command"],
                format!(r#""${{PITSTOP:-:}}" hook {event}"#)
            );
        }
        assert_eq!(
            settings["statusLine"]["command"],
            r#""${PITSTOP:-:}" statusline"#
        );
        assert_eq!(
            settings["env"],
            json!({
                "PITSTOP": "/opt/it's here/pitstop",
                "PITSTOP_OBSERVE": "/run/u 1/observe",
                "PITSTOP_BRIDGE": "/run/u 1/bridge\n/state/run/bridge",
            })
        );
    }

    /// Runs the command with `program` as the executable; returns its success and the text that it prints.
    fn run(program: Option<&str>) -> (bool, String) {
        let mut shell = std::process::Command::new("/bin/sh");
        shell
            .args(["-c", &pitstop_command("hook Stop")])
            .env_clear();
        shell.envs(program.map(|program| (PROGRAM_VARIABLE, program)));
        let output = shell.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }

    #[test]
    fn a_command_finds_any_path_and_without_one_succeeds_in_silence() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("it's \"$HOME\" `here`\n*");
        std::fs::write(&program, "#!/bin/sh\necho \"$# $1 $2\"\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(run(program.to_str()), (true, "2 hook Stop\n".to_owned()));
        assert_eq!(run(None), (true, String::new()));
        assert_eq!(run(Some("")), (true, String::new()));
    }

    #[test]
    fn the_scratchpad_alone_is_allowed_by_an_absolute_rule() {
        let settings = value(&settings(values(), None).unwrap());
        assert_eq!(
            settings["permissions"]["allow"],
            json!([
                r"Read(//w/a \[b\]\*/.pitstop/scratchpad.md)",
                r"Edit(//w/a \[b\]\*/.pitstop/scratchpad.md)"
            ])
        );
        assert_eq!(
            settings["permissions"]["deny"],
            json!([r"Edit(//w/a \[b\]\*/.pitstop/runs/r/iteration-1/**)"])
        );
    }

    #[test]
    fn the_users_settings_keep_everything_but_the_status_line_which_is_chained() {
        let user = r#"{"env":{"A":"b"},"statusLine":{"type":"command","command":"mine.sh"},
            "hooks":{"Stop":[{"hooks":[{"type":"command","command":"theirs"}]}],"Else":[]},
            "permissions":{"allow":["Bash(ls)"],"deny":["Read(x)"]}}"#;
        let merged = settings(values(), Some(user)).unwrap();
        assert_eq!(merged.user_status_line.as_deref(), Some("mine.sh"));
        let merged = value(&merged);
        assert_eq!(merged["env"]["A"], "b");
        assert_eq!(merged["env"][OBSERVE_VARIABLE], "/run/u 1/observe");
        assert_eq!(merged["hooks"]["Stop"][0]["hooks"][0]["command"], "theirs");
        assert_eq!(merged["hooks"]["Stop"].as_array().unwrap().len(), 2);
        assert_eq!(merged["hooks"]["Else"], json!([]));
        assert_eq!(merged["permissions"]["deny"][0], "Read(x)");
        assert_eq!(merged["permissions"]["allow"][0], "Bash(ls)");
    }

    #[test]
    fn early_compaction_is_switched_off_where_compaction_is_ours_and_only_there() {
        let user = r#"{"idleCompaction":true}"#;
        let left = value(&settings(values(), Some(user)).unwrap());
        assert_eq!(left["idleCompaction"], true);
        assert_eq!(left["precomputeCompactionEnabled"], Value::Null);
        let ours = SettingsValues {
            no_compaction: true,
            ..values()
        };
        let off = value(&settings(ours, Some(user)).unwrap());
        for name in EARLY_COMPACTION {
            assert_eq!(off[name], false, "{name}");
        }
    }

    #[test]
    fn settings_of_another_shape_are_refused_with_the_place() {
        let error = |user| settings(values(), Some(user)).unwrap_err().to_string();
        assert_eq!(
            error(r#"{"hooks":[]}"#),
            "expected `hooks` in --settings to be an object"
        );
        assert_eq!(
            error(r#"{"hooks":{"Stop":1}}"#),
            "expected `hooks` in --settings to be made of lists"
        );
        assert!(error("nope").starts_with("expected the text of --settings to be a JSON object"));
    }

    #[test]
    fn the_users_status_line_is_found_in_a_settings_file() {
        let text = r#"{"statusLine":{"type":"command","command":"ccline --x"}}"#;
        assert_eq!(user_status_line(text).as_deref(), Some("ccline --x"));
        for none in [
            "",
            "[]",
            "{}",
            r#"{"statusLine":null}"#,
            r#"{"statusLine":{"command":" "}}"#,
        ] {
            assert_eq!(user_status_line(none), None, "{none}");
        }
    }

    #[test]
    fn the_status_line_is_drawn_as_the_user_has_set_it() {
        let line = |given: Option<&str>, own: Option<&str>| {
            let values = SettingsValues { own, ..values() };
            value(&settings(values, given).unwrap())["statusLine"].clone()
        };
        let command = r#""${PITSTOP:-:}" statusline"#;
        let own = r#"{"statusLine":{"type":"command","command":"mine","padding":2,"refreshInterval":5,"hideVimModeIndicator":true}}"#;
        assert_eq!(
            line(None, Some(own)),
            json!({ "type": "command", "command": command, "padding": 2, "refreshInterval": 5, "hideVimModeIndicator": true })
        );
        // The one given counts alone, and a value of another type would have the client refuse all settings.
        let given = r#"{"statusLine":{"type":"command","command":"theirs","padding":"wide","refreshInterval":9}}"#;
        assert_eq!(
            line(Some(given), Some(own)),
            json!({ "type": "command", "command": command, "refreshInterval": 9 })
        );
        let plain = json!({ "type": "command", "command": command });
        for none in [None, Some("{"), Some("{}"), Some(r#"{"statusLine":7}"#)] {
            assert_eq!(line(None, none), plain, "{none:?}");
        }
    }
}
