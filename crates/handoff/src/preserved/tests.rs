use super::*;
use crate::breakpoint::git::GitFacts;
use pitstop_transcript::human::{HumanWords, Said};

#[test]
fn a_state_says_how_much_of_its_items_is_done() {
    let mut state = PreservedState::default();
    assert_eq!(state.progress(), None);
    for (done, open, progress) in [("a", "b", "1 of 2 done"), ("c", "ö", "2 of 4 done")] {
        state.mark_completed(done, Origin::Human);
        state.add_pending(open, Origin::Human);
        assert_eq!(state.progress().as_deref(), Some(progress));
    }
    state.mark_completed("ö", Origin::Human);
    assert_eq!(state.progress().as_deref(), Some("3 of 4 done"));
}

#[test]
fn marking_an_item_completed_takes_it_out_of_pending() {
    let mut state = PreservedState::default();
    state.add_pending("write tests", Origin::Human);
    state.add_pending("write tests", Origin::Human);
    assert_eq!(state.pending_items, ["write tests"]);
    state.mark_completed("write tests", Origin::Human);
    assert!(state.pending_items.is_empty());
    assert_eq!(state.completed_items, ["write tests"]);
}

#[test]
fn prompts_taken_in_at_once_are_those_taken_in_one_by_one() {
    let mut words = HumanWords::default();
    for number in 0..300 {
        words.take_prompt(&format!("Never do number {number}."), None);
    }
    let mut at_once = PreservedState::default();
    for rule in ["Never do number 7!", "Never do that."] {
        let text = rule.to_owned();
        at_once.add_constraint(Said { text, at: None }, Origin::Signal);
    }
    at_once.withdrawn.insert(plain_key("Never do number 9."));
    let mut one_by_one = at_once.clone();
    for said in &words.prompts {
        one_by_one.add_constraint(said.clone(), Origin::Human);
    }
    at_once.feed_human(&words);
    assert_eq!(at_once, one_by_one);
    assert_eq!(at_once.constraints.len(), 300);
    assert_eq!(at_once.prompts().count(), 299, "one is the agent's alone");
}

#[test]
fn an_item_that_is_added_again_after_it_was_done_is_to_do_again() {
    let mut state = PreservedState::default();
    state.mark_completed("Write the *parser*.", Origin::Human);
    state.mark_completed("lexer", Origin::Human);
    state.add_pending("write the parser", Origin::Human);
    assert_eq!(state.pending_items, ["write the parser"]);
    assert_eq!(state.completed_items, ["lexer"]);
    // Two lists that contradict each other have no order in time: an item that is done in one counts as done.
    state.feed_scratchpad(&Parsed::read("- [x] Write the parser\n- [ ] lexer\n"));
    assert!(state.pending_items.is_empty());
}

#[test]
fn the_scratchpad_feeds_decisions_and_issues() {
    let mut state = PreservedState::default();
    state.record_decision("**use sqlite**", "", None, Origin::Signal);
    state.resolve_issue("CI is red", Origin::Human);
    let notes = "## Key Decisions\n- Use SQLite | one file\n- 2026-01-02: no rayon\n## Blockers\n- CI is red.\n\
        - [low]: `src/a.rs` squeaks\n- the disk is full\n- ~~it leaks~~\n";
    for _ in 0..2 {
        state.feed_scratchpad(&Parsed::read(notes));
    }
    let decided: Vec<_> = state
        .decisions
        .iter()
        .map(|one| (one.description.as_str(), one.rationale.as_str(), one.origin))
        .collect();
    assert_eq!(
        decided,
        [
            ("**use sqlite**", "one file", Origin::Signal),
            ("no rayon", "", Origin::Scratchpad)
        ]
    );
    assert_eq!(
        state.decisions[1].timestamp,
        "2026-01-02T00:00:00Z".parse().ok()
    );
    let issues: Vec<_> = state
        .known_issues
        .iter()
        .map(|one| (one.description.as_str(), one.severity, one.addressed))
        .collect();
    assert_eq!(
        issues,
        [
            ("CI is red", Severity::Medium, true),
            ("`src/a.rs` squeaks", Severity::Low, false),
            ("the disk is full", Severity::High, false),
            ("it leaks", Severity::Medium, true),
        ]
    );
    assert_eq!(state.known_issues[1].files, ["src/a.rs"]);
}

#[test]
fn the_scratchpad_feeds_checklist_and_objective() {
    let mut state = PreservedState::default();
    state.feed_scratchpad(&Parsed::read(
        "## Objective\nShip it\n## Current Plan\n- [x] a\n- [ ] b\n",
    ));
    assert_eq!(
        state.current_objective,
        Some(Item::new("Ship it", Origin::Scratchpad))
    );
    assert_eq!(state.completed_items, ["a"]);
    assert_eq!(state.pending_items, ["b"]);
}

#[test]
fn an_objective_that_is_already_known_wins_over_the_scratchpad() {
    let mut state = PreservedState::default();
    state.set_objective("the task", Origin::Human);
    state.feed_scratchpad(&Parsed::read("## Objective\nanother\n"));
    assert_eq!(
        state.current_objective,
        Some(Item::new("the task", Origin::Human))
    );
}

#[test]
fn done_wins_over_open_from_any_source() {
    for (done, open) in [
        (Origin::Signal, Origin::Todo),
        (Origin::Todo, Origin::Signal),
        (Origin::Scratchpad, Origin::Human),
    ] {
        let mut state = PreservedState::default();
        state.add_pending("the lexer", open);
        state.feed_list(["**The lexer**."].into_iter(), std::iter::empty(), done);
        state.feed_list(std::iter::empty(), ["the lexer"].into_iter(), open);
        assert_eq!(
            state.completed_items,
            [Item::new("**The lexer**.", done)],
            "{open:?}"
        );
        assert!(state.pending_items.is_empty());
    }
}

#[test]
fn an_item_of_several_sources_is_listed_once_by_the_first() {
    let mut state = PreservedState::default();
    state.add_pending("write tests", Origin::Signal);
    state.feed_scratchpad(&Parsed::read("- [ ] `write tests`\n- [ ] docs\n"));
    state.feed_list(
        std::iter::empty(),
        ["Write tests.", "Docs", "release"].into_iter(),
        Origin::Todo,
    );
    assert_eq!(
        state.pending_items,
        [
            Item::new("write tests", Origin::Signal),
            Item::new("docs", Origin::Scratchpad),
            Item::new("release", Origin::Todo),
        ]
    );
}

#[test]
fn what_is_stated_twice_is_recorded_once() {
    let mut state = PreservedState::default();
    for severity in [Severity::Low, Severity::High] {
        state.record_decision(
            "sqlite",
            "one file",
            Some(DateTime::UNIX_EPOCH),
            Origin::Human,
        );
        state.record_issue("it leaks", severity, Vec::new(), Origin::Human);
    }
    assert_eq!((state.decisions.len(), state.known_issues.len()), (1, 1));
    assert_eq!(state.known_issues[0].severity, Severity::High);
    state.resolve_issue("it leaks", Origin::Human);
    state.record_issue("it leaks", Severity::Low, Vec::new(), Origin::Human);
    assert_eq!(state.known_issues.len(), 2, "it came back");
}

#[test]
fn clearing_forgets_everything() {
    let mut state = PreservedState::default();
    state.set_objective("o", Origin::Human);
    state.add_pending("p", Origin::Human);
    state.mark_completed("c", Origin::Human);
    state.record_decision("d", "", Some(DateTime::UNIX_EPOCH), Origin::Human);
    state.record_issue("i", Severity::Low, Vec::new(), Origin::Human);
    state.set_custom("k", "v", Origin::Human);
    state.feed_git(&GitFacts {
        modified: vec!["m".to_owned()],
        ..GitFacts::default()
    });
    state.test_state.failing.push("t".to_owned());
    assert_ne!(state, PreservedState::default());
    assert_eq!(state.items().len(), 9);
    state.clear();
    assert_eq!(state, PreservedState::default());
}

#[test]
fn no_list_grows_without_end() {
    let mut state = PreservedState::default();
    for n in 0..KEPT_ITEMS + 5 {
        let text = format!("item {n}");
        state.record_decision(&text, "", Some(DateTime::UNIX_EPOCH), Origin::Human);
        state.record_issue(&text, Severity::Low, Vec::new(), Origin::Human);
        state.set_custom(&text, "v", Origin::Human);
    }
    let many: Vec<String> = (0..3 * KEPT_ITEMS).map(|n| format!("item {n}")).collect();
    let items = || many.iter().map(String::as_str);
    state.feed_list(std::iter::empty(), items(), Origin::Todo);
    state.feed_list(items(), std::iter::empty(), Origin::Todo);
    state.mark_completed("one more", Origin::Human);
    for length in [
        state.decisions.len(),
        state.known_issues.len(),
        state.custom.len(),
        state.completed_items.len(),
    ] {
        assert_eq!(length, KEPT_ITEMS);
    }
    assert!(state.pending_items.is_empty());
    assert_eq!(state.completed_items.last().unwrap(), &"one more");
}

#[test]
fn it_goes_through_json_with_its_origins_and_reads_plain_texts() {
    let mut state = PreservedState::default();
    state.set_objective("o", Origin::Signal);
    state.add_pending("p", Origin::Todo);
    state.set_custom("k", "v", Origin::Human);
    let json = serde_json::to_value(&state).unwrap();
    assert_eq!(
        json["pending_items"][0],
        serde_json::json!({"text": "p", "origin": "todo"})
    );
    assert_eq!(
        serde_json::from_value::<PreservedState>(json).unwrap(),
        state
    );
    let plain = r#"{"current_objective":"o","pending_items":["p"],"custom":{"k":"v"},
        "decisions":[{"description":"d","rationale":"","timestamp":"2026-01-01T00:00:00Z"}]}"#;
    let read: PreservedState = serde_json::from_str(plain).unwrap();
    assert_eq!(read.pending_items, [Item::new("p", Origin::Human)]);
    assert_eq!(read.decisions[0].origin, Origin::Human);
}

#[test]
fn a_label_without_an_issue_resolves_none() {
    for label in ["- Resolved:", "- Fixed:\n- it leaks", "- (done)"] {
        let mut state = PreservedState::default();
        let notes = format!("## Blockers\n- CI has no network\n{label}\n");
        state.feed_scratchpad(&Parsed::read(&notes));
        let resolved = state.known_issues.iter().filter(|issue| issue.addressed);
        assert_eq!(resolved.count(), 0, "{label}: {:?}", state.known_issues);
    }
}

#[test]
fn the_word_that_opens_a_reason_is_taken_off() {
    for (said, why) in [
        ("because threads leak", "threads leak"),
        ("Because of the leak", "the leak"),
        ("because: it leaks", "it leaks"),
        ("becausewards", "becausewards"),
        ("it leaks", "it leaks"),
        ("", ""),
        ("weil es leckt, ü", "weil es leckt, ü"),
    ] {
        let mut state = PreservedState::default();
        state.record_decision("use tokio", said, None, Origin::Signal);
        state.add_rejected("threads", said, Origin::Signal);
        assert_eq!(state.decisions[0].rationale, why, "{said}");
        assert_eq!(state.rejected[0].why, why, "{said}");
    }
}
