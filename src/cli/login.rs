//! What a logout does to a session: systemd's login manager may end all processes of a user whose last login is over.
//!
//! A user who lingers has a service manager that outlives logins: there a supervisor gets a scope of its own, which belongs to no
//! login. Without lingering that manager ends with the last login, and all that runs below it: then the supervisor stays where it was
//! started, and `KillUserProcesses` decides.

use std::{env, path::Path, process::Stdio, time::Duration};

use tokio::{process::Command, time::timeout};

/// The time that the login manager may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// Asks the login manager whether it ends a user's processes; `None` if it does not answer.
pub(super) async fn kills_user_processes() -> Option<bool> {
    let asked = Command::new("busctl")
        .args(["--system", "get-property", "org.freedesktop.login1"])
        .args(["/org/freedesktop/login1", "org.freedesktop.login1.Manager"])
        .arg("KillUserProcesses")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    match timeout(ANSWER_LIMIT, asked)
        .await
        .ok()?
        .ok()?
        .stdout
        .trim_ascii()
    {
        b"b false" => Some(false),
        b"b true" => Some(true),
        _ => None,
    }
}

/// Reports whether systemd runs the machine: without it there is no login manager that ends processes.
pub(super) fn has_manager() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

/// Reports whether a supervisor gets a scope of its own: the user lingers, and the user's service manager runs.
pub(super) fn has_scope() -> bool {
    let manager = env::var_os("XDG_RUNTIME_DIR")
        .is_some_and(|run| Path::new(&run).join("systemd/private").exists());
    manager && user_lingers()
}

/// Reports whether what a user runs outlives the user's logins.
pub(super) fn user_lingers() -> bool {
    let user = env::var_os("USER").filter(|user| !user.is_empty());
    user.is_some_and(|user| Path::new("/var/lib/systemd/linger").join(user).exists())
}
