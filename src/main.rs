//! argv in, exit code out.

use std::ffi::OsString;
use std::process::exit;

use clap::{Parser, Subcommand};
use pitstop::cli::{ctl, handoff, history, hook, status, statusline};

#[derive(Parser)]
#[command(name = "pitstop", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Status(status::StatusArgs),
    Ctl(ctl::CtlArgs),
    History(history::HistoryArgs),
    Handoff(handoff::HandoffArgs),
}

fn main() {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    // These two run inside the hosted agent's turn: they pay for no parser and no runtime.
    match args.split_first() {
        Some((name, rest)) if name == "hook" => exit(hook::run(rest)),
        Some((name, rest)) if name == "statusline" => exit(statusline::run(rest)),
        _ => {}
    }
    exit(match Cli::parse().command {
        Command::Status(args) => status::run(&args),
        Command::Ctl(args) => ctl::run(&args),
        Command::History(args) => history::run(&args),
        Command::Handoff(args) => handoff::run(&args),
    })
}
