//! The interactive session: one loop over keys, signals and the clock.

use std::{
    collections::VecDeque,
    io,
    path::PathBuf,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    BASE_LOAD, REFUSED_BELOW, Start,
    bridge::Bridge,
    draw::{Canvas, plain, wrap, write_all},
    record::{self, Conversation, Record, joined},
    story::{GO_ON, Step, Story, scripted},
    terminal::{Incoming, Terminal, catch_signals, read_input},
    turn::{Turn, split_usage},
};
use crate::{
    terminal::input::{Decoder, HostInput},
    transcript::{SessionId, usage::Usage},
};

/// The real client waits that long for more events before it runs the status line command.
const STATUS_DEBOUNCE: Duration = Duration::from_millis(300);

/// How long a second Ctrl-C counts as the second.
const TWICE: Duration = Duration::from_secs(1);

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// The marker of a handoff in a prompt.
const HANDOFF: &str = "pitstop handoff";

/// Everything the session knows.
pub struct Session {
    pub(super) start: Start,
    pub(super) id: SessionId,
    pub(super) record: Record,
    pub(super) canvas: Canvas,
    decoder: Decoder,
    paste: Vec<u8>,
    pub(super) incoming: Sender<Incoming>,
    pub(super) bridge: Option<Bridge>,
    /// Lines to be printed above the live part with the next frame.
    pub(super) above: Vec<String>,
    pub(super) status: Vec<String>,
    pub(super) hint: String,
    pub(super) draft: String,
    pub(super) queue: VecDeque<String>,
    pub(super) turn: Option<Turn>,
    pub(super) turns: usize,
    pub(super) story: Story,
    pub(super) handed_over: bool,
    pub(super) context: u64,
    /// What the last call used, once one has.
    pub(super) usage: Option<Usage>,
    pub(super) cost: f64,
    pub(super) last_message: String,
    pub(super) began: Instant,
    pub(super) status_due: Option<Instant>,
    pub(super) go_on_due: Option<Instant>,
    pub(super) quit_armed: Option<(char, Instant)>,
    pub(super) exit: Option<(&'static str, i32)>,
    pub(super) dirty: bool,
}

/// The id and the transcript's path that a session starts with, and the conversation that it resumes.
fn opening(start: &Start) -> Result<(SessionId, PathBuf, Option<Conversation>), String> {
    let path = |id| record::path_of(&start.config_dir, &start.cwd, id);
    if let Some(wanted) = &start.resume {
        let unknown = || format!("No conversation found with session ID: {wanted}");
        let id = wanted.parse().map_err(|_| unknown())?;
        let resumed = record::conversation(&path(id)).ok_or_else(unknown)?;
        return Ok((id, path(id), Some(resumed)));
    }
    let id = start
        .session
        .unwrap_or_else(|| SessionId::new(Uuid::new_v4()));
    if path(id).exists() {
        return Err(format!("Error: Session ID {id} is already in use."));
    }
    Ok((id, path(id), None))
}

/// Runs a session to its end; gives the exit code.
pub fn run(start: Start) -> Result<i32, String> {
    let (id, path, resumed) = opening(&start)?;
    let resumed = resumed.unwrap_or((Vec::new(), BASE_LOAD));
    play(start, id, path, resumed).map_err(|error| error.to_string())
}

fn play(
    start: Start,
    id: SessionId,
    path: PathBuf,
    (said, context): Conversation,
) -> io::Result<i32> {
    let (incoming, arrivals) = channel();
    catch_signals(&incoming)?;
    let terminal = Terminal::open()?;
    read_input(incoming.clone());
    let record = Record::open(path, id, &start.model, &start.cwd)?;
    let bridge = Bridge::start(&start, id, &incoming);
    let (columns, rows) = Terminal::size();
    let mut session = Session {
        id,
        record,
        canvas: Canvas::new(columns, rows),
        decoder: Decoder::default(),
        paste: Vec::new(),
        incoming,
        bridge,
        above: Vec::new(),
        status: Vec::new(),
        hint: "? for shortcuts".into(),
        draft: String::new(),
        queue: VecDeque::new(),
        turn: None,
        turns: 0,
        story: Story::default(),
        handed_over: false,
        context,
        usage: None,
        cost: 0.0,
        last_message: String::new(),
        began: Instant::now(),
        status_due: None,
        go_on_due: None,
        quit_armed: None,
        exit: None,
        dirty: true,
        start,
    };
    session.welcome(&said);
    let (reason, code) = session.live(&arrivals)?;
    session.close(reason, terminal);
    Ok(code)
}

impl Session {
    fn live(&mut self, arrivals: &Receiver<Incoming>) -> io::Result<(&'static str, i32)> {
        self.begin()?;
        loop {
            if let Some(exit) = self.exit {
                return Ok(exit);
            }
            self.on_time(Instant::now())?;
            if self.dirty {
                self.dirty = false;
                let above = std::mem::take(&mut self.above);
                let live = self.shown();
                self.canvas.frame(&above, &live)?;
            }
            match arrivals.recv_timeout(self.patience()) {
                Ok(incoming) => self.take(incoming)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(("other", 0)),
            }
        }
    }

    /// Reports the start to the hooks and submits the start prompt.
    fn begin(&mut self) -> io::Result<()> {
        let resumed = self.start.resume.is_some();
        let source = if resumed { "resume" } else { "startup" };
        let fields = json!({ "source": source, "model": self.start.model });
        self.call_hook("SessionStart", fields);
        self.status_due = Some(Instant::now());
        if resumed {
            self.usage = Some(split_usage(self.context, self.context));
        }
        self.report_session(source);
        match self.start.prompt.take() {
            Some(prompt) => self.submit(prompt, "composer"),
            None => Ok(()),
        }
    }

    /// How long nothing needs doing.
    fn patience(&self) -> Duration {
        let busy = self.turn.as_ref();
        let step = busy.map(|turn| turn.due);
        let tick = busy.map(|_| Instant::now() + TICK);
        let armed = self.quit_armed.as_ref().map(|(_, until)| *until);
        let times = [step, tick, self.status_due, self.go_on_due, armed];
        let next = times.into_iter().flatten().min();
        next.map_or(Duration::from_secs(3600), |next| {
            next.saturating_duration_since(Instant::now())
        })
    }

    fn on_time(&mut self, now: Instant) -> io::Result<()> {
        let due = |time: Option<Instant>| time.is_some_and(|time| time <= now);
        if due(self.status_due) {
            self.status_due = None;
            self.run_status_line();
        }
        if self
            .quit_armed
            .as_ref()
            .is_some_and(|(_, until)| *until <= now)
        {
            self.quit_armed = None;
            self.dirty = true;
        }
        // The story does not interrupt a person who types.
        if due(self.go_on_due) && self.draft.is_empty() && !self.is_busy() {
            self.go_on_due = None;
            self.submit(GO_ON.into(), "composer")?;
        }
        self.dirty |= self.turn.is_some();
        match self.turn.take_if(|turn| turn.due <= now) {
            Some(turn) => self.play(turn),
            None => Ok(()),
        }
    }

    fn take(&mut self, incoming: Incoming) -> io::Result<()> {
        self.dirty = true;
        match incoming {
            Incoming::Bytes(bytes) => {
                let mut inputs = self.decoder.feed(&bytes);
                // Alone in a read it is the key.
                if bytes == b"\x1b" && self.decoder.flush_after().is_some() {
                    inputs.extend(self.decoder.flush());
                }
                for input in inputs {
                    match input {
                        HostInput::Key { event, .. } => self.press(event)?,
                        HostInput::PasteChunk(bytes) => self.paste.extend(bytes),
                        HostInput::PasteEnd => {
                            let paste = std::mem::take(&mut self.paste);
                            let text = String::from_utf8_lossy(&paste).replace("\r\n", "\n");
                            self.draft += &text.replace('\r', "\n").replace('\t', "    ");
                        }
                        _ => {}
                    }
                }
            }
            Incoming::Closed | Incoming::Hangup => self.quit("other", 129),
            Incoming::Interrupt => self.quit("other", 0),
            Incoming::Terminate => self.quit("other", 143),
            Incoming::Resized => {
                let (columns, rows) = Terminal::size();
                self.canvas.resize(columns, rows);
            }
            Incoming::StatusLine(text) => {
                self.status = text.lines().take(3).map(plain).collect();
            }
            Incoming::Order(order, outcome) => {
                // The supervisor may be gone.
                let _ = outcome.send(self.ordered(&order));
            }
        }
        self.report_draft();
        Ok(())
    }

    fn quit(&mut self, reason: &'static str, code: i32) {
        self.exit = Some((reason, code));
    }

    fn press(&mut self, key: KeyEvent) -> io::Result<()> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter if key.modifiers.is_empty() => return self.enter(),
            KeyCode::Enter => self.draft.push('\n'),
            KeyCode::Char('j') if control => self.draft.push('\n'),
            KeyCode::Char('u') if control => self.draft.clear(),
            KeyCode::Char('c') if control && self.turn.is_some() => self.interrupt(),
            KeyCode::Char('c') if control && !self.draft.is_empty() => self.draft.clear(),
            KeyCode::Char(c @ ('c' | 'd')) if control && self.draft.is_empty() => {
                self.press_to_quit(c.to_ascii_uppercase());
            }
            KeyCode::Char(c) if !control => self.draft.push(c),
            KeyCode::Tab => self.draft.push('\t'),
            KeyCode::Backspace => drop(self.draft.pop()),
            KeyCode::Esc => self.interrupt(),
            _ => {}
        }
        Ok(())
    }

    /// The first press arms, the second one quits.
    fn press_to_quit(&mut self, key: char) {
        if self.quit_armed.is_some_and(|(armed, _)| armed == key) {
            self.exit = Some(("prompt_input_exit", 0));
        }
        self.quit_armed = Some((key, Instant::now() + TWICE));
    }

    fn enter(&mut self) -> io::Result<()> {
        if self.draft.trim().is_empty() {
            return Ok(());
        }
        let prompt = std::mem::take(&mut self.draft);
        match prompt.trim() {
            "/exit" | "/quit" => self.quit("prompt_input_exit", 0),
            "/clear" if !self.is_busy() => self.start_over()?,
            command if command.starts_with('/') && !command.contains([' ', '\n']) => {
                let name = wrap(command, self.canvas.columns()).swap_remove(0);
                self.above
                    .extend([format!("  ⎿  Unknown command: {name}"), String::new()]);
            }
            _ if self.is_busy() => self.queue.push_back(prompt),
            _ => self.submit(prompt, "composer")?,
        }
        Ok(())
    }

    /// Stops the turn. A prompt that nothing was said to goes back into the box, as measured.
    pub(super) fn interrupt(&mut self) {
        if let Some(turn) = self.turn.take() {
            if turn.spoke {
                self.show_error("Interrupted by user");
            } else {
                self.draft.insert_str(0, &turn.prompt);
            }
            self.go_on_due = None;
            self.report_turn_end(&turn.id, "aborted");
        }
    }

    /// Whether a prompt has to wait.
    pub(super) const fn is_busy(&self) -> bool {
        self.turn.is_some()
    }

    /// Takes a prompt by this origin, or refuses it when the window is full.
    pub(super) fn submit(&mut self, prompt: String, origin: &str) -> io::Result<()> {
        self.go_on_due = None;
        self.dirty = true;
        let text: String = prompt.chars().take(1_000).collect();
        self.report(json!({ "fact": "prompt_submitted", "origin": origin, "text": text }));
        self.call_hook("UserPromptSubmit", json!({ "prompt": prompt }));
        self.record.prompt(&prompt)?;
        self.show_prompt(&prompt);
        self.turns += 1;
        if self.turns == 1 && prompt.contains(HANDOFF) {
            self.handed_over = true;
            self.story = Story::from_prompt(&prompt);
        }
        if self.context >= self.limit() {
            self.hint = "Context low (0% remaining) · Run /clear to start over".into();
            self.show_error("Context limit reached · /clear to continue");
            return self.record.too_long();
        }
        let id = Uuid::new_v4().to_string();
        self.report(json!({ "fact": "turn_started", "turn": id }));
        self.turn = Some(Turn {
            id,
            steps: self.steps(),
            target: self.context_after(&prompt),
            prompt,
            began: Instant::now(),
            due: Instant::now() + self.start.pace,
            spoke: false,
            call: None,
            running: None,
        });
        Ok(())
    }

    fn steps(&mut self) -> VecDeque<Step> {
        if let Some(reply) = &self.start.reply {
            return [Step::Say(reply.clone())].into();
        }
        if !self.start.script.is_empty() {
            let line = self.start.script.get(self.turns - 1);
            return scripted(line.map_or("Understood.", String::as_str));
        }
        let mut steps = self.story.turn(self.handed_over && self.turns == 1);
        if self.story.done >= self.start.items
            && let (Some(stop_phrase), Some(Step::Say(last))) =
                (&self.start.stop_phrase, steps.back_mut())
        {
            last.push_str("\n\n");
            last.push_str(stop_phrase);
        }
        steps
    }

    /// The context after a turn, tokens.
    fn context_after(&self, prompt: &str) -> u64 {
        let scripted = self
            .start
            .usage
            .get(self.turns - 1)
            .or(self.start.usage.last());
        if let Some(usage) = scripted.filter(|_| !self.handed_over) {
            return *usage;
        }
        if let Some(growth) = self.start.growth {
            return self.context + growth;
        }
        // A window fills in about twenty turns, whatever its size.
        let share = (self.window() - BASE_LOAD) / 20;
        let growth = share * (80 + (self.turns as u64 * 37) % 41) / 100;
        self.context + growth + (prompt.chars().count() / 4) as u64
    }

    /// The whole window, tokens: the model's mark decides.
    pub(super) fn window(&self) -> u64 {
        if self.start.model.ends_with("[1m]") {
            1_000_000
        } else {
            200_000
        }
    }

    /// From here on prompts are refused, tokens.
    fn limit(&self) -> u64 {
        self.window() - REFUSED_BELOW
    }

    /// `/clear`: the process lives on under a new session.
    fn start_over(&mut self) -> io::Result<()> {
        self.call_hook("SessionEnd", json!({ "reason": "clear" }));
        self.id = SessionId::new(Uuid::new_v4());
        let path = record::path_of(&self.start.config_dir, &self.start.cwd, self.id);
        self.record = Record::open(path, self.id, &self.start.model, &self.start.cwd)?;
        self.context = BASE_LOAD;
        self.usage = None;
        self.go_on_due = None;
        self.call_hook("SessionStart", json!({ "source": "clear" }));
        self.report_session("clear");
        self.above.push("  ⎿  (no content)".into());
        self.status_line_soon();
        Ok(())
    }

    /// The conversation is replaced by a handoff, in a compaction with this trigger.
    pub(super) fn take_over(&mut self, handoff: &str, trigger: &str) -> io::Result<()> {
        self.record.compacted(self.context, trigger)?;
        self.record.prompt(handoff)?;
        self.context = BASE_LOAD + (handoff.len() / 4) as u64;
        self.usage = None;
        // In the order of the real client.
        self.call_hook("PostCompact", json!({ "trigger": trigger }));
        let fields = json!({ "source": "compact", "model": self.start.model });
        self.call_hook("SessionStart", fields);
        self.report_session("compact");
        self.handed_over = true;
        self.story = Story::from_prompt(handoff);
        self.turns = 0;
        Ok(())
    }

    /// Runs the hooks of `event` with its own `fields`.
    pub(super) fn call_hook(&self, event: &str, fields: Value) {
        let payload = json!({
            "session_id": self.id.to_string(), "transcript_path": self.record.path.to_string_lossy(),
            "cwd": self.start.cwd.to_string_lossy(), "permission_mode": "default",
            "hook_event_name": event,
        });
        self.start
            .call_hooks(event, self.id, &joined(payload, fields));
    }

    /// Runs the status line command when nothing more has come for a while.
    pub(super) fn status_line_soon(&mut self) {
        self.status_due = Some(Instant::now() + STATUS_DEBOUNCE);
    }

    fn run_status_line(&self) {
        let payload = self.status_payload();
        let (start, id, incoming) = (self.start.clone(), self.id, self.incoming.clone());
        thread::spawn(move || {
            if let Some(text) = start.status_line(id, &payload) {
                // The session may be over.
                let _ = incoming.send(Incoming::StatusLine(text));
            }
        });
    }

    /// Ends the session: the hooks are called, the terminal is given back.
    fn close(mut self, reason: &str, terminal: Terminal) {
        self.call_hook("SessionEnd", json!({ "reason": reason }));
        // A terminal that is gone takes no farewell.
        let farewell = format!("Resume this session with:\r\n--resume {}\r\n", self.id);
        let _ = self.canvas.clear().and_then(|()| write_all(&farewell));
        drop(terminal);
    }
}
