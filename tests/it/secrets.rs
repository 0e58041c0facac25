//! Secrets: whatever is stored or printed holds none of those that were said, typed or handed in.

use std::{
    fs,
    path::{Path, PathBuf},
};

use pitstop_handoff::summary::SECTIONS;

use crate::{
    autopilot::playing,
    kit::supervisor::{Launch, SOON, key},
};

/// A text with a secret of each kind, and what of it must be nowhere. It begins with a word that shows its place.
fn planted(place: &str) -> (String, Vec<String>) {
    let mut hidden = Vec::new();
    let sign = sign(place);
    let place: String = place.chars().take(2).collect();
    let mut plant = |length: usize| {
        let number = hidden.len();
        let secret: String = format!("Zx9K{place}{number}w2Qm7Lt4Rb8Vn3Pj6Hs1Yd5Gf0Ca")
            .chars()
            .take(length)
            .collect();
        // A mask keeps the first characters.
        hidden.push(secret[4..].to_owned());
        secret
    };
    let text = [
        format!("PGPASSWORD={} psql", plant(12)),
        format!("mysql -u root -p{} shop", plant(12)),
        format!("curl -u ada:{} https://h/", plant(12)),
        format!("sshpass -p {} ssh h", plant(12)),
        format!("redis-cli -a {} ping", plant(12)),
        format!("tool --password={} --dry-run", plant(12)),
        format!("tool --password {}", plant(12)),
        format!("docker login -p {} r.example", plant(12)),
        format!("db postgres://ada:{}@h/shop", plant(12)),
        format!("token ghp_{}", plant(36)),
    ];
    (format!("{sign} {}", text.join(" , ")), hidden)
}

/// The word by which the text of a place is known.
fn sign(place: &str) -> String {
    format!("the-{}-sign", place.replace(' ', "-"))
}

/// All files below a directory.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let kind = entry.file_type().expect("a kind");
            if kind.is_dir() {
                left.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found
}

/// Which of the secrets stand in these bytes.
fn found(bytes: &[u8], hidden: &[(String, Vec<String>)]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let all = hidden
        .iter()
        .flat_map(|(place, all)| all.iter().map(move |one| (place, one)));
    all.filter(|(_, one)| text.contains(one.as_str()))
        .map(|(place, one)| format!("{one} of {place}"))
        .collect()
}

/// Everything that pitstop has written, but what is the person's own or the agent's.
#[track_caller]
fn check_files(launch: &Launch, hidden: &[(String, Vec<String>)]) {
    let home = launch.the_home();
    let roots = [
        home.path("state/pitstop"),
        launch.project().join(".pitstop"),
    ];
    let mut all = Vec::new();
    for path in roots.iter().flat_map(|root| files(root)) {
        // The scripted agent keeps its transcript there.
        let agents = path.starts_with(home.path("state/pitstop/demo"));
        // An unsent prompt goes back into the prompt box as it was.
        if agents || path.ends_with("draft.md") {
            continue;
        }
        let mut bytes = fs::read(&path).expect("readable");
        if path.extension().is_some_and(|end| end == "cast") {
            // Output is what was on the screen.
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let typed: Vec<&str> = text
                .lines()
                .filter(|line| line.contains(",\"i\","))
                .collect();
            bytes = typed.concat().into_bytes();
        }
        let left = found(&bytes, hidden);
        assert!(left.is_empty(), "{}: {left:#?}", path.display());
        all.extend(bytes);
    }
    let all = String::from_utf8_lossy(&all);
    for (place, _) in hidden {
        assert!(all.contains(&sign(place)), "nothing is kept of the {place}");
    }
}

#[test]
fn secrets_are_in_nothing_that_is_stored_or_printed() {
    let mut hidden = Vec::new();
    let mut plant = |place: &str| {
        let (text, secrets) = planted(place);
        hidden.push((place.to_owned(), secrets));
        text
    };
    let said = [
        format!("OBJECTIVE: {}", plant("objective")),
        format!("DECISION: {} | because", plant("decision")),
        format!("ISSUE[high]: {}", plant("issue")),
        format!("TODO: {}", plant("to do")),
        format!("STATE how={}", plant("state")),
        "STATE DB_PASSWORD=sesame-42-tree".to_owned(),
    ];
    let turn = format!(
        "{}\t$ true '{}'",
        said.join("\\n").replace('\t', " "),
        plant("command")
    );
    let summary = plant("summary");
    let summary: Vec<String> = SECTIONS
        .iter()
        .map(|title| format!("## {title}\n{summary}"))
        .collect();
    let typed = plant("keys");
    let (task, next) = (plant("task"), plant("next"));
    // A value that only its name shows to be one.
    hidden[4].1.push("sesame-42-tree".to_owned());
    let demo = Launch::quiet_demo()
        .summed_up(&summary.join("\n"), true)
        .set("guard.notice=20")
        .set("guard.warn=30")
        .env("PITSTOP_DEMO_GROWTH", "112000")
        .env("PITSTOP_LOG", "trace")
        .set("summary.generate_summaries=true")
        .set("recording.record_input=true")
        .set("reboot.mode=\"manual\"");
    let launch = playing(demo, &[&turn, "Noted."]);
    let supervisor = launch.start();
    supervisor.wait_for_state("idle", SOON);
    supervisor.keys(["go", key::ENTER]);
    supervisor.wait_until(
        "the agent's words are taken",
        || supervisor.handoff().to_string().contains("because"),
        SOON,
    );
    supervisor.wait_for_state("idle", SOON);
    supervisor.wait_until(
        "the summary is there",
        || supervisor.handoff_text().contains(&sign("summary")),
        SOON,
    );
    // Key by key, as a person types.
    for c in typed.chars() {
        supervisor.keys([c.to_string().as_str()]);
    }
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_state("idle", SOON);
    let saved = supervisor.run(&["save", "--task", &task, "--next", &next]);
    assert_eq!(saved.status.code(), Some(0), "{saved:?}");
    let mut printed = saved.stdout;
    for args in [
        &["status", "--json"][..],
        &["status"],
        &["handoff", "--json"],
        &["handoff"],
        &["history", "--json"],
        &["context", "--all"],
        &["context", "--json"],
    ] {
        let output = supervisor.run(args);
        printed.extend([output.stdout, output.stderr].concat());
    }
    let handoff = supervisor.handoff_text();
    assert!(handoff.contains("secrets are masked: "), "{handoff}");
    supervisor.keys([key::F5]);
    supervisor.wait_for_phase("review", SOON);
    supervisor
        .terminal
        .wait_for_text("secrets are masked", SOON);
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_iteration(2, SOON);
    let launch = supervisor.launch.clone();
    let reply = supervisor.ctl("stop");
    printed.extend(reply.1.into_bytes());
    supervisor.wait_for_exit(SOON);
    for args in [
        &["history", "--json"][..],
        &["restore", "--list", "--json"],
        &["restore", "--list"],
    ] {
        let output = launch.command(args).output().expect("it runs");
        printed.extend([output.stdout, output.stderr].concat());
    }
    let left = found(&printed, &hidden);
    assert!(left.is_empty(), "printed: {left:#?}");
    check_files(&launch, &hidden);
}

#[test]
fn a_run_without_a_terminal_prints_no_secret() {
    let (task, hidden) = planted("task");
    let (said, more) = planted("reply");
    let hidden = [("task".to_owned(), hidden), ("reply".to_owned(), more)];
    for form in [&["--headless"][..], &["--headless", "--json"]] {
        let demo = Launch::demo()
            .order(["--task", &task, "--until", "ALL DONE"])
            .order(form.iter().copied())
            .set("recording.record_input=true");
        let launch = playing(demo, &[&format!("OBJECTIVE: {said}\\nALL DONE")]);
        let mut run = launch.start_headless();
        assert_eq!(run.wait_for_exit(SOON), Some(0), "{:#?}", run.lines().len());
        let left = found(run.lines().join("\n").as_bytes(), &hidden);
        assert!(left.is_empty(), "printed: {left:#?}");
    }
}
