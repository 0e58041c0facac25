//! The dispatch of effects: one match hands each effect to the module that carries it out.

mod pane;
mod reading;
mod recordings;
mod start;

use std::time::{Duration, Instant};

use pitstop_agent::bridge::{BridgeOrder, OrderId};
use pitstop_base::{clean::one_line, format};
use pitstop_core::{
    app::{
        Effect, Event,
        event::{BridgeEvent, NewIds},
        model::needs::Need,
    },
    autopilot::RunEvent,
    config::Notifications,
    lineage::EndReason,
};
use pitstop_handoff::scratchpad::versions::Version;
use pitstop_transcript::SessionId;

use super::{
    Deadline, Shell, clipboard,
    files::{FileRequest, LEAVING},
    host_output::HostOutput,
    store_writer::{Job, Unwritten},
};

/// The reason why an order for the disk cannot be given.
const NO_THREAD: &str = "the thread for files is gone; the log may say why";

impl Shell {
    /// Carries out an effect that the core orders.
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
            Effect::OrderBridge { id, session, order } => self.place_order(id, session, order),
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
            Effect::OpenEditor(text) => self.open_editor(&text),
            Effect::FollowTranscript { session, path } => self.follow(session, path),
            Effect::TakeBack(session, prompt) => self.take_back(session, prompt),
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
            Effect::SetTimer(id, after) => self.set_deadline(Deadline::Timer(id), after),
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

    /// Has the client's own side of a session carry out an order.
    fn place_order(&mut self, id: OrderId, session: SessionId, order: BridgeOrder) {
        self.calls.mailbox.place(id, session, order);
    }

    /// Cancels an order that no process has taken yet.
    fn cancel_order(&mut self, id: OrderId) {
        let was_taken = !self.calls.mailbox.cancel(id);
        self.post(Event::Bridge(BridgeEvent::Cancelled { id, was_taken }));
    }

    /// Revokes an order whose text no process has yet.
    fn revoke_order(&mut self, id: OrderId) {
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

    fn write_scratchpad(&mut self, base: String, text: String) {
        self.request_file(FileRequest::WriteScratchpad { base, text });
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

    /// Reads the task again; a run whose task was given as text has none to read.
    fn read_task(&mut self) {
        if let Some(path) = self.task.clone() {
            self.request_file(FileRequest::ReadTask(path));
        }
    }

    fn report(&self, event: &RunEvent) {
        let now = super::wall();
        tracing::info!(event = %one_line(&event.to_string()), "run");
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

    /// Puts a text on the host's clipboard with the next frame; it replaces an earlier one that waits.
    fn store_clipboard(&mut self, text: &str) {
        let active = self.terminals.active_mut();
        if active.is_some_and(|active| !active.output.store_clipboard(text)) {
            let what = "the text is too large for the terminal's clipboard".to_owned();
            self.post(Event::EffectFailed { what });
        }
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

/// The time that the store writer may take to write everything when we leave: what a database that falls silent in that moment does
/// not take is in a file by then.
const CLOSE_LIMIT: Duration = Duration::from_secs(15);

/// Has everything written and the database closed; returns what could not be done, for a person.
pub async fn close_store(
    store_writer: &tokio::sync::mpsc::Sender<Job>,
    reason: EndReason,
) -> Option<String> {
    let (done, closed) = tokio::sync::oneshot::channel();
    let job = Job::Close(super::wall(), reason, done);
    let closed = async {
        store_writer
            .send(job)
            .await
            .is_ok()
            .then_some(closed)?
            .await
            .ok()
    };
    let unwritten = match tokio::time::timeout(CLOSE_LIMIT, closed).await {
        Ok(Some(Unwritten { records: 0, .. })) => return None,
        Ok(Some(Unwritten { records, kept })) => format!(
            "{} could not be written into the database{}",
            format::count(records, "record"),
            if kept {
                " and will be at the next start"
            } else {
                ""
            }
        ),
        Ok(None) | Err(_) => "the database could not be closed in time".to_owned(),
    };
    tracing::error!("{unwritten}");
    Some(unwritten)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn records_that_the_database_does_not_take_are_named_at_the_end() {
        for (records, kept, notice) in [
            (0, true, None),
            (
                1,
                false,
                Some("1 record could not be written into the database"),
            ),
            (
                87,
                true,
                Some(
                    "87 records could not be written into the database and will be at the next start",
                ),
            ),
        ] {
            let (sender, mut jobs) = tokio::sync::mpsc::channel(1);
            let writer = async {
                if let Some(Job::Close(_, _, done)) = jobs.recv().await {
                    let _ = done.send(Unwritten { records, kept });
                }
            };
            let (said, ()) = tokio::join!(close_store(&sender, EndReason::Shutdown), writer);
            assert_eq!(said.as_deref(), notice);
        }
        let (sender, jobs) = tokio::sync::mpsc::channel(1);
        drop(jobs);
        let said = close_store(&sender, EndReason::Shutdown).await;
        assert_eq!(
            said.as_deref(),
            Some("the database could not be closed in time")
        );
    }
}
