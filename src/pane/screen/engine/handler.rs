//! The parser's calls: passed on to the engine, but for those that we answer, count or bound ourselves.

use alacritty_terminal::index::Line;
use alacritty_terminal::term::TermMode;
use unicode_width::UnicodeWidthChar;
use vte::ansi::cursor_icon::CursorIcon;
use vte::ansi::{
    self, Attr, CharsetIndex, ClearMode, Handler, KeyboardModes, KeyboardModesApplyBehavior,
    LineClearMode, Mode, ModifyOtherKeys, NamedMode, NamedPrivateMode, PrivateMode, ScpCharPath,
    ScpUpdateMode, StandardCharset, TabulationClearMode,
};

use super::answers::ATTRIBUTES_REPLY;
use super::{Engine, Links, MOUSE_MODES, TITLE_DEPTH, TITLE_LIMIT};
use crate::clean::stripped;
use crate::pane::Rgb;
use crate::pane::screen::ScreenFact;
use crate::pane::tap::decode_base64;

/// Passes calls on to the engine unchanged.
macro_rules! pass_on {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(#[inline]
        fn $name(&mut self, $($argument: $type),*) {
            self.term.$name($($argument),*);
        })*
    };
}

impl Handler for Engine {
    pass_on! {
        set_cursor_style(style: Option<ansi::CursorStyle>);
        set_cursor_shape(shape: ansi::CursorShape);
        goto(line: i32, column: usize);
        goto_line(line: i32);
        goto_col(column: usize);
        insert_blank(count: usize);
        move_up(count: usize);
        move_down(count: usize);
        move_forward(count: usize);
        move_backward(count: usize);
        move_down_and_cr(count: usize);
        move_up_and_cr(count: usize);
        put_tab(count: u16);
        backspace();
        carriage_return();
        substitute();
        set_horizontal_tabstop();
        scroll_down(count: usize);
        insert_blank_lines(count: usize);
        erase_chars(count: usize);
        delete_chars(count: usize);
        move_backward_tabs(count: u16);
        move_forward_tabs(count: u16);
        save_cursor_position();
        restore_cursor_position();
        clear_line(mode: LineClearMode);
        clear_tabs(mode: TabulationClearMode);
        set_tabs(interval: u16);
        reverse_index();
        terminal_attribute(attribute: Attr);
        set_mode(mode: Mode);
        unset_mode(mode: Mode);
        set_keypad_application_mode();
        unset_keypad_application_mode();
        set_active_charset(index: CharsetIndex);
        configure_charset(index: CharsetIndex, charset: StandardCharset);
        set_color(index: usize, colour: ansi::Rgb);
        reset_color(index: usize);
        decaln();
        set_mouse_cursor_icon(icon: CursorIcon);
        set_scp(path: ScpCharPath, update: ScpUpdateMode);
    }

    #[inline]
    fn input(&mut self, c: char) {
        // Below the first combining mark nothing is of width zero, and nothing joins.
        if c >= '\u{300}' && (self.join(c) || (c.width() == Some(0) && self.cluster_is_full())) {
            return;
        }
        self.hold_view(self.region_top > 0, |term| term.input(c));
    }

    #[inline]
    fn linefeed(&mut self) {
        self.hold_view(self.region_top > 0, Handler::linefeed);
    }

    #[inline]
    fn newline(&mut self) {
        self.hold_view(self.region_top > 0, Handler::newline);
    }

    fn scroll_up(&mut self, count: usize) {
        self.hold_view(self.region_top > 0, |term| term.scroll_up(count));
    }

    fn delete_lines(&mut self, count: usize) {
        let below = self.term.grid().cursor.point.line > 0;
        self.hold_view(below, |term| term.delete_lines(count));
    }

    fn clear_screen(&mut self, mode: ClearMode) {
        match mode {
            ClearMode::Saved if self.keeps_scrollback => {}
            // The engine would move it above the screen.
            ClearMode::All if self.redraws => {
                self.term.grid_mut().reset_region(..);
                self.term.clear_screen(ClearMode::Below);
            }
            // The engine (0.26) leaves the first row as it is when the cursor stands in the second.
            ClearMode::Above if self.term.grid().cursor.point.line == 1 => {
                self.term.grid_mut().reset_region(..Line(1));
                self.term.clear_screen(mode);
            }
            mode => self.term.clear_screen(mode),
        }
    }

    fn bell(&mut self) {
        if self.facts.last() != Some(&ScreenFact::Bell) {
            self.tell(ScreenFact::Bell);
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
            // Type VT220, our version as one number, no cartridge.
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
            Mode::Unknown(_) => 0,
        };
        // The mode's number is the one thing a reply repeats: at most five digits, read as a number.
        self.reply(&format!("\x1b[{};{state}$y", mode.raw()));
    }

    fn report_private_mode(&mut self, mode: PrivateMode) {
        let state = self.private_mode_state(mode.raw());
        self.reply(&format!("\x1b[?{};{state}$y", mode.raw()));
    }

    fn set_private_mode(&mut self, mode: PrivateMode) {
        match mode {
            PrivateMode::Named(NamedPrivateMode::SwapScreenAndSetRestoreCursor)
            | PrivateMode::Unknown(47 | 1047) => self.enter_alternate(true),
            PrivateMode::Unknown(9) => {
                for other in MOUSE_MODES {
                    self.term.unset_private_mode(other.into());
                }
                self.x10_mouse = true;
            }
            PrivateMode::Unknown(66) => self.term.set_keypad_application_mode(),
            PrivateMode::Unknown(1048) => self.term.save_cursor_position(),
            PrivateMode::Unknown(2031) => self.scheme_reports = true,
            PrivateMode::Named(named) => {
                self.x10_mouse &= !MOUSE_MODES.contains(&named);
                if named == NamedPrivateMode::ColumnMode {
                    self.region_top = 0;
                }
                self.term.set_private_mode(mode);
            }
            PrivateMode::Unknown(_) => {}
        }
    }

    fn unset_private_mode(&mut self, mode: PrivateMode) {
        match mode {
            PrivateMode::Named(NamedPrivateMode::SwapScreenAndSetRestoreCursor)
            | PrivateMode::Unknown(47 | 1047) => self.enter_alternate(false),
            PrivateMode::Unknown(9) => self.x10_mouse = false,
            PrivateMode::Unknown(66) => self.term.unset_keypad_application_mode(),
            PrivateMode::Unknown(1048) => self.term.restore_cursor_position(),
            PrivateMode::Unknown(2031) => self.scheme_reports = false,
            PrivateMode::Named(named) => {
                if named == NamedPrivateMode::ColumnMode {
                    self.region_top = 0;
                }
                self.term.unset_private_mode(mode);
            }
            PrivateMode::Unknown(_) => {}
        }
    }

    fn set_scrolling_region(&mut self, top: usize, bottom: Option<usize>) {
        let rows = usize::from(self.size.rows());
        if top < bottom.unwrap_or(rows) {
            self.region_top = (top.max(1) - 1).min(rows);
        }
        self.term.set_scrolling_region(top, bottom);
    }

    fn reset_state(&mut self) {
        self.term.reset_state();
        self.forget_keys();
        self.region_top = 0;
        self.scheme_reports = false;
        self.titles.clear();
        self.links = Links::default();
        self.set_title_text(String::new());
    }

    fn dynamic_color_sequence(&mut self, prefix: String, index: usize, terminator: &str) {
        // `prefix` is the parser's own text: the number of the question.
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
            self.tell(ScreenFact::ClipboardStore(text));
        }
    }

    fn text_area_size_pixels(&mut self) {
        let (width, height) = self.cell_pixels;
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
