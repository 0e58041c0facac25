//! `pitstop notify --test`: calls a person as the supervisor does, and says by which ways that went.

use std::io::{IsTerminal as _, Write as _};

use clap::Args;

use super::{
    here::Here,
    out::{self, Outcome},
};
use crate::{
    runtime::{
        host_output::HostOutput,
        notify::{self, Notification},
        paint::Abilities,
    },
    supervisor::boot::variable,
};
use pitstop_core::{
    api::wire::NeedKind,
    config::{Notifications, load::Flags},
};

/// Try the calls by which pitstop asks for you.
///
/// Each way that the configuration sets is used once, with a call that is settled right after. Exits with 0 if all of them
/// succeeded, 1 if one failed, 2 on bad usage.
#[derive(Args, Clone, Debug)]
pub struct NotifyArgs {
    /// Send a call for a test
    #[arg(long, required = true)]
    pub test: bool,
}

/// Runs the command; returns the exit code.
pub fn run(_: &NotifyArgs, flags: &Flags) -> Outcome {
    let here = Here::find_configured(flags)?;
    let config = here.config.notify.clone();
    let project = here.directory.file_name();
    let call = |state| Notification {
        id: format!("test-{}", std::process::id()),
        state,
        kind: NeedKind::Question,
        what: "This is a test of pitstop".to_owned(),
        why: "you asked for it".to_owned(),
        project: project.map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        session: String::new(),
        since: crate::runtime::wall(),
        until: None,
        link: String::new(),
    };
    let runtime = out::runtime()?;
    let terminal = in_terminal(here.config.ui.notifications);
    let [command, url] = runtime.block_on(async {
        let mut outcomes = [None, None];
        for state in ["open", "settled"] {
            let now = [
                notify::command(&config, &call(state), &here.directory).await,
                notify::posted(config.clone(), call(state)).await,
            ];
            // The first failure counts, else a success.
            for (outcome, now) in outcomes.iter_mut().zip(now) {
                if now.is_some() && !matches!(outcome, Some(Err(_))) {
                    *outcome = now;
                }
            }
        }
        outcomes
    });
    let ways = [("terminal", terminal), ("command", command), ("url", url)];
    let failed = ways.iter().any(|(_, way)| matches!(way, Some(Err(_))));
    let rows = ways.map(|(name, outcome)| {
        let said = match outcome {
            None => "not set".to_owned(),
            Some(Ok(())) => "sent".to_owned(),
            Some(Err(why)) => format!("failed: {why}"),
        };
        vec![name.to_owned(), said]
    });
    Ok(out::print(&out::columns(&rows)).max(i32::from(failed)))
}

/// Calls by this terminal, if there is one.
fn in_terminal(how: Notifications) -> Option<Result<(), String>> {
    let mut stdout = std::io::stdout();
    if how == Notifications::Off || !stdout.is_terminal() {
        return None;
    }
    let mut output = HostOutput::new(Abilities::of(variable));
    if how == Notifications::Desktop {
        output.notify("pitstop", "This is a test");
    }
    output.bell();
    let sent = stdout
        .write_all(&output.take())
        .and_then(|()| stdout.flush());
    Some(sent.map_err(|error| error.to_string()))
}
