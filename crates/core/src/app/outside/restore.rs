//! The restore: work is taken up from a checkpoint.

use chrono::{DateTime, Utc};
use serde::Deserialize as _;

use crate::lineage::{
    Cause, Way,
    checkpoint::{Checkpoint, LastError, Place, SavedScratchpad},
    journal::{JournalEntry, Step},
};
use pitstop_base::clean;
use pitstop_handoff::{
    Handoff, Marker, PreservedState, breakpoint::git::GitState, scratchpad::MAX_BYTES,
};

use crate::app::{
    draft::checkpoint::REQUESTS,
    effect::Effect,
    model::{Model, requests::Requests},
    reboot::{self, RebootAction, iteration},
};

/// Takes up the work of a checkpoint in a fresh session, whose first prompt is its handoff: delivered and proven as that of a reboot.
/// `git` is the state of the directory that we are in.
pub fn begin(model: &mut Model, checkpoint: &Checkpoint, git: &GitState) {
    if let Ok(state) = serde_json::from_value::<PreservedState>(checkpoint.state.clone()) {
        let requests = Requests::deserialize(&checkpoint.state[REQUESTS]);
        model.draft.restore_state(state, requests.ok());
    }
    match checkpoint.scratchpad.as_ref().map(checked) {
        Some(saved) => model.draft.notes.await_author(saved),
        None => model.draft.return_to_sources(),
    }
    let here = Place::of(&model.identity.project, git);
    let moved = checkpoint.place();
    let moved = moved.and_then(|before| here.differs_from(&before));
    let handoff = handoff_of(
        checkpoint,
        &model.run().to_string(),
        &model.reboot.new_ids.nonce,
        moved.as_deref(),
    );
    let at: DateTime<Utc> = model.now.wall;
    let entry = JournalEntry {
        reboot_id: model.reboot.new_ids.reboot,
        run: model.run().clone(),
        iteration: model.session.iteration(),
        step: Step::Starting,
        way: Way::Fresh,
        old_session: checkpoint.session,
        new_session: Some(model.session.id),
        nonce: handoff.marker.nonce.clone(),
        handoff: handoff.text.clone(),
        cause: Cause::Restore,
        at,
        outcome: None,
        trim: None,
    };
    let saved = model.now.local(checkpoint.created_at);
    let saved = saved.format("%Y-%m-%d %H:%M");
    let mut parts = vec![format!(
        "goes on from the checkpoint of {} saved {saved}",
        checkpoint.environment
    )];
    parts.extend(moved);
    parts.extend(checkpoint.progress());
    parts.extend(checkpoint.last_error().map(|error| {
        let at = model.now.local(error.at);
        let LastError { message, hint, .. } = error;
        format!(
            "last error {}: {message}; {hint}",
            at.format("%Y-%m-%d %H:%M")
        )
    }));
    model.info(parts.join(" · "));
    if handoff.body().trim().is_empty() {
        // It was saved where handoffs are switched off: there is nothing to deliver.
        return iteration::begin(model, false, Some(Cause::Restore), None);
    }
    let session = model.session.id;
    model.emit(Effect::ReadGit);
    let entry = Box::new(entry);
    let _ = reboot::act(model, RebootAction::TakeUp(entry, handoff, session));
}

/// Returns a saved scratchpad, which may come from another machine, without control characters and cut to the allowed size.
fn checked(saved: &SavedScratchpad) -> SavedScratchpad {
    let mut text = clean::typed(&saved.text);
    text.truncate(text.floor_char_boundary(MAX_BYTES));
    SavedScratchpad {
        text,
        human: saved.human.clone(),
    }
}

/// Returns the handoff that a checkpoint holds, under a marker of its own: each delivery is proven by itself. Above its sections it
/// names what has `moved` since it was written.
pub fn handoff_of(checkpoint: &Checkpoint, run: &str, nonce: &str, moved: Option<&str>) -> Handoff {
    let written_by = Marker::read(&checkpoint.context);
    let body = match (&written_by, checkpoint.context.split_once('\n')) {
        (Some(_), Some((_, body))) => body,
        (Some(_), None) => "",
        (None, _) => checkpoint.context.as_str(),
    };
    let marker = Marker {
        run: checkpoint
            .run
            .as_ref()
            .map_or_else(|| run.to_owned(), ToString::to_string),
        iteration: checkpoint
            .iteration
            .map_or(0, crate::lineage::IterationId::get),
        nonce: nonce.to_owned(),
    };
    let blank = Handoff {
        text: marker.to_string(),
        marker,
        ..Handoff::default()
    };
    let Some(moved) = moved.filter(|_| !body.trim().is_empty()) else {
        return blank.with_body(body);
    };
    let (above, sections) = body.split_at(body.find("## ").unwrap_or(body.len()));
    let above = above.trim_end();
    blank.with_body(&format!(
        "{above}\n\n## Place\nThis message was {moved}. What git and the files say here is right: look before you build on it.\n\n{sections}"
    ))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn checkpoint(context: &str) -> Checkpoint {
        Checkpoint {
            id: Uuid::from_u128(1),
            environment: "web".to_owned(),
            task: String::new(),
            context: context.to_owned(),
            next_steps: Vec::new(),
            tags: Vec::new(),
            state: serde_json::Value::Null,
            scratchpad: None,
            created_at: DateTime::UNIX_EPOCH,
            run: None,
            iteration: None,
            session: None,
        }
    }

    #[test]
    fn a_restored_handoff_has_the_old_body_under_a_new_marker() {
        let saved = checkpoint("pitstop handoff · r1 · iteration 3 · aaaaaaaa\n\n# Work\ngo on");
        let handoff = handoff_of(&saved, "r2", "bbbbbbbb", None);
        assert_eq!(
            handoff.text,
            "pitstop handoff · r2 · iteration 0 · bbbbbbbb\n\n# Work\ngo on"
        );
        assert!(handoff.marker.is_in(&handoff.text));
        // Whatever else was kept as context is sent whole.
        let handoff = handoff_of(&checkpoint("just words"), "r2", "bbbbbbbb", None);
        assert!(handoff.text.ends_with("\njust words"));
    }

    #[test]
    fn a_handoff_restored_elsewhere_names_its_place_above_its_sections() {
        let written =
            "pitstop handoff · r1 · iteration 3 · aaaaaaaa\n\nRead it.\n\n## Git\n- branch other";
        for (context, expected) in [
            (
                written,
                "Read it.\n\n## Place\nThis message was written in `/a`. ",
            ),
            (
                "just words",
                "just words\n\n## Place\nThis message was written in `/a`. ",
            ),
        ] {
            let handoff = handoff_of(
                &checkpoint(context),
                "r2",
                "bbbbbbbb",
                Some("written in `/a`"),
            );
            assert!(handoff.text.contains(expected), "{}", handoff.text);
            assert_eq!(
                handoff.text.contains("\n\n## Git\n- branch other"),
                context == written
            );
        }
        let nothing = handoff_of(&checkpoint(""), "r2", "bbbbbbbb", Some("written in `/a`"));
        assert!(nothing.body().trim().is_empty());
    }
}
