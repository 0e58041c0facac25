//! The work that the handoff of the session before carries over.

use super::{
    CHANGED_MARK, COMMAND_CAP, COMMANDS, COMMANDS_HEADING, Call, Deed, FAILURE_HEADING, FAILURES,
    Failure, GIT_HEADING, IN_WORK_TREE, OTHER_FILES, PLAN_HEADING, TRIED_HEADING, UNCOMMITTED_MARK,
    WORK_HEADING, Work, places::join_path, worth,
};
use crate::{
    facts,
    human::section_lines,
    steps::{cut_in_the_middle, denial_reason},
    words::clipped,
};

impl Work {
    /// Takes over the work of the session before: else a reboot soon after a reboot would lose it.
    pub(super) fn carry_over(&mut self, handoff: &str) {
        self.blocks += 1;
        for line in section_lines(handoff, COMMANDS_HEADING) {
            let command = line
                .strip_prefix("- `")
                .and_then(|rest| rest.strip_suffix('`'));
            if let Some(command) = command {
                self.commands.push_front(clipped(command, COMMAND_CAP));
            }
        }
        self.commands.truncate(COMMANDS);
        self.carry_failures(handoff);
        // A command among the steps is not in the list of commands.
        for step in self.steps.carry_over(handoff) {
            if let Some((line, failed, output)) = step.ended_call() {
                let mut call = Call {
                    deed: Deed::of_line(&line, self.places.current()),
                    name: cut_in_the_middle(&line, COMMAND_CAP),
                    ..Call::default()
                };
                if step.is_command() && denial_reason(&output).is_none() {
                    self.note_command(&call.name);
                }
                let worked = call.deed.outcome(failed, &output);
                self.record_outcome(&call, worked, &output);
            }
        }
        if self.plan.is_none() {
            let lines = section_lines(handoff, PLAN_HEADING).into_iter();
            let lines: Vec<&str> = lines
                .filter_map(|line| line.strip_prefix('>'))
                .map(|line| line.strip_prefix(' ').unwrap_or(line))
                .collect();
            self.plan = Some(lines.join("\n")).filter(|plan| !plan.is_empty());
        }
        // Ranks are kept: the first file and its first names are worth the most.
        let mut by = worth::ASKED;
        let git = section_lines(handoff, GIT_HEADING);
        let mut place = git.iter().filter_map(|line| line.split_once(IN_WORK_TREE));
        let place = place.next().map(|(_, place)| place);
        let items = section_lines(handoff, WORK_HEADING).into_iter();
        let items = items.filter_map(|line| line.strip_prefix("- "));
        let items = items.flat_map(|item| match item.split_once(": ") {
            Some((OTHER_FILES, files)) => files.split(", ").collect(),
            _ => vec![item],
        });
        for item in items {
            by *= 0.97;
            let (head, names) = item.split_once(": ").unwrap_or((item, ""));
            let marks = [CHANGED_MARK, UNCOMMITTED_MARK];
            let changed = marks.iter().find_map(|mark| head.strip_suffix(mark));
            let (head, changed) = (changed.unwrap_or(head), changed.is_some());
            let (path, line) = match head.rsplit_once(':') {
                Some((path, number)) => (path, number.parse().ok()),
                None => (head, None),
            };
            let path = match place {
                Some(place) if !path.starts_with('/') => {
                    self.places.relative_path(&join_path(place, path))
                }
                _ => self.places.relative_path(path),
            };
            let is_file = facts::is_file(&path);
            if is_file {
                self.touch_file(&path, by);
                if let Some(file) = self.files.get_mut(&path) {
                    file.is_at_hand = true;
                    file.changed |= changed;
                    file.is_used |= changed || line.is_some();
                    file.line = file.line.or(line);
                }
            }
            let home = is_file.then_some(path.as_str());
            for name in names.split(", ").filter(|name| facts::is_name(name)) {
                self.note_name(name, by, home);
            }
            if !is_file {
                self.note_mentions(names, by, None);
            }
        }
    }

    /// Takes over the failures of calls that have not worked since, as older than the failures of this session.
    fn carry_failures(&mut self, handoff: &str) {
        let mut last = section_lines(handoff, FAILURE_HEADING).into_iter();
        let call = last.by_ref().find(|line| line.starts_with('`'));
        let fenced = last.skip_while(|line| !line.starts_with("```")).skip(1);
        let lines = fenced.take_while(|line| !line.starts_with("```"));
        let call = call.and_then(|line| line.strip_prefix('`')?.strip_suffix('`'));
        let lines = lines.map(|line| line.strip_prefix("  ").unwrap_or(line).to_owned());
        let last = call.map(|call| (call, lines.collect()));
        let tried = section_lines(handoff, TRIED_HEADING).into_iter();
        let tried = tried.filter_map(|line| {
            let item = line.strip_prefix("- `")?;
            let (call, why) = item.split_once("`: ").unwrap_or((item, ""));
            let call = call.strip_suffix('`').unwrap_or(call);
            let why = Some(why.to_owned()).filter(|why| !why.is_empty());
            Some((call, why.into_iter().collect()))
        });
        for (call, lines) in last.into_iter().chain(tried) {
            let deed = Deed::of_line(call, self.places.current());
            let is_new = self.failures.iter().all(|(have, _)| !have.is_same(&deed));
            if self.failures.len() < FAILURES && is_new {
                let failure = Failure {
                    call: call.to_owned(),
                    lines,
                    worked_later: false,
                };
                self.failures.push_front((deed, failure));
            }
        }
    }
}
