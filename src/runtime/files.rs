//! Everything that the loop itself has to write to disk or read from it: the scratchpad with its versions, the unsent prompt,
//! the settings of the next agent, the configuration, the task.
//!
//! ```text
//!   loop ── FileRequest ──► thread "files", one after the other ─┬─ Event ──────► loop
//!                                                                └─ StartReady ─► loop
//! ```
//!
//! A disk may take seconds for a sync, and the keys must not wait for it. Requests are carried out in the order in which they were
//! given, and the result of each is an event: an action that needs something on disk first waits for that event.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, mpsc as std_mpsc},
    time::Duration,
};

use tokio::sync::{mpsc, watch};

use pitstop_agent::{
    AgentKind,
    bridge::{self, Absence, ToolsBy},
    claude,
};
use pitstop_base::{clean::chain, format};
use pitstop_core::{
    app::{
        Event,
        effect::StartAgent,
        event::{MadeAgain, ReadEvent},
    },
    config::{
        error::Fault,
        load::{
            self, Flags,
            paths::{Paths, project_hash},
        },
    },
    lineage::{IterationId, ProcessStamp},
};
use pitstop_handoff::scratchpad::{
    self,
    versions::{Version, Versions},
};
use pitstop_store::{PrivateDir, SCRATCHPAD, VersionFile, agent_registry};
use pitstop_terminal::pane::{PaneSpec, recording::Recording};

use super::{
    agent::{AgentPlan, takes_servers},
    task,
    worker::Worker,
};

/// The file name of the unsent prompt in the project's directory below the state directory.
const DRAFT: &str = "draft.md";

/// The time that outstanding requests may take when we leave.
pub(super) const LEAVING: Duration = Duration::from_secs(5);

/// A request to the thread.
#[derive(Debug)]
pub(super) enum FileRequest {
    /// Reads the scratchpad; `ReadEvent::Scratchpad` is the answer.
    ReadScratchpad,
    /// Writes the scratchpad, unless it is neither `base` nor what was written last.
    WriteScratchpad {
        /// The text that the core knew to be on disk.
        base: String,
        /// The text to write.
        text: String,
    },
    /// Opens the versions of the scratchpad; `ReadEvent::Versions` is the answer, once.
    OpenVersions,
    /// Keeps a version of the scratchpad.
    KeepVersion {
        /// The version.
        version: Version,
        /// True if it was numbered without those that are on disk.
        renumber: bool,
    },
    /// Reads the unsent prompt; `ReadEvent::Draft` is the answer if there is one.
    ReadDraft,
    /// Keeps the unsent prompt, or removes it; `ReadEvent::DraftKept` is the answer.
    KeepDraft(Option<String>),
    /// Reads the task of the run; `ReadEvent::Task` is the answer.
    ReadTask(PathBuf),
    /// Reads the configuration; `ReadEvent::Config` is the answer, or the first fault in it.
    ReadConfig,
    /// Writes the rest of a recording.
    EndRecording(Recording),
    /// Makes the files that the start of an agent needs; [`StartReady`] is the answer.
    Start(Start),
    /// Makes the files again whose places were removed.
    MakeAgain {
        /// The plan for starting agents.
        plan: Arc<AgentPlan>,
        /// The places that were removed.
        made: MadeAgain,
        /// The agent that runs, if one does.
        process: Option<ProcessStamp>,
        /// The iteration whose settings are made.
        iteration: IterationId,
        /// True if its client's own compaction is off.
        no_compaction: bool,
        /// The way in which its agent has its tools.
        tools: ToolsBy,
        /// True if its client loads our mods, which it does again once they are there.
        mods: bool,
    },
}

/// The start of an agent.
#[derive(Debug)]
pub(super) struct Start {
    /// The plan for starting agents.
    pub plan: Arc<AgentPlan>,
    /// The agent to start.
    pub agent: StartAgent,
    /// The directory in which the agent before it worked, if that is known.
    pub place: Option<PathBuf>,
    /// True if the client's own compaction is off.
    pub no_compaction: bool,
    /// The reason for starting it without the bridge, if so.
    pub without_bridge: Option<Absence>,
    /// The client's version, if it is known yet.
    pub version: Option<String>,
    /// The way in which it should have its tools, if that is possible.
    pub tools: ToolsBy,
}

/// The answer to a request to start an agent: its files are on disk.
#[derive(Debug)]
pub(super) struct StartReady {
    /// The agent to start.
    pub start: StartAgent,
    /// The length of the session's transcript before the start, in bytes.
    pub before: u64,
    /// The program to run, in a pane of any size, or the reason why it cannot be run.
    pub spec: io::Result<PaneSpec>,
    /// The reason for running without the bridge, if so.
    pub without_bridge: Option<Absence>,
    /// The way in which it has its tools.
    pub tools: ToolsBy,
}

/// The locations of files, the same for the whole run.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// The scratchpad.
    pub scratchpad: PathBuf,
    /// The project.
    pub project: PathBuf,
    /// The state directory and the configuration.
    pub paths: Paths,
    /// The command line's settings for the configuration.
    pub flags: Flags,
}

/// The loop's handle of the thread.
pub(super) struct Files {
    worker: Worker<FileRequest>,
    sent: u64,
    done: watch::Receiver<u64>,
    /// True if the core knows the versions of the scratchpad that are on disk.
    pub versions_known: bool,
}

impl Files {
    /// Creates the handle; the thread starts with the first request. Answers go to `events`, and those to [`FileRequest::Start`] to
    /// `starts`.
    pub fn new(
        places: Places,
        events: mpsc::Sender<Event>,
        starts: mpsc::Sender<StartReady>,
    ) -> Self {
        let (tell_done, done) = watch::channel(0);
        let work = move |requests: &std_mpsc::Receiver<FileRequest>,
                         events: &mpsc::Sender<Event>| {
            let mut writer = Writer::new(places.clone(), events.clone());
            for request in requests {
                match request {
                    // The loop is gone, then.
                    FileRequest::Start(start) => drop(starts.blocking_send(start.prepare())),
                    request => writer.carry_out(request),
                }
                tell_done.send_modify(|done| *done += 1);
            }
        };
        Self {
            worker: Worker::new("files", work, events),
            sent: 0,
            done,
            versions_known: false,
        }
    }

    /// Sends a request; returns false if there is no thread to take it.
    #[must_use]
    pub fn send(&mut self, request: FileRequest) -> bool {
        let sent = self.worker.send(request);
        self.sent += u64::from(sent);
        sent
    }

    /// Reports whether every request was carried out, and its answer is on its way.
    pub fn is_idle(&self) -> bool {
        *self.done.borrow() >= self.sent
    }

    /// Waits until another request was carried out.
    pub async fn progress(&mut self) {
        if self.done.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until all requests that were given by now are carried out.
    pub fn caught_up(&self) -> impl Future<Output = ()> + Send + use<> {
        let (sent, mut done) = (self.sent, self.done.clone());
        async move {
            // A thread that has gone carries nothing out.
            let _ = done.wait_for(|done| *done >= sent).await;
        }
    }
}

impl Start {
    fn prepare(self) -> StartReady {
        let Self {
            plan,
            agent: start,
            place,
            no_compaction,
            without_bridge,
            version,
            tools,
        } = self;
        let version = version.or_else(|| {
            let is_client = plan.kind == AgentKind::Claude;
            is_client.then(|| plan.ask_version()).flatten()
        });
        let kept_out = || {
            if let Some(whose) = plan.client_settings(no_compaction).without_hooks() {
                return Some(Absence::HooksOff(whose));
            }
            bridge::too_old(version.as_deref())
        };
        // An agent can do without it.
        let mods = match without_bridge.or_else(kept_out) {
            Some(absence) => Err(absence),
            None => plan
                .write_mods(start.iteration, tools == ToolsBy::Mod)
                .map_err(|error| Absence::NotWritten(chain(&error))),
        };
        let tools = match tools {
            ToolsBy::Mod if mods.is_ok() => ToolsBy::Mod,
            ToolsBy::Mod | ToolsBy::Server if takes_servers() => ToolsBy::Server,
            _ => ToolsBy::None,
        };
        StartReady {
            // Measured before any process can add to it.
            before: plan.transcript_length(&start),
            spec: plan.spec(
                &start,
                place.as_deref(),
                no_compaction,
                mods.as_ref().ok().cloned(),
                tools,
                claude::reports_choices(version.as_deref()),
            ),
            without_bridge: mods.err(),
            tools,
            start,
        }
    }
}

/// The state of the thread.
struct Writer {
    places: Places,
    events: mpsc::Sender<Event>,
    /// The file of the scratchpad's versions, once it is open, and the versions in it.
    versions: Option<(VersionFile, Versions)>,
    /// The number of the newest version that was on disk when they were opened.
    newest: u64,
    /// The text that was written into the scratchpad last, while nothing else was seen there. A request may have been made before
    /// the core knew that the one before it is carried out: its `base` is older then.
    written: Option<String>,
}

impl Writer {
    const fn new(places: Places, events: mpsc::Sender<Event>) -> Self {
        Self {
            places,
            events,
            versions: None,
            newest: 0,
            written: None,
        }
    }

    fn carry_out(&mut self, request: FileRequest) {
        match request {
            FileRequest::ReadScratchpad => self.read_scratchpad(),
            FileRequest::WriteScratchpad { base, text } => self.write_scratchpad(&base, text),
            FileRequest::OpenVersions => self.open_versions(),
            FileRequest::KeepVersion { version, renumber } => self.keep_version(version, renumber),
            FileRequest::ReadDraft => self.read_draft(),
            FileRequest::KeepDraft(text) => self.keep_draft(text),
            FileRequest::ReadTask(path) => {
                self.send(Event::Read(ReadEvent::Task(task::read(&path))));
            }
            FileRequest::ReadConfig => self.read_config(),
            FileRequest::EndRecording(recording) => drop(recording),
            FileRequest::MakeAgain {
                plan,
                made,
                process,
                iteration,
                no_compaction,
                tools,
                mods,
            } => {
                if made.lock {
                    self.make_lock_again(&plan, process.as_ref());
                }
                if made.files
                    && let Err(error) = plan.write_settings(iteration, no_compaction, tools, false)
                {
                    tracing::warn!(%error, "the session's settings are not there again");
                }
                if made.files
                    && mods
                    && let Err(error) = plan.write_mods(iteration, tools == ToolsBy::Mod)
                {
                    tracing::warn!(%error, "the session's mods are not there again");
                }
            }
            FileRequest::Start(_) => {}
        }
    }

    fn send(&self, event: Event) {
        // The loop is gone, then.
        let _ = self.events.blocking_send(event);
    }

    /// Opens the scratchpad's directory: `.pitstop`, or its replacement. A project that is gone is not made again.
    fn project_dir(&self) -> Result<PrivateDir, String> {
        let directory = self.places.scratchpad.parent();
        PrivateDir::open_again(directory.unwrap_or(&self.places.project))
            .map_err(|error| chain(&error))
    }

    /// Opens the project's directory below the state directory: it has the versions of the scratchpad and the unsent prompt.
    fn kept_aside(&self) -> Result<PrivateDir, String> {
        let hash = project_hash(&self.places.project).map_err(|error| chain(&error))?;
        PrivateDir::open_beside(self.places.paths.state_dir(), &hash).map_err(|error| chain(&error))
    }

    fn scratchpad_on_disk(&self) -> Result<Option<String>, String> {
        let bytes = self
            .project_dir()?
            .read(SCRATCHPAD, scratchpad::MAX_BYTES)
            .map_err(|error| chain(&error))?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Forgets the text written last if the scratchpad has another one: the core must see that before it is overwritten.
    fn seen(&mut self, disk: Option<&str>) {
        if self.written.as_deref() != disk {
            self.written = None;
        }
    }

    fn read_scratchpad(&mut self) {
        match self.scratchpad_on_disk() {
            Ok(text) => {
                self.seen(text.as_deref());
                self.send(Event::Read(ReadEvent::Scratchpad(text)));
            }
            Err(error) => {
                tracing::warn!(error, "the scratchpad cannot be read");
                let what = format!("the scratchpad cannot be read: {error}");
                self.send(Event::EffectFailed { what });
            }
        }
    }

    /// Writes the scratchpad, unless another program wrote to it meanwhile.
    fn write_scratchpad(&mut self, base: &str, text: String) {
        let written = self.project_dir().and_then(|directory| {
            // A larger one could not be read again, and would end the next start.
            if text.len() > scratchpad::MAX_BYTES {
                let most = format::bytes(scratchpad::MAX_BYTES as u64);
                return Err(format!("it is larger than {most}"));
            }
            let disk = self.scratchpad_on_disk()?;
            let there = disk.as_deref().unwrap_or_default();
            if there != base && self.written.as_deref() != Some(there) {
                return Ok(Err(disk));
            }
            directory
                .write_private(SCRATCHPAD, text.as_bytes())
                .map_err(|error| chain(&error))?;
            Ok(Ok(text))
        });
        let answer = match written {
            Ok(Ok(text)) => {
                self.written = Some(text.clone());
                ReadEvent::ScratchpadSaved(text)
            }
            Ok(Err(disk)) => {
                self.seen(disk.as_deref());
                ReadEvent::Scratchpad(disk)
            }
            Err(error) => {
                tracing::warn!(error, "the scratchpad cannot be written");
                ReadEvent::ScratchpadNotSaved(error)
            }
        };
        self.send(Event::Read(answer));
    }

    /// Opens the versions of the scratchpad, if they are not open.
    fn open_versions(&mut self) {
        if self.versions.is_some() {
            return;
        }
        let opened = self
            .kept_aside()
            .and_then(|directory| VersionFile::open(directory).map_err(|error| chain(&error)));
        let answer = match opened {
            Ok((file, versions)) => {
                self.newest = versions.last().map_or(0, |last| last.number);
                self.versions = Some((file, versions.clone()));
                ReadEvent::Versions(versions)
            }
            Err(error) => {
                tracing::warn!(error, "the versions of the scratchpad cannot be opened");
                ReadEvent::VersionsUnreadable
            }
        };
        self.send(Event::Read(answer));
    }

    fn keep_version(&mut self, mut version: Version, renumber: bool) {
        self.open_versions();
        let Some((file, versions)) = &mut self.versions else {
            return;
        };
        if renumber {
            version.number += self.newest;
        }
        versions.add(version.clone());
        if let Err(error) = file.add(&version, versions) {
            let error = chain(&error);
            tracing::warn!(error, "a version of the scratchpad is not kept");
            // The scratchpad itself has the text, unless it cannot be written either.
            if version.unsaved_over.is_some() {
                let what = format!(
                    "the scratchpad is saved nowhere: {error}; copy what you need before you leave"
                );
                self.send(Event::EffectFailed { what });
            }
        }
    }

    fn keep_draft(&self, text: Option<String>) {
        let kept = self.kept_aside().and_then(|directory| {
            let done = match &text {
                Some(text) => directory.write_private(DRAFT, text.as_bytes()),
                None => directory.remove(DRAFT),
            };
            done.map_err(|error| chain(&error))
        });
        if let Err(error) = kept {
            tracing::warn!(error, "the unsent prompt is not kept on disk");
        }
        self.send(Event::Read(ReadEvent::DraftKept(text)));
    }

    /// Reads an unsent prompt that was not put back.
    fn read_draft(&self) {
        let read = self.kept_aside().and_then(|directory| {
            let bytes = directory.read(DRAFT, scratchpad::MAX_BYTES);
            bytes.map_err(|error| chain(&error))
        });
        match read {
            Ok(Some(bytes)) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                self.send(Event::Read(ReadEvent::Draft(text)));
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(error, "no unsent prompt can be looked for"),
        }
    }

    fn read_config(&self) {
        let warnings: Vec<String> = match load::load(&self.places.paths, &self.places.flags) {
            Ok(loaded) => {
                self.send(Event::Read(ReadEvent::Config(Box::new(loaded.config))));
                loaded.warnings.iter().map(Fault::line).collect()
            }
            Err(errors) => {
                let first = errors.faults.first().map_or_else(String::new, Fault::line);
                vec![format!(
                    "the configuration is not taken, the old one stays: {first}"
                )]
            }
        };
        for what in warnings {
            self.send(Event::EffectFailed { what });
        }
    }

    /// Makes the files beside the lock again: if that fails, the next reboot makes them or reports the reason.
    fn make_lock_again(&mut self, plan: &AgentPlan, process: Option<&ProcessStamp>) {
        if let Some(process) = process
            && let Err(error) = agent_registry::register(&plan.registry, process)
        {
            tracing::warn!(%error, "the agent is not registered");
        }
        let file = self
            .kept_aside()
            .and_then(|directory| VersionFile::open(directory).map_err(|error| chain(&error)));
        if let (Some((versions, _)), Ok((file, _))) = (&mut self.versions, file) {
            *versions = file;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bench {
        _home: tempfile::TempDir,
        scratchpad: PathBuf,
        writer: Writer,
        events: mpsc::Receiver<Event>,
    }

    fn bench() -> Bench {
        let home = tempfile::tempdir().unwrap();
        let variable = |_: &str| None;
        let project = home.path().join("project");
        std::fs::create_dir(&project).unwrap();
        let paths = Paths::find(
            &load::paths::Surroundings {
                variable: &variable,
                home: &|| Some(home.path().to_owned()),
                uid: 1,
            },
            &project,
        );
        let scratchpad = project.join(".pitstop").join(SCRATCHPAD);
        let (sender, events) = mpsc::channel(16);
        let places = Places {
            scratchpad: scratchpad.clone(),
            project,
            paths: paths.unwrap(),
            flags: Flags::default(),
        };
        Bench {
            _home: home,
            scratchpad,
            writer: Writer::new(places, sender),
            events,
        }
    }

    impl Bench {
        fn write(&mut self, base: &str, text: &str) -> ReadEvent {
            let (base, text) = (base.to_owned(), text.to_owned());
            self.writer
                .carry_out(FileRequest::WriteScratchpad { base, text });
            self.answer()
        }

        fn answer(&mut self) -> ReadEvent {
            match self.events.try_recv() {
                Ok(Event::Read(answer)) => answer,
                other => panic!("no answer: {other:?}"),
            }
        }

        fn on_disk(&self) -> String {
            std::fs::read_to_string(&self.scratchpad).unwrap()
        }
    }

    fn saved(text: &str) -> ReadEvent {
        ReadEvent::ScratchpadSaved(text.to_owned())
    }

    #[test]
    fn an_order_given_before_the_last_one_was_answered_is_carried_out_all_the_same() {
        let mut bench = bench();
        assert_eq!(bench.write("", "one"), saved("one"));
        assert_eq!(bench.write("", "two"), saved("two"));
        // Reading what we wrote ourselves changes nothing.
        bench.writer.carry_out(FileRequest::ReadScratchpad);
        assert_eq!(
            bench.answer(),
            ReadEvent::Scratchpad(Some("two".to_owned()))
        );
        assert_eq!(bench.write("one", "three"), saved("three"));
        assert_eq!(bench.on_disk(), "three");
    }

    #[test]
    fn what_another_has_written_is_shown_and_not_written_over() {
        let mut bench = bench();
        assert_eq!(bench.write("", "one"), saved("one"));
        std::fs::write(&bench.scratchpad, "theirs").unwrap();
        let theirs = ReadEvent::Scratchpad(Some("theirs".to_owned()));
        for base in ["", "one"] {
            assert_eq!(bench.write(base, "two"), theirs);
        }
        // What was ours before is theirs once they have put it back.
        std::fs::write(&bench.scratchpad, "one").unwrap();
        let one = ReadEvent::Scratchpad(Some("one".to_owned()));
        assert_eq!(bench.write("theirs", "two"), one);
        assert_eq!(bench.write("one", "two"), saved("two"));
    }

    #[test]
    fn versions_from_before_those_on_disk_were_known_are_counted_behind_them() {
        let mut bench = bench();
        let version = |number| Version {
            number,
            at: chrono::DateTime::UNIX_EPOCH,
            by: scratchpad::versions::Author::Human,
            text: format!("text {number}"),
            human: Vec::new(),
            unsaved_over: None,
        };
        let keep = |number, renumber| FileRequest::KeepVersion {
            version: version(number),
            renumber,
        };
        let numbers = |answer| match answer {
            ReadEvent::Versions(versions) => {
                versions.iter().map(|one| one.number).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
        bench.writer.carry_out(keep(1, true));
        bench.writer.carry_out(keep(2, true));
        assert!(numbers(bench.answer()).is_empty());
        bench.writer.versions = None;
        bench.writer.carry_out(keep(1, true));
        bench.writer.carry_out(keep(2, true));
        bench.writer.carry_out(keep(5, false));
        assert_eq!(numbers(bench.answer()), [1, 2]);
        bench.writer.versions = None;
        bench.writer.carry_out(FileRequest::OpenVersions);
        assert_eq!(numbers(bench.answer()), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_scratchpad_that_could_not_be_read_again_is_not_written() {
        const MOST: usize = scratchpad::MAX_BYTES;
        let mut bench = bench();
        assert_eq!(bench.write("", "one"), saved("one"));
        let why = ReadEvent::ScratchpadNotSaved("it is larger than 1 MB".to_owned());
        for text in [
            "a".repeat(MOST + 1),
            "é".repeat(MOST / 2 + 1),
            "line\n".repeat(MOST / 5 + 1),
        ] {
            assert_eq!(bench.write("one", &text), why);
            assert_eq!(bench.on_disk(), "one");
        }
        let most = "a".repeat(MOST);
        assert_eq!(bench.write("one", &most), saved(&most));
        bench.writer.carry_out(FileRequest::ReadScratchpad);
        assert_eq!(bench.answer(), ReadEvent::Scratchpad(Some(most)));
    }

    #[test]
    fn settings_that_a_reload_ignores_are_named() {
        for (text, ignored) in [
            ("[recording]\nenabled = true\n", "recording.enabled"),
            ("[notify]\ncommand = \"true\"\n", "notify.command"),
            ("[reboot]\nmode = \"auto\"\n", "reboot.mode"),
        ] {
            let mut bench = bench();
            let directory = bench.scratchpad.parent().expect("a directory");
            std::fs::create_dir_all(directory).expect("made");
            std::fs::write(directory.join("config.toml"), text).expect("written");
            bench.writer.carry_out(FileRequest::ReadConfig);
            assert!(matches!(bench.answer(), ReadEvent::Config(_)));
            match bench.events.try_recv() {
                Ok(Event::EffectFailed { what }) => {
                    assert!(what.contains(&format!("`{ignored}` is ignored")), "{what}");
                }
                other => panic!("{ignored}: {other:?}"),
            }
            assert!(bench.events.try_recv().is_err(), "{ignored}");
        }
        let mut bench = bench();
        bench.writer.carry_out(FileRequest::ReadConfig);
        assert!(matches!(bench.answer(), ReadEvent::Config(_)));
        assert!(bench.events.try_recv().is_err(), "nothing is ignored");
    }
}
