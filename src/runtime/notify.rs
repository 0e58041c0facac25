//! Calls a person where they do not see the terminal: by `[notify] command` and by posting to `[notify] url`.
//!
//! ```text
//!   loop ── Call, Settled ──► queue ──► task: command, then url ── EffectFailed, if one fails ──► loop
//! ```
//!
//! The queue keeps the order, and the loop never waits for it: what finds it full is dropped, which the log says.

use std::{path::PathBuf, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use serde::Serialize;
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use pitstop_base::{clean, redact};
use pitstop_core::{
    api::wire::NeedKind,
    app::{Event, model::needs::Need},
    config::NotifyConfig,
};

use super::{Shell, user_command::UserCommand};

/// The number of calls that may wait: far more than an evening has.
const QUEUE: usize = 64;

/// The time that calls may still take when the supervisor leaves: the last one says that the run is over.
const LAST: Duration = Duration::from_secs(3);

/// The same where no person waits at a terminal, and the call may be all that they hear of the end.
const LAST_HEADLESS: Duration = Duration::from_secs(10);

/// A call for a person, or its end: what the command is given as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Notification {
    /// The same for a call and its end, and different for all others.
    pub id: String,
    /// `open`, or `settled` when a person is needed no more.
    pub state: &'static str,
    /// The kind of the need.
    pub kind: NeedKind,
    /// A sentence on what waits.
    pub what: String,
    /// The reason; empty if there is none to give.
    pub why: String,
    /// The name of the project's directory.
    pub project: String,
    /// The id of the agent's session.
    pub session: String,
    /// The time since which it waits, UTC.
    pub since: DateTime<Utc>,
    /// The time until which a person can decide, or at which it ends by itself, UTC.
    pub until: Option<DateTime<Utc>>,
    /// The address at which it can be decided; empty if there is none.
    pub link: String,
}

/// A call on its way, with the configuration of the moment.
struct Sent {
    config: NotifyConfig,
    notification: Notification,
}

/// The way to the task that calls. It is started by the first call.
#[derive(Default)]
pub(super) struct Caller(Option<(mpsc::Sender<Sent>, JoinHandle<()>)>);

impl Caller {
    /// Waits a moment for the calls that are on their way.
    pub async fn finish(self, is_headless: bool) {
        if let Some((queue, task)) = self.0 {
            drop(queue);
            let limit = if is_headless { LAST_HEADLESS } else { LAST };
            let _ = timeout(limit, task).await;
        }
    }
}

impl Shell {
    /// Calls a person, or takes a call back.
    pub(super) fn notify(&mut self, need: &Need, state: &'static str) {
        let model = self.core.view();
        let config = model.config.notify.clone();
        if config.command.is_none() && config.url.is_none() {
            return;
        }
        let project = model.identity.project.rsplit('/').next();
        let notification = Notification {
            // A run that is taken up again goes on with its name, and numbers its needs from the start.
            id: format!("{}-{}-{}", model.run(), need.since.timestamp(), need.id),
            state,
            kind: need.kind,
            what: need.what.clone(),
            why: need.why.clone(),
            project: project.unwrap_or_default().to_owned(),
            session: model.session.id.to_string(),
            since: need.since,
            until: need.until,
            link: model.config.api.url.clone().unwrap_or_default(),
        };
        let (events, directory) = (self.events.clone(), self.agent.project.clone());
        let (queue, _) = self.services.caller.0.get_or_insert_with(|| {
            let (queue, calls) = mpsc::channel(QUEUE);
            (queue, tokio::spawn(serve(calls, events, directory)))
        });
        let sent = Sent {
            config,
            notification,
        };
        if queue.try_send(sent).is_err() {
            tracing::warn!("a call for a person was dropped: too many wait");
        }
    }
}

async fn serve(mut calls: mpsc::Receiver<Sent>, events: mpsc::Sender<Event>, directory: PathBuf) {
    // A failure is shown once, until one succeeds.
    let mut shown = false;
    while let Some(Sent {
        config,
        notification,
    }) = calls.recv().await
    {
        let outcomes = [
            command(&config, &notification, &directory).await,
            posted(config, notification).await,
        ];
        let failed = outcomes.into_iter().flatten().find_map(Result::err);
        if let Some(what) = &failed {
            tracing::warn!(what, "a person could not be called");
        }
        let before = std::mem::replace(&mut shown, failed.is_some());
        if let Some(what) = failed.filter(|_| !before) {
            // A loop that is busy or gone is not waited for: the log has it.
            let _ = events.try_send(Event::EffectFailed { what });
        }
    }
}

/// Runs the command, if there is one; the error describes how it failed.
pub async fn command(
    config: &NotifyConfig,
    notification: &Notification,
    directory: &std::path::Path,
) -> Option<Result<(), String>> {
    let command = UserCommand {
        table: "notify",
        key: "command",
        command: config.command.as_deref()?,
        limit: config.timeout,
    };
    Some(command.run(notification, directory).await)
}

/// Posts to the URL, if there is one; the error describes how that failed. The address is not in it: it may hold a secret.
pub async fn posted(
    config: NotifyConfig,
    notification: Notification,
) -> Option<Result<(), String>> {
    let url = config.url.clone()?;
    let body = body(&config.template, &notification)?;
    let sent = tokio::task::spawn_blocking(move || post(&url, &body, config.timeout)).await;
    let failed = |why: String| format!("[notify] url: {why}");
    Some(
        sent.unwrap_or_else(|error| Err(error.to_string()))
            .map_err(failed),
    )
}

/// Returns the text to post; none where the template has nothing on a call that is settled.
fn body(template: &str, notification: &Notification) -> Option<String> {
    let names_state = template.contains("${state}") || template.contains("${json}");
    if notification.state != "open" && !names_state {
        return None;
    }
    // The template is the user's own, and may hold the key by which its service knows them.
    let json = redact::value(&serde_json::to_value(notification).ok()?);
    let quotes = is_json(template);
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        text.push_str(before);
        let Some((name, behind)) = after.split_once('}') else {
            text.push_str("${");
            rest = after;
            break;
        };
        match (name, json.get(name)) {
            ("json", _) => text.push_str(&json.to_string()),
            (_, Some(value)) => text.push_str(&written(value, quotes)),
            (_, None) => text.push_str(&format!("${{{name}}}")),
        }
        rest = behind;
    }
    text.push_str(rest);
    Some(text)
}

/// Reports whether a text is meant as JSON: an object, or a list of objects or texts. Words in brackets are none.
fn is_json(text: &str) -> bool {
    let text = text.trim_start();
    let list = text.strip_prefix('[').map(str::trim_start);
    text.starts_with('{') || list.is_some_and(|first| first.starts_with(['{', '[', '"']))
}

/// Writes a value into a text, or into a string of JSON.
fn written(value: &serde_json::Value, quotes: bool) -> String {
    let text = match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => clean::one_line(text).into_owned(),
        other => other.to_string(),
    };
    if !quotes {
        return text;
    }
    let string = serde_json::Value::String(text).to_string();
    string[1..string.len() - 1].to_owned()
}

fn post(url: &str, body: &str, limit: Duration) -> Result<(), String> {
    let kind = if is_json(body) {
        "application/json"
    } else {
        "text/plain; charset=utf-8"
    };
    let agent = ureq::Agent::new_with_config(
        ureq::Agent::config_builder()
            .timeout_global(Some(limit))
            .tls_config(TlsConfig::builder().root_certs(roots()).build())
            .user_agent(concat!("pitstop/", env!("CARGO_PKG_VERSION")))
            .build(),
    );
    let answer = agent.post(url).content_type(kind).send(body);
    answer.map(drop).map_err(|error| error.to_string())
}

/// Returns the roots of trust of this machine, on which a company may have its own; Mozilla's where it has none.
fn roots() -> RootCerts {
    let found = rustls_native_certs::load_native_certs();
    let own: Vec<Certificate<'static>> = found
        .certs
        .iter()
        .map(|one| Certificate::from_der(one).to_owned())
        .collect();
    if own.is_empty() {
        RootCerts::WebPki
    } else {
        RootCerts::Specific(Arc::new(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notification(state: &'static str) -> Notification {
        Notification {
            id: "r-1".to_owned(),
            state,
            kind: NeedKind::Review,
            what: "A \"reboot\" waits".to_owned(),
            why: "89 % full".to_owned(),
            project: "repo".to_owned(),
            session: "s".to_owned(),
            since: DateTime::UNIX_EPOCH,
            until: None,
            link: String::new(),
        }
    }

    #[test]
    fn a_template_is_filled_and_a_call_that_is_settled_needs_its_place() {
        let (open, settled) = (notification("open"), notification("settled"));
        let filled = |template: &str, one| body(template, one);
        let plain = "${what}: ${why}${until} (${project}) ${nothing} ${";
        let wanted = "A \"reboot\" waits: 89 % full (repo) ${nothing} ${";
        assert_eq!(filled(plain, &open).as_deref(), Some(wanted));
        assert_eq!(filled(plain, &settled), None);
        let json = filled("{\"text\": \"${state}: ${what}\"}", &settled).expect("a text");
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["text"], "settled: A \"reboot\" waits");
        let all = filled("${json}", &open).expect("a text");
        let all: serde_json::Value = serde_json::from_str(&all).expect("JSON");
        assert_eq!(
            (&all["kind"], &all["until"]),
            (&"review".into(), &serde_json::Value::Null)
        );
    }

    #[test]
    fn a_list_is_json_and_words_in_brackets_are_none() {
        let filled = body("[{\"text\": \"${what}\"}]", &notification("open")).expect("a text");
        let read: serde_json::Value = serde_json::from_str(&filled).expect("JSON");
        assert_eq!(read[0]["text"], "A \"reboot\" waits");
        let words = body("[${project}] ${what}", &notification("open")).expect("a text");
        assert_eq!(words, "[repo] A \"reboot\" waits");
        assert!(is_json(&filled) && is_json("[ \"a\" ]") && !is_json(&words));
    }

    #[test]
    fn secrets_are_masked_in_what_a_call_says_and_not_in_the_users_template() {
        let mut call = notification("open");
        call.why = concat!("A_PASSWORD=", "hunter2 is in the way").to_owned();
        // The services that want their key in the body.
        let own = "a1B2c3D4".repeat(4);
        for template in [
            "{\"token\": \"OWN\", \"message\": \"${why}\"}",
            "{\"user\": \"OWN\", \"all\": ${json}}",
            "api_key=OWN&text=${why}",
        ] {
            let text = body(&template.replace("OWN", &own), &call).expect("a text");
            assert!(text.contains(&own), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
            assert!(text.contains(redact::MASK), "{text}");
        }
    }

    #[test]
    fn the_last_call_of_a_headless_run_has_longer_than_where_a_person_waits() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let arrived = runtime.block_on(async {
            let (queue, _calls) = mpsc::channel(1);
            let (done, is_done) = std::sync::mpsc::channel();
            let task = tokio::spawn(async move {
                tokio::time::sleep(LAST + Duration::from_millis(200)).await;
                let _ = done.send(());
            });
            Caller(Some((queue, task))).finish(true).await;
            is_done.try_recv().is_ok()
        });
        assert!(arrived);
    }
}
