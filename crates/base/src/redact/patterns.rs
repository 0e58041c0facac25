//! The shapes of secrets, as regular expressions.
//!
//! ```text
//!   TOKENS     a prefix of its own              ghp_…
//!   PATTERNS   the text around it               mysql -p…   https://ada:…@host
//! ```
//!
//! A secret that only its name shows (`PASSWORD=…`) has no shape: see the parent module.

use super::{
    PASSWORD, SECRET, distinct, is_base64, is_mixed_word, is_plain, is_prose, is_random, is_rest,
    is_scrambled, is_shuffled, is_value, looks_random,
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
pub(super) static TOKENS: [Token; 151] = [
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
    ("glimt-", "GitLab token", Url, 20),
    ("gloas-", "GitLab secret", Url, 40),
    ("glcbt-", "GitLab token", Url, 20),
    ("glffct-", "GitLab token", Url, 20),
    ("glsoat-", "GitLab token", Url, 20),
    ("glrtr-", "GitLab token", Url, 20),
    ("GR1348941", "GitLab token", Url, 20),
    ("ABSK", "AWS key", Base64, 100),
    ("lin_oauth_", "Linear token", Alnum, 32),
    ("sk.eyJ", "Mapbox token", Dotted, 60),
    ("eyJrIjoi", "Grafana key", Base64, 60),
    ("EAAA", "Square token", Url, 60),
    ("EAA", "Facebook token", Alnum, 100),
    ("IGQV", "Instagram token", Url, 100),
    ("dt0c01.", "Dynatrace token", Dotted, 80),
    ("NRII-", "New Relic key", Url, 32),
    ("pul-", "Pulumi token", Hex, 40),
    ("xkeysib-", "Brevo key", Url, 60),
    ("xsmtpsib-", "Brevo key", Url, 60),
    ("vercel_blob_rw_", "Vercel token", Word, 30),
    ("napi_", "Neon key", Alnum, 60),
    ("pscale_oauth_", "PlanetScale token", Url, 32),
    ("sk_", "ElevenLabs key", Hex, 48),
    ("squ_", "Sonar token", Hex, 40),
    ("sqp_", "Sonar token", Hex, 40),
    ("sqa_", "Sonar token", Hex, 40),
    ("AKCp", "Artifactory key", Alnum, 60),
    ("cmVmdGtuO", "Artifactory token", Alnum, 50),
    ("dp.sa.", "Doppler token", Alnum, 40),
    ("dp.ct.", "Doppler token", Alnum, 40),
    ("dp.scim.", "Doppler token", Alnum, 40),
    ("ops_eyJ", "1Password token", Url, 100),
    ("hvr.", "Vault token", Url, 24),
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

/// What most shapes have in common: they are of a password, anywhere, which must be a value.
const ANY_PASSWORD: Pattern = Pattern {
    kind: PASSWORD,
    command: "",
    mark: "",
    regex: "",
    is_secret: is_value,
    example: "",
    counter: "",
};

/// The shapes that need more than a prefix.
pub(super) static PATTERNS: [Pattern; 48] = [
    Pattern {
        kind: "private key",
        command: "",
        mark: "PRIVATE KEY",
        regex: r"-----BEGIN [^\n-]*PRIVATE KEY[^\n-]*-----[\s\\nr]*(?:(?:[0-9]+(?:→|\t))?(?:Version|Comment): [^\n\\]*[\s\\nr]+)*((?:[0-9A-Za-z\s+/=\\:,|>]|→|-[0-9A-Za-z\s+/=\\:,|>])+[0-9A-Za-mo-qs-z+/=:,|>])",
        is_secret: |value| value.len() > 16,
        example: "-----BEGIN RSA PRIVATE KEY-----\n§\n-----END RSA PRIVATE KEY-----",
        counter: "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END CERTIFICATE-----",
    },
    // Its first line was cut off.
    Pattern {
        kind: "private key",
        command: "",
        mark: "PRIVATE KEY",
        regex: r"([0-9A-Za-z+/]{16,}={0,2}(?:(?:\\[nr]|[\r\n])+[ \t>|+]*(?:[0-9]+(?:→|\t))?[ \t]*=?[0-9A-Za-z+/]{4,}={0,2})*)(?:(?:\\[nr]|[\r\n])+[ \t>|+]*(?:[0-9]+(?:→|\t))?[ \t]*)+-----END [^\n-]*PRIVATE KEY",
        is_secret: |_| true,
        example: "§\n§\n-----END RSA PRIVATE KEY-----",
        counter: "the end\n-----END RSA PRIVATE KEY-----",
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
        mark: "://",
        regex: r#"://(?:[^\s/"'`<>?#|):]*:([^\s/"'`<>?|)]{3,})@|[^\s/"'`<>?#|):@]*:([^\s"'`<>?|)@]{8,})@[0-9A-Za-z])"#,
        // With a slash it may be a port and a path.
        is_secret: |value| is_value(value) && (!value.contains('/') || is_rest(value.as_bytes())),
        example: "postgres://ada:§@db.example.org:5432/app",
        counter: "https://user:password@example.org/",
        ..ANY_PASSWORD
    },
    // A blank behind the option would make these commands ask for the password.
    Pattern {
        command: "mysql|mariadb|7z|unrar|rar",
        regex: " -p<value>",
        example: "mysql -h db -uroot -p§ shop",
        counter: "mysql -p shop",
        ..ANY_PASSWORD
    },
    Pattern {
        command: "sshpass|login|cqlsh|twine|mongo |mongosh|mongodump|mongorestore|mongoexport|mongoimport",
        regex: " -p *<value>",
        // The option of `gh auth login` that names the protocol of git.
        is_secret: |value| is_value(value) && !matches!(value, "https" | "ssh"),
        example: "docker login \\\n  -u ada \\\n  -p §",
        counter: "sshpass -p \"$PASS\" ssh host",
        ..ANY_PASSWORD
    },
    Pattern {
        command: "redis-cli",
        regex: " (?:-a|--pass[ =]) *<value>",
        example: "redis-cli -h cache -a § ping",
        counter: "redis-cli -a \"$(cat key)\" ping",
        ..ANY_PASSWORD
    },
    Pattern {
        command: "ldapsearch",
        regex: " -w *<value>",
        example: "ldapsearch -x -w §",
        counter: "ldapsearch -W",
        ..ANY_PASSWORD
    },
    Pattern {
        command: "curl|etcdctl",
        regex: " (?:-[a-zA-Z]{1,4}[uU] |-[uU]|--(?:proxy-)?user[ =]) *<login>",
        example: "curl -su ada:§ https://example.org",
        counter: "curl -u \"$USER:$TOKEN\" https://example.org",
        ..ANY_PASSWORD
    },
    Pattern {
        command: "http |https |xh |xhs |jenkins-cli",
        regex: " (?:-[a-zA-Z]{1,4}a |-a|--?auth[ =]) *<login>",
        example: "http -a ada:§ GET example.org",
        counter: "http -a ada GET example.org",
        ..ANY_PASSWORD
    },
    Pattern {
        mark: "password|passwd|passphrase",
        regex: r"--(?:\w+[_.-])*pass(?:word|wd|phrase)= *<value>",
        example: "tool --user ada --password=§ --dry-run",
        counter: "the --password option, and --password=…",
        ..ANY_PASSWORD
    },
    Pattern {
        mark: "password|passwd|passphrase",
        regex: r"--(?:\w+[_-])*pass(?:word|wd|phrase) +<value>",
        is_secret: |value| is_value(value) && !is_prose(value),
        example: "tool --password \"§\" --dry-run",
        counter: "give it --password or --password-file",
        ..ANY_PASSWORD
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
        mark: "assword|ASSWORD|passwd|PASSWD|pwd|Pwd|PWD|pass|Pass|PASS",
        regex: r#"(?:(?:[?&,]|;\s*)(?i:password|passwd|pwd)|(?:[?&]|;\s*)(?i:pass)) ?= ?([^\s&;,'"<>()]{3,})(?:[\s&;,'"<>)]|$)"#,
        example: "Server=h;Uid=ada;Password=§;Encrypt=true",
        counter: "/login?password=<yours>",
        ..ANY_PASSWORD
    },
    Pattern {
        mark: "password=",
        // With commas it is a call.
        regex: r#"\b(?:host|user|username|dbname|uid)=\S*[^\s,] (?:[a-z_]+=\S*[^\s,] )*?password=([^\s'"]{3,})"#,
        example: "host=h user=ada password=§ dbname=d",
        counter: "connect(host=h, user=user, password=password, port=1)",
        ..ANY_PASSWORD
    },
    Pattern {
        mark: "-D|-P",
        regex: r#"-[DP][0-9A-Za-z_.-]*(?i:password|passwd|passphrase)=([^\s'"]{3,})"#,
        example: "java -Djavax.net.ssl.trustStorePassword=§ a",
        counter: "java -Dpassword=$PW a",
        ..ANY_PASSWORD
    },
    Pattern {
        mark: "machine",
        regex: r"\bmachine\s+(?:\S+[.:]\S+|localhost)\s+login\s+\S+\s+password\s+(\S{3,})",
        is_secret: |value| is_value(value) && !is_prose(value),
        example: "machine example.org\n  login ada\n  password §",
        counter: "a login page password reset",
        ..ANY_PASSWORD
    },
    Pattern {
        mark: "assword '|ASSWORD '|dentified by '|DENTIFIED BY '",
        regex: r"(?i:password|identified by) '([^'\s]{3,})'",
        is_secret: |value| is_value(value) && !is_prose(value),
        example: "CREATE USER ada WITH PASSWORD '§';",
        counter: "IDENTIFIED BY '<password>'",
        ..ANY_PASSWORD
    },
    Pattern {
        mark: ":5432:|:5433:|:6432:|:*:",
        regex: r#"\b[^\s:]+:(?:543[23]|6432|\*):[^\s:]+:[^\s:]+:([^\s:;`'"),]{6,})"#,
        is_secret: |value| looks_random(value, true),
        example: "db.example.org:5432:shop:ada:§",
        counter: "src/a.rs:5432:5:error:unused",
        ..ANY_PASSWORD
    },
    Pattern {
        command: "unzip|zip|sqlcmd|mosquitto_|ipmitool",
        regex: " -P *<value>",
        example: "unzip -P § a.zip",
        counter: "unzip -P",
        ..ANY_PASSWORD
    },
    Pattern {
        mark: "--from-literal| pass:|--set|-var|TF_VAR_",
        regex: r#"(?:--from-literal[ =]["']?[^\s"'=]*(?i:pass(?:word|wd|phrase)?|pwd|secret|token|key|credentials?)=|(?:(?:--set(?:-string|-literal)?[ =]|-var[ =]|TF_VAR_)["']?|,)[^\s"',=]*?(?i:pass(?:word|wd|phrase)|pwd)=| -pass(?:in|out)? +pass:)<value>"#,
        is_secret: |value| is_value(value) && !is_plain(value),
        example: "kubectl create secret generic db --from-literal=password=§",
        counter: "openssl rsa -in k.pem -passin pass:$PW",
        ..ANY_PASSWORD
    },
    // What only a random value shows: most options with these letters are no secrets.
    Pattern {
        mark: " -p| -P| -k| -N| -w|-body|-value|-string|AUTH |add_user|change_password|login |sqlplus|thin:|wpa_| /p:",
        regex: r" (?:-[pPkNw] *|--(?:[a-z]+-)*(?:body|value|string)[ =]|/p:|(?:AUTH|login|(?:add_user|change_password|wpa_passphrase) \S+) +)<value>|(?:sqlplus +(?:-\S+ +)*|thin:)\w+/([^\s@/]{3,})@",
        is_secret: |value| {
            let is_random = looks_random(value, true) || is_rest(value.as_bytes());
            is_value(value) && is_random && is_shuffled(value)
        },
        example: "openssl enc -aes-256-cbc -k § -in a",
        counter: "cargo build -p Utf8String2 --value Release2Debug",
        ..ANY_PASSWORD
    },
    Pattern {
        command: "htpasswd",
        regex: r" -[a-zA-Z]*b[a-zA-Z]* +\S+ +\S+ +<value>",
        example: "htpasswd -bc users ada §",
        counter: "htpasswd -c users ada",
        ..ANY_PASSWORD
    },
    Pattern {
        command: "lftp|smbclient",
        regex: r" -[uU] *[^\s,%]+[,%]<value>",
        example: "smbclient //h/s -U ada%§",
        counter: "smbclient //h/s -U ada",
        ..ANY_PASSWORD
    },
    Pattern {
        command: "echo|printf",
        mark: "sudo|passwd|--password-stdin|--passphrase-fd|secret|kinit|cryptsetup|env add",
        regex: r" (?:-n +)?<value> *\| *(?:sudo +-S|(?:sudo +)?(?:(?:ch)?passwd|kinit|cryptsetup)\b|.*(?:--pass(?:word-stdin|phrase-fd)|\b(?:secrets?(?: versions)? (?:add|create|set|put)|env add)\b))",
        example: "echo § | sudo -S ls",
        counter: "echo $PW | sudo -S ls",
        ..ANY_PASSWORD
    },
    Pattern {
        mark: "<<<",
        regex: r"(?:sudo +-S|\b(?:ch)?passwd|\bkinit|--stdin|--password-stdin|--passphrase-fd)\b[^\n|;]*<<< *<value>",
        example: "sudo -S ls <<< '§'",
        counter: "sudo tee /etc/motd <<< 'welcome'",
        ..ANY_PASSWORD
    },
    Pattern {
        command: "keytool|jarsigner|apksigner",
        regex: " (?:-(?:[a-z]*store|key)pass +|--(?:ks|key)-pass +pass:)<value>",
        example: "apksigner sign --ks-pass pass:§ a.apk",
        counter: "keytool -list -keystore a.jks",
        ..ANY_PASSWORD
    },
    Pattern {
        mark: "auth=(|asic|redential|asicAuth",
        regex: r#"(?i:auth=|basic_?auth|NetworkCredential|PasswordCredentials)\( *["'][^"'\n]*["'], *["']([^"'\s]{3,})["']"#,
        example: "requests.get(url, auth=('ada', '§'))",
        counter: "HTTPBasicAuth('user', 'pass')",
        ..ANY_PASSWORD
    },
    Pattern {
        mark: "SecureString",
        regex: r#"ConvertTo-SecureString +(?:-String +)?["']([^"'\s]{3,})["']"#,
        example: "ConvertTo-SecureString '§' -AsPlainText -Force",
        counter: "ConvertTo-SecureString $env:PW -AsPlainText",
        ..ANY_PASSWORD
    },
    Pattern {
        mark: "requirepass |masterauth ",
        regex: r#"\b(?:requirepass|masterauth) +["']?([^\s"']{3,})"#,
        is_secret: |value| is_value(value) && looks_random(value, true),
        example: "CONFIG SET requirepass §z9",
        counter: "requirepass is not set",
        ..ANY_PASSWORD
    },
    Pattern {
        kind: "password hash",
        command: "",
        mark: "$2|$1$|$5$|$6$|$7$|$y$|$apr1$|$argon2|$scrypt|$pbkdf2",
        regex: r"((?:\$2[abxy]?\$[0-9]{2}\$[./0-9A-Za-z]{53}|\$(?:[1567y]|apr1)\$[./0-9A-Za-z=,$]{20,}|\$(?:argon2(?:id|i|d)|scrypt|pbkdf2[0-9a-z-]*)\$[./0-9A-Za-z=,+$-]{20,}))",
        is_secret: |_| true,
        example: "root:$6$a1B2c3D4$§§:19000:0:99999:7:::",
        counter: "printf '%s' \"$1$2$3\"",
    },
    // A constant of PHP, or what a program takes where a variable is not set.
    Pattern {
        mark: "PASSWORD|PASSWD|PASSPHRASE|_PASS|_PWD",
        regex: r#"(?:PASSWORD|PASSWD|PASSPHRASE|_PASS|_PWD)["']?[\])]? *(?:,|\|\||\?[?:]) *["']([^\s"']{6,})["']"#,
        // In a list of names another constant follows.
        is_secret: |value| {
            let has_small = value.bytes().any(|byte| byte.is_ascii_lowercase());
            is_value(value) && is_mixed_word(value) && has_small
        },
        example: "define('DB_PASSWORD', '§');",
        counter: "[\"DB_PASSWORD\", \"S3_KEY\"]",
        ..ANY_PASSWORD
    },
    // Django makes it of these signs, brackets among them, which are code elsewhere.
    Pattern {
        kind: SECRET,
        command: "",
        mark: "SECRET_KEY",
        regex: r#"SECRET_KEY[^\n]{0,40}?["'= ]([0-9A-Za-z!@#$%^&*(_=+)-]{40,})"#,
        is_secret: |value| {
            let symbols = value.bytes().filter(|byte| b"!@#$%^&*(=+)".contains(byte));
            symbols.count() >= 4 && distinct(value.as_bytes()) >= 16
        },
        example: "SECRET_KEY = 'a(b^c&d*e=§'",
        counter: "SECRET_KEY = get_random_secret_key_or_default(settings_module)",
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
    Pattern {
        kind: "Azure secret",
        command: "",
        mark: "Q~",
        regex: r"(?:^|[^0-9A-Za-z_~.-])([0-9A-Za-z_~.]{3}[0-9]Q~[0-9A-Za-z_~.-]{31,34})",
        is_secret: |_| true,
        example: "the secret aB18Q~§z",
        counter: "it ends in Q~",
    },
    Pattern {
        kind: "Terraform token",
        command: "",
        mark: ".atlasv1.",
        regex: r"\b([0-9A-Za-z]{14}\.atlasv1\.[0-9A-Za-z_-]{32,})",
        is_secret: |_| true,
        example: "a1B2c3D4e5F6g7.atlasv1.§§",
        counter: "a.atlasv1.b",
    },
    Pattern {
        kind: "Firebase key",
        command: "",
        mark: ":APA91",
        regex: r"\b(AAAA[0-9A-Za-z_-]{7}:APA91[0-9A-Za-z_-]{30,})",
        is_secret: |_| true,
        example: "AAAAa1B2c3D:APA91§",
        counter: "AAAA:APA91",
    },
    Pattern {
        kind: "Airtable token",
        command: "",
        mark: "pat",
        regex: r"\b(pat[0-9A-Za-z]{14}\.[0-9A-Za-z]{32,64})",
        is_secret: |_| true,
        example: "patA1b2C3d4E5f6G7.§§",
        counter: "pathological.cases",
    },
    Pattern {
        kind: "Resend key",
        command: "",
        mark: "re_",
        regex: r"\b(re_[0-9A-Za-z]{8}_[0-9A-Za-z]{20,})",
        is_secret: is_random,
        example: "re_a1B2c3D4_§",
        counter: "re_exports_areKeptInOneModuleAlone",
    },
    Pattern {
        kind: SECRET,
        command: "",
        mark: "nemonic|phrase|wallet",
        regex: r"(?i:mnemonic|(?:seed|recovery|backup|wallet)[ _-]?(?:phrase|words))[^0-9A-Za-z\n]{1,5}(?:is )?((?:[a-z]{3,8} ){11,23}[a-z]{3,8})",
        is_secret: |_| true,
        example: "mnemonic: 'tree lamp ocean rib salt moon cup fox gate hill ink jar'",
        counter: "the seed phrase is what opens a wallet",
    },
    Pattern {
        kind: "PIN",
        command: "",
        mark: "pin_|pinc|pinC|PinC|PIN_|PINC|_pin|_PIN|asscode|assCode|ass_code|ASSCODE|ASS_CODE|otp|OTP|cvv|CVV|cvc|CVC",
        regex: r"(?i:\b(?:[0-9a-z_]*(?:pin_?code|pass_?code)|(?:[a-z]+_)*(?:otp(?:_code)?|cvv|cvc|(?:sim|card|door|bank|user|login)_?pin))[^0-9A-Za-z\n]{1,4}(?:is )?)([0-9]{4,8})(?:[^0-9A-Za-z.]|$)",
        is_secret: |_| true,
        example: "pin_code: 471100",
        counter: "pin_code: 0471a and the code 4711",
    },
];
