//! What a logout does to a session: systemd's login manager may end all processes of a user whose last login is over.
//!
//! A user who lingers has a service manager that outlives logins: there a supervisor gets a scope of its own, which belongs to no
//! login. Without lingering that manager ends with the last login, and all that runs below it: then the supervisor stays where it was
//! started, and `KillUserProcesses` decides.

use std::{env, path::Path, process::Stdio, time::Duration};

use tokio::{process::Command, time::timeout};

/// The time that the login manager may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// What becomes of a session at a logout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logout {
    /// It goes on, because the user lingers.
    Lingers,
    /// It goes on, because processes are not ended.
    Spared,
    /// It is ended.
    Ended,
    /// There is no login manager.
    NoManager,
    /// The login manager does not answer.
    Unknown,
}

impl Logout {
    /// Asks the login manager.
    pub(super) async fn ask_login() -> Self {
        if !Path::new("/run/systemd/system").is_dir() {
            return Self::NoManager;
        }
        if user_lingers() {
            return Self::Lingers;
        }
        let asked = Command::new("busctl")
            .args(["--system", "get-property", "org.freedesktop.login1"])
            .args(["/org/freedesktop/login1", "org.freedesktop.login1.Manager"])
            .arg("KillUserProcesses")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        match timeout(ANSWER_LIMIT, asked).await {
            Ok(Ok(answer)) => match answer.stdout.trim_ascii() {
                b"b false" => Self::Spared,
                b"b true" => Self::Ended,
                _ => Self::Unknown,
            },
            _ => Self::Unknown,
        }
    }
}

/// Reports whether a supervisor gets a scope of its own: the user lingers, and the user's service manager runs.
pub(super) fn has_scope() -> bool {
    let manager = env::var_os("XDG_RUNTIME_DIR")
        .is_some_and(|run| Path::new(&run).join("systemd/private").exists());
    manager && user_lingers()
}

fn user_lingers() -> bool {
    let user = env::var_os("USER").filter(|user| !user.is_empty());
    user.is_some_and(|user| Path::new("/var/lib/systemd/linger").join(user).exists())
}
