//! The standard input of a command.

use std::{
    io::{self, Write as _},
    process::Stdio,
    thread,
};

/// What a pipe takes before anybody reads, in bytes, at least.
const PAGE: usize = 4096;

/// A pipe that holds these bytes before the command starts: one that gives its input a limit of time must not have to wait until
/// a busy machine comes back to the test.
pub fn input(bytes: &[u8]) -> Stdio {
    let (reader, mut writer) = io::pipe().expect("a pipe");
    let (first, rest) = bytes.split_at(bytes.len().min(PAGE));
    writer.write_all(first).expect("there is room");
    if !rest.is_empty() {
        let rest = rest.to_vec();
        // The command need not read all of it.
        thread::spawn(move || writer.write_all(&rest));
    }
    reader.into()
}
