//! `pitstop prune`: forgets old runs with their recordings, and old checkpoints.
//!
//! A run that is alive and the newest checkpoint of an environment are never forgotten: `pitstop restore` finds one
//! however long ago it was saved.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use chrono::{DateTime, Utc};
use clap::Args;
use serde_json::{Value, json};

use super::{
    here::{Here, holder_of},
    leftovers::{self, Leftover},
    out::{self, Failure, Outcome, columns},
};
use pitstop_base::{format, process};
use pitstop_core::{
    config::{load::Flags, parse_duration},
    lineage::RunId,
};
use pitstop_store::{FilesError, PrivateDir, RunRecord, Saved, run_dir::list_runs};

/// Delete old runs with their recordings, and old checkpoints, of this project.
///
/// A run that is still going on and the newest checkpoint of each environment are always kept.
#[derive(Args, Clone, Debug)]
pub struct PruneArgs {
    /// How old they must be, such as 30d or 12h
    #[arg(long, value_name = "AGE", default_value = "30d", value_parser = age, allow_hyphen_values = true)]
    pub older_than: Duration,
    /// Those of every project of this machine (their recordings stay where the project cannot be found)
    #[arg(long)]
    pub all: bool,
    /// Only show what would be deleted
    #[arg(long)]
    pub dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

fn age(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .ok_or_else(|| format!("expected an age such as 30d, 12h or 0, found {text:?}"))
}

/// The counts of what is forgotten.
#[derive(Debug, Default)]
struct Pruned {
    runs: Vec<RunId>,
    /// The runs that go on. A supervisor that has taken up an earlier run holds the lock by another name.
    live: BTreeSet<RunId>,
    directories: usize,
    bytes: u64,
    checkpoints: usize,
    leftovers: usize,
    /// The exit code, unless the outcome cannot be printed.
    code: i32,
}

/// Runs the command; 0, or 1 if something could not be forgotten, or 2 if the arguments are at fault.
pub fn run(args: &PruneArgs, flags: &Flags) -> Outcome {
    let here = Here::find_configured(flags)?;
    let older_than = chrono::Duration::from_std(args.older_than).ok();
    let Some(before) = older_than.and_then(|age| Utc::now().checked_sub_signed(age)) else {
        return Err(out::misused(
            "expected an age such as 30d or 12h, found one that is too large",
            "",
        ));
    };
    let mut pruned = Pruned::default();
    let own = here.open_files()?;
    let mut directories = vec![(own, here.find_holder())];
    if here.has_store() {
        let project = (!args.all).then_some(&here.project);
        let host = &here.project.host;
        let (records, saved) = here.read_store(async |store| {
            let records = store.runs_before(host, project, before).await?;
            Ok((records, store.saved(host, project).await?))
        })?;
        let lives = |one: &RunRecord| process::alive(&one.process);
        let old = old_runs(&records, before, |one| {
            lives(one) || last_record(one).is_some_and(|at| at >= before)
        });
        let open = records
            .iter()
            .filter(|one| one.ended_at.is_none() && lives(one));
        pruned.live = open.map(|one| one.run.clone()).collect();
        if args.all {
            let others: BTreeSet<&str> = old
                .iter()
                .map(|one| one.project.path.as_str())
                .filter(|path| *path != here.project.path)
                .collect();
            for path in others {
                let files = PrivateDir::find_project(path.as_ref()).ok().flatten();
                directories.push((files, holder_of(&here.paths, path.as_ref())));
            }
        }
        let checkpoints = old_checkpoints(&saved, before);
        pruned.runs = old.iter().map(|one| one.run.clone()).collect();
        pruned.checkpoints = checkpoints.len();
        if !args.dry_run && pruned.runs.len() + checkpoints.len() > 0 {
            here.with_store(async |store| {
                for run in &pruned.runs {
                    let _written = store.forget_run(run).await?;
                }
                for id in &checkpoints {
                    let _written = store.forget_checkpoint(*id).await?;
                }
                store.compact().await;
                Ok(())
            })?;
        }
    }
    for (directory, holder) in &directories {
        let Some(directory) = directory else { continue };
        let live = holder.as_ref().map(|holder| &holder.run);
        if let Err(error) = prune_files(directory, live, before, args.dry_run, &mut pruned) {
            pruned.code = Failure::from(error).show();
        }
    }
    let left: Vec<Leftover> = leftovers::find_leftovers(&here.paths, SystemTime::now());
    pruned.leftovers = left.len();
    if !args.dry_run {
        for one in left {
            if let Err(error) = one.remove_files() {
                pruned.code = Failure::from(error).show();
            }
        }
    }
    let json = || as_json(&pruned, args.dry_run);
    let text = out::render(args.json, json, || as_text(&pruned, args.dry_run));
    Ok(out::print(&text).max(pruned.code))
}

/// Returns the runs that are over and old.
fn old_runs(
    records: &[RunRecord],
    before: DateTime<Utc>,
    is_alive: impl Fn(&RunRecord) -> bool,
) -> Vec<&RunRecord> {
    records
        .iter()
        .filter(|one| match one.ended_at {
            Some(ended) => ended < before,
            // The run's supervisor died, or is alive: the run of a live one is never touched, however long it runs, and that of one which
            // died lately can still be taken up.
            None => one.started_at < before && !is_alive(one),
        })
        .collect()
}

/// Returns the checkpoints that are old, except for the newest of each environment. `saved` has the newest first.
fn old_checkpoints(saved: &[Saved], before: DateTime<Utc>) -> Vec<uuid::Uuid> {
    let mut seen = BTreeSet::new();
    saved
        .iter()
        .filter(|one| {
            let newest = seen.insert((one.project.as_str(), one.environment.as_str()));
            !newest && one.created_at < before
        })
        .map(|one| one.id)
        .collect()
}

/// Removes the directories of old runs, known to the store or not. A run is as old as its newest file: one that began
/// long ago may have ended today.
fn prune_files(
    files: &PrivateDir,
    live: Option<&RunId>,
    before: DateTime<Utc>,
    dry_run: bool,
    pruned: &mut Pruned,
) -> Result<(), FilesError> {
    let Some(directory) = files.find_dir("runs")? else {
        return Ok(());
    };
    for run in list_runs(files)? {
        let is_live = live == Some(&run) || pruned.live.contains(&run);
        let known = pruned.runs.contains(&run);
        let is_old = || written_at(&directory, &run).is_some_and(|at| at < before);
        if is_live || run.started() >= before || !(known || is_old()) {
            continue;
        }
        pruned.directories += 1;
        pruned.bytes += if dry_run {
            directory.size_of(run.as_str())
        } else {
            directory.remove_dir(run.as_str())?
        };
    }
    Ok(())
}

/// Returns the time at which the record of a run was last written, if its project is there and has one.
fn last_record(run: &RunRecord) -> Option<DateTime<Utc>> {
    let files = PrivateDir::find_project(run.project.path.as_ref()).ok()??;
    written_at(&files.find_dir("runs").ok()??, &run.run)
}

/// Returns the time at which the record of a run in this directory was last written.
fn written_at(directory: &PrivateDir, run: &RunId) -> Option<DateTime<Utc>> {
    let place = directory.path().join(run.as_str());
    let changed = |path| std::fs::symlink_metadata(path).ok()?.modified().ok();
    let newest = changed(place.join("meta.json")).max(changed(place));
    newest.map(DateTime::from)
}

fn as_text(pruned: &Pruned, dry_run: bool) -> String {
    let (directories, bytes) = (pruned.directories, format::bytes(pruned.bytes));
    let recordings = format!("{directories} directories, {bytes}");
    let row = |name: &str, what: String| vec![name.to_owned(), what];
    let mut text = columns(&[
        row("runs", pruned.runs.len().to_string()),
        row("recordings", recordings),
        row("checkpoints", pruned.checkpoints.to_string()),
        row("dead sockets", pruned.leftovers.to_string()),
    ]);
    text.push_str(if dry_run {
        "dry run: nothing was deleted\n"
    } else {
        "deleted\n"
    });
    text
}

fn as_json(pruned: &Pruned, dry_run: bool) -> Value {
    json!({
        "dry_run": dry_run, "runs": pruned.runs, "directories": pruned.directories, "bytes": pruned.bytes,
        "checkpoints": pruned.checkpoints, "dead_sockets": pruned.leftovers,
    })
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;
    use uuid::Uuid;

    use super::*;
    use pitstop_core::lineage::{EndReason, ProcessStamp, Project};

    fn at(day: i64) -> DateTime<Utc> {
        Utc.timestamp_opt(1_795_000_000 + day * 86_400, 0).unwrap()
    }

    fn record(started: i64, ended: Option<i64>) -> RunRecord {
        RunRecord {
            run: RunId::new(at(started), [1, 2, 3]),
            project: Project::new("/p".as_ref(), "host"),
            process: ProcessStamp {
                pid: 7,
                start_time: String::new(),
            },
            agent: "claude".to_owned(),
            version: "0".to_owned(),
            task: None,
            started_at: at(started),
            ended_at: ended.map(at),
            end_reason: ended.map(|_| EndReason::Natural),
        }
    }

    #[test]
    fn a_run_is_old_by_its_end_and_a_live_one_never() {
        let records = [record(0, Some(1)), record(0, Some(20)), record(1, None)];
        let chosen = |alive: bool| -> Vec<usize> {
            let old = old_runs(&records, at(10), |_| alive);
            old.iter()
                .map(|one| records.iter().position(|two| two == *one).unwrap())
                .collect()
        };
        assert_eq!(chosen(true), [0]);
        assert_eq!(chosen(false), [0, 2]);
    }

    #[test]
    fn the_newest_checkpoint_of_an_environment_stays() {
        let saved = |n: u128, environment: &str, day| Saved {
            id: Uuid::from_u128(n),
            environment: environment.to_owned(),
            project: "p".to_owned(),
            created_at: at(day),
        };
        let all = [
            saved(4, "web", 12),
            saved(3, "web", 3),
            saved(2, "api", 2),
            saved(1, "web", 1),
        ];
        let ids =
            |numbers: &[u128]| -> Vec<_> { numbers.iter().map(|n| Uuid::from_u128(*n)).collect() };
        assert_eq!(old_checkpoints(&all, at(10)), ids(&[3, 1]));
        assert_eq!(old_checkpoints(&all, at(20)), ids(&[3, 1]));
        assert_eq!(old_checkpoints(&all, at(0)), ids(&[]));
    }

    #[test]
    fn a_run_that_has_died_is_as_old_as_its_last_record() {
        let home = tempfile::tempdir().unwrap();
        let mut died = record(0, None);
        died.project = Project::new(home.path(), "host");
        assert_eq!(last_record(&died), None, "there is no project");
        let files = PrivateDir::open_project(home.path()).unwrap();
        assert_eq!(last_record(&died), None, "the run has no files");
        let own = files.dir("runs").unwrap().dir(died.run.as_str()).unwrap();
        own.write_private("meta.json", b"{}").unwrap();
        for (day, is_old) in [(1, true), (9, true), (10, false), (12, false)] {
            // The directory and the record in it.
            for path in [own.path().to_owned(), own.path().join("meta.json")] {
                let file = std::fs::File::open(path).unwrap();
                file.set_modified(at(day).into()).unwrap();
            }
            assert_eq!(last_record(&died), Some(at(day)));
            let died = std::slice::from_ref(&died);
            let old = old_runs(died, at(10), |one| {
                last_record(one).is_some_and(|last| last >= at(10))
            });
            assert_eq!(old.len() == 1, is_old, "{day}");
        }
    }
}
