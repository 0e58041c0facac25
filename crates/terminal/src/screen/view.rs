//! What a screen shows: cells, their style, the cursor and rows of text.

/// A distance to scroll the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scroll {
    /// Scrolls by this many lines; positive is towards the past.
    Lines(i32),
    /// Scrolls one page towards the past.
    PageUp,
    /// Scrolls one page towards the present.
    PageDown,
    /// Scrolls to the oldest line.
    Top,
    /// Scrolls to the present.
    Bottom,
}

/// A cell's colour as the child named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// The terminal's default.
    Default,
    /// One of the 256 palette colours.
    Indexed(u8),
    /// A colour by its parts.
    Rgb(u8, u8, u8),
}

/// The kinds of underline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Underline {
    /// The absence of an underline.
    #[default]
    None,
    /// A single line.
    Single,
    /// Two lines.
    Double,
    /// A wavy line.
    Curly,
    /// A dotted line.
    Dotted,
    /// A dashed line.
    Dashed,
}

/// The style of a cell's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// True if the text is bold.
    pub bold: bool,
    /// True if the text is faint.
    pub dim: bool,
    /// True if the text is slanted.
    pub italic: bool,
    /// True if the text and background colours are swapped.
    pub inverse: bool,
    /// True if the text is not shown.
    pub hidden: bool,
    /// True if the text is struck through.
    pub strike: bool,
    /// True if the text blinks.
    pub blink: bool,
    /// True if there is a line above the text.
    pub overline: bool,
    /// The kind of underline.
    pub underline: Underline,
}

/// One unit of text in the viewport; the second half of a wide character is not visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellView<'a> {
    /// The column in the viewport, from 0.
    pub column: u16,
    /// The row in the viewport, from 0.
    pub row: u16,
    /// The character with its zero-width companions; a space if the cell is empty.
    pub text: &'a str,
    /// The number of cells that it takes: 1 or 2.
    pub width: u16,
    /// The text colour.
    pub foreground: Colour,
    /// The background colour.
    pub background: Colour,
    /// The underline's own colour, if it has one.
    pub underline_colour: Option<Colour>,
    /// The style of the text.
    pub attributes: Attributes,
    /// The target that it links to: bounded and free of controls, but of any scheme.
    pub hyperlink: Option<&'a str>,
    /// The child's own id for the link; empty if it gave none.
    pub link_id: &'a str,
}

/// The shapes of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorShape {
    /// A full cell.
    Block,
    /// A line below the cell.
    Underline,
    /// A line before the cell.
    Bar,
}

/// The cursor in viewport cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The column, always inside the viewport.
    pub column: u16,
    /// The row, always inside the viewport.
    pub row: u16,
    /// True if the child shows it and it is not scrolled out of view. The position is valid even if not:
    /// input methods open there.
    pub visible: bool,
    /// The shape of the cursor.
    pub shape: CursorShape,
    /// True if it blinks.
    pub blinking: bool,
}

/// A screen as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrawnText {
    /// The rows from top to bottom.
    pub rows: Vec<DrawnRow>,
    /// The cursor's column and row, in cells from 0; also of a cursor that is hidden.
    pub cursor: (u16, u16),
}

/// One row of a screen as text, without trailing blanks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrawnRow {
    /// The text of the row.
    pub text: String,
    /// The same text with a blank in place of each faint character.
    pub solid: String,
}
