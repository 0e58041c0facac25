//! The steps of a supervisor's life, in their order.

use std::{
    env,
    os::unix::net::UnixStream,
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
    time::{Duration, SystemTime},
};

use chrono::{DateTime, Utc};
use futures_util::FutureExt as _;
use rustix::process::{Resource, getrlimit};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::runtime::{
    self, Left, Setup, Signals,
    agent::AgentPlan,
    effects::{self, new_ids},
    lines,
    prepare::{ADDRESS_SPACE, DESCRIPTORS_AT_START, can_open},
    recovery,
    store_writer::{Job, StoreWriter, find_carried},
};
use pitstop_agent::claude;
use pitstop_base::{
    clean::{self, chain},
    clock::At,
    process,
    redact::redact,
};
use pitstop_core::{
    app::{
        self, Effect, Model,
        model::{Beginning, Identity, carried::Carried},
        tour::Tour,
    },
    lineage::{Cause, EndReason, Lineage, Project, journal::JournalEntry},
};
use pitstop_handoff::breakpoint::git;
use pitstop_server::attach::{ServerMessage, receive_first};
use pitstop_store::{
    CrashPoint, HistoryOf, PrivateDir, RunRecord, SCRATCHPAD, Store, StoreOptions, StoreTarget,
    run_dir::RunDir,
};
use pitstop_transcript::SessionId;

use super::{
    Start, StartError, Work,
    claim::{self, Claim},
    doors::Doors,
    farewell,
    program::{agent_config_dir, has_todo_tools},
    recover,
};

/// The longest time that the start waits for the database. A server across an ocean needs a second; a person who waits for the screen
/// has waited long enough after two.
const FIRST_OPENING: Duration = Duration::from_secs(2);

/// Checks that the system provides what we cannot do without.
pub fn check_system() -> Result<(), StartError> {
    if SystemTime::now() < SystemTime::UNIX_EPOCH {
        return Err(StartError::Clock);
    }
    if let Some(limit) = getrlimit(Resource::As).current
        && limit < ADDRESS_SPACE
    {
        return Err(StartError::AddressSpace(limit >> 20));
    }
    can_open(DESCRIPTORS_AT_START).map_err(StartError::Descriptors)
}

/// Supervises the agent until it is over; returns the exit code. Once the loop begins, it takes the connection to the client for whose
/// terminal it was started; `last` is done at the very end, and what it returns is shown to the person.
pub fn run(
    start: Start,
    terminal: &mut Option<UnixStream>,
    last: impl FnOnce() -> String,
) -> Result<i32, StartError> {
    log_panics();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(supervise(start, terminal, last));
    // Tasks that still run (a git question, a store that hangs) must not keep us.
    runtime.shutdown_background();
    outcome
}

/// Has each panic logged. One of the main thread ends the session, any other ends its task alone.
fn log_panics() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        tracing::error!(%panic, "panic");
        report(panic);
    }));
}

async fn supervise(
    start: Start,
    terminal: &mut Option<UnixStream>,
    last: impl FnOnce() -> String,
) -> Result<i32, StartError> {
    let is_headless = start.work.line_format().is_some();
    let (setup, doors) = Box::pin(set_up(start, terminal.as_ref())).await?;
    let store_writer = setup.store_writer.clone();
    *terminal = None;
    let left = Box::pin(supervised(setup, &store_writer, doors)).await?;
    let unwritten = left.unwritten.as_deref();
    let unwritten =
        unwritten.map_or_else(String::new, |what| farewell::unwritten(&left.model, what));
    let text =
        farewell::text(&left.model, left.resumed_with.as_deref(), left.code) + &unwritten + &last();
    for client in left.clients {
        let (code, text) = (left.code, text.clone());
        client.end(ServerMessage::Ended { code, text }).await;
    }
    if is_headless {
        farewell::headless(&left.model);
        eprint!("{unwritten}");
    }
    Ok(left.code)
}

/// Claims the project and opens everything that the loop needs, from the project's files to the doors.
async fn set_up(
    mut start: Start,
    terminal: Option<&UnixStream>,
) -> Result<(Setup, Doors), StartError> {
    let signals = Signals::new()?;
    let attachment = match terminal {
        Some(stream) => Some(receive_first(stream.try_clone()?).await?),
        None => None,
    };
    let mut warnings = std::mem::take(&mut start.warnings);
    let (claim, files) = claim_project(&start, &mut warnings)?;
    let notes = claim::read_scratchpad(&files)?;

    let mut plan = agent_plan(&start, &files);
    recover::end_registered(&claim.state, &mut warnings).await;
    plan.registry = recover::begin_registry(&claim.state, &mut warnings);
    let mut kept = open_store(&start, &claim, &files, &plan, &mut warnings).await?;
    plan.files.clone_from(&kept.store_writer.files);
    start_as_before(&mut plan, &mut kept);

    let at = claim.holder.since;
    let answers = mpsc::channel(runtime::ANSWERS_IN_FLIGHT);
    let doors = Doors::open(claim, &start, &plan, answers.0.clone()).await?;
    plan.observe = doors.observe;
    let store_writer = kept.store_writer.start(answers.0.clone());

    let line_format = start.work.line_format();
    let mut model = app::model_of(Beginning {
        identity: identity(&start, &plan),
        config: start.config,
        lineage: kept.lineage,
        session: kept.resumed.unwrap_or_else(|| first_session(&plan)),
        new_ids: new_ids(),
        notes,
        generator: start.generator,
        host: attachment
            .as_ref()
            .map_or(lines::HEADLESS, |one| runtime::size_of(&one.terminal.1)),
        now: start_of_time(at),
    });
    model.view.tour = start.tour.then(Tour::default);
    print_warnings(&warnings, line_format.is_some());
    for warning in warnings {
        model.error(warning);
    }
    for said in kept.said {
        tracing::warn!(said);
        model.info(said);
    }
    app::carried::take_up(&mut model, kept.carried_of, kept.carried);
    let task = start.work.task().and_then(|task| task.file.clone());
    let (work, prompt) = (start.work, start.agent.prompt);
    let old = kept.unfinished.as_ref().and_then(|entry| entry.old_session);
    let left = (kept.unfinished, kept.resumed);
    let first = first_effects(&mut model, &plan, left, work, prompt).await;
    let setup = Setup {
        model,
        first,
        place: old.and_then(|session| plan.place_of(session)),
        agent: plan,
        store_writer,
        answers,
        calls: doors.calls,
        terminal: attachment,
        attachments: doors.attachments,
        feed: doors.feed,
        mailbox: doors.mailbox,
        paths: start.paths,
        flags: start.flags,
        signals,
        line_format,
        task,
    };
    Ok((setup, doors.doors))
}

/// Takes the project's lock and opens its own files.
fn claim_project(
    start: &Start,
    warnings: &mut Vec<String>,
) -> Result<(Claim, PrivateDir), StartError> {
    let claim = claim::take_lock(&start.project, &start.paths, warnings)?;
    claim::ask_socket(&start.paths, &claim.hash)?;
    let files = claim::project_files(&start.project, &start.paths, &claim.hash, warnings)?;
    claim::sweep_asides([&claim.state, &files], warnings);
    Ok((claim, files))
}

/// Runs the loop to its end, has everything written, closes the doors, and releases the lock last.
async fn supervised(
    setup: Setup,
    store_writer: &mpsc::Sender<Job>,
    doors: Doors,
) -> Result<Left, StartError> {
    // Nothing of it is used after a panic, which the panic hook has reported.
    let running = AssertUnwindSafe(Box::pin(runtime::run(setup)));
    let Some(ran) = running.catch_unwind().await.ok() else {
        // The run's record stays open: the next start closes it and says how to go on.
        doors.close().await;
        return Err(StartError::Broken);
    };
    let quitting = ran
        .as_ref()
        .ok()
        .and_then(|left| left.model.outside.quitting());
    let reason = quitting.map_or(EndReason::Shutdown, |quitting| quitting.reason);
    let unwritten = effects::close_store(store_writer, reason).await;
    doors.close().await;
    Ok(Left { unwritten, ..ran? })
}

/// Returns the first moment of a process that begins now.
pub fn start_of_time(wall: DateTime<Utc>) -> At {
    At {
        since_start: Duration::ZERO,
        asleep: Duration::ZERO,
        wall,
        zone: runtime::zone,
    }
}

/// Returns the plan for starting the agent, as far as it is known before the run is.
fn agent_plan(start: &Start, files: &PrivateDir) -> AgentPlan {
    let agent = &start.agent;
    AgentPlan {
        kind: agent.kind,
        program: agent.program.clone(),
        lead_args: agent.lead_args.clone(),
        user_args: agent.args.clone(),
        env: agent.env.clone(),
        exe: agent.exe.clone(),
        observe: PathBuf::new(),
        scratchpad: files.path().join(SCRATCHPAD),
        registry: PathBuf::new(),
        project: start.project.clone(),
        files: None,
        spare_dir: start.paths.spare_dir().to_owned(),
        state_dir: start.paths.state_dir().to_owned(),
        config_dir: agent_config_dir(agent.kind, &start.config, &start.paths),
    }
}

/// The store, and the records that the last supervisor left in it.
struct Kept {
    store_writer: StoreWriter,
    /// The iterations of the run so far.
    lineage: Lineage,
    /// A reboot that waits to be finished or rolled back: its run goes on.
    unfinished: Option<Box<JournalEntry>>,
    /// The session in which the run goes on, if its supervisor had died.
    resumed: Option<SessionId>,
    /// The messages to show: how to go on with a run that ended without notice.
    said: Vec<String>,
    /// The state that the continued session carries of its lineage, or the reason why that is not known.
    carried: Result<Option<Box<Carried>>, String>,
    /// The session under which that was kept.
    carried_of: Option<SessionId>,
}

/// Opens the database, closes the records that dead supervisors left open there, and records the run.
async fn open_store(
    start: &Start,
    claim: &Claim,
    files: &PrivateDir,
    plan: &AgentPlan,
    warnings: &mut Vec<String>,
) -> Result<Kept, StartError> {
    let target = StoreTarget::new(start.config.store.url.as_deref(), start.paths.state_dir())?;
    let options = StoreOptions {
        crash: crash_point(),
        first_opening: FIRST_OPENING,
        ..StoreOptions::new(target)
    };
    let project = Project::new(&start.project, &process::host_name());
    let (holder, began) = (&claim.holder, claim.holder.since);
    // A person who restores a checkpoint has chosen how to go on.
    let instead = matches!(start.work, Work::Restore(_));
    let instead = instead.then_some("a checkpoint was restored instead");
    let task = start.work.task().filter(|task| !task.begins_new);
    let task = task.map(|task| task.plan.task.as_str());
    let opened = Store::open(options).await?;
    recover::or_warn(opened.store.take_up(&claim.state).await, warnings);
    let found = recover::clean_up(opened, &project, files, began, instead, task, plan).await;
    warnings.extend(found.warnings);
    let store = found.store;
    let unfinished = found.unfinished.as_ref();
    let goes_on = unfinished.map(|entry| &entry.run);
    let goes_on = goes_on.or(found.resumed.as_ref().map(|(run, _)| run));
    let (run, lineage) = match goes_on {
        Some(run) => (
            run.clone(),
            recovery::recorded(&store, run, plan, began).await,
        ),
        None => (holder.run.clone(), Lineage::new(holder.run.clone())),
    };
    let record = RunRecord {
        run: run.clone(),
        project: project.clone(),
        process: holder.process.clone(),
        agent: start.agent.shown.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        task: start.work.task().map(|task| task.plan.task.clone()),
        started_at: began,
        ended_at: None,
        end_reason: None,
    };
    // Recorded before the run has anything to lose: by its record the next start finds what a killed one left.
    recover::or_warn(store.begin_run(&record).await.map(drop), warnings);
    let carried = carried(&store, start, plan, &project, unfinished, &lineage).await;
    let (carried_of, carried) = match carried {
        Ok(Some((session, carried))) => (Some(session), Ok(Some(carried))),
        Ok(None) => (None, Ok(None)),
        Err(why) => (None, Err(why)),
    };
    let store_writer = StoreWriter {
        store,
        state: claim.state.path().to_owned(),
        files: RunDir::open(files, &run)
            .inspect_err(|error| warnings.push(chain(error)))
            .ok(),
        run,
        project,
        measured: None,
        newest: None,
        last_steps: std::collections::HashMap::new(),
        newest_at: began,
        carried_at: std::collections::HashMap::new(),
    };
    Ok(Kept {
        store_writer,
        lineage,
        unfinished: found.unfinished.map(Box::new),
        resumed: found.resumed.and_then(|(_, session)| session),
        said: found.died.into_iter().collect(),
        carried,
        carried_of,
    })
}

/// Returns what the continued session carries: that of a reboot that is finished now, of the run that goes on, of the checkpoint, or of
/// the arguments.
async fn carried(
    store: &Store,
    start: &Start,
    plan: &AgentPlan,
    project: &Project,
    unfinished: Option<&JournalEntry>,
    lineage: &Lineage,
) -> Result<Option<(SessionId, Box<Carried>)>, String> {
    let of: Vec<SessionId> = match (unfinished, &start.work) {
        (Some(entry), _) => [entry.new_session, entry.old_session]
            .into_iter()
            .flatten()
            .collect(),
        (None, Work::Restore(checkpoint)) => checkpoint.session.into_iter().collect(),
        (None, Work::Session | Work::Run(_)) if lineage.iterations().is_empty() => {
            claude::resumed_session(&plan.user_args)
                .into_iter()
                .collect()
        }
        (None, Work::Session | Work::Run(_)) => {
            let newest_first = lineage.iterations().iter().rev();
            newest_first.filter_map(|one| one.session_id).collect()
        }
    };
    let mut found = None;
    for session in of.iter().copied() {
        found = find_carried(store, session)
            .await?
            .map(|one| (session, one));
        if found.is_some() {
            break;
        }
    }
    if unfinished.is_none() && of.is_empty() && matches!(start.work, Work::Session) {
        let edit = unused_edit(store, project, plan).await;
        found = edit.unwrap_or_else(|error| {
            tracing::warn!(error, "no edit of the handoff can be looked for");
            None
        });
    }
    if let (Work::Restore(_), Some((_, carried))) = (&start.work, &mut found) {
        // A checkpoint has a state of its own.
        let args = std::mem::take(&mut carried.args);
        **carried = Carried {
            args,
            ..Carried::default()
        };
    }
    Ok(found)
}

/// Returns the person's edit of the handoff in the session before, if nothing was said in that: it cannot be resumed, and its edit
/// would never be seen again.
async fn unused_edit(
    store: &Store,
    project: &Project,
    plan: &AgentPlan,
) -> Result<Option<(SessionId, Box<Carried>)>, String> {
    // The newest run is this one.
    let runs = store.outline(&HistoryOf::Project(project.clone()), 2).await;
    let runs = runs.map_err(|error| chain(&error))?;
    let before = runs.iter().flat_map(|run| &run.iterations);
    let before = before.max_by_key(|one| one.started_at);
    let Some(session) = before.and_then(|one| one.session_id) else {
        return Ok(None);
    };
    if plan.can_resume(session) {
        return Ok(None);
    }
    let found = find_carried(store, session).await?;
    Ok(found.map(|found| {
        let edited = found.edited;
        let carried = Carried {
            edited,
            ..Carried::default()
        };
        (session, Box::new(carried))
    }))
}

/// Has the agent started with the arguments that its session had before, unless new ones are given; adds a message if it does.
fn start_as_before(plan: &mut AgentPlan, kept: &mut Kept) {
    let Ok(Some(carried)) = &kept.carried else {
        return;
    };
    let args = &carried.args;
    if args.is_empty()
        || !claude::lasting_arguments(&plan.user_args).is_empty()
        || !plan.kind.reports()
    {
        return;
    }
    let reports_choices = || claude::reports_choices(plan.ask_version().as_deref());
    let args = match claude::resumed_session(&plan.user_args) {
        Some(session) => plan.arguments_as_left(args, session, reports_choices),
        None => args.clone(),
    };
    plan.user_args.splice(0..0, args.iter().cloned());
    let args = shell_words::join(args);
    kept.said
        .push(format!("the agent has its arguments of before: {args}"));
}

/// Returns the point at which the process should kill itself, for tests of what is recovered.
#[cfg(debug_assertions)]
fn crash_point() -> Option<CrashPoint> {
    env::var("PITSTOP_CRASH_AT").ok()?.parse().ok()
}

#[cfg(not(debug_assertions))]
const fn crash_point() -> Option<CrashPoint> {
    None
}

fn identity(start: &Start, plan: &AgentPlan) -> Identity {
    let mut agent_args = claude::lasting_arguments(&plan.user_args);
    // A secret is not kept, and arguments with a gap are unusable, so none are kept.
    if agent_args.iter().any(|arg| redact(arg) != *arg) {
        agent_args.clear();
    }
    Identity {
        agent_args,
        version: env!("CARGO_PKG_VERSION"),
        pid: std::process::id(),
        project: start.project.display().to_string(),
        environment: start.environment.clone(),
        agent_kind: start.agent.kind,
        agent_command: start.agent.shown.clone(),
        todo_tools: has_todo_tools(&start.config),
    }
}

/// Returns the session of the first agent: the one that the user named, or a new one.
fn first_session(plan: &AgentPlan) -> SessionId {
    let named = match claude::user_session(&plan.user_args) {
        claude::UserSession::Named(session) => Some(session),
        claude::UserSession::Theirs if claude::forks_session(&plan.user_args) => None,
        claude::UserSession::Theirs => claude::resumed_session(&plan.user_args),
        claude::UserSession::Ours => None,
    };
    let named = named.filter(|_| plan.kind.reports());
    named.unwrap_or_else(|| SessionId::new(Uuid::new_v4()))
}

/// Returns the cause of the first iteration, if the user's arguments name the session that goes on: its hook may come behind a reboot.
fn first_cause(plan: &AgentPlan) -> Option<Cause> {
    let resumed = claude::resumed_session(&plan.user_args).filter(|_| plan.kind.reports());
    resumed.map(|_| Cause::Resume)
}

pub(crate) fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// Prints the warnings before the first line of a run without a terminal: there is no footer.
fn print_warnings(warnings: &[String], headless: bool) {
    for warning in warnings.iter().filter(|_| headless) {
        eprintln!("warning: {}", clean::one_line(&redact(warning)));
    }
}

/// Returns the effects that the loop runs first. They finish the reboot that a supervisor before has left, or resume the session in
/// which a run's supervisor died, or begin with what is asked for.
async fn first_effects(
    model: &mut Model,
    plan: &AgentPlan,
    (unfinished, resumed): (Option<Box<JournalEntry>>, Option<SessionId>),
    work: Work,
    prompt: Option<String>,
) -> Vec<Effect> {
    let worked = model.lineage.worked();
    let recovered = match (unfinished, resumed) {
        (Some(entry), _) => Some(recover::recover(model, plan, &entry)),
        (None, Some(session)) => {
            model.info("the run goes on where its supervisor ended without notice");
            model.session.id = session;
            app::iteration::begin(model, true, Some(Cause::Resume), None);
            Some(model.take_effects())
        }
        (None, None) => None,
    };
    match (work, recovered) {
        (Work::Run(task), recovered) => {
            app::autopilot::begin(model, task.plan, task.file.is_some(), recovered, worked);
        }
        (_, Some(mut recovered)) => {
            if let Some(prompt) = claude::user_prompt(&plan.user_args) {
                model.error(format!(
                    "the session goes on first, and your prompt is not given: {prompt}"
                ));
                recovered.extend(model.take_effects());
            }
            return recovered;
        }
        (Work::Restore(checkpoint), None) => {
            let git = git::facts(&plan.project, 1, None).await;
            app::restore::begin(model, &checkpoint, &git);
        }
        (Work::Session, None) => app::iteration::begin(model, false, first_cause(plan), prompt),
    }
    model.take_effects()
}
