//! `pitstop check`: shows whether the configuration is usable, and every error in it.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use serde_json::{Value, json};

use super::template;
use pitstop_base::redact;
use pitstop_core::config::{
    error::{ConfigErrors, Fault, Severity, Style},
    load::{
        self, Flags, Loaded, Source,
        paths::{Paths, project_here},
    },
};

/// Check the configuration and show every error in it
#[derive(Clone, Debug, clap::Args)]
pub struct CheckArgs {
    /// A file to check instead of those that a session here would read
    pub file: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Checks and prints; returns exit code 0 when the configuration can be used, 2 when not.
pub fn run(args: &CheckArgs, flags: &Flags) -> i32 {
    let outcome = check_config(args, flags);
    let usable = outcome.is_ok();
    // An address may hold a password, and what is shown here is pasted into bug reports.
    let text = if args.json {
        format!("{}\n", redact::json(&as_json(&outcome).to_string()))
    } else {
        redact::redact(&as_text(&outcome, super::out::style(&io::stdout()))).into_owned()
    };
    // A reader that has gone away is not a fault of the configuration.
    let _ = io::stdout().write_all(text.as_bytes());
    if usable {
        super::out::OK
    } else {
        super::out::USAGE
    }
}

/// Loads the configuration that a session would start with, or the one named file laid over the defaults.
fn check_config(args: &CheckArgs, flags: &Flags) -> Result<Loaded, ConfigErrors> {
    if let Some(path) = &args.file {
        let config = load::check_file(path)?;
        return Ok(Loaded {
            config,
            warnings: Vec::new(),
            sources: vec![Source::User(path.clone())],
        });
    }
    let general = |message: String| ConfigErrors::from(Fault::general(message, None));
    let project = project_here()
        .map_err(|error| general(format!("cannot find the current directory: {error}")))?;
    let paths = Paths::of_process(&project).map_err(|error| general(error.to_string()))?;
    let loaded = load::load(&paths, flags)?;
    template::generator(&paths).map_err(general)?;
    Ok(loaded)
}

fn as_text(outcome: &Result<Loaded, ConfigErrors>, style: Style) -> String {
    let loaded = match outcome {
        Ok(loaded) => loaded,
        Err(errors) => return errors.render(style),
    };
    let mut text = String::new();
    for warning in &loaded.warnings {
        text.push_str(&warning.render(Severity::Warning, style));
        text.push('\n');
    }
    text.push_str("no errors; in force, the last one wins: the defaults");
    for source in &loaded.sources {
        text.push_str(" < ");
        text.push_str(&pitstop_base::clean::one_line(&describe_source(source)));
    }
    text.push('\n');
    text
}

fn describe_source(source: &Source) -> String {
    match source {
        Source::Project {
            path,
            trusted: true,
        } => format!("{} (trusted)", path.display()),
        Source::User(path) | Source::Project { path, .. } => path.display().to_string(),
        Source::Flag(setting) => format!("--set {setting}"),
    }
}

fn as_json(outcome: &Result<Loaded, ConfigErrors>) -> Value {
    match outcome {
        Ok(loaded) => json!({
            "ok": true,
            "sources": loaded.sources.iter().map(source_json).collect::<Vec<_>>(),
            "warnings": loaded.warnings.iter().map(fault_json).collect::<Vec<_>>(),
        }),
        Err(errors) => json!({
            "ok": false,
            "faults": errors.faults.iter().map(fault_json).collect::<Vec<_>>(),
            "more": errors.more,
        }),
    }
}

fn source_json(source: &Source) -> Value {
    match source {
        Source::User(path) => json!({"kind": "user", "path": path.to_string_lossy()}),
        Source::Project { path, trusted } => {
            json!({"kind": "project", "path": path.to_string_lossy(), "trusted": trusted})
        }
        Source::Flag(setting) => json!({"kind": "flag", "setting": setting}),
    }
}

fn fault_json(fault: &Fault) -> Value {
    json!({
        "file": fault.place.as_ref().map(|place| &place.file),
        "line": fault.place.as_ref().map(|place| place.line),
        "column": fault.place.as_ref().map(|place| place.column),
        "message": fault.message,
        "help": fault.help,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pitstop_core::config::Config;

    #[test]
    fn a_usable_configuration_names_its_sources() {
        let loaded = Loaded {
            config: Config::default(),
            warnings: vec![Fault::general("x is ignored", None)],
            sources: vec![
                Source::User("/home/ada/c.toml".into()),
                Source::Project {
                    path: "/w/.pitstop/config.toml".into(),
                    trusted: true,
                },
                Source::Flag("ui.theme=dark".to_owned()),
            ],
        };
        let outcome = Ok(loaded);
        assert_eq!(
            as_text(&outcome, Style::Plain),
            "warning: x is ignored\n\nno errors; in force, the last one wins: the defaults < /home/ada/c.toml < /w/.pitstop/config.toml (trusted) < --set ui.theme=dark\n"
        );
        let json = as_json(&outcome);
        assert_eq!(json["ok"], true);
        assert_eq!(json["sources"][1]["trusted"], true);
        assert_eq!(json["warnings"][0]["message"], "x is ignored");
    }

    #[test]
    fn faults_are_objects_with_their_place() {
        let outcome = Config::from_toml("c.toml", "[guard]\nwran = 70\n").map(|config| Loaded {
            config,
            warnings: Vec::new(),
            sources: Vec::new(),
        });
        let json = as_json(&outcome);
        assert_eq!(
            json,
            json!({"ok": false, "more": 0, "faults": [{
                "file": "c.toml", "line": 2, "column": 1,
                "message": "unknown key `wran` in [guard]",
                "help": "did you mean `warn`?",
            }]})
        );
    }
}
