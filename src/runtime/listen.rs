//! The facts read from the pane of an agent that reports nothing: signals in its text, commands in its recording. If no hooks
//! arrive, also the transcript of one that should report.

use std::time::{Duration, Instant};

use pitstop_agent::claude::projects::directory_of;
use pitstop_core::app::{
    Event,
    event::{PaneEvent, ReadEvent},
};
use pitstop_handoff::signal;
use pitstop_terminal::screen::{Mark, ScreenFact};

use super::{Shell, follower::FollowCommand};

/// The time that the pane must have been quiet before its text is read: an unfinished message is not a message yet.
const SETTLE: Duration = Duration::from_millis(250);

/// The longest time that a pane that is never quiet is waited for.
const SETTLE_LIMIT: Duration = Duration::from_millis(600);

/// The number of lines of the pane that are searched.
const LINES: usize = 500;

/// The pause before a transcript that no hook has named is looked for, once the pane has printed something.
const SEEK_TIME: Duration = Duration::from_millis(250);

/// The longest pause between two looks: each one in vain doubles it, because the client writes after it has drawn.
const SEEK_LIMIT: Duration = Duration::from_secs(4);

/// The state of waiting for text and for a transcript.
#[derive(Debug, Default)]
pub struct Listening {
    /// The time since which the pane has text that was not read, and the time at which it will be.
    text_due: Option<(Instant, Instant)>,
    /// The time at which a transcript is looked for.
    seek_due: Option<Instant>,
    /// The pause after the next look in vain.
    seek_pause: Duration,
    /// True if the program marks its commands: it is a shell, and the text that it shows is their output.
    is_shell: bool,
}

impl Listening {
    /// Returns the next moment at which there is something to do.
    pub fn deadline(&self) -> Option<Instant> {
        let text = self.text_due.map(|(_, due)| due);
        text.into_iter().chain(self.seek_due).min()
    }
}

impl Shell {
    /// Schedules the reading after the pane has printed something.
    pub(super) fn listen(&mut self) {
        let now = Instant::now();
        if self.agent.kind.reports() {
            if self.services.transcript.is_none() && !self.core.view().session.agent.hooked {
                let due = self.pane.listening.seek_due.unwrap_or(now + SEEK_TIME);
                self.pane.listening.seek_due = Some(due.min(now + SEEK_TIME));
                self.pane.listening.seek_pause = SEEK_TIME;
            }
            return;
        }
        if self.pane.listening.is_shell {
            return;
        }
        let since = self.pane.listening.text_due.map_or(now, |(since, _)| since);
        let due = (now + SETTLE).min(since + SETTLE_LIMIT);
        self.pane.listening.text_due = Some((since, due));
    }

    /// Reads what is due.
    pub(super) fn listened(&mut self, now: Instant) {
        let listening = &mut self.pane.listening;
        let text = listening.text_due.take_if(|(_, due)| *due <= now);
        if listening.seek_due.take_if(|due| *due <= now).is_some() {
            self.seek_transcript(now);
        }
        if text.is_some() {
            let signals = signal::parse_pane(&self.pane.screen.settled_text(LINES));
            let iteration = self.core.view().session.iteration();
            self.post(Event::Read(ReadEvent::PaneSignals { iteration, signals }));
        }
    }

    /// Looks for the transcript by the session's id, because hooks may be switched off; the id is ours, unless the client ignores it.
    fn seek_transcript(&mut self, now: Instant) {
        if self.services.transcript.is_some()
            || self.core.view().session.agent.hooked
            || self.pane.pty.is_none()
        {
            return;
        }
        let session = self.core.view().session.id;
        if let Some(path) = self.agent.transcript_of(session) {
            tracing::info!("no hook has come: the transcript was found by the session's id");
            if let Some(place) = directory_of(&path) {
                self.works_at(session, place);
            }
            self.follow(session, path.to_string_lossy().into_owned());
            return;
        }
        let pause = self.pane.listening.seek_pause;
        self.pane.listening.seek_due = Some(now + pause);
        self.pane.listening.seek_pause = (pause * 2).min(SEEK_LIMIT);
    }

    /// Handles a fact from the emulator that is not a cell.
    pub(super) fn screen_fact(&mut self, fact: ScreenFact) {
        if let ScreenFact::Mark(mark) = fact
            && !self.agent.kind.reports()
        {
            self.marked(mark);
        }
        self.post(Event::Pane(PaneEvent::Screen(fact)));
    }

    fn marked(&mut self, mark: Mark) {
        if matches!(mark, Mark::OutputStart) {
            self.pane.listening.is_shell = true;
            self.pane.listening.text_due = None;
        }
        let ended = matches!(mark, Mark::CommandEnd | Mark::PromptStart);
        if !ended {
            return;
        }
        let path = self
            .pane
            .recording
            .as_ref()
            .map(|(_, recording)| recording.path().to_owned());
        if let Some((path, flushing)) = path.zip(self.flush_recording()) {
            self.services.follower.send(FollowCommand::Recorded(
                self.core.view().session.iteration(),
                path,
                flushing,
            ));
        }
    }
}
