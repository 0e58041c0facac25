//! What the hosted agent asks for by its tools: what it keeps lands with its signals, and what it wants is only shown.

use crate::{
    api::wire::{AgentTools, Reply, ToolReply},
    app::{
        bridge::{tools, tools_by},
        event::BridgeEvent,
        reboot::{Banner, banner, wish},
    },
};
use pitstop_agent::{
    AgentKind,
    bridge::{self, Absence, Caller, Fact, Said, Tool, ToolsBy},
};

use super::*;

impl Bench {
    /// What the tool answers, and what follows.
    fn calls(&mut self, tool: Tool) -> (Result<String, String>, Vec<Effect>) {
        self.calls_as(Caller::default(), tool)
    }

    fn calls_as(&mut self, caller: Caller, tool: Tool) -> (Result<String, String>, Vec<Effect>) {
        let call = CallId(7);
        let mut effects = self.send(Event::ToolCalled { call, caller, tool });
        let said = match effects.remove(0) {
            Effect::Answer(CallId(7), Reply::Tool(ToolReply { text })) => Ok(text),
            Effect::Answer(CallId(7), Reply::Refused { why }) => Err(why),
            other => panic!("no answer: {other:?}"),
        };
        (said, effects)
    }

    /// The same of a call that is not refused.
    fn keeps(&mut self, tool: Tool) {
        let (said, _) = self.calls(tool);
        assert!(said.is_ok(), "{said:?}");
    }

    fn notes(&self) -> &str {
        self.model.draft.notes.text()
    }

    /// The agent gives this scratchpad by a signal.
    fn agent_notes(&mut self, text: &str) {
        let now = self.model.now;
        self.model
            .draft
            .notes
            .signalled(text, now)
            .carry_out(&mut self.model);
    }

    fn handoff_text(&self) -> &str {
        &self.model.draft.handoff.current().text
    }
}

fn note(text: &str) -> Tool {
    Tool::Note { text: text.into() }
}

fn asks(reason: &str) -> Tool {
    let reason = reason.into();
    Tool::RequestReboot { reason }
}

#[test]
fn a_note_is_a_line_of_the_scratchpad_once_and_stands_in_the_handoff() {
    let mut bench = Bench::new();
    let (said, effects) = bench.calls(note("the staging port is 7000"));
    assert_eq!(said.as_deref(), Ok("kept"));
    let written =
        has!(effects, Effect::WriteScratchpad { text, .. } if text.contains("port is 7000"));
    assert!(written, "it goes to the file");
    let (again, effects) = bench.calls(note("The staging  port is 7000."));
    assert_eq!(again.as_deref(), Ok("known already"));
    assert_eq!(effects, []);
    assert_eq!(bench.notes().matches("7000").count(), 1);
    assert_eq!(bench.handoff_text().matches("port is 7000").count(), 1);
}

#[test]
fn a_note_stays_when_the_agent_replaces_the_scratchpad_from_memory() {
    let mut bench = Bench::new();
    bench.agent_notes("# Scratchpad\n\n- [ ] one\n");
    bench.keeps(note("CI needs a login"));
    bench.agent_notes("# Scratchpad\n\n- [x] one\n- [ ] two\n");
    assert!(
        bench.notes().contains("CI needs a login"),
        "{}",
        bench.notes()
    );
    assert!(bench.notes().contains("- [ ] two"));
}

#[test]
fn decisions_and_items_done_are_signals_and_count_once_with_those_in_the_text() {
    let mut bench = Bench::new();
    let (text, why) = ("use SQLite".to_owned(), "one file".to_owned());
    let decision = Tool::Decision { text, why };
    assert_eq!(bench.calls(decision.clone()).0.as_deref(), Ok("kept"));
    assert_eq!(bench.calls(decision).0.as_deref(), Ok("known already"));
    let item = "write the store".to_owned();
    assert_eq!(bench.calls(Tool::Done { item }).0.as_deref(), Ok("kept"));
    let now = bench.model.now;
    let said = bench.model.draft.take_hooked(
        "DECISION: use SQLite | one file\nDONE: write the store",
        now,
    );
    said.carry_out(&mut bench.model);
    let kept = &bench.model.draft.signalled;
    assert_eq!((kept.decisions.len(), kept.completed_items.len()), (1, 1));
    assert!(bench.handoff_text().contains("use SQLite"));
}

#[test]
fn secrets_are_masked_before_they_are_kept() {
    let mut bench = Bench::new();
    let secret = &["ghp_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
    bench.keeps(note(&format!("the token is {secret}")));
    let (text, why) = (format!("use {secret}"), String::new());
    bench.keeps(Tool::Decision { text, why });
    bench.keeps(asks(secret));
    let kept = format!("{:?}", bench.model.draft.signalled);
    let wish = wish(&bench.model).expect("it has asked");
    for text in [bench.notes(), &kept, &wish.reason] {
        assert!(!text.contains("0123456789abcdef"), "a secret was kept");
    }
}

#[test]
fn a_flood_of_notes_ends_at_the_size_of_a_handoff() {
    let mut bench = Bench::new();
    let refused = (0..100).find_map(|number| {
        let fact = format!("{number} {}", "x".repeat(1_900));
        bench.calls(note(&fact)).0.err()
    });
    let why = refused.expect("it is refused some time");
    assert!(why.contains("shorten"), "{why}");
    assert!(bench.notes().len() <= 50_000);
}

#[test]
fn the_context_is_reported_in_a_line() {
    let mut bench = Bench::new();
    assert_eq!(bench.calls(Tool::Context).0.as_deref(), Ok("not known yet"));
    let usage = bridge::Usage {
        used: Some(Tokens(90_000)),
        window: Tokens(200_000),
        ..bridge::Usage::default()
    };
    bench.with_bridge(None);
    bench.bridge_says(OLD, Said::Fact(Fact::Usage(usage)));
    let said = bench.calls(Tool::Context).0.expect("figures");
    assert!(
        said.starts_with("90000 of 180000 usable tokens in use (50 %)"),
        "{said}"
    );
    assert!(
        said.ends_with("a reboot is suggested from 153000 on"),
        "{said}"
    );
}

#[test]
fn the_preview_has_the_handoff_without_what_proves_a_delivery() {
    let mut bench = Bench::new();
    bench.keeps(note("the staging port is 7000"));
    let nonce = bench.model.draft.handoff.current().marker.nonce.clone();
    let shown = bench.calls(Tool::HandoffPreview).0.expect("a handoff");
    assert!(shown.contains("port is 7000"));
    assert!(!nonce.is_empty() && !shown.contains(&nonce));
    for number in 0..40 {
        bench.keeps(note(&format!("{number} {}", "x".repeat(400))));
    }
    let cut = bench.calls(Tool::HandoffPreview).0.expect("a handoff");
    assert!(cut.chars().count() < 6_100 && cut.contains("characters more"));
}

#[test]
fn an_agent_that_asks_for_a_reboot_is_shown_and_nothing_begins() {
    for mode in [RebootMode::Manual, RebootMode::Ask, RebootMode::Auto] {
        let mut bench = Bench::in_mode(mode);
        let (said, effects) = bench.calls(asks("the plan is done"));
        assert!(said.is_ok_and(|said| said.starts_with("asked: ")));
        assert!(
            has!(effects, Effect::Call(need) if need.why == "the plan is done"),
            "{effects:?}"
        );
        let shown = Some(Banner::Wished("the plan is done".to_owned()));
        assert_eq!(banner(&bench.model), shown);
        bench.wait(Duration::from_secs(3600));
        bench.turn_ended(OLD);
        assert_eq!(bench.step(), None, "{mode:?}");
        assert_eq!(
            banner(&bench.model),
            shown,
            "it stands until it is answered"
        );
        let (said, effects) = bench.calls(asks("now"));
        assert!(said.is_ok_and(|said| said.starts_with("you have asked")));
        assert_eq!(effects, []);
    }
}

#[test]
fn a_wish_is_answered_by_a_reboot_or_put_aside() {
    let mut bench = Bench::new();
    bench.keeps(asks("x"));
    assert_eq!(
        crate::app::reboot::act(
            &mut bench.model,
            crate::app::reboot::RebootAction::Cancel { defer: true }
        ),
        Ok(())
    );
    assert_eq!(banner(&bench.model), None);
    bench.keeps(asks("x"));
    bench.press(KeyCode::F(5));
    assert_eq!(wish(&bench.model), None, "the review is the answer");
    let (said, _) = bench.calls(asks("x"));
    assert!(said.is_ok_and(|said| said.starts_with("a reboot is under way")));
}

#[test]
fn a_session_that_was_left_keeps_nothing() {
    let mut bench = Bench::new();
    let other = Caller {
        session: Some(session(77)),
        iteration: None,
    };
    let earlier = Caller {
        session: None,
        iteration: Some(99),
    };
    for caller in [other, earlier] {
        let (said, effects) = bench.calls_as(caller, note("from there"));
        assert!(said.is_err_and(|why| why.contains("has been left")));
        assert_eq!(effects, []);
    }
    let present = Caller {
        session: Some(session(OLD)),
        iteration: Some(bench.model.session.iteration().get()),
    };
    assert_eq!(
        bench.calls_as(present, note("from here")).0.as_deref(),
        Ok("kept")
    );
    assert!(!bench.notes().contains("from there"));
}

#[test]
fn the_tools_come_by_the_mod_and_by_a_server_where_there_is_none_to_be() {
    let mut bench = Bench::new();
    let by = |model: &Model, args: &[&str]| {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        tools_by(model, AgentKind::Claude, &args)
    };
    assert_eq!(by(&bench.model, &[]), ToolsBy::Mod);
    assert_eq!(by(&bench.model, &["--bare"]), ToolsBy::Server);
    assert_eq!(by(&bench.model, &["--safe-mode"]), ToolsBy::None);
    assert_eq!(
        tools_by(&bench.model, AgentKind::Generic, &[]),
        ToolsBy::None
    );
    bench.model.session.agent.version = Some("2.1.197".into());
    assert_eq!(by(&bench.model, &[]), ToolsBy::Server);
    bench.model.session.agent.version = Some("2.1.330".into());
    // Mods that did not come will not come to the next session either: managed settings keep them out.
    bench.with_bridge(None);
    bench.wait(Duration::from_secs(20));
    bench.bridge_looks();
    crate::app::iteration::begin(&mut bench.model, false, None, None);
    assert_eq!(by(&bench.model, &[]), ToolsBy::Server);
    bench.model.config.agent.tools = false;
    assert_eq!(by(&bench.model, &[]), ToolsBy::None);
}

#[test]
fn the_state_says_how_the_tools_are_reached() {
    let mut bench = Bench::new();
    let give = |bench: &mut Bench, by| {
        let iteration = bench.model.session.iteration();
        bench.send(Event::Bridge(BridgeEvent::ToolsGiven { iteration, by }));
        tools(&bench.model)
    };
    bench.with_bridge(None);
    assert_eq!(give(&mut bench, ToolsBy::Mod), AgentTools::Awaited);
    bench.bridge_says(OLD, Said::Hello);
    assert_eq!(tools(&bench.model), AgentTools::Mod);
    bench.with_bridge(Some(Absence::SwitchedOff));
    assert_eq!(tools(&bench.model), AgentTools::None);
    assert_eq!(give(&mut bench, ToolsBy::Server), AgentTools::Mcp);
}
