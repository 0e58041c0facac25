//! Any other program: pane and estimates only.
//!
//! It has no hooks, no transcript and no sessions that we know of. A prompt is pasted, the end is
//! a hang-up of its terminal, and its context is guessed from the text that went by.

use super::{CommandLine, Launch, LaunchError};
use crate::transcript::Tokens;

/// Characters in a token, on average over English prose and source code.
const CHARACTERS_A_TOKEN: u64 = 4;

/// Tokens that one tool call costs beside its text (name, ids, JSON around it).
const TOKENS_A_TOOL_CALL: u64 = 50;

/// Guesses the tokens of `characters` of text with `tool_calls` calls in it.
#[must_use]
pub const fn estimate(characters: u64, tool_calls: u64) -> Tokens {
    Tokens(
        characters
            .div_ceil(CHARACTERS_A_TOKEN)
            .saturating_add(tool_calls.saturating_mul(TOKENS_A_TOOL_CALL)),
    )
}

/// The command as the user wrote it; the prompt is typed later.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_counts_characters_and_tool_calls() {
        assert_eq!(estimate(0, 0), Tokens(0));
        assert_eq!(estimate(9, 2), Tokens(103));
        assert_eq!(estimate(u64::MAX, u64::MAX), Tokens(u64::MAX));
    }
}
