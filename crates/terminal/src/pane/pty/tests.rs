//! Tests of a real PTY that runs `sh`, `cat` and `stty`.

#![allow(clippy::disallowed_methods, reason = "real programs take real time")]

use std::ffi::OsString;
use std::time::{Duration, Instant};

use super::*;

/// The longest wait, enough for a loaded machine; only a failing test waits so long.
const LIMIT: Duration = Duration::from_secs(30);

struct Pane {
    pty: Pty,
    messages: mpsc::Receiver<PtyMessage>,
    runtime: tokio::runtime::Runtime,
    output: Vec<u8>,
    exit: Option<PaneExit>,
    ended: bool,
    stops: usize,
    directory: tempfile::TempDir,
}

impl Pane {
    fn run(script: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (sender, messages) = channel();
        let pty = spawn(
            spec(script, directory.path()),
            PaneSize::new(97, 31),
            7,
            &sender,
        )
        .unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let (output, exit) = (Vec::new(), None);
        Self {
            pty,
            messages,
            runtime,
            output,
            exit,
            ended: false,
            stops: 0,
            directory,
        }
    }

    /// Takes messages until the condition holds; panics when the time is up.
    fn until(&mut self, what: &str, condition: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + LIMIT;
        while !condition(self) {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = self.runtime.block_on(async {
                tokio::time::timeout(left.min(Duration::from_millis(20)), self.messages.recv())
                    .await
            });
            if let Ok(Some(message)) = message {
                assert_eq!(message.iteration, 7);
                self.take(message.event);
            }
            assert!(
                Instant::now() < deadline,
                "no {what}: {:?}",
                String::from_utf8_lossy(&self.output)
            );
        }
    }

    fn take(&mut self, event: PtyEvent) {
        match event {
            PtyEvent::Output(bytes) => self.output.extend(bytes),
            PtyEvent::OutputEnded => self.ended = true,
            PtyEvent::Stopped(_) => self.stops += 1,
            PtyEvent::Continued => {}
            PtyEvent::Exited(exit) => self.exit = Some(exit),
        }
    }

    fn says(&self, text: &str) -> bool {
        String::from_utf8_lossy(&self.output).contains(text)
    }

    fn until_said(&mut self, text: &str) {
        self.until(text, |pane| pane.says(text));
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn process_exists(&self) -> bool {
        rustix::process::test_kill_process(self.pty.pid).is_ok()
    }
}

fn spec(script: &str, directory: &Path) -> PaneSpec {
    let path = std::env::var_os("PATH").unwrap();
    PaneSpec {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: vec![
            ("PATH".into(), path),
            ("TERM".into(), "xterm-256color".into()),
        ],
        cwd: directory.to_owned(),
    }
}

const CODE_3: Option<PaneExit> = Some(PaneExit {
    code: Some(3),
    signal: None,
});

#[test]
fn a_program_gets_its_directory_size_and_environment_and_nothing_else() {
    let mut pane =
        Pane::run("stty size; pwd; env; ls /proc/self/fd | tr '\\n' ' '; echo; echo end");
    pane.until_said("end");
    assert!(pane.says("31 97"));
    let directory = pane.directory.path().canonicalize().unwrap();
    assert!(pane.says(directory.to_str().unwrap()));
    assert!(!pane.says("CARGO"), "the environment is not inherited");
    assert!(
        pane.says("\n0 1 2 3 \r\n"),
        "only the terminal and the directory being listed"
    );
}

#[test]
fn exit_codes_and_signals_are_reported() {
    let mut pane = Pane::run("exit 3");
    pane.until("exit", |pane| pane.exit.is_some() && pane.ended);
    assert_eq!(pane.exit, CODE_3);
    let mut pane = Pane::run("echo up; exec sleep 1000");
    pane.until_said("up");
    pane.pty.signal(Signal::TERM).unwrap();
    pane.until("exit", |pane| pane.exit.is_some());
    assert_eq!(
        pane.exit,
        Some(PaneExit {
            code: None,
            signal: Some(15)
        })
    );
}

#[test]
fn what_cannot_start_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let (sender, _messages) = channel();
    let mut missing = spec("true", directory.path());
    missing.program = OsString::from("no-such-program-anywhere");
    let error = spawn(missing, PaneSize::new(97, 31), 1, &sender)
        .err()
        .unwrap();
    assert_eq!(
        error.to_string(),
        "could not start no-such-program-anywhere"
    );
    let mut nowhere = spec("true", directory.path());
    nowhere.cwd = directory.path().join("nowhere");
    assert!(matches!(
        spawn(nowhere, PaneSize::new(97, 31), 1, &sender),
        Err(PtyError::Directory(_))
    ));
}

#[test]
fn a_mebibyte_of_any_bytes_arrives_unchanged() {
    let mut pane = Pane::run("stty raw -echo; echo ready; head -c 1048576 > got; echo done");
    pane.until_said("ready");
    let sent: Vec<u8> = (0..1_048_576_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    for part in sent.chunks(10_007) {
        pane.pty.try_write(part.to_vec()).unwrap();
    }
    pane.until_said("done");
    assert!(std::fs::read(pane.file("got")).unwrap() == sent);
    // The child has read all of it a moment before the writer thread has counted the last part.
    let end = Instant::now() + Duration::from_secs(10);
    while pane.pty.queued_bytes() > 0 && Instant::now() < end {
        thread::yield_now();
    }
    assert_eq!(pane.pty.queued_bytes(), 0);
}

#[test]
fn each_queued_part_is_a_write_of_its_own() {
    let mut pane = Pane::run("stty raw -echo; echo ready; while read -r line; do :; done");
    pane.until_said("ready");
    let queue = Arc::new(Queue::default());
    for part in ["text", "\r", "more"] {
        queue.push(part.into(), |_| Err(Errno::AGAIN)).unwrap();
    }
    let writes = Arc::new(Mutex::new(Vec::new()));
    let thread = {
        let (queue, writes) = (Arc::clone(&queue), Arc::clone(&writes));
        let record = move |part: &[u8]| {
            writes.lock().push(part.to_vec());
            Ok(part.len())
        };
        thread::spawn(move || write_all(record, &queue))
    };
    let deadline = Instant::now() + LIMIT;
    while queue.state.lock().bytes > 0 {
        assert!(Instant::now() < deadline);
        thread::yield_now();
    }
    queue.close();
    thread.join().unwrap();
    assert_eq!(
        *writes.lock(),
        [b"text".to_vec(), b"\r".to_vec(), b"more".to_vec()]
    );
}

#[test]
fn what_the_terminal_takes_at_once_is_not_queued_and_never_overtakes() {
    let queue = Queue::default();
    let waiting = || queue.state.lock().parts.iter().cloned().collect::<Vec<_>>();
    queue
        .push(b"key".to_vec(), |bytes| Ok(bytes.len()))
        .unwrap();
    assert_eq!(waiting(), Vec::<Vec<u8>>::new());
    queue.push(b"cut".to_vec(), |_| Ok(1)).unwrap();
    assert_eq!(waiting(), [b"ut".to_vec()]);
    let overtaking = |_: &[u8]| -> Result<usize, Errno> { panic!("something waits before it") };
    queue.push(b"next".to_vec(), overtaking).unwrap();
    assert_eq!(waiting(), [b"ut".to_vec(), b"next".to_vec()]);
    assert_eq!(queue.state.lock().bytes, 6);
}

#[test]
fn a_child_that_never_reads_is_reported_and_can_be_cancelled() {
    let mut pane = Pane::run("stty raw -echo; echo ready; exec sleep 1000");
    pane.until_said("ready");
    let part = vec![b'x'; 1 << 20];
    let full = (0..6).find_map(|_| pane.pty.try_write(part.clone()).err());
    assert!(matches!(full, Some(WriteRefused::Full { .. })));
    assert!(pane.pty.queued_bytes() <= WRITE_QUEUE_LIMIT);
    assert!(pane.pty.cancel_writes() > 4 << 20);
    assert_eq!(pane.pty.queued_bytes(), 0);
    // The writer is free again: what is typed now is written though the child still does not read.
    pane.pty.try_write(b"hello".to_vec()).unwrap();
    let deadline = Instant::now() + LIMIT;
    while pane.pty.queued_bytes() > 0 {
        assert!(Instant::now() < deadline, "the writer is still blocked");
        thread::yield_now();
    }
    pane.pty.signal(Signal::KILL).unwrap();
    pane.until("exit", |pane| pane.exit.is_some());
}

#[test]
fn a_flood_waits_for_the_loop() {
    let mut pane = Pane::run("echo go; exec cat /dev/zero");
    pane.until_said("go");
    let deadline = Instant::now() + LIMIT;
    while pane.messages.len() < CHANNEL_CAPACITY {
        assert!(Instant::now() < deadline);
        thread::yield_now();
    }
    assert_eq!(pane.messages.len(), CHANNEL_CAPACITY);
    let before = pane.output.len();
    while let Ok(message) = pane.messages.try_recv() {
        pane.take(message.event);
        if pane.output.len() - before > 4 << 20 {
            break;
        }
    }
    pane.pty.signal(Signal::KILL).unwrap();
    pane.until("exit", |pane| pane.exit.is_some());
}

#[test]
fn the_exit_is_seen_though_a_grandchild_holds_the_terminal() {
    let mut pane = Pane::run(
        // The shell must not end before the grandchild has left its session, or the hangup ends both.
        "setsid sh -c 'echo $$ > new; mv new pid; exec sleep 1000' & \
         while [ ! -e pid ]; do :; done; echo grandchild=$(cat pid); exit 3",
    );
    pane.until("exit", |pane| {
        pane.exit.is_some() && pane.says("grandchild=")
    });
    assert_eq!(pane.exit, CODE_3);
    assert!(!pane.ended);
    let text = String::from_utf8_lossy(&pane.output).into_owned();
    let grandchild: i32 = text.trim().rsplit('=').next().unwrap().parse().unwrap();
    let grandchild = Pid::from_raw(grandchild).unwrap();
    let Pane {
        pty,
        mut messages,
        runtime,
        ..
    } = pane;
    drop(pty);
    // The reader gives up its end of the channel though the terminal was not closed.
    let closed = runtime.block_on(async {
        tokio::time::timeout(LIMIT, async { while messages.recv().await.is_some() {} }).await
    });
    closed.expect("the threads end");
    let alive = rustix::process::test_kill_process(grandchild).is_ok();
    let _ = rustix::process::kill_process(grandchild, rustix::process::Signal::KILL);
    assert!(
        alive,
        "it took the hangup for an end, so the test proves nothing"
    );
}

#[test]
fn a_dead_childs_number_is_kept_until_it_is_released() {
    let mut pane = Pane::run("exit 3");
    pane.until("exit", |pane| pane.exit.is_some());
    assert!(pane.process_exists());
    assert_eq!(pane.pty.signal(Signal::TERM), Ok(()));
    pane.pty.release();
    assert!(!pane.process_exists());
    assert_eq!(pane.pty.signal(Signal::TERM), Err(SignalError::Gone));
}

#[test]
fn signals_reach_the_whole_group() {
    let mut pane = Pane::run("sleep 1000 & echo child=$!; wait");
    pane.until_said("\n");
    pane.pty.signal(Signal::KILL).unwrap();
    pane.until("end of output", |pane| pane.ended && pane.exit.is_some());
    assert_eq!(
        pane.exit,
        Some(PaneExit {
            code: None,
            signal: Some(9)
        })
    );
}

#[test]
fn a_stopped_child_is_reported_and_continued() {
    let mut pane = Pane::run("kill -STOP $$; echo on");
    pane.until("stop", |pane| pane.stops == 1);
    pane.pty.signal(Signal::CONT).unwrap();
    pane.until_said("on");
    pane.until("exit", |pane| pane.exit.is_some());
    assert_eq!(pane.stops, 1);
}

#[test]
fn a_resize_reaches_the_child() {
    let mut pane = Pane::run("trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done");
    pane.until_said("ready");
    pane.pty.resize(PaneSize::new(61, 17)).unwrap();
    pane.until_said("17 61");
}

#[test]
fn closing_types_nothing_into_the_child() {
    let mut pane = Pane::run("trap '' HUP; stty raw -echo; echo ready; cat > got; mv got whole");
    pane.until_said("ready");
    pane.pty.try_write(b"last".to_vec()).unwrap();
    let got = pane.file("got");
    pane.until("bytes", |_| {
        std::fs::read(&got).is_ok_and(|bytes| bytes == b"last")
    });
    let whole = pane.file("whole");
    let Pane { pty, directory, .. } = pane;
    drop(pty);
    let deadline = Instant::now() + LIMIT;
    while !whole.exists() {
        assert!(Instant::now() < deadline);
        thread::yield_now();
    }
    assert_eq!(std::fs::read(&whole).unwrap(), b"last");
    drop(directory);
}
