//! What becomes of the human's rules: reboot after reboot through the product, with agents that keep notes and agents that do not.
//!
//! The agent is made up: its sessions are written as the client writes them. What carries the rules from one session to the next
//! is the product alone, and what the agent itself puts into its notes.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::product::Product;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// How many reboots follow one another.
const REBOOTS: usize = 5;

/// How many prompts there are between two reboots.
const ROUNDS: [usize; 3] = [2, 6, 12];

/// What each sentence is that the human says once, in the first session.
const KINDS: [&str; 6] = [
    "goal",
    "safety rule",
    "hard constraint",
    "preference",
    "decision",
    "rejected way",
];

/// The length in bytes of a prompt whose last sentence is looked for.
const LONG: usize = 900;

/// What a human says in one language.
struct Language {
    name: &'static str,
    /// One sentence of each kind.
    said: [&'static str; KINDS.len()],
    /// Every other prompt, with the numbers of the part and of the step.
    go_on: &'static str,
    /// What the long prompt is filled with, with a number.
    filler: &'static str,
    /// What it ends with.
    last: &'static str,
}

/// Among them are a script that is written from right to left, and one without blanks between its words.
const LANGUAGES: [Language; 5] = [
    Language {
        name: "English",
        said: [
            "Build a small command-line feed reader that keeps its entries in one file.",
            "Never delete or overwrite anything below ~/feeds, it is the only copy.",
            "The binary must stay under 4 MB and start in less than 50 ms.",
            "I prefer small commits with a test in each of them.",
            "We use SQLite instead of JSON files because two processes write at once.",
            "Polling every minute was rejected, it got us banned by two servers.",
        ],
        go_on: "Go on with part {part} of step {step}.",
        filler: "Feed {part} of the list has entries with dates of its own kind.",
        last: "Only ever talk to the staging server, the other one is live.",
    },
    Language {
        name: "German",
        said: [
            "Bau einen kleinen Feedreader für die Kommandozeile, der alle Einträge in einer Datei hält.",
            "Unter ~/feeds darf nie etwas gelöscht oder überschrieben werden, es ist die einzige Kopie.",
            "Das Programm muss unter 4 MB bleiben und in weniger als 50 ms starten.",
            "Kleine Commits sind mir lieber, jeder mit einem Test.",
            "Wir nehmen SQLite statt JSON-Dateien, weil zwei Prozesse gleichzeitig schreiben.",
            "Jede Minute abzufragen haben wir verworfen, zwei Server haben uns dafür gesperrt.",
        ],
        go_on: "Mach mit Teil {part} von Schritt {step} weiter.",
        filler: "Feed {part} der Liste hat Einträge mit Daten von ganz eigener Art.",
        last: "Sprich nur mit dem Testserver, der andere ist im Betrieb.",
    },
    Language {
        name: "Russian",
        said: [
            "Напиши небольшую программу для чтения лент, которая хранит все записи в одном файле.",
            "Никогда не удаляй и не перезаписывай ничего в ~/feeds: это единственная копия.",
            "Программа должна занимать меньше 4 МБ и запускаться быстрее чем за 50 мс.",
            "Мне больше нравятся маленькие коммиты, и в каждом свой тест.",
            "Мы берём SQLite вместо файлов JSON, потому что пишут сразу два процесса.",
            "Опрос каждую минуту отвергнут: из-за него нас заблокировали два сервера.",
        ],
        go_on: "Продолжай с частью {part} шага {step}.",
        filler: "В ленте {part} из списка даты записаны по-своему.",
        last: "Обращайся только к тестовому серверу, другой работает для людей.",
    },
    Language {
        name: "Japanese",
        said: [
            "項目を一つのファイルに保存する、小さなコマンドラインのフィードリーダーを作ってください。",
            "~/feeds の下は唯一のコピーなので、絶対に削除も上書きもしないでください。",
            "実行ファイルは4MB未満で、50ミリ秒以内に起動しなければなりません。",
            "コミットは小さく、それぞれにテストを付けるのが好みです。",
            "二つのプロセスが同時に書き込むため、JSONではなくSQLiteを使います。",
            "毎分の取得は、二つのサーバーに遮断されたので却下しました。",
        ],
        go_on: "ステップ{step}の部分{part}を続けてください。",
        filler: "一覧のフィード{part}には独自の日付の項目があります。",
        last: "検証用のサーバーだけに接続し、本番には触れないでください。",
    },
    Language {
        name: "Arabic",
        said: [
            "اكتب قارئ خلاصات صغيرا لسطر الأوامر يحفظ كل المواد في ملف واحد.",
            "لا تحذف أي شيء تحت ~/feeds ولا تكتب فوقه أبدا، فهو النسخة الوحيدة.",
            "يجب أن يبقى البرنامج أصغر من 4 ميغابايت وأن يبدأ في أقل من 50 ميلي ثانية.",
            "أفضل الإيداعات الصغيرة، وفي كل واحد منها اختبار.",
            "نستخدم SQLite بدلا من ملفات JSON لأن عمليتين تكتبان في الوقت نفسه.",
            "رفضنا الاستعلام كل دقيقة لأن خادمين حظرانا بسببه.",
        ],
        go_on: "تابع الجزء {part} من الخطوة {step}.",
        filler: "الخلاصة {part} في القائمة لها تواريخ من نوع خاص.",
        last: "اتصل بخادم التجربة فقط، فالخادم الآخر قيد الاستعمال.",
    },
];

impl Language {
    fn go_on(&self, part: usize, step: usize) -> String {
        let numbered = self.go_on.replace("{part}", &part.to_string());
        numbered.replace("{step}", &step.to_string())
    }

    /// The sentences over the prompts of the first session: the goal by itself, the others after it.
    fn spread(&self, prompts: usize) -> Vec<String> {
        let (goal, others) = self.said.split_at(1);
        let each = others.len().div_ceil(prompts - 1);
        let others = others.chunks(each).map(|some| some.join(" "));
        std::iter::once(goal.join(" ")).chain(others).collect()
    }

    /// A goal, and then a prompt in which much is said before the sentence that counts.
    fn long(&self) -> Vec<String> {
        let mut text = String::new();
        for number in 1.. {
            let sentence = self.filler.replace("{part}", &number.to_string());
            if text.len() + sentence.len() + 1 + self.last.len() > LONG {
                break;
            }
            text.push_str(&sentence);
            text.push(' ');
        }
        let blank = " ".repeat(LONG - text.len() - self.last.len());
        vec![
            self.said[0].to_owned(),
            format!("{text}{blank}{}", self.last),
        ]
    }
}

/// What the agent does with its notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agent {
    /// It keeps none.
    Silent,
    /// It writes the rules down and keeps them.
    Noting,
    /// It writes its notes new each turn, and only how far it is.
    Rewriting,
}

/// How many of a human's sentences and prompts stand word for word in the handoffs.
#[derive(Default)]
struct Kept {
    /// Sentences, by handoff.
    by_reboot: [usize; REBOOTS],
    /// Prompts, of those that were given until then.
    prompts: usize,
    all_prompts: usize,
    /// What was missing where.
    missing: Vec<String>,
}

/// Prints the table.
pub fn print() -> Outcome<()> {
    let chains = 3 * ROUNDS.len();
    println!(
        "\n| the human's words, word for word | the goal and the 5 rules, of {} in handoff 1 to {REBOOTS} | the last sentence of {LONG} bytes, of {} | all prompts so far |",
        KINDS.len() * chains,
        chains * REBOOTS
    );
    println!("|---|---|---|---|");
    let mut missing = Vec::new();
    for language in &LANGUAGES {
        let (mut rules, mut last) = (Kept::default(), Kept::default());
        for agent in [Agent::Silent, Agent::Noting, Agent::Rewriting] {
            for prompts in ROUNDS {
                let said = language.spread(prompts);
                chain(language, agent, prompts, &said, &language.said, &mut rules)?;
                let said = language.long();
                chain(language, agent, prompts, &said, &[language.last], &mut last)?;
            }
        }
        let counts = rules.by_reboot.map(|count| count.to_string()).join(" · ");
        println!(
            "| {} | {counts} | {} | {} of {} |",
            language.name,
            last.by_reboot.iter().sum::<usize>(),
            rules.prompts + last.prompts,
            rules.all_prompts + last.all_prompts
        );
        missing.extend(rules.missing.into_iter().chain(last.missing));
    }
    let missing = if missing.is_empty() {
        vec!["nothing".to_owned()]
    } else {
        missing
    };
    println!("\nMissing: {}.", missing.join("; "));
    Ok(())
}

/// Runs sessions with reboots between them and looks in each handoff for the sentences, and for each prompt that was given before.
fn chain(
    language: &Language,
    agent: Agent,
    prompts: usize,
    first: &[String],
    sentences: &[&str],
    kept: &mut Kept,
) -> Outcome<()> {
    let directory = tempfile::tempdir()?;
    let path = |round: usize| directory.path().join(format!("session-{round}.jsonl"));
    let mut product = Product::new(&path(0), "/p")?;
    let mut given: Vec<String> = Vec::new();
    let mut handed_over = None;
    for round in 0..REBOOTS {
        let mut log = Log::new(path(round), round);
        let mut play = |number, prompt, announced| {
            let played = Turn {
                agent,
                round,
                number,
                prompt,
                sentences,
            };
            turn(&mut product, &mut log, &played, announced)
        };
        if let Some(handoff) = handed_over.take() {
            play(0, handoff, false)?;
        }
        for number in 0..prompts {
            let prompt = match first.get(number).filter(|_| round == 0) {
                Some(prompt) => prompt.clone(),
                None => language.go_on(number + 1, round + 1),
            };
            given.push(prompt.clone());
            play(number + 1, prompt, true)?;
        }
        let handoff = product.reboot(&path(round + 1))?;
        let words = plain(&handoff);
        let stands = |text: &&str| words.contains(&plain(text));
        for (sentence, kind) in sentences.iter().zip(KINDS) {
            if stands(sentence) {
                kept.by_reboot[round] += 1;
            } else {
                let (name, number) = (language.name, round + 1);
                kept.missing.push(format!(
                    "{kind} ({name}, {agent:?}, {prompts}) in handoff {number}"
                ));
            }
        }
        kept.all_prompts += given.len();
        kept.prompts += given.iter().map(String::as_str).filter(stands).count();
        handed_over = Some(handoff);
    }
    Ok(())
}

/// Runs the turns of another program's session (`turns.jsonl` in `place`) through as many reboots, and writes each handoff
/// beside them. The sessions that follow have one turn of work each.
pub fn foreign(place: &Path) -> Outcome<()> {
    let path = |round: usize| place.join(format!("session-{round}.jsonl"));
    let mut product = Product::new(&path(0), "/p")?;
    let mut log = Log::new(path(0), 0);
    for line in fs::read_to_string(place.join("turns.jsonl"))?.lines() {
        let turn: Value = serde_json::from_str(line)?;
        let text = turn["text"].as_str().ok_or("a turn without its text")?;
        match turn["role"].as_str() {
            Some("user") => {
                product.prompted(text)?;
                log.prompt(text);
            }
            Some("assistant") => {
                log.say(text);
                log.write()?;
                product.read()?;
                product.turn_ended(Some(text))?;
            }
            // What the client adds for the model is not the session's.
            _ => {}
        }
    }
    log.write()?;
    product.read()?;
    for round in 1..=REBOOTS {
        let handoff = product.reboot(&path(round))?;
        fs::write(place.join(format!("handoff-{round}.md")), &handoff)?;
        let mut log = Log::new(path(round), round);
        let work = Turn {
            agent: Agent::Silent,
            round,
            number: 1,
            prompt: handoff,
            sentences: &[],
        };
        turn(&mut product, &mut log, &work, false)?;
    }
    Ok(())
}

/// A text with single blanks: where its lines break does not count.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

struct Turn<'a> {
    agent: Agent,
    round: usize,
    number: usize,
    prompt: String,
    sentences: &'a [&'a str],
}

/// A turn of the agent's: it reads, edits, runs the tests and says what it did.
fn turn(product: &mut Product, log: &mut Log, turn: &Turn<'_>, announced: bool) -> Outcome<()> {
    let (round, number) = (turn.round, turn.number);
    if announced {
        product.prompted(&turn.prompt)?;
    }
    log.prompt(&turn.prompt);
    let file = format!("/p/src/step_{round}/part_{number}.rs");
    let body = format!("pub fn part_{number}_of_step_{round}() -> usize {{\n    {number}\n}}\n");
    log.call("Read", &json!({ "file_path": file }), &body);
    let edit = json!({ "file_path": file, "old_string": body, "new_string": body.replace("usize", "u64") });
    log.call("Edit", &edit, "The file has been updated successfully.");
    let output = format!("running {number} tests\ntest result: ok. {number} passed; 0 failed");
    log.call("Bash", &json!({ "command": "cargo test" }), &output);
    let mut said = format!(
        "Part {number} of step {} is done: part_{number}_of_step_{round} returns u64 now.",
        round + 1
    );
    match turn.agent {
        Agent::Silent => {}
        Agent::Noting => {
            said.push_str("\n\nSCRATCHPAD:\n# Scratchpad\n\n## Rules\n");
            for sentence in turn.sentences {
                said.push_str(&format!("- {sentence}\n"));
            }
            said.push_str(&format!(
                "\n## Current Plan\n- [x] part {number} of step {}\n",
                round + 1
            ));
        }
        Agent::Rewriting => {
            said.push_str(&format!(
                "\n\nSCRATCHPAD:\n# Scratchpad\n\n## Current Plan\n- [x] part {number} of step {}\n- [ ] the next part\n",
                round + 1
            ));
        }
    }
    log.say(&said);
    log.write()?;
    product.read()?;
    product.turn_ended(Some(&said))
}

/// A session's transcript, as the client writes it.
struct Log {
    path: PathBuf,
    round: usize,
    lines: Vec<Value>,
    calls: usize,
}

impl Log {
    fn new(path: PathBuf, round: usize) -> Self {
        Self {
            path,
            round,
            lines: Vec::new(),
            calls: 0,
        }
    }

    fn push(&mut self, kind: &str, message: &Value) -> &mut Value {
        let (number, parent) = (
            self.lines.len(),
            self.lines.last().map(|line| line["uuid"].clone()),
        );
        self.lines.push(json!({
            "parentUuid": parent,
            "isSidechain": false,
            "userType": "external",
            "cwd": "/p",
            "sessionId": format!("00000000-0000-4000-8000-{:012}", self.round + 1),
            "version": "2.1.330",
            "gitBranch": "main",
            "type": kind,
            "message": message,
            "uuid": format!("00000000-0000-4000-{:04}-{number:012}", 9000 + self.round),
            "timestamp": format!("2026-11-18T{:02}:{:02}:{:02}.000Z", 11 + self.round, number / 60 % 60, number % 60),
        }));
        let last = self.lines.len() - 1;
        &mut self.lines[last]
    }

    fn prompt(&mut self, text: &str) {
        let line = self.push("user", &json!({ "role": "user", "content": text }));
        line["origin"] = json!({ "kind": "human" });
        line["promptSource"] = json!("typed");
    }

    fn say(&mut self, text: &str) {
        let block = json!({ "type": "text", "text": text });
        self.assistant(&block);
    }

    fn assistant(&mut self, block: &Value) {
        let id = format!("msg_{:04}_{:06}", self.round, self.lines.len());
        let usage = json!({ "input_tokens": 10, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 20_000, "output_tokens": 50 });
        self.push(
            "assistant",
            &json!({
                "id": id, "type": "message", "role": "assistant", "model": "claude-opus-4-8",
                "content": [block], "usage": usage,
            }),
        );
    }

    fn call(&mut self, tool: &str, input: &Value, output: &str) {
        self.calls += 1;
        let id = format!("toolu_{:04}_{:06}", self.round, self.calls);
        self.assistant(&json!({ "type": "tool_use", "id": id, "name": tool, "input": input }));
        let result = json!({ "type": "tool_result", "tool_use_id": id, "content": output });
        let line = self.push("user", &json!({ "role": "user", "content": [result] }));
        if tool == "Bash" {
            line["toolUseResult"] = json!({ "stdout": output, "stderr": "", "interrupted": false });
        }
    }

    fn write(&self) -> Outcome<()> {
        let lines: Vec<String> = self.lines.iter().map(Value::to_string).collect();
        Ok(fs::write(&self.path, lines.join("\n") + "\n")?)
    }
}
