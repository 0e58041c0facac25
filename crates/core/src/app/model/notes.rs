//! The scratchpad: the texts of the human and the agent, and how both survive.
//!
//! Each writer's text is a change of what that writer last saw: the agent's of its own last text, or of the one that its session
//! began with; a person's of what the panel, the editor or the file showed them. Changes are merged, and a line that a person wrote
//! stays until a person removes it. The current text goes to the file; while the file cannot be written it is kept as a version
//! that was not saved, and tried again.

use std::{borrow::Cow, time::Duration};

use crossterm::event::{KeyCode, KeyEvent};

use crate::lineage::checkpoint::SavedScratchpad;
use pitstop_base::{clean, clock::At, format::bytes, redact::redact};
use pitstop_handoff::scratchpad::{
    HumanLines, Parsed, merge, notes,
    versions::{Author, Version, Versions},
};

use crate::app::{
    consequences::{Consequences, KeyOutcome, Request},
    effect::Effect,
    event::TimerId,
};

use super::{
    panels::{Edited, Editor},
    reading::Bounds,
    view::{rows_of, scroll_by},
};

/// The time after the last change at which an edit is written by itself.
const SAVE_DELAY: Duration = Duration::from_millis(600);

/// The size that the scratchpad may reach by the notes of a tool, in bytes: as large as a handoff.
const NOTED_LIMIT: usize = 50_000;

/// The error that a note of the agent's does not fit into the scratchpad.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the scratchpad would be larger than {}: shorten .pitstop/scratchpad.md first",
    bytes(NOTED_LIMIT as u64)
)]
pub struct NotesFull;

/// The time after a failure at which the write is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// The scratchpad panel.
#[derive(Clone, Debug, Default)]
pub struct NotesPanel {
    /// The notes that are in force.
    text: String,
    /// The parsed notes, as of the last draft of the handoff.
    parsed: Parsed,
    /// The text that `parsed` was read from.
    read: String,
    /// The known content of the file, which differs from the notes while a change is not saved.
    disk: String,
    /// The reason why the last change could not be saved, while it is unsaved.
    unsaved: Option<String>,
    /// The editor, while the human edits in place.
    editor: Option<Editor>,
    /// The epoch of the timer that writes the notes.
    save_epoch: u64,
    /// The lines that a person wrote.
    human: HumanLines,
    /// The text that the agent last wrote, or was given at its start: its next text is a change of this one.
    agent_base: String,
    /// The first line shown.
    scroll: u16,
    /// The ends of what `scroll` can be.
    bounds: Bounds,
    /// True if the next change that is read is the agent's.
    agent_wrote: bool,
    /// The last change of the file whose author no hook has reported: it counts as a person's.
    foreign: Option<Foreign>,
    /// The earlier versions of the notes.
    versions: Versions,
    /// The scratchpad of a checkpoint that is restored, until it is known which lines of the present one are a person's.
    restored: Option<SavedScratchpad>,
    /// The version that a person looks at, counted from the newest.
    looking: Option<usize>,
}

/// A change of the scratchpad's file that was taken for a person's, as it can be taken back when the agent's hook comes.
#[derive(Clone, Debug)]
struct Foreign {
    /// The notes before it.
    before: String,
    /// The person's lines before it.
    human: HumanLines,
}

impl NotesPanel {
    /// Creates a panel of these notes, which the file holds.
    pub fn new(notes: String) -> Self {
        Self {
            disk: notes.clone(),
            agent_base: notes.clone(),
            text: notes,
            ..Self::default()
        }
    }

    /// Returns the notes that are in force.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the parsed notes, as of the last draft of the handoff.
    pub const fn parsed(&self) -> &Parsed {
        &self.parsed
    }

    /// Returns the lines that a person wrote.
    pub const fn human(&self) -> &HumanLines {
        &self.human
    }

    /// Returns the reason why the last change could not be saved, while it is unsaved.
    pub fn unsaved(&self) -> Option<&str> {
        self.unsaved.as_deref()
    }

    /// Returns the editor, while the human edits in place.
    pub const fn editor(&self) -> Option<&Editor> {
        self.editor.as_ref()
    }

    /// Returns the first line shown.
    pub const fn first_line(&self) -> u16 {
        self.scroll
    }

    /// Returns the ends of what the text can be scrolled by.
    pub const fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Returns the version that a person looks at.
    pub fn looked_at(&self) -> Option<&Version> {
        self.versions.iter().nth_back(self.looking?)
    }

    /// Parses the notes, unless they are unchanged.
    pub(in crate::app) fn parse(&mut self) {
        if self.read != self.text {
            self.parsed = Parsed::read(&self.text);
            self.text.clone_into(&mut self.read);
        }
    }

    /// Takes over the text of the file, or writes the file again if it is gone.
    pub(in crate::app) fn file_read(&mut self, disk: Option<String>, now: At) -> Consequences {
        let by_agent = std::mem::take(&mut self.agent_wrote);
        let Some(disk) = disk else {
            if self.text.is_empty() {
                return Consequences::default();
            }
            self.disk.clear();
            let mut done = Consequences::from([self.write()]);
            done.info("the scratchpad's file was gone: it is written again");
            return done;
        };
        if disk == self.disk {
            // The file was faster than the agent's hook.
            let Some(foreign) = self.foreign.take_if(|_| by_agent) else {
                return Consequences::default();
            };
            self.agent_base = disk;
            self.human = foreign.human;
            let text = self.human.restore_lost(&foreign.before, &self.text);
            return self.take(Author::Agent, &text, now);
        }
        let before = self.text.clone();
        let mut text = merge(&self.disk, &before, &disk);
        let by = if by_agent {
            disk.clone_into(&mut self.agent_base);
            text = self.human.restore_lost(&before, &text);
            self.foreign = None;
            Author::Agent
        } else {
            let human = self.human.clone();
            self.human.record_edit(&before, &text);
            self.foreign = Some(Foreign { before, human });
            Author::Human
        };
        self.disk = disk;
        self.take(by, &text, now)
    }

    /// Marks what is read next as the agent's, because its hook reports that it wrote the file.
    pub(in crate::app) const fn agent_wrote(&mut self) -> Effect {
        self.agent_wrote = true;
        Effect::ReadScratchpad
    }

    /// Merges in a text of the agent's signal, as a change of what the agent wrote last.
    pub(in crate::app) fn signalled(&mut self, text: &str, now: At) -> Consequences {
        let text = clean::typed(text);
        let merged = merge(&self.agent_base, &self.text, &text);
        self.agent_base = text;
        let merged = self.human.restore_lost(&self.text, &merged);
        if merged == self.text {
            return Consequences::default();
        }
        self.take(Author::Agent, &merged, now)
    }

    /// Adds a fact that the agent keeps by a tool: a line more, which is a change of the current text, and not of the agent's own last
    /// text, so it stays when that is replaced. Returns `None` if such a line is there already; the error gives the reason that it
    /// cannot be kept.
    pub(in crate::app) fn note(
        &mut self,
        fact: &str,
        now: At,
    ) -> Result<Option<Consequences>, NotesFull> {
        if notes::has_fact(&self.text, fact) {
            return Ok(None);
        }
        let text = notes::with_fact(&self.text, fact);
        if text.len() > NOTED_LIMIT {
            return Err(NotesFull);
        }
        Ok(Some(self.take(Author::Agent, &text, now)))
    }

    /// Notes that the notes were handed over: the next agent knows them.
    pub(in crate::app) fn hand_over(&mut self) {
        self.text.clone_into(&mut self.agent_base);
    }

    /// Makes a text the current one; what the human is editing is merged with it. Whatever its author, its control characters do not
    /// go on into the file: shown in a terminal they would act.
    fn take(&mut self, by: Author, text: &str, now: At) -> Consequences {
        let text = clean::typed(text);
        let mut done = Consequences::default();
        if text != self.text {
            self.text = text;
            if let Some(editor) = &mut self.editor {
                let mine = editor.text();
                let mut typed = HumanLines::default();
                typed.record_edit(&editor.base, &mine);
                let merged = merge(&editor.base, &mine, &self.text);
                let merged = typed.restore_lost(&mine, &merged);
                if merged != mine {
                    editor.replace(&merged);
                    done.info(
                        "both versions are in your edit: the scratchpad was changed meanwhile",
                    );
                }
                self.text.clone_into(&mut editor.base);
            }
            done.emit(self.new_version(by, false, now));
        }
        if self.text != self.disk {
            done.emit(self.write());
        }
        done
    }

    /// Makes a person's text the current one.
    fn put(&mut self, text: &str, now: At) -> Consequences {
        let text = clean::typed(text);
        self.human.record_edit(&self.text, &text);
        self.foreign = None;
        self.text = text;
        let mut goes_on = false;
        if let Some(editor) = &mut self.editor {
            self.text.clone_into(&mut editor.base);
            // All that one edit writes is one version.
            goes_on = std::mem::replace(&mut editor.saved, true);
        }
        let mut done = Consequences::from([self.new_version(Author::Human, goes_on, now)]);
        done.emit(self.write());
        done
    }

    fn new_version(&mut self, by: Author, goes_on: bool, now: At) -> Effect {
        let last = self.versions.last();
        let goes_on = goes_on && last.is_some_and(|last| last.by == by);
        let number = last.map_or(0, |last| last.number) + u64::from(!goes_on);
        let version = Version {
            number,
            at: now.wall,
            by,
            text: self.text.clone(),
            human: self.human.iter().map(str::to_owned).collect(),
            unsaved_over: self.unsaved.is_some().then(|| self.disk.clone()),
        };
        self.versions.add(version.clone());
        if !goes_on {
            // Who looks at an earlier version goes on looking at that one.
            let oldest = self.versions.iter().len().saturating_sub(1);
            self.looking = self.looking.map(|at| (at + 1).min(oldest));
        }
        Effect::KeepVersion(version)
    }

    /// Writes the current text.
    fn write(&self) -> Effect {
        Effect::WriteScratchpad {
            base: self.disk.clone(),
            text: self.text.clone(),
        }
    }

    /// Takes note of the text that the file has now.
    pub(in crate::app) fn saved(&mut self, text: String) -> Consequences {
        self.disk = text;
        let mut done = Consequences::default();
        if self.unsaved.take().is_some() && self.disk == self.text {
            done.info("the scratchpad is saved again");
            done.effects.extend(self.mark_version());
        }
        done
    }

    /// Has a failed write tried again; until then the text is kept as a version that was not saved.
    pub(in crate::app) fn not_saved(&mut self, why: String) -> Consequences {
        let mut done = Consequences::from([self.save_after(RETRY)]);
        if self.unsaved.as_ref() != Some(&why) {
            done.error(format!("the scratchpad is not saved: {why}"));
        }
        self.unsaved = Some(why);
        done.effects.extend(self.mark_version());
        done
    }

    /// Notes in the newest version whether it is saved.
    fn mark_version(&mut self) -> Option<Effect> {
        let unsaved_over = self.unsaved.is_some().then(|| self.disk.clone());
        let last = self.versions.last();
        let mut version = last
            .filter(|last| last.unsaved_over != unsaved_over)?
            .clone();
        version.unsaved_over = unsaved_over;
        self.versions.add(version.clone());
        Some(Effect::KeepVersion(version))
    }

    /// Keeps the scratchpad of a checkpoint that is restored until it is known which lines of the present one are a person's.
    pub(in crate::app) fn await_author(&mut self, saved: SavedScratchpad) {
        self.restored = Some(saved);
    }

    /// Takes over the versions of earlier runs, if they can be read: what was not saved then is merged in now, and what is not the
    /// agent's is a person's. Then a checkpoint's scratchpad takes its place, if there is one, which is returned as true.
    pub(in crate::app) fn versions_read(
        &mut self,
        versions: Option<Versions>,
        now: At,
    ) -> (Consequences, bool) {
        let restored = self.restored.take();
        let mut done = Consequences::default();
        if let Some(versions) = versions {
            done = self.take_versions(versions, now);
        } else if restored.is_some() {
            // Each line that is there counts as a person's.
            self.human = HumanLines::since(None, &self.text);
        }
        let Some(saved) = restored else {
            return (done, false);
        };
        // Of two texts the last one is written: the first would not be on disk yet, as what the second replaces.
        let writes = |effect: &Effect| matches!(effect, Effect::WriteScratchpad { .. });
        done.effects.retain(|effect| !writes(effect));
        (done.then(self.restore_saved(saved, now)), true)
    }

    /// Brings back the scratchpad of a checkpoint, as what the agent of that session wrote last: a line of a person's in the present
    /// one stays, and the present one is an earlier version.
    fn restore_saved(&mut self, saved: SavedScratchpad, now: At) -> Consequences {
        let SavedScratchpad { text, human } = saved;
        let text = with_secrets(&text, &self.text);
        let mut done = Consequences::default();
        let merged = self.human.restore_lost(&self.text, &text);
        if merged != text {
            done.info(
                "the checkpoint's scratchpad is back; lines of yours that it did not have stay",
            );
        }
        self.human.extend(human);
        self.foreign = None;
        // The session that goes on from it was given this one.
        self.agent_base = text;
        done.then(self.take(Author::Human, &merged, now))
    }

    fn take_versions(&mut self, mut versions: Versions, now: At) -> Consequences {
        let offset = versions.last().map_or(0, |last| last.number);
        let own = std::mem::take(&mut self.versions);
        let last = versions.last().cloned();
        versions.extend(own.iter().cloned().map(|version| Version {
            number: version.number + offset,
            ..version
        }));
        self.versions = versions;
        let human = HumanLines::since(last.as_ref(), &self.text);
        let Some(last) = last else {
            self.human = human;
            return Consequences::default();
        };
        if let Some(over) = &last.unsaved_over {
            self.human = HumanLines::new(last.human);
            let text = merge(over, &last.text, &self.text);
            let text = self.human.restore_lost(&last.text, &text);
            let mut done = Consequences::default();
            done.info("the scratchpad of last time could not be saved then: it is back");
            return done.then(self.take(Author::Human, &text, now));
        }
        self.human = human;
        if last.text != self.text && own.iter().len() == 0 {
            return [self.new_version(Author::Human, false, now)].into();
        }
        Consequences::default()
    }

    /// Opens the editor.
    fn edit(&mut self) {
        self.looking = None;
        self.editor = Some(Editor::new(&self.text));
    }

    /// Handles a key while the panel has the focus.
    pub(in crate::app) fn key(&mut self, key: KeyEvent, now: At) -> KeyOutcome {
        let mut done = Consequences::default();
        let edited = self.editor.as_mut().map(|editor| editor.key(key));
        let looking = self.looking.is_some();
        match (edited, key.code) {
            (Some(Edited::Done), _) => done = self.finish_edit(now),
            (Some(Edited::Save), _) => done = self.save(now),
            (Some(Edited::Changed), _) => done.emit(self.save_after(SAVE_DELAY)),
            (Some(Edited::Copied(text)), _) => {
                done.emit(Effect::Copy(text));
                done.emit(self.save_after(SAVE_DELAY));
            }
            (Some(Edited::Moved), _) => {}
            (None, KeyCode::Enter | KeyCode::Char('r')) if looking => done = self.restore(now),
            (None, KeyCode::Char('e' | 'i') | KeyCode::Enter) => self.edit(),
            (None, KeyCode::Char('v')) => done = self.look(true),
            (None, KeyCode::Char('y')) => done.copy_document("scratchpad", &self.text),
            (None, KeyCode::Left | KeyCode::Char('h')) if looking => done = self.look(true),
            (None, KeyCode::Right | KeyCode::Char('l')) if looking => done = self.look(false),
            (None, KeyCode::Esc | KeyCode::Char('q')) if looking => self.looking = None,
            (None, KeyCode::Esc | KeyCode::Char('q')) => return (done, Some(Request::FocusPane)),
            (None, _) => self.scroll(rows_of(key).unwrap_or(0)),
        }
        (done, None)
    }

    /// Pastes a text into the editor, if one is open.
    pub(in crate::app) fn paste(&mut self, text: &str) -> Option<Effect> {
        self.editor.as_mut()?.paste(text);
        Some(self.save_after(SAVE_DELAY))
    }

    /// Has the editor's changed text written after a moment, and not before.
    const fn save_after(&mut self, delay: Duration) -> Effect {
        self.save_epoch += 1;
        Effect::SetTimer(TimerId::SaveNotes(self.save_epoch), delay)
    }

    /// Writes what is edited when its timer has run out.
    pub(in crate::app) fn timer(&mut self, epoch: u64, now: At) -> Consequences {
        if epoch == self.save_epoch {
            return self.save(now);
        }
        Consequences::default()
    }

    /// Writes what the editor holds, and what could not be written before.
    pub(in crate::app) fn save(&mut self, now: At) -> Consequences {
        match self.editor.as_ref().map(Editor::text) {
            Some(text) if text != self.text => self.put(&text, now),
            _ if self.unsaved.is_some() => [self.write()].into(),
            _ => Consequences::default(),
        }
    }

    /// Takes a text that a person made of `base`; what has been written since is merged with it.
    pub(in crate::app) fn write_over(&mut self, base: &str, text: &str, now: At) -> Consequences {
        let mut typed = HumanLines::default();
        typed.record_edit(base, text);
        let merged = merge(base, text, &self.text);
        self.put(&typed.restore_lost(text, &merged), now)
    }

    /// Saves and leaves the editor.
    pub(in crate::app) fn finish_edit(&mut self, now: At) -> Consequences {
        let done = self.save(now);
        self.editor = None;
        done
    }

    /// Shows an older version (or a newer one), beginning with the one before the current text.
    fn look(&mut self, older: bool) -> Consequences {
        let mut done = Consequences::default();
        let oldest = self.versions.iter().len().saturating_sub(1);
        self.looking = match (self.looking, older) {
            (None, true) if oldest > 0 => Some(1),
            (None, _) => {
                done.info("there is no earlier version of the scratchpad");
                return done;
            }
            (Some(at), true) => Some((at + 1).min(oldest)),
            (Some(at), false) => Some(at.saturating_sub(1)),
        };
        self.scroll = 0;
        done
    }

    /// Brings back the version that is looked at.
    fn restore(&mut self, now: At) -> Consequences {
        let Some(version) = self.looked_at().cloned() else {
            return Consequences::default();
        };
        self.looking = None;
        self.scroll = 0;
        let mut done = self.put(&version.text, now);
        let number = version.number;
        done.info(format!("version {number} of the scratchpad is back"));
        done
    }

    /// Scrolls the notes by so many rows, or moves the cursor of the editor.
    pub(in crate::app) fn scroll(&mut self, rows: i32) {
        match &mut self.editor {
            Some(editor) => editor.scroll(rows),
            None => scroll_by(&mut self.scroll, &self.bounds, rows),
        }
    }
}

/// Returns a text that was kept without secrets, with the lines of the present one in the place of those that differ by their masks
/// only: each of them once, in their order.
fn with_secrets(kept: &str, present: &str) -> String {
    let masked = present.split('\n').filter_map(|line| match redact(line) {
        Cow::Owned(masked) => Some((masked, line)),
        Cow::Borrowed(_) => None,
    });
    let mut masked: Vec<(String, &str)> = masked.collect();
    let lines = kept.split('\n').map(|line| {
        let own = masked.iter().position(|(masked, _)| masked == line);
        own.map_or(line, |at| masked.remove(at).1)
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    impl NotesPanel {
        pub(in crate::app) const fn editor_mut(&mut self) -> Option<&mut Editor> {
            self.editor.as_mut()
        }

        pub(in crate::app) fn disk(&self) -> &str {
            &self.disk
        }

        pub(in crate::app) fn agent_base(&self) -> &str {
            &self.agent_base
        }

        pub(in crate::app) const fn versions(&self) -> &Versions {
            &self.versions
        }

        pub(in crate::app) const fn save_epoch(&self) -> u64 {
            self.save_epoch
        }
    }

    #[test]
    fn a_line_that_was_kept_without_its_secret_comes_back_with_it() {
        let present = "- [ ] deploy\nDB_PASSWORD=hunter2secret\n";
        let kept = redact(present).into_owned();
        assert_ne!(kept, present);
        assert_eq!(with_secrets(&kept, present), present);
        assert_eq!(with_secrets(&kept, "- [ ] deploy\n"), kept);
    }

    #[test]
    fn lines_that_look_alike_without_their_secrets_get_each_its_own_back() {
        let name = "DB_PASSWORD";
        for secrets in [
            &["hunter2secret", "harvest9moon"][..],
            &["hunter2secret", "harvest9moon", "hunter2secret"],
            &["harvest9moon", "hay4horses", "hunter2secret"],
        ] {
            let lines = secrets.iter().map(|secret| format!("{name}={secret}"));
            let present = lines.collect::<Vec<_>>().join("\nnext\n");
            let kept = redact(&present).into_owned();
            let masks: BTreeSet<&str> = kept.lines().filter(|line| *line != "next").collect();
            assert_eq!(masks.len(), 1, "{kept}");
            assert_eq!(with_secrets(&kept, &present), present);
        }
    }
}
