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
//! | `PITSTOP_DEMO_STUBBORN` | `1`: ignores `/exit`, SIGINT, SIGHUP and SIGTERM |
//! | `PITSTOP_DEMO_CRASH` | dies in that turn (from 1), with its modes left on |
//! | `PITSTOP_DEMO_GRANDCHILD` | `1`: leaves a process behind that holds the terminal for a minute |
//! | `PITSTOP_DEMO_HOOKS` | `0`: calls neither hooks nor status line |
//! | `PITSTOP_DEMO_DIALOG` | `start`: a trust dialog first; `turn`: a permission dialog in each turn |

use std::{fs, os::unix::process::CommandExt as _, process::Command, time::Duration};

use super::{Control, variable};

/// What the environment asks for beside what a user's demo needs.
pub(super) fn read(control: Control) -> Result<Control, String> {
    let number = |name: &str| variable(name).and_then(|value| value.parse::<u64>().ok());
    let is = |name: &str, value: &str| variable(name).as_deref() == Some(value);
    let script = variable("PITSTOP_DEMO_SCRIPT").map_or(Ok(String::new()), |path| {
        fs::read_to_string(&path).map_err(|error| format!("Error: {path}: {error}"))
    })?;
    if is("PITSTOP_DEMO_GRANDCHILD", "1") {
        // Its own process group, so that only who closes the terminal is rid of it.
        let mut sleep = Command::new("sleep");
        let started = sleep.arg("60").process_group(0).spawn();
        started.map_err(|error| format!("Error: sleep: {error}"))?;
    }
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
        stubborn: is("PITSTOP_DEMO_STUBBORN", "1"),
        crash: number("PITSTOP_DEMO_CRASH").map(|turn| turn as usize),
        hooks: !is("PITSTOP_DEMO_HOOKS", "0"),
        dialog: variable("PITSTOP_DEMO_DIALOG").unwrap_or_default(),
        ..control
    })
}
