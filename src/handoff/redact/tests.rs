#![allow(clippy::disallowed_methods, reason = "it limits real time")]

use std::{fs, path::Path, time::Instant};

use proptest::prelude::*;

use super::*;

/// Random text that is the same in every run; keys in a source file would set off every scanner there is.
struct Lots(u64);

impl Lots {
    fn text(&mut self, alphabet: &str, length: usize) -> String {
        let alphabet: Vec<char> = alphabet.chars().collect();
        (0..length)
            .map(|_| {
                self.0 = self
                    .0
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                alphabet[(self.0 >> 33) as usize % alphabet.len()]
            })
            .collect()
    }
}

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const URL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
const HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// Five secrets of each kind: the kind, the text around it, and the part that must not be left.
fn planted() -> Vec<(&'static str, String, String)> {
    let mut found = Vec::new();
    for round in 0..5 {
        let mut lots = Lots(1_000 + round);
        let mut plant = |kind, around: &str, prefix: &str, alphabet: &str, length| {
            let body = lots.text(alphabet, length);
            found.push((
                kind,
                around.replace("{}", &format!("{prefix}{body}")),
                body[body.len() / 2..].to_owned(),
            ));
        };
        plant("anthropic", "the key is {}.", "sk-ant-api03-", URL, 93);
        plant("openai", "{}", "sk-", ALNUM, 48);
        plant("openai project", "OPENAI={}", "sk-proj-", URL, 100);
        plant("aws id", "aws_access_key_id = {}", "AKIA", UPPER, 16);
        plant(
            "aws secret",
            "aws_secret_access_key = {}",
            "",
            &format!("{ALNUM}+/"),
            40,
        );
        plant(
            "github",
            "git clone https://{}@example.org/a/b",
            "ghp_",
            ALNUM,
            36,
        );
        plant("github oauth", "({})", "gho_", ALNUM, 36);
        plant(
            "github fine",
            "`{}`",
            "github_pat_",
            &format!("{ALNUM}_"),
            82,
        );
        plant("gitlab", "PRIVATE-TOKEN: {}", "glpat-", URL, 20);
        plant(
            "slack",
            "slack: {}\n",
            "xoxb-123456789012-1234567890123-",
            ALNUM,
            24,
        );
        plant("google", "?key={}&x=1", "AIza", URL, 35);
        plant("hugging face", "token={}", "hf_", ALNUM, 34);
        plant(
            "npm",
            "//registry.example.org/:_authToken={}",
            "npm_",
            ALNUM,
            36,
        );
        plant("pypi", "password = {}", "pypi-AgEIcHlwaS5vcmc", URL, 150);
        plant("sendgrid", "\"{}\"", "SG.abcdefghij0123456789_-.", URL, 43);
        plant("stripe", "stripe {}", "sk_live_", ALNUM, 24);
        plant("bearer", "curl -H 'X: Bearer {}'", "", URL, 40);
        plant("authorization", "Authorization: Basic {}", "", ALNUM, 32);
        plant(
            "pem",
            "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
            "",
            ALNUM,
            300,
        );
        plant(
            "jwt",
            "jwt {}",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.",
            URL,
            43,
        );
        plant(
            "env",
            "export DB_PASSWORD={}\n",
            "",
            "abcdefghijklmnopqrstuvwxyz",
            12,
        );
        plant("json", "{\"client_secret\": \"{}\"}", "", ALNUM, 32);
        plant(
            "high entropy",
            "SESSION_SALT={}\n",
            "",
            &format!("{ALNUM}+/"),
            44,
        );
        plant(
            "url",
            "postgres://ada:{}@db.example.org:5432/app",
            "",
            HEX,
            16,
        );
    }
    found
}

#[test]
fn planted_secrets_are_masked() {
    let planted = planted();
    assert_eq!(planted.len(), 120);
    let missed: Vec<_> = planted
        .iter()
        .filter(|(_, text, rest)| redact(text).contains(rest.as_str()))
        .map(|(kind, text, _)| format!("{kind}: {text}"))
        .collect();
    assert!(
        missed.len() <= 2,
        "{} missed:\n{}",
        missed.len(),
        missed.join("\n")
    );
}

#[test]
fn a_mask_keeps_what_is_needed_to_recognise_the_secret() {
    let body = Lots(7).text(ALNUM, 36);
    for (raw, masked) in [
        (format!("use ghp_{body} here"), "use ghp_…[masked] here"),
        ("PASSWORD=hunter2\n".to_owned(), "PASSWORD=…[masked]\n"),
        ("DB_PASS='correct-horse-9'".to_owned(), "DB_PASS='c…[masked]'"),
        ("redis://:s3cr3tpw99@h/0".to_owned(), "redis://:s…[masked]@h/0"),
        (format!("Authorization: Bearer {}", Lots(9).text(ALNUM, 20)), "Authorization: Bearer hwqY…[masked]"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nQwErTy12\n-----END PRIVATE KEY-----\nnext".to_owned(),
         "-----BEGIN PRIVATE KEY-----\nMIIE…[masked]\n-----END PRIVATE KEY-----\nnext"),
    ] {
        let found = redact(&raw);
        let (found, masked) = (found.as_ref(), masked);
        if masked.contains("hwqY") {
            assert!(found.starts_with("Authorization: Bearer ") && found.ends_with(MASK), "{found}");
        } else {
            assert_eq!(found, masked);
        }
    }
}

#[test]
fn ordinary_text_is_left_alone() {
    for text in [
        "let token = self.next_token()?;",
        "key: &str, value: Option<String>",
        "password: String,",
        "const KEY: &str = \"scratchpad\";",
        "token = \"utf8-to-utf16-v2\"",
        "MAX_TOKENS=200000",
        "KEY_SIZE=4096",
        "PASSWORD=$(cat file)",
        "TOKEN=${TOKEN}",
        "API_KEY=<your key>",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "checksum = \"9b2b1c5e2b1f0a3d7f4cc1bb2e21ad3c1cc6a5b0b4a76d8e9f0011223344556f\"",
        "0a0b0c0d-0001-4002-8003-000000000004",
        "sk-some-long-class-name-of-a-stylesheet",
        "https://user:password@example.org/",
        "https://example.org/a:b@c",
        "Bearer authentication is described elsewhere in this document",
        "Authorization: Bearer <token>",
        "eyJ is how JSON in base64 begins",
        "the AKIA prefix, the ghp_ prefix",
        "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END CERTIFICATE-----",
        "key = \"2024-01-01T10:00:00Z\"",
        "auth: v2",
        "PATH=/usr/local/bin:/usr/bin",
        "RUSTFLAGS=-Ctarget-cpu=native",
        "漢字 KEY=値 🚀",
    ] {
        assert_eq!(redact(text), text);
        assert!(matches!(redact(text), Cow::Borrowed(_)));
    }
}

#[test]
fn our_own_source_has_nothing_to_mask() {
    fn walk(directory: &Path, sink: &mut impl FnMut(&Path, &str)) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, sink);
            } else if let Ok(text) = fs::read_to_string(&path) {
                sink(&path, &text);
            }
        }
    }
    let mut masked = Vec::new();
    let mut bytes = 0;
    walk(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut |path, text| {
            bytes += text.len();
            // Its examples are meant to look like secrets.
            if !path.to_string_lossy().contains("redact") {
                let found = secrets(text)
                    .into_iter()
                    .map(|one| format!("{}: {}", path.display(), &text[one]));
                masked.extend(found);
            }
        },
    );
    assert!(bytes > 1_000_000);
    assert!(
        masked.len() <= 3,
        "{} masks in {bytes} bytes:\n{}",
        masked.len(),
        masked.join("\n")
    );
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the time is what is tested")]
fn hostile_text_takes_linear_time() {
    let unit = 1 << 18;
    for text in [
        "=".repeat(unit),
        "KEY=".repeat(unit / 4),
        "-----BEGIN PRIVATE KEY-----\n".repeat(unit / 28),
        format!("-----BEGIN PRIVATE KEY-----{}", "A".repeat(unit)),
        "-----BEGIN PRIVATE KEY-----A-A".repeat(unit / 30),
        "a://b:c@".repeat(unit / 8),
        "://".repeat(unit / 3),
        "sk-ant-".repeat(unit / 7),
        "eyJ.".repeat(unit / 4),
        "eyJhbGciOiJIUzI1.".repeat(unit / 17),
        "eyJ-".repeat(unit / 4),
        "SG.".repeat(unit / 3),
        "Bearer ".repeat(unit / 7),
        format!("{} ", "KEY=".repeat(127)).repeat(unit / 512),
        "token:\"".repeat(unit / 7),
        "token: ".to_owned() + &"x".repeat(unit),
        " ".repeat(unit),
        "漢".repeat(unit / 3),
    ] {
        let began = Instant::now();
        let masked = redact(&text).into_owned();
        let took = began.elapsed();
        let start: String = text.chars().take(12).collect();
        // Linear is tens of milliseconds unoptimised; quadratic is minutes.
        assert!(took.as_secs() < 20, "{start}: {took:?}");
        assert_eq!(redact(&masked), masked, "{start}");
    }
}

proptest! {
    #[test]
    fn masking_twice_changes_nothing(text in "(KEY|TOKEN|password|secret|=|: |\"|'|\n| |Bearer |://|@|:|-----BEGIN PRIVATE KEY-----|-----END PRIVATE KEY-----|sk-ant-|ghp_|eyJ|\\.|[A-Za-z0-9+/]{4,40}|…|\\[masked\\]|é|\\$|\\{|\\\\n){0,30}") {
        let once = redact(&text).into_owned();
        let twice = redact(&once).into_owned();
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn any_text_stays_text(text in any::<String>()) {
        let once = redact(&text).into_owned();
        prop_assert_eq!(redact(&once).into_owned(), once);
    }
}
