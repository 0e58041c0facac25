//! The recording of the pane, and the reading of one.

use std::time::Instant;

use crate::runtime::{Shell, files::FileRequest, hosted::recording_failed};
use pitstop_base::clean::chain;
use pitstop_core::{
    app::{Event, event::ReadEvent},
    lineage::{IterationId, RunId},
};
use pitstop_store::run_dir::RECORDING;
use pitstop_terminal::{
    PaneSize,
    pane::{
        recording::{Flushing, Recording},
        replay::Cast,
    },
};

/// The most of a recording that is played, from its start, in bytes. It is held in memory, about as large as it is on disk.
const RECORDING_LIMIT: usize = 64 << 20;

impl Shell {
    /// Records the input that the human sends to the agent, if that is configured. The mouse is not recorded.
    pub(super) fn record_input(&mut self, bytes: &[u8]) {
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

    /// Starts to record the pane of an iteration, if that is configured.
    pub(super) fn start_recording(&mut self, iteration: IterationId, size: PaneSize) {
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
                    crate::runtime::wall().timestamp(),
                    self.core.view().config.recording.max_size,
                )
                .map_err(|error| chain(&error))
            });
        match opened {
            Ok(recording) => self.pane.recording = Some((Instant::now(), recording)),
            Err(error) => tracing::warn!(error, "the pane is not recorded"),
        }
    }

    /// Continues the recording, if there is one, in the file of this iteration. What was drawn before is in another file: its text
    /// comes first, to make the rest readable.
    pub(super) fn record_on(&mut self, iteration: IterationId) {
        if !self.end_recording() {
            return;
        }
        let size = self.pane.screen.size();
        self.start_recording(iteration, size);
        let text = self.pane.screen.tail_text(usize::from(size.rows()));
        let drawn = format!("\x1b[H\x1b[2J{}", text.replace('\n', "\r\n"));
        if let Some((begun, recording)) = &mut self.pane.recording
            && let Err(error) = recording.output(begun.elapsed(), drawn.as_bytes())
        {
            recording_failed(&error);
        }
    }

    /// Ends the recording on the thread for files, so that the loop does not wait for the disk; returns true if one was handed over.
    pub(in crate::runtime) fn end_recording(&mut self) -> bool {
        let ended = self.pane.recording.take();
        ended.is_some_and(|(_, recording)| self.files.send(FileRequest::EndRecording(recording)))
    }

    /// Starts to write the recorded bytes to the file; `None` if nothing is recorded any more.
    pub(in crate::runtime) fn flush_recording(&mut self) -> Option<Flushing> {
        let (_, recording) = self.pane.recording.as_mut()?;
        recording.flush().inspect_err(recording_failed).ok()
    }

    /// Reads and parses a recording on a thread for slow work: it may have many megabytes.
    pub(super) fn read_recording(&mut self, run: &RunId, iteration: IterationId) {
        let flushing = self.flush_recording();
        let ended = self.files.caught_up();
        let directory = match &self.agent.files {
            Some(files) => files
                .iteration_of(run, iteration)
                .map_err(|error| chain(&error))
                .and_then(|found| found.ok_or_else(|| "its files are gone".to_owned())),
            None => Err("nothing is kept in this directory".to_owned()),
        };
        self.spawn_blocking(move || {
            if let Some(flushing) = flushing {
                flushing.wait();
            }
            // One that has just ended is written by the thread for files.
            tokio::runtime::Handle::current().block_on(ended);
            let cast = directory.and_then(|directory| {
                let bytes = directory
                    .read_start(RECORDING, RECORDING_LIMIT)
                    .map_err(|error| chain(&error))?;
                let bytes = bytes.ok_or("it was not recorded")?;
                let mut cast = Cast::parse(&bytes).map_err(|error| chain(&error))?;
                cast.cut |= bytes.len() == RECORDING_LIMIT;
                Ok(cast)
            });
            Event::Read(ReadEvent::Recording { iteration, cast })
        });
    }
}
