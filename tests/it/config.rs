//! Configuration: every bad file gives its exact message, and a cloned project has no vote.
//!
//! `tests/fixtures/config/bad/*.toml` each stand beside the `.txt` they must give. After a wanted
//! change run the tests with `UPDATE_FIXTURES=1` and read the difference.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsString,
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    time::Duration,
};

use pitstop_base::keymap::Action;
use pitstop_core::config::{
    Config, DEFAULT_TOML, RebootMode, ThemeName,
    error::{ConfigErrors, Fault, Severity, Style},
    load::{
        self, Flags, Loaded, Source,
        paths::{DirError, Paths, PathsError, Surroundings, ensure_private_dir, project_hash},
        trust,
    },
};

fn fixtures(kind: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/config");
    let mut paths: Vec<PathBuf> = fs::read_dir(directory.join(kind))
        .expect("the fixtures")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    paths.sort();
    paths
}

/// A home, a project and nothing of the machine's own.
struct Place {
    root: tempfile::TempDir,
    paths: Paths,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let home = root.path().join("home");
        let project = root.path().join("project");
        fs::create_dir_all(&home).expect("a home");
        fs::create_dir_all(project.join(".pitstop")).expect("a project");
        let surroundings = Surroundings {
            variable: &|name| (name == "HOME").then(|| home.clone().into_os_string()),
            home: &|| None,
            uid: 1000,
        };
        let paths = Paths::find(&surroundings, &project).expect("a home");
        Self { root, paths }
    }

    fn user(&self, text: &str) -> &Self {
        fs::create_dir_all(self.paths.config_dir()).expect("a directory");
        fs::write(self.paths.user_config(), text).expect("written");
        self
    }

    fn project(&self, text: &str) -> &Self {
        fs::write(self.paths.project_config(), text).expect("written");
        self
    }

    fn load(&self) -> Result<Loaded, ConfigErrors> {
        load::load(&self.paths, &Flags::default())
    }

    fn loaded(&self) -> Loaded {
        self.load().unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn trust(&self) {
        let candidate = trust::candidate(&self.paths).expect("a file to trust");
        trust::trust(&self.paths, &candidate).expect("trusted");
    }
}

fn messages(faults: &[Fault]) -> Vec<&str> {
    faults.iter().map(|fault| fault.message.as_str()).collect()
}

#[test]
fn every_bad_file_gives_its_exact_message() {
    let update = std::env::var_os("UPDATE_FIXTURES").is_some();
    let all = fixtures("bad");
    assert!(all.len() >= 25, "{} fixtures", all.len());
    let mut wrong = Vec::new();
    for path in all {
        let name = path.file_name().expect("a name").to_string_lossy();
        let text = fs::read_to_string(&path).expect("UTF-8");
        let errors = Config::from_toml(&name, &text).expect_err(&name);
        let shown = errors.render(Style::Plain);
        let hidden = |c: char| c.is_control() && c != '\n';
        assert!(!shown.chars().any(hidden), "{name}: {shown:?}");
        let expected = path.with_extension("txt");
        if update {
            fs::write(&expected, &shown).expect("written");
        }
        let wanted = fs::read_to_string(&expected).unwrap_or_default();
        if shown != wanted {
            wrong.push(format!("{name}: expected\n{wanted}\nfound\n{shown}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_the_commented_file_shows_as_comment_is_right_too() {
    // `# notice = 50   # …` is a setting that is left to the preset; `# env = { … }` is an example.
    let lines = ["notice", "warn", "compact"];
    let caps = ["notice_tokens", "warn_tokens", "compact_tokens"];
    let shown = lines
        .iter()
        .chain(&caps)
        .fold(DEFAULT_TOML.to_owned(), |text, name| {
            text.replace(&format!("\n# {name} = "), &format!("\n{name} = "))
        });
    assert_ne!(shown, DEFAULT_TOML);
    let parsed = Config::from_toml("config.toml", &shown).expect("usable");
    assert_eq!(parsed, Config::default());
}

#[test]
fn the_commented_file_sets_every_key() {
    // The defaults are read from it: what it does not set would be empty.
    let left_to_the_preset = |table: &str, name: &str| {
        let name = name.trim_end_matches("_tokens");
        table == "guard" && ["notice", "warn", "compact"].contains(&name)
    };
    for line in DEFAULT_TOML.lines() {
        let line = line.trim_start_matches("# ");
        assert!(line.len() <= 100, "too wide to read: {line}");
    }
    let keys = include_str!("../../crates/core/src/config/schema.rs");
    let rows = keys.lines().filter_map(|line| {
        let mut words = line.trim().strip_prefix("key(\"")?.split('"');
        Some((words.next()?.to_owned(), words.nth(1)?.to_owned()))
    });
    let actions = Action::all().map(|action| ("keys".to_owned(), action.name().to_owned()));
    let mut count = 0;
    for (table, name) in rows.chain(actions) {
        let start = DEFAULT_TOML.find(&format!("[{table}]")).expect(&table);
        let section = &DEFAULT_TOML[start..];
        let section = section.find("\n[").map_or(section, |end| &section[..end]);
        let shown = section.lines().any(|line| {
            let may_be_a_comment = left_to_the_preset(&table, &name) || name == "env";
            let line = line
                .strip_prefix("# ")
                .filter(|_| may_be_a_comment)
                .unwrap_or(line);
            line.starts_with(&format!("{name} = "))
        });
        assert!(shown, "config.toml does not set {table}.{name}");
        count += 1;
    }
    assert!(count > 60, "{count}");
}

#[test]
fn defaults_are_overlaid_by_user_project_and_flags_in_this_order() {
    let place = Place::new();
    assert_eq!(place.loaded().config, Config::default());
    assert!(place.loaded().sources.is_empty());
    place
        .user("[guard]\nwarn = 60\ncompact = 80\n[ui]\ntheme = \"light\"\nscrollback_lines = 1\n")
        .project("[guard]\nwarn = 65\n[ui]\ntheme = \"dark\"\n");
    let flags = Flags {
        file: None,
        settings: vec![
            "ui.theme=mono".to_owned(),
            "reboot.mode = \"auto\"".to_owned(),
        ],
    };
    let loaded = load::load(&place.paths, &flags).expect("usable");
    let config = loaded.config;
    assert_eq!(config.guard.notice, 50);
    assert_eq!(config.guard.warn, 65);
    assert_eq!(config.guard.compact, 80);
    assert_eq!(config.ui.theme, ThemeName::Mono);
    assert_eq!(config.ui.scrollback_lines, 1);
    assert_eq!(config.reboot.mode, RebootMode::Auto);
    assert_eq!(loaded.warnings, []);
    assert_eq!(
        loaded.sources,
        [
            Source::User(place.paths.user_config()),
            Source::Project {
                path: place.paths.project_config(),
                trusted: false
            },
            Source::Flag("ui.theme=mono".to_owned()),
            Source::Flag("reboot.mode = \"auto\"".to_owned()),
        ]
    );
}

#[test]
fn explicit_lines_win_over_a_preset_in_any_layer() {
    let place = Place::new();
    place
        .user("[guard]\nwarn = 75\n")
        .project("[guard]\npreset = \"late\"\n");
    let guard = place.loaded().config.guard;
    assert_eq!([guard.notice, guard.warn, guard.compact], [70, 75, 90]);
    // A share of one's own is meant in any window: the preset's bound does not count for it.
    place.project("[guard]\ncompact = 90\n");
    let guard = place.loaded().config.guard;
    assert_eq!(
        [guard.notice_tokens, guard.warn_tokens, guard.compact_tokens],
        [Some(90_000), None, None]
    );
}

#[test]
fn the_lean_preset_caps_the_lines_and_the_user_s_own_caps_win() {
    let caps = |text: &str| {
        let guard = Config::from_toml("config.toml", text)
            .expect("usable")
            .guard;
        assert_eq!([guard.notice, guard.warn, guard.compact], [50, 70, 85]);
        [guard.notice_tokens, guard.warn_tokens, guard.compact_tokens]
    };
    let lean = [Some(120_000), Some(170_000), Some(220_000)];
    assert_eq!(caps("[guard]\npreset = \"lean\"\n"), lean);
    assert_eq!(
        caps("[guard]\nwarn_tokens = 200000\npreset = \"lean\"\ncompact_tokens = 0\n"),
        [Some(120_000), Some(200_000), None]
    );
    // A cap of the preset's that contradicts one of theirs gives way.
    assert_eq!(
        caps("[guard]\ncompact_tokens = 100000\n"),
        [Some(90_000), None, Some(100_000)]
    );
    assert_eq!(
        caps("[guard]\nnotice_tokens = 150000\n"),
        [Some(150_000), None, Some(153_000)]
    );
    let place = Place::new();
    place
        .user("[guard]\npreset = \"lean\"\n")
        .project("[guard]\ncompact_tokens = 250000\n");
    assert_eq!(place.loaded().config.guard.compact_tokens, Some(250_000));
}

#[test]
fn values_arrive_ready_to_use() {
    let text = r#"
        [agent]
        command = "claude"
        args = ["--model", "opus"]
        env = { A = "1" }
        [context]
        window = 1_000_000
        checkpoint_interval = 0
        [reboot]
        warmup_prompt = "read the plan"
        auto_delay = "1m30s"
        [loop]
        max_time = 0
        max_cost_usd = 3
        [api]
        listen = "[::1]:0"
        [recording]
        max_size = 1048576
        [keys]
        quit = []
        reboot = ["ctrl-g", "prefix R"]
    "#;
    let config = Config::from_toml("c.toml", text).expect("usable");
    assert_eq!(config.agent.args, ["--model", "opus"]);
    assert_eq!(config.agent.env["A"], "1");
    assert_eq!(config.context.window, Some(1_000_000));
    assert_eq!(config.context.checkpoint_interval, None);
    assert_eq!(
        config.reboot.warmup_prompt.as_deref(),
        Some("read the plan")
    );
    assert_eq!(config.reboot.auto_delay, Duration::from_secs(90));
    assert_eq!(config.autopilot.max_time, None);
    assert_eq!(config.autopilot.max_cost_usd, Some(3.0));
    assert!(config.api.listen.expect("an address").ip().is_loopback());
    assert_eq!(config.recording.max_size, 1 << 20);
    assert_eq!(config.keys.hint(Action::Quit), None);
    assert_eq!(config.keys.hint(Action::Reboot).as_deref(), Some("Ctrl-g"));
    assert_eq!(config.keys.hint(Action::Help).as_deref(), Some("F1"));
}

#[test]
fn faults_of_all_files_are_reported_together() {
    let place = Place::new();
    place
        .user("[ui]\nthem = 1\n")
        .project("[guard]\nwarn = 0\n");
    let flags = Flags {
        file: None,
        settings: vec!["reboot.mode=never".to_owned(), "mode=auto".to_owned()],
    };
    let errors = load::load(&place.paths, &flags).expect_err("four faults");
    assert_eq!(
        messages(&errors.faults),
        [
            "expected TABLE.KEY=VALUE after --set, found `mode=auto`",
            "unknown key `them` in [ui]",
            "expected a whole number from 1 to 99, found the number 0",
            "expected \"manual\", \"ask\" or \"auto\", found the text \"never\"",
        ]
    );
    let flag = errors.faults[3].render(Severity::Error, Style::Plain);
    assert!(flag.contains("--> --set reboot.mode=never:1:15"), "{flag}");
}

#[test]
fn a_fault_between_files_stands_where_it_was_written_last() {
    let place = Place::new();
    place
        .user("[guard]\ncompact = 80\n")
        .project("[guard]\nwarn = 90\n");
    let errors = place.load().expect_err("lines that fall");
    let fault = &errors.faults[0];
    assert_eq!(
        fault.message,
        "expected `compact` above `warn` (90), found 80"
    );
    assert!(fault.line().contains("config.toml:2:"), "{}", fault.line());
}

#[test]
fn a_hundred_thousand_faults_are_counted_and_not_all_shown() {
    use std::fmt::Write as _;
    let mut text = String::from("[ui]\n");
    for number in 0..50_000 {
        writeln!(text, "k{number} = 1").expect("a string");
    }
    let errors = Config::from_toml("c.toml", &text).expect_err("many faults");
    assert_eq!(errors.faults.len(), 50);
    assert_eq!(errors.more, 49_950);
    let shown = errors.render(Style::Plain);
    assert!(shown.ends_with("50000 errors in the configuration, 50 of them shown\n"));
}

/// Each hostile project's file, beside the keys that must be named and ignored, one a line.
#[test]
fn hostile_projects_are_ignored_key_by_key_and_named() {
    let all = fixtures("hostile");
    assert!(all.len() >= 20, "{} fixtures", all.len());
    for path in all {
        let name = path.display();
        let text = fs::read_to_string(&path).expect("UTF-8");
        let wanted = fs::read_to_string(path.with_extension("txt")).expect("the keys");
        let place = Place::new();
        place.project(&text);
        let loaded = place.loaded();
        let ignored: Vec<&str> = loaded
            .warnings
            .iter()
            .map(|warning| {
                let help = warning.help.as_deref();
                assert_eq!(
                    help,
                    Some("read the file; if you trust it, run `pitstop trust`")
                );
                warning.message.split('`').nth(1).expect("a key")
            })
            .collect();
        assert_eq!(ignored, wanted.lines().collect::<Vec<_>>(), "{name}");
        assert_eq!(loaded.config, Config::default(), "{name}");

        place.trust();
        let trusted = place.loaded();
        assert_eq!(trusted.warnings, [], "{name}");
        assert_ne!(trusted.config, Config::default(), "{name} is no attack");
    }
}

#[test]
fn a_project_that_changed_after_it_was_trusted_is_asked_about_again() {
    let place = Place::new();
    place.project("[agent]\ncommand = \"good\"\n");
    assert_eq!(place.loaded().warnings.len(), 1);
    place.trust();
    assert_eq!(place.loaded().config.agent.command, "good");
    assert!(trust::candidate(&place.paths).expect("a file").trusted);

    place.project("[agent]\ncommand = \"evil\"\n");
    let changed = place.loaded();
    assert_eq!(changed.config.agent.command, "claude");
    assert_eq!(
        messages(&changed.warnings),
        ["`agent.command` is ignored: an untrusted project may set looks and numbers only"]
    );

    place.project("[agent]\ncommand = \"good\"\n");
    assert_eq!(place.loaded().config.agent.command, "good");
    assert!(trust::revoke(&place.paths).expect("revoked"));
    assert!(!trust::revoke(&place.paths).expect("nothing left"));
    assert_eq!(place.loaded().config.agent.command, "claude");
}

#[test]
fn what_is_trusted_is_what_was_shown() {
    let place = Place::new();
    place.project("[agent]\ncommand = \"good\"\n");
    let shown = trust::candidate(&place.paths).expect("a file");
    assert_eq!(shown.owner_keys, ["agent.command"]);
    place.project("[agent]\ncommand = \"evil\"\n");
    trust::trust(&place.paths, &shown).expect("trusted");
    assert_eq!(place.loaded().config.agent.command, "claude");
}

#[test]
fn a_copy_of_a_trusted_file_in_another_project_is_not_trusted() {
    let place = Place::new();
    let text = "[hooks]\npre_reboot = \"make\"\n";
    place.project(text);
    place.trust();
    let other = place.root.path().join("other");
    fs::create_dir_all(other.join(".pitstop")).expect("made");
    fs::write(other.join(".pitstop/config.toml"), text).expect("written");
    let home = place.root.path().join("home");
    let surroundings = Surroundings {
        variable: &|name| (name == "HOME").then(|| home.clone().into_os_string()),
        home: &|| None,
        uid: 1000,
    };
    let paths = Paths::find(&surroundings, &other).expect("a home");
    let loaded = load::load(&paths, &Flags::default()).expect("usable");
    assert_eq!(loaded.config.hooks.pre_reboot, None);
    assert_eq!(loaded.warnings.len(), 1);
}

#[test]
fn the_trust_record_is_private_and_not_believed_when_others_can_write_it() {
    let place = Place::new();
    place.project("[agent]\ncommand = \"good\"\n");
    place.trust();
    let record = place.paths.trust_record();
    let meta = record.metadata().expect("a record");
    assert_eq!(meta.mode() & 0o777, 0o600);
    let state = place.paths.state_dir().metadata().expect("a directory");
    assert_eq!(state.mode() & 0o777, 0o700);

    fs::set_permissions(&record, fs::Permissions::from_mode(0o666)).expect("opened");
    let loaded = place.loaded();
    assert_eq!(loaded.config.agent.command, "claude");
    assert!(
        loaded.warnings[0]
            .message
            .contains("mode 666; no project is trusted")
    );

    let real = place.root.path().join("elsewhere");
    fs::set_permissions(&record, fs::Permissions::from_mode(0o600)).expect("closed");
    fs::rename(&record, &real).expect("moved");
    symlink(&real, &record).expect("linked");
    assert_eq!(place.loaded().config.agent.command, "claude");
}

#[test]
fn a_project_file_behind_a_link_or_of_another_kind_is_ignored_with_a_warning() {
    let evil = "[ui]\ntheme = \"dark\"\n";
    let file = |place: &Place| place.paths.project_config();
    let outside = |place: &Place| {
        let path = place.root.path().join("outside");
        fs::create_dir_all(&path).expect("made");
        fs::write(path.join("config.toml"), evil).expect("written");
        path
    };
    let linked = Place::new();
    symlink(outside(&linked).join("config.toml"), file(&linked)).expect("linked");

    let linked_directory = Place::new();
    fs::remove_dir(linked_directory.paths.project_dir()).expect("removed");
    let directory = outside(&linked_directory);
    symlink(directory, linked_directory.paths.project_dir()).expect("linked");

    let directory = Place::new();
    fs::create_dir(file(&directory)).expect("made");

    let large = Place::new();
    large.project(&format!("#{}", "x".repeat(2 << 20)));

    let binary = Place::new();
    fs::write(file(&binary), b"[ui]\n\xff\xfe").expect("written");

    for (place, why) in [
        (&linked, "found a link"),
        (&linked_directory, "found a link or a file as its directory"),
        (&directory, "found something else"),
        (&large, "to be at most 1048576 bytes, found more"),
        (&binary, "to be UTF-8, found another byte in line 2"),
    ] {
        let loaded = place.loaded();
        assert_eq!(loaded.config, Config::default(), "{why}");
        assert_eq!(loaded.warnings.len(), 1, "{why}");
        let message = &loaded.warnings[0].message;
        assert!(message.ends_with(why), "{message}");
        assert!(loaded.sources.is_empty());
    }
}

#[test]
fn a_pipe_in_place_of_a_file_is_refused_at_once() {
    let place = Place::new();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let kind = rustix::fs::FileType::Fifo;
    let path = place.paths.project_config();
    rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).expect("a pipe");
    assert!(
        place.loaded().warnings[0]
            .message
            .ends_with("found something else")
    );
}

#[test]
fn a_file_beside_the_users_is_read_with_the_same_care() {
    let place = Place::new();
    fs::create_dir_all(place.paths.config_dir()).expect("made");
    let at = |name: &str| place.paths.config_dir().join(name);
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), fifo, mode, 0).expect("a pipe");
    for (name, to) in [("endless", "/dev/zero".into()), ("gone", at("none"))] {
        symlink(to, at(name)).expect("linked");
    }
    fs::write(at("bytes"), b"\xff").expect("written");
    fs::write(at("large"), vec![b'x'; 4 << 20]).expect("written");
    fs::write(at("text"), "{{ objective }}").expect("written");
    for name in ["pipe", "endless", "gone", "bytes", "large"] {
        let fault = load::read_beside(&at(name)).expect_err(name);
        assert!(fault.line().contains(name), "{fault:?}");
    }
    let read = load::read_beside(&at("text"));
    assert_eq!(read.expect("read").as_deref(), Some("{{ objective }}"));
    assert_eq!(load::read_beside(&at("none")), Ok(None));
}

#[test]
fn a_store_is_a_url_with_which_it_can_be_opened() {
    let place = Place::new();
    for (url, works) in [
        ("", true),
        ("sqlite:///home/ada/p.db", true),
        ("postgres://host/db?sslmode=require", true),
        ("postgresql://host", true),
        ("sqlite:data/p.db", false),
        ("sqlite:/abs/p.db", false),
        ("sqlite://relative.db", false),
        ("sqlite://", false),
        ("sqlite:///", false),
        ("sqlite:///p.db?mode=ro", false),
        ("postgres://", false),
    ] {
        place.user(&format!("[store]\nurl = {url:?}\n"));
        assert_eq!(place.load().is_ok(), works, "{url}");
    }
}

#[test]
fn a_users_file_may_be_a_link_but_not_writable_by_everyone() {
    let place = Place::new();
    let dotfiles = place.root.path().join("dotfiles.toml");
    fs::write(&dotfiles, "[ui]\ntheme = \"dark\"\n").expect("written");
    fs::create_dir_all(place.paths.config_dir()).expect("made");
    symlink(&dotfiles, place.paths.user_config()).expect("linked");
    assert_eq!(place.loaded().config.ui.theme, ThemeName::Dark);

    fs::set_permissions(&dotfiles, fs::Permissions::from_mode(0o666)).expect("opened");
    let errors = place.load().expect_err("writable by everyone");
    let message = &errors.faults[0].message;
    assert!(message.contains("writable by you alone") && message.ends_with("mode 666"));
}

#[test]
fn a_users_link_to_nothing_is_no_missing_file() {
    let place = Place::new();
    fs::create_dir_all(place.paths.config_dir()).expect("made");
    assert!(place.load().is_ok());
    symlink(
        place.root.path().join("gone.toml"),
        place.paths.user_config(),
    )
    .expect("linked");
    let errors = place.load().expect_err("a link to nothing");
    let message = &errors.faults[0].message;
    assert!(message.starts_with("cannot read "), "{message}");
}

#[test]
fn a_named_file_has_to_exist() {
    let place = Place::new();
    let flags = Flags {
        file: Some(place.root.path().join("absent.toml")),
        settings: Vec::new(),
    };
    let errors = load::load(&place.paths, &flags).expect_err("no file");
    assert!(
        errors.faults[0].message.starts_with("cannot read "),
        "{errors}"
    );
}

#[test]
fn directories_follow_the_environment() {
    struct Case {
        variables: &'static [(&'static str, &'static str)],
        database: Option<&'static str>,
        config: &'static str,
        state: &'static str,
        runtime: &'static str,
    }
    let cases = [
        Case {
            variables: &[("HOME", "/h")],
            database: None,
            config: "/h/.config/pitstop",
            state: "/h/.local/state/pitstop",
            runtime: "/h/.local/state/pitstop/run",
        },
        Case {
            variables: &[
                ("HOME", "/h"),
                ("XDG_CONFIG_HOME", "/c"),
                ("XDG_STATE_HOME", "/s"),
                // A logout removes it.
                ("XDG_RUNTIME_DIR", "/run/user/1000"),
            ],
            database: None,
            config: "/c/pitstop",
            state: "/s/pitstop",
            runtime: "/s/pitstop/run",
        },
        // Relative and empty paths count as not set.
        Case {
            variables: &[
                ("HOME", "/h"),
                ("XDG_CONFIG_HOME", "c"),
                ("XDG_STATE_HOME", ""),
            ],
            database: None,
            config: "/h/.config/pitstop",
            state: "/h/.local/state/pitstop",
            runtime: "/h/.local/state/pitstop/run",
        },
        Case {
            variables: &[],
            database: Some("/home/ada"),
            config: "/home/ada/.config/pitstop",
            state: "/home/ada/.local/state/pitstop",
            runtime: "/tmp/pitstop-1000",
        },
        Case {
            variables: &[("HOME", ""), ("XDG_STATE_HOME", "/s")],
            database: Some("/home/ada"),
            config: "/home/ada/.config/pitstop",
            state: "/s/pitstop",
            runtime: "/s/pitstop/run",
        },
        Case {
            variables: &[("XDG_CONFIG_HOME", "/c"), ("XDG_STATE_HOME", "/s")],
            database: None,
            config: "/c/pitstop",
            state: "/s/pitstop",
            runtime: "/s/pitstop/run",
        },
    ];
    for case in cases {
        let variables: HashMap<&str, &str> = case.variables.iter().copied().collect();
        let surroundings = Surroundings {
            variable: &|name| variables.get(name).map(OsString::from),
            home: &|| case.database.map(PathBuf::from),
            uid: 1000,
        };
        let paths = Paths::find(&surroundings, Path::new("/w")).expect("a home");
        assert_eq!(paths.config_dir(), Path::new(case.config));
        assert_eq!(paths.state_dir(), Path::new(case.state));
        assert_eq!(paths.run_dir(), Path::new(case.runtime));
        assert_eq!(paths.log_dir(), Path::new(case.state).join("log"));
        assert_eq!(paths.project_config(), Path::new("/w/.pitstop/config.toml"));
    }
}

#[test]
fn a_socket_whose_path_would_be_too_long_lies_in_the_fallback() {
    for (length, expected) in [(50, "/s"), (87, "/tmp/pitstop-1000/0123456789abcdef.sock")] {
        let state = format!("/s{}", "x".repeat(length));
        let surroundings = Surroundings {
            variable: &|name| (name == "XDG_STATE_HOME").then(|| state.clone().into()),
            home: &|| Some(PathBuf::from("/h")),
            uid: 1000,
        };
        let paths = Paths::find(&surroundings, Path::new("/w")).expect("a home");
        let mut sockets = paths.control_sockets("0123456789abcdef");
        let socket = sockets.next().expect("a place");
        assert!(
            socket
                .to_str()
                .is_some_and(|path| path.starts_with(expected) && path.len() <= 103)
        );
        // The secrets stay where every client looks for them.
        assert!(paths.run_dir().starts_with(&state));
    }
}

#[test]
fn without_any_home_the_error_says_what_to_set() {
    for home in [None, Some(PathBuf::from("relative"))] {
        let surroundings = Surroundings {
            variable: &|name| (name == "XDG_CONFIG_HOME").then(|| "/c".into()),
            home: &|| home.clone(),
            uid: 1000,
        };
        let error = Paths::find(&surroundings, Path::new("/w")).expect_err("no home");
        assert_eq!(error, PathsError::NoHome);
        assert!(error.to_string().contains("set HOME, or XDG_CONFIG_HOME"));
    }
}

#[test]
fn one_directory_has_one_hash_by_whatever_way_it_is_reached() {
    let root = tempfile::tempdir().expect("a directory");
    let real = root.path().join("real");
    fs::create_dir(&real).expect("made");
    symlink(&real, root.path().join("link")).expect("linked");
    let hash = project_hash(&real).expect("hashed");
    assert_eq!(hash.len(), 16);
    assert!(hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(
        project_hash(&root.path().join("link")).expect("hashed"),
        hash
    );
    assert_ne!(project_hash(root.path()).expect("hashed"), hash);
    // One that is gone is known by the path that it had.
    let gone = real.canonicalize().expect("its path");
    fs::remove_dir(&gone).expect("removed");
    assert_eq!(project_hash(&gone).expect("hashed"), hash);
    assert!(project_hash("absent".as_ref()).is_err());
}

#[test]
fn a_private_directory_is_made_with_all_above_it() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("a/b/c");
    ensure_private_dir(&path).expect("made");
    ensure_private_dir(&path).expect("found");
    for made in [path.clone(), root.path().join("a")] {
        assert_eq!(made.metadata().expect("there").mode() & 0o777, 0o700);
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("opened");
    ensure_private_dir(&path).expect("closed again");
    assert_eq!(path.metadata().expect("there").mode() & 0o777, 0o700);
}

#[test]
fn a_directory_that_others_prepared_is_refused() {
    let root = tempfile::tempdir().expect("a directory");
    let open = root.path().join("open");
    fs::create_dir(&open).expect("made");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("opened");
    let target = root.path().join("target");
    fs::create_dir(&target).expect("made");
    let link = root.path().join("link");
    symlink(&target, &link).expect("linked");
    let file = root.path().join("file");
    fs::write(&file, "").expect("written");
    for (path, why) in [
        (open.clone(), "to be writable by you alone, found mode 777"),
        (link, "to be a directory, found a link or a file"),
        (file, "to be a directory, found a link or a file"),
        (
            open.join("below"),
            "to be sticky, or not writable by everyone, found mode 0777",
        ),
    ] {
        let error = ensure_private_dir(&path).expect_err(why);
        assert!(matches!(error, DirError::Unsafe { .. }), "{error}");
        assert!(error.to_string().ends_with(why), "{error}");
    }
}

/// Whose files we cannot make without being root; then the root directory's own serves.
#[test]
fn a_directory_of_another_user_is_refused() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("theirs");
    fs::create_dir(&path).expect("made");
    let theirs = if std::os::unix::fs::chown(&path, Some(12_345), None).is_ok() {
        path
    } else {
        PathBuf::from("/usr")
    };
    let error = ensure_private_dir(&theirs).expect_err("not ours");
    assert!(
        error
            .to_string()
            .contains("to be owned by you, found owner"),
        "{error}"
    );
}

/// The code of all crates outside the configuration, without unit tests, comments and white space.
fn code_outside_of_the_configuration() -> String {
    let mut code = String::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut open = vec![root.join("src"), root.join("crates")];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).expect("a directory").flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            if path.is_dir() && name != "config" && name != "tests" {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") && name != "tests.rs" {
                let text = fs::read_to_string(path).expect("a source file");
                let text = text.split("#[cfg(test)]\nmod tests {").next();
                let lines = text.unwrap_or_default().lines().map(str::trim);
                code.extend(lines.filter(|line| !line.starts_with("//")));
                code.push('\n');
            }
        }
    }
    code
}

/// Nothing that is set is without effect: each field of the configuration is read somewhere outside of it, and a name that
/// two tables have at least twice.
#[test]
fn every_key_is_read_outside_of_the_configuration() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/core/src/config/mod.rs");
    let source = fs::read_to_string(source).expect("a source file");
    let mut fields: BTreeMap<&str, usize> = BTreeMap::new();
    let lines = source.lines().take_while(|line| *line != "#[cfg(test)]");
    for line in lines {
        let field = line
            .strip_prefix("    pub ")
            .and_then(|line| line.split_once(':'));
        if let Some((name, _)) = field {
            *fields.entry(name).or_default() += 1;
        }
    }
    assert!(fields.len() > 60, "{fields:?}");
    let code = code_outside_of_the_configuration();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for (field, tables) in fields {
        let read = code
            .match_indices(&format!(".{field}"))
            .filter(|(at, found)| !code[at + found.len()..].starts_with(is_name))
            .count();
        assert!(
            read >= tables,
            "nothing reads `{field}`: {read} of {tables}"
        );
    }
}

#[test]
fn the_file_of_a_flag_and_what_a_link_leads_to_are_watched() {
    let root = tempfile::tempdir().expect("a directory");
    let surroundings = Surroundings {
        variable: &|name| (name == "XDG_CONFIG_HOME").then(|| root.path().into()),
        home: &|| Some(root.path().to_owned()),
        uid: 1000,
    };
    let paths = Paths::find(&surroundings, root.path()).expect("paths");
    fs::create_dir_all(paths.config_dir()).expect("made");
    let target = root.path().canonicalize().expect("real").join("dot.toml");
    fs::write(&target, "").expect("written");
    symlink(&target, paths.user_config()).expect("linked");
    let flags = Flags {
        file: Some("/x/team.toml".into()),
        ..Flags::default()
    };
    let watched = flags.watched(&paths);
    for file in [paths.user_config(), target, "/x/team.toml".into()] {
        assert!(watched.contains(&file), "{watched:?}");
    }
}
