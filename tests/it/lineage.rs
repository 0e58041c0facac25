//! The records on real disks and servers: what is acknowledged survives, whatever is killed.
//!
//! Every test of the store runs on `SQLite`, and on Postgres when `PITSTOP_TEST_POSTGRES` names a
//! server whose user may create schemas: `PITSTOP_TEST_POSTGRES=postgres://… cargo test -- --ignored`.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Write as _},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use chrono::{DateTime, TimeZone, Utc};
use pitstop_base::process;
use pitstop_core::lineage::{
    Cause, EndReason, Iteration, IterationId, Lineage, ProcessStamp, Project, RebootRecord, RunId,
    TokenTotals, Way,
    checkpoint::{Checkpoint, SavedScratchpad},
    journal::{JournalEntry, Step},
    metrics::{Metric, Total},
    past::MessageKind,
};
use pitstop_handoff::summary::{SummaryMade, SummarySource};
use pitstop_store::{
    Checkpoints, HistoryOf, Opened, PrivateDir, RunRecord, Store, StoreError, StoreOptions,
    StoreTarget, StoreWarning, Written,
    lock::{self, Holder, Lock, LockError},
};
use pitstop_transcript::{SessionId, Tokens};
use sqlx::Connection;
use uuid::Uuid;

use crate::kit::small_disk::SmallDisk;

/// Long enough for the slowest machine; nothing waits this long when all is well.
const LIMIT: Duration = Duration::from_secs(120);

fn at(second: i64) -> DateTime<Utc> {
    Utc.timestamp_millis_opt(1_795_000_000_000 + second * 1_000 + 123)
        .unwrap()
}

fn project(name: &str) -> Project {
    Project::new(&Path::new("/work").join(name), "machine")
}

fn run_at(second: i64) -> RunId {
    RunId::new(at(second), [1, 2, 3])
}

fn record(run: &RunId, project: &Project) -> RunRecord {
    RunRecord {
        run: run.clone(),
        project: project.clone(),
        process: ProcessStamp {
            pid: 4_242,
            start_time: "777@boot".to_owned(),
        },
        agent: "claude".to_owned(),
        version: "0.1.0".to_owned(),
        task: None,
        started_at: at(0),
        ended_at: None,
        end_reason: None,
    }
}

fn session(n: u128) -> SessionId {
    SessionId::new(Uuid::from_u128(n))
}

fn entry(run: &RunId, step: Step) -> JournalEntry {
    JournalEntry {
        reboot_id: Uuid::from_u128(99),
        run: run.clone(),
        iteration: IterationId::FIRST,
        step,
        way: Way::Fresh,
        old_session: Some(session(1)),
        new_session: Some(session(2)),
        nonce: "n0nce".to_owned(),
        handoff: "# Handoff \u{1f600}\n".repeat(1_000),
        trim: None,
        cause: Cause::Key,
        at: at(5),
        outcome: None,
    }
}

fn checkpoint(n: u128, environment: &str) -> Checkpoint {
    Checkpoint {
        id: Uuid::from_u128(n),
        environment: environment.to_owned(),
        task: "the task".to_owned(),
        context: "where it stands".to_owned(),
        next_steps: vec!["first".to_owned(), "then".to_owned()],
        tags: vec!["auto-save".to_owned()],
        state: serde_json::json!({"custom": {"a": [1, null, "\u{0}"]}}),
        scratchpad: Some(SavedScratchpad {
            text: "# Notes\n- [ ] mine\n".to_owned(),
            human: vec!["mine".to_owned()],
        }),
        created_at: at(i64::try_from(n).unwrap()),
        run: None,
        iteration: None,
        session: None,
    }
}

/// An iteration with every field set.
fn full_iteration(run: &RunId) -> Iteration {
    let mut lineage = Lineage::new(run.clone());
    lineage.open(Some(session(1)), None, at(0)).unwrap();
    lineage.close(at(1), EndReason::UserReboot).unwrap();
    let id = lineage
        .open(Some(session(2)), Some(Cause::Threshold), at(2))
        .unwrap();
    let open = lineage.current_mut().unwrap();
    open.tokens = TokenTotals {
        input: Tokens(1_000_000_000_000),
        output: Tokens(7),
    };
    open.summary = Some("emoji \u{1f600}, CJK 漢字, 'quotes' and\r\nlines".to_owned());
    open.summary_made = Some(SummaryMade {
        source: SummarySource::Model,
        cost_usd: Some(0.02),
        duration_ms: Some(12_000),
        reason: Some("2 turns old".to_owned()),
    });
    open.tokens_at_birth = Some(Tokens(15_000));
    open.tokens_at_end = Some(Tokens(0));
    open.compactions = 3;
    open.cost_usd = Some(4.12);
    open.reboot = Some(RebootRecord {
        old_session: Some(session(1)),
        new_session: Some(session(2)),
        way: Way::Fresh,
        nonce: None,
        trim: None,
        cause: Cause::Threshold,
        transition_time_ms: [(Step::Ending, 200), (Step::Starting, 1_500)].into(),
        handoff_bytes: 3_100,
        handoff_tokens: Tokens(900),
        verified: true,
        approved_from: None,
        warmed_up: false,
        preserved_state: Some(serde_json::json!({"completed_items": ["a"]})),
    });
    lineage.close(at(60), EndReason::ContextLimit).unwrap();
    lineage.get(id).unwrap().clone()
}

/// Where a test's database is, and what goes away with the test.
struct Place {
    target: StoreTarget,
    _home: Option<tempfile::TempDir>,
}

impl Place {
    fn sqlite() -> Self {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("state/pitstop/pitstop.db");
        Self {
            target: StoreTarget::Sqlite(file),
            _home: Some(home),
        }
    }

    /// A schema of the test's own on the server.
    async fn postgres() -> Self {
        let url = std::env::var("PITSTOP_TEST_POSTGRES")
            .expect("PITSTOP_TEST_POSTGRES must name a server");
        let schema = format!("pitstop_{}", Uuid::new_v4().simple());
        let mut server = sqlx::PgConnection::connect(&url).await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(format!("CREATE SCHEMA {schema}")))
            .execute(&mut server)
            .await
            .unwrap();
        let join = if url.contains('?') { '&' } else { '?' };
        Self {
            target: StoreTarget::new(
                Some(&format!("{url}{join}options[search_path]={schema}")),
                Path::new("/unused"),
            )
            .unwrap(),
            _home: None,
        }
    }

    fn options(&self) -> StoreOptions {
        StoreOptions::new(self.target.clone())
    }

    fn file(&self) -> &Path {
        match &self.target {
            StoreTarget::Sqlite(path) => path,
            StoreTarget::Postgres(_) => panic!("no file"),
        }
    }

    /// Opens the store, which must be well.
    async fn open(&self) -> Store {
        let Opened { store, warnings } = Store::open(self.options()).await.unwrap();
        assert_eq!(warnings, []);
        store
    }

    /// Runs one statement past the store.
    async fn execute(&self, sql: &'static str) {
        match &self.target {
            StoreTarget::Sqlite(path) => {
                let mut raw = raw_sqlite(path).await;
                sqlx::raw_sql(sql).execute(&mut raw).await.unwrap();
                raw.close().await.unwrap();
            }
            StoreTarget::Postgres(url) => {
                let mut raw = sqlx::PgConnection::connect(url).await.unwrap();
                sqlx::raw_sql(sql).execute(&mut raw).await.unwrap();
                raw.close().await.unwrap();
            }
        }
    }
}

async fn raw_sqlite(path: &Path) -> sqlx::SqliteConnection {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    sqlx::SqliteConnection::connect_with(&options)
        .await
        .unwrap()
}

fn durable(written: Result<Written, StoreError>) {
    assert_eq!(written.unwrap(), Written::Durable);
}

fn queued(written: Result<Written, StoreError>) {
    assert!(matches!(
        written.unwrap(),
        Written::Queued(StoreWarning::InMemory { .. })
    ));
}

/// Waits until `holds`, or fails after [`LIMIT`].
async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let deadline = Instant::now() + LIMIT;
    while !holds().await {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn queue_is_written(store: &Store) {
    let is_written = || async { store.health().await.queued == 0 };
    until("the queue is written", is_written).await;
}

/// Each test of the list runs on both databases.
macro_rules! on_both {
    ($($name:ident)+) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(super::Place::sqlite()).await;
            })+
        }

        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs PITSTOP_TEST_POSTGRES=<url>"]
            async fn $name() {
                super::$name(super::Place::postgres().await).await;
            })+
        }
    };
}

on_both! {
    history_reads_back_as_it_was_written
    history_is_of_the_project_and_newest_first
    a_session_of_any_run_is_found_with_its_handoffs
    the_journal_is_open_until_its_last_step
    a_reboot_is_not_finished_where_a_later_run_went_on_without_it
    a_reboot_that_is_over_is_not_opened_again_by_a_late_write
    checkpoints_are_found_by_environment_and_project_newest_first
    agents_are_known_until_they_are_gone
    metrics_are_kept
    metrics_are_reported_together_by_name
    checkpoints_are_found_by_tag_and_by_the_beginning_of_their_id
    a_checkpoint_of_format_1_is_read_and_a_newer_one_is_passed_over
    what_is_forgotten_is_gone_and_nothing_else
    a_run_that_is_taken_up_again_bears_its_new_process
    a_schema_newer_than_ours_is_refused_and_left_alone
    eight_starters_at_once_make_one_schema
    two_projects_write_at_once_and_lose_nothing
    a_write_that_makes_no_sense_is_an_error_and_not_queued
    a_row_from_elsewhere_is_left_out
    a_search_is_filled_up_to_its_limit
}

/// What only looks like the text does not take the place of what is found further back.
async fn a_search_is_filled_up_to_its_limit(place: Place) {
    let store = place.open().await;
    let ours = project("ours");
    let summaries = [
        "na\u{ef}ve",
        "na\u{ee}ve",
        "NA\u{cf}VE",
        "na\u{ee}ve",
        "na\u{ee}ve",
    ];
    for (second, summary) in (0..).zip(summaries) {
        let run = run_at(second);
        durable(store.begin_run(&record(&run, &ours)).await);
        let mut iteration = full_iteration(&run);
        iteration.summary = Some(summary.to_owned());
        durable(store.put_iteration(&run, &iteration).await);
    }
    for (limit, seconds) in [(1, &[2][..]), (2, &[2, 0]), (9, &[2, 0])] {
        let found = store.search(&ours, "na\u{ef}ve", limit).await.unwrap();
        let runs: Vec<_> = found.into_iter().map(|(run, _)| run).collect();
        let wanted: Vec<_> = seconds.iter().map(|second| run_at(*second)).collect();
        assert_eq!(runs, wanted, "{limit}");
    }
    let found = store.search(&ours, "na", 3).await.unwrap();
    assert_eq!(found.len(), 3);
}

async fn history_reads_back_as_it_was_written(place: Place) {
    let (run, project) = (run_at(0), project("a"));
    let iteration = full_iteration(&run);
    let mut begun = record(&run, &project);
    begun.task = Some("a\u{0}b".to_owned());
    let store = place.open().await;
    durable(store.begin_run(&begun).await);
    durable(store.put_iteration(&run, &iteration).await);
    durable(store.end_run(&run, at(61), EndReason::Shutdown).await);
    assert_eq!(store.close().await, 0);

    let store = place.open().await;
    let found = store.history(&HistoryOf::Run(run), 10).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].iterations, [iteration]);
    assert_eq!(found[0].run.end_reason, Some(EndReason::Shutdown));
    assert_eq!(found[0].run.ended_at, Some(at(61)));
    assert_eq!(found[0].run.project, project);
    // Postgres takes no NUL: both keep the sign for a character that cannot be shown.
    assert_eq!(found[0].run.task.as_deref(), Some("a\u{fffd}b"));
}

async fn history_is_of_the_project_and_newest_first(place: Place) {
    let store = place.open().await;
    let (ours, theirs) = (project("ours"), project("theirs"));
    let elsewhere = Project {
        host: "another".to_owned(),
        ..ours.clone()
    };
    for second in 0..5 {
        let run = run_at(second);
        durable(store.begin_run(&record(&run, &ours)).await);
        let mut iteration = full_iteration(&run);
        iteration.iteration = IterationId::FIRST;
        iteration.summary = None;
        durable(store.put_iteration(&run, &iteration).await);
        iteration.summary = Some("later".to_owned());
        durable(store.put_iteration(&run, &iteration).await);
    }
    durable(store.begin_run(&record(&run_at(7), &theirs)).await);
    durable(store.begin_run(&record(&run_at(8), &elsewhere)).await);

    let found = store.history(&HistoryOf::Project(ours), 3).await.unwrap();
    let runs: Vec<_> = found.iter().map(|one| one.run.run.clone()).collect();
    assert_eq!(runs, [run_at(4), run_at(3), run_at(2)]);
    assert_eq!(found[0].iterations.len(), 1);
    assert_eq!(found[0].iterations[0].summary.as_deref(), Some("later"));
}

async fn a_session_of_any_run_is_found_with_its_handoffs(place: Place) {
    let store = place.open().await;
    let ours = project("ours");
    let (old, new) = (run_at(0), run_at(100));
    for run in [&old, &new] {
        durable(store.begin_run(&record(run, &ours)).await);
    }
    let mut second = full_iteration(&old);
    second.summary = Some("a na\u{ef}ve \u{e9}tude of herons".to_owned());
    let mut first = second.clone();
    first.iteration = IterationId::FIRST;
    (first.session_id, first.reboot) = (Some(session(1)), None);
    (first.started_at, first.ended_at) = (at(0), Some(at(1)));
    for iteration in [&first, &second] {
        durable(store.put_iteration(&old, iteration).await);
    }
    // One that was only drafted, one that arrived, and one of another run.
    let drafted = JournalEntry {
        reboot_id: Uuid::from_u128(1),
        at: at(9),
        handoff: "drafted".to_owned(),
        ..entry(&old, Step::Failed)
    };
    let done = entry(&old, Step::Done);
    let elsewhere = JournalEntry {
        reboot_id: Uuid::from_u128(2),
        ..entry(&new, Step::Done)
    };
    for entry in [&drafted, &done, &elsewhere] {
        durable(store.journal_put(entry).await);
    }
    let mut saved = checkpoint(0, "e");
    (saved.session, saved.created_at) = (Some(session(2)), at(20));
    let mut later = saved.clone();
    (later.id, later.created_at) = (Uuid::from_u128(3), at(40));
    for one in [&later, &saved] {
        durable(store.put_checkpoint(&ours, one).await);
    }

    // A text is found in the handoffs of both sessions, whatever its case; what a pattern would mean is a letter.
    let handoff = "handoff \u{1f600}\n# ";
    let summary = second.summary.as_ref().unwrap();
    let both = [
        (old.clone(), second.iteration),
        (old.clone(), first.iteration),
    ];
    for (wanted, found) in [
        (handoff.to_uppercase().as_str(), &both[..]),
        (summary, &both),
        // The record of the reboot names both sessions.
        (session(2).to_string().as_str(), &both),
        // Letters beyond ASCII have cases, too, and each is a letter of its own.
        ("na\u{ef}ve \u{c9}TUDE", &both),
        ("na\u{ee}ve \u{c9}TUDE", &[]),
        ("no such words", &[]),
        ("%", &[]),
    ] {
        assert_eq!(
            store.search(&ours, wanted, 9).await.unwrap(),
            found,
            "{wanted}"
        );
    }
    assert_eq!(
        store.search(&project("theirs"), handoff, 9).await.unwrap(),
        []
    );
    let past = store.session(session(1)).await.unwrap().unwrap();
    assert_eq!(
        (&past.run, past.iteration.iteration),
        (&old, IterationId::FIRST)
    );
    assert_eq!((past.gave.as_ref(), past.got.as_ref()), (Some(&done), None));
    assert_eq!(past.state, second.reboot.as_ref().unwrap().preserved_state);
    assert_eq!(past.message().unwrap().kind, MessageKind::Given);

    let past = store.session(session(2)).await.unwrap().unwrap();
    assert_eq!((past.gave.as_ref(), past.got.as_ref()), (None, Some(&done)));
    assert_eq!(past.checkpoint.as_ref(), Some(&later));
    assert_eq!(past.message().unwrap().kind, MessageKind::Saved);
    assert_eq!(
        store.past(&old, second.iteration).await.unwrap(),
        Some(past)
    );

    let listed = store.earlier_iterations(&ours, &new, 10).await.unwrap();
    // As a list shows them.
    let short = |one: &Iteration| Iteration {
        reboot: None,
        summary: None,
        ..one.clone()
    };
    assert_eq!(
        listed,
        [(old.clone(), short(&second)), (old.clone(), short(&first))]
    );
    let few = store.earlier_iterations(&ours, &new, 1).await.unwrap();
    assert_eq!(few, &listed[..1]);
    assert_eq!(store.earlier_iterations(&ours, &old, 10).await.unwrap(), []);

    // Taken up again by another run, it is of that one.
    let mut again = second.clone();
    again.iteration = IterationId::FIRST;
    durable(store.put_iteration(&new, &again).await);
    let past = store.session(session(2)).await.unwrap().unwrap();
    assert_eq!(past.run, new);
    assert_eq!(store.session(session(7)).await.unwrap(), None);
    assert_eq!(store.past(&new, second.iteration).await.unwrap(), None);
}

async fn the_journal_is_open_until_its_last_step(place: Place) {
    let store = place.open().await;
    let (run, ours) = (run_at(0), project("ours"));
    durable(store.begin_run(&record(&run, &ours)).await);
    assert_eq!(store.journal_open(&ours).await.unwrap(), None);
    for step in Step::ALL {
        if step.is_final() {
            continue;
        }
        let entry = entry(&run, *step);
        durable(store.journal_put(&entry).await);
        assert_eq!(store.journal_open(&ours).await.unwrap(), Some(entry));
        assert_eq!(store.journal_open(&project("theirs")).await.unwrap(), None);
    }
    durable(store.journal_put(&entry(&run, Step::Done)).await);
    assert_eq!(store.journal_open(&ours).await.unwrap(), None);

    let mut second = entry(&run, Step::Waiting);
    second.reboot_id = Uuid::from_u128(100);
    second.iteration = second.iteration.next();
    durable(store.journal_put(&second).await);
    assert_eq!(
        store.journal_open(&ours).await.unwrap().as_ref(),
        Some(&second)
    );
    durable(
        store
            .journal_close(second.reboot_id, at(9), "rolled back")
            .await,
    );
    assert_eq!(store.journal_open(&ours).await.unwrap(), None);
}

async fn a_reboot_is_not_finished_where_a_later_run_went_on_without_it(place: Place) {
    let store = place.open().await;
    let (run, ours) = (run_at(0), project("ours"));
    let begin = async |second, project: &Project| {
        let later = RunRecord {
            started_at: at(second),
            ..record(&run_at(second), project)
        };
        durable(store.begin_run(&later).await);
    };
    durable(store.begin_run(&record(&run, &ours)).await);
    let entry = entry(&run, Step::Delivering);
    durable(store.journal_put(&entry).await);
    // One of before, one of another project, and the same run when it is begun again.
    begin(4, &ours).await;
    begin(6, &project("theirs")).await;
    durable(store.begin_run(&record(&run, &ours)).await);
    assert_eq!(store.journal_open(&ours).await.unwrap(), Some(entry));
    begin(7, &ours).await;
    assert_eq!(store.journal_open(&ours).await.unwrap(), None);
}

async fn a_reboot_that_is_over_is_not_opened_again_by_a_late_write(place: Place) {
    let store = place.open().await;
    let (run, ours) = (run_at(0), project("ours"));
    durable(store.begin_run(&record(&run, &ours)).await);
    durable(store.journal_put(&entry(&run, Step::Failed)).await);
    durable(store.journal_put(&entry(&run, Step::Verifying)).await);
    assert_eq!(store.journal_open(&ours).await.unwrap(), None);
}

async fn checkpoints_are_found_by_environment_and_project_newest_first(place: Place) {
    let store = place.open().await;
    let (ours, theirs) = (project("ours"), project("theirs"));
    for n in 1..=4 {
        durable(store.put_checkpoint(&ours, &checkpoint(n, "web")).await);
    }
    durable(store.put_checkpoint(&ours, &checkpoint(5, "api")).await);
    durable(store.put_checkpoint(&theirs, &checkpoint(6, "web")).await);
    // The same id twice is the same checkpoint.
    durable(store.put_checkpoint(&theirs, &checkpoint(6, "web")).await);

    let ask = |environment: Option<&str>, project: Option<&Project>, limit| {
        let which = Checkpoints {
            environment: environment.map(ToOwned::to_owned),
            project: project.cloned(),
            limit,
            ..Checkpoints::default()
        };
        let store = store.clone();
        async move { store.checkpoints(&which).await.unwrap() }
    };
    assert_eq!(
        ask(Some("web"), Some(&ours), 2).await,
        [checkpoint(4, "web"), checkpoint(3, "web")]
    );
    assert_eq!(ask(Some("web"), None, 1).await, [checkpoint(6, "web")]);
    assert_eq!(ask(None, None, 100).await.len(), 6);
    assert_eq!(ask(None, Some(&ours), 100).await.len(), 5);
    assert_eq!(ask(Some("none"), None, 100).await, []);

    // A later one of the same id takes the place; an earlier one that comes late does not.
    let mut later = checkpoint(6, "web");
    "later".clone_into(&mut later.task);
    later.created_at = at(60);
    durable(store.put_checkpoint(&theirs, &later).await);
    durable(store.put_checkpoint(&theirs, &checkpoint(6, "web")).await);
    assert_eq!(ask(None, Some(&theirs), 100).await, [later]);
}

async fn agents_are_known_until_they_are_gone(place: Place) {
    let store = place.open().await;
    let (run, ours) = (run_at(0), project("ours"));
    durable(store.begin_run(&record(&run, &ours)).await);
    let stamp = |pid| ProcessStamp {
        pid,
        start_time: format!("{pid}@boot"),
    };
    durable(
        store
            .record_agent(&run, IterationId::FIRST, &stamp(10))
            .await,
    );
    let second = IterationId::FIRST.next();
    durable(store.record_agent(&run, second, &stamp(11)).await);
    durable(store.agent_gone(&run, &stamp(10)).await);

    let found = store.last_agents(&ours).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].iteration, &found[0].process),
        (second, &stamp(11))
    );
    assert_eq!(store.last_agents(&project("theirs")).await.unwrap(), []);
}

async fn metrics_are_kept(place: Place) {
    let store = place.open().await;
    let run = run_at(0);
    durable(store.begin_run(&record(&run, &project("a"))).await);
    let metric = |iteration, second, value| Metric {
        iteration,
        name: "reboot_ms".to_owned(),
        at: at(second),
        value,
    };
    let first = Some(IterationId::FIRST);
    durable(store.put_metric(&run, &metric(None, 0, 1.5)).await);
    durable(store.put_metric(&run, &metric(None, 0, 2.5)).await);
    durable(store.put_metric(&run, &metric(first, 1, 3.0)).await);
    assert_eq!(
        store.metrics(&run).await.unwrap(),
        [metric(None, 0, 2.5), metric(first, 1, 3.0)]
    );
    let health = store.health().await;
    assert_eq!(
        (health.schema, health.error, health.lost),
        (Some(7), None, 0)
    );
}

async fn metrics_are_reported_together_by_name(place: Place) {
    let store = place.open().await;
    let ours = project("ours");
    for second in 0..2 {
        let run = run_at(second);
        durable(store.begin_run(&record(&run, &ours)).await);
        for n in 1..=3 {
            let metric = Metric {
                iteration: IterationId::new(n),
                name: "step:ending".to_owned(),
                at: at(second),
                value: n as f64,
            };
            durable(store.put_metric(&run, &metric).await);
        }
    }
    durable(
        store
            .begin_run(&record(&run_at(9), &project("theirs")))
            .await,
    );
    let of_one = store.totals(&HistoryOf::Run(run_at(0))).await.unwrap();
    let of_all = store.totals(&HistoryOf::Project(ours)).await.unwrap();
    let figures = |totals: &[Total]| -> Vec<_> {
        let each = totals.iter();
        each.map(|one| (one.name.clone(), one.count, one.sum, one.max))
            .collect()
    };
    assert_eq!(figures(&of_one), [("step:ending".to_owned(), 3, 6.0, 3.0)]);
    assert_eq!(figures(&of_all), [("step:ending".to_owned(), 6, 12.0, 3.0)]);
    let of_others = store.totals(&HistoryOf::Project(project("theirs"))).await;
    assert_eq!(of_others.unwrap(), []);
}

async fn a_checkpoint_of_format_1_is_read_and_a_newer_one_is_passed_over(place: Place) {
    let store = place.open().await;
    for n in 1..=3 {
        durable(
            store
                .put_checkpoint(&project("a"), &checkpoint(n, "web"))
                .await,
        );
    }
    place
        .execute(
            "UPDATE checkpoints SET format = 1, state = '{\"custom\":{\"k\":\"v\"}}' WHERE id LIKE '%1'; \
             UPDATE checkpoints SET format = 99 WHERE id LIKE '%3'",
        )
        .await;
    let all = Checkpoints {
        limit: 10,
        ..Checkpoints::default()
    };
    let found = store.checkpoints(&all).await.unwrap();
    let old = Checkpoint {
        state: serde_json::json!({"custom": {"k": "v"}}),
        scratchpad: None,
        ..checkpoint(1, "web")
    };
    assert_eq!(found, [checkpoint(2, "web"), old]);
}

async fn checkpoints_are_found_by_tag_and_by_the_beginning_of_their_id(place: Place) {
    let store = place.open().await;
    let ours = project("ours");
    let tags = ["night", "Night", "100%", "a_b", "axb"];
    for (n, tag) in (1..).zip(tags) {
        let mut one = checkpoint(n, "web");
        one.id = Uuid::from_u128(n << 96);
        one.tags = vec!["manual".to_owned(), tag.to_owned()];
        durable(store.put_checkpoint(&ours, &one).await);
    }
    let ask = async |tag: Option<&str>, id: Option<&str>| -> Vec<String> {
        let which = Checkpoints {
            tag: tag.map(ToOwned::to_owned),
            id: id.map(ToOwned::to_owned),
            limit: 100,
            ..Checkpoints::default()
        };
        let found = store.checkpoints(&which).await.unwrap();
        found.iter().map(|one| one.tags[1].clone()).collect()
    };
    for tag in tags {
        assert_eq!(ask(Some(tag), None).await, [tag]);
    }
    assert_eq!(ask(Some("igh"), None).await, Vec::<String>::new());
    assert_eq!(ask(Some("manual"), None).await.len(), 5);
    assert_eq!(ask(None, Some("00000003-0")).await, ["100%"]);
    assert_eq!(
        ask(Some("night"), Some("00000002")).await,
        Vec::<String>::new()
    );
    assert_eq!(ask(None, Some("%")).await, Vec::<String>::new());
}

async fn what_is_forgotten_is_gone_and_nothing_else(place: Place) {
    let store = place.open().await;
    let ours = project("ours");
    let elsewhere = Project {
        host: "another".to_owned(),
        ..ours.clone()
    };
    for second in 0..3 {
        let run = run_at(second);
        let mut begun = record(&run, if second == 2 { &elsewhere } else { &ours });
        begun.started_at = at(second);
        durable(store.begin_run(&begun).await);
        durable(store.put_iteration(&run, &full_iteration(&run)).await);
        durable(
            store
                .journal_put(&JournalEntry {
                    reboot_id: Uuid::new_v4(),
                    ..entry(&run, Step::Review)
                })
                .await,
        );
        let mut saved = checkpoint(u128::from(second.unsigned_abs()) + 1, "web");
        saved.run = Some(run);
        durable(store.put_checkpoint(&ours, &saved).await);
    }
    let old = store
        .runs_before("machine", Some(&ours), at(1))
        .await
        .unwrap();
    let runs: Vec<_> = old.iter().map(|one| one.run.clone()).collect();
    assert_eq!(runs, [run_at(0)]);
    let all = store.runs_before("machine", None, at(100)).await.unwrap();
    assert_eq!(all.len(), 2, "not another machine's");

    durable(store.forget_run(&run_at(0)).await);
    let left = store
        .history(&HistoryOf::Project(ours.clone()), 9)
        .await
        .unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].iterations.len(), 1);
    let saved = store.saved("machine", Some(&ours)).await.unwrap();
    assert_eq!(saved.len(), 3, "checkpoints outlive their runs");
    durable(store.forget_checkpoint(saved[2].id).await);
    store.compact().await;
    let saved = store.saved("machine", None).await.unwrap();
    assert_eq!(
        saved.iter().map(|one| one.id.as_u128()).collect::<Vec<_>>(),
        [3, 2]
    );
    assert!(store.journal_open(&ours).await.unwrap().is_some());
}

async fn a_run_that_is_taken_up_again_bears_its_new_process(place: Place) {
    let store = place.open().await;
    let mut begun = record(&run_at(0), &project("a"));
    durable(store.begin_run(&begun).await);
    begun.process = me().process;
    durable(store.begin_run(&begun).await);
    let found = store.history(&HistoryOf::Run(run_at(0)), 1).await.unwrap();
    assert_eq!(found[0].run.process, begun.process);
}

async fn a_schema_newer_than_ours_is_refused_and_left_alone(place: Place) {
    place.open().await.close().await;
    place
        .execute("INSERT INTO pitstop_schema (version, applied_at) VALUES (99, 'later')")
        .await;
    let error = Store::open(place.options()).await.unwrap_err();
    assert!(
        matches!(
            error,
            StoreError::NewerSchema {
                found: 99,
                known: 7,
                ..
            }
        ),
        "{error:?}"
    );
    let text = error.to_string();
    assert!(
        text.contains("version 99") && text.contains("upgrade"),
        "{text}"
    );
    place
        .execute("DELETE FROM pitstop_schema WHERE version = 99")
        .await;
    place.open().await;
}

async fn eight_starters_at_once_make_one_schema(place: Place) {
    let starters: Vec<_> = (0..8)
        .map(|_| tokio::spawn(Store::open(place.options())))
        .collect();
    for starter in starters {
        let opened = starter.await.unwrap().unwrap();
        assert_eq!(opened.warnings, []);
        assert_eq!(opened.store.health().await.schema, Some(7));
        opened.store.close().await;
    }
}

async fn two_projects_write_at_once_and_lose_nothing(place: Place) {
    const WRITES: u64 = 100;
    let writers: Vec<_> = ["one", "two"]
        .into_iter()
        .zip(0..)
        .map(|(name, second)| {
            let options = place.options();
            tokio::spawn(async move {
                let store = Store::open(options).await.unwrap().store;
                let run = run_at(second);
                durable(store.begin_run(&record(&run, &project(name))).await);
                for n in 1..=WRITES {
                    let mut iteration = full_iteration(&run);
                    iteration.iteration = IterationId::new(n).unwrap();
                    durable(store.put_iteration(&run, &iteration).await);
                }
                store.close().await;
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let store = place.open().await;
    for (name, second) in [("one", 0), ("two", 1)] {
        let found = store
            .history(&HistoryOf::Project(project(name)), 5)
            .await
            .unwrap();
        assert_eq!(found[0].run.run, run_at(second));
        assert_eq!(found[0].iterations.len() as u64, WRITES);
    }
}

async fn a_write_that_makes_no_sense_is_an_error_and_not_queued(place: Place) {
    let store = place.open().await;
    let run = run_at(0);
    let error = store
        .put_iteration(&run, &full_iteration(&run))
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the database refused the iteration"),
        "{error}"
    );
    assert_eq!(store.health().await.queued, 0);
    durable(store.begin_run(&record(&run, &project("a"))).await);
    durable(store.put_iteration(&run, &full_iteration(&run)).await);
}

async fn a_row_from_elsewhere_is_left_out(place: Place) {
    let store = place.open().await;
    let (run, ours) = (run_at(0), project("ours"));
    durable(store.begin_run(&record(&run, &ours)).await);
    durable(store.put_iteration(&run, &full_iteration(&run)).await);
    durable(store.journal_put(&entry(&run, Step::Review)).await);
    place
        .execute("UPDATE iterations SET started_at = 'yesterday'")
        .await;
    place
        .execute("UPDATE journal SET entry = '{\"step\":\"unheard\"}'")
        .await;
    let found = store.history(&HistoryOf::Run(run), 1).await.unwrap();
    assert_eq!(found[0].iterations, []);
    assert_eq!(store.journal_open(&ours).await.unwrap(), None);
}

// What only a file can suffer.

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[tokio::test]
async fn the_database_and_all_beside_it_are_private() {
    let place = Place::sqlite();
    let store = place.open().await;
    durable(store.begin_run(&record(&run_at(0), &project("a"))).await);
    let dir = place.file().parent().unwrap();
    assert_eq!(mode(dir), 0o700);
    let mut names: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .collect();
    names.sort_by_key(std::fs::DirEntry::file_name);
    assert!(names.len() >= 3, "{names:?}");
    for entry in names {
        assert_eq!(mode(&entry.path()), 0o600, "{entry:?}");
    }
}

#[tokio::test]
async fn a_database_left_open_to_others_is_closed_to_them() {
    let place = Place::sqlite();
    place.open().await.close().await;
    std::fs::set_permissions(place.file(), std::fs::Permissions::from_mode(0o644)).unwrap();
    place.open().await;
    assert_eq!(mode(place.file()), 0o600);
}

#[tokio::test]
async fn a_database_that_is_a_link_is_not_followed() {
    let place = Place::sqlite();
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.file().parent().unwrap()).unwrap();
    let secret = elsewhere.path().join("secret");
    std::fs::write(&secret, b"").unwrap();
    std::os::unix::fs::symlink(&secret, place.file()).unwrap();
    let opened = Store::open(place.options()).await.unwrap();
    let [StoreWarning::InMemory { reason }] = &opened.warnings[..] else {
        panic!("{:?}", opened.warnings);
    };
    assert!(reason.contains("expected no link"), "{reason}");
    assert_eq!(std::fs::read(&secret).unwrap(), b"");
}

/// Fills a database with some hundred kilobytes and closes it.
async fn fill(place: &Place) {
    let store = place.open().await;
    let run = run_at(0);
    durable(store.begin_run(&record(&run, &project("a"))).await);
    for n in 1..=50 {
        let mut iteration = full_iteration(&run);
        iteration.iteration = IterationId::new(n).unwrap();
        iteration.summary = Some("x".repeat(8_000));
        durable(store.put_iteration(&run, &iteration).await);
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corrupt_database_is_set_aside_and_a_new_one_begun() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 4] = [
        ("no database at all", |bytes| {
            *bytes = b"hello, I am a text\n".repeat(500);
        }),
        ("header overwritten", |bytes| bytes[..100].fill(0xff)),
        ("pages flipped", |bytes| {
            for byte in bytes.iter_mut().skip(4_096).step_by(97) {
                *byte ^= 0x5a;
            }
        }),
        ("cut in the middle", |bytes| bytes.truncate(bytes.len() / 2)),
    ];
    for (name, damage) in damages {
        let place = Place::sqlite();
        fill(&place).await;
        let mut bytes = std::fs::read(place.file()).unwrap();
        damage(&mut bytes);
        std::fs::write(place.file(), &bytes).unwrap();

        let opened = Store::open(place.options()).await.unwrap();
        let [StoreWarning::SetAside { kept }] = &opened.warnings[..] else {
            panic!("{name}: {:?}", opened.warnings);
        };
        assert_eq!(std::fs::read(kept).unwrap(), bytes, "{name}");
        assert!(
            kept.to_string_lossy().contains("pitstop.db.corrupt-"),
            "{name}"
        );
        let run = run_at(1);
        durable(opened.store.begin_run(&record(&run, &project("a"))).await);
        opened.store.close().await;
        let store = place.open().await;
        let found = store.history(&HistoryOf::Run(run), 1).await.unwrap();
        assert_eq!(found.len(), 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_database_queues_what_is_written_and_takes_it_later() {
    let place = Place::sqlite();
    let (run, ours) = (run_at(0), project("ours"));
    let store = Store::open(StoreOptions {
        patience: Duration::from_secs(2),
        ..place.options()
    })
    .await
    .unwrap()
    .store;
    durable(store.begin_run(&record(&run, &ours)).await);

    let mut other = play("lock", place.file());
    let mut words = reported(&mut other);
    assert_eq!(words.next().as_deref(), Some("locked"));
    let iteration = full_iteration(&run);
    queued(store.put_iteration(&run, &iteration).await);
    // Once it is known to be locked, no one waits for it any more but the journal, and that briefly.
    let begun = Instant::now();
    queued(store.put_checkpoint(&ours, &checkpoint(1, "web")).await);
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    queued(store.journal_put(&entry(&run, Step::Waiting)).await);
    queued(store.journal_put(&entry(&run, Step::Ending)).await);
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );

    // Readers see what waits.
    let found = store
        .history(&HistoryOf::Project(ours.clone()), 5)
        .await
        .unwrap();
    assert_eq!(found[0].iterations, std::slice::from_ref(&iteration));
    let open = store.journal_open(&ours).await.unwrap();
    assert_eq!(open, Some(entry(&run, Step::Ending)));
    let health = store.health().await;
    assert_eq!((health.queued, health.lost), (3, 0));
    assert!(health.error.unwrap().contains("locked"));

    drop(other.stdin.take());
    assert!(other.wait().unwrap().success());
    queue_is_written(&store).await;
    assert_eq!(store.health().await.error, None);
    durable(store.end_run(&run, at(9), EndReason::Natural).await);
    store.close().await;

    let store = place.open().await;
    let found = store
        .history(&HistoryOf::Run(run.clone()), 5)
        .await
        .unwrap();
    assert_eq!(found[0].iterations, [iteration]);
    let open = store.journal_open(&ours).await.unwrap();
    assert_eq!(open, Some(entry(&run, Step::Ending)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_cannot_be_opened_is_memory_until_it_can() {
    let place = Place::sqlite();
    let (run, ours) = (run_at(0), project("ours"));
    // A file where a directory should be: fails for every user, root too.
    let state = place.file().parent().unwrap().parent().unwrap().to_owned();
    std::fs::write(&state, b"").unwrap();
    let opened = Store::open(place.options()).await.unwrap();
    assert!(matches!(
        &opened.warnings[..],
        [StoreWarning::InMemory { .. }]
    ));
    let store = opened.store;
    queued(store.begin_run(&record(&run, &ours)).await);
    queued(store.put_iteration(&run, &full_iteration(&run)).await);
    queued(store.journal_put(&entry(&run, Step::Starting)).await);
    queued(
        store
            .record_agent(&run, IterationId::FIRST, &record(&run, &ours).process)
            .await,
    );
    let found = store
        .history(&HistoryOf::Project(ours.clone()), 5)
        .await
        .unwrap();
    assert_eq!(found[0].iterations, [full_iteration(&run)]);
    assert!(store.journal_open(&ours).await.unwrap().is_some());
    assert_eq!(store.last_agents(&ours).await.unwrap().len(), 1);

    std::fs::remove_file(&state).unwrap();
    queue_is_written(&store).await;
    store.close().await;
    let store = place.open().await;
    assert_eq!(store.history(&HistoryOf::Run(run), 5).await.unwrap(), found);
    assert!(store.journal_open(&ours).await.unwrap().is_some());
    assert_eq!(store.last_agents(&ours).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PITSTOP_TEST_SMALL_DISK=<a directory on a file system of about 1 MiB>"]
async fn a_full_disk_queues_what_is_written_and_takes_it_once_there_is_room() {
    let disk = SmallDisk::new();
    let options = StoreOptions::new(StoreTarget::new(None, &disk.path().join("state")).unwrap());
    let (run, ours) = (run_at(0), project("ours"));
    let store = Store::open(options.clone()).await.unwrap().store;
    durable(store.begin_run(&record(&run, &ours)).await);
    let dir = PrivateDir::open_project(disk.path()).unwrap();
    dir.write_private("meta.json", b"old").unwrap();
    disk.fill();

    let mut acknowledged = 0;
    for n in 1.. {
        let mut iteration = full_iteration(&run);
        iteration.iteration = IterationId::new(n).unwrap();
        iteration.summary = Some("x".repeat(4_000));
        if store.put_iteration(&run, &iteration).await.unwrap() != Written::Durable {
            break;
        }
        acknowledged = n;
    }
    let failed = dir.write_private("meta.json", &[b' '; 10_000]).unwrap_err();
    assert!(failed.is_disk_error(), "{failed:?}");
    assert_eq!(dir.read("meta.json", 100).unwrap().unwrap(), b"old");
    assert_eq!(dir.names().unwrap(), [".gitignore", "meta.json"]);
    disk.empty();
    let room = Instant::now();
    queue_is_written(&store).await;
    assert!(
        room.elapsed() < Duration::from_secs(5),
        "{:?}",
        room.elapsed()
    );
    store.close().await;
    let store = Store::open(options).await.unwrap().store;
    let found = store.history(&HistoryOf::Run(run), 1).await.unwrap();
    assert_eq!(found[0].iterations.len() as u64, acknowledged + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_removed_beneath_us_is_made_again_and_takes_what_is_put_back() {
    let place = Place::sqlite();
    let ours = project("ours");
    let (earlier, run) = (run_at(0), run_at(1));
    let store = place.open().await;
    durable(store.begin_run(&record(&run, &ours)).await);
    assert!(!store.was_removed().await);
    std::fs::remove_dir_all(place.file().parent().unwrap()).unwrap();
    let iteration = full_iteration(&run);
    let written = store.put_iteration(&run, &iteration).await.unwrap();
    assert!(matches!(written, Written::Queued(_)), "nothing is lost");
    assert!(store.error().is_some_and(|why| why.contains("was removed")));
    assert!(store.was_removed().await);
    assert!(!store.was_removed().await, "it is said once");
    let known = pitstop_store::RunHistory {
        run: record(&earlier, &ours),
        iterations: vec![full_iteration(&earlier)],
    };
    store.put_back(&[known]).await.unwrap();
    until("it is made again", || async { store.error().is_none() }).await;
    store.close().await;
    let history = HistoryOf::Project(ours);
    let found = place.open().await.history(&history, 5).await.unwrap();
    let runs: Vec<_> = found
        .iter()
        .map(|one| (&one.run.run, one.iterations.len()))
        .collect();
    assert_eq!(runs, [(&run, 1), (&earlier, 1)]);
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_named_with_the_cause() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let url = format!("postgres://me:s3cret@127.0.0.1:{port}/fleet");
    let target = StoreTarget::new(Some(&url), Path::new("/unused")).unwrap();
    let options = StoreOptions {
        patience: Duration::from_secs(2),
        ..StoreOptions::new(target)
    };
    let opened = Store::open(options).await.unwrap();
    let [StoreWarning::InMemory { reason }] = &opened.warnings[..] else {
        panic!("{:?}", opened.warnings);
    };
    let place = format!("postgres://127.0.0.1:{port}/fleet: ");
    assert!(reason.starts_with(&place), "{reason}");
    assert!(reason.contains("refused"), "{reason}");
    assert!(!reason.contains("s3cret"), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_destroyed_beneath_us_is_set_aside_and_the_run_goes_on_in_a_new_one() {
    let place = Place::sqlite();
    fill(&place).await;
    let (run, ours) = (run_at(1), project("ours"));
    let store = place.open().await;
    durable(store.begin_run(&record(&run, &ours)).await);

    let size = std::fs::metadata(place.file()).unwrap().len();
    for suffix in ["", "-wal"] {
        let path = PathBuf::from(format!("{}{suffix}", place.file().display()));
        let file = std::fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&path);
        file.unwrap()
            .write_all(&vec![0xa5; usize::try_from(size).unwrap()])
            .unwrap();
    }
    // Pages still in memory may take some writes before the damage is met.
    let mut iteration = full_iteration(&run);
    let mut n = 0;
    let deadline = Instant::now() + LIMIT;
    loop {
        n += 1;
        iteration.iteration = IterationId::new(n).unwrap();
        match store.put_iteration(&run, &iteration).await {
            Ok(Written::Durable) => assert!(Instant::now() < deadline, "never met the damage"),
            Ok(Written::Queued(_)) => break,
            Err(error) => panic!("{error}"),
        }
    }
    // Not even the urgent may go into the ruin.
    queued(store.journal_put(&entry(&run, Step::Ending)).await);
    queue_is_written(&store).await;
    assert_eq!(store.health().await.lost, 0);
    store.close().await;

    let store = place.open().await;
    let found = store.history(&HistoryOf::Run(run), 1).await.unwrap();
    assert_eq!(
        found[0].iterations.last().map(|one| one.iteration.get()),
        Some(n)
    );
    let open = store.journal_open(&ours).await.unwrap();
    assert_eq!(open, Some(entry(&run_at(1), Step::Ending)));
    let dir = std::fs::read_dir(place.file().parent().unwrap()).unwrap();
    let aside = dir.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("pitstop.db.corrupt-")
    });
    assert_eq!(aside.count(), 1);
}

/// A server that can go away and come back: a relay before the real one.
struct Relay {
    port: u16,
    to: String,
    task: Option<tokio::task::JoinHandle<()>>,
}

impl Relay {
    async fn start(&mut self) {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", self.port))
            .await
            .unwrap();
        self.port = listener.local_addr().unwrap().port();
        let to = self.to.clone();
        self.task = Some(tokio::spawn(async move {
            // Dropped with the task, and all it relays with it.
            let mut relays = tokio::task::JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                let to = to.clone();
                relays.spawn(async move {
                    let mut far = tokio::net::TcpStream::connect(to).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                });
            }
        }));
    }

    async fn stop(&mut self) {
        let task = self.task.take().unwrap();
        task.abort();
        let _ = task.await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PITSTOP_TEST_POSTGRES=<url>"]
async fn a_server_that_goes_away_gets_what_it_missed_when_it_comes_back() {
    let place = Place::postgres().await;
    let StoreTarget::Postgres(url) = &place.target else {
        panic!("no server");
    };
    let server = place.target.place();
    let address = server
        .trim_start_matches("postgres://")
        .split('/')
        .next()
        .unwrap();
    let mut relay = Relay {
        port: 0,
        to: address.to_owned(),
        task: None,
    };
    relay.start().await;
    let through = url.replace(address, &format!("127.0.0.1:{}", relay.port));
    let (run, ours) = (run_at(0), project("ours"));
    let store = Store::open(StoreOptions {
        patience: Duration::from_millis(500),
        ..StoreOptions::new(StoreTarget::Postgres(through))
    })
    .await
    .unwrap()
    .store;
    durable(store.begin_run(&record(&run, &ours)).await);

    relay.stop().await;
    queued(store.put_iteration(&run, &full_iteration(&run)).await);
    queued(store.journal_put(&entry(&run, Step::Ending)).await);
    // Long enough for the connections to be given up.
    until("it is known to be away", || async {
        let found = store.history(&HistoryOf::Run(run.clone()), 1).await;
        found.is_ok_and(|found| found.is_empty())
    })
    .await;

    relay.start().await;
    queue_is_written(&store).await;
    store.close().await;
    let store = place.open().await;
    let found = store
        .history(&HistoryOf::Run(run.clone()), 1)
        .await
        .unwrap();
    assert_eq!(found[0].iterations, [full_iteration(&run)]);
    assert_eq!(
        store.journal_open(&ours).await.unwrap(),
        Some(entry(&run, Step::Ending))
    );
}

/// The URL of the server with these words for its connection.
fn server_with(words: &str) -> String {
    let url = std::env::var("PITSTOP_TEST_POSTGRES").expect("PITSTOP_TEST_POSTGRES names a server");
    let join = if url.contains('?') { '&' } else { '?' };
    format!("{url}{join}{words}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PITSTOP_TEST_POSTGRES=<url> of a server with TLS, PITSTOP_TEST_POSTGRES_CA=<its certificate>"]
async fn a_server_is_spoken_to_in_secret_and_only_if_it_is_the_right_one() {
    let ca = std::env::var("PITSTOP_TEST_POSTGRES_CA").expect("PITSTOP_TEST_POSTGRES_CA is a file");
    let place = Place::postgres().await;
    let StoreTarget::Postgres(plain) = &place.target else {
        panic!("no server");
    };
    let open = async |words: &str| {
        let target = StoreTarget::new(Some(&format!("{plain}&{words}")), Path::new("/unused"));
        let options = StoreOptions {
            patience: Duration::from_secs(5),
            ..StoreOptions::new(target.unwrap())
        };
        Store::open(options).await.unwrap()
    };
    for words in [
        "sslmode=require".to_owned(),
        format!("sslmode=verify-full&sslrootcert={ca}"),
    ] {
        let opened = open(&words).await;
        assert_eq!(opened.warnings, [], "{words}");
        let run = run_at(1);
        durable(opened.store.begin_run(&record(&run, &project("a"))).await);
        opened.store.close().await;
    }
    // One that cannot prove who it is gets nothing.
    let opened = open("sslmode=verify-full").await;
    let [StoreWarning::InMemory { reason }] = &opened.warnings[..] else {
        panic!("{:?}", opened.warnings);
    };
    assert!(reason.to_lowercase().contains("certificate"), "{reason}");

    let mut raw = sqlx::PgConnection::connect(&server_with("sslmode=require"))
        .await
        .unwrap();
    let secret: bool =
        sqlx::query_scalar("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
            .fetch_one(&mut raw)
            .await
            .unwrap();
    assert!(secret);
}

#[test]
fn a_target_is_a_file_or_a_server_and_never_shows_its_password() {
    let state = Path::new("/state/pitstop");
    let file = StoreTarget::new(None, state).unwrap();
    assert_eq!(file.place(), "/state/pitstop/pitstop.db");
    let server = StoreTarget::new(Some("postgres://me:s3cret@host/db"), state).unwrap();
    assert!(!format!("{server:?} {}", server.place()).contains("s3cret"));
    for wrong in [
        "mysql://host/db",
        "sqlite://relative.db",
        "",
        "postgres://[s3cret",
    ] {
        let error = StoreTarget::new(Some(wrong), state).unwrap_err();
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}

// Parts played by child processes: this very executable, started again for one ignored test.

const ROLE: &str = "PITSTOP_TEST_LINEAGE_ROLE";
const PLACE: &str = "PITSTOP_TEST_LINEAGE_PLACE";

/// A child that plays `role` on `place`.
pub fn play(role: &str, place: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lineage::a_part", "--ignored", "--nocapture"])
        .env(ROLE, role)
        .env(PLACE, place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Reports something to the parent, on a line of its own among those of the test harness.
fn report(word: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n@{word}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// The words a child prints, until it ends.
pub fn reported(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix('@').map(ToOwned::to_owned))
}

/// The child's end, which must be SIGKILL.
#[track_caller]
fn was_killed(child: &mut Child, when: &str) {
    use std::os::unix::process::ExitStatusExt;
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(9), "{when}: {status}");
}

#[test]
#[ignore = "a part played by the child processes of other tests"]
fn a_part() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let place = PathBuf::from(std::env::var(PLACE).unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    match role.split_once(' ').unwrap_or((&role, "")) {
        ("write", first) => runtime.block_on(write_on(place, first.parse().unwrap())),
        ("reboot", crash) => runtime.block_on(reboot(place, crash.parse().unwrap())),
        ("hold", _) => hold(&place),
        ("lock", _) => runtime.block_on(lock_database(&place)),
        ("race", rounds) => race(&place, rounds.parse().unwrap()),
        _ => panic!("{role}"),
    }
}

/// Keeps all others from writing to a database until the parent closes the pipe.
async fn lock_database(place: &Path) {
    let mut raw = raw_sqlite(place).await;
    let begun = sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut raw).await;
    begun.unwrap();
    report("locked");
    let _ = std::io::stdin().read_line(&mut String::new());
    sqlx::raw_sql("COMMIT").execute(&mut raw).await.unwrap();
}

/// Writes records of a run of its own and `meta.json` until it is killed, and prints the number of each once it is acknowledged.
async fn write_on(home: PathBuf, round: i64) {
    let target = StoreTarget::new(None, &home.join("state")).unwrap();
    let opened = Store::open(StoreOptions::new(target)).await.unwrap();
    assert_eq!(opened.warnings, []);
    let dir = PrivateDir::open_project(&home).unwrap();
    let run = run_at(round);
    durable(opened.store.begin_run(&record(&run, &project("a"))).await);
    let mut iteration = full_iteration(&run);
    for n in 1.. {
        iteration.iteration = IterationId::new(n).unwrap();
        if opened.store.put_iteration(&run, &iteration).await.unwrap() != Written::Durable {
            continue;
        }
        dir.write_private("meta.json", &meta_of(n)).unwrap();
        report(&n.to_string());
    }
}

/// A state file that has its own number and whether it is whole.
fn meta_of(n: u64) -> Vec<u8> {
    format!("{n}\n{}end", "x".repeat(20_000)).into_bytes()
}

/// The numbers of the iterations that the store has of a run.
async fn kept_of(store: &Store, run: &RunId) -> BTreeSet<u64> {
    let of = HistoryOf::Run(run.clone());
    let found = store.history(&of, 1).await.unwrap();
    let iterations = found.iter().flat_map(|one| &one.iterations);
    iterations.map(|one| one.iteration.get()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_in_the_middle_of_writes_loses_nothing_acknowledged() {
    const ROUNDS: i64 = 100;
    // A process that dies takes nothing of the disk with it, so memory serves, and takes a tenth of the time.
    let home = match Path::new("/dev/shm") {
        memory if memory.is_dir() => tempfile::tempdir_in(memory).unwrap(),
        _ => tempfile::tempdir().unwrap(),
    };
    let options = StoreOptions::new(StoreTarget::new(None, &home.path().join("state")).unwrap());
    let mut acknowledged = Vec::new();
    for round in 0..ROUNDS {
        let mut child = play(&format!("write {round}"), home.path());
        // How far it gets differs from round to round and from run to run.
        let enough = usize::from(Uuid::new_v4().as_bytes()[0]) / 3;
        let mut words = reported(&mut child);
        let mut seen: BTreeSet<u64> = words
            .by_ref()
            .take(enough)
            .map(|word| word.parse().unwrap())
            .collect();
        child.kill().unwrap();
        // What it told before it died counts too.
        seen.extend(words.map(|word| word.parse::<u64>().unwrap()));
        was_killed(&mut child, &format!("round {round}"));
        assert!(seen.len() >= enough);
        let last = seen.last().copied();

        let opened = Store::open(options.clone()).await.unwrap();
        assert_eq!(opened.warnings, [], "round {round}");
        let kept = kept_of(&opened.store, &run_at(round)).await;
        let missing: Vec<_> = seen.difference(&kept).collect();
        assert!(missing.is_empty(), "round {round}: {missing:?}");
        opened.store.close().await;
        acknowledged.push(seen);

        let dir = PrivateDir::open_project(home.path()).unwrap();
        if let Some(meta) = dir.read("meta.json", 1 << 20).unwrap() {
            let text = String::from_utf8_lossy(&meta).into_owned();
            let n: u64 = text.lines().next().unwrap().parse().unwrap();
            assert_eq!(meta, meta_of(n), "round {round}");
            assert!(
                last.is_none_or(|last| n >= last),
                "round {round}: {n} < {last:?}"
            );
        }
        dir.sweep_asides().unwrap();
    }
    // No later death has harmed what an earlier one left.
    let store = Store::open(options).await.unwrap().store;
    for (round, seen) in (0..).zip(&acknowledged) {
        let kept = kept_of(&store, &run_at(round)).await;
        assert!(seen.is_subset(&kept), "round {round}");
    }
    store.close().await;
    let all: usize = acknowledged.iter().map(BTreeSet::len).sum();
    assert!(all > 100, "{all}");
}

/// Writes every step of a reboot, telling each; dies where `crash` says.
async fn reboot(home: PathBuf, crash: pitstop_store::CrashPoint) {
    let target = StoreTarget::new(None, &home.join("state")).unwrap();
    let store = Store::open(StoreOptions {
        crash: Some(crash),
        ..StoreOptions::new(target)
    })
    .await
    .unwrap()
    .store;
    let run = run_at(0);
    durable(store.begin_run(&record(&run, &project("a"))).await);
    for step in Step::ALL {
        durable(store.journal_put(&entry(&run, *step)).await);
        report(step.as_str());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_at_either_edge_of_a_step_leaves_the_journal_at_that_edge() {
    // Steps after a final one cannot be reached by a reboot.
    let reached: Vec<_> = Step::ALL
        .iter()
        .take_while(|step| **step <= Step::Done)
        .collect();
    assert_eq!(reached.len(), 11);
    for (place, step) in reached.iter().enumerate() {
        for edge in ["before", "after"] {
            let home = tempfile::tempdir().unwrap();
            let mut child = play(&format!("reboot {step}:{edge}"), home.path());
            let reported: Vec<_> = reported(&mut child).collect();
            was_killed(&mut child, &format!("{step}:{edge}"));
            assert_eq!(reported.len(), place, "{step}:{edge}");

            let last = match edge {
                "before" => place.checked_sub(1).map(|before| *reached[before]),
                _ => Some(**step),
            };
            let target = StoreTarget::new(None, &home.path().join("state")).unwrap();
            let store = Store::open(StoreOptions::new(target)).await.unwrap().store;
            let open = store.journal_open(&project("a")).await.unwrap();
            let expected = last.filter(|last| !last.is_final());
            assert_eq!(open.map(|open| open.step), expected, "{step}:{edge}");
        }
    }
}

#[test]
fn a_crash_point_is_a_step_and_an_edge() {
    use pitstop_store::CrashPoint;
    for step in Step::ALL {
        for edge in ["before", "after"] {
            assert!(format!("{step}:{edge}").parse::<CrashPoint>().is_ok());
        }
    }
    for wrong in [
        "",
        "starting",
        "starting:",
        ":before",
        "starting:during",
        "x:after",
    ] {
        assert!(wrong.parse::<CrashPoint>().is_err(), "{wrong}");
    }
}

fn me() -> Holder {
    Holder {
        process: process::stamp(std::process::id()).unwrap(),
        since: Utc::now(),
        run: run_at(0),
    }
}

/// Takes the lock and keeps it until it dies.
fn hold(place: &Path) {
    let dir = PrivateDir::open_beside(place, "0123").unwrap();
    let _lock = Lock::acquire(&dir, &me()).unwrap();
    report("held");
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn the_lock_of_a_killed_supervisor_is_free_at_once() {
    let state = tempfile::tempdir().unwrap();
    let dir = PrivateDir::open_beside(state.path(), "0123").unwrap();
    for _ in 0..5 {
        let mut child = play("hold", state.path());
        assert_eq!(reported(&mut child).next().as_deref(), Some("held"));
        let error = Lock::acquire(&dir, &me()).unwrap_err();
        assert!(
            matches!(&error, LockError::Held(Some(holder)) if holder.process.pid == child.id()),
            "{error}"
        );
        let holder = || lock::holder(state.path(), "0123").unwrap();
        let known = holder().unwrap();
        assert_eq!(known.process.pid, child.id());

        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(holder(), None);
        Lock::acquire(&dir, &me()).unwrap();
    }
}

/// At each line from the parent: tries for the lock, reports how it went, and lets go at the next.
fn race(place: &Path, rounds: usize) {
    let dir = PrivateDir::open_beside(place, "0123").unwrap();
    let mut lines = std::io::stdin().lines();
    report("ready");
    for _ in 0..rounds {
        lines.next().unwrap().unwrap();
        let lock = Lock::acquire(&dir, &me());
        match &lock {
            Ok(_) => report("won"),
            Err(LockError::Held(_)) => report("lost"),
            Err(error) => report(&error.to_string()),
        }
        lines.next().unwrap().unwrap();
        drop(lock);
        report("over");
    }
}

#[test]
fn of_eight_racing_processes_exactly_one_holds_the_lock_each_time() {
    const ROUNDS: usize = 50;
    let state = tempfile::tempdir().unwrap();
    let mut racers: Vec<_> = (0..8)
        .map(|_| {
            let mut child = play(&format!("race {ROUNDS}"), state.path());
            let words = reported(&mut child);
            let orders = child.stdin.take().unwrap();
            (child, words, orders)
        })
        .collect();
    for (_, words, _) in &mut racers {
        assert_eq!(words.next().as_deref(), Some("ready"));
    }
    for round in 0..ROUNDS {
        for (_, _, orders) in &mut racers {
            orders.write_all(b"go\n").unwrap();
        }
        let outcomes: Vec<_> = racers
            .iter_mut()
            .map(|(_, words, _)| words.next().unwrap())
            .collect();
        let won = outcomes.iter().filter(|word| *word == "won").count();
        let lost = outcomes.iter().filter(|word| *word == "lost").count();
        assert_eq!((won, lost), (1, 7), "round {round}: {outcomes:?}");
        for (_, words, orders) in &mut racers {
            orders.write_all(b"end\n").unwrap();
            assert_eq!(words.next().as_deref(), Some("over"));
        }
    }
    for (mut child, _, orders) in racers {
        drop(orders);
        assert!(child.wait().unwrap().success());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PITSTOP_TEST_POSTGRES=<URL of a server>"]
async fn the_open_runs_of_other_machines_are_listed_by_their_records_in_a_shared_store() {
    let place = Place::postgres().await;
    let StoreTarget::Postgres(url) = &place.target else {
        panic!("no server");
    };
    let store = place.open().await;
    let run_of = |number: i64, host: &str| {
        let mut run = record(&run_at(number), &project("importer"));
        host.clone_into(&mut run.project.host);
        run.task = Some("port the importer".to_owned());
        run.started_at = Utc::now();
        run
    };
    let own = pitstop_base::process::host_name();
    let (there, ended, here) = (run_of(1, "box"), run_of(2, "box"), run_of(3, &own));
    for run in [&there, &ended, &here] {
        durable(store.begin_run(run).await);
    }
    durable(
        store
            .end_run(&ended.run, Utc::now(), EndReason::Natural)
            .await,
    );
    store.close().await;

    let launch = crate::kit::supervisor::Launch::quiet_demo();
    let config = launch.the_home().path("config/pitstop");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(
        config.join("config.toml"),
        format!("[store]\nurl = \"{url}\"\n"),
    )
    .unwrap();
    let ls = |args: &[&str]| {
        let output = launch.command(&[&["ls"], args].concat()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    ls(&["--ask-host", "shared store"]);
    let listed: serde_json::Value = serde_json::from_str(&ls(&["--json"])).unwrap();
    let sessions = listed["sessions"].as_array().unwrap();
    let [session] = &sessions[..] else {
        panic!("{listed:#}");
    };
    assert_eq!(session["host"], "box");
    assert_eq!(session["objective"], "port the importer");
    assert!(ls(&[]).contains("box:"));
}

#[test]
fn the_totals_of_a_project_have_each_of_its_runs() {
    let home = crate::kit::home::Home::new().unwrap();
    let call = |args: &[&str]| {
        let output = crate::kit::supervisor::pitstop_at(&home, args)
            .output()
            .unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        output.stdout
    };
    // The database is made where pitstop looks for it.
    call(&["save", "--task", "x"]);
    let ours = Project::new(
        &home.project().canonicalize().unwrap(),
        &process::host_name(),
    );
    let target = StoreTarget::new(None, &home.path("state/pitstop")).unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = Store::open(StoreOptions::new(target)).await.unwrap().store;
        for second in 0..501 {
            durable(store.begin_run(&record(&run_at(second), &ours)).await);
        }
        store.close().await;
    });
    let totals = call(&["history", "--totals", "--json"]);
    let totals: serde_json::Value = serde_json::from_slice(&totals).unwrap();
    assert_eq!(totals["runs"].as_array().unwrap().len(), 501);
}
