//! The mods as they are written for a session.

use std::borrow::Cow;

use super::tools::TOOLS;

/// The first client that runs mods.
pub const FIRST_VERSION: [u32; 3] = [2, 1, 287];

/// A file of the assets, as it is among the [`FILES`].
macro_rules! asset {
    ($plugin:literal, $part:literal, $name:literal) => {
        (
            [$plugin, $part],
            $name,
            include_str!(concat!(
                "../../../../assets/bridge/",
                $plugin,
                "/",
                $part,
                "/",
                $name
            )),
        )
    };
}

/// The files of the mods: the directories of each below the one that is given to the client, its name, and its text.
///
/// The client writes 1.1 MB of type declarations into each mod, unless something is in their place (measured with 2.1.330):
/// hence the empty file `types`.
pub const FILES: [([&str; 2], &str, &str); 18] = [
    asset!("pitstop-answer", ".claude-plugin", "plugin.json"),
    (["pitstop-answer", ".claude-plugin"], "types", ""),
    asset!("pitstop-answer", "hooks", "hooks.json"),
    asset!("pitstop-answer", "hooks", "register.js"),
    (["pitstop-answer", "hooks"], "socket.js", SOCKET),
    (["pitstop-answer", "hooks"], "trigger.js", TRIGGER),
    asset!("pitstop", ".claude-plugin", "plugin.json"),
    (["pitstop", ".claude-plugin"], "types", ""),
    asset!("pitstop", "commands", "go.md"),
    asset!("pitstop", "hooks", "hooks.json"),
    asset!("pitstop", "hooks", "register.js"),
    (["pitstop", "hooks"], "figures.js", FIGURES),
    asset!("pitstop", "hooks", "orders.js"),
    asset!("pitstop", "hooks", "prompts.js"),
    asset!("pitstop", "hooks", "replace.js"),
    (["pitstop", "hooks"], "socket.js", SOCKET),
    (["pitstop", "hooks"], "trigger.js", TRIGGER),
    asset!("pitstop", "hooks", "tools.js"),
];

/// The code by which the bridge and the plugin read how full the window is.
const FIGURES: &str = include_str!("../../../../assets/bridge/pitstop/hooks/figures.js");

/// The command by which the bridge and the plugin begin the turn behind a handoff.
const GO: &str = include_str!("../../../../assets/bridge/pitstop/commands/go.md");

/// The files of the plugin for a client that no pitstop hosts: the directory of each below that of the plugin, its name, and its
/// text. `hooks/place.js` is made by [`place_of`]; `types` is there for the reason given at [`FILES`].
pub const PLUGIN: [(&str, &str, &str); 7] = [
    (
        ".claude-plugin",
        "plugin.json",
        include_str!("../../../../assets/plugin/.claude-plugin/plugin.json"),
    ),
    (".claude-plugin", "types", ""),
    ("commands", "go.md", GO),
    (
        "commands",
        "reboot.md",
        include_str!("../../../../assets/plugin/commands/reboot.md"),
    ),
    (
        "hooks",
        "hooks.json",
        include_str!("../../../../assets/plugin/hooks/hooks.json"),
    ),
    (
        "hooks",
        "register.js",
        include_str!("../../../../assets/plugin/hooks/register.js"),
    ),
    ("hooks", "figures.js", FIGURES),
];

/// Returns the text of the plugin's `hooks/place.js`: the program that it runs, and the directory of its handoffs, both absolute.
pub fn place_of(program: &str, handoffs: &str) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    format!(
        "// Written by `pitstop plugin install`.\n\nexport const PROGRAM = {};\nexport const HANDOFFS = {};\n",
        quoted(program),
        quoted(handoffs)
    )
}

/// The script with which both mods send requests to the control socket.
const SOCKET: &str = include_str!("../../../../assets/bridge/pitstop/hooks/socket.js");

/// The script with which both mods lower the client's compaction trigger and set it back.
const TRIGGER: &str = include_str!("../../../../assets/bridge/pitstop/hooks/trigger.js");

/// The file at whose end the list of the tools is written.
const TOOLS_FILE: &str = "tools.js";

/// Returns the text of one of the [`FILES`] as it is written: with the agent's tools, or with none.
pub fn text_of(name: &str, text: &'static str, tools: bool) -> Cow<'static, str> {
    if name != TOOLS_FILE {
        return text.into();
    }
    let list = if tools { TOOLS.trim_end() } else { "[]" };
    format!("{text}const TOOLS = {list};\n").into()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::bridge::PROTOCOL;

    fn text(plugin: &str, name: &str) -> &'static str {
        let found = FILES
            .iter()
            .find(|(directories, file, _)| directories[0] == plugin && *file == name);
        found.expect("a file of that name").2
    }

    fn is_code(name: &str) -> bool {
        Path::new(name)
            .extension()
            .is_some_and(|ending| ending == "js")
    }

    #[test]
    fn the_mods_speak_our_protocol_say_what_they_may_do_and_are_short() {
        let protocol = format!("const PROTOCOL = {PROTOCOL};");
        assert!(text("pitstop", "register.js").contains(&protocol));
        for (_, name, code) in FILES {
            if is_code(name) {
                assert!(code.starts_with("// ") && code.contains("What it may do:"));
                assert!(code.lines().count() < 200);
            }
        }
    }

    #[test]
    fn the_manifests_are_json() {
        for (plugin, name) in [
            ("pitstop", "plugin.json"),
            ("pitstop", "hooks.json"),
            ("pitstop-answer", "plugin.json"),
            ("pitstop-answer", "hooks.json"),
        ] {
            serde_json::from_str::<serde_json::Value>(text(plugin, name)).unwrap();
        }
    }

    #[test]
    fn the_mods_use_nothing_that_their_headers_do_not_name() {
        const SOCKET_CALLS: &[&str] =
            &["$.env.get(", "$.fs.read(", "$.session.id(", "$.http.fetch("];
        const NAMED: [(&str, &str, &[&str]); 11] = [
            (
                "pitstop",
                "register.js",
                &[
                    "$.session.version(",
                    "$.session.messages(",
                    "$.clock.sleep(",
                ],
            ),
            ("pitstop", "figures.js", &["$.session.usage("]),
            (
                "pitstop",
                "orders.js",
                &[
                    "$.prompt.read(",
                    "$.prompt.fill(",
                    "$.prompt.submit(",
                    "$.clock.sleep(",
                ],
            ),
            (
                "pitstop",
                "replace.js",
                &[
                    "$.turn.abort(",
                    "$.clock.sleep(",
                    "$.session.messages(",
                    "$.tool.call(",
                    "$.session.compact(",
                    "$.session.usage(",
                    "$.command.run(",
                ],
            ),
            ("pitstop", "prompts.js", &[]),
            ("pitstop", "socket.js", SOCKET_CALLS),
            ("pitstop", "trigger.js", &["$.env.get(", "$.env.set("]),
            (
                "pitstop-answer",
                "trigger.js",
                &["$.env.get(", "$.env.set("],
            ),
            (
                "pitstop",
                TOOLS_FILE,
                &["$.http.fetch(", "$.session.id(", "$.tool.register("],
            ),
            ("pitstop-answer", "socket.js", SOCKET_CALLS),
            ("pitstop-answer", "register.js", &["$.clock.sleep("]),
        ];
        let named = FILES.iter().filter(|(_, name, _)| is_code(name));
        assert_eq!(named.count(), NAMED.len());
        for (plugin, file, known) in NAMED {
            calls_only(plugin, file, text(plugin, file), known);
        }
    }

    fn calls_only(plugin: &str, file: &str, code: &str, known: &[&str]) {
        for (at, _) in code.match_indices("$.") {
            let call = &code[at..];
            assert!(
                known.iter().any(|name| call.starts_with(name)),
                "{plugin}/{file}: {}",
                call.lines().next().unwrap_or_default()
            );
        }
    }

    #[test]
    fn the_plugin_uses_nothing_that_its_header_does_not_name_and_is_short() {
        let (_, file, code) = PLUGIN[5];
        assert_eq!(file, "register.js");
        assert!(code.starts_with("// ") && code.contains("What it may do:"));
        assert!(code.lines().count() < 250);
        let known = [
            "$.process.run(",
            "$.session.id(",
            "$.session.info(",
            "$.session.compact`",
            "$.prompt.read(",
            "$.ui.invalidate(",
            "$.ui.resolve(",
            "$.ui.toast(",
            "$.ui.log(",
            "$.ui.ask(",
            "$.fs.read(",
            "$.command.run(",
            "$.clock.sleep(",
            "$.env.get(",
        ];
        calls_only("plugin", file, code, &known);
        for (_, name, text) in PLUGIN.iter().filter(|(_, name, _)| name.ends_with("json")) {
            let read = serde_json::from_str::<serde_json::Value>(text);
            assert!(read.is_ok(), "{name}");
        }
    }

    #[test]
    fn the_plugin_s_paths_are_strings_of_its_code() {
        let text = place_of("/a \"b\"/pitstop", "/c\\d");
        assert!(text.contains(r#"PROGRAM = "/a \"b\"/pitstop";"#), "{text}");
        assert!(text.contains(r#"HANDOFFS = "/c\\d";"#), "{text}");
    }

    #[test]
    fn the_mod_answers_the_calls_of_each_tool_that_it_registers() {
        let list: Vec<serde_json::Value> = serde_json::from_str(TOOLS).unwrap();
        let code = text("pitstop", TOOLS_FILE);
        for tool in &list {
            let name = tool["name"].as_str().unwrap();
            assert!(
                code.contains(&format!("\"mcp__pitstop__{name}\"")),
                "{name}"
            );
        }
        assert_eq!(code.matches("on(\"tool.call\"").count(), list.len());
        assert!(text_of(TOOLS_FILE, code, true).contains("\"request_reboot\""));
        assert!(text_of(TOOLS_FILE, code, false).ends_with("const TOOLS = [];\n"));
        assert_eq!(text_of("plugin.json", "{}", true), "{}");
    }

    #[test]
    fn the_bridge_tells_a_subagent_s_hooks_from_the_session_s() {
        let code = text("pitstop", "register.js");
        for event in ["classic.SessionStart", "classic.PostToolUse"] {
            let handler = code.split(&format!("on(\"{event}\"")).nth(1).unwrap();
            let handler = handler.split("  on(").next().unwrap();
            assert!(handler.contains("e.agent_id"), "{event}: {handler}");
        }
    }
}
