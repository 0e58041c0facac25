//! The texts that are compared: what a fresh session could be given instead of the one before it.

use std::collections::BTreeSet;

use super::{
    corpus::{Cut, Said},
    facts::Known,
    measure::Random,
};

/// The bare word list has this share of the others' size: the whole of it would name every fact there is.
const WORDS_SHARE: usize = 4;

/// How often random lines are drawn; the figures are the mean.
const DRAWS: u64 = 10;

/// What the human and the agent said and called last, up to the size. Results of tools are left out: one file that was read
/// would fill it, and the tail would be worth less.
pub fn tail(before: &[Said], size: usize) -> String {
    let mut kept = Vec::new();
    let mut left = size;
    for said in before.iter().rev().filter(|said| !said.own.is_empty()) {
        let end: String = said.shown.trim_end().chars().take(left).collect();
        left = left.saturating_sub(end.chars().count() + 1);
        kept.push(end);
        if left == 0 {
            break;
        }
    }
    kept.reverse();
    kept.join("\n")
}

/// Random lines of the session up to the size, in their order; several draws.
pub fn random_lines(before: &[Said], cut: &Cut) -> Vec<String> {
    let lines: Vec<&str> = before
        .iter()
        .flat_map(|said| said.shown.lines())
        .filter(|line| !line.trim().is_empty())
        .collect();
    let draw = |seed: u64| {
        let mut random = Random::new(seed);
        let mut chosen = BTreeSet::new();
        let mut left = cut.size;
        while chosen.len() < lines.len() {
            let at = random.below(lines.len());
            if chosen.contains(&at) {
                continue;
            }
            let count = lines[at].chars().count() + 1;
            if count > left {
                break;
            }
            left -= count;
            chosen.insert(at);
        }
        let text: Vec<&str> = chosen.into_iter().map(|at| lines[at]).collect();
        text.join("\n")
    };
    (0..DRAWS).map(draw).collect()
}

/// The facts that stand in the most records, as a bare list of a quarter of the size: no one could work from it, and that it
/// does well shows what recall alone is worth.
pub fn word_list(known: &Known, cut: &Cut) -> String {
    let mut facts: Vec<_> = known.before.iter().collect();
    facts.sort_by_key(|((class, _), count)| (std::cmp::Reverse(**count), *class));
    let mut text = String::new();
    let mut left = cut.size / WORDS_SHARE;
    for ((_, name), _) in facts {
        let count = name.chars().count() + 1;
        if count > left {
            break;
        }
        left -= count;
        text.push_str(name);
        text.push('\n');
    }
    text
}
