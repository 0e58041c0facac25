//! A prompt of the supervisor's own on its way to the agent: filled in by the client's own side, or typed; its Enter, and the proof
//! that it was taken.
//!
//! ```text
//!  bridge in force ─► order to fill the box ─► filled: as if typed whole
//!                       ├── nothing was done: not taken in time ─► typed
//!                       ├── nothing was done: a dialog, or a draft of the person's ─► error
//!                       └── may have been done ─► error; never typed, and no Enter
//!
//!                    ┌─────── more to type ────────┐
//! prompt box empty ─►▼ text ─► prompt box holds just this text ─► Enter ─0.8 s─► Enter ─3 s─► carriage return ─6 s─► error
//!                      └─20 s without a change─► error             └──────────────┴────────────────┴─► a hook reports it: done
//! ```
//!
//! A long text goes in portions, each when the box shows the one before: a reader gets at most 4095 bytes of a terminal at once
//! (`N_TTY_BUF_SIZE` of Linux), and a client that is busy when the end of a paste is cut in two takes its rest for typed text.
//!
//! An Enter answers whatever is open in the pane. So each one is sent only while the prompt box is seen on the screen with our text
//! in it and nothing else: no dialog is open then, and no draft of the human's is submitted. A client that was busy may lose an
//! Enter, and another one is safe for the same reason. The text itself is never sent twice.
//!
//! A text that the client's side has filled in and an Enter submits counts for the client as the person's own words, however long
//! it is; the client's side asserts that no dialog and no draft are in the way, and reports the whole text of the box where the
//! screen shows only its end. A text that changes the box's mode by being typed is typed all the same: commands, and lines for the
//! shell.
//!
//! For other programs we know no prompt box: they get the text and, a little later, a carriage return.

use std::{collections::VecDeque, time::Duration};

use crate::{
    api::wire::AgentState,
    app::{effect::Effect, event::TimerId},
};
use pitstop_agent::{
    bridge::{OrderId, Outcome, Refusal, UnsentPrompt},
    claude::{self, prompt_box::PromptBox},
};
use pitstop_base::{clean, clock::At};
use pitstop_transcript::SessionId;

use super::{
    agent::AgentView,
    orders::{EndedOrder, OrderEnd},
};

/// The time after the text at which its Enter is sent to a program whose prompt we cannot see, so that the two come in separate reads.
const ENTER_AFTER: Duration = Duration::from_millis(120);

/// The time that the prompt box may stay unchanged before it shows the text: a client draws a long one piece by piece.
const SHOWN_WITHIN: Duration = Duration::from_secs(20);

/// The times after each Enter at which it is checked whether the prompt was taken.
const LOOKS: [Duration; 3] = [
    Duration::from_millis(800),
    Duration::from_secs(3),
    Duration::from_secs(6),
];

/// The number of Enters in the client's own form; the last one is for a client that does not know it any more.
const OWN_FORM: usize = LOOKS.len() - 1;

/// The largest number of bytes that are typed before the prompt box shows them.
const PORTION: usize = 4_000;

/// The number of bytes of the two marks around a paste.
const MARKS: usize = "\x1b[200~\x1b[201~".len();

/// An event that may move a prompt on.
#[derive(Clone, Copy, Debug)]
pub(in crate::app) enum SubmissionEvent<'a> {
    /// The order by which the client's own side was to give it has ended.
    OrderEnded(&'a EndedOrder),
    /// The agent has taken this prompt.
    Taken(&'a str),
    /// The prompt box has changed.
    BoxChanged,
    /// The timer of this epoch has run out.
    TimerFired(u64),
    /// No hook will report the prompt.
    HooksLost,
}

/// The facts about the agent that decide about a prompt.
#[derive(Clone, Copy, Debug)]
pub(in crate::app) struct PromptFacts<'a> {
    pub(in crate::app) agent: &'a AgentView,
    pub(in crate::app) session: SessionId,
    /// True for a program whose prompt box is not known.
    pub(in crate::app) generic: bool,
    pub(in crate::app) now: At,
}

impl PromptFacts<'_> {
    /// Reports whether the prompt box is on the screen and holds this text, as far as the screen shows it or by the client's report.
    fn shows(&self, text: &str) -> bool {
        let agent = self.agent;
        let said = |draft: &UnsentPrompt| PromptBox::from_report(&draft.text).holds(text);
        agent.prompt_box.holds(text)
            || (matches!(agent.prompt_box, PromptBox::Holds(_))
                && agent.bridge.draft(self.session).is_some_and(said))
    }
}

/// The end of a prompt's way to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::app) enum SubmissionEnd {
    /// Nothing is left to be done.
    Over,
    /// It was not submitted, or not as it was given: the message for the person.
    Failed(String),
    /// The prompt box holds this text, which was to be left there.
    Filled(String),
    /// A text that was to be left in the prompt box is not known to be there.
    NotFilled,
}

/// The way of a prompt goes on, or ends.
type Way = Result<(), SubmissionEnd>;

/// A prompt on its way to the agent.
#[derive(Clone, Debug)]
pub(in crate::app) struct OpenPrompt {
    epoch: u64,
    since: At,
    text: String,
    /// The part of the text that was typed.
    typed: String,
    /// The pieces that are still to be typed.
    left: VecDeque<String>,
    /// True if it is submitted; otherwise it is left for the human to look at.
    submits: bool,
    /// The number of Enters sent so far.
    enters: usize,
    /// The order by which the client's own side gives the prompt; with an order, nothing of it is typed.
    order: Option<OrderId>,
    /// True if a hook will report it.
    proves: bool,
}

/// The prompt that is on its way to the agent, and the last one that was.
#[derive(Clone, Debug, Default)]
pub struct Submission {
    /// The prompt on its way, until it is taken.
    open: Option<OpenPrompt>,
    /// The text that was last to be submitted, and the time at which it began.
    last: Option<(String, At)>,
}

impl Submission {
    /// Reports whether a prompt is on its way.
    pub const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Reports whether a text is still being put into the prompt box.
    pub(in crate::app) fn is_before_enter(&self) -> bool {
        self.open.as_ref().is_some_and(|prompt| prompt.enters == 0)
    }

    /// Reports whether the text in the prompt box is the supervisor's own: the agent died before it was submitted.
    pub(in crate::app) fn is_left_in_box(&self, agent: &AgentView) -> bool {
        let left = |(text, since): &(String, At)| {
            !agent.is_typed_since(*since) && agent.prompt_box.holds_start_of(text)
        };
        self.last.as_ref().is_some_and(left)
    }

    /// Sends a text on its way: by this order to the client's own side, or typed.
    pub(in crate::app) fn begin(
        &mut self,
        (epoch, text, submits): (u64, String, bool),
        order: Option<OrderId>,
        facts: &PromptFacts,
        effects: &mut Vec<Effect>,
    ) {
        let left = if facts.generic {
            vec![text.clone()]
        } else {
            claude::pieces(&claude::boxed(text.clone()))
        };
        // There is no hook for commands and for lines for the shell.
        let command = text.starts_with(['/', '!']);
        self.last = submits.then(|| (text.clone(), facts.now));
        let prompt = self.open.insert(OpenPrompt {
            epoch,
            since: facts.now,
            text,
            typed: String::new(),
            left: left.into(),
            submits,
            enters: 0,
            order,
            proves: facts.agent.hooked && !command,
        });
        if order.is_none() {
            prompt.type_on(facts, effects);
        }
    }

    /// Moves the prompt on its way by an event; returns its end if that is it.
    pub(in crate::app) fn on(
        &mut self,
        event: SubmissionEvent,
        facts: &PromptFacts,
        effects: &mut Vec<Effect>,
    ) -> Option<SubmissionEnd> {
        let prompt = self.open.as_mut()?;
        let went_on = match event {
            SubmissionEvent::OrderEnded(ended) => prompt.order_ended(ended, facts, effects),
            SubmissionEvent::Taken(text) => prompt.taken(text),
            SubmissionEvent::BoxChanged => prompt.box_changed(facts, effects),
            SubmissionEvent::TimerFired(epoch) if epoch == prompt.epoch => {
                prompt.time_over(facts, effects)
            }
            SubmissionEvent::TimerFired(_) => Ok(()),
            SubmissionEvent::HooksLost => {
                prompt.proves = false;
                Ok(())
            }
        };
        let end = went_on.err()?;
        self.open = None;
        Some(end)
    }

    /// Gives up the prompt that is on its way: it was for a session that is over.
    pub(in crate::app) fn abandon(&mut self) {
        self.open = None;
    }
}

impl OpenPrompt {
    /// Handles the end of the order that gives the prompt.
    fn order_ended(
        &mut self,
        ended: &EndedOrder,
        facts: &PromptFacts,
        effects: &mut Vec<Effect>,
    ) -> Way {
        if self.order != Some(ended.id) {
            return Ok(());
        }
        let not_given = match &ended.end {
            OrderEnd::Answered(Outcome::Filled(Ok(()))) if self.submits => {
                self.order = None;
                self.typed.clone_from(&self.text);
                self.left.clear();
                return self.box_changed(facts, effects);
            }
            OrderEnd::Answered(Outcome::Filled(Ok(()))) => {
                return Err(SubmissionEnd::Filled(self.text.clone()));
            }
            OrderEnd::Answered(Outcome::Filled(Err(Refusal::Dialog))) => {
                "a dialog of the agent's waits for you"
            }
            OrderEnd::Answered(Outcome::Filled(Err(Refusal::Draft))) => {
                "the agent's prompt box holds a text that was not submitted"
            }
            OrderEnd::Unanswered | OrderEnd::Gone => {
                "it is not known whether it stands in the agent's prompt box: look there"
            }
            why @ (OrderEnd::Answered(_) | OrderEnd::NotTaken) => {
                tracing::info!(?why, "the bridge does not give the prompt: it is typed");
                self.check_undisturbed(facts)?;
                let Some(why) = facts.agent.text_refusal() else {
                    self.order = None;
                    self.since = facts.now;
                    self.type_on(facts, effects);
                    return Ok(());
                };
                why
            }
        };
        Err(if self.submits {
            SubmissionEnd::Failed(format!("the prompt is not given: {not_given}"))
        } else {
            SubmissionEnd::NotFilled
        })
    }

    /// Types the next portion.
    fn type_on(&mut self, facts: &PromptFacts, effects: &mut Vec<Effect>) {
        let most = if claude::takes_portions(facts.agent.version.as_deref()) {
            PORTION
        } else {
            usize::MAX
        };
        let mut portion = Vec::new();
        let mut bytes = 0;
        while let Some(piece) = self.left.pop_front() {
            let size = piece.len() + MARKS;
            if bytes > 0 && bytes + size > most {
                self.left.push_front(piece);
                break;
            }
            bytes += size;
            self.typed.push_str(&piece);
            portion.push(piece);
        }
        effects.push(Effect::Paste(portion));
        effects.push(self.timer(if facts.generic {
            ENTER_AFTER
        } else {
            SHOWN_WITHIN
        }));
    }

    const fn timer(&self, wait: Duration) -> Effect {
        Effect::SetTimer(TimerId::Enter(self.epoch), wait)
    }

    /// Handles a prompt that the agent has taken, which may be another one.
    fn taken(&self, prompt: &str) -> Way {
        if arrived(prompt) == arrived(&self.text) {
            return Err(SubmissionEnd::Over);
        }
        if self.enters > 0 && prompt.contains(self.text.trim()) {
            let why =
                "the prompt arrived with other text around it: look at the agent's last prompt";
            return Err(SubmissionEnd::Failed(why.to_owned()));
        }
        Ok(())
    }

    /// Handles a change of the prompt box: our text may be in it, or may have left it.
    fn box_changed(&mut self, facts: &PromptFacts, effects: &mut Vec<Effect>) -> Way {
        if self.order.is_some() {
            return Ok(());
        }
        if self.enters > 0 {
            if !self.proves && !facts.shows(&self.text) {
                return Err(SubmissionEnd::Over);
            }
            return Ok(());
        }
        if !facts.shows(&self.typed) {
            // With a person's text beside it, the box will never show ours alone.
            self.check_undisturbed(facts)?;
            effects.push(self.timer(SHOWN_WITHIN));
            return Ok(());
        }
        if !self.left.is_empty() {
            self.check_undisturbed(facts)?;
            self.type_on(facts, effects);
            return Ok(());
        }
        if self.submits {
            return self.press_enter(facts, effects);
        }
        self.check_undisturbed(facts)?;
        Err(SubmissionEnd::Filled(self.text.clone()))
    }

    /// Sends an Enter that is due, or gives up.
    fn time_over(&mut self, facts: &PromptFacts, effects: &mut Vec<Effect>) -> Way {
        if facts.generic {
            if self.submits {
                effects.push(Effect::Type(b"\r".to_vec()));
            }
            return Err(SubmissionEnd::Over);
        }
        if self.enters == 0 {
            let why = "the prompt box does not show what was typed, so it is not submitted: look at the agent's prompt";
            return Err(self.left_as_is(Some(why), facts));
        }
        if self.enters < LOOKS.len() && facts.shows(&self.text) {
            return self.press_enter(facts, effects);
        }
        let Some(look) = LOOKS.get(self.enters) else {
            let why = "what was typed is not confirmed: look at the agent's prompt";
            return Err(SubmissionEnd::Failed(why.to_owned()));
        };
        // There is a dialog, a draft or an empty box: nothing is pressed, and the proof may still come.
        effects.push(self.timer(*look));
        self.enters += 1;
        Ok(())
    }

    /// Ends the prompt if a person typed meanwhile, or the agent has ended: then the text is left as it is.
    fn check_undisturbed(&self, facts: &PromptFacts) -> Way {
        let person = facts.agent.is_typed_since(self.since);
        if !person && facts.agent.state != AgentState::Exited {
            return Ok(());
        }
        let why = if self.order.is_none() {
            "you typed while a prompt was on its way: it is left in the prompt box"
        } else {
            "you typed while a prompt was on its way: it is not given"
        };
        Err(self.left_as_is(person.then_some(why), facts))
    }

    /// Returns the end of a prompt of which the typed part is left as it is.
    fn left_as_is(&self, why: Option<&str>, facts: &PromptFacts) -> SubmissionEnd {
        // A text that was typed completely is there, with what a person may have added, or was submitted by them.
        let there =
            self.order.is_none() && self.left.is_empty() && facts.agent.prompt_box.is_present();
        match (self.submits, there) {
            (true, _) => why.map_or(SubmissionEnd::Over, |why| {
                SubmissionEnd::Failed(why.to_owned())
            }),
            (false, true) => SubmissionEnd::Filled(self.text.clone()),
            (false, false) => SubmissionEnd::NotFilled,
        }
    }

    /// Submits what the prompt box holds, which is our text.
    fn press_enter(&mut self, facts: &PromptFacts, effects: &mut Vec<Effect>) -> Way {
        self.check_undisturbed(facts)?;
        let form = if self.enters < OWN_FORM {
            claude::ENTER
        } else {
            b"\r"
        };
        let look = LOOKS[self.enters.min(LOOKS.len() - 1)];
        self.enters += 1;
        effects.extend([Effect::Type(form.to_vec()), self.timer(look)]);
        Ok(())
    }
}

/// Returns a text as the client hands it on: its prompt box makes four blanks of a tab (measured with 2.1.197 and 2.1.330).
fn arrived(text: &str) -> String {
    clean::composed(text.trim()).replace('\t', "    ")
}
