//! The page beside a machine that the test makes up: its answers come late, or are another supervisor's.

use super::*;

const MACHINE: &str = "
    if (location.protocol !== 'about:') localStorage.setItem('pitstop-key', 'first');
    window.late = 0;
    window.machine = { project: '/p/one', needs: [], reboot: { phase: 'idle' }, agent: { state: 'busy' } };
    window.replies = { permission: { id: 1, tool: 'Bash', input: 'ls -la' } };
    const bytes = new TextEncoder();
    window.fetch = async (path, { headers }) => {
        if (headers['X-Pitstop-Key'] === window.refused) return new Response('{}', { status: 401 });
        const what = path.split('/').pop();
        const stream = { start(to) {
            window.tell = (kind, data) => to.enqueue(bytes.encode('event: ' + kind + '\\ndata: ' + JSON.stringify(data) + '\\n\\n'));
            window.tell('status', window.machine);
        } };
        if (what === 'events') return new Response(new ReadableStream(stream));
        const list = { right: 'decide', sessions: [{ id: 'one', project: '/p/one', status: window.machine }] };
        const said = JSON.stringify(what === 'sessions' ? list : what === 'status' ? window.machine : replies[what] ?? {});
        await new Promise(sent => setTimeout(sent, window.late));
        return new Response(said);
    };";

/// A browser that shows the one session of that machine.
fn staged() -> (Supervisor, Browser) {
    let pitstop = with_page(Launch::quiet_demo());
    let browser = opened(&pitstop, PHONE);
    pair(&browser);
    let machine = json!({"source": MACHINE});
    browser.tools("Page.addScriptToEvaluateOnNewDocument", &machine);
    browser.run("history.replaceState(null, '', '#/one'); location.reload()");
    browser.wait_for("Context");
    (pitstop, browser)
}

#[test]
#[ignore = "live: needs PITSTOP_CHROMEDRIVER"]
fn the_same_number_of_another_supervisor_is_another_permission() {
    let (_pitstop, browser) = staged();
    for (since, input) in [("10", "ls -la"), ("11", "rm -rf build")] {
        browser.run(&format!(
            "replies.permission.input = '{input}';
             machine.needs = [{{ kind: 'permission', id: 1, since: '2026-11-30T{since}:00:00Z', tool: 'Bash', answerable: true }}];
             tell('status', machine)"
        ));
        browser.wait_for(input);
    }
}

#[test]
#[ignore = "live: needs PITSTOP_CHROMEDRIVER"]
fn a_change_while_an_answer_is_on_its_way_is_shown() {
    let (_pitstop, browser) = staged();
    browser.run(
        "late = 500; tell('turn', {});
         setTimeout(() => { machine.reboot.phase = 'review'; tell('turn', {}) }, 200)",
    );
    browser.wait_for("Review");
}

#[test]
#[ignore = "live: needs PITSTOP_CHROMEDRIVER"]
fn a_clock_that_is_set_back_delays_nothing() {
    let (_pitstop, browser) = staged();
    browser.run("machine.objective = 'first'; tell('turn', {})");
    browser.wait_for("first");
    browser.run(
        "const now = Date.now; Date.now = () => now() - 3_600_000;
         machine.reboot.phase = 'review'; tell('turn', {})",
    );
    browser.wait_for("Review");
}

#[test]
#[ignore = "live: needs PITSTOP_CHROMEDRIVER"]
fn a_tab_with_an_older_key_leaves_the_newer_one() {
    let (_pitstop, browser) = staged();
    browser
        .run("localStorage.setItem('pitstop-key', 'second'); refused = 'first'; tell('turn', {})");
    browser.wait_for("paired again in another tab");
    let key = browser.run("return localStorage.getItem('pitstop-key')");
    assert_eq!(key, "second");
}

/// Has the page lose the answers to what is named in `lost`, keeps what it sends in `sent`, and has no session while `gone`.
const ROAD: &str = "
    window.lost = []; window.sent = []; window.gone = false;
    replies.handoff = { text: '# Mark\\n\\nThe tide turns.', revision: 'r1' };
    const machine_fetch = window.fetch;
    window.fetch = (path, options) => {
        const what = path.split('/').pop();
        if (options.body) sent.push([what, JSON.parse(options.body)]);
        if (lost.includes(what)) return Promise.reject(new TypeError('lost on the way'));
        const said = what === 'sessions' ? '{\"right\": \"decide\", \"sessions\": []}' : '{}';
        if (gone) return Promise.resolve(new Response(said, { status: what === 'sessions' ? 200 : 404 }));
        return machine_fetch(path, options);
    };";

const ASKED: &str = "
    machine.needs = [{ kind: 'permission', id: 1, since: '2026-11-30T10:00:00Z', tool: 'Bash', answerable: true }];";

#[test]
#[ignore = "live: needs PITSTOP_CHROMEDRIVER"]
fn what_did_not_come_is_asked_for_again_though_nothing_happens() {
    let (_pitstop, browser) = staged();
    browser.run(ROAD);
    browser.run(ASKED);
    browser.run(
        "lost = ['permission', 'handoff']; machine.reboot.phase = 'review'; tell('status', machine)",
    );
    browser.wait_for("What it is asked to do is not known yet.");
    browser.wait_for("unknown: lost on the way");
    browser.run("lost = []");
    browser.wait_for("ls -la");
    browser.wait_for("The tide turns.");
}

#[test]
#[ignore = "live: needs PITSTOP_CHROMEDRIVER"]
fn a_handoff_that_has_not_come_is_not_approved() {
    let (_pitstop, browser) = staged();
    browser.run(ROAD);
    browser.run("lost = ['handoff']; machine.reboot.phase = 'review'; tell('status', machine)");
    browser.press("Approve");
    browser.wait_for("The handoff has not come yet.");
    assert_eq!(browser.run("return sent"), json!([]));
    browser.run("lost = []");
    browser.wait_for("The tide turns.");
    browser.press("Approve");
    browser.wait_for("Accepted.");
    let sent = browser.run("return sent");
    assert_eq!(sent, json!([["approve", {"revision": "r1"}]]));
}

#[test]
#[ignore = "live: needs PITSTOP_CHROMEDRIVER"]
fn a_page_that_is_looked_at_again_asks_how_things_are() {
    let (_pitstop, browser) = staged();
    browser.run(
        "machine.objective = 'the newest'; document.dispatchEvent(new Event('visibilitychange'))",
    );
    browser.wait_for("the newest");
}

#[test]
#[ignore = "live: needs PITSTOP_CHROMEDRIVER"]
fn a_session_that_was_started_again_is_found_again_without_its_old_pause() {
    let (_pitstop, browser) = staged();
    browser.run(ROAD);
    browser.run("tell('mode', { paused: true })");
    let offers = |name: &str| browser.text().contains(name);
    poll::until_true(SOON, || !offers("Pause reboots"), || browser.text());
    browser.run("tell('gap', {}); tell('status', machine)");
    browser.wait_for("Pause reboots");
    browser.run("gone = true; tell('turn', {})");
    browser.wait_for("This session is gone");
    browser.run("gone = false");
    browser.wait_for("Context");
}

#[test]
#[ignore = "live: needs PITSTOP_CHROMEDRIVER"]
fn what_was_said_is_not_in_the_box_of_a_session_that_is_opened_again() {
    let (_pitstop, browser) = staged();
    browser.run(ROAD);
    browser.run("late = 1000");
    browser.say("go on");
    browser.run("location.hash = '#/'");
    browser.wait_for("Accepted.");
    browser.run("location.hash = '#/one'");
    browser.wait_for("Context");
    assert_eq!(
        browser.run("return document.getElementById('say').value"),
        ""
    );
    // It was opened again before the answer came.
    browser.say("go on");
    browser.run("location.hash = '#/'; setTimeout(() => { location.hash = '#/one' }, 100)");
    browser.wait_for("Accepted.");
    assert_eq!(
        browser.run("return document.getElementById('say').value"),
        ""
    );
}

#[test]
#[ignore = "live: needs PITSTOP_CHROMEDRIVER"]
fn what_hides_in_a_command_is_written_out() {
    let (_pitstop, browser) = staged();
    browser.run(ASKED);
    browser.run(
        "replies.permission.input = 'a\\u3164b\\u{e0041}c\\rd\\u{fe00}e\\r\\nf\\tg';
         tell('status', machine)",
    );
    browser.wait_for("a⟨U+3164⟩b⟨U+E0041⟩c⟨U+000D⟩d⟨U+FE00⟩e");
    browser.wait_for("Hidden characters");
    assert!(!browser.text().contains("e⟨"), "the end of a line is none");
}
