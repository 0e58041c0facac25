//! `pitstop trust`: allows the project's config file to set more than looks and numbers.

use std::io::{self, Write as _};

use super::out::{self, Failure, Outcome};
use pitstop_base::clean::one_line;
use pitstop_core::config::{
    Config,
    load::{
        paths::Paths,
        trust::{self, Candidate},
    },
};

/// Trust this project's .pitstop/config.toml as it is now, so that it may set commands too
///
/// A project's file may set looks and numbers only, because it may have come with a clone. Trust
/// is given to the file exactly as it is: when it changes, its other keys are ignored again.
#[derive(Clone, Debug, clap::Args)]
pub struct TrustArgs {
    /// Take the trust back
    #[arg(long, conflicts_with = "show")]
    pub revoke: bool,
    /// Show the file and whether it is trusted, and change nothing
    #[arg(long)]
    pub show: bool,
}

/// Shows, trusts or revokes; returns exit code 0 when done, 2 when there is nothing that can be trusted.
pub fn run(args: &TrustArgs) -> Outcome {
    let text = answer(args).map_err(|failure| failure.with_code(out::USAGE))?;
    // As it is: what is trusted must be seen. A reader that has gone away changes nothing about what was done.
    let _ = io::stdout().write_all(text.as_bytes());
    Ok(out::OK)
}

fn answer(args: &TrustArgs) -> Result<String, Failure> {
    let paths = Paths::of_process(&out::project()?)?;
    if args.revoke {
        let said = if trust::revoke(&paths)? {
            "no longer trusted"
        } else {
            "nothing to revoke, it was not trusted"
        };
        let shown = paths.project_config().display().to_string();
        return Ok(format!("{said}: {}\n", one_line(&shown)));
    }
    let candidate = trust::candidate(&paths)?;
    let mut text = show(&candidate);
    if !args.show {
        refuse_faulty(&candidate)?;
        trust::trust(&paths, &candidate)?;
        text.push_str("trusted as it is now; run this again when it changes\n");
    }
    Ok(text)
}

/// Refuses a file with faults: what it would set is not known until they are corrected, and a corrected file is another one.
fn refuse_faulty(candidate: &Candidate) -> Result<(), Failure> {
    let shown = candidate.path.display().to_string();
    let read = Config::from_toml(&shown, &candidate.text);
    read.map(drop).map_err(|_| {
        out::failed(
            format!("{} has faults and is not trusted", one_line(&shown)),
            "`pitstop check` shows them; correct the file, then run `pitstop trust` again",
        )
    })
}

/// Returns the file as it would be trusted, line by line in a form that no terminal acts on.
fn show(candidate: &Candidate) -> String {
    let path = candidate.path.display().to_string();
    let mut text = format!("{}:\n", one_line(&path));
    for line in candidate.text.lines() {
        text.push_str("  | ");
        text.push_str(&one_line(line));
        text.push('\n');
    }
    let state = if candidate.trusted {
        "trusted"
    } else {
        "not trusted"
    };
    let keys = candidate.owner_keys.join(", ");
    text + &if keys.is_empty() {
        "it sets only looks and numbers, which needs no trust\n".to_owned()
    } else {
        format!("in force only when trusted: {keys} ({state} until now)\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_faults_is_not_trusted() {
        for (text, trusted) in [
            ("[agent]\ncommand = \"x\"\n", true),
            ("[guard]\nwarn = 60\n", true),
            ("", true),
            ("[agnt]\ncommand = \"x\"\n", false),
            ("[agent]\ncommand = 5\n", false),
            ("[agent\n", false),
        ] {
            let candidate = Candidate {
                path: "/w/.pitstop/config.toml".into(),
                text: text.to_owned(),
                owner_keys: Vec::new(),
                trusted: false,
            };
            assert_eq!(refuse_faulty(&candidate).is_ok(), trusted, "{text}");
        }
    }

    #[test]
    fn what_is_shown_cannot_hide_or_act() {
        let candidate = Candidate {
            path: "/w/.pitstop/config.toml".into(),
            text: "[agent]\n# \u{1b}[2Jnothing here\u{202e}\ncommand = \"x\"\n".to_owned(),
            owner_keys: vec!["agent.command".to_owned()],
            trusted: false,
        };
        assert_eq!(
            show(&candidate),
            "/w/.pitstop/config.toml:\n  | [agent]\n  | # \\u{1b}[2Jnothing here\\u{202e}\n  | command = \"x\"\nin force only when trusted: agent.command (not trusted until now)\n"
        );
    }
}
