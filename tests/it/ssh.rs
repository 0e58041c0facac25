//! A session that was begun over a real ssh, whose connection is dropped in the middle of a turn, and a logout behind it.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::kit::{
    client::live_client,
    messages_api::Answer,
    poll,
    supervisor::{Launch, PITSTOP, SOON},
    terminal::Terminal,
};

/// A server of ssh on the loopback interface, for this user alone.
struct Sshd {
    place: TempDir,
    port: u16,
    server: Child,
}

impl Sshd {
    #[track_caller]
    fn start() -> Self {
        let program = ["/usr/sbin/sshd", "/usr/local/sbin/sshd"].map(Path::new);
        let program = program.into_iter().find(|path| path.exists());
        let program = program.expect("this test needs sshd (Debian: openssh-server)");
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name).display().to_string();
        for key in ["host", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", &path(key)])
                .status();
            assert!(made.unwrap().success());
        }
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n",
            path("host"),
            path("user.pub"),
        );
        fs::write(path("config"), config).unwrap();
        if rustix::process::geteuid().is_root() {
            fs::create_dir_all("/run/sshd").unwrap();
        }
        let server = Command::new(program)
            .args(["-D", "-e", "-f", &path("config")])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let listens = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        assert!(poll::within(SOON, listens), "sshd does not listen");
        Self {
            place,
            port,
            server,
        }
    }

    /// Runs a command over a connection of its own, on a terminal there.
    fn terminal(&self, launch: &Launch, command: &str, size: (u16, u16)) -> Terminal {
        let environment = launch.environment();
        let exports = environment
            .iter()
            .map(|(name, value)| format!("export {}='{}'; ", name.display(), value.display()));
        let exports: Vec<String> = exports.collect();
        let directory = launch.project().display();
        let there = format!("{}cd {directory} && exec {command}", exports.concat());
        let known = self.place.path().join("known");
        let key = self.place.path().join("user");
        let args = [
            "-F",
            "/dev/null",
            "-tt",
            "-p",
            &self.port.to_string(),
            "-i",
            &key.display().to_string(),
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "LogLevel=ERROR",
            "-o",
            &format!("UserKnownHostsFile={}", known.display()),
            "127.0.0.1",
            &there,
        ];
        launch.terminal("ssh", args, size)
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn status(launch: &Launch) -> Option<Value> {
    let output = launch.command(&["status", "--json"]).output().ok()?;
    serde_json::from_slice(&output.stdout).ok()
}

fn state(launch: &Launch) -> String {
    let status = status(launch).unwrap_or_default();
    status["agent"]["state"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE, and ssh with its server"]
fn a_turn_of_the_real_client_goes_on_when_ssh_is_dropped_and_the_runtime_directory_is_gone() {
    let sshd = Sshd::start();
    let launch = Launch::live();
    launch
        .api()
        .answer([Answer::text("Understood."), Answer::Stall]);
    let begin = format!(
        "{PITSTOP} --new --set 'agent.command=\"{}\"' -- --permission-mode manual",
        live_client().display()
    );
    let first = sshd.terminal(&launch, &begin, (140, 45));
    let idle = || state(&launch) == "idle";
    assert!(poll::within(SOON, idle), "{}", first.screen_text());
    first.send("begin");
    first.wait_for_text("begin", SOON);
    first.send("\r");
    launch.api().wait_for_calls(1, SOON);
    assert!(poll::within(SOON, idle), "{}", first.screen_text());
    first.send("and now the long one");
    first.wait_for_text("the long one", SOON);
    first.send("\r");
    launch.api().wait_for_calls(2, SOON);
    assert!(poll::within(SOON, || state(&launch) == "busy"));
    let before = status(&launch).unwrap();

    // The connection is gone without a word, and the logout takes the runtime directory with it.
    first.signal(Signal::KILL);
    first.wait_for_exit(SOON);
    let run: PathBuf = launch.the_home().path("run");
    fs::remove_dir_all(&run).unwrap();
    assert_eq!(state(&launch), "busy");

    // Another login, in a terminal of another size.
    fs::create_dir(&run).unwrap();
    fs::set_permissions(&run, fs::Permissions::from_mode(0o700)).unwrap();
    let again = sshd.terminal(&launch, PITSTOP, (100, 30));
    again.wait_for_text("and now the long one", SOON);
    let after = status(&launch).unwrap();
    for one in ["pid", "session_id", "iteration"] {
        assert_eq!(after[one], before[one]);
    }
    assert_eq!(after["agent"]["state"], "busy");
    assert_eq!(launch.api().main_calls().len(), 2, "nothing was said again");

    let supervisor = after["pid"]
        .as_i64()
        .and_then(|pid| Pid::from_raw(pid as i32));
    kill_process(supervisor.unwrap(), Signal::TERM).unwrap();
    again.wait_for_exit(SOON);
}
