//! What programs write for us: transcripts, hooks' JSON, configuration.

use pitstop_agent::{claude, parse_hook, parse_status_line};
use pitstop_core::config::{Config, error::Style};
use pitstop_transcript::{
    SessionId, Tokens,
    commands::CommandReader,
    trim::{Survey, TrimSettings},
    usage::UsageScan,
};

use super::Input;

/// A transcript, read by all that read one.
pub fn transcript(data: &[u8]) {
    let mut input = Input(data);
    let (seed, recent) = (input.byte(), input.byte());
    let bytes = input.0;
    let mut scan = UsageScan::default();
    for line in bytes.split(|byte| *byte == b'\n') {
        scan.feed_line(line);
    }
    let mut whole = CommandReader::new(4);
    whole.push(bytes);
    let mut parts = CommandReader::new(4);
    for piece in input.pieces(seed) {
        parts.push(piece);
    }
    let (whole, parts) = (whole.finish(), parts.finish());
    assert_eq!(whole.records(), parts.records());
    let settings = TrimSettings {
        compact_line: Tokens(u64::from(seed) * 64),
        max_recent_messages: recent.into(),
    };
    let Ok(survey) = Survey::read(bytes) else {
        return;
    };
    let plan = survey.plan(&settings);
    assert!(plan.levels.is_sorted_by_key(|level| level.responses));
    let session = SessionId::new(uuid::Uuid::from_u128(7));
    for percent in [20, 100] {
        let mut copy = Vec::new();
        if let Ok(trimmed) = survey.write(bytes, percent, session, &settings, &mut copy) {
            Survey::read(&copy[..]).expect("a copy that can be read");
            assert!(trimmed.figure.tokens_after <= trimmed.figure.tokens_before);
        }
    }
}

/// A hook's payload and a status line's.
pub fn hook(data: &[u8]) {
    let mut input = Input(data);
    let (known, at) = (claude::EVENTS.len(), usize::from(input.byte()));
    let event = claude::EVENTS.get(at % (known + 1)).unwrap_or(&"Unknown");
    let _ = parse_hook(event, input.0);
    let _ = parse_status_line(input.0);
}

/// A configuration file, the user's and a project's.
pub fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Err(errors) = Config::from_toml("config.toml", text) {
        assert!(!errors.faults.is_empty());
        for style in [Style::Plain, Style::Colour] {
            let reported = errors.render(style);
            assert!(!reported.is_empty());
        }
    }
    let _ = Config::from_project_toml("config.toml", text);
}
