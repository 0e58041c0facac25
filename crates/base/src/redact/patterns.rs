//! The shapes of secrets, as regular expressions.
//!
//! ```text
//!   TOKENS     a prefix of its own              ghp_…
//!   PATTERNS   the text around it               mysql -p…   https://ada:…@host
//! ```
//!
//! A secret that only its name shows (`PASSWORD=…`) has no shape: see the parent module.

use super::{PASSWORD, is_base64, is_prose, is_random, is_value};

/// The characters of tokens. A token of one of the first two has a fixed length: a longer text is something else.
pub(super) const HEX: &str = "[0-9A-Fa-f]";
pub(super) const UPPER: &str = "[0-9A-Z]";
pub(super) const ALNUM: &str = "[0-9A-Za-z]";
pub(super) const WORD: &str = "[0-9A-Za-z_]";
pub(super) const URL: &str = "[0-9A-Za-z_-]";
pub(super) const DOTTED: &str = "[0-9A-Za-z_.-]";

/// The tokens with a prefix of their own: the prefix, the kind, the characters that follow, and their smallest number.
pub(super) const TOKENS: [(&str, &str, &str, usize); 60] = [
    ("sk-ant-", "Anthropic key", URL, 16),
    ("sk-proj-", "OpenAI key", URL, 20),
    ("sk-svcacct-", "OpenAI key", URL, 20),
    ("sk-or-v1-", "OpenRouter key", HEX, 32),
    ("sk-", "API key", URL, 20),
    ("sk_live_", "Stripe key", ALNUM, 16),
    ("sk_test_", "Stripe key", ALNUM, 16),
    ("rk_live_", "Stripe key", ALNUM, 16),
    ("rk_test_", "Stripe key", ALNUM, 16),
    ("whsec_", "Stripe secret", ALNUM, 20),
    ("AKIA", "AWS key id", UPPER, 16),
    ("ASIA", "AWS key id", UPPER, 16),
    ("ghp_", "GitHub token", ALNUM, 30),
    ("gho_", "GitHub token", ALNUM, 30),
    ("ghu_", "GitHub token", ALNUM, 30),
    ("ghs_", "GitHub token", ALNUM, 30),
    ("ghr_", "GitHub token", ALNUM, 30),
    ("github_pat_", "GitHub token", WORD, 30),
    ("glpat-", "GitLab token", URL, 20),
    ("glptt-", "GitLab token", HEX, 40),
    ("gldt-", "GitLab token", URL, 20),
    ("glsa_", "Grafana token", WORD, 32),
    ("xoxb-", "Slack token", URL, 20),
    ("xoxa-", "Slack token", URL, 20),
    ("xoxp-", "Slack token", URL, 20),
    ("xoxr-", "Slack token", URL, 20),
    ("xoxs-", "Slack token", URL, 20),
    ("xoxe-", "Slack token", URL, 20),
    ("xapp-", "Slack token", URL, 20),
    ("AIza", "Google key", URL, 35),
    ("ya29.", "Google token", URL, 20),
    ("GOCSPX-", "Google secret", URL, 20),
    ("hf_", "Hugging Face token", ALNUM, 30),
    ("npm_", "npm token", ALNUM, 36),
    ("pypi-", "PyPI token", URL, 50),
    ("SG.", "SendGrid key", DOTTED, 40),
    ("shpat_", "Shopify token", HEX, 32),
    ("shpss_", "Shopify secret", HEX, 32),
    ("dop_v1_", "DigitalOcean token", HEX, 64),
    ("dckr_pat_", "Docker token", URL, 20),
    ("dapi", "Databricks token", HEX, 32),
    ("key-", "Mailgun key", HEX, 32),
    ("SK", "Twilio key", HEX, 32),
    ("hvs.", "Vault token", URL, 24),
    ("hvb.", "Vault token", URL, 24),
    ("ATATT3", "Atlassian token", URL, 50),
    ("lin_api_", "Linear key", ALNUM, 32),
    ("ntn_", "Notion token", ALNUM, 40),
    ("gsk_", "Groq key", ALNUM, 40),
    ("xai-", "xAI key", ALNUM, 40),
    ("pplx-", "Perplexity key", ALNUM, 40),
    ("r8_", "Replicate token", ALNUM, 37),
    ("sbp_", "Supabase token", HEX, 40),
    ("pscale_tkn_", "PlanetScale token", URL, 32),
    ("PMAK-", "Postman key", URL, 50),
    ("NRAK-", "New Relic key", ALNUM, 27),
    ("sntrys_", "Sentry token", DOTTED, 40),
    ("EAACEdEose0cBA", "Facebook token", ALNUM, 20),
    ("AGE-SECRET-KEY-1", "age key", UPPER, 50),
    ("HRKU-", "Heroku key", URL, 36),
];

/// A secret that is found by the text around it.
pub(super) struct Pattern {
    pub(super) kind: &'static str,
    /// The name of the command whose arguments are searched; the whole text is searched if this is empty.
    pub(super) command: &'static str,
    /// A text that is part of every such secret and what is around it, for those that no command has; the expression is compiled for
    /// the first text that holds it. Empty if there is none.
    pub(super) mark: &'static str,
    /// The secret is its last group. [`PARTS`] are put in by their names.
    pub(super) regex: &'static str,
    /// The check that a regular expression cannot do.
    pub(super) is_secret: fn(&str) -> bool,
    /// A text with a secret, where `§` stands for one.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for the test that walks the table")
    )]
    pub(super) example: &'static str,
    /// A text without one.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for the test that walks the table")
    )]
    pub(super) counter: &'static str,
}

/// The parts that several expressions have in common.
pub(super) const PARTS: [(&str, &str); 2] = [
    // An argument that is no other option.
    (
        "<value>",
        r#"(?:"([^-"\n][^"\n]{2,})["\n]|'([^-'\n][^'\n]{2,})['\n]|([^-\s"'`;|),][^\s"'`;|),]{2,}))"#,
    ),
    // A name, a colon and a value.
    (
        "<login>",
        r#"(?:"[^":\n]*:([^"\n]{3,})["\n]|'[^':\n]*:([^'\n]{3,})['\n]|[^\s"'`;|),:]*:([^\s"'`;|),]{3,}))"#,
    ),
];

/// The shapes that need more than a prefix.
pub(super) const PATTERNS: [Pattern; 15] = [
    Pattern {
        kind: "private key",
        command: "",
        mark: "PRIVATE KEY",
        regex: r"-----BEGIN [^\n-]*PRIVATE KEY[^\n-]*-----[\s\\nr]*((?:[0-9A-Za-z\s+/=\\:,|>]|-[0-9A-Za-z\s+/=\\:,|>])+[0-9A-Za-mo-qs-z+/=:,|>])",
        is_secret: |value| value.len() > 16,
        example: "-----BEGIN RSA PRIVATE KEY-----\n§\n-----END RSA PRIVATE KEY-----",
        counter: "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END CERTIFICATE-----",
    },
    Pattern {
        kind: "web token",
        command: "",
        mark: "eyJ",
        regex: r"\b(eyJ[0-9A-Za-z_-]{9,}\.eyJ[0-9A-Za-z_-]{9,}\.[0-9A-Za-z_-]*)",
        is_secret: |_| true,
        example: "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.§",
        counter: "eyJ is how JSON in base64 begins",
    },
    Pattern {
        kind: "bot token",
        command: "",
        mark: ":AA",
        regex: r"\b([0-9]{8,10}:AA[0-9A-Za-z_-]{33})(?:[^0-9A-Za-z_-]|$)",
        is_secret: |_| true,
        example: "bot 123456789:AA§7",
        counter: "at 12345678:AA it ends",
    },
    Pattern {
        kind: "bearer token",
        command: "",
        mark: "",
        regex: r"(?i:bearer) ([0-9A-Za-z_.~+/=-]{16,})",
        is_secret: is_random,
        example: "curl -H 'X: Bearer §'",
        counter: "Bearer authentication is described elsewhere in this document",
    },
    Pattern {
        kind: "bearer token",
        command: "",
        mark: "Basic ",
        regex: r"Basic ([0-9A-Za-z_.~+/=-]{16,})",
        is_secret: |value| is_random(value) || is_base64(value),
        example: "Proxy: Basic §",
        counter: "Basic understanding-of-the-matter",
    },
    Pattern {
        kind: "webhook",
        command: "",
        mark: "hooks",
        regex: r"://(?:hooks\.slack\.com/services|discord(?:app)?\.com/api/webhooks)/([0-9A-Za-z_-]*/[0-9A-Za-z_/-]{15,})",
        is_secret: |_| true,
        example: "https://hooks.slack.com/services/T0/B0/§",
        counter: "https://hooks.slack.com/services/",
    },
    Pattern {
        kind: PASSWORD,
        command: "",
        mark: "://",
        regex: r#"://[^\s/"'`<>?#|):]*:([^\s/"'`<>?#|)]{3,})@"#,
        is_secret: is_value,
        example: "postgres://ada:§@db.example.org:5432/app",
        counter: "https://user:password@example.org/",
    },
    // A blank behind the option would make these commands ask for the password.
    Pattern {
        kind: PASSWORD,
        command: "mysql|mariadb",
        mark: "",
        regex: " -p<value>",
        is_secret: is_value,
        example: "mysql -h db -uroot -p§ shop",
        counter: "mysql -p shop",
    },
    Pattern {
        kind: PASSWORD,
        command: "sshpass|login",
        mark: "",
        regex: " -p *<value>",
        is_secret: is_value,
        example: "docker login \\\n  -u ada \\\n  -p §",
        counter: "sshpass -p \"$PASS\" ssh host",
    },
    Pattern {
        kind: PASSWORD,
        command: "redis-cli",
        mark: "",
        regex: " (?:-a|--pass[ =]) *<value>",
        is_secret: is_value,
        example: "redis-cli -h cache -a § ping",
        counter: "redis-cli -a \"$(cat key)\" ping",
    },
    Pattern {
        kind: PASSWORD,
        command: "ldapsearch",
        mark: "",
        regex: " -w *<value>",
        is_secret: is_value,
        example: "ldapsearch -x -w §",
        counter: "ldapsearch -W",
    },
    Pattern {
        kind: PASSWORD,
        command: "curl",
        mark: "",
        regex: " (?:-[a-zA-Z]{1,4}[uU] |-[uU]|--(?:proxy-)?user[ =]) *<login>",
        is_secret: is_value,
        example: "curl -su ada:§ https://example.org",
        counter: "curl -u \"$USER:$TOKEN\" https://example.org",
    },
    Pattern {
        kind: PASSWORD,
        command: "http",
        mark: "",
        regex: " -(?:[a-zA-Z]{1,4}a |a) *<login>",
        is_secret: is_value,
        example: "http -a ada:§ GET example.org",
        counter: "http -a ada GET example.org",
    },
    Pattern {
        kind: PASSWORD,
        command: "",
        mark: "--pass",
        regex: "--pass(?:word|wd|phrase)= *<value>",
        is_secret: is_value,
        example: "tool --user ada --password=§ --dry-run",
        counter: "the --password option, and --password=…",
    },
    Pattern {
        kind: PASSWORD,
        command: "",
        mark: "--pass",
        regex: "--pass(?:word|wd|phrase) +<value>",
        is_secret: |value| is_value(value) && !is_prose(value),
        example: "tool --password \"§\" --dry-run",
        counter: "give it --password or --password-file",
    },
];
