//! The client's own compactions: seen and counted once each, and replaced by a reboot if the user so wishes.
//!
//! One compaction has up to four sources, each of which may be late or absent:
//!
//! ```text
//!   PreCompact ─▶ boundary in the transcript · SessionStart(compact) · PostCompact ─▶ the next figure falls by 30 %
//!   (may still        └──────────── these report it: the largest count holds ──┘    (counts only where neither hooks
//!    be blocked)                                                                       nor a transcript would report it)
//! ```
//!
//! With `guard.replace_compaction` the client is started with its auto-compaction off, which its user can turn on
//! again by a setting of theirs and which other versions may not know. So `PreCompact` is answered too: measured
//! with 2.1.197, a client that is refused goes on uncompacted, asks again before each of its next calls, and
//! refuses prompts near the end of its window. A compaction that the human asked for is never refused.

use crate::{config::RebootMode, guard::Source, lineage::Cause};
use pitstop_agent::AgentEvent;
use pitstop_base::keymap::Action;

use crate::app::{
    consequences::Consequences,
    draft::checkpoint::{self, SaveOrder},
    facts::is_quiet,
    model::{Model, session::Session},
    reboot::{self, RebootAction, in_place::ReplaceEvent, on_the_fly},
};

/// The text that the client shows its user when it is refused.
const REFUSAL: &str = "pitstop holds compaction back and offers a reboot with a handoff instead";

/// The text that it shows when it compacts by an order of ours and our mod is not asked.
const PASSED_OVER: &str = "pitstop's mod was not asked: settings of the machine keep it out";

/// A sign that the client has compacted its context.
#[derive(Clone, Copy, Debug)]
pub(in crate::app) enum CompactionSign {
    /// The transcript has this number of boundaries.
    Boundaries(u64),
    /// The client has reported it.
    Finished,
    /// The client has rebuilt its session from it.
    Rebuilt,
    /// The figure fell by much, and the agent has neither hooks nor a transcript that would report the reason.
    Fell,
}

impl Session {
    /// Takes in a sign of a compaction, and counts that once.
    pub(in crate::app) fn compaction_seen(&mut self, sign: CompactionSign) -> Consequences {
        let (before, turn) = (self.compactions.count(), u64::from(self.agent.turns));
        match sign {
            CompactionSign::Boundaries(total) => self.compactions.transcript(total, turn),
            CompactionSign::Finished => self.compactions.finish(turn),
            CompactionSign::Rebuilt => self.compactions.rebuild(turn),
            CompactionSign::Fell => self.compactions.fall(turn),
        }
        if matches!(sign, CompactionSign::Finished | CompactionSign::Rebuilt) {
            // Their figures describe the context before the compaction.
            self.guard.forget(Source::StatusLine);
            self.guard.forget(Source::Bridge);
            self.agent.window_emptied();
        }
        let mut follows = Consequences::default();
        if self.compactions.count() > before {
            // Where the fall itself showed it, the figure behind it is here already.
            if self.compactions.awaits_fall.is_some() {
                self.guard.note_compaction();
            }
            follows.info("the client has compacted its context");
        }
        follows
    }
}

/// Returns the reason that the client may not do what it has announced; `None` if it may.
pub fn refusal(model: &Model, event: &AgentEvent) -> Option<&'static str> {
    let (automatic, ordered, is_ours) = match *event {
        AgentEvent::Compacting {
            automatic, ordered, ..
        } => (automatic, ordered, true),
        // The trigger that we have lowered is a subagent's too; else its compactions are its own.
        AgentEvent::SubagentCompacts { .. } => (true, false, false),
        _ => return None,
    };
    if event.session() != Some(model.session.id) || model.outside.quitting().is_some() {
        return None;
    }
    // Our mod answers what we have ordered, and no hook is called for it: where one is, the client would summarize.
    let passed_over = ordered || (automatic && on_the_fly::awaited(model).is_some());
    if passed_over {
        return Some(PASSED_OVER);
    }
    (is_ours && automatic && model.config.guard.replace_compaction).then_some(REFUSAL)
}

/// Saves everything when the client is about to compact, or, where that is held back, has a reboot take its place.
pub fn announced(model: &mut Model, automatic: bool, ordered: bool) {
    if ordered || (automatic && on_the_fly::awaited(model).is_some()) {
        model.session.agent.leave_unanswered(PASSED_OVER);
        return reboot::on(model, ReplaceEvent::PassedOver);
    }
    let held = automatic && model.config.guard.replace_compaction;
    if !held {
        model.session.compaction_announced(automatic, model.now);
        return checkpoint::save(model, SaveOrder::before_compaction());
    }
    if model.reboot.attempt.is_some() || model.outside.quitting().is_some() {
        return;
    }
    let deferred = is_quiet(model);
    if model.reboot.mode == RebootMode::Manual || model.reboot.paused || deferred {
        let key = model.keys().hint(Action::Reboot).unwrap_or_default();
        model.error(format!(
            "the client wanted to compact and was held back: {key} reboots it"
        ));
        return;
    }
    if let Err(why) = reboot::act(model, RebootAction::Begin(Cause::ContextLimit)) {
        model.error(format!(
            "the client wanted to compact and was held back: {why}"
        ));
    }
}
