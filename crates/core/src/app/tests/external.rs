//! A document in `$EDITOR` while everything else goes on.

use super::*;
use crate::app::event::Document;

impl Bench {
    /// Opens the document that has the focus; what the editor was given.
    fn lend(&mut self) -> String {
        let effects = reboot::prefixed(self, KeyCode::Char('E'));
        first!(effects, Effect::OpenEditor(text) => text.clone()).expect("the editor is opened")
    }

    fn close(&mut self, text: &str) -> Vec<Effect> {
        let text = Some(text.to_owned());
        self.send(Event::Read(ReadEvent::EditorClosed(text)))
    }
}

fn written(effects: &[Effect]) -> Vec<(&str, &str)> {
    all!(effects, Effect::WriteScratchpad { base, text } => (base.as_str(), text.as_str()))
}

#[test]
fn what_the_agent_writes_meanwhile_is_not_what_the_edit_is_compared_with() {
    let mut bench = Bench::new();
    let base = bench.lend();
    bench.send(Event::Read(ReadEvent::Scratchpad(Some(
        "- [x] next".to_owned(),
    ))));
    let effects = bench.close("- [ ] next\n- [ ] mine\n");
    assert_ne!(base, "- [x] next");
    let both = ("- [x] next", "- [x] next\n- [ ] mine\n");
    assert_eq!(written(&effects), [both], "neither is lost");
    // Left as it was, it changes nothing.
    let base = bench.lend();
    bench.send(Event::Read(ReadEvent::Scratchpad(Some(
        "- [x] all".to_owned(),
    ))));
    assert!(written(&bench.close(&format!("{base}\n"))).is_empty());
    assert_eq!(bench.model.draft.notes.text(), "- [x] all");
}

#[test]
fn what_a_script_says_does_not_wait_for_the_editor() {
    let mut bench = Bench::new();
    bench.lend();
    let effects = bench.control(Control::Say("go on".to_owned()));
    assert!(ordered(&effects).contains("typed"), "{effects:?}");
}

#[test]
fn a_message_that_is_being_edited_is_not_sent() {
    let mut bench = Bench::new();
    bench.review();
    let base = bench.lend();
    let lent = bench.model.view.external.as_ref();
    assert_eq!(lent.map(|lent| lent.document), Some(Document::Handoff));
    let effects = bench.control(Control::Approve);
    assert!(
        matches!(&effects[0], Effect::Answer(_, Reply::Refused { why }) if why.contains("$EDITOR")),
        "{effects:?}"
    );
    bench.close(&format!("{base}\nand mind the gap"));
    bench.press(KeyCode::Enter);
    let start = starts(&bench.exited(0)).remove(0);
    assert!(start.prompt.unwrap().contains("and mind the gap"));
}

#[test]
fn auto_mode_waits_for_the_editor_and_asks_once_it_is_left() {
    let mut bench = Bench::in_mode(RebootMode::Auto);
    bench.used(155_000);
    bench.send(Event::TimerFired(TimerId::Age));
    let effects = bench.git();
    let timer = reboot::clock(&effects);
    let base = bench.lend();
    bench.wait(Duration::from_secs(60));
    let effects = bench.send(Event::TimerFired(timer.unwrap()));
    assert!(signals(&effects).is_empty(), "no one could see it coming");
    bench.close(&base);
    assert_eq!(bench.step(), Some(Step::Review));
    // One that has not begun yet does not begin.
    let mut bench = Bench::in_mode(RebootMode::Auto);
    let base = bench.lend();
    bench.used(155_000);
    bench.send(Event::TimerFired(TimerId::Age));
    assert_eq!(bench.step(), Some(Step::Armed));
    bench.close(&base);
    assert_eq!(bench.step(), Some(Step::Drafting));
}

#[test]
fn an_edit_of_a_message_whose_session_has_ended_is_not_taken() {
    let mut bench = Bench::new();
    bench.press(KeyCode::F(4));
    let base = bench.lend();
    bench.exited(1);
    bench.send(Event::Host(HostEvent::Resized {
        columns: 140,
        rows: 40,
    }));
    let restart = super::super::reboot::RebootAction::Restart;
    assert_eq!(super::super::reboot::act(&mut bench.model, restart), Ok(()));
    let effects = bench.model.take_effects();
    bench.settle(effects);
    bench.send(Event::TimerFired(TimerId::Age));
    bench.close(&format!("{base}\nmine"));
    assert!(bench.model.draft.handoff.edited.is_none());
}

#[test]
fn what_comes_behind_an_editor_is_shown_when_it_is_left() {
    let mut bench = Bench::new();
    let base = bench.lend();
    bench.model.info("a word");
    bench.wait(Duration::from_secs(600));
    bench.send(Event::TimerFired(TimerId::Notice));
    bench.close(&base);
    let shown = bench.model.view.notices.back().unwrap();
    assert_eq!((shown.text.as_str(), shown.at), ("a word", bench.at()));
}

#[test]
fn an_edit_that_is_saved_behind_an_agent_that_has_ended_is_kept_when_we_leave() {
    let mut bench = Bench::new();
    bench.press(KeyCode::F(4));
    let base = bench.lend();
    bench.exited(0);
    let effects = bench.send(Event::ShutdownAsked { signal: "SIGTERM" });
    assert!(has!(effects, Effect::Quit(_)), "{effects:?}");
    let effects = bench.close(&format!("{base}\nand mind the gap"));
    let kept = all!(effects, Effect::KeepCarried(_, carried) => carried.edited.clone());
    let mut kept = kept.into_iter().flatten();
    assert!(kept.any(|body| body.contains("and mind the gap")));
}
