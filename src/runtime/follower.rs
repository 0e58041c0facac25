//! Follows the transcript, and the recording of an agent that has none, on a thread that may block, and reports their content.

mod subagents;

use std::{fs::File, io::Read as _, path::PathBuf, sync::mpsc as std_mpsc};

use rustix::fs::OFlags;
use tokio::sync::mpsc;

use pitstop_agent::bridge::PutBack;
use pitstop_base::{clean::chain, private_file};
use pitstop_core::{
    app::{
        Event,
        event::{ReadEvent, TranscriptFacts},
    },
    lineage::{IterationId, TokenTotals},
};
use pitstop_handoff::{
    signal,
    strategy::{MAX_COMMANDS, shown_commands},
};
use pitstop_terminal::pane::recording::Flushing;
use pitstop_transcript::{
    SessionId, commands::cast::CastReader, digest::Digest, record::Splitter, tail::Tail,
    usage::Usage,
};

use subagents::Subagents;

/// The number of bytes read before the figures are sent: a large transcript shows its progress.
const BUDGET: u64 = 64 * 1024 * 1024;

/// A command to the follower.
#[derive(Debug)]
pub enum FollowCommand {
    /// Follows this file from now on; up to this many bytes of it are history, whose signals were read before.
    Follow(SessionId, PathBuf, u64),
    /// Takes this prompt of this session, and all behind it, back.
    TakeBack(SessionId, PutBack),
    /// Reads on: the file may have grown.
    Grown,
    /// Reads this recording once it is written: it has a command that has ended in the pane.
    Recorded(IterationId, PathBuf, Flushing),
}

/// Follows until no order can come any more.
pub fn follow(orders: &std_mpsc::Receiver<FollowCommand>, events: &mpsc::Sender<Event>) {
    let mut following: Option<Following> = None;
    let mut recorded: Option<Recorded> = None;
    while let Ok(first) = orders.recv() {
        // Many orders at once are one.
        let mut record = false;
        for order in std::iter::once(first).chain(orders.try_iter()) {
            match order {
                FollowCommand::Follow(session, path, history) => {
                    take_up(&mut following, session, path, history, events);
                }
                FollowCommand::TakeBack(session, prompt) => {
                    if let Some(same) = following.as_mut().filter(|one| one.session == session) {
                        same.put_back = Some(prompt);
                    }
                }
                FollowCommand::Grown => {}
                FollowCommand::Recorded(iteration, path, flushing) => {
                    flushing.wait();
                    record = true;
                    if recorded.as_ref().is_none_or(|one| one.path != path) {
                        recorded = Some(Recorded::new(iteration, path));
                    }
                }
            }
        }
        if let Some(recorded) = recorded.as_mut().filter(|_| record) {
            recorded.read(events);
        }
        if let Some(following) = &mut following {
            following.read(events);
        }
    }
}

fn take_up(
    following: &mut Option<Following>,
    session: SessionId,
    path: PathBuf,
    history: u64,
    events: &mpsc::Sender<Event>,
) {
    if let Some(same) = following
        .as_mut()
        .filter(|one| one.session == session && one.tail.path() == path)
    {
        // A caller that asks again needs everything again.
        same.resend = true;
        return;
    }
    let moved = following.take_if(|one| one.session == session);
    let tail = match Tail::open(path) {
        Ok(tail) => tail,
        Err(error) => {
            *following = None;
            return lost(events, session, &error);
        }
    };
    // The client has moved it with the agent's work place: what was read of it is no news.
    if let Some(mut moved) = moved {
        moved.subagents.move_to(tail.path());
        moved.seen = false;
        moved.read_again(tail);
        *following = Some(moved);
        return;
    }
    *following = Some(Following {
        session,
        subagents: Subagents::beside(tail.path(), history > 0),
        tail,
        digest: Digest::new(MAX_COMMANDS),
        history,
        border: history,
        old_turns: 0,
        skipped: 0,
        seen: false,
        commands: 0,
        resend: false,
        put_back: None,
        rewound: None,
        returned: None,
    });
}

/// A transcript that is followed.
struct Following {
    session: SessionId,
    tail: Tail,
    subagents: Subagents,
    digest: Digest,
    /// The number of its bytes that were there before we began.
    history: u64,
    /// The same, whatever is read once more after a rewind.
    border: u64,
    /// The number of turns up to there.
    old_turns: u64,
    skipped: u64,
    seen: bool,
    /// The number of commands when they were sent last.
    commands: u64,
    /// True if everything must be sent, changed or not.
    resend: bool,
    /// The prompt that the client has put back into the prompt box, until it is taken back.
    put_back: Option<PutBack>,
    /// The first prompt that a rewind has taken back, until it is reported.
    rewound: Option<String>,
    /// The last prompt that counts again though it was taken back, likewise.
    returned: Option<String>,
}

impl Following {
    fn read(&mut self, events: &mpsc::Sender<Event>) {
        loop {
            let read = self
                .tail
                .read_into(BUDGET, &mut self.digest, &mut self.history);
            let report = match read {
                Ok(report) => report,
                Err(error) => {
                    lost(events, self.session, &error);
                    return;
                }
            };
            if report.vanished {
                // The agent names its transcript before it writes it.
                if std::mem::take(&mut self.seen) {
                    let (session, why) = (self.session, "it is not there".to_owned());
                    send(events, ReadEvent::TranscriptLost { session, why });
                }
                return;
            }
            self.seen = true;
            if let Some(PutBack { text, prompts }) = self.put_back.take_if(|_| !report.more) {
                self.digest.branches().take_back(&text, prompts);
            }
            if report.reset {
                self.border = self.history;
            }
            // No reading goes across the border.
            if self.tail.offset() <= self.border {
                self.old_turns = self.tail.scan().turns();
            }
            let branches = self.digest.branches();
            let (rewound, returned) = (branches.take_rewound(), branches.take_returned());
            if (rewound.is_some() || returned.is_some())
                && let Ok(tail) = Tail::open(self.tail.path())
            {
                self.rewound = self.rewound.take().or(rewound);
                self.returned = returned.or(self.returned.take());
                self.read_again(tail);
                continue;
            }
            let changed = report.records > 0 || report.moved || report.reset || self.resend;
            if report.reset {
                self.commands = 0;
            }
            let mut facts = self.facts();
            // They had ended before the main chain went on.
            facts.ran.splice(0..0, self.subagents.take_ran());
            let changed = changed || !facts.ran.is_empty();
            // Not before the facts are gathered: they have everything only while this is asked for.
            self.resend = false;
            if facts.skipped > self.skipped {
                let path = self.tail.path().display().to_string();
                tracing::warn!(
                    path,
                    lines = facts.skipped,
                    "lines of the transcript were skipped"
                );
                self.skipped = facts.skipped;
            }
            if changed {
                let (session, facts) = (self.session, Box::new(facts));
                send(events, ReadEvent::Transcript { session, facts });
            }
            if !report.more {
                return;
            }
        }
    }

    /// Has everything read again from the start; what was read before is no news.
    fn read_again(&mut self, tail: Tail) {
        self.history = self.history.max(self.tail.offset());
        self.tail = tail;
        self.digest.begin_again();
        self.resend = true;
    }

    fn facts(&mut self) -> TranscriptFacts {
        let (said, ran) = (self.digest.take_said(), self.digest.take_ran());
        let total = self.digest.commands().total();
        // Long texts are only made when there is something new.
        let commands =
            (total != self.commands || self.resend).then(|| shown_commands(self.digest.commands()));
        self.commands = total;
        if self.resend {
            self.digest.send_again();
        }
        // While a file is read for the first time only its end shows what the work is, and which prompts were taken back.
        let (work, human) = if self.tail.caught_up() {
            (self.digest.take_work(), self.digest.take_human())
        } else {
            (None, None)
        };
        let prompt = self.digest.branches().newest_prompt().map(str::to_owned);
        let tail = &self.tail;
        let scan = tail.scan();
        let totals = |usage: Usage| TokenTotals {
            input: usage.prompt(),
            output: usage.output,
        };
        TranscriptFacts {
            used: tail.latest().map(Usage::context),
            first_used: scan
                .first()
                .filter(|_| tail.caught_up())
                .map(Usage::context),
            model: scan.model().map(str::to_owned),
            totals: totals(scan.totals()),
            before_compaction: totals(scan.before_compaction()),
            turns: scan.turns(),
            old_turns: Some(self.old_turns),
            compactions: scan.compactions(),
            whole: tail.caught_up(),
            read: tail.offset(),
            prompt,
            rewound: self.rewound.take(),
            returned: self.returned.take(),
            last_prompt: scan.last_prompt().map(str::to_owned),
            handoff: scan.handoff().map(str::to_owned),
            skipped: tail.faults().skipped(),
            signals: said
                .iter()
                .flat_map(|text| signal::parse_signals(text))
                .collect(),
            said: said.into_iter().next_back(),
            todos: self.digest.todos().clone(),
            work: work.map(Box::new),
            human,
            commands,
            ran,
            calls_open: self.digest.calls_open(),
            closing: self.digest.closing().cloned(),
            closings: self.digest.closings(),
            queued: self.digest.queued().to_vec(),
        }
    }
}

/// A recording that is read as it grows.
struct Recorded {
    iteration: IterationId,
    path: PathBuf,
    file: Option<File>,
    splitter: Splitter,
    reader: CastReader,
    commands: u64,
}

impl Recorded {
    fn new(iteration: IterationId, path: PathBuf) -> Self {
        let file = private_file::open(&path, OFlags::RDONLY)
            .inspect_err(|error| tracing::warn!(%error, "the recording cannot be read"))
            .ok();
        Self {
            iteration,
            path,
            file,
            splitter: Splitter::default(),
            reader: CastReader::new(MAX_COMMANDS),
            commands: 0,
        }
    }

    fn read(&mut self, events: &mpsc::Sender<Event>) {
        let Some(file) = &mut self.file else { return };
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    tracing::warn!(%error, "the recording cannot be read any more");
                    self.file = None;
                    return;
                }
            };
            let reader = &mut self.reader;
            self.splitter
                .push(&buffer[..count], |line| reader.take_line(line));
        }
        let log = self.reader.log();
        if log.total() != self.commands {
            self.commands = log.total();
            let commands = shown_commands(log);
            send(events, ReadEvent::Recorded(self.iteration, commands));
        }
    }
}

fn lost(events: &mpsc::Sender<Event>, session: SessionId, error: &dyn std::error::Error) {
    send(
        events,
        ReadEvent::TranscriptLost {
            session,
            why: chain(error),
        },
    );
}

fn send(events: &mpsc::Sender<Event>, event: ReadEvent) {
    // The loop is gone: this thread will end as well.
    let _ = events.blocking_send(Event::Read(event));
}

#[cfg(test)]
mod tests {
    use pitstop_transcript::human::HumanWords;

    use super::*;

    #[test]
    fn one_who_asks_again_gets_everything_again_whatever_was_new() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.jsonl");
        let session: SessionId = "0deae788-ee30-4b6b-b3a0-c1fabacd2974".parse().unwrap();
        let line = r#"{"type":"user","origin":{"kind":"human"},"uuid":"u","timestamp":"2026-11-25T10:00:00Z","message":{"content":"Never push."}}"#;
        std::fs::write(&path, format!("{line}\n")).unwrap();
        let (events, mut received) = mpsc::channel(8);
        let mut following = None;
        for number in 0..4 {
            if number == 2 {
                std::fs::write(&path, format!("{line}\n{line}\n")).unwrap();
            }
            take_up(&mut following, session, path.clone(), 0, &events);
            following.as_mut().unwrap().read(&events);
            let Some(Event::Read(ReadEvent::Transcript { facts, .. })) = received.blocking_recv()
            else {
                panic!("no facts");
            };
            assert!(facts.human.is_some() && facts.work.is_some(), "{number}");
            assert_eq!(facts.commands.is_some(), number > 0, "{number}");
            following.as_mut().unwrap().read(&events);
            assert!(received.try_recv().is_err(), "nothing new");
        }
    }

    /// Returns a prompt, or an answer, that follows a record.
    fn record((name, parent): (&str, &str), text: &str) -> String {
        let kind = if name.starts_with('a') {
            "assistant"
        } else {
            "user"
        };
        serde_json::json!({"parentUuid": parent, "type": kind, "origin": {"kind": "human"}, "timestamp": "2026-11-25T10:00:00Z",
            "message": {"model": "m", "content": [{"type": "text", "text": text}]}, "uuid": name})
        .to_string()
            + "\n"
    }

    #[test]
    fn what_a_rewind_takes_back_is_not_said_whether_it_was_followed_or_is_read_later() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.jsonl");
        let session: SessionId = "0deae788-ee30-4b6b-b3a0-c1fabacd2974".parse().unwrap();
        let stands = [
            record(("u1", "s"), "Never push."),
            record(("a1", "u1"), "yes"),
            record(("u2", "a1"), "Always use redis."),
            record(("a2", "u2"), "DECISION: use redis"),
        ];
        let behind = [
            record(("u3", "a1"), "Always write docs."),
            record(("a3", "u3"), "DECISION: no cache"),
        ];
        let before = stands.concat().len() as u64;
        let all = [stands.concat(), behind.concat()].concat();
        // By the process that followed it, or by one that finds so much read by the process before.
        for (followed, history) in [(true, 0), (false, all.len() as u64), (false, before)] {
            let (events, mut received) = mpsc::channel(8);
            let mut following = None;
            std::fs::write(&path, stands.concat()).unwrap();
            if followed {
                take_up(&mut following, session, path.clone(), 0, &events);
                following.as_mut().unwrap().read(&events);
            }
            std::fs::write(&path, &all).unwrap();
            take_up(&mut following, session, path.clone(), history, &events);
            following.as_mut().unwrap().read(&events);
            let mut last = None;
            while let Ok(Event::Read(ReadEvent::Transcript { facts, .. })) = received.try_recv() {
                let words = facts.human.as_ref().filter(|_| !followed);
                let rewound =
                    |words: &HumanWords| words.prompts.iter().any(|one| one.text.contains("redis"));
                assert!(!words.is_some_and(rewound), "{history}");
                last = Some(facts);
            }
            let facts = last.expect("facts");
            assert_eq!(facts.rewound.as_deref(), Some("u2"));
            assert_eq!(facts.prompt.as_deref(), Some("u3"));
            let prompts = facts.human.expect("words").prompts;
            let prompts: Vec<_> = prompts.iter().map(|said| said.text.as_str()).collect();
            assert_eq!(prompts, ["Never push.", "Always write docs."], "{history}");
            assert_eq!(
                facts.signals.len(),
                usize::from(history < all.len() as u64),
                "{:?}",
                facts.signals
            );
            assert_eq!(facts.turns, 3);
            let old_turns = [(0, 0), (before, 2), (all.len() as u64, 3)];
            assert!(old_turns.contains(&(history, facts.old_turns.unwrap())));
            assert!(facts.whole);
        }
    }

    #[test]
    fn a_transcript_that_moves_with_the_work_place_is_news_behind_what_was_read() {
        let directory = tempfile::tempdir().unwrap();
        let places = ["a.jsonl", "b.jsonl"].map(|name| directory.path().join(name));
        let session: SessionId = "0deae788-ee30-4b6b-b3a0-c1fabacd2974".parse().unwrap();
        let before = record(("u1", "s"), "Begin") + &record(("a1", "u1"), "DECISION: use redis");
        let behind = record(("a2", "a1"), "TODO: write docs");
        // The one that begins here, and one that was resumed with a turn that is older; moved away and back.
        for (resumed, grows_first) in [(0, false), (0, true), (before.len() as u64, false)] {
            std::fs::write(&places[0], &before).unwrap();
            let (events, mut received) = mpsc::channel(8);
            let mut following = None;
            take_up(&mut following, session, places[0].clone(), resumed, &events);
            following.as_mut().unwrap().read(&events);
            if grows_first {
                std::fs::write(&places[0], format!("{before}{behind}")).unwrap();
            }
            std::fs::rename(&places[0], &places[1]).unwrap();
            let mut signals = Vec::new();
            for to in [1, 0] {
                if to == 0 {
                    std::fs::rename(&places[1], &places[0]).unwrap();
                }
                take_up(&mut following, session, places[to].clone(), 0, &events);
                following.as_mut().unwrap().read(&events);
                std::fs::write(&places[to], format!("{before}{behind}")).unwrap();
                following.as_mut().unwrap().read(&events);
            }
            let mut last = None;
            while let Ok(Event::Read(read)) = received.try_recv() {
                let ReadEvent::Transcript { facts, .. } = read else {
                    panic!("{read:?}");
                };
                signals.extend(facts.signals.clone());
                last = Some(facts);
            }
            let last = last.expect("facts");
            let news = usize::from(resumed == 0) + 1;
            assert_eq!(signals.len(), news, "{resumed} {grows_first}: {signals:?}");
            assert_eq!(last.human.map(|words| words.prompts.len()), Some(1));
            assert_eq!(
                (last.turns, last.old_turns),
                (1, Some(u64::from(resumed > 0)))
            );
        }
    }

    #[test]
    fn a_prompt_that_the_client_puts_back_is_taken_back_before_the_next_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.jsonl");
        let session: SessionId = "0deae788-ee30-4b6b-b3a0-c1fabacd2974".parse().unwrap();
        let lines = [
            record(("u1", "s"), "Never push."),
            record(("a1", "u1"), "yes"),
            record(("u2", "a1"), "Always use redis."),
            record(("a2", "u2"), "DECISION: use redis"),
        ];
        std::fs::write(&path, lines.concat()).unwrap();
        let (commands, orders) = std_mpsc::channel();
        let (events, mut received) = mpsc::channel(8);
        let text = "Always use redis.".to_owned();
        let put_back = PutBack { text, prompts: 1 };
        for command in [
            FollowCommand::Follow(session, path, 0),
            FollowCommand::TakeBack(session, put_back),
        ] {
            commands.send(command).unwrap();
        }
        drop(commands);
        follow(&orders, &events);
        let Some(Event::Read(ReadEvent::Transcript { facts, .. })) = received.blocking_recv()
        else {
            panic!("no facts");
        };
        assert_eq!(facts.rewound.as_deref(), Some("u2"));
        assert_eq!(facts.prompt.as_deref(), Some("u1"));
        let prompts = facts.human.expect("words").prompts;
        let prompts: Vec<_> = prompts.iter().map(|said| said.text.as_str()).collect();
        assert_eq!(prompts, ["Never push."]);
    }
}
