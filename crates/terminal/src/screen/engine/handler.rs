//! The parser's calls: passed on to the engine, except those that we answer, count or bound ourselves.

use alacritty_terminal::grid::Dimensions as _;
use alacritty_terminal::term::TermMode;
use vte::ansi::cursor_icon::CursorIcon;
use vte::ansi::{
    self, Attr, CharsetIndex, ClearMode, Handler, KeyboardModes, KeyboardModesApplyBehavior,
    LineClearMode, Mode, ModifyOtherKeys, NamedMode, NamedPrivateMode, PrivateMode, ScpCharPath,
    ScpUpdateMode, StandardCharset, TabulationClearMode,
};

use super::answers::ATTRIBUTES_REPLY;
use super::{CELL_PIXELS, Engine, Links, MOUSE_MODES, TITLE_DEPTH, TITLE_LIMIT};
use crate::Rgb;
use crate::screen::{ScreenFact, cells::BLINK};
use crate::side_channel::decode_base64;
use pitstop_base::clean::stripped;

/// Passes calls on to the engine unchanged.
macro_rules! pass_on {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(#[inline]
        fn $name(&mut self, $($argument: $type),*) {
            self.term.$name($($argument),*);
        })*
    };
}

/// Passes calls on to the engine while the whole screen scrolls; otherwise our own functions handle them. This check is the
/// only cost of margins for a screen without any.
macro_rules! inside_margins {
    ($($name:ident($($argument:ident: $type:ty),*) => $own:ident;)*) => {
        $(#[inline]
        fn $name(&mut self, $($argument: $type),*) {
            if self.plain {
                self.term.$name($($argument),*);
            } else {
                self.$own($($argument),*);
            }
        })*
    };
}

impl Handler for Engine {
    inside_margins! {
        goto(line: i32, column: usize) => place_at;
        goto_line(line: i32) => place_in_row;
        move_up(count: usize) => up;
        move_down(count: usize) => down;
        move_down_and_cr(count: usize) => down_to_start;
        move_up_and_cr(count: usize) => up_to_start;
        linefeed() => next_line;
        scroll_up(count: usize) => scroll_text_up;
    }

    pass_on! {
        goto_col(column: usize);
        move_forward(count: usize);
        move_backward(count: usize);
        backspace();
        put_tab(count: u16);
        move_forward_tabs(count: u16);
        carriage_return();
        reverse_index();
        scroll_down(count: usize);
        insert_blank_lines(count: usize);
        set_cursor_style(style: Option<ansi::CursorStyle>);
        set_cursor_shape(shape: ansi::CursorShape);
        substitute();
        set_horizontal_tabstop();
        move_backward_tabs(count: u16);
        clear_tabs(mode: TabulationClearMode);
        set_tabs(interval: u16);
        set_keypad_application_mode();
        unset_keypad_application_mode();
        set_active_charset(index: CharsetIndex);
        configure_charset(index: CharsetIndex, charset: StandardCharset);
        set_color(index: usize, colour: ansi::Rgb);
        reset_color(index: usize);
        set_mouse_cursor_icon(icon: CursorIcon);
        set_scp(path: ScpCharPath, update: ScpUpdateMode);
    }

    #[inline]
    fn input(&mut self, c: char) {
        if c < self.rare_from {
            self.term.input(c);
        } else {
            self.input_rare(c);
        }
    }

    fn delete_lines(&mut self, count: usize) {
        self.hold_view(self.row_of_cursor(), |term| term.delete_lines(count));
    }

    fn insert_blank(&mut self, count: usize) {
        let column = self.column_of_cursor();
        self.part(column);
        self.part(self.term.columns().saturating_sub(count).max(column));
        self.term.insert_blank(count);
    }

    fn delete_chars(&mut self, count: usize) {
        let column = self.column_of_cursor();
        // Of a larger number the engine erases the rest before the cursor.
        let count = count.min(self.term.columns() - column);
        self.part(column);
        self.part(column + count);
        self.term.delete_chars(count);
    }

    fn erase_chars(&mut self, count: usize) {
        let column = self.column_of_cursor();
        self.part(column);
        self.part(column + count);
        self.term.erase_chars(count);
    }

    fn save_cursor_position(&mut self) {
        self.saved_origin = self.origin;
        self.term.save_cursor_position();
    }

    fn restore_cursor_position(&mut self) {
        self.origin = self.saved_origin;
        self.judge();
        self.term.restore_cursor_position();
    }

    fn set_mode(&mut self, mode: Mode) {
        self.term.set_mode(mode);
        self.judge();
    }

    fn unset_mode(&mut self, mode: Mode) {
        self.term.unset_mode(mode);
        self.judge();
    }

    #[inline]
    fn terminal_attribute(&mut self, attribute: Attr) {
        match attribute {
            // SGR 21: the parser reads it as the Linux console once did; ECMA-48 and xterm read it as a double underline.
            Attr::CancelBold => self.term.terminal_attribute(Attr::DoubleUnderline),
            Attr::BlinkSlow | Attr::BlinkFast => self.template().flags.insert(BLINK),
            Attr::CancelBlink => self.template().flags.remove(BLINK),
            Attr::Reset => {
                self.term.terminal_attribute(Attr::Reset);
                self.set_overline(false);
            }
            other => self.term.terminal_attribute(other),
        }
    }

    fn decaln(&mut self) {
        self.full_region();
        self.term.goto(0, 0);
        self.term.decaln();
    }

    fn clear_line(&mut self, mode: LineClearMode) {
        let whole = match mode {
            LineClearMode::All => true,
            LineClearMode::Right => self.term.grid().cursor.point.column == 0,
            LineClearMode::Left => false,
        };
        let column = self.column_of_cursor();
        match mode {
            // The engine erases nothing behind a full row.
            LineClearMode::Right if self.term.grid().cursor.input_needs_wrap => {}
            LineClearMode::Right => self.part(column),
            LineClearMode::Left => self.part(column + 1),
            LineClearMode::All => {}
        }
        self.term.clear_line(mode);
        if whole {
            self.break_wrap();
        }
    }

    fn clear_screen(&mut self, mode: ClearMode) {
        let cursor = self.term.grid().cursor.point;
        match mode {
            ClearMode::Saved if self.keeps_scrollback => {}
            // The engine would move the text above the screen, and for an empty screen a blank line.
            ClearMode::All if self.redraws || self.is_blank() => {
                self.clear_screen(ClearMode::Above);
                self.clear_screen(ClearMode::Below);
            }
            ClearMode::Above => {
                self.part(cursor.column.0 + 1);
                self.term.clear_screen(ClearMode::Above);
                // The engine does not clear the first line if it is the only one above the cursor's.
                self.term.grid_mut().reset_region(..cursor.line);
            }
            ClearMode::Below => {
                self.part(cursor.column.0);
                self.term.clear_screen(ClearMode::Below);
                if cursor.column == 0 {
                    self.break_wrap();
                }
            }
            other => self.term.clear_screen(other),
        }
    }

    fn bell(&mut self) {
        if self.facts.last() != Some(&ScreenFact::Bell) {
            self.report(ScreenFact::Bell);
        }
    }

    fn set_title(&mut self, title: Option<String>) {
        self.set_title_text(stripped(&title.unwrap_or_default(), TITLE_LIMIT));
    }

    fn push_title(&mut self) {
        if self.titles.len() < TITLE_DEPTH {
            self.titles.push(self.title.clone());
        }
    }

    fn pop_title(&mut self) {
        if let Some(title) = self.titles.pop() {
            self.set_title_text(title);
        }
    }

    fn identify_terminal(&mut self, intermediate: Option<char>) {
        match intermediate {
            None => self.reply(ATTRIBUTES_REPLY),
            // The reply: type VT220, our version as one number, no cartridge.
            Some('>') => self.reply("\x1b[>1;100;0c"),
            Some('=') => self.reply("\x1bP!|00000000\x1b\\"),
            Some(_) => {}
        }
    }

    fn device_status(&mut self, question: usize) {
        match question {
            5 => self.reply("\x1b[0n"),
            6 => self.report_cursor(""),
            _ => {}
        }
    }

    fn report_mode(&mut self, mode: Mode) {
        let state = match mode {
            Mode::Named(NamedMode::Insert) => 2 - u8::from(self.mode(TermMode::INSERT)),
            Mode::Named(NamedMode::LineFeedNewLine) => {
                2 - u8::from(self.mode(TermMode::LINE_FEED_NEW_LINE))
            }
            // These modes are never on in a terminal that sends each character at once.
            Mode::Unknown(1 | 5 | 7 | 10 | 11 | 13..=19) => 4,
            Mode::Unknown(_) => 0,
        };
        // The mode's number is the only part of a query that a reply repeats: at most five digits, parsed as a number.
        self.reply(&format!("\x1b[{};{state}$y", mode.raw()));
    }

    fn report_private_mode(&mut self, mode: PrivateMode) {
        let state = self.private_mode_state(mode.raw());
        self.reply(&format!("\x1b[?{};{state}$y", mode.raw()));
    }

    fn set_private_mode(&mut self, mode: PrivateMode) {
        self.switch(mode, true);
    }

    fn unset_private_mode(&mut self, mode: PrivateMode) {
        self.switch(mode, false);
    }

    fn set_scrolling_region(&mut self, top: usize, bottom: Option<usize>) {
        self.set_rows(top, bottom);
    }

    fn reset_state(&mut self) {
        self.term.reset_state();
        self.forget_keys();
        self.forget_margins();
        self.other_saved_origin = false;
        self.main_saved = None;
        self.scheme_reports = false;
        self.titles.clear();
        self.links = Links::default();
        self.set_title_text(String::new());
    }

    fn dynamic_color_sequence(&mut self, prefix: String, index: usize, terminator: &str) {
        // `prefix` is the parser's own text: the number of the query.
        if let Some(Rgb(red, green, blue)) = self.known_colour(index) {
            self.reply(&format!(
                "\x1b]{prefix};rgb:{red:02x}{red:02x}/{green:02x}{green:02x}/{blue:02x}{blue:02x}{terminator}"
            ));
        }
    }

    fn clipboard_store(&mut self, clipboard: u8, base64: &[u8]) {
        if matches!(clipboard, b'c' | b's' | b'p')
            && let Some(text) =
                decode_base64(base64).and_then(|bytes| String::from_utf8(bytes).ok())
        {
            self.report(ScreenFact::ClipboardStore(text));
        }
    }

    fn text_area_size_pixels(&mut self) {
        let (width, height) = CELL_PIXELS;
        let height = u32::from(height) * u32::from(self.size.rows());
        let width = u32::from(width) * u32::from(self.size.columns());
        self.reply(&format!("\x1b[4;{height};{width}t"));
    }

    fn text_area_size_chars(&mut self) {
        self.reply(&format!(
            "\x1b[8;{};{}t",
            self.size.rows(),
            self.size.columns()
        ));
    }

    fn set_hyperlink(&mut self, link: Option<ansi::Hyperlink>) {
        let link = link.and_then(|link| self.link(link));
        self.term.grid_mut().cursor.template.set_hyperlink(link);
    }

    fn report_keyboard_mode(&mut self) {
        self.reply(&format!("\x1b[?{}u", self.keyboard.flags));
    }

    fn push_keyboard_mode(&mut self, mode: KeyboardModes) {
        self.keyboard.push(mode.bits());
    }

    fn pop_keyboard_modes(&mut self, count: u16) {
        self.keyboard.pop(count);
    }

    fn set_keyboard_mode(&mut self, mode: KeyboardModes, behaviour: KeyboardModesApplyBehavior) {
        let flags = &mut self.keyboard.flags;
        match behaviour {
            KeyboardModesApplyBehavior::Replace => *flags = mode.bits(),
            KeyboardModesApplyBehavior::Union => *flags |= mode.bits(),
            KeyboardModesApplyBehavior::Difference => *flags &= !mode.bits(),
        }
    }

    fn set_modify_other_keys(&mut self, mode: ModifyOtherKeys) {
        self.modify_other_keys = match mode {
            ModifyOtherKeys::Reset => 0,
            ModifyOtherKeys::EnableExceptWellDefined => 1,
            ModifyOtherKeys::EnableAll => 2,
        };
    }

    fn report_modify_other_keys(&mut self) {
        self.reply(&format!("\x1b[>4;{}m", self.modify_other_keys));
    }
}

impl Engine {
    /// Sets or unsets a private mode.
    fn switch(&mut self, mode: PrivateMode, on: bool) {
        match mode {
            // On the main screen it still restores the cursor; curses programs send it twice at their end.
            PrivateMode::Named(NamedPrivateMode::SwapScreenAndSetRestoreCursor)
                if !on && !self.mode(TermMode::ALT_SCREEN) =>
            {
                self.restore_cursor_position();
            }
            PrivateMode::Named(NamedPrivateMode::SwapScreenAndSetRestoreCursor) => {
                self.enter_alternate(on);
            }
            PrivateMode::Named(NamedPrivateMode::Origin) => self.set_origin(on),
            PrivateMode::Named(named) => {
                self.x10_mouse &= !(on && MOUSE_MODES.contains(&named));
                if named == NamedPrivateMode::ColumnMode {
                    self.reset_margins();
                }
                if on {
                    self.term.set_private_mode(mode);
                } else {
                    self.term.unset_private_mode(mode);
                }
            }
            PrivateMode::Unknown(47 | 1047) => self.enter_alternate_in_place(on),
            PrivateMode::Unknown(9) => {
                for other in MOUSE_MODES.into_iter().filter(|_| on) {
                    self.term.unset_private_mode(other.into());
                }
                self.x10_mouse = on;
            }
            PrivateMode::Unknown(66) if on => self.term.set_keypad_application_mode(),
            PrivateMode::Unknown(66) => self.term.unset_keypad_application_mode(),
            PrivateMode::Unknown(1048) if on => self.save_cursor_position(),
            PrivateMode::Unknown(1048) => self.restore_cursor_position(),
            PrivateMode::Unknown(2031) => self.scheme_reports = on,
            PrivateMode::Unknown(_) => {}
        }
    }
}
