//! What is measured of a text that stands for a session, and how sure the figures are.

use std::collections::BTreeSet;

use super::facts::{Class, Fact, Ground, Known, Named};

/// Lines shorter than this are `end` and `}`, in bytes.
const A_LINE: usize = 12;

/// How alike two lines are that say the same, in words that both have of those that either has.
const ALIKE: f64 = 0.8;

/// A line that names more files than this is a list, and says of no identifier where it stands.
const LINKING: usize = 3;

/// How many samples an interval is made of.
const SAMPLES: usize = 2_000;

/// A share that can be pooled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share {
    pub of: f64,
    pub all: f64,
}

impl Share {
    pub fn of(of: usize, all: usize) -> Self {
        Self {
            of: of as f64,
            all: all as f64,
        }
    }

    pub fn add(&mut self, other: Self) {
        self.of += other.of;
        self.all += other.all;
    }

    /// In percent; nothing of nothing is unknown.
    pub fn percent(self) -> Option<f64> {
        (self.all > 0.0).then(|| 100.0 * self.of / self.all)
    }
}

/// Everything that is measured of one text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measures {
    /// At four characters a token, as the product estimates its own handoff.
    pub tokens: f64,
    /// Facts used next that it names.
    pub recall: Share,
    /// By class.
    pub by_class: [Share; 4],
    /// Identifiers used next that stand with one of their files.
    pub links: Share,
    /// Facts it names that are used next.
    pub precision: Share,
    /// Lines that name no fact that is used next.
    pub noise: Share,
    /// Lines that were said before, word for word.
    pub again: Share,
    /// Lines that were said before, in nearly the same words.
    pub nearly: Share,
    /// Files read again that it names.
    pub read_again: Share,
    /// Lines that claim what does not stand in the session, where that was looked for.
    pub unfounded: Share,
}

impl Measures {
    pub fn of(text: &str, known: &Known, ground: &Ground<'_>) -> Self {
        let named = Named::of(text, ground);
        let has: BTreeSet<&Fact> = known.before.keys().filter(|fact| named.has(fact)).collect();
        let used = |class: Option<Class>| {
            let used = known.used.iter();
            let used = used.filter(|fact| class.is_none_or(|class| fact.0 == class));
            let used: Vec<_> = used.collect();
            let kept = used.iter().filter(|fact| has.contains(**fact)).count();
            Share::of(kept, used.len())
        };
        let kept = has
            .iter()
            .filter(|fact| known.used.contains(**fact))
            .count();
        let (again, nearly) = repetition(text);
        let files = known.read_again.iter();
        let found = files.filter(|file| named.has_file(file)).count();
        Self {
            tokens: text.chars().count().div_ceil(4) as f64,
            recall: used(None),
            by_class: Class::ALL.map(|class| used(Some(class))),
            links: links(text, known, ground),
            precision: Share::of(kept, has.len()),
            noise: noise(text, known, ground),
            again,
            nearly,
            read_again: Share::of(found, known.read_again.len()),
            unfounded: Share::default(),
        }
    }

    /// Adds another text's figures, this many times as much.
    pub fn add(&mut self, other: &Self, weight: f64) {
        let weighted = |share: Share| Share {
            of: share.of * weight,
            all: share.all * weight,
        };
        self.tokens += other.tokens * weight;
        for (mine, theirs) in self.by_class.iter_mut().zip(other.by_class) {
            mine.add(weighted(theirs));
        }
        for (mine, theirs) in [
            (&mut self.recall, other.recall),
            (&mut self.links, other.links),
            (&mut self.precision, other.precision),
            (&mut self.noise, other.noise),
            (&mut self.again, other.again),
            (&mut self.nearly, other.nearly),
            (&mut self.read_again, other.read_again),
            (&mut self.unfounded, other.unfounded),
        ] {
            mine.add(weighted(theirs));
        }
    }
}

fn depth(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Of the identifiers used next whose file is known, those that stand in one item with it: in the line that names the file, or
/// in the lines indented below that.
fn links(text: &str, known: &Known, ground: &Ground<'_>) -> Share {
    let lines: Vec<&str> = text.lines().collect();
    let named: Vec<_> = lines.iter().map(|line| Named::of(line, ground)).collect();
    let wanted = known.used.iter().filter_map(|fact| {
        let homes = (fact.0 == Class::Identifier).then(|| known.homes.get(&fact.1));
        Some((fact, homes??))
    });
    let (mut linked, mut all) = (0, 0);
    for (fact, homes) in wanted {
        all += 1;
        let stands = (0..lines.len()).filter(|at| named[*at].has(fact));
        let found = stands.into_iter().any(|at| {
            // The line itself, and every line above that it is indented below.
            let mut left = usize::MAX;
            (0..=at).rev().any(|above| {
                let line = lines[above];
                let heads = above == at || (!line.trim().is_empty() && depth(line) < left);
                if heads {
                    left = depth(line);
                }
                heads
                    && named[above].files() <= LINKING
                    && homes.iter().any(|home| named[above].has_file(home))
            })
        });
        linked += usize::from(found);
    }
    Share::of(linked, all)
}

fn noise(text: &str, known: &Known, ground: &Ground<'_>) -> Share {
    let lines = text.lines().filter(|line| line.trim().len() >= A_LINE);
    let (mut empty, mut all) = (0, 0);
    for line in lines {
        let named = Named::of(line, ground);
        all += 1;
        empty += usize::from(!known.used.iter().any(|fact| named.has(fact)));
    }
    Share::of(empty, all)
}

/// Lines that were said before: word for word, and in nearly the same words.
fn repetition(text: &str) -> (Share, Share) {
    let plain = |c: char| c.is_whitespace() || "-*+#>`$[]|.:x0123456789".contains(c);
    let lines = text.lines().map(|line| line.trim_start_matches(plain));
    let lines = lines.filter(|line| line.trim().len() >= A_LINE);
    let mut before: Vec<(String, BTreeSet<String>)> = Vec::new();
    let (mut same, mut near) = (0, 0);
    for line in lines {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        let words: BTreeSet<String> = words
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        let alike = |other: &BTreeSet<String>| {
            let both = words.intersection(other).count() as f64;
            let either = words.union(other).count() as f64;
            either > 0.0 && both / either >= ALIKE
        };
        if before.iter().any(|(have, _)| *have == line) {
            same += 1;
            near += 1;
        } else if before.iter().any(|(_, have)| alike(have)) {
            near += 1;
        }
        before.push((line, words));
    }
    (Share::of(same, before.len()), Share::of(near, before.len()))
}

/// A generator of random numbers with a fixed seed (splitmix64): the same figures in every run.
pub struct Random(u64);

impl Random {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % bound.max(1) as u64).unwrap_or(0)
    }
}

/// The interval that 95 % of samples fall into, in percent: whole sessions are drawn, because the cuts of one are not
/// independent. `shares` are those of each cut, by the number of its session, and those that are subtracted from them: of nothing,
/// the interval is the share's own.
pub fn interval(shares: &[(usize, Share, Share)]) -> Option<(f64, f64)> {
    let sessions: BTreeSet<usize> = shares.iter().map(|(session, ..)| *session).collect();
    let sessions: Vec<usize> = sessions.into_iter().collect();
    let mut random = Random::new(1);
    let mut samples: Vec<f64> = (0..SAMPLES)
        .filter_map(|_| {
            let (mut pooled, mut less) = (Share::default(), Share::default());
            for _ in 0..sessions.len() {
                let drawn = sessions[random.below(sessions.len())];
                for (_, share, other) in shares.iter().filter(|(session, ..)| *session == drawn) {
                    pooled.add(*share);
                    less.add(*other);
                }
            }
            Some(pooled.percent()? - less.percent().unwrap_or(0.0))
        })
        .collect();
    samples.sort_by(f64::total_cmp);
    let last = samples.len().checked_sub(1)?;
    Some((samples[last * 25 / 1000], samples[last * 975 / 1000]))
}
