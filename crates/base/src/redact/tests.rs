#![allow(clippy::disallowed_methods, reason = "it limits real time")]

use std::{collections::BTreeSet, fs, path::Path, time::Instant};

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};

use super::{
    planted::{ALNUM, HEX, Random, planted},
    *,
};

#[test]
fn planted_secrets_are_masked() {
    let planted = planted();
    assert_eq!(planted.len(), 425);
    let missed: Vec<_> = planted
        .iter()
        .filter(|(_, text, rest)| redact(text).contains(rest.as_str()))
        .map(|(kind, text, _)| format!("{kind}: {text}"))
        .collect();
    assert!(
        missed.is_empty(),
        "{} missed:\n{}",
        missed.len(),
        missed.join("\n")
    );
}

#[test]
fn every_token_is_masked_and_what_is_shorter_or_of_one_letter_is_not() {
    for (prefix, kind, set, least) in patterns::TOKENS {
        let letter = |c: &char| set.has(*c as u8);
        let alphabet: String = (' '..='~').filter(letter).collect();
        let body = Random(11).text(&alphabet, least);
        let masked = redact(&format!("({prefix}{body})")).into_owned();
        assert!(masked.ends_with(&format!("{MASK}{kind}])")), "{masked}");
        let only = alphabet.chars().find(char::is_ascii_alphabetic).unwrap();
        for other in [only.to_string().repeat(least), body[..least / 3].to_owned()] {
            let text = format!("({prefix}{other})");
            assert_eq!(redact(&text), text);
        }
    }
}

#[test]
fn seeds_and_codes_that_open_something_are_masked_and_others_are_not() {
    for secret in [
        "TOTP_SEED=JBSWY3DPEHPK3PXP",
        "wallet_seed: 9fA3kQ7zLm2Xw8Rt5Vb1",
        "masterSeed = \"aB3dE5gH7jK9mN1pQ3sT\"",
        "PIN_CODE=4711",
        "\"pinCode\": \"047112\"",
        "sim_pin: 4711",
        "the passcode is 90210342",
        "WIFI_PSK=correct7horse",
        "DB_CREDS=Tr0ub4dor3x",
        "recovery phrase: tree lamp ocean rib salt moon cup fox gate hill ink jar",
    ] {
        assert!(redact(secret).contains(MASK), "{secret}");
    }
    for open in [
        "SEED=20261121",
        "PROPTEST_RNG_SEED=20261121",
        "RANDOM_SEED=0x9f3ab2c4d5e6f708",
        "seed: 9f3ab2c4d5e6f7089f3ab2c4d5e6f7089f3ab2c4d5e6f7089f3ab2c4d5e6f708",
        "DB_SEED=users.sql",
        "LED_PIN=1337",
        "pin: 1234",
        "OTP 27.1234",
        "exit_code: 1234",
        "status code 4711",
        "PAT=src/a.rs",
        "HMAC=SHA256",
        "the seed phrase is what opens a wallet, and nobody should have it in a file of the project",
        "zip_code: 90210",
    ] {
        assert_eq!(redact(open), open);
    }
}

#[test]
fn a_token_behind_another_prefix_is_masked() {
    let token = format!("pypi-a-ghp_{}", Random(7).text(ALNUM, 36));
    assert!(redact(&token).ends_with(&format!("{MASK}GitHub token]")));
}

#[test]
fn every_pattern_masks_its_example_and_leaves_its_counter_example() {
    for pattern in &patterns::PATTERNS {
        let secret = Random(12).text(ALNUM, 32);
        let masked = redact(&pattern.example.replace('§', &secret)).into_owned();
        let mask = format!("{MASK}{}]", pattern.kind);
        assert!(masked.contains(&mask), "{masked}");
        assert!(!masked.contains(&secret[8..]), "{masked}");
        assert_eq!(redact(pattern.counter), pattern.counter);
    }
}

#[test]
fn a_mask_keeps_what_is_needed_to_recognise_the_secret() {
    let body = Random(7).text(ALNUM, 36);
    for (raw, masked) in [
        (format!("use ghp_{body} here"), "use ghp_…[masked GitHub token] here"),
        ("PASSWORD=hunter2\n".to_owned(), "PASSWORD=…[masked password]\n"),
        ("DB_PASS='correct-horse-9'".to_owned(), "DB_PASS='c…[masked password]'"),
        ("redis://:s3cr3tpw99@h/0".to_owned(), "redis://:s…[masked password]@h/0"),
        (format!("Authorization: Bearer {}", Random(9).text(ALNUM, 20)), "Authorization: Bearer hwqY…[masked bearer token]"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nQwErTy12\n-----END PRIVATE KEY-----\nnext".to_owned(),
         "-----BEGIN PRIVATE KEY-----\nMIIE…[masked private key]\n-----END PRIVATE KEY-----\nnext"),
    ] {
        let found = redact(&raw);
        let (found, masked) = (found.as_ref(), masked);
        if masked.contains("hwqY") {
            assert!(found.starts_with("Authorization: Bearer ") && found.ends_with("[masked bearer token]"), "{found}");
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
        "export API_KEY=your-api-key",
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
        "mysql -p shop",
        "mysql -p$MYSQL_PASSWORD shop",
        "curl -u ada https://example.org",
        "curl -u \"$USER:$TOKEN\" https://example.org",
        "sshpass -p <password> ssh host",
        "sshpass -p \"$PASS\" ssh host",
        "redis-cli -a \"$(cat key)\" ping",
        "docker login -u ada --password-stdin registry.example.org",
        "the --password option, and --password=…",
        "give it --password or --password-file",
        "`--password PASSWORD`, `--password <X>`, `--passwd=$X`",
        "PWD=/home/ada bypass=true",
        "cp -p mysql.cnf /etc",
        "key: 0a0b0c0d-0001-4002-8003-000000000004",
        "session=0a0b0c0d-0001-4002-8003-000000000004",
        "cache-key: linux-cargo-3f786850e387550fdab836ed7e6dc881de23001b",
        "public_key = \"9MHhTqvL3bXk0Zr7Wc5yUd2Fe8Gj1Ap4SnOiQm6BxKs=\"",
        "PublicKeyToken=b77a5c561934e089",
        "  integrity sha512-9MHhTqvL3bXk0Zr7Wc5yUd2Fe8Gj1Ap4SnOiQm6BxKs==",
        "uses: actions/checkout@3f786850e387550fdab836ed7e6dc881de23001b",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGx7kTqvL3bXk0Zr7Wc5yUd2Fe8Gj1Ap4S ada@box",
        "key: AbstractSingletonProxyFactoryBean2",
        "docker login && mkdir -p sources/new",
        "docker run -p 5432:5432 postgres:15",
        "brew install mongodb; mkdir -p /data/db",
        "src/a.rs:12:5:error:unused1",
        "the password is required, and pass: 12, fail: 0",
        "connect(user=a,password=read_password())",
        "machine learning login page password reset",
    ] {
        assert_eq!(redact(text), text);
        assert!(matches!(redact(text), Cow::Borrowed(_)));
    }
}

#[test]
fn a_value_that_is_apart_from_its_name_is_masked() {
    let hex = Random(5).text("0123456789abcdef", 32);
    for text in [
        "- name: DB_PASSWORD\n  value: §",
        "- name: SMTP_PASS\n  value: \"§\"",
        "{\"name\": \"DB_PASSWORD\", \"value\": \"§\"}",
        "{\\\"Name\\\":\\\"APP_SECRET\\\",\\\"Value\\\":\\\"§\\\"}",
        "\"password\": {\"type\": \"string\", \"value\": \"§\"}",
        "os.Setenv(\"DB_PASSWORD\", \"§\")",
        "define( 'DB_PASSWORD', '§' );",
        "source.setPassword(\"§\");",
        "<password>§</password>",
        "<add key=\"DbPassword\" value=\"§\"/>",
        "| DB_PASSWORD | § |",
        "| `smtp password` | `§` |",
        "ALTER USER ada IDENTIFIED BY \"§\"",
        "the password \"§\" works",
        "the password was changed to §.",
        "new password (§)",
        "pw: §",
        "パスワードは § です",
        "密码是§",
        "비밀번호는 § 입니다",
        "пароль от базы: §",
        "das Kennwort lautet §",
        "het wachtwoord is §",
        "hasło do bazy to §",
        "รหัสผ่านคือ §",
    ] {
        for secret in ["Tr0ub4dor9xK2m", "k9Tz4QwX7mB2", "QxVbKpZ7LWdRmYtB"] {
            let masked = redact(&text.replace('§', secret)).into_owned();
            assert!(!masked.contains(&secret[4..]), "{masked}");
        }
    }
    for text in [
        "SetEnvironmentVariable(\"API_KEY\", \"§\")",
        "let apiKey: String = \"§\"",
        "{\"Name\": \"API_TOKEN\", \"Value\": \"§\"}",
        "the API key is §",
        "my access token for it is §",
        "| ENCRYPTION_KEY | § |",
    ] {
        let masked = redact(&text.replace('§', &hex)).into_owned();
        assert!(!masked.contains(&hex[8..]), "{masked}");
    }
    for (name, secret) in [("DB_PASSWORD", "Tr0ub4dor9"), ("API_KEY", &hex)] {
        let pair = serde_json::json!({ "name": name, "value": secret });
        assert!(!json(&pair.to_string()).contains(secret));
        assert!(!value(&pair).to_string().contains(secret));
    }
}

#[test]
fn passwords_in_urls_commands_and_cookies_are_masked() {
    for text in [
        "kubectl create secret generic db --from-literal=password=sunflower",
        "kubectl create secret generic db --from-literal 'api-token=sunflower'",
        "openssl rsa -in k.pem -passin pass:sunflower -out o.pem",
        "openssl pkcs12 -export -passout pass:sunflower",
        "redis://:k9Tz4/QwX7mB2v@cache",
        "mysql://root:Zx8K/q1Wv7+Tz4@db/app",
        "postgres://ada:aB/cD9x7Kq@db.example.org:5432/app",
        "SSHPASS=sunflower9 sshpass -e ssh h",
        "export SMTPPASS=sunflower9",
        "ansible-playbook a.yml -e 'ansible_become_pass=Tr0ub4dor9'",
        "curl -b 'PHPSESSID=k9tz4qwx7mb2vl8pk9tz4qwx7m' https://h",
        "curl --cookie JSESSIONID=7F3A9C2E5B8D1F4A6C0E9B2D7F3A9C2E https://h",
        "Cookie: a=b; sessionid=k9tz4qwx7mb2vl8pk9tz4qwx7m",
        "sqlcmd -S db -U sa -P 'Tr0ub4dor!x' -Q 'select 1'",
        "cqlsh -u ada -p Tr0ub4dor9 db",
        "twine upload -u ada -p sunflower dist/*",
        "mosquitto_pub -u ada -P sunflower -t x",
        "ipmitool -H h -U ada -P Tr0ub4dor9 power status",
        "openssl enc -aes-256-cbc -k Tr0ub4dor9 -in a",
        "ssh-keygen -t ed25519 -N 'Tr0ub4dor9' -f k",
        "unrar x -pTr0ub4dor9 a.rar",
        "sqlplus scott/Tr0ub4dor9@//db:1521/x",
        "redis-cli AUTH Tr0ub4dor9",
        "rabbitmqctl add_user ada Tr0ub4dor9",
        "echo 'ada:Tr0ub4dor9' | chpasswd",
        "echo ada:sunflower | sudo chpasswd",
        "echo -n sunflower | gh secret set DB_PASSWORD",
        "gh secret set DB_PASSWORD --body 'Tr0ub4dor9'",
        "aws secretsmanager create-secret --name db --secret-string Tr0ub4dor9",
        "aws ssm put-parameter --name /db/x --value=Tr0ub4dor9 --type SecureString",
        "vault login s.k9Tz4QwX7mB2vL8pR3nY5jHd",
    ] {
        let masked = redact(text).into_owned();
        assert!(masked.contains(MASK), "{masked}");
        for rest in [
            "b4dor", "flower", "X7mB2v", "q1Wv7", "9x7Kq", "mb2vl8p", "5B8D1F",
        ] {
            assert!(!masked.contains(rest), "{masked}");
        }
    }
    for text in [
        "kubectl create configmap app --from-literal=LOG_LEVEL=debug",
        "openssl rsa -in k.pem -passin env:KEY_PASS",
        "the tests pass: 12 of 12",
        "git+ssh://git@github.com:owner/Repo2aB3c@v1",
        "https://localhost:8080/path@v1, http://host:3000/@vite/Client2A3b",
        "docker://registry.example:5000/img@sha256:9b2b1c5e",
        "pkg://scope:pkg/name@1.0.0 s3://bucket:key/path@version https://example.org/a:b/c@d",
        "BYPASS=enabled MONGOCOMPASS=north-west OLDPWD=/home/ada",
        "sessionId: k9tz4qwx7mb2vl8pk9tz4qwx7m",
        "SESSIONID=0a0b0c0d-0001-4002-8003-000000000004",
        "cargo run -p pitstop-base --profile Release2Debug -k TestUtf8String2",
        "mkdir -p Release2Debug && docker run -p 8080:80 -w /app2Go image",
        "gh pr create --body \"Fixes2Bugs in V2\" --value Utf8String2Bytes",
        "login as UserTest2, AUTH LOGIN PLAIN2, echo done | cat secret",
    ] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn a_value_that_is_apart_from_another_name_is_left_alone() {
    for text in [
        "use crate::{verify_password, Pbkdf2Sha256, Argon2Hasher};",
        "[\"password\", \"Argon2Hasher\", \"Base64Encoder\"]",
        "the password field in LoginV2Form is required",
        "parseToken(\"Utf8Parser16LE\"), the key is parseUtf8String2",
        "rotate the API key\n3f786850e387550fdab836ed7e6dc881de23001b fix it",
        "3f786850e387 drop the password\n7e6dc881de23 fix the token",
        "gpg: key 3AA5C34371567BD2: imported, signing key 4AEE18F83AFDEB23",
        "deploy key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGx7kTqvL3bXk0Zr7Wc5yUd2Fe8Gj1Ap4S",
        "-----BEGIN SSH SIGNATURE-----\nU1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgZx8Kq1Wv7Tz4",
        "/js-token@4.0.0:\n    resolution: {integrity: sha512-RdJUflcE3cUzKiMqQgsCu06FPu9UdIJO0beYbPhHN4k6==}",
        "{\"name\": \"token\", \"value\": \"parseUtf8String2\"}",
        "{\"key\": \"image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQ\"}",
        "- name: KEY_VERSION\n  value: v1.2.3-rc4",
        "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      name: Db2Secret4Prod",
        "| password | varchar(255) | utf8mb4_unicode_ci |",
        "<password>${DB_PASSWORD}</password>",
        "password: add Sha3Hash512, type('Password', 'HTML5Input2')",
        "password reset on 2024-01-01T10:00:00Z, it expires in 12h30m15s",
        "the primary key is k9Tz4QwX7mB2vL8p, the public key k9Tz4QwX7mB2vL8p",
        "they pass on Python3To2, pass the Int32To64 option",
        "getByLabelText(\"Password\").type('HTML5Input2')",
        "the token toolu_01A2b3C4d5E6f7G8h9I0j1K2 is an id",
        "密码长度必须大于8位, パスワードは必須です",
    ] {
        assert_eq!(redact(text), text);
        assert_eq!(json(text), text);
    }
    let field = "{\"name\": \"password\", \"value\": \"Utf8String\"}";
    assert_eq!(redact(field), field);
}

#[test]
fn masks_are_counted_by_kind() {
    assert_eq!(masks("nothing here"), None);
    assert_eq!(masks("a mask looks like …[masked so and so]"), None);
    let text = redact("A_PASSWORD=hunter2 B_PASSWORD=hunter3 a://b:hunter4@c").into_owned();
    assert_eq!(
        masks(&text).as_deref(),
        Some("3 secrets are masked: password (3)")
    );
    let text = format!("{text} ghp_{}", Random(7).text(ALNUM, 36));
    assert_eq!(
        masks(&redact(&text)).as_deref(),
        Some("4 secrets are masked: password (3), GitHub token")
    );
    let one = masks(&redact("TOKEN=abcdefgh")).expect("a mask");
    assert_eq!(one, "1 secret is masked: secret");
}

#[test]
fn json_stays_json() {
    let secret = Random(3).text(ALNUM, 32);
    let value = serde_json::json!({
        "text": format!("first\nPGPASSWORD=hunter2\t\"quoted\" {secret}"),
        "db_password": secret,
        "API_TOKEN": "quite-simple",
        "list": ["postgres://ada:a\\nb@host", {"client_secret": secret}],
        "count": 3, "plain": "PWD=/home é \\ \" end", "key": "F5",
    });
    for text in [
        value.to_string(),
        format!("{value:#}"),
        format!("{value}\n{value}\n"),
    ] {
        let masked = json(&text).into_owned();
        let lines = if text.ends_with('\n') {
            masked.lines().next().expect("a line")
        } else {
            masked.as_str()
        };
        let read: serde_json::Value = serde_json::from_str(lines).expect("JSON");
        assert_eq!(read["count"], 3);
        assert_eq!(read["plain"], value["plain"]);
        assert_eq!(read["key"], value["key"]);
        for hidden in ["hunter2", "quite-simple", "a\\\\nb"] {
            assert!(!masked.contains(hidden), "{hidden}: {masked}");
        }
        // It is shown once, where neither a shape nor a name marks it as a secret.
        let shown = masked.matches(secret.as_str()).count();
        assert_eq!(
            shown,
            text.lines().filter(|line| line.contains("quoted")).count(),
            "{masked}"
        );
        assert_eq!(json(&masked), masked, "once is enough");
    }
    for text in [
        "",
        "{",
        "\"",
        "\"\\",
        "{\"a\": \"\\x\"}",
        "plain \"text\" here",
        "[\"é\"]",
    ] {
        assert_eq!(json(text), text);
    }
}

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

fn is_of_masking(root: &Path, path: &Path) -> bool {
    let path = path.strip_prefix(root).unwrap();
    path.to_string_lossy().contains("redact")
}

/// Returns the names of the fields and the texts in quotes that may be names, in our own source.
fn names_of_our_own() -> BTreeSet<String> {
    let field = Regex::new(r#"(?m)^ +(?:pub(?:\([a-z]+\))? )?([a-z_]+): |"([A-Za-z_]{2,40})\\?":"#)
        .unwrap();
    let mut names = BTreeSet::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for directory in ["src", "crates"] {
        walk(&root.join(directory), &mut |path, text| {
            if is_of_masking(&root, path) {
                return;
            }
            let found = field.captures_iter(text.as_bytes());
            let found = found.filter_map(|one| last_group(&one).map(|name| name.range()));
            names.extend(found.map(|range| text[range].to_owned()));
        });
    }
    names
}

/// Returns a strategy for what pitstop stores: ids of sessions, calls, messages and requests, models, paths and moments, and
/// hashes, which no name of a secret has.
fn stored_values(may_be_hash: bool) -> impl Strategy<Value = String> {
    let hash = if may_be_hash {
        "[0-9a-f]{7,12}|[0-9a-f]{40}|sha256:[0-9a-f]{64}"
    } else {
        "F[1-9]"
    };
    let ids = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}|toolu_01[A-Za-z0-9]{22}|msg_01[A-Za-z0-9]{22}|req_011C[A-Za-z0-9]{20}";
    let models = "claude-(opus|sonnet|haiku)-[3-5](-[0-9])?-202[4-6]1[0-2][0-2][0-9](\\[1m\\])?";
    let paths = "/home/[a-z]{3,8}/(src|\\.claude/projects/-home-ada-x)/[a-z_-]{1,40}\\.(rs|jsonl)";
    let moments = "2026-1[0-2]-0[1-9]T0[0-9]:[0-5][0-9]:[0-5][0-9]\\.[0-9]{3}Z|[0-9]{1,13}";
    proptest::string::string_regex(&format!("({hash}|{ids}|{models}|{paths}|{moments})")).unwrap()
}

#[test]
fn what_is_stored_under_our_own_names_is_left_alone() {
    let names = names_of_our_own();
    assert!(names.len() > 500, "{}", names.len());
    for known in [
        "session",
        "old_session",
        "session_id",
        "request_id",
        "tool_use_id",
        "commit",
    ] {
        assert!(names.contains(known), "{known}");
    }
    let mut runner = TestRunner::deterministic();
    let (any, none_in_hex) = (stored_values(true), stored_values(false));
    for name in &names {
        // They hold secrets.
        if ["token", "cookie", "db_password"].contains(&name.as_str()) {
            continue;
        }
        let is_secret = is_secret_name(name);
        for _ in 0..if is_secret { 200 } else { 2 } {
            let tree = if is_secret {
                none_in_hex.new_tree(&mut runner)
            } else {
                any.new_tree(&mut runner)
            };
            assert_left_alone(name, &tree.unwrap().current());
        }
    }
}

/// Checks that a value stays in a record, in a record within a text, and in a text.
fn assert_left_alone(name: &str, value: &str) {
    let record = serde_json::json!({ "key": "F5", name: value, "content": [{ name: value }] });
    let line = record.to_string();
    assert_eq!(json(&line), line);
    assert_eq!(redact(&line), line);
    assert_eq!(named(name, value), value);
    let inner = serde_json::json!({ "text": line }).to_string();
    assert_eq!(json(&inner), inner);
    let text = format!("{name}={value} {name}: {value}, {name} {value}\n{name}\n  {value}\n");
    assert_eq!(redact(&text), text);
}

#[test]
fn our_own_source_has_nothing_to_mask() {
    let mut masked = Vec::new();
    let mut bytes = 0;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for directory in ["src", "crates"] {
        walk(&root.join(directory), &mut |path, text| {
            bytes += text.len();
            // Its examples are meant to look like secrets.
            if !is_of_masking(&root, path) {
                let found = secrets(text)
                    .into_iter()
                    .map(|one| format!("{}: {}", path.display(), &text[one.range]));
                masked.extend(found);
            }
        });
    }
    assert!(bytes > 1_000_000);
    assert!(
        masked.len() <= 3,
        "{} masks in {bytes} bytes:\n{}",
        masked.len(),
        masked.join("\n")
    );
}

#[test]
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
        "curl ".repeat(unit / 5),
        "mysql -p".repeat(unit / 8),
        format!("curl{}", " -u".repeat(unit / 3)),
        "--password ".repeat(unit / 11),
        "machine a.b login c password ".repeat(unit / 29),
        format!("machine {}", "a.".repeat(unit / 2)),
        "user=a password=$x ".repeat(unit / 19),
        format!("user=a {}", "b=c ".repeat(unit / 4)),
        "echo a | ".repeat(unit / 9),
        format!("echo sudo{}", " abc".repeat(unit / 4)),
        ";pwd=(".repeat(unit / 6),
        "a:*:b:c:".repeat(unit / 8),
        format!("-D{}password", "a".repeat(unit)),
        "--a_".repeat(unit / 4),
        format!("--password {}", "-key ".repeat(unit / 5)),
        "Private-Lines: 1\n".repeat(unit / 17),
        "PASSWORD '".repeat(unit / 10),
        "AKIAAKIAAKIAAKIAAKIA ".repeat(unit / 21),
        "htpasswd -b a b ".repeat(unit / 16),
        "密码：".repeat(unit / 9),
        "sk-a.".repeat(unit / 5),
        "key aB3dE5fG7hI9jK1lM3nO5 ".repeat(unit / 26),
        format!(
            "key: aB3dE5fG7hI9jK1lM3nO5{}",
            "\naB3dE5fG7hI9jK1lM3nO5".repeat(unit / 22)
        ),
        "aB3d+".repeat(unit / 5),
        "\"\\".repeat(unit / 2),
        "漢".repeat(unit / 3),
    ] {
        let began = Instant::now();
        let masked = redact(&text).into_owned();
        let took = began.elapsed();
        let start: String = text.chars().take(12).collect();
        // Linear is tens of milliseconds unoptimised; quadratic is minutes.
        assert!(took.as_secs() < 20, "{start}: {took:?}");
        assert_eq!(redact(&masked), masked, "{start}");
        let _ = json(&text);
        assert!(began.elapsed().as_secs() < 40, "{start}: as JSON");
    }
}

proptest! {
    #[test]
    fn masking_twice_changes_nothing(text in "(machine h.i login a password |PASSWORD '|echo |\\| sudo -S|;Pwd=|user=a password=|h:5432:d:a:|-Dpassword=|密码：|the key is |API_TOKEN   |<token>|\\\\\n|→|&password=|--api-key |curl -u |mysql -p|sshpass -p |--password[= ]|PGPASSWORD=|KEY|TOKEN|password|secret|=|: |\"|'|\n| |Bearer |://|@|:|-----BEGIN PRIVATE KEY-----|-----END PRIVATE KEY-----|sk-ant-|ghp_|eyJ|\\.|[A-Za-z0-9+/]{4,40}|…|\\[masked\\]|é|\\$|\\{|\\\\n){0,30}") {
        let once = redact(&text).into_owned();
        let twice = redact(&once).into_owned();
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn any_names_and_texts_stay_json(
        name in "(\\PC|é|\u{2028}|password|KEY|_){0,24}",
        text in "(\\PC|\"|\\\\|é|\u{2028}|curl -u a:|--password |PASSWORD=|PASSWORD '|the key is |;Pwd=|[a-z0-9]{1,9}){0,24}",
    ) {
        let value = serde_json::json!({&name: text, "list": [&text]});
        let masked = json(&value.to_string()).into_owned();
        let read: serde_json::Value = serde_json::from_str(&masked).expect("JSON");
        prop_assert_eq!(read["list"][0].as_str().map(str::to_owned), Some(redact(&text).into_owned()));
        prop_assert_eq!(json(&masked).into_owned(), masked);
        let _ = (json(&text), named(&name, &text));
    }

    #[test]
    fn any_text_stays_text(text in any::<String>()) {
        let once = redact(&text).into_owned();
        prop_assert_eq!(redact(&once).into_owned(), once);
    }
}

#[test]
fn a_key_that_only_shows_its_beginning_is_a_placeholder() {
    for text in [
        "export GITHUB_TOKEN=ghp_xxxxxxxxxxxx",
        "OPENAI_API_KEY=sk-proj-XXXXXXXXXXXXXXXX",
        "SLACK_TOKEN: xoxb-************",
    ] {
        assert_eq!(redact(text), text);
    }
    let secret = "export GITHUB_TOKEN=ghp_4fQ9xxxx7Kd2";
    assert_ne!(redact(secret), secret);
}

#[test]
fn the_secret_key_of_django_is_masked_wherever_it_is_written() {
    let signs = "abcdefghijklmnopqrstuvwxyz0123456789!@#$%^&*(-_=+)";
    for seed in 1..40 {
        let key = Random(seed).text(signs, 50);
        // One without a bracket or with few signs is found by other rules, or by none.
        if key
            .bytes()
            .filter(|byte| b"!@#$%^&*(=+)".contains(byte))
            .count()
            < 4
        {
            continue;
        }
        for text in [
            format!("SECRET_KEY = '{key}'"),
            format!("SECRET_KEY = \"django-insecure-{key}\""),
            format!("DJANGO_SECRET_KEY={key}\n"),
            format!("SECRET_KEY = os.environ.get('SECRET_KEY', '{key}')"),
            format!("- SECRET_KEY={key}"),
        ] {
            let masked = redact(&text).into_owned();
            assert!(!masked.contains(&key[24..]), "{masked}");
            assert_eq!(redact(&masked), masked);
        }
    }
    for text in [
        "SECRET_KEY = os.environ[\"DJANGO_SECRET_KEY\"]",
        "# === SECRET_KEY =======================================",
        "SECRET_KEY = get_random_secret_key_or_default(settings_module)",
        "SECRET_KEY: str = Field(default_factory=lambda: token_urlsafe(32))",
    ] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn passwords_that_are_set_on_the_line_of_helm_and_terraform_are_masked() {
    for text in [
        "helm upgrade x --set auth.user=ada,auth.rootPassword=sunflower,a=b",
        "helm install x ./chart --set-string db.password=sunflower",
        "helm install x --set auth.rootPassword=sunflower,auth.password=moonflower",
        "helm install x --set a.on=true,b.password=sunflower,c.userPassword=moonflower,d=1",
        "helm install x --set auth.password=$ADMIN,auth.replicationPassword=moonflower",
        "terraform apply -var 'db_password=sunflower'",
        "terraform plan -var=\"db_password=sunflower\"",
        "packer build -var ssh_password=sunflower a.pkr.hcl",
        "export TF_VAR_db_password=sunflower",
        "TF_VAR_admin_passphrase='sunflower' terraform plan",
    ] {
        let masked = redact(text).into_owned();
        assert!(!masked.contains("flower"), "{masked}");
        assert!(masked.contains(MASK), "{masked}");
    }
    for text in [
        "helm upgrade x --set auth.usePassword=true --set a.existingSecret=app-tls",
        "helm upgrade x --set db.password=$DB_PASSWORD",
        "helm upgrade x --set a.b=c,auth.usePassword=true,d.name=e",
        "terraform apply -var region=eu-west-1 -var key_name=deploy",
        "pitstop --set ui.theme=dark status",
    ] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn a_password_of_several_words_in_quotes_is_masked() {
    for text in [
        "SMTP_PASSWORD=\"abcd efgh ijkl mnop\"\n",
        "export BORG_PASSPHRASE='correct horse battery staple'",
        "PGPASSWORD='sun flower' psql -h db",
        "docker run -e 'DB_PASSWORD=\"moon flower\"' image",
    ] {
        let masked = redact(text).into_owned();
        assert!(masked.contains(MASK), "{masked}");
        for rest in ["efgh", "horse", "n flower'", "moon flower"] {
            assert!(!masked.contains(rest), "{masked}");
        }
        assert_eq!(redact(&masked), masked);
    }
    let shown = named("SMTP_PASSWORD", "abcd efgh ijkl mnop");
    assert!(!shown.contains("efgh"), "{shown}");
    for text in [
        "HELP_KEY=\"press any key\"",
        "PASSWORD=\"$(pass show db)\"",
        "PASSWORD=\"<your password>\"",
        "password: \"at least eight characters\"",
        "out.write(\"DB_PASSWORD=\" + password + \" of \" + user)",
    ] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn protocols_ports_and_names_of_sessions_are_left_alone() {
    for text in [
        "gh auth login -p https -h github.com",
        "gh auth login -p ssh --web",
        "wget -q http://localhost:8080/log -a wget:log",
        "curl -s https://example.org | serve -a 0.0.0.0:8080",
        "DESKTOP_SESSION=gnome",
        "TMUX_SESSION=main ZELLIJ_SESSION=work-main",
        "SESSION=dev-server",
    ] {
        assert_eq!(redact(text), text);
    }
    for text in [
        "docker login -p sunflower9 -u ada",
        "http -a ada:sunflower9 GET example.org",
        "https -a ada:sunflower9 example.org",
        "SESSION=k9tz4sunflower9qwx7mb2vl8p",
        "SESSION_SECRET=sunflower9",
    ] {
        let masked = redact(text).into_owned();
        assert!(!masked.contains("flower9"), "{masked}");
    }
}

#[test]
fn the_password_of_a_constant_is_masked_and_its_type_is_not() {
    for text in [
        "environment:\n  POSTGRES_PASSWORD: §\n",
        "      MYSQL_ROOT_PASSWORD: \"§\"",
        "DB_PASSWORD = \"§\"",
        "DB_PASSWORD = §\n",
        "{\"DB_PASSWORD\": \"§\"}",
        "$env:DB_PASSWORD = '§'",
    ] {
        let masked = redact(&text.replace('§', "sunflower7")).into_owned();
        assert!(
            masked.contains(MASK) && !masked.contains("flower7"),
            "{masked}"
        );
    }
    for text in [
        "DB_PASSWORD: string;",
        "DB_PASSWORD: z.string().min(8)",
        "DB_PASSWORD: the password of the base, 8 signs",
        "DB_PASSWORD = os.environ[\"DB_PASSWORD2\"]",
        "DB_PASSWORD: ${DB_PASSWORD2}",
        "the password field, token count 4096, secret santa 2026, api key rotation",
    ] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn a_word_in_base64_is_masked_below_the_name_of_a_secret() {
    // A word without a digit, as `kubectl create secret` writes it.
    let secret = concat!("aHVu", "dGVyTWF", "u", "bg==");
    for text in ["data:\n  password: §\n", "  token: §", "\"apiKey\": \"§\""] {
        let masked = redact(&text.replace('§', secret)).into_owned();
        assert!(!masked.contains(&secret[4..]), "{masked}");
    }
    for text in ["password: Required=", "name: aGVsbG9Xb3JsZA=="] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn words_for_a_password_are_known_without_their_marks() {
    for name in [
        "contrasena",
        "haslo",
        "db_haslo",
        "adgangskode",
        "jelszo",
        "lozinka",
    ] {
        let masked = redact(&format!("{name}: {}{}", "Sommer", "2024")).into_owned();
        assert!(!masked.contains("mmer2024"), "{masked}");
    }
}

#[test]
fn a_private_key_of_pgp_is_masked_below_its_version() {
    let body = format!("{}{}", "lQOYBFQwErTy12Qw", "ErTy12QwErTy12");
    let kind = concat!("PGP PRIVATE ", "KEY BLOCK");
    let text = format!(
        "-----BEGIN {kind}-----\nVersion: GnuPG v2.0.22 (GNU/Linux)\nComment: a, b\n\n{body}\n=AbC1\n-----END {kind}-----"
    );
    let masked = redact(&text).into_owned();
    assert!(!masked.contains(&body[8..]), "{masked}");
}

#[test]
fn the_names_of_tests_that_have_passed_in_go_are_left_alone() {
    for text in [
        "--- PASS: TestApples2 (0.00s)",
        "    --- PASS: TestTable/UTF8ToUTF16V2 (0.00s)",
        "=== RUN   TestApples2\n--- PASS: TestApples2 (0.00s)\nPASS\n",
    ] {
        assert_eq!(redact(text), text);
    }
    let masked = redact("USER: ada, PASS: Tr0ub4dor9").into_owned();
    assert!(!masked.contains("b4dor"), "{masked}");
}

#[test]
fn a_private_key_of_pgp_is_masked_in_json_and_in_numbered_lines() {
    let body = format!("{}{}", "lQOYBFQwErTy12Qw", "ErTy12QwErTy12");
    let kind = concat!("PGP PRIVATE ", "KEY BLOCK");
    let begin = format!("-----BEGIN {kind}-----");
    let end = format!("-----END {kind}-----");
    let lines = [
        &*begin,
        "Version: GnuPG v2.0.22 (GNU/Linux)",
        "",
        &*body,
        "=AbC1",
        &*end,
    ];
    let next = "the next line says that all went well";
    let numbered = lines.iter().zip(1..);
    let numbered: Vec<String> = numbered
        .map(|(line, number)| format!("{number:6}→{line}"))
        .collect();
    for text in [
        format!("{{\"key\":\"{}\"}}\n{next}\n", lines.join("\\n")),
        format!("{{\"key\":\"{}\"}}\n{next}\n", lines.join("\\r\\n")),
        format!("{}\n{next}\n", numbered.join("\n")),
    ] {
        let masked = redact(&text).into_owned();
        assert!(!masked.contains(&body[8..]), "{masked}");
        assert!(masked.contains(next), "{masked}");
    }
}

#[test]
fn a_value_that_is_no_secret_does_not_hold_the_search_up() {
    for text in [
        "fn re_generate_tokensForEveryUserOfTheSite() {}",
        "const re_username_validationPatternOfTheForm = /^[a-z]+$/;",
        "re_abcdefgh_abcdefghijklmnopqrstuvwxyz",
    ] {
        assert_eq!(redact(text), text);
    }
    let text = "re_generate_tokensForEveryUserOfTheSite ".repeat(1 << 12);
    assert_eq!(redact(&text), text);
}

#[test]
fn a_private_key_is_masked_without_its_first_line() {
    let kind = concat!("RSA PRIVATE ", "KEY");
    let lines: Vec<String> = (31..34).map(|seed| Random(seed).text(ALNUM, 64)).collect();
    let end = format!("-----END {kind}-----");
    let numbered = lines.iter().zip(20..);
    let numbered: Vec<String> = numbered
        .map(|(line, at)| format!("{at:6}→{line}"))
        .collect();
    for text in [
        format!("it went well\n{}\n{end}\nthe next line", lines.join("\n")),
        format!(
            "{}\n    23→{end}\n    24→the next line",
            numbered.join("\n")
        ),
        format!(
            "\"key\": \"{}\\n{end}\\n\", the next line",
            lines.join("\\n")
        ),
        format!("+{}\n+{end}\n+the next line", lines.join("\n+")),
    ] {
        let masked = redact(&text).into_owned();
        for line in &lines {
            assert!(!masked.contains(&line[16..]), "{masked}");
        }
        assert!(masked.contains("the next line"), "{masked}");
        assert_eq!(redact(&masked), masked);
    }
    let text = format!("the end\nof it all\n{end}\n");
    assert_eq!(redact(&text), text);
}

#[test]
fn a_variable_is_masked_behind_what_stands_before_a_line() {
    for text in [
        "+DB_PASSWORD=§",
        "-DB_PASSWORD=§",
        "@@ -1 +1 @@\n-X=1\n+DB_PASSWORD=§\n",
        ".env:DB_PASSWORD=§",
        "src/.env:3:DB_PASSWORD=§",
        "src/.env-4-DB_PASSWORD=§",
        "     3→DB_PASSWORD=§",
        "docker run --env=DB_PASSWORD=§ image",
        "gcloud run deploy --set-env-vars=DB_PASSWORD=§",
    ] {
        let masked = redact(&text.replace('§', "sunflower")).into_owned();
        assert!(!masked.contains("unflower"), "{masked}");
    }
    for text in [
        "http://host:TOKEN=abcdefgh",
        "error:TOKEN=abcdefgh",
        "{\"a\":TOKEN=abcdefgh}",
        "1+TOKEN=abcdefgh",
        "+API_KEY=<your key>",
        "+    # PASSWORD=...",
    ] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn a_secret_at_the_end_of_a_longer_sentence_is_masked() {
    for text in [
        "Das Passwort für den Server lautet §",
        "das Kennwort von Anna für die Datenbank ist §.",
        "the password for the admin account is §",
        "the password we use for the old staging server: §",
        "le mot de passe de la base de données de production est §",
        "la contraseña del usuario administrador es §",
        "la clave es §",
        "la password del database di produzione è §",
        "пароль от базы данных на сервере: §",
    ] {
        for secret in ["Tr0ub4dor9xK2m", "k9Tz4QwX7mB2"] {
            let masked = redact(&text.replace('§', secret)).into_owned();
            assert!(!masked.contains(&secret[4..]), "{masked}");
        }
    }
    let (mixed, hex) = (Random(21).text(ALNUM, 32), Random(22).text(HEX, 32));
    for text in [
        "Der API-Schlüssel ist §",
        "la clé d'API de Stripe est §",
        "a chave da API é §",
        "APIキーは§です",
        "本番環境のAPIトークンは§です",
        "API密钥是§",
    ] {
        for secret in [&mixed, &hex] {
            let masked = redact(&text.replace('§', secret)).into_owned();
            assert!(!masked.contains(&secret[8..]), "{masked}");
        }
    }
    for text in [
        "the password for the test user is in Argon2Hasher",
        "Das Passwort muss in der Datenbank stehen, der Commit ist 3f786850e387550fdab836ed7e6dc881de23001b",
        "the password reset of the new account is handled by PasswordResetV2View",
        "der öffentliche Schlüssel lautet 9MHhTqvL3bXk0Zr7Wc5yUd2Fe8Gj1Ap4SnOiQm6BxKs=",
        "der Schlüssel in der Map ist userProfileV2Cache",
        "la clé primaire est utilisateurId2Nom",
    ] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn calls_keys_of_caches_and_shown_prefixes_are_left_alone() {
    let hash = Random(41).text(HEX, 64);
    let cached = [
        format!("Cache restored from key: Linux-node-{hash}"),
        format!("cache key: node-modules-{hash}"),
    ];
    let open = [
        "connect(host=host, user=user, password=password, database=db)",
        "connect(host=\"h\", user=settings.USER, password=settings.PASSWORD)",
        "def login(self, user=None, password=None, usenetrc=True):",
        "export GITHUB_TOKEN=ghp_...",
        "export OPENAI_API_KEY=\"sk-...\"",
        "Idempotency-Key: 3f2b8c1a-9d4e-4f6a-8b7c-0d1e2f3a4b5c",
        "use the --password options, or --password flags",
        "signKey = xmlSecCryptoAppKeyLoadEx2(file, format)",
        "ErrorKind::Key(inner) => TryIntoHeaderErrorKindOfV2::Key(inner)",
    ];
    for text in open.into_iter().chain(cached.iter().map(String::as_str)) {
        assert_eq!(redact(text), text);
    }
    for text in [
        "host=h user=ada password=sunflower dbname=d",
        "host=a,b port=1 user=ada password=sunflower",
        "API_KEY=sunflower9...",
    ] {
        assert!(redact(text).contains(MASK), "{text}");
    }
}

#[test]
fn passwords_in_calls_pipes_and_hashes_are_masked() {
    for text in [
        "requests.get(url, auth=('ada', '§'))",
        "s.auth = HTTPBasicAuth(\"ada\", \"§\")",
        "new NetworkCredential(\"ada\", \"§\")",
        "ConvertTo-SecureString '§' -AsPlainText -Force",
        "redis-cli CONFIG SET requirepass §",
        "sudo -S ls <<< '§'",
        "echo '§' | gpg --batch --passphrase-fd 0 -d f",
        "echo '§' | kinit ada@EXAMPLE.ORG",
        "echo -n § | gcloud secrets versions add db --data-file=-",
        "keytool -genkey -keystore k -storepass § -keypass §",
        "mvn deploy -Dgpg.passphrase=§",
        "gradle publish -PossrhPassword=§",
        "java -jar a.jar --spring.datasource.password=§",
        "etcdctl --user root:§ get /x",
        "java -jar jenkins-cli.jar -auth ada:§ build x",
    ] {
        let masked = redact(&text.replace('§', "sunFlower9z")).into_owned();
        assert!(masked.contains(MASK), "{masked}");
        assert!(!masked.contains("lower9z"), "{masked}");
    }
    let salted = Random(51).text(ALNUM, 53);
    for text in [
        format!("ada:$2y$10${salted}"),
        format!("root:$6$a1B2c3D4${salted}:19000:0:99999:7:::"),
        format!("hash = '$argon2id$v=19$m=65536,t=3,p=4${salted}'"),
        format!("ada:$apr1$a1b2c3d4${}", &salted[..22]),
    ] {
        let masked = redact(&text).into_owned();
        assert!(!masked.contains(&salted[12..22]), "{masked}");
    }
    for text in [
        "sudo tee /etc/motd <<< 'welcome to this host'",
        "HTTPBasicAuth('user', 'pass')",
        "requirepass is not set, auth=(user, password)",
        "printf '%s' \"$1$2$3$4$5$6$7\"",
        "cargo build -Pprofile=x --profile=release",
    ] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn the_password_of_a_php_constant_and_of_a_default_is_masked() {
    for text in [
        "define('DB_PASSWORD', '§');",
        "define( 'DB_PASSWORD', \"§\" );",
        "os.getenv(\"DB_PASSWORD\", \"§\")",
        "os.environ.get('MAIL_PASS', '§')",
        "'password' => env('DB_PASSWORD', '§'),",
        "ENV['DB_PASSWORD'] || '§'",
        "process.env.DB_PASSWORD ?? \"§\"",
        "getenv('DB_PASSWORD') ?: '§'",
        "environment:\n  PGPASSWORD: §\n",
        "  PASSWORD: \"§\"",
    ] {
        let masked = redact(&text.replace('§', "sunflower7")).into_owned();
        assert!(masked.contains(MASK), "{masked}");
        assert!(!masked.contains("flower7"), "{masked}");
        assert_eq!(redact(&masked), masked);
    }
    for text in [
        "[\"DB_PASSWORD\", \"S3_KEY\", \"db_host\"]",
        "os.getenv(\"DB_PASSWORD\", \"\")",
        "define('DB_PASSWORD', getenv('DB_PASSWORD2'));",
        "t('RESET_PASSWORD', 'auth.reset2')",
        "PASSWORD: string;",
    ] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn the_long_forms_of_helm_and_httpie_are_known() {
    for text in [
        "helm install x --set-literal auth.password=sunflower9",
        "http --auth ada:sunflower9 example.org",
        "https --auth=ada:sunflower9 example.org",
        "http -va ada:sunflower9 example.org",
    ] {
        let masked = redact(text).into_owned();
        assert!(masked.contains(MASK), "{masked}");
        assert!(!masked.contains("flower9"), "{masked}");
    }
    for text in [
        "http --auth-type bearer --auth ada example.org",
        "http -a ada GET example.org",
    ] {
        assert_eq!(redact(text), text);
    }
}
