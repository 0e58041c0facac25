//! A reboot in place: the handoff takes the place of the conversation inside the running client.

use crate::{
    app::{
        event::{BridgeEvent, TranscriptFacts},
        reboot::{blocked_by, in_place},
        report,
    },
    config::RebootWay,
    lineage::{
        TokenTotals,
        journal::{Evidence, Marker as Told, Recovery, recover},
    },
};
use pitstop_agent::bridge::{
    BridgeOrder, Category, CategoryKind, Fact, OrderId, Outcome, ReplaceWhen, Said, UnsentPrompt,
    Usage,
};

use super::*;

/// The order to replace the conversation, if it was given: its number, the text, and when it is to be done.
pub(super) fn replaces(effects: &[Effect]) -> Option<(OrderId, String, ReplaceWhen)> {
    first!(effects, Effect::OrderBridge {
        id,
        order: BridgeOrder::ReplaceConversation { text, when, .. },
        ..
    } => (*id, text.clone(), *when))
}

/// The order to read the prompt box, if it was given.
pub(super) fn reads_draft(effects: &[Effect]) -> Option<OrderId> {
    first!(effects, Effect::OrderBridge { id, order: BridgeOrder::ReadDraft, .. } => *id)
}

pub(super) fn continued(effects: &[Effect]) -> Option<u64> {
    first!(effects, Effect::ContinuePane(iteration) => iteration.get())
}

impl Bench {
    /// A session with the bridge in force and a figure, whose review stands at the way in place.
    fn reviewed_in_place(&mut self) {
        self.used(155_000);
        self.review();
        self.press(KeyCode::Char('w'));
        assert!(in_place::is_chosen(&self.model));
    }

    /// Three lines stand in the prompt box, and bridge and screen say so.
    fn half_written(&mut self) -> UnsentPrompt {
        let draft = UnsentPrompt {
            text: "half\na\nthought".into(),
            cursor: 3,
        };
        self.drafts(&draft.text, draft.cursor);
        self.prompt_box(holds(&draft.text));
        draft
    }

    /// Goes as far as the order; its number, and the text.
    fn replacing(&mut self) -> (OrderId, String) {
        self.reviewed_in_place();
        let effects = self.press(KeyCode::Enter);
        assert_eq!(signals(&effects), [], "the agent is not ended");
        let (id, text, when) = replaces(&effects).expect("the order is given");
        assert_eq!(when, ReplaceWhen::Idle);
        (id, text)
    }

    /// The client has the text.
    fn handed_out(&mut self) -> OrderId {
        let (id, _) = self.replacing();
        self.bridge_says(OLD, Said::HandedOut(id));
        assert_eq!(self.step(), Some(Step::Delivering));
        assert_eq!(self.model.session.iteration().get(), 1, "no sign of it yet");
        id
    }

    pub(super) fn compacted(&mut self) -> Vec<Effect> {
        self.send(Event::Agent(AgentEvent::Compacted {
            session: session(OLD),
        }))
    }

    /// The turn behind the handoff begins.
    fn gone_on(&mut self) -> Vec<Effect> {
        self.prompted(OLD, "/pitstop:go 00000002")
    }

    pub(super) fn answered(&mut self, id: OrderId, outcome: Outcome) -> Vec<Effect> {
        self.bridge_says(OLD, Said::Answered(id, outcome))
    }

    pub(super) fn unanswered(&mut self, id: OrderId) -> Vec<Effect> {
        let cancelled = |was_taken| Event::Bridge(BridgeEvent::Cancelled { id, was_taken });
        self.send(Event::TimerFired(TimerId::Order(id)));
        self.send(cancelled(true));
        self.send(Event::TimerFired(TimerId::Order(id)));
        self.send(cancelled(true))
    }

    pub(super) fn notice(&self) -> &str {
        let last = self.model.view.notices.back();
        last.map_or("", |notice| &notice.text)
    }

    pub(super) fn boundaries(&mut self, compactions: u64) -> Vec<Effect> {
        self.facts_read(TranscriptFacts {
            compactions,
            whole: true,
            ..Default::default()
        })
    }
}

#[test]
fn the_conversation_is_replaced_inside_the_running_client() {
    let mut bench = Bench::bridged();
    bench.boundaries(3);
    let (id, text) = bench.replacing();
    let shown = bench.model.draft.handoff.current().text.clone();
    assert_eq!(text, shown, "what was reviewed is what is handed out");
    let process = bench.model.session.agent.process.clone();
    bench.bridge_says(OLD, Said::HandedOut(id));
    let effects = bench.compacted();
    assert_eq!(continued(&effects), Some(2));
    assert_eq!(starts(&effects), []);
    assert!(has!(effects, Effect::SaveHandoff { iteration, .. } if iteration.get() == 2));
    assert_eq!(bench.step(), Some(Step::Verifying));
    bench.spawned(3);
    bench.resumed(OLD);
    bench.boundaries(4);
    // A status line that was on its way.
    bench.used(155_000);
    assert_eq!(bench.model.used(), None);
    bench.gone_on();
    assert_eq!(bench.step(), None);
    bench.used(155_000);
    assert_eq!(bench.model.used(), None);
    bench.used(21_000);
    bench.answered(id, Outcome::Replaced { begun: true });
    bench.is_done_without(&[Step::Ending, Step::Starting, Step::Warming]);
    let model = &bench.model;
    assert_eq!(model.session.id, session(OLD));
    assert_eq!(
        (model.session.iteration().get(), model.session.pane().get()),
        (2, 1)
    );
    assert_eq!(model.session.agent.process, process);
    assert_eq!(model.session.agent.turns, 0);
    assert_eq!(bench.state(), AgentState::Busy);
    assert_eq!(model.session.compactions.count(), 0, "it is our own");
    let iterations = model.lineage.iterations();
    assert_eq!(iterations[0].end_reason, Some(EndReason::ContextLimit));
    assert_eq!(iterations[0].tokens_at_end, Some(Tokens(155_000)));
    let record = iterations[1].reboot.as_ref().unwrap();
    assert_eq!((record.way, record.verified), (Way::InPlace, true));
    assert_eq!(record.nonce.as_deref(), Some("00000002"));
    assert_eq!(record.old_session, record.new_session);
    assert_eq!(iterations[1].tokens_at_birth, Some(Tokens(21_000)));
    assert_eq!(model.reboot.new_ids.nonce, "00000003", "for the next one");
}

#[test]
fn each_sign_serves_and_the_bridge_lives_on_with_its_process() {
    let signs: [fn(&mut Bench, OrderId) -> Vec<Effect>; 5] = [
        |bench, _| bench.compacted(),
        |bench, _| bench.gone_on(),
        |bench, id| bench.answered(id, Outcome::Replaced { begun: true }),
        |bench, _| bench.boundaries(1),
        |bench, _| {
            let source = "compact".to_owned();
            bench.bridge_says(OLD, Said::Fact(Fact::SessionStarted { source }))
        },
    ];
    for sign in signs {
        let mut bench = Bench::bridged();
        bench.boundaries(0);
        let id = bench.handed_out();
        let effects = sign(&mut bench, id);
        assert_eq!(continued(&effects), Some(2), "{effects:?}");
        bench.gone_on();
        assert_eq!(bench.step(), None);
        assert!(bench.model.session.agent.bridge.of(session(OLD)).is_some());
        // Its watch is of the process, and so is the word of its end.
        let iteration = bench.model.session.pane();
        let again = bench.send(Event::TimerFired(TimerId::Bridge(iteration)));
        assert!(
            matches!(again[0], Effect::SetTimer(TimerId::Bridge(_), _)),
            "{again:?}"
        );
        bench.exited(0);
        assert_eq!(bench.state(), AgentState::Exited);
        assert!(!bench.model.lineage.iterations()[1].is_open());
    }
}

#[test]
fn the_draft_and_what_runs_in_the_background_do_not_hold_it_up() {
    let mut bench = Bench::bridged();
    let draft = bench.half_written();
    bench.prompted(OLD, "work");
    bench.left(OLD, None, in_background(&["a"]));
    bench.used(155_000);
    bench.review();
    assert_eq!(blocked_by(&bench.model), [Block::Background]);
    bench.press(KeyCode::Char('w'));
    assert_eq!(blocked_by(&bench.model), []);
    let effects = bench.press(KeyCode::Enter);
    let (id, ..) = replaces(&effects).expect("the order is given");
    assert_eq!(kept(&effects), [Some(draft.text.clone())]);
    bench.bridge_says(OLD, Said::HandedOut(id));
    bench.compacted();
    let reported = &bench.model.session.agent.bridge.reported;
    assert_eq!(reported.draft, Some(draft));
    assert_eq!(bench.model.reboot.unsent, None);
    assert!(!bench.model.session.agent.background.is_empty());
}

#[test]
fn a_draft_is_on_disk_before_the_order_and_stands_in_the_session_that_is_resumed() {
    for cleared in [false, true] {
        let mut bench = Bench::bridged();
        let draft = bench.half_written();
        bench.draft_answers = false;
        bench.reviewed_in_place();
        let effects = bench.press(KeyCode::Enter);
        assert_eq!(kept(&effects), [Some(draft.text.clone())]);
        assert_eq!(replaces(&effects), None);
        let on_disk = Event::Read(ReadEvent::DraftKept(Some(draft.text.clone())));
        let effects = bench.send(on_disk);
        let (id, ..) = replaces(&effects).expect("the order is given");
        bench.bridge_says(OLD, Said::HandedOut(id));
        if cleared {
            bench.prompt_box(PromptBox::Empty);
        }
        let effects = bench.exited(1);
        assert_eq!(starts(&effects)[0].session, session(OLD));
        assert_eq!(kept(&effects), if cleared { vec![None] } else { vec![] });
        let waits = bench.model.reboot.unsent.as_ref();
        let waits = waits.map(|waiting| waiting.text.clone());
        assert_eq!(waits, (!cleared).then_some(draft.text));
    }
}

#[test]
fn a_draft_is_kept_until_the_end_of_its_reboot_is_on_disk() {
    let mut bench = Bench::bridged();
    let text = "half a thought".to_owned();
    bench.drafts(&text, 3);
    bench.prompt_box(holds(&text));
    bench.handed_out();
    bench.compacted();
    bench.spawned(3);
    bench.journal_answers = false;
    let effects = bench.gone_on();
    assert_eq!((bench.step(), kept(&effects)), (None, vec![]));
    assert_eq!(bench.entries.last().unwrap().step, Step::Done);
    assert_eq!(kept(&bench.last_is_on_disk()), [None]);
}

#[test]
fn no_order_is_given_before_its_step_is_on_disk() {
    let mut bench = Bench::bridged();
    bench.reviewed_in_place();
    bench.journal_answers = false;
    let mut effects = bench.press(KeyCode::Enter);
    loop {
        let step = bench.entries.last().unwrap().step;
        assert_eq!(replaces(&effects), None, "{step}");
        effects = bench.last_is_on_disk();
        if step == Step::Delivering {
            break;
        }
    }
    assert!(replaces(&effects).is_some());
}

/// Whatever was written last when both were killed: the handoff is in the transcript and its session is resumed, or it is not
/// there and is given to no one.
#[test]
fn killed_at_each_step_its_handoff_is_there_once_or_not_at_all() {
    let mut bench = Bench::bridged();
    bench.handed_out();
    bench.compacted();
    bench.spawned(3);
    bench.gone_on();
    assert_eq!(bench.entries.last().unwrap().step, Step::Done);
    let old = Some(session(OLD));
    for entry in &bench.entries {
        let step = entry.step;
        let approved = !matches!(step, Step::Armed | Step::Drafting | Step::Review);
        if approved {
            assert_eq!((entry.old_session, entry.new_session), (old, old), "{step}");
        }
        for marker in [Told::Seen, Told::Absent, Told::NoTranscript, Told::Unknown] {
            let evidence = Evidence {
                old_resumable: true,
                marker,
            };
            let found = recover(entry, evidence).recovery;
            let session = session(OLD);
            let expected = match (step, marker) {
                (Step::Done, _) => Recovery::Nothing,
                (_, Told::Seen) if approved => Recovery::FinishResume { session },
                // Before the approval nothing can have been handed out.
                (_, Told::Seen) => continue,
                _ => Recovery::RollBack { resume: old },
            };
            assert_eq!(found, expected, "{step} {marker:?}");
        }
    }
}

#[test]
fn what_is_refused_has_changed_nothing() {
    for why in ["a dialog is open", "Compaction canceled"] {
        let mut bench = Bench::bridged();
        let id = bench.handed_out();
        bench.answered(id, Outcome::Failed(why.to_owned()));
        assert_eq!(bench.step(), None);
        assert!(bench.notice().contains("nothing was changed"));
        assert!(bench.notice().contains(why), "{}", bench.notice());
        assert_eq!(bench.model.session.iteration().get(), 1);
        assert_eq!(bench.state(), AgentState::Idle);
        assert_eq!(bench.journaled.last(), Some(&Step::Failed));
        // What the client does by itself after that is its own.
        assert_eq!(continued(&bench.compacted()), None);
        assert_eq!(bench.model.session.compactions.count(), 1);
    }
}

#[test]
fn a_turn_that_begins_while_the_order_is_on_its_way_is_waited_for() {
    let mut bench = Bench::bridged();
    let (id, _) = bench.replacing();
    let effects = bench.answered(id, Outcome::Failed("a turn runs".to_owned()));
    assert_eq!(replaces(&effects), None);
    assert_eq!(
        (bench.step(), bench.state()),
        (Some(Step::Waiting), AgentState::Busy)
    );
    let effects = bench.turn_ended(OLD);
    let given = replaces(&effects).or_else(|| replaces(&bench.ready()));
    assert!(given.is_some(), "{:?}", bench.step());
}

#[test]
fn a_conversation_that_the_client_has_summarized_itself_is_no_reboot() {
    let mut bench = Bench::bridged();
    let (id, _) = bench.replacing();
    bench.compacted();
    let effects = bench.answered(id, Outcome::Replaced { begun: true });
    assert_eq!((continued(&effects), bench.step()), (None, None));
    assert!(bench.notice().contains("summarized"), "{}", bench.notice());
    bench.gone_on();
    assert_eq!(bench.model.session.iteration().get(), 1);
    assert_eq!(
        bench.model.session.compactions.count(),
        1,
        "it is the client's"
    );
    assert_eq!(bench.journaled.last(), Some(&Step::Failed));
}

#[test]
fn a_running_turn_is_waited_for_and_a_second_approval_interrupts_it() {
    let mut bench = Bench::bridged();
    bench.prompted(OLD, "work");
    bench.reviewed_in_place();
    let effects = bench.press(KeyCode::Enter);
    assert_eq!(replaces(&effects), None);
    assert_eq!(bench.step(), Some(Step::Waiting));
    bench.press(KeyCode::F(5));
    let effects = bench.press(KeyCode::Enter);
    let (_, _, when) = replaces(&effects).expect("the order is given");
    assert_eq!(when, ReplaceWhen::Interrupting);
    assert!(!effects.contains(&Effect::Type(b"\x1b".to_vec())));
}

#[test]
fn an_order_that_is_not_taken_has_changed_nothing() {
    let mut bench = Bench::bridged();
    let (id, _) = bench.replacing();
    let was_taken = false;
    bench.send(Event::Bridge(BridgeEvent::Cancelled { id, was_taken }));
    assert_eq!(bench.step(), None);
    assert!(bench.notice().contains("nothing was changed"));
}

#[test]
fn an_order_without_an_answer_is_revoked_or_its_proof_awaited() {
    for in_time in [true, false] {
        let mut bench = Bench::bridged();
        let (id, _) = bench.replacing();
        let effects = bench.unanswered(id);
        assert!(effects.contains(&Effect::RevokeOrder(id)), "{effects:?}");
        let effects = bench.send(Event::Bridge(BridgeEvent::Revoked { id, in_time }));
        if in_time {
            assert_eq!(bench.step(), None);
            assert!(bench.notice().contains("nothing was changed"));
            continue;
        }
        let timer = first!(effects, Effect::SetTimer(id @ TimerId::Verify(_), _) => *id);
        bench.wait(Duration::from_secs(20));
        bench.send(Event::TimerFired(timer.expect("the proof has its time")));
        assert!(bench.notice().contains("not confirmed"));
        assert_eq!(bench.step(), Some(Step::Delivering));
        bench.gone_on();
        assert_eq!(bench.step(), None, "a late proof counts");
        assert_eq!(bench.model.session.iteration().get(), 2);
    }
}

#[test]
fn an_answer_that_is_lost_is_not_missed() {
    let mut bench = Bench::bridged();
    let id = bench.handed_out();
    let effects = bench.unanswered(id);
    assert!(!effects.contains(&Effect::RevokeOrder(id)));
    bench.gone_on();
    assert_eq!(
        (bench.step(), bench.model.session.iteration().get()),
        (None, 2)
    );
}

#[test]
fn an_agent_that_dies_is_resumed_in_its_session() {
    for handed_out in [false, true] {
        let mut bench = Bench::bridged();
        if handed_out {
            bench.handed_out();
        } else {
            bench.replacing();
        }
        let start = starts(&bench.exited(1)).remove(0);
        assert_eq!(
            (start.session, start.resume, start.prompt),
            (session(OLD), true, None)
        );
        bench.spawned(3);
        bench.resumed(OLD);
        assert_eq!(bench.step(), None);
        assert_eq!(bench.model.session.pane().get(), 2);
        assert!(bench.notice().contains("as the client left it"));
    }
}

#[test]
fn an_agent_that_dies_behind_the_replacement_is_resumed_with_its_record() {
    let mut bench = Bench::bridged();
    bench.handed_out();
    bench.compacted();
    bench.spawned(3);
    let effects = bench.exited(1);
    assert_eq!(starts(&effects)[0].session, session(OLD));
    let iterations = bench.model.lineage.iterations();
    let record = iterations[1].reboot.as_ref().expect("it was replaced");
    assert_eq!((record.way, record.verified), (Way::InPlace, false));
    assert_eq!(iterations[1].end_reason, Some(EndReason::Crash));
}

#[test]
fn an_agent_that_dies_behind_the_proof_is_resumed_too() {
    let mut bench = Bench::bridged();
    bench.handed_out();
    bench.journal_answers = false;
    bench.compacted();
    bench.spawned(3);
    bench.gone_on();
    // The step is not on disk yet.
    bench.exited(1);
    bench.last_is_on_disk();
    let effects = bench.last_is_on_disk();
    assert_eq!(starts(&effects)[0].session, session(OLD));
    let iterations = bench.model.lineage.iterations();
    let record = iterations[1].reboot.as_ref().expect("it was replaced");
    assert_eq!(record.way, Way::InPlace);
    assert_eq!(iterations[1].end_reason, Some(EndReason::Crash));
}

#[test]
fn without_the_bridge_it_is_refused_with_the_reason() {
    let mut bench = Bench::new();
    let effects = bench.control(Control::RebootBy(Way::InPlace));
    assert!(
        matches!(&effects[0], Effect::Answer(_, Reply::Refused { why }) if why.contains("bridge")),
        "{effects:?}"
    );
    assert_eq!(bench.step(), None);
    // In the review it has no place in the round.
    bench.press(KeyCode::F(5));
    bench.press(KeyCode::Char('w'));
    assert!(!in_place::is_chosen(&bench.model));
}

#[test]
fn a_preference_for_it_gives_way_to_a_fresh_session_and_says_why() {
    let mut bench = Bench::new();
    bench.model.config.reboot.way = RebootWay::InPlace;
    bench.press(KeyCode::F(5));
    assert!(!in_place::is_chosen(&bench.model));
    assert!(bench.notice().contains("a fresh session instead"));

    let mut bench = Bench::bridged();
    bench.model.config.reboot.way = RebootWay::InPlace;
    bench.press(KeyCode::F(5));
    assert!(in_place::is_chosen(&bench.model));
    // The round: in place, trim, fresh.
    let kind = |bench: &Bench| bench.model.reboot.attempt.as_ref().unwrap().kind;
    bench.press(KeyCode::Char('w'));
    assert_eq!(kind(&bench), Kind::Trim);
    bench.press(KeyCode::Char('w'));
    assert_eq!(kind(&bench), Kind::Fresh);
    bench.press(KeyCode::Char('t'));
    assert_eq!(kind(&bench), Kind::Trim);
    bench.press(KeyCode::Char('t'));
    assert_eq!(kind(&bench), Kind::Fresh);
}

#[test]
fn an_automatic_one_that_the_client_refuses_takes_a_fresh_session() {
    let mut bench = Bench::bridged();
    bench.model.config.reboot.way = RebootWay::InPlace;
    bench.model.config.reboot.auto_delay = Duration::ZERO;
    bench.model.reboot.mode = RebootMode::Auto;
    bench.prompted(OLD, "work");
    bench.turn_ended(OLD);
    let mut effects = bench.used(155_000);
    effects.extend(bench.git());
    let (id, ..) = replaces(&effects).expect("the order is given");
    let why = "compaction is disabled".to_owned();
    let effects = bench.answered(id, Outcome::Failed(why));
    assert!(bench.notice().contains("a fresh session instead"));
    let effects = bench.read_draft(&effects);
    assert_eq!(signals(&effects), [StopSignal::Exit]);
}

impl Bench {
    /// A reboot in place is done.
    fn replaced() -> Self {
        let mut bench = Self::bridged();
        bench.handed_out();
        bench.compacted();
        bench.spawned(3);
        bench.gone_on();
        bench.turn_ended(OLD);
        assert_eq!(bench.step(), None);
        bench
    }

    /// The client's side reads an empty prompt box.
    fn read_draft(&mut self, effects: &[Effect]) -> Vec<Effect> {
        let read = reads_draft(effects).expect("the prompt box is read");
        self.answered(read, Outcome::Draft(UnsentPrompt::default()))
    }
}

#[test]
fn an_undo_resumes_a_copy_of_the_conversation_before() {
    let mut bench = Bench::replaced();
    let effects = bench.control(Control::Undo);
    let made = bench.prepared.last().and_then(|one| one.copy.clone());
    let copy = made.expect("the copy is made before the agent is ended");
    assert_eq!((copy.from, copy.nonce.as_str()), (session(OLD), "00000002"));
    let effects = bench.read_draft(&effects);
    assert_eq!(signals(&effects), [StopSignal::Exit]);
    let start = starts(&bench.exited(0)).remove(0);
    assert_eq!((start.session, start.resume), (copy.to, true));
    assert_ne!(copy.to, bench.model.reboot.new_ids.session);
    let iterations = bench.model.lineage.iterations();
    assert_eq!(iterations[2].parent, Some(iterations[0].iteration));
    assert_eq!(bench.model.session.pane(), iterations[2].iteration);
}

#[test]
fn an_undone_conversation_above_the_client_s_trigger_is_not_compacted_at_its_next_prompt() {
    // The replaced one has ended at 155 000 tokens.
    for (trigger, lifted) in [(150_000, true), (190_000, false)] {
        let mut bench = Bench::replaced();
        bench.bridge_says(
            OLD,
            Said::Fact(Fact::Usage(Usage {
                used: Some(Tokens(20_000)),
                window: Tokens(200_000),
                compacts_at: Some(Tokens(trigger)),
                categories: vec![Category {
                    name: "Messages".into(),
                    tokens: Tokens(1),
                    kind: CategoryKind::Used,
                    parts: vec![],
                }],
                ..Usage::default()
            })),
        );
        let effects = bench.control(Control::Undo);
        bench.read_draft(&effects);
        bench.exited(0);
        assert_eq!(bench.model.session.agent.holds_compaction, lifted);
    }
}

#[test]
fn an_undo_whose_copy_cannot_be_made_leaves_the_agent_alone() {
    let mut bench = Bench::replaced();
    bench.missing = Some("no such handoff".to_owned());
    let effects = bench.control(Control::Undo);
    assert_eq!(signals(&effects), []);
    assert_eq!((bench.step(), bench.state()), (None, AgentState::Idle));
    assert!(bench.notice().contains("no such handoff"));
}

#[test]
fn the_history_brings_back_a_conversation_that_was_replaced() {
    let mut bench = Bench::replaced();
    bench.press(KeyCode::F(6));
    bench.press(KeyCode::Char('R'));
    assert!(bench.notice().contains("the present session"));
    bench.press(KeyCode::Down);
    bench.press(KeyCode::Char('R'));
    let made = bench.prepared.last().and_then(|one| one.copy.clone());
    assert_eq!(made.map(|copy| copy.from), Some(session(OLD)));
}

#[test]
fn where_the_client_begins_no_turn_behind_the_handoff_its_command_is_typed() {
    for writes in [false, true] {
        let mut bench = Bench::bridged();
        let (id, _) = bench.replacing();
        bench.bridge_says(OLD, Said::HandedOut(id));
        bench.compacted();
        let draft = if writes {
            holds("half")
        } else {
            PromptBox::Empty
        };
        bench.prompt_box(draft);
        let effects = bench.answered(id, Outcome::Replaced { begun: false });
        let command = "/pitstop:go 00000002".to_owned();
        let typed = effects.contains(&Effect::Paste(vec![command]));
        assert_eq!(typed, !writes, "{effects:?}");
        assert_eq!(
            writes,
            bench.notice().contains("waits for a prompt of yours")
        );
    }
}

/// The transcript has so many tokens in, and so many of them before so many boundaries.
fn counted(bench: &mut Bench, input: u64, (compactions, before): (u64, u64)) {
    let tokens = |input| TokenTotals {
        input: Tokens(input),
        output: Tokens(input / 100),
    };
    bench.facts_read(TranscriptFacts {
        totals: tokens(input),
        before_compaction: tokens(before),
        compactions,
        whole: true,
        ..Default::default()
    });
}

#[test]
fn a_call_that_is_read_behind_the_sign_is_the_iteration_s_that_made_it() {
    // What is read between the sign and the first call behind the boundary, as far as each read comes.
    let reads: [&[(u64, (u64, u64))]; 4] = [
        &[(1_500, (1, 1_500))],
        &[(1_500, (0, 0)), (1_500, (1, 1_500))],
        &[(1_500, (0, 0)), (1_700, (1, 1_500))],
        &[(1_000, (0, 0)), (1_700, (1, 1_500))],
    ];
    for by_hook in [true, false] {
        for read in reads {
            let mut bench = Bench::bridged();
            counted(&mut bench, 1_000, (0, 0));
            bench.handed_out();
            if by_hook {
                bench.compacted();
            }
            for (input, boundary) in read {
                counted(&mut bench, *input, *boundary);
            }
            counted(&mut bench, 1_800, (1, 1_500));
            let iterations = report::history(&bench.model).iterations;
            let input: Vec<_> = iterations.iter().map(|one| one.tokens.input).collect();
            assert_eq!(input, [Some(1_500), Some(300)], "{by_hook} {read:?}");
            let kept = &bench.model.lineage.iterations()[0].tokens;
            assert_eq!((kept.input, kept.output), (Tokens(1_500), Tokens(15)));
        }
    }
}

#[test]
fn the_base_load_is_the_first_call_s_however_late_it_is_read() {
    let read = |bench: &mut Bench, used, first, compactions| {
        bench.facts_read(TranscriptFacts {
            used: Some(Tokens(used)),
            first_used: Some(Tokens(first)),
            old_turns: Some(0),
            compactions,
            whole: true,
            ..Default::default()
        });
    };
    let mut bench = Bench::bridged();
    bench.used(19_000);
    read(&mut bench, 20_000, 18_000, 0);
    bench.handed_out();
    // The boundary is not read yet.
    read(&mut bench, 155_000, 18_000, 0);
    bench.compacted();
    bench.gone_on();
    read(&mut bench, 25_000, 23_000, 1);
    // The client compacts by itself.
    read(&mut bench, 26_000, 24_000, 2);
    let iterations = bench.model.lineage.iterations();
    let loads: Vec<_> = iterations.iter().map(|one| one.tokens_at_birth).collect();
    assert_eq!(loads, [Some(Tokens(18_000)), Some(Tokens(23_000))]);
}
