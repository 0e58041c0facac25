use super::*;
use crate::agent::{AgentKind, command_line};

const ID: &str = "8f14e45f-ceea-467f-a8b5-2a8b9d3c1e70";

fn launch(user: &[&str]) -> Launch {
    Launch {
        kind: AgentKind::Claude,
        program: "claude".into(),
        lead_args: Vec::new(),
        session: ID.parse().unwrap(),
        way: Start::Fresh,
        first: true,
        prompt: None,
        user_args: user.iter().map(ToString::to_string).collect(),
        settings_file: "/run/s.json".into(),
        user_append: None,
    }
}

/// The arguments without the appended prompt, which is the same everywhere.
fn args(launch: &Launch) -> Vec<String> {
    let line = command_line(launch).unwrap();
    let mut args: Vec<_> = line
        .args
        .iter()
        .map(|arg| arg.to_str().unwrap().to_owned())
        .collect();
    let at = args
        .iter()
        .position(|arg| arg == "--append-system-prompt")
        .unwrap();
    args.drain(at..at + 2);
    args
}

fn appended(launch: &Launch) -> String {
    let line = command_line(launch).unwrap();
    let at = line
        .args
        .iter()
        .position(|arg| arg == "--append-system-prompt")
        .unwrap();
    line.args[at + 1].to_str().unwrap().to_owned()
}

#[test]
fn a_fresh_start_names_its_session() {
    assert_eq!(
        args(&launch(&[])),
        ["--session-id", ID, "--settings", "/run/s.json"]
    );
    assert_eq!(
        command_line(&launch(&[])).unwrap().session,
        Some(ID.parse().unwrap())
    );
}

#[test]
fn a_resume_names_the_old_session_and_drops_the_users_choice() {
    let mut launch = launch(&["-c", "--resume", "old", "--session-id=x", "--model", "opus"]);
    launch.way = Start::Resume;
    assert_eq!(
        args(&launch),
        [
            "--model",
            "opus",
            "--resume",
            ID,
            "--settings",
            "/run/s.json"
        ]
    );
}

#[test]
fn the_users_own_resume_rules_the_first_start_only() {
    let mut launch = launch(&["--resume", "old", "do it"]);
    assert_eq!(
        args(&launch),
        ["--resume", "old", "do it", "--settings", "/run/s.json"]
    );
    assert_eq!(command_line(&launch).unwrap().session, None);
    launch.first = false;
    assert_eq!(
        args(&launch),
        ["--session-id", ID, "--settings", "/run/s.json"]
    );
    assert_eq!(
        command_line(&launch).unwrap().session,
        Some(ID.parse().unwrap())
    );
}

#[test]
fn a_value_that_looks_like_a_flag_is_no_flag() {
    let launch = launch(&["--append-system-prompt", "-c", "--model", "--resume"]);
    assert_eq!(user_session(&launch.user_args), UserSession::Ours);
    assert!(appended(&launch).starts_with("-c\n\n"));
}

#[test]
fn the_prompt_goes_last_behind_two_dashes() {
    let mut launch = launch(&["--add-dir", "/a", "/b"]);
    launch.prompt = Some("-p it's\n\t\u{1f600}".into());
    let args = args(&launch);
    assert_eq!(args[..3], ["--add-dir", "/a", "/b"]);
    assert_eq!(args[args.len() - 2..], ["--", "-p it's\n\t\u{1f600}"]);
}

#[test]
fn a_prompt_that_is_a_subcommand_stays_a_prompt() {
    let mut launch = launch(&[]);
    launch.prompt = Some("doctor".into());
    assert_eq!(args(&launch).last().unwrap(), "doctor\n");
}

#[test]
fn a_prompt_that_fits_no_argument_is_refused() {
    let mut launch = launch(&[]);
    launch.prompt = Some("x".repeat(MAX_PROMPT_ARGUMENT + 1));
    assert_eq!(
        command_line(&launch),
        Err(LaunchError::PromptTooLong {
            found: MAX_PROMPT_ARGUMENT + 1,
            limit: MAX_PROMPT_ARGUMENT
        })
    );
    launch.prompt = Some("a\0b".into());
    assert_eq!(command_line(&launch), Err(LaunchError::Nul));
}

#[test]
fn the_users_settings_and_appended_prompt_are_merged_not_repeated() {
    let user = launch(&["--settings={\"a\":1}", "--append-system-prompt", "mine"]);
    assert_eq!(
        args(&user),
        ["--session-id", ID, "--settings", "/run/s.json"]
    );
    assert!(appended(&user).starts_with("mine\n\n"));
    assert_eq!(
        user_settings(&user.user_args),
        Some(Given::Text("{\"a\":1}".into()))
    );

    let mut file = launch(&[
        "--append-system-prompt-file",
        "p.md",
        "--settings",
        "s.json",
    ]);
    assert_eq!(user_append_file(&file.user_args), Some("p.md".into()));
    assert_eq!(
        user_settings(&file.user_args),
        Some(Given::File("s.json".into()))
    );
    file.user_append = Some("from the file".into());
    assert_eq!(
        args(&file),
        ["--session-id", ID, "--settings", "/run/s.json"]
    );
    assert!(appended(&file).starts_with("from the file\n\n"));
}

#[test]
fn flags_that_blind_us_or_need_no_pane_are_found() {
    let args = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(blinding_flag(&args(&["--safe-mode"])), Some("--safe-mode"));
    assert_eq!(blinding_flag(&args(&["--", "--safe-mode"])), None);
    assert!(prints(&args(&["x", "-p"])));
    assert!(!prints(&args(&["--model", "-p"])));
}

#[test]
fn the_system_prompt_keeps_to_400_tokens() {
    assert!(crate::agent::generic::estimate(SYSTEM_PROMPT.chars().count() as u64, 0).0 < 400);
}

fn injection() -> Injection<'static> {
    Injection {
        exe: Path::new("/opt/it's here/pitstop"),
        observe: Path::new("/run/u 1/observe"),
        scratchpad: Path::new("/w/a [b]*/.pitstop/scratchpad.md"),
    }
}

fn value(settings: &Settings) -> Value {
    serde_json::from_str(&settings.json).unwrap()
}

#[test]
fn every_hook_calls_pitstop_with_quoted_paths() {
    let settings = value(&settings(injection(), None).unwrap());
    for event in EVENTS {
        assert_eq!(
            settings["hooks"][event][0]["hooks"][0]["command"],
            format!(r"'/opt/it'\''s here/pitstop' hook {event} --observe '/run/u 1/observe'")
        );
    }
    assert_eq!(
        settings["statusLine"]["command"],
        r"'/opt/it'\''s here/pitstop' statusline --observe '/run/u 1/observe'"
    );
}

#[test]
fn the_scratchpad_alone_is_allowed_by_an_absolute_rule() {
    let settings = value(&settings(injection(), None).unwrap());
    assert_eq!(
        settings["permissions"]["allow"],
        json!([
            r"Read(//w/a \[b\]\*/.pitstop/scratchpad.md)",
            r"Edit(//w/a \[b\]\*/.pitstop/scratchpad.md)"
        ])
    );
}

#[test]
fn the_users_settings_keep_everything_but_the_status_line_which_is_chained() {
    let user = r#"{"env":{"A":"b"},"statusLine":{"type":"command","command":"mine.sh"},
        "hooks":{"Stop":[{"hooks":[{"type":"command","command":"theirs"}]}],"Else":[]},
        "permissions":{"allow":["Bash(ls)"],"deny":["Read(x)"]}}"#;
    let merged = settings(injection(), Some(user)).unwrap();
    assert_eq!(merged.user_status_line.as_deref(), Some("mine.sh"));
    let merged = value(&merged);
    assert_eq!(merged["env"]["A"], "b");
    assert_eq!(merged["hooks"]["Stop"][0]["hooks"][0]["command"], "theirs");
    assert_eq!(merged["hooks"]["Stop"].as_array().unwrap().len(), 2);
    assert_eq!(merged["hooks"]["Else"], json!([]));
    assert_eq!(merged["permissions"]["deny"], json!(["Read(x)"]));
    assert_eq!(merged["permissions"]["allow"][0], "Bash(ls)");
}

#[test]
fn settings_of_another_shape_are_refused_with_the_place() {
    let error = |user| settings(injection(), Some(user)).unwrap_err().to_string();
    assert_eq!(
        error(r#"{"hooks":[]}"#),
        "expected `hooks` in --settings to be an object"
    );
    assert_eq!(
        error(r#"{"hooks":{"Stop":1}}"#),
        "expected `hooks` in --settings to be made of lists"
    );
    assert!(error("nope").starts_with("expected the text of --settings to be a JSON object"));
}

#[test]
fn the_users_status_line_is_found_in_a_settings_file() {
    let text = r#"{"statusLine":{"type":"command","command":"ccline --x"}}"#;
    assert_eq!(user_status_line(text).as_deref(), Some("ccline --x"));
    for none in [
        "",
        "[]",
        "{}",
        r#"{"statusLine":null}"#,
        r#"{"statusLine":{"command":" "}}"#,
    ] {
        assert_eq!(user_status_line(none), None, "{none}");
    }
}

#[test]
fn a_project_slug_replaces_all_but_letters_and_digits() {
    assert_eq!(
        project_slug(Path::new("/tmp/proj dir/.x_é😀")),
        "-tmp-proj-dir--x----"
    );
}
