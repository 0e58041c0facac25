//! The reports of scripts and the user's hooks: commits, test runs, and requests to save everything.

use crate::{
    api::wire::{CommitBody, NotedReply, Reply, Report, SaveBody, SaveReply, TestBody, UsageQuery},
    lineage::checkpoint::{AutoSave, restore_command},
};
use pitstop_base::{clock::At, format::percent};
use pitstop_handoff::{
    breakpoint::{
        commit::Made,
        test_run::{Total, quote_command},
    },
    preserved::ReportedRun,
};
use pitstop_transcript::Tokens;

use crate::app::{
    draft::{
        breakpoint::{MomentFacts, Observed, SAVES_A_MINUTE, TestRun},
        checkpoint::{self, SaveOrder},
    },
    event::CallId,
    model::{CarryOut, Model, draft::HandoffDraft, moments::SeenBy},
    outside::report,
};

/// Takes in the report of a program outside, and answers it.
pub fn reported(model: &mut Model, call: CallId, report: Report) {
    // A script may give any name: the name is kept with its report, which is filed under our own.
    let named = report.environment().map(quote_command);
    let named = named.filter(|named| !named.trim().is_empty());
    let (observed, noted) = match report {
        Report::Commit(body) => (Observed::Commit(made(&body)), commit_noted(&body)),
        Report::Tests(body) => {
            let run = model.draft.tests_run(body, model.now);
            let tests_passed = Some(run.total.passed);
            let noted = NotedReply {
                tests_passed,
                ..NotedReply::default()
            };
            (Observed::Tests(run), noted)
        }
        Report::AutoSave(_) if !model.draft.moments.may_save(model.now) => {
            let why = format!(
                "too many checkpoints: at most {SAVES_A_MINUTE} a minute are kept, try again later"
            );
            return model.answer(call, Reply::Refused { why });
        }
        Report::AutoSave(body) => {
            let order = auto_save(model, call, body, named);
            return checkpoint::save(model, order);
        }
    };
    let facts = MomentFacts::of(model);
    let (saved, follows) = model.draft.take_in(observed, &facts);
    follows.carry_out(model);
    let kept = saved.is_some_and(|saved| saved) && named.is_some();
    if let Some(one) = model.draft.moments.waiting.last_mut().filter(|_| kept) {
        one.about["environment"] = named.into();
    }
    let is_kept = saved.unwrap_or(true);
    let noted = NotedReply {
        status: if is_kept { "saved" } else { "recorded" }.to_owned(),
        known: saved.is_none(),
        session_id: Some(model.session.id.to_string()),
        ..noted
    };
    model.answer(call, Reply::Noted(noted));
}

fn made(body: &CommitBody) -> Made {
    let message = body.commit_message.as_deref().unwrap_or_default();
    let branch = body.branch.as_deref();
    Made::from_report(&body.commit_sha, branch, message, body.files_changed)
}

fn commit_noted(body: &CommitBody) -> NotedReply {
    let short = body.commit_sha.get(..8).unwrap_or(&body.commit_sha);
    NotedReply {
        commit: Some(short.to_owned()),
        ..NotedReply::default()
    }
}

impl HandoffDraft {
    /// Takes in a test run that a program outside reports, and returns it as it is observed.
    fn tests_run(&mut self, body: TestBody, now: At) -> TestRun {
        let total = Total {
            passed: body.passed,
            count: body.test_count,
            failed: body.failed_count,
        };
        let command = quote_command(body.test_command.as_deref().unwrap_or_default());
        let failing = body.failing_tests.unwrap_or_default();
        let run = ReportedRun {
            command: &command,
            runner: body.runner.as_deref(),
            directory: body.directory.as_deref(),
            passed: total.passed,
            failed: total.failed,
            failing: &failing,
            passing: body.passing_tests.as_deref().unwrap_or_default(),
        };
        let again = self.moments.is_known(SeenBy::Report, total, now);
        self.tests_reported(&run, again);
        TestRun {
            by: SeenBy::Report,
            total,
            command,
            seconds: body.duration_seconds,
            failing,
        }
    }
}

/// Returns the order to save everything with what the caller knows of the work, who is answered once it is kept.
fn auto_save(
    model: &Model,
    call: CallId,
    body: SaveBody,
    environment: Option<String>,
) -> SaveOrder {
    let said = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let known = AutoSave {
        environment,
        used_tokens: body.used_tokens,
        inferred_task: said(body.inferred_task),
        inferred_context: said(body.inferred_context),
    };
    let query = UsageQuery {
        used_tokens: known.used_tokens,
        max_tokens: None,
    };
    let usage = report::usage(model, query);
    let mut tags = vec![checkpoint::AUTO_SAVE.to_owned()];
    tags.extend(usage.used.map(|used| format!("tokens-{used}")));
    let full = usage
        .used
        .map(|used| model.session.guard.assess(Tokens(used)));
    let full = full.map_or_else(String::new, |now| {
        format!(", at {} % of the usable window", percent(now.percent))
    });
    let reply = SaveReply {
        status: "saved".to_owned(),
        checkpoint_id: String::new(),
        session_id: Some(model.session.id.to_string()),
        percent_at_save: usage.percent,
        restart_command: restore_command(&model.identity.environment),
        message: format!("everything is saved{full}"),
    };
    SaveOrder::Reported(call, tags, known, reply)
}
