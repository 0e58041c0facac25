//! Terminals that attach to a running session: what they show, whose size counts, and how they leave.

use std::{
    env, fs,
    io::{Read as _, Write as _},
    os::unix::{
        fs::{DirBuilderExt as _, PermissionsExt as _, symlink},
        net::UnixListener,
    },
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use pitstop_core::config::load::paths::project_hash;
use pitstop_server::{attach::PROTOCOL, client::ApiClient};
use rustix::process::Signal;
use serde_json::json;

use crate::{
    kit::{
        messages_api::Answer,
        poll,
        supervisor::{Launch, PITSTOP, SOON, Supervisor, agents, key},
        terminal::Terminal,
    },
    pane::Random,
};

/// Attaches a terminal of this size.
fn attach(pitstop: &Supervisor, size: (u16, u16), flags: &[&str]) -> Terminal {
    let args = [&["attach"][..], flags].concat();
    call(&pitstop.launch, pitstop.launch.project(), size, &args)
}

/// Calls pitstop in a terminal of this size, in this directory.
pub fn call(launch: &Launch, dir: &Path, size: (u16, u16), args: &[&str]) -> Terminal {
    let there = launch.clone().in_directory(dir);
    there.terminal(PITSTOP, args, size)
}

pub fn same_screen(one: &Terminal, other: &Terminal, limit: Duration) {
    // One that works may show more by the next look.
    other.wait_for(|text| text == one.screen_text(), limit);
}

#[test]
fn a_second_terminal_shows_the_same_and_types_too() {
    let pitstop = Launch::quiet_demo().start_idle();
    let second = attach(&pitstop, (140, 45), &[]);
    same_screen(&pitstop.terminal, &second, SOON);
    // What is typed in one shows in both.
    second.send("hello from afar");
    pitstop.wait_for_text("hello from afar", SOON);
    same_screen(&pitstop.terminal, &second, SOON);
    second.send("\u{15}");
    let exit = {
        second.send("\u{11}d");
        second.wait_for_exit(SOON)
    };
    assert_eq!(exit.code, 0, "{}", second.screen_text());
    assert_eq!(second.modes_left_on(), [""; 0]);
    pitstop.wait_for_state("idle", SOON);
}

#[test]
fn the_size_is_that_of_the_terminal_that_was_typed_in_last() {
    let pitstop = Launch::quiet_demo().size(140, 40).start_idle();
    let small = attach(&pitstop, (90, 24), &[]);
    // To attach counts as typing: now both show the small screen.
    small.wait_for_text("idle", SOON);
    let is_blank = |row| {
        let screen = pitstop.screen();
        let line = screen.lines().nth(row).unwrap_or_default();
        line.trim().is_empty()
    };
    pitstop.wait_until("the first shows the small screen", || is_blank(30));
    assert!(!pitstop.screen().contains("cut off"));
    pitstop.terminal.send("x");
    // The small one says that it shows a part only, until it counts again.
    small.wait_for_text("cut off: type or click to fit", SOON);
    pitstop.wait_until("its own size counts again", || !is_blank(39));
    small.send("\u{15}");
    small.wait_for(
        |text| text.contains("idle") && !text.contains("cut off"),
        SOON,
    );
}

#[test]
fn a_watching_terminal_neither_types_nor_sizes() {
    let pitstop = Launch::quiet_demo().size(140, 40).start_idle();
    let before = pitstop.screen();
    let watching = attach(&pitstop, (60, 20), &["--watch"]);
    watching.send("not to be seen");
    watching.wait_for(
        |text| text.trim_end().ends_with("watching · q leaves"),
        SOON,
    );
    assert!(!pitstop.screen().contains("not to be seen"));
    assert_eq!(pitstop.screen().lines().count(), before.lines().count());
    watching.send("q");
    assert_eq!(watching.wait_for_exit(SOON).code, 0);
}

#[test]
fn a_terminal_takes_over_where_all_places_are_taken() {
    let pitstop = Launch::quiet_demo().start_idle();
    // That of the start has none of the places.
    let crowd: Vec<Terminal> = [(16, &["--watch"][..], "q leaves"), (16, &[], "F1 help")]
        .into_iter()
        .flat_map(|(count, flags, text)| {
            let crowd = (0..count).map(|_| attach(&pitstop, (80, 24), flags));
            let crowd: Vec<Terminal> = crowd.collect();
            // Those that watch take no place from those that type.
            for one in &crowd {
                one.wait_for_text(text, SOON);
            }
            let refused = attach(&pitstop, (80, 24), flags);
            assert_eq!(refused.wait_for_exit(SOON).code, 1);
            crowd
        })
        .collect();
    for _ in 0..2 {
        let taker = attach(&pitstop, (140, 40), &["--take"]);
        taker.wait_for_text("F1 help", SOON);
        taker.send("\u{11}d");
        assert_eq!(taker.wait_for_exit(SOON).code, 0);
    }
    for one in &crowd {
        assert_eq!(one.wait_for_exit(SOON).code, 0);
    }
}

#[test]
fn the_end_of_the_session_and_of_a_client_leave_usable_terminals() {
    let pitstop = Launch::quiet_demo().start_idle();
    let ended = attach(&pitstop, (100, 30), &[]);
    ended.wait_for_text("idle", SOON);
    ended.signal(Signal::TERM);
    assert_eq!(ended.wait_for_exit(SOON).code, 143);
    assert_eq!(ended.modes_left_on(), [""; 0]);
    let last = attach(&pitstop, (100, 30), &[]);
    last.wait_for_text("idle", SOON);
    let taken = attach(&pitstop, (100, 30), &["--take"]);
    assert_eq!(last.wait_for_exit(SOON).code, 0);
    last.wait_for_text("another terminal has taken over", SOON);
    assert_eq!(pitstop.wait_for_exit(SOON).code, 0);
    taken.wait_for_text("idle", SOON);
    pitstop.ctl("stop");
    assert_eq!(taken.wait_for_exit(SOON).code, 0);
    assert_eq!(taken.modes_left_on(), [""; 0]);
}

/// Checks that the session goes on and can be attached to.
fn goes_on(pitstop: &Supervisor) {
    pitstop.wait_for_state("idle", SOON);
    let back = attach(pitstop, (90, 30), &[]);
    back.wait_for_text("idle", SOON);
    back.send("still here");
    back.wait_for_text("still here", SOON);
    back.send("\u{15}");
    back.send("\u{11}d");
    assert_eq!(back.wait_for_exit(SOON).code, 0);
    back.wait_for_text("the session goes on", SOON);
}

#[test]
fn a_session_outlives_its_terminals_however_they_end() {
    let pitstop = Launch::quiet_demo().start_idle();
    let agent = pitstop.agent_pid();
    pitstop.keys([key::PREFIX, "d"]);
    let exit = pitstop.wait_for_exit(SOON);
    assert_eq!(exit.code, 0);
    assert_eq!(pitstop.terminal.modes_left_on(), [""; 0]);
    assert!(pitstop.terminal.has_its_settings_back());
    goes_on(&pitstop);
    for signal in [Signal::HUP, Signal::KILL] {
        let lost = attach(&pitstop, (100, 30), &[]);
        lost.wait_for_text("F10 quit", SOON);
        lost.signal(signal);
        lost.wait_for_exit(SOON);
        goes_on(&pitstop);
    }
    // A terminal emulator that is killed takes its terminal with it.
    let gone = attach(&pitstop, (100, 30), &[]);
    gone.wait_for_text("F10 quit", SOON);
    drop(gone);
    goes_on(&pitstop);
    assert_eq!(pitstop.agent_pid(), agent);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE, and tmux"]
fn a_turn_of_the_real_client_goes_on_when_its_emulator_and_its_tmux_are_killed() {
    let launch = Launch::live().agent_args(["--allowed-tools", "Bash"]);
    let wait = "touch \"$HOME/begun\"; until [ -e \"$HOME/go\" ]; do sleep 0.1; done; echo over";
    launch
        .api()
        .answer([Answer::shell(wait), Answer::text("It went on.")]);
    let pitstop = launch.start_idle();
    let before = pitstop.status();
    pitstop.prompt("Wait for it.");
    let begun = pitstop.launch.the_home().path("begun");
    pitstop.wait_until("the command", || begun.exists());

    // A terminal emulator that is killed takes its terminal with it.
    let emulator = attach(&pitstop, (100, 30), &[]);
    emulator.wait_for_text("Wait for it.", SOON);
    drop(emulator);
    pitstop.terminal.signal(Signal::KILL);
    pitstop.wait_for_exit(SOON);

    let socket = pitstop.launch.the_home().path("tmux");
    let tmux = ["-f", "/dev/null", "-S", socket.to_str().expect("text")];
    let args = [&tmux[..], &["new-session", PITSTOP, "attach"]].concat();
    let in_tmux = pitstop.launch.terminal("tmux", args, (120, 35));
    in_tmux.wait_for_text("Wait for it.", SOON);
    let killed = Command::new("tmux")
        .args(tmux)
        .arg("kill-server")
        .status()
        .expect("tmux runs");
    assert!(killed.success());
    in_tmux.wait_for_exit(SOON);

    let busy = pitstop.status();
    assert_eq!(busy["agent"]["state"], "busy");
    fs::write(pitstop.launch.the_home().path("go"), "").expect("a file");
    pitstop.wait_for_state("idle", SOON);
    let back = attach(&pitstop, (90, 28), &[]);
    back.wait_for_text("It went on.", SOON);
    let after = pitstop.status();
    for one in ["pid", "session_id", "iteration"] {
        assert_eq!(after[one], before[one]);
    }
    let calls = pitstop.launch.api().main_calls().len();
    assert_eq!(calls, 2, "nothing was said again");
}

#[test]
fn a_quit_in_the_middle_of_a_turn_offers_to_detach() {
    let pitstop = Launch::demo().start();
    pitstop.wait_for_state("busy", SOON);
    pitstop.keys([key::F10]);
    pitstop.wait_for_text("d detach", SOON);
    pitstop.keys(["d"]);
    assert_eq!(pitstop.wait_for_exit(SOON).code, 0);
    assert!(pitstop.try_status().is_some());
}

#[test]
fn nothing_attaches_from_inside_a_session() {
    let pitstop = Launch::quiet_demo().start_idle();
    let launch = pitstop.launch.clone().env("PITSTOP_OBSERVE", "/x");
    let inside = call(&launch, launch.project(), (100, 30), &["attach"]);
    assert_eq!(inside.wait_for_exit(SOON).code, 1);
    inside.wait_for_text("inside a session of pitstop", SOON);
}

/// How many random sequences and kills are tried: more of them take minutes.
fn rounds(usual: usize) -> usize {
    let asked = std::env::var("PITSTOP_TEST_ROUNDS").ok();
    asked
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(usual)
}

/// Output of an agent: text of several widths, colours, moves of the cursor, the other screen.
fn output(random: &mut Random) -> String {
    const PARTS: [&str; 12] = [
        "plain text and more of it ",
        "\r\n",
        "\u{65e5}\u{672c}\u{8a9e} ",
        "e\u{301} \u{1f469}\u{200d}\u{1f680} ",
        "\x1b[31;4mred\x1b[0m ",
        "\x1b[48;5;19m\x1b[K",
        "\x1b[2J\x1b[H",
        "\x1b[5;30r",
        "\x1b[r",
        "\x1b[?1049h",
        "\x1b[?1049l",
        "\x1b]2;a title\x07",
    ];
    let mut text = String::new();
    for _ in 0..=random.below(12) {
        if random.below(4) == 0 {
            text += &format!("\x1b[{};{}H", 1 + random.below(50), 1 + random.below(100));
        }
        text += PARTS[random.below(PARTS.len() as u64) as usize];
    }
    text
}

#[test]
fn what_attaches_shows_what_one_shows_that_was_attached_all_along() {
    let pitstop = Launch::generic("sh -c \"touch out; exec tail -n +1 -f out\"").start();
    pitstop.wait_for_state("idle", SOON);
    let file = pitstop.launch.project().join("out");
    pitstop.wait_until("it prints", || file.exists());
    let mut out = fs::File::options().append(true).open(&file).unwrap();
    let mut random = Random(0x5eed_0035);
    for round in 0..rounds(100) {
        let mut others = Vec::new();
        let mut size = (140, 45);
        for _ in 0..=random.below(6) {
            match random.below(4) {
                0 | 1 => out.write_all(output(&mut random).as_bytes()).unwrap(),
                2 => {
                    size = (60 + random.below(120) as u16, 20 + random.below(40) as u16);
                    pitstop.terminal.resize(size.0, size.1);
                }
                _ if others.len() < 2 => {
                    let own = (60 + random.below(120) as u16, 20 + random.below(40) as u16);
                    let flags: &[&str] = if random.below(2) == 0 {
                        &["--watch"]
                    } else {
                        &[]
                    };
                    others.push(attach(&pitstop, own, flags));
                }
                _ => drop(others.pop()),
            }
        }
        drop(others);
        pitstop.terminal.resize(size.0, size.1);
        let fresh = attach(&pitstop, size, &[]);
        let same =
            || fresh.screen_text().contains("F1 help") && fresh.cells() == pitstop.terminal.cells();
        let differing = || {
            let (fresh, before) = (fresh.cells(), pitstop.terminal.cells());
            let pairs = std::iter::zip(fresh, before).enumerate();
            let differing: Vec<_> = pairs.filter(|(_, (one, other))| one != other).collect();
            format!("{size:?}, cells that differ (fresh, before): {differing:#?}")
        };
        assert!(poll::within(SOON, same), "round {round}: {}", differing());
    }
}

#[test]
fn clients_that_are_killed_at_random_moments_leave_the_session_as_it_is() {
    let pitstop = Launch::demo()
        .set("reboot.mode=\"auto\"")
        .set("reboot.auto_delay=\"50ms\"")
        .env("PITSTOP_DEMO_GROWTH", "40000")
        .start();
    pitstop.wait_for_state("busy", SOON);
    let descriptors = || {
        let pid = pitstop.pid().as_raw_nonzero();
        fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
    };
    let before = descriptors();
    let mut random = Random(0x5eed_0036);
    for _ in 0..rounds(25) {
        let client = attach(&pitstop, (100, 30), &[]);
        let moment = Instant::now() + Duration::from_millis(random.below(250));
        while Instant::now() < moment {
            client.send("x\u{15}");
            std::thread::park_timeout(Duration::from_millis(5));
        }
        client.kill();
        client.wait_for_exit(SOON);
    }
    pitstop.wait_until("all are gone", || descriptors() <= before + 6);
    pitstop.wait_for_status(|status| status["iteration"].as_u64() > Some(1));
    pitstop.wait_until("one agent", || agents(pitstop.launch.the_home()).len() == 1);
    assert_eq!(pitstop.log().matches("panic").count(), 0);
}

#[test]
fn a_subdirectory_belongs_to_its_project_and_pitstop_there_shows_what_runs() {
    let launch = Launch::quiet_demo();
    let (sub, apart) = (
        launch.project().join("src/deep"),
        launch.project().join("apart"),
    );
    fs::create_dir_all(&sub).unwrap();
    fs::create_dir_all(apart.join(".pitstop")).unwrap();
    let pitstop = launch.start_idle();
    let status = |dir: &Path| {
        launch
            .command(&["status"])
            .current_dir(dir)
            .output()
            .unwrap()
    };
    assert_eq!(status(&sub).status.code(), Some(0));
    assert_eq!(
        status(&apart).status.code(),
        Some(3),
        "a project of its own"
    );
    let plain = call(&launch, &sub, (140, 45), &[]);
    same_screen(&pitstop.terminal, &plain, SOON);
    plain.send("\u{11}d");
    assert_eq!(plain.wait_for_exit(SOON).code, 0);
    // With words of its own it does not show another's session.
    let other = call(&launch, &sub, (100, 30), &["demo", "--here"]);
    assert_eq!(other.wait_for_exit(SOON).code, 1);
    other.wait_for_text("`pitstop attach` shows it", SOON);
}

#[test]
fn two_that_are_started_at_once_show_one_session() {
    let launch = Launch::quiet_demo().behind("");
    let bin = launch.the_home().path("bin");
    fs::create_dir_all(&bin).unwrap();
    symlink(launch.the_home().path("agent.sh"), bin.join("claude")).unwrap();
    let path = format!("{}:{}", bin.display(), env::var("PATH").unwrap());
    let launch = launch.env("PATH", path);
    // Not each time do both come so far before one has the place.
    for round in 0..5 {
        let project = launch.the_home().path(&format!("project-{round}"));
        fs::create_dir_all(&project).unwrap();
        let script = format!("until [ -e go ]; do sleep 0.01; done; exec {PITSTOP}");
        let there = launch.clone().in_directory(&project);
        let both = [(); 2].map(|()| there.terminal("sh", ["-c", &script], (140, 45)));
        fs::write(project.join("go"), "").unwrap();
        for one in &both {
            one.wait_for_text("Welcome to the pitstop demo", SOON);
        }
        same_screen(&both[0], &both[1], SOON);
        assert_eq!(agents(launch.the_home()).len(), 1);
        let mut stop = launch.command(&["stop"]);
        assert!(stop.current_dir(&project).status().unwrap().success());
        for one in &both {
            one.wait_for_exit(SOON);
        }
    }
}

#[test]
fn all_sessions_are_listed_and_each_is_attached_to_by_its_name() {
    let home = Launch::quiet_demo().the_home().clone();
    let began = |name: &str, launch: Launch| {
        let project = home.path(name);
        fs::create_dir_all(&project).unwrap();
        let mut pitstop = launch.home(&home).in_directory(&project).start();
        // All have the same home, in which each would take the others for its own leftovers.
        pitstop.check_nothing();
        pitstop
    };
    let harbour = began("harbour", Launch::quiet_demo());
    let tides = began(
        "tides",
        Launch::demo().notes("## Goal\n\nPrint the tides\n"),
    );
    harbour.wait_for_state("idle", SOON);
    tides.wait_for_state("busy", SOON);
    let list = || {
        let output = harbour.launch.command(&["ls"]).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).unwrap()
    };
    let listed = list();
    let (first, second) = (listed.lines().nth(1), listed.lines().nth(2));
    assert!(
        first.is_some_and(|line| line.contains("tides") && line.contains("working")),
        "{listed}"
    );
    assert!(
        second.is_some_and(|line| line.contains("harbour") && line.contains("idle")),
        "{listed}"
    );
    let named = call(
        &harbour.launch,
        harbour.launch.project(),
        (140, 45),
        &["attach", "tid"],
    );
    same_screen(&tides.terminal, &named, SOON);
    // By a path from here, too, and by a directory below.
    fs::create_dir_all(home.path("tides/below")).unwrap();
    let args = ["attach", "../tides/below"];
    let below = call(&harbour.launch, &home.path("harbour"), (140, 45), &args);
    same_screen(&tides.terminal, &below, SOON);
    let unknown = call(
        &harbour.launch,
        harbour.launch.project(),
        (140, 45),
        &["attach", "fjord"],
    );
    assert_eq!(unknown.wait_for_exit(SOON).code, 1);
    // One that hangs is waited for half a second, beside all others.
    rustix::process::kill_process(harbour.pid(), Signal::STOP).unwrap();
    assert!(list().contains("does not answer"));
    rustix::process::kill_process(harbour.pid(), Signal::CONT).unwrap();
    for one in [&harbour, &tides] {
        one.signal(Signal::TERM);
        one.wait_for_exit(SOON);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_session_takes_one_of_the_few_sources_of_notices_that_its_user_has() {
    let pitstop = Launch::quiet_demo().start_idle();
    let descriptors = fs::read_dir(format!("/proc/{}/fd", pitstop.pid().as_raw_nonzero())).unwrap();
    let sources = descriptors
        .filter_map(|descriptor| fs::read_link(descriptor.ok()?.path()).ok())
        .filter(|target| target.ends_with("anon_inode:inotify"));
    assert_eq!(sources.count(), 1);
}

#[test]
fn a_supervisor_of_another_version_is_listed_and_shown_by_its_own_program() {
    let launch = Launch::quiet_demo();
    let run = launch.the_home().path("state/pitstop/run");
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&run)
        .unwrap();
    let hash = project_hash(launch.project()).unwrap();
    let (socket, secrets) = (run.join("other.sock"), run.join(format!("{hash}.control")));
    fs::write(&secrets, format!("{}\n0123abcd\n", socket.display())).unwrap();
    fs::set_permissions(&secrets, fs::Permissions::from_mode(0o600)).unwrap();
    let mut own = Command::new("sleep").arg("1000").spawn().unwrap();
    let status = json!({ "version": "9.9.9", "pid": own.id(), "project": launch.project() });
    let listener = UnixListener::bind(&socket).unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let count = stream.read(&mut request).unwrap_or(0);
            let (code, body) = if request[..count].starts_with(b"POST /attach") {
                (426, "{}".to_owned())
            } else {
                (200, status.to_string())
            };
            let head = format!(
                "HTTP/1.1 {code} -\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    let listed = launch.command(&["ls"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("runs, by pitstop 9.9.9"), "{listed}");
    let name = launch.project().file_name().unwrap().to_str().unwrap();
    for args in [&["attach"][..], &["attach", name]] {
        let shown = call(&launch, launch.project(), (140, 45), args);
        shown.wait_for_text("run by pitstop 9.9.9: its own program shows it", SOON);
        // `sleep`, which knows no `attach`.
        shown.wait_for_text("invalid time interval", SOON);
        assert_eq!(shown.wait_for_exit(SOON).code, 1);
    }
    // What this version cannot read, the other's program prints.
    for args in [&["status"][..], &["status", "--line"], &["history"]] {
        let output = launch.command(args).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("run by pitstop 9.9.9"), "{args:?}: {text}");
        assert!(text.contains("--help'"), "{args:?}: {text}");
    }
    own.kill().unwrap();
    own.wait().unwrap();
}

#[test]
fn a_stolen_token_and_a_thousand_connections_do_a_session_no_harm() {
    let pitstop = Launch::quiet_demo().start_idle();
    let run = pitstop.launch.the_home().path("state/pitstop/run");
    let files: Vec<PathBuf> = fs::read_dir(run)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    let with = |right: &str| {
        let is_it = |file: &&PathBuf| file.extension().is_some_and(|end| end == right);
        ApiClient::from_file(files.iter().find(is_it).unwrap()).unwrap()
    };
    let ask = |client: &ApiClient| client.upgrade("/attach", PROTOCOL, Instant::now() + SOON);
    for right in ["observe", "bridge"] {
        assert_eq!(ask(&with(right)).unwrap().0.status, 403, "{right}");
    }
    // Those that say nothing, some of them held open; none is shown anything, and none is in the way of a person.
    let control = with("control");
    let mut held = Vec::new();
    let mut begun = 0;
    for number in 0..1_000 {
        // Beyond a limit a connection is closed unheard.
        if let Ok((answer, stream)) = ask(&control) {
            begun += usize::from(answer.status == 101);
            if number % 4 == 0 {
                held.push(stream);
            }
        }
    }
    assert!(begun > 0);
    pitstop.terminal.send("still here");
    pitstop.wait_for_text("still here", SOON);
    pitstop.terminal.send("\u{15}");
    drop(held);
    goes_on(&pitstop);
}

#[test]
fn a_terminal_that_takes_nothing_delays_neither_the_other_nor_the_agent() {
    let flood = "sh -c \"while read word; do seq 1 400000; echo over $word; done\"";
    let pitstop = Launch::generic(flood)
        .size(140, 40)
        .start_showing("F10 quit");
    let second = attach(&pitstop, (140, 40), &["--watch"]);
    second.wait_for_text("q leaves", SOON);
    let flooded = |word: &str| {
        let began = Instant::now();
        pitstop.terminal.send(format!("{word}\r"));
        pitstop.wait_for_text(&format!("over {word}"), SOON);
        began.elapsed()
    };
    let usual = flooded("one");
    second.wait_for_text("over one", SOON);
    second.stall(true);
    let beside = flooded("two");
    println!("{usual:?} beside one that reads, {beside:?} beside one that does not");
    assert!(beside < usual * 3 + Duration::from_secs(1));
    second.stall(false);
    second.wait_for_text("over two", SOON);
}

#[test]
fn a_click_to_fit_presses_no_key() {
    let pitstop = Launch::quiet_demo().size(200, 50).start_idle();
    let small = attach(&pitstop, (120, 30), &[]);
    small.wait_for_text("idle", SOON);
    pitstop.terminal.send("x");
    for column in (92..=119).step_by(4) {
        small.wait_for_text("cut off: type or click to fit", SOON);
        small.send(format!("\x1b[<0;{column};30M\x1b[<0;{column};30m"));
        small.wait_for(|text| !text.contains("cut off"), SOON);
        let status = pitstop.status();
        assert_eq!(status["reboot"]["phase"], "idle", "{column}");
        assert_eq!(status["zoomed"], false, "{column}");
        pitstop.terminal.send("x");
    }
}

#[test]
fn a_session_whose_project_is_gone_is_attached_to_and_keeps_the_unsent_prompt() {
    let pitstop = Launch::quiet_demo().start_idle();
    let project = pitstop.launch.project().to_owned();
    let hash = project_hash(&project).expect("its hash");
    let kept = format!("state/pitstop/projects/{hash}/draft.md");
    let kept = pitstop.launch.the_home().path(&kept);
    pitstop.keys([key::PREFIX, "d"]);
    pitstop.wait_for_exit(SOON);
    let aside = project.with_extension("aside");
    fs::rename(&project, &aside).expect("moved away");
    let name = project.to_str().expect("text");
    let back = call(&pitstop.launch, &aside, (100, 30), &["attach", name]);
    back.wait_for_text("idle", SOON);
    back.send("my own words");
    let is_kept = || fs::read_to_string(&kept).is_ok_and(|text| text.contains("my own words"));
    poll::until_true(SOON, is_kept, || "it is not kept".to_owned());
    fs::rename(&aside, &project).expect("moved back");
}
