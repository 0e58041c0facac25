//! The scratchpad between a person, the agent and the disk.

use super::*;
use crate::{
    app::{
        checkpoint::saved_scratchpad,
        model::{Editor, NotesPanel},
    },
    lineage::checkpoint::SavedScratchpad,
};
use pitstop_handoff::scratchpad::versions::{Author, Versions};

fn signal(bench: &mut Bench, text: &str) -> Vec<Effect> {
    bench.said(OLD, &format!("SCRATCHPAD:\n{text}\nSIGNAL:"))
}

fn on_disk(bench: &mut Bench, text: &str) -> Vec<Effect> {
    let text = Some(text.to_owned());
    bench.send(Event::Read(ReadEvent::Scratchpad(text)))
}

fn agent_wrote(bench: &mut Bench) -> Vec<Effect> {
    let call = ToolCall {
        id: Some("c1".to_owned()),
        name: "Write".to_owned(),
        file: Some("/p/.pitstop/scratchpad.md".to_owned()),
        ..ToolCall::default()
    };
    bench.tool(call, "")
}

/// A person makes this of the text in the panel.
fn edit(bench: &mut Bench, text: &str) -> Vec<Effect> {
    bench.press(KeyCode::F(3));
    bench.press(KeyCode::Char('e'));
    let editor = bench.model.draft.notes.editor_mut().expect("an editor");
    let base = std::mem::take(&mut editor.base);
    *editor = Editor {
        base,
        ..Editor::new(text)
    };
    let effects = bench.press(KeyCode::Esc);
    bench.press(KeyCode::Esc);
    effects
}

#[track_caller]
fn has_note(bench: &Bench, text: &str) {
    assert!(notes(bench).contains(text), "{}", notes(bench));
}

fn notes(bench: &Bench) -> &str {
    bench.model.draft.notes.text()
}

fn kept(effects: &[Effect]) -> Vec<pitstop_handoff::scratchpad::versions::Version> {
    all!(effects, Effect::KeepVersion(version) => version.clone())
}

fn writes(effects: &[Effect]) -> bool {
    has!(effects, Effect::WriteScratchpad { .. })
}

#[test]
fn a_persons_line_survives_signals_and_reboots() {
    let mut bench = Bench::new();
    signal(&mut bench, "- [ ] one\n- [ ] two");
    edit(&mut bench, "- [ ] one\n- [ ] never touch main\n- [ ] two\n");
    signal(&mut bench, "- [x] one\n- [ ] two\n- [ ] three");
    assert_eq!(
        notes(&bench),
        "- [x] one\n- [ ] never touch main\n- [ ] two\n- [ ] three\n"
    );
    bench.model.draft.notes.hand_over();
    signal(&mut bench, "- [ ] something else");
    bench.model.draft.notes.hand_over();
    signal(&mut bench, "- [x] something else");
    has_note(&bench, "- [ ] never touch main\n");
    has_note(&bench, "- [x] something else");
    assert!(!notes(&bench).contains("two"), "{}", notes(&bench));
    // Until the person removes it.
    edit(&mut bench, "- [x] something else\n");
    signal(&mut bench, "- [x] something else\n- [ ] more");
    assert_eq!(notes(&bench), "- [x] something else\n- [ ] more\n");
}

#[test]
fn a_note_typed_at_the_top_is_a_line_of_its_own() {
    let typed = |keys: &str| {
        let mut bench = Bench::new();
        on_disk(&mut bench, "## Plan\n- [ ] next\n");
        bench.press(KeyCode::F(3));
        bench.press(KeyCode::Char('e'));
        for key in keys.chars() {
            bench.press(match key {
                '\n' => KeyCode::Enter,
                key => KeyCode::Char(key),
            });
        }
        bench.press(KeyCode::Esc);
        notes(&bench).to_owned()
    };
    assert_eq!(typed("ask Anna"), "ask Anna\n## Plan\n- [ ] next\n");
    assert_eq!(typed("one\ntwo\n"), "one\ntwo\n## Plan\n- [ ] next\n");
    assert_eq!(typed("- tea"), "- tea\n## Plan\n- [ ] next\n");
    assert_eq!(typed("#"), "### Plan\n- [ ] next\n", "a deeper heading");
}

#[test]
fn what_a_person_removes_does_not_come_back_with_the_agents_next_text() {
    let mut bench = Bench::new();
    signal(&mut bench, "- [ ] one\n- [ ] two");
    edit(&mut bench, "- [ ] two\n");
    signal(&mut bench, "- [ ] one\n- [x] two\n- [ ] three");
    assert_eq!(notes(&bench), "- [x] two\n- [ ] three\n");
}

#[test]
fn who_changed_the_file_is_shown_by_the_agents_hook_before_or_after_it_is_read() {
    for hook_first in [true, false] {
        let mut bench = Bench::new();
        edit(&mut bench, "- [ ] mine\n");
        if hook_first {
            let effects = agent_wrote(&mut bench);
            assert!(effects.contains(&Effect::ReadScratchpad));
        }
        on_disk(&mut bench, "- [ ] theirs\n");
        if !hook_first {
            agent_wrote(&mut bench);
            on_disk(&mut bench, "- [ ] theirs\n");
        }
        assert!(
            notes(&bench).contains("- [ ] mine\n"),
            "{hook_first}: {}",
            notes(&bench)
        );
        // The agent's own line is the agent's to remove.
        signal(&mut bench, "- [ ] other");
        assert!(notes(&bench).contains("- [ ] mine\n"), "{}", notes(&bench));
        assert!(!notes(&bench).contains("theirs"), "{}", notes(&bench));
    }
    // What no hook reports is a person's.
    let mut bench = Bench::new();
    on_disk(&mut bench, "- [ ] by hand\n");
    signal(&mut bench, "- [ ] other");
    has_note(&bench, "- [ ] by hand\n");
}

#[test]
fn a_file_that_was_removed_is_written_again() {
    let mut bench = Bench::new();
    let effects = bench.send(Event::Read(ReadEvent::Scratchpad(None)));
    let wanted = Effect::WriteScratchpad {
        base: String::new(),
        text: "- [ ] next".to_owned(),
    };
    assert!(effects.contains(&wanted), "{effects:?}");
    assert_eq!(bench.model.draft.notes.disk(), "- [ ] next");
}

#[test]
fn a_note_that_cannot_be_saved_is_kept_retried_and_asked_about() {
    let mut bench = Bench::new();
    bench.disk_error = Some("no space left on device".to_owned());
    let effects = edit(&mut bench, "- [ ] next\nmine\n");
    assert!(writes(&effects));
    let version = bench
        .model
        .draft
        .notes
        .versions()
        .last()
        .expect("a version");
    assert_eq!(version.unsaved_over.as_deref(), Some("- [ ] next"));
    assert!(bench.model.draft.notes.unsaved().is_some());
    // Quitting asks, idle as the agent is.
    bench.press(KeyCode::F(10));
    assert_eq!(bench.model.view.overlay, Some(Overlay::Quit));
    bench.press(KeyCode::Esc);
    assert!(bench.model.outside.quitting().is_none());
    // It is tried again until it goes.
    let again = TimerId::SaveNotes(bench.model.draft.notes.save_epoch());
    assert!(writes(&bench.send(Event::TimerFired(again))));
    bench.disk_error = None;
    let again = TimerId::SaveNotes(bench.model.draft.notes.save_epoch());
    assert!(writes(&bench.send(Event::TimerFired(again))));
    assert_eq!(bench.model.draft.notes.unsaved(), None);
    assert_eq!(bench.model.draft.notes.disk(), "- [ ] next\nmine\n");
    let version = bench
        .model
        .draft
        .notes
        .versions()
        .last()
        .expect("a version");
    assert_eq!(version.unsaved_over, None);
}

#[test]
fn what_was_not_saved_comes_back_at_the_next_start() {
    let mut bench = Bench::new();
    bench.disk_error = Some("no space left on device".to_owned());
    edit(&mut bench, "- [ ] next\nmine\n");
    let versions = bench.model.draft.notes.versions().clone();
    let mut bench = Bench::new();
    bench.send(Event::Read(ReadEvent::Scratchpad(Some(
        "- [x] next\n".to_owned(),
    ))));
    bench.send(Event::Read(ReadEvent::Versions(versions)));
    assert_eq!(notes(&bench), "- [x] next\nmine\n");
    assert_eq!(bench.model.draft.notes.disk(), notes(&bench));
}

#[test]
fn an_earlier_version_can_be_looked_at_and_restored() {
    let mut bench = Bench::new();
    signal(&mut bench, "- [ ] one");
    edit(&mut bench, "- [ ] two\n");
    bench.press(KeyCode::F(3));
    bench.press(KeyCode::Char('v'));
    let looked_at = bench.model.draft.notes.looked_at().expect("a version");
    assert_eq!(
        (looked_at.by, looked_at.text.as_str()),
        (Author::Agent, "- [ ] one\n")
    );
    let effects = bench.press(KeyCode::Enter);
    assert!(writes(&effects));
    assert_eq!(notes(&bench), "- [ ] one\n");
    // And so can the one that it replaced.
    bench.press(KeyCode::Char('v'));
    assert_eq!(
        bench
            .model
            .draft
            .notes
            .looked_at()
            .map(|one| one.text.as_str()),
        Some("- [ ] two\n")
    );
    bench.press(KeyCode::Esc);
    assert!(bench.model.draft.notes.looked_at().is_none());
}

#[test]
fn what_one_edit_went_through_is_one_version() {
    let mut bench = Bench::new();
    bench.press(KeyCode::F(3));
    bench.press(KeyCode::Char('e'));
    let mut all = Vec::new();
    for letter in "abc".chars() {
        bench.press(KeyCode::Char(letter));
        let timer = TimerId::SaveNotes(bench.model.draft.notes.save_epoch());
        all.extend(kept(&bench.send(Event::TimerFired(timer))));
    }
    assert_eq!(all.len(), 3);
    assert!(all.iter().all(|one| one.number == all[0].number));
    assert_eq!(bench.model.draft.notes.versions().iter().len(), 1);
}

/// One thing that happens to the scratchpad.
#[derive(Clone, Debug)]
enum Step {
    /// A person adds a line at this place of the panel's text.
    Add(usize),
    /// A person removes the line at this place.
    Remove(usize),
    /// A person adds a line in the file by another program.
    AddInFile(usize),
    /// The agent's signal: so many lines of what it knew, and one of its own.
    Signal(usize),
    /// The agent writes the file with its tool, without what stands at this place; whether its hook comes first.
    Write(usize, bool),
    /// A new session gets the notes.
    Reboot,
    /// The disk takes nothing from here on, or something again.
    Disk(bool),
    /// pitstop is killed and started again.
    Kill,
    /// A checkpoint is saved.
    Save,
    /// pitstop is killed, and the checkpoint restored.
    Restore,
}

fn steps() -> impl proptest::strategy::Strategy<Value = Vec<Step>> {
    use proptest::prelude::*;
    let place = 0..12_usize;
    let step = prop_oneof![
        3 => place.clone().prop_map(Step::Add),
        1 => place.clone().prop_map(Step::Remove),
        1 => place.clone().prop_map(Step::AddInFile),
        3 => place.clone().prop_map(Step::Signal),
        2 => (place, any::<bool>()).prop_map(|(place, first)| Step::Write(place, first)),
        1 => Just(Step::Reboot),
        1 => any::<bool>().prop_map(Step::Disk),
        1 => Just(Step::Kill),
        1 => Just(Step::Save),
        1 => Just(Step::Restore),
    ];
    proptest::collection::vec(step, 1..24)
}

/// The notes, their file and its versions, and the lines of a person's that must be there.
struct World {
    bench: Bench,
    disk: String,
    versions: Versions,
    mine: Vec<String>,
    saved: Option<SavedScratchpad>,
    count: usize,
}

impl World {
    fn new() -> Self {
        Self {
            bench: Bench::new(),
            disk: "- [ ] next".to_owned(),
            versions: Versions::default(),
            mine: Vec::new(),
            saved: None,
            count: 0,
        }
    }

    fn run(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::WriteScratchpad { base, text } if self.bench.disk_error.is_none() => {
                    assert_eq!(base, self.disk, "someone's text would be overwritten");
                    self.disk = text;
                }
                Effect::KeepVersion(version) => self.versions.add(version),
                _ => {}
            }
        }
    }

    /// A line that no one else has.
    fn line(&mut self, by: &str) -> String {
        self.count += 1;
        format!("- [ ] {by} line {}.", self.count)
    }

    fn with(text: &str, place: usize, line: &str) -> String {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.insert(place.min(lines.len()), line);
        lines.join("\n") + "\n"
    }

    fn without(text: &str, place: usize) -> (String, Option<String>) {
        let mut lines: Vec<&str> = text.lines().collect();
        if lines.is_empty() {
            return (String::new(), None);
        }
        let line = lines.remove(place % lines.len()).to_owned();
        (lines.join("\n") + "\n", Some(line))
    }

    fn step(&mut self, step: &Step) {
        let effects = match step {
            Step::Add(place) => {
                let line = self.line("human");
                let text = Self::with(notes(&self.bench), *place, &line);
                self.mine.push(line);
                edit(&mut self.bench, &text)
            }
            Step::Remove(place) => {
                let (text, line) = Self::without(notes(&self.bench), *place);
                self.mine.retain(|mine| Some(mine) != line.as_ref());
                edit(&mut self.bench, &text)
            }
            Step::AddInFile(place) => {
                let line = self.line("human");
                self.disk = Self::with(&self.disk, *place, &line);
                self.mine.push(line);
                on_disk(&mut self.bench, &self.disk.clone())
            }
            Step::Signal(lines) => {
                let line = self.line("agent");
                let known = self.bench.model.draft.notes.agent_base().to_owned();
                let mut text: Vec<&str> = known.lines().take(*lines).collect();
                text.push(&line);
                signal(&mut self.bench, &text.join("\n"))
            }
            Step::Write(place, hook_first) => {
                let line = self.line("agent");
                self.disk = Self::with(&Self::without(&self.disk, *place).0, *place, &line);
                let disk = self.disk.clone();
                let mut effects = Vec::new();
                if *hook_first {
                    effects.extend(agent_wrote(&mut self.bench));
                }
                effects.extend(on_disk(&mut self.bench, &disk));
                self.run(std::mem::take(&mut effects));
                if !*hook_first {
                    effects.extend(agent_wrote(&mut self.bench));
                    let disk = self.disk.clone();
                    effects.extend(on_disk(&mut self.bench, &disk));
                }
                effects
            }
            Step::Reboot => {
                self.bench.model.draft.notes.hand_over();
                Vec::new()
            }
            Step::Disk(works) => {
                self.bench.disk_error = (!works).then(|| "full".to_owned());
                let timer = TimerId::SaveNotes(self.bench.model.draft.notes.save_epoch());
                self.bench.send(Event::TimerFired(timer))
            }
            Step::Save => {
                let notes = &self.bench.model.draft.notes;
                self.saved = Some(saved_scratchpad(notes.text(), notes.human()));
                Vec::new()
            }
            Step::Kill | Step::Restore => {
                self.bench = Bench::new();
                let notes = &mut self.bench.model.draft.notes;
                *notes = NotesPanel::new(self.disk.clone());
                if let Some(saved) = self.saved.clone().filter(|_| matches!(step, Step::Restore)) {
                    notes.await_author(saved);
                }
                let versions = ReadEvent::Versions(self.versions.clone());
                self.bench.send(Event::Read(versions))
            }
        };
        self.run(effects);
        let text = notes(&self.bench);
        for mine in &self.mine {
            assert!(
                text.lines().any(|line| line == mine),
                "{mine} is lost in:\n{text}"
            );
        }
    }
}

proptest::proptest! {
    #[test]
    fn no_line_of_a_persons_is_lost_whatever_happens(steps in steps()) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
    }
}

#[test]
fn no_control_character_of_any_author_goes_on_into_the_file() {
    const RAW: &str = "kept\ta\r\n\u{1b}]0;evil\u{7}\u{9b}2Jb\0c\u{7f}\n";
    const CLEAN: &str = "kept\ta\n]0;evil2Jbc\n";
    let ways: [fn(&mut Bench) -> Vec<Effect>; 4] = [
        |bench| signal(bench, RAW),
        |bench| edit(bench, RAW),
        |bench| on_disk(bench, RAW),
        |bench| {
            agent_wrote(bench);
            on_disk(bench, RAW)
        },
    ];
    for (number, way) in ways.into_iter().enumerate() {
        let mut bench = Bench::new();
        let effects = way(&mut bench);
        let written = all!(effects, Effect::WriteScratchpad { text, .. } => text.as_str()).pop();
        let written = written.unwrap_or_else(|| panic!("way {number} writes nothing"));
        let raw = |c: char| c.is_control() && !matches!(c, '\t' | '\n');
        assert!(!written.contains(raw), "way {number}: {written:?}");
        assert!(
            written.contains(CLEAN.trim_end()),
            "way {number}: {written:?}"
        );
    }
}

#[test]
fn an_undo_after_a_merge_gives_back_the_text_before_it_and_never_an_empty_one() {
    let mut bench = Bench::new();
    bench.press(KeyCode::F(3));
    bench.press(KeyCode::Char('e'));
    bench.press(KeyCode::Char('X'));
    on_disk(&mut bench, "- [ ] next\nfrom the agent");
    let text = |bench: &Bench| {
        let editor = bench.model.draft.notes.editor();
        editor.expect("an editor").text()
    };
    let merged = text(&bench);
    assert!(merged.contains("from the agent"));
    bench.key(KeyCode::Char('z'), KeyModifiers::CONTROL);
    assert_eq!(text(&bench), "X\n- [ ] next");
    bench.key(KeyCode::Char('y'), KeyModifiers::CONTROL);
    assert_eq!(text(&bench), merged);
}

#[test]
fn a_text_with_a_very_long_line_is_replaced_whole() {
    let mut editor = Editor::new(&"x".repeat(70_000));
    editor.replace("short");
    assert_eq!(editor.text(), "short");
}

#[test]
fn a_call_that_wrote_nothing_makes_no_edit_of_a_persons_the_agents() {
    let refused = ToolCall {
        name: "Edit".to_owned(),
        file: Some("/p/.pitstop/scratchpad.md".to_owned()),
        ..ToolCall::default()
    };
    let looks = ToolCall {
        name: "Bash".to_owned(),
        command: Some("cat .pitstop/scratchpad.md 2>/dev/null | head -20".to_owned()),
        ..ToolCall::default()
    };
    for (call, failed) in [(refused, true), (looks, false)] {
        let mut bench = Bench::new();
        on_disk(&mut bench, "- [ ] by hand\n");
        let output = ToolOutput {
            failed,
            ..ToolOutput::default()
        };
        bench.tool_ran(call, output);
        on_disk(&mut bench, "- [ ] by hand\n");
        signal(&mut bench, "- [ ] other");
        let notes = notes(&bench);
        assert!(notes.contains("- [ ] by hand\n"), "{failed}: {notes}");
    }
}

#[test]
fn a_version_that_is_looked_at_stays_when_the_agent_writes_another() {
    let mut bench = Bench::new();
    signal(&mut bench, "- [ ] one");
    signal(&mut bench, "- [ ] two");
    bench.press(KeyCode::F(3));
    bench.press(KeyCode::Char('v'));
    let shown = |bench: &Bench| {
        let looked_at = bench.model.draft.notes.looked_at();
        looked_at.map(|one| one.text.clone())
    };
    let before = shown(&bench);
    signal(&mut bench, "- [ ] three");
    assert_eq!(shown(&bench), before);
    bench.press(KeyCode::Enter);
    assert_eq!(Some(notes(&bench)), before.as_deref());
}
