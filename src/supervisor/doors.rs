//! The doors of the API: the control socket with its tokens, and the port.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};
use uuid::Uuid;

use crate::runtime::{
    agent::AgentPlan,
    places::{self, Endpoint, Places, Watch},
};
use pitstop_core::app::Event;
use pitstop_server::{Attachment, Call, Feed, Mailbox, RequestQueue};
use pitstop_store::{PrivateDir, run_dir::KeptRunDir};

use super::{Start, StartError, claim::Claim, port::Port};

/// The number of calls that may wait for the loop.
const CALLS_IN_FLIGHT: usize = 1024;

/// The number of terminals that may wait for the loop.
const ATTACHMENTS_IN_FLIGHT: usize = 4;

/// The time that the port may take to close.
const CLOSE_LIMIT: Duration = Duration::from_millis(300);

/// The opened doors, with their channels.
pub(super) struct Opened {
    /// The calls that reach us.
    pub calls: mpsc::Receiver<Call>,
    /// The terminals that want to be attached.
    pub attachments: mpsc::Receiver<Attachment>,
    /// The feed in which events are published.
    pub feed: Feed,
    /// The orders for the client's own side of the session.
    pub mailbox: Mailbox,
    /// The file with the right to report, for hooks.
    pub observe: PathBuf,
    /// The handle that closes the doors.
    pub doors: Doors,
}

/// The open doors, and the places that are looked after, the project's lock among them.
pub(super) struct Doors {
    port: JoinHandle<()>,
    stop: watch::Sender<bool>,
    places: Watch,
}

impl Doors {
    /// Opens the doors of a claimed project. If one of the watched places is removed later, that is reported to
    /// `events`.
    pub async fn open(
        claim: Claim,
        start: &Start,
        plan: &AgentPlan,
        events: mpsc::Sender<Event>,
    ) -> Result<Opened, StartError> {
        let Claim {
            lock, state, hash, ..
        } = claim;
        let paths = &start.paths;
        let bound = places::bind(paths, &hash)?;
        let status_line = plan.user_status_line().map(OsString::from);
        let secrets = places::write_secrets(paths, &hash, bound.1.path(), status_line.as_deref())?;
        let observe = secrets.observe_file().to_owned();
        let (calls_in, calls) = mpsc::channel(CALLS_IN_FLIGHT);
        let mark = Uuid::new_v4().simple().to_string();
        let feed = Feed::new(mark.get(..8).unwrap_or(&mark));
        let (attachments_in, attachments) = mpsc::channel(ATTACHMENTS_IN_FLIGHT);
        let requests = RequestQueue::new(calls_in, feed.clone(), attachments_in);
        let mailbox = requests.mailbox.clone();
        let (stop, stopped) = watch::channel(false);
        let scripts = (secrets.keys(), requests.clone());
        let port = Port::new(&start.config.api, paths, scripts, stopped)?;
        let port = port.start().await?;
        let endpoint = Endpoint::open(bound, secrets.keys(), requests.clone());
        let places = Places {
            project: start.project.clone(),
            lock,
            endpoint,
            secrets,
            requests,
            paths: paths.clone(),
            hash,
            agents: PrivateDir::open_again(state.path()).ok(),
            run: plan.files.clone().map(KeptRunDir::new),
        };
        Ok(Opened {
            calls,
            attachments,
            feed,
            mailbox,
            observe,
            doors: Self {
                port,
                stop,
                places: Watch::start(places, events),
            },
        })
    }

    /// Closes the doors, and releases the project's lock.
    pub async fn close(self) {
        let _ = self.stop.send(true);
        self.places.close().await;
        let _ = tokio::time::timeout(CLOSE_LIMIT, self.port).await;
    }
}
