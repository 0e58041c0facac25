//! Secrets: whatever is stored or printed holds none of those that were said, typed or handed in.
//!
//! Left out, for `docs/security.md` and `docs/handoff.md` say that it is a person's own and stays as it is: what is typed to the
//! agent and is on its screen (its transcript, the recording of the pane, `GET /screen`), the scratchpad with its versions, an
//! unsent prompt, the whole text of a permission, and the arguments that the agent was started with by hand.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use pitstop_base::redact::planted::{Planted, planted_by};
use pitstop_handoff::summary::SECTIONS;
use pitstop_server::phone::devices::{DeviceRight, Moment};
use regex::bytes::{Regex, RegexBuilder};
use serde_json::{Value, json};

use crate::{
    autopilot::playing,
    kit::{
        events::Events,
        supervisor::{Launch, PITSTOP, SOON, Supervisor, key, processes_of, session_of},
    },
    phone::program,
};

/// The secrets that were put into places: of each kind another one in each place.
#[derive(Default)]
struct Plants(Vec<(&'static str, Vec<Planted>)>);

impl Plants {
    /// A line with as many secrets as so many bytes hold, behind a word that shows its place. Where not all fit, each place has
    /// others.
    fn within(&mut self, place: &'static str, bytes: usize) -> String {
        let seed = self.0.len();
        let mut all = planted_by(seed as u64);
        let first = seed * 7 % all.len();
        all.rotate_left(first);
        let mut text = sign(place);
        let fits = |(_, one, _): &Planted| {
            let whole = text.len() + 3 + one.len() <= bytes;
            if whole {
                text += &format!(" , {}", one.replace('\n', " "));
            }
            whole
        };
        let planted: Vec<Planted> = all.into_iter().take_while(fits).collect();
        self.0.push((place, planted));
        text
    }

    /// A line with a secret of each kind.
    fn line(&mut self, place: &'static str) -> String {
        self.within(place, usize::MAX)
    }

    /// Lines with a secret of each kind.
    fn lines(&mut self, place: &'static str) -> String {
        let planted = planted_by(self.0.len() as u64);
        let lines = planted.iter().map(|(_, text, _)| text.as_str());
        let text = [sign(place).as_str()]
            .into_iter()
            .chain(lines)
            .collect::<Vec<_>>()
            .join("\n");
        self.0.push((place, planted));
        text
    }

    /// The name of a file for each kind that can be in one.
    fn names(&mut self, place: &'static str) -> Vec<String> {
        let mut planted = planted_by(self.0.len() as u64);
        planted.retain(|(_, text, _)| text.len() < 200 && !text.contains(['/', '\n']));
        let names = planted
            .iter()
            .map(|(_, text, _)| format!("{} {text}", sign(place)));
        let names = names.collect();
        self.0.push((place, planted));
        names
    }

    /// The name of a branch with as many secrets as fit into one and git takes.
    fn branch(&mut self, place: &'static str) -> String {
        let mut planted = planted_by(self.0.len() as u64);
        let taken = |text: &str| {
            let is_taken = |c: char| c.is_ascii_alphanumeric() || "-_=+,;&".contains(c);
            text.chars().all(is_taken)
        };
        let mut name = sign(place);
        planted.retain(|(_, text, _)| {
            let fits = taken(text) && name.len() + text.len() < 240;
            if fits {
                name += &format!("/{text}");
            }
            fits
        });
        assert!(!planted.is_empty(), "no secret fits into a branch");
        self.0.push((place, planted));
        name
    }

    /// What finds them in bytes, but for those of the places that `may` names.
    fn seeker(&self, may: &[&str]) -> Seeker {
        let mut known = HashMap::new();
        for (place, planted) in self.0.iter().filter(|(place, _)| !may.contains(place)) {
            for (kind, _, rest) in planted {
                known.insert(rest.clone().into_bytes(), format!("{kind} of the {place}"));
            }
        }
        let any: Vec<String> = (self.0.iter())
            .flat_map(|(_, planted)| planted.iter().map(|(_, _, rest)| regex::escape(rest)))
            .collect();
        let any = RegexBuilder::new(&any.join("|"))
            .unicode(false)
            .size_limit(1 << 28)
            .build()
            .expect("plain text");
        Seeker { any, known }
    }
}

/// What finds secrets.
struct Seeker {
    any: Regex,
    known: HashMap<Vec<u8>, String>,
}

impl Seeker {
    fn found(&self, bytes: &[u8]) -> BTreeSet<&str> {
        let all = self.any.find_iter(bytes);
        all.filter_map(|one| self.known.get(one.as_bytes()))
            .map(String::as_str)
            .collect()
    }

    #[track_caller]
    fn check(&self, what: &str, bytes: &[u8]) {
        let left = self.found(bytes);
        assert!(left.is_empty(), "{what}: {left:#?}");
    }
}

/// The word by which the text of a place is known.
fn sign(place: &str) -> String {
    format!("the-{}-sign", place.replace(' ', "-"))
}

/// All files below a directory.
fn files(root: &Path) -> Vec<PathBuf> {
    let all = crate::host::files(root).into_iter();
    let files = all.filter(|(_, meta)| meta.is_file());
    files.map(|(path, _)| path).collect()
}

/// Everything that pitstop has written, but what is the person's own or the agent's.
#[track_caller]
fn check_files(launch: &Launch, plants: &Plants) {
    let seeker = plants.seeker(&[]);
    let home = launch.the_home();
    let roots = [
        home.path("state/pitstop"),
        launch.project().join(".pitstop"),
    ];
    let (mut all, mut leaks) = (Vec::new(), Vec::new());
    let called = home.path("calls");
    for path in roots.iter().flat_map(|root| files(root)).chain([called]) {
        // The scripted agent keeps its transcript there.
        let agents = path.starts_with(home.path("state/pitstop/demo"));
        // The scratchpad, its versions, and the unsent prompt, which goes back into the prompt box as it was.
        let own = ["scratchpad.md", "scratchpad.jsonl", "draft.md"];
        if agents || own.iter().any(|name| path.ends_with(name)) {
            continue;
        }
        let mut bytes = fs::read(&path).expect("readable");
        if path.extension().is_some_and(|end| end == "cast") {
            // Output is what was on the screen.
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let typed = text.lines().filter(|line| line.contains(",\"i\","));
            bytes = typed.collect::<String>().into_bytes();
        }
        let left = seeker.found(&bytes);
        leaks.extend(left.iter().map(|one| format!("{}: {one}", path.display())));
        all.extend(bytes);
    }
    assert!(leaks.is_empty(), "{leaks:#?}");
    let all = String::from_utf8_lossy(&all);
    // Of these nothing is kept at all; what a status line says of the client lasts until the next one.
    let unkept = ["argument", "variable", "model", "model name", "version"];
    let lost: Vec<_> = (plants.0.iter())
        .map(|(place, _)| *place)
        .filter(|place| !unkept.contains(place) && !all.contains(&sign(place)))
        .collect();
    assert!(lost.is_empty(), "nothing is kept of {lost:?}");
}

/// What the agent says in its first turn.
fn words(plants: &mut Plants) -> String {
    let mut said = vec![
        plants.lines("answer"),
        format!("OBJECTIVE: {}", plants.within("objective", 1900)),
        format!(
            "DECISION: {} | {}",
            plants.within("decision", 950),
            plants.within("reason", 950)
        ),
        format!(
            "REJECTED: {} | {}",
            plants.within("rejected", 950),
            plants.within("why not", 950)
        ),
        format!("CONSTRAINT: {}", plants.within("constraint", 1900)),
        format!("ISSUE[high]: {}", plants.within("issue", 1900)),
        format!("DONE: {}", plants.within("done", 1900)),
        format!("TODO: {}", plants.within("to do", 1900)),
        format!("STATE how={}", plants.within("state", 1900)),
        "STATE DB_PASSWORD=sesame-42-tree".to_owned(),
    ];
    // A value that only its name shows to be one.
    let (_, state) = plants.0.last_mut().expect("the state");
    state.push(("named", String::new(), "sesame-42-tree".to_owned()));
    said.push(format!(
        "SCRATCHPAD:\n## Last Action\n{}\nSIGNAL:",
        plants.line("block")
    ));
    said.join("\n").replace('\t', " ").replace('\n', "\\n")
}

/// Writes a file of the project for the agent's commands.
fn file(launch: &Launch, name: &str, text: &str) {
    fs::write(launch.project().join(name), text).expect("it is written");
}

/// The agent's commands: what they print, and what is run, fails, is tested and committed.
fn commands(launch: &Launch, plants: &mut Plants) -> Vec<String> {
    file(launch, "output", &plants.lines("output"));
    file(
        launch,
        "failure",
        &format!("error: {}", plants.lines("failure")),
    );
    file(launch, "commit", &plants.line("commit"));
    file(launch, "branch", &plants.branch("branch"));
    let test = plants.within("test", 900);
    file(
        launch,
        "tests",
        &format!("test {test} ... FAILED\ntest result: FAILED. 3 passed; 1 failed; 0 ignored\n"),
    );
    for name in plants.names("file") {
        file(launch, &name, "");
    }
    [
        format!("true # {}", plants.line("command")),
        "cat output".to_owned(),
        format!("cat failure; false # {}", plants.line("failed command")),
        "git init -qb \"$(cat branch)\"; git -c user.name=Ada -c user.email=ada@example.org commit -q --allow-empty -F commit".to_owned(),
        format!("{PITSTOP} test -- sh -c 'cat tests; exit 1'"),
    ]
    .map(|command| format!("$ {command}"))
    .to_vec()
}

/// Posts a body, and returns what is printed.
#[track_caller]
fn post(supervisor: &Supervisor, path: &str, body: &Value) -> Vec<u8> {
    let output = supervisor.run(&["api", "POST", path, "--data", &body.to_string()]);
    assert_eq!(output.status.code(), Some(0), "{path}: {output:?}");
    [output.stdout, output.stderr].concat()
}

/// What programs report.
fn report(supervisor: &Supervisor, plants: &mut Plants, printed: &mut Vec<u8>) {
    for (path, body) in [
        (
            "/hooks/git-commit",
            json!({ "commit_sha": "1a2b3c4d", "branch": "main", "commit_message": plants.line("reported commit") }),
        ),
        (
            "/hooks/test-result",
            json!({ "passed": false, "test_count": 2, "failed_count": 1, "test_command": plants.line("reported command"),
                "failing_tests": [plants.within("reported test", 900)] }),
        ),
        (
            "/context/auto-save",
            json!({ "inferred_task": plants.within("inferred task", 2000), "inferred_context": plants.lines("inferred context"),
                "environment": plants.within("environment", 200) }),
        ),
        (
            "/tools/note",
            json!({ "input": { "text": plants.within("note", 1900) } }),
        ),
        (
            "/tools/request_reboot",
            json!({ "input": { "reason": plants.within("wish", 1900) } }),
        ),
        ("/control/say", json!({ "text": plants.line("order") })),
    ] {
        printed.extend(post(supervisor, path, &body));
        if path == "/control/say" {
            supervisor.wait_for_handoff(&sign("order"));
            supervisor.wait_for_state("idle", SOON);
        }
    }
}

/// A demo that keeps and reports all that it can, with secrets in what it is given and in what its agent says and runs.
fn demo(plants: &mut Plants) -> Launch {
    let summary = plants.lines("summary");
    let summary = SECTIONS.map(|title| format!("## {title}\n{summary}"));
    let argument = plants.line("argument");
    let demo = Launch::quiet_demo()
        .agent_args(["--append-system-prompt", &argument])
        .env("OF_THE_ENVIRONMENT", plants.line("variable"))
        .summed_up(&summary.join("\n"), true)
        .notes(&format!(
            "## Current Plan\n- [ ] {}\n",
            plants.line("scratchpad")
        ))
        .set("handoff.max_state_size=200000")
        .set("guard.notice=20")
        .set("guard.warn=30")
        .env("PITSTOP_DEMO_USAGE", "130000,140000,150000,160000")
        .env("PITSTOP_LOG", "trace")
        .set("summary.generate_summaries=true")
        .set("recording.record_input=true")
        .set("reboot.mode=\"manual\"");
    let called = demo.the_home().path("calls");
    let demo = demo.set(&format!("notify.command=\"cat >>{}\"", called.display()));
    let steps = [
        vec![words(plants)],
        commands(&demo, plants),
        vec!["That is all.".to_owned()],
    ];
    let failed = format!("! {}", plants.line("error"));
    playing(
        demo,
        &[&steps.concat().join("\t"), "Noted.", "Noted.", &failed],
    )
}

/// Hands a status line in, as the client does, whose model and version are not what they should be.
fn status_line(supervisor: &Supervisor, plants: &mut Plants, printed: &mut Vec<u8>) {
    let line = json!({
        "session_id": session_of(&supervisor.status()),
        "model": { "id": plants.within("model", 200), "display_name": plants.within("model name", 200) },
        "version": plants.within("version", 200),
    });
    printed.extend(post(supervisor, "/statusline", &line));
    let output = supervisor.run_with_input(&["statusline"], line.to_string().as_bytes());
    printed.extend([output.stdout, output.stderr].concat());
}

/// Calls the agent's tools as a client without mods does.
fn mcp(supervisor: &Supervisor, plants: &mut Plants, printed: &mut Vec<u8>) {
    let tool = |id: u64, name: &str, arguments: Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": name, "arguments": arguments } })
    };
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": { "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": { "name": "a client", "version": "1" } } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        tool(
            2,
            "note",
            json!({ "text": plants.within("mcp note", 1900) }),
        ),
        tool(
            3,
            "decision",
            json!({ "text": plants.within("mcp decision", 950), "why": plants.within("mcp reason", 950) }),
        ),
        tool(
            4,
            "done",
            json!({ "item": plants.within("mcp done", 1900) }),
        ),
        tool(5, "handoff_preview", json!({})),
        tool(6, "context", json!({})),
    ];
    let lines: String = messages.iter().map(|one| one.to_string() + "\n").collect();
    let output = supervisor.run_with_input(&["mcp"], lines.as_bytes());
    let answers = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(answers.contains("\"id\":6"), "{answers}");
    printed.extend([output.stdout, output.stderr].concat());
}

/// Looks at what the page shows; the screen is the agent's.
fn page(supervisor: &Supervisor, address: SocketAddr, printed: &mut Vec<u8>) {
    let store = program::store_of(supervisor.launch.the_home());
    let code = store.open_pairing(DeviceRight::Watch, Moment::now());
    let device = program::paired(address, &code.expect("a code"), "phone");
    let get = |target: &str| {
        let sign = |request| device.sign(request);
        program::send(address, "GET", target, sign)
    };
    let list = get("/phone/sessions");
    let id = list.json()["sessions"][0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    printed.extend(format!("{list:?}").into_bytes());
    for what in ["status", "handoff"] {
        let answer = get(&format!("/phone/sessions/{id}/{what}"));
        assert_eq!(answer.status, 200, "{what}");
        printed.extend(answer.body.into_bytes());
    }
}

/// Saves, and asks for all that can be asked.
fn ask(supervisor: &Supervisor, plants: &mut Plants, printed: &mut Vec<u8>) {
    let (task, next) = (plants.within("task", 2000), plants.within("next", 2000));
    for args in [
        &["save", "--task", &task, "--next", &next][..],
        &["status", "--json"],
        &["status"],
        &["handoff", "--json"],
        &["handoff"],
        &["handoff", "--check"],
        &["history", "--json"],
        &["history"],
        &["context", "--all"],
        &["context", "--json"],
        &["api", "GET", "/metrics"],
        &["api", "GET", "/context/usage"],
        &["ls", "--json"],
        &["ls"],
        &["doctor"],
    ] {
        let output = supervisor.run(args);
        printed.extend([output.stdout, output.stderr].concat());
    }
}

#[test]
fn secrets_are_in_nothing_that_is_stored_or_printed() {
    let mut plants = Plants::default();
    let address = program::free_address();
    let launch = program::listening_at(demo(&mut plants), address);
    let supervisor = launch.start_idle();
    let mut events = Events::of(launch.the_home());
    supervisor.keys([plants.line("prompt").as_str(), key::ENTER]);
    supervisor.wait_for_log("the summary is written", SOON);
    supervisor.wait_for_state("idle", SOON);
    supervisor.wait_for_handoff(&sign("reason"));
    let mut printed = Vec::new();
    report(&supervisor, &mut plants, &mut printed);
    // Key by key, as a person types.
    for c in plants.within("keys", 400).chars() {
        supervisor.keys([c.to_string().as_str()]);
    }
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_state("idle", SOON);
    let notified = json!({
        "session_id": session_of(&supervisor.status()), "hook_event_name": "Notification",
        "message": plants.line("notification"),
    });
    printed.extend(post(&supervisor, "/hooks/claude/Notification", &notified));
    status_line(&supervisor, &mut plants, &mut printed);
    mcp(&supervisor, &mut plants, &mut printed);
    page(&supervisor, address, &mut printed);
    ask(&supervisor, &mut plants, &mut printed);
    supervisor.keys(["go", key::ENTER]);
    supervisor.wait_until("its failure", || {
        supervisor.status().to_string().contains(&sign("error"))
    });
    printed.extend(supervisor.run(&["status", "--json"]).stdout);
    let handoff = supervisor.handoff_text();
    assert!(handoff.contains("secrets are masked: "), "{handoff}");
    supervisor.review();
    supervisor.wait_for_text("secrets are masked", SOON);
    let edited = plants.within("edit", 400);
    supervisor.keys(["e", key::CTRL_END, "\r", &edited, key::ESC]);
    supervisor.wait_for_handoff(&sign("edit"));
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_iteration(2, SOON);
    let seen = events.up_to("reboot", |reboot| reboot["phase"] == "idle", SOON);
    printed.extend(format!("{seen:?}").into_bytes());
    let seeker = plants.seeker(&["argument"]);
    for process in processes_of(launch.the_home()) {
        // It may have ended.
        let argv = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
        seeker.check("argv", &argv);
    }
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
    plants.seeker(&[]).check("printed", &printed);
    check_files(&launch, &plants);
}

#[test]
fn a_run_without_a_terminal_prints_no_secret() {
    let mut plants = Plants::default();
    let (task, said) = (plants.line("task"), plants.line("reply"));
    let seeker = plants.seeker(&[]);
    for form in [&["--headless"][..], &["--headless", "--json"]] {
        let demo = Launch::demo()
            .order(["--task", &task, "--until", "ALL DONE"])
            .order(form.iter().copied())
            .set("recording.record_input=true");
        let launch = playing(demo, &[&format!("OBJECTIVE: {said}\\nALL DONE")]);
        let mut run = launch.start_headless();
        assert_eq!(run.wait_for_exit(SOON), Some(0), "{:#?}", run.lines().len());
        seeker.check("printed", run.lines().join("\n").as_bytes());
    }
}
