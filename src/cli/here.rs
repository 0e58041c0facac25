//! The place that a command was called in: the project, its configuration, the store, and the environment of checkpoints.

use std::{
    env,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use super::out::{self, Failure};
use pitstop_base::{clean::chain, process};
use pitstop_core::{
    api::{endpoint::Endpoint, wire::StatusReport},
    config::{
        Config,
        load::{self, Flags, paths::Paths},
    },
    lineage::Project,
};
use pitstop_server::client::ApiClient;
use pitstop_store::{
    FilesError, Opened, PrivateDir, Store, StoreError, StoreOptions, StoreTarget,
    lock::{self, Holder},
};

/// The time for which a supervisor that ends is waited for: more than it gives an agent that ignores every signal but the last.
const END_LIMIT: Duration = Duration::from_secs(20);

/// The time for which a supervisor that does not answer is waited for.
const SILENCE_LIMIT: Duration = Duration::from_secs(3);

/// The time that a supervisor may take to say whether it ends.
const ANSWER_LIMIT: Duration = Duration::from_millis(500);

/// The pause between two questions, and the time after which a person is shown what is waited for.
const PAUSE: Duration = Duration::from_millis(20);
const SHOWN_AFTER: Duration = Duration::from_millis(400);

/// The directory that a command was called in, and all that follows from it.
#[derive(Debug)]
pub struct Here {
    /// The directory, without links.
    pub directory: PathBuf,
    /// The paths of all files.
    pub paths: Paths,
    /// The configuration; the defaults where it has faults.
    pub config: Config,
    /// True if the configuration has faults.
    pub faulty: bool,
    /// The place of the store.
    pub target: StoreTarget,
    /// The project as the records name it.
    pub project: Project,
}

impl Here {
    /// Finds all of this.
    pub fn find(flags: &Flags) -> Result<Self, Failure> {
        let directory = out::project()?;
        let paths = Paths::of_process(&directory)?;
        // A fault in the configuration is reported by `pitstop check`; the store is then that of the defaults.
        let loaded = load::load(&paths, flags);
        let faulty = loaded.is_err();
        let config = loaded.map_or_else(|_| Config::default(), |loaded| loaded.config);
        let target = StoreTarget::new(config.store.url.as_deref(), paths.state_dir())?;
        let project = Project::new(&directory, &process::host_name());
        Ok(Self {
            directory,
            paths,
            config,
            faulty,
            target,
            project,
        })
    }

    /// Finds the same for a command that cannot go on with faults in the configuration.
    pub fn find_configured(flags: &Flags) -> Result<Self, Failure> {
        let here = Self::find(flags)?;
        here.require_config()?;
        Ok(here)
    }

    /// Refuses a configuration with faults: it may name another store, or another environment.
    pub fn require_config(&self) -> Result<(), Failure> {
        if self.faulty {
            let error = "the configuration has faults";
            return Err(out::misused(
                error,
                "`pitstop check` shows them, with the same flags",
            ));
        }
        Ok(())
    }

    /// Reports whether there is a store to read: a command that only reads makes none.
    pub fn has_store(&self) -> bool {
        !matches!(&self.target, StoreTarget::Sqlite(file) if !file.exists())
    }

    /// Returns the project's own files, or those kept elsewhere if the project cannot be written; only if they exist.
    pub fn open_files(&self) -> Result<Option<PrivateDir>, FilesError> {
        if let Some(files) = PrivateDir::find_project(&self.directory)? {
            return Ok(Some(files));
        }
        self.find_kept_files()
    }

    /// Returns the project's files that are kept in the state directory, if they exist.
    fn find_kept_files(&self) -> Result<Option<PrivateDir>, FilesError> {
        match load::paths::project_hash(&self.directory) {
            Ok(hash) => PrivateDir::find_beside(self.paths.state_dir(), &hash),
            Err(_) => Ok(None),
        }
    }

    /// Returns the supervisor that holds the lock of this project, if one does.
    pub fn find_holder(&self) -> Option<Holder> {
        holder_of(&self.paths, &self.directory)
    }

    /// Opens the store and reads it, with what waits in a file for it.
    pub fn read_store<T>(
        &self,
        read: impl AsyncFnOnce(&Store) -> Result<T, StoreError>,
    ) -> Result<T, Failure> {
        out::runtime()?.block_on(async {
            let store = self.open_store(true).await?;
            let files = self.find_kept_files();
            let shown = files.and_then(|files| files.map_or(Ok(()), |kept| store.show_kept(&kept)));
            if let Err(error) = shown {
                tracing::warn!(
                    error = chain(&error),
                    "what waits for the database is not shown"
                );
            }
            let found = read(&store).await;
            store.close().await;
            Ok(found?)
        })
    }

    async fn open_store(&self, only_reads: bool) -> Result<Store, StoreError> {
        let options = StoreOptions {
            only_reads,
            ..StoreOptions::new(self.target.clone())
        };
        let Opened { store, warnings } = Store::open(options).await?;
        for warning in warnings {
            out::complain(&warning.to_string(), "`pitstop doctor` says more");
        }
        Ok(store)
    }

    /// Opens the store, does the work, and closes it with everything written.
    pub fn with_store<T>(
        &self,
        work: impl AsyncFnOnce(&Store) -> Result<T, StoreError>,
    ) -> Result<T, Failure> {
        out::runtime()?.block_on(async {
            let store = self.open_store(false).await?;
            let done = work(&store).await;
            let error = store.error();
            let lost = store.close().await;
            let done = done?;
            if lost > 0 {
                let why = error.unwrap_or_else(|| "it was closed".to_owned());
                return Err(out::failed(
                    format!("the database cannot be written: {why}"),
                    "nothing was changed; `pitstop doctor` says more",
                ));
            }
            Ok(done)
        })
    }

    /// Returns the environment that checkpoints are filed under here.
    pub fn environment(&self) -> Environment {
        Environment::of(&self.directory, &self.config)
    }
}

/// Returns the supervisor that holds the lock of the project in this directory, if one does and the lock can be read.
pub fn holder_of(paths: &Paths, project: &Path) -> Option<Holder> {
    let hash = load::paths::project_hash(project).ok()?;
    lock::holder(paths.state_dir(), &hash).ok().flatten()
}

/// Returns the supervisor that holds the lock of the project in this directory and goes on. One that ends is waited for. So is one
/// that does not answer: its socket is closed a moment before its end, and opened a moment after its start.
pub fn lasting_holder(paths: &Paths, project: &Path) -> Option<Holder> {
    let began = Instant::now();
    let mut is_shown = false;
    loop {
        let holder = holder_of(paths, project)?;
        let limit = match is_quitting(project) {
            Some(false) => return Some(holder),
            Some(true) => END_LIMIT,
            None => SILENCE_LIMIT,
        };
        let waited = began.elapsed();
        if waited > limit {
            return Some(holder);
        }
        if waited > SHOWN_AFTER && !is_shown {
            is_shown = true;
            eprintln!("pitstop: waiting for the session before to end");
        }
        thread::sleep(PAUSE);
    }
}

/// Returns whether the supervisor of a project ends; `None` if it does not answer.
fn is_quitting(project: &Path) -> Option<bool> {
    let file = load::paths::secrets_file_of(project, "control").ok()?;
    let client = ApiClient::from_file(&file).ok()?;
    let deadline = Instant::now() + ANSWER_LIMIT;
    let answer = client.get(Endpoint::Status.path(), deadline).ok()?;
    // One of another version that says nothing of it goes on.
    let report = serde_json::from_slice::<StatusReport>(&answer.body);
    (answer.status == 200).then(|| report.is_ok_and(|report| report.quitting))
}

/// The environment that checkpoints are filed under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// Its name.
    pub name: String,
    /// True if it was chosen. One that is only the directory's name is this project's alone: another directory
    /// of the same name is another environment.
    pub chosen: bool,
}

impl Environment {
    /// Returns `PITSTOP_ENV`, else `[store] environment`, else the name of the project's directory.
    pub fn of(project: &std::path::Path, config: &Config) -> Self {
        let chosen = env::var("PITSTOP_ENV")
            .ok()
            .filter(|name| !name.is_empty())
            .or_else(|| config.store.environment.clone());
        Self {
            chosen: chosen.is_some(),
            name: chosen.unwrap_or_else(|| {
                project.file_name().map_or_else(
                    || "/".to_owned(),
                    |name| name.to_string_lossy().into_owned(),
                )
            }),
        }
    }
}
