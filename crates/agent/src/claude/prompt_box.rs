//! The client's prompt box, read off its screen: whether it is there, and what it holds.
//!
//! ```text
//! ────────────────────────────────────── project ──      the upper rule, which may have a label
//! ❯ fix the parser, and then                             a mark, a no-break space, the text
//!   run the tests                                        further rows, indented by two cells
//! ─────────────────────────────────────────────────      the lower rule
//!   ⏸ manual mode on · ? for shortcuts                   footers, or the list of commands
//! ```
//!
//! Full screen the box is at most ⌊height / 2⌋ − 5 rows high, and its rules tell how many rows are above and below what they
//! show: `─── ↑ 23 more ───`, `─── ↓ 1 more ───`. In line it is as high as its text, whose beginning may be above the screen.
//!
//! Every dialog, list, viewer or editor of the client takes the place of the box, and a selected answer there has an
//! ordinary space behind its mark. A visible box therefore means that no dialog is open, whatever dialogs there are. This
//! holds in both renderers, and while a turn runs (measured with 2.1.197 and 2.1.330).

use std::ops::Range;

use unicode_width::UnicodeWidthStr as _;

use pitstop_base::clean;
use pitstop_transcript::prompts::BOX_MARKS;

/// One row of the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The whole text of it.
    pub text: String,
    /// The same text with a blank in the place of each faint character: the client draws its suggestions faint.
    pub solid: String,
}

/// The prompt box as the screen shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PromptBox {
    /// It is not on the screen: something else has its place, or nothing is drawn yet.
    #[default]
    Absent,
    /// A dialog or a list has its place: the first line of that.
    Dialog(String),
    /// It is there and holds no text. A suggestion of the client is no text.
    Empty,
    /// It holds a text that was not submitted.
    Holds(ShownPrompt),
}

/// The text in the prompt box, as far as it is on the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownPrompt {
    /// Its rows from top to bottom. They do not show where a long line was broken.
    pub rows: Vec<String>,
    /// True if all of it is on the screen: a text that is higher than the screen or the box shows its end.
    pub whole: bool,
    /// The numbers of rows that the box reports above and below the ones it shows.
    pub scrolled: Option<(usize, usize)>,
    /// The number of cells that a row of it has room for.
    pub room: usize,
}

impl ShownPrompt {
    /// Returns the text itself; `None` if it cannot be known: it is not all on the screen, or the client shows a mark in the place of
    /// a long paste or an image.
    ///
    /// The client breaks lines between words, and drops the blanks there: one blank is put for them. A row that its next word
    /// would have fitted into was ended by the human (measured with 2.1.330: a break comes one cell early at times).
    pub fn text(&self) -> Option<String> {
        self.marked_text().filter(|text| !stands_for_more(text))
    }

    /// Returns the text with the client's marks in it; `None` if it is not all on the screen.
    pub fn marked_text(&self) -> Option<String> {
        if !self.whole {
            return None;
        }
        let mut text = String::new();
        for (row, next) in self.rows.iter().zip(self.rows.iter().skip(1)) {
            text.push_str(row);
            let cells = row.width();
            let word = next.split(' ').next().unwrap_or_default().width();
            let last = row.rsplit(' ').next().unwrap_or_default().width();
            let broken =
                !next.is_empty() && !next.starts_with(' ') && cells + 1 + word >= self.room;
            text.push_str(match broken {
                // A word that is longer than a row.
                true if cells == self.room && last + word > self.room => "",
                true => " ",
                false => "\n",
            });
        }
        text.push_str(self.rows.last()?);
        Some(text)
    }

    /// Reports whether a text may fill exactly as many rows as the box reports: with fewer rows a part of it has been lost, with more
    /// a part is of another text.
    fn may_have_the_rows_of(&self, text: &str) -> bool {
        let Some((above, below)) = self.scrolled else {
            return true;
        };
        let room = self.room.max(4);
        // Two neighbouring rows of a line hold more than one has room for, else the first word of the second would be in the first.
        let rows = |line: &str| {
            let most = 1 + 2 * line.replace('\t', "    ").width() / (room - 2);
            (comparable_letters(line).width().div_ceil(room).max(1), most)
        };
        let (least, most) = text.split('\n').map(rows).fold((0, 0), |sum, of_line| {
            (sum.0 + of_line.0, sum.1 + of_line.1)
        });
        below == 0 && (least..=most).contains(&(above + self.rows.len()))
    }
}

/// Reports whether a part of the box's text is a mark that the client puts in the place of a long paste or an image. A mod is
/// given the mark too (measured with 2.1.330).
pub fn stands_for_more(text: &str) -> bool {
    BOX_MARKS.iter().any(|mark| text.contains(mark))
}

/// A mark that the client puts in the place of a long paste: `[Pasted text #2 +5 lines]`, without the lines where there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasteMark {
    /// Its place in the text.
    pub range: Range<usize>,
    /// The paste's number, as the client counts them.
    pub number: u32,
    /// The number of line ends in the paste.
    pub lines: usize,
}

/// Returns the marks of long pastes in the box's text, in their order.
pub fn paste_marks(text: &str) -> impl Iterator<Item = PasteMark> {
    const BEGIN: &str = "[Pasted text #";
    text.match_indices(BEGIN).filter_map(|(start, _)| {
        let (said, _) = text[start + BEGIN.len()..].split_once(']')?;
        let lines = |said: &str| said.strip_suffix(" lines")?.parse().ok();
        let (number, lines) = match said.split_once(" +") {
            Some((number, said)) => (number, lines(said)?),
            None => (said, 0),
        };
        Some(PasteMark {
            range: start..start + BEGIN.len() + said.len() + 1,
            number: number.parse().ok()?,
            lines,
        })
    })
}

/// Reports whether this text in the box may be what has ended the client: a command, of which the first letters are enough, or one of
/// its words for it.
pub fn may_have_ended_it(text: &str) -> bool {
    const WORDS: [&str; 6] = ["exit", "quit", ":q", ":q!", ":wq", ":wq!"];
    text.starts_with('/') || WORDS.contains(&text.trim())
}

/// The marks of the box: a prompt, a line for the shell, and what other modes may put there.
const MARKS: [char; 5] = ['❯', '!', '#', '&', '>'];

/// The character behind the mark.
const BEHIND_MARK: char = '\u{a0}';

/// The least number of strokes in a row at the beginning of a rule.
const STROKES: usize = 3;

impl PromptBox {
    /// Returns the box with the text that the client itself reports.
    pub fn from_report(text: &str) -> Self {
        Self::Holds(ShownPrompt {
            rows: text.split('\n').map(str::to_owned).collect(),
            whole: true,
            ..ShownPrompt::default()
        })
    }

    /// Reads the box off the rows of a screen, from top to bottom; `cursor` is the cursor's column and row, in cells from 0. If there
    /// is a box, the cursor is in it, hidden or not; a thing that only looks like a box is elsewhere.
    pub fn read(rows: &[Row], cursor: (u16, u16)) -> Self {
        match (Self::read_box(rows, cursor), dialog_title(rows, cursor)) {
            (Self::Absent, Some(title)) => Self::Dialog(title),
            (seen, _) => seen,
        }
    }

    fn read_box(rows: &[Row], cursor: (u16, u16)) -> Self {
        let (column, row) = (usize::from(cursor.0), usize::from(cursor.1));
        if row >= rows.len() {
            return Self::Absent;
        }
        let (upper, lower) = rows.split_at(row);
        let Some(below) = lower.iter().position(|row| is_rule(&row.text)) else {
            return Self::Absent;
        };
        let above = upper.iter().rposition(|row| is_rule(&row.text));
        let inside = &rows[above.map_or(0, |above| above + 1)..row + below];
        let Some(first) = inside.first() else {
            return Self::Absent;
        };
        let mark = mark_of(&first.text);
        let hidden_above = above.and_then(|above| hidden_rows(&rows[above].text, '↑'));
        let hidden_below = hidden_rows(&lower[below].text, '↓');
        let present = if hidden_above.is_some() {
            inside.iter().all(|row| is_further(&row.text))
        } else if above.is_some() {
            mark.is_some()
        } else {
            let texts = inside.iter().map(|row| row.text.as_str());
            let mut texts = texts.skip_while(|text| text.trim().is_empty());
            // Of a box that is one row too high, the rule alone is above the screen.
            let first = texts.next();
            first.is_none_or(|text| is_further(text) || mark_of(text).is_some())
                && texts.all(is_further)
        };
        if !present {
            return Self::Absent;
        }
        let suggested = inside.iter().any(|row| row.solid != row.text);
        let mut texts: Vec<String> = inside.iter().map(|row| row_content(&row.solid)).collect();
        // The cursor is on the first character of the suggestion, which is therefore not drawn faint.
        let first_cell = above.is_some_and(|above| (column, row) == (2, above + 1));
        if suggested && first_cell && texts[0].trim().chars().count() == 1 {
            texts[0].clear();
        }
        if let Some(mark) = mark.filter(|mark| *mark != MARKS[0]) {
            texts[0].insert(0, mark);
        }
        let scrolled = (hidden_above.is_some() || hidden_below.is_some())
            .then(|| (hidden_above.unwrap_or(0), hidden_below.unwrap_or(0)));
        if scrolled.is_none() && texts.iter().all(|text| text.trim().is_empty()) {
            return Self::Empty;
        }
        // Both rules are as wide as the screen; a row has its mark before it and two cells behind it.
        let columns = lower[below].text.trim_end().width();
        Self::Holds(ShownPrompt {
            rows: texts,
            whole: above.is_some() && scrolled.is_none(),
            scrolled,
            room: columns.saturating_sub(4),
        })
    }

    /// Reports whether it is on the screen.
    pub const fn is_present(&self) -> bool {
        matches!(self, Self::Empty | Self::Holds(_))
    }

    /// Reports whether it takes a line for the shell. A mod is given the line without the mark that shows this (measured with 2.1.332).
    pub fn is_for_shell(&self) -> bool {
        let Self::Holds(draft) = self else {
            return false;
        };
        draft.rows.first().is_some_and(|row| row.starts_with('!'))
    }

    /// Reports whether it holds exactly this text, as far as the screen shows it.
    pub fn holds(&self, text: &str) -> bool {
        let Self::Holds(draft) = self else {
            return false;
        };
        let (seen, wanted) = (
            comparable_letters(&draft.rows.concat()),
            comparable_letters(text),
        );
        let lines = text.matches('\n').count();
        let rows = draft.rows.len() + draft.scrolled.map_or(0, |(above, _)| above);
        match left_out(&seen) {
            // The number of lines that are left out shows that none has been lost among them.
            Some((head, hidden, tail)) => {
                let head = !draft.whole || wanted.starts_with(head);
                let count = hidden <= lines && lines - hidden <= rows;
                head && count && !tail.is_empty() && wanted.ends_with(tail)
            }
            None if draft.whole => seen == wanted,
            None => !seen.is_empty() && wanted.ends_with(&seen) && draft.may_have_the_rows_of(text),
        }
    }

    /// Reports whether it holds this text or the beginning of it.
    pub fn holds_start_of(&self, text: &str) -> bool {
        let Self::Holds(draft) = self else {
            return false;
        };
        self.holds(text)
            || (draft.whole
                && comparable_letters(text).starts_with(&comparable_letters(&draft.rows.concat())))
    }
}

/// Returns the first line of the dialog that has the cursor: on the mark of its selected answer, or in its field for text (measured with
/// 2.1.332: the key, trust, bypass, servers, imports, settings, theme and login at the start, and every permission).
fn dialog_title(rows: &[Row], cursor: (u16, u16)) -> Option<String> {
    let (above, selected) = rows.split_at_checked(usize::from(cursor.1))?;
    let selected = &selected.first()?.text;
    let answer = selected.trim_start();
    let indent = selected.len() - answer.len();
    let is_selected = || {
        let behind = answer.strip_prefix(MARKS[0]);
        indent == usize::from(cursor.0) && behind.is_some_and(|behind| behind.starts_with(' '))
    };
    if !is_selected() && !is_field(above, answer) {
        return None;
    }
    let mut dialog = above.rsplit(|row| is_rule(&row.text)).next()?.iter();
    let is_title = |row: &&Row| {
        let text = row.text.trim();
        !(text.is_empty() || is_rule(text) || text.starts_with(GREETING))
    };
    Some(dialog.find(is_title)?.text.trim().to_owned())
}

/// The line above all dialogs of the client's first start.
const GREETING: &str = "Welcome to Claude Code";

/// Reports whether this row with the cursor is in a field for text: a frame without a title, which the client's banner has.
fn is_field(above: &[Row], row: &str) -> bool {
    let mut above = above.iter().rev().map(|row| row.text.trim());
    let top = above.find(|text| !text.starts_with('│'));
    let is_plain = |top: &str| {
        let strokes = top.strip_prefix('╭')?.strip_suffix('╮')?;
        Some(!strokes.is_empty() && strokes.chars().all(|c| c == '─'))
    };
    row.starts_with('│') && top.and_then(is_plain) == Some(true)
}

/// Splits a shortened text into the part before the mark, the number of lines that the mark replaces, and the part behind it. At
/// times the client shows a long text by its first and its last 500 characters, with a mark such as
/// `[...Truncated text #1 +581 lines...]` between them; it is submitted whole (measured with 2.1.197, read in 2.1.330).
fn left_out(letters: &str) -> Option<(&str, usize, &str)> {
    let (head, rest) = letters.split_once("[...Truncatedtext#")?;
    let (mark, tail) = rest.split_once("lines...]")?;
    let (_, lines) = mark.split_once('+')?;
    Some((head, lines.parse().ok()?, tail))
}

/// Returns the characters of a text that can be compared: no blanks, for lines are broken and indented, and none that terminals
/// and clients draw in different ways or not at all.
fn comparable_letters(text: &str) -> String {
    let plain = |c: &char| c.is_alphanumeric() || c.is_ascii_punctuation();
    let letters: String = clean::composed(text).chars().filter(plain).collect();
    if letters.is_empty() {
        return text.chars().filter(|c| !c.is_whitespace()).collect();
    }
    letters
}

/// Returns the number of rows that a rule reports beyond it.
fn hidden_rows(rule: &str, arrow: char) -> Option<usize> {
    let rest = rule.trim_start_matches('─').trim_start();
    let (count, _) = rest.strip_prefix(arrow)?.split_once(" more ")?;
    count.trim().parse().ok()
}

fn is_rule(text: &str) -> bool {
    let strokes = |text: &str| text.chars().filter(|c| *c == '─').count();
    text.chars().take_while(|c| *c == '─').count() >= STROKES
        && (strokes(text) * 2 >= text.trim_end().chars().count()
            || ['↑', '↓']
                .iter()
                .any(|arrow| hidden_rows(text, *arrow).is_some()))
}

fn mark_of(text: &str) -> Option<char> {
    let mut chars = text.chars();
    let mark = chars.next().filter(|mark| MARKS.contains(mark))?;
    (chars.next() == Some(BEHIND_MARK)).then_some(mark)
}

/// Reports whether a row may be one of a text whose beginning is above the screen.
fn is_further(text: &str) -> bool {
    text.trim().is_empty() || text.starts_with("  ")
}

/// Returns a row without its mark or indent.
fn row_content(text: &str) -> String {
    text.chars()
        .skip(2)
        .collect::<String>()
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rows of a screen, in which `~` begins the faint part.
    fn rows(screen: &str) -> Vec<Row> {
        let row = |line: &str| {
            let (solid, faint) = line.split_once('~').unwrap_or((line, ""));
            let blank = " ".repeat(faint.chars().count());
            Row {
                text: format!("{solid}{faint}"),
                solid: format!("{solid}{blank}"),
            }
        };
        screen.lines().map(row).collect()
    }

    fn read(screen: &str, cursor: (u16, u16)) -> PromptBox {
        PromptBox::read(&rows(screen), cursor)
    }

    const RULE: &str = "────────────────────";

    fn boxed(inside: &str) -> String {
        format!("● Understood.\n\n{RULE}\n{inside}\n{RULE}\n  ? for shortcuts")
    }

    fn drafted(rows: &[&str], whole: bool) -> PromptBox {
        PromptBox::Holds(ShownPrompt {
            rows: rows.iter().map(|row| (*row).to_owned()).collect(),
            whole,
            scrolled: None,
            room: RULE.chars().count() - 4,
        })
    }

    #[test]
    fn an_empty_box_is_distinguished_from_a_draft() {
        assert_eq!(read(&boxed("❯\u{a0}"), (2, 3)), PromptBox::Empty);
        let draft = boxed("❯\u{a0}fix the parser\n  and run\n\n  the tests");
        let rows = ["fix the parser", "and run", "", "the tests"];
        assert_eq!(read(&draft, (9, 6)), drafted(&rows, true));
        let labelled = boxed("❯\u{a0}").replacen(RULE, "───────── project ──", 1);
        assert_eq!(read(&labelled, (2, 3)), PromptBox::Empty);
    }

    #[test]
    fn what_the_client_suggests_is_no_draft() {
        let suggested = boxed("❯\u{a0}T~ry \"write a test for main.rs\"");
        assert_eq!(read(&suggested, (2, 3)), PromptBox::Empty);
        assert_eq!(read(&boxed("❯\u{a0}~Try it"), (2, 3)), PromptBox::Empty);
        // A single letter under the cursor is one, and so is what was typed before a suggestion.
        assert_eq!(read(&boxed("❯\u{a0}y"), (2, 3)), drafted(&["y"], true));
        let completed = boxed("❯\u{a0}/mo~del");
        assert_eq!(read(&completed, (5, 3)), drafted(&["/mo"], true));
    }

    #[test]
    fn a_line_for_the_shell_is_no_empty_box() {
        assert_eq!(read(&boxed("!\u{a0}"), (2, 3)), drafted(&["!"], true));
        assert!(read(&boxed("!\u{a0}ls"), (4, 3)).holds("!ls"));
    }

    #[test]
    fn a_list_below_the_box_does_not_hide_it() {
        let screen = format!("{}\n❯ /model   Switch model", boxed("❯\u{a0}/model"));
        assert!(read(&screen, (8, 3)).holds("/model"));
    }

    #[test]
    fn dialogs_have_no_box() {
        let permission = format!(
            "❯ touch it\n\n● Bash(touch x)\n  ⎿  Waiting…\n\n{RULE}\n Bash command\n\n   touch x\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel"
        );
        let titled = |title: &str| PromptBox::Dialog(title.to_owned());
        assert_eq!(read(&permission, (1, 11)), titled("Bash command"));
        assert_eq!(
            read(&permission, (0, 0)),
            PromptBox::Absent,
            "a prompt of the past"
        );
        // The same holds if all rows above its rule are indented.
        let indented = format!("  ⎿  Waiting…\n\n{RULE}\n Bash command\n ❯ 1. Yes");
        assert_eq!(read(&indented, (1, 4)), titled("Bash command"));
        for (dialog, at) in [
            (
                "  Detected a custom API key in your environment\n\n  Do you want to use this API key?\n\n    Yes\n  ❯ No (recommended)\n",
                (2, 6),
            ),
            (" Accessing workspace:\n\n /p\n ❯ No, exit\n   Yes", (1, 4)),
            (
                "  2 new MCP servers found\n  ❯ [✔] one\n    [✔] two",
                (2, 2),
            ),
            (
                " Browser didn't open? Use the URL below to sign in\n\n Paste code here if prompted\n ╭────╮\n │    │\n ╰────╯\n\n Esc to go back",
                (3, 5),
            ),
        ] {
            let title = dialog.lines().next().unwrap().trim();
            assert_eq!(read(&format!("{RULE}\n{dialog}"), at), titled(title));
            let first = format!("Welcome to Claude Code v2.1.332\n {RULE}\n{dialog}");
            let lower = (at.0, at.1 + 1);
            assert_eq!(read(&first, lower), titled(title), "at the first start");
        }
        let banner = "╭─ Claude Code v2.1.332 ─╮\n│      Welcome back!      │\n╰─────────────────────────╯\n";
        for at in [(3, 1), (0, 3), (0, 0)] {
            assert_eq!(read(banner, at), PromptBox::Absent, "{at:?}");
        }
        let ruled = format!("{RULE}\n ❯ 1. Yes\n{RULE}\n Enter to confirm");
        assert_eq!(read(&ruled, (1, 1)), PromptBox::Absent);
        let selected = format!("{RULE}\n❯ 1. Yes\n{RULE}\n Enter to confirm");
        assert_eq!(read(&selected, (0, 1)), PromptBox::Absent);
        for screen in ["", "hello", RULE, &format!("{RULE}\n{RULE}")] {
            assert_eq!(read(screen, (0, 0)), PromptBox::Absent, "{screen:?}");
        }
    }

    #[test]
    fn a_text_higher_than_the_screen_is_known_by_its_end() {
        let screen = format!("  line 8\n  line 9\n{RULE}\n  ? for shortcuts");
        let seen = read(&screen, (8, 1));
        assert_eq!(seen, drafted(&["line 8", "line 9"], false));
        assert!(seen.holds("line 7\nline 8\nline 9"));
        assert!(!seen.holds("line 7\nline 8\nline 9\nline 10"));
        assert!(!seen.holds("line 9"));
    }

    #[test]
    fn a_box_whose_rule_alone_is_above_the_screen_holds_its_text() {
        let screen = format!("\n❯\u{a0}fix the parser\n  now\n{RULE}\n  ? for shortcuts");
        let found = read(&screen, (5, 2));
        assert!(found.holds("fix the parser\nnow"), "{found:?}");
        // The screen does not show that there is nothing above it.
        let PromptBox::Holds(draft) = found else {
            panic!("no box");
        };
        assert_eq!(draft.text(), None);
        let answer = screen.replace('\u{a0}', " ");
        assert_eq!(read(&answer, (5, 2)), PromptBox::Absent);
        let below = screen.replacen('\n', "● Understood.\n", 1);
        assert_eq!(read(&below, (5, 2)), PromptBox::Absent);
    }

    /// Rows of the client's own box (2.1.331, full screen) under a text's last lines, at heights of 14 to 60 rows.
    #[test]
    fn a_scrolled_box_holds_its_text_by_its_end_and_its_count() {
        let lines = |count, line: &str| {
            let lines: Vec<_> = (0..count).map(|n| format!("{n:02} {line}")).collect();
            lines.join("\n")
        };
        let end = |text: &str, count: usize| {
            let lines: Vec<_> = text.lines().collect();
            lines[lines.len() - count..].join("\n  ")
        };
        let (short, long) = (lines(30, "of the text"), lines(100, "of the text"));
        let words = "one more word ".repeat(570).trim_end().to_owned();
        let wide = format!(
            "start\n{}\n{}\nend",
            "abcdefghi ".repeat(30),
            "x".repeat(300)
        );
        let cjk = lines(30, "日本語のテキスト、長い行です。한국어도 있습니다");
        for (columns, above, shown, text) in [
            (100, 23, end(&short, 7), short.clone()),
            (100, 11, end(&short, 19), short.clone()),
            (100, 5, end(&short, 25), short),
            (40, 97, end(&long, 3), long),
            (40, 225, "word one more word one more word\n  one more word one more word one more\n  word one more word one more word".to_owned(), words),
            (40, 18, format!("{}\n  {}\n  end", "x".repeat(36), "x".repeat(12)), wide),
            (40, 57, "국어도 있습니다\n  29 日本語のテキスト、長い行です。한\n  국어도 있습니다".to_owned(), cjk),
        ] {
            let mark = format!("─── ↑ {above} more ");
            let upper = format!("{mark}{}", "─".repeat(columns - mark.chars().count()));
            let rule = "─".repeat(columns);
            let screen = |upper: &str, lower: &str| format!("● Hm.\n{upper}\n  {shown}\n{lower}\n  ⏸ manual mode on");
            let cursor = (4, u16::try_from(shown.lines().count() + 1).unwrap());
            let seen = read(&screen(&upper, &rule), cursor);
            assert!(seen.holds(&text), "{seen:?}");
            assert!(!seen.holds(&format!("{text} more")));
            // Somebody else's lines stand above it, or a part of it has been lost.
            for other in [above * 4, above / 4] {
                let upper = upper.replace(&format!("↑ {above} "), &format!("↑ {other} "));
                assert!(!read(&screen(&upper, &rule), cursor).holds(&text), "{other} for {above}");
            }
            // Its cursor is not at its end.
            let lower = format!("─── ↓ 1 more {}", "─".repeat(columns - 13));
            assert!(!read(&screen(&upper, &lower), cursor).holds(&text));
            assert!(matches!(seen, PromptBox::Holds(draft) if draft.text().is_none()));
        }
    }

    #[test]
    fn a_scrolled_box_is_no_empty_one_whatever_it_shows() {
        let (up, down) = ("─── ↑ 1587 more ─", "─── ↓ 2 more ─");
        for (upper, lower) in [(up, RULE), (up, down), (RULE, down)] {
            let first = if upper == RULE { "❯\u{a0}" } else { "" };
            let screen = format!("● Hm.\n{upper}\n{first}\n\n\n{lower}\n  ⏸ manual mode on");
            let seen = read(&screen, (2, 4));
            assert!(matches!(seen, PromptBox::Holds(draft) if draft.text().is_none()));
        }
        let dialog = format!("─── ↑ 39 more ───\n ❯ 1. Yes\n{RULE}");
        assert_eq!(read(&dialog, (1, 1)), PromptBox::Absent);
    }

    #[test]
    fn a_text_is_known_however_its_lines_are_broken() {
        let text = "one two\tthre\u{301}e, \u{1f469}\u{200d}\u{1f467} and four\u{fe0f}\n日本";
        let seen = read(
            &boxed("❯\u{a0}one two    thrée,\n  \u{1f469} and fo\n  ur\n  日本"),
            (6, 6),
        );
        assert!(seen.holds(text));
        assert!(!seen.holds(&text.replace("four", "five")));
        assert!(!seen.holds(&format!("{text} more")));
        assert!(seen.holds_start_of(&format!("{text} more")) && seen.holds_start_of(text));
        assert!(!seen.holds_start_of(&text.replace("four", "five")));
        assert!(!PromptBox::Empty.holds(""));
        let folded = read(&boxed("❯\u{a0}[Pasted text #1 +11 lines]"), (28, 3));
        assert!(!folded.holds("line 1\nline 2"));
        assert!(read(&boxed("❯\u{a0}\u{1f600}"), (4, 3)).holds("\u{1f600}"));
        assert!(!read(&boxed("❯\u{a0}\u{1f600}"), (4, 3)).holds("\u{1f680}"));
    }

    #[test]
    fn a_long_text_may_be_shown_without_its_middle() {
        let text: Vec<_> = (0..600).map(|n| format!("{n:04} words")).collect();
        let text = text.join("\n");
        let inside =
            "❯\u{a0}0000 words\n  0001 wo[...Truncated text #1\n  +597 lines...]rds\n  0599 words";
        let seen = read(&boxed(inside), (12, 6));
        assert!(seen.holds(&text));
        assert!(!seen.holds(&text.replace("0599", "0598")));
        assert!(!seen.holds(&text.replace("0000", "0001")));
        // A piece of it is missing.
        let missing = inside.replace("+597", "+500");
        assert!(!read(&boxed(&missing), (12, 6)).holds(&text));
        assert!(!read(&boxed(&missing.replace("+500", "+x")), (12, 6)).holds(&text));
    }

    /// Checks the rows that the client made of these texts on a screen of 60 columns.
    #[test]
    fn the_text_of_a_draft_is_known_from_its_rows() {
        let draft = |rows: &[&str]| ShownPrompt {
            rows: rows.iter().map(|row| (*row).to_owned()).collect(),
            whole: true,
            scrolled: None,
            room: 56,
        };
        let words = [
            "alpha beta gamma delta epsilon zeta eta theta iota kappa",
            "lambda mu nu xi omicron pi rho sigma tau upsilon phi",
            "chi psi omega one two three",
        ];
        assert_eq!(draft(&words).text(), Some(words.join(" ")));
        let (full, rest) = ("x".repeat(56), "x".repeat(38));
        let long = [full.as_str(), &full, &rest];
        assert_eq!(draft(&long).text(), Some("x".repeat(150)));
        let wide = "日本語 日本語 日本語 日本語 日本語 日本語 日本語 日本語";
        assert_eq!(
            draft(&[wide, "日本語"]).text(),
            Some(format!("{wide} 日本語"))
        );
        let after = [
            "word word word word word word word word word word",
            &"y".repeat(56),
            "yyyy end",
        ];
        let wanted = format!("{} {}yyyy end", after[0], after[1]);
        assert_eq!(draft(&after).text(), Some(wanted));
        let lines = [
            "fix the parser",
            "  and the lexer",
            "",
            "then run the tests",
        ];
        assert_eq!(draft(&lines).text(), Some(lines.join("\n")));
        assert_eq!(draft(&["one"]).text().as_deref(), Some("one"));
        for (mark, words) in [
            ("see [Image #1] first", "see  first"),
            ("[Pasted text #1 +11 lines]", ""),
            ("a[Pasted text #2]b[Image #3", "ab"),
        ] {
            assert_eq!(pitstop_transcript::prompts::without_marks(mark), words);
            assert_eq!(draft(&[mark]).text(), None);
        }
        let end = ShownPrompt {
            whole: false,
            ..draft(&["the end"])
        };
        assert_eq!(end.text(), None);
    }

    proptest::proptest! {
        #[test]
        fn any_screen_is_read_without_harm(
            lines in proptest::collection::vec("[─❯!\u{a0} a\u{1f600}]{0,12}", 0..12),
            cursor in (0_u16..14, 0_u16..14),
        ) {
            let rows: Vec<Row> = lines
                .iter()
                .map(|text| Row { text: text.clone(), solid: text.clone() })
                .collect();
            let seen = PromptBox::read(&rows, cursor);
            proptest::prop_assert!(!seen.holds("b"));
            if let PromptBox::Holds(draft) = &seen
                && let Some(text) = draft.text()
            {
                proptest::prop_assert!(seen.holds(&text), "{:?}", text);
            }
        }
    }
}
