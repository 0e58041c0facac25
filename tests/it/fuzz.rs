//! The checks of `cargo fuzz` for a moment: pieces of what programs send, and noise (see `fuzz/README.md`).

pub mod checks;

use std::{fs, path::Path};

use proptest::prelude::*;

use crate::ui::scene;

/// Pieces of what programs send, and noise.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let text = |text: &str| text.as_bytes().to_vec();
    prop_oneof![
        any::<Vec<u8>>(),
        "[ -~]{0,40}".prop_map(String::into_bytes),
        "[日🎉e\u{301}\u{200d}\u{fe0f}\u{fe0e}👨⚠🇩\u{1f3fd}]{0,12}".prop_map(String::into_bytes),
        "[\r\n\t\x08\x0e\x0f]{1,4}".prop_map(String::into_bytes),
        (0_u16..120, 0_u16..120, "[@-~]")
            .prop_map(|(a, b, end)| format!("\x1b[{a};{b}{end}").into_bytes()),
        (
            prop::sample::select(vec![
                1, 3, 6, 7, 25, 47, 1000, 1003, 1006, 1047, 1048, 1049, 2004, 2026, 2031
            ]),
            "[hl]"
        )
            .prop_map(|(mode, end)| format!("\x1b[?{mode}{end}").into_bytes()),
        "\x1b[\\](P_^X#()78cDEHMZ=>][ -~]{0,10}(\x07|\x1b\\\\)?".prop_map(String::into_bytes),
        prop::sample::select(vec![
            text("\x1b[4:3;58:2::1:2:3;38;2;9;8;7m"),
            text("\x1b]8;id=1;https://example.org/\x1b\\link\x1b]8;;\x1b\\"),
            text("\x1b]8;;javascript:x\x1b\\bad\x1b]8;;\x1b\\"),
            text("\x1b[>q\x1b[6n\x1b[c\x1b[?u\x1b]11;?\x07\x1bP$qm\x1b\\\x1bP+q544e\x1b\\"),
            text("\x1b]2;a title\x07\x1b]9;said\x07"),
            text("\x1b[2J\x1b[H"),
            text("\x1b[65535b"),
            text("\x1b[!p"),
        ]),
    ]
}

/// Pieces behind some bytes that choose.
fn stream(chosen: usize) -> impl Strategy<Value = Vec<u8>> {
    let head = prop::collection::vec(any::<u8>(), chosen);
    let body = prop::collection::vec(piece(), 0..10);
    (head, body).prop_map(|(head, body)| [head, body.concat()].concat())
}

/// Something else that happens: its mark, its number and what it takes.
fn event() -> impl Strategy<Value = Vec<u8>> {
    (any::<u8>(), prop::collection::vec(any::<u8>(), 0..4))
        .prop_map(|(which, rest)| [vec![checks::frame::MARK, which], rest].concat())
}

fn session() -> impl Strategy<Value = Vec<u8>> {
    let head = prop::collection::vec(any::<u8>(), 3);
    let body = prop::collection::vec((piece(), event()), 0..8);
    (head, body).prop_map(|(mut all, body)| {
        for (text, event) in body {
            all.extend(text);
            all.extend(event);
        }
        all
    })
}

/// What a user's terminal sends, and noise.
fn typed() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        any::<Vec<u8>>(),
        "\\PC{0,6}".prop_map(String::into_bytes),
        "\x1b[\\[O\\]P_]?[ -~]{0,8}".prop_map(String::into_bytes),
        "\x1b\\[[0-9:;<?]{0,9}[@-~]".prop_map(String::into_bytes),
        "\x1b\\[200~[ -~\r\n\t\x1b]{0,20}(\x1b\\[201~)?".prop_map(String::into_bytes),
    ];
    let head = prop::collection::vec(any::<u8>(), 5);
    let body = prop::collection::vec(piece, 0..10);
    (head, body).prop_map(|(head, body)| [head, body.concat()].concat())
}

fn model(host: (u16, u16)) -> pitstop_core::app::Model {
    scene::beginning(host, "")
}

/// So many cases, or as many as `PITSTOP_TEST_CASES` asks for.
fn cases(usual: u32) -> ProptestConfig {
    let asked = std::env::var("PITSTOP_TEST_CASES").ok();
    ProptestConfig::with_cases(asked.map_or(usual, |count| count.parse().expect("a number")))
}

proptest! {
    // A case is some twenty frames, each painted several times.
    #![proptest_config(cases(32))]

    #[test]
    fn any_bytes_make_a_frame_that_holds(data in stream(4)) {
        checks::frame::bytes(&data, model);
    }

    #[test]
    fn any_session_makes_frames_that_hold(data in session()) {
        checks::frame::session(&data, model);
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn any_keys_are_said_in_the_childs_language(data in typed()) {
        checks::keys::check(&data);
    }

    #[test]
    fn any_bytes_are_answered_in_a_closed_grammar(data in stream(3)) {
        checks::replies::check(&data);
    }

    #[test]
    fn any_text_is_read_without_a_panic(data in any::<Vec<u8>>(), json in "[{}\\[\\]\",:a-z0-9=\n\\\\.]{0,80}") {
        for data in [&data[..], json.as_bytes()] {
            checks::texts::transcript(data);
            checks::texts::hook(data);
            checks::texts::config(data);
        }
    }
}

/// What the fuzzer has found once, and the seeds it began with.
#[test]
fn all_seeds_of_the_fuzzer_hold() {
    type Check = fn(&[u8]);
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds");
    let targets: [(&str, Check); 7] = [
        ("frame", |data| checks::frame::bytes(data, model)),
        ("session", |data| checks::frame::session(data, model)),
        ("keys", checks::keys::check),
        ("replies", checks::replies::check),
        ("transcript", checks::texts::transcript),
        ("hook", checks::texts::hook),
        ("config", checks::texts::config),
    ];
    for (target, check) in targets {
        let mut count = 0;
        for seed in fs::read_dir(seeds.join(target)).expect("seeds") {
            let path = seed.expect("a seed").path();
            eprintln!("{}", path.display());
            check(&fs::read(path).expect("a seed"));
            count += 1;
        }
        assert!(count > 0, "no seeds for {target}");
    }
}
