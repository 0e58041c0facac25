//! Scenes for frames: a model in the middle of its work, built by events, and a screen fed with bytes like those of
//! a coding agent. Shared by the tests and `examples/screenshot.rs`.

use std::{
    fmt::Write,
    time::{Duration, Instant},
};

use chrono::{DateTime, TimeDelta, Utc};
use pitstop_agent::{
    AgentEvent, AgentKind, StartSource, StatusLine,
    bridge::{InstanceName, QuestionId, Report, Said, Trigger},
};
use pitstop_base::{
    clock::{self, At},
    keymap::Action,
};
use pitstop_core::{
    app::{
        self, Event, Model,
        event::{BridgeEvent, HostEvent, NewIds, PaneEvent, ReadEvent, StoreEvent, TimerId},
        layout,
        model::{Beginning, Identity},
    },
    config::Config,
    lineage::{
        Cause, EndReason, Iteration, IterationId, Lineage, ProcessStamp, RebootRecord, RunId, Way,
        journal::{JournalEntry, Step},
        metrics::TurnFigures,
        past::PastSession,
    },
};
use pitstop_handoff::Generator;
use pitstop_terminal::{
    input::HostInput,
    screen::{Screen, ScreenFact},
};
use pitstop_transcript::{
    SessionId, Tokens,
    trim::{LEVELS, LevelFigure, TrimPlan},
    usage::Usage,
};
use unicode_width::UnicodeWidthStr;
use uuid::Uuid;

/// The notes of the scene.
pub const NOTES: &str = "\
# Scratchpad

## Objective
Make the importer stream: constant memory for any CSV size.

## Current Plan
- [x] profile the loader (`heaptrack`)
- [x] reader that yields **batches** of rows
- [ ] back-pressure between reader and writer
- [ ] property test: 10⁶ rows, 64 MiB cap
- [ ] 日本語 headers (issue #214)

## Key Decisions
- batches of 4096 rows: smaller ones cost 20 %
- no `rayon`: the writer is the bottleneck

## Blockers
- CI has no `heaptrack`
";

/// The scene's client is about to compact, 2 minutes before the time for an answer is over, at this second.
pub fn compaction(model: &mut Model, second: u64) {
    let id = QuestionId {
        instance: InstanceName("scene".to_owned()),
        number: 1,
    };
    bridge_says(
        model,
        second,
        [Said::Hello, Said::Compacting(id, Trigger::Auto)],
    );
    drafted(model, second);
}

/// The client's own side says this at this second.
pub fn bridge_says(model: &mut Model, second: u64, all: impl IntoIterator<Item = Said>) {
    for said in all {
        let report = Report {
            session: model.session.id,
            client: "2.1.330".to_owned(),
            said,
        };
        update(
            model,
            second,
            Event::Bridge(BridgeEvent::Said(Box::new(report))),
        );
    }
}

/// How long the run lasts at the beginning of the scene.
const EARLIER_MINUTES: u64 = 98;

/// When the run began.
pub fn run_start() -> At {
    At {
        since_start: Duration::ZERO,
        asleep: Duration::ZERO,
        wall: at(0).wall - TimeDelta::minutes(EARLIER_MINUTES.cast_signed()),
        zone: clock::UTC,
    }
}

/// A moment this many seconds after the start.
pub fn at(seconds: u64) -> At {
    let start: DateTime<Utc> = "2026-11-21T09:00:00Z".parse().expect("a time");
    At {
        since_start: Duration::from_secs(EARLIER_MINUTES * 60 + seconds),
        asleep: Duration::ZERO,
        wall: start + TimeDelta::seconds(seconds.cast_signed()),
        zone: clock::UTC,
    }
}

fn session(number: u128) -> SessionId {
    SessionId::new(Uuid::from_u128(
        0x5e55_1011_0000_4000_8000_0000_0000_0000 + number,
    ))
}

fn new_ids(number: u128) -> NewIds {
    NewIds {
        reboot: Uuid::from_u128(0x4eb0_0700_0000_4000_8000_0000_0000_0000 + number),
        session: session(100 + number),
        nonce: format!("{:08x}", 0x9c2f_41d0 + number as u32),
    }
}

fn identity() -> Identity {
    Identity {
        version: "0.1.0",
        pid: 4242,
        project: "~/src/ledger".to_owned(),
        environment: "ledger".to_owned(),
        agent_kind: AgentKind::Claude,
        agent_command: "claude".to_owned(),
        agent_args: Vec::new(),
        todo_tools: true,
    }
}

/// A run with two finished iterations.
fn lineage() -> Lineage {
    let start = run_start().wall;
    let run: RunId = "20261121-072200-3fa94c".parse().expect("a run");
    let mut lineage = Lineage::new(run);
    let mut begun = start;
    for (number, minutes, end, cost) in [(1, 53, 154_200, 9.8), (2, 41, 131_900, 6.35)] {
        let cause = (number > 1).then_some(Cause::Threshold);
        lineage
            .open(Some(session(number)), cause, begun)
            .expect("none is open");
        let current = lineage.current_mut().expect("one is open");
        current.tokens_at_birth = Some(Tokens(18_100 + 600 * number as u64));
        current.tokens_at_end = Some(Tokens(end));
        current.cost_usd = Some(cost);
        current.tokens.input = Tokens(4_810_000);
        current.tokens.output = Tokens(61_000);
        current.reboot = (number > 1).then(|| record(number));
        begun += TimeDelta::minutes(minutes);
        let reason = if number == 1 {
            EndReason::ContextLimit
        } else {
            EndReason::UserReboot
        };
        lineage.close(begun, reason).expect("one is open");
        begun += TimeDelta::seconds(1);
    }
    lineage
}

fn record(number: u128) -> RebootRecord {
    let steps = [
        (Step::Waiting, 3),
        (Step::Ending, 181),
        (Step::Starting, 24),
        (Step::Delivering, 2),
        (Step::Verifying, 1_410),
    ];
    RebootRecord {
        old_session: Some(session(number - 1)),
        new_session: Some(session(number)),
        way: Way::Fresh,
        nonce: None,
        trim: None,
        cause: Cause::Threshold,
        transition_time_ms: steps.into_iter().collect(),
        handoff_bytes: 11_204,
        handoff_tokens: Tokens(2_790),
        verified: true,
        approved_from: None,
        warmed_up: false,
        preserved_state: None,
    }
}

/// The turns of the first iteration; those of the second were not kept.
fn turns() -> Vec<TurnFigures> {
    let turn = |number: u64| TurnFigures {
        iteration: IterationId::FIRST,
        at: run_start().wall,
        used: Tokens(18_700 + number * number * 418),
        usable: Tokens(180_000),
        cost_usd: None,
    };
    (1..=18).map(turn).collect()
}

/// A run of before, with two iterations.
pub fn earlier_run() -> (RunId, Vec<Iteration>) {
    let run: RunId = "20261120-090000-77aa00".parse().expect("a run");
    let mut iterations = lineage().iterations().to_vec();
    iterations.last_mut().expect("two").end_reason = Some(EndReason::Shutdown);
    let iterations = Lineage::recorded(run.clone(), iterations, |_| at(0).wall);
    (run, iterations.iterations().to_vec())
}

/// What the store has of an iteration that was given a handoff and gave one.
pub fn past(run: &RunId, iteration: &Iteration) -> PastSession {
    let entry = |text: &str| JournalEntry {
        reboot_id: uuid::Uuid::from_u128(1),
        run: run.clone(),
        iteration: iteration.iteration,
        step: Step::Done,
        way: Way::Fresh,
        old_session: None,
        new_session: None,
        nonce: String::new(),
        handoff: text.to_owned(),
        trim: None,
        cause: Cause::Threshold,
        at: at(0).wall,
        outcome: None,
    };
    let mut iteration = iteration.clone();
    let lines = "one more line\n".repeat(40);
    iteration.summary = Some(format!("{lines}the last line of the summary"));
    PastSession {
        run: run.clone(),
        task: None,
        iteration,
        got: Some(entry(
            "# Handoff\n\n## Pending\n\n- [ ] read dates\u{1b}[2J",
        )),
        gave: Some(entry(
            "# Handoff\n\n## Next step\n\n- [ ] write dates\n\n## Pending\n\n- [ ] read times",
        )),
        state: None,
        checkpoint: None,
    }
}

/// A supervisor whose agent has not been started.
pub fn beginning(host: (u16, u16), notes: &str) -> Model {
    app::model_of(Beginning {
        identity: identity(),
        config: Config::default(),
        lineage: Lineage::new("20261121-072200-3fa94c".parse().expect("a run")),
        session: session(3),
        new_ids: new_ids(1),
        notes: notes.to_owned(),
        generator: Generator::default(),
        host,
        now: at(0),
    })
}

/// A supervisor in its third iteration, at 71 % of a 200 k window, between two turns.
pub fn working(host: (u16, u16)) -> Model {
    let mut model = app::model_of(Beginning {
        lineage: lineage(),
        identity: identity(),
        config: Config::default(),
        session: session(3),
        new_ids: new_ids(1),
        notes: NOTES.to_owned(),
        generator: Generator::default(),
        host,
        now: at(0),
    });
    update(&mut model, 0, Event::Store(StoreEvent::TurnsRead(turns())));
    app::iteration::begin(&mut model, false, Some(Cause::Key), None);
    if let Some(current) = model.lineage.current_mut() {
        current.reboot = Some(record(3));
    }
    update(
        &mut model,
        1,
        Event::Pane(PaneEvent::Spawned {
            iteration: IterationId::new(3).expect("not 0"),
            process: ProcessStamp {
                pid: 4243,
                start_time: "1".to_owned(),
            },
            new_ids: new_ids(2),
        }),
    );
    say(
        &mut model,
        2,
        AgentEvent::SessionStarted {
            session: session(3),
            source: StartSource::Startup,
            model: None,
            transcript_path: None,
            prompt_cache: None,
        },
    );
    let title = ScreenFact::Title("✳ Stream the importer".to_owned());
    update(&mut model, 3, Event::Pane(PaneEvent::Screen(title)));
    let figures = [
        19_300, 31_000, 35_400, 39_100, 52_800, 57_000, 61_900, 66_000, 83_700, 88_100, 92_000,
        109_300, 115_000, 119_200, 124_300, 128_400,
    ];
    for (turn, used) in (0..).zip(figures) {
        let second = 20 + turn * 46;
        begin_turn(&mut model, second - 1);
        say(&mut model, second, figure(used));
        if turn + 1 < figures.len() as u64 {
            end_turn(&mut model, second + 1);
        }
    }
    end_turn(&mut model, 712);
    // What was said meanwhile is no longer shown.
    model.view.notices.clear();
    model.now = at(712);
    model
}

/// The turn is over.
pub fn end_turn(model: &mut Model, second: u64) {
    let session = model.session.id;
    say(
        model,
        second,
        AgentEvent::TurnEnded {
            session,
            last_message: None,
            background: pitstop_agent::Background::default(),
            transcript_path: None,
        },
    );
}

/// What a reboot waits for is there: its steps are on disk and its draft is made.
pub fn drafted(model: &mut Model, second: u64) {
    for _ in 0..4 {
        let Some(attempt) = &model.reboot.attempt else {
            return;
        };
        let (reboot, step) = (attempt.id, attempt.step());
        let stored = StoreEvent::Journaled { reboot, step };
        update(model, second, Event::Store(stored));
        update(
            model,
            second,
            Event::Read(ReadEvent::HandoffFiles(Box::default())),
        );
        // The transcript is read for too long, whichever order that was.
        for epoch in 0..500 {
            update(model, second, Event::TimerFired(TimerId::Summary(epoch)));
        }
    }
}

/// A turn has begun.
pub fn begin_turn(model: &mut Model, second: u64) {
    let session = model.session.id;
    say(
        model,
        second,
        AgentEvent::PromptSubmitted {
            session,
            prompt: "go on".to_owned(),
            transcript_path: None,
        },
    );
}

/// The status line shows a figure of a 200 k window.
pub fn figure(used: u64) -> AgentEvent {
    AgentEvent::StatusLine(Box::new(StatusLine {
        session: session(3),
        transcript_path: None,
        model_id: Some("claude-opus-4-8".to_owned()),
        model_name: Some("Opus 4.8".to_owned()),
        window: Some(Tokens(200_000)),
        usage: Some(Usage {
            cache_read: Tokens(used),
            ..Usage::default()
        }),
        used_percentage: None,
        cost_usd: Some(4.12),
        duration_ms: None,
        five_hour: None,
        seven_day: None,
        version: Some("2.1.197".to_owned()),
        prompt_cache: None,
    }))
}

/// The agent says something.
pub fn say(model: &mut Model, second: u64, event: AgentEvent) {
    update(model, second, Event::Agent(event));
}

/// Something happens.
pub fn update(model: &mut Model, second: u64, event: Event) {
    app::update(model, at(second), event);
}

/// The survey for the review is done: 67 responses, with so many tokens left after each level.
pub fn plan_trim(model: &mut Model, second: u64, after: [u64; 5]) {
    let levels: Vec<_> = LEVELS
        .into_iter()
        .zip(after)
        .map(|(percent, left)| LevelFigure {
            percent,
            responses: (67 * usize::from(percent)).div_ceil(100),
            tokens_before: Tokens(after[0]),
            tokens_after: Tokens(left),
        })
        .collect();
    let chosen = levels
        .iter()
        .find(|level| level.tokens_after.0 < 122_400)
        .map(|level| level.percent);
    let plan = TrimPlan {
        levels,
        chosen,
        estimated: false,
    };
    let ask = model
        .reboot
        .attempt
        .as_ref()
        .and_then(|attempt| attempt.preview.asked())
        .expect("a survey is under way");
    let plan = Ok(plan);
    update(
        model,
        second,
        Event::Read(ReadEvent::TrimPlanned { ask, plan }),
    );
}

/// The user does what a bound key does.
pub fn act(model: &mut Model, action: Action) {
    if let Err(why) = app::input::act(model, action) {
        model.error(why.to_string());
    }
}

/// The user presses a key that is not bound.
pub fn press(model: &mut Model, code: crossterm::event::KeyCode) {
    press_key(model, crossterm::event::KeyEvent::from(code));
}

/// The user presses a key with its modifiers.
pub fn press_key(model: &mut Model, key: crossterm::event::KeyEvent) {
    let now = model.now;
    app::update(
        model,
        now,
        Event::Host(HostEvent::Input(HostInput::Key {
            event: key,
            raw: Vec::new(),
        })),
    );
}

/// A screen of the size that the layout gives the pane, with an agent's work on it.
pub fn screen(model: &Model) -> Screen {
    let size = layout::layout(model).pane_size();
    let mut screen = Screen::new(size, 1_000);
    screen.feed(&session_bytes(size.columns(), size.rows()), Instant::now());
    screen
}

/// A line of code as wide as its coloured ground.
fn padded(text: &str) -> String {
    format!(
        "{text}{}",
        " ".repeat(58_usize.saturating_sub(text.width()))
    )
}

/// What a coding agent's terminal looks like after some work, in the sequences that such programs send.
pub fn session_bytes(columns: u16, rows: u16) -> Vec<u8> {
    const GREY: &str = "\x1b[38;2;139;147;167m";
    const ORANGE: &str = "\x1b[38;2;215;119;87m";
    const GREEN: &str = "\x1b[38;2;78;186;101m";
    const END: &str = "\x1b[0m";
    // What stands on a dark ground is light, whatever the terminal's colours are.
    const LIGHT: &str = "\x1b[38;2;230;237;243m";
    let rule = "─".repeat(usize::from(columns));
    let added = |number: u16, text: &str| {
        format!(
            "    {GREY}{number:>3}{END} \x1b[48;2;34;92;43m{LIGHT}+ {}{END}",
            padded(text)
        )
    };
    let removed = |number: u16, text: &str| {
        format!(
            "    {GREY}{number:>3}{END} \x1b[48;2;122;41;54m{LIGHT}- {}{END}",
            padded(text)
        )
    };
    let lines = [
        format!(
            "\x1b[48;2;55;55;55m{LIGHT}> stream the importer, and keep the headers of issue #214 working {END}"
        ),
        String::new(),
        format!(
            "{ORANGE}●{END} The loader reads the whole file. I'll make it yield batches first."
        ),
        String::new(),
        format!("{GREEN}●{END} \x1b[1mRead\x1b[22m(src/import/loader.rs)"),
        format!("  {GREY}⎿{END}  Read 212 lines"),
        String::new(),
        format!("{GREEN}●{END} \x1b[1mUpdate\x1b[22m(src/import/loader.rs)"),
        format!("  {GREY}⎿{END}  Added 3 lines, removed 1 line"),
        removed(41, "    let rows: Vec<Row> = reader.collect()?;"),
        added(41, "    let batches = reader.batches(4096);"),
        added(42, "    for batch in batches {"),
        added(
            43,
            "        writer.send(batch?).await?; // 見出し stays UTF-8",
        ),
        String::new(),
        format!("{GREEN}●{END} \x1b[1mBash\x1b[22m(cargo test -p ledger-import)"),
        format!("  {GREY}⎿{END}  test headers_in_japanese_survive ... \x1b[32mok{END}"),
        format!("     test memory_stays_constant ... \x1b[32mok{END}"),
        format!("     {GREY}… +12 lines{END}"),
        String::new(),
        format!(
            "{ORANGE}●{END} Batches work; \x1b[1mback-pressure\x1b[22m is next. The queue between reader and"
        ),
        "  writer must be bounded, or a slow disk fills the memory again.".to_owned(),
        String::new(),
        format!("{ORANGE}✻{END} {GREY}Worked for 1m 12s{END}"),
        String::new(),
    ];
    let mut bytes = String::from("\x1b[2J\x1b[H\x1b]2;✳ Stream the importer\x07");
    let room = usize::from(rows.saturating_sub(4));
    for line in &lines[lines.len().saturating_sub(room)..] {
        bytes.push_str(line);
        bytes.push_str("\r\n");
    }
    let base = rows.saturating_sub(3).max(1);
    let _ = write!(
        bytes,
        "\x1b[{base};1H{GREY}{rule}{END}\x1b[{};1H{GREY}❯{END} \x1b[{};1H{GREY}{rule}{END}\x1b[{};1H  {GREY}? for shortcuts{END}",
        base + 1,
        base + 2,
        base + 3,
    );
    let _ = write!(bytes, "\x1b[{};3H", base + 1);
    bytes.into_bytes()
}
