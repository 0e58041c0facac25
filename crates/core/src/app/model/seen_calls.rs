//! The tool calls of the session that have ended, as hooks and the transcript report them: each is taken in once.
//!
//! Where a hook is lost, the transcript has its call. It may show that one behind calls whose hooks have come.

use std::collections::VecDeque;

use pitstop_agent::ToolCall;

/// The most calls that are remembered of each source: more than a client runs while a file is read.
const REMEMBERED: usize = 256;

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

/// The ended calls that were seen from one source only.
#[derive(Debug, Default)]
pub struct SeenCalls {
    /// The calls that hooks have reported and the transcript does not show yet.
    ahead: VecDeque<String>,
    /// The calls that the transcript has shown and no hook has reported.
    behind: VecDeque<String>,
    /// True if a call was new in the transcript while hooks were ahead of it, and still are.
    overtakes: bool,
}

impl SeenCalls {
    /// Notes a call that a hook reports. Returns false if the transcript has shown it; those of subagents are not in it.
    pub(in crate::app) fn by_hook(&mut self, call: &ToolCall) -> bool {
        let Some(call) = call.id.as_deref().filter(|_| !call.by_subagent) else {
            return true;
        };
        if take(&mut self.behind, call) {
            return false;
        }
        remember(&mut self.ahead, call);
        true
    }

    /// Notes a call that the transcript shows.
    pub(in crate::app) fn by_transcript(&mut self, call: &str) -> ShownCall {
        if !take(&mut self.ahead, call) {
            remember(&mut self.behind, call);
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

fn take(calls: &mut VecDeque<String>, call: &str) -> bool {
    let at = calls.iter().position(|have| have == call);
    at.and_then(|at| calls.remove(at)).is_some()
}

fn remember(calls: &mut VecDeque<String>, call: &str) {
    if calls.len() >= REMEMBERED {
        calls.pop_front();
    }
    calls.push_back(call.to_owned());
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
        assert_eq!(seen.by_transcript("a"), Known);
        assert_eq!(seen.by_transcript("b"), New);
        assert!(!seen.by_hook(&hook("b")));
    }

    #[test]
    fn calls_whose_hooks_came_before_that_of_a_lost_one_are_told() {
        let mut seen = SeenCalls::default();
        assert!(seen.by_hook(&hook("b")) && seen.by_hook(&hook("c")));
        assert_eq!(seen.by_transcript("a"), New);
        assert_eq!(seen.by_transcript("b"), Overtaken);
        assert_eq!(seen.by_transcript("c"), Overtaken);
        assert!(seen.by_hook(&hook("d")));
        assert_eq!(seen.by_transcript("d"), Known);
        for n in 0..1_000 {
            seen.by_hook(&hook(&n.to_string()));
            seen.by_transcript(&format!("t{n}"));
        }
        assert!(seen.ahead.len() <= REMEMBERED && seen.behind.len() <= REMEMBERED);
    }
}
