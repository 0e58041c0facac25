//! The table of all keys: their place, their possible values, who may set them and what they change.
//!
//! This table is all that the config language knows; the walk over a file, the names that are suggested and the list of the
//! keys that a project may not set all read it. To add a setting: a field in `mod.rs`, a row here, a commented line in
//! `config.toml`.
//!
//! # The rights to set a key
//!
//! A cloned repository has no say: its `.pitstop/config.toml` may set looks and numbers. Beyond commands, paths, API, agent
//! and permissions, the rows marked [`Voter::Owner`] are also those that guard the user: caps on cost, breakers, delays
//! that leave time to say no, keys (a project could put approval on a key that is often pressed), what is recorded and what
//! is logged.

use std::{
    collections::BTreeMap, net::SocketAddr, path::PathBuf, str::FromStr, sync::LazyLock,
    time::Duration,
};

use strum::VariantNames as _;

use super::{
    ClipboardPolicy, ColdCache, Config, Delivery, LogLevel, Notifications, OnHangup, Preset,
    RebootMode, RebootWay, RecentActivity, ThemeName, Unanswered, is_host,
};
use pitstop_base::keymap::{Action, Chord, Trigger};

/// The settings while layers are laid over each other, before they are checked as a whole.
#[derive(Clone, Debug)]
pub(super) struct PartialConfig {
    pub config: Config,
    /// Notice, warn and compact as far as they are set by number: these win over any preset.
    pub percents: [Option<u8>; 3],
    /// The caps on the three in the same way, in tokens; 0 takes the preset's cap away.
    pub caps: [Option<u64>; 3],
    /// The preset that gives the shares and caps that are not set.
    pub preset: Preset,
    pub prefix: Option<Chord>,
    pub triggers: Vec<(Action, Vec<Trigger>)>,
}

impl PartialConfig {
    /// Returns a configuration that nothing has been laid over yet.
    pub const fn over(config: Config) -> Self {
        Self {
            config,
            percents: [None; 3],
            caps: [None; 3],
            preset: Preset::Default,
            prefix: None,
            triggers: Vec::new(),
        }
    }
}

/// One key of the config language.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub table: &'static str,
    pub name: &'static str,
    pub voter: Voter,
    pub rule: Rule,
}

/// The layers that may set a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voter {
    /// Every layer.
    Anyone,
    /// The user, by their own file, by a flag, or by having trusted the project's file.
    Owner,
}

/// The values that a key may have, and the change it makes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    Flag(fn(&mut PartialConfig, bool)),
    /// A whole number; both ends belong to the range.
    Whole(u64, u64, fn(&mut PartialConfig, u64)),
    /// The same, or 0.
    WholeOr0(u64, u64, fn(&mut PartialConfig, u64)),
    /// A number that may have a fraction.
    Number(f64, f64, fn(&mut PartialConfig, f64)),
    /// A duration.
    Time(Duration, Duration, fn(&mut PartialConfig, Duration)),
    /// A size in bytes.
    Size(u64, u64, fn(&mut PartialConfig, u64)),
    /// One of a few words.
    OneOf(&'static [&'static str], fn(&mut PartialConfig, &str)),
    /// A text; a description of the wanted text, and the check for it.
    Text(
        &'static str,
        fn(&str) -> bool,
        fn(&mut PartialConfig, String),
    ),
    /// A list of texts; a description of each wanted text, and the check for it.
    Texts(
        &'static str,
        fn(&str) -> bool,
        fn(&mut PartialConfig, Vec<String>),
    ),
    /// A table of names and texts.
    Pairs(fn(&mut PartialConfig, BTreeMap<String, String>)),
    /// One chord.
    Chord(fn(&mut PartialConfig, Chord)),
    /// The triggers of one action.
    Triggers(Action),
}

/// The largest number of tokens: no window of any model comes near it, and a larger figure is a slip.
const MAX_TOKENS: u64 = 100_000_000;

/// The longest single prompt or command line that makes sense to keep in a config file, in bytes.
const MAX_TEXT: usize = 16 * 1024;

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const FIVE_MINUTES: Duration = Duration::from_secs(300);
const TEN_MINUTES: Duration = Duration::from_secs(600);
const DAY: Duration = Duration::from_hours(24);
const HOUR: Duration = Duration::from_secs(3_600);
const YEAR: Duration = Duration::from_secs(365 * 86_400);

use Rule::{Flag, Number, OneOf, Pairs, Size, Text, Texts, Time, Whole, WholeOr0};
use Voter::{Anyone, Owner};

/// Returns the tables, in the order of `config.toml`.
pub(super) fn tables() -> impl Iterator<Item = &'static str> {
    let tables = SETTINGS.chunk_by(|one, next| one.table == next.table);
    tables.map(|keys| keys[0].table)
}

/// Returns the row of a key.
const fn key(table: &'static str, name: &'static str, voter: Voter, rule: Rule) -> Key {
    Key {
        table,
        name,
        voter,
        rule,
    }
}

/// Every key: those of this table, and one for each action.
pub(super) static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let triggers = |action: Action| key("keys", action.name(), Owner, Rule::Triggers(action));
    let actions = Action::all().map(triggers);
    SETTINGS.iter().copied().chain(actions).collect()
});

/// The keys table by table, in the order of `config.toml`, but for those of the actions.
#[rustfmt::skip]
static SETTINGS: &[Key] = &[
    key("agent", "command", Owner, Text("the name or path of a program", is_program, |d, v| d.config.agent.command = v)),
    key("agent", "args", Owner, Texts("a text without NUL characters", has_no_nul, |d, v| d.config.agent.args = v)),
    key("agent", "env", Owner, Pairs(|d, v| d.config.agent.env = v)),
    key("agent", "todo_tools", Owner, Flag(|d, v| d.config.agent.todo_tools = v)),
    key("agent", "bridge", Owner, Flag(|d, v| d.config.agent.bridge = v)),
    key("agent", "tools", Owner, Flag(|d, v| d.config.agent.tools = v)),

    key("context", "window", Anyone, Whole(0, MAX_TOKENS, |d, v| d.config.context.window = none_if_0(v))),
    key("context", "reserve", Anyone, Whole(0, MAX_TOKENS, |d, v| d.config.context.reserve = v)),
    key("context", "max_recent_messages", Anyone, Whole(0, 10_000, |d, v| d.config.context.max_recent_messages = v as usize)),
    key("context", "checkpoint_interval", Anyone, Whole(0, 10_000, |d, v| d.config.context.checkpoint_interval = none_if_0(v as u32))),
    key("context", "checkpoint_at_commits", Owner, Flag(|d, v| d.config.context.checkpoint_at_commits = v)),
    key("context", "checkpoint_at_tests", Owner, Flag(|d, v| d.config.context.checkpoint_at_tests = v)),

    key("guard", "preset", Anyone, OneOf(Preset::VARIANTS, |d, v| d.preset = named(v))),
    key("guard", "notice", Anyone, Whole(1, 99, |d, v| d.percents[0] = Some(v as u8))),
    key("guard", "warn", Anyone, Whole(1, 99, |d, v| d.percents[1] = Some(v as u8))),
    key("guard", "compact", Anyone, Whole(1, 99, |d, v| d.percents[2] = Some(v as u8))),
    key("guard", "notice_tokens", Anyone, Whole(0, MAX_TOKENS, |d, v| d.caps[0] = Some(v))),
    key("guard", "warn_tokens", Anyone, Whole(0, MAX_TOKENS, |d, v| d.caps[1] = Some(v))),
    key("guard", "compact_tokens", Anyone, Whole(0, MAX_TOKENS, |d, v| d.caps[2] = Some(v))),
    key("guard", "force_at", Owner, Whole(1, 100, |d, v| d.config.guard.force_at = v as u8)),
    key("guard", "replace_compaction", Owner, Flag(|d, v| d.config.guard.replace_compaction = v)),
    key("guard", "answer_within", Owner, Time(SECOND, FIVE_MINUTES, |d, v| d.config.guard.answer_within = v)),
    key("guard", "unanswered", Owner, OneOf(Unanswered::VARIANTS, |d, v| d.config.guard.unanswered = named(v))),
    key("guard", "cold_cache", Owner, OneOf(ColdCache::VARIANTS, |d, v| d.config.guard.cold_cache = named(v))),

    key("handoff", "generate_handoff", Owner, Flag(|d, v| d.config.handoff.generate_handoff = v)),
    key("handoff", "max_state_size", Anyone, Size(2_000, 10_000_000, |d, v| d.config.handoff.max_state_size = v as usize)),
    key("handoff", "include_files", Owner, Texts("a path", is_path, |d, v| d.config.handoff.include_files = v)),
    key("handoff", "include_git_history", Anyone, Flag(|d, v| d.config.handoff.include_git_history = v)),
    key("handoff", "git_history_count", Anyone, Whole(0, 1_000, |d, v| d.config.handoff.git_history_count = v as usize)),
    key("handoff", "recent_activity", Anyone, OneOf(RecentActivity::VARIANTS, |d, v| d.config.handoff.recent_activity = named(v))),
    key("handoff", "include_test_state", Anyone, Flag(|d, v| d.config.handoff.include_test_state = v)),

    key("reboot", "mode", Owner, OneOf(RebootMode::VARIANTS, |d, v| d.config.reboot.mode = named(v))),
    key("reboot", "way", Owner, OneOf(RebootWay::VARIANTS, |d, v| d.config.reboot.way = named(v))),
    key("reboot", "delivery", Owner, OneOf(Delivery::VARIANTS, |d, v| d.config.reboot.delivery = named(v))),
    key("reboot", "auto_delay", Owner, Time(Duration::ZERO, HOUR, |d, v| d.config.reboot.auto_delay = v)),
    key("reboot", "typing_quiet", Owner, Time(Duration::ZERO, HOUR, |d, v| d.config.reboot.typing_quiet = v)),
    key("reboot", "verify_timeout", Owner, Time(SECOND, HOUR, |d, v| d.config.reboot.verify_timeout = v)),
    key("reboot", "interrupt_timeout", Owner, Time(MILLISECOND, HOUR, |d, v| d.config.reboot.interrupt_timeout = v)),
    key("reboot", "exit_timeout", Owner, Time(MILLISECOND, HOUR, |d, v| d.config.reboot.exit_timeout = v)),
    key("reboot", "hangup_timeout", Owner, Time(MILLISECOND, HOUR, |d, v| d.config.reboot.hangup_timeout = v)),
    key("reboot", "terminate_timeout", Owner, Time(MILLISECOND, HOUR, |d, v| d.config.reboot.terminate_timeout = v)),
    key("reboot", "max_reboots_per_hour", Owner, Whole(1, 1_000, |d, v| d.config.reboot.max_reboots_per_hour = v as u32)),
    key("reboot", "max_idle_sessions", Owner, Whole(1, 1_000, |d, v| d.config.reboot.max_idle_sessions = v as u32)),
    key("reboot", "turn_patience", Owner, Time(Duration::ZERO, DAY, |d, v| d.config.reboot.turn_patience = v)),
    key("reboot", "warmup_prompt", Owner, Text("a prompt without control characters", is_prompt, |d, v| d.config.reboot.warmup_prompt = none_if_empty(v))),
    key("reboot", "warmup_delay", Owner, Time(Duration::ZERO, HOUR, |d, v| d.config.reboot.warmup_delay = v)),

    key("summary", "generate_summaries", Owner, Flag(|d, v| d.config.summary.generate_summaries = v)),
    key("summary", "summary_allowed_tools", Owner, Texts("the name of a tool", is_tool, |d, v| d.config.summary.summary_allowed_tools = v)),
    key("summary", "model", Owner, Text("the name of a model, or \"\"", is_model, |d, v| d.config.summary.model = none_if_empty(v))),
    key("summary", "timeout", Owner, Time(SECOND, HOUR, |d, v| d.config.summary.timeout = v)),
    key("summary", "max_cost_usd", Owner, Number(0.01, 1_000.0, |d, v| d.config.summary.max_cost_usd = v)),

    key("loop", "max_iterations", Owner, Whole(0, 1_000_000, |d, v| d.config.autopilot.max_iterations = none_if_0(v as u32))),
    key("loop", "max_cost_usd", Owner, Number(0.0, 1_000_000.0, |d, v| d.config.autopilot.max_cost_usd = none_if_0(v))),
    key("loop", "max_time", Owner, Time(Duration::ZERO, YEAR, |d, v| d.config.autopilot.max_time = none_if_0(v))),
    key("loop", "background_wait", Owner, Time(Duration::ZERO, DAY, |d, v| d.config.autopilot.background_wait = v)),
    key("loop", "same_command_limit", Owner, Whole(0, 1_000, |d, v| d.config.autopilot.same_command_limit = none_if_0(v as u32))),
    key("loop", "no_change_limit", Owner, Whole(0, 1_000, |d, v| d.config.autopilot.no_change_limit = none_if_0(v as u32))),
    key("loop", "same_message_limit", Owner, Whole(0, 1_000, |d, v| d.config.autopilot.same_message_limit = none_if_0(v as u32))),

    key("session", "on_hangup", Owner, OneOf(OnHangup::VARIANTS, |d, v| d.config.session.on_hangup = named(v))),

    key("fleet", "hosts", Owner, Texts("the name of a host as ssh knows it", is_host, |d, v| d.config.fleet.hosts = v)),

    key("hooks", "pre_reboot", Owner, Text("a shell command, or \"\"", has_no_nul, |d, v| d.config.hooks.pre_reboot = none_if_empty(v))),
    key("hooks", "post_reboot", Owner, Text("a shell command, or \"\"", has_no_nul, |d, v| d.config.hooks.post_reboot = none_if_empty(v))),
    key("hooks", "timeout", Owner, Time(MILLISECOND, TEN_MINUTES, |d, v| d.config.hooks.timeout = v)),

    key("notify", "command", Owner, Text("a shell command, or \"\"", has_no_nul, |d, v| d.config.notify.command = none_if_empty(v))),
    key("notify", "url", Owner, Text("a URL that starts with https:// or http://, or \"\"", is_web, |d, v| d.config.notify.url = none_if_empty(v))),
    key("notify", "template", Owner, Text("a text", has_no_nul, |d, v| d.config.notify.template = v)),
    key("notify", "timeout", Owner, Time(MILLISECOND, MINUTE, |d, v| d.config.notify.timeout = v)),

    key("api", "listen", Owner, Text("an address such as \"127.0.0.1:7433\", or \"\"", is_listen, |d, v| d.config.api.listen = v.parse().ok())),
    key("api", "url", Owner, Text("an address such as \"https://desk.example.org\", without a path, or \"\"", is_origin, |d, v| d.config.api.url = none_if_empty(v.trim_end_matches('/').to_owned()))),
    key("api", "behind_proxy", Owner, Flag(|d, v| d.config.api.behind_proxy = v)),
    key("api", "certificate", Owner, Text("the absolute path of a file, or \"\"", is_file, |d, v| d.config.api.certificate = none_if_empty(v).map(PathBuf::from))),
    key("api", "key", Owner, Text("the absolute path of a file, or \"\"", is_file, |d, v| d.config.api.key = none_if_empty(v).map(PathBuf::from))),

    key("store", "url", Owner, Text("a URL such as postgres://… or sqlite:///absolute/path, or \"\"", is_store, |d, v| d.config.store.url = none_if_empty(v))),
    key("store", "environment", Owner, Text("a name on one line, or \"\"", has_no_controls, |d, v| d.config.store.environment = none_if_empty(v))),

    key("keys", "prefix", Owner, Rule::Chord(|d, v| d.prefix = Some(v))),

    key("ui", "theme", Anyone, OneOf(ThemeName::VARIANTS, |d, v| d.config.ui.theme = named(v))),
    key("ui", "scrollback_lines", Anyone, Whole(0, 100_000, |d, v| d.config.ui.scrollback_lines = v as usize)),
    key("ui", "keep_scrollback", Anyone, Flag(|d, v| d.config.ui.keep_scrollback = v)),
    key("ui", "panel_width", Anyone, WholeOr0(36, 100, |d, v| d.config.ui.panel_width = none_if_0(v as u16))),
    key("ui", "clipboard", Owner, OneOf(ClipboardPolicy::VARIANTS, |d, v| d.config.ui.clipboard = named(v))),
    key("ui", "notifications", Anyone, OneOf(Notifications::VARIANTS, |d, v| d.config.ui.notifications = named(v))),
    key("ui", "offer_past", Anyone, Flag(|d, v| d.config.ui.offer_past = v)),

    key("recording", "enabled", Owner, Flag(|d, v| d.config.recording.enabled = v)),
    key("recording", "record_input", Owner, Flag(|d, v| d.config.recording.record_input = v)),
    key("recording", "max_size", Anyone, Size(64 * 1024, 1 << 30, |d, v| d.config.recording.max_size = v)),

    key("log", "level", Owner, OneOf(LogLevel::VARIANTS, |d, v| d.config.log.level = named(v))),
    key("log", "keep_days", Owner, Whole(1, 365, |d, v| d.config.log.keep_days = v as u32)),
];

/// Returns the key of a table, by name.
pub(super) fn find(table: &str, name: &str) -> Option<&'static Key> {
    KEYS.iter()
        .find(|key| key.table == table && key.name == name)
}

/// Returns the keys of a table.
pub(super) fn keys_of(table: &str) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.table == table)
}

/// Returns a value whose zero is written for "none".
fn none_if_0<T: Default + PartialEq>(value: T) -> Option<T> {
    (value != T::default()).then_some(value)
}

/// Returns the value of a word, which the walk over the file has checked.
fn named<T: FromStr + Default>(word: &str) -> T {
    word.parse().unwrap_or_default()
}

fn none_if_empty(text: String) -> Option<String> {
    (!text.trim().is_empty()).then_some(text)
}

pub(super) fn has_no_nul(text: &str) -> bool {
    text.len() <= MAX_TEXT && !text.contains('\0')
}

fn has_no_controls(text: &str) -> bool {
    text.len() <= MAX_TEXT && !text.chars().any(char::is_control)
}

fn is_program(text: &str) -> bool {
    !text.trim().is_empty() && has_no_controls(text)
}

fn is_path(text: &str) -> bool {
    !text.is_empty() && has_no_controls(text)
}

/// Reports whether a text may be a prompt: it is typed for the user, so it may hold no control characters but line ends and
/// tabs.
fn is_prompt(text: &str) -> bool {
    let allowed = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    text.len() <= MAX_TEXT && text.chars().all(allowed)
}

/// Reports whether a text may name a tool or a model: they become arguments of the agent, where a leading dash would make
/// them flags.
fn is_tool(text: &str) -> bool {
    !text.trim().is_empty() && !text.starts_with('-') && has_no_controls(text)
}

fn is_model(text: &str) -> bool {
    !text.starts_with('-') && has_no_controls(text) && !text.contains(char::is_whitespace)
}

fn is_listen(text: &str) -> bool {
    text.is_empty() || text.parse::<SocketAddr>().is_ok()
}

/// Reports whether a text may be the address of a web server: a scheme and a host, perhaps with a port.
fn is_origin(text: &str) -> bool {
    let host = ["https://", "http://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme));
    let host = host.map(|host| host.strip_suffix('/').unwrap_or(host));
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    let is_plain = |host: &str| !host.is_empty() && host.len() <= 300 && host.chars().all(plain);
    text.is_empty() || host.is_some_and(is_plain)
}

fn is_file(text: &str) -> bool {
    text.is_empty() || (text.starts_with('/') && has_no_controls(text))
}

fn is_web(text: &str) -> bool {
    let known = ["https://", "http://"];
    let named = known
        .iter()
        .any(|scheme| text.len() > scheme.len() && text.starts_with(scheme));
    text.is_empty() || (named && has_no_controls(text))
}

fn is_store(text: &str) -> bool {
    let servers = ["postgres://", "postgresql://"];
    let server = servers
        .iter()
        .any(|scheme| text.len() > scheme.len() && text.starts_with(scheme));
    let file = text
        .strip_prefix("sqlite://")
        .is_some_and(|path| path.starts_with('/') && path.len() > 1 && !path.contains('?'));
    text.is_empty() || ((server || file) && has_no_controls(text))
}

/// Reports whether a text may be the name of an environment variable.
pub(super) fn is_variable(text: &str) -> bool {
    !text.is_empty() && !text.contains('=') && has_no_controls(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_key_stands_once_and_beside_those_of_its_table() {
        let known: BTreeSet<&str> = tables().collect();
        assert_eq!(known.len(), tables().count(), "a table in two parts");
        for (index, key) in KEYS.iter().enumerate() {
            assert!(known.contains(key.table), "{key:?}");
            let again = KEYS[index + 1..]
                .iter()
                .any(|other| (other.table, other.name) == (key.table, key.name));
            assert!(!again, "{key:?}");
        }
    }

    #[test]
    fn a_project_may_set_looks_and_numbers_only() {
        let open: Vec<String> = KEYS
            .iter()
            .filter(|key| key.voter == Voter::Anyone)
            .map(|key| format!("{}.{}", key.table, key.name))
            .collect();
        assert_eq!(
            open,
            [
                "context.window",
                "context.reserve",
                "context.max_recent_messages",
                "context.checkpoint_interval",
                "guard.preset",
                "guard.notice",
                "guard.warn",
                "guard.compact",
                "guard.notice_tokens",
                "guard.warn_tokens",
                "guard.compact_tokens",
                "handoff.max_state_size",
                "handoff.include_git_history",
                "handoff.git_history_count",
                "handoff.recent_activity",
                "handoff.include_test_state",
                "ui.theme",
                "ui.scrollback_lines",
                "ui.keep_scrollback",
                "ui.panel_width",
                "ui.notifications",
                "ui.offer_past",
                "recording.max_size",
            ]
        );
    }

    /// Returns the keys whose values bear no relation to those of other keys: lines must rise, chords must not meet.
    fn free_keys() -> Vec<&'static Key> {
        let bound = |key: &Key| {
            let lines = key.table == "guard" && !matches!(key.rule, Flag(_));
            let pairs = ["window", "reserve", "certificate", "key"];
            lines || key.table == "keys" || pairs.contains(&key.name)
        };
        KEYS.iter().filter(|key| !bound(key)).collect()
    }

    /// Returns the n-th value that a key may have, as it is written.
    fn value(rule: &Rule, n: u64) -> String {
        const TEXTS: [&str; 6] = [
            "",
            "x",
            "a b",
            "ls -l",
            "127.0.0.1:7433",
            "sqlite:///tmp/x.db",
        ];
        let fitting = |is: &fn(&str) -> bool| -> Vec<&str> {
            TEXTS.into_iter().filter(|text| is(text)).collect()
        };
        let one = |texts: &[&str]| format!("{:?}", texts[n as usize % texts.len()]);
        match rule {
            Flag(_) => n.is_multiple_of(2).to_string(),
            Whole(least, most, _) | WholeOr0(least, most, _) | Size(least, most, _) => {
                (least + n % (most - least + 1)).to_string()
            }
            Number(least, most, _) => {
                format!(
                    "{:.4}",
                    least + (most - least) * (n % 1_000) as f64 / 1_000.0
                )
            }
            Time(least, most, _) => {
                let [least, most] = [least, most].map(|time| time.as_millis() as u64);
                format!("\"{}ms\"", least + n % (most - least + 1))
            }
            OneOf(words, _) => format!("{:?}", words[n as usize % words.len()]),
            Text(_, is, _) => one(&fitting(is)),
            Texts(_, is, _) => {
                let texts = fitting(is);
                format!("[{}]", one(&texts))
            }
            Pairs(_) => format!("{{ A = \"{n}\" }}"),
            Rule::Chord(_) | Rule::Triggers(_) => unreachable!("no free key"),
        }
    }

    /// Returns a value that a key may not have.
    fn wrong(rule: &Rule) -> String {
        match rule {
            Whole(_, most, _) | Size(_, most, _) => (most + 1).to_string(),
            WholeOr0(least, ..) => (least - 1).to_string(),
            Number(_, most, _) => format!("{:.1}", most + 1.0),
            Time(_, most, _) => format!("\"{}ms\"", most.as_millis() + 1),
            OneOf(..) | Flag(_) => "\"no such word\"".to_owned(),
            _ => "7".to_owned(),
        }
    }

    fn written(values: &BTreeMap<(&str, &str), String>) -> String {
        let mut text = String::new();
        let mut last = "";
        for ((table, name), value) in values {
            if *table != last {
                text.push_str(&format!("[{table}]\n"));
                last = table;
            }
            text.push_str(&format!("{name} = {value}\n"));
        }
        text
    }

    proptest::proptest! {
        /// Tests that each setting has an effect: another value makes another configuration, whatever else is set, and a
        /// value that a key may not have is refused with its line.
        #[test]
        fn each_key_has_its_effect_or_is_refused_with_its_line(
            picks in proptest::collection::vec((0..1_000_usize, 0..u64::MAX), 1..12),
            other in 0..u64::MAX,
        ) {
            let keys = free_keys();
            let mut values = BTreeMap::new();
            for (place, n) in &picks {
                let key = keys[place % keys.len()];
                values.insert((key.table, key.name), value(&key.rule, *n));
            }
            let key = keys[picks[0].0 % keys.len()];
            let mut with = |value: String| {
                values.insert((key.table, key.name), value);
                let text = written(&values);
                (Config::from_toml("config.toml", &text), text)
            };
            let [one, two] = [picks[0].1, other].map(|n| value(&key.rule, n));
            let [(first, text), (second, _)] = [one.clone(), two.clone()].map(&mut with);
            let [first, second] = [first, second].map(|found| found.unwrap_or_else(|errors| panic!("{errors}\n{text}")));
            proptest::prop_assert_eq!(one == two, first == second, "{} and {} in\n{}", one, two, text);
            let (refused, text) = with(wrong(&key.rule));
            let error = refused.expect_err(&text).render(crate::config::error::Style::Plain);
            let line = format!("{} = ", key.name);
            proptest::prop_assert!(error.contains(&line), "{} in\n{}", error, text);
        }
    }

    #[test]
    fn a_project_cannot_switch_the_handoff_off() {
        let text = "[handoff]\ngenerate_handoff = false\n";
        let (config, ignored) = Config::from_project_toml("p.toml", text).unwrap();
        assert!(config.handoff.generate_handoff);
        assert_eq!(ignored.len(), 1);
    }
}
