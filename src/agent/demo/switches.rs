//! Switches for tests, by environment variables. Compiled with debug assertions only: a release build has none of them.
//!
//! | variable | effect |
//! |---|---|
//! | `PITSTOP_DEMO_USAGE` | context after each turn, tokens with commas between; not used after a handoff |
//! | `PITSTOP_DEMO_PACE_MS` | pause between steps, milliseconds |
//! | `PITSTOP_DEMO_REPLY` | the text of every reply, in place of the story |
//! | `PITSTOP_DEMO_SUMMARY` | what `-p` says when a summary is asked for; `fail`: an overloaded service; `hang`: nothing, until it is killed |
//! | `PITSTOP_DEMO_SCRIPT` | file with a line a turn: steps with tabs between; `$ CMD` runs CMD, `! WORD` fails the turn with that error, `\n` breaks a line |
//! | `PITSTOP_DEMO_GROWTH` | how much each turn adds to the context, tokens (a twentieth of the window) |
//! | `PITSTOP_DEMO_ITEMS` | how many items the plan has |

use std::{fs, time::Duration};

use super::{Control, variable};

/// What the environment asks for beside what a user's demo needs.
pub(super) fn read(control: Control) -> Result<Control, String> {
    let number = |name: &str| variable(name).and_then(|value| value.parse::<u64>().ok());
    let script = variable("PITSTOP_DEMO_SCRIPT").map_or(Ok(String::new()), |path| {
        fs::read_to_string(&path).map_err(|error| format!("Error: {path}: {error}"))
    })?;
    Ok(Control {
        usage: variable("PITSTOP_DEMO_USAGE")
            .iter()
            .flat_map(|list| list.split(','))
            .filter_map(|n| n.trim().parse().ok())
            .collect(),
        pace: number("PITSTOP_DEMO_PACE_MS").map_or(control.pace, Duration::from_millis),
        reply: variable("PITSTOP_DEMO_REPLY"),
        summary: variable("PITSTOP_DEMO_SUMMARY"),
        script: script.lines().map(str::to_owned).collect(),
        growth: number("PITSTOP_DEMO_GROWTH"),
        items: number("PITSTOP_DEMO_ITEMS").unwrap_or(control.items),
        ..control
    })
}
