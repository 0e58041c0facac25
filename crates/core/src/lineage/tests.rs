//! Runs, iterations and `meta.json`.

use std::{collections::BTreeMap, path::Path};

use chrono::{DateTime, Duration, TimeZone, Utc};

use super::{chain::STATES_KEPT, project::fnv1a, *};
use pitstop_transcript::{SessionId, Tokens};

fn at(second: i64) -> DateTime<Utc> {
    Utc.timestamp_opt(1_795_000_000 + second, 123_456_789)
        .unwrap()
}

fn run() -> RunId {
    RunId::new(at(0), [0x3f, 0xa9, 0x4c])
}

fn session(n: u128) -> SessionId {
    SessionId::new(uuid::Uuid::from_u128(n))
}

fn reboot() -> RebootRecord {
    RebootRecord {
        old_session: None,
        new_session: None,
        way: Way::Fresh,
        nonce: None,
        cause: Cause::Threshold,
        trim: None,
        transition_time_ms: BTreeMap::new(),
        handoff_bytes: 1,
        handoff_tokens: Tokens(1),
        verified: true,
        approved_from: None,
        warmed_up: false,
        preserved_state: None,
    }
}

#[test]
fn a_run_name_sorts_by_time_and_reads_back() {
    let earlier = RunId::new(at(0), [0xff; 3]);
    let later = RunId::new(at(1), [0; 3]);
    assert!(earlier < later);
    assert_eq!(earlier.as_str().parse(), Ok(earlier.clone()));
    assert!(
        earlier
            .as_str()
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-')
    );
}

#[test]
fn a_run_name_that_is_no_directory_name_is_refused() {
    for text in [
        "",
        "..",
        "../x",
        "20261121-075144-3FA94C",
        "20261121-075144-3fa94",
        "20261321-075144-3fa94c",
        "20261121-075144-3fa94c/",
        "20261121-075144",
        "+0261121-075144-3fa94c",
        " 20261121-075144-3fa94c",
    ] {
        assert!(text.parse::<RunId>().is_err(), "{text:?}");
    }
}

#[test]
fn the_end_reasons_have_exactly_the_words_of_the_contract() {
    let words: Vec<_> = EndReason::ALL
        .iter()
        .map(|reason| reason.as_str())
        .collect();
    assert_eq!(
        words,
        [
            "natural",
            "context_limit",
            "promise_found",
            "user_reboot",
            "shutdown",
            "crash",
            "limit",
            "breaker"
        ]
    );
    for reason in EndReason::ALL {
        assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        assert_eq!(reason.as_str().parse(), Ok(*reason));
    }
}

#[test]
fn only_what_the_client_refused_is_called_full() {
    let full = Some(Cause::ContextLimit);
    for reason in EndReason::ALL {
        for next in Cause::ALL.iter().map(|cause| Some(*cause)).chain([None]) {
            let is_full = reason.short(next, None, false).contains("full");
            assert!(!is_full || next == full, "{reason} {next:?}");
        }
    }
    let short = |next| EndReason::ContextLimit.short(next, None, false);
    assert_eq!(short(full), "context full");
    assert_eq!(short(Some(Cause::Threshold)), "at the compact line");
    assert_eq!(short(Some(Cause::Breakpoint)), "at a good moment");
    assert_eq!(short(None), "rebooted");
    assert_eq!(
        EndReason::UserReboot.short(Some(Cause::Key), None, false),
        "rebooted by key"
    );
    assert_eq!(
        EndReason::Crash.short(Some(Cause::AgentCrash), None, true),
        "died in mid-turn"
    );
}

#[test]
fn iterations_open_and_close_in_turn() {
    let mut lineage = Lineage::new(run());
    assert_eq!(
        lineage.close(at(0), EndReason::Natural).unwrap_err(),
        LineageError::NoneOpen
    );

    let first = lineage.open(Some(session(1)), None, at(1)).unwrap();
    assert_eq!(first.get(), 1);
    assert_eq!(
        lineage.open(None, None, at(2)).unwrap_err(),
        LineageError::StillOpen(first)
    );
    lineage.current_mut().unwrap().tokens_at_end = Some(Tokens(150_000));
    let closed = lineage.close(at(3), EndReason::UserReboot).unwrap();
    assert_eq!(closed.end_reason, Some(EndReason::UserReboot));
    assert!(lineage.current().is_none());

    let second = lineage
        .open(Some(session(2)), Some(Cause::Key), at(4))
        .unwrap();
    assert_eq!(second.get(), 2);
    assert_eq!(lineage.parent(second).map(|p| p.iteration), Some(first));
    assert_eq!(lineage.parent(first), None);
    assert_eq!(lineage.iterations().len(), 2);
}

#[test]
fn an_undo_carries_on_from_the_older_iteration() {
    let mut lineage = Lineage::new(run());
    let first = lineage.open(Some(session(1)), None, at(1)).unwrap();
    lineage.close(at(2), EndReason::UserReboot).unwrap();
    lineage
        .open(Some(session(2)), Some(Cause::Key), at(3))
        .unwrap();
    lineage.close(at(4), EndReason::UserReboot).unwrap();
    let third = lineage
        .open_below(Some(first), Some(session(1)), Some(Cause::Undo), at(5))
        .unwrap();
    assert_eq!(third.get(), 3);
    assert_eq!(lineage.parent(third).map(|p| p.iteration), Some(first));
}

#[test]
fn old_iterations_forget_what_was_handed_over() {
    let mut lineage = Lineage::new(run());
    for second in 0..10 {
        lineage.open(None, None, at(second)).unwrap();
        lineage.current_mut().unwrap().reboot = Some(RebootRecord {
            preserved_state: Some(serde_json::json!({ "a": 1 })),
            ..reboot()
        });
        lineage.close(at(second), EndReason::ContextLimit).unwrap();
    }
    let kept = |one: &Iteration| one.reboot.as_ref().unwrap().preserved_state.is_some();
    let kept: Vec<_> = lineage.iterations().iter().map(kept).collect();
    assert_eq!(kept.iter().filter(|kept| **kept).count(), STATES_KEPT);
    assert!(kept[6..].iter().all(|kept| *kept), "{kept:?}");
}

#[test]
fn the_length_is_measured_and_not_the_distance_of_two_moments_of_a_clock_that_was_set() {
    for (set, minutes) in [(-7_200, 3), (7_200, 3), (0, 3)] {
        let mut lineage = Lineage::new(run());
        lineage.open(None, None, at(10_000)).unwrap();
        lineage.current_mut().unwrap().duration_ms = Some(minutes * 60_000);
        let ended = at(10_000) + Duration::minutes(3) + Duration::seconds(set);
        lineage.close(ended, EndReason::UserReboot).unwrap();
        assert_eq!(lineage.worked().as_secs(), minutes * 60, "set by {set} s");
        let record = IterationRecord::from(&lineage.iterations()[0]);
        assert_eq!(Iteration::from(record).lasted().as_secs(), minutes * 60);
    }
}

#[test]
fn an_iteration_whose_supervisor_died_is_as_long_as_its_record_where_the_clock_was_set_back() {
    let lasted = |last_sign| {
        let mut lineage = Lineage::new(run());
        lineage.open(None, None, at(10_000)).unwrap();
        lineage.current_mut().unwrap().duration_ms = Some(120_000);
        let lineage = Lineage::recorded(run(), lineage.iterations().to_vec(), |_| at(last_sign));
        lineage.worked().as_secs()
    };
    assert_eq!(lasted(10_300), 300, "it went on after it was recorded");
    assert_eq!(lasted(3_000), 120);
}

#[test]
fn a_clock_set_back_ends_no_iteration_before_its_start() {
    let mut lineage = Lineage::new(run());
    lineage.open(None, None, at(100)).unwrap();
    let closed = lineage
        .close(at(100) - Duration::hours(1), EndReason::Crash)
        .unwrap();
    assert_eq!(closed.ended_at, Some(closed.started_at));
}

#[test]
#[allow(
    clippy::too_many_lines,
    reason = "a test is one sequence from beginning to end"
)]
fn meta_has_exactly_the_names_of_its_schema_and_no_nulls() {
    let mut lineage = Lineage::new(run());
    lineage.open(Some(session(7)), None, at(0)).unwrap();
    let open = lineage.current_mut().unwrap();
    open.tokens = TokenTotals {
        input: Tokens(12),
        output: Tokens(3),
    };
    open.cost_usd = Some(1.5);
    (open.tokens_at_birth, open.tokens_at_end) = (Some(Tokens(5)), Some(Tokens(9)));
    let names = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    let value: serde_json::Value =
        serde_json::from_str(&lineage.meta(None, None).to_json()).unwrap();
    assert_eq!(
        names(&value),
        ["run_id", "started_at", "cost", "iterations"]
    );
    assert_eq!(
        names(&value["iterations"][0]),
        ["iteration", "session_id", "started_at", "tokens", "cost"]
    );

    lineage.current_mut().unwrap().summary = Some("did it".to_owned());
    lineage.close(at(60), EndReason::StopPhraseFound).unwrap();
    lineage
        .open(Some(session(8)), Some(Cause::Key), at(61))
        .unwrap();
    let second = lineage.current_mut().unwrap();
    second.cost_usd = Some(0.1 + 0.2);
    second.reboot = Some(RebootRecord {
        handoff_bytes: 7,
        ..reboot()
    });
    lineage.close(at(62), EndReason::Breaker).unwrap();
    let end = RunEnd {
        reason: EndReason::Breaker,
        exit_code: Some(4),
        evidence: "breaker no_change tripped".to_owned(),
    };
    let meta = lineage.meta(Some("build it"), Some((at(62), end)));
    let value: serde_json::Value = serde_json::from_str(&meta.to_json()).unwrap();
    assert_eq!(
        names(&value),
        [
            "run_id",
            "task",
            "started_at",
            "ended_at",
            "end",
            "cost",
            "iterations"
        ]
    );
    assert_eq!(
        value["end"],
        serde_json::json!({"reason": "breaker", "exit_code": 4, "evidence": "breaker no_change tripped"})
    );
    assert_eq!(value["cost"], 1.8);
    assert_eq!(value["started_at"], moment::text(run().started()));
    let record = &value["iterations"][0];
    assert_eq!(
        names(record),
        [
            "iteration",
            "session_id",
            "started_at",
            "ended_at",
            "end_reason",
            "tokens",
            "cost",
            "summary"
        ]
    );
    assert_eq!(
        record["tokens"],
        serde_json::json!({"input": 12, "output": 3, "at_start": 5, "at_end": 9})
    );
    assert_eq!(record["end_reason"], "promise_found");
    assert_eq!(record["started_at"].as_str().unwrap().len(), 24);
    let second = &value["iterations"][1];
    assert_eq!(
        (&second["cause"], &second["cost"], &second["handoff"]),
        (&"key".into(), &0.3.into(), &"iteration-2/handoff.md".into())
    );
    assert_eq!(serde_json::from_value::<Meta>(value).unwrap(), meta);
}

#[test]
fn a_record_of_an_older_shape_is_read() {
    let old = r#"{"run": "20261121-075144-3fa94c", "iterations": [{"iteration": 1,
        "started_at": "2026-11-21T07:51:44.000Z", "end_reason": "limit", "tokens": {"input": 1, "output": 2}}]}"#;
    let meta: Meta = serde_json::from_str(old).unwrap();
    assert_eq!(meta.run_id.as_str(), "20261121-075144-3fa94c");
    assert_eq!((meta.started_at, meta.iterations.len()), (None, 1));
}

#[test]
fn a_project_keeps_its_hash_for_good() {
    // The value is on users' disks: a change here loses their history.
    assert_eq!(
        Project::new(Path::new("/home/a/b"), "h").hash,
        format!("{:016x}", fnv1a(b"/home/a/b"))
    );
    assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
}

#[test]
fn the_time_after_a_supervisor_has_died_is_not_worked() {
    let mut lineage = Lineage::new(run());
    lineage.open(Some(session(7)), None, at(0)).unwrap();
    lineage.close(at(60), EndReason::ContextLimit).unwrap();
    lineage
        .open(Some(session(8)), Some(Cause::Threshold), at(70))
        .unwrap();
    // Its last word is from then; it is found an hour later.
    let mut lineage = Lineage::recorded(run(), lineage.iterations().to_vec(), |_| at(100));
    assert_eq!(lineage.worked().as_secs(), 90);
    lineage
        .open(Some(session(8)), Some(Cause::Resume), at(3_700))
        .unwrap();
    // One that was killed before its first word.
    let lineage = Lineage::recorded(run(), lineage.iterations().to_vec(), |_| at(100));
    assert_eq!(lineage.worked().as_secs(), 90);
    let times = lineage.iterations().iter().map(|one| {
        let ended = one.ended_at.unwrap();
        ended.signed_duration_since(one.started_at).num_seconds()
    });
    assert_eq!(times.collect::<Vec<_>>(), [60, 30, 0]);
}
