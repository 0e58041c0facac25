//! The services beside the loop (the database, the transcript, git, the watched files, side processes), and the calls that come
//! through the doors.

use std::{collections::HashMap, iter, path::PathBuf, time::Duration};

use tokio::sync::{mpsc, oneshot};

use pitstop_agent::{
    AgentEvent, parse_hook, parse_mode, parse_permission, parse_place, parse_status_line,
};
use pitstop_core::{
    api::wire::{
        ApiEvent, ApiEventKind, NotedReply, PERMISSION_EVENT, Reply, Report, Request, ScreenReport,
    },
    app::{
        Event, compaction,
        event::{BridgeEvent, CallId},
        metrics, report,
    },
};
use pitstop_server::{
    Call, Feed, Mailbox,
    phone::devices::{Device, DeviceRight, DeviceStore},
};
use pitstop_transcript::SessionId;

use super::{
    Deadline, Shell,
    files::FileRequest,
    follower::{self, FollowCommand},
    herdr::Herdr,
    notify::Caller,
    store_writer::Job,
    summary::SideProcesses,
    trim::{self, Ask},
    watcher::{Changes, Watcher},
    worker::Worker,
};

/// The time that a changed configuration must rest before it is read: an editor that truncates the file first would
/// otherwise have its empty intermediate state taken for a wish for the defaults.
const CONFIG_SETTLE: Duration = Duration::from_millis(150);

/// The time after which git is queried once more about a head that moves: it is logged before it moves, and on a busy machine the first
/// answer may lie between the two.
const HEAD_SETTLE: Duration = Duration::from_secs(1);

/// The time that the scratchpad must stay unchanged before it is read: many programs write a file in place, and between
/// truncation and text it is empty, which an open editor would merge as a deletion of everything.
const NOTES_SETTLE: Duration = Duration::from_millis(60);

/// The time after which the client's own record of its process is read: the hook of a session's beginning says more, and comes first
/// unless it is lost.
const RECORD_SETTLE: Duration = Duration::from_secs(2);

/// The tasks and threads, and the state of each.
pub(super) struct Services {
    pub store_writer: mpsc::Sender<Job>,
    pub follower: Worker<FollowCommand>,
    /// The transcript that is followed.
    pub transcript: Option<PathBuf>,
    /// The client's own record of the agent's process.
    pub client_record: Option<PathBuf>,
    /// The directory in which the agent works, once that is known.
    pub place: Option<PathBuf>,
    /// The session that was started last, and the number of bytes of its transcript that were there and read before.
    pub begun: Option<(SessionId, u64)>,
    pub trimmer: Worker<Ask>,
    pub watcher: Watcher,
    pub summaries: SideProcesses,
    pub caller: Caller,
    pub herdr: Herdr,
    /// True while a git query runs.
    pub git_running: bool,
    /// True if git must be queried once more.
    pub git_asked: bool,
    /// The watched file to which git appends a line whenever the head moves, or the directory that it will be in, if the project is a
    /// repository.
    pub head_log: Option<PathBuf>,
}

impl Services {
    /// Creates the services, which answer to `events`; threads begin with their first order.
    pub fn new(
        store_writer: mpsc::Sender<Job>,
        place: Option<PathBuf>,
        events: &mpsc::Sender<Event>,
    ) -> Self {
        Self {
            store_writer,
            follower: Worker::new("transcript", follower::follow, events.clone()),
            transcript: None,
            client_record: None,
            place,
            begun: None,
            trimmer: Worker::new("trim", trim::work, events.clone()),
            watcher: Watcher::default(),
            summaries: SideProcesses::default(),
            caller: Caller::default(),
            herdr: Herdr::default(),
            git_running: false,
            git_asked: false,
            head_log: None,
        }
    }
}

/// The callers and listeners at the doors.
pub(super) struct Calls {
    pub feed: Feed,
    /// The orders for the client's own side of the session.
    pub mailbox: Mailbox,
    /// The calls that wait for an answer of the core.
    pub open: HashMap<CallId, oneshot::Sender<Reply>>,
    /// The number of the last call.
    last: u64,
}

impl Calls {
    /// Creates the state in which no call has come yet.
    pub fn new(feed: Feed, mailbox: Mailbox) -> Self {
        Self {
            feed,
            mailbox,
            open: HashMap::new(),
            last: 0,
        }
    }

    /// Keeps a call open until the core answers it.
    fn keep(&mut self, reply: oneshot::Sender<Reply>) -> CallId {
        self.last += 1;
        let call = CallId(self.last);
        self.open.insert(call, reply);
        call
    }

    /// Keeps a call open, unless its caller has gone or has waited for too long: it may have been repeated since.
    fn keep_awaited(&mut self, reply: oneshot::Sender<Reply>) -> Option<CallId> {
        (!reply.is_closed()).then(|| self.keep(reply))
    }

    /// Removes the calls whose callers have gone, and returns them.
    fn gone(&mut self) -> Vec<CallId> {
        let gone = self.open.extract_if(|_, reply| reply.is_closed());
        gone.map(|(call, _)| call).collect()
    }

    /// Answers a call that is open.
    pub fn answer(&mut self, call: CallId, reply: Reply) {
        if let Some(asked) = self.open.remove(&call) {
            // The caller may have gone away.
            let _ = asked.send(reply);
        }
    }
}

/// Returns a hook as the event that is sent to listeners.
fn hook_event(event: &str, parsed: &AgentEvent) -> ApiEvent {
    let call = match parsed {
        AgentEvent::ToolStarted { call, .. } | AgentEvent::ToolFinished { call, .. } => Some(call),
        _ => None,
    };
    let data = serde_json::json!({
        "event": event, "session_id": parsed.session(),
        "tool": call.map(|call| &call.name), "tool_use_id": call.and_then(|call| call.id.as_ref()),
    });
    let kind = ApiEventKind::Hook;
    ApiEvent { kind, data }
}

impl Shell {
    /// Handles a call that reached us through a door.
    pub(super) fn called(&mut self, call: Call) {
        let Call { request, reply } = call;
        self.core.set_time(self.at());
        let answer = match request {
            Request::Hook { event, body } if event == PERMISSION_EVENT => {
                return self.permission_asked(&event, &body, reply);
            }
            Request::Hook { event, body } => self.hook_fired(&event, &body),
            Request::StatusLine { body } => {
                match parse_status_line(&body) {
                    Ok(line) => {
                        self.post(Event::Agent(AgentEvent::StatusLine(Box::new(line))));
                    }
                    Err(error) => tracing::warn!(%error, "a status line payload was ignored"),
                }
                Reply::StatusLine(report::status_line(self.core.view()))
            }
            Request::Control(control) => {
                self.look_for_gone_hooks();
                if let Some(call) = self.calls.keep_awaited(reply) {
                    self.post(Event::ControlAsked { call, control });
                } else {
                    let order = control.name();
                    tracing::warn!(
                        order,
                        "an order that had no answer in time is not carried out"
                    );
                }
                return;
            }
            Request::Reported(Report::Commit(body)) if self.is_elsewhere(&body) => {
                Reply::Noted(NotedReply {
                    status: "elsewhere".to_owned(),
                    ..NotedReply::default()
                })
            }
            Request::Reported(report) => {
                let call = self.calls.keep(reply);
                self.post(Event::Reported { call, report });
                return;
            }
            Request::Tool(caller, tool) => {
                let call = self.calls.keep(reply);
                self.post(Event::ToolCalled { call, caller, tool });
                return;
            }
            Request::Bridge(report) => {
                self.post(Event::Bridge(BridgeEvent::Said(report)));
                Reply::Accepted
            }
            Request::HookGone => {
                self.look_for_gone_hooks();
                Reply::Accepted
            }
            Request::Screen => Reply::Screen(self.screen_report()),
            Request::Permission => report::permission(self.core.view()).map_or_else(
                || Reply::NotFound {
                    why: "the agent asks for no permission".to_owned(),
                },
                Reply::Permission,
            ),
            Request::Metrics => Reply::Metrics(Box::new(metrics::metrics(self.core.view()))),
            Request::Status => Reply::Status(Box::new(report::status(self.core.view()))),
            Request::History => Reply::History(report::history(self.core.view())),
            Request::Handoff { session } => match session.map(|id| id.parse().map_err(|_| id)) {
                Some(Ok(session)) if session != self.core.view().session.id => {
                    self.keep(Job::FindHandoff(session, reply));
                    return;
                }
                Some(Err(id)) => Reply::NotFound {
                    why: report::no_session(&id),
                },
                _ => Reply::Handoff(Box::new(report::handoff(self.core.view()))),
            },
            Request::Usage(query) => Reply::Usage(report::usage(self.core.view(), query)),
        };
        // The caller may have gone away.
        let _ = reply.send(answer);
    }

    /// Handles a hook that is answered at once.
    fn hook_fired(&mut self, event: &str, body: &[u8]) -> Reply {
        let mut refusal = None;
        match parse_hook(event, body) {
            Ok(parsed) => {
                self.calls.feed.publish(hook_event(event, &parsed));
                refusal = compaction::refusal(self.core.view(), &parsed);
                self.post(Event::Agent(parsed));
                if let Some(seen) = parse_mode(body) {
                    self.post(Event::Agent(seen));
                }
                if let Some((session, place)) = parse_place(body) {
                    self.works_at(session, place);
                }
            }
            Err(error) => tracing::warn!(%error, event, "a hook payload was ignored"),
        }
        self.transcript_grown();
        refusal.map_or(Reply::Accepted, |reason| Reply::Blocked {
            reason: reason.to_owned(),
        })
    }

    /// Handles the hook of a permission: it is held where a person may answer it from afar.
    fn permission_asked(&mut self, event: &str, body: &[u8], reply: oneshot::Sender<Reply>) {
        let Some(request) = parse_permission(body) else {
            tracing::warn!("the payload of a permission was ignored");
            let _ = reply.send(Reply::Accepted);
            return;
        };
        if let Ok(parsed) = parse_hook(event, body) {
            self.calls.feed.publish(hook_event(event, &parsed));
        }
        let call = if self.is_decided_from_afar() {
            Some(self.calls.keep(reply))
        } else {
            let _ = reply.send(Reply::Accepted);
            None
        };
        let request = Box::new(request);
        self.post(Event::PermissionAsked { call, request });
        if let Some(seen) = parse_mode(body) {
            self.post(Event::Agent(seen));
        }
        self.transcript_grown();
    }

    /// Reports the hooks that wait no more: their dialogs were answered at the desk.
    fn look_for_gone_hooks(&mut self) {
        for gone in self.calls.gone() {
            self.post(Event::HookGone(gone));
        }
    }

    /// Reports whether a device is paired by which a person decides.
    fn is_decided_from_afar(&self) -> bool {
        // A file that cannot be read admits no device.
        let devices = DeviceStore::new(self.paths.state_dir()).devices();
        let decides = |device: &Device| device.right == DeviceRight::Decide;
        devices.is_ok_and(|devices| devices.iter().any(decides))
    }

    /// Returns the agent's screen as text.
    fn screen_report(&self) -> ScreenReport {
        let screen = &self.pane.screen;
        let size = screen.size();
        ScreenReport {
            columns: size.columns(),
            rows: size.rows(),
            lines: screen
                .text()
                .lines()
                .map(|line| line.trim_end().to_owned())
                .collect(),
        }
    }

    /// Watches the files that the user and the agent may edit, and has threads read them: they may have been edited already.
    pub(super) fn watch_files(&mut self) {
        let scratchpad = self.agent.scratchpad.clone();
        self.services.watcher.watch_beside(&scratchpad);
        self.changed(&Changes::Any);
        self.request_file(FileRequest::OpenVersions);
        self.request_file(FileRequest::ReadDraft);
    }

    /// Schedules the reading of watched files that have changed.
    pub(super) fn changed(&mut self, changes: &Changes) {
        let transcript = self.services.transcript.as_deref();
        if transcript.is_some_and(|path| changes.concern(path)) {
            self.transcript_grown();
        }
        let record = self.services.client_record.as_deref();
        if record.is_some_and(|record| changes.include(record)) {
            self.add_deadline(Deadline::ClientRecord, RECORD_SETTLE);
        }
        let head_log = self.services.head_log.as_deref();
        if head_log.is_some_and(|log| changes.include(log)) {
            self.read_git();
            self.set_deadline(Deadline::Git, HEAD_SETTLE);
        }
        if changes.include(&self.agent.scratchpad) {
            self.set_deadline(Deadline::Scratchpad, NOTES_SETTLE);
        }
        if self.config_files.iter().any(|path| changes.concern(path)) {
            self.watch_config();
            self.set_deadline(Deadline::Config, CONFIG_SETTLE);
        }
    }

    /// Watches the files of the configuration, and for a directory of them that is not there yet the nearest one above it. The
    /// directory may be another one than before, of which the system gives no notices yet.
    fn watch_config(&mut self) {
        for file in &self.config_files {
            self.services.watcher.forget_beside(file);
            let absent = file.ancestors().skip(1).take_while(|above| !above.is_dir());
            for path in iter::once(file.as_path()).chain(absent) {
                self.services.watcher.watch_beside(path);
            }
        }
    }

    /// Watches the client's own record of its process. A client that is new here makes its directory at the start.
    pub(super) fn watch_client_record(&mut self) {
        if let Some(record) = &self.services.client_record {
            self.services.watcher.watch_beside(record);
        }
    }

    /// Has the transcript read on. A client that is new here makes the directory long after it has named the file.
    pub(super) fn transcript_grown(&mut self) {
        self.watch_client_record();
        if let Some(path) = &self.services.transcript {
            self.services.watcher.watch_towards(path);
            self.services.follower.send(FollowCommand::Grown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_no_one_waits_for_is_not_kept() {
        let mut calls = Calls::new(Feed::new("run"), Mailbox::default());
        let (reply, answer) = oneshot::channel();
        assert!(calls.keep_awaited(reply).is_some());
        drop(answer);
        let (reply, answer) = oneshot::channel();
        drop(answer);
        assert!(calls.keep_awaited(reply).is_none());
        assert_eq!(calls.gone().len(), 1);
    }
}
