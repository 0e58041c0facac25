//! The start of an agent, and what lies ready for it.

use std::{sync::Arc, time::Duration};

use crate::runtime::{
    Deadline, Shell,
    files::{FileRequest, Start, StartReady},
    hosted::{Starting, new_screen},
    listen::Listening,
    store_writer::Job,
};
use pitstop_agent::{AgentKind, claude::registered::record_of};
use pitstop_base::{clean::chain, process};
use pitstop_core::{
    app::{
        self, Event,
        effect::StartAgent,
        event::{BridgeEvent, MadeAgain, PaneEvent},
        layout,
    },
    guard::pane_text::PaneText,
    lineage::{IterationId, ProcessStamp},
};
use pitstop_terminal::pane::pty;

use super::{NO_THREAD, new_ids};

/// The time after which a client has written its own record of its process: one that is new here has made the directory then.
const RECORD_WRITTEN: Duration = Duration::from_secs(10);

impl Shell {
    /// Clears the pane and has an agent started in it, once the files that it needs are written.
    pub(super) fn start(&mut self, start: StartAgent) {
        let iteration = start.iteration;
        let size = layout::layout(self.core.view()).pane_size();
        self.pane.resizing.forget();
        self.pane.screen = new_screen(size, &self.core.view().config.ui);
        self.pane.transcript = None;
        self.colour_screen();
        self.pane.watch_for = None;
        self.pane.listening = Listening::default();
        self.pane.shown = PaneText::default();
        self.deadlines.remove(&Deadline::Estimate);
        let services = &mut self.services;
        let files = [services.transcript.take(), services.client_record.take()];
        for path in files.into_iter().flatten() {
            services.watcher.forget_beside(&path);
        }
        self.pane.starting = Some(Starting {
            iteration,
            typed: Vec::new(),
        });
        let request = FileRequest::Start(Start {
            plan: Arc::clone(&self.agent),
            agent: start,
            place: self.services.place.clone(),
            no_compaction: self.core.view().session.agent.holds_compaction,
            without_bridge: app::bridge::absence(
                self.core.view(),
                self.agent.runs_mods(),
                &self.agent.user_args,
            ),
            version: self.core.view().session.agent.version.clone(),
            tools: app::bridge::tools_by(self.core.view(), self.agent.kind, &self.agent.user_args),
        });
        if !self.files.send(request) {
            self.pane.starting = None;
            let why = format!("the agent cannot be started: {NO_THREAD}");
            self.post(Event::Pane(PaneEvent::SpawnFailed { iteration, why }));
        }
    }

    /// Starts an agent whose files are on disk, unless it was given up meanwhile. The process must be this thread's own child:
    /// it is notified of our death when the thread that has started it ends.
    pub(in crate::runtime) fn start_ready(&mut self, ready: StartReady) {
        let StartReady {
            start,
            before,
            spec,
            without_bridge,
            tools,
        } = ready;
        let (iteration, session) = (start.iteration, start.session);
        let Some(Starting { typed, .. }) = self
            .pane
            .starting
            .take_if(|starting| starting.iteration == iteration)
        else {
            return;
        };
        let read = app::carried::read_before(&self.core.view().draft, session);
        self.services.begun = Some((session, read.map_or(before, |read| read.min(before))));
        let size = self.pane.screen.size();
        self.calls.mailbox.agent_starts();
        let spawned = spec.and_then(|spec| {
            pty::spawn(spec, size, iteration.get(), &self.pane.messages)
                .map_err(|error| std::io::Error::other(chain(&error)))
        });
        let pty = match spawned {
            Ok(pty) => pty,
            Err(error) => {
                let why = format!("the agent cannot be started: {}", chain(&error));
                self.post(Event::Pane(PaneEvent::SpawnFailed { iteration, why }));
                return;
            }
        };
        // Taken before the number can be another process's: it is ours until we release it.
        let process = process::stamp(pty.pid()).unwrap_or_else(|| ProcessStamp {
            pid: pty.pid(),
            start_time: String::new(),
        });
        self.pane.pty = Some(pty);
        if !typed.is_empty() {
            self.write_pane(typed);
        }
        self.calls.mailbox.owned_by(process.pid);
        self.start_recording(iteration, self.pane.screen.size());
        self.keep(Job::Agent(iteration, process.clone()));
        // A guess in case hooks are switched off; the first hook reports the true path.
        if let Some(path) = self.agent.transcript_of(session) {
            self.follow(session, path.to_string_lossy().into_owned());
        }
        if let (AgentKind::Claude, Some(config)) = (self.agent.kind, &self.agent.config_dir) {
            self.services.client_record = Some(record_of(process.pid, config));
            self.watch_client_record();
            self.set_deadline(Deadline::ClientRecord, RECORD_WRITTEN);
        }
        self.post(Event::Bridge(BridgeEvent::Offered {
            iteration,
            absence: without_bridge,
        }));
        let given = BridgeEvent::ToolsGiven {
            iteration,
            by: tools,
        };
        self.post(Event::Bridge(given));
        self.post(Event::Pane(PaneEvent::Spawned {
            iteration,
            process,
            new_ids: new_ids(),
        }));
    }

    /// Makes the files again whose places were removed: if that fails, the next reboot makes them or reports the reason.
    pub(super) fn make_files_again(&mut self, made: MadeAgain) {
        let model = self.core.view();
        // The process has what it was started with, its output goes to the present iteration.
        let (iteration, recorded) = (model.session.pane(), model.session.iteration());
        let request = FileRequest::MakeAgain {
            plan: Arc::clone(&self.agent),
            made,
            process: model.session.agent.process.clone(),
            iteration,
            no_compaction: model.session.agent.holds_compaction,
            tools: model.session.agent.tools,
            mods: model.session.agent.bridge.link.loads_mods(),
        };
        self.request_file(request);
        if !made.files {
            return;
        }
        self.record_on(recorded);
        // The watch was lost with the directory.
        for file in [self.agent.scratchpad.clone(), self.paths.project_config()] {
            self.services.watcher.forget_beside(&file);
            self.services.watcher.watch_beside(&file);
        }
    }

    /// Continues the running process in another iteration.
    pub(super) fn continue_pane(&mut self, iteration: IterationId) {
        self.record_on(iteration);
        // One that has ended meanwhile is started again, and what it needs comes with that.
        if let Some(process) = self.core.view().session.agent.process.clone() {
            self.post(Event::Pane(PaneEvent::Spawned {
                iteration,
                process,
                new_ids: new_ids(),
            }));
        }
    }
}
