//! The checks of the client: version, flags, session id, hooks, window.

use std::{
    ffi::OsStr,
    path::Path,
    process::{Output, Stdio},
    time::Duration,
};

use tokio::runtime::Runtime;

use super::{Finding, keeping::Kept};
use crate::{
    cli::{here::Here, out::tokens, version::tested_clients},
    runtime::{agent::transcript_in, client_settings::ClientSettings},
    supervisor::program::{
        agent_config_dir, agent_env, claude_config_dir, demo_dir, find_program, has_todo_tools,
    },
};
use pitstop_agent::{
    AgentKind,
    bridge::Absence,
    claude::{self, limits::CompactionSettings},
};
use pitstop_base::format;
use pitstop_core::api::wire::{AgentTools, StatusReport, TodoList};
use pitstop_transcript::Tokens;

/// The flags of the client that pitstop depends on.
const NEEDED_FLAGS: [&str; 4] = [
    "--session-id",
    "--resume",
    "--settings",
    "--append-system-prompt",
];

/// The time that the client may take to report about itself: it starts a runtime of its own each time.
const CLIENT_LIMIT: Duration = Duration::from_secs(20);

/// Checks the client: whether it is there and which version it has; and, if it says that, whether it knows the needed flags.
pub(super) fn client(here: &Here, runtime: &Runtime) -> (Finding, Option<Finding>) {
    let command = &here.config.agent.command;
    let Some(program) = find_program(OsStr::new(command)) else {
        let missing = Finding::broken(format!("no program `{command}` in the PATH")).remedy(
            "install Claude Code (npm install -g @anthropic-ai/claude-code), or set [agent] command",
        );
        return (missing, None);
    };
    let shown = program.display();
    let version = runtime.block_on(ask_program(&program, &["--version"]));
    let Some(version) = version else {
        let silent =
            Finding::broken(format!("{shown} does not report its version")).remedy(format!(
                "run `{command} --version` and see what it says; reinstall it if it cannot start"
            ));
        return (silent, None);
    };
    let first = version.lines().next().unwrap_or_default();
    let client = known_client(first, &shown.to_string());
    let help = runtime
        .block_on(ask_program(&program, &["--help"]))
        .unwrap_or_default();
    let missing: Vec<_> = NEEDED_FLAGS
        .into_iter()
        .filter(|flag| !help.contains(flag))
        .collect();
    let flags = if missing.is_empty() {
        Finding::ok(format!("supports {}", NEEDED_FLAGS.join(", ")))
    } else {
        Finding::warning(format!("`--help` does not list {}", missing.join(", ")))
            .remedy("update the client; without them a reboot cannot be proven")
    };
    (client, Some(flags))
}

/// Compares the version that the client reports with those that pitstop is tested with.
fn known_client(version: &str, program: &str) -> Finding {
    let (floor, current) = tested_clients();
    let detail = format!("{version} at {program}; tested with {floor} and {current}");
    match (numbers(version), numbers(floor), numbers(current)) {
        (Some(found), Some(floor), _) if found < floor => {
            Finding::warning(format!("{detail}; this one is older"))
                .remedy("update the client: `claude update`")
        }
        (Some(found), _, Some(current)) if found > current => {
            Finding::ok(format!("{detail}; this one is newer"))
        }
        _ => Finding::ok(detail),
    }
}

/// Returns the numbers that a version begins with.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let word = version.split_whitespace().next()?;
    let numbers: Vec<u64> = word.split('.').map_while(|one| one.parse().ok()).collect();
    numbers.try_into().ok()
}

/// Returns the output of a program that is asked about itself; `None` if it fails or takes too long.
async fn ask_program(program: &Path, args: &[&str]) -> Option<String> {
    let run = tokio::process::Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output: Output = tokio::time::timeout(CLIENT_LIMIT, run).await.ok()?.ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success() && !text.trim().is_empty()).then_some(text)
}

/// Checks whether the client took the session id it was given: then its transcript has that name.
pub(super) fn session_id(here: &Here, report: Option<&StatusReport>, kept: &Kept) -> Finding {
    let kind = |report: &StatusReport| report.agent.kind.word().to_owned();
    let live = report.and_then(|report| Some((report.session_id.clone()?, kind(report))));
    let Some((session, agent)) = live.or_else(|| kept.last.clone()) else {
        return Finding::unknown("no session of this project is on record").remedy(
            "start `pitstop` here, give the agent a prompt, and run `pitstop doctor` again",
        );
    };
    let is_demo = agent.contains("demo");
    let place = if is_demo {
        Some(demo_dir(&here.paths))
    } else {
        claude_config_dir(&here.config)
    };
    let short = format::short_id(&session);
    match place.and_then(|place| transcript_in(&place, &session)) {
        Some(_) => Finding::ok(format!("the id that pitstop gives is used: session {short} has a transcript")),
        None => Finding::unknown(format!("session {short} has no transcript yet"))
        .remedy("give the agent a prompt and run `pitstop doctor` again; is CLAUDE_CONFIG_DIR the same there as here?"),
    }
}

/// Checks whether hooks arrive, or finds what prevents them.
pub(super) fn hooks(here: &Here, report: Option<&StatusReport>) -> Finding {
    let off = claude_config_dir(&here.config)
        .map(|place| place.join("settings.json"))
        .filter(|file| switches_hooks_off(file));
    match (report, off) {
        (Some(report), _) if report.agent.hooked => Finding::ok("pitstop receives them"),
        (_, Some(file)) => Finding::broken(format!("{} sets disableAllHooks", file.display()))
        .remedy("remove it: without hooks the delivery of a handoff is confirmed late or not at all"),
        (Some(report), None) if !report.agent.kind.reports() => {
            Finding::unknown("this agent sends none")
        }
        (Some(_), None) => Finding::warning("pitstop has received none in this iteration")
            .remedy(
                "give the agent a prompt and run `pitstop doctor` again; --bare, --safe-mode and managed settings disable them",
            ),
        (None, None) => Finding::unasked(),
    }
}

/// Checks whether the bridge, the part of pitstop inside the client, reports.
pub(super) fn bridge(here: &Here, report: Option<&StatusReport>) -> Finding {
    let Some(bridge) = report.map(|report| &report.agent.bridge) else {
        return if here.config.agent.bridge {
            Finding::unasked()
        } else {
            Finding::ok(Absence::SwitchedOff.to_string())
        };
    };
    let reason = || bridge.reason.clone().unwrap_or_default();
    match (bridge.state.as_str(), bridge.why.as_deref()) {
        ("in_force", _) if bridge.reason.is_some() => Finding::warning(format!("in force, but {}", reason()))
        .remedy("no reboot goes in place or on the fly: a turn is waited for, and a fresh session is begun"),
        ("in_force", _) => Finding::ok("in force: the client reports to pitstop itself"),
        ("awaited", _) => Finding::unknown("it has not reported yet")
            .remedy("run `pitstop doctor` again when the agent shows its prompt"),
        (_, Some("other_agent" | "switched_off")) => Finding::ok(reason()),
        (_, Some("too_old")) => Finding::warning(reason())
            .remedy("update the client: `claude update`; until then hooks and status line are used"),
        _ => Finding::warning(reason()).remedy(
            "hooks, status line and transcript are used instead; --safe-mode, --bare, disableAllHooks and managed settings prevent mods",
        ),
    }
}

/// Checks the way in which the agent reaches its tools.
pub(super) fn tools(here: &Here, report: Option<&StatusReport>) -> Finding {
    if !here.config.agent.tools {
        return Finding::ok("none: switched off by [agent] tools = false");
    }
    match report.map(|report| (report.agent.tools, report.agent.kind)) {
        None => Finding::unasked(),
        Some((AgentTools::Mod, _)) => Finding::ok("provided by the bridge"),
        Some((AgentTools::Mcp, _)) => Finding::ok("provided by the MCP server `pitstop`, because the bridge is not in force"),
        Some((AgentTools::Awaited, _)) => {
            Finding::unknown("the bridge has not reported yet")
                .remedy("run `pitstop doctor` again when the agent shows its prompt")
        }
        Some((AgentTools::None, AgentKind::Claude)) => Finding::warning("none in this session")
        .remedy(
            "the next session gets them from an MCP server, unless --safe-mode or managed settings prevent that too",
        ),
        Some((AgentTools::None, _)) => {
            Finding::ok("none: only Claude Code has them")
        }
    }
}

/// Checks whether there is a to-do list of the agent that the handoff can carry over.
pub(super) fn todo_list(here: &Here, report: Option<&StatusReport>) -> Finding {
    let ready = if has_todo_tools(&here.config) {
        TodoList::Empty
    } else {
        TodoList::Off
    };
    match report.map_or(ready, |report| report.agent.todo_list) {
        TodoList::Kept => Finding::ok("the agent keeps one"),
        TodoList::Empty => Finding::ok("none yet; the client's to-do tools are on"),
        TodoList::None => Finding::ok("none: this agent has no to-do tools"),
        TodoList::Off => Finding::warning("none: the client's to-do tools are not switched on")
        .remedy(
            "set [agent] todo_tools = true, or CLAUDE_CODE_ENABLE_TODO_TOOLS=1 where you set that variable yourself",
        ),
    }
}

fn switches_hooks_off(file: &Path) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    serde_json::from_str::<serde_json::Value>(&text)
        .is_ok_and(|settings| settings["disableAllHooks"] == true)
}

/// Checks the source of the size of the context window.
pub(super) fn window(here: &Here, report: Option<&StatusReport>) -> Finding {
    if let Some(window) = here.config.context.window {
        let found = format!("{} tokens, as [context] window says", tokens(window));
        return Finding::ok(found);
    }
    let Some(report) = report else {
        return Finding::unasked();
    };
    let context = &report.context;
    let (Some(window), Some(source)) = (context.window, &context.source) else {
        return Finding::unknown("no figure yet")
            .remedy("give the agent a prompt and run `pitstop doctor` again");
    };
    let source = source.replace('_', " ");
    let found = format!("{} tokens, by the {source}", tokens(window));
    match source.as_str() {
        "bridge" | "status line" => Finding::ok(found),
        _ => Finding::warning(found).remedy(
            "the status line is more exact and has not reported yet; set [context] window if this is wrong",
        ),
    }
}

/// Checks the limit at which the client itself compacts or refuses prompts, and its origin.
pub(super) fn client_limit(here: &Here, report: Option<&StatusReport>) -> Finding {
    if let Some(context) = report.map(|report| &report.context) {
        let lowered = context.lines.is_some_and(|lines| lines.lowered);
        return match &context.client_limit {
            Some(limit) => {
                let found = format!(
                    "{} at {} tokens ({})",
                    limit.act,
                    tokens(limit.at),
                    limit.origin
                );
                let note = "; the lines were moved below it";
                Finding::ok(if lowered { found + note } else { found })
            }
            None => Finding::ok(
                "none of its own: it compacts or stops only when the service refuses a prompt",
            ),
        };
    }
    let config = &here.config;
    let kind = AgentKind::Claude;
    let files = ClientSettings {
        args: config.agent.args.clone(),
        env: agent_env(kind, config, &here.paths),
        config_dir: agent_config_dir(kind, config, &here.paths),
        project: here.directory.clone(),
    };
    let mut env = files.env.clone();
    if config.guard.replace_compaction {
        let (name, value) = claude::NO_AUTO_COMPACTION;
        env.push((name.into(), value.into()));
    }
    let settings = ClientSettings { env, ..files }.read();
    Finding::ok(limits_in_words(&settings))
}

/// Returns the limit in the two existing window sizes, for a model without settings of its own.
fn limits_in_words(settings: &CompactionSettings) -> String {
    let of_window = |window: u64| match settings.limit(None, Tokens(window), None) {
        Some(limit) => format!(
            "window of {}: {} at {} ({})",
            tokens(window),
            limit.act.word(),
            tokens(limit.at.0),
            limit.origin
        ),
        None => format!(
            "window of {}: only when the service refuses a prompt",
            tokens(window)
        ),
    };
    [200_000, 1_000_000].map(of_window).join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::State;

    #[test]
    fn the_limits_of_both_windows_are_named_with_their_reason() {
        let words = |env: &[(&str, &str)]| {
            let read = |name: &str| {
                let found = env.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            limits_in_words(&CompactionSettings::read(&[], &read, &[], None))
        };
        assert_eq!(
            words(&[]),
            "window of 200k: only when the service refuses a prompt; \
             window of 1M: compacts at 967k (its default)"
        );
        assert!(
            words(&[("DISABLE_COMPACT", "1")])
                .starts_with("window of 200k: refuses prompts at 177k (DISABLE_COMPACT); ")
        );
    }

    #[test]
    fn hooks_that_the_user_switched_off_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        assert!(!switches_hooks_off(&file));
        for (text, off) in [
            ("{\"disableAllHooks\": true}", true),
            ("{\"disableAllHooks\": false}", false),
            ("{", false),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(switches_hooks_off(&file), off, "{text}");
        }
    }

    #[test]
    fn a_client_is_judged_by_the_versions_that_are_tested() {
        let state = |version: &str| known_client(version, "/bin/claude").state;
        let (floor, current) = tested_clients();
        assert!(numbers(floor) < numbers(current));
        assert_eq!(state("2.1.9 (Claude Code)"), State::Warning);
        for version in [floor, current, "9.0.0 (Claude Code)", "pitstop demo"] {
            assert_eq!(state(version), State::Ok, "{version}");
        }
        let newer = known_client("9.0.0", "/bin/claude");
        assert!(
            newer.found.ends_with("this one is newer"),
            "{}",
            newer.found
        );
    }
}
