//! The page in a real browser, headless Chromium, beside the real client: it pairs, looks and decides.
//!
//! The browser is driven by `chromedriver` (`PITSTOP_CHROMEDRIVER`, of Debian's `chromium-driver`). Each state of the page is examined
//! by axe-core (`PITSTOP_AXE`, its `axe.min.js`). `PITSTOP_TEST_PICTURES` names a directory for what it shows.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use pitstop_server::phone::devices::{DeviceRight, DeviceStore, Moment};
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

mod hours;
mod staged;

/// The screen of a phone, in CSS pixels.
const PHONE: (u32, u32) = (360, 800);

/// The window of a desktop's browser.
const DESKTOP: (u32, u32) = (1280, 800);

/// A browser of its own profile.
struct Browser {
    driver: Child,
    session: String,
    size: (u32, u32),
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = ureq::delete(&self.session).call();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

impl Browser {
    /// A browser with a screen of this size.
    fn start(profile: &Path, size: (u32, u32)) -> Self {
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
        });
        let wanted = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}});
        let begun = post(&sessions, &wanted);
        let id = begun["sessionId"].as_str().expect("a session");
        let browser = Self {
            driver,
            session: format!("{sessions}/{id}"),
            size,
        };
        browser.appear(size, "light");
        browser
    }

    /// Gives an order to the browser's own tools for developers, and returns its answer.
    fn tools(&self, command: &str, params: &Value) -> Value {
        let body = json!({"cmd": command, "params": params});
        post(&format!("{}/goog/cdp/execute", self.session), &body)
    }

    /// Shows the page on a screen of this size, in this scheme of colours.
    fn appear(&self, (width, height): (u32, u32), scheme: &str) {
        let is_phone = (width, height) == PHONE;
        let screen =
            json!({"width": width, "height": height, "deviceScaleFactor": 2, "mobile": is_phone});
        self.tools("Emulation.setDeviceMetricsOverride", &screen);
        let touch = json!({"enabled": is_phone});
        self.tools("Emulation.setTouchEmulationEnabled", &touch);
        let wanted = json!({"name": "prefers-color-scheme", "value": scheme});
        let media = json!({"features": [wanted]});
        self.tools("Emulation.setEmulatedMedia", &media);
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

    /// Examines what is shown on a phone and on a desktop, dark and light: none of it may keep a person out.
    #[track_caller]
    fn inspect(&self, name: &str) {
        let axe = std::env::var_os("PITSTOP_AXE").expect("PITSTOP_AXE");
        let axe = fs::read_to_string(axe).expect("the text of axe-core");
        let script = format!("{axe}\nreturn window.axe.run({{ resultTypes: ['violations'] }})");
        for size in [PHONE, DESKTOP] {
            for scheme in ["light", "dark"] {
                self.appear(size, scheme);
                let shown = format!("{name}-{}-{scheme}", size.0);
                self.picture(&shown);
                let found = self.run(&script)["violations"].take();
                let found = found.as_array().expect("a list").iter();
                let grave: Vec<_> = found
                    .filter(|one| one["impact"] == "serious" || one["impact"] == "critical")
                    .collect();
                assert!(grave.is_empty(), "{shown}: {grave:#?}");
                let fits = "const page = document.documentElement; return page.scrollWidth <= page.clientWidth";
                assert_eq!(self.run(fits), true, "{shown} can be moved sideways");
            }
        }
        self.appear(self.size, "light");
    }

    /// Keeps the whole page as a picture, where pictures are wanted.
    fn picture(&self, name: &str) {
        let Some(place) = std::env::var_os("PITSTOP_TEST_PICTURES") else {
            return;
        };
        self.run("scrollTo(0, 0)");
        let all = json!({"captureBeyondViewport": true});
        let shown = self.tools("Page.captureScreenshot", &all);
        let png = STANDARD.decode(shown["data"].as_str().expect("base64"));
        let file = Path::new(&place).join(format!("{name}.png"));
        fs::write(file, png.expect("base64")).expect("a file");
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
fn pairing(pitstop: &Supervisor) -> String {
    let launch = &pitstop.launch;
    let terminal = call(launch, launch.project(), (120, 60), &["phone"]);
    let shown = terminal.wait_for(|text| text.contains("/#"), SOON);
    let address = shown.split_whitespace().find(|word| word.contains("/#"));
    let address = address.expect("an address").to_owned();
    // It waits for the device; the code is good without it.
    std::mem::forget(terminal);
    address
}

/// A session with the page at an address of its own, which only it knows.
fn with_page(launch: Launch) -> Supervisor {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("an address");
    drop(free);
    launch.set(&format!("api.listen=\"{address}\"")).start()
}

/// A browser at the address that is shown for pairing.
fn opened(pitstop: &Supervisor, size: (u32, u32)) -> Browser {
    let browser = Browser::start(&pitstop.launch.the_home().path("browser"), size);
    browser.open(&pairing(pitstop));
    browser.wait_for("Name of this device");
    browser
}

/// Pairs a browser, which then lists the one session.
fn pair(browser: &Browser) {
    browser.press("Pair this device");
    browser.wait_for("nothing waits for you");
    let hash = browser.run("return location.hash");
    assert_eq!(hash, "", "the code is not in the address any more");
}

/// Opens the one session that is listed.
fn enter(browser: &Browser) {
    browser.run("document.querySelector('#cards a').click()");
    browser.wait_for("Context");
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE, PITSTOP_CHROMEDRIVER and PITSTOP_AXE"]
fn a_phone_decides_beside_the_real_client() {
    let pitstop = with_page(Launch::live());
    pitstop.wait_for_state("idle", SOON);
    let browser = opened(&pitstop, PHONE);
    browser.inspect("pairing");
    pair(&browser);
    browser.inspect("sessions");
    enter(&browser);
    let made = pitstop.launch.project().join("made");
    let api = pitstop.launch.api();

    // A prompt from afar, and a permission that it leads to.
    api.answer([Answer::shell("touch made"), Answer::text("It is made.")]);
    browser.say("make it");
    browser.wait_for("touch made");
    browser.inspect("permission");
    browser.run("location.hash = '#/'");
    browser.wait_for("1 of 1 session waits for you");
    browser.inspect("waiting");
    enter(&browser);
    browser.wait_for("touch made");
    browser.press("Allow");
    browser.wait_for("Allow Bash?");
    browser.inspect("question");
    browser.press("Allow");
    pitstop.wait_until("the file", || made.exists());
    browser.wait_for("It is made.");
    browser.wait_for("idle");
    browser.inspect("session");

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
    browser.inspect("review");
    browser.press("Edit");
    let edited = || browser.run("return document.getElementById('edited').value");
    let is_loaded = || {
        edited()
            .as_str()
            .is_some_and(|text| text.contains("Objective"))
    };
    poll::until_true(SOON, is_loaded, || browser.text());
    browser.fill("edited", "# Mine\n\nThe tide turns at noon.");
    browser.inspect("edit");
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
    pitstop.wait_until("the edited handoff", sent);
    let history = pitstop.run(&["history", "--json"]);
    let history = String::from_utf8_lossy(&history.stdout).into_owned();
    assert!(history.contains("approved_from"), "{history}");

    browser.press("Stop");
    browser.press("Stop it");
    pitstop.wait_for_exit(SOON);
    // The session served the page itself.
    browser.wait_for("not live");
    browser.inspect("ended");
}

#[test]
#[ignore = "live: needs PITSTOP_CHROMEDRIVER and PITSTOP_AXE"]
fn a_desktop_browser_watches_a_run_pauses_and_resumes_it() {
    let launch = run_of("Build tidepool with care").env("PITSTOP_DEMO_PACE_MS", "300");
    let pitstop = with_page(launch);
    pitstop.wait_for_status(|status| status["run"]["phase"] == "working");
    let browser = opened(&pitstop, DESKTOP);
    pair(&browser);
    enter(&browser);
    browser.wait_for("Run");
    browser.press("Pause the run");
    pitstop.wait_for_status(|status| status["run"]["phase"] == "paused");
    browser.wait_for("paused by Linux");
    browser.inspect("run");
    browser.press("Resume the run");
    pitstop.wait_for_status(|status| status["run"]["phase"] == "working");

    // Another device stays, because where nobody is paired there is no page.
    let store = DeviceStore::new(&pitstop.launch.the_home().path("state/pitstop"));
    let code = store.open_pairing(DeviceRight::Watch, Moment::now());
    let paired = store.pair(&code.expect("a code"), "another", Moment::now());
    assert!(paired.is_ok());
    let revoked = pitstop.run(&["phone", "revoke", "Linux"]);
    assert!(revoked.status.success(), "{revoked:?}");
    browser.wait_for("This device is not paired any more");
    browser.inspect("revoked");
    pitstop.ctl("stop");
}
