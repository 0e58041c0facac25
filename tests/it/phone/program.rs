//! The page of the whole program: `pitstop phone`, and which supervisor has the port.

use std::{collections::BTreeSet, net::TcpListener};

use super::*;
use crate::{
    attach::call,
    kit::{
        home::Home,
        supervisor::{Launch, SOON, Supervisor, key},
    },
};

/// An address of this machine that nobody listens on.
pub fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address")
}

pub fn store_of(home: &Home) -> DeviceStore {
    DeviceStore::new(&home.path("state/pitstop"))
}

pub fn listening_at(launch: Launch, address: SocketAddr) -> Launch {
    launch.set(&format!("api.listen=\"{address}\""))
}

/// A request of the page at this address; an answer with status 0 if there is none.
pub fn send(
    address: SocketAddr,
    method: &str,
    target: &str,
    more: impl Fn(Request) -> Request,
) -> Answer {
    let request = Request::new(method, target).header("Host", &address.to_string());
    let request = request.header("Content-Type", "application/json");
    match TcpStream::connect(address) {
        Ok(stream) => more(request).send(stream),
        Err(_) => Answer {
            status: 0,
            head: String::new(),
            body: String::new(),
        },
    }
}

pub fn paired(address: SocketAddr, code: &str, name: &str) -> Device {
    let body = json!({"code": code, "name": name}).to_string();
    Device::of(&send(address, "POST", "/phone/pair", |request| {
        request.body(&body)
    }))
}

/// The ports on which a process listens.
fn ports_of(pitstop: &Supervisor) -> BTreeSet<String> {
    let pid = pitstop.pid().as_raw_nonzero();
    let links = fs::read_dir(format!("/proc/{pid}/fd")).expect("its descriptors");
    let sockets: BTreeSet<String> = links
        .filter_map(|link| fs::read_link(link.ok()?.path()).ok())
        .filter_map(|target| Some(target.to_str()?.strip_prefix("socket:[")?.replace(']', "")))
        .collect();
    let table = fs::read_to_string(format!("/proc/{pid}/net/tcp")).expect("its ports");
    let rows = table
        .lines()
        .skip(1)
        .map(|row| row.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row[3] == "0A" && sockets.contains(row[9]))
        .map(|row| row[1].to_owned())
        .collect()
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_listens_where_nobody_is_paired() {
    let pitstop = Launch::quiet_demo().start_idle();
    assert_eq!(ports_of(&pitstop), BTreeSet::new());
}

#[test]
fn a_person_pairs_lists_and_revokes_a_device() {
    let address = free_address();
    let launch = listening_at(Launch::quiet_demo(), address);
    let pitstop = launch.start_idle();
    assert_eq!(send(address, "GET", "/", |request| request).status, 404);
    // The address is known to the session alone.
    let phone = |more: &[&str]| {
        let args = [&["phone"], more].concat();
        call(&launch, launch.project(), (140, 50), &args)
    };
    let code_of = |shown: &str| {
        let start = format!("http://{address}/#");
        let (_, rest) = shown.split_once(&start).expect("an address");
        rest.chars()
            .take_while(char::is_ascii_hexdigit)
            .collect::<String>()
    };
    let terminal = phone(&[]);
    let shown = terminal.wait_for_text("It works once", SOON);
    assert!(
        shown.contains('▀') && !shown.contains("No session"),
        "{shown}"
    );
    let device = paired(address, &code_of(&shown), "My phone");
    let exit = terminal.wait_for_exit(SOON);
    assert!(
        terminal
            .screen_text()
            .contains("paired My phone: it may decide")
    );
    assert_eq!(exit.code, 0);

    let sessions = || {
        send(address, "GET", "/phone/sessions", |request| {
            device.sign(request)
        })
    };
    let list = sessions().json();
    let project = list["sessions"][0]["project"].as_str().expect("a project");
    assert_eq!(Path::new(project), launch.project());
    let id = list["sessions"][0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let events = format!("/phone/sessions/{id}/events");
    let request = device.sign(Request::new("GET", &events).header("Host", &address.to_string()));
    let mut events = request.listen(address);
    read_until(&mut events, "event: status");
    let order = format!("/phone/sessions/{id}/pause");
    let paused = send(address, "POST", &order, |request| {
        device.sign(request).body("{}")
    });
    assert_eq!(paused.status, 202, "{paused:?}");
    read_until(&mut events, "event: mode");

    let run = |args: &[&str]| {
        let output = pitstop.run(args);
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let listed: Value = serde_json::from_str(&run(&["phone", "list", "--json"]).1).expect("JSON");
    assert_eq!(listed["devices"][0]["name"], "My phone");
    assert_eq!(
        listed["devices"][0].as_object().expect("an object").len(),
        4
    );
    assert!(run(&["phone", "list"]).1.contains("My phone  decide"));
    assert_eq!(run(&["phone", "revoke", "nobody"]).0, Some(1));
    assert_eq!(
        run(&["phone", "revoke", "My phone"]),
        (Some(0), "revoked My phone\n".to_owned())
    );
    events.read_to_end(&mut Vec::new()).expect("the events end");
    assert_eq!(sessions().status, 404);

    let terminal = phone(&["--watch"]);
    let code = code_of(&terminal.wait_for_text("may look.", SOON));
    terminal.send(key::CTRL_C);
    assert_eq!(terminal.wait_for_exit(SOON).code, 130);
    let store = store_of(launch.the_home());
    assert!(!store.waits(&code, Moment::now()).expect("it can be read"));
    assert!(!store.is_active(Moment::now()));
}

#[test]
fn another_session_takes_the_port_over_when_the_first_ends() {
    let address = free_address();
    let launch = listening_at(Launch::quiet_demo(), address);
    let home = launch.the_home();
    let other = home.path("other");
    fs::create_dir(&other).expect("a directory");
    let first = launch.start_idle();
    let second = listening_at(Launch::quiet_demo(), address)
        .home(home)
        .in_directory(&other);
    let _second = second.start_idle();
    let code = store_of(home).open_pairing(DeviceRight::Watch, Moment::now());
    let device = paired(address, &code.expect("a code"), "phone");
    let count = || {
        let answer = send(address, "GET", "/phone/sessions", |request| {
            device.sign(request)
        });
        let sessions = (answer.status == 200).then(|| answer.json()["sessions"].clone())?;
        Some(sessions.as_array()?.len())
    };
    assert_eq!(count(), Some(2));
    assert!(first.run(&["stop"]).status.success());
    poll::until_true(
        SOON,
        || count() == Some(1),
        || "the port stays closed".to_owned(),
    );
}
