//! What a person is needed for: called once for each occasion, and taken back.

use super::*;
use crate::api::wire::{ApiEventKind, ApproveBody, NeedKind, PermissionAnswer, PermissionBody};
use crate::app::{changes::ModelSnapshot, report};
use pitstop_agent::PermissionRequest;

/// The calls, and the calls that are taken back.
fn calls(effects: &[Effect]) -> (Vec<NeedKind>, Vec<NeedKind>) {
    let called = all!(effects, Effect::Call(need) => need.kind);
    (called, all!(effects, Effect::Settled(need) => need.kind))
}

#[test]
fn a_question_is_called_once_and_taken_back_and_the_next_is_another() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    let effects = bench.asks("Bash");
    assert_eq!(calls(&effects), (vec![NeedKind::Question], vec![]));
    let first = bench.model.outside.needs()[0].clone();
    assert_eq!((first.why.as_str(), first.called), ("Bash", true));
    // The client reports it twice.
    bench.wait(Duration::from_millis(400));
    let effects = bench.asks("Claude needs your permission to use Bash");
    assert_eq!(calls(&effects), (vec![], vec![]));
    assert_eq!(bench.model.outside.needs()[0].id, first.id);
    let effects = bench.prompted(OLD, "more");
    assert_eq!(calls(&effects), (vec![], vec![NeedKind::Question]));
    let effects = bench.asks("Edit");
    assert_eq!(calls(&effects), (vec![NeedKind::Question], vec![]));
    assert_ne!(bench.model.outside.needs()[0].id, first.id);
}

#[test]
fn a_form_keeps_its_words_when_the_client_reports_it_without_any() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    for (about, why) in [
        ("", "it needs your input"),
        ("forms: Which region?", "forms: Which region?"),
        ("", "forms: Which region?"),
    ] {
        bench.asks(about);
        assert_eq!(bench.model.outside.needs()[0].why, why);
    }
}

#[test]
fn dialogs_at_the_start_call_a_person_one_after_another() {
    let mut bench = Bench::bare(Config::default());
    super::super::iteration::begin(&mut bench.model, false, None, None);
    bench.spawned(NEW);
    bench.prompt_box(PromptBox::Dialog("Do you trust it?".to_owned()));
    assert_eq!(bench.state(), AgentState::Starting, "it must stand");
    let effects = bench.stands();
    assert_eq!(calls(&effects), (vec![NeedKind::Question], vec![]));
    assert_eq!(bench.state(), AgentState::Dialog);
    assert_eq!(bench.model.outside.needs()[0].why, "Do you trust it?");
    // A key that only moves the mark answers nothing.
    bench.press(KeyCode::Down);
    assert_eq!(bench.state(), AgentState::Dialog);
    bench.prompt_box(PromptBox::Dialog("2 servers found".to_owned()));
    let effects = bench.stands();
    let another = (vec![NeedKind::Question], vec![NeedKind::Question]);
    assert_eq!(calls(&effects), another);
    assert_eq!(bench.model.outside.needs()[0].why, "2 servers found");
    // It is answered, and the client goes on with its start.
    bench.prompt_box(PromptBox::Absent);
    let effects = bench.stands();
    assert_eq!(calls(&effects), (vec![], vec![NeedKind::Question]));
    assert_eq!(bench.state(), AgentState::Starting);
    bench.started(OLD);
    bench.ready();
    assert_eq!(bench.state(), AgentState::Idle);
}

#[test]
fn a_reboot_waits_once_for_each_level_and_one_of_a_person_calls_nobody() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    let effects = bench.used(155_000);
    assert_eq!(calls(&effects), (vec![NeedKind::Review], vec![]));
    assert_eq!(
        bench.model.outside.needs()[0].why,
        "the context is 86 % full"
    );
    bench.turn_ended(OLD);
    let effects = bench.control(Control::Approve);
    assert_eq!(calls(&effects).1, [NeedKind::Review]);

    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.turn_ended(OLD);
    let effects = bench.press(KeyCode::F(5));
    assert_eq!(calls(&effects), (vec![], vec![]));
    assert_eq!(
        bench.model.outside.needs()[0].kind,
        NeedKind::Review,
        "but it is seen"
    );
}

#[test]
fn a_reason_that_changes_is_the_new_one_without_its_secrets_and_the_same_need() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    let secret = format!("sk-ant-{}", "api03-Zq8x".repeat(9));
    let mut ids = vec![];
    for said in [
        "overloaded".to_owned(),
        format!("the key {secret} is refused"),
    ] {
        bench.failed(Failure::Other, &said);
        // It is read after each event.
        bench.press(KeyCode::F(1));
        let need = &bench.model.outside.needs()[0];
        assert!(!need.why.contains(&secret), "{need:?}");
        ids.push((need.id, need.why.clone()));
    }
    let [(first, before), (second, after)] = &ids[..] else {
        panic!("{ids:?}");
    };
    assert_eq!((first, before.as_str()), (second, "overloaded"));
    assert!(
        after.contains("the key") && after.contains("refused"),
        "{after}"
    );
}

#[test]
fn a_usage_limit_calls_when_it_is_reached_and_when_it_is_over() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.model.session.agent.limit_reset = Some(bench.at().wall + Duration::from_secs(600));
    let effects = bench.failed(Failure::UsageLimit, "limit reached");
    assert_eq!(calls(&effects), (vec![NeedKind::Limit], vec![]));
    assert_eq!(bench.model.outside.needs()[0].why, "limit reached");
    let awaited = |effects: &[Effect]| has!(effects, Effect::SetTimer(TimerId::LimitOver, _));
    assert!(awaited(&effects), "{effects:?}");
    bench.wait(Duration::from_secs(30));
    let effects = bench.send(Event::TimerFired(TimerId::LimitOver));
    assert!(awaited(&effects), "it is not over: {effects:?}");
    // The machine sleeps meanwhile.
    bench.wait(Duration::from_secs(30));
    bench.asleep += Duration::from_secs(540);
    let effects = bench.send(Event::TimerFired(TimerId::LimitOver));
    assert_eq!(
        calls(&effects),
        (vec![NeedKind::LimitOver], vec![NeedKind::Limit])
    );
    let effects = bench.prompted(OLD, "go on");
    assert_eq!(calls(&effects), (vec![], vec![NeedKind::LimitOver]));
}

#[test]
fn a_turn_that_has_failed_calls_until_the_next_one() {
    for (failure, what) in [
        (Failure::Service, "The turn has failed"),
        (Failure::Other, "The turn has failed"),
        (Failure::RateLimit, "The rate limit is reached"),
    ] {
        let mut bench = Bench::new();
        bench.prompted(OLD, "work");
        let effects = bench.failed(failure, "API Error: 529");
        assert_eq!(calls(&effects), (vec![NeedKind::TurnFailed], vec![]));
        let need = &bench.model.outside.needs()[0];
        assert_eq!(
            (need.what.as_str(), need.why.as_str()),
            (what, "API Error: 529")
        );
        let effects = bench.prompted(OLD, "go on");
        assert_eq!(calls(&effects), (vec![], vec![NeedKind::TurnFailed]));
    }
    // A person stops the next one.
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.failed(Failure::Service, "API Error: 529");
    bench.prompted(OLD, "go on");
    bench.model.session.agent.end_turn(AgentState::Idle);
    bench.wait(Duration::from_secs(60));
    bench.send(Event::TimerFired(TimerId::Age));
    assert!(bench.model.outside.needs().is_empty());
    // Only a turn that ends well shows that the account is accepted again.
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    let effects = bench.failed(Failure::Account, "Please run /login");
    assert_eq!(calls(&effects), (vec![NeedKind::TurnFailed], vec![]));
    let effects = bench.prompted(OLD, "go on");
    assert_eq!(calls(&effects), (vec![], vec![]));
    let effects = bench.turn_ended(OLD);
    assert_eq!(calls(&effects), (vec![], vec![NeedKind::TurnFailed]));
}

#[test]
fn a_full_window_and_an_end_are_called_each_as_what_it_is() {
    let mut bench = Bench::new();
    bench.model.reboot.mode = RebootMode::Manual;
    bench.prompted(OLD, "work");
    let effects = bench.failed(Failure::ContextLimit, "prompt is too long");
    assert_eq!(calls(&effects), (vec![NeedKind::ContextRefused], vec![]));
    let effects = bench.exited(1);
    assert_eq!(
        calls(&effects),
        (vec![NeedKind::AgentEnded], vec![NeedKind::ContextRefused])
    );
}

fn permission(tool: &str, by_subagent: bool) -> PermissionRequest {
    PermissionRequest {
        session: session(OLD),
        tool: tool.to_owned(),
        input: "cargo test".to_owned(),
        whole: true,
        is_plain: tool != "AskUserQuestion",
        by_subagent,
    }
}

/// A turn whose tool asks for a permission; the hook waits where there is a call.
fn asked(call: Option<u64>, request: PermissionRequest) -> (Bench, Vec<Effect>) {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    let (call, request) = (call.map(CallId), Box::new(request));
    let effects = bench.send(Event::PermissionAsked { call, request });
    (bench, effects)
}

fn answers(effects: &[Effect]) -> Vec<(u64, Reply)> {
    all!(effects, Effect::Answer(CallId(call), reply) => (*call, reply.clone()))
}

fn decides(bench: &mut Bench, answer: PermissionAnswer) -> Vec<(u64, Reply)> {
    let id = bench
        .model
        .outside
        .needs()
        .first()
        .map_or(99, |need| need.id);
    let body = PermissionBody { id, answer };
    let order = Box::new(Control::Permission(body));
    let effects = bench.control(Control::From("Pixel".to_owned(), order));
    answers(&effects)
}

#[test]
fn a_permission_is_answered_from_afar_once_and_by_whom_is_logged() {
    for (answer, word) in [
        (PermissionAnswer::Allow, "allowed"),
        (PermissionAnswer::Deny, "denied"),
    ] {
        let (mut bench, effects) = asked(Some(5), permission("Bash", false));
        assert_eq!(calls(&effects), (vec![NeedKind::Permission], vec![]));
        assert_eq!(answers(&effects), [], "it is held");
        let need = bench.model.outside.needs()[0].clone();
        assert!(need.answerable && !need.why.contains("cargo"), "{need:?}");
        let shown = report::permission(&bench.model).expect("a permission");
        assert_eq!((shown.id, shown.input.as_str()), (need.id, "cargo test"));
        // The client's notification of the same question changes nothing.
        bench.wait(Duration::from_secs(6));
        let effects = bench.asks("Claude needs your permission to use Bash");
        assert_eq!(
            (calls(&effects), answers(&effects)),
            ((vec![], vec![]), vec![])
        );

        let answered = decides(&mut bench, answer);
        assert!(
            answered.contains(&(5, Reply::Decided(answer))),
            "{answered:?}"
        );
        assert_eq!(bench.model.session.agent.state, AgentState::Busy);
        assert_eq!(bench.model.outside.needs(), []);
        let log: Vec<_> = bench
            .model
            .view
            .log
            .iter()
            .map(|one| one.text.clone())
            .collect();
        assert!(
            log.iter()
                .any(|line| line.contains("permission from Pixel")),
            "{log:?}"
        );
        assert!(log.iter().any(|line| line.contains(word)), "{log:?}");
        assert!(matches!(
            decides(&mut bench, answer)[..],
            [(1, Reply::Refused { .. })]
        ));
    }
}

#[test]
fn a_permission_that_is_answered_at_the_desk_lets_its_hook_go() {
    let (mut bench, _) = asked(Some(5), permission("Bash", false));
    let effects = bench.prompted(OLD, "never mind");
    assert_eq!(answers(&effects), [(5, Reply::Accepted)]);
    assert!(matches!(
        decides(&mut bench, PermissionAnswer::Allow)[..],
        [(1, Reply::Refused { .. })]
    ));

    let (mut bench, _) = asked(Some(5), permission("Bash", false));
    bench.send(Event::HookGone(CallId(5)));
    let refused = decides(&mut bench, PermissionAnswer::Allow);
    assert!(
        matches!(refused[..], [(1, Reply::Refused { .. })]),
        "{refused:?}"
    );
}

#[test]
fn what_is_more_than_yes_or_no_and_what_a_subagent_asks_is_not_held() {
    for request in [
        permission("AskUserQuestion", false),
        permission("Bash", true),
    ] {
        let (mut bench, effects) = asked(Some(5), request);
        assert_eq!(calls(&effects).0, [NeedKind::Permission]);
        assert_eq!(answers(&effects), [(5, Reply::Accepted)]);
        assert!(!bench.model.outside.needs()[0].answerable);
        let refused = decides(&mut bench, PermissionAnswer::Allow);
        assert!(matches!(refused[..], [(1, Reply::Refused { .. })]));
    }
}

#[test]
fn a_handoff_is_approved_from_afar_as_it_was_read_or_with_an_edit() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.turn_ended(OLD);
    bench.review();
    assert_eq!(bench.step(), Some(Step::Review));
    let approve = |bench: &mut Bench, handoff: Option<&str>, revision: Option<String>| {
        let body = ApproveBody {
            handoff: handoff.map(str::to_owned),
            revision,
            ..ApproveBody::default()
        };
        let order = Box::new(Control::ApproveAs(body));
        answers(&bench.control(Control::From("Pixel".to_owned(), order)))
    };
    let refused = approve(&mut bench, None, Some("0".to_owned()));
    assert!(
        matches!(refused[..], [(1, Reply::Refused { .. })]),
        "{refused:?}"
    );
    let shown = report::handoff(&bench.model).revision;
    let done = approve(&mut bench, Some("# Mine\n\ndo this"), Some(shown));
    assert!(matches!(done[..], [(1, Reply::Ordered(_))]), "{done:?}");
    let attempt = bench.model.reboot.attempt.as_ref().expect("a reboot");
    assert_eq!(attempt.approved_from.as_deref(), Some("Pixel"));
    let sent = &attempt.handoff.as_ref().expect("a message").text;
    assert!(
        sent.contains("# Mine") && sent.ends_with("do this"),
        "{sent}"
    );
}

#[test]
fn a_question_of_the_agents_is_named_as_one() {
    for (tool, input, what, why) in [
        (
            "AskUserQuestion",
            r#"{"questions":[{"question":"Which\ncolour?"}]}"#,
            "The agent asks you a question",
            "Which colour?",
        ),
        (
            "AskUserQuestion",
            "{\"questions\":[{\"quest…",
            "The agent asks you a question",
            "AskUserQuestion",
        ),
        (
            "ExitPlanMode",
            "{}",
            "The agent asks you to approve its plan",
            "ExitPlanMode",
        ),
        ("Bash", "make", "The agent asks for a permission", "Bash"),
    ] {
        let request = PermissionRequest {
            input: input.to_owned(),
            ..permission(tool, false)
        };
        let (bench, _) = asked(None, request);
        let needs = crate::app::report::status(&bench.model).needs;
        let said: Vec<_> = needs.iter().map(|one| (&*one.what, &*one.why)).collect();
        assert_eq!(said, [(what, why)], "{tool}");
    }
}

#[test]
fn an_edit_from_afar_is_compared_with_the_text_that_was_edited() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.turn_ended(OLD);
    bench.review();
    let base = bench.model.draft.handoff.editable().to_owned();
    let text = format!("{base}\nmine");
    // The draft goes on while the person types.
    let notes = Some("- [ ] next\n- [ ] more\n".to_owned());
    bench.send(Event::Read(ReadEvent::Scratchpad(notes)));
    assert_ne!(bench.model.draft.handoff.editable(), base);
    let body = ApproveBody {
        handoff: Some(text.clone()),
        base: Some(base.clone()),
        revision: Some(report::handoff(&bench.model).revision),
    };
    let order = Box::new(Control::ApproveAs(body));
    bench.control(Control::From("Pixel".to_owned(), order));
    let mut edits = pitstop_handoff::edits::Edits::default();
    edits.take_in(&base, &text);
    assert_eq!(bench.model.draft.handoff.edits, edits);
}

#[test]
fn what_a_person_is_needed_for_is_reported_as_soon_as_it_changes() {
    let heard = |bench: &mut Bench, event| {
        let before = ModelSnapshot::of(&bench.model);
        let effects = bench.send(event);
        before.events(&bench.model, &effects)
    };
    // The end of a usage limit, which changes nothing else.
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.model.session.agent.limit_reset = Some(bench.at().wall + Duration::from_secs(600));
    bench.failed(Failure::UsageLimit, "limit reached");
    assert_eq!(heard(&mut bench, Event::TimerFired(TimerId::Age)), []);
    bench.asleep += Duration::from_secs(600);
    let events = heard(&mut bench, Event::TimerFired(TimerId::LimitOver));
    let kinds: Vec<_> = events.iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [ApiEventKind::Needs]);
    assert_eq!(events[0].data["needs"][0]["kind"], "limit_over");
    // A permission whose hook has gone can be answered at the desk only.
    let (mut bench, _) = asked(Some(5), permission("Bash", false));
    let events = heard(&mut bench, Event::HookGone(CallId(5)));
    let needs = events.iter().find(|one| one.kind == ApiEventKind::Needs);
    assert_eq!(needs.unwrap().data["needs"][0]["answerable"], false);
    // What is settled.
    let events = heard(
        &mut bench,
        Event::Agent(pitstop_agent::AgentEvent::PromptSubmitted {
            session: session(OLD),
            prompt: "never mind".to_owned(),
            transcript_path: None,
        }),
    );
    let needs = events.iter().find(|one| one.kind == ApiEventKind::Needs);
    assert_eq!(needs.unwrap().data["needs"], serde_json::json!([]));
}
