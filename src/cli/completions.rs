//! `pitstop completions SHELL`: the completion script of a shell.

use clap::{Args, Command};
use clap_complete::Shell;

use super::out;

/// Print the completion script of a shell.
///
/// For example: pitstop completions bash > ~/.local/share/bash-completion/completions/pitstop
#[derive(Args, Clone, Debug)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Runs the command; `program` is the whole command line as it is defined.
pub fn run(args: &CompletionsArgs, mut program: Command) -> i32 {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "pitstop", &mut script);
    out::print(&String::from_utf8_lossy(&script))
}
