//! `pitstop ctl ACTION`: gives the supervisor of this directory an order.

use std::io::{self, IsTerminal as _};

use clap::{Args, ValueEnum};
use serde_json::json;

use super::{
    out::{self, Outcome},
    save::describe,
};
use pitstop_base::clean::one_line;
use pitstop_core::{
    api::wire::{Control, OrderReply, RebootBody, SAY_LIMIT},
    lineage::{LineageError, Way},
};

/// Send a command to the supervisor of this directory.
///
/// Exits with 0 if it was accepted, 1 if it was refused, 2 on bad usage, 3 if no supervisor runs here.
#[derive(Args, Clone, Debug)]
pub struct CtlArgs {
    /// The order
    #[arg(value_enum)]
    pub action: Action,
    /// What to say; `-` reads it from standard input
    #[arg(required_if_eq("action", "say"), allow_hyphen_values = true)]
    pub text: Option<String>,
    /// With `reboot`: how the context goes over: fresh, in-place, on-the-fly or trim
    #[arg(long, value_name = "WAY", value_parser = read_way)]
    pub way: Option<Way>,
    /// With `clear-state`: do not ask
    #[arg(long)]
    pub yes: bool,
    /// Print the answer as one JSON object
    #[arg(long)]
    pub json: bool,
}

fn read_way(text: &str) -> Result<Way, String> {
    text.parse()
        .map_err(|error: LineageError| error.to_string())
}

/// The orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Action {
    /// Begin a reboot: its handoff is drafted and waits for an approval
    Reboot,
    /// Approve the reboot that waits for it
    Approve,
    /// Put the reboot off
    Defer,
    /// Save a checkpoint now
    Save,
    /// Let no reboot begin by itself
    Pause,
    /// Take back a pause
    Resume,
    /// End the new session and resume the one before the last reboot
    Undo,
    /// Forget the preserved state (decisions, issues, items, tests, earlier prompts), once you say yes; `undo` brings it back
    ClearState,
    /// Detach all terminals; the session goes on
    Detach,
    /// End the agent cleanly, and the supervisor
    Stop,
    /// Type a text as a prompt, if the agent waits for one
    Say,
}

impl Action {
    /// Returns the order, with its text if it takes one.
    fn with_text(self, text: String) -> Control {
        let name = self.to_possible_value();
        let plain = name.and_then(|name| Control::plain(name.get_name()));
        plain.unwrap_or(Control::Say(text))
    }
}

/// Gives an order that takes nothing more, as [`run`] does.
pub fn give_order(action: Action) -> Outcome {
    run(&CtlArgs {
        action,
        text: None,
        way: None,
        yes: false,
        json: false,
    })
}

/// Runs the command; 0 if the order was accepted, 1 if it was refused, 2 on bad usage, 3 if no supervisor runs here.
pub fn run(args: &CtlArgs) -> Outcome {
    if args.action != Action::Say
        && let Some(found) = &args.text
    {
        let name = args.action.with_text(String::new()).name();
        return Err(out::misused(
            format!("`{name}` takes no text and no such option, found `{found}`"),
            "`pitstop ctl --help` says what each order takes",
        ));
    }
    if args.way.is_some() && args.action != Action::Reboot {
        return Err(out::misused(
            "--way is only for `pitstop ctl reboot`",
            "for example: pitstop ctl reboot --way trim",
        ));
    }
    if args.yes && args.action != Action::ClearState {
        return Err(out::misused(
            "--yes is only for `pitstop ctl clear-state`",
            "a reboot that waits goes ahead by `pitstop ctl approve`",
        ));
    }
    if args.action == Action::ClearState && !args.yes && !ask_to_forget() {
        let hint = "`pitstop ctl clear-state --yes` does not ask";
        let error = "nothing is forgotten: you have not said yes";
        return Err(out::failed(error, hint));
    }
    let text = match args.text.as_deref() {
        // A text that is too long is read only so far that it is refused.
        Some("-") => {
            let bytes = out::piped(SAY_LIMIT as u64 + 4)
                .map_err(|error| out::failed(format!("cannot read the text: {error}"), ""))?;
            read_text(bytes).map_err(|error| out::misused(error, "nothing was sent"))?
        }
        given => given.unwrap_or_default().to_owned(),
    };
    let order = args.action.with_text(text);
    let path = format!("/control/{}", order.name());
    let body = match &order {
        Control::Say(text) => json!({ "text": text }),
        Control::Reboot => json!(RebootBody { way: args.way }),
        _ => json!({}),
    };
    let body = body.to_string();
    let answer = out::ask(|door, deadline| door.post(&path, body.as_bytes(), deadline))?;
    Ok(out::print(&show_answer(args, &answer.body)))
}

/// Returns the text that was piped. One that is no text is refused, because it would arrive as another; one that is too long may be
/// cut within a character, and is refused for its length.
fn read_text(bytes: Vec<u8>) -> Result<String, String> {
    if bytes.len() > SAY_LIMIT {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("expected UTF-8 on standard input, found another byte behind {at} bytes of text")
    })
}

/// Asks a person whether the preserved state should be forgotten; false if there is no person to ask.
fn ask_to_forget() -> bool {
    let mut answer = String::new();
    if io::stdin().is_terminal() {
        eprint!(
            "Forget the decisions, issues, items, tests and earlier prompts that are preserved here? [y/N] "
        );
        let _ = io::stdin().read_line(&mut answer);
    }
    matches!(answer.trim(), "y" | "Y" | "yes")
}

/// Returns the supervisor's answer, for people unless JSON is wanted. One of another version may answer something else;
/// its status code already shows that the order was accepted.
fn show_answer(args: &CtlArgs, body: &[u8]) -> String {
    if args.json {
        return format!("{}\n", String::from_utf8_lossy(body));
    }
    if args.action == Action::Save {
        let saved = serde_json::from_slice(body);
        return saved.map(|saved| describe(&saved)).unwrap_or_default();
    }
    let ordered: Result<OrderReply, _> = serde_json::from_slice(body);
    let message = ordered.map(|reply| format!("{}\n", one_line(&reply.message)));
    message.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piped_text_is_taken_as_it_is_or_refused() {
        assert_eq!(read_text("日本\n".into()).as_deref(), Ok("日本\n"));
        let error = read_text(b"ab\xff".to_vec()).unwrap_err();
        assert!(error.contains("behind 2 bytes"), "{error}");
        let mut long = vec![b'x'; SAY_LIMIT];
        long.extend("日".as_bytes().iter().take(2));
        assert!(read_text(long).is_ok());
    }

    #[test]
    fn every_order_can_be_given_by_its_name() {
        assert_eq!(Action::value_variants().len(), Control::PLAIN.len() + 1);
        for (name, order) in Control::PLAIN {
            let action = Action::from_str(name, false).unwrap();
            assert_eq!(action.with_text(String::new()), order);
        }
        let say = Action::from_str("say", false).unwrap();
        assert_eq!(say.with_text("x".into()), Control::Say("x".into()));
    }

    #[test]
    fn every_way_that_is_taken_is_named_in_the_help_and_the_refusal() {
        let refusal = read_way("sideways").unwrap_err();
        let command = CtlArgs::augment_args(clap::Command::new("ctl"));
        let way = command.get_arguments().find(|arg| arg.get_id() == "way");
        let help = way.and_then(|arg| arg.get_help()).unwrap().to_string();
        for way in Way::ALL {
            assert_eq!(read_way(way.as_str()), Ok(*way));
            for said in [&refusal, &help] {
                assert!(said.contains(way.as_str()), "{way}: {said}");
            }
        }
    }
}
