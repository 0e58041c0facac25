//! The user's editor, by `$VISUAL` and `$EDITOR`.

use std::{env, ffi::OsString, path::Path, time::Duration};

use pitstop_base::process;
use rustix::process::Signal;
use tokio::process::Child;

/// Returns the arguments of a shell that edits a file.
pub(super) fn editor_arguments(file: &Path) -> [OsString; 4] {
    let editor = chosen_editor();
    [
        "-c".into(),
        shell_line(&editor).into(),
        editor.into(),
        file.into(),
    ]
}

/// Returns the command of the user's editor, as a shell reads it.
fn chosen_editor() -> String {
    let variable = |name| env::var(name).ok().filter(|value| !value.trim().is_empty());
    variable("VISUAL")
        .or_else(|| variable("EDITOR"))
        .unwrap_or_else(|| "vi".to_owned())
}

/// Returns the shell's line for an editor. The variable may hold arguments, so a shell reads it, as git does. A plain command
/// replaces the shell: then the editor itself is asked to end.
fn shell_line(editor: &str) -> String {
    let assigns = editor
        .split_whitespace()
        .next()
        .is_some_and(|word| word.contains('='));
    let is_plain = !assigns && !editor.contains([';', '|', '&', '<', '>', '(', '$', '`', '\n']);
    let exec = if is_plain { "exec " } else { "" };
    format!("{exec}{editor} \"$1\"")
}

/// Hangs up on the editor, which then saves what it can and restores the terminal; kills it if it does not end within the limit.
pub(super) async fn hang_up(editor: &mut Child, limit: Duration) {
    // Not waited for yet: the number is still its own.
    process::send_signal(editor.id(), Signal::HUP);
    if tokio::time::timeout(limit, editor.wait()).await.is_err() {
        let _ = editor.kill().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_command_takes_the_shells_place() {
        assert_eq!(shell_line("vi"), "exec vi \"$1\"");
        assert_eq!(shell_line("code --wait"), "exec code --wait \"$1\"");
        for other in ["LANG=C vi", "cd /tmp && vi", "$(which vi)", "vi; true"] {
            assert_eq!(shell_line(other), format!("{other} \"$1\""));
        }
    }
}
