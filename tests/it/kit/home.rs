//! A scratch home: every file that a program under test may touch lies below one directory.

// The kit is shared, and each test uses a part of it.
#![allow(dead_code)]

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fs,
    io::{self, BufRead as _, BufReader, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Any text does as a key for the stand-in API.
const KEY: &str = "sk-ant-a-key-of-no-account-0123456789abcdef";

/// No transcript of a test is larger, unless it is made so to see that it is not read.
const MOST: u64 = 64 << 20;

/// A home directory with a project in it, removed at the end.
pub struct Home {
    root: TempDir,
    project: PathBuf,
}

impl Home {
    /// A home whose project has a plain name.
    pub fn new() -> io::Result<Self> {
        Self::with_project("project")
    }

    /// A home whose project directory is called `name`.
    ///
    /// It lies directly in `/tmp`, for the path of a socket has at most 104 bytes on macOS.
    pub fn with_project(name: &str) -> io::Result<Self> {
        let root = tempfile::Builder::new().prefix("pst").tempdir_in("/tmp")?;
        // The client asks the system for its directory, and on macOS /tmp is a link.
        let project = root.path().canonicalize()?.join(name);
        let home = Self { root, project };
        for dir in [".claude", "run", "state", "config", "data", "cache"] {
            fs::create_dir_all(home.path(dir))?;
        }
        fs::create_dir_all(&home.project)?;
        fs::set_permissions(home.path("run"), fs::Permissions::from_mode(0o700))?;
        fs::write(home.path(".claude.json"), onboarded(&home.project))?;
        Ok(home)
    }

    /// The file or directory `name` below the home.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Writes the executable script `name` below the home, and returns its path.
    pub fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(&path, text).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("a mode");
        path
    }

    /// The project directory, where programs are started.
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// Another project directory `name`, which the client trusts as it does the first one.
    pub fn trusted(&self, name: &str) -> PathBuf {
        let other = self.path(name);
        fs::create_dir(&other).expect("a directory");
        let other = other.canonicalize().expect("a directory");
        let file = self.path(".claude.json");
        let text = fs::read_to_string(&file).expect("the client's own file");
        let mut known: Value = serde_json::from_str(&text).expect("JSON");
        let trusted = known["projects"][&*self.project.to_string_lossy()].clone();
        known["projects"][&*other.to_string_lossy()] = trusted;
        fs::write(&file, known.to_string()).expect("it is written");
        other
    }

    /// Claude Code's own directory, where transcripts are kept.
    pub fn claude_dir(&self) -> PathBuf {
        self.path(".claude")
    }

    /// The whole environment of a hermetic child: nothing else is inherited.
    pub fn env(&self) -> Vec<(OsString, OsString)> {
        let at = |name: &str| self.path(name).into_os_string();
        let path = env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        [
            ("HOME", self.root.path().into()),
            ("PATH", path),
            ("TERM", "xterm-256color".into()),
            ("COLORTERM", "truecolor".into()),
            ("LANG", "C.UTF-8".into()),
            ("TZ", "UTC".into()),
            ("XDG_RUNTIME_DIR", at("run")),
            ("XDG_STATE_HOME", at("state")),
            ("XDG_CONFIG_HOME", at("config")),
            ("XDG_DATA_HOME", at("data")),
            ("XDG_CACHE_HOME", at("cache")),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ]
        .map(|(name, value)| (name.into(), value))
        .to_vec()
    }

    /// [`Self::env`], and what the real client needs to speak to the API at `base_url` alone.
    pub fn claude_env(&self, base_url: &str) -> Vec<(OsString, OsString)> {
        let mut env = self.env();
        env.extend(client_env(base_url));
        env
    }

    /// All transcripts written so far.
    pub fn transcripts(&self) -> Vec<PathBuf> {
        let projects = fs::read_dir(self.claude_dir().join("projects"))
            .into_iter()
            .flatten();
        let mut files: Vec<_> = projects
            .flatten()
            .flat_map(|project| fs::read_dir(project.path()).into_iter().flatten().flatten())
            .map(|file| file.path())
            .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
            .collect();
        files.sort();
        files
    }
}

/// The transcripts of a home, of the demo or of the real client, with the handoffs each was given.
pub fn handoffs(home: &Home) -> BTreeMap<String, usize> {
    let files = all_transcripts(home).into_iter();
    files
        .map(|path| (stem(&path), markers(&path).len()))
        .collect()
}

/// The first lines of all handoffs that were given in a home: each names the one handoff that has it.
pub fn handoff_markers(home: &Home) -> Vec<String> {
    let files = all_transcripts(home);
    files.iter().flat_map(|path| markers(path)).collect()
}

fn all_transcripts(home: &Home) -> Vec<PathBuf> {
    let demo = home.path("state/pitstop/demo/projects");
    let of_demo = fs::read_dir(demo).into_iter().flatten().flatten();
    let of_demo = of_demo
        .flat_map(|dir| fs::read_dir(dir.path()).into_iter().flatten().flatten())
        .map(|file| file.path());
    home.transcripts().into_iter().chain(of_demo).collect()
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

/// The first lines of the prompts of a transcript that are handoffs.
fn markers(path: &Path) -> Vec<String> {
    // What a fault has put in its place may be no file, and have no end.
    if !path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
        return Vec::new();
    }
    let Ok(file) = fs::File::open(path) else {
        return Vec::new();
    };
    let lines = BufReader::new(file.take(MOST)).split(b'\n');
    let prompts = lines
        .map_while(Result::ok)
        .filter_map(|line| serde_json::from_slice::<Value>(&line).ok())
        .filter(|line| line["type"] == "user");
    let first = prompts.filter_map(|line| {
        let content = &line["message"]["content"];
        let text = content.as_str().or_else(|| content[0]["text"].as_str());
        Some(text?.lines().next()?.to_owned())
    });
    first
        .filter(|line| line.starts_with("pitstop handoff"))
        .collect()
}

/// What the real client needs to run with no account and to speak to the API at `base_url` alone.
pub fn client_env(base_url: &str) -> Vec<(OsString, OsString)> {
    [
        ("ANTHROPIC_BASE_URL", base_url),
        ("ANTHROPIC_API_KEY", KEY),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("CLAUDE_CODE_MAX_RETRIES", "1"),
        // A session of a test is over before the optimizing compilers, a tenth of its processor time, have paid.
        ("BUN_JSC_useDFGJIT", "0"),
        ("BUN_JSC_useFTLJIT", "0"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("DISABLE_TELEMETRY", "1"),
        ("DISABLE_ERROR_REPORTING", "1"),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .to_vec()
}

/// What the client keeps to know that its first-run dialogs are over.
pub fn onboarded(project: &Path) -> String {
    let tail = &KEY[KEY.len() - 20..];
    let project = project.to_string_lossy().into_owned();
    let trusted = json!({ "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true });
    json!({
        "hasCompletedOnboarding": true, "lastOnboardingVersion": "2.1.197", "theme": "dark", "hasSeenAutoDefaultNotice": true,
        "customApiKeyResponses": { "approved": [tail], "rejected": [] },
        "projects": { project: trusted },
    })
    .to_string()
}
