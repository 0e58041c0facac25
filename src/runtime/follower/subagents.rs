//! Reads the calls of subagents from their own transcripts, which the client keeps beside that of the session, in
//! `SESSION/subagents/agent-ID.jsonl` (seen with 2.1.39 and 2.1.332).
//!
//! They are read with the session's: it grows when a subagent has reported.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use pitstop_transcript::{
    digest::{Digest, Ran},
    tail::Tail,
};

/// The most transcripts of subagents that are held open: more than a client runs at once.
const MOST: usize = 24;

/// The most calls whose ids are remembered.
const REMEMBERED: usize = 16 * 1024;

/// The most bytes of one that are read at a time.
const BUDGET: u64 = 64 * 1024 * 1024;

/// The transcripts of a session's subagents.
pub(super) struct Subagents {
    directory: PathBuf,
    known: BTreeMap<PathBuf, Subagent>,
    /// Those that are done: they were there before the session was followed, or had rested the longest when others came.
    done: BTreeSet<PathBuf>,
    /// The number of times that they were read.
    reads: u64,
    /// The calls that were reported: a subagent that continues another one has its records, too.
    reported: BTreeSet<String>,
}

struct Subagent {
    tail: Tail,
    digest: Digest,
    /// The reading in which it has grown last.
    grown: u64,
}

impl Subagents {
    /// Returns those of the session with this transcript. Of a session that has a history, those that are there are done.
    pub(super) fn beside(transcript: &Path, has_history: bool) -> Self {
        let mut all = Self {
            directory: transcript.with_extension("").join("subagents"),
            known: BTreeMap::new(),
            done: BTreeSet::new(),
            reads: 0,
            reported: BTreeSet::new(),
        };
        if has_history {
            all.done.extend(all.listed());
        }
        all
    }

    /// Takes the calls that have ended since the last call of this function.
    pub(super) fn take_ran(&mut self) -> Vec<Ran> {
        self.find();
        let mut ran = Vec::new();
        self.reads += 1;
        for one in self.known.values_mut() {
            let read = one.tail.read_into(BUDGET, &mut one.digest, &mut 0);
            match read {
                Ok(report) if report.bytes > 0 => one.grown = self.reads,
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "a subagent's transcript cannot be read"),
            }
            ran.extend(one.digest.take_ran());
        }
        if self.reported.len() > REMEMBERED {
            self.reported.clear();
        }
        ran.retain(|one| {
            one.call
                .clone()
                .is_none_or(|call| self.reported.insert(call))
        });
        ran
    }

    /// Looks for new ones.
    fn find(&mut self) {
        for path in self.listed() {
            if self.known.contains_key(&path) || self.done.contains(&path) {
                continue;
            }
            let Ok(tail) = Tail::open(&path) else {
                continue;
            };
            if self.known.len() >= MOST {
                // None that was not read yet.
                let read = self.known.iter().filter(|(_, one)| one.grown > 0);
                let rests = read.min_by_key(|(_, one)| one.grown);
                let rests = rests.map(|(path, _)| path.clone());
                self.done
                    .extend(rests.filter(|path| self.known.remove(path).is_some()));
            }
            let one = Subagent {
                tail,
                digest: Digest::of_subagent(),
                grown: 0,
            };
            self.known.insert(path, one);
        }
    }

    /// Returns the transcripts that are there, but for those of the client's own side processes (of a compaction, or of a suggestion),
    /// which begin with the words of the session.
    fn listed(&self) -> Vec<PathBuf> {
        let listed = fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten();
        let is_agent = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            let id = name.and_then(|name| name.strip_prefix("agent-")?.strip_suffix(".jsonl"));
            id.is_some_and(|id| id.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        };
        listed.map(|entry| entry.path()).filter(is_agent).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(id: &str) -> String {
        let call = serde_json::json!({"type": "assistant", "isSidechain": true, "message": {"id": "m", "model": "x", "content": [
            {"type": "tool_use", "id": id, "name": "Edit", "input": {"file_path": "/p/a.rs"}}]}});
        let result = serde_json::json!({"type": "user", "isSidechain": true, "message": {"content": [
            {"type": "tool_result", "tool_use_id": id, "content": "ok"}]}});
        format!("{call}\n{result}\n")
    }

    fn reported(all: &mut Subagents) -> Vec<String> {
        all.take_ran()
            .into_iter()
            .filter_map(|one| one.call)
            .collect()
    }

    #[test]
    fn the_calls_of_each_subagent_are_reported_once() {
        let project = tempfile::tempdir().unwrap();
        let transcript = project.path().join("s.jsonl");
        let directory = project.path().join("s/subagents");
        let mut all = Subagents::beside(&transcript, false);
        assert!(reported(&mut all).is_empty());
        fs::create_dir_all(&directory).unwrap();
        let file = |name: &str| directory.join(format!("agent-{name}.jsonl"));
        fs::write(file("a1"), lines("1")).unwrap();
        assert_eq!(reported(&mut all), ["1"]);
        fs::write(file("a1"), lines("1") + &lines("2")).unwrap();
        // One that goes on from it, and one of the client's own.
        fs::write(file("b2"), lines("2") + &lines("3")).unwrap();
        fs::write(file("acompact-e1f845"), lines("9")).unwrap();
        assert_eq!(reported(&mut all), ["2", "3"]);
        assert!(reported(&mut all).is_empty());
        // A session that is resumed later has them behind it.
        let mut later = Subagents::beside(&transcript, true);
        assert!(reported(&mut later).is_empty());
        fs::write(file("c3"), lines("5")).unwrap();
        assert_eq!(reported(&mut later), ["5"]);
        assert_eq!(reported(&mut all), ["5"]);
        // No more than so many are held open.
        for number in 0..MOST + 5 {
            fs::write(file(&format!("z{number}")), lines(&format!("z{number}"))).unwrap();
            assert_eq!(reported(&mut all), [format!("z{number}")]);
        }
        assert_eq!((all.known.len(), all.done.len()), (MOST, 8));
        assert!(reported(&mut all).is_empty());
    }
}
