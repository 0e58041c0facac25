//! `pitstop --version`: the version with the commit it was built from and the clients it was tested with. `-V` is the version alone.

use std::sync::LazyLock;

use serde::Deserialize;

/// The versions of Claude Code that the tests run with, as the file that continuous integration reads names them.
#[derive(Deserialize)]
struct Clients {
    current: String,
    floor: String,
}

/// The versions of the client that pitstop is tested with.
static CLIENTS: LazyLock<Clients> = LazyLock::new(|| {
    let clients = include_str!("../../assets/clients.toml");
    toml::from_str(clients).expect("the file is well formed: a test reads it")
});

/// Returns the oldest and the newest version of the client that pitstop is tested with.
pub(super) fn tested_clients() -> (&'static str, &'static str) {
    (&CLIENTS.floor, &CLIENTS.current)
}

/// The text behind the program's name.
static LONG: LazyLock<String> = LazyLock::new(|| {
    let commit = match (env!("PITSTOP_COMMIT"), env!("PITSTOP_COMMIT_DATE")) {
        ("", _) if cfg!(debug_assertions) => "unknown (a debug build does not ask git)".to_owned(),
        ("", _) => "unknown (not built in a git work tree of pitstop)".to_owned(),
        (commit, "") => commit.to_owned(),
        (commit, date) => format!("{commit}, {date}"),
    };
    let (floor, current) = tested_clients();
    format!(
        "{}\ncommit: {commit}\ntested with Claude Code {current}, and with {floor} what pitstop asks of every client",
        env!("CARGO_PKG_VERSION"),
    )
});

/// Returns the version, the commit and the tested clients, on three lines.
pub fn long() -> &'static str {
    &LONG
}
