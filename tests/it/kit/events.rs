//! Listens to a supervisor's events, as a script would.

// The kit is shared, and each test uses a part of it.
#![allow(dead_code)]

use std::{
    collections::VecDeque,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::home::Home;

/// What was received: the event's name and its data.
pub type Received = (String, Value);

/// An open stream of events.
pub struct Events {
    reader: BufReader<UnixStream>,
    received: VecDeque<Received>,
}

impl Events {
    /// Listens to the one supervisor that runs in this home, from now on.
    #[track_caller]
    pub fn of(home: &Home) -> Self {
        let mut files = fs::read_dir(home.path("state/pitstop/run")).expect("its directory");
        let file = files
            .find_map(|file| {
                let path = file.ok()?.path();
                path.extension()
                    .is_some_and(|end| end == "control")
                    .then_some(path)
            })
            .expect("a control file");
        let secrets = fs::read_to_string(file).expect("a control file");
        let mut lines = secrets.lines();
        let (socket, token) = (lines.next().unwrap(), lines.next().unwrap());
        let mut stream = UnixStream::connect(socket).expect("a control socket");
        write!(
            stream,
            "GET /events HTTP/1.1\r\nAuthorization: Bearer {token}\r\n\r\n"
        )
        .unwrap();
        let mut events = Self {
            reader: BufReader::new(stream),
            received: VecDeque::new(),
        };
        events.wait_for("status", |_| true, Duration::from_secs(60));
        events
    }

    /// Waits for an event of that name for which something holds. What came before it is kept for other questions.
    #[track_caller]
    pub fn wait_for(
        &mut self,
        name: &str,
        holds: impl Fn(&Value) -> bool,
        limit: Duration,
    ) -> Value {
        let end = Instant::now() + limit;
        let fits = |(event, data): &Received| event == name && holds(data);
        loop {
            if let Some(at) = self.received.iter().position(fits) {
                return self.received.remove(at).expect("it is there").1;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "no `{name}` within {limit:?}: {:#?}",
                self.received
            );
            let next = self.read(left);
            self.received.extend(next);
        }
    }

    /// All that came before an event of that name for which something holds.
    #[track_caller]
    pub fn up_to(
        &mut self,
        name: &str,
        holds: impl Fn(&Value) -> bool,
        limit: Duration,
    ) -> Vec<Received> {
        self.wait_for(name, holds, limit);
        self.received.drain(..).collect()
    }

    fn read(&mut self, limit: Duration) -> Option<Received> {
        self.reader.get_ref().set_read_timeout(Some(limit)).unwrap();
        let mut name = String::new();
        loop {
            let mut line = String::new();
            // A limit that is over is reported by the one that waits.
            let read = self.reader.read_line(&mut line).ok()?;
            assert_ne!(read, 0, "the stream has ended: {:#?}", self.received);
            if let Some(event) = line.trim_end().strip_prefix("event: ") {
                event.clone_into(&mut name);
            } else if let Some(data) = line.trim_end().strip_prefix("data: ") {
                return Some((name, serde_json::from_str(data).expect("JSON")));
            } else if line.starts_with(':') {
                // What keeps the stream alive must not keep the one that waits.
                return None;
            }
        }
    }
}
