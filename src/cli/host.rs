//! `pitstop`, `pitstop demo`, `pitstop --agent CMD`: hosts an agent in the terminal.

use std::{
    env,
    ffi::{OsStr, OsString},
    io::IsTerminal,
    path::{Path, PathBuf},
};

use chrono::Utc;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{
    agent::{AgentKind, claude},
    api::server::{self, Secrets},
    app::{
        self, Effect, Model,
        model::{Beginning, Identity},
        reboot,
    },
    clock::At,
    config::{
        Config,
        error::{EXIT_CODE, Fault, Style},
        load::{
            self, Flags,
            paths::{Paths, project_hash},
        },
    },
    handoff::{Generator, Handoff, Marker, generate::DEFAULT_TEMPLATE},
    lineage::{
        Cause, EndReason, Lineage, Project, RunId,
        files::{PrivateDir, RunDir},
        journal::{self, Evidence, JournalEntry, Recovery, Step},
        lock::{Holder, Lock, LockError},
        process,
        store::{CrashPoint, Opened, RunRecord, Store, StoreOptions, StoreTarget},
    },
    logging,
    runtime::{
        self, Setup,
        agent::AgentPlan,
        effects::{self, SCRATCHPAD, draw_lots},
        host,
        keeper::Keeper,
        recovery,
    },
    scratchpad,
    transcript::{SessionId, tail::find_prompt},
    ui::Depth,
};

use super::out::complain;

/// The configuration has faults.
const CONFIG_ERROR: i32 = EXIT_CODE as i32;
/// Something failed.
const FAILED: i32 = 1;
/// The command line asks for something that cannot be.
const USAGE: i32 = 2;
/// The agent cannot be run (DESIGN 8).
const NO_AGENT: i32 = 5;

/// What the demo is asked to do at its start.
const DEMO_TASK: &str = "Build tidepool, a small command-line feed reader, with tests and a README";

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
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Hosts the agent; returns the exit code.
#[must_use]
pub fn run(args: &HostArgs, demo: bool) -> i32 {
    match host_agent(args, demo) {
        Ok(code) => code,
        Err(failure) => {
            complain(&failure.error, &failure.hint);
            failure.code
        }
    }
}

fn host_agent(args: &HostArgs, demo: bool) -> Result<i32, Failure> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(Failure::new(
            "expected a terminal on standard input and output, found a file or a pipe",
            "run pitstop in a terminal; `pitstop status --json` is for scripts",
            USAGE,
        ));
    }
    let project = env::current_dir()
        .and_then(|here| here.canonicalize())
        .map_err(|error| {
            Failure::new(
                format!("cannot find the current directory: {error}"),
                "",
                FAILED,
            )
        })?;
    let paths = Paths::of_process(&project).map_err(|error| Failure::of(&error))?;
    let flags = args.flags();
    let loaded = load::load(&paths, &flags).map_err(|errors| {
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
        warnings,
    };
    let outcome = runtime.block_on(supervise(here, who));
    // Tasks that still run (a git question, a store that hangs) must not keep us.
    runtime.shutdown_background();
    outcome
}

/// Where we run and how.
struct Here {
    project: PathBuf,
    paths: Paths,
    flags: Flags,
    config: Config,
    warnings: Vec<String>,
}

/// Whom we host.
struct Who {
    kind: AgentKind,
    program: PathBuf,
    lead_args: Vec<OsString>,
    args: Vec<String>,
    shown: String,
    exe: PathBuf,
    prompt: Option<String>,
}

fn who(args: &HostArgs, demo: bool, config: &Config) -> Result<Who, Failure> {
    let exe = env::current_exe().map_err(|error| Failure::of(&error))?;
    let mut all = config.agent.args.clone();
    all.extend(args.args.iter().cloned());
    if demo {
        return Ok(Who {
            kind: AgentKind::Demo,
            program: exe.clone(),
            lead_args: vec!["demo-agent".into()],
            prompt: args.args.is_empty().then(|| DEMO_TASK.to_owned()),
            args: args.args.clone(),
            shown: "pitstop demo".to_owned(),
            exe,
        });
    }
    let (kind, mut words) = match &args.agent {
        None => (AgentKind::Claude, vec![config.agent.command.clone()]),
        Some(command) => (AgentKind::Generic, split_words(command)),
    };
    if words.is_empty() {
        return Err(Failure::new(
            "expected a command after --agent, found nothing",
            "",
            USAGE,
        ));
    }
    let name = words.remove(0);
    let program = find_program(OsStr::new(&name)).ok_or_else(|| {
        Failure::new(
            format!("expected the agent `{name}` in the PATH, found no such program"),
            "install Claude Code (npm install -g @anthropic-ai/claude-code), set [agent] command, or see how \
             pitstop works without it: pitstop demo",
            NO_AGENT,
        )
    })?;
    if kind == AgentKind::Claude && claude::prints(&all) {
        return Err(Failure::new(
            "expected an interactive agent, found -p among its arguments",
            "`claude -p` needs no pane: run it without pitstop",
            USAGE,
        ));
    }
    words.extend(all);
    Ok(Who {
        kind,
        program,
        lead_args: Vec::new(),
        args: words,
        shown: name,
        exe,
        prompt: None,
    })
}

/// A command as a shell would split it at spaces, with quotes for words that hold some.
fn split_words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_with(String::new);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_with(String::new).push(c),
        }
    }
    words.extend(word);
    words
}

fn find_program(name: &OsStr) -> Option<PathBuf> {
    let runs = |path: &Path| {
        path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    let path = Path::new(name);
    if path.components().count() > 1 {
        return runs(path).then(|| path.canonicalize().ok()).flatten();
    }
    env::split_paths(&env::var_os("PATH")?)
        .map(|dir| dir.join(name))
        .find(|path| runs(path))
}

/// Takes the project, finishes what a dead supervisor left, runs the loop, closes everything.
async fn supervise(here: Here, who: Who) -> Result<i32, Failure> {
    let Here {
        project,
        paths,
        flags,
        config,
        mut warnings,
    } = here;
    let now = Utc::now();
    let files = PrivateDir::open_project(&project).map_err(|error| Failure::of(&error))?;
    let own = process::stamp(std::process::id())
        .ok_or_else(|| Failure::new("cannot see our own process", "is /proc mounted?", FAILED))?;
    let random = *Uuid::new_v4().as_bytes();
    let mut run = RunId::new(now, [random[0], random[1], random[2]]);
    let holder = Holder {
        process: own.clone(),
        since: now,
        run: run.clone(),
    };
    let _lock = Lock::acquire(&files, &holder).map_err(|error| match &error {
        LockError::Held(_) => Failure::new(
            chain(&error),
            "one pitstop a project: use that one (`pitstop status`, `pitstop ctl stop`), or another directory",
            FAILED,
        ),
        _ => Failure::of(&error),
    })?;
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
    let Opened {
        store,
        warnings: told,
    } = Store::open(options)
        .await
        .map_err(|error| Failure::of(&error))?;
    warnings.extend(told.iter().map(ToString::to_string));
    let this_project = Project::new(&project, &process::host_name());
    sweep(&store, &this_project, &mut warnings).await;

    let mut plan = AgentPlan {
        kind: who.kind,
        program: who.program,
        lead_args: who.lead_args,
        user_args: who.args,
        env: agent_env(who.kind, &config, &paths),
        exe: who.exe,
        observe: PathBuf::new(),
        scratchpad: files.path().join(SCRATCHPAD),
        project: project.clone(),
        files: None,
        runtime_dir: paths.runtime_dir().to_owned(),
        config_dir: agent_config_dir(who.kind, &paths),
    };
    let unfinished = match store.journal_open(&this_project).await {
        Ok(entry) => entry.filter(|entry| !entry.step.is_final()),
        Err(error) => {
            warnings.push(chain(&error));
            None
        }
    };
    let kept = unfinished.as_ref().map(|entry| &entry.run);
    let died = recovery::close_dead_runs(&store, &this_project, kept, &files, &plan, now).await;
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
        project: this_project.clone(),
        process: own,
        agent: who.shown.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        task: None,
        started_at: now,
        ended_at: None,
        end_reason: None,
    };
    if let Err(error) = store.begin_run(&record).await {
        warnings.push(chain(&error));
    }

    let hash = project_hash(&project).map_err(|error| Failure::of(&error))?;
    let socket = paths.control_socket(&hash);
    let listening = server::bind_control_socket(&socket).map_err(|error| Failure::of(&error))?;
    let own_line = plan.user_status_line().map(OsString::from);
    let secrets = Secrets::create(paths.runtime_dir(), &hash, &socket, own_line.as_deref())
        .map_err(|error| Failure::of(&error))?;
    plan.observe = secrets.observe_file().to_owned();
    let (calls_in, calls) = mpsc::channel(1024);
    let (stop_doors, doors_stopped) = tokio::sync::watch::channel(false);
    let mut doors = vec![open_door(listening, &secrets, &calls_in, &doors_stopped)];
    if let Some(address) = config.api.listen {
        let listening = server::bind_loopback(address)
            .await
            .map_err(|error| Failure::of(&error))?;
        doors.push(open_door(listening, &secrets, &calls_in, &doors_stopped));
    }
    drop(calls_in);

    let answers = mpsc::channel(runtime::ANSWERS_IN_FLIGHT);
    let files_of_run = RunDir::open(&files, &run).ok();
    let keeper = Keeper {
        store,
        files: files_of_run,
        run: run.clone(),
        project: this_project,
    };
    let keeper = keeper.start(answers.0.clone());

    let identity = Identity {
        version: env!("CARGO_PKG_VERSION"),
        pid: std::process::id(),
        project: project.display().to_string(),
        environment: environment(&project),
        agent_kind: who.kind.word(),
        agent_command: who.shown,
    };
    let generator = generator(&paths)?;
    let variable = |name| env::var(name).unwrap_or_default();
    let depth = Depth::of(
        &variable("NO_COLOR"),
        &variable("COLORTERM"),
        &variable("TERM"),
        &variable("TERM_PROGRAM"),
    );
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
        host: host::size(),
        now: At {
            since_start: std::time::Duration::ZERO,
            wall: now,
        },
    });
    for warning in warnings {
        tracing::warn!(warning);
        model.trouble(warning);
    }
    if let Some(died) = died {
        tracing::warn!(died);
        model.notice(died);
    }
    let first = match unfinished {
        Some(entry) => recover(&mut model, &plan, &entry),
        None => app::agent::begin(&mut model, false, None, who.prompt),
    };
    let setup = Setup {
        model,
        first,
        agent: plan,
        keeper: keeper.clone(),
        answers,
        calls,
        paths,
        flags,
        depth,
    };
    let ran = Box::pin(runtime::run(setup)).await;
    host::restore();
    let _ = stop_doors.send(true);
    let reason = EndReason::Shutdown;
    effects::close(&keeper, reason).await;
    for door in doors {
        let _ = tokio::time::timeout(std::time::Duration::from_millis(300), door).await;
    }
    let (code, model) = ran.map_err(|error| Failure::of(&error))?;
    farewell(&model, who.kind);
    Ok(code)
}

fn open_door(
    listening: server::Listening,
    secrets: &Secrets,
    calls: &mpsc::Sender<server::Call>,
    stopped: &tokio::sync::watch::Receiver<bool>,
) -> tokio::task::JoinHandle<()> {
    let (keys, calls, mut stopped) = (secrets.keys(), calls.clone(), stopped.clone());
    tokio::spawn(async move {
        let stop = async move {
            // A sender that is gone means the same.
            let _ = stopped.wait_for(|stop| *stop).await;
        };
        server::serve(listening, keys, calls, stop).await;
    })
}

/// Ends agents that a dead supervisor left behind: never two live processes on one session.
async fn sweep(store: &Store, project: &Project, warnings: &mut Vec<String>) {
    let left = match store.last_agents(project).await {
        Ok(left) => left,
        Err(error) => {
            warnings.push(chain(&error));
            return;
        }
    };
    for agent in left {
        if process::alive(&agent.process) {
            let pid = agent.process.pid;
            let stamp = agent.process.clone();
            let ended = tokio::task::spawn_blocking(move || {
                process::end_group(&stamp, &process::LEFTOVER_LADDER)
            })
            .await;
            warnings.push(format!(
                "an agent of a run that died was still alive and was ended: pid {pid} ({ended:?})"
            ));
        }
        if let Err(error) = store.agent_gone(&agent.run, &agent.process).await {
            warnings.push(chain(&error));
        }
    }
}

/// Finishes or rolls back the reboot that a dead supervisor left unfinished.
fn recover(model: &mut Model, plan: &AgentPlan, entry: &JournalEntry) -> Vec<Effect> {
    let marker = marker_in_transcript(plan, entry);
    let evidence = Evidence {
        old_agent_alive: false,
        new_agent_alive: false,
        old_resumable: entry.old_session.is_some_and(|old| plan.can_resume(old)),
        marker,
    };
    let decided = journal::recover(entry, evidence);
    tracing::warn!(step = %entry.step, ?marker, plan = decided.sentence, "recovering a reboot");
    model.notice(decided.sentence.clone());
    let closed = |step, outcome: &str| {
        Effect::Journal(Box::new(JournalEntry {
            step,
            at: Utc::now(),
            outcome: Some(outcome.to_owned()),
            ..entry.clone()
        }))
    };
    let mut effects = Vec::new();
    match decided.recovery {
        Recovery::Nothing => effects.extend(app::agent::begin(model, false, None, None)),
        Recovery::RollBack { resume } => {
            if let Some(session) = resume {
                model.session = session;
            }
            if let Some((_, body)) = entry.handoff.split_once('\n') {
                app::handoff::keep(model, body);
            }
            effects.push(closed(Step::Failed, "rolled back at the next start"));
            effects.extend(app::agent::begin(
                model,
                resume.is_some(),
                Some(Cause::Recovery),
                None,
            ));
        }
        Recovery::FinishResume { session } => {
            model.session = session;
            effects.push(closed(
                Step::Done,
                "the handoff had arrived: resumed at the next start",
            ));
            effects.extend(app::agent::begin(model, true, Some(Cause::Recovery), None));
        }
        Recovery::FinishDeliver { session } => {
            // The journal's iteration may be the new one already: the text knows which one wrote it.
            let marker = Marker::read(&entry.handoff).unwrap_or_else(|| Marker {
                run: entry.run.to_string(),
                iteration: entry.iteration.get(),
                nonce: entry.nonce.clone(),
            });
            let handoff = Handoff {
                marker,
                text: entry.handoff.clone(),
                left_out: Vec::new(),
                warnings: Vec::new(),
            };
            let session = session.unwrap_or_else(|| SessionId::new(Uuid::new_v4()));
            effects.push(Effect::ReadGit);
            effects.extend(reboot::take_up(model, entry, handoff, session));
        }
    }
    effects
}

/// Whether the handoff is in the new session's transcript.
fn marker_in_transcript(plan: &AgentPlan, entry: &JournalEntry) -> journal::Marker {
    let Some(path) = entry
        .new_session
        .and_then(|session| plan.transcript_of(session))
    else {
        return journal::Marker::NoTranscript;
    };
    match find_prompt(&path, &entry.nonce) {
        Ok(true) => journal::Marker::Seen,
        Ok(false) => journal::Marker::Absent,
        Err(error) => {
            tracing::warn!(
                error = chain(&error),
                "the new session's transcript cannot be read"
            );
            journal::Marker::Unknown
        }
    }
}

/// Variables for the agent: what the user set, and for the demo a directory of its own, so that it leaves the
/// user's files alone.
fn agent_env(kind: AgentKind, config: &Config, paths: &Paths) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> = config
        .agent
        .env
        .iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    if kind == AgentKind::Demo {
        env.push(("PITSTOP_DEMO_DIR".into(), demo_dir(paths).into()));
    }
    env
}

/// Where the demo keeps what Claude Code keeps in its own directory.
pub(super) fn demo_dir(paths: &Paths) -> PathBuf {
    paths.state_dir().join("demo")
}

/// The agent's own configuration directory.
fn agent_config_dir(kind: AgentKind, paths: &Paths) -> Option<PathBuf> {
    match kind {
        AgentKind::Generic => None,
        AgentKind::Demo => Some(demo_dir(paths)),
        AgentKind::Claude => claude_config_dir(),
    }
}

/// Where Claude Code keeps its settings and transcripts.
pub(super) fn claude_config_dir() -> Option<PathBuf> {
    env::var_os("CLAUDE_CONFIG_DIR")
        .filter(|dir| !dir.is_empty())
        .map(PathBuf::from)
        .or_else(|| Some(env::home_dir()?.join(".claude")))
}

/// What checkpoints are filed under: `PITSTOP_ENV`, else the project directory's name.
fn environment(project: &Path) -> String {
    env::var("PITSTOP_ENV")
        .ok()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| {
            project.file_name().map_or_else(
                || "/".to_owned(),
                |name| name.to_string_lossy().into_owned(),
            )
        })
}

/// The user's own template, else ours; a broken one is told before anything is started.
fn generator(paths: &Paths) -> Result<Generator, Failure> {
    let own = paths.config_dir().join("handoff.md");
    let text = match std::fs::read_to_string(&own) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => DEFAULT_TEMPLATE.to_owned(),
        Err(error) => {
            return Err(Failure::new(
                format!("cannot read {}: {error}", own.display()),
                "",
                CONFIG_ERROR,
            ));
        }
    };
    Generator::new(&text).map_err(|error| {
        Failure::new(
            format!("{}: {error}", own.display()),
            "mend it, or remove it to use the built-in one",
            CONFIG_ERROR,
        )
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
    if kind == AgentKind::Claude && model.agent.hooked {
        let session = model.session;
        text = format!("{text}to go on: pitstop -- --resume {session}\n");
    }
    // Nobody is left to be told that even this could not be written.
    let _ = super::out::print(&text);
}
