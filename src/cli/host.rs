//! `pitstop`, `pitstop demo`, `pitstop --agent CMD`: the wishes of the command line, handed to the supervisor.

use std::{env, ffi::OsString, io::IsTerminal, path::PathBuf};

use crate::{
    logging,
    runtime::tty,
    supervisor::{
        self, Start, StartError, Task, Work,
        program::{self, Wanted},
    },
};
use pitstop_agent::AgentKind;
use pitstop_core::{
    config::{
        error::Fault,
        load::{self, Flags, Loaded, paths::Paths},
    },
    lineage::checkpoint::Checkpoint,
};
use pitstop_demo::BRIDGE_VARIABLE;

use super::{
    here::{Environment, Here},
    offer::{self, Choice},
    out::{chain, complain, style},
    run::Order,
    template,
};

/// What to host.
#[derive(Clone, Debug, clap::Args)]
pub struct HostArgs {
    /// Host this program instead of Claude Code (pane and estimates only)
    #[arg(long, value_name = "CMD")]
    pub agent: Option<String>,
    /// Start a fresh session without asking what to do with earlier work
    #[arg(long)]
    pub new: bool,
    /// Read this configuration instead of the user's
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// Set one configuration value, such as `--set guard.warn=60`
    #[arg(long = "set", value_name = "TABLE.KEY=VALUE", global = true)]
    pub settings: Vec<String>,
    /// Arguments for the agent
    #[arg(last = true, value_name = "ARGS")]
    pub args: Vec<String>,
}

impl HostArgs {
    /// Returns the arguments that concern the configuration.
    #[must_use]
    pub fn flags(&self) -> Flags {
        Flags {
            file: self.config.clone(),
            settings: self.settings.clone(),
        }
    }
}

/// The work of the agent, as the command line asks for it.
enum Asked {
    Session,
    Run(Order),
    Restore(Checkpoint),
}

impl Asked {
    /// Checks that there is a terminal: without one only a headless autonomous run is possible.
    fn check_terminal(&self) -> Result<(), StartError> {
        let headless = matches!(self, Self::Run(order) if order.speech().is_some());
        if headless || (std::io::stdout().is_terminal() && std::io::stdin().is_terminal()) {
            return Ok(());
        }
        Err(StartError::NoTerminal {
            run: matches!(self, Self::Run(_)),
        })
    }
}

/// Hosts the agent; returns the exit code.
#[must_use]
pub fn run(args: &HostArgs, demo: bool) -> i32 {
    let mut args = args.clone();
    let asked = match choice(&args, demo) {
        Choice::New => Asked::Session,
        Choice::Restore(checkpoint) => Asked::Restore(*checkpoint),
        Choice::Resume(session) => {
            args.args = vec!["--resume".to_owned(), session.to_string()];
            Asked::Session
        }
        Choice::Quit => return 0,
    };
    report(host_agent(&args, demo, asked, None))
}

/// Returns what a person wants to do with earlier work, where there is some and a person to ask.
fn choice(args: &HostArgs, demo: bool) -> Choice {
    let is_plain = !demo && !args.new && args.agent.is_none() && args.args.is_empty();
    if !is_plain || Asked::Session.check_terminal().is_err() {
        return Choice::New;
    }
    // A fault of the directory is reported by the start itself.
    Here::find(&args.flags()).map_or(Choice::New, |here| offer::ask(&here))
}

/// Hosts the demo in directories of its own, to which these variables lead and of which the current one is the project;
/// returns the exit code.
pub(super) fn run_demo(args: &HostArgs, env: &[(OsString, OsString)]) -> i32 {
    report(host_agent(args, true, Asked::Session, Some(env)))
}

/// Hosts the agent for an autonomous run; returns the exit code.
pub(super) fn run_order(args: &HostArgs, demo: bool, order: Order) -> i32 {
    report(host_agent(args, demo, Asked::Run(order), None))
}

/// Hosts the agent as [`run`] does, in a fresh session that is given the handoff of a checkpoint.
#[must_use]
pub fn restore(args: &HostArgs, demo: bool, checkpoint: Checkpoint) -> i32 {
    report(host_agent(args, demo, Asked::Restore(checkpoint), None))
}

/// Returns the exit code; an error is shown first.
fn report(outcome: Result<i32, StartError>) -> i32 {
    outcome.unwrap_or_else(|error| {
        let what = chain(&error);
        if tty::is_stalled() {
            // Writing to the terminal would never return.
            tracing::error!(error = what, "the terminal has stalled");
        } else {
            complain(&what, error.hint());
        }
        error.code()
    })
}

fn host_agent(
    args: &HostArgs,
    demo: bool,
    asked: Asked,
    own_places: Option<&[(OsString, OsString)]>,
) -> Result<i32, StartError> {
    asked.check_terminal()?;
    supervisor::check_system()?;
    let project = env::current_dir()
        .and_then(|here| here.canonicalize())
        .map_err(StartError::Directory)?;
    let leading = own_places.unwrap_or_default();
    let paths = Paths::of_process_with(leading, &project)?;
    let flags = args.flags();
    let Loaded {
        mut config,
        warnings,
        ..
    } = load_config(&paths, &flags)?;
    if own_places.is_some() {
        // The demo has a database of its own, and must not take the listening address of another supervisor.
        config.store.url = None;
        config.api.listen = None;
    }
    let mut warnings: Vec<String> = warnings.iter().map(Fault::line).collect();
    let filter = env::var("PITSTOP_LOG").ok();
    let _log = logging::start(&paths.log_dir(), &config.log, filter.as_deref())
        .inspect_err(|error| warnings.push(chain(error)))
        .ok();
    let generator = template::generator(&paths).map_err(StartError::Template)?;
    let wanted = match &args.agent {
        _ if demo => Wanted::Demo,
        None => Wanted::Claude,
        Some(command) => Wanted::Command(command.clone()),
    };
    let mut agent = program::find(&wanted, &args.args, &config, &paths)?;
    agent.env.extend(leading.iter().cloned());
    if own_places.is_some() {
        // The demo shows all features, the bridge among them.
        agent.env.push((BRIDGE_VARIABLE.into(), "1".into()));
    }
    let work = match asked {
        Asked::Session => Work::Session,
        Asked::Restore(checkpoint) => Work::Restore(Box::new(checkpoint)),
        Asked::Run(order) => {
            if agent.kind == AgentKind::Demo {
                agent.env.extend(order.demo_env());
            }
            Work::Run(Box::new(Task {
                plan: order.plan(&config),
                speech: order.speech(),
                file: order.file,
            }))
        }
    };
    supervisor::run(Start {
        environment: Environment::of(&project, &config).name,
        project,
        paths,
        flags,
        config,
        generator,
        warnings,
        agent,
        work,
        // A person who gives arguments knows what to look at, and needs no tour.
        tour: own_places.is_some() && args.args.is_empty(),
    })
}

/// Loads the configuration; its faults are shown here.
fn load_config(paths: &Paths, flags: &Flags) -> Result<Loaded, StartError> {
    load::load(paths, flags).map_err(|errors| {
        eprint!("{}", errors.render(style(&std::io::stderr())));
        StartError::Configuration
    })
}
