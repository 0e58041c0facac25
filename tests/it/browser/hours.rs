//! A page that is open for a working day, in less than a minute.

use std::time::{Duration, Instant};

use pitstop_server::client::ApiClient;

use super::*;
use crate::night::rests;

/// How much faster than ours the clock of the page is.
const SPEED: u32 = 600;

/// When the memory is looked at first, and last, by the clock of the page.
const HOURS: [u64; 2] = [2, 8];

/// Has the page live at that speed: its timers, and its clock.
const FAST: &str = "
    const start = Date.now(), now = Date.now, later = setTimeout, every = setInterval;
    Date.now = () => start + (now() - start) * SPEED;
    window.setTimeout = (work, ms = 0) => later(work, ms / SPEED);
    window.setInterval = (work, ms) => every(work, ms / SPEED);
    window.opened = 0;
    const real = window.fetch;
    window.fetch = (path, options) => {
        if (path.endsWith('/events')) window.opened += 1;
        return real(path, options);
    };";

impl Browser {
    /// What the page takes: its heap in KiB after a collection, its nodes and its listeners.
    fn taken(&self) -> [u64; 3] {
        self.tools("HeapProfiler.collectGarbage", &json!({}));
        let figures = self.tools("Performance.getMetrics", &json!({}));
        let figures = figures["metrics"].as_array().expect("a list");
        ["JSHeapUsedSize", "Nodes", "JSEventListeners"].map(|name| {
            let figure = figures.iter().find(|one| one["name"] == name);
            let value = figure.and_then(|one| one["value"].as_f64());
            let value = value.unwrap_or_else(|| panic!("{name} in {figures:?}"));
            if name == "JSHeapUsedSize" {
                value as u64 / 1024
            } else {
                value as u64
            }
        })
    }
}

/// What happens comes in five minutes of ten. In the others a phone sleeps: the signs of life are ten seconds apart by our clock, and so
/// the page takes each connection for one that has died, and begins another one.
#[test]
#[ignore = "live: needs PITSTOP_CHROMEDRIVER"]
fn a_page_that_is_open_for_eight_hours_takes_no_more_memory_on_either_side() {
    let pitstop = with_page(Launch::quiet_demo());
    pitstop.wait_for_state("idle", SOON);
    let browser = opened(&pitstop, DESKTOP);
    pair(&browser);
    browser.tools("Performance.enable", &json!({}));
    let fast = FAST.replace("SPEED", &SPEED.to_string());
    let fast = json!({"source": fast});
    browser.tools("Page.addScriptToEvaluateOnNewDocument", &fast);
    browser.run("location.reload()");
    browser.wait_for("nothing waits for you");
    enter(&browser);
    browser.run("document.getElementById('handoff-part').open = true");

    let run = pitstop.launch.the_home().path("state/pitstop/run");
    let mut files = fs::read_dir(run).expect("a directory").flatten();
    let file = files.find(|file| file.path().extension().is_some_and(|one| one == "control"));
    let session = ApiClient::from_file(&file.expect("a session").path()).expect("its socket");
    let began = Instant::now();
    let mut events = 0;
    let measured = HOURS.map(|hour| {
        loop {
            let at = (began.elapsed() * SPEED).as_secs();
            if at >= 3600 * hour {
                break;
            }
            std::thread::park_timeout(Duration::from_millis(2));
            if at % 600 > 300 {
                continue;
            }
            let order = ["/control/pause", "/control/resume"][events % 2];
            let answer = session.post(order, b"{}", Instant::now() + SOON);
            assert_eq!(answer.expect("an answer").status, 202);
            events += 1;
        }
        let server = rests(pitstop.pid()).expect("its figures");
        let page = browser.taken();
        let opened = browser.run("return window.opened");
        println!("{hour} h: {events} events, {opened} connections, {server:?}, page {page:?}");
        (server, page, opened.as_u64().expect("a number"))
    });
    let [(server, page, _), (server_after, page_after, opened)] = measured;
    assert!(
        events > 1_000 && opened > 200,
        "{events} events, {opened} connections"
    );
    let is_flat = |before: u64, after: u64| after <= before + before / 10;
    assert!(is_flat(server.memory, server_after.memory), "{measured:?}");
    assert!(
        server_after.descriptors <= server.descriptors + 8,
        "{measured:?}"
    );
    for (before, after) in page.into_iter().zip(page_after) {
        assert!(is_flat(before, after), "{measured:?}");
    }
}
