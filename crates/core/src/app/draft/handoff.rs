//! The handoff as it would be sent now.
//!
//! It is drafted once an event is answered, if its sources have changed, so code that changes those need not think of it. A caller
//! that needs it within the same event asks for it by [`draft`].

use std::collections::BTreeSet;

use crossterm::event::{KeyCode, KeyEvent};

use crate::{api::wire::AgentState, config::RecentActivity};
use pitstop_base::{clean, clock::At};
use pitstop_handoff::{
    Check, Generator, Handoff, Marker, PreservedState, Sources, TurnStanding,
    breakpoint::git::{Commit, GitState, OtherTree},
    check,
    check::with_missing,
    edits::Edits,
    preserved::Origin,
    quality, summary,
};
use pitstop_transcript::{
    Tokens,
    human::{PROMPTS_HEADING, Said, parse_item},
    work::IN_WORK_TREE,
};

use crate::app::{
    consequences::{Consequences, KeyOutcome, Request},
    effect::Effect,
    event::HandoffFiles,
    facts::{closing_words, fresh_load, goes_on_the_fly, is_cut_by_us, run_task},
    model::{
        Editor, Focus, HandoffPanel, Model, Overlay, draft::HandoffDraft, panels::Edited,
        progress::hash_of, reading::Reading, view::View,
    },
};

/// The error where a prompt is to be pinned or taken out of a message that lists none.
const NO_PROMPT: &str = "no prompt of yours is listed here";

/// Drafts the message from everything that is known, unless it was made from exactly that already.
pub fn draft(model: &mut Model) {
    let stands = |made_of| made_of == fingerprint(model) || is_being_sent(model);
    if model.draft.made_of.is_some_and(stands) {
        return;
    }
    model.draft.notes.parse();
    (model.draft.handoff.generated, model.draft.preserved) = make(model);
    model.draft.compare();
    // The warning that a reboot would save little depends on the message that was just made.
    model.draft.made_of = Some(fingerprint(model));
}

/// Returns a number that changes with everything that the message is made from.
fn fingerprint(model: &Model) -> u64 {
    let (draft, turns) = (&model.draft, model.session.agent.turns);
    let written = (draft.notes.text(), &draft.requests, &draft.signalled);
    let seen = (&draft.commands, &draft.todo, &draft.work, &draft.git);
    let warning = wins_little(model, &draft.handoff.generated);
    let summary = draft.summary.by_model(turns);
    let run = (run_task(model), closing_words(model), turn_standing(model));
    let made = (&draft.handoff_files, summary, warning, marker(model));
    hash_of(&(written, seen, made, run, &model.config.handoff))
}

/// Reports whether the next session has begun with the message, and its process has not brought the nonce of another yet: until
/// then the message stays as it was sent.
fn is_being_sent(model: &Model) -> bool {
    let (sent, next) = (&model.draft.handoff.generated.marker, marker(model));
    let begun = sent.nonce == next.nonce && sent.iteration != next.iteration;
    begun && model.session.agent.state != AgentState::Exited
}

fn marker(model: &Model) -> Marker {
    Marker {
        run: model.run().to_string(),
        iteration: model.session.iteration().get(),
        nonce: model.reboot.new_ids.nonce.clone(),
    }
}

impl HandoffDraft {
    /// Compares the message with what the session shows. An empty one is intended to be empty: nothing is compared with it.
    fn compare(&mut self) {
        let comparison = comparison(&self.git, &self.handoff_files);
        let panel = &mut self.handoff;
        if let Some(edited) = &mut panel.edited {
            edited.warnings = quality::check_edited(&edited.text, comparison);
        }
        let text = &panel.current().text;
        panel.check = if text.is_empty() {
            Check::default()
        } else {
            check(text, &self.preserved, &self.work)
        };
        if panel.check.is_complete() {
            panel.lists_missing = false;
        }
    }

    /// Keeps a body below the first line of the message that was just drafted, without notifying anyone, unless the person's edit is
    /// there: it is kept with each change, and so is as new or newer.
    pub fn restore_body(&mut self, body: &str) {
        if self.handoff.edited.is_none() {
            self.handoff.edited = Some(self.handoff.generated.with_body(body));
            self.compare();
        }
    }

    /// Adds what the message misses to it, as an edit of the human's.
    pub(in crate::app) fn add_missing(&mut self) -> Consequences {
        let check = &self.handoff.check;
        if check.is_complete() {
            return Consequences::default();
        }
        let body = with_missing(self.handoff.current().body(), check);
        // These are no words of the human's.
        self.take_body(&body)
    }

    /// Keeps what the editor holds as the message in the human's own words.
    pub(in crate::app) fn save_edit(&mut self) -> Consequences {
        let Some(editor) = &mut self.handoff.editor else {
            return Consequences::default();
        };
        let text = editor.text();
        let base = std::mem::replace(&mut editor.base, text.clone());
        self.take_text(&base, &text)
    }

    /// Keeps what the editor holds, as [`HandoffDraft::save_edit`] does, and leaves the editor.
    pub(in crate::app) fn finish_edit(&mut self) -> Consequences {
        let kept = self.save_edit();
        self.handoff.editor = None;
        kept
    }

    /// Keeps what is being edited, and leaves the editors.
    pub(in crate::app) fn leave_editors(&mut self, now: At) -> Consequences {
        self.finish_edit().then(self.notes.finish_edit(now))
    }

    /// Leaves the editors that are not in sight any more, in the same way: a reboot would wait for them.
    pub(in crate::app) fn leave_hidden_editors(&mut self, view: &View, now: At) -> Consequences {
        let mut done = Consequences::default();
        let shows_handoff = view.focus == Focus::Handoff || view.overlay == Some(Overlay::Review);
        if !shows_handoff {
            done = done.then(self.finish_edit());
        }
        if view.focus != Focus::Scratchpad && self.notes.editor().is_some() {
            done = done.then(self.notes.finish_edit(now));
        }
        done
    }

    /// Keeps a text, which was `base` before, as the message in the human's own words, below the marker and its blank lines, which
    /// are not edited.
    pub(in crate::app) fn take_text(&mut self, base: &str, text: &str) -> Consequences {
        let body = self.handoff.current().body();
        let blank = body.len() - body.trim_start_matches('\n').len();
        self.take_edit(base, &format!("{}{text}", "\n".repeat(blank)))
    }

    /// Keeps a body that the human made of `base`, if it differs from what was generated.
    pub(in crate::app) fn take_edit(&mut self, base: &str, body: &str) -> Consequences {
        self.handoff.edits.take_in(base, body);
        self.take_body(body)
    }

    fn take_body(&mut self, body: &str) -> Consequences {
        let mut follows = Consequences::default();
        let panel = &mut self.handoff;
        let edited = panel.generated.with_body(body);
        if edited.text == panel.current().text {
            return follows;
        }
        panel.edited = (edited.text != panel.generated.text).then_some(edited);
        if panel.edited.is_none() {
            panel.edits = Edits::default();
        }
        self.compare();
        follows.info("the handoff is yours now: it is sent as you wrote it");
        follows
    }

    /// Takes over, for all later handoffs, what the human did to the message that a session has begun with.
    pub(in crate::app) fn leave_edit(&mut self, now: At) {
        let edits = std::mem::take(&mut self.handoff.edits);
        if let Some(edited) = self.handoff.edited.take() {
            edits.apply(&edited.text, now.wall, &mut self.signalled);
        }
    }

    /// Takes over what the human did to a message whose session has ended meanwhile: it is not sent, their words count.
    pub(in crate::app) fn take_late_edit(
        &mut self,
        base: &str,
        body: &str,
        now: At,
    ) -> Consequences {
        let mut edits = Edits::default();
        edits.take_in(base, body);
        edits.apply(body, now.wall, &mut self.signalled);
        let mut follows = Consequences::default();
        follows.info(
            "its session has ended: what you added to the handoff counts as your words in this one",
        );
        follows
    }

    /// Drops the human's version.
    pub(in crate::app) fn discard_edit(&mut self) -> Consequences {
        let mut follows = Consequences::default();
        if self.handoff.edited.take().is_some() {
            self.handoff.edits = Edits::default();
            self.compare();
            follows.info("your version of the handoff is dropped: it follows its sources again");
        }
        follows
    }

    /// Pins the first prompt from this line of the message on, or lets it go again.
    pub(in crate::app) fn pin_prompt(&mut self, from: usize) -> Consequences {
        let mut follows = Consequences::default();
        let Some((_, said)) = self.handoff.prompt_in_view(from) else {
            follows.error(NO_PROMPT);
            return follows;
        };
        match self.signalled.toggle_pin(&said) {
            Some(true) => follows.info(format!("pinned: {}", said.text)),
            Some(false) => follows.info(format!("not pinned any more: {}", said.text)),
            None => follows.error("this line is your edit: it is sent as you wrote it"),
        }
        follows
    }

    /// Takes the first prompt from this line on out of this handoff and all that follow.
    pub(in crate::app) fn drop_prompt(&mut self, from: usize) -> Consequences {
        let mut follows = Consequences::default();
        let Some((line, said)) = self.handoff.prompt_in_view(from) else {
            follows.error(NO_PROMPT);
            return follows;
        };
        self.signalled.withdraw_constraint(&said);
        if let Some(edited) = &self.handoff.edited {
            // The marker's line is no part of the body.
            let lines = edited.text.lines().enumerate().skip(1);
            let kept = lines.filter(|(at, _)| *at != line).map(|(_, text)| text);
            let body = kept.collect::<Vec<_>>().join("\n");
            self.handoff.edited = Some(edited.with_body(&body));
        }
        let text = said.text;
        follows.info(format!(
            "taken out of this handoff and all that follow: {text}"
        ));
        follows
    }

    /// Handles a key while the panel has the focus, or the editor in the review; the panel shows this text with this line in view.
    pub(in crate::app) fn panel_key(
        &mut self,
        key: KeyEvent,
        (shown, line): (&str, usize),
    ) -> KeyOutcome {
        let mut done = Consequences::default();
        let mut request = None;
        // A pattern that is being typed has every key.
        let typing = self.handoff.reading.typing.is_some();
        match (self.handoff.edit_key(key), key.code) {
            (Some(Edited::Done), _) => request = Some(Request::EndHandoffEdit),
            // The next key is Esc for many, and must not close what lies below the editor.
            (Some(Edited::Save), _) => done = self.save_edit(),
            (Some(Edited::Copied(text)), _) => done.emit(Effect::Copy(text)),
            (Some(Edited::Changed | Edited::Moved), _) => {}
            (None, _) if typing => self.handoff.reading.key(key, shown, line),
            (None, KeyCode::Char('e' | 'i') | KeyCode::Enter) => {
                request = Some(Request::EditHandoff);
            }
            (None, KeyCode::Char('x')) => done = self.discard_edit(),
            (None, KeyCode::Char('m')) => self.handoff.toggle_missing(),
            (None, KeyCode::Char('+')) => done = self.add_missing(),
            (None, KeyCode::Char('p')) => request = Some(Request::PasteHandoff),
            (None, KeyCode::Char('y')) => {
                done.copy_document("handoff", &self.handoff.current().text);
            }
            (None, KeyCode::Esc | KeyCode::Char('q')) => request = Some(Request::FocusPane),
            (None, _) => self.handoff.reading.key(key, shown, line),
        }
        (done, request)
    }
}

impl HandoffPanel {
    /// Shows what the message misses in place of it, or the message again.
    pub(in crate::app) fn toggle_missing(&mut self) {
        self.lists_missing = !self.lists_missing && !self.check.is_complete();
        self.reading = if self.lists_missing {
            Reading::default()
        } else {
            Reading::folded()
        };
    }

    /// Returns the part of the message that is edited: all below its marker line.
    pub fn editable(&self) -> &str {
        self.current().body().trim_start_matches('\n')
    }

    /// Opens the editor on the message, with the cursor in this line.
    pub(in crate::app) fn edit(&mut self, line: usize) {
        let mut editor = Editor::new(self.editable());
        editor.begin_at(line);
        self.editor = Some(editor);
    }

    /// Returns the first prompt at or below a line, or the last one above it, with its line.
    fn prompt_in_view(&self, from: usize) -> Option<(usize, Said)> {
        // The line is one of the list of what the message misses.
        if self.lists_missing {
            return None;
        }
        let lines = || self.current().text.lines();
        let begin = lines().position(|line| line.trim_end() == PROMPTS_HEADING)? + 1;
        let listed = lines().enumerate().skip(begin);
        let listed = listed.take_while(|(_, line)| !line.starts_with("## "));
        let mut prompts = listed.filter_map(|(at, line)| Some((at, parse_item(line)?)));
        let mut last = None;
        let found = prompts.find(|(at, said)| {
            last = Some((*at, said.clone()));
            *at >= from
        });
        found.or(last)
    }
}

/// Returns the facts that the warnings compare the message with.
fn comparison<'a>(git: &'a GitState, files: &'a HandoffFiles) -> quality::Comparison<'a> {
    let head = match git {
        GitState::Facts(repository) => repository.head.as_deref(),
        _ => None,
    };
    quality::Comparison {
        missing: &files.missing,
        head,
    }
}

/// Makes the message, and the state that it preserves.
fn make(model: &Model) -> (Handoff, PreservedState) {
    let state = preserve(model);
    let marker = marker(model);
    // The summary without a model is made from the contents of the other sections.
    let summary = model.draft.summary.by_model(model.session.agent.turns);
    let mut git = git_lines(&model.draft.git, &model.config.handoff);
    if !git.is_empty() {
        git.extend(other_trees(&model.draft.git, &state.other_trees));
    }
    if !model.config.handoff.generate_handoff {
        return (none(marker), state);
    }
    let closing = closing_words(model);
    let objective = state.current_objective.as_ref();
    let first_request = model.draft.requests.first_beside(objective);
    let latest_request = model.draft.requests.latest.as_ref();
    let sources = Sources {
        scratchpad: model.draft.notes.parsed(),
        git: &git,
        closing: &closing,
        summary: summary.as_deref(),
        recent_commands: &model.draft.commands,
        commands_first: model.config.handoff.recent_activity == RecentActivity::RecentCommands,
        first_request: first_request.map_or("", |said| &said.text),
        latest_request: latest_request.map_or("", |said| &said.text),
        work: Some(&model.draft.work),
        turn: turn_standing(model),
        included_files: &model.draft.handoff_files.included,
        include_tests: model.config.handoff.include_test_state,
        comparison: comparison(&model.draft.git, &model.draft.handoff_files),
        ..Sources::new(&marker, &state)
    };
    let max = model.config.handoff.max_state_size;
    let generated = model.draft.generator.generate(&sources, max);
    // A user's template that fails only on some values: the message must still get across.
    let mut handoff = generated.unwrap_or_else(|error| {
        let plain = Generator::default().generate(&sources, max);
        let mut handoff = plain.expect("the compiled-in template takes any values");
        handoff.warnings.insert(0, error.to_string());
        handoff
    });
    close(&mut handoff, &closing);
    let unread = model.draft.handoff_files.warnings.iter().cloned();
    handoff.warnings.extend(unread);
    let warning = wins_little(model, &handoff);
    handoff.warnings.extend(warning);
    (handoff, state)
}

/// Adds the closing words where a template of the user's own has no place for them: without them a run would never end.
fn close(handoff: &mut Handoff, closing: &str) {
    let closing = pitstop_handoff::sendable(closing);
    if !closing.is_empty() && !handoff.text.contains(&closing) {
        handoff.text = format!("{}\n\n{closing}", handoff.text);
    }
}

/// Returns the message for a user who wants no handoff: an empty one, unless they write one themselves.
fn none(marker: Marker) -> Handoff {
    Handoff {
        marker,
        warnings: vec![
            "generate_handoff is off: the next session starts empty, unless you write it a message"
                .to_owned(),
        ],
        ..Handoff::default()
    }
}

/// Returns the state of the turn from which the next session continues.
fn turn_standing(model: &Model) -> TurnStanding {
    if !model.session.agent.activity.turn {
        TurnStanding::Over
    } else if is_cut_by_us(model) && !goes_on_the_fly(model) {
        TurnStanding::CutByUs
    } else {
        TurnStanding::Running
    }
}

/// Returns the order to look at the files that the handoff names, and those that it includes.
pub(in crate::app) fn read_files(model: &Model) -> Effect {
    let state = &model.draft.preserved;
    let of_issues = state
        .known_issues
        .iter()
        .filter(|issue| !issue.addressed)
        .flat_map(|issue| issue.files.iter().cloned());
    let files = state.modified_files.iter().chain(&state.created_files);
    let files = files.map(|file| file.text.clone());
    Effect::ReadHandoffFiles {
        named: files.chain(of_issues).collect(),
        include: model.config.handoff.include_files.clone(),
    }
}

/// Returns a warning when the session that would begin with this message is almost as full as the present one: within 20 % of now.
fn wins_little(model: &Model, message: &Handoff) -> Option<String> {
    let used = model.used()?;
    let base = fresh_load(model)?;
    // A session that has hardly begun is not worth a message.
    if used.0 <= base.0.saturating_add(10_000) {
        return None;
    }
    let after = Tokens(base.0.saturating_add(message.tokens().0));
    let little = after.0.saturating_mul(10) >= used.0.saturating_mul(8);
    little.then(|| {
        let thousands = |tokens: Tokens| tokens.0 / 1000;
        format!(
            "a reboot would save little: {}k now, about {}k after it",
            thousands(used),
            thousands(after)
        )
    })
}

/// Returns everything that is preserved, each source in the order of [`pitstop_handoff::preserved`].
fn preserve(model: &Model) -> PreservedState {
    let mut state = model.draft.signalled.clone();
    state.feed_scratchpad(model.draft.notes.parsed());
    model.draft.todo.feed(&mut state);
    if let Some(task) = run_task(model) {
        state.set_objective(task, Origin::Human);
    }
    if state.current_objective.is_none()
        && let Some(first) = &model.draft.requests.first
    {
        state.set_objective(&first.text, Origin::Human);
    }
    if let GitState::Facts(repository) = &model.draft.git {
        state.feed_git(repository);
    }
    let files = model.draft.work.files.iter().filter(|file| file.changed);
    let has_git = matches!(model.draft.git, GitState::Facts(_));
    state.feed_changed(files.map(|file| file.path.as_str()), has_git);
    state
}

/// Returns the summary without a model of what was known at the last drafting; `None` if nothing was.
pub(in crate::app) fn summary_without_model(draft: &HandoffDraft) -> Option<String> {
    let requests = &draft.requests;
    let requests = [&requests.first, &requests.latest].map(|one| {
        let said = one.as_ref();
        said.map_or("", |said| said.text.as_str())
    });
    summary::fallback(&draft.preserved, &requests, &draft.work)
}

/// The number of files with conflicts that are named.
const MOST_CONFLICTS: usize = 10;

/// Returns the branch and recent commits as the message shows them.
pub fn git_lines(git: &GitState, settings: &crate::config::HandoffConfig) -> Vec<String> {
    let GitState::Facts(repository) = git else {
        return Vec::new();
    };
    if !settings.include_git_history {
        return Vec::new();
    }
    let mut lines = Vec::new();
    if let Some(branch) = &repository.branch {
        let tree = repository.work_tree.as_ref();
        let tree = tree.map(|tree| format!("{IN_WORK_TREE}{}", clean::one_line(tree)));
        let tree = tree.unwrap_or_default();
        lines.push(format!("branch {}{tree}", clean::one_line(branch)));
    } else if let Some(head) = repository.head.as_ref().filter(|_| repository.detached) {
        let head = head.get(..8).unwrap_or(head);
        lines.push(format!("the head is detached at {head}: on no branch"));
    }
    if let Some(operation) = &repository.operation {
        lines.push(format!("in progress: {operation}"));
    }
    lines.extend(repository.notes.iter().cloned());
    if let Some((first, more)) = repository.conflicts.split_first() {
        let shown = std::iter::once(first).chain(more.iter().take(MOST_CONFLICTS - 1));
        let shown: Vec<&str> = shown.map(String::as_str).collect();
        let rest = repository.conflicts.len() - shown.len();
        let rest = if rest > 0 {
            format!(" and {rest} more")
        } else {
            String::new()
        };
        lines.push(format!("conflicts in {}{rest}", shown.join(", ")));
    }
    let commits = repository.commits.iter().take(settings.git_history_count);
    lines.extend(commits.map(|commit| {
        let sha = commit.sha.get(..8).unwrap_or(&commit.sha);
        format!("{sha} {}", clean::one_line(&commit.subject))
    }));
    lines
}

/// Returns the repository's other work trees in which the agent has worked, each with its branch and its last commit.
fn other_trees(git: &GitState, known: &BTreeSet<String>) -> Vec<String> {
    let GitState::Facts(repository) = git else {
        return Vec::new();
    };
    let line = |tree: &OtherTree| {
        let branch = tree.branch.as_ref();
        let branch = branch.map_or("no branch".to_owned(), |name| format!("branch {name}"));
        let is_elsewhere = |one: &&Commit| repository.commits.iter().all(|own| own.sha != one.sha);
        let last = tree.commits.first().filter(is_elsewhere);
        let last = last.map_or_else(String::new, |one| {
            let sha = one.sha.get(..8).unwrap_or(&one.sha);
            format!(", last commit {sha} {}", clean::one_line(&one.subject))
        });
        let top = clean::one_line(&tree.top);
        format!("also worked in {top}: {}{last}", clean::one_line(&branch))
    };
    let trees = repository.other_trees.iter();
    trees
        .filter(|tree| known.contains(&tree.top))
        .map(line)
        .collect()
}
