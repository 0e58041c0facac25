//! The places of this supervisor's own: the project's lock, the control socket with its tokens, and the run's directory.
//!
//! Others remove them: a person who tidies up removes the directory of sockets and tokens, `git clean` the files in the project. So they are
//! watched, and made again when gone. If that directory cannot be made again, another one is used, and what is missing is
//! tried again once a second.
//!
//! ```text
//!   watch ──► look ──► Event::PlacesChecked, if anything was made again or cannot be ──► loop
//!     ▲        └─► what was made again is watched at once
//!     └── a notice, or a second if something is missing
//! ```

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
};

use pitstop_base::clean::chain;
use pitstop_core::{
    app::{
        Event,
        event::{MadeAgain, PlacesSeen},
    },
    config::load::paths::Paths,
};
use pitstop_server::{
    ApiError, Keys, Listening, RequestQueue, Secrets, SocketFile, bind_control_socket, serve,
};
use pitstop_store::{
    PrivateDir, agent_registry,
    lock::{Lock, LockError},
    run_dir::KeptRunDir,
};

use super::notices::Notices;

/// The time that the door may take to close.
const CLOSE_LIMIT: Duration = Duration::from_millis(300);

/// The places, as they were made at the start.
#[derive(Debug)]
pub struct Places {
    /// The project's lock.
    pub lock: Lock,
    /// The control socket, served.
    pub endpoint: Endpoint,
    /// The tokens.
    pub secrets: Secrets,
    /// The queue that answers requests on the socket.
    pub requests: RequestQueue,
    /// The locations at which they may be.
    pub paths: Paths,
    /// The project's name in sockets.
    pub hash: String,
    /// The project's directory.
    pub project: PathBuf,
    /// The directory in which agents register, where there is one.
    pub agents: Option<PrivateDir>,
    /// The run's directory, if it could be made.
    pub run: Option<KeptRunDir>,
}

/// The control socket, with the task that serves it. Once dropped, it is not served any more.
#[derive(Debug)]
pub struct Endpoint {
    socket: SocketFile,
    close: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Endpoint {
    /// Serves the control socket.
    pub fn open(
        (listening, socket): (Listening, SocketFile),
        keys: Keys,
        requests: RequestQueue,
    ) -> Self {
        let (close, closed) = oneshot::channel();
        let serving = tokio::spawn(serve(listening, keys, requests, async {
            // A sender that is gone means the same.
            let _ = closed.await;
        }));
        Self {
            socket,
            close,
            serving,
        }
    }
}

/// Opens the control socket at the first of these places that takes one. If a supervisor answers at any of them, the error is
/// [`ApiError::Live`].
pub fn bind(paths: &Paths, hash: &str) -> Result<(Listening, SocketFile), ApiError> {
    let mut first = None;
    for socket in paths.control_sockets(hash) {
        match bind_control_socket(&socket) {
            // Only a disk that is full or read-only is no reason to refuse.
            Err(error) if error.is_io() => first = first.or(Some(error)),
            bound => return bound,
        }
    }
    Err(first.unwrap_or_else(|| ApiError::PathTooLong {
        path: paths.run_dir().to_owned(),
        most: 0,
        found: paths.run_dir().as_os_str().len(),
    }))
}

/// The result of one look.
#[derive(Debug, Default)]
struct Looked {
    made: MadeAgain,
    missing: Vec<String>,
    project_gone: bool,
    /// True if another place is used than the usual one.
    elsewhere: bool,
}

/// The result of keeping the tokens where clients find them.
struct SecretsKept {
    /// True if they had to be written.
    written: bool,
    /// True if a directory in which they should be did not take them.
    refused: bool,
}

/// The task that looks after the places.
#[derive(Debug)]
pub struct Watch {
    stop: watch::Sender<bool>,
    looking: JoinHandle<Places>,
}

impl Watch {
    /// Looks after the places from now on.
    pub fn start(mut places: Places, events: mpsc::Sender<Event>) -> Self {
        let (stop, mut stopped) = watch::channel(false);
        let looking = tokio::spawn(async move {
            let (mut missing, mut gone) = (None, false);
            let mut notices = Notices::new("pitstop's own files");
            loop {
                // Their disk may be a slow one.
                let looked = tokio::task::block_in_place(|| {
                    notices.watch(places.files());
                    places.look()
                });
                let now = (!looked.missing.is_empty()).then(|| looked.missing.join("; "));
                let made = looked.made != MadeAgain::default();
                let again = now.is_some() || looked.elsewhere;
                if made || now != missing || looked.project_gone != gone {
                    missing.clone_from(&now);
                    gone = looked.project_gone;
                    let seen = PlacesSeen {
                        made: looked.made,
                        missing: now,
                        project_gone: looked.project_gone,
                        socket: places.endpoint.socket.path().to_owned(),
                        observe: places.secrets.observe_file().to_owned(),
                    };
                    // The loop is gone, then.
                    let _ = events.send(Event::PlacesChecked(Box::new(seen))).await;
                }
                if *stopped.borrow() {
                    return places;
                }
                if made && !again {
                    continue;
                }
                tokio::select! {
                    _ = stopped.wait_for(|stop| *stop) => return places,
                    () = notices.changed(again) => {}
                }
            }
        });
        Self { stop, looking }
    }

    /// Closes the control socket; returns the lock.
    pub async fn close(self) -> Option<Lock> {
        let _ = self.stop.send(true);
        let places = tokio::time::timeout(CLOSE_LIMIT, self.looking).await;
        let Places { lock, endpoint, .. } = places.ok()?.ok()?;
        drop(endpoint.close);
        let _ = tokio::time::timeout(CLOSE_LIMIT, endpoint.serving).await;
        Some(lock)
    }
}

impl Places {
    /// Returns each file and directory that should be where it was made.
    fn files(&self) -> Vec<PathBuf> {
        let mut files = vec![
            self.lock.path().to_owned(),
            self.endpoint.socket.path().to_owned(),
        ];
        files.extend(self.secrets.files().map(Path::to_owned));
        files.extend(self.run.iter().map(KeptRunDir::path));
        files.push(self.project.clone());
        files
    }

    /// Checks whether everything is where it was made, and makes again what is not.
    fn look(&mut self) -> Looked {
        let mut looked = Looked {
            project_gone: !self.project.is_dir(),
            ..Looked::default()
        };
        match self.lock.keep() {
            Ok(false) => {}
            Ok(true) => {
                looked.made.lock = true;
                self.begin_registry();
            }
            // Its places are those of the other one, whose tokens are not to be overwritten.
            Err(error @ LockError::Held(_)) => {
                looked.missing.push(chain(&error));
                return looked;
            }
            Err(error) => looked.missing.push(chain(&error)),
        }
        if !self.endpoint.socket.is_there() {
            match self.bind_again() {
                Ok(()) => looked.made.socket = true,
                Err(error) => looked.missing.push(chain(&error)),
            }
        }
        match self.keep_secrets() {
            Ok(kept) => {
                looked.made.socket |= kept.written;
                looked.elsewhere = kept.refused;
            }
            Err(error) => looked.missing.push(chain(&error)),
        }
        if let Some(run) = &mut self.run {
            match run.keep() {
                Ok(made) => looked.made.files = made,
                Err(error) => looked.missing.push(chain(&error)),
            }
        }
        looked
    }

    /// Makes the directory of the registry of agents again, and the registry if its file is gone: both lay beside the lock.
    fn begin_registry(&mut self) {
        let Some(agents) = &mut self.agents else {
            return;
        };
        let begun = PrivateDir::open_again(agents.path()).and_then(|again| {
            *agents = again;
            if agents.path().join(agent_registry::REGISTRY).is_file() {
                return Ok(());
            }
            agent_registry::begin(agents).map(drop)
        });
        if let Err(error) = begun {
            tracing::warn!(error = chain(&error), "agents cannot be registered");
        }
    }

    fn bind_again(&mut self) -> Result<(), ApiError> {
        let mut refused = None;
        for socket in self.paths.control_sockets(&self.hash) {
            match bind_control_socket(&socket) {
                Ok(bound) => {
                    let (keys, requests) = (self.secrets.keys(), self.requests.clone());
                    self.endpoint = Endpoint::open(bound, keys, requests);
                    return Ok(());
                }
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        refused.map_or(Ok(()), Err)
    }

    /// Keeps the tokens in the first directory that takes them, and wherever an agent was given their path.
    fn keep_secrets(&mut self) -> Result<SecretsKept, ApiError> {
        let socket = self.endpoint.socket.path();
        let (mut stand, mut written, mut refused) = (false, false, None);
        for dir in self.paths.run_dirs() {
            if stand && !self.secrets.is_kept_in(dir) {
                continue;
            }
            match self.secrets.keep(dir, socket) {
                Ok(again) => (stand, written) = (true, written || again),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        match refused {
            Some(error) if !stand => Err(error),
            refused => Ok(SecretsKept {
                written,
                refused: refused.is_some(),
            }),
        }
    }
}

/// Writes the tokens into the first directory that takes them.
pub fn write_secrets(
    paths: &Paths,
    hash: &str,
    socket: &Path,
    status_line: Option<&OsStr>,
) -> Result<Secrets, ApiError> {
    let refused = match Secrets::create(paths.run_dir(), hash, socket, status_line) {
        // Only a disk that is full or read-only is no reason to refuse.
        Err(error) if error.is_io() => error,
        usual => return usual,
    };
    let mut others = paths.run_dirs().skip(1);
    let other = others.find_map(|dir| Secrets::create(dir, hash, socket, status_line).ok());
    other.ok_or(refused)
}
