//! `pitstop`, `pitstop demo`, `pitstop --agent CMD`: what the command line asks for, handed to a supervisor in a process of its own. A
//! headless run is supervised in this one.

use std::{env, os::unix::net::UnixStream, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    logging,
    supervisor::{
        self, Start, StartError, Task, Work,
        program::{self, Wanted},
    },
};
use pitstop_agent::{AgentKind, claude};
use pitstop_base::redact;
use pitstop_core::{
    config::{
        Config,
        error::Fault,
        load::{
            self, Flags, Loaded,
            paths::{Paths, project_here},
        },
    },
    lineage::checkpoint::Checkpoint,
};
use pitstop_demo::BRIDGE_VARIABLE;

use super::{
    attach::{self, AttachArgs},
    demo::{DemoDirs, DemoPlace},
    here::{Environment, Here, lasting_holder},
    offer::{self, Choice},
    out::{self, Outcome, chain, style},
    run::RunRequest,
    server, template,
};

/// The place of the flags of every command in its help: behind its own, before `--help`.
const LAST: usize = 900;

/// What to host.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct HostArgs {
    /// Host this program instead of Claude Code (pane and estimates only)
    #[arg(long, value_name = "CMD")]
    pub agent: Option<String>,
    /// Start a fresh session without asking what to do with earlier work
    #[arg(long)]
    pub new: bool,
    /// Read this file instead of your own configuration
    #[arg(long, value_name = "FILE", global = true, display_order = LAST)]
    pub config: Option<PathBuf>,
    /// Set one configuration value, such as `--set guard.warn=60`
    #[arg(long = "set", value_name = "TABLE.KEY=VALUE", global = true, display_order = LAST + 1)]
    pub settings: Vec<String>,
    /// Arguments for the agent
    #[arg(last = true, value_name = "ARGS")]
    pub args: Vec<String>,
}

impl HostArgs {
    /// Returns the arguments that concern the configuration.
    pub fn config_flags(&self) -> Flags {
        Flags {
            file: self.config.clone(),
            settings: self.settings.clone(),
        }
    }

    /// Reports whether the session that runs here will do, because nothing is asked for that a new one would have.
    fn asks_for_nothing(&self) -> bool {
        let begins = self.new || self.agent.is_some() || self.config.is_some();
        !begins && self.settings.is_empty() && self.args.is_empty()
    }
}

/// What a supervisor is asked to host.
#[derive(Serialize, Deserialize)]
pub(super) struct Request {
    pub args: HostArgs,
    /// The place of the demo's project; `None` if it is not the demo that is hosted.
    pub demo: Option<DemoPlace>,
    pub asked: Asked,
}

/// The work of the agent, as the command line asks for it.
#[derive(Serialize, Deserialize)]
pub(super) enum Asked {
    Session,
    Run(Box<RunRequest>),
    Restore(Box<Checkpoint>),
}

impl Asked {
    /// Reports whether it is a run without a terminal.
    fn is_headless(&self) -> bool {
        matches!(self, Self::Run(request) if request.line_format().is_some())
    }
}

/// Hosts the agent, or shows the session that runs here already; returns the exit code.
pub fn run(args: &HostArgs) -> Outcome {
    begin_choice(args, ask_choice(args))
}

/// Begins what was chosen; returns the exit code.
pub(super) fn begin_choice(args: &HostArgs, choice: Choice) -> Outcome {
    let mut args = args.clone();
    let asked = match choice {
        Choice::Attach => return attach::run(&AttachArgs::default()),
        Choice::New => Asked::Session,
        Choice::Restore(checkpoint) => Asked::Restore(checkpoint),
        Choice::Resume(session) => {
            // In front of a prompt of the user's, which may be the last argument.
            let resume = ["--resume".to_owned(), session.to_string()];
            args.args.splice(..0, resume);
            Asked::Session
        }
        Choice::Quit(code) => return Ok(code),
    };
    // Settings and arguments are for a session that begins.
    let may_attach = out::has_terminal() && args.asks_for_nothing();
    let flags = args.config_flags();
    let outcome = start_session(Request {
        args,
        demo: None,
        asked,
    });
    outcome.or_else(|failure| {
        let here = may_attach.then(|| Here::find(&flags).ok()).flatten();
        let holder = here.and_then(|here| lasting_holder(&here.paths, &here.directory));
        // Another one has begun here in the same moment.
        match holder {
            Some(_) => attach::run(&AttachArgs::default()),
            None => Err(failure),
        }
    })
}

/// Returns what a person wants to do with earlier work, where there is some and a person to ask.
fn ask_choice(args: &HostArgs) -> Choice {
    let chosen = args.new || args.agent.is_some() || claude::chooses_session(&args.args);
    if chosen || !out::has_terminal() {
        return Choice::New;
    }
    // A fault of the directory is reported by the start itself.
    let Ok(here) = Here::find(&args.config_flags()) else {
        return Choice::New;
    };
    if lasting_holder(&here.paths, &here.directory).is_none() {
        return offer::ask_for_work(&here);
    }
    // Where it is asked for a session that begins, the start says that one runs already.
    if args.asks_for_nothing() {
        Choice::Attach
    } else {
        Choice::New
    }
}

/// Has a supervisor host what is asked for, and shows it in this terminal; a headless run is hosted in this process. Returns the exit
/// code.
pub(super) fn start_session(mut request: Request) -> Outcome {
    let config = request.args.config.take();
    request.args.config = config.map(|file| std::path::absolute(&file).unwrap_or(file));
    let is_headless = request.asked.is_headless();
    let run = matches!(request.asked, Asked::Run(_));
    let checked = match out::check_terminal() {
        Err(why) if !is_headless => Err(StartError::NoTerminal { why, run }),
        // Here, where a person sees the lines of the faults.
        _ => supervisor::check_system().and_then(|()| check_place(&request)),
    };
    let outcome = match checked {
        Ok(()) if is_headless => host_session(request, &mut None),
        Ok(()) => return server::start(&request),
        Err(error) => Err(error),
    };
    outcome.map_err(|error| out::not_started(&error))
}

/// Checks the configuration, and waits until a supervisor of the project that is ending has ended.
fn check_place(request: &Request) -> Result<(), StartError> {
    let flags = request.args.config_flags();
    if let Some(DemoPlace::Temporary { .. }) = request.demo {
        // The project's own file does not concern it.
        let paths = Paths::of_process(&env::temp_dir())?;
        return load_config(&paths, &flags).map(drop);
    }
    let project = project_here().map_err(StartError::Directory)?;
    let paths = Paths::of_process(&project)?;
    load_config(&paths, &flags)?;
    // The start refuses to begin beside one that goes on, and names it.
    let _ = lasting_holder(&paths, &project);
    Ok(())
}

/// Hosts what is asked for until it is over; returns the exit code. The loop takes the connection to the client whose terminal shows
/// it, if there is one.
pub(super) fn host_session(
    request: Request,
    terminal: &mut Option<UnixStream>,
) -> Result<i32, StartError> {
    let Request { args, demo, asked } = request;
    let demo_dirs = match demo {
        Some(DemoPlace::Temporary { keep }) => Some(DemoDirs::enter_project(keep)?),
        Some(DemoPlace::Here) | None => None,
    };
    let project = match demo_dirs {
        Some(_) => env::current_dir().and_then(|here| here.canonicalize()),
        None => project_here(),
    };
    let project = project.map_err(StartError::Directory)?;
    let leading = demo_dirs.as_ref().map(DemoDirs::env);
    let leading = leading.as_ref().map_or(&[][..], |env| &env[..]);
    let paths = Paths::of_process_with(leading, &project)?;
    let mut flags = args.config_flags();
    if demo_dirs.is_some() {
        // No list of sessions names it, so it would run on unseen.
        flags.settings.insert(0, "session.on_hangup=end".to_owned());
        // The demo has a database of its own, and must not take the listening address of another supervisor.
        let own = ["store.url=", "api.listen="];
        flags.settings.extend(own.map(str::to_owned));
    }
    let Loaded {
        config, warnings, ..
    } = load_config(&paths, &flags)?;
    let mut warnings: Vec<String> = warnings.iter().map(Fault::line).collect();
    let filter = env::var("PITSTOP_LOG").ok();
    let _log = logging::start(&paths.log_dir(), &config.log, filter.as_deref())
        .inspect_err(|error| warnings.push(chain(error)))
        .ok();
    let generator = template::generator(&paths).map_err(StartError::Template)?;
    let wanted = match &args.agent {
        _ if demo.is_some() => Wanted::Demo,
        None => Wanted::Claude,
        Some(command) => Wanted::Command(command.clone()),
    };
    let mut agent = program::find(&wanted, &args.args, &config, &paths)?;
    agent.env.extend(leading.iter().cloned());
    if demo_dirs.is_some() {
        // The demo shows all features, the bridge among them.
        agent.env.push((BRIDGE_VARIABLE.into(), "1".into()));
    }
    let is_session = matches!(asked, Asked::Session);
    if let Asked::Run(request) = &asked
        && agent.kind == AgentKind::Demo
    {
        agent.env.extend(request.demo_env());
    }
    let work = work_of(asked, &config, args.new);
    // Here, because what the command line names is sought where it was called.
    env::set_current_dir(&project).map_err(StartError::Directory)?;
    let start = Start {
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
        tour: demo_dirs.is_some() && args.args.is_empty() && is_session,
    };
    supervisor::run(start, terminal, || {
        demo_dirs.map_or_else(String::new, DemoDirs::close)
    })
}

/// Returns the work that is asked for; a run `begins_new` where it does not go on with an earlier one.
fn work_of(asked: Asked, config: &Config, begins_new: bool) -> Work {
    match asked {
        Asked::Session => Work::Session,
        Asked::Restore(checkpoint) => Work::Restore(checkpoint),
        Asked::Run(request) => Work::Run(Box::new(Task {
            plan: request.plan(config),
            line_format: request.line_format(),
            file: request.file,
            begins_new,
        })),
    }
}

/// Loads the configuration; its faults are shown here.
fn load_config(paths: &Paths, flags: &Flags) -> Result<Loaded, StartError> {
    load::load(paths, flags).map_err(|errors| {
        let shown = errors.render(style(&std::io::stderr()));
        eprint!("{}", redact::redact(&shown));
        StartError::Configuration
    })
}
