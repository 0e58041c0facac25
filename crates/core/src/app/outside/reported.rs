//! The reports of scripts and the user's hooks: commits, test runs, and requests to save everything.

use crate::{
    api::wire::{CommitBody, NotedReply, Reply, Report, SaveBody, SaveReply, TestBody, UsageQuery},
    lineage::checkpoint::{AutoSave, restore_command},
};
use pitstop_base::format::percent;
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
        breakpoint::{self, Observed, SAVES_A_MINUTE, TestRun},
        checkpoint,
    },
    effect::Effect,
    event::CallId,
    model::{Model, moments::SeenBy},
    outside::report,
};

/// Takes in the report of a program outside, and answers it.
pub fn reported(model: &mut Model, call: CallId, report: Report) {
    // A script may give any name: the name is kept with its report, which is filed under our own.
    let named = report.environment().map(quote_command);
    let named = named.filter(|named| !named.trim().is_empty());
    let noted = match report {
        Report::Commit(body) => commit_reported(model, &body, named),
        Report::Tests(body) => tests_reported(model, &body, named),
        Report::AutoSave(body) => return auto_save(model, call, body, named),
    };
    model.answer(call, Reply::Noted(noted));
}

fn commit_reported(model: &mut Model, body: &CommitBody, named: Option<String>) -> NotedReply {
    let message = body.commit_message.as_deref().unwrap_or_default();
    let branch = body.branch.as_deref();
    let made = Made::from_report(&body.commit_sha, branch, message, body.files_changed);
    let saved = breakpoint::take_in(model, Observed::Commit(made));
    NotedReply {
        commit: body
            .commit_sha
            .get(..8)
            .or(Some(&body.commit_sha))
            .map(str::to_owned),
        ..noted_reply(model, saved, named)
    }
}

fn tests_reported(model: &mut Model, body: &TestBody, named: Option<String>) -> NotedReply {
    let total = Total {
        passed: body.passed,
        count: body.test_count,
        failed: body.failed_count,
    };
    let command = quote_command(body.test_command.as_deref().unwrap_or_default());
    let failing = body.failing_tests.as_deref().unwrap_or_default();
    let passing = body.passing_tests.as_deref().unwrap_or_default();
    let again = model
        .draft
        .moments
        .is_known(SeenBy::Report, total, model.now);
    let run = ReportedRun {
        command: &command,
        runner: body.runner.as_deref(),
        directory: body.directory.as_deref(),
        passed: total.passed,
        failed: total.failed,
        failing,
        passing,
    };
    model.draft.tests_reported(&run, again);
    let run = TestRun {
        by: SeenBy::Report,
        total,
        seconds: body.duration_seconds,
        failing: failing.to_vec(),
        command,
    };
    let saved = breakpoint::take_in(model, Observed::Tests(run));
    NotedReply {
        tests_passed: Some(body.passed),
        ..noted_reply(model, saved, named)
    }
}

fn noted_reply(model: &mut Model, saved: Option<bool>, named: Option<String>) -> NotedReply {
    let kept = saved.is_some_and(|saved| saved) && named.is_some();
    if let Some(one) = model.draft.moments.waiting.last_mut().filter(|_| kept) {
        one.about["environment"] = named.into();
    }
    let is_kept = saved.unwrap_or(true);
    NotedReply {
        status: if is_kept { "saved" } else { "recorded" }.to_owned(),
        known: saved.is_none(),
        session_id: Some(model.session.id.to_string()),
        ..NotedReply::default()
    }
}

/// Saves everything with what the caller knows of the work; answered once it is kept.
fn auto_save(model: &mut Model, call: CallId, body: SaveBody, environment: Option<String>) {
    if !model.draft.moments.may_save(model.now) {
        let why = format!(
            "too many checkpoints: at most {SAVES_A_MINUTE} a minute are kept, try again later"
        );
        return model.answer(call, Reply::Refused { why });
    }
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
    let mut checkpoint = checkpoint::snapshot(model, tags);
    checkpoint::add_known(model, &mut checkpoint, &known);
    let id = checkpoint.id;
    model.emit(Effect::SaveCheckpoint(Box::new(checkpoint)));
    let reply = SaveReply {
        status: "saved".to_owned(),
        checkpoint_id: id.to_string(),
        session_id: Some(model.session.id.to_string()),
        percent_at_save: usage.percent,
        restart_command: restore_command(&model.identity.environment),
        message: match usage
            .used
            .map(|used| model.session.guard.assess(Tokens(used)))
        {
            Some(now) => {
                let percent = percent(now.percent);
                format!("everything is saved, at {percent} % of the usable window")
            }
            None => "everything is saved".to_owned(),
        },
    };
    model.draft.await_checkpoint(id, call, Reply::Saved(reply));
}
