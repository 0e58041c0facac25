//! The interactive session: one loop over keys, signals and the clock.

use std::{
    collections::VecDeque,
    io,
    path::PathBuf,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    BASE_LOAD, REFUSED_BELOW, Start,
    bridge::Bridge,
    draw::{Canvas, first_line},
    record::{self, Conversation, Record, joined},
    story::{GO_ON, Step, Story, scripted},
    terminal::{self, Incoming},
    turn::{Turn, split_usage},
};
use pitstop_base::clean::without_escapes;
use pitstop_terminal::input::{Decoder, HostInput};
use pitstop_transcript::{SessionId, usage::Usage};

/// The time that the real client waits for more events before it runs the status line command.
const STATUS_DEBOUNCE: Duration = Duration::from_millis(300);

/// The time within which a second Ctrl-C counts as the second.
const TWICE: Duration = Duration::from_secs(1);

/// The interval at which the spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// The marker of a handoff in a prompt.
const HANDOFF: &str = "pitstop handoff";

/// The session with all of its state.
pub struct Session {
    pub(super) start: Start,
    pub(super) id: SessionId,
    pub(super) record: Record,
    pub(super) canvas: Canvas,
    decoder: Decoder,
    paste: Vec<u8>,
    incoming: Sender<Incoming>,
    pub(super) bridge: Option<Bridge>,
    /// The lines to be printed above the live part with the next frame.
    pub(super) above: Vec<String>,
    pub(super) status: Vec<String>,
    pub(super) hint: &'static str,
    pub(super) draft: String,
    pub(super) queue: VecDeque<String>,
    pub(super) turn: Option<Turn>,
    turns: usize,
    story: Story,
    handed_over: bool,
    pub(super) context: u64,
    /// The usage of the last call, once there was one.
    pub(super) usage: Option<Usage>,
    pub(super) cost: f64,
    pub(super) last_message: String,
    pub(super) began: Instant,
    status_due: Option<Instant>,
    pub(super) go_on_due: Option<Instant>,
    /// The key that quits when it is pressed again, and the time until which it does.
    pub(super) quit_armed: Option<(char, Instant)>,
    exit: Option<(&'static str, i32)>,
}

/// Returns the id and the transcript's path that a session starts with, and the conversation that it resumes.
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

/// Runs a session to its end; returns the exit code.
pub fn run(mut start: Start) -> Result<i32, String> {
    let (id, path, resumed) = opening(&start)?;
    let session = || -> io::Result<i32> {
        let (incoming, arrivals) = channel();
        terminal::catch_signals(&incoming)?;
        terminal::open()?;
        terminal::read_input(incoming.clone());
        let usage = resumed
            .as_ref()
            .map(|(_, context)| split_usage(*context, *context));
        let (said, context) = resumed.unwrap_or((Vec::new(), BASE_LOAD));
        // It goes on where it was.
        let stories = said.iter().map(|(_, text)| Story::from_prompt(text));
        let story = stories.max_by_key(|story| story.done).unwrap_or_default();
        let mut session = Session {
            id,
            record: Record::open(path, id, &start.model, &start.cwd)?,
            canvas: Canvas::default(),
            decoder: Decoder::default(),
            paste: Vec::new(),
            bridge: Bridge::start(&start, id, &incoming),
            incoming,
            above: Vec::new(),
            status: Vec::new(),
            hint: "? for shortcuts",
            draft: String::new(),
            queue: VecDeque::new(),
            turn: None,
            turns: 0,
            story,
            handed_over: false,
            context,
            usage,
            cost: 0.0,
            last_message: String::new(),
            began: Instant::now(),
            status_due: Some(Instant::now()),
            go_on_due: None,
            quit_armed: None,
            exit: None,
            start: std::mem::take(&mut start),
        };
        session.canvas.resize();
        session.welcome(&said);
        session.live(&arrivals)
    };
    session().map_err(|error| error.to_string())
}

impl Session {
    /// Reports the start, submits the start prompt and goes on until something ends the session; returns the exit code.
    fn live(mut self, arrivals: &Receiver<Incoming>) -> io::Result<i32> {
        let source = if self.start.resume.is_some() {
            "resume"
        } else {
            "startup"
        };
        self.report_start(source);
        if let Some(prompt) = self.start.prompt.take() {
            self.submit(prompt, "composer")?;
        }
        let (reason, code) = loop {
            if let Some(exit) = self.exit {
                break exit;
            }
            self.on_time(Instant::now())?;
            self.draw()?;
            if let Ok(incoming) = arrivals.recv_timeout(self.patience()) {
                self.take(incoming)?;
            }
        };
        self.call_hook("SessionEnd", json!({ "reason": reason }));
        let erased = self.canvas.erased();
        terminal::close(&format!(
            "{erased}Resume this session with:\r\n--resume {}\r\n",
            self.id
        ));
        Ok(code)
    }

    /// Returns the time for which there is nothing to do.
    fn patience(&self) -> Duration {
        let step = self.turn.as_ref().map(|turn| turn.due);
        let tick = self.turn.as_ref().map(|_| Instant::now() + TICK);
        let armed = self.quit_armed.map(|(_, until)| until);
        let go_on = self.go_on_due.filter(|_| self.may_go_on());
        let times = [step, tick, self.status_due, go_on, armed];
        let next = times.into_iter().flatten().min();
        next.map_or(Duration::from_secs(3600), |next| {
            next.saturating_duration_since(Instant::now())
        })
    }

    /// Reports whether the story goes on when it is time: it does not interrupt a person who types.
    fn may_go_on(&self) -> bool {
        self.draft.is_empty() && self.turn.is_none()
    }

    fn on_time(&mut self, now: Instant) -> io::Result<()> {
        let due = |time: Option<Instant>| time.is_some_and(|time| time <= now);
        if due(self.status_due) {
            self.status_due = None;
            let payload = self.status_payload();
            let (start, id, incoming) = (self.start.clone(), self.id, self.incoming.clone());
            thread::spawn(move || {
                if let Some(text) = start.run_status_line(id, &payload) {
                    // The session may be over.
                    let _ = incoming.send(Incoming::StatusLine(text));
                }
            });
        }
        self.quit_armed = self.quit_armed.filter(|(_, until)| *until > now);
        if due(self.go_on_due) && self.may_go_on() {
            self.submit(GO_ON.into(), "composer")?;
        }
        match self.turn.take_if(|turn| turn.due <= now) {
            Some(turn) => self.play(turn),
            None => Ok(()),
        }
    }

    fn take(&mut self, incoming: Incoming) -> io::Result<()> {
        match incoming {
            Incoming::Bytes(bytes) => {
                let mut inputs = self.decoder.feed(&bytes);
                // An escape character alone in a read is the key.
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
            Incoming::Ended(code) => self.exit = Some(("other", code)),
            Incoming::Resized => self.canvas.resize(),
            Incoming::StatusLine(text) => {
                let lines = without_escapes(&text);
                self.status = lines.lines().take(3).map(str::to_owned).collect();
            }
            Incoming::Order(order, outcome) => {
                // The supervisor may be gone.
                let _ = outcome.send(self.ordered(&order));
            }
        }
        self.report_draft();
        Ok(())
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

    /// Arms the key at the first press, and quits at the second one.
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
            "/exit" | "/quit" => self.exit = Some(("prompt_input_exit", 0)),
            "/clear" if self.turn.is_none() => self.start_over()?,
            command if command.starts_with('/') && !command.contains([' ', '\n']) => {
                let name = first_line(command, self.canvas.columns);
                self.above
                    .extend([format!("  ⎿  Unknown command: {name}"), String::new()]);
            }
            _ if self.turn.is_some() => self.queue.push_back(prompt),
            _ => self.submit(prompt, "composer")?,
        }
        Ok(())
    }

    /// Stops the turn. A prompt without any answer goes back into the box, as measured.
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

    /// Takes a prompt of this origin, or refuses it when the window is full.
    pub(super) fn submit(&mut self, prompt: String, origin: &str) -> io::Result<()> {
        self.go_on_due = None;
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
        if self.context >= self.window() - REFUSED_BELOW {
            self.hint = "Context low (0% remaining) · Run /clear to start over";
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
            *last += &format!("\n\n{stop_phrase}");
        }
        steps
    }

    /// Returns the context after a turn, in tokens.
    fn context_after(&self, prompt: &str) -> u64 {
        let usage = &self.start.usage;
        let scripted = usage.get(self.turns - 1).or(usage.last());
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

    /// Returns the whole window, in tokens: the model's mark decides.
    pub(super) fn window(&self) -> u64 {
        if self.start.model.ends_with("[1m]") {
            1_000_000
        } else {
            200_000
        }
    }

    /// Carries out `/clear`: the process lives on under a new session.
    fn start_over(&mut self) -> io::Result<()> {
        self.call_hook("SessionEnd", json!({ "reason": "clear" }));
        self.id = SessionId::new(Uuid::new_v4());
        let path = record::path_of(&self.start.config_dir, &self.start.cwd, self.id);
        self.record = Record::open(path, self.id, &self.start.model, &self.start.cwd)?;
        self.go_on_due = None;
        self.begin_with("clear", BASE_LOAD);
        self.above.push("  ⎿  (no content)".into());
        Ok(())
    }

    /// Replaces the conversation by a handoff, in a compaction with this trigger.
    pub(super) fn take_over(&mut self, handoff: &str, trigger: &str) -> io::Result<()> {
        self.record.compacted(self.context, trigger)?;
        self.record.prompt(handoff)?;
        // In the order of the real client.
        self.call_hook("PostCompact", json!({ "trigger": trigger }));
        self.begin_with("compact", BASE_LOAD + (handoff.len() / 4) as u64);
        self.handed_over = true;
        self.story = Story::from_prompt(handoff);
        self.turns = 0;
        Ok(())
    }

    /// Begins a conversation that holds so many tokens, and reports it to the hooks and the bridge.
    fn begin_with(&mut self, source: &str, context: u64) {
        self.context = context;
        self.usage = None;
        self.hint = "? for shortcuts";
        self.report_start(source);
        self.status_line_soon();
    }

    fn report_start(&mut self, source: &str) {
        let fields = json!({ "source": source, "model": self.start.model });
        self.call_hook("SessionStart", fields);
        self.report_session(source);
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
}
