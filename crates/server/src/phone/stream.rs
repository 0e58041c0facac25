//! The events of a session on their way to a device.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::response::Response;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::Gateway;
use super::devices::Device;
use crate::{Connection, stream::event_stream};

/// The interval at which is checked that the device is still paired: one that was revoked is out within a second.
const CHECK: Duration = Duration::from_millis(500);

/// The longest time a device may take for a piece before it is dropped.
const READER_LIMIT: Duration = Duration::from_secs(5);

/// The most pieces that may wait for the device.
const PIECES: usize = 4;

/// The size of a piece, in bytes.
const PIECE: usize = 16 * 1024;

/// A stream of events to a device.
pub(super) struct Forward {
    pub gateway: Gateway,
    pub device: Device,
    pub connection: Arc<Connection>,
    /// A value that becomes true when the door closes.
    pub closing: watch::Receiver<bool>,
    /// What resolves once the stream has to end for newer ones of its device.
    pub replaced: oneshot::Receiver<()>,
}

impl Forward {
    /// Begins to pass on the events of a session, of which these bytes have come already.
    pub(super) fn start(self, session: UnixStream, first: Vec<u8>) -> Response {
        // From here on the connection has no time limit.
        self.connection.streams.store(true, Ordering::Release);
        let (out, pieces) = mpsc::channel(PIECES);
        tokio::spawn(self.run(session, first, out));
        event_stream(pieces)
    }

    async fn run(mut self, mut session: UnixStream, first: Vec<u8>, out: mpsc::Sender<Vec<u8>>) {
        if !first.is_empty() && !self.send(&out, first).await {
            return;
        }
        let mut closing = self.closing.clone();
        let mut check = interval(CHECK);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let mut piece = Vec::with_capacity(PIECE);
            let read = tokio::select! {
                read = session.read_buf(&mut piece) => read.unwrap_or(0),
                _ = check.tick() => {
                    if self.gateway.is_paired(&self.device) {
                        continue;
                    }
                    tracing::info!(device = self.device.name, "the events of a revoked device were ended");
                    0
                }
                () = out.closed() => 0,
                _ = &mut self.replaced => 0,
                _ = closing.wait_for(|closing| *closing) => 0,
            };
            if read == 0 || !self.send(&out, piece).await {
                return;
            }
        }
    }

    /// Sends a piece; returns false if the device takes none any more.
    async fn send(&self, out: &mpsc::Sender<Vec<u8>>, piece: Vec<u8>) -> bool {
        if let Ok(sent) = timeout(READER_LIMIT, out.send(piece)).await {
            return sent.is_ok();
        }
        tracing::warn!(
            device = self.device.name,
            "a device that does not read its events was dropped"
        );
        self.connection.lost.notify_one();
        false
    }
}
