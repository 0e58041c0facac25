//! `pitstop`, `pitstop demo`, `pitstop --agent CMD`: hosts an agent in the terminal.

use std::{
    env,
    ffi::OsString,
    io::IsTerminal,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::SystemTime,
};

use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{
    agent::{AgentKind, claude},
    api::{
        client::is_answered,
        server::{self, Desk, Feed, Secrets},
    },
    app::{
        self, Model,
        model::{Beginning, Identity},
    },
    clean,
    clock::At,
    config::{
        Config,
        error::{EXIT_CODE, Fault, Style},
        load::{
            self, Flags,
            paths::{Paths, project_hash},
        },
    },
    handoff::Generator,
    lineage::{
        EndReason, Lineage, Project, RunId, agent_registry,
        checkpoint::Checkpoint,
        files::{PrivateDir, RunDir},
        lock::{Holder, Lock, LockError},
        process,
        store::{CrashPoint, RunRecord, StoreOptions, StoreTarget},
    },
    logging,
    redact::redact,
    runtime::{
        self, Setup, Signals,
        agent::AgentPlan,
        effects::{self, SCRATCHPAD, draw_lots},
        front, host,
        keeper::Keeper,
        paint::Abilities,
        places::{self, Endpoint, Places, Watch},
        prepare::{DESCRIPTORS_AT_START, can_open},
        recovery, wall,
    },
    scratchpad,
    transcript::SessionId,
    ui::Depth,
};

mod recover;
pub(super) mod who;

use super::{
    here::Environment,
    out::{chain, complain},
    run::Order,
    template,
};
use recover::{Found, StoreStart, recover, sweep_registered};
use who::{Who, agent_config_dir, agent_env, has_todo_tools, who};

/// The name of the demo agent in the records of runs.
pub(super) const DEMO: &str = "pitstop demo";
/// The configuration has faults.
const CONFIG_ERROR: i32 = EXIT_CODE as i32;
/// Something failed.
const FAILED: i32 = 1;
/// The command line asks for something that cannot be.
const USAGE: i32 = 2;
/// We panicked: the code of every Rust program that does.
const PANICKED: i32 = 101;

/// What to host.
#[derive(Clone, Debug, clap::Args)]
pub struct HostArgs {
    /// Host this program instead of Claude Code (pane and estimates only)
    #[arg(long, value_name = "CMD")]
    pub agent: Option<String>,
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
    /// What they say about the configuration.
    #[must_use]
    pub fn flags(&self) -> Flags {
        Flags {
            file: self.config.clone(),
            settings: self.settings.clone(),
        }
    }
}

/// An error at the rim: what, what to do about it, and the exit code.
struct Failure {
    error: String,
    hint: String,
    code: i32,
}

impl Failure {
    fn new(error: impl Into<String>, hint: impl Into<String>, code: i32) -> Self {
        Self {
            error: error.into(),
            hint: hint.into(),
            code,
        }
    }

    fn of(error: &dyn std::error::Error) -> Self {
        Self::new(chain(error), "", FAILED)
    }

    /// Tells the person; gives the exit code.
    fn tell(&self) -> i32 {
        if host::is_stalled() {
            // It would never return.
            tracing::error!(error = self.error, "the terminal has stalled");
        } else {
            complain(&self.error, &self.hint);
        }
        self.code
    }
}

/// Hosts the agent; returns the exit code.
#[must_use]
pub fn run(args: &HostArgs, demo: bool) -> i32 {
    host_agent(args, demo, None, None, None).unwrap_or_else(|failure| failure.tell())
}

/// Hosts the demo in directories of its own, to which these variables lead and of which the current one is the project;
/// returns the exit code.
pub(super) fn run_demo(args: &HostArgs, env: &[(OsString, OsString)]) -> i32 {
    host_agent(args, true, None, None, Some(env)).unwrap_or_else(|failure| failure.tell())
}

/// Hosts the agent for an autonomous run; returns the exit code.
pub(super) fn run_order(args: &HostArgs, demo: bool, order: Order) -> i32 {
    host_agent(args, demo, Some(order), None, None).unwrap_or_else(|failure| failure.tell())
}

/// As [`run`], in a fresh session that is given the handoff of a checkpoint.
#[must_use]
pub fn restore(args: &HostArgs, demo: bool, checkpoint: Checkpoint) -> i32 {
    host_agent(args, demo, None, Some(checkpoint), None).unwrap_or_else(|failure| failure.tell())
}

fn host_agent(
    args: &HostArgs,
    demo: bool,
    order: Option<Order>,
    restored: Option<Checkpoint>,
    own_places: Option<&[(OsString, OsString)]>,
) -> Result<i32, Failure> {
    let headless = order.as_ref().is_some_and(|order| order.speech().is_some());
    if !headless && (!std::io::stdout().is_terminal() || !std::io::stdin().is_terminal()) {
        return Err(Failure::new(
            "expected a terminal on standard input and output, found a file or a pipe",
            if order.is_some() {
                "add --headless to run without one"
            } else {
                "run pitstop in a terminal; `pitstop status --json` is for scripts"
            },
            USAGE,
        ));
    }
    can_start()?;
    let project = env::current_dir()
        .and_then(|here| here.canonicalize())
        .map_err(|error| {
            Failure::new(
                format!("cannot find the current directory: {error}"),
                "",
                FAILED,
            )
        })?;
    let env = own_places.map_or_else(Vec::new, <[_]>::to_vec);
    let paths = Paths::of_process_with(&env, &project).map_err(|error| Failure::of(&error))?;
    let flags = args.flags();
    let mut loaded = load::load(&paths, &flags).map_err(|errors| {
        let style = Style::for_terminal(
            std::io::stderr().is_terminal(),
            env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty()),
        );
        eprint!("{}", errors.render(style));
        Failure::new(
            "the configuration has faults",
            "`pitstop check` shows them again",
            CONFIG_ERROR,
        )
    })?;
    if own_places.is_some() {
        // Its database is its own, and its door must not stand in the way of another's.
        loaded.config.store.url = None;
        loaded.config.api.listen = None;
    }
    let filter = env::var("PITSTOP_LOG").ok();
    let log = logging::start(&paths.log_dir(), &loaded.config.log, filter.as_deref());
    let mut warnings: Vec<String> = loaded.warnings.iter().map(Fault::line).collect();
    let _log = match log {
        Ok(guard) => Some(guard),
        Err(error) => {
            warnings.push(chain(&error));
            None
        }
    };
    let generator = template::generator(&paths).map_err(|error| {
        Failure::new(
            error,
            "mend it, or remove it to use the built-in one",
            CONFIG_ERROR,
        )
    })?;
    let who = who(args, demo, &loaded.config)?;
    host::restore_on_panic();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::of(&error))?;
    let here = Here {
        project,
        paths,
        flags,
        config: loaded.config,
        generator,
        warnings,
        order,
        restored,
        env,
    };
    let outcome = runtime.block_on(supervise(here, who));
    // Tasks that still run (a git question, a store that hangs) must not keep us.
    runtime.shutdown_background();
    outcome
}

/// Whether the system gives what nothing goes without.
fn can_start() -> Result<(), Failure> {
    if SystemTime::now() < SystemTime::UNIX_EPOCH {
        return Err(Failure::new(
            "the system's clock stands before 1970",
            "set it: runs, their files and usage limits are told apart by the time",
            FAILED,
        ));
    }
    can_open(DESCRIPTORS_AT_START).map_err(|error| {
        Failure::new(
            format!("no {DESCRIPTORS_AT_START} files can be opened: {error}"),
            "raise the limit, for example by `ulimit -n 1024`",
            FAILED,
        )
    })
}

/// Where we run and how.
struct Here {
    project: PathBuf,
    paths: Paths,
    flags: Flags,
    config: Config,
    generator: Generator,
    warnings: Vec<String>,
    /// What an autonomous run is to do.
    order: Option<Order>,
    /// The checkpoint whose work is taken up.
    restored: Option<Checkpoint>,
    /// Variables that lead the agent to the directories of a demo.
    env: Vec<(OsString, OsString)>,
}

/// Takes the project, finishes what a dead supervisor left, runs the loop, closes everything.
async fn supervise(here: Here, who: Who) -> Result<i32, Failure> {
    let Here {
        project,
        paths,
        flags,
        config,
        generator,
        mut warnings,
        order,
        restored,
        env: leading,
    } = here;
    let signals = Signals::new().map_err(|error| Failure::of(&error))?;
    let speech = order.as_ref().and_then(Order::speech);
    let now = wall();
    let own = process::stamp(std::process::id())
        .ok_or_else(|| Failure::new("cannot see our own process", "is /proc mounted?", FAILED))?;
    let random = *Uuid::new_v4().as_bytes();
    let mut run = RunId::new(now, [random[0], random[1], random[2]]);
    let holder = Holder {
        process: own.clone(),
        since: now,
        run: run.clone(),
    };
    let hash = project_hash(&project).map_err(|error| Failure::of(&error))?;
    let (lock, own_files) = take_lock(&paths, &hash, &holder, &mut warnings)?;
    // Whoever removes the lock does not end the supervisor, whose agent is no leftover.
    if let Some(socket) = paths.control_sockets(&hash).find(|one| is_answered(one)) {
        return Err(running(format!(
            "pitstop is already running here: it answers on {}",
            socket.display()
        )));
    }
    let files = Arc::new(project_files(&project, &paths, &mut warnings)?);
    // A scratchpad that is a link, or not ours, is refused before anything is started.
    let notes = files
        .read(SCRATCHPAD, scratchpad::MAX_BYTES)
        .map_err(|error| Failure::of(&error))?;
    let notes = if let Some(bytes) = notes {
        String::from_utf8_lossy(&bytes).into_owned()
    } else {
        files
            .write_private(SCRATCHPAD, scratchpad::TEMPLATE.as_bytes())
            .map_err(|error| Failure::of(&error))?;
        scratchpad::TEMPLATE.to_owned()
    };

    let target = StoreTarget::new(config.store.url.as_deref(), paths.state_dir())
        .map_err(|error| Failure::of(&error))?;
    let crash = env::var("PITSTOP_CRASH_AT")
        .ok()
        .and_then(|point| point.parse::<CrashPoint>().ok());
    let options = StoreOptions {
        crash,
        ..StoreOptions::new(target)
    };
    let start = StoreStart {
        options,
        project: Project::new(&project, &process::host_name()),
        files: Arc::clone(&files),
        at: now,
    };

    let mut plan = AgentPlan {
        kind: who.kind,
        program: who.program,
        lead_args: who.lead_args,
        user_args: who.args,
        env: agent_env(who.kind, &config, &paths),
        exe: who.exe,
        observe: PathBuf::new(),
        scratchpad: files.path().join(SCRATCHPAD),
        registry: PathBuf::new(),
        project: project.clone(),
        files: None,
        runtime_dir: paths.runtime_dir().to_owned(),
        state_dir: paths.state_dir().to_owned(),
        config_dir: agent_config_dir(who.kind, &paths),
    };
    plan.env.extend(leading);
    if let Some(order) = order.as_ref().filter(|_| who.kind == AgentKind::Demo) {
        plan.env.extend(order.demo_env());
    }
    sweep_registered(&own_files, &mut warnings).await;
    match agent_registry::begin(&own_files) {
        Ok(registry) => plan.registry = registry,
        Err(error) => warnings.push(chain(&error)),
    }
    // Whoever restores a checkpoint has chosen how to go on.
    let instead = restored
        .is_some()
        .then_some("a checkpoint was restored instead");
    let Found {
        store,
        warnings: found,
        unfinished,
        died,
    } = start
        .open(instead, |session| plan.can_resume(session))
        .await
        .map_err(|error| Failure::of(&error))?;
    warnings.extend(found);
    let lineage = match &unfinished {
        Some(entry) => {
            run = entry.run.clone();
            recovery::recorded(&store, &run, now).await
        }
        None => Lineage::new(run.clone()),
    };
    plan.files = match RunDir::open(&files, &run) {
        Ok(directory) => Some(directory),
        Err(error) => {
            warnings.push(chain(&error));
            None
        }
    };
    let record = RunRecord {
        run: run.clone(),
        project: start.project.clone(),
        process: own,
        agent: who.shown.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        task: order.as_ref().map(|order| order.task().to_owned()),
        started_at: now,
        ended_at: None,
        end_reason: None,
    };
    // Before there is anything of the run's that could be lost: the next start finds what a killed one left by its record.
    if let Err(error) = store.begin_run(&record).await {
        warnings.push(chain(&error));
    }

    let listening = places::bind(&paths, &hash).map_err(|error| Failure::of(&error))?;
    let socket = listening.file().map(|file| file.path().to_owned());
    let own_line = plan.user_status_line().map(OsString::from);
    let secrets = places::write_secrets(
        &paths,
        &hash,
        &socket.unwrap_or_default(),
        own_line.as_deref(),
    )
    .map_err(|error| Failure::of(&error))?;
    plan.observe = secrets.observe_file().to_owned();
    let (calls_in, calls) = mpsc::channel(1024);
    let mark = Uuid::new_v4().simple().to_string();
    let feed = Feed::new(mark.get(..8).unwrap_or(&mark));
    let desk = Desk::new(calls_in, feed.clone());
    let (stop_doors, doors_stopped) = tokio::sync::watch::channel(false);
    let mut port = None;
    if let Some(address) = config.api.listen {
        let listening = server::bind_loopback(address)
            .await
            .map_err(|error| Failure::of(&error))?;
        port = Some(open_port(listening, &secrets, &desk, &doors_stopped));
    }
    let endpoint = Endpoint::open(listening, secrets.keys(), desk.clone());
    let endpoint =
        endpoint.ok_or_else(|| Failure::new("the control socket is a port", "", FAILED))?;
    let answers = mpsc::channel(runtime::ANSWERS_IN_FLIGHT);
    let watch_places = Watch::start(
        Places {
            lock,
            endpoint,
            secrets,
            desk,
            paths: paths.clone(),
            hash,
            agents: PrivateDir::open_again(own_files.path()).ok(),
            run: plan.files.clone(),
        },
        answers.0.clone(),
    );
    let keeper = Keeper {
        store,
        files: RunDir::open(&files, &run).ok(),
        run,
        project: start.project,
        measured: None,
        newest: None,
    };
    let keeper = keeper.start(answers.0.clone());

    let identity = Identity {
        version: env!("CARGO_PKG_VERSION"),
        pid: std::process::id(),
        project: project.display().to_string(),
        environment: Environment::of(&project, &config).name,
        agent_kind: who.kind.word(),
        agent_command: who.shown,
        todo_tools: has_todo_tools(&config),
    };
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let depth = Depth::of(
        &variable("NO_COLOR"),
        &variable("COLORTERM"),
        &variable("TERM"),
        &variable("TERM_PROGRAM"),
    );
    let abilities = Abilities::of(variable);
    let lots = draw_lots();
    let session = match claude::user_session(&plan.user_args) {
        claude::UserSession::Named(session) if who.kind.tells() => session,
        _ => SessionId::new(Uuid::new_v4()),
    };
    let mut model = Model::new(Beginning {
        identity,
        config,
        lineage,
        session,
        lots,
        notes,
        generator,
        host: if speech.is_some() {
            front::HEADLESS
        } else {
            host::size()
        },
        now: At {
            since_start: std::time::Duration::ZERO,
            wall: now,
        },
    });
    for warning in warnings {
        tracing::warn!(warning);
        if speech.is_some() {
            // Before the first line of the run; nobody sees a footer.
            eprintln!("warning: {}", clean::one_line(&redact(&warning)));
        }
        model.trouble(warning);
    }
    if let Some(died) = died {
        tracing::warn!(died);
        model.notice(died);
    }
    let recovered = match restored {
        Some(_) => None,
        None => unfinished.map(|entry| recover(&mut model, &plan, &entry)),
    };
    let task = order.as_ref().and_then(|order| order.file.clone());
    let first = match (order, recovered) {
        (Some(order), recovered) => {
            let rules = order.plan(&model.config);
            app::autopilot::begin(&mut model, rules, task.is_some(), recovered)
        }
        (None, Some(recovered)) => recovered,
        (None, None) if restored.is_some() => {
            restored.as_ref().map_or_else(Vec::new, |checkpoint| {
                app::checkpoint::restore(&mut model, checkpoint)
            })
        }
        (None, None) => app::agent::begin(&mut model, false, None, who.prompt),
    };
    let setup = Setup {
        model,
        first,
        agent: plan,
        keeper: keeper.clone(),
        answers,
        calls,
        feed,
        paths,
        flags,
        depth,
        abilities,
        signals,
        speech,
        task,
    };
    let ran = survive(Box::pin(runtime::run(setup))).await;
    host::restore();
    let Some(ran) = ran else {
        // The run's record stays open: the next start closes it and says how to go on.
        watch_places.close().await;
        return Err(Failure::new(
            "pitstop has broken; this is a fault of its own",
            "start it again: it finds what this one left and names the session; the log has the report",
            PANICKED,
        ));
    };
    let _ = stop_doors.send(true);
    let quitting = ran.as_ref().ok().and_then(|(_, model)| model.quitting);
    let reason = quitting.map_or(EndReason::Shutdown, |quitting| quitting.reason);
    effects::close(&keeper, reason).await;
    watch_places.close().await;
    if let Some(port) = port {
        let _ = tokio::time::timeout(std::time::Duration::from_millis(300), port).await;
    }
    let (code, model) = ran.map_err(|error| Failure::of(&error))?;
    if speech.is_none() {
        farewell(&model, who.kind);
    } else {
        for left in &model.left_running {
            eprintln!("warning: {}", clean::one_line(&redact(left)));
        }
    }
    Ok(code)
}

/// Runs a future to its end; `None` when it panics, which the panic hook has told already.
async fn survive<T>(mut future: Pin<Box<impl Future<Output = T>>>) -> Option<T> {
    std::future::poll_fn(|context| {
        // Nothing of it is used after a panic.
        let poll = AssertUnwindSafe(|| future.as_mut().poll(context));
        match catch_unwind(poll) {
            Ok(poll) => poll.map(Some),
            Err(_) => Poll::Ready(None),
        }
    })
    .await
}

/// Somebody else supervises this project.
fn running(error: String) -> Failure {
    Failure::new(
        error,
        "one pitstop a project: use that one (`pitstop status`, `pitstop ctl stop`), or another directory",
        FAILED,
    )
}

/// Takes the project's lock, in the user's state directory; gives the directory too, which is the project's own there.
/// Where the state directory takes no files the runtime directory serves.
fn take_lock(
    paths: &Paths,
    hash: &str,
    holder: &Holder,
    warnings: &mut Vec<String>,
) -> Result<(Lock, PrivateDir), Failure> {
    let take = |files: PrivateDir| Ok((Lock::acquire(&files, holder)?, files));
    let taken = PrivateDir::open_beside(paths.state_dir(), hash)
        .map_err(LockError::from)
        .and_then(take);
    let taken = match taken {
        Err(LockError::Files(error)) if error.is_unwritable() || error.is_disk_trouble() => {
            warnings.push(chain(&error));
            PrivateDir::open_path(&paths.runtime_dir().join(hash))
                .map_err(LockError::from)
                .and_then(take)
        }
        taken => taken,
    };
    taken.map_err(|error| match &error {
        LockError::Held(_) => running(chain(&error)),
        _ => Failure::of(&error),
    })
}

/// The project's `.pitstop`; where the project cannot be written, a directory of the user's own in its place.
fn project_files(
    project: &Path,
    paths: &Paths,
    warnings: &mut Vec<String>,
) -> Result<PrivateDir, Failure> {
    let error = match PrivateDir::open_project(project) {
        Ok(files) => return Ok(files),
        Err(error) if error.is_unwritable() => error,
        Err(error) => {
            return Err(Failure::new(
                chain(&error),
                "pitstop keeps its files in .pitstop of the project and follows no links there: move it away",
                FAILED,
            ));
        }
    };
    let hash = project_hash(project).map_err(|error| Failure::of(&error))?;
    let files =
        PrivateDir::open_beside(paths.state_dir(), &hash).map_err(|error| Failure::of(&error))?;
    warnings.push(format!(
        "notes and runs are kept in {}: {}",
        files.path().display(),
        chain(&error)
    ));
    Ok(files)
}

fn open_port(
    listening: server::Listening,
    secrets: &Secrets,
    desk: &Desk,
    stopped: &tokio::sync::watch::Receiver<bool>,
) -> tokio::task::JoinHandle<()> {
    let (keys, desk, mut stopped) = (secrets.keys(), desk.clone(), stopped.clone());
    tokio::spawn(async move {
        let stop = async move {
            // A sender that is gone means the same.
            let _ = stopped.wait_for(|stop| *stop).await;
        };
        server::serve(listening, keys, desk, stop).await;
    })
}

/// What a person who has left wants to know: how to go on.
fn farewell(model: &Model, kind: AgentKind) {
    let iterations = model.lineage.iterations().len();
    let plural = if iterations == 1 { "" } else { "s" };
    let mut text = format!(
        "pitstop: {iterations} iteration{plural} in run {}\n",
        model.run()
    );
    if let Some(report) = app::autopilot::report(model) {
        let why = report.why.unwrap_or_default();
        text = format!("{text}the run is over: {}\n", clean::one_line(&why));
    }
    if kind == AgentKind::Claude && model.agent.hooked {
        let session = model.session;
        text = format!("{text}to go on: pitstop -- --resume {session}\n");
    }
    for left in &model.left_running {
        text = format!("{text}{}\n", clean::one_line(left));
    }
    host::last_words(&redact(&text));
}
