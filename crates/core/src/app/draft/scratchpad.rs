//! The scratchpad: the texts of the human and the agent, and how both survive.
//!
//! Each writer's text is a change of what that writer last saw: the agent's of its own last text, or of the one that its session
//! began with; a person's of what the panel, the editor or the file showed them. Changes are merged, and a line that a person wrote
//! stays until a person removes it. The current text goes to the file; while the file cannot be written it is kept as a version
//! that was not saved, and tried again.

use std::time::Duration;

use crate::lineage::checkpoint::SavedScratchpad;
use pitstop_base::clean;
use pitstop_handoff::scratchpad::{
    HumanLines, merge, notes,
    versions::{Author, Version, Versions},
};

use crate::app::{
    draft::handoff,
    effect::Effect,
    event::TimerId,
    model::{Editor, Foreign, Model},
    refusal::Refusal,
};

/// The time after the last change at which an edit is written by itself.
const SAVE_DELAY: Duration = Duration::from_millis(600);

/// The size that the scratchpad may reach by the notes of a tool, in bytes: as large as a handoff.
const NOTED_LIMIT: usize = 50_000;

/// The time after a failure at which the write is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// Takes over the text of the file, or writes the file again if it is gone.
pub fn read(model: &mut Model, disk: Option<String>) {
    let notes = &mut model.draft.notes;
    let by_agent = std::mem::take(&mut notes.agent_wrote);
    let Some(disk) = disk else {
        if notes.text.is_empty() {
            return;
        }
        notes.disk.clear();
        model.info("the scratchpad's file was gone: it is written again");
        return write(model);
    };
    if disk == notes.disk {
        // The file was faster than the agent's hook.
        if by_agent && let Some(foreign) = notes.foreign.take() {
            disk.clone_into(&mut notes.agent_base);
            notes.human = foreign.human;
            let text = notes.human.restore_lost(&foreign.before, &notes.text);
            take(model, Author::Agent, &text);
        }
        return;
    }
    let before = notes.text.clone();
    let mut text = merge(&notes.disk, &before, &disk);
    if by_agent {
        disk.clone_into(&mut notes.agent_base);
        text = notes.human.restore_lost(&before, &text);
        notes.foreign = None;
    } else {
        notes.foreign = Some(Foreign {
            before: before.clone(),
            human: notes.human.clone(),
        });
        notes.human.record_edit(&before, &text);
    }
    notes.disk = disk;
    let by = if by_agent {
        Author::Agent
    } else {
        Author::Human
    };
    take(model, by, &text);
}

/// Marks what is read next as the agent's, because its hook reports that it wrote the file.
pub fn agent_wrote(model: &mut Model) {
    model.draft.notes.agent_wrote = true;
    model.emit(Effect::ReadScratchpad);
}

/// Merges in a text of the agent's signal, as a change of what the agent wrote last.
pub fn signalled(model: &mut Model, text: &str) {
    let notes = &mut model.draft.notes;
    let text = clean::typed(text);
    let merged = merge(&notes.agent_base, &notes.text, &text);
    notes.agent_base = text;
    let merged = notes.human.restore_lost(&notes.text, &merged);
    if merged == notes.text {
        return;
    }
    take(model, Author::Agent, &merged);
}

/// Adds a fact that the agent keeps by a tool: a line more, which is a change of the current text, and not of the agent's own last
/// text, so it stays when that is replaced. Returns false if such a line is there already; the error gives the reason that it
/// cannot be kept.
pub fn noted(model: &mut Model, fact: &str) -> Result<bool, Refusal> {
    let text = &model.draft.notes.text;
    if notes::has_fact(text, fact) {
        return Ok(false);
    }
    let text = notes::with_fact(text, fact);
    if text.len() > NOTED_LIMIT {
        return Err(Refusal::ScratchpadFull(NOTED_LIMIT as u64));
    }
    take(model, Author::Agent, &text);
    Ok(true)
}

/// Makes a text the current one; what the human is editing is merged with it. Whatever its author, its control characters do not go
/// on into the file: shown in a terminal they would act.
fn take(model: &mut Model, by: Author, text: &str) {
    let text = clean::typed(text);
    if text == model.draft.notes.text {
        if model.draft.notes.disk != text {
            write(model);
        }
        return;
    }
    model.draft.notes.changed_at = Some(model.now);
    model.draft.notes.text = text;
    if let Some(editor) = &mut model.draft.notes.editor {
        let mine = editor.text();
        let now = &model.draft.notes.text;
        let mut merged = merge(&editor.base, &mine, now);
        let mut typed = HumanLines::default();
        typed.record_edit(&editor.base, &mine);
        merged = typed.restore_lost(&mine, &merged);
        now.clone_into(&mut editor.base);
        if merged != mine {
            let base = editor.base.clone();
            editor.replace(&merged);
            editor.base = base;
            model.info("the scratchpad was changed meanwhile: both versions are in your edit");
        }
    }
    new_version(model, by, false);
    if model.draft.notes.text != model.draft.notes.disk {
        write(model);
    }
}

/// Makes a person's text the current one.
fn put(model: &mut Model, text: &str) {
    let notes = &mut model.draft.notes;
    let text = clean::typed(text);
    notes.human.record_edit(&notes.text, &text);
    notes.foreign = None;
    notes.text = text;
    let mut goes_on = false;
    if let Some(editor) = &mut notes.editor {
        notes.text.clone_into(&mut editor.base);
        // All that one edit writes is one version.
        goes_on = std::mem::replace(&mut editor.saved, true);
    }
    new_version(model, Author::Human, goes_on);
    write(model);
}

fn new_version(model: &mut Model, by: Author, goes_on: bool) {
    let notes = &mut model.draft.notes;
    let last = notes.versions.last();
    let goes_on = goes_on && last.is_some_and(|last| last.by == by);
    let number = last.map_or(0, |last| last.number) + u64::from(!goes_on);
    let version = Version {
        number,
        at: model.now.wall,
        by,
        text: notes.text.clone(),
        human: notes.human.iter().map(str::to_owned).collect(),
        unsaved_over: notes.unsaved.is_some().then(|| notes.disk.clone()),
    };
    notes.versions.add(version.clone());
    model.emit(Effect::KeepVersion(version));
}

/// Writes the current text.
fn write(model: &mut Model) {
    model.emit(Effect::WriteScratchpad {
        base: model.draft.notes.disk.clone(),
        text: model.draft.notes.text.clone(),
    });
}

/// Takes note of the text that the file has now.
pub fn saved(model: &mut Model, text: String) {
    model.draft.notes.disk = text;
    if model.draft.notes.unsaved.take().is_none()
        || model.draft.notes.disk != model.draft.notes.text
    {
        return;
    }
    model.info("the scratchpad is saved again");
    mark_version(model);
}

/// Has a failed write tried again; until then the text is kept as a version that was not saved.
pub fn not_saved(model: &mut Model, why: String) {
    let epoch = model.next_epoch();
    model.draft.save_epoch = epoch;
    model.emit(Effect::SetTimer(TimerId::SaveNotes(epoch), RETRY));
    if model.draft.notes.unsaved.as_ref() != Some(&why) {
        model.error(format!("the scratchpad is not saved: {why}"));
    }
    model.draft.notes.unsaved = Some(why);
    mark_version(model);
}

/// Notes in the newest version whether it is saved.
fn mark_version(model: &mut Model) {
    let notes = &mut model.draft.notes;
    let unsaved_over = notes.unsaved.is_some().then(|| notes.disk.clone());
    let mut version = match notes.versions.last() {
        Some(last) if last.unsaved_over != unsaved_over => last.clone(),
        _ => return,
    };
    version.unsaved_over = unsaved_over;
    notes.versions.add(version.clone());
    model.emit(Effect::KeepVersion(version));
}

/// Takes over the versions of earlier runs: what was not saved then is merged in now, and what is not the agent's is a person's.
/// Then a checkpoint's scratchpad takes its place.
pub fn versions_read(model: &mut Model, versions: Versions) {
    take_versions(model, versions);
    if model.draft.notes.restored.is_some() {
        // Of two texts the last one is written: the first would not be on disk yet, as what the second replaces.
        let writes = |effect: &Effect| matches!(effect, Effect::WriteScratchpad { .. });
        model.scratch.effects.retain(|effect| !writes(effect));
        restore_saved(model);
    }
}

/// Handles versions that cannot be read: for a restored checkpoint, each line that is there counts as a person's.
pub fn no_versions(model: &mut Model) {
    if model.draft.notes.restored.is_none() {
        return;
    }
    model.draft.notes.human = HumanLines::since(None, &model.draft.notes.text);
    restore_saved(model);
}

/// Brings back the scratchpad of a checkpoint, as what the agent of that session wrote last: a line of a person's in the present
/// one stays, and the present one is an earlier version.
fn restore_saved(model: &mut Model) {
    let Some(SavedScratchpad { text, human }) = model.draft.notes.restored.take() else {
        return;
    };
    let notes = &mut model.draft.notes;
    let merged = notes.human.restore_lost(&notes.text, &text);
    if merged != text {
        model.info("the checkpoint's scratchpad is back; lines of yours that it did not have stay");
    }
    let notes = &mut model.draft.notes;
    notes.human.extend(human);
    notes.foreign = None;
    // The session that goes on from it was given this one.
    notes.agent_base = text;
    take(model, Author::Human, &merged);
    handoff::return_to_sources(model);
}

fn take_versions(model: &mut Model, mut versions: Versions) {
    let notes = &mut model.draft.notes;
    let offset = versions.last().map_or(0, |last| last.number);
    let now = std::mem::take(&mut notes.versions);
    let last = versions.last().cloned();
    versions.extend(now.iter().cloned().map(|version| Version {
        number: version.number + offset,
        ..version
    }));
    notes.versions = versions;
    let Some(last) = last else {
        notes.human = HumanLines::since(None, &notes.text);
        return;
    };
    if let Some(over) = &last.unsaved_over {
        let human = HumanLines::new(last.human);
        let text = merge(over, &last.text, &notes.text);
        let text = human.restore_lost(&last.text, &text);
        notes.human = human;
        model.info("the scratchpad of last time could not be saved then: it is back");
        return take(model, Author::Human, &text);
    }
    notes.human = HumanLines::since(Some(&last), &notes.text);
    if last.text != notes.text && now.iter().len() == 0 {
        new_version(model, Author::Human, false);
    }
}

/// Opens the editor.
pub fn edit(model: &mut Model) {
    model.draft.notes.looking = None;
    model.draft.notes.editor = Some(Editor::new(&model.draft.notes.text));
}

/// Has the editor's changed text written after a moment.
pub fn edited(model: &mut Model) {
    let epoch = model.next_epoch();
    model.draft.save_epoch = epoch;
    model.emit(Effect::SetTimer(TimerId::SaveNotes(epoch), SAVE_DELAY));
}

/// Writes what is edited when its timer has run out.
pub fn timer(model: &mut Model, epoch: u64) {
    if epoch == model.draft.save_epoch {
        save(model);
    }
}

/// Writes what the editor holds, and what could not be written before.
pub fn save(model: &mut Model) {
    let text = model.draft.notes.editor.as_ref().map(Editor::text);
    match text {
        Some(text) if text != model.draft.notes.text => put(model, &text),
        _ if model.draft.notes.unsaved.is_some() => write(model),
        _ => {}
    }
}

/// Takes a text that a person made of `base`; what has been written since is merged with it.
pub fn write_over(model: &mut Model, base: &str, text: &str) {
    let mut typed = HumanLines::default();
    typed.record_edit(base, text);
    let merged = merge(base, text, &model.draft.notes.text);
    put(model, &typed.restore_lost(text, &merged));
}

/// Saves and leaves the editor.
pub fn finish_edit(model: &mut Model) {
    save(model);
    model.draft.notes.editor = None;
}

/// Reports whether a person's text is not in the file.
#[must_use]
pub fn is_unsaved(model: &Model) -> bool {
    model.draft.notes.unsaved.is_some()
}

/// Shows an older version (or a newer one), beginning with the one before the current text.
pub fn look(model: &mut Model, older: bool) {
    let notes = &mut model.draft.notes;
    let oldest = notes.versions.iter().len().saturating_sub(1);
    let at = match (notes.looking, older) {
        (None, true) if oldest > 0 => Some(1),
        (None, _) => {
            model.info("there is no earlier version of the scratchpad");
            return;
        }
        (Some(at), true) => Some((at + 1).min(oldest)),
        (Some(at), false) => Some(at.saturating_sub(1)),
    };
    notes.looking = at;
    notes.scroll = 0;
}

/// Brings back the version that is looked at.
pub fn restore(model: &mut Model) {
    let Some(version) = model.draft.notes.looked_at().cloned() else {
        return;
    };
    model.draft.notes.looking = None;
    model.draft.notes.scroll = 0;
    model.info(format!(
        "version {} of the scratchpad is back",
        version.number
    ));
    put(model, &version.text);
}
