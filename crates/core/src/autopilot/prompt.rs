//! The texts that the agent is sent in an autonomous run: at its start, when it stops, and after an interruption.

/// Returns the first prompt: the task and how to end it.
pub fn start(task: &str, stop_phrase: &str) -> String {
    fill(
        include_str!("../../../../assets/run/start.md"),
        task,
        stop_phrase,
    )
}

/// Returns the prompt for an agent that has stopped.
pub fn go_on() -> String {
    fill(include_str!("../../../../assets/run/go-on.md"), "", "")
}

/// Returns the prompt for an agent whose task was changed meanwhile.
pub fn changed(task: &str, stop_phrase: &str) -> String {
    fill(
        include_str!("../../../../assets/run/changed.md"),
        task,
        stop_phrase,
    )
}

/// Returns the prompt for an agent that was started again after it died. The task is given again: the session may have had
/// nothing that could be resumed.
pub fn again(task: &str, stop_phrase: &str) -> String {
    let again = fill(include_str!("../../../../assets/run/again.md"), "", "");
    format!("{again}\n\n{}", start(task, stop_phrase))
}

/// Returns the closing words of a handoff in an autonomous run, behind the usual ones.
pub fn carry_on(stop_phrase: &str) -> String {
    fill(
        include_str!("../../../../assets/run/carry-on.md"),
        "",
        stop_phrase,
    )
}

/// Fills a template in one pass, so that a task which holds a placeholder stays as it is.
fn fill(template: &str, task: &str, stop_phrase: &str) -> String {
    let around_task = template.trim().split("{task}");
    let filled = around_task.map(|part| part.replace("{stop_phrase}", stop_phrase.trim()));
    filled.collect::<Vec<_>>().join(task.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autopilot::stop_phrase;

    #[test]
    fn the_agent_is_given_the_task_and_how_to_end_it() {
        let text = start("Port {stop_phrase} to {task}\n", "ALL DONE");
        assert!(
            text.contains("\n\nPort {stop_phrase} to {task}\n\n"),
            "{text}"
        );
        assert!(text.contains("\n\nALL DONE\n\n"), "{text}");
        for text in [
            changed("t", "ALL DONE"),
            again("t", "ALL DONE"),
            carry_on("ALL DONE"),
        ] {
            assert!(text.contains("\n\nALL DONE"), "{text}");
        }
        assert!(again("the task", "x").contains("the task"));
    }

    #[test]
    fn what_it_is_sent_to_go_on_does_not_hold_the_stop_phrase() {
        // An agent that repeats its orders must not end the run by that.
        assert!(!stop_phrase::is_given(stop_phrase::DEFAULT, &go_on()));
        assert!(!go_on().contains('{'));
    }
}
