use proptest::prelude::*;

use super::*;
use crate::claude;
use pitstop_transcript::usage::Usage;

const ID: &str = "0deae788-ee30-4b6b-b3a0-c1fabacd2974";

fn id() -> SessionId {
    ID.parse().unwrap()
}

/// A payload as the real client sends it, with `fields` added.
fn body(fields: &str) -> String {
    let comma = if fields.is_empty() { "" } else { "," };
    format!(
        r#"{{"session_id":"{ID}","transcript_path":"/h/t.jsonl","cwd":"/w","prompt_id":"x"{comma}{fields}}}"#
    )
}

fn parse(event: &str, fields: &str) -> AgentEvent {
    parse_hook(event, body(fields).as_bytes()).unwrap()
}

#[test]
fn each_event_that_is_asked_for_is_read() {
    for name in claude::EVENTS {
        let read = parse_hook(name, body("").as_bytes());
        let is_known = !matches!(read, Ok(AgentEvent::Unknown { .. }));
        assert!(is_known, "add the reading of {name} to `parse_hook`");
    }
}

#[test]
fn a_session_start_names_session_model_and_transcript() {
    assert_eq!(
        parse(
            "SessionStart",
            r#""source":"startup","model":"claude-opus-4-8[1m]""#
        ),
        AgentEvent::SessionStarted {
            session: id(),
            source: StartSource::Startup,
            model: Some("claude-opus-4-8[1m]".into()),
            transcript_path: Some("/h/t.jsonl".into()),
            prompt_cache: None,
        }
    );
}

#[test]
fn a_prompt_arrives_whole() {
    let prompt = "é\t\"quoted\" \u{1f600}\n".repeat(4000);
    let fields = format!(r#""prompt":{}"#, Value::from(prompt.clone()));
    assert_eq!(
        parse("UserPromptSubmit", &fields),
        AgentEvent::PromptSubmitted {
            session: id(),
            prompt,
            transcript_path: Some("/h/t.jsonl".into())
        }
    );
}

#[test]
fn a_shell_result_keeps_its_streams_cut_to_size() {
    let fields = format!(
        r#""tool_name":"Bash","tool_input":{{"command":"ls"}},"tool_use_id":"toolu_1","duration_ms":101,
        "tool_response":{{"stdout":"{}","stderr":"e","interrupted":false}}"#,
        "é".repeat(OUTPUT)
    );
    let AgentEvent::ToolFinished { call, output, .. } = parse("PostToolUse", &fields) else {
        panic!("a tool result");
    };
    assert_eq!(call.command.as_deref(), Some("ls"));
    assert_eq!(call.id.as_deref(), Some("toolu_1"));
    assert_eq!(output.stdout.len(), OUTPUT);
    assert_eq!(
        (output.stderr.as_str(), output.duration_ms),
        ("e", Some(101))
    );
}

#[test]
fn a_to_do_call_counts_once_it_has_run_and_not_in_a_subagent() {
    let call = r#""tool_name":"TaskUpdate","tool_input":{"taskId":"1","status":"completed"},"tool_use_id":"t1",
        "tool_response":{"success":true,"taskId":"1","updatedFields":["status"]}"#;
    let todo = |event: &str, fields: &str| match parse(event, fields) {
        AgentEvent::ToolStarted { call, .. } | AgentEvent::ToolFinished { call, .. } => call.todo,
        other => panic!("{other:?}"),
    };
    let read = todo("PostToolUse", call).expect("a call");
    assert_eq!(read.id.as_deref(), Some("t1"));
    assert_eq!(todo("PreToolUse", call), None);
    assert_eq!(todo("PostToolUseFailure", call), None);
    let by_subagent = format!(r#"{call},"agent_id":"a1""#);
    assert_eq!(todo("PostToolUse", &by_subagent), None);
}

#[test]
fn what_is_no_character_costs_a_report_nothing_but_itself() {
    let message = |text: &[u8], lead: &[u8]| {
        let mut bytes = lead.to_vec();
        bytes.extend(
            body(r#""last_assistant_message":""#)
                .trim_end_matches('}')
                .as_bytes(),
        );
        bytes.extend([text, b"\"}"].concat());
        match parse_hook("Stop", &bytes).expect("a report") {
            AgentEvent::TurnEnded { last_message, .. } => last_message.unwrap_or_default(),
            other => panic!("{other:?}"),
        }
    };
    for (text, expected) in [
        (br"a\ud83d\nDONE".as_slice(), "a\u{fffd}\nDONE"),
        (br"\udE00 DONE\uD83D", "\u{fffd} DONE\u{fffd}"),
        (br"\ud83d\ud83d\ude00", "\u{fffd}\u{1f600}"),
        (br"C:\\ud83d", r"C:\ud83d"),
        (b"\xff\xc3 \xe6\x97\xa5", "\u{fffd}\u{fffd} 日"),
        (b"\xed\xa0\xbd DONE", "\u{fffd}\u{fffd}\u{fffd} DONE"),
    ] {
        assert_eq!(message(text, b""), expected);
        assert_eq!(message(text, b" \xef\xbb\xbf"), expected);
    }
}

#[test]
fn a_turns_end_carries_the_message_and_what_still_runs() {
    let fields = r#""stop_hook_active":false,"last_assistant_message":"Hello","background_tasks":[{"id":"a1","type":"subagent","status":"running"},{},{"status":"completed"}],"session_crons":[{"id":"c1","recurring":false,"schedule":"5 9 * * *","prompt":"look again"},7]"#;
    assert_eq!(
        parse("Stop", fields),
        AgentEvent::TurnEnded {
            session: id(),
            last_message: Some("Hello".into()),
            background: Background {
                tasks: vec![
                    BackgroundTask {
                        id: "a1".into(),
                        kind: "subagent".into(),
                    },
                    BackgroundTask::default(),
                ],
                prompts: vec![
                    TimedPrompt {
                        id: "c1".into(),
                        recurs: false,
                        schedule: "5 9 * * *".into(),
                        prompt: "look again".into(),
                    },
                    TimedPrompt::default(),
                ],
            },
            transcript_path: Some("/h/t.jsonl".into()),
        }
    );
}

#[test]
fn failures_are_distinguished_as_the_client_words_them() {
    let failure = |fields: &str| match parse("StopFailure", fields) {
        AgentEvent::TurnFailed { failure, .. } => failure,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        failure(r#""error":"rate_limit","last_assistant_message":"x""#),
        Failure::UsageLimit
    );
    assert_eq!(
        failure(
            r#""error":"invalid_request","error_details":"400 {\"message\":\"prompt is too long: 2\"}""#
        ),
        Failure::ContextLimit
    );
    for refused in [
        r#""error":"invalid_request","last_assistant_message":"Request too large (max 32MB).""#,
        r#""error":"unknown","last_assistant_message":"API Error: 400 messages.3: tool_use""#,
        r#""error":"unknown","last_assistant_message":"I can't help. Start a new session to continue.""#,
    ] {
        assert_eq!(failure(refused), Failure::Conversation, "{refused}");
    }
    assert_eq!(failure(r#""error":"server_error""#), Failure::Service);
    for lasting in ["authentication_failed", "billing_error"] {
        let fields = format!(r#""error":"{lasting}""#);
        assert_eq!(failure(&fields), Failure::Account, "{lasting}");
    }
    for (said, expected) in [
        (
            "API Error: Request rejected (429) · This request would exceed the rate limit for your organization",
            Failure::RateLimit,
        ),
        (
            "You've hit your session limit · resets 3pm (Europe/Berlin)",
            Failure::UsageLimit,
        ),
        (
            "Claude AI usage limit reached|1795264200",
            Failure::UsageLimit,
        ),
    ] {
        let fields = format!(r#""error":"rate_limit","last_assistant_message":"{said}""#);
        assert_eq!(failure(&fields), expected, "{said}");
    }
}

#[test]
fn a_notification_is_a_dialog_unless_it_is_known_to_ask_for_nothing() {
    let permission =
        r#""message":"Claude needs your permission","notification_type":"permission_prompt""#;
    assert!(matches!(
        parse("Notification", permission),
        AgentEvent::DialogOpened { .. }
    ));
    let idle = r#""message":"waiting","notification_type":"idle_prompt""#;
    assert!(matches!(
        parse("Notification", idle),
        AgentEvent::Notified { .. }
    ));
    assert_eq!(
        parse("PermissionRequest", r#""tool_name":"Bash""#),
        AgentEvent::DialogOpened {
            session: id(),
            about: "Bash".into()
        }
    );
    let form = r#""mcp_server_name":"forms","message":"Which region?","mode":"form""#;
    assert_eq!(
        parse("Elicitation", form),
        AgentEvent::DialogOpened {
            session: id(),
            about: "forms: Which region?".into()
        }
    );
}

#[test]
fn an_unknown_event_is_named_and_nothing_else() {
    assert_eq!(
        parse("Brandnew", ""),
        AgentEvent::Unknown {
            name: "Brandnew".into()
        }
    );
}

#[test]
fn a_status_line_before_the_first_call_has_a_window_and_no_usage() {
    let line = parse_status_line(
        body(
            r#""model":{"id":"claude-opus-4-5","display_name":"Opus 4.5"},"version":"2.1.197",
            "cost":{"total_cost_usd":0,"total_duration_ms":372},
            "context_window":{"context_window_size":200000,"current_usage":null,"used_percentage":null}"#,
        )
        .as_bytes(),
    )
    .unwrap();
    assert_eq!(line.window, Some(Tokens(200_000)));
    assert_eq!((line.usage, line.used_percentage), (None, None));
    assert_eq!(line.model_name.as_deref(), Some("Opus 4.5"));
    assert_eq!((line.cost_usd, line.duration_ms), (Some(0.0), Some(372)));
}

#[test]
fn a_status_line_carries_usage_and_limits() {
    let line = parse_status_line(
        body(
            r#""context_window":{"context_window_size":200000,"used_percentage":50,"current_usage":
            {"input_tokens":3,"output_tokens":20,"cache_creation_input_tokens":7,"cache_read_input_tokens":99990}},
            "rate_limits":{"five_hour":{"used_percentage":12.5,"resets_at":1790000000}}"#,
        )
        .as_bytes(),
    )
    .unwrap();
    assert_eq!(line.usage.map(Usage::context), Some(Tokens(100_020)));
    assert_eq!(
        line.five_hour,
        Some(RateLimit {
            used_percentage: 12.5,
            resets_at: Some(1_790_000_000)
        })
    );
    assert_eq!(line.seven_day, None);
}

#[test]
fn a_status_line_carries_the_prompt_cache() {
    let cache = |fields: &str| {
        let line = parse_status_line(body(&format!(r#""prompt_cache":{fields}"#)).as_bytes());
        line.unwrap().prompt_cache
    };
    assert_eq!(
        cache(r#"{"warm":true,"ttl":"5m","expires_at":1795334259,"recache_tokens_if_cold":50000}"#),
        Some(PromptCache {
            warm: true,
            expires_at: Some(1_795_334_259),
            recache: Some(Tokens(50_000)),
            usd: None,
            lifetime: CacheLifetime::FiveMinutes,
        })
    );
    assert_eq!(
        cache(r#"{"warm":false,"expires_at":null}"#),
        Some(PromptCache {
            warm: false,
            expires_at: None,
            recache: None,
            usd: None,
            lifetime: CacheLifetime::FiveMinutes,
        })
    );
    for none in ["null", "{}", "7", r#"{"warm":"yes"}"#] {
        assert_eq!(cache(none), None, "{none}");
    }
}

#[test]
fn bad_token_figures_are_refused_and_other_bad_numbers_passed_over() {
    for bad in ["-1", "1e13", "\"200000\"", "1e999"] {
        let fields = format!(r#""context_window":{{"context_window_size":{bad}}}"#);
        assert!(
            parse_status_line(body(&fields).as_bytes()).is_err(),
            "{bad}"
        );
        let fields = format!(r#""cost":{{"total_cost_usd":{bad}}}"#);
        if bad != "1e999" {
            assert_eq!(
                parse_status_line(body(&fields).as_bytes())
                    .unwrap()
                    .cost_usd,
                None
            );
        }
    }
}

#[test]
fn limits_of_size_depth_and_identity_hold() {
    let error = |body: &[u8]| parse_hook("Stop", body).unwrap_err().to_string();
    assert!(error(&vec![b' '; MAX_BODY + 1]).starts_with("expected a body of at most"));
    let deep = body(&format!(
        r#""x":{}{}"#,
        "[".repeat(MAX_DEPTH),
        "]".repeat(MAX_DEPTH)
    ));
    assert!(error(deep.as_bytes()).contains("nested"));
    let level = body(&format!(
        r#""x":{}{}"#,
        "[".repeat(MAX_DEPTH - 1),
        "]".repeat(MAX_DEPTH - 1)
    ));
    assert!(parse_hook("Stop", level.as_bytes()).is_ok());
    let brackets_in_text = body(&format!(r#""x":"\"{}""#, "[".repeat(100)));
    assert!(parse_hook("Stop", brackets_in_text.as_bytes()).is_ok());
    assert_eq!(
        error(br#"{"session_id":"../../etc/passwd\u001b"}"#),
        r"expected the field `session_id` to be a UUID, found `../../etc/passwd\u{1b}`"
    );
    assert_eq!(
        error(b"{}"),
        "expected the field `session_id` to be a text, found nothing"
    );
    assert!(error(b"[1]").starts_with("expected a JSON object"));
    assert!(error(b"").starts_with("expected a JSON object"));
}

#[test]
fn a_path_too_long_to_be_one_counts_as_absent() {
    let long = format!(
        r#"{{"session_id":"{ID}","transcript_path":"/{}"}}"#,
        "a".repeat(PATH)
    );
    assert!(matches!(
        parse_hook("SessionStart", long.as_bytes()).unwrap(),
        AgentEvent::SessionStarted {
            transcript_path: None,
            ..
        }
    ));
}

/// Returns the events that sessions report, one that other settings may have them report, and one that nobody knows.
fn any_event() -> impl Strategy<Value = &'static str> {
    let names = claude::EVENTS.into_iter().chain(["PostCompact", "?"]);
    proptest::sample::select(names.collect::<Vec<_>>())
}

const RICH: &str = r#""prompt":"p","source":"clear","tool_name":"Bash","tool_input":{"command":"ls"},
    "tool_response":{"stdout":"o","interrupted":true},"error":"rate_limit","background_tasks":[1],
    "model":{"id":"m"},"context_window":{"context_window_size":1,"current_usage":{"input_tokens":1}},
    "rate_limits":{"five_hour":{"used_percentage":1}},"cost":{"total_cost_usd":0.1}"#;

proptest! {
    #[test]
    fn mutated_bodies_never_panic(
        event in any_event(),
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 0..12),
    ) {
        let mut bytes = body(RICH).into_bytes();
        for (index, byte, way) in cuts {
            if bytes.is_empty() { break; }
            let at = index.index(bytes.len());
            match way {
                0 => bytes[at] = byte,
                1 => { bytes.remove(at); }
                2 => bytes.insert(at, byte),
                _ => bytes.truncate(at),
            }
        }
        let _ = parse_hook(event, &bytes);
        let _ = parse_status_line(&bytes);
    }

    #[test]
    fn any_value_in_any_field_never_panics(event in any_event(), value in any_json()) {
        let mut root: Map<String, Value> = serde_json::from_str(&body(RICH)).unwrap();
        for key in root.keys().cloned().collect::<Vec<_>>() {
            let old = root.insert(key.clone(), value.clone());
            let bytes = serde_json::to_vec(&root).unwrap();
            let _ = parse_hook(event, &bytes);
            let _ = parse_status_line(&bytes);
            root.insert(key, old.unwrap());
        }
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((".{0,8}", inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

#[test]
fn a_model_counts_as_chosen_where_a_person_has_switched_to_it() {
    for (fields, chosen) in [
        (
            r#""source":"command","requested_model":"opus[1m]""#,
            Some("opus[1m]"),
        ),
        (
            r#""source":"picker","requested_model":null"#,
            Some("default"),
        ),
        (
            r#""source":"picker","requested_model":"arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.x-v1:0""#,
            Some("arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.x-v1:0"),
        ),
        (r#""source":"resume","requested_model":"opus""#, None),
        (r#""source":"auto","requested_model":"haiku""#, None),
        (
            r#""source":"command","requested_model":"--dangerously-skip-permissions""#,
            None,
        ),
        (r#""source":"command","requested_model":"a b""#, None),
        ("", None),
    ] {
        let event = AgentEvent::ModelSwitched {
            session: id(),
            chosen: chosen.map(str::to_owned),
        };
        assert_eq!(parse("PostModelSwitch", fields), event, "{fields}");
    }
}

#[test]
fn the_permission_mode_is_read_beside_any_event() {
    for mode in ["plan", "acceptEdits", "größe"] {
        let (session, mode) = (id(), mode.to_owned());
        let body = body(&format!(r#""permission_mode":"{mode}""#));
        let seen = Some(AgentEvent::ModeSeen { session, mode });
        assert_eq!(parse_mode(body.as_bytes()), seen);
    }
    assert_eq!(parse_mode(body("").as_bytes()), None);
}

#[test]
fn of_a_resumed_session_only_a_cold_cache_is_taken() {
    let cache = |fields: &str| match parse("SessionStart", fields) {
        AgentEvent::SessionStarted { prompt_cache, .. } => prompt_cache,
        other => panic!("{other:?}"),
    };
    let warm = r#""source":"resume","context_tokens":60110,"prompt_cache_likely_expired":false"#;
    assert_eq!(cache(warm), None, "its end is not known");
    let cold = r#""source":"resume","context_tokens":60110,"prompt_cache_likely_expired":true,
        "estimated_cache_write_usd":0.0751"#;
    let cold = cache(cold).expect("it is cold");
    assert!(!cold.warm);
    assert_eq!(
        (cold.recache, cold.usd),
        (Some(Tokens(60_110)), Some(0.0751))
    );
}

#[test]
fn where_no_answer_reports_a_cache_none_is_cold() {
    let cache = |observed: &str| {
        let fields = format!(
            r#""prompt_cache":{{"warm":false,"caching_observed":{observed},"expires_at":null,"recache_tokens_if_cold":143000}}"#
        );
        let line = parse_status_line(body(&fields).as_bytes());
        line.unwrap().prompt_cache
    };
    assert_eq!(cache("false"), None);
    for known in ["true", "null", "7"] {
        assert!(cache(known).is_some_and(|cache| !cache.warm), "{known}");
    }
}

#[test]
fn a_compaction_of_a_subagent_is_none_of_the_session_s() {
    for (event, fields) in [
        ("PreCompact", r#""trigger":"auto""#),
        ("SessionStart", r#""source":"compact""#),
        ("PostCompact", r#""trigger":"auto""#),
    ] {
        let by_subagent = format!(r#"{fields},"agent_id":"a1""#);
        let expected = AgentEvent::SubagentCompacts { session: id() };
        assert_eq!(parse(event, &by_subagent), expected, "{event}");
        assert_ne!(parse(event, fields), expected, "{event}");
    }
}

#[test]
fn a_subagent_that_fails_is_no_failure_of_the_session_s_turn() {
    for failure in [
        r#""error":"rate_limit""#,
        r#""error":"server_error","last_assistant_message":"API Error: 529""#,
        r#""error":"invalid_request","error_details":"prompt is too long: 2""#,
    ] {
        let by_subagent = format!(r#"{failure},"agent_id":"a1""#);
        let expected = AgentEvent::SubagentStopped { session: id() };
        assert_eq!(parse("StopFailure", &by_subagent), expected, "{failure}");
        let own = parse("StopFailure", failure);
        assert!(matches!(own, AgentEvent::TurnFailed { .. }), "{failure}");
    }
}

#[test]
fn a_subagent_s_own_permission_mode_is_not_the_session_s() {
    for mode in ["plan", "acceptEdits", "bypassPermissions"] {
        let fields = format!(r#""permission_mode":"{mode}","agent_id":"a1""#);
        assert_eq!(parse_mode(body(&fields).as_bytes()), None, "{mode}");
    }
}
