//! `pitstop man`: the manual pages. The first is made from the command line as it is defined, the default keymap, the table of exit
//! codes, the places of files, and the README's examples.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::{Args, Command};
use clap_mangen::{
    Man,
    roff::{Roff, bold, roman},
};

use super::{
    out::{self, Outcome},
    version,
};
use pitstop_base::{
    exit,
    keymap::{Keymap, Trigger},
};
use pitstop_core::config::load::paths::{Paths, Surroundings};
use pitstop_store::SCRATCHPAD;

/// Print the manual page, or write all of them into a directory.
///
/// For example: pitstop man | man -l -
#[derive(Args, Clone, Debug)]
pub struct ManArgs {
    /// The directory for `pitstop.1` and a page for each command; without it the first goes to standard output
    #[arg(value_name = "DIRECTORY")]
    pub directory: Option<PathBuf>,
}

/// Runs the command; `program` is the whole command line as it is defined.
pub fn run(args: &ManArgs, program: Command) -> Outcome {
    let done = match &args.directory {
        None => program_page(program),
        Some(directory) => write_pages(directory, program).map(|()| String::new()),
    };
    let text =
        done.map_err(|error| out::failed(format!("cannot write the manual: {error}"), ""))?;
    Ok(out::print(&text))
}

fn write_pages(directory: &Path, program: Command) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut built = program.clone().disable_help_subcommand(true);
    built.build();
    write_pages_below(directory, &built)?;
    fs::write(directory.join("pitstop.1"), program_page(program)?)
}

/// Writes a page for each command below this one.
fn write_pages_below(directory: &Path, command: &Command) -> io::Result<()> {
    for command in command.get_subcommands() {
        write_pages_below(directory, command)?;
        let page = manual_of(command.clone());
        let mut text = Vec::new();
        page.render(&mut text)?;
        // Between a text and the values of its argument an empty line is enough.
        let text = String::from_utf8_lossy(&text).replace("\n.br\n\n.br\n", "\n\n");
        fs::write(directory.join(page.get_filename()), text)?;
    }
    Ok(())
}

/// The date of the commit; a blank where it is not known, or what follows it in the heading would be taken for a date.
const DATE: &str = if env!("PITSTOP_COMMIT_DATE").is_empty() {
    " "
} else {
    env!("PITSTOP_COMMIT_DATE")
};

fn manual_of(command: Command) -> Man {
    Man::new(command)
        .date(DATE)
        .source(concat!("pitstop ", env!("CARGO_PKG_VERSION")))
        .manual("Manual of pitstop")
}

/// Returns the page of the program itself.
fn program_page(program: Command) -> io::Result<String> {
    let program = program
        .disable_help_subcommand(true)
        .subcommand_help_heading("COMMANDS")
        .subcommand_value_name("COMMAND");
    let man = manual_of(program);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    man.render_subcommands_section(&mut page)?;
    let mut own = Roff::new();
    add_keys(&mut own);
    own.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in exit::MEANINGS {
        add_entry(&mut own, &code.to_string(), meaning);
    }
    own.control("SH", ["FILES"]);
    for (path, text) in file_places() {
        add_entry(&mut own, &path, text);
    }
    own.control("SH", ["ENVIRONMENT"]);
    for (name, text) in ENVIRONMENT {
        add_entry(&mut own, name, text);
    }
    own.control("SH", ["EXAMPLES"]);
    for (command, text) in examples() {
        add_entry(&mut own, command, text);
    }
    own.control("SH", ["VERSION"]);
    for (at, line) in version::long().lines().enumerate() {
        if at > 0 {
            own.control("br", []);
        }
        own.text([roman(line)]);
    }
    own.to_writer(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn add_entry(page: &mut Roff, term: &str, text: &str) {
    page.control("TP", []).text([bold(term)]);
    page.text([roman(text)]);
}

/// Adds what `F1` lists, with the default keys.
fn add_keys(page: &mut Roff) {
    let keymap = Keymap::default();
    let prefix = keymap.prefix().label();
    page.control("SH", ["KEYS"]).text([roman(format!(
        "These are the default keys; [keys] of the configuration sets others. Everything else goes to the agent, and so does {prefix} \
         pressed twice."
    ))]);
    for binding in keymap.bindings() {
        let label = |trigger: &Trigger| keymap.label(*trigger);
        let keys: Vec<String> = binding.triggers.iter().map(label).collect();
        add_entry(page, &keys.join(", "), binding.action.description());
    }
}

/// Returns the places of files where no variable names another, and what they hold.
fn file_places() -> Vec<(String, &'static str)> {
    let none = Surroundings {
        variable: &|_| None,
        home: &|| Some("/~".into()),
        uid: 0,
    };
    let paths = Paths::find(&none, Path::new("")).expect("a home is named");
    let project = paths.project_dir();
    [
        (
            paths.user_config(),
            "your configuration; config.toml of the sources has every key",
        ),
        (
            paths.config_dir().join("handoff.md"),
            "your template of the handoff",
        ),
        (
            paths.project_config(),
            "the project's configuration: looks and numbers, and commands once you trust it",
        ),
        (project.join(SCRATCHPAD), "your notes"),
        (
            project.join("runs"),
            "the handoffs, summaries and recordings of each run",
        ),
        (paths.database(), "runs, iterations and checkpoints"),
        (paths.log_dir(), "the log files"),
    ]
    .map(|(path, text)| {
        let path = path.display().to_string();
        (
            path.strip_prefix("/~")
                .map_or(path.clone(), |below| format!("~{below}")),
            text,
        )
    })
    .into()
}

/// The variables that a person sets.
const ENVIRONMENT: [(&str, &str); 7] = [
    (
        "PITSTOP_ENV",
        "the environment of checkpoints, in place of [store] environment",
    ),
    (
        "PITSTOP_LOG",
        "what is logged, in place of [log] level: debug, or a part of pitstop alone, such as pitstop_core=trace",
    ),
    ("XDG_CONFIG_HOME", "the directory in place of ~/.config"),
    ("XDG_STATE_HOME", "the directory in place of ~/.local/state"),
    ("VISUAL, EDITOR", "the editor for notes and handoffs"),
    (
        "NO_COLOR",
        "if it is set and not empty, nothing is in colour",
    ),
    (
        "TMPDIR",
        "the directory for the project of the demo, in place of /tmp",
    ),
];

/// The commands of the README's section `Use it`, and what they do.
const EXAMPLES: &str = include_str!("../../assets/examples.txt");

/// Returns each of these commands with what it does.
fn examples() -> impl Iterator<Item = (&'static str, &'static str)> {
    EXAMPLES.lines().filter_map(|line| {
        let (command, text) = line.split_once('#')?;
        Some((command.trim(), text.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_are_those_of_the_readme() {
        let readme = include_str!("../../README.md");
        assert!(readme.contains(&format!("## Use it\n\n```sh\n{EXAMPLES}```\n")));
        assert!(examples().count() > 5);
    }
}
