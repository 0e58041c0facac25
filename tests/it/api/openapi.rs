//! The `OpenAPI` description and the routes say the same, read both ways.

use std::collections::BTreeSet;

use pitstop_core::api::endpoint::{Endpoint, Right};
use pitstop_core::api::wire::{
    CheckpointBody, CheckpointReply, CommitBody, ErrorBody, ForecastReport, HeldReport,
    HookVerdict, IterationTokens, KeyDecision, RebootBody, SaveBody, SayBody, SourcedItem,
    TestBody, TurnsLeft,
};
use pitstop_core::lineage::TrimRecord;
use serde::Serialize;
use serde_json::Value;

use super::*;

fn description() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/openapi.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn operations(description: &Value) -> Vec<(String, String, Value)> {
    let paths = description["paths"].as_object().unwrap();
    let all = paths.iter().flat_map(|(path, item)| {
        let item = item.as_object().unwrap();
        item.iter()
            .map(move |(method, operation)| (method.clone(), path.clone(), operation.clone()))
    });
    all.collect()
}

#[test]
fn every_route_is_described_and_every_description_is_a_route() {
    let description = description();
    assert_eq!(description["openapi"], "3.1.0");
    let described: BTreeSet<_> = operations(&description)
        .into_iter()
        .map(|(method, path, _)| (method.to_uppercase(), path))
        .collect();
    let routed: BTreeSet<_> = Endpoint::ALL
        .iter()
        .map(|one| (one.method().word().to_owned(), one.path().to_owned()))
        .collect();
    assert_eq!(described, routed);
}

#[test]
fn every_described_operation_is_served() {
    let supervisor = Supervisor::start();
    for (method, path, _) in operations(&description()) {
        // A stream has no end, and an attachment goes on in another protocol: both have tests of their own.
        if matches!(path.as_str(), "/events" | "/attach") {
            continue;
        }
        let path = path
            .replace("{event}", "Stop")
            .replace("{id}", "current")
            .replace("{order}", "save")
            .replace("{message}", "hello")
            .replace("{tool}", "context");
        let body = fitting_body(&path);
        let body = if method == "get" { b"" } else { body };
        let answer = supervisor.request("control", &method.to_uppercase(), &path, body);
        assert!((200..300).contains(&answer.status), "{path}: {answer:?}");
    }
}

#[test]
fn rights_are_described_as_they_are_checked() {
    for (_, path, operation) in operations(&description()) {
        let endpoint = Endpoint::ALL.iter().find(|one| one.path() == path);
        let security: BTreeSet<String> = operation["security"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|one| one.as_object().unwrap().keys().cloned())
            .collect();
        let expected: &[&str] = match endpoint.unwrap().right() {
            Right::Observe => &["bridge", "control", "observe"],
            Right::Bridge => &["bridge", "control"],
            Right::Control => &["control"],
        };
        assert!(security.iter().eq(expected), "{path}: {security:?}");
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_schema_is_used() {
    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    match field {
                        Value::String(to) if name == "$ref" => drop(found.insert(to.clone())),
                        field => references(field, found),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let description = description();
    let mut found = BTreeSet::new();
    references(&description, &mut found);
    for reference in &found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(description.pointer(pointer).is_some(), "{reference}");
    }
    for kind in ["schemas", "responses"] {
        for name in description["components"][kind].as_object().unwrap().keys() {
            let reference = format!("#/components/{kind}/{name}");
            assert!(found.contains(&reference), "{reference} is not used");
        }
    }
}

#[test]
fn orders_and_events_are_described_by_all_their_names() {
    let description = description();
    let order = &description["paths"]["/control/{order}"]["post"]["parameters"][0];
    let described: BTreeSet<&str> = order["schema"]["enum"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    let known: BTreeSet<&str> = Control::PLAIN.iter().map(|(name, _)| *name).collect();
    assert_eq!(described, known);
    let events = description["paths"]["/events"]["get"]["description"]
        .as_str()
        .unwrap();
    let named: BTreeSet<&str> = events
        .trim_start_matches("Events: ")
        .trim_end_matches('.')
        .split(", ")
        .collect();
    assert_eq!(
        named,
        ApiEventKind::ALL.iter().map(|kind| kind.word()).collect()
    );
}

fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

/// The fields of a value as it goes over the wire are just those that its schema has.
#[track_caller]
fn fits(description: &Value, name: &str, value: &Value) {
    let sent: BTreeSet<&String> = value.as_object().unwrap().keys().collect();
    let schema = &description["components"]["schemas"][name];
    let described: BTreeSet<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(sent, described, "{name}");
}

#[test]
fn what_goes_over_the_wire_has_the_described_fields() {
    let description = description();
    let fits = |name: &str, value: Value| fits(&description, name, &value);
    let status = status();
    fits("StatusReport", json(&status));
    fits("AgentReport", json(&status.agent));
    fits("ToolReply", json(&ToolReply::default()));
    fits("BridgeReport", json(&status.agent.bridge));
    fits("ContextReport", json(&status.context));
    fits("ForecastReport", json(&ForecastReport::default()));
    fits("HeldReport", json(&HeldReport::default()));
    fits("TurnsLeft", json(&TurnsLeft::default()));
    fits("RebootReport", json(&status.reboot));
    fits("HistoryReport", json(&HistoryReport::default()));
    fits("IterationReport", json(&IterationReport::default()));
    fits("IterationTokens", json(&IterationTokens::default()));
    fits("TrimReport", json(&TrimRecord::default()));
    fits("SourcedItem", json(&SourcedItem::default()));
    fits("KeyDecision", json(&KeyDecision::default()));
    let (decision, reason) = (String::new(), String::new());
    fits("HookVerdict", json(&HookVerdict { decision, reason }));
    let way = Some(pitstop_core::lineage::Way::Trim);
    fits("RebootBody", json(&RebootBody { way }));
    fits("OrderReply", json(&OrderReply::new("")));
    fits("HandoffReport", json(&HandoffReport::default()));
    fits("StatusLineReply", json(&StatusLineReply::default()));
    fits("CheckpointBody", json(&CheckpointBody::EMPTY));
    fits("CheckpointReply", json(&CheckpointReply::default()));
    fits("SaveReply", json(&SaveReply::default()));
    fits("SaveBody", json(&SaveBody::default()));
    fits("CommitBody", json(&CommitBody::default()));
    fits("TestBody", json(&TestBody::default()));
    let noted = NotedReply {
        commit: Some(String::new()),
        tests_passed: Some(true),
        ..NotedReply::default()
    };
    fits("NotedReply", json(&noted));
    let Reply::Usage(usage) = reply_to(&Request::Usage(
        pitstop_core::api::wire::UsageQuery::default(),
    )) else {
        panic!("no usage");
    };
    fits("UsageReply", json(&usage));
    fits("UsageAction", json(&usage.action));
    fits(
        "SayBody",
        json(&SayBody {
            text: String::new(),
        }),
    );
    let error = ErrorBody {
        error: String::new(),
        hint: String::new(),
        field: Some(String::new()),
    };
    fits("ErrorBody", json(&error));
}
