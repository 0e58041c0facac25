//! The model of `cargo bench --bench cost` against sessions of the real client, and the price list against the client's own.

use std::{fs, path::PathBuf};

use crate::kit::{
    messages_api::Answer,
    supervisor::{Launch, SOON, Supervisor},
    transcripts,
};

#[path = "../../benches/cost/play.rs"]
#[allow(dead_code, reason = "the bench uses all of it")]
mod play;
#[path = "../../benches/cost/sessions.rs"]
#[allow(dead_code, reason = "the bench uses all of it")]
mod sessions;

use play::{Rules, billed, replay};
use sessions::Session;

const MODEL: &str = "claude-opus-4-8";

/// Two figures in US dollars that are the same within a percent.
#[track_caller]
fn agree(what: &str, said: f64, found: f64) {
    eprintln!("{what}: {said:.5} for {found:.5} $");
    assert!(found > 0.01, "{what}: {found}");
    assert!(
        (said - found).abs() <= 0.01 * found,
        "{what}: {said} for {found}"
    );
}

/// The turns: so many calls of the shell, each with some thousand tokens of output, then a text.
fn works(supervisor: &Supervisor, calls: usize) {
    let api = supervisor.launch.api();
    let shell = |at: usize| Answer::shell(&format!("seq {at} {}", at + 5_500));
    api.answer((0..calls).map(shell).chain([Answer::text("It is done.")]));
}

/// The sessions of the client in the order in which they were begun.
fn played(supervisor: &Supervisor) -> Vec<Session> {
    let projects = supervisor.launch.the_home().claude_dir().join("projects");
    let mut files = sessions::files(&projects);
    files.sort_by_key(|file: &PathBuf| fs::metadata(file).and_then(|meta| meta.created()).unwrap());
    files
        .iter()
        .map(|file| sessions::read_file(file).unwrap())
        .collect()
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_model_of_costs_agrees_with_what_sessions_of_the_real_client_are_billed() {
    let launch = Launch::live()
        .set("reboot.mode=\"manual\"")
        .set("summary.generate_summaries=false")
        .size(162, 60)
        .agent_args(["--model", MODEL])
        .agent_args(["--allowed-tools", "Bash(seq:*)"]);
    launch.api().keep_cache();
    let supervisor = launch.start_idle();
    for calls in [6, 3] {
        let before = launch.api().main_calls().len();
        works(&supervisor, calls);
        supervisor.prompt("count on");
        launch.api().wait_for_calls(before + calls + 1, SOON);
        supervisor.wait_for_state("idle", SOON);
    }
    let rules = Rules::new(MODEL, 0, false);
    let first = played(&supervisor).remove(0);
    let status = supervisor.wait_for_status(|status| {
        status["cost_usd"]
            .as_f64()
            .is_some_and(|cost| cost >= 0.99 * billed(&first, rules))
    });
    agree(
        "the price list and the client's own",
        billed(&first, rules),
        status["cost_usd"].as_f64().unwrap(),
    );

    let pays = status["reboot_pays_in_calls"].as_u64();
    assert!(
        pays.is_some_and(|calls| (5..60).contains(&calls)),
        "{pays:?}"
    );
    supervisor.wait_for_text("a reboot now pays for itself in about", SOON);

    let before = launch.api().main_calls().len();
    works(&supervisor, 5);
    let asked = supervisor.run(&["ctl", "reboot", "--way", "fresh"]);
    assert!(asked.status.success(), "{asked:?}");
    supervisor.wait_for_phase("review", SOON);
    supervisor.ctl("approve");
    supervisor.wait_for_iteration(2, SOON);
    launch.api().wait_for_calls(before + 6, SOON);
    supervisor.wait_for_state("idle", SOON);
    let sessions = played(&supervisor);
    assert_eq!(sessions.len(), 2);
    for (session, calls) in sessions.iter().zip([11, 6]) {
        assert_eq!(session.calls.len(), calls);
        agree(
            "the model and the bill",
            replay(session, rules),
            billed(session, rules),
        );
    }
    // Where the instructions are as before, the fresh session reads them from the cache.
    let read = sessions[1].calls[0].usage.cache_read;
    assert!(read.0 > 0, "{read:?}");
}
