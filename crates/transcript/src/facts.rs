//! The facts that a text names: files, identifiers of code, references (issues, commits, addresses). They are found by plain
//! rules on words, the same for every language: a word is a run of the characters that names and paths are made of.

use std::{collections::BTreeSet, ops::Range, sync::LazyLock};

use super::{
    shell::{self, Kind, Token},
    words::{is_among, on_one_line},
};

/// The length in bytes of the shortest identifier that counts: shorter ones are words of any text.
const SHORTEST_NAME: usize = 6;

/// The length in bytes of the longest name, path or reference that counts: paths of large repositories are long.
const LONGEST: usize = 400;

/// The names of files that have no ending, or one that other words have too.
const WHOLE_NAMES: &str = "BUILD.bazel|Brewfile|Containerfile|Dockerfile|Gemfile|Jenkinsfile|Justfile|Makefile|Pipfile|Procfile|\
    Rakefile|Vagrantfile|go.mod|go.sum|justfile|py.typed";

/// The products whose names look like files, in small letters, without `.js`.
const PRODUCTS: &str = "alpine|angular|backbone|chart|d3|day|discord|ember|express|moment|nest|next|node|nuxt|react|solid|three|vue";

/// The prefixes of a number that do not name an issue tracker, in small letters: `UTF-8`, `SHA-256`.
const STANDARDS: &str = "aes|ansi|ascii|base|cp|ecma|gpt|http|ieee|iso|md|rfc|rsa|sha|ucs|utf";

/// The short words with digits in them that are not ids: `linux-x64`, `test-e2e`.
const MIXED: &str = "a11y|amd64|arm64|armv7|b64|e2e|es2020|es2022|es6|h264|http2|i18n|i386|i686|ipv4|ipv6|k8s|l10n|md5|mp3|mp4|\
    oauth2|s390x|utf8|win32|x64|x86";

/// The endings by which a bare word, without a directory, is taken for a file.
static ENDINGS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let all = "astro|bat|bzl|c|cc|cfg|cjs|clj|cljs|cmake|conf|cpp|cs|csproj|css|csv|cts|dart|dockerfile|eex|elm|erl|ex|exs|\
    fsx|go|gql|gradle|graphql|groovy|h|hcl|heex|hpp|hs|htm|html|ini|ipynb|java|jl|js|json|jsonl|jsx|kt|kts|lock|\
    lua|md|mdx|mjs|mk|ml|mli|mts|nim|nix|php|pl|prisma|proto|ps1|py|pyi|rb|rs|rst|sass|scala|scss|sh|sln|sol|\
    sql|svelte|svg|swift|tex|tf|tfvars|toml|ts|tsx|txt|vue|xml|yaml|yml|zig|zsh";
    all.split('|').collect()
});

/// A fact that a text names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fact<'a> {
    /// A file, as the text writes it.
    File(&'a str),
    /// An identifier of code.
    Name(&'a str),
    /// An issue, a commit or an address.
    Reference(&'a str),
}

/// Hands every fact that a text names to `sink`, in the order of the text, as often as it occurs.
pub fn each_fact<'a>(text: &'a str, sink: &mut impl FnMut(Fact<'a>)) {
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !is_of_a_word(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let word = own_part(word, &text[..text.len() - rest.len()]);
        // `response.json()` is a call, `app.cs(12)` names a line.
        let called = behind.strip_prefix('(');
        let called = called.is_some_and(|args| !args.starts_with(|c: char| c.is_ascii_digit()));
        let is_call = called && !word.contains('/') && is_file(word);
        if !is_call {
            each_of_word(word, sink);
        }
        let mut behind = behind.chars();
        behind.next();
        rest = behind.as_str();
    }
}

/// Returns the part of a word that means something without what comes before it. Behind a variable, a bracket or a wildcard the
/// word is the end of a path, and only its file name is known; behind a backslash its first letter belongs to an escape.
fn own_part<'a>(word: &'a str, before: &str) -> &'a str {
    let name = || word.rsplit('/').next().unwrap_or(word);
    let mut before = before.chars().rev();
    match before.next() {
        Some('$') if word.contains('/') => name(),
        Some('}' | ']' | ')' | '*') if word.starts_with('/') => name(),
        Some('}' | '*') if word.starts_with(['.', '_', '-']) && is_file(word) => "",
        Some('\\') if word.starts_with(['n', 'r', 't']) => {
            // `\new` may be a part of a path, `\nNew` is not.
            let is_escape = word[1..].starts_with(|c: char| c.is_ascii_uppercase())
                || !before
                    .next()
                    .is_some_and(|c| c.is_alphanumeric() || c == ':');
            &word[usize::from(is_escape)..]
        }
        _ => word,
    }
}

/// Reports whether a character belongs to a word. Letters above ASCII belong to words of prose: they do not end a name in
/// its middle. Those of scripts without blanks between their words (Chinese, Japanese, Korean) do.
fn is_of_a_word(c: char) -> bool {
    !c.is_ascii() && c < '\u{2e80}' && c.is_alphanumeric()
        || c.is_ascii_alphanumeric()
        || matches!(
            c,
            '_' | '-' | '.' | '/' | ':' | '#' | '~' | '@' | '+' | '?' | '&' | '%' | '=' | '!'
        )
}

fn each_of_word<'a>(word: &'a str, sink: &mut impl FnMut(Fact<'a>)) {
    let word = word.trim_end_matches(['.', ':', '!', '?', '=', '-', '#', '/', '&', '+']);
    let word = word.trim_start_matches([':', '=', '-', '!', '?', '&', '+', '%']);
    if word.len() < 4 {
        return;
    }
    if !word.is_ascii() {
        let path = word.split(':').next().unwrap_or(word);
        let path = path.strip_prefix("./").unwrap_or(path);
        if path.len() <= LONGEST && is_file(path) {
            sink(Fact::File(path));
        }
        return;
    }
    if let Some(at) = word.find("://") {
        if word[..at].ends_with("http") || word[..at].ends_with("https") {
            let start = word[..at].rfind("http").unwrap_or(0);
            let link = word.get(start..).filter(|link| link.len() <= LONGEST);
            if let Some(link) = link {
                sink(Fact::Reference(link));
            }
        }
        return;
    }
    // `path:12:5`, `key=path`.
    for part in word.split(['=', '?', '&', '!', '%']) {
        let mut pieces = part.split(':').filter(|piece| !piece.is_empty());
        let first = pieces.next().unwrap_or_default();
        each_of_piece(first, sink);
        for piece in pieces {
            each_of_piece(piece, sink);
        }
    }
}

fn each_of_piece<'a>(piece: &'a str, sink: &mut impl FnMut(Fact<'a>)) {
    let piece = piece
        .trim_end_matches(['.', '-', '#', '@', '+', '/'])
        .trim_start_matches(['-', '#', '@', '+']);
    let piece = piece.strip_prefix("./").unwrap_or(piece);
    if piece.len() < 4 {
        return;
    }
    if piece.len() > LONGEST {
        return;
    }
    if is_issue(piece) || is_commit(piece) {
        sink(Fact::Reference(piece));
        return;
    }
    if is_file(piece) {
        sink(Fact::File(piece));
        return;
    }
    for name in piece.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
        if is_name(name) {
            sink(Fact::Name(name));
        }
    }
}

/// Reports whether a piece is a path with an ending, or a bare file name with an ending of the list.
pub fn is_file(piece: &str) -> bool {
    let name = piece.rsplit('/').next().unwrap_or(piece);
    if is_among(WHOLE_NAMES, name) {
        return !piece.contains("//");
    }
    let Some((stem, ending)) = name.rsplit_once('.') else {
        return false;
    };
    let is_product = ending == "js" && is_among(PRODUCTS, &stem.to_ascii_lowercase());
    if is_product && !piece.contains('/') || matches!(stem, "self" | "this") {
        return false;
    }
    // `.ex` is an ending, `.gitignore` a file.
    if stem.is_empty() && (!piece.contains('/') || ENDINGS.binary_search(&ending).is_ok()) {
        return false;
    }
    if piece.contains("//") || piece.contains('@') && !piece.contains('/') {
        return false;
    }
    if piece.contains('/') {
        if ENDINGS.binary_search(&ending).is_ok() {
            return true;
        }
        // `gopkg.in/yaml.v3` and `github.com/owner/name.git` are modules and addresses.
        let host = piece.split('/').next().unwrap_or_default();
        let is_host = host.trim_start_matches('.').contains('.') || ending == "git";
        if is_host || ending.strip_prefix('v').is_some_and(is_number) {
            return false;
        }
        let letters = ending.bytes().all(|byte| byte.is_ascii_alphanumeric());
        return (1..=8).contains(&ending.len())
            && letters
            && ending.as_bytes()[0].is_ascii_alphabetic();
    }
    ENDINGS.binary_search(&ending).is_ok()
}

/// Reports whether a word is `snake_case`, `camelCase`, `PascalCase` of several words, or `UPPER_CASE`.
pub fn is_name(word: &str) -> bool {
    let inner = word.trim_matches('_');
    if word.len() < SHORTEST_NAME || word.len() > 80 || inner.len() < 4 {
        return false;
    }
    if word.as_bytes()[0].is_ascii_digit() {
        return false;
    }
    let bytes = inner.as_bytes();
    let joined = inner.contains('_') && bytes.iter().any(u8::is_ascii_alphabetic);
    let humps = bytes
        .windows(2)
        .any(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase());
    // A run of random characters (a key, a checksum in base64) changes often between digits and letters.
    let turns = bytes
        .windows(2)
        .filter(|two| two[0].is_ascii_digit() != two[1].is_ascii_digit())
        .count();
    (joined || humps && !is_random(bytes)) && turns <= 4
}

/// Reports whether the letters of a longer word are nearly without vowels, as those of a key or of a request's id are.
fn is_random(word: &[u8]) -> bool {
    let letters = word.iter().filter(|byte| byte.is_ascii_alphabetic());
    let vowels = letters.clone().filter(|byte| b"aeiouAEIOU".contains(byte));
    let (letters, vowels) = (letters.count(), vowels.count());
    letters > 8 && vowels * 10 < letters
}

/// Reports whether a word is seven to forty hexadecimal digits with a letter and a number among them.
fn is_commit(word: &str) -> bool {
    (7..=40).contains(&word.len())
        && word
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
        && word.bytes().any(|byte| byte.is_ascii_digit())
        && word.bytes().any(|byte| byte.is_ascii_lowercase())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reports whether a word is like `owner/name#12`, `ABC-123`, `name-x1y`, `name-abc.3`; `#12` alone does not name its tracker.
fn is_issue(word: &str) -> bool {
    if let Some((place, number)) = word.split_once('#') {
        return is_number(number) && place.contains('/');
    }
    let Some((prefix, rest)) = word.rsplit_once('-') else {
        return false;
    };
    let letters = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphabetic());
    let upper = prefix.bytes().all(|byte| byte.is_ascii_uppercase());
    if upper && (2..=10).contains(&prefix.len()) && letters(prefix) {
        let standard = is_among(STANDARDS, &prefix.to_ascii_lowercase());
        return is_number(rest) && rest.len() <= 6 && !standard;
    }
    let prefix_is_plain =
        (2..=24).contains(&prefix.len()) && prefix.bytes().all(|b| b.is_ascii_lowercase());
    let (id, sub) = rest.split_once('.').unwrap_or((rest, ""));
    let id_is_short = (2..=6).contains(&id.len())
        && id
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    // `name-abc.3`, but not `ubuntu-22.04` and `api-v2.1`.
    let is_version = is_number(id.strip_prefix('v').unwrap_or(id));
    let numbered = is_number(sub) && sub.len() <= 3;
    let mixed = sub.is_empty()
        && id.len() >= 3
        && id.bytes().any(|b| b.is_ascii_digit())
        && id.bytes().any(|b| b.is_ascii_lowercase());
    prefix_is_plain && id_is_short && !is_version && (numbered || mixed) && !is_among(MIXED, id)
}

/// Returns the identifiers of a text, each once.
pub fn names_in(text: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    each_fact(text, &mut |fact| {
        if let Fact::Name(name) = fact {
            names.insert(name);
        }
    });
    names
}

/// The programs whose arguments are files, so that a word of theirs is one whatever letters and blanks it has.
const FILE_PROGRAMS: &str = "add|bat|blame|cat|checkout|chmod|code|cp|diff|du|file|head|less|ln|ls|more|mv|nano|open|restore|rm|\
    show|sort|source|stat|tail|tee|touch|uniq|vi|vim|wc|xdg-open";

/// The words in front of a program.
const BEFORE_A_PROGRAM: &str = "command|env|exec|git|sudo|time";

/// Returns the files of a shell line whose names have blanks, letters above ASCII, or signs that end a word, each with its place: what a
/// program takes for a file, and the targets of redirections. Any other words in quotes may be a sentence.
pub fn shell_files(line: &str) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    let mut takes_files = None;
    for Token { kind, text, place } in shell::tokens(line) {
        let is_special = text.chars().any(|c| !c.is_ascii() || !is_of_a_word(c));
        let is_plain = !line[place.clone()].contains(['$', '*', '`']) && is_file(&text);
        match kind {
            // The lines of a document in the command are not commands.
            Kind::Sign if text == "\n" && line[..place.end].contains("<<") => break,
            Kind::Sign => takes_files = None,
            Kind::Word if takes_files.is_none() => {
                let is_before = text.contains('=') || is_among(BEFORE_A_PROGRAM, &text);
                takes_files = (!is_before).then(|| is_among(FILE_PROGRAMS, &text));
            }
            Kind::Word | Kind::Target
                if is_special
                    && is_plain
                    && (kind == Kind::Target || takes_files == Some(true)) =>
            {
                found.push((place, text));
            }
            _ => {}
        }
    }
    found
}

/// The commands that only set the shell up for the next one.
pub(super) const SET_UP: &str = ".|cd|export|nvm|pushd|set|source|unset";

/// The commands that are left out where there are others beside them, because they tell nothing about the work.
pub(super) const SAYS_NOTHING: &str = "echo|printf|sleep|true|wait";

/// The separator between the commands of a plain line.
pub const AND: &str = " && ";

/// Returns what a command line does, without its directory and the target of its output: comments, commands that set the shell
/// up, variables, pipes and redirections are removed. Two lines that do the same have the same plain form, which is never shown.
/// A program that is written in the line (`<<`) belongs to it.
pub fn plain_command(line: &str) -> String {
    let mut all = Vec::new();
    // The place of the command, without its variables, and whether its pipes and redirections have begun.
    let (mut place, mut is_cut) = (None::<Range<usize>>, false);
    for Token {
        kind,
        text,
        place: part,
    } in shell::tokens(line)
    {
        match (kind, text.as_str()) {
            (Kind::Word, _) if place.is_none() && is_variable(&line[part.clone()]) => {}
            (Kind::Word, _) | (Kind::Sign, "(" | ")") if !is_cut => {
                place = Some(place.map_or(part.start, |have| have.start)..part.end);
            }
            (Kind::Word, _) | (Kind::Sign, "(" | ")") => {}
            (Kind::Sign, "|") | (Kind::Target, _) => is_cut = true,
            (Kind::Sign | Kind::Document, _) => {
                let is_document = kind == Kind::Document;
                if let Some(have) = place.take() {
                    let end = if is_document && !is_cut {
                        line.len()
                    } else {
                        have.end
                    };
                    all.push(on_one_line(&line[have.start..end]));
                }
                if is_document {
                    break;
                }
                is_cut = false;
            }
        }
    }
    for list in [SET_UP, SAYS_NOTHING] {
        let is_worth_naming =
            |command: &String| !is_among(list, command.split(' ').next().unwrap_or_default());
        if all.iter().any(is_worth_naming) {
            all.retain(is_worth_naming);
        }
    }
    all.join(AND)
}

/// Reports whether a word sets a variable for a command. A value in quotes may hold blanks: then it is left as it is.
pub(super) fn is_variable(word: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !word.contains(['"', '\'', '$']) && !name.is_empty() && name.bytes().all(is_of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(text: &str) -> Vec<Fact<'_>> {
        let mut all = Vec::new();
        each_fact(text, &mut |fact| all.push(fact));
        all
    }

    #[test]
    fn files_are_paths_with_an_ending_and_bare_names_with_a_known_one() {
        use Fact::File;
        assert_eq!(
            facts(
                "see ./src/main.rs:12:5, \"lib/a_b/c.heex\" and (app.js). e.g. foo.map i.e. v1.2"
            ),
            [File("src/main.rs"), File("lib/a_b/c.heex"), File("app.js")]
        );
        assert_eq!(
            facts("--config=.etc/x.toml ../b.rs"),
            [File(".etc/x.toml"), File("../b.rs")]
        );
    }

    #[test]
    fn names_have_several_words() {
        let names: Vec<_> =
            names_in("build_index Foo.BarBaz.do_it/2 self.maxRetries MAX_SIZE hello World")
                .into_iter()
                .collect();
        assert_eq!(names, ["BarBaz", "MAX_SIZE", "build_index", "maxRetries"]);
        for random in [
            "a1B2c3D4e5F6g7H8",
            "GJNNcwzRFTLMhEMF",
            "GJNNczcRfNzvvyoB",
            "rjRgTDznM8",
        ] {
            assert!(!is_name(random), "{random}");
        }
        for name in [
            "getURLForHTTPRequest",
            "mtlsCtx",
            "XMLHttpRequest",
            "strncpyBuf",
            "BtnSrc",
        ] {
            assert!(is_name(name), "{name}");
        }
    }

    #[test]
    fn references_are_issues_commits_and_addresses() {
        use Fact::Reference;
        assert_eq!(
            facts("spotter-dov.3, ABC-123; owner/name#42 b9288c2 <https://a.example/x?y=1>."),
            [
                Reference("spotter-dov.3"),
                Reference("ABC-123"),
                Reference("owner/name#42"),
                Reference("b9288c2"),
                Reference("https://a.example/x?y=1"),
            ]
        );
        assert_eq!(facts("read-only up-to-date utf-8 deadbeef 1234567"), []);
    }

    #[test]
    fn files_of_other_projects_are_known_and_what_looks_like_files_is_not() {
        use Fact::File;
        assert_eq!(
            facts(
                "nb/explore.ipynb api/v1/user.proto go.mod Dockerfile deploy/Makefile tsconfig.json x.mts"
            ),
            [
                File("nb/explore.ipynb"),
                File("api/v1/user.proto"),
                File("go.mod"),
                File("Dockerfile"),
                File("deploy/Makefile"),
                File("tsconfig.json"),
                File("x.mts"),
            ]
        );
        assert_eq!(
            facts("Node.js Next.js gopkg.in/yaml.v3 response.json() self.lock github.com/a/b.git"),
            []
        );
        assert_eq!(
            facts("请看src/main.rs文件 docs/übersicht.md Program.cs(12,5)"),
            [
                File("src/main.rs"),
                File("docs/übersicht.md"),
                File("Program.cs")
            ]
        );
        let long = format!("packages/{}/src/index.ts", "a-long-name/".repeat(20));
        let long = long.replace("//", "/");
        assert_eq!(facts(&long), [File(&long)]);
    }

    #[test]
    fn of_a_path_that_is_known_in_part_the_name_counts() {
        use Fact::{File, Name};
        for (text, found) in [
            ("${ROOT}/scripts/run.sh", vec![File("run.sh")]),
            ("$HOME/.config/app.toml", vec![File("app.toml")]),
            ("$(git rev-parse HEAD)/src/a.rs", vec![File("a.rs")]),
            ("app/[id]/page.tsx", vec![File("page.tsx")]),
            ("src/**/a_b.ts", vec![File("a_b.ts")]),
            ("src/*.test.ts {a,b}_test.go", vec![]),
            (
                "**do_it_now** *row_count",
                vec![Name("do_it_now"), Name("row_count")],
            ),
            ("git@github.com:ada/tide.git", vec![]),
        ] {
            assert_eq!(facts(text), found, "{text}");
        }
    }

    #[test]
    fn the_letter_of_an_escape_belongs_to_no_name() {
        use Fact::{File, Name};
        for (text, found) in [
            (r"done\nGenerated \nrun_all", vec![Name("run_all")]),
            (r"(x)\tread_it", vec![Name("read_it")]),
            (r"C:\src\new_name", vec![Name("new_name")]),
            (r#""a;\nsrc/a.rs""#, vec![File("src/a.rs")]),
        ] {
            assert_eq!(facts(text), found, "{text}");
        }
    }

    #[test]
    fn versions_standards_and_platforms_are_no_references() {
        assert_eq!(
            facts(
                "UTF-8 SHA-256 ISO-8601 ubuntu-22.04 node-20.1 api-v2.1 release-v10 linux-x64 test-e2e"
            ),
            []
        );
        assert_eq!(facts("PROJ-8"), [Fact::Reference("PROJ-8")]);
    }

    #[test]
    fn a_command_is_plain_without_its_place_and_its_pipes() {
        for (line, plain) in [
            ("cd /a/b && mix test 2>&1 | tail -5", "mix test"),
            ("FOO=1 cargo test -q; echo done", "cargo test -q"),
            (
                "git commit -m \"a | b\" > log 2>&1 && git push || true",
                "git commit -m \"a | b\" && git push",
            ),
            ("cat <<'EOF'\nx\nEOF", "cat <<'EOF' x EOF"),
            ("sleep 1; echo mark 3", "sleep 1 && echo mark 3"),
            (
                "make serve &> log & cargo test 2>&1 | tee x || true",
                "make serve && cargo test",
            ),
            (
                "# run them\nsource .venv/bin/activate && pytest -q | tail",
                "pytest -q",
            ),
            ("set -e; export A=1; npm test", "npm test"),
            ("source env.sh", "source env.sh"),
            ("", ""),
        ] {
            assert_eq!(plain_command(line), plain, "{line}");
        }
    }

    #[test]
    fn files_with_signs_in_their_names_are_read_as_the_shell_reads_them() {
        let files = |line: &str| -> Vec<String> {
            shell_files(line)
                .into_iter()
                .map(|(_, file)| file)
                .collect()
        };
        for (line, expected) in [
            (
                "cat \"it's.md\" 'q\"uote.txt'",
                &["it's.md", "q\"uote.txt"][..],
            ),
            (
                "cat 'app/(auth)/[id]/page.tsx'",
                &["app/(auth)/[id]/page.tsx"],
            ),
            ("head app/\\(auth\\)/layout.tsx", &["app/(auth)/layout.tsx"]),
            ("cp 'a,b.csv' 'x;y.json'", &["a,b.csv", "x;y.json"]),
            ("git commit -m 'fix (auth) in a.rs'", &[]),
            ("cat $A/b.rs *.rs plain.rs", &[]),
        ] {
            assert_eq!(files(line), expected, "{line}");
        }
    }
}
