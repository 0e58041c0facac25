//! Any other program: pane and estimates only.
//!
//! It has no hooks, no transcript and no sessions that we know of. A prompt is pasted, the end is
//! a hang-up of its terminal, and its context is guessed from the text that went by.

use super::{CommandLine, Launch, LaunchError};

/// Returns the command as the user wrote it; the prompt is typed later.
pub(super) fn command_line(launch: &Launch) -> Result<CommandLine, LaunchError> {
    if launch.user_args.iter().any(|arg| arg.contains('\0')) {
        return Err(LaunchError::Nul);
    }
    let user = launch.user_args.iter().map(Into::into);
    Ok(CommandLine {
        program: launch.program.clone(),
        args: launch.lead_args.iter().cloned().chain(user).collect(),
        session: None,
    })
}
