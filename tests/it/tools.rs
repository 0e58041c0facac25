//! The tools of the agent: the real client has them by the mod or by `pitstop mcp`, and what is kept stands in the next handoff.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Stdio},
    time::Instant,
};

use serde_json::{Value, json};

use crate::kit::{
    client::is_at_least,
    messages_api::Answer,
    supervisor::{Launch, SOON, Supervisor},
};

const NAMES: [&str; 6] = [
    "context",
    "decision",
    "done",
    "handoff_preview",
    "note",
    "request_reboot",
];

/// What the stand-in says to have a tool called.
fn tool(name: &str, input: Value) -> Answer {
    let name = format!("mcp__pitstop__{name}");
    Answer::Tool { name, input }
}

fn live() -> Launch {
    Launch::live().set("reboot.mode=\"manual\"")
}

/// The names of our tools in a request, in order.
fn offered(call: &Value) -> Vec<String> {
    let tools = call["tools"].as_array().expect("a list of tools");
    let names = tools.iter().filter_map(|tool| tool["name"].as_str());
    let ours = names.filter_map(|name| name.strip_prefix("mcp__pitstop__"));
    let mut ours: Vec<String> = ours.map(str::to_owned).collect();
    ours.sort();
    ours
}

/// The whole of the last message of a request: what a tool answered stands there.
fn last_message(call: &Value) -> String {
    let messages = call["messages"].as_array().expect("a list of messages");
    messages.last().map(Value::to_string).unwrap_or_default()
}

#[track_caller]
fn wait_for_tools(supervisor: &Supervisor, by: &str) {
    supervisor.wait_for_status(|status| status["agent"]["tools"] == by);
}

/// How the client under test is to have its tools.
fn by_version() -> &'static str {
    if is_at_least(287) { "mod" } else { "mcp" }
}

/// Asks until the client offers our tools: it may connect a server only after the first requests, where it has its start wait for
/// the mod.
fn prompt_until_offered(supervisor: &Supervisor) {
    let api = supervisor.launch.api();
    let limit = Instant::now() + SOON;
    while api
        .main_calls()
        .last()
        .is_none_or(|call| offered(call) != NAMES)
    {
        assert!(Instant::now() < limit, "no tools are offered");
        let calls = api.main_calls().len();
        api.answer([Answer::text("Here I am.")]);
        supervisor.prompt("are you there?");
        api.wait_for_calls(calls + 1, SOON);
        supervisor.wait_for_state("idle", SOON);
    }
}

/// Has the agent keep a fact, with the tools that it has by the `mod` or by `mcp`; gives the request that the answer came with.
fn keeps_a_fact(supervisor: &Supervisor, by: &str, fact: &str) -> Value {
    let api = supervisor.launch.api();
    supervisor.wait_for_state("idle", SOON);
    if by == "mcp" {
        prompt_until_offered(supervisor);
    }
    let before = api.main_calls().len();
    api.answer([tool("note", json!({ "text": fact })), Answer::text("Done.")]);
    supervisor.prompt("keep it");
    let calls = api.wait_for_calls(before + 2, SOON);
    assert_eq!(calls.len(), before + 2, "the tool waits for something");
    supervisor.wait_for_state("idle", SOON);
    for call in &calls[before..] {
        assert_eq!(offered(call), NAMES);
    }
    calls[before + 1].clone()
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn what_the_real_client_s_agent_keeps_by_a_tool_stands_in_the_next_handoff_once() {
    let launch = live().notes("# Scratchpad\n\n## Current Plan\n- [ ] write the store\n");
    let supervisor = launch.start();
    let answered = keeps_a_fact(&supervisor, by_version(), "the staging port is 7000");
    assert!(last_message(&answered).contains("kept"));
    wait_for_tools(&supervisor, by_version());
    let doctor = supervisor.run(&["doctor"]);
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    let line = text.lines().find(|line| line.contains("agent's tools"));
    assert!(line.is_some_and(|line| !line.contains("none")), "{text}");

    let calls = launch.api().main_calls().len();
    let (shown, got) = crate::reboot::reboot(&supervisor);
    assert_eq!(shown.matches("port is 7000").count(), 1, "{shown}");
    assert_eq!(got.matches("port is 7000").count(), 1, "{got}");
    assert_eq!(supervisor.notes().matches("port is 7000").count(), 1);
    // The next session has them, too: by the mod from its first request on.
    let first = &launch.api().wait_for_calls(calls + 1, SOON)[calls];
    if by_version() == "mod" {
        assert_eq!(offered(first), NAMES);
    }
    keeps_a_fact(&supervisor, by_version(), "CI needs a login");
    wait_for_tools(&supervisor, by_version());
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_client_s_agent_asks_for_a_reboot_and_a_person_decides() {
    let launch = live().notes("# Scratchpad\n\n## Current Plan\n- [ ] write the store\n");
    let supervisor = launch.start_idle();
    let reason = json!({ "reason": "the plan is done" });
    let preview = tool("handoff_preview", json!({}));
    launch.api().answer([
        tool("request_reboot", reason),
        preview,
        Answer::text("Done."),
    ]);
    supervisor.prompt("go on");
    let calls = launch.api().wait_for_calls(3, SOON);
    assert!(last_message(&calls[1]).contains("the human decides"));
    let shown = last_message(&calls[2]);
    assert!(
        shown.contains("write the store"),
        "its own handoff: {shown}"
    );
    let asks = "The agent asks for a reboot: the plan is done";
    supervisor.wait_for_text(asks, SOON);
    supervisor.wait_for_state("idle", SOON);
    assert_eq!(supervisor.status()["reboot"]["phase"], "idle");
    assert_eq!(supervisor.status()["iteration"], 1);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_real_client_without_the_bridge_has_its_tools_by_the_server() {
    let supervisor = live().set("agent.bridge=false").start();
    wait_for_tools(&supervisor, "mcp");
    keeps_a_fact(&supervisor, "mcp", "by the server");
    assert!(supervisor.notes().contains("- by the server"));
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_real_client_whose_agent_is_to_have_no_tools_has_none() {
    let launch = live().set("agent.tools=false");
    let supervisor = launch.start_idle();
    supervisor.prompt("go on");
    let calls = launch.api().wait_for_calls(1, SOON);
    assert_eq!(offered(&calls[0]), [""; 0]);
    assert_eq!(supervisor.status()["agent"]["tools"], "none");
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn flags_of_the_real_client_decide_how_it_has_its_tools_and_doctor_says_so() {
    for (flag, by, said) in [
        ("--safe-mode", "none", "none in this session"),
        ("--bare", "mcp", "by the MCP server"),
    ] {
        let launch = live().agent_args([flag]);
        let supervisor = launch.start_idle();
        wait_for_tools(&supervisor, by);
        let doctor = supervisor.run(&["doctor"]);
        let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
        assert!(text.contains(said), "{flag}: {text}");
        assert!(text.contains(&format!("{flag} keeps mods out")), "{text}");
        if by == "mcp" {
            prompt_until_offered(&supervisor);
        } else {
            supervisor.prompt("go on");
            supervisor.prompt("and again");
            let calls = launch.api().wait_for_calls(2, SOON);
            assert_eq!(offered(&calls[1]), [""; 0], "{flag}");
        }
    }
}

/// The real client below settings of an organization, which lie in a copy of `/etc` that this session alone sees.
pub fn managed(name: &str, settings: &Value) -> Launch {
    let launch = live();
    let copy = launch.the_home().path("etc");
    std::fs::create_dir_all(copy.join("claude-code")).expect("a directory");
    let file = copy.join("claude-code").join(name);
    std::fs::write(file, settings.to_string()).expect("written");
    let copy = copy.display();
    launch.after(&format!(
        "cp -r /etc/. {copy}/ 2>/dev/null; exec unshare -rm /bin/sh -c 'mount --bind {copy} /etc && exec \"$0\" \"$@\"' \"$0\" \"$@\""
    ))
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE and namespaces"]
fn managed_settings_that_keep_hooks_out_leave_the_server() {
    let settings = json!({ "allowManagedHooksOnly": true });
    let supervisor = managed("managed-settings.json", &settings).start();
    wait_for_tools(&supervisor, "mcp");
    let bridge = &supervisor.status()["agent"]["bridge"];
    assert_eq!(bridge["why"], "hooks_off", "{bridge}");
    let reason = bridge["reason"].as_str().unwrap_or_default();
    assert!(reason.starts_with("managed settings"), "{reason}");
}

/// With a list of servers that is managed the client ends at once if it is given another one.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE and namespaces"]
fn where_servers_are_managed_the_session_goes_on_without_ours() {
    let launch = managed("managed-mcp.json", &json!({"mcpServers": {}})).set("agent.bridge=false");
    let supervisor = launch.start_idle();
    supervisor.prompt("go on");
    let calls = launch.api().wait_for_calls(1, SOON);
    assert_eq!(offered(&calls[0]), [""; 0]);
    assert_eq!(supervisor.status()["agent"]["tools"], "none");
}

/// `pitstop mcp`, spoken to as a client does.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Server {
    fn start(launch: &Launch, args: &[&str]) -> Self {
        let mut child = launch
            .command(&[&["mcp"], args].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut server = Self {
            child,
            input,
            output,
            last: 0,
        };
        let hello = server.ask(
            "initialize",
            &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], "pitstop", "{hello}");
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").expect("it reads");
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let mut line = String::new();
        self.output.read_line(&mut line).expect("an answer");
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// What the tool says, and whether that is an error.
    fn call(&mut self, name: &str, input: &Value) -> (String, bool) {
        let answer = self.ask("tools/call", &json!({"name": name, "arguments": input}));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        (text.to_owned(), result["isError"] == true)
    }

    /// Closes its input; gives its exit code.
    fn end(self) -> Option<i32> {
        let Self {
            mut child, input, ..
        } = self;
        drop(input);
        child.wait().expect("it ends").code()
    }
}

#[test]
fn the_server_lists_the_tools_and_what_they_keep_is_in_the_scratchpad() {
    let supervisor = Launch::manual_demo("# Scratchpad\n").start_idle();
    let mut server = Server::start(&supervisor.launch, &["--iteration", "1"]);
    let listed = server.ask("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().expect("tools");
    let mut names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, NAMES);

    let fact = json!({ "text": "the staging port is 7000" });
    assert_eq!(server.call("note", &fact), ("kept".to_owned(), false));
    assert_eq!(server.call("note", &fact).0, "known already");
    let kept = || supervisor.notes().matches("port is 7000").count() == 1;
    supervisor.wait_until("the note is in the file", kept);
    let (error, is_error) = server.call("note", &json!({}));
    assert!(is_error && error.contains("text"), "{error}");
    let unknown = server.ask("tools/call", &json!({"name": "../control/approve"}));
    assert!(unknown["error"]["message"].is_string(), "{unknown}");

    let mut earlier = Server::start(&supervisor.launch, &["--iteration", "7"]);
    let (error, is_error) = earlier.call("note", &json!({ "text": "from there" }));
    assert!(is_error && error.contains("has been left"), "{error}");
    assert_eq!((server.end(), earlier.end()), (Some(0), Some(0)));
}

#[test]
fn the_server_without_a_supervisor_says_so_to_the_agent() {
    let launch = Launch::quiet_demo();
    let mut server = Server::start(&launch, &[]);
    let (error, is_error) = server.call("note", &json!({ "text": "x" }));
    assert!(
        is_error && error.starts_with("pitstop does not answer"),
        "{error}"
    );
    assert_eq!(server.end(), Some(0));
}
