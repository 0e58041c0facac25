//! `pitstop man`: the manual pages, made from the command line as it is defined.

use std::{fs, io, path::PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;

use super::out;

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
#[must_use]
pub fn run(args: &ManArgs, program: Command) -> i32 {
    let done = match &args.directory {
        None => page(program),
        Some(directory) => fs::create_dir_all(directory)
            .and_then(|()| clap_mangen::generate_to(program, directory))
            .map(|()| String::new()),
    };
    match done {
        Ok(text) => out::print(&text),
        Err(error) => out::failed(&format!("cannot write the manual: {error}"), ""),
    }
}

fn page(program: Command) -> io::Result<String> {
    let mut page = Vec::new();
    Man::new(program).render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
