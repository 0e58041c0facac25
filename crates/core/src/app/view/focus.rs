//! The focus: what has the keys.

use std::sync::Arc;

use crate::app::{
    consequences::Consequences,
    effect::Effect,
    model::{Focus, view::View},
};
use crate::lineage::IterationId;
use pitstop_transcript::talk::Talk;

impl View {
    /// Gives a part of the screen the keys, and takes away what lies over everything: the keys would seem dead behind it.
    pub(in crate::app) fn move_focus(&mut self, focus: Focus) -> Consequences {
        self.overlay = None;
        let before = std::mem::replace(&mut self.focus, focus);
        if before == focus {
            return Consequences::default();
        }
        let mut done = Consequences::from(self.copy.drop_mode());
        let has_pane = focus == Focus::Pane;
        if has_pane != (before == Focus::Pane) {
            done.emit(Effect::FocusPane(has_pane));
        }
        done
    }

    /// Shows the transcript of an iteration, which was read, unless something else lies over the pane by now. Where there is none, copy
    /// mode reads what is on the screen.
    pub(in crate::app) fn talk_read(
        &mut self,
        iteration: IterationId,
        talk: Result<Arc<Talk>, String>,
    ) -> Consequences {
        let mut done = Consequences::default();
        match talk {
            _ if self.overlay.is_some() => {}
            Ok(talk) => return self.copy.show(iteration, talk).into(),
            Err(why) => {
                done.error(format!(
                    "the transcript of iteration {iteration} cannot be read: {why}"
                ));
                if self.focus == Focus::Pane && !self.copy.is_on() {
                    done.emit(self.copy.begin(false));
                }
            }
        }
        done
    }
}
