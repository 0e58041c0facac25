//! What scripts and hooks of the user's report: commits, test runs, and that everything is to be saved.

use crate::{
    api::wire::{
        CommitBody, FieldError, NotedReply, Reply, Report, SaveBody, SaveReply, TestBody,
        UsageQuery,
    },
    breakpoint::{commit::Made, test_run::Total},
    clean,
    format::percent,
    handoff::preserved::ReportedRun,
    lineage::checkpoint::AutoSave,
    transcript::Tokens,
};

use crate::app::{
    draft::{
        breakpoint::{SAVES_A_MINUTE, committed, is_known, may_save, quote, tested},
        checkpoint,
    },
    event::CallId,
    model::Model,
    outside::report,
};

/// A program outside has seen something.
pub fn reported(model: &mut Model, call: CallId, report: Report) {
    let own = model.identity.environment.as_str();
    if let Some(named) = report.environment().filter(|named| *named != own) {
        let expected = format!("{:?} (this supervisor's)", clean::one_line(own));
        let wrong = FieldError::text("environment", expected, named);
        return model.answer(call, Reply::Wrong(wrong));
    }
    let noted = match report {
        Report::Commit(body) => commit_reported(model, body),
        Report::Tests(body) => tests_reported(model, &body),
        Report::AutoSave(body) => return auto_save(model, call, body),
    };
    model.answer(call, Reply::Noted(noted));
}

fn commit_reported(model: &mut Model, body: CommitBody) -> NotedReply {
    let message = body.commit_message.as_deref().unwrap_or_default();
    let branch = body.branch.as_deref();
    let made = Made::reported(&body.commit_sha, branch, message, body.files_changed);
    let new = committed(model, &made);
    NotedReply {
        commit: Some(body.commit_sha),
        ..noted_reply(model, new)
    }
}

fn tests_reported(model: &mut Model, body: &TestBody) -> NotedReply {
    let total = Total {
        passed: body.passed,
        count: body.test_count,
        failed: body.failed_count,
    };
    let command = quote(body.test_command.as_deref().unwrap_or_default());
    let failing = body.failing_tests.as_deref().unwrap_or_default();
    take_report(model, total, &command, failing);
    let new = tested(model, total, &command, body.duration_seconds, failing);
    NotedReply {
        tests_passed: Some(body.passed),
        ..noted_reply(model, new)
    }
}

/// Takes the outcome into what survives a reboot.
fn take_report(model: &mut Model, total: Total, command: &str, failing: &[String]) {
    let again = is_known(model, total);
    let tests = &mut model.draft.signalled.test_state;
    let before = tests.clone();
    tests.report(&ReportedRun {
        command,
        passed: total.passed,
        failed: total.failed,
        failing,
    });
    if again {
        tests.keep_changes(before);
    }
}

fn noted_reply(model: &Model, new: bool) -> NotedReply {
    NotedReply {
        status: if new { "recorded" } else { "known" }.to_owned(),
        session_id: Some(model.session.id.to_string()),
        ..NotedReply::default()
    }
}

/// Saves everything with what the caller knows of the work; answered once it is kept.
fn auto_save(model: &mut Model, call: CallId, body: SaveBody) {
    if !may_save(model) {
        let why = format!(
            "too many checkpoints: at most {SAVES_A_MINUTE} a minute are kept, try again later"
        );
        return model.answer(call, Reply::Refused { why });
    }
    let said = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let known = AutoSave {
        environment: body.environment,
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
    let id = checkpoint::auto_saved(model, tags, &known);
    let environment = quoted(&model.identity.environment);
    let reply = SaveReply {
        status: "saved".to_owned(),
        checkpoint_id: id.to_string(),
        session_id: Some(model.session.id.to_string()),
        percent_at_save: usage.percent,
        restart_command: format!("pitstop restore {environment}"),
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
    model.draft.saves.push((id, call, Reply::Saved(reply)));
}

/// A word for a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@%+".contains(c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
