//! The unsent prompt on its way to the next session.

use super::*;
use crate::app::{
    event::{BridgeEvent, TranscriptFacts},
    reboot::blocked_by,
    unsent::{Unsent, unsent},
};
use pitstop_agent::bridge::{BridgeOrder, OrderId, Outcome, Said, UnsentPrompt};

const DRAFT: &str = "fix the parser\nand the lexer\nthen run the tests";

/// A prompt box that holds more than can be known.
fn unreadable() -> PromptBox {
    PromptBox::Holds(ShownPrompt {
        rows: vec!["the end of it".to_owned()],
        whole: false,
        scrolled: None,
        room: 80,
    })
}

fn pasted(effects: &[Effect]) -> Option<String> {
    first!(effects, Effect::Paste(pieces) => pieces.concat())
}

fn enters(effects: &[Effect]) -> usize {
    all!(effects, Effect::Type(_) => ()).len()
}

/// A bench whose person has written a draft and approved a reboot over it.
fn rebooting() -> (Bench, String, Vec<Effect>) {
    let mut bench = Bench::new();
    bench.prompt_box(holds(DRAFT));
    bench.review();
    assert_eq!(unsent(&bench.model), Unsent::Text(DRAFT.to_owned()));
    let shown = bench.model.draft.handoff.current().text.clone();
    let effects = bench.press(KeyCode::Enter);
    (bench, shown, effects)
}

#[test]
fn a_draft_goes_over_into_the_next_sessions_prompt_box_without_an_enter() {
    let (mut bench, shown, effects) = rebooting();
    assert_eq!(kept(&effects), [Some(DRAFT.to_owned())]);
    let mut effects = bench.exited(0);
    effects.extend(bench.spawned(NEW + 1));
    effects.extend(bench.started(NEW));
    assert_eq!(pasted(&effects), None, "the handoff comes first");
    effects = bench.ready();
    effects.extend(bench.prompted(NEW, &shown));
    let text = pasted(&effects).expect("the draft is put back");
    assert_eq!(text, DRAFT);
    assert_eq!(enters(&effects), 0);
    assert_eq!(kept(&effects), [], "it stays on disk while it is unsent");
    assert_eq!(bench.model.reboot.unsent, None);
}

#[test]
fn the_old_agent_is_ended_once_the_draft_is_on_disk_as_it_stands() {
    let mut bench = Bench::new();
    bench.draft_answers = false;
    bench.prompt_box(holds("fix the"));
    let effects = bench.approve();
    assert_eq!(kept(&effects), [Some("fix the".to_owned())]);
    assert_eq!(signals(&effects), []);
    // Typed on meanwhile: what is on disk is not what stands there.
    bench.prompt_box(holds(DRAFT));
    let on_disk = |text: &str| Event::Read(ReadEvent::DraftKept(Some(text.to_owned())));
    let effects = bench.send(on_disk("fix the"));
    assert_eq!(signals(&effects), []);
    let effects = bench.send(on_disk(DRAFT));
    assert_eq!(signals(&effects), [StopSignal::Exit]);
    let waiting = bench.model.reboot.unsent.as_ref();
    assert_eq!(waiting.map(|waiting| waiting.text.as_str()), Some(DRAFT));
}

#[test]
fn a_draft_that_was_submitted_while_it_was_written_is_taken_off_the_disk() {
    let mut bench = Bench::new();
    bench.draft_answers = false;
    bench.prompt_box(holds(DRAFT));
    bench.approve();
    let mut effects = bench.prompt_box(PromptBox::Empty);
    effects.extend(bench.send(Event::Read(ReadEvent::DraftKept(Some(DRAFT.to_owned())))));
    assert_eq!(kept(&effects), [None]);
    assert_eq!(signals(&effects), [StopSignal::Exit]);
    assert_eq!(bench.model.reboot.unsent, None);
}

#[test]
fn no_reboot_goes_over_a_draft_that_cannot_be_read() {
    let mut bench = Bench::new();
    bench.prompt_box(unreadable());
    assert_eq!(blocked_by(&bench.model), [Block::Unsent]);
    let effects = bench.approve();
    assert_eq!(signals(&effects), []);
    assert_eq!(blocked_by(&bench.model), [Block::Unsent]);
    // Submitted or cleared it blocks nothing.
    let effects = bench.prompt_box(PromptBox::Empty);
    assert!(blocked_by(&bench.model).is_empty());
    assert_eq!(signals(&effects), [StopSignal::Exit]);
}

#[test]
fn what_was_typed_but_cannot_be_seen_blocks_too() {
    let mut bench = Bench::new();
    bench.press(KeyCode::Char('x'));
    bench.prompt_box(PromptBox::Absent);
    assert_eq!(unsent(&bench.model), Unsent::Unreadable);
    bench.prompt_box(PromptBox::Empty);
    assert_eq!(unsent(&bench.model), Unsent::Nothing);
}

#[test]
fn a_draft_of_a_pitstop_that_ended_meanwhile_is_put_back_by_the_next() {
    let mut bench = Bench::new();
    let effects = bench.send(Event::Read(ReadEvent::Draft(DRAFT.to_owned())));
    assert_eq!(pasted(&effects).as_deref(), Some(DRAFT));
    assert_eq!(bench.kept_in_a_moment(), [], "the disk has it");
    // Submitted or removed it is taken off.
    bench.prompt_box(PromptBox::Empty);
    assert_eq!(bench.kept_in_a_moment(), [None]);
}

impl Bench {
    /// Returns the orders to keep a draft, or none, that are due a moment after a change.
    fn kept_in_a_moment(&mut self) -> Vec<Option<String>> {
        kept(&self.send(Event::TimerFired(TimerId::KeepCarried)))
    }
}

#[test]
fn it_waits_while_the_prompt_box_holds_something_else_and_both_are_kept() {
    let mut bench = Bench::new();
    bench.prompt_box(holds("already typing"));
    let effects = bench.send(Event::Read(ReadEvent::Draft(DRAFT.to_owned())));
    assert_eq!(pasted(&effects), None);
    let both = format!("{DRAFT}\nalready typing");
    assert_eq!(bench.kept_in_a_moment(), [Some(both.clone())]);
    // A reboot takes both over.
    assert_eq!(unsent(&bench.model), Unsent::Text(both));
    let effects = bench.prompt_box(PromptBox::Empty);
    assert_eq!(pasted(&effects).as_deref(), Some(DRAFT));
    assert_eq!(bench.kept_in_a_moment(), [Some(DRAFT.to_owned())]);
}

#[test]
fn what_a_person_types_while_it_is_put_back_is_kept_with_it() {
    let mut bench = Bench::new();
    bench.shows = false;
    let effects = bench.send(Event::Read(ReadEvent::Draft(DRAFT.to_owned())));
    assert_eq!(pasted(&effects).as_deref(), Some(DRAFT));
    bench.press(KeyCode::Char('x'));
    let both = format!("{DRAFT}x");
    bench.prompt_box(holds(&both));
    assert_eq!(bench.kept_in_a_moment(), [Some(both.clone())]);
    assert_eq!(unsent(&bench.model), Unsent::Text(both));
}

#[test]
fn one_that_a_person_has_written_again_is_not_put_back_too() {
    let mut bench = Bench::new();
    let again = format!("{DRAFT}, at once");
    bench.prompt_box(holds(&again));
    bench.send(Event::Read(ReadEvent::Draft(DRAFT.to_owned())));
    assert_eq!(bench.kept_in_a_moment(), [Some(again)]);
    let effects = bench.prompt_box(PromptBox::Empty);
    assert_eq!(pasted(&effects), None);
    assert_eq!(bench.kept_in_a_moment(), [None]);
}

#[test]
fn one_that_is_not_seen_to_stand_there_is_kept_on_disk() {
    let mut bench = Bench::new();
    bench.shows = false;
    let effects = bench.send(Event::Read(ReadEvent::Draft(DRAFT.to_owned())));
    let timer = first!(effects, Effect::SetTimer(id @ TimerId::Enter(_), _) => *id);
    bench.prompt_box(PromptBox::Absent);
    let effects = bench.send(Event::TimerFired(timer.expect("it is looked for")));
    assert!(!effects.contains(&Effect::KeepDraft(None)), "{effects:?}");
    let notice = &bench.model.view.notices.back().expect("a notice").text;
    assert!(notice.contains("is kept"), "{notice}");
    assert_eq!(enters(&effects), 0);
    // Neither what is typed next takes its place, nor an empty box.
    bench.prompt_box(holds("more"));
    assert_eq!(bench.kept_in_a_moment(), [Some(format!("{DRAFT}\nmore"))]);
    let effects = bench.prompt_box(PromptBox::Empty);
    assert_eq!(pasted(&effects), None, "it was tried");
    assert_eq!(bench.kept_in_a_moment(), [Some(DRAFT.to_owned())]);
}

#[test]
fn what_we_typed_ourselves_is_no_draft_of_a_persons() {
    let mut bench = Bench::new();
    bench.shows = false;
    bench.control(Control::Say("go on with the task".to_owned()));
    bench.prompt_box(holds("go on with"));
    // The agent dies before it is submitted.
    bench.exited(137);
    bench.model.session.submission.abandon();
    assert_eq!(unsent(&bench.model), Unsent::Nothing);
    bench.prompt_box(holds("something else"));
    assert_ne!(unsent(&bench.model), Unsent::Nothing);
}

/// The newest order of an effect list.
fn order(effects: &[Effect]) -> Option<(OrderId, BridgeOrder)> {
    all!(effects, Effect::OrderBridge { id, order, .. } => (*id, order.clone())).pop()
}

/// A session with the bridge in force whose person has approved a reboot over a draft of which the screen knows less; with the
/// order to read it.
fn rebooting_with_bridge() -> (Bench, String, OrderId) {
    let mut bench = Bench::bridged();
    bench.prompt_box(unreadable());
    bench.review();
    bench.drafts("fix", 3);
    let shown = bench.model.draft.handoff.current().text.clone();
    let effects = bench.press(KeyCode::Enter);
    assert_eq!(signals(&effects), []);
    assert_eq!(kept(&effects), []);
    let (id, read) = order(&effects).expect("the prompt box is read");
    assert_eq!(read, BridgeOrder::ReadDraft);
    (bench, shown, id)
}

#[test]
fn the_bridge_reads_the_draft_as_it_is_and_puts_it_back_with_its_cursor() {
    let (mut bench, shown, id) = rebooting_with_bridge();
    let text = format!("{DRAFT}\n\n{}", "a long line ".repeat(40));
    let read = |id| {
        let text = text.clone();
        Said::Answered(id, Outcome::Draft(UnsentPrompt { text, cursor: 7 }))
    };
    let effects = bench.bridge_says(OLD, read(id));
    assert_eq!(kept(&effects), [Some(text.clone())]);
    // It is read once more when it is on disk.
    assert_eq!(signals(&effects), []);
    let (id, _) = order(&effects).expect("the prompt box is read once more");
    let effects = bench.bridge_says(OLD, read(id));
    assert_eq!(signals(&effects), [StopSignal::Exit]);
    let iteration = bench.model.session.iteration().next();
    bench.exited(0);
    bench.send(Event::Bridge(BridgeEvent::Offered {
        iteration,
        absence: None,
    }));
    let mut effects = bench.spawned(NEW + 1);
    effects.extend(bench.started(NEW));
    effects.extend(bench.ready());
    effects.extend(bench.prompted(NEW, &shown));
    assert_eq!(pasted(&effects), None, "its bridge comes in a moment");
    let mut effects = bench.bridge_says(NEW, Said::Hello);
    assert_eq!(pasted(&effects), None);
    let (id, fill) = order(&effects).expect("the draft is put back");
    let cursor = 7;
    assert_eq!(fill, BridgeOrder::FillDraft { text, cursor });
    let filled = Said::Answered(id, Outcome::Filled(Ok(())));
    effects = bench.bridge_says(NEW, filled);
    assert_eq!(kept(&effects), []);
    assert_eq!(bench.model.reboot.unsent, None);
}

#[test]
fn where_the_bridge_does_not_answer_the_screen_says_what_the_draft_is() {
    let mut bench = Bench::bridged();
    bench.prompt_box(holds(DRAFT));
    let effects = bench.approve();
    let (id, _) = order(&effects).expect("the prompt box is read");
    bench.send(Event::TimerFired(TimerId::Order(id)));
    let cancelled = BridgeEvent::Cancelled {
        id,
        was_taken: false,
    };
    let effects = bench.send(Event::Bridge(cancelled));
    assert_eq!(kept(&effects), [Some(DRAFT.to_owned())]);
}

#[test]
fn a_mark_in_the_place_of_a_paste_is_no_text_by_the_bridge_either() {
    let (mut bench, _, id) = rebooting_with_bridge();
    let text = "see [Pasted text #1 +29 lines]".to_owned();
    let effects = bench.bridge_says(
        OLD,
        Said::Answered(id, Outcome::Draft(UnsentPrompt { text, cursor: 0 })),
    );
    assert_eq!(signals(&effects), []);
    assert_eq!(blocked_by(&bench.model), [Block::Unsent]);
}

#[test]
fn a_long_paste_is_kept_though_the_client_shows_a_mark_in_its_place() {
    let mut bench = Bench::bridged();
    bench.drafts("1", 0);
    assert_eq!(bench.kept_in_a_moment(), [Some("1".to_owned())]);
    let pasted = "第一 🎉\r  indented\r\rlast\r".as_bytes().to_vec();
    for piece in [
        HostInput::PasteStart,
        HostInput::PasteChunk(pasted),
        HostInput::PasteEnd,
    ] {
        bench.send(Event::Host(HostEvent::Input(piece)));
    }
    bench.drafts("see [Pasted text #2 +4 lines] then", 0);
    let whole = "see 第一 🎉\n  indented\n\nlast\n then";
    assert_eq!(unsent(&bench.model), Unsent::Text(whole.to_owned()));
    assert_eq!(bench.kept_in_a_moment(), [Some(whole.to_owned())]);
    // An image cannot be read: the words around it are kept with its mark, and not what was typed before.
    let marked = "as in [Image #3] here";
    bench.drafts(marked, 0);
    assert_eq!(unsent(&bench.model), Unsent::Unreadable);
    assert_eq!(bench.kept_in_a_moment(), [Some(marked.to_owned())]);
    // Who resumes it is told what is lost.
    for (kept, back) in [(marked, Some("as in  here")), ("[Image #3]", None)] {
        let mut bench = Bench::bridged();
        bench.send(Event::Read(ReadEvent::Draft(kept.to_owned())));
        let notices = &bench.model.view.notices;
        assert!(notices.iter().any(|one| one.text.contains("an image")));
        let waiting = bench.model.reboot.unsent.as_ref();
        let waiting = waiting.map(|one| one.text.as_str());
        assert_eq!(waiting, back);
    }
}

#[test]
fn what_was_put_aside_goes_over_until_it_is_back_or_given() {
    for aside in ["then the docs", "第一 🎉\nund dann", "see a.rs first"] {
        let put_aside = || {
            let mut bench = Bench::bridged();
            bench.drafts(aside, 0);
            bench.key(KeyCode::Char('s'), KeyModifiers::CONTROL);
            bench.drafts("", 0);
            bench
        };
        let is = |bench: &Bench, text: &str| {
            assert_eq!(unsent(&bench.model), Unsent::Text(text.to_owned()));
        };
        let mut bench = put_aside();
        is(&bench, aside);
        assert_eq!(bench.kept_in_a_moment(), [Some(aside.to_owned())]);
        bench.drafts("and now this", 0);
        is(&bench, &format!("{aside}\nand now this"));
        // What is submitted is another text, behind which the client puts it back.
        bench.prompted(OLD, "and now this");
        bench.drafts("", 0);
        is(&bench, aside);
        bench.drafts(aside, 0);
        is(&bench, aside);
        bench.drafts("", 0);
        assert_eq!(unsent(&bench.model), Unsent::Nothing);
        let mut bench = put_aside();
        bench.prompted(OLD, &format!("first {aside}"));
        assert_eq!(unsent(&bench.model), Unsent::Nothing);
        // An image alone has no words that could be kept.
        let mut bench = Bench::bridged();
        bench.drafts("[Image #1]", 0);
        bench.key(KeyCode::Char('s'), KeyModifiers::CONTROL);
        bench.drafts("", 0);
        assert_eq!(unsent(&bench.model), Unsent::Nothing);
        // Cleared is not put aside.
        let mut bench = Bench::bridged();
        bench.drafts(aside, 0);
        bench.key(KeyCode::Char('c'), KeyModifiers::CONTROL);
        bench.drafts("", 0);
        assert_eq!(unsent(&bench.model), Unsent::Nothing);
    }
}

#[test]
fn what_is_typed_while_a_usage_limit_holds_is_kept() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "port it");
    bench.failed(Failure::UsageLimit, "limit reached");
    assert_eq!(bench.model.session.agent.state, AgentState::Limit);
    bench.prompt_box(holds("when you are back: run the tests"));
    let kept = bench.kept_in_a_moment();
    assert_eq!(kept, [Some("when you are back: run the tests".to_owned())]);
}

#[test]
fn prompts_that_wait_for_a_working_agent_are_kept_with_the_draft_until_they_are_given() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "port it");
    let queued = |texts: &[&str]| TranscriptFacts {
        queued: texts.iter().map(ToString::to_string).collect(),
        ..TranscriptFacts::default()
    };
    bench.facts_read(queued(&["日本語 too", "then\nthe docs"]));
    bench.prompt_box(holds("and"));
    let all = "日本語 too\nthen\nthe docs\nand".to_owned();
    assert_eq!(bench.kept_in_a_moment(), [Some(all)]);
    bench.facts_read(queued(&["then\nthe docs"]));
    let rest = "then\nthe docs\nand".to_owned();
    assert_eq!(bench.kept_in_a_moment(), [Some(rest)]);
    // Nothing waits for an agent that rests.
    bench.turn_ended(OLD);
    assert_eq!(bench.kept_in_a_moment(), [Some("and".to_owned())]);
}

#[test]
fn a_reboot_that_cuts_the_turn_takes_over_the_prompts_that_wait_for_its_end() {
    let mut bench = Bench::new();
    let shown = bench.model.draft.handoff.current().text.clone();
    bench.prompted(OLD, "port it");
    bench.facts_read(TranscriptFacts {
        queued: vec!["then the docs".to_owned()],
        ..TranscriptFacts::default()
    });
    for _ in 0..2 {
        bench.approve();
    }
    bench.exited(0);
    bench.spawned(NEW + 1);
    bench.started(NEW);
    let mut effects = bench.ready();
    let shown = pasted(&effects).unwrap_or(shown);
    effects.extend(bench.prompted(NEW, &shown));
    effects.extend(bench.prompt_box(PromptBox::Empty));
    effects.extend(bench.turn_ended(NEW));
    assert_eq!(pasted(&effects[1..]).as_deref(), Some("then the docs"));
}

#[test]
fn what_is_typed_while_a_reboot_waits_is_on_disk_within_a_moment() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "port it");
    bench.approve();
    assert_eq!(bench.step(), Some(Step::Waiting));
    bench.prompt_box(holds("then the docs"));
    let kept = bench.kept_in_a_moment();
    assert_eq!(kept, [Some("then the docs".to_owned())]);
    bench.exited(1);
    let found = bench.model.reboot.unsent.as_ref();
    assert_eq!(found.map(|one| one.text.as_str()), Some("then the docs"));
}

#[test]
fn a_line_for_the_shell_comes_back_as_one() {
    let mut bench = Bench::bridged();
    bench.prompt_box(holds("!make test"));
    bench.drafts("make test", 9);
    let line = "!make test".to_owned();
    assert_eq!(unsent(&bench.model), Unsent::Text(line.clone()));
    assert_eq!(bench.kept_in_a_moment(), [Some(line.clone())]);
    // It is typed, for a filled box takes prompts alone.
    let mut bench = Bench::bridged();
    let effects = bench.send(Event::Read(ReadEvent::Draft(line.clone())));
    assert_eq!(order(&effects), None);
    assert_eq!(pasted(&effects), Some(line));
    assert_eq!(enters(&effects), 0);
}

#[test]
fn a_draft_outlives_the_crash_of_its_agent() {
    let mut bench = Bench::bridged();
    bench.prompt_box(holds("fix the"));
    bench.drafts(DRAFT, 3);
    bench.exited(137);
    bench.press(KeyCode::Enter);
    bench.spawned(OLD + 1);
    let mut effects = bench.started(OLD);
    effects.extend(bench.ready());
    assert_eq!(pasted(&effects).as_deref(), Some(DRAFT));
    assert_eq!(kept(&effects), []);
    // What has ended it is no prompt.
    for (text, is_kept) in [("/ex", false), (":q", false), ("exit the loop", true)] {
        let mut bench = Bench::new();
        bench.prompt_box(holds(text));
        assert_eq!(bench.kept_in_a_moment(), [Some(text.to_owned())]);
        let orders = kept(&bench.exited(0));
        assert_eq!(bench.model.reboot.unsent.is_some(), is_kept, "{text}");
        assert_eq!(orders.contains(&None), !is_kept, "{text}: {orders:?}");
    }
}

#[test]
fn what_is_typed_before_the_proof_outlives_the_new_agent() {
    let mut bench = Bench::new();
    bench.rebooted();
    bench.spawned(3);
    bench.started(NEW);
    bench.ready();
    bench.press(KeyCode::Char('x'));
    bench.prompt_box(holds("and the docs"));
    let effects = bench.send(Event::TimerFired(TimerId::KeepCarried));
    let kept = all!(effects, Effect::KeepDraft(text) => text.clone());
    assert_eq!(kept, [Some("and the docs".to_owned())]);
    bench.exited(1);
    let waiting = bench.model.reboot.unsent.as_ref();
    let waiting = waiting.map(|waiting| waiting.text.as_str());
    assert_eq!(waiting, Some("and the docs"));
}
