//! The client's own record of a process of its own: `sessions/PID.json` in its configuration directory, with the session that the
//! process is in now.
//!
//! Measured with 2.1.332: it is written at the start, within 0.3 s of a `/clear` or a resume inside the client, and whenever the client
//! begins or ends to work. It has the start time of the process, so it is no other's: hooks that are lost can be made up for by it,
//! whatever else runs in the same directory. Clients that keep none, such as 2.1.197, tell a change of their session by hooks alone.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde_json::Value;

use pitstop_base::process::ProcessStamp;
use pitstop_transcript::SessionId;

use super::projects::{began_at, project_slug};
use crate::{AgentEvent, StartSource};

/// The largest record that is read, in bytes; it has some 600.
pub const RECORD_CAP: u64 = 64 * 1024;

/// Returns the path of the record of a process.
pub fn record_of(pid: u32, config_dir: &Path) -> PathBuf {
    config_dir.join("sessions").join(format!("{pid}.json"))
}

/// Returns the session that a process is in, as the hook of its beginning would have reported it; `transcript_of` finds the file that a
/// session has by now. `None` for the record of another process.
pub fn session_in(
    record: &[u8],
    process: &ProcessStamp,
    config_dir: &Path,
    transcript_of: impl Fn(SessionId) -> Option<PathBuf>,
) -> Option<AgentEvent> {
    let record: Value = serde_json::from_slice(record).ok()?;
    let ticks = process.start_time.split('@').next();
    // Only Linux counts the start of a process as the client does.
    let is_its = !cfg!(target_os = "linux") || record["procStart"].as_str() == ticks;
    if !is_its || record["pid"].as_u64() != Some(process.pid.into()) {
        return None;
    }
    let session: SessionId = record["sessionId"].as_str()?.parse().ok()?;
    let found = transcript_of(session);
    let began = found.as_deref().and_then(began_at);
    let started = DateTime::<Utc>::from_timestamp_millis(record["startedAt"].as_i64()?)?;
    let source = if began.is_some_and(|began| began < started) {
        StartSource::Resume
    } else {
        StartSource::Clear
    };
    let project = || {
        let slug = project_slug(Path::new(record["cwd"].as_str()?));
        let name = format!("{session}.jsonl");
        Some(config_dir.join("projects").join(slug).join(name))
    };
    let path = found.or_else(project)?;
    Some(AgentEvent::SessionStarted {
        session,
        source,
        model: None,
        transcript_path: Some(path.to_string_lossy().into_owned()),
        prompt_cache: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "8d88935c-3a52-44d2-bebe-ad987c97ecfe";

    fn record(start: &str) -> String {
        format!(
            r#"{{"pid":6559,"sessionId":"{ID}","cwd":"/tmp/a b/proj","startedAt":1795878824614,"procStart":"{start}","version":"2.1.332"}}"#
        )
    }

    fn process() -> ProcessStamp {
        ProcessStamp {
            pid: 6559,
            start_time: "85398@boot".to_owned(),
        }
    }

    fn seen(transcript: Option<&Path>) -> (StartSource, String) {
        let found = |_| transcript.map(Path::to_owned);
        let event = session_in(
            record("85398").as_bytes(),
            &process(),
            Path::new("/c"),
            found,
        );
        match event {
            Some(AgentEvent::SessionStarted {
                session,
                source,
                transcript_path,
                ..
            }) if session.to_string() == ID => (source, transcript_path.unwrap()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_session_is_cleared_or_resumed_by_the_age_of_its_words() {
        let path = format!("/c/projects/-tmp-a-b-proj/{ID}.jsonl");
        assert_eq!(seen(None), (StartSource::Clear, path));
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("t.jsonl");
        for (said, source) in [
            ("2026-11-28T15:13:40Z", StartSource::Resume),
            ("2026-11-28T15:13:50Z", StartSource::Clear),
        ] {
            let lines = format!(
                "{{\"type\":\"mode\"}}\n{{\"type\":\"user\",\"timestamp\":\"{said}\"}}\n\
                 {{\"type\":\"user\",\"timestamp\":\"2026-11-28T16:00:00Z\"}}\n"
            );
            std::fs::write(&file, lines).unwrap();
            assert_eq!(seen(Some(&file)).0, source, "{said}");
        }
    }

    #[test]
    fn the_record_of_another_process_says_nothing() {
        let of = |text: &str, process: &ProcessStamp| {
            session_in(text.as_bytes(), process, Path::new("/c"), |_| None).is_some()
        };
        assert!(of(&record("85398"), &process()));
        let other = ProcessStamp {
            pid: 6560,
            ..process()
        };
        assert!(!of(&record("85398"), &other));
        // The number was another's before.
        assert!(!cfg!(target_os = "linux") || !of(&record("85397"), &process()));
        for broken in [
            "",
            "[]",
            "{}",
            r#"{"pid":6559,"procStart":"85398","sessionId":"x","startedAt":1}"#,
        ] {
            assert!(!of(broken, &process()), "{broken}");
        }
    }
}
