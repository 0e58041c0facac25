//! Invented secrets for tests, the same in every run.

/// Random text that is the same in every run; keys in a source file would set off every scanner there is.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn text(&mut self, alphabet: &str, length: usize) -> String {
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

pub(super) const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
pub(super) const URL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
pub(super) const HEX: &str = "0123456789abcdef";
pub(super) const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// A secret: its kind, the text around it, and the part that must not be left.
pub type Planted = (&'static str, String, String);

/// Returns five secrets of each kind.
pub fn planted() -> Vec<Planted> {
    (1_000..1_005).flat_map(planted_by).collect()
}

/// Returns a secret of each kind, others for each seed.
#[allow(clippy::too_many_lines, reason = "a table")]
pub fn planted_by(seed: u64) -> Vec<Planted> {
    let mut found = Vec::new();
    let mut random = Random(seed);
    let mut plant = |kind, around: &str, prefix: &str, alphabet: &str, length| {
        let body = random.text(alphabet, length);
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
    for (kind, around) in COMMANDS {
        plant(kind, around, "", ALNUM, 12);
    }
    for (kind, around) in KEYS {
        plant(kind, around, "", ALNUM, 40);
    }
    found
}

/// Commands and variables that hold a password.
const COMMANDS: [(&str, &str); 16] = [
    ("PGPASSWORD", "PGPASSWORD={} psql -h db"),
    ("behind another command", "cd /srv;PGPASSWORD={} psql"),
    ("mysql", "mysql -h db -uroot -p{} shop"),
    ("mysqldump", "$ /usr/bin/mysqldump -p'{}' shop > shop.sql"),
    ("mariadb", "mariadb --host db -p{}"),
    ("curl", "curl -su ada:{} https://example.org"),
    ("curl -u", "curl -u ada:{} https://example.org"),
    ("curl --user", "curl --user \"ada:{}\" https://example.org"),
    ("sshpass", "sshpass -p {} ssh ada@host"),
    ("sshpass attached", "sshpass -p'{}' ssh ada@host"),
    ("redis-cli", "redis-cli -h cache -a {} ping"),
    ("--password=", "tool --user ada --password={} --dry-run"),
    ("--password", "tool --password {}"),
    ("--password quoted", "tool --password \"{}\" --dry-run"),
    (
        "docker login",
        "docker login -u ada -p {} registry.example.org",
    ),
    (
        "docker login over lines",
        "docker login \\\n  -u ada \\\n  -p {}",
    ),
];

/// Places in which a key or the password of a service follows its name.
const KEYS: [(&str, &str); 45] = [
    ("ini", "[default]\naws_secret_access_key = {}\nregion = eu"),
    ("environment", "AWS_SECRET_ACCESS_KEY={}"),
    ("shell export", "export AWS_SECRET_ACCESS_KEY=\"{}\""),
    ("YAML", "aws_secret_access_key: {}"),
    ("YAML on the next line", "aws_secret_access_key: >-\n  {}"),
    ("camel case in JSON", "{\"SecretAccessKey\": \"{}\"}"),
    ("escaped JSON", "{\\\"secretAccessKey\\\": \\\"{}\\\"}"),
    ("TypeScript", "secretKeyBase: \"{}\","),
    ("Go", "botToken := \"{}\""),
    ("Ruby", ":twilio_auth_token => '{}'"),
    ("properties", "app.signing.key={}"),
    ("XML", "<clientSecret>{}</clientSecret>"),
    ("attribute of XML", "<add key=\"apiKey\" value=\"{}\"/>"),
    ("list of Kubernetes", "- name: APP_SECRET\n  value: {}"),
    ("kubeconfig", "    client-key-data: {}"),
    ("Dockerfile", "ENV NPM_TOKEN {}"),
    ("docker run", "docker run -e API_KEY={} image"),
    ("fish", "set -x GITLAB_TOKEN {}"),
    ("csh", "setenv API_TOKEN {}"),
    ("PowerShell", "$env:API_TOKEN='{}'"),
    (
        "aws configure",
        "aws configure set aws_secret_access_key {}",
    ),
    ("option", "tool --api-key {} run"),
    ("option with =", "tool --client-secret={} run"),
    ("table in Markdown", "| `API_TOKEN` | `{}` |"),
    ("table", "API_TOKEN   {}"),
    ("sentence", "my AWS secret access key is {}, use it"),
    ("below its title", "Secret Access Key\n{}"),
    (
        "CSV",
        "Access key ID,Secret access key\nAKIAQ3EGPJ7WTB4N2XYZ,{}",
    ),
    ("query", "https://example.org/?q=1&access_token={}&page=2"),
    (
        "signed URL",
        "https://a.blob.example.net/c?sv=2020&sig={}%3D",
    ),
    ("user of a URL", "git clone https://{}@example.org/a/b"),
    ("header", "X-Api-Key: {}"),
    ("header in Python", "headers={'X-Vault-Token': '{}'}"),
    ("cookie", "headers={'Cookie': 'session={}; a=b'}"),
    (
        "connection string",
        "AccountName=a;AccountKey={};EndpointSuffix=example.net",
    ),
    ("ADO", "Server=h;User Id=ada;Password={};Encrypt=true"),
    (
        "JDBC",
        "jdbc:postgresql://h/db?user=ada&password={}&ssl=true",
    ),
    ("libpq", "host=h user=ada password={} dbname=d"),
    ("netrc", "machine example.org\n  login ada\n  password {}"),
    ("pgpass", "db.example.org:5432:shop:ada:{}"),
    ("SQL", "CREATE USER ada WITH PASSWORD '{}';"),
    (
        "Java",
        "java -Djavax.net.ssl.trustStorePassword={} -jar a.jar",
    ),
    ("sudo", "echo {} | sudo -S ls"),
    ("WireGuard", "[Interface]\nPrivateKey = {}="),
    (
        "numbered PEM",
        "     1→-----BEGIN EC PRIVATE KEY-----\n     2→{}\n     3→-----END EC PRIVATE KEY-----",
    ),
];
