//! Scroll and copy mode as data: the orders that a screen in copy mode takes, and the outcomes that it returns.
//!
//! ```text
//!   keys, mouse ──▶ app::copy ──CopyOrder──▶ Screen::copy ──CopyOutcome──▶ app::copy ──▶ clipboard
//! ```
//!
//! The screen keeps a still, a frozen copy of the grid, while it is read: output continues meanwhile, and the text that is
//! being selected neither moves nor changes.

/// An order to a screen in copy mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyOrder {
    /// Takes a still of the screen and its scrollback; the cursor begins at the child's.
    Enter,
    /// Shows the live screen again.
    Leave,
    /// Takes a new still that includes the output since the last one.
    Refresh,
    /// Moves the cursor; a selection follows it.
    Move(Motion),
    /// Begins a selection at the cursor, changes its kind, or drops it if it is of this kind already.
    Select(SelectionKind),
    /// Swaps the ends of the selection, so that the other one moves.
    SwapEnds,
    /// Drops the selection.
    Unselect,
    /// Remembers the position, because a search is being typed.
    SearchBegin,
    /// Goes to the match nearest to the remembered position.
    SearchFor {
        /// A regular expression.
        pattern: String,
        /// True to search towards the past.
        backward: bool,
    },
    /// Ends the typing of a search; if it is not kept, the state from before it is restored.
    SearchEnd {
        /// True if it is kept.
        keep: bool,
    },
    /// Goes to the next match of the last search.
    SearchAgain {
        /// True to go against its direction.
        reverse: bool,
    },
    /// Returns the selected text.
    Copy,
    /// Returns the text of the line with the cursor.
    CopyLine,
    /// Handles a press of the mouse on a cell of the pane.
    Press {
        /// The column, from 0.
        column: u16,
        /// The row, from 0.
        row: u16,
        /// The number of clicks: 1 puts the cursor there, 2 selects the word, 3 the line.
        clicks: u8,
    },
    /// Handles a move of the mouse with its button down; outside the pane it scrolls.
    Drag {
        /// The column, from 0.
        column: u16,
        /// The row, from 0; negative above the pane.
        row: i32,
    },
}

/// A motion of the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// Moves one cell left.
    Left,
    /// Moves one cell right.
    Right,
    /// Moves one row up.
    Up,
    /// Moves one row down.
    Down,
    /// Moves to the beginning of the next word.
    WordForward(Words),
    /// Moves to the beginning of this or the previous word.
    WordBack(Words),
    /// Moves to the end of this or the next word.
    WordEnd(Words),
    /// Moves to the first cell of the line, across its wrapped rows.
    LineStart,
    /// Moves to the first text of the line.
    LineText,
    /// Moves to the last text of the line.
    LineEnd,
    /// Moves to the oldest line.
    Oldest,
    /// Moves to the newest line with text.
    Newest,
    /// Moves to the top row of the view.
    High,
    /// Moves to the middle row of the view.
    Middle,
    /// Moves to the bottom row of the view.
    Low,
    /// Moves to the empty line above.
    ParagraphBack,
    /// Moves to the empty line below.
    ParagraphForward,
    /// Moves view and cursor by this many rows towards the past (positive) or the present.
    Rows(i32),
    /// Moves view and cursor by this many half pages towards the past (positive) or the present.
    HalfPages(i32),
    /// Moves the view alone by this many rows; the cursor stays in it.
    View(i32),
}

/// The definition of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// A run of letters, digits and underscores, or a run of other characters (vi's `w`).
    Small,
    /// Everything between blanks (vi's `W`).
    Big,
}

/// The shape of a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum SelectionKind {
    /// The cells from one to another, in reading order.
    Characters,
    /// Whole lines, with all their wrapped rows.
    Lines,
    /// A rectangle.
    Block,
}

impl SelectionKind {
    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// The outcome of an order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyOutcome {
    /// The kind of the current selection.
    pub selecting: Option<SelectionKind>,
    /// The text to be copied, if the order was to copy.
    pub copied: Option<String>,
    /// A note to the reader, such as the reason why something was not done.
    pub said: Option<String>,
    /// True if the pattern could not be parsed.
    pub bad_pattern: bool,
}

/// The kind of highlight of a part of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyMark {
    /// A match of the search.
    Found,
    /// The selection.
    Selected,
}
