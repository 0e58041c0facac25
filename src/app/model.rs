//! Everything the supervisor knows, in one value that one loop owns.
//!
//! The state of each feature is a type of its own in a file below this one, with the rules that need nothing else. What features
//! do with it is theirs; nothing here knows them.

pub mod activity;
pub mod agent;
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
pub mod external;
pub mod happened;
pub mod history;
pub mod moments;
pub mod orders;
pub mod outside;
pub mod panels;
pub mod progress;
pub mod reading;
pub mod reboot;
pub mod requests;
pub mod rewinds;
pub mod run;
pub mod seen_signals;
pub mod session;
pub mod spending;
pub mod submission;
pub mod summaries;
pub mod todo;
pub mod tour;
pub mod trim;
pub mod unsent;
pub mod view;

use crate::{
    agent::AgentKind,
    api::wire::Reply,
    clock::At,
    config::Config,
    handoff::{Generator, Marker},
    keymap::Keymap,
    lineage::{Iteration, IterationId, Lineage, RunId},
    transcript::{SessionId, Tokens},
};

use crate::app::{
    effect::Effect,
    event::{CallId, NewIds},
};

use draft::Draft;
use happened::Happened;
use outside::Outside;
use reboot::Reboot;
use run::Run;
use session::Session;
use view::View;

pub use agent::AgentView;
pub use outside::Quitting;
pub use panels::{Editor, Foreign, HandoffPanel, NotesPanel};
pub use view::{Focus, Notice, Overlay};

/// Who we are and whom we host: what does not change while we run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Our version.
    pub version: &'static str,
    /// Our process id.
    pub pid: u32,
    /// The project directory, as shown.
    pub project: String,
    /// What checkpoints are filed under.
    pub environment: String,
    /// Which program the agent is.
    pub agent_kind: AgentKind,
    /// The command of the agent, as shown.
    pub agent_command: String,
    /// The arguments of the agent that each of its starts has: all but those that choose its session.
    pub agent_args: Vec<String>,
    /// Whether the client was started with its to-do tools on.
    pub todo_tools: bool,
}

/// Everything the supervisor knows.
#[derive(Debug)]
pub struct Model {
    /// Who we are.
    pub identity: Identity,
    /// What the user set.
    pub config: Config,
    /// The chain of iterations.
    pub lineage: Lineage,
    /// The session that the agent is in.
    pub session: Session,
    /// What the handoff is made of, and the handoff.
    pub draft: Draft,
    /// The reboot under way, and what is remembered between two.
    pub reboot: Reboot,
    /// The autonomous run, if this is one.
    pub autopilot: Option<Run>,
    /// What a person looks at.
    pub view: View,
    /// What is reported outside.
    pub outside: Outside,
    /// What the event at hand has brought.
    pub happened: Happened,
    /// The moment of the last event, for views that show ages.
    pub now: At,
    epoch: u64,
}

/// What a model begins with.
#[derive(Debug)]
pub struct Beginning {
    /// Who we are.
    pub identity: Identity,
    /// What the user set.
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
    /// A supervisor that has not started its agent yet, and has drafted nothing.
    #[must_use]
    pub fn new(beginning: Beginning) -> Self {
        let last = beginning.lineage.iterations().last();
        let iteration = last.map_or(IterationId::FIRST, |last| last.iteration.next());
        let marker = Marker {
            run: beginning.lineage.run().to_string(),
            iteration: 1,
            nonce: beginning.new_ids.nonce.clone(),
        };
        Self {
            identity: beginning.identity,
            lineage: beginning.lineage,
            session: Session::new(beginning.session, iteration),
            draft: Draft::new(marker, beginning.notes, beginning.generator),
            reboot: Reboot::new(beginning.config.reboot.mode, beginning.new_ids),
            autopilot: None,
            view: View {
                host: beginning.host,
                ..View::default()
            },
            outside: Outside::default(),
            happened: Happened::default(),
            config: beginning.config,
            now: beginning.now,
            epoch: 0,
        }
    }

    /// The keys in force.
    #[must_use]
    pub const fn keys(&self) -> &Keymap {
        &self.config.keys
    }

    /// A number that no timer has had yet.
    pub const fn next_epoch(&mut self) -> u64 {
        self.epoch += 1;
        self.epoch
    }

    /// The record of the present iteration.
    #[must_use]
    pub fn current_iteration(&self) -> Option<&Iteration> {
        self.lineage.current()
    }

    /// Whether it hosts some other program than Claude Code or the demo: one of which no hooks, prompt box or transcript are known.
    #[must_use]
    pub fn is_generic(&self) -> bool {
        !self.identity.agent_kind.reports()
    }

    /// The run's name.
    #[must_use]
    pub const fn run(&self) -> &RunId {
        self.lineage.run()
    }

    /// Tokens in use, by the best source.
    #[must_use]
    pub fn used(&self) -> Option<Tokens> {
        self.session
            .guard
            .figure(self.now)
            .map(|figure| figure.used)
    }

    /// Has the shell do this, behind what it is to do already.
    pub(in crate::app) fn emit(&mut self, effect: Effect) {
        self.happened.effects.push(effect);
    }

    /// As [`Model::emit`], with each of these.
    pub(in crate::app) fn emit_all(&mut self, effects: impl IntoIterator<Item = Effect>) {
        self.happened.effects.extend(effects);
    }

    /// Has the shell answer a call before it does anything else.
    pub(in crate::app) fn answer(&mut self, call: CallId, reply: Reply) {
        self.happened.effects.insert(0, Effect::Answer(call, reply));
    }

    /// What the shell is to do by now, in order.
    #[must_use]
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.happened.effects)
    }

    /// Says something in the footer.
    pub fn info(&mut self, text: impl Into<String>) {
        self.notify(text.into(), false);
    }

    /// Says something in the message log only: nothing has to be done about it.
    pub fn note(&mut self, text: &str) {
        tracing::info!(note = %crate::clean::one_line(text));
        self.view.log(text, false, self.now.wall);
    }

    /// Shows an error in the footer.
    pub fn error(&mut self, text: impl Into<String>) {
        let text = text.into();
        // The footer forgets it after a few seconds.
        tracing::warn!(error = %crate::clean::one_line(&text));
        self.notify(text, true);
    }

    fn notify(&mut self, text: String, bad: bool) {
        let at = self.now;
        self.view.log(&text, bad, at.wall);
        // The same words again only renew the notice.
        self.view.notices.retain(|notice| notice.text != text);
        self.view.notices.push_back(Notice { text, bad, at });
        if self.view.notices.len() > 50 {
            self.view.notices.pop_front();
        }
    }
}
