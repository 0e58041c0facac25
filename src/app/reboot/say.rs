//! A prompt that we type: the text, its Enter, and the proof that it was taken.
//!
//! ```text
//!                    ┌─────── more to type ────────┐
//! prompt box empty ─►▼ text ─► prompt box holds just this text ─► Enter ─0.8 s─► Enter ─3 s─► carriage return ─6 s─► error
//!                      └─20 s without a change─► error             └──────────────┴────────────────┴─► a hook reports it: done
//! ```
//!
//! A long text goes in portions, each when the box shows the one before: a reader gets at most 4095 bytes of a terminal at once
//! (`N_TTY_BUF_SIZE` of Linux), and a client that is busy when the end of a paste is cut in two takes its rest for typed text.
//!
//! An Enter answers whatever stands in the pane. So each one is sent only while the prompt box is seen on the screen with our
//! text in it and nothing else: no dialog is open then, and no draft of the human's is submitted. A client that was busy may
//! lose an Enter, and another one is safe for the same reason. The text itself is never sent twice.
//!
//! Of other programs we know no prompt box: they get the text and, a little later, a carriage return.

use std::time::Duration;

use crate::{agent::claude, api::wire::AgentState, clean, clock::At, handoff};

use crate::app::{
    effect::Effect,
    event::TimerId,
    facts::typing_refusal,
    model::{Model, saying::Saying},
};

/// How long after the text its Enter is sent to a program whose prompt we cannot see, so that the two come in separate reads.
const ENTER_AFTER: Duration = Duration::from_millis(120);

/// How long the prompt box may stay as it is before it shows the text: a client draws a long one piece by piece.
const SHOWN_WITHIN: Duration = Duration::from_secs(20);

/// How long after each Enter it is checked whether the prompt was taken.
const LOOKS: [Duration; 3] = [
    Duration::from_millis(800),
    Duration::from_secs(3),
    Duration::from_secs(6),
];

/// The Enters in the client's own form; the last one is for a client that does not know it any more.
const OWN_FORM: usize = LOOKS.len() - 1;

/// The most bytes that are typed before the prompt box shows them.
const PORTION: usize = 4_000;

/// The bytes of the two marks around a paste.
const MARKS: usize = "\x1b[200~\x1b[201~".len();

/// Types a prompt and submits it; the error says what keeps it from being typed now.
pub fn say(model: &mut Model, text: &str) -> Result<Vec<Effect>, &'static str> {
    begin(model, text, true)
}

/// Types a text into the prompt box and leaves it there for the human; the error says what keeps it from being typed now.
pub fn put(model: &mut Model, text: &str) -> Result<Vec<Effect>, &'static str> {
    begin(model, text, false)
}

fn begin(model: &mut Model, text: &str, submits: bool) -> Result<Vec<Effect>, &'static str> {
    if let Some(why) = typing_refusal(model) {
        return Err(why);
    }
    let epoch = model.next_epoch();
    let text = handoff::sendable(text);
    let left = if model.is_generic() {
        vec![text.clone()]
    } else {
        claude::pieces(&claude::boxed(text.clone()))
    };
    // Of commands and of lines for the shell there is no hook.
    let command = text.starts_with(['/', '!']);
    let proves = model.session.agent.hooked && !command;
    model.draft.heard.expect_echo(&text);
    model.session.said = submits.then(|| (text.clone(), model.now));
    model.session.saying = Some(Saying {
        epoch,
        since: model.now,
        text,
        typed: String::new(),
        left: left.into(),
        submits,
        enters: 0,
        proves,
    });
    Ok(type_on(model))
}

/// Types the next portion.
fn type_on(model: &mut Model) -> Vec<Effect> {
    let generic = model.is_generic();
    let Some(saying) = &mut model.session.saying else {
        return Vec::new();
    };
    let most = if claude::takes_portions(model.session.agent.version.as_deref()) {
        PORTION
    } else {
        usize::MAX
    };
    let mut portion = Vec::new();
    let mut bytes = 0;
    while let Some(piece) = saying.left.pop_front() {
        let size = piece.len() + MARKS;
        if bytes > 0 && bytes + size > most {
            saying.left.push_front(piece);
            break;
        }
        bytes += size;
        saying.typed.push_str(&piece);
        portion.push(piece);
    }
    let wait = if generic { ENTER_AFTER } else { SHOWN_WITHIN };
    vec![
        Effect::Paste(portion),
        Effect::SetTimer(TimerId::Enter(saying.epoch), wait),
    ]
}

/// The agent has taken a prompt: ours, if that is on its way.
pub fn prompted(model: &mut Model, prompt: &str) {
    let Some(saying) = &model.session.saying else {
        return;
    };
    if arrived(prompt) == arrived(&saying.text) {
        model.session.saying = None;
    } else if saying.enters > 0 && prompt.contains(saying.text.trim()) {
        model.session.saying = None;
        model
            .error("the prompt arrived with other text around it: look at the agent's last prompt");
    }
}

/// No hook will report the prompt that is on its way.
pub(in crate::app) fn without_hooks(model: &mut Model) {
    if let Some(saying) = &mut model.session.saying {
        saying.proves = false;
    }
}

/// A text as the client hands it on: its prompt box makes four blanks of a tab (measured with 2.1.197 and 2.1.330).
fn arrived(text: &str) -> String {
    clean::composed(text.trim()).replace('\t', "    ")
}

/// The prompt box has changed: our text may be in it, or may have left it.
pub fn box_changed(model: &mut Model) -> Vec<Effect> {
    let Some(saying) = &model.session.saying else {
        return Vec::new();
    };
    if saying.enters == 0 {
        if model.session.agent.prompt_box.holds(&saying.typed) {
            return go_on(model);
        }
        return vec![Effect::SetTimer(TimerId::Enter(saying.epoch), SHOWN_WITHIN)];
    }
    if !saying.proves && !model.session.agent.prompt_box.holds(&saying.text) {
        model.session.saying = None;
    }
    Vec::new()
}

/// An Enter is due, or the proof is late.
pub fn timer(model: &mut Model, epoch: u64) -> Vec<Effect> {
    let Some(saying) = model
        .session
        .saying
        .as_ref()
        .filter(|one| one.epoch == epoch)
    else {
        return Vec::new();
    };
    if model.is_generic() {
        let submits = saying.submits;
        model.session.saying = None;
        let enter = Effect::Type(b"\r".to_vec());
        return submits.then_some(enter).into_iter().collect();
    }
    if saying.enters == 0 {
        if saying.submits {
            model.error(
                "the prompt box does not show what was typed, so it is not submitted: look at the agent's prompt",
            );
        }
        return leave(model);
    }
    if saying.enters < LOOKS.len() && model.session.agent.prompt_box.holds(&saying.text) {
        return press_enter(model);
    }
    let Some(look) = LOOKS.get(saying.enters) else {
        model.session.saying = None;
        model.error("what was typed is not confirmed: look at the agent's prompt");
        return Vec::new();
    };
    // A dialog, a draft or an empty box: nothing is pressed, and the proof may still come.
    let effects = vec![Effect::SetTimer(TimerId::Enter(epoch), *look)];
    if let Some(saying) = &mut model.session.saying {
        saying.enters += 1;
    }
    effects
}

/// The prompt box shows what was typed: the rest of it comes, or its Enter.
fn go_on(model: &mut Model) -> Vec<Effect> {
    if let Some(effects) = disturbed(model) {
        return effects;
    }
    match &model.session.saying {
        Some(saying) if !saying.left.is_empty() => type_on(model),
        Some(saying) if !saying.submits => {
            let text = saying.text.clone();
            model.session.saying = None;
            stands(model, &text)
        }
        _ => press_enter(model),
    }
}

/// What to do where a person typed meanwhile, or the agent has ended: then the text stays as it is.
fn disturbed(model: &mut Model) -> Option<Vec<Effect>> {
    let saying = model.session.saying.as_ref()?;
    let typed = |typed: At| typed.since_start >= saying.since.since_start;
    let person = model.session.agent.typed_at.is_some_and(typed);
    if !person && model.session.agent.state != AgentState::Exited {
        return None;
    }
    if person && saying.submits {
        model.error("you typed while a prompt was on its way: it is left in the prompt box");
    }
    Some(leave(model))
}

/// Leaves what was typed as it is.
fn leave(model: &mut Model) -> Vec<Effect> {
    let Some(saying) = model.session.saying.take() else {
        return Vec::new();
    };
    // What was typed whole stands there, with what a person may have added, or was submitted by them.
    let there = saying.left.is_empty() && model.session.agent.prompt_box.is_present();
    match (saying.submits, there) {
        (true, _) => Vec::new(),
        (false, true) => stands(model, &saying.text),
        (false, false) => {
            lost_sight(model);
            Vec::new()
        }
    }
}

/// Submits what the prompt box holds, which is our text.
fn press_enter(model: &mut Model) -> Vec<Effect> {
    if let Some(effects) = disturbed(model) {
        return effects;
    }
    let Some(saying) = &mut model.session.saying else {
        return Vec::new();
    };
    let form = if saying.enters < OWN_FORM {
        claude::ENTER
    } else {
        b"\r"
    };
    let look = LOOKS[saying.enters.min(LOOKS.len() - 1)];
    saying.enters += 1;
    vec![
        Effect::Type(form.to_vec()),
        Effect::SetTimer(TimerId::Enter(saying.epoch), look),
    ]
}

/// The prompt box shows it.
fn stands(model: &mut Model, text: &str) -> Vec<Effect> {
    model.session.agent.draft = true;
    if model
        .reboot
        .unsent
        .as_deref()
        .map(handoff::sendable)
        .as_deref()
        != Some(text)
    {
        return Vec::new();
    }
    model.reboot.unsent = None;
    model.info("your unsent prompt stands in the prompt box again, still unsent");
    vec![Effect::KeepDraft(None)]
}

/// It did not come to stand there; it is kept for the next start.
fn lost_sight(model: &mut Model) {
    if model.reboot.unsent.take().is_some() {
        model.error(
            "your unsent prompt could not be put back: it is kept, and the next start tries again",
        );
    }
}
