//! What the user may set: complete, checked and ready to use.
//!
//! ```text
//!   load.rs    find and read the files, ask the trust record
//!   file.rs    TOML text -> the keys as written, with positions   schema.rs  every key there is
//!   merge.rs   defaults < user < project < flags -> Config        error.rs   faults with carets
//! ```
//!
//! No other room sees a half-checked value: percentages are ordered, durations are in
//! range, zeros that mean "none" have become `None`, and the keymap has no conflict. The commented
//! defaults are `config.toml` at the top of the repository ([`DEFAULT_TOML`]).

pub mod error;
mod file;
pub mod load;
mod merge;
mod schema;
pub(crate) mod units;

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

pub use file::nearest;
pub use units::parse_duration;

use crate::keymap::Keymap;

/// The commented default configuration; parsed, it equals [`Config::default`].
pub const DEFAULT_TOML: &str = include_str!("../../config.toml");

/// Everything that can be set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// The hosted program.
    pub agent: AgentConfig,
    /// How large the context is and how it is treated.
    pub context: ContextConfig,
    /// When to warn and when to reboot.
    pub guard: GuardConfig,
    /// What the next session is given.
    pub handoff: HandoffConfig,
    /// How a reboot goes.
    pub reboot: RebootConfig,
    /// The summary in the handoff.
    pub summary: SummaryConfig,
    /// The unattended run: `[loop]`.
    pub autopilot: AutopilotConfig,
    /// The user's own commands around a reboot.
    pub hooks: HooksConfig,
    /// The door for scripts and people elsewhere.
    pub api: ApiConfig,
    /// Where runs are kept.
    pub store: StoreConfig,
    /// Which key does what: `[keys]`.
    pub keys: Keymap,
    /// Looks.
    pub ui: UiConfig,
    /// The recording of the pane's output.
    pub recording: RecordingConfig,
    /// The log file.
    pub log: LogConfig,
}

/// `[agent]`: the hosted program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// The program: a name looked up in `PATH`, or a path. Never a shell line.
    pub command: String,
    /// Arguments given to it before ours.
    pub args: Vec<String>,
    /// Variables added to its environment.
    pub env: BTreeMap<String, String>,
    /// Whether its to-do tools are switched on for models that have none by themselves.
    pub todo_tools: bool,
    /// Whether Claude Code is started with our mods, which report from inside it.
    pub bridge: bool,
    /// Whether the agent gets tools of ours: to read how full its context is, to keep notes, to ask for a reboot.
    pub tools: bool,
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            command: "claude".to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            todo_tools: true,
            bridge: true,
            tools: true,
        }
    }
}

/// `[context]`: how large the context is and how it is treated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextConfig {
    /// The context window, in tokens; `None` to find it out.
    pub window: Option<u64>,
    /// What the client keeps back of the window, in tokens.
    pub reserve: u64,
    /// How many of the latest messages a trim leaves whole.
    pub max_recent_messages: usize,
    /// A checkpoint is written every this many turns; `None` for never.
    pub checkpoint_interval: Option<u32>,
    /// Whether a commit makes a checkpoint.
    pub checkpoint_at_commits: bool,
    /// Whether a test run makes one.
    pub checkpoint_at_tests: bool,
}

impl Default for ContextConfig {
    fn default() -> Self {
        Self {
            window: None,
            reserve: 20_000,
            max_recent_messages: 10,
            checkpoint_interval: Some(5),
            checkpoint_at_commits: true,
            checkpoint_at_tests: true,
        }
    }
}

/// A named set of thresholds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// 50, 70 and 85 % of the usable window.
    #[default]
    Default,
    /// 70, 80 and 90 %: for those who want to use what they have.
    Late,
    /// 30, 40 and 50 %: for those who want a fresh mind.
    Early,
    /// The default's, but no more than 120 000, 170 000 and 220 000 tokens: for large windows, where answers get slower, dearer
    /// and worse long before the window is full.
    Lean,
}

impl Preset {
    /// The preset's notice, warn and compact lines, in percent of the usable window.
    #[must_use]
    pub const fn percents(self) -> [u8; 3] {
        match self {
            Self::Default | Self::Lean => [50, 70, 85],
            Self::Late => [70, 80, 90],
            Self::Early => [30, 40, 50],
        }
    }

    /// The preset's absolute caps on the notice, warn and compact lines, in tokens.
    #[must_use]
    pub const fn caps(self) -> [Option<u64>; 3] {
        match self {
            Self::Default | Self::Late | Self::Early => [None; 3],
            Self::Lean => [Some(120_000), Some(170_000), Some(220_000)],
        }
    }
}

/// `[guard]`: when to warn and when to reboot. `notice < warn < compact <= force_at`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardConfig {
    /// Up to here all is healthy, in percent of the usable window.
    pub notice: u8,
    /// From here on a checkpoint is kept and the handoff drafted, in percent.
    pub warn: u8,
    /// From here on a reboot is advised, in percent.
    pub compact: u8,
    /// From here on `auto` interrupts a turn, in percent.
    pub force_at: u8,
    /// Absolute cap on the notice line, in tokens; the lower of the two wins.
    pub notice_tokens: Option<u64>,
    /// Absolute cap on the warn line, in tokens.
    pub warn_tokens: Option<u64>,
    /// Absolute cap on the compact line, in tokens.
    pub compact_tokens: Option<u64>,
    /// Whether the client's own compaction is switched off in favour of ours.
    pub replace_compaction: bool,
    /// How long a compaction of the client's waits for an answer.
    pub answer_within: Duration,
    /// What becomes of one without an answer in time.
    pub unanswered: Unanswered,
}

/// What becomes of a compaction without an answer in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unanswered {
    /// The client goes its own way.
    #[default]
    Client,
    /// The handoff takes the place of the conversation.
    Handoff,
}

impl Default for GuardConfig {
    fn default() -> Self {
        let [notice, warn, compact] = Preset::default().percents();
        Self {
            notice,
            warn,
            compact,
            force_at: 97,
            notice_tokens: None,
            warn_tokens: None,
            compact_tokens: None,
            replace_compaction: false,
            answer_within: Duration::from_secs(120),
            unanswered: Unanswered::default(),
        }
    }
}

/// `[handoff]`: what the next session is given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HandoffConfig {
    /// Whether a handoff is written at all; without it a fresh session starts empty.
    pub generate_handoff: bool,
    /// The largest handoff, in bytes.
    pub max_state_size: usize,
    /// Files whose text goes into the handoff, relative to the project.
    pub include_files: Vec<String>,
    /// Whether recent commits go in.
    pub include_git_history: bool,
    /// How many of them.
    pub git_history_count: usize,
    /// How it tells what was done last.
    pub recent_activity: RecentActivity,
    /// Whether the outcome of the tests goes in.
    pub include_test_state: bool,
}

impl Default for HandoffConfig {
    fn default() -> Self {
        Self {
            generate_handoff: true,
            max_state_size: 50_000,
            include_files: Vec::new(),
            include_git_history: true,
            git_history_count: 5,
            recent_activity: RecentActivity::LastSteps,
            include_test_state: true,
        }
    }
}

/// How the handoff tells what was done last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecentActivity {
    /// By the last steps of the transcript.
    LastSteps,
    /// By the last shell commands with their output.
    RecentCommands,
}

/// Who decides that a reboot happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RebootMode {
    /// Keys only.
    Manual,
    /// A line on the screen asks for a review; nothing happens without approval.
    #[default]
    Ask,
    /// Goes ahead at the next safe moment; a key stops it.
    Auto,
}

impl RebootMode {
    /// The mode's name in the config, the footer and `status --json`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Ask => "ask",
            Self::Auto => "auto",
        }
    }
}

/// How the handoff reaches the new session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// As the start prompt, an argument of the command.
    #[default]
    Prompt,
    /// Pasted into the pane, for those who do not want it in process lists.
    Paste,
}

/// How the context goes over where nothing else is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RebootWay {
    /// A new session in a new process.
    #[default]
    Fresh,
    /// The conversation is replaced inside the running client, where its bridge is in force.
    InPlace,
}

/// `[reboot]`: how a reboot goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RebootConfig {
    /// Who decides.
    pub mode: RebootMode,
    /// How the context goes over.
    pub way: RebootWay,
    /// How the handoff reaches the new session.
    pub delivery: Delivery,
    /// How long `auto` announces a reboot before it goes ahead.
    pub auto_delay: Duration,
    /// How long the human must not have typed.
    pub typing_quiet: Duration,
    /// How long the handoff may take to come back as received.
    pub verify_timeout: Duration,
    /// How long an interrupted turn may take to stop.
    pub interrupt_timeout: Duration,
    /// How long the agent may take to exit on SIGINT.
    pub exit_timeout: Duration,
    /// How long it may take to end after SIGHUP.
    pub hangup_timeout: Duration,
    /// How long it may take to end after SIGTERM; then SIGKILL.
    pub terminate_timeout: Duration,
    /// More reboots than this in an hour trip a breaker.
    pub max_reboots_per_hour: u32,
    /// So many sessions in a row that fill without getting anything done trip a breaker.
    pub max_idle_sessions: u32,
    /// How long the end of a turn is waited for where it cannot be rebooted on the fly.
    pub turn_patience: Duration,
    /// A prompt sent to the new session before the work goes on.
    pub warmup_prompt: Option<String>,
    /// How long after the start the warm-up prompt is sent.
    pub warmup_delay: Duration,
}

impl Default for RebootConfig {
    fn default() -> Self {
        Self {
            mode: RebootMode::default(),
            way: RebootWay::default(),
            delivery: Delivery::default(),
            auto_delay: Duration::from_secs(10),
            typing_quiet: Duration::from_secs(3),
            verify_timeout: Duration::from_secs(20),
            interrupt_timeout: Duration::from_millis(500),
            exit_timeout: Duration::from_secs(5),
            hangup_timeout: Duration::from_secs(3),
            terminate_timeout: Duration::from_secs(3),
            max_reboots_per_hour: 20,
            max_idle_sessions: 3,
            turn_patience: Duration::from_mins(10),
            warmup_prompt: None,
            warmup_delay: Duration::from_secs(2),
        }
    }
}

/// `[summary]`: the summary in the handoff.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryConfig {
    /// Whether a model is asked for one; without it the summary is made from the transcript alone.
    pub generate_summaries: bool,
    /// The tools the asked model may use.
    pub summary_allowed_tools: Vec<String>,
    /// Which model; `None` for the session's own.
    pub model: Option<String>,
    /// How long it may take.
    pub timeout: Duration,
    /// What one summary may cost, in US dollars.
    pub max_cost_usd: f64,
}

impl Default for SummaryConfig {
    fn default() -> Self {
        Self {
            generate_summaries: true,
            summary_allowed_tools: vec!["Read".to_owned()],
            model: None,
            timeout: Duration::from_secs(60),
            max_cost_usd: 0.5,
        }
    }
}

/// `[loop]`: the caps and breakers of the unattended run.
#[derive(Clone, Debug, PartialEq)]
pub struct AutopilotConfig {
    /// The run ends after this many iterations; `None` for no cap.
    pub max_iterations: Option<u32>,
    /// The run ends when it has cost this much, in US dollars; `None` for no cap.
    pub max_cost_usd: Option<f64>,
    /// The run ends after this long; `None` for no cap.
    pub max_time: Option<Duration>,
    /// Whether the run goes on headless when its terminal is lost.
    pub keep_running: bool,
    /// How long the run waits for background tasks of the agent before it goes on; a wake-up is waited for at least 65 minutes.
    pub background_wait: Duration,
    /// The same command failing this often in a row trips a breaker; `None` switches it off.
    pub same_command_limit: Option<u32>,
    /// This many turns in a row without a change trip a breaker; `None` switches it off.
    pub no_change_limit: Option<u32>,
    /// This many turns in a row that end with the same words trip a breaker; `None` switches it off.
    pub same_message_limit: Option<u32>,
}

impl Default for AutopilotConfig {
    fn default() -> Self {
        Self {
            max_iterations: Some(50),
            max_cost_usd: Some(25.0),
            max_time: Some(Duration::from_secs(8 * 3600)),
            keep_running: false,
            background_wait: Duration::from_secs(30 * 60),
            same_command_limit: Some(5),
            no_change_limit: Some(8),
            same_message_limit: Some(4),
        }
    }
}

/// `[hooks]`: the user's own commands around a reboot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HooksConfig {
    /// Run by `sh -c` before a reboot; its failure blocks it.
    pub pre_reboot: Option<String>,
    /// Run by `sh -c` after a reboot.
    pub post_reboot: Option<String>,
    /// How long each may take.
    pub timeout: Duration,
}

impl Default for HooksConfig {
    fn default() -> Self {
        Self {
            pre_reboot: None,
            post_reboot: None,
            timeout: Duration::from_secs(30),
        }
    }
}

/// `[api]`: the door for scripts and people elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiConfig {
    /// The loopback address to listen on beside the control socket; `None` for no such door.
    pub listen: Option<SocketAddr>,
}

/// `[store]`: where runs are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreConfig {
    /// A `sqlite:` or `postgres:` URL; `None` for the `SQLite` file in the state directory.
    pub url: Option<String>,
    /// What checkpoints are filed under; `None` for the name of the project's directory.
    pub environment: Option<String>,
}

/// The colours of the panels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThemeName {
    /// By the host terminal's background.
    #[default]
    Auto,
    /// For dark backgrounds.
    Dark,
    /// For light backgrounds.
    Light,
    /// Colours that people with colour blindness can distinguish.
    ColourBlind,
    /// Strong contrast.
    HighContrast,
    /// No colours, only attributes.
    Mono,
}

/// What becomes of the child's wish to write the clipboard (OSC 52). Reading it is always refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClipboardPolicy {
    /// Passed on while the pane has the focus.
    #[default]
    Focused,
    /// Always passed on.
    Allow,
    /// Never passed on.
    Deny,
}

/// How the user is called when a person is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notifications {
    /// By a desktop notification of the host terminal (OSC 9 or 777) and the bell.
    #[default]
    Desktop,
    /// By the bell alone.
    Bell,
    /// Not at all; the footer says it.
    Off,
}

/// `[ui]`: looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UiConfig {
    /// The colours.
    pub theme: ThemeName,
    /// How many lines of the pane are kept above its screen.
    pub scrollback_lines: usize,
    /// Whether they stay when the child asks for them to be forgotten (`CSI 3 J`).
    pub keep_scrollback: bool,
    /// The width of the panels, in cells; `None` to fit the host terminal.
    pub panel_width: Option<u16>,
    /// What becomes of the child's wish to write the clipboard.
    pub clipboard: ClipboardPolicy,
    /// How the user is called.
    pub notifications: Notifications,
    /// Whether a start asks what to do with earlier work.
    pub offer_past: bool,
}

impl Default for UiConfig {
    fn default() -> Self {
        Self {
            theme: ThemeName::default(),
            scrollback_lines: 10_000,
            keep_scrollback: false,
            panel_width: None,
            clipboard: ClipboardPolicy::default(),
            notifications: Notifications::default(),
            offer_past: true,
        }
    }
}

/// `[recording]`: the recording of the pane's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingConfig {
    /// Whether output is recorded.
    pub enabled: bool,
    /// Whether what the user types is recorded too.
    pub record_input: bool,
    /// The largest recording of one run, in bytes.
    pub max_size: u64,
}

impl Default for RecordingConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            record_input: false,
            max_size: 64 * 1024 * 1024,
        }
    }
}

/// How much the log says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum LogLevel {
    /// Failures.
    Error,
    /// And what was survived.
    Warn,
    /// And what happened.
    #[default]
    Info,
    /// And why.
    Debug,
    /// And everything else.
    Trace,
}

/// `[log]`: the log file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// How much it says.
    pub level: LogLevel,
    /// How many daily files are kept.
    pub keep_days: u32,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            level: LogLevel::default(),
            keep_days: 7,
        }
    }
}
