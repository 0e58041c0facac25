//! Keys and pastes, by what has the focus.

use super::*;
use crate::app::{facts, view::layout};

#[test]
fn keys_in_a_panel_never_reach_the_child() {
    let mut bench = Bench::new();
    bench.press(KeyCode::F(3));
    assert_eq!(bench.model.view.focus, Focus::Scratchpad);
    for code in [
        KeyCode::Char('j'),
        KeyCode::Char('e'),
        KeyCode::Char('z'),
        KeyCode::Enter,
    ] {
        let effects = bench.press(code);
        assert!(!has!(effects, Effect::Forward(_)), "{code:?}");
    }
    let effects = bench.press(KeyCode::Esc);
    let written = first!(effects, Effect::WriteScratchpad { base, text } => (&**base, &**text));
    assert_eq!(written, Some(("- [ ] next", "z\n- [ ] next")));
}

/// A run at night would else wait in front of a full window for an editor that no one sees.
#[test]
fn what_a_person_leaves_open_is_kept_and_holds_no_reboot_once_the_last_terminal_is_gone() {
    let mut bench = Bench::in_mode(RebootMode::Auto);
    bench.press(KeyCode::F(3));
    bench.press(KeyCode::Char('e'));
    bench.press(KeyCode::Char('X'));
    bench.press(KeyCode::F(1));
    let announced = |effects: &[Effect]| reboot::clock(effects).is_some();
    bench.used(155_000);
    bench.wait(Duration::from_secs(600));
    bench.send(Event::TimerFired(TimerId::Age));
    let effects = bench.git();
    assert_eq!(bench.step(), Some(Step::Review));
    assert!(!announced(&effects), "{effects:?}");
    let effects = bench.send(Event::Host(HostEvent::Left));
    assert!(announced(&effects), "{effects:?}");
    assert_eq!(bench.model.draft.notes.text(), "X\n- [ ] next");
    assert!(bench.model.draft.notes.editor().is_none());
    assert_eq!(bench.model.view.overlay, None);
}

#[test]
fn a_paste_is_text_in_every_focus() {
    for focus in [Focus::Scratchpad, Focus::Handoff, Focus::History] {
        let mut bench = Bench::new();
        bench.model.view.focus = focus;
        let mut effects = Vec::new();
        for piece in [
            HostInput::PasteStart,
            HostInput::PasteChunk((0x20..0x7f).collect()),
            HostInput::PasteEnd,
        ] {
            effects.extend(bench.send(Event::Host(HostEvent::Input(piece))));
        }
        effects.retain(|effect| !matches!(effect, Effect::SetTimer(TimerId::Notice, _)));
        assert_eq!(effects, [], "in {focus:?}");
    }
}

#[test]
fn what_the_agent_writes_while_the_human_edits_is_merged() {
    let mut bench = Bench::new();
    bench.press(KeyCode::F(3));
    bench.press(KeyCode::Char('e'));
    bench.press(KeyCode::Char('X'));
    let disk = "- [ ] next\nfrom the agent".to_owned();
    bench.send(Event::Read(ReadEvent::Scratchpad(Some(disk))));
    let editor = bench.model.draft.notes.editor().unwrap();
    assert!(editor.text().contains('X'));
    assert!(
        editor.text().contains("from the agent"),
        "{}",
        editor.text()
    );
}

#[test]
fn the_handoff_is_pasted_only_into_an_empty_prompt_box() {
    let pasted = |prompt_box: PromptBox| {
        let mut bench = Bench::new();
        bench.press(KeyCode::F(4));
        bench.prompt_box(prompt_box);
        let effects = bench.press(KeyCode::Char('p'));
        has!(effects, Effect::Paste(_))
    };
    assert!(pasted(PromptBox::Empty));
    for other in [PromptBox::Absent, holds("half written")] {
        assert!(!pasted(other.clone()), "{other:?}");
    }
}

#[test]
fn a_key_that_help_does_not_know_goes_nowhere_and_leaves_it_open() {
    let mut bench = Bench::new();
    bench.press(KeyCode::F(1));
    for code in "/undo!xyz".chars().map(KeyCode::Char) {
        let effects = bench.press(code);
        assert!(!has!(effects, Effect::Forward(_)), "{code:?}");
        assert!(
            matches!(bench.model.view.overlay, Some(Overlay::Help { .. })),
            "{code:?}"
        );
    }
    bench.press(KeyCode::Enter);
    assert!(matches!(
        bench.model.view.overlay,
        Some(Overlay::Help { .. })
    ));
    bench.press(KeyCode::Esc);
    for closes in [KeyCode::Esc, KeyCode::F(1)] {
        bench.model.view.overlay = Some(Overlay::Help { scroll: 0 });
        let effects = bench.press(closes);
        assert_eq!(bench.model.view.overlay, None, "{closes:?}");
        assert!(!has!(effects, Effect::Forward(_)));
    }
}

#[test]
fn saving_and_leaving_the_editor_of_the_review_keeps_the_review() {
    let begins = |bench: &Bench| {
        let handoff = bench.model.draft.handoff.current();
        let above = handoff.body().split_once("\n## ").expect("a section").0;
        above.ends_with("\nX")
    };
    let mut bench = Bench::new();
    bench.review();
    bench.press(KeyCode::Char('e'));
    bench.press(KeyCode::Char('X'));
    bench.key(KeyCode::Char('s'), KeyModifiers::CONTROL);
    assert!(begins(&bench));
    bench.press(KeyCode::Esc);
    assert!(bench.model.draft.handoff.editor.is_none());
    assert_eq!(bench.model.view.overlay, Some(Overlay::Review));
    assert!(begins(&bench));
}

#[test]
fn the_keys_that_can_follow_are_shown_where_the_next_key_does_not_come_at_once() {
    let mut bench = Bench::new();
    let prefix = |bench: &mut Bench| bench.key(KeyCode::Char('q'), KeyModifiers::CONTROL);
    let waits = |effects: &[Effect]| has!(effects, Effect::SetTimer(TimerId::Prefix, _));
    assert!(waits(&prefix(&mut bench)));
    // A key that comes before is not delayed, and the time that is over then shows nothing.
    bench.press(KeyCode::Char('z'));
    assert!(bench.model.view.zoomed);
    bench.send(Event::TimerFired(TimerId::Prefix));
    assert!(!bench.model.view.shows_keys);
    prefix(&mut bench);
    bench.send(Event::TimerFired(TimerId::Prefix));
    assert!(bench.model.view.shows_keys);
    bench.press(KeyCode::Char('z'));
    assert!(!bench.model.view.shows_keys && !bench.model.view.zoomed);
    // The prefix itself goes to the agent then, too.
    prefix(&mut bench);
    bench.send(Event::TimerFired(TimerId::Prefix));
    let effects = prefix(&mut bench);
    assert!(!bench.model.view.shows_keys);
    assert!(has!(effects, Effect::Forward(_)));
}

#[test]
fn the_editor_opens_at_the_line_in_view_and_the_edit_is_in_sight_afterwards() {
    let mut bench = Bench::new();
    let notes = "## Objective\nship\n\n## Key Decisions\n- one\n- two\n\n## Blockers\n- none\n";
    let notes = notes.to_owned();
    bench.send(Event::Read(ReadEvent::Scratchpad(Some(notes))));
    bench.review();
    let line_of = |bench: &Bench, wanted: &str| {
        let mut lines = bench.model.draft.handoff.current().text.lines();
        lines.position(|line| line.contains(wanted)).expect(wanted)
    };
    // The section of the decisions is at the top: there the cursor is.
    while bench.model.view.reading.anchor != line_of(&bench, "## Key decisions") {
        bench.press(KeyCode::Tab);
    }
    bench.press(KeyCode::Char('e'));
    let editor = bench.model.draft.handoff.editor.as_ref().unwrap();
    assert_eq!(
        editor.area.lines()[editor.area.cursor().0],
        "## Key decisions"
    );
    let row = |bench: &Bench| {
        let editor = bench.model.draft.handoff.editor.as_ref().unwrap();
        editor.area.lines()[editor.area.cursor().0].clone()
    };
    while row(&bench) != "- one" {
        bench.press(KeyCode::Down);
    }
    bench.press(KeyCode::End);
    for c in " indeed".chars() {
        bench.press(KeyCode::Char(c));
    }
    // Elsewhere in the meantime, and back: the line that was edited is shown.
    bench.press(KeyCode::Esc);
    let edited = line_of(&bench, "one indeed");
    assert_eq!(bench.model.view.reading.anchor, edited);
    // What was scrolled counts: the cursor is no more where the section begins.
    bench.press(KeyCode::PageDown);
    bench.press(KeyCode::Char('e'));
    let editor = bench.model.draft.handoff.editor.as_ref().unwrap();
    assert!(
        editor.area.cursor().0 + 2 > edited,
        "{:?}",
        editor.area.cursor()
    );
}

#[test]
fn our_keys_are_keys_in_each_layout_and_texts_stay_what_is_typed() {
    for (prefix, zoom, copy) in [
        ('й', 'я', 'н'),
        ('q', 'ζ', 'υ'),
        ('q', 'ז', 'ט'),
        ('q', 'z', 'y'),
    ] {
        let mut bench = Bench::new();
        bench.key(KeyCode::Char(prefix), KeyModifiers::CONTROL);
        assert!(bench.model.view.prefixed, "{prefix}");
        bench.press(KeyCode::Char(zoom));
        assert!(bench.model.view.zoomed, "{zoom}");
        bench.press(KeyCode::F(8));
        bench.review();
        let effects = bench.press(KeyCode::Char(copy));
        assert!(has!(effects, Effect::Copy(_)), "{copy}");
        bench.press(KeyCode::Esc);
        // The agent gets the letter, and so do an editor and a search.
        for letter in [zoom, copy] {
            let effects = bench.press(KeyCode::Char(letter));
            let sent = |one: &Effect| matches!(one, Effect::Forward(HostInput::Key { event, .. }) if event.code == KeyCode::Char(letter));
            assert!(effects.iter().any(sent), "{letter}");
        }
        bench.press(KeyCode::F(3));
        bench.press(KeyCode::Char('e'));
        bench.press(KeyCode::Char(copy));
        let editor = bench.model.draft.notes.editor().expect("an editor");
        assert!(
            editor.area.lines()[0].starts_with(copy),
            "{:?}",
            editor.area.lines()
        );
    }
}

#[test]
fn a_letter_with_ctrl_or_alt_decides_nothing_in_the_review() {
    for modifier in [KeyModifiers::CONTROL, KeyModifiers::ALT] {
        for letter in ['a', 't', 'w', 'd', 'e'] {
            let mut bench = Bench::new();
            bench.review();
            let before = bench.step();
            bench.key(KeyCode::Char(letter), modifier);
            assert_eq!(bench.step(), before, "{letter} with {modifier:?}");
            assert_eq!(bench.model.view.overlay, Some(Overlay::Review));
            assert!(bench.model.draft.handoff.editor.is_none(), "{letter}");
        }
    }
}

fn paste(bench: &mut Bench, text: &str) {
    for piece in [
        HostInput::PasteStart,
        HostInput::PasteChunk(text.as_bytes().to_vec()),
        HostInput::PasteEnd,
    ] {
        bench.send(Event::Host(HostEvent::Input(piece)));
    }
}

#[test]
fn the_first_line_of_a_paste_goes_into_the_search_that_is_typed() {
    let text = "back-\tpressure\r\nq\n";
    let wanted = Some("back-pressure".to_owned());
    let search = |keys: &[KeyCode]| {
        let mut bench = Bench::new();
        for key in keys {
            bench.press(*key);
        }
        paste(&mut bench, text);
        let notices = &bench.model.view.notices;
        assert!(
            notices
                .iter()
                .all(|one| !one.text.contains("takes a paste")),
            "{notices:?}"
        );
        bench
    };
    let bench = search(&[KeyCode::F(1)]);
    assert_eq!(Some(&bench.model.view.help.query), wanted.as_ref());
    let bench = search(&[KeyCode::F(6), KeyCode::Char('/')]);
    assert_eq!(Some(&bench.model.view.history.query), wanted.as_ref());
    assert!(bench.model.view.history.typing);
    let bench = search(&[KeyCode::F(4), KeyCode::Char('/')]);
    assert_eq!(bench.model.draft.handoff.reading.typing, wanted);
    let bench = search(&[KeyCode::F(5), KeyCode::Char('/')]);
    assert_eq!(bench.model.view.reading.typing, wanted);
}

#[test]
fn what_is_cut_or_copied_in_an_editor_is_in_the_clipboard_and_can_be_pasted() {
    for (open, key) in [(3, 'x'), (3, 'c'), (4, 'x'), (5, 'x'), (5, 'c')] {
        let mut bench = Bench::new();
        bench.press(KeyCode::F(open));
        bench.press(KeyCode::Char('e'));
        for c in "ab".chars() {
            bench.press(KeyCode::Char(c));
        }
        let text = |bench: &Bench| {
            let draft = &bench.model.draft;
            let editor = draft.notes.editor().or(draft.handoff.editor.as_ref());
            editor.expect("an editor").text()
        };
        let before = text(&bench);
        // Without a selection nothing is copied, and what was is kept.
        let effects = bench.key(KeyCode::Char(key), KeyModifiers::CONTROL);
        assert!(!has!(effects, Effect::Copy(_)), "F{open} {key}");
        for _ in 0..2 {
            bench.key(KeyCode::Left, KeyModifiers::SHIFT);
        }
        let effects = bench.key(KeyCode::Char(key), KeyModifiers::CONTROL);
        assert!(
            has!(effects, Effect::Copy(text) if text == "ab"),
            "F{open} {key}"
        );
        assert_eq!(text(&bench) == before, key == 'c');
        bench.key(KeyCode::Char('v'), KeyModifiers::CONTROL);
        bench.key(KeyCode::Char('v'), KeyModifiers::CONTROL);
        let pasted = before.replacen("ab", if key == 'c' { "ababab" } else { "abab" }, 1);
        assert_eq!(text(&bench), pasted, "F{open} {key}");
    }
}

#[test]
fn the_next_match_is_gone_to_while_the_pattern_is_still_typed() {
    let mut bench = Bench::new();
    let notes = "- one\n- two\n- one\n".to_owned();
    bench.send(Event::Read(ReadEvent::Scratchpad(Some(notes))));
    bench.press(KeyCode::F(3));
    bench.press(KeyCode::Char('e'));
    bench.key(KeyCode::Home, KeyModifiers::CONTROL);
    bench.key(KeyCode::Char('f'), KeyModifiers::CONTROL);
    for c in "one".chars() {
        bench.press(KeyCode::Char(c));
    }
    let at = |bench: &Bench| {
        let editor = bench.model.draft.notes.editor().expect("an editor");
        (editor.area.cursor().0, editor.search.clone())
    };
    let typed = Some("one".to_owned());
    assert_eq!(at(&bench), (0, typed.clone()));
    bench.key(KeyCode::Char('g'), KeyModifiers::CONTROL);
    assert_eq!(at(&bench), (2, typed));
}

#[test]
fn panels_whose_width_cannot_change_say_so() {
    let width = |bench: &Bench| layout::layout(&bench.model).width_beside();
    let mut bench = Bench::new();
    let mut resize = |columns: u16, key: char| {
        bench.send(Event::Host(HostEvent::Resized { columns, rows: 40 }));
        let before = width(&bench);
        bench.key(KeyCode::Char('q'), KeyModifiers::CONTROL);
        let effects = bench.press(KeyCode::Char(key));
        let resized = has!(effects, Effect::ResizePane(_));
        assert_eq!(resized, width(&bench) != before);
        (resized, bench.notice().to_owned())
    };
    let (resized, said) = resize(120, '>');
    assert!(!resized && said.contains("no wider"));
    // What was refused does not come into force in a wider terminal.
    assert!(resize(160, '>').0);
    let mut wider = 0;
    while resize(160, '>').0 {
        wider += 1;
        assert!(wider < 100);
    }
    assert!(resize(160, '<').0);
}

#[test]
fn the_hosted_program_has_the_size_of_the_pane_whatever_changes_that() {
    let mut bench = Bench::new();
    bench.send(Event::Host(HostEvent::Resized {
        columns: 160,
        rows: 40,
    }));
    let size = |bench: &Bench| layout::layout(&bench.model).pane_size();
    let given = |effects: &[Effect]| {
        effects.iter().find_map(|effect| match effect {
            Effect::ResizePane(size) => Some(*size),
            _ => None,
        })
    };
    let mut config = bench.model.config.clone();
    config.ui.panel_width = Some(70);
    let before = size(&bench);
    let effects = bench.send(Event::Read(ReadEvent::Config(Box::new(config))));
    assert_ne!(size(&bench), before);
    assert_eq!(given(&effects), Some(size(&bench)));
    for narrow in [true, false] {
        let columns = if narrow { 90 } else { 160 };
        let effects = bench.send(Event::Host(HostEvent::Resized { columns, rows: 40 }));
        assert_eq!(given(&effects), Some(size(&bench)));
        let effects = bench.press(KeyCode::F(4));
        assert_eq!(
            given(&effects),
            None,
            "a panel over the pane takes no room from it"
        );
        bench.press(KeyCode::Esc);
    }
}

#[test]
fn an_editor_that_is_not_in_sight_any_more_is_left_and_holds_no_reboot() {
    for (open, hides) in [(5, 1), (5, 2), (4, 3), (3, 4)] {
        let mut bench = Bench::new();
        bench.press(KeyCode::F(open));
        bench.press(KeyCode::Char('e'));
        bench.press(KeyCode::Char('X'));
        assert!(facts::is_editing(&bench.model), "F{open}");
        bench.press(KeyCode::F(hides));
        assert!(!facts::is_editing(&bench.model), "F{hides} over F{open}");
        let draft = &bench.model.draft;
        let kept = draft.notes.text().contains('X') || draft.handoff.current().text.contains('X');
        assert!(kept, "F{hides} over F{open}");
    }
}

#[test]
fn a_paste_goes_into_the_search_of_an_editor_and_not_into_its_text() {
    for open in [KeyCode::F(3), KeyCode::F(4), KeyCode::F(5)] {
        let mut bench = Bench::new();
        bench.press(open);
        bench.press(KeyCode::Char('e'));
        bench.key(KeyCode::Char('f'), KeyModifiers::CONTROL);
        let editor = |bench: &Bench| {
            let draft = &bench.model.draft;
            let editor = draft.notes.editor().or(draft.handoff.editor.as_ref());
            editor
                .map(|editor| (editor.text(), editor.search.clone()))
                .expect("an editor")
        };
        let (before, _) = editor(&bench);
        paste(&mut bench, "next\n");
        assert_eq!(
            editor(&bench),
            (before.clone(), Some("next".to_owned())),
            "{open:?}"
        );
        // Once the search is over the text has it.
        bench.press(KeyCode::Enter);
        paste(&mut bench, "pasted");
        assert_ne!(editor(&bench).0, before);
    }
}

#[test]
fn a_key_that_moves_the_focus_comes_out_of_what_lies_over_everything() {
    // The dialog of an agent that has ended has q and Enter, which mean something else in a panel.
    let mut bench = Bench::new();
    bench.exited(0);
    bench.press(KeyCode::F(6));
    assert_eq!(
        (bench.model.view.overlay, bench.model.view.focus),
        (None, Focus::History)
    );
    bench.press(KeyCode::Char('q'));
    assert!(bench.model.outside.quitting().is_none());
    assert_eq!(bench.model.view.focus, Focus::Pane);
    // A page that is read.
    for (key, focus) in [
        (KeyCode::F(2), Focus::Scratchpad),
        (KeyCode::F(3), Focus::Scratchpad),
        (KeyCode::F(4), Focus::Handoff),
        (KeyCode::F(9), Focus::Pane),
    ] {
        let mut bench = Bench::new();
        bench.press(KeyCode::F(1));
        bench.press(key);
        assert_eq!(
            (bench.model.view.overlay, bench.model.view.focus),
            (None, focus),
            "{key:?}"
        );
    }
    // The review: the reboot still waits for its answer, and what was written is kept.
    let mut bench = Bench::new();
    bench.review();
    bench.press(KeyCode::Char('e'));
    bench.press(KeyCode::Char('X'));
    bench.press(KeyCode::F(3));
    assert_eq!(
        (bench.model.view.overlay, bench.model.view.focus),
        (None, Focus::Scratchpad)
    );
    assert!(
        bench.model.draft.handoff.editor.is_none() && bench.model.draft.handoff.edited.is_some()
    );
    assert_eq!(bench.step(), Some(Step::Review));
    // The panel that has the focus below a page comes to light, and is left by the next press.
    bench.press(KeyCode::F(1));
    bench.press(KeyCode::F(3));
    assert_eq!(bench.model.view.focus, Focus::Scratchpad);
    bench.press(KeyCode::F(3));
    assert_eq!(bench.model.view.focus, Focus::Pane);
}
