//! The dispatch of effects: one match hands each effect to the module that carries it out.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use crossterm::event::{KeyCode, KeyModifiers, MouseEventKind};

use pitstop_agent::claude::{limits::words_on_screen, projects::repository_top};
use pitstop_base::{clean::chain, process};
use pitstop_core::{
    api::wire::CommitBody,
    app::{
        self, Effect, Effects, Event,
        effect::{StartAgent, StopSignal},
        event::{
            BridgeEvent, Exit, HandoffFiles, MadeAgain, NewIds, PaneEvent, ReadEvent, TimerId,
        },
        layout,
        model::needs::Need,
    },
    autopilot::RunEvent,
    config::Notifications,
    lineage::{EndReason, IterationId, RunId},
};
use pitstop_handoff::{
    breakpoint::git::{self, GitState},
    scratchpad::versions::Version,
};
use pitstop_store::run_dir::RECORDING;
use pitstop_terminal::{
    MouseTracking, PaneSize,
    copy::CopyOrder,
    input::{self, HostInput},
    keys,
    pane::{
        pty,
        recording::{Flushing, Recording},
        replay::Cast,
    },
    screen::{Screen, Scroll},
};
use pitstop_transcript::{SessionId, talk::Talk, trim::TrimSettings};

use super::{
    Shell,
    agent::length,
    clipboard,
    files::{FileRequest, LEAVING, Start, StartReady},
    follower::FollowCommand,
    handoff_files,
    host_output::HostOutput,
    hosted::{Starting, new_screen, recording_failed},
    listen::Listening,
    store_writer::Job,
    trim::Ask,
};

/// The reason why an order for the disk cannot be given.
const NO_THREAD: &str = "the thread for files is gone; the log may say why";

/// The largest recording that is played, in bytes. It is held in memory, about as large as it is on disk.
const RECORDING_LIMIT: usize = 64 << 20;
/// The time that reading the files a handoff names may take before the handoff is drafted without them.
const READ_LIMIT: Duration = Duration::from_secs(4);

/// The number of unread input bytes from which Ctrl-C overtakes them: more than a person types ahead.
const CANCELLED_FROM: usize = 4096;

/// The time after a new size during which the child's output counts as a redraw because of it.
const REDRAW_TIME: Duration = Duration::from_secs(1);

/// The number of lines that one step of the wheel scrolls.
const WHEEL_LINES: i32 = 3;

/// The least number of commits that git is asked for: an agent may make several between two queries.
const LOOKED_AT: usize = 20;

impl Shell {
    /// Carries out the effects that the core orders, in order.
    pub(super) fn run_effects(&mut self, effects: Effects) {
        for effect in effects {
            self.run_effect(effect);
        }
    }

    pub(super) fn run_effect(&mut self, effect: Effect) {
        match effect {
            Effect::Forward(input) => self.forward(&input),
            Effect::Type(bytes) => _ = self.write_pane(bytes),
            Effect::Paste(pieces) => self.paste(&pieces),
            Effect::ResizePane(size) => self.resize_pane(size),
            Effect::ScrollPane(scroll) => self.pane.screen.scroll(scroll),
            Effect::CopyMode(order) => self.copy_mode(&order),
            Effect::FocusPane(focused) => self.focus_pane(focused),
            Effect::Signal(signal) => self.signal(signal),
            Effect::ContinueAgent => self.continue_agent(),
            Effect::Start(start) => self.start(start),
            Effect::Prepare(preparation) => self.prepare(*preparation),
            Effect::RunPostReboot(about) => self.run_post_reboot(*about),
            Effect::WatchPane(text) => self.pane.watch_for = Some(text),
            Effect::ReadGit => self.read_git(),
            Effect::ReadClientSettings => self.read_client_settings(),
            Effect::ReadClientWords => self.read_client_words(),
            Effect::ReadHandoffFiles { named, include } => self.read_handoff_files(named, include),
            Effect::ReadScratchpad => self.request_file(FileRequest::ReadScratchpad),
            Effect::KeepDraft(text) => self.request_file(FileRequest::KeepDraft(text)),
            Effect::ReadPromptBox => self.read_prompt_box(),
            Effect::OrderBridge { id, session, order } => {
                self.calls.mailbox.place(id, session, order);
            }
            Effect::CancelOrder(id) => self.cancel_order(id),
            Effect::RevokeOrder(id) => self.revoke_order(id),
            Effect::AskOfPrompts(asks) => self.calls.mailbox.ask_of_prompts(asks),
            Effect::AnswerQuestion { id, decision } => self.calls.mailbox.decide(id, decision),
            Effect::ContinuePane(iteration) => self.continue_pane(iteration),
            Effect::KeepVersion(version) => self.keep_version(version),
            Effect::ReadTask => self.read_task(),
            Effect::WriteScratchpad { base, text } => self.write_scratchpad(base, text),
            Effect::ReadPast(run, iteration) => self.keep(Job::FindPast(run, iteration)),
            Effect::ReadTranscript(session, iteration) => self.read_transcript(session, iteration),
            Effect::ShowTranscript(talk) => self.show_transcript(&talk),
            Effect::ReadRecording(run, iteration) => self.read_recording(&run, iteration),
            Effect::SearchHistory(text) => self.keep(Job::Search(text)),
            Effect::KeepTurn(turn) => self.keep(Job::Turn(turn)),
            Effect::OpenEditor { document, text } => self.open_editor(document, &text),
            Effect::FollowTranscript { session, path } => self.follow(session, path),
            Effect::SurveyTrim {
                ask,
                session,
                settings,
            } => self.ask_trimmer(ask, session, settings, None),
            Effect::TrimTranscript {
                ask,
                from,
                to,
                settings,
            } => self.ask_trimmer(ask, from, settings, Some(to)),
            Effect::Journal(entry) => self.keep(Job::Journal(entry)),
            Effect::SaveIteration(iteration, meta) => self.keep(Job::Iteration(iteration, meta)),
            Effect::MakeFilesAgain(made) => self.make_files_again(made),
            Effect::SaveHandoff { iteration, text } => self.keep(Job::Handoff(iteration, text)),
            Effect::Summarize { id, ask } => self.summarize(id, ask),
            Effect::FindMoved { from } => self.find_moved(from),
            Effect::EndMoved { sessions, limit } => self.end_moved(sessions, limit),
            Effect::CancelSummary => self.services.summaries.cancel(),
            Effect::SaveSummary { iteration, text } => self.keep(Job::Summary(iteration, text)),
            Effect::KeepCarried(session, carried) => self.keep(Job::Carried(session, carried)),
            Effect::ReadCarried { of, session } => self.keep(Job::FindCarried { of, session }),
            Effect::SaveCheckpoint(checkpoint) => self.keep(Job::Checkpoint(checkpoint)),
            Effect::SetTimer(id, after) => self.set_timer(id, after),
            Effect::Answer(call, reply) => self.calls.answer(call, reply),
            Effect::Publish(event) => self.calls.feed.publish(*event),
            Effect::Copy(text) => self.copy(text),
            Effect::StoreClipboard(text) => self.store_clipboard(&text),
            Effect::Bell => self.each_output(HostOutput::bell),
            Effect::Notify { title, body } => self.each_output(|out| out.notify(&title, &body)),
            Effect::HostTitle(title) => self.terminals.set_title(&title),
            Effect::HostProgress(progress) => self.each_output(|output| output.progress(progress)),
            Effect::Call(need) => self.call_person(&need),
            Effect::Settled(need) => self.notify(&need, "settled"),
            Effect::LogRun(event) => self.report(&event),
            Effect::Detach => self.detach_active(),
            Effect::DetachAll => self.detach_all(None, "by `pitstop detach`"),
            Effect::Quit(code) => self.quit = Some((code, Instant::now() + LEAVING)),
        }
    }

    /// Sets a timer; one of the same name is replaced.
    fn set_timer(&mut self, id: TimerId, after: Duration) {
        self.timers.insert(id, Instant::now() + after);
    }

    /// Cancels an order that no process has taken yet.
    fn cancel_order(&mut self, id: pitstop_agent::bridge::OrderId) {
        let was_taken = !self.calls.mailbox.cancel(id);
        self.post(Event::Bridge(BridgeEvent::Cancelled { id, was_taken }));
    }

    /// Revokes an order whose text no process has yet.
    fn revoke_order(&mut self, id: pitstop_agent::bridge::OrderId) {
        let in_time = self.calls.mailbox.revoke(id);
        self.post(Event::Bridge(BridgeEvent::Revoked { id, in_time }));
    }

    /// Sends a request to the thread that works on the disk.
    pub(super) fn request_file(&mut self, request: FileRequest) {
        if !self.files.send(request) {
            let what = format!("files are neither read nor written: {NO_THREAD}");
            self.post(Event::EffectFailed { what });
        }
    }

    fn paste(&mut self, pieces: &[String]) {
        let modes = self.pane.screen.modes();
        let pasted = |piece: &String| keys::encode_paste(piece.as_bytes(), &modes);
        self.write_pane(pieces.iter().flat_map(pasted).collect());
    }

    fn copy_mode(&mut self, order: &CopyOrder) {
        if *order == CopyOrder::Leave {
            self.pane.transcript = None;
        }
        let outcome = match &mut self.pane.transcript {
            Some(transcript) => transcript.copy(order),
            None => self.pane.screen.copy(order),
        };
        self.post(Event::Pane(PaneEvent::CopyMode(outcome)));
    }

    /// Reads a session's transcript on a thread for slow work: it may have many megabytes.
    fn read_transcript(&self, session: SessionId, iteration: IterationId) {
        let path = self.transcript_of(session);
        let events = self.events.clone();
        tokio::task::spawn_blocking(move || {
            let talk = match path {
                Some(path) => Talk::read(path).map_err(|error| chain(&error)),
                None => Err("it has none yet".to_owned()),
            };
            let talk = talk.map(Arc::new);
            // The loop is gone, then.
            let _ = events.blocking_send(Event::Read(ReadEvent::Talk { iteration, talk }));
        });
    }

    /// Shows a transcript in the place of the pane's screen, which does not change meanwhile.
    fn show_transcript(&mut self, talk: &Talk) {
        let size = self.pane.screen.size();
        let theme = self.terminals.active().map(|active| active.theme.clone());
        let theme = theme.unwrap_or_default();
        let (bytes, rows) =
            crate::ui::transcript::written(talk, size.columns(), super::zone, &theme);
        let mut screen = Screen::new(size, rows);
        screen.feed_at_once(&bytes);
        self.pane.screen.copy(&CopyOrder::Enter);
        self.pane.transcript = Some(Box::new(screen));
        self.copy_mode(&CopyOrder::Enter);
    }

    fn focus_pane(&mut self, focused: bool) {
        if let Some(bytes) = keys::encode_focus(focused, &self.pane.screen.modes()) {
            self.write_pane(bytes.to_vec());
        }
    }

    fn write_scratchpad(&mut self, base: String, text: String) {
        self.request_file(FileRequest::WriteScratchpad { base, text });
    }

    fn read_prompt_box(&mut self) {
        self.pane.prompt_box_asked = true;
        self.look_at_prompt_box();
    }

    fn keep_version(&mut self, version: Version) {
        let renumber = !self.files.versions_known;
        self.request_file(FileRequest::KeepVersion { version, renumber });
    }

    fn copy(&mut self, text: String) {
        self.store_clipboard(&text);
        clipboard::give_to_system(text, &self.events);
    }

    /// Hands a job to the store writer. Its queue holds minutes of writes: a full queue means a store that hangs.
    pub(super) fn keep(&mut self, job: Job) {
        if self.services.store_writer.try_send(job).is_err() {
            tracing::error!("the store does not keep up: a record is lost");
            let what = "the store does not keep up: a record was not kept".to_owned();
            self.post(Event::EffectFailed { what });
        }
    }

    fn forward(&mut self, input: &HostInput) {
        let modes = self.pane.screen.modes();
        // The nearest cell of the pane: a drag that leaves the pane continues at its edge.
        let cell = |column: u16, row: u16| {
            let area = layout::layout(self.core.view()).pane_inner();
            let within =
                |at: u16, from: u16, size: u16| at.saturating_sub(from).min(size.saturating_sub(1));
            (
                within(column, area.x, area.width),
                within(row, area.y, area.height),
            )
        };
        if let HostInput::OtherButton {
            number,
            pressed,
            column,
            row,
            ..
        } = input
        {
            let cell = cell(*column, *row);
            if let Some(bytes) = keys::encode_other_button(*number, *pressed, cell, &modes) {
                self.write_pane(bytes);
            }
            return;
        }
        if let HostInput::Mouse { event, .. } = input {
            let released = matches!(event.kind, MouseEventKind::Up(_) | MouseEventKind::Drag(_));
            let shift = event.modifiers.contains(KeyModifiers::SHIFT) && !released;
            let ours = modes.mouse == MouseTracking::None || shift;
            let (column, row) = cell(event.column, event.row);
            if ours && !modes.alternate_screen {
                match event.kind {
                    MouseEventKind::ScrollUp => self.pane.screen.scroll(Scroll::Lines(WHEEL_LINES)),
                    MouseEventKind::ScrollDown => {
                        self.pane.screen.scroll(Scroll::Lines(-WHEEL_LINES));
                    }
                    _ => {}
                }
            } else if ours && modes.mouse != MouseTracking::None {
                // Shift keeps the mouse from the child, and on the alternate screen there is nothing to scroll.
            } else if let Some(bytes) = keys::encode_mouse(event, column, row, &modes) {
                self.write_pane(bytes);
            }
            return;
        }
        match input {
            HostInput::Key { event, .. }
                if event.code == KeyCode::Char('c') && event.modifiers == KeyModifiers::CONTROL =>
            {
                self.cancel_input();
            }
            HostInput::Key { event, .. }
                if event.code == KeyCode::Char('z') && event.modifiers == KeyModifiers::CONTROL =>
            {
                self.expect_suspension();
            }
            HostInput::PasteStart => self.pane.paste_cut = false,
            // A text with holes is worse than one cut off, so nothing is sent after the first refusal.
            HostInput::PasteChunk(_) if self.pane.paste_cut => return,
            _ => {}
        }
        let bytes = input::forward(input, &modes, self.asked_for_keys());
        self.record_input(&bytes);
        if !bytes.is_empty() && !self.write_pane(bytes) {
            self.pane.paste_cut = true;
        }
    }

    /// Records the input that the human sends to the agent, if that is configured. The mouse is not recorded.
    fn record_input(&mut self, bytes: &[u8]) {
        if !self.core.view().config.recording.record_input || bytes.is_empty() {
            return;
        }
        let Some((begun, recording)) = &mut self.pane.recording else {
            return;
        };
        if let Err(error) = recording.input(begun.elapsed(), bytes) {
            recording_failed(&error);
        }
    }

    /// Lets Ctrl-C overtake the input that a child has not read: a person who presses it does not want to wait behind a paste of
    /// megabytes, or for ever.
    fn cancel_input(&mut self) {
        let Some(pty) = &self.pane.pty else { return };
        if pty.queued_bytes() < CANCELLED_FROM {
            return;
        }
        let bytes = pty.cancel_writes();
        // The end mark of the paste was among the input that waited.
        let end = keys::paste_end(&self.pane.screen.modes());
        if !end.is_empty() {
            self.write_pane(end.to_vec());
        }
        self.post(Event::Pane(PaneEvent::InputCancelled { bytes }));
    }

    /// Resizes the pane: the child is notified of a change of the layout at once, and of some of the sizes of a window being resized.
    fn resize_pane(&mut self, size: PaneSize) {
        if !self.terminals.window_resizes {
            self.pane.resizing.forget();
        } else if !self.pane.resizing.ask(size, Instant::now()) {
            return;
        }
        self.set_pane_size(size);
    }

    /// Resizes grid and terminal together; the child is notified only if the size has changed.
    pub(super) fn set_pane_size(&mut self, size: PaneSize) {
        if self.pane.screen.size() == size {
            return;
        }
        self.pane.screen.resize(size);
        if let Some(transcript) = &mut self.pane.transcript {
            transcript.resize(size);
        }
        self.pane.screen.expect_redraw(Instant::now() + REDRAW_TIME);
        if let Some((begun, recording)) = &mut self.pane.recording {
            recording.resize(begun.elapsed(), size);
        }
        if let Some(pty) = &self.pane.pty
            && let Err(error) = pty.resize(size)
        {
            tracing::warn!(error = chain(&error), "the pane keeps its size");
        }
    }

    fn signal(&mut self, signal: StopSignal) {
        if self.pane.starting.take().is_some() {
            // It has not started, so it need not be ended.
            let (iteration, exit) = (self.core.view().session.pane(), Exit::Code(0));
            self.post(Event::Pane(PaneEvent::Exited { iteration, exit }));
        }
        let Some(pty) = &self.pane.pty else { return };
        if self.core.view().outside.quitting.is_some() {
            self.pane.remains.look(pty.pid());
        }
        if self.core.view().session.agent.suspended.is_some() {
            self.continue_agent();
        }
        let sent = match signal {
            StopSignal::Interrupt => return,
            StopSignal::Exit => {
                // Sent to the agent alone: it ends its children itself. The process is not reaped before we
                // release it, so the number is still its own.
                let pid = i32::try_from(pty.pid())
                    .ok()
                    .and_then(rustix::process::Pid::from_raw);
                if let Some(pid) = pid {
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
                }
                return;
            }
            StopSignal::Hangup => pty::Signal::HUP,
            StopSignal::Terminate => pty::Signal::TERM,
            StopSignal::Kill => pty::Signal::KILL,
        };
        if let Err(error) = pty.signal(sent) {
            tracing::debug!(%error, ?signal, "not signalled");
        }
    }

    /// Clears the pane and has an agent started in it, once the files that it needs are written.
    fn start(&mut self, start: StartAgent) {
        let iteration = start.iteration;
        let size = layout::layout(self.core.view()).pane_size();
        self.pane.resizing.forget();
        self.pane.screen = new_screen(size, &self.core.view().config.ui);
        self.pane.transcript = None;
        if let Some(active) = self.terminals.active() {
            self.pane.screen.set_palette(active.palette);
            if let Some(scheme) = active.scheme {
                self.pane.screen.set_colour_scheme(scheme);
            }
        }
        self.pane.watch_for = None;
        self.pane.listening = Listening::default();
        self.restart_estimate();
        if let Some(path) = self.services.transcript.take() {
            self.services.watcher.forget_beside(&path);
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
            asks_version: self.core.view().session.agent.version.is_none(),
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
    pub(super) fn start_ready(&mut self, ready: StartReady) {
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
        let read = app::carried::read_before(self.core.view(), session);
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
        let process =
            process::stamp(pty.pid()).unwrap_or_else(|| pitstop_core::lineage::ProcessStamp {
                pid: pty.pid(),
                start_time: String::new(),
            });
        self.pane.pty = Some(pty);
        if !typed.is_empty() {
            self.write_pane(typed);
        }
        self.calls.mailbox.owned_by(process.pid);
        self.record(iteration, self.pane.screen.size());
        self.keep(Job::Agent(iteration, process.clone()));
        // A guess in case hooks are switched off; the first hook reports the true path.
        if let Some(path) = self.agent.transcript_of(session) {
            self.follow(session, path.to_string_lossy().into_owned());
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

    fn record(
        &mut self,
        iteration: pitstop_core::lineage::IterationId,
        size: pitstop_terminal::PaneSize,
    ) {
        if !self.core.view().config.recording.enabled {
            return;
        }
        let Some(files) = &self.agent.files else {
            return;
        };
        let opened = files
            .iteration(iteration)
            .map_err(|error| chain(&error))
            .and_then(|directory| {
                Recording::create(
                    &directory.path().join(RECORDING),
                    size,
                    super::wall().timestamp(),
                    self.core.view().config.recording.max_size,
                )
                .map_err(|error| chain(&error))
            });
        match opened {
            Ok(recording) => self.pane.recording = Some((Instant::now(), recording)),
            Err(error) => tracing::warn!(error, "the pane is not recorded"),
        }
    }

    /// Makes the files again whose places were removed: if that fails, the next reboot makes them or reports the reason.
    fn make_files_again(&mut self, made: MadeAgain) {
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

    /// Continues the recording, if there is one, in the file of this iteration. What was drawn before is in another file: its text
    /// comes first, to make the rest readable.
    fn record_on(&mut self, iteration: pitstop_core::lineage::IterationId) {
        if !self.end_recording() {
            return;
        }
        let size = self.pane.screen.size();
        self.record(iteration, size);
        let text = self.pane.screen.tail_text(usize::from(size.rows()));
        let drawn = format!("\x1b[H\x1b[2J{}", text.replace('\n', "\r\n"));
        if let Some((begun, recording)) = &mut self.pane.recording
            && let Err(error) = recording.output(begun.elapsed(), drawn.as_bytes())
        {
            recording_failed(&error);
        }
    }

    /// Ends the recording on the thread for files, so that the loop does not wait for the disk; returns true if one was handed over.
    pub(super) fn end_recording(&mut self) -> bool {
        let ended = self.pane.recording.take();
        ended.is_some_and(|(_, recording)| self.files.send(FileRequest::EndRecording(recording)))
    }

    /// Continues the running process in another iteration.
    fn continue_pane(&mut self, iteration: pitstop_core::lineage::IterationId) {
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

    /// Starts to write the recorded bytes to the file; `None` if nothing is recorded any more.
    pub(super) fn flush_recording(&mut self) -> Option<Flushing> {
        let (_, recording) = self.pane.recording.as_mut()?;
        recording.flush().inspect_err(recording_failed).ok()
    }

    /// Reads and parses a recording on a thread for slow work: it may have many megabytes.
    fn read_recording(&mut self, run: &RunId, iteration: pitstop_core::lineage::IterationId) {
        let flushing = self.flush_recording();
        let ended = self.files.caught_up();
        let directory = match &self.agent.files {
            Some(files) => files
                .iteration_of(run, iteration)
                .map_err(|error| chain(&error))
                .and_then(|found| found.ok_or_else(|| "its files are gone".to_owned())),
            None => Err("nothing is kept in this directory".to_owned()),
        };
        // One that was made with a larger limit is not read: what counts is what we can hold.
        let limit =
            usize::try_from(self.core.view().config.recording.max_size).unwrap_or(usize::MAX);
        let limit = limit.min(RECORDING_LIMIT);
        let events = self.events.clone();
        tokio::task::spawn_blocking(move || {
            if let Some(flushing) = flushing {
                flushing.wait();
            }
            // One that has just ended is written by the thread for files.
            tokio::runtime::Handle::current().block_on(ended);
            let cast = directory.and_then(|directory| {
                let bytes = directory
                    .read(RECORDING, limit)
                    .map_err(|error| chain(&error))?;
                let bytes = bytes.ok_or("it was not recorded")?;
                Cast::parse(&bytes).map_err(|error| chain(&error))
            });
            // The loop is gone, then.
            let _ = events.blocking_send(Event::Read(ReadEvent::Recording { iteration, cast }));
        });
    }

    /// Notes the directory in which the agent works, as a hook has reported it.
    pub(super) fn works_at(&mut self, session: SessionId, place: PathBuf) {
        let known = self.services.place.as_ref();
        let before = known.unwrap_or(&self.agent.project);
        if session == self.core.view().session.id && place != *before {
            self.services.place = Some(place);
            self.read_git();
        }
    }

    /// Returns the directory in which the agent works; the project if that is not known or not there any more.
    fn place(&self) -> PathBuf {
        let known = self.services.place.as_ref();
        let place = known.filter(|place| self.agent.is_there(place));
        place.unwrap_or(&self.agent.project).clone()
    }

    /// Reports whether a commit was made in a work tree in which the agent does not work, or that is the project's own: its
    /// supervisors are found by their directories.
    pub(super) fn is_elsewhere(&self, commit: &CommitBody) -> bool {
        let Some(tree) = &commit.work_tree else {
            return false;
        };
        let place = self.place();
        let is_here = repository_top(&place).is_some_and(|top| {
            let same = top.canonicalize().ok() == tree.canonicalize().ok();
            same && !self.agent.project.starts_with(top)
        });
        !is_here
    }

    /// Queries git, one query at a time: its answer serves all callers.
    pub(super) fn read_git(&mut self) {
        if std::mem::replace(&mut self.services.git_running, true) {
            self.services.git_asked = true;
            return;
        }
        let events = self.events.clone();
        let directory = self.place();
        let model = self.core.view();
        // More than are shown: they reveal a commit that no hook has reported.
        let commits = model.config.handoff.git_history_count.max(LOOKED_AT);
        let start = model.draft.signalled.run_start.clone();
        tokio::spawn(async move {
            let facts = git::facts(&directory, commits, start.as_ref()).await;
            // The loop is gone, then.
            let _ = events.send(Event::Read(ReadEvent::Git(facts))).await;
        });
    }

    /// Reads the client's settings off the loop: the files may be on a slow disk.
    fn read_client_settings(&self) {
        if !self.agent.kind.reports() {
            return;
        }
        let events = self.events.clone();
        let settings = self
            .agent
            .client_settings(self.core.view().session.agent.holds_compaction);
        tokio::spawn(async move {
            let read = tokio::task::spawn_blocking(move || settings.read());
            if let Ok(Ok(found)) = tokio::time::timeout(READ_LIMIT, read).await {
                // The loop is gone, then.
                let _ = events
                    .send(Event::Read(ReadEvent::ClientSettings(Box::new(found))))
                    .await;
            }
        });
    }

    /// Reads the client's words at the end of the screen, however far a person has scrolled up.
    fn read_client_words(&mut self) {
        let text = self
            .pane
            .screen
            .tail_text(usize::from(self.pane.screen.size().rows()));
        if let Some(words) = words_on_screen(&text) {
            self.post(Event::Read(ReadEvent::ClientWords(words)));
        }
    }

    /// Reads the files for a handoff off the loop: they may be on a slow disk.
    fn read_handoff_files(&self, named: Vec<String>, include: Vec<String>) {
        let events = self.events.clone();
        let (project, place) = (self.agent.project.clone(), self.place());
        let caught_up = self.files.caught_up();
        tokio::spawn(async move {
            // The handoff also contains the scratchpad: earlier orders to read it are carried out first.
            let _ = tokio::time::timeout(READ_LIMIT, caught_up).await;
            let look = move || handoff_files::read(&project, &place, &named, &include);
            let looked = tokio::task::spawn_blocking(look);
            let files = match tokio::time::timeout(READ_LIMIT, looked).await {
                Ok(Ok(files)) => files,
                _ => HandoffFiles {
                    warnings: vec!["the files of the handoff could not be looked at".to_owned()],
                    ..HandoffFiles::default()
                },
            };
            // The loop is gone, then.
            let _ = events
                .send(Event::Read(ReadEvent::HandoffFiles(Box::new(files))))
                .await;
        });
    }

    /// Reads the task again; a run whose task was given as text has none to read.
    fn read_task(&mut self) {
        if let Some(path) = self.task.clone() {
            self.request_file(FileRequest::ReadTask(path));
        }
    }

    fn report(&self, event: &RunEvent) {
        let now = super::wall();
        tracing::info!(event = %pitstop_base::clean::one_line(&event.to_string()), "run");
        if let Some(lines) = &self.lines {
            lines.report(event, now, self.core.view().run().as_str());
        }
    }

    /// Calls a person: by each host terminal that does not have the focus, and as `[notify]` says.
    fn call_person(&mut self, need: &Need) {
        self.notify(need, "open");
        let how = self.core.view().config.ui.notifications;
        let said = need.in_words();
        for terminal in self.terminals.all_mut().filter(|one| !one.has_focus()) {
            if how == Notifications::Desktop {
                terminal.output.notify("pitstop", &said);
            }
            if how != Notifications::Off {
                terminal.output.bell();
            }
        }
    }

    /// Adds something to the output of each host terminal.
    fn each_output(&mut self, add: impl Fn(&mut HostOutput)) {
        for terminal in self.terminals.all_mut() {
            add(&mut terminal.output);
        }
    }

    pub(super) fn follow(&mut self, session: SessionId, path: String) {
        let path = PathBuf::from(path);
        if self.services.transcript.as_ref() == Some(&path) {
            self.transcript_grown();
            return;
        }
        if !self.agent.may_read(&path) {
            let shown = pitstop_base::clean::one_line(&path.to_string_lossy()).into_owned();
            tracing::warn!(
                path = shown,
                "a transcript outside the agent's own directory is not read"
            );
            return;
        }
        if let Some(old) = self.services.transcript.replace(path.clone()) {
            self.services.watcher.forget_beside(&old);
        }
        self.services.watcher.watch_beside(&path);
        // In the session that was started, everything is new that did not exist at the start or that had not been read; in another
        // one to which the agent turns, everything from now on.
        let history = match self.services.begun {
            Some((begun, before)) if begun == session => before,
            _ => length(&path),
        };
        self.services
            .follower
            .send(FollowCommand::Follow(session, path, history));
    }

    /// Returns the transcript of a session: the one that is followed, if it is that session's.
    fn transcript_of(&self, session: SessionId) -> Option<PathBuf> {
        let name = format!("{session}.jsonl");
        let followed = self.services.transcript.clone();
        followed
            .filter(|path| path.file_name().is_some_and(|one| *one == *name))
            .or_else(|| self.agent.transcript_of(session))
    }

    /// Has a session's transcript surveyed, or copied under this id. The reason why that is impossible is sent as an answer as well.
    fn ask_trimmer(
        &mut self,
        ask: u64,
        session: SessionId,
        settings: TrimSettings,
        copy: Option<SessionId>,
    ) {
        let why = match self.transcript_of(session) {
            None => "the session has no transcript yet",
            Some(path) => {
                let asked = Ask {
                    ask,
                    path,
                    settings,
                    copy,
                };
                if self.services.trimmer.send(asked) {
                    return;
                }
                "the thread that trims is gone; the log may say why"
            }
        };
        let why = why.to_owned();
        self.post(Event::Read(match copy {
            None => ReadEvent::TrimPlanned {
                ask,
                plan: Err(why),
            },
            Some(_) => ReadEvent::Trimmed {
                ask,
                made: Err(why),
            },
        }));
    }

    /// Puts a text on the host's clipboard with the next frame; it replaces an earlier one that waits.
    fn store_clipboard(&mut self, text: &str) {
        let active = self.terminals.active_mut();
        if active.is_some_and(|active| !active.output.store_clipboard(text)) {
            let what = "the text is too large for the terminal's clipboard".to_owned();
            self.post(Event::EffectFailed { what });
        }
    }

    /// Notes that a git query was answered, and starts the next one if it was requested.
    pub(super) fn git_answered(&mut self, state: &GitState) {
        self.services.git_running = false;
        if let GitState::Facts(facts) = state {
            self.watch_head(&facts.head_log);
        }
        if std::mem::take(&mut self.services.git_asked) {
            self.read_git();
        }
    }

    /// Watches the head of the repository, which a commit without a hook and without output moves too.
    fn watch_head(&mut self, log: &Path) {
        // Git makes the directory with the first commit.
        let directory = log.parent().filter(|directory| !directory.exists());
        let watched = directory.unwrap_or(log);
        let services = &mut self.services;
        if services.head_log.as_deref() != Some(watched) {
            if let Some(old) = services.head_log.replace(watched.to_owned()) {
                services.watcher.forget_beside(&old);
            }
            // The head may have moved before it was watched.
            services.git_asked = true;
        }
        services.watcher.watch_beside(watched);
    }
}

/// Creates random ids for the next reboot.
pub fn new_ids() -> NewIds {
    let nonce = uuid::Uuid::new_v4().simple().to_string();
    NewIds {
        reboot: uuid::Uuid::new_v4(),
        session: SessionId::new(uuid::Uuid::new_v4()),
        nonce: nonce.get(..8).unwrap_or(&nonce).to_owned(),
    }
}

/// The time that the store writer may take to write everything when we leave.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// Has everything written and the database closed; returns true if that was done.
pub async fn close(store_writer: &tokio::sync::mpsc::Sender<Job>, reason: EndReason) -> bool {
    let (done, closed) = tokio::sync::oneshot::channel();
    if store_writer
        .send(Job::Close(super::wall(), reason, done))
        .await
        .is_ok()
    {
        match tokio::time::timeout(CLOSE_LIMIT, closed).await {
            Ok(Ok(0)) => return true,
            Ok(Ok(lost)) => tracing::error!(lost, "records could not be written"),
            _ => tracing::error!("the store could not be closed in time"),
        }
    }
    false
}
