//! The checks of what is kept, and of what dead supervisors left: the store, stray agents, sockets, the project's files.

use std::{path::Path, time::SystemTime};

use rustix::fs::Access;

use super::{ANSWER_LIMIT, Finding};
use crate::{
    cli::{here::Here, leftovers, out::chain},
    runtime::prepare::{ROOM, check_room},
};
use pitstop_base::{format, process};
use pitstop_core::api::wire::StatusReport;
use pitstop_store::{
    Health, HistoryOf, Opened, PrivateDir, Store, StoreOptions, StoreTarget, StoreWarning,
};

/// The number of newest runs that are searched for one with a session.
const RUNS: u32 = 8;

/// The report of the store.
pub(super) struct Kept {
    health: Result<Health, String>,
    /// The warning that the database was corrupt, if it was.
    set_aside: Option<String>,
    /// The newest session of this project that is on record, and its agent.
    pub(super) last: Option<(String, String)>,
    /// The process ids of live agents whose supervisors are dead.
    strays: Vec<u32>,
    exists: bool,
}

pub(super) async fn look_into_store(here: &Here) -> Kept {
    let mut kept = Kept {
        health: Err(String::new()),
        set_aside: None,
        last: None,
        strays: Vec::new(),
        exists: here.has_store(),
    };
    if !kept.exists {
        return kept;
    }
    let options = StoreOptions {
        patience: ANSWER_LIMIT,
        ..StoreOptions::new(here.target.clone())
    };
    let Opened { store, warnings } = match Store::open(options).await {
        Ok(opened) => opened,
        Err(error) => {
            kept.health = Err(chain(&error));
            return kept;
        }
    };
    let mut warnings = warnings.iter();
    let set_aside = warnings.find(|one| matches!(one, StoreWarning::SetAside { .. }));
    kept.set_aside = set_aside.map(ToString::to_string);
    kept.health = Ok(store.health().await);
    let of = HistoryOf::Project(here.project.clone());
    let runs = store.outline(&of, RUNS).await.unwrap_or_default();
    kept.last = runs.iter().find_map(|one| {
        let last = one.iterations.last()?;
        Some((last.session_id?.to_string(), one.run.agent.clone()))
    });
    let agents = store.last_agents(&here.project).await.unwrap_or_default();
    for agent in agents {
        let run = runs.iter().find(|one| one.run.run == agent.run);
        let supervised = run.is_some_and(|one| process::alive(&one.run.process));
        if !supervised && process::alive(&agent.process) {
            kept.strays.push(agent.process.pid);
        }
    }
    store.close().await;
    kept
}

pub(super) fn left_behind(here: &Here, kept: &Kept) -> Finding {
    if let Some(pid) = kept.strays.first() {
        return Finding::warning(format!(
            "an agent still runs whose pitstop has died: pid {pid}"
        ))
        .remedy("the next `pitstop` in this directory ends it");
    }
    let dead = leftovers::find_leftovers(&here.paths, SystemTime::now()).len();
    if dead > 0 {
        let plural = if dead == 1 { "" } else { "s" };
        return Finding::warning(format!(
            "the socket files of {dead} dead supervisor{plural}"
        ))
        .remedy("`pitstop prune` removes them");
    }
    Finding::ok("none: no sockets of dead supervisors, no stray agents")
}

pub(super) fn store(here: &Here, kept: &Kept, report: Option<&StatusReport>) -> Finding {
    let place = here.target.place();
    if !kept.exists {
        return Finding::ok(format!("none yet; it will be created as {place}"));
    }
    if let Some(corrupt) = &kept.set_aside {
        return Finding::broken(corrupt.clone())
            .remedy("the history up to now is in that file; `.recover` of sqlite3 may read it");
    }
    let in_memory = report.and_then(|report| report.store_error.as_ref());
    if let (Some(error), Ok(Health { error: None, .. })) = (in_memory, &kept.health) {
        return Finding::broken(format!("the running pitstop cannot write: {error}"))
            .remedy("its history waits in memory and on disk, and is written later");
    }
    match &kept.health {
        Err(error) => Finding::broken(error.clone()).remedy(
            "upgrade pitstop, or name another database in [store] url; history is not kept until then",
        ),
        Ok(Health {
            error: Some(error),
            ..
        }) => Finding::broken(named(&place, error)).remedy(
            match here.target {
                StoreTarget::Sqlite(_) => {
                    "is the disk full or read-only, or is another program using the file? The history of a running pitstop waits, and is written later"
                }
                #[cfg(feature = "postgres")]
                StoreTarget::Postgres(_) => {
                    "is the server up, and the password right? the history of a running pitstop waits, and is written later"
                }
            },
        ),
        Ok(health) => {
            let schema = health.schema.unwrap_or_default();
            let size = match &here.target {
                StoreTarget::Sqlite(file) => std::fs::metadata(file)
                    .map(|metadata| format!(", {}", format::bytes(metadata.len())))
                    .unwrap_or_default(),
                #[cfg(feature = "postgres")]
                StoreTarget::Postgres(_) => String::new(),
            };
            Finding::ok(format!("{place}, schema {schema}{size}"))
        }
    }
}

/// Returns the error with the store's place in front, which the error of a server has already.
fn named(place: &str, error: &str) -> String {
    if error.starts_with(place) {
        error.to_owned()
    } else {
        format!("{place}: {error}")
    }
}

/// What happens where the project's own files cannot be written.
const ELSEWHERE: &str = "notes and runs are kept in the state directory instead";

/// Checks that a directory can be written into, as far as that can be known without writing; the error is the reason why it cannot.
fn check_writable(directory: &Path, whose: &str) -> Result<(), String> {
    rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|error| format!("{} cannot be written: {error}", directory.display()))?;
    check_room(directory, whose, ROOM)
}

/// Checks whether the state directory can be written into or created.
pub(super) fn state(here: &Here) -> Finding {
    let place = here.paths.state_dir();
    let made = place.ancestors().find(|above| above.exists());
    match check_writable(made.unwrap_or(place), "the state directory") {
        Ok(()) => Finding::ok(place.display().to_string()),
        Err(why) => Finding::warning(why).remedy(
            "make room or change its rights, or name another in XDG_STATE_HOME; until then history, the log and notes are not kept",
        ),
    }
}

/// Checks whether the project's own files can be written.
pub(super) fn files(here: &Here) -> Finding {
    match PrivateDir::find_project(&here.directory) {
        Ok(Some(dir)) => match check_writable(dir.path(), "the project") {
            Ok(()) => Finding::ok(dir.path().display().to_string()),
            Err(why) => Finding::warning(why).remedy(ELSEWHERE),
        },
        Ok(None) => Finding::ok("no .pitstop here yet"),
        Err(error) if error.is_unwritable() => Finding::warning(chain(&error)).remedy(ELSEWHERE),
        Err(error) => Finding::broken(chain(&error))
            .remedy("pitstop does not follow links there: move the link away"),
    }
}
