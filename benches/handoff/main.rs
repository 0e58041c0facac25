//! What a handoff is worth: how much of what is used next it carries, against the client's own summary and simpler rivals.
//!
//! ```text
//! cargo bench --bench handoff                               the tables, as Markdown
//! PITSTOP_TRANSCRIPTS=DIR cargo bench --bench handoff       over other sessions
//! PITSTOP_HANDOFF_SHOW=DIR cargo bench --bench handoff      also writes every text and its facts to DIR
//! PITSTOP_HANDOFF_LARGE=100 cargo bench --bench handoff     time and memory in a session of 100 MB instead
//! ```
//!
//! Sessions are cut where the client compacted them, in their middle, and inside their long turns. What stands before a cut and is used in the
//! next 100 records is what a handoff should have carried. The method and its limits: `docs/handoff-bench.md`.

#![allow(
    clippy::too_many_lines,
    reason = "a measurement is one sequence from beginning to end"
)]

mod chain;
mod corpus;
mod facts;
mod large;
mod measure;
mod product;
mod rivals;

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use corpus::{Cut, NEXT, Place, Session};
use facts::{Ground, Known, Named};
use measure::{Measures, Share, interval};
use pitstop_handoff::claims::Claims;
use pitstop_transcript::human::{OBJECTIVE_HEADING, section_lines};
use product::Product;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Where every text that was measured is written to, if anywhere.
const SHOW: &str = "PITSTOP_HANDOFF_SHOW";

/// Where another program's session lies that is rebooted instead; see `kit.py`.
const KIT: &str = "PITSTOP_HANDOFF_KIT";

/// How many megabytes of a session are handed over instead, to see what that costs; see `large.rs`.
const LARGE: &str = "PITSTOP_HANDOFF_LARGE";

/// The texts that are compared, in the order of the table.
const RIVALS: [&str; 6] = [
    "pitstop's handoff",
    "the client's own summary",
    "the clipped tail",
    "a tail of the handoff's size",
    "random lines",
    "a bare word list",
];

/// The number of those that are written, and not composed of the session's text.
const WRITTEN: usize = 2;

/// What one cut has shown.
struct Row {
    session: usize,
    name: String,
    facts: usize,
    place: Place,
    /// Whether the first prompt stands in a handoff after `--resume`; unknown where there is none.
    resumed: Option<bool>,
    /// By rival; there is a summary of the client's at its boundaries only.
    measures: Vec<Option<Measures>>,
}

fn main() -> Outcome<()> {
    if let Some(place) = env::var_os(KIT) {
        return chain::foreign(Path::new(&place));
    }
    if let Ok(megabytes) = env::var(LARGE) {
        return large::run(&megabytes);
    }
    facts::check()?;
    match corpus::place() {
        Ok(place) => over_sessions(&place)?,
        Err(why) => println!("The sessions are skipped: {why}."),
    }
    chain::print()
}

/// Cuts, measures and prints what the sessions show.
fn over_sessions(place: &Path) -> Outcome<()> {
    let sessions = corpus::sessions(place)?;
    let mut rows = Vec::new();
    for cut in corpus::cuts(&sessions) {
        rows.push(measured(&sessions[cut.session], &cut)?);
    }
    print(&sessions, &rows);
    Ok(())
}

/// Measures every rival at one cut.
fn measured(session: &Session, cut: &Cut) -> Outcome<Row> {
    let ground = Ground::of(session);
    let (before, behind) = session.said.split_at(cut.at);
    let known = Known::of(before, &behind[..behind.len().min(NEXT)], &ground);
    let own = handoff(session, cut)?;
    let size = own.chars().count();
    let texts: [Vec<String>; RIVALS.len()] = [
        vec![own],
        cut.summary.clone().into_iter().collect(),
        vec![rivals::tail(before, cut.size)],
        vec![rivals::tail(before, size)],
        rivals::random_lines(before, cut),
        vec![rivals::word_list(&known, cut)],
    ];
    let name = format!("{} · {}", session.name, cut.name);
    if let Some(place) = env::var_os(SHOW) {
        show(Path::new(&place), &name, &texts, &known, &ground)?;
    }
    let measures = texts.iter().enumerate().map(|(rival, texts)| {
        let mut mean = Measures::default();
        for text in texts {
            let mut one = Measures::of(text, &known, &ground);
            // The others are made of lines of the session.
            if rival < WRITTEN {
                one.unfounded = unfounded(text, &session.lines[..cut.line]);
            }
            mean.add(&one, 1.0 / texts.len() as f64);
        }
        (!texts.is_empty()).then_some(mean)
    });
    Ok(Row {
        session: cut.session,
        name,
        facts: known.used.len(),
        place: cut.place,
        resumed: resumed(session, cut)?,
        measures: measures.collect(),
    })
}

/// The product's handoff of a session that is cut here. It is made twice, since every map with a random seed has another one
/// each time: a text that differs would make every figure a matter of chance.
fn handoff(session: &Session, cut: &Cut) -> Outcome<String> {
    let directory = tempfile::tempdir()?;
    let transcript = written(session, cut, directory.path())?;
    let project = project(session);
    let make = || -> Outcome<String> {
        let mut product = Product::new(&transcript, project)?;
        for prompt in session.prompts(cut.at) {
            product.prompted(prompt)?;
        }
        product.read()?;
        // Between two calls of tools the turn is still running.
        if cut.place != Place::InTurn {
            product.turn_ended(None)?;
        }
        product.handoff()
    };
    let text = make()?;
    if make()? != text {
        return Err(format!("{}: two handoffs of the same session differ", session.name).into());
    }
    Ok(text)
}

/// The lines of a text that claim what does not stand in the session; they are named on the standard error output.
fn unfounded(text: &str, lines: &[String]) -> Share {
    let mut claims = Claims::of_handoff(text);
    for line in lines {
        claims.push(line.as_bytes());
        claims.push(b"\n");
    }
    let unfounded = claims.into_unfounded();
    for one in &unfounded {
        eprintln!(
            "{}: {} (not found: {})",
            one.line,
            one.text,
            one.claims.join(" · ")
        );
    }
    Share::of(unfounded.len(), text.lines().count())
}

/// Whether the human's first prompt stands in the handoff of a session that was resumed: no hook reports that prompt again.
fn resumed(session: &Session, cut: &Cut) -> Outcome<Option<bool>> {
    let Some(first) = session.prompts(cut.at).next() else {
        return Ok(None);
    };
    let directory = tempfile::tempdir()?;
    let transcript = written(session, cut, directory.path())?;
    let mut product = Product::resuming(&transcript, project(session))?;
    product.read()?;
    let handoff = product.handoff()?;
    let objective = section_lines(&handoff, OBJECTIVE_HEADING).join("\n");
    let start = first.lines().next().unwrap_or_default().trim();
    Ok(Some(objective.contains(start)))
}

/// The session up to the cut, in a file of its own.
fn written(session: &Session, cut: &Cut, directory: &Path) -> Outcome<PathBuf> {
    let transcript = directory.join("session.jsonl");
    fs::write(&transcript, session.lines[..cut.line].join("\n") + "\n")?;
    Ok(transcript)
}

fn project(session: &Session) -> &str {
    session.roots.last().map_or("/p", String::as_str)
}

/// Writes the texts of a cut, and which of them names which fact.
fn show(
    place: &Path,
    name: &str,
    texts: &[Vec<String>],
    known: &Known,
    ground: &Ground<'_>,
) -> Outcome<()> {
    fs::create_dir_all(place)?;
    let name = name.replace(['/', ' '], "_");
    let mut named = Vec::new();
    for (rival, texts) in RIVALS.iter().zip(texts) {
        let Some(text) = texts.first() else {
            continue;
        };
        fs::write(
            place.join(format!("{name}.{}.md", rival.replace(' ', "_"))),
            text,
        )?;
        named.push((rival, Named::of(text, ground)));
    }
    let mut list = String::new();
    for fact in &known.used {
        let (class, word) = fact;
        let by: Vec<_> = named.iter().filter(|(_, named)| named.has(fact)).collect();
        let by: Vec<&str> = by.into_iter().map(|(rival, _)| **rival).collect();
        list.push_str(&format!("- {class:?} `{word}`: {}\n", by.join(", ")));
    }
    fs::write(place.join(format!("{name}.facts.md")), list)?;
    Ok(())
}

fn print(sessions: &[Session], rows: &[Row]) {
    let records: usize = sessions.iter().map(|session| session.said.len()).sum();
    let broken: usize = sessions.iter().map(|session| session.broken).sum();
    println!(
        "{} sessions, {records} records of their main chains, {broken} lines that are no record; {} cuts.",
        sessions.len(),
        rows.len()
    );
    if rows.is_empty() {
        return;
    }
    for (title, place) in [
        ("At the client's own boundaries", Place::Boundary),
        ("In mid-session", Place::MidSession),
        ("Inside a turn of 30 or more calls", Place::InTurn),
    ] {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.place == place).collect();
        if !rows.is_empty() {
            table(title, &rows);
        }
    }
    println!(
        "\n| facts used next, each cut | facts |{}",
        RIVALS.map(|rival| format!(" {rival} |")).concat()
    );
    println!("|---|---|{}", "---|".repeat(RIVALS.len()));
    for row in rows {
        let cells = row.measures.iter();
        let cells = cells.map(|one| {
            one.as_ref()
                .map_or_else(|| "–".to_owned(), |one| percent(one.recall))
        });
        let cells: Vec<_> = cells.collect();
        println!("| {} | {} | {} |", row.name, row.facts, cells.join(" | "));
    }
    let resumed: Vec<bool> = rows.iter().filter_map(|row| row.resumed).collect();
    let present = resumed.iter().filter(|present| **present).count();
    println!(
        "\nThe first prompt as objective after `--resume`: {present} of {}.",
        resumed.len()
    );
}

fn percent(share: Share) -> String {
    share
        .percent()
        .map_or_else(|| "–".to_owned(), |share| format!("{share:.0} %"))
}

fn table(title: &str, rows: &[&Row]) {
    let facts: usize = rows.iter().map(|row| row.facts).sum();
    let present: Vec<usize> = (0..RIVALS.len())
        .filter(|rival| rows.iter().all(|row| row.measures[*rival].is_some()))
        .collect();
    let pooled: Vec<Measures> = present
        .iter()
        .map(|rival| {
            let mut pooled = Measures::default();
            let measures = rows.iter().filter_map(|row| row.measures[*rival].as_ref());
            measures.for_each(|one| pooled.add(one, 1.0));
            pooled
        })
        .collect();
    println!(
        "\n| {title}: {} cuts, {facts} facts |{}",
        rows.len(),
        names(&present)
    );
    println!("|---|{}", "---|".repeat(present.len()));
    let line = |name: &str, cell: &dyn Fn(&Measures) -> String| {
        let cells: Vec<String> = pooled.iter().map(cell).collect();
        println!("| {name} | {} |", cells.join(" | "));
    };
    line("tokens", &|one| {
        format!("{:.0}", one.tokens / rows.len() as f64)
    });
    line("**facts used next**", &|one| {
        format!("**{}**", percent(one.recall))
    });
    let recall = |row: &Row, rival: usize| row.measures[rival].as_ref().map(|one| one.recall);
    let spans = present.iter().map(|rival| {
        let shares = rows.iter().filter_map(|row| {
            let share = recall(row, *rival)?;
            Some((row.session, share, Share::default()))
        });
        let span = interval(&shares.collect::<Vec<_>>());
        span.map_or_else(String::new, |(low, high)| {
            format!("{low:.0} to {high:.0} %")
        })
    });
    println!(
        "| 95 % interval | {} |",
        spans.collect::<Vec<_>>().join(" | ")
    );
    let ahead = present.iter().enumerate().map(|(column, rival)| {
        let shares = rows
            .iter()
            .filter_map(|row| Some((row.session, recall(row, 0)?, recall(row, *rival)?)));
        let span = interval(&shares.collect::<Vec<_>>()).filter(|_| column > 0);
        let points = || {
            let (low, high) = span?;
            let ahead = pooled[0].recall.percent()? - pooled[column].recall.percent()?;
            Some(format!("{ahead:+.0} ({low:+.0} to {high:+.0})"))
        };
        points().unwrap_or_else(|| "–".to_owned())
    });
    println!(
        "| pitstop's is ahead by, points | {} |",
        ahead.collect::<Vec<_>>().join(" | ")
    );
    line("paths · identifiers · references · commands", &|one| {
        one.by_class
            .map(|share| percent(share).replace(" %", ""))
            .join(" · ")
    });
    line("identifier named with its file", &|one| percent(one.links));
    line("facts named that get used (precision)", &|one| {
        percent(one.precision)
    });
    line("lines without a fact used next (noise)", &|one| {
        percent(one.noise)
    });
    line("lines said again: exactly, nearly", &|one| {
        format!("{}, {}", percent(one.again), percent(one.nearly))
    });
    line("lines that claim what the session does not have", &|one| {
        percent(one.unfounded)
    });
    line("files read again that are named", &|one| {
        percent(one.read_again)
    });
}

fn names(present: &[usize]) -> String {
    let names: Vec<&str> = present.iter().map(|rival| RIVALS[*rival]).collect();
    format!(" {} |", names.join(" | "))
}
