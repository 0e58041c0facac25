//! The messages of the client's side, and the checks of their validity. Everything here comes from outside.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use super::orders::OrderId;
use pitstop_base::clean;
use pitstop_transcript::{SessionId, Tokens};

/// The largest figure taken for tokens: far above any model, far below the end of arithmetic.
const TOKENS_LIMIT: u64 = 1_000_000_000_000;

/// The largest cost taken, in US dollars.
const COST_LIMIT: f64 = 1_000_000.0;

/// The largest number of rows of a usage, and the longest name of a row in characters; the client has about ten rows.
const CATEGORY_LIMITS: (usize, usize) = (64, 80);

/// The same for the parts of a row: the mod sends 16, of which a name may be a path.
const PART_LIMITS: (usize, usize) = (32, 400);

/// The longest draft, in bytes: the length that the mod cuts it to, in the widest encoding.
pub const DRAFT_LIMIT: usize = 256 * 1024;

/// The longest beginning of a prompt, in bytes.
const PROMPT_LIMIT: usize = 16 * 1024;

/// The longest word, in bytes: an id, an origin, a version.
const WORD_LIMIT: usize = 64;

/// The longest reason, in bytes; a longer one is cut.
const REASON_LIMIT: usize = 500;

/// A field with an invalid value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} as {field}")]
pub struct Invalid {
    /// Its name.
    pub field: &'static str,
    /// The value that was expected.
    pub expected: String,
}

impl Invalid {
    pub(super) fn new(field: &'static str, expected: impl Into<String>) -> Self {
        let expected = expected.into();
        Self { field, expected }
    }
}

fn check_length(field: &'static str, text: &str, most: usize) -> Result<(), Invalid> {
    if text.len() > most {
        let expected = format!("a text of at most {most} bytes");
        return Err(Invalid::new(field, expected));
    }
    Ok(())
}

/// Checks for a word of letters, digits, `-`, `_` and `.`, which can be shown in a log or on a screen as it is.
fn check_word(field: &'static str, text: &str) -> Result<(), Invalid> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !(1..=WORD_LIMIT).contains(&text.len()) || !text.bytes().all(plain) {
        let expected = format!("a word of 1 to {WORD_LIMIT} letters, digits, -, _ and .");
        return Err(Invalid::new(field, expected));
    }
    Ok(())
}

fn check_tokens(field: &'static str, count: Tokens) -> Result<(), Invalid> {
    if count.0 > TOKENS_LIMIT {
        let expected = format!("a whole number of 0 to {TOKENS_LIMIT}");
        return Err(Invalid::new(field, expected));
    }
    Ok(())
}

/// The name that a process of the client has given itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstanceName(pub String);

impl fmt::Display for InstanceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The sender of a message: a part of every message.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Sender {
    /// The session as it is now.
    pub session: SessionId,
    /// The process.
    pub instance: InstanceName,
}

impl Sender {
    /// Returns it as it was parsed, if it is valid.
    pub fn check(self) -> Result<Self, Invalid> {
        check_word("instance", &self.instance.0)?;
        Ok(self)
    }
}

/// The body of `hello`, beside its [`Sender`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct HelloBody {
    /// The protocol that it speaks.
    pub protocol: u32,
    /// The client's version.
    pub client: String,
}

impl HelloBody {
    /// Returns it as it was parsed, if it is valid.
    pub fn check(self) -> Result<Self, Invalid> {
        check_word("client", &self.client)?;
        Ok(self)
    }
}

/// The body of `take`, beside its [`Sender`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct OrderBody {
    /// The order.
    pub order: OrderId,
}

/// The trigger of a compaction, in the client's own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The person's `/compact`.
    Manual,
    /// The client itself: its threshold, or a prompt that was too long.
    Auto,
    /// A mod, ours or another.
    Plugin,
    /// A trigger that we do not know, or one that changes nothing yet.
    #[serde(other)]
    Other,
}

/// The identity of a question that the client waits with, which no other one of this run has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionId {
    /// The process that asks, by the name that one of its mods has given itself: each mod asks about one thing.
    pub instance: InstanceName,
    /// Its number there.
    pub number: u64,
}

/// The body of `compact`, beside its [`Sender`]: the client is about to compact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct CompactBody {
    /// The number of the compaction in its process: the client asks about it again until it is decided.
    pub compaction: u64,
    /// The trigger of the compaction.
    pub trigger: Trigger,
    /// The order of ours that triggers it.
    pub order: Option<OrderId>,
}

/// The body of `prompt`, beside its [`Sender`]: a person has submitted a prompt between two turns.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PromptBody {
    /// The number of the prompt in its process: the client asks about it again until it is decided.
    pub prompt: u64,
    /// The text of the prompt, or its beginning.
    pub text: String,
}

impl PromptBody {
    /// Returns it as it was parsed, if it is valid.
    pub fn check(self) -> Result<Self, Invalid> {
        check_length("text", &self.text, DRAFT_LIMIT)?;
        Ok(self)
    }
}

/// The decision about a compaction, or about a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// It is not decided yet.
    Wait,
    /// The client goes its own way.
    Client,
    /// The conversation stays as it is; a prompt goes back into the prompt box.
    Skip {
        /// The reason, as the client shows it.
        why: String,
    },
    /// This takes the place of the conversation.
    Replace {
        /// The text.
        text: String,
    },
}

/// The prompt box.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct UnsentPrompt {
    /// Its text; empty also while a dialog is open.
    pub text: String,
    /// The position of the next character, in UTF-16 units.
    pub cursor: usize,
}

impl UnsentPrompt {
    fn check(&self) -> Result<(), Invalid> {
        check_length("text", &self.text, DRAFT_LIMIT)?;
        let length = self.text.encode_utf16().count();
        if self.cursor > length {
            let expected = format!("a whole number of 0 to {length}, the text's length,");
            return Err(Invalid::new("cursor", expected));
        }
        Ok(())
    }
}

/// A prompt that the client has put back into the prompt box.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutBack {
    /// Its text.
    pub text: String,
    /// The number of prompts that are left in the conversation.
    pub prompts: usize,
}

/// The usage of the context window.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Usage {
    /// The tokens in use, as the client's `/context` counts them; none before the service has answered.
    pub used: Option<Tokens>,
    /// The whole window, in tokens.
    pub window: Tokens,
    /// The number of tokens at which the client compacts by itself, if it does before the service refuses a request.
    pub compacts_at: Option<Tokens>,
    /// The cost of the session so far, in US dollars, by the client's estimate.
    pub cost_usd: Option<f64>,
    /// The rows of what the window holds; empty while a turn runs.
    #[serde(default, deserialize_with = "rows_if_any")]
    pub categories: Vec<Category>,
}

fn rows_if_any<'de, D: Deserializer<'de>>(rows: D) -> Result<Vec<Category>, D::Error> {
    Option::deserialize(rows).map(Option::unwrap_or_default)
}

impl Usage {
    /// Checks its fields; names are made safe to show.
    fn check(&mut self) -> Result<(), Invalid> {
        check_tokens("used", self.used.unwrap_or_default())?;
        check_tokens("window", self.window)?;
        check_tokens("compacts_at", self.compacts_at.unwrap_or_default())?;
        if !(0.0..=COST_LIMIT).contains(&self.cost_usd.unwrap_or_default()) {
            let expected = format!("a number of 0 to {COST_LIMIT}");
            return Err(Invalid::new("cost_usd", expected));
        }
        let (most, longest) = CATEGORY_LIMITS;
        if self.categories.len() > most {
            let expected = format!("a list of at most {most} rows");
            return Err(Invalid::new("categories", expected));
        }
        for row in &mut self.categories {
            row.name = clean::stripped(&row.name, longest);
            check_tokens("categories", row.tokens)?;
            let (most, longest) = PART_LIMITS;
            if row.parts.len() > most {
                let expected = format!("rows of at most {most} parts");
                return Err(Invalid::new("categories", expected));
            }
            for part in &mut row.parts {
                part.name = clean::stripped(&part.name, longest);
                check_tokens("categories", part.tokens)?;
            }
        }
        Ok(())
    }
}

/// A row of the client's `/context`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Category {
    /// Its name there.
    pub name: String,
    /// Its tokens.
    pub tokens: Tokens,
    /// The kind of the tokens.
    pub kind: CategoryKind,
    /// Its largest parts, where the client counts them: an MCP server, a memory file, a kind of message.
    #[serde(default)]
    pub parts: Vec<Part>,
}

impl Category {
    /// Returns the rows of a kind that hold anything, the largest first.
    pub fn of_kind(rows: &[Self], kind: CategoryKind) -> Vec<&Self> {
        let has_any = |row: &&Self| row.kind == kind && row.tokens.0 > 0;
        let mut rows: Vec<_> = rows.iter().filter(has_any).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.tokens));
        rows
    }
}

/// A part of a [`Category`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Its tokens.
    pub tokens: Tokens,
}

/// The kind of the tokens of a [`Category`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CategoryKind {
    /// They are in use.
    Used,
    /// They are free.
    Free,
    /// The client keeps them back.
    Buffer,
    /// They are outside the window until they are wanted.
    Deferred,
    /// Something that we do not know.
    #[serde(other)]
    Unknown,
}

/// The way in which a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// It ended with an answer.
    Answer,
    /// The person or a mod stopped it.
    Aborted,
    /// The model refused.
    Refusal,
    /// An error of the service ended it.
    Error,
    /// It ended in a way that we do not know.
    #[serde(other)]
    Unknown,
}

/// An event in the client: the body of `fact`, beside its [`Sender`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum Fact {
    /// The session began, or another one took its place in the same process.
    SessionStarted {
        /// The kind of the start: `startup`, `resume`, `clear`, `compact`, `fork` or another word of the client.
        source: String,
    },
    /// A turn of the main conversation began.
    TurnStarted {
        /// Its id.
        turn: String,
    },
    /// It ended.
    TurnEnded {
        /// Its id.
        turn: String,
        /// The way in which it ended.
        reason: TurnEnd,
    },
    /// A prompt was submitted.
    PromptSubmitted {
        /// The submitter: `composer` is the person at the prompt box, `plugin` a mod; others are the client's own.
        origin: String,
        /// The beginning of the prompt.
        text: String,
    },
    /// The prompt box holds another text.
    DraftChanged(UnsentPrompt),
    /// The client has put a prompt back into the prompt box, as a rewind does.
    PromptPutBack(PutBack),
    /// The usage of the context window was measured.
    Usage(Usage),
}

impl Fact {
    /// Returns it as it was parsed, if it is valid.
    pub fn check(mut self) -> Result<Self, Invalid> {
        match &mut self {
            Self::SessionStarted { source } => check_word("source", source)?,
            Self::TurnStarted { turn } | Self::TurnEnded { turn, .. } => check_word("turn", turn)?,
            Self::PromptSubmitted { origin, text } => {
                check_word("origin", origin)?;
                check_length("text", text, PROMPT_LIMIT)?;
            }
            Self::DraftChanged(draft) => draft.check()?,
            Self::PromptPutBack(prompt) => check_length("text", &prompt.text, DRAFT_LIMIT)?,
            Self::Usage(usage) => usage.check()?,
        }
        Ok(self)
    }
}

/// The reason why a text was not taken: nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// A dialog has the keys.
    Dialog,
    /// There is no prompt box.
    NoComposer,
    /// A remote surface was asked and did not answer.
    Unanswered,
    /// The prompt box holds a text that was not submitted.
    Draft,
    /// The client gives a reason that we do not know.
    #[serde(other)]
    Unknown,
}

/// The outcome of an order.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The prompt box holds this.
    Draft(UnsentPrompt),
    /// The prompt box took the text, or refused it for this reason.
    Filled(Result<(), Refusal>),
    /// The conversation was replaced.
    Replaced {
        /// True if the turn after it was begun: once its person has stopped a turn, the client takes no command of a mod until
        /// they type.
        begun: bool,
    },
    /// The client's compaction trigger is lowered: it asks for the replacement of its conversation at its next step.
    Lowered,
    /// The trigger is where it was.
    Restored,
    /// The order failed for this reason; nothing was done.
    Failed(String),
}

/// The body of `answer`, beside its [`Sender`] and [`OrderBody`]: an [`Outcome`] as it is sent.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields are those of `Outcome`")]
pub enum OutcomeBody {
    Draft(UnsentPrompt),
    Filled {
        filled: bool,
        refusal: Option<Refusal>,
    },
    Replaced {
        #[serde(default = "begun")]
        begun: bool,
    },
    Lowered,
    Restored,
    Failed {
        why: String,
    },
}

const fn begun() -> bool {
    true
}

impl OutcomeBody {
    /// Returns the outcome, if it is valid.
    pub fn check(self) -> Result<Outcome, Invalid> {
        Ok(match self {
            Self::Draft(draft) => {
                draft.check()?;
                Outcome::Draft(draft)
            }
            Self::Filled { filled: true, .. } => Outcome::Filled(Ok(())),
            Self::Filled { refusal, .. } => {
                Outcome::Filled(Err(refusal.unwrap_or(Refusal::Unknown)))
            }
            Self::Replaced { begun } => Outcome::Replaced { begun },
            Self::Lowered => Outcome::Lowered,
            Self::Restored => Outcome::Restored,
            Self::Failed { why } => Outcome::Failed(clean::stripped(&why, REASON_LIMIT)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the fact that a body is taken for; `None` if it is refused.
    fn fact(body: &str) -> Option<Fact> {
        serde_json::from_str::<Fact>(body)
            .ok()?
            .check()
            .inspect_err(|error| assert!(!error.expected.is_empty()))
            .ok()
    }

    fn outcome(body: &str) -> Option<Outcome> {
        let body: OutcomeBody = serde_json::from_str(body).ok()?;
        body.check().ok()
    }

    #[test]
    fn what_the_mod_sends_is_taken_whole() {
        assert_eq!(
            fact(
                r#"{"session":"x","instance":"y","fact":"usage","used":18000,"window":1000000,"compacts_at":967000,
                    "cost_usd":0.004,"categories":[{"name":"Messages","tokens":3299,"kind":"used","color":"x"},
                    {"name":"Later","tokens":1,"kind":"new kind"}]}"#
            ),
            Some(Fact::Usage(Usage {
                used: Some(Tokens(18_000)),
                window: Tokens(1_000_000),
                compacts_at: Some(Tokens(967_000)),
                cost_usd: Some(0.004),
                categories: vec![
                    Category {
                        name: "Messages".into(),
                        tokens: Tokens(3299),
                        kind: CategoryKind::Used,
                        parts: vec![],
                    },
                    Category {
                        name: "Later".into(),
                        tokens: Tokens(1),
                        kind: CategoryKind::Unknown,
                        parts: vec![],
                    },
                ],
            }))
        );
        assert_eq!(
            fact(r#"{"fact":"usage","window":200000}"#),
            Some(Fact::Usage(Usage {
                window: Tokens(200_000),
                ..Usage::default()
            }))
        );
        assert_eq!(
            fact(r#"{"fact":"turn_ended","turn":"1a-2b","reason":"aborted"}"#),
            Some(Fact::TurnEnded {
                turn: "1a-2b".into(),
                reason: TurnEnd::Aborted
            })
        );
        let draft = UnsentPrompt {
            text: "é\n🦀".into(),
            cursor: 4,
        };
        assert_eq!(
            fact(r#"{"fact":"draft_changed","text":"é\n🦀","cursor":4}"#),
            Some(Fact::DraftChanged(draft.clone()))
        );
        assert_eq!(
            fact(r#"{"fact":"prompt_put_back","text":"Go","prompts":3}"#),
            Some(Fact::PromptPutBack(PutBack {
                text: "Go".into(),
                prompts: 3
            }))
        );
        assert_eq!(
            outcome(r#"{"order":1,"outcome":"draft","text":"é\n🦀","cursor":4}"#),
            Some(Outcome::Draft(draft))
        );
        assert_eq!(
            outcome(r#"{"order":1,"outcome":"filled","filled":false,"refusal":"dialog"}"#),
            Some(Outcome::Filled(Err(Refusal::Dialog)))
        );
        assert_eq!(
            outcome(r#"{"order":1,"outcome":"filled","filled":false}"#),
            Some(Outcome::Filled(Err(Refusal::Unknown)))
        );
        assert_eq!(
            outcome(r#"{"order":1,"outcome":"filled","filled":false,"refusal":"draft"}"#),
            Some(Outcome::Filled(Err(Refusal::Draft)))
        );
    }

    #[test]
    fn hostile_facts_are_refused() {
        let long = "x".repeat(DRAFT_LIMIT + 1);
        let word = "x".repeat(WORD_LIMIT + 1);
        let rows = r#"{"name":"x","tokens":1,"kind":"used"},"#.repeat(65);
        for body in [
            "{}".to_owned(),
            r#"{"fact":"approve"}"#.to_owned(),
            r#"{"fact":"turn_started"}"#.to_owned(),
            r#"{"fact":"turn_started","turn":""}"#.to_owned(),
            r#"{"fact":"turn_started","turn":"a b"}"#.to_owned(),
            r#"{"fact":"turn_started","turn":"\u001b[2J"}"#.to_owned(),
            format!(r#"{{"fact":"turn_started","turn":"{word}"}}"#),
            r#"{"fact":"prompt_submitted","origin":"../x","text":""}"#.to_owned(),
            format!(r#"{{"fact":"prompt_submitted","origin":"plugin","text":"{long}"}}"#),
            format!(r#"{{"fact":"draft_changed","text":"{long}","cursor":0}}"#),
            format!(r#"{{"fact":"prompt_put_back","text":"{long}","prompts":0}}"#),
            r#"{"fact":"prompt_put_back","text":"Go","prompts":-1}"#.to_owned(),
            r#"{"fact":"draft_changed","text":"ab","cursor":3}"#.to_owned(),
            r#"{"fact":"draft_changed","text":"ab","cursor":-1}"#.to_owned(),
            r#"{"fact":"draft_changed","text":"ab","cursor":1e3}"#.to_owned(),
            r#"{"fact":"usage","window":-1}"#.to_owned(),
            r#"{"fact":"usage","window":1000000000001}"#.to_owned(),
            r#"{"fact":"usage","window":1,"used":99999999999999999999}"#.to_owned(),
            r#"{"fact":"usage","window":1,"cost_usd":-0.5}"#.to_owned(),
            r#"{"fact":"usage","window":1,"cost_usd":1e300}"#.to_owned(),
            format!(
                r#"{{"fact":"usage","window":1,"categories":[{}]}}"#,
                rows.trim_end_matches(',')
            ),
        ] {
            let shown: String = body.chars().take(80).collect();
            assert_eq!(fact(&body), None, "{shown}");
        }
    }

    #[test]
    fn texts_for_the_screen_lose_what_a_terminal_would_obey() {
        let usage = r#"{"fact":"usage","window":1,"categories":[{"name":"a\u001b[2Jb\n","tokens":1,"kind":"used"}]}"#;
        let Some(Fact::Usage(usage)) = fact(usage) else {
            panic!("a usage");
        };
        assert!(!usage.categories[0].name.contains(['\u{1b}', '\n']));
        let failed = outcome(r#"{"order":1,"outcome":"failed","why":"no\u001b]0;x\u0007"}"#);
        let Some(Outcome::Failed(why)) = failed else {
            panic!("a failure");
        };
        assert!(!why.contains('\u{1b}'), "{why:?}");
    }

    #[test]
    fn a_sender_names_a_session_and_a_plain_instance() {
        let sender = |body: &str| {
            let sender: Option<Sender> = serde_json::from_str(body).ok();
            sender.and_then(|sender| sender.check().ok()).is_some()
        };
        let id = "5b1fb70c-12ef-4add-a791-d6648daa787b";
        assert!(sender(&format!(
            r#"{{"session":"{id}","instance":"p6-71"}}"#
        )));
        assert!(!sender(&format!(r#"{{"session":"{id}","instance":""}}"#)));
        assert!(!sender(&format!(
            r#"{{"session":"{id}","instance":"a\n"}}"#
        )));
        assert!(!sender(&format!(r#"{{"session":"{id}"}}"#)));
        assert!(!sender(r#"{"session":"../../etc","instance":"a"}"#));
    }
}
