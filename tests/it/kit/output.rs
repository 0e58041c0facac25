//! What a command has printed.

use std::process::Output;

/// What a command printed that has succeeded.
#[track_caller]
pub fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Everything that a command printed, errors last.
pub fn all(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat()).into_owned()
}
