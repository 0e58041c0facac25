//! The page in a real browser, headless Chromium, beside the real client: it pairs, looks and decides.
//!
//! The browser is driven by `chromedriver` (`PITSTOP_CHROMEDRIVER`, of Debian's `chromium-driver`). `PITSTOP_TEST_PICTURES` names a
//! directory for what it shows.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    attach::call,
    autopilot::run_of,
    kit::{
        messages_api::{Answer, user_texts},
        poll,
        supervisor::{Launch, SOON, Supervisor},
    },
    permission::yes_at_the_desk,
};

/// A browser of its own profile.
struct Browser {
    driver: Child,
    session: String,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = ureq::delete(&self.session).call();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

impl Browser {
    /// A browser with a screen of this size in CSS pixels, as a phone has it.
    fn start(profile: &Path, (width, height): (u32, u32)) -> Self {
        let program = std::env::var_os("PITSTOP_CHROMEDRIVER").expect("PITSTOP_CHROMEDRIVER");
        let mut driver = Command::new(program)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .spawn()
            .expect("chromedriver");
        let said = BufReader::new(driver.stdout.take().expect("a pipe"));
        let port = said.lines().find_map(|line| {
            let line = line.ok()?;
            let (_, port) = line.split_once("successfully on port ")?;
            Some(port.trim_end_matches('.').to_owned())
        });
        let sessions = format!("http://127.0.0.1:{}/session", port.expect("a port"));
        let options = json!({
            "args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage",
                     format!("--user-data-dir={}", profile.display())],
            "mobileEmulation": {"deviceMetrics": {"width": width, "height": height, "pixelRatio": 2}},
        });
        let wanted = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}});
        let begun = post(&sessions, &wanted);
        let id = begun["sessionId"].as_str().expect("a session");
        Self {
            driver,
            session: format!("{sessions}/{id}"),
        }
    }

    fn open(&self, url: &str) {
        post(&format!("{}/url", self.session), &json!({"url": url}));
    }

    /// What a script of the page returns.
    fn run(&self, script: &str) -> Value {
        let body = json!({"script": script, "args": []});
        post(&format!("{}/execute/sync", self.session), &body)
    }

    fn text(&self) -> String {
        let text = self.run("return document.body.innerText");
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the page shows this.
    #[track_caller]
    fn wait_for(&self, text: &str) {
        poll::until_true(
            SOON,
            || self.text().contains(text),
            || format!("waited for {text:?} in vain; the page:\n{}", self.text()),
        );
    }

    /// Presses the button of this name that is in sight: in a dialog, if one is open.
    #[track_caller]
    fn press(&self, name: &str) {
        let script = format!(
            "const all = [...(document.querySelector('dialog[open]') ?? document).querySelectorAll('button')];
             const found = all.find(one => one.textContent.trim() === {name:?} && one.offsetParent && !one.disabled);
             found?.click();
             return Boolean(found)"
        );
        poll::until_true(
            SOON,
            || self.run(&script) == true,
            || format!("no button {name:?} in sight; the page:\n{}", self.text()),
        );
    }

    /// Types into the field of this id, as a person does who replaces what is there.
    fn fill(&self, id: &str, text: &str) {
        self.run(&format!(
            "const field = document.getElementById({id:?});
             field.focus();
             field.value = {text:?};
             field.dispatchEvent(new Event('input', {{ bubbles: true }}))"
        ));
    }

    /// Says something to the agent.
    #[track_caller]
    fn say(&self, text: &str) {
        self.fill("say", text);
        self.press("Say");
    }

    /// Keeps what is shown as a picture, where pictures are wanted.
    fn picture(&self, name: &str) {
        let Some(place) = std::env::var_os("PITSTOP_TEST_PICTURES") else {
            return;
        };
        let url = format!("{}/screenshot", self.session);
        let answer = ureq::get(&url).call().expect("a picture");
        let shown: Value = read(answer);
        let png = STANDARD.decode(shown["value"].as_str().expect("base64"));
        fs::write(Path::new(&place).join(name), png.expect("base64")).expect("a file");
    }
}

fn post(url: &str, body: &Value) -> Value {
    let request = ureq::post(url).content_type("application/json");
    let request = request.config().http_status_as_error(false).build();
    let answer = request.send(body.to_string());
    let mut said = read(answer.unwrap_or_else(|error| panic!("{url}: {error}")));
    assert!(said["value"]["error"].is_null(), "{body}: {said:#}");
    said["value"].take()
}

fn read(mut answer: ureq::http::Response<ureq::Body>) -> Value {
    let text = answer.body_mut().read_to_string().expect("an answer");
    serde_json::from_str(&text).expect("JSON")
}

/// The address that `pitstop phone` shows, with its code.
fn pairing(pitstop: &Supervisor, listen: &str) -> String {
    let launch = &pitstop.launch;
    let args = ["--set", listen, "phone"];
    let terminal = call(launch, launch.project(), (120, 60), &args);
    let shown = terminal.wait_for(|text| text.contains("/#"), SOON);
    let address = shown.split_whitespace().find(|word| word.contains("/#"));
    let address = address.expect("an address").to_owned();
    // It waits for the device; the code is good without it.
    std::mem::forget(terminal);
    address
}

/// A session with the page at an address of its own, and the setting of that.
fn with_page(launch: Launch) -> (Supervisor, String) {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("an address");
    drop(free);
    let listen = format!("api.listen=\"{address}\"");
    (launch.set(&listen).start(), listen)
}

/// Pairs a browser by the address that is shown, and opens the one session that it lists.
fn paired(pitstop: &Supervisor, listen: &str, size: (u32, u32)) -> Browser {
    let profile = pitstop
        .launch
        .the_home()
        .path(&format!("browser-{}", size.0));
    let browser = Browser::start(&profile, size);
    browser.open(&pairing(pitstop, listen));
    browser.wait_for("Pair this device");
    browser.press("Pair this device");
    browser.wait_for("Sessions");
    poll::until_true(
        SOON,
        || {
            browser.run("const card = document.querySelector('#cards a'); card?.click(); return Boolean(card)") == true
        },
        || format!("no session is listed; the page:\n{}", browser.text()),
    );
    browser.wait_for("Context");
    assert!(
        !browser
            .run("return location.hash")
            .to_string()
            .contains("code")
    );
    browser
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE and PITSTOP_CHROMEDRIVER"]
fn a_phone_decides_beside_the_real_client() {
    let (pitstop, listen) = with_page(Launch::live());
    pitstop.wait_for_state("idle", SOON);
    let browser = paired(&pitstop, &listen, (360, 800));
    let made = pitstop.launch.project().join("made");
    let api = pitstop.launch.api();

    // A prompt from afar, and a permission that it leads to.
    api.answer([Answer::shell("touch made"), Answer::text("It is made.")]);
    browser.say("make it");
    browser.wait_for("touch made");
    browser.picture("permission.png");
    browser.press("Allow");
    browser.wait_for("Allow Bash?");
    browser.press("Allow");
    pitstop.wait_until("the file", || made.exists(), SOON);
    browser.wait_for("It is made.");
    browser.wait_for("idle");

    // A no; and a dialog that is answered at the desk goes from the page.
    api.answer([Answer::shell("touch no"), Answer::text("Then not.")]);
    browser.say("once more");
    browser.wait_for("touch no");
    browser.press("Deny");
    browser.wait_for("Then not.");
    assert!(!pitstop.launch.project().join("no").exists());
    api.answer([Answer::shell("touch desk"), Answer::text("By the desk.")]);
    browser.wait_for("idle");
    browser.say("the desk");
    browser.wait_for("touch desk");
    yes_at_the_desk(&pitstop, &pitstop.launch.project().join("desk"));
    browser.wait_for("By the desk.");
    poll::until_true(SOON, || !browser.text().contains("Deny"), || browser.text());

    // A reboot with an edited handoff.
    browser.wait_for("idle");
    browser.press("Reboot now");
    browser.press("Reboot now");
    browser.wait_for("Review");
    browser.press("Edit");
    let edited = || browser.run("return document.getElementById('edited').value");
    let is_loaded = || {
        edited()
            .as_str()
            .is_some_and(|text| text.contains("Objective"))
    };
    poll::until_true(SOON, is_loaded, || browser.text());
    browser.fill("edited", "# Mine\n\nThe tide turns at noon.");
    browser.picture("review.png");
    api.answer([Answer::text("I go on.")]);
    browser.press("Approve with my edit");
    pitstop.wait_for_iteration(2, SOON);
    browser.wait_for("iteration 2");
    let sent = || {
        let calls = api.main_calls();
        let texts = calls.iter().flat_map(user_texts);
        texts
            .into_iter()
            .any(|text| text.contains("The tide turns at noon."))
    };
    pitstop.wait_until("the edited handoff", sent, SOON);
    let history = pitstop.run(&["history", "--json"]);
    let history = String::from_utf8_lossy(&history.stdout).into_owned();
    assert!(history.contains("approved_from"), "{history}");

    browser.press("Stop");
    browser.press("Stop it");
    pitstop.wait_for_exit(SOON);
    // The session served the page itself.
    browser.wait_for("not live");
}

#[test]
#[ignore = "live: needs PITSTOP_CHROMEDRIVER"]
fn a_desktop_browser_watches_a_run_pauses_and_resumes_it() {
    let launch = run_of("Build tidepool with care").env("PITSTOP_DEMO_PACE_MS", "300");
    let (pitstop, listen) = with_page(launch);
    pitstop.wait_for_status(|status| status["run"]["phase"] == "working", SOON);
    let browser = paired(&pitstop, &listen, (1280, 800));
    browser.wait_for("Run");
    browser.press("Pause the run");
    pitstop.wait_for_status(|status| status["run"]["phase"] == "paused", SOON);
    browser.wait_for("paused");
    browser.picture("run.png");
    browser.press("Resume the run");
    pitstop.wait_for_status(|status| status["run"]["phase"] == "working", SOON);
    pitstop.ctl("stop");
}
