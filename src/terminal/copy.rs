//! Scroll and copy mode as data: what can be asked of a screen that is being read, and what it answers.
//!
//! ```text
//!   keys, mouse ──▶ app::copy ──CopyOrder──▶ Screen::copy ──CopyOutcome──▶ app::copy ──▶ clipboard
//! ```
//!
//! The screen keeps a still of the grid while it is read: output goes on behind it, and nothing that is being
//! selected moves or changes under the reader's hand.

/// What can be asked of a screen that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyOrder {
    /// Take a still of the screen and its scrollback; the cursor begins at the child's.
    Enter,
    /// Show the living screen again.
    Leave,
    /// Take a new still, with what was written since.
    Refresh,
    /// Move the cursor; a selection follows it.
    Move(Motion),
    /// Begin a selection at the cursor, change its kind, or drop it if it is of this kind already.
    Select(SelectionKind),
    /// Change the ends of the selection, so that the other one moves.
    SwapEnds,
    /// Drop the selection.
    Unselect,
    /// Remember the place: a search is being typed.
    SearchBegin,
    /// Go to the nearest match from the remembered place.
    SearchFor {
        /// A regular expression.
        pattern: String,
        /// Whether to look towards the past.
        backward: bool,
    },
    /// The search has been typed; if it is not kept, everything is as before it.
    SearchEnd {
        /// Whether it is kept.
        keep: bool,
    },
    /// Go to the next match of the last search.
    SearchAgain {
        /// Whether against its direction.
        reverse: bool,
    },
    /// Give the selected text.
    Copy,
    /// Give the text of the line with the cursor.
    CopyLine,
    /// The mouse was pressed on a cell of the pane.
    Press {
        /// Column from 0.
        column: u16,
        /// Row from 0.
        row: u16,
        /// 1 puts the cursor there, 2 selects the word, 3 the line.
        clicks: u8,
    },
    /// The mouse was moved with its button down; outside the pane it scrolls.
    Drag {
        /// Column from 0.
        column: u16,
        /// Row from 0; negative above the pane.
        row: i32,
    },
}

/// Where the cursor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// One cell left.
    Left,
    /// One cell right.
    Right,
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// To the beginning of the next word.
    WordForward(Words),
    /// To the beginning of this or the previous word.
    WordBack(Words),
    /// To the end of this or the next word.
    WordEnd(Words),
    /// To the first cell of the line, over its wrapped rows.
    LineStart,
    /// To the first text of the line.
    LineText,
    /// To the last text of the line.
    LineEnd,
    /// To the oldest line.
    Oldest,
    /// To the newest line with text.
    Newest,
    /// To the top row of the view.
    High,
    /// To its middle row.
    Middle,
    /// To its bottom row.
    Low,
    /// To the empty line above.
    ParagraphBack,
    /// To the empty line below.
    ParagraphForward,
    /// This many rows towards the past (positive) or the present, view and cursor together.
    Rows(i32),
    /// This many half pages towards the past (positive) or the present, view and cursor together.
    HalfPages(i32),
    /// The view alone by this many rows; the cursor stays in it.
    View(i32),
}

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// Letters, digits and underscores, or a run of other signs (vi's `w`).
    Small,
    /// Everything between blanks (vi's `W`).
    Big,
}

/// How much a selection takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum SelectionKind {
    /// From one cell to another, in reading order.
    Characters,
    /// Whole lines, over their wrapped rows.
    Lines,
    /// A rectangle.
    Block,
}

impl SelectionKind {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// What an order has led to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyOutcome {
    /// What is being selected.
    pub selecting: Option<SelectionKind>,
    /// The text to be copied, if that was asked.
    pub copied: Option<String>,
    /// Why something was not done, or what to know about it, in the reader's words.
    pub said: Option<String>,
    /// Whether the pattern could not be read.
    pub bad_pattern: bool,
}

/// How a part of the view stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyMark {
    /// The search has found it.
    Found,
    /// It is selected.
    Selected,
}
