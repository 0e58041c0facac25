//! The shapes of secrets, as regular expressions.
//!
//! ```text
//!   TOKENS     a prefix of its own              ghp_…
//!   PATTERNS   the text around it               mysql -p…   https://ada:…@host
//! ```
//!
//! A secret that only its name shows (`PASSWORD=…`) has no shape: see the parent module.

use super::{
    PASSWORD, SECRET, is_base64, is_prose, is_random, is_scrambled, is_value, looks_random,
};

/// A set of the characters of tokens. A token of one of the first two has a fixed length: a longer text is something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    /// Digits in hex.
    Hex,
    /// Capitals and digits.
    Upper,
    /// Small letters and digits.
    Lower,
    /// Letters and digits.
    Alnum,
    /// Those of base64.
    Base64,
    /// Those of an identifier.
    Word,
    /// Those of base64 in a URL.
    Url,
    /// Those of base64 in a URL, and dots.
    Dotted,
}

use Set::{Alnum, Base64, Dotted, Hex, Lower, Upper, Url, Word};

impl Set {
    pub(super) const COUNT: usize = Dotted as usize + 1;

    pub(super) fn has(self, byte: u8) -> bool {
        match self {
            Hex => byte.is_ascii_hexdigit(),
            Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Lower => byte.is_ascii_lowercase() || byte.is_ascii_digit(),
            Alnum => byte.is_ascii_alphanumeric(),
            Base64 => Alnum.has(byte) || byte == b'+' || byte == b'/',
            Word => Alnum.has(byte) || byte == b'_',
            Url => Word.has(byte) || byte == b'-',
            Dotted => Url.has(byte) || byte == b'.',
        }
    }
}

/// A token with a prefix of its own: the prefix, the kind, the characters that follow, and their smallest number.
pub(super) type Token = (&'static str, &'static str, Set, usize);

/// All tokens. Of those that begin alike the longer prefix comes first, for its kind says more.
pub(super) const TOKENS: [Token; 118] = [
    ("sk-ant-", "Anthropic key", Url, 16),
    ("sk-proj-", "OpenAI key", Url, 20),
    ("sk-svcacct-", "OpenAI key", Url, 20),
    ("sk-or-v1-", "OpenRouter key", Hex, 32),
    ("sk-", "API key", Url, 20),
    ("sk_live_", "Stripe key", Alnum, 16),
    ("sk_test_", "Stripe key", Alnum, 16),
    ("rk_live_", "Stripe key", Alnum, 16),
    ("rk_test_", "Stripe key", Alnum, 16),
    ("whsec_", "Stripe secret", Alnum, 20),
    ("AKIA", "AWS key id", Upper, 16),
    ("ASIA", "AWS key id", Upper, 16),
    ("ghp_", "GitHub token", Alnum, 30),
    ("gho_", "GitHub token", Alnum, 30),
    ("ghu_", "GitHub token", Alnum, 30),
    ("ghs_", "GitHub token", Alnum, 30),
    ("ghr_", "GitHub token", Alnum, 30),
    ("github_pat_", "GitHub token", Word, 30),
    ("glpat-", "GitLab token", Url, 20),
    ("glptt-", "GitLab token", Hex, 40),
    ("gldt-", "GitLab token", Url, 20),
    ("glsa_", "Grafana token", Word, 32),
    ("xoxb-", "Slack token", Url, 20),
    ("xoxa-", "Slack token", Url, 20),
    ("xoxp-", "Slack token", Url, 20),
    ("xoxr-", "Slack token", Url, 20),
    ("xoxs-", "Slack token", Url, 20),
    ("xoxe-", "Slack token", Url, 20),
    ("xapp-", "Slack token", Url, 20),
    ("AIza", "Google key", Url, 35),
    ("ya29.", "Google token", Url, 20),
    ("GOCSPX-", "Google secret", Url, 20),
    ("hf_", "Hugging Face token", Alnum, 30),
    ("npm_", "npm token", Alnum, 36),
    ("pypi-", "PyPI token", Url, 50),
    ("SG.", "SendGrid key", Dotted, 40),
    ("shpat_", "Shopify token", Hex, 32),
    ("shpss_", "Shopify secret", Hex, 32),
    ("dop_v1_", "DigitalOcean token", Hex, 64),
    ("dckr_pat_", "Docker token", Url, 20),
    ("dapi", "Databricks token", Hex, 32),
    ("key-", "Mailgun key", Hex, 32),
    ("SK", "Twilio key", Hex, 32),
    ("hvs.", "Vault token", Url, 24),
    ("hvb.", "Vault token", Url, 24),
    ("ATATT3", "Atlassian token", Url, 50),
    ("lin_api_", "Linear key", Alnum, 32),
    ("ntn_", "Notion token", Alnum, 40),
    ("gsk_", "Groq key", Alnum, 40),
    ("xai-", "xAI key", Alnum, 40),
    ("pplx-", "Perplexity key", Alnum, 40),
    ("r8_", "Replicate token", Alnum, 37),
    ("sbp_", "Supabase token", Hex, 40),
    ("pscale_tkn_", "PlanetScale token", Url, 32),
    ("PMAK-", "Postman key", Url, 50),
    ("NRAK-", "New Relic key", Alnum, 27),
    ("sntrys_", "Sentry token", Dotted, 40),
    ("EAACEdEose0cBA", "Facebook token", Alnum, 20),
    ("AGE-SECRET-KEY-1", "age key", Upper, 50),
    ("HRKU-", "Heroku key", Url, 36),
    ("ABIA", "AWS key id", Upper, 16),
    ("ACCA", "AWS key id", Upper, 16),
    ("xoxc-", "Slack token", Url, 20),
    ("xoxd-", "Slack token", Url, 20),
    ("glrt-", "GitLab token", Url, 20),
    ("glft-", "GitLab token", Url, 20),
    ("glagent-", "GitLab token", Url, 40),
    ("glc_", "Grafana token", Alnum, 32),
    ("doo_v1_", "DigitalOcean token", Hex, 64),
    ("dor_v1_", "DigitalOcean token", Hex, 64),
    ("dckr_oat_", "Docker token", Url, 20),
    ("shpca_", "Shopify token", Hex, 32),
    ("shppa_", "Shopify token", Hex, 32),
    ("sq0atp-", "Square token", Url, 22),
    ("sq0csp-", "Square secret", Url, 43),
    ("figd_", "Figma token", Url, 40),
    ("secret_", "Notion token", Alnum, 43),
    ("dp.pt.", "Doppler token", Alnum, 40),
    ("dp.st.", "Doppler token", Dotted, 40),
    ("fo1_", "Fly token", Url, 40),
    ("fm2_", "Fly token", Base64, 50),
    ("tskey-auth-", "Tailscale key", Url, 30),
    ("tskey-api-", "Tailscale key", Url, 30),
    ("rnd_", "Render key", Alnum, 28),
    ("nfp_", "Netlify token", Alnum, 36),
    ("sntryu_", "Sentry token", Hex, 64),
    ("phx_", "PostHog key", Alnum, 40),
    ("ATCTT3", "Atlassian token", Url, 50),
    ("ATBB", "Bitbucket password", Alnum, 32),
    ("tgp_v1_", "Together key", Url, 40),
    ("csk-", "Cerebras key", Alnum, 40),
    ("rubygems_", "RubyGems key", Hex, 48),
    ("oy2", "NuGet key", Lower, 43),
    ("CFPAT-", "Contentful token", Url, 40),
    ("LTAI", "Alibaba key id", Alnum, 20),
    ("sb_secret_", "Supabase key", Url, 30),
    ("pscale_pw_", "PlanetScale password", Url, 32),
    ("1//0", "Google token", Url, 40),
    ("apify_api_", "Apify token", Alnum, 30),
    ("EZAK", "EasyPost key", Alnum, 54),
    ("bkua_", "Buildkite token", Hex, 40),
    ("CCIPAT_", "CircleCI token", Word, 40),
    ("sgp_", "Sourcegraph token", Hex, 40),
    ("mlsn.", "MailerSend token", Hex, 64),
    ("nvapi-", "NVIDIA key", Url, 60),
    ("tvly-", "Tavily key", Url, 32),
    ("pcsk_", "Pinecone key", Word, 60),
    ("AQ.Ab", "Google key", Url, 40),
    ("pat-na1-", "HubSpot token", Url, 36),
    ("pat-eu1-", "HubSpot token", Url, 36),
    ("sl.", "Dropbox token", Url, 100),
    ("jina_", "Jina key", Alnum, 50),
    ("fc-", "Firecrawl key", Hex, 32),
    ("e2b_", "E2B key", Hex, 40),
    ("lsv2_", "LangSmith key", Word, 40),
    ("AstraCS:", "Astra token", Alnum, 20),
    ("cfut_", "Cloudflare token", Alnum, 40),
    ("cio", "crates.io token", Alnum, 32),
];

/// A secret that is found by the text around it.
pub(super) struct Pattern {
    pub(super) kind: &'static str,
    /// The name of the command whose arguments are searched; the whole text is searched if this is empty.
    pub(super) command: &'static str,
    /// Texts, set apart by bars, of which one is part of every such secret and what is around it. The expression is compiled for the
    /// first text that holds one, and the name of a command if there is one. Empty if any text will do.
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
pub(super) const PATTERNS: [Pattern; 31] = [
    Pattern {
        kind: "private key",
        command: "",
        mark: "PRIVATE KEY",
        regex: r"-----BEGIN [^\n-]*PRIVATE KEY[^\n-]*-----[\s\\nr]*((?:[0-9A-Za-z\s+/=\\:,|>]|→|-[0-9A-Za-z\s+/=\\:,|>])+[0-9A-Za-mo-qs-z+/=:,|>])",
        is_secret: |value| value.len() > 16,
        example: "-----BEGIN RSA PRIVATE KEY-----\n§\n-----END RSA PRIVATE KEY-----",
        counter: "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END CERTIFICATE-----",
    },
    Pattern {
        kind: "web token",
        command: "",
        mark: "eyJ",
        regex: r"\b(eyJ[0-9A-Za-z_-]{9,}(?:\.eyJ[0-9A-Za-z_-]{9,}\.[0-9A-Za-z_-]*|(?:\.[0-9A-Za-z_-]+){4}))",
        is_secret: |_| true,
        example: "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.§",
        counter: "eyJ is how JSON in base64 begins",
    },
    Pattern {
        kind: "bot token",
        command: "",
        mark: ":AA",
        regex: r"(?:\b|bot)([0-9]{8,10}:AA[0-9A-Za-z_-]{33})(?:[^0-9A-Za-z_-]|$)",
        is_secret: |_| true,
        example: "bot 123456789:AA§7",
        counter: "at 12345678:AA it ends",
    },
    Pattern {
        kind: "bearer token",
        command: "",
        mark: "earer |EARER ",
        regex: r"(?:[bB]earer|BEARER) ([0-9A-Za-z_.~+/=-]{16,})",
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
        mark: "hooks|webhook",
        regex: r"://(?:hooks\.slack\.com/services|discord(?:app)?\.com/api/webhooks|\w+\.webhook\.office\.com/webhookb2)/([0-9A-Za-z_-]*/[0-9A-Za-z_/-]{15,})",
        is_secret: |_| true,
        example: "https://hooks.slack.com/services/T0/B0/§",
        counter: "https://hooks.slack.com/services/",
    },
    Pattern {
        kind: PASSWORD,
        command: "",
        mark: "://",
        regex: r#"://[^\s/"'`<>?#|):]*:([^\s/"'`<>?|)]{3,})@"#,
        is_secret: is_value,
        example: "postgres://ada:§@db.example.org:5432/app",
        counter: "https://user:password@example.org/",
    },
    // A blank behind the option would make these commands ask for the password.
    Pattern {
        kind: PASSWORD,
        command: "mysql|mariadb|7z",
        mark: "",
        regex: " -p<value>",
        is_secret: is_value,
        example: "mysql -h db -uroot -p§ shop",
        counter: "mysql -p shop",
    },
    Pattern {
        kind: PASSWORD,
        command: "sshpass|login|mongo |mongosh|mongodump|mongorestore|mongoexport|mongoimport",
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
        mark: "password|passwd|passphrase",
        regex: r"--(?:\w+[_-])*pass(?:word|wd|phrase)= *<value>",
        is_secret: is_value,
        example: "tool --user ada --password=§ --dry-run",
        counter: "the --password option, and --password=…",
    },
    Pattern {
        kind: PASSWORD,
        command: "",
        mark: "password|passwd|passphrase",
        regex: r"--(?:\w+[_-])*pass(?:word|wd|phrase) +<value>",
        is_secret: |value| is_value(value) && !is_prose(value),
        example: "tool --password \"§\" --dry-run",
        counter: "give it --password or --password-file",
    },
    Pattern {
        kind: SECRET,
        command: "",
        mark: "://",
        regex: r"://([0-9A-Za-z_-]{20,})@",
        is_secret: is_random,
        example: "https://§@example.org/a.git",
        counter: "https://a-long-name-of-a-person@example.org/",
    },
    Pattern {
        kind: SECRET,
        command: "",
        mark: "AKIA|ASIA",
        regex: r#"\b(?:AKIA|ASIA)[0-9A-Z]{16}[\s,:;|"']+([0-9A-Za-z+/]{32,40})(?:[^0-9A-Za-z+/=]|$)"#,
        is_secret: is_scrambled,
        example: "ASIAQ3EGPJ7WTB4N2XYZ,§Zx8Kq1Wv",
        counter: "ASIA is a continent",
    },
    Pattern {
        kind: SECRET,
        command: "",
        mark: "key |Key |token |Token |secret |Secret |pass |Pass |pwd |Pwd ",
        regex: r"-[0-9A-Za-z_-]*(?:[Kk]ey|[Tt]oken|[Ss]ecret|[Pp]ass|[Pp]wd) +<value>",
        is_secret: |value| is_value(value) && looks_random(value, true),
        example: "tool --api-key § run",
        counter: "tool --token-file a --api-key file1",
    },
    Pattern {
        kind: "private key",
        command: "",
        mark: "Private-Lines",
        regex: r"Private-Lines: [0-9]+\s+([0-9A-Za-z+/=\s]+[0-9A-Za-z+/=])",
        is_secret: |_| true,
        example: "Private-Lines: 1\n§",
        counter: "Private-Lines: 14",
    },
    Pattern {
        kind: PASSWORD,
        command: "",
        mark: "assword|ASSWORD|passwd|PASSWD|pwd|Pwd|PWD|pass|Pass|PASS",
        regex: r#"(?:(?:[?&,]|;\s*)(?i:password|passwd|pwd)|(?:[?&]|;\s*)(?i:pass)) ?= ?([^\s&;,'"<>()]{3,})(?:[\s&;,'"<>)]|$)"#,
        is_secret: is_value,
        example: "Server=h;Uid=ada;Password=§;Encrypt=true",
        counter: "/login?password=<yours>",
    },
    Pattern {
        kind: PASSWORD,
        command: "",
        mark: "password=",
        regex: r#"\b(?:host|user|username|dbname|uid)=\S+ (?:[a-z_]+=\S+ )*?password=([^\s'"]{3,})"#,
        is_secret: is_value,
        example: "host=h user=ada password=§ dbname=d",
        counter: "user=ada password=$PW",
    },
    Pattern {
        kind: PASSWORD,
        command: "",
        mark: "-D",
        regex: r#"-D[0-9A-Za-z_.-]*(?i:password|passwd)=([^\s'"]{3,})"#,
        is_secret: is_value,
        example: "java -Djavax.net.ssl.trustStorePassword=§ a",
        counter: "java -Dpassword=$PW a",
    },
    Pattern {
        kind: PASSWORD,
        command: "",
        mark: "machine",
        regex: r"\bmachine\s+(?:\S+[.:]\S+|localhost)\s+login\s+\S+\s+password\s+(\S{3,})",
        is_secret: |value| is_value(value) && !is_prose(value),
        example: "machine example.org\n  login ada\n  password §",
        counter: "a login page password reset",
    },
    Pattern {
        kind: PASSWORD,
        command: "",
        mark: "assword '|ASSWORD '|dentified by '|DENTIFIED BY '",
        regex: r"(?i:password|identified by) '([^'\s]{3,})'",
        is_secret: |value| is_value(value) && !is_prose(value),
        example: "CREATE USER ada WITH PASSWORD '§';",
        counter: "IDENTIFIED BY '<password>'",
    },
    Pattern {
        kind: PASSWORD,
        command: "",
        mark: ":5432:|:5433:|:6432:|:*:",
        regex: r#"\b[^\s:]+:(?:543[23]|6432|\*):[^\s:]+:[^\s:]+:([^\s:;`'"]{6,})"#,
        is_secret: |value| looks_random(value, true),
        example: "db.example.org:5432:shop:ada:§",
        counter: "src/a.rs:5432:5:error:unused",
    },
    Pattern {
        kind: PASSWORD,
        command: "",
        mark: "assword|ASSWORD|asswort|asswd|assphrase|pw|pass|mot de passe|senha|Senha|contrase|ароль|密码|密碼|パスワード|비밀번호",
        regex: r"(?:(?i:password|passwort|passwd|passphrase|mot de passe|senha)|\bpw|\bpass|contraseña|(?:П|п)ароль|密码|密碼|パスワード|비밀번호)(?: (?:is|ist|es|est|for \S+ is))?(?:[\s:=]+|：) ?([!-~]{8,})",
        is_secret: |value| {
            let bare = value.trim_end_matches(['.', ',', ';', ')', '`', '\'', '"']);
            is_value(value) && looks_random(bare, true)
        },
        example: "the password is § now",
        counter: "the password is required-in-v2",
    },
    Pattern {
        kind: PASSWORD,
        command: "unzip|zip",
        mark: "",
        regex: " -P *<value>",
        is_secret: is_value,
        example: "unzip -P § a.zip",
        counter: "unzip -P",
    },
    Pattern {
        kind: PASSWORD,
        command: "htpasswd",
        mark: "",
        regex: r" -[a-zA-Z]*b[a-zA-Z]* +\S+ +\S+ +<value>",
        is_secret: is_value,
        example: "htpasswd -bc users ada §",
        counter: "htpasswd -c users ada",
    },
    Pattern {
        kind: PASSWORD,
        command: "lftp|smbclient",
        mark: "",
        regex: r" -[uU] *[^\s,%]+[,%]<value>",
        is_secret: is_value,
        example: "smbclient //h/s -U ada%§",
        counter: "smbclient //h/s -U ada",
    },
    Pattern {
        kind: PASSWORD,
        command: "echo",
        mark: "sudo|passwd|--password-stdin",
        regex: r" (?:-n +)?<value> *\| *(?:sudo +-S|passwd|.*--password-stdin)",
        is_secret: is_value,
        example: "echo § | sudo -S ls",
        counter: "echo $PW | sudo -S ls",
    },
    Pattern {
        kind: "private key",
        command: "",
        mark: "\"d\"",
        regex: r#""d"\s*:\s*"([0-9A-Za-z_-]{40,})""#,
        is_secret: is_scrambled,
        example: "{\"kty\": \"OKP\", \"d\": \"§Zx8Kq1Wv7\"}",
        counter: "{\"d\": \"a day\"}",
    },
];
