//! Permissions that the real client asks for, answered from afar while its dialog stands.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use pitstop_server::phone::devices::{DeviceRight, DeviceStore, Moment};
use serde_json::{Value, json};

use crate::kit::{
    messages_api::Answer,
    poll,
    supervisor::{Launch, SOON, Supervisor, processes_of},
};

/// The real client, whose dialog about a command that makes a file is open.
fn asking(launch: &Launch) -> (Supervisor, PathBuf, Value) {
    let made = launch.project().join("made");
    launch
        .api()
        .answer([Answer::shell("touch made"), Answer::text("That is all.")]);
    let pitstop = launch.start_idle();
    pitstop.prompt("make it");
    let status = pitstop.wait_for_status(|status| status["needs"][0]["kind"] == "permission");
    pitstop.wait_for_text("touch made", SOON);
    (pitstop, made, status["needs"][0].clone())
}

/// The real client on a machine on which a device is paired that may decide.
fn paired() -> Launch {
    let launch = Launch::live();
    let store = DeviceStore::new(&launch.the_home().path("state/pitstop"));
    let now = Moment::now();
    let code = store
        .open_pairing(DeviceRight::Decide, now)
        .expect("a code");
    store.pair(&code, "Pixel", now).expect("a device");
    launch
}

/// Answers the dialog at the desk. It is drawn a moment after its hook has come; Enter in the empty prompt box before does nothing.
pub fn yes_at_the_desk(pitstop: &Supervisor, made: &Path) {
    let is_made = || {
        pitstop.keys(["\r"]);
        poll::within(Duration::from_secs(2), || made.exists())
    };
    pitstop.wait_until("the file", is_made);
}

fn decide(pitstop: &Supervisor, need: &Value, answer: &str) -> (Option<i32>, String) {
    let body = json!({"id": need["id"], "answer": answer}).to_string();
    let output = pitstop.run(&["api", "POST", "/control/permission", "--data", &body]);
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_client_takes_a_yes_from_afar_while_its_dialog_stands() {
    let (pitstop, made, need) = asking(&paired());
    assert_eq!(
        (&need["tool"], &need["answerable"]),
        (&"Bash".into(), &true.into())
    );
    let shown = pitstop.run(&["api", "GET", "/permission"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(
        (&shown["input"], &shown["id"]),
        (&"touch made".into(), &need["id"])
    );
    let screen = pitstop.run(&["api", "GET", "/screen"]);
    assert!(String::from_utf8_lossy(&screen.stdout).contains("touch made"));
    let (code, said) = decide(&pitstop, &need, "allow");
    assert_eq!(code, Some(0), "{said}");
    pitstop.wait_until("the file", || made.exists());
    pitstop.wait_for_text("That is all.", SOON);
    pitstop.wait_for_state("idle", SOON);
    assert_eq!(pitstop.status()["needs"], json!([]));
    let (code, said) = decide(&pitstop, &need, "deny");
    assert_eq!(code, Some(1), "{said}");
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_client_takes_a_no_from_afar_and_goes_on_with_it() {
    let (pitstop, made, need) = asking(&paired());
    let (code, said) = decide(&pitstop, &need, "deny");
    assert_eq!(code, Some(0), "{said}");
    pitstop.wait_for_text("That is all.", SOON);
    pitstop.wait_for_state("idle", SOON);
    assert!(!made.exists());
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn an_answer_at_the_desk_comes_first_and_one_from_afar_is_refused_then() {
    let (pitstop, made, need) = asking(&paired());
    yes_at_the_desk(&pitstop, &made);
    pitstop.wait_for_status(|status| status["needs"][0]["answerable"] != true);
    let (code, said) = decide(&pitstop, &need, "deny");
    assert_eq!(code, Some(1), "{said}");
    pitstop.wait_for_text("That is all.", SOON);
    pitstop.wait_for_state("idle", SOON);
    // No hook is left behind.
    let left = || {
        let all = processes_of(pitstop.launch.the_home());
        all.into_iter()
            .filter(|one| one.command.contains("hook"))
            .count()
    };
    pitstop.wait_until("no hook", || left() == 0);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn with_no_device_that_decides_the_dialog_is_the_desk_s_alone() {
    let (pitstop, made, need) = asking(&Launch::live());
    assert_eq!(need["answerable"], false);
    let (code, said) = decide(&pitstop, &need, "allow");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("at the desk only"), "{said}");
    yes_at_the_desk(&pitstop, &made);
}
