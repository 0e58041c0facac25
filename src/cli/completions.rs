//! `pitstop completions SHELL`: the completion script of a shell.

use clap::{Arg, Args, Command, builder::PossibleValue};
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
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if args.shell == Shell::Fish {
        script.extend(program.get_subcommands().map(fish_values));
    }
    out::print(&script)
}

/// Returns what completes the values of a command's arguments in fish, for which clap completes only those of flags.
fn fish_values(command: &Command) -> String {
    let values = command.get_positionals().flat_map(Arg::get_possible_values);
    let values: Vec<_> = values.filter(|value| !value.is_hide_set()).collect();
    let names: Vec<_> = values.iter().map(PossibleValue::get_name).collect();
    let (command, names) = (command.get_name(), names.join(" "));
    let line = |value: &PossibleValue| {
        let help = value.get_help().map(ToString::to_string);
        let help = help
            .unwrap_or_default()
            .replace('\\', r"\\")
            .replace('\'', r"\'");
        let name = value.get_name();
        format!(
            "complete -c pitstop -n \"__fish_pitstop_using_subcommand {command}; and not __fish_seen_subcommand_from {names}\" \
             -f -a \"{name}\" -d '{help}'\n"
        )
    };
    values.iter().map(line).collect()
}
