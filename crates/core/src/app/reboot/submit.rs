//! A prompt that we give: filled in by the client's own side, or typed; its Enter, and the proof that it was taken.
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

use std::time::Duration;

use crate::api::wire::AgentState;
use pitstop_agent::{
    bridge::{BridgeOrder, Outcome, Refusal, UnsentPrompt},
    claude::{self, prompt_box::PromptBox},
};
use pitstop_base::{clean, clock::At};
use pitstop_handoff as handoff;

use crate::app::{
    effect::Effect,
    event::TimerId,
    facts::typing_refusal,
    model::{
        Model,
        orders::{EndedOrder, OrderEnd, Purpose},
        submission::Submission,
    },
    orders,
};

/// The time that the client's side may take over a prompt: it waits for what came between in the client, such as a turn.
pub(in crate::app) const GIVEN_WITHIN: Duration = Duration::from_secs(20);

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

/// The largest number of UTF-16 units of a prompt box that the bridge reports.
const REPORTED: usize = 65_536;

/// The largest number of bytes that are typed before the prompt box shows them.
const PORTION: usize = 4_000;

/// The number of bytes of the two marks around a paste.
const MARKS: usize = "\x1b[200~\x1b[201~".len();

/// Gives a prompt and submits it; the error is what keeps it from being given now.
pub fn submit(model: &mut Model, text: &str) -> Result<(), &'static str> {
    begin(model, text, true, None)
}

/// Puts a text into the prompt box and leaves it there for the human; the error is what keeps it from being put there now. Where
/// the client's own side can place it, the cursor is at this position, in UTF-16 units, and otherwise behind the text.
pub fn fill(model: &mut Model, text: &str, cursor: Option<usize>) -> Result<(), &'static str> {
    begin(model, text, false, cursor)
}

fn begin(
    model: &mut Model,
    given: &str,
    submits: bool,
    cursor: Option<usize>,
) -> Result<(), &'static str> {
    if let Some(why) = typing_refusal(model) {
        return Err(why);
    }
    let epoch = model.next_epoch();
    let text = handoff::sendable(given);
    let left = if model.is_generic() {
        vec![text.clone()]
    } else {
        claude::pieces(&claude::boxed(text.clone()))
    };
    // There is no hook for commands and for lines for the shell.
    let command = text.starts_with(['/', '!']);
    let proves = model.session.agent.hooked && !command;
    model.draft.seen_signals.expect_echo(&text);
    model.session.submitted = submits.then(|| (text.clone(), model.now));
    if submits {
        model.session.agent.activity.elsewhere.submitted();
    }
    let bridge = model.session.agent.bridge.of(model.session.id);
    let order = bridge.and_then(|_| {
        if submits {
            let fills =
                !text.starts_with(['/', '!', '#']) && text.encode_utf16().count() < REPORTED;
            fills.then(|| fill_order(&claude::boxed(text.clone()), None))
        } else {
            Some(fill_order(given, cursor))
        }
    });
    model.session.submission = Some(Submission {
        epoch,
        since: model.now,
        text,
        typed: String::new(),
        left: left.into(),
        submits,
        enters: 0,
        order: None,
        proves,
    });
    let Some(order) = order else {
        type_on(model);
        return Ok(());
    };
    let id = orders::give(model, Purpose::Prompt, order, GIVEN_WITHIN);
    if let Some(submission) = &mut model.session.submission {
        submission.order = Some(id);
    }
    Ok(())
}

/// Returns the order that puts a text into the prompt box, with the blanks at its end too.
fn fill_order(text: &str, cursor: Option<usize>) -> BridgeOrder {
    let text = clean::typed(text);
    let end = text.encode_utf16().count();
    let cursor = cursor.map_or(end, |cursor| cursor.min(end));
    BridgeOrder::FillDraft { text, cursor }
}

/// Handles the end of the order for the prompt that is on its way.
pub fn order_ended(model: &mut Model, ended: &EndedOrder) {
    let Some(submission) = &mut model.session.submission else {
        return;
    };
    if submission.order != Some(ended.id) {
        return;
    }
    let (submits, text) = (submission.submits, submission.text.clone());
    match &ended.end {
        OrderEnd::Answered(Outcome::Filled(Ok(()))) if submits => {
            submission.order = None;
            submission.typed.clone_from(&text);
            submission.left.clear();
            box_changed(model);
        }
        OrderEnd::Answered(Outcome::Filled(Ok(()))) => {
            model.session.submission = None;
            stands(model, &text);
        }
        OrderEnd::Answered(Outcome::Filled(Err(Refusal::Dialog))) => {
            not_filled(model, "a dialog of the agent's waits for you");
        }
        OrderEnd::Answered(Outcome::Filled(Err(Refusal::Draft))) => {
            not_filled(
                model,
                "the agent's prompt box holds a text that was not submitted",
            );
        }
        OrderEnd::Unanswered | OrderEnd::Gone => {
            not_filled(
                model,
                "it is not known whether it stands in the agent's prompt box: look there",
            );
        }
        OrderEnd::Answered(why) => {
            tracing::info!(?why, "the bridge does not give the prompt: it is typed");
            type_instead(model);
        }
        OrderEnd::NotTaken => type_instead(model),
    }
}

/// Gives up a prompt that the client's side has not put into the prompt box, or may not have.
fn not_filled(model: &mut Model, why: &str) {
    let submission = model.session.submission.take();
    if submission.is_some_and(|submission| submission.submits) {
        model.error(format!("the prompt is not given: {why}"));
    } else {
        lost_sight(model);
    }
}

/// Types what the client's side has not given.
fn type_instead(model: &mut Model) {
    if disturbed(model) {
        return;
    }
    let Some(mut submission) = model.session.submission.take() else {
        return;
    };
    if let Some(why) = typing_refusal(model) {
        model.session.submission = Some(submission);
        return not_filled(model, why);
    }
    submission.order = None;
    submission.since = model.now;
    model.session.submission = Some(submission);
    type_on(model);
}

/// Types the next portion.
fn type_on(model: &mut Model) {
    let generic = model.is_generic();
    let Some(submission) = &mut model.session.submission else {
        return;
    };
    let most = if claude::takes_portions(model.session.agent.version.as_deref()) {
        PORTION
    } else {
        usize::MAX
    };
    let mut portion = Vec::new();
    let mut bytes = 0;
    while let Some(piece) = submission.left.pop_front() {
        let size = piece.len() + MARKS;
        if bytes > 0 && bytes + size > most {
            submission.left.push_front(piece);
            break;
        }
        bytes += size;
        submission.typed.push_str(&piece);
        portion.push(piece);
    }
    let wait = if generic { ENTER_AFTER } else { SHOWN_WITHIN };
    let timer = TimerId::Enter(submission.epoch);
    model.emit(Effect::Paste(portion));
    model.emit(Effect::SetTimer(timer, wait));
}

/// Handles a prompt that the agent has taken: ours, if that is on its way.
pub fn prompted(model: &mut Model, prompt: &str) {
    let Some(submission) = &model.session.submission else {
        return;
    };
    if arrived(prompt) == arrived(&submission.text) {
        model.session.submission = None;
    } else if submission.enters > 0 && prompt.contains(submission.text.trim()) {
        model.session.submission = None;
        model
            .error("the prompt arrived with other text around it: look at the agent's last prompt");
    }
}

/// Notes that no hook will report the prompt that is on its way.
pub(in crate::app) fn without_hooks(model: &mut Model) {
    if let Some(submission) = &mut model.session.submission {
        submission.proves = false;
    }
}

/// Returns a text as the client hands it on: its prompt box makes four blanks of a tab (measured with 2.1.197 and 2.1.330).
fn arrived(text: &str) -> String {
    clean::composed(text.trim()).replace('\t', "    ")
}

/// Reports whether the prompt box is on the screen and holds this text, as far as the screen shows it or by the client's own report.
fn shows(model: &Model, text: &str) -> bool {
    let agent = &model.session.agent;
    let said = |draft: &UnsentPrompt| PromptBox::said(&draft.text).holds(text);
    agent.prompt_box.holds(text)
        || (matches!(agent.prompt_box, PromptBox::Holds(_))
            && agent.bridge.draft(model.session.id).is_some_and(said))
}

/// Handles a change of the prompt box: our text may be in it, or may have left it.
pub fn box_changed(model: &mut Model) {
    let typed = |submission: &&Submission| submission.order.is_none();
    let Some(submission) = model.session.submission.as_ref().filter(typed) else {
        return;
    };
    if submission.enters == 0 {
        if shows(model, &submission.typed) {
            return go_on(model);
        }
        let timer = TimerId::Enter(submission.epoch);
        // With a person's text beside it, the box will never show ours alone.
        if !disturbed(model) {
            model.emit(Effect::SetTimer(timer, SHOWN_WITHIN));
        }
    } else if !submission.proves && !shows(model, &submission.text) {
        model.session.submission = None;
    }
}

/// Sends an Enter that is due, or handles a late proof.
pub fn timer(model: &mut Model, epoch: u64) {
    let Some(submission) = model
        .session
        .submission
        .as_ref()
        .filter(|one| one.epoch == epoch)
    else {
        return;
    };
    if model.is_generic() {
        if submission.submits {
            model.emit(Effect::Type(b"\r".to_vec()));
        }
        model.session.submission = None;
        return;
    }
    if submission.enters == 0 {
        if submission.submits {
            model.error(
                "the prompt box does not show what was typed, so it is not submitted: look at the agent's prompt",
            );
        }
        return leave(model);
    }
    if submission.enters < LOOKS.len() && shows(model, &submission.text) {
        return press_enter(model);
    }
    let Some(look) = LOOKS.get(submission.enters) else {
        model.session.submission = None;
        model.error("what was typed is not confirmed: look at the agent's prompt");
        return;
    };
    // There is a dialog, a draft or an empty box: nothing is pressed, and the proof may still come.
    model.emit(Effect::SetTimer(TimerId::Enter(epoch), *look));
    if let Some(submission) = &mut model.session.submission {
        submission.enters += 1;
    }
}

/// Goes on when the prompt box shows what was typed: with the rest of it, or with its Enter.
fn go_on(model: &mut Model) {
    if disturbed(model) {
        return;
    }
    match &model.session.submission {
        Some(submission) if !submission.left.is_empty() => type_on(model),
        Some(submission) if !submission.submits => {
            let text = submission.text.clone();
            model.session.submission = None;
            stands(model, &text);
        }
        _ => press_enter(model),
    }
}

/// Reports whether a person typed meanwhile, or the agent has ended: then the text is left as it is.
fn disturbed(model: &mut Model) -> bool {
    let Some(submission) = &model.session.submission else {
        return false;
    };
    let typed = |typed: At| typed.since_start >= submission.since.since_start;
    let person = model.session.agent.typed_at.is_some_and(typed);
    if !person && model.session.agent.state != AgentState::Exited {
        return false;
    }
    if person && submission.submits {
        let typed = submission.order.is_none();
        model.error(if typed {
            "you typed while a prompt was on its way: it is left in the prompt box"
        } else {
            "you typed while a prompt was on its way: it is not given"
        });
    }
    leave(model);
    true
}

/// Leaves what was typed as it is.
fn leave(model: &mut Model) {
    let Some(submission) = model.session.submission.take() else {
        return;
    };
    // A text that was typed completely is there, with what a person may have added, or was submitted by them.
    let there = submission.order.is_none()
        && submission.left.is_empty()
        && model.session.agent.prompt_box.is_present();
    match (submission.submits, there) {
        (true, _) => {}
        (false, true) => stands(model, &submission.text),
        (false, false) => lost_sight(model),
    }
}

/// Submits what the prompt box holds, which is our text.
fn press_enter(model: &mut Model) {
    if disturbed(model) {
        return;
    }
    let Some(submission) = &mut model.session.submission else {
        return;
    };
    let form = if submission.enters < OWN_FORM {
        claude::ENTER
    } else {
        b"\r"
    };
    let look = LOOKS[submission.enters.min(LOOKS.len() - 1)];
    submission.enters += 1;
    let timer = TimerId::Enter(submission.epoch);
    model.emit(Effect::Type(form.to_vec()));
    model.emit(Effect::SetTimer(timer, look));
}

/// Notes that the prompt box shows the text.
fn stands(model: &mut Model, text: &str) {
    model.session.agent.draft = true;
    let waiting = model.reboot.unsent.as_ref();
    if waiting.is_some_and(|waiting| handoff::sendable(&waiting.text) == text) {
        model.reboot.unsent = None;
        model.info("your unsent prompt stands in the prompt box again, still unsent");
    }
}

/// Reports that the text did not get into the prompt box; it is kept for the next start.
fn lost_sight(model: &mut Model) {
    if let Some(waiting) = &mut model.reboot.unsent {
        waiting.failed = true;
        model.error(
            "your unsent prompt could not be put back: it is kept, and the next session tries again",
        );
    }
}
