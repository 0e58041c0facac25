//! Calls for a person: `[notify]` and the terminal.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    path::Path,
    thread,
};

use serde_json::Value;

use crate::{
    attach::call,
    kit::supervisor::{Launch, PITSTOP, SOON, Supervisor, key},
};

/// A demo whose window is soon so full that a reboot waits.
fn filling(launch: Launch) -> Launch {
    launch.env("PITSTOP_DEMO_GROWTH", "80000")
}

fn calls(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

#[test]
fn the_command_gets_each_call_once_and_its_end() {
    let launch = Launch::demo();
    let file = launch.the_home().path("calls");
    let command = format!("notify.command=\"cat >>{0}; echo >>{0}\"", file.display());
    let pitstop = filling(launch).set(&command).start();
    pitstop.wait_for_phase("review", SOON);
    let of = |kind: &str| -> Vec<Value> {
        let all = calls(&file).into_iter();
        all.filter(|call| call["kind"] == kind).collect()
    };
    pitstop.wait_until("a call", || !of("review").is_empty());
    let [open] = &of("review")[..] else {
        panic!("once: {:?}", calls(&file));
    };
    assert_eq!(open["state"], "open");
    assert_eq!(open["project"], "project");
    // A run that is taken up again numbers its needs from the start.
    let since: chrono::DateTime<chrono::Utc> =
        serde_json::from_value(open["since"].clone()).expect("a time");
    let id = open["id"].as_str().expect("an id");
    assert!(id.contains(&format!("-{}-", since.timestamp())), "{id}");
    assert_eq!(open["session"], pitstop.status()["session_id"]);
    let needs = pitstop.status()["needs"].clone();
    assert_eq!(needs[0]["kind"], "review");
    assert_eq!(needs[0]["what"], open["what"]);
    let said = pitstop.run(&["status"]);
    assert!(String::from_utf8_lossy(&said.stdout).contains("needs you"));
    pitstop.ctl("defer");
    pitstop.wait_until("its end", || of("review").len() == 2);
    let end = &of("review")[1];
    assert_eq!(
        (&end["state"], &end["id"]),
        (&Value::from("settled"), &open["id"])
    );
}

/// A server that reads requests and answers them with this, or not at all.
fn server(answer: Option<&'static str>) -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!(
        "http://{}/topic",
        listener.local_addr().expect("an address")
    );
    let (sender, bodies) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut text = String::new();
            let mut chunk = [0; 4096];
            while !text.contains("\r\n\r\n") || !text.ends_with(')') {
                match stream.read(&mut chunk) {
                    Ok(read) if read > 0 => text += &String::from_utf8_lossy(&chunk[..read]),
                    _ => break,
                }
            }
            let _ = sender.send(text);
            if let Some(answer) = answer {
                let _ = stream.write_all(answer.as_bytes());
            } else {
                held.push(stream);
            }
        }
    });
    (address, bodies)
}

/// Checks that the session works while its calls do not get through, and that this is said once.
fn goes_on(pitstop: &Supervisor) {
    pitstop.wait_for_phase("review", SOON);
    pitstop.wait_until("the failure", || {
        pitstop.log().contains("a person could not be called")
    });
    pitstop.keys([key::PREFIX, "l"]);
    pitstop.wait_for_text("[notify] url", SOON);
    pitstop.keys(["\u{1b}"]);
}

#[test]
fn an_address_gets_the_text_and_one_that_fails_holds_nothing_up() {
    let (address, bodies) = server(Some("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
    let set = |address: &str| {
        filling(Launch::demo())
            .set(&format!("notify.url=\"{address}\""))
            .set("notify.timeout=\"1s\"")
            .start()
    };
    let pitstop = set(&address);
    let text = bodies.recv_timeout(SOON).expect("a message");
    assert!(text.starts_with("POST /topic "), "{text}");
    assert!(
        text.contains("A reboot waits for your review (project)"),
        "{text}"
    );
    assert!(!pitstop.log().contains("could not be called"));
    drop(pitstop);

    let (failing, _kept) = server(Some(
        "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n",
    ));
    let (silent, _kept_too) = server(None);
    let dead = {
        let gone = TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("http://{}/", gone.local_addr().expect("an address"))
    };
    for address in [failing, silent, dead] {
        goes_on(&set(&address));
    }
}

#[test]
fn a_test_uses_each_way_and_says_how_it_went() {
    let launch = Launch::quiet_demo();
    let file = launch.the_home().path("calls");
    let (address, bodies) = server(Some("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
    let command = format!("notify.command=\"cat >>{0}; echo >>{0}\"", file.display());
    let url = format!("notify.url=\"{address}\"");
    let args = ["--set", &command, "--set", &url, "notify", "--test"];
    let terminal = call(&launch, launch.project(), (100, 30), &args);
    let exit = terminal.wait_for_exit(SOON);
    assert_eq!(exit.code, 0, "{}", terminal.screen_text());
    assert!(terminal.output().contains(&7), "the bell");
    assert!(String::from_utf8_lossy(&terminal.output()).contains("\x1b]9;pitstop: "));
    assert!(
        bodies
            .recv_timeout(SOON)
            .expect("a message")
            .contains("test")
    );
    let states: Vec<_> = calls(&file)
        .iter()
        .map(|call| call["state"].clone())
        .collect();
    assert_eq!(states, ["open", "settled"]);
    let args = [
        "--set",
        "notify.command=\"echo no >&2; exit 3\"",
        "notify",
        "--test",
    ];
    let failed = launch.command(&args).output().expect("it runs");
    let said = String::from_utf8_lossy(&failed.stdout).into_owned();
    assert_eq!(failed.status.code(), Some(1), "{said}");
    assert!(said.contains("[notify] command has failed: no"), "{said}");
}

#[test]
fn in_tmux_a_notification_reaches_the_terminal_around_it() {
    let launch = Launch::quiet_demo();
    let socket = launch.the_home().path("tmux");
    // tmux passes nothing on for a terminal that is not there yet.
    let attached = "until tmux list-clients | grep -q .; do sleep 0.1; done";
    let command = format!("{attached}; {PITSTOP} notify --test; sleep 100");
    let begin = ["-f", "/dev/null", "-S", socket.to_str().expect("text")];
    let allowing = ["set-option", "-g", "allow-passthrough", "on", ";"];
    let args = [&begin[..], &allowing, &["new-session", &command]].concat();
    let terminal = launch.terminal("tmux", args, (100, 30));
    let passed = || String::from_utf8_lossy(&terminal.output()).contains("\x1b]9;pitstop: ");
    crate::kit::poll::until_true(SOON, passed, || terminal.screen_text());
    let ended = std::process::Command::new("tmux")
        .arg("-S")
        .arg(&socket)
        .arg("kill-server")
        .status();
    assert!(ended.expect("tmux runs").success());
}
