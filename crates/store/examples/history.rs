//! Prints the runs of a database and how each of their sessions ended: `cargo run --example history [DATABASE PROJECT HOST]`.
//!
//! Without arguments it writes one run into a database of its own and prints that.

use std::{error::Error, path::Path};

use chrono::DateTime;
use pitstop_base::process::ProcessStamp;
use pitstop_core::lineage::{Project, RunId};
use pitstop_store::{HistoryOf, RunRecord, Store, StoreOptions, StoreTarget};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let own = tempfile::tempdir()?;
    let given: Vec<String> = std::env::args().skip(1).collect();
    let (state, project) = match &given[..] {
        [state, path, host] => (Path::new(state), Project::new(Path::new(path), host)),
        _ => (
            own.path(),
            Project::new(Path::new("/home/ada/tide"), "here"),
        ),
    };
    let store = Store::open(StoreOptions::new(StoreTarget::new(None, state)?))
        .await?
        .store;
    if given.is_empty() {
        let started_at = DateTime::UNIX_EPOCH;
        let run = RunRecord {
            run: RunId::new(started_at, [1, 2, 3]),
            project: project.clone(),
            process: ProcessStamp {
                pid: 1,
                start_time: "1".to_owned(),
            },
            agent: "claude".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            task: Some("read the tide tables".to_owned()),
            started_at,
            ended_at: None,
            end_reason: None,
        };
        let written = store.begin_run(&run).await?;
        println!("written: {written:?}");
    }
    for history in store.history(&HistoryOf::Project(project), 100).await? {
        println!(
            "{}  {}",
            history.run.run,
            history.run.task.unwrap_or_default()
        );
        for iteration in history.iterations {
            println!("  {iteration:?}");
        }
    }
    store.close().await;
    Ok(())
}
