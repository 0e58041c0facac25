//! The client's own limit of a full context window: the figure at which it compacts, or refuses prompts.
//!
//! ```text
//!   arguments · environment · settings files ──▶ CompactionSettings ── model, window ──▶ Limit
//!   the last lines of its screen ──▶ Words ── tokens in use ──▶ Limit
//!   the bridge ──▶ its own figure ──▶ Limit
//! ```
//!
//! Measured with 2.1.330 and a window of *W* tokens:
//!
//! - With auto-compaction off it refuses prompts from *W* − 23 000 on.
//! - With it on and a window set by flag, variable or settings it compacts before a prompt from
//!   min(*W*, that window) − 33 000 on. Windows below 100 000 are raised to that, or not taken.
//! - With it on and nothing set, a window of a million tokens counts as set; not so with 2.1.197. A smaller one does not: there
//!   the client compacts only once the service has refused a request.
//! - The variable wins over the flag, the flag over the settings. Of these the later file wins, and within a file the entry of
//!   the model. A file's own top-level value also hides what earlier files say of single models.

use std::fmt;

use serde_json::{Map, Value};

use super::{Arguments, is_on};
use pitstop_transcript::{Tokens, version::is_at_least};

/// The part of a window that the client keeps back for its answer, in tokens.
const ANSWER: u64 = 20_000;

/// The distance below the rest at which it compacts, in tokens.
const COMPACTION_MARGIN: u64 = 13_000;

/// The distance below the rest at which it refuses prompts, in tokens.
const REFUSAL_MARGIN: u64 = 3_000;

/// The smallest auto-compact window that the client takes, in tokens.
const SMALLEST: u64 = 100_000;

/// The smallest window at which the client compacts with nothing set, in tokens.
const LARGE: u64 = 1_000_000;

/// The first version of the client that is known to do so.
const DEFAULT_FROM: [u32; 3] = [2, 1, 330];

/// The variable that sets the auto-compact window.
pub const WINDOW_VARIABLE: &str = "CLAUDE_CODE_AUTO_COMPACT_WINDOW";

/// The variables that switch auto-compaction off; the second one switches off all compaction.
pub const OFF_VARIABLES: [&str; 2] = ["DISABLE_AUTO_COMPACT", "DISABLE_COMPACT"];

/// The variable that lowers the point to a percentage of the auto-compact window.
pub const PERCENT_VARIABLE: &str = "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE";

/// The action of the client at its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It compacts before the next prompt.
    Compacts,
    /// It takes no more prompts.
    Refuses,
}

impl Act {
    /// Returns the verb for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Compacts => "compacts",
            Self::Refuses => "refuses prompts",
        }
    }
}

/// The source of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The client's own default for such a window.
    Default,
    /// The `--autocompact` flag.
    Flag,
    /// A variable of its environment.
    Variable(&'static str),
    /// A settings file, by the name that people know it by.
    Settings(&'static str),
    /// The client's own words on its screen.
    Screen,
    /// A compaction that it has announced.
    Hook,
    /// Its own figure, by the bridge.
    Bridge,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "its default",
            Self::Flag => "--autocompact",
            Self::Variable(name) | Self::Settings(name) => name,
            Self::Screen => "its screen",
            Self::Hook => "its last compaction",
            Self::Bridge => "its own figure",
        })
    }
}

/// The figure at which the client acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The number of tokens in use at which it acts.
    pub at: Tokens,
    /// The action that it takes.
    pub act: Act,
    /// The source of the figure.
    pub origin: Origin,
}

/// A settings file of the client.
#[derive(Clone, Copy, Debug)]
pub struct SettingsFile<'a> {
    /// The name that people know it by.
    pub name: &'static str,
    /// Its text.
    pub text: &'a str,
}

/// An auto-compact window as it is set: in tokens, or `auto` for the client's own choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Window {
    Auto,
    Of(Tokens),
}

/// The choices about compaction in the client's arguments, environment and settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompactionSettings {
    /// The source that switches auto-compaction off, if one does.
    off: Option<Origin>,
    variable: Option<Tokens>,
    flag: Option<Window>,
    default: Option<(Window, Origin)>,
    by_model: Vec<(String, Window, Origin)>,
    percent: Option<f64>,
    /// True if the machine has managed settings that are not empty: the client then ignores those hooks of its user's mods that answer
    /// compactions, whatever the settings contain (2.1.331).
    pub managed: bool,
}

impl CompactionSettings {
    /// Collects them from the user's arguments, the environment that the client gets, its settings files, those that win last,
    /// and the text of its state file `.claude.json`, where older versions keep the switch.
    ///
    /// A source that cannot be read counts as absent: the client itself reports what is wrong with it.
    pub fn read(
        args: &[String],
        env: &dyn Fn(&str) -> Option<String>,
        files: &[SettingsFile<'_>],
        state: Option<&str>,
    ) -> Self {
        let mut found = Self {
            flag: Arguments(args).last("--autocompact").and_then(flag_window),
            ..Self::default()
        };
        let mut set = Map::new();
        let mut switch = state
            .and_then(parse_object)
            .and_then(|state| state.get("autoCompactEnabled")?.as_bool())
            .map(|on| (on, ".claude.json"));
        for file in files {
            let Some(mut root) = parse_object(file.text) else {
                continue;
            };
            if let Some(on) = root.get("autoCompactEnabled").and_then(Value::as_bool) {
                switch = Some((on, file.name));
            }
            found.add_file(file.name, &root);
            if let Some(Value::Object(env)) = root.remove("env") {
                set.extend(env);
            }
        }
        // The client puts the variables of its settings over those that it was started with.
        let variable = |name: &str| match set.get(name) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Null) | None => env(name),
            Some(other) => Some(other.to_string()),
        };
        found.variable = variable(WINDOW_VARIABLE)
            .and_then(|text| parse_size(&text))
            .map(|tokens| Tokens(tokens.max(SMALLEST)));
        found.percent = variable(PERCENT_VARIABLE)
            .and_then(|text| text.trim().parse().ok())
            .filter(|percent: &f64| *percent > 0.0 && *percent <= 100.0);
        found.off = OFF_VARIABLES
            .into_iter()
            .find(|name| variable(name).is_some_and(|text| is_on(&text)))
            .map(Origin::Variable)
            .or_else(|| {
                let (_, name) = switch.filter(|(on, _)| !on)?;
                Some(Origin::Settings(name))
            });
        found
    }

    fn add_file(&mut self, name: &'static str, root: &Map<String, Value>) {
        let origin = Origin::Settings(name);
        if let Some(window) = root.get("autoCompactWindow").and_then(set_window) {
            self.by_model.clear();
            self.default = Some((window, origin.clone()));
        }
        let models = root.get("modelSettings").and_then(Value::as_object);
        for (model, settings) in models.into_iter().flatten() {
            if let Some(window) = settings.get("autoCompactWindow").and_then(set_window) {
                self.by_model
                    .push((canonical_model(model), window, origin.clone()));
            }
        }
    }

    /// Returns the limit at which a client with this model and window acts; none if it acts only once the service refuses, or if
    /// that is not known of its version. A client that has not named its version is taken for a new one.
    pub fn limit(
        &self,
        model: Option<&str>,
        window: Tokens,
        version: Option<&str>,
    ) -> Option<Limit> {
        let rest = |window: u64| window.saturating_sub(ANSWER);
        if let Some(origin) = &self.off {
            return Some(Limit {
                at: Tokens(rest(window.0).saturating_sub(REFUSAL_MARGIN)),
                act: Act::Refuses,
                origin: origin.clone(),
            });
        }
        let (set, origin) = self.window(model, window).filter(|(_, origin)| {
            *origin != Origin::Default || is_at_least(version, DEFAULT_FROM)
        })?;
        let rest = rest(set.0.min(window.0));
        let at = rest.saturating_sub(COMPACTION_MARGIN);
        let lowered = self
            .percent
            .map(|percent| (rest as f64 * percent / 100.0) as u64);
        let (at, origin) = match lowered.filter(|lowered| *lowered < at) {
            Some(at) => (at, Origin::Variable(PERCENT_VARIABLE)),
            None => (at, origin),
        };
        Some(Limit {
            at: Tokens(at),
            act: Act::Compacts,
            origin,
        })
    }

    /// Returns the auto-compact window that counts, and its source.
    fn window(&self, model: Option<&str>, window: Tokens) -> Option<(Tokens, Origin)> {
        if let Some(tokens) = self.variable {
            return Some((tokens, Origin::Variable(WINDOW_VARIABLE)));
        }
        let of_model = model.map(canonical_model).and_then(|model| {
            let mut entries = self.by_model.iter().rev();
            entries.find(|(named, ..)| *named == model)
        });
        let set = match (self.flag, of_model) {
            (Some(flag), _) => Some((flag, Origin::Flag)),
            (None, Some((_, window, origin))) => Some((*window, origin.clone())),
            (None, None) => self.default.clone(),
        };
        match set {
            Some((Window::Of(tokens), origin)) => Some((tokens, origin)),
            _ => (window.0 >= LARGE).then_some((window, Origin::Default)),
        }
    }
}

fn parse_object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}

/// Reads a size such as `200k`, `0.5m`, `200000` or `200_000`, in tokens.
fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase().replace(['_', ','], "");
    let (number, unit) = match text.strip_suffix('k') {
        Some(number) => (number, 1e3),
        None => text
            .strip_suffix('m')
            .map_or((text.as_str(), 1.0), |number| (number, 1e6)),
    };
    let tokens = number.parse::<f64>().ok()? * unit;
    (1.0..=1e12).contains(&tokens).then_some(tokens as u64)
}

/// Reads a window as [`parse_size`] does, but a bare number of up to a thousand is one of thousands.
fn flag_window(text: &str) -> Option<Window> {
    if text.trim().eq_ignore_ascii_case("auto") {
        return Some(Window::Auto);
    }
    let tokens = parse_size(text)?;
    let tokens = if tokens <= 1_000 {
        tokens * 1_000
    } else {
        tokens
    };
    (tokens >= SMALLEST).then_some(Window::Of(Tokens(tokens)))
}

fn set_window(value: &Value) -> Option<Window> {
    if value.as_str() == Some("auto") {
        return Some(Window::Auto);
    }
    let tokens = value.as_u64().filter(|tokens| *tokens >= SMALLEST)?;
    Some(Window::Of(Tokens(tokens)))
}

/// Returns a model's name without cloud prefix, date, revision and window mark.
fn canonical_model(id: &str) -> String {
    let id = id.strip_suffix("[1m]").unwrap_or(id);
    let name = id.rsplit_once("claude-").map_or(id, |(_, name)| name);
    let is_date = |part: &str| part.len() == 8 && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = name.split(['-', '@']);
    let kept: Vec<&str> = parts.take_while(|part| !is_date(part)).collect();
    kept.join("-")
}

/// The words of the client at the end of its screen while it is near its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// `N% until auto-compact`, in percent of the figure at which it compacts.
    Left(u8),
    /// `auto-compact next`.
    Next,
    /// `Context low (N% remaining)`: auto-compaction is off.
    Low,
}

/// The number of last lines that may be the client's own footer.
const FOOTER: usize = 2;

/// The least indent of the client's words in the row above its prompt box, in cells.
const ASIDE: usize = 8;

/// Returns the client's words about its limit in the last lines of its screen, or, full screen, at the right of the row above its
/// prompt box, where only notices are.
pub fn words_on_screen(text: &str) -> Option<Words> {
    let lines = text.lines().rev().map(str::trim_end);
    let footer = lines.clone().filter(|line| !line.is_empty()).take(FOOTER);
    let mut above = lines.skip_while(|line| !line.starts_with('❯')).skip(1);
    let rule = above.next().filter(|line| line.starts_with("───"));
    let aside = rule.and_then(|_| above.next());
    let aside = aside.filter(|line| line.starts_with(&" ".repeat(ASIDE)));
    footer.chain(aside).find_map(words_in)
}

/// Returns the words at the beginning of a line or behind a gap: the footer has two columns, and a row of full width may run on
/// into the next.
fn words_in(line: &str) -> Option<Words> {
    line.split("   ").map(str::trim_start).find_map(words_of)
}

fn words_of(said: &str) -> Option<Words> {
    if said.starts_with("auto-compact next") {
        return Some(Words::Next);
    }
    if said.starts_with("Context low (") {
        return Some(Words::Low);
    }
    let (percent, rest) = said.split_once('%')?;
    let percent = percent
        .parse::<u8>()
        .ok()
        .filter(|percent| *percent <= 100)?;
    rest.starts_with(" until auto-compact")
        .then_some(Words::Left(percent))
}

impl Words {
    /// Returns the limit that these words mean while so many tokens of a window are in use, the lowest that their rounding
    /// allows.
    pub fn limit(self, used: Tokens, window: Tokens) -> Limit {
        let (at, act) = match self {
            Self::Next => (used.0, Act::Compacts),
            Self::Left(percent) => {
                // They are rounded to the nearest whole percent.
                let left = (f64::from(percent) - 0.5).max(0.0);
                let at = used.0 as f64 * 100.0 / (100.0 - left).max(1.0);
                (at as u64, Act::Compacts)
            }
            Self::Low => (
                window.0.saturating_sub(ANSWER + REFUSAL_MARGIN),
                Act::Refuses,
            ),
        };
        Limit {
            at: Tokens(at),
            act,
            origin: Origin::Screen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLION: Tokens = Tokens(1_000_000);
    const SMALL: Tokens = Tokens(200_000);

    fn read(
        args: &[&str],
        env: &[(&str, &str)],
        files: &[(&'static str, &str)],
    ) -> CompactionSettings {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let files: Vec<_> = files
            .iter()
            .map(|(name, text)| SettingsFile { name, text })
            .collect();
        let variable = |name: &str| {
            let found = env.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        CompactionSettings::read(&args, &variable, &files, None)
    }

    fn at(settings: &CompactionSettings, window: Tokens) -> Option<(u64, Act, String)> {
        let limit = settings.limit(Some("claude-opus-4-8"), window, None)?;
        Some((limit.at.0, limit.act, limit.origin.to_string()))
    }

    fn compacting(at: u64, origin: &str) -> (u64, Act, String) {
        (at, Act::Compacts, origin.to_owned())
    }

    #[test]
    fn with_nothing_set_only_a_large_window_compacts_by_itself() {
        let nothing = read(&[], &[], &[]);
        assert_eq!(
            at(&nothing, MILLION),
            Some(compacting(967_000, "its default"))
        );
        assert_eq!(at(&nothing, SMALL), None);
        for (version, known) in [
            ("2.1.197", false),
            ("2.1.330", true),
            ("2.2.0", true),
            ("3.0.1-beta", true),
            ("?", false),
        ] {
            let limit = nothing.limit(None, MILLION, Some(version));
            assert_eq!(limit.is_some(), known, "{version}");
        }
        let set = read(&["--autocompact", "200k"], &[], &[]);
        assert!(set.limit(None, MILLION, Some("2.1.197")).is_some());
    }

    #[test]
    fn without_auto_compaction_prompts_are_refused() {
        for name in OFF_VARIABLES {
            let off = read(&["--autocompact", "200k"], &[(name, "1")], &[]);
            let refuses = |at| Some((at, Act::Refuses, name.to_owned()));
            assert_eq!(at(&off, MILLION), refuses(977_000));
            assert_eq!(at(&off, SMALL), refuses(177_000));
        }
        let zero = read(&[], &[("DISABLE_AUTO_COMPACT", "0")], &[]);
        assert_eq!(at(&zero, SMALL), None);
        let switched = read(
            &[],
            &[],
            &[("the settings", r#"{"autoCompactEnabled":false}"#)],
        );
        assert_eq!(
            at(&switched, SMALL),
            Some((177_000, Act::Refuses, "the settings".to_owned()))
        );
        let state = r#"{"autoCompactEnabled":false,"projects":{}}"#;
        let by_state = CompactionSettings::read(&[], &|_| None, &[], Some(state));
        assert_eq!(
            at(&by_state, SMALL),
            Some((177_000, Act::Refuses, ".claude.json".to_owned()))
        );
    }

    #[test]
    fn the_window_is_taken_from_flag_variable_and_settings() {
        for arg in ["200k", "200000", "200", "200_000", "0.2m"] {
            let flag = read(&["--autocompact", arg], &[], &[]);
            let limit = compacting(167_000, "--autocompact");
            assert_eq!(at(&flag, MILLION), Some(limit), "{arg}");
        }
        let glued = ["--model", "opus", "--autocompact=150k", "go on"];
        let limit = compacting(117_000, "--autocompact");
        assert_eq!(at(&read(&glued, &[], &[]), SMALL), Some(limit));
        for (given, taken) in [("200000", 167_000), ("50000", 67_000)] {
            let variable = read(&[], &[(WINDOW_VARIABLE, given)], &[]);
            let limit = compacting(taken, WINDOW_VARIABLE);
            assert_eq!(at(&variable, SMALL), Some(limit), "{given}");
        }
        let settings = read(&[], &[], &[("mine", r#"{"autoCompactWindow":300000}"#)]);
        assert_eq!(at(&settings, MILLION), Some(compacting(267_000, "mine")));
        assert_eq!(at(&settings, SMALL), Some(compacting(167_000, "mine")));
        let file = r#"{"env":{"CLAUDE_CODE_AUTO_COMPACT_WINDOW":"200k"}}"#;
        let in_settings = read(&[], &[(WINDOW_VARIABLE, "500k")], &[("mine", file)]);
        let limit = compacting(167_000, WINDOW_VARIABLE);
        assert_eq!(at(&in_settings, MILLION), Some(limit));
    }

    #[test]
    fn the_one_that_wins_is_the_client_s() {
        let file = r#"{"autoCompactWindow":300000}"#;
        let flag = read(&["--autocompact", "200k"], &[], &[("mine", file)]);
        assert_eq!(
            at(&flag, MILLION),
            Some(compacting(167_000, "--autocompact"))
        );
        let auto = read(&["--autocompact", "auto"], &[], &[("mine", file)]);
        assert_eq!(at(&auto, MILLION), Some(compacting(967_000, "its default")));
        let variable = read(
            &["--autocompact", "200k"],
            &[(WINDOW_VARIABLE, "400k")],
            &[("mine", file)],
        );
        assert_eq!(
            at(&variable, MILLION),
            Some(compacting(367_000, WINDOW_VARIABLE))
        );
        let model = r#"{"autoCompactWindow":300000,"modelSettings":{"claude-opus-4-8":{"autoCompactWindow":150000},"claude-sonnet-5":{"autoCompactWindow":250000}}}"#;
        let by_model = read(&[], &[], &[("mine", model)]);
        assert_eq!(at(&by_model, MILLION), Some(compacting(117_000, "mine")));
        let other = by_model.limit(Some("claude-haiku-5-5"), MILLION, None);
        assert_eq!(other.map(|limit| limit.at), Some(Tokens(267_000)));
        let dated = by_model.limit(
            Some("us.anthropic.claude-sonnet-5-20260901-v1:0"),
            MILLION,
            None,
        );
        assert_eq!(dated.map(|limit| limit.at), Some(Tokens(217_000)));
        // A later file's own value hides what an earlier one says of a model.
        let hidden = read(&[], &[], &[("mine", model), ("the project's", file)]);
        assert_eq!(
            at(&hidden, MILLION),
            Some(compacting(267_000, "the project's"))
        );
    }

    #[test]
    fn a_percentage_only_lowers() {
        for (percent, wanted) in [
            ("50", 90_000),
            ("99", 167_000),
            ("0", 167_000),
            ("x", 167_000),
        ] {
            let env = [(WINDOW_VARIABLE, "200k"), (PERCENT_VARIABLE, percent)];
            let limit = read(&[], &env, &[]).limit(None, MILLION, None);
            assert_eq!(
                limit.map(|limit| limit.at),
                Some(Tokens(wanted)),
                "{percent}"
            );
        }
    }

    #[test]
    fn what_makes_no_sense_counts_as_absent() {
        for text in [
            "",
            "[]",
            "{",
            r#"{"autoCompactWindow":-1}"#,
            r#"{"autoCompactWindow":5}"#,
            r#"{"modelSettings":7}"#,
        ] {
            let settings = read(
                &["--autocompact", "lots"],
                &[(WINDOW_VARIABLE, "big")],
                &[("mine", text)],
            );
            assert_eq!(at(&settings, SMALL), None, "{text}");
        }
    }

    #[test]
    fn the_client_s_words_are_read_from_the_end_of_its_screen() {
        let footer = |said: &str| {
            format!("● text\n────\n❯ draft\n────\n  ⏸ manual mode on                {said}\n\n")
        };
        let aside = |gap, said: &str| {
            format!(
                "● text\n{:gap$}{said}\n────\n❯ draft\n  more\n────\n  ok\n  manual",
                ""
            )
        };
        let cases = [
            ("10% until auto-compact", Some(Words::Left(10))),
            (
                "1% until auto-compact · /model sonnet",
                Some(Words::Left(1)),
            ),
            ("auto-compact next", Some(Words::Next)),
            (
                "Context low (1% remaining) · /compact to free up space",
                Some(Words::Low),
            ),
            ("94% context used", None),
            ("● high · /effort", None),
            ("900% until auto-compact", None),
        ];
        for (said, wanted) in cases {
            assert_eq!(words_on_screen(&footer(said)), wanted, "{said}");
            assert_eq!(words_on_screen(&aside(40, said)), wanted, "{said}");
            assert_eq!(words_on_screen(&aside(2, said)), None, "{said}");
        }
        let run_on = "  healthy 16% · $0.13          7% until auto-compact    ⏸ manual mode on";
        assert_eq!(words_on_screen(run_on), Some(Words::Left(7)));
        // The text of the conversation is not the client's own words, nor is the text that a person types.
        assert_eq!(
            words_on_screen("auto-compact next\n❯ \n────\n  footer"),
            None
        );
        assert_eq!(words_on_screen("────\n❯ auto-compact next\n────"), None);
    }

    #[test]
    fn words_mean_a_limit_at_or_just_below_the_measured_one() {
        for (words, used) in [
            (Words::Left(10), 150_000),
            (Words::Left(4), 160_000),
            (Words::Left(1), 166_000),
            (Words::Next, 166_900),
        ] {
            let limit = words.limit(Tokens(used), MILLION);
            assert!(
                (165_000..=167_000).contains(&limit.at.0),
                "{words:?}: {limit:?}"
            );
            assert_eq!(limit.act, Act::Compacts);
        }
        let low = Words::Low.limit(Tokens(970_000), MILLION);
        assert_eq!((low.at, low.act), (Tokens(977_000), Act::Refuses));
    }
}
