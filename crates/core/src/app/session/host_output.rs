//! The agent's output besides its grid, on its way to the footer and to the host terminal.

use std::time::Duration;

use crate::{
    api::wire::NeedKind,
    config::{ClipboardPolicy, Notifications, UiConfig},
};
use pitstop_terminal::screen::{Progress, ScreenFact};

use crate::app::{
    consequences::Consequences,
    effect::Effect,
    facts::deciding_figure,
    model::{AgentView, Model, session::Session},
    session::turn::TurnEvent,
};
use pitstop_base::{clock::At, format::percent};

/// The shortest time between two calls for a person: a program in a loop must not drive anybody mad.
const CALL_GAP: Duration = Duration::from_secs(2);

/// Returns the title for the host terminal's tab: how full the window is, whether a person is needed, the project, and the agent's
/// own title: `89 % ! repo · ✳ Tests`.
pub(in crate::app) fn title(model: &Model) -> String {
    let figure = deciding_figure(model).map(|one| format!("{} % ", percent(one.percent)));
    let needs = model
        .outside
        .needs()
        .iter()
        .any(|need| need.kind.is_urgent());
    let mark = if needs { "! " } else { "" };
    let project = model
        .identity
        .project
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let own = model.session.title.trim();
    let own = if own.is_empty() {
        String::new()
    } else {
        format!(" · {own}")
    };
    format!("{}{mark}{project}{own}", figure.unwrap_or_default())
}

/// Reports whether a person was called to the agent's question already.
pub(in crate::app) fn has_called(model: &Model) -> bool {
    let mut needs = model.outside.needs().iter();
    needs.any(|need| matches!(need.kind, NeedKind::Permission | NeedKind::Question) && need.called)
}

impl Session {
    /// Takes in something that the emulator saw and that is no cell, while the pane is `focused` or not. Returns what follows, and the
    /// end of a turn that it shows.
    pub(in crate::app) fn screen_seen(
        &mut self,
        fact: ScreenFact,
        ui: &UiConfig,
        (has_called, focused, now): (bool, bool, At),
    ) -> (Consequences, Option<TurnEvent>) {
        let wanted = ui.notifications;
        let follows = match fact {
            ScreenFact::Title(title) => return self.title_changed(title, now),
            ScreenFact::Bell => self.called(None, wanted, has_called, now),
            ScreenFact::Notification { title, body } => {
                self.called(Some((title, body)), wanted, has_called, now)
            }
            ScreenFact::Progress(progress) => self.agent.progressed(progress, wanted).into(),
            ScreenFact::ClipboardStore(text)
                if ui.clipboard == ClipboardPolicy::Allow
                    || focused && ui.clipboard == ClipboardPolicy::Focused =>
            {
                Some(Effect::StoreClipboard(text)).into()
            }
            ScreenFact::ClipboardStore(text) => {
                let bytes = text.len();
                tracing::info!(bytes, "the agent may not write the clipboard now");
                Consequences::default()
            }
            ScreenFact::Mark(_) => Consequences::default(),
        };
        (follows, None)
    }

    /// Passes on the agent's bell or notification as this is wanted, unless a person was called to its question already.
    fn called(
        &mut self,
        said: Option<(String, String)>,
        wanted: Notifications,
        has_called: bool,
        now: At,
    ) -> Consequences {
        let mut follows = Consequences::default();
        if let Some((title, body)) = &said {
            let both = [title, body].into_iter().filter(|part| !part.is_empty());
            let text = both.cloned().collect::<Vec<_>>().join(": ");
            follows.info(format!("the agent says: {text}"));
        }
        let recently = self
            .called_at
            .is_some_and(|last| now.since(last) < CALL_GAP);
        if has_called || wanted == Notifications::Off || recently {
            return follows;
        }
        self.called_at = Some(now);
        follows.emit(match (said, wanted) {
            (Some((title, body)), Notifications::Desktop) => Effect::Notify { title, body },
            _ => Effect::Bell,
        });
        follows
    }
}

impl AgentView {
    /// Passes on the progress that the agent shows, as this is wanted.
    pub(in crate::app) fn progressed(
        &mut self,
        progress: Progress,
        wanted: Notifications,
    ) -> Option<Effect> {
        let shown = Some(progress).filter(|progress| *progress != Progress::None);
        let is_new = std::mem::replace(&mut self.progress, shown) != shown;
        (is_new && wanted != Notifications::Off).then_some(Effect::HostProgress(progress))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::tests::Bench;
    use crate::app::{Event, event::PaneEvent};

    fn says(bench: &mut Bench, fact: ScreenFact) -> Vec<Effect> {
        let mut effects = bench.send(Event::Pane(PaneEvent::Screen(fact)));
        effects.retain(|effect| !matches!(effect, Effect::SetTimer(..)));
        effects
    }

    fn notification(body: &str) -> ScreenFact {
        ScreenFact::Notification {
            title: "done".to_owned(),
            body: body.to_owned(),
        }
    }

    #[test]
    fn calls_are_passed_on_as_wished_and_not_too_often() {
        for (wanted, passed) in [
            (
                Notifications::Desktop,
                vec![Effect::Notify {
                    title: "done".to_owned(),
                    body: "a".to_owned(),
                }],
            ),
            (Notifications::Bell, vec![Effect::Bell]),
            (Notifications::Off, vec![]),
        ] {
            let mut bench = Bench::new();
            bench.model.config.ui.notifications = wanted;
            assert_eq!(says(&mut bench, notification("a")), passed);
            assert_eq!(says(&mut bench, notification("b")), []);
            assert_eq!(says(&mut bench, ScreenFact::Bell), []);
            let newest = &bench.model.view.notices.back().expect("a notice").text;
            assert_eq!(
                newest, "the agent says: done: b",
                "the footer has it all the same"
            );
            bench.wait(CALL_GAP);
            assert_eq!(says(&mut bench, ScreenFact::Bell).len(), passed.len());
        }
    }

    #[test]
    fn progress_is_shown_and_taken_down_when_the_agent_ends() {
        let mut bench = Bench::new();
        let percent = Progress::Percent(40);
        let effects = says(&mut bench, ScreenFact::Progress(percent));
        assert_eq!(effects, [Effect::HostProgress(percent)]);
        assert_eq!(says(&mut bench, ScreenFact::Progress(percent)), []);
        assert_eq!(bench.model.session.agent.progress, Some(percent));
        let iteration = bench.model.session.iteration();
        let exit = crate::app::event::Exit::Code(1);
        let effects = bench.send(Event::Pane(PaneEvent::Exited { iteration, exit }));
        assert!(effects.contains(&Effect::HostProgress(Progress::None)));
        assert_eq!(bench.model.session.agent.progress, None);
    }

    #[test]
    fn the_hosts_title_names_the_agents_and_ours() {
        let mut bench = Bench::new();
        let effects = says(&mut bench, ScreenFact::Title("✳ Tests".to_owned()));
        let project = bench
            .model
            .identity
            .project
            .rsplit('/')
            .next()
            .expect("a name")
            .to_owned();
        let shown = |effects: &[Effect]| {
            let titles = effects.iter().filter_map(|effect| match effect {
                Effect::HostTitle(title) => Some(title.clone()),
                _ => None,
            });
            titles.collect::<Vec<_>>()
        };
        assert_eq!(shown(&effects), [format!("{project} · ✳ Tests")]);
        let effects = bench.used(153_000);
        assert_eq!(
            shown(&effects).last(),
            Some(&format!("85 % ! {project} · ✳ Tests"))
        );
    }
}
