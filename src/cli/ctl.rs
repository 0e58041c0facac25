//! `pitstop ctl ACTION`: gives the supervisor of this directory an order.

use clap::{Args, ValueEnum};

use super::out;
use crate::{
    api::wire::{CheckpointBody, Control, RebootBody},
    lineage::Way,
};

/// Gives the supervisor of this directory an order.
///
/// Exits with 0 if it was accepted, 1 if it was refused, 3 if no supervisor runs here.
#[derive(Args, Clone, Debug)]
pub struct CtlArgs {
    /// The order
    #[arg(value_enum)]
    pub action: Action,
    /// With `reboot`: how the context goes over
    #[arg(long, value_name = "WAY", value_parser = way)]
    pub way: Option<Way>,
}

fn way(text: &str) -> Result<Way, String> {
    text.parse()
        .map_err(|_| format!("expected fresh or trim, found {text:?}"))
}

/// The orders that need no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Action {
    /// Begin a reboot; in `ask` mode its review opens
    Reboot,
    /// Approve the review that is open
    Approve,
    /// Put the reboot off
    Defer,
    /// Write a checkpoint now
    Save,
    /// Let no reboot begin by itself
    Pause,
    /// Take back a pause
    Resume,
    /// End the new session and resume the one before the last reboot
    Undo,
    /// End the agent cleanly, and the supervisor
    Stop,
}

impl Action {
    fn order(self) -> Control {
        match self {
            Self::Reboot => Control::Reboot,
            Self::Approve => Control::Approve,
            Self::Defer => Control::Defer,
            Self::Save => Control::Save(CheckpointBody::EMPTY),
            Self::Pause => Control::Pause,
            Self::Resume => Control::Resume,
            Self::Undo => Control::Undo,
            Self::Stop => Control::Stop,
        }
    }
}

/// Runs the command; 0 if the order was accepted, 1 if it was refused, 3 if no supervisor runs here.
#[must_use]
pub fn run(args: &CtlArgs) -> i32 {
    if args.way.is_some() && args.action != Action::Reboot {
        out::complain(
            "--way goes with reboot only",
            "pitstop ctl reboot --way trim",
        );
        return out::USAGE;
    }
    let path = format!("/control/{}", args.action.order().name());
    let body = serde_json::to_vec(&RebootBody { way: args.way }).unwrap_or_default();
    match out::ask(|door, deadline| door.post(&path, &body, deadline)) {
        Ok(_) => out::OK,
        Err(code) => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_without_a_text_can_be_given_by_its_name() {
        assert_eq!(Action::value_variants().len(), Control::PLAIN.len());
        for (name, order) in Control::PLAIN {
            let action = Action::from_str(name, false).unwrap();
            assert_eq!(action.order(), order);
        }
    }
}
