//! What is kept of the last step where a reboot on the fly takes the conversation's place.

use serde_json::Value;

use super::{play, print_seams};
use crate::{
    autopilot,
    bridge::MODS_FROM,
    kit::{
        client::is_at_least,
        played::{Seam, call_id},
        shape::{Shape, ToolCall},
    },
};

/// The content of a tool's result in a request, and its text without the client's reminders behind it.
#[track_caller]
fn result_in<'a>(body: &'a Value, id: &str) -> (&'a Value, String) {
    let messages = body["messages"].as_array().expect("messages");
    let blocks = messages.iter().filter_map(|one| one["content"].as_array());
    let mut found = blocks
        .flatten()
        .filter(|block| block["tool_use_id"] == id)
        .collect::<Vec<_>>();
    assert_eq!(found.len(), 1, "{id} in {messages:#?}");
    let content = &found.remove(0)["content"];
    let parts = content.as_array().into_iter().flatten();
    let parts: String = parts.filter_map(|part| part["text"].as_str()).collect();
    let text = content.as_str().unwrap_or(&parts);
    let end = text.find("\n\n<system-reminder>").unwrap_or(text.len());
    (content, text[..end].to_owned())
}

/// The ids of all results in a request.
fn results_in(body: &Value) -> Vec<&str> {
    let messages = body["messages"].as_array().into_iter().flatten();
    let blocks = messages.flat_map(|one| one["content"].as_array().into_iter().flatten());
    blocks
        .filter_map(|block| block["tool_use_id"].as_str())
        .collect()
}

/// What a command of a shape prints.
fn printed(bytes: usize) -> String {
    let line = |length: usize| ".".repeat(length);
    let lines = (0..bytes).step_by(80).map(|at| line((bytes - at).min(80)));
    lines.collect::<Vec<_>>().join("\n")
}

/// A turn that crosses the line three times, with these calls in the steps around each.
fn crossing_with(calls: [&[ToolCall]; 3]) -> Shape {
    const BETWEEN: usize = 15;
    let mut shape = Shape::long_turn(60, 20_000, 50_000);
    for (number, calls) in calls.into_iter().enumerate() {
        let jump = (number + 1) * BETWEEN - 8;
        let steps = &mut shape.turns[0];
        steps[jump].growth = 132_000;
        // The figure is told with the next answer, and the client asks one step later, or two.
        for step in &mut steps[jump + 1..jump + 7] {
            step.calls = calls.to_vec();
        }
    }
    shape
}

/// Two commands at once, a picture, and a file that is longer than what is kept.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn all_results_of_the_last_step_are_in_the_request_behind_the_handoff() {
    assert!(is_at_least(MODS_FROM), "this client runs no mods");
    let two = [ToolCall::shell(700), ToolCall::shell(9_000)];
    let image = [ToolCall::shell(100), ToolCall::Image];
    let long = [ToolCall::Read { bytes: 80_000 }];
    let shape = crossing_with([&two, &image, &long]);
    let run = play(&autopilot::live(&["--headless", "--json"]), shape);
    print_seams(&run.played);
    run.check();
    assert_eq!(run.turns(), 1);
    let seams = run.played.seams();
    let bodies: Vec<&Value> = seams
        .iter()
        .filter_map(|seam| seam.after.body.as_ref())
        .collect();
    let [first, second, third] = bodies[..] else {
        panic!("{} reboots", seams.len());
    };
    let id = |seam: &Seam, at| call_id(seam.before.step.expect("a step"), at);
    let both = [id(&seams[0], 0), id(&seams[0], 1)];
    let mut results = results_in(first);
    results.sort_unstable();
    assert_eq!(results, both);
    for (id, call) in both.iter().zip(two) {
        let ToolCall::Shell { bytes, .. } = call else {
            unreachable!()
        };
        assert_eq!(result_in(first, id).1, printed(bytes));
    }

    assert_eq!(result_in(second, &id(&seams[1], 0)).1, printed(100));
    let (content, text) = result_in(second, &id(&seams[1], 1));
    assert!(!content.to_string().contains("\"image\""), "{content}");
    let note =
        "[An image stood here. A reboot does not carry it over: read it again if you need it.]";
    assert_eq!(text, note);

    let (_, text) = result_in(third, &id(&seams[2], 0));
    assert!((60_000..61_000).contains(&text.len()), "{}", text.len());
    let note = " characters were left out by a reboot: call the tool again if you need them.]";
    let (kept, rest) = text.split_once(note).expect("a note");
    assert!(kept.contains("a line of a file") && rest.contains("nothing at all"));
}
