//! A rewind of the client's takes back what was said and decided from a prompt on.

use crate::app::event::TranscriptFacts;

use super::*;

/// A prompt comes by hook and transcript, and the answer decides.
fn decides(bench: &mut Bench, (prompt, rule): (&str, &str), answer: &str, rewound: Option<&str>) {
    bench.prompted(OLD, rule);
    bench.facts_read(TranscriptFacts {
        prompt: Some(prompt.to_owned()),
        rewound: rewound.map(str::to_owned),
        whole: true,
        ..TranscriptFacts::default()
    });
    bench.said(OLD, answer);
}

#[test]
fn what_was_said_from_a_prompt_on_is_taken_back_with_it() {
    let turns = [
        (
            ("u1", "Always run the linter"),
            "DECISION: use sqlite | one file\nTODO: the tests",
        ),
        (
            ("u2", "Never touch größe.rs"),
            "DECISION: use redis | fast\nTODO: a server\nDONE: the tests",
        ),
        (
            ("u3", "Always write docs. 文書を書く"),
            "ISSUE[high]: the cache is cold\nSTATE port=1",
        ),
    ];
    for (first, stands) in [("u1", 0), ("u2", 1), ("u3", 2)] {
        let mut bench = Bench::new();
        let mut before = Vec::new();
        for (prompt, answer) in turns {
            before.push(bench.model.draft.signalled.clone());
            decides(&mut bench, prompt, answer, None);
        }
        let mut plain = Bench::new();
        for (prompt, answer) in turns.into_iter().take(stands) {
            decides(&mut plain, prompt, answer, None);
        }
        bench.facts_read(TranscriptFacts {
            prompt: Some("u4".to_owned()),
            rewound: Some(first.to_owned()),
            whole: true,
            ..TranscriptFacts::default()
        });
        assert_eq!(bench.model.draft.signalled, before[stands], "{first}");
        assert_eq!(
            bench.model.draft.requests, plain.model.draft.requests,
            "{first}"
        );
        assert_eq!(bench.model.session.agent.last_message, None);
        // Once more, behind what stands.
        decides(
            &mut bench,
            ("u5", "Port it"),
            "DECISION: no cache",
            Some("u4"),
        );
        let decisions = &bench.model.draft.signalled.decisions;
        assert_eq!(
            decisions.len(),
            before[stands].decisions.len() + 1,
            "{first}"
        );
    }
}

#[test]
fn a_prompt_that_nobody_saw_before_takes_nothing_back() {
    let mut bench = Bench::new();
    decides(&mut bench, ("u1", "Port it"), "DECISION: use sqlite", None);
    decides(
        &mut bench,
        ("u3", "Go on"),
        "DECISION: no cache",
        Some("u0"),
    );
    assert_eq!(bench.model.draft.signalled.decisions.len(), 2);
}

/// Two processes in one session take turns: each goes on from its own last record.
#[test]
fn what_was_decided_on_a_branch_counts_again_when_the_conversation_goes_on_from_it() {
    let mut bench = Bench::new();
    let goes_on = |bench: &mut Bench, prompt: &str, rewound: Option<&str>, returned| {
        bench.facts_read(TranscriptFacts {
            prompt: Some(prompt.to_owned()),
            rewound: rewound.map(str::to_owned),
            returned: Option::map(returned, str::to_owned),
            whole: true,
            ..TranscriptFacts::default()
        });
        let decisions = bench.model.draft.signalled.decisions.iter();
        let decisions: Vec<_> = decisions.map(|one| &*one.description).collect();
        decisions.join(" ")
    };
    for (prompt, decision) in [("u1", "one"), ("u2", "two"), ("u3", "three")] {
        let answer = format!("DECISION: {decision} | why");
        decides(&mut bench, (prompt, "go on"), &answer, None);
    }
    assert_eq!(goes_on(&mut bench, "v2", Some("u2"), None), "one");
    decides(&mut bench, ("v3", "go on"), "DECISION: other | why", None);
    assert_eq!(
        goes_on(&mut bench, "u4", Some("v2"), Some("u3")),
        "one two three"
    );
    assert_eq!(
        goes_on(&mut bench, "v4", Some("u2"), Some("v3")),
        "one other"
    );
    // From the middle of a branch.
    assert_eq!(goes_on(&mut bench, "w3", Some("v2"), Some("u2")), "one two");
    // What was never seen to be taken back is not known.
    assert_eq!(goes_on(&mut bench, "x3", Some("w3"), Some("x2")), "one two");
}
