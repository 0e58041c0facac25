//! The client's daemon: which sessions it runs on by itself, and how one of them is ended.
//!
//! A left arrow in an empty prompt opens the agent view. The session goes on in a worker of the daemon, forked under a new
//! id; the process in the pane shows the list, or that worker's screen. Measured with 2.1.197 and 2.1.330:
//!
//! - The daemon and its workers outlive the process in the pane, which they do not belong to. `daemon/roster.json` in the
//!   configuration directory lists the workers; a fork's entry names the transcript it was forked from.
//! - Its hooks come by the same settings file. 2.1.330 reports the new id by `SessionStart` with the source `fork`; 2.1.197
//!   reports the old id again, and the new one first in a status line.
//! - `claude stop` takes the short name of a worker, not a session's id, prints `stopped NAME` and ends in 0.2 to 0.5 s with 0,
//!   or with 1 if there is no such worker. By then the worker has run its `SessionEnd`.
//! - A second worker waits for the next task, with an id of its own that it reports by `SessionStart` too. It ends with
//!   the process in the pane. The daemon, with a process that is ready for the next worker, ends 5 s after the last of both.

use std::path::Path;

use serde_json::Value;

use pitstop_transcript::SessionId;

/// The file in which the daemon lists its workers, below the configuration directory.
pub const ROSTER: &str = "daemon/roster.json";

/// The largest roster that is read, in bytes; a worker takes about 2 KB.
pub const ROSTER_CAP: u64 = 4 * 1024 * 1024;

/// The longest short name that is believed, in bytes; the client makes them of 8 hexadecimal digits.
const NAME_CAP: usize = 64;

/// A session that the daemon runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Its short name, which `claude stop` takes.
    pub name: String,
    /// The process that holds its terminal.
    pub pid: u32,
    /// Its session.
    pub session: SessionId,
    /// The session that it was forked from.
    pub fork_of: Option<SessionId>,
}

impl Worker {
    /// Reports whether it runs one of these sessions, or one that was forked from one of them.
    pub fn belongs_to(&self, sessions: &[SessionId]) -> bool {
        let known = |session| sessions.contains(&session);
        known(self.session) || self.fork_of.is_some_and(known)
    }
}

/// Returns the workers that a roster lists; entries of a form we do not know are left out.
pub fn workers(roster: &[u8]) -> Vec<Worker> {
    let roster: Value = serde_json::from_slice(roster).unwrap_or_default();
    let listed = roster["workers"].as_object().into_iter().flatten();
    listed
        .filter_map(|(name, entry)| {
            let launch = &entry["dispatch"]["launch"];
            let forked = launch["fork"] == true;
            let origin = launch["sessionId"].as_str().filter(|_| forked);
            Some(Worker {
                name: is_name(name).then(|| name.clone())?,
                pid: entry["pid"].as_u64()?.try_into().ok()?,
                session: entry["sessionId"].as_str()?.parse().ok()?,
                fork_of: origin.and_then(session_of),
            })
        })
        .collect()
}

/// Returns the session that is named by its id, or by the path of its transcript.
fn session_of(origin: &str) -> Option<SessionId> {
    Path::new(origin).file_stem()?.to_str()?.parse().ok()
}

/// Reports whether this name may become an argument.
fn is_name(name: &str) -> bool {
    (1..=NAME_CAP).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: u128) -> SessionId {
        format!("00000000-0000-4000-8000-{number:012}")
            .parse()
            .unwrap()
    }

    #[test]
    fn a_fork_is_known_by_the_transcript_it_came_from() {
        let roster = br#"{"proto":1,"supervisorPid":7,"workers":{
            "00aa": {"pid": 41, "sessionId": "00000000-0000-4000-8000-000000000002", "dispatch": {"launch": {
                "mode": "resume", "fork": true,
                "sessionId": "/h/.claude/projects/-p/00000000-0000-4000-8000-000000000001.jsonl"}}},
            "00bb": {"pid": 42, "sessionId": "00000000-0000-4000-8000-000000000003", "dispatch": {"launch": {
                "mode": "prompt", "args": ["--agent", "claude"]}, "source": "spare"}}}}"#;
        let found = workers(roster);
        let [fork, spare] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!((fork.name.as_str(), fork.pid), ("00aa", 41));
        assert_eq!(fork.fork_of, Some(session(1)));
        assert!(fork.belongs_to(&[session(1)]) && fork.belongs_to(&[session(2)]));
        assert!(!fork.belongs_to(&[session(3)]) && !fork.belongs_to(&[]));
        assert!(!spare.belongs_to(&[session(1), session(2)]));
    }

    #[test]
    fn a_hostile_roster_names_no_worker() {
        let id = "00000000-0000-4000-8000-000000000001";
        for roster in [
            String::new(),
            "[]".to_owned(),
            r#"{"workers":[1]}"#.to_owned(),
            format!(r#"{{"workers":{{"--all":{{"pid":1,"sessionId":"{id}"}}}}}}"#),
            format!(r#"{{"workers":{{"aa":{{"pid":-1,"sessionId":"{id}"}}}}}}"#),
            format!(r#"{{"workers":{{"":{{"pid":1,"sessionId":"{id}"}}}}}}"#),
            r#"{"workers":{"aa":{"pid":1,"sessionId":"x"}}}"#.to_owned(),
        ] {
            assert_eq!(workers(roster.as_bytes()), [], "{roster}");
        }
    }
}
