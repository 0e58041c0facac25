//! The program: it takes the arguments and ends with an exit code.

use std::ffi::OsString;
use std::process::exit;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser, Subcommand};
use pitstop::cli::{
    api, attach, check, choose, completions, context, ctl, demo, doctor, exec_agent, git_hook,
    handoff, history, hook, host, ls, man, mcp, notify, out, phone, plugin, prune, restore, run,
    save, server, status, statusline, test, trim, trust, unknown, version,
};
use pitstop::runtime::agent::SHIM;

/// The allocator: the memory kept by the system's grows over a night of reboots, each of which frees a pane in thousands of
/// pieces.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// A terminal supervisor for Claude Code: watches its context window fill and reboots it into a fresh
/// session that carries on from a handoff you have seen.
#[derive(Parser)]
#[command(name = "pitstop", version, long_version = version::long(), about)]
struct Cli {
    #[command(flatten)]
    host: host::HostArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::DemoArgs),
    Api(api::ApiArgs),
    Attach(attach::AttachArgs),
    Check(check::CheckArgs),
    Completions(completions::CompletionsArgs),
    Context(context::ContextArgs),
    Ctl(ctl::CtlArgs),
    /// Detach all terminals of the session of this directory, which goes on.
    Detach,
    Doctor(doctor::DoctorArgs),
    GitHook(git_hook::GitHookArgs),
    Handoff(handoff::HandoffArgs),
    History(history::HistoryArgs),
    Ls(ls::LsArgs),
    Man(man::ManArgs),
    Mcp(mcp::McpArgs),
    Notify(notify::NotifyArgs),
    Phone(phone::PhoneArgs),
    Plugin(plugin::PluginArgs),
    Prune(prune::PruneArgs),
    #[command(visible_alias = "rs")]
    Restore(restore::RestoreArgs),
    Run(run::RunArgs),
    #[command(visible_alias = "ss")]
    Save(save::SaveArgs),
    Status(status::StatusArgs),
    /// End the agent of this directory cleanly, and its supervisor.
    Stop,
    Test(test::TestArgs),
    Trim(trim::TrimArgs),
    Trust(trust::TrustArgs),
}

impl Cli {
    /// Returns a flag in front of the command that is without effect on it.
    fn idle_flag(&self) -> Option<&'static str> {
        let (hosts_any, begins) = match &self.command {
            // A run refuses other agents in words of its own.
            None | Some(Command::Restore(_) | Command::Run(_)) => (true, true),
            Some(Command::Demo(_)) => (false, true),
            Some(_) => (false, false),
        };
        let idle = [
            ("--agent", self.host.agent.is_some() && !hosts_any),
            ("--new", self.host.new && !begins),
        ];
        idle.into_iter()
            .find_map(|(flag, idle)| idle.then_some(flag))
    }
}

fn main() {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(code) = run_unlisted(&args) {
        exit(code);
    }
    let cli = Cli::try_parse().unwrap_or_else(|error| match unknown_command(&error, &args) {
        Some(code) => exit(code),
        None => error.exit(),
    });
    if let Some(flag) = cli.idle_flag() {
        let hint = "it is for a session that is started, by `pitstop` itself or `pitstop restore`";
        exit(out::misused(format!("`{flag}` has no effect on this command"), hint).show());
    }
    let outcome = match cli.command {
        None => host::run(&cli.host),
        Some(Command::Demo(args)) => demo::run(&args, &cli.host),
        Some(Command::Api(args)) => api::run(&args),
        Some(Command::Attach(args)) => attach::run(&args),
        Some(Command::Check(args)) => Ok(check::run(&args, &cli.host.config_flags())),
        Some(Command::Completions(args)) => Ok(completions::run(&args, Cli::command())),
        Some(Command::Context(args)) => context::run(&args),
        Some(Command::Ctl(args)) => ctl::run(&args),
        Some(Command::Detach) => ctl::give_order(ctl::Action::Detach),
        Some(Command::Doctor(args)) => doctor::run(&args, &cli.host.config_flags()),
        Some(Command::GitHook(args)) => git_hook::run(&args),
        Some(Command::Handoff(args)) => handoff::run(&args, &cli.host.config_flags()),
        Some(Command::History(args)) => history::run(&args, &cli.host.config_flags()),
        Some(Command::Ls(args)) => choose::run(&args, &cli.host),
        Some(Command::Run(args)) => run::run(&args, &cli.host),
        Some(Command::Man(args)) => man::run(&args, Cli::command()),
        Some(Command::Mcp(args)) => mcp::run(&args),
        Some(Command::Notify(args)) => notify::run(&args, &cli.host.config_flags()),
        Some(Command::Phone(args)) => phone::run(&args, &cli.host.config_flags()),
        Some(Command::Plugin(args)) => plugin::run(&args),
        Some(Command::Prune(args)) => prune::run(&args, &cli.host.config_flags()),
        Some(Command::Restore(args)) => restore::run(&args, &cli.host),
        Some(Command::Save(args)) => save::run(&args, &cli.host.config_flags()),
        Some(Command::Status(args)) => status::run(&args, &cli.host.config_flags()),
        Some(Command::Stop) => ctl::give_order(ctl::Action::Stop),
        Some(Command::Test(args)) => test::run(&args),
        Some(Command::Trim(args)) => trim::run(&args, &cli.host.config_flags()),
        Some(Command::Trust(args)) => trust::run(&args),
    };
    exit(outcome.unwrap_or_else(|failure| failure.show()))
}

/// Runs what is called by the agent, by git or by pitstop itself, and by no person; returns the exit code then. Most run inside the
/// agent's turn, or become the agent: they pay for no parser and no runtime.
fn run_unlisted(args: &[OsString]) -> Option<i32> {
    let (name, rest) = args.split_first()?;
    let first = rest.first().and_then(|first| first.to_str());
    let outcome = match (name.to_str()?, first) {
        ("hook", _) => Ok(hook::run(rest)),
        ("statusline", _) => Ok(statusline::run(rest)),
        (SHIM, _) => Ok(exec_agent::run(rest)),
        (server::SERVER, _) => Ok(server::run()),
        ("demo-agent", _) => Ok(pitstop_demo::main(&words(rest))),
        ("plugin", Some("gauge")) => plugin::answer_gauge(),
        ("plugin", Some("handoff")) => plugin::answer_handoff(),
        ("git-hook", Some("post-commit")) => Ok(git_hook::report(&rest[1..])),
        _ => return None,
    };
    Some(outcome.unwrap_or_else(|failure| failure.show()))
}

/// Prints the nearest command, if the first word is none; returns the exit code then.
fn unknown_command(error: &clap::Error, args: &[OsString]) -> Option<i32> {
    let kind = error.kind();
    if !matches!(
        kind,
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand
    ) {
        return None;
    }
    let named = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand];
    let word = named.into_iter().find_map(|kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    })?;
    let first = args.first().and_then(|first| first.to_str());
    if word.starts_with('-') || first != Some(word) {
        return None;
    }
    let command = Cli::command();
    let known = command
        .get_subcommands()
        .flat_map(|one| std::iter::once(one.get_name()).chain(one.get_all_aliases()));
    Some(unknown::failure(word, known).show())
}

fn words(args: &[OsString]) -> Vec<String> {
    args.iter()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_for_a_start_is_refused_where_nothing_is_started() {
        for (line, idle) in [
            ("--new", None),
            ("--agent cat", None),
            ("--new run --task x", None),
            ("--agent cat restore", None),
            ("--new demo", None),
            ("--agent cat demo", Some("--agent")),
            ("--agent cat status", Some("--agent")),
            ("--new ls", Some("--new")),
            ("--new save", Some("--new")),
            ("--config x --set a.b=1 status", None),
        ] {
            let words = ["pitstop"].into_iter().chain(line.split(' '));
            let cli = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(cli.idle_flag(), idle, "{line}");
        }
    }

    #[test]
    fn a_bad_age_or_number_is_told_what_it_has_to_be() {
        for (line, said) in [
            ("prune --older-than -5", "expected an age such as 30d"),
            ("mcp --iteration x", "expected the number of an iteration"),
            ("mcp --iteration -1", "expected the number of an iteration"),
        ] {
            let words = ["pitstop"].into_iter().chain(line.split(' '));
            let error = Cli::try_parse_from(words)
                .err()
                .map(|error| error.to_string());
            assert!(
                error.as_ref().is_some_and(|error| error.contains(said)),
                "{line}: {error:?}"
            );
        }
    }
}
