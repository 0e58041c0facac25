//! The tool calls of the session that have ended, as hooks and the transcript report them: each is taken in once.
//!
//! Where a hook is lost, the transcript has its call. It may show that one behind calls whose hooks have come.

use std::collections::VecDeque;

use pitstop_agent::ToolCall;
use pitstop_base::recent;

/// The most calls that are remembered of each source: more than a client runs while a file is read.
const REMEMBERED: usize = 1024;

/// What the transcript shows of an ended call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::app) enum ShownCall {
    /// No hook has reported it.
    New,
    /// A hook has reported it.
    Known,
    /// A hook has reported it, and a call from before it came later.
    Overtaken,
}

/// The ended calls that were seen from one source only: those of the main chain, and those of subagents, whose transcripts are read
/// later, or not at all.
#[derive(Debug, Default)]
pub struct SeenCalls {
    main: Seen,
    subagents: Seen,
}

#[derive(Debug, Default)]
struct Seen {
    /// The calls that hooks have reported and the transcript does not show yet.
    ahead: VecDeque<String>,
    /// The calls that the transcript has shown and no hook has reported.
    behind: VecDeque<String>,
    /// True if a call was new in the transcript while hooks were ahead of it, and still are.
    overtakes: bool,
}

impl SeenCalls {
    /// Notes a call that a hook reports. Returns false if a transcript has shown it.
    pub(in crate::app) fn by_hook(&mut self, call: &ToolCall) -> bool {
        let Some(id) = call.id.as_deref() else {
            return true;
        };
        let seen = self.of(call.by_subagent);
        if recent::take(&mut seen.behind, id) {
            return false;
        }
        recent::push(&mut seen.ahead, id.to_owned(), REMEMBERED);
        true
    }

    /// Notes a call that a transcript shows.
    pub(in crate::app) fn by_transcript(&mut self, call: &str, by_subagent: bool) -> ShownCall {
        self.of(by_subagent).by_transcript(call)
    }

    const fn of(&mut self, by_subagent: bool) -> &mut Seen {
        if by_subagent {
            &mut self.subagents
        } else {
            &mut self.main
        }
    }
}

impl Seen {
    fn by_transcript(&mut self, call: &str) -> ShownCall {
        if !recent::take(&mut self.ahead, call) {
            recent::push(&mut self.behind, call.to_owned(), REMEMBERED);
            self.overtakes = !self.ahead.is_empty();
            return ShownCall::New;
        }
        let was_overtaken = self.overtakes;
        self.overtakes &= !self.ahead.is_empty();
        if was_overtaken {
            ShownCall::Overtaken
        } else {
            ShownCall::Known
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ShownCall::{Known, New, Overtaken};

    fn hook(id: &str) -> ToolCall {
        ToolCall {
            id: Some(id.to_owned()),
            ..ToolCall::default()
        }
    }

    #[test]
    fn a_call_of_both_sources_counts_once_in_either_order() {
        let mut seen = SeenCalls::default();
        assert!(seen.by_hook(&hook("a")));
        assert_eq!(seen.by_transcript("a", false), Known);
        assert_eq!(seen.by_transcript("b", false), New);
        assert!(!seen.by_hook(&hook("b")));
    }

    #[test]
    fn calls_whose_hooks_came_before_that_of_a_lost_one_are_told() {
        let mut seen = SeenCalls::default();
        assert!(seen.by_hook(&hook("b")) && seen.by_hook(&hook("c")));
        let mut shown = |id| seen.by_transcript(id, false);
        assert_eq!(
            [shown("a"), shown("b"), shown("c")],
            [New, Overtaken, Overtaken]
        );
        assert!(seen.by_hook(&hook("d")));
        assert_eq!(seen.by_transcript("d", false), Known);
        for n in 0..3_000 {
            seen.by_hook(&hook(&n.to_string()));
            seen.by_transcript(&format!("t{n}"), false);
        }
        let seen = seen.main;
        assert!(seen.ahead.len() <= REMEMBERED && seen.behind.len() <= REMEMBERED);
    }
}
