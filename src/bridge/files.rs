//! The mods as they are written for a session.

/// The first client that runs mods.
pub const FIRST_VERSION: [u32; 3] = [2, 1, 287];

/// Each file's directories below the one that is given to the client, its name, and its text.
///
/// The client writes 1.1 MB of type declarations into each mod, unless something stands in their place (measured with 2.1.330):
/// hence the empty file `types`.
pub const FILES: [(&[&str], &str, &str); 4] = [
    (
        &["pitstop", ".claude-plugin"],
        "plugin.json",
        include_str!("../../assets/bridge/pitstop/.claude-plugin/plugin.json"),
    ),
    (&["pitstop", ".claude-plugin"], "types", ""),
    (
        &["pitstop", "hooks"],
        "hooks.json",
        include_str!("../../assets/bridge/pitstop/hooks/hooks.json"),
    ),
    (
        &["pitstop", "hooks"],
        "register.js",
        include_str!("../../assets/bridge/pitstop/hooks/register.js"),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::PROTOCOL;

    fn text(name: &str) -> &'static str {
        let found = FILES.iter().find(|(_, file, _)| *file == name);
        found.expect("a file of that name").2
    }

    #[test]
    fn the_mod_speaks_our_protocol_says_what_it_may_do_and_is_short() {
        let code = text("register.js");
        assert!(code.contains(&format!("const PROTOCOL = {PROTOCOL};")));
        assert!(code.starts_with("// ") && code.contains("What it may do:"));
        assert!(code.lines().count() < 200);
        for data in ["plugin.json", "hooks.json"] {
            serde_json::from_str::<serde_json::Value>(text(data)).unwrap();
        }
    }

    #[test]
    fn the_mod_uses_nothing_that_its_header_does_not_name() {
        const NAMED: [&str; 9] = [
            "$.env.get(",
            "$.fs.read(",
            "$.session.id(",
            "$.session.usage(",
            "$.session.version(",
            "$.http.fetch(",
            "$.prompt.read(",
            "$.prompt.fill(",
            "$.prompt.submit(",
        ];
        let code = text("register.js");
        for (at, _) in code.match_indices("$.") {
            let call = &code[at..];
            let known = NAMED.iter().chain(&["$.clock.sleep("]);
            assert!(
                known.into_iter().any(|name| call.starts_with(name)),
                "{}",
                call.lines().next().unwrap_or_default()
            );
        }
    }
}
