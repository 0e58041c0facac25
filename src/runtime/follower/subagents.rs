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
    /// Those that rest, with the number of their bytes that are no news: they were there before the session was followed, or had rested
    /// the longest when others came. One that grows beyond that goes on.
    done: BTreeMap<PathBuf, u64>,
    /// The number of times that they were read.
    reads: u64,
    /// The calls that were reported: a subagent that continues another one has its records, too.
    reported: BTreeSet<String>,
}

struct Subagent {
    tail: Tail,
    digest: Digest,
    /// The number of its bytes that are no news.
    news_from: u64,
    /// The reading in which it has grown last.
    grown: u64,
}

impl Subagents {
    /// Returns those of the session with this transcript. Of a session that has a history, what they have done so far is no news.
    pub(super) fn beside(transcript: &Path, has_history: bool) -> Self {
        let mut all = Self {
            directory: directory_of(transcript),
            known: BTreeMap::new(),
            done: BTreeMap::new(),
            reads: 0,
            reported: BTreeSet::new(),
        };
        if has_history {
            all.done.extend(all.listed());
        }
        all
    }

    /// Goes on beside the transcript where the client has moved it: what was read before is no news there.
    pub(super) fn move_to(&mut self, transcript: &Path) {
        self.directory = directory_of(transcript);
        let read = self.known.iter();
        let read = read.map(|(path, one)| (path, one.tail.offset()));
        let all = self
            .done
            .iter()
            .map(|(path, bytes)| (path, *bytes))
            .chain(read);
        let there = |(path, bytes): (&PathBuf, u64)| {
            let name = path.file_name()?;
            Some((self.directory.join(name), bytes))
        };
        let there: Vec<_> = all.filter_map(there).collect();
        self.done.extend(there);
    }

    /// Takes the calls that have ended since the last call of this function.
    pub(super) fn take_ran(&mut self) -> Vec<Ran> {
        self.find();
        let mut ran = Vec::new();
        self.reads += 1;
        let mut lost = Vec::new();
        for (path, one) in &mut self.known {
            // No reading goes over the border between history and news.
            let mut more = true;
            while more {
                match one
                    .tail
                    .read_into(BUDGET, &mut one.digest, &mut one.news_from)
                {
                    Ok(report) => {
                        more = report.more;
                        if report.bytes > 0 {
                            one.grown = self.reads;
                        }
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a subagent's transcript cannot be read");
                        lost.push(path.clone());
                        more = false;
                    }
                }
            }
            ran.extend(one.digest.take_ran());
        }
        for path in lost {
            self.known.remove(&path);
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
        for (path, size) in self.listed() {
            let news_from = self.done.get(&path).copied();
            if self.known.contains_key(&path) || news_from.is_some_and(|read| size <= read) {
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
                let rests = rests.and_then(|path| self.known.remove_entry(&path));
                self.done
                    .extend(rests.map(|(path, one)| (path, one.tail.offset())));
            }
            let one = Subagent {
                tail,
                digest: Digest::of_subagent(),
                news_from: news_from.unwrap_or(0),
                grown: 0,
            };
            self.known.insert(path, one);
        }
    }

    /// Returns the transcripts that are there, with their sizes, but for those of the client's own side processes (of a compaction, or of a suggestion),
    /// which begin with the words of the session.
    fn listed(&self) -> Vec<(PathBuf, u64)> {
        let listed = fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten();
        let is_agent = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            let id = name.and_then(|name| name.strip_prefix("agent-")?.strip_suffix(".jsonl"));
            id.is_some_and(|id| id.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        };
        let agents = listed.filter(|entry| is_agent(&entry.path()));
        let sized = agents.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?.len())));
        sized.collect()
    }
}

fn directory_of(transcript: &Path) -> PathBuf {
    transcript.with_extension("").join("subagents")
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
        // One that was there before goes on.
        fs::write(file("a1"), lines("1") + &lines("2") + &lines("6")).unwrap();
        assert_eq!(reported(&mut later), ["6"]);
        assert_eq!(reported(&mut all), ["6"]);
        // No more than so many are held open.
        for number in 0..MOST + 5 {
            fs::write(file(&format!("z{number}")), lines(&format!("z{number}"))).unwrap();
            assert_eq!(reported(&mut all), [format!("z{number}")]);
        }
        assert_eq!((all.known.len(), all.done.len()), (MOST, 8));
        assert!(reported(&mut all).is_empty());
    }

    #[test]
    fn what_a_subagent_does_after_the_transcript_has_moved_is_news() {
        let project = tempfile::tempdir().unwrap();
        let [from, to] = ["a", "b"].map(|name| project.path().join(name));
        fs::create_dir_all(from.join("s/subagents")).unwrap();
        fs::write(from.join("s/subagents/agent-a1.jsonl"), lines("1")).unwrap();
        let mut all = Subagents::beside(&from.join("s.jsonl"), false);
        assert_eq!(reported(&mut all), ["1"]);
        fs::rename(&from, &to).unwrap();
        all.move_to(&to.join("s.jsonl"));
        assert!(reported(&mut all).is_empty());
        let moved = to.join("s/subagents/agent-a1.jsonl");
        fs::write(moved, lines("1") + &lines("2")).unwrap();
        assert_eq!(reported(&mut all), ["2"]);
    }
}
