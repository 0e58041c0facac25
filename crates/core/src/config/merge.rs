//! Merging of the layers, and the checks that only the whole can pass.

use super::{
    ApiConfig, Config, GuardConfig,
    error::{ConfigErrors, Fault, MAX_FAULTS, Place},
    file::{Entry, Written},
    schema::{PartialConfig, Voter},
};
use pitstop_base::keymap::{Action, KeyFault, Keymap, Trigger, default_prefix};

/// A file or flag that has an effect.
pub(super) struct Layer {
    pub written: Written,
    /// True if its owner is the user, or the user trusts it. If not, keys that are the user's alone are left out with a
    /// warning.
    pub trusted: bool,
}

/// Lays the layers over the defaults, lowest first, and checks the whole.
///
/// The faults of all layers are reported together; the second of the pair holds the settings that were ignored.
pub(super) fn merge(layers: Vec<Layer>) -> Result<(Config, Vec<Fault>), ConfigErrors> {
    merge_over(Config::default(), layers)
}

/// Returns the defaults: the file that is compiled in, laid over nothing.
pub(super) fn defaults(written: Written) -> Result<Config, ConfigErrors> {
    let layer = Layer {
        written,
        trusted: true,
    };
    merge_over(Config::empty(), vec![layer]).map(|(config, _)| config)
}

fn merge_over(base: Config, layers: Vec<Layer>) -> Result<(Config, Vec<Fault>), ConfigErrors> {
    let mut errors = ConfigErrors::default();
    let mut warnings = Vec::new();
    let mut draft = PartialConfig::over(base);
    let mut origins = Origins::default();
    for layer in layers {
        let Written {
            source,
            entries,
            faults,
            more,
        } = layer.written;
        errors.faults.extend(faults);
        errors.more += more;
        let at = origins.sources.len();
        origins.sources.push(source);
        for entry in entries {
            if layer.trusted || entry.key.voter == Voter::Anyone {
                (entry.change)(&mut draft);
                origins.set(at, entry);
            } else if warnings.len() < MAX_FAULTS {
                warnings.push(ignored(&origins, at, &entry));
            }
        }
    }
    let [notice_tokens, warn_tokens, compact_tokens] = caps(&draft);
    let mut config = draft.config;
    let percents = draft.percents;
    let preset = draft.preset.percents();
    let [notice, warn, compact] = [0, 1, 2].map(|line| percents[line].unwrap_or(preset[line]));
    config.guard = GuardConfig {
        notice,
        warn,
        compact,
        notice_tokens,
        warn_tokens,
        compact_tokens,
        ..config.guard
    };
    check_guard(&config.guard, &origins, &mut errors.faults);
    check_window(&config, &origins, &mut errors.faults);
    check_api(&config.api, &origins, &mut errors.faults);
    let prefix = draft.prefix.unwrap_or_else(default_prefix);
    let triggers = |action: Action| {
        let set = draft.triggers.iter().find(|(named, _)| *named == action);
        set.map_or_else(|| action.default_triggers(), |(_, set)| set.clone())
    };
    match Keymap::new(
        prefix,
        Action::all().map(|action| (action, triggers(action))),
    ) {
        Ok(keymap) => config.keys = keymap,
        Err(faults) => {
            let named = faults
                .iter()
                .map(|fault| key_fault(fault, &triggers, &origins));
            errors.faults.extend(named);
        }
    }
    origins.sort(&mut errors.faults);
    if errors.faults.is_empty() {
        Ok((config, warnings))
    } else {
        Err(errors)
    }
}

/// The entry and the layer that gave each key its value.
#[derive(Default)]
struct Origins {
    sources: Vec<super::error::SourceText>,
    entries: Vec<(usize, Entry)>,
}

impl Origins {
    fn set(&mut self, source: usize, entry: Entry) {
        self.entries
            .retain(|(_, old)| (old.key.table, old.key.name) != (entry.key.table, entry.key.name));
        self.entries.push((source, entry));
    }

    fn get(&self, table: &str, name: &str) -> Option<&(usize, Entry)> {
        self.entries
            .iter()
            .find(|(_, entry)| (entry.key.table, entry.key.name) == (table, name))
    }

    /// Puts faults into the order in which a reader meets them; those without a place come first.
    fn sort(&self, faults: &mut [Fault]) {
        faults.sort_by_key(|fault| {
            let place = fault.place.as_ref()?;
            let mut sources = self.sources.iter();
            let file = sources.position(|source| source.name() == place.file);
            Some((file, place.line, place.column))
        });
    }

    /// Returns a fault at the value of the first of some keys that is set.
    fn fault(&self, table: &str, names: &[&str], message: String, help: Option<String>) -> Fault {
        let origin = names.iter().find_map(|name| self.get(table, name));
        Fault {
            place: origin.map(|(source, entry)| Box::new(self.sources[*source].place(&entry.at))),
            message,
            help,
        }
    }
}

fn ignored(origins: &Origins, source: usize, entry: &Entry) -> Fault {
    Fault {
        place: Some(Box::new(origins.sources[source].place(&entry.name_at))),
        message: format!(
            "`{}.{}` is ignored: an untrusted project may set looks and numbers only",
            entry.key.table, entry.key.name
        ),
        help: Some("read the file; if you trust it, run `pitstop trust`".to_owned()),
    }
}

/// Returns the caps on the notice, warn and compact lines. A cap of the preset gives way to a share of that line that is set, and to
/// caps of other lines that are set and contradict it.
fn caps(draft: &PartialConfig) -> [Option<u64>; 3] {
    let (own, preset) = (draft.caps, draft.preset.caps());
    [0, 1, 2].map(|line| {
        let fits = |cap: &u64| {
            let mut set = own.iter().enumerate();
            draft.percents[line].is_none()
                && set.all(|(at, set)| match set.filter(|set| *set > 0) {
                    Some(set) if at < line => set < *cap,
                    Some(set) if at > line => set > *cap,
                    _ => true,
                })
        };
        let cap = own[line].or_else(|| preset[line].filter(fits));
        cap.filter(|cap| *cap > 0)
    })
}

/// Checks that the lines rise, and their caps too.
fn check_guard(guard: &GuardConfig, origins: &Origins, faults: &mut Vec<Fault>) {
    let lines = [
        ("notice", guard.notice),
        ("warn", guard.warn),
        ("compact", guard.compact),
    ];
    let help = "each line must be above the one before: notice < warn < compact <= force_at";
    for [(low_name, low), (high_name, high)] in [[lines[0], lines[1]], [lines[1], lines[2]]] {
        if low >= high {
            let pair = [(low_name, low, "below"), (high_name, high, "above")];
            faults.push(rising(origins, pair, help));
        }
    }
    if guard.force_at < guard.compact {
        let low = ("compact", guard.compact, "at or below");
        let high = ("force_at", guard.force_at, "at or above");
        faults.push(rising(origins, [low, high], help));
    }
    let caps = [
        ("notice_tokens", guard.notice_tokens),
        ("warn_tokens", guard.warn_tokens),
        ("compact_tokens", guard.compact_tokens),
    ];
    let mut set = caps.iter().filter_map(|(name, cap)| Some((*name, (*cap)?)));
    let Some(mut below) = set.next() else { return };
    for (name, cap) in set {
        if cap <= below.1 {
            let pair = [(below.0, below.1, "below"), (name, cap, "above")];
            let help = "each cap must be above the one before: notice_tokens < warn_tokens < compact_tokens";
            faults.push(rising(origins, pair, help));
        }
        below = (name, cap);
    }
}

/// Returns a fault of two lines that do not rise, reported at the one that is set.
fn rising<N: std::fmt::Display>(
    origins: &Origins,
    [low, high]: [(&str, N, &str); 2],
    help: &str,
) -> Fault {
    let ((name, found, how), (other, limit, _)) = match origins.get("guard", high.0) {
        Some(_) => (high, low),
        None => (low, high),
    };
    let message = format!("expected `{name}` {how} `{other}` ({limit}), found {found}");
    origins.fault("guard", &[name, other], message, Some(help.to_owned()))
}

/// Checks that the reserve leaves a part of the window to use.
fn check_window(config: &Config, origins: &Origins, faults: &mut Vec<Fault>) {
    let context = &config.context;
    if let Some(window) = context.window.filter(|window| *window <= context.reserve) {
        let message = format!(
            "`window` must be above `reserve` ({}), and is {window}",
            context.reserve
        );
        let help = "usable = window - reserve; 0 lets pitstop determine the window".to_owned();
        faults.push(origins.fault("context", &["window", "reserve"], message, Some(help)));
    }
}

/// Checks that what other machines can reach is encrypted, and that the files for that are both set.
fn check_api(api: &ApiConfig, origins: &Origins, faults: &mut Vec<Fault>) {
    if api.certificate.is_some() != api.key.is_some() {
        let message = "expected `certificate` and `key` together, found one of them".to_owned();
        let help = "both are files in PEM format".to_owned();
        faults.push(origins.fault("api", &["certificate", "key"], message, Some(help)));
    }
    let is_safe = api.certificate.is_some() || api.behind_proxy;
    if let Some(listen) = api.listen.filter(|one| !one.ip().is_loopback() && !is_safe) {
        let message = format!("other machines can reach {listen}, and it has no certificate");
        let help = "use a loopback address such as \"127.0.0.1:7433\", or set `certificate` and `key`, or \
                    `behind_proxy` where another program speaks TLS";
        faults.push(origins.fault("api", &["listen"], message, Some(help.to_owned())));
    }
}

/// Returns a fault of the keymap at the place that can be changed: the later layer wrote it, not the defaults.
fn key_fault(
    fault: &KeyFault,
    triggers: &dyn Fn(Action) -> Vec<Trigger>,
    origins: &Origins,
) -> Fault {
    let at_item = |action: Action, index: usize| {
        let (source, entry) = origins.get("keys", action.name())?;
        let at = entry.items.get(index).unwrap_or(&entry.at);
        Some(Box::new(origins.sources[*source].place(at)))
    };
    let at_prefix = || {
        let (source, entry) = origins.get("keys", "prefix")?;
        Some(Box::new(origins.sources[*source].place(&entry.at)))
    };
    match fault {
        KeyFault::TypingPrefix(_) => Fault {
            place: at_prefix(),
            message: fault.to_string(),
            help: None,
        },
        KeyFault::Typing {
            action,
            index,
            trigger,
        } => Fault {
            place: at_item(*action, *index),
            message: fault.to_string(),
            help: match trigger {
                Trigger::Direct(chord) => Some(format!("write \"prefix {chord}\"")),
                Trigger::AfterPrefix(_) => None,
            },
        },
        KeyFault::IsPrefix {
            action,
            index,
            trigger,
        } => match at_item(*action, *index) {
            Some(place) => Fault {
                place: Some(place),
                message: fault.to_string(),
                help: Some("the prefix pressed twice goes to the pane".to_owned()),
            },
            None => taken(at_prefix(), *trigger, *action, true),
        },
        KeyFault::Taken {
            action,
            index,
            trigger,
            other,
        } => {
            // The one of the two that the user wrote is reported.
            let (place, other) = if let Some(place) = at_item(*action, *index) {
                (Some(place), *other)
            } else {
                let index = triggers(*other).iter().position(|one| one == trigger);
                (at_item(*other, index.unwrap_or(0)), *action)
            };
            let by_default = origins.get("keys", other.name()).is_none();
            taken(place, *trigger, other, by_default)
        }
    }
}

/// Returns the fault of a key that another action has, with the way to free it if that one is not set.
fn taken(place: Option<Box<Place>>, trigger: Trigger, other: Action, by_default: bool) -> Fault {
    let name = other.name();
    let how = if by_default { " by default" } else { ", too" };
    let help = by_default.then(|| {
        let others = other.default_triggers();
        let rest: Vec<String> = others
            .iter()
            .filter(|one| **one != trigger)
            .map(|one| format!("\"{one}\""))
            .collect();
        format!("to free it, set `{name} = [{}]`", rest.join(", "))
    });
    Fault {
        place,
        message: format!("`{trigger}` is taken: it is `{name}`{how}"),
        help,
    }
}
