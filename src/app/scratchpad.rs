//! The scratchpad panel: what the human edits, what the agent writes, and how both survive.

use std::time::Duration;

use crate::scratchpad::{Merge, merge};

use super::{
    effect::Effect,
    event::TimerId,
    handoff,
    model::{Editor, Model},
};

/// How long after the last change an edit is written by itself.
const SAVE_DELAY: Duration = Duration::from_millis(600);

/// The file says something else than before, or was read for the first time.
pub fn read(model: &mut Model, disk: String) {
    let Some(editor) = &mut model.notes.editor else {
        if model.notes.text != disk {
            model.notes.text = disk;
            model.notes.changed_at = Some(model.now);
            handoff::draft(model);
        }
        return;
    };
    if disk == editor.base {
        return;
    }
    let mine = editor.text();
    let merged = merge(&editor.base, &mine, &disk);
    let news = match &merged {
        Merge::Clean(text) if *text == mine => None,
        Merge::Clean(text) => {
            editor.replace(text);
            Some("the agent changed the scratchpad: merged with your edit")
        }
        Merge::Conflict(_) => {
            model.notes.theirs = Some(disk.clone());
            Some(
                "the agent changed lines that you edit: Ctrl-T takes its version, saving keeps yours",
            )
        }
    };
    disk.clone_into(&mut editor.base);
    match news {
        Some(news) if matches!(merged, Merge::Conflict(_)) => model.trouble(news),
        Some(news) => model.notice(news),
        None => {}
    }
    model.notes.text = disk;
    handoff::draft(model);
}

/// Opens the editor.
pub fn edit(model: &mut Model) {
    model.notes.editor = Some(Editor::new(&model.notes.text));
}

/// The editor's text has changed: it is written after a moment.
pub fn edited(model: &mut Model) -> Vec<Effect> {
    let epoch = model.next_epoch();
    model.save_epoch = epoch;
    vec![Effect::SetTimer(TimerId::SaveNotes(epoch), SAVE_DELAY)]
}

/// Writes what the editor holds, if it differs from the file.
pub fn save(model: &mut Model) -> Vec<Effect> {
    let Some(editor) = &mut model.notes.editor else {
        return Vec::new();
    };
    let text = editor.text();
    if text == model.notes.text {
        return Vec::new();
    }
    write(model, text)
}

/// Writes a whole text that the human gave us.
pub fn write(model: &mut Model, text: String) -> Vec<Effect> {
    let base = model.notes.text.clone();
    write_over(model, base, text)
}

/// Writes a text that the human made of `base`; what has been written since is merged with it.
pub fn write_over(model: &mut Model, base: String, text: String) -> Vec<Effect> {
    text.clone_into(&mut model.notes.text);
    if let Some(editor) = &mut model.notes.editor {
        text.clone_into(&mut editor.base);
    }
    handoff::draft(model);
    vec![Effect::WriteScratchpad { base, text }]
}

/// The agent's signal replaces the notes; what the human is editing is merged with it.
pub fn signalled(model: &mut Model, text: String) -> Vec<Effect> {
    if text == model.notes.text {
        return Vec::new();
    }
    let base = model.notes.text.clone();
    read(model, text.clone());
    vec![Effect::WriteScratchpad { base, text }]
}

/// Saves and leaves the editor.
pub fn finish_edit(model: &mut Model) -> Vec<Effect> {
    let effects = save(model);
    model.notes.editor = None;
    model.notes.theirs = None;
    effects
}

/// Takes the agent's version of lines that both have changed; undo brings the human's back.
pub fn take_theirs(model: &mut Model) -> Vec<Effect> {
    let (Some(theirs), Some(editor)) = (model.notes.theirs.take(), &mut model.notes.editor) else {
        return Vec::new();
    };
    editor.replace(&theirs);
    edited(model)
}
