//! `pitstop ls` on a terminal: the sessions that run and those of this project that can be resumed, of which one is chosen.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use super::{
    attach::{self, AttachArgs},
    fleet::{self, Fleet},
    here::Here,
    host::{self, HostArgs},
    ls::{self, LsArgs, Place, Session},
    offer::{self, Choice},
    out::{self, Outcome},
    picker::{Picked, Picker},
};
use crate::{runtime::wall, ui::picker::PickerRow};

/// The time between two looks at the sessions.
const REFRESH: Duration = Duration::from_secs(1);

/// The meaning of a row.
#[derive(Clone, Debug, PartialEq)]
enum Row {
    /// A session that runs.
    Running(Place),
    /// Earlier work in this project.
    Past(Choice),
}

/// Runs the command; returns the exit code.
pub fn run(args: &LsArgs, host: &HostArgs) -> Outcome {
    let here = Here::find(&host.config_flags())?;
    if here.faulty {
        let error = "the configuration has faults: its hosts and its store are left out";
        out::complain(error, "`pitstop check` shows them");
    }
    if let Some(host) = &args.ask_host {
        return fleet::ask_host(host, &here);
    }
    let fleet = Fleet::of(&here, args.local);
    if args.json || args.watch || !out::has_terminal() {
        return ls::print_list(args, &fleet);
    }
    // The hosts' answers come in while the list is shown.
    let sessions = ls::find_sessions(&fleet)?;
    let past = match here.find_holder() {
        Some(_) => Vec::new(),
        None => offer::rows(&here, wall()),
    };
    let rows = choice_rows(&sessions, &past);
    if rows.is_empty() {
        return Ok(out::print(
            "no session runs here, and there is none to go back to\n",
        ));
    }
    let picker = Picker::new("pitstop · sessions".to_owned(), rows);
    match show_sessions(picker, &here, fleet, past) {
        Ok(Picked::Row(Row::Running(Place::Here(project)))) => {
            let name = Some(project.to_string_lossy().into_owned());
            attach::run(&AttachArgs {
                name,
                ..AttachArgs::default()
            })
        }
        Ok(Picked::Row(Row::Running(Place::On(host, project)))) => {
            Err(fleet::attach_host(&host, &project))
        }
        Ok(Picked::Row(Row::Running(Place::Nowhere))) => Err(out::failed(
            "it does not answer",
            "`pitstop doctor` in its project says more; `ssh` that of a host",
        )),
        Ok(Picked::Row(Row::Past(choice))) => host::begin_choice(host, choice),
        Ok(Picked::New) => {
            // Where a session runs, it is not shown in the place of the one that is asked for.
            let mut host = host.clone();
            host.new = true;
            host::begin_choice(&host, Choice::New)
        }
        Ok(Picked::Quit) => Ok(out::OK),
        Ok(Picked::Ended(code)) => Ok(code),
        Err(error) => Err(out::failed(
            format!("the terminal cannot be used: {error}"),
            "`pitstop ls | cat` prints the list",
        )),
    }
}

/// Shows the list, which follows the sessions.
fn show_sessions(
    picker: Picker<Row>,
    here: &Here,
    fleet: Fleet,
    past: Vec<(PickerRow, Choice)>,
) -> std::io::Result<Picked<Row>> {
    let (sender, receiver) = mpsc::channel();
    let over = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&over);
    thread::spawn(move || {
        while !ended.load(Ordering::Relaxed) {
            thread::park_timeout(REFRESH);
            let Ok(sessions) = ls::find_sessions(&fleet) else {
                return;
            };
            if sender.send(choice_rows(&sessions, &past)).is_err() {
                return;
            }
        }
    });
    let chosen = picker.run(here.config.ui.theme, Some(&receiver));
    over.store(true, Ordering::Relaxed);
    chosen
}

fn choice_rows(sessions: &[Session], past: &[(PickerRow, Choice)]) -> Vec<(PickerRow, Row)> {
    let now = wall();
    let running = sessions
        .iter()
        .map(|one| (one.picker_row(now), Row::Running(one.place())));
    let past = past
        .iter()
        .map(|(row, choice)| (row.clone(), Row::Past(choice.clone())));
    running.chain(past).collect()
}
