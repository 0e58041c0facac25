//! `pitstop handoff [--json]`: the message that the next session would be given now.

use clap::Args;

use super::out;
use crate::{api::wire::HandoffReport, clean};

/// Prints the handoff as it would be sent now.
#[derive(Args, Clone, Debug)]
pub struct HandoffArgs {
    /// Print one JSON object, with the parts it was made of
    #[arg(long)]
    pub json: bool,
}

/// Runs the command; 0, or 3 if no supervisor runs here, or 1.
#[must_use]
pub fn run(args: &HandoffArgs) -> i32 {
    match out::get::<HandoffReport>("/api/sessions/current/handoff") {
        Ok((_, json)) if args.json => out::print(&format!("{json}\n")),
        Ok((report, _)) => out::print(&describe(&report)),
        Err(code) => code,
    }
}

/// The message as text that ends its last line; what it quotes cannot drive the terminal.
fn describe(report: &HandoffReport) -> String {
    let mut text = clean::text(&report.text).into_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_keeps_its_lines_and_tabs_and_loses_its_teeth() {
        let report = HandoffReport {
            text: "# Plan\n\tdo\u{1b}]0;x\u{7}\r\n\nend".into(),
            ..HandoffReport::default()
        };
        assert_eq!(describe(&report), "# Plan\n\tdo\\u{1b}]0;x\\u{7}\n\nend\n");
    }
}
