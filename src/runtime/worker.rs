//! A thread for work that may block. It is started by the first order: many runs never have one.

use std::{
    io,
    sync::{Arc, mpsc as std_mpsc},
    thread,
};

use tokio::sync::mpsc;

use pitstop_core::app::Event;

/// The work that the thread does until no order can come any more.
type Work<T> = dyn Fn(&std_mpsc::Receiver<T>, &mpsc::Sender<Event>) + Send + Sync;

/// The handle by which orders are sent to the thread.
pub struct Worker<T> {
    name: &'static str,
    work: Arc<Work<T>>,
    events: mpsc::Sender<Event>,
    orders: Option<std_mpsc::Sender<T>>,
}

impl<T: Send + 'static> Worker<T> {
    /// Creates the handle of a thread of this name that does `work` and sends its results to `events`.
    pub fn new(
        name: &'static str,
        work: impl Fn(&std_mpsc::Receiver<T>, &mpsc::Sender<Event>) + Send + Sync + 'static,
        events: mpsc::Sender<Event>,
    ) -> Self {
        Self {
            name,
            work: Arc::new(work),
            events,
            orders: None,
        }
    }

    /// Sends an order. Returns false, with the reason in the log, if there is no thread to take it: it could not be started, or a
    /// fault of its own has ended it.
    #[allow(clippy::must_use_candidate)] // called for what it does
    pub fn send(&mut self, order: T) -> bool {
        if self.orders.is_none() {
            self.orders = self
                .start()
                .inspect_err(|error| tracing::warn!(%error, name = self.name, "a thread could not be started"))
                .ok();
        }
        let orders = self.orders.as_ref();
        orders.is_some_and(|orders| orders.send(order).is_ok())
    }

    fn start(&self) -> io::Result<std_mpsc::Sender<T>> {
        let (sender, orders) = std_mpsc::channel();
        let (work, events) = (Arc::clone(&self.work), self.events.clone());
        thread::Builder::new()
            .name(self.name.to_owned())
            .spawn(move || work(&orders, &events))?;
        Ok(sender)
    }
}
