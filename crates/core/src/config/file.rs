//! One file exactly as written: its keys with their positions, and all of its faults.
//!
//! The walk goes over the spanned document, not through serde: a derived reader would stop at the first fault and could not
//! give the place of an unknown key.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    time::Duration,
};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    error::{Fault, MAX_FAULTS, SourceText, quoted},
    schema::{self, Key, PartialConfig, Rule},
    units,
};
use pitstop_base::{
    clean::one_line,
    keymap::{Chord, Trigger},
};

/// The largest file that is read, in bytes: a hundred times a config with every key commented.
pub(super) const MAX_BYTES: u64 = 1024 * 1024;

/// The longest name that is compared with the known ones, in bytes: longer names are no slip of the finger, and comparing
/// them would cost time.
const MAX_NAME: usize = 48;

/// A checked value, as the change it makes.
pub(super) type Change = Box<dyn Fn(&mut PartialConfig)>;

/// One key that is set.
pub(super) struct Entry {
    pub key: &'static Key,
    /// The bytes of its name, for warnings about the key.
    pub name_at: Range<usize>,
    /// The bytes of its value, for faults of the value.
    pub at: Range<usize>,
    /// The bytes of each item of a list.
    pub items: Vec<Range<usize>>,
    pub change: Change,
}

/// A file that has been walked to its end.
pub(super) struct Written {
    pub source: SourceText,
    /// The settings that are well formed, in the order of the file.
    pub entries: Vec<Entry>,
    /// The faults, in the order of the file, at most [`MAX_FAULTS`].
    pub faults: Vec<Fault>,
    /// The number of further faults that were only counted.
    pub more: usize,
}

/// Reads a TOML text; `name` is the file or flag as the user would name it.
pub(super) fn read(name: impl Into<String>, text: impl Into<String>) -> Written {
    let source = SourceText::new(name, text);
    let mut walk = Walk::default();
    let text = source.text().to_owned();
    let (document, errors) = DeTable::parse_recoverable(&text);
    walk.syntax(&source, &errors);
    walk.document(document.get_ref(), &source);
    walk.finish(source)
}

#[derive(Default)]
struct Walk {
    entries: Vec<Entry>,
    faults: Vec<(Range<usize>, String, Option<String>)>,
    /// The lines with a syntax error: a fault in a value that the parser made up there is not reported.
    broken_lines: BTreeSet<usize>,
}

impl Walk {
    fn fault(&mut self, at: Range<usize>, message: String, help: Option<String>) {
        self.faults.push((at, message, help));
    }

    fn expected(&mut self, at: Range<usize>, wanted: &str, found: &str) {
        self.fault(at, format!("expected {wanted}, found {found}"), None);
    }

    /// Reports what was expected in place of a value; there is no change then.
    fn refuse(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        wanted: &str,
        help: Option<String>,
    ) -> Option<Change> {
        let found = describe(value.get_ref());
        self.fault(
            value.span(),
            format!("expected {wanted}, found {found}"),
            help,
        );
        None
    }

    fn finish(self, source: SourceText) -> Written {
        let mut found = self.faults;
        found.sort_by_key(|(at, ..)| at.start);
        let more = found.len().saturating_sub(MAX_FAULTS);
        found.truncate(MAX_FAULTS);
        let faults = found
            .into_iter()
            .map(|(at, message, help)| Fault {
                place: Some(Box::new(source.place(&at))),
                message,
                help,
            })
            .collect();
        let mut entries = self.entries;
        entries.sort_by_key(|entry| entry.name_at.start);
        Written {
            source,
            entries,
            faults,
            more,
        }
    }

    /// Reports the syntax errors in Pitstop's own words, as far as it has better ones.
    fn syntax(&mut self, source: &SourceText, errors: &[toml::de::Error]) {
        for error in errors {
            let at = error.span().unwrap_or(0..0);
            let line = source.line_index(at.start);
            self.broken_lines.insert(line);
            if source.is_header(line) {
                // The keys below a broken header would be reported as keys of another table.
                let below = (line + 1..source.line_count()).take_while(|l| !source.is_header(*l));
                self.broken_lines.extend(below);
            }
            let written = quoted(source.text().get(at.clone()).unwrap_or_default());
            let (message, help) = match error.message() {
                "duplicate key" => (format!("`{written}` is set twice"), None),
                text if !text.starts_with("string values must be quoted") => {
                    (format!("not valid TOML: {}", one_line(text)), None)
                }
                _ if written.trim().is_empty() => (
                    "expected a value, found the end of the line".to_owned(),
                    None,
                ),
                _ => (
                    format!("expected a value, found `{written}`"),
                    Some(format!("write texts in quotation marks: \"{written}\"")),
                ),
            };
            self.fault(at, message, help);
        }
    }

    fn document(&mut self, document: &DeTable<'_>, source: &SourceText) {
        for (name, value) in document {
            if self.is_broken(name.span().start, source) {
                continue;
            }
            let table = schema::tables().find(|table| *table == name.get_ref());
            match (table, value.get_ref()) {
                (Some(table), DeValue::Table(keys)) => self.table(table, keys, source),
                (Some(table), other) => {
                    let found = describe(other);
                    let many = matches!(other, DeValue::Array(_));
                    let help =
                        many.then(|| format!("write it in single brackets, once: [{table}]"));
                    let message = format!("expected the table [{table}], found {found}");
                    self.fault(name.span(), message, help);
                }
                (None, _) => self.unknown_table(name.get_ref(), name.span()),
            }
        }
    }

    fn table(&mut self, table: &'static str, keys: &DeTable<'_>, source: &SourceText) {
        for (name, value) in keys {
            let broken = self.is_broken(name.span().start, source)
                || self.is_broken(value.span().start, source);
            match schema::find(table, name.get_ref()) {
                _ if broken => {}
                Some(key) => self.value(key, name.span(), value),
                None => self.unknown_key(table, name.get_ref(), name.span()),
            }
        }
    }

    fn is_broken(&self, at: usize, source: &SourceText) -> bool {
        self.broken_lines.contains(&source.line_index(at))
    }

    fn unknown_table(&mut self, name: &str, at: Range<usize>) {
        let homes: Vec<String> = schema::KEYS
            .iter()
            .filter(|key| key.name == name)
            .map(|key| format!("[{}]", key.table))
            .collect();
        let help = if homes.is_empty() {
            did_you_mean(name, schema::tables())
                .or_else(|| Some(list("the tables are", schema::tables())))
        } else {
            Some(format!("`{name}` belongs in {}", homes.join(" or ")))
        };
        let message = format!("unknown table `{}`", quoted(name));
        self.fault(at, message, help);
    }

    fn unknown_key(&mut self, table: &'static str, name: &str, at: Range<usize>) {
        let names = || schema::keys_of(table).map(|key| key.name);
        let elsewhere = || {
            let key = schema::KEYS.iter().find(|key| key.name == name)?;
            Some(format!("`{name}` belongs in [{}]", key.table))
        };
        let help = did_you_mean(name, names())
            .or_else(elsewhere)
            .or_else(|| Some(list(&format!("keys of [{table}]:"), names())));
        let message = format!("unknown key `{}` in [{table}]", quoted(name));
        self.fault(at, message, help);
    }

    /// Checks one value against its rule; a good one becomes an entry.
    fn value(&mut self, key: &'static Key, name_at: Range<usize>, value: &Spanned<DeValue<'_>>) {
        let found = value.get_ref();
        let change = match &key.rule {
            Rule::Flag(set) => {
                let help = without_quotes(found);
                self.take(value, found.as_bool(), *set, "true or false", help)
            }
            Rule::Whole(from, to, set) => {
                let number = whole(found).filter(|number| (from..=to).contains(&number));
                let wanted = format!("a whole number from {from} to {to}");
                self.take(value, number, *set, &wanted, without_quotes(found))
            }
            Rule::WholeOr0(from, to, set) => {
                let number =
                    whole(found).filter(|number| *number == 0 || (from..=to).contains(&number));
                let wanted = format!("a whole number from {from} to {to}, or 0");
                self.take(value, number, *set, &wanted, without_quotes(found))
            }
            Rule::Number(from, to, set) => {
                let number = number(found).filter(|number| (from..=to).contains(&number));
                let wanted = format!("a number from {from} to {to}");
                self.take(value, number, *set, &wanted, without_quotes(found))
            }
            Rule::Time(from, to, set) => self.time(value, *from, *to, *set),
            Rule::Size(from, to, set) => self.size(value, *from, *to, *set),
            Rule::OneOf(words, set) => self.word(value, words, *set),
            Rule::Text(wanted, ok, set) => {
                let text = found.as_str().filter(|text| ok(text)).map(str::to_owned);
                self.take(value, text, *set, wanted, None)
            }
            Rule::Texts(wanted, ok, set) => {
                let read = |text: &str| ok(text).then(|| text.to_owned()).ok_or(None);
                let texts = self.items(value, wanted, read);
                texts.map(|texts| change(*set, texts))
            }
            Rule::Pairs(set) => self.pairs(value, *set),
            Rule::Chord(set) => self.chord(value, *set),
            Rule::Triggers(action) => {
                let action = *action;
                let read = |text: &str| {
                    let trigger: Result<Trigger, _> = text.parse();
                    trigger.map_err(|error| Some(error.to_string()))
                };
                let triggers = self.items(value, "\"f5\" or \"prefix r\"", read);
                let set = move |draft: &mut PartialConfig, triggers| {
                    draft.triggers.retain(|(named, _)| *named != action);
                    draft.triggers.push((action, triggers));
                };
                triggers.map(|triggers| change(set, triggers))
            }
        };
        let items = match value.get_ref() {
            DeValue::Array(items) => items.iter().map(Spanned::span).collect(),
            _ => Vec::new(),
        };
        if let Some(change) = change {
            self.entries.push(Entry {
                key,
                name_at,
                at: value.span(),
                items,
                change,
            });
        }
    }

    /// Returns the change that a good value makes, or reports what was expected in its place.
    fn take<T: Clone + 'static>(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        good: Option<T>,
        set: fn(&mut PartialConfig, T),
        wanted: &str,
        help: Option<String>,
    ) -> Option<Change> {
        match good {
            Some(good) => Some(change(set, good)),
            None => self.refuse(value, wanted, help),
        }
    }

    fn time(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        from: Duration,
        to: Duration,
        set: fn(&mut PartialConfig, Duration),
    ) -> Option<Change> {
        let time = match value.get_ref() {
            DeValue::String(text) => units::parse_duration(text),
            // Only a zero needs no unit.
            other => whole(other)
                .filter(|number| *number == 0)
                .map(Duration::from_secs),
        };
        let good = time.filter(|time| (from..=to).contains(time));
        let (from, to) = (units::format_duration(from), units::format_duration(to));
        let wanted = format!("a duration from \"{from}\" to \"{to}\"");
        let help = "write a number with ms, s, m, h or d: \"500ms\", \"2s\", \"1h30m\"";
        let help = time.is_none().then(|| help.to_owned());
        self.take(value, good, set, &wanted, help)
    }

    fn size(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        from: u64,
        to: u64,
        set: fn(&mut PartialConfig, u64),
    ) -> Option<Change> {
        let size = match value.get_ref() {
            DeValue::String(text) => units::parse_size(text),
            other => whole(other),
        };
        let good = size.filter(|size| (from..=to).contains(size));
        let (from, to) = (units::format_size(from), units::format_size(to));
        let wanted = format!("a size from \"{from}\" to \"{to}\"");
        let help = "write bytes, or a number with a unit: 50000, \"64MiB\"";
        let help = size.is_none().then(|| help.to_owned());
        self.take(value, good, set, &wanted, help)
    }

    fn word(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        words: &'static [&'static str],
        set: fn(&mut PartialConfig, &str),
    ) -> Option<Change> {
        let found = value.get_ref().as_str();
        if let Some(word) = words.iter().find(|word| Some(**word) == found) {
            return Some(Box::new(move |draft| set(draft, word)));
        }
        let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
        let wanted = match quoted.split_last() {
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => String::new(),
        };
        let help = found.and_then(|found| did_you_mean(found, words.iter().copied()));
        self.refuse(value, &wanted, help)
    }

    /// Reads each item of a list, or reports what is wrong with it; `wanted` describes what each of them should be.
    fn items<T>(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        wanted: &str,
        read: impl Fn(&str) -> Result<T, Option<String>>,
    ) -> Option<Vec<T>> {
        let DeValue::Array(items) = value.get_ref() else {
            let is_text = matches!(value.get_ref(), DeValue::String(_));
            let help = is_text.then(|| "write it in brackets: [\"…\"]".to_owned());
            self.refuse(value, &format!("a list, each item {wanted}"), help);
            return None;
        };
        let mut good = Vec::new();
        for item in items {
            match item.get_ref().as_str().map_or(Err(None), &read) {
                Ok(one) => good.push(one),
                Err(Some(fault)) => self.fault(item.span(), fault, None),
                Err(None) => self.expected(item.span(), wanted, &describe(item.get_ref())),
            }
        }
        // A list with a hole in it is no entry: its faults are reported already.
        (good.len() == items.len()).then_some(good)
    }

    fn pairs(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        set: fn(&mut PartialConfig, BTreeMap<String, String>),
    ) -> Option<Change> {
        let DeValue::Table(table) = value.get_ref() else {
            return self.refuse(value, "a table of names and texts", None);
        };
        let mut pairs = BTreeMap::new();
        for (name, value) in table {
            if !schema::is_variable(name.get_ref()) {
                let found = format!("`{}`", quoted(name.get_ref()));
                self.expected(name.span(), "the name of a variable, without `=`", &found);
                continue;
            }
            let text = value.get_ref().as_str();
            match text.filter(|text| schema::has_no_nul(text)) {
                Some(text) => {
                    pairs.insert(name.get_ref().to_string(), text.to_owned());
                }
                None => self.expected(
                    value.span(),
                    "a text without NUL characters",
                    &describe(value.get_ref()),
                ),
            }
        }
        (pairs.len() == table.len()).then(|| change(set, pairs))
    }

    fn chord(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        set: fn(&mut PartialConfig, Chord),
    ) -> Option<Change> {
        let Some(text) = value.get_ref().as_str() else {
            return self.refuse(value, "a chord such as \"ctrl-q\"", None);
        };
        match text.parse::<Chord>() {
            Ok(chord) => Some(change(set, chord)),
            Err(error) => {
                self.fault(value.span(), error.to_string(), None);
                None
            }
        }
    }
}

/// Returns a checked value as the change it makes.
fn change<T: Clone + 'static>(set: impl Fn(&mut PartialConfig, T) + 'static, value: T) -> Change {
    Box::new(move |draft| set(draft, value.clone()))
}

/// Reads a whole number that is not negative.
fn whole(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// Reads a number with or without a fraction.
fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(float) => float.as_str().parse().ok(),
        other => whole(other).map(|whole| whole as f64),
    }
}

/// Returns the advice for a number or a flag that was written as a text.
fn without_quotes(value: &DeValue<'_>) -> Option<String> {
    let text = value.as_str()?;
    let meant = text.parse::<f64>().is_ok() || text.parse::<bool>().is_ok();
    meant.then(|| "leave the quotation marks out".to_owned())
}

/// Describes the value that was found, for a message.
fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text \"{}\"", quoted(text)),
        DeValue::Integer(integer) => format!("the number {}", quoted(&integer.to_string())),
        DeValue::Float(float) => format!("the number {}", quoted(&float.to_string())),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(items) if items.is_empty() => "an empty list".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// Returns the nearest known name as a question.
fn did_you_mean(name: &str, known: impl Iterator<Item = &'static str>) -> Option<String> {
    nearest(name, known).map(|known| format!("did you mean `{known}`?"))
}

/// Returns the known name that is nearest to an unknown one, if one is near enough to be the one that was meant.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > MAX_NAME {
        return None;
    }
    // Case and the choice of dash do not make a name another one.
    let fold = |name: &str| name.to_lowercase().replace('-', "_");
    let wanted = fold(name);
    let allowed = (wanted.chars().count() / 3).max(1);
    known
        .map(|known| (strsim::damerau_levenshtein(&wanted, &fold(known)), known))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

fn list(lead: &str, names: impl IntoIterator<Item = &'static str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    format!("{lead} {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, DEFAULT_TOML, error::Style};
    use proptest::prelude::*;
    use std::time::Instant;

    /// Checks a text and reads the messages about it, which must never hold a control character.
    fn survives(text: &str) {
        if let Err(errors) = Config::from_toml("c.toml", text) {
            let shown = errors.render(Style::Plain);
            let hidden = |c: char| c.is_control() && c != '\n';
            assert!(!shown.chars().any(hidden), "{shown:?}");
            assert!(!errors.faults.is_empty());
        }
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "it limits real time")]
    fn a_heap_of_nonsense_is_answered_in_time() {
        // A quarter of the largest file that is read: enough to distinguish linear from quadratic, in a debug build, too.
        let size = MAX_BYTES as usize / 4;
        for piece in [
            "[",
            "]",
            "=",
            "\"",
            "\n",
            "a.",
            "a=1\n",
            "[a]\n",
            "[[a]]\n",
            "[ui]\nx=1\n",
            "{",
            "\'\'\'",
            "x = = 1\n",
            "[ui\nx=1\n",
            "\u{feff}",
            "\u{0}",
            "[ui.a]\n",
            "a = [1,\n",
            "\\",
        ] {
            let started = Instant::now();
            survives(&piece.repeat(size / piece.len()));
            let took = started.elapsed();
            assert!(
                took < Duration::from_secs(10),
                "{piece:?} took {took:?}, at most 10 s are allowed: alone on the machine, too?"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "\\PC{0,200}") {
            survives(&text);
        }

        #[test]
        fn any_bytes_that_are_text_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            survives(&String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn any_slip_in_the_commented_file_is_answered(
            at in 0..DEFAULT_TOML.len(),
            cut in 0_usize..40,
            put in "[\\[\\]{}=\"'#.,a0\\n\u{1b} -]{0,4}",
        ) {
            let end = (at + cut).min(DEFAULT_TOML.len());
            survives(&format!("{}{put}{}", &DEFAULT_TOML[..at], &DEFAULT_TOML[end..]));
        }
    }
}
