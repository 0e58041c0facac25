//! The configuration that the user may set: complete, checked and ready to use.
//!
//! ```text
//!   load.rs    find and read the files, ask the trust record
//!   file.rs    TOML text -> the keys as written, with positions   schema.rs  every key there is
//!   merge.rs   defaults < user < project < flags -> Config        error.rs   faults with carets
//! ```
//!
//! No other module sees a half-checked value: percentages are ordered, durations are in
//! range, zeros that mean "none" have become `None`, and the keymap has no conflict. The commented
//! defaults are `config.toml` at the top of the repository ([`DEFAULT_TOML`]), and stand nowhere else: the `Default` of a single
//! table is empty, and the one to use is that of [`Config`].

pub mod error;
mod file;
pub mod load;
mod merge;
mod schema;
mod units;

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, sync::LazyLock, time::Duration};

pub use file::nearest;
pub use units::parse_duration;

use strum::{EnumString, IntoStaticStr, VariantNames};

use pitstop_base::keymap::Keymap;

/// The commented default configuration, of which [`Config::default`] is made.
pub const DEFAULT_TOML: &str = include_str!("../../../../config.toml");

/// Everything that can be set.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The hosted program.
    pub agent: AgentConfig,
    /// The size of the context and its treatment.
    pub context: ContextConfig,
    /// The lines at which Pitstop warns and reboots.
    pub guard: GuardConfig,
    /// The handoff for the next session.
    pub handoff: HandoffConfig,
    /// The course of a reboot.
    pub reboot: RebootConfig,
    /// The summary in the handoff.
    pub summary: SummaryConfig,
    /// The unattended run: `[loop]`.
    pub autopilot: AutopilotConfig,
    /// The session and its terminals.
    pub session: SessionConfig,
    /// `[fleet]`
    pub fleet: FleetConfig,
    /// The user's own commands around a reboot.
    pub hooks: HooksConfig,
    /// The calls for a person.
    pub notify: NotifyConfig,
    /// The endpoint for scripts and people elsewhere.
    pub api: ApiConfig,
    /// The place where runs are kept.
    pub store: StoreConfig,
    /// The keymap: `[keys]`.
    pub keys: Keymap,
    /// The looks.
    pub ui: UiConfig,
    /// The recording of the pane's output.
    pub recording: RecordingConfig,
    /// The log file.
    pub log: LogConfig,
}

impl Default for Config {
    fn default() -> Self {
        static DEFAULTS: LazyLock<Config> = LazyLock::new(|| {
            let file = file::read("config.toml", DEFAULT_TOML);
            merge::defaults(file).expect("a test reads the file that is compiled in")
        });
        DEFAULTS.clone()
    }
}

impl Config {
    /// Returns the configuration in which nothing is set yet.
    fn empty() -> Self {
        Self {
            agent: AgentConfig::default(),
            context: ContextConfig::default(),
            guard: GuardConfig::default(),
            handoff: HandoffConfig::default(),
            reboot: RebootConfig::default(),
            summary: SummaryConfig::default(),
            autopilot: AutopilotConfig::default(),
            session: SessionConfig::default(),
            fleet: FleetConfig::default(),
            hooks: HooksConfig::default(),
            notify: NotifyConfig::default(),
            api: ApiConfig::default(),
            store: StoreConfig::default(),
            keys: Keymap::default(),
            ui: UiConfig::default(),
            recording: RecordingConfig::default(),
            log: LogConfig::default(),
        }
    }
}

/// `[agent]`: the hosted program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentConfig {
    /// The program: a name looked up in `PATH`, or a path. Never a shell line.
    pub command: String,
    /// The arguments given to the program before those that Pitstop adds.
    pub args: Vec<String>,
    /// Variables added to its environment.
    pub env: BTreeMap<String, String>,
    /// True if its to-do tools are switched on for models that have none by themselves.
    pub todo_tools: bool,
    /// True if Claude Code is started with Pitstop's mods, which report from inside it.
    pub bridge: bool,
    /// True if the agent gets Pitstop's tools: to read how full its context is, to keep notes, to ask for a reboot.
    pub tools: bool,
}

/// `[context]`: the size of the context and its treatment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextConfig {
    /// The context window, in tokens; `None` to find it out.
    pub window: Option<u64>,
    /// The part of the window that the client keeps back, in tokens.
    pub reserve: u64,
    /// The number of the latest messages that a trim leaves whole.
    pub max_recent_messages: usize,
    /// The number of turns from one checkpoint to the next; `None` for never.
    pub checkpoint_interval: Option<u32>,
    /// True if a commit makes a checkpoint.
    pub checkpoint_at_commits: bool,
    /// True if a test run makes a checkpoint.
    pub checkpoint_at_tests: bool,
}

/// A named set of thresholds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Preset {
    /// The lines at 50, 70 and 85 % of the usable window, but no higher than they are in a window of 200 000 tokens: above, each
    /// call costs more than a reboot does (`docs/cost.md`).
    #[default]
    Default,
    /// The lines at 70, 80 and 90 % of any window: for those who want to use the window they have.
    Late,
    /// The lines at 30, 40 and 50 %, with the same bound: for those who want a fresh mind.
    Early,
    /// The lines of the default, but no more than 120 000, 170 000 and 220 000 tokens: for large windows, a third more room than
    /// the default at about a fifth more cost.
    Lean,
}

impl Preset {
    /// Returns the preset's notice, warn and compact lines, in percent of the usable window.
    pub const fn percents(self) -> [u8; 3] {
        match self {
            Self::Default | Self::Lean => [50, 70, 85],
            Self::Late => [70, 80, 90],
            Self::Early => [30, 40, 50],
        }
    }

    /// Returns the preset's absolute caps on the notice, warn and compact lines, in tokens.
    pub const fn caps(self) -> [Option<u64>; 3] {
        match self {
            Self::Default => [Some(90_000), Some(126_000), Some(153_000)],
            Self::Late => [None; 3],
            Self::Early => [Some(54_000), Some(72_000), Some(90_000)],
            Self::Lean => [Some(120_000), Some(170_000), Some(220_000)],
        }
    }
}

/// `[guard]`: the lines at which Pitstop warns and reboots. `notice < warn < compact <= force_at`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardConfig {
    /// The notice line, in percent of the usable window: up to here all is healthy.
    pub notice: u8,
    /// The warn line, in percent: from here on a checkpoint is kept and the handoff drafted.
    pub warn: u8,
    /// The compact line, in percent: from here on a reboot is advised.
    pub compact: u8,
    /// The force line, in percent: from here on `auto` interrupts a turn.
    pub force_at: u8,
    /// The absolute cap on the notice line, in tokens; the lower of the two wins.
    pub notice_tokens: Option<u64>,
    /// The absolute cap on the warn line, in tokens.
    pub warn_tokens: Option<u64>,
    /// The absolute cap on the compact line, in tokens.
    pub compact_tokens: Option<u64>,
    /// True if the client's own compaction is switched off in favour of Pitstop's.
    pub replace_compaction: bool,
    /// The time that a compaction of the client waits for an answer.
    pub answer_within: Duration,
    /// The treatment of a compaction without an answer in time.
    pub unanswered: Unanswered,
    /// The treatment of a prompt that would have the service read the whole conversation again.
    pub cold_cache: ColdCache,
}

/// The treatment of the first prompt after the prompt cache has gone cold, where a fresh session is cheaper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum ColdCache {
    /// Nothing is said of it.
    Off,
    /// Its price is on the screen before it is typed.
    #[default]
    Say,
    /// It waits for a key, for at most [`GuardConfig::answer_within`].
    Ask,
}

/// The treatment of a compaction without an answer in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Unanswered {
    /// The client compacts by itself.
    #[default]
    Client,
    /// The handoff takes the place of the conversation.
    Handoff,
}

/// `[handoff]`: the handoff for the next session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HandoffConfig {
    /// True if a handoff is written at all; without it a fresh session starts empty.
    pub generate_handoff: bool,
    /// The largest handoff, in bytes.
    pub max_state_size: usize,
    /// The files whose text goes into the handoff, relative to the project.
    pub include_files: Vec<String>,
    /// True if recent commits go in.
    pub include_git_history: bool,
    /// The number of recent commits.
    pub git_history_count: usize,
    /// The form in which the handoff gives the latest work.
    pub recent_activity: RecentActivity,
    /// True if the outcome of the tests goes in.
    pub include_test_state: bool,
}

/// The form in which the handoff gives the latest work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum RecentActivity {
    /// The last steps of the transcript.
    #[default]
    LastSteps,
    /// The last shell commands with their output.
    RecentCommands,
}

/// The mode that decides that a reboot happens.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EnumString, IntoStaticStr, VariantNames,
)]
#[strum(serialize_all = "kebab-case")]
pub enum RebootMode {
    /// Reboots only at a key.
    Manual,
    /// Asks for a review by a line on the screen; no reboot happens without approval.
    #[default]
    Ask,
    /// Goes ahead at the next safe moment; a key stops it.
    Auto,
}

impl RebootMode {
    /// Returns the mode's name in the config, the footer and `status --json`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The way by which the handoff reaches the new session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Delivery {
    /// Passes the handoff as the start prompt, an argument of the command.
    #[default]
    Prompt,
    /// Pastes the handoff into the pane, for those who do not want it in process lists.
    Paste,
}

/// The way by which the context goes over, unless another one is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum RebootWay {
    /// Starts a new session in a new process.
    #[default]
    Fresh,
    /// Replaces the conversation inside the running client, where its bridge is in force.
    InPlace,
}

/// `[reboot]`: the course of a reboot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RebootConfig {
    /// The mode that decides that a reboot happens.
    pub mode: RebootMode,
    /// The way by which the context goes over.
    pub way: RebootWay,
    /// The way by which the handoff reaches the new session.
    pub delivery: Delivery,
    /// The time that `auto` announces a reboot before it goes ahead.
    pub auto_delay: Duration,
    /// The time that the user must not have typed.
    pub typing_quiet: Duration,
    /// The time that the handoff may take to come back as received.
    pub verify_timeout: Duration,
    /// The time that an interrupted turn may take to stop.
    pub interrupt_timeout: Duration,
    /// The time that the agent may take to exit on SIGINT.
    pub exit_timeout: Duration,
    /// The time that it may take to end after SIGHUP.
    pub hangup_timeout: Duration,
    /// The time that it may take to end after SIGTERM; then SIGKILL.
    pub terminate_timeout: Duration,
    /// The number of reboots in an hour above which a breaker trips.
    pub max_reboots_per_hour: u32,
    /// The number of sessions in a row that fill without getting anything done at which a breaker trips.
    pub max_idle_sessions: u32,
    /// The time to wait for the end of a turn where it cannot be rebooted on the fly.
    pub turn_patience: Duration,
    /// A prompt sent to the new session before the work goes on.
    pub warmup_prompt: Option<String>,
    /// The time from the start until the warm-up prompt is sent.
    pub warmup_delay: Duration,
}

/// `[summary]`: the summary in the handoff.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SummaryConfig {
    /// True if a model is asked for one; without it the summary is made from the transcript alone.
    pub generate_summaries: bool,
    /// The tools the asked model may use.
    pub summary_allowed_tools: Vec<String>,
    /// The name of the model; `None` for the session's own.
    pub model: Option<String>,
    /// The time that the summary may take.
    pub timeout: Duration,
    /// The largest cost of one summary, in US dollars.
    pub max_cost_usd: f64,
}

/// `[session]`: the session and its terminals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionConfig {
    /// What the loss of the last terminal does.
    pub on_hangup: OnHangup,
}

/// `[fleet]`: other machines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetConfig {
    /// The hosts whose sessions are listed, by the names that ssh knows them by.
    pub hosts: Vec<String>,
}

/// `[notify]`: the calls for a person, beside those of the terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotifyConfig {
    /// The command that is given each call.
    pub command: Option<String>,
    /// The address to which each call is posted.
    pub url: Option<String>,
    /// The text that is posted, with `${name}` for the parts of the call.
    pub template: String,
    /// The time that each of both may take.
    pub timeout: Duration,
}

/// Reports whether a text may name a host: it becomes an argument of ssh, where a leading dash would make it a flag, and a part of the
/// name of a file.
pub fn is_host(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '@');
    text.len() <= 200
        && !text.is_empty()
        && !text.starts_with(['-', '.'])
        && text.chars().all(plain)
}

/// What the loss of the last terminal does to a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum OnHangup {
    /// Nothing: the session goes on, and terminals can attach.
    #[default]
    Detach,
    /// It ends the agent and the supervisor.
    End,
}

/// `[loop]`: the caps and breakers of the unattended run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AutopilotConfig {
    /// The number of iterations after which the run ends; `None` for no cap.
    pub max_iterations: Option<u32>,
    /// The cost at which the run ends, in US dollars; `None` for no cap.
    pub max_cost_usd: Option<f64>,
    /// The time after which the run ends; `None` for no cap.
    pub max_time: Option<Duration>,
    /// The time that the run waits for background tasks of the agent before it goes on; a wake-up is waited for at least 65
    /// minutes.
    pub background_wait: Duration,
    /// The number of failures of the same command in a row that trips a breaker; `None` switches it off.
    pub same_command_limit: Option<u32>,
    /// The number of turns in a row without a change that trips a breaker; `None` switches it off.
    pub no_change_limit: Option<u32>,
    /// The number of turns in a row ending with the same message that trips a breaker; `None` switches it off.
    pub same_message_limit: Option<u32>,
}

/// `[hooks]`: the user's own commands around a reboot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HooksConfig {
    /// The command run by `sh -c` before a reboot; its failure blocks it.
    pub pre_reboot: Option<String>,
    /// The command run by `sh -c` after a reboot.
    pub post_reboot: Option<String>,
    /// The time that each command may take.
    pub timeout: Duration,
}

/// `[api]`: the endpoint for scripts and people elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiConfig {
    /// The address to listen on beside the control socket; `None` for no such endpoint.
    pub listen: Option<SocketAddr>,
    /// The address by which paired devices reach the page, without a slash at its end; `None` for the one that is listened on.
    pub url: Option<String>,
    /// True if another program ends TLS in front of an address that other machines can reach.
    pub behind_proxy: bool,
    /// The file of the TLS certificate, in PEM, set together with that of its key.
    pub certificate: Option<PathBuf>,
    /// The file of the certificate's key, in PEM.
    pub key: Option<PathBuf>,
}

/// `[store]`: the place where runs are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreConfig {
    /// A `sqlite:` or `postgres:` URL; `None` for the `SQLite` file in the state directory.
    pub url: Option<String>,
    /// The name that checkpoints are filed under; `None` for the name of the project's directory.
    pub environment: Option<String>,
}

/// The colours of the panels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum ThemeName {
    /// Follows the host terminal's background.
    #[default]
    Auto,
    /// The colours for dark backgrounds.
    Dark,
    /// The colours for light backgrounds.
    Light,
    /// The colours that people with colour blindness can distinguish.
    ColourBlind,
    /// The colours with strong contrast.
    HighContrast,
    /// Attributes without colours.
    Mono,
}

/// The treatment of the child's request to write the clipboard (OSC 52). Reading it is always refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum ClipboardPolicy {
    /// Passes the request on while the pane has the focus.
    #[default]
    Focused,
    /// Always passes the request on.
    Allow,
    /// Never passes the request on.
    Deny,
}

/// The way to call the user when a person is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Notifications {
    /// Calls by a desktop notification of the host terminal (OSC 9 or 777) and the bell.
    #[default]
    Desktop,
    /// Calls by the bell alone.
    Bell,
    /// Does not call; the footer shows it.
    Off,
}

/// `[ui]`: the looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UiConfig {
    /// The colours.
    pub theme: ThemeName,
    /// The number of lines of the pane that are kept above its screen.
    pub scrollback_lines: usize,
    /// True if they stay when the child asks for them to be forgotten (`CSI 3 J`).
    pub keep_scrollback: bool,
    /// The width of the panels, in cells; `None` to fit the host terminal.
    pub panel_width: Option<u16>,
    /// The treatment of the child's request to write the clipboard.
    pub clipboard: ClipboardPolicy,
    /// The way to call the user.
    pub notifications: Notifications,
    /// True if a start asks what to do with earlier work.
    pub offer_past: bool,
}

/// `[recording]`: the recording of the pane's output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingConfig {
    /// True if output is recorded.
    pub enabled: bool,
    /// True if the user's input is recorded too.
    pub record_input: bool,
    /// The largest recording of one iteration, in bytes.
    pub max_size: u64,
}

/// The amount that is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::Display, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum LogLevel {
    /// Logs failures.
    Error,
    /// Logs survived faults too.
    Warn,
    /// Logs events too.
    #[default]
    Info,
    /// Logs the reasons too.
    Debug,
    /// Logs everything else too.
    Trace,
}

/// `[log]`: the log file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogConfig {
    /// The level of the log.
    pub level: LogLevel,
    /// The number of daily files that are kept.
    pub keep_days: u32,
}
