//! The control functions that the engine's parser does not know.

use super::Engine;
use crate::terminal::side_channel::{Control, Function};

impl Engine {
    /// Whether the function is ours where the engine's parser would take its bytes for another one.
    pub(in crate::terminal::screen) fn takes(&self, function: Function) -> bool {
        match function {
            // Without side margins these bytes save the cursor.
            Function::SideMargins => self.margins.sides_allowed,
            Function::MoveRight | Function::MoveDown => true,
            Function::Status => false,
        }
    }

    pub(in crate::terminal::screen) fn control(&mut self, control: Control) {
        let [first, second] = control.numbers;
        match control.function {
            Function::SideMargins => self.set_sides(first, second),
            Function::MoveRight => self.shift_cursor(0, first.max(1)),
            Function::MoveDown => self.shift_cursor(first.max(1), 0),
            Function::Status => self.report_status(first, second),
        }
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
