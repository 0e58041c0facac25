use super::*;
use crate::{AgentKind, command_line};

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
        mods: None,
        mcp_config: None,
        settings_file: "/run/s.json".into(),
        user_append: None,
    }
}

/// The arguments of a session of ours, without the appended prompt.
const OURS: [&str; 4] = ["--session-id", ID, "--settings", "/run/s.json"];

/// Returns the arguments without the appended prompt, which is the same everywhere, and that prompt.
fn split_args(launch: &Launch) -> (Vec<String>, String) {
    let line = command_line(launch).unwrap();
    let args = line.args.iter().map(|arg| arg.to_str().unwrap().to_owned());
    let mut args: Vec<_> = args.collect();
    let is_append = |arg: &String| arg == "--append-system-prompt";
    let at = args.iter().position(is_append).unwrap();
    let appended = args.drain(at..at + 2).next_back().unwrap();
    (args, appended)
}

fn args(launch: &Launch) -> Vec<String> {
    split_args(launch).0
}

fn appended(launch: &Launch) -> String {
    split_args(launch).1
}

#[test]
fn the_end_of_a_prompt_is_never_half_of_something() {
    assert_eq!(boxed("look into @notes".to_owned()), "look into @notes ");
    assert_eq!(boxed("look into C:\\".to_owned()), "look into C:\\ ");
    for whole in ["hello", "", "/compact", "look, see."] {
        assert_eq!(boxed(whole.to_owned()), whole);
    }
    assert_eq!(boxed("/add-dir @src".to_owned()), "/add-dir @src ");
}

#[test]
fn a_fresh_start_names_its_session() {
    assert_eq!(args(&launch(&[])), OURS);
    let session = command_line(&launch(&[])).unwrap().session;
    assert_eq!(session, ID.parse().ok());
}

#[test]
fn a_resume_names_the_old_session_and_drops_the_users_choice() {
    let mut launch = launch(&["-c", "--resume", "old", "--session-id=x", "--model", "opus"]);
    launch.way = Start::Resume;
    let expected = format!("--model opus --resume {ID} --settings /run/s.json");
    assert_eq!(args(&launch).join(" "), expected);
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
    assert_eq!(args(&launch), OURS);
    let session = command_line(&launch).unwrap().session;
    assert_eq!(session, ID.parse().ok());
}

#[test]
fn a_later_start_keeps_every_flag_and_drops_the_users_prompt() {
    let given = "--add-dir /a /b --model opus prompt -d -- x";
    let mut launch = launch(&given.split(' ').collect::<Vec<_>>());
    launch.first = false;
    let kept = args(&launch)[..6].join(" ");
    assert_eq!(kept, "--add-dir /a /b --model opus -d");
}

#[test]
fn an_unknown_option_keeps_its_word() {
    let mut launch = launch(&["--brandnew", "word", "--verbose", "a prompt"]);
    launch.first = false;
    assert_eq!(args(&launch)[..3], ["--brandnew", "word", "--verbose"]);
    assert_eq!(args(&launch)[3], "--session-id");
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
    assert_eq!(args(&user), OURS);
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
    assert_eq!(args(&file), OURS);
    assert!(appended(&file).starts_with("from the file\n\n"));
}

#[test]
fn flags_that_blind_us_or_need_no_pane_are_found() {
    let args = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(blinding_flag(&args(&["--safe-mode"])), Some("--safe-mode"));
    assert_eq!(blinding_flag(&args(&["--", "--safe-mode"])), None);
    assert!(prints_answer(&args(&["x", "-p"])));
    assert!(!prints_answer(&args(&["--model", "-p"])));
}

#[test]
fn the_system_prompt_keeps_to_400_tokens() {
    assert!(SYSTEM_PROMPT.chars().count().div_ceil(4) < 400);
}

#[test]
fn a_project_slug_replaces_all_but_letters_and_digits() {
    assert_eq!(
        project_slug(Path::new("/tmp/proj dir/.x_é😀")),
        "-tmp-proj-dir--x----"
    );
}

#[test]
fn the_role_is_the_agent_that_the_arguments_name_last() {
    for (args, found) in [
        (&["--agent", "reviewer"][..], Some("reviewer")),
        (&["--model", "x", "--agent=größe"], Some("größe")),
        (&["--agent", "a", "--agent", "b"], Some("b")),
        (&["--agents", "{}"], None),
    ] {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        assert_eq!(role(&args).as_deref(), found, "{args:?}");
    }
}

#[test]
fn a_start_elsewhere_makes_no_work_tree_and_finds_what_relative_paths_name() {
    for (given, left) in [
        ("--worktree x --model opus", "--model opus"),
        ("-w --verbose --tmux", "--verbose"),
        ("--worktree=x --add-dir ./src .no", "--add-dir P/./src .no"),
    ] {
        let given: Vec<_> = given.split(' ').map(str::to_owned).collect();
        let project = env!("CARGO_MANIFEST_DIR");
        let args = arguments_elsewhere(&given, Path::new(project)).join(" ");
        assert_eq!(args, left.replace('P', project));
    }
}

#[test]
fn a_session_has_the_name_that_the_one_before_was_given() {
    let long = "é".repeat(200);
    for (given, name, args) in [
        (
            "--model opus",
            "--continue",
            "--name=--continue --model opus",
        ),
        ("-n first --name=second -c", "third", "--name=third -c"),
        ("-c", &long, &format!("--name={} -c", "é".repeat(128))),
    ] {
        let given: Vec<_> = given.split(' ').map(str::to_owned).collect();
        assert_eq!(arguments_with_name(&given, name).join(" "), args);
    }
}

#[test]
fn a_session_begins_in_the_mode_in_which_the_one_before_was_left() {
    for (given, mode, args) in [
        (
            "--model opus",
            "acceptEdits",
            "--permission-mode acceptEdits --model opus",
        ),
        (
            "--permission-mode acceptEdits -c",
            "default",
            "--permission-mode manual -c",
        ),
        (
            "--model opus --permission-mode default",
            "default",
            "--model opus --permission-mode default",
        ),
        ("--permission-mode=plan", "auto", "--permission-mode auto"),
        (
            "--allowedTools Edit Bash",
            "plan",
            "--permission-mode plan --allowedTools Edit Bash",
        ),
        (
            "--dangerously-skip-permissions --verbose",
            "manual",
            "--permission-mode manual --allow-dangerously-skip-permissions --verbose",
        ),
        ("--model opus", "bypassPermissions", "--model opus"),
        (
            "--permission-mode bypassPermissions",
            "bypassPermissions",
            "--permission-mode bypassPermissions",
        ),
        (
            "--permission-mode plan",
            "--dangerously-skip-permissions",
            "--permission-mode plan",
        ),
        (
            "--permission-mode dontAsk",
            "dontAsk",
            "--permission-mode dontAsk",
        ),
    ] {
        let given: Vec<_> = given.split(' ').map(str::to_owned).collect();
        assert_eq!(arguments_in_mode(&given, mode).join(" "), args, "{mode}");
    }
}

#[test]
fn another_model_takes_the_place_of_the_one_in_the_arguments() {
    for (given, args) in [
        ("--model opus --verbose", "--model sonnet --verbose"),
        ("--model=opus[1m] --model haiku", "--model sonnet"),
        ("--add-dir ../a ../b", "--model sonnet --add-dir ../a ../b"),
    ] {
        let given: Vec<_> = given.split(' ').map(str::to_owned).collect();
        assert_eq!(arguments_with_model(&given, "sonnet").join(" "), args);
    }
}

#[test]
fn no_piece_of_a_text_ends_in_the_mention_of_a_file() {
    for (text, whole) in [
        ("one\ntwo\nlook into @notes\nfour\nfive", 2),
        ("@notes\n@a/b.rs\nsee @c\nsee d@e.f\nmore", 2),
        (&format!("{} @notes.md and more", "x".repeat(793)), 2),
        ("a\nb\nc\nd", 2),
        // The client counts UTF-16 units, and four blanks for a tab.
        (&"🦀".repeat(401), 2),
        (&"\t".repeat(401), 3),
        (&format!("{}🦀", "x".repeat(799)), 2),
    ] {
        let pieces = pieces(text);
        assert_eq!((pieces.concat().as_str(), pieces.len()), (text, whole));
        for piece in &pieces {
            let units = piece.replace('\t', "    ").encode_utf16().count();
            assert!(units <= 800, "{units} units");
        }
        for piece in &pieces[..pieces.len() - 1] {
            let last = piece.split_whitespace().last().unwrap_or_default();
            assert!(
                !last.starts_with('@') || piece.ends_with(char::is_whitespace),
                "{piece:?}"
            );
        }
    }
}

#[test]
fn the_prompt_among_the_arguments_is_known() {
    let known = |words: &[&str]| {
        let args: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        user_prompt(&args).map(str::to_owned)
    };
    for words in [
        &["fix it"][..],
        &["--model", "opus", "fix it"],
        &["--verbose", "--", "fix it"],
        &["fix it", "--allowedTools", "Read", "Bash"],
    ] {
        assert_eq!(known(words).as_deref(), Some("fix it"), "{words:?}");
    }
    assert_eq!(known(&["--model", "opus"]), None);
    assert_eq!(known(&["--allowedTools", "Read", "Bash"]), None);
}

#[test]
fn a_flag_that_takes_no_value_takes_no_prompt() {
    for flag in [
        "--restricted",
        "--init",
        "--maintenance",
        "--enable-auto-mode",
        "--include-unsupported-models",
    ] {
        let mut launch = launch(&[flag, "fix it"]);
        assert_eq!(user_prompt(&launch.user_args), Some("fix it"), "{flag}");
        launch.first = false;
        let args = args(&launch);
        assert_eq!(args[..2], [flag, "--session-id"], "{flag}");
    }
}

#[test]
fn an_option_with_several_values_keeps_them_all_in_a_later_session() {
    for option in ["--channels", "--dangerously-load-development-channels"] {
        let mut launch = launch(&[option, "server:one", "server:two"]);
        launch.first = false;
        let args = args(&launch);
        assert_eq!(args[..3], [option, "server:one", "server:two"]);
    }
}
