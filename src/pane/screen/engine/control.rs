//! The control functions that the engine's parser does not know.

use vte::ansi::Handler;

use super::Engine;
use super::area::{Area, PROTECTED};
use crate::pane::tap::{Control, Function};

impl Engine {
    /// Whether the function is ours where the engine's parser would take its bytes for another one.
    pub(in crate::pane::screen) fn takes(&self, function: Function) -> bool {
        match function {
            // Without side margins these bytes save the cursor.
            Function::SideMargins => self.margins.sides_allowed,
            Function::MoveRight | Function::MoveDown => true,
            _ => false,
        }
    }

    pub(in crate::pane::screen) fn control(&mut self, control: Control) {
        let [first, second, third, fourth, fifth, sixth, seventh, _] = control.numbers;
        let count = i32::from(first.max(1));
        match control.function {
            Function::Checksum => self.report_checksum(control.numbers),
            Function::Fill => self.fill(&self.area(second, third, fourth, fifth), first),
            Function::Erase => self.erase(&self.area(first, second, third, fourth), false),
            Function::EraseSelectively => {
                self.erase(&self.area(first, second, third, fourth), true);
            }
            Function::Copy => {
                let from = self.area(first, second, third, fourth);
                self.copy_area(&from, sixth, seventh);
            }
            Function::InsertColumns => self.shift_from_cursor_column(count),
            Function::DeleteColumns => self.shift_from_cursor_column(-count),
            Function::ShiftRight => self.shift_columns(&self.scrolling_area(), count),
            Function::ShiftLeft => self.shift_columns(&self.scrolling_area(), -count),
            Function::BackIndex => self.back_index(),
            Function::ForwardIndex => self.forward_index(),
            Function::Protect => self.protect(first),
            Function::EraseDisplay => self.erase_display(first),
            Function::EraseLine => self.erase_line(first),
            Function::SideMargins => self.set_sides(first, second),
            Function::MoveRight => self.shift_cursor(0, first.max(1)),
            Function::MoveDown => self.shift_cursor(first.max(1), 0),
            Function::Status => self.report_status(first, second),
        }
    }

    fn report_checksum(&mut self, [id, _page, top, left, bottom, right, ..]: [u16; 8]) {
        if self.checksums {
            let sum = self.checksum(&self.area(top, left, bottom, right));
            self.reply(&format!("\x1bP{id}!~{sum:04X}\x1b\\"));
        }
    }

    /// DECIC and DECDC: all rows that scroll, from the cursor's column on.
    fn shift_from_cursor_column(&mut self, columns: i32) {
        if self.is_inside() {
            let mut area = self.scrolling_area();
            area.columns.start = self.column_of_cursor();
            self.shift_columns(&area, columns);
        }
    }

    /// DECBI: a column back; at the left margin the text moves instead.
    fn back_index(&mut self) {
        if self.column_of_cursor() == self.margins.left && self.is_inside() {
            self.shift_columns(&self.scrolling_area(), 1);
        } else {
            self.term.move_backward(1);
        }
    }

    /// DECFI: a column on; at the right margin the text moves instead.
    fn forward_index(&mut self) {
        if self.column_of_cursor() == self.margins.right && self.is_inside() {
            self.shift_columns(&self.scrolling_area(), -1);
        } else {
            self.term.move_forward(1);
        }
    }

    /// DECSCA: whether what is written next is left by selective erasing.
    fn protect(&mut self, number: u16) {
        if number <= 2 {
            let template = &mut self.term.grid_mut().cursor.template;
            template.flags.set(PROTECTED, number == 1);
        }
    }

    /// DECSED.
    fn erase_display(&mut self, number: u16) {
        let (row, whole) = (self.row_of_cursor(), self.whole());
        let rows = match number {
            0 => row + 1..whole.rows.end,
            1 => 0..row,
            2 => whole.rows.clone(),
            _ => return,
        };
        let area = Area { rows, ..whole };
        self.erase(&area, true);
        self.erase_line(number);
    }

    /// DECSEL.
    fn erase_line(&mut self, number: u16) {
        let (row, column, whole) = (self.row_of_cursor(), self.column_of_cursor(), self.whole());
        let columns = match number {
            0 => column..whole.columns.end,
            1 => 0..column + 1,
            2 => whole.columns,
            _ => return,
        };
        let area = Area {
            rows: row..row + 1,
            columns,
        };
        self.erase(&area, true);
    }

    /// DSR for the parts of a terminal that we do not have.
    fn report_status(&mut self, question: u16, id: u16) {
        let reply = match question {
            // The printer: none.
            15 => "\x1b[?13n",
            // User-defined keys: locked.
            25 => "\x1b[?21n",
            // The keyboard: language unknown.
            26 => "\x1b[?27;0n",
            // The locator: none, of unknown kind.
            53 | 55 => "\x1b[?50n",
            56 => "\x1b[?57;0n",
            // Room for macros: none.
            62 => "\x1b[0*{",
            // The macros' checksum.
            63 => return self.reply(&format!("\x1bP{id}!~0000\x1b\\")),
            // The line to the program: no errors.
            75 => "\x1b[?70n",
            // Sessions at once: only one.
            85 => "\x1b[?83n",
            _ => return,
        };
        self.reply(reply);
    }
}
