//! What a session costs by when it is rebooted: real sessions, played under several policies and billed by the price list.
//!
//! ```text
//! cargo bench --bench cost                             the tables, as Markdown
//! PITSTOP_TRANSCRIPTS=DIR cargo bench --bench cost     over other sessions
//! ```
//!
//! The method and its limits: `docs/cost.md`. Nothing depends on the machine, and no model is asked.

mod play;
mod sessions;

#[path = "../../tests/it/kit/transcripts.rs"]
mod transcripts;

use std::error::Error;

use pitstop_core::guard::{
    payoff::{Payoff, SUMMARY},
    prices::date_of_prices,
};
use pitstop_transcript::Tokens;

use play::{Bill, Player, Policy, Rules, Work, billed, mean, play, replay};
use sessions::{Compaction, Session};

/// The tokens of a handoff, rounded up from the mean in BENCHMARKS.md ("What the handoff carries").
const HANDOFF: u64 = 2_500;

/// The model of the tables that name none.
const MODEL: &str = "claude-opus-4-8";

/// One model of each ratio of a cache read to input, and the one whose long prompts are dearer.
const MODELS: [&str; 4] = [
    "claude-opus-4-8",
    "claude-opus-5-5",
    "claude-fable-5-1",
    "claude-haiku-5-5",
];

/// Where the client compacts by itself in a window of 200k, and in one of a million.
const COMPACTS: [u64; 2] = [167_000, 967_000];

/// The lines of a reboot in the tables: of the preset `default` in a window of a million, of `lean`, of the default in 200k, and below.
const LINES: [u64; 6] = [833_000, 220_000, 153_000, 120_000, 90_000, 70_000];

/// What the tables say is read again, besides what was measured.
const AGAIN: [u64; 2] = [15_000, 40_000];

fn main() -> Result<(), Box<dyn Error>> {
    let place = transcripts::place();
    let sessions = if place.is_dir() {
        sessions::read(&place)?
    } else {
        Vec::new()
    };
    let compactions: Vec<Compaction> = sessions
        .iter()
        .flat_map(|one| one.compactions.clone())
        .collect();
    if compactions.is_empty() {
        println!(
            "skipped: no session with a compaction of the client below {}; PITSTOP_TRANSCRIPTS names another directory",
            place.display()
        );
        return Ok(());
    }
    println!(
        "Prices of {}. The model is {MODEL} where none is named.\n",
        date_of_prices()
    );
    describe(&sessions);
    let bench = Bench::new(&sessions, &compactions);
    bench.policies();
    bench.lines();
    check_payoff(&bench);
    Ok(())
}

/// Prints what the sessions are, what their compactions did, and what the model says of what they were billed.
fn describe(sessions: &[Session]) {
    println!(
        "| session | calls | began at | added | pauses over 5 min · 1 h | compacted to | read again | billed, $ | the model, $ | ÷ |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let (mut all_billed, mut all_modelled) = (0.0, 0.0);
    for session in sessions {
        let work = Work::of(session);
        let pauses = |limit| {
            session
                .calls
                .iter()
                .filter(|call| call.pause > limit)
                .count()
        };
        let listed = |of: &dyn Fn(&Compaction) -> String| {
            let all: Vec<String> = session.compactions.iter().map(of).collect();
            if all.is_empty() {
                "–".to_owned()
            } else {
                all.join(", ")
            }
        };
        let rules = Rules::new(MODEL, 0, session.is_kept_for_an_hour());
        let (billed, modelled) = (billed(session, rules), replay(session, rules));
        all_billed += billed;
        all_modelled += modelled;
        println!(
            "| {} | {} | {} | {} | {} · {} | {} | {} | {billed:.2} | {modelled:.2} | {:.3} |",
            session.name,
            session.calls.len(),
            thousands(work.base),
            thousands(work.added()),
            pauses(300),
            pauses(3_600),
            listed(&|one| thousands(one.after)),
            listed(&|one| format!("{} in {} calls", thousands(one.again), one.again_calls)),
            modelled / billed,
        );
    }
    println!(
        "| all | | | | | | | {all_billed:.2} | {all_modelled:.2} | {:.3} |\n",
        all_modelled / all_billed
    );
}

/// The sessions as work, and what their compactions did on average.
struct Bench {
    /// Each session on its own.
    works: Vec<Work>,
    /// The long ones as one conversation: what a window of a million takes in.
    long: Work,
    summary: u64,
    restored: u64,
    /// What is read again as measured: by the agent, and what the client restored by itself.
    measured: u64,
}

impl Bench {
    fn new(sessions: &[Session], compactions: &[Compaction]) -> Self {
        let works: Vec<Work> = sessions.iter().map(Work::of).collect();
        let long = sessions
            .iter()
            .zip(&works)
            .filter(|(session, _)| !session.compactions.is_empty());
        let long: Vec<Work> = long.map(|(_, work)| work.clone()).collect();
        let summary = mean(compactions.iter().map(|one| one.summary));
        let after = mean(compactions.iter().map(|one| one.after));
        let long = Work::joined(&long);
        let restored = after.saturating_sub(long.base + summary);
        let again = mean(compactions.iter().map(|one| one.again));
        let calls = mean(compactions.iter().map(|one| one.again_calls));
        println!(
            "A compaction: summary {}, restored by the client {}, read again {} in {calls} calls ({} each). Calls add {} on average, answers have {}.\n",
            thousands(summary),
            thousands(restored),
            thousands(again),
            thousands(again / calls.max(1)),
            thousands(long.added() / long.steps.len().max(1) as u64),
            mean(long.steps.iter().map(|step| step.output)),
        );
        Self {
            works,
            long,
            summary,
            restored,
            measured: again + restored,
        }
    }

    const fn client(&self, line: u64) -> Policy {
        Policy::Compact {
            line,
            summary: self.summary,
            restored: self.restored,
        }
    }

    const fn agains(&self) -> [u64; 3] {
        [AGAIN[0], AGAIN[1], self.measured]
    }

    /// Prints each policy by what is read again, in the cost of the client's compaction at 167k.
    fn policies(&self) {
        let policies = COMPACTS
            .map(|line| self.client(line))
            .into_iter()
            .chain(LINES.map(reboot));
        let policies: Vec<Policy> = policies.collect();
        for (name, works) in [
            ("each session on its own", self.works.as_slice()),
            ("the long ones as one", std::slice::from_ref(&self.long)),
        ] {
            for is_warm in [false, true] {
                let pauses = if is_warm {
                    "always warm"
                } else {
                    "cold after pauses"
                };
                let rules = |again| {
                    let rules = Rules::new(MODEL, again, false);
                    if is_warm { rules.warm() } else { rules }
                };
                let heads = self
                    .agains()
                    .map(|again| format!("{} read again", thousands(again)));
                println!(
                    "| {name}, {pauses} | {} (measured) |\n|---|---|---|---|",
                    heads.join(" | ")
                );
                for policy in &policies {
                    let cells = self.agains().map(|again| {
                        let [base, this] =
                            [policies[0], *policy].map(|policy| total(works, policy, rules(again)));
                        format!("{:.2} ({})", this.usd / base.usd, this.emptied)
                    });
                    println!("| {} | {} |", words(*policy), cells.join(" | "));
                }
                let base = total(works, policies[0], rules(self.measured));
                println!(
                    "\n(1.00 with {} read again is ${:.2}, {} calls. In brackets: how often the window was emptied.)\n",
                    thousands(self.measured),
                    base.usd,
                    base.calls
                );
            }
        }
    }

    /// Prints the cost by the line of a reboot, and the best line, by model and by what is read again.
    fn lines(&self) {
        let lines = || (50_000..=400_000).step_by(10_000);
        let cost = |line, rules| play(&self.long, reboot(line), rules).usd;
        println!(
            "| the long ones as one: model | cache | read again | best line | within 5 % of it | 120k | 153k | 220k | 833k |"
        );
        println!("|---|---|---|---|---|---|---|---|---|");
        for model in MODELS {
            for (for_an_hour, again) in [false, true]
                .into_iter()
                .flat_map(|hour| self.agains().map(|again| (hour, again)))
            {
                let cost = |line| cost(line, Rules::new(model, again, for_an_hour));
                let Some(best) = lines().min_by(|a, b| cost(*a).total_cmp(&cost(*b))) else {
                    continue;
                };
                let near: Vec<u64> = lines()
                    .filter(|line| cost(*line) <= 1.05 * cost(best))
                    .collect();
                let [first, last] = [near.first(), near.last()]
                    .map(|line| thousands(line.copied().unwrap_or(best)));
                let others = [120_000, 153_000, 220_000, 833_000]
                    .map(|line| format!("{:.2}", cost(line) / cost(best)));
                println!(
                    "| {model} | {} | {} | {} | {first} to {last} | {} |",
                    if for_an_hour { "1 h" } else { "5 min" },
                    thousands(again),
                    thousands(best),
                    others.join(" | "),
                );
            }
        }
        println!(
            "\n```text\ncost by the line of the reboot, {} read again, cold after pauses, 1.00 = the client at 967k",
            thousands(self.measured)
        );
        let rules = Rules::new(MODEL, self.measured, false);
        let base = play(&self.long, self.client(COMPACTS[1]), rules).usd;
        for line in [
            50, 60, 70, 80, 90, 100, 110, 120, 135, 153, 170, 190, 220, 260, 300, 400, 500, 650,
        ]
        .map(|line| line * 1_000)
        {
            let cost = cost(line, rules) / base;
            println!(
                "{:>6} {cost:.2} {}",
                thousands(line),
                "█".repeat((cost * 60.0).round() as usize)
            );
        }
        println!("```\n");
    }
}

const fn reboot(line: u64) -> Policy {
    Policy::Reboot {
        line,
        handoff: HANDOFF,
    }
}

fn words(policy: Policy) -> String {
    match policy {
        Policy::Compact { line, .. } => format!("the client compacts at {}", thousands(line)),
        Policy::Reboot { line, .. } => format!("reboot at {}", thousands(line)),
    }
}

/// Returns the sum of the bills of all these sessions.
fn total(works: &[Work], policy: Policy, rules: Rules<'_>) -> Bill {
    let bills = works.iter().map(|work| play(work, policy, rules));
    bills.fold(Bill::default(), |sum, one| Bill {
        usd: sum.usd + one.usd,
        calls: sum.calls + one.calls,
        emptied: sum.emptied + one.emptied,
    })
}

/// Prints the calls after which a reboot has paid for itself: by the formula of the panel, and played call by call.
fn check_payoff(bench: &Bench) {
    println!("| rebooted at | read again | said, calls | played, calls |\n|---|---|---|---|");
    let work = &bench.long;
    let output = mean(work.steps.iter().map(|step| step.output));
    for (line, again) in [70_000, 90_000, 120_000, 150_000]
        .into_iter()
        .flat_map(|line| bench.agains().map(|again| (line, again)))
    {
        let payoff = Payoff {
            used: Tokens(line),
            fresh: Tokens(work.base + HANDOFF),
            cached: Tokens(work.cached),
            again: Tokens(again),
            output: Tokens(output),
            summary: SUMMARY,
            warm: true,
            for_an_hour: false,
        };
        let said = payoff.calls(MODEL).map(u64::from);
        let rules = Rules::new(MODEL, again, false).warm();
        let mut stays = Player::new(rules, line, line);
        let mut reboots = stays;
        reboots.empty(reboot(line), work, output);
        let played = work.steps.iter().position(|step| {
            stays.step(*step);
            reboots.step(*step);
            reboots.bill().usd <= stays.bill().usd
        });
        let [said, played] = [said, played.map(|at| at as u64 + 1)]
            .map(|calls| calls.map_or_else(|| "never".to_owned(), |calls| calls.to_string()));
        println!(
            "| {} | {} | {said} | {played} |",
            thousands(line),
            thousands(again)
        );
    }
    println!();
}

fn thousands(tokens: u64) -> String {
    if tokens < 10_000 {
        return format!("{:.1}k", tokens as f64 / 1e3);
    }
    format!("{:.0}k", tokens as f64 / 1e3)
}
