//! The whole state of the supervisor, in one value that one loop owns.
//!
//! The state of each feature is a type of its own in a file below this one, with the rules that need nothing else. The features'
//! behavior is in their own modules, and nothing here depends on those.

pub mod activity;
pub mod agent;
pub mod attempt;
pub mod bridge;
pub mod carried;
pub mod client_limits;
pub mod compactions;
pub mod copy;
pub mod costs;
pub mod counters;
pub mod daemon;
pub mod draft;
pub mod ending;
pub mod event_scratch;
pub mod external;
pub mod history;
pub mod moments;
pub mod needs;
pub mod notes;
pub mod orders;
pub mod outside;
pub mod panels;
pub mod pastes;
pub mod progress;
pub mod reading;
pub mod reboot;
pub mod requests;
pub mod rewinds;
pub mod run;
pub mod seen_calls;
pub mod seen_signals;
pub mod session;
pub mod spending;
pub mod submission;
pub mod summaries;
pub mod todo;
pub mod tour;
pub mod trim;
pub mod turns;
pub mod unsent;
pub mod view;

use std::time::Duration;

use crate::{
    api::wire::Reply,
    config::Config,
    lineage::{Iteration, IterationId, Lineage, RunId},
};
use pitstop_agent::{
    AgentKind,
    bridge::{BridgeOrder, OrderId},
};
use pitstop_base::{clock::At, keymap::Keymap};
use pitstop_handoff::{Generator, Marker};
use pitstop_transcript::{SessionId, Tokens};

use crate::app::{
    consequences::Consequences,
    effect::Effect,
    event::{CallId, NewIds},
};

use draft::HandoffDraft;
use event_scratch::EventScratch;
use orders::Purpose;
use outside::Outside;
use reboot::Reboot;
use run::Run;
use session::Session;
use turns::RunTurns;
use view::View;

pub use agent::AgentView;
pub use notes::NotesPanel;
pub use outside::Quitting;
pub use panels::{Editor, HandoffPanel};
pub use view::{Focus, Notice, Overlay};

/// The identity of the supervisor and of the agent that it hosts; it does not change while the supervisor runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The supervisor's version.
    pub version: &'static str,
    /// The supervisor's process id.
    pub pid: u32,
    /// The project directory, as shown.
    pub project: String,
    /// The name that checkpoints are filed under.
    pub environment: String,
    /// The kind of program that the agent is.
    pub agent_kind: AgentKind,
    /// The command of the agent, as shown.
    pub agent_command: String,
    /// The arguments that the agent is given at each start: all but those that choose its session.
    pub agent_args: Vec<String>,
    /// True if the client was started with its to-do tools on.
    pub todo_tools: bool,
}

/// The whole state of the supervisor.
#[derive(Debug)]
pub struct Model {
    /// The identity of the supervisor and of its agent.
    pub identity: Identity,
    /// The user's settings.
    pub config: Config,
    /// The chain of iterations.
    pub lineage: Lineage,
    /// The context usage after each of their turns.
    pub turns: RunTurns,
    /// The session that the agent is in.
    pub session: Session,
    /// The facts that the handoff is made of, and the handoff.
    pub draft: HandoffDraft,
    /// The reboot under way, and the state that is kept between reboots.
    pub reboot: Reboot,
    /// The autonomous run, if this is one.
    pub autopilot: Option<Run>,
    /// The state of the user interface.
    pub view: View,
    /// The state that is reported outside.
    pub outside: Outside,
    /// The results of the event at hand.
    pub scratch: EventScratch,
    /// The moment of the last event, for views that show ages.
    pub now: At,
    epoch: u64,
}

/// What follows from a change, effects alone or with messages.
pub(in crate::app) trait CarryOut: Into<Consequences> {
    /// Queues the effects, takes notices back, and shows the messages.
    fn carry_out(self, model: &mut Model) {
        let follows = self.into();
        model.emit_all(follows.effects);
        for text in follows.withdrawn {
            model.view.withdraw_notice(text);
        }
        for text in follows.notes {
            model.note(&text);
        }
        for (text, bad) in follows.messages {
            if bad {
                model.error(text);
            } else {
                model.info(text);
            }
        }
    }
}

impl<T: Into<Consequences>> CarryOut for T {}

/// The values that a model begins with.
#[derive(Debug)]
pub struct Beginning {
    /// The identity of the supervisor and of its agent.
    pub identity: Identity,
    /// The user's settings.
    pub config: Config,
    /// The run's iterations so far: empty for a new run.
    pub lineage: Lineage,
    /// The session of the first agent.
    pub session: SessionId,
    /// Random values.
    pub new_ids: NewIds,
    /// The scratchpad on disk.
    pub notes: String,
    /// The handoff template.
    pub generator: Generator,
    /// The host terminal's size, in cells: columns, rows.
    pub host: (u16, u16),
    /// The moment it begins.
    pub now: At,
}

impl Model {
    /// Creates the state of a supervisor that has not started its agent yet and has drafted nothing.
    pub fn new(beginning: Beginning) -> Self {
        let last = beginning.lineage.iterations().last();
        let iteration = last.map_or(IterationId::FIRST, |last| last.iteration.next());
        let is_generic = !beginning.identity.agent_kind.reports();
        let marker = Marker {
            run: beginning.lineage.run().to_string(),
            iteration: 1,
            nonce: beginning.new_ids.nonce.clone(),
        };
        Self {
            identity: beginning.identity,
            lineage: beginning.lineage,
            turns: RunTurns::default(),
            session: Session::new(beginning.session, iteration, is_generic),
            draft: HandoffDraft::new(marker, beginning.notes, beginning.generator),
            reboot: Reboot::new(beginning.config.reboot.mode, beginning.new_ids),
            autopilot: None,
            view: View::new(beginning.host),
            outside: Outside::default(),
            scratch: EventScratch::default(),
            config: beginning.config,
            now: beginning.now,
            epoch: 0,
        }
    }

    /// Returns the keys in force.
    pub const fn keys(&self) -> &Keymap {
        &self.config.keys
    }

    /// Returns a number that no timer has had yet.
    pub const fn next_epoch(&mut self) -> u64 {
        self.epoch += 1;
        self.epoch
    }

    /// Returns the record of the present iteration.
    pub fn current_iteration(&self) -> Option<&Iteration> {
        self.lineage.current()
    }

    /// Reports whether the agent is neither Claude Code nor the demo, but a program without known hooks, prompt box or transcript.
    pub fn is_generic(&self) -> bool {
        self.session.is_generic
    }

    /// Returns the run's name.
    pub const fn run(&self) -> &RunId {
        self.lineage.run()
    }

    /// Returns the number of tokens in use, by the best source.
    pub fn used(&self) -> Option<Tokens> {
        self.session.used(self.now)
    }

    /// Queues an effect for the shell, behind those that are queued already.
    pub(in crate::app) fn emit(&mut self, effect: Effect) {
        self.scratch.effects.push(effect);
    }

    /// Queues each of these effects, like [`Model::emit`].
    pub(in crate::app) fn emit_all(&mut self, effects: impl IntoIterator<Item = Effect>) {
        self.scratch.effects.extend(effects);
    }

    /// Gives an order to the client's own side of the session, which may take this long to answer it once it is taken.
    pub(in crate::app) fn order(
        &mut self,
        purpose: Purpose,
        order: BridgeOrder,
        answered_within: Duration,
    ) -> OrderId {
        let (session, effects) = (&mut self.session, &mut self.scratch.effects);
        let id = session.id;
        session
            .orders
            .give(id, purpose, order, answered_within, effects)
    }

    /// Queues the answer to a call before all other effects.
    pub(in crate::app) fn answer(&mut self, call: CallId, reply: Reply) {
        self.scratch.effects.insert(0, Effect::Answer(call, reply));
    }

    /// Takes the effects that are queued for the shell, in order.
    #[must_use]
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.scratch.effects)
    }

    /// Shows a message in the footer.
    pub fn info(&mut self, text: impl Into<String>) {
        self.view.notify(text.into(), false, self.now);
    }

    /// Writes a message to the message log only, because nothing has to be done about it.
    pub fn note(&mut self, text: &str) {
        tracing::info!(note = %pitstop_base::clean::one_line(text));
        self.view.log(text, false, self.now.wall);
    }

    /// Shows an error in the footer.
    pub fn error(&mut self, text: impl Into<String>) {
        let text = text.into();
        // The footer forgets it after a few seconds.
        tracing::warn!(error = %pitstop_base::clean::one_line(&text));
        self.view.notify(text, true, self.now);
    }
}
