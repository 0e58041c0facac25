//! The writes that a run leaves behind because the database was away: they are kept in a file of the project's, and the next run
//! on this database writes them.
//!
//! Without them the next start would take an older session for the last one, and the run for one that died.

use super::{FilesError, PrivateDir, Store, rows::Write};
use pitstop_base::redact;
use pitstop_core::lineage::hash_name;

/// The largest file that is read: the limit of what waits in memory, with room for escapes.
const LIMIT: usize = 64 * 1024 * 1024;

impl Store {
    /// Returns the file's name in the project's directory of the state directory: each database has a file of its own, so that a run
    /// on another one neither writes nor removes it.
    fn unwritten_file(&self) -> String {
        format!("unwritten-{}.json", hash_name(self.place().as_bytes()))
    }

    /// Keeps the writes that wait in the file; returns their number. Without any the file is removed.
    pub fn keep_waiting(&self, dir: &PrivateDir) -> Result<usize, FilesError> {
        let file = self.unwritten_file();
        let waiting = self.waiting();
        let count = waiting.pending.len();
        // Readers who cannot ask the database must know whose the records are.
        let own = waiting.own_run();
        let writes: Vec<&Write> = own.iter().chain(waiting.pending.writes()).collect();
        let json = serde_json::to_string(&writes).unwrap_or_default();
        drop(waiting);
        if count == 0 {
            return dir.remove(&file).map(|()| 0);
        }
        dir.write_private(&file, redact::json(&json).as_bytes())?;
        Ok(count)
    }

    /// Takes up what an earlier run has kept for this database. The file stays until it is written.
    pub async fn take_up(&self, dir: &PrivateDir) -> Result<(), FilesError> {
        if let Some(writes) = self.read_kept(dir)?
            && self.write_late(writes).await
        {
            dir.remove(&self.unwritten_file())?;
        }
        Ok(())
    }

    /// Lays what another process has kept for this database over what is read from here on. This store writes nothing any more: the
    /// file is that process's, or the next supervisor's.
    pub fn show_kept(&self, dir: &PrivateDir) -> Result<(), FilesError> {
        let kept = self.read_kept(dir)?;
        self.waiting().only_show(kept.unwrap_or_default());
        Ok(())
    }

    fn read_kept(&self, dir: &PrivateDir) -> Result<Option<Vec<Write>>, FilesError> {
        let Some(bytes) = dir.read(&self.unwritten_file(), LIMIT)? else {
            return Ok(None);
        };
        let writes = serde_json::from_slice(&bytes).inspect_err(
            |error| tracing::warn!(%error, "what waited for the database cannot be read"),
        );
        Ok(writes.ok())
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use chrono::DateTime;
    use pitstop_core::lineage::{EndReason, IterationId, checkpoint::Checkpoint};

    use super::*;
    use crate::{
        Checkpoints, HistoryOf, RunRecord, StoreOptions, StoreTarget, Written, writes::tests,
    };

    fn record() -> RunRecord {
        tests::record("build a boat")
    }

    async fn open(file: &Path) -> Store {
        let target = StoreTarget::Sqlite(file.to_owned());
        let store = Store::open(StoreOptions::new(target)).await;
        store.expect("a store").store
    }

    fn kept(store: &Store, dir: &PrivateDir) -> Option<Vec<u8>> {
        let file = store.unwritten_file();
        dir.read(&file, LIMIT).expect("it can be read")
    }

    fn checkpoint() -> Checkpoint {
        Checkpoint {
            id: uuid::Uuid::from_u128(7),
            environment: "tide".to_owned(),
            task: "build a boat".to_owned(),
            context: String::new(),
            next_steps: Vec::new(),
            tags: Vec::new(),
            state: serde_json::json!({"current_objective": "a boat"}),
            scratchpad: None,
            created_at: DateTime::UNIX_EPOCH,
            run: Some(record().run),
            iteration: Some(IterationId::FIRST),
            session: None,
        }
    }

    /// A run whose database cannot be opened: its place is below a file. Its records are kept in the directory.
    async fn ended_without_database(below: &Path, dir: &PrivateDir) {
        std::fs::write(below, "in the way").expect("a file");
        let store = open(&below.join("p.db")).await;
        let record = record();
        let iteration = tests::first_iteration(&record.run);
        let written = store.begin_run(&record).await;
        assert!(matches!(written, Ok(Written::Queued(_))), "{written:?}");
        let written = store.put_iteration(&record.run, &iteration).await;
        assert!(written.is_ok(), "{written:?}");
        let written = store.put_checkpoint(&record.project, &checkpoint()).await;
        assert!(written.is_ok(), "{written:?}");
        store.end_run_later(
            &record.run,
            DateTime::UNIX_EPOCH,
            EndReason::StopPhraseFound,
        );
        assert_eq!(store.keep_waiting(dir).expect("a file"), 4);
        std::fs::remove_file(below).expect("it was there");
    }

    #[tokio::test]
    async fn what_waited_at_the_end_of_a_run_is_in_the_database_of_the_next() {
        let state = tempfile::tempdir().expect("a directory");
        let below = state.path().join("below");
        let dir = PrivateDir::open_beside(state.path(), "hash").expect("a directory");
        ended_without_database(&below, &dir).await;
        let store = open(&below.join("p.db")).await;
        store.take_up(&dir).await.expect("it is read");
        assert_eq!(store.error(), None);
        assert_eq!(kept(&store, &dir), None);
        store.close().await;
        let store = open(&below.join("p.db")).await;
        let of = HistoryOf::Project(record().project);
        let found = store.history(&of, 9).await.expect("the history");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].iterations.len(), 1);
        let end = found[0].run.end_reason;
        assert_eq!(end, Some(EndReason::StopPhraseFound));
        let all = Checkpoints {
            limit: 9,
            ..Checkpoints::default()
        };
        let found = store.checkpoints(&all).await.expect("the checkpoints");
        assert_eq!(found, [checkpoint()]);
    }

    #[tokio::test]
    async fn readers_see_what_another_process_has_kept_and_leave_it() {
        let state = tempfile::tempdir().expect("a directory");
        let below = state.path().join("below");
        let dir = PrivateDir::open_beside(state.path(), "hash").expect("a directory");
        // The run began while the database was there.
        let store = open(&state.path().join("p.db")).await;
        let record = record();
        let written = store.begin_run(&record).await;
        assert_eq!(written.expect("a record"), Written::Durable);
        store.write_without_try(Write::Iteration {
            run: record.run.clone(),
            iteration: Box::new(tests::first_iteration(&record.run)),
        });
        assert_eq!(store.keep_waiting(&dir).expect("a file"), 1);
        let kept = fs::read(dir.path().join(store.unwritten_file())).expect("the file");
        // The reader's database is away, too.
        fs::write(&below, "in the way").expect("a file");
        let reader = open(&below.join("p.db")).await;
        let name = dir.path().join(reader.unwritten_file());
        fs::write(&name, &kept).expect("a file");
        reader.show_kept(&dir).expect("it is read");
        let of = HistoryOf::Project(record.project);
        let found = reader.history(&of, 9).await.expect("the history");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].iterations.len(), 1);
        // A process that only reads does not write it, also once that would be possible.
        fs::remove_file(&below).expect("it was there");
        reader.close().await;
        assert_eq!(fs::read(&name).expect("the file"), kept);
        let later = open(&below.join("p.db")).await;
        assert!(later.history(&of, 9).await.expect("a history").is_empty());
    }

    #[tokio::test]
    async fn a_database_that_is_away_is_not_tried_again_at_the_end_where_nothing_waits() {
        let state = tempfile::tempdir().expect("a directory");
        let below = state.path().join("below");
        fs::write(&below, "in the way").expect("a file");
        let store = open(&below.join("p.db")).await;
        fs::remove_file(&below).expect("it was there");
        assert_eq!(store.close().await, 0);
        assert!(!below.exists());
    }

    #[tokio::test]
    async fn what_waits_for_another_database_is_left_for_that() {
        let state = tempfile::tempdir().expect("a directory");
        let dir = PrivateDir::open_beside(state.path(), "hash").expect("a directory");
        let below = state.path().join("below");
        ended_without_database(&below, &dir).await;
        let other = open(&state.path().join("other.db")).await;
        other.take_up(&dir).await.expect("it is read");
        other.show_kept(&dir).expect("it is read");
        let of = HistoryOf::Project(record().project);
        assert!(other.history(&of, 9).await.expect("a history").is_empty());
        // The other one has nothing that waits.
        assert_eq!(other.keep_waiting(&dir).expect("no file"), 0);
        let first = open(&below.join("p.db")).await;
        assert!(kept(&first, &dir).is_some());
    }
}
